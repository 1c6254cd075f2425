/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_server.h - a name server in a thread, on 127.0.0.1 in a network namespace of its own. A function makes its answers.
 */
#ifndef FLEXGRAFT_NAME_SERVER_H
#define FLEXGRAFT_NAME_SERVER_H

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME_SERVER_ROOM 2048
#define NAME_SERVER_HEADER 12 /* of a message */
#define NAME_SERVER_PORT 53   /* c-ares asks no other that a list of servers could name */
#define NAME_SERVER_ADDRESS "127.0.0.1"

/* Returns the size of the answer, of NAME_SERVER_ROOM at the most; 0: there is none. */
typedef size_t name_server_function(const uint8_t *query, size_t size, uint8_t *ret_answer, void *argument);

struct name_server {
        int fd;
        struct sockaddr_in place;
        pthread_t thread;
        name_server_function *answer;
        void *argument;
};

/* name_server_alone() - a network of this process alone, once, before it has threads. False: there can be none. */
static inline bool name_server_alone(void)
{
        struct ifreq interface = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        bool up;
        int fd;

        if (unshare((geteuid() == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWNET) < 0)
                return false;
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &interface) == 0;
        if (fd >= 0)
                (void)close(fd);
        return up;
}

/* Until an empty message comes. */
static inline void *name_server_run(void *argument)
{
        static uint8_t query[NAME_SERVER_ROOM];
        static uint8_t answer[NAME_SERVER_ROOM];
        const struct name_server *server = argument;
        struct sockaddr_in from;

        for (;;) {
                socklen_t length = sizeof from;
                ssize_t n = recvfrom(server->fd, query, sizeof query, 0, (struct sockaddr *)&from, &length);

                if (n <= 0)
                        return NULL;
                n = (ssize_t)server->answer(query, (size_t)n, answer, server->argument);
                if (n > 0)
                        (void)!sendto(server->fd, answer, (size_t)n, 0, (struct sockaddr *)&from, length);
        }
}

static inline bool name_server_begin(struct name_server *server, name_server_function *answer, void *argument)
{
        *server = (struct name_server){ .answer = answer, .argument = argument };
        server->place.sin_family = AF_INET;
        server->place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        server->place.sin_port = htons(NAME_SERVER_PORT);
        server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (server->fd < 0 || bind(server->fd, (struct sockaddr *)&server->place, sizeof server->place) < 0)
                return false;
        return pthread_create(&server->thread, NULL, name_server_run, server) == 0;
}

static inline void name_server_end(struct name_server *server)
{
        (void)!sendto(server->fd, "", 0, 0, (struct sockaddr *)&server->place, sizeof server->place);
        (void)pthread_join(server->thread, NULL);
        (void)close(server->fd);
}

/* The question of a query, with its header: so many bytes. Gives the type that is asked for: 1 A, 28 AAAA. */
static inline size_t name_server_question(const uint8_t *query, size_t size, unsigned *ret_type)
{
        size_t at = NAME_SERVER_HEADER;

        while (at < size && query[at] != 0)
                at += query[at] + 1U;
        if (at + 5 > size)
                return 0;
        *ret_type = query[at + 1] * 256U + query[at + 2];
        return at + 5;
}

/* Begins an answer: the header, and the question again. Returns its size. */
static inline size_t name_server_head(const uint8_t *query, size_t size, unsigned code, unsigned records,
                                      uint8_t *ret_answer)
{
        unsigned type;
        const size_t length = name_server_question(query, size, &type);

        if (length == 0)
                return 0;
        memcpy(ret_answer, query, length);
        ret_answer[2] = 0x81; /* an answer, of a query that wanted recursion */
        ret_answer[3] = (uint8_t)(0x80 | code);
        memset(ret_answer + 4, 0, 8);
        ret_answer[5] = 1;
        ret_answer[7] = (uint8_t)records;
        return length;
}

#endif
