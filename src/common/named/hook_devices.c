/* SPDX-License-Identifier: Apache-2.0 */
#include "named/hook_devices.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/failure.h"
#include "process/worker.h"
#include "provision/cdi.h"
#include "state/config.h"

int hook_devices_take(int *argc, char **argv, struct oci_hook_volume *ret_volume)
{
        *ret_volume = (struct oci_hook_volume){};
        for (int i = 2; i < *argc; i += 2) {
                if (strcmp(argv[i], "--raw") == 0 && !ret_volume->raw) {
                        ret_volume->raw = true;
                        i--; /* it has no value */
                        continue;
                }
                const char **ret = strcmp(argv[i], "--volume") == 0   ? &ret_volume->name
                                   : strcmp(argv[i], "--target") == 0 ? &ret_volume->target
                                                                      : NULL;

                if (ret == NULL || *ret != NULL || i + 1 == *argc)
                        return -EINVAL;
                *ret = argv[i + 1];
        }
        if ((ret_volume->name == NULL) != (ret_volume->target == NULL) || (ret_volume->raw && ret_volume->name == NULL))
                return -EINVAL;
        if (*argc > 2)
                *argc = 2;
        return ret_volume->name != NULL;
}

const struct schema_form hook_devices_replies[] = { { "written", ~0U, &cdi_reply_keys },
                                                    { "failed", ~0U, &failure_keys },
                                                    {} };

const struct people_form hook_devices_people[] = {
        { .when = "cdiDir", .line = "volumes that are devices now, by the files in {cdiDir}: {devices}" },
        { .rows = "leftOut", .line = "left out, for its name is none for a device: {}" },
        {},
};

struct writing {
        struct config config;
        json_t *reply;
};

static int write_devices(void *argument, struct error *error)
{
        struct writing *writing = argument;

        return cdi_write(&writing->config, &writing->reply, error);
}

int hook_devices_write(json_t **ret_reply, struct error *error)
{
        static struct writing writing; /* a worker that hangs has it, too */
        int r = config_load(&writing.config, error);

        if (r == 0)
                r = worker_run(write_devices, &writing, clock_now_ms() + (int64_t)writing.config.call_seconds * 1000,
                               error);
        *ret_reply = writing.reply;
        return r;
}
