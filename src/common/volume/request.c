/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "pool/pool_words.h"
#include "state/access.h"
#include "volume/kind_words.h"

#define SECRET_PREFIX "kubernetes.io/secret/"

static const struct {
        const char *arguments; /* a letter each */
        const char *usage;
} verbs[VERBS] = {
#define ROW(name, word, letters, arguments, traits) { letters, arguments },
        VOLUME_VERBS(ROW)
};

int volume_request_option(const struct volume_request *request, const char *key, const char **ret_text,
                          struct error *error)
{
        const json_t *value = json_object_get(request->options, key);

        *ret_text = NULL;
        if (value == NULL || json_is_null(value))
                return 0;
        if (!json_is_string(value))
                return json_value_refuse(error, key, "must be a string");
        if (json_string_length(value) != strlen(json_string_value(value)))
                return json_value_refuse(error, key, "holds a NUL byte");
        if (json_string_length(value) > JSON_VALUE_STRING_MAX)
                return json_value_refuse(error, key, "is too long");
        if (json_string_length(value) > 0)
                *ret_text = json_string_value(value);
        return 0;
}

int volume_request_check_clone(const struct volume_request *request, const char *type, struct error *error)
{
        struct mount_options own = {}; /* without the flags of a profile, which may be for pools of several types */
        const char *text;
        int r = volume_request_option(request, "mountOptions", &text, error);

        if (r == 0 && text != NULL)
                r = mount_options_add_list(&own, text, error);
        if (r == 0 && own.fs_count > 0)
                r = fail_because(error, EINVAL, "check options", "mountOptions",
                                 "mountOptions: \"%.*s\" is an option of a filesystem, and a volume of type %s mounts "
                                 "none",
                                 (int)strcspn(own.fs_options[0], "="), own.fs_options[0], type);
        mount_options_release(&own);
        return r;
}

int volume_request_flag(const struct volume_request *request, const char *key, bool *ret_set, struct error *error)
{
        const char *text;
        int r = volume_request_option(request, key, &text, error);

        if (r < 0)
                return r;
        *ret_set = text != NULL && strcmp(text, "true") == 0;
        if (text != NULL && !*ret_set && strcmp(text, "false") != 0)
                return json_value_refuse(error, key, "must be true or false");
        return 0;
}

int volume_request_size(const struct volume_request *request, const char *key, uint64_t *ret_bytes, struct error *error)
{
        const json_t *value = json_object_get(request->options, key);
        char text[24];
        int r;

        *ret_bytes = 0;
        if (value == NULL || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0))
                return 0;
        if ((r = json_value_size(key, value, /* percent= */ false, text, sizeof text, error)) < 0)
                return r;
        (void)text_number(text, INT64_MAX, ret_bytes); /* json_value_size() made it */
        return 0;
}

static void drop_secrets(json_t *options)
{
        const char *key;
        json_t *value;
        void *next;

        json_object_foreach_safe (options, next, key, value)
                if (text_starts(key, SECRET_PREFIX))
                        (void)json_object_del(options, key); /* it is there */
}

