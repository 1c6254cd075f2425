/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_pass.h - one descriptor, or one error, over a SOCK_SEQPACKET socket pair (SCM_RIGHTS).
 */
#ifndef FLEXGRAFT_FD_PASS_H
#define FLEXGRAFT_FD_PASS_H

#include "error.h"

/* fd_pass_send() - send a descriptor (borrowed), or, with fd < 0, the error. Returns 0 or negative errno. */
int fd_pass_send(int socket_fd, int fd, const struct error *error);

/*
 * fd_pass_receive() - what the other side sent: its descriptor, owned by the caller and close-on-exec, or its error.
 *
 * Checks length, level, type and truncation. Errors: the sender's own; EPROTO for anything else but one of the two,
 * an end of file included (the sender died).
 */
int fd_pass_receive(int socket_fd, struct error *error);

#endif
