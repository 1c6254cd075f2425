/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_pass.h - one descriptor, or one error, over a SOCK_SEQPACKET socket pair (SCM_RIGHTS).
 */
#ifndef FLEXGRAFT_BASE_FD_PASS_H
#define FLEXGRAFT_BASE_FD_PASS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define FD_PASS_MAX 5
#define FD_PASS_MANY 128

/* fd_pass_send() - send a descriptor (borrowed), or, with fd < 0, the error. Returns 0 or negative errno. */
int fd_pass_send(int socket_fd, int fd, const struct error *error);

/*
 * fd_pass_receive() - receive a descriptor, owned by the caller and close-on-exec, or the error that was sent.
 *
 * Checks length, level, type and truncation. Errors: the sender's own; EPROTO for anything else but one of the two,
 * an end of file included (the sender died).
 */
int fd_pass_receive(int socket_fd, struct error *error);

/*
 * fd_pass_send_all(), fd_pass_receive_all() - exactly so many descriptors, in their order; at most FD_PASS_MAX.
 * Return 0 or negative errno; EPROTO when another number arrived.
 */
int fd_pass_send_all(int socket_fd, const int *fds, size_t count);
int fd_pass_receive_all(int socket_fd, int *ret_fds, size_t count);

/*
 * fd_pass_send_with() - bytes, at least one, and with them up to FD_PASS_MANY descriptors (borrowed), or none. Returns 0
 * or negative errno; EPIPE without a signal.
 *
 * fd_pass_receive_with() - such a message. Returns its length, 0 at the end; or negative errno: EPROTO it has more bytes or
 * more descriptors than there is room for, and these are closed. ret_fds, owned by the caller, close-on-exec: at the
 * lowest free numbers; ret_count: how many.
 */
int fd_pass_send_with(int socket_fd, const void *bytes, size_t size, const int *fds, size_t count);
ssize_t fd_pass_receive_with(int socket_fd, void *ret_bytes, size_t size, int *ret_fds, size_t most, size_t *ret_count);

#endif
