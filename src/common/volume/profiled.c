/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/provisioned.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "pool/record.h"
#include "provision/provision.h"
#include "volume/kind.h"

/* What a profile says itself, or volume-create chooses. */
static int check_alone(const struct volume_call *call, struct error *error)
{
        const char *text;
        int r;

        for (const struct volume_option *option = call->kind->options; option->key != NULL; option++) {
                if (!option->profiled)
                        continue;
                if ((r = volume_request_option(call->request, option->key, &text, error)) < 0)
                        return r;
                if (text != NULL)
                        return fail_because(error, EINVAL, "check options", option->key,
                                            "\"%s\" is for a volume without a \"profile\"", option->key);
        }
        return 0;
}

void profiled_tell(struct volume_call *call, const char *problem)
{
        char *message = call->answer.message;
        size_t length = strlen(message);

        if (problem[0] != '\0')
                (void)snprintf(message + length, sizeof call->answer.message - length, "%s" PROFILES_REJECTED "%s",
                               length > 0 ? "; " : "", problem);
}

static int make(struct volume_call *call, const char *profile, struct error *error)
{
        const struct volume_request *request = call->request;
        struct provision_request wanted = { .verb = PROVISION_CREATE,
                                            .name = request->name,
                                            .profile = profile,
                                            .target_type = "mount",
                                            .fs_type = request->fs_type[0] != '\0' ? request->fs_type : NULL,
                                            .pool_types = call->kind->pool_types };
        char problem[PROFILES_PROBLEM_SIZE];
        int r;

        if ((r = volume_request_option(request, "pool", &wanted.pool, error)) < 0 ||
            (r = volume_request_size(request, "size", &wanted.size_bytes, error)) < 0)
                return r;
        if (strlen(request->name) >= PROVISION_NAME_MAX)
                return fail_because(error, ENAMETOOLONG, "make volume", request->name,
                                    "the volume's name is longer than %d bytes", PROVISION_NAME_MAX - 1);
        if (wanted.size_bytes == 0)
                return fail_because(error, ENOENT, "find volume", request->name,
                                    "there is no such volume; set \"size\" to make one of profile \"%.128s\"", profile);
        if ((r = provision_make(&call->config, &wanted, problem, error)) == 0)
                profiled_tell(call, problem);
        return r;
}

int profiled_ensure(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        const char *name = call->request->name;
        const char *profile;
        int r;

        if (call->kind->pool_types == NULL)
                return 0; /* it has no such option, or makes its volumes itself */
        if ((r = volume_request_option(call->request, "profile", &profile, error)) < 0 || profile == NULL)
                return r;
        if ((r = check_alone(call, error)) < 0)
                return r;
        r = provision_record_find(call->config.state_dir, name, &record, error);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && strcmp(record.profile, profile) != 0)
                return fail_because(error, EINVAL, "find volume", name,
                                    "the volume is of %s%.128s, not of profile %.128s",
                                    record.profile[0] != '\0' ? "profile " : "no profile", record.profile, profile);
        if (r == 0 && record.lifecycle != PROVISION_CREATING)
                return 0; /* provisioned_find() refuses one that is being deleted */
        if (!call->kind->makes_volumes)
                return fail_because(error, ENOENT, "find volume", name,
                                    "there is no volume of profile \"%.128s\" of this name; make it with volume-create",
                                    profile);
        return call->request->verb == VERB_MOUNT ? 0 : make(call, profile, error); /* mount comes after attach */
}
