/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include <errno.h>
#include <jansson.h>
#include <libmount/libmount.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "inject/mappable.h"
#include "links.h"
#include "mount/options.h"

#define IDS_MAX 4294967295U
#define VALUE_MAX 4096

static int refuse(struct error *error, const char *option, const char *complaint)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, option, "option %.200s %s", option, complaint);
}

/* ---- options of volumes */

static int take_text(const char **field, const char *option, const char *value, struct error *error)
{
        if (value[0] == '\0')
                return refuse(error, option, "has no value");
        *field = strdup(value); /* until the program ends */
        return *field == NULL ? fail(error, ENOMEM, "read", option) : 0;
}

static int take_size(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        cleanup_json json_t *json = json_string(value);
        char text[32];
        int r = json_value_size(option, json, /* percent= */ false, text, sizeof text, error);

        if (r < 0)
                return r;
        return text_number(text, INT64_MAX, &mount->size_bytes) && mount->size_bytes > 0
                       ? 0
                       : refuse(error, option, "must be a size");
}

/* "A:B[:C]" as numbers. */
static bool split_ids(const char *value, size_t count, uint32_t *ret_ids)
{
        char copy[64];
        char *rest = copy;

        if (!text_copy(copy, sizeof copy, value))
                return false;
        for (size_t i = 0; i < count; i++) {
                char *word = strsep(&rest, ":");
                uint64_t number;

                if (word == NULL || !text_number(word, IDS_MAX - 1, &number))
                        return false;
                ret_ids[i] = (uint32_t)number;
        }
        return rest == NULL;
}

static int take_owner(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        uint32_t ids[2];

        if (!split_ids(value, 2, ids))
                return refuse(error, option, "must be UID:GID, two numbers");
        mount->owned = true;
        mount->uid = ids[0];
        mount->gid = ids[1];
        return 0;
}

/* For users and groups alike; the option may be there several times. */
static int take_map(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        struct idmap *map = &mount->map;
        uint32_t ids[3];

        if (!split_ids(value, 3, ids) || ids[2] == 0)
                return refuse(error, option, "must be ID:SHOWN:COUNT, three numbers");
        if (map->user_count >= ID_RANGES_MAX)
                return refuse(error, option, "is given too often");
        map->users[map->user_count++] = (struct id_range){ .inside = ids[0], .outside = ids[1], .count = ids[2] };
        map->groups[map->group_count++] = map->users[map->user_count - 1];
        return 0;
}

static int take_subdir(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        if (value[0] == '/' || text_climbs(value))
                return refuse(error, option, "must be a path below the volume's root");
        return take_text(&mount->subdir, option, value, error);
}

static int take_pool(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        return take_text(&mount->pool, option, value, error);
}

static int take_profile(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        return take_text(&mount->profile, option, value, error);
}

static int take_fs_type(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        return take_text(&mount->fs_type, option, value, error);
}

static const struct {
        const char *name;
        int (*take)(struct node_mount *mount, const char *option, const char *value, struct error *error);
} own_options[] = {
        { "subdir", take_subdir },  { "create", take_size }, { "pool", take_pool },   { "profile", take_profile },
        { "fstype", take_fs_type }, { "idmap", take_map },   { "owner", take_owner },
};

/* 1: it is one of them. */
static int take_own(struct node_mount *mount, const char *option, const char *value, struct error *error)
{
        for (size_t i = 0; value != NULL && i < sizeof own_options / sizeof own_options[0]; i++)
                if (strcmp(option, own_options[i].name) == 0) {
                        int r = own_options[i].take(mount, option, value, error);

                        return r < 0 ? r : 1;
                }
        return 0;
}

/* ---- options of every mount */

/* What mount(8) itself acts upon, or what holds anyway; mount/options does not know these. */
static bool is_for_others(const char *option, const char *value)
{
        static const char *const words[] = { "async", "nomand", "nolazytime", NULL };
        static const char *const with_value[] = { "user", "helper", "uhelper", NULL };

        return text_among(option, value == NULL ? words : with_value);
}

static int add_user(struct arguments *arguments, const char *text, struct error *error)
{
        size_t length = strlen(arguments->user);

        return snprintf(arguments->user + length, sizeof arguments->user - length, "%s%s", length > 0 ? "," : "",
                        text) < (int)(sizeof arguments->user - length)
                       ? 0
                       : refuse(error, text, "is too long, with those before it");
}

