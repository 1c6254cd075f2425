/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROOT 1
#define SPARE 256 /* descriptors that are not for open files */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t free_nodes;            /* the first of the list, 0: none */
static uint32_t descriptors_for_nodes; /* limit */
static int handle_fd = -1;             /* a descriptor of the filesystem, for open_by_handle_at(2) */

union handle {
        struct file_handle head;
        uint8_t bytes[sizeof(struct file_handle) + HANDLE_SIZE];
};

static bool is_open_file(int use)
{
        return use == USE_OPEN || use == USE_LOCK;
}

void descriptor_use(int fd, enum descriptor_use use)
{
        if ((uint32_t)fd >= DESCRIPTORS_MAX)
                return;
        if (is_open_file(use) && !is_open_file(shared->uses[fd]))
                (void)__atomic_add_fetch(&shared->open_descriptors, 1, __ATOMIC_RELAXED);
        else if (!is_open_file(use) && is_open_file(shared->uses[fd]))
                (void)__atomic_sub_fetch(&shared->open_descriptors, 1, __ATOMIC_RELAXED);
        shared->uses[fd] = (uint8_t)use;
}

int descriptor_check_limit(void)
{
        return shared->open_descriptors + SPARE < shared->descriptors / 2 ? 0 : -EMFILE;
}

void descriptor_end(int fd)
{
        descriptor_use(fd, USE_NONE);
        (void)close(fd); /* flush has reported the errors of writing */
}

struct node *nodes_get(uint64_t number)
{
        return number < NODES_MAX && shared->nodes[number].used ? &shared->nodes[number] : NULL;
}

uint64_t nodes_number(const struct node *node)
{
        return (uint64_t)(node - shared->nodes);
}

static uint32_t *bucket_of(uint64_t device, uint64_t inode)
{
        uint64_t hash = (inode ^ device << 40) * 0x9e3779b97f4a7c15U;

        return &shared->buckets[hash >> 46]; /* 18 bits */
}

static void put_in_bucket(struct node *node)
{
        uint32_t *bucket = bucket_of(node->device, node->inode);

        node->next = *bucket;
        *bucket = (uint32_t)nodes_number(node);
}

static void take_from_bucket(const struct node *node)
{
        uint32_t *link = bucket_of(node->device, node->inode);

        while (*link != 0 && &shared->nodes[*link] != node)
                link = &shared->nodes[*link].next;
        if (*link != 0)
                *link = node->next;
}

/* Close the descriptors that the last daemon opened and did not record. */
static int close_unknown(void)
{
        DIR *list = opendir("/proc/self/fd");
        const struct dirent *entry;

        if (list == NULL)
                return -errno;
        while ((entry = readdir(list)) != NULL) {
                long fd = strtol(entry->d_name, NULL, 10);

                if (fd >= FD_OWN && fd < DESCRIPTORS_MAX && fd != dirfd(list) && fd != shared->keeper_pidfd &&
                    fd != shared->daemon_pidfd && shared->uses[fd] == USE_NONE)
                        (void)close((int)fd); /* without a purpose */
        }
        (void)closedir(list); /* only read from */
        return 0;
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
                               .mode = st.st_mode & S_IFMT };
        root->used = 1;
        shared->nodes_high = ROOT + 1;
        return 0;
}

