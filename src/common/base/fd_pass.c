/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd_pass.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

union control {
        char bytes[CMSG_SPACE(FD_PASS_MANY * sizeof(int))];
        struct cmsghdr align;
};

static const char token = 'F';

int fd_pass_send_with(int socket_fd, const void *bytes, size_t size, const int *fds, size_t count)
{
        union control control = {};
        struct iovec part = { .iov_base = (void *)bytes, .iov_len = size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        struct cmsghdr *header;

        assert(size > 0 && count <= FD_PASS_MANY);
        if (count > 0) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
                header = CMSG_FIRSTHDR(&message);
                header->cmsg_level = SOL_SOCKET;
                header->cmsg_type = SCM_RIGHTS;
                header->cmsg_len = CMSG_LEN(count * sizeof *fds);
                memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
        }
        return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_pass_send_all(int socket_fd, const int *fds, size_t count)
{
        assert(count > 0 && count <= FD_PASS_MAX);
        return fd_pass_send_with(socket_fd, &token, sizeof token, fds, count);
}

ssize_t fd_pass_receive_with(int socket_fd, void *ret_bytes, size_t size, int *ret_fds, size_t most, size_t *ret_count)
{
        union control control = {};
        struct iovec part = { .iov_base = ret_bytes, .iov_len = size };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
        };
        int fds[FD_PASS_MANY];
        struct cmsghdr *header;
        size_t came = 0;
        ssize_t n;

        do
                n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
                came = (header->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
                memcpy(fds, CMSG_DATA(header), came * sizeof *fds);
        }
        *ret_count = came;
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && came <= most) {
                memcpy(ret_fds, fds, came * sizeof *fds);
                return n;
        }
        for (size_t i = 0; i < came; i++)
                fd_close(&fds[i]);
        return -EPROTO;
}

/*
 * Receive one message with exactly the expected number of descriptors, or none; otherwise -EPROTO, and the descriptors
 * are closed. Returns the number of bytes; ret_passed: whether there were descriptors.
 */
static ssize_t receive(int socket_fd, void *bytes, size_t size, int *ret_fds, size_t count, bool *ret_passed)
{
        int fds[FD_PASS_MANY];
        size_t came = 0;
        ssize_t n = fd_pass_receive_with(socket_fd, bytes, size, fds, count, &came);

        *ret_passed = came > 0;
        if (n >= 0 && (came == 0 || came == count)) {
                memcpy(ret_fds, fds, came * sizeof *fds);
                return n;
        }
        for (size_t i = 0; n >= 0 && i < came; i++)
                fd_close(&fds[i]);
        return n < 0 ? n : -EPROTO;
}

int fd_pass_receive_all(int socket_fd, int *ret_fds, size_t count)
{
        bool passed = false;
        char byte;
        ssize_t n = receive(socket_fd, &byte, sizeof byte, ret_fds, count, &passed);

        if (n < 0)
                return (int)n;
        return n == 1 && passed ? 0 : -EPROTO;
}

int fd_pass_send(int socket_fd, int fd, const struct error *error)
{
        struct iovec part = { .iov_base = (void *)error, .iov_len = sizeof *error };
        const struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        if (fd >= 0)
                return fd_pass_send_all(socket_fd, &fd, 1);
        return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_pass_receive(int socket_fd, struct error *error)
{
        struct error received = {};
        cleanup_close int fd = -EBADF;
        bool passed = false;
        ssize_t n = receive(socket_fd, &received, sizeof received, &fd, 1, &passed);

        if (n < 0 && n != -EPROTO)
                return fail(error, (int)-n, "recvmsg", "a worker's answer");
        if (n == 1 && passed)
                return fd_take(&fd);
        if (n == (ssize_t)sizeof received && !passed && received.errnum > 0) {
                *error = received;
                return -error->errnum;
        }
        return fail_because(error, EPROTO, "recvmsg", "a worker's answer", "the worker ended without an answer");
}
