/* SPDX-License-Identifier: Apache-2.0 */
#include "lvm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privileges/lvm.h"

#include "command.h"
#include "fd.h"
#include "fd_pass.h"
#include "json_file.h"
#include "runner.h"
#include "text.h"

#define WORDS_MAX 40
#define TIMEOUT_SECONDS 300
#define NAME "lvm"

struct order {
        bool reports;
        char words[4096]; /* each terminated, an empty one last */
};

/* ---- in the runner */

/* Who is without udev makes device nodes himself, and waits for nobody. */
static const char *configuration(void)
{
        return access("/run/udev/control", F_OK) == 0
                       ? "activation{monitoring=0}"
                       : "devices{use_devicesfile=0 obtain_device_list_from_udev=0} "
                         "activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0}";
}

static void carry_out(const struct order *order, int report_fd, struct command_end *ret_end)
{
        static const char *const known[] = {
                "lvs", "vgs", "pvs", "lvcreate", "lvremove", "lvchange", "lvextend", NULL
        };
        const char *arguments[WORDS_MAX + 5] = { NAME };
        const struct command command = { .name = NAME,
                                         .arguments = arguments,
                                         .timeout_seconds = TIMEOUT_SECONDS,
                                         .privileged = true,
                                         .report_fd = report_fd };
        const char *word = order->words;
        int count = 1;

        if (!text_among(word, known)) {
                ret_end->errnum = EINVAL;
                return;
        }
        arguments[count++] = word;
        arguments[count++] = "--config";
        arguments[count++] = configuration();
        for (word += strlen(word) + 1; *word != '\0' && count < WORDS_MAX; word += strlen(word) + 1)
                arguments[count++] = word;
        command_run(&command, ret_end);
}

static void run_orders(int fd)
{
        static struct order order; /* static, for their size */
        static struct command_end answer;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                cleanup_close int report_fd = order.reports ? memfd_create("report", MFD_CLOEXEC) : -EBADF;
                const struct error error = { .errnum = EIO };

                answer = (struct command_end){};
                order.words[sizeof order.words - 1] = order.words[sizeof order.words - 2] = '\0';
                carry_out(&order, report_fd, &answer);
                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer ||
                    (order.reports && fd_pass_send(fd, report_fd, &error) < 0))
                        break;
        }
}

/* ---- in the program */

static struct runner runner = {
        .fd = -EBADF, .name = "the runner of lvm", .privileges = &PRIVILEGES, .serve = run_orders
};

int lvm_begin(int argc, char **argv, struct error *error)
{
        (void)argc;
        (void)argv;
        return runner_begin(&runner, error);
}

void lvm_end(void)
{
        runner_end(&runner);
}

static int order_words(const char *const *words, struct order *order, struct error *error)
{
        size_t length = 0;

        for (size_t i = 0; words[i] != NULL; i++) {
                size_t size = strlen(words[i]) + 1;

                if (i >= WORDS_MAX - 4 || size == 1 || length + size + 2 > sizeof order->words)
                        return fail(error, E2BIG, "run lvm", words[i]);
                (void)memcpy(order->words + length, words[i], size);
                length += size;
        }
        return 0;
}

