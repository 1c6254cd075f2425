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

/* volume_kind_of_driver() - the kind that a driver's name, VENDOR~KIND, restricts it to; NULL for none. */
const struct volume_kind *volume_kind_of_driver(const char *driver);

/*
 * volume_kind_requested() - the kind that the options "type" and "ephemeral" say. Gives NULL where they say nothing.
 *
 * Errors: EINVAL for no type of volume, and where the options and the driver's name contradict each other.
 */
int volume_kind_requested(const struct volume_request *request, const struct volume_kind *of_driver,
                          const struct volume_kind **ret_kind, struct error *error);

/* volume_kind_guess() - the kind that the other options imply; NULL where they imply none. */
const struct volume_kind *volume_kind_guess(const struct volume_request *request);

/*
 * volume_kind_known() - the kind of a volume whose options do not say it: the record's (of_record, its word; NULL: there is
 * no record), else the driver's, else that of what volume-create made under this name. NULL: none of them knows.
 */
const struct volume_kind *volume_kind_known(const char *state_dir, const char *of_record,
                                            const struct volume_kind *of_driver, const char *name);

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
