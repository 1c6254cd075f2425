/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller_create.c - CreateVolume: one volume-create. What it makes, and that the same request twice is one volume, is
 * volume-create's to say. With a content source, volume-list is asked before whether there is one.
 */
#include "controller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "capability.h"
#include "names.h"
#include "share.h"
#include "state/access.h"
#include "type.h"

#define FLAGS_MAX 255                    /* of a pool's "mountOptions" */
#define DEFAULT_BYTES ((int64_t)1 << 30) /* where the request says nothing */

static const Csi__V1__CreateVolumeRequest *request_of(const struct call *call)
{
        return (const Csi__V1__CreateVolumeRequest *)call_request(call);
}

static const char *parameter(const Csi__V1__CreateVolumeRequest *request, const char *key)
{
        return controller_parameter(CSI_MAP(request, parameters), key, /* any_case= */ false);
}

/* The id of what is copied; NULL: nothing is. */
static const char *source_id(const Csi__V1__CreateVolumeRequest *request)
{
        const Csi__V1__VolumeContentSource *source = request->volume_content_source;

        if (source == NULL)
                return NULL;
        if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
                return source->snapshot->snapshot_id;
        return source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME ? source->volume->volume_id : "";
}

static bool source_is_snapshot(const Csi__V1__CreateVolumeRequest *request)
{
        const Csi__V1__VolumeContentSource *source = request->volume_content_source;

        return source != NULL && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
}

/* ---- what it asks for */

/* By the parameters of csi-driver-nfs; what its pool is, volume-capacity says. */
static bool is_shared(const Csi__V1__CreateVolumeRequest *request)
{
        return controller_parameter(CSI_MAP(request, parameters), "server", /* any_case= */ true) != NULL;
}

static int64_t size_of(const Csi__V1__CreateVolumeRequest *request)
{
        const Csi__V1__CapacityRange *range = request->capacity_range;

        if (range == NULL || range->required_bytes != 0)
                return range == NULL ? DEFAULT_BYTES : range->required_bytes;
        return range->limit_bytes != 0 && range->limit_bytes < DEFAULT_BYTES ? range->limit_bytes : DEFAULT_BYTES;
}

static bool is_block(const Csi__V1__CreateVolumeRequest *request)
{
        return csi_capability_is_block(request->volume_capabilities[0]);
}

/* The filesystem that one of the capabilities names, or the class; "": none does. */
static const char *fs_type_of(const Csi__V1__CreateVolumeRequest *request, bool shared)
{
        const char *fs_type = "";

        for (size_t i = 0; i < request->n_volume_capabilities && fs_type[0] == '\0'; i++)
                fs_type = csi_capability_fs_type(request->volume_capabilities[i]);
        if (fs_type[0] == '\0' && !is_block(request))
                fs_type = parameter(request, "fsType") ?: "";
        return shared && csi_type_find(fs_type)->server ? "" : fs_type; /* it has none of its own */
}

/* As csi-driver-nfs, which mounts the share with the mount flags of the class. */
static void take_mount_flags(const Csi__V1__CreateVolumeRequest *request, json_t *parameters)
{
        char *flags;

        if (json_object_get(parameters, "mountOptions") != NULL)
                return;
        flags = csi_capability_flags(request->volume_capabilities[0]);
        if (flags != NULL && flags[0] != '\0')
                (void)json_object_set_new(parameters, "mountOptions", json_string(flags));
        free(flags);
}

/* The parameters of the pool: what is asked for, and what may be changed later. */
static json_t *parameters_of(const Csi__V1__CreateVolumeRequest *request)
{
        json_t *parameters = json_object();

        controller_pool_parameters(CSI_MAP(request, parameters), parameters);
        controller_pool_parameters(CSI_MAP(request, mutable_parameters), parameters);
        if (is_shared(request))
                take_mount_flags(request, parameters);
        return parameters;
}

static void set(json_t *object, const char *key, const char *value)
{
        if (value != NULL && value[0] != '\0')
                (void)json_object_set_new(object, key, json_string(value));
}

static json_t *begin_request(const Csi__V1__CreateVolumeRequest *request)
{
        char name[CSI_VOLUME_NAME_SIZE];
        json_t *wanted = json_object();

        csi_new_name(request->name, name);
        set(wanted, "name", name);
        set(wanted, "namespace", "-"); /* no pod gets it by its name */
        set(wanted, "pool", parameter(request, "pool"));
        set(wanted, "reclaimPolicy",
            csi_map_find(CSI_MAP(request, mutable_parameters), "reclaimPolicy", /* any_case= */ false)
                    ?: parameter(request, "reclaimPolicy"));
        if (request->capacity_range != NULL && request->capacity_range->limit_bytes != 0)
                (void)json_object_set_new(wanted, "limit", json_integer(request->capacity_range->limit_bytes));
        return wanted;
}

