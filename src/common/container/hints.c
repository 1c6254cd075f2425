/* SPDX-License-Identifier: Apache-2.0 */
#include "container/container.h"

#include <errno.h>

const struct hint container_hints[] = {
        { OPERATION_PIN_CONTAINER, ESRCH, "name a running container" },
        { OPERATION_PIN_CONTAINER, EACCES,
          "run this program as root, with CAP_SYS_PTRACE, in the node's user namespace" },
        { OPERATION_PIN_CONTAINER, EPERM, "name the user whose container it is, or the container by its process id" },
        { OPERATION_READ_CONTAINER_STATE, EPERM,
          "chown it to root, or to the \"user\" whose container it is, and chmod go-w it: no other user may be able to "
          "write to it" },
        { OPERATION_FIND_CONTAINER, ENOENT,
          "use a process id, which works for every runtime: {\"container\": PID}; \"persist\" needs a name" },
        { OPERATION_FIND_CONTAINER, ENOTUNIQ, "give the whole id, or its \"runtime\"; of a pod the \"container\"" },
        { OPERATION_FIND_CONTAINER, ESRCH, "start the container, or name a running one" },
        {},
};
