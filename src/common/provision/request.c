/* SPDX-License-Identifier: Apache-2.0 */
#include "provision/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "provision/pool.h"
#include "provision/record.h"

#define REQUEST_MAX_BYTES ((size_t)65536)
#define BIT(verb) (1U << (verb))

static const char *const target_types[] = { "mount", "block", NULL };
static const char *const policies[] = { "delete", "retain", "recycle", NULL };

/* The keys that are texts, whose they are, and what they may be. */
static const struct {
        const char *key;
        size_t offset;
        unsigned verbs;
        size_t maximum;
        const char *const *words; /* NULL: anything */
} texts[] = {
#define TEXT(key, field) key, offsetof(struct provision_request, field)
        { TEXT("name", name), BIT(PROVISION_CREATE) | BIT(PROVISION_DELETE), PROVISION_NAME_MAX - 1, NULL },
        { TEXT("pool", pool), BIT(PROVISION_CREATE) | BIT(PROVISION_LIST) | BIT(PROVISION_CAPACITY), POOL_NAME_MAX - 1,
          NULL },
        { TEXT("profile", profile), BIT(PROVISION_CREATE) | BIT(PROVISION_CAPACITY), PROVISION_NAME_MAX - 1, NULL },
        { TEXT("id", id), BIT(PROVISION_CREATE), PROVISION_ID_MAX - 1, NULL },
        { TEXT("targetType", target_type), BIT(PROVISION_CREATE), 16, target_types },
        { TEXT("fsType", fs_type), BIT(PROVISION_CREATE), 31, NULL },
        { TEXT("reclaimPolicy", reclaim_policy), BIT(PROVISION_CREATE) | BIT(PROVISION_DELETE), 16, policies },
        { TEXT("operation", operation), BIT(PROVISION_CREATE) | BIT(PROVISION_DELETE), PROVISION_NAME_MAX - 1, NULL },
#undef TEXT
};

static bool is_printable(const char *text)
{
        for (; *text != '\0'; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        return false;
        return true;
}

static int take_text(struct provision_request *request, size_t which, const json_t *value, struct error *error)
{
        const char **field = (const char **)(void *)((char *)request + texts[which].offset);
        const char *key = texts[which].key;
        int r = json_value_string(key, value, texts[which].maximum, field, error);

        if (r < 0)
                return r;
        if (!is_printable(*field))
                return json_value_refuse(error, key, "holds a control character");
        if (texts[which].words != NULL && !text_among(*field, texts[which].words))
                return json_value_refuse(error, key,
                                         texts[which].words == policies
                                                 ? "must be \"delete\", \"retain\" or \"recycle\""
                                                 : "must be \"mount\" or \"block\"");
        return 0;
}

static int take_parameters(struct provision_request *request, const json_t *value, struct error *error)
{
        const char *key;
        const json_t *member;
        const char *ignored;
        int r;

        if (!json_is_object(value))
                return json_value_refuse(error, "parameters", "must be an object of strings");
        json_object_foreach ((json_t *)value, key, member)
                if ((r = json_value_string("parameters", member, JSON_VALUE_STRING_MAX, &ignored, error)) < 0)
                        return r;
        request->parameters = value;
        return 0;
}

static int take(struct provision_request *request, const char *key, const json_t *value, struct error *error)
{
        char text[24];
        int r;

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (strcmp(key, texts[i].key) == 0 && (texts[i].verbs & BIT(request->verb)) != 0)
                        return take_text(request, i, value, error);
        if (request->verb == PROVISION_CREATE && strcmp(key, "size") == 0) {
                if ((r = json_value_size(key, value, /* percent= */ false, text, sizeof text, error)) < 0)
                        return r;
                (void)text_number(text, INT64_MAX, &request->size_bytes); /* it is one */
                return 0;
        }
        if (request->verb == PROVISION_CREATE && strcmp(key, "parameters") == 0)
                return take_parameters(request, value, error);
        if (request->verb == PROVISION_CREATE && strcmp(key, "eraseAfter") == 0) {
                if (!json_is_boolean(value))
                        return json_value_refuse(error, key, "must be true or false");
                request->keeps_content = json_is_false(value);
                return 0;
        }
        if (request->verb == PROVISION_CREATE && strcmp(key, "match") == 0) {
                if (!json_is_boolean(value))
                        return json_value_refuse(error, key, "must be true or false");
                request->match = json_is_true(value);
                return 0;
        }
        return json_value_refuse(error, key, "unknown key");
}

static int check(const struct provision_request *request, struct error *error)
{
        bool adopts = request->id != NULL;

        if (request->verb == PROVISION_LIST || request->verb == PROVISION_CAPACITY)
                return 0;
        if (request->name == NULL)
                return json_value_refuse(error, "name", "must be given");
        if (request->verb == PROVISION_DELETE)
                return 0;
        if (adopts && request->match)
                return json_value_refuse(error, "match", "looks for a disk, and \"id\" names one");
        if (!adopts && request->size_bytes == 0)
                return json_value_refuse(error, "size", "must be given");
        if (request->parameters != NULL && request->profile != NULL)
                return json_value_refuse(error, "parameters", "are the profile's to say");
        if ((adopts || request->match) && request->parameters != NULL)
                return json_value_refuse(error, "parameters", "are for what is made, not for what is there");
        if (request->target_type != NULL && strcmp(request->target_type, "block") == 0 && request->fs_type != NULL)
                return json_value_refuse(error, "fsType", "a block volume has no filesystem");
        return 0;
}

int provision_request_parse(struct provision_request *ret_request, enum provision_verb verb, int argc, char **argv,
                            struct error *error)
{
        bool optional = verb == PROVISION_LIST || verb == PROVISION_CAPACITY;
        const char *key;
        const json_t *value;
        int r = 0;

        *ret_request = (struct provision_request){ .verb = verb };
        if (argc > 2 || (argc < 2 && !optional))
                return json_value_refuse(error, "the request", "one argument, a JSON object or -");
        if (argc == 2)
                r = strcmp(argv[1], "-") == 0 ? json_text_parse_stdin(REQUEST_MAX_BYTES, &ret_request->json, error)
                                              : json_text_parse(argv[1], strlen(argv[1]), &ret_request->json, error);
        if (r < 0)
                return r;
        if (ret_request->json != NULL && !json_is_object(ret_request->json))
                return json_value_refuse(error, "the request", "must be a JSON object");
        json_object_foreach (ret_request->json, key, value)
                if ((r = take(ret_request, key, value, error)) < 0)
                        return r;
        return check(ret_request, error);
}

void provision_request_release(struct provision_request *request)
{
        json_decref(request->json);
        request->json = NULL;
}
