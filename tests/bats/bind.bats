#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-bind: a file or directory of the node, into a container.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# bats test_tags=kernel
@test "a directory is mounted and its content is seen" {
        echo text >"$SOURCE/file"
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_mounts_at /data 1
        is "$(in_container cat /data/file)" text
        assert_field .mount.target /data
        assert_field .mount.source "$SOURCE"
        assert_field .mount.container.pid "$CONTAINER_PID"
        assert_field .mount.alreadyMounted false
        assert_field '.mount.id | type' string
        assert_field '.mount.mountId | type' number
}

# bats test_tags=kernel
@test "a directory is mounted in a container without a user namespace" {
        echo text >"$SOURCE/file"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.idMapping none
        is "$(in_container cat /data/file)" text
}

check_runtime() {
        echo text >"$SOURCE/file"
        start_container "$1"
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.idMapping "$2"
        is "$(in_container cat /data/file)" text
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        in_container touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel
@test "a directory is mounted and removed in a crun container" {
        check_runtime crun idmapped
}

@test "a directory is mounted and removed in a crun container without a user namespace" {
        check_runtime crun-nouserns none
}

# bats test_tags=kernel
@test "a directory is mounted and removed in a runc container" {
        check_runtime runc idmapped
}

@test "a directory is mounted and removed in a runc container without a user namespace" {
        check_runtime runc-nouserns none
}

@test "the caller's umask does not matter to the directories that are made for a target" {
        start_container plain
        HELPER_PREFIX=(sh -c 'umask 0077; exec "$@"' sh)
        helper mount-bind "$(bind_request /made/for/data)"
        assert_success
        is "$(in_container stat -c %a /made /made/for | sort -u)" 755
}

@test "a file is mounted onto a file that is made for it" {
        echo text >"$BATS_TEST_TMPDIR/file"
        start_container plain
        SOURCE=$BATS_TEST_TMPDIR/file
        helper mount-bind "$(bind_request /etc/injected)"
        assert_success
        is "$(in_container cat /etc/injected)" text
        helper mount-remove "$(remove_request /etc/injected)"
        assert_success
        [[ ! -e $CONTAINER_ROOTFS/etc/injected ]]
}

# bats test_tags=kernel
@test "a file is mounted onto a file that is there, which comes back when it is removed" {
        echo text >"$BATS_TEST_TMPDIR/file"
        start_container plain
        SOURCE=$BATS_TEST_TMPDIR/file
        helper mount-bind "$(bind_request /etc/passwd)"
        assert_success
        is "$(in_container cat /etc/passwd)" text
        helper mount-remove "$(remove_request /etc/passwd)"
        assert_success
        is "$(in_container head -c 4 /etc/passwd)" root
}

# bats test_tags=kernel
@test "a file is not mounted onto a directory, and nothing is left" {
        echo text >"$BATS_TEST_TMPDIR/file"
        start_container plain
        in_container mkdir /data
        SOURCE=$BATS_TEST_TMPDIR/file
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "a directory is not mounted onto a file, and nothing is left" {
        start_container plain
        in_container touch /data
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "a source that does not exist fails with ENOENT and leaves nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        SOURCE=$BATS_TEST_TMPDIR/none
        helper mount-bind "$(bind_request /made/for/it)"
        assert_failure ENOENT
        assert_field .error.subject "$SOURCE"
        assert_field .error.where node
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "a bind is recursive when asked" {
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        echo text >"$SOURCE/sub/file"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"recursive": true')"
        assert_success
        is "$(in_container cat /data/sub/file)" text
        assert_mounts_at /data/sub 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data/sub 0
}

# bats test_tags=kernel
@test "a bind is recursive and id-mapped when asked" {
        mkdir "$SOURCE/sub"
        make_device ext4        # older kernels cannot map a tmpfs
        mount "$DEVICE" "$SOURCE/sub"
        echo text >"$SOURCE/sub/file"
        start_container plain
        helper mount-bind "$(bind_request /data '"recursive": true')"
        assert_success
        assert_field .mount.idMapping idmapped
        is "$(in_container stat -c %u /data/sub/file)" 0
        in_container touch /data/sub/made
        is "$(stat -c %u "$SOURCE/sub/made")" 0
}

@test "a bind is not recursive when not asked" {
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        echo text >"$SOURCE/sub/file"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"recursive": false')"
        assert_success
        in_container test ! -e /data/sub/file
        assert_mounts_at /data/sub 0
}

@test "readOnly makes a mount that cannot be written" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        assert_attributes /data ro
        run ! in_container touch /data/made
        [[ $output == *"Read-only file system"* ]]
        touch "$SOURCE/made"
        helper mount-list '{}'
        assert_field '.mounts[0].options | index("ro") != null' true
}

# bats test_tags=kernel
@test "recursive and readOnly reach the mounts below" {
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"recursive": true, "readOnly": true')"
        assert_success
        assert_attributes /data/sub ro nosuid nodev
}

# bats test_tags=kernel
@test "nosuid and nodev are the default" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_attributes /data rw nosuid nodev '!noexec'
        assert_field '.mount.options | contains(["rw", "nosuid", "nodev"])' true
}

@test "suid and dev can be asked for" {
        start_container plain
        helper mount-bind "$(bind_request /data '"options": "suid,dev"')"
        assert_success
        assert_attributes /data '!nosuid' '!nodev'
}

check_option() {
        start_container plain
        helper mount-bind "$(bind_request /data "\"options\": \"$1\"")"
        assert_success
        shift
        assert_attributes /data "$@"
}

