/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awaited.h - what a call may wait for: a server, by whatever names it, else the pool or the profile. One that does not
 * answer is to leave places to the calls for others (run.h).
 *
 * One server has one number where it is spelled in one way, capital letters or not, without regard to what its addresses
 * are. Two numbers for one server have it take twice its places, and no more.
 */
#ifndef FLEXGRAFT_CSI_AWAITED_H
#define FLEXGRAFT_CSI_AWAITED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct awaited {
        uint64_t number; /* stands for it; 0: a server that nobody knows, or none */
        uint64_t
                author; /* the Kubernetes namespace of an inline volume, whose author may name any number of servers; 0: none */
        bool perhaps; /* it is a pool or a profile, which may be of this node: only their files say */
};
#define AWAITED_NOTHING ((struct awaited){})

/*
 * awaited_begin() - before the privileges are dropped: open the table of mounts of this process's mount namespace, which
 * awaited_mount() reads. It stays open.
 */
int awaited_begin(struct error *error);

/*
 * awaited_server(), awaited_pool(), awaited_profile() - by a name; NULL: nothing.
 *
 * The others give it in ret, which is AWAITED_NOTHING before, and return whether there is a server:
 * awaited_source() - the host of "host:/path"; false, and nothing given, where it is no such text.
 * awaited_id()     - the server of an id of share.h; false: it is none.
 * awaited_mount()  - the server of what is mounted on a volume's path, as awaited_note() has it; where that was said to an
 *                    earlier driver, as the kernel's table says, whose length this costs once. It waits for no server.
 *                    False: nothing is mounted there, or its source names no server.
 */
struct awaited awaited_server(const char *name);
struct awaited awaited_pool(const char *name);
struct awaited awaited_profile(const char *name);
bool awaited_source(const char *source, struct awaited *ret);
bool awaited_id(const char *id, struct awaited *ret);
bool awaited_mount(const char *path, struct awaited *ret);

/* awaited_note() - what is being mounted on a path waits for that. awaited_forget() - nobody knows for which server. */
void awaited_note(const char *path, struct awaited awaited);
void awaited_forget(const char *path);

#endif
