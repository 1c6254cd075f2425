/* SPDX-License-Identifier: Apache-2.0 */
#include "utab.h"

#include <errno.h>
#include <libmount/libmount.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "arguments.h"
#include "base/text.h"
#include "privileges/utab.h"
#include "process/exec_helper.h"

#define HELPER "helper=flexgraft"
#define OPTIONS_MAX (2 * ARGUMENTS_USER_MAX + 64)
#define LIBMOUNT_ERRORS 5000 /* libmount's own errors begin there */
#define ENDED "the process that calls libmount has ended"
#define LEFT_MAX 4 /* entries of one target that killed calls may have left */

enum what { PREPARE, SETTLE, FORGET };

struct order {
        enum what what;
        char source[PATH_MAX];
        char target[PATH_MAX];
        char root[PATH_MAX];
        char options[ARGUMENTS_USER_MAX];
};

/* ---- in the process of its own */

static void add_option(char *options, const char *name, size_t length)
{
        const size_t used = strlen(options);

        (void)snprintf(options + used, OPTIONS_MAX - used, ",%.*s", (int)length, name);
}

/* mount(8) does not pass x-* on (the mask MNT_NOHLPS of libmount): those of a line of fstab(5) are read there. */
static void add_fstab(const struct order *order, char *options)
{
        struct libmnt_table *table = mnt_new_table_from_file(mnt_get_fstab_path());
        struct libmnt_fs *fs =
                table != NULL ? mnt_table_find_pair(table, order->source, order->target, MNT_ITER_FORWARD) : NULL;
        char *list = fs != NULL ? (char *)mnt_fs_get_user_options(fs) : NULL;
        char *name;
        char *value;
        size_t name_size;
        size_t value_size;

        while (list != NULL && mnt_optstr_next_option(&list, &name, &name_size, &value, &value_size) == 0) {
                const size_t length = value != NULL ? (size_t)(value - name) + value_size : name_size;
                char wanted[256];

                (void)snprintf(wanted, sizeof wanted, "%.*s", (int)name_size, name);
                if (text_starts(wanted, "x-") &&
                    mnt_optstr_get_option(options, wanted, /* value= */ NULL, /* valuesz= */ NULL) != 0)
                        add_option(options, name, length);
        }
        mnt_unref_table(table);
}

static void put_options(const struct order *order, char *ret_options)
{
        (void)snprintf(ret_options, OPTIONS_MAX, "%s", HELPER);
        if (order->options[0] != '\0')
                add_option(ret_options, order->options, strlen(order->options));
        add_fstab(order, ret_options);
}

static int update(unsigned long flags, const char *target, struct libmnt_fs *fs)
{
        struct libmnt_update *update = mnt_new_update();
        int r = update != NULL ? mnt_update_set_fs(update, flags, target, fs) : -ENOMEM;

        if (r == 0)
                r = mnt_update_table(update, NULL);
        mnt_free_update(update);
        return r < 0 ? r : 0; /* 1: there is nothing to write */
}

static int forget(const char *target)
{
        int r = 0;

        for (int i = 0; r == 0 && i < LEFT_MAX; i++) /* each time the last one */
                r = update(0, target, NULL);
        return r;
}

/* As a change of options, where there is no entry, libmount takes the root that we say, and does not look for it. */
static int put(const char *source, const char *target, const char *root, const char *options)
{
        struct libmnt_fs *fs = mnt_new_fs();
        int r = forget(target);

        if (fs == NULL)
                return -ENOMEM;
        if (r == 0 && (r = mnt_fs_set_source(fs, source)) == 0 && (r = mnt_fs_set_target(fs, target)) == 0 &&
            (r = mnt_fs_set_root(fs, root)) == 0 && (r = mnt_fs_set_options(fs, options)) == 0)
                r = update(MS_REMOUNT, NULL, fs);
        mnt_unref_fs(fs);
        return r;
}