@test "option ro" {
        check_option ro ro
}

@test "option rw" {
        check_option rw rw
}

@test "option noexec" {
        check_option noexec noexec
}

@test "option noatime" {
        check_option noatime noatime
}

@test "option nodiratime" {
        check_option nodiratime nodiratime
}

@test "option relatime" {
        check_option relatime relatime
}

@test "option strictatime" {
        check_option strictatime '!relatime' '!noatime'
}

# bats test_tags=kernel
@test "option nosymfollow" {
        check_option nosymfollow nosymfollow
}

# bats test_tags=kernel
@test "several options in one string" {
        check_option ro,noexec,noatime ro noexec noatime nosuid nodev
}

@test "several options in an array" {
        start_container plain
        helper mount-bind "$(bind_request /data '"options": ["ro", "noexec", "noatime"]')"
        assert_success
        assert_attributes /data ro noexec noatime
}

@test "an element of an options array is one option, commas and all" {
        start_container plain
        node_snapshot
        helper mount-bind "$(bind_request /data '"options": ["ro", "noexec,noatime"]')"
        [[ $status != 0 ]]
        assert_one_json_line
        [[ $(json_field .message) == *noexec,noatime* ]]
        assert_mounts_at /data 0
        assert_node_unchanged
}

@test "an option that a bind does not know is refused, and nothing is left" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data '"options": "nosuid,data=journal"')"
        [[ $status != 0 ]]
        assert_one_json_line
        assert_field .status Failure
        [[ $output == *data* ]]
        assert_container_unchanged
        assert_node_unchanged
}

propagation_of() {
        local optional
        optional=$(mount_line "$1")
        optional=${optional%% - *}
        case $optional in
        *shared:*master:* | *master:*shared:*) echo slave,shared ;;
        *shared:*) echo shared ;;
        *master:*) echo slave ;;
        *unbindable*) echo unbindable ;;
        *) echo private ;;
        esac
}

@test "propagation is private by default, also under a shared target" {
        start_container plain-shared
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(propagation_of /data)" private
}

@test "propagation private" {
        start_container plain
        helper mount-bind "$(bind_request /data '"propagation": "private"')"
        assert_success
        is "$(propagation_of /data)" private
}

@test "a source that is unmounted while it is cloned is not called unbindable" {
        start_container plain
        mount -t tmpfs tmpfs "$SOURCE"
        at_syscall --at open_tree --run "umount --lazy '$SOURCE'" "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data)"
        assert_failure ESTALE
        [[ $output != *unbindable* && $output == *"try again"* ]]
        mount -t tmpfs tmpfs "$SOURCE"
        mount --make-unbindable "$SOURCE"
        helper mount-bind "$(bind_request /data)"
        umount "$SOURCE"
        assert_failure EINVAL
        [[ $output == *unbindable* ]]
        assert_no_records
}

