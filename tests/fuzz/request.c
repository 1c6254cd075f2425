/* SPDX-License-Identifier: Apache-2.0 */
/* A request of any mount helper: the first byte chooses which. What is taken is planned, too. */
#include "fuzz.h"

#include "inject/plan.h"
#include "inject/request/request_parse.h"
#include "inject/request/source.h"

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
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct plan plans[REQUEST_ENTRIES_MAX];
        struct request request = {};
        struct error error = {};
        char *argv[] = { (char *)"program", NULL, NULL };
        size_t which;
        char *text;

        if (size == 0)
                return 0;
        which = data[0] % (sizeof kinds / sizeof kinds[0]);
        text = fuzz_text(data + 1, size - 1);
        argv[1] = text;
        if (strcmp(text, "-") != 0) {
                if (request_parse(&request, kinds[which].kind, kinds[which].sources, 2, argv, &error) < 0) {
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
