/* SPDX-License-Identifier: Apache-2.0 */
#include "block/fs_tools.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "privileges/tools.h"

#include "base/text.h"
#include "process/exec.h"
#include "process/exec_helper.h"

#define ARGUMENTS_MAX 8

/*
 * The options make them quiet and non-interactive. -m 0, as with kubelet's mounter: no blocks are reserved for root.
 * Nothing is forced: mkfs refuses a device on which it finds a filesystem.
 */
static const struct {
        const char *name;
        const char *arguments[ARGUMENTS_MAX]; /* before the device or directory */
        const char *keep_blocks[2];           /* options against discarding */
        bool privileged; /* to grow a mounted filesystem, or to set a device's block size (mkfs.xfs) */
} tools[TOOLS] = {
        [TOOL_MKFS_EXT4] = { "mkfs.ext4", { "-q", "-m", "0" }, { "-E", "nodiscard" }, false },
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

static void carry_out(const struct order *order, struct exec_end *ret_end)
{
        const char *arguments[ARGUMENTS_MAX + 4] = { tools[order->tool].name };
        const struct exec command = { .name = tools[order->tool].name,
                                      .arguments = arguments,
                                      .timeout_seconds = order->timeout_seconds,
                                      .privileged = tools[order->tool].privileged,
                                      .report_fd = -EBADF };
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
        static struct order order; /* static, for their size */
        static struct exec_end answer;

        while (recv(fd, &order, sizeof order, 0) == (ssize_t)sizeof order) {
                answer = (struct exec_end){};
                order.argument[sizeof order.argument - 1] = '\0';
                if ((unsigned)order.tool < TOOLS && order.argument[0] == '/')
                        carry_out(&order, &answer);
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

int fs_tool_run(enum fs_tool tool, const char *argument, bool keep_blocks, unsigned timeout_seconds, char *ret_output,
                struct error *error)
{
        static struct order order; /* static, for their size */
        static struct exec_end answer;
        const char *name = tools[tool].name;
        ssize_t n;

        order = (struct order){ .tool = tool, .timeout_seconds = timeout_seconds, .keep_blocks = keep_blocks };
        if (!text_copy(order.argument, sizeof order.argument, argument))
                return fail(error, ENAMETOOLONG, name, argument);
        if (send(helper.fd, &order, sizeof order, MSG_NOSIGNAL) != (ssize_t)sizeof order)
                return fail(error, errno, "run command", name);
        do
                n = recv(helper.fd, &answer, sizeof answer, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof answer)
                return fail_because(error, n < 0 ? errno : ECANCELED, "run command", name,
                                    "the helper process that runs it has exited");
        (void)text_copy(ret_output, TOOL_OUTPUT_SIZE, answer.output);
        return exec_check(name, &answer, timeout_seconds, error);
}

void fs_tool_end(void)
{
        exec_helper_end(&helper);
}
