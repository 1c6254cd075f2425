/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <poll.h>

#include "base/clock.h"
#include "name_server.h"
#include "network/dns.h"

#define TYPE_A 1
#define TYPE_AAAA 28

static const uint8_t four[] = { 192, 0, 2, 7 };
static const uint8_t six[] = { 0x20, 1, 0xd, 0xb8, [15] = 9 };

/* What the server does. */
struct script {
        unsigned code;    /* of the answer */
        size_t shortest;  /* question with another answer, */
        size_t longest;   /* and the longest; 0: none has */
        unsigned records; /* how many of the type that is asked for */
        int after_ms;
        bool silent;
        unsigned queries;
};

static size_t add_record(uint8_t *answer, size_t at, unsigned type)
{
        const uint8_t head[] = { 0xc0, NAME_SERVER_HEADER, 0, (uint8_t)type, 0, 1, 0, 0, 0, 60, 0 };
        const uint8_t *address = type == TYPE_A ? four : six;
        const size_t size = type == TYPE_A ? sizeof four : sizeof six;

        memcpy(answer + at, head, sizeof head);
        at += sizeof head;
        answer[at++] = (uint8_t)size;
        memcpy(answer + at, address, size);
        return at + size;
}

static size_t play(const uint8_t *query, size_t size, uint8_t *ret_answer, void *argument)
{
        struct script *script = argument;
        unsigned type = 0;
        const size_t length = name_server_question(query, size, &type);
        const bool other = length >= script->shortest && length <= script->longest;
        size_t at = name_server_head(query, size, other ? 0 : script->code, script->records, ret_answer);

        script->queries++;
        if (script->after_ms > 0)
                (void)poll(NULL, 0, script->after_ms);
        if (script->silent)
                return 0;
        for (unsigned i = 0; at > 0 && i < script->records; i++)
                at = add_record(ret_answer, at, type);
        return at;
}

static int ask_with(struct resolv_conf *conf, struct script *script, int64_t within_ms, struct address_list *ret_list,
                    struct error *error)
{
        struct name_server server;
        int r;

        *ret_list = (struct address_list){};
        assert_true(name_server_begin(&server, play, script));
        r = dns_ask(conf, "server.example", clock_now_ms() + within_ms, ret_list, error);
        name_server_end(&server);
        return r;
}

/* Of one server that does this. */
static int ask(struct script *script, int timeout_ms, int64_t within_ms, struct address_list *ret_list,
               struct error *error)
{
        struct resolv_conf conf = {
                .servers = NAME_SERVER_ADDRESS, .server_count = 1, .ndots = 1, .timeout_ms = timeout_ms, .tries = 1
        };

        return ask_with(&conf, script, within_ms, ret_list, error);
}

static void addresses_of_both_families_are_taken(void **state)
{
        struct script script = { .records = 1 };
        struct address_list list;
        struct error error;
        bool seen[2] = {};

        (void)state;
        assert_int_equal(ask(&script, 10000, 60000, &list, &error), 0);
        assert_int_equal(list.count, 2);
        for (size_t i = 0; i < list.count; i++) {
                char text[ADDRESS_SIZE];

                assert_int_equal(address_text(&list.addresses[i], text), 0);
                seen[0] = seen[0] || strcmp(text, "192.0.2.7") == 0;
                seen[1] = seen[1] || strcmp(text, "2001:db8::9") == 0;
        }
        assert_true(seen[0] && seen[1]);
}

static void a_list_of_addresses_ends_where_it_is_full(void **state)
{
        struct script script = { .records =
                                         ADDRESSES_MAX / 2 + 1 }; /* of each family; 512 bytes have room for so many */
        struct address_list list;
        struct error error;

        (void)state;
        assert_int_equal(ask(&script, 10000, 60000, &list, &error), 0);
        assert_int_equal(list.count, ADDRESSES_MAX);
}

static void a_name_without_an_address_is_ENOENT(void **state)
{
        struct script unknown = { .code = 3 };
        struct script empty = {};
        struct address_list list;
        struct error error;

        (void)state;
        assert_refused(ask(&unknown, 10000, 60000, &list, &error), ENOENT, error, "has no address");
        assert_string_equal(error.operation, OPERATION_RESOLVE);
        assert_refused(ask(&empty, 10000, 60000, &list, &error), ENOENT, error, "has no address");
}

static void a_server_that_fails_is_ECONNREFUSED(void **state)
{
        struct script script = { .code = 2 };
        struct address_list list;
        struct error error;

        (void)state;
        assert_refused(ask(&script, 10000, 60000, &list, &error), ECONNREFUSED, error, "or fail");
}

