/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_record.h - what the driver did, or was about to do, with a volume on this node: one JSON file per volume.
 *
 * It holds intent; whether a device is attached or a directory is mounted, the kernel says. No option of the volume's
 * that could be a secret is in it.
 */
#ifndef FLEXGRAFT_STATE_VOLUME_RECORD_H
#define FLEXGRAFT_STATE_VOLUME_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"
#include "mount/identity.h"
#include "process/proc.h"
#include "state/config.h"
#include "state/record.h"
#include "state/state_dir.h"

#define VOLUME_NAME_MAX 1024    /* terminated */
#define VOLUME_DRIVER_MAX 256   /* "vendor~driver", terminated */
#define VOLUME_IDENTITY_SIZE 96 /* terminated */

/* A directory that the volume was put on, or was about to be. */
struct mount_dir {
        char *dir;                      /* owned */
        unsigned made;                  /* how many of its last parts are ours, too, and go with the mount */
        struct mount_identity identity; /* of the mount that was put there */
};

struct volume_record {
        char name[VOLUME_NAME_MAX];
        char driver[VOLUME_DRIVER_MAX]; /* "" belongs to whoever asks */
        char kind[16];
        char node[CONFIG_NODE_NAME_MAX];       /* as attach was told; "" attached without being told for whom */
        char source[PATH_MAX];                 /* the image, or the device as it was asked for */
        char device[PATH_MAX];                 /* "/dev/loop3"; "" not attached yet */
        uint64_t device_number;                /* makedev() */
        bool read_only;                        /* the staged superblock */
        char formatting[VOLUME_IDENTITY_SIZE]; /* where mkfs was begun, and not seen to end well; "" */
        struct mount_dir staged;               /* dir NULL: nowhere */
        struct mount_dir *published;           /* owned */
        size_t published_count;
        char boot_id[PROC_BOOT_ID_SIZE];
        char file[NAME_MAX + 1]; /* its own name; "" not written yet */
};

extern const struct record_table volume_record_table;

/*
 * volume_record_stem() - a name as part of a file's: odd bytes as %XX; one that is too long ends in a hash of the
 * whole. Gives: ret_stem, of VOLUME_RECORD_STEM_SIZE bytes.
 */
#define VOLUME_RECORD_STEM_SIZE 181 /* terminated; leaves room for what is put around it */
void volume_record_stem(const char *name, char *ret_stem);

/* volume_record_key() - the lock of all volumes of this name, whatever their driver. */
uint64_t volume_record_key(const char *name);

/*
 * volume_record_read() - the record of a driver's volume: NAME.json, where that is not another driver's; else
 * NAME@DRIVER.json. With driver "" whatever NAME.json holds.
 *
 * Gives:   ret_record, released by volume_record_release(), also after a failure.
 * Errors:  ENOENT, without words; EPROTONOSUPPORT a record of another version, which is left alone. A torn or foreign
 *          file is set aside as FILE.bad, logged, and counts as absent.
 */
int volume_record_read(const struct state *state, const char *name, const char *driver,
                       struct volume_record *ret_record, struct error *error);

/*
 * volume_record_peek() - the same without a lock, for a first look: nothing is set aside. Errors: EBADMSG, too.
 */
int volume_record_peek(const char *state_dir, const char *name, const char *driver, struct volume_record *ret_record,
                       struct error *error);

/*
 * volume_record_write() - replace it, whole. That a volume is attached, and that it is being formatted, has to survive
 * a power cut; where it is mounted has not: a reboot takes the mounts with it.
 */
int volume_record_write(const struct state *state, struct volume_record *record, enum file_durability durability,
                        struct error *error);

/* volume_record_remove() - it is gone afterwards, and was perhaps before. */
int volume_record_remove(const struct state *state, struct volume_record *record, struct error *error);

/*
 * volume_record_each() - every record, until function() answers other than 0, which is the result; a record is the
 * function's only while it runs. For one that cannot be read record is NULL, and error says why: EBADMSG, torn or
 * foreign, which set_aside sets aside; EPROTONOSUPPORT, of another version; or reading it failed.
 */
typedef int volume_record_function(struct volume_record *record, const char *file, void *argument, struct error *error);
int volume_record_each(const struct state *state, bool set_aside, volume_record_function *function, void *argument,
                       struct error *error);

/* volume_record_tidy() - remove the temporary files that killed processes left, where nobody holds the volume's lock.
 */
void volume_record_tidy(struct state *state);

/* volume_record_remember() - one more directory, staged or published; what was remembered of it is replaced. */
int volume_record_remember(struct volume_record *record, const char *dir, bool staged, unsigned made,
                           const struct mount_identity *identity, struct error *error);

/* volume_record_mount_dir() - what is remembered of a directory, or NULL. */
struct mount_dir *volume_record_mount_dir(struct volume_record *record, const char *dir);

/* volume_record_forget() - forget a directory. */
void volume_record_forget(struct volume_record *record, const char *dir);

void volume_record_release(struct volume_record *record);
#define cleanup_volume_record __attribute__((cleanup(volume_record_release)))

#endif
