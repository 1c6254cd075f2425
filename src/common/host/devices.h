/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - what the node has of devices (host/probes.h).
 */
#ifndef FLEXGRAFT_HOST_DEVICES_H
#define FLEXGRAFT_HOST_DEVICES_H

#include <stdbool.h>

/*
 * device_mapper_is_registered() - whether the kernel has it now: without it, whoever opens its control device loads it.
 */
bool device_mapper_is_registered(void);

#endif
