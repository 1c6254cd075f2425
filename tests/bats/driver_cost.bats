#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a call of the driver asks of the kernel: nothing twice, and the disk to be waited for only where a power cut would lose a volume.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        # The records and the pool, on one filesystem that keeps the order of renames.
        export EXT4=$BATS_FILE_TMPDIR/ext4.img
        truncate -s 48M "$EXT4"
        mkfs.ext4 -q -m0 "$EXT4"
}

setup() {
        bed_setup
        mkdir -m 0700 "$STATE_DIR"
        cp --sparse=always "$EXT4" "$BATS_TEST_TMPDIR/ext4.img"
        mount -o loop "$BATS_TEST_TMPDIR/ext4.img" "$STATE_DIR"
        chmod 0700 "$STATE_DIR"
        driver_setup
        TRACE=$BATS_TEST_TMPDIR/trace
}

teardown() {
        driver_teardown
}

# traced CALLS COMMAND...: calls of the driver, whose system calls CALLS are in $TRACE: those of the last call.
traced() {
        CALL_PREFIX=(strace -f -y -o "$TRACE" -e "trace=$1")
        "${@:2}" || return 1
        CALL_PREFIX=()
}

# times PATTERN: how often it is in the trace.
times() {
        grep -cE -e "$1" "$TRACE" || :
}

# bats test_tags=text
@test "the record that says that mkfs runs is on the disk before mkfs writes into blocks that an image has already" {
        call attach "$(loop_spec first)" "$NODE" # the pool is there
        dd if=/dev/zero of="$(image_of data)" bs=1M count=8 conv=fsync status=none
        attached_loop data
        traced fsync,fdatasync kubelet_stage data
        is "$(times 'fsync.*/volumes/[.]data[.]json[.]tmp>')" 1
        is "$(times 'fsync.*/volumes>')" 1
}

# bats test_tags=text
@test "attach of a new volume waits for the disk for its record, its image and its pool" {
        call attach "$(loop_spec first)" "$NODE" # the pool gets its identity
        assert_success
        traced fsync,fdatasync call attach "$(loop_spec data)" "$NODE"
        assert_success
        is "$(times 'f(data)?sync[(]')" 3
        is "$(times 'fsync.*/provisioned/[.]data[.]json[.]tmp>')" 1
        is "$(times 'fsync.*/pools/default/data[.]img>')" 1
        is "$(times 'fsync.*/pools/default>')" 1
}

# bats test_tags=text
@test "mountdevice waits for the disk where mkfs does, and for no record" {
        attached_loop data
        traced fsync,fdatasync kubelet_stage data
        is "$(times "fsync.*<$STATE_DIR/")" 0
        (($(times 'fsync') > 0))
}

@test "records that are on another disk than the image are on it before the image is used" {
        mkdir "$BATS_TEST_TMPDIR/other"
        mount -t tmpfs -o mode=0755 tmpfs "$BATS_TEST_TMPDIR/other"
        printf '{"type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/other" >"$FLEXGRAFT_POOLS/other.json"
        traced fsync,fdatasync call attach "$(loop_spec data pool=other)" "$NODE"
        assert_success
        is "$(times 'fsync.*/provisioned/[.]data[.]json[.]tmp>')" 2
        is "$(times 'fsync.*/provisioned>')" 2
}

# bats test_tags=text
@test "attach opens its pool once" {
        call attach "$(loop_spec first)" "$NODE" # the pool gets its identity
        assert_success
        traced openat call attach "$(loop_spec data)" "$NODE"
        assert_success
        is "$(times '"default.json"')" 1 "the pool's identity is read"
        is "$(times "openat[^\"]*\"$STATE_DIR/pools/default\"")" 1
}

# bats test_tags=text
@test "mountdevice reads what volume-create recorded once, and once more with its lock" {
        attached_loop data
        traced openat kubelet_stage data
        is "$(times '/provisioned>, "data.json"')" 2
}

# bats test_tags=text
@test "a record that is written is not read again for that" {
        attached_loop data
        kubelet_stage data
        traced openat kubelet_publish data
        (($(times "/volumes>, \"[.]data[.]json[.]tmp\"") > 0))
        is "$(times '/volumes>, "data[.]json"')" 1
}

# bats test_tags=text
@test "the state directory is opened once for all sorts of records" {
        attached_loop data
        traced openat kubelet_stage data
        is "$(grep -v O_PATH "$TRACE" | grep -cE "openat[^\"]*\"$STATE_DIR\"")" 1
}

# bats test_tags=text
# A copy of its memory is one of its page tables, and of each page that either of them writes to.
@test "the process that becomes mkfs has no copy of its parent's memory" {
        attached_loop data
        traced clone,fork,vfork,execve kubelet_stage data
        is "$(times 'execve[(]"[^"]*/mkfs[.]ext4"')" 1
        is "$(times 'flags=CLONE_VM[|]CLONE_VFORK')" 1
}

@test "detach asks once which records name the device" {
        mkdir -m 0700 "$STATE_DIR/mounts" # as on a node that has mounts in containers
        attached_loop data
        traced openat kubelet_detach data
        is "$(times '"../uses/b[0-9a-f]*"')" 1
}

@test "entries of a disk in sysfs that are no partitions are not asked" {
        attached_loop data
        traced faccessat2,faccessat,access kubelet_detach data
        is "$(times '/partition"')" 0
}
