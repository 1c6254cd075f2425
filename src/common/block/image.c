/* SPDX-License-Identifier: Apache-2.0 */
#include "block/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "block/loop.h"
#include "process/privileges.h"
#include "process/sealed_child.h"
#include "process/worker.h"

#define TAG "flexgraft-image:"
#define MEMORY_BYTES ((rlim_t)64 << 20) /* libblkid reads as much of a table as the table says */
#define TRIES_MAX 10                    /* each time that a loop device ended meanwhile */
#define LOOKED_AT_TRIES 100
#define LOOKED_AT_WAIT_MS 20

struct find_job {
        int fd;
        int socket_fd;
        const char *image;
        uint64_t image_bytes;
        const struct image_choice *choice;
        bool probe;
        struct image_part part;
};

/* "2 "root", 3": for messages. What a table says is shown as far as it is plain text. */
static void list_partitions(const struct content_table *table, char *ret_text, size_t size)
{
        size_t used = 0;

        ret_text[0] = '\0';
        for (size_t i = 0; i < table->count && used + CONTENT_NAME_SIZE + 24 < size; i++) {
                const struct content_partition *partition = &table->partitions[i];
                char name[CONTENT_NAME_SIZE];

                (void)text_copy(name, sizeof name, partition->name);
                for (char *c = name; *c != '\0'; c++)
                        if (*c < ' ' || *c > '~')
                                *c = '?';
                used += (size_t)snprintf(ret_text + used, size - used, "%s%u%s%s%s", i == 0 ? "" : ", ",
                                         partition->number, name[0] != '\0' ? " \"" : "", name,
                                         name[0] != '\0' ? "\"" : "");
                if (i + 1 < table->count && used + CONTENT_NAME_SIZE + 24 >= size)
                        (void)snprintf(ret_text + used, size - used, " ...");
        }
}

static int fail_listing(const struct find_job *job, const struct content_table *table, int errnum,
                        const char *complaint, struct error *error)
{
        char text[300];

        list_partitions(table, text, sizeof text);
        return fail_because(error, errnum, OPERATION_FIND_PARTITION, job->image, "%s; it has the partition%s %s",
                            complaint, table->count == 1 ? "" : "s", text);
}

/* ---- by name */

enum tag { TAG_PARTLABEL, TAG_PARTUUID, TAG_LABEL, TAG_UUID, TAGS };
static const char *const tags[TAGS] = { "PARTLABEL=", "PARTUUID=", "LABEL=", "UUID=" };

static bool has_tag(const struct find_job *job, const struct content_partition *partition, enum tag tag,
                    const char *value)
{
        char label[CONTENT_LABEL_SIZE];
        char uuid[CONTENT_UUID_SIZE];

        if (tag == TAG_PARTLABEL)
                return strcmp(partition->name, value) == 0;
        if (tag == TAG_PARTUUID)
                return strcasecmp(partition->uuid, value) == 0;
        if (partition->size_bytes == 0 || partition->offset_bytes >= job->image_bytes ||
            partition->size_bytes > job->image_bytes - partition->offset_bytes ||
            content_tags(job->fd, partition->offset_bytes, partition->size_bytes, label, uuid) < 0)
                return false;
        return tag == TAG_LABEL ? strcmp(label, value) == 0 : strcasecmp(uuid, value) == 0;
}

/* How many partitions have it; ret_found is the last one. */
static size_t count_tag(const struct find_job *job, const struct content_table *table, enum tag tag, const char *value,
                        const struct content_partition **ret_found)
{
        size_t count = 0;

        for (size_t i = 0; i < table->count; i++)
                if (has_tag(job, &table->partitions[i], tag, value)) {
                        *ret_found = &table->partitions[i];
                        count++;
                }
        return count;
}

