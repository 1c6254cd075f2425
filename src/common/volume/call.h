/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one verb on one volume: its configuration, its lock, its record, its kind, and what to answer.
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

/* What the reply says beyond its status; only what is kubelet's. */
struct volume_answer {
        const char *device;      /* NULL: no such field */
        const char *volume_name; /* likewise */
        bool tells_attached;
        bool attached;
        uint64_t new_size_bytes; /* 0: no such field */
        char message[512];       /* "": none */
};

struct volume_call {
        struct volume_request *request;
        struct config config;
        struct policy policy;
        struct state state;
        char boot_id[PROC_BOOT_ID_SIZE];
        char driver[VOLUME_DRIVER_MAX];
        const struct volume_kind *kind;    /* NULL until it is known */
        const struct volume_kind *wrapper; /* the kind that wraps it; NULL: none, or not known yet */
        struct volume_record record;
        bool recorded;   /* the record is on the disk */
        bool waits;      /* for another call, on the same volume */
        bool provisions; /* mount and unmount: may make, or overwrite, a volume of a pool */
        struct volume_answer answer;
};

typedef int volume_function(struct volume_call *call, struct error *error);

/*
 * volume_call_begin() - read the configuration, so that whatever follows is logged where it says, and the request.
 *
 * Gives:   ret_call, static or zeroed, and ret_request, which it borrows; both also after a failure.
 * Errors:  OPERATION_NOT_SUPPORTED no kind behind this driver's name has the verb; those of config_load() and
 *          volume_request_parse().
 */
#define OPERATION_NOT_SUPPORTED "not supported"
int volume_call_begin(struct volume_call *ret_call, struct volume_request *ret_request, enum verb verb, int argc,
                      char **argv, struct error *error);

/*
 * volume_call_run() - do function(call) in a worker that is given up on when it hangs. Afterwards no lock is held and
 * no process of ours is left, unless it hangs in the kernel.
 */
int volume_call_run(struct volume_call *call, volume_function *function, struct error *error);

/*
 * A call on another volume, which this one is made of: the same configuration, policy (borrowed), driver and verb, and
 * nothing else of the request. volume_inner_end() releases its record, its locks and its options.
 */
struct volume_inner {
        struct volume_request request;
        struct volume_call call;
};

void volume_inner_begin(struct volume_inner *ret_inner, const struct volume_call *outer);
void volume_inner_end(struct volume_inner *inner);

/* volume_call_name() - getvolumename: one volume, one name, whoever asks; kubelet's own. */
int volume_call_name(struct volume_call *call, struct error *error);

/* volume_call_open() - the state (made if need be), the volume's lock, and its record if there is one. */
int volume_call_open(struct volume_call *call, struct error *error);

/*
 * volume_call_open_place() - the same for a verb that gets a directory alone: the volume that remembers it, or was
 * named as its last part. No state, or one that cannot be written: what is on the directory can still be taken off.
 */
int volume_call_open_place(struct volume_call *call, struct error *error);

/* volume_call_begin_record() - a new one, in memory, if there is none of this boot. */
void volume_call_begin_record(struct volume_call *call);

/* volume_call_save() - write the record. */
int volume_call_save(struct volume_call *call, enum file_durability durability, struct error *error);

/* volume_call_drop() - remove the record; where there is none, what a killed call left of writing it. */
int volume_call_drop(struct volume_call *call, struct error *error);

/* volume_call_is_here() - whether request's node is this one. */
bool volume_call_is_here(const struct volume_call *call);

/* volume_call_load_policy() - section "volumes", and whether kind and mount options are allowed. */
int volume_call_load_policy(struct volume_call *call, struct error *error);

/* volume_call_device() - the record's device, as the rooms for devices take it. */
void volume_call_device(const struct volume_call *call, struct block_device *ret_device);

#endif
