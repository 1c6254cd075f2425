/* SPDX-License-Identifier: Apache-2.0 */
#include "block/device_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/interrupt.h"
#include "base/progress.h"

#define STEP_BYTES ((size_t)1 << 20)

static int read_all(int fd, char *ret_bytes, size_t size, uint64_t at)
{
        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, ret_bytes + done, size - done, (off_t)(at + done));

                if (n == 0)
                        return -EIO; /* it has become shorter */
                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

static int write_all(int fd, const char *bytes, size_t size, uint64_t at)
{
        for (size_t done = 0; done < size;) {
                ssize_t n = pwrite(fd, bytes + done, size - done, (off_t)(at + done));

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (size_t)n : 0;
        }
        return 0;
}

static int write_changes(int fd, const char *new, const char *old, size_t size, uint64_t at)
{
        int r = 0;

        for (size_t done = 0; r == 0 && done < size; done += BLOCK_DEVICE_CHUNK_BYTES) {
                size_t left = size - done < BLOCK_DEVICE_CHUNK_BYTES ? size - done : BLOCK_DEVICE_CHUNK_BYTES;

                if (memcmp(new + done, old + done, left) != 0)
                        r = write_all(fd, new + done, left, at + done);
        }
        return r;
}

static char wanted[STEP_BYTES];
static char found[STEP_BYTES];

static int copy_step(int from_fd, int to_fd, size_t size, uint64_t at, bool only_changes, bool *ret_begun)
{
        int r = read_all(from_fd, wanted, size, at);

        if (r == 0 && only_changes)
                r = read_all(to_fd, found, size, at);
        if (r < 0 || (only_changes && memcmp(wanted, found, size) == 0))
                return r;
        *ret_begun = true;
        return !only_changes ? write_all(to_fd, wanted, size, at) : write_changes(to_fd, wanted, found, size, at);
}

int block_device_copy(const struct block_device *from, const struct block_device *to, bool only_changes,
                      bool *ret_begun, struct error *error)
{
        cleanup_close int from_fd = block_device_open(from, O_RDONLY | O_EXCL, error);
        cleanup_close int to_fd = from_fd < 0 ? from_fd : block_device_open(to, O_RDWR | O_EXCL, error);
        uint64_t size_bytes;
        uint64_t room_bytes;
        int r;

        if (to_fd < 0)
                return to_fd;
        if ((r = block_device_size(from, &size_bytes, error)) < 0 ||
            (r = block_device_size(to, &room_bytes, error)) < 0)
                return r;
        if (room_bytes < size_bytes)
                return fail_because(error, ERANGE, "copy", from->path, "it has %llu bytes, and %.1000s only %llu",
                                    (unsigned long long)size_bytes, to->path, (unsigned long long)room_bytes);
        for (uint64_t at = 0; at < size_bytes; at += STEP_BYTES) {
                size_t size = size_bytes - at < STEP_BYTES ? (size_t)(size_bytes - at) : STEP_BYTES;

                if ((r = interrupt_check("copy", from->path, error)) < 0)
                        return r;
                progress_of("copy", from->path, at, size_bytes);
                if ((r = copy_step(from_fd, to_fd, size, at, only_changes, ret_begun)) < 0)
                        return fail(error, -r, "copy", from->path);
        }
        progress_of("copy", from->path, size_bytes, size_bytes);
        return fsync(to_fd) < 0 ? fail(error, errno, "fsync", to->path) : 0;
}

/* Where the next step begins: a file tells which of its parts have never been written; a device does not. */
static uint64_t skip_hole(int fd, uint64_t at, uint64_t size_bytes)
{
        off_t data = lseek(fd, (off_t)at, SEEK_DATA);

        if (data < 0)
                return errno == ENXIO ? size_bytes : at;
        return (uint64_t)data - (uint64_t)data % STEP_BYTES > at ? (uint64_t)data - (uint64_t)data % STEP_BYTES : at;
}

int block_content_copy(int from_fd, uint64_t size_bytes, int to_fd, bool blank, const char *name, struct error *error)
{
        int r;

        (void)memset(found, 0, sizeof found);
        for (uint64_t at = 0; at < size_bytes; at += STEP_BYTES) {
                size_t size;

                if (blank && (at = skip_hole(from_fd, at, size_bytes)) >= size_bytes)
                        break;
                size = size_bytes - at < STEP_BYTES ? (size_t)(size_bytes - at) : STEP_BYTES;
                if ((r = interrupt_check("copy", name, error)) < 0)
                        return r;
                progress_of("copy", name, at, size_bytes);
                if ((r = read_all(from_fd, wanted, size, at)) == 0)
                        r = blank ? write_changes(to_fd, wanted, found, size, at) : write_all(to_fd, wanted, size, at);
                if (r < 0)
                        return fail(error, -r, "copy", name);
        }
        progress_of("copy", name, size_bytes, size_bytes);
        return fsync(to_fd) < 0 ? fail(error, errno, "fsync", name) : 0;
}
