/* SPDX-License-Identifier: Apache-2.0 */
#include "block/lvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "privileges/lvm.h"

#include "base/json.h"
#include "base/text.h"
#include "block/lvm_filter.h"
#include "process/exec_helper.h"

#define WORDS_MAX 40
#define CONFIGURATION_SIZE (65536 + 256)

/* ---- in the exec helper */

static char volumes[LVM_FILTER_VOLUMES_SIZE]; /* of the order */

/* Without udev, lvm must create device nodes itself, and must not wait for udev. Reports are as lvm_report.c reads them. */
static const char *const *configuration(void)
{
        static char text[CONFIGURATION_SIZE]; /* static: extra points to it */
        static const char *const extra[] = { "--config", text, NULL };
        const bool alone = access("/run/udev/control", F_OK) != 0;

        (void)snprintf(text, sizeof text,
                       "devices{%s%s} activation{monitoring=0%s} "
                       "report{binary_values_as_numeric=0 list_item_separator=\",\"}",
                       lvm_filter(volumes), alone ? " use_devicesfile=0 obtain_device_list_from_udev=0" : "",
                       alone ? " udev_sync=0 udev_rules=0 verify_udev_operations=0" : "");
        volumes[0] = '\0';
        return extra;
}

static const char *const known[] = { "lvs",      "fullreport", "vgs",      "pvs",      "lvcreate",
                                     "lvremove", "lvchange",   "lvextend", "lvrename", "lvconvert",
                                     "vgcreate", "vgextend",   NULL };

#define NEEDS "needs:" /* no argument of lvm begins so, nor as the next */
#define RESUMES "resumes:"
#define VOLUMES "volumes:"

static bool take_needs(const char *word)
{
        if (text_starts(word, NEEDS))
                lvm_targets_load(word + strlen(NEEDS));
        else if (text_starts(word, RESUMES))
                lvm_targets_resume(word + strlen(RESUMES));
        else if (text_starts(word, VOLUMES))
                (void)text_copy(volumes, sizeof volumes, word + strlen(VOLUMES));
        else
                return false;
        return true;
}

static const struct exec_json program = { .name = "lvm", .known = known, .extra = configuration, .take = take_needs };

static void run_orders(int fd)
{
        exec_json_serve(fd, &program);
}

/* ---- in the program */

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for lvm", .privileges = &PRIVILEGES, .serve = run_orders
};

int lvm_begin(int argc, char **argv, struct error *error)
{
        (void)argc;
        (void)argv;
        return exec_helper_begin(&helper, error);
}

void lvm_end(void)
{
        exec_helper_end(&helper);
}

bool lvm_end_ordered(void)
{
        return exec_helper_end_ordered(&helper);
}

/* What is known of a group while lvm_hold() says that nobody else changes it. */
static struct {
        unsigned holders;
        char group[LVM_NAME_MAX];
        json_t *report; /* owned; NULL: nothing */
        bool listed;    /* the loop devices that lvm does not look at, of which the node may have many */
} known_group;

void lvm_outdate(void)
{
        json_decref(known_group.report);
        known_group.report = NULL;
}

void lvm_hold(void)
{
        known_group.holders++;
}

void lvm_release(void)
{
        if (known_group.holders == 0 || --known_group.holders > 0)
                return;
        lvm_outdate();
        known_group.listed = false;
}

#define ASLEEP "--setautoactivation=n" /* lvmautoactivation(7): from lvm 2.03.12 on */

/* Leave out what an older lvm has just refused, which works without it. */
static bool leave_out_asleep(const char **words, const struct error *error)
{
        while (*words != NULL && strcmp(*words, ASLEEP) != 0)
                words++;
        if (*words == NULL || strstr(error->reason, "setautoactivation") == NULL)
                return false;
        for (; *words != NULL; words++)
                words[0] = words[1];
        return true;
}

static int run(const char *const *words, json_t **ret_report, struct error *error)
{
        /* kept: it is made anew only when the devices may have changed */
        static char list[sizeof VOLUMES + LVM_FILTER_VOLUMES_SIZE] = VOLUMES;
        const char *all[WORDS_MAX + 1];
        size_t count = 0;
        int r;

        if (!known_group.listed || ret_report == NULL) { /* others attach some meanwhile: before each change anew */
                if ((r = lvm_filter_list(list + strlen(VOLUMES), error)) < 0)
                        return r;
                known_group.listed = known_group.holders > 0;
        }
        for (; count < WORDS_MAX - 1 && words[count] != NULL; count++)
                all[count] = words[count];
        all[count++] = list;
        all[count] = NULL;
        if (ret_report == NULL) /* it changes something, perhaps also where it fails */
                lvm_outdate();
        r = exec_json_run(&helper, &program, all, ret_report, error);
        return r < 0 && leave_out_asleep(all, error) ? exec_json_run(&helper, &program, all, ret_report, error) : r;
}

