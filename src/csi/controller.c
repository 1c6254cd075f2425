/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - the rows of the Controller service. Volumes are nobody's to attach: there is no ControllerPublishVolume. */
#include "controller.h"

#include <string.h>

#include "awaited.h"
#include "capability.h"

#define CAPABILITY(word) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##word

static const Csi__V1__ControllerServiceCapability__RPC__Type capabilities[] = {
        CAPABILITY(CREATE_DELETE_VOLUME), CAPABILITY(LIST_VOLUMES),
        CAPABILITY(GET_CAPACITY),         CAPABILITY(CREATE_DELETE_SNAPSHOT),
        CAPABILITY(LIST_SNAPSHOTS),       CAPABILITY(CLONE_VOLUME),
        CAPABILITY(EXPAND_VOLUME),        CAPABILITY(VOLUME_CONDITION),
        CAPABILITY(GET_VOLUME),           CAPABILITY(SINGLE_NODE_MULTI_WRITER),
        CAPABILITY(MODIFY_VOLUME),        CAPABILITY(GET_SNAPSHOT),
};
#define CAPABILITIES (sizeof capabilities / sizeof capabilities[0])

static void get_capabilities(struct call *call)
{
        Csi__V1__ControllerGetCapabilitiesResponse response = CSI__V1__CONTROLLER_GET_CAPABILITIES_RESPONSE__INIT;
        Csi__V1__ControllerServiceCapability *list[CAPABILITIES];

        for (size_t i = 0; i < CAPABILITIES; i++) {
                Csi__V1__ControllerServiceCapability__RPC *rpc = call_memory(call, sizeof *rpc);

                csi__v1__controller_service_capability__rpc__init(rpc);
                rpc->type = capabilities[i];
                list[i] = call_memory(call, sizeof *list[i]);
                csi__v1__controller_service_capability__init(list[i]);
                list[i]->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
                list[i]->rpc = rpc;
        }
        response.n_capabilities = CAPABILITIES;
        response.capabilities = list;
        call_answer(call, &response.base);
}

/* ---- what is one at a time: a volume by its id, one that is made by its name, which will be its id */

#define ALONE(function, type, field)                                                                                   \
        static const char *function(const ProtobufCMessage *request)                                                   \
        {                                                                                                              \
                return ((const Csi__V1__##type *)request)->field;                                                      \
        }
ALONE(create_alone, CreateVolumeRequest, name)
ALONE(delete_alone, DeleteVolumeRequest, volume_id)
ALONE(expand_alone, ControllerExpandVolumeRequest, volume_id)
ALONE(modify_alone, ControllerModifyVolumeRequest, volume_id)
ALONE(take_alone, CreateSnapshotRequest, name)
ALONE(forget_alone, DeleteSnapshotRequest, snapshot_id)

/* ---- what may take hours: overwriting, copying, and asking a server or a pool that does not answer */

static bool always(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        (void)request;
        (void)ret_awaited;
        return true;
}

static bool delete_lasts(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        (void)awaited_id(delete_alone(request), ret_awaited);
        return true;
}

/* Which pools are on a server, only their files say; "default" needs none. */
static bool create_lasts(const ProtobufCMessage *request, struct awaited *ret_awaited)
{
        const Csi__V1__CreateVolumeRequest *create = (const Csi__V1__CreateVolumeRequest *)request;
        const char *server = controller_parameter(CSI_MAP(create, parameters), "server", /* any_case= */ true);
        const char *pool = controller_parameter(CSI_MAP(create, parameters), "pool", /* any_case= */ false);
        const char *profile = controller_parameter(CSI_MAP(create, parameters), "profile", /* any_case= */ false);

        if (server != NULL)
                *ret_awaited = awaited_server(server);
        else if (pool != NULL)
                *ret_awaited = awaited_pool(pool);
        else
                *ret_awaited = awaited_profile(profile);
        return create->volume_content_source != NULL ||
               csi_capabilities_need_share(create->n_volume_capabilities, create->volume_capabilities) ||
               server != NULL || (pool != NULL && strcmp(pool, "default") != 0) || profile != NULL;
}

#define ROW(method, word, function, same, may_last)                                                                    \
        {                                                                                                              \
                .path = "/csi.v1.Controller/" method, .request = &csi__v1__##word##_request__descriptor,               \
                .response = &csi__v1__##word##_response__descriptor, .begin = (function), .alone = (same),             \
                .slow = (may_last)                                                                                     \
        }

const struct rpc controller_rpcs[] = {
        ROW("CreateVolume", create_volume, controller_create_volume, create_alone, create_lasts),
        ROW("DeleteVolume", delete_volume, controller_delete_volume, delete_alone, delete_lasts),
        ROW("ValidateVolumeCapabilities", validate_volume_capabilities, controller_validate, NULL, NULL),
        ROW("ListVolumes", list_volumes, controller_list_volumes, NULL, NULL),
        ROW("ControllerGetVolume", controller_get_volume, controller_get_volume, NULL, NULL),
        ROW("GetCapacity", get_capacity, controller_get_capacity, NULL, always),
        ROW("ControllerGetCapabilities", controller_get_capabilities, get_capabilities, NULL, NULL),
        ROW("ControllerExpandVolume", controller_expand_volume, controller_expand_volume, expand_alone, NULL),
        ROW("ControllerModifyVolume", controller_modify_volume, controller_modify_volume, modify_alone, NULL),
        ROW("CreateSnapshot", create_snapshot, controller_create_snapshot, take_alone, always),
        ROW("DeleteSnapshot", delete_snapshot, controller_delete_snapshot, forget_alone, always),
        ROW("ListSnapshots", list_snapshots, controller_list_snapshots, NULL, NULL),
        ROW("GetSnapshot", get_snapshot, controller_get_snapshot, NULL, NULL),
        {},
};
