/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <sys/utsname.h>

#include "base/nearest.h"
#include "base/text.h"
#include "state/config.h"

#define NAME_DEFAULT "csi.flexgraft.io"
/* The topology is "topology.NAME/node": "NODE", in which what is before the slash and the value have 63 characters each. */
#define NAME_MAX_BYTES 54
#define NODE_MAX_BYTES 63
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define IDLE_DEFAULT 60
#define GRACE_DEFAULT 20
#define SECONDS_MAX 86400
#define PATH_MAX_BYTES (sizeof((struct sockaddr_un *)0)->sun_path - 1)

static const char *endpoint;
static const char *registry;
static const char *node;
static const char *name;
static const char *idle;
static const char *grace;

static const char *const path_word[] = { "PATH", NULL };
static const char *const dir_word[] = { "DIR", NULL };
static const char *const name_word[] = { "NAME", NULL };
static const char *const seconds_word[] = { "SECONDS", NULL };

const struct usage_option options_of_csi[] = {
        { .name = "--endpoint",
          .words = path_word,
          .help = "the socket that kubelet and the sidecars call (KUBELET/plugins/NAME/csi.sock)",
          .ret_word = &endpoint },
        { .name = "--registry",
          .words = dir_word,
          .help = "register with kubelet: its directory plugins_registry (without it: do not register)",
          .ret_word = &registry },
        { .name = "--node",
          .words = name_word,
          .help = "the node's name, its id and topology (nodeName of the configuration, else the host's name)",
          .ret_word = &node },
        { .name = "--name", .words = name_word, .help = "the driver's name (" NAME_DEFAULT ")", .ret_word = &name },
        { .name = "--idle",
          .words = seconds_word,
          .help = "started by its sockets, end after so many seconds without calls and clients (60; 0: never)",
          .ret_word = &idle },
        { .name = "--grace",
          .words = seconds_word,
          .help = "told to end, wait so many seconds for calls under way (20); what they began goes on",
          .ret_word = &grace },
        {},
};

static int refuse(struct error *error, const char *subject, const char *reason)
{
        return fail_because(error, EINVAL, OPERATION_PARSE, subject, "%.64s %s", subject, reason);
}

/* One option and its value, "--name VALUE" or "--name=VALUE". Returns how many arguments it takes. */
static int read_option(char **argv, struct error *error)
{
        struct nearest nearest = { .asked = argv[0] };
        char hint[NEAREST_HINT_MAX];

        for (const struct usage_option *option = options_of_csi; option->name != NULL; option++) {
                size_t length = strlen(option->name);
                const char *value = argv[1];

                nearest_offer(&nearest, option->name);
                if (!text_starts(argv[0], option->name) || (argv[0][length] != '\0' && argv[0][length] != '='))
                        continue;
                if (argv[0][length] == '=')
                        value = argv[0] + length + 1;
                if (value == NULL || value[0] == '\0')
                        return refuse(error, option->name, "must be followed by a value");
                if (*option->ret_word != NULL)
                        return refuse(error, option->name, "is given twice");
                *option->ret_word = value;
                return argv[0][length] == '=' ? 1 : 2;
        }
        nearest_hint(&nearest, hint);
        return fail_because(error, EINVAL, OPERATION_PARSE, argv[0], "unknown option %.128s%s", argv[0], hint);
}

/* A DNS name, as the interface wants the driver's and Kubernetes a node's. */
static bool is_name(const char *text, size_t maximum)
{
        size_t length = strlen(text);

        for (const char *at = text; *at != '\0'; at++)
                if (!isalnum((unsigned char)*at) && (strchr("-.", *at) == NULL || at == text || at[1] == '\0'))
                        return false;
        return length > 0 && length <= maximum;
}

static int check_path(const char *option, const char *path, struct error *error)
{
        if (path[0] != '/' || text_climbs(path))
                return refuse(error, option, "must be followed by an absolute path without \"..\"");
        if (strlen(path) > PATH_MAX_BYTES)
                return refuse(error, option, "is longer than a socket's path may be");
        return 0;
}

static int check(const struct options *options, struct error *error)
{
        int r;

        if (!is_name(options->csi.name, NAME_MAX_BYTES) || strpbrk(options->csi.name, CAPITALS) != NULL)
                return refuse(error, "--name", "must be a DNS name of at most 54 characters, in small letters");
        if (!is_name(options->csi.node, NODE_MAX_BYTES))
                return refuse(error, "--node",
                              "(else nodeName of the configuration, or the host's name) must be a DNS name of at most "
                              "63 characters, as a label's value");
        if ((r = check_path("--endpoint", options->csi.endpoint, error)) < 0)
                return r;
        return options->csi.registry != NULL ? check_path("--registry", options->csi.registry, error) : 0;
}

int options_read(int argc, char **argv, struct options *ret_options, struct error *error)
{
        /* the options point to them */
        static struct config config;
        static struct utsname host;
        static char default_endpoint[PATH_MAX + NAME_MAX_BYTES + 32];
        uint64_t idle_seconds = IDLE_DEFAULT;
        uint64_t grace_seconds = GRACE_DEFAULT;
        int r;

        for (int i = 1; i < argc; i += r)
                if ((r = read_option(argv + i, error)) < 0)
                        return r;
        if (idle != NULL && !text_number(idle, SECONDS_MAX, &idle_seconds))
                return refuse(error, "--idle", "must be followed by a number of seconds");
        if (grace != NULL && !text_number(grace, SECONDS_MAX, &grace_seconds))
                return refuse(error, "--grace", "must be followed by a number of seconds");
        if ((r = config_load(&config, error)) < 0)
                return r;
        if (uname(&host) < 0)
                return fail(error, errno, "uname", "the host's name");
        name = name != NULL ? name : NAME_DEFAULT;
        (void)snprintf(default_endpoint, sizeof default_endpoint, "%s/plugins/%.*s/csi.sock", config.kubelet_root,
                       NAME_MAX_BYTES, name);
        *ret_options = (struct options){
                .csi = { .endpoint = endpoint != NULL ? endpoint : default_endpoint,
                         .registry = registry,
                         .node = node != NULL                  ? node
                                 : config.node_name[0] != '\0' ? config.node_name
                                                               : host.nodename,
                         .name = name },
                .idle_seconds = (unsigned)idle_seconds,
                .grace_seconds = (unsigned)grace_seconds,
        };
        return check(ret_options, error);
}
