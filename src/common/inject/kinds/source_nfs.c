/* SPDX-License-Identifier: Apache-2.0 */
/* source_nfs.c - an NFS export, reached from the container's network namespace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json_value.h"
#include "base/text.h"
#include "inject/attributes.h"
#include "inject/injection.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "mount/nfs.h"
#include "mount/nfs_options.h"
#include "state/policy.h"

#define RESERVE_MS 5000 /* of the timeout (at most half of it), for the steps after finding the server */

/* The export; and the servers that the policy allows, if there is one. */
static int find_export(const struct injection *injection, struct nfs_export *ret_export,
                       struct nfs_server_rule *ret_rule, struct error *error)
{
        const struct policy *policy = injection_policy(injection);
        int r = nfs_export_parse(injection->request->source, ret_export);

        *ret_rule = (struct nfs_server_rule){};
        if (r < 0)
                return fail(error, -r, OPERATION_OPEN_SOURCE, injection->request->source);
        return policy == NULL ? 0 : policy_server_check(policy, ret_export->host, /* open= */ false, ret_rule, error);
}

static int open_source(struct injection *injection, struct error *error)
{
        struct nfs_server_rule rule;
        struct nfs_export export;

        injection->directory = true;
        return find_export(injection, &export, &rule, error);
}

/*
 * Three ways to show owners, tried in this order, because kernel versions do not tell what works: a superblock that the
 * container's user namespace owns; an id-mapped mount; remap (docs/KERNEL.md#superblocks-of-a-user-namespace).
 */
static int make_owned(struct injection *injection, struct nfs_mount *mount, struct error *error)
{
        int fd = nfs_mount_make(mount, /* owned= */ true, error);

        if (fd < 0)
                return fd;
        injection->mount_fd = fd;
        (void)text_copy(injection->record.id_mapping, sizeof injection->record.id_mapping, "userns");
        return 0;
}

static int make_for(struct injection *injection, struct nfs_mount *mount, struct error *error)
{
        enum request_ids ids = injection->container->own_user_ns ? injection->request->ids : IDS_HOST;
        int r;

        if (ids == IDS_USERNS || ids == IDS_AUTO) {
                r = make_owned(injection, mount, error);
                if (ids == IDS_USERNS || r == 0 || !attributes_is_refusal(r))
                        return r;
        }
        injection->mount_fd = nfs_mount_make(mount, /* owned= */ false, error);
        return injection->mount_fd < 0 ? injection->mount_fd : attributes_map(injection, error);
}

static int make(struct injection *injection, bool owned, struct error *error)
{
        const struct request *request = injection->request;
        int64_t time_ms = (int64_t)request->timeout_seconds * 1000;
        struct nfs_server_rule rule;
        struct nfs_export export;
        struct nfs_mount mount = { .export = &export,
                                   .rule = &rule,
                                   .options = &request->options,
                                   .container = injection->container,
                                   .read_only = request->read_only,
                                   .deadline_ms = clock_now_ms() + time_ms -
                                                  (time_ms / 2 < RESERVE_MS ? time_ms / 2 : RESERVE_MS) };
        int r;

        (void)owned; /* make_for() tries it itself */
        if ((r = find_export(injection, &export, &rule, error)) < 0 || (r = nfs_mount_find(&mount, error)) < 0 ||
            (r = make_for(injection, &mount, error)) < 0)
                return r;
        (void)text_copy(injection->fs_type, sizeof injection->fs_type, "nfs");
        (void)text_copy(injection->record.server_version, sizeof injection->record.server_version, mount.version);
        (void)text_copy(injection->record.server_address, sizeof injection->record.server_address,
                        mount.address.server);
        return 0;
}

static int check(struct request *request, struct error *error)
{
        static const char *const unmeant[] = { "mounthost=", "bg" };
        struct nfs_export export;
        int r;

        if (request->source != NULL && (request->server != NULL || request->share != NULL))
                return json_value_refuse(error, "source", "cannot be combined with \"server\" and \"share\"");
        if (request->source == NULL && (request->server == NULL || request->share == NULL))
                return json_value_refuse(error, "source", "is missing: \"host:/path\", or \"server\" and \"share\"");
        r = request->source != NULL ? nfs_export_parse(request->source, &export)
                                    : nfs_export_join(request->server, request->share, &export);
        if (r < 0 && request->source != NULL)
                return json_value_refuse(error, "source", "must be \"host:/path\" or \"[IPv6 address]:/path\"");
        if (r < 0)
                return json_value_refuse(error, "server",
                                         "must be a host name or address, and \"share\" an absolute path on it");
        request->source = request->source_text = strdup(export.source);
        if (request->source == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "source");
        for (size_t i = 0; i < request->options.fs_count; i++)
                for (size_t j = 0; j < sizeof unmeant / sizeof unmeant[0]; j++)
                        if (text_starts(request->options.fs_options[i], unmeant[j]) &&
                            (j == 0 || request->options.fs_options[i][2] == '\0'))
                                return json_value_refuse(
                                        error, "options",
                                        j == 0 ? "\"mounthost\" is not supported: give the address as \"mountaddr\""
                                               : "\"bg\" is not supported: mounts are made in the foreground");
        return 0;
}

static const struct key keys[] = {
        { REQUEST_KEY_CONTAINER(1) },
        { "source", 1, 0, KEY_STRING, .pattern = ":/", .positional = 1, REQUEST_FIELD(source),
          .help = "\"host:/path\" or \"[IPv6 address]:/path\"; or give server and share" },
        { "server", 1, 0, KEY_STRING, .maximum = (int64_t)JSON_VALUE_ID_MAX * 2, REQUEST_FIELD(server),
          .help = "host name or address of the server" },
        { "share", 1, 0, KEY_PATH, REQUEST_FIELD(share), .help = "exported path on the server" },
        { REQUEST_KEY_TARGET },
        { REQUEST_KEY_READ_ONLY },
        { REQUEST_KEY_FS_OPTIONS },
        { REQUEST_KEY_FALLBACK("remap") },
        { REQUEST_KEY_CACHE },
        REQUEST_KEYS_OF_MOUNT(request_ids_words),
};
REQUEST_KEY_TABLE(source_nfs_keys, keys);

static const char *const oci_types[] = { "nfs", "nfs4", NULL };

const struct source_kind source_nfs = {
        .word = "nfs",
        .needs = NEED(NFS) | NEED(USER_NAMESPACES),
        .keys = &source_nfs_keys,
        .hints = nfs_hints,
        .oci_types = oci_types,
        .oci_source = "source",
        .close_waits = true,
        .foreign = true,
        .maps = true,
        .ownable = true,
        .remap = REMAP_FALLBACK,
        .open_text = "check that the policy allows the server",
        .make_text = "find the server from the container's network namespace, mount its export, detached; "
                     "map owners with remap where the kernel cannot", /* setns, connect, fsopen, fsmount */
        .harmless_options = nfs_harmless_options,
        .check = check,
        .open = open_source,
        .make = make,
};
