/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - the table of files that the kernel has looked up, by node number.
 *
 * Each node holds an O_PATH descriptor, so that it stays the same file when names change. When descriptors run short, a
 * node holds a file handle instead, where the filesystem supports that.
 */
#ifndef FLEXGRAFT_REMAP_NODES_H
#define FLEXGRAFT_REMAP_NODES_H

#include <sys/stat.h>

#include "shared.h"

#define NODES_ROOT 1

/* nodes_begin() - take over the table of the last daemon. Number 1 is FD_ROOT. Returns 0 or negative errno. */
int nodes_begin(void);

/* nodes_get() - a node by its number; NULL: not in use. */
struct node *nodes_get(uint64_t number);

uint64_t nodes_number(const struct node *node);

/*
 * nodes_alone() - whether the kernel learns of each change of a node's file, and need not ask again: where nobody else
 * changes the source's files, and the node is not one of several of one file. nodes_may_be_several() - some may be.
 */
bool nodes_alone(const struct node *node);
bool nodes_may_be_several(void);

/*
 * nodes_shown_inode() - what the container sees as a file's inode number, beside one device number for all: that of the
 * source, and another where below it other devices are, as subvolumes of btrfs are. Each has the same numbers.
 */
uint64_t nodes_shown_inode(uint64_t device, uint64_t inode);

/*
 * nodes_look_up() - a name in a directory -> its node, whose lookup count is raised by one.
 *
 * Takes:   the directory's descriptor; crosses: another filesystem of a server that begins there is mounted. Gives: ret_stat.
 * Errors:  negative errno of open(2), fstat(2); EXDEV another filesystem begins there; ENFILE the table is full.
 */
int nodes_look_up(int directory_fd, const char *name, bool crosses, struct node **ret_node, struct stat *ret_stat);

/* nodes_open_name() - the same, faster for a file that is probably new. */
int nodes_open_name(int directory_fd, const char *name, bool crosses, struct node **ret_node, struct stat *ret_stat);

/* nodes_open_file() - the node of an open file, which may have no name; its lookup count is raised by one. */
int nodes_open_file(int opened_fd, struct node **ret_node, struct stat *ret_stat);

/* nodes_forget() - lower the lookup count. At 0 the node is freed, when no request uses it. */
void nodes_forget(struct node *node, uint64_t count);

/* nodes_known() - the number of the node of such a file; 0: there is none. Not on network filesystems. */
uint64_t nodes_known(const struct stat *st);

/*
 * nodes_let_go() - before a name is removed, or made another file's: its node holds no descriptor any more, but a handle.
 *
 * An NFS client only renames a removed file that a descriptor holds (to .nfsXXXX, until that is closed). So other clients
 * would find it, and what it held, as long as the container's kernel remembers it. On other filesystems, and while
 * another request uses the node, nothing is done.
 */
void nodes_let_go(int directory_fd, const char *name);

/* A descriptor of a node, borrowed or opened temporarily. Until nodes_close() the node is not freed. */
struct node_fd {
        int fd; /* or negative errno */
        bool temporary;
        struct node *node;
};
struct node_fd nodes_open(struct node *node);
void nodes_close(struct node_fd *fd);

/* nodes_hold() - that of a number, for nodes_close() likewise; .node is NULL where no such node is in use, or it has no descriptor. */
struct node_fd nodes_hold(uint64_t number);
#define cleanup_node_fd __attribute__((cleanup(nodes_close)))

#endif
