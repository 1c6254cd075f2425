/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/by_name.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "mount/identity.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/provision.h"
#include "state/access.h"
#include "state/use_index.h"
#include "volume/choose.h"
#include "volume/exec_helpers.h"
#include "volume/kata_image.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/named_stage.h"
#include "volume/pod_device.h"
#include "volume/provisioned.h"
#include "volume/same.h"
#include "volume/sighting.h"
#include "volume/used.h"
#include "volume/volume.h"

/* ---- the programs that it needs */

unsigned volume_by_name_runs(const char *name, bool *ret_any_filesystem)
{
        cleanup_provision_record struct provision_record record = {};
        const struct volume_kind *kind;
        char state_dir[PATH_MAX];
        struct error ignored; /* the program meets it again */

        *ret_any_filesystem = true;
        if (config_state_dir(state_dir, &ignored) < 0 ||
            provision_record_find(state_dir, name, &record, &ignored) < 0 ||
            (kind = volume_kind_find(record.pool_type)) == NULL)
                return VOLUME_RUNS_ALL;
        *ret_any_filesystem = kind->any_filesystem;
        /* what is staged now may be detached before the volume's lock is ours, and then it is checked, or formatted */
        return kind->runs | VOLUME_RUNS_FS_TOOLS;
}

/* The volume was made anew, of another kind, since volume_by_name_runs(). Before anything is changed. */
static int check_helpers(const struct volume_call *call, unsigned runs, struct error *error)
{
        return volume_exec_helpers_suffice(runs) ? 0
                                                 : fail_because(error, EAGAIN, "find volume", call->request->name,
                                                                "the volume was changed meanwhile; try again");
}

/* ---- one volume */