static json_t *new_request(const Csi__V1__CreateVolumeRequest *request, bool shared)
{
        json_t *wanted = begin_request(request);
        const char *profile = parameter(request, "profile");
        const char *erase = csi_map_find(CSI_MAP(request, mutable_parameters), "eraseAfter", /* any_case= */ false);
        json_t *parameters = parameters_of(request);

        if (profile != NULL && erase != NULL && source_id(request) == NULL) { /* the profile has the parameters */
                (void)json_object_del(parameters, "eraseAfter");
                (void)json_object_set_new(wanted, "eraseAfter", json_boolean(strcmp(erase, "false") != 0));
        }
        (void)json_object_set_new(wanted, "size", json_integer(size_of(request)));
        (void)json_object_set_new(wanted, "targetType", json_string(access_target_type(is_block(request))));
        set(wanted, "fsType", fs_type_of(request, shared));
        set(wanted, "profile", profile);
        /* With a profile only what one adds to it is said; volume-create refuses that, but for what is of the claim. */
        if (profile == NULL || json_object_size(parameters) > 0)
                (void)json_object_set(wanted, "parameters", parameters);
        json_decref(parameters);
        return wanted;
}

/* What the source is, the copy is, too; but how it is deleted is the request's to say. */
static json_t *copy_request(const Csi__V1__CreateVolumeRequest *request)
{
        json_t *wanted = begin_request(request);
        const char *erase = csi_map_find(CSI_MAP(request, mutable_parameters), "eraseAfter", /* any_case= */ false)
                                    ?: parameter(request, "eraseAfter");
        char source[CSI_VOLUME_NAME_SIZE];

        csi_id_name(source_id(request), source);
        set(wanted, "from", source);
        if (erase == NULL && parameter(request, "profile") == NULL)
                erase = "true"; /* as of a volume that is no copy */
        if (erase != NULL && erase[0] != '\0')
                (void)json_object_set_new(wanted, "eraseAfter", json_boolean(strcmp(erase, "false") != 0));
        if (request->capacity_range != NULL && request->capacity_range->required_bytes != 0)
                (void)json_object_set_new(wanted, "size", json_integer(request->capacity_range->required_bytes));
        return wanted;
}

/* ---- what came of it */

/* What the request says and a copy, or a copy of this volume, has not; NULL: nothing. */
static const char *lacking(struct call *call, const json_t *volume)
{
        json_t *wanted = new_request(request_of(call), is_shared(request_of(call)));
        const char *erase = json_member_text(json_object_get(wanted, "parameters"), "eraseAfter");
        const char *key = controller_copy_lacks(wanted, volume);

        if (key == NULL && erase[0] != '\0' && strcmp(erase, "true") != 0 && strcmp(erase, "false") != 0)
                key = "eraseAfter";
        if (key != NULL)
                key = csi_text(call, key);
        json_decref(wanted);
        return key;
}

/* What volume-create does not compare. NULL: nothing differs. */
static const char *difference(struct call *call, const json_t *volume)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        const char *id = source_id(request);
        char source[CSI_VOLUME_NAME_SIZE] = "";

        if (id != NULL)
                csi_id_name(id, source);
        if (json_member_text(volume, "snapshotOf")[0] != '\0')
                return "something else has the name: a snapshot";
        if (strcmp(json_member_text(volume, "copyOf"), source) != 0)
                return "a volume of this name exists, with another content source";
        if (strcmp(json_member_text(volume, "targetType"), access_target_type(is_block(request))) != 0)
                return "a volume of this name exists, of another access type";
        if (request->capacity_range != NULL && request->capacity_range->limit_bytes != 0 &&
            reply_bytes(volume, "size") > request->capacity_range->limit_bytes)
                return "a volume of this name exists, larger than the limit";
        if (id != NULL && lacking(call, volume) != NULL)
                return "a volume of this name exists, with another set of parameters";
        return NULL;
}

static void list_named(struct call *call, const char *name, call_next *next)
{
        controller_run(call, "volume-list", json_pack("{s:s}", "name", name), next);
}

/*
 * A pool that this node lacks another one may have: the provisioner tries that after RESOURCE_EXHAUSTED. Not if the volume
 * is here, and its pool is missing at the moment: nobody would delete it.
 */
static void fail_elsewhere(struct call *call, const struct outcome *outcome)
{
        const char *message = call_kept(call);

        if (controller_failed(call, outcome))
                return;
        if (json_array_size(json_object_get(outcome->reply, "volumes")) > 0)
                call_fail(call, GRPC_ABORTED, "the volume is on this node: %s", message);
        else
                call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", message);
}

