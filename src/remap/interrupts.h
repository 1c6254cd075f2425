/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupts.h - processes that are killed while a server does not answer their requests.
 */
#ifndef FLEXGRAFT_REMAP_INTERRUPTS_H
#define FLEXGRAFT_REMAP_INTERRUPTS_H

/* interrupts_begin() - once per daemon. */
void interrupts_begin(void);

/* interrupts_look() - answer the requests of processes that are being killed. Called every second, by one thread. */
void interrupts_look(void);

#endif
