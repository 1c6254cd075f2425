/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directories.h - FUSE requests about open directories.
 */
#ifndef FLEXGRAFT_REMAP_DIRECTORIES_H
#define FLEXGRAFT_REMAP_DIRECTORIES_H

#include "fuse_library.h"

void directories_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);
void directories_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file);
void directories_read_plus(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                           struct fuse_file_info *file);
void directories_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);

#endif
