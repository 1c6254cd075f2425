#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The volumes behind the FlexVolume driver: loop, block, bind and tmpfs; what is formatted and what never; growing; taking away what is
# busy, dead or stacked.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        links=()
}

teardown() {
        rm -f "${links[@]}"
        ((${#links[@]} == 0)) || rmdir /dev/disk/by-id /dev/disk 2>/dev/null || :
        driver_teardown
}

loop_spec() {
        spec "$1" type=loop size=8Mi "${@:2}"
}

# up NAME SIZE [KEY=VALUE...]: a loop volume in the pod; up_block NAME [KEY=VALUE...]: $DEVICE in the pod.
up() {
        lifecycle_up "$1" type=loop "size=$2" "${@:3}"
}

up_block() {
        lifecycle_up "$1" type=block "source=$DEVICE" "${@:2}"
}

# take_down NAME: lifecycle_down, whatever began it.
take_down() {
        DRIVER_ATTACHES=true lifecycle_down "$1"
}

# by_id NAME TARGET: a link in /dev/disk/by-id until teardown; its path in LINK.
by_id() {
        LINK=/dev/disk/by-id/flexgraft-test-$BATS_ROOT_PID-$1
        mkdir -p /dev/disk/by-id
        ln -s "$2" "$LINK"
        links+=("$LINK")
}

# poke OFFSET: standard input to the device there, where the bytes begin.
poke() {
        dd "of=$DEVICE" bs=1 "seek=$1" conv=notrunc,fsync 2>/dev/null
}

signature_of() {
        blkid --probe --output value --match-tag "${2:-TYPE}" "$1"
}

# content_of DEVICE: sums of its first and last 16 MiB.
content_of() {
        head -c 16777216 "$1" | sha256sum
        tail -c 16777216 "$1" | sha256sum
}

# refuses_to_format [TEXT...]: the block volume of $DEVICE fails to be staged, the message says so, and no byte of the device changes.
refuses_to_format() {
        local before name=disk
        sync "$DEVICE"
        before=$(content_of "$DEVICE")
        call attach "$(spec $name type=block "source=$DEVICE")" "$NODE" || return 1
        if [[ $(jq -r .status <<<"$json") == Success ]]; then
                make_dir "$(global_dir $name)"
                call mountdevice "$(global_dir $name)" "$DEVICE" "$(spec $name type=block "source=$DEVICE" @fsType="${FSTYPE:-ext4}")" || return 1
        fi
        assert_refused "$@" || return 1
        is "$(mounts_here)" "" mounts || return 1
        is "$(content_of "$DEVICE")" "$before" "sums of the device's ends" || return 1
        call detach $name "$NODE" && assert_success || return 1
        [[ ! -e $(global_dir $name) ]] || rmdir "$(global_dir $name)"
        assert_nothing_left
}

# ---- formatting

check_type() {
        up data "$2" "@fsType=$1"
        is "$(node_mount_type "$(pod_dir data)")" "$1"
        echo text >"$(pod_dir data)/file"
        lifecycle_down data
        is "$(signature_of "$(image_of data)")" "$1"
        up data "$2"                            # asked for no type, what is there is mounted
        is "$(node_mount_type "$(pod_dir data)")" "$1"
        is "$(<"$(pod_dir data)/file")" text
        lifecycle_down data
        assert_nothing_left
}

# bats test_tags=kernel
@test "a blank volume is formatted with ext4" {
        check_type ext4 8Mi
}

# bats test_tags=kernel
@test "a blank volume is formatted with xfs" {
        check_type xfs 300Mi
}

@test "a blank volume is formatted with btrfs" {
        check_type btrfs 128Mi
}

@test "a blank block device is formatted once" {
        make_device blank
        up_block disk
        echo text >"$(pod_dir disk)/file"
        lifecycle_down disk
        local uuid
        uuid=$(signature_of "$DEVICE" UUID)
        up_block disk @fsType=ext4
        is "$(<"$(pod_dir disk)/file")" text
        lifecycle_down disk
        is "$(signature_of "$DEVICE" UUID)" "$uuid" "the filesystem's UUID"
        assert_nothing_left
}

@test "a filesystem of another type than asked for is neither formatted over nor mounted" {
        local type other
        for type in ext4 xfs btrfs; do
                make_device "$type"
                other=xfs
                [[ $type != xfs ]] || other=ext4
                FSTYPE=$other refuses_to_format "$type" "$other"
        done
}

@test "filesystems that nobody formats are not formatted over" {
        local type
        for type in erofs squashfs; do
                make_device "$type"
                refuses_to_format "$type"
        done
}

@test "a partition table is not formatted over" {
        make_device blank
        # one partition, of type 83, from sector 2048
        printf '\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x10\x00\x00' | poke 446
        printf '\x55\xaa' | poke 510
        is "$(signature_of "$DEVICE" PTTYPE)" dos
        refuses_to_format dos
}

@test "an LVM label is not formatted over" {
        make_device blank
        perl -e 'my $body = pack("V a8 a32", 32, "LVM2 001", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"); $body .= "\0" x (492 - length $body);
                my $crc = 0xf597a6cf;
                for my $byte (unpack "C*", $body) { $crc ^= $byte; $crc = $crc & 1 ? ($crc >> 1) ^ 0xedb88320 : $crc >> 1 for 1 .. 8 }
                print pack("a8 V V V", "LABELONE", 1, 0, $crc), $body' | poke 512
        is "$(signature_of "$DEVICE")" LVM2_member
        refuses_to_format LVM2_member
}

@test "an encrypted volume is not formatted over" {
        make_device blank
        printf 'LUKS\xba\xbe\x00\x01aes' | poke 0
        is "$(signature_of "$DEVICE")" crypto_LUKS
        refuses_to_format crypto_LUKS
}

@test "swap is not formatted over" {
        make_device blank
        mkswap "$DEVICE" >/dev/null
        refuses_to_format swap
}

@test "a member of a RAID, whose mark is at the end of the device, is not formatted over" {
        make_device blank
        local sectors offset
        sectors=$(blockdev --getsz "$DEVICE")
        offset=$(((sectors - 16) / 8 * 8))
        perl -e 'my $sb = pack("V V V V a16 a32 Q< V V Q< V V", 0xa92b4efc, 1, 0, 0, "0123456789abcdef", "raid", 0, 1, 0, 16384, 0, 2);
                $sb .= "\0" x (128 - length $sb); $sb .= pack("Q< Q< Q<", 0, 16384, $ARGV[0]); $sb .= "\0" x (256 - length $sb);
                my $sum = 0; $sum += $_ for unpack "V*", $sb; $sum = (($sum & 0xffffffff) + ($sum >> 32)) & 0xffffffff;
                substr($sb, 216, 4) = pack("V", $sum); print $sb' "$offset" | poke "$((offset * 512))"
        is "$(signature_of "$DEVICE")" linux_raid_member
        refuses_to_format linux_raid_member
}

@test "bytes that no program knows are not formatted over" {
        local offset
        for offset in 0 4096 65536 1048500; do
                make_device blank
                printf 'precious' | poke "$offset"
                is "$(signature_of "$DEVICE")" ""
                refuses_to_format
        done
}

@test "two filesystems' marks on one device are not formatted over" {
        make_device ext4
        printf '_BHRfS_M' | poke 65600
        refuses_to_format
}

@test "an image that was there before, without a filesystem but with content, is not formatted over" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        truncate -s 8M "$(image_of data)"
        printf 'precious' | dd "of=$(image_of data)" conv=notrunc 2>/dev/null
        kubelet_attach data type=loop
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused
        is "$(head -c 8 "$(image_of data)")" precious
        kubelet_detach data
        rmdir "$(global_dir data)"
        assert_nothing_left
}

@test "a blank device is not formatted for whoever may only read it" {
        make_device blank
        call attach "$(spec disk type=block "source=$DEVICE" @readwrite=ro)" "$NODE"
        assert_success
        make_dir "$(global_dir disk)"
        call mountdevice "$(global_dir disk)" "$DEVICE" "$(spec disk type=block "source=$DEVICE" @readwrite=ro)"
        assert_refused read-only
        is "$(signature_of "$DEVICE")" ""
        is "$(mounts_here)" ""
        kubelet_detach disk
        rmdir "$(global_dir disk)"
        assert_nothing_left
}

@test "a filesystem that cannot be made is not, and the message says which can" {
        local type
        for type in zfs ntfs vfat swap /bin/sh ../ext4 'ext4 -F' EXT4; do
                call attach "$(loop_spec data "@fsType=$type")" "$NODE"
                if [[ $(jq -r .status <<<"$json") == Success ]]; then
                        make_dir "$(global_dir data)"
                        call mountdevice "$(global_dir data)" "$(jq -r .device <<<"$json")" "$(loop_spec data "@fsType=$type")"
                        assert_refused "$type"
                        is "$(mounts_here)" ""
                        is "$(signature_of "$(image_of data)")" ""
                        rmdir "$(global_dir data)"
                        kubelet_detach data
                else
                        assert_refused fsType
                fi
        done
        assert_nothing_left
}

@test "a device that is too small for mkfs is a clean error in its words" {
        local type
        for type in xfs btrfs; do
                kubelet_attach "$type" type=loop size=64Ki "@fsType=$type"
                make_dir "$(global_dir "$type")"
                call mountdevice "$(global_dir "$type")" "${DEVICES[$type]}" "${SPECS[$type]}"
                assert_refused "mkfs.$type"
                is "$(mounts_here)" ""
                rmdir "$(global_dir "$type")"
                kubelet_detach "$type"
        done
        assert_nothing_left
}

@test "formatting that was broken off is begun again" {
        kubelet_attach data type=loop size=8Mi
        json=$(<"$(record_of data)")
        assert_field .formatting ''
        # what mkfs leaves when it is killed: much, but the superblock
        mkfs.ext4 -q -F "${DEVICES[data]}"
        dd if=/dev/zero "of=${DEVICES[data]}" bs=1k count=2 conv=notrunc,fsync 2>/dev/null
        edit_record data ".formatting = \"$(image_identity "$(image_of data)")\""
        kubelet_stage data
        json=$(<"$(record_of data)")
        assert_field .formatting ''
        [[ $(signature_of "${DEVICES[data]}" UUID) != "$UUID" ]]
        kubelet_publish data
        echo text >"$(pod_dir data)/file"
        take_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

# bats test_tags=kernel
@test "formatting that was killed is begun again" {
        local dir
        kubelet_attach data type=loop size=64Mi
        dir=$(global_dir data)
        make_dir "$dir"
        # in the midst of mkfs
        run "$FLEXGRAFT_TOOLS/at-syscall" --others --at pwrite64:100 --kill "$DRIVER" mountdevice "$dir" "${DEVICES[data]}" "${SPECS[data]}"
        is "$output" ""
        json=$(<"$(record_of data)")
        [[ $(jq -r .formatting <<<"$json") == *:* ]]
        wait_until 10 no_driver_processes       # mkfs has not outlived it
        kubelet_stage data
        kubelet_publish data
        echo text >"$(pod_dir data)/file"
        take_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

@test "a filesystem that somebody else has made since formatting was broken off is not touched" {
        make_device blank
        kubelet_attach disk type=block "source=$DEVICE"
        edit_record disk ".formatting = \"$(block_identity "$DEVICE")\""
        # this node was away, and another one has had the device
        mkfs.ext4 -q -F -d "$SOURCE" "$DEVICE"
        local uuid
        uuid=$(signature_of "$DEVICE" UUID)
        make_dir "$(global_dir disk)"
        call mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}"
        is "$(signature_of "$DEVICE" UUID)" "$uuid" "the filesystem's UUID"
        call unmountdevice "$(global_dir disk)"
        [[ ! -e $(global_dir disk) ]] || rmdir "$(global_dir disk)"
        kubelet_detach disk
        is "$(signature_of "$DEVICE" UUID)" "$uuid" "the filesystem's UUID"
        assert_nothing_left
}

@test "a partition table that somebody else has made since formatting was broken off is not touched" {
        local before verb
        for verb in mountdevice detach; do
                make_device blank
                kubelet_attach disk type=block "source=$DEVICE"
                edit_record disk ".formatting = \"$(block_identity "$DEVICE")\""
                printf '\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x10\x00\x00' | poke 446
                printf '\x55\xaa' | poke 510
                before=$(sha256sum <"$DEVICE")
                if [[ $verb == mountdevice ]]; then
                        make_dir "$(global_dir disk)"
                        call mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}"
                        assert_refused dos
                        rmdir "$(global_dir disk)"
                fi
                kubelet_detach disk
                is "$(sha256sum <"$DEVICE")" "$before" "sum of the device"
        done
        assert_nothing_left
}

@test "detach does not wipe what somebody else has made since formatting was broken off" {
        make_device blank
        kubelet_attach disk type=block "source=$DEVICE"
        edit_record disk ".formatting = \"$(block_identity "$DEVICE")\""
        mkfs.ext4 -q -F "$DEVICE"
        kubelet_detach disk
        is "$(signature_of "$DEVICE")" ext4
        assert_nothing_left
}

# with_instead PROGRAM SCRIPT: the driver's next calls run in a mount namespace where that program is another; "" is one that cannot be run.
with_instead() {
        local file=$BATS_TEST_TMPDIR/instead
        if [[ -n $2 ]]; then
                printf '#!/bin/sh\n%s\n' "$2" >"$file"
                chmod 0755 "$file"
        else
                file=/dev/null
        fi
        CALL_PREFIX=(unshare --mount --propagation slave sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$file" "$(realpath "$1")")
}

@test "a mkfs that hangs is killed when its time is over, and the volume is formatted by the next call" {
        TIMEOUTS='"command": 1' write_config
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.ext4 "echo \$\$ >'$BATS_TEST_TMPDIR/pid'"'; for last; do :; done; echo half >"$last"; exec sleep 1000'
        local start=$SECONDS
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.ext4
        ((SECONDS - start <= 5))
        wait_until 5 process_is_gone "$(<"$BATS_TEST_TMPDIR/pid")"
        is "$(head -c 4 "$(image_of data)")" half "what the device begins with"
        CALL_PREFIX=()
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "what mkfs says when it fails is in the message, as plain text of one line" {
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.ext4 'echo "first line"; printf "red \033[31m \377 last line\n" >&2; exit 3'
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.ext4 "first line" "last line"
        [[ $output != *$'\e'* && $output != *u001b* ]]
        CALL_PREFIX=()
        kubelet_detach data
        rmdir "$(global_dir data)"
        assert_nothing_left
}

@test "a mkfs that says a great deal does not hang anything" {
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.ext4 'head -c 10000000 /dev/zero | tr "\\0" x; echo the end; exit 1'
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.ext4 "the end"
        ((${#output} < 10000))
        CALL_PREFIX=()
        kubelet_detach data
        rmdir "$(global_dir data)"
        assert_nothing_left
}

@test "a mkfs that is not installed is an error that names it" {
        kubelet_attach data type=loop size=300Mi @fsType=xfs
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.xfs ''
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.xfs "not installed"
        CALL_PREFIX=()
        kubelet_detach data
        rmdir "$(global_dir data)"
        assert_nothing_left
}

@test "a mkfs that succeeds and has made nothing is not believed" {
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.ext4 'exit 0'
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused
        CALL_PREFIX=()
        kubelet_detach data
        rmdir "$(global_dir data)"
        assert_nothing_left
}

# ---- fsck

# bats test_tags=kernel
@test "an ext4 filesystem that was not unmounted is repaired before it is mounted" {
        make_device ext4
        debugfs -w -R 'set_bg 0 free_blocks_count 7' "$DEVICE" 2>/dev/null
        debugfs -w -R 'set_bg 0 checksum calc' "$DEVICE" 2>/dev/null
        debugfs -w -R 'set_super_value state 0' "$DEVICE" 2>/dev/null
        run -4 e2fsck -fn "$DEVICE"
        up_block disk
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        run -0 e2fsck -fn "$DEVICE"
        assert_nothing_left
}

# bats test_tags=kernel
@test "an ext4 superblock that e2fsck was killed in the midst of writing is mended, and all of it is checked" {
        make_device ext4
        debugfs -w -R 'set_bg 0 free_blocks_count 7' "$DEVICE" 2>/dev/null
        debugfs -w -R 'set_bg 0 checksum calc' "$DEVICE" 2>/dev/null
        # what was written to it ever, in KiB: a word of many, and the checksum is still that of before
        printf '\x77\x01' | dd of="$DEVICE" bs=1 seek=$((1024 + 0x178)) conv=notrunc status=none
        run -8 e2fsck -p "$DEVICE"
        up_block disk
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        run -0 e2fsck -fn "$DEVICE"
        assert_nothing_left
}

@test "a filesystem that cannot be repaired without asking is not mounted" {
        make_device ext4
        debugfs -w -R 'clri <2>' "$DEVICE" 2>/dev/null
        debugfs -w -R 'set_super_value state 0' "$DEVICE" 2>/dev/null
        kubelet_attach disk type=block "source=$DEVICE"
        make_dir "$(global_dir disk)"
        call mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}"
        assert_refused fsck
        is "$(mounts_here)" ""
        rmdir "$(global_dir disk)"
        kubelet_detach disk
        assert_nothing_left
}

@test "what is mounted to be read only is not repaired" {
        make_device ext4
        debugfs -w -R 'set_super_value state 0' "$DEVICE" 2>/dev/null
        local before
        before=$(sha256sum <"$DEVICE")
        up_block disk @readwrite=ro
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        is "$(sha256sum <"$DEVICE")" "$before" "sum of the device"
        assert_nothing_left
}

# ---- loop

# bats test_tags=kernel
@test "an image is read and written directly where its filesystem can" {
        local probe=$BATS_TEST_TMPDIR/probe device dio
        truncate -s 1M "$probe"
        device=$(losetup --find --show --direct-io=on "$probe")
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

@test "an image that is there keeps its size and its content" {
        up data 8Mi
        lifecycle_down data
        local before
        before=$(sha256sum <"$(image_of data)")
        kubelet_attach data type=loop size=4Mi
        is "$(stat -c %s "$(image_of data)")" 8388608
        kubelet_detach data
        kubelet_attach data type=loop
        is "$(sha256sum <"$(image_of data)")" "$before"
        kubelet_detach data
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
                is "$(loops_of_test)" "" "loop devices"
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

# bats test_tags=kernel
@test "an image that is somebody else's loop device is refused" {
        kubelet_attach data type=loop size=8Mi
        kubelet_detach data
        local device
        device=$(losetup --find --show "$(image_of data)")
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
        kubelet_attach data type=loop size=8Mi image=shared.img
        call attach "$(loop_spec other image=shared.img)" "$NODE"
        assert_refused shared.img
        is "$(loops_of_test)" "${DEVICES[data]}"
        call detach other "$NODE"
        assert_success
        is "$(loops_of_test)" "${DEVICES[data]}"
        kubelet_detach data
        kubelet_attach other type=loop image=shared.img
        kubelet_detach other
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
        kubelet_attach data type=loop size=8Mi
        truncate -s 1M "$BATS_TEST_TMPDIR/theirs"
        give_away "${DEVICES[data]}" "$BATS_TEST_TMPDIR/theirs"
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

@test "detach does not touch whoever has got the loop device meanwhile" {
        kubelet_attach data type=loop size=8Mi
        truncate -s 1M "$BATS_TEST_TMPDIR/theirs"
        give_away "${DEVICES[data]}" "$BATS_TEST_TMPDIR/theirs"
        kubelet_detach data
        is "$(loop_of "$BATS_TEST_TMPDIR/theirs")" "${DEVICES[data]}"
        assert_nothing_left
}

@test "mountdevice does not take another device for the volume's own" {
        kubelet_attach data type=loop size=8Mi
        make_device ext4
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "$DEVICE" "${SPECS[data]}"
        if [[ $(jq -r .status <<<"$json") == Success ]]; then
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
        make_device ext4 flexgraft-lbl
        by_id found "$DEVICE"
        local source
        for source in "UUID=$(signature_of "$DEVICE" UUID)" LABEL=flexgraft-lbl "$LINK" "//dev/./${DEVICE#/dev/}"; do
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
        mkdir -p /dev/disk/by-id
        LINK=/dev/disk/by-id/flexgraft-test-$BATS_ROOT_PID-late
        links+=("$LINK")
        (sleep 1 && losetup --find --show "$BATS_TEST_TMPDIR/late" >"$BATS_TEST_TMPDIR/late.device" &&
                ln -s "$(<"$BATS_TEST_TMPDIR/late.device")" "$LINK") 3>&- &
        kubelet_attach disk type=block "source=$LINK"
        wait
        bed_loops+=("$(<"$BATS_TEST_TMPDIR/late.device")")
        kubelet_stage disk
        kubelet_publish disk
        take_down disk
        assert_nothing_left
}

@test "a device that does not appear is an error when its time is over" {
        local start source
        TIMEOUTS='"device": 1' write_config
        for source in /dev/disk/by-id/flexgraft-none UUID=01234567-89ab-cdef-0123-456789abcdef; do
                start=$SECONDS
                call attach "$(spec disk type=block "source=$source")" "$NODE"
                assert_refused "$source"
                ((SECONDS - start >= 1 && SECONDS - start <= 4))
        done
        assert_nothing_left
}

@test "isattached, detach and attach for another node wait for no device" {
        local start=$SECONDS
        call isattached "$(spec disk type=block source=/dev/disk/by-id/flexgraft-none)" "$NODE"
        assert_reply '{"status": "Success", "attached": false}'
        call attach "$(spec disk type=block source=/dev/disk/by-id/flexgraft-none)" another-node
        assert_success
        call detach disk "$NODE"
        assert_success
        ((SECONDS - start <= 2))
        assert_nothing_left
}

@test "what is no block device is refused at once" {
        local start=$SECONDS source
        touch /dev/shm/flexgraft-test-$$
        links+=("/dev/shm/flexgraft-test-$$")
        for source in /dev/null /dev/shm/flexgraft-test-$$ /dev/shm; do
                call attach "$(spec disk type=block "source=$source")" "$NODE"
                assert_refused "$source" "block device"
        done
        ((SECONDS - start <= 2))
        assert_nothing_left
}

# bats test_tags=kernel
@test "a device that somebody has open exclusively is refused" {
        make_device ext4
        background_ready "$(tool hold-exclusive)" "$DEVICE"
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

@test "a read-only device serves a read-only volume, and no other" {
        make_device ext4
        blockdev --setro "$DEVICE"
        up_block disk @readwrite=ro
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        call attach "$(spec disk type=block "source=$DEVICE")" "$NODE"
        if [[ $(jq -r .status <<<"$json") == Success ]]; then
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
        [[ $(jq -r .status <<<"$json") == Failure ]] || assert_field .device "$first"
        call attach "$(spec disk)" "$NODE"
        [[ $(jq -r .status <<<"$json") == Failure ]] || assert_field .device "$first"
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        assert_nothing_left
}

# ---- tmpfs

@test "a tmpfs has the size, the mode and the inodes that were asked for" {
        install_driver flexgraft~tmpfs
        lifecycle_up cache size=1Mi mode=0750 inodes=10
        local dir
        dir=$(pod_dir cache)
        is "$(($(stat -f -c '%b * %S' "$dir")))" 1048576
        is "$(stat -c %a "$dir")" 750
        is "$(stat -f -c %c "$dir")" 10
        assert_node_attributes "$dir" rw nosuid nodev
        run ! dd if=/dev/zero "of=$dir/file" bs=64k count=17
        lifecycle_down cache
        assert_nothing_left
}

@test "a tmpfs without options can be written by everybody" {
        install_driver flexgraft~tmpfs
        lifecycle_up cache
        [[ $(stat -c %a "$(pod_dir cache)") =~ ^1?777$ ]]
        lifecycle_down cache
}

@test "a tmpfs that may only be read is read-only" {
        install_driver flexgraft~tmpfs
        lifecycle_up cache size=1Mi @readwrite=ro
        run ! touch "$(pod_dir cache)/file"
        lifecycle_down cache
        assert_nothing_left
}

@test "a tmpfs is each pod's own" {
        install_driver flexgraft~tmpfs
        lifecycle_up cache size=1Mi
        kubelet_publish cache second
        touch "$(pod_dir cache)/file"
        [[ ! -e $(pod_dir cache second)/file ]]
        kubelet_unpublish cache second
        [[ -e $(pod_dir cache)/file ]]
        lifecycle_down cache
        assert_nothing_left
}

@test "a tmpfs with options that make no sense is refused and leaves no mount point" {
        install_driver flexgraft~tmpfs
        local option
        for option in size=much size=-1 mode=rwx mode=99 mode=07777777 inodes=many inodes=-3; do
                make_dir "$(pod_dir cache)"
                call mount "$(pod_dir cache)" "$(spec cache "$option")"
                assert_refused "${option%%=*}"
                is "$(mounts_here)" ""
                rmdir "$(pod_dir cache)"
        done
        assert_nothing_left
}

@test "a tmpfs of the generic driver goes through kubelet's whole order" {
        lifecycle_up cache type=tmpfs size=1Mi
        is "$(node_mount_type "$(pod_dir cache)")" tmpfs
        is "$(mounts_here)" "$(pod_dir cache)" mounts
        call isattached "${SPECS[cache]}" "$NODE"
        assert_success
        lifecycle_down cache
        assert_nothing_left
}

# ---- bind

open_binds() {
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BATS_TEST_TMPDIR\"]"
}

@test "a directory of the node is every pod's" {
        open_binds
        echo text >"$SOURCE/file"
        lifecycle_up host type=bind "source=$SOURCE"
        kubelet_publish host second @readwrite=ro
        is "$(<"$(pod_dir host second)/file")" text
        echo more >"$(pod_dir host)/file"
        is "$(<"$SOURCE/file")" more
        run ! touch "$(pod_dir host second)/new"
        assert_node_attributes "$(pod_dir host)" rw nosuid nodev
        assert_node_attributes "$(pod_dir host second)" ro nosuid nodev
        kubelet_unpublish host second
        lifecycle_down host
        is "$(<"$SOURCE/file")" more
        assert_nothing_left
}

@test "a source that is not there or is no directory is refused" {
        open_binds
        touch "$BATS_TEST_TMPDIR/plain"
        local source
        for source in "$BATS_TEST_TMPDIR/none" relative "$BATS_TEST_TMPDIR/plain" ''; do
                make_dir "$(pod_dir host)"
                call mount "$(pod_dir host)" "$(spec host type=bind "source=$source")"
                assert_refused
                is "$(mounts_here)" ""
                rmdir "$(pod_dir host)"
        done
        [[ ! -e $BATS_TEST_TMPDIR/none ]]
        assert_nothing_left
}

@test "a bind does not spread: what is mounted on the source later stays there" {
        open_binds
        mkdir "$SOURCE/sub"
        lifecycle_up host type=bind "source=$SOURCE"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        touch "$SOURCE/sub/file"
        [[ ! -e $(pod_dir host)/sub/file ]]
        umount "$SOURCE/sub"
        lifecycle_down host
        assert_nothing_left
}

@test "unmount of a bind leaves what is mounted in the source" {
        open_binds
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        touch "$SOURCE/sub/file"
        lifecycle_up host type=bind "source=$SOURCE"
        lifecycle_down host
        [[ -e $SOURCE/sub/file ]]
        umount "$SOURCE/sub"
        assert_nothing_left
}

# ---- growing

size_of() {
        echo $(($(stat -f -c '%b * %S' "$1")))
}

# grow NAME NEW OLD: expandvolume and then expandfs, as the control plane and kubelet do.
grow() {
        call expandvolume "${SPECS[$1]}" "$(global_dir "$1")" "$2" "$3" && assert_success || return 1
        call expandfs "${SPECS[$1]}" "${DEVICES[$1]}" "$(global_dir "$1")" "$2" "$3" && assert_success
}

MIB=1048576

# check_growing TYPE OLD NEW (MiB)
check_growing() {
        up data "$2Mi" "@fsType=$1"
        echo text >"$(pod_dir data)/file"
        local before
        before=$(size_of "$(pod_dir data)")
        call expandvolume "${SPECS[data]}" "$(global_dir data)" $(($3 * MIB)) $(($2 * MIB))
        assert_reply "{\"status\": \"Success\", \"volumeNewSize\": $(($3 * MIB))}"
        is "$(stat -c %s "$(image_of data)")" $(($3 * MIB)) "size of the image"
        is "$(blockdev --getsize64 "${DEVICES[data]}")" $(($3 * MIB)) "size of the device"
        call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" $(($3 * MIB)) $(($2 * MIB))
        assert_success
        is "$(jq -r 'keys - ["status", "volumeNewSize"] | length' <<<"$json")" 0
        (($(size_of "$(pod_dir data)") > before + ($3 - $2) * MIB / 2))
        is "$(<"$(pod_dir data)/file")" text
        # again: nothing to do
        before=$(size_of "$(pod_dir data)")
        grow data $(($3 * MIB)) $(($2 * MIB))
        is "$(size_of "$(pod_dir data)")" "$before"
        lifecycle_down data
        up data "$2Mi"
        is "$(size_of "$(pod_dir data)")" "$before"
        lifecycle_down data
        assert_nothing_left
}

# bats test_tags=kernel
@test "a mounted xfs volume grows" {
        check_growing xfs 300 400
}

@test "a mounted btrfs volume grows" {
        check_growing btrfs 128 256
}

# bats test_tags=kernel
@test "a mounted ext4 volume grows" {
        can_grow_ext4 || skip "resizing a mounted ext4 needs CAP_SYS_RESOURCE, which root has not got here"
        check_growing ext4 16 32
}

@test "an ext4 volume that may not be resized while mounted is a clean error and stays whole" {
        ! can_grow_ext4 || skip "root may resize a mounted ext4 here"
        up data 16Mi
        echo text >"$(pod_dir data)/file"
        call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" $((32 * MIB)) $((16 * MIB))
        assert_refused
        is "$(<"$(pod_dir data)/file")" text
        echo more >"$(pod_dir data)/file"
        lifecycle_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

@test "expandfs alone grows the image, too" {
        up data 300Mi @fsType=xfs
        call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" $((400 * MIB)) $((300 * MIB))
        assert_success
        is "$(stat -c %s "$(image_of data)")" $((400 * MIB))
        (($(size_of "$(pod_dir data)") > 320 * MIB))
        lifecycle_down data
        assert_nothing_left
}

@test "no volume is ever made smaller" {
        up data 300Mi @fsType=xfs
        local before
        before=$(size_of "$(pod_dir data)")
        call expandvolume "${SPECS[data]}" "$(global_dir data)" $((100 * MIB)) $((300 * MIB))
        [[ $(jq -r .status <<<"$json") == Failure ]] || assert_field .volumeNewSize $((300 * MIB))
        call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" $((100 * MIB)) $((300 * MIB))
        is "$(stat -c %s "$(image_of data)")" $((300 * MIB))
        is "$(size_of "$(pod_dir data)")" "$before"
        lifecycle_down data
        assert_nothing_left
}

@test "a volume that is not attached grows its image alone" {
        kubelet_attach data type=loop size=8Mi
        kubelet_detach data
        call expandvolume "${SPECS[data]}" "$(global_dir data)" $((16 * MIB)) $((8 * MIB))
        assert_reply "{\"status\": \"Success\", \"volumeNewSize\": $((16 * MIB))}"
        is "$(stat -c %s "$(image_of data)")" $((16 * MIB))
        assert_nothing_left
}

@test "growing by bare options works as by all of them" {
        up data 300Mi @fsType=xfs
        SPECS[data]=$(spec data)
        grow data $((400 * MIB)) $((300 * MIB))
        (($(size_of "$(pod_dir data)") > 320 * MIB))
        lifecycle_down data
        assert_nothing_left
}

@test "a block volume's filesystem grows to its device, and the device by nobody" {
        make_device xfs
        up_block disk
        call expandvolume "${SPECS[disk]}" "$(global_dir disk)" $((400 * MIB)) $((300 * MIB))
        assert_refused
        truncate -s 400M "$IMAGE"
        losetup --set-capacity "$DEVICE"
        call expandvolume "${SPECS[disk]}" "$(global_dir disk)" $((400 * MIB)) $((300 * MIB))
        assert_reply "{\"status\": \"Success\", \"volumeNewSize\": $((400 * MIB))}"
        call expandfs "${SPECS[disk]}" "$DEVICE" "$(global_dir disk)" $((400 * MIB)) $((300 * MIB))
        assert_success
        (($(size_of "$(pod_dir disk)") > 320 * MIB))
        lifecycle_down disk
        assert_nothing_left
}

@test "sizes that are none are refused by expandvolume and expandfs" {
        kubelet_attach data type=loop size=8Mi
        local size
        for size in '' -1 8Mi 1e9 99999999999999999999 0x10 '1 2'; do
                call expandvolume "${SPECS[data]}" "$(global_dir data)" "$size" 8388608
                assert_refused
                call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" "$size" 8388608
                assert_refused
        done
        is "$(stat -c %s "$(image_of data)")" 8388608
        kubelet_detach data
        assert_nothing_left
}

@test "a pool without room for a bigger preallocated image keeps the volume as it is" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        mount -t tmpfs -o mode=0700,size=12m pool "$POOL"
        kubelet_attach data type=loop size=8Mi preallocate=true
        call expandvolume "${SPECS[data]}" "$(global_dir data)" $((64 * MIB)) $((8 * MIB))
        [[ $(jq -r .status <<<"$json") == Success ]] || is "$(stat -c %s "$(image_of data)")" 8388608
        kubelet_detach data
        umount "$POOL"
        assert_nothing_left
}

# ---- taking away

# bats test_tags=kernel
@test "what a pod has mounted below goes, too" {
        up data 8Mi
        local dir
        dir=$(pod_dir data)
        mkdir "$dir/one"
        mount -t tmpfs one "$dir/one"
        mkdir "$dir/one/two"
        mount -t tmpfs two "$dir/one/two"
        mkdir "$dir/one/two/three"
        mount -t tmpfs three "$dir/one/two/three"
        mkdir "$dir/with space"
        mount -t tmpfs space "$dir/with space"
        lifecycle_down data
        assert_nothing_left
}

@test "what is mounted below the global mount goes, too" {
        up data 8Mi
        mkdir "$(global_dir data)/sub"
        mount -t tmpfs sub "$(global_dir data)/sub"
        lifecycle_down data
        assert_nothing_left
}

@test "mounts whose paths only begin alike stay" {
        up data 8Mi
        mkdir "$(pod_dir data)2"
        mount -t tmpfs other "$(pod_dir data)2"
        lifecycle_down data
        is "$(mounts_here)" "$(pod_dir data)2"
        umount "$(pod_dir data)2"
        rmdir "$(pod_dir data)2"
        assert_nothing_left
}

@test "a directory that was mounted on twice is free of both" {
        up data 8Mi
        mount --bind "$(global_dir data)" "$(pod_dir data)"
        mount -t tmpfs third "$(pod_dir data)"
        is "$(node_mounts_at "$(pod_dir data)")" 3
        lifecycle_down data
        assert_nothing_left
}

# bats test_tags=kernel
@test "what a process is in is detached lazily when its time is over, and the message says so" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        local start busy
        background sh -c 'cd "$1" && exec sleep 1000' sh "$(pod_dir data)"
        busy=$BACKGROUND_PID
        wait_until 5 process_is_in "$busy" "$(pod_dir data)"
        start=$SECONDS
        call unmount "$(pod_dir data)"
        assert_success
        assert_field '.message | contains("detached lazily")' true
        ((SECONDS - start <= 5))
        rmdir "$(pod_dir data)" 2>/dev/null || [[ ! -e $(pod_dir data) ]]
        is "$(node_mounts_at "$(pod_dir data)")" 0
        end_process "$busy"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

process_is_in() {
        [[ $(readlink "/proc/$1/cwd") == "$2" ]]
}

@test "a global mount that a process is in is detached lazily, and its device is let go when the process is" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        local busy
        background sh -c 'cd "$1" && exec sleep 1000' sh "$(global_dir data)"
        busy=$BACKGROUND_PID
        wait_until 5 process_is_in "$busy" "$(global_dir data)"
        kubelet_unpublish data
        call unmountdevice "$(global_dir data)"
        assert_success
        assert_field '.message | contains("detached lazily")' true
        rmdir "$(global_dir data)" 2>/dev/null || [[ ! -e $(global_dir data) ]]
        # kubelet finds the device busy, and would try again
        run ! "$FLEXGRAFT_TOOLS/hold-exclusive" "${DEVICES[data]}" --once
        call detach data "$NODE"
        if [[ $(jq -r .status <<<"$json") == Failure ]]; then
                assert_refused
                end_process "$busy"
                wait_until 5 hold_once "${DEVICES[data]}"
                kubelet_detach data
        else
                end_process "$busy"
                wait_until 5 device_is_free "${DEVICES[data]}"
        fi
        assert_nothing_left
}

hold_once() {
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$1" --once >/dev/null 2>&1
}

@test "what is idle is not said to be detached lazily" {
        up data 8Mi
        call unmount "$(pod_dir data)"
        assert_reply '{"status": "Success"}'
        take_down data
        assert_nothing_left
}

# dead_mount DIR [--read]: a FUSE filesystem there that answers nothing.
dead_mount() {
        background_ready "$(tool silent-fuse)" "$@"
}

# bats test_tags=kernel
@test "a mount whose server hangs is taken away in time" {
        TIMEOUTS='"unmount": 1' write_config
        local how start
        for how in '' --read; do
                up data 8Mi
                mkdir -p "$(pod_dir data)/fuse"
                # shellcheck disable=SC2086
                dead_mount "$(pod_dir data)/fuse" $how
                start=$SECONDS
                kubelet_unpublish data
                ((SECONDS - start <= 10))
                kubelet_unstage data
                kubelet_detach data
        done
        assert_nothing_left
}

# bats test_tags=kernel
@test "a mount whose server is dead is taken away" {
        up data 8Mi
        mkdir "$(pod_dir data)/fuse"
        dead_mount "$(pod_dir data)/fuse"
        end_process "$BACKGROUND_PID"
        run ! stat "$(pod_dir data)/fuse"
        lifecycle_down data
        assert_nothing_left
}

@test "a pod's directory that is itself a dead mount is free afterwards" {
        TIMEOUTS='"unmount": 1' write_config
        local how dir
        for how in hangs dead; do
                SPECS[data]=$(spec data type=tmpfs)
                kubelet_publish data
                dir=$(pod_dir data)
                dead_mount "$dir"
                [[ $how == hangs ]] || end_process "$BACKGROUND_PID"
                call unmount "$dir"
                assert_success
                is "$(node_mounts_at "$dir")" 0
                [[ ! -e $dir ]] || rmdir "$dir"
        done
        assert_nothing_left
}

@test "a global directory that is a dead mount is free afterwards" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        kubelet_unpublish data
        dead_mount "$(global_dir data)" --read
        call unmountdevice "$(global_dir data)"
        assert_success
        is "$(mounts_here)" ""
        [[ ! -e $(global_dir data) ]] || rmdir "$(global_dir data)"
        kubelet_detach data
        assert_nothing_left
}

@test "a dead mount elsewhere in kubelet's directory is nobody's business" {
        TIMEOUTS='"unmount": 1' write_config
        mkdir -p "$KUBELET/pods/other/volumes/nfs/x"
        dead_mount "$KUBELET/pods/other/volumes/nfs/x" --read
        up data 8Mi
        lifecycle_down data
        is "$(mounts_here)" "$KUBELET/pods/other/volumes/nfs/x"
        end_process "$BACKGROUND_PID"
        umount -l "$KUBELET/pods/other/volumes/nfs/x"
        rmdir "$KUBELET/pods/other/volumes/nfs/x"
        assert_nothing_left
}

@test "unmount of a directory that is no mount point leaves the files in it" {
        local dir
        dir=$(pod_dir data)
        make_dir "$dir/sub"
        echo precious >"$dir/file"
        call unmount "$dir"
        assert_success
        is "$(<"$dir/file")" precious
        dir=$(global_dir data)
        make_dir "$dir/sub"
        echo precious >"$dir/file"
        call unmountdevice "$dir"
        assert_success
        is "$(<"$dir/file")" precious
}

@test "unmount does not follow a symbolic link" {
        mkdir "$BATS_TEST_TMPDIR/theirs"
        mount -t tmpfs theirs "$BATS_TEST_TMPDIR/theirs"
        make_dir "$(pod_dir x)"
        ln -s "$BATS_TEST_TMPDIR/theirs" "$(pod_dir data)"
        call unmount "$(pod_dir data)"
        call unmountdevice "$(pod_dir data)"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/theirs"
        umount "$BATS_TEST_TMPDIR/theirs"
}

@test "mount does not follow a symbolic link out of the pod's directory" {
        mkdir "$BATS_TEST_TMPDIR/theirs"
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        make_dir "$(pod_dir x)"
        rmdir "$(pod_dir x)"
        ln -s "$BATS_TEST_TMPDIR/theirs" "$(pod_dir data)"
        call mount "$(pod_dir data)" "${SPECS[data]}"
        assert_refused
        is "$(mounts_here)" "$(global_dir data)"
        rm "$(pod_dir data)"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "unmount of / and of kubelet's own mounts is refused or does nothing" {
        call unmount /
        assert_refused
        call unmountdevice /
        assert_refused
        call unmount "$KUBELET/../"
        assert_refused
        mountpoint -q /proc
}

@test "a mount that kubelet has taken away itself is no trouble" {
        up data 8Mi
        umount "$(pod_dir data)"
        umount "$(global_dir data)"
        lifecycle_down data
        assert_nothing_left
}

@test "a pod's directory that is gone with everything above it is no trouble" {
        up data 8Mi
        umount "$(pod_dir data)"
        rm -r "$KUBELET/pods/$POD"
        call unmount "$(pod_dir data)"
        assert_success
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a pod that is gone without unmount does not keep the volume from being let go" {
        up data 8Mi
        umount "$(pod_dir data)"
        rmdir "$(pod_dir data)"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a shared mount around kubelet's directory changes nothing" {
        mount --bind "$KUBELET" "$KUBELET"
        mount --make-shared "$KUBELET"
        up data 8Mi
        is "$(node_mounts_at "$(pod_dir data)")" 1
        lifecycle_down data
        is "$(mounts_here)" "$KUBELET"
        umount "$KUBELET"
        assert_nothing_left
}

@test "a container that has the pod's directory sees the mount come and go" {
        mount --bind "$KUBELET" "$KUBELET"
        mount --make-shared "$KUBELET"
        background_ready unshare --mount --propagation slave sh -c 'echo ready; exec sleep 1000'
        up data 8Mi
        echo text >"$(pod_dir data)/file"
        is "$(nsenter --target "$BACKGROUND_PID" --mount -- cat "$(pod_dir data)/file")" text
        lifecycle_down data
        run ! nsenter --target "$BACKGROUND_PID" --mount -- grep -F "$(pod_dir data)" /proc/self/mountinfo
        umount "$KUBELET"
        assert_nothing_left
}

@test "a container that keeps a copy of the mount does not keep the loop device" {
        up data 8Mi
        # a mount namespace that was copied while the volume was mounted, and that no propagation reaches
        background_ready unshare --mount --propagation private sh -c 'echo ready; exec sleep 1000'
        kubelet_unpublish data
        call unmountdevice "$(global_dir data)"
        assert_success
        [[ ! -e $(global_dir data) ]] || rmdir "$(global_dir data)"
        call detach data "$NODE"                # busy, or let go when the last mount is
        end_process "$BACKGROUND_PID"
        wait_until 5 hold_once "${DEVICES[data]}" || :
        kubelet_detach data
        wait_until 5 no_loops
        assert_nothing_left
}

no_loops() {
        [[ -z $(loops_of_test) ]]
}
