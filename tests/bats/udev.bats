#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes where udev is, as on all nodes but containers: it makes the names in /dev, looks into each device that comes, and has lvm activate
# the volumes of a group whose disks have come.
#
# Needs a kernel with the device mapper, and udev, which the tests start: scripts/guest-run has both.
# bats file_tags=kernel,lvm

load helpers
load driver_helpers
load volume_helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        [[ -x /lib/systemd/systemd-udevd && ! -e /run/udev/control ]] || return 0
        /lib/systemd/systemd-udevd --daemon 3>&- 4>&-
        udevadm trigger
        udevadm settle
        touch "$BATS_FILE_TMPDIR/begun"
}

teardown_file() {
        if [[ -e $BATS_FILE_TMPDIR/begun ]]; then
                udevadm control --exit
                rm -rf /run/udev
        fi
        schema_validate
}

setup() {
        DRIVER=''
        [[ -e $BATS_FILE_TMPDIR/begun ]] || skip "udev is not installed, or runs already"
        modprobe --quiet dm_mod 2>/dev/null || :
        has_device_mapper || skip "this kernel has no device mapper, or this machine no lvm"
        bed_setup
        needs volume-create volume-delete
        driver_setup flexgraft~flexgraft
        GROUP=fg${RUN_ID}_$BATS_TEST_NUMBER
        disks=()
        loop_disks 3 68M
        lvm vgcreate --yes --quiet "$GROUP" "${disks[@]}" >/dev/null 3>&- 4>&-
        udevadm settle
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\"}" >"$FLEXGRAFT_POOLS/big.json"
}

teardown() {
        [[ -z $DRIVER ]] || udevadm settle
        group_teardown
}

active() {
        udevadm settle
        dmsetup ls | grep "^$GROUP" | cut -f1 | sort | xargs
}

# disks_come: the group's, as when the machine boots. Of a loop device 69-lvm.rules takes the first change for that, and notes that in its database.
disks_come() {
        local disk
        udevadm settle # else what comes of earlier events may be all that happens
        rm -f /run/lvm/{pvs_online,vgs_online,pvs_lookup}/*
        for disk in "${disks[@]}"; do
                rm "/run/udev/data/b$(stat -c %Hr:%Lr "$disk")"
                udevadm trigger --action=change "/sys/block/${disk#/dev/}"
        done
        udevadm settle
}

@test "where udev is, the device of a logical volume has the volume's name, and goes when it is detached" {
        created '{"name": "data", "size": "8m", "pool": "big"}'
        lifecycle_up data pool=big
        is "${DEVICES[data]}" "/dev/mapper/$GROUP-data"
        [[ -L ${DEVICES[data]} ]]
        is "$(findmnt --noheadings --output SOURCE "$(pod_dir data)")" "${DEVICES[data]}"
        lifecycle_down data
        is "$(active)" ''
        removed '{"name": "data"}'
}

@test "disks that come activate no volume, and make no snapshot fail" {
        created '{"name": "data", "size": "8m", "pool": "big", "fsType": "ext4"}'
        created '{"name": "mirrored", "size": "8m", "pool": "big", "parameters": {"type": "raid1"}}'
        lvm lvcreate --yes --quiet --activate n --zero n --name other --size 4m "$GROUP" >/dev/null 3>&- 4>&-
        disks_come
        is "$(active)" "$GROUP-other"
        lifecycle_up data pool=big
        disks_come
        helper volume-snapshot '{"name": "data", "snapshot": "monday"}'
        assert_success
        lifecycle_down data
        is "$(active)" "$GROUP-other"
}

@test "where udev is, a logical volume of others is attached as a device, and given to a container raw" {
        lvm lvcreate --yes --quiet --name other --size 8m "$GROUP" >/dev/null 3>&- 4>&-
        udevadm settle
        lifecycle_up disk type=block "source=/dev/$GROUP/other"
        is "${DEVICES[disk]}" "/dev/mapper/$GROUP-other"
        lifecycle_down disk
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"/dev/$GROUP/other\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        in_container sh -c 'echo text >/disk'
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(head -c 4 "/dev/$GROUP/other")" text
}

@test "images are attached and given back while udev looks at each of their devices" {
        local i
        for i in 1 2 3; do
                lifecycle_up "image$i" type=loop size=8Mi
                lifecycle_down "image$i"
        done
        assert_nothing_left
}
