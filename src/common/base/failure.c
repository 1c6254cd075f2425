/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failure.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reply.h"
#include "base/schema.h"
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
          "a filesystem on the path, or a server, does not answer: unmount it, or end it; for a mount whose own server is "
          "dead mount-remove takes \"force\"" },
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

bool failure_understood(const struct error *error)
{
        return strcmp(error->operation, OPERATION_PARSE) != 0;
}

int failure_exit_status(const struct error *error)
{
        return failure_understood(error) ? EXIT_FAILED : EXIT_NOT_UNDERSTOOD;
}

/* ---- the reply */

static json_t *schema_of_errno(const struct key_table *table, unsigned programs)
{
        (void)table;
        (void)programs;
        return json_pack("{s:[s, s]}", "type", "string", "null");
}

static json_t *errno_name(int errnum)
{
        const char *name = strerrorname_np(errnum);

        return name != NULL ? json_string(name) : json_null();
}

/* clang-format off */
#define DETAIL(X) \
        X("operation", ALL, ALL, json_string(error->operation), \
          KEY_ANY, .help = "what was tried: a system call's name, or words") \
        X("errno", ALL, ALL, errno_name(error->errnum), \
          KEY_OWN, .schema = schema_of_errno, .help = "the name of an errno value; null where there is none") \
        X("subject", ALL, ALL, reply_printable(error->subject), KEY_ANY, .help = "on what it was tried") \
        X("where", ALL, ALL, reply_printable(error->where), KEY_ANY, .help = "on the node, or in which container") \
        X("kernel", ALL, 0, members_text(error->kernel), KEY_ANY, .help = "the kernel's own messages") \
        X("hint", ALL, 0, hint != NULL ? json_string(hint) : NULL, KEY_ANY, .help = "what to look at next")
/* clang-format on */

static const struct key detail_rows[] = { DETAIL(MEMBER_ROW) };
const struct key_table failure_detail_keys = KEY_TABLE(detail_rows);

json_t *failure_detail(const struct error *error, const char *hint)
{
        struct members members = { .programs = 1 };

        DETAIL(MEMBER_PUT)
        return members_end(&members);
}

static const char *const statuses[] = { "Failure", NULL };

/* clang-format off */
#define FAILURE(X) \
        X("status", ALL, ALL, json_string(statuses[0]), \
          KEY_WORD, .words = statuses, .help = "the request was not carried out") \
        X("message", ALL, ALL, reply_printable(message), \
          KEY_ANY, .help = "one sentence: what failed, on what, and why") \
        X("error", ALL, 0, error != NULL ? failure_detail(error, hint) : NULL, \
          KEY_OBJECT, .members = &failure_detail_keys, .help = "the same, for programs")
/* clang-format on */

static const struct key failure_rows[] = { FAILURE(MEMBER_ROW) };
const struct key_table failure_keys = KEY_TABLE(failure_rows);

json_t *failure_object(const char *message, const struct error *error, const char *hint)
{
        struct members members = { .programs = 1 };

        FAILURE(MEMBER_PUT)
        return members_end(&members);
}

int failure_say(const char *message, const struct error *error, const char *hint)
{
        const int status = failure_exit_status(error);

        return reply_say(failure_object(message, error, hint), status);
}

int failure_complain(char *line, size_t size, const struct error *error)
{
        (void)file_write_all(STDERR_FILENO, line, text_end_line(line, size)); /* there is no other way to report */
        return failure_exit_status(error);
}
