/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop-ioctls - what a process of a container without any capability does to a loop device that it may open.
 *
 *   loop-ioctls DEVICE rw|ro|root ACTION [FILE]...
 *
 * Opens DEVICE, gives up all capabilities (except with root), and takes each action in turn; prints a line for each: its name, and "done"
 * or the error's name.
 *
 *   window          set offset, size limit and name to nothing
 *   shift           have it begin 4096 bytes later
 *   partitions      have the partition table read
 *   partition       add a partition of 4 KiB, 4 KiB after the beginning
 *   unpartition     remove it
 *   name NAME       set the name, and all else to nothing
 *   tag             print the name
 *   clear           detach
 *   set FILE        attach FILE
 *   change FILE     change the file behind a read-only loop device
 *   read            print what the device begins with, up to a blank
 *   write           write "stolen" to the beginning
 *   size            print the size in bytes
 *   hold            print "ready", and wait for the end of standard input
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void say(const char *action, int r)
{
        printf("%s: %s\n", action, r < 0 ? strerrorname_np(errno) : "done");
        fflush(stdout);
}

static int read_beginning(int fd)
{
        static char block[4096] __attribute__((aligned(4096)));

        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        if (pread(fd, block, 512, 0) < 0)
                return -1;
        block[511] = '\0';
        block[strcspn(block, " ")] = '\0';
        printf("read: %s\n", block);
        fflush(stdout);
        return 0;
}

static int with_file(int fd, unsigned long request, const char *path)
{
        int file = open(path, O_RDWR | O_CLOEXEC);

        return file < 0 ? -1 : ioctl(fd, request, file);
}

static int partition(int fd, int operation)
{
        struct blkpg_partition partition = { .start = 4096, .length = 4096, .pno = 1 };
        struct blkpg_ioctl_arg argument = { .op = operation, .datalen = sizeof partition, .data = &partition };

        return ioctl(fd, BLKPG, &argument);
}

int main(int argc, char **argv)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};
        struct loop_info64 info = {};
        uint64_t size = 0;
        int fd;

        if (argc < 4) {
                fprintf(stderr, "usage: loop-ioctls DEVICE rw|ro|root ACTION [FILE]...\n");
                return 125;
        }
        fd = open(argv[1], strcmp(argv[2], "ro") == 0 ? O_RDONLY : O_RDWR);
        if (fd < 0 || (strcmp(argv[2], "root") != 0 && syscall(SYS_capset, &header, none) < 0)) {
                fprintf(stderr, "loop-ioctls: %s: %s\n", argv[1], strerror(errno));
                return 1;
        }
        for (char **action = argv + 3; *action; action++) {
                if (strcmp(*action, "window") == 0)
                        say("window", ioctl(fd, LOOP_SET_STATUS64, &info));
                else if (strcmp(*action, "shift") == 0) {
                        info.lo_offset = 4096;
                        say("shift", ioctl(fd, LOOP_SET_STATUS64, &info));
                } else if (strcmp(*action, "partitions") == 0) {
                        info.lo_flags = LO_FLAGS_PARTSCAN;
                        say("flag", ioctl(fd, LOOP_SET_STATUS64, &info));
                        say("reread", ioctl(fd, BLKRRPART));
                } else if (strcmp(*action, "partition") == 0)
                        say("partition", partition(fd, BLKPG_ADD_PARTITION));
                else if (strcmp(*action, "unpartition") == 0)
                        say("unpartition", partition(fd, BLKPG_DEL_PARTITION));
                else if (strcmp(*action, "name") == 0 && action[1]) {
                        snprintf((char *)info.lo_file_name, sizeof info.lo_file_name, "%s", *++action);
                        say("name", ioctl(fd, LOOP_SET_STATUS64, &info));
                } else if (strcmp(*action, "tag") == 0) {
                        if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
                                say("tag", -1);
                        else
                                printf("tag: %s\n", (const char *)info.lo_file_name);
                } else if (strcmp(*action, "clear") == 0)
                        say("clear", ioctl(fd, LOOP_CLR_FD));
                else if (strcmp(*action, "set") == 0 && action[1])
                        say("set", with_file(fd, LOOP_SET_FD, *++action));
                else if (strcmp(*action, "change") == 0 && action[1])
                        say("change", with_file(fd, LOOP_CHANGE_FD, *++action));
                else if (strcmp(*action, "read") == 0) {
                        if (read_beginning(fd) < 0)
                                say("read", -1);
                } else if (strcmp(*action, "write") == 0) {
                        static char block[512];

                        memset(block, ' ', sizeof block);
                        memcpy(block, "stolen", 6);
                        say("write", pwrite(fd, block, sizeof block, 0) < 0 || fsync(fd) < 0 ? -1 : 0);
                } else if (strcmp(*action, "size") == 0) {
                        if (ioctl(fd, BLKGETSIZE64, &size) < 0)
                                say("size", -1);
                        else
                                printf("size: %llu\n", (unsigned long long)size);
                } else if (strcmp(*action, "hold") == 0) {
                        char byte;

                        puts("ready");
                        fflush(stdout);
                        while (read(0, &byte, 1) > 0)
                                ;
                } else {
                        fprintf(stderr, "loop-ioctls: no such action: %s\n", *action);
                        return 125;
                }
        }
        return 0;
}
