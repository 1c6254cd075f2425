/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/interrupt.h"
#include "base/progress.h"

#define STEP_BYTES ((off_t)64 * 1024 * 1024) /* between two looks at whether it is to go on */
#define TRIED_BYTES 65536U                   /* a block of any filesystem */
#define EXTENTS 64U                          /* at a time */
#define ROUNDS_MAX 16                        /* of so many: the rest counts as shared */

bool file_can_share(int from_fd, int dir_fd)
{
        cleanup_close int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        struct file_clone_range range = { .src_fd = from_fd };
        struct stat st;

        if (fd < 0 || fstat(from_fd, &st) < 0)
                return false;
        range.src_length = st.st_size > (off_t)TRIED_BYTES ? TRIED_BYTES : 0; /* 0: to the end */
        return ioctl(fd, FICLONERANGE, &range) == 0;
}

/* Some filesystems have no copy_file_range(), or not with each other. */
static int copy_by_hand(int from_fd, int to_fd, off_t at, off_t end)
{
        static char bytes[1 << 20];

        while (at < end) {
                size_t wanted = (size_t)(end - at) < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
                ssize_t n = pread(from_fd, bytes, wanted, at);

                if (n == 0)
                        return -EIO; /* it has become shorter */
                if (n > 0)
                        n = pwrite(to_fd, bytes, (size_t)n, at);
                if (n < 0 && errno != EINTR)
                        return -errno;
                at += n > 0 ? n : 0;
        }
        return 0;
}

/* A block that is not whole can be shared only at the end of the other file, which may be larger: it is copied. */
int file_share(int from_fd, int to_fd)
{
        struct file_clone_range range = { .src_fd = from_fd };
        struct stat st;

        if (fstat(from_fd, &st) < 0)
                return -errno;
        range.src_length = (uint64_t)(st.st_size - st.st_size % st.st_blksize);
        if (range.src_length > 0 && ioctl(to_fd, FICLONERANGE, &range) < 0) /* 0: to the end */
                return -errno;
        return copy_by_hand(from_fd, to_fd, (off_t)range.src_length, st.st_size);
}

static int copy_data(int from_fd, int to_fd, off_t at, off_t end)
{
        while (at < end) {
                off_t to = at;
                ssize_t n = copy_file_range(from_fd, &at, to_fd, &to, (size_t)(end - at), 0);

                if (n == 0 || (n < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL)))
                        return copy_by_hand(from_fd, to_fd, at, end);
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
        return 0;
}

int file_copy(int from_fd, int to_fd, const char *name)
{
        struct stat st;
        off_t end = 0;
        off_t at;
        int r = fstat(from_fd, &st) < 0 ? -errno : 0;

        while (r == 0 && (at = lseek(from_fd, end, SEEK_DATA)) >= 0) {
                end = lseek(from_fd, at, SEEK_HOLE);
                if (end < 0)
                        return -errno;
                if (end - at > STEP_BYTES)
                        end = at + STEP_BYTES;
                progress_of("copy", name, (uint64_t)at, (uint64_t)st.st_size);
                r = interrupt_is_noted() ? -ECANCELED : copy_data(from_fd, to_fd, at, end);
        }
        if (r < 0 || errno != ENXIO)
                return r < 0 ? r : -errno;
        progress_of("copy", name, (uint64_t)st.st_size, (uint64_t)st.st_size);
        return 0;
}

uint64_t file_shared_bytes(int fd, uint64_t size_bytes)
{
        union {
                struct fiemap map;
                char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
        } asked;
        struct fiemap *map = &asked.map;
        uint64_t shared = 0;
        uint64_t at = 0;

        for (int i = 0; i < ROUNDS_MAX; i++) {
                *map = (struct fiemap){ .fm_start = at, .fm_length = ~at, .fm_extent_count = EXTENTS };
                if (ioctl(fd, FS_IOC_FIEMAP, map) < 0)
                        break;
                for (unsigned j = 0; j < map->fm_mapped_extents; j++) {
                        const struct fiemap_extent *extent = &map->fm_extents[j];

                        if ((extent->fe_flags & FIEMAP_EXTENT_SHARED) != 0)
                                shared += extent->fe_length;
                        at = extent->fe_logical + extent->fe_length;
                        if ((extent->fe_flags & FIEMAP_EXTENT_LAST) != 0)
                                return shared;
                }
                if (map->fm_mapped_extents == 0)
                        return shared;
        }
        return shared + (at < size_bytes ? size_bytes - at : 0);
}
