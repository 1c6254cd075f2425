/* SPDX-License-Identifier: Apache-2.0 */
/*
 * released.h - files that the last daemon was asked to release, and whose descriptors it did not get to close.
 */
#ifndef FLEXGRAFT_REMAP_RELEASED_H
#define FLEXGRAFT_REMAP_RELEASED_H

/*
 * released_end() - of those that the last daemon did not get to close: answer the requests to release them, and have another
 * thread close them: a server may be slow to answer. Returns 0 or negative errno: there is no such thread, and whoever waits
 * for their locks would wait as long as this daemon lives.
 */
int released_end(void);

#endif
