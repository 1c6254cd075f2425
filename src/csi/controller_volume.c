/* SPDX-License-Identifier: Apache-2.0 */
/* controller_volume.c - volumes that are there: deleted, listed, grown, changed. */
#include "controller.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "capability.h"
#include "names.h"
#include "share.h"
#include "state/access.h"

/* A request with the name of an id. */
static json_t *named_request(const char *id)
{
        char name[CSI_VOLUME_NAME_SIZE];

        csi_id_name(id, name);
        return json_pack("{s:s}", "name", name);
}

static bool lacks_id(struct call *call, const char *id)
{
        if (id[0] == '\0')
                call_fail(call, GRPC_INVALID_ARGUMENT, "the volume id is missing");
        return id[0] == '\0';
}

/* The volume of a reply of volume-list; NULL: the call is answered. */
static const json_t *found(struct call *call, const struct outcome *outcome, const char *id)
{
        const json_t *volume;

        if (controller_failed(call, outcome))
                return NULL;
        volume = controller_find(outcome, id, /* snapshot= */ false);
        if (volume == NULL)
                call_fail(call, GRPC_NOT_FOUND, "there is no volume \"%.128s\" on this node", id);
        return volume;
}

/* ---- DeleteVolume */

static void deleted(struct call *call, const struct outcome *outcome)
{
        Csi__V1__DeleteVolumeResponse response = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;

        if (!controller_failed(call, outcome))
                call_answer(call, &response.base);
}

static const char *id_to_delete(const struct call *call)
{
        return ((const Csi__V1__DeleteVolumeRequest *)call_request(call))->volume_id;
}

static void delete_named(struct call *call)
{
        json_t *wanted = named_request(id_to_delete(call));

        (void)json_object_set_new(wanted, "only", json_string("volume")); /* a snapshot of that name stays */
        controller_run(call, "volume-delete", wanted, deleted);
}

/*
 * Nobody waits any more, perhaps as another node has deleted the volume: the directory may be a new volume's by now. Who
 * still wants it deleted calls again.
 */
static void give_up_adopted(struct call *call)
{
        json_t *wanted = named_request(id_to_delete(call));

        (void)json_object_set_new(wanted, "only", json_string("volume"));
        (void)json_object_set_new(wanted, "reclaimPolicy", json_string("retain"));
        controller_run(call, "volume-delete", wanted, deleted);
}

static void share_adopted(struct call *call, const struct outcome *outcome)
{
        Csi__V1__DeleteVolumeResponse response = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;

        if (outcome->status > 0 && outcome->error == ENOENT) /* the directory is not there */
                call_answer(call, &response.base);
        else if (outcome->status == 0 && !call_is_awaited(call))
                give_up_adopted(call);
        else if (!controller_failed(call, outcome))
                delete_named(call);
}

/*
 * Whether the only volume of a reply has the directory of an id, in a pool whose file says another server or share by
 * now: either is the one that is meant.
 */
static bool is_moved(const struct outcome *outcome, const struct csi_share *share)
{
        const json_t *volume = json_array_get(json_object_get(outcome->reply, "volumes"), 0);

        return json_object_get(json_object_get(volume, "parameters"), "server") == NULL &&
               controller_is_shared(volume) && strcmp(json_member_text(volume, "id"), share->directory) == 0;
}

/* A volume on a share that another node made, or csi-driver-nfs: it becomes this node's, to be deleted. */
static void share_listed(struct call *call, const struct outcome *outcome)
{
        Csi__V1__DeleteVolumeResponse response = CSI__V1__DELETE_VOLUME_RESPONSE__INIT;
        struct csi_share share;
        json_t *parameters;
        json_t *wanted;

        if (controller_failed(call, outcome))
                return;
        (void)csi_share_read(id_to_delete(call), &share); /* it is one */
        if (controller_find(outcome, id_to_delete(call), /* snapshot= */ false) != NULL) {
                delete_named(call);
                return;
        }
        if (is_moved(outcome, &share)) {
                call_fail(
                        call, GRPC_FAILED_PRECONDITION,
                        "the pool of volume \"%.128s\" is on another server or share than its id says; have the pool's "
                        "file say that again, or volume-delete give it up (\"reclaimPolicy\": \"retain\"): then it "
                        "is deleted by its id",
                        id_to_delete(call));
                return;
        }
        if (json_array_size(json_object_get(outcome->reply, "volumes")) > 0 || strcmp(share.on_delete, "retain") == 0) {
                call_answer(call, &response.base); /* another volume has its name: it is none of ours; or it is kept */
                return;
        }
        wanted = named_request(id_to_delete(call));
        parameters = json_pack("{s:s, s:s, s:s}", "server", share.server, "share", share.share, "onDelete",
                               share.on_delete[0] != '\0' ? share.on_delete : "delete");
        (void)json_object_set_new(wanted, "id", json_string(share.directory));
        (void)json_object_set_new(wanted, "reclaimPolicy", json_string("delete"));
        (void)json_object_set_new(wanted, "parameters", parameters);
        controller_run(call, "volume-create", wanted, share_adopted);
}

