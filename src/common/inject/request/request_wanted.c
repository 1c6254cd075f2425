/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/request/request_wanted.h"

#include <errno.h>
#include <limits.h>

#include "base/json.h"
#include "inject/request/request_batch.h"
#include "state/config.h"
#include "state/named_container.h"

int request_wanted_add(struct request *request, const struct wish_record *wanted,
                       const struct container_reference *known, struct error *error)
{
        size_t first = request->entry_count;
        const json_t *wish;
        int r = 0;
        size_t i;

        json_array_foreach (wanted->mounts, i, wish)
                if (r == 0)
                        r = request_batch_add(request, "wanted", json_object_get(wish, "request"), error);
        for (i = first; i < request->entry_count; i++) {
                struct request *entry = &request->entries[i];

                entry->container = *known;
                entry->has_container = true;
                entry->wanted = true;
                entry->wanted_source = json_member_text(json_array_get(wanted->mounts, i - first), "source");
                entry->persist = false; /* as it is: nothing is written down again */
        }
        return r;
}

int request_wanted_add_all(struct request *request, struct error *error)
{
        static struct container container = CONTAINER_NONE; /* static: the entries point to its texts */
        static struct wish_record wanted;                   /* likewise */
        cleanup_state struct state state = STATE_NONE;
        struct container_reference known;
        char state_dir[PATH_MAX];
        int r = named_container_pin(&request->container, &container, error);

        if (r < 0)
                return r;
        container_release(&container);
        if (container.identity[0] == '\0' || (r = config_state_dir(state_dir, error)) < 0)
                return r;
        if ((r = wish_open(state_dir, /* create= */ false, &state, error)) < 0 ||
            (r = wish_read(&state, container.identity, &wanted, error)) < 0)
                return r == -ENOENT ? 0 : r;
        known = (struct container_reference){ .pid = container.pid,
                                              .start_time = container.start_time,
                                              .known_as = container.id,
                                              .identity = container.identity };
        return request_wanted_add(request, &wanted, &known, error);
}
