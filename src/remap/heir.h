/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heir.h - another program takes the place of keeper and daemon, as after an upgrade, with all that is open and locked.
 *
 *      keeper (the old program)                          heir (the new one)
 *      ------------------------                          ------------------
 *      memory                                   ->
 *                                               <-       it understands it
 *      a reserve is started; the daemon ends
 *      descriptors, with their numbers          ->
 *                                               <-       it has them
 *      ...                                      ->
 *                                               <-       it has all
 *      go                                       ->       it is the keeper now, and starts a daemon
 *                                               <-       that says that it could begin, before it reads a request
 *      ends
 *
 * Up to "go" the old program goes on when the heir ends, is silent for too long, or does not understand the memory: it
 * starts its own daemon again, as after any that was killed. After "go" it does so when all of the heir has ended before
 * the daemon said that it could begin; the heir ends when it could not. The reserve, which shares the keeper's descriptors, does what the keeper would, should that
 * be killed meanwhile. So any one of them may be killed at any moment, and never do two daemons run.
 */
#ifndef FLEXGRAFT_REMAP_HEIR_H
#define FLEXGRAFT_REMAP_HEIR_H

#include <stdbool.h>

/*
 * heir_hand_over() - in the keeper: FD_ORDERS has an order. Does not return when the heir serves the mount. keep: the
 * keeper's function, for the reserve.
 */
void heir_hand_over(void (*keep)(void));

/* heir_forget() - in a keeper that begins: the last one may have been killed while it handed over. That heir ends. */
void heir_forget(void);

/*
 * heir_wants_leave() - in the daemon: FD_ORDER has something to read. Whether the keeper wants the daemon to end: so that a
 * heir need not repeat a request that is half done.
 */
bool heir_wants_leave(void);

/*
 * heir_take_over() - in the heir, started with FD_HEIR: map the memory as `shared`, have all descriptors, and be the keeper.
 *
 * Returns: 0; negative errno: the old program goes on. EPROTONOSUPPORT its memory is not that of this program; EBUSY the
 *          mount is just made, or ends; ETIMEDOUT; ECANCELED the old keeper has ended.
 */
int heir_take_over(void);

/* heir_say_serves() - in the heir's first daemon, when it could begin, before it reads a request: the old program may end. */
void heir_say_serves(void);

/* heir_daemon_ended() - in the keeper. An heir whose first daemon cannot begin ends, too. */
void heir_daemon_ended(void);

/* heir_fill_header() - of the memory, for a later heir. */
void heir_fill_header(void);

#endif
