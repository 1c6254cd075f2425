/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_dir.h - a directory of the node that a volume is put on: kubelet's global one, or a pod's.
 */
#ifndef FLEXGRAFT_VOLUME_MOUNT_DIR_H
#define FLEXGRAFT_VOLUME_MOUNT_DIR_H

#include "volume/call.h"

enum mount_dir_state {
        PLACE_MISSING, /* no such directory */
        PLACE_BARE,    /* a directory */
        PLACE_OURS,    /* the mount that the record remembers there, or one of its device */
        PLACE_TAKEN,   /* a mount of something else */
};

/* mount_dir_look() - what is at dir. Gives: ret_made, how many of its last parts are missing. Returns a state. */
int mount_dir_look(const struct volume_call *call, const char *dir, unsigned *ret_made, struct error *error);

/*
 * mount_dir_is_staged() - whether the volume is mounted where the record says it is staged. kubelet gives volumes of
 * one name in two pods one device, whatever their options say: while it is mounted, that one stays.
 */
bool mount_dir_is_staged(const struct volume_call *call);

/* mount_dir_find() - where on the node the record's device is mounted; PATH_MAX bytes. Errors: -ENOENT without
 * words. */
int mount_dir_find(const struct volume_call *call, char *ret_dir, struct error *error);

/* mount_dir_make() - make the directories that were missing (0750, as kubelet's). */
int mount_dir_make(const char *dir, unsigned made, struct error *error);

/* mount_dir_unmake() - remove as many, where they are empty. */
void mount_dir_unmake(const char *dir, unsigned made);

/* mount_dir_adopt() - remember a mount of ours that is there: the call that made it, or its record, was lost. */
int mount_dir_adopt(struct volume_call *call, const char *dir, bool staged, struct error *error);

/*
 * mount_dir_put() - the mount onto request->dir, remembered before as staged or as published; looked at again.
 * On failure nothing of it is left: no mount, no directory of ours, and the record as it was.
 */
int mount_dir_put(struct volume_call *call, int mount_fd, unsigned made, bool staged, enum file_durability durability,
                  struct error *error);

/* mount_dir_save() - write the record; a kind without a device has one only while it is mounted somewhere. */
int mount_dir_save(struct volume_call *call, struct error *error);

#endif
