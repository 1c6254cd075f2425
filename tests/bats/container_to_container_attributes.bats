#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: read-only, locked, nodev, options and propagation.

load helpers
load container_to_container_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-container-to-container mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# ---- attributes

@test "readOnly makes a mount that cannot be written, and leaves the source as it is" {
        start_two plain plain
        in_a mkdir /share
        c2c /share /data '"readOnly": true'
        assert_success
        assert_attributes /data ro nosuid nodev
        run ! in_b touch /data/made
        in_a touch /share/made
        in_b test -e /data/made
        in_b mount -o remount,bind,rw /data
        in_b touch /data/by-b
}

check_locked() {
        start_two "$1" "$2"
        in_a mkdir /share
        c2c /share /data '"readOnly": true, "locked": true'
        assert_success
        assert_attributes /data ro nosuid nodev
        run ! in_b mount -o remount,bind,rw /data
        run ! in_b mount -o remount,bind,rw,nosuid,nodev /data
        run ! in_b touch /data/made
        assert_attributes /data ro nosuid nodev
        in_a touch /share/made
}

@test "a locked read-only mount cannot be made writable by the container's root" {
        check_locked plain plain
}

@test "a locked read-only mount of a crun container's cannot be made writable by a runc container's root" {
        check_locked crun runc
}

@test "a locked read-only mount of a container without a user namespace cannot be made writable" {
        check_locked plain-nouserns plain
}

check_nodev() {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir -p /share/sub /other && mknod -m 0666 /share/zero c 1 5 && mknod -m 0666 /other/zero c 1 5 && mount --bind /other /share/sub'
        c2c /share /data "\"recursive\": true${1:+, $1}"
        assert_success
        local dir
        for dir in /data /data/sub; do
                assert_attributes "$dir" nosuid nodev
                run ! in_b mount -o remount,bind,dev "$dir"
                run ! in_b mount -o remount,bind,dev,nosuid "$dir"
                run ! in_b mount -o remount,bind,suid,nodev "$dir"
                run ! in_b head -c 1 "$dir/zero"
                assert_attributes "$dir" nosuid nodev
        done
        is "$(in_a head -c 1 /share/zero | wc -c)" 1
}

@test "a device node below the source is of no use in the target's container, and remount,dev is refused" {
        check_nodev
}

@test "a device node below the source of a locked mount is of no use, either" {
        check_nodev '"locked": true'
}

@test "the container's root has no device through a clone of its own of the mount" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /share && mknod -m 0666 /share/zero c 1 5'
        c2c /share /data
        assert_success
        in_b mkdir /copy
        run ! in_b sh -c 'mount --bind /data /copy && mount -o remount,bind,dev,suid /copy && head -c 1 /copy/zero'
        run ! in_b head -c 1 /copy/zero
}

@test "locked is not pretended for a container without a user namespace" {
        start_two plain plain-nouserns
        in_a mkdir /share
        fails_without_a_trace EINVAL /share /data '"readOnly": true, "locked": true'
}

@test "nosuid and nodev are the default without a user namespace, too" {
        start_two plain plain-nouserns
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_attributes /data rw nosuid nodev
}

@test "options are set, and the source's own mount keeps its own" {
        start_two plain plain
        in_a mkdir /share
        local before
        before=$(<"/proc/$A/mountinfo")
        c2c /share /data '"options": ["ro", "noexec", "nosymfollow"]'
        assert_success
        assert_attributes /data ro noexec nosymfollow
        is "$(<"/proc/$A/mountinfo")" "$before"
}

@test "noatime is set where the source's mount lets it, and else refused for the reason that it is locked" {
        start_two plain-nouserns plain
        in_a mkdir /share
        c2c /share /data '"options": "noatime"'
        assert_success
        assert_attributes /data noatime
        # the mounts that a user namespace begins with have theirs locked by the kernel
        start_two plain plain
        in_a mkdir /share
        remember
        c2c /share /data '"options": "noatime"'
        if [[ $status == 0 ]]; then
                assert_attributes /data noatime
        else
                assert_failure EPERM
                [[ $output == *atime* ]]
                assert_nothing_happened
        fi
}

@test "propagation is private by default: what either container mounts below, the other does not see" {
        start_two plain-shared plain-shared
        in_a mkdir -p /share/one /share/two
        c2c /share /data
        assert_success
        in_a mount -t tmpfs tmpfs /share/one
        assert_mounts_at /data/one 0
        in_b mount -t tmpfs tmpfs /data/two
        use_container "$A"
        assert_mounts_at /share/two 0
}

# bats test_tags=kernel
@test "propagation slave: what the source's container mounts below appears in the other, never the other way" {
        start_two plain-shared plain
        in_a mkdir -p /share/one /share/two
        c2c /share /data '"propagation": "slave"'
        assert_success
        in_a mount -t tmpfs tmpfs /share/one
        assert_mounts_at /data/one 1
        in_b mount -t tmpfs tmpfs /data/two
        use_container "$A"
        assert_mounts_at /share/two 0
}

@test "propagation shared never reaches back to the source's container" {
        start_two plain-shared plain
        in_a mkdir -p /share/one
        c2c /share /data '"propagation": "shared"'
        assert_success
        in_b mount -t tmpfs tmpfs /data/one
        use_container "$A"
        assert_mounts_at /share/one 0
}
