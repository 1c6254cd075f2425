/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freeze.h - stop all writing to a mounted filesystem for a moment, with everything on its device (FIFREEZE,
 * docs/KERNEL.md#frozen-filesystems).
 *
 * A process of its own freezes and thaws it. It outlives this program, thaws when this program has ended, however that
 * ended, and when the time is over. If it is killed itself, freeze_end() thaws. Only a kill of both leaves it frozen.
 */
#ifndef FLEXGRAFT_BLOCK_FREEZE_H
#define FLEXGRAFT_BLOCK_FREEZE_H

#include "base/error.h"

struct freeze {
        int dir_fd;    /* borrowed */
        int socket_fd; /* to the process that thaws; negative: nothing is frozen */
};
#define FREEZE_NONE                                                                                                    \
        {                                                                                                              \
                .dir_fd = -EBADF, .socket_fd = -EBADF                                                                  \
        }

/*
 * freeze_begin() - dir_fd: of any directory of it, borrowed until the end. Needs CAP_SYS_ADMIN.
 * Errors: EBUSY somebody else has frozen it; EOPNOTSUPP it cannot be frozen.
 */
int freeze_begin(int dir_fd, unsigned seconds, struct freeze *ret_freeze, struct error *error);

/* freeze_end() - Errors: ETIMEDOUT it was thawed before, since the time was over. */
int freeze_end(struct freeze *freeze, struct error *error);

/* freeze_undo() - thaw what a call that was killed, with its other process, may have left frozen. */
void freeze_undo(int dir_fd);

#endif
