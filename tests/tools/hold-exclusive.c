/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold-exclusive - open a block device O_EXCL and keep it, as a volume manager or mkfs does.
 *
 *   hold-exclusive DEVICE [--once | --is-held]
 *
 * Prints "ready" when it holds the device, and holds it until it is killed; --once lets go at once. Exit status 1 when
 * somebody else holds it for ten seconds: for a moment it is also held by who takes it for a free loop device
 * (loop_configure() of drivers/block/loop.c), as another test may.
 * --is-held: exit status 0 when somebody else holds it for half a second, 1 when nobody does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 1000 /* each 10 ms */
#define TRIES_IS_HELD 50

static int hold(const char *path, int tries)
{
        const struct timespec pause = { .tv_nsec = 10000000 };
        int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);

        while (fd < 0 && errno == EBUSY && --tries > 0) {
                nanosleep(&pause, NULL);
                fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
        }
        return fd;
}

int main(int argc, char **argv)
{
        const bool asks = argc > 2 && strcmp(argv[2], "--is-held") == 0;
        int fd;

        if (argc < 2) {
                fprintf(stderr, "usage: hold-exclusive DEVICE [--once | --is-held]\n");
                return 125;
        }
        fd = hold(argv[1], asks ? TRIES_IS_HELD : TRIES);
        if (asks)
                return fd >= 0 || errno != EBUSY;
        if (fd < 0) {
                fprintf(stderr, "hold-exclusive: %s: %s\n", argv[1], strerror(errno));
                return 1;
        }
        puts("ready");
        fflush(stdout);
        if (argc == 2)
                pause();
        return 0;
}
