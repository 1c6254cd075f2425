/* SPDX-License-Identifier: Apache-2.0 */
#include "awaited.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "mount/mountinfo.h"
#include "share.h"

#define NOTES_MAX 1024 /* so many volumes are published here, or the kernel's table is read for some */

#define NOTED '=' /* begins the text of a note: its number follows; no server's name has it */

static int table_fd = -EBADF;

/* What was published on a path waits for that server: numbers that stand for them. 0: none. */
static struct {
        uint64_t path;
        uint64_t server;
} notes[NOTES_MAX];

static uint64_t number_of(const char *text)
{
        return hash_bytes(HASH_SEED, text, strlen(text)) | 1U;
}

int awaited_begin(struct error *error)
{
        table_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        return table_fd < 0 ? fail(error, errno, "open", "/proc/self/mountinfo") : 0;
}

void awaited_server(const char *name, char *ret_server)
{
        (void)text_copy(ret_server, CALL_SERVER_SIZE, name != NULL ? name : "");
        csi_share_lower(ret_server);
}

/* With a blank, which no server's name has: it may be of this node (awaited_is_perhaps()). */
static void put(const char *what, const char *name, char *ret_server)
{
        if (name != NULL)
                (void)snprintf(ret_server, CALL_SERVER_SIZE, "%s %s", what, name);
}

void awaited_pool(const char *name, char *ret_server)
{
        put("pool", name, ret_server);
}

void awaited_profile(const char *name, char *ret_server)
{
        put("profile", name, ret_server);
}

bool awaited_source(const char *source, char *ret_server)
{
        const char *colon = strstr(source, ":/");
        char host[CALL_SERVER_SIZE];

        if (colon == NULL || colon == source || source[0] == '/')
                return false;
        (void)snprintf(host, sizeof host, "%.*s", (int)(colon - source), source);
        awaited_server(host, ret_server);
        return true;
}

bool awaited_id(const char *id, char *ret_server)
{
        struct csi_share share;

        if (!csi_share_read(id, &share))
                return false;
        awaited_server(share.server, ret_server);
        return true;
}

uint64_t awaited_number(const char *server)
{
        if (server[0] == NOTED)
                return strtoull(server + 1, NULL, 16);
        return server[0] != '\0' ? number_of(server) : 0;
}

void awaited_forget(const char *path)
{
        notes[number_of(path) / 2 % NOTES_MAX].path = 0;
}

bool awaited_is_perhaps(const char *server)
{
        return strchr(server, ' ') != NULL;
}

void awaited_note(const char *path, const char *server)
{
        const uint64_t number = number_of(path);

        notes[number / 2 % NOTES_MAX].path = number;
        notes[number / 2 % NOTES_MAX].server = awaited_number(server);
}

/*
 * kubelet's directory may be reached by a link, which the table of mounts has followed: what is below "pods", with the pod's
 * uid, is the same.
 */
static const char *below_links(const char *path)
{
        const char *pods = strstr(path, "/pods/");

        return pods != NULL ? pods : path;
}

/* Of several mounts the last one covers the others. What is found is noted. */
static bool read_table(const char *path, char *ret_server)
{
        cleanup_mount_table struct mountinfo table = {};
        const char *end = below_links(path);
        bool found = false;

        if (mountinfo_open_again(&table, &table_fd) < 0)
                return false;
        while (mountinfo_next(&table))
                if (text_ends(table.mount_point, end)) {
                        ret_server[0] = '\0';
                        found = awaited_source(table.source, ret_server);
                }
        awaited_note(path, ret_server);
        return found;
}

bool awaited_mount(const char *path, char *ret_server)
{
        const uint64_t number = number_of(path);
        const uint64_t server = notes[number / 2 % NOTES_MAX].server;

        if (notes[number / 2 % NOTES_MAX].path != number)
                return read_table(path, ret_server);
        if (server != 0)
                (void)snprintf(ret_server, CALL_SERVER_SIZE, "%c%016" PRIx64, NOTED, server);
        return server != 0;
}
