/* SPDX-License-Identifier: Apache-2.0 */
/* What kubelet hands to a verb: the first byte chooses the verb, a line is an argument. */
#include "fuzz.h"

#include "volume/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct volume_request request;
        struct error error = {};
        char *argv[8] = { (char *)"verb" };
        int argc = 1;
        char *text;
        char *rest;

        if (size == 0)
                return 0;
        text = rest = fuzz_text(data + 1, size - 1);
        while (argc < 7 && (argv[argc] = strsep(&rest, "\n")) != NULL && strcmp(argv[argc], "-") != 0)
                argc++;
        request = (struct volume_request){};
        if (volume_request_parse(&request, (enum verb)(data[0] % VERBS), argc, argv, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
        } else if (request.options != NULL) {
                const char *key;
                json_t *value;

                json_object_foreach (request.options, key, value)
                        fuzz_check(strncmp(key, "kubernetes.io/secret/", strlen("kubernetes.io/secret/")) != 0);
        }
        volume_request_release(&request);
        free(text);
        return 0;
}
