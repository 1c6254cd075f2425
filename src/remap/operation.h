/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operation.h - helpers for the operations: start one as its caller, and answer it.
 */
#ifndef FLEXGRAFT_REMAP_OPERATION_H
#define FLEXGRAFT_REMAP_OPERATION_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "caller.h"
#include "fuse_library.h"
#include "nodes.h"

#define CACHED_SECONDS 1.0       /* how long the kernel believes names and attributes */
#define CACHED_SECONDS_ALONE 1e6 /* the same, where it learns of every change */
#define READ_MAX ((size_t)1024 * 1024)

/*
 * ATTEMPT(request, call) - the result of a system call made as the caller, -1 and errno on failure. If permission is
 * denied, the call is repeated with the caller's supplementary groups.
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

/* operation_reply_error() - answer with an errno, which a server's filesystem may return beyond those of user space. */
void operation_reply_error(fuse_req_t request, int r);

/* operation_buffer() - READ_MAX bytes of this thread, aligned for direct I/O; NULL: no memory. */
char *operation_buffer(void);

/* operation_buffer_empty() - what is in that buffer is not needed any more: its memory is given back. */
void operation_buffer_empty(void);

/*
 * operation_act_as_caller() - take the ids of the calling process. Where mounts are id-mapped the kernel does not say
 * them, and has checked permissions itself ("default_permissions"), with the ids of the caller in the mount that it
 * used. If nobody else checks them at the source, the daemon acts as root, and learns nothing from the process.
 * Otherwise (a server) it takes the ids and groups that caller_ids.h finds.
 * Where the source has other ids (source_ids.h) it takes those, and the kernel checks permissions a second time, by the
 * files as they are. A caller for whom the source has none is nobody there; so is a user who would be the node's root, with its capabilities. Root of the container has all capabilities of the
 * daemon besides, unless others check at the source, too: as on a mount that the kernel id-maps it may use what belongs to
 * owners that both containers know, which the kernel has checked. It does not become root of the node, for whom a
 * filesystem that the first container's user namespace owns has no id (EOVERFLOW, may_create() in fs/namei.c).
 *
 * operation_act_as_creator() - before an inode is made: take the ids that it will have. Where mounts are id-mapped the
 * request has them, as the mount maps them, for these operations only (FUSE_CREATE, FUSE_MKNOD, FUSE_MKDIR,
 * FUSE_SYMLINK). Where the kernel alone checks permissions they are not checked again; otherwise these ids are those of
 * the caller already. Errors: EOVERFLOW the source has none for them, as from a mount that the kernel id-maps.
 */
int operation_act_as_caller(fuse_req_t request);
int operation_act_as_creator(fuse_req_t request);

/*
 * operation_has_owner() - whether the caller's user namespace has the owners of a file: else root there has no rights over
 * it, or, where these are enough, the caller is its owner. The kernel has asked the same, by attributes that may be older:
 * as long as a process has a file open, as old as when it opened it. Where the kernel alone checks permissions, mounts are
 * id-mapped with maps that need not be those of user namespaces, and only the kernel can tell: there the owner must be the
 * one that it was told last; if it was told several, it must be known that it has that one (caches_owner_is_known()). Returns 0,
 * EPERM, ESTALE for the latter, or another negative errno.
 */
enum rights { RIGHTS_OF_ROOT, RIGHTS_OF_OWNER };
int operation_has_owner(fuse_req_t request, struct node *node, int fd, enum rights enough);

/* operation_begin() - the node of a request and a descriptor of it, as the caller. Returns 0 or negative errno. */
int operation_begin(fuse_req_t request, fuse_ino_t number, struct node **ret_node, struct node_fd *ret_fd);

/*
 * operation_keep_setgid() - before the setgid bit is set: the kernel clears it silently unless the caller is in the
 * file's group or has CAP_FSETID. Root in the container has that capability. The daemon has not, because then what it
 * writes as root would keep such bits. So root joins the group. So does everyone where the kernel alone checks: there
 * it has taken the bit out of the request of who may not set it.
 */
void operation_keep_setgid(fuse_req_t request, int fd);

/*
 * operation_keep_locking() - before a file is written, cut or given away, which takes its set-id bits: who is in its group, or root,
 * leaves the setgid bit of a file that its group may not execute (setattr_should_drop_sgid() in fs/attr.c). Where the kernel alone
 * checks, who asks is not known, and the bit goes.
 */
void operation_keep_locking(fuse_req_t request, struct node *node, int fd);

/*
 * operation_lose_setgid() - before the setgid bit is to go: this thread, which is root, leaves the file's group. Only where the
 * kernel alone checks. Returns 0 or negative errno.
 */
int operation_lose_setgid(int fd);

/* operation_begin_links() - before the first operation_open() of a daemon. Returns 0 or negative errno. */
int operation_begin_links(void);

/* operation_open() - open the file of an O_PATH descriptor, as open(2); operation_open_as_root() - the same, as root. */
int operation_open(int fd, int flags);
int operation_open_as_root(int fd, int flags);

/*
 * operation_open_noted() - open the node by the name that this thread noted last for the same thread of the container,
 * which is faster than by its descriptor. Gives: its attributes. Returns a descriptor of the same file, or -1: it has
 * to be opened in another way.
 */
int operation_open_noted(fuse_req_t request, const struct node *node, int flags, struct stat *ret_stat);

/* operation_path() - a path in /proc to the file of an O_PATH descriptor, for calls that take no such descriptor. */
struct link_path {
        char text[32];
};
struct link_path operation_path(int fd);

/* operation_cached_seconds() - how long the kernel believes the attributes of a node. */
double operation_cached_seconds(const struct node *node);

/* operation_entry() - a node as an answer to a lookup. */
struct fuse_entry_param operation_entry(const struct node *node, const struct stat *st);

/*
 * operation_reply_entry() - look a name up and answer with it; if r is negative, answer with that error. That there is no
 * such name is remembered where nobody else can make it.
 */
void operation_reply_entry(fuse_req_t request, int r, fuse_ino_t directory, int directory_fd, const char *name);

/*
 * operation_done_before() - whether this error means that an earlier daemon already did what is requested. Reply caches
 * of NFS servers guess in the same way.
 */
bool operation_done_before(int errnum, int expected);

#endif
