/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record_left.c - records of mounts that are in their containers no more, and that may still be in use. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "state/mount_record.h"

#define TRIES 10             /* a tidying call looks once at each file */
#define FORMER_FILES_MS 2000 /* so long processes are looked at: a container may have very many */
#define REMAP_END_MS 2000    /* so long a remap-daemon, whose mount may have just gone, may take to end */
#define REMAP_END_PAUSE_MS 10

void mount_record_removed_id(const struct mount_record *record, char *ret_id)
{
        (void)snprintf(ret_id, MOUNT_RECORD_ID_MAX, "raw-%016llx", (unsigned long long)record->raw_device);
}

/* What is left of a mount that is in its container no more: a record with an id of its own, unless there is one. */
static int write_left(const struct state *state, const struct mount_record *record, const char *id,
                      const struct mount_identity *identity, struct error *error)
{
        static struct mount_record left;
        char keys[USE_KEYS_SIZE];
        char name[NAME_MAX + 1];
        struct error ignored;
        int tries = TRIES;
        int r;

        if (mount_record_read(state, id, &left, &ignored) == 0)
                return 0;
        left = *record;
        (void)text_copy(left.id, sizeof left.id, id);
        left.removed = true;
        left.made = 0;
        left.identity = *identity;
        left.replaces = (struct mount_identity){};
        left.replaces_uses[0] = '\0';
        left.replaces_raw = 0;
        left.replaces_raw_source = 0;
        /* its lock is not held: another call may take the temporary file for what a killed one left */
        do
                r = mount_record_write(state, &left, error);
        while (r == -ENOENT && --tries > 0);
        if (r < 0)
                return r;
        /* likewise, what a repair of the index dropped meanwhile, because there was no record yet */
        (void)snprintf(name, sizeof name, "%s" RECORD_SUFFIX, id);
        mount_record_keys(&left, keys);
        return use_index_add(state, keys, USE_HOLDER_MOUNT, name, error);
}

int mount_record_write_removed(const struct state *state, const struct mount_record *record, struct error *error)
{
        char id[MOUNT_RECORD_ID_MAX];

        mount_record_removed_id(record, id);
        return write_left(state, record, id, &(const struct mount_identity){}, error);
}

bool mount_record_is_former(const struct mount_record *record)
{
        return record->removed && record->raw_device == 0 && record->volume[0] != '\0';
}

int mount_record_write_former(const struct state *state, const struct mount_record *record, struct error *error)
{
        uint64_t hash = hash_bytes(mount_record_guard_key(record), &record->identity.id, sizeof record->identity.id);
        char id[MOUNT_RECORD_ID_MAX];

        hash = hash_bytes(hash, &record->identity.device, sizeof record->identity.device); /* ids are used again */
        hash = hash_bytes(hash, record->volume, strlen(record->volume));
        if (record->volume[0] == '\0' || record->raw_device != 0 || record->removed)
                return 0;
        (void)snprintf(id, sizeof id, "former-%016llx", (unsigned long long)hash);
        return write_left(state, record, id, &record->identity, error);
}

void mount_record_former_files(const struct mount_record *record, enum open_files_of of, size_t most,
                               struct open_files *ret_files)
{
        open_files_find(&record->identity, &record->mnt_ns, of, most, clock_now_ms() + FORMER_FILES_MS, ret_files);
}

bool mount_record_former_stays(struct state *state, const struct mount_record *record)
{
        const int64_t until_ms = clock_now_ms() + REMAP_END_MS;
        bool lives = record->remap_key != 0;

        while (lives && (lives = mount_record_remap_lives(state, record->remap_key)) && clock_now_ms() < until_ms)
                clock_pause_ms(REMAP_END_PAUSE_MS);
        return lives;
}

bool mount_record_former_is_used(struct state *state, const struct mount_record *record)
{
        static struct open_files files;

        files = (struct open_files){};
        mount_record_former_files(record, OPEN_FILES_OF_NAMESPACE, /* most= */ 1, &files);
        return files.count > 0 || files.unsure || mount_record_former_stays(state, record);
}
