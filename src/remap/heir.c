/* SPDX-License-Identifier: Apache-2.0 */
#include "heir.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alive.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "ending.h"
#include "shared.h"
#include "split.h"

#define HEIR_MS 10000   /* how long the keeper waits for the heir, or for the daemon's end */
#define LEAVE_MS 2000   /* how long a daemon that has no keeper may take for what it has begun */
#define KEEPER_MS 30000 /* and the heir for the keeper */
#define LOOK_MS 200

/* What they say to each other; the heir's words, and "go", are one letter. */
enum {
        SAY_MEMORY = 'M',
        SAY_DESCRIPTORS = 'D',
        SAY_ALL = 'A',
        SAY_GO = 'G',
        SAY_NO = 'N',
        HEIR_HAS = 'h',
        HEIR_SERVES = 's'
};

struct piece {
        int32_t word;
        int32_t count; /* of numbers; of SAY_NO: an errno */
        int32_t numbers[FD_PASS_MANY];
};

enum phase {
        HANDING,  /* the daemon runs */
        ENDING,   /* it leaves, or was killed */
        GONE_OVER /* "go": the heir is the keeper */
};

/* Shared by the keeper and the reserve, and nobody else. */
struct hand_over {
        enum phase phase;
        bool done;     /* the heir serves */
        bool reserved; /* the reserve has its name: it is not taken for a keeper any more */
        pid_t keeper;
        int socket_fd;
        int keeper_pidfd;
        int daemon_pidfd;
        int daemon_pid;
        int reserve_pidfd;
};

static struct hand_over *hand_over;

static const char leave = 'l'; /* the keeper's word to the daemon */

static bool has_ended(int pidfd)
{
        struct pollfd process = { .fd = pidfd, .events = POLLIN };

        return poll(&process, 1, 0) != 0; /* one that cannot be asked is none */
}

/* Wait until a message, or the end, can be read. */
static bool comes_within(int socket_fd, int ms)
{
        struct pollfd other = { .fd = socket_fd, .events = POLLIN };
        const int64_t until = clock_now_ms() + ms;

        for (;;) {
                int64_t left = until - clock_now_ms();
                int n = poll(&other, 1, left > 0 ? (int)left : 0);

                if (n > 0 || (n == 0 && left <= 0))
                        return n > 0;
        }
}

/* ---- the keeper */

static bool say(int32_t word, int32_t count, const int32_t *numbers, const int *fds)
{
        struct piece piece = { .word = word, .count = count };

        if (numbers != NULL)
                (void)memcpy(piece.numbers, numbers, (size_t)count * sizeof *numbers);
        return fd_pass_send_with(hand_over->socket_fd, &piece, sizeof piece, fds, fds != NULL ? (size_t)count : 0) == 0;
}

static bool heir_says(char word)
{
        char said;
        size_t none;

        return comes_within(hand_over->socket_fd, HEIR_MS) &&
               fd_pass_receive_with(hand_over->socket_fd, &said, sizeof said, NULL, 0, &none) == 1 && said == word;
}

/* Whether the heir has a descriptor: those of ending.c, and this function's, it has not. */
static bool is_handed_over(uint32_t fd)
{
        return (fd >= FD_FUSE && fd <= FD_LOCK) ||
               (fd >= FD_OWN && fd < DESCRIPTORS_MAX && shared->uses[fd] != USE_NONE && shared->uses[fd] != USE_ENDING);
}

static bool send_descriptors(void)
{
        int32_t numbers[FD_PASS_MANY];
        int32_t count = 0;

        for (uint32_t fd = FD_FUSE; fd < shared->descriptors; fd++) {
                if (is_handed_over(fd))
                        numbers[count++] = (int32_t)fd;
                if (count == FD_PASS_MANY || (count > 0 && fd + 1 == shared->descriptors)) {
                        if (!say(SAY_DESCRIPTORS, count, numbers, numbers) || !heir_says(HEIR_HAS))
                                return false;
                        count = 0;
                }
        }
        return say(SAY_ALL, 0, NULL, NULL) && heir_says(HEIR_HAS);
}

/* True: the daemon has ended, but for what waits for the next one. */
static bool daemon_ends_within(int ms)
{
        struct pollfd daemon = { .fd = hand_over->daemon_pidfd, .events = POLLIN };
        const int64_t until = clock_now_ms() + ms;
        int64_t stuck_since_ms = 0;

        while (poll(&daemon, 1, LOOK_MS) <= 0)
                if (alive_daemon_is_stuck(&stuck_since_ms))
                        return true;
                else if (clock_now_ms() > until)
                        return false;
        return true;
}

