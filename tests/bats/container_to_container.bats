#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: a file or directory of one container, into another, with owners as each counts.

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

# ---- owners

check_directory() {
        start_two "$1" "$2"
        in_a mkdir -p /share/inner
        in_a chown 7:8 /share/inner
        c2c /share /data
        assert_success
        assert_field .mount.idMapping "$3"
        assert_mounts_at /data 1
        is "$(owners b /data)" 0:0
        is "$(owners b /data/inner)" 7:8
        assert_owners_agree /share /data 65535
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
        in_a test -d /share/inner
}

@test "a directory of a crun container is mounted in a runc container, with owners as each counts" {
        check_directory crun runc idmapped
}

@test "a directory of a runc container is mounted in a crun container, with owners as each counts" {
        check_directory runc crun idmapped
}

# bats test_tags=kernel
@test "a directory of a container is mounted in another, with owners as each counts" {
        check_directory plain plain idmapped
}

@test "a directory of a container without a user namespace is mounted in one with" {
        check_directory plain-nouserns plain idmapped
}

@test "a directory of a container with a user namespace is mounted in one without" {
        check_directory plain plain-nouserns idmapped
}

@test "a directory of a crun container without a user namespace is mounted in a runc container without" {
        check_directory crun-nouserns runc-nouserns none
}

@test "two containers that share a user namespace need no mapping" {
        start_container plain
        A=$CONTAINER_PID
        USERNS_OF=$A start_container plain
        B=$CONTAINER_PID
        is "$(readlink "/proc/$A/ns/user")" "$(readlink "/proc/$B/ns/user")"
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_field .mount.idMapping none
        assert_owners_agree /share /data 65535
}

@test "two containers with the same map in different user namespaces see the same owners" {
        start_two plain plain 100000 100000
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_owners_agree /share /data 65535
}

@test "two containers with maps that overlap see the same owners" {
        # what is id 100 of one on the disk is id 600 of the other there
        start_two plain plain 100500 100000
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_owners_agree /share /data 100 600 65000
}

@test "the directory /tmp of two containers with maps that overlap, too" {
        kernel_can map-tmpfs || skip "this kernel cannot map a tmpfs"
        start_two plain plain 500 1000
        in_a mkdir /tmp/share
        c2c /tmp/share /data
        assert_success
        assert_owners_agree /tmp/share /data 500 1000 1500 65000
}

@test "maps of several ranges are followed range by range" {
        MAP='0 100000 1000,1000 300000 64536' start_container plain 100000
        A=$CONTAINER_PID
        MAP='0 200000 500,500 400000 65036' start_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_field .mount.idMapping idmapped
        assert_owners_agree /share /data 499 500 999 1000 40000 65535
        in_b touch /data/made
        in_b chown 40000:600 /data/made
        is "$(stat -c %u:%g "${bed_rootfs[$A]}/share/made")" 339000:100600 "owners on the node"
}

@test "an id that the target's container lacks is the overflow id there" {
        start_container plain
        A=$CONTAINER_PID
        MAP='0 200000 1000' start_container plain 200000
        B=$CONTAINER_PID
        in_a sh -c 'mkdir /share && touch /share/has /share/lacks && chown 999:999 /share/has && chown 1000:1000 /share/lacks && chmod 0600 /share/lacks'
        c2c /share /data
        assert_success
        is "$(owners b /data/has)" 999:999
        is "$(owners b /data/lacks)" 65534:65534
        run ! in_b cat /data/lacks
        assert_owners_agree /share /data 999
}

@test "an owner that the source's container does not know becomes the overflow id, not another owner" {
        start_two plain plain
        in_a mkdir /share
        touch "${bed_rootfs[$A]}/share/"{root,theirs}
        chown 5:5 "${bed_rootfs[$A]}/share/root"
        chown 200005:200005 "${bed_rootfs[$A]}/share/theirs"
        chown 70000:70000 "${bed_rootfs[$A]}/share"
        c2c /share /data
        assert_success
        is "$(owners a /share)" 65534:65534
        is "$(owners b /data)" 65534:65534
        is "$(owners b /data/root)" 65534:65534
        is "$(owners b /data/theirs)" 65534:65534
}

@test "a file is mounted, with owners as each counts" {
        start_two plain plain
        in_a sh -c 'echo text >/file && chown 7:8 /file'
        c2c /file /etc/injected
        assert_success
        is "$(in_b cat /etc/injected)" text
        is "$(owners b /etc/injected)" 7:8
        in_b sh -c 'echo more >>/etc/injected; chown 0:0 /etc/injected'
        is "$(in_a tail -n 1 /file)" more
        is "$(owners a /file)" 0:0
        helper mount-remove "$(remove_request /etc/injected)"
        assert_success
        [[ ! -e ${bed_rootfs[$B]}/etc/injected ]]
}

