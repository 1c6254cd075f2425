/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container makes the kernel ask remap-daemon: libfuse decodes the requests, src/remap acts on a new, small tmpfs
 * without a place in any tree. Needs root.
 *
 * A container writes no request itself. So what the kernel guarantees holds here, too: lengths are right, a name has no
 * slash, a handle is one that was given out, no node is forgotten more often than it was looked up. All else is the
 * input's: the order, the nodes, names, offsets, flags, modes, sizes, callers and data.
 *
 * Input: a byte (1: the source is a network filesystem; 2: no descriptor is left for nodes), the flags of FUSE_INIT
 * (8 bytes), then requests: its place in the table below, its node, its open file, its caller (a byte each), and its
 * arguments: structures as the kernel has them, names that end with a NUL, data after a length of 2 bytes. What is
 * missing at the end is 0.
 */
#include <linux/fs.h>
#include <linux/limits.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fuse_kernel.h"

/* Linux 6.6 */
struct statx_in {
        uint32_t flags;
        uint32_t reserved;
        uint64_t handle;
        uint32_t statx_flags;
        uint32_t mask;
};

#define REQUESTS_MAX 256
#define OTHERS_MAX 512 /* descriptors of the fuzzer are below */
#define INIT_MINOR 45  /* of Linux 6.18 */

/* Requests that have no open file. */
static bool by_node(uint32_t opcode, uint32_t *ret_asked)
{
        switch (opcode) {
        case FUSE_LOOKUP:
        case FUSE_UNLINK:
        case FUSE_RMDIR:
                put_name(false);
                break;
        case FUSE_GETATTR:
                PUT(fuse_getattr_in, arguments.getattr_flags = 0);
                break;
        case FUSE_SETATTR:
                PUT(fuse_setattr_in, arguments.valid &= ~(uint32_t)FATTR_FH);
                break;
        case FUSE_READLINK:
        case FUSE_STATFS:
                break;
        case FUSE_SYMLINK:
                put_name(false);
                put_name(true);
                break;
        case FUSE_MKNOD:
                PUT(fuse_mknod_in, );
                put_name(false);
                break;
        case FUSE_MKDIR:
                PUT(fuse_mkdir_in, );
                put_name(false);
                break;
        case FUSE_RENAME:
                PUT(fuse_rename_in, arguments.newdir = a_node((uint8_t)arguments.newdir));
                put_name(false);
                put_name(false);
                break;
        case FUSE_RENAME2:
                PUT(fuse_rename2_in, arguments.newdir = a_node((uint8_t)arguments.newdir); arguments.flags &= 7);
                put_name(false);
                put_name(false);
                break;
        case FUSE_LINK:
                PUT(fuse_link_in, arguments.oldnodeid = a_node((uint8_t)arguments.oldnodeid));
                put_name(false);
                break;
        case FUSE_OPEN:
        case FUSE_OPENDIR:
                PUT(fuse_open_in, arguments.flags &= O_ACCMODE | O_APPEND | O_TRUNC | O_NONBLOCK | O_SYNC | O_DIRECT |
                                                     O_NOATIME | O_LARGEFILE | O_ASYNC | O_NOFOLLOW);
                break;
        case FUSE_CREATE:
                PUT(fuse_create_in, arguments.flags &= O_ACCMODE | O_APPEND | O_TRUNC | O_NONBLOCK | O_SYNC | O_DIRECT |
                                                       O_NOATIME | O_LARGEFILE | O_CREAT | O_EXCL | O_NOFOLLOW;
                    arguments.mode = (arguments.mode & 07777) | S_IFREG);
                put_name(false);
                break;
        case NEWER_TMPFILE:
                PUT(fuse_create_in, arguments.flags &= O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_DIRECT |
                                                       O_NOATIME | O_LARGEFILE | O_EXCL | O_NOFOLLOW;
                    arguments.flags |= O_TMPFILE; arguments.mode = (arguments.mode & 07777) | S_IFREG);
                put("/", 2);
                break;
        case NEWER_STATX:
                PUT(statx_in, arguments.flags = 0);
                break;
        case FUSE_SETXATTR: {
                struct fuse_setxattr_in *written = (void *)((char *)out + out->len);

                PUT(fuse_setxattr_in, arguments.setxattr_flags &= 1);
                if (!long_setxattr)
                        out->len -= (uint32_t)(sizeof *written - FUSE_COMPAT_SETXATTR_IN_SIZE);
                put_name(false);
                written->size = put_data();
                break;
        }
        case FUSE_GETXATTR:
        case FUSE_LISTXATTR:
                PUT(fuse_getxattr_in, *ret_asked = arguments.size %= XATTR_SIZE_MAX + 1);
                if (opcode == FUSE_GETXATTR)
                        put_name(false);
                break;
        case FUSE_REMOVEXATTR:
                put_name(false);
                break;
        default: /* one that there is no function for */
                put_data();
        }
        return true;
}