static int find_name(const struct find_job *job, const struct content_table *table,
                     const struct content_partition **ret_found, struct error *error)
{
        const char *name = job->choice->name;
        char complaint[CONTENT_LABEL_SIZE + 64];
        const char *value = name;
        size_t count = 0;
        int tag = 0;

        while (tag < TAGS && !text_starts(name, tags[tag]))
                tag++;
        if (tag < TAGS) {
                value = name + strlen(tags[tag]);
                count = value[0] != '\0' ? count_tag(job, table, (enum tag)tag, value, ret_found) : 0;
        } else if ((count = count_tag(job, table, TAG_PARTLABEL, value, ret_found)) == 0)
                count = count_tag(job, table, TAG_LABEL, value, ret_found); /* an MBR has no names */
        if (count == 1)
                return 0;
        (void)snprintf(complaint, sizeof complaint,
                       count == 0 ? "no partition is \"%.200s\"" : "several are \"%.200s\"", name);
        return fail_listing(job, table, count == 0 ? ENOENT : ENOTUNIQ, complaint, error);
}

/* ---- by number */

static int find_number(const struct find_job *job, const struct content_table *table,
                       const struct content_partition **ret_found, struct error *error)
{
        char complaint[64];

        *ret_found = NULL;
        for (size_t i = 0; i < table->count; i++)
                if (table->partitions[i].number == job->choice->number)
                        *ret_found = &table->partitions[i];
        if (*ret_found != NULL)
                return 0;
        (void)snprintf(complaint, sizeof complaint, "there is no partition %u", job->choice->number);
        return fail_listing(job, table, ENOENT, complaint, error);
}

/* ---- without a choice */

static int find_only(const struct find_job *job, const struct content_table *table,
                     const struct content_partition **ret_found, struct error *error)
{
        char type[CONTENT_TYPE_SIZE];
        struct error ignored;

        if (content_fs_type(job->fd, 0, 0, job->image, type, &ignored) == 0)
                return fail_because(error, ENOTUNIQ, OPERATION_FIND_PARTITION, job->image,
                                    "it has a partition table, and a filesystem (%s) as a whole; partition 0 is the "
                                    "whole",
                                    type);
        if (table->count != 1)
                return fail_listing(job, table, EINVAL, "none is named", error);
        *ret_found = &table->partitions[0];
        return 0;
}

/* ---- in the process that reads the image */

static int check_partition(const struct find_job *job, const struct content_table *table,
                           const struct content_partition *partition, struct error *error)
{
        const char *complaint = NULL;
        uint64_t end;

        if (partition->size_bytes == 0)
                complaint = "is of size 0";
        else if (partition->offset_bytes == 0)
                complaint = "begins where the table is";
        else if (partition->offset_bytes >= job->image_bytes ||
                 partition->size_bytes > job->image_bytes - partition->offset_bytes)
                complaint = "ends beyond the end of the image";
        if (complaint != NULL)
                return fail_because(error, EBADMSG, OPERATION_FIND_PARTITION, job->image, "partition %u %s",
                                    partition->number, complaint);
        end = partition->offset_bytes + partition->size_bytes;
        for (size_t i = 0; i < table->count; i++) {
                const struct content_partition *other = &table->partitions[i];

                if (other != partition && other->size_bytes > 0 && other->offset_bytes < end &&
                    (other->size_bytes > UINT64_MAX - other->offset_bytes ||
                     other->offset_bytes + other->size_bytes > partition->offset_bytes))
                        return fail_because(error, EBADMSG, OPERATION_FIND_PARTITION, job->image,
                                            "partitions %u and %u overlap", partition->number, other->number);
        }
        return 0;
}

