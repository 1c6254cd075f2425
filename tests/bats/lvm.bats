#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes from a volume group: made, measured, erased; attached and mounted by the driver; injected into a container.
#
# A kernel without the device mapper skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,lvm

load helpers
load driver_helpers
load lvm_helpers
bats_require_minimum_version 1.5.0

EXTENT=$((4 << 20))

setup() {
        DRIVER=''
        modprobe --quiet dm_mod 2>/dev/null || : # the programs have the kernel load the others (lvm_modules.bats)
        has_device_mapper || skip "this kernel has no device mapper, or this machine no lvm"
        bed_setup
        needs volume-create volume-delete volume-list volume-capacity
        driver_setup flexgraft~lvm
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        group_make 3 68M
}

teardown() {
        group_teardown
}

volumes() {
        lvm_volumes "$GROUP"
}

create() { # NAME SIZE [MEMBERS]
        helper volume-create "{\"name\": \"$1\", \"size\": $2, \"pool\": \"big\"${3:+, $3}}"
}

delete() { # NAME [MEMBERS]
        helper volume-delete "{\"name\": \"$1\"${2:+, $2}}"
}

# capacity FIELD [PROFILE]: of the pool, or of a profile in it.
capacity() {
        helper volume-capacity '{"pool": "big"}' && assert_success || return 1
        if [[ $# -gt 1 ]]; then
                jq -r --arg profile "$2" ".pools[0].profiles[] | select(.profile == \$profile) | .$1" <<<"$json"
        else
                jq -r ".pools[0].$1" <<<"$json"
        fi
}

profile() { # NAME PARAMETERS
        echo "{\"profile_matrix\": {\"$1\": {\"csi_plugin_type_selector\": {\"plugin_type\": \"org.flexgraft.lvm\"},
                \"volume_capabilities\": {\"mount\": {\"fs_type\": \"ext4\"}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}},
                \"create_parameters\": $2}}}" >"$FLEXGRAFT_PROFILES"
}

# runs_of_lvm PROGRAM REQUEST: how often it runs lvm, which has an environment of ours; what lvm runs, as thin_check, has another.
runs_of_lvm() {
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/$1" "$2"
        assert_success >&2 || return 1
        awk '$3 == "execve" && environment == "" { environment = $6 } $3 == "execve" && $6 == environment { runs++ } END { print runs + 0 }' \
                "$BATS_TEST_TMPDIR/calls"
}

@test "lvm is run three times to make a linear, raid1 or striped volume, and once to measure a group" {
        local one
        one=$(runs_of_lvm volume-capacity '{"pool": "big"}')
        is "$one" $(($(runs_of_lvm volume-capacity '{"pool": "default"}') + 1))
        is "$(runs_of_lvm volume-create "{\"name\": \"data\", \"size\": $EXTENT, \"pool\": \"big\"}")" $((one + 2))
        is "$(runs_of_lvm volume-create "{\"name\": \"mirrored\", \"size\": $EXTENT, \"pool\": \"big\", \"parameters\": {\"type\": \"raid1\"}}")" $((one + 2))
        is "$(jq -r .identity "$STATE_DIR/provisioned/mirrored.json")" "$(lvm_uuid "$GROUP/mirrored")"
        is "$(runs_of_lvm volume-create "{\"name\": \"striped\", \"size\": $EXTENT, \"pool\": \"big\", \"parameters\": {\"type\": \"striped\", \"stripes\": \"2\"}}")" $((one + 2))
}

@test "lvm is run three times to make a mirror, a raid5 or a thin volume, and once if it is there already" {
        local type parameters request
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        for parameters in '{"type": "mirror"}' '{"type": "raid5", "stripes": "2"}' '{"type": "thin", "thinpool": "tp"}'; do
                type=$(jq -r .type <<<"$parameters")
                request="{\"name\": \"$type\", \"size\": $EXTENT, \"pool\": \"big\", \"parameters\": $parameters}"
                is "$(runs_of_lvm volume-create "$request")" 3 "$type"
                is "$(runs_of_lvm volume-create "$request")" 1 "$type, again"
        done
}

# lvm_uuid GROUP/VOLUME
lvm_uuid() {
        quietly lvs --noheadings --options lv_uuid "$1"
        grep -oE '[A-Za-z0-9]{6}(-[A-Za-z0-9]{4}){5}-[A-Za-z0-9]{6}' "$BATS_TEST_TMPDIR/lvm.log"
}

@test "a volume in several segments counts once" {
        local before
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\", \"maxPercent\": 80}" >"$FLEXGRAFT_POOLS/big.json"
        create first $EXTENT
        assert_success
        create second $EXTENT
        assert_success
        before=$(capacity available)
        quietly lvextend --size $((2 * EXTENT))b "$GROUP/first"
        is "$(capacity available)" $((before - EXTENT))
}

@test "a volume is made, attached, mounted by a pod, given back, and the room is what it was" {
        local before dir
        before=$(capacity available)
        create data 10000000
        assert_success
        assert_field .volume.size $((3 * EXTENT))
        assert_field .volume.path "/dev/$GROUP/data"
        is "$(capacity available)" $((before - 3 * EXTENT))
        kubelet_attach data
        is "${DEVICES[data]}" "/dev/mapper/$GROUP-data"
        kubelet_stage data
        kubelet_publish data
        dir=$(pod_dir data)
        echo hello >"$dir/file"
        is "$(findmnt --noheadings --output FSTYPE "$dir")" ext4
        delete data
        assert_failure EBUSY
        kubelet_unpublish data
        kubelet_unstage data
        delete data
        assert_failure EBUSY            # it is attached still
        kubelet_detach data
        [[ ! -e /dev/mapper/$GROUP-data ]]
        delete data
        assert_success
        is "$(volumes)" ''
        is "$(capacity available)" "$before"
}

@test "each type of volume is laid out as asked, and its size rounded up to whole stripes" {
        create linear 1
        assert_success
        assert_field .volume.size "$EXTENT"
        create striped $((EXTENT + 1)) '"parameters": {"type": "striped", "stripes": "3", "stripesize": "16k"}'
        assert_success
        assert_field .volume.size $((3 * EXTENT))
        create mirror "$EXTENT" '"parameters": {"type": "mirror"}'
        assert_success
        create raid1 "$EXTENT" '"parameters": {"type": "raid1", "mirrors": "2"}'
        assert_success
        create raid5 $((3 * EXTENT)) '"parameters": {"type": "raid5"}'
        assert_success
        assert_field .volume.size $((4 * EXTENT))
        is "$(volumes)" $'linear linear\nmirror mirror\nraid1 raid1\nraid5 raid5\nstriped striped'
        is "$(dmsetup ls | grep -c "^$GROUP")" 0 "active volumes"
}

@test "the machine activates no volume by itself, as when it boots or a disk comes" {
        create data "$EXTENT"
        assert_success
        quietly lvcreate --name other --size 4m "$GROUP"
        quietly vgchange --activate n "$GROUP"
        quietly vgchange --activate ay "$GROUP"
        is "$(dmsetup ls | grep "^$GROUP" | cut -f1)" "$GROUP-other"
        kubelet_attach data
        [[ -e /dev/mapper/$GROUP-data ]]
        kubelet_detach data
}

@test "the machine activates no thin volume and no copy of one by itself" {
        quietly lvcreate --type thin-pool --name pool --size 16m "$GROUP"
        create data "$EXTENT" '"parameters": {"type": "thin", "thinpool": "pool"}'
        assert_success
        helper volume-create '{"name": "copy", "from": "data"}'
        assert_success
        quietly vgchange --activate n "$GROUP"
        quietly vgchange --activate ay "$GROUP"
        [[ ! -e /dev/mapper/$GROUP-data && ! -e /dev/mapper/$GROUP-copy ]]
        kubelet_attach copy
        kubelet_detach copy
}

@test "an lvm that cannot keep volumes from being activated makes them, too" {
        local lvm before
        lvm=$(realpath "$(type -P lvm)")
        cp "$lvm" "$BATS_TEST_TMPDIR/lvm"
        before=$(volumes)
        # as lvm 2.03.11 refuses the option
        printf '#!/bin/sh\ncase "$*" in *--setautoactivation*) echo "lvchange: unrecognized option '\''--setautoactivation'\''" >&2; exit 3 ;; esac\nexec %s "$@"\n' \
                "$BATS_TEST_TMPDIR/lvm" >"$BATS_TEST_TMPDIR/older"
        chmod 0755 "$BATS_TEST_TMPDIR/older"
        HELPER_PREFIX=(unshare --mount sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$BATS_TEST_TMPDIR/older" "$lvm")
        create data "$EXTENT"
        HELPER_PREFIX=()
        assert_success
        is "$before$(volumes)" "data linear"
}

# end_dmeventd: prints its pid, if it runs, and ends it.
end_dmeventd() {
        local pid
        for pid in $(pgrep --exact dmeventd); do
                echo "$pid"
                kill -KILL "$pid"
        done
}

@test "dmeventd monitors no volume, unless an administrator turns it on" {
        local monitored=(lvm lvchange --yes --quiet --config 'devices{use_devicesfile=0 obtain_device_list_from_udev=0}
                activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=1}' --monitor)
        [[ -n $(type -P dmeventd) ]] || skip "dmeventd is not installed"
        create data "$EXTENT" '"parameters": {"type": "raid1"}'
        assert_success
        kubelet_attach data
        is "$(end_dmeventd)" ''
        "${monitored[@]}" y "$GROUP/data" 3>&-
        [[ -n $(end_dmeventd) ]]        # the machine has it do that
        kubelet_detach data
        delete data
        assert_success
}

# bats test_tags=kernel_too
@test "parameters that lvm would not take are refused by name" {
        local parameters
        for parameters in '{"type": "cache"}' '{"stripes": "2"}' '{"type": "striped", "stripes": "0"}' '{"type": "raid1", "mirrors": "-1"}' \
                '{"type": "raid5", "stripes": "1"}' '{"type": "raid6", "stripes": "2"}' '{"type": "raid10", "stripes": "1"}' '{"type": "thin"}' '{"type": "thin", "thinpool": "../x"}' '{"type": "linear", "thinpool": "x"}' '{"wipe": "no"}'; do
                create data "$EXTENT" "\"parameters\": $parameters"
                assert_failure EINVAL
        done
        is "$(volumes)" ''
}

# bats test_tags=kernel_too
@test "the largest volume that is told can be made, and one of an extent more cannot" {
        local largest
        quietly lvcreate --size 20M --name others "$GROUP" "${disks[0]}"
        profile two '{"type": "striped", "stripes": "3"}'
        largest=$(capacity largest two)
        is "$largest" $((3 * 11 * EXTENT))
        helper volume-create "{\"name\": \"data\", \"size\": $((largest + 1)), \"profile\": \"two\"}"
        assert_failure ENOSPC "$largest"
        helper volume-create "{\"name\": \"data\", \"size\": $largest, \"profile\": \"two\"}"
        assert_success
        assert_field .volume.fsType ext4
        is "$(capacity largest two)" 0
        delete data
        assert_success
        largest=$(capacity largest)
        create data "$largest"
        assert_success
        is "$(capacity available)" 0
}

@test "a profile of raid1 halves the capacity, and none goes above its share" {
        profile safe '{"type": "raid1"}'
        is "$(capacity total)" $((48 * EXTENT))
        is "$(capacity available safe)" $((24 * EXTENT))
        is "$(capacity largest safe)" $((15 * EXTENT))
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\", \"maxPercent\": 50}" >"$FLEXGRAFT_POOLS/big.json"
        is "$(capacity total)" $((24 * EXTENT))
        is "$(capacity available safe)" $((12 * EXTENT))
        create data $((23 * EXTENT))
        assert_success
        create more $((2 * EXTENT))
        assert_failure ENOSPC
}

@test "thin volumes together never get more than their thin pool has" {
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        create one $((6 * EXTENT)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        assert_success
        create two $((5 * EXTENT)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        assert_failure ENOSPC $((4 * EXTENT))
        create two $((4 * EXTENT)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        assert_success
        is "$(volumes)" $'one thin\ntp thin-pool\ntwo thin'
        kubelet_attach one
        kubelet_stage one
        kubelet_unstage one
        kubelet_detach one
        delete one
        assert_success
        is "$(volumes)" $'tp thin-pool\ntwo thin'
}

@test "thin volumes and others together take no more than their pool's share" {
        local thin='{"type": "thin", "thinpool": "tp"}'
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\", \"maxPercent\": 25}" >"$FLEXGRAFT_POOLS/big.json"
        profile thin "$thin"
        quietly lvcreate --type thin-pool --size 80M --name tp "$GROUP"
        is "$(capacity available thin)" $((12 * EXTENT))
        create one $((10 * EXTENT)) "\"parameters\": $thin"
        assert_success
        is "$(capacity largest thin)" $((2 * EXTENT))
        is "$(capacity largest)" $((2 * EXTENT))
        create two $((3 * EXTENT)) "\"parameters\": $thin"
        assert_failure ENOSPC
        create two $((2 * EXTENT)) "\"parameters\": $thin"
        assert_success
        is "$(capacity available)" 0
}

@test "what was on a volume is erased when it is deleted, and a signature that was left is wiped when one is made" {
        create data $((2 * EXTENT))
        assert_success
        quietly lvchange --activate y "$GROUP/data"
        yes secret | dd of="/dev/$GROUP/data" bs=1M count=8 iflag=fullblock conv=fsync status=none
        quietly lvchange --activate n "$GROUP/data"
        delete data
        assert_success
        is "$(grep -c secret "$BATS_TEST_TMPDIR"/disk.{0,1,2} | grep -cv ':0$')" 0 "disks with it"
        create data $((2 * EXTENT)) '"eraseAfter": false'
        assert_success
        quietly lvchange --activate y "$GROUP/data"
        mkfs.ext4 -q "/dev/$GROUP/data"
        quietly lvchange --activate n "$GROUP/data"
        delete data
        assert_success
        create data $((2 * EXTENT))
        assert_success
        quietly lvchange --activate y "$GROUP/data"
        is "$(blkid -p -o value -s TYPE "/dev/$GROUP/data" || :)" '' "signature"
}

@test "a volume whose device has no name in /dev is not taken for deleted" {
        create data $((2 * EXTENT))
        assert_success
        quietly lvchange --activate y "$GROUP/data"
        rm "/dev/$GROUP/data"
        delete data
        assert_failure EAGAIN
        is "$(volumes)" 'data linear'
        delete data
        assert_success
        is "$(volumes)" ''
}

@test "a thin pool is no volume: it is neither adopted nor deleted as one" {
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        helper volume-create '{"name": "data", "pool": "big", "id": "tp"}'
        assert_failure ENOENT
        is "$(volumes)" 'tp thin-pool'
}

@test "a thin pool that has the name of a volume that was removed by hand stays when the volume is deleted" {
        create data "$EXTENT" '"eraseAfter": false'
        assert_success
        quietly lvremove "$GROUP/data"
        quietly lvcreate --type thin-pool --size 40M --name data "$GROUP"
        quietly lvcreate --type thin --virtualsize 8M --thinpool data --name inside "$GROUP"
        quietly lvchange --activate n "$GROUP/inside"
        delete data
        assert_success
        is "$(volumes)" $'data thin-pool\ninside thin'
        # as after a volume-create that was killed before it had looked whether lvm takes the name
        create other "$EXTENT" '"eraseAfter": false'
        assert_success
        jq -c '.stage = "creating" | .name = "data" | .id = "data" | del(.identity)' "$STATE_DIR/provisioned/other.json" >"$STATE_DIR/provisioned/data.json"
        helper volume-reconcile '{}'
        is "$(volumes)" $'data thin-pool\ninside thin\nother linear'
}

@test "a thin volume that others made is adopted with its thin pool, which limits it" {
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        quietly lvcreate --type thin --virtualsize 8M --thinpool tp --name old "$GROUP"
        quietly lvchange --activate n "$GROUP/old"
        helper volume-create '{"name": "data", "pool": "big", "id": "old"}'
        assert_success
        assert_field '.volume.parameters.thinpool' tp
        helper volume-create '{"name": "data", "pool": "big", "id": "old"}'
        assert_success
        assert_field .existed true
        helper volume-expand "{\"name\": \"data\", \"size\": $((11 * EXTENT))}"
        assert_failure ENOSPC $((10 * EXTENT))
        quietly lvcreate --extents 100%FREE --name rest "$GROUP"
        helper volume-expand "{\"name\": \"data\", \"size\": $((4 * EXTENT))}"
        assert_success
        is "$(capacity available)" 0
}

@test "a volume that others' thin volumes have as their origin is not deleted, since they would be lost with it" {
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        create data "$EXTENT" '"eraseAfter": false'
        assert_success
        quietly lvchange --permission r "$GROUP/data"
        quietly lvcreate --snapshot --thinpool tp --name clone "$GROUP/data"
        quietly lvchange --activate n "$GROUP/clone"
        delete data
        assert_failure EBUSY clone
        is "$(volumes)" $'clone thin\ndata linear\ntp thin-pool'
}

@test "a raid5 volume takes one extent more than its data and its parity on each of its disks" {
        create data $((16 * EXTENT)) '"parameters": {"type": "raid5", "stripes": "2"}'
        assert_success
        is "$(capacity available)" $(((48 - 3 * 9) * EXTENT))
}

# disks_with WORD: how many of the group's have it.
disks_with() {
        sync
        grep -c "$1" "$BATS_TEST_TMPDIR"/disk.{0,1,2} | grep -cv ':0$'
}

# ephemeral WORD [OPTION]...: the life of an ephemeral volume in which a pod writes that word.
ephemeral() {
        local dir
        dir=$(pod_dir scratch)
        make_dir "$dir"
        call mount "$dir" "$(spec scratch ephemeral=true pool=big size=16Mi "${@:2}")"
        assert_success || return 1
        yes "$1" | dd of="$dir/file" bs=1M count=4 iflag=fullblock conv=fsync status=none
        call unmount "$dir"
        assert_success && is "$(volumes)" ''
}

@test "what a pod wrote to an ephemeral volume is erased with it, unless eraseAfter is false in its options or its profile" {
        install_driver flexgraft~flexgraft
        ephemeral secret
        is "$(disks_with secret)" 0
        ephemeral open eraseAfter=false
        is "$(disks_with open)" 1
        profile keeps '{"eraseAfter": "false"}'
        ephemeral profiled profile=keeps
        is "$(disks_with profiled)" 1
        ephemeral hidden profile=keeps eraseAfter=true
        is "$(disks_with hidden)" 0
}

@test "a volume whose profile says not to erase it is not, unless volume-create says so" {
        profile keeps '{"eraseAfter": "false"}'
        local word
        for word in open secret; do
                create data $((2 * EXTENT)) "\"profile\": \"keeps\"$([[ $word == open ]] || echo ', "eraseAfter": true')"
                assert_success
                quietly lvchange --activate y "$GROUP/data"
                yes "$word" | dd of="/dev/$GROUP/data" bs=1M count=8 iflag=fullblock conv=fsync status=none
                quietly lvchange --activate n "$GROUP/data"
                delete data
                assert_success
                is "$(disks_with "$word")" "$([[ $word == open ]] && echo 1 || echo 0)"
        done
}

@test "volume-delete tells how many bytes of a volume it has erased" {
        local size=$((2 * EXTENT)) line
        create data "$size"
        assert_success
        helper volume-delete --progress=json '{"name": "data"}'
        [[ $output == *'"Success"'* ]]
        for line in 0 "$size"; do
                printf '{"progress":{"program":"volume-delete","step":"erase","subject":"/dev/mapper/%s-data","doneBytes":%s,"totalBytes":%s}}\n' \
                        "$GROUP" "$line" "$size"
        done >"$BATS_TEST_TMPDIR/expected"
        is "$stderr" "$(<"$BATS_TEST_TMPDIR/expected")"$'\n'
}

@test "volume-delete that is interrupted while it erases hands the volume out to no other call, and the same request again ends it" {
        local before
        before=$(capacity available)
        create data "$EXTENT"
        assert_success
        HELPER_PREFIX=(env --default-signal=INT) # whoever runs the tests may ignore it
        # BLKGETSIZE64, after which it begins
        at_syscall --own --at ioctl --where 2=0x80081272 --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        HELPER_PREFIX=()
        is "$AT_REACHED" 1
        assert_failure ECANCELED
        [[ $output == *'interrupted (SIGINT)'* ]]
        helper volume-list '{"pool": "big"}'
        assert_success
        assert_field '.volumes[0] | .state + " " + .health' "deleting unfinished"
        call attach "$(spec data type=lvm pool=big)" "$NODE"
        assert_refused "half deleted"
        call attach "$(spec other "volumegroup=$GROUP" volumeID=data)" "$NODE"
        assert_refused "half deleted"
        delete data
        assert_success
        is "$(volumes)" ''
        is "$(capacity available)" "$before"
}

@test "volume-reconcile ends the deletion of a large volume in a thin pool that zeroes its blocks: there is nothing to overwrite" {
        local record=$STATE_DIR/provisioned/data.json
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        create data "$EXTENT" '"parameters": {"type": "thin", "thinpool": "tp"}'
        assert_success
        # a killed call leaves it so
        jq -c '.stage = "deleting" | .size = 18253611008' "$record" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$record"
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems | length' 0
        is "$(volumes)" 'tp thin-pool'
        [[ ! -e $record ]]
}

@test "a large volume whose recycling was interrupted is left to volume-delete, whatever its eraseAfter says: it is overwritten" {
        local record=$STATE_DIR/provisioned/data.json
        create data "$EXTENT" '"eraseAfter": false, "reclaimPolicy": "recycle"'
        assert_success
        quietly lvchange --activate y --ignoreactivationskip "$GROUP/data"
        echo a-secret >"/dev/$GROUP/data"
        quietly lvchange --activate n "$GROUP/data"
        # a killed call leaves it so
        jq -c '.stage = "deleting" | .size = 18253611008' "$record" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$record"
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems | length' 1
        [[ -e $record && $(disks_with a-secret) == 1 ]]
        delete data
        assert_success
        is "$(disks_with a-secret)" 0
        is "$(volumes)" 'data linear'
}

@test "a logical volume for a single writer is one container's" {
        local first record=$STATE_DIR/provisioned/data.json
        needs mount-volume mount-remove
        create data $((4 * EXTENT))
        assert_success
        jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$record" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$record"
        start_container plain
        first=$CONTAINER_PID
        helper mount-volume "{\"container\": $first, \"volume\": \"data\", \"target\": \"/data\"}"
        assert_success
        start_container plain 300000
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"data\", \"target\": \"/data\"}"
        assert_failure EBUSY
        helper mount-remove "{\"container\": $first, \"target\": \"/data\"}"
        assert_success
}

@test "room on disks that lvm allocates nothing on is none, and a group with a missing disk makes no volume" {
        local largest
        quietly pvchange -xn "${disks[0]}" "${disks[1]}"
        largest=$(capacity largest)
        create data "$largest"
        assert_success
        delete data
        assert_success
        quietly pvchange -xy "${disks[0]}" "${disks[1]}"
        release_device "${disks[2]}"
        helper volume-capacity '{"pool": "big"}'
        assert_success
        [[ $(json_field .pools[0].problem) == *missing* ]]
        create data "$EXTENT"
        assert_failure ENODEV
        disks[2]=$(loop_over "$BATS_TEST_TMPDIR/disk.2")
        bed_loops+=("${disks[2]}")
        create data "$EXTENT"
        assert_success
        delete data
        assert_success
}

@test "a disk that is named by its UUID is the one that stands on others which show the same, as on the paths of a multipath disk" {
        needs mount-block mount-remove
        make_device ext4
        dmsetup create "fg$RUN_ID" --table "0 $(blockdev --getsz "$DEVICE") linear $DEVICE 0" 3>&-
        dmsetup mknodes "fg$RUN_ID" 3>&-
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"UUID=$(blkid -p -s UUID -o value "$DEVICE")\", \"target\": \"/data\"}"
        assert_success
        [[ $(json_field .mount.origin) == @(/dev/dm-*|/dev/mapper/fg*) ]]
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        dmsetup remove --retry "fg$RUN_ID" 3>&-
}

@test "what others made in the group is never touched, and never a match" {
        quietly lvcreate --size 8M --name others "$GROUP"
        quietly lvchange --activate n "$GROUP/others"
        create others $((2 * EXTENT))
        assert_failure EEXIST
        delete others
        assert_success
        assert_field .existed false
        create data $((2 * EXTENT)) '"match": true'
        assert_success
        assert_field .volume.id data
        is "$(volumes)" $'data linear\nothers linear'
        helper volume-list '{"pool": "big"}'
        assert_field '[.disks[].id] | join(" ")' others
        create mine $((2 * EXTENT)) '"id": "others"'
        assert_success
        assert_field .volume.adopted true
        delete mine
        assert_success
        is "$(volumes)" $'data linear\nothers linear'
}

@test "a node whose lvm.conf has reports written otherwise has volumes as any other" {
        printf 'report {\n\tbinary_values_as_numeric = 1\n\tlist_item_separator = ";"\n}\n' >"$BATS_TEST_TMPDIR/lvmlocal.conf"
        mount --bind "$BATS_TEST_TMPDIR/lvmlocal.conf" /etc/lvm/lvmlocal.conf
        create data $EXTENT
        assert_success
        quietly lvchange --addtag others "$GROUP/data"
        create data $EXTENT
        assert_success
        delete data
        assert_success
        is "$(volumes)" ''
        umount /etc/lvm/lvmlocal.conf
}

# with_lvm_conf LINE COMMAND...: while the node's lvmlocal.conf has that in its section `devices`.
with_lvm_conf() {
        printf 'devices {\n\t%s\n}\n' "$1" >"$BATS_TEST_TMPDIR/lvmlocal.conf"
        mount --bind "$BATS_TEST_TMPDIR/lvmlocal.conf" /etc/lvm/lvmlocal.conf
        "${@:2}"
        umount /etc/lvm/lvmlocal.conf
}

@test "devices that global_filter or filter of the node's lvm.conf reject are in no pool, and others are" {
        local key
        for key in global_filter filter; do
                with_lvm_conf "$key = [ \"r|^/dev/loop|\" ]" create data "$EXTENT"
                assert_failure ENODEV
                with_lvm_conf "$key = [ \"r|^/dev/sd|\" ]" create data "$EXTENT"
                assert_success
                delete data
                assert_success
        done
}

@test "a recycled volume is empty, and the next match" {
        create data $((2 * EXTENT))
        assert_success
        quietly lvchange --activate y "$GROUP/data"
        yes secret | dd of="/dev/$GROUP/data" bs=1M count=8 iflag=fullblock conv=fsync status=none
        quietly lvchange --activate n "$GROUP/data"
        delete data '"reclaimPolicy": "recycle"'
        assert_success
        is "$(volumes)" 'data linear'
        profile safe '{"type": "raid1"}'
        helper volume-create "{\"name\": \"twice\", \"size\": $EXTENT, \"profile\": \"safe\", \"match\": true}"
        assert_success
        assert_field .volume.id twice           # not one that lies elsehow
        delete twice
        assert_success
        create other "$EXTENT" '"match": true'
        assert_success
        assert_field .volume.id data
        assert_field .volume.size $((2 * EXTENT))
        delete other '"reclaimPolicy": "delete"'
        assert_success
        is "$(volumes)" ''
}

@test "options that name a pool and no type mean the logical volume that volume-create made" {
        install_driver flexgraft~flexgraft
        create data 10000000
        assert_success
        kubelet_attach data pool=big
        is "${DEVICES[data]}" "/dev/mapper/$GROUP-data"
        kubelet_detach data
        [[ ! -e /dev/mapper/$GROUP-data ]]
}

@test "pods of two namespaces never meet in a logical volume of one name, not even one after the other" {
        create data 10000000
        assert_success
        is_of_one_namespace data
        only_by_its_name data "volumeID=data" "volumegroup=$GROUP"
        # nor by another pool of that group, nor by its device
        printf '{"name": "twin", "type": "lvm", "volumeGroup": "%s"}\n' "$GROUP" >"$FLEXGRAFT_POOLS/twin.json"
        call attach "$(spec data type=lvm pool=twin)" "$NODE"
        assert_refused "which is had by that name alone"
        quietly lvchange --activate y "$GROUP/data"
        install_driver flexgraft~block
        call attach "$(spec other "source=/dev/$GROUP/data")" "$NODE"
        assert_refused "which is had by that name alone"
        install_driver flexgraft~lvm
        quietly lvchange --activate n "$GROUP/data"
        # what no pod has had by its name is a device of the node
        create more 10000000
        assert_success
        kubelet_attach more volumeID=more "volumegroup=$GROUP"
        kubelet_detach more
}

# reader_of_profile TARGET: a volume "db" for readers, with an ext4 on it, of a profile whose volume_capabilities are for TARGET.
reader_of_profile() {
        printf '{"profile_matrix": {"p": {"csi_plugin_type_selector": {"plugin_type": "lvm"}, "create_parameters": {},
                "volume_capabilities": {%s, "access_mode": {"mode": "SINGLE_NODE_READER_ONLY"}}}}}' "$1" >"$FLEXGRAFT_PROFILES"
        create db 10000000 '"profile": "p"' && assert_success || return 1
        quietly lvchange --activate y "$GROUP/db"
        mkfs.ext4 -q "/dev/mapper/$GROUP-db"
        quietly lvchange --activate n "$GROUP/db"
}

@test "a volume whose options name its own logical volume is used as its profile says all the same" {
        local options
        printf '{"name": "twin", "type": "lvm", "volumeGroup": "%s"}\n' "$GROUP" >"$FLEXGRAFT_POOLS/twin.json"
        for options in "volumegroup=$GROUP" "volumegroup=$GROUP volumeID=db" "pool=big volumeID=db" pool=twin; do
                reader_of_profile '"mount": {"fs_type": "ext4"}'
                # shellcheck disable=SC2086 # several
                lifecycle_up db $options
                assert_node_attributes "$(pod_dir db)" ro
                run ! touch "$(pod_dir db)/file"
                lifecycle_down db
                delete db
                assert_success
        done
        reader_of_profile '"block": {}'
        kubelet_attach db "volumegroup=$GROUP"
        make_dir "$(global_dir db)"
        call mountdevice "$(global_dir db)" "${DEVICES[db]}" "${SPECS[db]}"
        assert_refused "block device"
        kubelet_detach db
}

@test "a volume of Kubernetes' example driver works unchanged" {
        quietly lvcreate --size 16M --name vol1 "$GROUP"
        quietly lvchange --activate n "$GROUP/vol1"
        install_driver kubernetes.io~lvm
        call attach "$(spec pv volumeID=vol1 size=1000m "volumegroup=$GROUP" @fsType=ext4)" "$NODE"
        assert_refused "$GROUP/vol1" 16777216 1048576000
        kubelet_attach pv volumeID=vol1 size=16m "volumegroup=$GROUP" @fsType=ext4
        is "${DEVICES[pv]}" "/dev/mapper/$GROUP-vol1"
        kubelet_stage pv
        kubelet_publish pv
        echo hello >"$(pod_dir pv)/file"
        kubelet_unpublish pv
        kubelet_unstage pv
        kubelet_detach pv
        [[ ! -e /dev/mapper/$GROUP-vol1 ]]
        kubelet_attach pv volumeID=vol1 size=16m "volumegroup=$GROUP"
        kubelet_stage pv
        is "$(cat "$(global_dir pv)/file")" hello
        kubelet_unstage pv
        kubelet_detach pv
}

# bats test_tags=kernel_too
@test "groups and volumes that are not there, or that are no names, are refused" {
        local options
        install_driver kubernetes.io~lvm
        for options in "volumeID=vol1 volumegroup=$GROUP" "volumeID=vol1 volumegroup=nogroup" 'volumeID=../vol1 volumegroup=x' \
                "volumeID=-x volumegroup=$GROUP" 'volumeID=vol1 volumegroup=a/b' 'volumeID=vol1' 'pool=default volumeID=vol1'; do
                # shellcheck disable=SC2086 # the words of the options
                call attach "$(spec pv $options)" "$NODE"
                assert_refused
        done
        is "$(find "$STATE_DIR/volumes" -name '*.json' 2>/dev/null)" '' "records"
}

@test "without its volume group a pool is missing, and without its logical volume a volume is lost" {
        create data $((16 << 20))
        assert_success
        lifecycle_up data type=lvm
        lifecycle_down data
        # what blanks it may not be formatted over
        quietly lvchange -ay "$GROUP/data"
        blkdiscard --zeroout "/dev/$GROUP/data"
        quietly lvchange -an "$GROUP/data"
        kubelet_attach data type=lvm
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused lost blank
        kubelet_detach data
        quietly vgrename "$GROUP" "away$GROUP"
        call attach "$(spec data type=lvm)" "$NODE"
        assert_refused "there is no volume group" "$GROUP"
        delete data
        assert_failure ENODEV
        create more $((4 << 20))
        assert_failure
        assert_field '.error.hint | contains("vgs")' true
        quietly vgrename "away$GROUP" "$GROUP"
        quietly lvremove --force "$GROUP/data"
        call attach "$(spec data type=lvm)" "$NODE"
        assert_refused lost
        delete data
        assert_success
        create data $((16 << 20))
        assert_success
        assert_field .existed false
}

@test "a logical volume that was made by hand in the place of a volume's is not attached in its name, and stays" {
        create data $((8 << 20))
        assert_success
        quietly lvremove --force "$GROUP/data"
        quietly lvcreate --size 8M --name data "$GROUP"
        call attach "$(spec data type=lvm)" "$NODE"
        assert_refused lost "another one by now"
        delete data
        assert_success
        is "$(lvm_volumes "$GROUP" | grep -c '^data ')" 1
}

@test "a volume grows while it is mounted" {
        create data $((16 << 20))
        assert_success
        kubelet_attach data
        kubelet_stage data
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((30 << 20)) $((16 << 20))
        assert_success
        call expandfs "${SPECS[data]}" "${DEVICES[data]}" "$(global_dir data)" $((30 << 20)) $((16 << 20))
        assert_success
        is "$(blockdev --getsize64 "${DEVICES[data]}")" $((32 << 20))
        (($(stat -f -c '%b * %S' "$(global_dir data)") > 20 << 20))
        kubelet_unstage data
        kubelet_detach data
}

# bats test_tags=kernel_too
@test "a volume grows no further than its pool may, nor than its thin pool" {
        local thin="\"parameters\": {\"type\": \"thin\", \"thinpool\": \"tp\"}"
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\", \"maxPercent\": 25}" >"$FLEXGRAFT_POOLS/big.json"
        create data "$EXTENT"
        assert_success
        kubelet_attach data
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((100 << 20)) "$EXTENT"
        assert_refused room
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((2 * EXTENT)) "$EXTENT"
        assert_success
        kubelet_detach data
        delete data
        assert_success
        quietly lvcreate --type thin-pool --size 40M --name tp "$GROUP"
        create thin $((24 << 20)) "$thin"
        assert_success
        kubelet_attach thin
        call expandvolume "${SPECS[thin]}" "${DEVICES[thin]}" $((1 << 30)) $((24 << 20))
        assert_refused room
        call expandvolume "${SPECS[thin]}" "${DEVICES[thin]}" $((40 << 20)) $((24 << 20))
        assert_success
        kubelet_detach thin
        delete thin
        assert_success
}

# size_of_lv VOLUME
size_of_lv() {
        quietly lvs --noheadings --nosuffix --units b --options lv_size "$GROUP/$1"
        grep -oE '[0-9]{6,}' "$BATS_TEST_TMPDIR/lvm.log"
}

@test "expandvolume grows a logical volume that its options name only where attach may have it" {
        local thief
        thief=$(spec thief "volumegroup=$GROUP" volumeID=data)
        create data "$EXTENT" '"namespace": "one"'
        assert_success
        call attach "$thief" "$NODE"
        assert_refused 'the volume "data"'
        call expandvolume "$thief" "$(global_dir thief)" $((2 * EXTENT)) "$EXTENT"
        assert_refused 'the volume "data"'
        quietly lvcreate --size "${EXTENT}b" --name other "$GROUP"
        write_policy '"devices": ["/dev/none"]'
        call expandvolume "$(spec thief "volumegroup=$GROUP" volumeID=other)" "$(global_dir thief)" $((2 * EXTENT)) "$EXTENT"
        assert_refused other devices
        is "$(size_of_lv data) $(size_of_lv other)" "$EXTENT $EXTENT"
        rm "$FLEXGRAFT_POLICY"
        call expandvolume "$(spec thief "volumegroup=$GROUP" volumeID=other)" "$(global_dir thief)" $((2 * EXTENT)) "$EXTENT"
        assert_success
        is "$(size_of_lv data) $(size_of_lv other)" "$EXTENT $((2 * EXTENT))"
        delete data
        assert_success
}

@test "volume-expand is refused while another logical volume is attached under the volume's name" {
        needs volume-expand
        create data "$EXTENT"
        assert_success
        quietly lvcreate --size "${EXTENT}b" --name other "$GROUP"
        kubelet_attach data "volumegroup=$GROUP" volumeID=other
        helper volume-expand "{\"name\": \"data\", \"size\": $((2 * EXTENT))}"
        assert_failure EBUSY
        is "$(size_of_lv data) $(size_of_lv other)" "$EXTENT $EXTENT"
        kubelet_detach data
        delete data
        assert_success
}

@test "a disk is adopted with a profile only where it lies as that asks for" {
        quietly lvcreate --size 8M --name plain "$GROUP"
        quietly lvcreate --type raid1 --mirrors 1 --size 8M --name two "$GROUP"
        quietly lvchange --activate n "$GROUP/plain" "$GROUP/two"
        profile safe '{"type": "raid1"}'
        helper volume-create '{"name": "data", "id": "plain", "profile": "safe"}'
        assert_failure EINVAL linear
        profile safer '{"type": "raid1", "mirrors": "2"}'
        helper volume-create '{"name": "data", "id": "two", "profile": "safer"}'
        assert_failure EINVAL
        profile safe '{"type": "raid1"}'
        helper volume-create '{"name": "data", "id": "two", "profile": "safe"}'
        assert_success
        assert_field .volume.adopted true
}

@test "a volume is injected into a running container by mount-block" {
        create data $((16 << 20))
        assert_success
        kubelet_attach data
        kubelet_stage data
        kubelet_unstage data
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/data\"}"
        assert_success
        in_container sh -c 'echo hello >/data/file; chown 1000 /data/file'
        is "$(in_container stat -c %u /data/file)" 1000
        delete data
        assert_failure EBUSY
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        kubelet_detach data
        delete data
        assert_success
}

@test "a logical volume whose raw device a container has is in use: it is not detached, staged, deleted or recycled" {
        create data 10000000
        assert_success
        kubelet_attach data
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        call detach data "$NODE"
        assert_refused "in use by container" "pid $CONTAINER_PID" /disk
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "$(spec data)"
        assert_refused "in use by container" /disk
        delete data
        assert_failure EBUSY
        delete data '"reclaimPolicy": "recycle"'
        assert_failure EBUSY
        [[ -e /dev/mapper/$GROUP-data ]]
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        kubelet_detach data
        delete data
        assert_success
}

@test "a logical volume is detached as soon as a process closes its device that only looks at it" {
        create data 10000000
        assert_success
        kubelet_attach data
        background_ready sh -c 'exec 9<"$0"; echo ready; exec sleep 1000' "${DEVICES[data]}"
        at_syscall --at ppoll --where 1=0 --where 2=0 --run "kill -KILL $BACKGROUND_PID" "${DRIVER%/*}/verbs/detach" data "$NODE"
        is "$AT_REACHED" 1
        [[ $output == *'"Success"'* && ! -e /dev/mapper/$GROUP-data ]]
        delete data
        assert_success
}

@test "a logical volume is not detached while a process has its device open" {
        create data 10000000
        assert_success
        kubelet_attach data
        background_ready sh -c 'exec 9<"$0"; echo ready; exec sleep 1000' "${DEVICES[data]}"
        call detach data "$NODE"
        assert_refused "still in use"
        end_process "$BACKGROUND_PID"
        kubelet_detach data
        delete data
        assert_success
}

@test "options that name another volume or group than the attached one are refused, and both are named" {
        quietly lvcreate --size 16M --name vol1 "$GROUP"
        quietly lvcreate --size 16M --name vol2 "$GROUP"
        quietly lvchange --activate n "$GROUP"
        kubelet_attach pv volumeID=vol1 "volumegroup=$GROUP"
        call attach "$(spec pv volumeID=vol2 "volumegroup=$GROUP")" "$NODE"
        assert_refused "$GROUP/vol1" "$GROUP/vol2"
        call attach "$(spec pv volumeID=vol1 volumegroup=elsewhere)" "$NODE"
        assert_refused "$GROUP/vol1" elsewhere/vol1
        make_dir "$(global_dir pv)"
        call mountdevice "$(global_dir pv)" "${DEVICES[pv]}" "$(spec pv volumeID=vol2 "volumegroup=$GROUP")"
        assert_refused "$GROUP/vol1" "$GROUP/vol2"
        kubelet_detach pv
}

@test "volume-reconcile puts a volume to sleep that is of before a reboot, and leaves one that is in use" {
        create data $((16 << 20))
        assert_success
        kubelet_attach data
        helper volume-reconcile
        assert_field '.actions | length' 0
        edit_record data '.bootId = "of before"'
        helper volume-reconcile
        assert_success
        [[ ! -e /dev/mapper/$GROUP-data ]]
        is "$(volume_records)" ''
        kubelet_attach data
        kubelet_stage data
        edit_record data '.bootId = "of before"'
        exec {busy}>"$(global_dir data)/busy"
        helper volume-reconcile
        assert_success
        is "$(jq '.problems | length' <<<"$json")" 1
        [[ -e /dev/mapper/$GROUP-data ]]
        exec {busy}>&-
        helper volume-reconcile
        assert_success
        [[ ! -e /dev/mapper/$GROUP-data ]]
        rmdir "$(global_dir data)"
        assert_nothing_left
}

@test "volumes made at a time are all made, and of the last room one gets it" {
        local i made=0 pids=()
        for i in 1 2 3 4; do
                "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"v$i\", \"size\": $((15 * EXTENT)), \"pool\": \"big\"}" >"$BATS_TEST_TMPDIR/reply.$i" 3>&- &
                pids+=($!)
        done
        for i in 1 2 3 4; do
                wait "${pids[i - 1]}" && made=$((made + 1)) || grep -q ENOSPC "$BATS_TEST_TMPDIR/reply.$i"
        done
        is "$made" 3
        is "$(volumes | wc -l)" 3
}

# is_inactive NAME: no device of the volume, and no record that it is attached.
is_inactive() {
        run ! dmsetup info "$GROUP-$1"
        is "$(compgen -G "$STATE_DIR/volumes/*.json" || :)" ""
        is "$(find "$STATE_DIR/named" -mindepth 2 2>/dev/null || :)" ""
}

@test "what a container does to the device of a logical volume reaches neither that nor its group" {
        create disk $EXTENT '"targetType": "block"'
        assert_success
        start_container plain
        cp "$FLEXGRAFT_TOOLS/loop-ioctls" "$CONTAINER_ROOTFS/bin/"
        truncate -s $EXTENT "$CONTAINER_ROOTFS/own"
        chown "$CONTAINER_BASE:$CONTAINER_BASE" "$CONTAINER_ROOTFS/own"
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"disk\", \"raw\": true, \"target\": \"/disk\"}"
        assert_success
        is "$(in_container /bin/loop-ioctls /disk rw window size partitions partition clear set /own change /own)" \
                $'window: done\nsize: '$EXTENT$'\nflag: done\nreread: EACCES\npartition: EACCES\nclear: done\nset: EBUSY\nchange: EINVAL'
        is "$(blockdev --getsize64 "/dev/mapper/$GROUP-disk" 2>/dev/null || dmsetup table "$GROUP-disk" | awk '{ print $2 * 512 }')" $EXTENT "the volume"
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        is_inactive disk
        delete disk
        assert_success
}

# name_as_udev: loop devices have the further names that udev gives to all devices.
name_as_udev() {
        local device
        mkdir -p /dev/block
        for device in /sys/block/loop* /sys/block/dm-*; do
                ln -sfn "/dev/${device##*/}" "/dev/block/$(<"$device/dev")"
        done
}

# works_beside_twin: lvm takes the group of the pool's name for the pool's.
works_beside_twin() {
        create other $EXTENT && assert_success && kubelet_attach other && kubelet_detach other && delete other && assert_success
}

@test "a volume group of the pool's name that a container writes to its raw device keeps no volume from others" {
        local twin holder
        # made while there is no other of its name
        quietly vgremove --force "$GROUP"
        truncate -s $((4 * EXTENT)) "$BATS_TEST_TMPDIR/twin"
        twin=$(losetup --find --show "$BATS_TEST_TMPDIR/twin")
        lvm vgcreate --yes --quiet --config "devices{filter=[\"a|^$twin\$|\",\"r|.*|\"] use_devicesfile=0 obtain_device_list_from_udev=0}" "$GROUP" "$twin" 3>&-
        losetup --detach "$twin"
        quietly vgcreate "$GROUP" "${disks[@]}"
        create disk $((4 * EXTENT)) '"targetType": "block"'
        assert_success
        start_container plain
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"disk\", \"raw\": true, \"target\": \"/disk\"}"
        assert_success
        in_container sh -c 'dd of=/disk bs=1M conv=fsync 2>/dev/null' <"$BATS_TEST_TMPDIR/twin"
        works_beside_twin
        name_as_udev
        works_beside_twin
        printf 'devices {\n\tglobal_filter = [ "a|.*|" ]\n}\n' >"$BATS_TEST_TMPDIR/lvmlocal.conf"
        [[ -e /etc/lvm/lvmlocal.conf ]] || touch /etc/lvm/lvmlocal.conf
        mount --bind "$BATS_TEST_TMPDIR/lvmlocal.conf" /etc/lvm/lvmlocal.conf
        works_beside_twin || { umount /etc/lvm/lvmlocal.conf; return 1; }
        umount /etc/lvm/lvmlocal.conf
        # as kubelet does, to hold what a pod has
        holder=$(losetup --find --show "/dev/loop$((16#$(in_container stat -c %T /disk)))")
        bed_loops+=("$holder")
        works_beside_twin
        losetup --detach "$holder"
        rm -r /dev/block
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        delete disk
        assert_success
        is "$(volumes)" ''
}

@test "a volume is mounted in containers by its name, active until the last mount-remove, and so is the device of a block volume" {
        local first
        create db $((4 * EXTENT))
        assert_success
        create disk $EXTENT '"targetType": "block"'
        assert_success
        start_container plain
        first=$CONTAINER_PID
        helper mount-volume "{\"container\": $first, \"volume\": \"db\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.idMapping idmapped
        in_container sh -c 'echo kept >/data/file'
        start_container plain 300000
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"disk\", \"raw\": true, \"target\": \"/disk\"},
                {\"type\": \"volume\", \"volume\": \"db\", \"target\": \"/data\", \"readOnly\": true}]}"
        assert_success
        is "$(in_container cat /data/file)" kept
        in_container sh -c 'echo raw | dd of=/disk bs=512 conv=sync,fsync 2>/dev/null'
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        run ! dmsetup info "$GROUP-disk"
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        dmsetup info "$GROUP-db"
        helper mount-remove "{\"container\": $first, \"target\": \"/data\"}"
        assert_success
        is_inactive db
        helper mount-volume "{\"container\": $first, \"volume\": \"db\", \"target\": \"/data\"}"
        assert_success
        use_container "$first"
        is "$(in_container cat /data/file)" kept
        helper mount-remove "{\"container\": $first, \"target\": \"/data\"}"
        assert_success
        is_inactive db
        delete db
        assert_success
}

@test "detach names the node's LVM where that has taken what a pod made of a block volume for its own" {
        local loop filter
        helper volume-create '{"name": "disk", "size": "32Mi", "targetType": "block"}'
        assert_success
        install_driver flexgraft~loop
        call attach "$(spec disk type=loop targetType=block)" "$NODE"
        assert_success
        loop=$(jq -r .device <<<"$output")
        filter="devices{filter=[\"a|^$loop\$|\",\"r|.*|\"] use_devicesfile=0 obtain_device_list_from_udev=0} activation{udev_sync=0 udev_rules=0}"
        lvm vgcreate -qqy --config "$filter" "pods-$RUN_ID" "$loop" 3>&-
        lvm lvcreate -qqy --config "$filter" -n one -L 4m "pods-$RUN_ID" 3>&- # active, as udev's rule has it
        call detach disk "$NODE"
        assert_refused "LVM or RAID" vgchange
        lvm vgchange -qq -an --config "$filter" "pods-$RUN_ID" 3>&-
        call detach disk "$NODE"
        assert_success
}

# Volumes one and two, as a killed volume-delete leaves them; by their records each has 9 GiB.
two_half_deleted() {
        local name record
        for name in one two; do
                create "$name" "$EXTENT"
                assert_success
                record=$STATE_DIR/provisioned/$name.json
                jq -c '.stage = "deleting" | .size = 9663676416' "$record" >"$BATS_TEST_TMPDIR/record"
                cp "$BATS_TEST_TMPDIR/record" "$record"
        done
}

@test "volume-reconcile overwrites 16 GiB of all volumes together, and leaves the rest to the next one" {
        two_half_deleted
        helper volume-reconcile '{}'
        assert_field '.problems | length' 1
        is "$(volumes | wc -l)" 1
        helper volume-reconcile '{}'
        is "$(volumes)" ''
}

@test "a thin pool that its group does not have is told as that, and not as no room" {
        local thin='{"type": "thin", "thinpool": "typo"}'
        create data "$EXTENT" "\"parameters\": $thin"
        assert_failure ENODEV
        [[ $(json_field .message) == *"no thin pool"* ]]
        helper volume-capacity "{\"pool\": \"big\", \"parameters\": $thin}"
        [[ $(json_field '.pools[0].problem') == *"no thin pool"* ]]
}

@test "a volume that cannot be deleted takes nothing of what volume-reconcile may overwrite" {
        local name fd
        two_half_deleted
        # the one that is listed first is busy
        name=$(find "$STATE_DIR/provisioned" -name '*.json' -printf '%f\n' | grep -xE '(one|two)\.json' | head -n 1)
        quietly lvchange --activate y "$GROUP/${name%.json}"
        exec {fd}<"/dev/mapper/$GROUP-${name%.json}"
        helper volume-reconcile '{}'
        exec {fd}<&-
        is "$(volumes | wc -l)" 1 # the other is gone
}
