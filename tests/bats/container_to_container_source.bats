#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: what the source may be.

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

# ---- what the source may be

@test "mkdirSource makes a missing source that belongs to its container's root" {
        start_two crun runc
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        is "$(owners a /made)" 0:0
        is "$(owners a /made/by/us)" 0:0
        is "$(stat -c %u:%g "${bed_rootfs[$A]}/made/by/us")" 100000:100000
        assert_owners_agree /made/by/us /data
}

@test "mkdirSource makes a missing source in a container without a user namespace" {
        start_two plain-nouserns plain
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        assert_owners_agree /made/by/us /data
}

# bats test_tags=kernel
@test "mkdirSource makes a missing source in a tmpfs of the container's own, and takes it back when it cannot be mapped" {
        start_two plain plain
        c2c /tmp/made/by/us /data '"mkdirSource": true'
        if kernel_can map-tmpfs; then
                assert_success
                is "$(owners a /tmp/made/by/us)" 0:0
                assert_owners_agree /tmp/made/by/us /data
        else
                assert_failure
                in_a test ! -e /tmp/made
        fi
}

@test "mkdirSource leaves a source that is there as it is" {
        start_two plain plain
        in_a sh -c 'mkdir -m 0700 /share && chown 7:8 /share && touch /share/file'
        c2c /share /data '"mkdirSource": true'
        assert_success
        is "$(in_a stat -c %a:%u:%g /share)" 700:7:8
        in_b test -e /data/file
}

@test "what mkdirSource made is taken back on failure" {
        start_two plain plain
        in_a mkdir /there
        in_b touch /file
        # a directory does not go onto a file; something is mounted already; a magic link; no such directory
        fails_without_a_trace ENOTDIR /there/made/by/us /file '"mkdirSource": true'
        fails_without_a_trace EBUSY /made/by/us /tmp '"mkdirSource": true'
        fails_without_a_trace '' /made/by/us /proc/1/root/data '"mkdirSource": true'
        fails_without_a_trace ENOENT /made/by/us /none '"mkdirSource": true, "mkdir": false'
        in_b rm /file
        fails_without_a_trace EINVAL /made /data '"mkdirSource": true, "locked": true, "options": "bogus"' || [[ $status == 2 ]]
}

@test "what mkdirSource made is taken back when the target's container has died" {
        start_two plain plain
        local dead=$B
        stop_container "$B"
        a_before=$(view_of_a)
        helper mount-container-to-container "{\"from\": {\"container\": $A, \"path\": \"/made/by/us\"}, \"to\": {\"container\": $dead, \"path\": \"/data\"}, \"mkdirSource\": true}"
        assert_failure
        assert_a_unchanged
        assert_no_records
}

@test "a missing source fails with ENOENT, names it and its container, and leaves nothing" {
        start_two plain plain
        fails_without_a_trace ENOENT /none/at/all /made/data
        assert_field .error.subject /none/at/all
        [[ $(json_field .error.where) == *"$A"* ]]
        [[ $(json_field .error.where) != *"$B"* ]]
}

@test "a missing source in a container with a name says that name" {
        start_container crun
        A=$CONTAINER_PID
        local name=$CONTAINER_ID
        start_container plain 200000
        B=$CONTAINER_PID
        helper mount-container-to-container "{\"from\": {\"container\": \"$name\", \"path\": \"/none\"}, \"to\": {\"container\": $B, \"path\": \"/data\"}}"
        assert_failure ENOENT
        [[ $(json_field .error.where) == *"$name"* ]]
}

@test "symbolic links in the source stay within its container" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        touch "$outside/of-the-node"
        start_two plain plain
        in_a mkdir -p "$outside" /inner
        in_a touch "$outside/of-a" /inner/of-a
        in_a ln -s "$outside" /absolute
        in_a ln -s ../../../../../../../inner /climbing
        in_a ln -s /absolute /chain
        local source
        for source in /absolute /climbing /chain "$outside" /inner/../../../inner /absolute/../outside; do
                c2c "$source" /data
                assert_success
                in_b test -e /data/of-a
                in_b test ! -e /data/of-the-node
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
}

@test "a symbolic link whose end is only on the node is a missing source" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        start_two plain plain
        in_a ln -s "$outside" /link
        fails_without_a_trace ENOENT /link /data
        fails_without_a_trace ENOENT /link/inner /data
}

