/* SPDX-License-Identifier: Apache-2.0 */
#include "xattrs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "newer.h"
#include "operation.h"
#include "passthrough.h"
#include "source_ids.h"
#include "xattr_ids.h"

#define XATTR_MAX ((size_t)64 * 1024)

static bool passes(const char *name)
{
        static const char *const exact[] = { "system.posix_acl_access", "system.posix_acl_default", "system.nfs4_acl",
                                             "system.nfs4_dacl", "system.nfs4_sacl" };

        /* of the others the kernel does not check who sets them, and where mounts are id-mapped nobody else would; their ids
         * are names */
        for (size_t i = 0; i < (shared->mappable || source_ids_differ() ? 2 : sizeof exact / sizeof exact[0]); i++)
                if (strcmp(name, exact[i]) == 0)
                        return true;
        return strncmp(name, "user.", 5) == 0 || (!shared->network && xattr_ids_are_capabilities(name));
}

/*
 * The kernel has asked for CAP_SETFCAP in the user namespace of the caller, and written its root's id into the value as
 * the mount maps it, or none for root of the container, whose id is 0 here (cap_convert_nscap()). So the value is the one
 * that an id-mapped mount stores, or means the same. It asks neither of these for an empty value, which it takes from
 * everybody. Taking a capability away needs no look at the owner: the kernel does that for who writes to the file.
 */
static int check_capability(fuse_req_t request, fuse_ino_t number, const char *name, size_t size, int fd)
{
        if (!xattr_ids_are_capabilities(name))
                return 0;
        return size > 0 ? operation_has_owner(request, nodes_get(number), fd, RIGHTS_OF_ROOT) : -EPERM;
}

static int begin_xattr(fuse_req_t request, fuse_ino_t number, const char *name, bool changes, int refused,
                       struct node_fd *ret_fd)
{
        struct node *node;
        int r;

        if (name != NULL && !passes(name))
                return refused;
        r = operation_begin(request, number, &node, ret_fd);
        if (r == 0 && changes && name != NULL &&
            strncmp(name, "system.", 7) == 0) /* FUSE does not check permissions for all of them */
                r = operation_has_owner(request, node, ret_fd->fd, RIGHTS_OF_OWNER);
        if (r < 0)
                return r;
        return S_ISLNK(node->mode) ? refused : 0;
}

/*
 * A list of access gives the file a mode, from which the kernel takes the setgid bit as it does in chmod(2). Where this kernel
 * checks alone, it says whether the caller is one who keeps it; before Linux 5.13 it does not, and nobody does.
 */
static int set_setgid(fuse_req_t request, const char *name, int fd)
{
        struct stat st;

        if (strcmp(name, "system.posix_acl_access") != 0 || fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 ||
            (st.st_mode & S_ISGID) == 0)
                return 0;
        if (shared->checked && (!shared->xattr_flags || (newer_xattr_flags() & FUSE_SETXATTR_ACL_KILL_SGID) != 0))
                return operation_lose_setgid(fd);
        operation_keep_setgid(request, fd);
        return 0;
}

void xattrs_set(fuse_req_t request, fuse_ino_t number, const char *name, const char *value, size_t size, int flags)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        int r = begin_xattr(request, number, name, /* changes= */ true, -EOPNOTSUPP, &fd);
        char *own = operation_buffer();

        if (r == 0)
                r = check_capability(request, number, name, size, fd.fd);
        if (r == 0 && own == NULL)
                r = -ENOMEM;
        if (r == 0 && size > XATTR_MAX)
                r = -E2BIG;
        if (r == 0) {
                (void)memcpy(own, value, size); /* the next daemon may have to do the request again, as it came */
                r = xattr_ids_take(name, own, size);
        }
        if (r >= 0) {
                const size_t taken = (size_t)r;

                r = set_setgid(request, name, fd.fd);
                if (r == 0 && ATTEMPT(request, setxattr(operation_path(fd.fd).text, name, own, taken, flags)) < 0 &&
                    !operation_done_before(errno, EEXIST))
                        r = -errno;
        }
        operation_reply_error(request, r);
}

static void reply_xattr(fuse_req_t request, ssize_t n, size_t size, const char *value)
{
        if (n < 0)
                operation_reply_error(request, (int)n);
        else if (size == 0)
                (void)fuse_reply_xattr(request, (size_t)n);
        else if ((size_t)n > size)
                operation_reply_error(request, -ERANGE);
        else
                (void)fuse_reply_buf(request, value, (size_t)n);
}

/* What the daemon itself says. */
static void say_cache(fuse_req_t request, size_t size)
{
        const char *word = remap_cache_words[shared->alone ? REMAP_CACHE_ALWAYS : REMAP_CACHE_AUTO];

        reply_xattr(request, (ssize_t)strlen(word), size, word);
}

static ssize_t get(const struct node_fd *fd, const char *name, char *ret_value, size_t size)
{
        ssize_t n;

        /* what is written to first is asked for its capabilities, and is open: a path in /proc takes four times as long */
        if (passthrough_get_xattr(fd->node, name, ret_value, size, &n))
                return n;
        return getxattr(operation_path(fd->fd).text, name, ret_value, size);
}

void xattrs_get(fuse_req_t request, fuse_ino_t number, const char *name, size_t size)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        ssize_t n;

        if (strcmp(name, REMAP_CACHE_ATTRIBUTE) == 0) {
                say_cache(request, size);
                return;
        }
        n = begin_xattr(request, number, name, /* changes= */ false, -ENODATA, &fd);
        if (n == 0 && operation_buffer() == NULL)
                n = -ENOMEM;
        if (n == 0) {
                n = ATTEMPT(request, get(&fd, name, operation_buffer(), size < XATTR_MAX ? size : XATTR_MAX));
                n = n >= 0 ? n : errno == EOPNOTSUPP ? -ENODATA : -errno;
                if (n > 0 && size > 0)
                        xattr_ids_show(name, operation_buffer(), (size_t)n);
        }
        reply_xattr(request, n, size, operation_buffer());
}

void xattrs_list(fuse_req_t request, fuse_ino_t number, size_t size)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        ssize_t n = begin_xattr(request, number, NULL, /* changes= */ false, 0, &fd);
        size_t kept = 0;
        char *names = operation_buffer();

        if (n == 0 && names == NULL)
                n = -ENOMEM;
        if (n == 0 && fd.fd >= 0) {
                n = ATTEMPT(request, listxattr(operation_path(fd.fd).text, names, XATTR_MAX));
                n = n < 0 ? -errno : n;
        }
        for (size_t i = 0, length = 0; n > 0 && i < (size_t)n; i += length) {
                length = strlen(names + i) + 1;
                if (!passes(names + i))
                        continue;
                (void)memmove(names + kept, names + i, length);
                kept += length;
        }
        reply_xattr(request, n < 0 ? n : (ssize_t)kept, size, names);
}

void xattrs_remove(fuse_req_t request, fuse_ino_t number, const char *name)
{
        cleanup_node_fd struct node_fd fd = NO_FD;
        int r = begin_xattr(request, number, name, /* changes= */ true, -EOPNOTSUPP, &fd);

        if (r == 0 && ATTEMPT(request, removexattr(operation_path(fd.fd).text, name)) < 0 &&
            !operation_done_before(errno, ENODATA))
                r = -errno;
        operation_reply_error(request, r);
}
