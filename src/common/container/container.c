/* SPDX-License-Identifier: Apache-2.0 */
#include "container/container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "container/control_group.h"
#include "container/lookup.h"
#include "container/user_namespace.h"
#include "process/id_ranges.h"
#include "process/proc.h"

#define USER_HZ 100 /* ticks per second of start times, on all of Debian's architectures (sysconf(_SC_CLK_TCK)) */

/* The process has ended or never existed: these cannot be told apart. */
static int fail_gone(const struct container *container, struct error *error)
{
        (void)fail_because(error, ESRCH, OPERATION_PIN_CONTAINER, container->name, "the container is not running");
        return error_where(error, container->name);
}

int container_alive(const struct container *container, struct error *error)
{
        struct pollfd wait = { .fd = container->pidfd, .events = POLLIN };
        uint64_t start_time;
        pid_t pid;
        int r;

        if (container->pidfd >= 0)
                r = ppoll(&wait, 1, &(struct timespec){}, NULL) ==
                                    0 /* a pidfd becomes readable when its process ends */
                            ? 0
                            : -ESRCH;
        else
                r = proc_start_time(container->proc_fd, &start_time, &pid);
        if (r < 0 && r != -ESRCH)
                return container_fail(container, -r, "read", "stat", error);
        return r == 0 ? 0 : fail_gone(container, error);
}

void container_wait_end(const struct container *container, int timeout_ms)
{
        struct pollfd wait = { .fd = container->pidfd, .events = POLLIN };
        struct timespec timeout = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };

        if (container->pidfd >= 0)
                (void)ppoll(&wait, 1, &timeout, NULL); /* the caller checks again in any case */
}

/* Open a link of /proc/PID. A process that has ended, or is a zombie, has none. */
static int open_link(const struct container *container, const char *name, int flags, int *ret_fd, struct error *error)
{
        int fd = openat(container->proc_fd, name, flags | O_CLOEXEC);

        if (fd < 0 && (errno == ENOENT || errno == ESRCH))
                return fail_gone(container, error);
        if (fd < 0 && errno == EACCES) { /* ptrace(2), PTRACE_MODE_READ_FSCREDS */
                (void)fail_because(error, EACCES, OPERATION_PIN_CONTAINER, container->name,
                                   "the kernel does not let this program look into the container");
                return error_where(error, container->name);
        }
        if (fd < 0)
                return container_fail(container, errno, "open", name, error);
        *ret_fd = fd;
        return 0;
}

/* /proc/PID first, then a pidfd: both are the same process if the first still works afterwards (container_alive()). */
static int open_process(struct container *container, const struct container_reference *reference, struct error *error)
{
        char number[32];
        const char *path = reference->proc_dir != NULL ? reference->proc_dir : number;
        uint64_t expected = reference->start_time;
        struct statfs fs;
        pid_t pid;
        int r;

        (void)snprintf(number, sizeof number, "/proc/%d", reference->pid);
        container->proc_fd = sys_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS);
        if (container->proc_fd < 0)
                return errno == ENOENT ? fail_gone(container, error) : fail(error, errno, OPERATION_OPEN, path);
        if (reference->proc_dir == NULL && (r = proc_check_own(container->proc_fd)) < 0)
                return fail_because(error, -r, OPERATION_PIN_CONTAINER, path, "it is not that of the node's /proc");
        if (reference->proc_dir != NULL && (fstatfs(container->proc_fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC))
                return fail_because(error, EINVAL, OPERATION_PIN_CONTAINER, path,
                                    "procDir is not a directory of a procfs");

        r = proc_start_time(container->proc_fd, &container->start_time, &container->pid);
        if (r < 0 && reference->proc_dir != NULL && r != -ESRCH)
                return fail_because(error, EINVAL, OPERATION_PIN_CONTAINER, path,
                                    "procDir is not a process's directory");
        if (r < 0)
                return r == -ESRCH ? fail_gone(container, error) : fail(error, -r, "read", path);
        container->pidfd = pidfd_open(container->pid, 0);
        if (container->pidfd < 0 && reference->proc_dir == NULL)
                return errno == ESRCH ? fail_gone(container, error)
                                      : fail(error, errno, OPERATION_PIDFD_OPEN, container->name);
        if (reference->proc_dir != NULL && container->pidfd >= 0) {
                /* the pid is from another procfs: is it the same process here? */
                cleanup_close int here_fd = proc_open(container->pid);
                uint64_t here = 0;

                if (here_fd < 0 || proc_start_time(here_fd, &here, &pid) < 0 || here != container->start_time)
                        fd_close(&container->pidfd);
        }
        if (expected != 0 && expected != container->start_time)
                return fail_because(error, ESRCH, OPERATION_PIN_CONTAINER, container->name,
                                    "the container is gone: pid %d is another process now", container->pid);
        return 0;
}

