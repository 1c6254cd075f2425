/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "process/namespace.h"
#include "process/worker.h"

struct new_job {
        const struct idmap *mapping;
        worker_function *first; /* what the child does before; may be NULL */
        void *argument;
        int user_ns_fd;
};

static int new_apart(void *argument, struct error *error)
{
        const struct new_job *job = argument;
        int r = job->first == NULL ? 0 : job->first(job->argument, error);

        return r < 0 ? r : namespace_new_user(error);
}

/* The whole map in one write: the kernel takes no second one (user_namespaces(7)). */
static int write_map(int pid, const char *map, const struct id_range *ranges, int count, struct error *error)
{
        char text[ID_RANGES_MAX * 36];
        char path[64];
        size_t length = 0;
        cleanup_close int fd = -EBADF;
        int r;

        for (int i = 0; i < count; i++)
                length += (size_t)snprintf(text + length, sizeof text - length, "%u %u %u\n", ranges[i].inside,
                                           ranges[i].outside, ranges[i].count);
        (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, map);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open", map);
        r = file_write_all(fd, text, length);
        return r < 0 ? fail(error, -r, "write", map) : 0;
}

/* The child has ended: its maps can be written until it is waited for. From here, because it may be in a container. */
static int complete(int pid, void *argument, struct error *error)
{
        struct new_job *job = argument;
        const struct idmap *mapping = job->mapping;
        char path[64];
        int r = write_map(pid, "uid_map", mapping->users, mapping->user_count, error);

        if (r < 0 || (r = write_map(pid, "gid_map", mapping->groups, mapping->group_count, error)) < 0)
                return r;
        (void)snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        job->user_ns_fd = open(path, O_RDONLY | O_CLOEXEC);
        return job->user_ns_fd < 0 ? fail(error, errno, "open", path) : 0;
}

int idmap_open_after(const struct idmap *mapping, worker_function *first, void *argument, struct error *error)
{
        struct new_job job = { .mapping = mapping, .first = first, .argument = argument, .user_ns_fd = -EBADF };
        int r = worker_run_apart(new_apart, complete, &job, error);

        return r < 0 ? r : job.user_ns_fd;
}

int idmap_open(const struct idmap *mapping, struct error *error)
{
        return idmap_open_after(mapping, NULL, NULL, error);
}

/* Lines as in uid_map, each a string of its own; anything else leaves fewer of them. */
static int parse_lines(const char *text, const char *end, uint32_t lines, struct id_range *ret_ranges)
{
        int count = 0;

        for (; lines > 0 && text < end && count < ID_RANGES_MAX; lines--) {
                struct id_range *range = &ret_ranges[count];

                char *rest;

                range->inside = (uint32_t)strtoul(text, &rest, 10);
                range->outside = (uint32_t)strtoul(rest, &rest, 10);
                range->count = (uint32_t)strtoul(rest, &rest, 10);
                count += range->count > 0;
                text += strnlen(text, (size_t)(end - text)) + 1;
        }
        return count;
}

int idmap_of_mount(uint64_t mnt_ns_id, uint64_t mount_id, struct idmap *ret_mapping)
{
        static union {
                struct statmount_answer answer;
                char bytes[sizeof(struct statmount_answer) + 2 * ID_RANGES_MAX * 36];
        } buffer;
        const struct statmount_answer *answer = &buffer.answer;
        const struct mnt_id_request request = { .size = sizeof request,
                                                .mnt_id = mount_id,
                                                .param = STATMOUNT_UID_MAP | STATMOUNT_GID_MAP,
                                                .mnt_ns_id = mnt_ns_id };
        const char *end = buffer.bytes + sizeof buffer;

        if (sys_statmount(&request, &buffer, sizeof buffer) < 0)
                return -errno;
        if ((answer->mask & request.param) != request.param)
                return -ENOSYS; /* or not id-mapped: this kernel does not say which */
        ret_mapping->user_count =
                parse_lines(answer->strings + answer->uid_map, end, answer->uid_map_count, ret_mapping->users);
        ret_mapping->group_count =
                parse_lines(answer->strings + answer->gid_map, end, answer->gid_map_count, ret_mapping->groups);
        return ret_mapping->user_count == 0 || ret_mapping->group_count == 0 ? -ENODATA : 0;
}