int volume_by_name_hold(struct volume_by_name *ret_volume, const char *name, bool look, struct error *error)
{
        struct volume_call *call = &ret_volume->call;
        int r;

        *ret_volume = (struct volume_by_name){
                .request.verb = VERB_MOUNTDEVICE,
                .call = { .request = &ret_volume->request, .state = STATE_NONE, .provisioned = STATE_NONE }
        };
        ret_volume->request.options = json_object();
        if (ret_volume->request.options == NULL)
                return fail(error, ENOMEM, "find volume", name);
        if (!text_copy(ret_volume->request.name, sizeof ret_volume->request.name, name))
                return fail(error, ENAMETOOLONG, "find volume", name);
        if ((r = config_load(&call->config, error)) < 0)
                return r;
        log_begin(ret_volume->request.name, call->config.log);
        if ((r = proc_boot_id(call->boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        if (!look)
                return volume_call_open(call, error);
        r = volume_record_peek(call->config.state_dir, name, call->driver, &call->record, error);
        call->recorded = r == 0;
        return r == -ENOENT ? 0 : r;
}

static int fail_none(const struct volume_call *call, struct error *error)
{
        return fail_because(error, ENOENT, "find volume", call->request->name,
                            "there is no volume of this name; make one with volume-create");
}

/* Not one of volume-create, but it is mounted. */
static int choose_staged(struct volume_call *call, struct error *error)
{
        const struct volume_kind *kind = call->recorded ? volume_kind_find(call->record.kind) : NULL;

        if (kind == NULL || !kind->has_device || !mount_dir_is_staged(call))
                return fail_none(call, error);
        call->kind = kind;
        return 0;
}

/* A container would see the image in place of the volume's content, and two kernels would write to it. */
static bool is_for_machines(const struct volume_call *call, const struct provision_record *made)
{
        const char *staged = call->recorded ? call->record.staged.dir : NULL;

        return made->has_kata_image || (staged != NULL && kata_image_is_below(call->config.state_dir, staged));
}

/* What a volume of a pool, and its kind, must be. */
static int check_kind(const struct volume_by_name *volume, const char *fs_type, const struct provision_record *made,
                      struct error *error)
{
        const struct volume_kind *kind = volume->call.kind;
        const char *name = volume->request.name;

        if (!kind->has_device && kind->open == NULL && kind->mount_apart == NULL)
                return fail_because(error, EOPNOTSUPP, "find volume", name,
                                    "volumes of type %s are not mounted by name", kind->word);
        if (fs_type != NULL && !kind->has_device)
                return fail_because(error, EINVAL, "make filesystem", fs_type,
                                    "volume \"%.200s\" is of type %s, and has no filesystem of its own; leave out "
                                    "\"fsType\"",
                                    name, kind->word);
        if (kind->mount_apart != NULL && access_is_single(made->access_mode))
                return fail_because(
                        error, EOPNOTSUPP, "find volume", name,
                        "the volume is for a single writer, which containers are not held to where it is on a server; "
                        "make one without that access mode");
        return 0;
}

/* A volume of a pool, as it was made. */
static int choose_made(struct volume_by_name *volume, const char *fs_type, const struct provision_record *made,
                       struct error *error)
{
        struct volume_request *request = &volume->request;
        struct volume_call *call = &volume->call;
        int r;

        if (volume->raw && !access_is_block(made->target_type))
                return fail_because(
                        error, EINVAL, "find volume", request->name,
                        "the volume was made for a filesystem (targetType mount), and is not given as a raw device");
        if (fs_type != NULL && !text_copy(request->fs_type, sizeof request->fs_type, fs_type))
                return fail(error, EINVAL, "make filesystem", fs_type);
        if (json_object_set_new(request->options, "type", json_string(made->pool_type)) < 0)
                return fail(error, ENOMEM, "find volume", request->name);
        if ((r = volume_choose_kind(call, error)) < 0 || (r = check_kind(volume, fs_type, made, error)) < 0)
                return r;
        if ((r = volume_check_same(call, error)) < 0 || (!volume->raw && (r = provisioned_apply(call, error)) < 0) ||
            (r = volume_kind_wrapper(request, call->kind, &call->wrapper, error)) < 0)
                return r;
        if (call->wrapper != NULL)
                return fail_because(error, EOPNOTSUPP, "find volume", request->name,
                                    "it was made for virtual machines (%s)", call->wrapper->flag);
        return volume_access_apply(call, error);
}

int volume_by_name_choose(struct volume_by_name *volume, const char *fs_type, const struct provision_request *create,
                          struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        struct volume_call *call = &volume->call;
        int r = provision_record_find(call->config.state_dir, volume->request.name, &made, error);

        if (r < 0 && r != -ENOENT)
                return r;
        if (is_for_machines(call, &made))
                return kata_image_refuse("find volume", volume->request.name, error);
        if (create != NULL && (r == -ENOENT || made.lifecycle == PROVISION_CREATING) && !mount_dir_is_staged(call)) {
                volume->create = create;
                return 0;
        }
        if (r == 0 && volume->policy != NULL && (r = named_policy_check_pool(volume->policy, made.pool, error)) < 0)
                return r;
        if (r == 0)
                return choose_made(volume, fs_type, &made, error);
        if (volume->raw)
                return fail_none(call, error);
        return volume->policy != NULL ? policy_forbid(volume->policy, "a volume of no pool", "pools", error)
                                      : choose_staged(call, error);
}

static int make(struct volume_by_name *volume, struct error *error)
{
        const struct provision_request *create = volume->create;
        char problem[PROFILES_PROBLEM_SIZE];
        int r = provision_make(&volume->call.config, create, problem, error);

        if (r < 0)
                return r;
        volume->create = NULL; /* for the next mount of a batch: making it takes a lock that this one has by then */
        return volume_by_name_choose(volume, create->fs_type, /* create= */ NULL, error);
}

/* Up to where it may be changed. Gives: request.dir. */
static int prepare(struct volume_by_name *volume, unsigned runs, struct error *error)
{
        struct volume_call *call = &volume->call;
        int r;

        if (volume->create != NULL && (r = make(volume, error)) < 0)
                return r;
        if ((r = check_helpers(call, call->kind->runs | runs, error)) < 0)
                return r;
        r = call->kind->mount_apart != NULL ? provisioned_hold_apart(call, error) : provisioned_hold(call, error);
        if (r < 0)
                return r;
        return named_stage_dir(call, volume->request.dir, error);
}

static int stage(struct volume_by_name *volume, struct error *error)
{
        int r;

        volume->changed = true; /* from here on it may be */
        r = named_stage_make(volume->request.dir, error);
        return r < 0 ? r : volume_stage_attached(&volume->call, error);
}

int volume_by_name_attach(struct volume_by_name *volume, struct error *error)
{
        struct volume_call *call = &volume->call;
        int r = prepare(volume, 0, error);

        if (r < 0 || (r = call->kind->look(call, error)) < 0)
                return r;
        if (r == 0) { /* else it is attached, perhaps for kubelet, and stays so */
                volume->changed = true;
                if ((r = named_stage_make(volume->request.dir, error)) < 0)
                        return r;
        }
        if ((r = call->kind->attach(call, error)) < 0)
                return r;
        sighting_forget(call);
        return 0;
}

/* Again for each mount of a batch. The volume's name is what volume-delete and volume-list ask the list of uses for. */
static int make_apart(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        int r = provisioned_find_apart(call, &made, error);

        if (r < 0)
                return r == -ENOENT ? fail_none(call, error) : r;
        call->record.read_only = access_reads_only(made.access_mode);
        call->record.uses[0] = '\0';
        use_keys_add_named(call->record.uses, call->request->name);
        return call->kind->mount_apart(call, &made, error);
}

/* Where nothing is staged, what would be said of the stage: by the access mode and by the flags of the volume. */
static int open_directory(struct volume_call *call, struct error *error)
{
        call->record.read_only = call->request->read_only;
        call->attributes = call->request->mount_options.attr_set & ~(uint64_t)MOUNT_ATTR_RDONLY;
        return call->kind->open(call, error);
}

bool volume_by_name_is_apart(const struct volume_by_name *volume)
{
        return volume->call.kind != NULL && volume->call.kind->mount_apart != NULL;
}

bool volume_by_name_has_any_filesystem(const struct volume_by_name *volume)
{
        return volume->call.kind != NULL && volume->call.kind->any_filesystem;
}

/* Access time is a choice of four, not a bit. */
void volume_by_name_add_attributes(const struct volume_by_name *volume, struct mount_attributes *attributes)
{
        uint64_t set = volume->call.attributes;
        uint64_t atime;

        if (volume->call.kind == NULL || volume->call.kind->has_device)
                return; /* its stage has them */
        if (!volume_by_name_is_apart(volume))
                set &= ~attributes->clear;
        atime = (set & MOUNT_ATTR__ATIME) != 0 ? MOUNT_ATTR__ATIME : 0;
        attributes->set = (attributes->set & ~atime) | set;
        attributes->clear = (attributes->clear & ~set) | atime;
}

int volume_by_name_stage(struct volume_by_name *volume, struct error *error)
{
        struct volume_call *call = &volume->call;
        cleanup_close int fd = -EBADF;
        struct mount_seen seen;
        const struct mount_attributes private = { .propagation = MS_PRIVATE };
        const char *dir;
        int r;

        if (!mount_dir_is_staged(call)) {
                if ((r = prepare(volume, VOLUME_RUNS_FS_TOOLS, error)) < 0)
                        return r;
                if (call->kind->open != NULL)
                        return open_directory(call, error);
                if (call->kind->mount_apart != NULL)
                        return make_apart(call, error);
                if ((r = stage(volume, error)) < 0)
                        return r;
        }
        dir = call->record.staged.dir;
        fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno, "open", dir);
        if ((r = mount_see(fd, "", &seen)) < 0)
                return fail(error, -r, "statx", dir);
        if (!seen.root || !mount_seen_is(&seen, &call->record.staged.identity))
                return fail_because(error, ESTALE, "stage", dir, "another mount is on %s than the volume's", dir);
        /* where the state directory is on a shared mount, what is mounted there is shared, too */
        if (named_stage_is(&call->config, dir) && (r = detached_mount_set(fd, dir, &private, -EBADF, error)) < 0)
                return r;
        sighting_forget(call);
        return fd_take(&fd);
}

/* Whether what is staged and attached is volume_by_name_stage()'s. */
static bool is_own(const struct volume_call *call, const char *dir)
{
        struct stat st;

        return call->record.staged.dir != NULL ? strcmp(call->record.staged.dir, dir) == 0 : lstat(dir, &st) == 0;
}

static bool is_published(const struct volume_call *call)
{
        for (size_t i = 0; i < call->record.published_count; i++)
                if (mount_dir_has(call, &call->record.published[i]) ||
                    pod_device_is(call, call->record.published[i].pod_device)) /* a process may have it open */
                        return true;
        return false;
}

int volume_by_name_let_go(struct volume_by_name *volume, const char *mount_id, struct error *error)
{
        struct volume_call *call = &volume->call;
        char dir[PATH_MAX];
        int r;

        volume->request.verb = VERB_DETACH;
        if (!call->recorded)
                return named_stage_unmake(call, error);
        if ((call->kind = volume_kind_find(call->record.kind)) == NULL)
                return 0; /* of a later version */
        if ((r = named_stage_dir(call, dir, error)) < 0)
                return r;
        if (!is_own(call, dir) || is_published(call))
                return 0;
        if ((r = check_helpers(call, call->kind->runs & ~(unsigned)VOLUME_RUNS_FS_TOOLS, error)) < 0)
                return r;
        call->leaving = mount_id;
        r = volume_check_unused(call, "detach", error);
        if (r < 0)
                return r == -EBUSY ? 0 : r;
        if ((r = named_stage_unmount(call, dir, error)) != 0 || (r = volume_detach_recorded(call, error)) < 0)
                return r;
        return named_stage_unmake(call, error);
}

void volume_by_name_release(struct volume_by_name *volume)
{
        volume_record_release(&volume->call.record);
        state_release(&volume->call.provisioned);
        state_release(&volume->call.state);
        volume_request_release(&volume->request);
}
