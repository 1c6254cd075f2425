#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-tmpfs: memory for a container, as much as it is given.

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-tmpfs mount-remove mount-list
}

teardown() {
        bed_teardown
}

# tmpfs_request [MORE]
tmpfs_request() {
        printf '{"container": %s, "target": "/data"%s}' "$CONTAINER_PID" "${1:+, $1}"
}

mount_tmpfs() {
        helper mount-tmpfs "$(tmpfs_request "$@")"
}

size_of() {
        in_container df -k "$1" | awk 'END {print $(NF - 4)}'
}

# What can be seen of the superblock: its own options in mountinfo.
superblock_options() {
        local line
        line=$(mount_line /data)
        echo "${line##* }"
}

check_runtime() {
        start_container "$1"
        container_snapshot
        mount_tmpfs '"size": "2m", "mode": "0750"'
        assert_success
        assert_field .mount.type tmpfs
        assert_field .mount.source tmpfs
        assert_field .mount.target /data
        assert_field .mount.idMapping none
        assert_field .mount.alreadyMounted false
        assert_field '.mount.options | contains(["rw", "nosuid", "nodev"])' true
        assert_mounts_at /data 1
        assert_attributes /data rw nosuid nodev
        is "$(in_container stat -c %u:%g:%a /data)" 0:0:750
        is "$(size_of /data)" 2048
        in_container sh -c 'echo text >/data/file && chown 7:8 /data/file'
        is "$(in_container stat -c %u:%g /data/file)" 7:8
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0] | .type, .state' $'tmpfs\npresent'
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
        assert_container_unchanged
}

# bats test_tags=kernel
@test "a tmpfs belongs to the container's root" {
        check_runtime plain
}

@test "a tmpfs without a user namespace" {
        check_runtime plain-nouserns
}

@test "a tmpfs in a crun container" {
        check_runtime crun
}

@test "a tmpfs in a crun container without a user namespace" {
        check_runtime crun-nouserns
}

@test "a tmpfs in a runc container" {
        check_runtime runc
}

@test "a tmpfs in a runc container without a user namespace" {
        check_runtime runc-nouserns
}

@test "the default is a directory for all users, of the container's root" {
        start_container plain
        mount_tmpfs
        assert_success
        is "$(in_container stat -c %u:%g:%a /data)" 0:0:1777
}

# ---- size

