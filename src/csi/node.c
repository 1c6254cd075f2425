/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - the Node service: its table, and what it says of itself. */
#include "node.h"

#include <string.h>

#include "awaited.h"
#include "base/text.h"
#include "controller.h"

#define INLINE_ID_LENGTH 68 /* "csi-" and a SHA-256 */

#define CAPABILITY(name) CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__##name

/*
 * Without VOLUME_MOUNT_GROUP kubelet itself gives a pod's group the files (fsGroupPolicy File), as for FlexVolume; not
 * all kinds of volumes can be mounted with a group.
 */
static const Csi__V1__NodeServiceCapability__RPC__Type capabilities[] = {
        CAPABILITY(STAGE_UNSTAGE_VOLUME), CAPABILITY(GET_VOLUME_STATS),         CAPABILITY(EXPAND_VOLUME),
        CAPABILITY(VOLUME_CONDITION),     CAPABILITY(SINGLE_NODE_MULTI_WRITER),
};
#define CAPABILITY_COUNT (sizeof capabilities / sizeof capabilities[0])

static void get_capabilities(struct call *call)
{
        Csi__V1__NodeGetCapabilitiesResponse response = CSI__V1__NODE_GET_CAPABILITIES_RESPONSE__INIT;
        Csi__V1__NodeServiceCapability__RPC rpcs[CAPABILITY_COUNT];
        Csi__V1__NodeServiceCapability items[CAPABILITY_COUNT];
        Csi__V1__NodeServiceCapability *list[CAPABILITY_COUNT];

        for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
                csi__v1__node_service_capability__rpc__init(&rpcs[i]);
                rpcs[i].type = capabilities[i];
                csi__v1__node_service_capability__init(&items[i]);
                items[i].type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
                items[i].rpc = &rpcs[i];
                list[i] = &items[i];
        }
        response.n_capabilities = CAPABILITY_COUNT;
        response.capabilities = list;
        call_answer(call, &response.base);
}

static void get_info(struct call *call)
{
        Csi__V1__NodeGetInfoResponse response = CSI__V1__NODE_GET_INFO_RESPONSE__INIT;

        response.node_id = csi_text(call, call_options(call)->node);
        response.accessible_topology = controller_topology(call);
        call_answer(call, &response.base);
}

/* The id is the first field of each request of the service that is about a volume. */
static const char *volume_of(const ProtobufCMessage *request)
{
        const char *id;

        (void)memcpy(&id, (const char *)request + request->descriptor->fields[0].offset, sizeof id);
        return id;
}

/* A server may not answer. */
static bool mounts_server(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        const Csi__V1__NodePublishVolumeRequest *publish = (const void *)request;
        const struct node_use use = { .context_count = publish->n_volume_context,
                                      .context = (const void *const *)publish->volume_context };

        bool waits = node_is_nfs(&use);

        if (waits)
                *ret_awaited = node_awaited(&use);
        else
                waits = awaited_id(publish->volume_id, ret_awaited);
        /* for the requests about it, which have no context */
        if (waits && ret_awaited->number == 0)
                awaited_forget(publish->target_path);
        else
                awaited_note(publish->target_path, *ret_awaited);
        return waits;
}

static bool asks_server(const char *path, const char *id, struct awaited *ret_awaited)
{
        return awaited_id(id, ret_awaited) || awaited_mount(path, ret_awaited);
}

static bool measures_server(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        const Csi__V1__NodeGetVolumeStatsRequest *stats = (const void *)request;

        return asks_server(stats->volume_path, stats->volume_id, ret_awaited);
}

/* An inline volume, by the id that kubelet gives it (makeVolumeHandle() in pkg/volume/csi), may be overwritten at its end. */
static bool may_be_erased(const char *id)
{
        return text_starts(id, "csi-") && strlen(id) == INLINE_ID_LENGTH;
}

static bool unmounts_server(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        const Csi__V1__NodeUnpublishVolumeRequest *unpublish = (const void *)request;

        return asks_server(unpublish->target_path, unpublish->volume_id, ret_awaited) ||
               may_be_erased(unpublish->volume_id);
}

#define ROW(name, lower, begin_function, alone_function, slow_function)                                                \
        {                                                                                                              \
                .path = "/csi.v1.Node/" #name, .request = &csi__v1__##lower##_request__descriptor,                     \
                .response = &csi__v1__##lower##_response__descriptor, .begin = (begin_function),                       \
                .alone = (alone_function), .slow = (slow_function)                                                     \
        }

const struct rpc node_rpcs[] = {
        ROW(NodeGetInfo, node_get_info, get_info, NULL, NULL),
        ROW(NodeGetCapabilities, node_get_capabilities, get_capabilities, NULL, NULL),
        ROW(NodeStageVolume, node_stage_volume, node_stage, volume_of, NULL),
        ROW(NodeUnstageVolume, node_unstage_volume, node_unstage, volume_of, NULL),
        ROW(NodePublishVolume, node_publish_volume, node_publish, volume_of, mounts_server),
        ROW(NodeUnpublishVolume, node_unpublish_volume, node_unpublish, volume_of, unmounts_server),
        ROW(NodeExpandVolume, node_expand_volume, node_expand, volume_of, NULL),
        /* it changes nothing, and may wait for a server while the volume is unmounted */
        ROW(NodeGetVolumeStats, node_get_volume_stats, node_get_stats, NULL, measures_server),
        {},
};
