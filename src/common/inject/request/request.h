/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what was asked for, as plain data; how it comes to be, and by which rules.
 */
#ifndef FLEXGRAFT_INJECT_REQUEST_REQUEST_H
#define FLEXGRAFT_INJECT_REQUEST_REQUEST_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "block/image.h"
#include "container/container.h"
#include "mount/options.h"
#include "mount/remap_settings.h"

/* What a request asks for. */
enum request_kind {
        REQUEST_NONE,         /* it was not read */
        REQUEST_MOUNT,        /* one mount, whose kind is a row of inject/request/source.h */
        REQUEST_MOUNT_BATCH,  /* many */
        REQUEST_MOUNT_REMOVE, /* that one goes */
        REQUEST_MOUNT_LIST,   /* which there are */
};

#define REQUEST_LAYERS_MAX 64
#define REQUEST_ENTRIES_MAX 256
#define REQUEST_ID_NONE UINT32_MAX

/* How owners are made right (docs/owners.md). */
enum request_ids { IDS_AUTO, IDS_IDMAPPED, IDS_USERNS, IDS_REMAP, IDS_HOST };

/* Whether IDS_AUTO ends at remap where the kernel cannot map (injection_falls_back()). */
enum request_fallback {
        FALLBACK_UNSAID, /* as the kind of mount has it, or the policy */
        FALLBACK_NONE,
        FALLBACK_REMAP,
};

struct key_table;       /* base/key.h */
struct policy;          /* state/policy.h */
struct source_kind;     /* inject/request/source.h */
struct volume_releaser; /* inject/former.h */

/* Of a volume that is made if there is none. */
struct request_create {
        uint64_t size_bytes; /* 0: none is made */
        const char *pool;    /* NULL: the default, or the profile's */
        const char *profile; /* NULL: none */
};

struct request {
        enum request_kind kind;
        const struct key_table *keys; /* those that it may have; NULL: the kind of its mount is not known yet */
        const struct source_kind *source_kind;    /* the row of a mount's kind; NULL: it is no mount */
        const struct source_kind *const *sources; /* the kinds that it, or an entry of a batch, may be of; NULL: none */
        const struct volume_releaser *releaser;   /* of mount-remove, for volumes by name; NULL: none */
        const json_t *said;                       /* a mount: its JSON object, borrowed: what "persist" keeps */
        json_t *json;                             /* owns every string below */
        struct container_reference container;
        bool has_container;
        const char *source; /* what is mounted, in the helper's own terms; "tmpfs" and "overlay" of themselves */
        const char *server; /* nfs: with share, what else "source" says */
        const char *share;
        char *source_text;                     /* owned: a source that is put together from other keys; or NULL */
        struct container_reference from;       /* container-to-container: whose source it is */
        char target[PATH_MAX];                 /* normal; "" when not given */
        const char *id;                        /* NULL: derived */
        const char *fs_type;                   /* NULL: found out */
        struct request_create create;          /* volume by name */
        const char *subdir;                    /* volume by name: its directory that is mounted; NULL: its root */
        struct image_choice partition;         /* image: of it */
        const char *lower[REQUEST_LAYERS_MAX]; /* overlay: the topmost first */
        size_t lower_count;
        const char *upper; /* NULL: read-only */
        const char *work;
        uint32_t uid; /* tmpfs: of its root directory, as the container counts; REQUEST_ID_NONE: its root's */
        uint32_t gid;
        uint64_t given;          /* a bit for each row of keys that was there */
        struct request *entries; /* batch: owned; parents before children */
        size_t entry_count;
        size_t index; /* of a batch's entry: where in the request it was */
        struct mount_options options;
        enum request_ids ids;
        enum request_fallback fallback;
        enum remap_cache cache;
        bool read_only;
        bool recursive;
        bool mkdir;
        bool locked;
        bool dry_run;
        bool force;
        bool raw;          /* block: the device itself */
        bool mkdir_source; /* container-to-container: make a missing source directory */
        bool replace;
        bool persist;  /* it is wanted whenever the container runs (state/wish) */
        bool unwanted; /* it was said that it is not */
        bool wanted;   /* batch: what is wanted in the container; a mount: it comes from there, so that root asked */
        const char *wanted_source; /* wanted: what its kind's identify() said of its source then; "" nothing */
        bool held;                 /* from an annotation: lock read-only, nosuid and nodev */
        int timeout_seconds;
};

/* request_init() - an empty request with the defaults. */
void request_init(struct request *ret_request, enum request_kind kind, const struct key_table *keys);

void request_release(struct request *request);
#define cleanup_request __attribute__((cleanup(request_release)))

/*
 * ---- argv and JSON -> struct request. Unknown keys, repeated keys, wrong types, NUL bytes, nesting too deep and input too
 * long are refused, naming the key.
 */

/*
 * request_parse() - the one argument of a program: a JSON object, or "-" to read it from standard input.
 *
 * Takes:   sources, ended by NULL: of REQUEST_MOUNT its kind, of REQUEST_MOUNT_BATCH those of its entries; NULL for a
 *          request that mounts nothing.
 * Gives:   ret_request, released by request_release(), also after a failure.
 * Errors:  operation OPERATION_PARSE, the key as subject; the program then exits 2.
 */
int request_parse(struct request *ret_request, enum request_kind kind, const struct source_kind *const *sources,
                  int argc, char **argv, struct error *error);

/* ---- what can be said of a mount's request only once every key is known, and whether a policy allows it */

/*
 * request_rules_apply() - whether it is whole and fits together; also fills in what follows from it, the defaults
 * among that. Errors: OPERATION_PARSE, naming the key.
 */
int request_rules_apply(struct request *request, struct error *error);

/* request_rules_refuse_nameless() - EINVAL for a key that needs a container with a name: what is wanted is kept by it. */
int request_rules_refuse_nameless(const char *key, struct error *error);

/*
 * request_policy_check() - whether a mount of this sort, with these options, is allowed. Its sources are not looked at.
 * Errors: EACCES, naming the key of policy.json that would allow it.
 */
int request_policy_check(const struct policy *policy, const struct request *request, struct error *error);

#endif
