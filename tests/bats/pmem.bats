#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes of persistent memory: one namespace each, mapped by pods and containers without a copy.
#
# A machine without persistent memory skips all of this; scripts/guest-run --nvdimm has one with emulated modules.
# bats file_tags=kernel,pmem

load helpers
load driver_helpers
load lvm_helpers
load docs_helpers
bats_require_minimum_version 1.5.0

ALIGN=$((16 << 20))
EXTENT=$((4 << 20))
GROUP=flexgraft-region0

setup() {
        DRIVER=''
        modprobe --quiet --all nfit nd_pmem dm_mod 2>/dev/null || :
        [[ -e /sys/bus/nd/devices/region0 && -n $(type -P ndctl) ]] || skip "this machine has no persistent memory"
        bed_setup
        needs volume-create volume-delete volume-list volume-capacity verbs/pmem-namespaces
        driver_setup flexgraft~pmem
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        empty_regions
        echo '{"type": "pmem", "region": "region0"}' >"$FLEXGRAFT_POOLS/memory.json"
        TOTAL=$(cat /sys/bus/nd/devices/region0/size)
} >/dev/null 2>&1

teardown() {
        [[ -n ${TOTAL:-} ]] || return 0
        umount -l "$BATS_TEST_TMPDIR/trace" 2>/dev/null || :
        in_turn driver_teardown empty_regions
}

empty_regions() {
        local group
        for group in flexgraft-region0 flexgraft-region1 others; do
                quietly vgremove --force "$group" || :
        done
        stores_empty
} >/dev/null 2>&1

# use_group [MEMBERS]: the pool is in mode lvm from now on.
use_group() {
        echo "{\"type\": \"pmem\", \"region\": \"region0\", \"mode\": \"lvm\"${1:+, $1}}" >"$FLEXGRAFT_POOLS/memory.json"
}

create() { # NAME SIZE [MEMBERS]
        helper volume-create "{\"name\": \"$1\", \"size\": $2, \"pool\": \"memory\"${3:+, $3}}"
}

delete() { # NAME [MEMBERS]
        helper volume-delete "{\"name\": \"$1\"${2:+, $2}}"
}

capacity() { # FIELD
        helper volume-capacity '{"pool": "memory"}' && assert_success || return 1
        jq -r ".pools[0].$1" <<<"$json"
}

namespaces() { # [REGION]
        ndctl list --namespaces --region "${1:-region0}" | jq -r 'if type == "array" then .[] else . end | "\(.name) \(.mode)"' | sort
}

@test "a volume is made, mounted with DAX, mapped by a pod, given back, and the room is what it was" {
        local dir
        is "$(capacity available)" "$TOTAL"
        create data $((60 << 20))
        assert_success
        assert_field .volume.size $((4 * ALIGN))
        is "$(namespaces)" "data fsdax"
        is "$(capacity available)" $((TOTAL - 4 * ALIGN))
        kubelet_attach data
        kubelet_stage data
        kubelet_publish data
        dir=$(pod_dir data)
        [[ $(findmnt --noheadings --output OPTIONS "$dir") == *dax=always* ]]
        "$FLEXGRAFT_TOOLS/map-sync" "$dir/file"
        is "$(head -c 6 "$dir/file")" mapped
        delete data
        assert_failure EBUSY
        kubelet_unpublish data
        kubelet_unstage data
        delete data
        assert_failure EBUSY            # it is attached still
        kubelet_detach data
        delete data
        assert_success
        is "$(namespaces)" ''
        is "$(capacity available)" "$TOTAL"
}

@test "pods of two namespaces never meet in persistent memory of one name, not even one after the other" {
        create data $((60 << 20))
        assert_success
        is_of_one_namespace data
        helper volume-list '{}'
        echo '{"type": "pmem", "region": "region0"}' >"$FLEXGRAFT_POOLS/twin.json"
        local pool id
        id=$(json_field '.volumes[] | select(.name == "data").id')
        for pool in memory twin; do
                only_by_its_name data "pool=$pool" "volumeID=$id"
        done
}

