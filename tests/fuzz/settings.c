/* SPDX-License-Identifier: Apache-2.0 */
/* The administrator's files: config.json, policy.json, profiles.json and a pool's. The first byte chooses which. */
#include "fuzz.h"

#include "provision/profile.h"
#include "state/config.h"
#include "state/policy.h"

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
                        (void)policy_check_server(&policy, "nas", false, &error);
                        (void)policy_check_device(&policy, "/dev/vdb", &error);
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
