/* SPDX-License-Identifier: Apache-2.0 */
#include "process/unprivileged.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privileges/parser.h"

#include "process/privileges.h"
#include "process/worker.h"

#define NO_ANSWER 255
#define SECONDS 10 /* until it is killed */

static _Noreturn void run(unprivileged_function *function, void *argument, int parent)
{
        struct error ignored;

        worker_dies_with_parent(parent);
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(SECONDS);
        if (close_range(0, ~0U, 0) < 0 || privileges_drop(&PRIVILEGES, &ignored) < 0)
                _exit(NO_ANSWER);
        _exit((int)(function(argument) & NO_ANSWER));
}

int unprivileged_ask(unprivileged_function *function, void *argument)
{
        int parent = getpid();
        pid_t pid = fork();
        siginfo_t end;

        if (pid == 0)
                run(function, argument, parent);
        if (pid < 0)
                return -1;
        while (waitid(P_PID, (id_t)pid, &end, WEXITED) < 0)
                if (errno != EINTR)
                        return -1;
        return end.si_code == CLD_EXITED && end.si_status != NO_ANSWER ? end.si_status : -1;
}

void *unprivileged_memory(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}