static void a_domain_whose_server_fails_does_not_keep_the_name_itself_from_being_found(void **state)
{
        char text[] = "nameserver " NAME_SERVER_ADDRESS "\nsearch failing.test\noptions ndots:5";
        struct script script = { .code = 2,
                                 .records = 1,
                                 .longest = NAME_SERVER_HEADER + sizeof "server.example" + 1 + 2 * sizeof(uint16_t) };
        struct resolv_conf conf;
        struct address_list list;
        struct error error;

        (void)state;
        resolv_conf_parse(text, &conf);
        assert_int_equal(ask_with(&conf, &script, 60000, &list, &error), 0);
        assert_int_equal(list.count, 2);
}

static void a_domain_whose_server_fails_does_not_keep_the_next_one_from_being_asked(void **state)
{
        char text[] = "nameserver " NAME_SERVER_ADDRESS "\nsearch a.longer.failing.test next.test\noptions ndots:5";
        struct script script = { .code = 2,
                                 .records = 1,
                                 .longest = NAME_SERVER_HEADER + sizeof "server.example.next.test" + 1 +
                                            2 * sizeof(uint16_t) };
        struct resolv_conf conf;
        struct address_list list;
        struct error error;

        (void)state;
        script.shortest = script.longest; /* the name as it is has no address */
        resolv_conf_parse(text, &conf);
        assert_int_equal(ask_with(&conf, &script, 60000, &list, &error), 0);
        assert_int_equal(list.count, 2);
}

static void the_root_is_no_domain_and_Kubernetes_32_are_taken(void **state)
{
        char text[1024] = "search . a.test .. .b.test c..test\n";
        struct resolv_conf conf;

        (void)state;
        resolv_conf_parse(text, &conf);
        assert_int_equal(conf.domain_count, 1);
        assert_string_equal(conf.domains[0], "a.test");
        (void)strcpy(text, "search");
        for (size_t i = 0; i < 40; i++)
                (void)strcat(text, " a.test");
        resolv_conf_parse(text, &conf);
        assert_int_equal(conf.domain_count, 32);
}

static void options_that_are_no_numbers_leave_what_is_usual(void **state)
{
        char text[] = "options ndots: timeout:2s attempts:-1\n";
        char large[] = "options ndots:99 timeout:99999999999999999999 attempts:0\n";
        struct resolv_conf conf;

        (void)state;
        resolv_conf_parse(text, &conf);
        assert_int_equal(conf.ndots, 1);
        assert_int_equal(conf.timeout_ms, 5000);
        assert_int_equal(conf.tries, 2);
        resolv_conf_parse(large, &conf);
        assert_int_equal(conf.ndots, 15);
        assert_int_equal(conf.timeout_ms, 30000);
        assert_int_equal(conf.tries, 1);
}

static void a_server_that_says_nothing_is_ETIMEDOUT(void **state)
{
        struct script script = { .silent = true };
        struct address_list list;
        struct error error;

        (void)state;
        assert_refused(ask(&script, 100, 60000, &list, &error), ETIMEDOUT, error, "no name server answered in time");
        assert_true(script.queries > 0);
}

static void an_answer_after_the_deadline_is_not_waited_for(void **state)
{
        struct script script = { .records = 1, .after_ms = 1500 };
        struct address_list list;
        struct error error;

        (void)state;
        assert_refused(ask(&script, 20000, 200, &list, &error), ETIMEDOUT, error, "no name server answered in time");
        assert_int_equal(list.count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_of_both_families_are_taken),
                cmocka_unit_test(a_list_of_addresses_ends_where_it_is_full),
                cmocka_unit_test(a_name_without_an_address_is_ENOENT),
                cmocka_unit_test(a_server_that_fails_is_ECONNREFUSED),
                cmocka_unit_test(a_domain_whose_server_fails_does_not_keep_the_name_itself_from_being_found),
                cmocka_unit_test(a_domain_whose_server_fails_does_not_keep_the_next_one_from_being_asked),
                cmocka_unit_test(the_root_is_no_domain_and_Kubernetes_32_are_taken),
                cmocka_unit_test(options_that_are_no_numbers_leave_what_is_usual),
                cmocka_unit_test(a_server_that_says_nothing_is_ETIMEDOUT),
                cmocka_unit_test(an_answer_after_the_deadline_is_not_waited_for),
        };

        if (!name_server_alone()) {
                (void)printf("1..0 # there can be no network namespace\n");
                return 0;
        }
        return cmocka_run_group_tests_name("names of name servers", tests, NULL, NULL);
}