bool lvm_name_is_valid(const char *name)
{
        static const char *const not [] = { ".", "..", "snapshot", "pvmove", NULL };

        return name[0] != '\0' && name[0] != '-' && strlen(name) < LVM_NAME_MAX && !text_among(name, not ) &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_.-") == strlen(name);
}

void lvm_path(const char *group, const char *volume, char *ret_path)
{
        (void)snprintf(ret_path, PATH_MAX, "/dev/%s/%s", group, volume);
}

/* The device mapper's names: a hyphen is doubled. */
static char *put_doubled(char *at, const char *name)
{
        for (; *name != '\0'; name++) {
                *at++ = *name;
                if (*name == '-')
                        *at++ = '-';
        }
        return at;
}

int lvm_find_device(const char *group, const char *volume, struct block_device *ret_device, struct error *error)
{
        char expected[(4 * LVM_NAME_MAX) + 2];
        char found[sizeof expected + 1];
        char path[PATH_MAX];
        char *end = put_doubled(expected, group);
        int r;

        *end++ = '-';
        *put_doubled(end, volume) = '\0';
        lvm_path(group, volume, path);
        if ((r = block_device_find(path, ret_device, error)) < 0)
                return r;
        if (block_device_attribute(ret_device->number, "dm/name", found, sizeof found) < 0 ||
            strcmp(found, expected) != 0)
                return fail_because(error, ESTALE, OPERATION_FIND_DEVICE, volume,
                                    "/dev/%s/%s is not the device of that logical volume but %s", group, volume,
                                    ret_device->path);
        return 0;
}

/* Takes a name back out of the device mapper's, up to a single hyphen. */
static const char *take_doubled(const char *at, char *ret_name)
{
        size_t length = 0;

        while (*at != '\0' && (at[0] != '-' || at[1] == '-')) {
                if (length + 1 >= LVM_NAME_MAX)
                        return NULL;
                ret_name[length++] = *at;
                at += *at == '-' ? 2 : 1;
        }
        ret_name[length] = '\0';
        return at;
}

int lvm_device_names(const struct block_device *device, char *ret_group, char *ret_volume)
{
        char found[(4 * LVM_NAME_MAX) + 3];
        const char *at;

        if (block_device_attribute(device->number, "dm/uuid", found, sizeof found) < 0 || !text_starts(found, "LVM-") ||
            block_device_attribute(device->number, "dm/name", found, sizeof found) < 0)
                return -ENODATA;
        at = take_doubled(found, ret_group);
        if (at == NULL || *at != '-' || (at = take_doubled(at + 1, ret_volume)) == NULL || *at != '\0')
                return -ENODATA; /* a part of a volume */
        return 0;
}

/* The device mapper's uuid is "LVM-", the group's and the volume's, 32 characters each, without hyphens. */
int lvm_device_uuid(const struct block_device *device, char *ret_uuid)
{
        static const int parts[] = { 6, 4, 4, 4, 4, 4, 6 };
        char found[160];
        const char *from = found + 36;
        int r = block_device_attribute(device->number, "dm/uuid", found, sizeof found);

        if (r < 0)
                return r;
        if (!text_starts(found, "LVM-") || strlen(found) != 68)
                return -ENODATA; /* a part of a volume has a suffix */
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
                ret_uuid += snprintf(ret_uuid, 8, "%s%.*s", i > 0 ? "-" : "", parts[i], from);
                from += parts[i];
        }
        return 0;
}

#define REPORT "--reportformat", "json", "--units", "b", "--nosuffix"
static const char group_fields[] = "vg_name,vg_size,vg_free,vg_extent_size,vg_tags,vg_missing_pv_count";
static const char disk_fields[] = "pv_free,pv_allocatable,pv_missing";
static const char volume_fields[] =
        "lv_name,lv_size,lv_tags,lv_active,lv_device_open,lv_role,segtype,pool_lv,data_copies,stripes,"
        "data_stripes,zero,lv_uuid,lv_modules,origin,origin_size,lv_snapshot_invalid";

