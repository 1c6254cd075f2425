#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: loop and block volumes.

load helpers
load driver_helpers
load driver_volumes_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        links=()
        fuse_loop=
}

teardown() {
        rm -f "${links[@]}"
        [[ -z $fuse_loop ]] || end_fuse_loop
        # the directories stay: another run may just have found them
        driver_teardown
}

# by_id NAME TARGET: a link in /dev/disk/by-id until teardown; its path in LINK.
by_id() {
        LINK=/dev/disk/by-id/flexgraft-test-$RUN_ID-$1
        links+=("$LINK")
        mkdir -p "${LINK%/*}" && ln -s "$2" "$LINK"
}

# make_fuse_loop NAME: a loop device over the file NAME of a FUSE filesystem, as another program has attached it, in $fuse_loop; its program: $BACKGROUND_PID.
make_fuse_loop() {
        command -v bindfs >/dev/null || skip "no bindfs"
        mkdir "$BATS_TEST_TMPDIR/behind" "$BATS_TEST_TMPDIR/fuse"
        truncate -s 1M "$BATS_TEST_TMPDIR/behind/$1"
        background bindfs -f -o attr_timeout=0 -o entry_timeout=0 "$BATS_TEST_TMPDIR/behind" "$BATS_TEST_TMPDIR/fuse"
        wait_until 10 mountpoint -q "$BATS_TEST_TMPDIR/fuse"
        fuse_loop=$(loop_over "$BATS_TEST_TMPDIR/fuse/$1")
}

end_fuse_loop() {
        end_process "$BACKGROUND_PID"
        losetup --detach "$fuse_loop"
        umount --lazy "$BATS_TEST_TMPDIR/fuse"
        wait_until 10 device_is_free "$fuse_loop"
        fuse_loop=
}

# lives_without_record NAME: attach, and detach after its record was lost, which looks at all loop devices. losetup(8) would wait, too.
lives_without_record() {
        kubelet_attach "$1" type=loop size=8Mi && rm "$(record_of "$1")" && kubelet_detach "$1" && wait_until 5 device_is_free "${DEVICES[$1]}"
}

# ---- loop

# bats test_tags=deep
@test "a device is found by its UUID while the file's FUSE program of another device does not answer" {
        local disk
        truncate -s 16M "$BATS_TEST_TMPDIR/disk.img"
        mkfs.ext4 -qF "$BATS_TEST_TMPDIR/disk.img"
        disk=$(loop_over "$BATS_TEST_TMPDIR/disk.img")
        bed_loops+=("$disk")
        make_fuse_loop "other-$RUN_ID.img" # another test's image of its name would be refused meanwhile
        stop_process "$BACKGROUND_PID"
        kubelet_attach disk type=block "source=UUID=$(signature_of "$BATS_TEST_TMPDIR/disk.img" UUID)"
        is "${DEVICES[disk]}" "$disk"
        TIMEOUTS='"device": 1' write_config
        not_hung call attach "$(spec absent type=block source=UUID=01234567-89ab-cdef-0123-456789abcdef)" "$NODE"
        assert_refused "within 1 second"
        end_fuse_loop
        kubelet_detach disk
}

@test "a loop device whose file's FUSE program has ended keeps no other volume from being attached and detached" {
        make_fuse_loop "other-$RUN_ID.img"
        end_process "$BACKGROUND_PID"
        lives_without_record data
        end_fuse_loop
        assert_nothing_left
}

@test "a loop device whose file's FUSE program does not answer keeps no other volume from being attached and detached" {
        make_fuse_loop "other-$RUN_ID.img"
        stop_process "$BACKGROUND_PID"
        lives_without_record data
        end_fuse_loop
        assert_nothing_left
}

@test "an image of the name of one whose FUSE program has ended, with a loop device over it, is attached, though others have it open" {
        local name=ended-$RUN_ID
        kubelet_attach "$name" type=loop size=8Mi
        kubelet_detach "$name"
        make_fuse_loop "$name.img"
        end_process "$BACKGROUND_PID"
        exec 7<"$(image_of "$name")"
        kubelet_attach "$name" type=loop size=8Mi
        exec 7<&-
        kubelet_detach "$name"
        end_fuse_loop
        assert_nothing_left
}

