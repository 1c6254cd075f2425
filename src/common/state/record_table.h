/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_table.h - what a type of record has: a row for each field of its struct, which is a key of its JSON file.
 */
#ifndef FLEXGRAFT_STATE_RECORD_TABLE_H
#define FLEXGRAFT_STATE_RECORD_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What a field is in the struct, and in JSON. */
enum record_type {
        RECORD_TEXT,    /* char[]: a string */
        RECORD_STRING,  /* char *, owned: a string */
        RECORD_NUMBER,  /* 4 bytes: an integer, not negative; 8 bytes: any, as their bits */
        RECORD_BOOLEAN, /* bool */
        RECORD_NOT,     /* bool: the opposite */
        RECORD_WORD,    /* an enum: one of the field's words */
        RECORD_OBJECT,  /* json_t *, owned: any object */
        RECORD_ARRAY,   /* json_t *, owned: any array */
        RECORD_MEMBERS, /* a struct with a table of its own: an object */
        RECORD_LIST,    /* a pointer to such structs, owned, and a size_t, how many: an array of objects */
};

/* A row; a table of them ends with one without a key. */
struct record_field {
        const char *key;
        enum record_type type;
        bool optional; /* a record without it can be read, and the field is zero; one of another type cannot */
        size_t offset;
        size_t size;
        size_t count_offset;                /* RECORD_LIST */
        const char *with;                   /* it is written where the field of this key is not zero; NULL: always */
        const char *instead;                /* RECORD_TEXT: a field to write where this one is not UTF-8, or NULL */
        const char *const *words;           /* RECORD_WORD: NULL ends them */
        const struct record_field *members; /* RECORD_MEMBERS, RECORD_LIST */
        size_t member_size;                 /* RECORD_LIST */
        const char *help;                   /* one line */
};

/* RECORD_ROW() - a row for a field of a struct; what follows its help are further members of the row. */
#define RECORD_ROW(row_type, row_key, struct_type, field, row_help, ...)                                               \
        {                                                                                                              \
                .key = (row_key), .type = (row_type), .offset = offsetof(struct_type, field),                          \
                .size = sizeof(__typeof__(((struct_type *)0)->field)), .help = (row_help), __VA_ARGS__                 \
        }

struct record_table {
        const char *directory; /* of the state directory */
        int version;           /* the key "version", before all others */
        size_t size;           /* of the struct */
        size_t name_offset;    /* in the struct, of the text that says what the record is of */
        const struct record_field *fields;
        bool (*is_sound)(const void *record); /* whether fields that were read make sense together */
        char variant; /* names that are the same before this character are of one record, with one lock; '\0': none */
        bool flat; /* nothing of it is released: where there is no file, the struct, which is large, stays untouched */
};

/* record_field_find() - the row of a key, which is there. */
const struct record_field *record_field_find(const struct record_field *fields, const char *key);

/* record_field_is_written() - whether a record has the field's key in its file. */
bool record_field_is_written(const struct record_field *fields, const struct record_field *field, const void *record);

/* ---- the table of a record (state/record.h) -> a JSON Schema */

/* record_schema() - a document of draft 2020-12. The caller owns it. */
json_t *record_schema(const char *title, const struct record_table *table);

#endif
