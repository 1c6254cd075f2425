/* SPDX-License-Identifier: Apache-2.0 */
/* controller_capacity.c - GetCapacity: one volume-capacity. */
#include "controller.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "capability.h"
#include "type.h"

static const Csi__V1__GetCapacityRequest *request_of(const struct call *call)
{
        return (const Csi__V1__GetCapacityRequest *)call_request(call);
}

/* maximum_bytes: of one volume; negative: nobody knows. */
static void answer(struct call *call, int64_t available_bytes, int64_t maximum_bytes)
{
        Csi__V1__GetCapacityResponse response = CSI__V1__GET_CAPACITY_RESPONSE__INIT;
        Csi__V1__Int64Value maximum = CSI__V1__INT64_VALUE__INIT;

        response.available_capacity = available_bytes;
        maximum.value = maximum_bytes;
        if (maximum_bytes >= 0)
                response.maximum_volume_size = &maximum;
        call_answer(call, &response.base);
}

/* Whether volumes of a pool can be used as the request wants them. */
static bool fits(const Csi__V1__GetCapacityRequest *request, const json_t *pool)
{
        for (size_t i = 0; i < request->n_volume_capabilities; i++) {
                const Csi__V1__VolumeCapability *capability = request->volume_capabilities[i];

                if (csi_capability_impossible(capability, controller_is_shared(pool)) != NULL)
                        return false;
                if (csi_type_find(json_member_text(pool, "type"))->directory && !controller_is_shared(pool) &&
                    (csi_capability_is_block(capability) || csi_capability_fs_type(capability)[0] != '\0'))
                        return false;
        }
        return true;
}

/* What was measured for the class: a pool, or its profile in that; NULL: the profile does not select it. */
static const json_t *measured_of(const json_t *pool, const char *profile)
{
        const json_t *entry;
        size_t i;

        if (profile == NULL)
                return pool;
        json_array_foreach (json_object_get(pool, "profiles"), i, entry)
                if (strcmp(json_member_text(entry, "profile"), profile) == 0)
                        return entry;
        return NULL;
}

bool controller_lacks_pools(const struct outcome *outcome)
{
        /* ESTALE: the profile was removed, and this node still remembers it */
        return outcome->status > 0 &&
               (outcome->error == ENOENT || outcome->error == ENODEV || outcome->error == ESTALE);
}

bool controller_pools_shared(const struct outcome *outcome, const char *profile)
{
        const json_t *pool;
        size_t i;

        json_array_foreach (json_object_get(outcome->reply, "pools"), i, pool)
                if (measured_of(pool, profile) != NULL && !controller_is_shared(pool))
                        return false;
        return true;
}

const char *controller_profile_parameter(const struct outcome *outcome, const char *profile, const char *key)
{
        const json_t *pool;
        const char *value = NULL;
        size_t i;

        if (profile == NULL)
                return NULL;
        json_array_foreach (json_object_get(outcome->reply, "pools"), i, pool)
                if (value == NULL) /* each pool says the same of it */
                        value = json_string_value(
                                json_object_get(json_object_get(measured_of(pool, profile), "parameters"), key));
        return value;
}

struct sum {
        int64_t available_bytes;
        int64_t largest_bytes;
        bool unknown; /* of one pool at least */
};

/* An object with "available" and "largest": of a pool, or of a profile in it. */
static void add(struct sum *sum, const json_t *measured)
{
        int64_t available_bytes = reply_bytes(measured, "available");

        if (json_object_get(measured, "problem") != NULL)
                return; /* no volume can be made, whatever is free */
        if (json_object_get(measured, "largest") == NULL) {
                sum->unknown = true;
                return;
        }
        sum->available_bytes =
                available_bytes > INT64_MAX - sum->available_bytes ? INT64_MAX : sum->available_bytes + available_bytes;
        if (reply_bytes(measured, "largest") > sum->largest_bytes)
                sum->largest_bytes = reply_bytes(measured, "largest");
}

static void measured(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__GetCapacityRequest *request = request_of(call);
        const char *profile = controller_parameter(CSI_MAP(request, parameters), "profile", /* any_case= */ false);
        struct sum sum = {};
        const json_t *pool;
        size_t i;

        if (controller_lacks_pools(outcome)) {
                answer(call, 0, 0);
                return;
        }
        if (controller_failed(call, outcome))
                return;
        json_array_foreach (json_object_get(outcome->reply, "pools"), i, pool)
                if (fits(request, pool) && measured_of(pool, profile) != NULL)
                        add(&sum, measured_of(pool, profile));
        answer(call, sum.unknown ? INT64_MAX : sum.available_bytes, sum.unknown ? -1 : sum.largest_bytes);
}

json_t *controller_capacity_request(size_t count, const void *const *entries)
{
        const char *pool = controller_parameter(count, entries, "pool", /* any_case= */ false);
        const char *profile = controller_parameter(count, entries, "profile", /* any_case= */ false);
        json_t *wanted = json_object();
        json_t *parameters = json_object();

        controller_pool_parameters(count, entries, parameters);
        if (pool != NULL || profile == NULL)
                (void)json_object_set_new(wanted, "pool", json_string(pool != NULL ? pool : "default"));
        if (profile != NULL)
                (void)json_object_set_new(wanted, "profile", json_string(profile));
        else if (json_object_size(parameters) > 0)
                (void)json_object_set(wanted, "parameters", parameters);
        json_decref(parameters);
        return wanted;
}

void controller_get_capacity(struct call *call)
{
        const Csi__V1__GetCapacityRequest *request = request_of(call);
        const char *why = NULL;

        for (size_t i = 0; i < request->n_volume_capabilities && why == NULL; i++)
                why = csi_capability_invalid(request->volume_capabilities[i]);
        if (why != NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", why);
        else if (request->accessible_topology != NULL && request->accessible_topology->n_segments > 0 &&
                 !controller_topology_here(call, request->accessible_topology))
                answer(call, 0, 0);
        else if (controller_parameter(CSI_MAP(request, parameters), "server", /* any_case= */ true) != NULL)
                answer(call, INT64_MAX, -1); /* the server is not asked: it may not answer */
        else
                controller_run(call, "volume-capacity", controller_capacity_request(CSI_MAP(request, parameters)),
                               measured);
}
