/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - /etc/flexgraft/config.json, or the file that $FLEXGRAFT_CONFIG names. No file is a working configuration.
 *
 *      {"stateDir": "/var/lib/kubelet/plugins/flexgraft", "nodeName": "n1", "log": "syslog",
 *       "timeouts": {"call": 120, "command": 600, "device": 20, "unmount": 10},
 *       "kubelet": {"rootDir": "/var/lib/kubelet", "unstageAfter": 600},
 *       "runtimes": {"runc": ["/srv/runc"]}}
 */
#ifndef FLEXGRAFT_STATE_CONFIG_H
#define FLEXGRAFT_STATE_CONFIG_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct container;           /* container/container.h */
struct container_reference; /* container/reference.h */

#define CONFIG_NODE_NAME_MAX 254 /* terminated; kubelet's names are DNS subdomains */

struct config {
        char state_dir[PATH_MAX];
        char cdi_dir[PATH_MAX];
        char node_name[CONFIG_NODE_NAME_MAX]; /* as kubelet calls this node; "": its host name */
        char log[PATH_MAX];                   /* "syslog", "none", or the path of a file */
        unsigned call_seconds;                /* a verb altogether, less what its commands take */
        unsigned command_seconds;             /* one mkfs, fsck, or growing of a filesystem */
        unsigned device_seconds;              /* until a device must have appeared */
        unsigned unmount_seconds;             /* until what is busy, or hangs, is detached lazily */
        char kubelet_root[PATH_MAX];
        char kubelet_socket[PATH_MAX]; /* "": the usual ones */
        unsigned unstage_seconds;      /* until a volume without a pod is unstaged */
};

/* The keys of the file (state/file_key.h). */
extern const struct file_key *const config_keys;

/*
 * config_load() - read it. The reply of this process is counted in that state directory (state/call_counts.h). Errors: EBADMSG for a
 * broken file, with its line or key.
 */
int config_load(struct config *ret_config, struct error *error);

/*
 * config_state_dir() - likewise, but only the state directory of it; ret_dir holds PATH_MAX bytes. A process reads the file
 * once for all calls of this function and the next.
 */
int config_state_dir(char *ret_dir, struct error *error);

/* config_state_dir_despite() - the state directory where the file is broken; false: it may name another than the usual one. */
bool config_state_dir_despite(char *ret_dir);

/*
 * named_container_pin() - container_pin(), of a container as a request names it: looked up in the state directories that
 * "runtimes" of the file adds, too. Errors: also those of config_load().
 */
int named_container_pin(const struct container_reference *reference, struct container *ret_container,
                        struct error *error);

/* ---- pool_mark.c: what tells the directory of a pool of images from others: pool/pool_identity.h has its meaning */

#define POOL_IDENTITY_LINK ".flexgraft-pool"

/* pool_mark_beside() - whether a file, by its absolute path, is in the directory of a pool. */
bool pool_mark_beside(const char *path);

#endif
