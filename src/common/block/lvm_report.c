/* SPDX-License-Identifier: Apache-2.0 */
#include "block/lvm_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* The rows of a report: {"report":[{KIND:[...]}]}. */
static const json_t *rows_of(const json_t *report, const char *kind)
{
        return json_object_get(json_array_get(json_object_get(report, "report"), 0), kind);
}

static uint64_t number_of(const json_t *row, const char *field)
{
        return strtoull(json_member_text(row, field), NULL, 10);
}

static bool is_ours(const char *tags)
{
        for (const char *tag = tags; *tag != '\0';) {
                size_t length = strcspn(tag, ",");

                if (length == strlen(LVM_TAG) && strncmp(tag, LVM_TAG, length) == 0)
                        return true;
                tag += length + (tag[length] == ',' ? 1 : 0);
        }
        return false;
}

json_t *lvm_report_part(const json_t *all, const char *group)
{
        const json_t *one;
        size_t i;

        json_array_foreach (json_object_get(all, "report"), i, one) {
                const json_t *name = json_object_get(json_array_get(json_object_get(one, "vg"), 0), "vg_name");

                if (json_is_string(name) && strcmp(json_string_value(name), group) == 0)
                        return json_pack("{s:[{s:O?, s:O?, s:O?}]}", "report", "vg", json_object_get(one, "vg"), "pv",
                                         json_object_get(one, "pv"), "lv", json_object_get(one, "seg"));
        }
        return json_pack("{s:[]}", "report");
}

/* lvm makes nothing on others, and vg_free counts them all. */
static bool can_allocate(const json_t *disk)
{
        return strcmp(json_member_text(disk, "pv_allocatable"), "allocatable") == 0 &&
               json_member_text(disk, "pv_missing")[0] == '\0';
}

bool lvm_report_group(const json_t *report, struct lvm_group *ret_group)
{
        const json_t *row = json_array_get(rows_of(report, "vg"), 0);
        const json_t *disks = rows_of(report, "pv");
        const json_t *disk;
        size_t i;

        *ret_group = (struct lvm_group){ .size_bytes = number_of(row, "vg_size"),
                                         .free_bytes = number_of(row, "vg_free"),
                                         .extent_bytes = number_of(row, "vg_extent_size"),
                                         .missing = (unsigned)number_of(row, "vg_missing_pv_count"),
                                         .ours = is_ours(json_member_text(row, "vg_tags")) };
        if (disks != NULL)
                ret_group->free_bytes = 0;
        json_array_foreach (disks, i, disk)
                if (can_allocate(disk))
                        ret_group->free_bytes += number_of(disk, "pv_free");
        return row != NULL;
}

void lvm_report_disk_group(const json_t *report, char *ret_group)
{
        (void)text_copy(ret_group, LVM_NAME_MAX, json_member_text(json_array_get(rows_of(report, "pv"), 0), "vg_name"));
}

int lvm_report_free_bytes(const json_t *report, uint64_t *ret_bytes, int count)
{
        const json_t *row;
        int found = 0;
        size_t i;

        json_array_foreach (rows_of(report, "pv"), i, row)
                if (can_allocate(row)) {
                        if (found < count)
                                ret_bytes[found] = number_of(row, "pv_free");
                        found++;
                }
        return found;
}

static void take_row(const json_t *row, struct lvm_volume *ret_volume)
{
        const char *role = json_member_text(row, "lv_role");

        *ret_volume =
                (struct lvm_volume){ .size_bytes = number_of(row, "lv_size"),
                                     .ours = is_ours(json_member_text(row, "lv_tags")),
                                     .active = strcmp(json_member_text(row, "lv_active"), "active") == 0,
                                     .open = strcmp(json_member_text(row, "lv_device_open"), "open") == 0,
                                     .public = strstr(role, "public") != NULL,
                                     .has_snapshots = strstr(role, "thickorigin") != NULL,
                                     .is_snapshot = strstr(role, "thicksnapshot") != NULL,
                                     .invalid = text_starts(json_member_text(row, "lv_snapshot_invalid"), "snapshot"),
                                     .origin_bytes = number_of(row, "origin_size"),
                                     .stripes = (unsigned)number_of(row, "stripes"),
                                     .data_stripes = (unsigned)number_of(row, "data_stripes"),
                                     .copies = (unsigned)number_of(row, "data_copies"),
                                     .zeroes = strcmp(json_member_text(row, "zero"), "zero") == 0 };
        (void)text_copy(ret_volume->name, sizeof ret_volume->name, json_member_text(row, "lv_name"));
        (void)text_copy(ret_volume->origin, sizeof ret_volume->origin, json_member_text(row, "origin"));
        (void)text_copy(ret_volume->uuid, sizeof ret_volume->uuid, json_member_text(row, "lv_uuid"));
        (void)text_copy(ret_volume->type, sizeof ret_volume->type, json_member_text(row, "segtype"));
        (void)text_copy(ret_volume->modules, sizeof ret_volume->modules, json_member_text(row, "lv_modules"));
        (void)text_copy(ret_volume->thin_pool, sizeof ret_volume->thin_pool, json_member_text(row, "pool_lv"));
}

int lvm_report_each(const json_t *report, lvm_function *function, void *argument, struct error *error)
{
        const char *last = "";
        const json_t *row;
        size_t i;

        json_array_foreach (rows_of(report, "lv"), i, row) {
                struct lvm_volume volume;
                int r;

                if (strcmp(json_member_text(row, "lv_name"), last) == 0)
                        continue; /* a volume has a row for each of its segments, all with its whole size */
                last = json_member_text(row, "lv_name");
                take_row(row, &volume);
                if ((r = function(&volume, argument, error)) != 0)
                        return r;
        }
        return 0;
}
