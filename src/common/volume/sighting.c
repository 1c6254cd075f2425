/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/sighting.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/json.h"
#include "process/log.h"

#define DIRECTORY "sightings" /* of the state directory */

/* CLOCK_BOOTTIME: no one sets it, and it goes on while the machine is suspended. */
static json_int_t now_seconds(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail for this clock */
        return now.tv_sec;
}

/* What must be as it was then: the boot, the record, kubelet. */
static json_t *facts_of(const struct volume_call *call, bool kubelet)
{
        struct stat st;

        if (fstatat(call->state.dir_fd, call->record.file, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return NULL;
        return json_pack("{s:s, s:b, s:I, s:I, s:I}", "bootId", call->boot_id, "kubelet", kubelet, "recordInode",
                         (json_int_t)st.st_ino, "recordTime", (json_int_t)st.st_mtim.tv_sec, "recordNanoseconds",
                         (json_int_t)st.st_mtim.tv_nsec);
}

uint64_t sighting_see(const struct volume_call *call, bool kubelet, bool write)
{
        cleanup_state struct state state = STATE_NONE;
        cleanup_json json_t *facts = facts_of(call, kubelet);
        cleanup_json json_t *sighting = NULL;
        cleanup_json json_t *fresh = NULL;
        const json_int_t now = now_seconds();
        json_int_t since;
        struct error error;
        int r = state_open(call->config.state_dir, DIRECTORY, /* create= */ write, &state, &error);

        if (r == 0 && json_file_load(state.dir_fd, call->record.file, JSON_OBJECT, &sighting, &error) == 0) {
                since = json_integer_value(json_object_get(sighting, "since"));
                if (facts != NULL && json_equal(json_object_get(sighting, "of"), facts) && since <= now)
                        return (uint64_t)(now - since);
        }
        if (r == 0 && write) {
                fresh = json_pack("{s:I, s:O*}", "since", now, "of", facts);
                r = json_file_replace(state.dir_fd, call->record.file, fresh, FILE_ORDERED);
                if (r < 0)
                        log_say("cannot remember that no pod has volume %s: %s", call->record.name, strerror(-r));
        }
        return 0;
}

void sighting_forget(const struct volume_call *call)
{
        cleanup_state struct state state = STATE_NONE;
        struct error ignored; /* without the directory there is none */

        if (call->recorded && state_open(call->config.state_dir, DIRECTORY, /* create= */ false, &state, &ignored) == 0)
                (void)state_remove(&state, call->record.file); /* else the record tells that it changed */
}
