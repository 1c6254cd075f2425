/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export-privileges PROGRAM ARCHITECTURE - print the C header with PROGRAM's capabilities and its system call filter.
 *
 * Runs at build time, without privileges, on the machine that builds; ARCHITECTURE (x86_64, aarch64) is where PROGRAM
 * will run. The values of arguments are the same on both. libseccomp compiles the rules into a balanced tree
 * (SCMP_FLTATR_CTL_OPTIMIZE 2), which loads and runs faster than a chain of comparisons.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/blkzoned.h>
#include <linux/bpf.h>
#include <linux/btrfs.h>
#include <linux/cdrom.h>
#include <linux/dqblk_xfs.h>
#include <linux/fd.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/loop.h>
#include <linux/nsfs.h>
#include <linux/quota.h>
#include <linux/seccomp.h>
#include <linux/sed-opal.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/syscalls.h"
#include "privilege_table.h"

#define NAMESPACES                                                                                                     \
        (CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* A call that is allowed only with these arguments. Several rows of one name: any of them. */
struct argument_rule {
        const char *system_call;
        struct scmp_arg_cmp compare;
        struct scmp_arg_cmp also; /* op 0: no second condition */
};

static const struct argument_rule argument_rules[] = {
        { "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES, 0) }, /* workers, never new namespaces */
        { "unshare", SCMP_A0(SCMP_CMP_EQ, CLONE_NEWNS) },        /* a private namespace, to lock a mount */
        { "unshare/user", SCMP_A0(SCMP_CMP_EQ, CLONE_NEWUSER) }, /* for an id mapping, and to lock a mount */
        { "bpf/look", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_QUERY) },
        { "bpf/look", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_GET_FD_BY_ID) },
        { "bpf/look", SCMP_A0(SCMP_CMP_EQ, BPF_OBJ_GET_INFO_BY_FD) },
        { "bpf", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_QUERY) },
        { "bpf", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_GET_FD_BY_ID) },
        { "bpf", SCMP_A0(SCMP_CMP_EQ, BPF_OBJ_GET_INFO_BY_FD) },
        { "bpf", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_LOAD) },
        { "bpf", SCMP_A0(SCMP_CMP_EQ, BPF_PROG_ATTACH) },
        { "setns/mnt", SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNS) },
        { "setns/user", SCMP_A1(SCMP_CMP_EQ, CLONE_NEWUSER) },
        { "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX) }, /* the answer of a child; no other sockets */
        { "socket/local", SCMP_A0(SCMP_CMP_EQ, AF_UNIX), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM) }, /* syslog */
        { "socket/stream", SCMP_A0(SCMP_CMP_EQ, AF_UNIX), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM) },
        { "socket/network", SCMP_A0(SCMP_CMP_EQ, AF_INET), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM) },
        { "socket/network", SCMP_A0(SCMP_CMP_EQ, AF_INET), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM) },
        { "socket/network", SCMP_A0(SCMP_CMP_EQ, AF_INET6), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM) },
        { "socket/network", SCMP_A0(SCMP_CMP_EQ, AF_INET6), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM) },
        { "prlimit64/memory", SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A1(SCMP_CMP_EQ, RLIMIT_AS) }, /* its own */
        { "ioctl/interface", SCMP_A1(SCMP_CMP_EQ, SIOCGIFINDEX) },
        { "setns/net", SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNET) },
        { "kill/kill", SCMP_A1(SCMP_CMP_EQ, SIGKILL) },
        { "madvise/populate", SCMP_A2(SCMP_CMP_EQ, MADV_POPULATE_WRITE) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_ADD) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_REMOVE) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_GET_FREE) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_CONFIGURE) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_GET_STATUS64) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_SET_STATUS64) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, LOOP_CLR_FD) },
        { "ioctl/guard", SCMP_A1(SCMP_CMP_EQ, BLKROSET) },
        { "ioctl/configure", SCMP_A1(SCMP_CMP_EQ, LOOP_CONFIGURE) },
        { "ioctl/configure", SCMP_A1(SCMP_CMP_EQ, BLKROSET) },
        { "ioctl/free", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_GET_FREE) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_ADD) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_CTL_GET_FREE) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_CONFIGURE) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_GET_STATUS64) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_SET_STATUS64) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_SET_CAPACITY) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, LOOP_CLR_FD) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, BLKROSET) },
        { "ioctl/loop", SCMP_A1(SCMP_CMP_EQ, BLKGETSIZE64) },
        { "ioctl/grow", SCMP_A1(SCMP_CMP_EQ, 0x40086610) }, /* EXT4_IOC_RESIZE_FS */
        { "ioctl/grow", SCMP_A1(SCMP_CMP_EQ, 0x80705864) }, /* XFS_IOC_FSGEOMETRY_V1 */
        { "ioctl/grow", SCMP_A1(SCMP_CMP_EQ, 0x4010586e) }, /* XFS_IOC_FSGROWFSDATA */
        { "ioctl/grow", SCMP_A1(SCMP_CMP_EQ, BTRFS_IOC_RESIZE) },
        { "ioctl/extents", SCMP_A1(SCMP_CMP_EQ, FS_IOC_FIEMAP) },
        { "ioctl/project", SCMP_A1(SCMP_CMP_EQ, FS_IOC_FSGETXATTR) },
        { "ioctl/project", SCMP_A1(SCMP_CMP_EQ, FS_IOC_FSSETXATTR) },
        { "ioctl/flags", SCMP_A1(SCMP_CMP_EQ, FS_IOC_GETFLAGS) },
        { "ioctl/flags", SCMP_A1(SCMP_CMP_EQ, FS_IOC_SETFLAGS) },
        { "ioctl/flags", SCMP_A1(SCMP_CMP_EQ, FS_IOC_FSGETXATTR) },
        { "ioctl/flags", SCMP_A1(SCMP_CMP_EQ, FS_IOC_FSSETXATTR) },
        { "quotactl_fd/look", SCMP_A1(SCMP_CMP_EQ, QCMD((unsigned)Q_XGETQSTATV, PRJQUOTA)) },
        { "quotactl/look", SCMP_A0(SCMP_CMP_EQ, QCMD((unsigned)Q_XGETQSTATV, PRJQUOTA)) },
        { "quotactl_fd/limit", SCMP_A1(SCMP_CMP_EQ, QCMD((unsigned)Q_GETQUOTA, PRJQUOTA)) },
        { "quotactl_fd/limit", SCMP_A1(SCMP_CMP_EQ, QCMD((unsigned)Q_SETQUOTA, PRJQUOTA)) },
        { "quotactl/limit", SCMP_A0(SCMP_CMP_EQ, QCMD((unsigned)Q_GETQUOTA, PRJQUOTA)) },
        { "quotactl/limit", SCMP_A0(SCMP_CMP_EQ, QCMD((unsigned)Q_SETQUOTA, PRJQUOTA)) },
        { "ioctl/share", SCMP_A1(SCMP_CMP_EQ, FICLONE) },
        { "ioctl/share", SCMP_A1(SCMP_CMP_EQ, FICLONERANGE) },
        { "ioctl/freeze", SCMP_A1(SCMP_CMP_EQ, FIFREEZE) },
        { "ioctl/freeze", SCMP_A1(SCMP_CMP_EQ, FITHAW) },
        { "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_DUMPABLE), SCMP_A1(SCMP_CMP_EQ, 0) },
        { "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG) },
        { "unshare/uts", SCMP_A0(SCMP_CMP_EQ, CLONE_NEWUTS) }, /* the host name of an NFS client */
        { "prctl/name", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME) },
        { "unshare/fs", SCMP_A0(SCMP_CMP_EQ, CLONE_FS) },      /* a thread's own umask */
        { "ioctl/backing", SCMP_A1(SCMP_CMP_EQ, 0x4010e501) }, /* FUSE_DEV_IOC_BACKING_OPEN */
        { "ioctl/backing", SCMP_A1(SCMP_CMP_EQ, 0x4004e502) }, /* FUSE_DEV_IOC_BACKING_CLOSE */
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, NS_GET_MNTNS_ID) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, NS_GET_PARENT) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, NS_GET_USERNS) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, NS_GET_OWNER_UID) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, PIDFD_GET_MNT_NAMESPACE) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, PIDFD_GET_PID_NAMESPACE) },
        { "ioctl/namespace", SCMP_A1(SCMP_CMP_EQ, PIDFD_GET_USER_NAMESPACE) },
        /* ioctls of libblkid on devices, and of the C library on files that it opens by name: all only read */
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, TCGETS) },
        { "ioctl/erase", SCMP_A1(SCMP_CMP_EQ, BLKZEROOUT) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKROGET) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKGETSIZE) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKGETSIZE64) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKGETDISKSEQ) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKSSZGET) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKPBSZGET) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKIOMIN) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKIOOPT) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKALIGNOFF) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKGETZONESZ) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, BLKREPORTZONE) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, HDIO_GETGEO) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, CDROM_GET_CAPABILITY) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, CDROM_LAST_WRITTEN) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, CDROM_DRIVE_STATUS) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, CDROMMULTISESSION) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, FDGETFDCSTAT) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, LOOP_GET_STATUS) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, LOOP_GET_STATUS64) },
        { "ioctl/device", SCMP_A1(SCMP_CMP_EQ, IOC_OPAL_GET_STATUS) },
