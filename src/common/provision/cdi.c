/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/cdi.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/reply.h"
#include "base/schema.h"
#include "base/text.h"
#include "process/log.h"
#include "process/program.h"
#include "state/access.h"
#include "state/volume_record.h"

#define OPERATION "write CDI file"
#define VOLUMES "flexgraft.json"
#define STORAGE "flexgraft-storage.json" /* while it is there, the other one is kept up to date */
#define VERSION_OF_SPEC "0.5.0"          /* the first that lets a device's name begin with a digit */
#define HOOK "mount-hook"
#define FILE_MODE 0644
#define STATE_DIR "FLEXGRAFT_CDI_STATE_DIR=" /* in the hook's environment: whose volumes they are */
#define NOTE_PREFIX ".cdi."
#define NOTE_SIZE (VOLUME_RECORD_STEM_SIZE + 8)

/* With a slash, which no volume's key has (volume_record_key()). */
static uint64_t lock_key(void)
{
        return hash_text("cdi/");
}

/* Names of volumes may have other characters; such a volume is no device. */
static bool is_device_name(const char *name)
{
        size_t length = strlen(name);

        for (size_t i = 0; i < length; i++)
                if (!isalnum((unsigned char)name[i]) && (i == 0 || i + 1 == length || strchr("_-.:", name[i]) == NULL))
                        return false;
        return length > 0;
}

/* How an engine calls mount-hook: as "mount-hook --cdi" has said, whichever program writes the file now. */
struct caller {
        char path[PATH_MAX];
        json_t *environment; /* an array; a hook gets no other. Owned */
};

static void caller_release(struct caller *caller)
{
        json_decref(caller->environment);
}
#define cleanup_caller __attribute__((cleanup(caller_release)))

static json_t *state_dir_of(const struct config *config)
{
        return json_sprintf(STATE_DIR "%s", config->state_dir);
}

/* The program's own directory, and the configuration files that it was told. */
static int make_caller(const struct config *config, struct caller *ret_caller, struct error *error)
{
        static const char *const names[] = { "FLEXGRAFT_CONFIG", "FLEXGRAFT_POLICY", "FLEXGRAFT_POOLS",
                                             "FLEXGRAFT_PROFILES" };

        if (!program_find_sibling(HOOK, ret_caller->path))
                return fail_because(error, ENOENT, OPERATION, HOOK, HOOK " is not installed beside this program");
        ret_caller->environment = json_pack("[o]", state_dir_of(config));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const char *value = secure_getenv(names[i]);

                if (value == NULL)
                        continue;
                if (value[0] != '/')
                        return fail_because(error, EINVAL, OPERATION, names[i],
                                            "%s must be an absolute path: hooks run elsewhere", names[i]);
                (void)json_array_append_new(ret_caller->environment, json_sprintf("%s=%s", names[i], value));
        }
        return 0;
}

/* Returns 1; 0: there is no file, or one of another state directory; or negative errno. */
static int read_caller(const struct config *config, int dir_fd, struct caller *ret_caller, struct error *error)
{
        cleanup_json json_t *file = NULL;
        cleanup_json json_t *own = state_dir_of(config);
        const json_t *hook;
        int r = json_file_load(dir_fd, STORAGE, JSON_OBJECT, &file, error);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        hook = json_array_get(
                json_object_get(json_object_get(json_array_get(json_object_get(file, "devices"), 0), "containerEdits"),
                                "hooks"),
                0);
        ret_caller->environment = json_incref(json_object_get(hook, "env"));
        if (!text_copy(ret_caller->path, sizeof ret_caller->path, json_member_text(hook, "path")) ||
            ret_caller->path[0] != '/')
                return fail_because(error, EBADMSG, OPERATION, STORAGE, "it has no hook; run mount-hook --cdi again");
        return json_equal(json_array_get(ret_caller->environment, 0), own);
}

/* When the runtime kills the hook, in seconds, as in hooks.d/: later than the hook gives up by itself. */
static int timeout_of(const char *event)
{
        return strcmp(event, "poststop") == 0 ? 30 : 60;
}

/* volume: NULL: what its annotations ask for. raw: its device itself. */
static json_t *hook(const struct caller *caller, const char *event, const char *volume, const char *target, bool raw)
{
        json_t *one = json_pack("{s:s, s:s, s:[s, s], s:O, s:i}", "hookName", event, "path", caller->path, "args", HOOK,
                                event, "env", caller->environment, "timeout", timeout_of(event));
        json_t *arguments = json_object_get(one, "args");

        if (volume != NULL) {
                (void)json_array_append_new(arguments, json_string("--volume"));
                (void)json_array_append_new(arguments, json_string(volume));
                (void)json_array_append_new(arguments, json_string("--target"));
                (void)json_array_append_new(arguments, json_string(target));
        }
        if (raw)
                (void)json_array_append_new(arguments, json_string("--raw"));
        return one;
}

