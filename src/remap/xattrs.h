/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xattrs.h - FUSE requests about extended attributes: those of users (user.*), and access control lists, whose ids
 * need no mapping.
 */
#ifndef FLEXGRAFT_REMAP_XATTRS_H
#define FLEXGRAFT_REMAP_XATTRS_H

#include "fuse_library.h"

void xattrs_set(fuse_req_t request, fuse_ino_t number, const char *name, const char *value, size_t size, int flags);
void xattrs_get(fuse_req_t request, fuse_ino_t number, const char *name, size_t size);
void xattrs_list(fuse_req_t request, fuse_ino_t number, size_t size);
void xattrs_remove(fuse_req_t request, fuse_ino_t number, const char *name);

#endif
