/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_words.h - the kinds of pools, listed once. A new kind is one file, pool_WORD.c, and one row here; everything else
 * about it is in its struct pool_kind (pool/pool_kind.h).
 *
 * Each row is X(word, parameters). word: the "type" of its files. parameters: of its volumes, as volume-create --help
 * has them; what they mean is in the kind's own rows.
 */
#ifndef FLEXGRAFT_POOL_POOL_WORDS_H
#define FLEXGRAFT_POOL_POOL_WORDS_H

/* POOL_TYPES(X, SEPARATOR, LAST) - a row for each type, SEPARATOR between them, LAST before the last. */
/* clang-format off */
#define POOL_TYPES(X, SEPARATOR, LAST) \
        X(loop, "preallocate (true, false)") SEPARATOR \
        X(lvm, "type (linear, striped, mirror, raid1, raid5, raid6, raid10, thin), stripes, mirrors, stripesize, " \
               "thinpool, snapshotsize") SEPARATOR \
        X(pmem, "usage (AppDirect, FileIO)") SEPARATOR \
        X(directory, "mode, uid, gid") LAST \
        X(nfs, "names of Kubernetes for subDir; in place of a pool server and share, with subDir, mountPermissions, " \
               "onDelete, mountOptions")

/*
 * Kinds that share the type of one above, which is the one of files without a "mode"; they have no row of parameters.
 * END follows each.
 */
#define POOL_MODES(X, END) \
        X(pmem_lvm, "") END
/* clang-format on */

/* String literals: "loop, lvm or nfs"; the same in quotation marks; "loop: ...; lvm: ...". */
#define POOL_TYPE_WORD(word, parameters) #word
#define POOL_TYPE_LIST POOL_TYPES(POOL_TYPE_WORD, ", ", " or ")
#define POOL_TYPE_QUOTED(word, parameters) "\"" #word "\""
#define POOL_TYPE_LIST_QUOTED POOL_TYPES(POOL_TYPE_QUOTED, ", ", " or ")
#define POOL_TYPE_PARAMETERS(word, parameters) #word ": " parameters
#define POOL_PARAMETERS POOL_TYPES(POOL_TYPE_PARAMETERS, "; ", "; ")

/* What the parameter idMappable may be, and the option of the driver: in this order. */
#define POOL_ID_MAPPABLE_ALWAYS "always"
#define POOL_ID_MAPPABLE_WORDS "auto", POOL_ID_MAPPABLE_ALWAYS, "never"

/* The parameter cache, and the option, are "auto" or this. */
#define POOL_CACHE_ALWAYS "always"

#endif
