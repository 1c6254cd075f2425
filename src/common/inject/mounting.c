/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/steps.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "inject/attributes.h"

/*
 * The filesystem cannot be id-mapped, and this kind of mount has no remap: the operation of the error says so, and with
 * it the hint.
 */
static void blame_map(const struct injection *injection, struct error *error)
{
        if (injection->kind->remap == REMAP_NEVER && error->errnum == EINVAL &&
            strcmp(error->operation, OPERATION_MOUNT_SETATTR) == 0)
                (void)text_copy(error->operation, sizeof error->operation, OPERATION_MAP_OWNERS);
}

int mounting_make(struct injection *injection, struct error *error)
{
        bool owned = injection->container->own_user_ns && injection->request->ids == IDS_USERNS;
        int r;

        if (owned && !injection->kind->ownable)
                return injection_fail_ids(
                        injection,
                        "\"userns\" needs a new superblock: this kind of mount has one already, or the node owns it",
                        error);
        if ((r = injection_check_remap(injection, error)) < 0)
                return r;
        r = injection->kind->make(injection, owned, error);
        if (r < 0)
                blame_map(injection, error);
        return r;
}

/*
 * The filesystem cannot be id-mapped: creates a superblock that the container's user namespace owns, if the kernel can
 * (docs/KERNEL.md#superblocks-of-a-user-namespace).
 */
static int set_on_owned(struct injection *injection, struct error *error)
{
        struct error mapped = *error;
        int r;

        fd_close(&injection->mount_fd); /* the device cannot have both superblocks */
        r = injection->kind->make(injection, /* owned= */ true, error);
        if (r == 0)
                r = attributes_check_owner(injection, error);
        if (r == 0)
                r = attributes_set(injection, /* mapped= */ false, error);
        if (r < 0) {
                struct error owned = *error;

                (void)fail_because(error, mapped.errnum, mapped.operation, mapped.subject,
                                   "idmapped: %s; userns: %s: %s", strerrorname_np(mapped.errnum),
                                   strerrorname_np(owned.errnum),
                                   owned.kernel[0] != '\0' ? owned.kernel : owned.reason);
        }
        return r;
}

/* remap-daemon serves the mount, which has no attributes yet. */
static int set_on_remap(struct injection *injection, struct error *error)
{
        int r = attributes_remap(injection, /* ids= */ NULL, error);

        return r < 0 ? r : attributes_set(injection, /* mapped= */ false, error);
}

/* The kernel refused each of its ways: what is left of them goes, and remap-daemon serves the mount anew. */
static int fall_back(struct injection *injection, struct error *error)
{
        int r;

        fd_close(&injection->mount_fd); /* the device cannot have two superblocks */
        r = injection->kind->make(injection, /* owned= */ false, error);
        return r < 0 ? r : set_on_remap(injection, error);
}

int mounting_set_attributes(struct injection *injection, struct error *error)
{
        const struct request *request = injection->request;
        const char *word = NULL;
        int r;

        if (injection->locked)
                return 0;
        if (injection->kind->maps || injection->mapped)
                return attributes_set(injection, /* mapped= */ false, error);
        if (injection->container->own_user_ns && request->ids == IDS_REMAP)
                return set_on_remap(injection, error);
        if (!injection->container->own_user_ns)
                word = "none";
        else if (request->ids == IDS_HOST)
                word = "host";
        else if (request->ids == IDS_USERNS) {
                if ((r = attributes_check_owner(injection, error)) < 0)
                        return r;
                word = "userns";
        }
        if (word != NULL) {
                r = attributes_set(injection, /* mapped= */ false, error);
        } else {
                bool refused;

                word = "idmapped";
                r = attributes_set(injection, /* mapped= */ true, error);
                refused = attributes_is_refusal(r);
                if ((r == -EINVAL || r == -EPERM) && injection->kind->ownable && request->ids == IDS_AUTO) {
                        word = "userns";
                        r = set_on_owned(injection, error);
                }
                if (r < 0 && refused && injection_falls_back(injection))
                        return fall_back(injection, error);
                if (r < 0)
                        blame_map(injection, error);
                if (r < 0 && refused)
                        attributes_blame_source(injection, injection->mount_fd, error);
                if (r < 0)
                        attributes_say_unmapped(error);
        }
        if (r < 0)
                return r;
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, word);
        return 0;
}
