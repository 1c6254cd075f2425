/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "process/worker.h"

#define SHARE_MS 4000 /* of which one may wait for half */
#define ALL_MS 20000

struct search {
        const char *path;
        char (*names)[NAME_MAX + 1];
        size_t count;
        const char *found; /* one of names */
};

/* The links among the entries of the working directory; with no memory as many as there was memory for. */
static void list_links(struct search *search)
{
        const struct dirent *entry;
        DIR *list = opendir(".");

        while (list != NULL && (entry = readdir(list)) != NULL) {
                char ignored[1]; /* a byte of it tells that it is a link */
                void *more;

                if (readlink(entry->d_name, ignored, sizeof ignored) <= 0)
                        continue;
                more = realloc(search->names, (search->count + 1) * sizeof *search->names);
                if (more == NULL)
                        break;
                search->names = more;
                (void)text_copy(search->names[search->count++], NAME_MAX + 1, entry->d_name);
        }
        if (list != NULL)
                (void)closedir(list); /* only read from */
}

static void follow(struct ask *ask, size_t index)
{
        struct search *search = ask->argument;
        char path[PATH_MAX];

        if (search->found == NULL && realpath(search->names[index], path) != NULL && strcmp(path, search->path) == 0)
                search->found = search->names[index];
}

bool links_find(const char *path, char ret_name[NAME_MAX + 1])
{
        static struct search search; /* a worker that hangs has it */
        struct ask ask = { .argument = &search, .one = follow, .share_ms = SHARE_MS };

        search = (struct search){ .path = path };
        list_links(&search);
        ask.count = search.count;
        ask.deadline_ms = clock_now_ms() + ALL_MS;
        (void)ask_all(&ask);
        if (search.found != NULL)
                (void)text_copy(ret_name, NAME_MAX + 1, search.found);
        return search.found != NULL; /* the names stay, for the same reason */
}
