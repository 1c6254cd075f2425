/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.h - one client's HTTP/2 connection. Whatever it sends, it takes bounded memory and time.
 */
#ifndef FLEXGRAFT_CSI_CONNECTION_H
#define FLEXGRAFT_CSI_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "call.h"

struct connection;

/* connection_begin() - serve an accepted descriptor, which it then owns. NULL: no memory; the descriptor is closed. */
struct connection *connection_begin(int fd, const struct rpc *const *services);

/*
 * connection_settle() - send what is to be sent. Call it for each connection after each turn of the loop. False: it has
 * ended, and has to be given to connection_end().
 */
bool connection_settle(struct connection *connection);

/*
 * connection_announce_end() - GOAWAY without a last stream, and a PING: the client is to begin no more calls here, but
 * those that it has sent before it answers the PING are taken. Then comes the last GOAWAY, and the connection ends when
 * its calls are answered.
 */
void connection_announce_end(struct connection *connection);

/* connection_is_idle() - whether all requests are answered and sent, and when the last one began (clock_now_ms()). */
bool connection_is_idle(const struct connection *connection, int64_t *ret_since_ms);

/* connection_end() - close and free it. Its calls are finished all the same. */
void connection_end(struct connection *connection);

#endif
