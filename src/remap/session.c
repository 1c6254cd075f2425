/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "caches.h"
#include "caller.h"
#include "caller_ids.h"
#include "closing.h"
#include "files.h"
#include "fuse_library.h"
#include "handles.h"
#include "interrupts.h"
#include "locks.h"
#include "newer.h"
#include "nodes.h"
#include "operation.h"
#include "operations.h"
#include "passthrough.h"
#include "removed.h"
#include "request.h"
#include "shared.h"
#include "waiters.h"

static struct fuse_session *session;
static void (*report)(int r);

/* libfuse requires this function; requests are read by threads.c instead, each slot into its own buffer. */
static ssize_t receive(int fd, void *buffer, size_t size, void *ignored)
{
        (void)ignored;
        return read(fd, buffer, size);
}

/* The kernel's own, or about what is open already. */
static bool is_nobodys(uint32_t operation)
{
        return operation == FUSE_INIT || operation == FUSE_DESTROY || operation == FUSE_FORGET ||
               operation == FUSE_BATCH_FORGET || operation == FUSE_INTERRUPT || operation == FUSE_READ ||
               operation == FUSE_RELEASE || operation == FUSE_RELEASEDIR;
}

/* Find who asks. A request that makes an inode has ids already: those that the inode gets. */
static void note_asker(struct fuse_in_header *header)
{
        const struct caller_ids *ids = caller_ids_find((pid_t)header->pid);

        request_note_asker(ids);
        if (header->uid == (uint32_t)-1) {
                header->uid = ids->uid;
                header->gid = ids->gid;
        }
}

void session_process(struct fuse_in_header *header, size_t size)
{
        struct fuse_buf buffer = { .size = size };
        uint32_t operation = header->opcode;
        union newer_copy copy;

        request_start(header);
        if (shared->mappable && !shared->checked && !is_nobodys(operation))
                note_asker(header);
        if (operation == FUSE_INIT && size <= INIT_SIZE) {
                (void)memcpy(shared->init, header, size);
                shared->init_size = (uint32_t)size;
        }
        /* done at once, not repeated after a crash: forgetting twice is worse than never forgetting. Of many, which the next
         * daemon goes on with, each (names_forget_multi()). An interrupt may be told twice */
        if (operation == FUSE_FORGET)
                __atomic_store_n(&header->len, 0, __ATOMIC_RELEASE);
        buffer.mem = newer_translate(header, size, &copy);
        if (buffer.mem != NULL)
                fuse_session_process_buf(session, &buffer);
        else
                answer_error(header->unique, ENOMEM);
        if (operation == FUSE_INIT) {
                shared->served = true;
                report(shared->mappable && !shared->mapped ? -EOPNOTSUPP : 0);
        }
        request_finish();
        __atomic_store_n(&header->len, 0, __ATOMIC_SEQ_CST);
        closing_done_of(header);
}

void session_greet(void)
{
        uint8_t request[INIT_SIZE];
        struct fuse_buf buffer = { .mem = request, .size = shared->init_size };

        (void)memcpy(request, shared->init, shared->init_size);
        answer_withhold(true);
        fuse_session_process_buf(session, &buffer);
        answer_withhold(false);
}

void session_is_ready(void)
{
        if (!shared->mappable || shared->served)
                report(0); /* else when the kernel has said what it can */
}

static void say_nothing(enum fuse_log_level level, const char *format, va_list arguments)
{
        (void)level;
        (void)format;
        (void)arguments;
}

int session_begin(void (*ready)(int r))
{
        static const struct fuse_custom_io io = { .writev = answer_send, .read = receive };
        char name[] = "flexgraft";
        char *words[] = { name, NULL };
        struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
        int r;

        report = ready;
        interrupts_begin();
        closing_begin(waiters_have);
        files_begin();
        request_use_slot(-1);
        fuse_set_log_func(say_nothing); /* standard error is not ours */
        if ((r = caller_ids_begin()) < 0 || (r = nodes_begin()) < 0 || (r = operation_begin_links()) < 0 ||
            (r = caller_begin()) < 0)
                return r;
        session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
        if (session == NULL || fuse_session_custom_io(session, &io, FD_FUSE) < 0)
                return -ENOMEM;
        passthrough_begin();
        if ((r = caches_begin()) < 0)
                return r;
        removed_begin();
        return locks_begin(handles_begin_root);
}
