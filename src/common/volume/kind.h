/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind.h - a kind of volume: everything that the driver knows about it, in one row.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_H
#define FLEXGRAFT_VOLUME_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/need.h"
#include "volume/kind_words.h"

struct provision_record;
struct volume_call;
struct volume_request;

/* How the value of an option is written. Numbers and booleans may be strings, too: kubelet passes only strings. */
enum volume_option_type {
        VOLUME_OPTION_STRING,
        VOLUME_OPTION_BOOLEAN,
        VOLUME_OPTION_SIZE, /* a number from 1, or with k, m, g, t (Ki, Mi, Gi, Ti) */
};

/* An array of these ends with one whose key is NULL. */
struct volume_option {
        const char *key;
        const char *fallback; /* what holds without it; NULL: nothing */
        const char *help;     /* one line */
        enum volume_option_type type;
        bool locates;  /* it says which volume of a pool is meant; without it the volume's name does */
        bool profiled; /* a profile says it: it is for a volume without one */
        /* a parameter of volume-create, too: without it a volume is as its record says */
        bool kept;
        const char *made_with; /* kept: what volume-create does where the record does not say it; NULL: nothing */
};

/* Programs that run for a volume, each by a helper process that is started before privileges are dropped. */
enum {
        VOLUME_RUNS_FS_TOOLS = 1 << 0, /* mkfs, fsck, ... (block/fs_tools.h) */
        VOLUME_RUNS_LVM = 1 << 1,      /* (block/lvm.h) */
        VOLUME_RUNS_PMEM = 1 << 2,     /* (block/pmem.h) */
        VOLUME_RUNS_ALL = VOLUME_RUNS_FS_TOOLS | VOLUME_RUNS_LVM | VOLUME_RUNS_PMEM,
        VOLUME_RUNS_REMAP = 1 << 3, /* of a request, not of a kind (volume/mappable.h) */
};

/* Functions return 0 or negative errno; those that are NULL do not apply. */
struct volume_kind {
        const char *word;
        const char *const *harmless_options; /* mount options that policy.json need not list; NULL: none */
        bool has_device;
        bool owned;                          /* of volume/kind_words.h */
        const struct volume_option *options; /* besides those that all kinds have (volume/request.h) */
        /* whether options without a "type" can mean this kind alone; NULL: they never do */
        bool (*guess)(const struct volume_request *request);
        /* types of the pools that volume-create makes such volumes in, ended by NULL; NULL: it makes none */
        const char *const *pool_types;
        const struct hint *hints; /* what to do about failures of this kind alone; NULL: nothing */
        unsigned runs; /* VOLUME_RUNS_*: what attach, detach and expand, or mount and unmount without a device, run */
        unsigned grow_runs; /* what expand runs besides: a pool of such volumes asks it how far they can grow */

        need_set needs;      /* what the node must have for it, as host-check says */
        bool needs_policy;   /* policy.json must allow it: without a word there it is forbidden */
        bool node_device;    /* the device is the node's: any process of the node may use it at any time */
        bool any_filesystem; /* its filesystem is what the node, or a server, has: perhaps one that cannot be id-mapped */
        bool direct;         /* a filesystem that supports DAX is mounted with it */
        bool activates_early; /* attach activates the device before the record names it */
        bool tagged;          /* the kernel knows whose the device is: it is found without a record */
        bool has_image;       /* the device is over a file, the record's source, which can keep an attribute */
        bool makes_volumes; /* attach makes the volume where there is none, with the record of a volume of volume-create */
        /* a snapshot is taken of what is below the device: its filesystem is frozen for it. Others' own tools freeze */
        bool freezes;
        bool default_pool; /* without "pool" an id is in the pool "default"; else what volume-create made is meant */
        const char *id_suffix; /* what follows the volume's name in its id in a pool; NULL: nothing */
        /* boolean options; NULL: there is none: the one that gives the device all its blocks at once, and the one that
         * brings the mounts below the directory along */
        const char *allocates;
        const char *recurses;

