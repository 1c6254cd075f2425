/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/known_kind.h"

#include "pool/record.h"
#include "volume/kinds.h"

/* What volume-create made under this name. */
static const struct volume_kind *kind_of_provisioned(const char *state_dir, const char *name)
{
        cleanup_provision_record struct provision_record made = {};
        const struct volume_kind *kind;
        struct error ignored; /* provisioned_apply() meets it again */

        if (provision_record_find(state_dir, name, &made, &ignored) < 0)
                return NULL;
        kind = volume_kind_find(made.pool_type);
        return kind != NULL && kind->pool_types != NULL ? kind : NULL;
}

const struct volume_kind *volume_kind_known(const char *state_dir, const char *of_record,
                                            const struct volume_kind *of_driver, const char *name)
{
        const struct volume_kind *kind = of_record != NULL ? volume_kind_find(of_record) : NULL;

        return kind != NULL ? kind : of_driver != NULL ? of_driver : kind_of_provisioned(state_dir, name);
}
