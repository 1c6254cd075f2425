/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - whole small files: read at once, replaced at once; empty ones; and the names in a directory.
 */
#ifndef FLEXGRAFT_BASE_FILE_H
#define FLEXGRAFT_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * file_read() - read a small file beneath dirfd into a buffer, terminated. Symbolic links are followed.
 *
 * Returns: the number of bytes, or negative errno: EFBIG when the file does not fit with its terminator.
 */
ssize_t file_read(int dirfd, const char *path, char *buffer, size_t size);

/*
 * file_is_gone() - whether an error of a name says that nothing has it any more. A directory that another node removes
 * while it is open here is stale (NFS). Whether that is so the directory that has it tells, up to the caller's own, which
 * must not be.
 */
bool file_is_gone(int errnum);

/* file_read_fd() - the same from an open descriptor, to its end. */
ssize_t file_read_fd(int fd, char *buffer, size_t size);

/* What a power cut leaves of a file_replace(). */
enum file_durability {
        FILE_PLAIN,   /* perhaps nothing: the content is only valid until the next boot */
        FILE_ORDERED, /* all of it, if anything is left that was written to this filesystem later */
        FILE_DURABLE, /* all of it: the file and its directory are on the disk */
};

/*
 * file_open_regular_in() - open a file for reading beneath a root directory in which somebody chooses what lies where: never
 * a device or a pipe, of which an open alone can do something, nor a file of an interface of the kernel (file_is_of_kernel()).
 * Links are followed, as in that root; O_NONBLOCK. /proc must be that of this process.
 *
 * Returns: a descriptor, owned by the caller; or negative errno: EINVAL it is no such file.
 */
int file_open_regular_in(int root_fd, const char *path);

/* file_is_of_kernel() - whether a file, O_PATH or not, lies in proc, sysfs, a control group or the like. */
bool file_is_of_kernel(int fd);

/*
 * file_replace() - replace the content of name in dirfd, all or nothing: temporary file, rename. The temporary file is
 * .NAME.tmp. The caller holds the lock of NAME, so that no other process uses it; one that a killed process left is
 * overwritten.
 *
 * Returns: 0, or negative errno: name is then unchanged, unless only syncing the directory failed.
 */
int file_replace(int dirfd, const char *name, const char *bytes, size_t size, enum file_durability durability);

/* file_replace_for() - the same, of a file that others may read: it has this mode at every moment. */
int file_replace_for(mode_t mode, int dirfd, const char *name, const char *bytes, size_t size,
                     enum file_durability durability);

/* file_remove_temporary() - remove what a process left that was killed in file_replace(). */
void file_remove_temporary(int dirfd, const char *name);

/* file_ensure() - ensure that there is a file; a new one is empty, and root's alone. Returns 0 or negative errno. */
int file_ensure(int dirfd, const char *path);

/*
 * file_list() - all names of a directory beneath dirfd, "." among them, for readdir(); NULL with errno. A symbolic link
 * is not followed. Closed by the caller (closedir).
 */
DIR *file_list(int dirfd, const char *path);

/* file_directory_is_empty() - whether a directory is: 1 or 0, or negative errno. */
int file_directory_is_empty(int dir_fd);

/* file_write_all() - write every byte, however many calls it takes. Returns 0 or negative errno. */
int file_write_all(int fd, const char *bytes, size_t size);

/*
 * file_open_leased() - open a file that may be a lease's for a moment, as file_is_open_once() takes it; O_NONBLOCK,
 * O_NOCTTY and O_CLOEXEC are added to flags. Returns a descriptor, owned by the caller; or negative errno: EAGAIN the
 * lease was not given back for a tenth of a second.
 */
int file_open_leased(int dirfd, const char *path, int flags, mode_t mode);

/*
 * file_is_open_once() - whether fd is the only descriptor of its file on the node, loop devices' included: the kernel
 * gives a lease for writing then, and only then (docs/KERNEL.md#block-devices).
 *
 * Needs:   the file's owner, or CAP_LEASE.
 * Returns: 1; 0 it is not, or the kernel does not tell (NFS, no regular file, a file of another user); or negative
 *          errno: the lease, which others would wait for, could not be given back.
 */
int file_is_open_once(int fd);

#endif
