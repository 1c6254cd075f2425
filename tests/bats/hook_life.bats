#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: the life of a container, from its creation to poststop, and a hook that fails.

load helpers
load hook_helpers
load raw_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- the life of a container

lives_with_poststart() {
        local stages=$2
        echo text >"$SOURCE/file"
        BUNDLE_STAGES=$stages
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$status" 0 "exit status of start"
        assert_mounts_at /data 1
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        is "$(record_count)" 1 "number of records"
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_success
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.id' "$BUNDLE_ID"
        assert_field '.mounts[0].target' /data
        stop_container
        assert_bundle_is_gone "$1"
}

@test "crun: poststart mounts into the running container" {
        lives_with_poststart crun '["poststart", "poststop"]'
}

@test "runc: poststart mounts into the running container" {
        lives_with_poststart runc '["poststart", "poststop"]'
}

@test "crun: poststart after createRuntime changes nothing" {
        lives_with_poststart crun '["createRuntime", "poststart", "poststop"]'
}

# bats test_tags=deep
@test "runc: poststart after createRuntime changes nothing" {
        lives_with_poststart runc '["createRuntime", "poststart", "poststop"]'
}

is_known_by_tools() {
        make_bundle "$(annotation "[$(bind_entry /data), {\"type\": \"tmpfs\", \"target\": \"/tmp/made/scratch\"}]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$status" 0
        helper mount-list "{\"container\": \"$BUNDLE_ID\"}"
        assert_success
        assert_field '[.mounts[] | .target + " " + .state] | sort | join(",")' '/data present,/tmp/made/scratch present'
        # the same asked for by root: it is there already
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/tmp/made/scratch\"}"
        assert_success
        assert_mounts_at /tmp/made/scratch 0
        in_container test ! -e /tmp/made
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        in_container test ! -e /data
        assert_no_records
}

@test "crun: what the hook mounted can be listed and removed like any other" {
        is_known_by_tools crun
}

# bats test_tags=deep
@test "runc: what the hook mounted can be listed and removed like any other" {
        is_known_by_tools runc
}

removes_only_its_records() {
        local first second
        make_bundle "$(annotation "[$(bind_entry /data), $(bind_entry /other)]")"
        create_bundle "$1"
        first=$CONTAINER_PID
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        second=$CONTAINER_PID
        is "$(record_count)" 3 "number of records"
        stop_container "$first"
        is "$(record_count)" 1 "number of records"
        use_container "$second"
        assert_mounts_at "/data" 1
        helper mount-list '{}'
        assert_field '.mounts[0].container.id' "$BUNDLE_ID"
        stop_container "$second"
        assert_no_records
}

@test "crun: poststop removes the records of its container and no other's" {
        removes_only_its_records crun
}

# bats test_tags=deep
@test "runc: poststop removes the records of its container and no other's" {
        removes_only_its_records runc
}

survives_kill() {
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$(record_count)" 1
        end_process "$CONTAINER_PID"
        stop_container
        assert_bundle_is_gone "$1"
}

@test "crun: a killed container leaves no record once it is deleted" {
        survives_kill crun
}

@test "runc: a killed container leaves no record once it is deleted" {
        survives_kill runc
}

@test "poststop leaves alone what has the same id elsewhere and runs" {
        local first
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        go_on
        first=$CONTAINER_PID
        start_container plain-created 200000
        ask "[$(bind_entry /data)]"
        accepts /data
        is "$(record_count)" 2 "number of records"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid) | .status = "stopped"'
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        use_container "$first"
        assert_mounts_at /data 1
        helper mount-list '{}'
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.pid' "$first"
}

@test "poststop while the container still runs removes nothing" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        put_state '{"io.flexgraft.mounts": "[]"}' '.status = "stopped" | .pid = 0'
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        go_on
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        assert_mounts_at /data 1
        stop_container
        hook poststop
        assert_silent
        assert_no_records
}

