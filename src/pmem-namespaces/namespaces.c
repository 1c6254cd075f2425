/* SPDX-License-Identifier: Apache-2.0 */
#include "namespaces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int namespaces_complain(const char *what, const char *subject, int r)
{
        (void)fprintf(stderr, "%s %s: %s\n", what, subject,
                      strerror(r < 0 ? -r : r)); /* a failure cannot be reported */
        return 1;
}

bool namespaces_is_pmem(struct ndctl_region *region)
{
        return ndctl_region_get_type(region) == ND_DEVICE_REGION_PMEM && ndctl_region_is_enabled(region);
}

bool namespaces_has_labels(struct ndctl_region *region)
{
        return ndctl_region_get_nstype(region) != ND_DEVICE_NAMESPACE_IO;
}

/* 0: it has none. */
static unsigned long long cookie_of(struct ndctl_region *region)
{
        struct ndctl_interleave_set *set = ndctl_region_get_interleave_set(region);

        return set != NULL && namespaces_is_pmem(region) && namespaces_has_labels(region)
                       ? ndctl_interleave_set_get_cookie(set)
                       : 0;
}

void namespaces_put_identity(struct ndctl_ctx *context, struct ndctl_region *region, char *ret_identity)
{
        const unsigned long long cookie = cookie_of(region);
        struct ndctl_region *other;
        struct ndctl_bus *bus;

        ret_identity[0] = '\0';
        if (cookie == 0)
                return;
        (void)snprintf(ret_identity, NAMESPACES_IDENTITY_SIZE, "%#llx", cookie);
        ndctl_bus_foreach (context, bus)
                ndctl_region_foreach (bus, other)
                        if (other != region && cookie_of(other) == cookie)
                                ret_identity[0] = '\0';
}

struct ndctl_region *namespaces_find_region(struct ndctl_ctx *context, const char *name)
{
        const bool by_identity = strncmp(name, "0x", 2) == 0;
        struct ndctl_region *region;
        struct ndctl_bus *bus;

        ndctl_bus_foreach (context, bus)
                ndctl_region_foreach (bus, region) {
                        char identity[NAMESPACES_IDENTITY_SIZE] = "";

                        if (by_identity)
                                namespaces_put_identity(context, region, identity);
                        if (namespaces_is_pmem(region) &&
                            strcmp(by_identity ? identity : ndctl_region_get_devname(region), name) == 0)
                                return region;
                }
        return NULL;
}

static struct ndctl_namespace *find_namespace(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace;
        struct ndctl_region *region;
        struct ndctl_bus *bus;

        ndctl_bus_foreach (context, bus)
                ndctl_region_foreach (bus, region)
                        ndctl_namespace_foreach (region, namespace)
                                if (strcmp(ndctl_namespace_get_devname(namespace), name) == 0)
                                        return namespace;
        return NULL;
}

/* ndctl_namespace_disable_safe() fails if it is in use. */
static int destroy_namespace(struct ndctl_namespace *namespace)
{
        const char *name = ndctl_namespace_get_devname(namespace);
        int r;

        if (ndctl_namespace_get_size(namespace) == 0)
                return 0;
        if ((r = ndctl_namespace_disable_safe(namespace)) < 0)
                return namespaces_complain("disable", name, r);
        if ((r = ndctl_namespace_delete(namespace)) < 0)
                return namespaces_complain("delete", name, r);
        return 0;
}

int namespaces_destroy(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace = find_namespace(context, name);

        return namespace != NULL ? destroy_namespace(namespace) : 0;
}

int namespaces_lay_open(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_namespace *namespace = find_namespace(context, name);
        int r;

        if (namespace == NULL)
                return namespaces_complain("find namespace", name, ENOENT);
        if ((r = ndctl_namespace_disable_safe(namespace)) < 0)
                return namespaces_complain("disable", name, r);
        if ((r = ndctl_namespace_set_raw_mode(namespace, 1)) < 0 || (r = ndctl_namespace_enable(namespace)) < 0)
                return namespaces_complain("lay open", name, r);
        return 0;
}

int namespaces_tidy(struct ndctl_region *region)
{
        struct ndctl_namespace *namespace;
        struct ndctl_namespace *next;
        int r = 0;

        ndctl_namespace_foreach_safe (region, namespace, next) {
                const char *name = ndctl_namespace_get_alt_name(namespace);

                if (r == 0 && name != NULL && strcmp(name, MAKING) == 0)
                        r = destroy_namespace(namespace);
        }
        return r;
}

int namespaces_tidy_region(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_region *region = namespaces_find_region(context, name);

        return region != NULL ? namespaces_tidy(region) : 0;
}
