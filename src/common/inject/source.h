/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the kinds of mounts: how the source of each is found, and how a detached mount of it is made.
 */
#ifndef FLEXGRAFT_INJECT_SOURCE_H
#define FLEXGRAFT_INJECT_SOURCE_H

#include <stdbool.h>

#include "base/error.h"

struct injection;
struct mount_record;
struct request;

/* What is mounted: how its source is found and how a detached mount of it is made. One constant per sort of mount. */
struct source_kind {
        /* find the source; fills directory, record.origin and what make() needs */
        int (*open)(struct injection *injection, struct error *error);
        /* fill mount_fd; owned: with a superblock that the container's user namespace owns */
        int (*make)(struct injection *injection, bool owned, struct error *error);
        /* open the device to the container, once the record is written; NULL: there is none */
        int (*allow)(struct injection *injection, struct error *error);
        /* take back from what was replaced what only that needed, in the node's namespaces; NULL: there is no such
         * thing */
        int (*settle)(struct injection *injection, const struct mount_record *record, struct error *error);
        /* take back what open() and make() changed for others to see; NULL: nothing. Also when they did nothing yet */
        int (*undo)(struct injection *injection, struct error *error);
        bool translatable; /* a translator may show it */
        bool ownable;      /* whether make() knows how to do that */
        bool maps;         /* make() itself makes owners right, and says in record.id_mapping how */
        bool foreign;      /* its content may be a container's own work: nosuid and nodev are locked always */
};

extern const struct source_kind source_bind;      /* a file or directory of the node */
extern const struct source_kind source_block;     /* a filesystem on a block device of the node */
extern const struct source_kind source_container; /* a file or directory of another container */
extern const struct source_kind source_nfs;       /* an export of an NFS server */
extern const struct source_kind source_overlay;   /* an overlay of directories of the node */
extern const struct source_kind source_raw;       /* a block device of the node itself */
extern const struct source_kind source_tmpfs;     /* a fresh tmpfs */

/* source_of() - the sort of source that a request is about. */
const struct source_kind *source_of(const struct request *request);

#endif
