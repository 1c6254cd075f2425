/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "state/state_dir.h"
#include "state/volume_record.h"

#define KEPT_SECONDS ((time_t)7 * 24 * 3600)
#define LOOKS_SECONDS ((time_t)24 * 3600)
#define LOOKED ".looked" /* a file, for its time; no name of an operation */
#define SUFFIX ".json"

static int open_all(const char *state_dir, struct state *ret_state, struct error *error)
{
        return state_open(state_dir, "operations", /* create= */ true, ret_state, error);
}

static void file_name(const char *id, char *ret_file)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(id, stem);
        (void)snprintf(ret_file, NAME_MAX + 1, "%s" SUFFIX, stem);
}

int idempotency_recall(const char *state_dir, const char *id, const json_t *request, json_t **ret_reply,
                       struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        cleanup_json json_t *object = NULL;
        char file[NAME_MAX + 1];
        int r = open_all(state_dir, &state, error);

        *ret_reply = NULL;
        if (r < 0)
                return r;
        file_name(id, file);
        r = json_file_load(state.dir_fd, file, JSON_OBJECT, &object, error);
        if (r == -ENOENT || r == -EBADMSG)
                return 0; /* a damaged file counts as none: the call had not finished when it was written */
        if (r < 0)
                return r;
        if (!json_equal(json_object_get(object, "request"), request))
                return fail_because(error, EEXIST, "recall operation", id,
                                    "another request has used the operation id \"%.200s\"", id);
        *ret_reply = json_incref(json_object_get(object, "reply"));
        return 0;
}

/* Looking at all of them costs as much as there are: it is done once a day. */
static void forget_old(const struct state *state)
{
        const struct dirent *entry;
        struct timespec now;
        struct stat st;
        DIR *list;

        (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
        if (fstatat(state->dir_fd, LOOKED, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime <= now.tv_sec &&
            st.st_mtime + LOOKS_SECONDS > now.tv_sec)
                return;
        (void)file_replace(state->dir_fd, LOOKED, "", 0, FILE_PLAIN); /* else the next call looks, too */
        list = state_list(state);
        while (list != NULL && (entry = readdir(list)) != NULL)
                if ((text_ends(entry->d_name, SUFFIX) || text_ends(entry->d_name, SUFFIX ".tmp")) &&
                    fstatat(state->dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    st.st_mtime + KEPT_SECONDS < now.tv_sec)
                        (void)unlinkat(state->dir_fd, entry->d_name, 0); /* else next time */
        if (list != NULL)
                (void)closedir(list); /* nothing was written */
}

int idempotency_remember(const char *state_dir, const char *id, const json_t *request, const json_t *reply,
                         struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        cleanup_json json_t *object = json_pack("{s:O, s:O}", "request", request, "reply", reply);
        char file[NAME_MAX + 1];
        int r = open_all(state_dir, &state, error);

        if (r < 0)
                return r;
        file_name(id, file);
        r = json_file_replace(state.dir_fd, file, object, FILE_DURABLE);
        forget_old(&state);
        return r < 0 ? fail(error, -r, "remember operation", id) : 0;
}
