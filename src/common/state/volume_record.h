/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_record.h - what the driver did, or was about to do, with a volume on this node: one JSON file per volume.
 *
 * It holds intent; whether a device is attached or a directory is mounted, the kernel says. It has no option that
 * could be a secret.
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
#include "state/use_index.h"

#define VOLUME_NAME_MAX 1024    /* terminated */
#define VOLUME_DRIVER_MAX 256   /* "vendor~driver", terminated */
#define VOLUME_IDENTITY_SIZE 96 /* terminated */

/* A directory that the volume is mounted on, or was about to be. */
struct mount_dir {
        char *dir;                      /* owned */
        unsigned made;                  /* how many of its last components flexgraft made, and removes */
        struct mount_identity identity; /* of the mount on it */
        bool read_only;                 /* of a pod: the mount */
        uint64_t since;                 /* in seconds since 1970; 0: unknown */
        uint64_t pod_device;            /* makedev() of the device on it (volume/pod_device.h); 0: the volume's own */
        uint64_t pod_source;            /* of the volume's own then */
        bool pod_writes;                /* whether that may be written to */
        uint64_t remap_key;             /* of the remap-daemon that serves it (state/mount_record.h); 0: none does */
        uint64_t source_device; /* makedev() of the filesystem that one serves; 0: none does, or it is not known */
        bool source_reads_only; /* what one serves, whatever the pod asked for */
        uint64_t source_key;    /* of what its options name (volume/mappable_daemon.h); 0: not known */
        uint64_t replaces;      /* unique id of the mount that this one was to take the place of; 0: none */
        bool waits_for_users;   /* it is exchanged when its pod has a user namespace (volume/mappable.h) */
};

struct volume_record {
        char name[VOLUME_NAME_MAX];
        char driver[VOLUME_DRIVER_MAX]; /* "" any driver's */
        char kind[16];
        char node[CONFIG_NODE_NAME_MAX];       /* as attach got it; "" attach got none */
        char source[PATH_MAX];                 /* the image, or the device as requested */
        char device[PATH_MAX];                 /* "/dev/loop3"; "" not attached yet */
        uint64_t device_number;                /* makedev() */
        bool read_only;                        /* the staged superblock */
        char formatting[VOLUME_IDENTITY_SIZE]; /* identity of a device on which mkfs started and did not finish; "" */
        struct mount_dir staged;               /* dir NULL: nowhere */
        struct mount_dir *published;           /* owned */
        size_t published_count;
        char location[PATH_MAX];  /* what the options meant, where source does not say it; "" */
        char access_mode[48];     /* of CSI; "" none */
        char namespace[64];       /* of the pods that had it since it was attached; "" not known */
        uint64_t filesystem;      /* st_dev of its mounted filesystem, if not the device's (btrfs); 0 */
        uint64_t since;           /* attached, in seconds since 1970; 0: unknown */
        char uses[USE_KEYS_SIZE]; /* what it uses besides the device (state/use_index.h) */
        char boot_id[PROC_BOOT_ID_SIZE];
        char file[NAME_MAX + 1]; /* its own name; "" not written yet */
};

extern const struct record_table volume_record_table;

/* volume_record_keys() - what it uses: the keys of the index, of USE_KEYS_SIZE bytes. */
void volume_record_keys(const struct volume_record *record, char *ret_keys);

/* volume_record_has_key() - whether the index may have the record under a key: one of these, or that of a directory. */
bool volume_record_has_key(const struct volume_record *record, const char *key);

/*
 * volume_record_stem() - a name as part of a file name: odd bytes as %XX; a name that is too long ends in a hash of
 * the whole. Gives: ret_stem, of VOLUME_RECORD_STEM_SIZE bytes.
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
 * Errors:  ENOENT, without a message; EPROTONOSUPPORT a record of another version, which is kept. A file that is
 *          damaged, or of another volume, is renamed to FILE.bad, logged, and counts as absent.
 */
int volume_record_read(const struct state *state, const char *name, const char *driver,
                       struct volume_record *ret_record, struct error *error);

/*
 * volume_record_peek() - the same without a lock: nothing is renamed. Errors: EBADMSG, too.
 */
int volume_record_peek(const char *state_dir, const char *name, const char *driver, struct volume_record *ret_record,
                       struct error *error);

/* volume_record_is_of_this_boot() - whether the devices that it names can be there still. */
bool volume_record_is_of_this_boot(const struct volume_record *record);

/*
 * volume_record_has() - whether what it has attached or mounted is the disk of a pool of this type at this path, which is
 * NULL or "" where the pool has it no more: a FlexVolume volume of the same name may be something else. What was mounted
 * by the volume's name on a share has no source: it is the pool's.
 */
bool volume_record_has(const struct volume_record *record, const char *pool_type, const char *path);

/*
 * volume_record_write() - replace it, whole. That a volume is attached, and that it is being formatted, must survive a
 * power failure; where it is mounted need not: a reboot ends the mounts.
 */
int volume_record_write(const struct state *state, struct volume_record *record, enum file_durability durability,
                        struct error *error);