@test "propagation unbindable, also under a shared target, and locked" {
        local kind
        for kind in plain plain-shared; do
                start_container "$kind"
                helper mount-bind "$(bind_request /data '"propagation": "unbindable"')"
                assert_success
                is "$(propagation_of /data)" unbindable
                helper mount-bind "$(bind_request /locked '"propagation": "unbindable", "locked": true')"
                assert_success
                is "$(propagation_of /locked)" unbindable
        done
}

@test "a source that is an automount is set off, and not bound itself" {
        local fds
        [[ -c /dev/autofs ]] || skip "the kernel has no autofs"
        exec {fds}<> <(:)
        mount -t autofs -o "fd=$fds,pgrp=1,minproto=5,maxproto=5,direct" systemd-1 "$SOURCE" 2>/dev/null || skip "autofs cannot be mounted here"
        start_container plain-nouserns
        exec {fds}>&- # nobody answers any more
        helper mount-bind "$(bind_request /data '"timeoutSeconds": 3')"
        assert_failure
        assert_mounts_at /data 0
        assert_no_records
        umount --internal-only "$SOURCE"
}

@test "a target that is a symbolic link to what is missing is made where that leads, and goes away again" {
        local target
        start_container plain
        in_container sh -c 'mkdir -p /inner && ln -s ../inner/a/made /etc/link && ln -s /inner/b /abs && ln -s /inner/c /inner/d && ln -s round /round'
        for target in /etc/link /abs/sub /inner/d; do
                helper mount-bind "$(bind_request "$target")"
                assert_success
                in_container test -e "$target"
                helper mount-remove "$(remove_request "$target")"
                assert_success
        done
        is "$(in_container ls -A /inner)" d
        helper mount-bind "$(bind_request /round/sub)"
        assert_failure ELOOP
}

# bats test_tags=kernel
@test "propagation shared: a later mount below the source on the node appears in the container" {
        mount --bind "$SOURCE" "$SOURCE"
        mount --make-shared "$SOURCE"
        mkdir "$SOURCE/sub"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"propagation": "shared"')"
        assert_success
        [[ $(propagation_of /data) == *shared* ]]
        mount -t tmpfs tmpfs "$SOURCE/sub"
        assert_mounts_at /data/sub 1
}

never_reaches_back() {
        mount --bind "$SOURCE" "$SOURCE"
        mount --make-shared "$SOURCE"
        mkdir "$SOURCE/sub" "$SOURCE/other"
        start_container plain
        helper mount-bind "$(bind_request /data '"propagation": "shared", "ids": "'"$1"'"')"
        assert_success
        is "$(propagation_of /data)" slave,shared
        mount -t tmpfs tmpfs "$SOURCE/sub"
        assert_mounts_at /data/sub 1
        in_container mount -t tmpfs tmpfs /data/other
        run ! mountpoint -q "$SOURCE/other"
}

# bats test_tags=kernel
@test "propagation shared never reaches back to the node from a user namespace" {
        chmod 0777 "$SOURCE"
        never_reaches_back auto
}

@test "propagation shared never reaches back to the node from a user namespace with ids host" {
        chmod 0777 "$SOURCE"
        never_reaches_back host
}

# bats test_tags=kernel
@test "propagation slave: a later mount below the source on the node appears in the container, and not the other way" {
        mount --bind "$SOURCE" "$SOURCE"
        mount --make-shared "$SOURCE"
        mkdir "$SOURCE/sub" "$SOURCE/other"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"propagation": "slave"')"
        assert_success
        is "$(propagation_of /data)" slave
        mount -t tmpfs tmpfs "$SOURCE/sub"
        assert_mounts_at /data/sub 1
        in_container mount -t tmpfs tmpfs /data/other
        run ! mountpoint -q "$SOURCE/other"
}

