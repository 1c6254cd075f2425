/* SPDX-License-Identifier: Apache-2.0 */
#include "named/batch_begin.h"

#include "volume/by_name.h"
#include "volume/exec_helpers.h"
#include "volume/named_stage.h"

static struct volume_by_name held = VOLUME_BY_NAME_NONE;

static int hold(const char *volume, struct error *error)
{
        return volume_by_name_hold(&held, volume, /* look= */ false, error);
}

static int let_go(const char *mount_id, struct error *error)
{
        return volume_by_name_let_go(&held, mount_id, error);
}

static void drop(void)
{
        volume_by_name_release(&held);
}

const struct volume_releaser named_releaser = { .hold = hold, .let_go = let_go, .drop = drop };

int named_releaser_begin(int argc, char **argv, struct error *error)
{
        return volume_exec_helpers_begin_for(named_stage_runs(), argc, argv, error);
}