@test "a volumeID without a pool is that of the volume of this name, or refused" {
        local id
        create data "$ALIGN"
        assert_success
        id=$(json_field .volume.id)
        call attach "$(spec data "volumeID=${id}2")" "$NODE"
        assert_refused "\"$id\", not \"${id}2\"" '"pool"'
        kubelet_attach data "volumeID=$id"
        kubelet_detach data
}

@test "files of ext4 and of xfs are mapped by huge pages" {
        local type trace=$BATS_TEST_TMPDIR/trace
        (($(cat /sys/bus/nd/devices/region1/size 2>/dev/null || echo 0) >= 336 << 20)) || skip "this machine has no second region that has room for xfs"
        echo '{"type": "pmem", "region": "region1"}' >"$FLEXGRAFT_POOLS/second.json"
        mkdir "$trace"
        mount -t tracefs tracefs "$trace"
        echo 1 >"$trace/events/fs_dax/dax_pmd_fault_done/enable"
        for type in ext4 xfs; do
                helper volume-create "{\"name\": \"$type\", \"size\": $((336 << 20)), \"pool\": \"second\", \"fsType\": \"$type\"}"
                assert_success
                kubelet_attach "$type"
                kubelet_stage "$type"
                is "$(node_mount_type "$(global_dir "$type")")" "$type"
                [[ $(findmnt --noheadings --output OPTIONS "$(global_dir "$type")") == *dax=always* ]]
                : >"$trace/trace"
                "$FLEXGRAFT_TOOLS/map-sync" "$(global_dir "$type")/file" $((8 << 20))
                # the one fault is ended by a page of 2 MiB, whose mapping fsync would have to make durable (VM_FAULT_NEEDDSYNC)
                is "$(grep -c 'dax_pmd_fault_done: .* NEEDDSYNC' "$trace/trace")" 1 "faults of $type"
                kubelet_unstage "$type"
                kubelet_detach "$type"
                delete "$type"
                assert_success
        done
        echo 0 >"$trace/events/fs_dax/dax_pmd_fault_done/enable"
        umount "$trace"
}

@test "a volume with room for xfs, but not on its namespace's device, is refused when it is made" {
        (($(cat /sys/bus/nd/devices/region1/size 2>/dev/null || echo 0) >= 304 << 20)) || skip "this machine has no second region that has room for xfs"
        echo '{"type": "pmem", "region": "region1"}' >"$FLEXGRAFT_POOLS/second.json"
        helper volume-create "{\"name\": \"data\", \"size\": $((304 << 20)), \"pool\": \"second\", \"fsType\": \"xfs\"}"
        assert_failure EINVAL
        [[ $output == *"xfs needs at least 300 MiB"* ]]
        is "$(namespaces region1)" ''
}

@test "a volume for FileIO is of sectors, and not mounted with DAX" {
        create data $((60 << 20)) '"parameters": {"usage": "FileIO"}'
        assert_success
        is "$(namespaces)" "data sector"
        kubelet_attach data
        kubelet_stage data
        [[ $(findmnt --noheadings --output OPTIONS "$(global_dir data)") != *dax* ]]
        run "$FLEXGRAFT_TOOLS/map-sync" "$(global_dir data)/file"
        is "$status" 1
        kubelet_unstage data
        kubelet_detach data
        delete data
        assert_success
}

# bats test_tags=kernel_too
@test "a volume for FileIO of a volume group is not mounted with DAX, either" {
        use_group
        create data "$ALIGN" '"parameters": {"usage": "FileIO"}'
        assert_success
        kubelet_attach data
        kubelet_stage data
        [[ $(findmnt --noheadings --output OPTIONS "$(global_dir data)") != *dax* ]]
        kubelet_unstage data
        kubelet_detach data
        delete data
        assert_success
}

