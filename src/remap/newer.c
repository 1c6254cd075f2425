/* SPDX-License-Identifier: Apache-2.0 */
#include "newer.h"

#include <string.h>

#include "operation.h"
#include "request.h"

_Static_assert(sizeof(struct newer_statx) == 288, "as the kernel has it");

/* The flags go; what follows them, name and value, is where it was before there were any. */
static struct fuse_in_header *without_flags(const struct fuse_in_header *request, size_t size)
{
        const size_t kept = sizeof *request + FUSE_COMPAT_SETXATTR_IN_SIZE;
        const size_t begin = sizeof *request + sizeof(struct fuse_setxattr_in);
        char *buffer = operation_buffer();
        struct fuse_in_header *copy;

        if (buffer == NULL || size < begin || size > READ_MAX / 2)
                return NULL;
        copy = (void *)(buffer + READ_MAX / 2); /* the operation uses what is before */
        (void)memcpy(copy, request, kept);
        (void)memcpy((char *)copy + kept, (const char *)request + begin, size - begin);
        copy->len = (uint32_t)(size - (begin - kept));
        return copy;
}

uint32_t newer_xattr_flags(void)
{
        return shared->xattr_flags ? ((const struct fuse_setxattr_in *)(request_current() + 1))->setxattr_flags : 0;
}

struct fuse_in_header *newer_translate(struct fuse_in_header *request, size_t size, union newer_copy *copy)
{
        static const struct {
                uint32_t newer;
                uint32_t known;
        } opcodes[] = { { NEWER_TMPFILE, FUSE_CREATE },
                        { NEWER_STATX, FUSE_GETATTR },
                        { NEWER_COPY, FUSE_COPY_FILE_RANGE } };

        for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++)
                if (request->opcode == opcodes[i].newer && size <= sizeof *copy) {
                        (void)memcpy(copy, request, size);
                        copy->header.opcode = opcodes[i].known;
                        return &copy->header;
                }
        return request->opcode == FUSE_SETXATTR && shared->xattr_flags ? without_flags(request, size) : request;
}
