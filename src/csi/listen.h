/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h - the two sockets that clients come to: the endpoint, and the one in kubelet's plugins_registry.
 *
 * They come from the service manager (sd_listen_fds(3), without its library), which keeps them, or are made here, with
 * mode 0600, and removed at the end.
 */
#ifndef FLEXGRAFT_CSI_LISTEN_H
#define FLEXGRAFT_CSI_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"
#include "options.h"

#define LISTEN_MAX 2

struct listener {
        int fd; /* -EBADF: there is none */
        bool is_registration;
        bool is_ours; /* to be removed, as long as its path has this device and inode */
        dev_t dev;
        ino_t ino;
        char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

/*
 * listen_begin() - take the service manager's sockets, or make ours. Runs with all privileges.
 *
 * Gives:   ret_listeners; where they are the service manager's, the endpoint's path in options is the socket's.
 * Returns: whether they are the service manager's, or negative errno. Errors: EINVAL what it gave is no such socket;
 *          EADDRINUSE somebody serves a socket that would be ours.
 */
int listen_begin(struct options *options, struct listener ret_listeners[LISTEN_MAX], struct error *error);

/*
 * listen_show_anew() - rename a socket away and back, which kubelet takes for a new one: it asks a driver whose
 * registration failed again only then. Returns 0 or negative errno; then it may be away, and the next call brings it
 * back. ENOENT: it is in neither place.
 */
int listen_show_anew(const struct listener *listener);

/* listen_end() - no new clients: close it, and remove it if it is ours. */
void listen_end(struct listener *listener);

#endif
