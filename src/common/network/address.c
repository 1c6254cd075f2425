/* SPDX-License-Identifier: Apache-2.0 */
#include "network/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/fd.h"
#include "base/text.h"

/* What if_nametoindex(3) does, on a socket of a sort that is allowed. 0: there is none of that name. */
static unsigned interface_index(const char *name)
{
        cleanup_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq interface = {};

        if (fd < 0 || !text_copy(interface.ifr_name, sizeof interface.ifr_name, name) ||
            ioctl(fd, SIOCGIFINDEX, &interface) < 0)
                return 0;
        return (unsigned)interface.ifr_ifindex;
}

bool address_parse(const char *text, uint16_t port, union address *ret_address)
{
        char plain[ADDRESS_SIZE];
        char *scope;

        *ret_address = (union address){};
        if (inet_pton(AF_INET, text, &ret_address->four.sin_addr) == 1) {
                ret_address->four.sin_family = AF_INET;
                ret_address->four.sin_port = htons(port);
                return true;
        }
        if (!text_copy(plain, sizeof plain, text))
                return false;
        scope = strchr(plain, '%');
        if (scope != NULL)
                *scope++ = '\0';
        if (inet_pton(AF_INET6, plain, &ret_address->six.sin6_addr) != 1)
                return false;
        ret_address->six.sin6_family = AF_INET6;
        ret_address->six.sin6_port = htons(port);
        if (scope != NULL) {
                uint64_t number = 0;

                if (!text_number(scope, UINT32_MAX, &number))
                        number = interface_index(scope);
                ret_address->six.sin6_scope_id = (uint32_t)number;
        }
        return true;
}

void address_unmap(union address *address)
{
        struct sockaddr_in four = { .sin_family = AF_INET };

        if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&address->six.sin6_addr))
                return;
        four.sin_port = address->six.sin6_port;
        (void)memcpy(&four.sin_addr, &address->six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
        *address = (union address){ .four = four };
}

void address_add(struct address_list *list, const union address *address)
{
        if (list->count == ADDRESSES_MAX)
                return;
        list->addresses[list->count] = *address;
        address_unmap(&list->addresses[list->count]);
        list->count++;
}

socklen_t address_size(const union address *address)
{
        return address->any.sa_family == AF_INET ? sizeof address->four : sizeof address->six;
}

int address_text(const union address *address, char *ret_text)
{
        size_t length;

        if (inet_ntop(address->any.sa_family,
                      address->any.sa_family == AF_INET ? (const void *)&address->four.sin_addr
                                                        : (const void *)&address->six.sin6_addr,
                      ret_text, ADDRESS_SIZE) == NULL)
                return -errno;
        length = strlen(ret_text);
        if (address->any.sa_family == AF_INET6 && address->six.sin6_scope_id != 0)
                (void)snprintf(ret_text + length, ADDRESS_SIZE - length, "%%%u", address->six.sin6_scope_id);
        return 0;
}

/* ---- patterns of network addresses in a policy: "10.0.0.7", "10.0.0.0/8", "fd00::/8", "10.0.0.*" */

#define BITS_FOUR 32
#define BITS_SIX 128

/* An address without a port; mapped IPv4 as IPv4, as address_add() has it. */
static bool parse(const char *text, union address *ret_address)
{
        char plain[ADDRESS_SIZE];
        size_t length = strlen(text);

        if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
                text++; /* as in "[fd00::1]:/export" */
                length -= 2;
        }
        if (length >= sizeof plain)
                return false;
        (void)memcpy(plain, text, length);
        plain[length] = '\0';
        /* an interface ("%eth0") says nothing about a server */
        if (strchr(plain, '%') != NULL || !address_parse(plain, 0, ret_address))
                return false;
        address_unmap(ret_address);
        return true;
}

/* "ADDRESS/LENGTH"; ret_length counts bits of the address as parse() gives it. */
static bool parse_network(const char *text, union address *ret_address, unsigned *ret_length)
{
        const char *slash = strchr(text, '/');
        char plain[ADDRESS_SIZE];
        unsigned most;
        uint64_t number;

        if (slash == NULL || (size_t)(slash - text) >= sizeof plain)
                return false;
        (void)memcpy(plain, text, (size_t)(slash - text));
        plain[slash - text] = '\0';
        most = strchr(plain, ':') != NULL ? BITS_SIX : BITS_FOUR;
        if (!parse(plain, ret_address) || !text_number(slash + 1, most, &number))
                return false;
        if (most == BITS_SIX && ret_address->any.sa_family == AF_INET) {
                if (number < BITS_SIX - BITS_FOUR)
                        return false; /* neither IPv4 nor IPv6 */
                number -= BITS_SIX - BITS_FOUR;
        }
        *ret_length = (unsigned)number;
        return true;
}

/* The bytes of an address. */
static const uint8_t *bytes_of(const union address *address)
{
        return address->any.sa_family == AF_INET ? (const uint8_t *)&address->four.sin_addr
                                                 : (const uint8_t *)&address->six.sin6_addr;
}

static bool begins_alike(const union address *one, const union address *other, unsigned bits)
{
        const uint8_t *a = bytes_of(one);
        const uint8_t *b = bytes_of(other);
        unsigned rest = bits % 8;

        return memcmp(a, b, bits / 8) == 0 && (rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

/* Whether a text has a colon outside of a "[...]" of a wildcard pattern. */
static bool has_colon(const char *text)
{
        for (; *text != '\0'; text++) {
                const char *end = *text == '[' ? strchr(text, ']') : NULL;

                if (end != NULL)
                        text = end;
                else if (*text == ':')
                        return true;
        }
        return false;
}

bool address_pattern_is(const char *text)
{
        union address address;

        return strchr(text, '/') != NULL || parse(text, &address) ||
               strspn(text, "0123456789.*?[]!^-") == strlen(text) || has_colon(text);
}

bool address_pattern_valid(const char *text)
{
        union address address;
        unsigned length;

        return strchr(text, '/') == NULL || parse_network(text, &address, &length);
}

/* 0.0.0.0 and "::" are no server: a connection to them goes to this machine. */
static bool is_unspecified(const union address *address)
{
        return address->any.sa_family == AF_INET ? address->four.sin_addr.s_addr == INADDR_ANY
                                                 : IN6_IS_ADDR_UNSPECIFIED(&address->six.sin6_addr);
}

bool address_pattern_matches(const char *pattern, const union address *address)
{
        union address plain = *address;
        union address known;
        char text[ADDRESS_SIZE];
        unsigned length;

        if (!address_pattern_is(pattern))
                return false;
        address_unmap(&plain);
        if (plain.any.sa_family != AF_INET)
                plain.six.sin6_scope_id = 0;
        if (is_unspecified(&plain))
                return false;
        if (strchr(pattern, '/') != NULL)
                return parse_network(pattern, &known, &length) && known.any.sa_family == plain.any.sa_family &&
                       begins_alike(&known, &plain, length);
        if (parse(pattern, &known))
                return known.any.sa_family == plain.any.sa_family &&
                       begins_alike(&known, &plain, plain.any.sa_family == AF_INET ? BITS_FOUR : BITS_SIX);
        return address_text(&plain, text) == 0 && fnmatch(pattern, text, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
}
