/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/stat.h>

#include "pool/record.h"
#include "state/mount_record.h"
#include "state/record_flat.h"
#include "state/volume_record.h"

static const char *dir;
static struct state mounts = STATE_NONE;
static struct state volumes = STATE_NONE;
static struct state provisioned = STATE_NONE;

static int begin(void **state)
{
        struct error error;

        (void)state;
        dir = unit_directory();
        (void)setenv("FLEXGRAFT_CONFIG", "/nonexistent", 1);
        return state_open(dir, "mounts", true, &mounts, &error) < 0 ||
                               state_open(dir, "volumes", true, &volumes, &error) < 0 ||
                               provision_record_open(dir, true, &provisioned, &error) < 0
                       ? -1
                       : 0;
}

static int end(void **state)
{
        (void)state;
        state_release(&mounts);
        state_release(&volumes);
        state_release(&provisioned);
        return unit_remove(dir);
}

static void put(const char *file, const char *text)
{
        char path[128];

        (void)snprintf(path, sizeof path, "%s/%s", dir, file);
        unit_write(path, text);
}

static bool is_there(const char *file)
{
        char path[128];

        (void)snprintf(path, sizeof path, "%s/%s", dir, file);
        return access(path, F_OK) == 0;
}

static void a_mount_record_is_read_as_it_was_written(void **state)
{
        static struct mount_record written;
        static struct mount_record read;
        struct error error;

        (void)state;
        written = (struct mount_record){ .id = "data-1",
                                         .type = "ext4",
                                         .source = "/dev/vdb",
                                         .origin = "/dev/vdb",
                                         .target = "/data",
                                         .mount_point = "/srv/data",
                                         .options = "rw,nosuid",
                                         .id_mapping = "idmapped",
                                         .made = 2,
                                         .recursive = true,
                                         .below = 3,
                                         .digest = UINT64_MAX,
                                         .pid = 4711,
                                         .container_id = "web",
                                         .raw_device = 1793,
                                         .raw_writes = true,
                                         .start_time = 123456,
                                         .boot_id = "01234567-89ab-cdef-0123-456789abcdef" };
        written.mnt_ns.inode = 4026531840U;
        written.mnt_ns.id = 99;
        written.identity.device = 2049;
        assert_int_equal(mount_record_write(&mounts, &written, &error), 0);
        assert_int_equal(mount_record_read(&mounts, "data-1", &read, &error), 0);
        assert_string_equal(read.source, written.source);
        assert_string_equal(read.mount_point, written.mount_point);
        assert_string_equal(read.id_mapping, written.id_mapping);
        assert_string_equal(read.container_id, written.container_id);
        assert_string_equal(read.boot_id, written.boot_id);
        assert_true(read.digest == UINT64_MAX);
        assert_true(read.recursive && read.raw_writes);
        assert_int_equal(read.made, 2);
        assert_int_equal(read.below, 3);
        assert_int_equal(read.pid, 4711);
        assert_true(read.raw_device == 1793 && read.start_time == 123456);
        assert_true(read.mnt_ns.inode == 4026531840U && read.mnt_ns.id == 99);
        assert_true(read.identity.device == 2049);
        assert_int_equal(mount_record_remove(&mounts, "data-1", &error), 0);
        assert_int_equal(mount_record_read(&mounts, "data-1", &read, &error), -ENOENT);
}

/* What begin_text() wrote of a record. */
static char text[4096];

static void begin_text(void)
{
        static struct mount_record written;
        char path[128];
        struct error error;
        FILE *file;

        written = (struct mount_record){ .id = "flat",
                                         .type = "ext4",
                                         .source = "/dev/vdb",
                                         .origin = "/dev/vdb",
                                         .target = "/data",
                                         .mount_point = "/srv/data",
                                         .options = "rw",
                                         .id_mapping = "idmapped",
                                         .made = 1,
                                         .below = UINT32_MAX,
                                         .digest = UINT64_MAX,
                                         .recursive = true,
                                         .pid = 4711,
                                         .remap_key = 7,
                                         .boot_id = "b" };
        assert_int_equal(mount_record_write(&mounts, &written, &error), 0);
        (void)snprintf(path, sizeof path, "%s/mounts/flat.json", dir);
        file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        assert_int_equal(fclose(file), 0);
}

