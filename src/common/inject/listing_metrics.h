/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing_metrics.h - the mounts that mount-list found, as metrics.
 */
#ifndef FLEXGRAFT_INJECT_LISTING_METRICS_H
#define FLEXGRAFT_INJECT_LISTING_METRICS_H

#include "inject/listing.h"

/* listing_metrics_say() - print them, of METRICS_THINGS_MAX mounts at most. Returns the program's exit status. */
int listing_metrics_say(const struct listing *listing);

#endif
