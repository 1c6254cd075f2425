/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - the FUSE request that a thread answers, and the buffer (slot) that it reads requests into.
 *
 * The buffers are in shared memory. When a daemon is killed, the next one finds in them the requests that were not
 * answered, and does these again: they are "replayed".
 */
#ifndef FLEXGRAFT_REMAP_REQUEST_H
#define FLEXGRAFT_REMAP_REQUEST_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "caller_ids.h"
#include "shared.h"

#define ANSWER_KEPT (ANSWER_SIZE - 32) /* of the place for an answer; behind it are notes of the request */
#define REQUEST_FILES_MAX 2

/* Requests that libfuse 3.14 does not know (newer.h). */
enum {
        NEWER_TMPFILE = FUSE_TMPFILE, /* Linux 6.1: as FUSE_CREATE; the name is "/" */
        NEWER_STATX = 52,             /* Linux 6.6: as FUSE_GETATTR, and which attributes are wanted */
        NEWER_COPY = 53, /* Linux 6.18: as FUSE_COPY_FILE_RANGE; the answer's size has 64 bits (docs/KERNEL.md) */
};

/* request_buffer() - the buffer of a slot. Its request's len is 0 when there is none, or it is answered. */
struct fuse_in_header *request_buffer(int slot);

/* request_use_slot() - this thread reads requests into that buffer; -1: into none. */
void request_use_slot(int slot);

/* request_slots() - beyond these no slot was used: to look there takes memory for its buffer. */
int request_slots(void);

/* request_slot() - the slot of this thread, -1: none. */
int request_slot(void);

/* request_length() - of what is read or written. */
size_t request_length(const struct fuse_in_header *header);

/*
 * request_takes_long() - whether another thread is woken to read meanwhile. For other requests watch_listener() of threads.c
 * does that when needed: a wakeup costs more than a small file's content.
 */
bool request_takes_long(const struct fuse_in_header *header);

/* request_start(), request_finish() - this thread answers that request; it has answered it. */
void request_start(struct fuse_in_header *header);
void request_finish(void);

/* request_note_asker() - what was found of who makes this request; request_asker() - that, or NULL. Borrowed. */
void request_note_asker(const struct caller_ids *ids);
const struct caller_ids *request_asker(void);

/* request_current() - the request that this thread answers; NULL: none. */
const struct fuse_in_header *request_current(void);

/* request_replay() - whether the next requests of this thread are those of an earlier daemon. */
void request_replay(bool replayed);

/* request_replayed() - whether an earlier daemon may already have done this thread's request. */
bool request_replayed(void);

/* request_changes() - record that this thread is about to do what its request asks for. */
void request_changes(void);

/* request_may_have_changed() - whether an earlier daemon recorded that for the request that this thread does again. */
bool request_may_have_changed(void);

/*
 * request_note_file() - record which file a name is before that changes.
 * request_noted() - whether an earlier daemon recorded one for the request that this thread does again.
 * request_noted_another() - whether that is another file.
 */
void request_note_file(const struct stat *st);
bool request_noted(void);
bool request_noted_another(const struct stat *st);

/*
 * request_note_opened() - record the descriptor that this thread's answer will tell the kernel, before it is USE_OPEN.
 * request_take_untold() - that of the request in a slot which the last daemon did not come to answer; -1: there is none.
 */
void request_note_opened(int fd);
int request_take_untold(int slot);

/* request_keep() - move this thread's request, to be answered later, out of its buffer; false when it is too long. */
bool request_keep(uint8_t ret_copy[WAITER_SIZE]);

/*
 * request_give_up() - the caller of that request gets an answer before its thread has one: it may end, and its number
 * become another's. No daemon repeats it. False: it was answered meanwhile, or moved out of its buffer (request_keep()), and
 * that thread knows.
 *
 * request_was_given_up() - whether that is so of the request in a slot; request_given_up() - of this thread's.
 */
bool request_give_up(int slot, uint64_t unique);
bool request_was_given_up(int slot);
bool request_given_up(void);

/* request_files() - the descriptors of open files that a request names. Returns how many. */
int request_files(const struct fuse_in_header *header, int ret_fds[REQUEST_FILES_MAX]);

/* request_pass_through() - this thread's next answer names a registration for passthrough; 0: none. */
void request_pass_through(int backing);

/* request_take_backing() - the registration for this answer; the next answer has none. */
int request_take_backing(void);

#endif
