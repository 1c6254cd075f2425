/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capability.h - what a volume can be used as: VolumeCapability, checked for the controller and for the node.
 */
#ifndef FLEXGRAFT_CSI_CAPABILITY_H
#define FLEXGRAFT_CSI_CAPABILITY_H

#include <stdbool.h>
#include <stddef.h>

#include "messages/csi.pb-c.h"

/*
 * csi_capability_incomplete() - what a capability lacks: a sentence; NULL: it is complete. Such a request is
 * INVALID_ARGUMENT.
 */
const char *csi_capability_incomplete(const Csi__V1__VolumeCapability *capability);

/*
 * csi_capability_invalid() - the same of what it says, where it need not be complete. external-provisioner asks GetCapacity
 * for one without an access mode, and perhaps without an access type (syncCapacity() of its pkg/capacity).
 */
const char *csi_capability_invalid(const Csi__V1__VolumeCapability *capability);

/*
 * csi_capability_impossible() - why no volume can be used so: a sentence; NULL: it can.
 *
 * shared: it is on a server, and other nodes can use it, too. Without, writers of several nodes are impossible; readers
 * are not: they do not disturb each other, and the volume's topology says where they can run.
 */
const char *csi_capability_impossible(const Csi__V1__VolumeCapability *capability, bool shared);

/*
 * csi_capability_needs_share() - whether only a volume on a server can be used so: writers of several nodes, or "nfs".
 * NULL: false. csi_capabilities_need_share() - whether one of several does. csi_capability_names_server() - whether it
 * says "nfs".
 */
bool csi_capability_names_server(const Csi__V1__VolumeCapability *capability);
bool csi_capability_needs_share(const Csi__V1__VolumeCapability *capability);
bool csi_capabilities_need_share(size_t count, Csi__V1__VolumeCapability *const *capabilities);

/* csi_capability_is_block() - whether it is for the device itself. */
bool csi_capability_is_block(const Csi__V1__VolumeCapability *capability);

/* csi_capability_fs_type() - the filesystem that it says; "": none. Borrowed. */
const char *csi_capability_fs_type(const Csi__V1__VolumeCapability *capability);

/* csi_capability_reads_only() - whether its access mode has no writers. */
bool csi_capability_reads_only(const Csi__V1__VolumeCapability *capability);

/* csi_capability_mode() - its access mode as profiles and records have it, "SINGLE_NODE_WRITER". */
const char *csi_capability_mode(const Csi__V1__VolumeCapability *capability);

/* csi_capability_flags() - its mount flags with commas between them, freed by the caller; NULL: there is no memory. */
char *csi_capability_flags(const Csi__V1__VolumeCapability *capability);

#endif
