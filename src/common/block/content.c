/* SPDX-License-Identifier: Apache-2.0 */
#include "block/content.h"

#include <blkid/blkid.h>
#include <errno.h>

#include "base/text.h"

#define SECTOR_BYTES 512 /* in which libblkid counts, whatever the table does */

static void probe_drop(blkid_probe *probe)
{
        blkid_free_probe(*probe);
}
#define cleanup_probe __attribute__((cleanup(probe_drop)))

/*
 * Probe for content of some usage (BLKID_USAGE_*): 1 found, 0 nothing, -ENOTUNIQ several, or another negative errno.
 * Usages are probed one after the other, to keep few of libblkid's buffers in memory.
 */
static int probe_for(int fd, uint64_t offset_bytes, uint64_t size_bytes, int filter, int usage, char *ret_type)
{
        cleanup_probe blkid_probe probe = blkid_new_probe();
        const char *type = NULL;
        int r;

        if (probe == NULL)
                return -ENOMEM;
        if (blkid_probe_set_device(probe, fd, (blkid_loff_t)offset_bytes, (blkid_loff_t)size_bytes) < 0 ||
            blkid_probe_enable_superblocks(probe, 1) < 0 ||
            blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE) < 0 ||
            blkid_probe_filter_superblocks_usage(probe, filter, usage) < 0)
                return -EIO;
        r = blkid_do_safeprobe(probe);
        if (r != 0)
                return r > 0 ? 0 : r == -2 ? -ENOTUNIQ : -EIO;
        if (blkid_probe_lookup_value(probe, "TYPE", &type, NULL) < 0)
                return 0;
        (void)text_copy(ret_type, CONTENT_TYPE_SIZE, type);
        return 1;
}

int content_fs_type(int fd, uint64_t offset_bytes, uint64_t size_bytes, const char *subject, char *ret_type,
                    struct error *error)
{
        char other[CONTENT_TYPE_SIZE];
        /* First RAID, LVM, encryption: a filesystem signature on these is part of something larger. */
        int r = probe_for(fd, offset_bytes, size_bytes, BLKID_FLTR_NOTIN, BLKID_USAGE_FILESYSTEM, other);

        if (r > 0)
                return fail_because(error, ENODATA, OPERATION_PROBE, subject, "it holds no filesystem but %s", other);
        if (r == 0)
                r = probe_for(fd, offset_bytes, size_bytes, BLKID_FLTR_ONLYIN, BLKID_USAGE_FILESYSTEM, ret_type);
        if (r == -ENOTUNIQ)
                return fail_because(error, ENOTUNIQ, OPERATION_PROBE, subject,
                                    "it has signatures of several filesystems; choose one with \"fsType\"");
        if (r < 0)
                return fail(error, -r, OPERATION_PROBE, subject);
        if (r == 0)
                return fail_because(
                        error, ENODATA, OPERATION_PROBE, subject,
                        "it holds no filesystem that could be recognised (blank, a partition table, or damaged)");
        return 0;
}

static void copy_value(blkid_probe probe, const char *name, char *ret_text, size_t size)
{
        const char *value = NULL;

        ret_text[0] = '\0';
        if (blkid_probe_lookup_value(probe, name, &value, NULL) == 0 && value != NULL)
                (void)text_copy(ret_text, size, value);
}

int content_tags(int fd, uint64_t offset_bytes, uint64_t size_bytes, char ret_label[CONTENT_LABEL_SIZE],
                 char ret_uuid[CONTENT_UUID_SIZE])
{
        cleanup_probe blkid_probe probe = blkid_new_probe();
        int r;

        ret_label[0] = '\0';
        ret_uuid[0] = '\0';
        if (probe == NULL)
                return -ENOMEM;
        if (blkid_probe_set_device(probe, fd, (blkid_loff_t)offset_bytes, (blkid_loff_t)size_bytes) < 0 ||
            blkid_probe_enable_superblocks(probe, 1) < 0 ||
            blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_LABEL | BLKID_SUBLKS_UUID) < 0 ||
            blkid_probe_filter_superblocks_usage(probe, BLKID_FLTR_ONLYIN, BLKID_USAGE_FILESYSTEM) < 0)
                return -EIO;
        r = blkid_do_safeprobe(probe);
        if (r < 0)
                return r == -2 ? 0 : -EIO;
        if (r == 0) {
                copy_value(probe, "LABEL", ret_label, CONTENT_LABEL_SIZE);
                copy_value(probe, "UUID", ret_uuid, CONTENT_UUID_SIZE);
        }
        return 0;
}

