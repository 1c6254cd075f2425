/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/hash.h"

/* As json_value.c and key.c have it for KEY_TEXT. */
static bool is_taken_as_it_is(const char *name)
{
        json_t *text = json_string(name); /* NULL: no UTF-8 */
        bool taken = text != NULL && strlen(name) < CSI_VOLUME_NAME_SIZE;

        json_decref(text);
        for (const char *at = name; taken && *at != '\0'; at++)
                taken = (unsigned char)*at >= ' ' && *at != '\177';
        return taken;
}

/* Only root may call: names that collide harm nobody but the caller. */
static void put_hash(const char *csi_name, char *ret_name)
{
        size_t length = strlen(csi_name);
        uint64_t first = hash_bytes(HASH_SEED, csi_name, length);
        uint64_t second = hash_bytes(hash_bytes(HASH_SEED, "csi", 3), csi_name, length);

        (void)snprintf(ret_name, CSI_VOLUME_NAME_SIZE, "csi-%016llx%016llx", (unsigned long long)first,
                       (unsigned long long)second);
}

void csi_volume_name(const char *csi_name, char *ret_name)
{
        if (is_taken_as_it_is(csi_name))
                (void)memcpy(ret_name, csi_name, strlen(csi_name) + 1);
        else
                put_hash(csi_name, ret_name);
}

void csi_new_name(const char *csi_name, char *ret_name)
{
        if (strchr(csi_name, '#') == NULL)
                csi_volume_name(csi_name, ret_name);
        else
                put_hash(csi_name, ret_name);
}

/* Its first 16 characters are the hash of the rest: what others made up is seen. */
void csi_token(const char *name, char *ret_token)
{
        (void)snprintf(ret_token, CSI_TOKEN_SIZE, "%016llx.%s", (unsigned long long)hash_text(name), name);
}

const char *csi_token_name(const char *token)
{
        const char *dot = strchr(token, '.');
        char expected[CSI_TOKEN_SIZE];

        if (dot == NULL || strlen(dot + 1) >= CSI_VOLUME_NAME_SIZE)
                return NULL;
        csi_token(dot + 1, expected);
        return strcmp(token, expected) == 0 ? dot + 1 : NULL;
}
