/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns.h - name servers asked for the addresses of a host, by c-ares.
 */
#ifndef FLEXGRAFT_NETWORK_DNS_H
#define FLEXGRAFT_NETWORK_DNS_H

#include <stdint.h>

#include "base/error.h"
#include "network/address.h"

/*
 * ---- a hosts file and a resolv.conf, as text: parsers alone, without a system call but for the index of a
 * network interface.
 */

#define RESOLV_CONF_SERVERS_MAX 3  /* as in the C library */
#define RESOLV_CONF_DOMAINS_MAX 32 /* as Kubernetes; the C library has no limit */

struct resolv_conf {
        char servers[RESOLV_CONF_SERVERS_MAX * (ADDRESS_SIZE + 1)]; /* separated by commas; never empty */
        int server_count;
        char *domains[RESOLV_CONF_DOMAINS_MAX]; /* in the text */
        int domain_count;
        int ndots;
        int timeout_ms;
        int tries;
};

/* resolv_conf_parse() - nameserver, search, domain and options; the rest is ignored. Cuts the text up. */
void resolv_conf_parse(char *text, struct resolv_conf *ret_conf);

/* resolv_conf_hosts() - add the addresses that a hosts file gives a host. Cuts the text up. */
void resolv_conf_hosts(char *text, const char *host, uint16_t port, struct address_list *list);

/*
 * dns_ask() - add all addresses of a host, IPv4 and IPv6.
 *
 * Errors: operation "resolve": ENOENT no such name; ETIMEDOUT, ECONNREFUSED, EAGAIN the name servers' troubles.
 */
int dns_ask(const struct resolv_conf *conf, const char *host, int64_t deadline_ms, struct address_list *list,
            struct error *error);

#endif
