/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - named sets of requirements for volumes: /etc/flexgraft/profiles.json, or the file that
 * $FLEXGRAFT_PROFILES names, in the format of Apache Mesos' URI disk profile adaptor:
 *
 *      {"profile_matrix": {"fast": {
 *              "resource_provider_selector": {"resource_providers": [{"type": "org.flexgraft.loop", "name": "ssd"}]},
 *              "volume_capabilities": {"mount": {"fs_type": "xfs", "mount_flags": ["noatime"]},
 *                                      "access_mode": {"mode": "SINGLE_NODE_WRITER"}},
 *              "create_parameters": {"preallocate": "false"}}}}
 *
 * Either selector picks pools: by type and name, or (csi_plugin_type_selector) by type alone. How fields are spelled:
 * provision/profile_file.h.
 *
 * The last valid set is kept beside the records. One bad profile rejects the file, and the last set stays in use. So
 * does one with other capabilities or parameters than a volume of it was made with; its selector may change. A profile
 * that the file no longer has is inactive.
 */
#ifndef FLEXGRAFT_PROVISION_PROFILE_H
#define FLEXGRAFT_PROVISION_PROFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/need.h"
#include "pool/pool.h"

#define PROFILES_PROBLEM_SIZE 512

struct profiles {
        json_t *active;                      /* name -> profile; owned */
        json_t *inactive;                    /* likewise; owned */
        json_t *ignored;                     /* unknown fields of the file, by their paths; owned */
        char problem[PROFILES_PROBLEM_SIZE]; /* why the file was rejected; "": it was not */
};

/*
 * profiles_load() - the file, merged with the set before it.
 *
 * Gives:  ret_profiles, released by profiles_release(), also after a failure. A file that is broken is no failure: see
 * problem.
 */
int profiles_load(const char *state_dir, struct profiles *ret_profiles, struct error *error);

/*
 * profiles_check_changes() - whether profiles_load() would take these, of the file, after the set before it. Changes
 * nothing, and takes no lock. Errors: EBADMSG a profile changed that a volume has; of reading the state directory.
 */
int profiles_check_changes(const char *state_dir, const json_t *matrix, struct error *error);

/* profiles_inactive() - the names that volumes have and the file does not; the caller owns the array. */
json_t *profiles_inactive(const struct profiles *profiles);

/* profiles_ignored() - what of the file was ignored, where that was taken; the caller owns it. NULL: nothing. */
json_t *profiles_ignored(const struct profiles *profiles);

/* profiles_find() - an active one. Errors: ENOENT none of this name; ESTALE it is inactive. */
int profiles_find(const struct profiles *profiles, const char *name, const json_t **ret_profile, struct error *error);

/* What stands before the problem in a sentence. */
#define PROFILES_REJECTED "the file of profiles was rejected: "

/* profiles_explain() - where the file was rejected, add that to the reason of a failure that it may have caused. */
void profiles_explain(const struct profiles *profiles, struct error *error);

void profiles_release(struct profiles *profiles);
#define cleanup_profiles __attribute__((cleanup(profiles_release)))

/*
 * profile_check_type() - whether a filesystem of its type can be created here. name: the profile's, volume: what is to have
 * it, for the message.
 * profile_check() - whether volumes of it can be made in such a pool, as far as its parameters and its filesystem say. Reads
 * nothing. Errors of both: EINVAL.
 */
int profile_check_type(const json_t *profile, const char *name, const char *volume, struct error *error);
int profile_check(const json_t *profile, const char *name, const struct pool *pool, struct error *error);

/* profile_needs() - what the node must have for its filesystem, and for its parameters in such a pool; pool NULL: in any. */
need_set profile_needs(const json_t *profile, const struct pool *pool);

/* Properties of a profile; borrowed from it. */
bool profile_selects(const json_t *profile, const struct pool *pool);
bool profile_is_block(const json_t *profile);
const char *profile_fs_type(const json_t *profile);       /* "" */
const json_t *profile_mount_flags(const json_t *profile); /* NULL: none */
const char *profile_access_mode(const json_t *profile);
const json_t *profile_parameters(const json_t *profile); /* NULL: none */

#endif
