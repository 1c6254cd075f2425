/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_mount.h - a volume by its name on a directory of this node, as mount(8) and umount(8) ask for it.
 *
 * The volume is staged as for containers (volume/by_name.h), and the directory gets a mount of its own, which the volume's
 * record has among those of pods: it is a use as theirs are (state/uses.h), and the kernel says whether it still is one.
 */
#ifndef FLEXGRAFT_NAMED_NODE_MOUNT_H
#define FLEXGRAFT_NAMED_NODE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "mount/idmap.h"

struct mount_attributes; /* mount/detached.h */
struct volume_call;      /* volume/call.h */

/* Texts are borrowed; NULL: nothing was said. */
struct node_mount {
        const char *name;    /* of the volume */
        const char *target;  /* absolute and normal, its links resolved */
        const char *subdir;  /* the directory of the volume that is mounted */
        const char *fs_type; /* of a blank volume */
        uint64_t size_bytes; /* to make it with, where there is none; 0: it is not made */
        const char *pool;    /* likewise */
        const char *profile; /* likewise */
        uint64_t set;        /* MOUNT_ATTR_* */
        uint64_t clear;      /* likewise */
        int propagation;     /* MS_PRIVATE, ...; 0: as the directory's */
        struct idmap map;    /* no users: none */
        bool owned;          /* the directory that is mounted gets this owner */
        uint32_t uid;
        uint32_t gid;
};

struct node_unmount {
        const char *target; /* as of a mount; borrowed */
        bool lazy;          /* what is busy is detached when it no longer is */
        bool force;         /* for servers that do not answer */
        bool read_only;     /* what is busy becomes read-only */
};

/*
 * node_mount_begin() - start the helper processes that node_mount() needs for a volume. Before privileges_drop().
 * node_unmount_begin() - those of node_unmount().
 */
int node_mount_begin(const char *name, int argc, char **argv, struct error *error);
int node_unmount_begin(int argc, char **argv, struct error *error);

/*
 * node_mount() - make the volume if that is asked for, attach it, format it if it is blank, and mount it. What is made
 * stays when it fails; what is attached does not.
 *
 * fake: only find out whether it could be.
 * Returns: 0, or 1: it is mounted there already.
 * Errors:  ENOENT OPERATION_FIND_TARGET no such directory; ENOENT no such volume; EBUSY something else is mounted there, or
 *          the access mode lets nobody else have it; EROFS it may only be read; those of volume_by_name_stage().
 */
int node_mount(const struct node_mount *mount, bool fake, struct error *error);

/*
 * node_remount() - give a mount of the volume other attributes: set, clear and propagation; without nosuid, nodev,
 * noexec, nodiratime and nosymfollow in set it loses these. The filesystem is not changed, nor another mount of it; what else the mount says, as a line of fstab(5) may that has create=, does not count.
 *
 * fake: only find out whether it could be.
 * Returns: 0.
 * Errors:  EINVAL OPERATION_FIND_TARGET the volume is not mounted there; EBUSY a file of it is open for writing, or something
 *          else is mounted there; EROFS the volume may only be read.
 */
int node_remount(const struct node_mount *mount, bool fake, struct error *error);

/*
 * node_unmount() - unmount what is on a directory, and let go of the volume that the records have there: the last use
 * detaches it.
 *
 * Gives:   ret_left, why the volume stays attached though nobody uses it; errnum 0: it does not.
 * Returns: 0, or 1: it was busy, and is read-only now.
 * Errors:  EINVAL nothing is mounted there; EBUSY.
 */
int node_unmount(const struct node_unmount *unmount, struct error *ret_left, struct error *error);

/* ---- node_mounted.c: what is mounted on a directory of this node, and whose it is */

/*
 * node_mounted_look() - whether a directory can get a mount of the volume. One that systemd mounts when it is asked for
 * (autofs) can.
 *
 * Returns: 0, or 1: the volume is mounted there already, and its record says so.
 * Errors:  ENOENT OPERATION_FIND_TARGET, ENOTDIR; EBUSY something else is mounted there.
 */
int node_mounted_look(struct volume_call *call, const char *target, struct error *error);

/* node_mounted_check_writes() - that a mount of the volume may be written to. Errors: EROFS. */
int node_mounted_check_writes(const struct volume_call *call, struct error *error);

/*
 * node_mounted_set() - give the mount on a directory, and no other of its filesystem, other attributes. Takes: target,
 * absolute, its links resolved. Errors: EBUSY it is to be read-only, and a file of it is open for writing.
 */
int node_mounted_set(const char *target, const struct mount_attributes *attributes, struct error *error);

#endif
