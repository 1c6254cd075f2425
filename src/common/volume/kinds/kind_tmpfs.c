/* SPDX-License-Identifier: Apache-2.0 */
/* kind_tmpfs.c - memory: a fresh tmpfs for each pod. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "mount/options.h"
#include "mount/superblock.h"
#include "volume/call.h"
#include "volume/kind.h"

/* The kernel would silently cut off the high bits of a mode that is too large (docs/KERNEL.md#tmpfs). */
static int check_mode(const char *mode, struct error *error)
{
        if (mode == NULL || (mode[strspn(mode, "01234567")] == '\0' && strlen(mode) <= 5 && mode[0] != '\0' &&
                             (strlen(mode) < 5 || mode[0] == '0')))
                return 0;
        return fail_because(error, EINVAL, "check options", "mode", "mode: must be octal, as \"0755\"");
}

/* A number that the kernel is told as it is, if the option is given. */
static int set_limit(int context_fd, const struct volume_request *request, const char *key, const char *option,
                     struct error *error)
{
        uint64_t limit;
        char text[24];
        int r = volume_request_size(request, key, &limit, error);

        if (r < 0 || limit == 0)
                return r;
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
        return superblock_set(context_fd, option, text, error);
}

static int configure(int context_fd, const struct volume_request *request, struct error *error)
{
        const char *mode;
        int r = volume_request_option(request, "mode", &mode, error);

        if (r < 0 || (r = check_mode(mode, error)) < 0)
                return r;
        for (size_t i = 0; i < request->mount_options.fs_count; i++)
                if ((r = mount_options_tmpfs_limit(&request->mount_options.fs_options[i], error)) < 0)
                        return r;
        if ((r = set_limit(context_fd, request, "size", "size", error)) < 0 ||
            (r = set_limit(context_fd, request, "inodes", "nr_inodes", error)) < 0 ||
            (r = superblock_set(context_fd, "mode", mode != NULL ? mode : "0777", error)) < 0 ||
            (r = superblock_options(context_fd, &request->mount_options, error)) < 0)
                return r;
        return superblock_create(context_fd, "tmpfs", error);
}

static int make(struct volume_call *call, struct error *error)
{
        cleanup_close int context_fd = superblock_open("tmpfs", error);
        int r;

        if (context_fd < 0)
                return context_fd;
        r = configure(context_fd, call->request, error);
        return r < 0 ? r : superblock_mount(context_fd, "tmpfs", 0, error);
}

static const struct volume_option options[] = {
        { .key = "size",
          .type = VOLUME_OPTION_SIZE,
          .fallback = "half of the memory",
          .help = "how much may be written" },
        { .key = "mode", .fallback = "0777", .help = "mode of its root directory, octal" },
        { .key = "inodes", .type = VOLUME_OPTION_SIZE, .help = "how many files it may hold" },
        {},
};

const struct volume_kind kind_tmpfs = { VOLUME_KIND(tmpfs), .options = options,
                                        .harmless_options = mount_options_tmpfs_harmless, .make = make };
