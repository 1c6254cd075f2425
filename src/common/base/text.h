/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - bounded strings and checked numbers. No locale, no allocation.
 */
#ifndef FLEXGRAFT_BASE_TEXT_H
#define FLEXGRAFT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text_copy() - copy at most size - 1 bytes, always terminated; false when it had to cut. */
bool text_copy(char *destination, size_t size, const char *source);

/* text_same() - the same text, or both absent (NULL). */
bool text_same(const char *one, const char *other);

/* text_number() - a whole decimal number without sign or blank, at most maximum; false for anything else. */
bool text_number(const char *text, uint64_t maximum, uint64_t *ret_number);

/* text_starts() - whether text begins with prefix. */
bool text_starts(const char *text, const char *prefix);

/* text_ends() - whether text ends with suffix. */
bool text_ends(const char *text, const char *suffix);

/* text_among() - whether text is one of these words; NULL ends the list. */
bool text_among(const char *text, const char *const *words);

/* text_lies_in() - whether a path is a directory or lies in it, by whole components; both normal. */
bool text_lies_in(const char *path, const char *directory);

/* text_climbs() - whether a path has a ".." among its components. */
bool text_climbs(const char *path);

/* text_make_printable() - replace control characters (C0, DEL, C1) in UTF-8 text by question marks. */
void text_make_printable(char *text);

/*
 * text_escape() - for a terminal: make what a text hides or does visible, in place: control characters (C0, DEL, C1),
 * those that change the direction of writing, line and paragraph separators ("\u202e"), and bytes that are no UTF-8
 * ("\x9b"). It is cut where it does not fit. size: of the buffer.
 */
void text_escape(char *text, size_t size);

/*
 * text_end_line() - make a text a line for people: escaped, and with a newline in place of its '\0', before which it
 * is cut if need be. size: of the buffer. Returns the line's length.
 */
size_t text_end_line(char *text, size_t size);

#define TEXT_BYTES_SIZE 32 /* of text_of_bytes()'s answer */

/* text_of_bytes() - "10G", "1.5M": as people read sizes, in powers of 1024. */
void text_of_bytes(uint64_t bytes, char ret_text[TEXT_BYTES_SIZE]);

/* text_count() - how often a character is in a text. */
size_t text_count(const char *text, char character);

/*
 * text_path_normal() - an absolute path with repeated slashes, "." components and trailing slashes removed. ".." stays:
 * only the kernel knows its meaning after a symbolic link. ret_path holds PATH_MAX bytes.
 *
 * Errors: EINVAL not absolute; ENAMETOOLONG for the path or for one component of it.
 */
int text_path_normal(const char *path, char *ret_path);

#endif
