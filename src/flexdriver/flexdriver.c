/* SPDX-License-Identifier: Apache-2.0 */
/* flexdriver VERB ARGS... - what kubelet runs: init is answered here, every other verb is a program of its own. */
#include "privileges/flexdriver.h"
#include "common/error.h"
#include "common/program.h"
#include "common/volume_driver.h"

static const char help[] =
        "\n"
        "The FlexVolume driver of flexgraft. kubelet runs it, under the name it was installed as (see\n"
        "install-flexvolume): VENDOR~DRIVER/DRIVER VERB ARGUMENTS. A driver named loop, block, bind or tmpfs has "
        "volumes of\n"
        "that type; any other has those that the option \"type\" says.\n"
        "\n"
        "  init\n"
        "  getvolumename JSON\n"
        "  attach        JSON NODE\n"
        "  waitforattach DEVICE JSON\n"
        "  isattached    JSON NODE\n"
        "  detach        NAME NODE\n"
        "  mountdevice   DIR DEVICE JSON\n"
        "  unmountdevice DIR\n"
        "  mount         DIR JSON\n"
        "  unmount       DIR\n"
        "  expandvolume  JSON DIR NEW_SIZE OLD_SIZE\n"
        "  expandfs      JSON DEVICE DIR NEW_SIZE OLD_SIZE\n"
        "\n"
        "Example: flexdriver attach '{\"kubernetes.io/pvOrVolumeName\": \"data\", \"type\": \"loop\", \"size\": "
        "\"1Gi\"}' $(hostname)\n"
        "Exit status: 0 done or failed, as \"status\" says; 1 not supported. Needs root.\n";

static const struct program program = {
        .name = "flexdriver", .help = help, .privileges = &PRIVILEGES, .arguments = "VERB ..."
};

int main(int argc, char **argv)
{
        enum verb verb = argc > 1 ? volume_verb_find(argv[1]) : VERBS;
        char driver[VOLUME_DRIVER_MAX];
        static struct error error;

        volume_driver_name(argv[0], driver);
        if (verb != VERBS && verb != VERB_INIT)
                return volume_driver_failed(verb, volume_driver_dispatch(driver, verb, argv));
        if (program_begin(&program, argc, argv, &error) < 0)
                return volume_driver_failed(verb, -error.errnum);
        return verb == VERB_INIT ? volume_driver_init(driver) : volume_driver_not_supported(argc > 1 ? argv[1] : "");
}
