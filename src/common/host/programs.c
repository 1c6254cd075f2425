/* SPDX-License-Identifier: Apache-2.0 */
#include "host/probes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "privileges/versions.h"

#include "block/pmem.h"
#include "process/exec.h"
#include "process/exec_helper.h"
#include "process/program.h"

#define VERSION_SECONDS 3

/*
 * The runtimes whose versions are asked, and since which they honour uidMappings of mounts (docs/KERNEL.md#oci-hooks).
 */
static const struct {
        const char *name;
        unsigned major;
        unsigned minor;
} runtimes[] = { { "runc", 1, 2 }, { "crun", 0, 0 } };
#define RUNTIMES (sizeof runtimes / sizeof runtimes[0])

/* ---- in the exec helper */

static void run_orders(int fd)
{
        static struct exec_end answer;
        unsigned order;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                answer = (struct exec_end){ .errnum = EINVAL };
                if (order < RUNTIMES) {
                        const char *const arguments[] = { runtimes[order].name, "--version", NULL };
                        const struct exec command = { .name = runtimes[order].name,
                                                      .arguments = arguments,
                                                      .timeout_seconds = VERSION_SECONDS,
                                                      .report_fd = -EBADF };

                        answer = (struct exec_end){};
                        exec_run(&command, &answer);
                }
                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
                        break;
        }
}

/* ---- in the program */

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for versions", .privileges = &PRIVILEGES, .serve = run_orders
};

int programs_begin(struct error *error)
{
        return exec_helper_begin(&helper, error);
}

void programs_end(void)
{
        exec_helper_end(&helper);
}

void probe_program(const char *argument, struct host_finding *ret_finding)
{
        char path[PATH_MAX];

        if (exec_find(argument, path))
                host_found(ret_finding, HOST_OK, "%s", path);
        else
                host_found(ret_finding, HOST_MISSING, "%s is not installed in /usr/sbin, /sbin, /usr/bin or /bin",
                           argument);
}

void probe_sibling(const char *argument, struct host_finding *ret_finding)
{
        char path[PATH_MAX];

        if (program_find_sibling(argument, path))
                host_found(ret_finding, HOST_OK, "it is installed");
        else
                host_found(ret_finding, HOST_MISSING, "%s is not installed beside this program", argument);
}

/* It is asked for a region that does not exist: to say so it must have been started, with its libraries. */
void probe_pmem_namespaces(const char *argument, struct host_finding *ret_finding)
{
        struct error error = {};
        int r;

        (void)argument;
        probe_sibling("pmem-namespaces", ret_finding);
        if (ret_finding->state != HOST_OK)
                return;
        r = pmem_look("-", NULL, NULL, NULL, &error);
        if (r == -ENODEV)
                host_found(ret_finding, HOST_OK, "it runs");
        else
                host_found_error(ret_finding, &error);
}

/* Whether a runtime of this name and version ("1.1.5") honours uidMappings of mounts. */
static bool runtime_maps_mounts(const char *name, const char *version)
{
        char *end;
        unsigned long major = strtoul(version, &end, 10);
        unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

        for (size_t i = 0; i < RUNTIMES; i++)
                if (strcmp(runtimes[i].name, name) == 0)
                        return major > runtimes[i].major || (major == runtimes[i].major && minor >= runtimes[i].minor);
        return true;
}

/* "1.1.5+ds1" of "runc version 1.1.5+ds1 commit: ..."; "" where there is none. */
static void ask_version(unsigned runtime, char *ret_version, size_t size)
{
        static struct exec_end answer;
        const char *version;

        ret_version[0] = '\0';
        if (send(helper.fd, &runtime, sizeof runtime, MSG_NOSIGNAL) != (ssize_t)sizeof runtime ||
            recv(helper.fd, &answer, sizeof answer, 0) != (ssize_t)sizeof answer || answer.errnum != 0 ||
            answer.status != 0)
                return;
        version = strstr(answer.output, " version ");
        if (version != NULL)
                (void)snprintf(ret_version, size, "%.*s", (int)strcspn(version + 9, " "), version + 9);
}

void probe_runtimes(const char *argument, struct host_finding *ret_finding)
{
        char text[HOST_TEXT_MAX] = "";
        char path[PATH_MAX];
        bool maps = true;
        bool known = true;
        size_t length = 0;

        (void)argument;
        for (unsigned i = 0; i < RUNTIMES; i++) {
                char version[32];

                if (!exec_find(runtimes[i].name, path))
                        continue;
                ask_version(i, version, sizeof version);
                known = known && version[0] != '\0';
                maps = maps && (version[0] == '\0' || runtime_maps_mounts(runtimes[i].name, version));
                if (length < sizeof text)
                        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s %s",
                                                   length > 0 ? ", " : "", runtimes[i].name,
                                                   version[0] != '\0' ? version : "of an unknown version");
        }
        if (length == 0)
                host_found(ret_finding, HOST_UNKNOWN, "neither runc nor crun is installed in the usual directories");
        else
                host_found(ret_finding,
                           !maps   ? HOST_MISSING
                           : known ? HOST_OK
                                   : HOST_UNKNOWN,
                           "%s%s", text, maps ? "" : ": runc before 1.2 ignores uidMappings of mounts");
}

void probe_engines(const char *argument, struct host_finding *ret_finding)
{
        static const char *const engines[] = { "containerd", "crio", "dockerd", "podman", "machinectl" };
        char text[HOST_TEXT_MAX] = "";
        char path[PATH_MAX];
        size_t length = 0;

        (void)argument;
        for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
                if (exec_find(engines[i], path) && length < sizeof text)
                        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? ", " : "",
                                                   engines[i]);
        if (length > 0)
                host_found(ret_finding, HOST_OK, "%s", text);
        else
                host_found(ret_finding, HOST_UNKNOWN, "none is installed in the usual directories");
}
