/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <unistd.h>

#include "container_id.h"
#include "file.h"
#include "text.h"

#define TEXT_MAX_BYTES ((size_t)1024 * 1024)
#define DEPTH_MAX 8
#define STRING_MAX_BYTES 4095
#define ID_MAX_BYTES 128
#define TIMEOUT_DEFAULT_S 30
#define TIMEOUT_MAX_S 3600

static const char *const ids_words[] = { "auto", "idmapped", "userns", "remap", "host" };

static int refuse(struct error *error, const char *key, const char *complaint)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: %s", key, complaint);
}

/* A string value, whole and not too long; empty ones mean nothing anywhere. */
static int take_string(const char *key, const json_t *value, size_t maximum, const char **ret_string,
                       struct error *error)
{
        if (!json_is_string(value))
                return refuse(error, key, "must be a string");
        if (strlen(json_string_value(value)) != json_string_length(value))
                return refuse(error, key, "holds a NUL byte");
        if (json_string_length(value) > maximum)
                return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: longer than %zu bytes", key, maximum);
        if (json_string_length(value) == 0)
                return refuse(error, key, "must not be empty");
        *ret_string = json_string_value(value);
        return 0;
}

/* An id becomes a file's name, of ours or of a container runtime's. */
static int take_id(const char *key, const json_t *value, const char **ret_id, struct error *error)
{
        int r = take_string(key, value, ID_MAX_BYTES, ret_id, error);

        if (r == 0 && ((*ret_id)[0] == '.' || strspn(*ret_id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                              "0123456789_.+:@-") != strlen(*ret_id)))
                return refuse(error, key, "may hold letters, digits and _.+:@- and not begin with a dot");
        return r;
}

static int take_pid(const char *key, const json_t *value, pid_t *ret_pid, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > INT_MAX)
                return refuse(error, key, "must be a process id, a whole number above 0");
        *ret_pid = (pid_t)json_integer_value(value);
        return 0;
}

static int take_proc_dir(const char *key, const json_t *value, const char **ret_path, struct error *error)
{
        int r = take_string(key, value, STRING_MAX_BYTES, ret_path, error);

        if (r == 0 && (*ret_path)[0] != '/')
                return refuse(error, key, "must be an absolute path");
        return r;
}

static int take_container_object(const char *key, const json_t *value, struct container_reference *ret_reference,
                                 struct error *error)
{
        const char *member;
        json_t *part;
        int ways;
        int r = 0;

        json_object_foreach ((json_t *)value, member, part) {
                char path[192];

                (void)snprintf(path, sizeof path, "%s.%.128s", key, member);
                if (strcmp(member, "pid") == 0)
                        r = take_pid(path, part, &ret_reference->pid, error);
                else if (strcmp(member, "id") == 0)
                        r = take_id(path, part, &ret_reference->id, error);
                else if (strcmp(member, "procDir") == 0)
                        r = take_proc_dir(path, part, &ret_reference->proc_dir, error);
                else if (strcmp(member, "runtime") == 0) {
                        r = take_string(path, part, ID_MAX_BYTES, &ret_reference->runtime, error);
                        if (r == 0 && !container_id_runtime_known(ret_reference->runtime))
                                return fail_because(error, EINVAL, OPERATION_PARSE, path, "%s: must be one of %s", path,
                                                    container_id_runtimes());
                } else
                        return fail_because(error, EINVAL, OPERATION_PARSE, path, "unknown key \"%s\"", path);
                if (r < 0)
                        return r;
        }
        ways = (ret_reference->pid != 0) + (ret_reference->id != NULL) + (ret_reference->proc_dir != NULL);
        if (ways != 1)
                return refuse(error, key, "must have one of \"pid\", \"id\" and \"procDir\"");
        if (ret_reference->runtime != NULL && ret_reference->id == NULL)
                return refuse(error, key, "has a \"runtime\" without an \"id\"");
        return 0;
}

