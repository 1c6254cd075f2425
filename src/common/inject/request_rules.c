/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/json_value.h"
#include "base/text.h"
#include "inject/request_keys.h"

/* What the options of a layer are for those who know them from fstab, the keys say: taken out of the options. */
static int take_layer_option(struct request *request, char *option, bool *ret_taken, struct error *error)
{
        char *value = strchr(option, '=');

        *ret_taken = true;
        if (value != NULL && text_starts(option, "upperdir="))
                request->upper = value + 1;
        else if (value != NULL && text_starts(option, "workdir="))
                request->work = value + 1;
        else if (value != NULL && text_starts(option, "lowerdir=")) {
                char *out = value + 1;

                request->lower_count = 0;
                request->lower[request->lower_count++] = out;
                for (const char *in = value + 1; *in != '\0'; in++) {
                        if (in[0] == '\\' && in[1] != '\0')
                                *out++ = *++in;
                        else if (in[0] == ':') {
                                if (request->lower_count == REQUEST_LAYERS_MAX)
                                        return json_value_refuse(error, "options", "has more than 64 layers");
                                *out++ = '\0';
                                request->lower[request->lower_count++] = out;
                        } else
                                *out++ = *in;
                }
                *out = '\0';
        } else if (text_starts(option, "lowerdir+") || text_starts(option, "datadir+"))
                return json_value_refuse(error, "options", "layers are given as \"lower\"");
        else
                *ret_taken = false;
        return 0;
}

static int check_overlay(struct request *request, struct error *error)
{
        int r;

        for (size_t i = 0; i < request->options.fs_count; i++) {
                bool taken;

                if ((r = take_layer_option(request, request->options.fs_options[i], &taken, error)) < 0)
                        return r;
                if (taken) /* the layers are looked up by us; the option stays where it is, for its memory */
                        request->options.fs_options[i][0] = '\0';
        }
        if (request->lower_count == 0)
                return json_value_refuse(error, "lower", "is missing");
        for (size_t i = 0; i < request->lower_count; i++)
                if (request->lower[i][0] != '/')
                        return json_value_refuse(error, "lower", "must be absolute paths of the node");
        if (request->upper == NULL && request->lower_count < 2)
                return json_value_refuse(
                        error, "lower", "one layer without an \"upper\" is no overlay; mount-bind mounts it read-only");
        if ((request->upper == NULL) != (request->work == NULL))
                return json_value_refuse(error, request->upper == NULL ? "upper" : "work",
                                         "is missing: they go together");
        if (request->upper != NULL && (request->upper[0] != '/' || request->work[0] != '/'))
                return json_value_refuse(error, "upper", "and \"work\" must be absolute paths of the node");
        return 0;
}

/*
 * A limit among the options, as a plain number: the kernel's own reading of it wraps round, and takes 0 for no limit at
 * all. option is the list's own, and replaced.
 */
static int settle_limit(char **option, struct error *error)
{
        static const char *const names[] = { "size", "nr_inodes", "nr_blocks" };
        char text[32];
        char *settled;
        json_t *value;
        int r;

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                size_t length = strlen(names[i]);

                if (strncmp(*option, names[i], length) != 0 || (*option)[length] != '=')
                        continue;
                value = json_string(*option + length + 1);
                r = json_value_size("options", value, /* percent= */ i == 0, text, sizeof text, error);
                json_decref(value);
                if (r < 0)
                        return r;
                if (asprintf(&settled, "%s=%s", names[i], text) < 0)
                        return fail(error, ENOMEM, OPERATION_PARSE, "options");
                free(*option);
                *option = settled;
                return 0;
        }
        return 0;
}

/* uid= and gid= among the options are the container's ids, too: as they are where it was made. */
static int check_tmpfs(struct request *request, struct error *error)
{
        for (size_t i = 0; i < request->options.fs_count; i++) {
                int r = settle_limit(&request->options.fs_options[i], error);
                char *option = request->options.fs_options[i];
                uint32_t *id = text_starts(option, "uid=")   ? &request->uid
                               : text_starts(option, "gid=") ? &request->gid
                                                             : NULL;
                uint64_t number;

                if (r < 0)
                        return r;
                if (id == NULL)
                        continue;
                if (!text_number(option + 4, UINT32_MAX - 1, &number))
                        return json_value_refuse(error, "options",
                                                 "uid and gid must be ids, as the container counts them");
                if (*id == REQUEST_ID_NONE)
                        *id = (uint32_t)number;
                option[0] = '\0';
        }
        return 0;
}

