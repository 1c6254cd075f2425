/* SPDX-License-Identifier: Apache-2.0 */
/* container_search.c - a container by its mount namespace, when the process that was known has ended. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/number_set.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "container/container.h"
#include "process/proc.h"

/* Inode numbers of the node's own namespaces, the same on every Linux (include/linux/proc_ns.h). */
#define NODE_USER_NAMESPACE 0xEFFFFFFDU
#define NODE_PID_NAMESPACE 0xEFFFFFFCU

/* Pin a process if it is in this mount namespace; with whole, only if its root directory is that of the namespace. */
static int pin_if_member(int proc_fd, uint64_t pid, const struct namespace_identity *mnt_ns, bool whole,
                         struct container *ret_container, struct error *error)
{
        const struct container_reference reference = { .pid = (pid_t)pid };
        char path[64];
        char root[2];
        int r;

        (void)snprintf(path, sizeof path, "%llu/root", (unsigned long long)pid);
        if (whole && (readlinkat(proc_fd, path, root, sizeof root) != 1 || root[0] != '/'))
                return -ESRCH;
        r = container_pin(&reference, ret_container, error);
        if (r == -EINVAL)
                return -ESRCH; /* it has left for the node's mount namespace */
        if (r == 0 &&
            !container_same_namespace(&ret_container->mnt_ns, mnt_ns)) { /* a new one with the same inode number */
                container_release(ret_container);
                r = -ESRCH;
        }
        return r;
}

/*
 * The mount namespaces of all processes, as a search of /proc saw them. For a moment it answers for others, too: which
 * of a thousand records are of containers that have ended. The kernel could say so in one call (listmount), but not to
 * everyone, and a container that has unmounted its root directory looks to it as if it were gone.
 */
#define SEEN_MS 1000
static struct {
        int64_t until_ms;
        struct number_set inodes;
} seen;

/* Whether a search a moment ago saw no process in this mount namespace. */
static bool is_gone(const struct namespace_identity *mnt_ns)
{
        return clock_now_ms() < seen.until_ms && !number_set_has(&seen.inodes, mnt_ns->inode);
}

static int search_proc(const struct namespace_identity *mnt_ns, struct container *ret_container, struct error *error)
{
        const int64_t begin_ms = clock_now_ms();
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        int r = -ESRCH;
        int own;

        if (proc == NULL)
                return fail(error, errno, "open", "/proc");
        own = proc_check_own(dirfd(proc));
        if (own < 0) {
                (void)closedir(proc);
                return fail_because(error, -own, "open", "/proc", "it is not that of the node");
        }
        seen.until_ms = 0;
        seen.inodes.count = 0;
        /* prefer a process without a chroot */
        for (int whole = 1; r == -ESRCH && whole >= 0 && !is_gone(mnt_ns); whole--) {
                rewinddir(proc);
                while (r == -ESRCH && (errno = 0, entry = readdir(proc)) != NULL) {
                        char path[64];
                        struct stat st;
                        uint64_t pid;

                        if (!text_number(entry->d_name, INT32_MAX, &pid))
                                continue;
                        (void)snprintf(path, sizeof path, "%llu/ns/mnt", (unsigned long long)pid);
                        if (fstatat(dirfd(proc), path, &st, 0) < 0) {
                                r = errno == ENOMEM ? fail(error, errno, "stat", path) : -ESRCH;
                                continue;
                        }
                        if (whole) /* once: seen is complete after this pass */
                                number_set_add(&seen.inodes, st.st_ino);
                        if (st.st_ino == mnt_ns->inode)
                                r = pin_if_member(dirfd(proc), pid, mnt_ns, whole, ret_container, error);
                }
                if (r == -ESRCH && errno != 0)
                        r = fail(error, errno, "read", "/proc"); /* not all processes were seen */
                if (r == -ESRCH && whole && number_set_is_whole(&seen.inodes))
                        seen.until_ms = begin_ms + SEEN_MS;
        }
        (void)closedir(proc);
        return r;
}

int container_pin_namespace(const struct namespace_identity *mnt_ns, struct container *ret_container,
                            struct error *error)
{
        int r = is_gone(mnt_ns) ? -ESRCH : search_proc(mnt_ns, ret_container, error);

        if (r == -ESRCH)
                return fail_because(error, ESRCH, OPERATION_PIN_CONTAINER, "its namespaces",
                                    "the container is not running");
        return r;
}

static bool is_in(enum own_namespace which, uint64_t inode)
{
        struct stat own;

        return proc_own_namespace(which, &own) == 0 && own.st_ino == inode;
}

/* Whether this process may ask about the mount namespaces of all user namespaces. */
static bool may_ask_all(void)
{
        static const char field[] = "\nCapEff:\t";
        char status[4096];
        const char *effective;
        ssize_t n;

        if (!is_in(OWN_USERS, NODE_USER_NAMESPACE))
                return false;
        n = file_read(AT_FDCWD, "/proc/self/status", status, sizeof status - 1);
        if (n < 0)
                return false;
        status[n] = '\0';
        effective = strstr(status, field);
        return effective != NULL && (strtoull(effective + strlen(field), NULL, 16) & 1ULL << CAP_SYS_ADMIN) != 0;
}

/*
 * listmount knows no namespace that is gone; nor one whose root mount has no other below it
 * (docs/KERNEL.md#asking-about-a-mount-and-removing-it): a container that unmounted all else has no mount of flexgraft
 * either.
 */
static bool is_unknown_to_kernel(const struct namespace_identity *mnt_ns)
{
        const struct mnt_id_request request = { .size = sizeof request, .mnt_id = LSMT_ROOT, .mnt_ns_id = mnt_ns->id };
        uint64_t first;

        return mnt_ns->id != 0 && sys_listmount(&request, &first, 1) < 0 && errno == ENOENT && may_ask_all();
}

bool container_namespace_gone(const struct namespace_identity *mnt_ns)
{
        cleanup_container struct container found = CONTAINER_NONE;
        struct error ignored;

        if (!is_in(OWN_PIDS, NODE_PID_NAMESPACE))
                return is_unknown_to_kernel(mnt_ns);
        return container_pin_namespace(mnt_ns, &found, &ignored) == -ESRCH;
}
