/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.h - ids of volumes on a share of an NFS server, which a StorageClass or its pool names. They are those of
 * csi-driver-nfs,
 *
 *      SERVER#SHARE#DIRECTORY#NAME#ONDELETE
 *
 * without the slashes around SHARE and DIRECTORY; NAME is what the volume is called in requests of the volume tools
 * (csi-driver-nfs may leave it empty), ONDELETE is "retain", "archive" or empty. So any node can delete such a volume,
 * and one that csi-driver-nfs made, whose older versions leave ONDELETE out, or NAME, too. Its oldest ids, with slashes in
 * place of "#", are none here: names of other volumes look like them.
 * Source: csi-driver-nfs, pkg/nfs/controllerserver.go, getVolumeIDFromNfsVol(), getNfsVolFromID().
 */
#ifndef FLEXGRAFT_CSI_SHARE_H
#define FLEXGRAFT_CSI_SHARE_H

#include <jansson.h>
#include <stdbool.h>

#define CSI_SHARE_SIZE 256                     /* of each part, terminated */
#define CSI_SHARE_ID_SIZE (5 * CSI_SHARE_SIZE) /* terminated */

struct csi_share {
        char server[CSI_SHARE_SIZE];
        char share[CSI_SHARE_SIZE]; /* begins with a slash */
        char directory[CSI_SHARE_SIZE];
        char name[CSI_SHARE_SIZE];
        char on_delete[CSI_SHARE_SIZE]; /* in small letters; csi-driver-nfs takes any */
};

/* csi_share_lower() - ASCII letters in place: csi-driver-nfs takes "Retain", too. */
void csi_share_lower(char *text);

/* csi_share_read() - the parts of an id; false: it is none of a share. */
bool csi_share_read(const char *id, struct csi_share *ret_share);

/* csi_share_of() - the parts of a volume as the volume tools say it; false: it is on none, or nobody knows on which. */
bool csi_share_of(const json_t *volume, struct csi_share *ret_share);

/* csi_share_id() - the id; ret_id has CSI_SHARE_ID_SIZE bytes. */
void csi_share_id(const struct csi_share *share, char *ret_id);

/* csi_id_name() - csi_volume_name() of an id, also of one of a share. ret_name has CSI_VOLUME_NAME_SIZE bytes. */
void csi_id_name(const char *id, char *ret_name);

#endif
