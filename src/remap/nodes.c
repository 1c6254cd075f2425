/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "buckets.h"
#include "caller.h"
#include "crossing.h"
#include "descriptors.h"
#include "handles.h"
#include "passthrough.h"

#define ROOT NODES_ROOT

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t free_nodes;              /* the first of the list, 0: none */
static uint32_t descriptors_for_nodes;   /* limit */
static uint32_t descriptors_for_handles; /* of nodes that can do without: some are left for those that cannot */
static bool overlay;                     /* the root is on one */

struct node *nodes_get(uint64_t number)
{
        return number < NODES_MAX && shared->nodes[number].used ? &shared->nodes[number] : NULL;
}

uint64_t nodes_number(const struct node *node)
{
        return (uint64_t)(node - shared->nodes);
}

bool nodes_alone(const struct node *node)
{
        return shared->alone && node->name == 0;
}

bool nodes_may_be_several(void)
{
        return overlay;
}

uint64_t nodes_shown_inode(uint64_t device, uint64_t inode)
{
        return device == shared->nodes[ROOT].device ? inode : inode ^ hash_bytes(HASH_SEED, &device, sizeof device);
}

static int begin_root(void)
{
        struct node *root = &shared->nodes[ROOT];
        struct stat st;

        if (fstat(FD_ROOT, &st) < 0)
                return -errno;
        *root = (struct node){ .generation = 1,
                               .fd = FD_ROOT,
                               .device = st.st_dev,
                               .inode = st.st_ino,
                               .lookups = 2, /* never freed */
                               .told_uid = OWNER_UNTOLD,
                               .mode = st.st_mode & S_IFMT };
        root->used = 1;
        shared->nodes_high = ROOT + 1;
        return 0;
}

/* The only node of that file; NULL: there is none, or several. */
static struct node *only_node(dev_t device, ino_t inode)
{
        for (uint32_t i = buckets_first(device, inode); i != 0; i = shared->nodes[i].next) {
                struct node *node = &shared->nodes[i];

                if (node->device == device && node->inode == inode)
                        return node->name == 0 && S_ISREG(node->mode) ? node : NULL;
        }
        return NULL;
}

