/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - what host-check looks at: one row for each need (base/need.h), and how the rows find out whether it is there.
 */
#ifndef FLEXGRAFT_HOST_PROBES_H
#define FLEXGRAFT_HOST_PROBES_H

#include <stdbool.h>

#include "base/error.h"
#include "base/need.h"
#include "host/finding.h"

/* Finds out whether it is there. Runs in a worker with a time limit, and leaves nothing. argument: the row's. */
typedef void host_probe(const char *argument, struct host_finding *ret_finding);

struct host_row {
        const char *name;
        const char *group;
        host_probe *probe;
        const char *argument;
        bool everyone;       /* every program needs it */
        const char *use;     /* what it is for where no kind's row names it, or besides; NULL: nothing else */
        const char *advice;  /* what to do where it is missing */
        const char *untried; /* what to do where it could not be tried; NULL: the same */
};

/* NEEDS of them. */
extern const struct host_row host_rows[];

/*
 * host/kernel_calls.c - which system calls the kernel has, and lets this program make: by making them. argument: NULL.
 */
host_probe probe_openat2;
host_probe probe_pidfd;
host_probe probe_close_range;
host_probe probe_fsopen;
host_probe probe_open_tree;
host_probe probe_move_mount;
host_probe probe_mount_setattr;
host_probe probe_beneath;
host_probe probe_open_tree_attr;
host_probe probe_unique_ids;
host_probe probe_statmount;
host_probe probe_seccomp;

/*
 * host/mapping.c - whose owners the kernel can map: user namespaces, and id-mapped mounts of each filesystem, really
 * made, in private namespaces or detached. argument: NULL.
 */
host_probe probe_root;
host_probe probe_user_namespaces;
host_probe probe_user_overlay;
host_probe probe_map_tmpfs;
host_probe probe_map_overlay;

/* argument: "user:[4026531837]", what /proc/self/ns/user is on the node itself. */
host_probe probe_node_namespace;

/* argument: a type of filesystem; tried on one that is mounted on the node. */
host_probe probe_map_mounted;

/* argument: "id-mapping" or "passthrough", what the kernel offers to FUSE daemons. */
host_probe probe_fuse_offer;

/*
 * host/devices.c - what the kernel has, or could load; nothing is loaded. argument: a module, or a type of filesystem,
 * which is its module's name, too.
 */
host_probe probe_module;
host_probe probe_filesystem;

/*
 * host/devices.c - what the node has of devices, and of what decides who may open them: no device is made or bound, and
 * no module is loaded. argument: NULL.
 */
host_probe probe_fuse;
host_probe probe_loop;
host_probe probe_loop_configure;
host_probe probe_device_mapper;
host_probe probe_pmem_regions;
host_probe probe_device_cgroup;

/* host/programs.c - which programs flexgraft can run. argument: the name of one, found where flexgraft runs it from. */
host_probe probe_program;

/* argument: the name of a program of flexgraft's own. */
host_probe probe_sibling;

/* argument: NULL. Also which runtimes and engines of containers are installed. */
host_probe probe_pmem_namespaces;
host_probe probe_runtimes;
host_probe probe_engines;

/* host/node.c - what is around flexgraft on the node: kubelet, hooks, security modules, the clock. argument: NULL. */
host_probe probe_hooks;
/* hooks_look_in() - where probe_hooks() looks for devices, besides the usual directories: "cdiDir"; "": nowhere. Borrowed. */
void hooks_look_in(const char *directory);
host_probe probe_kubelet;
host_probe probe_apparmor;
host_probe probe_selinux;
host_probe probe_clock;

/* ---- host/programs.c: the helper process that asks runtimes of containers for their versions */

/* programs_begin() - start the helper that asks runtimes for their versions, before privileges_drop(). */
int programs_begin(struct error *error);

/* programs_end() - kill it and what it runs; nothing if there is no helper. */
void programs_end(void);

/* ---- host/devices.c: what the kernel has, or could load, for other probes. Nothing is loaded */

/*
 * device_mapper_is_registered() - whether the kernel has it now: without it, whoever opens its control device loads it.
 */
bool device_mapper_is_registered(void);

/* module_find() - whether a module is loaded or built in, or is there to be loaded. Its name has underscores. */
void module_find(const char *name, struct host_finding *ret_finding);

/* kernel_lists() - whether a file of /proc has a line that ends in this name, after a blank or a tab. */
bool kernel_lists(const char *list, char before, const char *name);

/* filesystem_is_registered() - whether the kernel has a type of filesystem now, without loading a module. */
bool filesystem_is_registered(const char *type);

#endif
