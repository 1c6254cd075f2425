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
#include "volume/request.h"

struct volume_call;

/* A sort of volume. Functions return 0 or negative errno; those that are NULL do not apply. */
struct volume_kind {
        const char *word;
        const char *const *harmless_options; /* of its filesystem: a policy need not list them; or NULL */
        bool of_pool;                        /* volume-create makes such volumes, too */
        bool direct;                         /* where its memory can be mapped itself (DAX), it is */
        uint64_t offset_bytes;               /* where in its image what is on the device begins */
        bool wakes;   /* a call that was killed may have left the device awake, and the record without it */
        bool foreign; /* the device is not of our making: somebody else may use it at any time */
        /* ensure that the device is on this node, and that the record names it */
        int (*attach)(struct volume_call *call, struct error *error);
        /* whether it is: 1 or 0, by the kernel; nothing is changed but the record in memory */
        int (*look)(struct volume_call *call, struct error *error);
        /* ensure that it is not; the record goes afterwards */
        int (*detach)(struct volume_call *call, struct error *error);
        /* what tells the device, or what is behind it, from others; VOLUME_IDENTITY_SIZE bytes */
        int (*identify)(const struct volume_call *call, char *ret_identity, struct error *error);
        /* whether nothing was ever written to the device: 1 for sure; 0 it has to be looked at. NULL: likewise */
        int (*is_untouched)(const struct volume_call *call);
        /* the path of the device on a node that is not this one */
        int (*predict)(struct volume_call *call, struct error *error);
        /* ensure that the device is at least so large; gives how large it is */
        int (*grow)(struct volume_call *call, uint64_t size_bytes, uint64_t *ret_size_bytes, struct error *error);
        /* without a device: a detached mount for a pod's directory; returns its fd */
        int (*make)(struct volume_call *call, struct error *error);
};

/* What makes ephemeral volumes, and takes them away again; with the programs that do (volume/ephemeral.h). */
struct volume_ephemeral {
        /* for request->dir; a detached mount, owned by the caller */
        int (*make)(struct volume_call *call, struct error *error);
        /* ensure that what was made for a directory is gone; nothing is mounted there any more */
        int (*unmake)(const struct volume_call *call, const char *dir, struct error *error);
};

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
        const struct volume_kind *kind; /* NULL until it is known */
        struct volume_record record;
        bool recorded;                            /* the record is on the disk */
        bool waits;                               /* for another call, on the same volume */
        bool provisions;                          /* a volume of a pool is made, or overwritten, perhaps */
        const struct volume_ephemeral *ephemeral; /* NULL: this program makes none */
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
 * volume_call_begin_within() - a call on another volume, that this one is made of: the same configuration, policy
 * (which is borrowed) and driver, and a request that has a name and the verb alone. volume_call_end_within() ends it,
 * with its locks; request->options are released, too.
 */
void volume_call_begin_within(const struct volume_call *outer, struct volume_request *ret_request,
                              struct volume_call *ret_call);
void volume_call_end_within(struct volume_request *request, struct volume_call *call);

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