@test "what the node mounts below a source later arrives as it is: with its own options, and not mapped" {
        mount --bind "$SOURCE" "$SOURCE"
        mount --make-shared "$SOURCE"
        mkdir "$SOURCE/sub"
        start_container plain
        helper mount-bind "$(bind_request /data '"propagation": "slave"')"
        assert_success
        mount -t tmpfs -o noexec,noatime tmpfs "$SOURCE/sub"
        touch "$SOURCE/sub/file"
        is "$(in_container stat -c %u:%g /data/sub/file)" 65534:65534
        is "$(in_container sed -n 's/^.* \/data\/sub \([^ ]*\) .*/\1/p' /proc/self/mountinfo)" rw,noexec,noatime
}

# bats test_tags=kernel
@test "with ids auto the container's root owns what the node's root owns" {
        touch "$SOURCE/file"
        start_container plain
        helper mount-bind "$(bind_request /data '"ids": "auto"')"
        assert_success
        assert_field .mount.idMapping idmapped
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        in_container touch /data/made
        in_container chown 7:8 /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 7:8
}

@test "ids are mapped by the map of this container" {
        touch "$SOURCE/file"
        chown 65535:65535 "$SOURCE/file"
        start_container plain 300000
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(in_container stat -c %u:%g /data/file)" 65535:65535
        in_container touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

@test "ids idmapped is what it says" {
        start_container plain
        helper mount-bind "$(bind_request /data '"ids": "idmapped"')"
        assert_success
        assert_field .mount.idMapping idmapped
        in_container touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

# bats test_tags=kernel
@test "ids host shows foreign owners as 65534" {
        touch "$SOURCE/file"
        start_container plain
        helper mount-bind "$(bind_request /data '"ids": "host"')"
        assert_success
        assert_field .mount.idMapping host
        is "$(in_container stat -c %u:%g /data/file)" 65534:65534
        run ! in_container touch /data/made
}

@test "ids host lets the container use what belongs to its ids on the node" {
        chown 100000:100000 "$SOURCE"
        start_container plain
        helper mount-bind "$(bind_request /data '"ids": "host"')"
        assert_success
        in_container touch /data/made
        is "$(stat -c %u:%g "$SOURCE/made")" 100000:100000
}

# bats test_tags=kernel
@test "ids auto never gives wrong owners: what cannot be mapped fails and names the way out" {
        # procfs cannot be id-mapped.
        start_container plain
        SOURCE=/proc/sys/kernel
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_failure
        [[ $output == *host* ]]
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "missing directories are made, belong to the container's root, and go away again" {
        start_container plain
        helper mount-bind "$(bind_request /made/by/us)"
        assert_success
        is "$(in_container stat -c %u:%g /made)" 0:0
        is "$(stat -c %u:%g "$CONTAINER_ROOTFS/made/by")" 100000:100000
        helper mount-remove "$(remove_request /made/by/us)"
        assert_success
        [[ ! -e $CONTAINER_ROOTFS/made ]]
}

@test "missing directories are made and go away again without a user namespace" {
        start_container plain-nouserns
        helper mount-bind "$(bind_request /made/by/us)"
        assert_success
        helper mount-remove "$(remove_request /made/by/us)"
        assert_success
        [[ ! -e $CONTAINER_ROOTFS/made ]]
}

# bats test_tags=kernel
@test "missing directories are made on a tmpfs of the container" {
        start_container plain
        helper mount-bind "$(bind_request /tmp/made/by/us)"
        assert_success
        is "$(in_container stat -c %u:%g /tmp/made)" 0:0
        helper mount-remove "$(remove_request /tmp/made/by/us)"
        assert_success
        in_container test ! -e /tmp/made
}

@test "a directory made for a target stays when the container has put something into it" {
        start_container plain
        helper mount-bind "$(bind_request /made/by/us)"
        assert_success
        in_container touch /made/mine
        helper mount-remove "$(remove_request /made/by/us)"
        assert_success
        in_container test -e /made/mine
        in_container test ! -e /made/by
}

@test "a directory that was there is not taken away" {
        start_container plain
        in_container mkdir /there
        helper mount-bind "$(bind_request /there)"
        assert_success
        helper mount-remove "$(remove_request /there)"
        assert_success
        in_container test -d /there
}

@test "mkdir false refuses a missing target and makes nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /made/by/us '"mkdir": false')"
        assert_failure ENOENT
        assert_container_unchanged
        assert_node_unchanged
}

@test "mkdir false uses a target that is there" {
        start_container plain
        in_container mkdir /there
        helper mount-bind "$(bind_request /there '"mkdir": false')"
        assert_success
        assert_mounts_at /there 1
}

# bats test_tags=kernel
@test "the same request twice gives one mount" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        local id=$json
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.id "$(jq -r .mount.id <<<"$id")"
        assert_field .mount.mountId "$(jq -r .mount.mountId <<<"$id")"
        assert_field .mount.idMapping idmapped
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "another source for the same target is refused with EBUSY" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        mkdir "$BATS_TEST_TMPDIR/other"
        SOURCE=$BATS_TEST_TMPDIR/other
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
}

@test "the same source with other options for the same target is not taken for the same" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_failure EBUSY
        assert_mounts_at /data 1
        assert_attributes /data rw
}

