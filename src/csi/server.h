/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - clients come, are served, and go: a bounded number of them, root alone.
 */
#ifndef FLEXGRAFT_CSI_SERVER_H
#define FLEXGRAFT_CSI_SERVER_H

#include "base/error.h"
#include "listen.h"

/* server_begin() - what does with all privileges: the sockets are there already. */
int server_begin(struct listener listeners[LISTEN_MAX], unsigned idle_seconds, unsigned grace_seconds,
                 struct error *error);

/*
 * server_run() - serve until SIGTERM, or until nobody has come for idle_seconds (0: for ever). Calls under way are
 * finished. Errors: ECHILD the launcher has ended.
 */
int server_run(struct error *error);

/* server_show_anew() - have kubelet register the driver again after so many milliseconds (listen_show_anew()). */
void server_show_anew(int after_ms);

#endif
