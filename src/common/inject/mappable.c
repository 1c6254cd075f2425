/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/mappable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failure.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/node_path.h"
#include "base/reply.h"
#include "base/schema.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "daemon/id_mappable.h"
#include "inject/reply_failure.h"
#include "mount/detached.h"
#include "mount/mountinfo.h"
#include "mount/nfs.h"
#include "mount/on_node.h"
#include "process/worker.h"
#include "state/config.h"
#include "state/mount_record.h"

#define FUSE_TYPE "fuse.flexgraft"
#define TIMEOUT_SECONDS 60 /* as the table of keys says, too */
#define SHARE_OF_TIME 4    /* all but this part of it is for finding the server */

/* ---- the request and the replies */

static int take_cache(void *object, const char *name, const json_t *value, struct error *error)
{
        struct mappable_request *request = object;
        size_t index;
        int r = key_word(remap_cache_words, name, value, &index, error);

        if (r == 0)
                request->cache = (enum remap_cache)index;
        return r;
}

static int take_options(void *object, const char *name, const json_t *value, struct error *error)
{
        struct mappable_request *request = object;

        (void)name;
        return json_is_string(value) ? mount_options_add_list(&request->options, json_string_value(value), error)
                                     : json_value_refuse(error, name, "must be a string");
}

static json_t *schema_of_options(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:s}", "type", "string");
}

static const struct key keys[] = {
        { "source", 1, 1, KEY_STRING, .pattern = "^(" MAPPABLE_NFS ".+:)?/",
          .offset = offsetof(struct mappable_request, source), .positional = 1,
          .help = "a directory of this node, or \"" MAPPABLE_NFS "host:/path\": an export of an NFS server, which is "
                  "mounted for this and unmounted with it" },
        { "target", 1, 1, KEY_PATH, .offset = offsetof(struct mappable_request, target), .positional = 1,
          .help = "a directory of this node, on which it is mounted" },
        { "readOnly", 1, 0, KEY_BOOLEAN, .offset = offsetof(struct mappable_request, read_only),
          .help = "no process can write through this mount, nor through one that is made of it" },
        { "options", 1, 0, KEY_OWN, .take = take_options, .schema = schema_of_options, .spelling = SPELLED_COMMAS,
          .help = "options of nfs(5) for an export, with commas: \"vers=4.2\"" },
        { "cache", 1, 0, KEY_WORD, .words = remap_cache_words, .take = take_cache, .preset = "auto",
          .help = "always: the files are changed through this mount alone, so that what is known of them stays right" },
        { "timeoutSeconds", 1, 0, KEY_INTEGER, 1, 3600, .offset = offsetof(struct mappable_request, timeout_seconds),
          .preset = "60", .help = "give up after so many seconds" },
};
static const struct key_table request_table = KEY_TABLE(keys);

/* clang-format off */
#define MOUNT(X) \
        X("source", 1, 1, reply_printable(job->source), KEY_ANY, \
          .help = "the directory, with links and .. resolved; or the export, as in the request") \
        X("target", 1, 1, reply_printable(job->target), KEY_ANY, .help = "where it is mounted, likewise") \
        X("readOnly", 1, 1, json_boolean(job->read_only), KEY_BOOLEAN, .help = "whether it is read-only") \
        X("alreadyMounted", 1, 1, json_boolean(job->already), KEY_BOOLEAN, .help = "whether it was mounted before")

#define REPLY(X) \
        X("status", 1, 1, json_string(schema_success[0]), \
          KEY_WORD, .words = schema_success, .help = "it is mounted") \
        X("mount", 1, 1, mount_object(job), KEY_OBJECT, .members = &mount_table, .help = "the mount")
/* clang-format on */

static const struct key mount_rows[] = { MOUNT(MEMBER_ROW) };
static const struct key_table mount_table = KEY_TABLE(mount_rows);
static const struct key reply_rows[] = { REPLY(MEMBER_ROW) };
static const struct key_table reply_table = KEY_TABLE(reply_rows);

static const struct schema_form replies[] = { { "mounted", 1, &reply_table }, { "failed", 1, &failure_keys }, {} };

static const struct people_form people[] = {
        { .when = "mount,!mount.alreadyMounted", .line = "mounted {mount.source} on {mount.target}" },
        { .when = "mount.alreadyMounted", .line = "{mount.source} is already mounted on {mount.target}" },
        {},
};

const struct schema mappable_schema = {
        .request = &request_table, .programs = 1, .replies = replies, .people = people
};

int mappable_check_source(const char *source, struct error *error)
{
        struct nfs_export export;

        if (text_starts(source, MAPPABLE_NFS) ? nfs_export_parse(source + strlen(MAPPABLE_NFS), &export) == 0
                                              : source[0] == '/')
                return 0;
        return fail_because(error, EINVAL, OPERATION_PARSE, "source",
                            "the source must be a directory of this node, by an absolute path, or an export, "
                            "\"" MAPPABLE_NFS "host:/path\"");
}

