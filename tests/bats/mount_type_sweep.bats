#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount.flexgraft and umount.flexgraft: killed, or refused, at any system call; what follows puts things right.
# bats file_tags=sweep

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load mount_type_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        mount_type_setup
        helper volume-create '{"name": "db", "size": "8Mi"}'
        assert_success
        MOUNT=$FLEXGRAFT_BIN/mount.flexgraft UMOUNT=$FLEXGRAFT_BIN/umount.flexgraft
        AROUND=(--reply plain --failure-status-max 32 --not-undone "mounted, but" --watch mounts self --watch tree "$STATE_DIR" --watch loops "$BATS_TEST_TMPDIR/")
}

teardown() {
        mount_type_teardown
        driver_teardown
}

# sweep_mount ACTION...: a round is one life of a mount: the program with the action, mount(8) after it, umount(8).
sweep_mount() {
        sweep "${AROUND[@]}" "$@" -- \
                act "$MOUNT" db "$POINT" -o noatime ';' \
                sh "! mountpoint --quiet '$POINT' || findmnt --mtab -rno OPTIONS --mountpoint '$POINT' | grep -q ,helper=flexgraft" ';' \
                on-success mounts self "$POINT" 1 ';' \
                on-failure mounts self "$POINT" 0 ';' \
                on-failure loops "$BATS_TEST_TMPDIR/" 0 ';' \
                sh "mount -t flexgraft db '$POINT' 2>/dev/null; [ \$? = 0 ] || findmnt --mtab -rno OPTIONS --mountpoint '$POINT' | grep -q ,helper=flexgraft" ';' \
                mounts self "$POINT" 1 ';' \
                sh "umount '$POINT'" ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}

@test "mount.flexgraft killed before any call: mount again, and umount leaves nothing" {
        sweep_mount --kill
}

@test "mount.flexgraft killed before any call while its worker lives on" {
        sweep_mount --kill-main
}

@test "mount.flexgraft refused any call: it says so, and leaves nothing" {
        # without memory the dynamic loader says so in its own words, with status 127
        AROUND[1]=any AROUND[3]=127
        sweep_mount --fail ENOMEM
}

@test "umount.flexgraft killed before any call: mount and umount again leave nothing" {
        sweep "${AROUND[@]}" --kill -- \
                sh "mount -t flexgraft db '$POINT'" ';' \
                act "$UMOUNT" "$POINT" ';' \
                sh "umount '$POINT' 2>/dev/null; mount -t flexgraft db '$POINT' && umount '$POINT'" ';' \
                mounts self "$POINT" 0 ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}
