/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges/remap-runner.h"

#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "daemon/keeper.h"
#include "mount/superblock.h"
#include "process/exec_helper.h"
#include "process/namespace.h"
#include "process/program.h"
#include "process/sealed_child.h"

#define PROGRAM "remap-daemon"
#define CONTROL_GROUPS "/sys/fs/cgroup"
#define PASSED (FD_REPORT - FD_FUSE) /* the daemon's descriptors, in the order of daemon/keeper.h */

struct answer {
        uint64_t order; /* whose it is: order_number() */
        int errnum;     /* 0: it runs */
        int pid;
};

/* A caller may be killed between its order and the answer: the next one knows its own. Of the last descriptor, a socket. */
static int order_number(const int fds[PASSED], uint64_t *ret_number)
{
        struct stat st;

        if (fstat(fds[PASSED - 1], &st) < 0)
                return -errno;
        *ret_number = st.st_ino;
        return 0;
}

/* ---- in the helper process */

/* What the daemon is told to do. It is known before the helper process begins. */
static const char serve_container[] = "serve";
static const char serve_node[] = "serve-mappable";
static const char take_over[] = "take-over";
static const char *daemon_mode = serve_container;

/* Into the root of a hierarchy of control groups, which nobody ends. True: there is one. */
static bool enter_root_of(const char *hierarchy)
{
        char path[PATH_MAX];
        cleanup_close int fd = -EBADF;

        (void)snprintf(path, sizeof path, "%s/cgroup.procs", hierarchy);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
                (void)!write(fd, "0", 1); /* this process; where it may not, it ends with its group */
        return fd >= 0;
}

/*
 * Service managers and kubelet end what is in the control group of a service, or of a pod: of kubelet, or a CSI driver,
 * which may have started this program. What serves the node, and pods of others, goes on.
 */
static void leave_control_groups(void)
{
        char path[PATH_MAX];
        DIR *directory = enter_root_of(CONTROL_GROUPS) ? NULL : opendir(CONTROL_GROUPS); /* version 1: one for each */
        const struct dirent *entry;

        while (directory != NULL && (entry = readdir(directory)) != NULL)
                if (entry->d_name[0] != '.') {
                        (void)snprintf(path, sizeof path, CONTROL_GROUPS "/%s", entry->d_name);
                        (void)enter_root_of(path);
                }
        if (directory != NULL)
                (void)closedir(directory); /* only read */
}

/* kubelet's, or a service's, is low. What a pod can make large is to be ended before others are, which does no harm. */
static void be_ended_as_others(void)
{
        cleanup_close int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char first;

        if (fd >= 0 && read(fd, &first, 1) == 1 && first == '-')
                (void)!write(fd, "0", 1); /* if it fails it has the caller's */
}

/* Executes the daemon, with its descriptors at their numbers, nothing else open, and a session of its own. */
static void exec_daemon(const char *path, const int fds[PASSED], int report_fd)
{
        static const char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
        const char *const arguments[] = { "remap-keeper", daemon_mode, NULL };
        int high[PASSED + 1];
        bool done = setsid() > 0;

        interrupt_default();
        if (daemon_mode == serve_node) {
                leave_control_groups();
                be_ended_as_others();
        }
        for (int i = 0; done && i <= PASSED; i++)
                done = (high[i] = fcntl(i < PASSED ? fds[i] : report_fd, F_DUPFD_CLOEXEC, 64)) >= 0;
        for (int i = 0; done && i <= PASSED; i++)
                done = dup2(high[i], FD_FUSE + i) >= 0;
        if (done && close_range(FD_REPORT + 1, ~0U, 0) == 0)
                (void)execve(path, (char *const *)arguments, (char *const *)environment);
        _exit(127);
}

/* Gives the pipe's end that the daemon's report comes from; -1: there is no daemon. */
static void start_daemon(const int fds[PASSED], struct answer *ret_answer, int *ret_report_fd)
{
        char path[PATH_MAX + 64];
        int report[2];
        pid_t pid;

        *ret_report_fd = -1;
        if (!program_find_sibling(PROGRAM, path)) {
                ret_answer->errnum = ENOENT;
                return;
        }
        if (pipe2(report, O_CLOEXEC) < 0) {
                ret_answer->errnum = errno;
                return;
        }
        pid = fork();
        if (pid == 0)
                exec_daemon(path, fds, report[1]);
        if (pid < 0)
                ret_answer->errnum = errno;
        (void)close(report[1]); /* now only the daemon's */
        ret_answer->pid = pid;
        *ret_report_fd = report[0];
}

static unsigned start_seconds; /* remap_limit_starts() */

