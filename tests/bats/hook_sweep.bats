#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: killed, or refused, at any system call.
# bats file_tags=sweep

load helpers
load hook_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# sweep_begin: a root directory and the states of a container that each round starts anew, and ends; before its first instruction.
sweep_begin() {
        SWEEP_ROOTFS=$BATS_TEST_TMPDIR/sweep/rootfs
        make_rootfs "$SWEEP_ROOTFS" 100000
        mkfifo "$BATS_TEST_TMPDIR/sweep/start"
        printf '{"root": {"path": "rootfs"}}\n' >"$BATS_TEST_TMPDIR/sweep/config.json"
        CONTAINER_PID=1 CONTAINER_ROOTFS=$SWEEP_ROOTFS
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        SWEEP_STOPPED=$(<"$HOOK_STATE")
        ask "[$(bind_entry /made/data), {\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}]" '.pid = "PID"'
        SWEEP_ASKED=$(<"$HOOK_STATE")
        SWEEP_ASKED=${SWEEP_ASKED/'"PID"'/@PID@}
        CONTAINER_PID=''
        MOUNTED_ONCE=(mounts @PID@ "$SWEEP_ROOTFS/made/data" 1 ';' mounts @PID@ "$SWEEP_ROOTFS/made/scratch" 1 ';')
        mkdir -m 0700 "$STATE_DIR"
        node_snapshot
}

# hook_sweep OPTION... [-- STEP...]: createRuntime with the action at each call, these further steps after it; the container goes, and poststop leaves
# nothing.
hook_sweep() {
        local options=()
        while (($# > 0)) && [[ $1 != -- ]]; do
                options+=("$1")
                shift
        done
        sweep --reply plain "${options[@]}" --watch tree "$STATE_DIR" --watch mounts self -- \
                sh "rm -rf '$SWEEP_ROOTFS/made'" ';' \
                background PID "$FLEXGRAFT_TOOLS/container-init" --base 100000 --created "$BATS_TEST_TMPDIR/sweep/start" "$SWEEP_ROOTFS" ';' \
                stdin "$SWEEP_ASKED" ';' \
                remember mounts @PID@ ';' \
                act "$FLEXGRAFT_BIN/mount-hook" createRuntime ';' \
                "${@:2}" \
                end PID ';' \
                stdin "$SWEEP_STOPPED" ';' \
                call "$FLEXGRAFT_BIN/mount-hook" poststop ';' \
                same ';'
        assert_no_records && assert_node_unchanged
}

@test "killed before any call at createRuntime: when the container is gone poststop leaves nothing" {
        sweep_begin
        hook_sweep --kill
}

@test "killed before any call at createRuntime: again succeeds, with one mount each" {
        sweep_begin
        hook_sweep --kill -- call "$FLEXGRAFT_BIN/mount-hook" createRuntime ';' "${MOUNTED_ONCE[@]}"
}

# fails_cleanly ERRNO: any call fails so: the hook says so and has left nothing, or has done its work.
fails_cleanly() {
        sweep_begin
        hook_sweep --fail "$1" --not-undone 'undoing it failed' -- \
                on-success "${MOUNTED_ONCE[@]:0:5}" on-success "${MOUNTED_ONCE[@]:5}" \
                on-failure sh "[ ! -e '$SWEEP_ROOTFS/made' ] && [ -z \"\$(find '$STATE_DIR' -name uses -prune -o ! -type d ! -name .lock ! -name .call-counts.2 -print)\" ]" ';' \
                on-failure unchanged ';'
}

@test "with any call failing with EIO the hook says so and leaves nothing" {
        fails_cleanly EIO
}

@test "with any call failing with ENOMEM the hook says so and leaves nothing" {
        fails_cleanly ENOMEM
}

@test "killed before any call at poststop: again leaves nothing" {
        local record copy=$BATS_TEST_TMPDIR/record points
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        record=$STATE_DIR/$(records)
        cp "$record" "$copy"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        rm -rf "$STATE_DIR/uses" # the record as it is copied has no entries there
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-hook" poststop <"$HOOK_STATE" >/dev/null 2>&1 3>&-
        # it looks at every process of the node, with these calls; a few of each are enough, and the later ones may be gone with a process
        points=$(awk '++count[$3] < 30 { print $3 ":" count[$3] (count[$3] > 2 ? "?" : "") }' "$BATS_TEST_TMPDIR/log" | sweep_places)
        sweep --reply plain --kill --at "$points" --watch tree "$STATE_DIR" -- \
                sh "cp '$copy' '$record' && rm -rf '$STATE_DIR/uses'" ';' \
                stdin "$(<"$HOOK_STATE")" ';' \
                act "$FLEXGRAFT_BIN/mount-hook" poststop ';' \
                call "$FLEXGRAFT_BIN/mount-hook" poststop ';' \
                same ';'
        assert_no_records
}
