#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checks that nothing but an attacker, a crash or a rare moment would miss: scripts/mutate takes each away, and one of these tests fails.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind
}

teardown() {
        if [[ -n ${DRIVER:-} ]]; then driver_teardown; else bed_teardown; fi
}

@test "a directory is not mounted onto a file: ENOTDIR; nor a file onto a directory: EISDIR" {
        start_container plain
        in_container sh -c 'echo x >/tmp/file && mkdir /tmp/directory'
        helper mount-bind "$(bind_request /tmp/file)"
        assert_failure ENOTDIR
        echo x >"$SOURCE/file"
        SOURCE=$SOURCE/file
        helper mount-bind "$(bind_request /tmp/directory)"
        assert_failure EISDIR
        assert_no_records
}

@test "a call that makes a mount point waits for another that makes one in the same container" {
        start_container plain
        local other
        other=$(bind_request /made/too '"timeoutSeconds": 1')
        at_syscall --at move_mount --run-output "$BATS_TEST_TMPDIR/other" --run "$FLEXGRAFT_BIN/mount-bind '$other'" \
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /made/here)"
        assert_success
        is "$AT_REACHED" 1 "whether move_mount was reached"
        is "$(jq -r .error.errno "$BATS_TEST_TMPDIR/other")" ETIMEDOUT "what the other call met"
        assert_mounts_at /made/here 1
        assert_mounts_at /made/too 0
        helper mount-bind "$(bind_request /made/too)"
        assert_success
}

# after_placing COMMAND: mount-bind of a read-only mount on /data; right after it was placed COMMAND runs in the container.
after_placing() {
        local request number
        start_container plain
        request=$(bind_request /data '"readOnly": true')
        at_syscall --log "$BATS_TEST_TMPDIR/log" --at move_mount "$FLEXGRAFT_BIN/mount-bind" "$request"
        assert_success
        number=$(awk '$3 == "move_mount" { n = $1 } END { print n + 1 }' "$BATS_TEST_TMPDIR/log")
        helper mount-remove "$(remove_request /data)"
        assert_success
        in_container mkdir -p /data # the second time as many calls as the first
        helper mount-bind "$request"
        helper mount-remove "$(remove_request /data)"
        at_syscall --at move_mount --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-bind" "$request"
        number=$(awk '$3 == "move_mount" { n = $1 } END { print n + 1 }' "$BATS_TEST_TMPDIR/log")
        helper mount-remove "$(remove_request /data)"
        assert_success
        at_syscall --at "$number" --run "nsenter -t $CONTAINER_PID -m -U -p -- $1" "$FLEXGRAFT_BIN/mount-bind" "$request"
        is "$AT_REACHED" 1 "whether the call after move_mount was reached"
}

@test "a mount that was covered before it was confirmed is a failure, and is taken back" {
        after_placing "/bin/mount -t tmpfs -o ro,nosuid,nodev,relatime tmpfs /data" # with the same options
        assert_failure ESTALE
        [[ $(json_field .message) == *'moved, replaced or covered'* ]] # and not taken for one with other options
        assert_no_records
}

@test "a mount whose read-only was taken off before it was confirmed is a failure, and is taken back" {
        after_placing "/bin/mount -o remount,bind,rw /data"
        assert_failure ESTALE
        assert_no_records
        assert_mounts_at /data 0
}