void controller_delete_volume(struct call *call)
{
        struct csi_share share;

        if (lacks_id(call, id_to_delete(call)))
                return;
        if (csi_share_read(id_to_delete(call), &share))
                controller_run(call, "volume-list", named_request(id_to_delete(call)), share_listed);
        else
                delete_named(call);
}

/* ---- ValidateVolumeCapabilities */

/* Why a volume cannot be used so; NULL: it can. */
static const char *mismatch(const json_t *volume, const Csi__V1__VolumeCapability *capability)
{
        bool block = access_is_block(json_member_text(volume, "targetType"));
        const char *fs_type = csi_capability_fs_type(capability);
        const char *has = json_member_text(volume, "fsType");
        const char *why = csi_capability_impossible(capability, controller_is_shared(volume));

        if (why != NULL)
                return why;
        if (csi_capability_is_block(capability) != block)
                return block ? "it is a block volume" : "it is no block volume";
        if (fs_type[0] != '\0' && has[0] != '\0' && strcmp(fs_type, has) != 0)
                return "it has another filesystem";
        return NULL;
}

static void validate_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__ValidateVolumeCapabilitiesRequest *request =
                (const Csi__V1__ValidateVolumeCapabilitiesRequest *)call_request(call);
        const json_t *volume = found(call, outcome, request->volume_id);
        Csi__V1__ValidateVolumeCapabilitiesResponse response = CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;
        Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmed =
                CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__CONFIRMED__INIT;
        const char *why = NULL;

        if (volume == NULL)
                return;
        for (size_t i = 0; i < request->n_volume_capabilities && why == NULL; i++)
                why = mismatch(volume, request->volume_capabilities[i]);
        /* Entries of all maps look alike, and these are the volume's own or were made with it. */
        confirmed.n_volume_capabilities = request->n_volume_capabilities;
        confirmed.volume_capabilities = request->volume_capabilities;
        if (why == NULL)
                response.confirmed = &confirmed;
        else
                response.message = csi_text(call, why);
        call_answer(call, &response.base);
}

void controller_validate(struct call *call)
{
        const Csi__V1__ValidateVolumeCapabilitiesRequest *request =
                (const Csi__V1__ValidateVolumeCapabilitiesRequest *)call_request(call);
        const char *why = request->n_volume_capabilities == 0 ? "the volume capabilities are missing" : NULL;

        if (lacks_id(call, request->volume_id))
                return;
        for (size_t i = 0; i < request->n_volume_capabilities && why == NULL; i++)
                why = csi_capability_incomplete(request->volume_capabilities[i]);
        if (why != NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", why);
        else
                controller_run(call, "volume-list", named_request(request->volume_id), validate_listed);
}

/* ---- ListVolumes, ControllerGetVolume */

/* What nobody was told of yet is no volume. */
static bool is_listed(const json_t *volume)
{
        return json_member_text(volume, "snapshotOf")[0] == '\0' &&
               strcmp(json_member_text(volume, "state"), "creating") != 0;
}

static ProtobufCMessage *volume_entry(struct call *call, const ProtobufCMessage *request, const json_t *volume)
{
        Csi__V1__ListVolumesResponse__Entry *entry;
        Csi__V1__ListVolumesResponse__VolumeStatus *status;

        (void)request; /* it asks for all */
        if (!is_listed(volume))
                return NULL;
        entry = call_memory(call, sizeof *entry);
        status = call_memory(call, sizeof *status);
        csi__v1__list_volumes_response__volume_status__init(status);
        status->volume_condition = controller_condition(call, volume);
        csi__v1__list_volumes_response__entry__init(entry);
        entry->volume = controller_volume(call, volume);
        entry->status = status;
        return &entry->base;
}

static void volumes_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__ListVolumesRequest *request = (const Csi__V1__ListVolumesRequest *)call_request(call);
        Csi__V1__ListVolumesResponse response = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
        void *entries;

        if (!controller_fill(call, outcome, request->max_entries, request->starting_token, volume_entry, &entries,
                             &response.n_entries, &response.next_token))
                return;
        response.entries = entries;
        call_answer(call, &response.base);
}