/* What words report of a group; while it is held, all is asked for at once, and remembered. */
static int ask(const char *group, const char *const *words, json_t **ret_report, struct error *error)
{
        static const char *const all_words[] = {
                "fullreport", REPORT,    "--configreport", "vg",    "-o",        group_fields,     "--configreport",
                "pv",         "-O",      "-pv_free",       "-o",    disk_fields, "--configreport", "lv",
                "-o",         "lv_name", "--configreport", "pvseg", "-o",        "pvseg_start",    "--configreport",
                "seg",        "-o",      volume_fields,    NULL
        };
        cleanup_json json_t *all = NULL;
        int r;

        if (known_group.holders == 0)
                return run(words, ret_report, error);
        if (known_group.report == NULL || strcmp(known_group.group, group) != 0) {
                if ((r = run(all_words, &all, error)) < 0)
                        return r;
                lvm_outdate();
                (void)text_copy(known_group.group, sizeof known_group.group, group); /* it is a name */
                known_group.report = lvm_report_part(all, group);
        }
        *ret_report = json_incref(known_group.report);
        return *ret_report != NULL ? 0 : fail(error, ENOMEM, "run command", "lvm");
}

int lvm_find_group(const char *group, struct lvm_group *ret_group, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];
        const char *const words[] = { "vgs", REPORT, "-o", group_fields, "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = ask(group, words, &report, error)) < 0)
                return r;
        if (!lvm_report_group(report, ret_group))
                return fail_because(error, ENOENT, OPERATION_FIND_VOLUME_GROUP, group,
                                    "there is no volume group \"%s\"", group);
        return ret_group->extent_bytes > 0 ? 0 : fail(error, EPROTO, OPERATION_FIND_VOLUME_GROUP, group);
}

