/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"

#define REQUEST_MAX_BYTES ((size_t)1024 * 1024)
#define SECRET_PREFIX "kubernetes.io/secret/"

static const struct {
        const char *arguments; /* a letter each */
        const char *usage;
} verbs[VERBS] = {
#define ROW(name, word, letters, arguments) { letters, arguments },
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

static int parse_options(struct volume_request *request, const char *text, struct error *error)
{
        const char *value;
        int r;

        if (strcmp(text, "-") == 0)
                r = json_text_parse_stdin(REQUEST_MAX_BYTES, &request->options, error);
        else if (strlen(text) > REQUEST_MAX_BYTES)
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

        if ((r = volume_request_option(request, "kubernetes.io/pvOrVolumeName", &value, error)) < 0)
                return r;
        if (value == NULL && (r = volume_request_option(request, "name", &value, error)) < 0)
                return r;
        if (value == NULL)
                return json_value_refuse(error, "kubernetes.io/pvOrVolumeName", "the volume has no name");
        if (!text_copy(request->name, sizeof request->name, value))
                return json_value_refuse(error, "kubernetes.io/pvOrVolumeName", "is too long");

        if ((r = volume_request_option(request, "kubernetes.io/fsType", &value, error)) < 0 ||
            (value == NULL && (r = volume_request_option(request, "fsType", &value, error)) < 0))
                return r;
        if (value != NULL && (!text_copy(request->fs_type, sizeof request->fs_type, value) ||
                              strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(value)))
                return json_value_refuse(error, "kubernetes.io/fsType", "is not a filesystem's name");

        if ((r = volume_request_option(request, "kubernetes.io/readwrite", &value, error)) < 0)
                return r;
        if (value != NULL && strcmp(value, "ro") != 0 && strcmp(value, "rw") != 0)
                return json_value_refuse(error, "kubernetes.io/readwrite", "must be \"ro\" or \"rw\"");
        request->read_only = value != NULL && strcmp(value, "ro") == 0;
        if ((r = volume_request_option(request, "readOnly", &value, error)) < 0)
                return r;
        request->read_only = request->read_only || (value != NULL && strcmp(value, "true") == 0);

        if ((r = volume_request_option(request, "mountOptions", &value, error)) < 0 ||
            (value != NULL && (r = mount_options_add_list(&request->mount_options, value, error)) < 0))
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
