/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "base/reply.h"

static const struct {
        const char *operation;
        int errnum; /* 0: whatever it was */
        const char *hint;
} hints[] = {
        { OPERATION_PARSE, 0, "--help shows every key with an example" },
        { "mount_setattr", EINVAL,
          "this filesystem (or a mount below the source) cannot be id-mapped by this kernel; "
          "\"ids\": \"remap\" maps owners in a daemon, \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "mount_setattr", EPERM,
          "the source is id-mapped already, or its filesystem or its locked attributes belong to another user "
          "namespace; \"ids\": \"host\" mounts without mapping, foreign owners then show as 65534" },
        { "open_tree_attr", EPERM, "\"ids\": \"host\" mounts without mapping, foreign owners then show as 65534" },
        { "check policy", EACCES, "policy.json says what annotations and volumes may ask for" },
        { "read policy", EPERM, "it must belong to root, and nobody else may write to it (chmod 0644)" },
        { "allow device", 0, "see /proc/PID/cgroup and the control groups above; bpftool cgroup tree shows programs" },
        { "open the root directory", 0, "the hook belongs into createRuntime or prestart, before pivot_root" },
        { "map ids", 0,
          "\"ids\": \"auto\" picks what works; \"host\" mounts without mapping, foreign owners then show as 65534" },
        { "open_tree", EINVAL, "an unbindable mount cannot be cloned; see findmnt -o TARGET,PROPAGATION" },
        { "open source", ELOOP,
          "realpath(1) tells where links lead; a source is a path of the node's; for a container's files use "
          "mount-container-to-container" },
        { "open source", ENOENT, "the source is looked up on the node, not in the container" },
        { "find target", EBUSY, "mount-list shows what flexgraft put there; mount-remove takes it away" },
        { "find target", ENOENT, "\"mkdir\": true (the default) makes what is missing" },
        { "find target", EPERM, "choose a target outside /proc, /sys and the cgroup filesystem" },
        { "openat2", ELOOP, "the target leads through a magic link (as /proc/PID/root is) or too many symbolic links" },
        { "openat2", EACCES, "a filesystem of the container's own (FUSE) is in the target's path" },
        { "pin container", ESRCH, "name a container that is running" },
        { "find container", ENOENT, "a process id works for every runtime: {\"container\": PID}" },
        { "find container", ESRCH, "name a container that is running" },
        { "find device", ENOTBLK,
          "attach an image file first (losetup --find --show FILE), or use mount-bind for a directory" },
        { "find device", EBUSY, "findmnt, lsblk and lsof tell who has it; \"readOnly\": true shares it" },
        { "find device", EROFS, "\"readOnly\": true mounts it read-only" },
        { "find device", ENOENT, "lsblk -f lists devices, labels and UUIDs" },
        { "probe", ENODATA, "make a filesystem first (mkfs), or name it with \"fsType\"" },
        { "resolve", ENOENT,
          "names are looked up in /etc/hosts, and as /etc/resolv.conf says, of the container; of the node for its "
          "volumes" },
        { "resolve", 0,
          "/etc/resolv.conf says who is asked: the container's, from its network; the node's for its volumes" },
        { "connect", ECONNREFUSED, "the host is there, and no NFS server listens on that port (option port=)" },
        { "connect", 0,
          "the server is reached from the container's network (nsenter -t PID -n); from the node's for its volumes" },
        { "start remap-daemon", ENOENT, "make install puts it there" },
        { "fsconfig", EPROTONOSUPPORT, "leave the version out of the options: the newest that both speak is found" },
        { "fsconfig", EACCES, "the server's exports(5) say which hosts may have it; showmount -e SERVER lists them" },
        { "fsconfig", ENOENT, "exportfs -v on the server, or showmount -e SERVER, lists what it has" },
        { "fsconfig", ECONNREFUSED,
          "version 3 wants a port mapper on the server (111), or the options port, mountport" },
        { "fsconfig", EBUSY,
          "findmnt and lsof tell who has the device; a second mount of it must agree about \"readOnly\"" },
        { "fsconfig", EPERM,
          "since Linux 6.11 only few filesystems may belong to a user namespace: \"ids\": \"auto\" maps ids instead; "
          "of NFS, "
          "the server may refuse this client (exports(5): its address, sec=, a port below 1024)" },
        { "fsconfig", EINVAL,
          "the kernel's messages, here or in dmesg, say which option or what on the device it refused" },
        { "fsconfig", EUCLEAN, "the filesystem is damaged; see dmesg and fsck" },
        { "fsopen", ENODEV, "cat /proc/filesystems; modprobe the type" },
        { "move_mount", ENOENT, "the target was removed while the mount was made" },
        { "move_mount", EINVAL, "the target is not in the container's own mount namespace" },
        { "look again", ESTALE, "somebody in the container changes the target's path" },
        { "umount2", EBUSY,
          "something in the container uses it or is mounted over it; \"force\": true detaches what is in use" },
        { "lock attributes", EINVAL,
          "leave out \"locked\"; a container without a user namespace should not have CAP_SYS_ADMIN" },
        { "wait", ETIMEDOUT, "a filesystem in the way, or a server, does not answer; mount-remove takes \"force\"" },
        { "open state", EPERM, "it must belong to root, and nobody else may write to it (chmod 0700)" },
        { "prctl", EPERM, "run it as root" },
        { "capset", EPERM,
          "run it as root, with the capabilities that its man page names (CAP_SYS_ADMIN, CAP_SYS_CHROOT, "
          "CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID among them)" },
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
