/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem.h - regions of persistent memory and their namespaces.
 *
 * libndctl exists as a shared library only, and these programs are static. So another program uses it, pmem-namespaces,
 * which an exec helper runs (process/exec_helper).
 */
#ifndef FLEXGRAFT_BLOCK_PMEM_H
#define FLEXGRAFT_BLOCK_PMEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "block/device.h"

#define PMEM_NAME_MAX 64 /* terminated; the size of a label's name (include/linux/nd.h, NSLABEL_NAME_LEN) */

#define PMEM_EXTENTS_MAX 65
#define PMEM_DISK "flexgraft"          /* the name of namespaces that are disks of a volume group */
#define PMEM_MAKING "flexgraft-making" /* the name of a namespace until it is complete */

#define PMEM_IDENTITY_MAX 19 /* terminated */

struct pmem_region {
        char identity[PMEM_IDENTITY_MAX]; /* "0x2468ac00123456": it keeps it when it is renumbered; "" it has none */
        bool has_labels;                  /* without them it is one namespace, and no other can be made */
        bool can_have_labels;             /* its modules have room for them */
        uint64_t size_bytes;
        uint64_t available_bytes;
        uint64_t largest_bytes;             /* in one piece */
        uint64_t align_bytes;               /* of namespaces; counts interleave ways */
        uint64_t extents[PMEM_EXTENTS_MAX]; /* free, by address: sizes in bytes */
        size_t extents_count;
};

struct pmem_namespace {
        char device_name[PMEM_NAME_MAX]; /* "namespace0.0" */
        char name[PMEM_NAME_MAX];        /* given by its creator; "" */
        char mode[16];                   /* "fsdax", "sector", "devdax", "raw" */
        char device[64];                 /* "/dev/pmem0"; "" */
        char uuid[40];
        uint64_t size_bytes; /* of the region */
};

/* pmem_is_reserved() - whether a name is PMEM_DISK or PMEM_MAKING: no volume has it. */
bool pmem_is_reserved(const char *name);

/* pmem_begin(), pmem_end() - start the helper, before privileges_drop(); kill it. */
int pmem_begin(int argc, char **argv, struct error *error);
void pmem_end(void);
bool pmem_end_ordered(void); /* as lvm_end_ordered() */

/* The following need the helper. Errors, besides their own: those of exec_json_run(). */

/*
 * pmem_look() - a region, unless ret_region is NULL, and function(), unless that is, for each of its namespaces, until it
 * returns other than 0, which is the result. A region is named by its device, "region0", or by its identity. Errors:
 * ENODEV the region does not exist or is disabled; so for the following functions.
 */
typedef int pmem_function(const struct pmem_namespace *namespace, void *argument, struct error *error);
int pmem_look(const char *region, struct pmem_region *ret_region, pmem_function *function, void *argument,
              struct error *error);

/* pmem_find() - a namespace by its given name or, if it has none, by its device name. Not one with a reserved name.
 * Errors: ENOENT, without filling error; ENOTUNIQ. */
int pmem_find(const char *region, const char *name, struct pmem_namespace *ret_namespace, struct error *error);

/*
 * pmem_usable_bytes() - the size of the device of an fsdax namespace: less than the namespace
 * (docs/KERNEL.md#persistent-memory).
 */
uint64_t pmem_usable_bytes(uint64_t size_bytes);

/*
 * pmem_find_device() - Errors: those of block_device_find(); ENODEV the namespace has none; ESTALE its path leads to
 * another device.
 */
int pmem_find_device(const struct pmem_namespace *namespace, struct block_device *ret_device, struct error *error);

/* pmem_wait_for() - the same, waiting until the device appears. Errors: ENOENT or ENXIO it did not appear. */
int pmem_wait_for(const struct pmem_namespace *namespace, unsigned timeout_seconds, struct block_device *ret_device,
                  struct error *error);

/* pmem_create() - mode: "fsdax" or "sector". Signatures on that memory are wiped. The caller of this, and of
 * pmem_tidy(), holds a lock of the region. */
int pmem_create(const char *region, const char *name, uint64_t size_bytes, const char *mode, const char *uuid,
                struct error *error);

/* pmem_destroy() - by its device name. If it does not exist, that is a success; if it is in use, an error. */
int pmem_destroy(const char *device_name, struct error *error);

/* pmem_lay_open() - make a namespace raw, by its device name: its mode is removed, its content stays. It must not be in
 * use. */
int pmem_lay_open(const char *device_name, struct error *error);

/* pmem_tidy() - destroy what a killed pmem_create() left. */
int pmem_tidy(const char *region, struct error *error);

#endif
