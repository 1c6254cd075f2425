/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - CSI's access modes of volumes, held to over the list of uses of this node.
 *
 *      SINGLE_NODE_READER_ONLY, MULTI_NODE_READER_ONLY   nothing writes
 *      SINGLE_NODE_SINGLE_WRITER                         one pod, or one container
 *      SINGLE_NODE_WRITER, SINGLE_NODE_MULTI_WRITER, MULTI_NODE_SINGLE_WRITER, MULTI_NODE_MULTI_WRITER
 *                                                        several, as Kubernetes' ReadWriteOnce: a node does not know the
 *                                                        uses of others
 *
 * A use is recorded before it is checked: of two at once each sees the other, and at most one stays.
 */
#ifndef FLEXGRAFT_STATE_ACCESS_H
#define FLEXGRAFT_STATE_ACCESS_H

#include <stdbool.h>

#include "base/error.h"
#include "state/mount_record.h"
#include "state/state_dir.h"

/* The modes, in the order of their numbers in CSI, from 1 (csi.proto, AccessMode.Mode); ended by NULL. */
extern const char *const access_modes[];

/* access_target_types - what a volume is used as; NULL ends them. */
extern const char *const access_target_types[];

/* access_is_block() - whether a volume of a target type is used as a block device. NULL: it is not said: false. */
bool access_is_block(const char *target_type);

/* access_target_type() - the word for it. */
const char *access_target_type(bool block);

/* access_reads_only() - whether nothing may write to volumes of a mode; "" is no mode. */
bool access_reads_only(const char *mode);

/* access_is_single() - whether volumes of a mode are for one pod alone. */
bool access_is_single(const char *mode);

/* access_is_of_nodes() - whether several nodes may write to volumes of a mode, or one to what others read. */
bool access_is_of_nodes(const char *mode);

/*
 * access_check_pod() - that a pod's directory may have a volume of a mode. keys: those of the volume; file: its
 * record's, of which the caller holds the lock.
 * Errors: EBUSY another pod or a container has it.
 */
int access_check_pod(const char *state_dir, const char *mode, const char *keys, const char *file, const char *dir,
                     struct error *error);

/*
 * access_check_container() - that a mount, or a raw device, in a container is what the volume that it is of allows; the
 * record is written. A mount of no volume costs one look at the index.
 *
 * Takes:  mounts: the open directory of records of mounts; file: of the record of the volume whose lock the caller
 *         holds, or NULL; writes: whether the container can write.
 * Errors: EROFS it writes, and the volume is for reading; EBUSY another pod or container has it.
 */
int access_check_container(const struct state *mounts, const char *state_dir, const struct mount_record *record,
                           const char *file, bool writes, struct error *error);

/*
 * access_check_alone() - that a mount in a container is the only use of a volume that is a directory, for one pod or
 * container; it has no device by which access_check_container() would find it. The record is written.
 * Errors: EBUSY another pod or container has it.
 */
int access_check_alone(const char *state_dir, const struct mount_record *record, const char *file, struct error *error);

#endif
