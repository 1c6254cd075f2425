/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_directory.h"

#include <stdio.h>
#include <string.h>

#include "base/project_quota.h"
#include "base/text.h"

#define IDENTITY "project "

/* The directory has its project before that has a limit: remove() finds the limit by the directory. */
int pool_project_assign(int fd, const struct provision_record *record, char *ret_identity, struct error *error)
{
        uint32_t project;
        int r;

        ret_identity[0] = '\0';
        if (!project_quota_is_on(fd))
                return 0;
        if ((r = project_choose(fd, &project)) < 0)
                return fail(error, -r, "choose a project", record->id);
        if ((r = project_give(fd, project)) < 0)
                return fail(error, -r, "set project", record->id);
        (void)snprintf(ret_identity, PROVISION_IDENTITY_MAX, IDENTITY "%u", project);
        r = project_quota_limit(fd, project, record->size_bytes, /* inodes= */ 0);
        return r < 0 ? fail(error, -r, "set limit", record->id) : 0;
}

int pool_project_grow(int fd, const struct provision_record *record, uint64_t size_bytes, struct error *error)
{
        char identity[PROVISION_IDENTITY_MAX];
        struct project_use use;
        uint32_t project;
        int r;

        if (!project_quota_is_on(fd))
                return 0;
        if ((r = project_read(fd, &project)) < 0)
                return fail(error, -r, "read project", record->id);
        if (!text_starts(record->identity, IDENTITY)) { /* it was made without one, or adopted */
                if (project == PROJECT_NONE || (r = project_quota_read(fd, project, &use)) < 0 || !use.limits)
                        return r < 0 ? fail(error, -r, "read limit", record->id) : 0;
                return fail_because(error, EOPNOTSUPP, "set limit", record->id,
                                    "it was adopted with the limit of project %u, which flexgraft does not change",
                                    project);
        }
        (void)snprintf(identity, sizeof identity, IDENTITY "%u", project);
        if (strcmp(identity, record->identity) != 0)
                return fail_because(error, EINVAL, "set limit", record->id,
                                    "its directory has %s now, and was given %s: a process of the node changed it",
                                    identity, record->identity);
        r = project_quota_limit(fd, project, size_bytes, /* inodes= */ 0);
        return r < 0 ? fail(error, -r, "set limit", record->id) : 0;
}
