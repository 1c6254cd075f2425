/* SPDX-License-Identifier: Apache-2.0 */
#include "network/nfs_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "network/dns.h"
#include "process/namespace.h"
#include "process/privileges.h"
#include "process/sealed_child.h"
#include "process/worker.h"

#define FILE_SIZE ((size_t)256 * 1024) /* of a hosts file; the rest of a longer one is ignored */

struct job {
        const struct nfs_server_view *view;
        const char *host;
        uint16_t port;
        bool connects;
        int64_t deadline_ms;
        struct address_list list; /* not empty: the name was looked up */
        int list_fd;              /* where look_up_in_child() writes it */
};

/* Reads a file beneath the container's root into FILE_SIZE bytes; "" if it is not a regular file. */
static void read_text(const struct nfs_server_view *view, const char *path, char *ret_text)
{
        cleanup_close int fd = file_open_regular_in(view->root_fd, path);
        size_t length = 0;
        ssize_t n;

        if (fd >= 0)
                while (length < FILE_SIZE - 1 && (n = read(fd, ret_text + length, FILE_SIZE - 1 - length)) > 0)
                        length += (size_t)n;
        ret_text[length] = '\0';
}

static int ask_name_servers(struct job *job, char *text, struct error *error)
{
        struct resolv_conf conf;

        resolv_conf_parse(text, &conf);
        return dns_ask(&conf, job->host, job->deadline_ms, &job->list, error);
}

/* The more specific of two errors. */
static int worse(int one, int other)
{
        static const int order[] = { ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT };

        for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
                if (one == order[i] || other == order[i])
                        return order[i];
        return one != 0 ? one : other;
}