static int check_block(const struct request *request, struct error *error)
{
        if (request->options.recursive)
                return json_value_refuse(error, "options", "\"rbind\" is for mount-bind");
        if (!request->raw)
                return 0;
        if (request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a raw device is not mounted as a filesystem");
        if (request->options.fs_count > 0)
                return json_value_refuse(error, "options", "a raw device has no options of a filesystem");
        if ((request->options.attr_set & MOUNT_ATTR_NODEV) != 0)
                return json_value_refuse(error, "options", "\"nodev\" would make a raw device useless");
        if (request->ids != IDS_AUTO)
                return json_value_refuse(error, "ids",
                                         "a raw device has nothing to map: it belongs to the container's root");
        return 0;
}

static int check_nfs(struct request *request, struct error *error)
{
        static const char *const unmeant[] = { "mounthost=", "bg" };
        int r;

        if (request->source != NULL && (request->server != NULL || request->share != NULL))
                return json_value_refuse(error, "source",
                                         "and \"server\" with \"share\" say the same: give one of them");
        if (request->source == NULL && (request->server == NULL || request->share == NULL))
                return json_value_refuse(error, "source", "is missing: \"host:/path\", or \"server\" and \"share\"");
        r = request->source != NULL ? nfs_export_parse(request->source, &request->nfs)
                                    : nfs_export_join(request->server, request->share, &request->nfs);
        if (r < 0 && request->source != NULL)
                return json_value_refuse(error, "source", "must be \"host:/path\" or \"[IPv6 address]:/path\"");
        if (r < 0)
                return json_value_refuse(error, "server",
                                         "must be a host's name or address, and \"share\" a path of its");
        request->source = request->nfs.source;
        for (size_t i = 0; i < request->options.fs_count; i++)
                for (size_t j = 0; j < sizeof unmeant / sizeof unmeant[0]; j++)
                        if (text_starts(request->options.fs_options[i], unmeant[j]) &&
                            (j == 0 || request->options.fs_options[i][2] == '\0'))
                                return json_value_refuse(error, "options",
                                                         j == 0 ? "\"mounthost\" is a name: give \"mountaddr\""
                                                                : "\"bg\": nothing goes on in the background here");
        return 0;
}

/* What can be said only once every key is known. Also fills in what follows from them. */
int request_rules_apply(struct request *request, struct error *error)
{
        int r = request_keys_check(request, error);

        if (r < 0)
                return r;
        if (!request->has_container) /* required of all but a side */
                return json_value_refuse(error, "to", "has no \"container\"");
        switch (request->kind) {
        case REQUEST_MOUNT_BIND:
        case REQUEST_MOUNT_CONTAINER:
                if (request->options.fs_count > 0)
                        return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                            "options: \"%.*s\" is an option of a filesystem, and a bind mounts none",
                                            (int)strcspn(request->options.fs_options[0], "="),
                                            request->options.fs_options[0]);
                break;
        case REQUEST_MOUNT_BLOCK:
                r = check_block(request, error);
                break;
        case REQUEST_MOUNT_NFS:
                r = check_nfs(request, error);
                break;
        case REQUEST_MOUNT_TMPFS:
                request->source = "tmpfs";
                r = check_tmpfs(request, error);
                break;
        case REQUEST_MOUNT_OVERLAY:
                request->source = "overlay";
                r = check_overlay(request, error);
                break;
        default:
                break;
        }
        if (r == 0 && request->options.recursive &&
            (request->kind & (REQUEST_MOUNT_TMPFS | REQUEST_MOUNT_OVERLAY | REQUEST_MOUNT_NFS)) != 0)
                return json_value_refuse(error, "options", "\"rbind\" is for mount-bind");
        if (r == 0 && request->read_only)
                r = mount_options_add(&request->options, "ro", error);
        request->read_only = request->options.read_only;
        request->recursive = request->recursive || request->options.recursive;
        if (request->raw)
                request->options.attr_clear |= MOUNT_ATTR_NODEV;
        mount_options_default(&request->options);
        return r;
}
