/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the kinds of mounts: how each finds its source and makes a detached mount of it; one row per kind.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_SOURCE_H
#define FLEXGRAFT_INJECT_REQUEST_SOURCE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/failure.h"
#include "base/need.h"
#include "inject/request/request.h"

struct injection;
struct mount_record;
struct key_table;
struct policy;

#define SOURCE_IDENTITY_SIZE 64 /* terminated */

/* Whether remap-daemon (daemon/remap.h) may serve a kind of mount. */
enum source_remap {
        REMAP_NEVER,
        REMAP_ASKED,    /* with "ids": "remap", or "fallback": "remap" */
        REMAP_FALLBACK, /* also where "fallback" is not said: its program needs the helper process */
};

/*
 * A kind of mount: one row, in a file of its own (inject/kinds/source_NAME.c). Whatever differs between kinds is in
 * the row; only the privileges of its program, if it has one, are elsewhere, in src/privileges/privilege_table.h.
 */
struct source_kind {
        const char *word; /* "bind": the "type" of an entry of mount-batch, and a word of a policy's "kinds" */
        const struct key_table *keys; /* of its requests; NULL: another kind's check() selects this one */

        /* Entries of an OCI configuration's "mounts": */
        const char *const *oci_types;   /* "type"s that mean this kind, ended by NULL; NULL: none */
        const char *const *oci_options; /* "options" that mean it, whatever the "type" is; likewise */
        bool oci_others;                /* a "type" of no kind means this one if "source" is a device */
        const char *oci_source;         /* the key that "source" means; NULL: it is ignored, as with tmpfs */

        bool clones;       /* the mount is a clone of an existing one: may be recursive, takes no filesystem options */
        bool of_container; /* the source is another container's: "from" and "to" */
        bool close_waits; /* the last descriptor of a mount that is not placed may be a server's, which does not answer */
        bool foreign;     /* a container may have written its content: nosuid and nodev are always locked */
        bool shared;      /* others write through its superblock: read-only, it is locked with all that is set */
        bool maps;        /* make() maps the owners itself, and sets record.id_mapping; one that only may, says so */
        bool switches;    /* it may replace a volume by name, and replaces only with no moment without a mount */
        bool fresh;       /* it has no owners from before: the mount is made with ids of the container */
        bool ownable;     /* make() can create a superblock that the container's user namespace owns */
        enum source_remap remap;
        const char *open_text;               /* what open() does, in words */
        const char *make_text;               /* what make() does */
        const char *make_undo;               /* how that is undone; NULL: the mount is closed */
        const char *const *harmless_options; /* options that a policy need not list, ended by NULL; NULL: none */
        need_set needs;                      /* what the node must have for it, as host-check says */
        const struct hint *hints;            /* what to do about failures of this kind alone; NULL: nothing */

        /*
         * check() - the rules of this kind that need all keys of the request; sets what follows from them, even
         * request.source_kind. NULL: no such rules. Errors: OPERATION_PARSE.
         */
        int (*check)(struct request *request, struct error *error);
        /* check_policy() - rules besides "kinds", "options" and "sources". NULL: none. Errors: EACCES. */
        int (*check_policy)(const struct request *request, const struct policy *policy, struct error *error);

        /*
         * hold() - take what is locked before all mounts. Called for all mounts of a call once their containers are
         * pinned, in the order of their sources, so that two calls cannot deadlock. like: one with this function and
         * source that has it already; NULL: none. NULL: nothing is locked.
         */
        int (*hold)(struct injection *injection, const struct injection *like, struct error *error);
        /*
         * open() - find the source; changes nothing. Sets directory, record.origin and what make() needs. NULL: there
         * is nothing to find.
         */
        int (*open)(struct injection *injection, struct error *error);
        /* make() - set mount_fd; owned: with a superblock that the container's user namespace owns. */
        int (*make)(struct injection *injection, bool owned, struct error *error);
        /*
         * check_recorded() - what make() found before others saw the record, once more when they do: of two calls at
         * once, or two entries of a batch, at most one goes on. NULL: nothing.
         */
        int (*check_recorded)(struct injection *injection, struct error *error);
        /* allow() - let the container open the device; runs after the record is written. NULL: there is no device. */
        int (*allow)(struct injection *injection, struct error *error);
        /*
         * identify() - what tells the source from another one that has its name later, in SOURCE_IDENTITY_SIZE bytes:
         * "persist" keeps it. Runs after open(). NULL: the name is enough.
         */
        int (*identify)(const struct injection *injection, char *ret_identity, struct error *error);
        /*
         * settle() - take back access that only a replaced mount needed; runs in the node's namespaces. NULL: nothing.
         */
        int (*settle)(struct injection *injection, const struct mount_record *record, struct error *error);
        /* undo() - undo visible changes of open() and make(); is called even if they changed nothing. NULL: nothing. */
        int (*undo)(struct injection *injection, struct error *error);
        int undo_ms; /* what undo() may take; 0: as little as any */
        /*
         * release() - close what open() keeps besides the injection's own descriptors; after undo(), in the program
         * itself: a worker that hangs has all descriptors too, and with them locks. NULL: nothing.
         */
        void (*release)(struct injection *injection);
};

/* What several kinds do, in words. */
#define SOURCE_FINDS_DEVICE "find the block device and the type of its filesystem"
#define SOURCE_MOUNTS_FILESYSTEM "mount the filesystem, detached"
#define SOURCE_CLONES "clone the source as a detached mount"

/*
 * SOURCE_KINDS(X, SEPARATOR) - every kind that a request can name, listed once: a row for each, SEPARATOR between them.
 * A new kind is its file, source_NAME.c, and one row here. Those above inject/ are listed, too.
 */
/* clang-format off */
#define SOURCE_KINDS(X, SEPARATOR) \
        X(bind)      /* a file or directory of the node */ SEPARATOR \
        X(block)     /* a filesystem on a block device of the node */ SEPARATOR \
        X(image)     /* the filesystem in an image file of the node */ SEPARATOR \
        X(container) /* a file or directory of another container */ SEPARATOR \
        X(tmpfs)     /* a fresh tmpfs */ SEPARATOR \
        X(overlay)   /* an overlay of directories of the node */ SEPARATOR \
        X(nfs)       /* an export of an NFS server */ SEPARATOR \
        X(volume)    /* a volume by its name */
/* clang-format on */

/* Each source_NAME.c has source_NAME, and the keys of its requests. */
#define SOURCE_KIND_DECLARATION(name)                                                                                  \
        extern const struct source_kind source_##name;                                                                 \
        extern const struct key_table source_##name##_keys
SOURCE_KINDS(SOURCE_KIND_DECLARATION, ;);
#undef SOURCE_KIND_DECLARATION

/* source_kinds - all of them, ended by NULL, for programs that link all (named/source_kinds.c). */
extern const struct source_kind *const source_kinds[];

#endif