@test "a volume's record in its pool, its name and its image are on the disk before attach answers" {
        needs flexdriver
        driver_setup flexgraft~loop
        call attach "$(spec data size=16m)" "$NODE"
        assert_success
        call detach data "$NODE"
        strace -f -y -s 0 -e trace=fsync,renameat,renameat2,rename -o "$BATS_TEST_TMPDIR/trace" \
                "${DRIVER%/*}/verbs/attach" "$(spec other size=16m)" "$NODE" >"$BATS_TEST_TMPDIR/stdout"
        # A temporary file is synced and renamed; the sync of the image, on the same filesystem, also writes the name (ext4, xfs, btrfs).
        awk -v records="$STATE_DIR/provisioned" -v pool="$STATE_DIR/pools/default" '
                /fsync\(/ && index($0, "<" records "/") { file = 1 }
                /rename/ && index($0, "<" records ">") && file { renamed = 1 }
                /fsync\(/ && index($0, "<" pool "/") && renamed { image = 1 }
                /fsync\(/ && index($0, "<" pool ">") && image { entry = 1 }
                END { exit !(file && renamed && image && entry) }' "$BATS_TEST_TMPDIR/trace" || {
                cat "$BATS_TEST_TMPDIR/trace"
                return 1
        }
        call detach other "$NODE"
}

# killed_in PROGRAM CALL ARGUMENT...: that call ends the program, which waits for its request.
killed_in() {
        local program=$1 pid
        shift
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        "$FLEXGRAFT_BIN/$program" - <"$BATS_TEST_TMPDIR/fifo" >/dev/null 2>&1 3>&- &
        pid=$!
        bed_pids+=("$pid")
        exec 8>"$BATS_TEST_TMPDIR/fifo"
        wait_until 5 reads_standard_input "$pid"
        is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$pid" "$@")" "killed by signal 31" "$* in $program"
        exec 8>&-
        wait "$pid" || :
        rm "$BATS_TEST_TMPDIR/fifo"
}

reads_standard_input() {
        [[ $(cat "/proc/$1/syscall" 2>/dev/null) == "0 0x0 "* ]]
}

@test "no helper can map memory to execute, or make a process in new namespaces" {
        without_sanitizers "map memory to execute"
        local program
        for program in mount-bind mount-nfs mount-batch mount-list mount-remove; do
                killed_in "$program" mmap 0 4096 5 34 -1 0
                killed_in "$program" clone $((0x10000000 | 17)) 0 0 0 0 0
                killed_in "$program" clone $((0x00020000 | 17)) 0 0 0 0 0
        done
}

@test "a directory of records that is a symbolic link is not followed" {
        start_container plain
        mkdir -m 0700 "$STATE_DIR" "$BATS_TEST_TMPDIR/elsewhere"
        ln -s "$BATS_TEST_TMPDIR/elsewhere" "$STATE_DIR/mounts"
        helper mount-bind "$(bind_request /data)"
        assert_failure
        is "$(find "$BATS_TEST_TMPDIR/elsewhere" -mindepth 1)" ""
        rm "$STATE_DIR/mounts"
}

@test "a device that is mounted on the node is not handed out raw" {
        needs mount-block
        start_container plain
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/mnt"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/mnt"
        helper mount-block '{"container": '"$CONTAINER_PID"', "source": "'"$DEVICE"'", "target": "/disk", "raw": true}'
        assert_failure EBUSY
        umount "$BATS_TEST_TMPDIR/mnt"
}

@test "a directory of a pod that became a symbolic link is not mounted on, and what it leads to is not unmounted" {
        needs flexdriver
        driver_setup flexgraft~tmpfs
        make_dir "$(pod_dir data)"
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        rmdir "$(pod_dir data)"
        ln -s "$BATS_TEST_TMPDIR/elsewhere" "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(spec data)"
        assert_refused
        is "$(findmnt -n "$BATS_TEST_TMPDIR/elsewhere")" "" "what is mounted there"
        mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/elsewhere"
        call unmount "$(pod_dir data)"
        is "$(findmnt -n -o FSTYPE "$BATS_TEST_TMPDIR/elsewhere")" tmpfs "what is mounted there"
        umount "$BATS_TEST_TMPDIR/elsewhere"
        rm "$(pod_dir data)"
}

@test "detach leaves a loop device alone that another program has put another file behind" {
        needs flexdriver
        driver_setup flexgraft~loop
        truncate -s 1M "$BATS_TEST_TMPDIR/mine"
        give_away "$BATS_TEST_TMPDIR/mine" size=16m
        call detach data "$NODE"
        is "$(losetup --noheadings --raw --output BACK-FILE "${DEVICES[data]}")" "$BATS_TEST_TMPDIR/mine" "what is behind the device"
        losetup --detach "${DEVICES[data]}"
        call detach data "$NODE"
}

@test "a directory of a pod that becomes a symbolic link while the volume is mounted is not followed" {
        needs flexdriver
        driver_setup flexgraft~tmpfs
        local number
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        for _ in 1 2; do # the first one makes the state directory, too
                make_dir "$(pod_dir data)"
                at_syscall --at move_mount --log "$BATS_TEST_TMPDIR/log" "${DRIVER%/*}/verbs/mount" "$(pod_dir data)" "$(spec data)"
                assert_success
                call unmount "$(pod_dir data)"
        done
        number=$(awk '$3 == "openat" { last = $1 } $3 == "move_mount" { print last; exit }' "$BATS_TEST_TMPDIR/log") # where the directory is opened
        make_dir "$(pod_dir data)"
        at_syscall --at "$number" --run "rmdir '$(pod_dir data)' && ln -s '$BATS_TEST_TMPDIR/elsewhere' '$(pod_dir data)'" \
                "${DRIVER%/*}/verbs/mount" "$(pod_dir data)" "$(spec data)"
        assert_refused
        is "$AT_NAME" openat "the call before which the link was made"
        is "$(findmnt -n "$BATS_TEST_TMPDIR/elsewhere")" "" "what is mounted there"
        rm "$(pod_dir data)"
}
