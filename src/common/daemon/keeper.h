/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - what remap-keeper (src/remap/) has open, and how the memory begins that it shares with remap-daemon: for it,
 * and for the programs that start it and that have a newer program take its place.
 *
 * A keeper hands over to another program, its heir, on an order: a message to FD_ORDERS, whose other end, FD_ORDER, it
 * keeps for who may take it (pidfd_getfd(2)). The order passes a socket to the heir, and the heir's pidfd.
 */
#ifndef FLEXGRAFT_DAEMON_KEEPER_H
#define FLEXGRAFT_DAEMON_KEEPER_H

#include <stdint.h>

/* The descriptors of keeper and daemon. It is started with those up to FD_REPORT. */
enum {
        FD_FUSE = 3,           /* /dev/fuse, opened in the container's user namespace, or in the node's */
        FD_ROOT,               /* the detached mount that is the source */
        FD_CONTAINER,          /* /proc/PID of the container's first process, or of the node's */
        FD_LOCK,               /* holds the lock that tells others that this daemon runs */
        FD_SETTINGS,           /* a socket with the messages of mount/remap_settings.h */
        FD_HEIR = FD_SETTINGS, /* of an heir: the socket to the keeper */
        FD_REPORT,             /* a byte is written to it when the mount is served */
        FD_MEMORY,             /* struct shared, which begins with a struct keeper_header */
        FD_ORDERS,             /* a socket, read by the keeper */
        FD_ORDER,              /* its other end */
        FD_OWN,                /* the first that the daemon may use */
};

#define KEEPER_MAGIC "fgremap"
#define KEEPER_PROTOCOL 1 /* of an order, of what keeper and heir say to each other, and of the numbers above */
#define KEEPER_VERSION_SIZE 32

struct keeper_header {
        char magic[8];
        uint32_t protocol;
        uint32_t layout;                   /* of struct shared: what its members mean */
        uint64_t sizes[5];                 /* and where they are */
        char version[KEEPER_VERSION_SIZE]; /* of the program that serves, terminated */
};

#endif
