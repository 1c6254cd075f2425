/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

bool text_copy(char *destination, size_t size, const char *source)
{
        size_t length = strnlen(source, size);
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
