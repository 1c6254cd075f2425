/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - whole small files: read at once, replaced at once.
 */
#ifndef FLEXGRAFT_BASE_FILE_H
#define FLEXGRAFT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * file_read() - read a small file beneath dirfd into a buffer, terminated. Symbolic links are followed.
 *
 * Returns: the number of bytes, or negative errno: EFBIG when the file does not fit with its terminator.
 */
ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size);

/* file_read_fd() - the same from an open descriptor, to its end. */
ssize_t file_read_fd(int fd, char *buffer, size_t size);

/* What is left of a file_replace() after a power cut. */
enum file_durability {
        FILE_PLAIN,   /* perhaps nothing: what it says ends with the power anyway */
        FILE_ORDERED, /* the whole of it, where anything is left that was written to the same filesystem later */
        FILE_DURABLE, /* the whole of it: the file and its directory have reached the disk */
};

/*
 * file_replace() - make name in dirfd hold these bytes, whole or not at all: temporary file, rename. The temporary file
 * is named .NAME.tmp; whoever calls holds the lock of NAME, so nobody else uses it, and one left by a killed process is
 * simply written over.
 *
 * Returns: 0, or negative errno; name is then what it was before, unless only the directory could not be synced.
 */
int file_replace(int dirfd, const char *name, const char *bytes, size_t size, enum file_durability durability);

/* file_remove_temporary() - what a process left that was killed within file_replace(). */
void file_remove_temporary(int dirfd, const char *name);

/* file_write_all() - write every byte, however many calls it takes. Returns 0 or negative errno. */
int file_write_all(int fd, const char *bytes, size_t size);

#endif
