/* SPDX-License-Identifier: Apache-2.0 */
#include "newer.h"

#include <string.h>

_Static_assert(sizeof(struct newer_statx) == 288, "as the kernel has it");

bool newer_translate(const struct fuse_in_header *request, size_t size, union newer_copy *ret_copy)
{
        static const struct {
                uint32_t newer;
                uint32_t known;
        } opcodes[] = { { NEWER_TMPFILE, FUSE_CREATE }, { NEWER_STATX, FUSE_GETATTR } };

        for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++)
                if (request->opcode == opcodes[i].newer && size <= sizeof *ret_copy) {
                        (void)memcpy(ret_copy, request, size);
                        ret_copy->header.opcode = opcodes[i].known;
                        return true;
                }
        return false;
}