# serve_pool: the pool "fuse", in a directory that bindfs serves; its program: $BACKGROUND_PID.
serve_pool() {
        mkdir -p "$BATS_TEST_TMPDIR/behind" "$BATS_TEST_TMPDIR/fuse"
        background bindfs -f -o attr_timeout=0 -o entry_timeout=0 "$BATS_TEST_TMPDIR/behind" "$BATS_TEST_TMPDIR/fuse"
        wait_until 10 mountpoint -q "$BATS_TEST_TMPDIR/fuse"
        printf '{"type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/fuse" >"$FLEXGRAFT_POOLS/fuse.json"
}

end_pool() {
        end_process "$BACKGROUND_PID"
        umount --lazy "$BATS_TEST_TMPDIR/fuse"
}

@test "a volume whose image's filesystem has ended is detached, before that is unmounted and after" {
        command -v bindfs >/dev/null || skip "no bindfs"
        serve_pool
        kubelet_attach data type=loop size=8Mi pool=fuse
        end_process "$BACKGROUND_PID"
        kubelet_detach data
        wait_until 5 device_is_free "${DEVICES[data]}"
        umount --lazy "$BATS_TEST_TMPDIR/fuse"
        serve_pool
        kubelet_attach data type=loop size=8Mi pool=fuse
        end_pool
        kubelet_detach data
        wait_until 5 device_is_free "${DEVICES[data]}"
        assert_nothing_left
}

# loops_over FILE: how many loop devices are over a file of that name, as sysfs has it.
loops_over() {
        cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep -c "/$1\$"
}

@test "a volume whose image's filesystem has ended is attached again by one device, once that is back" {
        command -v bindfs >/dev/null || skip "no bindfs"
        local name=ended-$RUN_ID
        serve_pool
        kubelet_attach "$name" type=loop size=8Mi pool=fuse
        end_pool
        serve_pool
        kubelet_attach "$name" type=loop size=8Mi pool=fuse
        is "$(loops_over "$name.img")" 1
        dd if="${DEVICES[$name]}" of=/dev/null bs=4k count=1 status=none
        kubelet_detach "$name"
        end_pool
        assert_nothing_left
}

# bats test_tags=deep
@test "detach of a volume whose record is lost fails while a loop device over a file of its image's name does not answer" {
        local name=silent-$RUN_ID
        make_fuse_loop "$name.img"
        stop_process "$BACKGROUND_PID"
        call detach "$name" "$NODE"
        assert_refused "which $fuse_loop is attached to, does not answer"
        end_fuse_loop
        kubelet_detach "$name"
}

# bats test_tags=deep
@test "an image is not attached while a loop device over a file of its name does not answer, if other programs have the image open" {
        local name=silent-$RUN_ID
        kubelet_attach "$name" type=loop size=8Mi
        kubelet_detach "$name"
        make_fuse_loop "$name.img"
        stop_process "$BACKGROUND_PID"
        exec 7<"$(image_of "$name")"
        call attach "$(spec "$name" type=loop size=8Mi)" "$NODE"
        assert_refused "which $fuse_loop is attached to, does not answer"
        exec 7<&-
        kubelet_attach "$name" type=loop size=8Mi
        kubelet_detach "$name"
        end_fuse_loop
        assert_nothing_left
}

@test "an image on btrfs is not read and written directly: its checksums do not stand that" {
        local pool=$BATS_TEST_TMPDIR/pool.img device
        [[ -n $(type -P mkfs.btrfs) ]] || skip "no btrfs-progs"
        mkdir -p "$STATE_DIR/pools/default"
        truncate -s 120M "$pool"
        mkfs.btrfs -q "$pool" 2>/dev/null
        device=$(loop_over "$pool")
        bed_loops+=("$device")
        mount "$device" "$STATE_DIR/pools/default"
        kubelet_attach data type=loop size=8Mi
        is "$(losetup --noheadings --raw --output DIO "${DEVICES[data]}" | tr -d ' ')" 0
        kubelet_detach data
        umount "$STATE_DIR/pools/default"
}

