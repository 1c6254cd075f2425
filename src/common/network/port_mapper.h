/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_mapper.h - the port mapper (rpcbind) of this network namespace: RFC 1833, version 2, by TCP.
 */
#ifndef FLEXGRAFT_NETWORK_PORT_MAPPER_H
#define FLEXGRAFT_NETWORK_PORT_MAPPER_H

#include <stdbool.h>
#include <stdint.h>

/* port_mapper_knows() - whether it has such a program on TCP. False, too, where there is none, or it is silent for a second. */
bool port_mapper_knows(uint32_t program, uint32_t version);

#endif