/* Of a directory the attributes of its mount hold. */
static int check_options(const char *source, const struct mount_options *options, struct error *error)
{
        if ((options->attr_set | options->attr_clear) != 0 || options->propagation != 0 || options->recursive)
                return json_value_refuse(error, "options", "may have those of nfs(5) alone");
        return options->fs_count == 0 || text_starts(source, MAPPABLE_NFS)
                       ? 0
                       : json_value_refuse(error, "options", "are for an export, \"" MAPPABLE_NFS "host:/path\"");
}

int mappable_parse(int argc, char **argv, struct mappable_request *ret_request, struct error *error)
{
        int r;

        *ret_request = (struct mappable_request){ .timeout_seconds = TIMEOUT_SECONDS };
        r = key_read_request(argc, argv, &ret_request->json, error);
        if (r == 0)
                r = key_take_all(&request_table, 1, ret_request, ret_request->json, error);
        if (r == 0)
                r = mappable_check_source(ret_request->source, error);
        return r == 0 ? check_options(ret_request->source, &ret_request->options, error) : r;
}

int mappable_say_failure(const struct mappable_request *request, const struct error *error)
{
        char message[2 * PATH_MAX + 1024];

        if (!failure_understood(error))
                (void)snprintf(message, sizeof message, FAILURE_NOT_UNDERSTOOD "%s", error_why(error));
        else
                (void)snprintf(message, sizeof message, "cannot mount %s on %s: %s: %s",
                               request->source != NULL ? request->source : "a directory",
                               request->target != NULL ? request->target : "another", error->subject, error_why(error));
        return failure_say(message, error, failure_hint(error, nfs_hints, inject_all_hints));
}

/* ---- the mount */

struct job {
        const struct mappable_request *request;
        const char *state_dir;
        bool export;
        char source[PATH_MAX]; /* resolved */
        char target[PATH_MAX];
        int mount_fd;
        bool already;
        bool read_only; /* what is mounted is */
};

static int check_directory(const struct job *job, int source_fd, struct error *error)
{
        struct statx stx;

        if (statx(source_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) < 0)
                return fail(error, errno, "statx", job->source);
        return S_ISDIR(stx.stx_mode) ? 0 : fail(error, ENOTDIR, "open", job->source);
}

