/* SPDX-License-Identifier: Apache-2.0 */
#include "controller.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "names.h"
#include "share.h"
#include "state/access.h"
#include "type.h"

#define PAGE_MAX 4096                        /* entries */
#define PAGE_BYTES ((size_t)3 * 1024 * 1024) /* clients take messages of 4 MiB; one entry is far below the rest */
#define ENTRY_FRAME 8                        /* its field's number and length, at most */

int64_t reply_bytes(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

static bool is_on_share(const json_t *volume, const struct csi_share *wanted)
{
        struct csi_share share;

        if (!csi_share_of(volume, &share)) /* its pool is missing at the moment: what is asked of the tools fails */
                return controller_is_shared(volume) && strcmp(json_member_text(volume, "id"), wanted->directory) == 0;
        return strcmp(share.server, wanted->server) == 0 && strcmp(share.share, wanted->share) == 0 &&
               strcmp(share.directory, wanted->directory) == 0;
}

const json_t *controller_find(const struct outcome *outcome, const char *id, bool snapshot)
{
        char name[CSI_VOLUME_NAME_SIZE];
        struct csi_share share;
        bool shared = csi_share_read(id, &share) && share.name[0] != '\0'; /* else the whole id is the name */
        const json_t *volume;
        size_t i;

        csi_id_name(id, name);
        json_array_foreach (json_object_get(outcome->reply, "volumes"), i, volume)
                if (strcmp(json_member_text(volume, "name"), name) == 0)
                        return (json_member_text(volume, "snapshotOf")[0] != '\0') == snapshot &&
                                               (!shared || is_on_share(volume, &share))
                                       ? volume
                                       : NULL;
        return NULL;
}

bool controller_is_shared(const json_t *object)
{
        return csi_type_find(json_member_text(object, "type"))->shared;
}

/* ---- where it is */

static char *topology_key(struct call *call)
{
        const char *name = call_options(call)->name;
        size_t size = strlen(name) + sizeof "topology./node";
        char *key = call_memory(call, size);

        (void)snprintf(key, size, "topology.%s/node", name);
        return key;
}

Csi__V1__Topology *controller_topology(struct call *call)
{
        Csi__V1__Topology__SegmentsEntry *segment = call_memory(call, sizeof *segment);
        Csi__V1__Topology *topology = call_memory(call, sizeof *topology);

        csi__v1__topology__segments_entry__init(segment);
        segment->key = topology_key(call);
        segment->value = csi_text(call, call_options(call)->node);
        csi__v1__topology__init(topology);
        topology->n_segments = 1;
        topology->segments = call_memory(call, sizeof(void *));
        topology->segments[0] = segment;
        return topology;
}

static void put_topology(struct call *call, Csi__V1__Volume *volume)
{
        volume->n_accessible_topology = 1;
        volume->accessible_topology = call_memory(call, sizeof(void *));
        volume->accessible_topology[0] = controller_topology(call);
}

bool controller_topology_here(const struct call *call, const Csi__V1__Topology *topology)
{
        const struct csi_options *options = call_options(call);

        for (size_t i = 0; i < topology->n_segments; i++) {
                const char *key = topology->segments[i]->key;
                size_t length = strlen(options->name);

                if (strncmp(key, "topology.", 9) == 0 && strncmp(key + 9, options->name, length) == 0 &&
                    strcmp(key + 9 + length, "/node") == 0)
                        return strcmp(topology->segments[i]->value, options->node) == 0;
        }
        return false;
}

/* ---- messages */

static void add_context(struct call *call, Csi__V1__Volume *volume, const char *key, const char *value)
{
        Csi__V1__Volume__VolumeContextEntry *entry = call_memory(call, sizeof *entry);

        csi__v1__volume__volume_context_entry__init(entry);
        entry->key = csi_text(call, key);
        entry->value = csi_text(call, value);
        volume->volume_context[volume->n_volume_context++] = entry;
}

/* A list of mount flags with one more. */
static const char *with_flag(struct call *call, const char *flags, const char *flag)
{
        size_t size = strlen(flags) + strlen(flag) + 2;
        char *both = call_memory(call, size);

        (void)snprintf(both, size, "%s%s%s", flags, flags[0] != '\0' ? "," : "", flag);
        return both;
}

/* What the pool and the profile say of its mounts: other nodes have no record of it. */
static const char *flags_of(struct call *call, const json_t *reply)
{
        const char *flags = json_member_text(reply, "mountOptions");
        const json_t *flag;
        size_t i;

        json_array_foreach (json_object_get(reply, "mountFlags"), i, flag)
                flags = with_flag(call, flags, json_string_value(flag));
        return access_reads_only(json_member_text(reply, "accessMode")) ? with_flag(call, flags, "ro") : flags;
}

/*
 * The path of a directory on a share is "SERVER:/SHARE/DIRECTORY", and its id the directory: with these any node can
 * mount it.
 */
static void put_share(struct call *call, const json_t *reply, Csi__V1__Volume *volume)
{
        const char *path = json_member_text(reply, "path");
        const char *colon = strstr(path, ":/");
        size_t directory = strlen(json_member_text(reply, "id"));
        const char *mode = json_member_text(json_object_get(reply, "parameters"), "mountPermissions");
        const char *flags = flags_of(call, reply);
        char *share;

        if (colon == NULL || strlen(colon) < directory + 2)
                return;
        share = csi_text(call, path);
        share[colon - path] = '\0';
        add_context(call, volume, "server", share);
        share += colon - path + 1;
        share[strlen(share) - directory] = '\0';
        if (strlen(share) > 1)
                share[strlen(share) - 1] = '\0'; /* the slash between them */
        add_context(call, volume, "share", share);
        add_context(call, volume, "subDir", json_member_text(reply, "id"));
        if (mode[0] != '\0')
                add_context(call, volume, "mountPermissions", mode);
        if (flags[0] != '\0')
                add_context(call, volume, "mountOptions", flags);
}

static char *id_of(struct call *call, const json_t *reply)
{
        struct csi_share share;
        char id[CSI_SHARE_ID_SIZE];

        if (!csi_share_of(reply, &share))
                return csi_text(call, json_member_text(reply, "name"));
        csi_share_id(&share, id);
        return csi_text(call, id);
}

/* What a node is told of the volume's own parameters. */
static void put_parameters(struct call *call, const json_t *reply, Csi__V1__Volume *volume)
{
        static const char *const names[] = { "idMappable", "cache" };

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const char *value = json_member_text(json_object_get(reply, "parameters"), names[i]);

                if (value[0] != '\0')
                        add_context(call, volume, names[i], value);
        }
}

