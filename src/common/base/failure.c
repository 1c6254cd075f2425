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

#define HINT_CALL(call, version)                                                                                       \
        "the kernel has no " call ", which came with Linux " version                                                   \
        ", or a seccomp filter hides it; flexgraft needs Linux 5.12 or later"

const struct hint failure_hints[] = {
        { OPERATION_PARSE, 0, "--help shows every key with an example" },
        { OPERATION_OPEN, ENOSYS, HINT_CALL(OPERATION_OPENAT2, "5.6") },
        { OPERATION_OPENAT2, ENOSYS, HINT_CALL(OPERATION_OPENAT2, "5.6") },
        { OPERATION_OPEN_SOURCE, ENOSYS, HINT_CALL(OPERATION_OPENAT2, "5.6") },
        { OPERATION_OPEN_STATE, ENOSYS, HINT_CALL(OPERATION_OPENAT2, "5.6") },
        { OPERATION_PIDFD_OPEN, ENOSYS, HINT_CALL(OPERATION_PIDFD_OPEN, "5.3") },
        { OPERATION_OPEN_TREE, ENOSYS, HINT_CALL(OPERATION_OPEN_TREE, "5.2") },
        { OPERATION_MOVE_MOUNT, ENOSYS, HINT_CALL(OPERATION_MOVE_MOUNT, "5.2") },
        { OPERATION_FSOPEN, ENOSYS, HINT_CALL(OPERATION_FSOPEN, "5.2") },
        { OPERATION_FSCONFIG, ENOSYS, HINT_CALL(OPERATION_FSCONFIG, "5.2") },
        { OPERATION_FSMOUNT, ENOSYS, HINT_CALL(OPERATION_FSMOUNT, "5.2") },
        { OPERATION_FSPICK, ENOSYS, HINT_CALL(OPERATION_FSPICK, "5.2") },
        { OPERATION_MOUNT_SETATTR, ENOSYS, HINT_CALL(OPERATION_MOUNT_SETATTR, "5.12") },
        { OPERATION_OPEN_TREE_ATTR, ENOSYS, HINT_CALL(OPERATION_OPEN_TREE_ATTR, "6.15") },
        { OPERATION_OPEN_SOURCE, ELOOP,
          "give the path that realpath(1) prints on the node; for files of a container use "
          "mount-container-to-container" },
        { OPERATION_OPEN_SOURCE, ENOENT, "the source is looked up on the node, not in the container" },
        { OPERATION_WAIT, ETIMEDOUT,
          "a filesystem on the path, or a server, does not answer; mount-remove takes \"force\"" },
        { OPERATION_PRCTL, EPERM, "run it as root" },
        { OPERATION_CAPSET, EPERM,
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

const char *failure_hint(const struct error *error, const struct hint *of_kind, const struct hint *const *lists)
{
        const char *hint = failure_hint_among(of_kind, error);

        for (; hint == NULL && *lists != NULL; lists++)
                hint = failure_hint_among(*lists, error);
        return hint;
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
