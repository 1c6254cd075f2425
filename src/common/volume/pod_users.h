/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_users.h - whether a pod has a user namespace ("hostUsers": false), as far as the node shows it.
 */
#ifndef FLEXGRAFT_VOLUME_POD_USERS_H
#define FLEXGRAFT_VOLUME_POD_USERS_H

#include <stdbool.h>

/*
 * pod_users_are_mapped() - whether kubelet has noted that the pod of a volume's directory has one. Waits for no volume.
 *
 * kubelet notes the ids that it gave such a pod, and no other, in pods/UID/userns of its root directory
 * (pkg/kubelet/userns/userns_manager.go), before it starts the pod's first container. It mounts volumes before that. So
 * true is certain; false says nothing of a pod that is started for the first time.
 */
bool pod_users_are_mapped(const char *dir);

/*
 * pod_users_may_count() - whether "idMappable" may be decided by it, or by its own word, in a call of mount with these
 * arguments: before they are parsed, and before privileges_drop(). False is certain.
 */
bool pod_users_may_count(int argc, char **argv);

#endif
