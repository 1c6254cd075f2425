#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Locked mounts: what the container's root cannot take back.

# bats file_tags=kernel
load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

remount() {
        run in_container mount -o "remount,bind,$1" /data
}

@test "a read-only mount that is not locked can be made writable by the container's root" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        remount rw
        is "$status" 0 "$output"
        in_container touch /data/made
}

@test "nosuid and nodev of a bind that is not locked can be taken off by the container's root" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_attributes /data nosuid nodev
        remount suid,dev,rw
        is "$status" 0 "$output"
        [[ ,$(in_container sed -n 's/^.* \/data \([^ ]*\) .*/\1/p' /proc/self/mountinfo), != *,nodev,* ]]
}

@test "root of a container without a user namespace of its own can remount what it was given" {
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        remount rw
        is "$status" 0 "$output"
        in_container touch /data/made
}

@test "a locked read-only mount stays read-only" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true, "locked": true')"
        assert_success
        assert_attributes /data ro nosuid nodev
        remount rw
        [[ $status != 0 ]]
        run ! in_container touch /data/made
        assert_attributes /data ro nosuid nodev
}

@test "nosuid and nodev of a locked mount stay" {
        start_container plain
        helper mount-bind "$(bind_request /data '"locked": true')"
        assert_success
        remount suid,nodev,rw
        [[ $status != 0 ]]
        remount dev,nosuid,rw
        [[ $status != 0 ]]
        assert_attributes /data nosuid nodev
}

@test "noexec of a locked mount stays" {
        start_container plain
        helper mount-bind "$(bind_request /data '"locked": true, "options": "noexec"')"
        assert_success
        remount exec,nosuid,nodev
        [[ $status != 0 ]]
        assert_attributes /data noexec
}

@test "a clone that the container makes of a locked mount is as read-only" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true, "locked": true')"
        assert_success
        in_container mkdir /copy
        run in_container sh -c 'mount --bind /data /copy && mount -o remount,bind,rw /copy && touch /copy/made'
        [[ $status != 0 ]]
        [[ ! -e $SOURCE/made ]]
}

@test "a locked mount is mapped, listed, found again and removed as any other" {
        start_container plain
        container_snapshot
        helper mount-bind "$(bind_request /made/data '"locked": true')"
        assert_success
        assert_field .mount.idMapping idmapped
        in_container touch /made/data/file
        is "$(stat -c %u "$SOURCE/file")" 0
        helper mount-bind "$(bind_request /made/data '"locked": true')"
        assert_field .mount.alreadyMounted true
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

@test "a locked filesystem of a block device stays read-only" {
        needs mount-block
        make_device ext4
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"ro\", \"locked\": true}"
        assert_success
        remount rw
        [[ $status != 0 ]]
        run ! in_container touch /data/made
}

check_locked_in() {
        start_container "$1"
        helper mount-bind "$(bind_request /data '"readOnly": true, "locked": true')"
        assert_success
        remount rw
        [[ $status != 0 ]]
        assert_attributes /data ro
}

@test "a locked mount stays read-only in a crun container" {
        check_locked_in crun
}

@test "a locked mount stays read-only in a runc container" {
        check_locked_in runc
}

@test "locking is not pretended where there is no user namespace" {
        start_container plain-nouserns
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data '"readOnly": true, "locked": true')"
        assert_one_json_line
        if [[ $status == 0 ]]; then
                remount rw
                [[ $status != 0 ]]
        else
                assert_container_unchanged
                assert_node_unchanged
        fi
}

@test "a locked mount leaves nothing on the node" {
        start_container plain
        local before
        before=$(node_mounts)
        helper mount-bind "$(bind_request /data '"locked": true')"
        assert_success
        is "$(node_mounts)" "$before"
        # No process holds a namespace of its own any more.
        assert_no_helper_processes
        in_container umount /data
}

@test "to lock a directory's attributes no filesystem is made" {
        start_container plain
        HELPER_PREFIX=(strace -f -e trace=fsopen -o "$BATS_TEST_TMPDIR/trace")
        helper mount-bind "$(bind_request /data '"readOnly": true, "locked": true')"
        HELPER_PREFIX=()
        assert_success
        assert_attributes /data ro nosuid nodev
        is "$(grep -c 'fsopen(' "$BATS_TEST_TMPDIR/trace" || :)" 0 "filesystems are made"
}
