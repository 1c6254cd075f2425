/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map-sync FILE - map a page of a file as persistent memory itself (MAP_SYNC), and write to it. Exit status 0 only if
 * the kernel does that; it makes the file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        static const char word[] = "mapped";
        int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
        char *page;

        if (fd < 0 || ftruncate(fd, 4096) < 0) {
                perror(argc == 2 ? argv[1] : "usage: map-sync FILE");
                return 2;
        }
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
        if (page == MAP_FAILED) {
                perror("mmap");
                return 1;
        }
        memcpy(page, word, sizeof(word));
        return munmap(page, 4096) < 0 || close(fd) < 0;
}