int lvm_find_disk(const char *device, char *ret_group, struct error *error)
{
        char selected[PATH_MAX + 16];
        const char *const words[] = { "pvs", REPORT, "-o", "vg_name", "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r;

        (void)snprintf(selected, sizeof selected, "pv_name=%s", device);
        if ((r = run(words, &report, error)) < 0)
                return r;
        lvm_report_disk_group(report, ret_group);
        return 0;
}

int lvm_add_disk(const char *group, bool exists, const char *device, struct error *error)
{
        static const char *const to_new[] = { "vgcreate",        "-q", "-y", "--addtag", LVM_TAG, "-s", "4m",
                                              "--dataalignment", "2m", NULL };
        static const char *const to_old[] = { "vgextend", "-q", "-y", "--dataalignment", "2m", NULL };
        const char *all[WORDS_MAX] = {};
        const char *const *words = exists ? to_old : to_new;
        int count = 0;

        while (*words != NULL)
                all[count++] = *words++;
        all[count++] = group;
        all[count] = device;
        return run(all, NULL, error);
}

int lvm_free_bytes(const char *group, uint64_t *ret_bytes, int count, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];
        const char *const words[] = { "pvs", REPORT, "-O", "-pv_free", "-o", disk_fields, "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = ask(group, words, &report, error)) < 0)
                return r;
        return lvm_report_free_bytes(report, ret_bytes, count);
}

static int each_selected(const char *group, const char *selected, lvm_function *function, void *argument,
                         struct error *error)
{
        const char *const words[] = { "lvs", REPORT, "-o", volume_fields, "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r = ask(group, words, &report, error);

        return r < 0 ? r : lvm_report_each(report, function, argument, error);
}

int lvm_each(const char *group, lvm_function *function, void *argument, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        return each_selected(group, selected, function, argument, error);
}

struct search {
        const char *name;
        struct lvm_volume *ret_volume;
};

static int take_named(const struct lvm_volume *volume, void *argument, struct error *error)
{
        const struct search *search = argument;

        (void)error;
        if (strcmp(volume->name, search->name) != 0)
                return 0;
        *search->ret_volume = *volume;
        return 1;
}

int lvm_find(const char *group, const char *volume, struct lvm_volume *ret_volume, struct error *error)
{
        struct search search = { .name = volume, .ret_volume = ret_volume };
        char selected[2 * LVM_NAME_MAX + 32];
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s && lv_name=%s", group, volume);
        r = each_selected(group, selected, take_named, &search, error);
        return r == 0 ? -ENOENT : r < 0 ? r : 0;
}

int lvm_create(const char *group, const char *volume, const char *type, const char *const *words, struct error *error)
{
        char needs[sizeof NEEDS + LVM_MODULES_MAX];
        const char *all[WORDS_MAX] = { "lvcreate", "-q",   "-y",  "--wipesignatures", "y", "--addtag", LVM_TAG,
                                       "-n",       volume, needs, "--type",           type };
        int count = 12;

        (void)snprintf(needs, sizeof needs, NEEDS "%s", type);
        while (*words != NULL && count < WORDS_MAX - 2)
                all[count++] = *words++;
        all[count] = group;
        return run(all, NULL, error);
}

/* What the volume needs is loaded before. */
static int run_on(const char *group, const struct lvm_volume *volume, const char *const *words, struct error *error)
{
        char name[2 * LVM_NAME_MAX + 2];
        char needs[sizeof NEEDS + LVM_MODULES_MAX];
        const char *all[WORDS_MAX] = {};
        int count = 0;

        (void)snprintf(name, sizeof name, "%s/%s", group, volume->name);
        (void)snprintf(needs, sizeof needs, NEEDS "%s", volume->modules);
        while (*words != NULL && count < WORDS_MAX - 3)
                all[count++] = *words++;
        all[count++] = needs;
        all[count] = name;
        return run(all, NULL, error);
}

int lvm_remove(const char *group, const struct lvm_volume *volume, struct error *error)
{
        return run_on(group, volume, (const char *const[]){ "lvremove", "-q", "-f", NULL }, error);
}

int lvm_activate(const char *group, const struct lvm_volume *volume, struct error *error)
{
        /* -K: also volumes that are skipped by automatic activation */
        return run_on(group, volume, (const char *const[]){ "lvchange", "-q", "-ay", "-K", NULL }, error);
}

/* Its own device is on top of "-real" while it has snapshots, or is about to. */
int lvm_resume(const char *group, const struct lvm_volume *volume, struct error *error)
{
        char word[sizeof RESUMES + (4 * LVM_NAME_MAX) + sizeof "-real"] = RESUMES;
        char *end = put_doubled(word + strlen(RESUMES), group);

        *end++ = '-';
        (void)memcpy(put_doubled(end, volume->name), "-real", sizeof "-real");
        return run_on(group, volume, (const char *const[]){ "lvchange", "-q", "-ay", "-K", word, NULL }, error);
}

int lvm_refresh(const char *group, const struct lvm_volume *volume, struct error *error)
{
        return run_on(group, volume, (const char *const[]){ "lvchange", "-q", "--refresh", NULL }, error);
}

int lvm_go_on(const char *group, const struct lvm_volume *volume, struct error *error)
{
        struct block_device device;
        struct error ignored; /* what has no device is not suspended */
        char text[16];

        if (!volume->active || lvm_find_device(group, volume->name, &device, &ignored) < 0 ||
            block_device_attribute(device.number, "dm/suspended", text, sizeof text) < 0 || text[0] != '1')
                return 0;
        return lvm_refresh(group, volume, error); /* it waits for a lvm that runs */
}

int lvm_deactivate(const char *group, const char *volume, struct error *error)
{
        struct lvm_volume named = {}; /* nothing is loaded for it */

        (void)text_copy(named.name, sizeof named.name, volume);
        return run_on(group, &named, (const char *const[]){ "lvchange", "-q", "-an", "-K", NULL }, error);
}

int lvm_put_asleep(const char *group, const char *volume, struct error *error)
{
        struct lvm_volume named = {}; /* nothing is loaded for it */

        (void)text_copy(named.name, sizeof named.name, volume);
        return run_on(group, &named, (const char *const[]){ "lvchange", "-q", "-an", ASLEEP, NULL }, error);
}

int lvm_extend(const char *group, const struct lvm_volume *volume, uint64_t size_bytes, struct error *error)
{
        char size[32];

        (void)snprintf(size, sizeof size, "%llub", (unsigned long long)size_bytes);
        return run_on(group, volume, (const char *const[]){ "lvextend", "-q", "-L", size, NULL }, error);
}

int lvm_snapshot(const char *group, const struct lvm_volume *origin, const char *name, const char *const *words,
                 struct error *error)
{
        struct lvm_volume needed = *origin;
        const char *all[WORDS_MAX] = { "lvcreate", "-q", "-y", "--addtag", LVM_TAG, "-n", name, "-s" };
        int count = 8;

        /* lvcreate -s asks for this one even where it does not need it */
        (void)snprintf(needed.modules, sizeof needed.modules, "%.100s,snapshot", origin->modules);
        while (*words != NULL && count < WORDS_MAX - 3)
                all[count++] = *words++;
        return run_on(group, &needed, all, error);
}

int lvm_split(const char *group, const struct lvm_volume *snapshot, struct error *error)
{
        return run_on(group, snapshot, (const char *const[]){ "lvconvert", "-q", "-y", "--splitsnapshot", NULL },
                      error);
}

int lvm_rename(const char *group, const char *volume, const char *name, struct error *error)
{
        return run((const char *const[]){ "lvrename", "-q", group, volume, name, NULL }, NULL, error);
}