/* Whether the namespace of fd is this process's: 1, 0, or negative errno. */
static int is_ours(int fd, enum own_namespace which, struct stat *ret_st)
{
        struct stat ours;
        int r = proc_own_namespace(which, &ours);

        if (r < 0 || fstat(fd, ret_st) < 0)
                return r < 0 ? r : -errno;
        return ret_st->st_ino == ours.st_ino && ret_st->st_dev == ours.st_dev;
}

static int open_namespaces(struct container *container, struct error *error)
{
        struct stat ns = {};
        int r;

        if ((r = open_link(container, "root", O_PATH | O_DIRECTORY, &container->root_fd, error)) < 0 ||
            (r = open_link(container, "ns/mnt", O_RDONLY, &container->mnt_ns_fd, error)) < 0 ||
            (r = open_link(container, "ns/user", O_RDONLY, &container->user_ns_fd, error)) < 0)
                return r;
        r = user_namespace_outermost(&container->user_ns_fd, &container->own_user_ns, &container->map_owner);
        container->foreign_user_ns = r == -EPERM;
        if (r == 0 || r == -EPERM)
                r = is_ours(container->mnt_ns_fd, OWN_MOUNTS, &ns);
        if (r < 0)
                return fail(error, -r, "stat", "/proc/self/ns");
        container->mnt_ns.inode = ns.st_ino;
        if (ioctl(container->mnt_ns_fd, NS_GET_MNTNS_ID, &container->mnt_ns.id) < 0) {
                if (errno != ENOTTY)
                        return fail(error, errno, "ioctl", "mount namespace");
                container->mnt_ns.id = 0; /* before Linux 6.11 */
        }
        if (r > 0)
                return fail_because(error, EINVAL, OPERATION_PIN_CONTAINER, container->name,
                                    "the process is in the node's own mount namespace, so it is not a container");
        return 0;
}

/* Whether a control group's path has the full id of any container. */
static bool names_container(const char *groups)
{
        size_t length;

        for (; *groups != '\0'; groups += length > 0 ? length : 1) {
                length = strspn(groups, "0123456789abcdef");
                if (length == CONTAINER_ID_FULL)
                        return true;
        }
        return false;
}

/*
 * For a runtime that recorded a pid without a start time: is it still the same process? Yes, if its control group's
 * path contains the container's full id, or if it started before the pid was recorded. If it started later, the clock
 * may have been set forward since: of a container that has no full id, only a pid that was recorded before this boot, or a
 * process of another container, is surely not the one.
 */
static int check_unsure(const struct container *container, const struct container_process *known, struct error *error)
{
        static char groups[16384];
        ssize_t n = file_read(container->proc_fd, "cgroup", groups, sizeof groups);
        struct timespec now;
        struct timespec up;
        int64_t booted_s;

        if (n < 0 && n != -EFBIG)
                return n == -ESRCH || n == -ENOENT ? fail_gone(container, error)
                                                   : container_fail(container, (int)-n, "read", "cgroup", error);
        groups[n < 0 ? 0 : n] = '\0'; /* longer: it tells nothing */
        if (known->full_id[0] != '\0' && strstr(groups, known->full_id) != NULL)
                return 0;
        (void)clock_gettime(CLOCK_REALTIME, &now); /* neither can fail for these clocks */
        (void)clock_gettime(CLOCK_BOOTTIME, &up);
        booted_s = now.tv_sec - up.tv_sec - 2; /* both are rounded */
        if (booted_s + (int64_t)(container->start_time / USER_HZ) <= known->written_s ||
            (known->full_id[0] == '\0' && booted_s <= known->written_s && !names_container(groups)))
                return 0;
        return fail_because(error, ESRCH, OPERATION_PIN_CONTAINER, container->name,
                            "the container is gone: pid %d is a process that started after it", container->pid);
}

/*
 * A user may write any process id into the state files of the own containers: it counts only if this user created the
 * user namespace that the process is in, whatever is nested in it, and the one that its mounts belong to: a process may
 * have entered a user namespace alone.
 */
