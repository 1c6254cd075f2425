/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - a container, as a request names it.
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
        const char *runtime;  /* NULL: any */
        const char *proc_dir; /* NULL: not by a directory in a procfs */
        uint64_t start_time;  /* of the process, in clock ticks since boot; 0: any */
        const char *known_as; /* its id, for messages and records, if it is named by pid; NULL */
        bool created;         /* the runtime is still creating it: its process has not entered its root directory */
};

/* container_reference_same() - whether two references are equal. */
bool container_reference_same(const struct container_reference *one, const struct container_reference *other);

/*
 * container_reference_take() - parse a reference: a process id, a container's id, or an object with one of "pid", "id"
 * (and "runtime") and "procDir". Strings are borrowed from value.
 */
int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error);

#endif
