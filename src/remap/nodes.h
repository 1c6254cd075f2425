/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - the files that the container's kernel knows, by number.
 *
 * Each is held by a descriptor (O_PATH), so that it is the same one whatever becomes of its names; when descriptors
 * would run short, by its file handle instead, where the filesystem has such.
 */
#ifndef FLEXGRAFT_TRANSLATOR_NODES_H
#define FLEXGRAFT_TRANSLATOR_NODES_H

#include <sys/stat.h>

#include "shared.h"

/* nodes_begin() - take over what there is. The root, number 1, is FD_ROOT. Returns 0 or negative errno. */
int nodes_begin(void);

/* nodes_get() - by number; NULL for one that is not in use. */
struct node *nodes_get(uint64_t number);

uint64_t nodes_number(const struct node *node);

/*
 * nodes_look_up() - a name in a directory -> its node, known once more to the kernel.
 *
 * Takes:   the directory's descriptor. Gives: ret_stat.
 * Errors:  negative errno of open(2), fstat(2); ENFILE the table is full.
 */
int nodes_look_up(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat);

/* nodes_open_name() - the same, quicker for one that is probably new. */
int nodes_open_name(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat);

/* nodes_forget() - the kernel knows of it so many times less. */
void nodes_forget(struct node *node, uint64_t count);

/* A descriptor on a node, borrowed or opened for the moment; the node stays what it is meanwhile, forgotten or not. */
struct node_fd {
        int fd; /* or negative errno */
        bool temporary;
        struct node *node;
};
struct node_fd nodes_open(struct node *node);
void nodes_close(struct node_fd *fd);
#define cleanup_node_fd __attribute__((cleanup(nodes_close)))

/* descriptor_use() - what a descriptor is for from now on; those that are for nothing are closed by the next daemon. */
void descriptor_use(int fd, enum descriptor_use use);

/* descriptor_room() - whether the container may open another file: some are kept for looking names up. Else -EMFILE. */
int descriptor_room(void);

/* descriptor_end() - close it. */
void descriptor_end(int fd);

#endif
