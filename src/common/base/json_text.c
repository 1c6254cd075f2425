/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_value.h"

#define DEPTH_MAX 8

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
                int r = json_value_refuse(error, json_is_string(name) ? json_string_value(name) : key,
                                          "is given twice");

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

int json_text_parse(const char *text, size_t length, json_t **ret_value, struct error *error)
{
        json_error_t parse;
        char name[129];
        uint32_t seed = 0;

        if (!scan(text, length, length, name))
                return fail_because(error, EINVAL, OPERATION_PARSE, name[0] != '\0' ? name : "the request",
                                    "%s%snested deeper than %d levels", name, name[0] != '\0' ? ": " : "", DEPTH_MAX);
        /* jansson would open /dev/urandom for it; unpredictable, since a request may come from a container's owner */
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
                json_object_seed(seed | 1); /* 0 would mean: find one yourself */
        *ret_value = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &parse);
        return *ret_value == NULL ? fail_parse(text, length, &parse, error) : 0;
}

int json_text_parse_stdin(size_t maximum, json_t **ret_value, struct error *error)
{
        char *text = malloc(maximum + 1);
        ssize_t n;
        int r;

        if (text == NULL)
                return fail(error, ENOMEM, OPERATION_PARSE, "standard input");
        n = file_read_fd(STDIN_FILENO, text, maximum + 1);
        if (n == -EFBIG) {
                char key[129];

                (void)scan(text, maximum, maximum, key); /* the key it was still reading */
                r = json_value_refuse(error, key[0] != '\0' ? key : "the request", "the request is longer than 1 MiB");
        } else if (n < 0)
                r = fail(error, (int)-n, OPERATION_PARSE, "standard input");
        else
                r = json_text_parse(text, (size_t)n, ret_value, error);
        free(text);
        return r;
}
