#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes for containers in virtual machines: an image in the volume, which the machine's kernel takes for persistent memory.

load helpers
load driver_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        needs volume-reconcile
        SPEC=$(spec vm type=loop size=64Mi kataContainers=true)
        SPECS[vm]=$SPEC
        GLOBAL=$(global_dir vm)
        DIR=$(pod_dir vm)
        make_dir "${DIR%/*}"
}

teardown() {
        driver_teardown
}

up() {
        call attach "$SPEC" "$NODE" && assert_success || return 1
        call mountdevice "$GLOBAL" /dev/loop0 "$SPEC" && assert_success || return 1
        IMAGE=$(jq -r '.message | capture("machine is (?<path>/.*)").path' <<<"$json")
        call mount "$DIR" "$SPEC" && assert_success
}

down() {
        call unmount "$DIR" && assert_success || return 1
        call unmountdevice "$GLOBAL" && assert_success || return 1
        call detach vm "$NODE" && assert_success
}

nothing_is_left() {
        assert_nothing_left && [[ ! -e $STATE_DIR/kata ]]
}

@test "pods get the filesystem in the image, and mountdevice tells where that is" {
        up
        [[ $IMAGE == "$STATE_DIR"/kata/*/kata.img ]]
        is "$(losetup --noheadings --output OFFSET --associated "$IMAGE" | tr -d ' ')" $((2 << 20))
        is "$(node_mount_type "$DIR")" ext4
        echo hello >"$DIR/file"
        down
        nothing_is_left
        up
        is "$(cat "$DIR/file")" hello
        call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
        assert_field .message "kataContainers: the image for the virtual machine is $IMAGE"
        call mount "$DIR" "$SPEC"
        assert_success
        down
        nothing_is_left
}

# profile_vm [MEMBERS]: a profile of the loop pools, vm, whose volumes are for virtual machines and are not erased.
profile_vm() {
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        echo '{"profile_matrix": {"vm": {"csi_plugin_type_selector": {"plugin_type": "loop"}, "volume_capabilities":
                {"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}},
                "create_parameters": {"kataContainers": "true", "eraseAfter": "false"'"${1:-}"'}}}}' >"$FLEXGRAFT_PROFILES"
}

@test "a volume of a profile with kataContainers and eraseAfter is for virtual machines, and is not erased" {
        profile_vm
        helper volume-create '{"name": "vm", "size": "64m", "profile": "vm"}'
        assert_success
        is "$(jq .eraseAfter "$STATE_DIR/provisioned/vm.json")" false
        SPEC=$(spec vm type=loop)
        up
        [[ $IMAGE == "$STATE_DIR"/kata/*/kata.img ]]
        down
        lifecycle_up vm type=loop kataContainers=false
        [[ -e $DIR/kata.img ]]         # the volume's own filesystem
        lifecycle_down vm
        delete_volume vm
        nothing_is_left
}

@test "a request's eraseAfter counts more than its profile's" {
        profile_vm
        helper volume-create '{"name": "vm", "size": "64m", "profile": "vm", "eraseAfter": true}'
        assert_success
        is "$(jq '.eraseAfter != false' "$STATE_DIR/provisioned/vm.json")" true
        delete_volume vm
        nothing_is_left
}

@test "a profile's kataContainers and eraseAfter must be true or false" {
        local value
        for value in '"eraseAfter": "no"' '"kataContainers": "1"'; do
                profile_vm ", \"preallocate\": \"true\""
                sed -i "s/${value%%:*}: \"[a-z]*\"/$value/" "$FLEXGRAFT_PROFILES"
                helper volume-create '{"name": "vm", "size": "64m", "profile": "vm"}'
                assert_failure EINVAL
                [[ $output == *"${value:1:5}"* ]]
        done
        nothing_is_left
}

