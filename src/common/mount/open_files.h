/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_files.h - which processes still use a mount that is in no mount tree any more: their open files, working and
 * root directories, and what they have mapped.
 *
 * The kernel keeps such a mount until the last of them ends, and lists them nowhere: each process is looked at. What no
 * process has (a file on its way through a socket, a mount that was bound elsewhere) is not found, and a thread that has
 * files of its own is not either: whether a filesystem is in use, only its device says (block/device).
 */
#ifndef FLEXGRAFT_MOUNT_OPEN_FILES_H
#define FLEXGRAFT_MOUNT_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "container/container.h"
#include "mount/identity.h"

#define OPEN_FILES_MAX 32

enum open_files_how { OPEN_FILES_FILE = 1, OPEN_FILES_CWD = 2, OPEN_FILES_ROOT = 4, OPEN_FILES_MAPPED = 8 };

struct open_files_process {
        pid_t pid;        /* in this process's /proc */
        unsigned how;     /* enum open_files_how */
        char command[16]; /* as the process calls itself: any bytes */
};

struct open_files {
        size_t count;
        bool more;   /* there are more than asked for, or the time was over before all were looked at */
        bool unsure; /* it was over before all of the mount namespace were */
        struct open_files_process processes[OPEN_FILES_MAX];
};

/* Whose files: those of processes of the mount namespace; or of all others, of which a node may have very many. */
enum open_files_of { OPEN_FILES_OF_NAMESPACE, OPEN_FILES_OF_OTHERS };

/*
 * open_files_find() - look at processes until until_ms (clock_now_ms()'s clock), or until most are found; at most
 * OPEN_FILES_MAX.
 *
 * Runs in: a worker in the node's namespaces. A container decides how many processes, files and mappings there are, and
 *          may make a look hang: ret_files, which the caller has zeroed, holds what was found until then.
 * Gives:   ret_files: what it had stays.
 * Needs:   CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, and for mappings CAP_SYS_ADMIN; what may not be looked at is passed over.
 */
void open_files_find(const struct mount_identity *identity, const struct namespace_identity *mnt_ns,
                     enum open_files_of of, size_t most, int64_t until_ms, struct open_files *ret_files);

/*
 * open_files_find_on() - the same of all mounts of a filesystem, and of all processes. device: st_dev of its files.
 */
void open_files_find_on(uint64_t device, size_t most, int64_t until_ms, struct open_files *ret_files);

#endif
