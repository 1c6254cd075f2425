#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: a file or directory of one container, into another.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-container-to-container mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# Container A is where a source is, container B where it goes; the other functions mean B, unless said. A maps from 100000 and B from
# 200000 if they have user namespaces.
start_two() {
        start_container "$1" "${3:-100000}"
        A=$CONTAINER_PID
        start_container "$2" "${4:-200000}"
        B=$CONTAINER_PID
}

in_a() {
        local result=0
        use_container "$A"
        in_container "$@" || result=$?
        use_container "$B"
        return "$result"
}

in_b() {
        use_container "$B"
        in_container "$@"
}

# c2c SOURCE TARGET [MORE]: from A into B; MORE is further members, as JSON text.
c2c_request() {
        printf '{"from": {"container": %s, "path": "%s"}, "to": {"container": %s, "path": "%s"}%s}' "$A" "$1" "$B" "$2" "${3:+, $3}"
}

c2c() {
        helper mount-container-to-container "$(c2c_request "$@")"
}

# remember / assert_nothing_happened: both containers and the node.
view_of_a() {
        cat "/proc/$A/mountinfo" && find "${bed_rootfs[$A]}" -xdev | sort
}

remember() {
        use_container "$B"
        container_snapshot
        node_snapshot
        a_before=$(view_of_a)
}

assert_a_unchanged() {
        [[ $(view_of_a) == "$a_before" ]] && return 0
        echo "the source's container is not as it was:"
        diff <(echo "$a_before") <(view_of_a)
        show_last
        return 1
}

assert_nothing_happened() {
        assert_container_unchanged && assert_node_unchanged && assert_a_unchanged
}

# fails_without_a_trace ERRNO SOURCE TARGET [MORE]
fails_without_a_trace() {
        remember
        c2c "${@:2}"
        assert_failure "$1"
        assert_nothing_happened
}

owners() {
        "in_$1" stat -c %u:%g "$2"
}

