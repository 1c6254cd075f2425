/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xattr - an extended attribute of a file, as hexadecimal digits.
 *
 *   xattr get PATH NAME
 *   xattr set PATH NAME DIGITS
 *
 * Exit status 1 when the kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

enum { VALUE_MAX = 1024 };

int main(int argc, char **argv)
{
        unsigned char value[VALUE_MAX];
        ssize_t size = 0;

        if (argc == 5 && strcmp(argv[1], "set") == 0) {
                for (const char *digits = argv[4]; size < VALUE_MAX && sscanf(digits, "%2hhx", &value[size]) == 1;
                     size++)
                        digits += digits[1] ? 2 : 1;
                size = lsetxattr(argv[2], argv[3], value, (size_t)size, 0);
        } else if (argc == 4 && strcmp(argv[1], "get") == 0) {
                size = lgetxattr(argv[2], argv[3], value, sizeof(value));
                for (ssize_t i = 0; i < size; i++)
                        printf("%02x", value[i]);
                printf("\n");
        } else {
                fprintf(stderr, "usage: xattr get PATH NAME\n       xattr set PATH NAME DIGITS\n");
                return 125;
        }
        if (size < 0)
                fprintf(stderr, "xattr: %s: %s\n", argv[2], strerror(errno));
        return size < 0;
}