static int take_container(struct request *request, const char *key, const json_t *value, struct error *error)
{
        request->has_container = true;
        if (json_is_integer(value))
                return take_pid(key, value, &request->container.pid, error);
        if (json_is_string(value))
                return take_id(key, value, &request->container.id, error);
        if (json_is_object(value))
                return take_container_object(key, value, &request->container, error);
        return refuse(error, key, "must be a process id, a container's id, or an object with one of them");
}

static int take_source(struct request *request, const char *key, const json_t *value, struct error *error)
{
        int r = take_string(key, value, STRING_MAX_BYTES, &request->source, error);

        if (r == 0 && request->kind == REQUEST_MOUNT_BIND && request->source[0] != '/')
                return refuse(error, key, "must be an absolute path of the node");
        if (r == 0 && request->kind == REQUEST_MOUNT_BLOCK && request->source[0] != '/' &&
            strchr(request->source, '=') == NULL)
                return refuse(error, key, "must be a device's absolute path, UUID=... or LABEL=...");
        return r;
}

static int take_target(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *path;
        int r = take_string(key, value, STRING_MAX_BYTES, &path, error);

        if (r < 0)
                return r;
        r = text_path_normal(path, request->target);
        if (r == -EINVAL)
                return refuse(error, key, "must be an absolute path, as the container sees it");
        if (r < 0)
                return refuse(error, key, "a component is longer than 255 bytes");
        if (strcmp(request->target, "/") == 0)
                return refuse(error, key, "the container's root itself cannot be a target");
        return 0;
}

static int take_options(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *text;
        const json_t *option;
        size_t i;
        int r;

        if (json_is_string(value)) {
                if (json_string_length(value) == 0)
                        return 0;
                r = take_string(key, value, STRING_MAX_BYTES, &text, error);
                return r < 0 ? r : mount_options_add_list(&request->options, text, error);
        }
        if (!json_is_array(value))
                return refuse(error, key, "must be a string or an array of strings");
        json_array_foreach (value, i, option)
                if ((r = take_string(key, option, STRING_MAX_BYTES, &text, error)) < 0 ||
                    (r = mount_options_add(&request->options, text, error)) < 0)
                        return r;
        return 0;
}

static int take_propagation(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = take_string(key, value, STRING_MAX_BYTES, &word, error);

        if (r < 0)
                return r;
        request->options.propagation = mount_options_propagation(word);
        if (request->options.propagation == 0 || word[0] == 'r')
                return refuse(error, key, "must be private, slave, shared or unbindable");
        return 0;
}

static int take_ids(struct request *request, const char *key, const json_t *value, struct error *error)
{
        const char *word;
        int r = take_string(key, value, STRING_MAX_BYTES, &word, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof ids_words / sizeof ids_words[0]; i++)
                if (strcmp(word, ids_words[i]) == 0) {
                        request->ids = (enum request_ids)i;
                        return 0;
                }
        return refuse(error, key, "must be auto, idmapped, userns, remap or host");
}

static int take_fs_type(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_string(key, value, ID_MAX_BYTES, &request->fs_type, error);
}

static int take_record_id(struct request *request, const char *key, const json_t *value, struct error *error)
{
        return take_id(key, value, &request->id, error);
}

static int take_timeout(struct request *request, const char *key, const json_t *value, struct error *error)
{
        if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > TIMEOUT_MAX_S)
                return refuse(error, key, "must be a whole number of seconds, from 1 to 3600");
        request->timeout_seconds = (int)json_integer_value(value);
        return 0;
}

static int take_replace(struct request *request, const char *key, const json_t *value, struct error *error)
{
        (void)request;
        if (!json_is_boolean(value))
                return refuse(error, key, "must be true or false");
        return json_is_true(value) ? refuse(error, key, "true is not part of this version") : 0;
}

#define MOUNTS (REQUEST_MOUNT_BIND | REQUEST_MOUNT_BLOCK)