# assert_owners_agree DIR-IN-A DIR-IN-B [ID...]: whoever one of them sees as N on what either of them made, the other sees as N; for files of
# ids 0, 7 and each ID, and for those that are made on either side from now on.
assert_owners_agree() {
        local from=$1 to=$2 id
        shift 2
        for id in 0 7 "$@"; do
                in_a sh -c "mkdir $from/a.$id && touch $from/a.$id/file && chown $id:$id $from/a.$id $from/a.$id/file"
                is "$(owners b "$to/a.$id")" "$id:$id" "owners in the target's container of a directory made by $id in the source's"
                is "$(owners b "$to/a.$id/file")" "$id:$id"
                in_b sh -c "touch $to/a.$id/too && mkdir $to/b.$id && touch $to/b.$id/file && chown $id:$id $to/a.$id/too $to/b.$id $to/b.$id/file"
                is "$(owners a "$from/b.$id")" "$id:$id" "owners in the source's container of a directory made by $id in the target's"
                is "$(owners a "$from/b.$id/file")" "$id:$id"
                is "$(owners a "$from/a.$id/too")" "$id:$id"
                # both may use what they see as theirs
                in_a rm -r "$from/b.$id"
                in_b rm -r "$to/a.$id"
        done
        in_b sh -c "echo text >$to/text"
        is "$(in_a cat "$from/text")" text
        in_a sh -c "echo more >>$from/text"
        is "$(in_b tail -n 1 "$to/text")" more
        in_b rm "$to/text"
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

@test "an id that the target's container lacks belongs to nobody there" {
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

@test "an owner that the source's container does not know becomes nobody, not somebody" {
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
                [[ $(jq -r .error.errno <<<"$json") =~ ^(EOPNOTSUPP|EINVAL)$ ]]
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
@test "what mount-bind put into a container, mounted in another, belongs to nobody where the source's container knows no owner" {
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
                [[ $(jq -r .error.errno <<<"$json") =~ ^(EOPNOTSUPP|EINVAL|EPERM|EXDEV)$ ]]
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
        [[ $(jq -r .error.where <<<"$json") == *"$A"* ]]
        [[ $(jq -r .error.where <<<"$json") != *"$B"* ]]
}

@test "a missing source in a container with a name says that name" {
        start_container crun
        A=$CONTAINER_PID
        local name=$CONTAINER_ID
        start_container plain 200000
        B=$CONTAINER_PID
        helper mount-container-to-container "{\"from\": {\"container\": \"$name\", \"path\": \"/none\"}, \"to\": {\"container\": $B, \"path\": \"/data\"}}"
        assert_failure ENOENT
        [[ $(jq -r .error.where <<<"$json") == *"$name"* ]]
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
                [[ $(jq -r .error.errno <<<"$json") =~ ^(ELOOP|EPERM|ENOENT)$ ]]
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
        [[ $(jq -r .error.where <<<"$json") == *"$A"* ]]
}

check_device_source() {
        start_two plain-nouserns "$1"
        in_a sh -c 'mknod /char c 1 5 && mknod /block b 7 0'
        in_a ln -s /char /link
        local source
        for source in /char /block /link /dev/null; do
                fails_without_a_trace EINVAL "$source" /data
                [[ $(jq -r .message <<<"$json") == *"a device file"* ]]
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
                [[ $(jq -r .error.where <<<"$json") == *"$A"* ]]
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

@test "procfs below a source comes along for nobody" {
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

# ---- how containers are named, and what is told

@test "both containers can be named by the runtime's name" {
        start_container crun
        A=$CONTAINER_PID
        local from=$CONTAINER_ID to
        start_container runc 200000
        B=$CONTAINER_PID to=$CONTAINER_ID
        in_a mkdir /share
        helper mount-container-to-container "{\"from\": {\"container\": \"$from\", \"path\": \"/share\"}, \"to\": {\"container\": {\"id\": \"$to\", \"runtime\": \"runc\"}, \"path\": \"/data\"}}"
        assert_success
        assert_field .mount.container.pid "$B"
        assert_field .mount.container.id "$to"
        assert_field .mount.from.container.pid "$A"
        assert_field .mount.from.container.id "$from"
        assert_field .mount.from.path /share
        assert_owners_agree /share /data
        # the same containers by their pids: the same mount
        c2c /share /data
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "{\"container\": \"$to\", \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "a container that is named by its directory in proc, or as an object with a pid, is the same one" {
        start_two plain plain
        in_a mkdir /share
        helper mount-container-to-container "{\"from\": {\"container\": {\"procDir\": \"/proc/$A\"}, \"path\": \"/share\"}, \"to\": {\"container\": {\"pid\": $B}, \"path\": \"/data\"}}"
        assert_success
        assert_field .mount.from.container.pid "$A"
        c2c /share /data
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "the reply and mount-list say where a mount is from" {
        start_two plain plain
        in_a mkdir /share
        in_a ln -s /share /link
        c2c /link /data '"id": "mine"'
        assert_success
        assert_field .mount.id mine
        assert_field .mount.target /data
        assert_field .mount.source /link
        assert_field .mount.container.pid "$B"
        assert_field .mount.from.container.pid "$A"
        assert_field .mount.from.path /share
        assert_field .mount.alreadyMounted false
        assert_field '.mount.mountId | type' number
        assert_field '.mount.options | contains(["rw", "nosuid", "nodev"])' true
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.pid' "$B"
        assert_field '.mounts[0].from.container.pid' "$A"
        assert_field '.mounts[0].from.path' /share
        helper mount-list "{\"container\": $B}"
        assert_field '.mounts | length' 1
        helper mount-list "{\"container\": $A}"
        assert_field '.mounts | length' 0
}

@test "dryRun says what would be and changes nothing" {
        start_two plain plain
        in_a mkdir /share
        remember
        c2c /share /made/data '"dryRun": true'
        assert_success
        assert_nothing_happened
        c2c /made/source /made/data '"dryRun": true, "mkdirSource": true'
        assert_success
        assert_nothing_happened
}

@test "dryRun finds the mistake" {
        start_two plain plain
        fails_without_a_trace ENOENT /none /data '"dryRun": true'
        fails_without_a_trace EPERM /proc /data '"dryRun": true'
}

@test "the same request twice gives one mount" {
        start_two plain plain
        in_a mkdir /share
        c2c /share /made/data
        assert_success
        local first=$json
        remember
        c2c /share /made/data
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.id "$(jq -r .mount.id <<<"$first")"
        assert_field .mount.mountId "$(jq -r .mount.mountId <<<"$first")"
        assert_field .mount.from.path /share
        assert_field .mount.idMapping idmapped
        assert_nothing_happened
}

@test "the same request with mkdirSource twice gives one mount and one directory" {
        start_two plain plain
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
}

@test "another source, another container or another sort of mount on the same target is refused with EBUSY" {
        start_two plain plain
        in_a mkdir /share /other
        c2c /share /data
        assert_success
        fails_without_a_trace EBUSY /other /data
        fails_without_a_trace EBUSY /share /data '"readOnly": true'
        remember
        helper mount-bind "$(bind_request /data)"
        assert_failure EBUSY
        assert_nothing_happened
        local first=$A
        start_container plain 300000
        A=$CONTAINER_PID
        use_container "$B"
        in_a mkdir /share
        fails_without_a_trace EBUSY /share /data
        A=$first
}

@test "eight same requests at once give one mount, eight different ones eight" {
        start_two plain plain
        in_a mkdir /share
        local i pids=() results
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /made/data)" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
                "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request "/new/source$i" "/new/target$i" '"mkdirSource": true')" >"$BATS_TEST_TMPDIR/new.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        is "$(jq -s 'map(select(.mount.alreadyMounted)) | length' <<<"$results")" 7 "already mounted in: $results"
        results=$(cat "$BATS_TEST_TMPDIR"/new.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        assert_mounts_at /made/data 1
        for i in 1 2 3 4 5 6 7 8; do
                assert_mounts_at "/new/target$i" 1
        done
        is "$(records | wc -l)" 9
}

@test "two containers that mount from each other at once both succeed" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir /share
        local forth back i
        forth=$(c2c_request /share /data)
        back="{\"from\": {\"container\": $B, \"path\": \"/share\"}, \"to\": {\"container\": $A, \"path\": \"/data\"}}"
        for i in 1 2 3 4 5 6 7 8 9 10; do
                "$FLEXGRAFT_BIN/mount-container-to-container" "$forth" >"$BATS_TEST_TMPDIR/forth" 2>&1 3>&- &
                helper mount-container-to-container "$back"
                wait "$!"
                assert_success
                assert_mounts_at /data 1
                helper mount-remove "$(remove_request /data)"
                assert_success
                helper mount-remove "{\"container\": $A, \"target\": \"/data\"}"
                assert_success
        done
        assert_no_records
}

@test "a target whose directories were made goes away with them, and the source stays" {
        start_two plain plain
        in_a mkdir /share
        remember
        c2c /share /made/by/us
        assert_success
        is "$(owners b /made/by)" 0:0
        helper mount-remove "$(remove_request /made/by/us)"
        assert_success
        assert_nothing_happened
}

@test "nothing is held open: both containers can unmount, and what is removed is free" {
        start_two plain plain
        in_a sh -c 'mkdir /share && mount --bind /share /share'
        c2c /share /data
        assert_success
        in_a umount /share
        in_b umount /data
        assert_mounts_at /data 0
}

@test "a mount outlives the container it is from" {
        start_two plain plain
        in_a sh -c 'mkdir /share && echo text >/share/file && chown 7:8 /share/file'
        c2c /share /data
        assert_success
        stop_container "$A"
        is "$(in_b cat /data/file)" text
        is "$(in_b stat -c %u:%g /data/file)" 7:8
        in_b touch /data/made
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].from.container.pid' "$A"
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_records
}

# bats test_tags=kernel
@test "a mount of a tmpfs outlives the container it is from" {
        kernel_can map-tmpfs || skip "this kernel cannot map a tmpfs"
        start_two crun runc
        in_a sh -c 'echo text >/tmp/file'
        c2c /tmp /data
        assert_success
        stop_container "$A"
        is "$(in_b cat /data/file)" text
        in_b touch /data/made
        is "$(in_b stat -c %u /data/made)" 0
}

@test "nothing of either container is held after one has ended" {
        start_two plain plain
        in_a mkdir /share
        c2c /share /data
        assert_success
        is "$(processes_in_mount_namespace "$A")" "$A" "processes in the source's mount namespace"
        is "$(processes_in_mount_namespace "$B")" "$B" "processes in the target's mount namespace"
        local ns
        ns=$(stat -L -c %i "/proc/$A/ns/mnt")
        stop_container "$A"
        is "$(find /proc -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname "mnt:?$ns?" 2>/dev/null)" ""
}

@test "a container that is not there fails cleanly, whichever of the two" {
        start_two plain plain
        local dead=$A
        in_a mkdir /share
        stop_container "$dead"
        use_container "$B"
        container_snapshot
        node_snapshot
        c2c /share /made/data
        assert_failure ESRCH
        assert_container_unchanged
        assert_node_unchanged
        A=$B B=$dead
        c2c /tmp /made/data
        assert_failure ESRCH
        assert_container_unchanged
        assert_node_unchanged
}

# ---- containers that mean harm, or end

# swapping_in_a: /p/a and /p/b of A change places as fast as they can, until stop_swapping.
swapping_in_a() {
        background_ready nsenter --target "$A" --mount -- /bin/swap-loop /p a b
}

stop_swapping() {
        end_process "$BACKGROUND_PID"
}

# mount_while_swapping SOURCE CHECK [MORE]: for some seconds; CHECK is run while B has something on /data.
mount_while_swapping() {
        local deadline=$((SECONDS + 6)) rounds=0 successes=0
        use_container "$B"
        container_snapshot
        node_snapshot
        swapping_in_a
        while ((SECONDS < deadline && rounds < 60)); do
                c2c "$1" /data "${@:3}"
                if [[ $status == 0 ]]; then
                        successes=$((successes + 1))
                        "$2" || { echo "in round $rounds"; show_last; return 1; }
                        helper mount-remove "$(remove_request /data)"
                        assert_success || return 1
                else
                        assert_failure || return 1
                        assert_mounts_at /data 0 || return 1
                fi
                rounds=$((rounds + 1))
        done
        stop_swapping
        echo "$successes of $rounds"
        ((rounds >= 3 && successes > 0))
        assert_container_unchanged
        assert_node_unchanged
}

is_a_regular_file() {
        [[ -f /proc/$B/root/data ]]
}

@test "a file that takes turns with a device file never gives the device" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b c 1 5'
        mount_while_swapping /p/a is_a_regular_file '"options": "dev"'
}

@test "a file that takes turns with a device file never gives the device, without user namespaces" {
        start_two plain-nouserns plain-nouserns
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b b 7 0'
        mount_while_swapping /p/a is_a_regular_file '"options": "dev"'
}

is_of_a() {
        [[ -e /proc/$B/root/data/of-a && ! -e /proc/$B/root/data/of-the-node ]]
}

swap_with_link() {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir -p "$outside/sub"
        touch "$outside/of-the-node" "$outside/sub/of-the-node"
        start_two "$1" plain
        in_a mkdir -p /p/a/sub
        in_a touch /p/a/of-a /p/a/sub/of-a
        in_a ln -s "${2//OUTSIDE/$outside}" /p/b
        mount_while_swapping "$3" is_of_a "${@:4}"
        is "$(find "$outside" | wc -l)" 4 "files of the node"
}

@test "a directory that takes turns with a symlink to the node's directories gives nothing of the node" {
        swap_with_link plain OUTSIDE /p/a
}

@test "a directory in one that takes turns with a symlink that climbs gives nothing of the node" {
        swap_with_link plain-nouserns ../../../../../../../../OUTSIDE /p/a/sub
}

@test "a directory that takes turns with a magic link gives nothing of the node" {
        swap_with_link plain-nouserns /proc/self/root/OUTSIDE /p/a/sub
}

@test "a missing source below a directory that takes turns with a symlink is not made on the node" {
        local outside=$BATS_TEST_TMPDIR/outside rounds=0 deadline
        mkdir -p "$outside"
        start_two plain-nouserns plain
        in_a mkdir -p /p/a
        in_a ln -s "../../../../../../..$outside" /p/b
        swapping_in_a
        deadline=$((SECONDS + 4))
        while ((SECONDS < deadline)); do
                c2c "/p/a/made.$rounds/sub" /data '"mkdirSource": true'
                assert_one_json_line
                helper mount-remove "$(remove_request /data)"
                assert_success
                rounds=$((rounds + 1))
        done
        stop_swapping
        is "$(ls -A "$outside")" ""
        assert_no_records
}

# find_calls REQUEST: the numbers of the calls before which something that happens elsewhere can matter, in CALLS: from where the first
# container is pinned on, less those that ask the world nothing.
find_calls() {
        local log=$BATS_TEST_TMPDIR/log target
        target=$(jq -c '{container: .to.container, target: .to.path}' <<<"$1")
        # twice: the first one makes the state directory
        for _ in 1 2; do
                "$FLEXGRAFT_TOOLS/at-syscall" --log "$log" "$FLEXGRAFT_BIN/mount-container-to-container" "$1" >/dev/null 2>&1 3>&-
                helper mount-remove "$target"
                assert_success
        done
        mapfile -t CALLS < <(awk '
                $3 == "pidfd_open" { pinned = 1 }
                pinned && $3 !~ /^(close|close_range|read|getppid|getpid|prctl|ppoll|geteuid|fcntl|socketpair|setfs[ug]id|setgroups|setres[ug]id|exit|exit_group)$/ { print $1 }' "$log")
        ((${#CALLS[@]} > 50))
        # as the long sweeps do: not always the same ones
        local all=("${CALLS[@]}") i
        CALLS=()
        for ((i = SWEEP_OFFSET; i < ${#all[@]}; i += SWEEP_STRIDE)); do
                CALLS+=("${all[i]}")
        done
}

# at_each_call_swap CHECK: /p/a and /p/b of A change places once, before each call in turn.
at_each_call_swap() {
        local number swap mounts
        use_container "$B"
        find_calls "$(c2c_request /p/a /data '"options": "dev"')"
        container_snapshot
        node_snapshot
        mounts=$(<"/proc/$B/mountinfo")
        swap="cd '${bed_rootfs[$A]}/p' && mv a c && mv b a && mv c b"
        for number in "${CALLS[@]}"; do
                at_syscall --at "$number" --run "$swap" "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /p/a /data '"options": "dev"')"
                # it made fewer calls this time, and is done
                [[ $AT_REACHED == 1 ]] || { helper mount-remove "$(remove_request /data)" && break; }
                if [[ $status == 0 ]]; then
                        "$1" || { echo "before call $number, $AT_NAME"; show_last; return 1; }
                        helper mount-remove "$(remove_request /data)"
                        assert_success || return 1
                else
                        assert_failure || { echo "before call $number, $AT_NAME"; return 1; }
                fi
                [[ $(<"/proc/$B/mountinfo") == "$mounts" ]] && assert_no_records || { echo "before call $number, $AT_NAME"; return 1; }
                (eval "$swap")
        done
        assert_container_unchanged
        assert_node_unchanged
}

@test "a file that becomes a device file before any call never gives the device" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b c 1 5'
        at_each_call_swap is_a_regular_file
}

@test "a directory that becomes a symlink to the node's before any call gives nothing of the node" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        touch "$outside/of-the-node"
        start_two plain plain
        in_a sh -c 'mkdir -p /p/a && touch /p/a/of-a'
        in_a ln -s "$outside" /p/b
        at_each_call_swap is_of_a
}

# at_each_call_cover WHO DIR: root of A or B mounts a tmpfs over DIR before each call in turn.
at_each_call_cover() {
        local number pid=${!1} before before_a
        find_calls "$(c2c_request /share /d/data '"id": "mine"')"
        before=$(<"/proc/$B/mountinfo") before_a=$(<"/proc/$A/mountinfo")
        for number in "${CALLS[@]}"; do
                at_syscall --at "$number" --run "nsenter --target $pid --mount --user --root -- /bin/mount -t tmpfs -o mode=755 cover $2" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /d/data '"id": "mine"')"
                [[ $AT_REACHED == 1 ]] || break
                [[ -z $stderr && $status =~ ^[01]$ && $output == '{"status":"'*$'}\n' ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                if [[ $status == 1 ]]; then
                        [[ -z $(records) ]] || { echo "a record after failure at call $number, $AT_NAME"; show_last; return 1; }
                        is "$(grep " /d/data " "/proc/$B/mountinfo" | grep -vc " - tmpfs cover " || :)" 0 "mounts after failure at call $number, $AT_NAME" || return 1
                else
                        # covered or not, it is removed by its name; under a cover only when that is gone
                        helper mount-remove '{"id": "mine"}'
                        if [[ $status != 0 ]]; then
                                assert_failure EBUSY || return 1
                                "in_${1,,}" umount "$2"
                                helper mount-remove '{"id": "mine"}'
                                assert_success || { echo "at call $number, $AT_NAME"; return 1; }
                        fi
                fi
                "in_${1,,}" umount "$2" 2>/dev/null || :
                assert_same_mounts "$B" "$before" && assert_same_mounts "$A" "$before_a" && assert_no_records ||
                        { echo "at call $number, $AT_NAME"; show_last; return 1; }
        done
}

@test "a target whose directory is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover B /d
}

@test "a target that is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover B /d/data
}

@test "a source that is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover A /share
}

@test "a target that the container covered later is listed so, and removed when it is uncovered" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        c2c /share /d/data
        assert_success
        in_b mount -t tmpfs tmpfs /d
        helper mount-list '{}'
        assert_field '.mounts[0].state' covered
        helper mount-remove "$(remove_request /d/data)"
        assert_failure EBUSY
        in_b umount /d
        helper mount-remove "$(remove_request /d/data)"
        assert_success
        assert_no_records
}

# dies_at_each_call A|B: that container is killed before each call in turn.
dies_at_each_call() {
        local number root_a=${bed_rootfs[$A]} root_b=${bed_rootfs[$B]} pid view now wrong=''
        find_calls "$(c2c_request "$SOURCE_PATH" /made/data '"mkdirSource": true')"
        rm -rf "$root_a/new"
        view=$(find "$root_a" "$root_b" -xdev | sort)
        for number in "${CALLS[@]}"; do
                pid=${!1}
                use_container "$B"
                container_snapshot
                at_syscall --at "$number" --run "kill -KILL $pid; while kill -0 $pid; do :; done" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request "$SOURCE_PATH" /made/data '"id": "mine", "mkdirSource": true')"
                [[ $AT_REACHED == 1 ]] || break
                [[ -z $stderr && $status =~ ^[01]$ && $output == '{"status":"'*$'}\n' ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                if [[ $status == 0 ]]; then
                        # it was too late to matter
                        if [[ $1 == A ]]; then
                                assert_mounts_at /made/data 1 && in_b touch /made/data/made && is "$(owners b /made/data/made)" 0:0 ||
                                        { echo "at call $number, $AT_NAME"; return 1; }
                        fi
                        helper mount-remove '{"id": "mine"}'
                        assert_success
                        rm -rf "$root_b/made" "$root_a/new"
                elif [[ $1 == A ]]; then
                        assert_container_unchanged || { echo "at call $number, $AT_NAME"; return 1; }
                fi
                [[ -z $(records) ]] || { echo "a record is left at call $number, $AT_NAME: $(records)"; show_last; return 1; }
                now=$(find "$root_a" "$root_b" -xdev | sort)
                if [[ $now != "$view" ]]; then
                        echo "files are left at call $number, $AT_NAME: $(diff <(echo "$view") <(echo "$now"))"
                        show_last
                        rm -rf "$root_b/made" "$root_a/new"
                        wrong=1
                fi
                assert_no_helper_processes
                stop_container "$pid"
                if [[ $1 == A ]]; then
                        ROOTFS=$root_a start_container plain
                        A=$CONTAINER_PID
                else
                        ROOTFS=$root_b start_container plain 200000
                        B=$CONTAINER_PID
                fi
        done
        [[ -z $wrong ]]
        now=''
        snapshot_node now
        is "$now" "$bed_before"
}

@test "a source's container that dies before any call: a clean reply, and a whole mount or nothing, also of mkdirSource's" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call A
}

@test "a target's container that dies before any call: a clean reply, and nothing is left in either" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call B
}

@test "a pid of the source's container that another process takes over before any call is not acted upon" {
        local number pid first rootfs snapshot=$BATS_TEST_TMPDIR/snapshot
        start_two plain plain
        rootfs=${bed_rootfs[$A]}
        in_a sh -c 'mkdir -p /share && touch /share/of-a'
        # the same path on the node, in the view of the process that gets the pid
        bed_made+=(/share)
        [[ ! -e /share ]] || skip "the node has a /share"
        mkdir /share
        # before pidfd_open a bare number means whoever has it; there are two, the target's comes first
        find_calls "$(c2c_request /share /data)"
        first=$(awk '$3 == "pidfd_open" {number = $1} END {print number}' "$BATS_TEST_TMPDIR/log")
        for number in "${CALLS[@]}"; do
                ((number > first)) || continue
                pid=$A
                at_syscall --at "$number" --run "'$FLEXGRAFT_TOOLS/clone-at-pid' --kill --snapshot '$snapshot' $pid sleep 1000000" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /data '"id": "mine"')"
                [[ $AT_REACHED == 1 ]] || break
                bed_pids+=("$pid")
                [[ -z $stderr && $status =~ ^[01]$ ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                assert_same_mounts "$pid" "$(<"$snapshot")" || { echo "the other process was touched, at call $number, $AT_NAME"; return 1; }
                if [[ $status == 0 ]]; then
                        in_b test -e /data/of-a || { echo "the node's directory was mounted, at call $number, $AT_NAME"; show_last; return 1; }
                fi
                end_process "$pid"
                helper mount-remove '{"id": "mine"}'
                assert_success
                assert_mounts_at /data 0
                stop_container "$pid"
                ROOTFS=$rootfs start_container plain
                A=$CONTAINER_PID
                use_container "$B"
        done
        rmdir /share
}

# silent_fuse_in_a: on /tmp/fuse.
silent_fuse_in_a() {
        local namespaces=(--mount --pid)
        [[ ${bed_kind[$A]} == *nouserns* ]] || namespaces+=(--user)
        in_a mkdir -p /tmp/fuse
        background_ready nsenter --target "$A" "${namespaces[@]}" -- /bin/silent-fuse /tmp/fuse
}

@test "a silent FUSE in the source's path, or as the source, neither hangs nor leaves anything" {
        local kind source began
        for kind in plain plain-nouserns; do
                start_two "$kind" plain
                silent_fuse_in_a
                container_snapshot
                node_snapshot
                for source in /tmp/fuse/data /tmp/fuse; do
                        began=$SECONDS
                        c2c "$source" /made/data '"timeoutSeconds": 2, "mkdirSource": true'
                        assert_one_json_line
                        ((SECONDS - began <= 5)) || { echo "it took $((SECONDS - began)) seconds"; return 1; }
                        [[ $status == 0 ]] || wait_until 5 assert_no_helper_processes
                        if [[ $status == 1 ]]; then
                                assert_container_unchanged
                                assert_node_unchanged
                        else
                                helper mount-remove "$(remove_request /made/data)"
                                assert_success
                        fi
                done
        done
}

@test "a container that sees the helper's pid cannot look into it" {
        start_two plain-hostpid plain-hostpid
        in_a mkdir /share
        local pid
        for pid in "$A" "$B"; do
                rm -f "$BATS_TEST_TMPDIR/seen"
                at_syscall --run-output "$BATS_TEST_TMPDIR/seen" \
                        --each "nsenter --target $pid --mount --user --net --ipc --uts -- /bin/peek-at \$AT_PID | sed \"s/^/\$AT_SYSCALL \$AT_NAME: /\"" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /made/data)"
                assert_success
                is "$(head -5 "$BATS_TEST_TMPDIR/seen")" "" "what the container saw"
                helper mount-remove "$(remove_request /made/data)"
                assert_success
        done
}

# ---- requests

not_understood() {
        helper mount-container-to-container "$1"
        assert_not_understood "${2:-}"
}

@test "a request that lacks something, or has something unknown, is not understood and says which key" {
        not_understood '{"to": {"container": 1, "path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": "/x"}}'
        not_understood '{}'
        not_understood '{"from": {"path": "/x"}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1}}' to
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": "/x", "bogus": 1}, "to": {"container": 1, "path": "/y"}}' from.bogus
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/y", "bogus": 1}}' to.bogus
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/y"}, "bogus": 1}' bogus
        not_understood '{"from": "/x", "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": 1}' to
        not_understood '{"from": [], "to": {"container": 1, "path": "/y"}}' from
        not_understood 'no JSON'
        not_understood '[]'
}

@test "a request with a value of the wrong sort is not understood and says which key" {
        local pair
        for pair in mkdirSource:1 mkdirSource:'"yes"' recursive:1 readOnly:'"true"' locked:1 mkdir:0 replace:1 dryRun:1 timeoutSeconds:0 ids:'"other"' propagation:'"odd"' id:1; do
                not_understood "{\"from\": {\"container\": 1, \"path\": \"/x\"}, \"to\": {\"container\": 1, \"path\": \"/y\"}, \"${pair%%:*}\": ${pair#*:}}" "${pair%%:*}"
        done
        not_understood '{"from": {"container": 1, "path": "x"}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "y"}}' to
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/"}}' to
        not_understood '{"from": {"container": 1, "path": ""}, "to": {"container": 1, "path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": 1}, "to": {"container": 1, "path": "/y"}}' from.path
        not_understood '{"from": {"container": 0, "path": "/x"}, "to": {"container": 1, "path": "/y"}}' from.container
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": -1, "path": "/y"}}' to.container
        not_understood '{"from": {"container": {"pid": 1, "bogus": 2}, "path": "/x"}, "to": {"container": 1, "path": "/y"}}' from.container.bogus
}

@test "a request with keys of other helpers is not understood" {
        local key
        for key in source:'"/x"' fsType:'"ext4"' size:'"1m"' raw:true lower:'["/a","/b"]'; do
                not_understood "{\"from\": {\"container\": 1, \"path\": \"/x\"}, \"to\": {\"container\": 1, \"path\": \"/y\"}, \"${key%%:*}\": ${key#*:}}" "${key%%:*}"
        done
        helper mount-bind '{"container": 1, "source": "/x", "target": "/y", "mkdirSource": true}'
        assert_not_understood mkdirSource
}

@test "a request can come from standard input" {
        start_two plain plain
        in_a mkdir /share
        c2c_request /share /data >"$BATS_TEST_TMPDIR/request"
        helper mount-container-to-container - <"$BATS_TEST_TMPDIR/request"
        assert_success
        assert_mounts_at /data 1
}

@test "help and version are told" {
        run "$FLEXGRAFT_BIN/mount-container-to-container" --help
        is "$status" 0
        [[ $output == *mkdirSource* ]]
        run "$FLEXGRAFT_BIN/mount-container-to-container" --version
        is "$status" 0
        [[ $output == *[0-9].[0-9]* ]]
}
