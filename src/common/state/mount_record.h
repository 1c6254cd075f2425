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
#include "mount/open_files.h"
#include "process/proc.h"
#include "state/record.h"
#include "state/state_dir.h"
#include "state/use_index.h"
#include "state/wish.h"

#define MOUNT_RECORD_ID_MAX 130 /* terminated; one more than a request's, for MOUNT_RECORD_PENDING */
#define MOUNT_RECORD_PENDING '~'
#define MOUNT_RECORD_NOT_COUNTED UINT_MAX
#define MOUNT_RECORD_VOLUME_MAX 256 /* terminated */
#define MOUNT_RECORD_CLONE "bind"   /* the type of a clone, of whatever filesystem */

struct mount_record {
        char id[MOUNT_RECORD_ID_MAX];
        char type[64];     /* the filesystem's, as its mount shows it */
        char options[256]; /* of the mount, separated by commas; never the filesystem's, which may be secrets */
        char id_mapping[16];
        unsigned made;   /* how many of mount_point's last components flexgraft makes */
        unsigned below;  /* how many mounts came with it, or MOUNT_RECORD_NOT_COUNTED */
        uint64_t digest; /* of the request, to recognise it */
        struct mount_identity identity;
        struct mount_identity replaces; /* during a replacement: the mount that is replaced; else zeroes */
        char container_id[CONTAINER_NAME_MAX];
        char runtime[16]; /* where that id was found; "" nowhere, or unknown */
        pid_t pid;        /* of the container; start_time tells it from a later process */
        pid_t from_pid;   /* the container that the source is of; 0: the node */
        char from_id[CONTAINER_NAME_MAX];
        uint64_t raw_device; /* makedev() of a raw device that the container may use; 0 */
        uint64_t
                raw_source; /* makedev() of the node's device; raw_device is a loop device on it (block/loop_guard); 0 */
        uint64_t replaces_raw; /* raw device of the mount that is replaced, until its permission is settled; 0 */
        uint64_t replaces_raw_source;
        unsigned raw_before; /* what a version 1 control group allowed of it before: enum device_access */
        unsigned replaces_raw_before;
        int remap_pid;
        bool raw_writes;
        bool recursive; /* the mounts below the source came with it */
        bool removed; /* the mount was removed, but a process still has its raw device open, or it may have files of its
                           volume open (mount_record_is_former()): it is in use */
        char wanted[WISH_KEY_SIZE]; /* the file of what is wanted in its container (state/wish); "" none */
        uint64_t remap_key;         /* the lock that its remap-daemon holds while it runs; 0: it has none */
        char server_version[8];
        char server_address[64];              /* the address that was found */
        uint64_t disk;                        /* makedev() of the device of the node that was named; 0: none was */
        uint64_t disk_sequence;               /* of that disk; 0: unknown */
        char volume[MOUNT_RECORD_VOLUME_MAX]; /* the volume by name that it is of (named/); "" none */
        uint64_t since;                       /* when the mount was made, in seconds since 1970; 0: unknown */
        char uses[USE_KEYS_SIZE];             /* the devices and files of the node that it uses (state/use_index.h) */
        uint64_t start_time;
        struct namespace_identity mnt_ns;
        uint64_t pid_ns; /* proc_pid_namespace() of the program that wrote it; 0: it did not say, then it is ours */
        char boot_id[PROC_BOOT_ID_SIZE];
        /* what is large comes last: the rest lies together */
        char source[PATH_MAX];             /* as requested */
        char origin[PATH_MAX];             /* the path or device of the node, links resolved; a volume's directory */
        char target[PATH_MAX];             /* as requested */
        char mount_point[PATH_MAX];        /* the same, the container's symbolic links resolved */
        char replaces_uses[USE_KEYS_SIZE]; /* with replaces: what that mount uses */
};

extern const struct record_table mount_record_table;

