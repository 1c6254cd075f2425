/* SPDX-License-Identifier: Apache-2.0 */
/* A request in words of any mount helper, an argument a line: the first byte chooses which. What it says is parsed, too. */
#include "fuzz.h"

#include "base/json.h"
#include "base/words.h"
#include "inject/request/request.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"

#define ARGUMENTS_MAX 64

/* A seed's first byte means its row. */
static const struct {
        enum request_kind kind;
        const struct source_kind *const *sources;
        const struct key_table *keys;
} kinds[] = {
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_bind, NULL }, &source_bind_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_block, NULL }, &source_block_keys },
        { REQUEST_MOUNT_REMOVE, source_kinds, &request_remove_keys },
        { REQUEST_MOUNT_LIST, source_kinds, &request_list_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_nfs, NULL }, &source_nfs_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_tmpfs, NULL }, &source_tmpfs_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_overlay, NULL }, &source_overlay_keys },
        { REQUEST_MOUNT_BATCH, source_kinds, &request_batch_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_container, NULL }, &source_container_keys },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_image, NULL }, &source_image_keys },
};

static void parse(size_t which, const json_t *json)
{
        struct request request = {};
        struct error error = {};
        char *text = json_text_make(json);
        char *argv[] = { (char *)"program", text, NULL };

        fuzz_check(text != NULL);
        if (request_parse(&request, kinds[which].kind, kinds[which].sources, 2, argv, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
                fuzz_check(strncmp(error.reason, "invalid JSON at", strlen("invalid JSON at")) != 0);
        }
        request_release(&request);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct words words = { .program = "program", .programs = 1 };
        char *argv[ARGUMENTS_MAX + 1] = { (char *)"program" };
        struct error error = {};
        json_t *json = NULL;
        int argc = 1;
        size_t which;
        char *text;
        char *rest;

        if (size == 0)
                return 0;
        which = data[0] % (sizeof kinds / sizeof kinds[0]);
        words.table = kinds[which].keys;
        text = rest = fuzz_text(data + 1, size - 1);
        while (rest != NULL && argc < ARGUMENTS_MAX)
                argv[argc++] = strsep(&rest, "\n");
        if (words_take(&words, argc, argv, &json, &error) < 0) {
                fuzz_printable(&error);
                fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
        } else if (!json_is_true(
                           json_object_get(json, "wanted"))) /* what is wanted is read from this machine's containers */
                parse(which, json);
        json_decref(json);
        free(text);
        return 0;
}
