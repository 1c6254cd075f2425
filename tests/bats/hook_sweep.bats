#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: killed, or refused, at any system call.

load helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- killed, or refused any system call

# A sweep has a container for each round, made as cheaply as can be: of one root directory, its state from a template.
sweep_begin() {
        SWEEP_ROOTFS=$BATS_TEST_TMPDIR/sweep/rootfs
        make_rootfs "$SWEEP_ROOTFS" 100000
        CONTAINER_PID=1 CONTAINER_ROOTFS=$SWEEP_ROOTFS
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        SWEEP_STOPPED=$(<"$HOOK_STATE")
        ask "[$(bind_entry /made/data), {\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}]" '.pid = "PID"'
        SWEEP_ASKED=$(<"$HOOK_STATE")
        sweep_round
        # the number of the first call that the program itself makes
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$(program mount-hook)" createRuntime <"$HOOK_STATE" >/dev/null 2>&1 3>&-
        FIRST_CALL=$(awk '$3 == "prctl" || $3 == "capget" || $3 == "capset" || $3 == "close_range" || $3 == "fcntl" {print $1; exit}' "$BATS_TEST_TMPDIR/log")
        FIRST_CALL=${FIRST_CALL:-1}
        AT_NUMBER=0
        sweep_round_end
}

sweep_round() {
        rm -rf "$SWEEP_ROOTFS/made"
        ROOTFS=$SWEEP_ROOTFS start_container plain-created
        echo "${SWEEP_ASKED/'"PID"'/"$CONTAINER_PID"}" >"$HOOK_STATE"
        sweep_mounts=$(<"/proc/$CONTAINER_PID/mountinfo")
}

# The container goes, and poststop leaves nothing. What costs processes to find out is looked at every 16th time.
sweep_round_end() {
        local file
        stop_container
        echo "$SWEEP_STOPPED" >"$HOOK_STATE"
        hook poststop
        assert_silent || return 1
        for file in "$STATE_DIR"/mounts/* "$STATE_DIR"/mounts/.[!.]*; do
                [[ ! -e $file || $file == */.lock ]] || { echo "left: $file"; return 1; }
        done
        ((AT_NUMBER % 16 != 0)) || { assert_no_helper_processes && assert_node_unchanged; }
}

sweep_hook() {
        at_syscall --at "$AT_NUMBER" "$@" "$(program mount-hook)" createRuntime <"$HOOK_STATE"
}

is_mounted_once() {
        local mounts
        mounts=$(<"/proc/$CONTAINER_PID/mountinfo")
        [[ $mounts == *"$CONTAINER_ROOTFS$1 "* && ${mounts#*"$CONTAINER_ROOTFS$1 "} != *"$CONTAINER_ROOTFS$1 "* ]] && return 0
        echo "not one mount at $1"
        show_last
        return 1
}

@test "killed before any call at createRuntime: when the container is gone poststop leaves nothing" {
        sweep_begin
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_round
                sweep_hook --kill
                [[ $AT_REACHED == 1 ]] || break
                sweep_round_end || { echo "at call $AT_NUMBER, $AT_NAME"; return 1; }
        done
        assert_silent
        ((AT_NUMBER > FIRST_CALL + 50))
}

@test "killed before any call at createRuntime: again succeeds, with one mount each" {
        sweep_begin
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_round
                sweep_hook --kill
                [[ $AT_REACHED == 1 ]] || break
                hook createRuntime
                assert_silent && is_mounted_once /made/data && is_mounted_once /made/scratch && sweep_round_end ||
                        { echo "again after call $AT_NUMBER, $AT_NAME"; return 1; }
        done
        ((AT_NUMBER > FIRST_CALL + 50))
}

# fails_cleanly ERRNO: any call fails so: the hook says so and has left nothing, or has done its work.
fails_cleanly() {
        sweep_begin
        sweep_round
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_hook --fail "$1"
                [[ $AT_REACHED == 1 ]] || break
                [[ $AT_NAME != brk ]] || continue # the kernel's brk cannot fail with an errno: it returns an address
                case $status in
                0) assert_silent && is_mounted_once /made/data && is_mounted_once /made/scratch ;;
                1 | 2) [[ $AT_NAME == write ]] || assert_complaint "$status" ;;
                *) false ;;
                esac || { echo "at call $AT_NUMBER, $AT_NAME"; show_last; return 1; }
                if [[ $status == 0 || $stderr == *'undoing it failed'* ]]; then
                        sweep_round_end || { echo "at call $AT_NUMBER, $AT_NAME"; return 1; }
                        sweep_round
                        continue
                fi
                # its namespace is a copy of the node's, so another run's mounts are in it, until their directories are removed
                if [[ -e $SWEEP_ROOTFS/made ]] || ! assert_no_records || ! assert_same_mounts "$CONTAINER_PID" "$sweep_mounts"; then
                        echo "left at call $AT_NUMBER, $AT_NAME"
                        show_last
                        return 1
                fi
        done
        ((AT_NUMBER > FIRST_CALL + 50))
}

@test "with any call failing with EIO the hook says so and leaves nothing" {
        fails_cleanly EIO
}

@test "with any call failing with ENOMEM the hook says so and leaves nothing" {
        fails_cleanly ENOMEM
}

@test "killed before any call at poststop: again leaves nothing" {
        local number name names rounds=0 record copy=$BATS_TEST_TMPDIR/record
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        record=$STATE_DIR/$(records)
        cp "$record" "$copy"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$(program mount-hook)" poststop <"$HOOK_STATE" >/dev/null 2>&1 3>&-
        # it looks at every process of the node, with these calls; a few of each are enough
        mapfile -t names < <(awk '{print $3}' "$BATS_TEST_TMPDIR/log" | sort -u)
        for name in "${names[@]}"; do
                for ((number = 1; number < 30; number++)); do
                        cp "$copy" "$record"
                        at_syscall --at "$name:$number" --kill "$(program mount-hook)" poststop <"$HOOK_STATE"
                        [[ $AT_REACHED == 1 ]] || break
                        hook poststop
                        assert_silent && assert_no_records || { echo "again after $name, number $number"; return 1; }
                        rounds=$((rounds + 1))
                done
        done
        ((rounds > 20))
}
