/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a container runtime hands to an OCI hook, and the annotations in it. */
#include "fuzz.h"

#include "inject/oci_hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct oci_hook hook = {};
        struct request request = {};
        struct error error = {};
        size_t asked;

        fuzz_stdin(data, size);
        if (oci_hook_read(&hook, HOOK_RUNNING, NULL, &error) < 0 ||
            (oci_hook_concerns(&hook) && oci_hook_request(&hook, &request, &asked, &error) < 0))
                fuzz_printable(&error);
        request_release(&request);
        oci_hook_release(&hook);
        return 0;
}
