#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: what it formats and what never; fsck.

load helpers
load driver_helpers
load driver_volumes_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
}

teardown() {
        driver_teardown
}

# poke OFFSET: standard input to the device there, where the bytes begin.
poke() {
        dd "of=$DEVICE" bs=1 "seek=$1" conv=notrunc,fsync 2>/dev/null
}

# content_of DEVICE: sums of its first and last 16 MiB.
content_of() {
        head -c 16777216 "$1" | cksum
        tail -c 16777216 "$1" | cksum
}

# refuses_to_format [TEXT...]: the block volume of $DEVICE fails to be staged, the message says so, and no byte of the device changes.
refuses_to_format() {
        local before name=disk
        sync "$DEVICE"
        before=$(content_of "$DEVICE")
        call attach "$(spec $name type=block "source=$DEVICE")" "$NODE" || return 1
        if [[ $(json_field .status) == Success ]]; then
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
@test "a volume that is too small for xfs is refused when it is made, with the reason" {
        local option
        call attach "$(spec data type=loop size=299Mi @fsType=xfs)" "$NODE"
        assert_refused xfs "300 MiB" 313524224
        call attach "$(spec data type=loop size=16Mi fsType=xfs)" "$NODE"
        assert_refused xfs "300 MiB"
        helper volume-create '{"name": "data", "size": "16m", "fsType": "xfs"}'
        assert_failure EINVAL
        [[ $output == *"xfs needs at least 300 MiB"* ]]
        call mount "$(pod_dir data)" "$(spec data ephemeral=true size=16Mi @fsType=xfs)"
        assert_refused xfs "300 MiB"
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
        is "$(ls "$POOL")$(ls "$STATE_DIR/provisioned")" '' "images and records"
        assert_nothing_left
}

@test "a volume that is too small for btrfs is refused when it is made, with the reason" {
        call attach "$(spec data type=loop size=108Mi @fsType=btrfs)" "$NODE"
        assert_refused btrfs "109 MiB" 113246208
        helper volume-create '{"name": "data", "size": "108m", "fsType": "btrfs"}'
        assert_failure EINVAL
        [[ $output == *"btrfs needs at least 109 MiB"* ]]
        is "$(ls "$POOL")$(ls "$STATE_DIR/provisioned")" '' "images and records"
        check_type btrfs 109Mi
}

@test "a blank device that is too small for xfs is refused with the reason, and stays blank" {
        make_device blank
        FSTYPE=xfs refuses_to_format xfs "300 MiB"
}

@test "a blank volume is formatted with xfs" {
        check_type xfs 300Mi
}

# bats test_tags=deep
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

@test "filesystems that the driver cannot make are not formatted over" {
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

@test "a blank device is formatted by a kernel that does not number disks" {
        make_device blank
        kubelet_attach disk type=block "source=$DEVICE"
        make_dir "$(global_dir disk)"
        at_syscall --at ioctl --where 2=0x80081280 --fail 25 \
                "$DRIVER" mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}" # BLKGETDISKSEQ is ENOTTY before Linux 5.15
        assert_reply '{"status": "Success"}'
        is "$(signature_of "$DEVICE")" ext4
        kubelet_unstage disk
        kubelet_detach disk
        assert_nothing_left
}

@test "a blank device is not formatted for a reader" {
        make_device blank
        call attach "$(spec disk type=block "source=$DEVICE" @readwrite=ro)" "$NODE"
        assert_success
        make_dir "$(global_dir disk)"
        call mountdevice "$(global_dir disk)" "$DEVICE" "$(spec disk type=block "source=$DEVICE" @readwrite=ro)"
        assert_refused read-only ReadOnlyMany
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
                if [[ $(json_field .status) == Success ]]; then
                        make_dir "$(global_dir data)"
                        call mountdevice "$(global_dir data)" "$(json_field .device)" "$(loop_spec data "@fsType=$type")"
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
        kubelet_attach data type=loop size=8Ki
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.ext4
        is "$(mounts_here)" ""
        rmdir "$(global_dir data)"
        kubelet_detach data
        assert_nothing_left
}

# broken_off IDENTITY: formatting of the attached volume was broken off, and the record calls its image so.
broken_off() {
        # what mkfs leaves when it is killed: much, but the superblock
        mkfs.ext4 -q -F "${DEVICES[data]}"
        dd if=/dev/zero "of=${DEVICES[data]}" bs=1k count=2 conv=notrunc,fsync 2>/dev/null
        edit_record data ".formatting = \"$1\""
}

@test "formatting that was broken off is begun again" {
        kubelet_attach data type=loop size=8Mi
        json=$(<"$(record_of data)")
        assert_field .formatting ''
        broken_off "$(image_identity "$(image_of data)")"
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

@test "formatting that a reboot broke off is begun again where the pool's filesystem has another device number since" {
        kubelet_attach data type=loop size=8Mi
        [[ $(image_identity "$(image_of data)") == *@* ]] || skip "the filesystem here tells no birth of files"
        broken_off "$(image_identity "$(image_of data)" 65297)"
        kubelet_stage data
        json=$(<"$(record_of data)")
        assert_field .formatting ''
        take_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

@test "formatting that an earlier version's call broke off is begun again" {
        local identity
        kubelet_attach data type=loop size=8Mi
        identity=$(image_identity "$(image_of data)")
        broken_off "${identity%@*}"
        kubelet_stage data
        take_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

@test "another image that has the inode of one whose formatting was broken off is not touched" {
        local before identity
        kubelet_attach data type=loop size=8Mi
        identity=$(image_identity "$(image_of data)")
        [[ $identity == *@* ]] || skip "the filesystem here tells no birth of files"
        broken_off "${identity%@*}@1.000000000"
        before=$(cksum <"${DEVICES[data]}")
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused 'unknown data'
        rmdir "$(global_dir data)"
        is "$(cksum <"${DEVICES[data]}")" "$before" "sum of the device"
        kubelet_detach data
        assert_nothing_left
}

# bats test_tags=kernel,deep
@test "formatting that was killed is begun again" {
        local dir
        kubelet_attach data type=loop size=64Mi
        dir=$(global_dir data)
        make_dir "$dir"
        # in the midst of mkfs
        run "$FLEXGRAFT_TOOLS/at-syscall" --others --at pwrite64:100 --kill "$DRIVER" mountdevice "$dir" "${DEVICES[data]}" "${SPECS[data]}"
        is "$output" ""
        json=$(<"$(record_of data)")
        [[ $(json_field .formatting) == *:* ]]
        wait_until 10 no_driver_processes       # mkfs has not outlived it
        kubelet_stage data
        kubelet_publish data
        echo text >"$(pod_dir data)/file"
        take_down data
        run -0 e2fsck -fn "$(image_of data)"
        assert_nothing_left
}

@test "a filesystem that was made by hand since formatting was broken off is not touched" {
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

@test "a partition table that was made by hand since formatting was broken off is not touched" {
        local before verb
        for verb in mountdevice detach; do
                make_device blank
                kubelet_attach disk type=block "source=$DEVICE"
                edit_record disk ".formatting = \"$(block_identity "$DEVICE")\""
                printf '\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x10\x00\x00' | poke 446
                printf '\x55\xaa' | poke 510
                before=$(cksum <"$DEVICE")
                if [[ $verb == mountdevice ]]; then
                        make_dir "$(global_dir disk)"
                        call mountdevice "$(global_dir disk)" "$DEVICE" "${SPECS[disk]}"
                        assert_refused dos
                        rmdir "$(global_dir disk)"
                fi
                kubelet_detach disk
                is "$(cksum <"$DEVICE")" "$before" "sum of the device"
        done
        assert_nothing_left
}

@test "detach does not wipe what was made by hand since formatting was broken off" {
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

# bats test_tags=deep
@test "a mkfs that hangs is killed when its time is over, and the volume is formatted by the next call" {
        TIMEOUTS='"command": 5' write_config
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        with_instead /usr/sbin/mkfs.ext4 "echo \$\$ >'$BATS_TEST_TMPDIR/pid'"'; for last; do :; done; echo half >"$last"; exec sleep 1000'
        not_hung call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused mkfs.ext4
        wait_until 5 process_is_gone "$(<"$BATS_TEST_TMPDIR/pid")"
        is "$(head -c 4 "$(image_of data)")" half "what the device begins with"
        CALL_PREFIX=()
        write_config
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

# bats test_tags=deep
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

# bats test_tags=kernel,deep
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

@test "an ext4 filesystem that is mounted read-only is not repaired" {
        make_device ext4
        debugfs -w -R 'set_super_value state 0' "$DEVICE" 2>/dev/null
        local before
        before=$(cksum <"$DEVICE")
        up_block disk @readwrite=ro
        is "$(<"$(pod_dir disk)/file")" "from the device"
        lifecycle_down disk
        is "$(cksum <"$DEVICE")" "$before" "sum of the device"
        assert_nothing_left
}
