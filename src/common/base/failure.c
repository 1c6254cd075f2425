/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "base/reply.h"

/* What to do about a failure. The first row that matches is printed. */
static const struct {
        const char *operation;
        int errnum; /* 0: any */
        const char *hint;
} hints[] = {
        { OPERATION_PARSE, 0, "--help shows every key with an example" },
        { "mount_setattr", EINVAL,
          "this kernel cannot id-map this filesystem (or a mount below the source); \"ids\": \"remap\" remaps owners, "
          "\"host\" mounts without mapping: foreign owners then show as 65534" },
        { "mount_setattr", EPERM,
          "the source is already id-mapped, or its filesystem or its locked attributes belong to another user "
          "namespace; \"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "open_tree_attr", EPERM, "\"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "check policy", EACCES, "policy.json lists what annotations and volumes may use" },
        { "read policy", EPERM, "chown root policy.json and chmod 0644: only root may be able to write to it" },
        { "allow device", 0,
          "see the container's line in /proc/PID/cgroup; bpftool cgroup tree lists the device programs there" },
        { "open the root directory", 0, "install it as a createRuntime or prestart hook: these run before pivot_root" },
        { "map ids", 0,
          "use \"ids\": \"auto\", or \"host\" to mount without mapping: foreign owners then show as 65534" },
        { "open_tree", EINVAL, "an unbindable mount cannot be cloned; findmnt -o TARGET,PROPAGATION lists them" },
        { "open source", ELOOP,
          "give the path that realpath(1) prints on the node; for files of a container use "
          "mount-container-to-container" },
        { "open source", ENOENT, "the source is looked up on the node, not in the container" },
        { "find target", EBUSY, "mount-list shows the mounts of flexgraft; mount-remove removes one" },
        { "find target", ENOENT, "use \"mkdir\": true (the default) to create missing directories" },
        { "find target", EPERM, "choose a target outside /proc, /sys and the cgroup filesystem" },
        { "openat2", ELOOP, "the target contains a magic link (like /proc/PID/root) or too many symbolic links" },
        { "openat2", EACCES, "the target lies below a FUSE filesystem of the container; choose another" },
        { "pin container", ESRCH, "name a running container" },
        { "find container", ENOENT, "use a process id, which works for every runtime: {\"container\": PID}" },
        { "find container", ESRCH, "start the container, or name a running one" },
        { "find device", ENOTBLK,
          "attach an image file first (losetup --find --show FILE); for a directory use mount-bind" },
        { "find device", EBUSY, "findmnt, lsblk and lsof show what uses it; \"readOnly\": true allows sharing it" },
        { "find device", EROFS, "\"readOnly\": true mounts it read-only" },
        { "find device", ENOENT, "lsblk -f lists devices, labels and UUIDs" },
        { "probe", ENODATA, "create a filesystem first (mkfs), or name its type with \"fsType\"" },
        { "resolve", ENOENT,
          "names are resolved with the container's /etc/hosts and /etc/resolv.conf; the driver uses the node's" },
        { "resolve", 0,
          "check the name servers of the container's /etc/resolv.conf from its network; the driver uses the node's" },
        { "connect", ECONNREFUSED, "the host answers, but no NFS server listens on that port (option port=)" },
        { "connect", 0,
          "connections are made from the container's network (try nsenter -t PID -n); the driver uses the node's" },
        { "start remap-daemon", ENOENT, "install remap-daemon with make install" },
        { "fsconfig", EPROTONOSUPPORT,
          "leave the version out of the options: then the newest that both sides support is used" },
        { "fsconfig", EACCES, "exports(5) on the server lists the hosts allowed; showmount -e SERVER shows them" },
        { "fsconfig", ENOENT, "exportfs -v on the server, or showmount -e SERVER, lists the exported directories" },
        { "fsconfig", ECONNREFUSED,
          "version 3 needs a port mapper on the server (port 111), or the options port and mountport" },
        { "fsconfig", EBUSY,
          "findmnt and lsof show what uses the device; two mounts of it must have the same \"readOnly\"" },
        { "fsconfig", EPERM,
          "since Linux 6.11 a user namespace may own few types of filesystems: \"ids\": \"auto\" maps ids instead; an "
          "NFS server may refuse this client (exports(5): its address, sec=, a port below 1024)" },
        { "fsconfig", EINVAL, "see the kernel's messages, here or in dmesg: an option, or the device's content" },
        { "fsconfig", EUCLEAN, "the filesystem is damaged; see dmesg, and repair it with fsck" },
        { "fsopen", ENODEV, "cat /proc/filesystems lists the types; modprobe loads one" },
        { "move_mount", ENOENT, "the target was removed meanwhile; try again" },
        { "move_mount", EINVAL, "the target is not in the container's own mount namespace; choose another" },
        { "look again", ESTALE, "a process in the container changed the target's path; try again" },
        { "umount2", EBUSY, "a process in the container uses it, or a mount covers it; \"force\": true detaches it" },
        { "lock attributes", EINVAL,
          "leave out \"locked\"; a container without a user namespace of its own should not have CAP_SYS_ADMIN" },
        { "wait", ETIMEDOUT, "a filesystem on the path, or a server, does not answer; mount-remove takes \"force\"" },
        { "open state", EPERM, "chown root and chmod 0700 the directory: only root may be able to write to it" },
        { "prctl", EPERM, "run it as root" },
        { "capset", EPERM,
          "run it as root, with the capabilities in its man page (CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, "
          "CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID among them)" },
};

const char *failure_hint(const struct error *error)
{
        for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
                if (strcmp(error->operation, hints[i].operation) == 0 &&
                    (hints[i].errnum == 0 || hints[i].errnum == error->errnum))
                        return hints[i].hint;
        return NULL;
}

int failure_exit_status(const struct error *error)
{
        return strcmp(error->operation, OPERATION_PARSE) != 0 ? EXIT_FAILED : EXIT_NOT_UNDERSTOOD;
}

int failure_say(const char *message, const struct error *error)
{
        const char *hint = failure_hint(error);
        json_t *detail = json_pack("{s:s, s:s?, s:o, s:o}", "operation", error->operation, "errno",
                                   strerrorname_np(error->errnum), "subject", reply_printable(error->subject), "where",
                                   reply_printable(error->where));

        if (detail != NULL && error->kernel[0] != '\0')
                (void)json_object_set_new(detail, "kernel", reply_printable(error->kernel));
        if (detail != NULL && hint != NULL)
                (void)json_object_set_new(detail, "hint", json_string(hint));
        return reply_say(
                json_pack("{s:s, s:o, s:o}", "status", "Failure", "message", reply_printable(message), "error", detail),
                failure_exit_status(error));
}
