/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold-exclusive - open a block device O_EXCL and keep it, as a volume manager or mkfs does.
 *
 *   hold-exclusive DEVICE [--once]
 *
 * Prints "ready" when it holds the device, and holds it until it is killed; --once lets go at once. Exit status 1 when
 * somebody else holds it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        if (argc < 2) {
                fprintf(stderr, "usage: hold-exclusive DEVICE [--once]\n");
                return 125;
        }
        if (open(argv[1], O_RDONLY | O_EXCL | O_CLOEXEC) < 0) {
                fprintf(stderr, "hold-exclusive: %s: %s\n", argv[1], strerror(errno));
                return 1;
        }
        puts("ready");
        fflush(stdout);
        if (argc == 2)
                pause();
        return 0;
}
