/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_object.h - the objects of the volume tools' replies. Each has one list of its members (base/schema.h), of which the
 * object and its description are made.
 */
#ifndef FLEXGRAFT_PROVISION_REPLY_OBJECT_H
#define FLEXGRAFT_PROVISION_REPLY_OBJECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/key.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/profile.h"
#include "provision/request.h"
#include "state/uses.h"

/* How a volume is (volume/health), ended by NULL. */
extern const char *const provision_health_words[];

/* How a volume is, as the node or its pool says. */
struct provision_condition {
        const char *health;  /* one of provision_health_words; NULL: of what a pool says alone */
        const char *problem; /* NULL and "": none */
        bool measured;       /* its usage is known */
        uint64_t used_bytes;
        uint64_t free_bytes;
};

/* The volume that is mounted on a directory. */
struct provision_mounted {
        const char *name;
        const char *path;
        const char *type; /* "": its record does not say */
        bool known;       /* the type is one of the driver's, and so it is known whether the filesystem is its own */
        bool owned;
        struct provision_condition condition;
        uint64_t size_bytes; /* 0: unknown */
        uint64_t inodes;     /* 0: unknown, or without a fixed number */
        uint64_t inodes_free;
};

/* What a tool has done. References are given away; what the tool's reply does not have is left out. */
struct provision_done {
        json_t *volume;
        uint64_t size_before; /* bytes */
        const char *filesystem;
        bool existed;
        const char *restored; /* a snapshot; NULL: one was taken */
        const char *name;
        const char *pool;                /* of a volume that was deleted; NULL: there was none */
        const char *reclaim_policy;      /* likewise */
        json_t *mounted;                 /* NULL: none was asked for */
        const struct profiles *profiles; /* not given away; NULL: none were used */
};

/*
 * provision_object_done() - the reply; its pools, disks and volumes are empty arrays. The others are parts of it. The
 * caller owns the result; NULL: no memory.
 */
json_t *provision_object_done(enum provision_verb verb, const struct provision_done *done);
json_t *provision_object_volume(const struct provision_record *record, const char *path);
/* measure: NULL: it cannot be used. problem: NULL: none */
json_t *provision_object_pool(enum provision_verb verb, const struct pool *pool, const struct pool_measure *measure,
                              const char *problem);
json_t *provision_object_profile(const char *name, const json_t *profile, const struct pool_measure *measure,
                                 const char *problem);
json_t *provision_object_disk(const struct pool *pool, const struct pool_item *item);
/* node: the name of this one */
json_t *provision_object_use(const struct use *use, const char *node);
json_t *provision_object_mounted(const struct provision_mounted *mounted);

/* provision_object_found() - a volume, with what its pool says of it. */
json_t *provision_object_found(const struct pool *pool, const struct provision_record *record,
                               const struct pool_item *item);

/* More members of a volume: what its pool says of one that is a directory; how it is; who has it, and whether it is gone. */
void provision_object_put_pool(json_t *volume, const struct pool *pool, const struct pool_item *item);
void provision_object_put_condition(json_t *volume, const struct provision_condition *condition);
/* uses: given away; NULL: unknown */
void provision_object_put_uses(json_t *volume, json_t *uses, bool missing);

/* What provision_object_done() makes. */
extern const struct key_table provision_done_keys;

#endif
