/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - argv and JSON -> struct request. Unknown keys, repeated keys, wrong types, NUL bytes, nesting too deep
 * and input too long are refused, naming the key.
 */
#ifndef FLEXGRAFT_REQUEST_H
#define FLEXGRAFT_REQUEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "container.h"
#include "error.h"
#include "mount_options.h"

/* One bit per sort of request: the table of keys says which key belongs to which. */
enum request_kind {
        REQUEST_MOUNT_BIND = 1,
        REQUEST_MOUNT_BLOCK = 2,
        REQUEST_MOUNT_REMOVE = 4,
        REQUEST_MOUNT_LIST = 8,
        REQUEST_MOUNT_CONTAINER = 16, /* mount-container-to-container */
        REQUEST_MOUNT_TMPFS = 32,
        REQUEST_MOUNT_OVERLAY = 64,
        REQUEST_MOUNT_BATCH = 128,
};

#define REQUEST_LAYERS_MAX 64
#define REQUEST_ENTRIES_MAX 256
#define REQUEST_ID_NONE UINT32_MAX

/* How owners are made right (DESIGN.md section 2). */
enum request_ids { IDS_AUTO, IDS_IDMAPPED, IDS_USERNS, IDS_REMAP, IDS_HOST };

struct request {
        enum request_kind kind;
        void *json; /* owns every string below */
        struct container_reference container;
        bool has_container;
        const char *source; /* what is mounted, in the helper's own terms; "tmpfs" and "overlay" of themselves */
        struct container_reference from;       /* container-to-container: whose source it is */
        char target[PATH_MAX];                 /* normal; "" when not given */
        const char *id;                        /* NULL: derived */
        const char *fs_type;                   /* NULL: found out */
        const char *lower[REQUEST_LAYERS_MAX]; /* overlay: the topmost first */
        size_t lower_count;
        const char *upper; /* NULL: read-only */
        const char *work;
        uint32_t uid; /* tmpfs: of its root directory, as the container counts; REQUEST_ID_NONE: its root's */
        uint32_t gid;
        struct request *entries; /* batch: owned; parents before children */
        size_t entry_count;
        size_t index; /* of a batch's entry: where in the request it was */
        struct mount_options options;
        enum request_ids ids;
        bool read_only;
        bool recursive;
        bool mkdir;
        bool locked;
        bool dry_run;
        bool force;
        bool raw;          /* block: the device itself */
        bool mkdir_source; /* container-to-container: make a missing source directory */
        bool replace;
        int timeout_seconds;
};

/*
 * request_parse() - the one argument of a program: a JSON object, or "-" to read it from standard input.
 *
 * Gives:   ret_request, released by request_release(), also after a failure.
 * Errors:  operation OPERATION_PARSE, the key as subject; the program then exits 2.
 */
int request_parse(struct request *ret_request, enum request_kind kind, int argc, char **argv, struct error *error);

/*
 * request_parse_mounts() - the entries of a batch for one container, from a JSON array or one object of it: what
 * mount-batch takes as "mounts". For whoever has the JSON already.
 *
 * Takes:   json, borrowed; it must live as long as the request.
 * Gives:   entries added to request, which is of the kind REQUEST_MOUNT_BATCH.
 */
int request_parse_mounts(struct request *request, const char *key, const void *json, struct error *error);

/* request_begin() - an empty request with the defaults. */
void request_begin(struct request *ret_request, enum request_kind kind);

/* request_finish() - once everything is said: what is missing or does not fit together, and the defaults. */
int request_finish(struct request *request, struct error *error);

/* request_kind_word() - "bind", "block", ...: what a batch's entry has as "type". */
const char *request_kind_word(enum request_kind kind);

void request_release(struct request *request);
#define cleanup_request __attribute__((cleanup(request_release)))

#endif
