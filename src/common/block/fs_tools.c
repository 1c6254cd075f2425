/* SPDX-License-Identifier: Apache-2.0 */
#include "block/fs_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "privileges/tools.h"

#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "block/device.h"
#include "process/exec.h"
#include "process/exec_helper.h"

#define ARGUMENTS_MAX 8

/*
 * The options make them quiet and non-interactive. -m 0, as with kubelet's mounter: no blocks are reserved for root.
 * Nothing is forced: mkfs refuses a device on which it finds a filesystem. Inode tables that mkfs.ext4 leaves to the kernel
 * (lazy_itable_init) are zeroed there by discarding, which takes blocks from an image that was given all of them.
 */
static const struct {
        const char *name;
        const char *arguments[ARGUMENTS_MAX]; /* before the device or directory */
        const char *keep_blocks[2];           /* options against discarding */
        bool privileged; /* to grow a mounted filesystem, or to set a device's block size (mkfs.xfs) */
} tools[TOOLS] = {
        [TOOL_MKFS_EXT4] = { "mkfs.ext4", { "-q", "-m", "0" }, { "-E", "nodiscard,lazy_itable_init=0" }, false },
        [TOOL_MKFS_XFS] = { "mkfs.xfs", { "-q" }, { "-K" }, true },
        [TOOL_MKFS_BTRFS] = { "mkfs.btrfs", { "-q" }, { "-K" }, false },
        [TOOL_MKFS_EXT4_DIRECT] = { "mkfs.ext4",
                                    { "-q", "-m", "0", "-b", "4096", "-E", "stride=512,stripe_width=512" },
                                    {},
                                    false },
        [TOOL_MKFS_XFS_DIRECT] = { "mkfs.xfs",
                                   { "-q", "-b", "size=4096", "-m", "reflink=0", "-d", "su=2m,sw=1" },
                                   {},
                                   true },
        [TOOL_MKFS_XFS_SMALL_DIRECT] = { "mkfs.xfs",
                                         { "-q", "-b", "size=4096", "-m", "reflink=0", "-d", "su=2m,sw=1,agcount=2" },
                                         {},
                                         true },
        [TOOL_E2FSCK] = { "e2fsck", { "-p" }, {}, false },
        [TOOL_DEBUGFS_DIRTY] = { "debugfs", { "-n", "-w", "-R", "dirty" }, {}, false },
        [TOOL_RESIZE2FS] = { "resize2fs", {}, {}, true },
        [TOOL_XFS_GROWFS] = { "xfs_growfs", {}, {}, true },
        [TOOL_BTRFS_GROW] = { "btrfs", { "filesystem", "resize", "max" }, {}, true },
};

struct order {
        enum fs_tool tool;
        unsigned timeout_seconds;
        bool keep_blocks;
        char argument[PATH_MAX];
};

/* ---- in the exec helper */

static void carry_out(const struct order *order, int call_off_fd, struct exec_end *ret_end)
{
        const char *arguments[ARGUMENTS_MAX + 4] = { tools[order->tool].name };
        const struct exec command = { .name = tools[order->tool].name,
                                      .arguments = arguments,
                                      .timeout_seconds = order->timeout_seconds,
                                      .privileged = tools[order->tool].privileged,
                                      .report_fd = -EBADF,
                                      .call_off_fd = call_off_fd };
        int count = 1;

        for (int i = 0; tools[order->tool].arguments[i] != NULL; i++)
                arguments[count++] = tools[order->tool].arguments[i];
        for (int i = 0; order->keep_blocks && i < 2 && tools[order->tool].keep_blocks[i] != NULL; i++)
                arguments[count++] = tools[order->tool].keep_blocks[i];
        arguments[count] = order->argument;
        exec_run(&command, ret_end);
}

static void run_orders(int fd)
{
        static struct order order;
        static struct exec_end answer;

        ssize_t n;

        while ((n = recv(fd, &order, sizeof order, 0)) > 0) {
                if (n != (ssize_t)sizeof order)
                        continue; /* an order that is called off, and has ended */
                answer = (struct exec_end){};
                order.argument[sizeof order.argument - 1] = '\0';
                if ((unsigned)order.tool < TOOLS && order.argument[0] == '/')
                        carry_out(&order, fd, &answer);
                else
                        answer.errnum = EINVAL;
                if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
                        break;
        }
}

