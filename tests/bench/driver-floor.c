/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver-floor - the unavoidable work of one life of a loop volume: make the image, give it
 * a loop device, mkfs.ext4 as the driver calls it, mount, bind mount, unmount both, let the loop device go. No record,
 * no lock, no look whether something is there already.
 *
 *   driver-floor VERB IMAGE MIB GLOBAL_DIR POD_DIR [DEVICE]
 *           one call's part of it, and its answer: kubelet runs a program for each of eight calls, some of which have
 *           nothing to do but to answer
 *   driver-floor all IMAGE MIB GLOBAL_DIR POD_DIR
 *           all of them in one process, without the answers: what no FlexVolume driver can reach
 *
 * The image outlasts a power cut, as an attached volume must: mkfs.ext4 syncs its device, which syncs the image, and the
 * image's directory is synced after it. Nothing else of a life must: loop devices and mounts end with the boot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void make_filesystem(char *path)
{
        char *argv[] = { "mkfs.ext4", "-q", "-m", "0", "-U", "5f1b7c1e-3e0c-4c0c-9f6e-0d6f7a1b2c3d", path, NULL };
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

static void sync_directory_of(const char *path)
{
        char copy[PATH_MAX];
        int fd;

        (void)snprintf(copy, sizeof copy, "%s", path);
        fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
                die(path);
        (void)close(fd);
}

static const char *image_path, *global_dir, *pod_dir;
static off_t image_bytes;
static char device[64];
static int loop = -1;

/* Another process may take the number first. */
static void configure(int image)
{
        struct loop_config config = { .fd = (unsigned)image, .info.lo_flags = LO_FLAGS_DIRECT_IO };
        int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

        for (;;) {
                int number = ioctl(control, LOOP_CTL_GET_FREE);

                (void)snprintf(device, sizeof device, "/dev/loop%d", number);
                loop = open(device, O_RDWR | O_CLOEXEC);
                if (number < 0 || loop < 0)
                        die(device);
                if (ioctl(loop, LOOP_CONFIGURE, &config) == 0)
                        return;
                if (errno != EBUSY)
                        die(device);
                (void)close(loop);
        }
}

static void answer(void)
{
}

static void attach(void)
{
        int image = open(image_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (image < 0 || ftruncate(image, image_bytes) < 0)
                die(image_path);
        configure(image);
}

static void mountdevice(void)
{
        make_filesystem(device);
        sync_directory_of(image_path);
        if (mount(device, global_dir, "ext4", MS_NOSUID | MS_NODEV, "errors=remount-ro") < 0)
                die(global_dir);
}

static void mount_pod(void)
{
        if (mount(global_dir, pod_dir, NULL, MS_BIND, NULL) < 0)
                die(pod_dir);
}

static void unmount(void)
{
        if (umount2(pod_dir, 0) < 0)
                die(pod_dir);
}

static void unmountdevice(void)
{
        if (umount2(global_dir, 0) < 0)
                die(global_dir);
}

static void detach(void)
{
        if (loop < 0 && (loop = open(device, O_RDONLY | O_CLOEXEC)) < 0)
                die(device);
        if (ioctl(loop, LOOP_CLR_FD) < 0)
                die("LOOP_CLR_FD");
}

static const struct verb {
        const char *name;
        void (*run)(void);
} verbs[] = {
        { "getvolumename", answer },        { "attach", attach },   { "waitforattach", answer },
        { "mountdevice", mountdevice },     { "mount", mount_pod }, { "unmount", unmount },
        { "unmountdevice", unmountdevice }, { "detach", detach },
};

int main(int argc, char **argv)
{
        char line[256];
        int length;

        if (argc < 6)
                return 2;
        image_path = argv[2];
        image_bytes = atol(argv[3]) << 20;
        global_dir = argv[4];
        pod_dir = argv[5];
        if (argc > 6)
                (void)snprintf(device, sizeof device, "%s", argv[6]);
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(argv[1], "all") == 0 || strcmp(argv[1], verbs[i].name) == 0)
                        verbs[i].run();
        if (strcmp(argv[1], "all") == 0)
                return 0;
        length = snprintf(line, sizeof line, "{\"status\":\"Success\",\"device\":\"%s\"}\n", device);
        return write(STDOUT_FILENO, line, (size_t)length) != length;
}
