/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remove-loops N - take away the loop devices with the numbers N and above (two of them, where N is above 1023) that
 * nobody uses. They come into being as many are used at once, and stay.
 */
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

        if (argc != 2 || control < 0) {
                perror("remove-loops");
                return 1;
        }
        int first = atoi(argv[1]);
        for (int number = first; number < 1024 || number < first + 2; number++) {
                char path[32];

                snprintf(path, sizeof path, "/sys/block/loop%d", number);
                if (access(path, F_OK) == 0)
                        (void)ioctl(control, LOOP_CTL_REMOVE, number); /* EBUSY: somebody uses it */
        }
        return 0;
}
