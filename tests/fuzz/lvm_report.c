/* SPDX-License-Identifier: Apache-2.0 */
/* What lvm's vgs, pvs and lvs report as JSON. Names and tags on disks that come from elsewhere are whatever was written there. */
#include "fuzz.h"

#include <jansson.h>

#include "block/lvm_report.h"

static int check(const struct lvm_volume *volume, void *argument, struct error *error)
{
        (void)argument;
        (void)error;
        fuzz_check(strlen(volume->name) < sizeof volume->name && strlen(volume->type) < sizeof volume->type);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = fuzz_text(data, size);
        json_t *report = json_loads(text, 0, NULL);
        struct lvm_group group;
        struct error error = {};
        char name[LVM_NAME_MAX];
        uint64_t free_bytes[8];

        if (report != NULL) {
                (void)lvm_report_group(report, &group);
                lvm_report_disk_group(report, name);
                fuzz_check(strlen(name) < sizeof name);
                (void)lvm_report_free_bytes(report, free_bytes, 8);
                (void)lvm_report_each(report, check, NULL, &error);
                json_decref(lvm_report_part(report, "vg"));
        }
        json_decref(report);
        free(text);
        return 0;
}
