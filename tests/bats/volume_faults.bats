#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What goes wrong with volumes from volume groups and persistent memory: no room, a name for two things, devices that are late, or are none,
# lvm and the programs killed half way, things of others in the way. What was refused leaves nothing, and what others have is untouched.
#
# A kernel without the device mapper skips all of this, a machine without persistent memory some; scripts/guest-run --nvdimm has both.
# bats file_tags=kernel,lvm,pmem

load helpers
load driver_helpers
load volume_helpers
load lvm_helpers
load sweep_helpers
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

# make_volume [NAME [SIZE [MEMBERS]]]: it succeeds; its device in DEVICE.
make_volume() {
        created "{\"name\": \"${1:-data}\", \"size\": ${2:-$UNIT}, \"pool\": \"store\"${3:+, $3}}"
        DEVICE=$(json_field .volume.path)
}

take_volume() {
        removed "{\"name\": \"${1:-data}\"}"
}

# with_device COMMAND...: while the volume "data" of a volume group is active.
with_device() {
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate y "$STORE_GROUP/data"
        "$@"
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate n "$STORE_GROUP/data"
}

# others: something in the store that is somebody else's, with their data; assert_others: it is as it was.
others() {
        case $STORE in
        lvm)
                quietly lvcreate --size 8M --name others "$GROUP"
                OTHERS=/dev/$GROUP/others
                ;;
        *)
                ndctl create-namespace --region region0 --mode fsdax --size "$STORE_ALIGN" --name others >/dev/null 2>&1
                OTHERS=/dev/$(ndctl list --namespaces --region region0 | jq -r 'if type == "array" then .[] else . end | select(.name == "others") | .blockdev')
                ;;
        esac
        yes precious | dd of="$OTHERS" bs=1M count=8 iflag=fullblock conv=fsync status=none
}

assert_others() {
        yes precious | head -c $((8 << 20)) | cmp - <(head -c $((8 << 20)) "$OTHERS")
}

# assert_nothing: neither a record, nor anything in the store but what others made, nor an active device.
assert_nothing() {
        is "$(provisioned)" '' records
        is "$(what_is_there)" "${1:-}" "what is there"
        is "$(mapped | grep -vF -- '-others' || :)" '' "active devices"
}

# ---- room and names

room_runs_out() {
        local before
        store "$1"
        before=$(available store)
        make_volume all "$(largest store)"
        is "$(available store)" 0
        create "{\"name\": \"more\", \"size\": $UNIT, \"pool\": \"store\"}"
        refused ENOSPC "of 0 bytes"
        is "$(what_is_there)" all
        is "$(provisioned)" all.json
        take_volume all
        is "$(available store)" "$before"
}

@test "lvm: a full pool makes no volume, and space that is given back is all available again" {
        room_runs_out lvm
}

@test "persistent memory: a full pool makes no volume, and space that is given back is all available again" {
        room_runs_out direct
}

# bats test_tags=kernel_too
@test "persistent memory, a group: a full pool makes no volume, and space that is given back is all available again" {
        room_runs_out group
}

name_is_taken() {
        local size
        store "$1"
        make_volume data $((2 * UNIT))
        for size in "$UNIT" $((3 * UNIT)); do
                create "{\"name\": \"data\", \"size\": $size, \"pool\": \"store\"}"
                refused EEXIST size $((2 * UNIT))
        done
        created "{\"name\": \"data\", \"size\": $((2 * UNIT)), \"pool\": \"store\"}"
        existed true
        is "$(what_is_there)" data
}

# bats test_tags=kernel_too
@test "lvm: the same name with another size is refused, and the volume stays" {
        name_is_taken lvm
}

# bats test_tags=kernel_too
@test "persistent memory: the same name with another size is refused, and the volume stays" {
        name_is_taken direct
}

same_request() {
        printf '{"name": "data", "size": %s, "pool": "store"}' "$UNIT"
}

made_at_once() {
        store "$1"
        at_once 3 same_request
        is "$(count_replies '.status == "Success"')" 3 "replies of success"
        is "$(count_replies '.existed == false')" 1 "replies of who made it"
        is "$(what_is_there)" data
        take_volume
        assert_nothing
}

@test "lvm: of three creates of one name at once one makes the volume" {
        made_at_once lvm
}

@test "persistent memory: of three creates of one name at once one makes the volume" {
        made_at_once direct
}

@test "persistent memory, a group: of three first creates of one name at once one makes the volume, and one group" {
        made_at_once group
        is "$(namespaces_of region0)" 'flexgraft fsdax'
}