void controller_list_volumes(struct call *call)
{
        const Csi__V1__ListVolumesRequest *request = (const Csi__V1__ListVolumesRequest *)call_request(call);

        controller_list(call, request->max_entries, request->starting_token, volumes_listed);
}

static void volume_got(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__ControllerGetVolumeRequest *request =
                (const Csi__V1__ControllerGetVolumeRequest *)call_request(call);
        const json_t *volume = found(call, outcome, request->volume_id);
        Csi__V1__ControllerGetVolumeResponse response = CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__INIT;
        Csi__V1__ControllerGetVolumeResponse__VolumeStatus status =
                CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__VOLUME_STATUS__INIT;

        if (volume == NULL)
                return;
        status.volume_condition = controller_condition(call, volume);
        response.volume = controller_volume(call, volume);
        response.status = &status;
        call_answer(call, &response.base);
}

void controller_get_volume(struct call *call)
{
        const Csi__V1__ControllerGetVolumeRequest *request =
                (const Csi__V1__ControllerGetVolumeRequest *)call_request(call);

        if (!lacks_id(call, request->volume_id))
                controller_run(call, "volume-list", named_request(request->volume_id), volume_got);
}

/* ---- ControllerExpandVolume */

static void answer_grown(struct call *call, const json_t *volume)
{
        Csi__V1__ControllerExpandVolumeResponse response = CSI__V1__CONTROLLER_EXPAND_VOLUME_RESPONSE__INIT;

        response.capacity_bytes = reply_bytes(volume, "size");
        response.node_expansion_required = false; /* volume-expand grows the filesystem, too, mounted or not */
        call_answer(call, &response.base);
}

/*
 * The resizer takes OUT_OF_RANGE for final: then the user may ask for less. Where there is no room, it tries on. After
 * FAILED_PRECONDITION it waits until no pod has the volume, which does not help a pool or a program that is missing.
 */
static void grown(struct call *call, const struct outcome *outcome)
{
        if (outcome->error == ENOSPC || outcome->error == EDQUOT)
                call_fail(call, GRPC_OUT_OF_RANGE, "%s", outcome->message);
        else if (outcome->error == ENODEV || outcome->error == ENOPKG)
                call_fail(call, GRPC_UNAVAILABLE, "%s", outcome->message);
        else if (!controller_failed(call, outcome))
                answer_grown(call, json_object_get(outcome->reply, "volume"));
}

/* Nobody keeps to the size of a directory on a server. */
static void answer_unlimited(struct call *call, int64_t bytes)
{
        Csi__V1__ControllerExpandVolumeResponse response = CSI__V1__CONTROLLER_EXPAND_VOLUME_RESPONSE__INIT;

        response.capacity_bytes = bytes;
        call_answer(call, &response.base);
}

/*
 * One resizer works for the whole cluster, and asks the driver of its own node: a volume that this one has not may be
 * another's. There kubelet has NodeExpandVolume do all of it, and learns if there is no such volume. A volume on a
 * server is everywhere: by its id, or its filesystem. Its access mode does not tell: the resizer says ReadWriteMany of a
 * PersistentVolume that has that among others (csi-lib-utils, accessmodes), and kubelet the first, which a node can have.
 */
static bool leave_to_node(struct call *call, const Csi__V1__ControllerExpandVolumeRequest *request)
{
        int64_t bytes = request->capacity_range->required_bytes;
        Csi__V1__ControllerExpandVolumeResponse response = CSI__V1__CONTROLLER_EXPAND_VOLUME_RESPONSE__INIT;
        struct csi_share share;

        if (bytes == 0)
                return false;
        if (csi_share_read(request->volume_id, &share) || csi_capability_names_server(request->volume_capability)) {
                answer_unlimited(call, bytes);
                return true;
        }
        response.capacity_bytes = bytes;
        response.node_expansion_required = true;
        call_answer(call, &response.base);
        return true;
}

