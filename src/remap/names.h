/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - FUSE requests about names: look up, make, link, rename, remove; and forget.
 */
#ifndef FLEXGRAFT_REMAP_NAMES_H
#define FLEXGRAFT_REMAP_NAMES_H

#include "fuse_library.h"

void names_lookup(fuse_req_t request, fuse_ino_t parent, const char *name);
void names_forget(fuse_req_t request, fuse_ino_t number, uint64_t count);
void names_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets);
void names_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void names_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode);
void names_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name);
void names_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char *name);
void names_unlink(fuse_req_t request, fuse_ino_t parent, const char *name);
void names_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name);
void names_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                  unsigned flags);
void names_readlink(fuse_req_t request, fuse_ino_t number);

#endif
