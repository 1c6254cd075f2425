#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-image: the filesystem in an image file of the node, or in a partition of one, into a running container.

load helpers
bats_require_minimum_version 1.5.0

# The disks that make_disk copies: at 1 MiB is a filesystem of 8 MiB, at 10 MiB another, labelled "system"; the table is what its name says.
setup_file() {
        local part=$BATS_FILE_TMPDIR/part content=$BATS_FILE_TMPDIR/content base=$BATS_FILE_TMPDIR/base name arguments image
        mkdir "$content"
        truncate -s 32M "$base"
        echo "in the first" >"$content/file"
        truncate -s 8M "$part" && mkfs.ext4 -q -F -b 4096 -O ^has_journal -d "$content" "$part"
        dd if="$part" of="$base" bs=1M seek=1 conv=notrunc,sparse status=none
        rm "$part"
        echo "in the second" >"$content/file"
        truncate -s 8M "$part" && mkfs.ext4 -q -F -b 4096 -O ^has_journal -L system -d "$content" "$part"
        dd if="$part" of="$base" bs=1M seek=10 conv=notrunc,sparse status=none
        while read -r name arguments; do
                image=$BATS_FILE_TMPDIR/$name.img
                cp --sparse=always "$base" "$image"
                [[ $name != many ]] || truncate -s 8G "$image"
                echo "${arguments/IMAGE/"$image"}"
        done <<'END' | python3 "$FLEXGRAFT_REPO/tests/tools/partition-table.py" -
gpt IMAGE gpt 2048:16384:boot 20480:16384:root 40960:2048:blank
mbr IMAGE mbr 2048:16384 20480:16384 40960:2048
logical --logical 20480:16384 IMAGE mbr 2048:16384
only IMAGE gpt 20480:16384:root
twice IMAGE gpt 2048:16384:data 20480:16384:data
sectors --sector 4096 IMAGE gpt 256:2048:boot 2560:2048:root
overlap IMAGE mbr 2048:20480 20480:16384
beyond IMAGE mbr 2048:16384 20480:1000000
far IMAGE mbr 2048:16384 4294967295:4294967295
zero IMAGE mbr 0:16384 20480:16384
empty IMAGE mbr 2048:16384 20480:0
loop --loop IMAGE mbr 2048:16384
primary --bad primary IMAGE gpt 2048:16384:boot 20480:16384:root
both --bad both IMAGE gpt 2048:16384:boot 20480:16384:root
many --entries 33000000 IMAGE gpt 2048:16384:boot
END
}

setup() {
        bed_setup
        needs mount-image mount-remove mount-list
}

teardown() {
        bed_teardown
}

# make_image TYPE [LABEL]: an image with that filesystem, and no loop device; its path in IMAGE.
make_image() {
        local content=$BATS_TEST_TMPDIR/content
        IMAGE=$BATS_TEST_TMPDIR/$1.$((++bed_serial)).img
        mkdir -p "$content"
        echo "from the image" >"$content/file"
        case $1 in
        ext4) truncate -s 16M "$IMAGE" && mkfs.ext4 -q -F -O ^has_journal -d "$content" ${2:+-L "$2"} "$IMAGE" ;;
        xfs) truncate -s 300M "$IMAGE" && mkfs.xfs -q "$IMAGE" ;;
        btrfs) truncate -s 128M "$IMAGE" && mkfs.btrfs -q --rootdir "$content" "$IMAGE" ;;
        erofs) mkfs.erofs "$IMAGE" "$content" >"$BATS_TEST_TMPDIR/mkfs.log" 2>&1 ;;
        squashfs) mksquashfs "$content" "$IMAGE" -quiet -no-progress >"$BATS_TEST_TMPDIR/mkfs.log" ;;
        esac
}

# make_disk NAME: an image with a partition table; its path in IMAGE.
make_disk() {
        IMAGE=$BATS_TEST_TMPDIR/disk.$((++bed_serial)).img
        cp --sparse=always "$BATS_FILE_TMPDIR/$1.img" "$IMAGE"
}

image_request() {
        printf '{"container": %s, "source": "%s", "target": "%s"%s}' "$CONTAINER_PID" "$IMAGE" "${TARGET:-/data}" "${1:+, $1}"
}

mount_image() {
        helper mount-image "$(image_request "${1:-}")"
}

# The loop devices over the image, as far as they are not being detached.
loops() {
        losetup --list --noheadings --output NAME --associated "$IMAGE"
}

one_loop() {
        (($(loops | wc -l) == 1))
}

no_loops() {
        [[ -z $(loops) ]]
}

assert_no_loops() {
        wait_until 5 no_loops
}

