/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - regions and namespaces as JSON on standard output.
 */
#ifndef FLEXGRAFT_PMEM_NAMESPACES_LIST_H
#define FLEXGRAFT_PMEM_NAMESPACES_LIST_H

#include <ndctl/libndctl.h>

/* list_namespaces() - Returns the exit status. */
int list_namespaces(struct ndctl_ctx *context);

#endif
