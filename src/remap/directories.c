/* SPDX-License-Identifier: Apache-2.0 */
#include "directories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "caches.h"
#include "closing.h"
#include "descriptors.h"
#include "operation.h"
#include "request.h"

#define LIST_MAX ((size_t)64 * 1024)
#define ENTRY_MAX 280   /* of getdents64(2), with the longest name of most filesystems */
#define ENTRY_LONG 1100 /* and of FUSE, and of others that count characters */

void directories_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        struct node *node;
        int opened = -1;
        int r = operation_begin(request, number, &node, &fd);

        if (r == 0)
                r = descriptors_check(fuse_req_ctx(request)->pid, fuse_req_ctx(request)->uid);
        if (r == 0 && (opened = ATTEMPT(request, operation_open(fd.fd, O_RDONLY | O_DIRECTORY | O_CLOEXEC))) < 0)
                r = -errno;
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        file->fh = (uint64_t)opened;
        file->cache_readdir = file->keep_cache = shared->alone;
        request_note_opened(opened);
        descriptor_use(opened, USE_OPEN);
        descriptor_set_position(opened, 0);
        if (fuse_reply_open(request, file) < 0)
                descriptor_end(opened);
}

struct list {
        fuse_req_t request;
        char *out;
        size_t space;
        bool plus;
        int directory_fd;
        uint64_t device;
};

/* Add an entry; false: no space is left. An entry that cannot be looked up is added without its node. */
static bool add_entry(struct list *list, const struct dirent64 *entry)
{
        struct fuse_entry_param parameters = { .attr = { .st_ino = nodes_shown_inode(list->device, entry->d_ino),
                                                         .st_mode = (mode_t)DTTOIF(entry->d_type) } };
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        struct node *node = NULL;
        struct stat st;
        size_t length;

        if (!list->plus)
                length = fuse_add_direntry(list->request, list->out, list->space, entry->d_name, &parameters.attr,
                                           entry->d_off);
        else {
                if (!dots &&
                    fuse_add_direntry_plus(list->request, NULL, 0, entry->d_name, &parameters, 0) <= list->space &&
                    nodes_look_up(list->directory_fd, entry->d_name, /* crosses= */ false, &node, &st) == 0)
                        parameters = operation_entry(node, &st);
                length = fuse_add_direntry_plus(list->request, list->out, list->space, entry->d_name, &parameters,
                                                entry->d_off);
        }
        if (length > list->space) {
                if (node != NULL)
                        nodes_forget(node, 1);
                return false;
        }
        if (node != NULL)
                caches_tell(node, fuse_req_ctx(list->request)->pid, &st);
        list->out += length;
        list->space -= length;
        return true;
}

/* The kernel did not take the answer. */
static void forget_entries(const char *answer, size_t size)
{
        const struct fuse_direntplus *entry;

        for (size_t i = 0; i < size; i += FUSE_DIRENTPLUS_SIZE(entry)) {
                entry = (const void *)(answer + i);
                if (entry->entry_out.nodeid != 0)
                        nodes_forget(nodes_get(entry->entry_out.nodeid), 1);
        }
}

static void read_directory(fuse_req_t request, const struct node *node, size_t size, off_t offset,
                           const struct fuse_file_info *file, bool plus)
{
        char *answer = operation_buffer();
        char *entries = answer + READ_MAX / 2;
        struct list list = { .request = request,
                             .out = answer,
                             .plus = plus,
                             .directory_fd = (int)file->fh,
                             .device = node != NULL ? node->device : 0 };
        /* an entry of the answer is at most so many times as long as in getdents64(): all that are read fit, but for the
         * longest names */
        const size_t times = plus ? 7 : 2;
        int64_t position = offset;
        bool fits = true;
        int r = answer == NULL ? -ENOMEM : operation_act_as_caller(request);

        if (size > LIST_MAX)
                size = LIST_MAX;
        list.space = size;
        /* at the beginning, as btrfs lists what was there then. Else only when needed: before Linux 6.6 an offset on tmpfs is
         * a count, which is wrong after a removal */
        if (r == 0 && (offset == 0 || request_replayed() || offset != descriptor_position(list.directory_fd)) &&
            lseek(list.directory_fd, offset, SEEK_SET) < 0)
                r = -errno;
        descriptor_set_position(list.directory_fd, -1); /* unknown until this is answered: the daemon may be killed */
        while (r == 0 && fits && !request_given_up() && list.space / times >= ENTRY_MAX) {
                ssize_t n = getdents64(list.directory_fd, entries, list.space / times);

                if (n < 0 && errno == EINVAL && list.space == size)
                        n = getdents64(list.directory_fd, entries, ENTRY_LONG);
                if (n < 0)
                        r = list.space < size ? 0 : -errno;
                if (n <= 0)
                        break;
                for (ssize_t i = 0; i < n && fits;) {
                        const struct dirent64 *entry = (const void *)(entries + i);

                        fits = add_entry(&list, entry);
                        position = fits ? entry->d_off : -1;
                        i += entry->d_reclen;
                }
        }
        if (r < 0) {
                operation_reply_error(request, r);
                return;
        }
        descriptor_set_position(list.directory_fd, position);
        if (fuse_reply_buf(request, answer, size - list.space) < 0 && plus)
                forget_entries(answer, size - list.space);
}

void directories_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file)
{
        read_directory(request, nodes_get(number), size, offset, file, /* plus= */ false);
}

void directories_read_plus(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                           struct fuse_file_info *file)
{
        read_directory(request, nodes_get(number), size, offset, file, /* plus= */ true);
}

void directories_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file)
{
        const int fd = (int)file->fh;

        (void)number;
        descriptor_use(fd, USE_RELEASED); /* as in files_release() */
        operation_reply_error(request, 0);
        closing_close(fd);
}
