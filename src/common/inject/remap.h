/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap.h - "ids": "remap": a mount that the kernel cannot map is shown through a FUSE filesystem that the
 * container's user namespace owns, by a process on the node that acts with the container's ids (src/translator/).
 *
 * A program that may execute nothing cannot start that process. So before it gives its privileges away it starts a
 * runner, which knows one order, executes one program, and passes on what that says.
 */
#ifndef FLEXGRAFT_INJECT_REMAP_H
#define FLEXGRAFT_INJECT_REMAP_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "container/container.h"
#include "state/state_dir.h"

/* remap_begin() - start the runner. Before privileges_drop(); it ends with us. */
int remap_begin(int argc, char **argv, struct error *error);

/*
 * remap_begin_for() - only if the request asks for it with "ids": "remap"; standard input is read later, and always may.
 * The request is parsed here, by the same strict parser that reads it again once privileges are given away: its text is
 * root's own, an argument of a program that only root can use.
 */
int remap_begin_for(int argc, char **argv, struct error *error);

/* Its parts: whether the request is on standard input, else the request, perhaps NULL (the caller owns it); whether an
 * object asks. */
bool remap_read_request(int argc, char **argv, json_t **ret_request);
bool remap_asked(const json_t *request);

/*
 * remap_mount() - show a detached mount to a container through a translator.
 *
 * Runs in: a worker on the node. Needs CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID and the runner.
 * Takes:   mount_fd, borrowed: the translator keeps it; state, where its lock is.
 * Gives:   ret_key, the lock that is held for as long as it lives (mount_record_remap_lives()); ret_pid, its pid.
 * Returns: the detached FUSE mount's descriptor, owned by the caller. When that and every mount made of it are gone,
 * the translator ends. Errors:  ENOSYS nobody started a runner; ENOENT remap-daemon is not installed; ENODEV no FUSE in
 * this kernel. Source:  the kernel wants /dev/fuse opened and the filesystem made in the same user namespace
 * (fuse_fill_super()).
 */
int remap_mount(int mount_fd, const char *source, const struct container *container, const struct state *state,
                uint64_t *ret_key, int *ret_pid, struct error *error);

#endif
