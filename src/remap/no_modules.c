/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_modules.c - libfuse's high-level API, which is linked in with the low-level one, can load modules with dlopen().
 * These replacements make that impossible: nothing is ever loaded into this program.
 */
#ifndef SANITIZE /* whose runtime looks symbols up */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode)
{
        (void)file;
        (void)mode;
        return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
        (void)handle;
        (void)name;
        return NULL;
}

int dlclose(void *handle)
{
        (void)handle;
        return 0;
}
#endif
