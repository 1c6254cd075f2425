/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_server.h - a server's name -> an address that answers, as a container would find it.
 */
#ifndef FLEXGRAFT_MOUNT_NFS_SERVER_H
#define FLEXGRAFT_MOUNT_NFS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "mount/address.h"

/* From where it is looked for. */
struct nfs_server_view {
        int net_ns_fd;    /* -EBADF: our own */
        int root_fd;      /* whose /etc/hosts and /etc/resolv.conf say where names lead */
        const char *name; /* for people: the container, or "node" */
};

struct nfs_server {
        char server[ADDRESS_SIZE];
        char client[ADDRESS_SIZE]; /* ours, on the way there */
};

/*
 * nfs_server_find() - an address of the host that takes connections to this port.
 *
 * Runs in: the node's namespaces; the work in a sealed child that enters the network namespace alone, and has given its
 *          capabilities away before it reads a byte of the container's or of the network's. Nothing is loaded: no NSS.
 * Takes:   host, a name or a literal address; connects: false only looks the name up (UDP).
 * Order:   the hosts file; else the name servers of resolv.conf (nameserver, search, domain, options ndots, timeout,
 *          attempts), by c-ares. All addresses are tried at once, and the first that answers is it.
 * Errors:  operation "resolve": ENOENT no such name, ETIMEDOUT, ECONNREFUSED, EAGAIN the name servers' troubles;
 *          operation "connect": ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT after deadline_ms (clock_now_ms()).
 */
int nfs_server_find(const struct nfs_server_view *view, const char *host, uint16_t port, bool connects,
                    int64_t deadline_ms, struct nfs_server *ret_address, struct error *error);

#endif
