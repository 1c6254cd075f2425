/* SPDX-License-Identifier: Apache-2.0 */
/* at-each-syscall: looks at mounts, directories and loop devices, and compares. */
#pragma once

#include "sweep.h"

static char *read_all(int fd, size_t *ret_len)
{
        size_t len = 0, room = 1 << 14;
        char *text = malloc(room);

        for (;;) {
                if (!text)
                        die("malloc");
                ssize_t n = read(fd, text + len, room - len - 1);
                if (n < 0)
                        die("read");
                if (n == 0)
                        break;
                len += (size_t)n;
                if (room - len < 4096)
                        text = realloc(text, room *= 2);
        }
        text[len] = '\0';
        if (ret_len)
                *ret_len = len;
        return text;
}

static char *read_mountinfo(const char *pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return strdup("(there is no such process)\n");
        char *text = read_all(fd, NULL);
        close(fd);
        return text;
}

static char *look_at_mounts(const char *pid)
{
        char *text = read_mountinfo(pid), *kept = calloc(1, strlen(text) + 1), *save = NULL;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!plan.mine || !strstr(line, "/bats-run-") || strstr(line, plan.mine))
                        strcat(strcat(kept, line), "\n");
        free(text);
        return kept;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
        return strcmp((*a)->fts_name, (*b)->fts_name);
}

/*
 * The index of uses (state/use_index.h): its directories stay, and an entry is made before its record, so that a killed or
 * failed call may leave one that refers to no record, or to one without that key. Questions skip such entries, and
 * volume-reconcile removes them (uses.bats). So it is with what a pool's images take (pool/pool_sums.h).
 */
static bool is_of_index(const FTSENT *e)
{
        return e->fts_info == FTS_D && e->fts_level > 0 &&
               (strcmp(e->fts_name, "uses") == 0 || strcmp(e->fts_name, "pool-sums") == 0);
}

static char *look_at_tree(char *dir)
{
        char *text = NULL;
        size_t len;
        FILE *into = open_memstream(&text, &len);
        FTS *fts = fts_open((char *[]){ dir, NULL }, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, by_name);

        if (!into || !fts)
                die("fts_open");
        for (FTSENT *e; (e = fts_read(fts));)
                if (is_of_index(e))
                        fts_set(fts, e, FTS_SKIP);
                else if (e->fts_info != FTS_DP && e->fts_info != FTS_NS && e->fts_info != FTS_ERR)
                        fprintf(into, "%s %o %u:%u\n", e->fts_path, e->fts_statp->st_mode, e->fts_statp->st_uid,
                                e->fts_statp->st_gid);
        fts_close(fts);
        fclose(into);
        return text;
}

static char *look_at_loops(const char *prefix)
{
        char *text = NULL, path[64], file[4096];
        size_t len;
        FILE *into = open_memstream(&text, &len);

        FTS *fts = fts_open((char *[]){ "/sys/block", NULL }, FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR, by_name);
        if (!into || !fts)
                die("fts_open");
        for (FTSENT *e; (e = fts_read(fts));) {
                if (e->fts_level != 1 || strncmp(e->fts_name, "loop", 4) != 0)
                        continue;
                snprintf(path, sizeof(path), "/sys/block/%.20s/loop/backing_file", e->fts_name);
                FILE *from = fopen(path, "re");
                if (from && fgets(file, sizeof(file), from) && strncmp(file, prefix, strlen(prefix)) == 0)
                        fprintf(into, "%s %s", e->fts_name, file);
                if (from)
                        fclose(from);
        }
        fts_close(fts);
        fclose(into);
        return text;
}

static char *look(const struct watch *w)
{
        if (strcmp(w->kind, "mounts") == 0)
                return look_at_mounts(w->arg);
        return strcmp(w->kind, "tree") == 0 ? look_at_tree(w->arg) : look_at_loops(w->arg);
}

static void show_lines_not_in(const char *sign, const char *text, const char *other)
{
        char *copy = strdup(text), *all, *save = NULL, *wanted;

        if (!copy || asprintf(&all, "\n%s", other) < 0)
                die("malloc");
        for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (asprintf(&wanted, "\n%s\n", line) < 0)
                        die("malloc");
                if (!strstr(all, wanted))
                        printf("%s %s\n", sign, line);
                free(wanted);
        }
        free(all);
        free(copy);
}

/* Another test looks at all loop devices of the node: while it has one open, that is detached a moment later. */
#define LOOPS_TRIES 500
#define LOOPS_WAIT_US 20000

static bool is_unchanged(const struct watch *w)
{
        char *after = look(w);
        bool same = strcmp(w->before, after) == 0;

        for (int i = 0; !same && strcmp(w->kind, "loops") == 0 && i < LOOPS_TRIES; i++) {
                usleep(LOOPS_WAIT_US);
                free(after);
                after = look(w);
                same = strcmp(w->before, after) == 0;
        }
        if (!same) {
                wrong("%s %s: not as before", w->kind, w->arg);
                show_lines_not_in("<", w->before, after);
                show_lines_not_in(">", after, w->before);
        }
        free(after);
        return same;
}

static size_t count_lines(const char *text)
{
        size_t count = 0;

        for (; *text; text++)
                count += *text == '\n';
        return count;
}

/* What mountinfo escapes, in place. */
static void decode(char *path)
{
        char *to = path;

        for (; *path; path++) {
                if (path[0] == '\\' && path[1] >= '0' && path[1] <= '3' && path[2] && path[3]) {
                        *to++ = (char)((path[1] - '0') * 64 + (path[2] - '0') * 8 + (path[3] - '0'));
                        path += 3;
                } else {
                        *to++ = *path;
                }
        }
        *to = '\0';
}

static long count_mounts(const char *pid, const char *target)
{
        char *text = read_mountinfo(pid), *save = NULL, at[4096];
        long count = 0;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
                        continue;
                decode(at);
                count += strcmp(at, target) == 0;
        }
        free(text);
        return count;
}
