/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.h - which kind a volume is of.
 */
#ifndef FLEXGRAFT_VOLUME_CHOOSE_H
#define FLEXGRAFT_VOLUME_CHOOSE_H

#include "volume/call.h"

/*
 * volume_choose_kind() - set the call's kind: "type" in the options; else the record's; else the driver's name; else a
 * guess from the options. Errors: EINVAL none of these says one, two contradict each other, or the kind does not have an
 * option of the request.
 */
int volume_choose_kind(struct volume_call *call, struct error *error);

/* volume_choose_growing() - that volumes of the call's kind can grow. Errors: EOPNOTSUPP. */
int volume_choose_growing(const struct volume_call *call, struct error *error);

/*
 * volume_choose_lost() - set the kind whose devices are found without a record. Where there is no record of a volume,
 * one of these may still be attached.
 */
void volume_choose_lost(struct volume_call *call);

/*
 * volume_choose_open() - what mountdevice and mount begin with: the volume's lock and record, its kind, what wraps it,
 * whether policy.json allows it, and what volume-create recorded of it.
 */
int volume_choose_open(struct volume_call *call, struct error *error);

#endif
