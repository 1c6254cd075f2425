#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: sources that are id-mapped already, and mounts below the source.

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

# ---- what is id-mapped already

# bind_into_a [MORE]: the node's directory $SOURCE on /given in A; its root owns it on the node and in A.
bind_into_a() {
        use_container "$A"
        helper mount-bind "$(bind_request /given "$@")"
        use_container "$B"
        assert_success
        assert_field .mount.idMapping idmapped
}

# bats test_tags=kernel
@test "what mount-bind put into a container is mounted in another, with owners as each counts" {
        start_two plain plain
        bind_into_a
        c2c /given /data
        assert_success
        assert_field .mount.idMapping idmapped
        assert_owners_agree /given /data 65535
        in_b touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

# bats test_tags=kernel
@test "a directory below what mount-bind put into a container is mounted in another" {
        start_two crun runc
        mkdir -p "$SOURCE/one/two"
        bind_into_a
        c2c /given/one/two /data
        assert_success
        assert_owners_agree /given/one/two /data
        touch "$SOURCE/outside"
        in_b test ! -e /data/../outside
}

# bats test_tags=kernel
@test "a file that mount-bind put into a container is mounted in another" {
        start_two plain plain
        echo text >"$BATS_TEST_TMPDIR/file"
        chown 7:8 "$BATS_TEST_TMPDIR/file"
        SOURCE=$BATS_TEST_TMPDIR/file
        bind_into_a
        c2c /given /file
        assert_success
        is "$(owners b /file)" 7:8
        is "$(in_b cat /file)" text
}

# bats test_tags=kernel
@test "what mount-bind put into a container is mounted in one without a user namespace" {
        start_two plain plain-nouserns
        bind_into_a
        c2c /given /data
        assert_success
        assert_owners_agree /given /data 65535
}

# bats test_tags=kernel
@test "what mount-bind put into a container, mounted in another, shows the overflow id where the source's container knows no owner" {
        start_two plain plain
        touch "$SOURCE/file" "$SOURCE/high"
        chown 100005:100005 "$SOURCE/high"
        chown 70000:70000 "$SOURCE"
        chmod 0755 "$SOURCE"
        bind_into_a
        is "$(owners a /given)" 65534:65534
        is "$(owners a /given/high)" 65534:65534
        c2c /given /data
        assert_one_json_line
        if [[ $status == 0 ]]; then
                is "$(owners b /data/high)" 65534:65534
                is "$(owners b /data/file)" 0:0
                is "$(owners b /data)" 65534:65534
        else
                assert_failure
        fi
}

# bats test_tags=kernel
@test "what mount-bind made read-only in a container is read-only in another" {
        start_two plain plain
        touch "$SOURCE/file"
        bind_into_a '"readOnly": true, "locked": true'
        run ! in_a touch /given/made
        c2c /given /data
        assert_success
        run ! in_b touch /data/made
        [[ ! -e $SOURCE/made ]]
        assert_attributes /data ro
}

# bats test_tags=kernel
@test "what mount-block put into a container is mounted in another, with owners as each counts" {
        needs mount-block
        make_device ext4
        start_two plain plain
        use_container "$A"
        helper mount-block "{\"container\": $A, \"source\": \"$DEVICE\", \"target\": \"/given\"}"
        assert_success
        use_container "$B"
        c2c /given /data
        assert_success
        is "$(in_b cat /data/file)" "from the device"
        assert_owners_agree /given /data 65535
        in_a mkdir /given/sub
        c2c /given/sub /sub
        assert_success
        assert_owners_agree /given/sub /sub
        # the device is free when nobody uses it any more
        local target
        for target in /data /sub; do
                helper mount-remove "$(remove_request $target)"
                assert_success
        done
        use_container "$A"
        helper mount-remove "$(remove_request /given)"
        assert_success
        assert_no_records
}

# mapped_anew_or_served: A has something on /given of which flexgraft cannot make a clone that is not mapped.
mapped_anew_or_served() {
        if kernel_can remap; then
                c2c /given /data
                assert_success
                assert_field .mount.idMapping idmapped
        else
                fails_without_a_trace EOPNOTSUPP /given /data
                assert_field .error.operation "map owners"
                [[ $(json_field .message) == *"needs Linux 6.15"* && $(json_field .error.hint) == *'"ids": "remap"'* ]]
                c2c /given /data '"fallback": "remap"'
                assert_success
                assert_field .mount.idMapping remap
        fi
        assert_owners_agree /given /data 65535
        helper mount-remove "$(remove_request /data)"
        assert_success
        use_container "$A"
        helper mount-remove "$(remove_request /given)"
        assert_success
}

# bats test_tags=kernel
@test "what mount-volume put into a container is mapped anew, and where the kernel cannot, refused or served by remap" {
        needs mount-volume volume-create volume-delete remap-daemon
        start_two plain plain
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        use_container "$A"
        helper mount-volume "{\"container\": $A, \"volume\": \"data\", \"target\": \"/given\"}"
        use_container "$B"
        assert_success
        assert_field .mount.idMapping idmapped
        mapped_anew_or_served
        helper volume-delete '{"name": "data"}'
        assert_success
}

# bats test_tags=kernel
@test "what mount-image put into a container is mapped anew, and where the kernel cannot, refused or served by remap" {
        local image=$BATS_TEST_TMPDIR/image
        needs mount-image remap-daemon
        start_two plain plain
        truncate -s 8M "$image"
        mkfs.ext4 -q "$image"
        use_container "$A"
        helper mount-image "{\"container\": $A, \"source\": \"$image\", \"target\": \"/given\"}"
        use_container "$B"
        assert_success
        assert_field .mount.idMapping idmapped
        mapped_anew_or_served
}

# bats test_tags=kernel
@test "what mount-bind put into a container with ids host keeps the node's owners in both" {
        start_two plain plain
        touch "$SOURCE/file"
        use_container "$A"
        helper mount-bind "$(bind_request /given '"ids": "host"')"
        assert_success
        use_container "$B"
        is "$(owners a /given/file)" 65534:65534
        c2c /given /data
        assert_success
        is "$(owners b /data/file)" 65534:65534
        touch "$SOURCE/mine"
        chown 100007:100007 "$SOURCE/mine"
        is "$(owners a /given/mine)" 7:7
        is "$(owners b /data/mine)" 7:7
}

# bats test_tags=kernel
@test "from one container to another and back again owners agree, or it is refused" {
        start_two plain plain
        in_a mkdir -p /share /back
        c2c /share /data
        assert_success
        local first=$A
        A=$B B=$first
        use_container "$B"
        remember
        c2c /data /back
        if kernel_can remap; then
                assert_success
                # A is the second container now
                assert_owners_agree /data /back 65535
                in_b touch /back/made
                is "$(in_b stat -c %u:%g /share/made)" 0:0
        else
                assert_failure
                assert_field '.error | has("hint")' true
                assert_nothing_happened
        fi
}

# bats test_tags=kernel
@test "a tmpfs from one container to another and back again" {
        kernel_can remap || skip "this kernel cannot map again what is mapped"
        start_two plain plain
        in_a mkdir /tmp/share
        c2c /tmp/share /data
        assert_success
        local first=$A
        A=$B B=$first
        use_container "$B"
        c2c /data /back
        assert_success
        assert_owners_agree /data /back 65535
        is "$(in_b stat -c %i /back)" "$(in_b stat -c %i /tmp/share)"
}

# bats test_tags=kernel
@test "from one container through a second into a third owners agree in all" {
        kernel_can remap || skip "this kernel cannot map again what is mapped"
        start_two crun runc
        local first=$A
        in_a mkdir /share
        c2c /share /data
        assert_success
        A=$B
        start_container plain 300000
        B=$CONTAINER_PID
        c2c /data /third
        assert_success
        assert_owners_agree /data /third 65535
        A=$first
        assert_owners_agree /share /third 65535
}

# bats test_tags=kernel
@test "a loop of mounts through two containers, recursive, ends and can be taken away" {
        kernel_can remap || skip "this kernel cannot map again what is mapped"
        start_two plain plain
        local first=$A second=$B round
        in_a mkdir -p /share/back
        in_b mkdir -p /data
        remember
        for round in 1 2; do
                A=$first B=$second
                use_container "$B"
                c2c /share /data '"recursive": true'
                assert_success
                A=$second B=$first
                use_container "$B"
                c2c /data /share/back '"recursive": true'
                assert_success
                is "$(in_b stat -c %i /share/back)" "$(in_b stat -c %i /share)"
                # again, with what there is by now
                A=$first B=$second
                use_container "$B"
                c2c /share /again '"recursive": true'
                assert_success
                assert_mounts_at /again/back 1
                in_a touch "/share/made.$round"
                is "$(owners b "/again/back/made.$round")" 0:0
                helper mount-remove "$(remove_request /again)"
                assert_success
                helper mount-remove "$(remove_request /data)"
                assert_success
                use_container "$first"
                helper mount-remove "$(remove_request /share/back)"
                assert_success
                in_a rm "/share/made.$round"
        done
        use_container "$second"
        assert_nothing_happened
}

@test "source and target may be of the same container" {
        start_two plain plain
        B=$A
        use_container "$B"
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_field .mount.idMapping none
        assert_owners_agree /share /data
        c2c /share /share/inner
        assert_success
        helper mount-remove "$(remove_request /share/inner)"
        assert_success
}

# ---- mounts below the source

@test "mounts below the source come along when asked, with owners as each counts" {
        start_two plain plain
        in_a sh -c 'mkdir -p /share/sub /other && touch /other/file && chown 7:8 /other/file && mount --bind /other /share/sub'
        c2c /share /data '"recursive": true'
        assert_success
        assert_mounts_at /data/sub 1
        is "$(owners b /data/sub/file)" 7:8
        assert_owners_agree /share/sub /data/sub
        assert_owners_agree /share /data
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data/sub 0
        is "$(in_a cat /proc/mounts | grep -c /share/sub)" 1
}

@test "mounts below the source stay where they are when not asked" {
        start_two plain plain
        in_a sh -c 'mkdir -p /share/sub /other && touch /other/file && mount --bind /other /share/sub'
        c2c /share /data
        assert_success
        in_b test ! -e /data/sub/file
        assert_mounts_at /data/sub 0
}

# Mounts of every sort below one source: of A's root directory, of its own tmpfs, and an id-mapped one.
mixed_source() {
        start_two plain plain
        in_a sh -c 'mkdir -p /share/bound /share/tmpfs /share/given /share/plain /other &&
                mount --bind /other /share/bound && mount -t tmpfs tmpfs /share/tmpfs'
        use_container "$A"
        helper mount-bind "$(bind_request /share/given)"
        use_container "$B"
        assert_success
        in_a sh -c 'for d in plain bound tmpfs given; do touch /share/$d/file && chown 7:8 /share/$d/file; done'
}

# bats test_tags=kernel
@test "mounts of several sorts below the source either all come with right owners, or it is refused" {
        mixed_source
        remember
        c2c /share /data '"recursive": true'
        assert_one_json_line
        if [[ $status == 0 ]]; then
                local dir
                for dir in plain bound tmpfs given; do
                        is "$(owners b "/data/$dir/file")" 7:8 "owners in $dir"
                        assert_owners_agree "/share/$dir" "/data/$dir"
                done
        else
                assert_failure
                [[ $(json_field .error.errno) =~ ^(EOPNOTSUPP|EINVAL|EPERM|EXDEV)$ ]]
                assert_nothing_happened
        fi
}

@test "mounts of several sorts below the source do not hinder a mount that is not recursive" {
        mixed_source
        c2c /share /data
        assert_success
        is "$(owners b /data/plain/file)" 7:8
        local dir
        for dir in bound tmpfs given; do
                in_b test ! -e "/data/$dir/file"
        done
}

@test "recursive and readOnly reach the mounts below the source" {
        start_two plain plain
        in_a sh -c 'mkdir -p /share/sub /other && mount --bind /other /share/sub'
        c2c /share /data '"recursive": true, "readOnly": true'
        assert_success
        assert_attributes /data ro nosuid nodev
        assert_attributes /data/sub ro nosuid nodev
        run ! in_b touch /data/sub/made
        in_a touch /share/sub/made
}

# bats test_tags=kernel
@test "a locked mount below the source comes along where the kernel can count mounts, and else it is refused" {
        mkdir -p "$SOURCE/sub" "$BATS_TEST_TMPDIR/other"
        chown -R 100000:100000 "$SOURCE" "$BATS_TEST_TMPDIR/other"
        touch "$BATS_TEST_TMPDIR/other/file"
        chown 100007:100008 "$BATS_TEST_TMPDIR/other/file"
        mount --bind "$BATS_TEST_TMPDIR/other" "$SOURCE/sub"
        start_two plain plain
        use_container "$A"
        helper mount-bind "$(bind_request /given '"recursive": true, "locked": true, "ids": "host"')"
        use_container "$B"
        assert_success
        remember
        c2c /given /data '"recursive": true'
        if kernel_can unique-ids; then
                assert_success
                is "$(owners b /data/sub/file)" 7:8
        else
                assert_failure EXDEV
                [[ $(json_field .message) == *"needs Linux 6.8"* ]]
                assert_nothing_happened
        fi
}

@test "a covered mount below the source is not shown, and its owners do not matter" {
        start_two plain plain
        in_a sh -c 'mkdir -p /share/sub /other && mount -t tmpfs tmpfs /share/sub && mount --bind /other /share/sub'
        c2c /share /data '"recursive": true'
        assert_one_json_line
        if [[ $status == 0 ]]; then
                assert_owners_agree /share/sub /data/sub
        else
                assert_failure
                assert_mounts_at /data 0
        fi
}
