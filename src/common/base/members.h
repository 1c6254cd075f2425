/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the members of an object of a reply, listed once: of the list are made the rows that describe the object
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
#ifndef FLEXGRAFT_BASE_MEMBERS_H
#define FLEXGRAFT_BASE_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>

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
