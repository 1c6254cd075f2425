/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.h - a new namespace of persistent memory, without the signatures of what was on that memory before.
 */
#ifndef FLEXGRAFT_PMEM_NAMESPACES_CREATE_H
#define FLEXGRAFT_PMEM_NAMESPACES_CREATE_H

#include <ndctl/libndctl.h>

/* create_namespace() - words: REGION NAME BYTES fsdax|sector UUID. Returns the exit status. */
int create_namespace(struct ndctl_ctx *context, char **words);

#endif
