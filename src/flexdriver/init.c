/* SPDX-License-Identifier: Apache-2.0 */
/* init - say what this driver can do, every capability spelled out. */
#include "privileges/init.h"
#include "common/error.h"
#include "common/program.h"
#include "common/volume_driver.h"

static const char help[] = "\n"
                           "Say what the FlexVolume driver of this name can do. kubelet runs it through flexdriver.\n"
                           "Exit status: 0. Needs root.\n";

static const struct program program = { .name = "init", .help = help, .privileges = &PRIVILEGES, .arguments = "" };

int main(int argc, char **argv)
{
        char driver[VOLUME_DRIVER_MAX];
        static struct error error;

        volume_driver_name(argv[0], driver);
        if (program_begin(&program, argc, argv, &error) < 0)
                return volume_driver_failed(VERB_INIT, -error.errnum);
        return volume_driver_init(driver);
}
