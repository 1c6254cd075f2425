#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": what a container can do to the node and to others with the device that it got.

load helpers
load raw_helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        groups=()
        needs mount-block mount-remove mount-list
}

teardown() {
        bed_teardown
}

# ioctls DEVICE rw|ro ACTION...: what a process without capabilities in the container does to the device.
ioctls() {
        cp "$FLEXGRAFT_TOOLS/loop-ioctls" "$CONTAINER_ROOTFS/bin/loop-ioctls"
        in_container /bin/loop-ioctls "$@"
}

# A device of 8 MiB in the middle of a file of 16 MiB, whose other content is the node's.
make_window() {
        make_raw_device secret
        losetup --detach "$DEVICE"
        printf '%-512s' inside | dd of="$IMAGE" bs=1M seek=4 conv=notrunc status=none
        DEVICE=$(loop_over --offset 4M --sizelimit 8M "$IMAGE")
        bed_loops+=("$DEVICE")
}

# A file of the container's own, which begins with "theirs" and is as large as the device.
make_own_file() {
        truncate -s "$(blockdev --getsize64 "$DEVICE")" "$CONTAINER_ROOTFS/own"
        printf '%-512s' theirs | dd of="$CONTAINER_ROOTFS/own" conv=notrunc status=none
        chown "$((CONTAINER_BASE)):$((CONTAINER_BASE))" "$CONTAINER_ROOTFS/own"
}

raw_of() { # raw_of [MORE]: mounts it
        helper mount-block "$(raw_request "$@")"
        assert_success
}

# ---- what it reaches

check_window() {
        make_window
        start_container "$1"
        raw_of
        is "$(ioctls /disk rw window size read write)" $'window: done\nsize: 8388608\nread: inside\nwrite: done'
        is "$(head -c 6 "$IMAGE")" secret "the rest of the node's file"
        is "$(on_device)" stolen "the device itself"
}

# bats test_tags=kernel
@test "a container cannot get out of the window of a raw loop device" {
        check_window plain
}

@test "a container without a user namespace cannot get out of the window of a raw loop device" {
        check_window plain-nouserns
}

# bats test_tags=kernel
@test "a container cannot detach a raw loop device, so that its number becomes another volume's" {
        make_raw_device first
        local device=$DEVICE guards
        start_container plain
        raw_of
        make_own_file
        guards=$(guards_of "$device")
        is "$(ioctls /disk rw clear read set /own read clear)" $'clear: done\nread: first\nset: EBUSY\nread: first\nclear: done'
        is "$(guards_of "$device")" "$guards" "the container's loop device"
        losetup "$device" >/dev/null
        make_raw_device other
        is "$(ioctls /disk ro read)" "read: first"
}