static int find(struct find_job *job, struct error *error)
{
        static struct content_table table;
        const struct image_choice *choice = job->choice;
        const struct content_partition *found = NULL;
        int r;

        job->part = (struct image_part){ .size_bytes = job->image_bytes, .sector_bytes = 512 };
        if (choice->by_number && choice->number == 0)
                return 0;
        r = content_partitions(job->fd, job->image, &table, error);
        if (r < 0)
                return r;
        if (r == 0 && (choice->by_number || choice->name != NULL))
                return fail_because(error, ENOENT, OPERATION_FIND_PARTITION, job->image,
                                    "it has no partition table that could be read");
        if (r == 0)
                return 0;
        if (table.count == 0)
                return fail_because(error, ENOENT, OPERATION_FIND_PARTITION, job->image,
                                    "its partition table is empty");
        r = choice->name != NULL ? find_name(job, &table, &found, error)
            : choice->by_number  ? find_number(job, &table, &found, error)
                                 : find_only(job, &table, &found, error);
        if (r < 0 || (r = check_partition(job, &table, found, error)) < 0)
                return r;
        job->part.offset_bytes = found->offset_bytes;
        job->part.size_bytes = found->size_bytes;
        job->part.number = found->number;
        job->part.sector_bytes = table.sector_bytes;
        return 0;
}

static int find_in_child(void *argument, struct error *error)
{
        struct find_job *job = argument;
        int parent = getppid();
        int r;

#ifndef SANITIZE /* whose memory is larger */
        const struct rlimit memory = { .rlim_cur = MEMORY_BYTES, .rlim_max = MEMORY_BYTES };

        if (setrlimit(RLIMIT_AS, &memory) < 0)
                return fail(error, errno, "setrlimit", job->image);
#endif
        if ((r = privileges_be_nobody(error)) < 0)
                return r;
        worker_dies_with_parent(parent); /* changing ids clears it (prctl(2), PR_SET_PDEATHSIG) */
        r = find(job, error);
        if (r == 0 && job->probe)
                r = content_fs_type(job->fd, job->part.offset_bytes, job->part.size_bytes, job->image, job->part.type,
                                    error);
        if (r < 0)
                return r;
        return write(job->socket_fd, &job->part, sizeof job->part) == (ssize_t)sizeof job->part
                       ? job->fd
                       : fail(error, EIO, "write", "what was found in the image");
}

int image_find(int fd, const char *image, uint64_t image_bytes, const struct image_choice *choice, bool probe,
               struct image_part *ret_part, struct error *error)
{
        struct find_job job = {
                .fd = fd, .image = image, .image_bytes = image_bytes, .choice = choice, .probe = probe
        };
        cleanup_close int answered = -EBADF;
        cleanup_close int theirs = -EBADF;
        cleanup_close int ours = -EBADF;
        int sockets[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail(error, errno, "socketpair", image);
        ours = sockets[0];
        theirs = sockets[1];
        job.socket_fd = theirs;
        answered = sealed_child_run(find_in_child, &job, (const int[]){ fd, theirs }, 2, error);
        if (answered < 0)
                return answered;
        fd_close(&theirs);
        /* what was read may have taken the process over */
        if (read(ours, ret_part, sizeof *ret_part) != (ssize_t)sizeof *ret_part ||
            ret_part->offset_bytes > image_bytes || ret_part->size_bytes > image_bytes - ret_part->offset_bytes ||
            ret_part->size_bytes == 0 ||
            (ret_part->number == 0 ? ret_part->offset_bytes != 0 || ret_part->size_bytes != image_bytes
                                   : ret_part->offset_bytes == 0) ||
            (ret_part->sector_bytes != 512 && ret_part->sector_bytes != 4096) ||
            memchr(ret_part->type, '\0', sizeof ret_part->type) == NULL)
                return fail(error, EPROTO, OPERATION_FIND_PARTITION, image);
        return 0;
}

/* ---- loop devices */

struct attach_search {
        const struct stat *file;
        const char *image;
        const struct image_part *part;
        bool read_only;
        bool found;
        struct loop_device device;
        struct loop_device in_way; /* of EBUSY: that was compared last */
};

static bool is_same_part(const struct attach_search *search, uint64_t offset_bytes, uint64_t end)
{
        /* a loop device has whole sectors */
        return offset_bytes == search->part->offset_bytes &&
               end / 512 == (search->part->offset_bytes + search->part->size_bytes) / 512;
}

static int compare(const struct loop_device *device, void *argument, struct error *error)
{
        struct attach_search *search = argument;
        const struct image_part *part = search->part;
        uint64_t image_bytes = (uint64_t)search->file->st_size;
        uint64_t end = device->size_bytes != 0 ? device->offset_bytes + device->size_bytes : image_bytes;
        bool writes = !device->read_only;

        if (!loop_device_is_over(device, search->file))
                return 0;
        search->in_way = *device;
        if (loop_device_is_volume(device->tag))
                return fail_because(error, EBUSY, OPERATION_ATTACH_IMAGE, search->image,
                                    "it is attached as %s: it is the image of a volume", device->path);
        if (is_same_part(search, device->offset_bytes, end) && (writes || search->read_only)) {
                search->found = true;
                search->device = *device;
                return 0;
        }
        if ((!writes && search->read_only) || device->offset_bytes >= part->offset_bytes + part->size_bytes ||
            end <= part->offset_bytes)
                return 0;
        if (is_same_part(search, device->offset_bytes, end))
                return fail_because(error, EBUSY, OPERATION_ATTACH_IMAGE, search->image,
                                    "it is attached read-only, as %s, and cannot be written at the same time",
                                    device->path);
        return fail_because(
                error, EBUSY, OPERATION_ATTACH_IMAGE, search->image,
                "%s shows some of the same bytes, and two that do not know of each other would destroy them",
                device->path);
}

static int attach_new(int fd, const char *image, const struct image_part *part, bool read_only,
                      struct loop_device *ret_device, struct error *error)
{
        const struct loop_form form = { .read_only = read_only,
                                        .ends = true,
                                        .offset_bytes = part->offset_bytes,
                                        .size_bytes = part->number != 0 ? part->size_bytes : 0,
                                        .sector_bytes = part->sector_bytes };
        char tag[LOOP_TAG_SIZE];

