/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - mount: a staged volume, or one that needs no staging, onto a pod's directory.
 *
 * unmount is volume_unpublish() (volume/unpublish.h).
 */
#ifndef FLEXGRAFT_VOLUME_PUBLISH_H
#define FLEXGRAFT_VOLUME_PUBLISH_H

#include "volume/call.h"

/* volume_publish() - with this pod's mount attributes, as nosuid and nodev; read-only is for this pod alone, too. */
int volume_publish(struct volume_call *call, struct error *error);

/* volume_publish_attached() - the same, for a call whose record is open and whose kind is known. */
int volume_publish_attached(struct volume_call *call, struct error *error);

#endif