other_request() {
        printf '{"name": "volume%s", "size": %s, "pool": "store"}' "$1" "$UNIT"
}

@test "persistent memory: volumes made at a time are all made" {
        store direct
        at_once 3 other_request
        is "$(count_replies '.status == "Success"')" 3 "replies of success"
        is "$(what_is_there)" "volume0 volume1 volume2"
}

deleted_twice() {
        store "$1"
        make_volume
        take_volume
        existed true
        take_volume
        existed false
        assert_nothing
}

# bats test_tags=kernel_too
@test "persistent memory: to delete twice is no failure" {
        deleted_twice direct
}

# Mounted by somebody who asked nobody.
mounted_meanwhile() {
        local policy
        store "$1"
        make_volume data $((16 << 20))
        mkdir "$BATS_TEST_TMPDIR/mnt"
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate y "$STORE_GROUP/data"
        mkfs.ext4 -q "$DEVICE"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/mnt"
        echo precious >"$BATS_TEST_TMPDIR/mnt/file"
        for policy in delete recycle retain; do
                remove "{\"name\": \"data\", \"reclaimPolicy\": \"$policy\"}"
                refused EBUSY
        done
        umount "$BATS_TEST_TMPDIR/mnt"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/mnt"
        is "$(<"$BATS_TEST_TMPDIR/mnt/file")" precious
        umount "$BATS_TEST_TMPDIR/mnt"
        take_volume
        assert_nothing
}

@test "lvm: a volume that is mounted is not deleted" {
        mounted_meanwhile lvm
}

# bats test_tags=kernel_too
@test "persistent memory: a volume that is mounted is not deleted" {
        mounted_meanwhile direct
}

profile_vanishes() { # KIND TYPE
        store "$1"
        write_profiles "\"it\": {\"csi_plugin_type_selector\": {\"plugin_type\": \"org.flexgraft.$2\"},
                \"volume_capabilities\": {\"mount\": {\"fs_type\": \"ext4\"}, \"access_mode\": {\"mode\": \"SINGLE_NODE_WRITER\"}}}"
        created "{\"name\": \"data\", \"size\": $((16 << 20)), \"profile\": \"it\"}"
        write_profiles ''
        measured
        assert_field '.inactiveProfiles | join(" ")' it
        create "{\"name\": \"more\", \"size\": $UNIT, \"profile\": \"it\"}"
        refused ESTALE it inactive
        lifecycle_up data
        echo hello >"$(pod_dir data)/file"
        lifecycle_down data
        take_volume
        assert_nothing
}

@test "lvm: a volume whose profile vanished is mounted and deleted as before" {
        profile_vanishes lvm lvm
}

# made_and_taken NAME: a volume of any name at all.
made_and_taken() {
        create "$(named "$1" "\"size\": $UNIT, \"pool\": \"store\"")"
        assert_success || { echo "a name of ${#1} characters: $1"; return 1; }
        is "$(json_field .volume.name)" "$1"
        remove "$(named "$1")"
        assert_success
        existed true
}

# bats test_tags=kernel_too
@test "lvm: names of up to 128 bytes are volumes" {
        local length
        store lvm
        for length in 124 128; do
                made_and_taken "$(printf "%${length}s" '' | tr ' ' x)"
        done
        made_and_taken "x$(printf '%100s' '' | tr ' ' -)"
        assert_nothing
}

@test "lvm: names that are none of a logical volume's are volumes, and harm nothing" {
        local name
        store lvm
        others
        for name in 'a ä/../others' '--help' 'x_tdata' "$GROUP/others"; do
                made_and_taken "$name"
        done
        assert_nothing others
        assert_others
}

# ---- device nodes

# late: the node PATH is away, and comes back after a second.
late() {
        hide_node "$1"
        background sh -c "sleep 1; mv '${hidden_nodes[$1]}' '$1'"
        unset "hidden_nodes[$1]"
}

@test "lvm: attach waits for a device node that comes late" {
        store lvm
        make_volume data $((16 << 20))
        quietly lvchange --activate y "$GROUP/data"
        late "/dev/mapper/$GROUP-data"
        kubelet_attach data
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        is "$(mapped)$(volume_records)" ''
}

@test "persistent memory: attach waits for a device node that comes late" {
        store direct
        make_volume data $((16 << 20))
        late "$DEVICE"
        kubelet_attach data
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        is "$(volume_records)" ''
}

