/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/pool_implied.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "pool/pool_kind.h"
#include "state/state_dir.h"

#define PREFIX "share-"
#define SUFFIX ".json"

const struct file_key pool_implied_keys[] = {
        { "server", "a host name or an address", file_key_is_text, false, NULL, "The NFS server, in place of a pool.",
          NULL },
        { "share", "an absolute path", file_key_is_path, false, NULL, "The exported directory.", NULL },
        { "subDir", "a relative path", file_key_is_text, false, NULL, "As in a pool's file.", NULL },
        { "mountPermissions", "octal", file_key_is_text, false, NULL, "As in a pool's file.", NULL },
        { "onDelete", "a word", file_key_is_text, false, NULL, "As in a pool's file.", NULL },
        { "mountOptions", "options, separated by commas", file_key_is_text, false, NULL, "As in a pool's file.", NULL },
        {},
};

bool pool_implied_by(const json_t *parameters)
{
        return json_object_get(parameters, "server") != NULL || json_object_get(parameters, "share") != NULL;
}

bool pool_implied_is_name(const char *name)
{
        return text_starts(name, PREFIX) && strlen(name) == strlen(PREFIX) + 16 &&
               strspn(name + strlen(PREFIX), "0123456789abcdef") == 16;
}

/* As csi-driver-nfs: slashes around the directory do not count. */
static json_t *trimmed(const char *text)
{
        size_t length = strlen(text);

        for (; length > 0 && text[0] == '/'; text++)
                length--;
        while (length > 0 && text[length - 1] == '/')
                length--;
        return json_stringn(text, length);
}

static json_t *file_of(const json_t *parameters)
{
        json_t *file = json_pack("{s:s}", "type", pool_nfs.type);

        for (const struct file_key *key = pool_implied_keys; key->name != NULL; key++) {
                const char *text = json_string_value(json_object_get(parameters, key->name));

                if (text == NULL)
                        continue;
                (void)json_object_set_new(file, key->name,
                                          strcmp(key->name, "subDir") == 0         ? trimmed(text)
                                          : strcmp(key->name, "mountOptions") == 0 ? json_pack("[s]", text)
                                                                                   : json_string(text));
        }
        return file;
}

/* Of the texts in the order of the rows: the same whatever the order of the parameters. */
static void put_name(const json_t *parameters, char *ret_name)
{
        uint64_t hash = HASH_SEED;

        for (const struct file_key *key = pool_implied_keys; key->name != NULL; key++) {
                const char *text = json_string_value(json_object_get(parameters, key->name));

                hash = hash_bytes(hash, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
        }
        (void)snprintf(ret_name, POOL_NAME_MAX, PREFIX "%016llx", (unsigned long long)hash);
}

int pool_imply(const struct config *config, const json_t *parameters, char *ret_name, struct error *error)
{
        cleanup_state struct state shares = STATE_NONE;
        cleanup_json json_t *file = file_of(parameters);
        cleanup_json json_t *known = NULL;
        char complaint[FILE_KEY_COMPLAINT_SIZE];
        char name[POOL_NAME_MAX + sizeof SUFFIX];
        int r;

        if (!file_keys_check(pool_nfs.keys, file, /* strict= */ false, complaint))
                return fail_because(error, EINVAL, "check parameters", "parameters", "%s", complaint);
        put_name(parameters, ret_name);
        if (pool_implied_load(config, ret_name, &known, error) == 0)
                return 0;
        (void)snprintf(name, sizeof name, "%s" SUFFIX, ret_name);
        if ((r = state_open(config->state_dir, POOL_IMPLIED_DIRECTORY, /* create= */ true, &shares, error)) < 0 ||
            (r = state_lock(&shares, hash_text(ret_name), error)) < 0)
                return r;
        if (json_file_load(shares.dir_fd, name, JSON_OBJECT, &known, error) == 0)
                return 0; /* another call was first */
        r = json_file_replace(shares.dir_fd, name, file, FILE_DURABLE);
        return r < 0 ? fail(error, -r, "write pool", ret_name) : 0;
}

int pool_implied_load(const struct config *config, const char *name, json_t **ret_object, struct error *error)
{
        cleanup_state struct state shares = STATE_NONE;
        char file[POOL_NAME_MAX + sizeof SUFFIX];
        int r = state_open(config->state_dir, POOL_IMPLIED_DIRECTORY, /* create= */ false, &shares, error);

        (void)snprintf(file, sizeof file, "%s" SUFFIX, name);
        return r < 0 ? r : json_file_load(shares.dir_fd, file, JSON_OBJECT, ret_object, error);
}
