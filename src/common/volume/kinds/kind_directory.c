/* SPDX-License-Identifier: Apache-2.0 */
/* kind_directory.c - a volume of a pool of directories, as volume-create made it; nothing is attached. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/detached.h"
#include "pool/pool_directory.h"
#include "state/use_index.h"
#include "volume/call.h"
#include "volume/kind.h"
#include "volume/provisioned.h"
#include "volume/same.h"

/* With the lock of the volume's name: volume-delete waits, and sees the use. */
static int open_directory(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        cleanup_close int fd = -EBADF;
        char path[PATH_MAX];
        struct stat st;
        /* mount-volume has it already */
        int r = call->provisioned.dir_fd >= 0 ? 0 : provisioned_hold(call, error);

        if (r < 0)
                return r;
        r = provisioned_find(call, &kind_directory, &record, error);
        if (r == -ENOENT)
                return fail_because(error, ENOENT, "find volume", call->request->name,
                                    "there is no such volume in a pool of directories; make it with volume-create");
        if (r < 0)
                return r;
        fd = pool_directory_open(&call->config, &record, path, error);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        (void)text_copy(call->record.source, sizeof call->record.source, path);
        call->record.uses[0] = '\0';
        use_keys_add_file(call->record.uses, st.st_dev, st.st_ino);
        return fd_take(&fd);
}

static int make(struct volume_call *call, struct error *error)
{
        cleanup_close int fd = -EBADF;
        /* CSI's come from a class, which may be for pools of several types */
        int r = call->driver[0] == '\0' ? 0 : volume_request_check_clone(call->request, kind_directory.word, error);

        if (r < 0)
                return r;
        fd = open_directory(call, error);
        r = fd < 0 ? fd : volume_check_directory(call, fd, error);
        return r < 0 ? r : detached_mount_clone(fd, call->record.source, /* recursive= */ false, error);
}

static int grow(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r = provisioned_find(call, &kind_directory, &record, error);

        if (r == -ENOENT)
                return fail_because(error, ENOENT, "grow volume", call->request->name,
                                    "there is no such volume in a pool of directories");
        return r < 0 ? r : pool_directory_grow(&call->config, &record, size_bytes, ret_size_bytes, error);
}

static const struct volume_option options[] = {
        { .key = "pool", .help = "pool that the volume must be in" },
        { .key = "profile", .help = "profile that it must be of" },
        {},
};

static const char *const pool_types[] = { "directory", NULL };

const struct volume_kind kind_directory = { VOLUME_KIND(directory),
                                            .options = options,
                                            .pool_types = pool_types,
                                            .any_filesystem = true,
                                            .open = open_directory,
                                            .make = make,
                                            .grow = grow };
