/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/upgrade.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges/remap-daemon.h"

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/file.h"
#include "base/text.h"
#include "daemon/remap.h"
#include "process/proc.h"
#include "process/program.h"
#include "state/state_dir.h"

#define KEEPER "remap-keeper"
#define PROGRAM "remap-daemon"
#define CONTROL_GROUPS "/sys/fs/cgroup"
#define GROUPS_SIZE 16384
#define ENDS_MS 5000 /* how long a keeper that has handed over may take to end */

/* ---- find them */

struct search {
        struct stat lock_file;
        struct stat program;
        struct stat users; /* own namespaces */
        struct stat pids;
        upgrade_function *function;
        void *argument;
};

static bool is_same(int proc_fd, const char *link, const struct stat *wanted)
{
        struct stat st;

        return fstatat(proc_fd, link, &st, 0) == 0 && st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
}

/* A number of /proc/PID/status. */
static bool read_number(const char *status, const char *name, int base, uint64_t *ret_number)
{
        const char *found = strstr(status, name);

        if (found == NULL)
                return false;
        *ret_number = strtoull(found + strlen(name), NULL, base);
        return true;
}

/* Gives: whether it may do less than the installed program may: that is not started for it. */
static bool has_privileges(int proc_fd, bool *ret_less)
{
        uint64_t wanted = 0;
        uint64_t permitted = 0;
        uint64_t sealed = 0;
        uint64_t filter = 0;
        char status[8192];

        for (int i = 0; i < PRIVILEGES.capability_count; i++)
                wanted |= UINT64_C(1) << PRIVILEGES.capabilities[i];
        wanted &= ~(UINT64_C(1) << CAP_SYS_PTRACE); /* given up, by the new one too, where nobody has to be looked at */
        if (file_read(proc_fd, "status", status, sizeof status) <= 0 ||
            strstr(status, "\nUid:\t0\t0\t0\t0\n") == NULL || !read_number(status, "\nCapPrm:", 16, &permitted) ||
            !read_number(status, "\nNoNewPrivs:", 10, &sealed) || sealed != 1 ||
            !read_number(status, "\nSeccomp:", 10, &filter) || filter != 2)
                return false;
        *ret_less = (permitted & wanted) != wanted;
        return true;
}

static bool is_keeper(const struct search *search, int proc_fd, bool *ret_less)
{
        char name[32];

        return file_read(proc_fd, "comm", name, sizeof name) > 0 && strcmp(name, KEEPER "\n") == 0 &&
               is_same(proc_fd, "ns/pid", &search->pids) && is_same(proc_fd, "ns/user", &search->users) &&
               has_privileges(proc_fd, ret_less) && is_same(proc_fd, "fd/6", &search->lock_file);
}
_Static_assert(FD_LOCK == 6 && FD_CONTAINER == 5 && FD_MEMORY == 9, "the paths here");

/* Its version stays "" where it has no such memory. */
static void read_version(int proc_fd, char *ret_version)
{
        cleanup_close int fd = -EBADF;
        struct keeper_header header;
        char link[64];
        ssize_t n = readlinkat(proc_fd, "fd/9", link, sizeof link - 1);

        /* no other file is looked at, or opened: its server may not answer */
        link[n > 0 ? n : 0] = '\0';
        if (!text_starts(link, "/memfd:remap"))
                return;
        fd = openat(proc_fd, "fd/9", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
            memcmp(header.magic, KEEPER_MAGIC, sizeof header.magic) != 0 || header.protocol != KEEPER_PROTOCOL)
                return;
        header.version[sizeof header.version - 1] = '\0';
        (void)text_copy(ret_version, KEEPER_VERSION_SIZE, header.version); /* of the same size */
}

static pid_t read_container(int proc_fd)
{
        char link[64];
        ssize_t n = readlinkat(proc_fd, "fd/5", link, sizeof link - 1);
        long pid;

        link[n > 0 ? n : 0] = '\0';
        if (!text_starts(link, "/proc/"))
                return 0;
        pid = strtol(link + strlen("/proc/"), NULL, 10);
        return pid > 1 ? (pid_t)pid : 0;
}

/* A program that was replaced by its own install has no name any more: what runs of it is all that there is. */
static bool is_installed(int proc_fd)
{
        struct stat st;

        return fstatat(proc_fd, "exe", &st, 0) == 0 && st.st_nlink > 0;
}

static int look_at(const struct search *search, pid_t pid, struct error *error)
{
        struct upgrade_mount mount = { .pid = pid };
        cleanup_close int proc_fd = -EBADF;
        cleanup_close int pidfd = -EBADF;

        proc_fd = proc_open(pid);
        if (proc_fd < 0 || !is_keeper(search, proc_fd, &mount.less))
                return 0;
        pidfd = pidfd_open(pid, 0);
        /* the directory in /proc is of this process, and no other one that had its number before */
        if (pidfd < 0 || !is_keeper(search, proc_fd, &mount.less))
                return 0;
        mount.pidfd = pidfd;
        mount.container = read_container(proc_fd);
        read_version(proc_fd, mount.version);
        /* a driver's install and a package have a program each: the older one takes nothing from the newer */
        mount.current = is_same(proc_fd, "exe", &search->program) ||
                        (strverscmp(mount.version, VERSION) > 0 && is_installed(proc_fd));
        return search->function(&mount, search->argument, error);
}

