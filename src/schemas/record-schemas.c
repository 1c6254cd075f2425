/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-schemas TYPE - print the JSON Schema of a type of records; record-schemas keys - print the tables of keys of
 * the files in /etc/flexgraft. For the build, and for tests; not installed.
 */
#include <stdio.h>
#include <string.h>

#include "base/reply.h"
#include "pool/pool.h"
#include "pool/pool_kind.h"
#include "pool/record.h"
#include "provision/profile_file.h"
#include "state/config.h"
#include "state/file_key.h"
#include "state/mount_record.h"
#include "state/policy.h"
#include "state/record_table.h"
#include "state/volume_record.h"
#include "state/wish.h"

static const struct {
        const char *word;
        const struct record_table *table;
} types[] = {
        { "mount", &mount_record_table },
        { "volume", &volume_record_table },
        { "provision", &provision_record_table },
        { "wanted", &wish_record_table },
};

/* A row of a file's table, its members before the names of theirs: "timeouts", "timeouts.call". */
static void add_keys(json_t *list, const char *before, const struct file_key *keys)
{
        for (; keys != NULL && keys->name != NULL; keys++) {
                char name[256];

                (void)snprintf(name, sizeof name, "%s%s%s", before, before[0] != '\0' ? "." : "", keys->name);
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s*, s:s}", "name", name, "type",
                                                            keys->type, "required", keys->required, "default",
                                                            keys->fallback, "description", keys->help));
                add_keys(list, name, keys->members);
        }
}

static void add_table(json_t *tables, const char *name, const struct file_key *keys)
{
        json_t *list = json_array();

        add_keys(list, "", keys);
        (void)json_object_set_new(tables, name, list);
}

/* By the names that the manual pages have for them. */
static json_t *tables_of_files(void)
{
        json_t *tables = json_object();
        char name[64];

        add_table(tables, "config", config_keys);
        for (const struct file_key *section = policy_keys; section->name != NULL; section++) {
                (void)snprintf(name, sizeof name, "policy %s", section->name);
                add_table(tables, name, section->members);
        }
        add_table(tables, "pool", pool_keys);
        for (size_t i = 0; pool_kinds[i] != NULL; i++) {
                (void)snprintf(name, sizeof name, "pool %s", pool_kinds[i]->type);
                if (json_object_get(tables, name) == NULL) /* a kind with a mode has the table of its type */
                        add_table(tables, name, pool_kinds[i]->keys);
        }
        add_table(tables, "profile", profile_keys);
        return tables;
}

int main(int argc, char **argv)
{
        for (size_t i = 0; argc == 2 && i < sizeof types / sizeof types[0]; i++)
                if (strcmp(argv[1], types[i].word) == 0)
                        return reply_say(record_schema(argv[1], types[i].table), EXIT_DONE);
        if (argc == 2 && strcmp(argv[1], "keys") == 0)
                return reply_say(tables_of_files(), EXIT_DONE);
        (void)fputs("usage: record-schemas keys | mount | volume | provision | wanted\n", stderr);
        return EXIT_NOT_UNDERSTOOD;
}