static bool is_late(int report_fd)
{
        struct pollfd report = { .fd = report_fd, .events = POLLIN };
        int r;

        do
                r = poll(&report, 1, start_seconds > 0 ? (int)start_seconds * 1000 : -1);
        while (r < 0 && errno == EINTR);
        return r == 0;
}

/* Closes the pipe's end: a daemon whose source has not said yet what it is ends itself then. */
static void wait_for_report(int report_fd, struct answer *ret_answer)
{
        char word = 0;

        if (ret_answer->pid > 0 && is_late(report_fd))
                *ret_answer = (struct answer){ .order = ret_answer->order, .errnum = ETIMEDOUT };
        while (ret_answer->pid > 0 && read(report_fd, &word, 1) < 0 && errno == EINTR)
                ;
        if (ret_answer->pid > 0 && word != 'S') /* the daemon reported an error, or exited */
                ret_answer->errnum = word == 0 ? ECANCELED : (int)(unsigned char)word;
        fd_close(&report_fd);
}

static bool say_answer(int socket_fd, const struct answer *answer)
{
        return send(socket_fd, answer, sizeof *answer, MSG_NOSIGNAL) >= 0;
}

static void run_orders(int socket_fd)
{
        int fds[PASSED];

        while (fd_pass_receive_all(socket_fd, fds, PASSED) == 0) {
                struct answer answer = {};
                int report_fd;

                if (order_number(fds, &answer.order) < 0)
                        break; /* whoever waits hears that this process has exited */
                start_daemon(fds, &answer, &report_fd);
                for (int i = 0; i < PASSED; i++)
                        fd_close(&fds[i]); /* now only the daemon's */
                /* an heir has something to report only when the keeper was told of it: so there are two answers */
                if (daemon_mode == take_over && answer.errnum == 0 && !say_answer(socket_fd, &answer))
                        break;
                wait_for_report(report_fd, &answer);
                if (!say_answer(socket_fd, &answer))
                        break;
        }
}

/* ---- in the mount helper */

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for remap", .privileges = &PRIVILEGES, .serve = run_orders
};

static void end_helper(void)
{
        exec_helper_end(&helper); /* a daemon that it started runs on */
}

int remap_begin(int argc, char **argv, struct error *error)
{
        int r;

        (void)argc;
        (void)argv;
        r = exec_helper_begin(&helper, error);
        if (r == 0)
                (void)atexit(end_helper); /* if that fails, init reaps it */
        return r;
}

int remap_begin_mappable(int argc, char **argv, struct error *error)
{
        daemon_mode = serve_node;
        return remap_begin(argc, argv, error);
}

void remap_limit_starts(unsigned seconds)
{
        start_seconds = seconds;
}

int remap_begin_heirs(int argc, char **argv, struct error *error)
{
        daemon_mode = take_over;
        return remap_begin(argc, argv, error);
}

int remap_begin_for(int argc, char **argv, struct error *error)
{
        return argc == 2 && (strcmp(argv[1], "-") == 0 || json_text_may_have(argv[1], "remap"))
                       ? remap_begin(argc, argv, error)
                       : 0;
}

static int send_order(const int fds[PASSED], uint64_t *ret_number, struct error *error)
{
        int r = order_number(fds, ret_number);

        if (r == 0)
                r = fd_pass_send_all(helper.fd, fds, PASSED);
        return r < 0 ? fail(error, -r, OPERATION_START_REMAP_DAEMON, PROGRAM) : 0;
}

static int hear_answer(uint64_t order, struct answer *ret_answer, struct error *error)
{
        ssize_t n;

        do
                n = recvfrom(helper.fd, ret_answer, sizeof *ret_answer, 0, NULL, NULL);
        while ((n < 0 && errno == EINTR) || (n == (ssize_t)sizeof *ret_answer && ret_answer->order != order));
        if (n != (ssize_t)sizeof *ret_answer)
                return fail_because(error, ECANCELED, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    "the helper process that starts it has exited");
        if (ret_answer->errnum == ENOENT && ret_answer->pid <= 0)
                return fail_because(error, ENOENT, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    PROGRAM " is neither in this program's directory nor in ../libexec/flexgraft");
        if (ret_answer->errnum == ETIMEDOUT && ret_answer->pid <= 0)
                return fail_because(error, ETIMEDOUT, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    "it did not serve the mount within %u seconds: what it is of does not answer",
                                    start_seconds);
        if (ret_answer->errnum != 0)
                return fail_because(error, ret_answer->errnum, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    "it exited at once: %s", error_text(ret_answer->errnum));
        return 0;
}

