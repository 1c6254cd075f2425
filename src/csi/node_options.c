/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "awaited.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/text.h"
#include "capability.h"
#include "controller.h"
#include "node.h"
#include "state/access.h"
#include "type.h"

#define PROBLEM_SIZE (NEAREST_HINT_MAX + 128)
#define ARGUMENT_MAX ((size_t)64 * 1024) /* the kernel takes 128 KiB; longer ones are read from standard input */

/*
 * What a volume's context may say to a verb; the verb refuses what its kind of volume does not have. The rest of it is the
 * provisioner's, or other drivers'.
 */
static const char *const known_keys[] = { "type",        "pool",           "profile",    "size",        "image",
                                          "preallocate", "usage",          "source",     "device",      "path",
                                          "recursive",   "mode",           "inodes",     "volumegroup", "volumeID",
                                          "eraseAfter",  "kataContainers", "idMappable", "cache",       NULL };

/* Those of a volume on a server, in any case; csi-driver-nfs has the rest of them, too, and they say nothing here. */
static const char *const server_keys[] = { "server",           "share",    "subDir", "mountOptions",
                                           "mountPermissions", "onDelete", NULL };

/* kubelet's information about the pod, as it calls it for FlexVolume. */
#define NAMESPACE_KEY "pod.namespace"
#define CSI_KEY "kubernetes.io/csi"
static const char *const pod_keys[] = { "pod.name", NAMESPACE_KEY, "pod.uid", "serviceAccount.name", NULL };

static const char *find(const struct node_use *use, const char *key)
{
        return csi_map_find(use->context_count, use->context, key, /* any_case= */ false);
}

/* Keys of csi-driver-nfs may have any case. */
static const char *find_of_nfs(const struct node_use *use, const char *key)
{
        const char *value = csi_map_find(use->context_count, use->context, key, /* any_case= */ true);

        return value != NULL && value[0] != '\0' ? value : NULL;
}

bool node_is_inline(const struct node_use *use)
{
        return text_same(find(use, CSI_OF_KUBERNETES "ephemeral"), "true");
}

bool node_is_nfs(const struct node_use *use)
{
        const char *type = find(use, "type");

        return type != NULL ? csi_type_find(type)->server
                            : find_of_nfs(use, "server") != NULL && find_of_nfs(use, "share") != NULL;
}

struct awaited node_awaited(const struct node_use *use)
{
        struct awaited awaited = awaited_server(find_of_nfs(use, "server"));
        const char *source = find(use, "source");

        if (awaited.number == 0 && (source == NULL || !awaited_source(source, &awaited)))
                awaited = awaited_server(find(use, "pool")); /* which is on a server: its name stands for that */
        if (node_is_inline(use))
                awaited.author = hash_text_or_zero(find(use, CSI_OF_KUBERNETES NAMESPACE_KEY));
        return awaited;
}

bool node_is_shared(const struct node_use *use)
{
        return node_is_nfs(use) || csi_type_find(find(use, "type"))->shared;
}

static void set(json_t *options, const char *key, const char *value)
{
        (void)json_object_set_new(options, key, json_string(value));
}

/* The directory of a share that is the volume: "server" and "share" with "subDir", as csi-driver-nfs puts them together. */
static const char *add_share(const struct node_use *use, json_t *options)
{
        const char *server = find_of_nfs(use, "server");
        const char *share = find_of_nfs(use, "share");
        const char *below = find_of_nfs(use, "subDir");
        char path[4096];
        size_t length;

        if (server != NULL)
                set(options, "server", server);
        if (share == NULL)
                return NULL; /* mount says what is missing */
        if (below != NULL && text_climbs(below))
                return "subDir must not have \"..\"";
        if (below != NULL && strstr(below, "${") != NULL)
                return "subDir must name a directory, without ${...}";
        for (length = strlen(share); below != NULL && length > 0 && share[length - 1] == '/';)
                length--;
        while (below != NULL && *below == '/')
                below++;
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)length, share, below != NULL ? "/" : "",
                     below != NULL ? below : "") >= (int)sizeof path)
                return "share and subDir are too long";
        set(options, "share", path);
        return NULL;
}

/*
 * The namespace counts as the volume's for inline volumes alone, of which two could meet in a name. An id is one volume's
 * in the whole cluster, whose PersistentVolume may be bound in another namespace when its claim is gone: for such a one
 * CSI_KEY has the namespace; "?" where a pod gets it and kubelet does not say of which it is, as for a block volume; "-"
 * where none does (volume/same.h).
 */
static void add_pod(const struct node_use *use, json_t *options)
{
        for (size_t i = 0; pod_keys[i] != NULL; i++) {
                char from[64];
                char to[64];
                const char *value;

                (void)snprintf(from, sizeof from, CSI_OF_KUBERNETES "%s", pod_keys[i]);
                (void)snprintf(to, sizeof to, "kubernetes.io/%s", pod_keys[i]);
                value = find(use, from);
                if (strcmp(pod_keys[i], NAMESPACE_KEY) == 0 && !node_is_inline(use))
                        set(options, CSI_KEY, value != NULL && value[0] != '\0' ? value : use->publishes ? "?" : "-");
                else if (value != NULL)
                        set(options, to, value);
        }
}

