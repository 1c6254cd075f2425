/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubelet.h - what the node shows of kubelet: whether it runs, and which volumes its pods have.
 */
#ifndef FLEXGRAFT_RECONCILE_KUBELET_H
#define FLEXGRAFT_RECONCILE_KUBELET_H

#include <jansson.h>
#include <stdbool.h>

#include "state/config.h"

/*
 * kubelet_runs() - whether it answers on one of its Unix sockets. They are in its root directory, so this holds for a kubelet in a
 * container, too, and a socket that a dead kubelet left refuses connections.
 */
bool kubelet_runs(const struct config *config);

/*
 * kubelet_stages_on() - whether a directory is one on which kubelet stages volumes of FlexVolume drivers, or has staged one of a CSI
 * driver: that has a note of kubelet's beside it.
 */
bool kubelet_stages_on(const struct config *config, const char *dir);

/*
 * kubelet_pod_has() - whether a pod's directory refers to a volume of a driver ("" any): kubelet knows of it, or will after a
 * restart. True where that cannot be read.
 */
bool kubelet_pod_has(const struct config *config, const char *driver, const char *volume);

/*
 * kubelet_pod_has_staged() - whether a pod's directory refers to the CSI volume that kubelet has staged on dir, by its driver and its
 * handle; also where that cannot be read. False for a dir that is no such stage.
 */
bool kubelet_pod_has_staged(const struct config *config, const char *dir);

/*
 * kubelet_pods_had(), kubelet_pods_had_staged() - likewise, when all pods' directories were read: at the first call. So many
 * questions cost little more than one. Before something is done by an answer of false, ask again with NULL: as they are now.
 */
struct kubelet_pods {
        json_t *volumes; /* a set of DRIVER/VOLUME and /VOLUME; NULL: not read yet */
        json_t *noted;   /* likewise of the drivers and handles of CSI */
        bool known;      /* all could be read */
};
bool kubelet_pods_had(struct kubelet_pods *pods, const struct config *config, const char *driver, const char *volume);
bool kubelet_pods_had_staged(struct kubelet_pods *pods, const struct config *config, const char *dir);

#endif
