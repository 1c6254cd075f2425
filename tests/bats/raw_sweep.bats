#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": killed, or refused, at any system call.
# bats file_tags=sweep

load helpers
load raw_helpers
load sweep_helpers
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

# raw_sweep mount|remove ACTION...: a raw mount in a container that both versions deny it, with the action at each call; then again, and removed.
raw_sweep() {
        local what=$1 request group denied=() into allowed arrived remove steps=()
        shift
        make_raw_device first
        start_container runc
        group=$(group_of '')
        [[ -n $group ]] || skip "runc made no group of version 2"
        [[ -n $(programs "$group") ]] || attach_program "$group" c:1:3
        # what the groups deny, as it was
        programs "$group" >"$BATS_TEST_TMPDIR/programs"
        denied=(sh "'$FLEXGRAFT_TOOLS/device-program' show '$group' | cmp - '$BATS_TEST_TMPDIR/programs'" ';')
        into="echo \$\$ >'$group/cgroup.procs'"
        if [[ -e $(group_of devices)/devices.list ]]; then
                cat "$(group_of devices)/devices.list" >"$BATS_TEST_TMPDIR/devices"
                denied[1]+=" && cmp '$(group_of devices)/devices.list' '$BATS_TEST_TMPDIR/devices'"
                into+="; echo \$\$ >'$(group_of devices)/cgroup.procs'"
        fi
        allowed="$into; $(in_sh "$CONTAINER_PID") sh -c \"printf '%-512s' call@N@ | dd of=/disk bs=512 conv=notrunc,fsync\""
        # the node reads the device behind the container's own, which the groups do not let it have
        arrived="blockdev --flushbufs $DEVICE && dd if=$DEVICE iflag=direct bs=512 count=1 status=none | grep -q '^call@N@ '"
        request=$(raw_request) remove=$(remove_request /disk)
        around_mount
        if [[ $what == mount ]]; then
                steps=(act "$FLEXGRAFT_BIN/mount-block" "$request" ';' on-failure "${denied[@]}"
                        on-success mounts "$CONTAINER_PID" /disk 1 ';'
                        call "$FLEXGRAFT_BIN/mount-block" "$request" ';' mounts "$CONTAINER_PID" /disk 1 ';'
                        sh "$allowed" ';' sh "$arrived" ';')
        else
                steps=(call "$FLEXGRAFT_BIN/mount-block" "$request" ';' act "$FLEXGRAFT_BIN/mount-remove" "$remove" ';')
        fi
        sweep "$@" "${AROUND[@]}" -- "${steps[@]}" call "$FLEXGRAFT_BIN/mount-remove" "$remove" ';' "${denied[@]}" same ';'
        nothing_left
}

@test "a raw mount killed before any call: again succeeds, and remove takes every permission back" {
        raw_sweep mount --kill
}

@test "a raw mount with any call failing: nothing stays allowed, and again succeeds" {
        raw_sweep mount --fail EIO
}

@test "removing a raw mount killed before any call: again takes every permission back" {
        raw_sweep remove --kill
}