static int check_owner(const struct container *container, const struct container_process *known, struct error *error)
{
        if (known->owner == 0 ||
            (container->own_user_ns && !container->foreign_user_ns && container->map_owner == known->owner &&
             user_namespace_owns(known->owner, container->mnt_ns_fd)))
                return 0;
        return fail_because(error, EPERM, OPERATION_PIN_CONTAINER, container->name,
                            "the state of user %u's container names process %d, which is not in namespaces of this "
                            "user's",
                            known->owner, container->pid);
}

static int look_up(const struct container_reference *reference, struct container_process *ret_process,
                   struct error *error)
{
        const struct container_lookup where = {
                .runtime = reference->runtime,
                .user = reference->user,
                .directories = reference->directories,
                /* any name of a container that is gone, as "db", may be the beginning of a stranger's id */
                .prefix_minimum = reference->runtime != NULL && !reference->whole_id ? 1 : CONTAINER_ID_SHORT_LENGTH,
        };
        char name_space[64];

        if (reference->unit != NULL)
                return unit_find(reference->unit, ret_process, error);
        if (reference->pod == NULL)
                return container_lookup_find(reference->id, &where, ret_process, error);
        (void)snprintf(name_space, sizeof name_space, "%.*s", (int)strcspn(reference->pod, "/"), reference->pod);
        return container_lookup_pod(name_space, strchr(reference->pod, '/') + 1, reference->in_pod, &where, ret_process,
                                    error);
}

/* known: what its creator's files say of it; NULL: the process itself was named. */
static int pin_process(struct container *container, const struct container_reference *process,
                       const struct container_process *known, struct error *error)
{
        int r;

        if ((r = open_process(container, process, error)) < 0 ||
            (known != NULL && known->start_time == 0 && (r = check_unsure(container, known, error)) < 0) ||
            (r = open_namespaces(container, error)) < 0 ||
            (known != NULL && (r = check_owner(container, known, error)) < 0))
                return r;
        return container_alive(container, error);
}

static int pin_named(struct container *container, const struct container_reference *reference, struct error *error)
{
        struct container_process known = {};
        struct container_reference process;
        int r = look_up(reference, &known, error);

        if (r == -ENOENT && reference->or_pid > 0) {
                process = (struct container_reference){ .pid = reference->or_pid };
                return container_pin(&process, container, error);
        }
        if (r < 0)
                return r;
        process = (struct container_reference){ .pid = known.pid, .start_time = known.start_time };
        if ((r = pin_process(container, &process, &known, error)) < 0)
                return r;
        container_identity_make(reference, &known, container->identity);
        container->runtime = known.runtime;
        return 0;
}

int container_pin(const struct container_reference *reference, struct container *ret_container, struct error *error)
{
        cleanup_container struct container container = CONTAINER_NONE;
        int r;

        container_reference_name(reference, container.id, sizeof container.id);
        if (container.id[0] != '\0')
                (void)text_copy(container.name, sizeof container.name, container.id);
        else if (reference->proc_dir != NULL)
                (void)text_copy(container.name, sizeof container.name, reference->proc_dir);
        else
                (void)snprintf(container.name, sizeof container.name, "pid %d", reference->pid);
        if (container_reference_is_named(reference))
                r = pin_named(&container, reference, error);
        else if ((r = pin_process(&container, reference, /* known= */ NULL, error)) == 0 && reference->identity != NULL)
                (void)text_copy(container.identity, sizeof container.identity, reference->identity);
        if (r < 0)
                return r;
        *ret_container = container;
        container = (struct container)CONTAINER_NONE;
        return 0;
}

bool container_same_namespace(const struct namespace_identity *one, const struct namespace_identity *other)
{
        return one->inode == other->inode && one->id == other->id;
}

/*
 * Map an id in place with a process's uid_map or gid_map: inside to outside, or with inside false the inverse. Returns
 * 0, -EINVAL: not mapped, or another negative errno. The process may have nested another user namespace in the
 * container's: its ids on the node are some of the container's all the same.
 */
static int ask_map(int proc_fd, const char *map, bool inside, uint32_t *id)
{
        struct id_range ranges[ID_RANGES_MAX];
        int count = id_ranges_read(proc_fd, map, ranges);

        if (count < 0)
                return count;
        return id_ranges_map(ranges, count, inside, id) ? 0 : -EINVAL;
}

