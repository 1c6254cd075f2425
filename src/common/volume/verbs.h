/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.h - the verbs, and what a driver can do by its name: one program is installed under many.
 *
 * It uses only string functions of the C library: flexdriver has no others (src/flexdriver/bare.h).
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
 * volume_driver_name() - the driver that a program was run as: the last directory of argv[0], VENDOR~DRIVER, before
 * "verbs" if that follows. Gives VOLUME_DRIVER_MAX bytes; "" where there is no such directory.
 */
void volume_driver_name(const char *argv0, char *ret_driver);

/* volume_driver_can() - whether any volume of a driver of this name can have the verb. */
bool volume_driver_can(const char *driver, enum verb verb);

/* volume_kind_has_device() - whether volumes of this type are attached before they are mounted. */
bool volume_kind_has_device(const char *kind);

/*
 * volume_driver_init() - the answer to init, one line. It names every capability: kubelet has defaults of its own for
 * those that are left out.
 */
const char *volume_driver_init(const char *driver);

/* The answer to a verb that the driver does not have; kubelet remembers it. The program exits 1. */
#define VOLUME_DRIVER_NOT_SUPPORTED                                                                                    \
        "{\"status\":\"Not supported\",\"message\":\"no volume of this driver has such a verb\"}\n"

#endif
