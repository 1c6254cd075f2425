# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lvm, beside the programs under test.

# quietly COMMAND ARG...: one of lvm's, in this machine without udev.
quietly() {
        lvm "$1" --yes --quiet --config 'devices{use_devicesfile=0 obtain_device_list_from_udev=0}
                activation{udev_sync=0 udev_rules=0 verify_udev_operations=0 monitoring=0}' "${@:2}" >"$BATS_TEST_TMPDIR/lvm.log" 2>&1
}

# has_device_mapper: of the kernel; lvm's tools make its node in /dev whether it is there or not.
has_device_mapper() {
        grep -q device-mapper /proc/misc && [[ -n $(type -P lvm) ]]
}

# group_make COUNT SIZE: the volume group GROUP of so many disks, which is the pool "big".
group_make() {
        GROUP=fg${RUN_ID}_$BATS_TEST_NUMBER
        disks=()
        loop_disks "$1" "$2"
        quietly vgcreate "$GROUP" "${disks[@]}"
        echo "{\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\"}" >"$FLEXGRAFT_POOLS/big.json"
}

# group_teardown: it is gone, with all that is mounted of it; then driver_teardown.
group_teardown() {
        [[ -n ${GROUP:-} ]] || return 0
        local target
        while read -r _ _ _ _ target _; do
                [[ $target == "$BATS_TEST_TMPDIR"/* ]] && umount -l "$target" 2>/dev/null
        done < <(tac /proc/self/mountinfo)
        quietly vgremove --force "$GROUP" || :
        driver_teardown
}

# lvm_volumes GROUP: NAME TYPE of what is in a group, sorted.
lvm_volumes() {
        quietly lvs --noheadings --options lv_name,segtype "$1"
        sed -n "s/^ *\([^ ]*\) *\([a-z0-9-]*\) *$/\1 \2/p" "$BATS_TEST_TMPDIR/lvm.log" | grep -v WARNING | sort
}

# ---- the three kinds of store that volumes are made in; after volume_helpers

STORE_ALIGN=$((16 << 20))       # of namespaces
STORE_EXTENT=$((4 << 20))       # of volume groups

# programs_nearby: for setup_file(): the programs, copied to where each test's driver directory can link to them: it is made for each.
programs_nearby() {
        cp -a "$FLEXGRAFT_BIN" "$BATS_FILE_TMPDIR/bin"
        export FLEXGRAFT_BIN=$BATS_FILE_TMPDIR/bin
}

# stores_setup: what the kernel needs for them; skips where it has not got that. Regions are empty after it.
stores_setup() {
        GROUP=fg${RUN_ID}_$BATS_TEST_NUMBER STORE='' STORE_GROUP='' OTHERS='' HAS_PMEM=''
        declare -gA hidden_nodes=()
        disks=()
        if [[ ! -e $BATS_FILE_TMPDIR/stores ]]; then
                modprobe --quiet --all dm_mod nfit nd_pmem 2>/dev/null || : # the programs have the kernel load the others
                stores_empty
                touch "$BATS_FILE_TMPDIR/stores"
        fi
        has_device_mapper || skip "this kernel has no device mapper, or this machine no lvm"
        [[ ! -e /sys/bus/nd/devices/region1 || -z $(type -P ndctl) ]] || ! regions_are_empty || HAS_PMEM=yes
}

# What the tests made of the regions is gone, and of the disks nothing is active: they go with the test's directory.
stores_teardown() {
        local node name
        [[ -v GROUP ]] || return 0
        for node in "${!hidden_nodes[@]}"; do
                show_node "$node"
        done
        while read -r _ _ _ _ node _; do
                [[ $node == "$BATS_TEST_TMPDIR"/* && $node != "$BATS_TEST_TMPDIR"/state ]] && umount -l "$node" 2>/dev/null
        done < <(tac /proc/self/mountinfo)
        ! has_device_mapper || for _ in 1 2 3 4; do    # what lies below others can go after them
                while read -r name _; do
                        [[ $name != "$GROUP"-* && $name != flexgraft--region* ]] || dmsetup remove "$name" >/dev/null 2>&1
                done < <(dmsetup ls)
        done
        rm -rf "/dev/${GROUP:?}" /dev/flexgraft-region0 /dev/flexgraft-region1
        [[ -z $HAS_PMEM ]] || regions_are_empty || stores_empty
}

# No namespace at all, and labels for new ones: written anew where they are missing, or where a namespace cannot be destroyed.
stores_empty() {
        [[ -e /sys/bus/nd/devices/region1 && -n $(type -P ndctl) ]] || return 0
        ndctl enable-region all
        ndctl disable-namespace all
        ndctl destroy-namespace --force all || :
        if ! regions_are_empty; then
                ndctl disable-region all
                ndctl init-labels --force all
                ndctl enable-region all
        fi
} >/dev/null 2>&1

# A region without labels is of type 4: one namespace; with them it may have many.
regions_are_empty() {
        local region
        for region in /sys/bus/nd/devices/region[0-9]*; do
                [[ $(<"$region/nstype") == 5 && $(<"$region/available_size") == "$(<"$region/size")" ]] || return 1
        done
}

# loop_disks COUNT SIZE: so many loop devices more, in `disks`.
loop_disks() {
        local i file device
        for ((i = 0; i < $1; i++)); do
                file=$BATS_TEST_TMPDIR/disk.${#disks[@]}
                truncate -s "$2" "$file"
                device=$(loop_over "$file")
                bed_loops+=("$device")
                disks+=("$device")
        done
}

# store lvm|direct|group [MEMBERS]: the pool "store", a volume group over three disks, namespaces, or a volume group of namespaces; its file
# has further members, as JSON text. From now on the driver is that of the kind.
#   STORE        the word       UNIT    the smallest volume        DM    what the device mapper's names begin with
#   STORE_GROUP  the volume group, or ''
store() {
        local text
        STORE=$1
        case $1 in
        lvm)
                [[ ${#disks[@]} -gt 0 ]] || loop_disks 3 68M
                quietly vgcreate "$GROUP" "${disks[@]}"
                text="\"type\": \"lvm\", \"volumeGroup\": \"$GROUP\"" UNIT=$STORE_EXTENT STORE_GROUP=$GROUP
                ;;
        direct) text='"type": "pmem", "region": "region0"' UNIT=$STORE_ALIGN STORE_GROUP='' ;;
        group) text='"type": "pmem", "region": "region0", "mode": "lvm"' UNIT=$STORE_EXTENT STORE_GROUP=flexgraft-region0 ;;
        esac
        [[ $1 == lvm || -n $HAS_PMEM ]] || skip "this machine has no persistent memory"
        DM=${STORE_GROUP//-/--}-
        printf '{%s%s}\n' "$text" "${2:+, $2}" >"$FLEXGRAFT_POOLS/store.json"
        [[ $1 == lvm ]] || install_driver flexgraft~pmem
}

# what_is_there: the names of what is in the store, sorted, in one line; all that is made of the volume group's disks, or in the region.
what_is_there() {
        if [[ $STORE == direct ]]; then
                namespaces_of region0 | cut -d' ' -f1
        else
                lvm_volumes "$STORE_GROUP" | cut -d' ' -f1 | sort -u    # several segments are several lines
        fi | paste -s -d' '
}

# namespaces_of REGION: NAME MODE, sorted.
namespaces_of() {
        ndctl list --namespaces --region "$1" 2>/dev/null | jq -r 'if type == "array" then .[] else . end | "\(.name) \(.mode)"' | sort
}

# mapped: the device mapper's devices of the store; nothing for none.
mapped() {
        [[ -z $STORE_GROUP ]] || dmsetup ls | awk -v begin="$DM" 'index($1, begin) == 1 { print $1 }' | sort
}

# hide_node PATH: the node, or link, is not there until show_node PATH; what is in its place then is removed. It stays the kernel's own.
hide_node() {
        hidden_nodes[$1]=/dev/hidden.${#hidden_nodes[@]}
        mv "$1" "${hidden_nodes[$1]}"
}

show_node() {
        rm -f "$1"
        mv "${hidden_nodes[$1]}" "$1" 2>/dev/null || rm -f "${hidden_nodes[$1]}"     # its directory may be gone meanwhile
        unset "hidden_nodes[$1]"
}
