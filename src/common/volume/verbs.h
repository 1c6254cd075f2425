/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.h - the verbs, and what a driver can do by its name: one program is installed under many.
 *
 * It uses only string functions of the C library: where flexdriver begins there are no others (src/flexdriver/bare.h).
 */
#ifndef FLEXGRAFT_VOLUME_VERBS_H
#define FLEXGRAFT_VOLUME_VERBS_H

#include <stdbool.h>

#include "state/volume_record.h"

/* Traits of verbs. */
#define VERB_READS_OPTIONS (1U << 0) /* beyond the volume's name */
#define VERB_OF_DEVICE (1U << 1)     /* only volumes with a device have it */
#define VERB_OF_FILESYSTEM (1U << 2) /* it makes, checks or grows the filesystem of a device */
#define VERB_OF_GROWTH (1U << 3)     /* volumes without a device have it, too, if they grow */

/*
 * VOLUME_VERBS(X) - X(NAME, word, letters, arguments, traits) for each verb. A letter says what an argument is: j the
 * options, n the node, v the device, d a directory, N the volume's name, + and - sizes.
 */
/* clang-format off */
#define VOLUME_VERBS(X) \
        X(INIT, init, "", VERB_ARGUMENTS_INIT, 0) \
        X(GETVOLUMENAME, getvolumename, "j", VERB_ARGUMENTS_GETVOLUMENAME, 0) \
        X(ATTACH, attach, "jn", VERB_ARGUMENTS_ATTACH, VERB_READS_OPTIONS | VERB_OF_DEVICE) \
        X(WAITFORATTACH, waitforattach, "vj", VERB_ARGUMENTS_WAITFORATTACH, VERB_READS_OPTIONS | VERB_OF_DEVICE) \
        X(ISATTACHED, isattached, "jn", VERB_ARGUMENTS_ISATTACHED, VERB_READS_OPTIONS | VERB_OF_DEVICE) \
        X(DETACH, detach, "Nn", VERB_ARGUMENTS_DETACH, VERB_OF_DEVICE) \
        X(MOUNTDEVICE, mountdevice, "dvj", VERB_ARGUMENTS_MOUNTDEVICE, \
          VERB_READS_OPTIONS | VERB_OF_DEVICE | VERB_OF_FILESYSTEM) \
        X(UNMOUNTDEVICE, unmountdevice, "d", VERB_ARGUMENTS_UNMOUNTDEVICE, VERB_OF_DEVICE) \
        X(MOUNT, mount, "dj", VERB_ARGUMENTS_MOUNT, VERB_READS_OPTIONS) \
        X(UNMOUNT, unmount, "d", VERB_ARGUMENTS_UNMOUNT, 0) \
        X(EXPANDVOLUME, expandvolume, "jd+-", VERB_ARGUMENTS_EXPANDVOLUME, \
          VERB_READS_OPTIONS | VERB_OF_DEVICE | VERB_OF_GROWTH) \
        X(EXPANDFS, expandfs, "jvd+-", VERB_ARGUMENTS_EXPANDFS, \
          VERB_READS_OPTIONS | VERB_OF_DEVICE | VERB_OF_FILESYSTEM)

#define VERB_ARGUMENTS_INIT ""
#define VERB_ARGUMENTS_GETVOLUMENAME "JSON"
#define VERB_ARGUMENTS_ATTACH "JSON NODE"
#define VERB_ARGUMENTS_WAITFORATTACH "DEVICE JSON"
#define VERB_ARGUMENTS_ISATTACHED "JSON NODE"
#define VERB_ARGUMENTS_DETACH "NAME NODE"
#define VERB_ARGUMENTS_MOUNTDEVICE "DIR DEVICE JSON"
#define VERB_ARGUMENTS_UNMOUNTDEVICE "DIR"
#define VERB_ARGUMENTS_MOUNT "DIR JSON"
#define VERB_ARGUMENTS_UNMOUNT "DIR"
#define VERB_ARGUMENTS_EXPANDVOLUME "JSON DIR NEW_SIZE OLD_SIZE"
#define VERB_ARGUMENTS_EXPANDFS "JSON DEVICE DIR NEW_SIZE OLD_SIZE"
/* clang-format on */

#define VERB_ENUM(name, word, letters, arguments, traits) VERB_##name,
enum verb { VOLUME_VERBS(VERB_ENUM) VERBS };

/* Of sets of verbs, as those of a key's programs (base/key.h). */
#define VERB_BIT(name) (1U << VERB_##name)
#define VERBS_OF_SIZES (VERB_BIT(EXPANDVOLUME) | VERB_BIT(EXPANDFS))

/* volume_verb_word() - "attach". */
const char *volume_verb_word(enum verb verb);

/* volume_verb_is() - whether a verb has the trait; no other word has one. */
bool volume_verb_is(enum verb verb, unsigned trait);

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

/* volume_type_owns() - whether the filesystem of volumes of this type is theirs alone: 1 or 0. -ENOENT: no type. */
int volume_type_owns(const char *type);

/*
 * volume_driver_init() - the answer to init, one line. It names every capability: kubelet has defaults of its own for
 * those that are left out.
 */
const char *volume_driver_init(const char *driver);

/* The answer to a verb that the driver does not have; kubelet remembers it. The program exits 1. */
#define VOLUME_DRIVER_NOT_SUPPORTED                                                                                    \
        "{\"status\":\"Not supported\",\"message\":\"no volume of this driver has such a verb\"}\n"

#endif
