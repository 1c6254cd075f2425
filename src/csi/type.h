/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type.h - what CSI must know of a type of volume or pool, in one table. What a verb or a tool knows of it stands in its kind.
 */
#ifndef FLEXGRAFT_CSI_TYPE_H
#define FLEXGRAFT_CSI_TYPE_H

#include <stdbool.h>

/* What is on a server, as csi-driver-nfs calls it: a volume's type, and the filesystem that its users may name. */
#define CSI_TYPE_SERVER "nfs"

struct csi_type {
        const char *word;
        bool server;    /* it is on a server, which may not answer */
        bool shared;    /* other nodes can use it, too */
        bool directory; /* of a pool: its volumes are directories, without a device and a filesystem of their own */
        bool plain;     /* inline, it is nobody's but the pod's, or outlives it: nothing is made for it in a pool */
};

/* csi_type_find() - the row of a type; NULL and all others have one that says nothing. Never NULL. */
const struct csi_type *csi_type_find(const char *word);

#endif
