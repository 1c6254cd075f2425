/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caches.h - what the container's kernel remembers of a file: its attributes and its pages.
 *
 * A process that opens a file must see what others wrote before they closed it, and one that gets a lock what they
 * wrote before they released theirs (as on NFS). So both are dropped at these moments. A time and a size do not tell
 * whether they are still right: a file can change twice within one tick of its filesystem's clock.
 */
#ifndef FLEXGRAFT_REMAP_CACHES_H
#define FLEXGRAFT_REMAP_CACHES_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "shared.h"

/* caches_begin() - start the thread that drops pages. Returns 0 or negative errno. */
int caches_begin(void);

/*
 * caches_rest() - run function() while that thread holds no mutex. False: not done, as it has one until that time (CLOCK_MONOTONIC),
 * since a server does not answer.
 */
bool caches_rest(void (*function)(void), const struct timespec *until);

/* caches_state() - what a file's attributes tell of its content; caches_same() - whether that is the same. */
struct file_state caches_state(const struct stat *st);
bool caches_same(const struct file_state *one, const struct file_state *other);

/* caches_nanoseconds() - a time, as the struct has it. */
int64_t caches_nanoseconds(const struct timespec *time);

/* caches_drop_attributes() - at once. */
void caches_drop_attributes(struct node *node);

/* caches_tell() - note that this answer tells a thread in the container the attributes of a file. */
void caches_tell(struct node *node, pid_t thread, const struct stat *st);

/* caches_tell_owner() - only who owns it, and whether set-id bits count: what caches_tell() does, too. */
void caches_tell_owner(struct node *node, const struct stat *st);

/*
 * caches_owner_is_known() - whether the kernel, when it checked what this thread asks for, knew the owner that it was told last.
 * It may have ignored that: then it goes on with one that it was told before (docs/KERNEL.md). False: the thread asks once
 * more, by the file's name, as the kernel does by itself for ESTALE; until then nobody can be believed.
 */
bool caches_owner_is_known(struct node *node, pid_t thread, const struct stat *st);

/*
 * caches_name_goes() - before a name is removed, and when that is answered: the kernel ignores what is told of its file meanwhile.
 *
 * caches_set_owner() - the kernel is about to be told a file's owner by the answer to FUSE_SETATTR, which it never ignores;
 * caches_owner_was_set() - and whether it took that answer.
 */
void caches_name_goes(void);
void caches_set_owner(struct node *node, const struct stat *st);
void caches_owner_was_set(struct node *node, bool answered);

/*
 * caches_note() - note a file's size and times, where nobody else changes it: there caches_tell() does not. True: they are
 * others than the last ones.
 */
bool caches_note(struct node *node, const struct stat *st);

/*
 * caches_note_mapped() - note that a file that is passed through, and that nobody else changes, may be mapped to be written: no
 * request tells of that, also when it is closed. caches_may_be_mapped() - whether it may, until its node is gone.
 */
void caches_note_mapped(struct node *node);
bool caches_may_be_mapped(const struct node *node);

/*
 * caches_note_set_id() - note a file's set-id bits. True: it has none that count, and the kernel may believe some that it was
 * told; the caller drops the attributes.
 */
bool caches_note_set_id(struct node *node, const struct stat *st);

/*
 * caches_know_no_set_id() - whether the kernel believes none for certain: it was told none since it was told the first
 * attributes, or since the last ones were dropped. What shows some was looked at before a write that takes them, and the
 * kernel ignores that.
 */
bool caches_know_no_set_id(const struct node *node);

/*
 * caches_has_mode_of_locking() - whether a file (its descriptor, which may be O_PATH) has S_ISGID and may not be executed by its
 * group, as files of mandatory locking had (Linux 5.15 dropped that). As told last; only where nothing was told it is asked.
 */
bool caches_has_mode_of_locking(struct node *node, int fd);

/*
 * caches_begin_writing() - note that the container has the file open for writing. caches_end_writing() - no more. When a
 * thread there writes, the kernel ignores what others were told meanwhile.
 */
void caches_begin_writing(struct node *node);
void caches_end_writing(struct node *node);

/* caches_have_attributes() - whether the kernel has these size and times already, when that thread asks. */
bool caches_have_attributes(const struct node *node, pid_t thread, const struct stat *st);

/*
 * caches_have_pages() - whether the kernel may have pages of its own that others would have to see, or that others made
 * wrong: not while it uses the source's (passthrough).
 */
bool caches_have_pages(const struct node *node);

/* What to do when the pages are dropped. The caller allocates it; then() frees it. */
struct caches_job {
        struct caches_job *next;
        uint64_t node;
        void (*then)(struct caches_job *job);
};

/*
 * caches_drop() - write mapped pages back, drop all pages and the attributes of job->node, then call job->then().
 *
 * Another thread does so: the kernel waits until the reads and writes of these pages are answered, which needs threads.
 */
void caches_drop(struct caches_job *job);

#endif