/* Of the table of all options of mounts (mount/options), what a mount of its own can have. */
static int take_common(struct arguments *arguments, struct mount_options *options, const char *text,
                       struct error *error)
{
        static const char *const others[] = { "bind", "rbind", "loop", NULL };
        const size_t count = options->fs_count;
        int r;

        if (text_among(text, others) || text_starts(text, "loop="))
                return refuse(error, text, "makes no sense for this type");
        if ((r = mount_options_add(options, text, error)) < 0)
                return refuse(error, text, "is not supported");
        if (options->fs_count == count)
                return 0;
        return arguments->sloppy || arguments->export ? 0 : refuse(error, text, "is unknown");
}

static int take_option(struct arguments *arguments, bool own, struct mount_options *options, const char *text,
                       struct error *error)
{
        char option[VALUE_MAX];
        char *value;
        int r;

        (void)text_copy(option, sizeof option, text); /* as long */
        if ((value = strchr(option, '=')) != NULL)
                *value++ = '\0';
        if (own && (r = take_own(&arguments->mount, option, value, error)) != 0)
                return r < 0 ? r : 0;
        if (own && strcmp(text, "remount") == 0) {
                arguments->remount = true;
                return 0;
        }
        if (text_starts(text, "x-"))
                return add_user(arguments, text, error);
        return is_for_others(option, value) ? 0 : take_common(arguments, options, text, error);
}

static int take_options(struct arguments *arguments, bool own, struct mount_options *options, char *list,
                        struct error *error)
{
        char *name;
        char *value;
        size_t name_size;
        size_t value_size;
        int r;

        while ((r = mnt_optstr_next_option(&list, &name, &name_size, &value, &value_size)) == 0) {
                char text[VALUE_MAX];
                const size_t length = value != NULL ? (size_t)(value - name) + value_size : name_size;

                if (length >= sizeof text)
                        return fail_because(error, EINVAL, OPERATION_PARSE, "-o", "an option is too long");
                (void)memcpy(text, name, length);
                text[length] = '\0';
                if ((r = take_option(arguments, own, options, text, error)) < 0)
                        return r;
        }
        return r < 0 ? fail_because(error, EINVAL, OPERATION_PARSE, "-o", "the options cannot be understood") : 0;
}

/* ---- the words */

#define SETS_OPTIONS ((size_t)32)

static int refuse_word(struct error *error, int letter)
{
        char text[3] = { '-', (char)letter, '\0' };

        return fail_because(error, EINVAL, OPERATION_PARSE, text, "unknown option %s", text);
}

/*
 * mount(8) takes the name for a path where the working directory has something of that name: then it is that of another
 * volume if it is a symbolic link's.
 */
static int take_source(struct arguments *arguments, const char *word, struct error *error)
{
        char here[PATH_MAX];
        char name[NAME_MAX + 1];
        size_t length;

        arguments->source = word;
        if (word[0] != '/' || getcwd(here, sizeof here) == NULL)
                return 0;
        if (links_find(word, name))
                return fail_because(error, EINVAL, OPERATION_PARSE, name,
                                    "the working directory %s has a symbolic link \"%s\", which mount(8) takes for the "
                                    "source: rename that, or go to another directory",
                                    here, name);
        length = strcmp(here, "/") == 0 ? 0 : strlen(here);
        if (strncmp(word, here, length) == 0 && word[length] == '/' && strchr(word + length + 1, '/') == NULL)
                arguments->source = word + length + 1;
        return 0;
}

static int resolve_target(struct arguments *arguments, const char *word, struct error *error)
{
        if (realpath(word, arguments->target) != NULL)
                return 0;
        return errno == ENOENT ? fail_because(error, ENOENT, OPERATION_FIND_TARGET, word, "mount point does not exist")
                               : fail(error, errno, OPERATION_FIND_TARGET, word);
}

static void settle(struct arguments *arguments)
{
        const struct mount_options *options = &arguments->options;
        struct node_mount *mount = &arguments->mount;

        mount->name = arguments->source;
        mount->target = arguments->target;
        mount->set = options->attr_set;
        mount->clear = options->attr_clear;
        mount->propagation = options->propagation;
        arguments->read_only = options->read_only;
}

/* mount(8) and umount(8) put the words first, where getopt(3) stops if the environment has this. */
static void begin_words(void)
{
        opterr = 0;
        (void)unsetenv("POSIXLY_CORRECT");
}

