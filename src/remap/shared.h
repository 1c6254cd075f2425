/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - the state that survives a killed daemon: memory that is shared by the keeper and the daemon, which also
 * share their descriptors (CLONE_FILES). A new daemon continues with the nodes, open files and locks of the old one,
 * and repeats the requests that the old one had not answered.
 *
 * No pointers and no mutexes are in here: each daemon has its own.
 */
#ifndef FLEXGRAFT_REMAP_SHARED_H
#define FLEXGRAFT_REMAP_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/id_ranges.h"

/* The descriptors that the program is started with. */
enum {
        FD_FUSE = 3,  /* /dev/fuse, opened in the container's user namespace */
        FD_ROOT,      /* the detached mount that is the source */
        FD_CONTAINER, /* /proc/PID of the container's first process */
        FD_LOCK,      /* holds the lock that tells others that this daemon runs */
        FD_REPORT,    /* a byte is written to it when the mount is served; then it is closed */
        FD_OWN,       /* the first that the daemon may use */
};

#define THREADS_MAX 96
#define REQUEST_SIZE ((size_t)1024 * 1024 + 4096) /* the largest write, and its header */
#define INIT_SIZE 256
#define NODES_MAX ((uint32_t)1 << 22)
#define BUCKETS ((uint32_t)1 << 18)
#define DESCRIPTORS_MAX ((uint32_t)1 << 20)
#define HANDLE_SIZE 128
#define OWNERS_MAX 4096
#define ANSWER_SIZE 512 /* longer answers are to requests that can be repeated */
#define WAITERS_MAX 1024
#define WAITER_SIZE 96 /* a FUSE_SETLKW request */

/* A file that the kernel has looked up. Its node number is its index in the table; 0 is unused. */
struct node {
        uint32_t used;
        uint32_t generation;
        uint32_t next; /* in its bucket or in the list of free nodes; set up by each daemon */
        int32_t fd;    /* O_PATH; -1: opened by its handle when needed */
        uint64_t device;
        uint64_t inode;
        uint64_t lookups; /* FUSE's lookup count */
        uint32_t mode;    /* its type */
        int32_t backing;  /* registration for passthrough; 0: none */
        uint32_t opens;
        uint32_t busy;   /* requests of this daemon that use it */
        uint32_t owners; /* entries of it in the table of owners */
        int32_t handle_type;
        uint32_t handle_size; /* 0: none */
        uint8_t handle[HANDLE_SIZE];
        int64_t seen_size; /* as of the last open: is the page cache still valid? */
        int64_t seen_mtime_ns;
        int64_t seen_ctime_ns;
};

enum descriptor_use {
        USE_NONE,
        USE_NODE,
        USE_OPEN, /* an open file or directory */
        USE_LOCK,
};

/* One owner of POSIX locks on one file, and the open file description that holds these locks. */
struct lock_owner {
        uint32_t node; /* 0: free */
        int32_t fd;
        int32_t file; /* the open file of its first request */
        uint64_t owner;
};

struct id_map {
        int count;
        struct id_range ranges[ID_RANGES_MAX];
};

struct shared {
        int keeper_pidfd;
        int daemon_pidfd;
        int short_lives; /* daemons in a row that died soon after their start */
        bool reported;
        bool served;      /* FUSE_INIT was answered */
        bool network;     /* the source is a network filesystem: others change its files */
        bool passthrough; /* the kernel reads and writes the source's files directly */
        struct id_map users;
        struct id_map groups;
        uint32_t init_size;
        uint8_t init[INIT_SIZE];            /* the FUSE_INIT request */
        uint32_t tries[THREADS_MAX];        /* daemons that died of the request in the buffer */
        bool changing[THREADS_MAX];         /* the request's system calls may have been made */
        uint32_t answer_sizes[THREADS_MAX]; /* 0: the request is not answered */
        uint8_t answers[THREADS_MAX][ANSWER_SIZE] __attribute__((aligned(8)));
        uint32_t nodes_high; /* the first that was never used */
        uint32_t node_descriptors;
        uint32_t open_descriptors;          /* for open files and locks */
        uint32_t descriptors;               /* the limit, RLIMIT_NOFILE */
        uint8_t uses[DESCRIPTORS_MAX];      /* enum descriptor_use */
        int64_t positions[DESCRIPTORS_MAX]; /* of open directories: where the next entries are */
        struct lock_owner owners[OWNERS_MAX];
        uint8_t waiters[WAITERS_MAX][WAITER_SIZE]; /* requests waiting for a lock; length 0: free */
        uint32_t buckets[BUCKETS];
        struct node nodes[NODES_MAX];
        uint8_t requests[THREADS_MAX][REQUEST_SIZE] __attribute__((aligned(4096)));
};

extern struct shared *shared;

#endif
