/* SPDX-License-Identifier: Apache-2.0 */
/* A container's resolv.conf, or with an odd first byte its hosts file. */
#include "fuzz.h"

#include "network/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct address_list list = {};
        struct resolv_conf conf;
        char text_of_address[ADDRESS_SIZE];
        char *text;

        if (size == 0)
                return 0;
        text = fuzz_text(data + 1, size - 1);
        if (data[0] % 2 != 0) {
                resolv_conf_hosts(text, "server", 2049, &list);
                fuzz_check(list.count <= ADDRESSES_MAX);
                for (size_t i = 0; i < list.count; i++)
                        fuzz_check(address_text(&list.addresses[i], text_of_address) == 0);
        } else {
                resolv_conf_parse(text, &conf);
                fuzz_check(conf.servers[0] != '\0' && conf.server_count <= RESOLV_CONF_SERVERS_MAX);
                fuzz_check(conf.domain_count <= RESOLV_CONF_DOMAINS_MAX && conf.timeout_ms > 0 && conf.tries > 0);
        }
        free(text);
        return 0;
}