@test "of a volume of sectors nothing is left in the memory itself" {
        local device
        create data "$((2 * ALIGN))" '"parameters": {"usage": "FileIO"}'
        assert_success
        device=$(json_field .volume.path)
        yes secret | dd of="$device" bs=1M count=8 iflag=fullblock oflag=direct status=none
        yes secret | dd of="$device" bs=1M count=8 iflag=fullblock oflag=direct status=none
        delete data
        assert_success
        ndctl create-namespace --region region0 --mode raw --size "$((2 * ALIGN))" >/dev/null 2>&1
        device=/dev/$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .blockdev')
        is "$(grep -c secret "$device" || :)" 0
}

@test "a volume whose namespace is disabled is not deleted, and goes on when that is enabled" {
        local name
        create data "$ALIGN"
        assert_success
        name=$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .dev')
        ndctl disable-namespace "$name" >/dev/null 2>&1
        delete data
        assert_failure
        helper volume-list
        assert_field '.volumes[0].state' created
        ndctl enable-namespace "$name" >/dev/null 2>&1
        kubelet_attach data
        kubelet_detach data
        delete data
        assert_success
}

@test "volume-delete ends what one had begun that was killed when it had disabled the namespace" {
        local name
        create data "$((2 * ALIGN))" '"parameters": {"usage": "FileIO"}'
        assert_success
        name=$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .dev')
        jq '.stage = "deleting"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cat "$BATS_TEST_TMPDIR/record" >"$STATE_DIR/provisioned/data.json"
        ndctl disable-namespace "$name" >/dev/null 2>&1
        delete data
        assert_success
        is "$(namespaces)" ''
        is "$(capacity available)" "$TOTAL"
}

@test "match takes a namespace that was a volume, and never one of others" {
        ndctl create-namespace --region region0 --mode fsdax --size "$ALIGN" --name others >/dev/null 2>&1
        create one "$ALIGN" '"match": true'
        assert_success
        assert_field '.volume | [.id, .adopted] | join(" ")' "one false"
        delete one '"reclaimPolicy": "recycle"'
        assert_success
        create two "$ALIGN" '"match": true'
        assert_success
        assert_field '.volume | [.id, .adopted] | join(" ")' "one true"
        delete two '"reclaimPolicy": "delete"'
        assert_success
        is "$(namespaces)" "others fsdax"
}

# bats test_tags=kernel_too
@test "the disk of a volume group is no volume, by whatever name" {
        echo '{"type": "pmem", "region": "region0", "maxPercent": 50}' >"$FLEXGRAFT_POOLS/direct.json"
        use_group '"maxPercent": 50'
        create data "$EXTENT"
        assert_success
        helper volume-create '{"name": "stolen", "pool": "direct", "id": "flexgraft"}'
        assert_failure ENOENT
        call attach "$(spec stolen pool=direct volumeID=flexgraft)" "$NODE"
        assert_refused
        delete data
        assert_success
}

@test "a volume of sectors is as large as the kernel needs it to be" {
        create data 1 '"parameters": {"usage": "FileIO"}'
        assert_success
        assert_field .volume.size $((2 * ALIGN))
        create rest $((TOTAL - 3 * ALIGN))
        assert_success
        create more 1 '"parameters": {"usage": "FileIO"}'
        assert_failure ENOSPC
        create more 1
        assert_success
}

@test "of a fragmented region the largest extent is told, and a request above it fails with it named" {
        local rest
        create a $((63 << 20))
        assert_success
        create b 1
        assert_success
        create c $((64 << 20))
        assert_success
        rest=$((TOTAL - 9 * ALIGN))
        delete b
        assert_success
        is "$(capacity available)" $((rest + ALIGN))
        is "$(capacity largest)" "$rest"
        create d $((rest + 1))
        assert_failure ENOSPC "$rest"
        create d "$rest"
        assert_success
        is "$(capacity largest)" "$ALIGN"
}

