/* SPDX-License-Identifier: Apache-2.0 */
#include "block/lvm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/text.h"

#define CONTROL_NUMBER makedev(10, 236) /* MAPPER_CTRL_MINOR of the kernel */
#define CONTROL "/dev/mapper/control"
#define TARGET_MAX_BYTES 4096

/* Types of lvcreate, and modules of lvs; linear and striped are in the device mapper itself. */
static const struct {
        const char *name;
        const char *target;
        need_set needs; /* of those that volume-create makes */
} table[] = {
        { "raid1", "raid", NEED(DM_RAID) },
        { "raid4", "raid", NEED(DM_RAID) },
        { "raid5", "raid", NEED(DM_RAID) },
        { "raid6", "raid", NEED(DM_RAID) },
        { "raid10", "raid", NEED(DM_RAID) },
        { "raid", "raid", NEED(DM_RAID) },
        { "mirror", "mirror", NEED(DM_MIRROR) },
        { "snapshot", "snapshot", NEED(DM_SNAPSHOT) },
        { "thin", "thin-pool", NEED(DM_THIN) },
        { "thin-pool", "thin-pool", NEED(DM_THIN) },
        { "cache", "cache", 0 },
        { "writecache", "writecache", 0 },
        { "integrity", "integrity", 0 },
};

need_set lvm_type_needs(const char *type)
{
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                if (strcmp(table[i].name, type) == 0)
                        return table[i].needs;
        return 0;
}

/* Opening the node loads the device mapper. Without udev the node may not be there yet. */
static int open_control(void)
{
        int fd = open(CONTROL, O_RDWR | O_CLOEXEC);

        if (fd >= 0 || errno != ENOENT)
                return fd;
        if ((mkdir("/dev/mapper", 0755) < 0 && errno != EEXIST) || mknod(CONTROL, S_IFCHR | 0600, CONTROL_NUMBER) < 0)
                return -1;
        return open(CONTROL, O_RDWR | O_CLOEXEC);
}

static void load(int control_fd, const char *target)
{
        static union {
                struct dm_ioctl question;
                char room[TARGET_MAX_BYTES];
        } asked;

        (void)memset(&asked, 0, sizeof asked);
        asked.question.version[0] = DM_VERSION_MAJOR;
        asked.question.data_size = sizeof asked;
        asked.question.data_start = sizeof asked.question;
        (void)text_copy(asked.question.name, sizeof asked.question.name, target);
        (void)ioctl(control_fd, DM_GET_TARGET_VERSION, &asked); /* lvm says what is missing */
}

void lvm_targets_load(const char *names)
{
        cleanup_close int control_fd = -EBADF;
        size_t length;

        for (; *names != '\0'; names += length + (names[length] == ',')) {
                length = strcspn(names, ",");
                for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
                        if (strlen(table[i].name) != length || strncmp(table[i].name, names, length) != 0)
                                continue;
                        if (control_fd < 0 && (control_fd = open_control()) < 0)
                                return;
                        load(control_fd, table[i].target);
                }
        }
}

void lvm_targets_resume(const char *device)
{
        cleanup_close int control_fd = open_control();
        struct dm_ioctl order = { .version = { DM_VERSION_MAJOR }, .data_size = sizeof order };

        if (control_fd < 0 || !text_copy(order.name, sizeof order.name, device))
                return;
        (void)ioctl(control_fd, DM_DEV_SUSPEND, &order); /* without the flag of suspending; it may not be there */
}