@test "poststop frees a removed raw device when the process that had it open has closed it, and not before" {
        local guard
        make_device blank
        start_container plain-created
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]"
        accepts /disk
        go_on
        guard=$(guards_of "$DEVICE")
        hold_device "$guard"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field .stillReachable true
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        is "$(guards_of "$DEVICE")" "$guard"
        is "$(record_count)" 1 "number of records"
        end_process "$BACKGROUND_PID"
        hook poststop
        assert_silent
        assert_no_guards "$DEVICE"
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# bats test_tags=deep
@test "poststop does not wait for a raw device that takes no writes, and takes it back when it does" {
        local below=$BATS_TEST_TMPDIR/below
        truncate -s 400M "$below.img"
        mkfs.xfs -q "$below.img"
        mkdir "$below"
        bed_loops+=("$(loop_over "$below.img")")
        mount "${bed_loops[-1]}" "$below"
        truncate -s 8M "$below/disk"
        DEVICE=$(loop_over "$below/disk")
        bed_loops+=("$DEVICE")
        start_container plain-created
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]"
        accepts /disk
        go_on
        in_container dd if=/dev/zero of=/disk bs=4096 count=1 conv=notrunc status=none
        fsfreeze --freeze "$below"
        in_container dd if=/dev/zero of=/disk bs=4096 count=1 conv=notrunc status=none
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        background sh -c 'exec "$0" poststop <"$1"' "$FLEXGRAFT_BIN/mount-hook" "$HOOK_STATE"
        wait_until 20 process_is_gone "$BACKGROUND_PID" || { fsfreeze --unfreeze "$below"; return 1; }
        is "$(record_count)" 1 "number of records"
        fsfreeze --unfreeze "$below"
        wait_until 20 poststop_leaves_nothing
        assert_no_guards "$DEVICE"
        release_device "$DEVICE"
        umount "$below"
}

poststop_leaves_nothing() {
        hook poststop
        assert_silent && is "$(record_count)" 0 >/dev/null
}

# bats test_tags=deep
@test "poststop while the container still runs, with many mounts, is over before a runtime loses patience" {
        start_container plain-created
        ask "$(jq -cn '[range(16) | {type: "tmpfs", target: "/data-\(.)"}]')"
        accepts /data-15
        put_state '{"io.flexgraft.mounts": "[]"}' '.status = "stopped" | .pid = 0'
        HELPER_PREFIX=(timeout "$(($(jq .hook.timeout "$FLEXGRAFT_REPO/hooks.d/flexgraft-poststop.json.in") * ${FLEXGRAFT_PATIENCE:-6} / 3))")
        hook poststop
        assert_silent
        is "$(record_count)" 16 "number of records"
}

@test "poststop without a pid, with pid 0, without a bundle, without any record" {
        local change
        for change in 'del(.pid)' '.pid = 0' 'del(.bundle)' '.bundle = "/nowhere"' '.status = "stopped"'; do
                put_state '{"io.flexgraft.mounts": "[{\"type\": \"tmpfs\", \"target\": \"/x\"}]"}' "$change"
                hook poststop
                assert_silent
        done
        [[ ! -e $STATE_DIR ]]
}

@test "poststop removes the records of a container whose annotation cannot be understood any more" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        put_state '{"io.flexgraft.mounts": "[{"}' 'del(.pid)'
        rm "$FLEXGRAFT_POLICY"
        hook poststop
        assert_silent
        assert_no_records
}

@test "poststop skips a damaged record and a foreign file among the records" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        echo '{"torn": ' >"$STATE_DIR/mounts/torn.json"
        echo '[]' >"$STATE_DIR/mounts/foreign.json"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        [[ $(records) != *"$(jq -r .id "$HOOK_STATE")"* ]]
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 0
}

@test "a container with a long id leaves no record" {
        local length
        for length in 64 128 200 255; do
                HOOK_ID=$(printf 'x%.0s' $(seq "$length"))
                start_container plain-created
                ask "[$(bind_entry /data)]"
                hook createRuntime
                if [[ $status != 0 ]]; then
                        # refused is as good
                        assert_complaint "$status"
                        assert_created_mounts_at /data 0
                        assert_no_records
                        stop_container
                        continue
                fi
                assert_silent
                stop_container
                put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
                hook poststop
                assert_silent
                assert_no_records || { echo "with an id of $length characters"; return 1; }
        done
}

@test "two ids that begin alike are two containers" {
        local first
        HOOK_ID=$(printf 'x%.0s' $(seq 250))a
        start_container plain-created
        ask "[$(bind_entry /data)]"
        hook createRuntime
        [[ $status == 0 ]] || { assert_complaint "$status"; return; }
        first=$(records)
        stop_container
        HOOK_ID=${HOOK_ID%a}b
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        is "$(records)" "$first"
}

@test "the same id again, with another pid, is mounted anew though the record of the first is still there" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        assert_no_records
}

@test "createRuntime twice makes one mount" {
        start_container plain-created
        ask "[$(bind_entry /data), {\"type\": \"tmpfs\", \"target\": \"/scratch\"}]"
        accepts /data
        accepts /data
        assert_created_mounts_at /scratch 1
        is "$(record_count)" 2 "number of records"
        go_on
        assert_mounts_at /data 1
        assert_mounts_at /scratch 1
        hook poststart
        assert_silent
        assert_mounts_at /data 1
        assert_mounts_at /scratch 1
        is "$(record_count)" 2 "number of records"
}

