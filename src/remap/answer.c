/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "request.h"
#include "shared.h"

/* What is newer than Debian 12's headers (Linux 6.9). */
#define INIT_PASSTHROUGH2 (1U << (37 - 32))
#define INIT_ALLOW_IDMAP2 (1U << (40 - 32)) /* Linux 6.12 */
#define OPEN_PASSTHROUGH (1U << 7)
_Static_assert(sizeof(struct fuse_init_out) == 64,
               "of the same size since Linux 4.20; max_stack_depth is what was unused");

static __thread bool greeting; /* FUSE_INIT is repeated for libfuse only */

void answer_withhold(bool withhold)
{
        greeting = withhold;
}

/* Add to the answer to FUSE_INIT what libfuse 3.14 does not know. */
static void extend_init(const struct iovec *parts, int count)
{
        const struct fuse_init_in *asked = (const void *)(shared->init + sizeof(struct fuse_in_header));
        bool extended = shared->init_size >= sizeof(struct fuse_in_header) + offsetof(struct fuse_init_in, flags2) +
                                                     sizeof asked->flags2 &&
                        (asked->flags & FUSE_INIT_EXT) != 0;
        struct fuse_init_out *answer = count == 2 ? parts[1].iov_base : NULL;
        const uint32_t depth = 1;

        shared->passthrough = shared->mapped = shared->xattr_flags = false;
        if (answer == NULL || parts[1].iov_len < sizeof *answer)
                return;
        /* setuid and setgid bits are cleared when the source is written, as its caller (Linux 5.12) */
        answer->flags |= asked->flags & FUSE_HANDLE_KILLPRIV_V2;
        /* whether the setgid bit stays when a list of access is set (Linux 5.13) */
        answer->flags |= asked->flags & FUSE_SETXATTR_EXT;
        shared->xattr_flags = (asked->flags & FUSE_SETXATTR_EXT) != 0;
        if (extended && shared->mappable && (asked->flags2 & INIT_ALLOW_IDMAP2) != 0) {
                answer->flags |= FUSE_INIT_EXT;
                answer->flags2 |= INIT_ALLOW_IDMAP2;
                shared->mapped = true;
        }
        if (!extended || shared->network || (asked->flags2 & INIT_PASSTHROUGH2) == 0)
                return;
        answer->flags |= FUSE_INIT_EXT;
        answer->flags2 |= INIT_PASSTHROUGH2;
        (void)memcpy(answer->unused, &depth, sizeof depth); /* max_stack_depth */
        shared->passthrough = true;
}

/* The answers to FUSE_OPEN and FUSE_CREATE end in a fuse_open_out, whose last word is the registration. */
static void extend_open(const struct iovec *parts, int count, int backing)
{
        struct fuse_open_out *answer;

        if (count < 2 || parts[count - 1].iov_len < sizeof *answer)
                return;
        answer = (void *)((char *)parts[count - 1].iov_base + parts[count - 1].iov_len - sizeof *answer);
        answer->open_flags |= OPEN_PASSTHROUGH;
        answer->padding = (__typeof__(answer->padding))backing;
}

/*
 * Record the answer before it is sent. If the daemon dies now, the next one sends it again and does not repeat the
 * request. Returns its length; 0: it is not recorded.
 */
static uint32_t keep_answer(const struct iovec *parts, int count)
{
        const int slot = request_slot();
        uint32_t size = 0;

        if (slot < 0 || request_current() != request_buffer(slot))
                return 0;
        for (int i = 0; i < count; i++) {
                if (parts[i].iov_len > ANSWER_KEPT - size)
                        return 0;
                (void)memcpy(shared->answers[slot] + size, parts[i].iov_base, parts[i].iov_len);
                size += (uint32_t)parts[i].iov_len;
        }
        __atomic_store_n(&shared->answer_sizes[slot], size, __ATOMIC_RELEASE);
        return size;
}

void answer_error(uint64_t unique, int errnum)
{
        struct fuse_out_header answer = { .len = sizeof answer, .error = -errnum, .unique = unique };

        (void)!write(FD_FUSE, &answer, sizeof answer); /* fails if it is answered already */
}

void answer_invalidate(uint64_t node, bool pages)
{
        struct fuse_notify_inval_inode_out what = { .ino = node, .off = pages ? 0 : -1 };
        struct fuse_out_header head = { .len = sizeof head + sizeof what, .error = FUSE_NOTIFY_INVAL_INODE };
        const struct iovec parts[] = { { &head, sizeof head }, { &what, sizeof what } };

        (void)!writev(FD_FUSE, parts, 2); /* fails if the kernel has forgotten the node, or it is unmounted */
}

void answer_invalidate_name(uint64_t directory, const char *name)
{
        struct fuse_notify_inval_entry_out what = { .parent = directory, .namelen = (uint32_t)strlen(name) };
        struct fuse_out_header head = { .len = (uint32_t)(sizeof head + sizeof what) + what.namelen + 1,
                                        .error = FUSE_NOTIFY_INVAL_ENTRY };
        const struct iovec parts[] = { { &head, sizeof head },
                                       { &what, sizeof what },
                                       { (void *)name, what.namelen + 1 } };

        (void)!writev(FD_FUSE, parts, 3); /* as above */
}

ssize_t answer_send(int fd, struct iovec *parts, int count, void *ignored)
{
        const struct fuse_in_header *current = request_current();
        ssize_t length = 0;
        uint32_t kept;
        int backing;

        (void)ignored;
        if (greeting) { /* the kernel has it from an earlier daemon */
                for (int i = 0; i < count; i++)
                        length += (ssize_t)parts[i].iov_len;
                return length;
        }
        if (current != NULL && current->opcode == FUSE_INIT)
                extend_init(parts, count);
        backing = request_take_backing();
        if (backing > 0)
                extend_open(parts, count, backing);
        kept = keep_answer(parts, count);
        /* the kernel copies from each page of each part by itself: the record is in one page. The raw call, as in
         * threads.c: write() is a point of cancellation */
        length = kept > 0 ? syscall(SYS_write, fd, shared->answers[request_slot()], (size_t)kept)
                          : writev(fd, parts, count);
        if (length < 0 && errno != ENOENT) { /* the kernel refuses it, and the caller would wait forever */
                answer_error(((const struct fuse_out_header *)parts[0].iov_base)->unique, EIO);
                errno = ENOENT;
        }
        return length;
}