static bool tell_to_leave(void)
{
        return fd_pass_send_with(FD_ORDERS, &leave, sizeof leave, NULL, 0) == 0;
}

/* Have the daemon end between two requests; where it cannot, kill it. */
static bool end_daemon(void)
{
        if (tell_to_leave() && daemon_ends_within(LEAVE_MS))
                return true;
        (void)syscall(SYS_pidfd_send_signal, hand_over->daemon_pidfd, SIGKILL, NULL, 0); /* it may have ended */
        return daemon_ends_within(HEIR_MS);
}

/*
 * Whether the heir serves: its daemon has said so, and the word stays in the socket, for the reserve. Else all of it has
 * ended. How long it takes is not limited: it may serve from here on. Where the heir has closed its end with a word unread,
 * as a second "go" is, that is told once, as ECONNRESET, before what the heir has said (__skb_try_recv_datagram()).
 */
static bool heir_serves(void)
{
        char said = 0;
        struct iovec part = { .iov_base = &said, .iov_len = sizeof said };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n;

        do
                n = recvmsg(hand_over->socket_fd, &message, MSG_PEEK);
        while (n < 0 && (errno == EINTR || errno == ECONNRESET));
        return n == 1 && said == HEIR_SERVES;
}

/* The heir may have made itself the keeper. */
static void be_keeper_again(int keeper_pidfd)
{
        shared->keeper_pidfd = keeper_pidfd;
        shared->daemon_pidfd = hand_over->daemon_pidfd;
        shared->daemon_pid = hand_over->daemon_pid;
        shared->heir_fd = hand_over->socket_fd;
        shared->force_pidfd = shared->closer_pidfd = -1;
        shared->reported = true;
        shared->heir = HEIR_NONE;
        heir_fill_header();
}

/* Returns where all of the heir has ended. */
static void end_with_heir(void)
{
        (void)say(SAY_GO, 0, NULL, NULL); /* if the heir has had one, this is too many, and not read */
        if (heir_serves()) {
                hand_over->done = true;
                _exit(EXIT_SUCCESS);
        }
}

/* It does what the keeper would, where that is killed. */
static _Noreturn void be_reserve(void (*keep)(void))
{
        struct pollfd keeper = { .fd = hand_over->keeper_pidfd, .events = POLLIN };

        (void)prctl(PR_SET_NAME, "remap-reserve", 0, 0, 0); /* cannot fail */
        __atomic_store_n(&hand_over->reserved, true, __ATOMIC_RELEASE);
        while (getppid() == hand_over->keeper) /* the number of the pidfd may be another file's by now */
                (void)poll(&keeper, 1, LOOK_MS);
        if (hand_over->done)
                _exit(EXIT_SUCCESS);
        if (hand_over->phase == GONE_OVER)
                end_with_heir();
        if (hand_over->phase == HANDING) /* the daemon runs, and starts a keeper, which forgets the heir */
                _exit(EXIT_SUCCESS);
        while (!end_daemon())
                ;
        if (hand_over->phase == ENDING && !has_ended(shared->keeper_pidfd)) /* it just did */
                _exit(EXIT_SUCCESS);
        be_keeper_again(hand_over->reserve_pidfd);
        keep();
        _exit(EXIT_FAILURE);
}

static bool start_reserve(void (*keep)(void))
{
        int pid = split(&hand_over->reserve_pidfd);

        if (pid == 0)
                be_reserve(keep);
        if (pid < 0)
                hand_over->reserve_pidfd = -1;
        /* one that first runs after the keeper's end would be a second keeper to the next remap-upgrade, which finds it by name */
        while (pid > 0 && !__atomic_load_n(&hand_over->reserved, __ATOMIC_ACQUIRE) &&
               !comes_within(hand_over->reserve_pidfd, 1))
                ;
        return pid > 0;
}

static void end_reserve(void)
{
        siginfo_t end;

        if (hand_over->reserve_pidfd < 0)
                return;
        (void)syscall(SYS_pidfd_send_signal, hand_over->reserve_pidfd, SIGKILL, NULL, 0); /* as above */
        (void)waitid(P_PIDFD, (id_t)hand_over->reserve_pidfd, &end, WEXITED); /* it is this process's child */
        fd_close(&hand_over->reserve_pidfd);
}

