/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolv_conf.h - a hosts file and a resolv.conf, as text: parsers alone, without a system call but for the index of a
 * network interface.
 */
#ifndef FLEXGRAFT_NETWORK_RESOLV_CONF_H
#define FLEXGRAFT_NETWORK_RESOLV_CONF_H

#include "network/address.h"

#define RESOLV_CONF_SERVERS_MAX 3 /* as in the C library */
#define RESOLV_CONF_DOMAINS_MAX 6

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

#endif
