/* SPDX-License-Identifier: Apache-2.0 */
#include "network/nfs_export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int nfs_export_join(const char *host, const char *path, struct nfs_export *ret_export)
{
        size_t length = strlen(host);

        if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
                host++;
                length -= 2;
        }
        if (length == 0 || length >= sizeof ret_export->host || path[0] != '/' ||
            strlen(path) >= sizeof ret_export->path)
                return -EINVAL;
        (void)snprintf(ret_export->host, sizeof ret_export->host, "%.*s", (int)length, host);
        if (ret_export->host[strcspn(ret_export->host, "/[] \t\n,@")] != '\0')
                return -EINVAL;
        (void)text_copy(ret_export->path, sizeof ret_export->path, path);
        (void)snprintf(ret_export->source, sizeof ret_export->source,
                       strchr(ret_export->host, ':') != NULL ? "[%s]:%s" : "%s:%s", ret_export->host, path);
        return 0;
}

int nfs_export_parse(const char *source, struct nfs_export *ret_export)
{
        const char *end = source[0] == '[' ? strstr(source, "]:") : strchr(source, ':');
        char host[NFS_HOST_SIZE + 2];
        size_t length;

        if (end == NULL)
                return -EINVAL;
        if (*end == ']')
                end++;
        length = (size_t)(end - source);
        if (length >= sizeof host)
                return -EINVAL;
        (void)snprintf(host, sizeof host, "%.*s", (int)length, source);
        return nfs_export_join(host, end + 1, ret_export);
}
