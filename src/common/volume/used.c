/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/used.h"

#include <errno.h>
#include <string.h>

#include "provision/disk_uses.h"
#include "state/uses.h"

/* The image, not the device that it lies on. */
static void add_files(char *keys, const char *uses)
{
        char key[USE_KEY_SIZE];

        while (use_keys_next(&uses, key))
                if (use_key_is_file(key))
                        use_keys_add(keys, key);
}

int volume_used_keys(const struct volume_call *call, unsigned flags, char *ret_keys, struct error *error)
{
        const struct volume_record *record = &call->record;

        ret_keys[0] = '\0';
        add_files(ret_keys, record->uses);
        use_keys_add_device(ret_keys, record->filesystem);
        return record->device_number == 0 ? 0 : disk_uses_add_device(ret_keys, record->device_number, flags, error);
}

int volume_check_unused(const struct volume_call *call, const char *operation, struct error *error)
{
        const struct uses_except except = { .volume = call->record.name,
                                            .driver = call->record.driver,
                                            .attached = true,
                                            .mounted = true,
                                            .mount = call->leaving };
        char keys[USE_KEYS_SIZE];
        const char *subject = call->record.device[0] != '\0' ? call->record.device : call->record.name;
        int r = volume_used_keys(call, 0, keys, error);

        if (r < 0 ||
            (r = uses_check_none(call->config.state_dir, keys, &except, operation, subject, error)) != -EBUSY ||
            (r = uses_release_ended(call->config.state_dir, keys, /* locked_id= */ NULL, error)) < 0)
                return r;
        return uses_check_none(call->config.state_dir, keys, &except, operation, subject, error);
}

/* Other volumes that read a device do not keep it from this one's end: else none of them could be detached. */
static int find_else(const struct use *use, void *argument, struct error *error)
{
        const struct volume_call *call = argument;

        (void)error;
        if (use->volume == NULL)
                return 1;
        return use->writes && (strcmp(use->volume->name, call->record.name) != 0 ||
                               strcmp(use->volume->driver, call->record.driver) != 0);
}

int volume_check_detachable(struct volume_call *call, bool *ret_shared, struct error *error)
{
        char keys[USE_KEYS_SIZE];
        struct error ignored;
        int r = volume_check_unused(call, "detach", error);

        *ret_shared = r == -EBUSY && volume_used_keys(call, 0, keys, &ignored) == 0 &&
                      uses_each(call->config.state_dir, keys, find_else, call, &ignored) == 0;
        return *ret_shared ? 0 : r;
}

/* Into argument, its text. */
static int find_raw(const struct use *use, void *argument, struct error *error)
{
        (void)error;
        if ((use->kind != USE_RAW && use->kind != USE_UNREADABLE) || !use->writes)
                return 0;
        uses_describe(use, argument);
        return 1;
}

static int find_writer(const struct use *use, void *argument, struct error *error)
{
        if (use->kind != USE_PUBLISHED || !use->raw || !use->writes)
                return find_raw(use, argument, error);
        uses_describe(use, argument);
        return 1;
}

static int check_none(const struct volume_call *call, uses_function *function, const char *operation, const char *what,
                      struct error *error)
{
        char keys[USE_KEYS_SIZE];
        char text[USES_TEXT_SIZE];
        int r = volume_used_keys(call, BLOCK_STACK_BELOW, keys, error);

        if (r < 0 ||
            (r = uses_each_released(call->config.state_dir, keys, /* locked_id= */ NULL, function, text, error)) <= 0)
                return r;
        return fail_because(error, EBUSY, operation, call->request->name, "in use by %s; end that %s first", text,
                            what);
}

int volume_check_no_raw(const struct volume_call *call, const char *operation, struct error *error)
{
        return check_none(call, find_raw, operation, "container", error);
}

int volume_check_no_writer(const struct volume_call *call, const char *operation, struct error *error)
{
        return check_none(call, find_writer, operation, "pod or container", error);
}
