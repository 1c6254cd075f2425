/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/reconcile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "state/record.h"
#include "volume/named_stage.h"

/* Whether the volume of that record is staged there, or is about to be; also where the record cannot be read. */
static bool has_record(const struct state *state, const char *file, const char *dir)
{
        cleanup_volume_record struct volume_record record = {};
        struct error ignored; /* reconcile_volumes() tells it */
        int r = record_read(state, &volume_record_table, file, &record, &ignored);

        return r == 0 ? record.staged.dir == NULL || strcmp(record.staged.dir, dir) == 0 : r != -ENOENT;
}

static bool is_mounted(int kind_fd, const char *name)
{
        struct stat above;
        struct stat st;

        return fstat(kind_fd, &above) < 0 || fstatat(kind_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
               !S_ISDIR(st.st_mode) || st.st_dev != above.st_dev;
}

/* One that a killed call left, or whose volume has lost its record. */
static void reconcile_stage(struct reconcile_round *round, const char *kind_dir, int kind_fd, const char *stem)
{
        cleanup_state struct state state = STATE_NONE;
        char file[NAME_MAX + sizeof ".json"];
        char dir[PATH_MAX];
        struct error error = {};

        if (snprintf(dir, sizeof dir, "%s/%s", kind_dir, stem) >= (int)sizeof dir)
                return;
        (void)snprintf(file, sizeof file, "%s.json", stem);
        if (state_open(round->config.state_dir, "volumes", /* create= */ !round->reconcile->dry_run, &state, &error) <
            0) {
                reconcile_problem(round->reconcile, dir, &error);
                return;
        }
        /* under the volume's lock no call is between making the directory and writing the record */
        if (!state_try_lock(&state, record_lock_key(&volume_record_table, file)) || has_record(&state, file, dir) ||
            is_mounted(kind_fd, stem))
                return;
        if (!round->reconcile->dry_run && unlinkat(kind_fd, stem, AT_REMOVEDIR) < 0) {
                if (errno != ENOENT) {
                        (void)fail(&error, errno, "rmdir", dir);
                        reconcile_problem(round->reconcile, dir, &error);
                }
                return;
        }
        reconcile_did(round->reconcile, "removed a directory that no volume is mounted on", dir);
}

static void reconcile_kind(struct reconcile_round *round, const char *kind_dir)
{
        cleanup_close int kind_fd = open(kind_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *list = kind_fd < 0 ? NULL : file_list(kind_fd, ".");
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL)
                if (entry->d_name[0] != '.')
                        reconcile_stage(round, kind_dir, kind_fd, entry->d_name);
        if (list != NULL)
                (void)closedir(list);
}

void reconcile_stages(struct reconcile_round *round)
{
        char kind_dir[PATH_MAX];

        for (size_t i = 0; named_stage_kind_dir(round->config.state_dir, &i, kind_dir); i++)
                reconcile_kind(round, kind_dir);
}
