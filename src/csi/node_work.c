/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "capability.h"
#include "codes.h"
#include "controller.h"
#include "node.h"
#include "share.h"

/* As the verbs ask of a directory: they refuse others with an error of their own, which would be no INVALID_ARGUMENT. */
static bool is_path(const char *path)
{
        char normal[PATH_MAX];

        return path[0] == '/' && strlen(path) < PATH_MAX && text_path_normal(path, normal) == 0 && !text_climbs(path) &&
               strcmp(normal, "/") != 0;
}

static struct node_work *begin(struct call *call, const char *volume_id, const char *dir, const char *what,
                               enum grpc_code no_path)
{
        struct node_work *work = call_memory(call, sizeof *work);

        if (volume_id[0] == '\0') {
                call_fail(call, GRPC_INVALID_ARGUMENT, "volume_id is missing");
                return NULL;
        }
        if (dir[0] == '\0') {
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s is missing", what);
                return NULL;
        }
        if (!is_path(dir)) {
                call_fail(call, no_path, "%s must be an absolute path without \"..\"", what);
                return NULL;
        }
        csi_id_name(volume_id, work->name);
        work->dir = dir;
        call_keep(call, work);
        return work;
}

struct node_work *node_begin(struct call *call, const char *volume_id, const char *dir, const char *what)
{
        return begin(call, volume_id, dir, what, GRPC_INVALID_ARGUMENT);
}

struct node_work *node_begin_at(struct call *call, const char *volume_id, const char *volume_path)
{
        return begin(call, volume_id, volume_path, "volume_path", GRPC_NOT_FOUND);
}

bool node_check_capability(struct call *call, const Csi__V1__VolumeCapability *capability, bool shared)
{
        const char *problem;

        if (capability == NULL)
                problem = "volume_capability is missing";
        else
                problem = csi_capability_incomplete(capability);
        /* a filesystem's name says nothing of a directory on a server: FlexVolume and csi-driver-nfs do not hear it, either */
        if (problem == NULL && (!shared || csi_capability_is_block(capability)))
                problem = csi_capability_impossible(capability, shared);
        if (problem != NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", problem);
        return problem == NULL;
}

bool node_done(const struct outcome *outcome)
{
        return outcome->status == 0 && strcmp(outcome->state, "Success") == 0;
}

enum grpc_code node_code(const struct outcome *outcome)
{
        if (outcome->error == ENODEV) /* not attached, or not staged */
                return GRPC_FAILED_PRECONDITION;
        return outcome->error != 0 ? csi_code(outcome->error) : GRPC_ABORTED;
}

void node_fail(struct call *call, const struct outcome *outcome)
{
        call_fail(call, node_code(outcome), "%s", outcome->message);
}

void node_put_off(struct call *call, const struct outcome *outcome)
{
        struct node_work *work = call_kept(call);

        work->code = node_code(outcome);
        work->message = csi_text(call, outcome->message);
}

void node_fail_undone(struct call *call, bool undone)
{
        const struct node_work *work = call_kept(call);

        call_fail(call, undone ? work->code : GRPC_ABORTED, "%s", work->message);
}