@test "persistent memory: volume-delete erases the content of a volume whose device node comes late" {
        store direct
        make_volume
        yes secret | dd of="$DEVICE" bs=1M count=8 iflag=fullblock conv=fsync status=none
        late "$DEVICE"
        remove '{"name": "data"}'
        [[ $status == 0 ]] || { refused ENOENT "$DEVICE"; sleep 1; take_volume; }
        no_secret_in_region
}

# What was written to the only volume of region0 is not read by who gets its room.
no_secret_in_region() {
        local device
        is "$(namespaces_of region0)" ''
        ndctl create-namespace --region region0 --mode fsdax --size "$STORE_ALIGN" --name other >/dev/null 2>&1
        device=/dev/$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .blockdev')
        is "$(grep -c secret "$device" || :)" 0 "blocks with the secret"
}

@test "persistent memory: a device node that never comes is told within the time for it, and nothing is left" {
        store direct
        make_volume
        hide_node "$DEVICE"
        TIMEOUTS='"device": 3' write_config
        not_hung call attach "$(spec data)" "$NODE"
        assert_refused "$DEVICE" "within 3 seconds"
        write_config
        is "$(volume_records)" ''
        show_node "$DEVICE"
        take_volume
        assert_nothing
}

@test "lvm: a device node that never comes is told within the time for it, and nothing is left" {
        store lvm
        make_volume
        quietly lvchange --activate y "$GROUP/data"
        hide_node "$DEVICE"
        hide_node "/dev/mapper/$GROUP-data"
        TIMEOUTS='"device": 3' write_config
        not_hung call attach "$(spec data)" "$NODE"
        assert_refused "$DEVICE" "within 3 seconds"
        write_config
        is "$(volume_records)" ''
        show_node "/dev/mapper/$GROUP-data"
        show_node "$DEVICE"
        take_volume
        assert_nothing
}

# a_disk_of_others: a disk that is in no store, with a filesystem and data; its path in DISK.
a_disk_of_others() {
        make_device ext4
        DISK=$DEVICE DISK_SUM=$(sha256sum <"$DISK")
}

assert_disk() {
        is "$(sha256sum <"$DISK")" "$DISK_SUM" "the disk of others"
}

# in_its_place WHAT: instead of the node DEVICE there is a regular file, or a link to a disk of others.
in_its_place() {
        hide_node "$DEVICE"
        if [[ $1 == file ]]; then
                yes precious | head -c 65536 >"$DEVICE"
        else
                ln -s "$DISK" "$DEVICE"
        fi
}

assert_file() { # [PATH]
        yes precious | head -c 65536 | cmp - "${1:-$DEVICE}"
}

attach_with_file_in_place() {
        store "$1"
        make_volume
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate y "$STORE_GROUP/data"
        in_its_place file
        call attach "$(spec data)" "$NODE"
        assert_refused "$DEVICE" "not a block device"
        is "$(volume_records)" ''
        assert_file
        remove '{"name": "data"}'
        assert_failure
        assert_file
        show_node "$DEVICE"
        take_volume
        assert_nothing
}

# bats test_tags=kernel_too
@test "lvm: a regular file in the place of the device node is not attached, and not erased" {
        attach_with_file_in_place lvm
}

@test "persistent memory: a regular file in the place of the device node is not attached, and not erased" {
        attach_with_file_in_place direct
}

attach_with_link_in_place() {
        store "$1"
        a_disk_of_others
        make_volume data $((16 << 20))
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate y "$STORE_GROUP/data"
        in_its_place link
        call attach "$(spec data)" "$NODE"
        [[ $output != *'"Success"'* ]] || { echo "the disk of others was taken for the volume"; show_last; return 1; }
        assert_refused "$DEVICE"
        is "$(volume_records)" ''
}

# bats test_tags=kernel_too
@test "lvm: a link to another disk in the place of the device node is not attached" {
        attach_with_link_in_place lvm
}

@test "persistent memory: a link to another disk in the place of the device node is not attached" {
        attach_with_link_in_place direct
}

erase_with_link_in_place() {
        store "$1"
        a_disk_of_others
        make_volume data $((16 << 20))
        [[ -z $STORE_GROUP ]] || quietly lvchange --activate y "$STORE_GROUP/data"
        in_its_place link
        remove '{"name": "data"}'
        assert_disk
        [[ $status != 0 ]] || assert_nothing
}

# bats test_tags=kernel_too
@test "lvm: volume-delete does not erase another disk that the device node's place is a link to" {
        erase_with_link_in_place lvm
}

@test "persistent memory: volume-delete does not erase another disk that the device node's place is a link to" {
        erase_with_link_in_place direct
}

