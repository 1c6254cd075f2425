/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/nfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "mount/nfs_options.h"
#include "mount/superblock.h"
#include "network/port_mapper.h"
#include "process/log.h"
#include "process/namespace.h"
#include "process/sealed_child.h"

#define NFS_PORT 2049
#define PORT_MAPPER 111
#define PROBE_MS 3000 /* to a port that a firewall may drop packets to */

/* By which a server and its clients tell each other of reboots: without it the kernel gets no lock of version 3 (ENOLCK). */
#define STATD 100024
#define STATD_VERSION 1

#define NODE_SIZE 41 /* of a node's name, terminated, in a client's: a number follows in HOST_NAME_MAX */

static const char *const versions[] = { "4.2", "4.1", "4.0", "3" }; /* tried in this order */
#define VERSIONS_OF_4 3                                             /* of these, the first */

const struct hint nfs_hints[] = {
        { OPERATION_RESOLVE, ENOENT,
          "names are resolved with the container's /etc/hosts and /etc/resolv.conf; the driver uses the node's, and so "
          "do names that a policy lists" },
        { OPERATION_RESOLVE, 0,
          "check the name servers of the container's /etc/resolv.conf from its network; the driver uses the node's, "
          "and so do names that a policy lists" },
        { OPERATION_CONNECT, ECONNREFUSED, "the host answers, but no NFS server listens on that port (option port=)" },
        { OPERATION_CONNECT, 0,
          "connections are made from the container's network (try nsenter -t PID -n); the driver uses the node's" },
        { OPERATION_START_LOCKD, 0,
          "run rpcbind and rpc.statd in that network, or leave out \"lock\": without it locks of version 3 "
          "are local (\"nolock\"); those of version 4 need neither" },
        { OPERATION_FSCONFIG, EPROTONOSUPPORT,
          "leave the version out of the options: then the newest that both sides support is used" },
        { OPERATION_FSCONFIG, EACCES,
          "exports(5) on the server lists the hosts allowed; showmount -e SERVER shows them" },
        { OPERATION_FSCONFIG, ENOENT,
          "exportfs -v on the server, or showmount -e SERVER, lists the exported directories" },
        { OPERATION_FSCONFIG, ECONNREFUSED,
          "version 3 needs a port mapper on the server (port 111), or the options port and mountport" },
        { OPERATION_FSCONFIG, EPERM,
          "the server may refuse this client (exports(5): its address, sec=, a port below 1024); with \"ids\": "
          "\"userns\" it is the kernel, which lets a user namespace own few types of filesystems since Linux 6.11: "
          "\"auto\" maps ids instead" },
        {},
};