@test "a btrfs in an image that was given all its blocks keeps them: it is mounted without discarding" {
        [[ -n $(type -P mkfs.btrfs) ]] || skip "no btrfs-progs"
        lifecycle_up data type=loop size=128Mi preallocate=true @fsType=btrfs
        [[ ,$(findmnt -n -o OPTIONS --mountpoint "$(global_dir data)"), != *,discard* ]]
        lifecycle_down data
        assert_nothing_left
}

@test "a device that udev names by a link in /dev/mapper is attached" {
        make_device ext4
        as_mapped
        call attach "$(spec disk type=block "source=$DEVICE")" "$NODE"
        assert_field .status Success
        assert_field .device "$DEVICE"
        call detach disk "$NODE"
        assert_field .status Success
}

@test "a volume whose filesystem is always read-only is not failed" {
        [[ -n $(type -P mksquashfs) ]] || skip "no squashfs-tools"
        make_device squashfs
        kubelet_attach disk type=block "source=$DEVICE"
        kubelet_stage disk
        kubelet_publish disk
        helper volume-list "{\"name\": \"disk\", \"path\": \"$(pod_dir disk)\"}"
        assert_field .mounted.health ok
        lifecycle_down disk
}

# bats test_tags=kernel
@test "an image is read and written directly where its filesystem can" {
        local probe=$BATS_TEST_TMPDIR/probe device dio
        truncate -s 1M "$probe"
        device=$(loop_over --direct-io=on "$probe")
        dio=$(losetup --noheadings --raw --output DIO "$device")
        losetup --detach "$device"
        kubelet_attach data type=loop size=8Mi
        is "$(losetup --noheadings --raw --output DIO "${DEVICES[data]}")" "$dio" "direct I/O"
        kubelet_detach data
        assert_nothing_left
}

@test "an image is sparse unless it is to be preallocated" {
        kubelet_attach thin type=loop size=8Mi
        kubelet_attach thick type=loop size=8Mi preallocate=true
        is "$(stat -c %s "$(image_of thin)")" 8388608
        is "$(stat -c %s "$(image_of thick)")" 8388608
        (($(stat -c %b "$(image_of thin)") * 512 < 1048576))
        (($(stat -c %b "$(image_of thick)") * 512 >= 8388608))
        kubelet_detach thin
        kubelet_detach thick
        assert_nothing_left
}

@test "an image is not made larger than the room of a pool that has a share, or of any if it is to be preallocated" {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/half"
        printf '{"name": "half", "type": "loop", "path": "%s", "maxPercent": 50}\n' "$BATS_TEST_TMPDIR/half" >"$FLEXGRAFT_POOLS/half.json"
        call attach "$(spec huge type=loop pool=half size=8Ti)" "$NODE"
        assert_refused "has room for a volume of"
        call attach "$(spec huge type=loop size=8Ti preallocate=true)" "$NODE"
        assert_refused "has room for a volume of"
        is "$(find "$POOL" "$BATS_TEST_TMPDIR/half" -name 'huge*')" ''
        kubelet_attach huge type=loop size=8Ti
        kubelet_detach huge
        assert_nothing_left
}

@test "an image that is there keeps its size and its content" {
        up data 8Mi
        lifecycle_down data
        local before
        before=$(cksum <"$(image_of data)")
        kubelet_attach data type=loop size=4Mi
        is "$(stat -c %s "$(image_of data)")" 8388608
        kubelet_detach data
        kubelet_attach data type=loop
        is "$(cksum <"$(image_of data)")" "$before"
        kubelet_detach data
        assert_nothing_left
}

