#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block: a filesystem on a block device of the node, into a container that cannot see the device.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-block mount-remove mount-list
}

teardown() {
        bed_teardown
}

block_request() {
        printf '{"container": %s, "source": "%s", "target": "/data"%s}' "$CONTAINER_PID" "${SOURCE_DEVICE:-$DEVICE}" "${1:+, $1}"
}

# check_filesystem TYPE KIND rw|ro
check_filesystem() {
        make_device "$1"
        start_container "$2"
        helper mount-block "$(block_request)"
        assert_success
        assert_field .mount.type "$1"
        assert_field .mount.source "$DEVICE"
        assert_mounts_at /data 1
        is "$(in_container stat -c %u:%g /data)" 0:0
        [[ $1 == xfs ]] || is "$(in_container cat /data/file)" "from the device"
        if [[ $3 == rw ]]; then
                in_container sh -c 'echo text >/data/made && chown 7:8 /data/made'
                is "$(in_container stat -c %u:%g /data/made)" 7:8
                assert_attributes /data rw nosuid nodev
        else
                run ! in_container touch /data/made
                assert_field '.mount.options | index("ro") != null' true
        fi
        if [[ $2 == *-nouserns ]]; then
                assert_field .mount.idMapping none
        else
                assert_field .mount.idMapping idmapped
        fi
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
        # Nothing holds the superblock any more.
        if [[ $3 == rw ]]; then
                mkdir "$BATS_TEST_TMPDIR/look"
                mount "$DEVICE" "$BATS_TEST_TMPDIR/look"
                is "$(stat -c %u:%g "$BATS_TEST_TMPDIR/look/made")" 7:8 "owner on the disk"
                umount "$BATS_TEST_TMPDIR/look"
        fi
        wipefs --all --force "$DEVICE" >/dev/null
}

# bats test_tags=kernel
@test "ext4 is found and mounted" {
        check_filesystem ext4 plain rw
}

@test "ext4 is found and mounted without a user namespace" {
        check_filesystem ext4 plain-nouserns rw
}

# bats test_tags=kernel
@test "xfs is found and mounted" {
        check_filesystem xfs plain rw
}

@test "xfs is found and mounted without a user namespace" {
        check_filesystem xfs plain-nouserns rw
}

# bats test_tags=kernel
@test "btrfs is found and mounted" {
        check_filesystem btrfs plain rw
}

@test "btrfs is found and mounted without a user namespace" {
        check_filesystem btrfs plain-nouserns rw
}

# bats test_tags=kernel
@test "erofs is found and mounted" {
        check_filesystem erofs plain ro
}

@test "erofs is found and mounted without a user namespace" {
        check_filesystem erofs plain-nouserns ro
}

# bats test_tags=kernel
@test "squashfs is found and mounted" {
        if kernel_can map-tmpfs; then
                check_filesystem squashfs plain ro
                return
        fi
        # Older kernels cannot map the owners of either (6.2 can those of squashfs).
        make_device squashfs
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request)"
        [[ $status == 0 ]] && return
        assert_failure EINVAL
        assert_container_unchanged
        assert_node_unchanged
}

@test "squashfs is found and mounted without a user namespace" {
        check_filesystem squashfs plain-nouserns ro
}

check_runtime() {
        make_device ext4
        start_container "$1"
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
        in_container touch /data/made
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
}

@test "a filesystem is mounted in a crun container" {
        check_runtime crun
}

@test "a filesystem is mounted in a crun container without a user namespace" {
        check_runtime crun-nouserns
}

@test "a filesystem is mounted in a runc container" {
        check_runtime runc
}

@test "a filesystem is mounted in a runc container without a user namespace" {
        check_runtime runc-nouserns
}

# bats test_tags=kernel
@test "the container sees the filesystem and not the device" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request)"
        assert_success
        in_container test ! -e "$DEVICE"
}

@test "fsType may be named" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request '"fsType": "ext4"')"
        assert_success
        assert_field .mount.type ext4
}

@test "a wrong fsType fails and leaves nothing" {
        make_device ext4
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request '"fsType": "xfs"')"
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "an fsType that the kernel does not have fails with ENODEV" {
        make_device ext4
        start_container plain
        node_snapshot
        helper mount-block "$(block_request '"fsType": "nonesuch"')"
        assert_failure ENODEV
        [[ $output == *nonesuch* ]]
        assert_node_unchanged
}

@test "an fsType that is not on a block device is refused" {
        make_device ext4
        start_container plain
        container_snapshot
        node_snapshot
        local type
        for type in proc tmpfs overlay; do
                helper mount-block "$(block_request "\"fsType\": \"$type\"")"
                [[ $status != 0 ]]
                assert_one_json_line
                assert_field .status Failure
        done
        assert_container_unchanged
        assert_node_unchanged
}

@test "a device is found by UUID" {
        make_device ext4
        start_container plain
        SOURCE_DEVICE=UUID=$(blkid -p -s UUID -o value "$DEVICE")
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
        [[ $output == *"$DEVICE"* ]]
}

