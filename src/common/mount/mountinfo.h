/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountinfo.h - a container's mountinfo, line by line: for the questions that the kernel answers no other way.
 *
 * Its length is the container's to choose, so nothing that happens at every mount reads it. Not libmount, which Debian
 * ships as a shared library only: loading that costs a helper a third of its time.
 */
#ifndef FLEXGRAFT_MOUNT_MOUNTINFO_H
#define FLEXGRAFT_MOUNT_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct mountinfo {
        FILE *file;
        char *line;
        size_t size;
        bool failed;     /* the end came before the last line */
        uint64_t bytes;  /* read so far */
        uint64_t id;     /* of this line: the reusable id, not the unique one */
        uint64_t parent; /* likewise, of the mount that this one is on */
        uint64_t device; /* makedev() of its filesystem; btrfs shows another here than to stat(2) */
        bool unbindable;
        bool read_only;          /* this mount, whatever its filesystem is */
        const char *root;        /* of this line: which directory or file of its filesystem it is of, not escaped */
        const char *mount_point; /* of this line, in the container's words, not escaped */
        const char *type;        /* of its filesystem; "" where the line has none */
        const char *source;      /* likewise; "" where the line has none */
        const char *options;     /* of its filesystem, as they are, to the end of the line; likewise */
};

/*
 * More than one of fs.mount-max mounts (100,000) with paths as they are: a container made it so large for others to wait, or to
 * take memory, while it is read.
 */
#define MOUNTINFO_MAX ((uint64_t)32 << 20)

/* mountinfo_open() - begin reading /proc/PID/mountinfo beneath proc_fd. Returns 0 or negative errno. */
int mountinfo_open(struct mountinfo *ret_table, int proc_fd);

/* mountinfo_open_own() - the same of the mount namespace that we are in. */
int mountinfo_open_own(struct mountinfo *ret_table);

/*
 * mountinfo_open_again() - begin reading anew a table that was opened as a file before, for a process that may open nothing
 * any more. fd: borrowed, until mountinfo_close(), and no other table reads it meanwhile. Returns 0 or negative errno.
 */
int mountinfo_open_again(struct mountinfo *ret_table, int *fd);

/*
 * mountinfo_find_own() - the same, and go to the line of the mount that fd is on. Returns 1; 0: it has none, as a detached
 * mount; or negative errno.
 */
int mountinfo_find_own(struct mountinfo *ret_table, int fd);

/*
 * mountinfo_locate() - where a directory of the node is within its filesystem, which a line of any table says as root, with
 * the filesystem's device. ret_root: PATH_MAX bytes. Returns 0 or negative errno; -ENOENT: it is not in the mount tree.
 */
int mountinfo_locate(int fd, uint64_t *ret_device, char *ret_root);

/* mountinfo_next() - the next line; false at the end. What it gave before is void. */
bool mountinfo_next(struct mountinfo *table);

/*
 * mountinfo_names() - whether the line's filesystem, which has no device's number, is the one on that device, by the name it
 * was mounted by. Only of btrfs does that name tell: a user of the node chooses that of a FUSE filesystem.
 */
bool mountinfo_names(const struct mountinfo *table, const char *device);

void mountinfo_close(struct mountinfo *table);
#define cleanup_mount_table __attribute__((cleanup(mountinfo_close)))

#endif
