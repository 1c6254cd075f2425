/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_file.h - the file of profiles, as text: which fields it has, and how they may be spelled.
 *
 * The format is protobuf's JSON, as Apache Mesos reads it: a field is called by its original name or in lowerCamelCase
 * (fs_type, fsType), null is absent, and the access mode is CSI's name or number. Unknown fields are ignored, except
 * those that are nearly a known one ("fstype"): these are mistakes.
 */
#ifndef FLEXGRAFT_PROVISION_PROFILE_FILE_H
#define FLEXGRAFT_PROVISION_PROFILE_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "state/file_key.h"

extern const struct file_key *const profile_keys; /* of one profile */

/* profile_file_path() - /etc/flexgraft/profiles.json, or what $FLEXGRAFT_PROFILES names. */
const char *profile_file_path(void);

/*
 * profile_file_read() - its profiles: name -> profile, in one spelling (profile_spell()); owned by the caller. No file
 * is an empty one. To ignored, an array or NULL, the unknown fields are added: "db.volume_capabilities.fs".
 *
 * Errors: those of json_file_load(), but ENOENT; EBADMSG. The reason names the line, or the profile and the field.
 */
int profile_file_read(json_t **ret_matrix, json_t *ignored, struct error *error);

/*
 * profile_spell() - change a profile's fields to their original names and its access mode to its name. Removed are
 * unknown fields, and those that say what is true without them. Two profiles that mean the same are equal afterwards.
 *
 * Gives: ret_complaint, of FILE_KEY_COMPLAINT_SIZE bytes, where it returns false.
 */
bool profile_spell(json_t *profile, char *ret_complaint);

#endif
