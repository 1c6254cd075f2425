/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the daemon: requests in, answers out, as many at a time as there are.
 */
#ifndef FLEXGRAFT_TRANSLATOR_SESSION_H
#define FLEXGRAFT_TRANSLATOR_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "shared.h"

/* session_begin() - take over what there is. Before anything else, and with one thread. Returns 0 or negative errno. */
int session_begin(void);

/* session_serve() - until the mount is gone (0), or something is wrong (negative errno). ready() is called once. */
int session_serve(void (*ready)(void));

/* session_look() - let go of who is being killed while a server does not answer. Every second, by one thread. */
void session_look(void);

/* session_replayed() - whether this thread does a request again that an earlier daemon may have done already. */
bool session_replayed(void);

/* session_changes() - what this thread is at is about to be done; session_may_have_changed() - it was, by an earlier
 * daemon. */
void session_changes(void);
bool session_may_have_changed(void);

/* session_keep_request() - copy the request that this thread is at; false when it is too long for that. */
bool session_keep_request(uint8_t ret_copy[WAITER_SIZE]);

/* session_pass_through() - the open file that this thread answers with next is read and written by the kernel. */
void session_pass_through(int backing);

/*
 * session_rest() - run function() while no thread is at a request: whoever is made then finds no lock of the C
 * library's taken.
 */
void session_rest(void (*function)(void));

#endif
