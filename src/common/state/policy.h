/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - what users other than root may request: policy.json. What it does not name is not allowed.
 *
 *      {"annotations": {"kinds": ["bind", "tmpfs"],
 *                       "sources": ["/srv/shared", {"path": "/srv/images", "readOnly": true}],
 *                       "containers": ["db"], "options": ["exec", "size"], "raw": false, "maxMounts": 16,
 *                       "fallback": "remap",
 *                       "volumeNames": ["web-*"], "pools": ["fast"]},
 *
 *       "volumes": {"kinds": ["loop", "block", "bind"], "sources": ["/srv/shared"], "devices": ["/dev/mapper"],
 *                   "options": ["suid"]}}
 *
 * It holds for annotations of containers (mount-hook) and for volumes of pods (the driver), not for a helper that root
 * runs.
 */
#ifndef FLEXGRAFT_STATE_POLICY_H
#define FLEXGRAFT_STATE_POLICY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "mount/options.h"

struct nfs_server_rule; /* network/nfs_server.h */

struct policy {
        json_t *file;          /* the whole of it, parsed; owned */
        const json_t *section; /* NULL: nothing is allowed */
        const char *path;      /* of the file, for errors */
};

/* The keys of the file (state/file_key.h). */
extern const struct file_key *const policy_keys;

/*
 * policy_load() - one section of /etc/flexgraft/policy.json (or $FLEXGRAFT_POLICY); without the file or the section
 * nothing is allowed.
 *
 * Errors: EPERM the file is not root's or others may write to it; EBADMSG it is broken, with the line or the key.
 */
int policy_load(struct policy *ret_policy, const char *section, struct error *error);

/* policy_turn_to() - another section of what was loaded. */
void policy_turn_to(struct policy *policy, const char *section);

/* policy_lists() - whether a word is in one of the section's lists. */
bool policy_lists(const struct policy *policy, const char *key, const char *word);

/* policy_matches() - whether one of the patterns of a list matches a word, as fnmatch(3) does. */
bool policy_matches(const struct policy *policy, const char *key, const char *word);

/* policy_says() - whether a key of the section is true. */
bool policy_says(const struct policy *policy, const char *key);

/* policy_require() - that a key of the section is true. Errors: EACCES. */
int policy_require(const struct policy *policy, const char *key, struct error *error);

/* policy_falls_back() - whether annotations have "fallback": "remap": of mounts that say nothing of it. */
bool policy_falls_back(const struct policy *policy);

/* policy_forbid() - EACCES for a word, naming the key of policy.json that would allow it. */
int policy_forbid(const struct policy *policy, const char *word, const char *key, struct error *error);

/* policy_check_count() - whether so many mounts are allowed. Errors: EACCES. */
int policy_check_count(const struct policy *policy, size_t count, struct error *error);

/*
 * policy_check_source() - whether a path of the node, its links resolved, lies in one of the directories allowed (or
 * is one of them). Errors: EACCES.
 */
int policy_check_source(const struct policy *policy, const char *path, bool writes, struct error *error);

/*
 * policy_check_options() - whether these mount options are allowed: those that only take rights away are, others must
 * be named. "rw", which is said out of habit, is allowed: the caller sees to it that it takes "ro" off no mount of the
 * node. harmless: names of options of its filesystem that are allowed, too, ended by NULL; NULL: none.
 * device_file: "dev" is what it is for. Errors: EACCES.
 */
int policy_check_options(const struct policy *policy, const struct mount_options *options, const char *const *harmless,
                         bool device_file, struct error *error);

/*
 * policy_check_volume() - whether volumes of pods may be of this kind: "kinds" lists it; without "kinds" every one
 * that does not need to be listed (needs_policy). Errors: EACCES.
 */
int policy_check_volume(const struct policy *policy, const char *kind, bool needs_policy, struct error *error);

/* policy_check_image() - whether an image of a pool is one of "images", or its pool is. Errors: EACCES. */
int policy_check_image(const struct policy *policy, const char *pool, const char *image, struct error *error);

/*
 * policy_check_device() - whether a device is one of "devices", or in a directory of them; without "devices" every one.
 * Links that are listed are followed. source: as it was asked for, or NULL; then a link in a listed directory will do.
 * path: the device, its links resolved.
 */
int policy_check_device(const struct policy *policy, const char *source, const char *path, struct error *error);

void policy_release(struct policy *policy);
#define cleanup_policy __attribute__((cleanup(policy_release)))

/* ---- policy_server.c: which NFS servers a policy allows, its key "nfsServers" */

/*
 * policy_server_check() - whether a host may be a server; what is not decided by its name is left to the rule.
 *
 * An address must match a pattern of addresses. A name that matches a pattern of names is allowed; the node looks it up.
 * Any other name is allowed for those of its addresses that match a pattern of addresses. Without the key every host is
 * allowed where open is set, else none.
 *
 * Gives:  ret_rule, for nfs_server_find(); it borrows the policy.
 * Errors: EACCES.
 */
int policy_server_check(const struct policy *policy, const char *host, bool open, struct nfs_server_rule *ret_rule,
                        struct error *error);

#endif
