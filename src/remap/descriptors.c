/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "caller.h"
#include "request.h"

#define PIDS ((uint32_t)1 << 22)  /* the kernel's PID_MAX_LIMIT */
#define OF_USER 3                 /* all processes of a user may have so many times what one may have */
#define USERS ((uint32_t)1 << 17) /* users whose ids differ by a multiple of this share */
#define RANGE 65536               /* ids that runtimes give a container at least */
#define UNKNOWN_MAX 1024          /* those beyond are left for the daemon after the next */
#define PAGE_MAX 65536            /* the kernel's largest page, of arm64 */

static int unknown[UNKNOWN_MAX]; /* the daemon has a copy */
static size_t unknown_count;

/* How many each has. Process 0: those that are not known. */
static uint32_t of_process[PIDS] __attribute__((aligned(PAGE_MAX)));
static uint32_t of_user[USERS] __attribute__((aligned(PAGE_MAX)));
static __thread struct opener opener; /* of this thread's request */

static bool is_open_file(int use)
{
        return use == USE_OPEN || use == USE_LOCK;
}

static void count(const struct opener *by, uint32_t one)
{
        (void)__atomic_add_fetch(&shared->open_descriptors, one, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&of_process[by->process % PIDS], one, __ATOMIC_RELAXED);
        (void)__atomic_add_fetch(&of_user[by->user % USERS], one, __ATOMIC_RELAXED);
}

void descriptor_use(int fd, enum descriptor_use use)
{
        if ((uint32_t)fd >= DESCRIPTORS_MAX)
                return;
        if (is_open_file(use) && !is_open_file(shared->uses[fd])) {
                shared->openers[fd] = opener;
                count(&opener, 1);
        } else if (!is_open_file(use) && is_open_file(shared->uses[fd]))
                count(&shared->openers[fd], (uint32_t)-1);
        shared->uses[fd] = (uint8_t)use;
}

int descriptors_find_unknown(void)
{
        DIR *list = opendir("/proc/self/fd");
        const struct dirent *entry;

        if (list == NULL)
                return -errno;
        unknown_count = 0;
        while (unknown_count < UNKNOWN_MAX && (entry = readdir(list)) != NULL) {
                long fd = strtol(entry->d_name, NULL, 10);

                if (fd >= FD_OWN && fd < DESCRIPTORS_MAX && fd != dirfd(list) && fd != shared->keeper_pidfd &&
                    shared->uses[fd] == USE_NONE)
                        unknown[unknown_count++] = (int)fd;
        }
        (void)closedir(list); /* only read from */
        return 0;
}

/* What the last daemon had opened, and not told: the kernel will not release it. To close it may take a server's answer. */
static void release_untold(void)
{
        for (int i = 0; i < THREADS_MAX; i++) {
                const int fd = request_take_untold(i);

                if (fd >= FD_OWN && (uint32_t)fd < DESCRIPTORS_MAX && shared->uses[fd] == USE_OPEN)
                        shared->uses[fd] = USE_RELEASED; /* all are counted anew */
        }
}

int descriptors_begin(void)
{
        const bool first = shared->descriptors == 0;
        struct rlimit limit;

        if (shared->begun) /* else there is none, and looking would take memory for all the buffers */
                release_untold();
        for (size_t i = 0; i < unknown_count; i++)
                (void)close(unknown[i]); /* without a purpose */
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        shared->descriptors = (uint32_t)(limit.rlim_cur < DESCRIPTORS_MAX ? limit.rlim_cur : DESCRIPTORS_MAX);
        shared->open_descriptors = 0;
        /* this memory may be a copy of the last daemon's; so it is zero again, and takes no space */
        if (madvise(of_process, sizeof of_process, MADV_DONTNEED) < 0 ||
            madvise(of_user, sizeof of_user, MADV_DONTNEED) < 0)
                return -errno;
        /* the first daemon has none, and looking would take memory for the whole table */
        for (uint32_t i = 0; !first && i < shared->descriptors; i++)
                if (is_open_file(shared->uses[i]))
                        count(&shared->openers[i], 1);
        return 0;
}

/* Where mounts are id-mapped all containers use one daemon, and a request does not say whose user it is of. */
struct opener descriptors_opener(pid_t thread, uid_t uid)
{
        uid_t real = uid;

        opener.process = (uint32_t)caller_process(thread, &real);
        opener.user = shared->mappable ? real / RANGE : uid;
        return opener;
}

/* Reading whose thread it is takes time: while there are plenty, they count for no process. */
int descriptors_check(pid_t thread, uid_t uid)
{
        const uint32_t most = shared->descriptors / 2 > SPARE ? shared->descriptors / 2 - SPARE : 0;
        const uint32_t open = shared->open_descriptors;
        const uint32_t left = open < most ? most - open : 0;

        opener = (struct opener){ .user = uid };
        if (left > most - most / 8)
                return 0;
        (void)descriptors_opener(thread, uid);
        return of_process[opener.process % PIDS] < left && of_user[opener.user % USERS] / OF_USER < left ? 0 : -EMFILE;
}

int64_t descriptor_position(int fd)
{
        return (uint32_t)fd < DESCRIPTORS_MAX ? shared->positions[fd] : -1;
}

void descriptor_set_position(int fd, int64_t position)
{
        if ((uint32_t)fd < DESCRIPTORS_MAX)
                shared->positions[fd] = position;
}

void descriptor_end(int fd)
{
        descriptor_use(fd, USE_NONE);
        (void)close(fd); /* flush has reported the errors of writing */
}
