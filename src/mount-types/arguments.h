/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h - how mount(8) and umount(8) call a program for a type of mount:
 *
 *      mount.TYPE SOURCE TARGET [-fnsvrw] [-o OPTIONS] [-t TYPE]
 *      umount.TYPE TARGET [-flnrv] [-t TYPE]
 */
#ifndef FLEXGRAFT_MOUNT_TYPES_ARGUMENTS_H
#define FLEXGRAFT_MOUNT_TYPES_ARGUMENTS_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "mount/options.h"
#include "named/node_mount.h"

#define ARGUMENTS_USER_MAX 4096 /* terminated */

/* Texts are borrowed from argv, or stay until the program ends; NULL: nothing was said. */
struct arguments {
        const char *source;
        char target[PATH_MAX]; /* links resolved; of an unmount as it is where that cannot be done */
        bool fake;
        bool no_table; /* -n: nothing is written about the mount */
        bool sloppy;   /* unknown options are passed over */
        bool verbose;
        bool remount;
        bool lazy; /* of an unmount, as the next two */
        bool force;
        bool read_only;                /* of a mount, too */
        char user[ARGUMENTS_USER_MAX]; /* x-* options, separated by commas */
        struct node_mount mount;       /* what the options say */
        bool export;                   /* the source is one of a server */
        struct mount_options options;  /* those of all mounts; fs_options: of an export. Until the program ends */
};

/*
 * arguments_read_mount() - of a mount. own: the options of volumes are options, too; else those that a filesystem may
 * have are, if the source is an export of a server. Errors: OPERATION_PARSE.
 * arguments_read_unmount() - of an unmount.
 */
int arguments_read_mount(struct arguments *ret_arguments, bool own, int argc, char **argv, struct error *error);
int arguments_read_unmount(struct arguments *ret_arguments, int argc, char **argv, struct error *error);

/* arguments_check_plain() - that they say no more than ro, rw, nodev and x-*, and options of nfs(5). Errors: OPERATION_PARSE. */
int arguments_check_plain(const struct arguments *arguments, struct error *error);

/* arguments_root() - a directory of a volume, or "", as the kernel shows it: "/a/b"; of PATH_MAX bytes. False: too long. */
bool arguments_root(const char *subdir, char *ret_root);

#endif
