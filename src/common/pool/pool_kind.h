/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_kind.h - the kinds of pool: one row and one file each. What is in a pool has an id, which the pool chooses.
 */
#ifndef FLEXGRAFT_POOL_POOL_KIND_H
#define FLEXGRAFT_POOL_POOL_KIND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/failure.h"
#include "base/need.h"
#include "pool/pool_words.h"
#include "pool/record.h"
#include "state/config.h"
#include "state/file_key.h"

struct pool {
        char name[POOL_NAME_MAX];
        const struct pool_kind *kind; /* NULL: its file is broken */
        char path[PATH_MAX];          /* loop: the directory of its images; directory: of its volumes */
        char region[64];              /* pmem: its identity, "0x..."; its name while that is not known */
        char volume_group[128];       /* lvm, and pmem in lvm mode; "" */
        unsigned max_percent;         /* how much it may use of what it is made of */
        struct {
                char server[256];
                char share[PATH_MAX];
                char sub_dir[PROVISION_ID_MAX]; /* may have ${pv.metadata.name} in it */
                char on_delete[8];
                char options[256]; /* of mounts, separated by commas */
                unsigned mode;     /* of new directories; 0: as they are made */
        } nfs;
        bool needs_quota; /* directory: no volume without a limit that the kernel keeps to */
        bool only_read;   /* a question about it writes nothing: neither to it nor to the state directory */
};

struct pool_measure {
        bool unknown; /* nobody knows total, available and largest */
        uint64_t total_bytes;
        uint64_t available_bytes;
        uint64_t largest_bytes;   /* of one volume */
        uint64_t alignment_bytes; /* what sizes are rounded up to */
        uint64_t minimum_bytes;   /* of one volume; what is less is made that large */
        uint64_t inodes;          /* of the filesystem that it is in; 0: it is in none, or that has no fixed number */
        uint64_t inodes_free;
        const char *problem; /* why no volume can be made, of whatever size; NULL: one can */
        int problem_errnum;
};

/* pool_measure_align() - a volume's size, rounded up as the pool needs it. */
static inline uint64_t pool_measure_align(const struct pool_measure *measure, uint64_t size_bytes)
{
        return (size_bytes + measure->alignment_bytes - 1) / measure->alignment_bytes * measure->alignment_bytes;
}

#define POOL_LOCATION_SIZE 160
#define POOL_LAYOUT_SIZE 192

/* Something that is in a pool. */
struct pool_item {
        char id[PROVISION_ID_MAX];
        char path[PATH_MAX]; /* where it is found on the node */
        uint64_t size_bytes;
        char layout[POOL_LAYOUT_SIZE];         /* how it is laid out, in the pool's words; "" */
        bool ours;                             /* flexgraft made it, as far as can be seen */
        bool limited;                          /* no_device: the filesystem keeps to its size; else size_bytes is 0 */
        uint64_t used_bytes;                   /* no_device, limited: what it has of it */
        char identity[PROVISION_IDENTITY_MAX]; /* tells it from another of the same id; "" */
        const char *problem;                   /* why its content is lost; NULL: it is not */
};

/* What a volume holds, opened for a copy from one pool to another. */
struct pool_content {
        int fd;
        uint64_t size_bytes;
        bool blank;                   /* what is not written is zeroes */
        bool filled;                  /* it is being written */
        char awake[PROVISION_ID_MAX]; /* what is active for that alone; "" nothing */
        bool shared;                  /* which others may have attached since, as the call has no lock of it */
};

typedef int pool_item_function(const struct pool_item *item, void *argument, struct error *error);

/* Parameters of volumes in every pool, as Kubernetes' provisioner names them; pools of type nfs use them. */
#define POOL_PARAMETER_PV "csi.storage.k8s.io/pv/name"
#define POOL_PARAMETER_PVC "csi.storage.k8s.io/pvc/name"
#define POOL_PARAMETER_NAMESPACE "csi.storage.k8s.io/pvc/namespace"

