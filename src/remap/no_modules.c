/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_modules.c - libfuse's high-level half, which comes along with the other, knows how to load modules. Here there is
 * no such thing: nothing is ever loaded into this program.
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
