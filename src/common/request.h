/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - argv and JSON -> struct request. Unknown keys, repeated keys, wrong types, NUL bytes, nesting too deep
 * and input too long are refused, naming the key.
 */
#ifndef FLEXGRAFT_REQUEST_H
#define FLEXGRAFT_REQUEST_H

#include <limits.h>
#include <stdbool.h>

#include "container.h"
#include "error.h"
#include "mount_options.h"

/* One bit per sort of request: the table of keys says which key belongs to which. */
enum request_kind {
        REQUEST_MOUNT_BIND = 1,
        REQUEST_MOUNT_BLOCK = 2,
        REQUEST_MOUNT_REMOVE = 4,
        REQUEST_MOUNT_LIST = 8,
};

/* How owners are made right (DESIGN.md section 2). */
enum request_ids { IDS_AUTO, IDS_IDMAPPED, IDS_USERNS, IDS_REMAP, IDS_HOST };

struct request {
        enum request_kind kind;
        void *json; /* owns every string below */
        struct container_reference container;
        bool has_container;
        const char *source;
        char target[PATH_MAX]; /* normal; "" when not given */
        const char *id;        /* NULL: derived */
        const char *fs_type;   /* NULL: found out */
        struct mount_options options;
        enum request_ids ids;
        bool read_only;
        bool recursive;
        bool mkdir;
        bool locked;
        bool dry_run;
        bool force;
        int timeout_seconds;
};

/*
 * request_parse() - the one argument of a program: a JSON object, or "-" to read it from standard input.
 *
 * Gives:   ret_request, released by request_release(), also after a failure.
 * Errors:  operation OPERATION_PARSE, the key as subject; the program then exits 2.
 */
int request_parse(struct request *ret_request, enum request_kind kind, int argc, char **argv, struct error *error);

void request_release(struct request *request);
#define cleanup_request __attribute__((cleanup(request_release)))

#endif
