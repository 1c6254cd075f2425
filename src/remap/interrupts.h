/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupts.h - processes that got a signal while a server does not answer their requests.
 */
#ifndef FLEXGRAFT_REMAP_INTERRUPTS_H
#define FLEXGRAFT_REMAP_INTERRUPTS_H

#include <linux/fuse.h>

/* interrupts_begin() - once per daemon. */
void interrupts_begin(void);

/* interrupts_note() - a FUSE_INTERRUPT. */
void interrupts_note(const struct fuse_in_header *header);

/* interrupts_look() - let go of who is being killed while a server does not answer. Every second, by one thread. */
void interrupts_look(void);

#endif