/* The text with one part of it replaced; valid until the next call. */
static const char *with(const char *part, const char *other)
{
        static char changed[2 * sizeof text];
        const char *found = strstr(text, part);

        assert_non_null(found);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(found - text), text, other, found + strlen(part));
        return changed;
}

static bool is_flat(const char *content, struct mount_record *ret_record)
{
        (void)memset(ret_record, 0, sizeof *ret_record);
        return record_flat_read(&mount_record_table, content, strlen(content), ret_record);
}

static int read_file(const char *content, struct mount_record *ret_record)
{
        struct error error;

        put("mounts/flat.json", content);
        return record_read(&mounts, &mount_record_table, "flat.json", ret_record, &error);
}

static void a_record_is_read_at_once_and_by_a_parser_of_json_to_the_same_bytes(void **state)
{
        /* a blank, and a key that no row has: only a parser of JSON reads these */
        static const char *const others[] = { "{ \"version\":1", "{\"later\":[{}],\"version\":1",
                                              "{\"version\":1,\"later\":\"x\"" };
        static struct mount_record flat;
        static struct mount_record parsed;

        (void)state;
        begin_text();
        assert_true(is_flat(text, &flat));
        assert_int_equal(read_file(text, &parsed), 0);
        assert_memory_equal(&flat, &parsed, sizeof flat);
        assert_true(flat.digest == UINT64_MAX && flat.below == UINT32_MAX && flat.recursive && flat.remap_key == 7);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                const char *other = with("{\"version\":1", others[i]);

                assert_false(is_flat(other, &flat));
                assert_int_equal(read_file(other, &parsed), 0);
                assert_true(is_flat(text, &flat));
                assert_memory_equal(&flat, &parsed, sizeof flat);
        }
        assert_false(is_flat(with("/data", "/d\\u00e9"), &flat));
        assert_int_equal(read_file(with("/data", "/d\\u00e9"), &parsed), 0);
        assert_string_equal(parsed.target, "/d\xc3\xa9");
}

static void a_record_that_a_parser_of_json_refuses_is_not_read_at_once(void **state)
{
        static const struct {
                const char *part;
                const char *other;
        } damage[] = {
                { "\"pid\":4711", "\"pid\":04711" },
                { "\"pid\":4711", "\"pid\":4711.5" },
                { "\"pid\":4711", "\"pid\":4294967296" },
                { "\"pid\":4711", "\"pid\":-4711" },
                { "\"pid\":4711", "\"pid\":\"4711\"" },
                { "\"pid\":4711", "\"pid\":" },
                { "\"pid\":4711", "\"pid\":4711,\"pid\":1" },
                { "\"pid\":4711,", "" },
                { "\"digest\":-1", "\"digest\":99999999999999999999" },
                { "\"recursive\":true", "\"recursive\":truefalse" },
                { "\"recursive\":true", "\"recursive\":1" },
                { "\"idMapping\":\"idmapped\"", "\"idMapping\":\"0123456789abcdef\"" },
                { "\"type\":\"ext4\"", "\"type\":\"ext\n4\"" },
                { "\"bootId\":\"b\"}", "\"bootId\":\"b\"" },
                { "\"bootId\":\"b\"}", "\"bootId\":\"b\"}}" },
                { "\"bootId\":\"b\"}", "\"bootId\":\"b\"},\"x\":1}" },
                { "\"bootId\":\"b\"}", "\"bootId\":\"b" },
        };
        static struct mount_record record;

        (void)state;
        begin_text();
        for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
                const char *damaged = with(damage[i].part, damage[i].other);

                assert_false(is_flat(damaged, &record));
                assert_int_equal(read_file(damaged, &record), -EBADMSG);
        }
}

