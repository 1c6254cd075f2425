/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.h - what outlives a daemon that is killed: memory that the keeper and the daemon share, as they share their
 * descriptors (CLONE_FILES). A new daemon goes on with the inodes, open files and locks of the old one, and does again
 * what that one had begun.
 *
 * Nothing in here is a pointer, and nothing is a lock: those are each daemon's own.
 */
#ifndef FLEXGRAFT_TRANSLATOR_SHARED_H
#define FLEXGRAFT_TRANSLATOR_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/id_ranges.h"

/* The descriptors that the program is started with, by number. */
enum {
        FD_FUSE = 3,  /* /dev/fuse, opened in the container's user namespace */
        FD_ROOT,      /* the detached mount that is shown */
        FD_CONTAINER, /* the directory of the container's first process in procfs */
        FD_LOCK,      /* holds the lock that says that this translator lives */
        FD_REPORT,    /* where to tell that it serves; closed after that */
        FD_OWN,       /* the first that is the translator's own */
};

#define THREADS_MAX 96
#define REQUEST_SIZE ((size_t)1024 * 1024 + 4096) /* the largest write, and its header */
#define INIT_SIZE 256
#define NODES_MAX ((uint32_t)1 << 22)
#define BUCKETS ((uint32_t)1 << 18)
#define DESCRIPTORS_MAX ((uint32_t)1 << 20)
#define HANDLE_SIZE 128
#define OWNERS_MAX 4096
#define ANSWER_SIZE 512 /* longer ones are to questions that can be asked twice */
#define WAITERS_MAX 1024
#define WAITER_SIZE 96 /* a FUSE_SETLKW request */

/* A file that the container's kernel knows. Its number there is its place in the table; 0 is nobody's. */
struct node {
        uint32_t used;
        uint32_t generation;
        uint32_t next; /* in its bucket, or among the free ones; each daemon's own doing */
        int32_t fd;    /* O_PATH; -1: opened by its handle when it is needed */
        uint64_t device;
        uint64_t inode;
        uint64_t lookups; /* how often the kernel was told of it, less what it forgot */
        uint32_t mode;    /* its type */
        int32_t backing;  /* registered for passthrough; 0: not */
        uint32_t opens;
        uint32_t busy;   /* how many requests of this daemon's are at it */
        uint32_t owners; /* who have locks on it, or had */
        int32_t handle_type;
        uint32_t handle_size; /* 0: it has none */
        uint8_t handle[HANDLE_SIZE];
        int64_t seen_size; /* what it was when its content was last read into the kernel's cache */
        int64_t seen_mtime_ns;
        int64_t seen_ctime_ns;
};

enum descriptor_use {
        USE_NONE,
        USE_NODE,
        USE_OPEN, /* a file handle of the kernel's */
        USE_LOCK,
};

/* One owner of POSIX locks on one file: an open file description of its own, which holds them. */
struct lock_owner {
        uint32_t node; /* 0: free */
        int32_t fd;
        int32_t file; /* the open file that it was first asked for through */
        uint64_t owner;
};

struct id_map {
        int count;
        struct id_range ranges[ID_RANGES_MAX];
};

struct shared {
        int keeper_pidfd;
        int daemon_pidfd;
        int short_lives; /* daemons that soon died, one after the other */
        bool reported;
        bool served;      /* an earlier daemon answered FUSE_INIT */
        bool network;     /* the source's files are another machine's: what is cached is asked about again */
        bool passthrough; /* the kernel reads and writes files itself */
        struct id_map users;
        struct id_map groups;
        uint32_t init_size;
        uint8_t init[INIT_SIZE];            /* that request */
        uint32_t tries[THREADS_MAX];        /* how often what is in a buffer was begun by a daemon that then died */
        bool changing[THREADS_MAX];         /* what is in the buffer was begun */
        uint32_t answer_sizes[THREADS_MAX]; /* 0: nothing was answered yet to what is in the buffer */
        uint8_t answers[THREADS_MAX][ANSWER_SIZE] __attribute__((aligned(8)));
        uint32_t nodes_high; /* the first that never was used */
        uint32_t node_descriptors;
        uint32_t open_descriptors;          /* those of the container's open files and locks */
        uint32_t descriptors;               /* as many as there may be */
        uint8_t uses[DESCRIPTORS_MAX];      /* of each */
        int64_t positions[DESCRIPTORS_MAX]; /* of a directory: behind what was read last */
        struct lock_owner owners[OWNERS_MAX];
        uint8_t waiters[WAITERS_MAX][WAITER_SIZE]; /* requests that wait for a lock; their length is 0: free */
        uint32_t buckets[BUCKETS];
        struct node nodes[NODES_MAX];
        uint8_t requests[THREADS_MAX][REQUEST_SIZE] __attribute__((aligned(4096)));
};

extern struct shared *shared;

#endif
