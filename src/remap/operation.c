/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "request.h"

#define ERRNO_END 512     /* the first that is internal to the kernel: include/linux/errno.h */
#define NOT_SUPPORTED 524 /* ENOTSUPP there */
#define BAD_HANDLE 521

/* Some errors (524 and others, from NFS) are known inside the kernel only; /dev/fuse refuses them. */
void operation_reply_error(fuse_req_t request, int r)
{
        if (r == -NOT_SUPPORTED)
                r = -EOPNOTSUPP;
        else if (r == -BAD_HANDLE)
                r = -ESTALE;
        else if (r <= -ERRNO_END)
                r = -EIO;
        (void)fuse_reply_err(request, -r); /* the caller may have exited */
}

char *operation_buffer(void)
{
        static __thread char *buffer;

        if (buffer == NULL)
                buffer = aligned_alloc(4096, READ_MAX);
        return buffer;
}

int operation_act_as_caller(fuse_req_t request)
{
        const struct fuse_ctx *context = fuse_req_ctx(request);

        return caller_become(context->uid, context->gid);
}

int operation_begin(fuse_req_t request, fuse_ino_t number, struct node **ret_node, struct node_fd *ret_fd)
{
        struct node *node = nodes_get(number);
        int r;

        *ret_node = node;
        if (node == NULL)
                return -ESTALE;
        if ((r = operation_act_as_caller(request)) < 0)
                return r;
        *ret_fd = nodes_open(node);
        if (ret_fd->fd >= 0)
                request_changes();
        return ret_fd->fd < 0 ? ret_fd->fd : 0;
}

void operation_keep_setgid(fuse_req_t request, int fd)
{
        struct stat st;

        if (fuse_req_ctx(request)->uid != 0)
                (void)caller_add_groups(fuse_req_ctx(request)->pid);
        else if (fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && caller_knows(st.st_uid, st.st_gid))
                caller_join(st.st_gid);
}

struct link_path operation_path(int fd)
{
        struct link_path path;

        (void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
        return path;
}

struct fuse_entry_param operation_entry(const struct node *node, const struct stat *st)
{
        return (struct fuse_entry_param){ .ino = nodes_number(node),
                                          .generation = node->generation,
                                          .attr = *st,
                                          .attr_timeout = CACHED_SECONDS,
                                          .entry_timeout = CACHED_SECONDS };
}

void operation_reply_entry(fuse_req_t request, int r, int directory_fd, const char *name)
{
        struct node *node = NULL;
        struct stat st;

        if (r == 0) {
                r = nodes_look_up(directory_fd, name, &node, &st);
                if ((r == -EACCES || r == -EPERM) && caller_add_groups(fuse_req_ctx(request)->pid))
                        r = nodes_look_up(directory_fd, name, &node, &st);
        }
        if (node != NULL) {
                struct fuse_entry_param entry = operation_entry(node, &st);

                if (fuse_reply_entry(request, &entry) < 0)
                        nodes_forget(node, 1); /* the kernel did not take the answer */
        } else
                operation_reply_error(request, r);
}

bool operation_done_before(int errnum, int expected)
{
        return request_may_have_changed() && errnum == expected;
}
