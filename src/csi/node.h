/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - the Node service: each call runs the driver's verbs, as kubelet runs them for FlexVolume. Nothing is
 * remembered here, and nothing is mounted: what there is, the records of the verbs and the kernel say.
 *
 *      NodeStageVolume      mountdevice, which attaches; of a block volume it only attaches
 *      NodeUnstageVolume    unmountdevice, detach
 *      NodePublishVolume    mount; of a block volume the device's node, on a file
 *      NodeUnpublishVolume  unmount, which deletes a volume that was made for the pod, and removes the target
 *      NodeGetVolumeStats   volume-list with a "path"
 *      NodeExpandVolume     volume-expand
 */
#ifndef FLEXGRAFT_CSI_NODE_H
#define FLEXGRAFT_CSI_NODE_H

#include <stdbool.h>

#include "call.h"
#include "messages/csi.pb-c.h"
#include "names.h"

/* What a call has found out, kept until it ends (call_keep()). */
struct node_work {
        char name[CSI_VOLUME_NAME_SIZE]; /* of the volume, for the verbs */
        const char *dir;                 /* staging or target path; borrowed from the request */
        enum grpc_code code;             /* of a failure that is being undone */
        const char *message;
};

/* ---- node_work.c: checks, programs, failures */

/*
 * node_begin() - check what all requests have: a volume's id, and a path.
 *
 * Takes:   dir, borrowed; what it is called in messages.
 * Returns: the work, as long as the call; NULL: the call is answered, with INVALID_ARGUMENT.
 */
struct node_work *node_begin(struct call *call, const char *volume_id, const char *dir, const char *what);

/*
 * node_begin_at() - likewise with the volume_path of a volume that is there: a path that no call can have put it on is
 * NOT_FOUND. The public conformance suite asks for "some/path".
 */
struct node_work *node_begin_at(struct call *call, const char *volume_id, const char *volume_path);

/*
 * node_check_capability() - that a volume can be used so. shared: other nodes can use it, too. Returns: false: the call
 * is answered.
 */
bool node_check_capability(struct call *call, const Csi__V1__VolumeCapability *capability, bool shared);

/* node_done() - whether a program has done what it was asked for. */
bool node_done(const struct outcome *outcome);

/* node_code() - what its failure is for kubelet. What is not known to have failed is ABORTED: it may have happened. */
enum grpc_code node_code(const struct outcome *outcome);

/* node_fail() - answer with its failure. */
void node_fail(struct call *call, const struct outcome *outcome);

/* node_put_off() - remember its failure, which is answered when it is undone: node_fail_undone(). */
void node_put_off(struct call *call, const struct outcome *outcome);

/*
 * node_fail_undone() - answer with the failure of node_put_off(). kubelet calls nothing to clean up after a code that is
 * final, so there must be nothing left; else it is ABORTED.
 */
void node_fail_undone(struct call *call, bool undone);

/* ---- node_options.c: a request as a verb's options */

struct node_use {
        const char *name;
        const Csi__V1__VolumeCapability *capability;
        size_t context_count;
        const void *const *context; /* volume_context, as CSI_MAP() */
        bool read_only;
        bool publishes; /* for a pod */
};

/* node_is_inline() - whether it lives as long as its pod (csi.storage.k8s.io/ephemeral). */
bool node_is_inline(const struct node_use *use);

/* node_is_nfs() - whether it is on a server, as its context says: its type, or a server and a share. */
bool node_is_nfs(const struct node_use *use);

/*
 * node_awaited() - the server of one for which node_is_nfs() holds: by its name where its context has it, else by its
 * pool's, else nothing; and the namespace of an inline one.
 */
struct awaited node_awaited(const struct node_use *use);

/* node_is_shared() - whether other nodes can use it, too. */
bool node_is_shared(const struct node_use *use);

/*
 * node_options() - the options, an object of strings; no secret is among them, and of the context only what a verb knows.
 * Gives: ret_problem, a sentence, with NULL.
 * Returns: a new reference.
 */
json_t *node_options(const struct node_use *use, const char **ret_problem);

/*
 * node_run_options() - run a verb with options, of which it takes the reference, as its last argument; mount flags may be
 * sensitive, and are read from standard input. arguments: those before, ended by NULL, at most 3.
 */
void node_run_options(struct call *call, const char *verb, const char *const arguments[], json_t *options,
                      call_next *next);

/* ---- node_stats.c */

/* node_look() - ask how the volume is where the call has its path. */
void node_look(struct call *call, call_next *next);

/* node_note_publish() - a pod that has the volume may be about to start: NodeExpandVolume must not keep it from that. */
void node_note_publish(const char *volume_id);

/* ---- the calls: begin() of their rows */

void node_stage(struct call *call);
void node_unstage(struct call *call);
void node_publish(struct call *call);
void node_unpublish(struct call *call);
void node_get_stats(struct call *call);
void node_expand(struct call *call);

#endif
