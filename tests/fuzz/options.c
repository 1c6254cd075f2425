/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options, and the name of an NFS export. */
#include "fuzz.h"

#include "mount/options.h"
#include "network/nfs_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct mount_options options = {};
        struct nfs_export export;
        struct error error = {};
        char *text = fuzz_text(data, size);

        if (mount_options_add_list(&options, text, &error) == 0)
                mount_options_default(&options);
        mount_options_release(&options);
        if (nfs_export_parse(text, &export) == 0) {
                struct nfs_export again;

                fuzz_check(nfs_export_parse(export.source, &again) == 0);
                fuzz_check(strcmp(export.host, again.host) == 0 && strcmp(export.path, again.path) == 0);
        }
        free(text);
        return 0;
}