static bool may_hand_over(void)
{
        return shared->served && !alive_mount_is_over() && !alive_container_is_ending() && !ending_forces();
}

/* Returns where the old program goes on. */
static void try_heir(void (*keep)(void))
{
        if (!may_hand_over()) {
                (void)say(SAY_NO, EBUSY, NULL, NULL); /* the heir ends, too */
                return;
        }
        if (!say(SAY_MEMORY, 1, (const int32_t[]){ FD_MEMORY }, (const int[]){ FD_MEMORY }) || !heir_says(HEIR_HAS) ||
            !start_reserve(keep))
                return;
        hand_over->phase = ENDING;
        /* it is not killed: what it was doing would be done again. If it leaves later, another is started */
        if (!tell_to_leave() || !daemon_ends_within(HEIR_MS)) {
                (void)say(SAY_NO, EBUSY, NULL, NULL);
                return;
        }
        if (!send_descriptors())
                return;
        hand_over->phase = GONE_OVER;
        end_with_heir();
        be_keeper_again(hand_over->keeper_pidfd);
}

void heir_hand_over(void (*keep)(void))
{
        struct pollfd unheard = { .fd = FD_ORDER, .events = POLLIN };
        int socket_fd;

        if (fd_pass_receive_all(FD_ORDERS, &socket_fd, 1) < 0)
                return;
        shared->heir_fd = socket_fd;
        hand_over = mmap(NULL, sizeof *hand_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (hand_over == MAP_FAILED) {
                heir_forget();
                return;
        }
        *hand_over = (struct hand_over){ .socket_fd = socket_fd,
                                         .keeper = getpid(),
                                         .keeper_pidfd = shared->keeper_pidfd,
                                         .daemon_pidfd = shared->daemon_pidfd,
                                         .daemon_pid = shared->daemon_pid,
                                         .reserve_pidfd = -1 };
        try_heir(keep);
        end_reserve();
        heir_forget();
        (void)munmap(hand_over, sizeof *hand_over); /* cannot fail: it is as it was mapped */
        if (poll(&unheard, 1, 0) > 0)               /* the daemon was killed; the next need not leave */
                (void)heir_wants_leave();
}

void heir_forget(void)
{
        /* first, and once: a number that is closed may be another file's at once */
        const int fd = __atomic_exchange_n(&shared->heir_fd, -1, __ATOMIC_SEQ_CST);

        if (fd >= 0)
                (void)close(fd); /* a socket: nothing to lose */
}

bool heir_wants_leave(void)
{
        char word;
        size_t none;

        return fd_pass_receive_with(FD_ORDER, &word, sizeof word, NULL, 0, &none) == 1 && word == leave;
}

/* ---- the heir */

static bool tell(char word)
{
        return fd_pass_send_with(FD_HEIR, &word, sizeof word, NULL, 0) == 0;
}

/* Returns 0 or negative errno. What does not come: the keeper has ended, or refuses. */
static int hear(int32_t word, int32_t other, struct piece *ret_piece, int *ret_fds)
{
        size_t count = 0;
        ssize_t n;

        if (!comes_within(FD_HEIR, KEEPER_MS))
                return -ETIMEDOUT;
        do /* as in heir_serves() */
                n = fd_pass_receive_with(FD_HEIR, ret_piece, sizeof *ret_piece, ret_fds, FD_PASS_MANY, &count);
        while (n == -ECONNRESET);
        if (n <= 0)
                return n < 0 ? (int)n : -ECANCELED;
        if (n == (ssize_t)sizeof *ret_piece && ret_piece->word == SAY_NO)
                return ret_piece->count > 0 ? -ret_piece->count : -EPROTO;
        if (n != (ssize_t)sizeof *ret_piece || (ret_piece->word != word && ret_piece->word != other) ||
            ret_piece->count != (int32_t)count)
                return -EPROTO; /* and this process ends */
        return 0;
}

/* All of it is as this program has it, or it is not read. */
static int check_memory(void)
{
        const struct keeper_header own = {
                .magic = KEEPER_MAGIC, .protocol = KEEPER_PROTOCOL, .layout = SHARED_LAYOUT, .sizes = SHARED_SIZES
        };
        struct keeper_header header;
        struct stat st;

        if (fstat(FD_MEMORY, &st) < 0 || pread(FD_MEMORY, &header, sizeof header, 0) != (ssize_t)sizeof header)
                return -EPROTO;
        (void)memset(header.version, 0, sizeof header.version);
        return st.st_size == (off_t)sizeof *shared && memcmp(&header, &own, sizeof own) == 0 ? 0 : -EPROTONOSUPPORT;
}

static int take_memory(void)
{
        struct piece piece;
        int fds[FD_PASS_MANY];
        int r = hear(SAY_MEMORY, SAY_MEMORY, &piece, fds);

        if (r < 0)
                return r;
        if (piece.count != 1)
                return -EPROTO;
        if (dup2(fds[0], FD_MEMORY) < 0)
                return -errno;
        if (fds[0] != FD_MEMORY)
                (void)close(fds[0]); /* it has another number now */
        if ((r = check_memory()) < 0)
                return r;
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, FD_MEMORY, 0);
        return shared == MAP_FAILED ? -errno : 0;
}

