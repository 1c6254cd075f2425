/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - what every unit test includes: cmocka, and words for the errors that our functions fill.
 *
 * Unit tests need no root, no namespace and no device; what they write lies in a temporary directory of their own.
 */
#ifndef FLEXGRAFT_UNIT_H
#define FLEXGRAFT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef fail /* this name is ours (base/error.h) */
#undef fail_msg
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* assert_refused() - the call failed with this errno, and the error's reason or subject contains these words. */
#define assert_refused(result, errnum, error, words)                                                                   \
        do {                                                                                                           \
                assert_int_equal((result), -(errnum));                                                                 \
                if (strstr(error_why(&(error)), (words)) == NULL && strstr((error).subject, (words)) == NULL)          \
                        fail_msg("\"%s\" (about \"%s\") does not say: %s", error_why(&(error)), (error).subject,       \
                                 (words));                                                                             \
        } while (0)

/* unit_write() - a file with this content, mode 0644. */
static inline void unit_write(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/*
 * unit_become_root() - root of a user namespace of our own, so that files that we make are root's. False where the
 * machine lets nobody make one; the caller then skips what needs it.
 */
static inline bool unit_become_root(void)
{
        char map[48];

        if (geteuid() == 0)
                return true;
        (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());
        if (unshare(CLONE_NEWUSER) < 0)
                return false;
        unit_write("/proc/self/uid_map", map);
        return geteuid() == 0;
}

/* unit_directory() - a new temporary directory, in a static buffer; unit_remove() removes it with all that is in it. */
static inline const char *unit_directory(void)
{
        static char path[64];

        (void)snprintf(path, sizeof path, "/tmp/flexgraft-unit.XXXXXX");
        assert_non_null(mkdtemp(path));
        return path;
}

static inline int unit_remove_one(const char *path, const struct stat *st, int type, struct FTW *position)
{
        (void)st;
        (void)type;
        (void)position;
        return remove(path);
}

static inline int unit_remove(const char *directory)
{
        return nftw(directory, unit_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* unit_ask_libmount() - what libmount makes of a table, by findmnt(8): these columns. NULL without findmnt. */
static inline json_t *unit_ask_libmount(const char *file, const char *columns)
{
        char command[256];
        json_t *answer;
        FILE *pipe;

        (void)snprintf(command, sizeof command,
                       "findmnt --tab-file %s --json --list --nofsroot --nocanonicalize --output %s 2>/dev/null", file,
                       columns);
        pipe = popen(command, "re");
        assert_non_null(pipe);
        answer = json_loadf(pipe, 0, NULL);
        (void)pclose(pipe);
        return answer;
}

#endif
