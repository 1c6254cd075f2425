/* SPDX-License-Identifier: Apache-2.0 */
/* A request in words of any mount helper, an argument a line: the first byte chooses which. What it says is parsed, too. */
#include "fuzz.h"

#include "base/json.h"
#include "base/words.h"
#include "inject/request_keys.h"
#include "inject/request_parse.h"
#include "inject/source.h"

#define ARGUMENTS_MAX 64

static const enum request_kind kinds[] = { REQUEST_MOUNT_BIND,    REQUEST_MOUNT_BLOCK, REQUEST_MOUNT_REMOVE,
                                           REQUEST_MOUNT_LIST,    REQUEST_MOUNT_NFS,   REQUEST_MOUNT_TMPFS,
                                           REQUEST_MOUNT_OVERLAY, REQUEST_MOUNT_BATCH, REQUEST_MOUNT_CONTAINER,
                                           REQUEST_MOUNT_IMAGE };

static void parse(enum request_kind kind, const json_t *json)
{
        struct request request = {};
        struct error error = {};
        char *text = json_text_make(json);
        char *argv[] = { (char *)"program", text, NULL };

        fuzz_check(text != NULL);
        if (request_parse(&request, kind, source_kinds, 2, argv, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
                fuzz_check(strncmp(error.reason, "invalid JSON at", strlen("invalid JSON at")) != 0);
        }
        request_release(&request);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct words words = { .program = "program", .table = &request_keys };
        char *argv[ARGUMENTS_MAX + 1] = { (char *)"program" };
        struct error error = {};
        json_t *json = NULL;
        int argc = 1;
        char *text;
        char *rest;

        if (size == 0)
                return 0;
        words.programs = kinds[data[0] % (sizeof kinds / sizeof kinds[0])];
        text = rest = fuzz_text(data + 1, size - 1);
        while (rest != NULL && argc < ARGUMENTS_MAX)
                argv[argc++] = strsep(&rest, "\n");
        if (words_take(&words, argc, argv, &json, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
        } else
                parse((enum request_kind)words.programs, json);
        json_decref(json);
        free(text);
        return 0;
}