@test "a target that is a mount point of the container's own is refused with EBUSY" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /tmp)"
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
}

@test "the container's root is not a target" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /)"
        [[ $status != 0 ]]
        assert_one_json_line
        assert_field .status Failure
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "after the container took the mount away, the same request mounts again" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.alreadyMounted false
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "nothing is held open: the container can unmount what it was given" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        assert_mounts_at /data 0
}

# bats test_tags=kernel
@test "dryRun says what would be and changes nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /made/by/us '"dryRun": true')"
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}

@test "dryRun finds the mistake" {
        start_container plain
        SOURCE=$BATS_TEST_TMPDIR/none
        node_snapshot
        helper mount-bind "$(bind_request /data '"dryRun": true')"
        assert_failure ENOENT
        assert_node_unchanged
}

@test "an id of one's own choice names the record" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "my-mount"')"
        assert_success
        assert_field .mount.id my-mount
        is "$(records)" mounts/my-mount.json
        helper mount-remove '{"id": "my-mount"}'
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "an id that is in use for another mount is refused" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "my-mount"')"
        assert_success
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /other '"id": "my-mount"')"
        [[ $status != 0 ]]
        assert_one_json_line
        assert_field .status Failure
        assert_container_unchanged
        assert_node_unchanged
}

check_name() {
        local request
        start_container plain
        echo text >"$SOURCE/file"
        request=$(jq -cn --argjson pid "$CONTAINER_PID" --arg source "$SOURCE" --arg target "$1" '{container: $pid, source: $source, target: $target}')
        helper mount-bind "$request"
        assert_success
        assert_mounts_at "$1" 1
        is "$(in_container cat "$1/file")" text
        is "$(jq -j .mount.target <<<"$json"; echo x)" "$1"x
        helper mount-bind "$request"
        assert_field .mount.alreadyMounted true
        helper mount-list '{}'
        assert_success
        is "$(jq -j '.mounts[0].target' <<<"$json"; echo x)" "$1"x
        assert_field '.mounts[0].state' present
        helper mount-remove "$(jq -c '{container, target}' <<<"$request")"
        assert_success
        assert_mounts_at "$1" 0
        assert_no_records
        in_container test ! -e "$1"
}

@test "a target with spaces" {
        check_name '/a b/ c '
}

@test "a target with newlines and tabs" {
        check_name $'/a\nb\tc\n'
}

@test "a target with commas, equals signs and colons" {
        check_name '/a,b=c:d,ro'
}

@test "a target with quotes and backslashes" {
        check_name '/a"b\c'"'d\\040"
}

@test "a target with a hash and percent signs" {
        check_name '/#a%s%n$(id)`id`'
}

@test "a target that is not ASCII" {
        check_name '/größe/データ/🐳'
}

@test "a target that looks deleted" {
        check_name '/a (deleted)'
}

@test "a target with a component of 255 bytes" {
        local name
        printf -v name '%0255d' 0
        check_name "/$name"
}

