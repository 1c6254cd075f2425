/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - the request of a verb of the FlexVolume driver: its arguments, with the options of a volume.
 *
 * Whether a volume has an option is checked when its kind is known (volume/kinds.h). Secrets are dropped when the options
 * are parsed.
 */
#ifndef FLEXGRAFT_VOLUME_REQUEST_H
#define FLEXGRAFT_VOLUME_REQUEST_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/key.h"
#include "mount/options.h"
#include "mount/remap_settings.h"
#include "state/volume_record.h"
#include "volume/verbs.h"

#define VOLUME_FS_TYPE_MAX 32 /* terminated */

/* "idMappable", what is decided by it: volume/mappable.h. */
enum id_mappable { ID_MAPPABLE_AUTO, ID_MAPPABLE_ALWAYS, ID_MAPPABLE_NEVER };

struct volume_request {
        enum verb verb;
        char driver[VOLUME_DRIVER_MAX]; /* the driver's directory, "flexgraft~loop"; "" run by hand from elsewhere */
        bool tells_errno;           /* run from no driver's directory, not by kubelet: a failure has its "error", too */
        char name[VOLUME_NAME_MAX]; /* of the volume; "" for verbs that get none */
        const char *node;           /* borrowed from argv; NULL where the verb has none */
        char dir[PATH_MAX];         /* normal; "" */
        uint64_t new_size_bytes;
        json_t *options;                  /* the object, less secrets; owned; NULL where the verb has none */
        char fs_type[VOLUME_FS_TYPE_MAX]; /* "": none */
        bool read_only;
        bool block;              /* its device is wanted, not the filesystem on it */
        const char *access_mode; /* of CSI, a constant; NULL: none */
        enum id_mappable id_mappable;
        enum remap_cache cache; /* of what serves it then (mount/remap_settings.h) */
        struct mount_options mount_options;
};

/* The options that volumes of all kinds have; what a kind has besides them is in its row (volume/kind.h). */
extern const struct key_table volume_request_keys;

/*
 * volume_request_parse() - the arguments of a verb, argv[1] and on.
 *
 * Gives:   ret_request, released by volume_request_release(), also after a failure.
 * Errors:  OPERATION_PARSE, with a message that quotes no value.
 */
int volume_request_parse(struct volume_request *ret_request, enum verb verb, int argc, char **argv,
                         struct error *error);

/*
 * volume_request_option() - one option as text: a string as it is, a number or a boolean as written in JSON. Gives NULL
 * for one that is absent or "". Borrowed from the request. Errors: OPERATION_PARSE for an array or an object.
 */
int volume_request_option(const struct volume_request *request, const char *key, const char **ret_text,
                          struct error *error);

/* volume_request_flag() - whether one is "true"; absent, "" and "false" are not. Errors: as above; EINVAL: another word. */
int volume_request_flag(const struct volume_request *request, const char *key, bool *ret_set, struct error *error);

/* volume_request_size() - an option that is a size in bytes ("64Mi", "1G", "1048576"); 0 when it is absent. */
int volume_request_size(const struct volume_request *request, const char *key, uint64_t *ret_bytes,
                        struct error *error);

/*
 * volume_request_check_clone() - of a volume that is mounted by a clone of a mount of the node: that its own options of
 * mounts are none of a filesystem, which is not mounted anew. type: the volume's, for the message. Errors: EINVAL.
 */
int volume_request_check_clone(const struct volume_request *request, const char *type, struct error *error);

/*
 * Names of parts of volumes, which have records of their own: one of these words and as many hexadecimal digits. Others
 * could work them out, so no request of a verb may name one. VOLUME_INNER_NONE: of no volume at all. Another is VOLUME_INNER_EPHEMERAL
 * (state/volume_record.h).
 */
#define VOLUME_INNER_KATA "kata-"
#define VOLUME_INNER_NONE "none-"
#define VOLUME_INNER_DIGITS 16
bool volume_name_is_inner(const char *name);

void volume_request_release(struct volume_request *request);

#endif
