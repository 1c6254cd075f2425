/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/nfs_options.h"

#include <string.h>
#include <sys/socket.h>

#include "base/text.h"

/* Parameters of the connection to a server that is allowed; not the server (mountaddr) or the client (clientaddr). */
/* clang-format off */
const char *const nfs_harmless_options[] = {
        "vers", "nfsvers", "minorversion", "v3", "v4", "v4.0", "v4.1", "v4.2", "proto", "tcp", "udp", "rdma", "port",
        "mountport", "mountproto", "mountvers", "rsize", "wsize", "bsize", "timeo", "retrans", "hard", "soft", "softerr",
        "softreval", "nosoftreval", "fatal_neterrors", "lock", "nolock", "local_lock", "posix", "noposix", "nconnect",
        "max_connect", "trunkdiscovery", "notrunkdiscovery", "migration", "nomigration", "sec", "xprtsec", "ac", "noac",
        "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "cto", "nocto", "lookupcache", "rdirplus",
        "nordirplus", "resvport", "noresvport", "acl", "noacl", "sharecache", "nosharecache", "namlen", "write",
        "alignwrite", "noalignwrite", "sync", "async", "dirsync", "fg", "bg", "intr", "nointr", "retry", NULL
};
/* clang-format on */

const char *nfs_option_value(const struct mount_options *options, const char *name)
{
        const char *found = NULL;
        size_t length = strlen(name);

        for (size_t i = 0; i < options->fs_count; i++) {
                const char *option = options->fs_options[i];

                if (strncmp(option, name, length) == 0 && option[length] == '=')
                        found = option + length + 1;
        }
        return found;
}

bool nfs_option_is_for_mount(const char *option)
{
        static const char *const words[] = { "fg", "bg", "intr", "nointr", NULL };

        return text_among(option, words) || text_starts(option, "retry=") || text_starts(option, "clientaddr=");
}

/* The first option that is one of these words; NULL: none. */
static const char *option_among(const struct mount_options *options, const char *const *words)
{
        for (size_t i = 0; i < options->fs_count; i++)
                if (text_among(options->fs_options[i], words))
                        return options->fs_options[i];
        return NULL;
}

static const char *const version_words[] = { "v2", "v3", "v4", "v4.0", "v4.1", "v4.2", NULL };

bool nfs_option_is_version(const char *option)
{
        return text_starts(option, "vers=") || text_starts(option, "nfsvers=") || text_among(option, version_words);
}

const char *nfs_options_version(const struct mount_options *options, const char **ret_minor)
{
        static const char minor[] = "minorversion=";

        *ret_minor = NULL;
        for (size_t i = options->fs_count; i > 0; i--) {
                const char *option = options->fs_options[i - 1];
                const char *value = strchr(option, '=');

                if (*ret_minor == NULL && text_starts(option, minor))
                        *ret_minor = option + strlen(minor);
                if (!nfs_option_is_version(option))
                        continue;
                value = value != NULL ? value + 1 : option + 1; /* "vers=4.2", or "v4.2" */
                if (*ret_minor == NULL && strcmp(value, "4") == 0)
                        *ret_minor = nfs_option_value(options, "minorversion");
                return value;
        }
        return NULL;
}

bool nfs_options_say_locks(const struct mount_options *options)
{
        static const char *const words[] = { "lock", "nolock", NULL };

        return option_among(options, words) != NULL || nfs_option_value(options, "local_lock") != NULL;
}

bool nfs_options_need_rpcbind(const struct mount_options *options, const char *version)
{
        static const char *const words[] = { "lock", NULL };

        return strcmp(version, "3") == 0 && option_among(options, words) != NULL;
}

bool nfs_options_are_datagram(const struct mount_options *options)
{
        static const char *const words[] = { "udp", "rdma", NULL }; /* by neither a connection of TCP tells anything */
        const char *proto = nfs_option_value(options, "proto");

        return proto != NULL ? !text_starts(proto, "tcp") : option_among(options, words) != NULL;
}

int nfs_options_family(const struct mount_options *options)
{
        const char *proto = nfs_option_value(options, "proto");

        if (proto == NULL && nfs_option_value(options, "mountaddr") == NULL)
                proto = nfs_option_value(options, "mountproto");
        return proto == NULL ? AF_UNSPEC : text_ends(proto, "6") ? AF_INET6 : AF_INET;
}
