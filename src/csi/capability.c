/* SPDX-License-Identifier: Apache-2.0 */
#include "capability.h"

#include <stdlib.h>
#include <string.h>

#include "state/access.h"
#include "type.h"

#define MODE(word) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##word
#define FS_TYPE_MAX 31 /* as volume-create */

static int mode_of(const Csi__V1__VolumeCapability *capability)
{
        return capability->access_mode != NULL ? (int)capability->access_mode->mode : 0;
}

/* Writers of several nodes. */
static bool is_many(const Csi__V1__VolumeCapability *capability)
{
        return mode_of(capability) == MODE(MULTI_NODE_SINGLE_WRITER) ||
               mode_of(capability) == MODE(MULTI_NODE_MULTI_WRITER);
}

const char *csi_capability_incomplete(const Csi__V1__VolumeCapability *capability)
{
        if (capability == NULL)
                return "the volume capability is missing";
        if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
                return "the volume capability has no access type: neither mount nor block";
        if (mode_of(capability) == MODE(UNKNOWN))
                return "the volume capability has no access mode";
        return csi_capability_invalid(capability);
}

const char *csi_capability_invalid(const Csi__V1__VolumeCapability *capability)
{
        if (mode_of(capability) < 0 || mode_of(capability) > MODE(SINGLE_NODE_MULTI_WRITER))
                return "the volume capability has an access mode that is not known";
        if (strlen(csi_capability_fs_type(capability)) > FS_TYPE_MAX)
                return "the filesystem's name is too long";
        if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
            capability->mount != NULL && capability->mount->volume_mount_group[0] != '\0')
                return "volume_mount_group is not offered (VOLUME_MOUNT_GROUP): the caller sets the group itself";
        return NULL;
}

bool csi_capability_names_server(const Csi__V1__VolumeCapability *capability)
{
        return capability != NULL && csi_type_find(csi_capability_fs_type(capability))->server;
}

bool csi_capability_needs_share(const Csi__V1__VolumeCapability *capability)
{
        return capability != NULL && (is_many(capability) || csi_capability_names_server(capability));
}

bool csi_capabilities_need_share(size_t count, Csi__V1__VolumeCapability *const *capabilities)
{
        for (size_t i = 0; i < count; i++)
                if (csi_capability_needs_share(capabilities[i]))
                        return true;
        return false;
}

const char *csi_capability_impossible(const Csi__V1__VolumeCapability *capability, bool shared)
{
        if (shared && csi_capability_is_block(capability))
                return "it is a directory of a server, and no block device";
        if (shared && csi_capability_fs_type(capability)[0] != '\0' &&
            !csi_type_find(csi_capability_fs_type(capability))->server)
                return "it is a directory of a server, without a filesystem of its own";
        if (is_many(capability) && !shared)
                return "it is on one node, where others cannot write to it";
        return NULL;
}

bool csi_capability_is_block(const Csi__V1__VolumeCapability *capability)
{
        return capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
}

const char *csi_capability_fs_type(const Csi__V1__VolumeCapability *capability)
{
        return capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
                               capability->mount != NULL && capability->mount->fs_type != NULL
                       ? capability->mount->fs_type
                       : "";
}

bool csi_capability_reads_only(const Csi__V1__VolumeCapability *capability)
{
        return access_reads_only(csi_capability_mode(capability));
}

const char *csi_capability_mode(const Csi__V1__VolumeCapability *capability)
{
        int mode = mode_of(capability);

        for (int i = 0; access_modes[i] != NULL; i++)
                if (i + 1 == mode)
                        return access_modes[i];
        return "";
}

char *csi_capability_flags(const Csi__V1__VolumeCapability *capability)
{
        const Csi__V1__VolumeCapability__MountVolume *mount =
                csi_capability_is_block(capability) ? NULL : capability->mount;
        size_t count = mount != NULL ? mount->n_mount_flags : 0;
        size_t size = 1;
        size_t at = 0;
        char *flags;

        for (size_t i = 0; i < count; i++)
                size += strlen(mount->mount_flags[i]) + 1;
        flags = calloc(1, size);
        if (flags == NULL)
                return NULL;
        for (size_t i = 0; i < count; i++) {
                size_t length = strlen(mount->mount_flags[i]);

                if (at > 0)
                        flags[at++] = ',';
                memcpy(flags + at, mount->mount_flags[i], length);
                at += length;
        }
        return flags;
}