/* How often a file is open is counted when it is opened and when it was released: a daemon killed in between counts once too often. */
static void count_open_files(void)
{
        for (uint32_t i = ROOT; i < shared->nodes_high; i++)
                if (shared->nodes[i].name == 0)
                        shared->nodes[i].opens = shared->nodes[i].writers = 0;
        for (uint32_t fd = 0; fd < shared->descriptors; fd++) {
                struct node *node = NULL;
                struct statx st;

                /* also an overlay's file may be a server's, which need not answer */
                if (shared->uses[fd] == USE_OPEN &&
                    statx((int)fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0)
                        node = only_node(makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino);
                if (node == NULL)
                        continue;
                node->opens += shared->passthrough;
                node->writers += (fcntl((int)fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
        }
        for (uint32_t i = ROOT; i < shared->nodes_high; i++)
                if (shared->nodes[i].used && shared->nodes[i].opens == 0 && !shared->nodes[i].backing_kept)
                        passthrough_forget(&shared->nodes[i]);
}

int nodes_begin(void)
{
        struct statfs fs;
        int r;

        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        if ((r = descriptors_begin()) < 0)
                return r;
        descriptors_for_nodes = shared->descriptors / 2; /* the other half is for open files and locks */
        descriptors_for_handles = descriptors_for_nodes / 2;
        if (shared->nodes_high == 0 && (r = begin_root()) < 0)
                return r;
        /* a server is not asked: it need not answer */
        overlay = !shared->network && fstatfs(FD_ROOT, &fs) == 0 && (unsigned)fs.f_type == OVERLAYFS_SUPER_MAGIC;
        handles_begin();
        free_nodes = 0;
        shared->node_descriptors = 0;
        for (uint32_t i = shared->nodes_high; i-- > ROOT;) {
                struct node *node = &shared->nodes[i];

                node->busy = 0;
                node->owners = 0;             /* counted anew by locks_begin() */
                node->opened = 0;             /* that number may be of another file by now */
                node->told_no_set_id = false; /* a program that does not know it may have been here */
                node->told_no_locking = false;
                if (node->used &&
                    node->lookups == 0) { /* forgotten while a request used it, or never reported to the kernel */
                        node->used = 0;
                        passthrough_forget(node);
                        if (node->fd >= 0)
                                descriptor_end(node->fd);
                }
                if (node->used)
                        shared->node_descriptors += node->fd >= 0;
                else {
                        node->next = free_nodes;
                        free_nodes = i;
                }
        }
        buckets_begin();
        if (shared->begun && !shared->network)
                count_open_files();
        return 0;
}

static void get_handle(int fd, uint64_t device, union handle *ret_handle)
{
        if (device == shared->nodes[ROOT].device)
                handles_get(fd, ret_handle);
        else
                ret_handle->head.handle_bytes = 0;
}

static bool same_handle(const struct node *node, const union handle *handle)
{
        return node->handle_size == handle->head.handle_bytes && node->handle_type == handle->head.handle_type &&
               memcmp(node->handle, handle->head.f_handle, node->handle_size) == 0;
}

/*
 * What node.name is for a name, if the names of a file are to be nodes of their own. The names of one file in a lower layer
 * of an overlay have one inode number, and yet are several files: what is written to one is copied up for that name alone
 * (ovl_hash_bylower() in fs/overlayfs/inode.c). A node for all would have one of them written in place of another. The
 * names of a file in the upper layer cannot be told from these.
 */
static uint64_t only_name(int directory_fd, const char *name, const struct stat *st)
{
        struct stat directory;
        uint64_t hash;

        if (!overlay || st->st_nlink < 2 || S_ISDIR(st->st_mode) || fstat(directory_fd, &directory) < 0)
                return 0;
        hash = hash_bytes(HASH_SEED, &directory.st_dev, sizeof directory.st_dev);
        hash = hash_bytes(hash, &directory.st_ino, sizeof directory.st_ino);
        return hash_bytes(hash, name, strlen(name)) | 1;
}

/* With 0 it has, or had, one name alone, and is in the upper layer: one in a lower layer has as many as ever. */
static bool is_name(const struct node *node, uint64_t name)
{
        return name == 0 || node->name == 0 || node->name == name;
}

/* Whether two descriptors are of one name. The kernel knows that by itself: no server is asked. */
static bool is_same_name(int one, int other)
{
        const int fds[] = { one, other };
        char names[2][PATH_MAX];
        ssize_t sizes[2];
        char link[32];

        for (int i = 0; i < 2; i++) {
                (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fds[i]);
                sizes[i] = readlink(link, names[i], sizeof names[i]);
        }
        /* too long to be told: as far as is known, the same */
        return sizes[0] < 0 || sizes[1] < 0 ||
               (sizes[0] == sizes[1] && memcmp(names[0], names[1], (size_t)sizes[0]) == 0);
}

/*
 * A server's inode numbers may be those of several filesystems of it: without handles only the name tells files apart that
 * have one name each. fd: a descriptor of the file.
 */
static bool is_same_file(const struct node *node, const struct stat *st, const union handle *handle, int fd)
{
        if (node->handle_size > 0 && handle->head.handle_bytes > 0)
                return same_handle(node, handle);
        return !shared->network || fd < 0 || node->fd < 0 || (st->st_nlink > 1 && !S_ISDIR(st->st_mode)) ||
               is_same_name(node->fd, fd);
}

static struct node *find(const struct stat *st, uint64_t name, const union handle *handle, int fd)
{
        for (uint32_t i = buckets_first(st->st_dev, st->st_ino); i != 0; i = shared->nodes[i].next) {
                struct node *node = &shared->nodes[i];

                /* inode numbers are reused: by servers at any time, by other filesystems once a file is not held */
                if (node->device == st->st_dev && node->inode == st->st_ino && is_name(node, name) &&
                    node->mode == (st->st_mode & S_IFMT) &&
                    ((!shared->network && node->fd >= 0) || is_same_file(node, st, handle, fd)))
                        return node;
        }
        return NULL;
}

/* With the mutex held: the node keeps a descriptor, if there are enough; then *fd is -1. */
static void hold(struct node *node, int *fd)
{
        if (node->handle_size > 0 && shared->node_descriptors >= descriptors_for_handles)
                return;
        descriptor_use(*fd, USE_NODE);
        shared->node_descriptors++;
        __atomic_store_n(&node->fd, *fd, __ATOMIC_SEQ_CST);
        *fd = -1;
}

static struct node *make(int *fd, const struct stat *st, uint64_t name, const union handle *handle)
{
        uint32_t number = free_nodes;
        struct node *node;

        /* it has no handle, and no descriptor is left */
        if (handle->head.handle_bytes == 0 && shared->node_descriptors >= descriptors_for_nodes)
                return NULL;
        if (number != 0)
                free_nodes = shared->nodes[number].next;
        else if (shared->nodes_high < NODES_MAX)
                number = shared->nodes_high;
        else
                return NULL;
        node = &shared->nodes[number];
        *node = (struct node){ .generation = node->generation + 1,
                               .fd = -1, /* or the caller closes it */
                               .device = st->st_dev,
                               .inode = st->st_ino,
                               .name = name,
                               .told_uid = OWNER_UNTOLD,
                               .mode = st->st_mode & S_IFMT,
                               .handle_type = handle->head.handle_type,
                               .handle_size = handle->head.handle_bytes };
        (void)memcpy(node->handle, handle->head.f_handle, handle->head.handle_bytes);
        hold(node, fd);
        buckets_put(node);
        __atomic_store_n(&node->used, 1, __ATOMIC_RELEASE); /* complete: the next daemon takes it over */
        if (number == shared->nodes_high)
                shared->nodes_high++;
        return node;
}

/* Look at a directory on its server, so that names which are other files' by now are looked up anew. */
static void look_at_server(int directory_fd)
{
        struct statx ignored;

        (void)statx(directory_fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &ignored);
}

/* The node of an open descriptor, which the node may keep: then *fd is -1. name: see only_name(). NULL: the table is full. */
static struct node *node_of(int *fd, const struct stat *st, uint64_t name)
{
        union handle handle = {};
        struct node *node;

        /* read without the mutex: near the limit either result is right */
        if (shared->network || shared->node_descriptors + THREADS_MAX >= descriptors_for_handles)
                get_handle(*fd, st->st_dev, &handle);
        (void)pthread_mutex_lock(&mutex);
        node = find(st, name, &handle, *fd);
        if (node != NULL && node->fd < 0 && handle.head.handle_bytes == 0) { /* it may be a file that is gone */
                get_handle(*fd, st->st_dev, &handle);
                node = find(st, name, &handle, *fd);
        }
        if (node == NULL)
                node = make(fd, st, name, &handle);
        if (node != NULL)
                node->lookups++;
        /* another client may have renamed it, and NFS 4 opens a file by the name of its descriptor */
        if (node != NULL && *fd >= 0 && shared->network && node->fd >= 0 && node->fd != FD_ROOT)
                (void)dup2(*fd, node->fd); /* fails for no valid descriptors */
        else if (node != NULL && *fd >= 0 && shared->network && node->fd < 0)
                hold(node, fd); /* nodes_let_go() took its descriptor, and the name is there yet */
        (void)pthread_mutex_unlock(&mutex);
        return node;
}

int nodes_open_name(int directory_fd, const char *name, bool crosses, struct node **ret_node, struct stat *ret_stat)
{
        int fd = crossing_open_name(directory_fd, name, crosses, ret_stat);

        if (fd == -ESTALE && shared->network) {
                look_at_server(directory_fd);
                fd = crossing_open_name(directory_fd, name, crosses, ret_stat);
        }
        if (fd < 0)
                return fd;
        *ret_node = node_of(&fd, ret_stat, only_name(directory_fd, name, ret_stat));
        if (*ret_node != NULL && (*ret_node)->stale) {
                if (fd >= 0)
                        (void)close(fd); /* O_PATH, as above */
                nodes_forget(*ret_node, 1);
                *ret_node = NULL;
                look_at_server(directory_fd);
                fd = crossing_open_name(directory_fd, name, crosses, ret_stat);
                if (fd < 0)
                        return fd;
                *ret_node = node_of(&fd, ret_stat, only_name(directory_fd, name, ret_stat));
        }
        if (fd >= 0)
                (void)close(fd); /* O_PATH, as above */
        return *ret_node != NULL ? 0 : -ENFILE;
}

int nodes_open_file(int opened_fd, struct node **ret_node, struct stat *ret_stat)
{
        char path[32];
        int fd;
        int r;

        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", opened_fd);
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, ret_stat) < 0) {
                r = -errno;
                (void)close(fd); /* O_PATH, as above */
                return r;
        }
        *ret_node = node_of(&fd, ret_stat, /* name= */ 0);
        if (fd >= 0)
                (void)close(fd); /* O_PATH, as above */
        return *ret_node != NULL ? 0 : -ENFILE;
}

int nodes_look_up(int directory_fd, const char *name, bool crosses, struct node **ret_node, struct stat *ret_stat)
{
        static const union handle none = {};
        static __thread bool unknown; /* kept: the last one that this thread looked up was; so may be the next */
        struct node *node;
        uint64_t only;

        /* on a network an inode number may belong to another file by now */
        if (shared->network || unknown) {
                int r = nodes_open_name(directory_fd, name, crosses, ret_node, ret_stat);

                unknown = r == 0 && (*ret_node)->lookups == 1;
                return r;
        }
        if (fstatat(directory_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        /* no other file can have the inode number of a file that is held by a descriptor: fstatat() was enough */
        only = only_name(directory_fd, name, ret_stat);
        (void)pthread_mutex_lock(&mutex);
        node = find(ret_stat, only, &none, /* fd= */ -1);
        if (node != NULL && node->fd >= 0)
                node->lookups++;
        else
                node = NULL;
        (void)pthread_mutex_unlock(&mutex);
        unknown = node == NULL;
        if (unknown)
                return nodes_open_name(directory_fd, name, crosses, ret_node, ret_stat);
        *ret_node = node;
        return 0;
}

uint64_t nodes_known(const struct stat *st)
{
        static const union handle none = {};
        const struct node *node;

        (void)pthread_mutex_lock(&mutex);
        node = find(st, /* name= */ 0, &none, /* fd= */ -1);
        (void)pthread_mutex_unlock(&mutex);
        return node != NULL ? nodes_number(node) : 0;
}

/*
 * With the mutex held. Take the descriptor of a node (NULL: of none) away from it, unless it is of another name than fd, by which
 * the file stays on the server, and NFS 4 may open it. Returns -1: there is none to take, or a request uses it.
 */
static int take_descriptor(struct node *node, const struct stat *st, int fd)
{
        int held;

        if (node == NULL || node->fd < 0 || node->handle_size == 0 || (st->st_nlink > 1 && !is_same_name(node->fd, fd)))
                return -1;
        held = __atomic_exchange_n(&node->fd, -1, __ATOMIC_SEQ_CST);
        /* nodes_open() raises the count before it looks: who raised it may use the descriptor */
        if (__atomic_load_n(&node->busy, __ATOMIC_SEQ_CST) != 0) {
                __atomic_store_n(&node->fd, held, __ATOMIC_SEQ_CST);
                return -1;
        }
        shared->node_descriptors--;
        return held;
}

void nodes_let_go(int directory_fd, const char *name)
{
        union handle handle = {};
        struct stat st = {};
        int held = -1;
        int fd;

        if (!shared->network || (fd = crossing_open_name(directory_fd, name, /* crosses= */ true, &st)) < 0)
                return;
        get_handle(fd, st.st_dev, &handle);
        if (handle.head.handle_bytes > 0 && !S_ISDIR(st.st_mode)) {
                (void)pthread_mutex_lock(&mutex);
                /* name: on a network it is on no overlay */
                held = take_descriptor(find(&st, /* name= */ 0, &handle, /* fd= */ -1), &st, fd);
                (void)pthread_mutex_unlock(&mutex);
        }
        if (held >= 0)
                descriptor_end(held);
        (void)close(fd); /* O_PATH, as above */
}

/* With the mutex held. Returns a descriptor that the caller closes, or -1. */
static int free_node(struct node *node)
{
        int fd = node->fd;

        passthrough_forget(node);
        buckets_take(node);
        node->used = 0;
        if (fd >= 0)
                shared->node_descriptors--;
        node->next = free_nodes;
        free_nodes = (uint32_t)nodes_number(node);
        return fd;
}

void nodes_forget(struct node *node, uint64_t count)
{
        int fd = -1;

        if (node == &shared->nodes[ROOT])
                return;
        (void)pthread_mutex_lock(&mutex);
        /* nodes_close() looks without the mutex: without one order of the four, each could leave the node to the other */
        __atomic_store_n(&node->lookups, node->lookups > count ? node->lookups - count : 0, __ATOMIC_SEQ_CST);
        if (node->lookups == 0 && __atomic_load_n(&node->busy, __ATOMIC_SEQ_CST) == 0)
                fd = free_node(node);
        (void)pthread_mutex_unlock(&mutex);
        if (fd >= 0)
                descriptor_end(fd);
}

struct node_fd nodes_open(struct node *node)
{
        union handle handle = { .head = { .handle_bytes = node->handle_size, .handle_type = node->handle_type } };
        const bool able = caller_is_able();
        int was = 0;
        int fd;

        (void)__atomic_add_fetch(&node->busy, 1, __ATOMIC_SEQ_CST);
        fd = __atomic_load_n(&node->fd, __ATOMIC_SEQ_CST);
        if (fd >= 0)
                return (struct node_fd){ .fd = fd, .node = node };
        (void)memcpy(handle.head.f_handle, node->handle, node->handle_size);
        /* needs CAP_DAC_READ_SEARCH; the caller need not have it, and was allowed to look the file up before */
        if (!able)
                was = setfsuid(0);
        fd = handles_open(&handle);
        if (!able) /* from 0 to another fsuid the kernel would take the capabilities away */
                (void)setfsuid((uid_t)was);
        return (struct node_fd){ .fd = fd, .temporary = true, .node = node };
}

struct node_fd nodes_hold(uint64_t number)
{
        struct node_fd held = { .fd = -EBADF };
        struct node *node;

        (void)pthread_mutex_lock(&mutex);
        node = nodes_get(number);
        if (node != NULL && node->fd >= 0) {
                (void)__atomic_add_fetch(&node->busy, 1, __ATOMIC_SEQ_CST);
                held = (struct node_fd){ .fd = node->fd, .node = node };
        }
        (void)pthread_mutex_unlock(&mutex);
        return held;
}

void nodes_close(struct node_fd *fd)
{
        struct node *node = fd->node;
        int saved = errno;
        int freed = -1;

        if (fd->temporary && fd->fd >= 0)
                (void)close(fd->fd); /* O_PATH */
        if (node != NULL && __atomic_sub_fetch(&node->busy, 1, __ATOMIC_SEQ_CST) == 0 &&
            __atomic_load_n(&node->lookups, __ATOMIC_SEQ_CST) == 0) {
                (void)pthread_mutex_lock(&mutex);
                if (node->used && node->busy == 0 && node->lookups == 0)
                        freed = free_node(node); /* forgotten meanwhile */
                (void)pthread_mutex_unlock(&mutex);
                if (freed >= 0)
                        descriptor_end(freed);
        }
        errno = saved;
}
