/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver-floor IMAGE MIB GLOBAL_DIR POD_DIR - the unavoidable work of one life of a loop volume, in one process: make
 * the image, give it a loop device, mkfs.ext4 as the driver calls it, mount, bind mount, unmount both, let the loop
 * device go. No record, no lock, no look whether something is there already, no answer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void make_filesystem(char *device)
{
        char *argv[] = { "mkfs.ext4", "-q", "-m", "0", "-U", "5f1b7c1e-3e0c-4c0c-9f6e-0d6f7a1b2c3d", device, NULL };
        char *environment[] = { NULL };
        posix_spawn_file_actions_t actions;
        int status;
        pid_t pid;

        posix_spawn_file_actions_init(&actions);
        for (int fd = 0; fd < 3; fd++)
                posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
        if (posix_spawn(&pid, "/sbin/mkfs.ext4", &actions, NULL, argv, environment) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
                die("mkfs.ext4");
}

int main(int argc, char **argv)
{
        struct loop_config config = { .info.lo_flags = LO_FLAGS_DIRECT_IO };
        char device[32];
        int control, image, number, loop;

        if (argc != 5)
                return 2;
        image = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (image < 0 || ftruncate(image, atol(argv[2]) << 20) < 0)
                die(argv[1]);
        control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        number = ioctl(control, LOOP_CTL_GET_FREE);
        (void)snprintf(device, sizeof device, "/dev/loop%d", number);
        loop = open(device, O_RDWR | O_CLOEXEC);
        config.fd = (unsigned)image;
        if (number < 0 || loop < 0 || ioctl(loop, LOOP_CONFIGURE, &config) < 0)
                die(device);
        make_filesystem(device);
        if (mount(device, argv[3], "ext4", MS_NOSUID | MS_NODEV, "errors=remount-ro") < 0 ||
            mount(argv[3], argv[4], NULL, MS_BIND, NULL) < 0)
                die("mount");
        if (umount2(argv[4], 0) < 0 || umount2(argv[3], 0) < 0)
                die("umount");
        if (ioctl(loop, LOOP_CLR_FD) < 0)
                die("LOOP_CLR_FD");
        return 0;
}