/* All at first: an upgrade makes other keepers. The caller frees them. */
static int list_keepers(const struct search *search, pid_t **ret_pids, size_t *ret_count, struct error *error)
{
        DIR *list = opendir("/proc");
        const struct dirent *entry;

        if (list == NULL)
                return fail(error, errno, OPERATION_OPEN, "/proc");
        while ((entry = readdir(list)) != NULL) {
                pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
                cleanup_close int proc_fd = pid > 0 ? proc_open(pid) : -EBADF;
                pid_t *more;
                bool less;

                if (proc_fd < 0 || !is_keeper(search, proc_fd, &less))
                        continue;
                more = reallocarray(*ret_pids, *ret_count + 1, sizeof pid);
                if (more == NULL)
                        break; /* those that were found are some */
                *ret_pids = more;
                more[(*ret_count)++] = pid;
        }
        (void)closedir(list); /* only read */
        return 0;
}

static int search_all(const struct search *search, struct error *error)
{
        pid_t *pids = NULL;
        size_t count = 0;
        int r = list_keepers(search, &pids, &count, error);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = look_at(search, pids[i], error);
        free(pids);
        return r;
}

int upgrade_each(const char *state_dir, upgrade_function *function, void *argument, struct error *error)
{
        struct search search = { .function = function, .argument = argument };
        cleanup_state struct state state = STATE_NONE;
        char path[PATH_MAX + 64];
        struct stat init;
        uint64_t pid_ns;
        int r;

        if ((r = proc_pid_namespace(&pid_ns)) < 0 || (r = proc_own_namespace(OWN_PIDS, &search.pids)) < 0 ||
            (r = proc_own_namespace(OWN_USERS, &search.users)) < 0)
                return fail(error, -r, OPERATION_READ, "/proc");
        /* without it no process here would be seen to be a keeper */
        if (stat("/proc/1/ns/user", &init) < 0)
                return fail_because(error, EPERM, OPERATION_CAPSET, "root",
                                    "this program needs root, with its capabilities");
        if (!program_find_sibling(PROGRAM, path) || stat(path, &search.program) < 0)
                return fail_because(error, ENOENT, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    PROGRAM " is neither in this program's directory nor in ../libexec/flexgraft");
        r = state_open(state_dir, "mounts", /* create= */ false, &state, error);
        if (r == -ENOENT)
                return 0; /* nor is there a lock in it */
        if (r < 0)
                return r;
        if ((r = state_lock_file(&state, &search.lock_file)) < 0)
                return r == -ENOENT ? 0 : fail(error, -r, "stat", "the file of locks");
        return search_all(&search, error);
}

/* ---- take the place of one */