/* What is on top there; NULL: nothing, or what waits for a mount. */
static struct libmnt_fs *find(struct libmnt_table *table, const char *target)
{
        struct libmnt_fs *fs = mnt_table_find_target(table, target, MNT_ITER_BACKWARD);
        const char *type = fs != NULL ? mnt_fs_get_fstype(fs) : NULL;

        return type != NULL && strcmp(type, "autofs") != 0 ? fs : NULL;
}

static bool is_settled(struct libmnt_fs *fs)
{
        const char *options = mnt_fs_get_user_options(fs);
        char *value;
        size_t size;

        return options != NULL && mnt_optstr_get_option(options, "helper", &value, &size) == 0 &&
               size == strlen("flexgraft") && strncmp(value, "flexgraft", size) == 0;
}

static int settle(const struct order *order, struct libmnt_fs *fs, const char *options)
{
        const char *source = mnt_fs_get_source(fs);
        const char *root = mnt_fs_get_root(fs);

        return is_settled(fs) ? 0
                              : put(source != NULL ? source : order->source, order->target, root != NULL ? root : "/",
                                    options);
}

static int carry_out(const struct order *order)
{
        struct libmnt_table *table = mnt_new_table();
        char options[OPTIONS_MAX];
        struct libmnt_fs *fs;
        int r = table != NULL ? mnt_table_parse_mtab(table, NULL) : -ENOMEM;

        if (r == 0) {
                fs = find(table, order->target);
                put_options(order, options);
                if (order->what == SETTLE && fs != NULL)
                        r = settle(order, fs, options);
                else if (order->what == PREPARE && fs == NULL)
                        r = put(order->source, order->target, order->root, options);
                else if (order->what == FORGET && fs == NULL)
                        r = forget(order->target);
        }
        mnt_unref_table(table);
        return r;
}

static void serve(int fd)
{
        static struct order order;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                int answer = carry_out(&order);

                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
                        break;
        }
}

/* ---- in the program */

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for libmount", .privileges = &PRIVILEGES, .serve = serve
};

int utab_begin(struct error *error)
{
        return exec_helper_begin(&helper, error);
}

void utab_end(void)
{
        exec_helper_end(&helper);
}

/* -EACCES: there is no such file that could be written, which is not needed. */
static int give(const struct order *order, struct error *error)
{
        int answer = -ECANCELED;
        ssize_t n;

        if (send(helper.fd, order, sizeof *order, MSG_NOSIGNAL) != (ssize_t)sizeof *order)
                return fail_because(error, errno, "write utab", order->target, "utab cannot be written: %s", ENDED);
        do
                n = recv(helper.fd, &answer, sizeof answer, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof answer)
                return fail_because(error, ECANCELED, "write utab", order->target, "utab cannot be written: %s", ENDED);
        if (answer == 0 || answer == -EACCES)
                return 0;
        answer = answer < 0 && answer > -LIBMOUNT_ERRORS ? -answer : EIO;
        return fail_because(error, answer, "write utab", order->target, "utab cannot be written: %s",
                            error_text(answer));
}

static int ask(enum what what, const char *source, const char *target, const char *root, const char *options,
               struct error *error)
{
        static struct order order;

        order = (struct order){ .what = what };
        if (!text_copy(order.source, sizeof order.source, source) ||
            !text_copy(order.target, sizeof order.target, target) || !text_copy(order.root, sizeof order.root, root) ||
            !text_copy(order.options, sizeof order.options, options))
                return fail(error, ENAMETOOLONG, "write utab", target);
        return give(&order, error);
}

int utab_prepare(const char *source, const char *target, const char *root, const char *options, struct error *error)
{
        return ask(PREPARE, source, target, root, options, error);
}

int utab_settle(const char *source, const char *target, const char *options, struct error *error)
{
        return ask(SETTLE, source, target, "", options, error);
}

int utab_forget(const char *target, struct error *error)
{
        return ask(FORGET, "", target, "", "", error);
}