/* An ioctl: one of those that the kernel makes itself for flags, or any, as a process may make. */
static void put_ioctl(uint64_t handle, bool directory, uint32_t *ret_asked)
{
        static const uint32_t commands[] = { FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR };
        const unsigned way = take_byte();
        struct fuse_ioctl_in *written = (void *)((char *)out + out->len);

        PUT(fuse_ioctl_in, arguments.fh = handle; arguments.flags = directory ? FUSE_IOCTL_DIR : 0;
            if ((way & 3) != 0) arguments.cmd = commands[way / 4 % 4]; arguments.arg = (way & 16) != 0 ? 4096 : 0);
        written->out_size = *ret_asked = (written->cmd & ((uint32_t)_IOC_READ << _IOC_DIRSHIFT)) == 0 ? 0
                                         : (way & 32) != 0                 ? (uint32_t)_IOC_SIZE(written->cmd)
                                         : written->cmd == FS_IOC_GETFLAGS ? 4
                                                                           : (uint32_t)sizeof(struct fsxattr);
        written->in_size = (written->cmd & ((uint32_t)_IOC_WRITE << _IOC_DIRSHIFT)) == 0 ? 0 : put_data();
}

/* Requests about an open file; false: there is none of this sort. */
static bool by_file(uint32_t opcode, unsigned which, uint32_t *ret_asked)
{
        const bool directory = opcode == FUSE_READDIR || opcode == FUSE_READDIRPLUS || opcode == FUSE_FSYNCDIR;
        uint64_t handle;

        if (files_count == 0 || (files[which %= (unsigned)files_count].directory != directory && opcode != FUSE_IOCTL))
                return false;
        handle = files[which].handle;
        out->nodeid = files[which].number;
        switch (opcode) {
        case FUSE_READ:
        case FUSE_READDIR:
        case FUSE_READDIRPLUS:
                PUT(fuse_read_in, arguments.fh = handle; *ret_asked = arguments.size %= 128 * 1024);
                break;
        case FUSE_WRITE: {
                struct fuse_write_in *written = (void *)((char *)out + out->len);

                PUT(fuse_write_in, arguments.fh = handle);
                *ret_asked = written->size = put_data();
                break;
        }
        case FUSE_IOCTL:
                put_ioctl(handle, files[which].directory, ret_asked);
                break;
        case FUSE_SETATTR:
                PUT(fuse_setattr_in, arguments.fh = handle; arguments.valid |= FATTR_FH);
                break;
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
                PUT(fuse_fsync_in, arguments.fh = handle);
                break;
        case FUSE_FLUSH:
                PUT(fuse_flush_in, arguments.fh = handle; arguments.lock_owner %= 4);
                break;
        case FUSE_GETLK:
        case FUSE_SETLK:
        case FUSE_SETLKW:
                PUT(fuse_lk_in, arguments.fh = handle; arguments.owner %= 4; arguments.lk.type %= 3;
                    arguments.lk_flags &= 1);
                break;
        case FUSE_FALLOCATE:
                PUT(fuse_fallocate_in, arguments.fh = handle);
                break;
        case FUSE_LSEEK:
                PUT(fuse_lseek_in, arguments.fh = handle);
                break;
        default: /* FUSE_COPY_FILE_RANGE */
                PUT(fuse_copy_file_range_in, arguments.fh_in = handle;
                    which = (unsigned)arguments.fh_out % (unsigned)files_count;
                    if (files[which].directory) return false; arguments.fh_out = files[which].handle;
                    arguments.nodeid_out = files[which].number; arguments.len &= INT32_MAX;
                    *ret_asked = (uint32_t)arguments.len);
        }
        return true;
}