check_magic_source() {
        start_two "$1" "$2"
        in_a ln -s /proc/1/root /magic
        local source
        for source in /proc/1/root /proc/self/root /proc/1/root/etc /proc/1/cwd /magic /magic/etc /proc/self/exe /proc/1/fd/0 /proc/thread-self/root/etc; do
                remember
                c2c "$source" /data
                assert_failure
                [[ $(json_field .error.errno) =~ ^(ELOOP|EPERM|ENOENT)$ ]]
                assert_nothing_happened
        done
        fails_without_a_trace ELOOP /proc/1/root /data
        fails_without_a_trace ELOOP /magic/etc /data
        fails_without_a_trace '' /magic/made /data '"mkdirSource": true'
}

@test "magic links in the source are refused" {
        check_magic_source plain plain
}

@test "magic links in the source are refused without a user namespace" {
        check_magic_source plain-nouserns plain-nouserns
}

@test "magic links in the source are refused when the container has the node's proc" {
        start_two plain-hostpid plain
        local source
        for source in /proc/1/root /proc/1/root/etc /proc/self/root; do
                remember
                c2c "$source" /data
                assert_failure
                assert_nothing_happened
        done
}

@test "symbolic links in a circle fail with ELOOP" {
        start_two plain plain
        in_a ln -s /two /one
        in_a ln -s /one /two
        fails_without_a_trace ELOOP /one /data
        [[ $(json_field .error.where) == *"$A"* ]]
}

check_device_source() {
        start_two plain-nouserns "$1"
        in_a sh -c 'mknod /char c 1 5 && mknod /block b 7 0'
        in_a ln -s /char /link
        local source
        for source in /char /block /link /dev/null; do
                fails_without_a_trace EINVAL "$source" /data
                [[ $(json_field .message) == *"a device file"* ]]
                fails_without_a_trace EINVAL "$source" /data '"options": "dev"'
        done
}

@test "a device file is no source" {
        check_device_source plain
}

@test "a device file is no source for a container without a user namespace, either" {
        check_device_source plain-nouserns
}

check_kernel_source() {
        start_two "$1" "$2"
        local source
        for source in /proc /proc/sys /proc/sys/kernel/hostname /proc/1 /sys /sys/kernel; do
                fails_without_a_trace EPERM "$source" /data
                [[ $(json_field .error.where) == *"$A"* ]]
        done
        if grep -q ' /sys/fs/cgroup .* - cgroup2 ' "/proc/$A/mountinfo"; then
                fails_without_a_trace EPERM /sys/fs/cgroup /data
        fi
        fails_without_a_trace '' /proc/made /data '"mkdirSource": true'
}

@test "procfs, sysfs and cgroupfs are no sources" {
        check_kernel_source plain plain
}

@test "procfs, sysfs and cgroupfs are no sources without user namespaces" {
        check_kernel_source plain-nouserns plain-nouserns
}

@test "procfs below a source never comes along" {
        # a recursive mount of a whole root would bring its proc: what that shows of one container is not for another
        start_two plain plain
        remember
        c2c / /data '"recursive": true'
        assert_one_json_line
        if [[ $status == 0 ]]; then
                in_b test ! -e /data/proc/1
                in_b test ! -e /data/sys/kernel
        else
                assert_failure
                assert_nothing_happened
        fi
}

@test "the whole root directory of a container is mounted in another" {
        start_two plain plain
        in_a touch /mark
        c2c / /data
        assert_success
        in_b test -e /data/mark
        in_b test ! -e /data/proc/1
        is "$(owners b /data)" 0:0
}

@test "a mount that its container made unbindable is refused, and nothing is left" {
        start_two plain plain
        in_a sh -c 'mkdir /share && mount -t tmpfs tmpfs /share && mount --make-unbindable /share'
        fails_without_a_trace '' /share /made/data
}

@test "a source that is too long, or has a component that is, is refused cleanly" {
        start_two plain plain
        local name
        printf -v name '%0300d' 0
        remember
        c2c "/$name" /data
        [[ $status != 0 ]]
        assert_one_json_line
        assert_nothing_happened
}

@test "source and target may have odd names" {
        start_two plain plain
        local odd=$'/a b,c=d:e\n\\ö"/#%s$(id)' request
        in_a mkdir -p "$odd"
        in_a touch "$odd/file"
        request=$(jq -cn --argjson a "$A" --argjson b "$B" --arg path "$odd" '{from: {container: $a, path: $path}, to: {container: $b, path: $path}}')
        helper mount-container-to-container "$request"
        assert_success
        assert_mounts_at "$odd" 1
        in_b test -e "$odd/file"
        is "$(jq -j .mount.from.path <<<"$json"; echo x)" "$odd"x
        helper mount-container-to-container "$request"
        assert_field .mount.alreadyMounted true
}
