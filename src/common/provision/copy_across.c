/* SPDX-License-Identifier: Apache-2.0 */
/* copy_across.c - the content of a volume of one pool in a volume of another, of whatever type the two are. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/text.h"
#include "block/content.h"
#include "block/device.h"
#include "block/device_copy.h"
#include "pool/pool.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/call.h"

/* Whose content it is an image may know alone; of the copy its record tells. Needs CAP_SYS_ADMIN to see it. */
static int note_namespace(int from_fd, struct provision_record *record, struct error *error)
{
        char namespace[sizeof record->namespace];
        ssize_t n;

        if (record->namespace[0] != '\0')
                return 0;
        n = fgetxattr(from_fd, POOL_IMAGE_NAMESPACE, namespace, sizeof namespace - 1);
        if (n < 0) /* of a device: ENOTSUP, or ENODATA of its node */
                return errno == ENODATA || errno == ENOTSUP ? 0
                                                            : fail(error, errno, "read the namespace", record->copy_of);
        (void)memcpy(record->namespace, namespace, (size_t)n);
        record->namespace[n] = '\0';
        return 0;
}

/* An image may be of a disk with smaller sectors: its loop device has these (volume/kinds/loop_image.h), a disk has its own. */
static int check_sectors(const struct pool_content *from, const struct pool_content *to, const char *volume,
                         struct error *error)
{
        uint64_t sector_bytes;
        unsigned block_bytes;
        char text[24];
        struct stat st;

        if (fstat(to->fd, &st) < 0 || !S_ISBLK(st.st_mode) ||
            block_device_attribute(st.st_rdev, "queue/logical_block_size", text, sizeof text) < 0 ||
            !text_number(text, UINT32_MAX, &sector_bytes))
                return 0;
        block_bytes = content_block_bytes(from->fd, 0);
        if (block_bytes == 0 || block_bytes >= sector_bytes)
                return 0;
        return fail_because(
                error, EINVAL, "copy volume", volume,
                "its filesystem has blocks or sectors of %u bytes, and could not be mounted from a disk with "
                "sectors of %llu",
                block_bytes, (unsigned long long)sector_bytes);
}

static int fill(const struct provision_call *call, const struct pool_content *from, struct provision_record *record,
                struct error *error)
{
        struct pool_content to;
        int r = call->kind->open_content(&call->config, &call->pool, record->id, /* write= */ true, &to, error);

        if (r < 0)
                return r;
        if (to.size_bytes < from->size_bytes)
                r = fail_because(error, ERANGE, "copy volume", record->copy_of,
                                 "it has %llu bytes, and its copy only %llu", (unsigned long long)from->size_bytes,
                                 (unsigned long long)to.size_bytes);
        else if ((r = check_sectors(from, &to, record->copy_of, error)) == 0 &&
                 (r = note_namespace(from->fd, record, error)) == 0)
                r = block_content_copy(from->fd, from->size_bytes, to.fd, to.blank, record->copy_of, error);
        call->kind->close_content(&call->config, &call->pool, &to);
        return r;
}

int copy_across(const struct provision_call *call, const struct pool *pool, const char *id,
                struct provision_record *record, struct error *error)
{
        struct pool_content from;
        int r = pool->kind->open_content(&call->config, pool, id, /* write= */ false, &from, error);

        if (r < 0)
                return r;
        r = fill(call, &from, record, error);
        pool->kind->close_content(&call->config, pool, &from);
        return r;
}
