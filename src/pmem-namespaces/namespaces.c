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

struct ndctl_region *namespaces_find_region(struct ndctl_ctx *context, const char *name)
{
        struct ndctl_region *region;
        struct ndctl_bus *bus;

        ndctl_bus_foreach (context, bus)
                ndctl_region_foreach (bus, region)
                        if (namespaces_is_pmem(region) && strcmp(ndctl_region_get_devname(region), name) == 0)
                                return region;
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
