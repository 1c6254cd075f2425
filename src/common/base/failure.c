/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reply.h"
#include "base/text.h"

#define HINT_DEAD "\"replace\": true mounts the source anew, once that answers again; mount-remove removes the mount"

#define HINT_CALL(call, version)                                                                                       \
        "the kernel has no " call ", which came with Linux " version                                                   \
        ", or a seccomp filter hides it; flexgraft needs Linux 5.12 or later"

/* Those that every kind may need. */
static const struct hint hints[] = {
        { OPERATION_PARSE, 0, "--help shows every key with an example" },
        { "open", ENOSYS, HINT_CALL("openat2", "5.6") },
        { "openat2", ENOSYS, HINT_CALL("openat2", "5.6") },
        { "open source", ENOSYS, HINT_CALL("openat2", "5.6") },
        { "open state", ENOSYS, HINT_CALL("openat2", "5.6") },
        { "pidfd_open", ENOSYS, HINT_CALL("pidfd_open", "5.3") },
        { "open_tree", ENOSYS, HINT_CALL("open_tree", "5.2") },
        { "move_mount", ENOSYS, HINT_CALL("move_mount", "5.2") },
        { "fsopen", ENOSYS, HINT_CALL("fsopen", "5.2") },
        { "fsconfig", ENOSYS, HINT_CALL("fsconfig", "5.2") },
        { "fsmount", ENOSYS, HINT_CALL("fsmount", "5.2") },
        { "fspick", ENOSYS, HINT_CALL("fspick", "5.2") },
        { "mount_setattr", ENOSYS, HINT_CALL("mount_setattr", "5.12") },
        { "open_tree_attr", ENOSYS, HINT_CALL("open_tree_attr", "6.15") },
        { "mount_setattr", EINVAL,
          "this kernel cannot id-map this filesystem (or a mount below the source); \"ids\": \"remap\" remaps owners, "
          "\"host\" mounts without mapping: foreign owners then show as 65534" },
        { "mount_setattr", EPERM,
          "the source is already id-mapped, or its filesystem or its locked attributes belong to another user "
          "namespace; \"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "open_tree_attr", EPERM, "\"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "check policy", EACCES, "policy.json lists what annotations and volumes may use" },
        { "read policy", EPERM, "chown root policy.json and chmod 0644: only root may be able to write to it" },
        { "open the root directory", 0, "install it as a createRuntime or prestart hook: these run before pivot_root" },
        { "map owners", 0, "\"ids\": \"host\" mounts without mapping: foreign owners then show as 65534" },
        { "map ids", EACCES,
          "say \"ids\": \"host\" to map none; or name the way (\"idmapped\", or \"userns\" or \"remap\" where the "
          "helper has it), if that user may have the files of every owner" },
        { "map ids", EPERM, "run this program in the node's user namespace" },
        { "map ids", 0,
          "use \"ids\": \"auto\", or \"host\" to mount without mapping: foreign owners then show as 65534" },
        { "open_tree", EINVAL, "an unbindable mount cannot be cloned; findmnt -o TARGET,PROPAGATION lists them" },
        { "clone mount", ESTALE, "try again" },
        { "clone mount", EINVAL, "\"recursive\": true takes the mounts below it along" },
        { "open source", ELOOP,
          "give the path that realpath(1) prints on the node; for files of a container use "
          "mount-container-to-container" },
        { "open source", ENOENT, "the source is looked up on the node, not in the container" },
        { "find record", EBUSY,
          "mount-list shows the mounts of flexgraft; unmount any other inside the container: nsenter -t PID -m umount "
          "TARGET" },
        { "read record", EXDEV, "run flexgraft's programs in the pid namespace of the node (hostPID in a pod)" },
        { "read", EXDEV, "run flexgraft's programs in the pid namespace of the node (hostPID in a pod)" },
        { "find target", EBUSY,
          "\"replace\": true takes the place of a mount of flexgraft's (mount-list shows them), mount-remove removes "
          "one; unmount any other inside the container: nsenter -t PID -m umount TARGET" },
        { "find target", ESTALE, HINT_DEAD },
        { "find target", ENOTCONN, HINT_DEAD },
        { "find target", EIO, HINT_DEAD },
        { "find target", ENODEV, HINT_DEAD },
        { "find target", ENOENT, "use \"mkdir\": true (the default) to create missing directories" },
        { "find target", EPERM, "choose a target outside /proc, /sys and the cgroup filesystem" },
        { "openat2", ELOOP, "the target contains a magic link (like /proc/PID/root) or too many symbolic links" },
        { "openat2", EACCES, "the target lies below a FUSE filesystem of the container; choose another" },
        { "pin container", ESRCH, "name a running container" },
        { "pin container", EPERM, "name the user whose container it is, or the container by its process id" },
        { "read container state", EPERM, "chown root and chmod go-w it: only root may be able to write to it" },
        { "find container", ENOENT, "use a process id, which works for every runtime: {\"container\": PID}" },
        { "find container", ENOTUNIQ, "give the whole id, or its \"runtime\"; of a pod the \"container\"" },
        { "find container", ESRCH, "start the container, or name a running one" },
        { "start remap-daemon", ENOENT, "install remap-daemon with make install" },
        { "fsconfig", EPERM,
          "since Linux 6.11 a user namespace may own few types of filesystems: \"ids\": \"auto\" maps ids instead" },
        { "fsconfig", EINVAL, "see the kernel's messages, here or in dmesg: an option, or the device's content" },
        { "fsopen", ENODEV, "cat /proc/filesystems lists the types; modprobe loads one" },
        { "move_mount", ENOENT, "the target was removed meanwhile; try again" },
        { "move_mount", EINVAL, "the target is not in the container's own mount namespace; choose another" },
        { "look again", ESTALE, "a process in the container changed the target's path; try again" },
        { "umount2", EBUSY, "a process in the container uses it, or a mount covers it; \"force\": true detaches it" },
        { "lock attributes", EINVAL,
          "leave out \"locked\"; a container without a user namespace of its own should not have CAP_SYS_ADMIN" },
        { "wait", ETIMEDOUT, "a filesystem on the path, or a server, does not answer; mount-remove takes \"force\"" },
        { "open state", EPERM, "chown root and chmod 0700 the directory: only root may be able to write to it" },
        { "find content", ENODATA, "restore the disk, or give the volume up with volume-delete: then it is made anew" },
        { "prctl", EPERM, "run it as root" },
        { "capset", EPERM,
          "run it as root, with the capabilities in its man page (CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, "
          "CAP_DAC_OVERRIDE, CAP_SETUID, CAP_SETGID among them)" },
        {},
};

const char *failure_hint_among(const struct hint *list, const struct error *error)
{
        for (; list != NULL && list->operation != NULL; list++)
                if (strcmp(error->operation, list->operation) == 0 &&
                    (list->errnum == 0 || list->errnum == error->errnum))
                        return list->text;
        return NULL;
}

const char *failure_hint(const struct error *error, const struct hint *of_kind)
{
        const char *hint = failure_hint_among(of_kind, error);

        return hint != NULL ? hint : failure_hint_among(hints, error);
}

int failure_exit_status(const struct error *error)
{
        return strcmp(error->operation, OPERATION_PARSE) != 0 ? EXIT_FAILED : EXIT_NOT_UNDERSTOOD;
}

json_t *failure_detail(const struct error *error, const char *hint)
{
        json_t *detail = json_pack("{s:s, s:s?, s:o, s:o}", "operation", error->operation, "errno",
                                   strerrorname_np(error->errnum), "subject", reply_printable(error->subject), "where",
                                   reply_printable(error->where));

        if (detail != NULL && error->kernel[0] != '\0')
                (void)json_object_set_new(detail, "kernel", reply_printable(error->kernel));
        if (detail != NULL && hint != NULL)
                (void)json_object_set_new(detail, "hint", json_string(hint));
        return detail;
}

int failure_say(const char *message, const struct error *error, const char *hint)
{
        return reply_say(json_pack("{s:s, s:o, s:o}", "status", "Failure", "message", reply_printable(message), "error",
                                   failure_detail(error, hint)),
                         failure_exit_status(error));
}

int failure_complain(char *line, size_t size, const struct error *error)
{
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, size)); /* there is no other way to report */
        return failure_exit_status(error);
}
