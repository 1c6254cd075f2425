/* SPDX-License-Identifier: Apache-2.0 */
#include "host/finding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

const char *const host_state_words[] = {
        [HOST_UNKNOWN] = "unknown", [HOST_OK] = "ok", [HOST_MISSING] = "missing", NULL
};

static bool privileged;

void host_found(struct host_finding *finding, enum host_state state, const char *text, ...)
{
        va_list arguments;

        finding->state = state;
        finding->refused = false;
        va_start(arguments, text);
        (void)vsnprintf(finding->found, sizeof finding->found, text, arguments);
        va_end(arguments);
        text_make_printable(finding->found);
}

void host_found_refused(struct host_finding *finding)
{
        host_found(finding, HOST_UNKNOWN, "only root, with all capabilities, can find out");
        finding->refused = true;
}

static bool is_refusal(int errnum)
{
        return errnum == EPERM || errnum == EACCES;
}

void host_found_error(struct host_finding *finding, const struct error *error)
{
        if (is_refusal(error->errnum) && !privileged)
                host_found_refused(finding);
        else if (error->reason[0] == '\0' && error->operation[0] != '\0')
                host_found(finding, HOST_MISSING, "%s: %s", error->operation, error_why(error));
        else
                host_found(finding, HOST_MISSING, "%s", error_why(error));
}

void host_found_call(struct host_finding *finding, int errnum, const char *call)
{
        if (errnum == ENOSYS)
                host_found(finding, HOST_MISSING, "the kernel has no %s, or a seccomp filter hides it", call);
        else if (is_refusal(errnum) && !privileged)
                host_found_refused(finding);
        else if (is_refusal(errnum))
                host_found(finding, HOST_MISSING, "a seccomp filter or a security module refuses %s", call);
        else
                host_found(finding, HOST_UNKNOWN, "%s: %s", call, error_text(errnum));
}

int host_status_field(const char *name, char *ret_value, size_t size)
{
        char status[4096];
        ssize_t length = file_read(AT_FDCWD, "/proc/self/status", status, sizeof status);
        const char *line;

        if (length < 0)
                return (int)length;
        line = strstr(status, name);
        if (line == NULL)
                return -ENODATA;
        line += strlen(name);
        line += strspn(line, " \t");
        (void)snprintf(ret_value, size, "%.*s", (int)strcspn(line, "\n"), line);
        return 0;
}

void host_privileges_look(const struct privileges *privileges)
{
        char text[64];
        unsigned long long set;

        privileged = host_status_field("CapEff:", text, sizeof text) == 0;
        set = privileged ? strtoull(text, NULL, 16) : 0;
        for (int i = 0; i < privileges->capability_count; i++)
                privileged = privileged && (set >> privileges->capabilities[i] & 1) != 0;
}

bool host_has_privileges(void)
{
        return privileged;
}
