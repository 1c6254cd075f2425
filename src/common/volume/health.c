/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "block/device.h"
#include "mount/fs_usage.h"
#include "mount/mountinfo.h"
#include "process/proc.h"
#include "process/worker.h"
#include "provision/reply_object.h"
#include "state/config.h"
#include "state/volume_record.h"
#include "volume/kata_image.h"
#include "volume/verbs.h"

#define SHARE_MS 2000 /* of one volume that does not answer */
#define TIME_MS 20000 /* of all of them */
#define SILENT "it does not answer"
#define ROMFS_MAGIC 0x7275

/* In the order of provision_health_words. */
enum health { HEALTH_UNKNOWN, HEALTH_OK, HEALTH_UNFINISHED, HEALTH_MISSING, HEALTH_FAILED };

struct patient {
        const json_t *volume; /* of the reply; NULL: the one that is mounted on path */
        const char *path;
        const char *name;
        char type[sizeof((struct volume_record *)NULL)->kind]; /* of the one on path, as its record says */
        uint64_t device;                                       /* that is being asked; 0: none yet */
        enum health health;
        char problem[256];
        struct fs_usage usage;
        uint64_t device_bytes; /* 0: it is a filesystem */
};

struct patients {
        struct patient *items;
        size_t count;
        struct config config;
        char boot_id[PROC_BOOT_ID_SIZE];
        struct fs_lost lost;
};

static void find(struct patient *patient, enum health health, const char *problem)
{
        patient->health = health;
        (void)snprintf(patient->problem, sizeof patient->problem, "%s", problem);
}

/* Of a filesystem that counts its errors, as ext4 does. The name of the device in the kernel: "loop0", "dm-3". */
static void look_for_errors(struct patient *patient, const char *device)
{
        char path[PATH_MAX];
        char count[32];

        (void)snprintf(path, sizeof path, "/sys/fs/ext4/%.64s/errors_count", device);
        if (file_read(AT_FDCWD, path, count, sizeof count) <= 0 || strtoull(count, NULL, 10) == 0)
                return;
        find(patient, HEALTH_FAILED, "its filesystem has found errors; unmount it everywhere, and have it checked");
}

static void look_at_device(struct patient *patient, const struct volume_record *record)
{
        char path[PATH_MAX];
        char link[PATH_MAX];
        ssize_t n;

        (void)snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(record->device_number),
                       minor(record->device_number));
        n = readlinkat(AT_FDCWD, path, link, sizeof link - 1);
        if (n < 0) {
                if (errno == ENOENT)
                        find(patient, HEALTH_FAILED, "its device is gone");
                return;
        }
        link[n] = '\0';
        look_for_errors(patient, strrchr(link, '/') != NULL ? strrchr(link, '/') + 1 : link);
}

/* Such a filesystem is read-only without an error. */
static bool never_writes(const struct statfs *fs)
{
        static const unsigned long types[] = { EROFS_SUPER_MAGIC_V1, SQUASHFS_MAGIC, ISOFS_SUPER_MAGIC, CRAMFS_MAGIC,
                                               ROMFS_MAGIC };

        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if ((unsigned long)fs->f_type == types[i])
                        return true;
        return false;
}

/*
 * A directory of the node, or of a server, may be mounted read-only, and its clone is then; the filesystem of a volume of its
 * own is read-only for no other reason.
 */
static bool is_meant_read_only(const struct volume_record *record, const struct mount_dir *mounted, int fd)
{
        cleanup_mount_table struct mountinfo table = {};

        if (record->read_only || mounted->read_only)
                return true;
        return volume_type_owns(record->kind) == 0 && mountinfo_find_own(&table, fd) > 0 && table.read_only;
}

static void look_at_filesystem(struct patient *patient, const struct volume_record *record)
{
        const struct mount_dir *mounted =
                patient->path == NULL ? volume_record_dir(record, 0)
                                      : volume_record_mount_dir((struct volume_record *)record, patient->path);
        cleanup_close int fd = -EBADF;
        struct mount_seen seen;
        struct statfs fs;
        int r;

        if (mounted == NULL)
                return;
        fd = open(mounted->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || mount_see(fd, "", &seen) < 0 || !volume_record_dir_shows(mounted, &seen))
                return;
        if ((r = fs_usage_ask(fd, &fs)) < 0) {
                if (r == -EIO && record->device_number != 0)
                        find(patient, HEALTH_FAILED,
                             "its filesystem has shut down after an error; unmount it everywhere, and "
                             "see the kernel's log");
                else if (r == -ENOTCONN || r == -ESTALE || r == -EIO || r == -ECONNABORTED)
                        find(patient, HEALTH_FAILED, "its server, or the daemon that serves it, is gone");
                return;
        }
        fs_usage_of(&fs, &patient->usage);
        if (((unsigned long)fs.f_flags & ST_RDONLY) != 0 && !never_writes(&fs) &&
            !is_meant_read_only(record, mounted, fd))
                find(patient, HEALTH_FAILED, "its filesystem has become read-only, as after an error");
}