# check_size VALUE KIB
check_size() {
        mount_tmpfs "\"size\": $1"
        assert_success
        is "$(size_of /data)" "$2" "size in KiB for $1"
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "the size is a number of bytes, or has a suffix" {
        start_container plain
        check_size 1048576 1024
        check_size '"1048576"' 1024
        check_size '"64k"' 64
        check_size '"64K"' 64
        check_size '"64Ki"' 64
        check_size '"3m"' 3072
        check_size '"3M"' 3072
        check_size '"3Mi"' 3072
        check_size '"1g"' 1048576
        check_size '"1Gi"' 1048576
        check_size '"2T"' 2147483648
        check_size 1 4
        check_size 4097 8
}

@test "the size is a part of the node's memory" {
        start_container plain
        local memory half
        memory=$(awk '$1 == "MemTotal:" {print $2}' /proc/meminfo)
        mount_tmpfs '"size": "50%"'
        assert_success
        half=$(size_of /data)
        ((half > memory * 49 / 100 && half < memory * 51 / 100)) || { echo "$half of $memory"; return 1; }
}

@test "size, mode, inodes, uid and gid are options too" {
        start_container plain
        mount_tmpfs '"options": "size=1m,mode=751,nr_inodes=50,uid=3,gid=4,noexec"'
        assert_success
        is "$(in_container stat -c %u:%g:%a /data)" 3:4:751
        is "$(size_of /data)" 1024
        [[ $(superblock_options) == *nr_inodes=50* ]]
        assert_attributes /data noexec nosuid nodev
}

@test "options in an array" {
        start_container plain
        mount_tmpfs '"options": ["size=1m", "mode=0700", "noatime"]'
        assert_success
        is "$(size_of /data)" 1024
        is "$(in_container stat -c %a /data)" 700
        assert_attributes /data noatime
}

check_size_limits() {
        start_container "$1"
        mount_tmpfs '"size": "1m"'
        assert_success
        run in_container dd if=/dev/zero of=/data/fill bs=64k count=32
        [[ $status != 0 && $output == *"No space left on device"* ]]
        is "$(in_container stat -c %s /data/fill)" 1048576
        in_container rm /data/fill
        in_container dd if=/dev/zero of=/data/fill bs=64k count=15
}

@test "more than the size does not fit" {
        check_size_limits plain
}

@test "more than the size does not fit, in a crun container" {
        check_size_limits crun
}

@test "more than the size does not fit, without a user namespace" {
        check_size_limits plain-nouserns
}

@test "more files than inodes do not fit" {
        start_container plain
        mount_tmpfs '"inodes": 10'
        assert_success
        # the root directory is one of them
        in_container sh -c 'cd /data && touch 1 2 3 4 5 6 7 8 9'
        run in_container touch /data/10
        [[ $status != 0 && $output == *"No space left on device"* ]]
        in_container rm /data/1
        in_container mkdir /data/10
}

@test "inodes may have a suffix" {
        start_container plain
        mount_tmpfs '"inodes": "10k"'
        assert_success
        [[ $(superblock_options) =~ nr_inodes=(10k|10240)(,|$) ]]
}

# reconfigure OPTION=VALUE: what the container's root may try: mount(2), and fspick and fsconfig through a tool of our own.
reconfigure() {
        run ! in_container mount -o "remount,$1" /data
        run ! in_container mount -o "remount,bind,$1" /data 2>/dev/null || :
        run ! in_container /bin/reconfigure /data "${1%%=*}" "${1#*=}"
        [[ $output == *"not permitted"* || $output == *"denied"* ]] || { echo "reconfigure $1: $output"; return 1; }
}

check_cannot_raise() {
        start_container "$1"
        cp "$FLEXGRAFT_TOOLS/reconfigure" "$CONTAINER_ROOTFS/bin/"
        mount_tmpfs "\"size\": \"1m\", \"inodes\": 100${2:+, $2}"
        assert_success
        reconfigure size=100m
        reconfigure nr_inodes=100000
        reconfigure size=0
        is "$(size_of /data)" 1024
        run ! in_container dd if=/dev/zero of=/data/fill bs=64k count=32
        # the tool does what it says where it may
        in_container mkdir /own
        in_container mount -t tmpfs -o size=1m own /own
        in_container /bin/reconfigure /own size 2m
        is "$(size_of /own)" 2048
}

# bats test_tags=kernel
@test "the container's root cannot raise the limits" {
        check_cannot_raise plain
}

@test "the container's root cannot raise the limits in a crun container" {
        check_cannot_raise crun
}

@test "the container's root cannot raise the limits with ids host" {
        check_cannot_raise plain '"ids": "host"'
}

# bats test_tags=kernel
@test "the container's root cannot raise the limits with ids idmapped" {
        kernel_can map-tmpfs || skip "this kernel cannot map the ids of a tmpfs"
        check_cannot_raise plain '"ids": "idmapped"'
}

@test "the container's root cannot raise the limits of a locked tmpfs" {
        check_cannot_raise plain '"locked": true'
}

@test "the container's root cannot raise the limits through a mount of its own of it" {
        start_container plain
        cp "$FLEXGRAFT_TOOLS/reconfigure" "$CONTAINER_ROOTFS/bin/"
        mount_tmpfs '"size": "1m"'
        assert_success
        in_container mkdir /again
        in_container mount --bind /data /again
        run ! in_container /bin/reconfigure /again size 100m
        is "$(size_of /data)" 1024
}

# ---- owners

@test "uid and gid are the container's" {
        start_container plain
        mount_tmpfs '"uid": 1000, "gid": 65535, "mode": "0700"'
        assert_success
        is "$(in_container stat -c %u:%g:%a /data)" 1000:65535:700
        is "$(stat -c %u:%g "/proc/$CONTAINER_PID/root/data")" 101000:165535
}

@test "uid and gid without a user namespace" {
        start_container plain-nouserns
        mount_tmpfs '"uid": 1000, "gid": 100000'
        assert_success
        is "$(in_container stat -c %u:%g /data)" 1000:100000
}

@test "a key says more than an option" {
        start_container plain
        mount_tmpfs '"uid": 5, "options": "uid=7,gid=8"'
        assert_success
        is "$(in_container stat -c %u:%g /data)" 5:8
}

# check_not_mapped MORE ID
check_not_mapped() {
        start_container plain
        container_snapshot
        node_snapshot
        mount_tmpfs "$1"
        assert_failure
        [[ $(json_field .message) == *"$2"* ]] || { echo "the id is not named"; show_last; return 1; }
        assert_container_unchanged
        assert_node_unchanged
}

@test "a uid that the container does not have fails and is named" {
        check_not_mapped '"uid": 70000' 70000
}

@test "a gid that the container does not have fails and is named" {
        check_not_mapped '"gid": 65536' 65536
}

@test "a uid among the options that the container does not have fails and is named" {
        check_not_mapped '"options": "uid=70000"' 70000
}

@test "a uid that the container does not have fails with ids idmapped, too" {
        kernel_can map-tmpfs || skip "this kernel cannot map the ids of a tmpfs"
        check_not_mapped '"uid": 70000, "ids": "idmapped"' 70000
}

# check_ids WORD
check_ids() {
        start_container plain 200000
        mount_tmpfs "\"ids\": \"$1\", \"uid\": 3, \"gid\": 4, \"size\": \"1m\""
        assert_success
        assert_field .mount.idMapping "$1"
        is "$(in_container stat -c %u:%g /data)" 3:4
        in_container sh -c 'echo text >/data/file && chown 7:8 /data/file'
        is "$(in_container stat -c %u:%g /data/file)" 7:8
        is "$(size_of /data)" 1024
        mount_tmpfs "\"ids\": \"$1\", \"uid\": 3, \"gid\": 4, \"size\": \"1m\""
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
}

# bats test_tags=kernel
@test "ids userns: the superblock is the container's" {
        check_ids userns
}

# bats test_tags=kernel
@test "ids idmapped: where the kernel can, and a clear failure where not" {
        if kernel_can map-tmpfs; then
                check_ids idmapped
        else
                start_container plain
                container_snapshot
                node_snapshot
                mount_tmpfs '"ids": "idmapped"'
                assert_failure
                assert_field '.error | has("hint")' true
                assert_container_unchanged
                assert_node_unchanged
        fi
}

@test "ids userns of a crun container" {
        start_container crun
        mount_tmpfs '"ids": "userns"'
        assert_success
        in_container sh -c 'echo text >/data/file && chown 7:8 /data/file'
        is "$(in_container stat -c %u:%g /data /data/file | tr '\n' ' ')" "0:0 7:8 "
}

@test "ids host: owners are the node's" {
        start_container plain
        mount_tmpfs '"ids": "host", "mode": "1777"'
        assert_success
        assert_field .mount.idMapping host
        is "$(in_container stat -c %u:%g /data)" 65534:65534
        in_container touch /data/file
        is "$(in_container stat -c %u:%g /data/file)" 0:0
}

@test "ids userns and idmapped are refused to a container without a user namespace, or mean nothing" {
        start_container plain-nouserns
        local ids
        for ids in userns idmapped host auto; do
                mount_tmpfs "\"ids\": \"$ids\""
                assert_one_json_line
                if [[ $status == 0 ]]; then
                        assert_field .mount.idMapping none
                        is "$(in_container stat -c %u:%g /data)" 0:0
                        helper mount-remove "$(remove_request /data)"
                        assert_success
                else
                        assert_failure
                        [[ $ids != auto && $ids != host ]]
                        assert_mounts_at /data 0
                fi
        done
}

# ---- attributes

@test "readOnly makes a tmpfs that cannot be written" {
        start_container plain
        mount_tmpfs '"readOnly": true'
        assert_success
        assert_attributes /data ro
        run ! in_container touch /data/made
        [[ $output == *"Read-only file system"* ]]
        mount_tmpfs
        assert_failure EBUSY
}

@test "nosuid and nodev of a locked tmpfs stay" {
        start_container plain
        mount_tmpfs '"locked": true'
        assert_success
        run ! in_container mount -o remount,bind,dev,suid /data
        assert_attributes /data nosuid nodev
}

@test "a locked readOnly tmpfs stays read-only" {
        start_container crun
        mount_tmpfs '"locked": true, "readOnly": true'
        assert_success
        run ! in_container mount -o remount,bind,rw /data
        run ! in_container mount -o remount,rw /data
        run ! in_container touch /data/made
}

@test "the container may take its own tmpfs away when it is not locked" {
        start_container plain
        mount_tmpfs
        assert_success
        in_container umount /data
        assert_mounts_at /data 0
        mount_tmpfs
        assert_success
        assert_field .mount.alreadyMounted false
        assert_mounts_at /data 1
}

# put_setuid_program PATH: in the container, a setuid program that tells as whom it runs.
put_setuid_program() {
        gcc -O2 -static -o "$BATS_TEST_TMPDIR/program" -x c - <<<'#include <stdio.h>
                #include <unistd.h>
                int main(void) { return printf("%d\n", (int)geteuid()) < 0; }'
        cp "$BATS_TEST_TMPDIR/program" "/proc/$CONTAINER_PID/root$1"
        chmod 4755 "/proc/$CONTAINER_PID/root$1"
}

@test "no device node and no setuid program of a tmpfs works by default" {
        start_container plain-nouserns
        mount_tmpfs
        assert_success
        in_container mknod -m 666 /data/null c 1 3
        run ! in_container sh -c 'echo >/data/null'
        put_setuid_program /data/program
        is "$(nsenter --target "$CONTAINER_PID" --mount --setuid 1000 --setgid 1000 -- /data/program)" 1000
}

@test "dev and suid may be asked for" {
        start_container plain-nouserns
        mount_tmpfs '"options": "dev,suid"'
        assert_success
        in_container mknod -m 666 /data/null c 1 3
        in_container sh -c 'echo >/data/null'
        put_setuid_program /data/program
        is "$(nsenter --target "$CONTAINER_PID" --mount --setuid 1000 --setgid 1000 -- /data/program)" 0
}

@test "a label with a colon and other odd values reach the kernel as they are" {
        start_container plain
        node_snapshot
        mount_tmpfs '"options": ["huge=never"]'
        if [[ $status == 0 ]]; then
                assert_success
        else
                assert_failure EINVAL
                assert_node_unchanged
        fi
        helper mount-remove "$(remove_request /data)"
        mount_tmpfs '"options": ["mpol=interleave:0,1"]'
        assert_one_json_line
        [[ $status == 1 || $status == 0 ]]
}

# ---- what is refused

@test "an invalid size is refused" {
        start_container plain
        container_snapshot
        node_snapshot
        local value
        for value in 0 '"0"' '"0k"' -1 '"-1"' 1.5 '"1.5m"' '""' '"m"' '"64q"' '"64mb"' '"64m "' '" 64m"' '"101%"' '"0%"' '"5%%"' true null '[]' '{}' \
                '"9223372036854775808"' '"9999999999t"' '"0x10"'; do
                mount_tmpfs "\"size\": $value"
                assert_not_understood size || { echo "for $value"; return 1; }
        done
        mount_tmpfs '"size": 9223372036854775807000' # which no parser of JSON here holds: the place is named
        assert_not_understood "the request"
        for value in 0 '"0"' -1 '"10%"' '"many"' true 1.5; do
                mount_tmpfs "\"inodes\": $value"
                assert_not_understood inodes || { echo "for $value"; return 1; }
        done
        for value in 755 '"0o755"' '"778"' '"17777"' '"u=rwx"' '""' '"-1"' true; do
                mount_tmpfs "\"mode\": $value"
                assert_not_understood mode || { echo "for $value"; return 1; }
        done
        for value in -1 4294967295 4294967296 '"0"' 1.5 true; do
                mount_tmpfs "\"uid\": $value"
                assert_not_understood uid || { echo "for $value"; return 1; }
                mount_tmpfs "\"gid\": $value"
                assert_not_understood gid || { echo "for $value"; return 1; }
        done
        assert_container_unchanged
        assert_node_unchanged
}

@test "a size of 0 among the options does not mean without limit" {
        start_container plain
        container_snapshot
        node_snapshot
        local option
        for option in size=0 size=0k nr_blocks=0 nr_inodes=0; do
                mount_tmpfs "\"options\": \"$option\""
                assert_one_json_line
                [[ $status != 0 ]] || { echo "$option makes a tmpfs without a limit"; show_last; return 1; }
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "an option that tmpfs does not know fails with the kernel's message, and leaves nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        mount_tmpfs '"options": "nonesuch=7"'
        assert_failure EINVAL
        [[ $(json_field .error.kernel) == *nonesuch* ]]
        mount_tmpfs '"options": "mode=9"'
        assert_failure EINVAL
        assert_container_unchanged
        assert_node_unchanged
}

@test "keys of other helpers are not understood" {
        start_container plain
        local key
        for key in source fsType recursive raw lower from upper; do
                mount_tmpfs "\"$key\": \"x\""
                assert_not_understood "$key"
        done
        mount_tmpfs '"options": "rbind"'
        assert_not_understood options
        helper mount-tmpfs '{"target": "/data"}'
        assert_not_understood container
        helper mount-tmpfs "{\"container\": $CONTAINER_PID}"
        assert_not_understood target
        assert_mounts_at /data 0
}

@test "the same request twice gives one tmpfs, and its content stays" {
        start_container plain
        mount_tmpfs '"size": "1m"'
        assert_success
        in_container touch /data/mine
        mount_tmpfs '"size": "1m"'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
        in_container test -e /data/mine
}

@test "the same target with another size is refused" {
        start_container plain
        mount_tmpfs '"size": "1m"'
        assert_success
        mount_tmpfs '"size": "2m"'
        assert_failure EBUSY
        assert_mounts_at /data 1
        is "$(size_of /data)" 1024
}

# bats test_tags=kernel
@test "replace puts an empty tmpfs of another size in its place" {
        start_container plain
        mount_tmpfs '"size": "1m"'
        assert_success
        in_container touch /data/mine
        mount_tmpfs '"size": "2m", "replace": true'
        assert_success
        if kernel_can beneath; then
                assert_field .mount.replaced.atomic true
        else
                assert_field .mount.replaced.atomic false
        fi
        assert_mounts_at /data 1
        is "$(size_of /data)" 2048
        in_container test ! -e /data/mine
        is "$(records | wc -l)" 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "a tmpfs over the container's own directory, which comes back" {
        start_container plain
        in_container sh -c 'mkdir /data && touch /data/mine'
        mount_tmpfs
        assert_success
        in_container test ! -e /data/mine
        helper mount-remove "$(remove_request /data)"
        assert_success
        in_container test -e /data/mine
}

@test "a tmpfs is not put on a file" {
        start_container plain
        in_container touch /data
        container_snapshot
        node_snapshot
        mount_tmpfs
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "dryRun of a tmpfs changes nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        mount_tmpfs '"size": "1m", "dryRun": true'
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}

@test "memory is given back when the tmpfs is removed, also while it is open" {
        start_container plain
        mount_tmpfs '"size": "64m"'
        assert_success
        in_container dd if=/dev/zero of=/data/fill bs=1M count=32 2>/dev/null
        background in_container sleep 1000000 4</proc/self/status
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        is "$(grep -c ' /data ' "/proc/$CONTAINER_PID/mountinfo")" 0
        assert_no_records
}

@test "nothing of a tmpfs is seen on the node" {
        start_container plain
        local before
        before=$(node_mounts)
        mount_tmpfs
        assert_success
        is "$(node_mounts)" "$before"
}

# bats test_tags=sweep
@test "a tmpfs killed before any call: again succeeds, and remove leaves nothing" {
        local ids request
        start_container plain
        around_mount
        for ids in auto userns; do
                request=$(tmpfs_request "\"ids\": \"$ids\"")
                LABEL="ids $ids" sweep --kill "${AROUND[@]}" -- \
                        act "$FLEXGRAFT_BIN/mount-tmpfs" "$request" ';' \
                        on-success mounts "$CONTAINER_PID" /data 1 ';' \
                        call "$FLEXGRAFT_BIN/mount-tmpfs" "$request" ';' \
                        mounts "$CONTAINER_PID" /data 1 ';' \
                        call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" ';' \
                        same ';'
        done
        nothing_left
}

@test "a call whose worker hangs before its first step names that step" {
        start_container plain
        # the first call that is not the helper's own is its worker's; the signal stops that
        at_syscall --each '[ "$AT_PID" = "$AT_MAIN_PID" ] || kill -STOP "$AT_PID"' "$FLEXGRAFT_BIN/mount-tmpfs" "$(tmpfs_request '"timeoutSeconds": 1')"
        assert_failure ETIMEDOUT
        shows "no answer after 1 s from the step: open the container's process"
        assert_mounts_at /data 0
}