#ifndef SANITIZE
        { "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) }, /* no new code, ever */
        { "mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
#endif
};

#ifdef SANITIZE
/* Calls of the sanitizers' runtime. */
static const char *const sanitizer_calls[] = { "sigaltstack", "rt_sigaction", "rt_sigprocmask", "sched_yield",
                                               "mprotect",    "madvise",      "futex",          "gettid",
                                               "getpid",      "clone3",       "prlimit64",      "getrlimit",
                                               "tgkill",      "getuid" };
#endif

static void check(int r, const char *what)
{
        if (r < 0) {
                (void)fprintf(stderr, "export-privileges: %s: %s\n", what, strerror(-r));
                exit(1);
        }
}

struct architecture {
        const char *name; /* as compilers name it */
        uint32_t token;   /* libseccomp's, and the kernel's */
};

static const struct architecture architectures[] = { { "x86_64", SCMP_ARCH_X86_64 }, { "aarch64", SCMP_ARCH_AARCH64 } };

/*
 * Allowed calls for another architecture that libseccomp cannot translate, because it does not know their names. Such
 * calls are newer than the numbers that all architectures have in common.
 */
static unsigned new_calls[8];
static size_t new_call_count;

/*
 * number_of: CALL's on the architecture where the filter is made, which is how libseccomp wants it; or -1: ARCHITECTURE
 * has no such call.
 */
static int number_of(const char *call, uint32_t architecture)
{
        if (seccomp_syscall_resolve_name_arch(architecture, call) >= 0)
                return seccomp_syscall_resolve_name(call);
        /* newer than Debian 12's libseccomp */
        if (strcmp(call, "statmount") == 0)
                return SYS_statmount;
        if (strcmp(call, "listmount") == 0)
                return SYS_listmount;
        if (strcmp(call, "open_tree_attr") == 0)
                return SYS_open_tree_attr;
        return -1;
}

/*
 * Calls that a newer architecture has not, and what its C library makes of them. Of other such calls the table has
 * both.
 */
static const char *const successors[][2] = { { "dup2", "dup3" }, { "unlink", "unlinkat" } };

/* name: a system call, or "call/way" as in the rules above. */
static void allow(scmp_filter_ctx filter, uint32_t architecture, const char *name)
{
        char call[64];
        int number;
        int rules = 0;

        (void)snprintf(call, sizeof call, "%.*s", (int)strcspn(name, "/"), name);
        number = number_of(call, architecture);
        for (size_t i = 0; number < 0 && i < sizeof successors / sizeof successors[0]; i++)
                if (strcmp(call, successors[i][0]) == 0)
                        number = number_of(successors[i][1], architecture);
        if (number < 0)
                return;
        if (architecture != seccomp_arch_native() && seccomp_syscall_resolve_name(call) == __NR_SCMP_ERROR) {
                /* several groups of a program may have it */
                for (size_t i = 0; i < new_call_count; i++)
                        if (new_calls[i] == (unsigned)number)
                                return;
                check(new_call_count < sizeof new_calls / sizeof new_calls[0] ? 0 : -E2BIG, name);
                new_calls[new_call_count++] = (unsigned)number;
                return;
        }
        /* the C library creates threads with clone3 or, if that fails with ENOSYS, with clone, whose flags a filter can
         * check */
        if (strcmp(name, "clone3/absent") == 0) {
                int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);

                check(r == -EACCES ? 0 : r, name); /* -EACCES: this is the default action already */
                return;
        }
        for (size_t i = 0; i < sizeof argument_rules / sizeof argument_rules[0]; i++)
                if (strcmp(name, argument_rules[i].system_call) == 0) {
                        const struct scmp_arg_cmp compare[] = { argument_rules[i].compare, argument_rules[i].also };
                        unsigned count = argument_rules[i].also.op == 0 ? 1 : 2;

                        check(seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, compare), name);
                        rules++;
                }
        if (rules == 0)
                check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0), name);
}

