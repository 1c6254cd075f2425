/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.h - what a driver of some name is for. One program is installed under many names.
 *
 * Of the C library it needs only what compares and copies strings: flexdriver has no more (src/flexdriver/bare.h).
 */
#ifndef FLEXGRAFT_VOLUME_VERBS_H
#define FLEXGRAFT_VOLUME_VERBS_H

#include <stdbool.h>

#include "state/volume_record.h"

enum verb {
        VERB_INIT,
        VERB_GETVOLUMENAME,
        VERB_ATTACH,
        VERB_WAITFORATTACH,
        VERB_ISATTACHED,
        VERB_DETACH,
        VERB_MOUNTDEVICE,
        VERB_UNMOUNTDEVICE,
        VERB_MOUNT,
        VERB_UNMOUNT,
        VERB_EXPANDVOLUME,
        VERB_EXPANDFS,
        VERBS
};

/* volume_verb_word() - "attach". */
const char *volume_verb_word(enum verb verb);

/* volume_verb_find() - the verb of a word; VERBS for no verb. */
enum verb volume_verb_find(const char *word);

/*
 * volume_driver_name() - the driver that a program was run as: the last directory of argv[0] with a ~ in its name,
 * where "verbs" may follow. Gives VOLUME_DRIVER_MAX bytes, "" where there is none.
 */
void volume_driver_name(const char *argv0, char *ret_driver);

/* volume_driver_can() - whether any kind of volume behind this name will ever have the verb. */
bool volume_driver_can(const char *driver, enum verb verb);

/* volume_kind_has_device() - whether volumes of this type are attached before they are mounted. */
bool volume_kind_has_device(const char *kind);

/*
 * volume_driver_init() - the answer to init, a line: every capability, since kubelet has defaults of its own for what
 * is left out.
 */
const char *volume_driver_init(const char *driver);

/* The answer to a verb that the driver has not; kubelet remembers it. The program exits 1. */
#define VOLUME_DRIVER_NOT_SUPPORTED                                                                                    \
        "{\"status\":\"Not supported\",\"message\":\"no volume of this driver has such a verb\"}\n"

#endif