/*
 * mount_record_uses() - the devices and files that it uses, as keys of the index. mount_record_keys() - all its keys:
 * its container's, too. mount_record_uses_alone() - without those of a mount that it takes the place of. All: of
 * USE_KEYS_SIZE bytes.
 */
void mount_record_uses_alone(const struct mount_record *record, char *ret_keys);
void mount_record_uses(const struct mount_record *record, char *ret_keys);

/*
 * mount_record_wanted_name() - what stands for the id of a container in the index, for mount_record_each_called() and
 * mount_record_tidy_called(), where its records have this in "wanted" and its name in place of that id. No id has a slash.
 */
#define MOUNT_RECORD_WANTED_NAME_SIZE (sizeof "wanted/" + WISH_KEY_SIZE)
void mount_record_wanted_name(const char *wanted, char ret_name[MOUNT_RECORD_WANTED_NAME_SIZE]);

void mount_record_keys(const struct mount_record *record, char *ret_keys);

/*
 * mount_record_default_id() - the id of a mount whose request has none: the target's last component, for people, and a
 * hash of the container's mount namespace and the target. It is the same however the container was named.
 */
void mount_record_default_id(const struct namespace_identity *mnt_ns, const char *target, char *ret_id);

/* mount_record_id_derived() - whether an id looks like such a one. Requests may not choose these. */
bool mount_record_id_derived(const char *id);

/*
 * While a mount replaces another whose record has the same id, its own record is ID~: that of the mount that is there
 * stays what it is. Requests may not choose such ids.
 */
void mount_record_pending_id(const char *id, char *ret_id);
bool mount_record_is_pending(const char *id);

/* mount_record_settle_id() - make a pending id the one that the mount will have; other ids stay as they are. */
void mount_record_settle_id(char *id);

/* mount_record_same_id() - whether two ids are the same, or one is the other's pending one. */
bool mount_record_same_id(const char *one, const char *other);

/* mount_record_key() - the lock of a record; ID~ has that of ID. */
uint64_t mount_record_key(const char *id);

/*
 * mount_record_lock_keys() - the locks of a call about a mount: that of its target, and that of the record if its id is
 * another than the target's; in ascending order. Returns how many.
 */
#define MOUNT_RECORD_LOCKS_MAX 2
size_t mount_record_lock_keys(const struct mount_record *record, uint64_t ret_keys[MOUNT_RECORD_LOCKS_MAX]);

/*
 * mount_record_tree_key() - the lock of all mount points made in one container, and of the raw devices that it has. Take
 * it after a record's.
 */
uint64_t mount_record_tree_key(const struct namespace_identity *mnt_ns);

/*
 * mount_record_open() - the directory of mount records, as state_open() opens it. Errors: those of state_open(); EXDEV
 * /proc is of another pid namespace than this process.
 */
int mount_record_open(const char *state_dir, bool create, struct state *ret_state, struct error *error);

/*
 * mount_record_check_namespace() - whether it is known here if the record's container runs: its pids mean the same
 * processes, or no process is in its mount namespace any more. Errors: EXDEV.
 */
int mount_record_check_namespace(const struct mount_record *record, struct error *error);

/*
 * mount_record_read() - one record. Errors: ENOENT; EBADMSG a damaged file, or not a mount record, which is
 * renamed to ID.json.bad; EPROTONOSUPPORT a record of another version, which is kept; EXDEV a record of another pid
 * namespace: nothing can be said about its container from here.
 */
int mount_record_read(const struct state *state, const char *id, struct mount_record *ret_record, struct error *error);

/* mount_record_write() - replace it, whole. No fsync: a reboot takes the mount with it. */
int mount_record_write(const struct state *state, const struct mount_record *record, struct error *error);

/* mount_record_write_first() - likewise, where its id, whose lock the caller holds, has no record: none is looked for. */
int mount_record_write_first(const struct state *state, const struct mount_record *record, struct error *error);

