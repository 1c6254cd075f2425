/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wanted.h - what the node's configuration wants of it: its files, each a row of host-check, and the needs of the pools,
 * profiles and kinds that they name.
 */
#ifndef FLEXGRAFT_HOST_WANTED_H
#define FLEXGRAFT_HOST_WANTED_H

#include <jansson.h>
#include <stdbool.h>

#include "base/need.h"
#include "host/finding.h"
#include "state/config.h"

#define WANTED_FILES_MAX 520 /* as many pools as there may be (pool/pool.c), as many profiles, and the other files */
#define WANTED_NAME_MAX 160

/* A file of the configuration, a profile of one, or a pool. */
struct wanted_file {
        char name[WANTED_NAME_MAX]; /* "config.json", "profile db", "pool fast" */
        bool pool;                  /* it can be measured (wanted_pool_measure()) */
        bool selected;              /* a profile that selects a pool of this node */
        const char *advice;         /* NULL: as the message says */
        struct host_finding finding;
};

struct wanted {
        struct config config;
        json_t *needs; /* what names them -> a need_set, as an integer; owned */
        struct wanted_file files[WANTED_FILES_MAX];
        size_t file_count;
};

/*
 * wanted_read() - read all of it. A broken file is a finding, and the others count.
 *
 * Takes: kinds, an array of words (wanted_kind_words()) that must work, besides; NULL: none.
 * Gives: ret_wanted, whose needs the caller releases.
 */
int wanted_read(const json_t *kinds, struct wanted *ret_wanted, struct error *error);

/* wanted_pool_measure() - whether volumes can be made in a pool: what it is made of is really measured,
 * as far as that writes nothing and loads no module. */
void wanted_pool_measure(const struct config *config, struct wanted_file *file);

/* wanted_kind_words() - the words of all kinds of mounts and volumes, an array of strings; the caller's. */
json_t *wanted_kind_words(void);

/* wanted_by() - what has this need: an array of strings, the configuration's first; the caller's. required: whether
 * the configuration is among them. */
json_t *wanted_by(const struct wanted *wanted, enum need need, bool *ret_required);

#endif
