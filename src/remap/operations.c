/* SPDX-License-Identifier: Apache-2.0 */
#include "operations.h"

#include "attributes.h"
#include "directories.h"
#include "files.h"
#include "flags.h"
#include "locks.h"
#include "names.h"
#include "nodes.h"
#include "shared.h"
#include "xattrs.h"

static void do_init(void *data, struct fuse_conn_info *connection)
{
        static const unsigned wanted[] = { FUSE_CAP_POSIX_ACL, FUSE_CAP_DONT_MASK, FUSE_CAP_ATOMIC_O_TRUNC,
                                           FUSE_CAP_CACHE_SYMLINKS, FUSE_CAP_PARALLEL_DIROPS };

        (void)data;
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
                connection->want |= connection->capable & wanted[i];
        /* what is another link by now may be the same node: a server's number may stand for the name */
        if (shared->network && !shared->nfs && !shared->alone)
                connection->want &= ~(unsigned)FUSE_CAP_CACHE_SYMLINKS;
        /* no write-back cache: when a server refuses data later, the loss could not be reported */
        connection->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
                                        FUSE_CAP_SPLICE_MOVE);
        /* the kernel asks for the name of a file again when it is used: entries with their nodes are work for nothing */
        if (!shared->network && !shared->alone)
                connection->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
        /* that a time has changed means that this mount has changed it, by the same node */
        if (shared->alone && !nodes_may_be_several())
                connection->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
        connection->max_background = 64;
        /* libfuse says 256 pages, which may have 64 KiB; the kernel lets nobody read with less room than that (EINVAL) */
        if (connection->max_write > REQUEST_SIZE - 4096)
                connection->max_write = REQUEST_SIZE - 4096;
}

const struct fuse_lowlevel_ops operations = { .init = do_init,
                                              .lookup = names_lookup,
                                              .forget = names_forget,
                                              .forget_multi = names_forget_multi,
                                              .getattr = attributes_get,
                                              .setattr = attributes_set,
                                              .readlink = names_readlink,
                                              .mknod = names_mknod,
                                              .mkdir = names_mkdir,
                                              .unlink = names_unlink,
                                              .rmdir = names_rmdir,
                                              .symlink = names_symlink,
                                              .rename = names_rename,
                                              .link = names_link,
                                              .open = files_open,
                                              .create = files_create,
                                              .read = files_read,
                                              .write = files_write,
                                              .flush = files_flush,
                                              .release = files_release,
                                              .fsync = files_fsync,
                                              .opendir = directories_open,
                                              .readdir = directories_read,
                                              .readdirplus = directories_read_plus,
                                              .releasedir = directories_release,
                                              .fsyncdir = files_fsync,
                                              .statfs = attributes_statfs,
                                              .setxattr = xattrs_set,
                                              .getxattr = xattrs_get,
                                              .listxattr = xattrs_list,
                                              .removexattr = xattrs_remove,
                                              .getlk = locks_getlk,
                                              .setlk = locks_setlk,
                                              .flock = locks_flock,
                                              .fallocate = files_fallocate,
                                              .copy_file_range = files_copy,
                                              .lseek = files_lseek,
                                              .ioctl = flags_ioctl };
