/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awaited.h - what a call may wait for: a server, by whatever names it, else the pool or the profile. One that does not
 * answer is to leave places to the calls for others (run.h).
 *
 * One server has one text where it is spelled in one way: small letters, without regard to what its addresses are. Two
 * texts for one server have it take twice its places, and no more.
 */
#ifndef FLEXGRAFT_CSI_AWAITED_H
#define FLEXGRAFT_CSI_AWAITED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "call.h"

/*
 * awaited_begin() - before the privileges are dropped: open the table of mounts of this process's mount namespace, which
 * awaited_mount() reads. It stays open.
 */
int awaited_begin(struct error *error);

/*
 * Each gives the text in ret_server, of CALL_SERVER_SIZE bytes; what is too long is cut.
 *
 * awaited_server(), awaited_pool(), awaited_profile() - by a name; NULL: "".
 * awaited_source() - the host of "host:/path". Returns false, and gives nothing, where it is no such text.
 * awaited_id()     - the server of an id of share.h; false: it is none.
 * awaited_mount()  - the server of what is mounted on a volume's path, as awaited_note() has it; where that was said to an
 *                    earlier driver, as the kernel's table says, whose length this costs once. It waits for no server.
 *                    False: nothing is mounted there, or its source names no server.
 */
void awaited_server(const char *name, char *ret_server);
void awaited_pool(const char *name, char *ret_server);
void awaited_profile(const char *name, char *ret_server);
bool awaited_source(const char *source, char *ret_server);
bool awaited_id(const char *id, char *ret_server);
bool awaited_mount(const char *path, char *ret_server);

/*
 * awaited_note() - what is being mounted on a path waits for that server; "": for none. awaited_forget() - nobody knows for
 * which.
 */
void awaited_note(const char *path, const char *server);
void awaited_forget(const char *path);

/*
 * awaited_number() - what stands for such a text; "": 0. awaited_is_perhaps() - whether it is a pool's or a profile's, which
 * may be of this node: only their files say.
 */
uint64_t awaited_number(const char *server);
bool awaited_is_perhaps(const char *server);

#endif
