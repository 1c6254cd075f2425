/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_keeper.h - what mount-remove does about the volume by name that a mount is of. inject does not know volumes:
 * named/keeper is the one that does.
 */
#ifndef FLEXGRAFT_INJECT_VOLUME_KEEPER_H
#define FLEXGRAFT_INJECT_VOLUME_KEEPER_H

#include "base/error.h"

struct volume_keeper {
        /* take a volume's lock; before those of mounts. One at a time */
        int (*hold)(const char *volume, struct error *error);
        /*
         * detach the volume that is held if it has no user but the mount of this record, which is gone; in the node's
         * namespaces.
         * Returns: 0, or 1: something of which there is no record still uses it, and it stays attached
         */
        int (*let_go)(const char *mount_id, struct error *error);
        /* give the lock back; also after a failure of hold(), and one that a worker which was killed had */
        void (*drop)(void);
};

#endif