static json_t *device(const char *name, const struct caller *caller, const char *volume, const char *target, bool raw)
{
        return json_pack("{s:s, s:{s:[o, o]}}", "name", name, "containerEdits", "hooks",
                         hook(caller, "createRuntime", volume, target, raw),
                         hook(caller, "poststop", volume, target, raw));
}

static json_t *spec(const char *kind, json_t *devices)
{
        return json_pack("{s:s, s:s, s:o}", "cdiVersion", VERSION_OF_SPEC, "kind", kind, "devices", devices);
}

struct collection {
        const struct caller *caller;
        json_t *devices;
        json_t *left_out;
};

static int add_volume(const struct provision_record *record, const char *stem, void *argument, struct error *error)
{
        struct collection *collection = argument;
        char target[PATH_MAX];

        (void)stem;
        (void)error;
        /* kubelet's own volumes, those of FlexVolume as those of CSI, are kubelet's to mount */
        if (record == NULL || record->lifecycle != PROVISION_CREATED || record->driver[0] != '\0' ||
            strcmp(record->namespace, PROVISION_OF_CSI) == 0 || record->snapshot_of[0] != '\0')
                return 0;
        if (!is_device_name(record->name)) {
                (void)json_array_append_new(collection->left_out, reply_printable(record->name));
                return 0;
        }
        (void)snprintf(target, sizeof target, "%s%s%s", record->target,
                       record->target[0] == '\0' ? CDI_TARGET_DIR "/" : "",
                       record->target[0] == '\0' ? record->name : "");
        (void)json_array_append_new(collection->devices, device(record->name, collection->caller, record->name, target,
                                                                access_is_block(record->target_type)));
        return 0;
}

static int by_name(const void *one, const void *other)
{
        const json_t *const *a = one;
        const json_t *const *b = other;

        return strcmp(json_string_value(json_object_get(*a, "name")), json_string_value(json_object_get(*b, "name")));
}

/* The same volumes are the same file. Takes the reference. */
static json_t *sorted(json_t *devices)
{
        size_t count = json_array_size(devices);
        json_t **order = calloc(count + 1, sizeof(json_t *));
        json_t *list = json_array();

        for (size_t i = 0; order != NULL && i < count; i++)
                order[i] = json_array_get(devices, i);
        if (order != NULL)
                qsort(order, count, sizeof(json_t *), by_name);
        for (size_t i = 0; order != NULL && i < count; i++)
                (void)json_array_append(list, order[i]);
        free(order);
        json_decref(devices);
        return list;
}

/* Unchanged, it is left as it is: engines look at its time. Returns 1 it was written, 0, or negative errno. */
static int replace(int dir_fd, const char *name, json_t *value, struct error *error)
{
        cleanup_json json_t *was = NULL;
        struct error ignored;
        struct stat st;
        char *text;
        int r;

        if (json_file_load(dir_fd, name, JSON_OBJECT, &was, &ignored) == 0 && json_equal(was, value) &&
            fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == FILE_MODE)
                return 0;
        if ((text = json_text_make(value)) == NULL)
                return fail(error, ENOMEM, OPERATION, name);
        /* engines that run without root read it, too */
        r = file_replace_for(FILE_MODE, dir_fd, name, text, strlen(text), FILE_DURABLE);
        free(text);
        return r < 0 ? fail(error, -r, OPERATION, name) : 1;
}