# bats test_tags=kernel
@test "a container cannot put a file of its own behind the node's device" {
        make_raw_device first
        start_container plain
        make_own_file
        raw_of '"readOnly": true'
        is "$(ioctls /disk ro window clear read set /own change /own)" $'window: EPERM\nclear: done\nread: first\nset: EBUSY\nchange: EINVAL'
        is "$(on_device)" first "the node's device"
        is "$(head -c 5 "$IMAGE")" first "the node's file"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_guards "$DEVICE"
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

@test "a container that may only read a device that opens for reading alone sees a file of its own there, and changes nothing else" {
        local guard
        make_raw_device first
        start_container plain
        make_own_file
        # source_raw's open: O_RDWR | O_CLOEXEC | O_NONBLOCK
        at_syscall --at openat --where 2="$DEVICE" --where 3=0x80802 --fail EROFS "$FLEXGRAFT_BIN/mount-block" "$(raw_request '"readOnly": true')"
        assert_success
        is "$AT_REACHED" 1 "an open of the device for writing"
        guard=$(guards_of "$DEVICE")
        is "$(ioctls /disk ro read change /own read)" $'read: first\nchange: done\nread: theirs'
        is "$(on_device)" first "the node's device"
        is "$(head -c 5 "$IMAGE")" first "the node's file"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field .stillReachable null
        [[ -n $guard && ! -e /sys/block/${guard#/dev/}/loop ]]
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# bats test_tags=kernel
@test "what a container sets of its loop device, and what it discards, is its own" {
        make_raw_device first
        start_container plain
        make_own_file
        raw_of
        local before
        before=$(losetup --raw --noheadings --output LOG-SEC,DIO,BACK-FILE,SIZELIMIT "$DEVICE")
        is "$(ioctls /disk rw configure /own change /own capacity size)" $'configure: EBUSY\nchange: EINVAL\ncapacity: done\nsize: 16777216'
        ioctls /disk rw blocks direct
        is "$(losetup --raw --noheadings --output LOG-SEC,DIO,BACK-FILE,SIZELIMIT "$DEVICE")" "$before" "the node's device"
        is "$(on_device)" first
        is "$(ioctls /disk rw zeroout)" "zeroout: done"
        is "$(on_device)" ""
        printf '%-512s' second | dd of="$DEVICE" conv=notrunc,fsync status=none
        ioctls /disk rw discard erase >"$BATS_TEST_TMPDIR/discards"
        [[ $(<"$BATS_TEST_TMPDIR/discards") == $'discard: '@(done|EOPNOTSUPP)$'\nerase: EOPNOTSUPP' ]]
}

# bats test_tags=kernel
@test "the ioctls of other sorts of devices do not reach the node's through a raw device" {
        make_raw_device first
        start_container plain
        raw_of
        ioctls /disk rw foreign >"$BATS_TEST_TMPDIR/answers"
        # as the loop driver answers what it does not know
        # Linux 6.1 asks who wants a reservation before it looks whether the device has any
        is "$(sed -E 's/: (EINVAL|ENOTTY|EOPNOTSUPP)$/: unknown/; s/^(reservation): EPERM$/\1: unknown/' "$BATS_TEST_TMPDIR/answers")" \
                $'scsi: unknown\nreservation: unknown\nnbd: unknown\nmapper: unknown\nnvme: unknown'
}

# bats test_tags=kernel
@test "a container discards nothing of a raw device that it may only read, and configures nothing" {
        make_raw_device first
        start_container plain
        make_own_file
        raw_of '"readOnly": true'
        is "$(ioctls /disk ro discard zeroout erase configure /own blocks direct capacity read)" \
                $'discard: EBADF\nzeroout: EBADF\nerase: EBADF\nconfigure: EBUSY\nblocks: EPERM\ndirect: EPERM\ncapacity: EPERM\nread: first'
        is "$(on_device)" first
}

# bats test_tags=kernel
@test "a container cannot pass its loop device off as that of a volume" {
        driver_setup
        kubelet_attach victim type=loop size=8Mi
        local tag
        tag=$("$FLEXGRAFT_TOOLS/loop-ioctls" "${DEVICES[victim]}" root tag)
        [[ $tag == "tag: flexgraft:"* ]]
        kubelet_detach victim
        make_raw_device first
        start_container plain
        raw_of
        is "$(ioctls /disk rw name "${tag#tag: }")" 'name: done'
        call isattached "$(spec victim type=loop size=8Mi)" "$NODE"
        assert_field .attached false
        helper volume-reconcile '{}'
        is "$(jq -c .problems <<<"$json")" '[]'
        is "$(ioctls /disk rw read)" "read: first"
}

@test "a container's loop device has a number from 4096, and no volume gets one, though the kernel offers it as unused" {
        local guard device
        driver_setup
        make_raw_device first
        start_container plain
        raw_of
        guard=$(guards_of "$DEVICE")
        ((${guard#/dev/loop} >= 4096))
        # LOOP_CTL_GET_FREE, as when all lower numbers are in use
        at_syscall --at ioctl --where 2=0x4c82 --return 4096 "$DRIVER" attach "$(spec data type=loop size=8Mi)" "$NODE"
        is "$AT_REACHED $(jq -r .status <<<"$output")" "1 Success"
        device=$(jq -r .device <<<"$output")
        [[ $device == /dev/loop* ]]
        ((${device#/dev/loop} < 4096))
        kubelet_detach data
}

# write_partitions: a table of two partitions of 1 MiB, of type Linux.
write_partitions() {
        printf '\0\0\2\0\203\0\0\0\0\10\0\0\0\10\0\0\0\0\2\0\203\0\0\0\0\30\0\0\0\10\0\0' |
                dd of="$DEVICE" bs=1 seek=446 conv=notrunc,fsync status=none
        printf '\125\252' | dd of="$DEVICE" bs=1 seek=510 conv=notrunc,fsync status=none
}

# bats test_tags=kernel
@test "a partition table that a container writes makes no partitions on the node" {
        make_raw_device first
        start_container plain
        write_partitions
        raw_of
        is "$(ioctls /disk rw partitions partition)" $'flag: done\nreread: EACCES\npartition: EACCES'
        local guard
        guard=$(guards_of "$DEVICE")
        [[ -n $guard ]]
        is "$(compgen -G "$guard"p'*' || :)" "" "partitions on the node"
        is "$(compgen -G "/sys/block/${guard#/dev/}/${guard#/dev/}p*" || :)" "" "partitions in sysfs"
}

@test "a device that a container has raw is no volume of a pod by its loop device, however that is spelled, nor by one over it" {
        driver_setup
        make_raw_device first
        start_container plain
        raw_of
        local guard over source
        guard=$(guards_of "$DEVICE")
        mkdir "$BATS_TEST_TMPDIR/shown"
        over=$BATS_TEST_TMPDIR/shown/pod
        touch "$over"
        # as kubelet: on the bind mount of a pod's device, by which sysfs does not know it
        mount --bind "$guard" "$over"
        over=$(loop_over "$over")
        for source in "$guard" "//dev/./${guard#/dev/}" "/dev/loop$((${guard#/dev/loop} + 1))" "$over"; do
                call attach "$(spec data type=block "source=$source")" "$NODE"
                assert_field .status Failure
                [[ $(json_field .message) == *'are for raw devices of containers'* ]]
        done
        losetup --detach "$over"
        umount "$BATS_TEST_TMPDIR/shown/pod"
        is "$(on_device)" first "the node's device"
}

# bats test_tags=kernel
@test "udev, which locks a disk before it has its partition table read again, cannot lock a raw device of a container" {
        local guard
        make_raw_device first
        start_container plain
        write_partitions
        raw_of
        guard=$(guards_of "$DEVICE")
        [[ -n $guard ]]
        # as synthesize_change() of systemd-udevd, when a process has closed what it had open for writing
        run ! flock --nonblock "$guard" blockdev --rereadpt "$guard"
        is "$(compgen -G "/sys/block/${guard#/dev/}/${guard#/dev/}p*" || :)" "" "partitions in sysfs"
        flock --nonblock --shared "$guard" true # as udev's workers, which look at what is on it
}

@test "a raw partition is that partition only" {
        make_raw_device whole
        printf '%-512s' part | dd of="$DEVICE" bs=512 seek=8 conv=notrunc,fsync status=none
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$DEVICE" root partition
        local whole=$DEVICE
        [[ -b ${whole}p1 ]] || skip "no partitions of loop devices here"
        DEVICE=${whole}p1
        start_container plain
        raw_of
        is "$(ioctls /disk rw window clear size read write)" $'window: done\nclear: done\nsize: 4096\nread: part\nwrite: done'
        losetup "$whole" >/dev/null
        is "$(head -c 5 "$IMAGE")" whole
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_guards "$DEVICE"
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$whole" root unpartition
}

@test "of a disk and a partition of it, a container has the one alone while another has the other" {
        local whole first one other
        make_raw_device whole
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$DEVICE" root partition
        whole=$DEVICE
        [[ -b ${whole}p1 ]] || skip "no partitions of loop devices here"
        start_container plain
        first=$CONTAINER_PID
        start_container plain
        for one in "$whole" "${whole}p1"; do
                other=${whole}p1
                [[ $one == "$whole" ]] || other=$whole
                helper mount-block "$(DEVICE=$one raw_request)"
                assert_success
                helper mount-block "$(CONTAINER_PID=$first DEVICE=$other raw_request)"
                assert_failure EBUSY
                helper mount-remove "$(remove_request /disk)"
                assert_success
        done
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$whole" root unpartition
}

@test "a raw device is found through root's symbolic link" {
        make_window
        start_container plain
        ln -s "${DEVICE#/dev/}" "/dev/flexgraft-test-$RUN_ID"
        helper mount-block "$(DEVICE=/dev/flexgraft-test-$RUN_ID raw_request)"
        rm "/dev/flexgraft-test-$RUN_ID"
        assert_success
        assert_field .mount.origin "$DEVICE"
        is "$(ioctls /disk rw window read)" $'window: done\nread: inside'
}

@test "the loop device that a container got is no source of another mount" {
        make_device ext4
        start_container plain
        raw_of
        local guard uuid
        guard=$(guards_of "$DEVICE")
        uuid=$(blkid -p -s UUID -o value "$DEVICE")
        helper mount-block "$(DEVICE=$guard TARGET=/again raw_request)"
        assert_failure EACCES
        local source keeper=/dev/loop$((${guard#/dev/loop} + 1))
        for source in "$guard" "//dev/./${guard#/dev/}" "/dev//${keeper#/dev/}"; do
                helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$source\", \"target\": \"/again\", \"readOnly\": true}"
                assert_failure EACCES
        done
        # it has the device's tag, too
        helper mount-block "$(DEVICE=UUID=$uuid raw_request)"
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "a container that gives its raw device the UUID of another device does not hide that from the node" {
        local other uuid
        make_device ext4
        other=$DEVICE
        uuid=$(blkid -p -s UUID -o value "$other")
        make_device ext4
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        in_container sh -c 'dd bs=64k count=4 of=/disk status=none && sync /disk' <"$other"
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"UUID=$uuid\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.origin "$other"
}

@test "nor by a loop device that kubelet makes over it, also where the other device is not there" {
        local other uuid holder request
        make_device ext4
        other=$DEVICE
        uuid=$(blkid -p -s UUID -o value "$other")
        make_device ext4
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        in_container sh -c 'dd bs=64k count=4 of=/disk status=none && sync /disk' <"$other"
        holder=$(losetup --find --show "$(guards_of "$DEVICE")")
        request="{\"container\": $CONTAINER_PID, \"source\": \"UUID=$uuid\", \"target\": \"/data\"}"
        helper mount-block "$request"
        assert_success
        assert_field .mount.origin "$other"
        helper mount-remove "$(remove_request /data)"
        assert_success
        release_device "$other"
        helper mount-block "$request"
        assert_failure
        losetup --detach "$holder"
}

# ---- removed

# bats test_tags=kernel
@test "removing a raw device revokes it also where the container bound it" {
        make_raw_device first
        start_container plain
        raw_of
        in_container sh -c ': >/copy; mount --bind /disk /copy'
        is "$(container_reads in_container /copy)" first
        local guard
        guard=$(guards_of "$DEVICE")
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field '.stillReachable' null
        run ! container_writes in_container stolen /copy
        "$FLEXGRAFT_TOOLS/remove-loops" "${guard#/dev/loop}" # opened by its number, the kernel makes it anew
        is "$(on_device)" first
        assert_no_guards "$DEVICE"
        assert_no_records
}

# hold_raw: a process of the container has the device open by another name; end_process "$BACKGROUND_PID" ends it.
hold_raw() {
        in_container sh -c ': >/copy; mount --bind /disk /copy'
        cp "$FLEXGRAFT_TOOLS/loop-ioctls" "$CONTAINER_ROOTFS/bin/loop-ioctls"
        mkfifo "$BATS_TEST_TMPDIR/hold"
        exec {hold_fd}<>"$BATS_TEST_TMPDIR/hold"
        background_ready nsenter --target "$CONTAINER_PID" --mount --user -- /bin/loop-ioctls /copy rw hold \
                <"$BATS_TEST_TMPDIR/hold"
}

# bats test_tags=kernel
@test "a removed raw device that a process still has open is reported, and stays in use until it is closed" {
        make_raw_device first
        start_container plain
        local one=$CONTAINER_PID
        raw_of
        hold_raw
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field .stillReachable true
        assert_field '.hint | length > 0' true
        assert_mounts_at /disk 0
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0] | .stillReachable, .state, .source' $'true\ngone\n'"$DEVICE"
        # again: the same answer
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field '.stillReachable, .alreadyRemoved' $'true\ntrue'
        start_container plain 200000
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        use_container "$one"
        end_process "$BACKGROUND_PID"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field .stillReachable null
        assert_no_guards "$DEVICE"
        assert_no_records
}

@test "volume-reconcile leaves a raw device alone whose removal was killed while a process had it open" {
        make_raw_device first
        start_container plain
        raw_of
        hold_raw
        local guard
        guard=$(guards_of "$DEVICE")
        # as far as mount-remove is when it has detached the second loop device, which holds the first one
        losetup --detach "/dev/loop$((${guard#/dev/loop} + 1))"
        helper volume-reconcile '{}'
        assert_success
        [[ -e /sys/block/loop$((${guard#/dev/loop} + 1)) ]]
        "$FLEXGRAFT_TOOLS/remove-loops" "$((${guard#/dev/loop} + 1))" # another program may do so all the same
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_field .stillReachable true
        end_process "$BACKGROUND_PID"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_guards "$DEVICE"
        assert_no_records
}

@test "what a container wrote before its raw device is removed is on the device" {
        make_raw_device first
        start_container plain
        raw_of
        in_container sh -c "printf '%-512s' second | dd of=/disk bs=512 conv=notrunc 2>/dev/null"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(on_device)" second
}

@test "a raw device that was removed while it was open can be mounted again by its container, and nothing is lost" {
        make_raw_device first
        start_container plain
        raw_of
        hold_raw
        helper mount-remove "$(remove_request /disk)"
        assert_success
        raw_of
        is "$(container_reads in_container)" first
        helper mount-list '{}'
        assert_field '[.mounts[] | .stillReachable == true] | sort' $'[\n  false,\n  true\n]'
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(guards_of "$DEVICE" | wc -l)" 1 "the first one, which is still open"
        end_process "$BACKGROUND_PID"
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_records
        assert_no_guards "$DEVICE"
}

@test "another device at the place of a raw device that the container unmounted: the first stays recorded until it is free" {
        make_raw_device first
        start_container plain
        raw_of
        hold_raw
        in_container umount /disk
        local one=$DEVICE
        make_raw_device other
        raw_of
        is "$(container_reads in_container)" other
        helper mount-list '{}'
        assert_field '[.mounts[] | select(.stillReachable) | .source]' $'[\n  "'"$one"$'"\n]'
        end_process "$BACKGROUND_PID"
        stop_container
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$one"
        assert_no_guards "$DEVICE"
        assert_no_records
}

@test "volume-reconcile frees the removed raw device of a running container once it is closed" {
        make_raw_device first
        start_container plain
        raw_of
        hold_raw
        helper mount-remove "$(remove_request /disk)"
        assert_success
        helper volume-reconcile '{}'
        [[ -n $(guards_of "$DEVICE") && -n $(records) ]]
        end_process "$BACKGROUND_PID"
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$DEVICE"
        assert_no_records
}

# ---- the container's end

# bats test_tags=kernel
@test "volume-reconcile frees the raw device of a container that is gone" {
        make_raw_device first
        start_container plain
        raw_of
        stop_container
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$DEVICE"
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

@test "volume-reconcile keeps the record of a raw device that a process outside of the ended container has open" {
        make_raw_device first
        start_container plain
        raw_of
        local guard
        guard=$(guards_of "$DEVICE")
        hold_device "$guard"
        stop_container
        helper volume-reconcile '{}'
        is "$(guards_of "$DEVICE")" "$guard"
        [[ -n $(records) ]]
        end_process "$BACKGROUND_PID"
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$DEVICE"
        assert_no_records
}

@test "the next container gets the device of one that is gone" {
        make_raw_device first
        start_container plain
        raw_of
        stop_container
        start_container plain 200000
        raw_of
        is "$(container_reads in_container)" first
        helper volume-reconcile '{}'
        assert_success
        is "$(guards_of "$DEVICE" | wc -l)" 1
}

@test "what an ended container wrote is on the device before the next container gets it" {
        make_raw_device first
        start_container plain
        raw_of
        in_container sh -c "printf '%-512s' second | dd of=/disk bs=512 conv=notrunc 2>/dev/null"
        stop_container
        start_container plain 200000
        raw_of
        is "$(guards_of "$DEVICE" | wc -l)" 1
        is "$(container_reads in_container)" second
}

@test "the next container does not get a device that a process of the ended one has open" {
        make_raw_device first
        start_container plain
        raw_of
        local guard
        guard=$(guards_of "$DEVICE")
        hold_device "$guard"
        stop_container
        start_container plain 200000
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        end_process "$BACKGROUND_PID"
        raw_of
}

@test "volume-reconcile with dryRun does not promise to remove the record of a raw device that is still attached" {
        make_raw_device first
        start_container plain
        raw_of
        stop_container
        helper volume-reconcile '{"dryRun": true}'
        assert_success
        [[ $output == *"if no process has it open"* ]]
        [[ -n $(guards_of "$DEVICE") && -n $(records) ]]
}

# bats test_tags=kernel
@test "a container's link to a name that is no UTF-8 does not hide that it has a raw device" {
        make_raw_device first
        start_container plain 100000
        in_container sh -c 'd=$(printf "/\377"); mkdir "$d" && ln -s "$d/a/b" /disk'
        helper mount-block "$(raw_request)"
        assert_failure EILSEQ # else it has it, and nobody knows
        assert_no_records
        start_container plain 200000 # the device is free
        raw_of
        assert_allowed mine
}
