#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes by name in mount-batch, in entries of an OCI configuration, and in annotations for mount-hook.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
        driver_setup
        volume_setup
        needs mount-batch mount-volume mount-remove
        policy '{"kinds": ["volume", "tmpfs"], "volumeNames": ["web-*"], "pools": ["default"]}'
}

teardown() {
        driver_teardown
}

# entry NAME TARGET [MEMBERS]
entry() {
        printf '{"type": "volume", "volume": "%s", "target": "%s"%s}' "$1" "$2" "${3:+, $3}"
}

# batch ENTRIES: into the current container.
batch() {
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [$1]}"
}

# removed TARGET...
removed() {
        local target
        for target; do
                remove_mount "$target"
                assert_success
        done
}

# is_detached: no volume is attached.
is_detached() {
        assert_no_loops || return 1
        is "$(find "$STATE_DIR/named" -mindepth 2 2>/dev/null || :)" ""
        is "$(compgen -G "$STATE_DIR/volumes/*.json" || :)" ""
}

@test "mount-batch mounts volumes, one of them in two containers, and an OCI entry names one as its source" {
        local first
        made a
        made b
        start_container plain
        first=$CONTAINER_PID
        start_container plain 300000
        batch "$(entry b /b), $(entry a /a "\"container\": $first"), $(entry a /a),
                {\"destination\": \"/oci\", \"type\": \"volume\", \"source\": \"b\", \"options\": [\"ro\", \"noexec\"]}"
        assert_success
        is "$(loops_of_test | wc -l)" 2
        assert_attributes /oci ro noexec nosuid nodev
        in_container sh -c 'echo one >/b/file; echo two >/a/file'
        is "$(in_container cat /oci/file)" one
        batch "$(entry b /b), $(entry a /a)"
        assert_success
        is "$(jq -c '[.mounts[].alreadyMounted]' <<<"$output")" '[true,true]'
        removed /b /oci /a
        one_is_left() { (($(loops_of_test | wc -l) == 1)); }
        wait_until 5 one_is_left
        use_container "$first"
        is "$(in_container cat /a/file)" two
        removed /a
        is_detached
}

@test "a mount-batch that fails detaches each of its volumes, also one that two of its mounts are of" {
        made a
        made b
        start_container plain
        container_snapshot
        batch "$(entry b /b), $(entry a /a), $(entry a /again), $(entry none /none)"
        assert_failure ENOENT
        shows 'mounts[3]'
        is_detached
        batch "$(entry b /b), $(entry a /a), $(entry a /again), $(entry b /bin/sh)"
        assert_failure
        is_detached
        batch "$(entry a /a '"fsType": "ext4"'), $(entry a /again '"fsType": "xfs"')"
        assert_failure EINVAL
        shows fsType
        is_detached
        assert_container_unchanged
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
}

@test "a batch does not give a volume for a single writer to two containers" {
        local first
        made a
        start_container plain
        first=$CONTAINER_PID
        mount_volume a /a # blank
        assert_success
        removed /a
        jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$STATE_DIR/provisioned/a.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/a.json"
        start_container plain 300000
        batch "$(entry a /a), $(entry a /a "\"container\": $first")"
        assert_failure EBUSY
        shows "for one pod or container"
        is_detached
        batch "$(entry a /a), $(entry a /also)"
        assert_success
        removed /a /also
        is_detached
}

@test "mount-batch makes the volumes that are missing" {
        make_pool fast
        start_container plain
        batch "$(entry new /new '"create": {"size": "8m", "pool": "fast"}'), $(entry new /also '"create": {"size": "8m", "pool": "fast"}')"
        assert_success
        [[ -e $POOL_DIR/new.img ]]
        removed /new /also
        is_detached
}

@test "two batches that name the same volumes the other way round do not wait for each other" {
        local first round pids
        made a
        made b
        start_container plain
        first=$CONTAINER_PID
        start_container plain 300000
        batch "$(entry a /a)"
        removed /a # the file of locks is there
        for round in 1 2 3; do
                background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
                pids=("$BACKGROUND_PID")
                background "$FLEXGRAFT_BIN/mount-batch" "{\"container\": $first, \"timeoutSeconds\": 60, \"mounts\": [$(entry a /a), $(entry b /b)]}" >"$BATS_TEST_TMPDIR/first"
                pids+=("$BACKGROUND_PID")
                background "$FLEXGRAFT_BIN/mount-batch" "{\"container\": $CONTAINER_PID, \"timeoutSeconds\": 60, \"mounts\": [$(entry b /b), $(entry a /a)]}" >"$BATS_TEST_TMPDIR/second"
                pids+=("$BACKGROUND_PID")
                wait_until 10 waits_for_volume 2
                end_process "${pids[0]}"
                wait "${pids[1]}" || { cat "$BATS_TEST_TMPDIR/first"; return 1; }
                wait "${pids[2]}" || { cat "$BATS_TEST_TMPDIR/second"; return 1; }
                removed /a /b
                helper mount-remove "{\"container\": $first, \"target\": \"/a\"}"
                assert_success
                helper mount-remove "{\"container\": $first, \"target\": \"/b\"}"
                assert_success
                is_detached
        done
}

@test "an annotation gets a volume whose name and pool the policy lists, and poststop detaches it" {
        made web-1
        made web-2
        start_container plain-created
        ask "[$(entry web-1 /data), {\"destination\": \"/also\", \"type\": \"volume\", \"source\": \"web-1\", \"options\": [\"ro\"]}, $(entry web-2 /two)]"
        accepts /data
        assert_created_mounts_at /also 1
        is "$(loops_of_test | wc -l)" 2
        hook poststop
        assert_silent
        is "$(loops_of_test | wc -l)" 2 # it runs
        stop_container
        hook poststop
        assert_silent
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
        is_detached
}

@test "poststop, while it waits for a volume, keeps the lock of no mount, for which a call that has the volume may wait" {
        made web-1
        made web-2
        start_container plain-created
        ask "[$(entry web-1 /one), $(entry web-2 /two)]"
        accepts /one
        stop_container
        # before it takes the lock of the second volume: F_OFD_SETLKW is 38
        stopped_at fcntl:2 --where 2=38 sh -c 'exec "$0" poststop <"$1"' "$FLEXGRAFT_BIN/mount-hook" "$HOOK_STATE"
        grep -c "OFDLCK.* $(name_in_locks "$STATE_DIR/mounts/.lock") " /proc/locks >"$BATS_TEST_TMPDIR/held" || :
        compgen -G "$STATE_DIR/mounts/*.json" | wc -l >>"$BATS_TEST_TMPDIR/held"
        resumed
        is "$(paste -sd' ' "$BATS_TEST_TMPDIR/held")" "0 1" "locks of mounts, and records that are left"
        is "$(<"$STOPPED")" ""
        is_detached
}

@test "poststop leaves a volume that another container has" {
        made web-1
        start_container plain 300000
        mount_volume web-1 /data
        assert_success
        start_container plain-created
        ask "[$(entry web-1 /data)]"
        accepts /data
        stop_container
        hook poststop
        assert_silent
        mountpoint -q "$(stage_of web-1)"
        is "$(compgen -G "$STATE_DIR/mounts/*.json" | wc -l)" 1
}

# forbids TEXT ENTRIES: the hook refuses them for that reason; nothing is attached, and no volume is waited for.
forbids() {
        ask "[$2]"
        hook createRuntime
        assert_complaint 1 'does not allow it' "$1" || assert_complaint 1 'allows' "$1" || return 1
        is_detached
}

@test "without volumeNames and pools that list them no volume is allowed, and none is waited for" {
        make_pool fast
        made web-1
        made other
        made web-2 '"pool": "fast"'
        start_container plain-created
        mkdir -m 0700 "$STATE_DIR/volumes"
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
        forbids volumeNames "$(entry other /data)"
        forbids volumeNames "$(entry web-1 /one), $(entry other /data)"
        forbids pools "$(entry web-2 /data)"
        forbids pools "$(entry web-1 /data), $(entry web-2 /two)"
        forbids raw "$(entry web-1 /data '"raw": true')"
        forbids '"create" must name' "$(entry web-3 /data '"create": {"size": "8m"}')"
        forbids pools "$(entry web-3 /data '"create": {"size": "8m", "pool": "fast"}')"
        policy '{"kinds": ["volume"], "volumeNames": ["*"]}'
        forbids pools "$(entry web-1 /data)"
        policy '{"kinds": ["volume"], "pools": ["*"]}'
        forbids volumeNames "$(entry web-1 /data)"
        policy '{"kinds": ["tmpfs"], "volumeNames": ["*"], "pools": ["*"]}'
        forbids kinds "$(entry web-1 /data)"
        [[ ! -e $POOL_DIR/web-3.img ]]
        end_process "$BACKGROUND_PID"
}

@test "a volume that no pool has, which kubelet has staged, is not allowed by any policy" {
        lifecycle_up web-1 type=loop size=8Mi
        rm "$STATE_DIR/provisioned/"*
        policy '{"kinds": ["volume"], "volumeNames": ["*"], "pools": ["*"]}'
        start_container plain-created
        ask "[$(entry web-1 /data)]"
        hook createRuntime
        assert_complaint 1 pools
        lifecycle_down web-1
}
