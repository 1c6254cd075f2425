/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - volumes, the directories of the node that they are mounted on, and calls, as metrics.
 */
#ifndef FLEXGRAFT_VOLUME_METRICS_H
#define FLEXGRAFT_VOLUME_METRICS_H

#include <jansson.h>

#include "base/error.h"

/*
 * volume_metrics_say() - print the reply of volume-list so, and with it what the driver's records and the counts of calls
 * say. A directory that does not answer within 2 seconds is reported so, and all of them get 20 seconds.
 *
 * Returns: the program's exit status, or negative errno with nothing printed.
 */
int volume_metrics_say(const json_t *reply, struct error *error);

#endif