static void a_record_is_written_at_once_as_a_tree_of_json_would_be(void **state)
{
        static struct mount_record record;
        static char once[sizeof text];
        static const char *const others[] = { "/d\xc3\xa9", "/a\"b", "/a\\b", "/a\nb", "/a\x7f" };
        struct error error;
        json_t *tree;
        char *dumped;
        size_t length;

        (void)state;
        begin_text();
        assert_true(is_flat(text, &record));
        length = record_flat_write(&mount_record_table, &record, once, sizeof once);
        assert_int_equal(length, strlen(text));
        assert_memory_equal(once, text, length);
        assert_int_equal(record_flat_write(&mount_record_table, &record, once, length), length);
        assert_int_equal(record_flat_write(&mount_record_table, &record, once, length - 1), 0);
        tree = json_loads(text, 0, NULL);
        dumped = json_dumps(tree, JSON_COMPACT);
        assert_string_equal(dumped, text);
        free(dumped);
        json_decref(tree);
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                (void)snprintf(record.target, sizeof record.target, "%s", others[i]);
                assert_int_equal(record_flat_write(&mount_record_table, &record, once, sizeof once), 0);
                assert_int_equal(mount_record_write(&mounts, &record, &error), 0);
                assert_int_equal(mount_record_read(&mounts, "flat", &record, &error), 0);
                assert_string_equal(record.target, others[i]);
        }
        assert_int_equal(mount_record_remove(&mounts, "flat", &error), 0);
}

static void a_packed_record_is_unpacked_to_the_same_bytes_and_is_small(void **state)
{
        static struct mount_record record;
        static struct mount_record unpacked;
        static char packed[sizeof record];

        (void)state;
        begin_text();
        assert_true(is_flat(text, &record));
        assert_true(record_flat_pack(&mount_record_table, &record, packed) < 1000);
        (void)memset(&unpacked, 0, sizeof unpacked);
        record_flat_unpack(&mount_record_table, packed, &unpacked);
        assert_memory_equal(&record, &unpacked, sizeof record);
        assert_string_equal(record_flat_text(&mount_record_table, packed, "mountPoint"), "/srv/data");
}

static void a_torn_mount_record_is_set_aside(void **state)
{
        static const char *const torn[] = { "", "{\"version\": 1", "[]", "{}", "{\"version\": 1, \"id\": 7}" };
        static struct mount_record read;
        struct error error;

        (void)state;
        for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
                put("mounts/torn.json", torn[i]);
                assert_int_equal(mount_record_read(&mounts, "torn", &read, &error), -EBADMSG);
                assert_false(is_there("mounts/torn.json"));
                assert_true(is_there("mounts/torn.json.bad"));
        }
}

static void a_record_of_another_version_is_left_alone(void **state)
{
        static struct mount_record read;
        static struct volume_record volume;
        struct error error;

        (void)state;
        put("mounts/newer.json", "{\"version\": 9999, \"id\": \"newer\"}");
        assert_int_equal(mount_record_read(&mounts, "newer", &read, &error), -EPROTONOSUPPORT);
        assert_true(is_there("mounts/newer.json"));
        put("volumes/newer.json", "{\"version\": 9999, \"name\": \"newer\"}");
        assert_int_equal(volume_record_read(&volumes, "newer", "", &volume, &error), -EPROTONOSUPPORT);
        assert_true(is_there("volumes/newer.json"));
        volume_record_release(&volume);
}

static void a_derived_id_depends_on_container_and_target(void **state)
{
        const struct namespace_identity one = { .inode = 1, .id = 2 };
        const struct namespace_identity other = { .inode = 1, .id = 3 };
        char id[MOUNT_RECORD_ID_MAX];
        char again[MOUNT_RECORD_ID_MAX];
        char elsewhere[MOUNT_RECORD_ID_MAX];

        (void)state;
        mount_record_default_id(&one, "/srv/data", id);
        mount_record_default_id(&one, "/srv/data", again);
        mount_record_default_id(&other, "/srv/data", elsewhere);
        assert_string_equal(id, again);
        assert_string_not_equal(id, elsewhere);
        assert_true(mount_record_id_derived(id));
        assert_false(mount_record_id_derived("data"));
}

