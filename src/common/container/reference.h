/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - how a request names a container.
 */
#ifndef FLEXGRAFT_CONTAINER_REFERENCE_H
#define FLEXGRAFT_CONTAINER_REFERENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct container_reference {
        pid_t pid;            /* 0: not by pid */
        const char *id;       /* NULL: not by id */
        const char *runtime;  /* NULL: whichever knows the id */
        const char *proc_dir; /* NULL: not by its directory in a procfs */
        uint64_t start_time;  /* of the process meant, in clock ticks since boot; 0: any */
        const char *known_as; /* NULL; else its id, for people and records, where it is named by pid */
        bool created;         /* a runtime is still making it: its process has not entered its root directory */
};

/* container_reference_same() - whether two requests name a container in the same way. */
bool container_reference_same(const struct container_reference *one, const struct container_reference *other);

/*
 * container_reference_take() - a reference from a request: a process id, a container's id, or an object with one of
 * "pid", "id" (and "runtime") and "procDir". Its strings are borrowed from value.
 */
int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error);

#endif
