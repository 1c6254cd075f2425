/* SPDX-License-Identifier: Apache-2.0 */
/* A request of any volume tool: the first byte chooses which. */
#include "fuzz.h"

#include "pool/record.h"
#include "provision/request.h"

#define VERBS_OF_TOOLS (PROVISION_SNAPSHOT + 1)

/* It stands in records, in logs and in tables that people read; a record's file has a name made of it. */
static void check_name(const char *name)
{
        fuzz_check(name == NULL || (name[0] != '\0' && strlen(name) < PROVISION_NAME_MAX));
        for (; name != NULL && *name != '\0'; name++)
                fuzz_check((unsigned char)*name >= ' ' && *name != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct provision_request request = {};
        struct error error = {};
        char *argv[] = { (char *)"tool", NULL, NULL };

        if (size == 0)
                return 0;
        argv[1] = fuzz_text(data + 1, size - 1);
        if (strcmp(argv[1], "-") != 0) {
                if (provision_request_parse(&request, (enum provision_verb)(data[0] % VERBS_OF_TOOLS), 2, argv,
                                            &error) < 0) {
                        fuzz_printable(&error);
                        fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
                } else {
                        check_name(request.name);
                        check_name(request.snapshot);
                        check_name(request.restore);
                }
        }
        provision_request_release(&request);
        free(argv[1]);
        return 0;
}
