#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The kernel's modules for logical volumes: a node has loaded none of them after a boot, and the programs may load nothing themselves.
#
# Needs a kernel with the device mapper as modules: scripts/guest-run has one.
# bats file_tags=kernel,lvm

load helpers
load driver_helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

setup() {
        DRIVER=''
        modprobe --quiet dm_mod 2>/dev/null || :
        has_device_mapper || skip "this kernel has no device mapper"
        modinfo dm_raid >/dev/null 2>&1 && [[ $(modinfo --field filename dm_raid) != *builtin* ]] || skip "this kernel has no such modules"
        bed_setup
        needs volume-create volume-delete
        driver_setup flexgraft~lvm
        group_make 4 68M
}

teardown() {
        group_teardown
}

# as_after_a_boot: no volume of the group is active, and none of these modules is loaded.
as_after_a_boot() {
        local module
        quietly vgchange --activate n "$GROUP"
        for module in dm_raid dm_mirror dm_thin_pool dm_snapshot dm_cache; do
                modprobe --quiet --remove "$module" || :
                if grep -q "^$module " /proc/modules; then
                        echo "$module is in use"
                        return 1
                fi
        done
}

# can_be_made TYPE MODULE [PARAMETERS]: it is the first of its type since the boot.
can_be_made() {
        as_after_a_boot || return 1
        helper volume-create "{\"name\": \"data\", \"size\": 4194304, \"pool\": \"big\", \"parameters\": {\"type\": \"$1\"${3:+, $3}}}"
        assert_success || return 1
        grep -q "^$2 " /proc/modules || return 1
        lvm_volumes "$GROUP" | grep -qx "data $1" || return 1
        as_after_a_boot || return 1
        helper volume-delete '{"name": "data"}'
        assert_success && ! lvm_volumes "$GROUP" | grep -qw data
}

@test "the first raid1 volume since a boot can be made and deleted" {
        can_be_made raid1 dm_raid
}

# bats test_tags=kernel_too
@test "the first raid10 volume since a boot can be made and deleted" {
        can_be_made raid10 dm_raid '"stripes": "2"'
}

# bats test_tags=kernel_too
@test "the first mirror since a boot can be made and deleted" {
        can_be_made mirror dm_mirror
}

@test "the first thin volume since a boot can be made and deleted" {
        quietly lvcreate --type thin-pool --size 32m --name pool "$GROUP"
        can_be_made thin dm_thin_pool '"thinpool": "pool"'
}

# is_woken TYPE: by attach, and by waitforattach, as the first volume since a boot.
is_woken() {
        local request
        request=$(spec data type=lvm pool=big)
        helper volume-create "{\"name\": \"data\", \"size\": 4194304, \"pool\": \"big\", \"parameters\": {\"type\": \"$1\"}}"
        assert_success || return 1
        as_after_a_boot || return 1
        call attach "$request" "$NODE"
        assert_success && [[ -b /dev/$GROUP/data ]] || return 1
        as_after_a_boot || return 1
        call waitforattach "/dev/$GROUP/data" "$request"
        assert_success && [[ -b /dev/$GROUP/data ]] || return 1
        call detach data "$NODE"
        assert_success
}

@test "a raid1 volume is attached after a reboot" {
        is_woken raid1
}

@test "a mirror is attached after a reboot" {
        is_woken mirror
}

@test "the first snapshot since a boot can be taken" {
        needs volume-snapshot
        helper volume-create '{"name": "data", "size": 4194304, "pool": "big"}'
        assert_success
        as_after_a_boot
        helper volume-snapshot '{"name": "data", "snapshot": "monday"}'
        assert_success
        grep -q '^dm_snapshot ' /proc/modules
        lvm_volumes "$GROUP" | grep -qx 'monday linear'
}

@test "a linear volume loads no module" {
        as_after_a_boot
        helper volume-create '{"name": "data", "size": 4194304, "pool": "big"}'
        assert_success
        is "$(grep -E '^dm_(raid|mirror|thin_pool|snapshot|cache) ' /proc/modules)" ''
}

@test "no word of a request is the name of a module" {
        as_after_a_boot
        helper volume-create '{"name": "data", "size": 4194304, "pool": "big", "parameters": {"type": "cache"}}'
        is "$status" 1
        helper volume-create '{"name": "needs:raid", "size": 4194304, "pool": "big"}'
        assert_success
        helper volume-create '{"name": "data", "id": "needs:raid", "size": 4194304, "pool": "big"}'
        is "$status" 1
        is "$(grep -E '^dm_(raid|mirror|thin_pool|snapshot|cache) ' /proc/modules)" ''
}
