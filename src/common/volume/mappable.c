/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/mappable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "daemon/id_mappable.h"
#include "process/log.h"
#include "volume/kinds.h"
#include "volume/mappable_daemon.h"
#include "volume/mappable_exchange.h"
#include "volume/pod_users.h"

static bool is_wanted(const struct volume_call *call)
{
        switch (call->request->id_mappable) {
        case ID_MAPPABLE_ALWAYS:
                return true;
        case ID_MAPPABLE_NEVER:
                return false;
        default:
                return pod_users_are_mapped(call->request->dir);
        }
}

/* The pod of "auto" has a user namespace, and its runtime will fail: it says so, and this why. */
static void tell(struct volume_call *call, const struct error *error)
{
        char *message = call->answer.message;
        size_t length = strlen(message);

        log_say("%s cannot be id-mapped: %s", call->request->dir, error_why(error));
        (void)snprintf(message + length, sizeof call->answer.message - length,
                       "%sthe pod has a user namespace, and its runtime cannot id-map the volume: %.300s",
                       length > 0 ? "; " : "", error_why(error));
}

static int serve(const struct volume_call *call, const struct mount_attributes *attributes, int *mount_fd,
                 struct volume_served *ret_served, struct error *error)
{
        const struct mount_attributes own = { .set = attributes->set,
                                              .clear = attributes->clear,
                                              .propagation = attributes->propagation };
        int fd = volume_mappable_mount(call, *mount_fd, call->request->dir, &own, ret_served, error);

        if (fd < 0)
                return fd;
        fd_close(mount_fd); /* the daemon has its own descriptor */
        *mount_fd = fd;
        return 0;
}

/* Whether the mounts below the source are the pod's, too: remap-daemon serves none. */
static int asks_recursive(const struct volume_call *call, bool *ret_recursive, struct error *error)
{
        *ret_recursive = call->request->mount_options.recursive;
        return *ret_recursive ? 0 : volume_kind_flag(call->request, call->kind->recurses, ret_recursive, error);
}

int volume_mappable_serve(struct volume_call *call, const struct mount_attributes *attributes,
                          volume_mount_function *again, int *mount_fd, struct volume_served *ret_served,
                          struct error *error)
{
        const char *dir = call->request->dir;
        bool recursive;
        int r;

        *ret_served = (struct volume_served){};
        if (!call->kind->any_filesystem)
                return 0;
        ret_served->source_key = volume_mappable_source(call);
        if ((r = asks_recursive(call, &recursive, error)) < 0)
                return r;
        if (!is_wanted(call)) {
                ret_served->waits_for_users = call->request->id_mappable == ID_MAPPABLE_AUTO && !recursive;
                return 0;
        }
        r = id_mappable_try(*mount_fd, dir, recursive, error);
        if (r == 0) { /* the runtime can, too */
                fd_close(mount_fd);
                *mount_fd = again(call, attributes, error);
                return *mount_fd < 0 ? *mount_fd : 0;
        }
        if (r > 0 && recursive)
                r = fail_because(error, EOPNOTSUPP, "id-map", dir,
                                 "a mount below the directory cannot be id-mapped, or the directory's own; without "
                                 "\"recursive\" remap-daemon can serve it");
        else if (r > 0)
                r = serve(call, attributes, mount_fd, ret_served, error);
        if (r == 0 || call->request->id_mappable == ID_MAPPABLE_ALWAYS)
                return r;
        *ret_served =
                (struct volume_served){ .waits_for_users = !recursive, .source_key = volume_mappable_source(call) };
        tell(call, error);
        return 0;
}

int volume_mappable_again(struct volume_call *call, struct mount_dir *place, struct error *error)
{
        bool recursive;
        int r;

        if (!call->kind->any_filesystem || place->remap_key != 0 || !is_wanted(call))
                return 0;
        if ((r = asks_recursive(call, &recursive, error)) < 0 || recursive)
                return r;
        r = volume_mappable_exchange(call, place, /* try_only= */ false, error);
        if (r >= 0 || call->request->id_mappable == ID_MAPPABLE_ALWAYS)
                return r < 0 ? r : 0;
        tell(call, error);
        return 0;
}

int volume_mappable_check(const struct volume_call *call, const struct mount_dir *place, struct error *error)
{
        int r = id_mappable_is_served(call->config.state_dir, place->remap_key, error);

        if (r != 0)
                return r < 0 ? r : 0;
        return fail_because(
                error, ENOTCONN, "find remap-daemon", place->dir,
                "its remap-daemon has exited, and what a pod has there fails; end the pod, or mount it again "
                "for the next one");
}
