/* SPDX-License-Identifier: Apache-2.0 */
/* A request of any mount helper: the first byte chooses which. What is taken is planned, too. */
#include "fuzz.h"

#include "base/json.h"
#include "inject/plan.h"
#include "inject/request/request.h"
#include "inject/request/source.h"
#include "named/batch_begin.h"

/* A seed's first byte means its row. */
static const struct {
        enum request_kind kind;
        const struct source_kind *const *sources;
} kinds[] = {
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_bind, NULL } },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_block, NULL } },
        { REQUEST_MOUNT_REMOVE, source_kinds },
        { REQUEST_MOUNT_LIST, source_kinds },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_nfs, NULL } },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_tmpfs, NULL } },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_overlay, NULL } },
        { REQUEST_MOUNT_BATCH, source_kinds },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_container, NULL } },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_image, NULL } },
        { REQUEST_MOUNT, (const struct source_kind *const[]){ &source_volume, NULL } },
};

/* What json_text_may_have() says, without a parser, of each string that the parser finds. */
static void compare_strings(const char *text, const json_t *value)
{
        const char *key;
        const json_t *member;
        size_t i;

        if (json_string_length(value) > 0)
                fuzz_check(json_text_may_have(text, json_string_value(value)));
        json_array_foreach (value, i, member)
                compare_strings(text, member);
        json_object_foreach ((json_t *)value, key, member) {
                fuzz_check(key[0] == '\0' || json_text_may_have(text, key));
                compare_strings(text, member);
        }
}

/* What the strings show without a parser of what has to be started, the parser finds, too. */
static void compare_clear(const char *text, const struct request *request)
{
        static struct batch_asked asked;
        const bool batch = request->kind == REQUEST_MOUNT_BATCH;
        char name[VOLUME_NAME_MAX];
        bool remap;

        asked = (struct batch_asked){};
        if (batch && batch_is_clear(text, &remap)) {
                batch_asked_read(text, batch, &asked);
                fuzz_check(asked.count == 0 && !asked.all && (remap || !asked.remap));
        } else if (request->source_kind != NULL && strcmp(request->source_kind->word, source_volume.word) == 0 &&
                   batch_volume_is_clear(text, name)) {
                batch_asked_read(text, batch, &asked);
                fuzz_check(asked.count == 1 && !asked.all && !asked.replaces && strcmp(asked.names[0], name) == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct plan plans[REQUEST_ENTRIES_MAX];
        struct request request = {};
        struct error error = {};
        cleanup_json json_t *json = NULL;
        char *argv[] = { (char *)"program", NULL, NULL };
        size_t which;
        char *text;

        if (size == 0)
                return 0;
        which = data[0] % (sizeof kinds / sizeof kinds[0]);
        text = fuzz_text(data + 1, size - 1);
        argv[1] = text;
        if (json_text_parse(text, strlen(text), &json, &error) == 0)
                compare_strings(text, json);
        error = (struct error){};
        if (strcmp(text, "-") != 0) {
                if (request_parse(&request, kinds[which].kind, kinds[which].sources, 2, argv, &error) < 0) {
                        fuzz_printable(&error);
                        fuzz_check(strcmp(error.operation, OPERATION_PARSE) == 0);
                } else if (request.kind == REQUEST_MOUNT_BATCH)
                        plan_make_batch(plans, &request);
                else if (request.kind != REQUEST_MOUNT_LIST)
                        plan_make(plans, &request);
                if (error.errnum == 0)
                        compare_clear(text, &request);
        }
        request_release(&request);
        free(text);
        return 0;
}
