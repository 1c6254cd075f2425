#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": control groups of version 2.

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

# ---- control groups

# make_group [PARENT]: an empty control group of version 2, in GROUP.
make_group() {
        local root
        root=$(unified_root) || skip "no control groups of version 2"
        GROUP=${1:-$root}/flexgraft-$RUN_ID-$((++bed_serial))
        mkdir "$GROUP"
        groups=("$GROUP" "${groups[@]}")
}

join_group() {
        echo "${2:-$CONTAINER_PID}" >"$1/cgroup.procs"
}

# A plain container alone in a group whose program lets it open nothing but /dev/null and what is named.
start_denied() {
        start_container "${1:-plain}"
        make_group
        join_group "$GROUP"
        attach_program "$GROUP" c:1:3 "${@:2}"
        before=$(programs "$GROUP")
}

# ---- control groups of version 2

# bats test_tags=kernel
@test "version 2: a denied device is allowed while it is there, and the program is as before afterwards" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        is "$(programs "$GROUP" | wc -l)" 1 programs
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_no_records
}

# bats test_tags=kernel
@test "version 2: without a user namespace too, and only this device, and not to make nodes of it" {
        make_raw_device first
        start_denied plain-nouserns
        local given=$DEVICE number
        make_raw_device other
        number=$(device_number)
        in_container mknod /other b "${number%:*}" "${number#*:}"
        DEVICE=$given
        number=$(device_number)
        in_container mknod /node b "${number%:*}" "${number#*:}"
        assert_denied /node
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        # not the node's device, but the one that was made for the container
        assert_denied /node
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        assert_allowed third /mine
        assert_denied /other
        run ! in_groups mknod /again b "${number%:*}" "${number#*:}"
        [[ $output == *"not permitted"* ]]
        # what the program itself allows and denies stays
        in_groups sh -c 'echo >/dev/null'
        run ! in_groups sh -c 'echo >/dev/full'
        [[ $output == *"not permitted"* ]]
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_denied /mine
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: every program that denies is changed, and changed back" {
        make_raw_device first
        start_denied
        attach_program "$GROUP" c:1:3 c:1:5
        before=$(programs "$GROUP")
        is "$(wc -l <<<"$before")" 2 programs
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the programs"
}

@test "version 2: a program that is alone on its group is changed, and changed back" {
        make_raw_device first
        start_container plain
        make_group
        join_group "$GROUP"
        attach_program "$GROUP" --single c:1:3
        before=$(programs "$GROUP")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: a device that the program allows already stays allowed" {
        make_raw_device first
        start_denied plain-nouserns "b:7:-1"
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

# check_two FIRST-TO-GO SECOND-TO-GO
check_two() {
        make_raw_device first
        local one=$DEVICE two
        make_raw_device first
        two=$DEVICE
        start_denied
        DEVICE=$one
        helper mount-block "$(TARGET=/one raw_request)"
        assert_success
        DEVICE=$two
        helper mount-block "$(TARGET=/two raw_request)"
        assert_success
        DEVICE=$one
        assert_allowed second /one
        DEVICE=$two
        assert_allowed second /two
        helper mount-remove "$(remove_request "/$1")"
        assert_success
        DEVICE=${!2}
        assert_allowed third "/$2"
        helper mount-remove "$(remove_request "/$2")"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: of two devices the first goes first" {
        check_two one two
}

@test "version 2: of two devices the second goes first" {
        check_two two one
}

# bats test_tags=kernel
@test "version 2: of two mounts of a device the first to go leaves it allowed" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(TARGET=/second raw_request)"
        assert_success
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_allowed second /second
        helper mount-remove "$(remove_request /second)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: readOnly allows reading only" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_groups)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