@test "lvm: a regular file where the device node is to be is neither written to nor followed by volume-create" {
        store lvm
        mkdir "/dev/$GROUP"
        yes precious | head -c 65536 >"/dev/$GROUP/data"
        create "{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        assert_failure
        assert_file "/dev/$GROUP/data"
        assert_nothing
        rm "/dev/$GROUP/data"
        make_volume
}

# node_to_be: the node of the region's next namespace.
node_to_be() {
        local seed
        seed=$(</sys/bus/nd/devices/region0/namespace_seed)
        seed=/dev/pmem${seed#namespace}
        echo "${seed%.0}"
}

@test "persistent memory: a regular file where the device node is to be is neither written to nor followed by volume-create" {
        local place
        store direct
        place=$(node_to_be)
        yes precious | head -c 65536 >"$place"
        create "{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        assert_file "$place" || { rm "$place"; return 1; }
        rm "$place"
        assert_failure
        assert_nothing
        make_volume
}

@test "persistent memory: another disk that the device node's place is a link to is not wiped by volume-create" {
        local place
        store direct
        a_disk_of_others
        place=$(node_to_be)
        ln -s "$DISK" "$place"
        create "{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        rm "$place"
        assert_disk
        assert_failure
        assert_nothing
}

@test "lvm: an attach that fails leaves the volume as it was, not active" {
        store lvm
        make_volume
        yes precious | head -c 65536 >"/dev/mapper/$GROUP-data"
        call attach "$(spec data)" "$NODE"
        rm -f "/dev/mapper/$GROUP-data"  # lvm takes away what has the node's name
        assert_refused
        is "$(mapped)" '' "active devices"
}

# ---- lvm and its like killed half way

# kill_tools PROGRAM REQUEST: the program is run, and what it runs (lvm, or pmem-namespaces) is killed, each time at another of its calls, or who
# runs that, by turns. Each run ends by itself; the same again succeeds; EFFECT holds then; UNDO goes back.
kill_tools() {
        local swept=$1 request=$2 victim calls number tried=0 recovered=0
        "$MAKE"
        at_syscall --others "$FLEXGRAFT_BIN/$swept" "$request"
        assert_success
        "$UNDO"
        calls=$AT_TOTAL
        for number in $(points_of "$calls"); do
                victim=\$AT_PID
                ((number % 2 == 0)) || victim="\$(awk '{print \$4}' /proc/\$AT_PID/stat)"
                for ((AT_REACHED = 0; AT_REACHED == 0 && number > 0; )); do
                        "$MAKE"
                        at_syscall --timeout 60 --others --at "$number" --run "kill -KILL $victim" "$FLEXGRAFT_BIN/$swept" "$request"
                        [[ $AT_REACHED == 0 ]] || break
                        "$UNDO" || return 1
                        number=$((number / 2))  # a run that waits less makes fewer calls
                done
                [[ $AT_REACHED == 1 ]] || continue
                tried=$((tried + 1))
                if after_kill && again; then
                        recovered=$((recovered + 1))
                else
                        echo "call $number of $calls, $AT_NAME ($swept; kill $victim)"
                        show_last
                fi
                "$UNDO" || return 1
        done
        echo "# $STORE, $swept, what it runs killed: points tried $tried, recovered $recovered (of $calls calls)" >&3
        ((tried > 0 && tried == recovered))
}

# points_of COUNT: some numbers up to COUNT, each of which takes long. The last calls may be less in another run: they are not tried.
points_of() {
        WIDER=$((${FLEXGRAFT_SWEEP_STRIDE:-1} > 1 ? 250 : 1)) sweep_points $(($1 - $1 / 16)) # each takes some ten seconds
}

# What is read only may be done without.
after_kill() {
        if [[ $status == 0 ]]; then
                assert_success
        else
                assert_failure
        fi
}

again() {
        helper "$swept" "$request"
        assert_success && "$EFFECT"
}

one_volume() {
        is "$(what_is_there)" "data${OTHERS:+ others}"
        is "$(provisioned)" data.json
        is "$(mapped | grep -vF -- '-others' || :)" '' "active devices"
}

no_volume() {
        assert_nothing "${OTHERS:+others}"
}

kills_of() { # KIND
        store "$1"
        others
        CREATE="{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        [[ $1 != group ]] || { make_volume && take_volume; OTHERS_KEPT=$OTHERS OTHERS=''; }
        BEFORE=$(available store)
        MAKE=: UNDO=take_volume EFFECT=one_volume kill_tools volume-create "$CREATE"
        MAKE=make_volume UNDO=no_volume EFFECT=no_volume kill_tools volume-delete '{"name": "data"}'
        is "$(available store)" "$BEFORE" "available"
        OTHERS=${OTHERS:-${OTHERS_KEPT:-}}
        assert_others
}

@test "lvm: lvm, or the process that runs it, killed half way is a failure that is told, and the same again succeeds" {
        kills_of lvm
}

@test "persistent memory: the program that makes namespaces, or the process that runs it, killed half way is a failure that is told, and the same again succeeds" {
        kills_of direct
}

@test "lvm: lvm killed half way while a volume is attached is told, and attached again it is mounted" {
        local calls number
        store lvm
        make_volume data $((16 << 20))
        at_syscall --others "$DRIVER" attach "$(spec data)" "$NODE"
        kubelet_detach data
        calls=$AT_TOTAL
        for number in $(points_of "$calls"); do
                at_syscall --timeout 60 --others --at "$number" --run "kill -KILL \$AT_PID" "$DRIVER" attach "$(spec data)" "$NODE"
                [[ $AT_REACHED == 1 ]] || { kubelet_detach data; continue; }
                assert_reply_of_kubelet
                kubelet_attach data
                kubelet_stage data
                kubelet_unstage data
                kubelet_detach data
                is "$(mapped)" '' "active devices, call $number of $calls"
                is "$(volume_records)" ''
        done
}

# A pod that is gone meanwhile: kubelet does not attach again, it detaches.
given_up_at() { # CALL...
        at_syscall --timeout 60 "$@" --kill "$DRIVER" attach "$(spec data)" "$NODE"
        [[ $AT_REACHED == 1 ]] || return 0
        kubelet_detach data
        is "$(volume_records)" ''
        is "$(mapped)" '' "active devices"
}

@test "lvm: an attach that was killed anywhere and given up leaves nothing active after a detach" {
        local calls number
        store lvm
        make_volume data $((16 << 20))
        at_syscall "$DRIVER" attach "$(spec data)" "$NODE"
        kubelet_detach data
        calls=$AT_TOTAL
        for number in $(points_of "$calls"); do
                given_up_at --at "$number" || { echo "call $number of $calls, $AT_NAME"; return 1; }
        done
}

@test "lvm: an attach that was killed when the volume was active, and given up, leaves nothing active after a detach" {
        local type
        store lvm
        for type in mount block; do
                make_volume data $((16 << 20)) "\"targetType\": \"$type\""
                # the record is written before the activation, and again after it
                given_up_at --own --at renameat:2
                is "$AT_REACHED" 1
                removed '{"name": "data"}'
        done
}

# ---- the programs killed

# kill_anywhere PROGRAM REQUEST: some times the program is killed, with all that it runs, each time at another call; the same again
# succeeds; EFFECT holds then; UNDO goes back. What it runs makes fewer calls at one time than at another: of a call that it did not
# come to, half the number is tried.
kill_anywhere() {
        local swept=$1 request=$2 calls number tried=0 recovered=0
        "$MAKE"
        at_syscall "$FLEXGRAFT_BIN/$swept" "$request"
        assert_success
        "$UNDO"
        calls=$AT_TOTAL
        for number in $(points_of "$calls"); do
                while :; do
                        "$MAKE" || return 1
                        at_syscall --timeout 60 --at "$number" --kill "$FLEXGRAFT_BIN/$swept" "$request"
                        [[ $AT_REACHED != 1 ]] || break
                        "$UNDO" || return 1
                        ((number /= 2)) || return 1
                done
                tried=$((tried + 1))
                if again; then
                        recovered=$((recovered + 1))
                else
                        echo "call $number of $calls, $AT_NAME ($swept killed)"
                        show_last
                fi
                "$UNDO" || return 1
        done
        echo "# $STORE, $swept killed: points tried $tried, recovered $recovered (of $calls calls)" >&3
        ((tried > 0 && tried == recovered))
}

killed_anywhere() { # KIND
        store "$1"
        others
        CREATE="{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        [[ $1 != group ]] || { make_volume && take_volume; OTHERS_KEPT=$OTHERS OTHERS=''; }
        BEFORE=$(available store)
        MAKE=: UNDO=take_volume EFFECT=one_volume kill_anywhere volume-create "$CREATE"
        MAKE=make_volume UNDO=no_volume EFFECT=no_volume kill_anywhere volume-delete '{"name": "data"}'
        is "$(available store)" "$BEFORE" "available"
        OTHERS=${OTHERS:-${OTHERS_KEPT:-}}
        assert_others
}

@test "lvm: volume-create and volume-delete killed at any call, and called again" {
        killed_anywhere lvm
}

@test "persistent memory: volume-create and volume-delete killed at any call, and called again" {
        killed_anywhere direct
}

# bats test_tags=kernel_too
@test "persistent memory, a group: volume-create and volume-delete killed at any call, and called again" {
        killed_anywhere group
}

# The group is emptied, and made anew each time.
ungroup() {
        take_volume
        quietly vgremove --force flexgraft-region0
        for_each_namespace_of_ours ndctl destroy-namespace --force >/dev/null 2>&1
}

for_each_namespace_of_ours() {
        local namespace
        for namespace in $(ndctl list --namespaces --region region0 | jq -r 'if type == "array" then .[] else . end | select(.name == "flexgraft") | .dev'); do
                "$@" "$namespace"
        done
}

one_volume_of_one_disk() {
        one_volume && is "$(namespaces_of region0)" 'flexgraft fsdax'
}

# bats test_tags=kernel_too
@test "persistent memory, a group: the first volume-create of a region killed at any call makes one group all the same" {
        local before
        store group
        before=$(available store)
        CREATE="{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        MAKE=: UNDO=ungroup EFFECT=one_volume_of_one_disk kill_anywhere volume-create "$CREATE"
        is "$(available store)" "$before" available
}

@test "lvm: a thin volume's create and delete killed at any call leave its pool and its neighbour as they were" {
        local neighbour
        store lvm
        quietly lvcreate --type thin-pool --size 80M --name tp "$GROUP"
        make_volume neighbour $((16 << 20)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        quietly lvchange --activate y "$GROUP/neighbour"
        neighbour=$DEVICE
        yes precious | dd of="$neighbour" bs=1M count=8 iflag=fullblock conv=fsync status=none
        CREATE="{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\", \"parameters\": {\"type\": \"thin\", \"thinpool\": \"tp\"}}"
        thin_is_there() { is "$(what_is_there)" "data neighbour tp" && neighbour_answers; }
        thin_is_gone() { is "$(what_is_there)" "neighbour tp" && neighbour_answers; }
        make_thin() { created "$CREATE"; }
        # read past the cache, and not from a pool that somebody left suspended
        neighbour_answers() { timeout 10 dd if="$neighbour" bs=1M count=1 iflag=direct status=none | head -c 8 | grep -q precious; }
        MAKE=: UNDO=take_volume EFFECT=thin_is_there kill_anywhere volume-create "$CREATE"
        MAKE=make_thin UNDO=thin_is_gone EFFECT=thin_is_gone kill_anywhere volume-delete '{"name": "data"}'
}

# ---- what others have

# record_only: a volume-create of "data" that was killed after its record was there, and before it made anything else.
record_only() {
        local try
        # a pool that is used for the first time is remembered first, in the same way
        for ((try = 0; try < 2; try++)); do
                [[ -e $STATE_DIR/provisioned/data.json ]] || record_once
        done
        is "$(jq -r .stage "$STATE_DIR/provisioned/data.json")" creating
        is "$(what_is_there)" ''
}

record_once() {
        at_syscall --timeout 60 --own --at fsync:2 --kill "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
}

# made_by_others: somebody else makes something of the name "data", and has data on it.
made_by_others() {
        others_make
        yes precious | dd of="$OTHERS" bs=1M count=4 iflag=fullblock conv=fsync status=none
}

others_make() {
        if [[ -n $STORE_GROUP ]]; then
                quietly lvcreate --size "${UNIT}b" --name data "$STORE_GROUP"
                OTHERS=/dev/$STORE_GROUP/data
        else
                ndctl create-namespace --region region0 --mode fsdax --size "$UNIT" --name data >/dev/null 2>&1
                OTHERS=/dev/$(ndctl list --namespaces --region region0 | jq -r 'if type == "array" then .[] else . end | select(.name == "data") | .blockdev')
        fi
}

assert_their_data() {
        is "$(what_is_there)" data "what is there"
        yes precious | head -c 1048576 | cmp - <(head -c 1048576 "$OTHERS")
}

name_is_lost() { # KIND PROGRAM REQUEST
        store "$1"
        record_only
        made_by_others
        helper "$2" "$3"
        assert_their_data
}

@test "lvm: what others made under the name of a volume whose making was cut short is not removed by volume-delete" {
        name_is_lost lvm volume-delete '{"name": "data"}'
}

# bats test_tags=kernel_too
@test "lvm: what others made under the name of a volume whose making was cut short is not removed by volume-create" {
        name_is_lost lvm volume-create "{\"name\": \"data\", \"size\": $STORE_EXTENT, \"pool\": \"store\"}"
        assert_failure EEXIST
}

@test "persistent memory: what others made under the name of a volume whose making was cut short is not removed by volume-delete" {
        name_is_lost direct volume-delete '{"name": "data"}'
}

# bats test_tags=kernel_too
@test "persistent memory: what others made under the name of a volume whose making was cut short is not removed by volume-create" {
        name_is_lost direct volume-create "{\"name\": \"data\", \"size\": $STORE_ALIGN, \"pool\": \"store\"}"
        assert_failure EEXIST
}

name_is_taken_over() {
        store "$1"
        make_volume
        if [[ -n $STORE_GROUP ]]; then
                quietly lvremove --force "$STORE_GROUP/data"
        else
                ndctl destroy-namespace --force all >/dev/null 2>&1
        fi
        made_by_others
        remove '{"name": "data"}'
        assert_their_data
}

@test "lvm: what others made in the place of a volume that they removed is not erased" {
        name_is_taken_over lvm
}

@test "persistent memory: what others made in the place of a volume that they removed is not erased" {
        name_is_taken_over direct
}

@test "lvm: what others make under the volume's name meanwhile is not removed" {
        local request number count
        store lvm
        request="{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        at_syscall --own --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-create" "$request"
        assert_success
        take_volume
        # before each command of lvm's somebody may be quicker, unless the volume is there already
        count=$(awk '$3 == "execve"' "$BATS_TEST_TMPDIR/calls" | wc -l)
        is "$count" 3
        for ((number = 1; number <= count; number++)); do
                rm -f "$BATS_TEST_TMPDIR/quicker"
                at_syscall --own --at "execve:$number" --run "lvm lvcreate --yes --size 8M --name data --config 'devices{use_devicesfile=0
                        obtain_device_list_from_udev=0} activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0}' $GROUP &&
                        touch '$BATS_TEST_TMPDIR/quicker'" "$FLEXGRAFT_BIN/volume-create" "$request"
                if [[ -e $BATS_TEST_TMPDIR/quicker ]]; then
                        [[ $(what_is_there) == data ]] || { echo "before command $number of $count"; show_last; return 1; }
                        assert_failure
                        is "$(provisioned)" ''
                        quietly lvremove --force "$GROUP/data"
                else
                        assert_success
                        take_volume
                fi
        done
}

