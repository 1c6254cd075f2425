/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_name.h - a volume that volume-create made, asked for by its name alone: attached and staged for containers, and
 * detached after the last of them.
 *
 * It is staged once for this node, on STATE_DIR/named/KIND/NAME, so that all containers have one superblock. Where
 * kubelet has staged it, that stage is used, and stays kubelet's. Who uses the volume, the list of uses (state/uses.h)
 * says.
 *
 * A volume on a share of a server is on nothing of the node: each mount of it is one of its own, from the node's network,
 * with a superblock of its own.
 */
#ifndef FLEXGRAFT_VOLUME_BY_NAME_H
#define FLEXGRAFT_VOLUME_BY_NAME_H

#include <stdbool.h>

#include "base/error.h"
#include "mount/detached.h"
#include "provision/request.h"
#include "state/policy.h"
#include "volume/call.h"

struct volume_by_name {
        struct volume_request request;
        struct volume_call call;
        bool raw;                               /* its device is wanted, not a filesystem on it */
        const struct policy *policy;            /* that the volume has to agree with; NULL: none */
        const struct provision_request *create; /* what there is to make; NULL: nothing */
        bool changed;                           /* volume_by_name_stage() may have attached or staged it */
};

/* What a variable that volume_by_name_release() may get begins with. */
#define VOLUME_BY_NAME_NONE                                                                                            \
        {                                                                                                              \
                .call = {.state = STATE_NONE, .provisioned = STATE_NONE }                                              \
        }

/*
 * volume_by_name_hold() - take the volume's lock and read its record. The lock is kept until volume_by_name_release():
 * before it no lock of a mount's record may be held.
 *
 * Takes: look: only read, without the lock. Gives: ret_volume, also after a failure.
 */
int volume_by_name_hold(struct volume_by_name *ret_volume, const char *name, bool look, struct error *error);

/*
 * volume_by_name_choose() - find out which volume is meant, and whether policy allows it. Takes: fs_type, of a blank
 * volume; NULL: as it was made for, or ext4; create, borrowed: what volume_by_name_stage() makes if there is none; or
 * NULL. Errors: ENOENT there is none; EOPNOTSUPP it is one for virtual machines; EINVAL it is made for the opposite of
 * raw; those of provisioned_apply().
 */
int volume_by_name_choose(struct volume_by_name *volume, const char *fs_type, const struct provision_request *create,
                          struct error *error);

/*
 * volume_by_name_stage() - ensure that it is made, attached, formatted and staged. Needs the helpers of
 * volume_by_name_runs(). What it makes stays when it fails: volume-create may have made the same at the same time.
 * Returns: a descriptor of the root of the stage, for detached_mount_clone(); or, if volume_by_name_is_apart() says so, of
 *          a detached mount. Owned by the caller.
 */
int volume_by_name_stage(struct volume_by_name *volume, struct error *error);

/*
 * volume_by_name_is_apart() - after volume_by_name_stage(): whether it has made a detached mount, for this caller alone.
 * call.record.uses has what the volume is known by then.
 */
bool volume_by_name_is_apart(const struct volume_by_name *volume);

/*
 * volume_by_name_has_any_filesystem() - once it was chosen: whether it is on a filesystem that the node, or a server, has,
 * which perhaps cannot be id-mapped.
 */
bool volume_by_name_has_any_filesystem(const struct volume_by_name *volume);

/*
 * volume_by_name_add_attributes() - after volume_by_name_stage(): what the flags of its profile, and of its pool, say of a
 * mount of a volume that is not staged. Of a directory of the node attributes may say otherwise, as of a clone of a stage;
 * of one on a share they may not.
 */
void volume_by_name_add_attributes(const struct volume_by_name *volume, struct mount_attributes *attributes);

/*
 * volume_by_name_attach() - for raw: ensure that it is made and attached. call.record names the device. Needs the
 * helpers of volume_by_name_runs(), too.
 */
int volume_by_name_attach(struct volume_by_name *volume, struct error *error);

/*
 * volume_by_name_let_go() - unstage and detach it, if volume_by_name_stage() attached it and nobody uses it.
 *
 * Takes:  mount_id, of the record of a mount in a container that ends and does not count; or NULL.
 * Returns: 0, or 1: no record says who uses it, but the kernel does not give it back: a container may have bound the
 *          mount elsewhere. It stays attached; volume-reconcile detaches it when it is free.
 */
int volume_by_name_let_go(struct volume_by_name *volume, const char *mount_id, struct error *error);

/*
 * volume_by_name_runs() - the programs (VOLUME_RUNS_*) that volume_by_name_stage() may run for a volume: all of them,
 * if it is not known. Those that volume_by_name_let_go() may run, named_stage_runs() says.
 *
 * Gives: ret_any_filesystem: as volume_by_name_has_any_filesystem(), or it is not known.
 */
unsigned volume_by_name_runs(const char *name, bool *ret_any_filesystem);

/* volume_by_name_release() - give the lock back, also one that a call which was killed had; again does nothing. */
void volume_by_name_release(struct volume_by_name *volume);

/* ---- named_policy.c: which volumes by name policy.json lets annotations of containers ask for: "volumeNames" and "pools" */

/*
 * named_policy_check() - before anything is held: the name, the pool of the volume if there is one, and with create the
 * pool that a missing one is made in, which the request must name. Errors: EACCES.
 */
int named_policy_check(const struct policy *policy, const char *name, bool create, const char *create_pool,
                       struct error *error);

/* named_policy_check_pool() - again, of the volume whose lock is held: it may have been made anew. Errors: EACCES. */
int named_policy_check_pool(const struct policy *policy, const char *pool, struct error *error);

#endif