@test "what was on a volume is erased, and a signature on memory that is used again is wiped" {
        local device
        create data "$ALIGN"
        assert_success
        device=$(json_field .volume.path)
        mkfs.ext4 -q -b 4096 "$device"
        yes secret | dd of="$device" bs=1M seek=4 count=2 iflag=fullblock conv=fsync status=none
        delete data
        assert_success
        ndctl create-namespace --region region0 --mode fsdax --size "$ALIGN" --name other >/dev/null 2>&1
        device=/dev/$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .blockdev')
        is "$(grep -c secret "$device" || :)" 0
        mkfs.ext4 -q -b 4096 "$device"
        ndctl destroy-namespace --force all >/dev/null 2>&1
        create data "$ALIGN"
        assert_success
        is "$(blkid -p -o value -s TYPE "$(json_field .volume.path)" || :)" '' signature
}

@test "namespaces of others are never touched" {
        ndctl create-namespace --region region0 --mode fsdax --size "$ALIGN" --name others >/dev/null 2>&1
        create others "$ALIGN"
        assert_failure EEXIST
        delete others
        assert_success
        assert_field .existed false
        create data "$ALIGN"
        assert_success
        delete data
        assert_success
        is "$(namespaces)" "others fsdax"
        helper volume-list '{"pool": "memory"}'
        assert_field '[.disks[].id] | join(" ")' others
}

# bats test_tags=kernel_too
@test "names of 128 bytes and with odd characters are volumes, too" {
        local name
        for name in "$(printf 'x%.0s' {1..128})" 'a b/c' 'ä' '"'; do
                helper volume-create "$(jq -nc --arg name "$name" '{name: $name, size: 1, pool: "memory"}')"
                assert_success
                helper volume-delete "$(jq -nc --arg name "$name" '{name: $name}')"
                assert_success
        done
        is "$(namespaces)" ''
}

@test "a volume is injected into a running container, which maps it" {
        create data $((60 << 20))
        assert_success
        kubelet_attach data
        kubelet_stage data
        kubelet_unstage data
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/data\", \"options\": \"dax=always\"}"
        assert_success
        cp "$FLEXGRAFT_TOOLS/map-sync" "/proc/$CONTAINER_PID/root/bin/map-sync"
        in_container map-sync /data/file
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        kubelet_detach data
        delete data
        assert_success
}

# ---- a volume group of the region's

@test "a volume whose raw device a container has is in use: it is not detached or deleted" {
        create data $((2 * ALIGN))
        assert_success
        kubelet_attach data
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        call detach data "$NODE"
        assert_refused "in use by container" "pid $CONTAINER_PID" /disk
        delete data
        assert_failure EBUSY
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        kubelet_detach data
        delete data
        assert_success
}

@test "a volume is mounted in containers by its name, with DAX, until the last mount-remove" {
        needs mount-volume
        create data $((2 * ALIGN))
        assert_success
        local first
        start_container plain
        first=$CONTAINER_PID
        helper mount-volume "{\"container\": $first, \"volume\": \"data\", \"target\": \"/data\"}"
        assert_success
        in_container sh -c 'echo hello >/data/file'
        [[ ,$(in_container sed -n 's/^.* \/data .* - ext4 [^ ]* //p' /proc/self/mountinfo), == *,dax* ]]
        start_container plain 200000
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"data\", \"target\": \"/data\"}"
        assert_success
        is "$(in_container cat /data/file)" hello
        delete data
        assert_failure EBUSY
        helper mount-remove "$(remove_request /data)"
        assert_success
        use_container "$first"
        helper mount-remove "$(remove_request /data)"
        assert_success
        delete data
        assert_success
        is "$(capacity available)" "$TOTAL"
}

