/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one verb on one volume: its configuration, lock, record, kind and answer.
 */
#ifndef FLEXGRAFT_VOLUME_CALL_H
#define FLEXGRAFT_VOLUME_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "block/device.h"
#include "process/proc.h"
#include "state/config.h"
#include "state/policy.h"
#include "state/state_dir.h"
#include "state/volume_record.h"
#include "volume/kind.h"
#include "volume/request.h"

/* The fields of the reply besides "status"; kubelet knows no others. */
struct volume_answer {
        const char *device;      /* NULL: no such field */
        const char *volume_name; /* likewise */
        bool attached;
        uint64_t new_size_bytes; /* 0: no such field */
        char message[512];       /* "": none */
};

struct volume_call {
        struct volume_request *request;
        struct config config;
        struct policy policy;
        struct state state;
        struct state provisioned; /* the records of volumes in pools, with this one's lock: see provisioned_hold() */
        char boot_id[PROC_BOOT_ID_SIZE];
        char driver[VOLUME_DRIVER_MAX];
        const struct volume_kind *kind;    /* NULL until it is known */
        const struct volume_kind *wrapper; /* the kind that wraps it; NULL: none, or not known yet */
        struct volume_record record;
        bool recorded;    /* the record is on disk */
        bool mode_is_new; /* its access mode is what this call has found (volume_access_apply()), not the former disk's */
        bool waits;       /* for another call on the same volume */
        const char *leaving; /* the id of the record of a mount in a container that ends: it is no use; or NULL */
        bool was_unmounted;  /* unmount found no mount: what is still active stays so for longer than a moment */
        bool soon;           /* volume-reconcile: what takes long to overwrite is left to others */
        bool provisions;     /* mount and unmount: may make, or overwrite, a volume of a pool */
        uint64_t attributes; /* MOUNT_ATTR_* that hold for a mount of a volume that is not staged (kind.mount_apart) */
        struct volume_answer answer;
};

typedef int volume_function(struct volume_call *call, struct error *error);

/*
 * volume_call_begin() - read the configuration, which says where to log, and then the request.
 *
 * Gives:   ret_call, static or zeroed, and ret_request, which it borrows; both also after a failure.
 * Errors:  OPERATION_NOT_SUPPORTED no volume of a driver of this name has the verb; those of config_load() and
 *          volume_request_parse().
 */
#define OPERATION_NOT_SUPPORTED "not supported"
int volume_call_begin(struct volume_call *ret_call, struct volume_request *ret_request, enum verb verb, int argc,
                      char **argv, struct error *error);

/*
 * volume_call_run() - run function(call) in a worker with a time limit. Afterwards no lock is held and no process is left,
 * but one that hangs in the kernel.
 */
int volume_call_run(struct volume_call *call, volume_function *function, struct error *error);

/*
 * A call on another volume as a part of this one: with the same configuration, policy (borrowed), driver and verb, and an
 * otherwise empty request. volume_inner_end() releases its record, its locks and its options.
 */
struct volume_inner {
        struct volume_request request;
        struct volume_call call;
};

void volume_inner_init(struct volume_inner *ret_inner, const struct volume_call *outer);
void volume_inner_end(struct volume_inner *inner);

/* volume_call_name() - getvolumename: the name that kubelet gave the volume. */
int volume_call_name(struct volume_call *call, struct error *error);

/* volume_call_open() - open the state directory (made if need be), take the volume's lock, read its record if there is one. */
int volume_call_open(struct volume_call *call, struct error *error);

/*
 * volume_call_open_dir() - the same for a verb that gets only a directory: of the volume whose record names it, or whose name
 * is its last component. Without a state directory, or with one that cannot be read, it succeeds without a record.
 */
int volume_call_open_dir(struct volume_call *call, struct error *error);

/* volume_call_init_record() - an empty record in memory, if there is none of this boot. */
void volume_call_init_record(struct volume_call *call);

/* volume_call_save() - write the record. */
int volume_call_save(struct volume_call *call, enum file_durability durability, struct error *error);

/* volume_call_remove_record() - remove the record, or the file that a killed call left when it wrote one. */
int volume_call_remove_record(struct volume_call *call, struct error *error);

/*
 * volume_call_forget_source() - the record is to have another disk: whose the last one was, how it may be used, and whether
 * it is formatted, is not said of that. Nor is it of CSI's, whose namespace is none.
 */
void volume_call_forget_source(struct volume_call *call);

/* volume_call_forget_owner() - likewise, but whether it is formatted: an image has that by its inode. */
void volume_call_forget_owner(struct volume_call *call);

/* volume_call_is_here() - whether the request's node is this one; "" is. */
bool volume_call_is_here(const struct volume_call *call);

/*
 * volume_call_where() - 1: the call is for this node. 0: for another one, or for what kubelet does on it: a
 * kube-controller-manager calls for all nodes, also for its own, mostly as root in a container without the capabilities that
 * this needs. Errors: EPERM it is for this node, and nobody else does it.
 */
int volume_call_where(const struct volume_call *call, struct error *error);

/* volume_call_load_policy() - read section "volumes" of policy.json; check that it allows the kind and the mount options. */
int volume_call_load_policy(struct volume_call *call, struct error *error);

/* volume_call_device() - the record's device, for functions that take a block device. */
void volume_call_device(const struct volume_call *call, struct block_device *ret_device);

#endif
