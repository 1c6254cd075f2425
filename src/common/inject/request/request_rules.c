/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "base/json_value.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "state/policy.h"

int request_rules_refuse_nameless(const char *key, struct error *error)
{
        return json_value_refuse(error, key,
                                 "needs a container by its id or its unit: a process ends with its container, and the "
                                 "containers of a pod have another id each time");
}

/*
 * "persist": the container has a name, and the request no secret. A pod's containers have another id each time; what is
 * mounted in them, the pod's author asks for.
 */
static int check_persist(struct request *request, struct error *error)
{
        const struct container_reference *container = &request->container;
        const struct mount_options *options = &request->options;

        request->unwanted = !request->persist && request_key_given(request, "persist");
        if (request->unwanted && container->id == NULL && container->unit == NULL)
                return request_rules_refuse_nameless("persist", error);
        if (!request->persist)
                return 0;
        if (request->source_kind->of_container)
                return json_value_refuse(error, "persist",
                                         "is not for a source in another container, which may be another one by then");
        if (request->id != NULL)
                return json_value_refuse(error, "persist",
                                         "is not for a mount with an \"id\" of your choice: a mount in another "
                                         "container may have it by then");
        if (container->id == NULL && container->unit == NULL)
                return request_rules_refuse_nameless("persist", error);
        for (size_t i = 0; i < options->fs_count; i++)
                if (mount_options_kept(options->fs_options[i]) < strlen(options->fs_options[i]))
                        return fail_because(error, EINVAL, OPERATION_PARSE, "persist",
                                            "persist: the option \"%.*s\" may hold a secret, and secrets are not kept",
                                            (int)strcspn(options->fs_options[i], "="), options->fs_options[i]);
        return 0;
}

/*
 * The daemon opens what is below with the node's rights. Root says so for directories of the node, by "ids", and for none of
 * a container, whose mounts are not root's work.
 */
static bool remaps_one_mount(const struct request *request)
{
        return request->fallback == FALLBACK_REMAP || (request->ids == IDS_REMAP && request->source_kind->of_container);
}

/* What can be said only once every key is known. Also fills in what follows from them. */
int request_rules_apply(struct request *request, struct error *error)
{
        const struct source_kind *kind = request->source_kind;
        int r = request_keys_check(request, error);

        if (r < 0)
                return r;
        if (!request->has_container) /* every key that names it is there, but a side */
                return json_value_refuse(error, "to", "has no \"container\"");
        if (request->fallback == FALLBACK_REMAP && request->ids != IDS_AUTO)
                return json_value_refuse(
                        error, "fallback",
                        "\"remap\" is for \"ids\": \"auto\": any other way is taken, or the call fails");
        if ((request->recursive || request->options.recursive) && remaps_one_mount(request))
                return json_value_refuse(error, "recursive",
                                         "is not for \"remap\" here: the mounts below the source may be of the kernel "
                                         "(proc, sysfs); mount each by a request of its own");
        if (kind->clones && request->options.fs_count > 0)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                    "options: \"%.*s\" is an option of a filesystem, and a bind mounts none",
                                    (int)strcspn(request->options.fs_options[0], "="), request->options.fs_options[0]);
        if (!kind->clones && request->options.recursive)
                return json_value_refuse(error, "options", "\"rbind\" is for mount-bind");
        if (kind->check != NULL)
                r = kind->check(request, error);
        if (r == 0 && request->read_only)
                r = mount_options_add(&request->options, "ro", error);
        request->read_only = request->options.read_only;
        request->recursive = request->recursive || request->options.recursive;
        mount_options_default(&request->options);
        return r < 0 ? r : check_persist(request, error);
}

int request_policy_check(const struct policy *policy, const struct request *request, struct error *error)
{
        const struct source_kind *kind = request->source_kind;
        int r;

        if (policy->section == NULL)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, kind->word,
                                    "%s has no section \"annotations\": annotations may mount nothing", policy->path);
        if (!policy_lists(policy, "kinds", kind->word))
                return policy_forbid(policy, kind->word, "kinds", error);
        if (kind->check_policy != NULL && (r = kind->check_policy(request, policy, error)) < 0)
                return r;
        /* a superblock that the container owns gives its root more than files: whoever wants that says so as root */
        if (request->ids == IDS_USERNS || request->ids == IDS_REMAP)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "ids",
                                    "only root may ask for \"ids\" of this sort; %s cannot allow it", policy->path);
        if (request->fallback == FALLBACK_REMAP)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "fallback",
                                    "only root may ask for \"fallback\": \"remap\"; %s may say so for all annotations",
                                    policy->path);
        if (request->replace) /* what is there may be root's */
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "replace",
                                    "only root may ask for \"replace\"; %s cannot allow it", policy->path);
        return policy_check_options(policy, &request->options, kind->harmless_options,
                                    /* device_file= */ kind->allow != NULL, error);
}
