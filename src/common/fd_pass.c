/* SPDX-License-Identifier: Apache-2.0 */
#include "fd_pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fd.h"

union control {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
};

int fd_pass_send(int socket_fd, int fd, const struct error *error)
{
        static const char token = 'F';
        union control control = {};
        struct iovec part = { .iov_base = (void *)error, .iov_len = sizeof *error };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        if (fd >= 0) {
                struct cmsghdr *header;

                part = (struct iovec){ .iov_base = (void *)&token, .iov_len = sizeof token };
                message.msg_control = control.bytes;
                message.msg_controllen = sizeof control.bytes;
                header = CMSG_FIRSTHDR(&message);
                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(sizeof fd);
                memcpy(CMSG_DATA(header), &fd, sizeof fd);
        }
        return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_pass_receive(int socket_fd, struct error *error)
{
        struct error received = {};
        union control control = {};
        struct iovec part = { .iov_base = &received, .iov_len = sizeof received };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
        };
        cleanup_close int fd = -EBADF;
        struct cmsghdr *header;
        ssize_t n;

        do
                n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return fail(error, errno, "recvmsg", "a worker's answer");

        header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof fd))
                memcpy(&fd, CMSG_DATA(header), sizeof fd);
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
                if (n == 1 && fd >= 0)
                        return fd_take(&fd);
                if (n == (ssize_t)sizeof received && fd < 0 && received.errnum > 0) {
                        *error = received;
                        return -error->errnum;
                }
        }
        return fail_because(error, EPROTO, "recvmsg", "a worker's answer", "the worker ended without an answer");
}
