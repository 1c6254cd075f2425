/* SPDX-License-Identifier: Apache-2.0 */
#include "network/address_pattern.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

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
