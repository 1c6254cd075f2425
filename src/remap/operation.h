/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operation.h - what the operations have in common: how each begins, and how it is answered.
 */
#ifndef FLEXGRAFT_REMAP_OPERATION_H
#define FLEXGRAFT_REMAP_OPERATION_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "caller.h"
#include "fuse_library.h"
#include "nodes.h"

#define CACHED_SECONDS 1.0 /* how long the kernel believes names and attributes */
#define READ_MAX ((size_t)1024 * 1024)

/*
 * ATTEMPT(request, call) - the result of a system call made as the caller; made once more with the caller's
 * supplementary groups if it was refused without them. -1 and errno.
 */
#define ATTEMPT(request, call)                                                                                         \
        ({                                                                                                             \
                __typeof__(call) attempt_result = (call);                                                              \
                if (attempt_result < 0 && (errno == EACCES || errno == EPERM) &&                                       \
                    caller_add_groups(fuse_req_ctx(request)->pid))                                                     \
                        attempt_result = (call);                                                                       \
                attempt_result;                                                                                        \
        })

#define NO_FD                                                                                                          \
        {                                                                                                              \
                .fd = -EBADF                                                                                           \
        }

struct link_path {
        char text[32];
};

void operation_reply_error(fuse_req_t request, int r);
char *operation_buffer(void);
int operation_act_as_caller(fuse_req_t request);
int operation_begin(fuse_req_t request, fuse_ino_t number, struct node **ret_node, struct node_fd *ret_fd);
void operation_keep_setgid(fuse_req_t request, int fd);
struct link_path operation_path(int fd);
struct fuse_entry_param operation_entry(const struct node *node, const struct stat *st);
void operation_reply_entry(fuse_req_t request, int r, int directory_fd, const char *name);
bool operation_done_before(int errnum, int expected);

#endif
