/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "mount/mountinfo.h"

#define TMPFS_TYPE 0x01021994

/* statfs(2); the kernel's include/uapi/linux/magic.h, and the sources of those that it does not list. */
static const struct {
        unsigned long type;
        enum authority authority;
} types[] = {
        { 0x0000ef53 /* ext2, ext3, ext4 */, AUTHORITY_KERNEL },
        { 0x58465342 /* xfs */, AUTHORITY_KERNEL },
        { 0x9123683e /* btrfs */, AUTHORITY_KERNEL },
        { TMPFS_TYPE, AUTHORITY_KERNEL },
        { 0xf2f52010 /* f2fs */, AUTHORITY_KERNEL },
        { 0x794c7630 /* overlay */, AUTHORITY_KERNEL },
        { 0x2fc12fc1 /* zfs */, AUTHORITY_KERNEL },
        { 0xca451a4e /* bcachefs */, AUTHORITY_KERNEL },
        { 0x73717368 /* squashfs */, AUTHORITY_KERNEL },
        { 0xe0f5e1e2 /* erofs */, AUTHORITY_KERNEL },
        { 0x00009660 /* iso9660 */, AUTHORITY_KERNEL },
        { 0x00004d44 /* vfat */, AUTHORITY_KERNEL },
        { 0x2011bab0 /* exfat */, AUTHORITY_KERNEL },
        { 0x7366746e /* ntfs3 */, AUTHORITY_KERNEL },
        { 0x00006969 /* nfs */, AUTHORITY_OTHERS },
        { 0xff534d42 /* cifs */, AUTHORITY_OTHERS },
        { 0xfe534d42 /* smb2 */, AUTHORITY_OTHERS },
        { 0x65735546 /* fuse, virtiofs */, AUTHORITY_OTHERS },
        { 0x01021997 /* 9p */, AUTHORITY_OTHERS },
        { 0x00c36400 /* ceph */, AUTHORITY_OTHERS },
        { 0x5346414f /* afs */, AUTHORITY_OTHERS },
        { 0x0bd00bd0 /* lustre */, AUTHORITY_OTHERS },
        { 0x47504653 /* gpfs */, AUTHORITY_OTHERS },
};

bool authority_is_mounted_as(const char *type, int fd)
{
        cleanup_mount_table struct mountinfo table = {};
        bool found = false;
        struct stat st;

        if (fstat(fd, &st) < 0)
                return true; /* not known: as if it were */
        if (major(st.st_dev) != 0)
                return false; /* on a block device */
        if (mountinfo_open_own(&table) < 0)
                return true;
        while (!found && mountinfo_next(&table))
                found = table.device == st.st_dev && strcmp(table.type, type) == 0;
        return found || table.failed;
}

/* Of a 9p filesystem statfs(2) gives the type of the server's (v9fs_statfs() in fs/9p/vfs_super.c). */
static bool is_9p(int fd)
{
        return authority_is_mounted_as("9p", fd);
}

/* 9p has none in any kernel; where there are some, the node's mounts, which may be many, need not be read. */
static bool has_file_handles(int fd)
{
        struct file_handle head = {};
        int ignored;

        return name_to_handle_at(fd, "", &head, &ignored, AT_EMPTY_PATH) == 0 || errno == EOVERFLOW;
}

/* The row of a filesystem's type. Returns its index or negative errno; ENOENT it has none. */
static int find_type(int fd)
{
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return -errno;
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if ((unsigned long)(unsigned)fs.f_type == types[i].type)
                        return (int)i;
        return -ENOENT;
}

int authority_is_known(int fd)
{
        int type = find_type(fd);

        if (type == -ENOENT)
                return is_9p(fd);
        if (type < 0)
                return type;
        /* devtmpfs is a tmpfs to statfs(2): who may make names there makes devices of the node */
        return types[type].type != TMPFS_TYPE || !authority_is_mounted_as("devtmpfs", fd);
}

int authority_of(int fd)
{
        int type = find_type(fd);

        if (type < 0 && type != -ENOENT)
                return type;
        if (type >= 0 && (types[type].authority != AUTHORITY_KERNEL || has_file_handles(fd)))
                return (int)types[type].authority;
        if (is_9p(fd))
                return AUTHORITY_OTHERS;
        return type >= 0 ? (int)types[type].authority : AUTHORITY_UNKNOWN;
}
