/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kata_image.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "process/log.h"
#include "volume/request.h"

#define NEW_NAME KATA_IMAGE_NAME ".new"
#define ALIGN_BYTES ((uint64_t)2 << 20) /* of the machine's mapping */
#define MIN_BYTES ((uint64_t)16 << 20)
#define MAX_BYTES ((uint64_t)2 << 40) /* an MBR counts sectors in 32 bits */
#define OFFSET_BYTES ALIGN_BYTES      /* of the filesystem */
#define OLD_OFFSET_BYTES ((uint64_t)4 << 20)
#define SECTOR_BYTES 512U
#define ENTRY_AT 446 /* the first of the table */
#define START_AT 8   /* of an entry */
#define COUNT_AT 12
#define SIGNATURE_AT 510
#define PAGE_BYTES 4096U
#define NOTES_AT PAGE_BYTES
#define UUID_BYTES 16
#define MODE_RAM 1 /* PFN_MODE_RAM: the guest keeps its struct pages in its own memory */

/* drivers/nvdimm/pfn.h, version 1.4; all of it little-endian. */
struct notes {
        char signature[16];
        uint8_t uuid[UUID_BYTES];
        uint8_t parent_uuid[UUID_BYTES]; /* none: the machine's module has no labels */
        uint32_t flags;
        uint16_t version_major;
        uint16_t version_minor;
        uint64_t data_offset;
        uint64_t page_count;
        uint32_t mode;
        uint32_t start_pad;
        uint32_t end_trunc;
        uint32_t align;
        uint32_t page_size;
        uint16_t page_struct_size;
        uint8_t padding[3994];
        uint64_t checksum;
} __attribute__((packed));

_Static_assert(sizeof(struct notes) == PAGE_BYTES, "as the kernel has it");

/* nd_fletcher64(), over a checksum of zero. */
static uint64_t checksum_of(const struct notes *notes)
{
        const uint8_t *bytes = (const uint8_t *)notes;
        uint32_t low = 0;
        uint64_t high = 0;

        for (size_t i = 0; i < sizeof *notes; i += sizeof(uint32_t)) {
                uint32_t word;

                (void)memcpy(&word, bytes + i, sizeof word);
                low += le32toh(word);
                high += low;
        }
        return high << 32 | low;
}

static int write_notes(int fd, uint64_t size_bytes, struct error *error)
{
        struct notes notes = { .signature = "NVDIMM_PFN_INFO",
                               .version_major = htole16(1),
                               .version_minor = htole16(4),
                               .data_offset = htole64(OFFSET_BYTES),
                               .page_count = htole64((size_bytes - OFFSET_BYTES) / PAGE_BYTES),
                               .mode = htole32(MODE_RAM),
                               .align = htole32((uint32_t)ALIGN_BYTES),
                               .page_size = htole32(PAGE_BYTES),
                               .page_struct_size = htole16(64) };
        cleanup_close int random_fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

        if (random_fd < 0 || read(random_fd, notes.uuid, UUID_BYTES) != UUID_BYTES)
                return fail(error, errno, "read", "/dev/urandom");
        notes.checksum = htole64(checksum_of(&notes));
        return pwrite(fd, &notes, sizeof notes, NOTES_AT) == (ssize_t)sizeof notes
                       ? 0
                       : fail(error, errno, "write", KATA_IMAGE_NAME);
}

static void put_number(uint8_t *at, uint64_t number)
{
        uint32_t word = htole32((uint32_t)number);

        (void)memcpy(at, &word, sizeof word);
}

static const uint8_t signature[2] = { 0x55, 0xaa };

/* One partition, to the end. */
static int write_table(int fd, uint64_t size_bytes, struct error *error)
{
        uint8_t sector[SECTOR_BYTES] = {};
        uint8_t *entry = sector + ENTRY_AT;

        (void)memset(entry + 1, 0xff, 3); /* no cylinders, heads and sectors */
        entry[4] = 0x83;                  /* Linux */
        (void)memset(entry + 5, 0xff, 3);
        put_number(entry + START_AT, OFFSET_BYTES / SECTOR_BYTES);
        put_number(entry + COUNT_AT, (size_bytes - OFFSET_BYTES) / SECTOR_BYTES);
        (void)memcpy(sector + SIGNATURE_AT, signature, sizeof signature);
        return pwrite(fd, sector, sizeof sector, 0) == (ssize_t)sizeof sector
                       ? 0
                       : fail(error, errno, "write", KATA_IMAGE_NAME);
}

/* mountdevice does not know for which pod it is: files that are there may be another's, and the image would take their room. */
static int check_no_files(int dir_fd, struct error *error)
{
        static const char *const passed[] = { ".", "..", "lost+found", NULL };
        DIR *list = file_list(dir_fd, ".");
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "make image", KATA_IMAGE_NAME);
        while (r == 0 && (errno = 0, entry = readdir(list)) != NULL)
                if (strcmp(entry->d_name, NEW_NAME) != 0 && !text_among(entry->d_name, passed))
                        r = fail_because(error, ENOTEMPTY, "make image", KATA_IMAGE_NAME,
                                         "the volume has files already; an image for a virtual machine is made in "
                                         "a new volume only");
        if (r == 0 && errno != 0)
                r = fail(error, errno, "make image", KATA_IMAGE_NAME);
        (void)closedir(list); /* only read from */
        return r;
}

