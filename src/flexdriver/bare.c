/* SPDX-License-Identifier: Apache-2.0 */
#define BARE 1 /* what else would this file be for */
#include "flexdriver/bare.h"

#include <string.h>

#if defined(__x86_64__)
long bare_call(long number, long a, long b, long c, long d, long e)
{
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                         : "rcx", "r11", "memory");
        return result;
}
#else
long bare_call(long number, long a, long b, long c, long d, long e)
{
        register long x8 __asm__("x8") = number;
        register long x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b;
        register long x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d;
        register long x4 __asm__("x4") = e;

        __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
        return x0;
}
#endif

/* The functions of <string.h> that volume/verbs.c and the compiler use. */

size_t strlen(const char *text)
{
        size_t length = 0;

        while (text[length] != '\0')
                length++;
        return length;
}

int strncmp(const char *one, const char *other, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (one[i] != other[i] || one[i] == '\0')
                        return (unsigned char)one[i] - (unsigned char)other[i];
        return 0;
}

int strcmp(const char *one, const char *other)
{
        while (*one != '\0' && *one == *other) {
                one++;
                other++;
        }
        return (unsigned char)*one - (unsigned char)*other;
}

void *memchr(const void *bytes, int byte, size_t size)
{
        const unsigned char *at = bytes;

        for (size_t i = 0; i < size; i++)
                if (at[i] == (unsigned char)byte)
                        return (void *)(at + i);
        return NULL;
}

char *strchr(const char *text, int character)
{
        return memchr(text, character, strlen(text) + 1);
}

char *strrchr(const char *text, int character)
{
        for (size_t i = strlen(text) + 1; i > 0; i--)
                if (text[i - 1] == (char)character)
                        return (char *)text + i - 1;
        return NULL;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
        for (size_t i = 0; i < size; i++)
                ((char *)to)[i] = ((const char *)from)[i];
        return to;
}

void *memset(void *bytes, int byte, size_t size)
{
        for (size_t i = 0; i < size; i++)
                ((char *)bytes)[i] = (char)byte;
        return bytes;
}
