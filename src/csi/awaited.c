/* SPDX-License-Identifier: Apache-2.0 */
#include "awaited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "mount/mountinfo.h"
#include "share.h"

#define NAME_SIZE 512  /* terminated; what is longer is cut */
#define NOTES_MAX 1024 /* so many volumes are published here, or the kernel's table is read for some */

static int table_fd = -EBADF;

/* What was published on a path, of which this is the number, waits for that. */
static struct note {
        uint64_t path; /* 0: none */
        struct awaited awaited;
} notes[NOTES_MAX];

static struct note *note_at(uint64_t path)
{
        return &notes[path / 2 % NOTES_MAX]; /* the lowest bit is always set */
}

int awaited_begin(struct error *error)
{
        table_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        return table_fd < 0 ? fail(error, errno, "open", "/proc/self/mountinfo") : 0;
}

static struct awaited of_text(const char *kind, const char *name, size_t length, bool perhaps)
{
        char text[NAME_SIZE];

        (void)snprintf(text, sizeof text, "%s%.*s", kind, (int)length, name);
        csi_share_lower(text);
        return (struct awaited){ .number = hash_text_or_zero(text), .perhaps = perhaps };
}

struct awaited awaited_server(const char *name)
{
        return name != NULL && name[0] != '\0' ? of_text("", name, strlen(name), /* perhaps= */ false)
                                               : AWAITED_NOTHING;
}

struct awaited awaited_pool(const char *name)
{
        return name != NULL ? of_text("pool ", name, strlen(name), /* perhaps= */ true) : AWAITED_NOTHING;
}

struct awaited awaited_profile(const char *name)
{
        return name != NULL ? of_text("profile ", name, strlen(name), /* perhaps= */ true) : AWAITED_NOTHING;
}

bool awaited_source(const char *source, struct awaited *ret)
{
        const char *colon = strstr(source, ":/");

        if (colon == NULL || colon == source || source[0] == '/')
                return false;
        *ret = of_text("", source, (size_t)(colon - source), /* perhaps= */ false);
        return true;
}

bool awaited_id(const char *id, struct awaited *ret)
{
        struct csi_share share;

        if (!csi_share_read(id, &share))
                return false;
        *ret = awaited_server(share.server);
        return true;
}

void awaited_note(const char *path, struct awaited awaited)
{
        const uint64_t number = hash_text_or_zero(path);

        *note_at(number) = (struct note){ .path = number, .awaited = awaited };
}

void awaited_forget(const char *path)
{
        note_at(hash_text_or_zero(path))->path = 0;
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
static bool read_table(const char *path, struct awaited *ret)
{
        cleanup_mount_table struct mountinfo table = {};
        const char *end = below_links(path);

        if (mountinfo_open_again(&table, &table_fd) < 0)
                return false;
        while (mountinfo_next(&table))
                if (text_ends(table.mount_point, end) && !awaited_source(table.source, ret))
                        *ret = AWAITED_NOTHING;
        awaited_note(path, *ret);
        return ret->number != 0;
}

bool awaited_mount(const char *path, struct awaited *ret)
{
        const uint64_t number = hash_text_or_zero(path);
        const struct note *note = note_at(number);

        if (note->path != number)
                return read_table(path, ret);
        *ret = note->awaited;
        return ret->number != 0;
}
