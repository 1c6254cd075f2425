/* SPDX-License-Identifier: Apache-2.0 */
/* A request of any mount helper: the first byte chooses which. What is taken is planned, too. */
#include "fuzz.h"

#include "inject/plan.h"
#include "inject/request_parse.h"
#include "inject/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const enum request_kind kinds[] = { REQUEST_MOUNT_BIND,    REQUEST_MOUNT_BLOCK, REQUEST_MOUNT_REMOVE,
                                                   REQUEST_MOUNT_LIST,    REQUEST_MOUNT_NFS,   REQUEST_MOUNT_TMPFS,
                                                   REQUEST_MOUNT_OVERLAY, REQUEST_MOUNT_BATCH, REQUEST_MOUNT_CONTAINER,
                                                   REQUEST_MOUNT_IMAGE };
        static struct plan plans[REQUEST_ENTRIES_MAX];
        struct request request = {};
        struct error error = {};
        char *argv[] = { (char *)"program", NULL, NULL };
        char *text;

        if (size == 0)
                return 0;
        text = fuzz_text(data + 1, size - 1);
        argv[1] = text;
        if (strcmp(text, "-") != 0) {
                if (request_parse(&request, kinds[data[0] % (sizeof kinds / sizeof kinds[0])], source_kinds, 2, argv,
                                  &error) < 0) {
                        fuzz_printable(&error);
                        fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
                } else if (request.kind == REQUEST_MOUNT_BATCH)
                        plan_make_batch(plans, &request);
                else if (request.kind != REQUEST_MOUNT_LIST)
                        plan_make(plans, &request);
        }
        request_release(&request);
        free(text);
        return 0;
}
