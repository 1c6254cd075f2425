/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xattr_ids.h - the ids in the values of extended attributes, from those that FUSE says to those of the source, and back:
 * access control lists and file capabilities. Where both are the same (source_ids.h) nothing changes.
 */
#ifndef FLEXGRAFT_REMAP_XATTR_IDS_H
#define FLEXGRAFT_REMAP_XATTR_IDS_H

#include <stdbool.h>
#include <stddef.h>

#define XATTR_IDS_GROWTH 4 /* bytes that a value may be longer at the source */

/* xattr_ids_are_capabilities() - whether an attribute holds a file's capabilities. */
bool xattr_ids_are_capabilities(const char *name);

/*
 * xattr_ids_take() - a value that is to be set, in place; the memory is XATTR_IDS_GROWTH bytes longer. Capabilities that are
 * for root of the container become those for root of the source's container: without that id they would be for the node's.
 * Returns: its size; -EINVAL: an id that the source has none for, or no such value.
 */
int xattr_ids_take(const char *name, char *value, size_t size);

/*
 * xattr_ids_show() - a value of the source, in place, of the same size. An id that has none becomes one that the kernel does
 * not map.
 */
void xattr_ids_show(const char *name, char *value, size_t size);

#endif
