#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many calls of mount-volume and mount-remove at once, while containers end.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
bats_require_minimum_version 1.5.0

CALLERS=16 VOLUMES=200 CONTAINERS=24 DYING=20 CALLS=40

setup_file() {
        local name
        export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}
        # loop devices come into being here, and would stay
        LOOPS_BEFORE=8
        for name in /sys/block/loop*; do
                name=${name##*/loop}
                ((name < LOOPS_BEFORE || name > 1000)) || LOOPS_BEFORE=$((name + 1))
        done
        export LOOPS_BEFORE
}

teardown_file() {
        "$FLEXGRAFT_TOOLS/remove-loops" "$LOOPS_BEFORE"
        schema_validate
}

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs mount-volume mount-remove
        mkdir "$BATS_TEST_TMPDIR/problems"
}

teardown() {
        driver_teardown
}

# caller NUMBER: mounts volumes in containers and removes them again, as its own sequence of random numbers says. A call for a container
# that has ended, or is ending, may fail for that reason alone.
caller() {
        local i pid volume program reply
        RANDOM=$1
        for ((i = 0; i < CALLS; i++)); do
                pid=${PIDS[RANDOM % CONTAINERS]} volume=v$((RANDOM % VOLUMES))
                for program in mount-volume mount-remove; do
                        [[ $program == mount-volume ]] || ((RANDOM % 3)) || continue # some stay
                        if [[ $program == mount-volume ]]; then
                                reply=$("$FLEXGRAFT_BIN/mount-volume" "{\"container\": $pid, \"volume\": \"$volume\", \"target\": \"/v/$volume\"}" 3>&-) && continue
                        else
                                reply=$("$FLEXGRAFT_BIN/mount-remove" "{\"container\": $pid, \"target\": \"/v/$volume\"}" 3>&-) && continue
                        fi
                        [[ -e /proc/$pid/ns/mnt && ! -e $BATS_TEST_TMPDIR/ending.$pid ]] || continue
                        echo "$program $volume $pid: $reply" >>"$BATS_TEST_TMPDIR/problems/$1"
                done
        done
}

# uses: "TARGET" of each use in a container that volume-list tells, sorted. mounted: of each mount of a volume that the kernel shows.
uses() {
        "$FLEXGRAFT_BIN/volume-list" '{}' | jq -r '.volumes[] | .name as $name | .uses[] | "\(.container) \($name) \(.target)"' | sort
}

mounted() {
        local pid
        for pid in "${PIDS[@]}"; do
                [[ ! -e /proc/$pid/ns/mnt ]] || awk -v pid="$pid" '$5 ~ "^/v/" {print pid, substr($5, 4), $5}' "/proc/$pid/mountinfo"
        done | sort
}

# has_mounts COUNT: so many records at least.
has_mounts() {
        (($(compgen -G "$STATE_DIR/mounts/*.json" | wc -l) >= $1))
}

@test "16 callers mount and remove 200 volumes while 20 of 24 containers end, and the list of uses is true at the end" {
        local i id callers=()
        make_pool_in_memory many 2g
        for ((i = 0; i < VOLUMES; i++)); do
                "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"v$i\", \"size\": \"8Mi\", \"pool\": \"many\", \"parameters\": {\"preallocate\": \"false\"}}" >/dev/null
        done
        PIDS=()
        for ((i = 0; i < CONTAINERS; i++)); do
                start_container plain $((100000 + 65536 * (i % 3)))
                PIDS+=("$CONTAINER_PID")
        done
        for ((i = 1; i <= CALLERS; i++)); do
                caller "$i" &
                callers+=("$!")
        done
        for ((i = 0; i < DYING; i++)); do
                wait_until 60 has_mounts "$((2 * i))"
                touch "$BATS_TEST_TMPDIR/ending.${PIDS[i]}"
                use_container "${PIDS[i]}"
                stop_container
        done
        wait "${callers[@]}"
        cat "$BATS_TEST_TMPDIR/problems/"* 2>/dev/null | head -20
        [[ -z $(ls "$BATS_TEST_TMPDIR/problems") ]]
        [[ -n $(mounted) ]]
        is "$(uses | sed 's/^pid //')" "$(mounted)"
        # with the last mount-remove of each, also of those whose container has ended, all are detached
        for id in "$STATE_DIR"/mounts/*.json; do
                id=${id##*/}
                "$FLEXGRAFT_BIN/mount-remove" "{\"id\": \"${id%.json}\"}" >>"$BATS_TEST_TMPDIR/removed" || :
        done
        is "$(grep -vc Success "$BATS_TEST_TMPDIR/removed")" 0
        is "$(uses)" ""
        is "$(mounted)" ""
        is_away v
}
