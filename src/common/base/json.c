/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json_value.h"
#include "base/text.h"

/*
 * Without memory jansson fails without a message, or drops bytes of what it reads: so its allocations are watched, and
 * one that failed is no fault of the text.
 */
static bool allocation_failed;

static void *allocate(size_t size)
{
        void *memory = malloc(size);

        allocation_failed = allocation_failed || memory == NULL;
        return memory;
}

/* A new reference to a value that was read with JSON_DECODE_INT_AS_REAL: numbers that a double holds exactly are integers again. */
static json_t *integers_again(json_t *value)
{
        const double beyond = (double)(INT64_C(1) << 53);
        double number = json_real_value(value);
        const char *key;
        json_t *member;
        size_t i;

        if (json_is_real(value) && number > -beyond && number < beyond && (double)(json_int_t)number == number)
                return json_integer((json_int_t)number);
        json_object_foreach (value, key, member)
                (void)json_object_set_new(value, key, integers_again(member));
        json_array_foreach (value, i, member)
                (void)json_array_set_new(value, i, integers_again(member));
        return json_incref(value);
}

/* NULL, and ret_errnum: ENOMEM, or EINVAL and parse says why. */
static json_t *load(const char *text, size_t length, size_t flags, json_error_t *parse, int *ret_errnum)
{
        json_t *value;

        json_set_alloc_funcs(allocate, free);
        allocation_failed = false;
        value = json_loadb(text, length, JSON_REJECT_DUPLICATES | flags, parse);
        if ((flags & JSON_DECODE_INT_AS_REAL) != 0) {
                cleanup_json json_t *reals = value;

                value = integers_again(reals);
        }
        if (allocation_failed) {
                json_decref(value);
                value = NULL;
        }
        *ret_errnum = allocation_failed ? ENOMEM : EINVAL;
        return value;
}

#define INVALID "invalid JSON at line "
#define WORDS_SIZE (JSON_ERROR_TEXT_LENGTH + 64)

/*
 * jansson's message. It may quote up to 20 bytes of the input. Of a request they could be a secret: unless quotes is
 * set only a single character is kept, a misplaced bracket or comma. What is not printable ASCII becomes '?'.
 */
static void put_words(const json_error_t *parse, bool quotes, char *ret_words)
{
        static const char near[] = " near '";
        const char *quoted = strstr(parse->text, near);
        size_t length = strlen(parse->text);

        if (!quotes && quoted != NULL && strlen(quoted) != strlen(near) + 2)
                length = (size_t)(quoted - parse->text);
        (void)snprintf(ret_words, WORDS_SIZE, INVALID "%d, column %d: %.*s", parse->line, parse->column, (int)length,
                       parse->text);
        for (char *byte = ret_words; *byte != '\0'; byte++)
                if (*byte < ' ' || *byte > '~')
                        *byte = '?';
}

static int fail_text(const json_error_t *parse, struct error *error)
{
        char words[WORDS_SIZE];
        const char *quoted = strchr(parse->text, '"');

        if (json_error_code(parse) == json_error_stack_overflow)
                return fail_because(error, EINVAL, OPERATION_PARSE, "the request", "nested deeper than %d levels",
                                    JSON_TEXT_MAX_DEPTH);
        if (json_error_code(parse) == json_error_duplicate_key && quoted != NULL) { /* NULL: the key is long */
                cleanup_json json_t *key = json_loads(quoted, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);

                if (json_is_string(key))
                        return json_value_refuse(error, json_string_value(key), "is given twice");
        }
        put_words(parse, /* quotes= */ false, words);
        return fail_because(error, EINVAL, OPERATION_PARSE, "the request", "%s", words);
}

/* Whether a value has at most so many levels of objects and arrays. Recursion ends with the levels. */
static bool nests_within(json_t *value, unsigned levels)
{
        const char *key;
        json_t *member;
        size_t i;

        if (!json_is_object(value) && !json_is_array(value))
                return true;
        if (levels == 0)
                return false;
        json_object_foreach (value, key, member)
                if (!nests_within(member, levels - 1))
                        return false;
        json_array_foreach (value, i, member)
                if (!nests_within(member, levels - 1))
                        return false;
        return true;
}

static int check_depth(json_t *value, struct error *error)
{
        const char *key;
        json_t *member;

        json_object_foreach (value, key, member)
                if (!nests_within(member, JSON_TEXT_MAX_DEPTH - 1))
                        return fail_because(error, EINVAL, OPERATION_PARSE, key, "%s: nested deeper than %d levels",
                                            key, JSON_TEXT_MAX_DEPTH);
        return nests_within(value, JSON_TEXT_MAX_DEPTH)
                       ? 0
                       : fail_because(error, EINVAL, OPERATION_PARSE, "the request", "nested deeper than %d levels",
                                      JSON_TEXT_MAX_DEPTH);
}

/* source: what the text is, in a message. */
static int parse_text(const char *text, size_t length, const char *source, json_t **ret_value, struct error *error)
{
        json_error_t parse;
        uint32_t seed = 0;
        size_t blank = 0;
        json_t *value;
        int errnum;
        int r;

        while (blank < length && memchr(" \t\r\n", text[blank], 4) != NULL)
                blank++;
        if (blank == length)
                return fail_because(error, EINVAL, OPERATION_PARSE, source, "%s is empty: expected a JSON object",
                                    source);
        /* unpredictable, against chosen keys that collide; jansson itself would open /dev/urandom */
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
                json_object_seed(seed | 1); /* 0: jansson would choose */
        value = load(text, length, JSON_ALLOW_NUL, &parse, &errnum);
        if (value == NULL)
                return errnum == ENOMEM ? fail(error, errnum, "read", source) : fail_text(&parse, error);
        if ((r = check_depth(value, error)) < 0) {
                json_decref(value);
                return r;
        }
        *ret_value = value;
        return 0;
}