        (void)snprintf(tag, sizeof tag, TAG "%s", strrchr(image, '/') + 1);
        return loop_device_attach(fd, image, tag, &form, ret_device, error);
}

/* The device that another mount of the same part has: it was compared with all others when it was made. */
static int find_known(uint64_t number, struct attach_search *search, struct error *error)
{
        struct loop_device device;
        struct error ignored;
        char path[32];

        return number != 0 && loop_device_path(number, path) && loop_device_look(path, &device, &ignored) == 0
                       ? compare(&device, search, error)
                       : 0;
}

/* The device of a mount that has ended stays while a process looks at it. */
static int find_fitting(int fd, uint64_t known, struct attach_search *search, struct error *error)
{
        int r;

        for (int i = 0;; i++) {
                r = find_known(known, search, error);
                if (r == 0 && !search->found)
                        r = loop_device_each_over(fd, compare, search, error);
                if (r != -EBUSY || i == LOOKED_AT_TRIES || !loop_device_is_looked_at(&search->in_way))
                        return r;
                search->found = false;
                clock_pause_ms(LOOKED_AT_WAIT_MS);
        }
}

int image_attach(int fd, const char *image, const struct image_part *part, bool read_only, uint64_t known,
                 struct block_device *ret_device, struct error *error)
{
        struct loop_device device = {};
        struct stat file;
        int r = -ENXIO;

        if (fstat(fd, &file) < 0)
                return fail(error, errno, "fstat", image);
        for (int i = 0; r == -ENXIO && i < TRIES_MAX; i++) {
                struct attach_search search = { .file = &file, .image = image, .part = part, .read_only = read_only };

                r = find_fitting(fd, i == 0 ? known : 0, &search, error);
                if (r < 0)
                        return r;
                device = search.device;
                r = search.found ? loop_device_hold(&device, error)
                                 : attach_new(fd, image, part, read_only, &device, error);
        }
        if (r < 0)
                return r;
        *ret_device = (struct block_device){ .number = device.number, .read_only = device.read_only };
        (void)text_copy(ret_device->path, sizeof ret_device->path, device.path);
        return r;
}
