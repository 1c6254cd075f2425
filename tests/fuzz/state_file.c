/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which container runtimes keep a container's state: the first byte chooses whose. */
#include "fuzz.h"

#include "container/state_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int (*const of_json[])(const json_t *, struct container_process *) = { state_file_crun, state_file_runc,
                                                                                      state_file_docker };
        static int (*const of_text[])(const char *, struct container_process *) = { state_file_pid,
                                                                                    state_file_machined };
        struct container_process process = {};
        char id[CONTAINER_ID_FULL + 1];
        json_t *json;
        char *text;
        int r = -1;

        if (size == 0)
                return 0;
        text = fuzz_text(data + 1, size - 1);
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        switch (data[0] % 6) {
        case 0:
        case 1:
        case 2:
                if (json_is_object(json))
                        r = of_json[data[0] % 6](json, &process);
                break;
        case 3:
        case 4:
                r = of_text[data[0] % 6 - 3](text, &process);
                break;
        default:
                if (json_is_array(json) && state_file_podman(json, "0123456789abcdef", id) > 0)
                        fuzz_check(strlen(id) <= CONTAINER_ID_FULL);
        }
        fuzz_check(r < 0 || process.pid >= 0);
        fuzz_check(memchr(process.full_id, '\0', sizeof process.full_id) != NULL);
        json_decref(json);
        free(text);
        return 0;
}
