/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_record.h - what flexgraft put, or was about to put, into a container: one JSON file per mount.
 *
 * Written before the mount point is made and the mount placed, with the id the mount will have: so whoever comes after
 * a killed process knows what to look for. It never says that the mount is there; the kernel does.
 */
#ifndef FLEXGRAFT_STATE_MOUNT_RECORD_H
#define FLEXGRAFT_STATE_MOUNT_RECORD_H

#include <limits.h>

#include "base/error.h"
#include "container/container.h"
#include "mount/identity.h"
#include "process/proc.h"
#include "state/record.h"
#include "state/state_dir.h"

#define MOUNT_RECORD_ID_MAX 129 /* terminated */
#define MOUNT_RECORD_NOT_COUNTED UINT_MAX

struct mount_record {
        char id[MOUNT_RECORD_ID_MAX];
        char type[64];              /* the filesystem's, as its mount shows it */
        char source[PATH_MAX];      /* as it was asked for */
        char origin[PATH_MAX];      /* the node's own, un-mapped: the path or device it came from, links resolved */
        char target[PATH_MAX];      /* as it was asked for */
        char mount_point[PATH_MAX]; /* the same, the container's symbolic links resolved */
        char options[256];          /* of the mount, separated by commas; never of the filesystem: secrets live there */
        char id_mapping[16];
        unsigned made;   /* how many of mount_point's last components flexgraft meant to make */
        bool recursive;  /* the mounts below the source came with it */
        unsigned below;  /* how many they are, or MOUNT_RECORD_NOT_COUNTED */
        uint64_t digest; /* of what was asked for, to know the same request again */
        struct mount_identity identity;
        struct mount_identity replaces; /* while they are swapped: the one it takes the place of; zeroes otherwise */
        pid_t pid;                      /* of the container, and what tells it from others: */
        char container_id[CONTAINER_NAME_MAX];
        uint64_t raw_device; /* makedev() of a raw device that the container may use; 0 */
        bool raw_writes;
        unsigned raw_before;   /* what version 1 control groups allowed of it before us: enum device_access */
        uint64_t replaces_raw; /* the raw device of what it takes the place of, while that still is to be settled; 0 */
        unsigned replaces_raw_before;
        pid_t from_pid; /* the container that the source is of; 0: the node */
        char from_id[CONTAINER_NAME_MAX];
        char nfs_version[8];
        char nfs_address[64];    /* that it was found at */
        uint64_t translator_key; /* whoever serves it holds this lock (inject/remap.h); 0: nobody has to */
        int translator_pid;
        uint64_t start_time;
        struct namespace_identity mnt_ns;
        char boot_id[PROC_BOOT_ID_SIZE];
};

extern const struct record_table mount_record_table;

/*
 * mount_record_default_id() - the id of a mount nobody named: from the target's last component, for people, and a hash
 * of the container's mount namespace and the target, so that it is the same whichever way the container was named.
 */
void mount_record_default_id(const struct namespace_identity *mnt_ns, const char *target, char *ret_id);

/* mount_record_id_derived() - whether an id looks like one of those: nobody may choose one that could be another's. */
bool mount_record_id_derived(const char *id);

/* mount_record_key() - the lock of a record. */
uint64_t mount_record_key(const char *id);

/* mount_record_tree_key() - the lock of all mount points made in one container; taken after a record's. */
uint64_t mount_record_tree_key(const struct namespace_identity *mnt_ns);

/*
 * mount_record_read() - one record. Errors: ENOENT; EBADMSG a torn or foreign file, which is set aside as ID.json.bad;
 * EPROTONOSUPPORT one of another version, which is left alone.
 */
int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error);

/* mount_record_write() - replace it, whole. No fsync: a reboot takes the mount with it. */
int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error);

/* mount_record_remove() - it is gone afterwards, and was perhaps before. */
int mount_record_remove(const struct state *state, const char *id, struct error *error);

/*
 * mount_record_find() - the record of a mount in a container, whatever it is called; also one that is about to be
 * replaced. With by_root the identity was seen at the mount's root, else anywhere on it. except: an id that is not
 * meant, or NULL. Errors: -ENOENT without words.
 */
int mount_record_find(const struct state *state, const struct container *container, const char *boot_id,
                      const struct mount_identity *identity, bool by_root, const char *except,
                      struct mount_record *ret_record, struct error *error);

/* mount_record_find_replacing() - only one that was about to take the place of this mount; errors as there. */
int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error);

/*
 * mount_record_find_live() - another record, of a container that is there, which matches(record, argument).
 * Gives: ret_name, of CONTAINER_NAME_MAX bytes: who it is. Errors: -ENOENT without words.
 */
typedef bool mount_record_match(const struct mount_record *record, const void *argument);
int mount_record_find_live(const struct state *state, const struct mount_record *except, mount_record_match *matches,
                           const void *argument, char *ret_name, struct error *error);

/*
 * mount_record_each() - every record, until function() returns other than 0, which is the result; a record is the
 * function's only while it runs. For one that cannot be read record is NULL, and error says why: EBADMSG, torn or
 * foreign, which is set aside; EPROTONOSUPPORT, of another version; or reading it failed.
 */
typedef int mount_record_function(const struct mount_record *record, const char *id, void *argument,
                                  struct error *error);
int mount_record_each(const struct state *state, mount_record_function *function, void *argument, struct error *error);

/* mount_record_tidy() - remove what a process left that was killed while it wrote a record. */
void mount_record_tidy(struct state *state);

/*
 * mount_record_is_of() - whether the record's container is this one. Where the kernel numbers mount namespaces anew and
 * anew (before Linux 6.11), only while the process that was recorded still lives in it.
 */
bool mount_record_is_of(const struct mount_record *record, const struct container *container, const char *boot_id);

/*
 * mount_record_reach() - pin the container of a record: the process recorded, or another of the same mount namespace.
 * Errors: ESRCH when the container is gone, and its mounts with it.
 */
int mount_record_reach(const struct mount_record *record, const char *boot_id, struct container *ret_container,
                       struct error *error);

/*
 * mount_record_remap_lives() - whether the remap daemon of a mount still runs: it holds the lock of this key
 * (record.translator_key) as long as it lives.
 */
bool mount_record_remap_lives(struct state *state, uint64_t key);

#endif