@test "a device is found by LABEL" {
        make_device ext4 "fg$RUN_ID"
        start_container plain
        SOURCE_DEVICE=LABEL=fg$RUN_ID
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
}

@test "an xfs is found by UUID and by LABEL" {
        make_device xfs "fg$RUN_ID"
        start_container plain
        SOURCE_DEVICE=UUID=$(blkid -p -s UUID -o value "$DEVICE")
        helper mount-block "$(block_request)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        SOURCE_DEVICE=LABEL=fg$RUN_ID
        helper mount-block "$(block_request)"
        assert_success
        in_container touch /data/made
}

# make_partition mbr|gpt [NAME]: DEVICE is a device with one partition, on which is an ext4; DISK_ID an MBR's id.
make_partition() {
        local filesystem
        DISK_ID=$(printf %08x "$(number_of_run $((1 << 32)))")
        make_device ext4
        filesystem=$IMAGE IMAGE=$BATS_TEST_TMPDIR/disk.$1
        truncate -s 18M "$IMAGE"
        dd if="$filesystem" of="$IMAGE" bs=1M seek=1 conv=notrunc,sparse status=none
        python3 "$FLEXGRAFT_REPO/tests/tools/partition-table.py" "$IMAGE" "$1" "2048:32768${2:+:$2}"
        printf %b "\\x${DISK_ID:6}\\x${DISK_ID:4:2}\\x${DISK_ID:2:2}\\x${DISK_ID:0:2}" | dd of="$IMAGE" bs=1 seek=440 conv=notrunc status=none
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        partx --add --nr 1 "$DEVICE"
}

@test "a partition is found by PARTUUID" {
        make_partition mbr
        start_container plain
        SOURCE_DEVICE=PARTUUID=$DISK_ID-01
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
        shows "\"${DEVICE}p1\""
}

@test "a partition is found by PARTLABEL" {
        make_partition gpt "fg$RUN_ID"
        start_container plain
        SOURCE_DEVICE=PARTLABEL=fg$RUN_ID
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
}

@test "a UUID that no device has fails with ENODEV or ENOENT" {
        start_container plain
        SOURCE_DEVICE=UUID=00000000-1111-2222-3333-444444444444
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request)"
        assert_failure
        assert_field '.error.errno | test("^(ENODEV|ENOENT|ENXIO)$")' true
        [[ $output == *00000000-1111* ]]
        assert_container_unchanged
        assert_node_unchanged
}

check_ext4_option() {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request "\"options\": \"$1\"")"
        assert_success
        shift
        assert_attributes /data "$@"
}

@test "option noatime" {
        check_ext4_option noatime noatime
}

@test "option noexec" {
        check_ext4_option noexec noexec
}

@test "option ro" {
        check_ext4_option ro ro
}

# bats test_tags=kernel
@test "options of the filesystem reach the superblock" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request '"options": "errors=panic,stripe=16"')"
        assert_success
        [[ $(mount_line /data) == *errors=panic* ]]
        [[ $(mount_line /data) == *stripe=16* ]]
}

@test "a superblock that says errors=panic does not stop the node: its filesystem becomes read-only" {
        make_device ext4
        tune2fs -e panic "$DEVICE" >/dev/null
        start_container plain
        helper mount-block "$(block_request)"
        assert_success
        [[ $(mount_line /data) == *errors=remount-ro* ]]
}

@test "options of the filesystem and of the mount mix" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request '"options": "noatime,stripe=16,noexec,errors=continue"')"
        assert_success
        assert_attributes /data noatime noexec nosuid
        [[ $(mount_line /data) == *stripe=16* ]]
}

# bats test_tags=kernel
@test "a bad option fails with the kernel's message, and leaves nothing" {
        make_device ext4
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request '"options": "noatime,nonesuch=7"')"
        assert_failure EINVAL
        [[ $(json_field .error.kernel) == *nonesuch* ]]
        assert_field .error.operation fsconfig
        assert_container_unchanged
        assert_node_unchanged
}

@test "an xfs with smaller sectors than its device is told by the kernel's messages, not by a kernel that is too old" {
        make_device xfs
        losetup --detach "$DEVICE"
        DEVICE=$(loop_over --sector-size 4096 "$IMAGE")
        bed_loops+=("$DEVICE")
        start_container plain
        helper mount-block "$(block_request)"
        assert_failure EINVAL
        assert_field .error.operation fsconfig
        [[ $(json_field .error.hint) == *dmesg* ]]
        assert_mounts_at /data 0
}

@test "a bad value fails with the kernel's message" {
        make_device ext4
        start_container plain
        node_snapshot
        helper mount-block "$(block_request '"options": "commit=many"')"
        assert_failure EINVAL
        [[ $(json_field .error.kernel) == *commit* ]]
        assert_node_unchanged
}

