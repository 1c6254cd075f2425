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

/* interrupts_look() - answer the requests of processes that are being killed. Called every second, by one thread. */
void interrupts_look(void);

#endif