/* Functions return 0 or negative errno. Callers of those that change a pool hold the pool's lock. */
struct pool_kind {
        const char *type;            /* the word of its files */
        const char *mode;            /* of kinds that share a type: the word of this one; NULL: it does not share */
        const struct file_key *keys; /* of its files, besides those of every pool */
        const struct file_key *parameters; /* of new volumes; their values are strings */
        need_set needs;                    /* what the node must have for it, as host-check says */
        /* what it must have besides for volumes with such parameters (or NULL), each of which was checked; NULL: nothing */
        need_set (*parameter_needs)(const json_t *parameters);
        need_set mappable_needs;  /* likewise, for those that are always id-mappable; 0: the kernel maps them, or may */
        const struct hint *hints; /* what to do about failures of this kind alone; NULL: nothing */
        /* start and end its helper process, before privileges_drop(); NULL: it has none of its own */
        int (*begin)(int argc, char **argv, struct error *error);
        void (*end)(void);
        /* close what it keeps open between functions, which may wait for a server: in a worker. NULL: nothing */
        void (*close)(void);
        void (*allow)(void); /* its functions may do what pool_kinds_allow() says; NULL: they do no such thing */
        /* take its own keys from a file, each of which was checked. Returns NULL, or what is wrong with them
         * together */
        const char *(*read)(const json_t *file, struct pool *pool);
        /* add what the state directory knows of the pool; NULL: nothing */
        int (*recall)(const struct config *config, struct pool *pool, struct error *error);
        /* its lock was taken, or is given back: between these nobody else of flexgraft changes it; NULL: nothing */
        void (*hold)(void);
        void (*release)(void);
        /* its volumes are directories: they have no device, no filesystem of their own, and are not overwritten. What
         * they hold is removed by erase(), always */
        bool no_device;
        bool has_images; /* its volumes are files of its directory (pool_open()), of which sums are kept (pool/pool_sums.h) */
        bool remote;   /* look() asks a server; each() tells of what records say */
        bool unmarked; /* one cannot see whether flexgraft made it: item.ours is always true */
        /* where the pool is, the same for two pools of one location, whatever their names; POOL_LOCATION_SIZE bytes */
        int (*locate)(const struct config *config, const struct pool *pool, char *ret_location, struct error *error);
        /* where its disks are; NULL: as locate */
        int (*locate_disks)(const struct config *config, const struct pool *pool, char *ret_location,
                            struct error *error);
        /* how much is left for volumes with such parameters (an object of strings, or NULL) */
        int (*measure)(const struct config *config, const struct pool *pool, const json_t *parameters,
                       struct pool_measure *ret_measure, struct error *error);
        /* what the device of a volume of such a size has of it; NULL: all */
        uint64_t (*device_bytes)(const json_t *parameters, uint64_t size_bytes);
        /* the id of a new volume of this name; PROVISION_ID_MAX bytes */
        void (*choose_id)(const struct pool *pool, const char *name, char *ret_id);
        /* likewise, by what else its record says; NULL: choose_id() does. Errors: EINVAL; ENAMETOOLONG */
        int (*choose_directory)(const struct pool *pool, const struct provision_record *record, char *ret_id,
                                struct error *error);
        /* the identity of a new volume, chosen before it is made; NULL: it has one only then.
         * PROVISION_IDENTITY_MAX bytes */
        int (*choose_identity)(char *ret_identity, struct error *error);
        /* whether parameters, each of which was checked, go together; NULL: any do. Errors: EINVAL */
        int (*check_parameters)(const json_t *parameters, struct error *error);
        /* whether the layout of an existing disk is what such parameters (or NULL) mean; NULL: any is */
        bool (*fits)(const struct pool_item *item, const json_t *parameters);
        /* add what of the layout of an existing disk says how much room there is for it; NULL: nothing does */
        void (*note_layout)(const struct pool_item *item, json_t *parameters);
        /* ensure that it is there, with record->size_bytes, and blank where it is new. Gives: ret_item, as look(); or
         * nothing */
        int (*create)(const struct config *config, const struct pool *pool, const struct provision_record *record,
                      struct pool_item *ret_item, struct error *error);
        /* what has an id. Errors: ENOENT, without a message */
        int (*look)(const struct config *config, const struct pool *pool, const char *id, struct pool_item *ret_item,
                    struct error *error);
        /* that it is not in use; NULL: only the list of uses tells. Errors: EBUSY */
        int (*check_unused)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* that nothing would be removed with it; NULL: nothing ever is. Errors: EBUSY */
        int (*check_removable)(const struct config *config, const struct pool *pool, const char *id,
                               struct error *error);
        /* whether it is in use only until a process closes its device that has looked at it; NULL: never */
        bool (*is_looked_at)(const struct config *config, const struct pool *pool, const char *id);
        /* whether it is blank: 1 or 0 */
        int (*is_blank)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* whether what has the id is what a call for this very volume made on another node, which did not answer: a new
         * volume may be that; NULL: other nodes make nothing here */
        bool (*is_of_other_call)(const struct config *config, const struct pool *pool,
                                 const struct provision_record *record);
        /* remove what a deletion that was killed has left of a volume, perhaps on another node; what has its name stays.
         * Without the pool's lock. NULL: there is nothing */
        int (*discard_left)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* whether what has the id can be that very volume's alone, whichever node made it; NULL: never */
        bool (*is_one_everywhere)(const struct provision_record *record);
        /* have it keep whose it is, when no record tells it any more; NULL: it has no place for that */
        int (*keep_namespace)(const struct config *config, const struct pool *pool, const char *id,
                              const char *namespace, struct error *error);
        /* make it blank */
        int (*wipe)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* overwrite what the next user of its room could read, without the pool's lock, since it may take hours; NULL:
         * the next user can read nothing. begun: by an earlier call, which may have been killed */
        int (*erase)(const struct config *config, const struct pool *pool, const char *id, bool begun,
                     struct error *error);
        /* whether erase() has nothing to overwrite: 1 or 0; NULL: it always may have */
        int (*is_erased)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* whether another can have the content of this one by sharing its blocks, in a moment: 1 or 0. snapshot: it is
         * to be a snapshot, which is not written. NULL: there are no copies in such pools, and the next ones are NULL,
         * too */
        int (*can_share)(const struct config *config, const struct pool *pool, const char *id, bool snapshot,
                         struct error *error);
        /* parameters of copies, besides those of what they are made of: names and values in turn; NULL: none */
        const char *const *copy_parameters;
        /* as measure, for snapshots of volumes with such parameters: of what size these may be; NULL: as for volumes */
        int (*measure_snapshot)(const struct config *config, const struct pool *pool, const json_t *parameters,
                                struct pool_measure *ret_measure, struct error *error);
        /* make another that shares the content of this one, as its record says, in place of create() and copy(): who
         * writes meanwhile is kept waiting by the kernel. NULL: create() and copy() do it */
        int (*share)(const struct config *config, const struct pool *pool, const char *id,
                     const struct provision_record *record, struct error *error);
        /* what waits since a share() of this one was killed goes on, and what was made with the id to is whole, or can be
         * removed; NULL: nothing waits */
        int (*resume)(const struct config *config, const struct pool *pool, const char *id, const char *to,
                      struct error *error);
        /* give another, which create() made just now, the content of this one, by sharing or by copying */
        int (*copy)(const struct config *config, const struct pool *pool, const char *id, const char *to, bool shares,
                    struct error *error);
        /*
         * open what this one holds, which nobody uses, for a copy in another pool, or as such a copy, which create() made
         * just now; without the pool's lock. close_content() - the opposite. NULL: it has no copies in other pools
         */
        int (*open_content)(const struct config *config, const struct pool *pool, const char *id, bool write,
                            struct pool_content *ret_content, struct error *error);
        void (*close_content)(const struct config *config, const struct pool *pool, struct pool_content *content);
        /* it is on the disk; NULL: it is after copy() */
        int (*sync)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* put back the content of another, which stays; it keeps its size or has that of the other. With the pool's
         * lock; remove() removes what a killed call left, too. Gives: ret_torn, true where a failure left it with
         * neither content */
        int (*restore)(const struct config *config, const struct pool *pool, const char *id, const char *from,
                       bool shares, bool *ret_torn, struct error *error);
        /* what a killed restore() left is removed: restore() takes one step. NULL: it takes several, and no room; nobody
         * may use the volume before another restore() has ended it */
        int (*unrestore)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* remove what killed calls left of volumes that have no record any more; NULL: nothing */
        int (*tidy)(const struct config *config, const struct pool *pool, struct error *error);
        /* ensure that it is gone */
        int (*remove)(const struct config *config, const struct pool *pool, const char *id, struct error *error);
        /* call function() with each disk until it returns other than 0, which is the result */
        int (*each)(const struct config *config, const struct pool *pool, pool_item_function *function, void *argument,
                    struct error *error);
};

