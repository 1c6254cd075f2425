/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options, which libmount divides between mount and filesystem likewise; and the name of an NFS export. */
#include "fuzz.h"

#include <libmount/libmount.h>
#include <sys/mount.h>

#include "base/text.h"
#include "mount/options.h"
#include "network/nfs_server.h"

/* Where both differ on purpose: options of these names are not compared; nor is a list that we refuse. */
static const struct {
        const char *name;
        const char *why;
} on_purpose[] = {
        { "sync", "a flag of the superblock to mount(2); fsconfig() has the name" },
        { "async", "likewise" },
        { "dirsync", "likewise" },
        { "mand", "likewise" },
        { "nomand", "likewise" },
        { "lazytime", "likewise" },
        { "nolazytime", "likewise" },
        { "iversion", "likewise" },
        { "noiversion", "likewise" },
        { "user", "with a value the filesystem's: cifs has it" },
        { "defaults", "nothing to libmount with a value, too; to us only without one" },
        { "comment", "without a value nothing to mount(8)" },
        { "offset", "of the loop device that mount(8) makes: the filesystem refuses it" },
        { "sizelimit", "likewise" },
        { "encryption", "likewise" },
        { "helper", "for mount(8) and umount(8), which runs it: the filesystem refuses it" },
        { "uhelper", "likewise" },
        { "verity.hashdevice", "of the device that mount(8) makes: the filesystem refuses it" },
        { "verity.roothash", "likewise" },
        { "verity.hashoffset", "likewise" },
        { "verity.roothashfile", "likewise" },
        { "verity.fecdevice", "likewise" },
        { "verity.fecoffset", "likewise" },
        { "verity.fecroots", "likewise" },
        { "verity.roothashsig", "likewise" },
        { "verity.oncorruption", "likewise" },
};

/*
 * Whether a list is written in a way that both read differently on purpose: libmount takes a comma behind a backslash
 * for a part of the option, and has quotation marks only around whole values, where we have them anywhere; "ro=" is
 * "ro" to it, and "user[" is "user".
 */
static bool is_written_otherwise(const char *list)
{
        bool in_value = false;
        bool quoted = false;

        for (const char *at = list; *at != '\0'; at++) {
                if (*at == '"') {
                        if (!in_value || (!quoted && at[-1] != '=') || (quoted && at[1] != ',' && at[1] != '\0'))
                                return true;
                        quoted = !quoted;
                } else if (!quoted && *at == '=') {
                        if (at[1] == ',' || at[1] == '\0')
                                return true;
                        in_value = true;
                } else if (!in_value && *at == '[') {
                        return true;
                } else if (*at == ',') {
                        if (at > list && at[-1] == '\\')
                                return true;
                        if (!quoted)
                                in_value = false;
                }
        }
        return false;
}

/* OCI's words for the attributes of the mounts below, too, as "rro": to libmount the filesystem's. */
static bool has_recursive_word(const char *list)
{
        static const char *const plain[] = { "ro", "rw", "relatime", NULL };
        char option[32];
        bool found = false;

        for (const char *at = list; *at != '\0' && !found; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
                struct mount_options options = {};
                struct error error = {};

                if (*at != 'r' || strcspn(at, ",") >= sizeof option)
                        continue;
                (void)snprintf(option, sizeof option, "%.*s", (int)strcspn(at, ","), at);
                found = !text_among(option, plain) && mount_options_add(&options, option, &error) == 0 &&
                        (options.attr_set | options.attr_clear) != 0;
                mount_options_release(&options);
        }
        return found;
}

static bool differs_on_purpose(const char *option)
{
        size_t length = strcspn(option, "=");

        for (size_t i = 0; i < sizeof on_purpose / sizeof on_purpose[0]; i++)
                if (strlen(on_purpose[i].name) == length && strncmp(on_purpose[i].name, option, length) == 0)
                        return true;
        return false;
}

static void parse(struct mount_options *options, const char *list)
{
        struct error error = {};

        *options = (struct mount_options){};
        fuzz_check(mount_options_add_list(options, list != NULL ? list : "", &error) == 0);
}

/* The next option of the filesystem's, from the one with that number on, that both shall have; NULL at the end. */
static const char *next_option(const struct mount_options *options, size_t *at)
{
        while (*at < options->fs_count && differs_on_purpose(options->fs_options[*at]))
                ++*at;
        return *at < options->fs_count ? options->fs_options[(*at)++] : NULL;
}

