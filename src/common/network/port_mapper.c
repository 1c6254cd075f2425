/* SPDX-License-Identifier: Apache-2.0 */
#include "network/port_mapper.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.h"

#define PORT 111
#define LAST_PART 0x80000000U /* of a record, with its length */
#define ID 0x666c6578U
#define PORT_MAPPER 100000
#define GETPORT 3

bool port_mapper_knows(uint32_t program, uint32_t version)
{
        const struct sockaddr_in local = { .sin_family = AF_INET,
                                           .sin_port = htons(PORT),
                                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        /* the record's length, a call of RPC 2, without credentials; what is asked for */
        const uint32_t call[] = { htonl(LAST_PART | 14 * sizeof(uint32_t)),
                                  htonl(ID),
                                  0,
                                  htonl(2),
                                  htonl(PORT_MAPPER),
                                  htonl(2),
                                  htonl(GETPORT),
                                  0,
                                  0,
                                  0,
                                  0,
                                  htonl(program),
                                  htonl(version),
                                  htonl(IPPROTO_TCP),
                                  0 };
        const struct timeval limit = { .tv_sec = 1 };
        uint32_t answer[8] = {}; /* the record's length, ID, a reply, accepted, two of a verifier, success, the port */
        cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
               setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
               connect(fd, (const struct sockaddr *)&local, sizeof local) == 0 &&
               send(fd, call, sizeof call, MSG_NOSIGNAL) == (ssize_t)sizeof call &&
               recv(fd, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer && answer[1] == htonl(ID) &&
               answer[3] == 0 && answer[6] == 0 && answer[7] != 0;
}
