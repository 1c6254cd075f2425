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

/* What comes before a user's or another's own id. */
static size_t length_of_prefix(const char *name)
{
        const char *slash = strrchr(name, '/');

        return slash != NULL ? (size_t)(slash + 1 - name) : 0;
}

static size_t length_of_name(const char *identity)
{
        const char *bundle = strrchr(identity, OF_BUNDLE);

        return bundle != NULL ? (size_t)(bundle - identity) : strlen(identity);
}

bool container_identity_called(const char *identity, const char *name)
{
        const size_t length = length_of_name(identity);
        const size_t prefix = length_of_prefix(identity);

        if (strlen(name) == length && memcmp(identity, name, length) == 0)
                return true;
        return is_full_id(identity + prefix) && strlen(name) >= prefix + CONTAINER_ID_SHORT_LENGTH &&
               text_starts(identity, name);
}

void container_identity_stem_called(const char *name, char *ret_stem)
{
        (void)snprintf(ret_stem, CONTAINER_IDENTITY_MAX, "%.*s",
                       (int)length_of_prefix(name) + CONTAINER_ID_SHORT_LENGTH, name);
}

void container_identity_stem(const char *identity, char *ret_stem)
{
        if (is_full_id(identity + length_of_prefix(identity)))
                container_identity_stem_called(identity, ret_stem);
        else
                (void)snprintf(ret_stem, CONTAINER_IDENTITY_MAX, "%.*s", (int)length_of_name(identity), identity);
}