@test "options in an array, with a comma inside one" {
        # overlay-like values may hold commas; an ext4 journal path with one is refused by the kernel as a whole.
        make_device ext4
        start_container plain
        helper mount-block "$(block_request '"options": ["noatime", "errors=remount-ro", "stripe=32"]')"
        assert_success
        assert_attributes /data noatime
        [[ $(mount_line /data) == *stripe=32* ]]
        helper mount-remove "$(remove_request /data)"
        helper mount-block "$(block_request '"options": ["errors=panic,stripe=32"]')"
        assert_one_json_line
}

# bats test_tags=kernel
@test "readOnly makes the superblock read-only too" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request '"readOnly": true')"
        assert_success
        assert_attributes /data ro
        [[ $(mount_line /data) == *" - ext4 "*" ro"* ]]
        run ! in_container touch /data/made
}

# bats test_tags=kernel
@test "a readOnly mount of a device that the node has mounted for writing stays read-only, whatever the container's root remounts" {
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/node"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/node"
        start_container plain
        helper mount-block "$(block_request '"readOnly": true')"
        assert_success
        run ! in_container mount -o remount,bind,rw /data
        run ! in_container sh -c 'echo no >/data/file'
        assert_attributes /data ro nosuid nodev
        helper mount-remove "$(remove_request /data)"
        assert_success
        umount "$BATS_TEST_TMPDIR/node"
}

@test "a read-only device is mounted when readOnly is asked for" {
        make_device ext4
        blockdev --setro "$DEVICE"
        start_container plain
        helper mount-block "$(block_request '"readOnly": true')"
        assert_success
        is "$(in_container cat /data/file)" "from the device"
}

@test "a read-only device is not quietly mounted read-only, or the reply tells" {
        make_device ext4
        blockdev --setro "$DEVICE"
        start_container plain
        helper mount-block "$(block_request)"
        assert_one_json_line
        if [[ $status == 0 ]]; then
                assert_field '.mount.options | index("ro") != null' true
        else
                assert_failure
                assert_mounts_at /data 0
        fi
}

# bats test_tags=kernel
@test "the same request twice gives one mount" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request)"
        assert_success
        helper mount-block "$(block_request)"
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "one device in two containers" {
        make_device ext4
        start_container plain 100000
        helper mount-block "$(block_request)"
        assert_success
        in_container touch /data/made
        start_container plain 200000
        helper mount-block "$(block_request)"
        assert_success
        is "$(in_container stat -c %u /data/made)" 0
}

@test "dryRun changes nothing" {
        make_device ext4
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request '"dryRun": true')"
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}

check_refused() {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(block_request '"mkdir": true')"
        assert_failure "$1"
        [[ $(jq -r '.message, .error.subject' <<<"$json") == *"${SOURCE_DEVICE:-$DEVICE}"* ]]
        assert_container_unchanged
        assert_node_unchanged
}

@test "a missing device fails with ENOENT" {
        SOURCE_DEVICE=/dev/nonesuch
        check_refused ENOENT
}

@test "a file is not a block device" {
        SOURCE_DEVICE=$BATS_TEST_TMPDIR/config.json
        check_refused ENOTBLK
}

@test "a directory is not a block device" {
        SOURCE_DEVICE=$SOURCE
        check_refused ENOTBLK
}

@test "a character device is not a block device" {
        SOURCE_DEVICE=/dev/null
        check_refused ENOTBLK
}

@test "a device that is held exclusively fails with EBUSY" {
        make_device ext4
        # The node holds the device O_EXCL, as a volume manager or mkfs does.
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE"
        check_refused EBUSY
}

@test "a device without a filesystem is refused" {
        make_device blank
        check_refused
}

@test "a device with random content is refused" {
        make_device blank
        noise 1048576 | dd of="$DEVICE" bs=1M iflag=fullblock conv=fsync status=none
        check_refused
}

# bats test_tags=kernel
@test "a corrupt superblock is refused with the kernel's or our words" {
        make_device ext4
        # inode size, in the superblock at 1024 + 88: not a power of two
        printf '\377\377' | dd of="$DEVICE" bs=1 seek=1112 conv=notrunc,fsync status=none
        check_refused
}

@test "a truncated filesystem is refused" {
        make_device ext4
        losetup --detach "$DEVICE"
        wait_until 5 device_is_free "$DEVICE"
        truncate -s 1M "$IMAGE"
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        check_refused
}

@test "two signatures on one device are not guessed about" {
        make_device ext4
        # A swap signature at the end of the first page does not touch ext4's superblock.
        printf 'SWAPSPACE2' | dd of="$DEVICE" bs=1 seek=4086 conv=notrunc,fsync status=none
        start_container plain
        helper mount-block "$(block_request)"
        assert_one_json_line
        if [[ $status == 0 ]]; then
                assert_field .mount.type ext4
        fi
}

# bats test_tags=kernel
@test "the loop device is free again when the mount is removed" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# bats test_tags=kernel
@test "the device is free again when its container is gone" {
        make_device ext4
        start_container plain
        helper mount-block "$(block_request)"
        assert_success
        stop_container
        wait_until 10 "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}
