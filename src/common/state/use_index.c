/* SPDX-License-Identifier: Apache-2.0 */
#include "state/use_index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "process/proc.h"

#define INDEX "uses"
#define ROOT "../" INDEX
#define PATH ROOT "/" /* from any directory of the state, the index among them */
#define EMPTY PATH ".empty"
#define BUCKET_SIZE (sizeof PATH + USE_KEY_SIZE)
#define ENTRY_SIZE (BUCKET_SIZE + USE_KEY_SIZE + NAME_MAX + 4)
#define MORE "+"  /* among keys: there are more than fit */
#define TRIES 100 /* another call may remove an empty directory between two steps */

void use_keys_add(char *keys, const char *key)
{
        size_t length = strlen(keys);
        const char *gap = length > 0 ? " " : "";

        if (use_keys_have(keys, key) || use_keys_have(keys, MORE))
                return;
        /* there is always room for one that says that others did not fit */
        if (length + strlen(key) + 2 + sizeof MORE > USE_KEYS_SIZE)
                key = MORE;
        (void)snprintf(keys + length, USE_KEYS_SIZE - length, "%s%s", gap, key);
}

int use_keys_check(const char *keys, const char *subject, struct error *error)
{
        return use_keys_have(keys, MORE)
                       ? fail_because(error, E2BIG, "list what is used", subject,
                                      "it is of more devices, files and directories than a record can name")
                       : 0;
}

bool use_key_is_file(const char *key)
{
        return key[0] == 'f';
}

static void add_number(char *keys, char kind, uint64_t number)
{
        char key[USE_KEY_SIZE];

        (void)snprintf(key, sizeof key, "%c%llx", kind, (unsigned long long)number);
        use_keys_add(keys, key);
}

void use_keys_add_device(char *keys, uint64_t device)
{
        if (device != 0)
                add_number(keys, 'b', device);
}

void use_keys_add_volume(char *keys, uint64_t device)
{
        if (device != 0)
                add_number(keys, 'v', device);
}

bool use_key_to_volume(char *key)
{
        if (key[0] != 'b')
                return false;
        key[0] = 'v';
        return true;
}

static void add_inode(char *keys, char kind, uint64_t device, uint64_t inode)
{
        char key[USE_KEY_SIZE];

        (void)snprintf(key, sizeof key, "%c%llx.%llx", kind, (unsigned long long)device, (unsigned long long)inode);
        use_keys_add(keys, key);
}

void use_keys_add_file(char *keys, uint64_t device, uint64_t inode)
{
        add_inode(keys, 'f', device, inode);
}

void use_keys_add_written(char *keys, uint64_t device, uint64_t inode)
{
        add_inode(keys, 'o', device, inode);
}

void use_keys_add_container(char *keys, uint64_t hash)
{
        add_number(keys, 'n', hash);
}

void use_keys_add_container_id(char *keys, const char *id)
{
        if (id[0] != '\0')
                add_number(keys, 'i', hash_text(id));
}

void use_keys_add_process(char *keys, pid_t pid)
{
        add_number(keys, 'c', (uint64_t)pid);
}

uint64_t use_keys_directory_hash(const char *path)
{
        return hash_text(path);
}

void use_keys_add_directory_hash(char *keys, uint64_t hash)
{
        add_number(keys, 'd', hash);
}

void use_keys_add_directory(char *keys, const char *path)
{
        use_keys_add_directory_hash(keys, use_keys_directory_hash(path));
}

bool use_key_is_written(const char *key)
{
        return key[0] == 'o';
}

bool use_key_is_directory(const char *key)
{
        return key[0] == 'd';
}

void use_keys_add_named(char *keys, const char *name)
{
        add_number(keys, 'w', hash_text(name));
}

void use_keys_add_wanted(char *keys, const char *name)
{
        add_number(keys, 'u', hash_text(name));
}

void use_keys_add_disk(char *keys, const char *id)
{
        add_number(keys, 'p', hash_text(id));
}

void use_keys_add_all(char *keys, const char *others)
{
        char key[USE_KEY_SIZE];

        while (use_keys_next(&others, key))
                use_keys_add(keys, key);
}

void use_keys_add_opened(char *keys, int fd)
{
        struct statx stx;
        uint64_t device;

        /* a remote filesystem is not asked: what is known of the file is enough */
        if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_INO, &stx) < 0)
                return;
        device = makedev(stx.stx_dev_major, stx.stx_dev_minor);
        use_keys_add_device(keys, device);
        use_keys_add_file(keys, device, stx.stx_ino);
}

bool use_keys_next(const char **position, char *ret_key)
{
        size_t length;

        *position += strspn(*position, " ");
        length = strcspn(*position, " ");
        (void)text_copy(ret_key, length < USE_KEY_SIZE ? length + 1 : USE_KEY_SIZE, *position);
        *position += length;
        return length > 0;
}

