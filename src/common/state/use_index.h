/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_index.h - which records name a block device, a file or directory, a container, or the directory that a volume is
 * mounted on: uses/BUCKET/KEY:HOLDER in the state directory, a link of one empty file for each.
 *
 * KEY is the device, the file or the container, by what it is or by its id, HOLDER the record, which is asked what it
 * uses and whether it still does (state/uses.h), or what it is of. A device has a directory of its own, files share
 * 256, containers, their ids and processes, the directories of volumes, their names and those in pools 4096 each: a
 * question reads as many records as it has answers, however many there are. The directories stay, so that an entry costs one
 * system call. An entry is made before its record is written and removed after it, so that there is no record without
 * its entries, wherever a process is killed. An entry whose record does not name the key says nothing.
 */
#ifndef FLEXGRAFT_STATE_USE_INDEX_H
#define FLEXGRAFT_STATE_USE_INDEX_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "state/state_dir.h"

/*
 * Keys, separated by blanks: "b700" is a device, "f801.2f" a file, "v700" the device of a volume, "n3f" a container,
 * "i2c" a container's id, "c4d2" its process, "d5e" the path of a volume's directory, "p6f" what a volume is called in
 * its pool, "w71" the name of a volume of which nothing is on the node, "u5a" what a container is called in which mounts are wanted, or the id of one of these, "o801.2f" a directory that an overlay writes to. Enough for
 * two of each layer of an overlay, one more of upper and work, and the container.
 */
#define USE_KEYS_SIZE 2720 /* terminated */

/* use_keys_add_device() - add makedev() of a block device, or of a filesystem; once. 0 adds nothing. */
void use_keys_add_device(char *keys, uint64_t device);

/*
 * use_keys_add_volume() - add the device of a volume as such: "v700". Only volumes have such keys, so that whether a
 * device is a volume's can be asked however many users it has. use_key_to_volume() - make that of a device's key, in
 * place; false for another key.
 */
void use_keys_add_volume(char *keys, uint64_t device);
bool use_key_to_volume(char *key);

/* use_keys_add_file() - add a file or directory, by st_dev and st_ino; once. */
void use_keys_add_file(char *keys, uint64_t device, uint64_t inode);

/* use_keys_add_written() - add the upper or the work directory of an overlay, besides its key as a file. */
void use_keys_add_written(char *keys, uint64_t device, uint64_t inode);
bool use_key_is_written(const char *key);

/* use_keys_add_container() - add a container, by a hash of what it is. */
void use_keys_add_container(char *keys, uint64_t hash);

/*
 * use_keys_add_container_id() - add a container by its id, which containers one after the other may have. "" adds
 * nothing.
 */
void use_keys_add_container_id(char *keys, const char *id);

/* use_keys_add_process() - add the process that a container was known by, of any boot and pid namespace. */
void use_keys_add_process(char *keys, pid_t pid);

/*
 * use_keys_add_directory() - add the directory that a volume is mounted on, by its path; use_key_is_directory() - whether
 * a key is such a one. use_keys_add_directory_hash() - likewise, by use_keys_directory_hash() of the path.
 */
void use_keys_add_directory(char *keys, const char *path);
bool use_key_is_directory(const char *key);
uint64_t use_keys_directory_hash(const char *path);
void use_keys_add_directory_hash(char *keys, uint64_t hash);

/* use_keys_add_named() - add a volume by its name: it has neither a device nor a directory of the node. */
void use_keys_add_named(char *keys, const char *name);

/* use_keys_add_disk() - add what a volume is called in its pool (pool/record.h). */
void use_keys_add_disk(char *keys, const char *id);

/* use_keys_add_wanted() - add what a container is called that mounts are wanted in, or the id of such a mount (state/wish). */
void use_keys_add_wanted(char *keys, const char *name);

/* use_keys_add_all() - add all of others. */
void use_keys_add_all(char *keys, const char *others);

/* use_keys_add_opened() - add an opened file or directory, and the device of its filesystem. Nothing for fd < 0. */
void use_keys_add_opened(char *keys, int fd);

/* use_keys_add() - add a key; once. use_key_is_file() - whether it is a file's. */
void use_keys_add(char *keys, const char *key);
bool use_key_is_file(const char *key);

/* use_keys_check() - that all keys that were added are among these. Errors: E2BIG. */
int use_keys_check(const char *keys, const char *subject, struct error *error);

/* use_keys_next() - copy the next key, USE_KEY_SIZE bytes; false at the end. position: at first the keys. */
#define USE_KEY_SIZE 40
bool use_keys_next(const char **position, char *ret_key);

/* use_keys_have() - whether a key is among these. */
bool use_keys_have(const char *keys, const char *key);

/* The holder of a key: which directory of records, and the record's file. */
#define USE_HOLDER_VOLUME 'v'
#define USE_HOLDER_MOUNT 'm'
#define USE_HOLDER_WISH 'w'
#define USE_HOLDER_PROVISIONED 'p' /* whose entries are pool/record.h's */

/*
 * use_index_add() - ensure that the index has a record's keys; before the record is written. records: the state of any
 * directory beside the index. With the record's lock. Errors: E2BIG, as use_keys_check().
 */
int use_index_add(const struct state *records, const char *keys, char sort, const char *file, struct error *error);

/* use_index_drop_old() - remove the keys that only old has; after the record is written. With the record's lock. */
void use_index_drop_old(const struct state *records, const char *old, const char *keys, char sort, const char *file);

/*
 * use_index_remove() - remove a record, of these keys, and then its entries. Returns 0 or negative errno. With the
 * record's lock.
 */
int use_index_remove(const struct state *records, const char *keys, char sort, const char *file);

/*
 * use_index_is_complete() - whether the index has had all records of these holders since the boot: those from before it
 * had this layout, too. If not, it answers no question about them; uses_complete() (state/uses.h) and pool/record_find.c
 * make it so. dir_fd: as use_index_drop()'s.
 * use_index_set_complete() - say so. Returns 0 or negative errno.
 */
enum use_holders {
        USE_HOLDERS_OF_USES,     /* USE_HOLDER_VOLUME, USE_HOLDER_MOUNT and USE_HOLDER_WISH */
        USE_HOLDERS_PROVISIONED, /* USE_HOLDER_PROVISIONED */
};
bool use_index_is_complete(int dir_fd, enum use_holders holders);
int use_index_set_complete(int dir_fd, enum use_holders holders);

/*
 * use_index_each() - every record that the index has for a key, until function() returns other than 0, which is the
 * result. dir_fd: as use_index_drop()'s.
 */
typedef int use_index_function(const char *key, char sort, const char *file, void *argument, struct error *error);
int use_index_each(int dir_fd, const char *key, use_index_function *function, void *argument, struct error *error);

/* use_index_knows() - whether there was ever an entry for a key of a device. dir_fd: as use_index_drop()'s. */
bool use_index_knows(int dir_fd, const char *key);

/* use_index_each_key() - likewise for every key. */
int use_index_each_key(int dir_fd, use_index_function *function, void *argument, struct error *error);

/* use_index_drop() - remove one entry. dir_fd: of the index, or of a directory beside it. */
void use_index_drop(int dir_fd, const char *key, char sort, const char *file);

#endif
