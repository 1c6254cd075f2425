/* SPDX-License-Identifier: Apache-2.0 */
#include "state/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/node_path.h"
#include "base/text.h"
#include "network/address.h"
#include "state/file_key.h"

#define DEFAULT_PATH "/etc/flexgraft/policy.json"

static bool is_path(const json_t *value)
{
        char normal[PATH_MAX];

        return json_is_string(value) && text_path_normal(json_string_value(value), normal) == 0;
}

/* Paths, or {"path":..., "readOnly": true}. */
static bool all_sources(const json_t *value)
{
        const json_t *item;
        size_t i;

        json_array_foreach (value, i, item) {
                const json_t *path = json_is_object(item) ? json_object_get(item, "path") : item;
                const json_t *read_only = json_object_get(item, "readOnly");

                if (!is_path(path) || text_climbs(json_string_value(path)))
                        return false;
                if (json_is_object(item) && json_object_size(item) != 1 + (size_t)json_is_boolean(read_only))
                        return false;
        }
        return json_is_array(value);
}

static bool all_paths(const json_t *value)
{
        const json_t *item;
        size_t i;

        json_array_foreach (value, i, item)
                if (!is_path(item))
                        return false;
        return json_is_array(value);
}

/* Strings; a slash only in a network. */
static bool all_servers(const json_t *value)
{
        const json_t *item;
        size_t i;

        if (!file_key_is_texts(value))
                return false;
        json_array_foreach (value, i, item)
                if (!address_pattern_valid(json_string_value(item)))
                        return false;
        return true;
}

static bool is_fallback(const json_t *value)
{
        const char *word = json_string_value(value);

        return word != NULL && (strcmp(word, "none") == 0 || strcmp(word, "remap") == 0);
}

#define TEXTS(name, fallback, help)                                                                                    \
        {                                                                                                              \
                name, "an array of strings", file_key_is_texts, false, fallback, help, NULL                            \
        }
#define SOURCES                                                                                                        \
        {                                                                                                              \
                "sources", "an array of absolute paths without \"..\", or of {\"path\": ..., \"readOnly\": true}",     \
                        all_sources, false, "none", "Directories of the node that sources may be in.", NULL            \
        }
#define OPTIONS TEXTS("options", "none", "Mount options that are allowed besides those that only take rights away.")
#define SERVERS(fallback)                                                                                              \
        {                                                                                                              \
                "nfsServers", "an array of strings, those with a slash as \"10.0.0.0/8\"", all_servers, false,         \
                        fallback, "Addresses, networks and names of NFS servers, with wildcards as in fnmatch(3).",    \
                        NULL                                                                                           \
        }

/* A policy with a key that is not known could allow less, or more, than its author believes: it is refused. */
static const struct file_key annotations_keys[] = {
        TEXTS("kinds", "none", "Kinds of mounts that are allowed."),
        SOURCES,
        SERVERS("none"),
        TEXTS("containers", "none", "Ids of containers that sources may be in; \"*\": any."),
        OPTIONS,
        TEXTS("volumeNames", "none",
              "Names of volumes of volume-create that are allowed, with wildcards as in fnmatch(3)."),
        TEXTS("pools", "none",
              "Pools whose volumes are allowed, and in which missing ones are made; wildcards likewise."),
        { "fallback", "\"none\" or \"remap\"", is_fallback, false, "none",
          "Whether a mount whose owners the kernel cannot map fails, or is served by remap-daemon.", NULL },
        { "raw", "true or false", file_key_is_boolean, false, "false", "Whether block devices themselves are allowed.",
          NULL },
        { "maxMounts", "a number, 0 or more", file_key_is_count, false, "32",
          "How many mounts the annotations of one container may ask for.", NULL },
        {},
};

static const struct file_key volumes_keys[] = {
        TEXTS("kinds", "all but bind", "Kinds of volumes that are allowed."),
        SOURCES,
        { "devices", "an array of absolute paths", all_paths, false, "any",
          "Devices, or directories of devices, that are allowed.", NULL },
        TEXTS("images", "none",
              "Images that the option \"image\" may name, as POOL/IMAGE, or POOL for all in it; those of a volume "
              "itself need no permission."),
        SERVERS("any"),
        OPTIONS,
        {},
};
#undef SERVERS
#undef OPTIONS
#undef SOURCES
#undef TEXTS

