/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_owners.h - the owners of one container's files, mapped for another container.
 */
#ifndef FLEXGRAFT_INJECT_KINDS_CONTAINER_OWNERS_H
#define FLEXGRAFT_INJECT_KINDS_CONTAINER_OWNERS_H

#include <stdbool.h>

#include "base/error.h"
#include "inject/injection.h"
#include "mount/idmap.h"
#include "mount/tree_roots.h"

/*
 * The ids that a filesystem stores. An id mapping says how each is shown, so it depends on them
 * (docs/KERNEL.md#id-mapped-mounts).
 */
enum owner_ids {
        FROM_NODE,   /* those that the source's container has on the node, as in its own directories */
        FROM_INSIDE, /* those that the source's container sees, as in its own tmpfs, or in what is id-mapped for it */
        FROM_MOUNT,  /* those that the source's id-mapped mount maps from; the kernel tells the mapping */
};

/*
 * container_owners_map() - the mapping, until the next call. Errors: EOPNOTSUPP no id is in both containers; ENOSYS
 * with FROM_MOUNT, before Linux 6.15.
 */
int container_owners_map(const struct injection *injection, enum owner_ids ids, const struct idmap **ret_mapping,
                         struct error *error);

/*
 * container_owners_check() - whether a clone shows the same owner to its container as the source does to its own. One
 * that neither container maps counts as the same. Errors: EXDEV.
 *
 * container_owners_check_tree() - likewise for each mount of a tree: theirs is an unmapped clone of the source, ours a
 * mapped clone of that. With strict an owner that neither container maps counts as the same for the tree's own root only.
 */
int container_owners_check(const struct injection *injection, int clone_fd, struct error *error);
int container_owners_check_tree(const struct injection *injection, const struct tree_roots *theirs,
                                const struct tree_roots *ours, bool strict, struct error *error);

/* container_owners_of_source() - the maps of the source's container, until the program ends. */
int container_owners_of_source(const struct injection *injection, const struct id_maps **ret_maps, struct error *error);

/* container_owners_same() - whether the maps of the two containers are equal: then nothing has to be mapped. */
bool container_owners_same(const struct injection *injection);

#endif
