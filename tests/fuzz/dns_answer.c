/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a name server that the container chose, to dns_ask(). The first two bytes of the input are the answer's
 * code and the number of its records; the rest follows the question, whatever was asked.
 */
#include "fuzz.h"

#include "../unit/name_server.h"
#include "base/clock.h"
#include "network/dns.h"

struct input {
        const uint8_t *data;
        size_t size;
};

static size_t answer(const uint8_t *query, size_t size, uint8_t *ret_answer, void *argument)
{
        const struct input *input = argument;
        size_t at = name_server_head(query, size, input->data[0] & 15, input->data[1], ret_answer);
        size_t length = input->size - 2;

        if (length > NAME_SERVER_ROOM - at)
                length = NAME_SERVER_ROOM - at;
        memcpy(ret_answer + at, input->data + 2, length);
        return at + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct resolv_conf conf = {
                .servers = NAME_SERVER_ADDRESS, .server_count = 1, .ndots = 1, .timeout_ms = 20, .tries = 1
        };
        static bool alone;
        static char domain[] = "example";
        struct input input = { data, size };
        struct address_list list = {};
        struct name_server server;
        struct error error = {};
        int r;

        if (size < 2)
                return 0;
        conf.domains[0] = domain;
        conf.domain_count = 1;
        if (!alone)
                fuzz_check(alone = name_server_alone());
        fuzz_check(name_server_begin(&server, answer, &input));
        r = dns_ask(&conf, "server.test", clock_now_ms() + 200, &list, &error);
        name_server_end(&server);
        fuzz_check(list.count <= ADDRESSES_MAX);
        fuzz_check((r == 0) == (list.count > 0));
        fuzz_check(r == 0 || error.errnum == -r);
        for (size_t i = 0; i < list.count; i++) {
                char text[ADDRESS_SIZE];

                fuzz_check(address_text(&list.addresses[i], text) == 0);
        }
        return 0;
}
