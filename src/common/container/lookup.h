/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.h - a container's id, or its pod -> its first process, from the state files of container runtimes. Executes
 * nothing.
 */
#ifndef FLEXGRAFT_CONTAINER_LOOKUP_H
#define FLEXGRAFT_CONTAINER_LOOKUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "container/state_file.h"

/* container_lookup_runtimes() - the supported runtimes, separated by commas: for errors and help. */
const char *container_lookup_runtimes(void);

/* container_lookup_runtime_known() - whether this runtime is supported. */
bool container_lookup_runtime_known(const char *runtime);

/* Where to look. */
struct container_lookup {
        const char *runtime;       /* NULL: all */
        uid_t user;                /* whose containers; 0: root's */
        const json_t *directories; /* runtime -> array of paths, besides the usual ones; NULL */
        size_t prefix_minimum;     /* how many characters of an id's beginning are enough */
};

/*
 * container_lookup_find() - the process of the container with this id, or, if the runtime supports it, with this name
 * or with the only id that begins so. An exact id or name always wins.
 *
 * Runs in: the node's mount namespace; reads files below the runtimes' state directories (container/state_file).
 * Takes:   id, checked to be a single path component.
 * Errors:  ENOENT no runtime has it; ENOTUNIQ several match; ESRCH it is not running; EBADMSG a state file that cannot
 *          be parsed; EPERM one that others may write.
 */
int container_lookup_find(const char *id, const struct container_lookup *where, struct container_process *ret_process,
                          struct error *error);

/*
 * container_lookup_pod() - the process of a pod's container, from the labels that a runtime of Kubernetes records. name:
 * the container's; NULL: the only one that runs. kubelet's links in /var/log/containers are an index: its names have
 * pod, container and id; without a link there, all containers' labels are read:
 * no runtime has an index of them. The list of the links is read as a whole.
 *
 * Errors: as above.
 */
int container_lookup_pod(const char *name_space, const char *pod, const char *name,
                         const struct container_lookup *where, struct container_process *ret_process,
                         struct error *error);

#endif
