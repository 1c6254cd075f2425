/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs-verdicts DIR - what calls say of a filesystem, one line each: "what: verdict". Made for comparing two mounts of one
 * filesystem. DIR is empty and belongs to the caller: root (of a user namespace), who tries much as other users, too, or
 * a user. The classic calls are in the headers, and leave nothing; those here, the newer and rarer ones, leave their files.
 *
 * A verdict is the error's name, or what the call gave, as far as that does not depend on when it is asked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs_verdicts_files.h"
#include "fs_verdicts_kinds.h"
#include "fs_verdicts_names.h"
#include "fs_verdicts_rights.h"
#include "fs_verdicts_times.h"

#define BLOCK 65536 /* a multiple of the block size of each filesystem */

static int link_fd(int fd, const char *name)
{
        char path[64];

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Run as that user, in a process of its own. */
static void as(uid_t uid, void (*function)(void))
{
        const struct who who = { .uid = uid, .gid = uid };

        as_who(&who, function);
}

/* ---- O_TMPFILE */

static void tmpfile_of_user(void)
{
        struct stat st = {};
        int fd;

        umask(027);
        fd = (int)verdict("tmpfile of a user", open("open", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
        if (fd >= 0 && fstat(fd, &st) == 0)
                say("its owner and mode", "%u:%u %o", st.st_uid, st.st_gid, st.st_mode & 07777);
        if (fd >= 0)
                verdict("linked by the user", link_fd(fd, "open/of-user"));
        verdict("tmpfile of a user without the right", open("closed", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
        fd = (int)verdict("tmpfile in a setgid directory", open("team", O_TMPFILE | O_RDWR | O_CLOEXEC, 02666));
        if (fd >= 0 && fstat(fd, &st) == 0)
                say("its group and mode", "%u %o", st.st_gid, st.st_mode & 07777);
}

static void try_tmpfile(void)
{
        char text[8] = "";
        struct stat st;
        int fd;

        mkdir("open", 0777);
        chmod("open", 0777);
        mkdir("closed", 0755);
        mkdir("team", 0777);
        if (chown("team", 0, 2000) < 0 || chmod("team", 02777) < 0)
                say("team", "%s", strerrorname_np(errno));
        fd = (int)verdict("tmpfile", open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0640));
        if (fd >= 0) {
                if (write(fd, "text", 4) == 4 && pread(fd, text, 4, 0) == 4 && fstat(fd, &st) == 0)
                        say("tmpfile holds", "%s, links %lu, mode %o", text, (unsigned long)st.st_nlink,
                            st.st_mode & 07777);
                verdict("tmpfile linked", link_fd(fd, "named"));
                verdict("tmpfile linked again", link_fd(fd, "named-too"));
                if (stat("named", &st) == 0)
                        say("its links", "%lu", (unsigned long)st.st_nlink);
                close(fd);
                unlink("named-too");
        }
        fd = (int)verdict("tmpfile, exclusive", open(".", O_TMPFILE | O_WRONLY | O_EXCL | O_CLOEXEC, 0600));
        if (fd >= 0) {
                verdict("exclusive one linked", link_fd(fd, "exclusive"));
                close(fd);
        }
        verdict("tmpfile to read", open(".", O_TMPFILE | O_RDONLY | O_CLOEXEC, 0600));
        verdict("tmpfile in a file", open("named", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
        fd = open(".", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0000);
        verdict("tmpfile without rights, to append", fd);
        if (fd >= 0 && (pwrite(fd, "a", 1, 5) != 1 || pwrite(fd, "b", 1, 0) != 1 || pread(fd, text, 2, 0) != 2 ||
                        memcmp(text, "ab", 2) != 0))
                say("what was appended", "%s", text);
        as(1000, tmpfile_of_user);
}

/* ---- birth time */

static void try_birth(const char *name, const char *what)
{
        struct statx st = {};
        struct stat other = {};

        if (verdict(what, statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st)) < 0)
                return;
        say(what, "birth time %s",
            (st.stx_mask & STATX_BTIME) == 0            ? "unknown"
            : st.stx_btime.tv_sec < 1600000000          ? "in the past"
            : st.stx_btime.tv_sec > st.stx_ctime.tv_sec ? "in the future"
                                                        : "known");
        if (lstat(name, &other) == 0)
                say(what, "%s as stat says",
                    st.stx_size == (uint64_t)other.st_size && st.stx_mode == other.st_mode &&
                                    st.stx_uid == other.st_uid && st.stx_gid == other.st_gid &&
                                    st.stx_ino == other.st_ino && st.stx_nlink == other.st_nlink &&
                                    st.stx_blocks == (uint64_t)other.st_blocks &&
                                    st.stx_mtime.tv_sec == other.st_mtim.tv_sec &&
                                    st.stx_mtime.tv_nsec == (uint32_t)other.st_mtim.tv_nsec &&
                                    st.stx_ctime.tv_nsec == (uint32_t)other.st_ctim.tv_nsec &&
                                    st.stx_atime.tv_nsec == (uint32_t)other.st_atim.tv_nsec
                            ? "the rest"
                            : "not all");
}

/* ---- flags */

static void try_get(int fd, const char *what)
{
        struct fsxattr more = {};
        unsigned flags = 0;

        if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
                say(what, "flags %s", strerrorname_np(errno));
        else
                say(what, "flags %x", flags);
        if (ioctl(fd, FS_IOC_FSGETXATTR, &more) < 0)
                say(what, "more %s", strerrorname_np(errno));
        else
                say(what, "more %x, hint %u, project %u", more.fsx_xflags, more.fsx_extsize, more.fsx_projid);
}

static void try_set(int fd, const char *what, unsigned set)
{
        unsigned before = 0, after = 0;

        if (ioctl(fd, FS_IOC_GETFLAGS, &before) < 0) {
                say(what, "%s", strerrorname_np(errno));
                return;
        }
        set |= before;
        if (verdict(what, ioctl(fd, FS_IOC_SETFLAGS, &set)) == 0 && ioctl(fd, FS_IOC_GETFLAGS, &after) == 0)
                say(what, "flags %x", after);
        if (ioctl(fd, FS_IOC_SETFLAGS, &before) < 0 || ioctl(fd, FS_IOC_GETFLAGS, &after) < 0 || after != before)
                say(what, "cannot be taken back: %x", after);
}

static void try_set_more(int fd, const char *what, unsigned set, uint32_t hint, uint32_t project)
{
        struct fsxattr before = {}, now, after = {};

        if (ioctl(fd, FS_IOC_FSGETXATTR, &before) < 0) {
                say(what, "%s", strerrorname_np(errno));
                return;
        }
        now = before;
        now.fsx_xflags |= set;
        now.fsx_extsize = hint;
        now.fsx_projid += project;
        if (verdict(what, ioctl(fd, FS_IOC_FSSETXATTR, &now)) == 0 && ioctl(fd, FS_IOC_FSGETXATTR, &after) == 0)
                say(what, "more %x, hint %u, project %u", after.fsx_xflags, after.fsx_extsize, after.fsx_projid);
        if (ioctl(fd, FS_IOC_FSSETXATTR, &before) < 0)
                say(what, "cannot be taken back: %s", strerrorname_np(errno));
}

static void flags_of_user(void)
{
        unsigned flags = FS_NODUMP_FL;
        int fd = open("of-user", O_RDONLY | O_CLOEXEC);

        try_get(fd, "a user's file, by the user");
        try_set(fd, "a user's file, by the user, nodump", FS_NODUMP_FL);
        try_set(fd, "a user's file, by the user, immutable", FS_IMMUTABLE_FL);
        close(fd);
        fd = open("flags", O_RDONLY | O_CLOEXEC);
        try_get(fd, "root's file, by a user");
        verdict("root's file, by a user, nodump", ioctl(fd, FS_IOC_SETFLAGS, &flags));
        close(fd);
}

static void try_flags(void)
{
        static const struct {
                unsigned flag;
                const char *name;
        } flags[] = { { FS_NODUMP_FL, "nodump" },
                      { FS_NOATIME_FL, "noatime" },
                      { FS_SYNC_FL, "sync" },
                      { FS_DIRSYNC_FL, "dirsync" },
                      { FS_IMMUTABLE_FL, "immutable" },
                      { FS_APPEND_FL, "append" },
                      { FS_COMPR_FL, "compressed" },
                      { FS_NOCOW_FL, "nocow" },
                      { FS_JOURNAL_DATA_FL, "journal" },
                      { FS_PROJINHERIT_FL, "project inherited" },
                      { FS_TOPDIR_FL, "topdir" },
                      { FS_SECRM_FL, "secrm" },
                      { FS_CASEFOLD_FL, "casefold" },
                      { FS_VERITY_FL, "verity" },
                      { FS_DAX_FL, "dax" },
                      { 0x40000, "huge" } };
        char what[64];
        int file = make("flags", 0644);
        int dir;
        int user = make("of-user", 0600);

        mkdir("flags-dir", 0755);
        mkfifo("flags-pipe", 0644);
        dir = open("flags-dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fchown(user, 1000, 1000) < 0)
                say("of-user", "%s", strerrorname_np(errno));
        try_get(file, "a file");
        try_get(dir, "a directory");
        try_get(open("flags-pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC), "a pipe");
        try_get(open("flags", O_PATH | O_CLOEXEC), "a path");
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
                snprintf(what, sizeof what, "file, %s", flags[i].name);
                try_set(file, what, flags[i].flag);
                snprintf(what, sizeof what, "directory, %s", flags[i].name);
                try_set(dir, what, flags[i].flag);
        }
        try_set_more(file, "more: nothing", 0, 0, 0);
        try_set_more(file, "more: nodump", FS_XFLAG_NODUMP, 0, 0);
        try_set_more(file, "more: immutable", FS_XFLAG_IMMUTABLE, 0, 0);
        try_set_more(file, "more: append", FS_XFLAG_APPEND, 0, 0);
        try_set_more(file, "more: hint", FS_XFLAG_EXTSIZE, BLOCK, 0);
        try_set_more(file, "more: realtime", FS_XFLAG_REALTIME, 0, 0);
        try_set_more(file, "more: project", 0, 0, 7);
        try_set_more(dir, "more: directory, hint", FS_XFLAG_EXTSZINHERIT, BLOCK, 0);
        try_set_more(dir, "more: directory, project", 0, 0, 7);
        try_set_more(dir, "more: directory, project inherited", FS_XFLAG_PROJINHERIT, 0, 0);
        try_set(user, "a user's file, nodump", FS_NODUMP_FL);
        as(1000, flags_of_user);
        if (chmod("of-user", 0644) < 0)
                say("of-user", "%s", strerrorname_np(errno));
        close(file);
        close(dir);
        close(user);
}

/* ---- other ioctls */

static void try_ioctls(void)
{
        static uint8_t data[BLOCK];
        union {
                struct file_dedupe_range head;
                uint8_t bytes[sizeof(struct file_dedupe_range) + sizeof(struct file_dedupe_range_info)];
        } same = { .head = { .src_length = BLOCK, .dest_count = 1 } };
        struct fiemap extents = { .fm_length = UINT64_MAX, .fm_flags = FIEMAP_FLAG_SYNC };
        struct file_clone_range range = { .src_length = BLOCK };
        int from = make("from", 0644);
        int to = make("to", 0644);
        int number = 0;

        memset(data, 'd', sizeof data);
        if (write(from, data, sizeof data) != (ssize_t)sizeof data || write(to, data, sizeof data) < 0 ||
            fsync(from) < 0)
                say("from", "%s", strerrorname_np(errno));
        range.src_fd = from;
        same.head.info[0].dest_fd = to;
        verdict("FIEMAP", ioctl(from, FS_IOC_FIEMAP, &extents));
        verdict("FIDEDUPERANGE", ioctl(from, FIDEDUPERANGE, &same) < 0 ? -1 : 0);
        verdict("FICLONE", ioctl(to, FICLONE, from));
        verdict("FICLONERANGE", ioctl(to, FICLONERANGE, &range));
        verdict("FIGETBSZ", ioctl(from, FIGETBSZ, &number));
        if (ioctl(from, FIONREAD, &number) == 0)
                say("FIONREAD", "%d", number);
        verdict("FIBMAP", ioctl(from, FIBMAP, &number));
        verdict("FS_IOC_GETVERSION", ioctl(from, FS_IOC_GETVERSION, &number));
        verdict("FITRIM", ioctl(from, FITRIM, data));
        if (verdict("FIFREEZE", ioctl(from, FIFREEZE, 0)) == 0)
                verdict("FITHAW", ioctl(from, FITHAW, 0));
        verdict("an unknown one", ioctl(from, _IOWR('f', 250, int), &number));
        close(from);
        close(to);
}

/* ---- space */

static void try_fallocate(const char *what, int mode, off_t offset, off_t length)
{
        static uint8_t data[4 * BLOCK];
        unsigned long sum = 0;
        struct stat st = {};
        int fd = make("space", 0644);
        ssize_t n;

        memset(data, 'd', sizeof data);
        if (write(fd, data, sizeof data) != (ssize_t)sizeof data)
                say("space", "%s", strerrorname_np(errno));
        if (verdict(what, fallocate(fd, mode, offset, length)) == 0 && fstat(fd, &st) == 0 &&
            (n = pread(fd, data, sizeof data, 0)) >= 0) {
                for (ssize_t i = 0; i < n; i++)
                        sum += data[i] == 'd';
                say(what, "size %lld, data %lu", (long long)st.st_size, sum);
        }
        close(fd);
}

static void try_space(void)
{
        int fd;

        try_fallocate("fallocate", 0, 2 * BLOCK, 4 * BLOCK);
        try_fallocate("fallocate, size kept", FALLOC_FL_KEEP_SIZE, 2 * BLOCK, 4 * BLOCK);
        try_fallocate("hole", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BLOCK, 2 * BLOCK);
        try_fallocate("hole, not of blocks", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, BLOCK + 100);
        try_fallocate("hole, size not kept", FALLOC_FL_PUNCH_HOLE, BLOCK, BLOCK);
        try_fallocate("zeroes", FALLOC_FL_ZERO_RANGE, BLOCK, 4 * BLOCK);
        try_fallocate("zeroes, size kept", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, BLOCK, 4 * BLOCK);
        try_fallocate("collapse", FALLOC_FL_COLLAPSE_RANGE, BLOCK, BLOCK);
        try_fallocate("insert", FALLOC_FL_INSERT_RANGE, BLOCK, BLOCK);
        try_fallocate("unshare", FALLOC_FL_UNSHARE_RANGE, 0, BLOCK);
        try_fallocate("no such mode", 1 << 20, 0, BLOCK);
        try_fallocate("no length", 0, 0, 0);
        fd = make("sparse", 0644);
        if (ftruncate(fd, 32 * BLOCK) < 0 || pwrite(fd, "data", 4, 4 * BLOCK) != 4 ||
            pwrite(fd, "data", 4, 16 * BLOCK) != 4)
                say("sparse", "%s", strerrorname_np(errno));
        for (off_t at = -1; at <= 33; at += 2) {
                off_t data = lseek(fd, at * BLOCK, SEEK_DATA);
                off_t hole = lseek(fd, at * BLOCK, SEEK_HOLE);

                printf("from block %lld: data %lld, hole %lld\n", (long long)at, (long long)data, (long long)hole);
        }
        close(fd);
}

static void try_copy(void)
{
        static uint8_t data[4 * BLOCK];
        static uint8_t copy[4 * BLOCK];
        off_t in = 0, out = 0;
        int from = make("copy-from", 0644);
        int to = make("copy-to", 0644);

        for (size_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)(i * 7 + i / 251);
        if (write(from, data, sizeof data) != (ssize_t)sizeof data || fsync(from) < 0)
                say("copy-from", "%s", strerrorname_np(errno));
        say("copy", "%zd", copy_file_range(from, &in, to, &out, sizeof data, 0));
        say("copied", "%s",
            pread(to, copy, sizeof copy, 0) == (ssize_t)sizeof copy && memcmp(copy, data, sizeof copy) == 0
                    ? "the same"
                    : "something else");
        in = 10, out = 5 * BLOCK + 3;
        say("copy, not of blocks", "%zd", copy_file_range(from, &in, to, &out, 1000, 0));
        in = 0, out = 100;
        verdict("copy onto itself", copy_file_range(from, &in, from, &out, BLOCK, 0));
        in = sizeof data, out = 0;
        say("copy from the end", "%zd", copy_file_range(from, &in, to, &out, 10, 0));
        verdict("copy with flags", copy_file_range(from, NULL, to, NULL, 10, 1));
        close(from);
        close(to);
}

/* ---- attributes and names */

static void try_attributes(void)
{
        struct {
                uint32_t head;
                uint32_t data[4];
        } capability = { .head = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, .data = { 1U << CAP_NET_RAW } };
        char value[256], list[4096];
        ssize_t n;
        int fd = make("attributes", 0755);

        verdict("security.capability, set",
                setxattr("attributes", "security.capability", &capability, sizeof capability, 0));
        n = getxattr("attributes", "security.capability", value, sizeof value);
        say("security.capability", "%s", n < 0 ? strerrorname_np(errno) : n == 20 ? "of version 2" : "of version 3");
        verdict("security.other, set", setxattr("attributes", "security.other", "x", 1, 0));
        verdict("trusted.x, set", setxattr("attributes", "trusted.x", "x", 1, 0));
        verdict("user.x, set", setxattr("attributes", "user.x", "x", 1, 0));
        verdict("user.x of a link, set",
                symlink("nowhere", "a-link") < 0 ? -1 : lsetxattr("a-link", "user.x", "x", 1, 0));
        verdict("system.other, set", setxattr("attributes", "system.other", "x", 1, 0));
        verdict("no.such, set", setxattr("attributes", "no.such", "x", 1, 0));
        verdict("no.such", getxattr("attributes", "no.such", value, sizeof value));
        verdict("security.other", getxattr("attributes", "security.other", value, sizeof value));
        verdict("trusted.x", getxattr("attributes", "trusted.x", value, sizeof value));
        n = listxattr("attributes", list, sizeof list);
        for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1)
                say("is listed", "%s", list + i);
        if (write(fd, "x", 1) == 1)
                verdict("security.capability after a write",
                        getxattr("attributes", "security.capability", value, sizeof value));
        close(fd);
}

static void whiteout_of_user(void)
{
        verdict("a user's whiteout", mknod("open/of-user-white", S_IFCHR | 0600, makedev(0, 0)));
}

static void try_names(void)
{
        struct stat st = {};

        close(make("one", 0644));
        close(make("two", 0644));
        verdict("rename, nothing replaced", renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_NOREPLACE));
        verdict("rename, exchanged", renameat2(AT_FDCWD, "one", AT_FDCWD, "two", RENAME_EXCHANGE));
        verdict("rename, whiteout", renameat2(AT_FDCWD, "one", AT_FDCWD, "three", RENAME_WHITEOUT));
        if (lstat("one", &st) == 0)
                say("what is left", "%o %u:%u, owner %u:%u", st.st_mode, major(st.st_rdev), minor(st.st_rdev),
                    st.st_uid, st.st_gid);
        verdict("a whiteout", mknod("white", S_IFCHR | 0600, makedev(0, 0)));
        if (lstat("white", &st) == 0)
                say("a whiteout", "%o %u:%u, owner %u:%u", st.st_mode, major(st.st_rdev), minor(st.st_rdev), st.st_uid,
                    st.st_gid);
        verdict("a whiteout, opened", open("white", O_RDONLY | O_CLOEXEC));
        verdict("a character device", mknod("null", S_IFCHR | 0666, makedev(1, 3)));
        verdict("a block device", mknod("disk", S_IFBLK | 0666, makedev(7, 0)));
        verdict("a block device 0:0", mknod("disk-0", S_IFBLK | 0666, makedev(0, 0)));
        as(1000, whiteout_of_user);
        unlink("one");
        unlink("white");
        unlink("open/of-user-white");
}

/* ---- what else there is */

static void try_lists(void)
{
        DIR *list = mkdir("listed", 0755) < 0 ? NULL : opendir("listed");
        int count = 0;

        if (list == NULL) {
                say("a list", "%s", strerrorname_np(errno));
                return;
        }
        close(make("listed/file", 0644));
        rewinddir(list);
        while (readdir(list) != NULL)
                count++;
        closedir(list);
        say("a list that is begun anew", "%d names", count);
}

static void try_others(void)
{
        struct {
                struct file_handle head;
                uint8_t more[128];
        } handle = { .head = { .handle_bytes = 128 } };
        static uint8_t data[4096] __attribute__((aligned(4096)));
        struct iovec part = { .iov_base = data, .iov_len = sizeof data };
        uint64_t hint = RWH_WRITE_LIFE_SHORT;
        int mount;
        int fd = make("others", 0644);
        int alone;

        if (pwrite(fd, data, sizeof data, 0) != (ssize_t)sizeof data)
                say("others", "%s", strerrorname_np(errno));
        verdict("read, not waiting", preadv2(fd, &part, 1, 0, RWF_NOWAIT));
        say("write, appended", "%zd", pwritev2(fd, &part, 1, 0, RWF_APPEND));
        say("write, synchronous", "%zd", pwritev2(fd, &part, 1, 0, RWF_DSYNC));
        verdict("fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 ? 0 : -1);
        verdict("sync_file_range", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
        verdict("syncfs", syncfs(fd));
        verdict("a hint of its life", fcntl(fd, F_SET_RW_HINT, &hint));
        verdict("a handle", name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH));
        verdict("opened by its handle", open_by_handle_at(fd, &handle.head, O_RDONLY | O_CLOEXEC));
        verdict("linked by its descriptor alone", linkat(fd, "", AT_FDCWD, "others-too", AT_EMPTY_PATH));
        verdict("MAP_SYNC",
                mmap(NULL, sizeof data, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0) == MAP_FAILED
                        ? -1
                        : 0);
        verdict("a lease to write, of two that have it open", fcntl(fd, F_SETLEASE, F_WRLCK));
        close(fd);
        alone = open("others", O_RDONLY | O_CLOEXEC);
        verdict("a lease to read", fcntl(alone, F_SETLEASE, F_RDLCK));
        verdict("a lease's end", fcntl(alone, F_SETLEASE, F_UNLCK));
        verdict("O_NOATIME", open("others", O_RDONLY | O_NOATIME | O_CLOEXEC));
        verdict("O_DIRECT", open("others", O_RDONLY | O_DIRECT | O_CLOEXEC));
        verdict("O_PATH", open("others", O_PATH | O_CLOEXEC));
        verdict("execution of what is no program", execl("others", "others", NULL));
}

int main(int argc, char **argv)
{
        umask(022);
        if (argc != 2 || chdir(argv[1]) < 0) {
                fprintf(stderr, "usage: fs-verdicts DIR\n");
                return 2;
        }
        try_each_kind();
        try_each_name();
        try_each_file();
        try_each_time();
        try_each_right();
        try_tmpfile();
        close(make("born", 0644));
        mkdir("born-dir", 0755);
        if (symlink("born", "born-link") < 0)
                say("born-link", "%s", strerrorname_np(errno));
        try_birth("born", "a file's");
        try_birth("born-dir", "a directory's");
        try_birth("born-link", "a link's");
        try_flags();
        try_ioctls();
        try_space();
        try_copy();
        try_attributes();
        try_names();
        try_lists();
        try_others();
        return 0;
}