/* Every key, the requests it belongs to, and either who takes it or which flag it sets. */
static const struct {
        const char *key;
        unsigned kinds;
        int (*take)(struct request *request, const char *key, const json_t *value, struct error *error);
        size_t flag;
} keys[] = {
        { "container", MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST, take_container, 0 },
        { "source", MOUNTS, take_source, 0 },
        { "target", MOUNTS | REQUEST_MOUNT_REMOVE, take_target, 0 },
        { "id", MOUNTS | REQUEST_MOUNT_REMOVE, take_record_id, 0 },
        { "fsType", REQUEST_MOUNT_BLOCK, take_fs_type, 0 },
        { "options", MOUNTS, take_options, 0 },
        { "propagation", MOUNTS, take_propagation, 0 },
        { "ids", MOUNTS, take_ids, 0 },
        { "timeoutSeconds", MOUNTS | REQUEST_MOUNT_REMOVE | REQUEST_MOUNT_LIST, take_timeout, 0 },
        { "replace", MOUNTS, take_replace, 0 },
        { "readOnly", MOUNTS, NULL, offsetof(struct request, read_only) },
        { "recursive", REQUEST_MOUNT_BIND, NULL, offsetof(struct request, recursive) },
        { "mkdir", MOUNTS, NULL, offsetof(struct request, mkdir) },
        { "locked", MOUNTS, NULL, offsetof(struct request, locked) },
        { "dryRun", MOUNTS | REQUEST_MOUNT_REMOVE, NULL, offsetof(struct request, dry_run) },
        { "force", REQUEST_MOUNT_REMOVE, NULL, offsetof(struct request, force) },
};

static int take_member(struct request *request, const char *key, const json_t *value, struct error *error)
{
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                if (strcmp(key, keys[i].key) != 0 || (keys[i].kinds & request->kind) == 0)
                        continue;
                if (keys[i].take != NULL)
                        return keys[i].take(request, key, value, error);
                if (!json_is_boolean(value))
                        return refuse(error, key, "must be true or false");
                *(bool *)((char *)request + keys[i].flag) = json_is_true(value);
                return 0;
        }
        return fail_because(error, EINVAL, OPERATION_PARSE, key, "unknown key \"%.128s\"", key);
}

static int check_whole(const struct request *request, struct error *error)
{
        bool mounts = (request->kind & MOUNTS) != 0;

        if (mounts && !request->has_container)
                return refuse(error, "container", "is missing");
        if (mounts && request->source == NULL)
                return refuse(error, "source", "is missing");
        if (mounts && request->target[0] == '\0')
                return refuse(error, "target", "is missing");
        if (request->kind == REQUEST_MOUNT_BIND && request->options.fs_count > 0)
                return fail_because(error, EINVAL, OPERATION_PARSE, "options",
                                    "options: \"%.*s\" is an option of a filesystem, and a bind mounts none",
                                    (int)strcspn(request->options.fs_options[0], "="), request->options.fs_options[0]);
        if (request->kind == REQUEST_MOUNT_BLOCK && request->options.recursive)
                return refuse(error, "options", "\"rbind\" is for mount-bind");
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id == NULL &&
            (!request->has_container || request->target[0] == '\0'))
                return refuse(error, "id", "is missing (or \"container\" and \"target\")");
        if (request->kind == REQUEST_MOUNT_REMOVE && request->id != NULL &&
            (request->has_container || request->target[0] != '\0'))
                return refuse(error, "id", "is enough: \"container\" and \"target\" belong to the other way to say it");
        return 0;
}

/*
 * One look over the text before it is parsed: how deep it nests, and which key comes last before a byte. A key is a
 * string followed by a colon. ret_key holds 129 bytes; "" before the first key.
 */
static bool scan(const char *text, size_t length, size_t until, char *ret_key)
{
        const char *string = NULL; /* the start of the last string seen */
        size_t string_length = 0;
        unsigned depth = 0;

        ret_key[0] = '\0';
        for (size_t i = 0; i < length && i < until; i++) {
                if (text[i] == '"') {
                        size_t start = i + 1;

                        for (i++; i < length && text[i] != '"'; i++)
                                if (text[i] == '\\')
                                        i++;
                        string = text + start;
                        string_length = (i < length ? i : length) - start;
                } else if (text[i] == ':' && string != NULL)
                        (void)snprintf(ret_key, 129, "%.*s", string_length > 128 ? 128 : (int)string_length, string);
                else if (text[i] == '{' || text[i] == '[') {
                        if (++depth > DEPTH_MAX)
                                return false;
                } else if (text[i] == '}' || text[i] == ']')
                        depth -= depth > 0 ? 1 : 0;
        }
        return true;
}

