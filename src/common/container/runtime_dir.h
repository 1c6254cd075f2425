/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_dir.h - a directory in which a container runtime keeps its state, and files beneath it.
 *
 * What is read there decides which process gets a mount. So the directory, and each file that is read, must belong to
 * root and be writable by nobody else. A directory of another user is opened only where the request asks for this
 * user's containers: its files are then this user's, no symbolic link is followed, and no other mount entered;
 * container_pin() checks that the process is in this user's user namespace.
 */
#ifndef FLEXGRAFT_CONTAINER_RUNTIME_DIR_H
#define FLEXGRAFT_CONTAINER_RUNTIME_DIR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct runtime_dir {
        int fd;
        const char *path; /* borrowed; for messages */
        uid_t owner;      /* whose it is: 0, or the user of rootless containers */
};

/*
 * runtime_dir_open() - open it, if it is the owner's.
 *
 * Returns: 1; 0 there is none, or it is another user's than owner (not root's, when owner is root); or negative errno.
 * Errors:  EPERM others may write to it.
 */
int runtime_dir_open(const char *path, uid_t owner, struct runtime_dir *ret_dir, struct error *error);

void runtime_dir_close(struct runtime_dir *dir);
#define cleanup_runtime_dir __attribute__((cleanup(runtime_dir_close)))

/*
 * runtime_dir_json() - a JSON file beneath it; the caller owns *ret_value. ret_written_s: when it was written; or NULL.
 *
 * Returns: 1; 0 there is no such file; or negative errno. Errors: EPERM it is not the owner's, or others may write to
 * it; EBADMSG, EFBIG as of json_file_load().
 */
int runtime_dir_json(const struct runtime_dir *dir, const char *path, json_type type, json_t **ret_value,
                     int64_t *ret_written_s, struct error *error);

/* runtime_dir_text() - likewise a text of less than size bytes. */
int runtime_dir_text(const struct runtime_dir *dir, const char *path, char *ret_text, size_t size,
                     int64_t *ret_written_s, struct error *error);

/* runtime_dir_name() - the path of a file beneath it, for messages. ret_name holds PATH_MAX bytes. */
void runtime_dir_name(const struct runtime_dir *dir, const char *path, char *ret_name);

/* runtime_dir_has() - whether there is something of this path beneath it. */
bool runtime_dir_has(const struct runtime_dir *dir, const char *path);

/*
 * runtime_dir_each() - call a function for each entry of a directory beneath it, until it returns another number than
 * 0, which is returned. 0 also if there is no such directory.
 */
typedef int runtime_dir_visit(const char *name, void *argument, struct error *error);
int runtime_dir_each(const struct runtime_dir *dir, const char *path, runtime_dir_visit *visit, void *argument,
                     struct error *error);

#endif
