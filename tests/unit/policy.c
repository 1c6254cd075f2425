/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/stat.h>

#include "inject/request/request.h"
#include "inject/request/source.h"
#include "mount/nfs.h"
#include "mount/nfs_options.h"
#include "mount/options.h"
#include "state/policy.h"

static const char *dir;
static char path[96];
static bool is_root;

static int begin(void **state)
{
        (void)state;
        is_root = unit_become_root();
        dir = unit_directory();
        (void)snprintf(path, sizeof path, "%s/policy.json", dir);
        return setenv("FLEXGRAFT_POLICY", path, 1);
}

static int end(void **state)
{
        (void)state;
        return unit_remove(dir);
}

static int load(const char *text, struct policy *policy, struct error *error)
{
        *error = (struct error){};
        *policy = (struct policy){};
        if (!is_root)
                skip(); /* a policy has to be root's, and this machine lets nobody make a user namespace */
        unit_write(path, text);
        return policy_load(policy, "annotations", error);
}

static void without_a_file_nothing_is_allowed(void **state)
{
        cleanup_policy struct policy policy = {};
        struct nfs_server_rule rule;
        struct error error = {};

        (void)state;
        (void)unlink(path);
        assert_int_equal(policy_load(&policy, "annotations", &error), 0);
        assert_refused(policy_check_source(&policy, "/srv", /* writes= */ false, &error), EACCES, error, "/srv");
        assert_refused(policy_server_check(&policy, "nas", /* open= */ false, &rule, &error), EACCES, error, "nas");
}

static void unknown_words_reject_the_file(void **state)
{
        static const char *const broken[] = {
                "{\"annotation\": {}}",
                "{\"annotations\": {\"kind\": [\"bind\"]}}",
                "{\"annotations\": {\"kinds\": \"bind\"}}",
                "{\"annotations\": {\"devices\": []}}", /* of the other section */
                "{\"volumes\": {\"maxMounts\": 1}}",
                "{\"annotations\": {\"raw\": 1}}",
                "{\"annotations\": {\"fallback\": \"host\"}}",
                "{\"annotations\": {\"fallback\": true}}",
                "{\"volumes\": {\"fallback\": \"remap\"}}",
                "{\"annotations\": {\"nfsServers\": [\"10.0.0.0/33\"]}}",
                "{\"annotations\": {\"maxMounts\": -1}}",
                "{\"annotations\": {\"sources\": [\"srv\"]}}",
                "{\"annotations\": {\"sources\": [\"/srv/../etc\"]}}",
                "{\"annotations\": {\"sources\": [{\"path\": \"/srv\", \"write\": true}]}}",
                "{\"annotations\": []}",
                "[]",
                "{",
                ""
        };
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
                cleanup_policy struct policy policy = {};

                if (load(broken[i], &policy, &error) != -EBADMSG)
                        fail_msg("taken: %s", broken[i]);
        }
}

static void a_file_that_others_may_write_to_is_refused(void **state)
{
        cleanup_policy struct policy policy = {};
        cleanup_policy struct policy again = {};
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {}}", &policy, &error), 0);
        assert_int_equal(chmod(path, 0666), 0);
        assert_refused(policy_load(&again, "annotations", &error), EPERM, error, "may write");
        assert_int_equal(unlink(path), 0);
}

static void sources_are_directories_and_what_lies_in_them(void **state)
{
        cleanup_policy struct policy policy = {};
        struct error error;

        (void)state;
        assert_int_equal(
                load("{\"annotations\": {\"sources\": [\"/srv/shared/\", {\"path\": \"/img\", \"readOnly\": true}]}}",
                     &policy, &error),
                0);
        assert_int_equal(policy_check_source(&policy, "/srv/shared", true, &error), 0);
        assert_int_equal(policy_check_source(&policy, "/srv/shared/a/b", true, &error), 0);
        assert_int_equal(policy_check_source(&policy, "/srv/sharedx", true, &error), -EACCES);
        assert_int_equal(policy_check_source(&policy, "/srv", true, &error), -EACCES);
        assert_int_equal(policy_check_source(&policy, "/img/a", false, &error), 0);
        assert_int_equal(policy_check_source(&policy, "/img/a", true, &error), -EACCES);
        assert_true(policy_check_source(&policy, "/srv/shared/../../etc", false, &error) < 0);
}