# refused ERRNO [MORE [TEXT...]]: the request fails so, says each text, and leaves nothing.
refused() {
        local errno=$1
        container_snapshot
        node_snapshot
        mount_image "${2:-}"
        assert_failure "$errno" || return 1
        (($# < 3)) || shows "${@:3}" || return 1
        assert_no_loops && assert_container_unchanged && assert_node_unchanged
}

# holds TEXT [MORE]: the request mounts a filesystem whose file has that text; then it is removed.
holds() {
        mount_image "${2:-}"
        assert_success || return 1
        is "$(in_container cat /data/file)" "$1" || return 1
        helper mount-remove "$(remove_request /data)"
        assert_success && assert_no_loops
}

# check_filesystem TYPE [KIND]: an image as a whole.
check_filesystem() {
        make_image "$1"
        start_container "${2:-plain}"
        mount_image
        assert_success
        assert_field .mount.type "$1"
        assert_field .mount.source "$IMAGE"
        assert_mounts_at /data 1
        is "$(in_container stat -c %u:%g /data)" 0:0
        [[ $1 == xfs ]] || is "$(in_container cat /data/file)" "from the image"
        in_container sh -c 'echo text >/data/made && chown 7:8 /data/made'
        assert_attributes /data rw nosuid nodev
        is "$(losetup --list --noheadings --output RO,AUTOCLEAR --associated "$IMAGE" | tr -s ' ')" " 0 1"
        helper mount-list
        assert_field '.mounts[0].device' present
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_loops
        assert_mounts_at /data 0
        assert_no_records
        mkdir "$BATS_TEST_TMPDIR/look"
        mount -o loop,ro "$IMAGE" "$BATS_TEST_TMPDIR/look"
        is "$(stat -c %u:%g "$BATS_TEST_TMPDIR/look/made")" 7:8 "owner in the image"
        umount "$BATS_TEST_TMPDIR/look"
}

@test "an image that a virtual machine writes is refused, also to read, until the machine has ended" {
        make_image ext4
        start_container plain
        background_ready python3 -c '
import fcntl, os, signal, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for at in 101, 201: # as QEMU: F_OFD_SETLK, shared
    fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, at, 1, 0))
print("ready", flush=True)
signal.pause()' "$IMAGE"
        refused EBUSY '' 'a virtual machine has it'
        refused EBUSY '"readOnly": true' 'a virtual machine has it'
        end_process "$BACKGROUND_PID"
        holds "from the image"
}

# bats test_tags=kernel
@test "ext4 in an image is found and mounted, and nothing is left of it when it is removed" {
        check_filesystem ext4
}

# bats test_tags=kernel
@test "xfs in an image is found and mounted" {
        check_filesystem xfs
}

# refused_as_shared REQUEST_MEMBERS: the image in IMAGE, by mount-image, and by mount-block of a device over it.
refused_as_shared() {
        local device
        start_container plain 100000
        container_snapshot
        helper mount-image "{\"container\": $CONTAINER_PID, \"source\": \"$IMAGE\", \"target\": \"/data\"$1}"
        assert_failure EOPNOTSUPP || return 1
        device=$(loop_over "$IMAGE")
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$device\", \"target\": \"/data\"$1}"
        losetup --detach "$device"
        assert_failure EOPNOTSUPP || return 1
        assert_container_unchanged
}

@test "a filesystem whose own content can name other devices of the node is refused" {
        IMAGE=$BATS_TEST_TMPDIR/f2fs.img
        truncate -s 64M "$IMAGE"
        printf '\x10\x20\xf5\xf2\x01\x00\x0f\x00' | dd of="$IMAGE" bs=1 seek=1024 conv=notrunc status=none
        is "$(blkid -p -o value -s TYPE "$IMAGE")" f2fs
        refused_as_shared ''
        refused_as_shared ', "fsType": "f2fs"'
}

@test "a btrfs on several devices is refused" {
        IMAGE=$BATS_TEST_TMPDIR/one.img
        truncate -s 128M "$IMAGE" "$BATS_TEST_TMPDIR/two.img"
        mkfs.btrfs -q -d single -m single "$IMAGE" "$BATS_TEST_TMPDIR/two.img"
        refused_as_shared ''
}

# says_one_device IMAGE: the superblock of its btrfs is changed to say that it is on one device.
says_one_device() {
        python3 - "$1" <<'END'
import struct
import sys

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff

with open(sys.argv[1], "r+b") as image:
    for at in 65536, 67108864:
        image.seek(at)
        superblock = bytearray(image.read(4096))
        struct.pack_into("<Q", superblock, 136, 1)
        struct.pack_into("<I", superblock, 0, crc32c(superblock[32:]))
        image.seek(at)
        image.write(superblock)
END
}

@test "a btrfs on several devices whose superblock says that it is on one is refused" {
        local seed sprout
        IMAGE=$BATS_TEST_TMPDIR/sprout.img
        truncate -s 128M "$BATS_TEST_TMPDIR/seed.img" "$IMAGE"
        mkdir "$BATS_TEST_TMPDIR/seed"
        mkfs.btrfs -q "$BATS_TEST_TMPDIR/seed.img"
        btrfstune -f -S 1 "$BATS_TEST_TMPDIR/seed.img"
        seed=$(loop_over "$BATS_TEST_TMPDIR/seed.img")
        sprout=$(loop_over "$IMAGE")
        bed_loops+=("$seed" "$sprout")
        mount -o ro "$seed" "$BATS_TEST_TMPDIR/seed"
        btrfs device add -f "$sprout" "$BATS_TEST_TMPDIR/seed"
        umount "$BATS_TEST_TMPDIR/seed"
        btrfs device scan --forget "$sprout"
        losetup --detach "$sprout"
        says_one_device "$IMAGE"
        btrfs device scan "$seed" # as udev does
        refused_as_shared ''
        btrfs device scan --forget "$seed"
}