@test "in mode lvm the region becomes a volume group, whose volumes are mapped by pods, and the room is what it was" {
        local dir before
        use_group
        before=$(capacity available)
        create data $((60 << 20))
        assert_success
        assert_field .volume.size $((60 << 20))
        assert_field .volume.path "/dev/$GROUP/data"
        is "$(namespaces)" 'flexgraft fsdax'
        is "$(lvm_volumes "$GROUP")" 'data linear'
        is "$(capacity available)" $((before - (60 << 20)))
        kubelet_attach data
        is "${DEVICES[data]}" /dev/mapper/flexgraft--region0-data
        kubelet_stage data
        kubelet_publish data
        dir=$(pod_dir data)
        [[ $(findmnt --noheadings --output OPTIONS "$dir") == *dax=always* ]]
        "$FLEXGRAFT_TOOLS/map-sync" "$dir/file"
        delete data
        assert_failure EBUSY
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        [[ ! -e /dev/mapper/flexgraft--region0-data ]]
        delete data
        assert_success
        is "$(lvm_volumes "$GROUP")" ''
        is "$(capacity available)" "$before"
}

@test "in mode lvm the largest volume that is told before there is a group can be made, and no larger one" {
        local largest
        ndctl create-namespace --region region0 --mode fsdax --size $((3 * ALIGN)) --name others >/dev/null 2>&1
        use_group
        largest=$(capacity largest)
        is "$(capacity total)" "$largest"
        create data $((largest + 1))
        assert_failure ENOSPC "$largest"
        is "$(namespaces)" 'others fsdax'
        create data "$largest"
        assert_success
        is "$(capacity available)" 0
        is "$(capacity total)" "$largest"
        is "$(namespaces)" $'flexgraft fsdax\nothers fsdax'
}

# bats test_tags=kernel_too
@test "in mode lvm a fragmented region gives all its pieces, and volumes lie over several" {
        local largest id
        create a "$((4 * ALIGN))"
        create b "$ALIGN"
        create c "$((4 * ALIGN))"
        create d "$ALIGN"
        delete a
        delete c
        use_group
        largest=$(capacity largest)
        create data "$largest"
        assert_success
        is "$(namespaces | grep -c flexgraft)" 3
        kubelet_attach data
        kubelet_stage data
        "$FLEXGRAFT_TOOLS/map-sync" "$(global_dir data)/file"
        kubelet_unstage data
        kubelet_detach data
        delete data
        assert_success
        is "$(capacity largest)" "$largest"
}

@test "in mode lvm the pool takes no more of its region than its share, and grows when that does" {
        use_group '"maxPercent": 50'
        create data "$EXTENT"
        assert_success
        (($(cat /sys/bus/nd/devices/region0/available_size) >= TOTAL / 2))
        use_group
        create more $((TOTAL / 2 + ALIGN))
        assert_success
        is "$(namespaces | grep -c flexgraft)" 2
}

@test "a foreign group or namespace is not filled, and not taken" {
        local device
        ndctl create-namespace --region region0 --mode fsdax --size $((3 * ALIGN)) --name flexgraft >/dev/null 2>&1
        device=/dev/$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .blockdev')
        quietly vgcreate others "$device"
        use_group
        create data "$EXTENT"
        assert_success
        is "$(lvm_volumes others)" ''
        quietly pvs --noheadings --options pv_name,vg_name "$device"
        grep -q ' others' "$BATS_TEST_TMPDIR/lvm.log"
        delete data
        assert_success
        quietly vgremove --force "$GROUP"
        quietly vgrename others "$GROUP"
        create data "$EXTENT"
        assert_failure EEXIST "not made by flexgraft"
}

