/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/kind_ephemeral.h"

#include <errno.h>

static int make(struct volume_call *call, struct error *error)
{
        return call->ephemeral != NULL ? call->ephemeral->make(call, error)
                                       : fail(error, ENOSYS, "make volume", call->request->name);
}

const struct volume_kind kind_ephemeral = { .word = "ephemeral", .make = make };
