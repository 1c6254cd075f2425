/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem.h - regions of persistent memory and the namespaces in them, by libndctl.
 *
 * libndctl is there for dynamic programs alone, so another program has it, pmem-namespaces (src/pmem/), run by a second
 * process that is started before this one gives its privileges away (process/exec_json.h).
 */
#ifndef FLEXGRAFT_BLOCK_PMEM_H
#define FLEXGRAFT_BLOCK_PMEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "block/device.h"

#define PMEM_NAME_MAX 64 /* terminated; a label has room for so many (include/linux/nd.h, NSLABEL_NAME_LEN) */

#define PMEM_EXTENTS_MAX 65
#define PMEM_DISK "flexgraft"          /* the name of each that is a disk of a volume group */
#define PMEM_MAKING "flexgraft-making" /* the name of what is being made, and is nobody's */

struct pmem_region {
        uint64_t size_bytes;
        uint64_t available_bytes;
        uint64_t largest_bytes;             /* in one piece */
        uint64_t align_bytes;               /* of namespaces; counts interleave ways */
        uint64_t extents[PMEM_EXTENTS_MAX]; /* where nothing is, each in bytes, by address */
        size_t extents_count;
};

struct pmem_namespace {
        char device_name[PMEM_NAME_MAX]; /* "namespace0.0" */
        char name[PMEM_NAME_MAX];        /* that it was given; "" */
        char mode[16];                   /* "fsdax", "sector", "devdax", "raw" */
        char device[64];                 /* "/dev/pmem0"; "" */
        char uuid[40];
        uint64_t size_bytes; /* of the region */
};

/* pmem_is_reserved() - a name that no volume has: of a volume group's disks, and of what is being made. */
bool pmem_is_reserved(const char *name);

/* pmem_begin() and pmem_end() - the runner; before privileges_drop(). */
int pmem_begin(int argc, char **argv, struct error *error);
void pmem_end(void);

/* What follows needs the runner. Errors, besides their own: those of exec_json_run(). */

/*
 * pmem_look() - a region, unless ret_region is NULL, and every namespace of it, until function() answers other than 0,
 * which is the result. Errors: ENODEV there is none, or it is disabled; also of what follows.
 */
typedef int pmem_function(const struct pmem_namespace *namespace, void *argument, struct error *error);
int pmem_look(const char *region, struct pmem_region *ret_region, pmem_function *function, void *argument,
              struct error *error);

/* pmem_find() - by its given name, or where it has none by its device's; none has one that is reserved. Errors: ENOENT,
 * without words; ENOTUNIQ. */
int pmem_find(const char *region, const char *name, struct pmem_namespace *ret_namespace, struct error *error);

/*
 * pmem_usable_bytes() - how large the device of an fsdax namespace is. At its beginning the kernel keeps 64 bytes for
 * each page and 8 KiB, in whole huge pages (drivers/nvdimm/pfn_devs.c, nd_pfn_init()).
 */
uint64_t pmem_usable_bytes(uint64_t size_bytes);

/*
 * pmem_find_device() - Errors: those of block_device_find(); ENODEV the namespace has none; ESTALE what is at its path
 * is another.
 */
int pmem_find_device(const struct pmem_namespace *namespace, struct block_device *ret_device, struct error *error);

/* pmem_wait_for() - the same, of one that may be a moment late. Errors: ENOENT or ENXIO it did not appear. */
int pmem_wait_for(const struct pmem_namespace *namespace, unsigned timeout_seconds, struct block_device *ret_device,
                  struct error *error);

/* pmem_create() - mode: "fsdax" or "sector". What of signatures was on that memory is wiped. Whoever calls this, or
 * pmem_tidy(), holds a lock of the region. */
int pmem_create(const char *region, const char *name, uint64_t size_bytes, const char *mode, const char *uuid,
                struct error *error);

/* pmem_destroy() - by its device's name. Gone already is a success; one that somebody has open is refused. */
int pmem_destroy(const char *device_name, struct error *error);

/* pmem_lay_open() - take off the mode that a namespace has, by its device's name: it is memory and nothing else, and
 * what is on it stays. One that somebody has open is refused. */
int pmem_lay_open(const char *device_name, struct error *error);

/* pmem_tidy() - take away what a pmem_create() that was killed left. */
int pmem_tidy(const char *region, struct error *error);

#endif
