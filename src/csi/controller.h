/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.h - the Controller service: volumes and snapshots, made and told by the volume tools. Nothing is remembered
 * here: what there is, the tools' records say.
 *
 * Functions that answer a call end it. What they give is as long as the call, unless it is said otherwise.
 */
#ifndef FLEXGRAFT_CSI_CONTROLLER_H
#define FLEXGRAFT_CSI_CONTROLLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "call.h"
#include "messages/csi.pb-c.h"

/* ---- controller_text.c: texts, maps and programs */

/* How keys begin that Kubernetes adds to a map: of the claim, or of the pod. */
#define CSI_OF_KUBERNETES "csi.storage.k8s.io/"

/* A map of a request, whose entries have key and value as fields 1 and 2: its two fields of C. */
#define CSI_MAP(message, field) (message)->n_##field, (const void *const *)(message)->field

/* csi_map_find() - the value of a key; NULL: there is none. letters: of any case. Borrowed. */
const char *csi_map_find(size_t count, const void *const *entries, const char *key, bool any_case);

/* controller_parameter() - the same of a class; an empty one, as templates make them, is none. */
const char *controller_parameter(size_t count, const void *const *entries, const char *key, bool any_case);

/* csi_map_entry() - the key and the value of one entry. Borrowed. */
void csi_map_entry(const void *entry, const char **ret_key, const char **ret_value);

/* csi_text() - a copy of a text. */
char *csi_text(struct call *call, const char *text);

/* csi_range_problem() - why no size is in the range (NULL: any is); NULL: one is. */
const char *csi_range_problem(const Csi__V1__CapacityRange *range);

/*
 * controller_pool_parameters() - add to an object those parameters of a request that are the pool's: what volume-create
 * has as "parameters". Not keys of its request, and not what Kubernetes' provisioner says of the claim.
 */
void controller_pool_parameters(size_t count, const void *const *entries, json_t *parameters);

/*
 * controller_run() - start a program with a request, of which it takes the reference; it is read from standard input, so
 * that nothing of it is in the arguments.
 */
void controller_run(struct call *call, const char *program, json_t *request, call_next *next);

/* controller_failed() - whether a program has failed; then the call is answered with its message and code. */
bool controller_failed(struct call *call, const struct outcome *outcome);

/* ---- controller_reply.c, controller_copy.c: what the volume tools say of a volume, as CSI's messages */

int64_t reply_bytes(const json_t *object, const char *key);

/* controller_find() - in a reply of volume-list, the volume (or the snapshot) of an id; NULL: there is none. Borrowed. */
const json_t *controller_find(const struct outcome *outcome, const char *id, bool snapshot);

/* controller_is_shared() - whether other nodes can use it, too: a volume, or those of a pool. */
bool controller_is_shared(const json_t *object);

/* controller_volume() - a message. */
Csi__V1__Volume *controller_volume(struct call *call, const json_t *volume);

/* controller_put_flags() - and what the class says of its mounts as a parameter; NULL: nothing. Mount flags are kubelet's to say. */
void controller_put_flags(struct call *call, const char *flags, Csi__V1__Volume *volume);

/*
 * controller_copy_lacks() - a key of a request for a new volume that a copy of this one will not have as it says, or that
 * this copy has not; NULL: none. Borrowed from the request.
 */
const char *controller_copy_lacks(const json_t *wanted, const json_t *volume);

/* controller_condition() - how it is, as volume-list has it. */
Csi__V1__VolumeCondition *controller_condition(struct call *call, const json_t *volume);

/* controller_snapshot() - a message. */
Csi__V1__Snapshot *controller_snapshot(struct call *call, const json_t *snapshot);

/* controller_topology() - this node, under the driver's key; as long as the call. */
Csi__V1__Topology *controller_topology(struct call *call);

/* controller_topology_here() - whether a topology, or a list of them that is not empty, has this node. */
bool controller_topology_here(const struct call *call, const Csi__V1__Topology *topology);

/* ---- controller_capacity.c: the pools of a class */

/* controller_capacity_request() - of volume-capacity, by the parameters of the class. A new object. */
json_t *controller_capacity_request(size_t count, const void *const *entries);

/* controller_lacks_pools() - whether a program failed since this node has not the pool or the profile, or no longer. */
bool controller_lacks_pools(const struct outcome *outcome);

/* controller_pools_shared() - whether it has answered that other nodes can use all volumes of the class, too; with no pool, true. */
bool controller_pools_shared(const struct outcome *outcome, const char *profile);

/* controller_profile_parameter() - what it has answered that volumes of the profile have; NULL: nothing. Borrowed. */
const char *controller_profile_parameter(const struct outcome *outcome, const char *profile, const char *key);

/* ---- a page of a list */

/*
 * What makes an entry of a list, as long as the call; NULL: this volume is not listed. request is the call's.
 */
typedef ProtobufCMessage *controller_entry(struct call *call, const ProtobufCMessage *request, const json_t *volume);

/* controller_list() - start volume-list for a page; or the call is answered, since there is no such page. */
void controller_list(struct call *call, int32_t max_entries, const char *token, call_next *next);

/*
 * controller_fill() - the entries of a page, of what volume-list has answered: at most its maximum, and less than the
 * 4 MiB that a client takes.
 *
 * Gives:   entries and their number; ret_next_token: where the list goes on, "": nowhere.
 * Returns: false: the call is answered, since the program failed, or there is no such page.
 */
bool controller_fill(struct call *call, const struct outcome *outcome, int32_t max_entries, const char *token,
                     controller_entry *entry, void **ret_entries, size_t *ret_count, char **ret_next_token);

/* ---- the calls: begin() of their rows */

void controller_create_volume(struct call *call);
void controller_delete_volume(struct call *call);
void controller_validate(struct call *call);
void controller_list_volumes(struct call *call);
void controller_get_volume(struct call *call);
void controller_get_capacity(struct call *call);
void controller_expand_volume(struct call *call);
void controller_modify_volume(struct call *call);
void controller_create_snapshot(struct call *call);
void controller_delete_snapshot(struct call *call);
void controller_list_snapshots(struct call *call);
void controller_get_snapshot(struct call *call);

#endif