unsigned content_block_bytes(int fd, uint64_t offset_bytes)
{
        cleanup_probe blkid_probe probe = blkid_new_probe();
        char text[16];
        uint64_t size;

        if (probe == NULL || blkid_probe_set_device(probe, fd, (blkid_loff_t)offset_bytes, 0) < 0 ||
            blkid_probe_enable_superblocks(probe, 1) < 0 ||
            blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE) < 0 ||
            blkid_probe_filter_superblocks_usage(probe, BLKID_FLTR_ONLYIN, BLKID_USAGE_FILESYSTEM) < 0 ||
            blkid_do_safeprobe(probe) != 0)
                return 0;
        copy_value(probe, "BLOCK_SIZE", text, sizeof text);
        /* a device has a power of two of bytes, at least a sector */
        return text_number(text, UINT16_MAX + 1U, &size) && size >= SECTOR_BYTES && (size & (size - 1)) == 0
                       ? (unsigned)size
                       : 0;
}

static uint64_t in_bytes(blkid_loff_t sectors)
{
        return sectors < 0 || (uint64_t)sectors > UINT64_MAX / SECTOR_BYTES ? UINT64_MAX
                                                                            : (uint64_t)sectors * SECTOR_BYTES;
}

/* Those of the table itself: a partition may hold a table of its own (BSD, Solaris), which nothing here mounts. */
static int list(blkid_partlist partitions, const char *subject, struct content_table *ret_table, struct error *error)
{
        blkid_parttable table = blkid_partlist_get_table(partitions);
        int count = blkid_partlist_numof_partitions(partitions);

        for (int i = 0; i < count; i++) {
                blkid_partition partition = blkid_partlist_get_partition(partitions, i);
                struct content_partition *found = &ret_table->partitions[ret_table->count];
                const char *name;
                const char *uuid;

                if (partition == NULL || blkid_partition_get_table(partition) != table ||
                    blkid_partition_is_extended(partition) || blkid_partition_get_partno(partition) < 1)
                        continue;
                if (ret_table->count == CONTENT_PARTITIONS_MAX)
                        return fail_because(error, E2BIG, "read partition table", subject,
                                            "it has more than %d partitions", CONTENT_PARTITIONS_MAX);
                name = blkid_partition_get_name(partition);
                uuid = blkid_partition_get_uuid(partition);
                *found = (struct content_partition){
                        .number = (unsigned)blkid_partition_get_partno(partition),
                        .offset_bytes = in_bytes(blkid_partition_get_start(partition)),
                        .size_bytes = in_bytes(blkid_partition_get_size(partition)),
                };
                (void)text_copy(found->name, sizeof found->name, name != NULL ? name : "");
                (void)text_copy(found->uuid, sizeof found->uuid, uuid != NULL ? uuid : "");
                ret_table->count++;
        }
        return 1;
}

static int probe_with(int fd, unsigned sector_bytes, const char *subject, struct content_table *ret_table,
                      struct error *error)
{
        cleanup_probe blkid_probe probe = blkid_new_probe();
        blkid_partlist partitions;

        if (probe == NULL)
                return fail(error, ENOMEM, "read partition table", subject);
        if (blkid_probe_set_device(probe, fd, 0, 0) < 0 || blkid_probe_set_sectorsize(probe, sector_bytes) < 0 ||
            blkid_probe_enable_partitions(probe, 1) < 0)
                return fail(error, EIO, "read partition table", subject);
        partitions = blkid_probe_get_partitions(probe);
        if (partitions == NULL || blkid_partlist_get_table(partitions) == NULL)
                return 0;
        ret_table->sector_bytes = sector_bytes;
        ret_table->count = 0;
        return list(partitions, subject, ret_table, error);
}

int content_partitions(int fd, const char *subject, struct content_table *ret_table, struct error *error)
{
        int r = probe_with(fd, SECTOR_BYTES, subject, ret_table, error);

        /* of a disk with larger sectors, on which a GPT is elsewhere */
        return r != 0 ? r : probe_with(fd, 4096, subject, ret_table, error);
}