int json_text_parse(const char *text, size_t length, json_t **ret_value, struct error *error)
{
        return parse_text(text, length, "the request", ret_value, error);
}

json_t *json_text_load(const char *text, size_t length)
{
        json_error_t parse;
        int errnum;

        return load(text, length, /* flags= */ 0, &parse, &errnum);
}

#define USUAL_BYTES ((size_t)64 * 1024) /* of a request: room that costs no system call */

/* All of standard input. Gives ret_text, owned by the caller, also after a failure. Returns its length, or negative errno. */
static ssize_t read_stdin(size_t maximum, char **ret_text)
{
        size_t size = maximum < USUAL_BYTES ? maximum + 1 : USUAL_BYTES;
        char *larger;
        ssize_t more;
        ssize_t n;

        *ret_text = malloc(size);
        if (*ret_text == NULL)
                return -ENOMEM;
        n = file_read_fd(STDIN_FILENO, *ret_text, size);
        if (n != -EFBIG || size > maximum)
                return n;
        larger = realloc(*ret_text, maximum + 1);
        if (larger == NULL)
                return -ENOMEM;
        *ret_text = larger;
        more = file_read_fd(STDIN_FILENO, larger + size, maximum + 1 - size);
        return more < 0 ? more : (ssize_t)size + more;
}

bool json_text_may_have(const char *text, const char *word)
{
        const size_t length = strlen(word);

        if (strchr(text, '\\') != NULL)
                return true;
        for (const char *found = text; (found = strstr(found, word)) != NULL; found++)
                if (found > text && found[-1] == '"' && found[length] == '"')
                        return true;
        return false;
}

int json_text_parse_stdin(size_t maximum, json_t **ret_value, struct error *error)
{
        static const char source[] = "standard input";
        char *text = NULL;
        ssize_t n = read_stdin(maximum, &text);
        int r;

        if (n == -EFBIG)
                r = fail_because(error, EINVAL, OPERATION_PARSE, source, "%s is longer than %zu MiB", source,
                                 maximum >> 20);
        else if (n < 0)
                r = fail(error, (int)-n, OPERATION_PARSE, source);
        else
                r = parse_text(text, (size_t)n, source, ret_value, error);
        free(text);
        return r;
}

const char *json_member_text(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key)) ?: "";
}

json_t *json_strings(const char *const *texts)
{
        json_t *list = json_array();

        for (; *texts != NULL; texts++)
                (void)json_array_append_new(list, json_string(*texts));
        return list;
}

char *json_text_make(const json_t *value)
{
        return value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
}

void json_text_hide(struct error *error)
{
        if (text_starts(error->reason, INVALID))
                error->reason[strcspn(error->reason, ":")] = '\0';
}

int json_file_load(int dirfd, const char *path, json_type type, json_t **ret_value, struct error *error)
{
        cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        return fd < 0 ? fail(error, errno, "open", path) : json_file_load_fd(fd, path, type, ret_value, error);
}

int json_file_load_fd(int fd, const char *path, json_type type, json_t **ret_value, struct error *error)
{
        char words[WORDS_SIZE];
        json_error_t parse;
        struct stat st;
        json_t *value;
        char *text;
        int errnum;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", path);
        if (!S_ISREG(st.st_mode))
                return fail_because(error, EBADMSG, "read", path, "not a regular file");
        if (st.st_size > (off_t)JSON_FILE_MAX_BYTES)
                return fail(error, EFBIG, "read", path);
        text = malloc((size_t)st.st_size + 4096); /* it may grow meanwhile */
        if (text == NULL)
                return fail(error, ENOMEM, "read", path);
        n = file_read_fd(fd, text, (size_t)st.st_size + 4096);
        if (n < 0) {
                free(text);
                return fail(error, (int)-n, "read", path);
        }
        value = load(text, (size_t)n, /* flags= */ 0, &parse, &errnum);
        if (value == NULL && errnum == EINVAL && json_error_code(&parse) == json_error_numeric_overflow)
                value = load(text, (size_t)n, JSON_DECODE_INT_AS_REAL, &parse, &errnum);
        free(text);
        if (value == NULL && errnum == ENOMEM)
                return fail(error, errnum, "read", path);
        if (value == NULL) {
                put_words(&parse, /* quotes= */ true, words);
                return fail_because(error, EBADMSG, "parse", path, "%s", words);
        }
        if (type == JSON_OBJECT ? !json_is_object(value) : !json_is_array(value)) {
                json_decref(value);
                return fail_because(error, EBADMSG, "parse", path, "line 1: not a JSON %s",
                                    type == JSON_OBJECT ? "object" : "array");
        }
        *ret_value = value;
        return 0;
}

int json_file_replace(int dirfd, const char *name, const json_t *value, enum file_durability durability)
{
        char *text = json_text_make(value);
        int r = text != NULL ? file_replace(dirfd, name, text, strlen(text), durability) : -ENOMEM;

        free(text);
        return r;
}
