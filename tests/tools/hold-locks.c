/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold-locks FILE [BYTE] - hold an open file description lock on all of a file, made if missing, until killed; prints
 * "ready". With BYTE: a lock for reading on that one alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = argc == 2 || argc == 3 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

        if (argc == 3)
                lock = (struct flock){ .l_type = F_RDLCK, .l_start = strtoll(argv[2], NULL, 10), .l_len = 1 };
        if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0) {
                perror("hold-locks");
                return 1;
        }
        puts("ready");
        fflush(stdout);
        for (;;)
                pause();
}
