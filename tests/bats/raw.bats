#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": a block device itself in a container.

load helpers
load raw_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        groups=()
        needs mount-block mount-remove mount-list
}

teardown() {
        local failed=0 group
        bed_teardown || failed=1
        for group in "${groups[@]}"; do
                wait_until 10 group_is_gone "$group" || failed=1
        done
        return "$failed"
}

# ---- the device itself

check_raw() {
        make_raw_device first
        start_container "$1"
        helper mount-block "$(raw_request)"
        assert_success
        assert_field .mount.type raw
        assert_field .mount.source "$DEVICE"
        assert_field .mount.target /disk
        assert_field .mount.alreadyMounted false
        assert_mounts_at /disk 1
        is "$(in_container stat -c %F:%u:%g:%a /disk)" "block special file:0:0:600"
        is "$(container_reads in_groups)" first
        container_writes in_groups second
        is "$(on_device)" second
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0] | .type, .state' $'raw\npresent'
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_mounts_at /disk 0
        [[ ! -e $CONTAINER_ROOTFS/disk ]]
        is "$(in_container find / -xdev -type b)" "" "block devices in the container"
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# bats test_tags=kernel
@test "the container's root reads and writes a raw device" {
        check_raw plain
}

@test "a device that udev names by a link in /dev/mapper is given raw" {
        make_device ext4
        as_mapped
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        assert_field .mount.source "$DEVICE"
        helper mount-remove "$(remove_request /disk)"
        assert_success
}

# Without the name in sysfs the programs tell a device as all earlier ones did.
@test "what an earlier version mounted of a device that udev names by a link in /dev/mapper is the same mount" {
        local request prefix
        make_device ext4
        as_mapped
        prefix=("${HELPER_PREFIX[@]}")
        HELPER_PREFIX=()
        start_container plain
        request="{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\"}"
        helper mount-block "$request"
        assert_success
        assert_field .mount.origin "$(realpath "$DEVICE")"
        HELPER_PREFIX=("${prefix[@]}")
        helper mount-block "$request"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "$(remove_request /disk)"
        assert_success
}

@test "the container's root reads and writes a raw device without a user namespace" {
        check_raw plain-nouserns
}

@test "a raw device in a crun container" {
        check_raw crun
}

@test "a raw device in a crun container without a user namespace" {
        check_raw crun-nouserns
}

# bats test_tags=kernel
@test "a raw device in a runc container, whose control group denied it" {
        check_raw runc
}

@test "a raw device in a runc container without a user namespace, whose control group denied it" {
        check_raw runc-nouserns
}

check_others() {
        make_raw_device first
        start_container "$1"
        helper mount-block "$(raw_request)"
        assert_success
        is "$(as_user 0 dd if=/disk bs=5 count=1 2>/dev/null)" first
        run ! as_user 1000 dd if=/disk of=/dev/null bs=512 count=1
        [[ $output == *"Permission denied"* ]]
        run ! as_user 1000 dd if=/dev/zero of=/disk bs=512 count=1 conv=notrunc
        [[ $output == *"Permission denied"* ]]
        is "$(on_device)" first
}

@test "no user in the container but its root can open a raw device" {
        check_others plain
}

@test "only the container's root opens a raw device, without a user namespace" {
        check_others plain-nouserns
}

@test "a raw device does not let the container make device nodes" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        local number
        number=$(device_number)
        run ! in_container mknod /tmp/mine b "${number%:*}" "${number#*:}"
        run ! in_container cp -a /disk /tmp/mine
        run ! in_container ln /disk /tmp/mine
}

@test "a raw device is seen in the container only where it was put" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        is "$(in_container find / -type b -not -path '/proc/*' -not -path '/sys/*' 2>/dev/null)" /disk
        # not the directory of the node it was made in
        is "$(in_container cat /proc/1/mountinfo | grep -c ' /disk ')" 1
        in_container test ! -e /node
}

# ---- read-only

