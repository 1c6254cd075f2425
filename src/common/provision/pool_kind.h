/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_kind.h - the kinds of pool: one row and one file each. What is in a pool has an id, which the pool chooses.
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
        unsigned max_percent;         /* how much it may use of what it is made of */
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
        char layout[POOL_LAYOUT_SIZE];         /* how it is laid out, in the pool's words; "" */
        bool ours;                             /* flexgraft made it, as far as can be seen */
        char identity[PROVISION_IDENTITY_MAX]; /* tells it from another of the same id; "" */
};

typedef int pool_item_function(const struct pool_item *item, void *argument, struct error *error);

/* Functions return 0 or negative errno. Callers of those that change a pool hold the pool's lock. */
struct pool_kind {
        const char *type;            /* the word of its files */
        const char *mode;            /* of kinds that share a type: the word of this one; NULL: it does not share */
        const struct file_key *keys; /* of its files, besides those of every pool */
        const struct file_key *parameters; /* of new volumes; their values are strings */
        /* start and end its helper process, before privileges_drop(); NULL: it has none of its own */
        int (*begin)(int argc, char **argv, struct error *error);
        void (*end)(void);
        /* take its own keys from a file, each of which was checked. Returns NULL, or what is wrong with them
         * together */
        const char *(*read)(const json_t *file, struct pool *pool);
        bool unmarked; /* one cannot see whether flexgraft made it: item.ours is always true */
        /* where the pool is, the same for two pools of one place, whatever their names; POOL_PLACE_SIZE bytes */
        int (*place)(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);
        /* where its disks are; NULL: as place */
        int (*place_disks)(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);
        /* how much is left for volumes with such parameters (an object of strings, or NULL) */
        int (*measure)(const struct config *config, const struct pool *pool, const json_t *parameters,
                       struct pool_measure *ret_measure, struct error *error);
        /* the id of a new volume of this name; PROVISION_ID_MAX bytes */
        void (*choose_id)(const struct pool *pool, const char *name, char *ret_id);
        /* the identity of a new volume, chosen before it is made; NULL: it has one only then.
         * PROVISION_IDENTITY_MAX bytes */
        int (*choose_identity)(char *ret_identity, struct error *error);
        /* whether parameters, each of which was checked, go together; NULL: any do. Errors: EINVAL */
        int (*check_parameters)(const json_t *parameters, struct error *error);
        /* whether the layout of an existing disk is what such parameters (or NULL) mean; NULL: any is */
        bool (*fits)(const struct pool_item *item, const json_t *parameters);
        /* ensure that it is there, with record->size_bytes, and blank where it is new */
        int (*create)(const struct config *config, const struct pool *pool, const struct provision_record *record,
                      struct error *error);
        /* what has an id. Errors: ENOENT, without a message */
        int (*look)(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                    struct error *error);
        /* that it is not in use. Errors: EBUSY */
        int (*check_unused)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* whether it is blank: 1 or 0 */
        int (*is_blank)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* make it blank */
        int (*wipe)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* overwrite what the next user of its room could read, without the pool's lock, since it may take hours; NULL:
         * the next user can read nothing. begun: by an earlier call, which may have been killed */
        int (*erase)(const struct config *config, const struct pool *pool, const char *id, bool begun,
                     struct error *error);
        /* ensure that it is gone */
        int (*remove)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* call function() with each disk until it returns other than 0, which is the result */
        int (*each)(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                    struct error *error);
};

/* pool_loop - image files in a directory. */
extern const struct pool_kind pool_loop;

/* pool_lvm - logical volumes in a volume group. What flexgraft makes has the tag "flexgraft". */
extern const struct pool_kind pool_lvm;

/* pool_pmem - namespaces of persistent memory, one per volume and named after it. */
extern const struct pool_kind pool_pmem;

/* What the kinds of type pmem have in common: keys, parameters and place. */
extern const struct file_key pool_pmem_keys[];
extern const struct file_key pool_pmem_parameters[];
int pool_pmem_place(const struct config *config, const struct pool *pool, char *ret_place, struct error *error);

/*
 * pool_pmem_lvm - type pmem in mode lvm: namespaces named "flexgraft" are the disks of one volume group, the region's,
 * and each volume is a logical volume of it.
 *
 * The group is made, and grows to "maxPercent" of the region, when a volume is made. Parameters: "usage", as in mode
 * direct. Other namespaces of the region, and other volume groups, are not touched.
 */
extern const struct pool_kind pool_pmem_lvm;

/* pool_kinds - all of them; NULL ends it. The first of a type is the one without a mode. */
extern const struct pool_kind *const pool_kinds[];

/* pool_kind_check_parameters() - whether a volume with such parameters (or NULL) can be made. Errors: EINVAL. */
int pool_kind_check_parameters(const struct pool_kind *kind, const json_t *parameters, struct error *error);

#endif
