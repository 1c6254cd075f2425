/* SPDX-License-Identifier: Apache-2.0 */
/* node_publish.c - NodePublishVolume and NodeUnpublishVolume: a volume on a pod's directory, or its device on a file. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "capability.h"
#include "controller.h"
#include "node.h"

/* ---- NodePublishVolume */

static struct node_use use_of(const struct call *call)
{
        const Csi__V1__NodePublishVolumeRequest *request = (const void *)call_request(call);

        return (struct node_use){ .capability = request->volume_capability,
                                  .context_count = request->n_volume_context,
                                  .context = (const void *const *)request->volume_context,
                                  .publishes = true };
}

static void publish_undone(struct call *call, const struct outcome *outcome)
{
        node_fail_undone(call, node_done(outcome));
}

/* What is said of the target in place of the failure of node_put_off(). */
static void look_answered(struct call *call, const struct outcome *outcome)
{
        static const Csi__V1__NodePublishVolumeResponse response = CSI__V1__NODE_PUBLISH_VOLUME_RESPONSE__INIT;
        const char *health = json_member_text(json_object_get(outcome->reply, "mounted"), "health");

        if (node_done(outcome) && strcmp(health, "unknown") != 0)
                call_answer(call, &response.base); /* it is there: an earlier call has published it for this pod */
        else if (outcome->error == EBUSY)
                call_fail(call, GRPC_FAILED_PRECONDITION, "something else is mounted on the target; unmount it first");
        else
                node_fail_undone(call, /* undone= */ false);
}

/*
 * After a failure: what is mounted on the target was published by an earlier call, or is not the driver's. It stays. Else
 * what mount may have left is taken away. Of an inline volume mount itself does that: unmount would delete one that an
 * earlier call has made, with what its pod has written. Then the target is recorded still (ENODEV), and kubelet must know
 * that there is something to unpublish.
 */
static void looked(struct call *call, const struct outcome *outcome)
{
        const struct node_work *work = call_kept(call);
        const struct node_use use = use_of(call);

        if (outcome->error != ENOENT && outcome->error != ENXIO && outcome->error != ENODEV)
                look_answered(call, outcome);
        else if (node_is_inline(&use))
                node_fail_undone(call, /* undone= */ outcome->error != ENODEV);
        else
                call_run(call, "verbs/unmount", (const char *const[]){ work->dir, NULL }, /* input= */ NULL,
                         publish_undone);
}

static void published(struct call *call, const struct outcome *outcome)
{
        static const Csi__V1__NodePublishVolumeResponse response = CSI__V1__NODE_PUBLISH_VOLUME_RESPONSE__INIT;

        if (node_done(outcome)) {
                call_answer(call, &response.base);
                return;
        }
        if (outcome->error == EEXIST) { /* it is there in another way, and stays */
                node_fail(call, outcome);
                return;
        }
        node_put_off(call, outcome);
        node_look(call, looked);
}

void node_publish(struct call *call)
{
        const Csi__V1__NodePublishVolumeRequest *request = (const void *)call_request(call);
        struct node_use use = use_of(call); /* before node_begin(), which may end the call */
        struct node_work *work = node_begin(call, request->volume_id, request->target_path, "target_path");
        const char *problem;
        json_t *options;

        if (work == NULL || !node_check_capability(call, use.capability, node_is_shared(&use)))
                return;
        if (request->staging_target_path[0] == '\0' && !node_is_inline(&use)) {
                /* CSI's specification, NodePublishVolume Errors: no INVALID_ARGUMENT, which other missing fields are */
                call_fail(call, GRPC_FAILED_PRECONDITION, "staging_target_path is missing: stage the volume first");
                return;
        }
        node_note_publish(request->volume_id);
        use.name = work->name;
        use.read_only = request->readonly || csi_capability_reads_only(use.capability);
        options = node_options(&use, &problem);
        if (options == NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", problem);
        else
                node_run_options(call, "verbs/mount", (const char *const[]){ work->dir, NULL }, options, published);
}

/* ---- NodeUnpublishVolume */

static void unpublished(struct call *call, const struct outcome *outcome)
{
        static const Csi__V1__NodeUnpublishVolumeResponse response = CSI__V1__NODE_UNPUBLISH_VOLUME_RESPONSE__INIT;

        if (node_done(outcome))
                call_answer(call, &response.base);
        else
                node_fail(call, outcome);
}

void node_unpublish(struct call *call)
{
        const Csi__V1__NodeUnpublishVolumeRequest *request = (const void *)call_request(call);
        struct node_work *work = node_begin(call, request->volume_id, request->target_path, "target_path");

        if (work != NULL)
                call_run(call, "verbs/unmount", (const char *const[]){ work->dir, NULL }, /* input= */ NULL,
                         unpublished);
}
