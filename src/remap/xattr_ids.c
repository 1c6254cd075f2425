/* SPDX-License-Identifier: Apache-2.0 */
#include "xattr_ids.h"

#include <endian.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <string.h>

#include "source_ids.h"

typedef bool change_id(bool group, uint32_t *id);

static bool take(bool group, uint32_t *id)
{
        return group ? source_ids_take_group(id) : source_ids_take_user(id);
}

static bool show(bool group, uint32_t *id)
{
        if (group)
                source_ids_show_group(id);
        else
                source_ids_show_user(id);
        return true;
}

static int change_list(char *value, size_t size, change_id *change)
{
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entry;

        if (size == 0)
                return 0; /* which removes it */
        if (size < sizeof header || (size - sizeof header) % sizeof entry != 0)
                return -EINVAL;
        (void)memcpy(&header, value, sizeof header);
        if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION)
                return -EINVAL;
        for (size_t i = sizeof header; i < size; i += sizeof entry) {
                uint32_t id;
                uint16_t tag;

                (void)memcpy(&entry, value + i, sizeof entry);
                tag = le16toh(entry.e_tag);
                if (tag != ACL_USER && tag != ACL_GROUP)
                        continue;
                id = le32toh(entry.e_id);
                if (!change(tag == ACL_GROUP, &id))
                        return -EINVAL;
                entry.e_id = htole32(id);
                (void)memcpy(value + i, &entry, sizeof entry);
        }
        return (int)size;
}

static bool has_root_id(const struct vfs_ns_cap_data *capabilities, size_t size)
{
        return size == XATTR_CAPS_SZ_3 &&
               (le32toh(capabilities->magic_etc) & VFS_CAP_REVISION_MASK) == VFS_CAP_REVISION_3;
}

/* Of the second revision: they are for root of the user namespace that the filesystem is of (get_vfs_caps_from_disk()). */
static int take_capabilities(char *value, size_t size)
{
        struct vfs_ns_cap_data capabilities = {};
        uint32_t magic;
        uint32_t root;

        if (size > sizeof capabilities)
                return -EINVAL;
        (void)memcpy(&capabilities, value, size);
        magic = le32toh(capabilities.magic_etc);
        if (!has_root_id(&capabilities, size) &&
            (size != XATTR_CAPS_SZ_2 || (magic & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_2))
                return -EINVAL;
        root = le32toh(capabilities.rootid); /* 0 where there is none */
        if (!take(/* group= */ false, &root))
                return -EINVAL;
        capabilities.magic_etc = htole32((magic & ~(uint32_t)VFS_CAP_REVISION_MASK) | VFS_CAP_REVISION_3);
        capabilities.rootid = htole32(root);
        (void)memcpy(value, &capabilities, sizeof capabilities);
        return sizeof capabilities;
}

static void show_capabilities(char *value, size_t size)
{
        struct vfs_ns_cap_data capabilities;
        uint32_t root;

        if (size != sizeof capabilities)
                return; /* without an id: for root of the node, and so for every root below it */
        (void)memcpy(&capabilities, value, sizeof capabilities);
        if (!has_root_id(&capabilities, size))
                return;
        root = le32toh(capabilities.rootid);
        (void)show(/* group= */ false, &root);
        capabilities.rootid = htole32(root);
        (void)memcpy(value, &capabilities, sizeof capabilities);
}

static bool is_list(const char *name)
{
        return strncmp(name, "system.posix_acl_", strlen("system.posix_acl_")) == 0;
}

bool xattr_ids_are_capabilities(const char *name)
{
        return strcmp(name, "security.capability") == 0;
}

int xattr_ids_take(const char *name, char *value, size_t size)
{
        _Static_assert(XATTR_CAPS_SZ_3 - XATTR_CAPS_SZ_2 == XATTR_IDS_GROWTH, "a value becomes so much longer");
        if (source_ids_differ() && is_list(name))
                return change_list(value, size, take);
        return source_ids_differ() && xattr_ids_are_capabilities(name) ? take_capabilities(value, size) : (int)size;
}

void xattr_ids_show(const char *name, char *value, size_t size)
{
        if (source_ids_differ() && is_list(name))
                (void)change_list(value, size, show);
        else if (source_ids_differ() && xattr_ids_are_capabilities(name))
                show_capabilities(value, size);
}
