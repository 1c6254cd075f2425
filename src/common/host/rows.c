/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probes.h"

#define CALLS "kernel calls"
#define NAMESPACES "namespaces"
#define FILESYSTEMS "filesystems"
#define MAPPED "id-mapped mounts"
#define DEVICES "devices"
#define PROGRAMS "programs"
#define NODE "node"

#define ADVICE_CALL(version) "use Linux " version " or later; in a container, a seccomp profile that allows the call"
#define ADVICE_MODULE(name) "modprobe " name "; install the kernel's modules, or a kernel that has it"
#define ADVICE_PACKAGE(package) "install " package
#define ADVICE_MAP(version)                                                                                            \
        "use Linux " version " or later; else \"ids\": \"remap\" remaps owners, \"host\" leaves them as they are"

#define UNTRIED_MAP "mount one and run host-check again"

#define USE_MAP "owners of containers with user namespaces"
#define USE_GUARD "raw devices and pods' block volumes" /* block/loop_guard.h */

const struct host_row host_rows[] = {
        [NEED_OPENAT2] = { "openat2", CALLS, probe_openat2, .everyone = true, .advice = ADVICE_CALL("5.6") },
        [NEED_PIDFD] = { "pidfd_open", CALLS, probe_pidfd, .everyone = true, .advice = ADVICE_CALL("5.3") },
        [NEED_CLOSE_RANGE] = { "close_range", CALLS, probe_close_range, .everyone = true,
                               .advice = ADVICE_CALL("5.9") },
        [NEED_FSOPEN] = { "fsopen", CALLS, probe_fsopen, .everyone = true, .advice = ADVICE_CALL("5.2") },
        [NEED_OPEN_TREE] = { "open_tree", CALLS, probe_open_tree, .everyone = true, .advice = ADVICE_CALL("5.2") },
        [NEED_MOVE_MOUNT] = { "move_mount", CALLS, probe_move_mount, .everyone = true, .advice = ADVICE_CALL("5.2") },
        [NEED_MOUNT_SETATTR] = { "mount_setattr", CALLS, probe_mount_setattr, .everyone = true,
                                 .advice = ADVICE_CALL("5.12") },
        [NEED_BENEATH] = { "move-mount-beneath", CALLS, probe_beneath, .use = "\"replace\" without a gap",
                           .advice = "use Linux 6.5 or later; without it a replaced target is empty for a moment" },
        [NEED_OPEN_TREE_ATTR] = { "open_tree_attr", CALLS, probe_open_tree_attr,
                                  .use = "sources that are id-mapped already",
                                  .advice = "use Linux 6.15 or later; else \"ids\": \"host\" for such sources" },
        [NEED_UNIQUE_IDS] = { "unique-mount-ids", CALLS, probe_unique_ids, .use = "mount-list, mount-remove",
                              .advice = "nothing: without it mounts are told apart by id, device and inode" },
        [NEED_STATMOUNT] = { "statmount", CALLS, probe_statmount, .use = "mount-list, mount-remove",
                             .advice = "nothing: without it mount tables are read, which takes longer" },
        [NEED_SECCOMP] = { "seccomp-filters", CALLS, probe_seccomp, .everyone = true,
                           .advice = "use a kernel with CONFIG_SECCOMP_FILTER" },

        [NEED_ROOT] = { "root", NAMESPACES, probe_root, .everyone = true,
                        .advice = "run it as root; in a container, privileged" },
        [NEED_NODE_USERS] = { "node-user-namespace", NAMESPACES, probe_node_namespace, "user:[4026531837]",
                              .everyone = true,
                              .advice = "run flexgraft in the node's user namespace; in Kubernetes with hostUsers" },
        [NEED_NODE_PIDS] = { "node-pid-namespace", NAMESPACES, probe_node_namespace, "pid:[4026531836]",
                             .use = "containers outside this pid namespace",
                             .advice = "run flexgraft in the pid namespace of the node (hostPID in a pod)" },
        [NEED_USER_NAMESPACES] = { "user-namespaces", NAMESPACES, probe_user_namespaces, .use = USE_MAP,
                                   .advice = "sysctl user.max_user_namespaces=10000, in a kernel with CONFIG_USER_NS" },
        [NEED_USER_OVERLAY] = { "overlay-in-user-namespace", NAMESPACES, probe_user_overlay,
                                .use = "overlays that containers themselves mount",
                                .advice = "use Linux 5.11 or later; mount-overlay does not need it" },

        [NEED_EXT4] = { "ext4", FILESYSTEMS, probe_filesystem, "ext4", .advice = ADVICE_MODULE("ext4") },
        [NEED_XFS] = { "xfs", FILESYSTEMS, probe_filesystem, "xfs", .use = "volumes of fsType xfs",
                       .advice = ADVICE_MODULE("xfs") },
        [NEED_BTRFS] = { "btrfs", FILESYSTEMS, probe_filesystem, "btrfs", .use = "volumes of fsType btrfs",
                         .advice = ADVICE_MODULE("btrfs") },
        [NEED_OVERLAY] = { "overlay", FILESYSTEMS, probe_filesystem, "overlay", .advice = ADVICE_MODULE("overlay") },
        [NEED_NFS] = { "nfs", FILESYSTEMS, probe_filesystem, "nfs", .advice = ADVICE_MODULE("nfs") },
        [NEED_FUSE] = { "fuse", FILESYSTEMS, probe_fuse, .use = "\"ids\": \"remap\"",
                        .advice = ADVICE_MODULE("fuse") "; in a container, give it /dev/fuse" },

        [NEED_MAP_EXT4] = { "idmap-ext4", MAPPED, probe_map_mounted, "ext4", .use = USE_MAP,
                            .advice = ADVICE_MAP("5.12"), .untried = UNTRIED_MAP },
        [NEED_MAP_XFS] = { "idmap-xfs", MAPPED, probe_map_mounted, "xfs", .use = USE_MAP, .advice = ADVICE_MAP("5.12"),
                           .untried = UNTRIED_MAP },
        [NEED_MAP_BTRFS] = { "idmap-btrfs", MAPPED, probe_map_mounted, "btrfs", .use = USE_MAP,
                             .advice = ADVICE_MAP("5.15"), .untried = UNTRIED_MAP },
        [NEED_MAP_TMPFS] = { "idmap-tmpfs", MAPPED, probe_map_tmpfs, .use = USE_MAP, .advice = ADVICE_MAP("6.3") },
        [NEED_MAP_OVERLAY] = { "idmap-overlay", MAPPED, probe_map_overlay, .use = USE_MAP,
                               .untried = "modprobe overlay",
                               .advice = "nothing: no kernel can; mount-overlay maps the layers, before Linux 5.19 "
                                         "with \"remap\"" },
        [NEED_MAP_NFS] = { "idmap-nfs", MAPPED, probe_map_mounted, "nfs", .use = USE_MAP,
                           .advice = "nothing: mount-nfs falls back to \"remap\"", .untried = UNTRIED_MAP },
        [NEED_MAP_FUSE] = { "idmap-fuse", MAPPED, probe_fuse_offer, "id-mapping", .use = "remap-mount, idMappable",
                            .advice = "use Linux 6.12 or later; without it remap-mount fails, and pods with "
                                      "hostUsers: false have no volume that is on NFS" },
        [NEED_FUSE_PASSTHROUGH] = { "fuse-passthrough", MAPPED, probe_fuse_offer, "passthrough",
                                    .use = "\"ids\": \"remap\" at the speed of the source",
                                    .advice = "use Linux 6.9 or later; without it remap-daemon copies what it serves" },

        [NEED_LOOP] = { "loop-devices", DEVICES, probe_loop, .use = USE_GUARD,
                        .advice = ADVICE_MODULE("loop") "; in a container, give it /dev" },
        [NEED_LOOP_CONFIGURE] = { "loop-configure", DEVICES, probe_loop_configure, .use = USE_GUARD,
                                  .advice = ADVICE_CALL("5.8"),
                                  .untried = "nothing: flexgraft makes loop devices of its own" },
        [NEED_DEVICE_MAPPER] = { "device-mapper", DEVICES, probe_device_mapper, .advice = ADVICE_MODULE("dm_mod") },
        [NEED_DM_THIN] = { "dm-thin-pool", DEVICES, probe_module, "dm_thin_pool", .use = "logical volumes of type thin",
                           .advice = ADVICE_MODULE("dm_thin_pool") },
        [NEED_DM_SNAPSHOT] = { "dm-snapshot", DEVICES, probe_module, "dm_snapshot", .use = "snapshots of LVM",
                               .advice = ADVICE_MODULE("dm_snapshot") },
        [NEED_DM_MIRROR] = { "dm-mirror", DEVICES, probe_module, "dm_mirror", .use = "logical volumes of type mirror",
                             .advice = ADVICE_MODULE("dm_mirror") },
        [NEED_DM_RAID] = { "dm-raid", DEVICES, probe_module, "dm_raid", .use = "logical volumes of raid types",
                           .advice = ADVICE_MODULE("dm_raid") },
        [NEED_PMEM_REGIONS] = { "pmem-regions", DEVICES, probe_pmem_regions,
                                .advice = ADVICE_MODULE("nfit") "; ndctl list -R shows what the firmware gives" },
        [NEED_DEVICE_CGROUP] = { "device-cgroup", DEVICES, probe_device_cgroup, .use = "mount-block with \"raw\"",
                                 .advice = "mount control groups on /sys/fs/cgroup, in a kernel with CONFIG_CGROUP_BPF "
                                           "(version 2) or CONFIG_CGROUP_DEVICE (version 1)" },

        [NEED_MKFS_EXT4] = { "mkfs.ext4", PROGRAMS, probe_program, "mkfs.ext4", .advice = ADVICE_PACKAGE("e2fsprogs") },
        [NEED_E2FSCK] = { "e2fsck", PROGRAMS, probe_program, "e2fsck", .use = "repairs of ext4 before it is mounted",
                          .advice = ADVICE_PACKAGE("e2fsprogs") },
        [NEED_RESIZE2FS] = { "resize2fs", PROGRAMS, probe_program, "resize2fs", .use = "expansion of ext4",
                             .advice = ADVICE_PACKAGE("e2fsprogs") },
        [NEED_MKFS_XFS] = { "mkfs.xfs", PROGRAMS, probe_program, "mkfs.xfs", .use = "volumes of fsType xfs",
                            .advice = ADVICE_PACKAGE("xfsprogs") },
        [NEED_XFS_GROWFS] = { "xfs_growfs", PROGRAMS, probe_program, "xfs_growfs", .use = "expansion of xfs",
                              .advice = ADVICE_PACKAGE("xfsprogs") },
        [NEED_MKFS_BTRFS] = { "mkfs.btrfs", PROGRAMS, probe_program, "mkfs.btrfs", .use = "volumes of fsType btrfs",
                              .advice = ADVICE_PACKAGE("btrfs-progs") },
        [NEED_BTRFS_TOOL] = { "btrfs-tool", PROGRAMS, probe_program, "btrfs", .use = "expansion of btrfs",
                              .advice = ADVICE_PACKAGE("btrfs-progs") },
        [NEED_LVM] = { "lvm", PROGRAMS, probe_program, "lvm", .advice = ADVICE_PACKAGE("lvm2") },
        [NEED_PMEM_NAMESPACES] = { "pmem-namespaces", PROGRAMS, probe_pmem_namespaces,
                                   .advice = "make install installs it; it needs libndctl6" },
        [NEED_REMAP_DAEMON] = { "remap-daemon", PROGRAMS, probe_sibling, "remap-daemon", .use = "\"ids\": \"remap\"",
                                .advice = "make install installs it" },

        [NEED_RUNTIMES] = { "oci-runtimes", NODE, probe_runtimes, .use = "runtimes' own id-mapped mounts",
                            .advice = "install runc 1.2 or later, or crun" },
        [NEED_ENGINES] = { "container-engines", NODE, probe_engines, .use = "containers by id or name",
                           .advice = "name containers by process id, which needs no engine" },
        [NEED_HOOKS] = { "oci-hooks", NODE, probe_hooks, .use = "mount-hook",
                         .advice = "for Docker and containerd: mount-hook --cdi; for Podman and CRI-O that, or "
                                   "make install PREFIX=/usr, or name the installation's share/containers/oci/hooks.d "
                                   "in hooks_dir of containers.conf or crio.conf" },
        [NEED_KUBELET] = { "flexvolume-driver", NODE, probe_kubelet, .use = "volumes of pods",
                           .advice = "run install-flexvolume, which also finds other directories (--print-dir); a node "
                                     "with the CSI driver alone needs nothing" },
        [NEED_APPARMOR] = { "apparmor", NODE, probe_apparmor, .everyone = true,
                            .advice = "run flexgraft unconfined: a profile may refuse to mount" },
        [NEED_SELINUX] = { "selinux", NODE, probe_selinux, .everyone = true,
                           .advice =
                                   "label the sources of mounts for containers: chcon -R -t container_file_t SOURCE" },
        [NEED_CLOCK] = { "clock", NODE, probe_clock, .use = "volume-reconcile",
                         .advice = "set the clock, or run an NTP client" },
};

_Static_assert(sizeof host_rows / sizeof host_rows[0] == NEEDS, "a row for each need");
