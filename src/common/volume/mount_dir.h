/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_dir.h - a directory of the node that a volume is mounted on: kubelet's global one, or a pod's. Of a block volume
 * it is a file, on which the device's node is mounted.
 */
#ifndef FLEXGRAFT_VOLUME_MOUNT_DIR_H
#define FLEXGRAFT_VOLUME_MOUNT_DIR_H

#include "volume/call.h"
#include "volume/pod_device.h"

enum mount_dir_state {
        MOUNT_DIR_MISSING, /* no such directory, or file */
        MOUNT_DIR_BARE,    /* a directory; or a file, where a device is wanted */
        MOUNT_DIR_OURS,    /* the mount in the record, or another of its device */
        MOUNT_DIR_TAKEN,   /* any other mount */
};

/* mount_dir_look() - what is at dir. Gives: ret_made, how many of its last components are missing. */
int mount_dir_look(const struct volume_call *call, const char *dir, unsigned *ret_made, struct error *error);

/*
 * mount_dir_has() - whether the volume is mounted on a directory of its record, if only below another mount: then the
 * directory does not show it, and who uses it goes on to.
 */
bool mount_dir_has(const struct volume_call *call, const struct mount_dir *place);

/*
 * mount_dir_is_staged() - whether the volume is mounted where the record says it is staged. For
 * kubelet volumes of one name are one, whatever their options say: a mounted volume keeps its device.
 */
bool mount_dir_is_staged(const struct volume_call *call);

/* mount_dir_find() - where on the node the record's device is mounted; PATH_MAX bytes. Errors: -ENOENT, without
 * a message; those of reading the node's mounts. */
int mount_dir_find(const struct volume_call *call, char *ret_dir, struct error *error);

/* mount_dir_make() - make the missing directories (0750, as kubelet does). */
int mount_dir_make(const char *dir, unsigned made, struct error *error);

/* mount_dir_unmake() - remove as many directories, where they are empty. */
void mount_dir_unmake(const char *dir, unsigned made);

/* mount_dir_reads_only() - whether what is mounted on dir refuses writes: the mount, its filesystem, or the device. */
bool mount_dir_reads_only(const char *dir);

/* mount_dir_adopt() - write a mount of this volume into the record: the call that made it was killed, or the record lost. */
int mount_dir_adopt(struct volume_call *call, const char *dir, bool staged, struct error *error);

/* What a pod gets. */
struct volume_served {
        uint64_t key;           /* of the remap-daemon, for id_mappable_is_served(); 0: it is the volume's own mount */
        uint64_t source_device; /* of struct mount_dir, as the next three */
        uint64_t source_key;
        bool source_reads_only;
        bool waits_for_users;
};

/* What is to be mounted. */
struct mount_dir_new {
        int mount_fd;
        unsigned made; /* how many of the directory's last components are missing */
        bool staged;
        enum file_durability durability; /* of the record */
        struct volume_served served;
        struct pod_device *device; /* of a block volume; else NULL. After a failure it is released */
};

/*
 * mount_dir_put() - mount it on request->dir, after writing it into the record as staged or published; then check that it
 * is there. A failure leaves no mount and no directory that was made, and the record as it was.
 */
int mount_dir_put(struct volume_call *call, const struct mount_dir_new *new, struct error *error);

/* mount_dir_save() - write the record; a kind without a device has one only while it is mounted somewhere. */
int mount_dir_save(struct volume_call *call, struct error *error);

/*
 * mount_dir_save_unmounted() - the same when the directory that the record names no more is unmounted. On a disk that is full
 * or read-only the outdated record stays, without harm, and this is a success: what comes next may make room.
 */
int mount_dir_save_unmounted(struct volume_call *call, struct error *error);

#endif
