#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-remove and mount-list: what was put into containers; take it away again.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# bats test_tags=kernel
@test "what was mounted is removed by container and target" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        local id
        id=$(jq -r .mount.id <<<"$json")
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .removed.id "$id"
        assert_field .removed.target /data
        assert_container_unchanged
        assert_node_unchanged
}

@test "what was mounted is removed by id" {
        start_container plain
        container_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "{\"id\": \"$(jq -r .mount.id <<<"$json")\"}"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "what was mounted is removed without a user namespace" {
        start_container plain-nouserns
        container_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "removing twice succeeds, and the second time says so" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field '.alreadyRemoved == true' false
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .alreadyRemoved true
        assert_field .removed.target /data
}

@test "removing an id that never was succeeds and says so" {
        helper mount-remove '{"id": "never-was"}'
        assert_success
        assert_field .alreadyRemoved true
        assert_field .removed.id never-was
}

# bats test_tags=kernel
@test "a mount that the container took away itself is removed as a record" {
        start_container plain
        helper mount-bind "$(bind_request /made/data)"
        assert_success
        in_container umount /made/data
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
        in_container test ! -e /made
}

@test "a mount of the container's own is not removed" {
        start_container plain
        container_snapshot
        helper mount-remove "$(remove_request /tmp)"
        assert_one_json_line
        assert_container_unchanged
}

# bats test_tags=kernel
@test "a mount of the container's own on top of ours is not removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data
        assert_mounts_at /data 2
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 2
        [[ $(mount_line /data) == *tmpfs* ]]
        in_container umount /data
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel
@test "a mount of the container's own in place of ours is not removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        in_container mount -t tmpfs tmpfs /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        [[ $(mount_line /data) == *tmpfs* ]]
}

@test "the same source that the container mounted itself is not taken for ours" {
        kernel_can unique-ids || skip "this kernel uses the ids of mounts again"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mkdir /copy
        in_container mount --bind /data /copy
        in_container umount /data
        in_container mount --bind /copy /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        assert_mounts_at /copy 1
}

# bats test_tags=kernel
@test "a mount that the container moved is found or reported, never another one removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mkdir /elsewhere
        in_container mount --move /data /elsewhere
        in_container mount -t tmpfs tmpfs /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        [[ $(mount_line /data) == *tmpfs* ]]
}

# bats test_tags=kernel
@test "a file is removed" {
        echo text >"$BATS_TEST_TMPDIR/file"
        SOURCE=$BATS_TEST_TMPDIR/file
        start_container plain
        container_snapshot
        helper mount-bind "$(bind_request /etc/made/file)"
        assert_success
        helper mount-remove "$(remove_request /etc/made/file)"
        assert_success
        assert_container_unchanged
}

busy_container() {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/sh -c 'cd /data && echo ready && exec sleep 1000000'
}

# bats test_tags=kernel
@test "a busy mount fails with EBUSY and stays" {
        busy_container
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
}

# bats test_tags=kernel
@test "a busy mount goes away with force" {
        busy_container
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel
@test "mounts of the container's own below ours are not silently taken along" {
        mkdir "$SOURCE/sub"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data/sub
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 1
        assert_mounts_at /data/sub 1
}

# bats test_tags=kernel
@test "when the container is gone, remove by id clears the record" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        local id
        id=$(jq -r .mount.id <<<"$json")
        stop_container
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
}

# bats test_tags=kernel
@test "when the pid belongs to another process, remove touches nothing of it" {
        start_container plain
        local pid=$CONTAINER_PID id before
        helper mount-bind "$(bind_request /data)"
        assert_success
        id=$(jq -r .mount.id <<<"$json")
        "$FLEXGRAFT_TOOLS/clone-at-pid" --kill "$pid" sleep 1000000
        bed_pids+=("$pid")
        mkdir "$BATS_TEST_TMPDIR/m"
        nsenter --target "$pid" --mount mount --bind "$SOURCE" "$BATS_TEST_TMPDIR/m"
        before=$(cat "/proc/$pid/mountinfo")
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        is "$(cat "/proc/$pid/mountinfo")" "$before"
        assert_no_records
}

@test "nothing mounted is an empty list" {
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 0
}

