/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kind.h - which kind a volume is of, and what a driver of some name can do at all.
 */
#ifndef FLEXGRAFT_VOLUME_KIND_H
#define FLEXGRAFT_VOLUME_KIND_H

#include "volume/call.h"

/*
 * volume_kind_choose() - set the call's kind: "type" in the options; else what the record says; else the driver's own
 * name; else a guess from the options. Errors: EINVAL it cannot be told, or two of these contradict each other.
 */
int volume_kind_choose(struct volume_call *call, struct error *error);

/*
 * volume_kind_open() - what mountdevice and mount begin with: the volume's lock and record, its kind, whether that is
 * allowed, and what volume-create promised of it.
 */
int volume_kind_open(struct volume_call *call, struct error *error);

/* volume_kind_of_lost_record() - the kind whose devices can be found by the volume's name alone. */
const struct volume_kind *volume_kind_of_lost_record(void);

#endif
