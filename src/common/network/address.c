/* SPDX-License-Identifier: Apache-2.0 */
#include "network/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
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