@test "an image whose name does not end in .img is attached as it is, and none is made" {
        kubelet_attach first type=loop size=8Mi
        kubelet_detach first
        truncate -s 8M "$POOL/disk.raw"
        write_policy '"kinds": ["loop"], "images": ["default"]'
        kubelet_attach data type=loop image=disk.raw
        kubelet_detach data
        call attach "$(spec data type=loop image=disk.raw size=8Mi)" "$NODE"
        assert_refused "ends in .img"
        call attach "$(spec data type=loop image=new.raw size=8Mi)" "$NODE"
        assert_refused "ends in .img"
        [[ ! -e $POOL/new.raw ]]
        rm "$POOL/disk.raw"
        assert_nothing_left
}

@test "an image that is not there is an error without a size" {
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused data.img size
        [[ ! -e $(image_of data) ]]
        assert_nothing_left
}

@test "an image is a plain file in its pool" {
        local image
        kubelet_attach data type=loop size=8Mi
        kubelet_detach data
        mkdir "$POOL/directory"
        mkfifo "$POOL/fifo"
        echo precious >"$BATS_TEST_TMPDIR/victim"
        ln -s "$BATS_TEST_TMPDIR/victim" "$POOL/link"
        ln -s "$BATS_TEST_TMPDIR/nothing" "$POOL/dangling"
        mknod "$POOL/device" b 7 0
        for image in directory fifo link dangling device ../victim ../../../victim . .. "$BATS_TEST_TMPDIR/victim" a/b; do
                call attach "$(loop_spec other "image=$image")" "$NODE"
                assert_refused
                assert_no_loops
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" precious
        [[ ! -e $BATS_TEST_TMPDIR/nothing ]]
        assert_nothing_left
}

@test "an empty image is an error that says so" {
        kubelet_attach data type=loop size=8Mi
        kubelet_detach data
        truncate -s 0 "$(image_of data)"
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused data.img
        assert_nothing_left
}

@test "where /dev lacks the loop device that the kernel has for an image, that is said, and nothing is left" {
        own_dev
        CALL_PREFIX=("${OWN_DEV[@]}")
        call attach "$(spec data type=loop size=8Mi)" "$NODE"
        CALL_PREFIX=()
        assert_refused 'the kernel has /dev/loop' "needs the machine's /dev"
        assert_nothing_left
}

# bats test_tags=kernel
@test "an image that another program has attached to a loop device is refused" {
        kubelet_attach data type=loop size=8Mi
        kubelet_detach data
        wait_until 5 device_is_free "${DEVICES[data]}" # tests beside this one look at all loop devices
        local device
        device=$(loop_over "$(image_of data)")
        bed_loops+=("$device")
        call attach "$(loop_spec data)" "$NODE"
        assert_refused "$device"
        is "$(loop_of "$(image_of data)")" "$device"
        call detach data "$NODE"
        assert_success
        is "$(loop_of "$(image_of data)")" "$device" "somebody else's loop device"
        assert_nothing_left
}

@test "two volumes may not share one image" {
        write_policy '"images": ["default/shared.img"]'
        kubelet_attach data type=loop size=8Mi image=shared.img
        call attach "$(loop_spec other image=shared.img)" "$NODE"
        assert_refused shared.img
        is "$(loops_of_test)" "${DEVICES[data]}"
        call detach other "$NODE"
        assert_success
        is "$(loops_of_test)" "${DEVICES[data]}"
        kubelet_detach data
        call attach "$(loop_spec other image=shared.img)" "$NODE"
        assert_refused shared.img '"data"'
        wait_until 5 no_loops_of_test
        assert_nothing_left
}

@test "two names of one image are one image" {
        kubelet_attach data type=loop size=8Mi
        ln "$(image_of data)" "$POOL/linked.img"
        call attach "$(spec other type=loop image=linked.img)" "$NODE"
        assert_refused
        is "$(loops_of_test)" "${DEVICES[data]}"
        kubelet_detach data
        assert_nothing_left
}

