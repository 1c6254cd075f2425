/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold-exclusive - open a block device O_EXCL and keep it, as a volume manager or mkfs does.
 *
 *   hold-exclusive DEVICE [--once]
 *
 * Prints "ready" when it holds the device, and holds it until it is killed; --once lets go at once. Exit status 1 when
 * somebody else holds it for ten seconds: for a moment it is also held by who takes it for a free loop device
 * (loop_configure() of drivers/block/loop.c), as another test may.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 1000 /* each 10 ms */

static int hold(const char *path)
{
        const struct timespec pause = { .tv_nsec = 10000000 };
        int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
        int tries = TRIES;

        while (fd < 0 && errno == EBUSY && --tries > 0) {
                nanosleep(&pause, NULL);
                fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
        }
        return fd;
}

int main(int argc, char **argv)
{
        int fd;

        if (argc < 2) {
                fprintf(stderr, "usage: hold-exclusive DEVICE [--once]\n");
                return 125;
        }
        fd = hold(argv[1]);
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
