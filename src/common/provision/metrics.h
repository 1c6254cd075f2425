/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - a capacity in the text format of Prometheus, for node_exporter's textfile collector.
 */
#ifndef FLEXGRAFT_PROVISION_METRICS_H
#define FLEXGRAFT_PROVISION_METRICS_H

#include <jansson.h>

/* provision_metrics_say() - print the reply of volume-capacity so. Returns the program's exit status. */
int provision_metrics_say(const json_t *reply);

#endif