# bats test_tags=kernel
@test "what is mounted is listed as the reply told" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        local reply
        reply=$(jq -cS '.mount | del(.alreadyMounted)' <<<"$json")
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        is "$(jq -cS '.mounts[0] | del(.alreadyMounted, .state)' <<<"$json")" "$reply"
        assert_field '.mounts[0].state' present
}

@test "the list can be limited to one container" {
        start_container plain 100000
        local first=$CONTAINER_PID
        helper mount-bind "$(bind_request /first)"
        assert_success
        start_container plain 200000
        helper mount-bind "$(bind_request /second)"
        assert_success
        helper mount-list '{}'
        assert_field '[.mounts[].target] | sort | join(" ")' "/first /second"
        helper mount-list "{\"container\": $first}"
        assert_field '[.mounts[].target] | join(" ")' /first
        helper mount-list "{\"container\": {\"pid\": $CONTAINER_PID}}"
        assert_field '[.mounts[].target] | join(" ")' /second
}

# bats test_tags=kernel
@test "a mount under another one is listed as covered" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' covered
}

# bats test_tags=kernel
@test "a mount that the container took away is listed as gone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' gone
}

@test "a mount whose container is gone is listed as gone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        stop_container
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' gone
}

# bats test_tags=kernel
@test "the list changes nothing" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        container_snapshot
        node_snapshot
        helper mount-list '{}'
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}

@test "the state directory belongs to root alone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(stat -c %a:%u "$STATE_DIR")" 700:0
}

# bad_record CONTENT: the others must not suffer from it.
bad_record() {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        printf '%s' "$1" >"$STATE_DIR/mounts/bad.json"
        helper mount-list '{}'
        assert_one_json_line
        assert_field .status Success
        assert_field '[.mounts[] | select(.target == "/data" and .state == "present")] | length' 1
        mkdir "$BATS_TEST_TMPDIR/other"
        SOURCE=$BATS_TEST_TMPDIR/other
        helper mount-bind "$(bind_request /other)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        helper mount-remove "$(remove_request /other)"
        assert_success
}

@test "an empty record harms no other" {
        bad_record ''
}

@test "a torn record harms no other" {
        bad_record '{"id": "bad", "container": {"pid": 47'
}

@test "a foreign record harms no other" {
        bad_record '{"hello": ["world"]}'
}

@test "a record with wrong types harms no other" {
        bad_record '{"id": 5, "container": "x", "target": {}, "mountId": "many", "state": null}'
}

@test "a record that is a symlink is not followed" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        mv "$STATE_DIR/mounts/mine.json" "$BATS_TEST_TMPDIR/mine.json"
        ln -s "$BATS_TEST_TMPDIR/mine.json" "$STATE_DIR/mounts/mine.json"
        helper mount-remove '{"id": "mine"}'
        assert_one_json_line
        [[ -e $BATS_TEST_TMPDIR/mine.json ]]
}

@test "an id cannot leave the state directory" {
        local id
        echo '{}' >"$BATS_TEST_TMPDIR/victim.json"
        for id in ../victim ../../victim . .. '' /etc/passwd a/b .lock; do
                helper mount-remove "$(jq -cn --arg id "$id" '{id: $id}')"
                assert_one_json_line
                [[ $status != 0 ]] || assert_field .alreadyRemoved true
                [[ -e $BATS_TEST_TMPDIR/victim.json ]]
        done
}

# ---- after a call that was cut short

@test "a record left by a killed mount is listed without harm" {
        start_container plain
        local request
        request=$(bind_request /made/data)
        at_syscall --at move_mount --kill "$FLEXGRAFT_BIN/mount-bind" "$request"
        is "$status" 137
        helper mount-list '{}'
        assert_success
        assert_mounts_at /made/data 0
}

@test "a full state directory fails cleanly and leaves nothing" {
        start_container plain
        mkdir -p "$STATE_DIR"
        chmod 0700 "$STATE_DIR"
        mount -t tmpfs -o size=64k,nr_inodes=8,mode=700 tmpfs "$STATE_DIR"
        helper mount-list '{}'
        container_snapshot
        dd if=/dev/zero of="$STATE_DIR/fill" bs=4k status=none 2>/dev/null || :
        helper mount-bind "$(bind_request /made/data)"
        assert_failure ENOSPC
        assert_container_unchanged
        rm "$STATE_DIR/fill"
        helper mount-bind "$(bind_request /made/data)"
        assert_success
}