static void a_volume_record_keeps_its_directories(void **state)
{
        static struct volume_record written = {
                .name = "pvc-1", .driver = "flexgraft~loop", .kind = "loop", .boot_id = "b"
        };
        cleanup_volume_record struct volume_record read;
        const struct mount_identity identity = { .device = 7 };
        struct error error;

        (void)state;
        (void)strcpy(written.source, "/srv/pools/pvc-1.img");
        (void)strcpy(written.device, "/dev/loop3");
        written.device_number = 1795;
        assert_int_equal(volume_record_remember(&written, "/staged", true, 1, &identity, &error), 0);
        assert_int_equal(volume_record_remember(&written, "/pod/a", false, 0, &identity, &error), 0);
        assert_int_equal(volume_record_remember(&written, "/pod/b", false, 0, &identity, &error), 0);
        volume_record_forget(&written, "/pod/a");
        assert_int_equal(volume_record_write(&volumes, &written, FILE_DURABLE, &error), 0);
        assert_int_equal(volume_record_read(&volumes, "pvc-1", "flexgraft~loop", &read, &error), 0);
        assert_string_equal(read.device, "/dev/loop3");
        assert_true(read.device_number == 1795);
        assert_string_equal(read.staged.dir, "/staged");
        assert_int_equal(read.staged.made, 1);
        assert_int_equal(read.published_count, 1);
        assert_string_equal(read.published[0].dir, "/pod/b");
        assert_null(volume_record_mount_dir(&read, "/pod/a"));
        assert_non_null(volume_record_mount_dir(&read, "/pod/b"));
        volume_record_release(&written);
}

static void drivers_with_volumes_of_one_name_have_a_record_each(void **state)
{
        static struct volume_record one = { .name = "same", .driver = "a~loop", .kind = "loop", .boot_id = "b" };
        static struct volume_record other = { .name = "same", .driver = "b~tmpfs", .kind = "tmpfs", .boot_id = "b" };
        cleanup_volume_record struct volume_record read_one;
        cleanup_volume_record struct volume_record read_other;
        cleanup_volume_record struct volume_record read_third;
        struct error error;

        (void)state;
        assert_int_equal(volume_record_write(&volumes, &one, FILE_DURABLE, &error), 0);
        assert_int_equal(volume_record_read(&volumes, "same", "b~tmpfs", &read_third, &error), -ENOENT);
        assert_int_equal(volume_record_write(&volumes, &other, FILE_DURABLE, &error), 0);
        assert_int_equal(volume_record_read(&volumes, "same", "a~loop", &read_one, &error), 0);
        assert_string_equal(read_one.kind, "loop");
        assert_int_equal(volume_record_read(&volumes, "same", "b~tmpfs", &read_other, &error), 0);
        assert_string_equal(read_other.kind, "tmpfs");
        volume_record_release(&one);
        volume_record_release(&other);
}

static void a_volume_named_like_a_path_gets_a_file_inside_the_directory(void **state)
{
        static struct volume_record hostile = {
                .name = "../../etc/passwd", .driver = "a~loop", .kind = "loop", .boot_id = "b"
        };
        cleanup_volume_record struct volume_record read;
        struct error error;

        (void)state;
        assert_int_equal(volume_record_write(&volumes, &hostile, FILE_DURABLE, &error), 0);
        assert_null(strchr(hostile.file, '/'));
        assert_int_equal(volume_record_read(&volumes, "../../etc/passwd", "a~loop", &read, &error), 0);
        assert_string_equal(read.name, "../../etc/passwd");
        volume_record_release(&hostile);
}