@test "a loop device that was taken away under a volume is made anew" {
        truncate -s 1M "$BATS_TEST_TMPDIR/theirs"
        give_away "$BATS_TEST_TMPDIR/theirs" type=loop size=8Mi
        local theirs=${DEVICES[data]}
        kubelet_attach data type=loop size=8Mi
        [[ ${DEVICES[data]} != "$theirs" ]]
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        is "$(loop_of "$BATS_TEST_TMPDIR/theirs")" "$theirs"
        assert_nothing_left
}

@test "detach does not touch the volume that has got the loop device meanwhile" {
        truncate -s 1M "$BATS_TEST_TMPDIR/theirs"
        give_away "$BATS_TEST_TMPDIR/theirs" type=loop size=8Mi
        kubelet_detach data
        is "$(loop_of "$BATS_TEST_TMPDIR/theirs")" "${DEVICES[data]}"
        assert_nothing_left
}

@test "mountdevice does not take another device for the volume's own" {
        kubelet_attach data type=loop size=8Mi
        make_device ext4
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "$DEVICE" "${SPECS[data]}"
        if [[ $(json_field .status) == Success ]]; then
                # what was asked for by name counts: the volume's own device, not the argument
                is "$(stat -c %d "$(global_dir data)")" "$(($(stat -c '0x%t * 256 + 0x%T' "${DEVICES[data]}")))"
                kubelet_unstage data
        else
                assert_refused
                rmdir "$(global_dir data)"
        fi
        kubelet_detach data
        assert_nothing_left
}

@test "detach of a mounted volume is refused, whatever its filesystem" {
        local type
        for type in ext4 btrfs; do
                lifecycle_up $type type=loop size=128Mi @fsType=$type
                call detach $type "$NODE"
                assert_refused
                is "$(volume_records)" $type.json
                touch "$(pod_dir $type)/file"
                lifecycle_down $type
        done
        assert_nothing_left
}

@test "a volume whose image was replaced while it is attached does not grow, and neither does the other image" {
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        kubelet_publish data
        truncate -s 4M "$(image_of data).new"
        mv "$(image_of data).new" "$(image_of data)"
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((16 << 20)) $((8 << 20))
        assert_refused replaced
        is "$(stat -c %s "$(image_of data)")" $((4 << 20))
        take_down data
        assert_nothing_left
}

@test "an image that was deleted under a volume does not keep it from being taken away" {
        up data 8Mi
        rm "$(image_of data)"
        lifecycle_down data
        assert_nothing_left
}

# ---- block

@test "a block device is the volume, and is still there after it" {
        make_device ext4
        up_block disk
        is "${DEVICES[disk]}" "$DEVICE"
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        is "$(loop_of "$IMAGE")" "$DEVICE"
        assert_nothing_left
}

@test "a block device is found by UUID, by label and by a link in /dev" {
        make_device ext4 "fg$RUN_ID"
        by_id found "$DEVICE"
        local source
        for source in "UUID=$(signature_of "$DEVICE" UUID)" "LABEL=fg$RUN_ID" "$LINK" "//dev/./${DEVICE#/dev/}"; do
                lifecycle_up disk type=block "source=$source"
                is "$(<"$(pod_dir disk)/file")" "from the device"
                lifecycle_down disk
                lifecycle_up disk type=block "device=$source"
                lifecycle_down disk
        done
        assert_nothing_left
}

@test "a block device must lie in /dev" {
        make_device ext4
        ln -s "$DEVICE" "$BATS_TEST_TMPDIR/link"
        mknod "$BATS_TEST_TMPDIR/node" b "$((0x$(stat -c %t "$DEVICE")))" "$((0x$(stat -c %T "$DEVICE")))"
        local source
        TIMEOUTS='"device": 1' write_config
        for source in "$BATS_TEST_TMPDIR/link" "$BATS_TEST_TMPDIR/node" "/dev/..$BATS_TEST_TMPDIR/node" loop0 '' UUID= LABEL= /dev; do
                call attach "$(spec disk type=block "source=$source")" "$NODE"
                assert_refused
        done
        by_id out "$BATS_TEST_TMPDIR/node"
        call attach "$(spec disk type=block "source=$LINK")" "$NODE"
        assert_refused
        assert_nothing_left
}

