/* SPDX-License-Identifier: Apache-2.0 */
#include "process/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/privileges.h"
#include "process/worker.h"

int namespace_enter_mounts(int mnt_ns_fd, const char *container, struct error *error)
{
        if (setns(mnt_ns_fd, CLONE_NEWNS) < 0) {
                (void)fail(error, errno, "setns", "mount namespace");
                return error_where(error, container);
        }
        return 0;
}

int namespace_open_own_mounts(struct error *error)
{
        int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? fail(error, errno, "open", "/proc/self/ns/mnt") : fd;
}

int namespace_enter_user(int user_ns_fd, const char *container, struct error *error)
{
        int parent = getppid();

        privileges_stay_undumpable(); /* before we can be seen in there */
        if (setns(user_ns_fd, CLONE_NEWUSER) < 0) {
                (void)fail(error, errno, "setns", "user namespace");
                return error_where(error, container);
        }
        privileges_stay_undumpable(); /* each change of credentials sets it anew */
        worker_dies_with_parent(parent);
        return 0;
}

int namespace_enter_network(int net_ns_fd, const char *container, struct error *error)
{
        if (setns(net_ns_fd, CLONE_NEWNET) < 0) {
                (void)fail(error, errno, "setns", "network namespace");
                return error_where(error, container);
        }
        return 0;
}

int namespace_become_root_of(int user_ns_fd, const char *container, struct error *error)
{
        int parent = getppid();
        int r = namespace_enter_user(user_ns_fd, container, error);

        if (r < 0)
                return r;
        /* Groups first, then group id, then user id. setgroups may be denied in there (/proc/PID/setgroups), which
         * leaves the node's groups of root, which are not used. The raw system calls: glibc's functions signal all
         * threads. */
        (void)syscall(SYS_setgroups, 0, NULL);
        if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0) {
                (void)fail(error, errno, "setresuid", "the container's root");
                return error_where(error, container);
        }
        privileges_stay_undumpable();
        worker_dies_with_parent(parent);
        return 0;
}

int namespace_new_mounts(struct error *error)
{
        if (unshare(CLONE_NEWNS) < 0)
                return fail(error, errno, OPERATION_UNSHARE, "mount namespace");
        return 0;
}

int namespace_new_hostname(const char *name, struct error *error)
{
        if (unshare(CLONE_NEWUTS) < 0)
                return fail(error, errno, OPERATION_UNSHARE, "UTS namespace");
        return sethostname(name, strlen(name)) < 0 ? fail(error, errno, "sethostname", name) : 0;
}

int namespace_new_user(struct error *error)
{
        int parent = getppid();

        if (unshare(CLONE_NEWUSER) < 0)
                return fail(error, errno, OPERATION_UNSHARE, "user namespace");
        privileges_stay_undumpable();
        worker_dies_with_parent(parent);
        return 0;
}