static int order(const int fds[PASSED], int *ret_pid, struct error *error)
{
        struct answer answer = {};
        uint64_t number;
        int r = send_order(fds, &number, error);

        if (r < 0 || (r = hear_answer(number, &answer, error)) < 0)
                return r;
        *ret_pid = answer.pid;
        return 0;
}

static uint64_t heir_number; /* of the order that remap_hear_heir() hears of */

int remap_start_heir(int socket_fd, int *ret_pid, struct error *error)
{
        const int fds[PASSED] = { socket_fd, socket_fd, socket_fd, socket_fd, socket_fd };
        struct answer answer = {};
        int r = send_order(fds, &heir_number, error);

        _Static_assert(PASSED == 5 && FD_HEIR == FD_FUSE + PASSED - 1,
                       "the heir has others in place of the first four");
        if (r < 0 || (r = hear_answer(heir_number, &answer, error)) < 0)
                return r;
        *ret_pid = answer.pid;
        return 0;
}

int remap_hear_heir(struct error *error)
{
        struct answer answer = {};

        return hear_answer(heir_number, &answer, error);
}

/* In the container's user namespace, before the ids change: the kernel takes the filesystem's owner from the opener. */
static int open_fuse(void *argument, struct error *error)
{
        const struct container *container = argument;
        int fd;
        int r = container->own_user_ns ? namespace_enter_user(container->user_ns_fd, container->name, error) : 0;

        if (r < 0)
                return r;
        fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return fail(error, errno == ENXIO ? ENODEV : errno, "open", "/dev/fuse");
        return fd;
}

struct mount_job {
        const struct container *container;
        const char *source;
        int fuse_fd;
        mode_t mode;
};

/* In the user namespace that opened /dev/fuse. Returns a detached mount. */
static int make_mount(const struct mount_job *job, unsigned attributes, struct error *error)
{
        cleanup_close int context_fd = -EBADF;
        char fd[16];
        char mode[16];
        int r;

        (void)snprintf(fd, sizeof fd, "%d", job->fuse_fd);
        (void)snprintf(mode, sizeof mode, "%o", job->mode & S_IFMT);
        context_fd = superblock_open("fuse", error);
        if (context_fd < 0)
                return context_fd;
        /* as strings: FSCONFIG_SET_FD is not for fuse's "fd" */
        if ((r = superblock_set(context_fd, "source", job->source, error)) < 0 ||
            (r = superblock_set(context_fd, "subtype", "flexgraft", error)) < 0 ||
            (r = superblock_set(context_fd, "fd", fd, error)) < 0 ||
            (r = superblock_set(context_fd, "rootmode", mode, error)) < 0 ||
            (r = superblock_set(context_fd, "user_id", "0", error)) < 0 ||
            (r = superblock_set(context_fd, "group_id", "0", error)) < 0 ||
            (r = superblock_set(context_fd, "allow_other", NULL, error)) < 0 ||
            (r = superblock_set(context_fd, "default_permissions", NULL, error)) < 0 ||
            (r = superblock_create(context_fd, "fuse", error)) < 0)
                return r;
        return superblock_mount(context_fd, "fuse", attributes, error);
}

static int make_fuse(void *argument, struct error *error)
{
        const struct mount_job *job = argument;
        const struct container *container = job->container;
        int r;

        if (!container->own_user_ns)
                return make_mount(job, 0, error); /* this process is root of its user namespace already */
        if ((r = namespace_become_root_of(container->user_ns_fd, container->name, error)) < 0 ||
            (r = namespace_enter_mounts(container->mnt_ns_fd, container->name, error)) < 0)
                return r;
        return make_mount(job, 0, error);
}

/* Takes a lock with a new random key; the daemon gets its descriptor. */
static int take_lock(const struct state *state, uint64_t *ret_key, struct error *error)
{
        cleanup_state struct state own = STATE_NONE;

        if (getrandom(ret_key, sizeof *ret_key, 0) != (ssize_t)sizeof *ret_key)
                return fail(error, EIO, "getrandom", "the key of a remap lock");
        *ret_key >>= 2; /* a JSON number's worth */
        own.dir_fd = fcntl(state->dir_fd, F_DUPFD_CLOEXEC, 0);
        if (own.dir_fd < 0)
                return fail(error, errno, "lock", "state");
        if (!state_try_lock(&own, *ret_key))
                return fail(error, EBUSY, "lock", "the key of a remap lock");
        return fd_take(&own.lock_fd);
}

static struct remap_settings settings;

static int send_message(int socket_fd, const void *message, size_t size, struct error *error)
{
        return write(socket_fd, message, size) == (ssize_t)size
                       ? 0
                       : fail(error, EIO, "write", "the settings for remap-daemon");
}

