/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named_container.h - a container as a request names it, pinned: looked up in the state directories that the
 * configuration adds, too.
 */
#ifndef FLEXGRAFT_STATE_NAMED_CONTAINER_H
#define FLEXGRAFT_STATE_NAMED_CONTAINER_H

#include "base/error.h"
#include "container/container.h"

/* named_container_pin() - container_pin(). Errors: also those of config_load(). */
int named_container_pin(const struct container_reference *reference, struct container *ret_container,
                        struct error *error);

#endif
