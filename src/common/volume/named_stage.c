/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/named_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/on_node.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/used.h"

#define DIRECTORY "/named/"
#define FREE_MS 2000
#define FREE_PAUSE_MS 20

static int put_dir(const char *state_dir, const char *kind, const char *name, char *ret_dir, struct error *error)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        return snprintf(ret_dir, PATH_MAX, "%s" DIRECTORY "%s/%s", state_dir, kind, stem) < PATH_MAX
                       ? 0
                       : fail(error, ENAMETOOLONG, "stage", name);
}

int named_stage_dir(const struct volume_call *call, char *ret_dir, struct error *error)
{
        return put_dir(call->config.state_dir, call->kind->word, call->request->name, ret_dir, error);
}

bool named_stage_is(const struct config *config, const char *dir)
{
        size_t length = strlen(config->state_dir);

        return strncmp(dir, config->state_dir, length) == 0 && text_starts(dir + length, DIRECTORY);
}

int named_stage_make(const char *dir, struct error *error)
{
        char path[PATH_MAX];

        (void)text_copy(path, sizeof path, dir); /* it fits */
        for (char *slash = strstr(path, DIRECTORY) + 1; slash != NULL; slash = strchr(slash + 1, '/')) {
                char *end = strchr(slash + 1, '/');

                if (end != NULL)
                        *end = '\0';
                if (mkdirat(AT_FDCWD, path, 0700) < 0 && errno != EEXIST)
                        return fail(error, errno, "mkdir", path);
                if (end == NULL)
                        return 0;
                *end = '/';
        }
        return 0;
}

/* The volume's record may have been lost while it was mounted there; if it is busy, it stays. */
static int remove_dir(const struct volume_call *call, const char *dir, struct error *error)
{
        bool lazy;
        int r;

        if (unlinkat(AT_FDCWD, dir, AT_REMOVEDIR) == 0 || errno == ENOENT)
                return 0;
        if (errno != EBUSY)
                return fail(error, errno, "rmdir", dir);
        r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ false, &lazy, error);
        if (r < 0)
                return r == -EBUSY ? 0 : r;
        return unlinkat(AT_FDCWD, dir, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == EBUSY
                       ? 0
                       : fail(error, errno, "rmdir", dir);
}

bool named_stage_kind_dir(const char *state_dir, size_t *kind, char *ret_dir)
{
        for (; volume_kinds[*kind] != NULL; ++*kind)
                if (volume_kinds[*kind]->has_device && volume_kinds[*kind]->pool_types != NULL &&
                    snprintf(ret_dir, PATH_MAX, "%s" DIRECTORY "%s", state_dir, volume_kinds[*kind]->word) < PATH_MAX)
                        return true;
        return false;
}

int named_stage_unmake(const struct volume_call *call, struct error *error)
{
        char dir[PATH_MAX];
        int r;

        for (size_t i = 0; named_stage_kind_dir(call->config.state_dir, &i, dir); i++) {
                if ((r = put_dir(call->config.state_dir, volume_kinds[i]->word, call->request->name, dir, error)) < 0 ||
                    (r = remove_dir(call, dir, error)) < 0)
                        return r;
        }
        return 0;
}

static bool has_entry(const char *dir)
{
        DIR *entries = opendir(dir);
        const struct dirent *entry;
        bool found = false;

        while (entries != NULL && !found && (entry = readdir(entries)) != NULL)
                found = entry->d_name[0] != '.';
        if (entries != NULL)
                (void)closedir(entries);
        return found;
}

unsigned named_stage_runs(void)
{
        char state_dir[PATH_MAX];
        char dir[PATH_MAX];
        struct error ignored; /* the program meets it again */
        unsigned runs = 0;

        if (config_state_dir(state_dir, &ignored) < 0)
                return 0;
        for (size_t i = 0; named_stage_kind_dir(state_dir, &i, dir); i++) {
                unsigned of_kind = volume_kinds[i]->runs & ~(unsigned)VOLUME_RUNS_FS_TOOLS;

                if (of_kind != 0 && has_entry(dir))
                        runs |= of_kind;
        }
        return runs;
}

/* Whether the device stays in use: what was detached lazily ends a moment later. */
static bool stays_busy(const struct volume_call *call)
{
        const int64_t until_ms = clock_now_ms() + FREE_MS;
        struct block_device device;
        struct error ignored;
        int r;

        if (call->record.device_number == 0)
                return false;
        volume_call_device(call, &device);
        while ((r = block_device_check_unused(&device, &ignored)) == -EBUSY && clock_now_ms() < until_ms)
                clock_pause_ms(FREE_PAUSE_MS);
        return r == -EBUSY; /* a device that is gone is detached */
}

int named_stage_unmount(const struct volume_call *call, const char *dir, struct error *error)
{
        bool lazy;
        int r = on_node_remove(dir, call->config.unmount_seconds, /* insist= */ false, &lazy, error);

        if (r < 0 && r != -EBUSY)
                return r;
        return r == -EBUSY || stays_busy(call) ? 1 : 0;
}

/* Where mount(8) has it mounted, which keeps its superblock in use. */
static int check_not_on_node(const struct volume_call *call, const char *operation, struct error *error)
{
        for (size_t i = 0; i < call->record.published_count; i++) {
                const char *dir = call->record.published[i].dir;

                if (mount_dir_has(call, &call->record.published[i]))
                        return fail_because(error, EBUSY, operation, call->request->name,
                                            "this node has it mounted on %s; unmount it there first", dir);
        }
        return 0;
}

int named_stage_unstage(struct volume_call *call, const char *operation, struct error *error)
{
        char dir[PATH_MAX];
        int r;

        if (call->record.staged.dir == NULL || !named_stage_is(&call->config, call->record.staged.dir))
                return 0;
        (void)text_copy(dir, sizeof dir, call->record.staged.dir); /* as long at most */
        if ((r = volume_check_unused(call, operation, error)) < 0 ||
            (r = check_not_on_node(call, operation, error)) < 0 || (r = named_stage_unmount(call, dir, error)) < 0)
                return r;
        if (r > 0)
                return fail_because(error, EBUSY, operation, call->request->name,
                                    "a container may have bound its mount elsewhere, or a process still uses it");
        mount_dir_unmake(dir, 1);
        volume_record_forget(&call->record, dir);
        call->record.filesystem = 0;
        return mount_dir_save_unmounted(call, error);
}