@test "a file is mounted onto a file that is there" {
        start_two plain plain
        in_a sh -c 'echo text >/file'
        c2c /file /etc/passwd
        assert_success
        is "$(in_b cat /etc/passwd)" text
        helper mount-remove "$(remove_request /etc/passwd)"
        assert_success
        is "$(in_b head -c 4 /etc/passwd)" root
}

# serve_in_a PATH: a server on a socket there, which only its owner may call.
serve_in_a() {
        background_ready nsenter --target "$A" --mount --user --pid -- /bin/unix-hello "$1" hello
}

@test "a socket in a directory is called from the other container" {
        start_two crun runc
        in_a mkdir /share
        serve_in_a /share/socket
        c2c /share /data
        assert_success
        is "$(in_b unix-hello /data/socket)" hello
}

@test "a socket itself is mounted and called from the other container" {
        start_two plain plain
        in_a mkdir /share
        serve_in_a /share/socket
        c2c /share/socket /run/socket
        assert_success
        is "$(owners b /run/socket)" 0:0
        is "$(in_b unix-hello /run/socket)" hello
        helper mount-remove "$(remove_request /run/socket)"
        assert_success
        in_b test ! -e /run/socket
}

# bats test_tags=kernel
@test "a socket in a tmpfs is called from the other container" {
        start_two plain plain
        serve_in_a /tmp/socket
        c2c /tmp /data
        if kernel_can map-tmpfs; then
                assert_success
                is "$(in_b unix-hello /data/socket)" hello
        else
                assert_failure
        fi
}

check_tmpfs() {
        start_two "$1" "$2"
        in_a sh -c 'mkdir /tmp/share && chown 7:8 /tmp/share'
        remember
        c2c /tmp/share /made/data
        if kernel_can map-tmpfs; then
                assert_success
                assert_field .mount.idMapping idmapped
                is "$(owners b /made/data)" 7:8
                assert_owners_agree /tmp/share /made/data 65535
                c2c /tmp /whole
                assert_success
                is "$(owners b /whole/share)" 7:8
                is "$(in_b stat -c %a /whole)" 1777
        else
                assert_failure
                [[ $(json_field .error.errno) =~ ^(EOPNOTSUPP|EINVAL)$ ]]
                assert_field '.error | has("hint")' true
                assert_nothing_happened
        fi
}

# bats test_tags=kernel
@test "a tmpfs of a container's own is mounted in another, or refused with a hint by a kernel that cannot map it" {
        check_tmpfs plain plain
}

# bats test_tags=kernel
@test "a tmpfs of a crun container's own is mounted in a runc container, or refused" {
        check_tmpfs crun runc
}

# bats test_tags=kernel
@test "a tmpfs of a container without a user namespace is mounted in one with, or refused" {
        check_tmpfs plain-nouserns plain
}

# bats test_tags=kernel
@test "a tmpfs of a container with a user namespace is mounted in one without, or refused" {
        check_tmpfs plain plain-nouserns
}

@test "a tmpfs is mounted between two containers without user namespaces on every kernel" {
        start_two plain-nouserns plain-nouserns
        in_a mkdir /tmp/share
        c2c /tmp/share /data
        assert_success
        assert_field .mount.idMapping none
        assert_owners_agree /tmp/share /data
}

@test "with ids host owners are the node's" {
        start_two plain plain
        in_a sh -c 'mkdir /share && touch /share/file'
        c2c /share /data '"ids": "host"'
        assert_success
        assert_field .mount.idMapping host
        is "$(owners b /data/file)" 65534:65534
        chown 200007:200007 "${bed_rootfs[$A]}/share/file"
        is "$(owners b /data/file)" 7:7
}

# ---- cost

# traced CALLS: what strace -f writes of these system calls of one mount goes to $BATS_TEST_TMPDIR/trace.
traced() {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir /data
        HELPER_PREFIX=(strace -f -e "trace=$1" -o "$BATS_TEST_TMPDIR/trace")
        c2c /share /data
        HELPER_PREFIX=()
        assert_success
        assert_owners_agree /share /data
}

@test "each container's maps of ids are read once" {
        traced openat
        is "$(grep -cE '"[ug]id_map", O_RDONLY' "$BATS_TEST_TMPDIR/trace")" 4 "maps are opened"
}

@test "no process of a call copies its memory" {
        traced clone,fork,vfork
        assert_memory_is_shared "$BATS_TEST_TMPDIR/trace"
}

@test "a call starts three processes: one with a time limit, one for the clone and its mapping, one for the lock" {
        traced clone
        is "$(grep -c 'clone(' "$BATS_TEST_TMPDIR/trace")" 3 "processes are started"
}
