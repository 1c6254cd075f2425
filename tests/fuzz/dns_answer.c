/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a name server that the container chose, to the parser of c-ares that we are linked with. */
#include "fuzz.h"

#include <ares.h>
#include <netdb.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct hostent *host = NULL;

        if (ares_parse_a_reply(data, (int)size, &host, NULL, NULL) == ARES_SUCCESS)
                ares_free_hostent(host);
        host = NULL;
        if (ares_parse_aaaa_reply(data, (int)size, &host, NULL, NULL) == ARES_SUCCESS)
                ares_free_hostent(host);
        return 0;
}