static int connect_one(const struct job *job, const union address *address, struct error *error)
{
        cleanup_close int fd = socket(address->any.sa_family,
                                      (job->connects ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || (connect(fd, &address->any, address_size(address)) < 0 && errno != EINPROGRESS))
                return fail(error, errno, OPERATION_CONNECT, job->host);
        return fd_take(&fd);
}

static int settle(const struct pollfd *polled)
{
        int problem = 0;
        socklen_t size = sizeof problem;

        return getsockopt(polled->fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0 ? errno : problem;
}

/* Connects to all addresses at once; the first connection. */
static int connect_any(const struct job *job, struct error *error)
{
        struct pollfd polled[ADDRESSES_MAX] = {};
        const size_t count = job->list.count;
        int failure = 0;
        nfds_t open_count = 0;
        int fd = -EBADF;

        for (size_t i = 0; i < count; i++) {
                polled[i] =
                        (struct pollfd){ .fd = connect_one(job, &job->list.addresses[i], error), .events = POLLOUT };
                if (polled[i].fd < 0)
                        failure = worse(failure, error->errnum);
                else
                        open_count++;
        }
        while (fd < 0 && open_count > 0) {
                int64_t left_ms = job->deadline_ms - clock_now_ms();

                if (left_ms <= 0 || poll(polled, count, (int)left_ms) == 0) {
                        failure = worse(failure, ETIMEDOUT);
                        break;
                }
                for (size_t i = 0; fd < 0 && i < count; i++) {
                        int problem;

                        if (polled[i].fd < 0 || polled[i].revents == 0)
                                continue;
                        problem = settle(&polled[i]);
                        if (problem == 0) {
                                fd = polled[i].fd;
                                polled[i].fd = -1;
                                break;
                        }
                        failure = worse(failure, problem);
                        fd_close(&polled[i].fd);
                        open_count--;
                }
        }
        for (size_t i = 0; i < count; i++)
                fd_close(&polled[i].fd);
        if (fd >= 0)
                return fd;
        if (failure == ETIMEDOUT)
                return fail_because(error, ETIMEDOUT, OPERATION_CONNECT, job->host, "the server does not answer");
        return fail(error, failure, OPERATION_CONNECT, job->host);
}

static bool is_allowed(const struct job *job, const union address *address)
{
        const struct nfs_server_rule *rule = job->view->rule;

        return rule == NULL || rule->allows == NULL || rule->listed || rule->allows(rule->argument, address);
}

static int fail_forbidden(const struct job *job, struct error *error)
{
        return fail_because(error, EACCES, OPERATION_CHECK_POLICY, job->host,
                            "the policy allows no address of %.255s: none is in \"nfsServers\"", job->host);
}

/* Fills the list: from here on nobody, without privileges. */
static int look_up(struct job *job, struct error *error)
{
        static char resolver[FILE_SIZE];
        static char hosts[FILE_SIZE];
        union address literal;
        int parent = getppid();
        int r = 0;

        if (job->list.count == 0) {
                read_text(job->view, "etc/hosts", hosts);
                read_text(job->view, "etc/resolv.conf", resolver);
        }
        if ((r = privileges_be_nobody(error)) < 0)
                return r;
        worker_dies_with_parent(parent); /* changing ids clears it (prctl(2), PR_SET_PDEATHSIG) */
        if (job->list.count > 0)
                return 0;
        if (address_parse(job->host, job->port, &literal))
                address_add(&job->list, &literal);
        else
                resolv_conf_hosts(hosts, job->host, job->port, &job->list);
        if (job->list.count == 0 && (r = ask_name_servers(job, resolver, error)) < 0)
                return error_where(error, job->view->name);
        return 0;
}

static int fail_family(const struct job *job, struct error *error)
{
        return fail_because(error, EAFNOSUPPORT, OPERATION_CONNECT, job->host,
                            "the server has no address of %s, which \"proto\" or \"mountproto\" asks for",
                            job->view->family == AF_INET6 ? "IPv6" : "IPv4");
}

static bool is_of_family(const struct job *job, const union address *address)
{
        return job->view->family == AF_UNSPEC || address->any.sa_family == job->view->family;
}

/* In a sealed child: a connected socket, for UDP without a packet sent. */
static int find_in_child(void *argument, struct error *error)
{
        struct job *job = argument;
        struct address_list *list = &job->list;
        size_t fitting = 0;
        size_t allowed = 0;
        int r = job->view->net_ns_fd < 0 ? 0 : namespace_enter_network(job->view->net_ns_fd, job->view->name, error);

        if (r < 0 || (r = look_up(job, error)) < 0)
                return r;
        for (size_t i = 0; i < list->count; i++) {
                if (!is_of_family(job, &list->addresses[i]))
                        continue;
                fitting++;
                if (!is_allowed(job, &list->addresses[i]))
                        continue;
                list->addresses[allowed] = list->addresses[i];
                list->addresses[allowed++].four.sin_port = htons(job->port); /* IPv6 has it at the same offset */
        }
        list->count = allowed;
        r = fitting == 0   ? fail_family(job, error)
            : allowed == 0 ? fail_forbidden(job, error)
                           : connect_any(job, error);
        return r < 0 ? error_where(error, job->view->name) : r;
}

/* In a sealed child in the node's network: the list, as one message. */
static int look_up_in_child(void *argument, struct error *error)
{
        struct job *job = argument;
        int r = look_up(job, error);

        if (r < 0)
                return r;
        if (write(job->list_fd, &job->list, sizeof job->list) != (ssize_t)sizeof job->list)
                return fail(error, EIO, "write", "the addresses of a server");
        return job->list_fd;
}

/* The addresses that the node knows for a host, in the list. */
static int look_up_on_node(struct job *job, struct error *error)
{
        cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct nfs_server_view view = { .net_ns_fd = -EBADF, .root_fd = root_fd, .name = "node" };
        struct job there = { .view = &view, .host = job->host, .port = job->port, .deadline_ms = job->deadline_ms };
        cleanup_close int ours = -EBADF;
        cleanup_close int theirs = -EBADF;
        cleanup_close int fd = -EBADF;
        int sockets[2];

        if (root_fd < 0)
                return fail(error, errno, "open", "/");
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail(error, errno, "socketpair", "the addresses of a server");
        ours = sockets[0];
        theirs = there.list_fd = sockets[1];
        fd = sealed_child_run(look_up_in_child, &there, (const int[]){ root_fd, theirs }, 2, error);
        if (fd < 0)
                return fd;
        if (read(ours, &job->list, sizeof job->list) != (ssize_t)sizeof job->list || job->list.count == 0 ||
            job->list.count > ADDRESSES_MAX)
                return fail(error, EPROTO, "read", "the addresses of a server");
        return 0;
}

int nfs_server_find(const struct nfs_server_view *view, const char *host, uint16_t port, bool connects,
                    int64_t deadline_ms, struct nfs_server *ret_address, struct error *error)
{
        struct job job = { .view = view, .host = host, .port = port, .connects = connects, .deadline_ms = deadline_ms };
        const int keep[] = { view->root_fd, view->net_ns_fd };
        cleanup_close int fd = -EBADF;
        union address server = {};
        union address client = {};
        socklen_t size = sizeof server;
        socklen_t client_size = sizeof client;
        int r;

        if (view->net_ns_fd >= 0 && view->rule != NULL && view->rule->listed && (r = look_up_on_node(&job, error)) < 0)
                return r;
        fd = sealed_child_run(find_in_child, &job, keep, view->net_ns_fd < 0 ? 1 : 2, error);
        if (fd < 0)
                return fd;
        if (getpeername(fd, &server.any, &size) < 0 || getsockname(fd, &client.any, &client_size) < 0)
                return fail(error, errno, "getpeername", host);
        address_unmap(&server);
        address_unmap(&client);
        if (!is_allowed(&job, &server)) /* again: 0.0.0.0 connects to 127.0.0.1 */
                return fail_forbidden(&job, error);
        if ((r = address_text(&server, ret_address->server)) < 0 ||
            (r = address_text(&client, ret_address->client)) < 0)
                return fail(error, -r, "getpeername", host);
        return 0;
}

/* ---- an export of an NFS server as text */

int nfs_export_join(const char *host, const char *path, struct nfs_export *ret_export)
{
        size_t length = strlen(host);

        if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
                host++;
                length -= 2;
        }
        if (length == 0 || length >= sizeof ret_export->host || path[0] != '/' ||
            strlen(path) >= sizeof ret_export->path)
                return -EINVAL;
        (void)snprintf(ret_export->host, sizeof ret_export->host, "%.*s", (int)length, host);
        if (ret_export->host[strcspn(ret_export->host, "/[] \t\n,@")] != '\0')
                return -EINVAL;
        (void)text_copy(ret_export->path, sizeof ret_export->path, path);
        (void)snprintf(ret_export->source, sizeof ret_export->source,
                       strchr(ret_export->host, ':') != NULL ? "[%s]:%s" : "%s:%s", ret_export->host, path);
        return 0;
}

int nfs_export_parse(const char *source, struct nfs_export *ret_export)
{
        const char *end = source[0] == '[' ? strstr(source, "]:") : strchr(source, ':');
        char host[NFS_HOST_SIZE + 2];
        size_t length;

        if (end == NULL)
                return -EINVAL;
        if (*end == ']')
                end++;
        length = (size_t)(end - source);
        if (length >= sizeof host)
                return -EINVAL;
        (void)snprintf(host, sizeof host, "%.*s", (int)length, source);
        return nfs_export_join(host, end + 1, ret_export);
}
