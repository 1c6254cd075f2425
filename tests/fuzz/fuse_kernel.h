/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse_kernel.h - the kernel's side of /dev/fuse, for fuse_requests.c: which nodes and open files it knows, how it writes
 * a request, and what must hold of every answer.
 */
#ifndef FLEXGRAFT_FUZZ_FUSE_KERNEL_H
#define FLEXGRAFT_FUZZ_FUSE_KERNEL_H

#include "fuzz.h"

#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/socket.h>

#include "remap/session.c" /* without threads.c: session_process() is given the requests here */

#define KNOWN_MAX 64
#define OPEN_MAX 32
#define BUSY_MAX 16
#define DATA_MAX 4096
#define FD_KERNEL FD_REPORT /* the other end of FD_FUSE */
#define ANSWER_MAX ((size_t)256 * 1024)
#define ANSWER_MS 5000 /* a request that need not wait has its answer by then */

struct shared *shared;

static struct {
        const uint8_t *data;
        size_t size;
} input;

/* What the kernel would know. */
static struct {
        uint64_t number;
        uint64_t lookups;
} known[KNOWN_MAX];
static struct {
        uint64_t number;
        uint64_t handle;
        bool directory;
} files[OPEN_MAX];
static uint64_t busy[BUSY_MAX]; /* requests that wait for a lock */
static int known_count, files_count, busy_count;
static int interrupts; /* sent */
static uint64_t unique;
static bool long_setxattr;

static void take(void *to, size_t size)
{
        size_t some = size < input.size ? size : input.size;

        memset(to, 0, size);
        memcpy(to, input.data, some);
        input.data += some;
        input.size -= some;
}

static unsigned take_byte(void)
{
        uint8_t byte;

        take(&byte, 1);
        return byte;
}

/* ---- a request */

static struct fuse_in_header *out;

static void put(const void *from, size_t size)
{
        memcpy((char *)out + out->len, from, size);
        out->len += (uint32_t)size;
}

/* A structure of the input, with its open file put in. */
#define PUT(type, ...)                                                                                                 \
        do {                                                                                                           \
                struct type arguments;                                                                                 \
                take(&arguments, sizeof arguments);                                                                    \
                __VA_ARGS__;                                                                                           \
                put(&arguments, sizeof arguments);                                                                     \
        } while (0)

static void put_name(bool link_target)
{
        char name[NAME_MAX + 1];
        size_t length = 0;
        char letter = '\0';

        while (length < NAME_MAX && (take(&letter, 1), letter != '\0'))
                name[length++] = letter == '/' && !link_target ? '_' : letter;
        if (length == 0)
                name[length++] = 'n';
        /* "." and ".." are looked up by NFS servers only */
        if (!link_target && out->opcode != FUSE_LOOKUP && name[0] == '.' &&
            (length == 1 || (length == 2 && name[1] == '.')))
                name[0] = '_';
        name[length] = '\0';
        put(name, length + 1);
}

/* Data after a structure that says how much it is. */
static uint32_t put_data(void)
{
        static uint8_t data[DATA_MAX];
        uint16_t size;

        take(&size, sizeof size);
        size %= DATA_MAX + 1;
        take(data, size);
        put(data, size);
        return size;
}

static uint64_t a_node(unsigned byte)
{
        unsigned which = byte % (unsigned)(known_count + 2);

        return which == 0 ? FUSE_ROOT_ID : which <= (unsigned)known_count ? known[which - 1].number : NODES_MAX + 7UL;
}

/* ---- answers */

static void looked_up(const struct fuse_entry_out *entry)
{
        fuzz_check(entry->nodeid != 0);
        if (entry->nodeid == FUSE_ROOT_ID)
                return;
        for (int i = 0; i < known_count; i++)
                if (known[i].number == entry->nodeid) {
                        known[i].lookups++;
                        return;
                }
        fuzz_check(known_count < KNOWN_MAX);
        known[known_count].number = entry->nodeid;
        known[known_count++].lookups = 1;
}

static void opened(uint64_t number, const struct fuse_open_out *answer, bool directory)
{
        fuzz_check(files_count < OPEN_MAX);
        fuzz_check(answer->fh >= FD_OWN);
        for (int i = 0; i < files_count; i++)
                fuzz_check(files[i].handle != answer->fh);
        files[files_count].number = number;
        files[files_count].directory = directory;
        files[files_count++].handle = answer->fh;
}

