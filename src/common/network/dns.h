/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns.h - name servers asked for the addresses of a host, by c-ares.
 */
#ifndef FLEXGRAFT_NETWORK_DNS_H
#define FLEXGRAFT_NETWORK_DNS_H

#include <stdint.h>

#include "base/error.h"
#include "network/resolv_conf.h"

/*
 * dns_ask() - add all addresses of a host, IPv4 and IPv6.
 *
 * Errors: operation "resolve": ENOENT no such name; ETIMEDOUT, ECONNREFUSED, EAGAIN the name servers' troubles.
 */
int dns_ask(const struct resolv_conf *conf, const char *host, int64_t deadline_ms, struct address_list *list,
            struct error *error);

#endif
