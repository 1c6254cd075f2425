/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_report.h - the JSON reports of lvm2 (vgs, pvs and lvs with --reportformat json --units b --nosuffix). A field
 * that is missing, or of another type, is 0, false or "".
 */
#ifndef FLEXGRAFT_BLOCK_LVM_REPORT_H
#define FLEXGRAFT_BLOCK_LVM_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LVM_NAME_MAX 128 /* terminated; lvm(8), "VALID NAMES" */
#define LVM_TAG "flexgraft"
#define LVM_UUID_SIZE 40    /* terminated */
#define LVM_MODULES_MAX 128 /* terminated */

struct lvm_group {
        uint64_t size_bytes;
        uint64_t free_bytes;
        uint64_t extent_bytes;
        unsigned missing; /* disks that are not there: lvm changes nothing */
        bool ours;        /* it has the tag LVM_TAG */
};

struct lvm_volume {
        char name[LVM_NAME_MAX];
        uint64_t size_bytes;
        bool ours;                    /* it has the tag LVM_TAG */
        bool active;                  /* it has a device */
        bool open;                    /* the device is in use */
        bool public;                  /* not an internal part of another volume */
        bool has_snapshots;           /* which are removed with it: classic ones, not thin ones */
        bool is_snapshot;             /* such a one; its size is the room that it has for changes */
        bool invalid;                 /* a snapshot that had no room for a change; false: not, or not active */
        char origin[LVM_NAME_MAX];    /* what it is a snapshot of; "" */
        uint64_t origin_bytes;        /* size of what a snapshot shows */
        char type[32];                /* "linear", "raid1", "thin", "thin-pool", ... */
        char thin_pool[LVM_NAME_MAX]; /* its thin pool; "" */
        unsigned stripes;             /* disks or images that it is spread over */
        unsigned data_stripes;        /* without parity */
        unsigned copies;              /* of its data */
        bool zeroes;                  /* a thin pool that zeroes new blocks */
        char uuid[LVM_UUID_SIZE];
        char modules[LVM_MODULES_MAX]; /* targets of the device mapper that it needs, with commas; "" */
};

/* lvm_report_part() - of a report of fullreport, what vgs, pvs and lvs say of one group; owned by the caller. */
json_t *lvm_report_part(const json_t *all, const char *group);

/*
 * lvm_report_group() - the first volume group of a report of vgs; false: it has none. Where the report has its disks, only
 * room on those counts as free on which lvm may make something.
 */
bool lvm_report_group(const json_t *report, struct lvm_group *ret_group);

/* lvm_report_disk_group() - the volume group of the first disk of a report of pvs, or "". LVM_NAME_MAX bytes. */
void lvm_report_disk_group(const json_t *report, char *ret_group);

/*
 * lvm_report_free_bytes() - pv_free of at most count disks of a report of pvs, of those on which lvm may make something. Returns
 * how many these are.
 */
int lvm_report_free_bytes(const json_t *report, uint64_t *ret_bytes, int count);

/*
 * lvm_report_each() - call function() for every volume of a report of lvs, until it returns other than 0: the result.
 */
typedef int lvm_function(const struct lvm_volume *volume, void *argument, struct error *error);
int lvm_report_each(const json_t *report, lvm_function *function, void *argument, struct error *error);

#endif