# bats test_tags=kernel
@test "a readOnly raw device is read by the container's root" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        assert_field '.mount.options | index("ro") != null' true
        is "$(container_reads in_container)" first
        is "$(in_container stat -c %u:%g:%a /disk)" 65534:0:40
}

# bats test_tags=kernel
@test "a readOnly raw device cannot be written by the container's root, whatever it tries" {
        make_raw_device first
        local owner
        owner=$(stat -c %u:%g:%a "$DEVICE")
        start_container plain
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        run ! container_writes in_container changed
        run ! in_container chmod 0666 /disk
        run ! in_container chown 0:0 /disk
        run ! in_container sh -c 'exec 3</disk && printf changed >/proc/self/fd/3'
        run ! in_container sh -c 'exec 3<>/disk'
        in_container mount -o remount,bind,rw /disk || :
        run ! in_container chmod 0666 /disk
        run ! in_container chown 0:0 /disk
        run ! container_writes in_container changed
        in_container mount --bind /disk /dev/null || :
        run ! in_container sh -c 'printf changed >/dev/null'
        is "$(on_device)" first
        is "$(stat -c %u:%g:%a "$DEVICE")" "$owner" "owner and mode of the node's own device node"
}

@test "the option ro is the same as readOnly for a raw device" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"options": "ro"')"
        assert_success
        is "$(container_reads in_container)" first
        run ! container_writes in_container changed
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "a readOnly raw device is refused to a container without a user namespace" {
        make_raw_device first
        start_container plain-nouserns
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EOPNOTSUPP
        assert_container_unchanged
        assert_node_unchanged
}

@test "a device that is read-only is given raw only with readOnly" {
        make_raw_device first
        blockdev --setro "$DEVICE"
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EROFS
        assert_container_unchanged
        assert_node_unchanged
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_container)" first
}

# ---- who else has it

refused_busy() {
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        assert_field .error.subject "$DEVICE"
        assert_container_unchanged
        assert_node_unchanged
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
}

@test "a device that the node has mounted is given raw only with readOnly" {
        make_device ext4
        start_container plain
        mkdir "$BATS_TEST_TMPDIR/mounted"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/mounted"
        refused_busy
        in_container dd if=/disk of=/dev/null bs=4k count=1
}

@test "a device that is held exclusively is given raw only with readOnly" {
        make_raw_device first
        start_container plain
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE"
        refused_busy
}

@test "a device whose filesystem is mounted in a container is not given raw to another" {
        make_device ext4
        start_container plain 100000
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_success
        start_container plain 200000
        refused_busy
}

@test "one raw device is for one container, as long as a container may write to it" {
        make_raw_device first
        start_container plain 100000
        helper mount-block "$(raw_request)"
        assert_success
        start_container plain 200000
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EBUSY
        assert_mounts_at /disk 0
}

@test "one raw device in two containers, for reading: what one loses the other keeps" {
        make_raw_device first
        start_container plain 100000
        local one=$CONTAINER_PID
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        start_container plain 200000
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_container)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        use_container "$one"
        is "$(container_reads in_container)" first
}

@test "a raw device that is mounted a second time while its first mount is removed is there afterwards" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        # LOOP_CLR_FD: no other record names the loop device yet, and it is about to be detached
        stopped_at ioctl --where 2=0x4c01 "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /disk)"
        meanwhile "$STATE_DIR/mounts/.lock" "$FLEXGRAFT_BIN/mount-block" "$(TARGET=/second raw_request)"
        resumed
        wait_until 20 process_is_gone "$BACKGROUND_PID"
        is "$(jq -r '.error.errno // .status' "$STOPPED" "$MEANWHILE" | paste -sd' ')" "Success Success"
        is "$(container_reads in_container /second)" first
        helper mount-remove "$(remove_request /second)"
        assert_success
        assert_no_records
        assert_no_guards "$DEVICE"
}

# ---- the target