check_read_only_beside_writable() {
        local order
        for order in "/disk /ro" "/ro /disk"; do
                echo "first to go: ${order%% *}"
                helper mount-block "$(raw_request)"
                assert_success
                helper mount-block "$(TARGET=/ro raw_request '"readOnly": true')"
                assert_success
                assert_allowed "${order%% *}"
                is "$(container_reads in_groups /ro)" "${order%% *}"
                helper mount-remove "$(remove_request "${order%% *}")"
                assert_success
                if [[ $order == /ro* ]]; then
                        assert_allowed last
                else
                        is "$(container_reads in_groups /ro)" "${order%% *}"
                fi
                helper mount-remove "$(remove_request "${order#* }")"
                assert_success
        done
}

@test "version 2: a readOnly and a writable mount of one device, whichever goes first" {
        make_raw_device first
        start_denied
        check_read_only_beside_writable
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 1: a readOnly and a writable mount of one device, whichever goes first" {
        start_version1
        check_read_only_beside_writable
        assert_list_unchanged
}

# bats test_tags=kernel
@test "version 2: a group above without programs of its own below it is changed, and changed back" {
        make_raw_device first
        start_container plain
        make_group
        local above=$GROUP
        attach_program "$above"
        make_group "$above"
        join_group "$GROUP"
        before=$(programs "$above")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        is "$(programs "$GROUP")" ""
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$above")" "$before" "the program above"
}

# refused_shared: EPERM, with the group named, and nothing changed.
refused_shared() {
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EPERM
        [[ $(json_field .message) == *"${1##*/}"* ]] || { echo "the group is not named"; show_last; return 1; }
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "version 2: a group that others live in is not changed" {
        make_raw_device first
        start_denied
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        refused_shared "$GROUP"
        is "$(programs "$GROUP")" "$before" "the program"
        end_process "$BACKGROUND_PID"
        # without the stranger it is the container's own
        helper mount-block "$(raw_request)"
        assert_success
}

@test "version 2: a group that others live below is not changed" {
        make_raw_device first
        start_denied
        local above=$GROUP
        make_group "$above"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        refused_shared "$above"
        is "$(programs "$above")" "$before" "the program"
        end_process "$BACKGROUND_PID"
}

@test "version 2: a group that two containers live in is not changed" {
        make_raw_device first
        start_denied
        local one=$CONTAINER_PID
        start_container plain 200000
        join_group "$GROUP"
        use_container "$one"
        refused_shared "$GROUP"
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: a shared group above that denies too is told, and nothing is changed" {
        make_raw_device first
        start_container plain
        make_group
        local above=$GROUP before_above
        attach_program "$above" c:1:3
        before_above=$(programs "$above")
        make_group "$above"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        make_group "$above"
        join_group "$GROUP"
        attach_program "$GROUP" c:1:3
        before=$(programs "$GROUP")
        refused_shared "$above"
        is "$(programs "$GROUP")" "$before" "the program"
        is "$(programs "$above")" "$before_above" "the program above"
        end_process "$BACKGROUND_PID"
}

@test "version 2: a program that allows everything is no reason to refuse a shared group" {
        make_raw_device first
        start_denied plain "b:7:-1"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        end_process "$BACKGROUND_PID"
}

# bats test_tags=kernel
@test "version 2: a mount that fails takes the permission back" {
        make_raw_device first
        start_denied
        container_snapshot
        node_snapshot
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(raw_request)"
        is "$AT_REACHED" 1
        assert_failure EIO
        is "$(programs "$GROUP")" "$before" "the program"
        assert_container_unchanged
        assert_node_unchanged
}

@test "version 2: a second mount that fails leaves the first one allowed" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(TARGET=/second raw_request)"
        assert_failure EIO
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: dryRun changes no program" {
        make_raw_device first
        start_denied
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request '"dryRun": true')"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "version 2: the program of a runc container is as before afterwards" {
        make_raw_device first
        start_container runc
        local group
        group=$(group_of '')
        [[ -n $group ]] || skip "runc made no group of version 2"
        if [[ -z $(programs "$group") ]]; then
                attach_program "$group" c:1:3
        fi
        before=$(programs "$group")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$group")" "$before" "the program"
}

# bats test_tags=kernel
@test "a raw mount replaced by that of another device: only the new one is allowed" {
        make_raw_device first
        local one=$DEVICE
        make_raw_device other
        local two=$DEVICE number
        start_denied plain-nouserns
        DEVICE=$one
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        helper mount-block "$(raw_request)"
        assert_success
        DEVICE=$two
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        helper mount-block "$(raw_request '"replace": true')"
        assert_success
        assert_mounts_at /disk 1
        assert_allowed second
        assert_denied /mine
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_no_records
}