Csi__V1__Volume *controller_volume(struct call *call, const json_t *reply)
{
        Csi__V1__Volume *volume = call_memory(call, sizeof *volume);

        csi__v1__volume__init(volume);
        volume->volume_id = id_of(call, reply);
        volume->capacity_bytes = reply_bytes(reply, "size");
        volume->volume_context = call_memory(call, 9 * sizeof(void *));
        add_context(call, volume, "type", json_member_text(reply, "type"));
        put_parameters(call, reply, volume);
        if (controller_is_shared(reply))
                put_share(call, reply, volume);
        if (!controller_is_shared(reply))
                put_topology(call, volume);
        return volume;
}

void controller_put_flags(struct call *call, const char *flags, Csi__V1__Volume *volume)
{
        if (flags != NULL && flags[0] != '\0')
                add_context(call, volume, "mountOptions", flags);
}

Csi__V1__VolumeCondition *controller_condition(struct call *call, const json_t *volume)
{
        Csi__V1__VolumeCondition *condition = call_memory(call, sizeof *condition);
        const char *health = json_member_text(volume, "health");
        const char *problem = json_member_text(volume, "problem");

        csi__v1__volume_condition__init(condition);
        condition->abnormal = strcmp(health, "ok") != 0;
        condition->message = csi_text(call, problem[0] != '\0' ? problem : health);
        return condition;
}

Csi__V1__Snapshot *controller_snapshot(struct call *call, const json_t *reply)
{
        Csi__V1__Snapshot *snapshot = call_memory(call, sizeof *snapshot);
        Csi__V1__Timestamp *taken = call_memory(call, sizeof *taken);

        csi__v1__timestamp__init(taken);
        taken->seconds = reply_bytes(reply, "taken");
        csi__v1__snapshot__init(snapshot);
        snapshot->snapshot_id = csi_text(call, json_member_text(reply, "name"));
        snapshot->source_volume_id = csi_text(call, json_member_text(reply, "snapshotOf"));
        /* the provisioner refuses claims of less, the size that the volume's own claim asked for among them */
        snapshot->size_bytes = reply_bytes(reply, json_object_get(reply, "askedSize") != NULL ? "askedSize" : "size");
        snapshot->creation_time = taken;
        snapshot->ready_to_use = strcmp(json_member_text(reply, "state"), "created") == 0;
        return snapshot;
}

/* ---- pages */

struct page {
        const char *after; /* names up to this one were listed before; "": none */
        size_t maximum;    /* how many are listed, if they fit into a message */
};

/* What a request says; false: it is answered, since there is no such page. */
static bool read_page(struct call *call, int32_t max_entries, const char *token, struct page *ret_page)
{
        if (max_entries < 0) {
                call_fail(call, GRPC_INVALID_ARGUMENT, "the number of entries is negative");
                return false;
        }
        ret_page->after = token[0] != '\0' ? csi_token_name(token) : "";
        ret_page->maximum = max_entries != 0 && max_entries < PAGE_MAX ? (size_t)max_entries : PAGE_MAX;
        if (ret_page->after == NULL)
                call_fail(call, GRPC_ABORTED, "unknown starting_token: list again without one");
        return ret_page->after != NULL;
}

void controller_list(struct call *call, int32_t max_entries, const char *token, call_next *next)
{
        struct page page;

        if (read_page(call, max_entries, token, &page))
                controller_run(call, "volume-list", json_object(), next);
}

bool controller_fill(struct call *call, const struct outcome *outcome, int32_t max_entries, const char *token,
                     controller_entry *entry, void **ret_entries, size_t *ret_count, char **ret_next_token)
{
        const json_t *volumes = json_object_get(outcome->reply, "volumes");
        struct page page;
        const json_t *volume;
        const char *last = "";
        size_t bytes = 0;
        size_t count = 0;
        void **entries;
        size_t i;

        if (controller_failed(call, outcome) || !read_page(call, max_entries, token, &page))
                return false;
        *ret_next_token = call_memory(call, CSI_TOKEN_SIZE);
        entries = call_memory(call, (json_array_size(volumes) + 1) * sizeof *entries);
        json_array_foreach (volumes, i, volume) {
                const char *name = json_member_text(volume, "name");
                ProtobufCMessage *made;

                if (strcmp(name, page.after) <= 0 || (made = entry(call, call_request(call), volume)) == NULL)
                        continue;
                bytes += protobuf_c_message_get_packed_size(made) + ENTRY_FRAME;
                if (count == page.maximum || (count > 0 && bytes > PAGE_BYTES)) {
                        csi_token(last, *ret_next_token);
                        break;
                }
                entries[count++] = made;
                last = name;
        }
        *ret_entries = entries;
        *ret_count = count;
        return true;
}
