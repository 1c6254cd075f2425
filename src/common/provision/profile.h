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
 * Either selector picks pools: by type and name, or (csi_plugin_type_selector) by type alone. Unknown
 * fields are ignored.
 *
 * The last valid set is kept beside the records. One bad profile rejects the file, and the last set stays in use. A
 * profile that a volume was made with does not change. A profile that the file no longer has is inactive.
 */
#ifndef FLEXGRAFT_PROVISION_PROFILE_H
#define FLEXGRAFT_PROVISION_PROFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "provision/pool.h"

/* The keys of one profile (state/file_key.h); others are ignored. */
extern const struct file_key *const profile_keys;

struct profiles {
        json_t *active;    /* name -> profile; owned */
        json_t *inactive;  /* likewise; owned */
        char problem[512]; /* why the file was rejected; "": it was not */
};

/*
 * profiles_load() - the file, merged with the set before it.
 *
 * Gives:  ret_profiles, released by profiles_release(), also after a failure. A file that is broken is no failure: see
 * problem.
 */
int profiles_load(const char *state_dir, struct profiles *ret_profiles, struct error *error);

/* profiles_find() - an active one. Errors: ENOENT none of this name; ESTALE it is inactive. */
int profiles_find(const struct profiles *profiles, const char *name, const json_t **ret_profile, struct error *error);

void profiles_release(struct profiles *profiles);
#define cleanup_profiles __attribute__((cleanup(profiles_release)))

/* Properties of a profile; borrowed from it. */
bool profile_selects(const json_t *profile, const struct pool *pool);
bool profile_is_block(const json_t *profile);
const char *profile_fs_type(const json_t *profile);       /* "" */
const json_t *profile_mount_flags(const json_t *profile); /* NULL: none */
const char *profile_access_mode(const json_t *profile);
const json_t *profile_parameters(const json_t *profile); /* NULL: none */

#endif
