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

#include "daemon/keeper.h"
#include "mount/remap_settings.h"

/*
 * The number of what struct shared, and the answer to FUSE_INIT, mean to keeper and daemon. A program takes the place of
 * another only where it is the same: raise it with any change that an older or newer program would misread. A change of
 * size or place of a member is noticed without it (SHARED_SIZES); that it is thought of with any other change, by a test
 * (generated.bats).
 */
#define SHARED_LAYOUT 4 /* of declarations with the checksum 1682880275 */

#define THREADS_MAX 96
#define REQUEST_SIZE ((size_t)1024 * 1024 + 4096) /* the largest write, and its header */
#define INIT_SIZE 256
#define NODES_MAX ((uint32_t)1 << 22)
#define BUCKET_BITS_MAX 18
#define DESCRIPTORS_MAX ((uint32_t)1 << 20)
#define HANDLE_SIZE 128
#define OWNERS_MAX 4096
#define ANSWER_SIZE 512 /* longer answers are to requests that can be repeated */
#define WAITERS_MAX 4096
#define OWNER_UNTOLD ((uint32_t)-1)
#define WAITER_SIZE 96 /* a FUSE_SETLKW request */

/* What tells that a file is unchanged. */
struct file_state {
        int64_t size;
        int64_t mtime_ns;
        int64_t ctime_ns;
};

/* A file that the kernel has looked up. Its node number is its index in the table; 0 is unused. */
struct node {
        uint32_t used;
        uint32_t generation;
        uint32_t next; /* in its bucket or in the list of free nodes; set up by each daemon */
        int32_t fd;    /* O_PATH; -1: opened by its handle when needed */
        uint64_t device;
        uint64_t inode;
        uint64_t name;        /* 0, or which name alone is its: only_name() of nodes.c */
        uint64_t lookups;     /* FUSE's lookup count */
        uint32_t mode;        /* its type */
        int32_t backing;      /* registration for passthrough; 0: none */
        bool backing_kept;    /* it is that of `fd`, and stays while no file is open */
        bool told_no_locking; /* the mode told last is not that of mandatory locking (caches.h); false: ask for it */
        uint32_t backing_uid; /* whose it is */
        uint32_t backing_gid;
        uint32_t opens;
        uint32_t busy;   /* requests of this daemon that use it */
        uint32_t owners; /* entries of it in the table of owners */
        int32_t handle_type;
        uint32_t handle_size; /* 0: none */
        uint8_t handle[HANDLE_SIZE];
        bool stale;             /* its server has no such file any more: its name may be another file's */
        bool told_varied;       /* caches.c */
        bool told_no_set_id;    /* since it lost its set-id bits, or had none, none were told; false: not known */
        bool owner_varied;      /* the kernel may believe another owner that it was told: caches_owner_is_known() */
        uint32_t writers;       /* files open for writing in the container; too many after a daemon was killed */
        int32_t told_to;        /* who in the container was told its attributes since they were dropped */
        int32_t opened;         /* an open file of it that is passed through, of this daemon; 0: none is noted */
        struct file_state told; /* what was told last */
        uint32_t told_uid;      /* and who owns it; OWNER_UNTOLD: nothing was told */
        uint32_t told_gid;
        struct file_state seen; /* as of the last open: is the page cache still valid? */
};

enum descriptor_use {
        USE_NONE,
        USE_NODE,
        USE_OPEN, /* an open file or directory */
        USE_LOCK,
        USE_ENDING,   /* of ending.c */
        USE_RELEASED, /* nobody's file any more: the next daemon closes it, and does not repeat the request */
};

/* The process in the container that an open file or lock is for. */
struct opener {
        uint32_t process; /* 0: not known */
        uint32_t user;
};

/* One owner of POSIX locks on one file, and the open file description that holds these locks. */
struct lock_owner {
        uint32_t node; /* 0: free */
        int32_t fd;
        int32_t file; /* the open file of its first request */
        uint64_t owner;
};

