/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_calls.c - probes of system calls (host/probes.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscalls.h"
#include "host/probes.h"
#include "mount/detached.h"
#include "mount/in_container.h"
#include "mount/scratch_namespace.h"
#include "mount/superblock.h"
#include "process/sealed_child.h"

static void tell_fd(int fd, const char *call, struct host_finding *ret_finding)
{
        if (fd < 0)
                host_found_call(ret_finding, errno, call);
        else
                host_found(ret_finding, HOST_OK, "tried");
        fd_close(&fd);
}

/* The same of a function with a struct error. */
static void tell(int r, const struct error *error, struct host_finding *ret_finding)
{
        if (r >= 0)
                host_found(ret_finding, HOST_OK, "tried");
        else
                host_found_call(ret_finding, error->errnum, error->operation);
}

void probe_openat2(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        tell_fd(sys_openat2(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS), "openat2", ret_finding);
}

void probe_pidfd(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        tell_fd((int)syscall(SYS_pidfd_open, getpid(), 0), "pidfd_open", ret_finding);
}

/* A range that no descriptor is in. */
void probe_close_range(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (close_range(~0U, ~0U, 0) < 0)
                host_found_call(ret_finding, errno, "close_range");
        else
                host_found(ret_finding, HOST_OK, "tried");
}

void probe_fsopen(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int fd = superblock_new_tmpfs(&error);

        (void)argument;
        tell(fd, &error, ret_finding);
}

void probe_open_tree(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int fd = detached_mount_clone(root_fd, "/", /* recursive= */ false, &error);

        (void)argument;
        tell(fd, &error, ret_finding);
}

static int enter_scratch(void *argument, struct error *error)
{
        int r = scratch_namespace_enter(error);
        int fd;

        (void)argument;
        if (r < 0)
                return r;
        fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? fail(error, errno, "open", ".") : fd;
}

void probe_move_mount(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        cleanup_close int fd = sealed_child_run(enter_scratch, NULL, NULL, 0, &error);

        (void)argument;
        tell(fd, &error, ret_finding);
}

void probe_mount_setattr(const char *argument, struct host_finding *ret_finding)
{
        const struct mount_attributes attributes = { .set = MOUNT_ATTR_NOEXEC };
        struct error error = {};
        cleanup_close int fd = superblock_new_tmpfs(&error);

        (void)argument;
        tell(fd < 0 ? fd : detached_mount_set(fd, "tmpfs", &attributes, /* user_ns_fd= */ -1, &error), &error,
             ret_finding);
}

void probe_beneath(const char *argument, struct host_finding *ret_finding)
{
        int r = in_container_knows_beneath();

        (void)argument;
        if (r == 0)
                host_found(ret_finding, HOST_OK, "the kernel takes the flag");
        else if (r == -ENOSYS)
                host_found(ret_finding, HOST_MISSING, "the kernel does not know the flag");
        else
                host_found_call(ret_finding, -r, "move_mount");
}

void probe_open_tree_attr(const char *argument, struct host_finding *ret_finding)
{
        (void)argument;
        if (sys_open_tree_attr(-EBADF, "", AT_EMPTY_PATH, NULL, 0) < 0 && (errno == ENOSYS || errno == EPERM))
                host_found_call(ret_finding, errno, "open_tree_attr");
        else
                host_found(ret_finding, HOST_OK, "the kernel has the call");
}

void probe_unique_ids(const char *argument, struct host_finding *ret_finding)
{
        struct statx stx = {};

        (void)argument;
        if (statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID_UNIQUE, &stx) < 0)
                host_found_call(ret_finding, errno, "statx");
        else if ((stx.stx_mask & STATX_MNT_ID_UNIQUE) != 0)
                host_found(ret_finding, HOST_OK, "tried on /");
        else
                host_found(ret_finding, HOST_MISSING, "the kernel does not give them");
}

void probe_statmount(const char *argument, struct host_finding *ret_finding)
{
        cleanup_close int ns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        uint64_t id;

        (void)argument;
        if (ns_fd < 0)
                host_found_call(ret_finding, errno, "open");
        else if (ioctl(ns_fd, NS_GET_MNTNS_ID, &id) < 0)
                host_found(ret_finding, HOST_MISSING, "the kernel gives mount namespaces no id");
        else if (sys_statmount(NULL, NULL, 0) < 0 && (errno == ENOSYS || errno == EPERM))
                host_found_call(ret_finding, errno, "statmount");
        else
                host_found(ret_finding, HOST_OK, "the kernel has the call, and ids of mount namespaces");
}

/* That of this program: it has dropped its privileges before. */
void probe_seccomp(const char *argument, struct host_finding *ret_finding)
{
        char mode[16];

        (void)argument;
        if (host_status_field("Seccomp:", mode, sizeof mode) == 0 && strcmp(mode, "2") == 0)
                host_found(ret_finding, HOST_OK, "this program runs under its filter");
        else
                host_found(ret_finding, HOST_MISSING, "this program runs without a filter");
}
