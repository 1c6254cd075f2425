/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - rows of keys -> a JSON Schema (draft 2020-12).
 */
#ifndef FLEXGRAFT_BASE_SCHEMA_H
#define FLEXGRAFT_BASE_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

#include "base/key.h"
#include "base/people.h"

#define SCHEMA_DRAFT "https://json-schema.org/draft/2020-12/schema"
#define SCHEMA_NAME_PATTERN "^[A-Za-z0-9_+:@-][A-Za-z0-9_.+:@-]*$" /* KEY_NAME */

/* A reply that a program may give: one shape of several. */
struct schema_form {
        const char *title;
        unsigned programs;
        const struct key_table *members;
};

/* What a program takes and gives; either may be absent. */
struct schema {
        const struct key_table *request;
        const struct key_table *(*request_of)(void); /* in its place: a table that is made when it is asked for */
        unsigned programs;
        json_t *(*make_request)(const struct key_table *table,
                                unsigned programs); /* in place of the table, where the request is no plain object */
        bool texts;                                 /* values are strings, as Kubernetes hands them over */
        unsigned reply_programs;                    /* 0: as programs */
        const struct schema_form *replies;          /* NULL members end them */
        const struct people_form *people;           /* the same replies on a terminal; NULL: JSON there, too */
};

/* schema_of_keys() - an object with these keys and no others. The caller owns the result; NULL: no memory. */
json_t *schema_of_keys(const struct key_table *table, unsigned programs, bool texts);

/* schema_of_value() - the value of one of a table's keys, by its row or its type. A key that it does not have can be
 * anything. The caller owns the result. */
json_t *schema_of_value(const struct key_table *table, const char *name, unsigned programs);

/* schema_of_words() - one of these, which NULL ends. The caller owns the result; NULL: no memory. */
json_t *schema_of_words(const char *const *words);

/* schema_request() - the table of what a program takes; NULL: it takes no object. */
const struct key_table *schema_request(const struct schema *schema);

/* schema_has_words() - whether the request can be said in words, too (base/words). */
bool schema_has_words(const struct schema *schema);

/* schema_of_program() - one document; request and reply are in its "$defs", and "words": words_describe(). */
json_t *schema_of_program(const char *name, const struct schema *schema);

/* "Success" alone, as the "status" of a reply. */
extern const char *const schema_success[];

/*
 * ---- the members of an object of a reply, listed once: of the list are made the rows that describe the object
 * (base/schema), and the object.
 *
 *      #define PROCESS(X)
 *              X("pid", ALL, ALL, json_integer(pid), KEY_COUNT, .help = "its number")
 *              X("name", ALL, 0, members_text(name), KEY_ANY, .help = "what it calls itself")
 *
 *      static const struct key process_keys[] = { PROCESS(MEMBER_ROW) };
 *
 *      struct members members = { .programs = programs };
 *      PROCESS(MEMBER_PUT)
 *      return members_end(&members);
 *
 * Each is its name, the programs that have it and those whose replies always do, its value, and the rest of its row
 * (struct key). A value is made only for a program that has it; NULL: there is no such member, or, where one has to be,
 * no memory. The members of a reply are in the order of the list.
 */

struct members {
        unsigned programs; /* the one that replies */
        json_t *object;    /* owned; NULL: no member yet */
        bool failed;       /* one is missing */
};

#define MEMBER_ROW(name, programs, required, value, ...) { name, programs, required, __VA_ARGS__ },
#define MEMBER_PUT(name, of, required, value, ...)                                                                     \
        do {                                                                                                           \
                if ((members.programs & (of)) != 0)                                                                    \
                        members_put(&members, name, (members.programs & (required)) != 0, value);                      \
        } while (0);

/* members_put() - one more; takes the reference. */
void members_put(struct members *members, const char *name, bool required, json_t *value);

/* members_end() - the object, owned by the caller; NULL: no memory. */
json_t *members_end(struct members *members);

/* Values that are members only if there is something to say: a text, of any bytes, that is not empty; what is true. */
json_t *members_text(const char *text);
json_t *members_true(bool value);

#endif
