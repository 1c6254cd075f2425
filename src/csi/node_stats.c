/* SPDX-License-Identifier: Apache-2.0 */
/* node_stats.c - NodeGetVolumeStats and NodeExpandVolume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "capability.h"
#include "controller.h"
#include "node.h"
#include "share.h"

#define MEASURED_MAX 1024 /* so many volumes are used here, or some do not count as used */

/* Runs a tool with a request, of which it takes the reference. */
static void run_tool(struct call *call, const char *program, json_t *request, call_next *next)
{
        char *text = json_text_make(request);

        json_decref(request);
        if (text == NULL)
                call_fail(call, GRPC_RESOURCE_EXHAUSTED, "there is no memory");
        else
                call_run(call, program, (const char *const[]){ text, NULL }, /* input= */ NULL, next);
        free(text);
}

void node_look(struct call *call, call_next *next)
{
        const struct node_work *work = call_kept(call);

        run_tool(call, "volume-list", json_pack("{s:s, s:s}", "name", work->name, "path", work->dir), next);
}

/* ---- NodeGetVolumeStats */

static void fill(Csi__V1__VolumeUsage *usage, Csi__V1__VolumeUsage__Unit unit, int64_t total, int64_t used,
                 int64_t available)
{
        csi__v1__volume_usage__init(usage);
        usage->unit = unit;
        usage->total = total;
        usage->used = used;
        usage->available = available;
}

static void answer_stats(struct call *call, const json_t *mounted)
{
        Csi__V1__NodeGetVolumeStatsResponse response = CSI__V1__NODE_GET_VOLUME_STATS_RESPONSE__INIT;
        Csi__V1__VolumeCondition condition = CSI__V1__VOLUME_CONDITION__INIT;
        Csi__V1__VolumeUsage usages[2];
        Csi__V1__VolumeUsage *list[2] = { &usages[0], &usages[1] };
        const char *health = json_member_text(mounted, "health");
        int64_t inodes = reply_bytes(mounted, "inodes");

        response.usage = list;
        if (json_object_get(mounted, "size") != NULL)
                fill(&usages[response.n_usage++], CSI__V1__VOLUME_USAGE__UNIT__BYTES, reply_bytes(mounted, "size"),
                     reply_bytes(mounted, "used"), reply_bytes(mounted, "free"));
        if (inodes > 0)
                fill(&usages[response.n_usage++], CSI__V1__VOLUME_USAGE__UNIT__INODES, inodes,
                     inodes - reply_bytes(mounted, "inodesFree"), reply_bytes(mounted, "inodesFree"));
        condition.abnormal = strcmp(health, "ok") != 0;
        condition.message =
                csi_text(call, condition.abnormal ? json_member_text(mounted, "problem") : "the volume is well");
        response.volume_condition = &condition;
        call_answer(call, &response.base);
}

/* Something else is mounted where the call has its path, or nothing. */
static bool is_elsewhere(const struct outcome *outcome)
{
        return outcome->error == EBUSY || outcome->error == ENODEV || outcome->error == ENOENT ||
               outcome->error == ENXIO;
}

/*
 * Volumes that were measured since they were last published, by numbers of their ids. kubelet measures what it counts as
 * mounted for a pod; and it publishes before each question about growth by which a pod may still start. What an earlier
 * driver was asked is not known, as of two volumes with one place the earlier one: these count as not used.
 */
static uint64_t used[MEASURED_MAX];

static uint64_t *used_at(uint64_t number)
{
        return &used[number / 2 % MEASURED_MAX]; /* the lowest bit is always set */
}

void node_note_publish(const char *volume_id)
{
        const uint64_t number = hash_text_or_zero(volume_id);

        if (*used_at(number) == number)
                *used_at(number) = 0;
}

static void note_stats(const struct call *call)
{
        const Csi__V1__NodeGetVolumeStatsRequest *request = (const void *)call_request(call);
        const uint64_t number = hash_text_or_zero(request->volume_id);

        *used_at(number) = number;
}

static void measured(struct call *call, const struct outcome *outcome)
{
        if (node_done(outcome)) {
                note_stats(call);
                answer_stats(call, json_object_get(outcome->reply, "mounted"));
        } else if (is_elsewhere(outcome))
                call_fail(call, GRPC_NOT_FOUND, "%s", outcome->message);
        else
                node_fail(call, outcome);
}

void node_get_stats(struct call *call)
{
        const Csi__V1__NodeGetVolumeStatsRequest *request = (const void *)call_request(call);

        if (node_begin_at(call, request->volume_id, request->volume_path) != NULL)
                node_look(call, measured);
}

/* ---- NodeExpandVolume */

static void answer_expanded(struct call *call, int64_t bytes)
{
        Csi__V1__NodeExpandVolumeResponse response = CSI__V1__NODE_EXPAND_VOLUME_RESPONSE__INIT;

        response.capacity_bytes = bytes;
        call_answer(call, &response.base);
}

/*
 * What will not grow however often it is asked: there is no room, it is of a kind, or of a filesystem, that cannot, or the
 * driver lacks the capability, as in a container that has not all of them.
 * kubelet, which asks before it starts a pod, starts it after FAILED_PRECONDITION, and after no other code
 * (nodeExpandVolume() and expandVolumeDuringMount() of its pkg/volume/util/operationexecutor).
 */
