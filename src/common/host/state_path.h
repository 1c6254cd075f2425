/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_path.h - who may change the state directory: who may write to it, or to a directory on the way to it, may put
 * records there that nobody made.
 */
#ifndef FLEXGRAFT_HOST_STATE_PATH_H
#define FLEXGRAFT_HOST_STATE_PATH_H

#include "host/finding.h"

/*
 * state_path_look() - whether only root may write to the directory, to those above it, and to those of the symbolic links
 * on the way. Nothing is made. Returns what to do about it, a constant text.
 */
const char *state_path_look(const char *state_dir, struct host_finding *ret_finding);

#endif
