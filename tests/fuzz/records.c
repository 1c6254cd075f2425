/* SPDX-License-Identifier: Apache-2.0 */
/* A record of a mount, of a volume or of a volume from a pool: torn, foreign, or from another version. What is read is written and
 * read again. What is read at once (state/record_flat.h), a parser of JSON reads to the same bytes. */
#include "fuzz.h"

#include "pool/record.h"
#include "state/mount_record.h"
#include "state/record_flat.h"
#include "state/volume_record.h"

static struct state mounts = STATE_NONE;
static struct state volumes = STATE_NONE;
static struct state provisioned = STATE_NONE;

static void open_all(void)
{
        struct error error;

        (void)setenv("FLEXGRAFT_CONFIG", "/nonexistent", 1);
        fuzz_check(state_open(fuzz_directory(), "mounts", true, &mounts, &error) == 0);
        fuzz_check(state_open(fuzz_directory(), "volumes", true, &volumes, &error) == 0);
        fuzz_check(provision_record_open(fuzz_directory(), true, &provisioned, &error) == 0);
}

/* A blank before it, and it is not read at once. */
static void check_flat(const uint8_t *data, size_t size)
{
        static struct mount_record flat;
        static struct mount_record parsed;
        char *text = calloc(1, size + 2);
        struct error error = {};

        fuzz_check(text != NULL);
        (void)memcpy(text + 1, data, size);
        (void)memset(&flat, 0, sizeof flat);
        if (record_flat_read(&mount_record_table, text + 1, size, &flat) && mount_record_table.is_sound(&flat)) {
                text[0] = ' ';
                (void)fuzz_file("mounts/flat.json", (uint8_t *)text, size + 1);
                fuzz_check(record_read(&mounts, &mount_record_table, "flat.json", &parsed, &error) == 0);
                fuzz_check(memcmp(&flat, &parsed, sizeof flat) == 0);
        }
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct mount_record mount;
        static struct mount_record again;
        static struct volume_record volume;
        static struct provision_record record;
        struct error error = {};

        if (mounts.dir_fd < 0)
                open_all();
        if (size == 0)
                return 0;
        switch (data[0] % 3) {
        case 0:
                check_flat(data + 1, size - 1);
                (void)fuzz_file("mounts/x.json", data + 1, size - 1);
                if (mount_record_read(&mounts, "x", &mount, &error) == 0) {
                        fuzz_check(mount_record_write(&mounts, &mount, &error) == 0);
                        fuzz_check(mount_record_read(&mounts, mount.id, &again, &error) == 0);
                        fuzz_check(strcmp(mount.source, again.source) == 0 && mount.digest == again.digest);
                        (void)mount_record_remove(&mounts, mount.id, &error);
                }
                break;
        case 1:
                (void)fuzz_file("volumes/x.json", data + 1, size - 1);
                (void)volume_record_read(&volumes, "x", "", &volume, &error);
                volume_record_release(&volume);
                break;
        default:
                (void)fuzz_file("provisioned/x.json", data + 1, size - 1);
                (void)provision_record_read(&provisioned, "x", &record, &error);
                provision_record_release(&record);
        }
        return 0;
}
