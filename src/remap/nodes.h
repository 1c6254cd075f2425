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

/* nodes_begin() - take over the table of the last daemon. Number 1 is FD_ROOT. Returns 0 or negative errno. */
int nodes_begin(void);

/* nodes_get() - a node by its number; NULL: not in use. */
struct node *nodes_get(uint64_t number);

uint64_t nodes_number(const struct node *node);

/*
 * nodes_look_up() - a name in a directory -> its node, whose lookup count is raised by one.
 *
 * Takes:   the directory's descriptor. Gives: ret_stat.
 * Errors:  negative errno of open(2), fstat(2); ENFILE the table is full.
 */
int nodes_look_up(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat);

/* nodes_open_name() - the same, faster for a file that is probably new. */
int nodes_open_name(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat);

/* nodes_forget() - lower the lookup count. At 0 the node is freed, when no request uses it. */
void nodes_forget(struct node *node, uint64_t count);

/* A descriptor of a node, borrowed or opened temporarily. Until nodes_close() the node is not freed. */
struct node_fd {
        int fd; /* or negative errno */
        bool temporary;
        struct node *node;
};
struct node_fd nodes_open(struct node *node);
void nodes_close(struct node_fd *fd);
#define cleanup_node_fd __attribute__((cleanup(nodes_close)))

/* descriptor_use() - record the purpose of a descriptor. The next daemon closes those without one. */
void descriptor_use(int fd, enum descriptor_use use);

/* descriptor_check_limit() - 0, or -EMFILE: the container has its share of open files; the rest are for lookups. */
int descriptor_check_limit(void);

/* descriptor_end() - close it, and record that. */
void descriptor_end(int fd);

#endif
