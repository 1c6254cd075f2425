/* SPDX-License-Identifier: Apache-2.0 */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define FIRST_FD 3 /* sd_listen_fds(3) */
#define BACKLOG 128
#define REGISTRATION "registration"
#define REGISTRATION_END "-reg.sock"
#define ASIDE_BYTES (sizeof((struct listener *)0)->path + 8)

/* How many sockets the service manager gave to this process. */
static int count_given(void)
{
        const char *pid = getenv("LISTEN_PID");
        const char *fds = getenv("LISTEN_FDS");
        uint64_t number;

        if (pid == NULL || fds == NULL || !text_number(pid, INT_MAX, &number) || number != (uint64_t)getpid() ||
            !text_number(fds, 1024, &number))
                return 0;
        return (int)number;
}

/* Whether the name with that index, of names separated by colons, is this one. */
static bool is_named(const char *names, int index, const char *name)
{
        size_t length = strlen(name);

        for (; names != NULL && index > 0; index--) {
                names = strchr(names, ':');
                names += names != NULL ? 1 : 0;
        }
        return names != NULL && strcspn(names, ":") == length && memcmp(names, name, length) == 0;
}

static int read_option(int fd, int option)
{
        int value = -1;
        socklen_t length = sizeof value;

        return getsockopt(fd, SOL_SOCKET, option, &value, &length) < 0 ? -1 : value;
}

/* Where a registration socket is for a moment, when it is shown anew: kubelet passes over such names. */
static void path_aside(const char *path, char ret_aside[ASIDE_BYTES])
{
        const char *name = strrchr(path, '/') + 1;

        (void)snprintf(ret_aside, ASIDE_BYTES, "%.*s.%s", (int)(name - path), path, name);
}

