/* SPDX-License-Identifier: Apache-2.0 */
#include "block/filesystem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/device_tag.h"
#include "process/worker.h"

#define PATIENCE_MS 2000 /* with one device */

/* Of this many bytes, the least significant first. */
static uint64_t number_at(const unsigned char *bytes, size_t count)
{
        uint64_t number = 0;

        for (size_t i = 0; i < count; i++)
                number |= (uint64_t)bytes[i] << (8 * i);
        return number;
}

/* What cannot be read cannot be mounted either, and the kernel says why. */
static bool read_at(const char *device, off_t at, unsigned char *ret_bytes, size_t size)
{
        cleanup_close int fd = open(device, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        return fd >= 0 && pread(fd, ret_bytes, size, at) == (ssize_t)size;
}

/* ---- btrfs */

#define BTRFS_AT 65536
#define BTRFS_SIZE 1024
#define BTRFS_ID 32
#define BTRFS_FLAGS 56
#define BTRFS_FLAG_SEEDING (1ULL << 32) /* it is for the devices of another filesystem */
#define BTRFS_MAGIC_AT 64
#define BTRFS_MAGIC "_BHRfS_M"
#define BTRFS_DEVICES 136
#define BTRFS_INCOMPATIBLE 188
#define BTRFS_HAS_METADATA_ID (1ULL << 10)
#define BTRFS_PART_NUMBER 201 /* which of its devices this one is */
#define BTRFS_PART_ID 267
#define BTRFS_METADATA_ID 571
#define ID_SIZE 16
/* Since Linux 6.7 the kernel takes a btrfs that says to be on one device for that, and what else has its id for others. */
#define TELLS_COPIES_APART "/sys/fs/btrfs/features/temp_fsid"

struct btrfs {
        unsigned char bytes[BTRFS_SIZE]; /* its superblock */
        const char *device;
        bool there;
};

static int read_btrfs(void *argument, struct error *error)
{
        struct btrfs *btrfs = argument;

        (void)error;
        btrfs->there = read_at(btrfs->device, BTRFS_AT, btrfs->bytes, sizeof btrfs->bytes) &&
                       memcmp(btrfs->bytes + BTRFS_MAGIC_AT, BTRFS_MAGIC, strlen(BTRFS_MAGIC)) == 0;
        return 0;
}

/* The id that the filesystem's trees have: the one that it shows, unless that was changed later. */
static const unsigned char *metadata_id(const struct btrfs *btrfs)
{
        bool changed = (number_at(btrfs->bytes + BTRFS_INCOMPATIBLE, 8) & BTRFS_HAS_METADATA_ID) != 0;

        return btrfs->bytes + (changed ? BTRFS_METADATA_ID : BTRFS_ID);
}

static bool is_same_filesystem(const struct btrfs *one, const struct btrfs *other)
{
        const unsigned char *const ids[] = { one->bytes + BTRFS_ID, metadata_id(one) };

        for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
                if (memcmp(ids[i], other->bytes + BTRFS_ID, ID_SIZE) == 0 ||
                    memcmp(ids[i], metadata_id(other), ID_SIZE) == 0)
                        return true;
        return false;
}

/* A copy of a whole device has the same part: the kernel never takes both for one filesystem. */
static bool is_same_part(const struct btrfs *one, const struct btrfs *other)
{
        return memcmp(one->bytes + BTRFS_PART_NUMBER, other->bytes + BTRFS_PART_NUMBER, 8) == 0 &&
               memcmp(one->bytes + BTRFS_PART_ID, other->bytes + BTRFS_PART_ID, ID_SIZE) == 0;
}

static int compare(const char *name, const char *path, void *argument, struct error *error)
{
        const struct btrfs *mine = argument;
        struct btrfs *other = malloc(sizeof *other);
        bool mistaken;
        int r;

        (void)name;
        if (other == NULL)
                return fail(error, ENOMEM, "read", path);
        other->device = path;
        other->there = false;
        r = worker_run_without_fds(read_btrfs, other, clock_now_ms() + PATIENCE_MS, error);
        if (r == -ETIMEDOUT)
                return 0; /* a worker that is left behind may still write to it: it is not freed */
        mistaken = r == 0 && other->there && is_same_filesystem(mine, other) && !is_same_part(mine, other);
        free(other);
        if (!mistaken)
                return r < 0 ? r : 0;
        return fail_because(
                error, ENOTUNIQ, "find filesystem", mine->device,
                "%s has a btrfs of the same id, which this kernel would take for a part of this one (give one "
                "of them another id: btrfstune -u)",
                path);
}

static int check_btrfs(const char *device, struct error *error)
{
        static struct btrfs btrfs;
        uint64_t devices;

        btrfs = (struct btrfs){ .device = device };
        (void)read_btrfs(&btrfs, error);
        if (!btrfs.there)
                return 0;
        devices = number_at(btrfs.bytes + BTRFS_DEVICES, 8);
        if ((number_at(btrfs.bytes + BTRFS_FLAGS, 8) & BTRFS_FLAG_SEEDING) != 0)
                return fail_because(error, EOPNOTSUPP, "find filesystem", device,
                                    "its btrfs is the seed of another; only one on a single device is mounted");
        if (devices != 1)
                return fail_because(error, EOPNOTSUPP, "find filesystem", device,
                                    "its btrfs is on %llu devices; only one on a single device is mounted",
                                    (unsigned long long)devices);
        return faccessat(AT_FDCWD, TELLS_COPIES_APART, F_OK, 0) == 0 ? 0 : device_each(compare, &btrfs, error);
}

#define OPENED "/sys/fs/btrfs"

/* How many devices the btrfs has that is listed there by its id, if this one is among them; 0. */
static unsigned count_if_among(int all_fd, const char *id, const char *name)
{
        char path[NAME_MAX + 16];
        const struct dirent *entry;
        bool among = false;
        unsigned count = 0;
        DIR *list;

        (void)snprintf(path, sizeof path, "%s/devices", id);
        list = file_list(all_fd, path);
        while (list != NULL && (entry = readdir(list)) != NULL) {
                count += entry->d_name[0] != '.';
                among = among || strcmp(entry->d_name, name) == 0;
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
        return among ? count : 0;
}

int filesystem_check_opened(const char *fs_type, uint64_t number, const char *device, struct error *error)
{
        const struct dirent *entry;
        unsigned count = 0;
        char path[64];
        char link[PATH_MAX];
        const char *name;
        DIR *list;
        ssize_t n;

        if (!text_starts(fs_type, "btrfs"))
                return 0;
        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(number), minor(number));
        n = readlink(path, link, sizeof link - 1);
        if (n < 0)
                return fail(error, errno, "find filesystem", device);
        link[n] = '\0';
        name = strrchr(link, '/') != NULL ? strrchr(link, '/') + 1 : link;
        list = opendir(OPENED);
        while (list != NULL && count == 0 && (entry = readdir(list)) != NULL)
                count = count_if_among(dirfd(list), entry->d_name, name);
        if (list != NULL)
                (void)closedir(list); /* only read from */
        if (count == 1)
                return 0;
        return fail_because(error, EOPNOTSUPP, "find filesystem", device,
                            count == 0 ? "which devices its btrfs is on cannot be seen in " OPENED
                                       : "its btrfs is on several devices, which its superblock does not say; only one "
                                         "on a single device is mounted");
}

/* ---- ext3 and ext4: a journal that is not a file of its own is on the device of the number that the superblock says */

#define EXT_AT 1024
#define EXT_MAGIC_AT 56
#define EXT_MAGIC 0xef53
#define EXT_COMPATIBLE 92
#define EXT_HAS_JOURNAL 4
#define EXT_JOURNAL_INODE 224
#define EXT_JOURNAL_DEVICE 228

static int check_ext(const char *device, struct error *error)
{
        unsigned char bytes[512];
        uint64_t journal;

        if (!read_at(device, EXT_AT, bytes, sizeof bytes) || number_at(bytes + EXT_MAGIC_AT, 2) != EXT_MAGIC ||
            (number_at(bytes + EXT_COMPATIBLE, 4) & EXT_HAS_JOURNAL) == 0)
                return 0;
        journal = number_at(bytes + EXT_JOURNAL_DEVICE, 4);
        if (journal == 0 && number_at(bytes + EXT_JOURNAL_INODE, 4) != 0)
                return 0;
        return fail_because(error, EOPNOTSUPP, "find filesystem", device,
                            "its journal is on another device; only a filesystem on a single device is mounted");
}

/* ---- erofs: its table names devices by their paths, which the kernel opens before Linux 6.4 */

#define EROFS_AT 1024
#define EROFS_MAGIC 0xe0f5e1e2
#define EROFS_INCOMPATIBLE 80
#define EROFS_HAS_TABLE 8
#define EROFS_DEVICES 86

static int check_erofs(const char *device, struct error *error)
{
        unsigned char bytes[128];

        if (!read_at(device, EROFS_AT, bytes, sizeof bytes) || number_at(bytes, 4) != EROFS_MAGIC ||
            (number_at(bytes + EROFS_INCOMPATIBLE, 4) & EROFS_HAS_TABLE) == 0 ||
            number_at(bytes + EROFS_DEVICES, 2) == 0)
                return 0;
        return fail_because(error, EOPNOTSUPP, "find filesystem", device,
                            "its erofs names other devices; only a filesystem on a single device is mounted");
}

int filesystem_check_alone(const char *fs_type, const char *device, struct error *error)
{
        if (text_starts(fs_type, "btrfs"))
                return check_btrfs(device, error);
        if (strcmp(fs_type, "erofs") == 0)
                return check_erofs(device, error);
        return text_starts(fs_type, "ext") ? check_ext(device, error) : 0;
}
