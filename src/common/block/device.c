/* SPDX-License-Identifier: Apache-2.0 */
#include "block/device.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/node_path.h"
#include "base/progress.h"
#include "base/text.h"
#include "block/content.h"
#include "block/device_tag.h"
#include "block/loop_guard.h"

#define BLANK_BYTES (1024 * 1024)
#define ERASE_STEP_BYTES ((uint64_t)256 * 1024 * 1024)
#define XFS_INPROGRESS 126 /* offset of sb_inprogress in struct xfs_dsb */

const struct hint block_hints[] = {
        { OPERATION_FIND_DEVICE, ENOTBLK,
          "mount-image mounts the filesystem in an image file; for a directory use mount-bind" },
        { OPERATION_FIND_DEVICE, EBUSY,
          "findmnt, lsblk and lsof show what uses it; \"readOnly\": true allows sharing it" },
        { OPERATION_SHARE_DEVICE, EBUSY,
          "what a container or a pod may write to is shared with nobody; mount-remove takes it from a container" },
        { OPERATION_FIND_DEVICE, EROFS, "\"readOnly\": true mounts it read-only" },
        { OPERATION_FIND_DEVICE, ENOENT, "lsblk -f, or blkid where there is no udev, lists devices, labels and UUIDs" },
        { OPERATION_PROBE, ENODATA,
          "create a filesystem first, if it is blank (mkfs); name a partition by its own device (lsblk); or name the type "
          "with \"fsType\"" },
        { OPERATION_FSCONFIG, EBUSY,
          "findmnt and lsof show what uses the device; two mounts of it must have the same \"readOnly\"" },
        { OPERATION_FSCONFIG, EUCLEAN, HINT_DAMAGED },
        { OPERATION_FSCONFIG, EBADMSG, HINT_DAMAGED },
        { OPERATION_ALLOW_DEVICE, 0,
          "see the container's line in /proc/PID/cgroup; bpftool cgroup tree lists the device programs there" },
        {},
};

static void probe_drop(blkid_probe *probe)
{
        blkid_free_probe(*probe);
}
#define cleanup_probe __attribute__((cleanup(probe_drop)))

static int open_device(const char *path, struct error *error)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        return fd < 0 ? fail(error, errno, "open", path) : fd;
}

/*
 * udev makes the name of a device-mapper device a link to /dev/dm-N, where N may be another's the next time. The name stays,
 * and is what mount(8), and btrfs where udev is, show.
 */
static void use_mapped_name(struct block_device *device)
{
        char name[256];
        char path[sizeof "/dev/mapper/" + sizeof name];
        struct stat st;

        if (!text_starts(device->path, "/dev/dm-") ||
            block_device_attribute(device->number, "dm/name", name, sizeof name) < 0)
                return;
        (void)snprintf(path, sizeof path, "/dev/mapper/%s", name);
        if (stat(path, &st) == 0 && S_ISBLK(st.st_mode) && st.st_rdev == device->number)
                (void)text_copy(device->path, sizeof device->path, path);
}

/*
 * What a container or a pod has, and can change at any time: a loop device of its guard, or one over that, as kubelet makes one to
 * hold what a pod has.
 */
static int fail_guard(const char *source, struct error *error)
{
        return fail_because(error, EACCES, OPERATION_FIND_DEVICE, source,
                            "loop devices from number %d on, and those over them, are for raw devices of containers, "
                            "whose processes can change what they hold; name the device behind it, or attach its file "
                            "again: losetup --find --show FILE",
                            LOOP_GUARD_FIRST);
}

int block_device_find(const char *source, struct block_device *ret_device, struct error *error)
{
        cleanup_close int node_fd = -EBADF;
        const char *tag;
        const char *value;
        char path[PATH_MAX];
        int read_only = 0;
        char name[LOOP_NAME_SIZE];
        bool is_loop;
        struct stat st;
        int r;

        (void)text_copy(path, sizeof path, source);
        if (device_tag_split(source, &tag, &value) && (r = device_tag_find(tag, value, path, error)) < 0)
                return r;
        node_fd = node_path_open(path, ret_device->path, error);
        if (node_fd < 0) {
                (void)text_copy(error->operation, sizeof error->operation, OPERATION_FIND_DEVICE);
                return node_fd;
        }
        if (fstat(node_fd, &st) < 0)
                return fail(error, errno, "fstat", source);
        if (!S_ISBLK(st.st_mode))
                return fail_because(error, ENOTBLK, OPERATION_FIND_DEVICE, source, "it is not a block device");
        ret_device->number = st.st_rdev;
        if (text_path_normal(ret_device->path, path) == 0) /* the names of devices are compared */
                (void)text_copy(ret_device->path, sizeof ret_device->path, path);
        use_mapped_name(ret_device);
        is_loop = loop_name(ret_device->number, name);
        if (is_loop && loop_guard_has_name(name))
                return fail_guard(source, error);

        cleanup_close int fd = open_device(ret_device->path, error);
        if (fd < 0)
                return fd;
        if (is_loop && loop_guard_is_shown(fd))
                return fail_guard(source, error);
        ret_device->read_only = ioctl(fd, BLKROGET, &read_only) == 0 && read_only != 0;
        return 0;
}