@test "persistent memory: a namespace that others make at that moment is not destroyed" {
        local number
        store direct
        # the first things that are written of the new one are its uuid and its name
        ndctl create-namespace --region region0 --mode fsdax --size "$STORE_ALIGN" --name first >/dev/null 2>&1
        for number in 1 2; do
                at_syscall --at "write:$number" --run "ndctl create-namespace --region region0 --mode fsdax --size $STORE_ALIGN --name others" \
                        "$FLEXGRAFT_BIN/verbs/pmem-namespaces" create region0 data "$STORE_ALIGN" fsdax "$(</proc/sys/kernel/random/uuid)"
                [[ $AT_REACHED == 1 && $status != 2 ]]
                [[ $(namespaces_of region0) == *'others fsdax'* ]] || { echo "at write $number"; namespaces_of region0; show_last; return 1; }
                ndctl destroy-namespace --force "$(ndctl list --namespaces --region region0 | jq -r '.[] | select(.name == "others") | .dev')" >/dev/null 2>&1
        done
}

@test "persistent memory: of two namespaces of one name neither is erased" {
        store direct
        ndctl create-namespace --region region0 --mode fsdax --size "$STORE_ALIGN" --name first >/dev/null 2>&1
        make_volume
        ndctl destroy-namespace --force "$(ndctl list --namespaces --region region0 | jq -r '.[] | select(.name == "first") | .dev')" >/dev/null 2>&1
        # whose device now comes before the volume's, and which has its name
        ndctl disable-region region0 >/dev/null 2>&1
        ndctl enable-region region0 >/dev/null 2>&1
        ndctl create-namespace --region region0 --mode fsdax --size "$STORE_ALIGN" --name data >/dev/null 2>&1
        is "$(namespaces_of region0)" $'data fsdax\ndata fsdax'
        remove '{"name": "data"}'
        assert_failure
        is "$(namespaces_of region0)" $'data fsdax\ndata fsdax'
}

