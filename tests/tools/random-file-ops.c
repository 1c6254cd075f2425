/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random-file-ops [--direct] FILE SEED OPERATIONS - all that can be done to one file, in random order, and after each
 * the file is what a model in memory says: write, read, truncate, mmap, fallocate, copy_file_range, append, reopen.
 *
 * Prints the seed and the last operations before the first difference; exit status 1 then. The same SEED gives the same
 * operations.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE_MAX_BYTES = 400000, LOG_LINES = 20, LINE = 120 };

static unsigned char model[SIZE_MAX_BYTES], buffer[SIZE_MAX_BYTES];
static size_t model_size;
static const char *path;
static int fd = -1;
static int direct;
static unsigned long seed, operation;
static char history[LOG_LINES][LINE];

static void fail(const char *what)
{
        fprintf(stderr, "random-file-ops: seed %lu, operation %lu: %s (%s)\n", seed, operation, what, strerror(errno));
        for (unsigned long i = operation >= LOG_LINES ? operation - LOG_LINES + 1 : 0; i <= operation; i++)
                fprintf(stderr, "  %lu %s\n", i, history[i % LOG_LINES]);
        exit(1);
}

#define NOTE(...) snprintf(history[operation % LOG_LINES], LINE, __VA_ARGS__)

static size_t below(size_t limit)
{
        return limit ? (size_t)random() % limit : 0;
}

/* Often at the boundary of a page, where mistakes are. */
static size_t place(size_t limit)
{
        size_t at = below(limit);
        if (random() % 4 == 0)
                at &= ~(size_t)4095;
        return at;
}

static void fill(unsigned char *into, size_t length)
{
        unsigned char byte = (unsigned char)random();
        for (size_t i = 0; i < length; i++)
                into[i] = (unsigned char)(byte + i * 3);
}

static void grow_model(size_t size)
{
        if (size > model_size) {
                memset(model + model_size, 0, size - model_size);
                model_size = size;
        }
}

static void reopen(void)
{
        if (fd >= 0 && close(fd) < 0)
                fail("close");
        bool straight = direct && random() % 2;
        NOTE("open%s", straight ? " O_DIRECT" : "");
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (straight ? O_DIRECT : 0), 0644);
        if (fd < 0)
                fail("open");
}

static bool is_direct(void)
{
        return fcntl(fd, F_GETFL) & O_DIRECT;
}

