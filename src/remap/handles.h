/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handles.h - file handles (open_by_handle_at(2)): what a node holds in place of a descriptor.
 */
#ifndef FLEXGRAFT_REMAP_HANDLES_H
#define FLEXGRAFT_REMAP_HANDLES_H

#include <fcntl.h>
#include <stdint.h>

#include "shared.h"

union handle {
        struct file_handle head;
        uint8_t bytes[sizeof(struct file_handle) + HANDLE_SIZE];
};

/* handles_begin() - of a daemon that begins: it is not known yet whether there are handles. */
void handles_begin(void);

/*
 * handles_begin_root() - open what they are opened beneath. Until then who needs one waits: called by a thread that no other
 * waits for, as a server need not answer. Once per daemon.
 */
void handles_begin_root(void);

/* handles_get() - of an open file; head.handle_bytes is 0 where there are none. */
void handles_get(int fd, union handle *ret_handle);

/* handles_open() - the file, as an O_PATH descriptor that the caller closes, or negative errno. Needs CAP_DAC_READ_SEARCH. */
int handles_open(union handle *handle);

#endif
