/* SPDX-License-Identifier: Apache-2.0 */
/* controller_snapshot.c - snapshots: volume-snapshot takes them, and the other tools have them among volumes. */
#include "controller.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "names.h"
#include "share.h"

/* ---- CreateSnapshot */

static void taken(struct call *call, const struct outcome *outcome)
{
        Csi__V1__CreateSnapshotResponse response = CSI__V1__CREATE_SNAPSHOT_RESPONSE__INIT;

        if (controller_failed(call, outcome))
                return;
        response.snapshot = controller_snapshot(call, json_object_get(outcome->reply, "volume"));
        call_answer(call, &response.base);
}

/* A sentence about the first parameter that is none; NULL: all are. */
static const char *take_parameters(const Csi__V1__CreateSnapshotRequest *request, json_t *wanted)
{
        for (size_t i = 0; i < request->n_parameters; i++) {
                const char *key;
                const char *value;

                csi_map_entry(request->parameters[i], &key, &value);
                if (text_starts(key, CSI_OF_KUBERNETES))
                        continue;
                if (strcmp(key, "freeze") != 0)
                        return "a snapshot has no other parameter than freeze";
                if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
                        return "freeze must be true or false";
                (void)json_object_set_new(wanted, key, json_boolean(value[0] == 't'));
        }
        return NULL;
}

void controller_create_snapshot(struct call *call)
{
        const Csi__V1__CreateSnapshotRequest *request = (const Csi__V1__CreateSnapshotRequest *)call_request(call);
        char source[CSI_VOLUME_NAME_SIZE];
        char name[CSI_VOLUME_NAME_SIZE];
        const char *why;
        json_t *wanted;

        if (request->name[0] == '\0' || request->source_volume_id[0] == '\0') {
                call_fail(call, GRPC_INVALID_ARGUMENT, "the %s is missing",
                          request->name[0] == '\0' ? "snapshot's name" : "id of the source volume");
                return;
        }
        csi_id_name(request->source_volume_id, source);
        csi_new_name(request->name, name);
        wanted = json_pack("{s:s, s:s}", "name", source, "snapshot", name);
        why = take_parameters(request, wanted);
        if (why == NULL) {
                controller_run(call, "volume-snapshot", wanted, taken);
                return;
        }
        json_decref(wanted);
        call_fail(call, GRPC_INVALID_ARGUMENT, "%s", why);
}

/* ---- DeleteSnapshot */

static void deleted(struct call *call, const struct outcome *outcome)
{
        Csi__V1__DeleteSnapshotResponse response = CSI__V1__DELETE_SNAPSHOT_RESPONSE__INIT;

        if (!controller_failed(call, outcome))
                call_answer(call, &response.base);
}

static void run_delete(struct call *call, call_next *next)
{
        const Csi__V1__DeleteSnapshotRequest *request = (const Csi__V1__DeleteSnapshotRequest *)call_request(call);
        char name[CSI_VOLUME_NAME_SIZE];

        csi_volume_name(request->snapshot_id, name);
        controller_run(call, "volume-delete", json_pack("{s:s, s:s}", "name", name, "only", "snapshot"), next);
}

static void reconciled(struct call *call, const struct outcome *outcome)
{
        (void)outcome; /* what it could not do the delete says again */
        run_delete(call, deleted);
}

/*
 * What was killed while it took the snapshot may have left a frozen filesystem, and nothing repeats that call once the
 * snapshot is not wanted any more.
 */
static void deleted_or_busy(struct call *call, const struct outcome *outcome)
{
        if (outcome->error == EBUSY)
                controller_run(call, "volume-reconcile", json_object(), reconciled);
        else
                deleted(call, outcome);
}

void controller_delete_snapshot(struct call *call)
{
        const Csi__V1__DeleteSnapshotRequest *request = (const Csi__V1__DeleteSnapshotRequest *)call_request(call);

        if (request->snapshot_id[0] == '\0')
                call_fail(call, GRPC_INVALID_ARGUMENT, "the snapshot id is missing");
        else
                run_delete(call, deleted_or_busy);
}

/* ---- ListSnapshots, GetSnapshot */

static bool is_asked_for(const Csi__V1__ListSnapshotsRequest *request, const json_t *snapshot)
{
        const char *const filters[][2] = { { request->source_volume_id, json_member_text(snapshot, "snapshotOf") },
                                           { request->snapshot_id, json_member_text(snapshot, "name") } };
        char name[CSI_VOLUME_NAME_SIZE];

        for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
                if (filters[i][0][0] == '\0')
                        continue;
                csi_id_name(filters[i][0], name);
                if (strcmp(name, filters[i][1]) != 0)
                        return false;
        }
        return json_member_text(snapshot, "snapshotOf")[0] != '\0' &&
               strcmp(json_member_text(snapshot, "state"), "created") == 0;
}

static ProtobufCMessage *snapshot_entry(struct call *call, const ProtobufCMessage *request, const json_t *snapshot)
{
        Csi__V1__ListSnapshotsResponse__Entry *entry;

        if (!is_asked_for((const Csi__V1__ListSnapshotsRequest *)request, snapshot))
                return NULL;
        entry = call_memory(call, sizeof *entry);
        csi__v1__list_snapshots_response__entry__init(entry);
        entry->snapshot = controller_snapshot(call, snapshot);
        return &entry->base;
}

static void snapshots_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__ListSnapshotsRequest *request = (const Csi__V1__ListSnapshotsRequest *)call_request(call);
        Csi__V1__ListSnapshotsResponse response = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
        void *entries;

        if (!controller_fill(call, outcome, request->max_entries, request->starting_token, snapshot_entry, &entries,
                             &response.n_entries, &response.next_token))
                return;
        response.entries = entries;
        call_answer(call, &response.base);
}

void controller_list_snapshots(struct call *call)
{
        const Csi__V1__ListSnapshotsRequest *request = (const Csi__V1__ListSnapshotsRequest *)call_request(call);

        controller_list(call, request->max_entries, request->starting_token, snapshots_listed);
}

static void snapshot_got(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__GetSnapshotRequest *request = (const Csi__V1__GetSnapshotRequest *)call_request(call);
        Csi__V1__GetSnapshotResponse response = CSI__V1__GET_SNAPSHOT_RESPONSE__INIT;
        const json_t *snapshot;

        if (controller_failed(call, outcome))
                return;
        snapshot = controller_find(outcome, request->snapshot_id, /* snapshot= */ true);
        if (snapshot == NULL || strcmp(json_member_text(snapshot, "state"), "created") != 0) {
                call_fail(call, GRPC_NOT_FOUND, "there is no snapshot \"%.128s\" on this node", request->snapshot_id);
                return;
        }
        response.snapshot = controller_snapshot(call, snapshot);
        call_answer(call, &response.base);
}

void controller_get_snapshot(struct call *call)
{
        const Csi__V1__GetSnapshotRequest *request = (const Csi__V1__GetSnapshotRequest *)call_request(call);
        char name[CSI_VOLUME_NAME_SIZE];

        if (request->snapshot_id[0] == '\0') {
                call_fail(call, GRPC_INVALID_ARGUMENT, "the snapshot id is missing");
                return;
        }
        csi_volume_name(request->snapshot_id, name);
        controller_run(call, "volume-list", json_pack("{s:s}", "name", name), snapshot_got);
}
