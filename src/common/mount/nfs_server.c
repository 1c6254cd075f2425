/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/nfs_server.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "base/text.h"
#include "process/namespace.h"
#include "process/privileges.h"
#include "process/sealed_child.h"
#include "process/worker.h"

/*
 * c-ares can look services up, for which nobody asks here. With the C library's own functions for that its whole name
 * service switch would come along, which loads modules.
 */
struct servent *getservbyname(const char *name, const char *proto)
{
        (void)name;
        (void)proto;
        return NULL;
}

int getservbyport_r(int port, const char *restrict proto, struct servent *restrict result, char *restrict buffer,
                    size_t size, struct servent **restrict ret_result)
{
        (void)port;
        (void)proto;
        (void)result;
        (void)buffer;
        (void)size;
        *ret_result = NULL;
        return ENOENT;
}

#define ADDRESSES_MAX 32
#define FILE_SIZE ((size_t)256 * 1024) /* of a hosts file; the rest of a longer one is not looked at */
#define SERVERS_MAX 3                  /* as the C library has it */
#define DOMAINS_MAX 6

union address {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
};

struct list {
        union address addresses[ADDRESSES_MAX];
        size_t count;
        int status; /* of c-ares */
        bool done;
};

struct job {
        const struct nfs_server_view *view;
        const char *host;
        uint16_t port;
        bool connects;
        int64_t deadline_ms;
        struct list list;
};

static socklen_t size_of(const union address *address)
{
        return address->any.sa_family == AF_INET ? sizeof address->four : sizeof address->six;
}

/* What if_nametoindex(3) does, on a socket of a sort that is allowed. 0: there is none of that name. */
static unsigned interface_index(const char *name)
{
        cleanup_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq interface = {};

        if (fd < 0 || !text_copy(interface.ifr_name, sizeof interface.ifr_name, name) ||
            ioctl(fd, SIOCGIFINDEX, &interface) < 0)
                return 0;
        return (unsigned)interface.ifr_ifindex;
}

/* A literal address; IPv6 perhaps with "%interface". */
static bool parse(const char *text, uint16_t port, union address *ret_address)
{
        char plain[SERVER_ADDRESS_SIZE];
        char *scope;

        *ret_address = (union address){};
        if (inet_pton(AF_INET, text, &ret_address->four.sin_addr) == 1) {
                ret_address->four.sin_family = AF_INET;
                ret_address->four.sin_port = htons(port);
                return true;
        }
        if (!text_copy(plain, sizeof plain, text))
                return false;
        scope = strchr(plain, '%');
        if (scope != NULL)
                *scope++ = '\0';
        if (inet_pton(AF_INET6, plain, &ret_address->six.sin6_addr) != 1)
                return false;
        ret_address->six.sin6_family = AF_INET6;
        ret_address->six.sin6_port = htons(port);
        if (scope != NULL) {
                uint64_t number = 0;

                if (!text_number(scope, UINT32_MAX, &number))
                        number = interface_index(scope);
                ret_address->six.sin6_scope_id = (uint32_t)number;
        }
        return true;
}

static void add(struct list *list, const union address *address)
{
        if (list->count < ADDRESSES_MAX)
                list->addresses[list->count++] = *address;
}