/* Of a program that takes the place of another, whose keeper waits to hear that the daemon of this one could begin. */
enum heir_state {
        HEIR_NONE,
        HEIR_BEGINS, /* it has not said so */
        HEIR_SAYS,   /* it may have */
};

struct shared {
        struct keeper_header header;
        uint8_t of_its_page[4096 - sizeof(struct keeper_header)];
        uint8_t answers[THREADS_MAX][ANSWER_SIZE] __attribute__((aligned(4096)));
        uint8_t requests[THREADS_MAX][REQUEST_SIZE] __attribute__((aligned(4096)));
        int keeper_pidfd;
        int daemon_pidfd;
        int daemon_pid;
        int heir_fd;        /* the keeper's socket to an heir; -1: none */
        int force_pidfd;    /* of the process that ends what waits for a dead server; -1: none */
        int closer_pidfd;   /* of the one that it helps at last */
        bool keeper_closed; /* so that one closes the last descriptors */
        bool nfs;           /* the source is an NFS filesystem */
        int short_lives;    /* daemons in a row that died soon after their start */
        bool reported;
        enum heir_state heir;
        bool begun;    /* a daemon has read requests */
        bool served;   /* FUSE_INIT was answered */
        bool network;  /* the source is a network filesystem: others change its files */
        bool alone;    /* nobody else changes the source's files: REMAP_CACHE_ALWAYS; of one file: nodes_alone() */
        bool mappable; /* a filesystem of the node, with mounts that the kernel id-maps (operation_act_as_creator()) */
        bool mapped;   /* and it can */
        bool checked; /* mappable, and nobody but the kernel, which has done it, checks who may do what at the source */
        bool able; /* source_ids_differ(), and nobody but the kernel checks at the source (operation_act_as_caller()) */
        bool passthrough; /* the kernel reads and writes the source's files directly */
        bool xattr_flags; /* FUSE_SETXATTR is longer, and has flags of its own (FUSE_SETXATTR_EXT) */
        struct id_map users;
        struct id_map groups;
        struct id_map source_users; /* source_ids.h; none: its ids are those that the kernel says */
        struct id_map source_groups;
        uint32_t init_size;
        uint8_t init[INIT_SIZE];            /* the FUSE_INIT request */
        uint32_t tries[THREADS_MAX];        /* daemons that died of the request in the buffer */
        bool changing[THREADS_MAX];         /* the request's system calls may have been made */
        uint32_t answer_sizes[THREADS_MAX]; /* 0: the request is not answered */
        uint8_t waiter_tries[WAITERS_MAX];  /* the same of those below */
        uint32_t waiters_high;              /* the first that was never used */
        uint32_t nodes_high;                /* the first that was never used */
        uint32_t node_descriptors;
        uint32_t open_descriptors;     /* for open files and locks */
        uint32_t descriptors;          /* the limit, RLIMIT_NOFILE */
        uint8_t uses[DESCRIPTORS_MAX]; /* enum descriptor_use */
        struct opener openers[DESCRIPTORS_MAX];
        /* of an open directory: where the next entries are; of a file: its size before the last append */
        int64_t positions[DESCRIPTORS_MAX];
        struct lock_owner owners[OWNERS_MAX];
        uint8_t waiters[WAITERS_MAX][WAITER_SIZE]; /* requests waiting for a lock, or their answers; length 0: free */
        uint32_t buckets[1 << BUCKET_BITS_MAX];
        struct node nodes[NODES_MAX];
};

/* Of struct keeper_header. */
#define SHARED_SIZES                                                                                                   \
        {                                                                                                              \
                sizeof(struct shared), sizeof(struct node), offsetof(struct shared, keeper_pidfd),                     \
                        offsetof(struct shared, uses), offsetof(struct shared, nodes)                                  \
        }

extern struct shared *shared;

#endif