/* Whether that is why a program failed; then the call goes on. */
static bool lacks_pool(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        char name[CSI_VOLUME_NAME_SIZE];

        if (source_id(request) != NULL || !controller_lacks_pools(outcome))
                return false;
        call_keep(call, csi_text(call, outcome->message));
        csi_new_name(request->name, name);
        list_named(call, name, fail_elsewhere);
        return true;
}

static void created(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        const json_t *volume = json_object_get(outcome->reply, "volume");
        Csi__V1__CreateVolumeResponse response = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
        const char *differs;

        if (lacks_pool(call, outcome))
                return;
        if (outcome->error == EOPNOTSUPP && source_id(request) != NULL) { /* the source and the class do not fit */
                call_fail(call, GRPC_INVALID_ARGUMENT, "%s", outcome->message);
                return;
        }
        if (controller_failed(call, outcome))
                return;
        if ((differs = difference(call, volume)) != NULL) {
                call_fail(call, GRPC_ALREADY_EXISTS, "%s", differs);
                return;
        }
        response.volume = controller_volume(call, volume);
        response.volume->content_source = request->volume_content_source;
        if (is_shared(request)) /* a parameter, which kubelet does not say, as it does mount flags */
                controller_put_flags(
                        call, controller_parameter(CSI_MAP(request, parameters), "mountOptions", /* any_case= */ true),
                        response.volume);
        call_answer(call, &response.base);
}

static bool has_terms(const Csi__V1__TopologyRequirement *wanted)
{
        return wanted != NULL && wanted->n_requisite + wanted->n_preferred > 0;
}

/* Where the scheduler chose the node, another one may have it: the provisioner has that tried after RESOURCE_EXHAUSTED. */
static void fail_sourceless(struct call *call)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);

        call_fail(call, has_terms(request->accessibility_requirements) ? GRPC_RESOURCE_EXHAUSTED : GRPC_NOT_FOUND,
                  "there is no %s \"%.128s\" on this node, and a copy is made where its source is: a nodeSelector of "
                  "the pod says where",
                  source_is_snapshot(request) ? "snapshot" : "volume", source_id(request));
}

static void source_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        const char *id = source_id(request);
        const json_t *source;
        const char *lacks;

        if (controller_failed(call, outcome))
                return;
        source = controller_find(outcome, id, source_is_snapshot(request));
        if (source == NULL)
                fail_sourceless(call);
        else if (access_is_block(json_member_text(source, "targetType")) != is_block(request))
                call_fail(call, GRPC_INVALID_ARGUMENT, "its content source \"%.128s\" is %s", id,
                          is_block(request) ? "no block volume" : "a block volume");
        else if ((lacks = lacking(call, source)) != NULL)
                call_fail(call, GRPC_INVALID_ARGUMENT,
                          "%.64s: a copy has that of its content source \"%.128s\", which is not what is asked for",
                          lacks, id);
        else
                controller_run(call, "volume-create", copy_request(request), created);
}

/* Before anything is made. A volume that is there already may have outlived its source. */
static void target_listed(struct call *call, const struct outcome *outcome)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        char name[CSI_VOLUME_NAME_SIZE];

        if (controller_failed(call, outcome))
                return;
        csi_new_name(request->name, name);
        if (controller_find(outcome, name, /* snapshot= */ false) != NULL)
                controller_run(call, "volume-create", copy_request(request), created);
        else {
                csi_id_name(source_id(request), name);
                list_named(call, name, source_listed);
        }
}

/* ---- the request */

/* The code and a sentence; GRPC_OK: nothing is wrong with the capabilities. */
static enum grpc_code check_capabilities(const Csi__V1__CreateVolumeRequest *request, bool shared, const char **ret_why)
{
        if (request->n_volume_capabilities == 0) {
                *ret_why = "the volume capabilities are missing";
                return GRPC_INVALID_ARGUMENT;
        }
        for (size_t i = 0; i < request->n_volume_capabilities; i++) {
                const Csi__V1__VolumeCapability *capability = request->volume_capabilities[i];

                *ret_why = csi_capability_incomplete(capability) ?: csi_capability_impossible(capability, shared);
                if (*ret_why == NULL && csi_capability_is_block(capability) != is_block(request))
                        *ret_why = "a volume cannot be both mounted and a block device";
                if (*ret_why != NULL)
                        return GRPC_INVALID_ARGUMENT;
        }
        return GRPC_OK;
}

/* Its pods would be refused, one by one (volume/request.c). cache: of the class, or of its profile; NULL: none. */
static bool is_cached_for_nodes(const Csi__V1__CreateVolumeRequest *request, const char *cache)
{
        for (size_t i = 0; cache != NULL && strcmp(cache, "always") == 0 && i < request->n_volume_capabilities; i++)
                if (access_is_of_nodes(csi_capability_mode(request->volume_capabilities[i])))
                        return true;
        return false;
}