static void forget(int which, uint64_t count);

/* For one more node: fewer files are open than nodes known. */
static void make_room(void)
{
        for (int i = 0; known_count == KNOWN_MAX; i++)
                forget(i, UINT64_MAX);
}

static void note_entries(const char *data, size_t size)
{
        while (size > 0) {
                const struct fuse_direntplus *entry = (const void *)data;
                size_t length;

                fuzz_check(size >= FUSE_NAME_OFFSET_DIRENTPLUS);
                length = FUSE_DIRENTPLUS_SIZE(entry);
                fuzz_check(entry->dirent.namelen > 0 && length <= size);
                if (entry->entry_out.nodeid != 0) {
                        struct fuse_entry_out copy = entry->entry_out;

                        make_room();
                        looked_up(&copy);
                }
                data += length;
                size -= length;
        }
}

static void note_answer(uint32_t opcode, uint64_t number, uint32_t asked, const char *data, size_t size)
{
        switch (opcode) {
        case FUSE_LOOKUP:
        case FUSE_MKNOD:
        case FUSE_MKDIR:
        case FUSE_SYMLINK:
        case FUSE_LINK:
                fuzz_check(size == sizeof(struct fuse_entry_out));
                looked_up((const void *)data);
                break;
        case NEWER_TMPFILE:
        case FUSE_CREATE:
                fuzz_check(size == sizeof(struct fuse_entry_out) + sizeof(struct fuse_open_out));
                looked_up((const void *)data);
                opened(((const struct fuse_entry_out *)(const void *)data)->nodeid,
                       (const void *)(data + sizeof(struct fuse_entry_out)), /* directory= */ false);
                break;
        case FUSE_OPEN:
        case FUSE_OPENDIR:
                fuzz_check(size == sizeof(struct fuse_open_out));
                opened(number, (const void *)data, opcode == FUSE_OPENDIR);
                break;
        case FUSE_GETATTR:
        case FUSE_SETATTR:
                fuzz_check(size == sizeof(struct fuse_attr_out));
                break;
        case NEWER_STATX:
                fuzz_check(size == sizeof(struct newer_statx));
                break;
        case FUSE_IOCTL:
                fuzz_check(size >= sizeof(struct fuse_ioctl_out) && size - sizeof(struct fuse_ioctl_out) == asked);
                break;
        case FUSE_READDIRPLUS:
                fuzz_check(size <= asked);
                note_entries(data, size);
                break;
        case FUSE_READ:
        case FUSE_READDIR:
                fuzz_check(size <= asked);
                break;
        case FUSE_GETXATTR:
        case FUSE_LISTXATTR:
                fuzz_check(asked == 0 ? size == sizeof(struct fuse_getxattr_out) : size <= asked);
                break;
        case FUSE_WRITE:
        case FUSE_COPY_FILE_RANGE:
                fuzz_check(size == sizeof(struct fuse_write_out));
                fuzz_check(((const struct fuse_write_out *)(const void *)data)->size <= asked);
                break;
        default:
                break;
        }
}

/* One answer; false: there is none. Those of requests that had to wait come at any time. */
static bool receive_answer(uint64_t of, int flags, struct fuse_out_header **ret_answer)
{
        static union {
                struct fuse_out_header head;
                char bytes[ANSWER_MAX];
        } answer __attribute__((aligned(8)));
        ssize_t n;

        for (;;) {
                bool waited = false;

                n = recv(FD_KERNEL, &answer, sizeof answer, flags);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return false;
                fuzz_check(n >= (ssize_t)sizeof answer.head && answer.head.len == (size_t)n);
                if (answer.head.unique == 0) { /* nothing was asked: the kernel is told what it must not cache */
                        fuzz_check(answer.head.error == FUSE_NOTIFY_INVAL_INODE);
                        fuzz_check(n == sizeof answer.head + sizeof(struct fuse_notify_inval_inode_out));
                        continue;
                }
                fuzz_check(answer.head.error <= 0 && answer.head.error > -512);
                fuzz_check(answer.head.error == 0 || n == sizeof answer.head);
                if ((answer.head.unique & 1) != 0) { /* an interrupt of a request that has its answer */
                        fuzz_check(answer.head.error == -EAGAIN);
                        continue;
                }
                for (int i = 0; i < busy_count && !waited; i++)
                        if (busy[i] == answer.head.unique) {
                                busy[i] = busy[--busy_count];
                                waited = true;
                        }
                if (waited)
                        return false;
                fuzz_check(answer.head.unique == of); /* each request has one answer */
                *ret_answer = &answer.head;
                return true;
        }
}