/* ret_report: NULL, or the report as JSON, owned by the caller. */
static int run(const char *const *words, json_t **ret_report, struct error *error)
{
        static struct order order; /* static, for their size */
        static struct command_end answer;
        cleanup_close int report_fd = -EBADF;
        ssize_t n;
        int r;

        order = (struct order){ .reports = ret_report != NULL };
        if ((r = order_words(words, &order, error)) < 0)
                return r;
        if (runner.fd < 0 || send(runner.fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
                return fail_because(error, ENOSYS, "run lvm", words[0], "this program began without who could run lvm");
        do
                n = recv(runner.fd, &answer, sizeof answer, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof answer)
                return fail_because(error, ECANCELED, "run lvm", words[0], "nobody is there to run it");
        if (ret_report != NULL && (report_fd = fd_pass_receive(runner.fd, error)) < 0)
                return report_fd;
        if ((r = command_check(NAME, &answer, TIMEOUT_SECONDS, error)) < 0)
                return r;
        if (r > 0)
                return fail_because(error, EIO, "run lvm", words[0], "%s: %s", words[0], answer.output);
        if (ret_report == NULL)
                return 0;
        *ret_report = lseek(report_fd, 0, SEEK_SET) == 0 ? json_loadfd(report_fd, 0, NULL) : NULL;
        return *ret_report != NULL ? 0 : fail_because(error, EPROTO, "run lvm", words[0], "its report is no JSON");
}

/* The rows of a report: {"report":[{KIND:[...]}]}. */
static const json_t *rows_of(const json_t *report, const char *kind)
{
        return json_object_get(json_array_get(json_object_get(report, "report"), 0), kind);
}

static const char *text_of(const json_t *row, const char *field)
{
        return json_string_value(json_object_get(row, field)) ?: "";
}

static uint64_t number_of(const json_t *row, const char *field)
{
        return strtoull(text_of(row, field), NULL, 10);
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

#define REPORT "--reportformat", "json", "--units", "b", "--nosuffix"

int lvm_find_group(const char *group, struct lvm_group *ret_group, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];
        const char *const words[] = { "vgs", REPORT, "-o", "vg_size,vg_free,vg_extent_size", "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        const json_t *row;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = run(words, &report, error)) < 0)
                return r;
        row = json_array_get(rows_of(report, "vg"), 0);
        if (row == NULL)
                return fail_because(error, ENOENT, "find volume group", group, "there is no volume group \"%s\"",
                                    group);
        *ret_group = (struct lvm_group){ .size_bytes = number_of(row, "vg_size"),
                                         .free_bytes = number_of(row, "vg_free"),
                                         .extent_bytes = number_of(row, "vg_extent_size") };
        return ret_group->extent_bytes > 0 ? 0 : fail(error, EPROTO, "find volume group", group);
}

int lvm_free_bytes(const char *group, uint64_t *ret_bytes, int count, struct error *error)
{
        char selected[LVM_NAME_MAX + 16];
        const char *const words[] = { "pvs", REPORT, "-O", "-pv_free", "-o", "pv_free", "-S", selected, NULL };
        cleanup_json json_t *report = NULL;
        const json_t *row;
        size_t i;
        int r;

        (void)snprintf(selected, sizeof selected, "vg_name=%s", group);
        if ((r = run(words, &report, error)) < 0)
                return r;
        json_array_foreach (rows_of(report, "pv"), i, row)
                if ((int)i < count)
                        ret_bytes[i] = number_of(row, "pv_free");
        return (int)json_array_size(rows_of(report, "pv"));
}

static void take_row(const json_t *row, struct lvm_volume *ret_volume)
{
        const char *role = text_of(row, "lv_role");

        *ret_volume = (struct lvm_volume){ .size_bytes = number_of(row, "lv_size"),
                                           .active = strcmp(text_of(row, "lv_active"), "active") == 0,
                                           .open = strcmp(text_of(row, "lv_device_open"), "open") == 0,
                                           .public = strstr(role, "public") != NULL,
                                           .copies = (unsigned)number_of(row, "data_copies") };
        (void)text_copy(ret_volume->name, sizeof ret_volume->name, text_of(row, "lv_name"));
        (void)text_copy(ret_volume->type, sizeof ret_volume->type, text_of(row, "segtype"));
        (void)text_copy(ret_volume->thin_pool, sizeof ret_volume->thin_pool, text_of(row, "pool_lv"));
        for (const char *tag = text_of(row, "lv_tags"); *tag != '\0';) {
                size_t length = strcspn(tag, ",");

                if (length == strlen(LVM_TAG) && strncmp(tag, LVM_TAG, length) == 0)
                        ret_volume->ours = true;
                tag += length + (tag[length] == ',' ? 1 : 0);
        }
}

static int each_selected(const char *selected, lvm_function *function, void *argument, struct error *error)
{
        const char *const words[] = {
                "lvs", REPORT,
                "-o",  "lv_name,lv_size,lv_tags,lv_active,lv_device_open,lv_role,segtype,pool_lv,data_copies",
                "-S",  selected,
                NULL
        };
        cleanup_json json_t *report = NULL;
        const json_t *row;
        size_t i;
        int r = run(words, &report, error);

        if (r < 0)
                return r;
        json_array_foreach (rows_of(report, "lv"), i, row) {
                struct lvm_volume volume;

                take_row(row, &volume);
                if ((r = function(&volume, argument, error)) != 0)
                        return r;
        }
        return 0;
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
        /* -K: also what is not to be activated by itself */
        return run_on(group, volume, (const char *const[]){ "lvchange", "-q", active ? "-ay" : "-an", "-K", NULL },
                      error);
}

int lvm_extend(const char *group, const char *volume, uint64_t size_bytes, struct error *error)
{
        char size[32];

        (void)snprintf(size, sizeof size, "%llub", (unsigned long long)size_bytes);
        return run_on(group, volume, (const char *const[]){ "lvextend", "-q", "-L", size, NULL }, error);
}