/* Then the mount of it is, too, whatever the request says. */
static bool is_read_only(int source_fd)
{
        struct statvfs fs;

        return source_fd >= 0 && fstatvfs(source_fd, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
}

/*
 * What is mounted on the target. Returns 1: this, and it is served; 0: nothing, or one that is not served any more. An
 * automount (autofs) is nothing: it may be this mount that it waits for.
 */
static int look(struct job *job, int source_fd, int target_fd, struct error *error)
{
        cleanup_mount_table struct mountinfo table = {};
        bool mounted = false;
        bool ours = false;
        struct statvfs fs;

        if (mountinfo_open_own(&table) < 0)
                return fail(error, EIO, "open", "/proc/self/mountinfo");
        while (mountinfo_next(&table))
                if (strcmp(table.mount_point, job->target) == 0) {
                        mounted = strcmp(table.type, "autofs") != 0;
                        ours = strcmp(table.type, FUSE_TYPE) == 0 && strcmp(table.source, job->source) == 0;
                }
        if (table.failed)
                return fail(error, EIO, "read", "/proc/self/mountinfo");
        if (!mounted)
                return 0;
        if (!ours)
                return fail_because(error, EBUSY, "look", job->target, "something else is mounted on it");
        if (fstatvfs(target_fd, &fs) < 0) { /* its daemon and keeper were killed, or just are */
                int r = errno == ENOTCONN || errno == ECONNABORTED ? on_node_unmount(job->target, MNT_DETACH, 1, error)
                                                                   : fail(error, errno, "statfs", job->target);

                return r < 0 && r != -EINVAL ? r : 0; /* EINVAL: it was unmounted meanwhile */
        }
        job->read_only = (fs.f_flag & ST_RDONLY) != 0;
        if (job->read_only != job->request->read_only && !(job->read_only && is_read_only(source_fd)))
                return fail_because(error, EBUSY, "look", job->target, "it is mounted %s",
                                    job->request->read_only ? "for writing" : "read-only");
        if (id_mappable_cache(job->target) != job->request->cache)
                return fail_because(error, EBUSY, "look", job->target, "it is mounted with \"cache\": \"%s\"",
                                    remap_cache_words[id_mappable_cache(job->target)]);
        return 1;
}

/* Nothing else has it. */
static int mount_export(const struct job *job, struct error *error)
{
        static struct nfs_export export;
        const int64_t time_ms = (int64_t)job->request->timeout_seconds * 1000;
        struct nfs_mount mount = { .export = &export,
                                   .options = &job->request->options,
                                   .read_only = job->request->read_only,
                                   .deadline_ms = clock_now_ms() + time_ms - time_ms / SHARE_OF_TIME };
        int r = nfs_export_parse(job->source + strlen(MAPPABLE_NFS), &export);

        return r < 0 ? fail(error, -r, OPERATION_PARSE, job->source) : nfs_mount_on_node(&mount, error);
}

static int clone_directory(const struct job *job, int source_fd, struct error *error)
{
        int r = check_directory(job, source_fd, error);

        return r < 0 ? r : detached_mount_clone(source_fd, job->source, /* recursive= */ false, error);
}

/* Once more, since what was mounted on it may be gone; its links are resolved, and by now there may be none. */
static int place(const struct job *job, struct error *error)
{
        cleanup_close int fd = sys_openat2(AT_FDCWD, job->target, O_PATH, 0, RESOLVE_NO_SYMLINKS);

        return fd < 0 ? fail(error, errno, "open", job->target)
                      : on_node_place_at(job->mount_fd, fd, job->target, error);
}

/*
 * The attributes of a directory's mount hold for the new one, too; what a server has is no program of this node's users.
 * Nobody opens devices through either.
 */
static int mount_it(struct job *job, int source_fd, struct error *error)
{
        struct mount_attributes attributes = { .set = MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE };
        cleanup_close int source_mount = -EBADF;
        struct statvfs fs;
        uint64_t key;
        int r;

        source_mount = job->export ? mount_export(job, error) : clone_directory(job, source_fd, error);
        if (source_mount < 0)
                return source_mount;
        if (fstatvfs(source_mount, &fs) < 0)
                return fail(error, errno, "statfs", job->source);
        if (job->request->read_only || (fs.f_flag & ST_RDONLY) != 0)
                attributes.set |= MOUNT_ATTR_RDONLY;
        job->read_only = (attributes.set & MOUNT_ATTR_RDONLY) != 0;
        attributes.set |= job->export || (fs.f_flag & ST_NOSUID) != 0 ? MOUNT_ATTR_NOSUID : 0;
        /* noexec and nosymfollow: id_mappable_serve() */
        if ((r = detached_mount_set(source_mount, job->source, &attributes, /* user_ns_fd= */ -1, error)) < 0)
                return r;
        job->mount_fd = id_mappable_serve(
                (struct remap_source){ .mount_fd = source_mount, .name = job->source, .cache = job->request->cache },
                attributes.set, job->state_dir, &key, error);
        return job->mount_fd < 0 ? job->mount_fd : place(job, error);
}

static int work(void *argument, struct error *error)
{
        static char now[PATH_MAX];
        struct job *job = argument;
        cleanup_state struct state state = STATE_NONE;
        cleanup_close int source_fd = -EBADF;
        cleanup_close int target_fd = -EBADF;
        int r;

        job->export = text_starts(job->request->source, MAPPABLE_NFS);
        if (job->export && !text_copy(job->source, sizeof job->source, job->request->source))
                return fail(error, ENAMETOOLONG, "open", "source");
        if (!job->export && (source_fd = node_path_open_mounted(job->request->source, job->source, error)) < 0)
                return source_fd;
        target_fd = node_path_open(job->request->target, job->target, error);
        if (target_fd < 0)
                return target_fd;
        if ((r = state_open(job->state_dir, "mounts", /* create= */ true, &state, error)) < 0)
                return r;
        /* of two such calls at a time one waits; as all keys of locks, with the two highest bits clear */
        if ((r = state_lock(&state, hash_text(job->target) >> 2, error)) < 0)
                return r;
        /* what is mounted there now: it may have come while this call waited */
        fd_close(&target_fd);
        target_fd = node_path_open(job->target, now, error);
        if (target_fd < 0)
                return target_fd;
        if ((r = look(job, source_fd, target_fd, error)) != 0) {
                job->already = r > 0;
                return r < 0 ? r : 0;
        }
        return mount_it(job, source_fd, error);
}

static json_t *mount_object(const struct job *job)
{
        struct members members = { .programs = 1 };

        MOUNT(MEMBER_PUT)
        return members_end(&members);
}

static json_t *reply_of(const struct job *job)
{
        struct members members = { .programs = 1 };

        REPLY(MEMBER_PUT)
        return members_end(&members);
}

static int run(struct job *job, const struct mappable_request *request, struct error *error)
{
        static char state_dir[PATH_MAX];
        int r = config_state_dir(state_dir, error);

        if (r < 0)
                return r;
        *job = (struct job){ .request = request, .state_dir = state_dir, .mount_fd = -EBADF };
        r = worker_run(work, job, clock_now_ms() + (int64_t)request->timeout_seconds * 1000, error);
        fd_close(&job->mount_fd); /* unless it was placed, this ends its daemon */
        return r;
}

static struct job job;

int mappable_mount(const struct mappable_request *request, json_t **ret_reply, struct error *error)
{
        int r = run(&job, request, error);

        if (r < 0)
                return r;
        *ret_reply = reply_of(&job);
        return 0;
}

int mappable_mount_words(const char *source, const char *target, bool read_only, const struct mount_options *options,
                         bool *ret_already, struct error *error)
{
        static struct mappable_request request; /* static, as what points to it */
        int r;

        request = (struct mappable_request){
                .source = source, .target = target, .read_only = read_only, .timeout_seconds = TIMEOUT_SECONDS
        };
        request.options.fs_options = options->fs_options;
        request.options.fs_count = options->fs_count;
        r = run(&job, &request, error);
        *ret_already = job.already;
        return r;
}
