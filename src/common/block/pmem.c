/* SPDX-License-Identifier: Apache-2.0 */
#include "block/pmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "privileges/pmem.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "process/exec_helper.h"

#define RETRY_MS 50

static const char *const known[] = { "list", "create", "destroy", "lay-open", "tidy", NULL };
static const struct exec_json program = { .name = "pmem-namespaces", .own = true, .known = known };

static void run_orders(int fd)
{
        exec_json_serve(fd, &program);
}

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for pmem-namespaces", .privileges = &PRIVILEGES, .serve = run_orders
};

int pmem_begin(int argc, char **argv, struct error *error)
{
        (void)argc;
        (void)argv;
        return exec_helper_begin(&helper, error);
}

void pmem_end(void)
{
        exec_helper_end(&helper);
}

bool pmem_end_ordered(void)
{
        return exec_helper_end_ordered(&helper);
}

static uint64_t number_of(const json_t *object, const char *key)
{
        return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* ret_report owns ret_region. */
static int find(const char *name, json_t **ret_report, const json_t **ret_region, struct error *error)
{
        const bool by_identity = text_starts(name, "0x");
        const char *key = by_identity ? "identity" : "region";
        const json_t *region;
        size_t i;
        int r = exec_json_run(&helper, &program, (const char *const[]){ "list", NULL }, ret_report, error);

        if (r < 0)
                return r;
        json_array_foreach (json_object_get(*ret_report, "regions"), i, region)
                if (strcmp(json_member_text(region, key), name) == 0) {
                        *ret_region = region;
                        return 0;
                }
        return fail_because(error, ENODEV, OPERATION_FIND_REGION, name,
                            "there is no region of persistent memory with the %s %s", by_identity ? "iset_id" : "name",
                            name);
}

static int take_region(const json_t *found, const char *name, struct pmem_region *ret_region, struct error *error)
{
        const json_t *extent;
        size_t i;

        *ret_region = (struct pmem_region){ .has_labels = json_is_true(json_object_get(found, "labels")),
                                            .can_have_labels = json_is_true(json_object_get(found, "labelArea")),
                                            .size_bytes = number_of(found, "size"),
                                            .available_bytes = number_of(found, "available"),
                                            .largest_bytes = number_of(found, "largest"),
                                            .align_bytes = number_of(found, "align") };
        (void)text_copy(ret_region->identity, sizeof ret_region->identity,
                        json_member_text(found, "identity")); /* shorter */
        json_array_foreach (json_object_get(found, "extents"), i, extent)
                if (ret_region->extents_count < PMEM_EXTENTS_MAX)
                        ret_region->extents[ret_region->extents_count++] = (uint64_t)json_integer_value(extent);
        return ret_region->align_bytes > 0 ? 0 : fail(error, EPROTO, OPERATION_FIND_REGION, name);
}

int pmem_look(const char *region, struct pmem_region *ret_region, pmem_function *function, void *argument,
              struct error *error)
{
        cleanup_json json_t *report = NULL;
        const json_t *found = NULL;
        const json_t *item;
        size_t i;
        int r = find(region, &report, &found, error);

        if (r < 0 || (ret_region != NULL && (r = take_region(found, region, ret_region, error)) < 0) ||
            function == NULL)
                return r;
        json_array_foreach (json_object_get(found, "namespaces"), i, item) {
                struct pmem_namespace namespace = { .size_bytes = number_of(item, "size") };

                /* a name that is cut is not one of flexgraft's */
                (void)text_copy(namespace.device_name, sizeof namespace.device_name,
                                json_member_text(item, "namespace"));
                (void)text_copy(namespace.name, sizeof namespace.name, json_member_text(item, "name"));
                (void)text_copy(namespace.mode, sizeof namespace.mode, json_member_text(item, "mode"));
                (void)text_copy(namespace.uuid, sizeof namespace.uuid, json_member_text(item, "uuid"));
                (void)text_copy(namespace.device, sizeof namespace.device, json_member_text(item, "device"));
                if ((r = function(&namespace, argument, error)) != 0)
                        return r;
        }
        return 0;
}

struct search {
        const char *name;
        struct pmem_namespace *found;
        int count;
};

static int match(const struct pmem_namespace *namespace, void *argument, struct error *error)
{
        struct search *search = argument;

        (void)error;
        if (strcmp(namespace->name[0] != '\0' ? namespace->name : namespace->device_name, search->name) != 0)
                return 0;
        *search->found = *namespace;
        search->count++;
        return 0;
}

int pmem_find(const char *region, const char *name, struct pmem_namespace *ret_namespace, struct error *error)
{
        struct search search = { .name = name, .found = ret_namespace };
        int r = pmem_is_reserved(name) ? -ENOENT : pmem_look(region, /* ret_region= */ NULL, match, &search, error);

        if (r == 0 && search.count > 1)
                return fail_because(error, ENOTUNIQ, "find namespace", name, "there are %d namespaces \"%.64s\" in %s",
                                    search.count, name, region);
        return r < 0 ? r : search.count == 0 ? -ENOENT : 0;
}

int pmem_wait_for(const struct pmem_namespace *namespace, unsigned timeout_seconds, struct block_device *ret_device,
                  struct error *error)
{
        int64_t deadline_ms = clock_now_ms() + (int64_t)timeout_seconds * 1000;
        int r;

        while ((r = pmem_find_device(namespace, ret_device, error)) == -ENOENT || r == -ENXIO) {
                if (clock_now_ms() >= deadline_ms)
                        return fail_because(error, -r, OPERATION_FIND_DEVICE, namespace->device,
                                            "the device %s did not appear within %u seconds", namespace->device,
                                            timeout_seconds);
                clock_pause_ms(RETRY_MS);
        }
        return r;
}

bool pmem_is_reserved(const char *name)
{
        return strcmp(name, PMEM_DISK) == 0 || strcmp(name, PMEM_MAKING) == 0;
}

uint64_t pmem_usable_bytes(uint64_t size_bytes)
{
        const uint64_t huge = (uint64_t)2 << 20;
        const uint64_t reserved = 8192;
        uint64_t notes;

        if (size_bytes <= reserved)
                return 0;
        notes = ((size_bytes - reserved) / 4096 * 64) + reserved;
        notes = (notes + huge - 1) / huge * huge;
        return size_bytes > notes ? size_bytes / huge * huge - notes : 0;
}

int pmem_find_device(const struct pmem_namespace *namespace, struct block_device *ret_device, struct error *error)
{
        char path[128];
        char found[32];
        char expected[32];
        ssize_t n;
        int r;

        if (namespace->device[0] == '\0')
                return fail_because(error, ENODEV, OPERATION_FIND_DEVICE, namespace->device_name,
                                    "the namespace %s has no device; is it disabled?", namespace->device_name);
        if ((r = block_device_find(namespace->device, ret_device, error)) < 0)
                return r;
        (void)snprintf(path, sizeof path, "/sys/class/block/%s/dev", strrchr(namespace->device, '/') + 1);
        (void)snprintf(expected, sizeof expected, "%u:%u\n", major(ret_device->number), minor(ret_device->number));
        n = file_read(AT_FDCWD, path, found, sizeof found);
        if (n < 0 || strcmp(found, expected) != 0)
                return fail_because(error, ESTALE, OPERATION_FIND_DEVICE, namespace->device,
                                    "%s is not the device of namespace %s but %s", namespace->device,
                                    namespace->device_name, ret_device->path);
        return 0;
}

int pmem_create(const char *region, const char *name, uint64_t size_bytes, const char *mode, const char *uuid,
                struct error *error)
{
        char size[32];

        (void)snprintf(size, sizeof size, "%llu", (unsigned long long)size_bytes);
        return exec_json_run(&helper, &program, (const char *const[]){ "create", region, name, size, mode, uuid, NULL },
                             NULL, error);
}

int pmem_destroy(const char *device_name, struct error *error)
{
        return exec_json_run(&helper, &program, (const char *const[]){ "destroy", device_name, NULL }, NULL, error);
}

int pmem_lay_open(const char *device_name, struct error *error)
{
        return exec_json_run(&helper, &program, (const char *const[]){ "lay-open", device_name, NULL }, NULL, error);
}

int pmem_tidy(const char *region, struct error *error)
{
        return exec_json_run(&helper, &program, (const char *const[]){ "tidy", region, NULL }, NULL, error);
}
