/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/reply.h"
#include "base/schema.h"
#include "base/text.h"
#include "daemon/keeper.h"
#include "process/proc.h"

#define SWITCHES (REPLIES_SWITCH | REPLIES_BATCH)

/* ---- a container */

/* clang-format off */
#define CONTAINER(X) \
        X("pid", ALL, ALL, json_integer((json_int_t)pid), KEY_COUNT, .help = "its first process") \
        X("id", ALL, 0, id[0] != '\0' ? json_string(id) : NULL, KEY_ANY, .help = "the id it is known by")
/* clang-format on */

static const struct key container_rows[] = { CONTAINER(MEMBER_ROW) };
const struct key_table reply_container_keys = KEY_TABLE(container_rows);

json_t *reply_container(pid_t pid, const char *id)
{
        struct members members = { .programs = 1 };

        CONTAINER(MEMBER_PUT)
        return members_end(&members);
}

/* clang-format off */
#define FROM(X) \
        X("container", ALL, ALL, reply_container(record->from_pid, record->from_id), \
          KEY_OBJECT, .members = &reply_container_keys, .help = "whose source it is") \
        X("path", ALL, ALL, reply_printable(record->origin), KEY_ANY, .help = "the source, as that container sees it")
/* clang-format on */

static const struct key from_rows[] = { FROM(MEMBER_ROW) };
static const struct key_table from_keys = KEY_TABLE(from_rows);

/* The container that the source is of, and its path there. */
static json_t *from_object(const struct mount_record *record)
{
        struct members members = { .programs = 1 };

        FROM(MEMBER_PUT)
        return members_end(&members);
}

/* ---- what was replaced */

static bool has_former(const struct outcome *outcome)
{
        return outcome->replaced && outcome->replaced_volume[0] != '\0';
}

/* clang-format off */
#define REPLACED(X) \
        X("atomic", ALL, ALL, json_boolean(outcome->atomic), \
          KEY_BOOLEAN, .help = "whether there was no moment without a mount") \
        X("volume", ALL, 0, has_former(outcome) ? json_string(outcome->replaced_volume) : NULL, \
          KEY_ANY, .help = "name of the volume that was there")
/* clang-format on */

static const struct key replaced_rows[] = { REPLACED(MEMBER_ROW) };
static const struct key_table replaced_keys = KEY_TABLE(replaced_rows);

static json_t *replaced_object(const struct outcome *outcome)
{
        struct members members = { .programs = 1 };

        REPLACED(MEMBER_PUT)
        return members_end(&members);
}

static const char *const how_words[] = { "file", "cwd", "root", "mapped", NULL }; /* the bits of enum open_files_how */

static json_t *how_array(unsigned how)
{
        json_t *array = json_array();

        for (size_t i = 0; how_words[i] != NULL; i++)
                if ((how & 1U << i) != 0)
                        (void)json_array_append_new(array, json_string(how_words[i]));
        return array;
}

/* clang-format off */
#define STILL_OPEN(X) \
        X("volume", ALL, ALL, json_string(one->volume), KEY_ANY, .help = "of which it has files open") \
        X("pid", ALL, ALL, json_integer((json_int_t)one->process.pid), \
          KEY_COUNT, .help = "the process, as the node counts") \
        X("command", ALL, ALL, reply_printable(one->process.command), KEY_ANY, .help = "as it calls itself") \
        X("how", ALL, ALL, how_array(one->process.how), \
          KEY_ARRAY, .words = how_words, \
          .help = "an open file, the working directory, the root directory, a mapped file")
/* clang-format on */

static const struct key still_open_rows[] = { STILL_OPEN(MEMBER_ROW) };
static const struct key_table still_open_keys = KEY_TABLE(still_open_rows);

static json_t *still_open_object(const struct former_process *one)
{
        struct members members = { .programs = 1 };

        STILL_OPEN(MEMBER_PUT)
        return members_end(&members);
}

static json_t *still_open_array(const struct former *former)
{
        json_t *array = json_array();

        for (size_t i = 0; i < former->count; i++)
                (void)json_array_append_new(array, still_open_object(&former->processes[i]));
        return array;
}

json_t *reply_stays_attached(const char *volume)
{
        return json_sprintf(
                "volume \"%s\" stays attached: a container may have bound its mount elsewhere, or a process "
                "still uses it; volume-reconcile detaches it when that has ended",
                volume);
}

static json_t *why_attached(const struct former *former)
{
        char text[sizeof former->attached + sizeof former->problem + 64];

        if (former->problem[0] == '\0')
                return reply_stays_attached(former->attached);
        (void)snprintf(text, sizeof text, "volume \"%s\" stays attached: %s; volume-reconcile tries again",
                       former->attached, former->problem);
        return reply_printable(text);
}