/* One that is aside still: a driver was killed just then, or ends before it could rename it back. */
static void put_back(const struct listener *listener)
{
        char aside[ASIDE_BYTES];
        struct stat st;

        path_aside(listener->path, aside);
        if (fstatat(AT_FDCWD, listener->path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
                (void)renameat(AT_FDCWD, aside, AT_FDCWD, listener->path); /* mostly there is none */
}

static int take_given(int fd, const char *names, struct listener *ret_listener, struct error *error)
{
        struct sockaddr_un address = {};
        socklen_t length = sizeof address;

        if (read_option(fd, SO_DOMAIN) != AF_UNIX || read_option(fd, SO_TYPE) != SOCK_STREAM ||
            read_option(fd, SO_ACCEPTCONN) != 1 || getsockname(fd, (struct sockaddr *)&address, &length) < 0 ||
            address.sun_path[0] != '/')
                return fail_because(error, EINVAL, "sd_listen_fds", "LISTEN_FDS",
                                    "descriptor %d is no listening Unix stream socket with a path", fd);
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return fail(error, errno, "fcntl", address.sun_path);
        *ret_listener = (struct listener){ .fd = fd };
        (void)snprintf(ret_listener->path, sizeof ret_listener->path, "%.*s", (int)sizeof address.sun_path - 1,
                       address.sun_path);
        /* two sockets of one unit have the same name */
        ret_listener->is_registration =
                is_named(names, fd - FIRST_FD, REGISTRATION) || text_ends(ret_listener->path, REGISTRATION_END);
        if (ret_listener->is_registration)
                put_back(ret_listener);
        return 0;
}

static int take_all_given(int count, struct options *options, struct listener ret_listeners[LISTEN_MAX],
                          struct error *error)
{
        const char *names = getenv("LISTEN_FDNAMES");

        for (int i = 0; i < count; i++) {
                struct listener listener;
                struct listener *slot;
                int r = take_given(FIRST_FD + i, names, &listener, error);

                if (r < 0)
                        return r;
                slot = &ret_listeners[listener.is_registration ? 1 : 0];
                if (slot->fd >= 0)
                        return fail_because(error, EINVAL, "sd_listen_fds", "LISTEN_FDS",
                                            "there are two sockets for the same: %s and %s", slot->path, listener.path);
                *slot = listener;
        }
        if (ret_listeners[0].fd < 0)
                return fail_because(error, EINVAL, "sd_listen_fds", "LISTEN_FDS", "there is no socket named csi");
        options->csi.endpoint = ret_listeners[0].path;
        return 0;
}

/* The directory that it lies in, if its own parent is there. */
static int make_parent(const char *path, struct error *error)
{
        char parent[sizeof((struct listener *)0)->path];

        (void)snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
        if (mkdir(parent[0] != '\0' ? parent : "/", 0750) < 0 && errno != EEXIST)
                return fail(error, errno, "mkdir", parent);
        return 0;
}

/* Whether somebody listens there, or may: a socket that refuses is one that a killed driver has left. */
static bool is_in_use(const struct sockaddr_un *address)
{
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
               (errno != ECONNREFUSED && errno != ENOENT);
}

static int make(const char *path, bool is_registration, struct listener *ret_listener, struct error *error)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        mode_t mask;
        struct stat st;
        int r;

        if (fd < 0)
                return fail(error, errno, "socket", path);
        if ((r = make_parent(path, error)) < 0)
                return r;
        (void)text_copy(address.sun_path, sizeof address.sun_path, path); /* it fits: options_read() */
        if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
                return fail(error, EEXIST, "bind", path);
        if (is_in_use(&address))
                return fail_because(error, EADDRINUSE, "bind", path,
                                    "another process serves this socket: end it (systemctl stop flexgraft-csi.socket "
                                    "flexgraft-csi.service)");
        (void)unlink(path); /* of a driver that was killed; what else is there bind() says */
        mask = umask(0177);
        r = bind(fd, (const struct sockaddr *)&address, sizeof address);
        (void)umask(mask);
        if (r < 0 || listen(fd, BACKLOG) < 0 || lstat(path, &st) < 0)
                return fail(error, errno, "bind", path);
        *ret_listener = (struct listener){ .is_registration = is_registration, .is_ours = true };
        ret_listener->dev = st.st_dev;
        ret_listener->ino = st.st_ino;
        (void)text_copy(ret_listener->path, sizeof ret_listener->path, path);
        ret_listener->fd = fd_take(&fd);
        return 0;
}

int listen_begin(struct options *options, struct listener ret_listeners[LISTEN_MAX], struct error *error)
{
        char path[PATH_MAX];
        int given = count_given();
        int r;

        for (int i = 0; i < LISTEN_MAX; i++)
                ret_listeners[i] = (struct listener){ .fd = -EBADF };
        if (given > 0)
                return (r = take_all_given(given, options, ret_listeners, error)) < 0 ? r : 1;
        if ((r = make(options->csi.endpoint, false, &ret_listeners[0], error)) < 0 || options->csi.registry == NULL)
                return r;
        if (snprintf(path, sizeof path, "%s/%s" REGISTRATION_END, options->csi.registry, options->csi.name) >=
            (int)sizeof ret_listeners[1].path)
                return fail(error, ENAMETOOLONG, "bind", path);
        if ((r = make(path, true, &ret_listeners[1], error)) < 0)
                listen_end(&ret_listeners[0]);
        return r;
}

int listen_show_anew(const struct listener *listener)
{
        char aside[ASIDE_BYTES];

        path_aside(listener->path, aside);
        if (renameat(AT_FDCWD, listener->path, AT_FDCWD, aside) < 0 && errno != ENOENT)
                return -errno;
        return renameat(AT_FDCWD, aside, AT_FDCWD, listener->path) < 0 ? -errno : 0;
}

/* If it is still the socket that was made. */
static void remove_made(const struct listener *listener)
{
        struct stat st;

        if (fstatat(AT_FDCWD, listener->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == listener->dev &&
            st.st_ino == listener->ino)
                (void)unlinkat(AT_FDCWD, listener->path, 0);
}

void listen_end(struct listener *listener)
{
        if (listener->is_registration)
                put_back(listener);
        if (listener->is_ours)
                remove_made(listener);
        fd_close(&listener->fd);
}