static const struct file_key keys[] = {
        { "annotations", "an object", file_key_is_object, false, NULL,
          "What annotations of containers may ask mount-hook for; without it nothing.", annotations_keys },
        { "volumes", "an object", file_key_is_object, false, NULL,
          "What volumes of pods may ask the driver for; without it what needs no permission.", volumes_keys },
        {},
};

const struct file_key *const policy_keys = keys;

/* From the environment only where the caller has no fewer privileges than the program (secure_getenv(3)). */
static const char *policy_path(void)
{
        return secure_getenv("FLEXGRAFT_POLICY") ?: DEFAULT_PATH;
}

int policy_load(struct policy *ret_policy, const char *section, struct error *error)
{
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        json_t *file = NULL;
        struct stat st;
        int r;

        *ret_policy = (struct policy){ .path = policy_path() };
        if (stat(ret_policy->path, &st) < 0)
                return errno == ENOENT ? 0 /* nothing is allowed */ : fail(error, errno, "stat", ret_policy->path);
        if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
                return fail_because(error, EPERM, OPERATION_READ_POLICY, ret_policy->path,
                                    "the file belongs to another user, or others may write to it");
        r = json_file_load(AT_FDCWD, ret_policy->path, JSON_OBJECT, &file, error);
        if (r < 0)
                return r;
        ret_policy->file = file;
        if (!file_keys_check(keys, file, /* strict= */ true, complaint))
                return fail_because(error, EBADMSG, OPERATION_READ_POLICY, ret_policy->path, "%s", complaint);
        policy_turn_to(ret_policy, section);
        return 0;
}

void policy_turn_to(struct policy *policy, const char *section)
{
        policy->section = json_object_get(policy->file, section);
}

bool policy_lists(const struct policy *policy, const char *key, const char *word)
{
        const json_t *item;
        size_t i;

        json_array_foreach (json_object_get(policy->section, key), i, item)
                if (strcmp(json_string_value(item), word) == 0)
                        return true;
        return false;
}

bool policy_matches(const struct policy *policy, const char *key, const char *word)
{
        const json_t *item;
        size_t i;

        json_array_foreach (json_object_get(policy->section, key), i, item)
                if (fnmatch(json_string_value(item), word, 0) == 0)
                        return true;
        return false;
}

bool policy_says(const struct policy *policy, const char *key)
{
        return json_is_true(json_object_get(policy->section, key));
}

int policy_require(const struct policy *policy, const char *key, struct error *error)
{
        return policy_says(policy, key) ? 0
                                        : fail_because(error, EACCES, OPERATION_CHECK_POLICY, key,
                                                       "%s does not allow it: \"%s\" is not true", policy->path, key);
}

bool policy_falls_back(const struct policy *policy)
{
        return strcmp(file_key_text(annotations_keys, policy->section, "fallback"), "remap") == 0;
}

int policy_forbid(const struct policy *policy, const char *word, const char *key, struct error *error)
{
        if (policy->file == NULL)
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, word,
                                    "there is no %s, and without it \"%.300s\" is not allowed", policy->path, word);
        return fail_because(error, EACCES, OPERATION_CHECK_POLICY, word,
                            "%s does not allow it: \"%.300s\" is not in \"%s\"", policy->path, word, key);
}

int policy_check_count(const struct policy *policy, size_t count, struct error *error)
{
        size_t allowed = file_key_number(annotations_keys, policy->section, "maxMounts");

        if (count <= allowed)
                return 0;
        return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "maxMounts",
                            "%s does not allow it: more than %zu mounts", policy->path, allowed);
}

int policy_check_options(const struct policy *policy, const struct mount_options *options, const char *const *harmless,
                         bool device_file, struct error *error)
{
        static const struct {
                uint64_t attribute;
                const char *name;
        } risky[] = { { MOUNT_ATTR_NOSUID, "suid" },
                      { MOUNT_ATTR_NODEV, "dev" },
                      { MOUNT_ATTR_NOEXEC, "exec" },
                      { MOUNT_ATTR_NOSYMFOLLOW, "symfollow" } };
        static const struct {
                int propagation;
                const char *name;
        } travels[] = { { MS_SHARED, "shared" }, { MS_SLAVE, "slave" } };

        for (size_t i = 0; i < sizeof risky / sizeof risky[0]; i++)
                if ((options->attr_clear & risky[i].attribute) != 0 && !device_file &&
                    !policy_lists(policy, "options", risky[i].name))
                        return policy_forbid(policy, risky[i].name, "options", error);
        /* a slave, too, receives what the node mounts below the source later */
        for (size_t i = 0; i < sizeof travels / sizeof travels[0]; i++)
                if (options->propagation == travels[i].propagation && !policy_lists(policy, "options", travels[i].name))
                        return policy_forbid(policy, travels[i].name, "options", error);
        for (size_t i = 0; i < options->fs_count; i++) {
                const char *option = options->fs_options[i];
                char name[64];

                (void)text_copy(name, sizeof name, option);
                name[strcspn(name, "=")] = '\0';
                if (name[0] != '\0' && (harmless == NULL || !text_among(name, harmless)) &&
                    !policy_lists(policy, "options", name))
                        return policy_forbid(policy, name, "options", error);
        }
        return 0;
}