static int read_of(pid_t pid, const char *file, char *ret_text, size_t size, struct error *error)
{
        char path[64];
        ssize_t n;

        (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
        n = file_read(AT_FDCWD, path, ret_text, size);
        return n < 0 ? fail(error, (int)-n, OPERATION_READ, path) : 0;
}

static int write_to(const char *path, const char *text, struct error *error)
{
        cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return fail(error, errno, "write", path);
        return 0;
}

/* A line of /proc/PID/cgroup, "NUMBER:HIERARCHY:PATH": the heir goes to that group. */
static int enter_group(char *line, pid_t heir, struct error *error)
{
        char *hierarchy = strchr(line, ':');
        char *group = hierarchy != NULL ? strchr(hierarchy + 1, ':') : NULL;
        char path[PATH_MAX];
        char pid[16];

        if (group == NULL)
                return fail(error, EPROTO, OPERATION_READ, "cgroup");
        *group++ = '\0';
        hierarchy++;
        if (text_starts(hierarchy, "name="))
                hierarchy += strlen("name=");
        else if (*hierarchy == '\0' && access(CONTROL_GROUPS "/cgroup.procs", F_OK) < 0)
                hierarchy = (char *)"unified"; /* beside those of version 1 */
        (void)snprintf(pid, sizeof pid, "%d", heir);
        if (snprintf(path, sizeof path, CONTROL_GROUPS "/%s%s/cgroup.procs", hierarchy, group) >= (int)sizeof path)
                return fail(error, ENAMETOOLONG, "write", group);
        return write_to(path, pid, error);
}

/* What is in the control group of whoever runs the upgrade, as a service of the package manager's, ends with that. */
static int enter_groups(pid_t keeper, pid_t heir, struct error *error)
{
        static char wanted[GROUPS_SIZE];
        static char now[GROUPS_SIZE];
        char *rest_of_now = now;
        char *rest = wanted;
        char *line;
        int r;

        if ((r = read_of(keeper, "cgroup", wanted, sizeof wanted, error)) < 0 ||
            (r = read_of(heir, "cgroup", now, sizeof now, error)) < 0)
                return r;
        while ((line = strsep(&rest, "\n")) != NULL) {
                const char *same = strsep(&rest_of_now, "\n");

                /* both lists have the same hierarchies, in the same order */
                if ((same == NULL || strcmp(line, same) != 0) && (r = enter_group(line, heir, error)) < 0)
                        return r;
        }
        return 0;
}

/* Returns 0, or -1 and errno. */
static int limit_alike(int resource, pid_t keeper, pid_t heir)
{
        struct rlimit wanted;
        struct rlimit now;

        if (prlimit(keeper, resource, NULL, &wanted) < 0 || prlimit(heir, resource, NULL, &now) < 0)
                return -1;
        if (now.rlim_cur == wanted.rlim_cur && now.rlim_max == wanted.rlim_max)
                return 0;
        return prlimit(heir, resource, &wanted, NULL);
}

/* As the old one was: what they may use, and when they end. */
static int live_alike(pid_t keeper, pid_t heir, struct error *error)
{
        char path[64];
        char wanted[16];
        char now[16];
        int r;

        for (int i = 0; i < (int)RLIM_NLIMITS; i++)
                if (limit_alike(i, keeper, heir) < 0)
                        return fail(error, errno, "prlimit", "the limits of the program that serves the mount");
        if ((r = enter_groups(keeper, heir, error)) < 0 ||
            (r = read_of(keeper, "oom_score_adj", wanted, sizeof wanted, error)) < 0 ||
            (r = read_of(heir, "oom_score_adj", now, sizeof now, error)) < 0)
                return r;
        (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", heir);
        return strcmp(wanted, now) == 0 ? 0 : write_to(path, wanted, error);
}

/* In words, what an heir says. */
static int explain(const struct upgrade_mount *mount, int r, struct error *error)
{
        switch (r) {
        case -EPROTONOSUPPORT:
                return fail_because(error, EPROTONOSUPPORT, OPERATION_UPGRADE, PROGRAM,
                                    "what version %s keeps in its memory is not what the installed one keeps",
                                    mount->version);
        case -EBUSY:
                return fail_because(error, EBUSY, OPERATION_UPGRADE, PROGRAM,
                                    "the mount was just made, is just ending, or a request takes longer than ten "
                                    "seconds");
        case -ECANCELED:
                return fail_because(error, ECANCELED, OPERATION_UPGRADE, PROGRAM,
                                    "one of the two programs ended, or did not answer in time");
        default:
                return r;
        }
}

/* With the heir waiting at the other end of keeper_end. */
static int introduce(const struct upgrade_mount *mount, pid_t heir, int order_fd, int *keeper_end, struct error *error)
{
        struct pollfd keeper = { .fd = mount->pidfd, .events = POLLIN };
        struct error ignored;
        int r = live_alike(mount->pid, heir, error);

        if (r == 0 && poll(&keeper, 1, 0) != 0) /* then its number may be another's, of which all this was read */
                r = fail_because(error, ECANCELED, OPERATION_UPGRADE, PROGRAM,
                                 "the program that serves the mount ended");
        if (r == 0 && (r = fd_pass_send_all(order_fd, keeper_end, 1)) < 0)
                r = fail(error, -r, "sendmsg", KEEPER);
        fd_close(keeper_end); /* now only the keeper's; without it the heir ends */
        if (r < 0) {
                (void)remap_hear_heir(&ignored);
                return r;
        }
        r = explain(mount, remap_hear_heir(error), error);
        if (r == 0) /* the next remap-upgrade would find it, and ask it in vain */
                (void)poll(&keeper, 1, ENDS_MS);
        return r;
}

int upgrade_mount(const struct upgrade_mount *mount, pid_t *ret_pid, struct error *error)
{
        cleanup_close int order_fd = -EBADF;
        cleanup_close int heir_end = -EBADF;
        cleanup_close int keeper_end = -EBADF;
        int pair[2];
        int heir;
        int r;

        if (mount->version[0] == '\0')
                return fail_because(error, EPROTONOSUPPORT, OPERATION_UPGRADE, PROGRAM,
                                    "the program that serves the mount is of a version that hands over to none");
        if (mount->less)
                return fail_because(error, EPROTONOSUPPORT, OPERATION_UPGRADE, PROGRAM,
                                    "the program that serves the mount has fewer capabilities than the installed one "
                                    "needs");
        order_fd = pidfd_getfd(mount->pidfd, FD_ORDER, 0);
        if (order_fd < 0)
                return fail(error, errno, OPERATION_PIDFD_GETFD, KEEPER);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fail(error, errno, "socketpair", KEEPER);
        heir_end = pair[0];
        keeper_end = pair[1];
        r = remap_start_heir(heir_end, &heir, error);
        fd_close(&heir_end); /* now only the heir's: the keeper sees its end */
        if (r < 0)
                return r;
        *ret_pid = heir;
        return introduce(mount, heir, order_fd, &keeper_end, error);
}