# bats test_tags=kernel
@test "a device that appears late is waited for" {
        truncate -s 16M "$BATS_TEST_TMPDIR/late"
        LINK=/dev/disk/by-id/flexgraft-test-$RUN_ID-late
        links+=("$LINK")
        TIMEOUTS='"device": 100' write_config
        (sleep 1 && loop_over "$BATS_TEST_TMPDIR/late" >"$BATS_TEST_TMPDIR/late.device" &&
                mkdir -p "${LINK%/*}" && ln -s "$(<"$BATS_TEST_TMPDIR/late.device")" "$LINK") 3>&- &
        kubelet_attach disk type=block "source=$LINK"
        wait "$!"
        bed_loops+=("$(<"$BATS_TEST_TMPDIR/late.device")")
        kubelet_stage disk
        kubelet_publish disk
        take_down disk
        assert_nothing_left
}

@test "a device that does not appear is an error when its time is over" {
        local source
        TIMEOUTS='"device": 1' write_config
        for source in /dev/disk/by-id/flexgraft-none UUID=01234567-89ab-cdef-0123-456789abcdef; do
                not_hung call attach "$(spec disk type=block "source=$source")" "$NODE"
                assert_refused "$source" "within 1 second"
        done
        assert_nothing_left
}

@test "isattached, detach and attach for another node wait for no device" {
        TIMEOUTS='"device": 1000' write_config
        not_hung call isattached "$(spec disk type=block source=/dev/disk/by-id/flexgraft-none)" "$NODE"
        assert_reply '{"status": "Success", "attached": false}'
        not_hung call attach "$(spec disk type=block source=/dev/disk/by-id/flexgraft-none)" another-node
        assert_success
        not_hung call detach disk "$NODE"
        assert_success
        assert_nothing_left
}

@test "a source that is no block device is refused at once" {
        local source
        TIMEOUTS='"device": 1000' write_config
        touch "/dev/shm/flexgraft-test-$RUN_ID"
        links+=("/dev/shm/flexgraft-test-$RUN_ID")
        for source in /dev/null "/dev/shm/flexgraft-test-$RUN_ID" /dev/shm; do
                not_hung call attach "$(spec disk type=block "source=$source")" "$NODE"
                assert_refused "$source" "block device"
        done
        assert_nothing_left
}

# bats test_tags=kernel
@test "a device that another process has open exclusively is refused" {
        make_device ext4
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE"
        call attach "$(spec disk type=block "source=$DEVICE")" "$NODE"
        assert_refused "$DEVICE"
        end_process "$BACKGROUND_PID"
        up_block disk
        lifecycle_down disk
        assert_nothing_left
}

@test "a device that is mounted elsewhere is refused" {
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/elsewhere"
        call attach "$(spec disk type=block "source=$DEVICE")" "$NODE"
        assert_refused "$DEVICE"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/elsewhere"
        umount "$BATS_TEST_TMPDIR/elsewhere"
        assert_nothing_left
}

@test "a device that is mounted elsewhere after its attach is not mounted again" {
        make_device ext4
        kubelet_attach disk type=block "source=$DEVICE"
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/elsewhere"
        make_dir "$(global_dir disk)"
        call mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}"
        assert_refused
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/elsewhere"
        umount "$BATS_TEST_TMPDIR/elsewhere"
        kubelet_stage disk
        kubelet_unstage disk
        kubelet_detach disk
        assert_nothing_left
}

@test "a pod does not get a device for writing that is mounted elsewhere after its attach" {
        make_device ext4
        kubelet_attach disk type=block "source=$DEVICE" targetType=block
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/elsewhere"
        make_dir "$(dirname "$(pod_dir disk)")"
        call mount "$(pod_dir disk)" "${SPECS[disk]}"
        assert_refused "$DEVICE"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/elsewhere"
        umount "$BATS_TEST_TMPDIR/elsewhere"
        kubelet_detach disk
        assert_nothing_left
}

