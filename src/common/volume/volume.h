/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume.h - the verbs on one volume, each in the file of its name: attach.c, stage.c, publish.c, unpublish.c, expand.c.
 */
#ifndef FLEXGRAFT_VOLUME_VOLUME_H
#define FLEXGRAFT_VOLUME_VOLUME_H

#include "process/program.h"
#include "volume/call.h"

/*
 * ---- a volume's device on this node: attach, waitforattach, isattached, detach
 *
 * The controller may call attach for another node. Then nothing is changed here, and the answer is the path that the
 * device will have there; waitforattach, on that node, attaches it.
 */
int volume_attach(struct volume_call *call, struct error *error);
int volume_wait_for_attach(struct volume_call *call, struct error *error);
int volume_is_attached(struct volume_call *call, struct error *error);
int volume_detach(struct volume_call *call, struct error *error);

/* volume_detach_recorded() - detach, for a call whose record is open and on disk, and whose kind is known. */
int volume_detach_recorded(struct volume_call *call, struct error *error);

/* ---- mountdevice: mount a volume's filesystem once for this node, on kubelet's global directory */

/*
 * volume_stage() - attach the volume where it is not yet attached; make a filesystem on a blank device, or repair the one
 * that it has; mount it. For a kind without a device it does nothing.
 */
int volume_stage(struct volume_call *call, struct error *error);

/* volume_stage_attached() - the same, for a call whose record is open and whose kind is known. */
int volume_stage_attached(struct volume_call *call, struct error *error);

/* ---- mount: a staged volume, or one that needs no staging, onto a pod's directory */

/* volume_publish() - with this pod's mount attributes, as nosuid and nodev; read-only is for this pod alone, too. */
int volume_publish(struct volume_call *call, struct error *error);

/* volume_publish_attached() - the same, for a call whose record is open and whose kind is known. */
int volume_publish_attached(struct volume_call *call, struct error *error);

/* ---- unmount and unmountdevice: a directory without the volume that is mounted there */

/* volume_unpublish() - unmount. */
int volume_unpublish(struct volume_call *call, struct error *error);

/* volume_unstage() - unmountdevice; where the volume was wrapped, its own filesystem is unmounted next. */
int volume_unstage(struct volume_call *call, struct error *error);

/*
 * volume_unwrap() - with the volume's record and its lock: unmount what the volume was wrapped in, if it is not in use.
 * The lock is released then (state_release()).
 */
int volume_unwrap(struct volume_call *call, struct error *error);

/*
 * volume_unmount() - the work of both: unmount everything on request->dir and below it, remove the directories that
 * were made for it, and forget it in the record.
 */
int volume_unmount(struct volume_call *call, struct error *error);

/* ---- expandvolume and expandfs: grow a volume's image or device, and the mounted filesystem on it */

/* volume_expand() - grow the device; it never shrinks. A volume that is on another node is grown there, by expandfs. */
int volume_expand(struct volume_call *call, struct error *error);

/* volume_expand_fs() - grow the device, unless it is large enough, and the filesystem mounted on request->dir. */
int volume_expand_fs(struct volume_call *call, struct error *error);

/* ---- verb_main.c: the one body of the verbs that act on a volume */

/* volume_verb_main() - one call, one reply. function: what the verb does, run by a worker. Returns the program's exit status. */
int volume_verb_main(const struct program *program, enum verb verb, volume_function *function, int argc, char **argv);

#endif
