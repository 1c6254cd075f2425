/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - names and ids of CSI in the words of volume-create, and the tokens of long lists.
 */
#ifndef FLEXGRAFT_CSI_NAMES_H
#define FLEXGRAFT_CSI_NAMES_H

#include <stdbool.h>

#define CSI_VOLUME_NAME_SIZE 256 /* terminated */

/*
 * csi_volume_name() - what a volume or a snapshot of that name or id is called in requests of the volume tools.
 *
 * That is the name itself, whatever characters it has, where the tools take it: 1 to 255 bytes of UTF-8 without control
 * characters. Else it is "csi-" and a hash, the same for the same name; it is the volume's id, too, and its own name.
 * Takes: csi_name, not empty. Gives: ret_name, of CSI_VOLUME_NAME_SIZE bytes.
 */
void csi_volume_name(const char *csi_name, char *ret_name);

/* csi_new_name() - likewise of a volume that is to be made: without the character that separates the parts of share.h. */
void csi_new_name(const char *csi_name, char *ret_name);

/*
 * csi_token() - where a list goes on that was given up to a name. Gives: ret_token, of CSI_TOKEN_SIZE bytes.
 * csi_token_name() - the name of a token, borrowed from it; NULL: it is none of csi_token().
 *
 * The rest of the list is what sorts after that name, so that a token outlives the volume that it names.
 */
#define CSI_TOKEN_SIZE (CSI_VOLUME_NAME_SIZE + 20)
void csi_token(const char *name, char *ret_token);
const char *csi_token_name(const char *token);

#endif