/* For what is not aligned. */
static void undirect(void)
{
        if (!is_direct())
                return;
        if (close(fd) < 0 || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
                fail("open without O_DIRECT");
}

static void do_write(void)
{
        size_t at = place(SIZE_MAX_BYTES), length = below(SIZE_MAX_BYTES - at < 70000 ? SIZE_MAX_BYTES - at : 70000);
        if (is_direct()) {
                static unsigned char *aligned;
                if (!aligned && posix_memalign((void **)&aligned, 4096, 81920) != 0)
                        fail("posix_memalign");
                at &= ~(size_t)4095;
                length = (length & ~(size_t)4095) + 4096;
                if (at + length > SIZE_MAX_BYTES)
                        return;
                NOTE("direct write %zu +%zu", at, length);
                fill(aligned, length);
                if (pwrite(fd, aligned, length, (off_t)at) != (ssize_t)length)
                        fail("direct pwrite");
                grow_model(at + length);
                memcpy(model + at, aligned, length);
                return;
        }
        fill(buffer, length);
        size_t half = below(length);
        struct iovec vector[] = { { buffer, half }, { buffer + half, length - half } };
        NOTE("write %zu +%zu", at, length);
        ssize_t done = random() % 2 ? pwrite(fd, buffer, length, (off_t)at) : pwritev(fd, vector, 2, (off_t)at);
        if (done != (ssize_t)length)
                fail("pwrite");
        if (length == 0)
                return;
        grow_model(at + length);
        memcpy(model + at, buffer, length);
}

static void do_append(void)
{
        size_t length = below(5000);
        if (model_size + length > SIZE_MAX_BYTES)
                return;
        NOTE("append +%zu at %zu", length, model_size);
        fill(buffer, length);
        int other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (other < 0 || write(other, buffer, length) != (ssize_t)length || close(other) < 0)
                fail("append");
        memcpy(model + model_size, buffer, length);
        model_size += length;
}

static void compare(size_t at, const unsigned char *data, size_t length, const char *how)
{
        for (size_t i = 0; i < length; i++)
                if (data[i] != model[at + i]) {
                        fprintf(stderr, "byte %zu is %02x, expected: %02x\n", at + i, data[i], model[at + i]);
                        fail(how);
                }
}

static void do_read(void)
{
        undirect();
        size_t at = place(SIZE_MAX_BYTES), length = below(100000);
        NOTE("read %zu +%zu", at, length);
        size_t expected = at >= model_size ? 0 : model_size - at < length ? model_size - at : length;
        if (length > sizeof(buffer))
                length = sizeof(buffer);
        if (pread(fd, buffer, length, (off_t)at) != (ssize_t)expected)
                fail("pread: length");
        compare(at, buffer, expected, "pread");
}

static void do_truncate(void)
{
        size_t size = place(SIZE_MAX_BYTES);
        NOTE("truncate %zu -> %zu", model_size, size);
        if ((random() % 2 ? ftruncate(fd, (off_t)size) : truncate(path, (off_t)size)) < 0)
                fail("truncate");
        grow_model(size);
        model_size = size;
}

static void do_map(bool write)
{
        if (model_size == 0)
                return;
        size_t at = place(model_size), length = below(model_size - at < 60000 ? model_size - at : 60000),
               skip = at & 4095;
        if (length == 0)
                return;
        NOTE("map %s %zu +%zu", write ? "write" : "read", at, length);
        unsigned char *map =
                mmap(NULL, length + skip, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, (off_t)(at - skip));
        if (map == MAP_FAILED)
                fail("mmap");
        compare(at, map + skip, length, "mmap");
        if (write) {
                fill(map + skip, length);
                memcpy(model + at, map + skip, length);
                if (random() % 2 && msync(map, length + skip, MS_SYNC) < 0)
                        fail("msync");
        }
        munmap(map, length + skip);
}

static void do_fallocate(void)
{
        static const struct {
                int mode;
                const char *name;
        } modes[] = { { 0, "allocate" },
                      { FALLOC_FL_KEEP_SIZE, "keep size" },
                      { FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch" },
                      { FALLOC_FL_ZERO_RANGE, "zero" },
                      { FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "zero, keep size" } };
        size_t which = below(sizeof(modes) / sizeof(modes[0]));
        size_t at = place(SIZE_MAX_BYTES - 1), length = 1 + below(SIZE_MAX_BYTES - at - 1);

        NOTE("fallocate %s %zu +%zu", modes[which].name, at, length);
        if (fallocate(fd, modes[which].mode, (off_t)at, (off_t)length) < 0) {
                if (errno != EOPNOTSUPP)
                        fail("fallocate");
                NOTE("fallocate %s: not supported", modes[which].name);
                return;
        }
        if (!(modes[which].mode & FALLOC_FL_KEEP_SIZE))
                grow_model(at + length);
        if ((modes[which].mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) && at < model_size)
                memset(model + at, 0, model_size - at < length ? model_size - at : length);
}

static void do_copy(void)
{
        if (model_size < 2)
                return;
        size_t from = below(model_size), length = 1 + below(model_size - from < 50000 ? model_size - from : 50000);
        size_t to = place(SIZE_MAX_BYTES - length);
        if (from + length > model_size || (to < from + length && from < to + length))
                return;
        undirect();
        NOTE("copy %zu +%zu to %zu", from, length, to);
        off_t in = (off_t)from, out = (off_t)to;
        for (size_t done = 0; done < length;) {
                ssize_t count = copy_file_range(fd, &in, fd, &out, length - done, 0);
                if (count <= 0)
                        fail("copy_file_range");
                done += (size_t)count;
        }
        grow_model(to + length);
        memcpy(model + to, model + from, length);
}

static void verify(void)
{
        struct stat st;

        undirect();
        if (fstat(fd, &st) < 0)
                fail("fstat");
        if ((size_t)st.st_size != model_size) {
                fprintf(stderr, "size is %lld, expected: %zu\n", (long long)st.st_size, model_size);
                fail("size");
        }
        if (pread(fd, buffer, sizeof(buffer), 0) != (ssize_t)model_size)
                fail("pread of everything");
        compare(0, buffer, model_size, "pread of everything");
}

int main(int argc, char **argv)
{
        if (argc == 5 && strcmp(argv[1], "--direct") == 0) {
                direct = 1;
                argv++, argc--;
        }
        if (argc != 4) {
                fprintf(stderr, "usage: random-file-ops [--direct] FILE SEED OPERATIONS\n");
                return 125;
        }
        path = argv[1];
        seed = strtoul(argv[2], NULL, 10);
        unsigned long count = strtoul(argv[3], NULL, 10);
        srandom((unsigned)seed);
        unlink(path);
        reopen();
        for (operation = 1; operation <= count; operation++) {
                NOTE("nothing");
                switch (random() % 16) {
                case 0:
                case 1:
                case 2:
                        do_write();
                        break;
                case 3:
                case 4:
                case 5:
                        do_read();
                        break;
                case 6:
                        do_truncate();
                        break;
                case 7:
                case 8:
                        do_map(true);
                        break;
                case 9:
                        do_map(false);
                        break;
                case 10:
                        do_fallocate();
                        break;
                case 11:
                        do_copy();
                        break;
                case 12:
                        do_append();
                        break;
                case 13:
                        NOTE("fsync");
                        if (fsync(fd) < 0)
                                fail("fsync");
                        break;
                case 14:
                        NOTE("drop");
                        if (fdatasync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
                                fail("drop");
                        break;
                case 15:
                        reopen();
                        break;
                }
                if (operation % 10 == 0)
                        verify();
        }
        operation = count;
        reopen();
        verify();
        close(fd);
        unlink(path);
        return 0;
}
