/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - repeat the requests that the last daemon had read and not answered.
 */
#ifndef FLEXGRAFT_REMAP_REPLAY_H
#define FLEXGRAFT_REMAP_REPLAY_H

/* replay_buffer() - the one in the buffer of a slot, if there is one, by the thread of that slot. */
void replay_buffer(int slot);

/* replay_waiters() - those that waited for a lock when it died; and send the answers that it may not have sent. */
void replay_waiters(void);

#endif
