/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - network addresses as text and as the kernel takes them.
 */
#ifndef FLEXGRAFT_NETWORK_ADDRESS_H
#define FLEXGRAFT_NETWORK_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_SIZE 64 /* an address as text, with its interface, terminated */
#define ADDRESSES_MAX 32

union address {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
};

struct address_list {
        union address addresses[ADDRESSES_MAX];
        size_t count;
};

/* address_parse() - a literal address; of IPv6 perhaps with "%interface". */
bool address_parse(const char *text, uint16_t port, union address *ret_address);

/* address_unmap() - an IPv4 address in IPv6's form ("::ffff:10.0.0.1") becomes IPv4: it is the same server. */
void address_unmap(union address *address);

/* address_add() - one more, not in IPv6's form if it is IPv4; dropped where the list is full. */
void address_add(struct address_list *list, const union address *address);

/* address_size() - its size as a struct sockaddr. */
socklen_t address_size(const union address *address);

/* address_text() - the address without its port, into ADDRESS_SIZE bytes. 0 or negative errno. */
int address_text(const union address *address, char *ret_text);

/* ---- patterns of network addresses in a policy: "10.0.0.7", "10.0.0.0/8", "fd00::/8", "10.0.0.*" */

/*
 * address_pattern_is() - whether a text is a pattern of addresses: an address, a network, or wildcards (fnmatch(3)) with
 * digits and dots alone, or with a colon. Everything else is a pattern of names.
 */
bool address_pattern_is(const char *text);

/* address_pattern_valid() - false for a text with a slash that is not an address and the length of its prefix. */
bool address_pattern_valid(const char *text);

/*
 * address_pattern_matches() - whether it is a pattern of addresses, of which this is one, and it is not 0.0.0.0
 * or "::". Wildcards are matched with the text of inet_ntop(3).
 */
bool address_pattern_matches(const char *pattern, const union address *address);

#endif
