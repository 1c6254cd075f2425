/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/reply_failure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file.h"
#include "base/reply.h"
#include "container/reference.h"
#include "inject/request/source.h"

static void name_container(const struct container_reference *container, char *ret_name, size_t size)
{
        char name[CONTAINER_NAME_MAX];

        container_reference_name(container, name, sizeof name);
        if (name[0] != '\0')
                (void)snprintf(ret_name, size, "container %s", name);
        else if (container->proc_dir != NULL)
                (void)snprintf(ret_name, size, "container %.200s", container->proc_dir);
        else
                (void)snprintf(ret_name, size, "container %d", container->pid);
}

/* "cannot mount /dev/vdb on /data in container web: ": what was tried, as far as the request says. */
static void intention(const struct request *request, char *ret_text, size_t size)
{
        char container[256];
        char from[256];

        name_container(&request->container, container, sizeof container);
        switch (request->kind) {
        case REQUEST_NONE: /* it failed before the request was read */
                ret_text[0] = '\0';
                return;
        case REQUEST_MOUNT:
                if (request->source_kind->of_container) {
                        name_container(&request->from, from, sizeof from);
                        (void)snprintf(ret_text, size, "cannot mount %s of %s on %s in %s: ", request->source, from,
                                       request->target, container);
                } else
                        (void)snprintf(ret_text, size, "cannot mount %s on %s in %s: ", request->source,
                                       request->target, container);
                return;
        case REQUEST_MOUNT_BATCH:
                (void)snprintf(ret_text, size, "cannot mount: ");
                return;
        case REQUEST_MOUNT_REMOVE:
                if (request->id != NULL)
                        (void)snprintf(ret_text, size, "cannot remove %s: ", request->id);
                else
                        (void)snprintf(ret_text, size, "cannot remove %s from %s: ", request->target, container);
                return;
        case REQUEST_MOUNT_LIST:
                (void)snprintf(ret_text, size, "cannot list mounts: ");
                return;
        }
}

/* The error in words: one sentence. */
static void put_message(const struct request *request, const struct error *error, char *ret_message, size_t size)
{
        static char tried[3 * PATH_MAX];
        bool understood = failure_understood(error);
        bool told; /* the subject is in the message already */

        if (understood)
                intention(request, tried, sizeof tried);
        else
                (void)snprintf(tried, sizeof tried, FAILURE_NOT_UNDERSTOOD);
        told = !understood || strstr(tried, error->subject) != NULL || strstr(error->reason, error->subject) != NULL;
        (void)snprintf(ret_message, size, "%s%s%s%s%s%s%s", tried, told ? "" : error->subject, told ? "" : ": ",
                       error_why(error), error->kernel[0] != '\0' ? " (kernel: " : "", error->kernel,
                       error->kernel[0] != '\0' ? ")" : "");
}

/* What kind it is, a request may not say: that of a volume by name is found out. */
static const char *hint_of(const struct request *request, const struct outcome *failed, const struct error *error)
{
        const struct source_kind *kind = failed != NULL ? failed->kind : request->source_kind;

        return failure_hint(error, kind != NULL ? kind->hints : NULL, inject_all_hints);
}

int inject_reply_failed(const struct request *request, const struct outcome *failed, const struct error *error)
{
        const struct request *one = failed != NULL ? failed->request : request;
        static char message[5 * PATH_MAX];

        if (one != request)
                (void)snprintf(message, sizeof message, "mounts[%zu]: ", one->index);
        put_message(one, error, message + strlen(message), sizeof message - strlen(message));
        return failure_say(message, error, hint_of(request, failed, error));
}

int inject_reply_failure(const struct request *request, const struct error *error)
{
        return inject_reply_failed(request, /* failed= */ NULL, error);
}

int inject_reply_complaint(const char *program, const struct request *request, const struct outcome *failed,
                           const struct error *error)
{
        static char line[6 * PATH_MAX];
        bool understood = failure_understood(error);
        const char *hint = understood ? hint_of(request, failed, error) : NULL;
        size_t length = (size_t)snprintf(line, sizeof line, "%s: ", program);

        if (understood)
                put_message(failed != NULL ? failed->request : request, error, line + length, sizeof line - length);
        else
                (void)snprintf(line + length, sizeof line - length, "%s%s%s",
                               error->reason[0] != '\0' ? "" : error->subject, error->reason[0] != '\0' ? "" : ": ",
                               error_why(error));
        length = strlen(line);
        (void)snprintf(line + length, sizeof line - length, "%s%s%s", hint != NULL ? " (" : "",
                       hint != NULL ? hint : "", hint != NULL ? ")" : "");
        return failure_complain(line, sizeof line, error);
}

int inject_reply_usage(const char *program, const char *complaint)
{
        char line[256];

        (void)snprintf(line, sizeof line, "%s: %s\n", program, complaint);
        (void)file_write_all(STDERR_FILENO, line, strlen(line)); /* nobody is left to tell */
        return EXIT_NOT_UNDERSTOOD;
}
