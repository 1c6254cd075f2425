/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/exec_helpers.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "block/fs_tools.h"
#include "block/lvm.h"
#include "block/pmem.h"
#include "state/config.h"
#include "state/volume_record.h"
#include "volume/verbs.h"

static bool speaks_of(int argc, char **argv, const char *const *words)
{
        for (int i = 0; i < argc; i++)
                for (size_t j = 0; words[j] != NULL; j++)
                        if (strstr(argv[i], words[j]) != NULL || (i > 0 && strcmp(argv[i], "-") == 0))
                                return true;
        return false;
}

/* For a verb that gets a name alone. Nothing is made of a record here but whether a word is in it. */
static bool record_speaks_of(int argc, char **argv, const char *word)
{
        char driver[VOLUME_DRIVER_MAX];
        struct config config;
        struct error ignored;

        if (argc < 2 || argv[1][0] == '{' || argv[1][0] == '/' || config_load(&config, &ignored) < 0)
                return false;
        volume_driver_name(argv[0], driver);
        return volume_record_mentions(config.state_dir, argv[1], driver, word);
}

int volume_exec_helpers_begin(int argc, char **argv, struct error *error)
{
        static const char *const of_lvm[] = { "lvm", "volumegroup", NULL };
        static const char *const of_pmem[] = { "pmem", NULL };
        /* which may be a logical volume, too: then its record is about both */
        bool pmem = speaks_of(argc, argv, of_pmem) || record_speaks_of(argc, argv, "\"pmem\"");
        int r = 0;

        if (pmem || speaks_of(argc, argv, of_lvm) || record_speaks_of(argc, argv, "\"lvm\""))
                r = lvm_begin(argc, argv, error);
        return r == 0 && pmem ? pmem_begin(argc, argv, error) : r;
}

int volume_exec_helpers_begin_with_tools(int argc, char **argv, struct error *error)
{
        int r = fs_tool_begin(argc, argv, error);

        return r < 0 ? r : volume_exec_helpers_begin(argc, argv, error);
}

void volume_exec_helpers_end(void)
{
        fs_tool_end();
        lvm_end();
        pmem_end();
}