/* A file of the container's, beneath its root, into FILE_SIZE bytes; what is no file is as if it were not there: "". */
static void read_text(const struct nfs_server_view *view, const char *path, char *ret_text)
{
        cleanup_close int fd = sys_openat2(view->root_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
                                           RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        size_t length = 0;
        struct stat st;
        ssize_t n;

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                while (length < FILE_SIZE - 1 && (n = read(fd, ret_text + length, FILE_SIZE - 1 - length)) > 0)
                        length += (size_t)n;
        ret_text[length] = '\0';
}

/* The next word of a line, or NULL at its end or at a comment. Cuts the line up. */
static char *next_word(char **line)
{
        char *word = *line + strspn(*line, " \t\r");

        if (*word == '\0' || *word == '#' || *word == ';')
                return NULL;
        *line = word + strcspn(word, " \t\r#");
        if (**line == '#')
                **line = '\0';
        else if (**line != '\0')
                *(*line)++ = '\0';
        return word;
}

static char *next_line(char **text)
{
        char *line = *text;

        if (*line == '\0')
                return NULL;
        *text = line + strcspn(line, "\n");
        if (**text != '\0')
                *(*text)++ = '\0';
        return line;
}

static void look_in_hosts(struct job *job, char *text)
{
        char *line;

        while ((line = next_line(&text)) != NULL) {
                const char *literal = next_word(&line);
                const char *name;
                union address address;

                while (literal != NULL && (name = next_word(&line)) != NULL)
                        if (strcasecmp(name, job->host) == 0) {
                                if (parse(literal, job->port, &address))
                                        add(&job->list, &address);
                                break;
                        }
        }
}

/* ---- name servers */

struct resolver {
        char servers[SERVERS_MAX * (SERVER_ADDRESS_SIZE + 1)]; /* separated by commas */
        int server_count;
        char *domains[DOMAINS_MAX];
        int domain_count;
        struct ares_options options;
};

static int bounded(const char *text, int maximum)
{
        uint64_t number;

        return text_number(text, (uint64_t)maximum, &number) ? (int)number : maximum;
}

static void read_options(struct resolver *resolver, char *line)
{
        const char *word;

        while ((word = next_word(&line)) != NULL)
                if (text_starts(word, "ndots:"))
                        resolver->options.ndots = bounded(word + 6, 15);
                else if (text_starts(word, "timeout:"))
                        resolver->options.timeout = 1000 * bounded(word + 8, 30);
                else if (text_starts(word, "attempts:"))
                        resolver->options.tries = bounded(word + 9, 5);
}

static void read_resolver(char *text, struct resolver *ret_resolver)
{
        char *line;

        *ret_resolver = (struct resolver){ .options = { .ndots = 1, .timeout = 5000, .tries = 2 } };
        while ((line = next_line(&text)) != NULL) {
                const char *key = next_word(&line);
                char *word;

                if (key == NULL)
                        continue;
                if (strcmp(key, "nameserver") == 0 && (word = next_word(&line)) != NULL) {
                        union address address;
                        size_t length = strlen(ret_resolver->servers);

                        /* c-ares knows no interfaces by number, and by name asks in a way that is not allowed here */
                        if (ret_resolver->server_count < SERVERS_MAX && strlen(word) < SERVER_ADDRESS_SIZE &&
                            strchr(word, '%') == NULL && parse(word, 53, &address)) {
                                (void)snprintf(ret_resolver->servers + length, sizeof ret_resolver->servers - length,
                                               "%s%s", length > 0 ? "," : "", word);
                                ret_resolver->server_count++;
                        }
                } else if (strcmp(key, "search") == 0 || strcmp(key, "domain") == 0) {
                        ret_resolver->domain_count = 0; /* the last line counts */
                        while (ret_resolver->domain_count < DOMAINS_MAX && (word = next_word(&line)) != NULL)
                                ret_resolver->domains[ret_resolver->domain_count++] = word;
                } else if (strcmp(key, "options") == 0)
                        read_options(ret_resolver, line);
        }
        if (ret_resolver->server_count == 0)
                (void)text_copy(ret_resolver->servers, sizeof ret_resolver->servers,
                                "127.0.0.1"); /* as the C library */
        if (ret_resolver->options.timeout == 0)
                ret_resolver->options.timeout = 1000;
        if (ret_resolver->options.tries == 0)
                ret_resolver->options.tries = 1;
}

static void take_answer(void *argument, int status, int timeouts, struct ares_addrinfo *answer)
{
        struct list *list = argument;

        (void)timeouts;
        list->done = true;
        list->status = status;
        for (const struct ares_addrinfo_node *node = answer == NULL ? NULL : answer->nodes; node != NULL;
             node = node->ai_next) {
                union address address = {};

                if (node->ai_addrlen > sizeof address || (node->ai_family != AF_INET && node->ai_family != AF_INET6))
                        continue;
                (void)memcpy(&address, node->ai_addr, node->ai_addrlen);
                add(list, &address);
        }
        if (answer != NULL)
                ares_freeaddrinfo(answer);
}

/* What ares_getsock() says of each socket. c-ares' own macros shift an int into its sign. */
#define READABLE(which, i) (((which)&1U << (i)) != 0)
#define WRITABLE(which, i) (((which)&1U << ((i) + ARES_GETSOCK_MAXNUM)) != 0)

/* One round of c-ares' sockets. */
static void turn(ares_channel channel, int64_t until_ms)
{
        ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
        struct pollfd polled[ARES_GETSOCK_MAXNUM];
        const unsigned which = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
        struct timeval most = { .tv_sec = 1 };
        struct timeval wait_for;
        int64_t left_ms = until_ms - clock_now_ms();
        nfds_t count = 0;
        int wait_ms;

        if (left_ms < 0)
                left_ms = 0;
        for (unsigned i = 0; i < ARES_GETSOCK_MAXNUM; i++)
                if (READABLE(which, i) || WRITABLE(which, i))
                        polled[count++] = (struct pollfd){
                                .fd = sockets[i],
                                .events =
                                        (short)((READABLE(which, i) ? POLLIN : 0) | (WRITABLE(which, i) ? POLLOUT : 0)),
                        };
        wait_for = *ares_timeout(channel, &most, &most);
        wait_ms = (int)(wait_for.tv_sec * 1000 + wait_for.tv_usec / 1000 + 1);
        (void)poll(polled, count, left_ms < wait_ms ? (int)left_ms : wait_ms);
        for (nfds_t i = 0; i < count; i++)
                ares_process_fd(channel,
                                (polled[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0 ? polled[i].fd
                                                                                        : ARES_SOCKET_BAD,
                                (polled[i].revents & POLLOUT) != 0 ? polled[i].fd : ARES_SOCKET_BAD);
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* what ran out of time */
}

static int fail_resolve(const struct job *job, int status, struct error *error)
{
        switch (status) {
        case ARES_ENOTFOUND:
        case ARES_ENODATA:
        case ARES_EBADNAME:
                return fail_because(error, ENOENT, "resolve", job->host, "the name %.255s has no address", job->host);
        case ARES_ETIMEOUT:
        case ARES_ECANCELLED:
                return fail_because(error, ETIMEDOUT, "resolve", job->host, "no name server answered in time");
        case ARES_ECONNREFUSED:
                return fail_because(error, ECONNREFUSED, "resolve", job->host, "no name server takes the question");
        case ARES_ENOMEM:
                return fail(error, ENOMEM, "resolve", job->host);
        default:
                return fail_because(error, EAGAIN, "resolve", job->host, "the name servers do not know: %s",
                                    ares_strerror(status));
        }
}

static int ask_name_servers(struct job *job, char *text, struct error *error)
{
        static char lookups[] = "b"; /* the hosts file was ours to read */
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT };
        struct in_addr nobody = {};
        struct resolver resolver;
        ares_channel channel;
        int status;

        read_resolver(text, &resolver);
        resolver.options.flags = 0;
        resolver.options.lookups = lookups;
        resolver.options.domains = resolver.domains;
        resolver.options.ndomains = resolver.domain_count;
        resolver.options.servers =
                &nobody; /* replaced below, by those that may be IPv6; else it would read the node's */
        resolver.options.nservers = 1;
        status = ares_init_options(&channel, &resolver.options,
                                   ARES_OPT_FLAGS | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS | ARES_OPT_SERVERS |
                                           ARES_OPT_NDOTS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SORTLIST |
                                           ARES_OPT_NOROTATE);
        if (status != ARES_SUCCESS)
                return fail_resolve(job, status, error);
        status = ares_set_servers_csv(channel, resolver.servers);
        if (status == ARES_SUCCESS) {
                ares_getaddrinfo(channel, job->host, NULL, &hints, take_answer, &job->list);
                while (!job->list.done && clock_now_ms() < job->deadline_ms)
                        turn(channel, job->deadline_ms);
                if (!job->list.done)
                        ares_cancel(channel);
                status = job->list.status;
        }
        ares_destroy(channel);
        return job->list.count > 0 ? 0 : fail_resolve(job, status == ARES_SUCCESS ? ARES_ENODATA : status, error);
}

/* ---- a connection */

/* The failure that tells most. */
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

        if (fd < 0 || (connect(fd, &address->any, size_of(address)) < 0 && errno != EINPROGRESS))
                return fail(error, errno, "connect", job->host);
        return fd_take(&fd);
}

static int settle(const struct pollfd *polled)
{
        int problem = 0;
        socklen_t size = sizeof problem;

        return getsockopt(polled->fd, SOL_SOCKET, SO_ERROR, &problem, &size) < 0 ? errno : problem;
}

/* All at once; the first that is connected. */
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
                return fail_because(error, ETIMEDOUT, "connect", job->host, "the server does not answer");
        return fail(error, failure, "connect", job->host);
}