/* mount_record_remove() - ensure that there is none. */
int mount_record_remove(const struct state *state, const char *id, struct error *error);

/* mount_record_remove_read() - likewise, of one that was read with its lock held. */
int mount_record_remove_read(const struct state *state, const struct mount_record *record, struct error *error);

/* mount_record_guard_key() - the key of the loop devices (block/loop_guard) of a container's raw devices. */
uint64_t mount_record_guard_key(const struct mount_record *record);

/* mount_record_removed_id() - the id that the record of a raw device has when its mount was removed. */
void mount_record_removed_id(const struct mount_record *record, char *ret_id);

/*
 * mount_record_write_removed() - ensure that there is a record of a raw device that a process still uses, although its
 * mount was removed, or its record will be replaced by another.
 */
int mount_record_write_removed(const struct state *state, const struct mount_record *record, struct error *error);

/*
 * A mount of a volume that another mount has replaced stays recorded as a former one until its volume was let go: of it
 * processes may still have files open.
 *
 * mount_record_is_former() - whether the record is such a one.
 * mount_record_write_former() - ensure that there is one of a mount; of a mount of no volume by name, or of a raw
 * device, none is made.
 * mount_record_former_files() - the processes that use it, as open_files_find() finds them, which has a time limit.
 * mount_record_former_stays() - whether something has it that is no process's open file, as a mount that was bound
 * elsewhere: its remap-daemon lives as long.
 * mount_record_wait_for_end() - before that, of a mount that has just gone: a moment later its remap-daemon has ended, too.
 * MOUNT_RECORD_END_MS is enough.
 * mount_record_is_elsewhere() - whether the container, pinned, has the volume by a mount of which there is no record; not
 * asked of one that remap-daemon serves.
 * mount_record_has_device() - whether its volume has a device, which says all that to who detaches it: then both say no.
 * mount_record_former_is_used() - whether that is so, or a process of the container has files, also where it has too many
 * to look at.
 */
bool mount_record_is_former(const struct mount_record *record);
int mount_record_write_former(const struct state *state, const struct mount_record *record, struct error *error);
void mount_record_former_files(const struct mount_record *record, enum open_files_of of, size_t most,
                               struct open_files *ret_files);
bool mount_record_has_device(const struct mount_record *record);
bool mount_record_is_elsewhere(const struct state *state, const struct mount_record *record,
                               const struct container *container);
#define MOUNT_RECORD_END_MS 2000
void mount_record_wait_for_end(struct state *state, const struct mount_record *record, int64_t until_ms);
bool mount_record_former_stays(struct state *state, const struct mount_record *record,
                               const struct container *container);
bool mount_record_former_is_used(struct state *state, const struct mount_record *record,
                                 const struct container *container);

/*
 * mount_record_find() - the record of a mount in a container, whatever its id; also of a mount that is being replaced.
 * by_root: the identity was read at the mount's root, else anywhere on it. except: an id to pass over, or NULL.
 * Errors: -ENOENT, without a message.
 */
int mount_record_find(const struct state *state, const struct container *container, const char *boot_id,
                      const struct mount_identity *identity, bool by_root, const char *except,
                      struct mount_record *ret_record, struct error *error);

/* mount_record_is_above() - whether its mount is on a directory that has the path, and not on the path itself. */
bool mount_record_is_above(const struct mount_record *record, const char *path);

/* mount_record_find_placed() - likewise, not one of a mount that is replacing this one. */
int mount_record_find_placed(const struct state *state, const struct container *container, const char *boot_id,
                             const struct mount_identity *identity, const char *except, struct mount_record *ret_record,
                             struct error *error);

/* mount_record_find_replacing() - likewise, only the record of a mount that is replacing this one. */
int mount_record_find_replacing(const struct state *state, const struct container *container, const char *boot_id,
                                const struct mount_identity *identity, struct mount_record *ret_record,
                                struct error *error);