/* A device that a pod has itself. */
static void look_at_size(struct patient *patient, const struct volume_record *record)
{
        char sectors[32];

        if (block_device_attribute(record->device_number, "size", sectors, sizeof sectors) == 0)
                patient->device_bytes = strtoull(sectors, NULL, 10) * 512;
}

/* kubelet asks where it has mounted once more what a pod got: .../volumeDevices/NAME/dev/POD, of which no call tells. */
static bool has_device(const struct volume_record *record, const char *path)
{
        struct stat st;

        if (record->device_number == 0 || lstat(path, &st) < 0 || !S_ISBLK(st.st_mode))
                return false;
        for (size_t i = 0; i < record->published_count; i++)
                if (record->published[i].pod_device == st.st_rdev)
                        return true;
        return record->device_number == st.st_rdev;
}

/* A volume with an image for virtual machines is mounted once for the image; pods have what is in that. */
static int peek_image(const struct patients *patients, struct volume_record *record, struct error *error)
{
        char name[KATA_IMAGE_RECORD_SIZE];

        if (record->staged.dir == NULL || !kata_image_is_below(patients->config.state_dir, record->staged.dir))
                return 0;
        kata_image_record(record->staged.dir, name);
        volume_record_release(record);
        *record = (struct volume_record){};
        return volume_record_peek(patients->config.state_dir, name, /* driver= */ "", record, error);
}

/* One volume, where it is mounted. */
static int look_mounted(void *argument, struct error *error)
{
        struct patients *patients = argument;
        cleanup_volume_record struct volume_record record = {};
        struct patient *patient = patients->items;
        struct mount_dir *recorded = NULL;
        struct mount_seen seen = {};
        bool mounted = false;
        int absent;
        int r = volume_record_peek(patients->config.state_dir, patient->name, /* driver= */ "", &record, error);

        (void)text_copy(patient->type, sizeof patient->type, record.kind); /* before its server, which may not answer */
        if (r == 0 && (r = peek_image(patients, &record, error)) == 0)
                recorded = volume_record_mount_dir(&record, patient->path);
        if (r < 0 && r != -ENOENT)
                return r;
        absent = recorded != NULL ? ENODEV : record.device_number == 0 ? ENXIO : ENOENT;
        r = mount_see(AT_FDCWD, patient->path, &seen);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR) /* perhaps mounted: a server's inode is stale, say */
                return fail(error, -r, "find mount", patient->path);
        if (seen.root)
                absent = EBUSY;
        if (strcmp(record.boot_id, patients->boot_id) == 0)
                mounted = recorded != NULL ? volume_record_dir_shows(recorded, &seen)
                                           : seen.root && has_device(&record, patient->path);
        if (recorded != NULL && !mounted &&
            volume_record_dir_now(patients->config.state_dir, record.name, record.driver, recorded->dir, recorded))
                return look_mounted(argument,
                                    error); /* another mount took its place meanwhile, which none does twice */
        if (!mounted)
                return fail_because(error, absent, "find mount", patient->path,
                                    "volume \"%.200s\" is not mounted on %.1000s", patient->name, patient->path);
        find(patient, HEALTH_OK, "");
        if (record.device_number != 0)
                look_at_device(patient, &record);
        if (seen.directory)
                look_at_filesystem(patient, &record);
        else
                look_at_size(patient, &record);
        return 0;
}

/* What else is on one that did not answer is not asked. */
static void ask_filesystem(const struct patients *patients, struct patient *patient, const struct volume_record *record)
{
        const struct mount_dir *mounted = volume_record_dir(record, 0);

        patient->device = mounted != NULL ? volume_record_dir_device(mounted) : 0;
        if (fs_lost_has(&patients->lost, patient->device))
                find(patient, HEALTH_UNKNOWN, SILENT);
        else
                look_at_filesystem(patient, record);
}