@test "persistent memory: a disabled volume is not given back with its content" {
        store direct
        make_volume
        yes secret | dd of="$DEVICE" bs=1M count=12 iflag=fullblock conv=fsync status=none
        ndctl disable-namespace all >/dev/null 2>&1
        remove '{"name": "data"}'
        [[ $status == 0 ]] || { ndctl enable-namespace all >/dev/null 2>&1; take_volume; }
        no_secret_in_region
}

@test "persistent memory: a volume of a region that is disabled is neither forgotten nor said to be gone" {
        store direct
        make_volume
        ndctl disable-region region0 >/dev/null 2>&1
        remove '{"name": "data"}'
        ndctl enable-region region0 >/dev/null 2>&1
        refused ENODEV "iset_id $(ndctl list --regions --region region0 --human | jq -r 'if type == "array" then .[0] else . end | .iset_id')"
        is "$(provisioned)" data.json
        take_volume
        assert_nothing
}

@test "lvm: a volume of a group that is not there is neither forgotten nor said to be gone" {
        local i
        store lvm
        make_volume
        for i in 0 1 2; do
                losetup --detach "${disks[i]}"
                wait_until 5 device_is_free "${disks[i]}"
        done
        remove '{"name": "data"}'
        for i in 0 1 2; do
                losetup "${disks[i]}" "$BATS_TEST_TMPDIR/disk.$i"
        done
        refused ENODEV "$GROUP"
        is "$(provisioned)" data.json
        take_volume
        assert_nothing
}