/* ask_map() has failed, with r. */
static int fail_map(const struct container *container, int r, const char *map, struct error *error)
{
        return r == -ESRCH ? fail_gone(container, error) : container_fail(container, -r, "read", map, error);
}

int container_node_id(const struct container *container, const char *map, uint32_t id, uint32_t *ret_node_id,
                      struct error *error)
{
        int r = 0;

        *ret_node_id = id;
        if (container->own_user_ns)
                r = ask_map(container->proc_fd, map, /* inside= */ true, ret_node_id);
        if (r == -EINVAL) {
                (void)fail_because(error, EINVAL, "read uid_map", container->name,
                                   "the container's user namespace has no %s %u: it is not mapped",
                                   map[0] == 'u' ? "user" : "group", id);
                return error_where(error, container->name);
        }
        return r < 0 ? fail_map(container, r, map, error) : 0;
}

int container_read_maps(const struct container *container, struct id_maps *ret_maps, struct error *error)
{
        int r;

        if (!container->own_user_ns) {
                ret_maps->users.count = ret_maps->groups.count = 1;
                ret_maps->users.ranges[0] = ret_maps->groups.ranges[0] =
                        (struct id_range){ .inside = 0, .outside = 0, .count = UINT32_MAX };
                return 0;
        }
        r = user_namespace_read(container->user_ns_fd, container->proc_fd, container->name, ret_maps, error);
        return r < 0 ? error_where(error, container->name) : 0;
}

bool container_same_user_ns(const struct container *one, const struct container *other)
{
        struct stat a;
        struct stat b;

        return fstat(one->user_ns_fd, &a) == 0 && fstat(other->user_ns_fd, &b) == 0 && a.st_ino == b.st_ino &&
               a.st_dev == b.st_dev;
}

int container_root_ids(const struct container *container, uid_t *ret_uid, gid_t *ret_gid, struct error *error)
{
        int r = container_node_id(container, "uid_map", 0, ret_uid, error);

        return r < 0 ? r : container_node_id(container, "gid_map", 0, ret_gid, error);
}

/* Looked at after its maps: a process never returns from a nested namespace. */
static bool is_nested(const struct container *container)
{
        struct stat theirs;
        struct stat st;

        return container->own_user_ns && fstat(container->user_ns_fd, &st) == 0 &&
               fstatat(container->proc_fd, "ns/user", &theirs, 0) == 0 &&
               (st.st_ino != theirs.st_ino || st.st_dev != theirs.st_dev);
}

int container_own_root_ids(const struct container *container, uid_t *ret_uid, gid_t *ret_gid, struct error *error)
{
        static struct id_maps maps;
        int r = container_root_ids(container, ret_uid, ret_gid, error);

        if ((r < 0 && r != -EINVAL) || !is_nested(container))
                return r;
        *ret_uid = *ret_gid = 0;
        if ((r = container_read_maps(container, &maps, error)) < 0)
                return r;
        if (id_ranges_map(maps.users.ranges, maps.users.count, /* inside= */ true, ret_uid) &&
            id_ranges_map(maps.groups.ranges, maps.groups.count, /* inside= */ true, ret_gid))
                return 0;
        (void)fail_because(error, EINVAL, "read uid_map", container->name,
                           "the container's user namespace has no user 0, or no group 0: they are not mapped");
        return error_where(error, container->name);
}

int container_may_change(const struct container *container, uid_t uid, gid_t gid, struct error *error)
{
        int r = 0;

        if (container->own_user_ns)
                r = ask_map(container->proc_fd, "uid_map", /* inside= */ false, &uid);
        if (r == 0 && container->own_user_ns)
                r = ask_map(container->proc_fd, "gid_map", /* inside= */ false, &gid);
        if (r == -EINVAL) {
                (void)fail_because(
                        error, EACCES, "mkdir", container->name,
                        "the owner of the directory is not mapped in the container (uid %u, gid %u on the node)", uid,
                        gid);
                return error_where(error, container->name);
        }
        return r < 0 ? fail_map(container, r, "uid_map and gid_map", error) : 0;
}

void container_release(struct container *container)
{
        fd_close(&container->proc_fd);
        fd_close(&container->pidfd);
        fd_close(&container->root_fd);
        fd_close(&container->mnt_ns_fd);
        fd_close(&container->user_ns_fd);
        free(container->root_prefix);
        container->root_prefix = NULL;
}