@test "an erofs that names other devices is refused" {
        make_image erofs
        # a table of devices, which has one; and no checksum, which would be of what was there before
        printf %b "\\x$(printf %02x $(($(od -An -tu1 -j 1104 -N 1 "$IMAGE") | 8)))" | dd of="$IMAGE" bs=1 seek=1104 conv=notrunc status=none
        printf '\x01\x00' | dd of="$IMAGE" bs=1 seek=1110 conv=notrunc status=none
        printf '\x00' | dd of="$IMAGE" bs=1 seek=1032 conv=notrunc status=none
        is "$(blkid -p -o value -s TYPE "$IMAGE")" erofs
        refused_as_shared ''
}

@test "an ext4 whose journal is on another device is refused, and that device is not opened" {
        local journal
        truncate -s 16M "$BATS_TEST_TMPDIR/journal.img"
        journal=$(loop_over "$BATS_TEST_TMPDIR/journal.img")
        bed_loops+=("$journal")
        mke2fs -q -O journal_dev "$journal"
        IMAGE=$BATS_TEST_TMPDIR/disk.img
        truncate -s 32M "$IMAGE"
        mkfs.ext4 -q -J "device=$journal" "$IMAGE"
        start_container plain
        mount_image
        assert_failure EOPNOTSUPP
        [[ $output == *"its journal is on another device"* ]]
        # a journal inode of 0 has the kernel look for a device, too; and one with both is no filesystem of mkfs'
        tune2fs -O ^has_journal "$IMAGE" >/dev/null
        mount_image
        assert_success
        losetup --detach "$journal"
}

@test "a btrfs that is the seed of another is refused" {
        make_image btrfs
        btrfstune -f -S 1 "$IMAGE"
        start_container plain
        mount_image
        assert_failure EOPNOTSUPP
        [[ $output == *"the seed of another"* ]]
}

# bats test_tags=kernel
@test "a btrfs whose id another device has, as another part, is not mounted where the kernel would take both for one" {
        local other copy
        make_image btrfs
        truncate -s 128M "$BATS_TEST_TMPDIR/other.img"
        mkfs.btrfs -q -U "$(blkid -p -o value -s UUID "$IMAGE")" "$BATS_TEST_TMPDIR/other.img"
        cp "$IMAGE" "$BATS_TEST_TMPDIR/copy.img"
        copy=$(loop_over "$BATS_TEST_TMPDIR/copy.img")
        bed_loops+=("$copy")
        start_container plain
        mount_image # a copy is the same part
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        other=$(loop_over "$BATS_TEST_TMPDIR/other.img")
        bed_loops+=("$other")
        mount_image
        if [[ -e /sys/fs/btrfs/features/temp_fsid ]]; then
                assert_success
                return
        fi
        assert_failure ENOTUNIQ
        [[ $output == *"$other has a btrfs of the same id"* ]] || { show_last; false; }
}

@test "btrfs in an image is found and mounted" {
        check_filesystem btrfs
}

@test "ext4 in an image is mounted without a user namespace" {
        check_filesystem ext4 plain-nouserns
}

# check_read_only TYPE: it is mounted read-only without being told, and cannot be otherwise.
check_read_only() {
        grep -qw "$1" /proc/filesystems || modprobe "$1" 2>/dev/null || skip "this kernel has no $1"
        make_image "$1"
        start_container plain
        mount_image
        [[ $status == 0 ]] || kernel_can map-tmpfs || return 0  # older kernels cannot map its owners
        assert_success
        assert_field '.mount.options | index("ro") != null' true
        is "$(in_container cat /data/file)" "from the image"
        run ! in_container touch /data/made
        is "$(losetup --list --noheadings --output RO --associated "$IMAGE" | tr -d ' ')" 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_loops
        refused EINVAL '"readOnly": false' "$1 is always read-only"
        refused EINVAL '"options": "rw"' "$1 is always read-only"
}

# bats test_tags=kernel
@test "erofs in an image is read-only, also in the reply, and asking for more is refused" {
        check_read_only erofs
}

# bats test_tags=kernel
@test "squashfs in an image is read-only, also in the reply, and asking for more is refused" {
        check_read_only squashfs
}

# Few kernels have them: the images are as much as tells what they are.
@test "cramfs, romfs and iso9660 are always read-only, too, and asking for more is refused" {
        local type offset magic
        start_container plain
        while read -r type offset magic; do
                IMAGE=$BATS_TEST_TMPDIR/$type.img
                truncate -s 1M "$IMAGE"
                printf %b "$magic" | dd of="$IMAGE" bs=1 seek="$offset" conv=notrunc status=none
                is "$(blkid -p -o value -s TYPE "$IMAGE")" "$type"
                refused EINVAL '"readOnly": false' "$type is always read-only"
                refused EINVAL '"options": "rw"' "$type is always read-only"
        done <<'END'
cramfs 0 \x45\x3d\xcd\x28
romfs 0 -rom1fs-\x00\x10\x00\x00
iso9660 32768 \x01CD001\x01
END
}

