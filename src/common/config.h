/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - /etc/flexgraft/config.json, or the file that $FLEXGRAFT_CONFIG names. No file is a working configuration.
 */
#ifndef FLEXGRAFT_CONFIG_H
#define FLEXGRAFT_CONFIG_H

#include <limits.h>

#include "error.h"

struct config {
        char state_dir[PATH_MAX];
};

/* config_load() - read it. Errors: EBADMSG for a broken file, with its line or key. */
int config_load(struct config *ret_config, struct error *error);

#endif
