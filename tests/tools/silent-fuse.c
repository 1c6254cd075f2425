/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silent-fuse - a FUSE filesystem that mounts and then never answers anything again, or not all, or late.
 *
 *   silent-fuse MOUNTPOINT [--read | --silent-to lookup|statfs | --slow SECONDS]
 *
 * Mounts with allow_other, answers INIT, prints "ready", and from then on answers nothing: without --read requests are
 * not even read, with --read they are read (so they cannot be taken back) and forgotten. With --silent-to that is so of
 * this kind of request alone, and what is asked of the empty root directory has answers. With --slow each answer comes so
 * many seconds late. Speaks the kernel's protocol itself. Ends when killed; the kernel then aborts the connection, and
 * whoever waited gets ENOTCONN. The mount stays until unmounted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
        fprintf(stderr, "silent-fuse: %s: %s\n", what, strerror(errno));
        exit(125);
}

static struct {
        bool reads, answers;
        unsigned silent_to; /* an opcode; 0: none */
        unsigned slow_s;
} opt;

static bool read_options(int argc, char **argv)
{
        opt.reads = argc > 2;
        opt.answers = argc == 4;
        if (argc == 3)
                return strcmp(argv[2], "--read") == 0;
        if (argc == 4 && strcmp(argv[2], "--slow") == 0)
                return (opt.slow_s = (unsigned)atoi(argv[3])) > 0;
        if (argc == 4 && strcmp(argv[2], "--silent-to") == 0)
                opt.silent_to = strcmp(argv[3], "lookup") == 0   ? FUSE_LOOKUP
                                : strcmp(argv[3], "statfs") == 0 ? FUSE_STATFS
                                                                 : 0;
        return argc == 2 || opt.silent_to != 0;
}

/* Of an empty directory, and of a filesystem without any room. */
static void answer(int dev, const struct fuse_in_header *in)
{
        struct {
                struct fuse_out_header header;
                union {
                        struct fuse_attr_out attr;
                        struct fuse_statfs_out statfs;
                };
        } out = { .header = { .len = sizeof out.header, .unique = in->unique } };

        if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT)
                return;
        sleep(opt.slow_s);
        if (in->opcode == FUSE_GETATTR) {
                out.header.len += sizeof out.attr;
                out.attr.attr = (struct fuse_attr){ .ino = in->nodeid, .mode = S_IFDIR | 0755, .nlink = 2 };
        } else if (in->opcode == FUSE_STATFS) {
                out.header.len += sizeof out.statfs;
                out.statfs.st = (struct fuse_kstatfs){ .bsize = 4096, .frsize = 4096, .namelen = 255 };
        } else
                out.header.error = in->opcode == FUSE_LOOKUP ? -ENOENT : -ENOSYS;
        if (write(dev, &out, out.header.len) < 0 && errno != ENOENT) /* nobody waits for it any more */
                die("answer");
}

int main(int argc, char **argv)
{
        static char buffer[FUSE_MIN_READ_BUFFER + 65536];
        char options[128];

        if (argc < 2 || !read_options(argc, argv)) {
                fprintf(stderr,
                        "usage: silent-fuse MOUNTPOINT [--read | --silent-to lookup|statfs | --slow SECONDS]\n");
                return 125;
        }
        int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (dev < 0)
                die("/dev/fuse");
        snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", dev, getuid(),
                 getgid());
        if (mount("silent", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) < 0)
                die("mount");

        ssize_t n = read(dev, buffer, sizeof(buffer));
        if (n < (ssize_t)sizeof(struct fuse_in_header))
                die("read INIT");
        struct fuse_in_header *in = (struct fuse_in_header *)buffer;
        if (in->opcode != FUSE_INIT) {
                fprintf(stderr, "silent-fuse: first request is %u, not INIT\n", in->opcode);
                return 125;
        }
        struct {
                struct fuse_out_header header;
                struct fuse_init_out init;
        } reply = {
                .header = { .len = sizeof(reply), .unique = in->unique },
                .init = {
                        .major = FUSE_KERNEL_VERSION,
                        .minor = FUSE_KERNEL_MINOR_VERSION,
                        .max_readahead = 65536,
                        .max_write = 65536,
                },
        };
        if (write(dev, &reply, sizeof(reply)) != (ssize_t)sizeof(reply))
                die("answer INIT");
        puts("ready");
        fflush(stdout);
        for (;;) {
                if (!opt.reads)
                        pause();
                else if (read(dev, buffer, sizeof(buffer)) < 0) {
                        if (errno == ENODEV)
                                return 0; /* unmounted */
                } else if (opt.answers && in->opcode != opt.silent_to)
                        answer(dev, in);
        }
}
