/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_file.h - what container runtimes write about a container: JSON or text -> its first process.
 *
 * Nothing here opens a file or looks at a process; container/lookup reads the files. All functions return 0, or
 * -EBADMSG when the text does not name a process.
 */
#ifndef FLEXGRAFT_CONTAINER_STATE_FILE_H
#define FLEXGRAFT_CONTAINER_STATE_FILE_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CONTAINER_ID_FULL 64         /* hexadecimal digits of a full id */
#define CONTAINER_ID_SHORT_LENGTH 12 /* what docker ps, podman ps and crictl print */

struct container_process {
        pid_t pid;           /* 0: the container is stopped */
        uint64_t start_time; /* clock ticks since boot, as the runtime recorded it; 0: it did not, but then there are */
        int64_t written_s;   /* when the pid was recorded, in seconds since 1970, */
        char full_id[CONTAINER_ID_FULL + 1]; /* and the id that its control group's path may contain */
        char id[CONTAINER_ID_FULL + 1];      /* the runtime's own; "" the one that was asked for */
        char bundle[PATH_MAX]; /* the directory that its creator made it from, and that stays between two runs; "" */
        const char *runtime;   /* that knows it; NULL: none was asked */
        uid_t owner;           /* whose files say so: if not root's, it must be in this user's user namespace */
};

/* state_file_crun() - /run/crun/ID/status. */
int state_file_crun(const json_t *state, struct container_process *ret_process);

/* state_file_runc() - state.json of runc, and of those that run it. */
int state_file_runc(const json_t *state, struct container_process *ret_process);

/* state_file_crio() - overlay-containers/ID/userdata/state.json of CRI-O. */
int state_file_crio(const json_t *state, struct container_process *ret_process);

/* state_file_docker() - config.v2.json of docker. */
int state_file_docker(const json_t *config, struct container_process *ret_process);

/* state_file_pid() - a file with a pid and nothing else: containerd's init.pid, podman's pidfile. */
int state_file_pid(const char *text, struct container_process *ret_process);

/* state_file_machined() - /run/systemd/machines/NAME. */
int state_file_machined(const char *text, struct container_process *ret_process);

/*
 * state_file_podman() - containers.json of containers/storage: the container with this id or name, or, with prefix, the
 * one whose id begins so.
 *
 * Gives:   ret_id, its full id, and ret_other, that of a second one (CONTAINER_ID_FULL + 1 bytes each).
 * Returns: how many there are; above 1, ret_id and ret_other are two of them.
 */
int state_file_podman(const json_t *containers, const char *id, bool prefix, char *ret_id, char *ret_other);

/* The keys under which a Kubernetes runtime labels a container with its pod. */
struct state_file_pod_keys {
        const char *name_space;
        const char *pod;
        const char *container;
        const char *type; /* "container" for what is no sandbox */
};

/*
 * state_file_is_of_pod() - whether these labels are those of a container of this pod, and no sandbox. name: the
 * container's; NULL: any.
 */
bool state_file_is_of_pod(const json_t *labels, const struct state_file_pod_keys *keys, const char *name_space,
                          const char *pod, const char *name);

/* state_file_docker_of_pod() - whether Docker's name of a container is the one that kubelet gives to such a one. */
bool state_file_docker_of_pod(const json_t *config, const char *name_space, const char *pod, const char *name);

/*
 * ---- a directory in which a container runtime keeps its state, and files beneath it.
 *
 * What is read there decides which process gets a mount. So the directory, and each file that is read, must belong to
 * root and be writable by nobody else. A directory of another user is opened only where the request asks for this
 * user's containers: its files are then this user's, no symbolic link is followed, and no other mount entered;
 * container_pin() checks that the process is in this user's user namespace.
 */

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

/*
 * runtime_dir_contains() - whether a file has this text, which costs a fraction of parsing it. Returns 1; 0: it has not, or
 * there is no such file; or negative errno, as above. A file that is too large to be parsed may have it.
 */
int runtime_dir_contains(const struct runtime_dir *dir, const char *path, const char *text, struct error *error);

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
