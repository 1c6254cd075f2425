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

/*
 * session_rest() - run function() while no thread is at a request: whoever is made then finds no lock of the C
 * library's taken.
 */
void session_rest(void (*function)(void));

#endif
