/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi-driver - the Container Storage Interface over flexgraft's programs.
 *
 * Two processes: this one speaks with kubelet and the sidecars, under a filter and without capabilities; the launcher,
 * which it starts first, runs the programs that do the work (launcher.h). It has no state: whatever it is asked, a
 * program answers.
 */
#include "privileges/csi-driver.h"

#include <stdio.h>

#include "awaited.h"
#include "base/failure.h"
#include "base/reply.h"
#include "calls.h"
#include "listen.h"
#include "options.h"
#include "process/program.h"
#include "run.h"
#include "server.h"

static struct options options;
static struct listener listeners[LISTEN_MAX];

/* With all privileges, before anything of a client is read. */
static int begin(int argc, char **argv, struct error *error)
{
        int activated;
        int r;

        if ((r = options_read(argc, argv, &options, error)) < 0 || (r = runs_begin(error)) < 0 ||
            (r = awaited_begin(error)) < 0 || (activated = listen_begin(&options, listeners, error)) < 0)
                return r < 0 ? r : activated; /* the launcher ends with this process */
        calls_begin(&options.csi);
        return server_begin(listeners, activated > 0 ? options.idle_seconds : 0, options.grace_seconds, error);
}

static const struct program program = {
        .usage = { .name = "csi-driver",
                   .arguments = "[OPTION]...",
                   .about = "Serve the Container Storage Interface to kubelet and to the sidecars, over a Unix socket "
                            "that only root may use. Each call runs programs of flexgraft; the driver mounts nothing "
                            "itself and has no state.\n"
                            "The service manager may give the sockets (LISTEN_FDS; LISTEN_FDNAMES=csi:registration). "
                            "Then the driver leaves them where they are and ends when it is idle. Else it makes and "
                            "removes them. SIGTERM: no new calls; it ends when those under way are finished or their "
                            "time is over.",
                   .options = options_of_csi,
                   .exit_status =
                           "Exit status: 0 ended as it was asked to, or idle; 1 failed; 2 the command line cannot be "
                           "understood. Needs root." },
        .privileges = &PRIVILEGES,
        .takes_options = true,
        .before_drop = begin,
};

int main(int argc, char **argv)
{
        static struct error error;
        static char line[sizeof error];

        if (program_begin(&program, argc, argv, &error) == 0 && server_run(&error) == 0)
                return 0;
        if (!failure_understood(&error))
                (void)snprintf(line, sizeof line, "csi-driver: " FAILURE_NOT_UNDERSTOOD "%s", error_why(&error));
        else
                (void)snprintf(line, sizeof line, "csi-driver: %s: %s: %s", error.operation, error.subject,
                               error_why(&error));
        return failure_complain(line, sizeof line, &error);
}
