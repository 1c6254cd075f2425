/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes.h - attributes, propagation and owners of a detached mount that is made already: for the steps, and for
 * the make() of kinds of mounts.
 */
#ifndef FLEXGRAFT_INJECT_ATTRIBUTES_H
#define FLEXGRAFT_INJECT_ATTRIBUTES_H

#include "base/error.h"
#include "inject/injection.h"
#include "process/id_ranges.h"

/*
 * attributes_set() - set attributes and propagation of mount_fd, but for those that are set once it is locked. mapped:
 * with it, its owners are mapped for the container.
 */
int attributes_set(struct injection *injection, bool mapped, struct error *error);

/*
 * attributes_check_owner() - of a superblock that the container's user namespace owns. Errors: EOPNOTSUPP, it shows
 * 65534 as owner, as btrfs on 6.1 does (docs/KERNEL.md#superblocks-of-a-user-namespace).
 */
int attributes_check_owner(const struct injection *injection, struct error *error);

/* Step LOCK of inject/plan.h. */
int attributes_lock(struct injection *injection, struct error *error);

/*
 * attributes_lock_here() - in the process that made the mount: set what is locked and lock it, where both steps would do
 * that with one more process; they then do the rest. The mount is of a directory, with its owners mapped. scratch: the
 * process is in a scratch namespace (mount/scratch_namespace.h). Takes mount_fd; returns it or the locked mount's, or
 * negative errno.
 */
int attributes_lock_here(struct injection *injection, int mount_fd, bool scratch, struct error *error);

/*
 * attributes_check_served() - that remap-daemon may serve what a descriptor is on though nobody asked for that: of a kernel
 * filesystem (proc, sysfs, devtmpfs) it would give the container's root what is the node's root's. Errors: EOPNOTSUPP.
 */
int attributes_check_served(const struct injection *injection, int fd, struct error *error);

/*
 * attributes_remap() - start remap-daemon for mount_fd, which becomes the daemon's FUSE mount, its attributes not set
 * yet. ids: see struct remap_source. Sets id_mapping and the daemon's pid and key in the record. Errors: EOPNOTSUPP it is
 * neither a directory nor a regular file; those of attributes_check_served(), unless "ids" is "remap" and the source is
 * the node's.
 */
int attributes_remap(struct injection *injection, const struct id_maps *ids, struct error *error);

/*
 * attributes_map() - for make() of what few kernels can id-map, as NFS: an id-mapped mount, or remap; none where "ids" say
 * so, or the container is in the node's user namespace. Sets id_mapping and injection.mapped. Errors: those that are of
 * the server, and no refusal of the kernel.
 */
int attributes_map(struct injection *injection, struct error *error);

/* attributes_say_unmapped() - give the error of a refused id mapping its reason, unless it has one. */
void attributes_say_unmapped(struct error *error);

/*
 * attributes_blame_source() - after the kernel has refused to map the owners of what a descriptor is of: if remap-daemon
 * would not serve that either, say so by the error's operation, whose hint does not name it.
 */
void attributes_blame_source(const struct injection *injection, int fd, struct error *error);

/* attributes_is_refusal() - whether an error is of what this kernel cannot do, and not of a server or its export. */
bool attributes_is_refusal(int r);

#endif
