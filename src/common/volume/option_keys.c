/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/option_keys.h"

#include <string.h>

#include "base/text.h"
#include "process/log.h"
#include "volume/kind_words.h"

#define TYPE_ENUM(word, has_device, owned) TYPE_##word,
enum { VOLUME_TYPES(TYPE_ENUM, ) TYPES };

#define BIT(word) (1U << TYPE_##word)
#define EPHEMERAL (1U << TYPES)
#define ALL ((1U << (TYPES + 1)) - 1)
#define OF_POOLS (BIT(loop) | BIT(lvm) | BIT(pmem))
#define WITH_DEVICE (OF_POOLS | BIT(block))

#define TYPE_WORD(word, has_device, owned) #word,
static const char *const types[] = { VOLUME_TYPES(TYPE_WORD, ) NULL };
static const char *const groups[] = { VOLUME_TYPES(TYPE_WORD, ) "ephemeral", NULL };
static const char *const modes[] = { "ro", "rw", NULL };

static const struct key keys[] = {
        { "kubernetes.io/pvOrVolumeName", ALL, 0, KEY_STRING,
          .help = "name of the volume; kubelet gives it, and name stands for it in a call by hand" },
        { "kubernetes.io/fsType", ALL, 0, KEY_STRING,
          .help = "filesystem of the volume; as fsType, which it overrides" },
        { "kubernetes.io/readwrite", ALL, 0, KEY_WORD, .words = modes, .help = "whether the volume is read-only" },
        { "type", ALL, 0, KEY_WORD, .words = types,
          .help = "type of the volume; may be left out where the driver's name or the other options tell it" },
        { "name", ALL, 0, KEY_STRING, .help = "name of the volume, where kubelet gives none" },
        { "fsType", ALL, 0, KEY_STRING, .help = "filesystem of the volume: what it is mounted as, or formatted with" },
        { "readOnly", ALL, 0, KEY_BOOLEAN, .help = "true: mount read-only" },
        { "mountOptions", ALL, 0, KEY_STRING,
          .help = "options of the mount and of the filesystem, separated by commas" },
        { "pool", OF_POOLS | EPHEMERAL, 0, KEY_STRING, .help = "the pool that the volume is in, pools.d/POOL.json" },
        { "image", BIT(loop), 0, KEY_STRING, .help = "name of the image file in the pool; NAME.img if absent" },
        { "size", BIT(loop) | BIT(tmpfs) | EPHEMERAL, 0, KEY_SIZE,
          .help = "bytes, or with k, m, g, t; of an image that is made if missing, or of the tmpfs" },
        { "preallocate", BIT(loop), 0, KEY_BOOLEAN, .help = "true: allocate the space of a new image at once" },
        { "source", BIT(block) | BIT(bind) | BIT(nfs), 0, KEY_STRING,
          .help = "block: path of a device, or UUID=, LABEL=, PARTUUID= or PARTLABEL= and its value; bind: absolute "
                  "path "
                  "of a directory on the node; nfs: \"host:/path\"" },
        { "device", BIT(block), 0, KEY_STRING, .help = "the same as source" },
        { "path", BIT(bind) | BIT(nfs), 0, KEY_STRING, .help = "bind: the same as source; nfs: as share" },
        { "recursive", BIT(bind), 0, KEY_BOOLEAN, .help = "true: with the mounts below the source" },
        { "mode", BIT(tmpfs), 0, KEY_STRING, .preset = "0777",
          .help = "permissions of the root directory, octal digits" },
        { "inodes", BIT(tmpfs), 0, KEY_STRING, .help = "how many files, directories and links it may hold" },
        { "server", BIT(nfs), 0, KEY_STRING, .help = "host name or address of the server, together with share" },
        { "share", BIT(nfs), 0, KEY_STRING, .help = "exported path on the server" },
        { "volumegroup", BIT(lvm), 0, KEY_STRING, .help = "volume group that the logical volume is in" },
        { "volumeID", BIT(lvm) | BIT(pmem), 0, KEY_STRING,
          .help = "name of the logical volume, or of the namespace in the pool; the volume's name if absent" },
        { "ephemeral", OF_POOLS, 0, KEY_BOOLEAN,
          .help = "true: make the volume for the pod that mounts it, and delete it with the mount" },
        { "profile", EPHEMERAL, 0, KEY_STRING, .help = "profile of profiles.json to make it by" },
        { "usage", EPHEMERAL, 0, KEY_STRING, .help = "of a pool of persistent memory: AppDirect or FileIO" },
        { "eraseAfter", EPHEMERAL, 0, KEY_BOOLEAN, .preset = "true", .help = "false: do not overwrite the content" },
        { "kataContainers", WITH_DEVICE, 0, KEY_BOOLEAN,
          .help = "true: the volume is for virtual machines of Kata Containers, as an image with DAX" },
};

const struct key_table option_keys = { .rows = keys, .count = sizeof keys / sizeof keys[0], .groups = groups };

void option_keys_tell(const json_t *options)
{
        const char *name;
        const json_t *value;

        json_object_foreach ((json_t *)options, name, value) {
                const struct key *key = key_find(&option_keys, ALL, name);
                const char *text = json_string_value(value);

                if (key == NULL && !text_starts(name, "kubernetes.io/"))
                        log_say("the option \"%.64s\" means nothing here", name);
                if (key != NULL && key->type == KEY_BOOLEAN && text != NULL && text[0] != '\0' &&
                    strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
                        log_say("the option \"%.64s\" is neither true nor false", name);
        }
}
