/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map-sync FILE [BYTES] - map a file of so many bytes (4096) as persistent memory itself (MAP_SYNC), and write to its
 * beginning. Exit status 0 only if the kernel does that; it makes the file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        static const char word[] = "mapped";
        size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) : 4096;
        int fd = argc == 2 || argc == 3 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
        char *memory;

        if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0) {
                perror(argc > 1 ? argv[1] : "usage: map-sync FILE [BYTES]");
                return 2;
        }
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
        if (memory == MAP_FAILED) {
                perror("mmap");
                return 1;
        }
        memcpy(memory, word, sizeof(word));
        return munmap(memory, bytes) < 0 || close(fd) < 0;
}
