/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes.h - FUSE requests about attributes, and about the filesystem.
 */
#ifndef FLEXGRAFT_REMAP_ATTRIBUTES_H
#define FLEXGRAFT_REMAP_ATTRIBUTES_H

#include "fuse_library.h"

void attributes_get(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);
void attributes_set(fuse_req_t request, fuse_ino_t number, struct stat *st, int what, struct fuse_file_info *file);
void attributes_statfs(fuse_req_t request, fuse_ino_t number);

#endif