/* Records are JSON, which is UTF-8. */
static int check_target(const struct arguments *arguments, struct error *error)
{
        cleanup_json json_t *text = json_string(arguments->target);

        return text != NULL ? 0
                            : fail_because(error, EILSEQ, OPERATION_FIND_TARGET, arguments->target,
                                           "the path of the mount point is not UTF-8, as records are");
}

int arguments_read_mount(struct arguments *ret_arguments, bool own, int argc, char **argv, struct error *error)
{
        char *lists[SETS_OPTIONS];
        size_t count = 0;
        int letter;
        int r = 0;

        begin_words();
        while ((letter = getopt(argc, argv, "fnsvrwo:t:")) != -1) {
                char *list = letter == 'o'   ? optarg
                             : letter == 'r' ? (char *)"ro"
                             : letter == 'w' ? (char *)"rw"
                                             : NULL;

                ret_arguments->fake = ret_arguments->fake || letter == 'f';
                ret_arguments->no_table = ret_arguments->no_table || letter == 'n';
                ret_arguments->sloppy = ret_arguments->sloppy || letter == 's';
                ret_arguments->verbose = ret_arguments->verbose || letter == 'v';
                if (letter == '?')
                        return refuse_word(error, optopt);
                if (list != NULL && count == SETS_OPTIONS)
                        return fail_because(error, EINVAL, OPERATION_PARSE, "-o", "-o is given too often");
                if (list != NULL)
                        lists[count++] = list;
        }
        if (argc - optind != 2)
                return fail_because(error, EINVAL, OPERATION_PARSE, "arguments", "a source and a target are needed");
        if (own)
                r = take_source(ret_arguments, argv[optind], error);
        else
                ret_arguments->source = argv[optind];
        ret_arguments->export = !own && text_starts(ret_arguments->source, MAPPABLE_NFS);
        for (size_t i = 0; r == 0 && i < count; i++)
                r = take_options(ret_arguments, own, &ret_arguments->options, lists[i], error);
        if (r < 0 || (r = resolve_target(ret_arguments, argv[optind + 1], error)) < 0 ||
            (own && (r = check_target(ret_arguments, error)) < 0))
                return r;
        if (ret_arguments->mount.size_bytes == 0 &&
            (ret_arguments->mount.pool != NULL || ret_arguments->mount.profile != NULL))
                return refuse(error, ret_arguments->mount.pool != NULL ? "pool" : "profile",
                              "applies to new volumes: it needs create=SIZE");
        settle(ret_arguments);
        return 0;
}

int arguments_read_unmount(struct arguments *ret_arguments, int argc, char **argv, struct error *error)
{
        int letter;

        begin_words();
        while ((letter = getopt(argc, argv, "flnrvt:")) != -1) {
                ret_arguments->force = ret_arguments->force || letter == 'f';
                ret_arguments->lazy = ret_arguments->lazy || letter == 'l';
                ret_arguments->no_table = ret_arguments->no_table || letter == 'n';
                ret_arguments->read_only = ret_arguments->read_only || letter == 'r';
                ret_arguments->verbose = ret_arguments->verbose || letter == 'v';
                if (letter == '?')
                        return refuse_word(error, optopt);
        }
        if (argc - optind != 1)
                return fail_because(error, EINVAL, OPERATION_PARSE, "arguments", "a mount point is needed");
        if (realpath(argv[optind], ret_arguments->target) != NULL)
                return 0;
        return text_path_normal(argv[optind], ret_arguments->target) < 0
                       ? fail(error, EINVAL, OPERATION_FIND_TARGET, argv[optind])
                       : 0;
}

bool arguments_root(const char *subdir, char *ret_root)
{
        char path[PATH_MAX];

        return snprintf(path, sizeof path, "/%s", subdir) < (int)sizeof path && text_path_normal(path, ret_root) == 0;
}

int arguments_check_plain(const struct arguments *arguments, struct error *error)
{
        if (((arguments->mount.set | arguments->mount.clear) & ~(uint64_t)(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV)) !=
                    0 ||
            arguments->mount.propagation != 0)
                return fail_because(error, EINVAL, OPERATION_PARSE, "-o",
                                    "mounts of this type have no options but ro, rw, nodev, x-* and, of an export, "
                                    "those of nfs(5)");
        return mappable_check_source(arguments->source, error);
}
