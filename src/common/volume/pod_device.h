/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_device.h - the device that a pod gets of a block volume: a loop device on the volume's own, which no ioctl of a pod
 * reaches (block/loop_guard.h). The pods of one node that may write share one, so that each reads what the others write.
 * One that may only read has its own: it can change where that begins.
 */
#ifndef FLEXGRAFT_VOLUME_POD_DEVICE_H
#define FLEXGRAFT_VOLUME_POD_DEVICE_H

#include <errno.h>

#include "volume/call.h"

struct pod_device {
        uint64_t number; /* makedev(); 0 none */
        int keeper_fd;   /* holds it, until a record names it; owned */
        bool writes;
        bool made; /* by this call */
};

#define POD_DEVICE_NONE                                                                                                \
        {                                                                                                              \
                .keeper_fd = -EBADF                                                                                    \
        }

/*
 * pod_device_make() - the one that the request's directory has by the record, or that other writers have, or a new one,
 * which ends with ret_device unless pod_device_keep() was called. A reader's refuses writes. That of other writers shows
 * all of the volume, whatever one of them had made of it.
 *
 * Needs:   CAP_SYS_ADMIN.
 * Gives:   ret_device, released by pod_device_release(), also after a failure.
 * Returns: a path descriptor of its node, owned by the caller.
 */
int pod_device_make(const struct volume_call *call, bool writes, struct pod_device *ret_device, struct error *error);

/*
 * pod_device_replace() - take away another device that the request's directory has by the record.
 * Errors: EBUSY a process still has it open.
 */
int pod_device_replace(const struct volume_call *call, const struct pod_device *device, struct error *error);

/* pod_device_keep() - let it outlive this process. With the record written that names it. */
int pod_device_keep(const struct pod_device *device, struct error *error);

void pod_device_release(struct pod_device *device);
#define cleanup_pod_device __attribute__((cleanup(pod_device_release)))

/* pod_device_is() - whether a device number is that of a device of this volume's pods. */
bool pod_device_is(const struct volume_call *call, uint64_t number);

/*
 * pod_device_give_back() - a directory's pod has no use for it any more: it goes with the last one's.
 * Errors: EBUSY a process still has it open.
 */
int pod_device_give_back(const struct volume_call *call, const struct mount_dir *place, struct error *error);

/* pod_device_take_all() - the same of all directories, of which none is mounted any more. */
int pod_device_take_all(const struct volume_call *call, struct error *error);

/* pod_device_take_lost() - the same of a volume whose record is lost. */
int pod_device_take_lost(const struct volume_call *call, struct error *error);

/* pod_device_flush() - write out what pods, and containers by mount-block, have written to their devices. */
int pod_device_flush(const struct volume_call *call, struct error *error);

/* pod_device_grow() - adopt the new size of the volume's device in what pods, and containers by mount-block, have of it. */
int pod_device_grow(const struct volume_call *call, struct error *error);

#endif
