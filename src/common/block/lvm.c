/* SPDX-License-Identifier: Apache-2.0 */
#include "block/lvm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "privileges/lvm.h"

#include "base/json.h"
#include "base/text.h"
#include "process/exec_json.h"

#define WORDS_MAX 40

/* ---- in the exec helper */

/* Without udev, lvm must create device nodes itself, and must not wait for udev. */
static const char *const *configuration(void)
{
        static const char *const alone[] = {
                "--config",
                "devices{use_devicesfile=0 obtain_device_list_from_udev=0} "
                "activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0}",
                NULL
        };
        static const char *const usual[] = { "--config", "activation{monitoring=0}", NULL };

        return access("/run/udev/control", F_OK) == 0 ? usual : alone;
}

static const char *const known[] = { "lvs",      "vgs",      "pvs",      "lvcreate", "lvremove",
                                     "lvchange", "lvextend", "vgcreate", "vgextend", NULL };
static const struct exec_json program = { .name = "lvm", .known = known, .extra = configuration };

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

static int run(const char *const *words, json_t **ret_report, struct error *error)
{
        return exec_json_run(&helper, &program, words, ret_report, error);
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
                return fail_because(error, ESTALE, "find device", volume,
                                    "/dev/%s/%s is not the device of that logical volume but %s", group, volume,
                                    ret_device->path);
        return 0;
}

#define REPORT "--reportformat", "json", "--units", "b", "--nosuffix"

int lvm_find_group(const char *group, struct lvm_group *ret_group, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];
        const char *const words[] = { "vgs", REPORT,   "-o", "vg_size,vg_free,vg_extent_size,vg_tags",
                                      "-S",  selected, NULL };
        cleanup_json json_t *report = NULL;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = run(words, &report, error)) < 0)
                return r;
        if (!lvm_report_group(report, ret_group))
                return fail_because(error, ENOENT, "find volume group", group, "there is no volume group \"%s\"",
                                    group);
        return ret_group->extent_bytes > 0 ? 0 : fail(error, EPROTO, "find volume group", group);
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
        const char *const words[] = { "pvs", REPORT, "-O", "-pv_free", "-o", "pv_free", "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = run(words, &report, error)) < 0)
                return r;
        return lvm_report_free_bytes(report, ret_bytes, count);
}

static int each_selected(const char *selected, lvm_function *function, void *argument, struct error *error)
{
        static const char fields[] = "lv_name,lv_size,lv_tags,lv_active,lv_device_open,lv_role,segtype,pool_lv,"
                                     "data_copies,stripes,data_stripes,zero,lv_uuid";
        const char *const words[] = { "lvs", REPORT, "-o", fields, "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        int r = run(words, &report, error);

        return r < 0 ? r : lvm_report_each(report, function, argument, error);
}

int lvm_each(const char *group, lvm_function *function, void *argument, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        return each_selected(selected, function, argument, error);
}

static int take_first(const struct lvm_volume *volume, void *argument, struct error *error)
{
        (void)error;
        *(struct lvm_volume *)argument = *volume;
        return 1;
}

int lvm_find(const char *group, const char *volume, struct lvm_volume *ret_volume, struct error *error)
{
        char selected[2 * LVM_NAME_MAX + 32];
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s && lv_name=%s", group, volume);
        r = each_selected(selected, take_first, ret_volume, error);
        return r == 0 ? -ENOENT : r < 0 ? r : 0;
}

int lvm_create(const char *group, const char *volume, const char *const *words, struct error *error)
{
        const char *all[WORDS_MAX] = { "lvcreate", "-q", "-y",  "--wipesignatures", "y", "--addtag",
                                       LVM_TAG,    "-n", volume };
        int count = 9;

        while (*words != NULL && count < WORDS_MAX - 2)
                all[count++] = *words++;
        all[count] = group;
        return run(all, NULL, error);
}

static int run_on(const char *group, const char *volume, const char *const *words, struct error *error)
{
        char name[2 * LVM_NAME_MAX + 2];
        const char *all[WORDS_MAX] = {};
        int count = 0;

        (void)snprintf(name, sizeof name, "%s/%s", group, volume);
        while (*words != NULL && count < WORDS_MAX - 2)
                all[count++] = *words++;
        all[count] = name;
        return run(all, NULL, error);
}

int lvm_remove(const char *group, const char *volume, struct error *error)
{
        return run_on(group, volume, (const char *const[]){ "lvremove", "-q", "-f", NULL }, error);
}

int lvm_activate(const char *group, const char *volume, bool active, struct error *error)
{
        /* -K: also volumes that are skipped by automatic activation */
        return run_on(group, volume, (const char *const[]){ "lvchange", "-q", active ? "-ay" : "-an", "-K", NULL },
                      error);
}

int lvm_extend(const char *group, const char *volume, uint64_t size_bytes, struct error *error)
{
        char size[32];

        (void)snprintf(size, sizeof size, "%llub", (unsigned long long)size_bytes);
        return run_on(group, volume, (const char *const[]){ "lvextend", "-q", "-L", size, NULL }, error);
}