/* Give a descriptor its number. Those that came with it and are not placed yet may have that number now: these move. */
static int place(int *fds, const int32_t *numbers, int32_t count, int32_t which)
{
        const int number = numbers[which];

        if (number < FD_FUSE || (number > FD_LOCK && number < FD_OWN) || (uint32_t)number >= DESCRIPTORS_MAX)
                return -EPROTO;
        if (fds[which] == number)
                return 0;
        for (int32_t i = which + 1; i < count; i++)
                if (fds[i] == number && (fds[i] = dup(number)) < 0)
                        return -errno;
        if (dup2(fds[which], number) < 0)
                return errno == EBADF ? -EMFILE : -errno;
        (void)close(fds[which]); /* as above */
        return 0;
}

static int take_descriptors(void)
{
        struct piece piece;
        int fds[FD_PASS_MANY];
        unsigned first = 0; /* those that each keeper has */
        int r;

        while ((r = hear(SAY_DESCRIPTORS, SAY_ALL, &piece, fds)) == 0 && piece.word == SAY_DESCRIPTORS) {
                for (int32_t i = 0; i < piece.count; i++) {
                        if ((r = place(fds, piece.numbers, piece.count, i)) < 0)
                                return r;
                        if (piece.numbers[i] <= FD_LOCK)
                                first |= 1U << piece.numbers[i];
                }
                if (!tell(HEIR_HAS))
                        return -ECANCELED;
        }
        if (r < 0)
                return r;
        return first == (1U << FD_FUSE | 1U << FD_ROOT | 1U << FD_CONTAINER | 1U << FD_LOCK) ? 0 : -EPROTO;
}

int heir_take_over(void)
{
        struct piece go;
        int none[FD_PASS_MANY];
        int pidfd;
        int r;

        if ((r = take_memory()) < 0)
                return r;
        if (!tell(HEIR_HAS))
                return -ECANCELED;
        if ((r = take_descriptors()) < 0)
                return r;
        pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (pidfd < 0)
                return -errno;
        if (!tell(HEIR_HAS))
                return -ECANCELED;
        if ((r = hear(SAY_GO, SAY_GO, &go, none)) < 0)
                return r;
        shared->keeper_pidfd = pidfd;
        shared->daemon_pidfd = shared->heir_fd = shared->force_pidfd = shared->closer_pidfd = -1;
        shared->keeper_closed = shared->reported = false;
        shared->short_lives = 0;
        shared->heir = HEIR_BEGINS;
        heir_fill_header();
        return 0;
}

void heir_say_serves(void)
{
        if (shared->heir == HEIR_NONE)
                return;
        shared->heir = HEIR_SAYS;
        (void)tell(HEIR_SERVES); /* if the old program has ended, there is nobody to hear it */
        shared->heir = HEIR_NONE;
        (void)dup2(FD_CONTAINER, FD_HEIR); /* the number stays in use: it is none of the daemon's files */
}

void heir_daemon_ended(void)
{
        struct pollfd old = { .fd = FD_HEIR };

        /* it has begun nothing, and the old program, if there is one, goes on */
        if (shared->heir == HEIR_BEGINS && poll(&old, 1, 0) == 0)
                _exit(EXIT_FAILURE);
        heir_say_serves(); /* it may have, or not: that was all that it had to do before it serves */
}

void heir_fill_header(void)
{
        shared->header = (struct keeper_header){ .magic = KEEPER_MAGIC,
                                                 .protocol = KEEPER_PROTOCOL,
                                                 .layout = SHARED_LAYOUT,
                                                 .sizes = SHARED_SIZES,
                                                 .version = VERSION };
}
