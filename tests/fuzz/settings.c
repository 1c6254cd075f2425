/* SPDX-License-Identifier: Apache-2.0 */
/* The administrator's files: config.json, policy.json, profiles.json and a pool's. The first byte chooses which. */
#include "fuzz.h"

#include "network/nfs_server.h"
#include "provision/profile.h"
#include "state/config.h"
#include "state/policy.h"

/* What a policy says of a server does not depend on how its address is written. */
static void check_servers(const struct policy *policy)
{
        static const char *const hosts[] = { "nas", "10.0.0.7", "::ffff:10.0.0.7", "fd00::1", "FD00:0::1" };
        struct nfs_server_rule rule;
        struct error error = {};
        int results[5];

        for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
                results[i] = policy_server_check(policy, hosts[i], false, &rule, &error);
        fuzz_check(results[1] == results[2] && results[3] == results[4]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct profiles profiles = {};
        struct policy policy = {};
        struct config config;
        struct pool pool;
        struct error error = {};
        int r = 0;

        if (size == 0)
                return 0;
        switch (data[0] % 4) {
        case 0:
                (void)setenv("FLEXGRAFT_CONFIG", fuzz_file("config.json", data + 1, size - 1), 1);
                r = config_load(&config, &error);
                break;
        case 1:
                (void)setenv("FLEXGRAFT_POLICY", fuzz_file("policy.json", data + 1, size - 1), 1);
                r = policy_load(&policy, "volumes", &error);
                if (r == 0) {
                        (void)policy_check_source(&policy, "/srv/data", true, &error);
                        check_servers(&policy);
                        (void)policy_check_device(&policy, "/dev/vdb", "/dev/vdb", &error);
                        (void)policy_check_volume(&policy, "loop", /* needs_policy= */ false, &error);
                }
                policy_release(&policy);
                break;
        case 2:
                (void)setenv("FLEXGRAFT_CONFIG", "/nonexistent", 1); /* of the log */
                (void)setenv("FLEXGRAFT_PROFILES", fuzz_file("profiles.json", data + 1, size - 1), 1);
                r = profiles_load(fuzz_directory(), &profiles, &error);
                profiles_release(&profiles);
                break;
        default:
                (void)setenv("FLEXGRAFT_POOLS", fuzz_directory(), 1);
                (void)fuzz_file("fast.json", data + 1, size - 1);
                config = (struct config){};
                (void)strcpy(config.state_dir, fuzz_directory());
                r = pool_find(&config, "fast", &pool, &error);
        }
        if (r < 0)
                fuzz_printable(&error);
        return 0;
}
