/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/provisioned.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "volume/kinds.h"

/* Where the request names a pool, it must be the record's, and the disk there be named after the volume. */
static bool is_meant(const struct provision_record *record, const char *pool)
{
        size_t length = strlen(record->name);

        return pool == NULL || (strcmp(record->pool, pool) == 0 && strncmp(record->id, record->name, length) == 0 &&
                                (record->id[length] == '\0' || strcmp(record->id + length, ".img") == 0));
}

int provisioned_find(const struct volume_call *call, const struct volume_kind *kind,
                     struct provision_record *ret_record, struct error *error)
{
        const char *name = call->request->name;
        const char *pool = NULL;
        int r = provision_record_find(call->config.state_dir, name, ret_record, error);

        if (r < 0 || (r = volume_request_option(call->request, "pool", &pool, error)) < 0)
                return r;
        if (!is_meant(ret_record, pool))
                return -ENOENT;
        if (!text_among(ret_record->pool_type, kind->pool_types))
                return -ENOENT;
        if (ret_record->stage == PROVISION_CREATING)
                return fail_because(error, EBUSY, "find volume", name,
                                    "the volume is half made; run the same volume-create again to finish it");
        if (ret_record->stage == PROVISION_DELETING)
                return fail_because(error, EBUSY, "find volume", name,
                                    "the volume is half deleted; run volume-delete again to finish it");
        return 0;
}

static int keep_flags(struct volume_request *request, const json_t *flags, struct error *error)
{
        struct mount_options options = {};
        const char *own;
        const json_t *flag;
        size_t i;
        int r = volume_request_option(request, "mountOptions", &own, error);

        json_array_foreach (flags, i, flag)
                if (r == 0)
                        r = mount_options_add_list(&options, json_string_value(flag), error);
        if (r == 0 && own != NULL)
                r = mount_options_add_list(&options, own, error);
        if (r < 0) {
                mount_options_release(&options);
                return r;
        }
        mount_options_default(&options);
        mount_options_release(&request->mount_options);
        request->mount_options = options;
        request->read_only = request->read_only || options.read_only;
        return 0;
}

int provisioned_keep(struct volume_request *request, const struct provision_record *record, struct error *error)
{
        json_t *usage = json_object_get(record->parameters, "usage");

        if (strcmp(record->target_type, "block") == 0)
                return fail_because(error, EINVAL, "mount", request->name,
                                    "the volume was made as a block device (targetType block) and cannot be mounted");
        if (record->fs_type[0] != '\0' && request->fs_type[0] != '\0' && strcmp(record->fs_type, request->fs_type) != 0)
                return fail_because(error, EINVAL, "mount", request->name, "the volume was made for fsType %s, not %s",
                                    record->fs_type, request->fs_type);
        if (request->fs_type[0] == '\0')
                (void)text_copy(request->fs_type, sizeof request->fs_type, record->fs_type); /* as long at most */
        if (usage != NULL && json_object_get(request->options, "usage") == NULL)
                (void)json_object_set(request->options, "usage", usage);
        return json_array_size(record->mount_flags) > 0 ? keep_flags(request, record->mount_flags, error) : 0;
}

bool provisioned_is_by_name(const struct volume_call *call)
{
        const char *key;
        const json_t *value;

        json_object_foreach (call->request->options, key, value) {
                const struct volume_option *option = volume_option_find(key);

                if (option != NULL && option->locates)
                        return false;
        }
        return call->kind->pool_types != NULL;
}

int provisioned_apply(struct volume_call *call, struct error *error)
{
        cleanup_provision_record struct provision_record record = {};
        int r;

        if (!provisioned_is_by_name(call))
                return 0;
        r = provisioned_find(call, call->kind, &record, error);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return provisioned_keep(call->request, &record, error);
}