        /* where in its image, which a virtual machine maps, the device begins; NULL: there is no machine, and it is at the
         * beginning */
        int (*find_offset)(int image_fd, uint64_t *ret_offset_bytes, struct error *error);
        /* ensure that the device is on this node, and that the record names it */
        int (*attach)(struct volume_call *call, struct error *error);
        /* whether it is: 1 or 0, by the kernel; only the record in memory is changed */
        int (*look)(struct volume_call *call, struct error *error);
        /* ensure that it is not; the record is removed afterwards */
        int (*detach)(struct volume_call *call, struct error *error);
        /* whether the options name another source than the record: 1, and PATH_MAX bytes that say which; or 0 */
        int (*names_other)(struct volume_call *call, char *ret_named, struct error *error);
        /* what tells the device, or what is behind it, from others; VOLUME_IDENTITY_SIZE bytes */
        int (*identify)(const struct volume_call *call, char *ret_identity, struct error *error);
        /* whether the device was certainly never written to: 1. NULL, or 0: its content must be read */
        int (*is_untouched)(const struct volume_call *call);
        /* the path of the device on another node */
        int (*predict)(struct volume_call *call, struct error *error);
        /* ensure that the device is at least this large; gives its size */
        int (*grow)(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error);

        /* attach() for the length of this call, without a record, which needs no detach(); a descriptor of the device,
         * owned by the caller; NULL: attach() and detach() do */
        int (*attach_held)(struct volume_call *call, struct error *error);

        /* without a device: its directory on the node, which no call deletes before this one ends; its fd (O_PATH),
         * owned by the caller; NULL: it has none */
        int (*open)(struct volume_call *call, struct error *error);
        /* without a device: a detached mount for request->dir; returns its fd, owned by the caller */
        int (*make)(struct volume_call *call, struct error *error);
        /*
         * without a device, of a volume of volume-create that is on nothing of the node, and that pods do not get by its
         * name: a detached mount of it; returns its fd, owned by the caller. Gives: record.read_only, set where it may
         * only be read. NULL: there are no such volumes
         */
        int (*mount_apart)(struct volume_call *call, const struct provision_record *made, struct error *error);
        /* make() itself asks for what the options wrap a volume with: of the device that it makes */
        bool makes_device;
        /* ensure that what make() made for a directory is gone; nothing is mounted there any more */
        int (*unmake)(const struct volume_call *call, const char *dir, struct error *error);
        /* whether make() may have made something for a directory */
        bool (*has_made)(const char *state_dir, const char *dir);

        /* the boolean option that makes a volume of another kind one of this kind, in place of "type" */
        const char *flag;
        /* a kind that wraps others: mountdevice, mount and unmountdevice, in place of volume_stage_attached() and
         * volume_publish_attached(), and after volume_unmount() */
        int (*stage)(struct volume_call *call, struct error *error);
        int (*publish)(struct volume_call *call, struct error *error);
        int (*unstage)(struct volume_call *call, struct error *error);
        /* stage() for a volume that is mounted once: a detached mount in place of one on request->dir, as make() gives */
        int (*wrap)(struct volume_call *call, struct error *error);
};

/* The kinds, each in kinds/kind_WORD.c, and what their rows begin with: VOLUME_KIND(loop). */
#define VOLUME_KIND_DECLARATION(word, has_device, owned, grows)                                                        \
        extern const struct volume_kind kind_##word;                                                                   \
        enum { VOLUME_HAS_DEVICE_##word = (has_device), VOLUME_IS_OWNED_##word = (owned) }
VOLUME_TYPES(VOLUME_KIND_DECLARATION, ;);
VOLUME_WRAPPERS(VOLUME_KIND_DECLARATION, ;)
#undef VOLUME_KIND_DECLARATION
#define VOLUME_KIND(name) .word = #name, .has_device = VOLUME_HAS_DEVICE_##name, .owned = VOLUME_IS_OWNED_##name

#endif