static void one_request(void)
{
        enum { NODE, OPEN_FILE, OWN };
        static const struct {
                uint32_t opcode;
                int sort;
        } table[] = {
                { FUSE_LOOKUP, NODE },
                { FUSE_GETATTR, NODE },
                { FUSE_SETATTR, NODE },
                { FUSE_READLINK, NODE },
                { FUSE_SYMLINK, NODE },
                { FUSE_MKNOD, NODE },
                { FUSE_MKDIR, NODE },
                { FUSE_UNLINK, NODE },
                { FUSE_RMDIR, NODE },
                { FUSE_RENAME, NODE },
                { FUSE_RENAME2, NODE },
                { FUSE_LINK, NODE },
                { FUSE_OPEN, NODE },
                { FUSE_OPENDIR, NODE },
                { FUSE_CREATE, NODE },
                { FUSE_STATFS, NODE },
                { FUSE_SETXATTR, NODE },
                { FUSE_GETXATTR, NODE },
                { FUSE_LISTXATTR, NODE },
                { FUSE_REMOVEXATTR, NODE },
                { FUSE_READ, OPEN_FILE },
                { FUSE_WRITE, OPEN_FILE },
                { FUSE_SETATTR, OPEN_FILE },
                { FUSE_FSYNC, OPEN_FILE },
                { FUSE_FLUSH, OPEN_FILE },
                { FUSE_GETLK, OPEN_FILE },
                { FUSE_SETLK, OPEN_FILE },
                { FUSE_SETLKW, OPEN_FILE },
                { FUSE_FALLOCATE, OPEN_FILE },
                { FUSE_LSEEK, OPEN_FILE },
                { FUSE_READDIR, OPEN_FILE },
                { FUSE_READDIRPLUS, OPEN_FILE },
                { FUSE_FSYNCDIR, OPEN_FILE },
                { FUSE_COPY_FILE_RANGE, OPEN_FILE },
                { FUSE_RELEASE, OWN },
                { FUSE_FORGET, OWN },
                { FUSE_INTERRUPT, OWN },
                { FUSE_BMAP, NODE },
                { FUSE_IOCTL, OPEN_FILE },
                { FUSE_POLL, NODE },
                { FUSE_ACCESS, NODE },
                { NEWER_TMPFILE, NODE },
                { 4711, NODE },
                { NEWER_STATX, NODE },
        };
        const unsigned which = take_byte() % (sizeof table / sizeof table[0]);
        const uint64_t node = a_node(take_byte());
        const unsigned file = take_byte();
        const unsigned caller = take_byte();
        const uint32_t opcode = table[which].opcode;
        uint32_t asked = 0;

        if (table[which].sort == OWN) {
                if (opcode == FUSE_RELEASE && files_count > 0)
                        release((int)(file % (unsigned)files_count));
                else if (opcode == FUSE_FORGET && known_count > 0)
                        forget((int)(file % (unsigned)known_count), 1 + caller % 4);
                else if (opcode == FUSE_INTERRUPT && busy_count > 0)
                        interrupt_one((int)(file % (unsigned)busy_count));
                return;
        }
        make_room();
        if (files_count == OPEN_MAX || busy_count == BUSY_MAX)
                return;
        begin_request(opcode, node, caller);
        if (table[which].sort == NODE ? by_node(opcode, &asked) : by_file(opcode, file, &asked))
                (void)send_request(/* answered= */ true, opcode == FUSE_SETLKW, asked);
}

/* ---- the source, and a daemon that begins */

static int lowest_free(void)
{
        int fd = fcntl(0, F_DUPFD_CLOEXEC, FD_OWN);

        fuzz_check(fd >= 0 && close(fd) == 0);
        return fd;
}

static void make_source(void)
{
        int context_fd = fsopen("tmpfs", FSOPEN_CLOEXEC);
        int fd;

        fuzz_check(fsconfig(context_fd, FSCONFIG_SET_STRING, "size", "8m", 0) == 0);
        fuzz_check(fsconfig(context_fd, FSCONFIG_SET_STRING, "nr_inodes", "512", 0) == 0);
        fuzz_check(fsconfig(context_fd, FSCONFIG_SET_STRING, "mode", "777", 0) == 0);
        fuzz_check(fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
        fuzz_check((fd = fsmount(context_fd, FSMOUNT_CLOEXEC, 0)) >= 0);
        fuzz_check(dup2(fd, FD_ROOT) == FD_ROOT && close(fd) == 0 && close(context_fd) == 0);
}

static void make_connection(void)
{
        const int size = (int)ANSWER_MAX * 4;
        int ends[2];

        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        fuzz_check(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) == 0);
        fuzz_check(dup2(ends[0], FD_FUSE) == FD_FUSE && dup2(ends[1], FD_KERNEL) == FD_KERNEL);
        (void)close(ends[0]);
        (void)close(ends[1]);
}

/* Zeroes, as a first daemon finds them. */
static void share_memory(void)
{
        void *memory = mmap(shared, sizeof *shared, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | (shared != NULL ? MAP_FIXED : 0), -1, 0);

        fuzz_check(memory != MAP_FAILED);
        shared = memory;
}