/* volume_record_remove() - ensure that there is none. */
int volume_record_remove(const struct state *state, struct volume_record *record, struct error *error);

/*
 * volume_record_each() - call function() with every record until it returns other than 0, which is the result. The
 * record is valid during the call. For one that cannot be read record is NULL and error says why: EBADMSG it is
 * damaged, or not a volume record, and set_aside renames it to FILE.bad; EPROTONOSUPPORT it is of another version; or
 * the error of reading it.
 */
typedef int volume_record_function(struct volume_record *record, const char *file, void *argument, struct error *error);
int volume_record_each(const struct state *state, bool set_aside, volume_record_function *function, void *argument,
                       struct error *error);

/*
 * volume_record_each_on() - likewise, with the records that name a directory: the index finds them. There may be others
 * among them, and while the index is not complete (state/uses.h) all are: function() looks itself.
 */
int volume_record_each_on(const struct state *state, const char *dir, volume_record_function *function, void *argument,
                          struct error *error);

/* volume_record_each_of_device() - likewise, with the records that name a device, by makedev(). */
int volume_record_each_of_device(const struct state *state, uint64_t device, volume_record_function *function,
                                 void *argument, struct error *error);

/* volume_record_tidy() - remove temporary files that killed processes left, where no process holds the volume's
 * lock. */
void volume_record_tidy(struct state *state);

/* volume_record_remember() - record a directory, staged or published; an earlier entry of it is replaced. */
int volume_record_remember(struct volume_record *record, const char *dir, bool staged, unsigned made,
                           const struct mount_identity *identity, struct error *error);

/* volume_record_dir() - its directories by number, the one where it is staged first; NULL after the last. */
const struct mount_dir *volume_record_dir(const struct volume_record *record, size_t number);

/*
 * volume_record_index_dirs() - ensure that the index has the directories of a record. With the record's lock, before it
 * is written. volume_record_drop_dirs() - the opposite, but for those of except, or NULL; after it.
 * volume_record_dir_keys() - their keys in the index; false: they are more than fit.
 */
bool volume_record_dir_keys(const struct volume_record *record, char *ret_keys);
int volume_record_index_dirs(const struct state *records, const struct volume_record *record, const char *file,
                             struct error *error);
void volume_record_drop_dirs(const struct state *records, const struct volume_record *record,
                             const struct volume_record *except, const char *file);

/*
 * An ephemeral volume is made for one directory, and has a record of its own; the directory is in another, of the name
 * that the pod gives it (volume/kinds/kind_ephemeral.c).
 *
 * volume_record_put_ephemeral() - its name, of VOLUME_EPHEMERAL_NAME_SIZE bytes. volume_record_add_ephemeral_dir() - add
 * the key of that directory to keys, by the volume's name; nothing for a name of another form.
 */
#define VOLUME_INNER_EPHEMERAL "ephemeral-" /* as those of volume/request.h */
#define VOLUME_EPHEMERAL_NAME_SIZE 32       /* terminated */
void volume_record_put_ephemeral(const char *dir, char *ret_name);
void volume_record_add_ephemeral_dir(char *keys, const char *name);

/*
 * volume_record_pod_length() - of ROOT/pods/UID, in the directory ROOT/pods/UID/volumes/... of a pod's volume; 0 for
 * another. It is kubelet's, and no file of a volume.
 */
size_t volume_record_pod_length(const char *dir);

/*
 * volume_record_dir_shows() - whether what was seen is the root of the mount that an entry has, or of the one that it was to
 * take the place of when a call was killed. volume_record_dir_has() - whether our mount namespace has one of them, as
 * on_node_has() says. volume_record_dir_now() - for one without the volume's lock whose entry shows nothing: whether the
 * record has another mount for the directory meanwhile, as after an exchange; it is written into place then.
 */
bool volume_record_dir_shows(const struct mount_dir *place, const struct mount_seen *seen);
int volume_record_dir_has(const struct mount_dir *place);

/*
 * volume_record_dir_still() - whether we have the mount on a directory of the node that is no pod's, without a look at the
 * directory: for an automount there (x-systemd.idle-timeout=) that is a use, and waits while that is unmounted. Takes:
 * place, of this boot.
 */
bool volume_record_dir_still(const struct mount_dir *place);
bool volume_record_dir_now(const char *state_dir, const char *name, const char *driver, const char *dir,
                           struct mount_dir *place);

/* volume_record_dir_device() - of the filesystem which decides whether what is on the directory answers: the one behind a remap-daemon. */
uint64_t volume_record_dir_device(const struct mount_dir *place);

/* volume_record_mount_dir() - the entry of a directory, or NULL. */
struct mount_dir *volume_record_mount_dir(struct volume_record *record, const char *dir);

/* volume_record_forget() - forget a directory. */
void volume_record_forget(struct volume_record *record, const char *dir);

void volume_record_release(struct volume_record *record);
#define cleanup_volume_record __attribute__((cleanup(volume_record_release)))

#endif
