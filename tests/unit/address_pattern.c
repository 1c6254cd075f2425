/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "network/address.h"

static bool matches(const char *pattern, const char *text)
{
        union address address;

        assert_true(address_parse(text, 0, &address));
        return address_pattern_matches(pattern, &address);
}

static void an_address_is_itself_in_every_spelling(void **state)
{
        (void)state;
        assert_true(matches("10.0.0.7", "10.0.0.7"));
        assert_false(matches("10.0.0.7", "10.0.0.70"));
        assert_true(matches("10.0.0.7", "::ffff:10.0.0.7"));
        assert_true(matches("::ffff:10.0.0.7", "10.0.0.7"));
        assert_true(matches("fd00::1", "FD00:0:0::0001"));
        assert_true(matches("[fd00::1]", "fd00::1"));
        assert_true(matches("fe80::1", "fe80::1%1"));
        assert_false(matches("fd00::1", "fd00::2"));
        assert_false(matches("10.0.0.7", "::10.0.0.7"));
}

static void a_network_is_judged_by_its_bits(void **state)
{
        (void)state;
        assert_true(matches("10.0.0.0/8", "10.255.0.1"));
        assert_false(matches("10.0.0.0/8", "11.0.0.1"));
        assert_true(matches("10.64.0.0/10", "10.127.255.255"));
        assert_false(matches("10.64.0.0/10", "10.128.0.0"));
        assert_true(matches("10.0.0.7/32", "10.0.0.7"));
        assert_false(matches("10.0.0.6/32", "10.0.0.7"));
        assert_true(matches("10.0.0.9/31", "10.0.0.8"));
        assert_true(matches("0.0.0.0/0", "192.0.2.1"));
        assert_false(matches("0.0.0.0/0", "2001:db8::1"));
        assert_true(matches("fd00::/8", "fdff::1"));
        assert_false(matches("fd00::/8", "fe00::1"));
        assert_true(matches("2001:db8::/33", "2001:db8:7fff::1"));
        assert_false(matches("2001:db8::/33", "2001:db8:8000::1"));
        assert_true(matches("::ffff:10.0.0.0/104", "10.9.9.9"));
        assert_false(matches("::ffff:10.0.0.0/104", "11.9.9.9"));
        assert_false(matches("::/0", "10.0.0.1"));
}

static void wildcards_are_matched_with_the_address(void **state)
{
        (void)state;
        assert_true(matches("10.0.0.*", "10.0.0.1"));
        assert_false(matches("10.0.0.*", "10.0.1.1"));
        assert_true(matches("10.0.0.[1-3]", "10.0.0.3"));
        assert_false(matches("10.0.0.[1-3]", "10.0.0.4"));
        assert_true(matches("fd00:*", "FD00::9"));
        assert_true(matches("*", "10.0.0.1"));
        assert_true(matches("*", "fd00::1"));
        assert_false(matches("*a*", "fd00::a"));
        assert_false(matches("*.test", "10.0.0.1"));
}

static void the_unspecified_addresses_match_nothing(void **state)
{
        (void)state;
        assert_false(matches("*", "0.0.0.0"));
        assert_false(matches("0.0.0.0/0", "0.0.0.0"));
        assert_false(matches("::", "::"));
        assert_false(matches("*", "::ffff:0.0.0.0"));
}

static void names_are_no_patterns_of_addresses(void **state)
{
        static const char *const names[] = {
                "nas", "nas.example.org", "*.example.org", "10.0.0.1.evil.test", "nas[0-9]", "dead.beef",
                "a*",  "0x7f000001"
        };
        static const char *const addresses[] = { "10.0.0.1",   "fd00::1", "10.*",    "*",
                                                 "10.0.0.0/8", "fd00:*",  "1.2.3.?", "x/8" };

        (void)state;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (address_pattern_is(names[i]))
                        fail_msg("an address: %s", names[i]);
        for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
                if (!address_pattern_is(addresses[i]))
                        fail_msg("a name: %s", addresses[i]);
}

static void a_slash_makes_a_network_or_nothing(void **state)
{
        static const char *const broken[] = { "10.0.0.0/33", "10.0.0.0/",          "10.0.0/8",     "/8",
                                              "nas/8",       "fd00::/129",         "10.0.0.0/-1",  "10.0.0.0/8x",
                                              "10.0.0.0/ 8", "::ffff:10.0.0.0/90", "fe80::1%1/64", "10.0.0.0/8/8",
                                              "010.0.0.0/8" };

        (void)state;
        assert_true(address_pattern_valid("10.0.0.0/8"));
        assert_true(address_pattern_valid("fd00::/128"));
        assert_true(address_pattern_valid("nas.example.org"));
        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
                if (address_pattern_valid(broken[i]) || matches(broken[i], "10.0.0.1"))
                        fail_msg("taken: %s", broken[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_address_is_itself_in_every_spelling),
                cmocka_unit_test(a_network_is_judged_by_its_bits),
                cmocka_unit_test(wildcards_are_matched_with_the_address),
                cmocka_unit_test(the_unspecified_addresses_match_nothing),
                cmocka_unit_test(names_are_no_patterns_of_addresses),
                cmocka_unit_test(a_slash_makes_a_network_or_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
