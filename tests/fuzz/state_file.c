/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which container runtimes keep a container's state: the first byte chooses whose. */
#include "fuzz.h"

#include "container/state_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int (*const of_json[])(const json_t *, struct container_process *) = { state_file_crun, state_file_runc,
                                                                                      state_file_docker,
                                                                                      state_file_crio };
        static int (*const of_text[])(const char *, struct container_process *) = { state_file_pid,
                                                                                    state_file_machined };
        struct container_process process = {};
        static const struct state_file_pod_keys keys = { "a", "b", "c", "d" };
        char id[CONTAINER_ID_FULL + 1];
        char other[CONTAINER_ID_FULL + 1];
        json_t *json;
        char *text;
        int r = -1;

        if (size == 0)
                return 0;
        text = fuzz_text(data + 1, size - 1);
        json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        switch (data[0] % 8) {
        case 0:
        case 1:
        case 2:
        case 3:
                if (json_is_object(json))
                        r = of_json[data[0] % 8](json, &process);
                break;
        case 4:
        case 5:
                r = of_text[data[0] % 8 - 4](text, &process);
                break;
        case 6:
                if (json_is_array(json) && state_file_podman(json, "0123456789abcdef", (size & 1) != 0, id, other) > 0)
                        fuzz_check(strlen(id) <= CONTAINER_ID_FULL);
                break;
        default:
                (void)state_file_is_of_pod(json, &keys, "default", "web", NULL);
        }
        fuzz_check(r < 0 || process.pid >= 0);
        fuzz_check(memchr(process.full_id, '\0', sizeof process.full_id) != NULL);
        json_decref(json);
        free(text);
        return 0;
}