/* ---- in the program */

static struct exec_helper helper = {
        .fd = -EBADF, .name = "the helper process for mkfs and fsck", .privileges = &PRIVILEGES, .serve = run_orders
};

int fs_tool_begin(int argc, char **argv, struct error *error)
{
        (void)argc;
        (void)argv;
        return exec_helper_begin(&helper, error);
}

static bool is_mkfs(enum fs_tool tool)
{
        return tool <= TOOL_MKFS_XFS_SMALL_DIRECT;
}

static int receive(struct exec_end *ret_answer)
{
        ssize_t n;

        do
                n = recv(helper.fd, ret_answer, sizeof *ret_answer, 0);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof *ret_answer ? 0 : n < 0 ? -errno : -ECANCELED;
}

/* How much was written to a device and discarded on it since it is there; 0: it is not known. */
static uint64_t changed_bytes(uint64_t number)
{
        /* Documentation/block/stat.rst: 17 numbers */
        enum { WRITTEN_SECTORS = 6, DISCARDED_SECTORS = 13, SECTOR_BYTES = 512 };
        uint64_t sum = 0;
        char text[256];
        char *rest = text;
        char *word;

        if (block_device_attribute(number, "stat", text, sizeof text) < 0)
                return 0;
        for (int i = 0; (word = strtok_r(rest, " ", &rest)) != NULL; i++) {
                uint64_t value = 0;

                if ((i == WRITTEN_SECTORS || i == DISCARDED_SECTORS) && text_number(word, UINT64_MAX, &value))
                        sum += value;
        }
        return sum * SECTOR_BYTES;
}

/* While mkfs runs: tells how far it is, and calls it off if this process is asked to end. Returns once it has answered. */
static int attend(const char *path)
{
        const struct timespec pause = { .tv_nsec = 100000000 };
        const bool told = progress_is_told();
        struct stat st = {};
        bool called_off = false;
        uint64_t before;
        uint64_t done = 0;

        if (told)
                (void)fstatat(AT_FDCWD, path, &st, 0); /* of no device nothing is told */
        before = told ? changed_bytes(st.st_rdev) : 0;
        for (;;) {
                struct pollfd wait = { .fd = helper.fd, .events = POLLIN };
                int r = ppoll(&wait, 1, told ? &pause : NULL, NULL);

                if (r < 0 && errno != EINTR)
                        return -errno;
                if (interrupt_is_noted() && !called_off)
                        called_off = send(helper.fd, "", 1, MSG_NOSIGNAL) == 1;
                if (told && S_ISBLK(st.st_mode))
                        done = changed_bytes(st.st_rdev) - before;
                if (r > 0)
                        break;
                if (told)
                        progress_of("mkfs", path, done, /* total_bytes= */ 0);
        }
        if (told && !called_off)
                progress_of("mkfs", path, done, done);
        progress_end();
        return 0;
}

int fs_tool_run(enum fs_tool tool, const char *argument, bool keep_blocks, unsigned timeout_seconds, char *ret_output,
                struct error *error)
{
        static struct order order;
        static struct exec_end answer;
        const char *name = tools[tool].name;
        int r;

        order = (struct order){ .tool = tool, .timeout_seconds = timeout_seconds, .keep_blocks = keep_blocks };
        if (!text_copy(order.argument, sizeof order.argument, argument))
                return fail(error, ENAMETOOLONG, name, argument);
        if (send(helper.fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
                return fail(error, errno, "run command", name);
        if ((r = is_mkfs(tool) ? attend(argument) : 0) < 0 || (r = receive(&answer)) < 0)
                return fail_because(error, -r, "run command", name, "the helper process that runs it has exited");
        if (answer.errnum == ECANCELED && is_mkfs(tool) && (r = interrupt_check(name, argument, error)) < 0)
                return r;
        (void)text_copy(ret_output, TOOL_OUTPUT_SIZE, answer.output);
        return exec_check(name, &answer, timeout_seconds, error);
}

void fs_tool_end(void)
{
        exec_helper_end(&helper);
}
