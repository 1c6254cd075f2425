/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_kind.h - what a type of pool can do. What is in a pool has an id there, which is the pool's to choose.
 */
#ifndef FLEXGRAFT_PROVISION_POOL_KIND_H
#define FLEXGRAFT_PROVISION_POOL_KIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "provision/record.h"
#include "state/config.h"
#include "state/file_key.h"

struct pool {
        char name[POOL_NAME_MAX];
        const struct pool_kind *kind; /* NULL: its file is broken */
        char path[PATH_MAX];          /* loop: the directory of its images */
        char region[64];              /* pmem */
        char volume_group[128];       /* lvm, and pmem in lvm mode; "" */
        unsigned max_percent;         /* how much of what it is made of it may use */
};

struct pool_measure {
        uint64_t total_bytes;
        uint64_t available_bytes;
        uint64_t largest_bytes;   /* of one volume */
        uint64_t alignment_bytes; /* what sizes are rounded up to */
        uint64_t minimum_bytes;   /* of one volume; what is less is made that large */
};

#define POOL_PLACE_SIZE 160
#define POOL_LAYOUT_SIZE 192

/* Something that is in a pool. */
struct pool_item {
        char id[PROVISION_ID_MAX];
        char path[PATH_MAX]; /* where it is found on the node */
        uint64_t size_bytes;
        char layout[POOL_LAYOUT_SIZE];         /* how it lies there, in the pool's words; "" */
        bool ours;                             /* it looks like something that flexgraft made */
        char identity[PROVISION_IDENTITY_MAX]; /* what tells it from another of that id; "" */
};

typedef int pool_item_function(const struct pool_item *item, void *argument, struct error *error);

/* Functions return 0 or negative errno. Whoever calls one that changes a pool holds the pool's lock. */
struct pool_kind {
        const char *type;            /* the word of its files */
        const char *mode;            /* of kinds that share a type: the word of this one; NULL: it does not share */
        const struct file_key *keys; /* of its files, besides those of every pool */
        /* start what runs its programs, before privileges_drop(), and end it; NULL: another kind's does, or none */
        int (*begin)(int argc, char **argv, struct error *error);
        void (*end)(void);
        /* take what its own keys say, each of which was checked; in words what is wrong with them together, or NULL */
        const char *(*read)(const json_t *file, struct pool *pool);
        bool unmarked; /* nothing there tells whether flexgraft made it: item.ours is always true */
        /* what tells the pool from others, whatever their names: two of one directory are one; POOL_PLACE_SIZE bytes */
        int (*place)(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);
        /* what tells its disks from others'; NULL: as place */
        int (*place_disks)(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);
        /* how much is left for volumes with such parameters (an object of strings, or NULL) */
        int (*measure)(const struct config *config, const struct pool *pool, const json_t *parameters,
                       struct pool_measure *ret_measure, struct error *error);
        /* what the volume of a name is called there; PROVISION_ID_MAX bytes */
        void (*choose_id)(const struct pool *pool, const char *name, char *ret_id);
        /* what a new volume is told by, before it is made; NULL: only then is it known. PROVISION_IDENTITY_MAX bytes */
        int (*choose_identity)(char *ret_identity, struct error *error);
        /* whether such a thing can be made, in words if not: EINVAL */
        int (*check_parameters)(const json_t *parameters, struct error *error);
        /* whether something that is there already lies as such parameters (or NULL) ask for; NULL: it does not matter
         */
        bool (*fits)(const struct pool_item *item, const json_t *parameters);
        /* ensure that it is there, of record->size_bytes, and empty where it was not there before */
        int (*create)(const struct config *config, const struct pool *pool, const struct provision_record *record,
                      struct error *error);
        /* what an id is. Errors: ENOENT, without words */
        int (*look)(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                    struct error *error);
        /* that nobody uses it. Errors: EBUSY */
        int (*check_unused)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* whether there is nothing on it: 1 or 0 */
        int (*is_blank)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* take everything away that is on it */
        int (*wipe)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* overwrite what whoever gets its room next could read, without the pool's lock: it may take hours; NULL:
         * nobody could. begun: by an earlier call, which was perhaps killed at it */
        int (*erase)(const struct config *config, const struct pool *pool, const char *id, bool begun,
                     struct error *error);
        /* ensure that it is gone */
        int (*remove)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* everything in the pool that could be a volume, until function() answers other than 0, which is the result */
        int (*each)(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                    struct error *error);
};

/*
 * pool_loop - image files in a directory. Parameters: "preallocate": "true" (the default: what a volume was promised is
 * its own) or "false" (a sparse file, counted as if it were full).
 */
extern const struct pool_kind pool_loop;

/*
 * pool_lvm - logical volumes in a volume group. What is made carries the tag "flexgraft".
 *
 * Parameters, as lvcreate(8) has them: "type" linear (default), striped, mirror, raid1, raid5, raid6, raid10 or thin;
 * "stripes", "mirrors", "stripesize" (KiB); "thinpool", for thin: thin volumes together never get more than their thin
 * pool has.
 */
extern const struct pool_kind pool_lvm;

/*
 * pool_pmem - namespaces of persistent memory, one per volume and named after it.
 *
 * Parameters: "usage" AppDirect (default: mode fsdax, what is mapped with DAX is the memory itself) or FileIO (mode
 * sector: no torn sectors, and no DAX).
 */
extern const struct pool_kind pool_pmem;

/* What the kinds of type pmem have in common: keys, place and check_parameters. */
extern const struct file_key pool_pmem_keys[];
int pool_pmem_place(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);
int pool_pmem_check_parameters(const json_t *parameters, struct error *error);

/*
 * pool_pmem_lvm - type pmem in mode lvm: namespaces named "flexgraft" are the disks of one volume group, the region's,
 * and each volume is a logical volume of it.
 *
 * The group is made, and grows to "maxPercent" of the region, when a volume is made. Parameters: "usage", as in mode
 * direct. Other namespaces of the region, and other volume groups, are left alone.
 */
extern const struct pool_kind pool_pmem_lvm;

/* pool_kinds - all of them; NULL ends it. The first of a type is the one without a mode. */
extern const struct pool_kind *const pool_kinds[];

#endif
