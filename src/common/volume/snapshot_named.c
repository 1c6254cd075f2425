/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "block/filesystem.h"
#include "block/freeze.h"
#include "pool/record.h"
#include "process/log.h"
#include "provision/provision.h"
#include "state/access.h"
#include "volume/choose.h"
#include "volume/device_filesystem.h"
#include "volume/kinds.h"
#include "volume/mount_dir.h"
#include "volume/pod_device.h"
#include "volume/used.h"

/* A volume, while its content is read. */
struct still {
        struct volume_call call;
        const struct provision_request *asked;
        struct block_device device; /* number 0: it is not attached */
        char type[FILESYSTEM_TYPE_SIZE];
        bool attached;
        bool busy;    /* somebody may write to its device */
        bool mounted; /* somebody may write to its filesystem */
        int mount_fd;
        int dir_fd;
        struct freeze freeze;
        json_t *reply;
};

/* What was written to the device itself, and what its filesystem has not written yet, is in the image after this. */
static int flush(const struct block_device *device, struct error *error)
{
        cleanup_close int fd = open(device->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        return fd < 0 || fsync(fd) < 0 ? fail(error, errno, "fsync", device->path) : 0;
}

/* A mount of ours, which nobody sees, is of the same filesystem, wherever it is mounted. Returns 1: it is read-only; 0. */
static int reach(struct still *still, struct error *error)
{
        still->mount_fd = device_filesystem_reach(&still->call, &still->device, still->type, error);
        if (still->mount_fd < 0)
                return still->mount_fd == -EBUSY ? 1 : still->mount_fd;
        still->dir_fd = openat(still->mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return still->dir_fd < 0 ? fail(error, errno, "open", still->device.path) : 0;
}

static void leave(struct still *still)
{
        fd_close(&still->dir_fd);
        fd_close(&still->mount_fd);
}

static int begin_still(void *argument, unsigned seconds, struct error *error)
{
        struct still *still = argument;
        int r;

        if (still->call.recorded && (r = pod_device_flush(&still->call, error)) < 0)
                return r;
        if (still->device.number == 0)
                return 0;
        r = still->mounted ? reach(still, error) : 1;
        if (r != 0)
                return r < 0 ? r : flush(&still->device, error);
        return freeze_begin(still->dir_fd, seconds, &still->freeze, error);
}

static int end_still(void *argument, struct error *error)
{
        struct still *still = argument;
        int r = freeze_end(&still->freeze, error);

        leave(still);
        return r;
}

static int end_killed(void *argument, struct error *error)
{
        struct still *still = argument;
        int r = still->mounted ? reach(still, error) : 1;

        if (r == 0)
                freeze_undo(still->dir_fd);
        leave(still);
        return r < 0 ? r : 0;
}

/* Whether it is attached, and mounted for writing. */
static int look(struct still *still, const struct provision_record *made, struct error *error)
{
        struct volume_call *call = &still->call;
        struct error ignored;
        int r;

        if (json_object_set_new(call->request->options, "type", json_string(made->pool_type)) < 0)
                return fail(error, ENOMEM, "find volume", made->name);
        if ((r = volume_choose_kind(call, error)) < 0 || (r = call->kind->look(call, error)) <= 0)
                return r;
        if (call->record.formatting[0] != '\0')
                return fail_because(error, EBUSY, "take snapshot", made->name,
                                    "making its filesystem was interrupted; mount it once");
        volume_call_device(call, &still->device);
        still->attached = true;
        still->busy = volume_check_no_writer(call, "take snapshot", &ignored) < 0;
        if ((call->record.read_only && mount_dir_is_staged(call)) ||
            block_device_check_unused(&still->device, &ignored) == 0)
                return 0;
        if (access_is_block(made->target_type))
                r = -ENODATA;
        else
                r = block_device_fs_type(&still->device, still->type, error);
        still->mounted = r == 0;
        still->busy = still->busy || r == -ENODATA; /* what a container has made of it, or another program */
        return r == -ENODATA ? 0 : r;
}

static bool freezes(const struct provision_record *made)
{
        const struct volume_kind *kind = volume_kind_find(made->pool_type);

        return kind != NULL && kind->freezes;
}

static int thaw(struct still *still, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        struct volume_call *call = &still->call;
        const char *name = call->request->name;
        int r = state_open(call->config.state_dir, "volumes", /* create= */ false, &call->state, error);

        if (r == 0 && !state_try_lock(&call->state, volume_record_key(name)))
                return fail_because(error, EBUSY, "thaw", name,
                                    "another call has the volume"); /* and thaws it, or waits */
        if (r == 0 && (r = volume_record_read(&call->state, name, /* driver= */ "", &call->record, error)) == 0) {
                call->recorded = true;
                r = provision_record_find(call->config.state_dir, name, &made, error);
        }
        /* other pools' own tools freeze, and what they left is resumed where the snapshot is deleted */
        if (r == 0 && !freezes(&made))
                return 0;
        if (r == 0 && (r = look(still, &made, error)) == 0)
                r = end_killed(still, error);
        return r == -ENOENT ? 0 : r;
}

/* The one call of a volume-snapshot; volume-reconcile has one after the other. */
static struct volume_request wanted;
static struct still current = { .mount_fd = -EBADF, .dir_fd = -EBADF, .freeze = FREEZE_NONE };

int volume_snapshot_thaw(const struct config *config, const char *name, struct error *error)
{
        int r;

        wanted = (struct volume_request){ .verb = VERB_DETACH, .options = json_object() };
        (void)text_copy(wanted.name, sizeof wanted.name, name); /* shorter */
        current = (struct still){
                .call = { .request = &wanted, .config = *config, .state = STATE_NONE, .provisioned = STATE_NONE },
                .mount_fd = -EBADF,
                .dir_fd = -EBADF,
                .freeze = FREEZE_NONE
        };
        r = thaw(&current, error);
        volume_record_release(&current.call.record);
        state_release(&current.call.state);
        json_decref(wanted.options);
        return r;
}

static int run(struct volume_call *call, struct error *error)
{
        struct still *still = (struct still *)call; /* its first member */
        cleanup_provision_record struct provision_record made = {};
        const struct provision_request *asked = still->asked;
        int r = volume_call_open(call, error);

        if (r < 0)
                return r;
        r = provision_record_find(call->config.state_dir, asked->name, &made, error);
        /* pools without snapshots are refused by provision_snapshot() */
        if (r == 0 && asked->snapshot != NULL && freezes(&made))
                r = look(still, &made, error);
        if (r < 0 && r != -ENOENT)
                return r;
        return provision_snapshot(&call->config, asked,
                                  &(const struct provision_still){ .attached = still->attached,
                                                                   .mounted = still->mounted,
                                                                   .busy = still->busy,
                                                                   .begin = begin_still,
                                                                   .end = end_still,
                                                                   .end_killed = end_killed,
                                                                   .argument = still },
                                  &still->reply, error);
}

int volume_snapshot_named(const struct provision_request *request, json_t **ret_reply, struct error *error)
{
        struct volume_call *call = &current.call;
        int r;

        *ret_reply = NULL;
        current.asked = request;
        wanted.verb = VERB_DETACH;
        (void)text_copy(wanted.name, sizeof wanted.name, request->name); /* shorter */
        call->request = &wanted;
        call->state = (struct state)STATE_NONE;
        call->provisioned = (struct state)STATE_NONE;
        call->provisions = true; /* copying takes as long as overwriting */
        r = config_load(&call->config, error);
        log_begin("volume-snapshot", r == 0 ? call->config.log : "syslog");
        if (r < 0)
                return r;
        wanted.options = json_object();
        r = volume_call_run(call, run, error);
        json_decref(wanted.options);
        *ret_reply = current.reply;
        return r;
}
