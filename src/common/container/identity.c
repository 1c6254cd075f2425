/* SPDX-License-Identifier: Apache-2.0 */
#include "container/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

#define OF_BUNDLE '@' /* no container's id has one before its bundle's: the last one counts */

static bool is_full_id(const char *id)
{
        return strlen(id) == CONTAINER_ID_FULL && strspn(id, "0123456789abcdef") == CONTAINER_ID_FULL;
}

int container_identity_oci(const char *id, const char *bundle, char *ret_identity)
{
        struct statx directory;
        int n;

        ret_identity[0] = '\0';
        if (is_full_id(id)) {
                (void)text_copy(ret_identity, CONTAINER_IDENTITY_MAX, id);
                return 0;
        }
        if (bundle[0] != '/')
                return 0;
        if (statx(AT_FDCWD, bundle, 0, STATX_INO | STATX_BTIME, &directory) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        if ((directory.stx_mask & STATX_BTIME) == 0)
                return 0;
        n = snprintf(ret_identity, CONTAINER_IDENTITY_MAX, "%s%c%llx.%llx.%x", id, OF_BUNDLE,
                     (unsigned long long)directory.stx_ino, (unsigned long long)directory.stx_btime.tv_sec,
                     directory.stx_btime.tv_nsec);
        if (n >= CONTAINER_IDENTITY_MAX)
                ret_identity[0] = '\0';
        return 0;
}

void container_identity_make(const struct container_reference *reference, const struct container_process *found,
                             char *ret_identity)
{
        ret_identity[0] = '\0';
        if (reference->identity != NULL)
                (void)text_copy(ret_identity, CONTAINER_IDENTITY_MAX, reference->identity);
        else if (reference->unit != NULL)
                container_reference_name(reference, ret_identity, CONTAINER_IDENTITY_MAX);
        else if (reference->id == NULL || found->pid == 0)
                return;
        else if (reference->user == 0)
                (void)container_identity_oci(found->id[0] != '\0' ? found->id : reference->id, found->bundle,
                                             ret_identity);
        else if (is_full_id(found->id[0] != '\0' ? found->id : reference->id)) /* no path of a user's is opened */
                (void)snprintf(ret_identity, CONTAINER_IDENTITY_MAX, "user/%u/%s", reference->user,
                               found->id[0] != '\0' ? found->id : reference->id);
}

bool container_identity_called(const char *identity, const char *name)
{
        const char *bundle = strrchr(identity, OF_BUNDLE);
        size_t length = bundle != NULL ? (size_t)(bundle - identity) : strlen(identity);
        const char *id = strrchr(identity, '/') != NULL ? strrchr(identity, '/') + 1 : identity;

        if (strlen(name) == length && memcmp(identity, name, length) == 0)
                return true;
        return is_full_id(id) && strlen(name) >= (size_t)(id - identity) + CONTAINER_ID_SHORT_LENGTH &&
               text_starts(identity, name);
}
