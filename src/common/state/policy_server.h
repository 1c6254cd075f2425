/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_server.h - which NFS servers a policy allows: its key "nfsServers".
 */
#ifndef FLEXGRAFT_STATE_POLICY_SERVER_H
#define FLEXGRAFT_STATE_POLICY_SERVER_H

#include <stdbool.h>

#include "base/error.h"
#include "network/nfs_server.h"

struct policy;

/*
 * policy_server_check() - whether a host may be a server; what is not decided by its name is left to the rule.
 *
 * An address must match a pattern of addresses. A name that matches a pattern of names is allowed; the node looks it up.
 * Any other name is allowed for those of its addresses that match a pattern of addresses. Without the key every host is
 * allowed where open is set, else none.
 *
 * Gives:  ret_rule, for nfs_server_find(); it borrows the policy.
 * Errors: EACCES.
 */
int policy_server_check(const struct policy *policy, const char *host, bool open, struct nfs_server_rule *ret_rule,
                        struct error *error);

#endif
