/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registration.c - the service pluginregistration.Registration: kubelet asks who is behind a socket in plugins_registry/,
 * calls NodeGetInfo of the endpoint, and tells whether the driver is registered.
 */
#include "call.h"
#include "journal.h"
#include "messages/registration.pb-c.h"
#include "server.h"

#define AGAIN_FIRST_MS 1000
#define AGAIN_LAST_MS 64000

static void get_info(struct call *call)
{
        Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;
        char *versions[] = { (char *)"1.0.0" };

        info.type = (char *)"CSIPlugin";
        info.name = (char *)call_options(call)->name;
        info.endpoint = (char *)call_options(call)->endpoint;
        info.n_supported_versions = 1;
        info.supported_versions = versions;
        call_answer(call, &info.base);
}

/*
 * After a failure (of NodeGetInfo, mostly) kubelet never asks again, until the socket appears anew. Each time in a row
 * it is left in peace twice as long.
 */
static void notify(struct call *call)
{
        static int again_ms = AGAIN_FIRST_MS; /* kept: it grows with each failure in a row */
        const Pluginregistration__RegistrationStatus *status =
                (const Pluginregistration__RegistrationStatus *)call_request(call);
        Pluginregistration__RegistrationStatusResponse response =
                PLUGINREGISTRATION__REGISTRATION_STATUS_RESPONSE__INIT;

        if (status->plugin_registered)
                again_ms = AGAIN_FIRST_MS;
        else {
                journal_say("kubelet could not register the driver, and is asked again in %d s: %s", again_ms / 1000,
                            status->error);
                server_show_anew(again_ms);
                again_ms = again_ms < AGAIN_LAST_MS ? 2 * again_ms : AGAIN_LAST_MS;
        }
        call_answer(call, &response.base);
}

const struct rpc registration_rpcs[] = {
        { .path = "/pluginregistration.Registration/GetInfo",
          .request = &pluginregistration__info_request__descriptor,
          .response = &pluginregistration__plugin_info__descriptor,
          .begin = get_info },
        { .path = "/pluginregistration.Registration/NotifyRegistrationStatus",
          .request = &pluginregistration__registration_status__descriptor,
          .response = &pluginregistration__registration_status_response__descriptor,
          .begin = notify },
        {},
};