int policy_check_volume(const struct policy *policy, const char *kind, bool needs_policy, struct error *error)
{
        if (json_object_get(policy->section, "kinds") == NULL ? !needs_policy : policy_lists(policy, "kinds", kind))
                return 0;
        return policy_forbid(policy, kind, "kinds", error);
}

int policy_check_image(const struct policy *policy, const char *pool, const char *image, struct error *error)
{
        char name[PATH_MAX];

        (void)snprintf(name, sizeof name, "%s/%s", pool, image);
        return policy_lists(policy, "images", pool) || policy_lists(policy, "images", name)
                       ? 0
                       : policy_forbid(policy, name, "images", error);
}

/* The directory of a path of the node, its links resolved: only root's are followed. */
static bool resolve(const char *path, bool directory, char *ret_path)
{
        cleanup_close int fd = -EBADF;
        struct error ignored; /* what cannot be resolved does not match */
        char text[PATH_MAX];

        if (path[0] != '/' || !text_copy(text, sizeof text, path))
                return false;
        if (directory) {
                char *slash = strrchr(text, '/');

                slash[slash == text ? 1 : 0] = '\0';
        }
        fd = node_path_open(text, ret_path, &ignored);
        return fd >= 0;
}

int policy_check_device(const struct policy *policy, const char *source, const char *path, struct error *error)
{
        const json_t *devices = json_object_get(policy->section, "devices");
        char directory[PATH_MAX]; /* of the link that was asked for: /dev/mapper of /dev/mapper/vg-data */
        char listed[PATH_MAX];
        char normal[PATH_MAX];
        char node[PATH_MAX]; /* /dev/dm-3 of /dev/mapper/vg-data, where udev made that a link */
        bool linked = devices != NULL && source != NULL && resolve(source, /* directory= */ true, directory);
        const json_t *item;
        size_t i;

        if (devices == NULL || !resolve(path, /* directory= */ false, node))
                (void)text_copy(node, sizeof node, path);
        json_array_foreach (devices, i, item) {
                (void)text_path_normal(json_string_value(item), normal); /* checked when it was loaded */
                if (text_lies_in(path, normal))
                        return 0;
                if (resolve(normal, /* directory= */ false, listed) &&
                    (text_lies_in(path, listed) || text_lies_in(node, listed) ||
                     (linked && text_lies_in(directory, listed))))
                        return 0;
        }
        return devices == NULL ? 0 : policy_forbid(policy, path, "devices", error);
}

int policy_check_source(const struct policy *policy, const char *path, bool writes, struct error *error)
{
        char normal[PATH_MAX];
        char allowed[PATH_MAX];
        const json_t *item;
        size_t i;
        int r = text_path_normal(path, normal);

        if (r == 0 && text_climbs(normal))
                r = -EINVAL; /* the caller resolves them when it opens the path */
        if (r < 0)
                return fail(error, -r, OPERATION_CHECK_POLICY, path);
        json_array_foreach (json_object_get(policy->section, "sources"), i, item) {
                const json_t *given = json_is_object(item) ? json_object_get(item, "path") : item;
                bool read_only = json_is_true(json_object_get(item, "readOnly"));

                (void)text_path_normal(json_string_value(given), allowed); /* checked when it was loaded */
                if (text_lies_in(normal, allowed) && !(writes && read_only))
                        return 0;
        }
        return policy_forbid(policy, path, writes ? "sources (for writing)" : "sources", error);
}

void policy_release(struct policy *policy)
{
        json_decref(policy->file);
        policy->file = NULL;
        policy->section = NULL;
}
