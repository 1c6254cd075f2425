/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - the service csi.v1.Identity: what the driver is, and whether it is ready. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/need.h"
#include "base/text.h"
#include "call.h"
#include "messages/csi.pb-c.h"

static void get_plugin_info(struct call *call)
{
        Csi__V1__GetPluginInfoResponse response = CSI__V1__GET_PLUGIN_INFO_RESPONSE__INIT;

        response.name = (char *)call_options(call)->name;
        response.vendor_version = (char *)VERSION;
        call_answer(call, &response.base);
}

#define PROBE_REQUEST "{\"timeoutSeconds\": 20}"
#define MISSING_MAX 512

typedef Csi__V1__PluginCapability__Service service;
typedef Csi__V1__PluginCapability__VolumeExpansion expansion;

#define SERVICE(word) CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__##word

static void get_plugin_capabilities(struct call *call)
{
        Csi__V1__GetPluginCapabilitiesResponse response = CSI__V1__GET_PLUGIN_CAPABILITIES_RESPONSE__INIT;
        service services[] = { CSI__V1__PLUGIN_CAPABILITY__SERVICE__INIT, CSI__V1__PLUGIN_CAPABILITY__SERVICE__INIT };
        expansion online = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__INIT;
        Csi__V1__PluginCapability all[3];
        Csi__V1__PluginCapability *list[3];

        services[0].type = SERVICE(CONTROLLER_SERVICE);
        services[1].type = SERVICE(VOLUME_ACCESSIBILITY_CONSTRAINTS);
        online.type = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE;
        for (size_t i = 0; i < 3; i++) {
                csi__v1__plugin_capability__init(&all[i]);
                list[i] = &all[i];
        }
        for (size_t i = 0; i < 2; i++) {
                all[i].type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
                all[i].service = &services[i];
        }
        all[2].type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
        all[2].volume_expansion = &online;
        response.n_capabilities = 3;
        response.capabilities = list;
        call_answer(call, &response.base);
}

/*
 * Whether no call can succeed without what a row of host-check is about. A pool or a profile that cannot be used is its
 * volumes' own: the sidecars end when the driver is not ready, and those of the other pools would have none either.
 */
static bool is_of_all(const json_t *row)
{
        static const char *const files[] = { "config.json", "state directory", NULL };
        const json_t *by;
        size_t i;

        json_array_foreach (json_object_get(row, "neededBy"), i, by)
                if (text_same(json_string_value(by), NEEDED_BY_ALL))
                        return true;
        return text_among(json_member_text(row, "name"), files);
}

/* The names of what is missing and of all, as host-check has them. */
static void list_missing(const json_t *rows, char ret_text[MISSING_MAX])
{
        size_t length = 0;
        size_t index;
        const json_t *row;

        ret_text[0] = '\0';
        json_array_foreach (rows, index, row) {
                if (length < MISSING_MAX && text_same(json_member_text(row, "state"), "missing") && is_of_all(row))
                        length += (size_t)snprintf(ret_text + length, MISSING_MAX - length, "%s%s",
                                                   length > 0 ? ", " : "", json_member_text(row, "name"));
        }
}

static void probe_end(struct call *call, const struct outcome *outcome)
{
        Csi__V1__ProbeResponse response = CSI__V1__PROBE_RESPONSE__INIT;
        Csi__V1__BoolValue ready = CSI__V1__BOOL_VALUE__INIT;
        char missing[MISSING_MAX];

        list_missing(json_object_get(outcome->reply, "rows"), missing);
        if (missing[0] != '\0')
                call_fail(call, GRPC_FAILED_PRECONDITION, "this node lacks what flexgraft needs: %s (see host-check)",
                          missing);
        else if (outcome->status != 0 && json_object_get(outcome->reply, "rows") == NULL)
                call_fail(call, GRPC_FAILED_PRECONDITION, "host-check: %s", outcome->message);
        else {
                ready.value = 1;
                response.ready = &ready;
                call_answer(call, &response.base);
        }
}

/* Whether the node has what is needed, tried by host-check within its time limit. */
static void probe(struct call *call)
{
        static const char *const arguments[] = { PROBE_REQUEST, NULL };

        call_run(call, "host-check", arguments, NULL, probe_end);
}

const struct rpc identity_rpcs[] = {
        { .path = "/csi.v1.Identity/GetPluginInfo",
          .request = &csi__v1__get_plugin_info_request__descriptor,
          .response = &csi__v1__get_plugin_info_response__descriptor,
          .begin = get_plugin_info },
        { .path = "/csi.v1.Identity/GetPluginCapabilities",
          .request = &csi__v1__get_plugin_capabilities_request__descriptor,
          .response = &csi__v1__get_plugin_capabilities_response__descriptor,
          .begin = get_plugin_capabilities },
        { .path = "/csi.v1.Identity/Probe",
          .request = &csi__v1__probe_request__descriptor,
          .response = &csi__v1__probe_response__descriptor,
          .begin = probe,
          .yields = true },
        {},
};
