/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operation.h - the operations that a hint is about (struct hint), or that a program looks for in an error. What fails
 * names its operation by these, and so does the hint: neither can be renamed without the other. scripts/layers refuses
 * the words themselves where an error is made.
 */
#ifndef FLEXGRAFT_BASE_OPERATION_H
#define FLEXGRAFT_BASE_OPERATION_H

/* Of every failure that means "the request cannot be understood": the program exits with status 2. */
#define OPERATION_PARSE "parse request"

/* System calls. What opens or reads something else than these hints are about says "open" or "read" itself. */
#define OPERATION_OPEN "open"
#define OPERATION_READ "read"
#define OPERATION_OPENAT2 "openat2"
#define OPERATION_PIDFD_OPEN "pidfd_open"
#define OPERATION_PIDFD_GETFD "pidfd_getfd"
#define OPERATION_OPEN_TREE "open_tree"
#define OPERATION_OPEN_TREE_ATTR "open_tree_attr"
#define OPERATION_MOUNT_SETATTR "mount_setattr"
#define OPERATION_MOVE_MOUNT "move_mount"
#define OPERATION_UMOUNT2 "umount2"
#define OPERATION_UNSHARE "unshare"
#define OPERATION_FSOPEN "fsopen"
#define OPERATION_FSCONFIG "fsconfig"
#define OPERATION_FSMOUNT "fsmount"
#define OPERATION_FSPICK "fspick"
#define OPERATION_PRCTL "prctl"
#define OPERATION_CAPSET "capset"

/* Flexgraft's own. */
#define OPERATION_WAIT "wait"
#define OPERATION_OPEN_SOURCE "open source"
#define OPERATION_OPEN_STATE "open state"
#define OPERATION_CHECK_POLICY "check policy"
#define OPERATION_READ_POLICY "read policy"
#define OPERATION_READ_RECORD "read record"
#define OPERATION_READ_CONTAINER_STATE "read container state"
#define OPERATION_FIND_CONTAINER "find container"
#define OPERATION_PIN_CONTAINER "pin container"
#define OPERATION_FIND_RECORD "find record"
#define OPERATION_FIND_CONTENT "find content"
#define OPERATION_FIND_TARGET "find target"
#define OPERATION_LOOK_AGAIN "look again"
#define OPERATION_CLONE_MOUNT "clone mount"
#define OPERATION_MAP_IDS "map ids"
#define OPERATION_MAP_OWNERS "map owners"
#define OPERATION_MAP_ANYHOW "map owners in any way" /* neither the kernel nor remap-daemon can */
#define OPERATION_LOCK_ATTRIBUTES "lock attributes"
#define OPERATION_OPEN_ROOT "open the root directory"
#define OPERATION_START_REMAP_DAEMON "start remap-daemon"
#define OPERATION_UPGRADE "upgrade"

/* Of kinds of mounts, volumes and pools. */
#define OPERATION_FIND_DEVICE "find device"
#define OPERATION_SHARE_DEVICE "share device"
#define OPERATION_PROBE "probe"
#define OPERATION_ALLOW_DEVICE "allow device"
#define OPERATION_OPEN_IMAGE "open image"
#define OPERATION_FIND_PARTITION "find partition"
#define OPERATION_ATTACH_IMAGE "attach image"
#define OPERATION_RESOLVE "resolve"
#define OPERATION_CONNECT "connect"
#define OPERATION_START_LOCKD "start lockd"
#define OPERATION_OPEN_POOL "open pool"
#define OPERATION_FIND_ROOM "find room"
#define OPERATION_FIND_REGION "find region"
#define OPERATION_FIND_VOLUME_GROUP "find volume group"
#define OPERATION_ARCHIVE_DIRECTORY "archive directory"
#define OPERATION_REMOVE "remove"

#endif
