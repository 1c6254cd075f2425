/* SPDX-License-Identifier: Apache-2.0 */
#include "process/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/syscalls.h"

int proc_open(pid_t pid)
{
        char path[32];
        int fd;

        (void)snprintf(path, sizeof path, "/proc/%d", pid);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* A field of a process's stat (proc(5)), counted from 1, and its number; at least the third. */
static int read_stat(int proc_fd, int number, uint64_t *ret_value, pid_t *ret_pid)
{
        char stat[1024];
        char *field;
        ssize_t n = file_read(proc_fd, "stat", stat, sizeof stat);

        if (n < 0)
                return n == -ENOENT ? -ESRCH : (int)n;
        *ret_pid = (pid_t)strtol(stat, NULL, 10);
        /* the second field, the program's name, may contain parentheses and spaces */
        field = strrchr(stat, ')');
        for (int i = 2; field != NULL && i < number; i++)
                field = strchr(field + 1, ' ');
        if (field == NULL)
                return -EIO;
        *ret_value = strtoull(field + 1, NULL, 10);
        return 0;
}

int proc_start_time(int proc_fd, uint64_t *ret_start_time, pid_t *ret_pid)
{
        return read_stat(proc_fd, 22, ret_start_time, ret_pid);
}

int proc_parent(int proc_fd, pid_t *ret_parent)
{
        uint64_t parent = 0;
        pid_t pid;
        int r = read_stat(proc_fd, 4, &parent, &pid);

        *ret_parent = (pid_t)parent;
        return r;
}

bool proc_status(pid_t thread, char *ret_text, size_t size)
{
        cleanup_close int fd = -EBADF;
        char path[32];
        ssize_t n;

        (void)snprintf(path, sizeof path, "/proc/%d/status", thread);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, ret_text, size - 1); /* all of it, or as much as fits */
        ret_text[n > 0 ? n : 0] = '\0';
        return n > 0;
}

int proc_boot_id(char *ret_boot_id)
{
        static char known[PROC_BOOT_ID_SIZE]; /* kept: it is read once */
        char text[64];
        ssize_t n;

        if (known[0] == '\0') {
                n = file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
                if (n < PROC_BOOT_ID_SIZE - 1)
                        return n < 0 ? (int)n : -EIO;
                (void)memcpy(known, text, PROC_BOOT_ID_SIZE - 1);
        }
        (void)memcpy(ret_boot_id, known, PROC_BOOT_ID_SIZE);
        return 0;
}

static dev_t own_device;                /* nsfs, of all of them */
static ino_t own_inodes[OWN_USERS + 1]; /* 0: not known yet */

/*
 * At once, from a pidfd: the directory of a new process in /proc is made when it is looked up, and each link in it,
 * which costs many times as much.
 */
static int read_own(enum own_namespace first, enum own_namespace last)
{
        static const struct {
                unsigned long get;
                const char *link;
        } ways[] = {
                [OWN_MOUNTS] = { PIDFD_GET_MNT_NAMESPACE, "/proc/self/ns/mnt" },
                [OWN_PIDS] = { PIDFD_GET_PID_NAMESPACE, "/proc/self/ns/pid" },
                [OWN_USERS] = { PIDFD_GET_USER_NAMESPACE, "/proc/self/ns/user" },
        };
        cleanup_close int self = pidfd_open(getpid(), 0);

        for (unsigned i = first; i <= last; i++) {
                cleanup_close int fd = self < 0 ? -EBADF : ioctl(self, ways[i].get, 0);
                struct stat st;

                if ((fd < 0 || fstat(fd, &st) < 0) && stat(ways[i].link, &st) < 0)
                        return -errno;
                own_device = st.st_dev;
                own_inodes[i] = st.st_ino; /* last: it says that both are there */
        }
        return 0;
}

int proc_own_namespace(enum own_namespace which, struct stat *ret_st)
{
        int r = 0;

        if (own_inodes[which] == 0) /* a call needs the first two */
                r = which == OWN_USERS ? read_own(OWN_USERS, OWN_USERS) : read_own(OWN_MOUNTS, OWN_PIDS);
        ret_st->st_dev = own_device;
        ret_st->st_ino = own_inodes[which];
        return r;
}

int proc_pid_namespace(uint64_t *ret_inode)
{
        static uint64_t known; /* kept: it is read once */
        char pid[24];
        struct stat st;
        ssize_t n;
        int r;

        if (known == 0) {
                n = readlink("/proc/self", pid, sizeof pid - 1);
                if (n < 0)
                        return errno == ENOENT ? -EXDEV : -errno; /* /proc is of a namespace that does not have us */
                pid[n] = '\0';
                if (strtol(pid, NULL, 10) != getpid())
                        return -EXDEV;
                if ((r = proc_own_namespace(OWN_PIDS, &st)) < 0)
                        return r;
                known = st.st_ino;
        }
        *ret_inode = known;
        return 0;
}

int proc_check_own(int fd)
{
        static uint64_t known; /* kept: of the mount that was there first */
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
                return -errno;
        if (known == 0)
                known = st.stx_mnt_id;
        return known == st.stx_mnt_id ? 0 : -EXDEV;
}

int proc_pid_namespace_of(int proc_fd, uint64_t *ret_inode)
{
        struct stat st;

        if (fstatat(proc_fd, "../1/ns/pid", &st, 0) < 0)
                return -errno;
        *ret_inode = st.st_ino;
        return 0;
}
