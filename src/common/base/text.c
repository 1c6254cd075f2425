/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool text_copy(char *destination, size_t size, const char *source)
{
        size_t length = strlen(source); /* gcc takes strnlen for a read beyond a shorter source */
        bool whole = length < size;

        if (!whole)
                length = size - 1;
        memmove(destination, source, length);
        destination[length] = '\0';
        return whole;
}

bool text_same(const char *one, const char *other)
{
        return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

bool text_number(const char *text, uint64_t maximum, uint64_t *ret_number)
{
        uint64_t number = 0;

        if (*text == '\0')
                return false;
        for (; *text != '\0'; text++) {
                if (*text < '0' || *text > '9')
                        return false;
                if (__builtin_mul_overflow(number, 10U, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number) || number > maximum)
                        return false;
        }
        *ret_number = number;
        return true;
}

bool text_starts(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends(const char *text, const char *suffix)
{
        size_t length = strlen(text);

        return length >= strlen(suffix) && strcmp(text + length - strlen(suffix), suffix) == 0;
}

bool text_among(const char *text, const char *const *words)
{
        for (; *words != NULL; words++)
                if (strcmp(text, *words) == 0)
                        return true;
        return false;
}

bool text_lies_in(const char *path, const char *directory)
{
        size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

        return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool text_climbs(const char *path)
{
        while (*path != '\0') {
                size_t length = strcspn(path, "/");

                if (length == 2 && path[0] == '.' && path[1] == '.')
                        return true;
                path += length + (path[length] == '/' ? 1 : 0);
        }
        return false;
}

void text_make_printable(char *text)
{
        for (unsigned char *byte = (unsigned char *)text; *byte != '\0'; byte++) {
                if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
                        *byte++ = '?'; /* U+0080 to U+009F are two bytes each */
                else if (*byte >= ' ' && *byte != 0x7f)
                        continue;
                *byte = '?';
        }
}

/* Decode a character of UTF-8. Returns its bytes; 0: these are none. */
static size_t decode(const unsigned char *text, uint32_t *ret_character)
{
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const size_t bytes = text[0] < 0x80 ? 1 : text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
        uint32_t character = bytes < 2 ? text[0] : text[0] & (0x7fU >> bytes);

        for (size_t i = 1; i < bytes; i++) {
                if ((text[i] & 0xc0) != 0x80)
                        return 0;
                character = character << 6 | (text[i] & 0x3fU);
        }
        *ret_character = character;
        return bytes > 1 && (character < least[bytes] || character > 0x10ffff) ? 0 : bytes;
}

/* Whether a terminal does something else with it than to show it: controls, line ends, and what turns the direction. */
static bool is_hidden(uint32_t character)
{
        return character < ' ' || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
               character == 0x200e || character == 0x200f || (character >= 0x2028 && character <= 0x202e) ||
               (character >= 0x2066 && character <= 0x2069);
}

#define ESCAPE_SIZE 8

/* What stands for the first character: ret_out, of ESCAPE_SIZE bytes, is terminated. Returns how many bytes it stands for. */
static size_t escape_one(const char *text, char *ret_out)
{
        const unsigned char *bytes = (const unsigned char *)text;
        uint32_t character = 0;
        size_t length = decode(bytes, &character);

        if (length == 0)
                (void)snprintf(ret_out, ESCAPE_SIZE, "\\x%02x", bytes[0]);
        else if (is_hidden(character))
                (void)snprintf(ret_out, ESCAPE_SIZE, "\\u%04x", (unsigned)character & 0xffffU);
        else
                (void)snprintf(ret_out, ESCAPE_SIZE, "%.*s", (int)length, text);
        return length == 0 ? 1 : length;
}

void text_escape(char *text, size_t size)
{
        char out[ESCAPE_SIZE];
        size_t length = 0;  /* of what fits */
        size_t written = 0; /* of what is escaped; it never gets beyond what is still to be read */
        char *rest = text;

        while (*rest >= ' ' && *rest < 0x7f)
                rest++;
        if (*rest == '\0') /* as nearly all are */
                return;
        for (size_t total = 0, used; text[length] != '\0'; length += used, total += strlen(out)) {
                used = escape_one(text + length, out);
                if (total + strlen(out) >= size)
                        break;
        }
        rest = memmove(text + size - length, text, length);
        while (rest < text + size) {
                char last[4 + ESCAPE_SIZE] = "";

                (void)memcpy(last, rest, (size_t)(text + size - rest) < 4 ? (size_t)(text + size - rest) : 4);
                rest += escape_one(last, out);
                (void)memcpy(text + written, out, strlen(out));
                written += strlen(out);
        }
        text[written] = '\0';
}

size_t text_end_line(char *text, size_t size)
{
        size_t length;

        text[size - 2] = '\0';
        text_escape(text, size - 1); /* what a container chose must not move the cursor, or write a line of its own */
        length = strlen(text);
        text[length] = '\n';
        return length + 1;
}

void text_of_bytes(uint64_t bytes, char ret_text[TEXT_BYTES_SIZE])
{
        static const char units[] = "BKMGTPE";
        size_t unit = 0;
        uint64_t rest = 0;

        for (; bytes >= 1024; bytes /= 1024, unit++)
                rest = bytes % 1024;
        if (rest * 10 / 1024 > 0 && bytes < 100)
                (void)snprintf(ret_text, TEXT_BYTES_SIZE, "%llu.%u%c", (unsigned long long)bytes,
                               (unsigned)(rest * 10 / 1024), units[unit]);
        else
                (void)snprintf(ret_text, TEXT_BYTES_SIZE, "%llu%c", (unsigned long long)bytes, units[unit]);
}

size_t text_count(const char *text, char character)
{
        size_t count = 0;

        for (; *text != '\0'; text++)
                count += *text == character;
        return count;
}

int text_path_normal(const char *path, char *ret_path)
{
        size_t length = 0;

        if (path[0] != '/')
                return -EINVAL;
        while (*path != '\0') {
                size_t part;

                path += strspn(path, "/");
                part = strcspn(path, "/");
                if (part > NAME_MAX)
                        return -ENAMETOOLONG;
                if (part > 0 && !(part == 1 && path[0] == '.')) {
                        if (length + 1 + part >= PATH_MAX)
                                return -ENAMETOOLONG;
                        ret_path[length++] = '/';
                        memcpy(ret_path + length, path, part);
                        length += part;
                }
                path += part;
        }
        if (length == 0)
                ret_path[length++] = '/';
        ret_path[length] = '\0';
        return 0;
}