int block_device_size(const struct block_device *device, uint64_t *ret_bytes, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);

        if (fd < 0)
                return fd;
        return ioctl(fd, BLKGETSIZE64, ret_bytes) < 0 ? fail(error, errno, "ioctl", device->path) : 0;
}

int block_device_attribute(uint64_t number, const char *name, char *ret_text, size_t size)
{
        char path[96];
        ssize_t n;

        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%s", major(number), minor(number), name);
        n = file_read(AT_FDCWD, path, ret_text, size);
        if (n < 0)
                return (int)n;
        ret_text[strcspn(ret_text, "\n")] = '\0';
        return 0;
}

/* A partition has the number of its disk. */
uint64_t block_device_disk(uint64_t number)
{
        uint64_t sequence = 0;
        char text[24];

        if (block_device_attribute(number, "diskseq", text, sizeof text) < 0 &&
            block_device_attribute(number, "../diskseq", text, sizeof text) < 0)
                return 0;
        return text_number(text, UINT64_MAX, &sequence) ? sequence : 0;
}

enum block_device_state block_device_state(uint64_t number, uint64_t sequence)
{
        char text[24];

        if (block_device_attribute(number, "dev", text, sizeof text) < 0)
                return BLOCK_DEVICE_GONE;
        return sequence == 0 || block_device_disk(number) == sequence ? BLOCK_DEVICE_PRESENT : BLOCK_DEVICE_REPLACED;
}

bool block_device_is_dax(const struct block_device *device)
{
        char text[8];

        return block_device_attribute(device->number, "queue/dax", text, sizeof text) == 0 && text[0] == '1';
}

int block_device_sequence(const struct block_device *device, uint64_t *ret_sequence, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);

        if (fd < 0)
                return fd;
        return ioctl(fd, BLKGETDISKSEQ, ret_sequence) < 0 ? fail(error, errno, "ioctl", device->path) : 0;
}

int block_device_fs_type(const struct block_device *device, char *ret_fs_type, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);

        return fd < 0 ? fd : content_fs_type(fd, 0, 0, device->path, ret_fs_type, error);
}

int block_device_uuid(const struct block_device *device, char *ret_uuid, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);
        char label[CONTENT_LABEL_SIZE];
        int r = fd < 0 ? fd : content_tags(fd, 0, 0, label, ret_uuid);

        return fd >= 0 && r < 0 ? fail(error, -r, OPERATION_PROBE, device->path) : r;
}

int block_device_is_unfinished(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);
        unsigned char superblock[XFS_INPROGRESS + 1];
        ssize_t n;

        if (fd < 0)
                return fd;
        n = pread(fd, superblock, sizeof superblock, 0);
        if (n < 0)
                return fail(error, errno, "read", device->path);
        return n == (ssize_t)sizeof superblock && memcmp(superblock, "XFSB", 4) == 0 && superblock[XFS_INPROGRESS] != 0;
}

static int read_blank(int fd, bool *ret_blank)
{
        static char bytes[65536];

        *ret_blank = true;
        for (off_t at = 0; *ret_blank && at < BLANK_BYTES; at += (off_t)sizeof bytes) {
                ssize_t n = pread(fd, bytes, sizeof bytes, at);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        break; /* a small device */
                *ret_blank = bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)n - 1) == 0;
        }
        return 0;
}

int block_device_is_blank(const struct block_device *device, char *ret_what, struct error *error)
{
        cleanup_close int fd = open_device(device->path, error);
        cleanup_probe blkid_probe probe = blkid_new_probe();
        const char *type = NULL;
        bool blank;
        int r;

        if (fd < 0)
                return fd;
        if (probe == NULL)
                return fail(error, ENOMEM, OPERATION_PROBE, device->path);
        if (blkid_probe_set_device(probe, fd, 0, 0) < 0 || blkid_probe_enable_superblocks(probe, 1) < 0 ||
            blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE) < 0 ||
            blkid_probe_enable_partitions(probe, 1) < 0)
                return fail(error, EIO, OPERATION_PROBE, device->path);
        (void)posix_fadvise(fd, 0, BLANK_BYTES, POSIX_FADV_WILLNEED); /* read at once */
        r = blkid_do_fullprobe(probe);                                /* finds damaged filesystems, too */
        if (r < 0)
                return fail(error, EIO, OPERATION_PROBE, device->path);
        if (r == 0) {
                if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL) < 0 &&
                    blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) < 0)
                        type = "a signature";
                (void)text_copy(ret_what, CONTENT_TYPE_SIZE, type);
                return 0;
        }
        if ((r = read_blank(fd, &blank)) < 0)
                return fail(error, -r, "read", device->path);
        ret_what[0] = '\0';
        return blank ? 1 : 0;
}

