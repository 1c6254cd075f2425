/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_record.h - what flexgraft mounts, or was about to mount, in a container: one JSON file per mount.
 *
 * A record is written before the mount point is made and the mount placed, with the id that the mount will have: after
 * a killed process the next one knows what to look for. Whether the mount is there, only the kernel says.
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
        char source[PATH_MAX];      /* as requested */
        char origin[PATH_MAX];      /* the path or device of the node, links resolved */
        char target[PATH_MAX];      /* as requested */
        char mount_point[PATH_MAX]; /* the same, the container's symbolic links resolved */
        char options[256]; /* of the mount, separated by commas; never the filesystem's, which may be secrets */
        char id_mapping[16];
        unsigned made;   /* how many of mount_point's last components flexgraft makes */
        bool recursive;  /* the mounts below the source came with it */
        unsigned below;  /* how many they are, or MOUNT_RECORD_NOT_COUNTED */
        uint64_t digest; /* of the request, to recognise it */
        struct mount_identity identity;
        struct mount_identity replaces; /* during a replacement: the mount that is replaced; else zeroes */
        pid_t pid;                      /* of the container; start_time tells it from a later process */
        char container_id[CONTAINER_NAME_MAX];
        uint64_t raw_device; /* makedev() of a raw device that the container may use; 0 */
        bool raw_writes;
        unsigned raw_before;   /* what a version 1 control group allowed of it before: enum device_access */
        uint64_t replaces_raw; /* raw device of the mount that is replaced, until its permission is settled; 0 */
        unsigned replaces_raw_before;
        pid_t from_pid; /* the container that the source is of; 0: the node */
        char from_id[CONTAINER_NAME_MAX];
        char server_version[8];
        char server_address[64]; /* the address that was found */
        uint64_t remap_key;      /* the lock that its remap-daemon holds while it runs; 0: it has none */
        int remap_pid;
        uint64_t start_time;
        struct namespace_identity mnt_ns;
        char boot_id[PROC_BOOT_ID_SIZE];
};

extern const struct record_table mount_record_table;

/*
 * mount_record_default_id() - the id of a mount whose request has none: the target's last component, for people, and a
 * hash of the container's mount namespace and the target. It is the same however the container was named.
 */
void mount_record_default_id(const struct namespace_identity *mnt_ns, const char *target, char *ret_id);

/* mount_record_id_derived() - whether an id looks like such a one. Requests may not choose these. */
bool mount_record_id_derived(const char *id);

/* mount_record_key() - the lock of a record. */
uint64_t mount_record_key(const char *id);

/* mount_record_tree_key() - the lock of all mount points made in one container. Take it after a record's. */
uint64_t mount_record_tree_key(const struct namespace_identity *mnt_ns);

/*
 * mount_record_read() - one record. Errors: ENOENT; EBADMSG a damaged file, or not a mount record, which is
 * renamed to ID.json.bad; EPROTONOSUPPORT a record of another version, which is kept.
 */
int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error);

/* mount_record_write() - replace it, whole. No fsync: a reboot takes the mount with it. */
int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error);

/* mount_record_remove() - ensure that there is none. */
int mount_record_remove(const struct state *state, const char *id, struct error *error);

/*
 * mount_record_find() - the record of a mount in a container, whatever its id; also of a mount that is being replaced.
 * by_root: the identity was read at the mount's root, else anywhere on it. except: an id to pass over, or NULL.
 * Errors: -ENOENT, without a message.
 */
int mount_record_find(const struct state *state, const struct container *container, const char *boot_id,
                      const struct mount_identity *identity, bool by_root, const char *except,
                      struct mount_record *ret_record, struct error *error);

/* mount_record_find_replacing() - likewise, only the record of a mount that is replacing this one. */
int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error);

/*
 * mount_record_find_live() - another record that matches(record, argument), of a container that is running.
 * Gives: ret_name, of CONTAINER_NAME_MAX bytes, the container's. Errors: -ENOENT, without a message.
 */
typedef bool mount_record_match(const struct mount_record *record, const void *argument);
int mount_record_find_live(const struct state *state, const struct mount_record *except, mount_record_match *matches,
                           const void *argument, char *ret_name, struct error *error);

/*
 * mount_record_each() - call function() with every record until it returns other than 0, which is the result. The
 * record is valid during the call. For one that cannot be read record is NULL and error says why: EBADMSG it is
 * damaged, or not a mount record, and was renamed to ID.json.bad; EPROTONOSUPPORT it is of another version; or the
 * error of reading it.
 */
typedef int mount_record_function(const struct mount_record *record, const char *id, void *argument,
                                  struct error *error);
int mount_record_each(const struct state *state, mount_record_function *function, void *argument, struct error *error);

/* mount_record_tidy() - remove temporary files that killed processes left. */
void mount_record_tidy(struct state *state);

/*
 * mount_record_is_of() - whether the record's container is this one. Where the kernel uses numbers of mount namespaces
 * again (before Linux 6.11), only while the recorded process still runs in it.
 */
bool mount_record_is_of(const struct mount_record *record, const struct container *container, const char *boot_id);

/*
 * mount_record_reach() - pin the container of a record: the recorded process, or another of the same mount namespace.
 * Errors: ESRCH the container is gone, and its mounts with it.
 */
int mount_record_reach(const struct mount_record *record, const char *boot_id, struct container *ret_container,
                       struct error *error);

/*
 * mount_record_remap_lives() - whether the remap daemon of a mount still runs: it holds the lock of this key
 * (record.remap_key) as long as it lives.
 */
bool mount_record_remap_lives(struct state *state, uint64_t key);

#endif
