/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes.h - the container runtimes whose state flexgraft reads: one row of a table each. Executes nothing.
 */
#ifndef FLEXGRAFT_CONTAINER_RUNTIMES_H
#define FLEXGRAFT_CONTAINER_RUNTIMES_H

#include <stdbool.h>

#include "base/error.h"
#include "container/state_file.h"

#define RUNTIME_SPACE_MAX 77  /* a namespace of containerd, terminated */
#define RUNTIME_SPACES_MAX 64 /* namespaces of one containerd */

/* Which container is asked for. */
struct runtime_wanted {
        const char *id;
        bool prefix; /* only the beginning of its id */
};

struct runtime {
        const char *name;
        const char
                *directories[4]; /* root's, where the runtime keeps its state unless it is told otherwise; NULL ends */
        const char *of_user;     /* a user's, below /run/user/UID; NULL: only those of the configuration */
        /*
         * A directory has several parts with ids of their own, spaces: the names of this list, and those of the
         * directories in list_spaces. Both NULL: it is one.
         */
        const char *const *spaces;
        const char *list_spaces;
        /* NULL: each of those directories is a space of its name. Else whether it is one, and what find() is told. */
        bool (*space_of)(const char *directory, char ret_space[RUNTIME_SPACE_MAX]);
        bool own_bundles; /* who creates a container makes its bundle, which stays; an engine makes another each time */
        bool prefixes;    /* whether the engine takes the beginning of an id for the container */
        /*
         * Find a container in a directory, and in one space of it. Returns 1, with pid 0 if it does not run; 0 there
         * is none; or negative errno, ENOTUNIQ among them. ret_full: the runtime's own id for it, CONTAINER_ID_FULL + 1 bytes; "" the one asked for.
         */
        int (*find)(const struct runtime_dir *dir, const char *space, const struct runtime_wanted *wanted,
                    char *ret_full, struct container_process *ret_process, struct error *error);
        /* For the runtimes of Kubernetes: the space that kubelet uses (NULL: any), */
        const char *pod_space;
        const char *pod_ids[2]; /* the directory with an entry for each id: what is before and after the space */
        const char *pod_labels; /* the file in that entry's directory that holds the labels */
        const char *pod_object; /* and the path of the object in it */
        const struct state_file_pod_keys *pod_keys;
        /*
         * NULL: no image chooses that object. Annotations of the OCI configuration are the CRI runtime's: those of
         * images are not among them, and a pod's own come before the runtime's, which overwrite them. Docker's labels
         * are those of the image, too (LABEL), so the file's other contents must say the same.
         */
        bool (*is_of_pod)(const json_t *file, const char *name_space, const char *pod, const char *name);
};

/* The table; a row without a name ends it. */
extern const struct runtime runtimes[];

/*
 * ---- the first process of a container of LXC, or of Incus and LXD, which use its library.
 *
 * LXC writes no state file. Its monitor, a process of root's per container, answers on a socket; a program that may
 * connect to sockets could ask other daemons of root's for anything, so this one looks at control groups: the monitor is
 * in lxc.monitor.NAME, its title or its arguments name the container and its directory, and the container's first
 * process is the one child of the monitor's in lxc.payload.NAME. LXC appends -1, -2, ... to both names where they are
 * taken. lxc.cgroup.dir and its kin in a container's configuration hide it.
 */

/* lxc_find() - the container of this name in this directory. Returns 0, with pid 0 if it does not run; or -errno. */
int lxc_find(const char *directory, const char *name, struct container_process *ret_process, struct error *error);

#endif