@test "poststart into a container that has ended fails and leaves nothing" {
        start_container plain
        ask "[$(bind_entry /data)]"
        stop_container
        node_snapshot
        hook poststart
        assert_complaint 1
        assert_node_unchanged
}

# ---- a failing hook stops the container

is_stopped_by() {
        local runtime=$1 expected=$2 rootfs=$BUNDLE/rootfs before
        before=$(find "$rootfs" | sort)
        run_bundle "$runtime"
        [[ $status != 0 ]] || { show_last; return 1; }
        is "$output" '' "what the container said" || return 1
        if [[ $runtime == runc ]]; then
                [[ $stderr == *"$expected"* ]] || { show_last; return 1; }
        else
                [[ $(<"$BATS_TEST_TMPDIR/hook-stderr") == *"$expected"* ]] || { show_last; cat "$BATS_TEST_TMPDIR/hook-stderr"; return 1; }
        fi
        assert_bundle_is_gone "$runtime" || return 1
        diff <(echo "$before") <(find "$rootfs" | sort)
        wait_until 5 assert_no_helper_processes
}

# With the hook's stderr in a file: crun shows it to nobody otherwise.
failing_annotation() {
        jq -c --arg file "$BATS_TEST_TMPDIR/hook-stderr" '{"io.flexgraft.mounts": tojson, "run.oci.hooks.stderr": $file}' <<<"$1"
}

stops_when_forbidden() {
        policy '{"kinds": ["tmpfs"]}'
        make_bundle "$(failing_annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /made/data)]")" 'echo ran'
        is_stopped_by "$1" 'does not allow it'
}

@test "crun: what the policy forbids stops the container, with the reason, and leaves nothing" {
        stops_when_forbidden crun
}

@test "runc: what the policy forbids stops the container, with the reason, and leaves nothing" {
        stops_when_forbidden runc
}

# The first one is prepared, or even placed, when the second fails.
stops_half_way() {
        make_bundle "$(failing_annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /bin/busybox)]")" 'echo ran'
        is_stopped_by "$1" /bin/busybox
}

# bats test_tags=deep
@test "crun: the second mount of two fails: the container is stopped and nothing is left of the first" {
        stops_half_way crun
}

@test "runc: the second mount of two fails: the container is stopped and nothing is left of the first" {
        stops_half_way runc
}

stops_on_occupied() {
        BUNDLE_MOUNTS='[{"destination": "/data", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]}]'
        make_bundle "$(failing_annotation "[$(bind_entry /data)]")" 'echo ran'
        mkdir "$BUNDLE/rootfs/data"
        is_stopped_by "$1" 'something is mounted there already'
}

# bats test_tags=deep
@test "crun: a target that the configuration mounts something on stops the container" {
        stops_on_occupied crun
}

@test "runc: a target that the configuration mounts something on stops the container" {
        stops_on_occupied runc
}

stops_when_malformed() {
        make_bundle "$(jq -cn --arg file "$BATS_TEST_TMPDIR/hook-stderr" '{"io.flexgraft.mounts.web": "[{", "run.oci.hooks.stderr": $file}')" 'echo ran'
        is_stopped_by "$1" io.flexgraft.mounts.web
}

# bats test_tags=deep
@test "crun: an annotation that is no JSON stops the container, with its name" {
        stops_when_malformed crun
}

@test "runc: an annotation that is no JSON stops the container, with its name" {
        stops_when_malformed runc
}

@test "runc: a poststart that fails kills the container and leaves nothing" {
        BUNDLE_STAGES='["poststart", "poststop"]'
        policy '{}'
        make_bundle "$(annotation "[$(bind_entry /made/data)]")"
        runtime runc run --detach --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        [[ $status != 0 && $stderr == *'does not allow it'* ]] || { show_last; return 1; }
        oci runc delete --force "$BUNDLE_ID" >/dev/null 2>&1 || :
        assert_bundle_is_gone runc
        [[ ! -e $BUNDLE/rootfs/made ]]
}

# bats test_tags=deep
@test "a source that never answers: the hook fails after 20 seconds, and nothing is left of the container's other mounts" {
        mkdir "$BATS_TEST_TMPDIR/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        start_container plain-created
        ask "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, {\"type\": \"bind\", \"source\": \"$BATS_TEST_TMPDIR/fuse/x\", \"target\": \"/data\"}]"
        not_hung refuses 1 'no answer after 20 s'
        assert_no_records
        wait_until 5 assert_no_helper_processes
}
