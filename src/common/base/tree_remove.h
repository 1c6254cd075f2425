/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_remove.h - remove a tree that others made, and may still write in.
 *
 * Nothing in the tree is opened by a path of more than one name. What is no directory is unlinked; a directory that is
 * not empty is moved up, into a trash directory where only we may look up names, and emptied there in its turn. So no
 * symbolic link is followed, no mount is entered (a mount point of ours can be neither unlinked nor moved; one of
 * another mount namespace can, and the kernel detaches what is mounted there: docs/KERNEL.md#targets-in-a-container),
 * one level of descriptors (two, with subvolumes of btrfs) is enough however deep the tree is, and a killed call is
 * continued by the next one.
 */
#ifndef FLEXGRAFT_BASE_TREE_REMOVE_H
#define FLEXGRAFT_BASE_TREE_REMOVE_H

#include <stdint.h>

#include "base/error.h"

/*
 * tree_move() - move a file or directory into a trash directory of its filesystem, where it gets a name of its own: it
 * is gone at once. Errors: ENOENT, without a message; EBUSY it is a mount point.
 */
int tree_move(int dir_fd, const char *name, int trash_fd, struct error *error);

/*
 * tree_empty() - ensure that a directory is empty. Its own directories end in the trash. subject: of errors.
 * Errors: EBUSY something is mounted in it; EAGAIN others make files in it as fast as they are removed; ECANCELED the
 * program was asked to end.
 */
int tree_empty(int dir_fd, int trash_fd, const char *subject, struct error *error);

/* tree_empty_trash() - ensure that a trash directory is empty. Errors: those of tree_empty(). */
int tree_empty_trash(int trash_fd, const char *subject, struct error *error);

/* tree_remove_until() - from now on they fail at that time (base/clock.h), with ETIME. */
void tree_remove_until(int64_t until_ms);

#endif
