/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the answer of a verb, as kubelet expects it.
 *
 * Run from no driver's directory, as csi-driver runs it, a failure has the "error" of the other programs, too.
 *
 * A failure exits 0, too: kubelet logs the whole command line, with secrets, of a driver that exits otherwise.
 */
#ifndef FLEXGRAFT_VOLUME_REPLY_H
#define FLEXGRAFT_VOLUME_REPLY_H

#include "base/error.h"
#include "base/key.h"
#include "process/usage.h"
#include "volume/call.h"
#include "volume/request.h"
#include "volume/verbs.h"

/* What volume_reply_success() may say, and init; its programs are a bit for each verb (enum verb). */
extern const struct key_table volume_success_keys;

/* Each prints one line, closes standard input, output and error, and returns the program's exit status. */
int volume_reply_init(const char *driver);
int volume_reply_success(const struct volume_call *call);
int volume_reply_failure(const struct volume_request *request, const struct error *error);

/* ---- what the driver's verbs take and reply, for --help and --schema */

#define VOLUME_SCHEMA(name, word, letters, arguments, traits) extern const struct schema volume_schema_##name;
VOLUME_VERBS(VOLUME_SCHEMA)

/* VERB_USAGE(word, NAME, about) - what --help says of a verb. */
#define VERB_USAGE(word, NAME, about_verb)                                                                             \
        {                                                                                                              \
                .name = #word, .arguments = VERB_ARGUMENTS_##NAME,                                                     \
                .about = about_verb "\nA verb of the FlexVolume driver: kubelet runs it through flexdriver.",          \
                .schema = &volume_schema_##NAME,                                                                       \
                .exit_status = "Exit status: 0 done or failed, as \"status\" says; 1 not supported. Needs root."       \
        }

#endif
