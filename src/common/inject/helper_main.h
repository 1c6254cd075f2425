/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_main.h - the one body of the mount programs.
 */
#ifndef FLEXGRAFT_INJECT_HELPER_MAIN_H
#define FLEXGRAFT_INJECT_HELPER_MAIN_H

#include "inject/reply.h"
#include "inject/request/request_keys.h"
#include "inject/request/source.h"
#include "process/program.h"

struct helper {
        struct program program;
        enum request_kind kind;
        const struct source_kind *const *sources; /* its kind of mount, ended by NULL; NULL: it mounts nothing */
        const struct volume_releaser *releaser;   /* as in struct request */
};

/* HELPER_SCHEMA(keys, replies) - what a mount helper takes and replies (enum inject_replies). */
#define HELPER_SCHEMA(keys, replies_of)                                                                                \
        &(const struct schema)                                                                                         \
        {                                                                                                              \
                .request = &(keys), .programs = 1, .reply_programs = (replies_of), .replies = inject_reply_forms,      \
                .people = inject_people                                                                                \
        }

/* helper_main() - one request, one mount placed or removed, one reply. Returns the program's exit status. */
int helper_main(const struct helper *helper, int argc, char **argv);

#endif