static void check_same_options(const struct mount_options *ours, const struct mount_options *theirs)
{
        size_t at_ours = 0;
        size_t at_theirs = 0;
        const char *option;

        do {
                const char *other = next_option(theirs, &at_theirs);

                option = next_option(ours, &at_ours);
                if ((option == NULL) != (other == NULL) || (option != NULL && strcmp(option, other) != 0)) {
                        (void)fprintf(stderr, "to us the filesystem has %s, to libmount %s\n",
                                      option != NULL ? option : "no more", other != NULL ? other : "no more");
                        abort();
                }
        } while (option != NULL);
}

/*
 * libmount has the bits of mount(2). Of access times and propagations it may have several at once, where we have the
 * last that was said: access times are not compared, and of propagations only that ours is one of them.
 */
static void check_same_flags(const struct mount_options *ours, const char *list)
{
        static const struct {
                unsigned long flag;
                uint64_t attribute;
        } bits[] = {
                { MS_RDONLY, MOUNT_ATTR_RDONLY },         { MS_NOSUID, MOUNT_ATTR_NOSUID },
                { MS_NODEV, MOUNT_ATTR_NODEV },           { MS_NOEXEC, MOUNT_ATTR_NOEXEC },
                { MS_NODIRATIME, MOUNT_ATTR_NODIRATIME }, { 1UL << 8 /* MS_NOSYMFOLLOW */, MOUNT_ATTR_NOSYMFOLLOW },
        };
        const unsigned long propagations = MS_PRIVATE | MS_SLAVE | MS_SHARED | MS_UNBINDABLE;
        unsigned long flags = 0;
        unsigned long propagation;

        fuzz_check(mnt_optstr_get_flags(list, &flags, mnt_get_builtin_optmap(MNT_LINUX_MAP)) == 0);
        for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
                fuzz_check(((flags & bits[i].flag) != 0) == ((ours->attr_set & bits[i].attribute) != 0));
        fuzz_check(ours->read_only == ((flags & MS_RDONLY) != 0));
        propagation = flags & propagations;
        if ((propagation & (propagation - 1)) == 0)
                fuzz_check((unsigned long)ours->propagation == propagation);
        else
                fuzz_check(((unsigned long)ours->propagation & propagation) != 0);
        fuzz_check(!ours->recursive || ((flags & MS_BIND) != 0 && (flags & MS_REC) != 0));
}

static void compare(const char *list, const struct mount_options *all)
{
        struct mount_options mount;
        struct mount_options filesystem;
        char *user = NULL;
        char *of_mount = NULL;
        char *of_filesystem = NULL;
        size_t at = 0;

        fuzz_check(mnt_split_optstr(list, &user, &of_mount, &of_filesystem, 0, 0) == 0);
        parse(&mount, of_mount);
        parse(&filesystem, of_filesystem);
        fuzz_check(all->attr_set == mount.attr_set && all->attr_clear == mount.attr_clear);
        fuzz_check(all->propagation == mount.propagation);
        fuzz_check(all->read_only == mount.read_only && all->recursive == mount.recursive);
        fuzz_check(next_option(&mount, &at) == NULL);
        fuzz_check(filesystem.attr_set == 0 && filesystem.attr_clear == 0 && filesystem.propagation == 0);
        check_same_options(all, &filesystem);
        /* Of the mount's words alone: of "user" libmount makes "noexec,nosuid,nodev", for a caller that is not root. */
        check_same_flags(all, of_mount != NULL ? of_mount : "");
        mount_options_release(&mount);
        mount_options_release(&filesystem);
        free(user);
        free(of_mount);
        free(of_filesystem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct mount_options options = {};
        struct nfs_export export;
        struct error error = {};
        char *text = fuzz_text(data, size);

        if (mount_options_add_list(&options, text, &error) == 0) {
                if (!is_written_otherwise(text) && !has_recursive_word(text))
                        compare(text, &options);
                mount_options_default(&options);
        }
        mount_options_release(&options);
        if (nfs_export_parse(text, &export) == 0) {
                struct nfs_export again;

                fuzz_check(nfs_export_parse(export.source, &again) == 0);
                fuzz_check(strcmp(export.host, again.host) == 0 && strcmp(export.path, again.path) == 0);
        }
        free(text);
        return 0;
}