static int open_network(const struct nfs_mount *mount, struct error *error)
{
        int fd = openat(mount->container->proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? container_fail(mount->container, errno, "open", "ns/net", error) : fd;
}

/* "mountaddr" names another server, for the mount protocol of NFS 3: the same rule holds for it. */
static int check_mount_address(const struct nfs_mount *mount, struct error *error)
{
        const char *text = nfs_option_value(mount->options, "mountaddr");
        const struct nfs_server_rule *rule = mount->rule;
        union address address;

        if (text == NULL || rule == NULL || rule->allows == NULL || strcmp(text, mount->address.server) == 0)
                return 0;
        if (!address_parse(text, 0, &address) || !rule->allows(rule->argument, &address))
                return fail_because(error, EACCES, OPERATION_CHECK_POLICY, "mountaddr",
                                    "the policy does not allow it: \"%.100s\" is not in \"nfsServers\"", text);
        return 0;
}

/* What takes connections, seen from the mount's network. */
struct peer {
        const char *host;
        uint16_t port;
        bool connects;
        int family;
        int64_t deadline_ms;
};

static int find(const struct nfs_mount *mount, const struct peer *peer, struct nfs_server *ret_server,
                struct error *error)
{
        cleanup_close int net_ns_fd = mount->container != NULL ? open_network(mount, error) : -EBADF;
        cleanup_close int root_fd = mount->container != NULL ? -EBADF : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct nfs_server_view view = {
                .net_ns_fd = net_ns_fd, .root_fd = root_fd, .name = "node", .rule = mount->rule, .family = peer->family
        };

        if (mount->container != NULL) {
                if (net_ns_fd < 0)
                        return net_ns_fd;
                view.root_fd = mount->container->root_fd;
                view.name = mount->container->name;
        } else if (root_fd < 0)
                return fail(error, errno, "open", "/");
        return nfs_server_find(&view, peer->host, peer->port, peer->connects, peer->deadline_ms, ret_server, error);
}

/*
 * Version 3 asks the port mapper first, for minutes where a firewall drops that. A path that version 4 does not have would
 * then be told as a server that does not answer.
 */
static bool may_speak_3(const struct nfs_mount *mount)
{
        static struct error ignored;
        const char *host = nfs_option_value(mount->options, "mountaddr");
        const char *port = nfs_option_value(mount->options, "mountport");
        const char *proto = nfs_option_value(mount->options, "mountproto");
        struct peer peer = { .host = host != NULL ? host : mount->address.server,
                             .port = PORT_MAPPER,
                             .connects = true,
                             .deadline_ms = clock_now_ms() + PROBE_MS };
        struct nfs_server found;
        uint64_t number;

        if (port != NULL && text_number(port, UINT16_MAX, &number) && number != 0)
                peer.port = (uint16_t)number;
        return nfs_options_are_datagram(mount->options) || (proto != NULL && text_starts(proto, "udp")) ||
               find(mount, &peer, &found, &ignored) == 0;
}

int nfs_mount_find(struct nfs_mount *mount, struct error *error)
{
        const char *port = nfs_option_value(mount->options, "port");
        struct peer peer = { .host = mount->export->host,
                             .port = NFS_PORT,
                             .connects = !nfs_options_are_datagram(mount->options),
                             .family = nfs_options_family(mount->options),
                             .deadline_ms = mount->deadline_ms };
        uint64_t number;
        int r;

        if (nfs_option_value(mount->options, "addr") != NULL)
                return fail_because(error, EINVAL, "check options", "addr",
                                    "addr: not allowed: the server's address is looked up by its name");
        if (port != NULL && !text_number(port, UINT16_MAX, &number))
                return fail_because(error, EINVAL, "check options", "port", "port: \"%.32s\" is not a port", port);
        if (port != NULL && number != 0)
                peer.port = (uint16_t)number;
        r = find(mount, &peer, &mount->address, error);
        return r < 0 ? r : check_mount_address(mount, error);
}

/* ---- the filesystem */

struct open_job {
        const struct container *container;
        int net_ns_fd;
        bool owned;
};

/* The mount uses the network namespace in which its context is opened (seen on 6.1 for 3 and 4.2). */
static int open_in_child(void *argument, struct error *error)
{
        const struct open_job *job = argument;
        int r = namespace_enter_network(job->net_ns_fd, job->container->name, error);

        if (r == 0 && job->owned &&
            (r = namespace_become_root_of(job->container->user_ns_fd, job->container->name, error)) == 0)
                r = namespace_enter_mounts(job->container->mnt_ns_fd, job->container->name, error);
        return r < 0 ? r : superblock_open("nfs", error);
}

static int begin(const struct nfs_mount *mount, bool owned, struct error *error)
{
        struct open_job job = { .container = mount->container, .owned = owned };
        cleanup_close int net_ns_fd = -EBADF;
        int keep[3];

        if (mount->container == NULL)
                return superblock_open("nfs", error);
        net_ns_fd = open_network(mount, error);
        if (net_ns_fd < 0)
                return net_ns_fd;
        job.net_ns_fd = net_ns_fd;
        keep[0] = net_ns_fd;
        keep[1] = mount->container->user_ns_fd;
        keep[2] = mount->container->mnt_ns_fd;
        return sealed_child_run(open_in_child, &job, keep, sizeof keep / sizeof keep[0], error);
}

struct create_job {
        int context_fd;
        const char *source;
        char hostname[HOST_NAME_MAX + 1];
};

/*
 * An NFS 4 client identifies itself by its host name, and each network namespace is a client of its own. With the same
 * name for two, the server would take one for a rebooted other, and drop that one's open files and locks.
 */
static int create_in_child(void *argument, struct error *error)
{
        const struct create_job *job = argument;
        int r = namespace_new_hostname(job->hostname, error);

        if (r == 0)
                r = superblock_create(job->context_fd, job->source, error);
        return r < 0 ? r : job->context_fd;
}

/* Names of nodes may differ at their end alone: a longer one is cut, and has a hash of all of it. */
static void put_node(const char *name, char *ret_node)
{
        if (!text_copy(ret_node, NODE_SIZE, name))
                (void)snprintf(ret_node, NODE_SIZE, "%.23s-%016llx", name, (unsigned long long)hash_text(name));
}

/* Creates the superblock; in a container, with a client name of the node's and the network namespace's. */
static int create(const struct nfs_mount *mount, int context_fd, bool owned, struct error *error)
{
        struct create_job job = { .context_fd = context_fd, .source = mount->export->source };
        char node_name[NODE_SIZE];
        struct utsname node;
        struct stat own;
        struct stat st;
        int fd;

        if (mount->container == NULL || stat("/proc/self/ns/net", &own) < 0 ||
            fstatat(mount->container->proc_fd, "ns/net", &st, 0) < 0 || (st.st_ino == own.st_ino && !owned) ||
            uname(&node) < 0)
                return superblock_create(context_fd, mount->export->source, error);
        put_node(node.nodename, node_name);
        (void)snprintf(job.hostname, sizeof job.hostname, "%s-%llx%s", node_name, (unsigned long long)st.st_ino,
                       owned ? "u" : ""); /* other credentials, another client */
        fd = sealed_child_run(create_in_child, &job, &context_fd, 1, error);
        if (fd < 0)
                return fd;
        fd_close(&fd); /* a copy of the context's, which the caller owns */
        return 0;
}

static int configure(const struct nfs_mount *mount, int context_fd, bool owned, const char *version,
                     struct error *error)
{
        const char *client = nfs_option_value(mount->options, "clientaddr");
        const char *minor;
        /* "minorversion" alone names one, too, but not to the kernel */
        const char *named =
                version != NULL || nfs_options_version(mount->options, &minor) != NULL ? version : mount->version;
        int r;

        if ((r = superblock_set(context_fd, "source", mount->export->source, error)) < 0 ||
            (named != NULL && (r = superblock_set(context_fd, "vers", named, error)) < 0))
                return r;
        for (size_t i = 0; i < mount->options->fs_count; i++) {
                const char *option = mount->options->fs_options[i];

                if (!nfs_option_is_for_mount(option) && !(version != NULL && nfs_option_is_version(option)) &&
                    (r = superblock_option(context_fd, option, error)) < 0)
                        return r;
        }
        /* locks of version 3 need rpcbind and statd on the client; a container's network has neither */
        if ((mount->container != NULL || mount->no_locks) && !nfs_options_say_locks(mount->options) &&
            (strcmp(version != NULL ? version : mount->version, "3") == 0) &&
            (r = superblock_set(context_fd, "nolock", NULL, error)) < 0)
                return r;
        if ((r = superblock_set(context_fd, "addr", mount->address.server, error)) < 0 ||
            (r = superblock_set(context_fd, "clientaddr", client != NULL ? client : mount->address.client, error)) <
                    0 ||
            (mount->read_only && (r = superblock_set(context_fd, "ro", NULL, error)) < 0))
                return r;
        return create(mount, context_fd, owned, error);
}

/* Puts the errno of a failed mount into words. */
static int explain(const struct nfs_mount *mount, const char *version, struct error *error)
{
        const char *export = mount->export->path;
        const char *server = mount->address.server;

        if (strcmp(error->operation, OPERATION_FSCONFIG) != 0 || error->reason[0] != '\0')
                return error_negative(error->errnum);
        if (nfs_options_need_rpcbind(mount->options, version != NULL ? version : mount->version) &&
            (error->errnum == ECONNREFUSED || error->errnum == ENETUNREACH))
                return fail_because(error, error->errnum, OPERATION_START_LOCKD, mount->export->source,
                                    "\"lock\" with NFS 3 needs rpcbind, and none answers in the network of %s, or on "
                                    "the server %s",
                                    mount->container != NULL ? mount->container->name : "the node", server);
        switch (error->errnum) {
        case ENOENT:
                (void)snprintf(error->reason, sizeof error->reason,
                               "the server %s has no export %.255s for this client", server, export);
                break;
        case EACCES:
                (void)snprintf(error->reason, sizeof error->reason, "the server %s does not permit this client %.255s",
                               server, export);
                break;
        case EPROTONOSUPPORT:
                (void)snprintf(error->reason, sizeof error->reason, "the server %s does not speak NFS %s", server,
                               version != NULL ? version : mount->version);
                break;
        case ETIMEDOUT:
                (void)snprintf(error->reason, sizeof error->reason, "the server %s does not answer", server);
                break;
        default:
                break;
        }
        return error_negative(error->errnum);
}

static int make_version(struct nfs_mount *mount, bool owned, const char *version, struct error *error)
{
        cleanup_close int context_fd = -EBADF;
        int fd;
        int r;

        if (mount->container == NULL && strcmp(version != NULL ? version : mount->version, "3") == 0 &&
            !nfs_options_say_locks(mount->options))
                mount->no_locks = !port_mapper_knows(STATD, STATD_VERSION);
        context_fd = begin(mount, owned, error);
        if (context_fd < 0)
                return context_fd;
        if ((r = configure(mount, context_fd, owned, version, error)) < 0)
                return explain(mount, version, error);
        fd = superblock_mount(context_fd, mount->export->source, 0, error);
        if (fd >= 0 && version != NULL)
                (void)text_copy(mount->version, sizeof mount->version, version);
        return fd;
}

/*
 * Whether the options name one version; sets mount->version. The kernel combines "vers=4" with minorversion; alone it
 * is 4.0 to the kernel, but the newest 4.x to mount.nfs(8), and so here: then only those are tried (ret_only_4).
 */
static bool note_version(struct nfs_mount *mount, bool *ret_only_4)
{
        const char *minor;
        const char *version = nfs_options_version(mount->options, &minor);

        *ret_only_4 = minor == NULL && version != NULL && strcmp(version, "4") == 0;
        if (*ret_only_4)
                return false;
        if (minor != NULL)
                (void)snprintf(mount->version, sizeof mount->version, "4.%.4s", minor);
        else if (version != NULL)
                (void)snprintf(mount->version, sizeof mount->version, "%.7s", version);
        return minor != NULL || version != NULL;
}

int nfs_mount_make(struct nfs_mount *mount, bool owned, struct error *error)
{
        static struct error missing;
        size_t last = sizeof versions / sizeof versions[0] - 1;
        bool is_missing = false;
        bool only_4;
        int fd = -EPROTONOSUPPORT;

        if (note_version(mount, &only_4))
                return make_version(mount, owned, NULL, error);
        if (only_4)
                last = VERSIONS_OF_4 - 1;
        for (size_t i = 0; i <= last; i++) {
                fd = make_version(mount, owned, versions[i], error);
                if (fd == -ENOENT && !only_4 && i < last) {
                        /* an old server may export a path to version 3 alone */
                        missing = *error;
                        is_missing = true;
                        if (!may_speak_3(mount))
                                break;
                        i = last - 1;
                } else if (fd != -EPROTONOSUPPORT && fd != -EINVAL)
                        break;
        }
        if (fd < 0 && is_missing)
                *error = missing;
        else if (fd == -EPROTONOSUPPORT && only_4)
                (void)snprintf(error->reason, sizeof error->reason, "the server %s does not speak NFS 4",
                               mount->address.server);
        return fd < 0 ? error_negative(error->errnum) : fd;
}

int nfs_mount_on_node(struct nfs_mount *mount, struct error *error)
{
        int fd = nfs_mount_find(mount, error);

        if (fd < 0)
                return fd;
        fd = nfs_mount_make(mount, /* owned= */ false, error);
        if (fd >= 0 && mount->no_locks && strcmp(mount->version, "3") == 0)
                log_say("mounted %s without locks (nolock): this node has no rpcbind, or no rpc.statd",
                        mount->export->source);
        return fd;
}
