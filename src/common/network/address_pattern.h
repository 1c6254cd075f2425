/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_pattern.h - patterns of network addresses in a policy: "10.0.0.7", "10.0.0.0/8", "fd00::/8", "10.0.0.*".
 */
#ifndef FLEXGRAFT_NETWORK_ADDRESS_PATTERN_H
#define FLEXGRAFT_NETWORK_ADDRESS_PATTERN_H

#include <stdbool.h>

#include "network/address.h"

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
