#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The whole life of a volume from a pool: made, mounted by a pod, injected into a running container, given back; the capacity is what it was.
#
# A kernel without the device mapper skips all of this, a machine without persistent memory some; scripts/guest-run --nvdimm has both.
# bats file_tags=kernel,lvm,pmem

load helpers
load driver_helpers
load volume_helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        programs_nearby
}

setup() {
        DRIVER=''
        stores_setup
        bed_setup
        driver_setup flexgraft~lvm
        volume_setup
}

teardown() {
        in_turn stores_teardown ${DRIVER:+driver_teardown}
}

# volume_profile TYPE [PARAMETERS [NAME]]: a profile for volumes of ext4 in pools of that type, or in that of it with the name.
volume_profile() {
        local selector="\"csi_plugin_type_selector\": {\"plugin_type\": \"org.flexgraft.$1\"}"
        [[ -z ${3:-} ]] || selector="\"resource_provider_selector\": {\"resource_providers\": [{\"type\": \"org.flexgraft.$1\", \"name\": \"$3\"}]}"
        printf '{%s, "volume_capabilities": {"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": %s}' \
                "$selector" "${2:-"{}"}"
}

# use PROGRAM...: what a pod does with its directory, and a container with its /data: maps persistent memory, or writes and reads an ordinary file.
write_file() { # DIR
        if [[ $STORE == lvm ]]; then
                echo mapped >"$1/file"
        else
                "$FLEXGRAFT_TOOLS/map-sync" "$1/file"
        fi
}

# write_in_container: the same, by the container's own root.
write_in_container() {
        if [[ $STORE == lvm ]]; then
                in_container sh -c 'echo mapped >/data/own/file'
        else
                cp "$FLEXGRAFT_TOOLS/map-sync" "/proc/$CONTAINER_PID/root/bin/map-sync"
                in_container map-sync /data/own/file
        fi
}

# whole_life SIZE: of a volume "data" with the profile "it".
whole_life() {
        local capacity_before there_before mapped_before dir options=''
        measured '{"pool": "store"}'
        capacity_before=$output there_before=$(what_is_there) mapped_before=$(mapped)
        created "{\"name\": \"data\", \"size\": $1, \"profile\": \"it\"}"
        measured '{"pool": "store"}'
        [[ $output != "$capacity_before" ]]

        kubelet_attach data
        kubelet_stage data
        kubelet_publish data
        dir=$(pod_dir data)
        write_file "$dir"
        is "$(head -c 6 "$dir/file")" mapped "what the pod reads"
        mkdir "$dir/own"
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        is "$(volume_records)" '' "the driver's records"
        is "$(mapped)" "$mapped_before" "active devices"

        kubelet_attach data
        start_container crun
        [[ $STORE == lvm ]] || options=', "options": "dax=always"'
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/data\"$options}"
        assert_success
        is "$(in_container head -c 6 /data/file)" mapped "what the container reads of the pod's"
        write_in_container
        is "$(in_container head -c 6 /data/own/file)" mapped "what the container reads"
        removed_is_refused
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        kubelet_detach data

        removed '{"name": "data"}'
        is "$(volume_records)" '' "the driver's records"
        is "$(provisioned)" '' "records"
        is "$(what_is_there)" "$there_before" "what is in the pool"
        is "$(mapped)" "$mapped_before" "active devices"
        measured '{"pool": "store"}'
        is "$output" "$capacity_before" capacity
}

removed_is_refused() {
        remove '{"name": "data"}'
        refused EBUSY
}

@test "persistent memory, a namespace for the volume: the whole life" {
        store direct
        write_profiles "\"it\": $(volume_profile pmem)"
        whole_life $((60 << 20))
        is "$(namespaces_of region0)" '' namespaces
}

# bats test_tags=kernel_too
@test "persistent memory, a volume group: the whole life" {
        store group
        write_profiles "\"it\": $(volume_profile pmem)"
        # the first volume makes the group, which stays
        created '{"name": "first", "size": 1, "pool": "store"}'
        removed '{"name": "first"}'
        whole_life $((60 << 20))
        is "$(namespaces_of region0)" 'flexgraft fsdax' namespaces
}

# bats test_tags=kernel_too
@test "a volume group of persistent memory has room for as much as was told before it was there" {
        local before
        store group
        write_profiles "\"it\": $(volume_profile pmem)"
        measured '{"pool": "store"}'
        before=$output
        created '{"name": "first", "size": 1, "profile": "it"}'
        removed '{"name": "first"}'
        measured '{"pool": "store"}'
        is "$output" "$before" capacity
}

