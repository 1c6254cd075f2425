/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swap-loop - exchange two names of one directory for ever, as fast as the kernel can.
 *
 *   swap-loop DIRECTORY NAME_A NAME_B
 *
 * Prints "ready" when the loop begins. A refused exchange (EBUSY: one of the two is a mount point) is tried again. On
 * SIGTERM prints how many exchanges there were and leaves with 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
        (void)sig;
        stop = 1;
}

int main(int argc, char **argv)
{
        unsigned long swaps = 0;

        if (argc != 4) {
                fprintf(stderr, "usage: swap-loop DIRECTORY NAME_A NAME_B\n");
                return 125;
        }
        signal(SIGTERM, on_term);
        int dir = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0) {
                fprintf(stderr, "swap-loop: %s: %s\n", argv[1], strerror(errno));
                return 125;
        }
        puts("ready");
        fflush(stdout);
        while (!stop)
                if (renameat2(dir, argv[2], dir, argv[3], RENAME_EXCHANGE) == 0)
                        swaps++;
        printf("%lu\n", swaps);
        return 0;
}