# ephemeral_is_for_machines KEY=VALUE...: an ephemeral volume of these options is for virtual machines from mount to unmount. ERASED: it is
# erased then.
ephemeral_is_for_machines() {
        local image
        SPEC=$(spec scratch ephemeral=true size=64Mi "$@")
        DIR=$(pod_dir scratch)
        call mount "$DIR" "$SPEC"
        assert_success || return 1
        image=$(jq -r '.message | capture("machine is (?<path>/.*)").path' <<<"$json")
        [[ $image == "$STATE_DIR"/kata/*/kata.img ]] || return 1
        is "$(losetup --noheadings --output OFFSET --associated "$image" | tr -d ' ')" $((2 << 20)) || return 1
        echo hello >"$DIR/file" || return 1
        helper volume-reconcile '{}'
        call mount "$DIR" "$SPEC"
        assert_success || return 1
        is "$(cat "$DIR/file")" hello || return 1
        is "$(jq '.eraseAfter != false' "$STATE_DIR"/provisioned/ephemeral-*.json)" "${ERASED:-false}" || return 1
        call unmount "$DIR"
        assert_success || return 1
        call unmount "$DIR"
        assert_success || return 1
        is "$(ls "$POOL")" '' images && [[ -z $(find "$STATE_DIR/provisioned" -name '*.json') ]] && nothing_is_left
}

@test "an ephemeral volume with kataContainers and without eraseAfter is for virtual machines, and gone after unmount" {
        ephemeral_is_for_machines kataContainers=true eraseAfter=false
}

@test "an ephemeral volume of a profile with kataContainers and eraseAfter is for virtual machines, and gone after unmount" {
        profile_vm
        ephemeral_is_for_machines profile=vm
}

@test "an ephemeral volume with kataContainers and eraseAfter true is for virtual machines, and is erased after unmount" {
        ERASED=true ephemeral_is_for_machines kataContainers=true eraseAfter=true
}

@test "a volume with room for xfs, but not in the image for a virtual machine, is refused when it is made" {
        call attach "$(spec vm type=loop size=330Mi kataContainers=true @fsType=xfs)" "$NODE"
        assert_refused xfs "300 MiB" 346030080
        call mount "$DIR" "$(spec vm ephemeral=true size=330Mi kataContainers=true @fsType=xfs)"
        assert_refused xfs "300 MiB"
        helper volume-create '{"name": "vm", "size": "330m", "fsType": "xfs", "parameters": {"kataContainers": "true"}}'
        assert_failure EINVAL
        is "$(ls "$POOL")$(ls "$STATE_DIR/provisioned")" '' "images and records"
        nothing_is_left
}

@test "a volume for a virtual machine with room for xfs in the image has that" {
        SPEC=$(spec vm type=loop size=344Mi kataContainers=true @fsType=xfs)
        up
        is "$(node_mount_type "$DIR")" xfs
        down
        nothing_is_left
}

@test "an ephemeral volume that is too small for an image leaves nothing" {
        call mount "$DIR" "$(spec vm ephemeral=true size=9Mi kataContainers=true)"
        assert_refused
        [[ -z $(find "$STATE_DIR/provisioned" -name '*.json') ]]
        nothing_is_left
}

# bats test_tags=deep
@test "the kernel of a virtual machine finds memory in the image, mounts the whole of it, and maps files with MAP_SYNC" {
        local memory; memory=$(mktemp -u "$FLEXGRAFT_REPO/build/kata.XXXXXX")
        [[ ! -e /run/guest-run ]] || skip "this is a virtual machine already"
        up
        echo hello >"$DIR/file"
        call unmount "$DIR"
        assert_success
        call unmountdevice "$GLOBAL"
        assert_success
        mkdir "$BATS_TEST_TMPDIR/own"
        mount -o ro "$(loop_of "$(image_of vm)")" "$BATS_TEST_TMPDIR/own"
        cp "$BATS_TEST_TMPDIR/own/kata.img" "$memory"
        umount "$BATS_TEST_TMPDIR/own"
        # as large as a module may be: the rest of it, and its labels, are empty
        truncate -s $((66 << 20)) "$memory"
        run "$FLEXGRAFT_REPO/scripts/guest-run" --timeout 200 --nvdimm "$memory" bash -c '
                modprobe --all nfit nd_pmem ext4
                for i in {1..1200}; do [[ -b /dev/pmem0 ]] && break; sleep 0.1; done
                echo "mode: $(cat /sys/bus/nd/devices/pfn0.*/mode | sort | tail -n 1)"
                echo "partitions: $(ls -d /sys/class/block/pmem0/pmem0p* 2>/dev/null)."
                mkdir /tmp/m && mount -o dax=always /dev/pmem0 /tmp/m && cat /tmp/m/file && '"$FLEXGRAFT_TOOLS"'/map-sync /tmp/m/mapped && echo synced'
        rm -f "$memory"
        is "$status" 0
        [[ $output == *'mode: ram'*'partitions: .'*hello*synced* ]]
}

# volume_with_image FILE: the volume's own filesystem, made by hand, with this file as its image.
volume_with_image() {
        mkdir -p "$POOL" "$BATS_TEST_TMPDIR/content"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        mv "$1" "$BATS_TEST_TMPDIR/content/kata.img"
        truncate -s 64M "$(image_of vm)"
        mkfs.ext4 -q -F -d "$BATS_TEST_TMPDIR/content" "$(image_of vm)"
}

# write_bytes FILE OFFSET BYTES: BYTES as printf has them.
write_bytes() {
        # shellcheck disable=SC2059 # it is a format
        printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# write_table FILE OFFSET BYTES: a partition table at OFFSET, whose partition begins at the sector of these little-endian bytes.
write_table() {
        write_bytes "$1" $(($2 + 446 + 4)) '\x83'
        write_bytes "$1" $(($2 + 446 + 8)) "$3"
        write_bytes "$1" $(($2 + 446 + 12)) '\x00\x80\x00\x00'
        write_bytes "$1" $(($2 + 510)) '\x55\xaa'
}

@test "an earlier image, with a second partition table and the filesystem at 4 MiB, is mounted as it is" {
        local image=$BATS_TEST_TMPDIR/old
        mkdir "$BATS_TEST_TMPDIR/files"
        echo kept >"$BATS_TEST_TMPDIR/files/file"
        truncate -s 20M "$image"
        mkfs.ext4 -q -F -b 4096 -E offset=$((4 << 20)) -d "$BATS_TEST_TMPDIR/files" "$image" 16M
        write_table "$image" 0 '\x00\x20\x00\x00'
        write_table "$image" $((2 << 20)) '\x00\x10\x00\x00'
        volume_with_image "$image"
        up
        is "$(losetup --noheadings --output OFFSET --associated "$IMAGE" | tr -d ' ')" $((4 << 20))
        is "$(cat "$DIR/file")" kept
        grep -q 'kata.img is an earlier image' "$LOG"
        echo more >>"$DIR/file"
        down
        nothing_is_left
        up
        is "$(cat "$DIR/file")" $'kept\nmore'
        down
        nothing_is_left
}

@test "an image whose partition table a virtual machine has overwritten is refused, and nothing is written to it" {
        local image=$BATS_TEST_TMPDIR/damaged bytes before
        for bytes in '\x00\x10\x00\x01' '\x00\x00\x00\x00' '\x08\x10\x00\x00' none; do
                truncate -s 20M "$image"
                [[ $bytes == none ]] || write_table "$image" 0 "$bytes"
                volume_with_image "$image"
                before=$(cksum <"$BATS_TEST_TMPDIR/content/kata.img")
                call attach "$SPEC" "$NODE"
                assert_success
                call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
                assert_refused 'partition table'
                call unmountdevice "$GLOBAL"
                assert_success
                call detach vm "$NODE"
                assert_success
                nothing_is_left
                debugfs -R "dump kata.img $BATS_TEST_TMPDIR/after" "$(image_of vm)" 2>/dev/null
                is "$(cksum <"$BATS_TEST_TMPDIR/after")" "$before"
                rm "$BATS_TEST_TMPDIR/content/kata.img"
        done
}

@test "options that make no volume for a virtual machine are refused, and leave nothing" {
        local options
        for options in 'type=loop size=64Mi kataContainers=maybe' 'type=loop size=9Mi kataContainers=true' 'type=tmpfs kataContainers=true' 'type=kata'; do
                # shellcheck disable=SC2086 # the words of the options
                SPEC=$(spec vm $options)
                call attach "$SPEC" "$NODE"
                call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
                assert_refused
                call unmountdevice "$GLOBAL"
                assert_success
                call detach vm "$NODE"
                assert_success
                nothing_is_left
                delete_volume vm
        done
}

@test "an image that another user's link leads to is refused, and nothing stays mounted" {
        mkdir -p "$POOL" "$BATS_TEST_TMPDIR/content"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        echo precious >"$BATS_TEST_TMPDIR/precious"
        ln -s "$BATS_TEST_TMPDIR/precious" "$BATS_TEST_TMPDIR/content/kata.img"
        truncate -s 64M "$(image_of vm)"
        mkfs.ext4 -q -F -d "$BATS_TEST_TMPDIR/content" "$(image_of vm)"
        call attach "$SPEC" "$NODE"
        assert_success
        call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
        assert_refused kata.img
        is "$(mounts_here)" ''
        call detach vm "$NODE"
        assert_success
        nothing_is_left
        is "$(cat "$BATS_TEST_TMPDIR/precious")" precious
}

@test "an image that was not finished is made anew, and one that is there is kept" {
        up
        echo hello >"$DIR/file"
        down
        SPEC=$(spec other type=loop size=64Mi kataContainers=true) GLOBAL=$(global_dir other)
        call attach "$SPEC" "$NODE"
        assert_success
        at_syscall --own --at fallocate --kill "$DRIVER" mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
        is "$AT_REACHED" 1
        call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
        assert_success
        is "$(find "$STATE_DIR/kata" -name 'kata.img*' | wc -l)" 1
        call unmountdevice "$GLOBAL"
        assert_success
        call detach other "$NODE"
        assert_success
        nothing_is_left
}

@test "volume-reconcile takes all of it away after a reboot" {
        local name
        up
        for name in "$STATE_DIR"/volumes/*.json; do
                edit_record "$(basename "$name" .json)" '.bootId = "00000000-0000-0000-0000-000000000000"'
        done
        helper volume-reconcile
        assert_success
        helper volume-reconcile
        assert_success
        assert_field '.problems | length' 0
        rmdir "$GLOBAL" "$DIR" 2>/dev/null || :
        nothing_is_left
}

@test "mountdevice killed before any record is in its place, and not called again: unmountdevice and detach leave nothing" {
        local number tried=0
        for ((number = 1; ; number++)); do
                call attach "$SPEC" "$NODE"
                assert_success
                at_syscall --own --at "renameat:$number" --kill "$DRIVER" mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
                call unmountdevice "$GLOBAL"
                assert_success
                call detach vm "$NODE"
                assert_success
                nothing_is_left
                [[ $AT_REACHED == 1 ]] || break
                tried=$((tried + 1))
        done
        ((tried > 2))
}

# kata_sweep VERB: killed at a system call and called again, or not, it does its work, and what follows leaves nothing.
kata_sweep() {
        local verb=$1 ending before=() again=() arguments=("$GLOBAL" /dev/loop0 "$SPEC")
        before=(call "$DRIVER" attach "$SPEC" "$NODE" ';')
        if [[ $verb == unmountdevice ]]; then
                before+=(call "$DRIVER" mountdevice "${arguments[@]}" ';')
                arguments=("$GLOBAL")
        fi
        again=(call "$DRIVER" "$verb" "${arguments[@]}" ';')
        [[ $verb == unmountdevice ]] || again+=(sh "grep -q ' $GLOBAL .* - ext4 ' /proc/self/mountinfo" ';')
        for ending in again 'given up'; do
                LABEL="$verb, $ending" WIDER=4 sweep --reply kubelet --kill --watch tree "$STATE_DIR" --watch tree "$KUBELET" --watch mounts self -- \
                        "${before[@]}" \
                        act "$DRIVER" "$verb" "${arguments[@]}" ';' \
                        "${again[@]}" \
                        call "$DRIVER" unmountdevice "$GLOBAL" ';' \
                        call "$DRIVER" detach vm "$NODE" ';' \
                        loops "$BATS_TEST_TMPDIR/" 0 ';' \
                        same ';'
                again=()
        done
        nothing_is_left
}

# bats test_tags=sweep
@test "mountdevice killed at any call: again mounts it, and the rest leaves nothing" {
        kata_sweep mountdevice
}

# bats test_tags=sweep
@test "unmountdevice killed at any call: again leaves nothing" {
        kata_sweep unmountdevice
}

@test "a volume that has files gets no image for a virtual machine, not even by a pod of another namespace" {
        lifecycle_up vm type=loop size=64Mi
        echo mine >"$DIR/file"
        lifecycle_down vm
        call attach "$SPEC" "$NODE"
        assert_success
        call mountdevice "$GLOBAL" /dev/loop0 "$SPEC"
        assert_refused "has files"
        is "$(jq '.hasKataImage // false' "$STATE_DIR/provisioned/vm.json")" false
        call detach vm "$NODE"
        assert_success
        nothing_is_left
        lifecycle_up vm type=loop
        [[ ! -e $DIR/kata.img ]]
        is "$(cat "$DIR/file")" mine
        lifecycle_down vm
}
