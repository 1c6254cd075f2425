/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_filter.h - the devices that lvm does not look at: those that containers and pods write to, or have written to. One
 * could have a volume group of the name of a pool's on it, and lvm then refuses both.
 */
#ifndef FLEXGRAFT_BLOCK_LVM_FILTER_H
#define FLEXGRAFT_BLOCK_LVM_FILTER_H

#include "base/error.h"

#define LVM_FILTER_VOLUMES_SIZE 8192 /* terminated */

/*
 * lvm_filter_list() - the loop devices that are volumes, or that kubelet has made over what a pod has, for lvm_filter(): their
 * numbers, separated by commas; "*": there are too many. Gives LVM_FILTER_VOLUMES_SIZE bytes.
 */
int lvm_filter_list(char *ret_volumes, struct error *error);

/*
 * lvm_filter() - "global_filter=[...]" for lvm's configuration: without guards (block/loop_guard.h), the devices behind
 * them, and these volumes. What the node's own configuration has there follows as "filter=[...]", or at the end of this list. Static, until the next call.
 */
const char *lvm_filter(const char *volumes);

/* lvm_filter_begin() - as much of it as depends on nothing else than these volumes. Static, like it. */
const char *lvm_filter_begin(const char *volumes);

/*
 * lvm_filter_value() - what "global_filter" is in the text of lvm's configuration (lvm.conf(5)), without the brackets of a
 * list and without comments; NULL: it is not set. In the text, which is cut there.
 */
char *lvm_filter_value(char *text);

#endif