@test "a volume that the driver made is a block device until it has had a filesystem, also where the options name its image" {
        local options
        for options in 'size=8Mi image=mine.img' size=8Mi; do
                # shellcheck disable=SC2086 # the words of the options
                kubelet_attach disk type=loop $options targetType=block
                make_dir "$(global_dir disk)"
                call mountdevice "$(global_dir disk)" "${DEVICES[disk]}" "${SPECS[disk]}"
                assert_success
                make_dir "$(dirname "$(pod_dir disk)")"
                call mount "$(pod_dir disk)" "$(publish_spec disk "$POD")"
                assert_success
                is "$(stat -c %F "$(pod_dir disk)")" "block special file"
                call unmount "$(pod_dir disk)"
                assert_success
                kubelet_detach disk
                # shellcheck disable=SC2086
                lifecycle_up disk type=loop $options
                lifecycle_down disk
                # shellcheck disable=SC2086
                kubelet_attach disk type=loop $options targetType=block
                make_dir "$(dirname "$(pod_dir disk)")"
                call mount "$(pod_dir disk)" "$(publish_spec disk "$POD")"
                assert_refused filesystem
                kubelet_detach disk
                delete_volume disk
        done
}

@test "a pod does not get another filesystem that was mounted by the name of its volume's device" {
        mkdir "$BATS_TEST_TMPDIR/another"
        kubelet_attach data type=loop size=8Mi
        mount -t tmpfs "${DEVICES[data]}" "$BATS_TEST_TMPDIR/another"   # so may a user of the node call a FUSE filesystem
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused "not staged"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/another"
        umount "$BATS_TEST_TMPDIR/another"
        kubelet_detach data
}

@test "two volumes that share a device for reading do not come to share it for writing" {
        make_device ext4
        kubelet_attach one type=block "source=$DEVICE" kubernetes.io/readwrite=ro
        kubelet_attach two type=block "source=$DEVICE" kubernetes.io/readwrite=ro
        make_dir "$(global_dir one)"
        call mountdevice "$(global_dir one)" "$DEVICE" "$(spec one type=block "source=$DEVICE")"
        assert_refused "$DEVICE" two
        is "$(mounts_here)" ''
        kubelet_detach two
        call mountdevice "$(global_dir one)" "$DEVICE" "$(spec one type=block "source=$DEVICE")"
        assert_success
        kubelet_unstage one
        kubelet_detach one
        assert_nothing_left
}

@test "two volumes may not share one device, whatever they call it" {
        make_device ext4
        kubelet_attach disk type=block "source=$DEVICE"
        by_id other "$DEVICE"
        local source
        for source in "$DEVICE" "$LINK" "UUID=$(signature_of "$DEVICE" UUID)"; do
                call attach "$(spec other type=block "source=$source")" "$NODE"
                assert_refused
        done
        kubelet_stage disk
        call attach "$(spec other type=block "source=$DEVICE")" "$NODE"
        assert_refused
        kubelet_unstage disk
        kubelet_detach disk
        assert_nothing_left
}

@test "a loop volume's device cannot be a block volume" {
        kubelet_attach data type=loop size=8Mi
        call attach "$(spec disk type=block "source=${DEVICES[data]}")" "$NODE"
        assert_refused
        kubelet_detach data
        assert_nothing_left
}

