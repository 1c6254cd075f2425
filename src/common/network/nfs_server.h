/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nfs_server.h - the address of a server, looked up and reached as from a container.
 */
#ifndef FLEXGRAFT_NETWORK_NFS_SERVER_H
#define FLEXGRAFT_NETWORK_NFS_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "network/address.h"

/* Which servers a policy allows. */
struct nfs_server_rule {
        bool (*allows)(const void *argument, const union address *address); /* NULL: every address is */
        const void *argument;
        bool listed; /* the name is listed: the node looks it up, and each address that it has is allowed */
};

/* Where the server is looked up from. */
struct nfs_server_view {
        int net_ns_fd;                      /* -EBADF: our own */
        int root_fd;                        /* of /etc/hosts and /etc/resolv.conf */
        const char *name;                   /* in messages: the container, or "node" */
        const struct nfs_server_rule *rule; /* NULL: every server is allowed */
        int family;                         /* only its addresses of this one; AF_UNSPEC: all */
};

struct nfs_server {
        char server[ADDRESS_SIZE];
        char client[ADDRESS_SIZE]; /* the local address of the connection */
};

/*
 * nfs_server_find() - an address of the host that takes connections to this port.
 *
 * Runs in: the node's namespaces. A sealed child enters the network namespace, drops all capabilities, and only then
 *          parses the container's files and talks to the network. No NSS, no loaded modules.
 * Takes:   host, a name or a literal address; connects: false only looks the name up (UDP).
 * Order:   the hosts file; else the name servers of resolv.conf (nameserver, search, domain, options ndots, timeout,
 *          attempts), by c-ares. All addresses are tried at once; the first that answers is taken.
 *          With a rule, only addresses that it allows are tried; a listed name is looked up with the node's files, from
 *          the node's network, and connected to from the container's.
 * Errors:  operation "check policy": EACCES no address of the host is allowed;
 *          operation "resolve": ENOENT no such name, ETIMEDOUT, ECONNREFUSED, EAGAIN a failure of the name servers;
 *          operation "connect": EAFNOSUPPORT it has no address of the family; ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT after deadline_ms (clock_now_ms()).
 */
int nfs_server_find(const struct nfs_server_view *view, const char *host, uint16_t port, bool connects,
                    int64_t deadline_ms, struct nfs_server *ret_address, struct error *error);

/* ---- an export of an NFS server as text */

#define NFS_HOST_SIZE 256

struct nfs_export {
        char host[NFS_HOST_SIZE]; /* a name or an address, without brackets */
        char path[PATH_MAX];
        char source[PATH_MAX + NFS_HOST_SIZE + 4]; /* as the kernel wants both: "host:/path", "[fd00::1]:/path" */
};

/* nfs_export_parse() - from "host:/path". Errors: -EINVAL; fills no struct error. */
int nfs_export_parse(const char *source, struct nfs_export *ret_export);

/* nfs_export_join() - from both parts; the host may be in brackets. */
int nfs_export_join(const char *host, const char *path, struct nfs_export *ret_export);

#endif
