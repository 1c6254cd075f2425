/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject-syscall - make a running process do one system call of our choice.
 *
 *   inject-syscall PID NR [ARG...]
 *
 * PID must be blocked in a system call (read from a pipe, say); that call is started again afterwards. NR is a number
 * or one of the few names below; up to six numeric ARGs, 0 where not given. Prints one line: result N the call returned
 * N (negative: -errno) killed by signal N      the call cost the process its life (31 is SIGSYS: seccomp) exited with
 * status N Exit status: 0 when one of these was printed, 125 otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
        const char *name;
        long nr;
} names[] = {
#define S(n)                                                                                                           \
        {                                                                                                              \
#n, SYS_##n                                                                                            \
        }
        S(socket),
        S(mmap),
        S(clone),
        S(connect),
        S(execve),
        S(execveat),
        S(ptrace),
        S(getpid),
        S(getppid),
        S(bpf),
        S(kexec_load),
        S(init_module),
        S(finit_module),
        S(delete_module),
        S(reboot),
        S(swapon),
        S(perf_event_open),
        S(process_vm_readv),
        S(process_vm_writev),
        S(io_uring_setup),
        S(userfaultfd),
        S(keyctl),
        S(add_key),
        S(mknod),
        S(mknodat),
        S(chroot),
        S(pivot_root),
        S(bind),
        S(listen),
        S(accept4),
        S(settimeofday),
        S(personality),
        S(unshare),
        S(iopl),
        S(open_by_handle_at),
        S(setuid),
        S(symlink),
        S(link),
        S(mount),
        S(sethostname),
        S(pidfd_getfd),
        S(acct),
        S(quotactl),
#undef S
};

static void die(const char *what)
{
        fprintf(stderr, "inject-syscall: %s: %s\n", what, strerror(errno));
        exit(125);
}

/* Waits for pid's next stop. Reports and exits when there will be none. */
static int next_stop(pid_t pid)
{
        int status;

        while (waitpid(pid, &status, __WALL) < 0)
                if (errno != EINTR)
                        die("waitpid");
        if (WIFSIGNALED(status)) {
                printf("killed by signal %d\n", WTERMSIG(status));
                exit(0);
        }
        if (WIFEXITED(status)) {
                printf("exited with status %d\n", WEXITSTATUS(status));
                exit(0);
        }
        return status;
}

static void run_to_syscall_stop(pid_t pid)
{
        int deliver = 0;

        for (;;) {
                if (ptrace(PTRACE_SYSCALL, pid, 0, deliver) < 0 && errno != ESRCH)
                        die("PTRACE_SYSCALL");
                int status = next_stop(pid);
                if (WSTOPSIG(status) == (SIGTRAP | 0x80))
                        return;
                deliver = status >> 16 ? 0 : WSTOPSIG(status);
        }
}

/* A filter that kills lets the call look finished, with SIGSYS pending. True if so. */
static int sigsys_pending(pid_t pid)
{
        char path[64], line[256];
        unsigned long long set;
        int found = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        FILE *status = fopen(path, "re");
        if (!status)
                die(path);
        while (fgets(line, sizeof(line), status))
                if (sscanf(line, "SigPnd: %llx", &set) == 1 || sscanf(line, "ShdPnd: %llx", &set) == 1)
                        found |= (set >> (SIGSYS - 1)) & 1;
        fclose(status);
        return found;
}

int main(int argc, char **argv)
{
        struct user_regs_struct saved, regs;
        unsigned long long args[6] = { 0 };
        long nr = -1;
        char *end;

        if (argc < 3 || argc > 9) {
                fprintf(stderr, "usage: inject-syscall PID NR [ARG...]\n");
                return 125;
        }
        pid_t pid = atoi(argv[1]);
        nr = strtol(argv[2], &end, 0);
        if (*end != '\0') {
                nr = -1;
                for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                        if (strcmp(names[i].name, argv[2]) == 0)
                                nr = names[i].nr;
                if (nr < 0) {
                        fprintf(stderr, "inject-syscall: unknown call %s\n", argv[2]);
                        return 125;
                }
        }
        for (int i = 3; i < argc; i++)
                args[i - 3] = strtoull(argv[i], NULL, 0);

        if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) < 0)
                die("PTRACE_SEIZE");
        if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
                die("PTRACE_INTERRUPT");
        while (next_stop(pid) >> 16 != PTRACE_EVENT_STOP)
                if (ptrace(PTRACE_CONT, pid, 0, 0) < 0)
                        die("PTRACE_CONT");
        if (ptrace(PTRACE_GETREGS, pid, 0, &saved) < 0)
                die("PTRACE_GETREGS");
        if ((long long)saved.orig_rax < 0) {
                fprintf(stderr, "inject-syscall: process %d is not in a system call\n", pid);
                return 125;
        }

        /* rip is behind a two-byte syscall instruction: use it again. orig_rax -1 says there is nothing to restart. */
        regs = saved;
        regs.rip -= 2;
        regs.rax = (unsigned long long)nr;
        regs.orig_rax = (unsigned long long)-1;
        regs.rdi = args[0];
        regs.rsi = args[1];
        regs.rdx = args[2];
        regs.r10 = args[3];
        regs.r8 = args[4];
        regs.r9 = args[5];
        if (ptrace(PTRACE_SETREGS, pid, 0, &regs) < 0)
                die("PTRACE_SETREGS");
        run_to_syscall_stop(pid);
        run_to_syscall_stop(pid);
        if (sigsys_pending(pid))
                for (int deliver = 0;;) {
                        if (ptrace(PTRACE_CONT, pid, 0, deliver) < 0 && errno != ESRCH)
                                die("PTRACE_CONT");
                        int status = next_stop(pid);
                        deliver = status >> 16 ? 0 : WSTOPSIG(status);
                }
        if (ptrace(PTRACE_GETREGS, pid, 0, &regs) < 0)
                die("PTRACE_GETREGS");
        printf("result %lld\n", (long long)regs.rax);

        regs = saved;
        regs.rip -= 2;
        regs.rax = saved.orig_rax;
        regs.orig_rax = (unsigned long long)-1;
        if (ptrace(PTRACE_SETREGS, pid, 0, &regs) < 0 || ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
                die("restore");
        return 0;
}