@test "the loop device of a volume that pods only read is no block volume of others, not even to read" {
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        SPECS[data]=$(spec data type=loop size=8Mi readOnly=true)
        kubelet_attach data type=loop size=8Mi readOnly=true
        kubelet_stage data
        call attach "$(spec disk type=block "source=${DEVICES[data]}" readOnly=true)" "$NODE"
        assert_refused "is the device of a volume"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "what one pod says of how its tmpfs is used is not said of another pod's of the same name" {
        local one other
        one=$(pod_dir cache one) other=$(pod_dir cache other)
        make_dir "$one"
        make_dir "$other"
        call mount "$one" "$(spec cache type=tmpfs size=1Mi accessMode=SINGLE_NODE_READER_ONLY)"
        assert_success
        call mount "$other" "$(spec cache type=tmpfs size=1Mi)"
        assert_success
        touch "$other/file"
        call unmount "$other"
        assert_success
        call unmount "$one"
        assert_success
        rmdir "$one" "$other"
        assert_nothing_left
}

@test "an image that was replaced while the volume is staged, and no pod has it, is not attached as if nothing had happened" {
        lifecycle_up data type=loop size=8Mi
        kubelet_unpublish data
        cp "$(image_of data)" "$POOL/new"
        mv "$POOL/new" "$(image_of data)"
        call attach "${SPECS[data]}" "$NODE"
        assert_refused "was removed or replaced while the volume is mounted"
        kubelet_unstage data
        kubelet_detach data
}

@test "a volume for virtual machines does not grow, and expandfs, which kubelet calls before each pod, says nothing against it" {
        SPECS[data]=$(spec data type=loop size=64Mi kataContainers=true)
        call expandvolume "${SPECS[data]}" /dev/flexgraft/data $((128 << 20)) $((64 << 20))
        assert_refused "for virtual machines"
        call expandfs "${SPECS[data]}" /dev/flexgraft/data "$(global_dir data)" $((128 << 20)) $((64 << 20))
        assert_success
        assert_nothing_left
}

@test "a mounted block volume is attached again to the same device" {
        make_device ext4
        up_block disk
        kubelet_attach disk type=block "source=$DEVICE"
        is "${DEVICES[disk]}" "$DEVICE"
        kubelet_stage disk
        is "$(node_mounts_at "$(global_dir disk)")" 1
        lifecycle_down disk
        assert_nothing_left
}

@test "a loop device is made writable when it is taken: an earlier user may have made it read-only" {
        # seen by the call, as a read-only device that is unused would be anybody's
        strace -f -o "$BATS_TEST_TMPDIR/trace" -e trace=ioctl "$DRIVER" attach "$(spec data type=loop size=8Mi)" "$NODE" 3>&- >"$BATS_TEST_TMPDIR/reply"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/reply")" Success
        is "$(grep -oE '(LOOP_CONFIGURE|BLKROSET, \[0\]).*= 0$' "$BATS_TEST_TMPDIR/trace" | grep -oE 'LOOP_CONFIGURE|BLKROSET' | tail -n 2 | paste -sd' ')" \
                'LOOP_CONFIGURE BLKROSET'
        lifecycle_up data type=loop size=8Mi
        touch "$(pod_dir data)/file"
        lifecycle_down data
        assert_nothing_left
}

@test "a read-only device serves a read-only volume, and no other" {
        make_device ext4
        blockdev --setro "$DEVICE"
        up_block disk @readwrite=ro
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        call attach "$(spec disk type=block "source=$DEVICE")" "$NODE"
        if [[ $(json_field .status) == Success ]]; then
                make_dir "$(global_dir disk)"
                call mountdevice "$(global_dir disk)" "$DEVICE" "$(spec disk type=block "source=$DEVICE")"
        fi
        assert_refused
        is "$(mounts_here)" ""
        call detach disk "$NODE"
        [[ ! -e $(global_dir disk) ]] || rmdir "$(global_dir disk)"
        assert_nothing_left
}

@test "a mounted volume keeps its device, wherever its name leads now" {
        make_device ext4
        local first=$DEVICE
        by_id moving "$DEVICE"
        lifecycle_up disk type=block "source=$LINK"
        make_device ext4
        ln -sfn "$DEVICE" "$LINK"
        call attach "$(spec disk type=block "source=$LINK")" "$NODE"
        [[ $(json_field .status) == Failure ]] || assert_field .device "$first"
        call attach "$(spec disk)" "$NODE"
        [[ $(json_field .status) == Failure ]] || assert_field .device "$first"
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        assert_nothing_left
}