@test "a striped logical volume: the whole life" {
        loop_disks 2 68M
        store lvm
        write_profiles "\"it\": $(volume_profile lvm '{"type": "striped", "stripes": "2", "stripesize": "64"}')"
        whole_life $((40 << 20))
}

@test "a striped logical volume lies on both of its disks" {
        loop_disks 2 68M
        store lvm
        write_profiles "\"it\": $(volume_profile lvm '{"type": "striped", "stripes": "2", "stripesize": "64"}')"
        created "{\"name\": \"data\", \"size\": $((40 << 20)), \"profile\": \"it\"}"
        quietly pvs --noheadings --nosuffix --units m --options pv_used "${disks[@]}"
        is "$(sed -n 's/^ *\([0-9.]*\) *$/\1/p' "$BATS_TEST_TMPDIR/lvm.log" | paste -s -d' ')" "20.00 20.00" "MiB of each disk"
}

@test "a thin volume: the whole life" {
        store lvm
        quietly lvcreate --type thin-pool --size 80M --name tp "$GROUP"
        quietly lvchange --activate n "$GROUP/tp"
        write_profiles "\"it\": $(volume_profile lvm '{"type": "thin", "thinpool": "tp"}')"
        whole_life $((60 << 20))
        is "$(what_is_there)" tp
}

# ---- two regions

# two_regions [MEMBERS]: a pool "near" of region0 and one "wide" of region1.
two_regions() {
        local name region=0
        [[ -n $HAS_PMEM ]] || skip "this machine has no persistent memory"
        install_driver flexgraft~pmem
        for name in near wide; do
                printf '{"type": "pmem", "region": "region%s"%s}\n' "$((region++))" "${1:+, $1}" >"$FLEXGRAFT_POOLS/$name.json"
        done
}

@test "two regions are two pools, and a profile takes the one that has room" {
        local whole
        two_regions
        write_profiles "\"it\": $(volume_profile pmem)"
        whole=$(largest near)
        created "{\"name\": \"one\", \"size\": $((whole - STORE_ALIGN)), \"profile\": \"it\"}"
        assert_field .volume.pool near
        created "{\"name\": \"two\", \"size\": $((2 * STORE_ALIGN)), \"profile\": \"it\"}"
        assert_field .volume.pool wide
        created "{\"name\": \"three\", \"size\": $STORE_ALIGN, \"profile\": \"it\"}"
        assert_field .volume.pool near
        is "$(namespaces_of region0)" $'one fsdax\nthree fsdax'
        is "$(namespaces_of region1)" 'two fsdax'
        is "$(largest near)" 0
        whole=$(largest wide)
        create "{\"name\": \"four\", \"size\": $((whole + 1)), \"profile\": \"it\"}"
        refused ENOSPC "$whole"
}

# bats test_tags=kernel_too
@test "a profile that names a region's pool takes no other, and its volume is mapped from there" {
        two_regions
        write_profiles "\"it\": $(volume_profile pmem '{}' wide)"
        created "{\"name\": \"data\", \"size\": $((4 * STORE_ALIGN)), \"profile\": \"it\"}"
        assert_field .volume.pool wide
        is "$(namespaces_of region0)" ''
        is "$(namespaces_of region1)" 'data fsdax'
        lifecycle_up data
        "$FLEXGRAFT_TOOLS/map-sync" "$(pod_dir data)/file"
        lifecycle_down data
        create "{\"name\": \"more\", \"size\": $(($(largest wide) + 1)), \"profile\": \"it\"}"
        refused ENOSPC
}

# bats test_tags=kernel_too
@test "each region has a volume group of its own, of its own namespaces" {
        local region before=()
        two_regions '"mode": "lvm"'
        before=("$(total near)" "$(total wide)")
        created "{\"name\": \"one\", \"size\": $STORE_EXTENT, \"pool\": \"near\"}"
        is "$(namespaces_of region1)" '' "namespaces of the other region"
        created "{\"name\": \"two\", \"size\": $STORE_EXTENT, \"pool\": \"wide\"}"
        is "$(lvm_volumes flexgraft-region0)" 'one linear'
        is "$(lvm_volumes flexgraft-region1)" 'two linear'
        for region in 0 1; do
                quietly vgs --noheadings --options pv_name "flexgraft-region$region"
                is "$(grep -o '/dev/pmem[0-9.]*' "$BATS_TEST_TMPDIR/lvm.log" | sort -u)" \
                        "/dev/$(ndctl list --namespaces --region "region$region" | jq -r .[].blockdev)" "disks of the group"
        done
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        is "$(total near) $(total wide)" "${before[*]}" total
        is "$(available near) $(available wide)" "${before[*]}" available
}
