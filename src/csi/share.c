/* SPDX-License-Identifier: Apache-2.0 */
#include "share.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "names.h"
#include "type.h"

#define PARTS 5
#define PARTS_MIN 3 /* without the last ones */

/* Without the slashes around it. */
static bool put_trimmed(char *ret_part, size_t size, const char *text, size_t length)
{
        for (; length > 0 && text[0] == '/'; text++)
                length--;
        while (length > 0 && text[length - 1] == '/')
                length--;
        if (length >= size)
                return false;
        (void)memcpy(ret_part, text, length);
        ret_part[length] = '\0';
        return true;
}

void csi_share_lower(char *text)
{
        for (; *text != '\0'; text++)
                *text = (char)tolower((unsigned char)*text);
}

bool csi_share_read(const char *id, struct csi_share *ret_share)
{
        char *const parts[PARTS] = { ret_share->server, ret_share->share + 1, ret_share->directory, ret_share->name,
                                     ret_share->on_delete };
        size_t count = text_count(id, '#') + 1;

        *ret_share = (struct csi_share){ .share = "/" };
        if (count < PARTS_MIN || count > PARTS)
                return false;
        for (size_t i = 0; i < count; i++) {
                const size_t size = parts[i] == ret_share->share + 1 ? CSI_SHARE_SIZE - 1 : CSI_SHARE_SIZE;
                const size_t length = strcspn(id, "#");

                if (!put_trimmed(parts[i], size, id, length))
                        return false;
                id += length + 1;
        }
        csi_share_lower(ret_share->on_delete);
        return ret_share->server[0] != '\0' && ret_share->directory[0] != '\0';
}

/*
 * Where a volume lies whose request named only a pool: its path is "SERVER:/SHARE/DIRECTORY". One with the character that
 * separates the parts of an id cannot have one.
 */
static bool put_directory(const char *path, const char *directory, struct csi_share *ret_share)
{
        const char *colon = strstr(path, ":/");
        size_t length;

        if (colon == NULL || strchr(path, '#') != NULL || !text_ends(colon, directory))
                return false;
        length = strlen(colon + 1) - strlen(directory);
        return put_trimmed(ret_share->server, CSI_SHARE_SIZE, path, (size_t)(colon - path)) &&
               put_trimmed(ret_share->share + 1, CSI_SHARE_SIZE - 1, colon + 1, length);
}

/* What another node does, which has no record of it. */
static const char *on_delete_of(const json_t *volume)
{
        const char *word = json_member_text(json_object_get(volume, "parameters"), "onDelete");

        if (strcmp(json_member_text(volume, "reclaimPolicy"), "retain") == 0)
                return "retain";
        if (word[0] == '\0')
                word = json_member_text(volume, "onDelete");
        return strcmp(word, "delete") == 0 ? "" : word;
}

bool csi_share_of(const json_t *volume, struct csi_share *ret_share)
{
        const json_t *parameters = json_object_get(volume, "parameters");
        const char *server = json_string_value(json_object_get(parameters, "server"));
        const char *share = json_string_value(json_object_get(parameters, "share"));
        const char *directory = json_string_value(json_object_get(volume, "id"));
        const char *name = json_string_value(json_object_get(volume, "name"));
        const char *on_delete = on_delete_of(volume);
        bool placed;

        *ret_share = (struct csi_share){ .share = "/" };
        if (directory == NULL || name == NULL || !csi_type_find(json_member_text(volume, "type"))->server)
                return false;
        if (server != NULL && share != NULL)
                placed = text_copy(ret_share->server, CSI_SHARE_SIZE, server) &&
                         put_trimmed(ret_share->share + 1, CSI_SHARE_SIZE - 1, share, strlen(share));
        else
                placed = put_directory(json_member_text(volume, "path"), directory, ret_share);
        return placed && text_copy(ret_share->directory, CSI_SHARE_SIZE, directory) &&
               text_copy(ret_share->name, CSI_SHARE_SIZE, name) &&
               text_copy(ret_share->on_delete, CSI_SHARE_SIZE, on_delete);
}

void csi_share_id(const struct csi_share *share, char *ret_id)
{
        (void)snprintf(ret_id, CSI_SHARE_ID_SIZE, "%s#%s#%s#%s#%s", share->server, share->share + 1, share->directory,
                       share->name, share->on_delete);
}

void csi_id_name(const char *id, char *ret_name)
{
        struct csi_share share;

        csi_volume_name(csi_share_read(id, &share) && share.name[0] != '\0' ? share.name : id, ret_name);
}
