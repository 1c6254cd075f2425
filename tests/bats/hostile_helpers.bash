# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tests of hostile containers share. Load after helpers.

# swap_under_injections KIND LINK TARGET [ROUNDS]: in the container, /p/a is a directory that takes turns with a symlink to LINK, while mounts are
# put on TARGET and taken away again, 200 times, and until one of them succeeded.
swap_under_injections() {
        local kind=$1 link=$2 target=$3 times=${4:-200} rounds=0 succeeded=0 odd=0 before outside=$BATS_TEST_TMPDIR/outside
        mkdir -p "$outside"
        touch "$outside/here"
        start_container "$kind"
        in_container mkdir -p /p/a/sub
        in_container ln -s "${link//OUTSIDE/$outside}" /p/b
        before=$(cat "/proc/$CONTAINER_PID/mountinfo")
        node_snapshot
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/swap-loop /p a b
        inject "$times"
        wait_until 10 an_injection_succeeded
        kill -KILL "$BACKGROUND_PID" 2>/dev/null || :
        wait "$BACKGROUND_PID" 2>/dev/null || :
        for swapper in $(processes_in_mount_namespace "$CONTAINER_PID"); do
                [[ $swapper == "$CONTAINER_PID" ]] || kill -KILL "$swapper"
        done
        echo "$succeeded of $rounds injections"
        # Nothing on the node: no mount, no file, no directory.
        is "$(ls -A "$outside")" here
        local now
        snapshot_node now
        is "$now" "$bed_before"
        ((rounds >= times))
        is "$odd" 0 "programs that ended in another way than 0 or 1"
        # What is left of ours goes away, and only that.
        helper mount-list '{}'
        assert_success
        local id
        while read -r id; do
                helper mount-remove "{\"id\": \"$id\"}"
                assert_success
        done < <(jq -r '.mounts[].id' <<<"$json")
        assert_same_mounts "$CONTAINER_PID" "$before"
        assert_no_records
}

# inject ROUNDS: so many more; `rounds`, `succeeded` and `odd` count.
inject() {
        local counts
        read -ra counts < <("$FLEXGRAFT_TOOLS/run-loop" --times "$1" \
                -- "$FLEXGRAFT_BIN/mount-bind" "$(bind_request "$target")" -- "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "$target")")
        rounds=$((rounds + counts[0])) succeeded=$((succeeded + counts[1])) odd=$((odd + counts[3] + counts[6]))
}

an_injection_succeeded() {
        ((succeeded > 0)) || { inject 1; ((succeeded > 0)); }
}
