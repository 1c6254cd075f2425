/* SPDX-License-Identifier: Apache-2.0 */
/* uses_check.c - that nothing is in use, or who uses it, in words. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "state/uses.h"

void uses_describe(const struct use *use, char *ret_text)
{
        static const char *const in_volume[] = { [USE_ATTACHED] = "attached as volume", [USE_STAGED] = "volume" };

        if (use->kind == USE_UNREADABLE)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "an unknown user: its record %.200s cannot be read",
                               use->file);
        else if (use->kind == USE_RAW)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "container %s, as the raw device %.400s%s", use->user,
                               use->target,
                               use->ended     ? "; it has ended, but a process still has the device open"
                               : use->removed ? ", which was removed but which the container may have kept"
                                              : "");
        else if (use->removed)
                (void)snprintf(ret_text, USES_TEXT_SIZE,
                               "container %s, where another volume has replaced it on %.400s, but which may still have "
                               "files of it open",
                               use->user, use->target);
        else if (use->kind == USE_MOUNTED)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "container %s, on %.400s", use->user, use->target);
        else if (use->kind == USE_PUBLISHED && use->user[0] != '\0')
                (void)snprintf(ret_text, USES_TEXT_SIZE, "pod %s, on %.400s", use->user, use->target);
        else if (use->kind == USE_PUBLISHED)
                (void)snprintf(ret_text, USES_TEXT_SIZE, "this node, on %.400s", use->target);
        else
                (void)snprintf(ret_text, USES_TEXT_SIZE, "%s \"%.128s\"%s%.400s", in_volume[use->kind],
                               use->volume->name, use->target[0] != '\0' ? ", on " : "", use->target);
}

static const char *const remedies[] = {
        [USE_ATTACHED] = "detach it first",     [USE_STAGED] = "unmount it first",
        [USE_PUBLISHED] = "unmount it first",   [USE_MOUNTED] = "remove it with mount-remove first",
        [USE_RAW] = "end that container first", [USE_UNREADABLE] = "look at that record",
};

struct check {
        const struct uses_except *except;
        char *text;
        const char *remedy; /* NULL: no use was found */
};

static bool is_excepted(const struct uses_except *except, const struct use *use)
{
        const struct volume_record *volume = use->volume;

        if (except != NULL && except->mount != NULL && use->mount != NULL && strcmp(use->mount->id, except->mount) == 0)
                return true;
        if (except == NULL || except->volume == NULL || volume == NULL || strcmp(volume->name, except->volume) != 0 ||
            (except->driver[0] != '\0' && volume->driver[0] != '\0' && strcmp(volume->driver, except->driver) != 0))
                return false;
        return use->kind == USE_ATTACHED ? except->attached : except->mounted;
}

/* A pod, a container or a process says more than that the volume is staged for it. */
static int take_best(const struct use *use, void *argument, struct error *error)
{
        struct check *check = argument;
        bool weak = use->kind == USE_ATTACHED || use->kind == USE_STAGED;

        (void)error;
        if (is_excepted(check->except, use) || (weak && check->remedy != NULL))
                return 0;
        uses_describe(use, check->text);
        check->remedy = use->removed && use->kind == USE_MOUNTED
                                ? "repeat that mount-volume when they are closed: it looks again"
                                : remedies[use->kind];
        return weak ? 0 : 1;
}

int uses_check_none(const char *state_dir, const char *keys, const struct uses_except *except, const char *operation,
                    const char *subject, struct error *error)
{
        char text[USES_TEXT_SIZE];
        struct check check = { .except = except, .text = text };
        int r = uses_each(state_dir, keys, take_best, &check, error);

        if (check.remedy == NULL)
                return r;
        return fail_because(error, EBUSY, operation, subject, "in use by %s; %s", text, check.remedy);
}