static void a_provision_record_keeps_parameters_and_stage(void **state)
{
        static struct provision_record written = { .name = "db",
                                                   .pool = "fast",
                                                   .pool_type = "loop",
                                                   .target_type = "mount",
                                                   .id = "db",
                                                   .namespace = "team" };
        struct provision_record read = {};
        struct error error;

        (void)state;
        written.size_bytes = 1ULL << 40;
        written.lifecycle = PROVISION_DELETING;
        written.parameters = json_pack("{s:s}", "preallocate", "true");
        written.mount_flags = json_pack("[s]", "noatime");
        assert_int_equal(provision_record_write(&provisioned, &written, FILE_DURABLE, &error), 0);
        assert_int_equal(provision_record_read(&provisioned, "db", &read, &error), 0);
        assert_true(read.size_bytes == 1ULL << 40);
        assert_int_equal(read.lifecycle, PROVISION_DELETING);
        assert_string_equal(json_string_value(json_object_get(read.parameters, "preallocate")), "true");
        assert_string_equal(json_string_value(json_array_get(read.mount_flags, 0)), "noatime");
        assert_string_equal(read.namespace, "team");
        provision_record_release(&read);
        provision_record_release(&written);
}

static void a_state_directory_that_others_may_write_to_is_refused(void **state)
{
        cleanup_state struct state other = STATE_NONE;
        char path[128];
        struct error error;

        (void)state;
        (void)snprintf(path, sizeof path, "%s/open", dir);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chmod(path, 0777), 0);
        assert_int_equal(state_open(path, "mounts", true, &other, &error), -EPERM);
        assert_int_equal(chmod(path, 0755), 0);
        assert_int_equal(state_open(path, "mounts", true, &other, &error), 0);
}

static void a_lock_is_one_key_and_ends_with_its_holder(void **state)
{
        struct state one = STATE_NONE;
        cleanup_state struct state other = STATE_NONE;
        struct error error;

        (void)state;
        assert_int_equal(state_open(dir, "mounts", true, &one, &error), 0);
        assert_int_equal(state_open(dir, "mounts", true, &other, &error), 0);
        assert_int_equal(state_lock(&one, 16, &error), 0);
        assert_false(state_try_lock(&other, 16));
        assert_true(state_try_lock(&other, 32));
        assert_false(state_is_free(&other, 16));
        assert_false(mount_record_remap_lives(&one, 48));
        state_release(&one);
        assert_true(state_try_lock(&other, 16));
}

static void a_record_of_more_uses_than_fit_is_refused(void **state)
{
        static struct mount_record record;
        struct mount_record read;
        struct error error;

        (void)state;
        record = (struct mount_record){ .pid = 1, .boot_id = "boot" };
        (void)snprintf(record.id, sizeof record.id, "many");
        (void)snprintf(record.target, sizeof record.target, "/t");
        (void)snprintf(record.mount_point, sizeof record.mount_point, "/t");
        for (uint64_t i = 1; i <= 1000; i++)
                use_keys_add_file(record.uses, UINT64_MAX, i);
        assert_int_equal(mount_record_write(&mounts, &record, &error), -E2BIG);
        assert_int_equal(mount_record_read(&mounts, "many", &read, &error), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_mount_record_is_read_as_it_was_written),
                cmocka_unit_test(a_record_is_read_at_once_and_by_a_parser_of_json_to_the_same_bytes),
                cmocka_unit_test(a_record_that_a_parser_of_json_refuses_is_not_read_at_once),
                cmocka_unit_test(a_record_is_written_at_once_as_a_tree_of_json_would_be),
                cmocka_unit_test(a_packed_record_is_unpacked_to_the_same_bytes_and_is_small),
                cmocka_unit_test(a_torn_mount_record_is_set_aside),
                cmocka_unit_test(a_record_of_another_version_is_left_alone),
                cmocka_unit_test(a_derived_id_depends_on_container_and_target),
                cmocka_unit_test(a_record_of_more_uses_than_fit_is_refused),
                cmocka_unit_test(a_volume_record_keeps_its_directories),
                cmocka_unit_test(drivers_with_volumes_of_one_name_have_a_record_each),
                cmocka_unit_test(a_volume_named_like_a_path_gets_a_file_inside_the_directory),
                cmocka_unit_test(a_provision_record_keeps_parameters_and_stage),
                cmocka_unit_test(a_state_directory_that_others_may_write_to_is_refused),
                cmocka_unit_test(a_lock_is_one_key_and_ends_with_its_holder),
        };

        return cmocka_run_group_tests_name("records", tests, begin, end);
}