@test "namespaces left by a killed volume-create are added to the group or destroyed" {
        local name before device
        use_group
        before=$(capacity available)
        for name in flexgraft flexgraft-making; do
                ndctl create-namespace --region region0 --mode fsdax --name "$name" >/dev/null 2>&1
                device=/dev/$(ndctl list --namespaces --region region0 | jq -r 'if type == "array" then .[0] else . end | .blockdev')
                dd if=/dev/zero of="$device" bs=4M status=none 2>/dev/null || :      # to its end
                is "$(capacity available)" "$before" "with $name"
                create data "$before"
                assert_success
                is "$(namespaces)" "flexgraft fsdax"
                delete data
                assert_success
                is "$(capacity available)" "$before"
                quietly vgremove --force "$GROUP"
                ndctl destroy-namespace --force all >/dev/null 2>&1
        done
}

# bats test_tags=kernel_too
@test "a label of lvm's that was left on memory that is used again is wiped, in both modes" {
        local device
        use_group
        create old "$EXTENT"
        assert_success
        ndctl destroy-namespace --force all >/dev/null 2>&1     # and nobody told lvm
        create old "$EXTENT"
        assert_failure ENOENT           # the record is there; its volume is not
        delete old
        assert_success
        create data "$EXTENT"
        assert_success
        is "$(lvm_volumes "$GROUP")" 'data linear'
        delete data
        assert_success
        ndctl destroy-namespace --force all >/dev/null 2>&1
        echo '{"type": "pmem", "region": "region0"}' >"$FLEXGRAFT_POOLS/memory.json"
        create data "$TOTAL"
        assert_success
        is "$(blkid -p -o value -s TYPE "$(json_field .volume.path)" || :)" '' signature
}

@test "an ephemeral volume is a pod's while it is mounted, in both modes" {
        local dir before mode
        dir=$(pod_dir scratch)
        make_dir "${dir%/*}"
        for mode in direct lvm; do
                [[ $mode == direct ]] || use_group
                before=$(capacity available)
                call mount "$dir" "$(spec scratch ephemeral=true pool=memory size=60Mi)"
                assert_success
                "$FLEXGRAFT_TOOLS/map-sync" "$dir/file"
                call unmount "$dir"
                assert_success
                assert_nothing_left
                is "$(capacity available)" "$before"
                helper volume-list
                assert_field '.volumes | length' 0
        done
}

@test "the commands of docs/pools.md for persistent memory can be typed one after the other, and none fails" {
        rm -f "$FLEXGRAFT_POOLS/memory.json"
        [[ -e /sys/bus/nd/devices/region1 ]] || skip "this machine has no second region"
        blocks docs/pools.md 'sh pmem' | sed "s,/etc/flexgraft/pools.d,$FLEXGRAFT_POOLS," >"$BATS_TEST_TMPDIR/script"
        run --separate-stderr env PATH="$FLEXGRAFT_BIN:$PATH" bash -euo pipefail "$BATS_TEST_TMPDIR/script"
        is "$status" 0 "exit status of what docs/pools.md says: $output"
        is "$(jq -r .status <<<"$output" | sort | uniq -c | tr -s ' ')" ' 8 Success'
        is "$(namespaces)$(namespaces region1)" 'flexgraft fsdax'
}

@test "an image for a virtual machine lies in a volume of persistent memory, which maps it" {
        local image
        create vm $((96 << 20))
        assert_success
        SPECS[vm]=$(spec vm kataContainers=true)
        call attach "${SPECS[vm]}" "$NODE"
        assert_success
        call mountdevice "$(global_dir vm)" "$(json_field .device)" "${SPECS[vm]}"
        assert_success
        image=$(jq -r '.message | capture("machine is (?<path>/.*)").path' <<<"$json")
        [[ $(findmnt --noheadings --output OPTIONS --target "$image") == *dax=always* ]]
        is "$(findmnt --noheadings --output SOURCE "$(global_dir vm)")" "$(loop_of "$image")"
        call unmountdevice "$(global_dir vm)"
        assert_success
        call detach vm "$NODE"
        assert_success
        assert_nothing_left
        delete vm
        assert_success
        is "$(capacity available)" "$TOTAL"
}
