/* SPDX-License-Identifier: Apache-2.0 */
/* What kubelet hands to a verb: the first byte chooses the verb, a line is an argument. */
#include "fuzz.h"

#include "volume/exec_helpers.h"
#include "volume/kinds.h"
#include "volume/request.h"

/* What the strings show without a parser, the parser finds, too: a type that runs nothing for the verb. */
static void compare_clear(const struct volume_request *request, enum verb verb)
{
        struct volume_signs signs;
        struct error ignored;

        if (volume_kind_read(request, /* of_driver= */ NULL, &signs, &ignored) == 0)
                fuzz_check(signs.requested != NULL && volume_exec_helpers_of(signs.requested, verb) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct volume_request request;
        struct error error = {};
        char *argv[8] = { (char *)"verb" };
        int argc = 1;
        bool clear;
        char *text;
        char *rest;

        if (size == 0)
                return 0;
        text = rest = fuzz_text(data + 1, size - 1);
        while (argc < 7 && (argv[argc] = strsep(&rest, "\n")) != NULL && strcmp(argv[argc], "-") != 0)
                argc++;
        clear = volume_exec_helpers_clearly_none((enum verb)(data[0] % VERBS), argc, argv);
        request = (struct volume_request){};
        if (volume_request_parse(&request, (enum verb)(data[0] % VERBS), argc, argv, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
        } else if (request.options != NULL) {
                const char *key;
                json_t *value;

                if (clear)
                        compare_clear(&request, request.verb);
                json_object_foreach (request.options, key, value)
                        fuzz_check(strncmp(key, "kubernetes.io/secret/", strlen("kubernetes.io/secret/")) != 0);
        }
        volume_request_release(&request);
        free(text);
        return 0;
}
