/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namespaces.h - find regions and namespaces of persistent memory; destroy namespaces, or make them raw.
 *
 * The functions that return int return the exit status: 0, or 1 after a line on standard error.
 */
#ifndef FLEXGRAFT_PMEM_NAMESPACES_NAMESPACES_H
#define FLEXGRAFT_PMEM_NAMESPACES_NAMESPACES_H

#include <linux/ndctl.h>
#include <ndctl/libndctl.h>
#include <stdbool.h>

#define MAKING "flexgraft-making" /* the name of a namespace until it is complete */

/* namespaces_complain() - "WHAT SUBJECT: the errno in words" on standard error. Returns 1. */
int namespaces_complain(const char *what, const char *subject, int r);

bool namespaces_is_pmem(struct ndctl_region *region);

/* namespaces_has_labels() - whether the region's modules have labels: without them it is one namespace, and no other can
 * be made. */
bool namespaces_has_labels(struct ndctl_region *region);

/*
 * namespaces_put_identity() - what a region keeps when modules are added and regions are renumbered: the cookie of its
 * interleave set, as labels have it (iset_id in ndctl(1)). "" without labels, since it is another with them, and where
 * another region has the same. NAMESPACES_IDENTITY_SIZE bytes.
 */
#define NAMESPACES_IDENTITY_SIZE 19
void namespaces_put_identity(struct ndctl_ctx *context, struct ndctl_region *region, char *ret_identity);

/* namespaces_find_region() - by its device name, or by its identity ("0x..."); NULL: there is none. */
struct ndctl_region *namespaces_find_region(struct ndctl_ctx *context, const char *name);

/* namespaces_destroy() - a namespace that is not in use. Done, too, when there is none of this name. */
int namespaces_destroy(struct ndctl_ctx *context, const char *name);

/* namespaces_lay_open() - enable a namespace raw, without its pfn or btt. */
int namespaces_lay_open(struct ndctl_ctx *context, const char *name);

/* namespaces_tidy() - destroy what a call that was killed left in a region. */
int namespaces_tidy(struct ndctl_region *region);
int namespaces_tidy_region(struct ndctl_ctx *context, const char *name);

#endif
