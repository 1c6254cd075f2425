/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silent-fuse - a FUSE filesystem that mounts and then never answers anything again.
 *
 *   silent-fuse MOUNTPOINT [--read]
 *
 * Mounts with allow_other, answers INIT, prints "ready", and from then on answers nothing: without --read requests are
 * not even read, with --read they are read (so they cannot be taken back) and forgotten. Speaks the kernel's protocol
 * itself. Ends when killed; the kernel then aborts the connection, and whoever waited gets ENOTCONN. The mount stays
 * until unmounted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
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

int main(int argc, char **argv)
{
        static char buffer[FUSE_MIN_READ_BUFFER + 65536];
        char options[128];
        int reads = argc == 3 && strcmp(argv[2], "--read") == 0;

        if (argc < 2 || (argc == 3 && !reads) || argc > 3) {
                fprintf(stderr, "usage: silent-fuse MOUNTPOINT [--read]\n");
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
                if (!reads)
                        pause();
                else if (read(dev, buffer, sizeof(buffer)) < 0 && errno == ENODEV)
                        return 0; /* unmounted */
        }
}
