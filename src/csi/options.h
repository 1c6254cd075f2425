/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line of csi-driver.
 */
#ifndef FLEXGRAFT_CSI_OPTIONS_H
#define FLEXGRAFT_CSI_OPTIONS_H

#include "base/error.h"
#include "call.h"
#include "process/usage.h"

struct options {
        struct csi_options csi;
        unsigned idle_seconds;  /* without calls and clients, until it ends; only where sockets start it. 0: never */
        unsigned grace_seconds; /* for calls under way, when it is told to end */
};

/* What --help says of them. */
extern const struct usage_option options_of_csi[];

/*
 * options_read() - the arguments, and what is not said, from the configuration and the host's name.
 *
 * Gives:  ret_options, which point into the arguments and static memory.
 * Errors: OPERATION_PARSE for what cannot be understood; those of config_load().
 */
int options_read(int argc, char **argv, struct options *ret_options, struct error *error);

#endif
