#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": killed, or refused, at any system call.

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

# ---- killed

# sweep mount|remove STEP ACTION...: a raw mount in a container that both versions deny it, with the action at every STEPth call; then again, and removed.
sweep() {
        local what=$1 step=$2 number at request group list='' program
        shift 2
        make_raw_device first
        start_container runc
        group=$(group_of '')
        [[ -n $group ]] || skip "runc made no group of version 2"
        [[ -n $(programs "$group") ]] || attach_program "$group" c:1:3
        program=$(programs "$group")
        [[ ! -e $(group_of devices)/devices.list ]] || list=$(<"$(group_of devices)/devices.list")
        request=$(raw_request)
        container_snapshot
        node_snapshot
        for ((number = 1; ; number += step)); do
                if [[ $what == remove ]]; then
                        helper mount-block "$request"
                        assert_success
                        at_syscall --at "$number" "$@" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /disk)"
                else
                        at_syscall --at "$number" "$@" "$FLEXGRAFT_BIN/mount-block" "$request"
                fi
                at="call $number, $AT_NAME"
                [[ $AT_REACHED == 1 ]] || break
                wait_until 5 assert_no_helper_processes >/dev/null || { echo "$at"; return 1; }
                if [[ $what == mount ]]; then
                        if [[ $output == '{"status":"Failure"'* ]]; then
                                is "$(programs "$group")" "$program" "the program after a failure at $at"
                                [[ -z $list ]] || is "$(<"$(group_of devices)/devices.list")" "$list" "the list after a failure at $at"
                        fi
                        helper mount-block "$request"
                        assert_success || { echo "again after $at"; return 1; }
                        assert_mounts_at /disk 1
                        ((number % 12 != 1)) || assert_allowed "$number" || { echo "after $at"; return 1; }
                fi
                helper mount-remove "$(remove_request /disk)"
                assert_success || { echo "removing after $at"; return 1; }
                is "$(programs "$group")" "$program" "the program after $at" || return 1
                [[ -z $list ]] || is "$(<"$(group_of devices)/devices.list")" "$list" "the list after $at" || return 1
                assert_no_records && assert_mounts_at /disk 0 && [[ ! -e $CONTAINER_ROOTFS/disk ]] || { echo "after $at"; return 1; }
        done
        ((number > 50))
        helper mount-remove "$(remove_request /disk)"
        assert_container_unchanged
        assert_node_unchanged
}

@test "a raw mount killed before any call: again succeeds, and remove takes every permission back" {
        sweep mount 5 --kill
}

@test "a raw mount with any call failing: nothing stays allowed, and again succeeds" {
        sweep mount 3 --fail EIO
}

@test "removing a raw mount killed before any call: again takes every permission back" {
        sweep remove 5 --kill
}
