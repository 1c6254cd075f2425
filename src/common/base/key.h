/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - one row per key of a request: its name, type, programs, default and a line of help. The checks of the
 * parsers, --help, the man pages' lists, the completions and the JSON Schemas are all made of these rows.
 */
#ifndef FLEXGRAFT_BASE_KEY_H
#define FLEXGRAFT_BASE_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a value is, and of what C type the field that it goes to. */
enum key_type {
        KEY_BOOLEAN,    /* bool */
        KEY_INTEGER,    /* int, from minimum to maximum */
        KEY_USER_ID,    /* uint32_t: of a user or a group */
        KEY_STRING,     /* const char *, at most maximum bytes */
        KEY_TEXT,       /* const char *, the same without control characters */
        KEY_NAME,       /* const char *, which may become a file's name */
        KEY_PATH,       /* const char *, absolute, at most maximum bytes */
        KEY_WORD,       /* const char *, one of words */
        KEY_SIZE,       /* uint64_t: bytes */
        KEY_SIZE_SHARE, /* the same, or a share of the memory in percent */
        KEY_STRINGS,    /* const json_t *: an object of strings */
        KEY_ARRAY,      /* of strings, or of objects with these members */
        KEY_OBJECT,     /* with these members */
        KEY_OWN,        /* whatever take() takes and schema() describes */
        KEY_ANY,        /* of a reply: a string, which may be empty */
        KEY_COUNT,      /* of a reply: a whole number from 0 */
};

/* How words say a value that has a form of its own (base/words). */
enum key_spelling {
        SPELLED_BY_TYPE, /* KEY_OWN: a string */
        SPELLED_LIST,    /* an array of strings: once for each */
        SPELLED_OBJECTS, /* an array of JSON objects: once for each */
        SPELLED_COMMAS,  /* a string of parts between commas: once or several times */
        SPELLED_MEMBERS, /* a string, or an object of these members: --container.unit */
        SPELLED_SIDE,    /* the same, and CONTAINER:/PATH is an object */
};

#define ALL (~0U) /* programs: every one of the family */

struct key_table {
        const struct key *rows;
        size_t count;
        const char *const
                *groups; /* what the bits are called, where the help has to say whose a key is; NULL ends them */
};

struct key {
        const char *name;
        unsigned programs; /* a bit for each program of the family that has the key */
        unsigned required; /* a bit for each that cannot do without */
        enum key_type type;
        int64_t minimum;
        int64_t maximum;          /* 0: the type's own */
        const char *pattern;      /* of a string, for the schema: what the program checks later; NULL: none */
        const char *const *words; /* NULL ends them */
        size_t offset;            /* of the field, where take is NULL */
        int (*take)(void *object, const char *name, const json_t *value, struct error *error);
        /* NULL: as the type has it; table: the one that the row is of */
        json_t *(*schema)(const struct key_table *table, unsigned programs);
        const struct key_table *members; /* of an object, or of an array's items; NULL: an array of strings */
        unsigned positional;             /* a bit for each program that takes it as a word, in the order of the rows */
        enum key_spelling spelling;
        unsigned traits;    /* bits of the family's own, which its rules about several keys go by */
        const char *preset; /* the default, as it would be written; NULL: none, or false */
        const char *help;
};

#define KEY_TABLE(array)                                                                                               \
        {                                                                                                              \
                .rows = (array), .count = sizeof(array) / sizeof((array)[0])                                           \
        }

/* key_find() - the row of this name that these programs have; NULL: there is none. */
const struct key *key_find(const struct key_table *table, unsigned programs, const char *name);

/*
 * key_take() - check a value as the row says, and put it into the object's field, or give it to the row's take().
 *
 * Takes:  name: what the key is called in errors. Strings are borrowed from value.
 * Errors: OPERATION_PARSE, naming the key.
 */
int key_take(const struct key *key, const char *name, void *object, const json_t *value, struct error *error);

/* key_take_all() - every member of a request. Errors: those of key_take(), and a key that is unknown. */
int key_take_all(const struct key_table *table, unsigned programs, void *object, const json_t *request,
                 struct error *error);

/* key_unknown() - the error of a key that no row has. */
int key_unknown(const char *name, struct error *error);

/* key_refuse_word() - the error of another word: "must be private, slave, shared or unbindable". */
int key_refuse_word(const char *const *words, const char *name, struct error *error);

/* key_word() - a string that is one of these words, which NULL ends. Gives its index. */
int key_word(const char *const *words, const char *name, const json_t *value, size_t *ret_index, struct error *error);

#define KEY_REQUEST_MAX_BYTES ((size_t)1024 * 1024) /* of a request on standard input */

/*
 * key_read_request() - the one argument of a program: a JSON object, or - to read it from standard input. Words are one
 * by now (process/program).
 *
 * Gives:  ret_request, owned by the caller.
 * Errors: OPERATION_PARSE.
 */
int key_read_request(int argc, char **argv, json_t **ret_request, struct error *error);

#endif