static void print_instruction(struct sock_filter instruction)
{
        (void)printf("        { 0x%02x, %u, %u, 0x%08x },\n", instruction.code, instruction.jt, instruction.jf,
                     instruction.k);
}

/* Allows new_calls, before libseccomp's filter decides. */
static void print_new_calls(uint32_t architecture)
{
        unsigned char left = (unsigned char)new_call_count;

        if (left == 0)
                return;
        print_instruction((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
        print_instruction(
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 0, (unsigned char)(left + 2)));
        print_instruction((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
        for (; left > 0; left--) /* the last that does not match goes over the return */
                print_instruction((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, new_calls[left - 1],
                                                               (unsigned char)(left - 1), left == 1));
        print_instruction((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

/* Filters that external programs inherit: an unlisted call fails instead of killing. */
static bool runs_others(const char *program)
{
        static const char *const programs[] = { "tools", "lvm", "pmem", "versions", "remap-runner", "utab" };

        for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
                if (strcmp(program, programs[i]) == 0)
                        return true;
        return false;
}

/*
 * When a filter is loaded, the kernel evaluates it for each number of a system call, and notes those that it always
 * allows: that costs as much as running it a thousand times. A program that ends after some hundred calls does without:
 * the kernel gives up at the first instruction that is no comparison. The filter's answers are the same.
 */
static bool is_short(const char *program)
{
        return !runs_others(program) && strcmp(program, "remap-daemon") != 0;
}

static void print_filter(const char *program, scmp_filter_ctx filter, uint32_t architecture)
{
        FILE *file = tmpfile();
        struct sock_filter instruction;

        if (file == NULL)
                check(-errno, "tmpfile");
        check(seccomp_export_bpf(filter, fileno(file)), "seccomp_export_bpf");
        rewind(file);
        (void)printf("static const struct sock_filter privileges_filter[] = {\n");
        if (is_short(program))
                (void)printf("        { 0x%02x, 0, 0, 0 }, /* not evaluated in advance */\n", BPF_LDX | BPF_IMM);
        print_new_calls(architecture);
        while (fread(&instruction, sizeof instruction, 1, file) == 1)
                print_instruction(instruction);
        (void)printf("};\n\n");
        (void)fclose(file);
}

int main(int argc, char **argv)
{
        const struct privilege_row *row = NULL;
        uint32_t architecture = 0;
        scmp_filter_ctx filter;

        for (size_t i = 0; argc == 3 && i < sizeof architectures / sizeof architectures[0]; i++)
                if (strcmp(argv[2], architectures[i].name) == 0)
                        architecture = architectures[i].token;
        for (size_t i = 0; architecture != 0 && i < sizeof privilege_table / sizeof privilege_table[0]; i++)
                if (strcmp(argv[1], privilege_table[i].program) == 0)
                        row = &privilege_table[i];
        if (row == NULL) {
                (void)fprintf(
                        stderr,
                        "usage: export-privileges PROGRAM (one of privilege_table.h) ARCHITECTURE (x86_64, aarch64)\n");
                return 1;
        }

        /* external programs may make calls that are newer than this list */
        filter = seccomp_init(runs_others(row->program) ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_KILL_PROCESS);
        if (filter == NULL)
                check(-ENOMEM, "seccomp_init");
        if (architecture != seccomp_arch_native()) {
                check(seccomp_arch_remove(filter, seccomp_arch_native()), "seccomp_arch_remove");
                check(seccomp_arch_add(filter, architecture), "seccomp_arch_add");
        }
        check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "SCMP_FLTATR_CTL_OPTIMIZE");
        for (size_t i = 0; row->system_calls[i] != NULL; i++)
                allow(filter, architecture, row->system_calls[i]);
#ifdef SANITIZE
        for (size_t i = 0; i < sizeof sanitizer_calls / sizeof sanitizer_calls[0]; i++)
                allow(filter, architecture, sanitizer_calls[i]);
#endif

        (void)printf("/* Made by export-privileges from privilege_table.h. */\n");
        (void)printf("#include \"process/privileges.h\"\n\n");
        print_filter(row->program, filter, architecture);
        (void)printf("static const int privileges_capabilities[] = {");
        int count = 0;
        for (; row->capabilities[count] >= 0; count++)
                (void)printf(" %d,", row->capabilities[count]);
        (void)printf(" };\n\n");
        (void)printf("static const struct privileges PRIVILEGES = { privileges_capabilities, %d, privileges_filter,\n"
                     "        (unsigned short)(sizeof privileges_filter / sizeof privileges_filter[0]) };\n",
                     count);
        seccomp_release(filter);
        return 0;
}