static void report_nothing(int r)
{
        (void)r;
}

static void begin_daemon(void)
{
        static int root_fd = -1; /* of nodes.c */
        static const struct fuse_custom_io io = { .writev = answer_send, .read = receive };
        char name[] = "flexgraft";
        char *words[] = { name, NULL };
        struct fuse_args arguments = FUSE_ARGS_INIT(1, words);

        share_memory();
        report = report_nothing;
        shared->daemon_pidfd = shared->keeper_pidfd = -1;
        shared->users = shared->groups =
                (struct id_map){ .count = 1, .ranges = { { .inside = 0, .outside = 0, .count = 65536 } } };
        /* nodes_begin() closes what it does not know: all but the fuzzer's */
        if (root_fd >= 0)
                fuzz_check(close(root_fd) == 0);
        root_fd = lowest_free();
        for (int fd = FD_OWN; fd < OTHERS_MAX; fd++)
                shared->uses[fd] = fcntl(fd, F_GETFD) >= 0 ? USE_NODE : USE_NONE;
        interrupts_begin();
        closing_begin(waiters_have);
        fuzz_check(nodes_begin() == 0);
        handles_begin_root();
        fuzz_check(fcntl(root_fd, F_GETFD) >= 0);
        session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
        fuse_opt_free_args(&arguments);
        fuzz_check(session != NULL && fuse_session_custom_io(session, &io, FD_FUSE) == 0);
}

static void do_nothing(void)
{
}

static void begin_once(void)
{
        static bool begun;
        const struct rlimit few = { 1024, 1024 };

        if (begun)
                return;
        begun = true;
        if (geteuid() != 0) {
                (void)fprintf(stderr, "fuse_requests: needs root\n");
                exit(1);
        }
        for (int fd = FD_FUSE; fd < FD_OWN; fd++)
                (void)close(fd); /* of whoever runs it */
        while (open("/dev/null", O_RDWR | O_CLOEXEC) < FD_OWN - 1)
                ;
        fuzz_check(setrlimit(RLIMIT_NOFILE, &few) == 0);
        fuse_set_log_func(say_nothing);
        share_memory();
        shared->mappable = true; /* caller_begin() looks at the capabilities then */
        fuzz_check(operation_begin_links() == 0 && caller_begin() == 0 && locks_begin(do_nothing) == 0 &&
                   caches_begin() == 0);
        passthrough_begin();
        request_use_slot(0);
        (void)caller_ids_find(
                getpid()); /* keeps a descriptor of this process's user namespace: before they are counted */
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        (void)argc;
        (void)argv;
        begin_once();
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuse_init_in init = { .major = FUSE_KERNEL_VERSION, .minor = INIT_MINOR };
        unsigned mode;
        int first;

        input.data = data;
        input.size = size;
        known_count = files_count = busy_count = 0;
        make_source();
        make_connection();
        begin_daemon();
        first = lowest_free();
        mode = take_byte();
        shared->network = (mode & 1) != 0;
        if ((mode & 2) != 0)
                shared->node_descriptors += DESCRIPTORS_MAX; /* nodes are held by their file handles */
        shared->mappable = (mode & 4) != 0;
        shared->checked = shared->mappable && !shared->network;
        take(&init.flags, sizeof init.flags);
        take(&init.flags2, sizeof init.flags2);
        begin_request(FUSE_INIT, 0, 0);
        put(&init, sizeof init);
        fuzz_check(send_request(/* answered= */ true, false, 0) == 0);
        for (int i = 0; input.size > 0 && i < REQUESTS_MAX; i++)
                one_request();

        end_waiting();
        while (files_count > 0)
                release(0);
        while (known_count > 0)
                forget(0, UINT64_MAX);
        /* libfuse keeps an interrupt that came too late until it is asked something else */
        for (; interrupts > 0; interrupts--) {
                begin_request(FUSE_STATFS, FUSE_ROOT_ID, 0);
                fuzz_check(send_request(/* answered= */ true, false, 0) == 0);
        }
        /* nothing is left of it */
        fuzz_check(shared->open_descriptors == 0);
        for (uint32_t i = FUSE_ROOT_ID + 1; i < shared->nodes_high; i++)
                fuzz_check(!shared->nodes[i].used);
        fuse_session_destroy(session);
        fuzz_check(dup2(FD_LOCK, FD_FUSE) == FD_FUSE); /* which that closed */
        fuzz_check(caller_become(0, 0) == 0);
        caller_umask(022);
        fuzz_check(lowest_free() == first);
        return 0;
}
