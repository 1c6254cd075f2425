/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - where the driver begins, before its C library (bare.h). */
#define BARE 1 /* as in bare.c */
#include <asm/unistd.h>

#include "flexdriver/bare.h"
#include "flexdriver/flexdriver.h"

#if defined(__x86_64__)
/*
 * The kernel puts argc, argv, NULL, the environment, NULL on the stack, and calls no function (System V ABI, AMD64, 3.4.1).
 * The stack and rdx are the C library's, too.
 */
__asm__(".globl bare_start\n"
        ".type bare_start, @function\n"
        "bare_start:\n"
        "        xor %ebp, %ebp\n"
        "        mov %rsp, %rbx\n"
        "        mov %rdx, %r12\n"
        "        mov %rsp, %rdi\n"
        "        and $-16, %rsp\n"
        "        call bare_answer\n"
        "        mov %rbx, %rsp\n"
        "        mov %r12, %rdx\n"
        "        jmp _start\n");

#else
__asm__(".globl bare_start\n"
        ".type bare_start, %function\n"
        "bare_start:\n"
        "        mov x29, #0\n"
        "        mov x30, #0\n"
        "        mov x19, x0\n"
        "        mov x0, sp\n"
        "        bl bare_answer\n"
        "        mov x0, x19\n"
        "        b _start\n");

#endif

void bare_answer(long *stack);
void bare_answer(long *stack)
{
        int status = flexdriver_answer((int)stack[0], (char **)(stack + 1));

        if (status != FLEXDRIVER_NO_ANSWER)
                (void)bare_call(__NR_exit_group, status, 0, 0, 0, 0);
}
