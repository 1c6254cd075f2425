/* SPDX-License-Identifier: Apache-2.0 */
#include "process/privileges.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/worker.h"

#define NOBODY 65534
#define KEPT_MAX 16 /* capabilities of one program (struct privilege_row) */

/* Root has no special rights, and these bits cannot be cleared again. */
#define SECUREBITS                                                                                                     \
        (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |              \
         SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static int keep_capabilities(const struct privileges *privileges)
{
        cap_t set = cap_init();
        int r = 0;

        if (set == NULL)
                return -errno;
        /* the inheritable set stays empty */
        if ((privileges->capability_count > 0 &&
             (cap_set_flag(set, CAP_PERMITTED, privileges->capability_count, privileges->capabilities, CAP_SET) < 0 ||
              cap_set_flag(set, CAP_EFFECTIVE, privileges->capability_count, privileges->capabilities, CAP_SET) < 0)) ||
            cap_set_proc(set) < 0)
                r = -errno;
        (void)cap_free(set);
        return r;
}

static int load_filter(const struct privileges *privileges, struct error *error)
{
        const struct sock_fprog program = { .len = privileges->filter_length,
                                            .filter = (struct sock_filter *)privileges->filter };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return fail(error, errno, OPERATION_PRCTL, "no_new_privs");
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return fail(error, errno, "seccomp", "system call filter");
        return 0;
}

static int drop(const struct privileges *privileges, int securebits, struct error *error)
{
        int r;

        privileges_stay_undumpable();
        /* root without CAP_SETPCAP: not needed by a program that keeps no capabilities */
        if (prctl(PR_SET_SECUREBITS, securebits) < 0 && (errno != EPERM || privileges->capability_count > 0))
                return errno == EPERM ? fail_because(error, EPERM, OPERATION_PRCTL, "root", "this program needs root")
                                      : fail(error, errno, OPERATION_PRCTL, "securebits");
        r = keep_capabilities(privileges);
        if (r == -EPERM)
                return fail_because(error, EPERM, OPERATION_CAPSET, "root",
                                    "this program needs root, with its capabilities");
        if (r < 0)
                return fail(error, -r, OPERATION_CAPSET, "capabilities");
        return load_filter(privileges, error);
}

int privileges_drop(const struct privileges *privileges, struct error *error)
{
        return drop(privileges, SECUREBITS | SECBIT_NO_SETUID_FIXUP, error);
}

int privileges_drop_to_act(const struct privileges *privileges, struct error *error)
{
        return drop(privileges, SECUREBITS, error);
}

/* Those of these capabilities that the process has: at most KEPT_MAX. Returns their number, or negative errno. */
static int find_available(const struct privileges *privileges, int *ret_kept, struct error *error)
{
        cap_t now = cap_get_proc();
        int count = 0;

        if (now == NULL)
                return fail(error, errno, "capget", "capabilities");
        for (int i = 0; i < privileges->capability_count; i++) {
                cap_flag_value_t set = CAP_CLEAR;

                if (cap_get_flag(now, privileges->capabilities[i], CAP_PERMITTED, &set) == 0 && set == CAP_SET)
                        ret_kept[count++] = privileges->capabilities[i];
        }
        (void)cap_free(now);
        return count;
}

static bool less; /* than was asked for */

bool privileges_are_less(void)
{
        return less;
}

int privileges_drop_to_available(const struct privileges *privileges, struct error *error)
{
        int kept[KEPT_MAX];
        struct privileges available = *privileges;

        available.capability_count = find_available(privileges, kept, error);
        available.capabilities = kept;
        less = available.capability_count < privileges->capability_count;
        return available.capability_count < 0 ? available.capability_count
                                              : drop(&available, SECUREBITS | SECBIT_NO_SETUID_FIXUP, error);
}

int privileges_drop_for_tools(const struct privileges *privileges, struct error *error)
{
        int kept[KEPT_MAX];
        struct privileges available = { .capabilities = kept };
        int r;

        available.capability_count = find_available(privileges, kept, error);
        if (available.capability_count < 0)
                return available.capability_count;
        if ((r = keep_capabilities(&available)) < 0)
                return fail(error, -r, OPERATION_CAPSET, "capabilities");
        return load_filter(privileges, error);
}

int privileges_be_nobody(struct error *error)
{
        /* the raw calls: glibc's functions signal all threads. A program that may not change ids keeps its own */
        (void)syscall(SYS_setgroups, 0, NULL);
        (void)syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY);
        (void)syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY);
        privileges_stay_undumpable();
        return privileges_keep_none(error);
}

int privileges_keep_none(struct error *error)
{
        const struct privileges none = {};
        int r = keep_capabilities(&none);

        return r < 0 ? fail(error, -r, OPERATION_CAPSET, "capabilities") : 0;
}

int privileges_give_up(int capability)
{
        static const cap_flag_t sets[] = { CAP_EFFECTIVE, CAP_PERMITTED, CAP_INHERITABLE };
        cap_t now = cap_get_proc();
        int r = now == NULL ? -errno : 0;

        for (size_t i = 0; r == 0 && i < sizeof sets / sizeof sets[0]; i++)
                if (cap_set_flag(now, sets[i], 1, &capability, CAP_CLEAR) < 0)
                        r = -errno;
        if (r == 0 && cap_set_proc(now) < 0)
                r = -errno;
        (void)cap_free(now);
        return r;
}

void privileges_stay_undumpable(void)
{
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail for this value */
}

int privileges_file_owner(uid_t uid, gid_t gid, struct error *error)
{
        int parent = getppid();

        /* group first; neither call reports failure, so each is repeated with an id that changes nothing */
        (void)setfsgid(gid);
        (void)setfsuid(uid);
        privileges_stay_undumpable();
        worker_dies_with_parent(parent);
        if (setfsgid((gid_t)-1) != (int)gid || setfsuid((uid_t)-1) != (int)uid)
                return fail(error, EPERM, "setfsuid", "the container's root");
        return 0;
}
