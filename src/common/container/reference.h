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
#include "base/key.h"

#define CONTAINER_NAME_MAX                                                                                             \
        388 /* of container_reference_name(), terminated: a pod and a container in it is the longest */

struct container_reference {
        pid_t pid;                 /* 0: not by pid */
        const char *id;            /* NULL: not by id */
        const char *runtime;       /* NULL: any */
        uid_t user;                /* by id: whose rootless containers; 0: root's */
        const char *pod;           /* "NAMESPACE/NAME"; NULL: not by pod */
        const char *in_pod;        /* the container's name in the pod; NULL: the only one */
        const char *unit;          /* a service or scope of systemd's; NULL: not by unit */
        const char *proc_dir;      /* NULL: not by a directory in a procfs */
        pid_t or_pid;              /* if no container has this id: the process id that it looks like; 0: it does not */
        bool whole_id;             /* also with a runtime, CONTAINER_ID_SHORT_LENGTH characters of an id are needed */
        const json_t *directories; /* of runtimes, besides the usual ones (state/config); NULL */
        uint64_t start_time;       /* of the process, in clock ticks since boot; 0: any */
        const char *identity;      /* of container/identity.h, if whoever made the reference knows it; NULL */
        const char *known_as;      /* its id, for messages and records, if it is named by pid; NULL */
        bool created; /* the runtime is still creating it: its process has not entered its root directory */
};

/* The members of an object that names a container; also for words: --container.unit (base/words). */
extern const struct key_table container_reference_members;

/* A reference that has to be looked up: pid and proc_dir need not. */
bool container_reference_is_named(const struct container_reference *reference);

/*
 * container_reference_name() - the container's id, or what stands for one in messages and records:
 * "pod/NAMESPACE/NAME", with the container's name if the request has it, "user/UID/ID" for a user's, or "unit/NAME".
 * "": it is a process without an id. No id has a slash, so none of them is another's.
 */
void container_reference_name(const struct container_reference *reference, char *ret_name, size_t size);

/* container_reference_same() - whether two references are equal. */
bool container_reference_same(const struct container_reference *one, const struct container_reference *other);

/*
 * container_reference_take() - parse a reference: a process id, a container's id, or an object with one of "pid", "id"
 * (and "runtime" and "user"), "pod" (and "container"), "unit" and "procDir". A string of digits is a process id if no
 * container has that id. Strings are borrowed from value.
 */
int container_reference_take(const char *key, const json_t *value, struct container_reference *ret_reference,
                             struct error *error);

/* container_reference_schema() - the JSON Schema of what container_reference_take() takes, for a row of a key. */
json_t *container_reference_schema(const struct key_table *table, unsigned programs);

#endif
