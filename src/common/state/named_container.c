/* SPDX-License-Identifier: Apache-2.0 */
#include "state/named_container.h"

#include "state/config.h"

int named_container_pin(const struct container_reference *reference, struct container *ret_container,
                        struct error *error)
{
        struct container_reference named = *reference;
        int r = 0;

        if (container_reference_is_named(reference))
                r = config_runtimes(&named.directories, error);
        return r < 0 ? r : container_pin(&named, ret_container, error);
}