@test "a type of filesystem that the kernel has not is named" {
        make_image ext4
        start_container plain
        refused ENODEV '"fsType": "nosuchfs"' 'this kernel has no filesystem of this type' /proc/filesystems
        refused EINVAL '"fsType": "tmpfs"' 'tmpfs is not a filesystem for a block device'
}

# ---- partitions

@test "a partition of a GPT is found by its number, its name, its UUID, and its filesystem's label and UUID" {
        local uuid
        make_disk gpt
        start_container plain
        uuid=$(blkid --probe --offset 10485760 -o value -s UUID "$IMAGE")
        holds "in the first" '"partition": 1'
        holds "in the second" '"partition": 2'
        holds "in the second" '"partition": "2"'
        holds "in the first" '"partition": "boot"'
        holds "in the second" '"partition": "root"'
        holds "in the second" '"partition": "system"'
        holds "in the second" '"partition": "PARTLABEL=root"'
        holds "in the second" '"partition": "LABEL=system"'
        holds "in the second" "\"partition\": \"UUID=$uuid\""
        holds "in the first" '"partition": "PARTUUID=AAAAAAAA-bbbb-cccc-dddd-000000000001"'
}

@test "a partition of an MBR is found by its number and its filesystem's label, also a logical one" {
        make_disk mbr
        start_container plain
        holds "in the first" '"partition": 1'
        holds "in the second" '"partition": "system"'
        make_disk logical
        holds "in the second" '"partition": 5'
        refused ENOENT '"partition": 2' 'there is no partition 2' # which is the extended one
}

@test "a partition that is not there is refused, and the message lists those that are" {
        make_disk gpt
        start_container plain
        refused ENOENT '"partition": "nowhere"' 'no partition is \"nowhere\"' '1 \"boot\", 2 \"root\", 3 \"blank\"'
        refused ENOENT '"partition": 4' 'there is no partition 4' '1 \"boot\", 2 \"root\", 3 \"blank\"'
        refused ENOENT '"partition": "LABEL="' 'no partition is'
        refused ENODATA '"partition": "blank"' 'no filesystem'
        make_image ext4
        refused ENOENT '"partition": 1' 'no partition table'
}

@test "of several partitions one must be named; the only one need not be" {
        make_disk gpt
        start_container plain
        refused EINVAL '' 'none is named' '1 \"boot\", 2 \"root\", 3 \"blank\"' 'name one with \"partition\"'
        make_disk only
        holds "in the second"
}

@test "two partitions of one name are not guessed about" {
        make_disk twice
        start_container plain
        refused ENOTUNIQ '"partition": "data"' 'several are'
        holds "in the second" '"partition": 2'
}

@test "two partitions of one image are in two containers at the same time, each by a loop device of its own" {
        local first
        make_disk gpt
        start_container plain
        first=$CONTAINER_PID
        mount_image '"partition": 1'
        assert_success
        start_container plain 300000
        mount_image '"partition": 2'
        assert_success
        is "$(loops | wc -l)" 2 "loop devices"
        is "$(in_container cat /data/file)" "in the second"
        use_container "$first"
        is "$(in_container cat /data/file)" "in the first"
        TARGET=/whole refused_while_used EBUSY '"partition": 0, "fsType": "ext4"' 'some of the same bytes'
}

# refused_while_used: the same as refused, while a mount is there.
refused_while_used() {
        local before
        before=$(loops)
        mount_image "$2"
        assert_failure "$1" && shows "${@:3}" && is "$(loops)" "$before" "loop devices"
}

@test "a GPT of a disk with sectors of 4096 bytes is read, and its loop device has such sectors" {
        make_disk sectors
        start_container plain
        mount_image '"partition": "root"'
        assert_success
        is "$(in_container cat /data/file)" "in the second"
        is "$(losetup --list --noheadings --output LOG-SEC --associated "$IMAGE" | tr -d ' ')" 4096
}

# ---- tables that lie

