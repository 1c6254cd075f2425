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
#include <stdint.h>
#include <sys/types.h>

#define CONTAINER_ID_FULL 64         /* hexadecimal digits of a full id */
#define CONTAINER_ID_SHORT_LENGTH 12 /* what docker ps, podman ps and crictl print */

struct container_process {
        pid_t pid;           /* 0: the container is stopped */
        uint64_t start_time; /* clock ticks since boot, as the runtime recorded it; 0: it did not, but then there are */
        int64_t written_s;   /* when the pid was recorded, in seconds since 1970, */
        char full_id[CONTAINER_ID_FULL + 1]; /* and the id that its control group's path may contain */
};

/* state_file_crun() - /run/crun/ID/status. */
int state_file_crun(const json_t *state, struct container_process *ret_process);

/* state_file_runc() - state.json of runc, and of those that run it. */
int state_file_runc(const json_t *state, struct container_process *ret_process);

/* state_file_docker() - config.v2.json of docker. */
int state_file_docker(const json_t *config, struct container_process *ret_process);

/* state_file_pid() - a file with a pid and nothing else: containerd's init.pid, podman's pidfile. */
int state_file_pid(const char *text, struct container_process *ret_process);

/* state_file_machined() - /run/systemd/machines/NAME. */
int state_file_machined(const char *text, struct container_process *ret_process);

/*
 * state_file_podman() - containers.json of containers/storage: how many containers have this id, name or beginning of
 * an id (12 characters or more). ret_id (CONTAINER_ID_FULL + 1 bytes) is the full id of the last of them.
 */
int state_file_podman(const json_t *containers, const char *id, char *ret_id);

#endif
