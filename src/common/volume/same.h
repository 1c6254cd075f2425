/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same.h - that a request means the volume that is attached under its name. kubelet knows a volume by its name alone:
 * two pods whose inline volumes have one name share one attach, whatever their options and namespaces.
 */
#ifndef FLEXGRAFT_VOLUME_SAME_H
#define FLEXGRAFT_VOLUME_SAME_H

#include "volume/call.h"

/*
 * volume_check_same() - that the options do not name another image, device or volume of a pool than the one that is
 * attached. After a restart kubelet calls attach with no options of the volume's own: those name nothing.
 * Errors: EBUSY, naming what is attached.
 */
int volume_check_same(struct volume_call *call, struct error *error);

/*
 * volume_check_csi() - that a call of a FlexVolume driver does not mean a volume that CSI has, or that was made for it: a
 * PersistentVolume is its claim's, and kubelet would give a pod of any namespace a FlexVolume volume of that name. With
 * the volume's record, before its kind is chosen. Errors: EACCES.
 *
 * volume_check_image_csi() - the same of an image, whatever volume it is attached for, by its attribute.
 *
 * volume_claim_csi() - where the call is CSI's, for a PersistentVolume: note that the volume is CSI's, in the volume's
 * record, in that of volume-create, or else as an attribute of the image. A volume that pods of a namespace have had by
 * FlexVolume stays theirs while CSI's pods are of it, too. An image can tell only once it is attached: call it again then.
 */
int volume_check_csi(struct volume_call *call, struct error *error);
int volume_check_image_csi(struct volume_call *call, int fd, const char *path, struct error *error);
int volume_claim_csi(struct volume_call *call, struct error *error);

/*
 * volume_check_namespace() - for CSI volume_claim_csi(); else that no pod of another namespace has had the volume since
 * it was attached; and of one that its name alone finds, since it was made. The record remembers the namespace; after
 * detach the record of volume-create does, if it was made for a namespace, or an attribute of the image, or, where there
 * can be none, that record again. Errors: EACCES.
 */
int volume_check_namespace(struct volume_call *call, struct error *error);

/*
 * volume_check_directory() - the same of a volume that is a directory, which has no record while no pod has it.
 */
int volume_check_directory(struct volume_call *call, int path_fd, struct error *error);

/* volume_forget_namespace() - the volume is blank again: the next pod may be of any namespace. */
void volume_forget_namespace(struct volume_call *call);

#endif