/* The kinds, each in pool_WORD.c. */
#define POOL_KIND_DECLARATION(word, parameters) extern const struct pool_kind pool_##word
POOL_TYPES(POOL_KIND_DECLARATION, ;, ;);
POOL_MODES(POOL_KIND_DECLARATION, ;)
#undef POOL_KIND_DECLARATION

/* pool_kinds - all of them; NULL ends it. The first of a type is the one without a mode. */
extern const struct pool_kind *const pool_kinds[];

/* pool_kind_has_images() - whether volumes of a record's pool_type are files of their pool's directory. */
bool pool_kind_has_images(const char *type);

/* pool_kind_hint() - what to do about a failure: from a row, each of which names operations of its own; else for all. */
const char *pool_kind_hint(const struct error *error);

/* A parameter, and an option of the driver: the volume is for containers in virtual machines. */
#define POOL_FOR_MACHINES "kataContainers"

/* pool_kind_common_parameters() - those of a volume's that every kind of pool has, a new object. NULL: no memory. */
json_t *pool_kind_common_parameters(const json_t *parameters);

/* pool_parameter_flag() - whether one that file_key_is_flag() is "true"; if it is missing: the value for that. */
bool pool_parameter_flag(const json_t *parameters, const char *name, bool missing);

/* pool_kind_is_of_claim() - whether a parameter is what Kubernetes' provisioner says of a claim. */
bool pool_kind_is_of_claim(const char *parameter);

