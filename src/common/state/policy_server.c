/* SPDX-License-Identifier: Apache-2.0 */
#include "state/policy.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "network/address.h"
#include "network/nfs_server.h"

#define KEY "nfsServers"

static bool allows_address(const void *argument, const union address *address)
{
        const json_t *item;
        size_t i;

        json_array_foreach ((const json_t *)argument, i, item)
                if (address_pattern_matches(json_string_value(item), address))
                        return true;
        return false;
}

/* A name without the dot that ends it: "nas.example.org." is the same host. */
static bool copy_name(const char *name, char *ret_name, size_t size)
{
        size_t length = strlen(name);

        if (!text_copy(ret_name, size, name))
                return false;
        if (length > 1 && ret_name[length - 1] == '.')
                ret_name[length - 1] = '\0';
        return true;
}

static bool lists_name(const json_t *servers, const char *host)
{
        char name[NFS_HOST_SIZE];
        char pattern[NFS_HOST_SIZE];
        const json_t *item;
        size_t i;

        if (!copy_name(host, name, sizeof name))
                return false;
        json_array_foreach (servers, i, item) {
                const char *text = json_string_value(item);

                if (!address_pattern_is(text) && copy_name(text, pattern, sizeof pattern) &&
                    fnmatch(pattern, name, FNM_CASEFOLD) == 0)
                        return true;
        }
        return false;
}

static bool has_addresses(const json_t *servers)
{
        const json_t *item;
        size_t i;

        json_array_foreach (servers, i, item)
                if (address_pattern_is(json_string_value(item)))
                        return true;
        return false;
}

int policy_server_check(const struct policy *policy, const char *host, bool open, struct nfs_server_rule *ret_rule,
                        struct error *error)
{
        const json_t *servers = json_object_get(policy->section, KEY);
        union address address;
        bool allowed;

        *ret_rule = (struct nfs_server_rule){};
        if (servers == NULL && open)
                return 0;
        *ret_rule = (struct nfs_server_rule){ .allows = allows_address, .argument = servers };
        if (address_parse(host, 0, &address))
                allowed = allows_address(servers, &address);
        else {
                ret_rule->listed = lists_name(servers, host);
                allowed = ret_rule->listed || has_addresses(servers);
        }
        return allowed ? 0 : policy_forbid(policy, host, KEY, error);
}
