/* SPDX-License-Identifier: Apache-2.0 */
/* node_stage.c - NodeStageVolume and NodeUnstageVolume: a volume on this node, for all pods that will have it. */
#include "capability.h"
#include "node.h"

/* detach with no node's name means this one. */
static void run_detach(struct call *call, call_next *next)
{
        const struct node_work *work = call_kept(call);

        call_run(call, "verbs/detach", (const char *const[]){ work->name, "", NULL }, /* input= */ NULL, next);
}

/* ---- NodeStageVolume */

static void stage_undone(struct call *call, const struct outcome *outcome)
{
        node_fail_undone(call, node_done(outcome));
}

/*
 * What mountdevice has attached must not stay. Where the volume is staged already, or has another user, detach refuses:
 * kubelet is told that there may be something to unstage.
 */
static void staged(struct call *call, const struct outcome *outcome)
{
        static const Csi__V1__NodeStageVolumeResponse response = CSI__V1__NODE_STAGE_VOLUME_RESPONSE__INIT;

        if (node_done(outcome)) {
                call_answer(call, &response.base);
                return;
        }
        node_put_off(call, outcome);
        run_detach(call, stage_undone);
}

void node_stage(struct call *call)
{
        const Csi__V1__NodeStageVolumeRequest *request = (const void *)call_request(call);
        struct node_work *work =
                node_begin(call, request->volume_id, request->staging_target_path, "staging_target_path");
        struct node_use use;
        const char *problem;
        json_t *options;

        if (work == NULL) /* answered: the request is gone */
                return;
        use = (struct node_use){ .capability = request->volume_capability,
                                 .context_count = request->n_volume_context,
                                 .context = (const void *const *)request->volume_context };
        if (!node_check_capability(call, use.capability, node_is_shared(&use)))
                return;
        use.name = work->name;
        use.read_only = csi_capability_reads_only(use.capability);
        options = node_options(&use, &problem);
        if (options == NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", problem);
        else
                node_run_options(call, "verbs/mountdevice", (const char *const[]){ work->dir, "", NULL }, options,
                                 staged);
}

/* ---- NodeUnstageVolume */

static void detached(struct call *call, const struct outcome *outcome)
{
        static const Csi__V1__NodeUnstageVolumeResponse response = CSI__V1__NODE_UNSTAGE_VOLUME_RESPONSE__INIT;

        if (node_done(outcome))
                call_answer(call, &response.base);
        else
                node_fail(call, outcome);
}

static void unmounted(struct call *call, const struct outcome *outcome)
{
        if (node_done(outcome))
                run_detach(call, detached);
        else
                node_fail(call, outcome);
}

void node_unstage(struct call *call)
{
        const Csi__V1__NodeUnstageVolumeRequest *request = (const void *)call_request(call);
        struct node_work *work =
                node_begin(call, request->volume_id, request->staging_target_path, "staging_target_path");

        if (work != NULL)
                call_run(call, "verbs/unmountdevice", (const char *const[]){ work->dir, NULL }, /* input= */ NULL,
                         unmounted);
}
