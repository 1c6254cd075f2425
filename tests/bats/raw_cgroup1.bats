#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": control groups of version 1.

load helpers
load raw_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        groups=()
        needs mount-block mount-remove mount-list
}

teardown() {
        local failed=0 group
        bed_teardown || failed=1
        for group in "${groups[@]}"; do
                wait_until 10 group_is_gone "$group" || failed=1
        done
        return "$failed"
}

# ---- control groups of version 1

check_version1() {
        start_version1 "$1"
        helper mount-block "$(raw_request)"
        assert_success
        is "$(<"$group/devices.list")" "$list"$'\n'"b $(device_number) rw"
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: the device is allowed while it is there, and not afterwards" {
        check_version1 runc
}

@test "version 1: removed by way of a process that was brought into the container from elsewhere, no other container loses the device" {
        start_version1 runc
        local elsewhere everyone
        helper mount-block "$(raw_request)"
        assert_success
        # in the container's namespaces, and in the node's own control group
        background nsenter --target "$CONTAINER_PID" --mount --user -S 0 -G 0 -- /bin/sleep 1000
        elsewhere=$BACKGROUND_PID
        wait_until 10 grep -q sleep "/proc/$elsewhere/comm"
        everyone=$(</sys/fs/cgroup/devices/devices.list)
        helper mount-remove "{\"container\": $elsewhere, \"target\": \"/disk\"}"
        assert_success
        is "$(</sys/fs/cgroup/devices/devices.list)" "$everyone"
        is "$(on_device)" first "read on the node"
        assert_list_unchanged
}

@test "a raw mount that could not be replaced by another of its device keeps what it may do" {
        start_version1 runc
        helper mount-block "$(raw_request)"
        assert_success
        HELPER_PREFIX=("$FLEXGRAFT_TOOLS/at-syscall" --at move_mount:2 --fail EIO --)
        helper mount-block "$(raw_request '"replace": true, "readOnly": true')"
        HELPER_PREFIX=()
        assert_failure
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: the device is allowed while it is there, and not afterwards, without a user namespace" {
        check_version1 runc-nouserns
}

@test "version 1: a device that was not given stays denied" {
        start_version1 runc-nouserns
        helper mount-block "$(raw_request)"
        assert_success
        local given=$DEVICE number
        make_raw_device other
        number=$(device_number)
        in_container mknod /other b "${number%:*}" "${number#*:}"
        assert_denied /other
        DEVICE=$given
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        # the container's own node of the node's device does not open
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        assert_denied /mine
        is "$(on_device)" second
}

@test "version 1: readOnly allows reading only" {
        start_version1
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(<"$group/devices.list")" "$list"$'\n'"b $(device_number) r"
        is "$(container_reads in_groups)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: what the container was allowed before it is allowed afterwards" {
        start_version1
        local rule
        for rule in rwm rw r; do
                echo "b 7:* $rule" >"$group/devices.allow"
                list=$(<"$group/devices.list")
                helper mount-block "$(raw_request)"
                assert_success
                assert_allowed "with-$rule"
                helper mount-remove "$(remove_request /disk)"
                assert_success
                assert_list_unchanged || { echo "after a mount with the rule $rule"; return 1; }
                echo "b 7:* rwm" >"$group/devices.deny"
        done
}

@test "version 1: of two mounts of a device the first to go leaves it allowed" {
        start_version1
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(TARGET=/second raw_request)"
        assert_success
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_allowed second /second
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-remove "$(remove_request /second)"
        assert_success
        assert_allowed third /disk
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: a mount that fails takes the permission back" {
        start_version1
        container_snapshot
        node_snapshot
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(raw_request)"
        assert_failure EIO
        assert_list_unchanged
        assert_container_unchanged
        assert_node_unchanged
}

@test "version 1: a second mount that fails leaves the first one allowed" {
        start_version1
        helper mount-block "$(raw_request)"
        assert_success
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(TARGET=/second raw_request)"
        assert_failure EIO
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: a group that others live in is not changed" {
        start_version1
        echo "b 7:* r" >"$group/devices.allow"
        list=$(<"$group/devices.list")
        background sleep 1000000
        echo "$BACKGROUND_PID" >"$group/cgroup.procs"
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EPERM
        assert_list_unchanged
        assert_container_unchanged
        assert_node_unchanged
        end_process "$BACKGROUND_PID"
}

@test "version 1: a group above that denies is told, and nothing is changed" {
        start_version1
        mkdir "$group/below"
        groups=("$group/below" "${groups[@]}")
        echo "$CONTAINER_PID" >"$group/below/cgroup.procs"
        list=$(<"$group/devices.list")
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        if [[ $status == 0 ]]; then
                # all the groups above were the container's own: then it works
                assert_allowed second
                helper mount-remove "$(remove_request /disk)"
                assert_success
        else
                assert_failure EPERM
        fi
        assert_list_unchanged
        is "$(<"$group/below/devices.list")" "$list"
        assert_container_unchanged
        assert_node_unchanged
        stop_container
}

@test "version 1: a container that is gone with its group is no hindrance" {
        start_version1
        helper mount-block "$(raw_request '"id": "mine"')"
        assert_success
        stop_container
        wait_until 10 test ! -e "$group"
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_no_records
}