@test "lvm: a volume that others have a snapshot of is not taken away with it" {
        store lvm
        make_volume data $((4 * UNIT))
        quietly lvcreate --snapshot --size 8M --name backup "$GROUP/data"
        remove '{"name": "data"}'
        is "$(what_is_there)" "backup data"
        refused EBUSY
}

@test "lvm: what was on a thin volume is not read by the next one, also where the thin pool does not zero" {
        local i
        store lvm
        quietly lvcreate --type thin-pool --size 40M --chunksize 64k --zero n --discards nopassdown --name tp "$GROUP"
        # all of the pool, so that the next one gets what was this one's
        make_volume one $((40 << 20)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        quietly lvchange --activate y "$GROUP/one"
        yes secret | dd of="$DEVICE" bs=1M count=40 iflag=fullblock conv=fsync status=none
        quietly lvchange --activate n "$GROUP/one"
        take_volume one
        make_volume two $((8 << 20)) '"parameters": {"type": "thin", "thinpool": "tp"}'
        quietly lvchange --activate y "$GROUP/two"
        # a part of each block is written; the rest of it was the other's
        for i in 1 2 3 4; do
                dd if=/dev/zero of="$DEVICE" bs=4096 count=1 seek=$((i * 16 + 8)) oflag=direct conv=notrunc status=none
        done
        is "$(timeout 20 dd if="$DEVICE" bs=64k count=8 iflag=direct status=none | grep -c secret || :)" 0 "lines with the secret"
}

@test "lvm: a volume of raid1 takes no more than the pool's share, its notes counted" {
        local largest free
        store lvm '"maxPercent": 50'
        write_profiles '"it": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.lvm"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": {"type": "raid1"}}'
        helper volume-capacity '{"pool": "store"}'
        largest=$(jq -r '.pools[0].profiles[0].largest' <<<"$json")
        created "{\"name\": \"data\", \"size\": $largest, \"profile\": \"it\"}"
        quietly vgs --noheadings --nosuffix --units b --options vg_free "$GROUP"
        free=$(sed -n 's/^ *\([0-9]*\) *$/\1/p' "$BATS_TEST_TMPDIR/lvm.log")
        ((48 * STORE_EXTENT - free <= 24 * STORE_EXTENT)) || { echo "of 48 extents, and a share of 24, $((48 - free / STORE_EXTENT)) are taken"; return 1; }
}

@test "persistent memory, a group: a filesystem on a namespace that is called as ours are is not made a disk of the group" {
        local device
        [[ -n $HAS_PMEM ]] || skip "this machine has no persistent memory"
        ndctl create-namespace --region region0 --mode fsdax --size $((3 * STORE_ALIGN)) --name flexgraft >/dev/null 2>&1
        device=/dev/$(ndctl list --namespaces | jq -r 'if type == "array" then .[0] else . end | .blockdev')
        mkfs.ext4 -q "$device"
        store group
        create "{\"name\": \"data\", \"size\": $UNIT, \"pool\": \"store\"}"
        is "$(blkid -p -o value -s TYPE "$device" || :)" ext4 "what is on it"
}