/* In a sealed child, which returns a socket that is connected, or for UDP only says with whom it would talk. */
static int find_in_child(void *argument, struct error *error)
{
        struct job *job = argument;
        union address literal;
        static char resolver[FILE_SIZE];
        static char hosts[FILE_SIZE];
        int parent = getppid();
        int r = job->view->net_ns_fd < 0 ? 0 : namespace_enter_network(job->view->net_ns_fd, job->view->name, error);

        if (r < 0)
                return r;
        read_text(job->view, "etc/hosts", hosts);
        read_text(job->view, "etc/resolv.conf", resolver);
        if ((r = privileges_be_nobody(error)) < 0)
                return r;
        worker_dies_with_parent(parent); /* a change of ids makes the kernel forget it */
        if (parse(job->host, job->port, &literal))
                add(&job->list, &literal);
        else
                look_in_hosts(job, hosts);
        if (job->list.count == 0 && (r = ask_name_servers(job, resolver, error)) < 0)
                return error_where(error, job->view->name);
        for (size_t i = 0; i < job->list.count; i++) /* the same place in both */
                job->list.addresses[i].four.sin_port = htons(job->port);
        r = connect_any(job, error);
        return r < 0 ? error_where(error, job->view->name) : r;
}

static int write_address(const union address *address, char *ret_text)
{
        size_t length;

        if (inet_ntop(address->any.sa_family,
                      address->any.sa_family == AF_INET ? (const void *)&address->four.sin_addr
                                                        : (const void *)&address->six.sin6_addr,
                      ret_text, SERVER_ADDRESS_SIZE) == NULL)
                return -errno;
        length = strlen(ret_text);
        if (address->any.sa_family == AF_INET6 && address->six.sin6_scope_id != 0)
                (void)snprintf(ret_text + length, SERVER_ADDRESS_SIZE - length, "%%%u", address->six.sin6_scope_id);
        return 0;
}

int nfs_server_find(const struct nfs_server_view *view, const char *host, uint16_t port, bool connects,
                    int64_t deadline_ms, struct nfs_server *ret_address, struct error *error)
{
        struct job job = { .view = view, .host = host, .port = port, .connects = connects, .deadline_ms = deadline_ms };
        const int keep[] = { view->root_fd, view->net_ns_fd };
        cleanup_close int fd = sealed_child_run(find_in_child, &job, keep, view->net_ns_fd < 0 ? 1 : 2, error);
        union address server = {};
        union address client = {};
        socklen_t size = sizeof server;
        socklen_t client_size = sizeof client;
        int r;

        if (fd < 0)
                return fd;
        if (getpeername(fd, &server.any, &size) < 0 || getsockname(fd, &client.any, &client_size) < 0)
                return fail(error, errno, "getpeername", host);
        if ((r = write_address(&server, ret_address->server)) < 0 ||
            (r = write_address(&client, ret_address->client)) < 0)
                return fail(error, -r, "getpeername", host);
        return 0;
}