int kata_image_find_offset(int image_fd, uint64_t *ret_offset_bytes, struct error *error)
{
        uint8_t sector[SECTOR_BYTES];
        ssize_t n = pread(image_fd, sector, sizeof sector, 0);
        uint32_t start;

        if (n < 0)
                return fail(error, errno, "read", KATA_IMAGE_NAME);
        (void)memcpy(&start, sector + ENTRY_AT + START_AT, sizeof start);
        *ret_offset_bytes = (uint64_t)le32toh(start) * SECTOR_BYTES;
        if (n < (ssize_t)sizeof sector || memcmp(sector + SIGNATURE_AT, signature, sizeof signature) != 0 ||
            (*ret_offset_bytes != OFFSET_BYTES && *ret_offset_bytes != OLD_OFFSET_BYTES))
                return fail_because(
                        error, EBADMSG, "read partition table", KATA_IMAGE_NAME,
                        "the partition table of " KATA_IMAGE_NAME
                        " is damaged: it has a partition neither at 2 MiB nor, as earlier images, at 4 MiB");
        if (*ret_offset_bytes == OLD_OFFSET_BYTES)
                log_say(KATA_IMAGE_NAME
                        " is an earlier image, with a partition for the virtual machine: Kata Containers, "
                        "which mounts the whole disk, needs a new volume");
        return 0;
}

static int make_in(int dir_fd, uint64_t size_bytes, struct error *error)
{
        cleanup_close int fd = -EBADF;
        int r;

        if ((r = check_no_files(dir_fd, error)) < 0)
                return r;
        if (unlinkat(dir_fd, NEW_NAME, 0) < 0 && errno != ENOENT)
                return fail(error, errno, "unlink", NEW_NAME);
        fd = openat(dir_fd, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return fail(error, errno, "make image", KATA_IMAGE_NAME);
        if (fallocate(fd, 0, 0, (off_t)size_bytes) < 0)
                return fail(error, errno, "make image", KATA_IMAGE_NAME);
        if ((r = write_table(fd, size_bytes, error)) < 0 || (r = write_notes(fd, size_bytes, error)) < 0)
                return r;
        if (fsync(fd) < 0 || renameat(dir_fd, NEW_NAME, dir_fd, KATA_IMAGE_NAME) < 0 || fsync(dir_fd) < 0)
                return fail(error, errno, "make image", KATA_IMAGE_NAME);
        return 0;
}

bool kata_image_is_below(const char *state_dir, const char *dir)
{
        size_t length = strlen(state_dir);

        return strncmp(dir, state_dir, length) == 0 && text_starts(dir + length, "/kata/");
}

void kata_image_record(const char *dir, char *ret_name)
{
        (void)snprintf(ret_name, KATA_IMAGE_RECORD_SIZE, VOLUME_INNER_KATA "%.64s", strrchr(dir, '/') + 1);
}

bool kata_image_exists(const char *dir)
{
        char path[PATH_MAX];

        return snprintf(path, sizeof path, "%s/" KATA_IMAGE_NAME, dir) < (int)sizeof path &&
               faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int kata_image_refuse(const char *operation, const char *volume_name, struct error *error)
{
        return fail_because(error, EOPNOTSUPP, operation, volume_name,
                            "it is for virtual machines (%s): its content is in an image", POOL_FOR_MACHINES);
}

int kata_image_make(const char *dir, struct error *error)
{
        cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct statfs space;
        uint64_t size_bytes;
        struct stat st;
        int r;

        if (dir_fd < 0)
                return fail(error, errno, "open", dir);
        if (fstatat(dir_fd, KATA_IMAGE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return S_ISREG(st.st_mode) ? 0
                                           : fail_because(error, EINVAL, OPERATION_OPEN_IMAGE, KATA_IMAGE_NAME,
                                                          KATA_IMAGE_NAME " of the volume is not a regular file");
        if (unlinkat(dir_fd, NEW_NAME, 0) < 0 && errno != ENOENT)
                return fail(error, errno, "unlink", NEW_NAME);
        if (fstatfs(dir_fd, &space) < 0)
                return fail(error, errno, "statfs", dir);
        /* the filesystem needs some room for its own data about the file */
        size_bytes = (uint64_t)space.f_bavail * (uint64_t)space.f_bsize;
        size_bytes = (size_bytes - size_bytes / 100) / ALIGN_BYTES * ALIGN_BYTES;
        if (size_bytes > MAX_BYTES)
                size_bytes = MAX_BYTES;
        if (size_bytes < MIN_BYTES)
                return fail_because(error, ENOSPC, "make image", KATA_IMAGE_NAME,
                                    "the volume has room for an image of %llu bytes; it needs %llu",
                                    (unsigned long long)size_bytes, (unsigned long long)MIN_BYTES);
        r = make_in(dir_fd, size_bytes, error);
        if (r < 0) {
                (void)unlinkat(dir_fd, NEW_NAME, 0); /* the first failure is the one to report */
                return r;
        }
        log_say("made an image of %llu bytes for a virtual machine in %s", (unsigned long long)size_bytes, dir);
        return 0;
}
