/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem-namespaces list | create REGION NAME BYTES fsdax|sector UUID | destroy NAMESPACE | lay-open NAMESPACE |
 * tidy REGION - namespaces of persistent memory.
 *
 * The only program that uses libndctl, which exists as a shared library only. The volume tools and the driver's verbs
 * are static; their exec helper (block/pmem) runs this program, with the helper's privileges. It prints JSON on
 * standard output; a failure is a line on standard error and exit status 1.
 *
 * The caller holds a lock of the region. So a namespace that has the temporary name (MAKING) at the start of a call was
 * left by a call that was killed.
 */
#include <ndctl/libndctl.h>
#include <stdio.h>
#include <string.h>

#include "create.h"
#include "list.h"
#include "namespaces.h"

int main(int argc, char **argv)
{
        struct ndctl_ctx *context;
        int r;

        if (argc == 2 && strcmp(argv[1], "--version") == 0)
                return puts("pmem-namespaces (flexgraft) " VERSION) < 0;
        if ((r = ndctl_new(&context)) < 0)
                return namespaces_complain("look for", "persistent memory", r);
        if (argc == 2 && strcmp(argv[1], "list") == 0)
                r = list_namespaces(context);
        else if (argc == 7 && strcmp(argv[1], "create") == 0)
                r = create_namespace(context, argv + 2);
        else if (argc == 3 && strcmp(argv[1], "destroy") == 0)
                r = namespaces_destroy(context, argv[2]);
        else if (argc == 3 && strcmp(argv[1], "lay-open") == 0)
                r = namespaces_lay_open(context, argv[2]);
        else if (argc == 3 && strcmp(argv[1], "tidy") == 0)
                r = namespaces_tidy_region(context, argv[2]);
        else {
                (void)fputs("usage: pmem-namespaces list\n"
                            "       pmem-namespaces create REGION NAME BYTES fsdax|sector UUID\n"
                            "       pmem-namespaces destroy NAMESPACE | lay-open NAMESPACE | tidy REGION\n",
                            stderr);
                r = 2;
        }
        (void)ndctl_unref(context);
        return r;
}