/* ---- a mount */

/* clang-format off */
#define NFS(X) \
        X("version", ALL, ALL, json_string(record->server_version), \
          KEY_ANY, .help = "the protocol's version that was agreed upon") \
        X("address", ALL, ALL, json_string(record->server_address), KEY_ANY, .help = "the server's address")
/* clang-format on */

static const struct key nfs_rows[] = { NFS(MEMBER_ROW) };
static const struct key_table nfs_keys = KEY_TABLE(nfs_rows);

static json_t *nfs_object(const struct mount_record *record)
{
        struct members members = { .programs = 1 };

        NFS(MEMBER_PUT)
        return members_end(&members);
}

/* Whether the process that is recorded still is the daemon's, by its lock: after an upgrade, or a kill, it is another. */
static bool is_of_daemon(const struct mount_record *record)
{
        cleanup_close int proc_fd = record->remap_pid > 0 ? proc_open(record->remap_pid) : -EBADF;
        char link[PATH_MAX];
        char number[32];
        char text[1024];
        ssize_t n = proc_fd < 0 ? -1 : readlinkat(proc_fd, "fd/6", link, sizeof link - 1);

        link[n > 0 ? n : 0] = '\0';
        /* what fdinfo has of other files may be waited for (mount/open_files.c) */
        if (!text_ends(link, "/.lock") || file_read(proc_fd, "fdinfo/6", text, sizeof text) < 0)
                return false;
        (void)snprintf(number, sizeof number, " %lld ", (long long)state_lock_offset(record->remap_key));
        return strstr(text, number) != NULL;
}
_Static_assert(FD_LOCK == 6, "the paths here");

/* clang-format off */
#define REMAP(X) \
        X("pid", ALL, 0, runs && is_of_daemon(record) ? json_integer((json_int_t)record->remap_pid) : NULL, \
          KEY_COUNT, .help = "the remap daemon's process, unless another has taken its place") \
        X("running", ALL, ALL, json_boolean(runs), KEY_BOOLEAN, .help = "whether it runs")
/* clang-format on */

static const struct key remap_rows[] = { REMAP(MEMBER_ROW) };
static const struct key_table remap_keys = KEY_TABLE(remap_rows);

static json_t *remap_object(const struct mount_record *record, bool runs)
{
        struct members members = { .programs = 1 };

        REMAP(MEMBER_PUT)
        return members_end(&members);
}

/* As requests name it: see mount_record_pending_id(). */
json_t *reply_mount_id(const struct mount_record *record)
{
        char id[MOUNT_RECORD_ID_MAX];

        (void)text_copy(id, sizeof id, record->id);
        mount_record_settle_id(id);
        return json_string(id);
}

static json_t *options_array(const char *text)
{
        json_t *array = json_array();

        while (array != NULL && *text != '\0') {
                size_t length = strcspn(text, ",");

                (void)json_array_append_new(array,
                                            json_stringn(text, length)); /* a reply with fewer words still is one */
                text += length + (text[length] == ',' ? 1 : 0);
        }
        return array;
}

static const char *const states[] = { "present", "covered", "gone", "wanted", "unknown", NULL };
/* Those of enum block_device_state. */
static const char *const device_states[] = { "present", "replaced", "gone", NULL };