/*
 * mount_record_find_live() - another record that has a key of the index (state/use_index.h) and matches(record,
 * argument), of a container that is running.
 * Gives: ret_name, of CONTAINER_NAME_MAX bytes, the container's. Errors: -ENOENT, without a message.
 */
typedef bool mount_record_match(const struct mount_record *record, const void *argument);
int mount_record_find_live(const struct state *state, const char *key, const struct mount_record *except,
                           mount_record_match *matches, const void *argument, char *ret_name, struct error *error);

/*
 * mount_record_each() - call function() with every record until it returns other than 0, which is the result. The
 * record is valid during the call, and may be of another pid namespace. For one that cannot be read record is NULL and
 * error says why: EBADMSG it is damaged, or not a mount record, and was renamed to ID.json.bad; EPROTONOSUPPORT it is
 * of another version; or the error of reading it.
 */
typedef int mount_record_function(const struct mount_record *record, const char *id, void *argument,
                                  struct error *error);
int mount_record_each(const struct state *state, mount_record_function *function, void *argument, struct error *error);

/*
 * mount_record_each_of() - likewise, with the records of one container: the index finds them, so that others cost
 * nothing. There may be some of other containers among them, and while the index is not complete (state/uses.h) all
 * are: function() looks itself. except: an id that is passed over, unread; or NULL.
 */
int mount_record_each_of(const struct state *state, const struct namespace_identity *mnt_ns, const char *boot_id,
                         const char *except, mount_record_function *function, void *argument, struct error *error);

/*
 * mount_record_each_called() - likewise, with the records of all containers that have or had this id.
 * mount_record_each_of_process() - likewise, with those of all containers that were known by a process of this id.
 * mount_record_each_with() - likewise, with those that have a key of the index.
 */
int mount_record_each_called(const struct state *state, const char *container_id, mount_record_function *function,
                             void *argument, struct error *error);
int mount_record_each_of_process(const struct state *state, pid_t pid, mount_record_function *function, void *argument,
                                 struct error *error);
int mount_record_each_with(const struct state *state, const char *key, mount_record_function *function, void *argument,
                           struct error *error);

/*
 * mount_record_unread() - what such a function returns for a record that is NULL if it must see all of them: 0 for one
 * that is damaged or of another version, else the error.
 */
int mount_record_unread(const struct error *error);

/* mount_record_tidy() - remove temporary files that killed processes left. */
void mount_record_tidy(struct state *state);

/*
 * mount_record_tidy_of() - likewise, those of the container of a record: a process that was killed when it wrote one
 * had entered it in the index before. mount_record_tidy_called() - likewise, those of containers that have or had this
 * id.
 */
void mount_record_tidy_of(struct state *state, const struct mount_record *record);
void mount_record_tidy_called(struct state *state, const char *container_id);

/*
 * mount_record_is_of() - whether the record's container is this one. Where the kernel uses numbers of mount namespaces
 * again (before Linux 6.11), only while the recorded process still runs in it.
 */
bool mount_record_is_of(const struct mount_record *record, const struct container *container, const char *boot_id);

/*
 * mount_record_process_runs() - whether the recorded process runs, in whatever mount namespace: where that of the record has
 * nobody in it any more, the process may have a copy of the mount in the one that it has gone to. What cannot be asked runs.
 */
bool mount_record_process_runs(const struct mount_record *record, const char *boot_id);

/*
 * mount_record_reach() - pin the container of a record: the recorded process, or another of the same mount namespace.
 * Errors: ESRCH the container is gone, and its mounts with it; EXDEV the record is of another pid namespace.
 */
int mount_record_reach(const struct mount_record *record, const char *boot_id, struct container *ret_container,
                       struct error *error);

/*
 * mount_record_remap_lives() - whether the remap daemon of a mount still runs: it holds the lock of this key
 * (record.remap_key) as long as it lives.
 */
bool mount_record_remap_lives(struct state *state, uint64_t key);

#endif
