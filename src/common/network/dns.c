/* SPDX-License-Identifier: Apache-2.0 */
#include "network/dns.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"

/*
 * c-ares can look services up, which is not used here. These replace the C library's functions, which would link its
 * name service switch, and that loads modules.
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

struct question {
        struct address_list *list; /* the result */
        int status;                /* of c-ares */
        bool done;
};

static void take_answer(void *argument, int status, int timeouts, struct ares_addrinfo *answer)
{
        struct question *question = argument;

        (void)timeouts;
        question->done = true;
        question->status = status;
        for (const struct ares_addrinfo_node *node = answer == NULL ? NULL : answer->nodes; node != NULL;
             node = node->ai_next) {
                union address address = {};

                if (node->ai_addrlen > sizeof address || (node->ai_family != AF_INET && node->ai_family != AF_INET6))
                        continue;
                (void)memcpy(&address, node->ai_addr, node->ai_addrlen);
                address_add(question->list, &address);
        }
        if (answer != NULL)
                ares_freeaddrinfo(answer);
}

/* Bits of ares_getsock(). c-ares' own macros shift an int into its sign bit. */
#define READABLE(which, i) (((which)&1U << (i)) != 0)
#define WRITABLE(which, i) (((which)&1U << ((i) + ARES_GETSOCK_MAXNUM)) != 0)

/* Waits once for c-ares' sockets, and processes them. */
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
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* queries that timed out */
}

static int fail_resolve(const char *host, int status, struct error *error)
{
        switch (status) {
        case ARES_ENOTFOUND:
        case ARES_ENODATA:
        case ARES_EBADNAME:
                return fail_because(error, ENOENT, OPERATION_RESOLVE, host, "the name %.255s has no address", host);
        case ARES_ETIMEOUT:
        case ARES_ECANCELLED:
                return fail_because(error, ETIMEDOUT, OPERATION_RESOLVE, host, "no name server answered in time");
        case ARES_ECONNREFUSED:
                return fail_because(error, ECONNREFUSED, OPERATION_RESOLVE, host,
                                    "the name servers cannot be reached, or fail");
        case ARES_ENOMEM:
                return fail(error, ENOMEM, OPERATION_RESOLVE, host);
        default:
                return fail_because(error, EAGAIN, OPERATION_RESOLVE, host, "the name servers failed: %s",
                                    ares_strerror(status));
        }
}

/* Without the first so many domains. Returns a status of c-ares, success only where the list has addresses. */
static int ask(const struct resolv_conf *conf, int without, const char *host, int64_t deadline_ms,
               struct address_list *list)
{
        static char lookups[] = "b"; /* DNS alone: the caller reads the hosts file */
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT };
        struct in_addr none = {};
        struct question question = { .list = list };
        /* without a server c-ares would read the node's resolv.conf; ares_set_servers_csv() replaces it below */
        struct ares_options options = { .lookups = lookups,
                                        .servers = &none,
                                        .nservers = 1,
                                        .domains = (char **)conf->domains + without,
                                        .ndomains = conf->domain_count - without,
                                        .ndots = conf->ndots,
                                        .timeout = conf->timeout_ms,
                                        .tries = conf->tries };
        ares_channel channel;
        int status;

        status = ares_init_options(&channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS | ARES_OPT_SERVERS |
                                           ARES_OPT_NDOTS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SORTLIST |
                                           ARES_OPT_NOROTATE);
        if (status != ARES_SUCCESS)
                return status;
        status = ares_set_servers_csv(channel, conf->servers);
        if (status == ARES_SUCCESS) {
                ares_getaddrinfo(channel, host, NULL, &hints, take_answer, &question);
                while (!question.done && clock_now_ms() < deadline_ms)
                        turn(channel, deadline_ms);
                if (!question.done)
                        ares_cancel(channel);
                status = question.status;
        }
        ares_destroy(channel);
        return status == ARES_SUCCESS && list->count == 0 ? ARES_ENODATA : status;
}

/* Or refused: c-ares gives up at such a domain. The C library goes on with the next, and asks for the name as it is last. */
static bool servers_failed(int status)
{
        return status == ARES_ECONNREFUSED || status == ARES_ESERVFAIL || status == ARES_EREFUSED ||
               status == ARES_ENOTIMP;
}

