/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/reply.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/failure.h"
#include "base/reply.h"
#include "pool/pool_kind.h"
#include "process/log.h"

#define MESSAGE_SIZE ((size_t)(PATH_MAX + 2048))

static void put_message(const struct provision_request *request, const struct error *error, char *ret_message)
{
        static const char *const stories[] = { "cannot create volume", "cannot delete volume",
                                               "cannot list volumes",  "cannot measure the capacity",
                                               "cannot expand volume", "cannot take or restore a snapshot of volume" };
        const char *name = request->name != NULL ? request->name : "";
        bool same = strcmp(name, error->subject) == 0;

        if (!failure_understood(error))
                (void)snprintf(ret_message, MESSAGE_SIZE, FAILURE_NOT_UNDERSTOOD "%s", error_why(error));
        else
                (void)snprintf(ret_message, MESSAGE_SIZE, "%s%s%s: %s%s%s", stories[request->verb],
                               name[0] != '\0' ? " " : "", name, same ? "" : error->subject, same ? "" : ": ",
                               error_why(error));
}

int provision_reply_failure(const struct provision_request *request, const struct error *error)
{
        static char message[MESSAGE_SIZE];

        put_message(request, error, message);
        log_failure("failed: %s", message);
        return failure_say(message, error, pool_kind_hint(error));
}

int provision_reply_complaint(const struct provision_request *request, const struct error *error)
{
        static char message[MESSAGE_SIZE];

        put_message(request, error, message);
        return failure_complain(message, sizeof message, error);
}

#define PROFILES_PROBLEM                                                                                               \
        {                                                                                                              \
                .when = "profilesProblem", .line = "profiles.json was not taken: {profilesProblem}"                    \
        }
#define PROFILES_IGNORED                                                                                               \
        {                                                                                                              \
                .when = "profilesIgnored", .line = "unknown fields of profiles.json: {profilesIgnored}"                \
        }

static const struct people_column pools[] = {
        { "POOL", "name" },
        { "TYPE", "type" },
        { "TOTAL", "total%" },
        { "AVAILABLE", "available%" },
        { "LARGEST", "largest%" },
        { "PROBLEM", "problem" },
        {},
};

static const struct people_column pools_with_profiles[] = {
        { "POOL", "name" },        { "TYPE", "type" },
        { "TOTAL", "total%" },     { "AVAILABLE", "available%" },
        { "LARGEST", "largest%" }, { "PROFILES", "profiles.profile" },
        { "PROBLEM", "problem" },  {},
};

static const struct people_column disks[] = {
        { "DISK", "id" }, { "POOL", "pool" }, { "SIZE", "size%" }, { "PATH", "path" }, {},
};

static const struct people_column volumes[] = {
        { "VOLUME", "name" },          { "POOL", "pool" },       { "SIZE", "size%" },
        { "USED", "used%" },           { "FREE", "free%" },      { "USED AS", "targetType" },
        { "HEALTH", "health" },        { "PROBLEM", "problem" }, { "USED BY", "uses.pod/container/mount" },
        { "AT", "uses.target" },       { "FOR", "uses.since@" }, { "PROFILE", "profile" },
        { "OF", "snapshotOf|copyOf" }, { "PATH", "path" },       {},
};

const struct people_form provision_people_created[] = {
        { .when = "volume,!existed", .line = "made volume {volume.name}, {volume.size%}, in pool {volume.pool}" },
        { .when = "volume,existed", .line = "volume {volume.name}, {volume.size%}, is in pool {volume.pool} already" },
        PROFILES_PROBLEM,
        PROFILES_IGNORED,
        {},
};

const struct people_form provision_people_deleted[] = {
        { .when = "name,existed", .line = "gave volume {name} back to pool {pool} ({reclaimPolicy})" },
        { .when = "name,!existed", .line = "nothing to delete: there is no volume {name}" },
        {},
};

const struct people_form provision_people_listed[] = {
        { .rows = "pools", .columns = pools },
        { .rows = "disks", .columns = disks },
        { .rows = "volumes", .columns = volumes },
        {},
};

const struct people_form provision_people_capacity[] = {
        { .rows = "pools", .columns = pools_with_profiles },
        { .when = "inactiveProfiles", .line = "profiles of volumes that profiles.json lacks: {inactiveProfiles}" },
        PROFILES_PROBLEM,
        PROFILES_IGNORED,
        {},
};

const struct people_form provision_people_expanded[] = {
        { .when = "filesystem", .line = "volume {volume.name} has {volume.size%}, and its {filesystem} all of it" },
        { .when = "volume,!filesystem", .line = "volume {volume.name} has {volume.size%}" },
        {},
};

const struct people_form provision_people_snapshot[] = {
        { .when = "restored", .line = "volume {volume.name} has the content of {restored}" },
        { .when = "volume,!restored,!existed",
          .line = "took snapshot {volume.name} of {volume.snapshotOf}, {volume.size%}" },
        { .when = "volume,!restored,existed",
          .line = "snapshot {volume.name} of {volume.snapshotOf} is there already" },
        {},
};
