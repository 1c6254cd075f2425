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
 *   configure FILE  attach FILE, with all settings at once
 *   change FILE     change the file behind a read-only loop device
 *   blocks          set the size of blocks to 4096
 *   direct          have the file read and written past the page cache
 *   capacity        have it look how large the file is
 *   discard, zeroout, erase
 *                   discard 4 KiB at the beginning, have them zeroes, and discard them securely
 *   foreign         the ioctls of SCSI, of persistent reservations, of nbd, of device-mapper and of NVMe, each a line
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
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/nbd.h>
#include <linux/nvme_ioctl.h>
#include <linux/pr.h>
#include <scsi/sg.h>
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

static int configure(int fd, const char *path)
{
        int file = open(path, O_RDWR | O_CLOEXEC);
        struct loop_config config = { .fd = (uint32_t)file };

        return file < 0 ? -1 : ioctl(fd, LOOP_CONFIGURE, &config);
}

static int at_beginning(int fd, unsigned long request)
{
        uint64_t range[2] = { 0, 4096 };

        return ioctl(fd, request, range);
}

static void reach_others(int fd)
{
        unsigned char inquiry[6] = { 0x12, 0, 0, 0, 36 };
        unsigned char answer[36];
        struct sg_io_hdr scsi = { .interface_id = 'S',
                                  .cmdp = inquiry,
                                  .cmd_len = sizeof inquiry,
                                  .dxfer_direction = SG_DXFER_FROM_DEV,
                                  .dxferp = answer,
                                  .dxfer_len = sizeof answer };
        struct pr_registration registration = { .new_key = 1 };
        struct dm_ioctl mapper = { .version = { DM_VERSION_MAJOR }, .data_size = sizeof mapper };

        say("scsi", ioctl(fd, SG_IO, &scsi));
        say("reservation", ioctl(fd, IOC_PR_REGISTER, &registration));
        say("nbd", ioctl(fd, NBD_DISCONNECT));
        say("mapper", ioctl(fd, DM_REMOVE_ALL, &mapper));
        say("nvme", ioctl(fd, NVME_IOCTL_ID));
}

static const struct {
        const char *word;
        unsigned long request;
        unsigned long argument;
} plain[] = {
        { "blocks", LOOP_SET_BLOCK_SIZE, 4096 },
        { "direct", LOOP_SET_DIRECT_IO, 1 },
        { "capacity", LOOP_SET_CAPACITY, 0 },
}, ranges[] = {
        { "discard", BLKDISCARD, 0 },
        { "zeroout", BLKZEROOUT, 0 },
        { "erase", BLKSECDISCARD, 0 },
};

/* Whether the action is one of those above, and done with. */
static int is_of_table(int fd, const char *action)
{
        for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
                if (strcmp(action, plain[i].word) == 0) {
                        say(action, ioctl(fd, plain[i].request, plain[i].argument));
                        return 1;
                }
        for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
                if (strcmp(action, ranges[i].word) == 0) {
                        say(action, at_beginning(fd, ranges[i].request));
                        return 1;
                }
        return 0;
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
                if (is_of_table(fd, *action))
                        continue;
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
                else if (strcmp(*action, "configure") == 0 && action[1])
                        say("configure", configure(fd, *++action));
                else if (strcmp(*action, "foreign") == 0)
                        reach_others(fd);
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