/*
 * As csi-driver-nfs: an inline volume has no mount flags, but an attribute. What the policy does not open, mount refuses.
 * Returns what is wrong, or NULL.
 */
static const char *add_flags(const struct node_use *use, json_t *options)
{
        const char *of_context = node_is_nfs(use) ? find_of_nfs(use, "mountOptions") : NULL;
        char *flags = csi_capability_flags(use->capability);
        const char *comma = flags != NULL && flags[0] != '\0' && of_context != NULL ? "," : "";
        int r = flags == NULL ? -1 : 0;

        if (r == 0 && (flags[0] != '\0' || of_context != NULL))
                r = json_object_set_new(options, "mountOptions",
                                        json_sprintf("%s%s%s", flags, comma, of_context != NULL ? of_context : ""));
        free(flags);
        return r < 0 ? "the mount flags are no UTF-8 text, or there is no memory" : NULL;
}

static const char *add_capability(const struct node_use *use, json_t *options)
{
        set(options, "accessMode", csi_capability_mode(use->capability));
        set(options, "readOnly", use->read_only ? "true" : "false");
        if (csi_capability_is_block(use->capability)) {
                set(options, "targetType", access_target_type(/* block= */ true));
                return NULL;
        }
        set(options, "fsType", csi_capability_fs_type(use->capability));
        return add_flags(use, options);
}

static bool is_of_server(const char *key)
{
        for (size_t i = 0; server_keys[i] != NULL; i++)
                if (strcasecmp(key, server_keys[i]) == 0)
                        return true;
        return false;
}

static bool is_known(const char *key)
{
        return text_starts(key, CSI_OF_KUBERNETES) || text_among(key, known_keys) || is_of_server(key);
}

static const char *key_of(const struct node_use *use, size_t index)
{
        const char *ignored;
        const char *key;

        csi_map_entry(use->context[index], &key, &ignored);
        return key;
}

static void put_unknown(const char *key, char ret_problem[PROBLEM_SIZE])
{
        struct nearest nearest = { .asked = key };
        char hint[NEAREST_HINT_MAX];

        for (size_t i = 0; known_keys[i] != NULL; i++)
                nearest_offer(&nearest, known_keys[i]);
        for (size_t i = 0; server_keys[i] != NULL; i++)
                nearest_offer(&nearest, server_keys[i]);
        nearest_hint(&nearest, hint);
        (void)snprintf(ret_problem, PROBLEM_SIZE, "no volume has an attribute \"%.64s\"%s", key, hint);
}

/*
 * A person wrote the attributes of an inline volume: one that says nothing is a mistake. Those of a PersistentVolume may be
 * a provisioner's. Returns what is wrong, as a text that is the caller's until the next; or NULL.
 */
static const char *check_attributes(const struct node_use *use)
{
        static char problem[PROBLEM_SIZE];
        const size_t count = node_is_inline(use) ? use->context_count : 0;

        for (size_t i = 0; i < count; i++)
                if (!is_known(key_of(use, i))) {
                        put_unknown(key_of(use, i), problem);
                        return problem;
                }
        for (size_t i = 0; i < count && !node_is_nfs(use); i++)
                if (is_of_server(key_of(use, i))) {
                        (void)snprintf(problem, sizeof problem,
                                       "attribute \"%.64s\" is for volumes of type " CSI_TYPE_SERVER
                                       ", with \"server\" and \"share\"",
                                       key_of(use, i));
                        return problem;
                }
        return NULL;
}

json_t *node_options(const struct node_use *use, const char **ret_problem)
{
        json_t *options = json_object();
        const char *problem = check_attributes(use);
        const char *of_share;
        const char *of_flags;

        for (size_t i = 0; known_keys[i] != NULL; i++)
                if (find(use, known_keys[i]) != NULL)
                        set(options, known_keys[i], find(use, known_keys[i]));
        set(options, "kubernetes.io/pvOrVolumeName", use->name);
        if (node_is_nfs(use)) {
                set(options, "type", CSI_TYPE_SERVER);
                of_share = add_share(use, options);
                problem = problem != NULL ? problem : of_share;
        }
        add_pod(use, options);
        of_flags = add_capability(use, options);
        problem = problem != NULL ? problem : of_flags;
        if (node_is_inline(use) && !csi_type_find(json_member_text(options, "type"))->plain)
                set(options, "ephemeral", "true");
        if (problem != NULL || options == NULL) {
                json_decref(options);
                *ret_problem = problem != NULL ? problem : "there is no memory";
                return NULL;
        }
        return options;
}

void node_run_options(struct call *call, const char *verb, const char *const arguments[], json_t *options,
                      call_next *next)
{
        const char *all[5] = {};
        char *text = json_text_make(options);
        size_t count = 0;
        bool aside;

        while (arguments[count] != NULL) {
                all[count] = arguments[count];
                count++;
        }
        aside = text != NULL && (json_object_get(options, "mountOptions") != NULL || strlen(text) > ARGUMENT_MAX);
        all[count] = aside ? "-" : text;
        json_decref(options);
        if (text == NULL)
                call_fail(call, GRPC_RESOURCE_EXHAUSTED, "there is no memory");
        else
                call_run(call, verb, all, aside ? text : NULL, next);
        free(text);
}