/* Where it is as large already, its filesystem may not be: the call that made the device grow may have been killed. */
static void expand_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__ControllerExpandVolumeRequest *request =
                (const Csi__V1__ControllerExpandVolumeRequest *)call_request(call);
        const Csi__V1__CapacityRange *range = request->capacity_range;
        int64_t size = range->required_bytes;
        const json_t *volume;
        json_t *wanted;

        if (outcome->status == 0 && controller_find(outcome, request->volume_id, /* snapshot= */ false) == NULL &&
            leave_to_node(call, request))
                return;
        volume = found(call, outcome, request->volume_id);
        if (volume == NULL)
                return;
        if (size < reply_bytes(volume, "size"))
                size = reply_bytes(volume, "size");
        if (range->limit_bytes != 0 && size > range->limit_bytes) {
                call_fail(call, GRPC_OUT_OF_RANGE, "the volume has %lld bytes already, and never shrinks",
                          (long long)size);
                return;
        }
        if (range->required_bytes == 0) {
                answer_grown(call, volume);
                return;
        }
        if (controller_is_shared(volume)) {
                answer_unlimited(call, size);
                return;
        }
        wanted = named_request(request->volume_id);
        (void)json_object_set_new(wanted, "size", json_integer(size));
        if (range->limit_bytes != 0)
                (void)json_object_set_new(wanted, "limit", json_integer(range->limit_bytes));
        controller_run(call, "volume-expand", wanted, grown);
}

void controller_expand_volume(struct call *call)
{
        const Csi__V1__ControllerExpandVolumeRequest *request =
                (const Csi__V1__ControllerExpandVolumeRequest *)call_request(call);

        if (lacks_id(call, request->volume_id))
                return;
        if (request->capacity_range == NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "the capacity range is missing");
        else if (csi_range_problem(request->capacity_range) != NULL)
                call_fail(call, GRPC_OUT_OF_RANGE, "%s", csi_range_problem(request->capacity_range));
        else
                controller_run(call, "volume-list", named_request(request->volume_id), expand_listed);
}

/* ---- ControllerModifyVolume */

static void modified(struct call *call, const struct outcome *outcome)
{
        Csi__V1__ControllerModifyVolumeResponse response = CSI__V1__CONTROLLER_MODIFY_VOLUME_RESPONSE__INIT;

        if (!controller_failed(call, outcome))
                call_answer(call, &response.base);
}

/* One of the parameters that may change while a volume is used. */
static bool take_change(struct call *call, const void *entry, json_t *wanted)
{
        const char *key;
        const char *value;

        csi_map_entry(entry, &key, &value);
        if (text_starts(key, CSI_OF_KUBERNETES)) /* the resizer's --extra-modify-metadata */
                return true;
        if (strcmp(key, "reclaimPolicy") == 0)
                (void)json_object_set_new(wanted, key, json_string(value));
        else if (strcmp(key, "eraseAfter") == 0 && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
                (void)json_object_set_new(wanted, key, json_boolean(value[0] == 't'));
        else if (strcmp(key, "eraseAfter") == 0) {
                call_fail(call, GRPC_INVALID_ARGUMENT, "eraseAfter must be true or false");
                return false;
        } else {
                call_fail(call, GRPC_INVALID_ARGUMENT,
                          "the parameter \"%.64s\" cannot be changed: eraseAfter and reclaimPolicy can", key);
                return false;
        }
        return true;
}

void controller_modify_volume(struct call *call)
{
        const Csi__V1__ControllerModifyVolumeRequest *request =
                (const Csi__V1__ControllerModifyVolumeRequest *)call_request(call);
        const char *policy;
        struct csi_share share;
        json_t *wanted;

        if (lacks_id(call, request->volume_id))
                return;
        policy = csi_map_find(CSI_MAP(request, mutable_parameters), "reclaimPolicy", /* any_case= */ false);
        if (policy != NULL && csi_share_read(request->volume_id, &share) &&
            strcmp(policy, share.on_delete[0] != '\0' ? share.on_delete : "delete") != 0) {
                call_fail(call, GRPC_INVALID_ARGUMENT,
                          "reclaimPolicy of a volume on a server is part of its id, by which other nodes delete it");
                return;
        }
        wanted = named_request(request->volume_id);
        (void)json_object_set_new(wanted, "modify", json_true());
        for (size_t i = 0; i < request->n_mutable_parameters; i++)
                if (!take_change(call, request->mutable_parameters[i], wanted)) {
                        json_decref(wanted);
                        return;
                }
        controller_run(call, "volume-create", wanted, modified);
}