/* pool_kinds_allow() - this program may connect to servers and mount their shares: its filter has the calls for it. */
void pool_kinds_allow(void);

/* pool_kind_check_parameters() - whether a volume with such parameters (or NULL) can be made. Errors: EINVAL. */
int pool_kind_check_parameters(const struct pool_kind *kind, const json_t *parameters, struct error *error);

/*
 * pool_kind_parameter_needs() - what the node must have for volumes with such parameters (or NULL), which
 * pool_kind_check_parameters() has checked, besides what the kind itself needs.
 */
need_set pool_kind_parameter_needs(const struct pool_kind *kind, const json_t *parameters);

/* pool_kind_check_machines() - that no volume without a device is to be for virtual machines. Errors: EINVAL. */
int pool_kind_check_machines(const struct pool_kind *kind, const json_t *parameters, struct error *error);

/* pool_kind_is_torn() - whether a restore was killed that another one has to end. */
bool pool_kind_is_torn(const struct provision_record *record);

/* pool_kind_is_one_everywhere() - whether what has a volume's id can be that very volume's alone, whichever node made it. */
bool pool_kind_is_one_everywhere(const struct pool_kind *kind, const struct provision_record *record);

/* pool_file() - the name of the file of a path that lies in the pool's directory itself; NULL: it does not. */
const char *pool_file(const struct pool *pool, const char *path);

#endif
