/* SPDX-License-Identifier: Apache-2.0 */
/*
 * as-user UID GID GROUPS COMMAND [ARG...] - run COMMAND with these ids; GROUPS are the supplementary ones, separated by
 * commas; - is none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t parse_groups(char *text, gid_t *groups, size_t most)
{
        size_t count = 0;

        if (strcmp(text, "-") == 0)
                return 0;
        for (char *word = strtok(text, ","); word && count < most; word = strtok(NULL, ","))
                groups[count++] = (gid_t)strtoul(word, NULL, 10);
        return count;
}

int main(int argc, char **argv)
{
        gid_t groups[1024];

        if (argc < 5) {
                fprintf(stderr, "usage: as-user UID GID GROUPS|- COMMAND [ARG...]\n");
                return 125;
        }
        uid_t uid = (uid_t)strtoul(argv[1], NULL, 10);
        gid_t gid = (gid_t)strtoul(argv[2], NULL, 10);
        size_t count = parse_groups(argv[3], groups, sizeof groups / sizeof groups[0]);
        if (setgroups(count, groups) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) {
                fprintf(stderr, "as-user: %s\n", strerror(errno));
                return 125;
        }
        execvp(argv[4], argv + 4);
        fprintf(stderr, "as-user: %s: %s\n", argv[4], strerror(errno));
        return 127;
}
