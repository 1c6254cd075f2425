/* SPDX-License-Identifier: Apache-2.0 */
#include "flexdriver/bare.h"

#include <string.h>

#ifdef BARE

#if defined(__x86_64__)
/* The kernel puts argc, argv, NULL, the environment, NULL on the stack, and calls no function (System V ABI, AMD64, 3.4.1).
 */
__asm__(".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "        xor %ebp, %ebp\n"
        "        mov %rsp, %rdi\n"
        "        and $-16, %rsp\n"
        "        call bare_start\n"
        "        hlt\n");

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
__asm__(".globl _start\n"
        ".type _start, %function\n"
        "_start:\n"
        "        mov x29, #0\n"
        "        mov x0, sp\n"
        "        and sp, x0, #-16\n"
        "        bl bare_start\n"
        "        brk #0\n");

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

#include <asm/unistd.h>

void bare_start(long *stack);
void bare_start(long *stack)
{
        char **argv = (char **)(stack + 1);
        int status = bare_main((int)stack[0], argv, argv + stack[0] + 1);

        (void)bare_call(__NR_exit_group, status, 0, 0, 0, 0);
}

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

#else

#include <errno.h>
#include <unistd.h>

#ifdef SANITIZE
/* As in process/program.c: the leak checker does what the filter forbids. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
        return "detect_leaks=0";
}
#endif

long bare_call(long number, long a, long b, long c, long d, long e)
{
        long result = syscall(number, a, b, c, d, e);

        return result < 0 ? -errno : result;
}

int main(int argc, char **argv)
{
        return bare_main(argc, argv, environ);
}

#endif