static bool is_final(const struct outcome *outcome)
{
        return outcome->error == ENOSPC || outcome->error == EDQUOT || outcome->error == EOPNOTSUPP ||
               outcome->error == EINVAL || outcome->error == EPERM;
}

/*
 * Whether a pod has the volume that is to grow, and runs. The path does not tell: a kubelet of 1.20 asks when a volume is only
 * staged, later ones when it is published, as all do for a device and for a second pod (GenerateMountVolumeFunc() and
 * GenerateMapVolumeFunc() there).
 */
static bool is_used(const struct call *call)
{
        const Csi__V1__NodeExpandVolumeRequest *request = (const void *)call_request(call);
        const uint64_t number = hash_text_or_zero(request->volume_id);

        return *used_at(number) == number && strcmp(request->volume_path, request->staging_target_path) != 0;
}

/*
 * Once a pod has it, kubelet does not ask again after FAILED_PRECONDITION while it is in use; with RecoverVolumeExpansionFailure
 * it takes OUT_OF_RANGE for one that a smaller size ends (pkg/volume/util/operationexecutor/node_expander.go).
 */
static enum grpc_code code_of_final(const struct call *call, const struct outcome *outcome)
{
        const bool lacks_room = outcome->error == ENOSPC || outcome->error == EDQUOT;

        return lacks_room && is_used(call) ? GRPC_OUT_OF_RANGE : GRPC_FAILED_PRECONDITION;
}

static void expanded(struct call *call, const struct outcome *outcome)
{
        if (node_done(outcome))
                answer_expanded(call, reply_bytes(json_object_get(outcome->reply, "volume"), "size"));
        else if (is_final(outcome))
                call_fail(call, code_of_final(call, outcome), "%s", outcome->message);
        else if (is_used(call) && (outcome->error == ENODEV || outcome->error == ENOPKG))
                call_fail(call, GRPC_UNAVAILABLE, "%s", outcome->message);
        else
                node_fail(call, outcome);
}

/*
 * A volume that is in no pool may be a directory, on a server or of the node, that nobody keeps to a size. Once it is
 * published, it is mounted as one; before that kubelet has only staged it, with nothing to show for it. What has a device
 * has a record from then on.
 */
static void located(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__NodeExpandVolumeRequest *request = (const void *)call_request(call);
        const struct node_work *work = call_kept(call);
        const json_t *mounted = json_object_get(outcome->reply, "mounted");
        const bool staged = strcmp(request->volume_path, request->staging_target_path) == 0;

        if (node_done(outcome) ? json_is_false(json_object_get(mounted, "ownFilesystem"))
                               : staged && outcome->error == ENXIO)
                answer_expanded(call, request->capacity_range != NULL ? request->capacity_range->required_bytes : 0);
        else if (node_done(outcome) || (staged && outcome->error == ENOENT)) /* a device, which is attached */
                call_fail(call, GRPC_FAILED_PRECONDITION, "the volume %.256s is in no pool, so it cannot grow",
                          work->name);
        else if (is_elsewhere(outcome))
                call_fail(call, GRPC_NOT_FOUND, "there is no volume %.256s in a pool", work->name);
        else
                node_fail(call, outcome);
}

/* It never shrinks; where it is as large already, the filesystem gets what the device has. */
static void found(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__NodeExpandVolumeRequest *request = (const void *)call_request(call);
        const struct node_work *work = call_kept(call);
        const json_t *volume = node_done(outcome) ? controller_find(outcome, work->name, /* snapshot= */ false) : NULL;
        int64_t size = request->capacity_range != NULL ? request->capacity_range->required_bytes : 0;
        int64_t limit = request->capacity_range != NULL ? request->capacity_range->limit_bytes : 0;
        json_t *wanted;
        struct csi_share ignored;

        if (!node_done(outcome)) {
                node_fail(call, outcome);
                return;
        }
        if (volume == NULL && !csi_share_read(request->volume_id, &ignored) &&
            !csi_capability_needs_share(request->volume_capability)) {
                node_look(call, located);
                return;
        }
        if (size < reply_bytes(volume, "size"))
                size = reply_bytes(volume, "size");
        if (volume == NULL || controller_is_shared(volume)) {
                answer_expanded(call, size); /* nobody keeps to the size of a directory on a server */
                return;
        }
        wanted = json_pack("{s:s, s:I}", "name", work->name, "size", (json_int_t)size);
        if (limit != 0)
                (void)json_object_set_new(wanted, "limit", json_integer(limit));
        run_tool(call, "volume-expand", wanted, expanded);
}

void node_expand(struct call *call)
{
        const Csi__V1__NodeExpandVolumeRequest *request = (const void *)call_request(call);
        const struct node_work *work = node_begin_at(call, request->volume_id, request->volume_path);
        const char *problem;

        if (work == NULL) /* answered: the request is gone */
                return;
        problem = csi_range_problem(request->capacity_range);
        if (problem != NULL)
                call_fail(call, GRPC_OUT_OF_RANGE, "%s", problem);
        else
                run_tool(call, "volume-list", json_pack("{s:s}", "name", work->name), found);
}
