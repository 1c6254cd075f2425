/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_targets.h - have the kernel load the device mapper's targets that a volume needs: raid, mirror, thin-pool, ...
 *
 * lvm(8) runs modprobe(8) for them, which may load nothing in an exec helper: neither its capabilities nor its filter allow that. The
 * kernel itself loads a target that it is asked for the version of, with a program, arguments and an environment of its
 * own (DM_GET_TARGET_VERSION, since Linux 5.5; CAP_SYS_ADMIN). It is asked only for the names of a fixed table.
 *
 * Runs in: an exec helper, before lvm.
 */
#ifndef FLEXGRAFT_BLOCK_LVM_TARGETS_H
#define FLEXGRAFT_BLOCK_LVM_TARGETS_H

/*
 * lvm_targets_load() - what a volume of these types needs ("raid1"), or with these modules of lvs ("raid,thin-pool"). A name
 * that is not in the table, and a target that the kernel does not have, is nothing: lvm says what it misses.
 */
void lvm_targets_load(const char *names);

/*
 * lvm_targets_resume() - let a device of the device mapper go on, with the table that was loaded for it, if any: what
 * lvm left when it was killed, and would resume only after the devices on top of it. Nothing, if there is none.
 */
void lvm_targets_resume(const char *device);

#endif
