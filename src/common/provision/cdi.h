/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cdi.h - the files by which container engines know volumes as devices (Container Device Interface): flexgraft.json in
 * "cdiDir" has a device for each volume, flexgraft-storage.json the device "annotated". A device is a hook, mount-hook,
 * which mounts before the container's first instruction.
 *
 * The files are made by cdi_write(), once; while they are there, every volume that is made or deleted rewrites them.
 */
#ifndef FLEXGRAFT_PROVISION_CDI_H
#define FLEXGRAFT_PROVISION_CDI_H

#include <jansson.h>

#include "base/error.h"
#include "base/key.h"
#include "pool/record.h"
#include "state/config.h"

/* What cdi_write() replies. */
extern const struct key_table cdi_reply_keys;

#define CDI_TARGET_DIR "/volumes" /* a volume "db" without a "target" is mounted on /volumes/db */

/*
 * cdi_write() - write both files: what records say now. Each is replaced as a whole.
 *
 * Needs:   to write in cdiDir; CAP_DAC_OVERRIDE where that is not root's.
 * Gives:   ret_reply: the reply, owned by the caller; NULL: not wanted.
 * Returns: 1 something was written, 0 it says so already, or negative errno.
 * Errors:  ENOENT mount-hook is not installed beside the program; those of opening, and of writing files.
 * Source:  https://github.com/cncf-tags/container-device-interface, its specification 0.5.0.
 */
int cdi_write(const struct config *config, json_t **ret_reply, struct error *error);

/*
 * cdi_begin_change() - note on disk that the volume's record is about to change, if there are files of ours; a process
 * that is killed leaves the note. cdi_settle() - the record has changed, or a killed process left a note: write.
 * state: of the records. A file that cannot be written is logged, and fails nothing.
 */
void cdi_begin_change(const struct config *config, const struct state *state, const char *name);
void cdi_settle(const struct config *config, struct state *state, const char *name);

/* cdi_agree() - write them if there are any. Returns what cdi_write() does. */
int cdi_agree(const struct config *config, struct error *error);

#endif