@test "the kernel reads no partition table of an image: no partition appears on the node" {
        start_container plain
        make_disk gpt
        mount_image '"partition": 2'
        assert_success
        local device
        device=$(loops)
        [[ $device == /dev/loop* ]]
        is "$(compgen -G "/sys/block/${device#/dev/}/${device#/dev/}p*" || :)" ""
        is "$(cat "/sys/block/${device#/dev/}/loop/partscan")" 0
}

@test "partitions that overlap, that are empty or that end beyond the image are refused" {
        start_container plain
        make_disk overlap
        refused EBADMSG '"partition": 1' 'partitions 1 and 2 overlap'
        refused EBADMSG '"partition": 2' 'partitions 2 and 1 overlap'
        make_disk beyond
        refused EBADMSG '"partition": 2' 'beyond the end'
        holds "in the first" '"partition": 1'
        make_disk far
        refused EBADMSG '"partition": 2'
        make_disk zero
        refused EBADMSG '"partition": 1' 'begins where the table is'
        make_disk empty
        mount_image '"partition": 2'
        assert_failure
        assert_no_loops
}

@test "logical partitions that lead back to themselves do not hold the call" {
        make_disk loop
        start_container plain
        holds "in the first" '"partition": 1'
        mount_image '"partition": 6, "timeoutSeconds": 5'
        assert_failure
        assert_no_loops
}

@test "a GPT with a wrong checksum is read from its other copy; one with two wrong ones is not read" {
        make_disk primary
        start_container plain
        holds "in the second" '"partition": "root"'
        make_disk both
        refused ENOENT '"partition": "root"' 'no partition table'
        refused ENODATA
}

@test "a GPT that says it has millions of entries takes no memory and mounts nothing" {
        without_sanitizers "need more memory than the limit"
        make_disk many
        start_container plain
        refused ENOENT '"partition": 1'
}

# ---- one image, several users

@test "one image in two containers with different ids is one superblock behind one loop device" {
        local first first_device
        make_image ext4
        start_container plain
        first=$CONTAINER_PID
        mount_image
        assert_success
        first_device=$(mount_line /data | awk '{print $3}')
        start_container plain 300000
        mount_image
        assert_success
        is "$(mount_line /data | awk '{print $3}')" "$first_device" "device of the superblock"
        is "$(loops | wc -l)" 1 "loop devices"
        in_container sh -c 'echo shared >/data/made'
        use_container "$first"
        is "$(in_container cat /data/made)" shared
        helper mount-remove "$(remove_request /data)"
        assert_success
        is "$(loops | wc -l)" 1 "loop devices while the other container has it"
}

@test "an image that is written is shared read-only, and one that is attached read-only is not written" {
        make_image ext4
        start_container plain
        mount_image
        assert_success
        TARGET=/again mount_image '"readOnly": true'
        assert_success
        is "$(loops | wc -l)" 1 "loop devices"
        run ! in_container touch /again/made
        for target in /again /data; do
                helper mount-remove "$(remove_request "$target")"
                assert_success
        done
        assert_no_loops
        mount_image '"readOnly": true'
        assert_success
        TARGET=/again refused_while_used EBUSY '' 'attached read-only'
        TARGET=/again mount_image '"readOnly": true'
        assert_success
}

# looked_at: a mount of the image that only reads it has ended, and a process has the loop device open yet, as udev for a moment.
looked_at() {
        make_image ext4
        start_container plain
        mount_image '"readOnly": true'
        assert_success
        background_ready sh -c 'exec 9<"$0"; echo ready; exec sleep 1000' "$(loops)"
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "an image is written as soon as a process closes its device that only looked at it when the mount that read it was removed" {
        looked_at
        at_syscall --at ppoll --where 1=0 --where 2=0 --run "kill -KILL $BACKGROUND_PID" "$FLEXGRAFT_BIN/mount-image" "$(image_request)"
        is "$AT_REACHED" 1
        assert_success
        in_container touch /data/made
}

@test "an image is not waited for without end whose device a process has open" {
        looked_at
        refused_while_used EBUSY '' 'attached read-only'
}

@test "a mount of an image is made though another call looks whether a mount of the image has ended" {
        local device
        make_image ext4
        start_container plain
        in_container mkdir /data /again # else one waits until the other has made its target
        stopped_at fsopen "$FLEXGRAFT_BIN/mount-image" "$(image_request '"readOnly": true')"
        device=$(loops)
        # as long as its own look (O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC) would last if the first mount were made meanwhile
        meanwhile "$STATE_DIR/volumes/.lock" "$FLEXGRAFT_TOOLS/at-syscall" --at openat --where 2="$device" --where 3=0x80880 --run "
                '$FLEXGRAFT_TOOLS/hold-exclusive' $device >'$BATS_TEST_TMPDIR/looks' &
                until [ -s '$BATS_TEST_TMPDIR/looks' ] || [ -s '$STOPPED' ]; do sleep 0.02; done
                touch '$STOPPED.resume'
                until [ -s '$STOPPED' ]; do sleep 0.02; done
                kill -KILL \$!
                wait" "$FLEXGRAFT_BIN/mount-image" "$(TARGET=/again image_request)"
        resumed
        is "$(jq -r .status "$STOPPED")" Success "$(<"$STOPPED")"
        wait_until 20 process_is_gone "$BACKGROUND_PID"
        is "$(jq -r .error.errno "$MEANWHILE")" EBUSY "$(<"$MEANWHILE")"
}

@test "sixteen calls for one image at once have one loop device" {
        local i pids=()
        make_image ext4
        start_container plain
        for ((i = 0; i < 16; i++)); do
                TARGET=/data$i image_request >"$BATS_TEST_TMPDIR/request.$i"
                "$FLEXGRAFT_BIN/mount-image" "$(<"$BATS_TEST_TMPDIR/request.$i")" >"$BATS_TEST_TMPDIR/reply.$i" 3>&- &
                pids+=($!)
        done
        for i in "${pids[@]}"; do
                wait "$i" || { cat "$BATS_TEST_TMPDIR"/reply.*; return 1; }
        done
        is "$(loops | wc -l)" 1 "loop devices"
        is "$(grep -c 'from the image' <(for ((i = 0; i < 16; i++)); do in_container cat "/data$i/file"; done))" 16
}

# calls_of TARGET: how many system calls mount-image makes to mount the image there.
calls_of() {
        TARGET=$1 at_syscall "$FLEXGRAFT_BIN/mount-image" "$(TARGET=$1 image_request)"
        assert_success
        echo "$AT_TOTAL"
}

@test "what a call costs does not grow with the loop devices of the node" {
        local i before shared
        without_sanitizers "make calls of their own"
        make_image ext4
        start_container plain
        holds "from the image" # which makes the state directory
        before=$(calls_of /one)
        shared=$(calls_of /two)
        for target in /one /two; do
                helper mount-remove "$(remove_request "$target")"
        done
        assert_no_loops
        for ((i = 0; i < 20; i++)); do
                truncate -s 64k "$BATS_TEST_TMPDIR/other.$i"
                bed_loops+=("$(loop_over "$BATS_TEST_TMPDIR/other.$i")")
        done
        # each that is looked at is six calls
        (($(calls_of /one) - before < 20))
        (($(calls_of /two) - shared < 20))
        wait_until 5 one_loop
}

@test "an image that another program has attached is shared as a whole, and not in part" {
        make_disk gpt
        start_container plain
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        refused_while_used EBUSY '"partition": 2' "$DEVICE" 'some of the same bytes'
        make_image ext4
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        mount_image
        assert_success
        is "$(loops)" "$DEVICE"
        helper mount-remove "$(remove_request /data)"
        assert_success
        is "$(loops)" "$DEVICE" # it is that program's
}

@test "the image of a volume is refused, attached or not" {
        local pool=$BATS_TEST_TMPDIR/pool
        make_image ext4
        start_container plain
        mkdir -m 0700 "$pool"
        mv "$IMAGE" "$pool/"
        IMAGE=$pool/${IMAGE##*/}
        ln -s 3d0d1c14-0f5c-4d3c-8a52-3d6ae6a5f00d "$pool/.flexgraft-pool"
        refused EACCES '' 'image of a volume'
        assert_field '.error.hint | test("mount-volume mounts a volume.*volume-create with \"id\"")' true
        mkdir -p "$STATE_DIR/images"
        cp --sparse=always "$IMAGE" "$STATE_DIR/images/" 2>/dev/null
        IMAGE=$STATE_DIR/images/${IMAGE##*/} refused EACCES '' 'image of a volume'
        # by a name outside of the pool, while the driver has it attached
        make_image ext4
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$DEVICE" root name flexgraft:00000001:00000002:0000000000000003:data >/dev/null
        refused_while_used EBUSY '' 'image of a volume' "$DEVICE"
}

@test "a container that ends takes the loop device with it" {
        make_image ext4
        start_container plain
        mount_image
        assert_success
        stop_container
        assert_no_loops
}

@test "the container's own unmount takes the loop device with it" {
        make_image ext4
        start_container plain
        mount_image
        assert_success
        in_container umount /data
        assert_no_loops
        mount_image
        assert_success
        assert_field .mount.alreadyMounted false
}

# ---- the file

@test "a source that is no image is refused, and the error says what it is" {
        start_container plain
        IMAGE=$BATS_TEST_TMPDIR
        refused EISDIR '' 'it is a directory' mount-bind
        make_device blank
        IMAGE=$DEVICE
        mount_image
        assert_failure EINVAL
        shows 'no regular file' mount-block
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        IMAGE=$BATS_TEST_TMPDIR/fifo refused EINVAL '' 'no regular file'
        IMAGE=$BATS_TEST_TMPDIR/nothing refused ENOENT
        IMAGE=$BATS_TEST_TMPDIR/empty
        : >"$IMAGE"
        refused ENODATA '' 'it is empty'
        truncate -s 1M "$IMAGE"
        refused ENODATA '' 'no filesystem'
        noise 1048576 | dd of="$IMAGE" bs=64k iflag=fullblock status=none
        refused ENODATA '' 'no filesystem'
}

@test "mount-block of an image file names mount-image" {
        make_image ext4
        start_container plain
        helper mount-block "$(image_request)"
        assert_failure ENOTBLK
        shows 'mount-image'
}

@test "an image behind a symbolic link of another user's is refused, and one that is replaced by a link later is what was opened" {
        local real
        make_image ext4
        real=$IMAGE
        start_container plain
        IMAGE=$BATS_TEST_TMPDIR/link.img
        ln -s "$real" "$IMAGE"
        chown -h 100000:100000 "$IMAGE"
        refused ELOOP
        # between opening the path and opening the file
        IMAGE=$BATS_TEST_TMPDIR/victim.img
        cp --sparse=always "$real" "$IMAGE"
        at_syscall --at socketpair --run "ln -sf /etc/passwd $IMAGE" "$FLEXGRAFT_BIN/mount-image" "$(image_request)"
        is "$AT_REACHED" 1
        [[ -L $IMAGE ]]
        assert_success
        is "$(in_container cat /data/file)" "from the image"
}

@test "an image that cannot be written is mounted if that is asked for read-only, and refused else" {
        make_image ext4
        mkdir "$BATS_TEST_TMPDIR/ro"
        mv "$IMAGE" "$BATS_TEST_TMPDIR/ro/"
        IMAGE=$BATS_TEST_TMPDIR/ro/${IMAGE##*/}
        mount --bind "$BATS_TEST_TMPDIR/ro" "$BATS_TEST_TMPDIR/ro"
        mount -o remount,bind,ro "$BATS_TEST_TMPDIR/ro"
        start_container plain
        refused EROFS '' 'cannot be written' readOnly
        holds "from the image" '"readOnly": true'
}

@test "an image that another program has a lease of is mounted once that gives it up" {
        make_image ext4
        start_container plain
        background_ready python3 -c '
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
signal.sigwait([signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.pause()' "$IMAGE"
        holds "from the image"
        end_process "$BACKGROUND_PID"
}

# ---- requests

@test "the same request again finds its mount; with replace, another image takes its place" {
        make_image ext4
        start_container plain
        mount_image
        assert_success
        mount_image
        assert_success
        assert_field .mount.alreadyMounted true
        is "$(loops | wc -l)" 1
        local first=$IMAGE
        make_disk gpt
        mount_image '"partition": 2'
        assert_failure EBUSY
        mount_image '"partition": 2, "replace": true'
        assert_success
        is "$(in_container cat /data/file)" "in the second"
        IMAGE=$first assert_no_loops
        mount_image '"partition": 1, "replace": true'
        assert_success
        is "$(in_container cat /data/file)" "in the first"
        wait_until 5 one_loop
}

@test "a dry run names the steps and attaches nothing" {
        make_disk gpt
        start_container plain
        container_snapshot
        node_snapshot
        mount_image '"partition": "root", "dryRun": true'
        assert_success
        shows 'find the partition'
        mount_image '"partition": "nowhere", "dryRun": true'
        assert_failure ENOENT
        assert_no_loops
        assert_container_unchanged
        assert_node_unchanged
}

@test "a request in words, and by flexgraft mount image" {
        make_disk gpt
        start_container plain
        helper mount-image "$CONTAINER_PID" "$IMAGE" /data --partition 2 --read-only --json
        assert_success
        is "$(in_container cat /data/file)" "in the second"
        helper mount-remove "$(remove_request /data)"
        "$FLEXGRAFT_BIN/flexgraft" mount image "$CONTAINER_PID" "$IMAGE" /data --partition boot >/dev/null
        is "$(in_container cat /data/file)" "in the first"
}

@test "a partition that is neither a number nor a name is not understood" {
        local value
        make_image ext4
        start_container plain
        for value in -1 65536 1.5 true '[]' '{}' null '""'; do
                mount_image "\"partition\": $value"
                assert_not_understood partition || { echo "with $value"; return 1; }
        done
}

@test "remap shows an image's owners where it is asked for" {
        make_image ext4
        start_container plain
        mount_image '"ids": "remap"'
        assert_success
        assert_field .mount.idMapping remap
        is "$(in_container cat /data/file)" "from the image"
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_loops
}

@test "a batch mounts images, also as entries of an OCI configuration" {
        make_disk gpt
        start_container plain
        local disk=$IMAGE
        make_image ext4
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [
                {\"type\": \"image\", \"source\": \"$disk\", \"partition\": 1, \"target\": \"/one\"},
                {\"type\": \"image\", \"source\": \"$disk\", \"partition\": \"root\", \"target\": \"/two\"},
                {\"type\": \"image\", \"source\": \"$IMAGE\", \"target\": \"/three\"},
                {\"destination\": \"/four\", \"type\": \"image\", \"source\": \"$IMAGE\", \"options\": [\"ro\"]}]}"
        assert_success
        is "$(in_container cat /one/file /two/file /three/file /four/file | tr '\n' ,)" \
                "in the first,in the second,from the image,from the image,"
        is "$(loops | wc -l)" 1
        helper mount-batch "$(bed_command_of_last)"
        assert_success
        assert_field '[.mounts[].alreadyMounted] | all' true
}

bed_command_of_last() {
        echo "${bed_command#mount-batch }"
}

@test "a batch that fails leaves no loop device" {
        make_disk gpt
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [
                {\"type\": \"image\", \"source\": \"$IMAGE\", \"partition\": 1, \"target\": \"/one\"},
                {\"type\": \"image\", \"source\": \"$IMAGE\", \"partition\": 3, \"target\": \"/three\"}]}"
        assert_failure ENODATA
        assert_no_loops
        assert_container_unchanged
        assert_node_unchanged
}

# ---- what may be in it

@test "an image is the container's own work: nosuid and nodev cannot be taken from it" {
        make_image ext4
        start_container plain
        mount_image
        assert_success
        run ! in_container mount -o remount,bind,suid /data
        run ! in_container mount -o remount,bind,dev /data
        assert_attributes /data nosuid nodev
}

@test "an image is read by a process of the user nobody, without capabilities and with little memory" {
        local reader trace=$BATS_TEST_TMPDIR/trace
        make_image ext4
        start_container plain
        image_request >"$BATS_TEST_TMPDIR/request"
        mkdir "$trace" # a file for each process: in one file their lines interrupt each other
        strace -ff -qq -o "$trace/of" "$FLEXGRAFT_BIN/mount-image" - <"$BATS_TEST_TMPDIR/request" >/dev/null 2>&1 || :
        # the process that becomes nobody is the one that reads the superblock
        reader=$(grep -lE 'setresuid\(65534, 65534, 65534\) += 0' "$trace"/of.*)
        [[ -n $reader ]]
        grep -qE 'capset\(.*permitted=0, inheritable=0' "$reader"
        # which libblkid says of every file that it is about to read
        is "$(grep -l fadvise64 "$trace"/of.*)" "$reader" "processes that read the image"
        [[ $FLEXGRAFT_BIN == */sanitize ]] || grep -qE 'prlimit64\(0, RLIMIT_AS, \{rlim_cur=65536\*1024' "$reader"
}

@test "an image of xfs keeps no other filesystem of its UUID from being mounted, which its maker may have chosen" {
        local first loop
        make_image xfs
        first=$IMAGE
        IMAGE=$BATS_TEST_TMPDIR/twin.img
        cp --sparse=always "$first" "$IMAGE"
        start_container plain
        mount_image
        assert_success
        loop=$(losetup --find --show "$first")
        bed_loops+=("$loop")
        mkdir "$BATS_TEST_TMPDIR/mnt"
        mount "$loop" "$BATS_TEST_TMPDIR/mnt"
        umount "$BATS_TEST_TMPDIR/mnt"
        release_device "$loop"
        IMAGE=$first
        start_container plain 300000
        mount_image
        assert_success
}

@test "the process that reads an image has that open and the sockets for its answer, and nothing else" {
        make_image ext4
        start_container plain
        at_syscall --at fadvise64 --run-output "$BATS_TEST_TMPDIR/seen" --run 'for fd in /proc/$AT_PID/fd/*; do readlink "$fd"; done' \
                "$FLEXGRAFT_BIN/mount-image" "$(image_request)"
        assert_success
        is "$(sed 's/:\[[0-9]*\]$//' "$BATS_TEST_TMPDIR/seen" | sort)" "$IMAGE"$'\nsocket\nsocket'
}

# with_answer OFFSET BYTES: mount-image of the second partition, where the process that reads the image answers with these bytes (in
# hexadecimal) at this offset of the struct image_part that it sends (src/common/block/image.h).
with_answer() {
        cat >"$BATS_TEST_TMPDIR/alter.py" <<'END'
import os, sys
process = "/proc/" + os.environ["AT_PID"]
address = int(open(process + "/syscall").read().split()[2], 16)
with open(process + "/mem", "r+b", 0) as memory:
    memory.seek(address + int(sys.argv[1]))
    memory.write(bytes.fromhex(sys.argv[2]))
END
        at_syscall --at write --where 3=88 --to-point --run "/usr/bin/python3 '$BATS_TEST_TMPDIR/alter.py' $1 $2" \
                "$FLEXGRAFT_BIN/mount-image" "$(image_request '"partition": 2')"
        is "$AT_REACHED" 1 "the answer"
}

# refused_answer ERRNO OFFSET BYTES: it is refused so, and leaves nothing.
refused_answer() {
        node_snapshot
        with_answer "$2" "$3" && assert_failure "$1" || { echo "with $3 at $2"; return 1; }
        assert_no_loops && assert_container_unchanged && assert_node_unchanged
}

@test "an answer of the process that reads an image is refused when the part is not in the image or contradicts itself" {
        make_disk gpt
        start_container plain
        container_snapshot
        with_answer 16 02000000 # as it is
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_no_loops
        refused_answer EPROTO 0 0000ffffffffff7f        # it begins beyond the end
        refused_answer EPROTO 8 0000000000010000        # it ends there
        refused_answer EPROTO 8 0000000000000000        # it is empty
        refused_answer EPROTO 16 00000000               # the whole image, which begins in its middle
        refused_answer EPROTO 0 0000000000000000000080000000000000000000 # the whole image, which ends in its middle
        refused_answer EPROTO 0 0000000000000000        # a partition that begins where the table is
        refused_answer EPROTO 20 e8030000               # sectors of 1000 bytes
        refused_answer EPROTO 24 "$(printf '61%.0s' {1..64})" # a type without an end
}

@test "an answer of the process that reads an image is refused when the type of filesystem is not for a block device" {
        make_disk gpt
        start_container plain
        container_snapshot
        refused_answer EINVAL 24 746d70667300           # tmpfs
        shows 'tmpfs is not a filesystem for a block device'
        refused_answer EOPNOTSUPP 24 6632667300         # f2fs, which names devices itself
}
