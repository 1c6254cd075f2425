/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what volume-create, volume-delete, volume-list and volume-capacity are asked for.
 */
#ifndef FLEXGRAFT_PROVISION_REQUEST_H
#define FLEXGRAFT_PROVISION_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/key.h"

enum provision_verb { PROVISION_CREATE, PROVISION_DELETE, PROVISION_LIST, PROVISION_CAPACITY };

/* The bit of a verb in the table of keys. */
#define PROVISION_BIT(verb) (1U << (verb))

extern const struct key_table provision_keys;

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
        const char *operation;
        const json_t *parameters; /* an object of strings */
        uint64_t size_bytes;      /* 0: nothing was said */
        bool match;
        bool keeps_content; /* "eraseAfter": false */
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
