/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what every fuzz target includes: how bytes become a text, a file or standard input of the code under test.
 *
 * A target is one parser of something that comes from outside. Given a file as its argument it tries that alone.
 */
#ifndef FLEXGRAFT_FUZZ_H
#define FLEXGRAFT_FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* fuzz_check() - what must hold for every input. */
#define fuzz_check(condition)                                                                                          \
        do {                                                                                                           \
                if (!(condition)) {                                                                                    \
                        (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);           \
                        abort();                                                                                       \
                }                                                                                                      \
        } while (0)

/* fuzz_text() - the bytes with a terminator, owned by the caller; a NUL byte among them ends the text. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);

        fuzz_check(text != NULL);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        return text;
}

/* fuzz_directory() - one temporary directory for the whole run, in memory where there is /dev/shm. */
static inline const char *fuzz_directory(void)
{
        static char path[64];

        if (path[0] == '\0') {
                (void)snprintf(path, sizeof path, "%s/flexgraft-fuzz.XXXXXX",
                               access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
                fuzz_check(mkdtemp(path) != NULL);
        }
        return path;
}

/* fuzz_file() - the bytes as the file NAME in that directory. Its path lives until the next call. */
static inline const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
        static char path[128];
        int fd;

        (void)snprintf(path, sizeof path, "%s/%s", fuzz_directory(), name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        fuzz_check(fd >= 0);
        fuzz_check(write(fd, data, size) == (ssize_t)size);
        (void)close(fd);
        return path;
}

/* fuzz_stdin() - the bytes as standard input. */
static inline void fuzz_stdin(const uint8_t *data, size_t size)
{
        int fd = memfd_create("input", MFD_CLOEXEC);

        fuzz_check(fd >= 0);
        fuzz_check(write(fd, data, size) == (ssize_t)size);
        fuzz_check(lseek(fd, 0, SEEK_SET) == 0);
        fuzz_check(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
        (void)close(fd);
}

/* fuzz_printable() - an error is safe to print, whatever the input was. */
static inline void fuzz_printable(const struct error *error)
{
        fuzz_check(memchr(error->reason, '\0', sizeof error->reason) != NULL);
        fuzz_check(memchr(error->subject, '\0', sizeof error->subject) != NULL);
        fuzz_check(error->operation[0] != '\0');
}

#endif
