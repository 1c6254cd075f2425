/* SPDX-License-Identifier: Apache-2.0 */
/*
 * removed.h - files that others have removed, and that the container's kernel remembers though nobody there uses them: their
 * nodes hold them, and so their space, until the kernel forgets them. It does so when it is told that the name is gone.
 */
#ifndef FLEXGRAFT_REMAP_REMOVED_H
#define FLEXGRAFT_REMAP_REMOVED_H

/*
 * removed_begin() - start a thread that looks for such files, where there may be some: not of a server, which holds none for its
 * clients. A thread of its own, as what it tells the kernel waits for those that use the directory.
 */
void removed_begin(void);

#endif
