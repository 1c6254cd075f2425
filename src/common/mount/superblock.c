/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "process/namespace.h"
#include "process/sealed_child.h"

/*
 * What the context has to say, oldest first, until it is empty. Each read is one message, "e text" for an error, "w"
 * and "i" for less (Documentation/filesystems/mount_api.rst of the kernel).
 */
static int fail_with_messages(int context_fd, int errnum, const char *operation, const char *subject,
                              struct error *error)
{
        char message[256];
        size_t used = 0;
        ssize_t n;

        (void)fail(error, errnum, operation, subject);
        while ((n = read(context_fd, message, sizeof message - 1)) > 0) {
                message[n] = '\0';
                message[strcspn(message, "\n")] = '\0';
                if (used + 3 < sizeof error->kernel)
                        used += (size_t)snprintf(error->kernel + used, sizeof error->kernel - used, "%s%s",
                                                 used > 0 ? "; " : "",
                                                 n > 2 && message[1] == ' ' ? message + 2 : message);
        }
        return -errnum;
}

/*
 * What is on the disk of such a filesystem names other devices, by path or by number, and the kernel opens them; it may
 * be a container's own work. Source: the kernel's fs/f2fs/super.c: f2fs_scan_devices(), fs/jfs/jfs_logmgr.c:
 * lmLogOpen(), fs/reiserfs/journal.c: journal_init_dev().
 */
static const char *const of_other_devices[] = { "f2fs", "bcachefs", "jfs", "reiserfs", NULL };

static int check_type(const char *fs_type, struct error *error)
{
        if (!text_among(fs_type, of_other_devices))
                return 0;
        return fail_because(
                error, EOPNOTSUPP, OPERATION_FSOPEN, fs_type,
                "what is on the disk of a %s can name other devices of the node, which would be opened, too", fs_type);
}

int superblock_open(const char *fs_type, struct error *error)
{
        int r = check_type(fs_type, error);
        int fd = r < 0 ? r : fsopen(fs_type, FSOPEN_CLOEXEC);

        if (r < 0)
                return r;
        if (fd < 0 && errno == ENODEV)
                return fail_because(error, ENODEV, OPERATION_FSOPEN, fs_type,
                                    "this kernel has no filesystem of this type");
        return fd < 0 ? fail(error, errno, OPERATION_FSOPEN, fs_type) : fd;
}

struct open_job {
        const struct container *container;
        const char *fs_type;
};

static int open_in_child(void *argument, struct error *error)
{
        const struct open_job *job = argument;
        int r;

        if ((r = namespace_become_root_of(job->container->user_ns_fd, job->container->name, error)) < 0)
                return r;
        /* fsopen asks for CAP_SYS_ADMIN over the mount namespace we are in, so it has to be the container's */
        if ((r = namespace_enter_mounts(job->container->mnt_ns_fd, job->container->name, error)) < 0)
                return r;
        r = superblock_open(job->fs_type, error);
        return r < 0 ? error_where(error, job->container->name) : r;
}

int superblock_open_owned(const struct container *container, const char *fs_type, struct error *error)
{
        struct open_job job = { .container = container, .fs_type = fs_type };
        const int keep[] = { container->user_ns_fd, container->mnt_ns_fd };

        return sealed_child_run(open_in_child, &job, keep, sizeof keep / sizeof keep[0], error);
}

int superblock_set(int context_fd, const char *name, const char *value, struct error *error)
{
        unsigned command = value == NULL ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;

        if (fsconfig(context_fd, command, name, value, 0) < 0)
                return fail_with_messages(context_fd, errno, OPERATION_FSCONFIG, name, error);
        return 0;
}

int superblock_option(int context_fd, const char *option, struct error *error)
{
        const char *equals = strchr(option, '=');
        char name[256];

        if (equals == NULL)
                return superblock_set(context_fd, option, NULL, error);
        if ((size_t)(equals - option) >= sizeof name)
                return fail(error, EINVAL, OPERATION_FSCONFIG, "an option of more than 255 bytes");
        (void)memcpy(name, option, (size_t)(equals - option));
        name[equals - option] = '\0';
        return superblock_set(context_fd, name, equals + 1, error);
}

int superblock_options(int context_fd, const struct mount_options *options, struct error *error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < options->fs_count; i++)
                if (options->fs_options[i][0] != '\0') /* one that was said in another way */
                        r = superblock_option(context_fd, options->fs_options[i], error);
        return r;
}

int superblock_create(int context_fd, const char *source, struct error *error)
{
        if (fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
                return 0;
        /* xfs says ENOSYS of blocks or sectors that it cannot have here; a kernel without the call failed before */
        return fail_with_messages(context_fd, errno == ENOSYS ? EINVAL : errno, OPERATION_FSCONFIG, source, error);
}

int superblock_create_on(int context_fd, const char *fs_type, const char *device, const struct mount_options *options,
                         bool read_only, struct error *error)
{
        bool errors_said = false;
        int r;

        for (size_t i = 0; i < options->fs_count; i++)
                errors_said = errors_said || text_starts(options->fs_options[i], "errors=");
        if ((r = superblock_set(context_fd, "source", device, error)) < 0 ||
            (r = superblock_options(context_fd, options, error)) < 0 ||
            (!errors_said && text_starts(fs_type, "ext") &&
             (r = superblock_set(context_fd, "errors", "remount-ro", error)) < 0) ||
            (read_only && (r = superblock_set(context_fd, "ro", NULL, error)) < 0))
                return r;
        return superblock_create(context_fd, device, error);
}

int superblock_mount(int context_fd, const char *source, unsigned attributes, struct error *error)
{
        int fd = fsmount(context_fd, FSMOUNT_CLOEXEC, attributes);

        return fd < 0 ? fail_with_messages(context_fd, errno, OPERATION_FSMOUNT, source, error) : fd;
}

int superblock_allow_writing(const char *dir, struct error *error)
{
        cleanup_close int context_fd = fspick(AT_FDCWD, dir, FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT);
        int r;

        if (context_fd < 0)
                return fail(error, errno, OPERATION_FSPICK, dir);
        if ((r = superblock_set(context_fd, "rw", NULL, error)) < 0)
                return r;
        if (fsconfig(context_fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
                return fail_with_messages(context_fd, errno, OPERATION_FSCONFIG, dir, error);
        return 0;
}

int superblock_new_tmpfs(struct error *error)
{
        cleanup_close int context_fd = superblock_open("tmpfs", error);
        int r;

        if (context_fd < 0)
                return context_fd;
        if ((r = superblock_set(context_fd, "size", "64k", error)) < 0 ||
            (r = superblock_set(context_fd, "mode", "0755", error)) < 0 ||
            (r = superblock_create(context_fd, "tmpfs", error)) < 0)
                return r;
        return superblock_mount(context_fd, "tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, error);
}