/* jansson's complaint, with the key it happened at, in words that are safe to print whatever the input was. */
static int fail_parse(const char *text, size_t length, const json_error_t *parse, struct error *error)
{
        char key[129];
        const char *quoted;

        (void)scan(text, length, parse->position > 0 ? (size_t)parse->position : 0, key);
        if (json_error_code(parse) == json_error_duplicate_key && (quoted = strchr(parse->text, '"')) != NULL) {
                /* the key as it was written, escapes and all */
                json_t *name = json_loads(quoted, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
                int r = refuse(error, json_is_string(name) ? json_string_value(name) : key, "is given twice");

                json_decref(name);
                return r;
        }
        for (char *byte = key; *byte != '\0'; byte++)
                if ((unsigned char)*byte < ' ' || (unsigned char)*byte > '~')
                        *byte = '?';
        return fail_because(error, EINVAL, OPERATION_PARSE, key[0] != '\0' ? key : "the request",
                            "%s%sline %d, column %d: %.*s", key, key[0] != '\0' ? ": " : "", parse->line, parse->column,
                            (int)strcspn(parse->text, "'"), parse->text);
}

static int parse_text(struct request *request, const char *text, size_t length, struct error *error)
{
        json_error_t parse;
        char name[129];
        const char *key;
        json_t *value;
        uint32_t seed = 0;

        if (!scan(text, length, length, name))
                return fail_because(error, EINVAL, OPERATION_PARSE, name[0] != '\0' ? name : "the request",
                                    "%s%snested deeper than %d levels", name, name[0] != '\0' ? ": " : "", DEPTH_MAX);
        /* jansson would open /dev/urandom for it; unpredictable, since a request may come from a container's owner */
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
                json_object_seed(seed | 1); /* 0 would mean: find one yourself */
        request->json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &parse);
        if (request->json == NULL)
                return fail_parse(text, length, &parse, error);
        if (!json_is_object((json_t *)request->json))
                return refuse(error, "the request", "must be a JSON object");
        json_object_foreach ((json_t *)request->json, key, value) {
                int r = take_member(request, key, value, error);

                if (r < 0)
                        return r;
        }
        return check_whole(request, error);
}

static int parse_stdin(struct request *request, struct error *error)
{
        char *text = malloc(TEXT_MAX_BYTES + 1);
        ssize_t n;
        int r;

        if (text == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "standard input");
        n = file_read_fd(STDIN_FILENO, text, TEXT_MAX_BYTES + 1);
        if (n == -EFBIG) {
                char key[129];

                (void)scan(text, TEXT_MAX_BYTES, TEXT_MAX_BYTES, key); /* the key it was still reading */
                r = refuse(error, key[0] != '\0' ? key : "the request", "the request is longer than 1 MiB");
        } else if (n < 0)
                r = fail(error, (int)-n, OPERATION_PARSE, "standard input");
        else
                r = parse_text(request, text, (size_t)n, error);
        free(text);
        return r;
}

int request_parse(struct request *ret_request, enum request_kind kind, int argc, char **argv, struct error *error)
{
        int r;

        *ret_request = (struct request){ .kind = kind, .mkdir = true, .timeout_seconds = TIMEOUT_DEFAULT_S };
        if (argc != 2)
                return refuse(error, "the request", "one argument is needed: a JSON object, or - for standard input");
        if (strcmp(argv[1], "-") == 0)
                r = parse_stdin(ret_request, error);
        else
                r = parse_text(ret_request, argv[1], strlen(argv[1]), error);
        if (r < 0)
                return r;
        if (ret_request->read_only)
                r = mount_options_add(&ret_request->options, "ro", error);
        ret_request->read_only = ret_request->options.read_only;
        ret_request->recursive = ret_request->recursive || ret_request->options.recursive;
        mount_options_default(&ret_request->options);
        return r;
}

void request_release(struct request *request)
{
        json_decref(request->json);
        request->json = NULL;
        mount_options_release(&request->options);
}