/* ---- what the kernel does */

static void begin_request(uint32_t opcode, uint64_t number, unsigned caller)
{
        static const uint32_t ids[] = { 0, 1000, 65534, UINT32_MAX };

        out = request_buffer(0);
        shared->answer_sizes[0] = 0;
        shared->changing[0] = false;
        *out = (struct fuse_in_header){ .len = sizeof *out,
                                        .opcode = opcode,
                                        .unique = unique += 2,
                                        .nodeid = number,
                                        .uid = ids[caller % 4],
                                        .gid = ids[caller / 4 % 4],
                                        .pid = (caller & 16) != 0 ? (uint32_t)getpid() : 0 };
}

/* Returns the answer's error; 1: it may wait for a lock. */
static int send_request(bool answered, bool may_wait, uint32_t asked)
{
        const struct fuse_in_header sent = *out;
        struct fuse_out_header *answer;

        session_process(out, out->len);
        if (!answered)
                return 0;
        while (!receive_answer(sent.unique, MSG_DONTWAIT, &answer)) {
                struct pollfd fd = { .fd = FD_KERNEL, .events = POLLIN };
                /* a lock that was granted is answered by the thread that drops pages */
                int ready = poll(&fd, 1, may_wait ? 0 : ANSWER_MS);

                if (ready > 0 || (ready < 0 && errno == EINTR)) /* the fuzzer's alarm */
                        continue;
                fuzz_check(may_wait);
                busy[busy_count++] = sent.unique;
                return 1;
        }
        if (answer->error == 0)
                note_answer(sent.opcode, sent.nodeid, asked, (const char *)(answer + 1), answer->len - sizeof *answer);
        if (sent.opcode == FUSE_INIT && answer->error == 0)
                long_setxattr =
                        (((const struct fuse_init_out *)(const void *)(answer + 1))->flags & FUSE_SETXATTR_EXT) != 0;
        return answer->error;
}

static void forget(int which, uint64_t count)
{
        struct fuse_forget_in arguments = { .nlookup = count < known[which].lookups ? count : known[which].lookups };
        struct fuse_in_header *interrupted = out;

        for (int i = 0; i < files_count; i++)
                if (files[i].number == known[which].number)
                        return; /* an open file is not forgotten */
        begin_request(FUSE_FORGET, known[which].number, 0);
        put(&arguments, sizeof arguments);
        known[which].lookups -= arguments.nlookup;
        if (known[which].lookups == 0)
                known[which] = known[--known_count];
        (void)send_request(/* answered= */ false, false, 0);
        out = interrupted;
}

static void interrupt_one(int which)
{
        struct fuse_interrupt_in arguments = { .unique = busy[which] };

        begin_request(FUSE_INTERRUPT, 0, 0);
        put(&arguments, sizeof arguments);
        out->unique = busy[which] + 1;
        interrupts++;
        (void)send_request(/* answered= */ false, false, 0);
}

static void end_waiting(void)
{
        while (busy_count > 0) {
                struct pollfd fd = { .fd = FD_KERNEL, .events = POLLIN };
                struct fuse_out_header *ignored;
                int ready;

                for (int i = 0; i < busy_count; i++)
                        interrupt_one(i);
                while ((ready = poll(&fd, 1, ANSWER_MS)) < 0) /* the fuzzer's alarm */
                        fuzz_check(errno == EINTR);
                fuzz_check(ready > 0); /* a request that is interrupted is answered */
                while (receive_answer(0, MSG_DONTWAIT, &ignored))
                        ;
        }
}

static void release(int which)
{
        struct fuse_release_in arguments = { .fh = files[which].handle, .lock_owner = 1 };

        end_waiting(); /* the kernel releases no file that a request uses */
        begin_request(files[which].directory ? FUSE_RELEASEDIR : FUSE_RELEASE, files[which].number, 0);
        put(&arguments, sizeof arguments);
        files[which] = files[--files_count];
        fuzz_check(send_request(/* answered= */ true, false, 0) == 0);
}

#endif
