/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/image_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/text.h"
#include "pool/pool.h"
#include "pool/pool_count.h"
#include "pool/record.h"

int image_policy_check(const struct volume_call *call, const struct loop_image *image, struct error *error)
{
        cleanup_provision_record struct provision_record made = {};
        const char *name;
        const char *pool;
        uint64_t size_bytes;
        struct error ignored;
        struct stat st;
        int r;

        if ((r = volume_request_option(call->request, "image", &name, error)) < 0 ||
            (r = volume_request_option(call->request, "pool", &pool, error)) < 0 ||
            (r = volume_request_size(call->request, "size", &size_bytes, error)) < 0)
                return r;
        if (name == NULL || (call->recorded && strcmp(call->record.source, image->path) == 0) ||
            pool_image_is_of(name, call->request->name) ||
            (provision_record_find(call->config.state_dir, call->request->name, &made, &ignored) == 0 &&
             strcmp(made.id, name) == 0 && (pool == NULL || strcmp(made.pool, pool) == 0)))
                return 0;
        r = fstatat(image->pool_fd, image->name, &st, AT_SYMLINK_NOFOLLOW);
        if (r < 0 ? errno == ENOENT : size_bytes > 0 && S_ISREG(st.st_mode) && st.st_size == 0)
                return 0;
        return policy_check_image(&call->policy, pool != NULL ? pool : POOL_DEFAULT, name, error);
}
