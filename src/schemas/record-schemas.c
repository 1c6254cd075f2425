/* SPDX-License-Identifier: Apache-2.0 */
/* record-schemas TYPE - print the JSON Schema of a type of records. For the build, and for tests; not installed. */
#include <stdio.h>
#include <string.h>

#include "base/reply.h"
#include "pool/record.h"
#include "state/mount_record.h"
#include "state/record_schema.h"
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

int main(int argc, char **argv)
{
        for (size_t i = 0; argc == 2 && i < sizeof types / sizeof types[0]; i++)
                if (strcmp(argv[1], types[i].word) == 0)
                        return reply_say(record_schema(argv[1], types[i].table), EXIT_DONE);
        (void)fputs("usage: record-schemas mount | volume | provision | wanted\n", stderr);
        return EXIT_NOT_UNDERSTOOD;
}
