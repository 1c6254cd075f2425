/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - mount: a staged volume, or one that needs no staging, onto a pod's directory.
 *
 * unmount is volume_take_off().
 */
#ifndef FLEXGRAFT_VOLUME_PUBLISH_H
#define FLEXGRAFT_VOLUME_PUBLISH_H

#include "volume/call.h"

/* volume_publish() - with this pod's attributes, nosuid and nodev among them; read-only for this pod alone. */
int volume_publish(struct volume_call *call, struct error *error);

/* volume_publish_attached() - the same, of a call that is open, with its kind. */
int volume_publish_attached(struct volume_call *call, struct error *error);

#endif