static void volumes_are_listed_by_patterns(void **state)
{
        cleanup_policy struct policy policy = {};
        cleanup_policy struct policy none = {};
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {\"volumeNames\": [\"web-*\", \"db\"]}}", &policy, &error), 0);
        assert_true(policy_matches(&policy, "volumeNames", "web-1"));
        assert_true(policy_matches(&policy, "volumeNames", "db"));
        assert_false(policy_matches(&policy, "volumeNames", "db2"));
        assert_false(policy_matches(&policy, "volumeNames", "my-web-1"));
        assert_false(policy_matches(&policy, "pools", "fast"));
        assert_int_equal(load("{\"annotations\": {}}", &none, &error), 0);
        assert_false(policy_matches(&none, "volumeNames", "web-1"));
}

static void options_that_only_take_rights_away_need_no_word(void **state)
{
        cleanup_policy struct policy policy = {};
        struct mount_options harmless = {};
        struct mount_options exec = {};
        struct mount_options suid = {};
        struct mount_options shared = {};
        static const char *const given[] = { "exec", "symfollow" };
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {\"options\": [\"shared\", \"acl\"]}}", &policy, &error), 0);
        assert_int_equal(mount_options_add_list(&harmless, "ro,nosuid,nodev,noexec,noatime,acl", &error), 0);
        assert_int_equal(policy_check_options(&policy, &harmless, NULL, false, &error), 0);
        assert_int_equal(mount_options_add_list(&suid, "suid", &error), 0);
        assert_refused(policy_check_options(&policy, &suid, NULL, false, &error), EACCES, error, "suid");
        for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
                struct mount_options options = {};

                assert_int_equal(mount_options_add_list(&options, given[i], &error), 0);
                assert_refused(policy_check_options(&policy, &options, NULL, false, &error), EACCES, error, given[i]);
        }
        assert_int_equal(mount_options_add_list(&shared, "rshared", &error), 0);
        assert_int_equal(policy_check_options(&policy, &shared, NULL, false, &error), 0);
        assert_int_equal(mount_options_add_list(&exec, "size=1m", &error), 0);
        assert_int_equal(policy_check_options(&policy, &exec, mount_options_tmpfs_harmless, false, &error), 0);
        assert_refused(policy_check_options(&policy, &exec, NULL, false, &error), EACCES, error, "size");
        mount_options_release(&harmless);
        mount_options_release(&exec);
        mount_options_release(&suid);
        mount_options_release(&shared);
}

/* Where another machine's answer would be in the container's own name, or elsewhere: never without a word. */
static void nfs_options_that_redirect_need_a_word(void **state)
{
        cleanup_policy struct policy policy = {};
        struct mount_options usual = {};
        struct mount_options redirect = {};
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {}}", &policy, &error), 0);
        assert_int_equal(
                mount_options_add_list(
                        &usual,
                        "vers=4.2,rsize=65536,soft,xprtsec=tls,trunkdiscovery,nosoftreval,rdma,write=eager,sync,async",
                        &error),
                0);
        assert_int_equal(policy_check_options(&policy, &usual, nfs_harmless_options, false, &error), 0);
        assert_int_equal(mount_options_add_list(&redirect, "mountaddr=10.0.0.1", &error), 0);
        assert_refused(policy_check_options(&policy, &redirect, nfs_harmless_options, false, &error), EACCES, error,
                       "mountaddr");
        mount_options_release(&usual);
        mount_options_release(&redirect);
}