bool use_keys_have(const char *keys, const char *key)
{
        const size_t length = strlen(key);

        for (const char *found = keys; length > 0 && (found = strstr(found, key)) != NULL; found += length)
                if ((found == keys || found[-1] == ' ') && (found[length] == '\0' || found[length] == ' '))
                        return true;
        return false;
}

/* The directory of a key: a device's own; of the others, which are many, those of one hash share one. All stay. */
static void put_bucket(const char *key, char *ret_path)
{
        uint64_t hash = hash_text(key);

        if (use_key_is_file(key))
                (void)snprintf(ret_path, BUCKET_SIZE, PATH "f%02x", (unsigned)((hash ^ (hash >> 32)) & 0xff));
        else if (memchr("nicdpwou", key[0], 8) != NULL)
                (void)snprintf(ret_path, BUCKET_SIZE, PATH "%c%03x", key[0], (unsigned)((hash ^ (hash >> 32)) & 0xfff));
        else
                (void)snprintf(ret_path, BUCKET_SIZE, PATH "%s", key);
}

static void put_entry(const char *key, char sort, const char *file, char *ret_path)
{
        char bucket[BUCKET_SIZE];

        put_bucket(key, bucket);
        (void)snprintf(ret_path, ENTRY_SIZE, "%s/%s:%c:%s", bucket, key, sort, file);
}

