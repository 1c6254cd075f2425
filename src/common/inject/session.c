/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sort.h"
#include "base/syscalls.h"
#include "container/reference.h"
#include "process/namespace.h"
#include "process/proc.h"
#include "process/sealed_child.h"
#include "state/config.h"
#include "state/mount_record.h"

void session_init(struct session *session, bool dry_run, const struct policy *policy, const char *created_root)
{
        session->state = (struct state)STATE_NONE;
        session->wishes = (struct state)STATE_NONE;
        session->dry_run = dry_run;
        session->policy = policy;
        session->created_root = created_root;
        session->node_mnt_ns_fd = -EBADF;
}

struct root_job {
        const struct container *container;
        const char *path;
};

/* In a sealed child: opens the root directory in the mount namespace that the runtime is setting up. */
static int open_root_in_child(void *argument, struct error *error)
{
        const struct root_job *job = argument;
        int r = namespace_enter_mounts(job->container->mnt_ns_fd, job->container->name, error);
        int fd;

        if (r < 0)
                return r;
        fd = sys_openat2(AT_FDCWD, job->path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
        return fd < 0 ? container_fail(job->container, errno, OPERATION_OPEN_ROOT, job->path, error) : fd;
}

/*
 * At createRuntime and prestart the container's process has its namespaces, but its root is still the node's: a mount
 * beneath that disappears with pivot_root. Its future root is mounted at the bundle's root directory; that path is
 * looked up in its mount namespace (docs/KERNEL.md#oci-hooks).
 */
static int enter_root(struct container *container, const char *path, struct error *error)
{
        struct root_job job = { .container = container, .path = path };
        const int keep[] = { container->mnt_ns_fd };
        int fd = sealed_child_run(open_root_in_child, &job, keep, 1, error);
        char prefix[PATH_MAX];
        char link[64];
        ssize_t n;

        if (fd < 0)
                return fd;
        fd_close(&container->root_fd);
        container->root_fd = fd;
        /* as in its mount table: links resolved, slashes normal */
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, prefix, sizeof prefix);
        if (n < 0)
                return fail(error, errno, "readlink", path);
        container->root_prefix = strndup(prefix, (size_t)n);
        return container->root_prefix == NULL ? fail(error, ENOMEM, "readlink", path) : 0;
}

int session_pin(struct session *session, const struct container_reference *reference, struct container **ret_container,
                struct error *error)
{
        struct container *container = &session->containers[session->container_count];
        struct container_reference named = *reference;
        int r;

        for (size_t i = 0; i < session->container_count; i++)
                if (container_reference_same(session->references[i], reference)) {
                        *ret_container = &session->containers[i];
                        return 0;
                }
        if (session->container_count == SESSION_CONTAINERS_MAX)
                return fail_because(error, E2BIG, OPERATION_PIN_CONTAINER, "the request",
                                    "more than %d containers in one call", SESSION_CONTAINERS_MAX);
        if (session->policy != NULL) { /* it lists containers by their ids, not processes */
                named.or_pid = 0;
                named.whole_id = true;
        }
        *container = (struct container)CONTAINER_NONE;
        r = named_container_pin(&named, container, error);
        if (r == 0 && session->created_root != NULL && reference->created)
                r = enter_root(container, session->created_root, error);
        if (r < 0) {
                container_release(container);
                return r;
        }
        session->references[session->container_count++] = reference;
        *ret_container = container;
        return 0;
}

int session_open_state(struct session *session, struct error *error)
{
        int r;

        if (session->state.dir_fd >= 0 || session->boot_id[0] != '\0')
                return 0;
        r = proc_boot_id(session->boot_id);
        if (r < 0)
                return fail(error, -r, "read", "boot_id");
        if ((r = config_state_dir(session->state_dir, error)) < 0)
                return r;
        r = mount_record_open(session->state_dir, /* create= */ !session->dry_run, &session->state, error);
        return r == -ENOENT && session->dry_run ? 0 : r;
}

static int compare_keys(const void *one, const void *other, const void *context)
{
        const uint64_t a = *(const uint64_t *)one;
        const uint64_t b = *(const uint64_t *)other;

        (void)context;
        return (a > b) - (a < b);
}

int session_lock(struct session *session, uint64_t *keys, size_t count, struct error *error)
{
        int r = 0;

        if (session->dry_run)
                return 0;
        sort_few(keys, count, sizeof *keys, compare_keys, NULL);
        for (size_t i = 0; r == 0 && i < count; i++)
                if (i == 0 || keys[i] != keys[i - 1])
                        r = state_lock(&session->state, keys[i], error);
        return r;
}

int session_save_namespace(struct session *session, struct error *error)
{
        if (session->node_mnt_ns_fd >= 0)
                return 0;
        session->node_mnt_ns_fd = namespace_open_own_mounts(error);
        return session->node_mnt_ns_fd < 0 ? session->node_mnt_ns_fd : 0;
}

int session_restore_namespace(const struct session *session, struct error *error)
{
        return namespace_enter_mounts(session->node_mnt_ns_fd, "node", error);
}

void session_release(struct session *session)
{
        for (size_t i = 0; i < session->container_count; i++)
                container_release(&session->containers[i]);
        session->container_count = 0;
        state_release(&session->state);
        state_release(&session->wishes);
        fd_close(&session->node_mnt_ns_fd);
}