/* A pool would call its own file broken. */
static bool has_long_flags(const Csi__V1__CreateVolumeRequest *request)
{
        char *flags = csi_capability_flags(request->volume_capabilities[0]);
        bool too_long = flags != NULL && strlen(flags) > FLAGS_MAX;

        free(flags);
        return too_long;
}

/* It separates the parts of the volume's id, by which other nodes delete it. */
static bool has_separator(const Csi__V1__CreateVolumeRequest *request)
{
        static const char *const keys[] = { "server", "share", "subDir", NULL };

        for (size_t i = 0; keys[i] != NULL; i++) {
                const char *value = csi_map_find(CSI_MAP(request, parameters), keys[i], /* any_case= */ true);

                if (value != NULL && strchr(value, '#') != NULL)
                        return true;
        }
        return false;
}

static bool is_here(const struct call *call, const Csi__V1__TopologyRequirement *wanted)
{
        bool any = !has_terms(wanted);

        for (size_t i = 0; !any && i < wanted->n_requisite; i++)
                any = controller_topology_here(call, wanted->requisite[i]);
        /* where requisite has terms, preferred has only terms of it */
        for (size_t i = 0; !any && wanted->n_requisite == 0 && i < wanted->n_preferred; i++)
                any = controller_topology_here(call, wanted->preferred[i]);
        return any;
}

/* As ControllerModifyVolume takes them. */
static bool has_known_changes(const Csi__V1__CreateVolumeRequest *request)
{
        for (size_t i = 0; i < request->n_mutable_parameters; i++) {
                const char *key;
                const char *value;

                csi_map_entry(request->mutable_parameters[i], &key, &value);
                if (!text_starts(key, CSI_OF_KUBERNETES) && strcmp(key, "reclaimPolicy") != 0 &&
                    (strcmp(key, "eraseAfter") != 0 || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)))
                        return false;
        }
        return true;
}

static enum grpc_code check(const struct call *call, bool shared, const char *cache, const char **ret_why)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        enum grpc_code code;

        *ret_why = "the volume's name is missing";
        if (request->name[0] == '\0')
                return GRPC_INVALID_ARGUMENT;
        *ret_why = "the id of the content source is missing";
        if (source_id(request) != NULL && source_id(request)[0] == '\0')
                return GRPC_INVALID_ARGUMENT;
        if ((code = check_capabilities(request, shared, ret_why)) != GRPC_OK)
                return code;
        *ret_why = "cache \"always\" is for volumes that one node alone changes, and by the access mode several do";
        if (is_cached_for_nodes(request, cache))
                return GRPC_INVALID_ARGUMENT;
        *ret_why = "of mutable_parameters, eraseAfter (true or false) and reclaimPolicy can be given";
        if (!has_known_changes(request))
                return GRPC_INVALID_ARGUMENT;
        *ret_why = "the mount flags (mountOptions) are too long";
        if (is_shared(request) && has_long_flags(request))
                return GRPC_INVALID_ARGUMENT;
        *ret_why = "server, share and subDir must not have a \"#\", which separates the parts of an id";
        if (is_shared(request) && has_separator(request))
                return GRPC_INVALID_ARGUMENT;
        if ((*ret_why = csi_range_problem(request->capacity_range)) != NULL)
                return GRPC_OUT_OF_RANGE;
        *ret_why = "the volume cannot be made where it is wanted: this is another node";
        return shared || is_here(call, request->accessibility_requirements) ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED;
}

static void create(struct call *call, bool shared, const char *cache)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);
        const char *why;
        enum grpc_code code = check(call, shared, cache, &why);
        char name[CSI_VOLUME_NAME_SIZE];

        if (code != GRPC_OK)
                call_fail(call, code, "%s", why);
        else if (source_id(request) != NULL) {
                csi_new_name(request->name, name);
                list_named(call, name, target_listed);
        } else
                controller_run(call, "volume-create", new_request(request, shared), created);
}

static void pools_listed(struct call *call, const struct outcome *outcome)
{
        const char *profile = parameter(request_of(call), "profile");
        const char *cache = parameter(request_of(call), "cache");

        if (!lacks_pool(call, outcome) && !controller_failed(call, outcome))
                create(call, controller_pools_shared(outcome, profile),
                       cache ?: controller_profile_parameter(outcome, profile, "cache"));
}

void controller_create_volume(struct call *call)
{
        const Csi__V1__CreateVolumeRequest *request = request_of(call);

        if (!is_shared(request) &&
            csi_capabilities_need_share(request->n_volume_capabilities, request->volume_capabilities))
                controller_run(call, "volume-capacity", controller_capacity_request(CSI_MAP(request, parameters)),
                               pools_listed);
        else
                create(call, is_shared(request), parameter(request, "cache"));
}
