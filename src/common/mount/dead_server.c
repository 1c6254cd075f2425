/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/dead_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "mount/mountinfo.h"
#include "process/namespace.h"

#define PLACE "/proc"     /* in the private namespace; a directory that every node has */
#define DEAD_MS 10000     /* no answer for so long */
#define UNDER_WAY_MS 1000 /* a live server answers sooner what was sent last */
#define END_SECONDS 5     /* to end the filesystem of a dead one */
#define LIVE_END_SECONDS 600

/* Without asking the server: what the kernel's table says of the mount, and whether there are more of its filesystem. */
static int look_for_others(uint64_t device, bool placed)
{
        cleanup_mount_table struct mountinfo table = {};
        unsigned count = 0;
        int r = mountinfo_open_own(&table);

        if (r < 0)
                return r;
        while (mountinfo_next(&table))
                count += table.device == device;
        if (table.failed)
                return -EIO;
        return count > (placed ? 1 : 0) ? -EBUSY : 0;
}

/*
 * The numbers of requests and answers of one connection, from a line of /proc/self/mountstats: a transport, numbers
 * about its connections, and these two (xs_tcp_print_stats() and others in net/sunrpc/xprtsock.c).
 */
static bool read_connection(char *line, uint64_t *ret_sent, uint64_t *ret_received)
{
        static const struct {
                const char *name;
                int before; /* numbers before those two */
        } transports[] = { { "tcp", 5 }, { "rdma", 5 }, { "udp", 2 } };
        char *position = NULL;
        const char *word = strtok_r(line, " \t\n", &position);
        int before = -1;

        if (word == NULL || strcmp(word, "xprt:") != 0 || (word = strtok_r(NULL, " \t\n", &position)) == NULL)
                return false;
        for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
                if (strcmp(word, transports[i].name) == 0)
                        before = transports[i].before;
        if (before < 0)
                return false;
        for (int i = 0; i <= before; i++)
                word = strtok_r(NULL, " \t\n", &position);
        if (word == NULL || !text_number(word, UINT64_MAX, ret_sent))
                return false;
        word = strtok_r(NULL, " \t\n", &position);
        return word != NULL && text_number(word, UINT64_MAX, ret_received);
}

/* The same of all connections of the mount. */
static bool read_counts(struct dead_server *server, uint64_t *ret_sent, uint64_t *ret_received)
{
        char line[1024];
        bool here = false;
        bool found = false;

        *ret_sent = *ret_received = 0;
        rewind(server->statistics);
        while (fgets(line, sizeof line, server->statistics) != NULL) {
                uint64_t sent;
                uint64_t received;

                if (strncmp(line, "device ", strlen("device ")) == 0)
                        here = strstr(line, " mounted on " PLACE " with fstype nfs") != NULL;
                else if (here && read_connection(line, &sent, &received)) {
                        *ret_sent += sent;
                        *ret_received += received;
                        found = true;
                }
        }
        return found;
}

int dead_server_begin(int dir_fd, const char *path, struct dead_server *ret_server)
{
        struct mount_attr follow = { .propagation = MS_SLAVE };
        const bool placed = *path != '\0';
        struct error ignored;
        struct statx st;
        int r;

        /* what the kernel knows by itself: a dead server is not asked */
        if (statx(dir_fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) < 0)
                return -errno;
        if ((r = namespace_new_mounts(&ignored)) < 0)
                return r;
        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &follow, sizeof follow) < 0)
                return -errno;
        if ((r = look_for_others(makedev(st.stx_dev_major, st.stx_dev_minor), placed)) < 0)
                return r;
        ret_server->statistics =
                fopen(PLACE "/self/mountstats", "re"); /* of this namespace; afterwards it is covered */
        if (ret_server->statistics == NULL)
                return -errno;
        if (move_mount(dir_fd, path, AT_FDCWD, PLACE, placed ? 0 : MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return -errno;
        ret_server->taken = true;
        if (!read_counts(ret_server, &ret_server->sent, &ret_server->received))
                return -EMEDIUMTYPE;
        ret_server->sent_ms = ret_server->received_ms = clock_now_ms();
        return 0;
}

bool dead_server_look(struct dead_server *server)
{
        const int64_t now_ms = clock_now_ms();
        uint64_t sent;
        uint64_t received;

        if (!read_counts(server, &sent, &received))
                return false;
        if (sent != server->sent)
                server->sent_ms = now_ms;
        if (received != server->received) {
                server->received_ms = now_ms;
                server->forced = false;
        }
        server->sent = sent;
        server->received = received;
        if (now_ms - server->received_ms < DEAD_MS || now_ms - server->sent_ms < UNDER_WAY_MS)
                return false;
        (void)umount2(PLACE, UMOUNT_NOFOLLOW | MNT_FORCE); /* EBUSY, but what was under way has failed */
        server->forced = true;
        return true;
}

/* Killed by default: the signal is a fatal one for what waits in the kernel (complete_signal() in kernel/signal.c). */
void dead_server_end(struct dead_server *server)
{
        sigset_t alarms;

        (void)sigemptyset(&alarms);
        (void)sigaddset(&alarms, SIGALRM);
        (void)signal(SIGALRM, SIG_DFL);
        (void)sigprocmask(SIG_UNBLOCK, &alarms, NULL);
        (void)alarm(server->forced ? END_SECONDS : LIVE_END_SECONDS);
        if (server->statistics != NULL)
                (void)fclose(server->statistics);
        if (server->taken)
                (void)umount2(PLACE, UMOUNT_NOFOLLOW | MNT_DETACH);
}
