/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_name.h - how long the names of a volume and of its driver may be.
 */
#ifndef FLEXGRAFT_STATE_VOLUME_NAME_H
#define FLEXGRAFT_STATE_VOLUME_NAME_H

#define VOLUME_NAME_MAX 1024  /* terminated */
#define VOLUME_DRIVER_MAX 256 /* "vendor~driver", terminated */

#endif