@test "the file that a raw device was put on comes back" {
        make_raw_device first
        start_container plain
        in_container sh -c 'echo mine >/disk'
        helper mount-block "$(raw_request)"
        assert_success
        in_container test -b /disk
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(in_container cat /disk)" mine
}

@test "missing directories of a raw device's target are made and go away again" {
        make_raw_device first
        start_container plain
        container_snapshot
        helper mount-block "$(TARGET=/made/a/disk raw_request)"
        assert_success
        is "$(in_container stat -c %u:%g /made/a)" 0:0
        helper mount-remove "$(remove_request /made/a/disk)"
        assert_success
        assert_container_unchanged
}

@test "a raw device is put into the container's /dev" {
        make_raw_device first
        start_container crun
        helper mount-block "$(TARGET=/dev/disk raw_request)"
        assert_success
        is "$(container_reads in_container /dev/disk)" first
        helper mount-remove "$(remove_request /dev/disk)"
        assert_success
        in_container test ! -e /dev/disk
}

@test "a raw device is not put on a directory" {
        make_raw_device first
        start_container plain
        in_container mkdir /disk
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "the same raw request twice gives one mount" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(raw_request)"
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.type raw
        assert_mounts_at /disk 1
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EBUSY
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_records
}

@test "raw and not raw are not taken for the same" {
        make_device ext4
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\"}"
        assert_failure
        assert_mounts_at /disk 1
        in_container test -b /disk
}

@test "a raw device is named by its UUID" {
        make_device ext4
        start_container plain
        local device=$DEVICE
        helper mount-block "$(DEVICE=UUID=$(blkid -p -s UUID -o value "$device") raw_request)"
        assert_success
        is "$(in_container od -An -tx2 -j 1080 -N 2 /disk | tr -d ' ')" ef53 "the magic number of ext4"
        assert_field .mount.origin "$device"
}

@test "a raw source that is no device is refused" {
        start_container plain
        container_snapshot
        node_snapshot
        DEVICE=$FLEXGRAFT_CONFIG
        helper mount-block "$(raw_request)"
        assert_failure ENOTBLK
        DEVICE=/dev/null
        helper mount-block "$(raw_request)"
        assert_failure ENOTBLK
        DEVICE=/dev/nonesuch
        helper mount-block "$(raw_request)"
        assert_failure ENOENT
        assert_container_unchanged
        assert_node_unchanged
}

@test "keys that a raw device cannot have are refused" {
        make_raw_device first
        start_container plain
        container_snapshot
        node_snapshot
        local request
        helper mount-block "$(raw_request '"fsType": "ext4"')"
        assert_not_understood fsType
        for request in '"options": "nodev"' '"options": "data=journal"' '"options": "rbind"'; do
                helper mount-block "$(raw_request "$request")"
                assert_not_understood options
        done
        for request in host idmapped userns; do
                helper mount-block "$(raw_request "\"ids\": \"$request\"")"
                assert_not_understood ids
        done
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": \"yes\"}"
        assert_not_understood raw
        helper mount-bind "$(bind_request /disk '"raw": true')"
        assert_not_understood raw
        assert_container_unchanged
        assert_node_unchanged
}

@test "a locked raw device works, and the container's root cannot change its attributes" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"locked": true')"
        assert_success
        container_writes in_container second
        is "$(on_device)" second
        run ! in_container mount -o remount,bind,suid,exec,dev /disk
        assert_attributes /disk nosuid '!nodev'
}

@test "the device of a raw mount that is gone is freed although its id is used again to replace another mount" {
        needs mount-tmpfs volume-reconcile
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"id": "x"')"
        assert_success
        in_container umount /disk
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/t\"}"
        assert_success
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/t\", \"id\": \"x\", \"size\": \"1m\", \"replace\": true}"
        assert_success
        [[ -n $(guards_of "$DEVICE") ]]
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$DEVICE"
        helper mount-remove '{"id": "x"}'
        assert_success
        assert_no_records
}

@test "a raw device goes with its container" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"id": "mine"')"
        assert_success
        stop_container
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}
