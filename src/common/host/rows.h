/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - what host-check looks at: one row for each need (base/need.h).
 */
#ifndef FLEXGRAFT_HOST_ROWS_H
#define FLEXGRAFT_HOST_ROWS_H

#include <stdbool.h>

#include "base/need.h"
#include "host/probes.h"

struct host_row {
        const char *name;
        const char *group;
        host_probe *probe;
        const char *argument;
        bool everyone;       /* every program needs it */
        const char *use;     /* what it is for where no kind's row names it, or besides; NULL: nothing else */
        const char *advice;  /* what to do where it is missing */
        const char *untried; /* what to do where it could not be tried; NULL: the same */
};

/* NEEDS of them. */
extern const struct host_row host_rows[];

#endif
