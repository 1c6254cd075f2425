/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubelet.h - what the node shows of kubelet: whether it runs, and which volumes its pods have.
 */
#ifndef FLEXGRAFT_VOLUME_KUBELET_H
#define FLEXGRAFT_VOLUME_KUBELET_H

#include <stdbool.h>

#include "state/config.h"

/*
 * kubelet_runs() - whether it answers on one of its Unix sockets. They are in its root directory, so this holds for a kubelet in a
 * container, too, and a socket that a dead kubelet left refuses connections.
 */
bool kubelet_runs(const struct config *config);

/* kubelet_stages_on() - whether a directory is one on which kubelet stages volumes of FlexVolume drivers. */
bool kubelet_stages_on(const struct config *config, const char *dir);

/*
 * kubelet_pod_has() - whether a pod's directory refers to a volume of a driver ("" any): kubelet knows of it, or will after a
 * restart. True where that cannot be read.
 */
bool kubelet_pod_has(const struct config *config, const char *driver, const char *volume);

#endif