/* A socket from which the daemon reads its settings. ids: see struct remap_source. */
static int send_settings(const struct id_maps *ids, struct error *error)
{
        cleanup_close int ours = -EBADF;
        cleanup_close int theirs = -EBADF;
        int sockets[2];
        int r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail(error, errno, "socketpair", "the settings for remap-daemon");
        ours = sockets[0];
        theirs = sockets[1];
        if (ids != NULL && (r = send_message(ours, ids, sizeof *ids, error)) < 0)
                return r;
        r = send_message(ours, &settings, sizeof settings, error);
        return r < 0 ? r : fd_take(&theirs);
}

/* Of a daemon that is about to be started. */
struct start {
        int lock_fd;
        int settings_fd;
        mode_t mode; /* of the source */
};

static void end_start(struct start *start)
{
        fd_close(&start->lock_fd); /* now only the daemon's */
        fd_close(&start->settings_fd);
}

#define cleanup_start __attribute__((cleanup(end_start)))

/* settings.maps: as they are to be. */
static int begin_start(const struct remap_source *source, uint64_t *ret_key, struct start *ret_start,
                       struct error *error)
{
        struct stat st;

        if (helper.fd < 0)
                return fail_because(error, ENOSYS, OPERATION_START_REMAP_DAEMON, PROGRAM,
                                    "this program did not start the helper process for remap");
        if (fstat(source->mount_fd, &st) < 0)
                return fail(error, errno, "fstat", source->name);
        ret_start->mode = st.st_mode;
        ret_start->lock_fd = take_lock(source->state, ret_key, error);
        if (ret_start->lock_fd < 0)
                return ret_start->lock_fd;
        settings.cache = source->cache;
        ret_start->settings_fd = send_settings(source->ids, error);
        return ret_start->settings_fd < 0 ? ret_start->settings_fd : 0;
}

#define START_NONE                                                                                                     \
        {                                                                                                              \
                .lock_fd = -EBADF, .settings_fd = -EBADF                                                               \
        }

int remap_mount(const struct remap_source *source, const struct container *container, uint64_t *ret_key, int *ret_pid,
                struct error *error)
{
        const int keep[] = { container->user_ns_fd, container->mnt_ns_fd };
        struct mount_job job = { .container = container, .source = source->name };
        cleanup_start struct start start = START_NONE;
        cleanup_close int fuse_fd = -EBADF;
        cleanup_close int fd = -EBADF;
        int r = container_read_maps(container, &settings.maps, error);

        if (r < 0 || (r = begin_start(source, ret_key, &start, error)) < 0)
                return r;
        fuse_fd = sealed_child_run(open_fuse, (void *)container, keep, 1, error);
        if (fuse_fd < 0)
                return fuse_fd;
        job.fuse_fd = fuse_fd;
        job.mode = start.mode;
        fd = sealed_child_run(make_fuse, &job, (const int[]){ keep[0], keep[1], fuse_fd }, 3, error);
        if (fd < 0)
                return fd;
        r = order(
                (const int[PASSED]){ fuse_fd, source->mount_fd, container->proc_fd, start.lock_fd, start.settings_fd },
                ret_pid, error);
        return r < 0 ? r : fd_take(&fd);
}

int remap_mount_mappable(const struct remap_source *source, unsigned attributes, uint64_t *ret_key, int *ret_pid,
                         struct error *error)
{
        static const struct id_map all = { .count = 1, .ranges = { { .count = UINT32_MAX } } };
        struct mount_job job = { .source = source->name };
        cleanup_start struct start start = START_NONE;
        cleanup_close int init_fd = open("/proc/1", O_PATH | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        cleanup_close int fd = -EBADF;
        int r;

        if (fuse_fd < 0)
                return fail(error, errno == ENXIO ? ENODEV : errno, "open", "/dev/fuse");
        if (init_fd < 0)
                return fail(error, errno, "open", "/proc/1");
        settings.maps = (struct id_maps){ .users = all, .groups = all };
        if ((r = begin_start(source, ret_key, &start, error)) < 0)
                return r;
        job.fuse_fd = fuse_fd;
        job.mode = start.mode;
        fd = make_mount(&job, attributes, error);
        if (fd < 0)
                return fd;
        r = order((const int[PASSED]){ fuse_fd, source->mount_fd, init_fd, start.lock_fd, start.settings_fd }, ret_pid,
                  error);
        if (r == -EOPNOTSUPP)
                return fail_because(error, ENOSYS, "id-map", "fuse",
                                    "this kernel cannot id-map a FUSE filesystem; use Linux 6.12 or later");
        return r < 0 ? r : fd_take(&fd);
}
