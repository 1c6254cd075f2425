/* SPDX-License-Identifier: Apache-2.0 */
#include "bind_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "detached_mount.h"
#include "syscalls.h"
#include "text.h"

static int open_source(struct injection *injection, struct error *error)
{
        const char *source = injection->request->source;
        char link[64];
        struct stat st;
        bool straight; /* no symbolic link on the way */
        ssize_t n;

        /* The node's own path, symbolic links and all, opened once. Not through a magic link: beneath /proc/PID/root a
         * container's absolute links would be followed in the node's tree. */
        injection->source_fd = sys_openat2(AT_FDCWD, source, O_PATH, 0, RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
        straight = injection->source_fd >= 0;
        if (!straight && errno == ELOOP)
                injection->source_fd = sys_openat2(AT_FDCWD, source, O_PATH, 0, RESOLVE_NO_MAGICLINKS);
        if (injection->source_fd < 0)
                return fail(error, errno, "open source", source);
        if (fstat(injection->source_fd, &st) < 0)
                return fail(error, errno, "fstat", source);
        injection->directory = S_ISDIR(st.st_mode);

        (void)text_copy(injection->record.origin, sizeof injection->record.origin, source);
        if (straight)
                return 0;
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", injection->source_fd);
        n = readlink(link, injection->record.origin, sizeof injection->record.origin - 1); /* untouched if it fails */
        if (n > 0)
                injection->record.origin[n] = '\0';
        return 0;
}

static int make_clone(struct injection *injection, bool owned, struct error *error)
{
        (void)owned; /* never asked for: not ownable */
        injection->mount_fd = detached_mount_clone(injection->source_fd, injection->request->source,
                                                   injection->request->recursive, error);
        return injection->mount_fd < 0 ? injection->mount_fd : 0;
}

const struct source_kind bind_source = { .open = open_source, .make = make_clone, .ownable = false };
