/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what the volume tools are asked for, but for volume-reconcile.
 */
#ifndef FLEXGRAFT_PROVISION_REQUEST_H
#define FLEXGRAFT_PROVISION_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/key.h"

enum provision_verb {
        PROVISION_CREATE,
        PROVISION_DELETE,
        PROVISION_LIST,
        PROVISION_CAPACITY,
        PROVISION_EXPAND,
        PROVISION_SNAPSHOT,
};

/* The bit of a verb in the tables of keys and members. */
#define PROVISION_BIT(verb) (1U << (verb))
#define CREATE PROVISION_BIT(PROVISION_CREATE)
#define DELETE PROVISION_BIT(PROVISION_DELETE)
#define LIST PROVISION_BIT(PROVISION_LIST)
#define CAPACITY PROVISION_BIT(PROVISION_CAPACITY)
#define EXPAND PROVISION_BIT(PROVISION_EXPAND)
#define SNAPSHOT PROVISION_BIT(PROVISION_SNAPSHOT)

extern const struct key_table provision_keys;

/* What volume-delete does with a volume; NULL ends them. */
extern const char *const provision_policies[];

/* Texts are borrowed from json; NULL: nothing was said. */
struct provision_request {
        enum provision_verb verb;
        const char *name;
        const char *pool;
        const char *profile;
        const char *id; /* of a disk that is there already */
        const char *target_type;
        const char *fs_type;
        const char *reclaim_policy;
        const char *target; /* of the device (provision/cdi.h) */
        const char *operation;
        const char *path;         /* of a directory, or a device's file, that the volume is mounted on */
        const char *from;         /* what a new volume is a copy of */
        const char *snapshot;     /* to take */
        const char *restore;      /* the snapshot to go back to */
        const char *only;         /* "volume" or "snapshot": what may be deleted */
        const char *namespace;    /* of Kubernetes, or PROVISION_OF_CSI: who gets a new volume; NULL: the first pod's */
        const json_t *parameters; /* an object of strings */
        const char *const *pool_types; /* that a pool may have, ended by NULL; NULL: any */
        uint64_t size_bytes;           /* 0: nothing was said */
        uint64_t limit_bytes;          /* more than that a new volume must not have; 0: nothing was said */
        bool match;
        bool modify;        /* change what is there, and make nothing */
        bool freeze;        /* also for as long as copying takes */
        bool soon;          /* delete nothing that takes long to overwrite; not a key */
        bool keeps_content; /* "eraseAfter": false */
        bool erases;        /* "eraseAfter": true, whatever its profile says */
        json_t *json;       /* owned */
};

/*
 * provision_request_parse() - the one argument of such a program; for a list or a capacity it may be absent.
 *
 * Gives:   ret_request, released by provision_request_release(), also after a failure.
 * Errors:  OPERATION_PARSE, the key as subject.
 */
int provision_request_parse(struct provision_request *ret_request, enum provision_verb verb, int argc, char **argv,
                            struct error *error);

void provision_request_release(struct provision_request *request);
#define cleanup_provision_request __attribute__((cleanup(provision_request_release)))

#endif