static int put_dir(int dir_fd, const char *path)
{
        return mkdirat(dir_fd, path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static bool is_without_records(int dir_fd, const char *path)
{
        DIR *list = file_list(dir_fd, path);
        const struct dirent *entry;
        bool found = false;

        if (list == NULL)
                return errno == ENOENT;
        while (!found && (errno = 0, entry = readdir(list)) != NULL)
                found = entry->d_name[0] != '.';
        found = found || errno != 0;
        (void)closedir(list); /* nothing was written */
        return !found;
}

/*
 * An index that is made before the first record is complete from the beginning: a record has its entries before it is
 * written, and finds this directory there.
 */
static int make_root(int dir_fd)
{
        if (mkdirat(dir_fd, ROOT, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        if (is_without_records(dir_fd, "../mounts") && is_without_records(dir_fd, "../volumes") &&
            is_without_records(dir_fd, "../wanted"))
                (void)use_index_set_complete(dir_fd, USE_HOLDERS_OF_USES); /* else the first question does */
        return 0;
}

/* A link of one empty file costs less than a file. */
static int add(int dir_fd, const char *key, char sort, const char *file)
{
        char bucket[BUCKET_SIZE];
        char path[ENTRY_SIZE];
        int r;

        put_entry(key, sort, file, path);
        for (int i = 0; i < TRIES; i++) {
                if (linkat(dir_fd, EMPTY, dir_fd, path, 0) == 0 || errno == EEXIST)
                        return 0;
                if (errno == EMLINK) /* the filesystem has no more links of it */
                        return file_ensure(dir_fd, path);
                if (errno != ENOENT)
                        return -errno;
                put_bucket(key, bucket);
                if ((r = make_root(dir_fd)) < 0 || (r = put_dir(dir_fd, bucket)) < 0 ||
                    (r = file_ensure(dir_fd, EMPTY)) < 0)
                        return r;
        }
        return -EAGAIN;
}

void use_index_drop(int dir_fd, const char *key, char sort, const char *file)
{
        char path[ENTRY_SIZE];

        put_entry(key, sort, file, path);
        (void)unlinkat(dir_fd, path, 0); /* one that stays does no harm: its record does not name the key */
}

int use_index_remove(const struct state *records, const char *keys, char sort, const char *file)
{
        int r = state_remove(records, file);

        /* killed here, it leaves entries that say nothing; a record without entries would not be found again */
        if (r == 0)
                use_index_drop_old(records, keys, "", sort, file);
        return r;
}

int use_index_add(const struct state *records, const char *keys, char sort, const char *file, struct error *error)
{
        char key[USE_KEY_SIZE];
        int r = use_keys_check(keys, file, error);

        while (r == 0 && use_keys_next(&keys, key)) {
                r = add(records->dir_fd, key, sort, file);
                if (r < 0)
                        return fail(error, -r, "write record", file);
        }
        return r;
}

void use_index_drop_old(const struct state *records, const char *old, const char *keys, char sort, const char *file)
{
        char key[USE_KEY_SIZE];

        while (use_keys_next(&old, key))
                if (!use_keys_have(keys, key))
                        use_index_drop(records->dir_fd, key, sort, file);
}

/* An entry's name, "KEY:SORT:FILE", taken apart; false for another name. */
static bool take_entry(const char *name, char *ret_key, char *ret_sort, const char **ret_file)
{
        size_t length = strcspn(name, ":");

        if (name[0] == '.' || length >= USE_KEY_SIZE || name[length] == '\0' || name[length + 1] == '\0' ||
            name[length + 2] != ':')
                return false;
        (void)snprintf(ret_key, USE_KEY_SIZE, "%.*s", (int)length, name);
        *ret_sort = name[length + 1];
        *ret_file = name + length + 3;
        return true;
}

/* Of one directory, the entries of a key; NULL: of all keys. */
static int each_in(int index_fd, const char *bucket, const char *key, use_index_function *function, void *argument,
                   struct error *error)
{
        DIR *list = file_list(index_fd, bucket);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return errno == ENOENT ? 0 : fail(error, errno, "open", bucket);
        while (r == 0 && (errno = 0, entry = readdir(list)) != NULL) {
                char found[USE_KEY_SIZE];
                const char *file;
                char sort;

                if (take_entry(entry->d_name, found, &sort, &file))
                        r = key != NULL && strcmp(found, key) != 0 ? 0 : function(found, sort, file, argument, error);
                else if (key == NULL && !text_starts(entry->d_name, "."))
                        (void)unlinkat(dirfd(list), entry->d_name, 0); /* of another layout of the index */
        }
        if (r == 0 && errno != 0)
                r = fail(error, errno, "read", bucket);
        (void)closedir(list); /* nothing was written */
        return r;
}

int use_index_each(int dir_fd, const char *key, use_index_function *function, void *argument, struct error *error)
{
        char bucket[BUCKET_SIZE];

        put_bucket(key, bucket);
        return each_in(dir_fd, bucket, key, function, argument, error);
}

/*
 * Directories, for their names: the numbers are of the layout, and the boot's id follows, since after a power cut a record
 * may be there without its entries, on filesystems that recover each file for itself (base/file).
 */
static const char *const complete[] = {
        [USE_HOLDERS_OF_USES] = ".complete-7",
        [USE_HOLDERS_PROVISIONED] = ".provisioned-1",
};

#define MARK_SIZE (sizeof PATH + 16 + PROC_BOOT_ID_SIZE)

static int put_mark(enum use_holders holders, char *ret_path)
{
        char boot_id[PROC_BOOT_ID_SIZE];
        int r = proc_boot_id(boot_id);

        (void)snprintf(ret_path, MARK_SIZE, PATH "%s-%s", complete[holders], r < 0 ? "" : boot_id);
        return r;
}

/* Those of other layouts and boots. */
static void drop_other_marks(int dir_fd, enum use_holders holders, const char *mark)
{
        const size_t length = strcspn(complete[holders], "-") + 1;
        DIR *list = file_list(dir_fd, ROOT);
        const struct dirent *entry;

        while (list != NULL && (entry = readdir(list)) != NULL)
                if (strncmp(entry->d_name, complete[holders], length) == 0 && strcmp(entry->d_name, mark) != 0)
                        (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR); /* else the next boot does */
        if (list != NULL)
                (void)closedir(list);
}

bool use_index_is_complete(int dir_fd, enum use_holders holders)
{
        char mark[MARK_SIZE];
        struct stat st;

        return put_mark(holders, mark) == 0 && fstatat(dir_fd, mark, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int use_index_set_complete(int dir_fd, enum use_holders holders)
{
        char mark[MARK_SIZE];
        int r = put_dir(dir_fd, ROOT); /* without records, it may not be there yet */

        if (r < 0 || (r = put_mark(holders, mark)) < 0)
                return r;
        if (mkdirat(dir_fd, mark, 0700) < 0)
                return errno == EEXIST ? 0 : -errno;
        drop_other_marks(dir_fd, holders, mark + strlen(PATH));
        return 0;
}

bool use_index_knows(int dir_fd, const char *key)
{
        char bucket[BUCKET_SIZE];
        struct stat st;

        put_bucket(key, bucket);
        return fstatat(dir_fd, bucket, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int use_index_each_key(int dir_fd, use_index_function *function, void *argument, struct error *error)
{
        DIR *list = file_list(dir_fd, ROOT);
        const struct dirent *entry;
        int r = 0;

        if (list == NULL)
                return fail(error, errno, "open", INDEX);
        while (r == 0 && (errno = 0, entry = readdir(list)) != NULL)
                if (entry->d_name[0] != '.') {
                        r = each_in(dirfd(list), entry->d_name, /* key= */ NULL, function, argument, error);
                        (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR); /* only if it is empty */
                }
        if (r == 0 && errno != 0)
                r = fail(error, errno, "read", INDEX);
        (void)closedir(list); /* nothing was written */
        return r;
}
