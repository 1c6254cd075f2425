/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_devices.h - volumes as devices of container engines (provision/cdi.h), for mount-hook.
 */
#ifndef FLEXGRAFT_NAMED_HOOK_DEVICES_H
#define FLEXGRAFT_NAMED_HOOK_DEVICES_H

#include <jansson.h>

#include "base/error.h"
#include "base/people.h"
#include "base/schema.h"
#include "inject/oci_hook.h"

/*
 * hook_devices_take() - "--volume NAME --target PATH", and perhaps "--raw", behind the event: takes them out of the
 * arguments. Returns 1 there was a volume, 0 there was none, -EINVAL there is something else.
 */
int hook_devices_take(int *argc, char **argv, struct oci_hook_volume *ret_volume);

/*
 * hook_devices_write() - the files for engines. Gives: ret_reply, owned by the caller, of hook_devices_replies.
 * Errors: those of cdi_write().
 */
extern const struct schema_form hook_devices_replies[];
extern const struct people_form hook_devices_people[];
int hook_devices_write(json_t **ret_reply, struct error *error);

#endif
