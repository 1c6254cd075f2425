/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.h - the table of all kinds of volumes, and what it says about a request.
 */
#ifndef FLEXGRAFT_VOLUME_KINDS_H
#define FLEXGRAFT_VOLUME_KINDS_H

#include <stdbool.h>

#include "base/error.h"
#include "volume/kind.h"
#include "volume/request.h"

/* Every kind, ended by NULL. */
extern const struct volume_kind *const volume_kinds[];

/* volume_kind_find() - the kind of a record's type; NULL for none. */
const struct volume_kind *volume_kind_find(const char *word);

/* volume_kind_tagged() - the kind whose devices are found without a record. */
const struct volume_kind *volume_kind_tagged(void);

/* volume_kind_of_driver() - the kind that a driver's name, VENDOR~KIND, restricts it to; NULL for none. */
const struct volume_kind *volume_kind_of_driver(const char *driver);

/* What shows of which kind a volume is, in the order in which it counts. NULL: that shows nothing. */
struct volume_signs {
        const struct volume_kind *requested; /* by the options "type" and "ephemeral" */
        const char *of_record;               /* the word in its record */
        const struct volume_kind *of_driver; /* by the driver's name */
        const char *state_dir;               /* of the records of volume-create, which may have made one of this name */
        const char *name;                    /* with state_dir */
        const struct volume_kind *guessed;   /* by the other options */
};

/* volume_kind_choose() - the kind of a volume. NULL: nothing shows it. */
const struct volume_kind *volume_kind_choose(const struct volume_signs *signs);

/*
 * volume_kind_read() - what the options show, and the driver's name. Gives: ret_signs, without records; after a failure
 * without "requested".
 *
 * Errors: EINVAL for no type of volume, and where the options and the driver's name contradict each other.
 */
int volume_kind_read(const struct volume_request *request, const struct volume_kind *of_driver,
                     struct volume_signs *ret_signs, struct error *error);

/*
 * volume_kind_wrapper() - the kind that wraps this one, as the options say. Gives NULL for none, and for a
 * kind whose make() asks itself.
 *
 * Errors: EINVAL the option is no boolean, or the kind has no device.
 */
int volume_kind_wrapper(const struct volume_request *request, const struct volume_kind *kind,
                        const struct volume_kind **ret_wrapper, struct error *error);

/*
 * volume_kind_check_options() - that volumes of this kind have every option of the request, but for those that kubelet
 * adds. Errors: EINVAL for the first that they do not have.
 */
int volume_kind_check_options(const struct volume_request *request, const struct volume_kind *kind,
                              struct error *error);

/*
 * volume_kind_flag() - what the request says for a boolean option that a row names, as kind->allocates. key: NULL: there is
 * no such option, which is false. Errors: EINVAL it is no boolean.
 */
int volume_kind_flag(const struct volume_request *request, const char *key, bool *ret_set, struct error *error);

/* volume_option_find() - an option of this key, of any kind, but not of all (volume/request.h); NULL for none. */
const struct volume_option *volume_option_find(const char *key);

/*
 * volume_kind_hint() - what to do about a failure: from the row of the request's kind, or of any where it does not say;
 * else from the pools' rows, or for all kinds. NULL: the message is enough.
 */
const char *volume_kind_hint(const struct volume_request *request, const struct error *error);

#endif