static int open_directory(const struct config *config, struct error *error)
{
        int fd;

        if (mkdirat(AT_FDCWD, config->cdi_dir, 0755) < 0 && errno != EEXIST)
                return fail(error, errno, OPERATION, config->cdi_dir);
        fd = open(config->cdi_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? fail(error, errno, OPERATION, config->cdi_dir) : fd;
}

/* clang-format off */
#define REPLY(X) \
        X("status", ALL, ALL, json_string(schema_success[0]), \
          KEY_WORD, .words = schema_success, .help = "the files are there") \
        X("cdiDir", ALL, ALL, json_string(config->cdi_dir), KEY_ANY, .help = "directory of the files") \
        X("devices", ALL, ALL, json_integer((json_int_t)json_array_size(json_object_get(volumes, "devices"))), \
          KEY_COUNT, .help = "number of volumes that are devices") \
        X("leftOut", ALL, ALL, json_incref(left_out), KEY_ARRAY, .help = "names of volumes that no device may have")
/* clang-format on */

static const struct key reply_rows[] = { REPLY(MEMBER_ROW) };
const struct key_table cdi_reply_keys = KEY_TABLE(reply_rows);

static json_t *reply_of(const struct config *config, const json_t *volumes, json_t *left_out)
{
        struct members members = { .programs = 1 };

        REPLY(MEMBER_PUT)
        return members_end(&members);
}

/* With the lock. chosen: by whom that is asked for files, NULL: as the files have it. Returns what cdi_write() does. */
static int write_files(const struct config *config, const struct state *state, const struct caller *chosen,
                       json_t **ret_reply, struct error *error)
{
        cleanup_caller struct caller known = {};
        struct collection collection = { .caller = chosen != NULL ? chosen : &known };
        cleanup_json json_t *volumes = NULL;
        cleanup_json json_t *storage = NULL;
        cleanup_json json_t *left_out = json_array();
        cleanup_close int dir_fd = open_directory(config, error);
        bool written = false;
        int r;

        if (dir_fd < 0)
                return dir_fd;
        /* this file first: volumes that are made from then on write the other one, which may not see them */
        if (chosen != NULL) {
                storage = spec("flexgraft.io/storage",
                               json_pack("[o]", device("annotated", chosen, NULL, NULL, /* raw= */ false)));
                r = storage == NULL ? fail(error, ENOMEM, OPERATION, STORAGE)
                                    : replace(dir_fd, STORAGE, storage, error);
                written = r > 0;
        } else if ((r = read_caller(config, dir_fd, &known, error)) == 0)
                return 0;
        if (r < 0)
                return r;
        collection.devices = json_array();
        collection.left_out = left_out;
        r = provision_record_each(state, /* set_aside= */ true, add_volume, &collection, error);
        volumes = spec("flexgraft.io/volume", sorted(collection.devices));
        if (r == 0 && volumes == NULL)
                r = fail(error, ENOMEM, OPERATION, VOLUMES);
        if (r < 0 || (r = replace(dir_fd, VOLUMES, volumes, error)) < 0)
                return r;
        if (ret_reply != NULL)
                *ret_reply = reply_of(config, volumes, left_out);
        return written || r > 0;
}

static int write_locked(const struct config *config, struct state *state, const struct caller *chosen,
                        json_t **ret_reply, struct error *error)
{
        int r = state_lock(state, lock_key(), error);

        if (r < 0)
                return r;
        r = write_files(config, state, chosen, ret_reply, error);
        state_unlock(state, lock_key());
        return r;
}

int cdi_write(const struct config *config, json_t **ret_reply, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        cleanup_caller struct caller caller = {};
        int r = make_caller(config, &caller, error);

        if (r < 0 || (r = provision_record_open(config->state_dir, /* create= */ true, &state, error)) < 0)
                return r;
        return write_locked(config, &state, &caller, ret_reply, error);
}

static bool is_written(const struct config *config)
{
        char path[PATH_MAX + sizeof STORAGE];
        struct stat st;

        (void)snprintf(path, sizeof path, "%s/" STORAGE, config->cdi_dir);
        return fstatat(AT_FDCWD, path, &st, 0) == 0;
}

static void note_name(const char *name, char *ret_note)
{
        char stem[VOLUME_RECORD_STEM_SIZE];

        volume_record_stem(name, stem);
        (void)snprintf(ret_note, NOTE_SIZE, NOTE_PREFIX "%s", stem);
}

static bool changing; /* a record, by this process */

void cdi_begin_change(const struct config *config, const struct state *state, const char *name)
{
        char note[NOTE_SIZE];

        changing = true;
        if (!is_written(config))
                return;
        note_name(name, note);
        (void)file_ensure(state->dir_fd, note);
}

void cdi_settle(const struct config *config, struct state *state, const char *name)
{
        char note[NOTE_SIZE];
        struct error error;
        struct stat st;

        note_name(name, note);
        if (!changing && fstatat(state->dir_fd, note, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        if (is_written(config) && write_locked(config, state, /* chosen= */ NULL, /* ret_reply= */ NULL, &error) < 0)
                log_say("%s in %s: %s", error.operation, config->cdi_dir, error_why(&error));
        else
                (void)unlinkat(state->dir_fd, note, 0);
}

/* Of processes that were killed. One that runs writes the files in any case. */
static void remove_notes(const struct state *state)
{
        DIR *list = file_list(state->dir_fd, ".");
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL)
                if (text_starts(entry->d_name, NOTE_PREFIX))
                        (void)unlinkat(state->dir_fd, entry->d_name, 0);
        if (list != NULL)
                (void)closedir(list);
}

int cdi_agree(const struct config *config, struct error *error)
{
        cleanup_state struct state state = STATE_NONE;
        int r = is_written(config) ? provision_record_open(config->state_dir, /* create= */ true, &state, error) : 0;

        if (r < 0 || state.dir_fd < 0)
                return r;
        r = write_locked(config, &state, /* chosen= */ NULL, /* ret_reply= */ NULL, error);
        if (r >= 0)
                remove_notes(&state);
        return r;
}