/* Then c-ares has given up at the name as it is, and would again. */
static bool is_asked_as_is_first(const struct resolv_conf *conf, const char *host)
{
        return (int)text_count(host, '.') >= conf->ndots;
}

int dns_ask(const struct resolv_conf *conf, const char *host, int64_t deadline_ms, struct address_list *list,
            struct error *error)
{
        int status = ask(conf, 0, host, deadline_ms, list);

        for (int without = 1; list->count == 0 && servers_failed(status) && without <= conf->domain_count &&
                              !is_asked_as_is_first(conf, host) && clock_now_ms() < deadline_ms;
             without++)
                status = ask(conf, without, host, deadline_ms, list);
        return list->count > 0 ? 0 : fail_resolve(host, status, error);
}

/* ---- a hosts file and a resolv.conf, as text: parsers alone, without a system call but for the index of a */

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

void resolv_conf_hosts(char *text, const char *host, uint16_t port, struct address_list *list)
{
        char *line;

        while ((line = next_line(&text)) != NULL) {
                const char *literal = next_word(&line);
                const char *name;
                union address address;

                while (literal != NULL && (name = next_word(&line)) != NULL)
                        if (strcasecmp(name, host) == 0) {
                                if (address_parse(literal, port, &address))
                                        address_add(list, &address);
                                break;
                        }
        }
}

/* A larger number is the maximum, as for the C library. */
static void bounded(const char *text, int maximum, int *ret_number)
{
        const size_t digits = strspn(text, "0123456789");
        uint64_t number;

        if (digits > 0 && text[digits] == '\0')
                *ret_number = text_number(text, (uint64_t)maximum, &number) ? (int)number : maximum;
}

/* Seconds. */
static void read_timeout(const char *text, int *ret_ms)
{
        int seconds = *ret_ms / 1000;

        bounded(text, 30, &seconds);
        *ret_ms = seconds * 1000;
}

static void read_options(struct resolv_conf *conf, char *line)
{
        const char *word;

        while ((word = next_word(&line)) != NULL)
                if (text_starts(word, "ndots:"))
                        bounded(word + 6, 15, &conf->ndots);
                else if (text_starts(word, "timeout:"))
                        read_timeout(word + 8, &conf->timeout_ms);
                else if (text_starts(word, "attempts:"))
                        bounded(word + 9, 5, &conf->tries);
}

/* Not one with an empty label, as the root, which systemd-resolved writes for no domain: c-ares would give up there. */
static void add_domain(struct resolv_conf *conf, char *domain)
{
        if (domain[0] != '.' && strstr(domain, "..") == NULL && conf->domain_count < RESOLV_CONF_DOMAINS_MAX)
                conf->domains[conf->domain_count++] = domain;
}

void resolv_conf_parse(char *text, struct resolv_conf *ret_conf)
{
        char *line;

        *ret_conf = (struct resolv_conf){ .ndots = 1, .timeout_ms = 5000, .tries = 2 };
        while ((line = next_line(&text)) != NULL) {
                const char *key = next_word(&line);
                char *word;

                if (key == NULL)
                        continue;
                if (strcmp(key, "nameserver") == 0 && (word = next_word(&line)) != NULL) {
                        union address address;
                        size_t length = strlen(ret_conf->servers);

                        /* c-ares knows no interfaces by number, and by name asks in a way that is not allowed here */
                        if (ret_conf->server_count < RESOLV_CONF_SERVERS_MAX && strlen(word) < ADDRESS_SIZE &&
                            strchr(word, '%') == NULL && address_parse(word, 53, &address)) {
                                (void)snprintf(ret_conf->servers + length, sizeof ret_conf->servers - length, "%s%s",
                                               length > 0 ? "," : "", word);
                                ret_conf->server_count++;
                        }
                } else if (strcmp(key, "search") == 0 || strcmp(key, "domain") == 0) {
                        ret_conf->domain_count = 0; /* the last line counts */
                        while ((word = next_word(&line)) != NULL)
                                add_domain(ret_conf, word);
                } else if (strcmp(key, "options") == 0)
                        read_options(ret_conf, line);
        }
        if (ret_conf->server_count == 0)
                (void)text_copy(ret_conf->servers, sizeof ret_conf->servers, "127.0.0.1"); /* as the C library */
        if (ret_conf->timeout_ms == 0)
                ret_conf->timeout_ms = 1000;
        if (ret_conf->tries == 0)
                ret_conf->tries = 1;
}
