/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the kinds of mounts: how the source of each is found, and how a detached mount of it is made.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_H
#define FLEXGRAFT_INJECT_SOURCE_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/request.h"
#include "inject/step.h"

struct injection;
struct mount_record;
struct policy;

/* Whether the files of a kind of mount may be shown by remap-daemon, where the kernel cannot map their owners. */
enum source_remap {
        REMAP_NEVER,
        REMAP_ASKED,     /* with "ids": "remap" */
        REMAP_BY_ITSELF, /* also with "ids": "auto", where nothing else works: its program needs the helper process */
};

/*
 * One row per kind of mount, in a file of its own (inject/source_WORD.c); source_kinds lists them. Everything that is
 * not the same for all kinds is said here, and nowhere else but in the table of keys (inject/request_keys.c) and in
 * what its program may do (src/privileges/privilege_table.h).
 */
struct source_kind {
        const char *word;          /* "bind": the "type" of a batch's entry, and what a policy's "kinds" lists */
        enum request_kind request; /* the bit of its keys */

        /* an entry of an OCI configuration's "mounts" */
        const char *const *oci_types; /* those that mean this kind, ended by NULL; NULL: none */
        bool oci_others;              /* and any other type, of a filesystem, whose source is a device */
        bool oci_source;              /* the entry's "source" is the request's; else it says nothing */

        bool clones;       /* what is mounted is there: "recursive" has a meaning, a filesystem's options have none */
        bool of_container; /* the source is another container's: "from" and "to" */
        bool foreign;      /* its content may be a container's own work: nosuid and nodev are always locked */
        bool maps;         /* make() itself makes owners right, and says in record.id_mapping how */
        bool ownable;      /* make() can make a superblock that the container's user namespace owns */
        enum source_remap remap;
        enum step open_step; /* of its plan: how the source is found; STEP_NONE: there is nothing to find */
        enum step make_step; /* how the detached mount is made */
        const char *const
                *harmless_options; /* of its filesystem: a policy need not list them; ended by NULL; or NULL */

        /*
         * check() - what can be said of the request only once every key is known, and of this kind alone; fills in what
         * follows from it. May hand the request over to another kind. NULL: nothing. Errors: OPERATION_PARSE.
         */
        int (*check)(struct request *request, struct error *error);
        /* check_policy() - what a policy has to allow besides "kinds", "options" and "sources". NULL: nothing. EACCES. */
        int (*check_policy)(const struct request *request, const struct policy *policy, struct error *error);

        /* open() - find the source; fills directory, record.origin and what make() needs. NULL: with STEP_NONE. */
        int (*open)(struct injection *injection, struct error *error);
        /* make() - fill mount_fd; owned: with a superblock that the container's user namespace owns. */
        int (*make)(struct injection *injection, bool owned, struct error *error);
        /* allow() - open the device to the container, once the record is written. NULL: the container gets no device. */
        int (*allow)(struct injection *injection, struct error *error);
        /* settle() - take back from a replaced mount what only that needed, in the node's namespaces. NULL: nothing. */
        int (*settle)(struct injection *injection, const struct mount_record *record, struct error *error);
        /* undo() - take back what open() and make() changed for others to see, also if they did nothing. NULL: nothing. */
        int (*undo)(struct injection *injection, struct error *error);
};

extern const struct source_kind source_bind;      /* a file or directory of the node */
extern const struct source_kind source_block;     /* a filesystem on a block device of the node */
extern const struct source_kind source_container; /* a file or directory of another container */
extern const struct source_kind source_nfs;       /* an export of an NFS server */
extern const struct source_kind source_overlay;   /* an overlay of directories of the node */
extern const struct source_kind source_raw;       /* a block device itself: what source_block's check() hands over */
extern const struct source_kind source_tmpfs;     /* a fresh tmpfs */

/* source_kinds - all that a request can name, ended by NULL: for programs that take every kind (it links them all). */
extern const struct source_kind *const source_kinds[];

#endif
