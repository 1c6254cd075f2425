#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: tmpfs and bind volumes; growing.

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

@test "a tmpfs without options can be written by all users" {
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
        for option in size=much size=-1 mode=rwx mode=99 mode=07777777 inodes=many inodes=-3 inodes=0 inodes=18446744073709551626 mountOptions=size=0 mountOptions=nr_inodes=0; do
                make_dir "$(pod_dir cache)"
                call mount "$(pod_dir cache)" "$(spec cache "$option")"
                option=${option%%=*}
                assert_refused "${option/mountO/o}"
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

# own_filesystem NAME EXPECTED: what volume-list says where a pod has it.
own_filesystem() {
        helper volume-list "{\"name\": \"$1\", \"path\": \"$(pod_dir "$1")\"}"
        assert_success
        is "$(json_field .mounted.ownFilesystem)" "$2" "$1"
}

@test "volume-list says where a volume is mounted whether its filesystem is its own" {
        write_policy "\"kinds\": [\"bind\", \"loop\"], \"sources\": [\"$BATS_TEST_TMPDIR\"]"
        lifecycle_up host type=bind "source=$SOURCE"
        lifecycle_up disk type=loop size=8Mi
        own_filesystem host false
        own_filesystem disk true
        lifecycle_down host
        lifecycle_down disk
}

@test "what the node mounts read-only stays so in a pod, and so do noexec and nosymfollow" {
        local option
        open_binds
        mkdir "$SOURCE/sub" "$BATS_TEST_TMPDIR/other"
        mount --bind "$BATS_TEST_TMPDIR/other" "$SOURCE/sub"
        mount -o remount,bind,ro,noexec "$SOURCE/sub"
        for option in exec symfollow; do
                make_dir "$(pod_dir host)"
                call mount "$(pod_dir host)" "$(spec host type=bind "source=$SOURCE/sub" "mountOptions=$option")"
                assert_refused "$option" "$FLEXGRAFT_POLICY"
                is "$(mounts_here)" "$SOURCE/sub"
                rmdir "$(pod_dir host)"
        done
        lifecycle_up host type=bind "source=$SOURCE/sub" mountOptions=rw
        assert_node_attributes "$(pod_dir host)" ro noexec
        lifecycle_down host
        lifecycle_up host type=bind "source=$SOURCE" recursive=true mountOptions=rw
        assert_node_attributes "$(pod_dir host)" rw
        assert_node_attributes "$(pod_dir host)/sub" ro noexec
        lifecycle_down host
        umount "$SOURCE/sub"
        assert_nothing_left
}

@test "an option of a filesystem is refused of a bind and of a directory, though the policy lists it" {
        local type
        local -A option_of=([bind]=source=$SOURCE [directory]=pool=dirs)
        write_policy "\"kinds\": [\"bind\", \"directory\"], \"sources\": [\"$BATS_TEST_TMPDIR\"], \"options\": [\"commit\"]"
        mkdir -m 0700 "$BATS_TEST_TMPDIR/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        helper volume-create '{"name": "directory", "size": "8m", "pool": "dirs"}'
        assert_success
        for type in bind directory; do # each is the name of a volume, too
                make_dir "$(pod_dir "$type")"
                call mount "$(pod_dir "$type")" "$(spec "$type" "type=$type" mountOptions=noexec,commit=5 "${option_of[$type]}")"
                assert_refused '"commit" is an option of a filesystem' "$type"
                is "$(mounts_here)" ""
        done
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

@test "a later mount below the source of a bind does not appear in the pod" {
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

@test "unmount of a bind leaves a mount below its source in place" {
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
        [[ $(json_field .status) == Failure ]] || assert_field .volumeNewSize $((300 * MIB))
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

@test "a block volume's filesystem grows to its device, and the device does not grow" {
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

@test "expandvolume and expandfs refuse invalid sizes" {
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
        [[ $(json_field .status) == Success ]] || is "$(stat -c %s "$(image_of data)")" 8388608
        kubelet_detach data
        umount "$POOL"
        assert_nothing_left
}

@test "after a reboot another image under a volume's name is not of the namespace that had the former one" {
        mkdir -p "$POOL"
        chmod 0700 "$POOL"
        truncate -s 8M "$POOL/a.img" "$POOL/b.img"
        mkfs.ext4 -q -F "$POOL/b.img" # what is formatted anew is nobody's
        write_policy '"images": ["default"]'
        lifecycle_up data type=loop image=a.img
        umount "$(pod_dir data)" "$(global_dir data)"
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        edit_record data '.bootId = "00000000-1111-2222-3333-444444444444"'
        kubelet_attach data type=loop image=b.img
        kubelet_stage data
        second_pod data other type=loop image=b.img
        assert_success
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
}

@test "a driver for all types does not let kubelet give the node's files to a pod's fsGroup" {
        open_binds
        make_dir "$(pod_dir host)"
        call mount "$(pod_dir host)" "$(spec host type=bind "source=$SOURCE" @mounterArgs.FsGroup=2345)"
        assert_refused fsGroup flexgraft/bind
        is "$(mounts_here)" ""
        call mount "$(pod_dir host)" "$(spec host type=bind "source=$SOURCE" @readwrite=ro @mounterArgs.FsGroup=2345)"
        assert_success
        call unmount "$(pod_dir host)"
        assert_success
        install_driver flexgraft~bind # init has said that kubelet leaves files alone
        make_dir "$(pod_dir host)"
        call mount "$(pod_dir host)" "$(spec host "source=$SOURCE" @mounterArgs.FsGroup=2345)"
        assert_success
        call unmount "$(pod_dir host)"
        assert_success
}

@test "a volume without a size does not grow, and expandfs, which kubelet calls before a pod starts, says nothing against it" {
        local text
        open_binds
        text=$(spec host type=bind "source=$SOURCE")
        call expandvolume "$text" "$(global_dir host)" $((2 << 20)) $((1 << 20))
        assert_refused "cannot grow"
        call expandfs "$text" "" "$(pod_dir host)" $((2 << 20)) $((1 << 20))
        assert_success
        assert_nothing_left
}
