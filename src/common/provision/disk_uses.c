/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/disk_uses.h"

#include <errno.h>
#include <sys/stat.h>

static void add_stack(char *keys, const struct block_stack *stack)
{
        for (size_t i = 0; i < stack->count; i++)
                use_keys_add_device(keys, stack->numbers[i]);
}

int disk_uses_add_device(char *keys, uint64_t number, unsigned flags, struct error *error)
{
        struct block_stack stack;
        int r = block_stack_find(number, flags, &stack, error);

        if (r < 0)
                return r;
        add_stack(keys, &stack);
        return 0;
}

int disk_uses_add_image(char *keys, int fd, struct error *error)
{
        struct block_stack stack = {};
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return fail(error, errno, "fstat", "image");
        if ((r = block_stack_add_loops(fd, &st, &stack, error)) < 0)
                return r;
        use_keys_add_file(keys, st.st_dev, st.st_ino);
        add_stack(keys, &stack);
        return 0;
}