static void look(const struct patients *patients, struct patient *patient)
{
        cleanup_volume_record struct volume_record record = {};
        const char *name = json_string_value(json_object_get(patient->volume, "name"));
        const char *state = json_string_value(json_object_get(patient->volume, "state"));
        const char *problem = json_string_value(json_object_get(patient->volume, "problem")); /* the pool's */
        const char *type = json_string_value(json_object_get(patient->volume, "type"));
        const char *path = json_string_value(json_object_get(patient->volume, "path"));
        struct error error = {};
        int r = volume_record_peek(patients->config.state_dir, name, /* driver= */ "", &record, &error);

        find(patient, HEALTH_OK, "");
        if (r < 0 && r != -ENOENT)
                find(patient, HEALTH_UNKNOWN, "its record cannot be read");
        if (r == 0 && !volume_record_has(&record, type, path))
                r = -ENOENT;
        if (r == 0 && record.formatting[0] != '\0')
                find(patient, HEALTH_UNFINISHED, "its filesystem is not finished; the next mount makes it anew");
        if (r == 0 && strcmp(record.boot_id, patients->boot_id) == 0) {
                if (record.device_number != 0)
                        look_at_device(patient, &record);
                ask_filesystem(patients, patient, &record);
                if (record.device_number == 0) /* that is how full the pool is */
                        patient->usage = (struct fs_usage){};
        }
        if (problem != NULL)
                find(patient, path != NULL ? HEALTH_FAILED : HEALTH_UNKNOWN, problem); /* of it, or of its pool */
        if (state != NULL && strcmp(state, "created") != 0)
                find(patient, HEALTH_UNFINISHED, "the call that made or deleted it has not ended; repeat it");
        if (json_is_true(json_object_get(patient->volume, "missing")))
                find(patient, HEALTH_MISSING, "its pool does not have it any more");
        if (json_object_get(patient->volume, "restoring") != NULL) /* its name may be missing */
                find(patient, HEALTH_UNFINISHED,
                     "a restore of it was interrupted; repeat that, or run volume-reconcile");
}

static void look_at(struct ask *ask, size_t index)
{
        struct patients *patients = ask->argument;

        look(patients, &patients->items[index]);
}

static void give_up(struct ask *ask, size_t index, const struct error *error)
{
        struct patients *patients = ask->argument;

        (void)error;
        find(&patients->items[index], HEALTH_UNKNOWN, SILENT);
        fs_lost_add(&patients->lost, patients->items[index].device);
}

static void look_at_all(struct patients *patients)
{
        struct ask ask = { .count = patients->count,
                           .argument = patients,
                           .one = look_at,
                           .give_up = give_up,
                           .share_ms = SHARE_MS,
                           .deadline_ms = clock_now_ms() + TIME_MS };

        for (size_t i = ask_all(&ask); i < patients->count; i++)
                find(&patients->items[i], HEALTH_UNKNOWN, "there was no time to ask it");
}

static struct provision_condition condition_of(const struct patient *patient)
{
        const struct fs_usage *usage = &patient->usage;

        return (struct provision_condition){ .health = provision_health_words[patient->health],
                                             .problem = patient->problem,
                                             .measured = usage->known,
                                             .used_bytes = usage->size_bytes - usage->free_bytes,
                                             .free_bytes = usage->available_bytes };
}

static void add(json_t *volume, const struct patient *patient)
{
        const struct provision_condition condition = condition_of(patient);

        provision_object_put_condition(volume, &condition);
}

static struct patients all; /* of the one call */

int volume_health_add(json_t *reply, struct error *error)
{
        json_t *volumes = json_object_get(reply, "volumes");
        size_t i;
        int r = config_load(&all.config, error);

        if (r < 0)
                return r;
        if ((r = proc_boot_id(all.boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        all.count = json_array_size(volumes);
        all.items = calloc(all.count + 1, sizeof *all.items);
        if (all.items == NULL)
                return fail(error, ENOMEM, "list volumes", "volumes");
        for (i = 0; i < all.count; i++)
                all.items[i].volume = json_array_get(volumes, i);
        look_at_all(&all);
        for (i = 0; i < all.count; i++)
                add(json_array_get(volumes, i), &all.items[i]);
        free(all.items);
        return 0;
}

static json_t *describe(const struct patient *patient)
{
        const struct fs_usage *usage = &patient->usage;
        const int owned = volume_type_owns(patient->type);
        struct provision_mounted mounted = { .name = patient->name,
                                             .path = patient->path,
                                             .type = patient->type,
                                             .condition = condition_of(patient),
                                             .size_bytes = usage->known ? usage->size_bytes : patient->device_bytes,
                                             .inodes = usage->known ? usage->files : 0,
                                             .inodes_free = usage->files_free };

        mounted.known = owned >= 0;
        mounted.owned = owned > 0;
        return provision_object_mounted(&mounted);
}

int volume_health_mounted(const struct provision_request *request, json_t **ret_reply, struct error *error)
{
        static struct patient patient;
        int r = config_load(&all.config, error);

        if (r < 0)
                return r;
        if ((r = proc_boot_id(all.boot_id)) < 0)
                return fail(error, -r, "read", "boot_id");
        patient.name = request->name;
        patient.path = request->path;
        all.items = &patient;
        all.count = 1;
        r = worker_run(look_mounted, &all, clock_now_ms() + SHARE_MS, error);
        if (r == -ETIMEDOUT)
                find(&patient, HEALTH_UNKNOWN, SILENT);
        else if (r < 0)
                return r;
        *ret_reply = provision_object_done(PROVISION_LIST, &(struct provision_done){ .mounted = describe(&patient) });
        return 0;
}