int block_device_wipe(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = open(device->path, O_RDWR | O_EXCL | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        static const char zeroes[65536];
        uint64_t size = 0;

        if (fd < 0)
                return fail(error, errno, "open", device->path);
        if (ioctl(fd, BLKGETSIZE64, &size) < 0)
                return fail(error, errno, "ioctl", device->path);
        /* the beginning and the end: RAID and GPT have data there */
        for (uint64_t at = 0; at < size; at += sizeof zeroes) {
                size_t part = size - at < sizeof zeroes ? (size_t)(size - at) : sizeof zeroes;

                if (at >= BLANK_BYTES && at + BLANK_BYTES < size)
                        at = (size - BLANK_BYTES) / sizeof zeroes * sizeof zeroes;
                if (size - at < part)
                        part = (size_t)(size - at);
                if (pwrite(fd, zeroes, part, (off_t)at) != (ssize_t)part)
                        return fail(error, errno != 0 ? errno : EIO, "write", device->path);
        }
        return fsync(fd) < 0 ? fail(error, errno, "fsync", device->path) : 0;
}

/* The device at the path, checked to be the one that was found there. */
int block_device_open(const struct block_device *device, int flags, struct error *error)
{
        const char *path = device->path;
        cleanup_close int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0)
                return fail(error, errno, "open device", path);
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISBLK(st.st_mode) || st.st_rdev != device->number)
                return fail(error, ESTALE, "open device", path);
        return fd_take(&fd);
}

int block_device_erase(const struct block_device *device, struct error *error)
{
        const char *path = device->path;
        cleanup_close int fd = block_device_open(device, O_RDWR | O_EXCL, error);
        uint64_t size_bytes;
        int r;

        if (fd < 0)
                return fd;
        if (ioctl(fd, BLKGETSIZE64, &size_bytes) < 0)
                return fail(error, errno, "erase", path);
        for (uint64_t at = 0; at < size_bytes; at += ERASE_STEP_BYTES) {
                uint64_t left = size_bytes - at;
                uint64_t range[2] = { at, left < ERASE_STEP_BYTES ? left : ERASE_STEP_BYTES };

                if ((r = interrupt_check("erase", path, error)) < 0)
                        return r;
                progress_of("erase", path, at, size_bytes);
                if (ioctl(fd, BLKZEROOUT, range) < 0)
                        return fail(error, errno, "erase", path);
        }
        progress_of("erase", path, size_bytes, size_bytes);
        return fsync(fd) < 0 ? fail(error, errno, "fsync", path) : 0;
}

int block_device_is_zeroed(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = block_device_open(device, O_RDONLY, error);
        static char bytes[65536];
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        while ((n = read(fd, bytes, sizeof bytes)) > 0) {
                if ((r = interrupt_check("read", device->path, error)) < 0)
                        return r;
                for (ssize_t i = 0; i < n; i++)
                        if (bytes[i] != 0)
                                return 0;
        }
        return n < 0 ? fail(error, errno, "read", device->path) : 1;
}

int block_device_check_node(const struct block_device *device, struct error *error)
{
        struct stat node;
        struct stat dev;

        /* a name in /dev/mapper may be a link (use_mapped_name()); others are none */
        if (stat(device->path, &node) < 0 || stat("/dev", &dev) < 0)
                return fail(error, errno, "stat", device->path);
        if (node.st_dev == dev.st_dev && S_ISBLK(node.st_mode) && node.st_rdev == device->number)
                return 0;
        return fail_because(error, EACCES, OPERATION_CHECK_POLICY, device->path, "a device must be one of /dev");
}

int block_device_check_unused(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = open(device->path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0 && errno == EBUSY)
                return fail_because(
                        error, EBUSY, OPERATION_FIND_DEVICE, device->path,
                        "the device is in use on the node: mounted, part of RAID or LVM, or opened exclusively");
        return fd < 0 ? fail(error, errno, "open", device->path) : 0;
}