/* clang-format off */
#define MOUNT(X) \
        X("id", ALL, ALL, reply_mount_id(record), KEY_ANY, .help = "the record's name, for mount-remove") \
        X("container", ALL, ALL, reply_container(record->pid, record->container_id), \
          KEY_OBJECT, .members = &reply_container_keys, .help = "the container it is in") \
        X("type", ALL, ALL, json_string(record->type), \
          KEY_ANY, .help = "bind, raw, nfs, tmpfs, overlay, or the filesystem's type") \
        X("source", ALL, ALL, reply_printable(record->source), KEY_ANY, .help = "as it was asked for") \
        X("target", ALL, ALL, reply_printable(record->target), \
          KEY_ANY, .help = "where it is, as the container sees it") \
        X("options", ALL, ALL, options_array(record->options), \
          KEY_ARRAY, .help = "of the mount and of the filesystem") \
        X("idMapping", ALL, ALL, json_string(record->id_mapping), \
          KEY_ANY, .help = "how owners are made right: none, idmapped, userns, remap or host") \
        X("mountId", ALL, ALL, json_integer((json_int_t)record->identity.id), \
          KEY_COUNT, .help = "the kernel's number of the mount") \
        X("from", ALL, 0, record->from_pid != 0 ? from_object(record) : NULL, \
          KEY_OBJECT, .members = &from_keys, .help = "where the source is, if in another container") \
        X("nfs", ALL, 0, record->server_version[0] != '\0' ? nfs_object(record) : NULL, \
          KEY_OBJECT, .members = &nfs_keys, .help = "what was agreed with the server") \
        X("origin", REPLIES_MADE, 0, has_origin(record) ? reply_printable(record->origin) : NULL, \
          KEY_ANY, .help = "what the source turned out to be") \
        X("alreadyMounted", REPLIES_MADE, REPLIES_MADE, json_boolean(outcome->already), \
          KEY_BOOLEAN, .help = "whether the same request was done before") \
        X("replaced", REPLIES_MADE, 0, outcome->replaced ? replaced_object(outcome) : NULL, \
          KEY_OBJECT, .members = &replaced_keys, .help = "that it took the place of another") \
        X("stillOpen", SWITCHES, 0, looked_for_former(outcome) ? still_open_array(outcome->former) : NULL, \
          KEY_ARRAY, .members = &still_open_keys, \
          .help = "processes that have files of a volume open which this one replaced; it stays in use") \
        X("stillOpenMore", SWITCHES, 0, members_true(outcome->former != NULL && outcome->former->more), \
          KEY_BOOLEAN, .help = "true: there are more, or not all were looked at in time") \
        X("stillAttached", SWITCHES, 0, stays_attached(outcome) ? json_string(outcome->former->attached) : NULL, \
          KEY_ANY, .help = "a replaced volume that could not be detached") \
        X("hint", SWITCHES, 0, stays_attached(outcome) ? why_attached(outcome->former) : NULL, \
          KEY_ANY, .help = "why it stays attached") \
        X("state", REPLIES_LIST, REPLIES_LIST, json_string(listing_state(entry)), \
          KEY_WORD, .words = states, \
          .help = "what the kernel says; covered: by another mount, or moved away; wanted: it is not there, and comes " \
                  "when the container starts again; unknown: it could not be asked") \
        X("wanted", REPLIES_LIST, REPLIES_LIST, json_boolean(entry->wanted), \
          KEY_BOOLEAN, .help = "whether it is wanted whenever the container runs: \"persist\"") \
        X("device", REPLIES_LIST, 0, record->disk != 0 ? json_string(device_states[entry->device]) : NULL, \
          KEY_WORD, .words = device_states, \
          .help = "of a block device: whether its number is still the disk that was mounted") \
        X("stillReachable", REPLIES_LIST, 0, members_true(record->removed), \
          KEY_BOOLEAN, \
          .help = "true: it was removed or replaced, but a process may still have its raw device or files open") \
        X("remap", REPLIES_LIST, 0, record->remap_key != 0 ? remap_object(record, entry->remap_runs) : NULL, \
          KEY_OBJECT, .members = &remap_keys, .help = "the daemon that serves \"ids\": \"remap\"") \
        X("problem", REPLIES_LIST, 0, entry->problem[0] != '\0' ? reply_printable(entry->problem) : NULL, \
          KEY_ANY, .help = "why the kernel could not be asked")
/* clang-format on */

static const struct key mount_rows[] = { MOUNT(MEMBER_ROW) };
const struct key_table reply_mount_keys = KEY_TABLE(mount_rows);

static bool has_origin(const struct mount_record *record)
{
        return record->from_pid == 0 && strcmp(record->origin, record->source) != 0;
}

/* Whether it was asked what became of volumes whose mounts were replaced, by this call or an earlier one. */
static bool looked_for_former(const struct outcome *outcome)
{
        const struct former *former = outcome->former;

        return former != NULL && (has_former(outcome) || former->count > 0 || former->more);
}

static bool stays_attached(const struct outcome *outcome)
{
        return outcome->former != NULL && outcome->former->attached[0] != '\0';
}

static json_t *object_of(unsigned programs, const struct mount_record *record, const struct outcome *outcome,
                         const struct listing_entry *entry)
{
        struct members members = { .programs = programs };

        MOUNT(MEMBER_PUT)
        return members_end(&members);
}

json_t *reply_mount_made(unsigned programs, const struct outcome *outcome)
{
        static const struct listing_entry none = {};

        return object_of(programs, outcome->record, outcome, &none);
}

json_t *reply_mount_listed(const struct listing_entry *entry)
{
        static const struct outcome none = {};

        return object_of(REPLIES_LIST, listing_record(entry), &none, entry);
}