@test "a target of 4,000 bytes" {
        local name path=''
        printf -v name '%099d' 0
        while ((${#path} < 4000)); do path+=/$name; done
        check_name "$path"
}

@test "a target with dots and doubled slashes is the directory it leads to" {
        start_container plain
        in_container mkdir -p /a/b
        helper mount-bind "$(bind_request '//a/./b/../b/')"
        assert_success
        assert_mounts_at /a/b 1
        helper mount-remove "$(remove_request /a/b)"
        assert_success
        assert_mounts_at /a/b 0
}

@test "a source with odd characters" {
        local odd=$BATS_TEST_TMPDIR/$'a b,c=d\n\\ö'
        mkdir "$odd"
        echo text >"$odd/file"
        start_container plain
        helper mount-bind "$(jq -cn --argjson pid "$CONTAINER_PID" --arg source "$odd" '{container: $pid, source: $source, target: "/data"}')"
        assert_success
        is "$(in_container cat /data/file)" text
        helper mount-list '{}'
        is "$(jq -j '.mounts[0].source' <<<"$json"; echo x)" "$odd"x
}

@test "eight same requests at once give one mount" {
        start_container plain
        local request i results pids=()
        request=$(bind_request /made/data)
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-bind" "$request" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        pids=()
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        is "$(jq -s 'map(select(.mount.alreadyMounted)) | length' <<<"$results")" 7 "already mounted in: $results"
        assert_mounts_at /made/data 1
        is "$(records | wc -l)" 1
}

@test "eight different requests at once give eight mounts" {
        start_container plain
        local i results pids=()
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request "/made/data$i")" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        pids=()
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success" and (.mount.alreadyMounted | not))) | length' <<<"$results")" 8 "successes in: $results"
        for i in 1 2 3 4 5 6 7 8; do
                assert_mounts_at "/made/data$i" 1
        done
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "/made/data$i")" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        pids=()
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        assert_no_records
        in_container test ! -e /made
}

@test "of two removals at once, the one that made the directory of both mounts waits for the other" {
        start_container plain
        local other
        helper mount-bind "$(bind_request /made/data1)"
        helper mount-bind "$(bind_request /made/data2)"
        other=$(printf '%q ' "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /made/data1)")
        # it finds the other's record locked, and its mount still there
        at_syscall --at umount2 --run "{ $other >$BATS_TEST_TMPDIR/other; echo \$? >$BATS_TEST_TMPDIR/other.status; } 2>&1 & sleep 1" \
                "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /made/data2)"
        assert_success
        wait_until 10 test -s "$BATS_TEST_TMPDIR/other.status"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/other")" Success
        assert_no_records
        in_container test ! -e /made
}

@test "the same target in two containers are two mounts" {
        start_container plain 100000
        local first=$CONTAINER_PID
        start_container plain 200000
        local second=$CONTAINER_PID
        helper mount-bind "$(bind_request /data)"
        assert_success
        use_container "$first"
        helper mount-bind "$(bind_request /data)"
        assert_success
        assert_field .mount.alreadyMounted false
        in_container touch /data/from-first
        use_container "$second"
        is "$(in_container stat -c %u /data/from-first)" 0
        helper mount-remove "$(remove_request /data)"
        assert_success
        use_container "$first"
        assert_mounts_at /data 1
}

@test "the node sees nothing of a mount in a container" {
        start_container plain
        local before
        before=$(node_mounts)
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(node_mounts)" "$before"
}

@test "a source that is a symlink is followed once, and the reply tells" {
        echo text >"$SOURCE/file"
        ln -s source "$BATS_TEST_TMPDIR/link"
        start_container plain
        local real=$SOURCE
        SOURCE=$BATS_TEST_TMPDIR/link
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(in_container cat /data/file)" text
        [[ $output == *"$real"* ]]
}

@test "help and version are told" {
        local name
        for name in mount-bind mount-remove mount-list; do
                run "$FLEXGRAFT_BIN/$name" --help
                is "$status" 0
                [[ $output == "usage: $name "* ]]
                run "$FLEXGRAFT_BIN/$name" --version
                is "$status" 0
                [[ $output == *[0-9].[0-9]* ]]
        done
}
