/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - FUSE requests about open files.
 */
#ifndef FLEXGRAFT_REMAP_FILES_H
#define FLEXGRAFT_REMAP_FILES_H

#include "fuse_library.h"

/* files_begin() - before a daemon's first request. */
void files_begin(void);

void files_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);
void files_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file);
void files_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *file);
void files_write(fuse_req_t request, fuse_ino_t number, const char *data, size_t size, off_t offset,
                 struct fuse_file_info *file);
void files_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);
void files_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *file);
void files_fsync(fuse_req_t request, fuse_ino_t number, int data_only, struct fuse_file_info *file);
void files_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                     struct fuse_file_info *file);
void files_copy(fuse_req_t request, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file, fuse_ino_t to,
                off_t to_offset, struct fuse_file_info *to_file, size_t length, int flags);
void files_lseek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence, struct fuse_file_info *file);

#endif