/* An address is judged at once, a listed name is the node's to look up, and any other name is judged by its addresses. */
static void servers_are_addresses_or_listed_names(void **state)
{
        static const struct {
                const char *host;
                bool allowed;
                bool listed;
        } cases[] = { { "10.0.0.9", true, false },
                      { "10.0.1.9", false, false },
                      { "::ffff:10.0.0.9", true, false },
                      { "nas.example.org", true, true },
                      { "NAS.Example.org.", true, true },
                      { "db.lan", true, true },
                      { "other.test", true, false },
                      { "10.0.0.1.evil.test", true, false },
                      { "nas.example.org.evil", true, false } };
        cleanup_policy struct policy policy = {};
        cleanup_policy struct policy names = {};
        struct nfs_server_rule rule;
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {\"nfsServers\": [\"10.0.0.*\", \"nas.example.org\", \"*.lan.\"]}}",
                              &policy, &error),
                         0);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                int r = policy_server_check(&policy, cases[i].host, /* open= */ true, &rule, &error);

                if (r != (cases[i].allowed ? 0 : -EACCES) || rule.listed != cases[i].listed || rule.allows == NULL)
                        fail_msg("%s: %d, listed %d", cases[i].host, r, rule.listed);
        }
        assert_int_equal(load("{\"annotations\": {\"nfsServers\": [\"nas\"]}}", &names, &error), 0);
        assert_refused(policy_server_check(&names, "other", /* open= */ true, &rule, &error), EACCES, error, "other");
        assert_refused(policy_server_check(&names, "10.0.0.9", /* open= */ true, &rule, &error), EACCES, error, "10.0");
}

static void a_count_is_bounded(void **state)
{
        cleanup_policy struct policy silent = {};
        cleanup_policy struct policy policy = {};
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {}}", &silent, &error), 0);
        assert_int_equal(policy_check_count(&silent, 32, &error), 0);
        assert_int_equal(policy_check_count(&silent, 33, &error), -EACCES);
        assert_int_equal(load("{\"annotations\": {\"maxMounts\": 2}}", &policy, &error), 0);
        assert_int_equal(policy_check_count(&policy, 2, &error), 0);
        assert_int_equal(policy_check_count(&policy, 3, &error), -EACCES);
}

static void check_request(const struct policy *policy, const struct source_kind *kind, const char *text,
                          const char *forbidden)
{
        const struct source_kind *const sources[] = { kind, NULL };
        cleanup_request struct request request = {};
        char *argv[] = { (char *)"program", (char *)text, NULL };
        struct error error = {};
        int r;

        assert_int_equal(request_parse(&request, REQUEST_MOUNT, sources, 2, argv, &error), 0);
        r = request_policy_check(policy, &request, &error);
        if (forbidden == NULL)
                assert_int_equal(r, 0);
        else
                assert_refused(r, EACCES, error, forbidden);
}

static void requests_are_held_against_kinds_and_rights(void **state)
{
        cleanup_policy struct policy policy = {};
        struct error error;

        (void)state;
        assert_int_equal(load("{\"annotations\": {\"kinds\": [\"bind\", \"block\", \"container-to-container\"],"
                              " \"sources\": [\"/a\"], \"containers\": [\"db\"]}}",
                              &policy, &error),
                         0);
        check_request(&policy, &source_bind, "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\"}", NULL);
        check_request(&policy, &source_tmpfs, "{\"container\": 1, \"target\": \"/b\"}", "tmpfs");
        check_request(&policy, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"replace\": true}", "replace");
        check_request(&policy, &source_bind,
                      "{\"container\": 1, \"source\": \"/a\", \"target\": \"/b\", \"ids\": \"remap\"}", "ids");
        check_request(&policy, &source_block,
                      "{\"container\": 1, \"source\": \"/dev/loop0\", \"target\": \"/b\", \"raw\": true}", "raw");
        check_request(
                &policy, &source_container,
                "{\"from\": {\"container\": \"db\", \"path\": \"/x\"}, \"to\": {\"container\": 2, \"path\": \"/b\"}}",
                NULL);
        check_request(
                &policy, &source_container,
                "{\"from\": {\"container\": \"web\", \"path\": \"/x\"}, \"to\": {\"container\": 2, \"path\": \"/b\"}}",
                "containers");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_file_nothing_is_allowed),
                cmocka_unit_test(unknown_words_reject_the_file),
                cmocka_unit_test(a_file_that_others_may_write_to_is_refused),
                cmocka_unit_test(sources_are_directories_and_what_lies_in_them),
                cmocka_unit_test(volumes_are_listed_by_patterns),
                cmocka_unit_test(options_that_only_take_rights_away_need_no_word),
                cmocka_unit_test(nfs_options_that_redirect_need_a_word),
                cmocka_unit_test(servers_are_addresses_or_listed_names),
                cmocka_unit_test(a_count_is_bounded),
                cmocka_unit_test(requests_are_held_against_kinds_and_rights),
        };

        return cmocka_run_group_tests_name("policy", tests, begin, end);
}
