/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caller_ids.h"
#include "process/proc.h"
#include "request.h"
#include "shared.h"
#include "source_ids.h"

static __thread struct {
        uid_t uid;
        gid_t gid;
        mode_t mask;
        bool groups;
        bool able; /* with the capabilities that another fsuid than 0 takes away */
} now;

static bool begun; /* by the first thread, which is alone: others act as users, and read what these have */
static struct __user_cap_data_struct all_capabilities[_LINUX_CAPABILITY_U32S_3]; /* of the daemon, all effective */

static int read_capabilities(void)
{
        struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };

        if ((shared->mappable || shared->able) && syscall(SYS_capget, &self, all_capabilities) < 0)
                return -errno;
        for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
                all_capabilities[i].effective = all_capabilities[i].permitted;
        begun = true;
        return 0;
}

/*
 * Each thread has its own umask and its own groups: the raw system call, because the C library's function changes all
 * threads. A new thread starts with the fsuid and fsgid of the thread that created it.
 */
int caller_begin(void)
{
        int r = begun ? 0 : read_capabilities();

        if (r < 0)
                return r;
        (void)setfsuid(0);
        (void)setfsgid(0);
        if (setfsuid((uid_t)-1) != 0 || setfsgid((gid_t)-1) != 0)
                return -EPERM;
        if (unshare(CLONE_FS) < 0 || syscall(SYS_setgroups, 0, NULL) < 0)
                return -errno;
        (void)umask(0);
        return 0;
}

void caller_forget(void)
{
        if (now.groups) {
                (void)syscall(SYS_setgroups, 0, NULL); /* cannot fail: it did not in caller_begin() */
                now.groups = false;
        }
}

static int become(uid_t uid, gid_t gid)
{
        if (uid == (uid_t)-1 || gid == (gid_t)-1)
                return -EOVERFLOW;
        caller_forget();
        /* group first; neither call reports failure, so each is repeated with an id that changes nothing */
        if (gid != now.gid) {
                (void)setfsgid(gid);
                if (setfsgid((gid_t)-1) != (int)gid)
                        return -EPERM;
                now.gid = gid;
        }
        if (uid != now.uid) {
                (void)setfsuid(uid);
                if (setfsuid((uid_t)-1) != (int)uid)
                        return -EPERM;
                now.uid = uid;
        }
        return 0;
}

uid_t caller_uid(void)
{
        return now.uid;
}

gid_t caller_gid(void)
{
        return now.gid;
}

bool caller_has_one_group(void)
{
        return !now.groups;
}

int caller_become(uid_t uid, gid_t gid)
{
        /* through 0: from one other fsuid to another the kernel leaves the capabilities as they are */
        if (now.able && uid != 0 && become(0, 0) < 0)
                return -EPERM;
        now.able = false;
        return become(uid, gid);
}

int caller_become_able(uid_t uid, gid_t gid)
{
        struct __user_cap_header_struct self = { .version = _LINUX_CAPABILITY_VERSION_3 };
        int r = become(uid, gid);

        if (r < 0 || uid == 0)
                return r;
        now.able = true;
        return syscall(SYS_capset, &self, all_capabilities) < 0 ? -errno : 0;
}

bool caller_is_able(void)
{
        return now.able;
}

void caller_umask(mode_t mask)
{
        if (mask != now.mask)
                (void)umask(mask);
        now.mask = mask;
}

bool caller_add_groups(pid_t pid)
{
        struct caller_ids *ids;

        /* where mounts are id-mapped the kernel has checked, with all groups of the caller, or it has them already */
        if (shared->mappable || now.groups || request_given_up())
                return false;
        ids = caller_ids_groups(pid, &shared->groups);
        ids->group_count = source_ids_take_groups(ids->groups, ids->group_count);
        return caller_take_groups(ids) == 0 && now.groups;
}

int caller_take_groups(const struct caller_ids *ids)
{
        if (ids->group_count == 0)
                return 0;
        if (syscall(SYS_setgroups, ids->group_count, ids->groups) < 0)
                return -errno;
        now.groups = true;
        return 0;
}

void caller_join(const struct caller_ids *ids, gid_t gid)
{
        gid_t groups[CALLER_GROUPS_MAX + 1];
        int count = 0;

        for (; ids != NULL && count < ids->group_count; count++)
                groups[count] = ids->groups[count];
        groups[count++] = gid;
        now.groups = syscall(SYS_setgroups, count, groups) == 0 || now.groups;
}

bool caller_knows(uid_t uid, gid_t gid)
{
        return id_map_has(&shared->users, uid) && id_map_has(&shared->groups, gid);
}

pid_t caller_process(pid_t thread, uid_t *ret_uid)
{
        char text[4096];
        const char *process;
        const char *user;

        if (thread <= 0 || !proc_status(thread, text, sizeof text) || (process = strstr(text, "\nTgid:")) == NULL ||
            (user = strstr(text, "\nUid:")) == NULL)
                return 0;
        *ret_uid = (uid_t)strtoul(user + strlen("\nUid:"), NULL, 10);
        return (pid_t)strtol(process + strlen("\nTgid:"), NULL, 10);
}

bool caller_is_dying(pid_t pid)
{
        static const char *const members[] = { "\nSigPnd:", "\nShdPnd:" };
        char text[16384]; /* the signals stand behind the groups */

        if (pid <= 0 || !proc_status(pid, text, sizeof text))
                return false; /* nothing waits for an answer any more */
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
                const char *found = strstr(text, members[i]);

                if (found != NULL && (strtoull(found + strlen(members[i]), NULL, 16) & 1ULL << (SIGKILL - 1)) != 0)
                        return true;
        }
        return false;
}