int nodes_begin(void)
{
        struct rlimit limit;
        int r;

        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        if ((r = close_unknown()) < 0)
                return r;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        /* one half is for nodes, the other for open files and locks */
        shared->descriptors = (uint32_t)(limit.rlim_cur < DESCRIPTORS_MAX ? limit.rlim_cur : DESCRIPTORS_MAX);
        descriptors_for_nodes = shared->descriptors / 2;
        shared->open_descriptors = 0;
        for (uint32_t i = 0; i < shared->descriptors; i++)
                shared->open_descriptors += is_open_file(shared->uses[i]);
        if (shared->nodes_high == 0 && (r = begin_root()) < 0)
                return r;
        /* handles are used for files of the root's filesystem only; not at all if this cannot be opened */
        handle_fd = open("/proc/self/fd/4", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        _Static_assert(FD_ROOT == 4, "the path above");
        (void)memset(shared->buckets, 0, sizeof shared->buckets);
        free_nodes = 0;
        shared->node_descriptors = 0;
        for (uint32_t i = shared->nodes_high; i-- > ROOT;) {
                struct node *node = &shared->nodes[i];

                node->busy = 0;
                if (node->used &&
                    node->lookups == 0) { /* forgotten while a request used it, or never reported to the kernel */
                        node->used = 0;
                        if (node->fd >= 0)
                                descriptor_end(node->fd);
                }
                if (node->used) {
                        put_in_bucket(node);
                        shared->node_descriptors += node->fd >= 0;
                } else {
                        node->next = free_nodes;
                        free_nodes = i;
                }
        }
        return 0;
}

static void get_handle(int fd, uint64_t device, union handle *ret_handle)
{
        int mount_id;

        ret_handle->head.handle_bytes = HANDLE_SIZE;
        if (handle_fd < 0 || device != shared->nodes[ROOT].device ||
            name_to_handle_at(fd, "", &ret_handle->head, &mount_id, AT_EMPTY_PATH) < 0)
                ret_handle->head.handle_bytes = 0;
}

static bool same_handle(const struct node *node, const union handle *handle)
{
        return node->handle_size == handle->head.handle_bytes && node->handle_type == handle->head.handle_type &&
               memcmp(node->handle, handle->head.f_handle, node->handle_size) == 0;
}

static struct node *find(const struct stat *st, const union handle *handle)
{
        for (uint32_t i = *bucket_of(st->st_dev, st->st_ino); i != 0; i = shared->nodes[i].next) {
                struct node *node = &shared->nodes[i];

                /* inode numbers are reused: by servers at any time, by other filesystems once a file is not held */
                if (node->device == st->st_dev && node->inode == st->st_ino && node->mode == (st->st_mode & S_IFMT) &&
                    ((!shared->network && node->fd >= 0) || node->handle_size == 0 || handle->head.handle_bytes == 0 ||
                     same_handle(node, handle)))
                        return node;
        }
        return NULL;
}

static struct node *make(int *fd, const struct stat *st, const union handle *handle)
{
        uint32_t number = free_nodes;
        struct node *node;

        /* it has no handle, and no descriptor is left */
        if (handle->head.handle_bytes == 0 &&
            shared->node_descriptors + shared->open_descriptors + SPARE >= shared->descriptors)
                return NULL;
        if (number != 0)
                free_nodes = shared->nodes[number].next;
        else if (shared->nodes_high < NODES_MAX)
                number = shared->nodes_high;
        else
                return NULL;
        node = &shared->nodes[number];
        *node = (struct node){ .generation = node->generation + 1,
                               .fd = *fd,
                               .device = st->st_dev,
                               .inode = st->st_ino,
                               .mode = st->st_mode & S_IFMT,
                               .handle_type = handle->head.handle_type,
                               .handle_size = handle->head.handle_bytes };
        (void)memcpy(node->handle, handle->head.f_handle, handle->head.handle_bytes);
        if (handle->head.handle_bytes > 0 && shared->node_descriptors >= descriptors_for_nodes)
                node->fd = -1; /* the caller closes it */
        else {
                descriptor_use(*fd, USE_NODE);
                shared->node_descriptors++;
                *fd = -1;
        }
        put_in_bucket(node);
        __atomic_store_n(&node->used, 1, __ATOMIC_RELEASE); /* complete: the next daemon takes it over */
        if (number == shared->nodes_high)
                shared->nodes_high++;
        return node;
}

int nodes_open_name(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat)
{
        union handle handle = {};
        struct node *node;
        int fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (fstat(fd, ret_stat) < 0) {
                int r = -errno;

                (void)close(fd); /* O_PATH: nothing to lose */
                return r;
        }
        /* read without the mutex: near the limit either result is right */
        if (shared->network || shared->node_descriptors + THREADS_MAX >= descriptors_for_nodes)
                get_handle(fd, ret_stat->st_dev, &handle);
        (void)pthread_mutex_lock(&mutex);
        node = find(ret_stat, &handle);
        if (node == NULL)
                node = make(&fd, ret_stat, &handle);
        if (node != NULL)
                node->lookups++;
        (void)pthread_mutex_unlock(&mutex);
        if (fd >= 0)
                (void)close(fd); /* O_PATH, as above */
        *ret_node = node;
        return node != NULL ? 0 : -ENFILE;
}

int nodes_look_up(int directory_fd, const char *name, struct node **ret_node, struct stat *ret_stat)
{
        static const union handle none = {};
        struct node *node;

        if (shared->network) /* where an inode number may belong to another file by now */
                return nodes_open_name(directory_fd, name, ret_node, ret_stat);
        if (fstatat(directory_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        /* no other file can have the inode number of a file that is held by a descriptor: fstatat() was enough */
        (void)pthread_mutex_lock(&mutex);
        node = find(ret_stat, &none);
        if (node != NULL && node->fd >= 0)
                node->lookups++;
        else
                node = NULL;
        (void)pthread_mutex_unlock(&mutex);
        if (node == NULL)
                return nodes_open_name(directory_fd, name, ret_node, ret_stat);
        *ret_node = node;
        return 0;
}

/* With the mutex held. Returns a descriptor that the caller closes, or -1. */
static int free_node(struct node *node)
{
        int fd = node->fd;

        take_from_bucket(node);
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
        node->lookups = node->lookups > count ? node->lookups - count : 0;
        if (node->lookups == 0 && node->busy == 0)
                fd = free_node(node);
        (void)pthread_mutex_unlock(&mutex);
        if (fd >= 0)
                descriptor_end(fd);
}

struct node_fd nodes_open(struct node *node)
{
        union handle handle = { .head = { .handle_bytes = node->handle_size, .handle_type = node->handle_type } };
        int was;
        int fd;

        (void)__atomic_add_fetch(&node->busy, 1, __ATOMIC_ACQ_REL);
        if (node->fd >= 0)
                return (struct node_fd){ .fd = node->fd, .node = node };
        (void)memcpy(handle.head.f_handle, node->handle, node->handle_size);
        /* needs CAP_DAC_READ_SEARCH; the caller need not have it, and was allowed to look the file up before */
        was = setfsuid(0);
        fd = open_by_handle_at(handle_fd, &handle.head, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                fd = -errno;
        (void)setfsuid((uid_t)was);
        return (struct node_fd){ .fd = fd, .temporary = true, .node = node };
}

void nodes_close(struct node_fd *fd)
{
        struct node *node = fd->node;
        int saved = errno;
        int freed = -1;

        if (fd->temporary && fd->fd >= 0)
                (void)close(fd->fd); /* O_PATH */
        if (node != NULL && __atomic_sub_fetch(&node->busy, 1, __ATOMIC_ACQ_REL) == 0 && node->lookups == 0) {
                (void)pthread_mutex_lock(&mutex);
                if (node->used && node->busy == 0 && node->lookups == 0)
                        freed = free_node(node); /* forgotten meanwhile */
                (void)pthread_mutex_unlock(&mutex);
                if (freed >= 0)
                        descriptor_end(freed);
        }
        errno = saved;
}