/* Numbers and booleans become the strings that kubelet would have passed: "1", "true". */
static int spell_values(json_t *options, struct error *error)
{
        for (void *i = json_object_iter(options); i != NULL; i = json_object_iter_next(options, i)) {
                const json_t *value = json_object_iter_value(i);
                char number[24];

                if (!json_is_integer(value) && !json_is_boolean(value))
                        continue;
                (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
                if (json_object_iter_set_new(options, i,
                                             json_string(json_is_integer(value) ? number
                                                         : json_is_true(value)  ? "true"
                                                                                : "false")) < 0)
                        return fail(error, ENOMEM, OPERATION_PARSE, "the options");
        }
        return 0;
}

bool volume_name_is_inner(const char *name)
{
        static const char *const prefixes[] = { VOLUME_INNER_KATA, VOLUME_INNER_EPHEMERAL, VOLUME_INNER_NONE };

        for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
                if (text_starts(name, prefixes[i]) &&
                    strspn(name + strlen(prefixes[i]), "0123456789abcdef") == VOLUME_INNER_DIGITS &&
                    name[strlen(prefixes[i]) + VOLUME_INNER_DIGITS] == '\0')
                        return true;
        return false;
}

static int take_name(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        const char *text = json_string_value(value);

        if (volume_name_is_inner(text))
                return json_value_refuse(error, name, "is kept for a part of another volume");
        return text_copy(request->name, sizeof request->name, text) ? 0 : json_value_refuse(error, name, "is too long");
}

static int take_fs_type(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        const char *text = json_string_value(value);

        if (!text_copy(request->fs_type, sizeof request->fs_type, text) ||
            strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(text))
                return json_value_refuse(error, name, "is not a filesystem's name");
        return 0;
}

#define FS_TYPE KEY_STRING, .maximum = VOLUME_FS_TYPE_MAX - 1, .pattern = "^[a-z0-9_]*$", .take = take_fs_type

/* ro and true, of any of these rows, make a volume read-only. */
static int take_access(const char *const *words, void *object, const char *name, const json_t *value,
                       struct error *error)
{
        struct volume_request *request = object;
        size_t index;
        int r = key_word(words, name, value, &index, error);

        if (r == 0 && index == 0)
                request->read_only = true;
        return r;
}

static const char *const modes[] = { "ro", "rw", NULL };

static int take_mode(void *object, const char *name, const json_t *value, struct error *error)
{
        return take_access(modes, object, name, value, error);
}

static int take_read_only(void *object, const char *name, const json_t *value, struct error *error)
{
        static const char *const words[] = { "true", "false", NULL };

        return take_access(words, object, name, value, error);
}

static int take_mount_options(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;

        (void)name;
        return mount_options_add_list(&request->mount_options, json_string_value(value), error);
}

static int take_target_type(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        size_t index;
        int r = key_word(access_target_types, name, value, &index, error);

        if (r == 0)
                request->block = index == 1;
        return r;
}

static int take_access_mode(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        size_t index;
        int r = key_word(access_modes, name, value, &index, error);

        if (r == 0)
                request->access_mode = access_modes[index];
        return r;
}

/* In the order of enum id_mappable. */
static const char *const id_mappable_words[] = { POOL_ID_MAPPABLE_WORDS, NULL };

static int take_id_mappable(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        size_t index;
        int r = key_word(id_mappable_words, name, value, &index, error);

        if (r == 0)
                request->id_mappable = (enum id_mappable)index;
        return r;
}

static int take_cache(void *object, const char *name, const json_t *value, struct error *error)
{
        struct volume_request *request = object;
        size_t index;
        int r = key_word(remap_cache_words, name, value, &index, error);

        if (r == 0)
                request->cache = (enum remap_cache)index;
        return r;
}

/* What is remembered of files is right as long as one daemon alone changes them. */
static int check_cache(const struct volume_request *request, struct error *error)
{
        if (request->cache == REMAP_CACHE_AUTO)
                return 0;
        if (request->id_mappable != ID_MAPPABLE_ALWAYS)
                return json_value_refuse(error, "cache", "\"always\" needs \"idMappable\": \"always\"");
        return request->access_mode == NULL || !access_is_of_nodes(request->access_mode)
                       ? 0
                       : json_value_refuse(error, "cache",
                                           "\"always\" is for volumes that one node alone changes, and by the access "
                                           "mode several use it");
}

/* volume_kind_read() reads it: a program that only wants the name links no kind. */
static int take_type(void *object, const char *name, const json_t *value, struct error *error)
{
        (void)object;
        (void)name;
        (void)value;
        (void)error;
        return 0;
}

#define COMMA ,
static const char *const types[] = { VOLUME_TYPES(VOLUME_TYPE_WORD, COMMA), NULL };

/* Every value is a string here (spell_values()). A row overrides one further down that says the same. */
static const struct key keys[] = {
        { "kubernetes.io/pvOrVolumeName", 1, 0, KEY_STRING, .maximum = VOLUME_NAME_MAX - 1, .take = take_name,
          .help = "name of the volume" },
        { "kubernetes.io/fsType", 1, 0, FS_TYPE, .help = "as fsType, which it overrides" },
        { "kubernetes.io/readwrite", 1, 0, KEY_WORD, .words = modes, .take = take_mode,
          .help = "whether the volume is read-only" },
        { "type", 1, 0, KEY_WORD, .words = types, .take = take_type,
          .help = "the kind of the volume; without it the driver's name or the options tell" },
        { "name", 1, 0, KEY_STRING, .maximum = VOLUME_NAME_MAX - 1, .take = take_name,
          .help = "the volume's name, where kubelet gives none" },
        { "fsType", 1, 0, FS_TYPE, .help = "filesystem that a blank device gets: ext4, xfs or btrfs" },
        { "readOnly", 1, 0, KEY_BOOLEAN, .take = take_read_only, .preset = "false", .help = "mount it read-only" },
        { "mountOptions", 1, 0, KEY_STRING, .take = take_mount_options, .preset = "nosuid,nodev",
          .help = "as for mount(8), separated by commas" },
        { "targetType", 1, 0, KEY_WORD, .words = access_target_types, .take = take_target_type, .preset = "mount",
          .help = "block: a loop device on the volume's device is placed on the file DIR, and no filesystem is "
                  "mounted" },
        { "accessMode", 1, 0, KEY_WORD, .words = access_modes, .take = take_access_mode,
          .help = "of CSI; a mode that volume-create recorded overrides it if that allows less" },
        { "idMappable", 1, 0, KEY_WORD, .words = id_mappable_words, .take = take_id_mappable, .preset = "auto",
          .help = "a filesystem that cannot be id-mapped, as NFS, is mounted through remap-daemon, so that the runtime "
                  "of a pod with a user namespace can: always; never; auto: where kubelet has noted that the pod has "
                  "one" },
        { "cache", 1, 0, KEY_WORD, .words = remap_cache_words, .take = take_cache, .preset = "auto",
          .help = "always: no other node, and nothing on the server, changes the files while pods have the volume, so "
                  "that remap-daemon asks for nothing twice; with \"idMappable\": \"always\"" },
};
const struct key_table volume_request_keys = KEY_TABLE(keys);

static int parse_options(struct volume_request *request, const char *text, struct error *error)
{
        const char *value;
        int r;

        if (strcmp(text, "-") == 0)
                r = json_text_parse_stdin(KEY_REQUEST_MAX_BYTES, &request->options, error);
        else if (strlen(text) > KEY_REQUEST_MAX_BYTES)
                r = json_value_refuse(error, "the options", "longer than 1 MiB");
        else
                r = json_text_parse(text, strlen(text), &request->options, error);
        if (r < 0) {
                json_text_hide(error); /* it may quote a secret */
                if (strcmp(error->subject, "the request") == 0)
                        text_copy(error->subject, sizeof error->subject, "the options");
                return r;
        }
        if (!json_is_object(request->options))
                return json_value_refuse(error, "the options", "must be a JSON object");
        drop_secrets(request->options);
        if ((r = spell_values(request->options, error)) < 0)
                return r;

        for (size_t i = volume_request_keys.count; i-- > 0;)
                if ((r = volume_request_option(request, keys[i].name, &value, error)) < 0 ||
                    (value != NULL && (r = key_take(&keys[i], keys[i].name, request,
                                                    json_object_get(request->options, keys[i].name), error)) < 0))
                        return r;
        if (request->name[0] == '\0')
                return json_value_refuse(error, keys[0].name, "the volume has no name");
        if ((r = check_cache(request, error)) < 0)
                return r;
        mount_options_default(&request->mount_options);
        request->read_only = request->read_only || request->mount_options.read_only;
        return 0;
}

static int parse_size(const char *text, const char *name, uint64_t *ret_bytes, struct error *error)
{
        if (!text_number(text, INT64_MAX, ret_bytes))
                return json_value_refuse(error, name, "must be a number of bytes");
        return 0;
}

static int parse_argument(struct volume_request *request, char letter, const char *text, struct error *error)
{
        uint64_t old_size_bytes;

        switch (letter) {
        case 'j':
                return parse_options(request, text, error);
        case 'n':
                request->node = text;
                return 0;
        case 'v':
                return 0; /* an earlier answer of attach; the record and the options are newer */
        case 'N':
                if (text[0] == '\0' || !text_copy(request->name, sizeof request->name, text))
                        return json_value_refuse(error, "NAME", "must be a volume's name");
                return 0;
        case 'd':
                if (text_path_normal(text, request->dir) < 0 || text_climbs(text) || strcmp(request->dir, "/") == 0)
                        return json_value_refuse(error, "DIR", "must be an absolute path without \"..\"");
                return 0;
        case '+':
                return parse_size(text, "NEW_SIZE", &request->new_size_bytes, error);
        default:
                return parse_size(text, "OLD_SIZE", &old_size_bytes, error); /* only checked */
        }
}

int volume_request_parse(struct volume_request *ret_request, enum verb verb, int argc, char **argv, struct error *error)
{
        const char *letters = verbs[verb].arguments;
        int r;

        ret_request->verb = verb;
        if ((size_t)argc - 1 != strlen(letters))
                return fail_because(error, EINVAL, OPERATION_PARSE, volume_verb_word(verb), "%s takes: %s",
                                    volume_verb_word(verb), letters[0] == '\0' ? "nothing" : verbs[verb].usage);
        for (int i = 1; i < argc; i++)
                if ((r = parse_argument(ret_request, letters[i - 1], argv[i], error)) < 0)
                        return r;
        return 0;
}

void volume_request_release(struct volume_request *request)
{
        mount_options_release(&request->mount_options);
        json_decref(request->options);
        request->options = NULL;
}
