# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2119,SC2120 # arguments may be left out
# shellcheck disable=SC2154 # of csi_service_helpers.bash
# A model of kubelet: its order of calls, its directories, its restart, the driver's death and the node's reboot. After `load csi_node_helpers`.

# kubelet_up, kubelet_down [POD]: what kubelet calls, in its order; and the directories, which it makes and removes.
kubelet_up() {
        ok NodeGetCapabilities && stage && answers OK && ok NodeGetCapabilities && publish "$@" && answers OK || return 1
        # it refuses to unstage while the root of the volume is mounted anywhere else
        is "$(node_mounts_at "$(target "$@")")" 1 "mounts at the target"
}

kubelet_down() {
        unpublish "$@" && answers OK || return 1
        [[ ! -e $(target "$@") ]] || { echo "the target is still there"; return 1; }
        rmdir "$(dirname "$(target "$@")")"
        ok NodeGetCapabilities && unstage && answers OK && rmdir "$(staging)"
}

# kubelet_restarts: a new kubelet stages and publishes what its pods have.
kubelet_restarts() {
        ok NodeGetInfo && stage && answers OK && publish "$@" && answers OK
}

# with --fresh the client has no connection that the death would end
csi_hang_up_unless_fresh() {
        [[ " ${CSI_CLIENT_OPTIONS[*]} " == *" --fresh "* ]] || csi_hang_up
}

# driver_dies: with whatever it is doing; and is started anew.
driver_dies() {
        csi_hang_up_unless_fresh
        kill -KILL "$CSI_PID"
        wait "$CSI_PID" || :
        rm -f "$CSI_SOCKET"
        csi_start
}

# pod_devices_end: the loop devices that pods have of block volumes.
pod_devices_end() {
        local number name
        for number in $(jq '.published[].podDevice // empty' "$STATE_DIR"/volumes/*.json 2>/dev/null); do
                name=$(readlink "/sys/dev/block/$(((number >> 8) & 0xfff)):$(((number & 0xff) | (number >> 12 & 0xfff00)))") || continue
                number=${name##*/loop}
                losetup --detach "/dev/loop$((number + 1))" "/dev/loop$number" 2>/dev/null || :
                "$FLEXGRAFT_TOOLS/remove-loops" "$number"
        done
}

# node_reboots: processes, mounts and loop devices are gone, directories and records are left.
node_reboots() {
        local target device
        csi_hang_up_unless_fresh
        csi_stop
        while read -r _ _ _ _ target _; do
                decode_mount_path target
                [[ $target == "$KUBELET"/* ]] && umount "$target"
        done < <(tac /proc/self/mountinfo)
        pod_devices_end
        [[ -z ${STORE_GROUP:-${GROUP:-}} || ${STORE:-lvm} == direct ]] || quietly vgchange --activate n "${STORE_GROUP:-$GROUP}"
        while read -r device; do
                [[ " ${bed_loops[*]} " != *" $device "* ]] || continue # a disk of the node
                losetup --detach "$device"
                wait_until 5 device_is_free "$device"
        done < <(loops_of_test)
        sed -i "s/$(</proc/sys/kernel/random/boot_id)/11111111-2222-3333-4444-555555555555/" "$STATE_DIR"/volumes/*.json 2>/dev/null || :
        csi_start
}

# mark, marked: content that must outlive everything.
mark() {
        if is_block; then
                printf marked | dd of="$(target "$@")" conv=notrunc,fsync status=none
        else
                printf marked >"$(target "$@")/file"
        fi
}

marked() {
        if is_block; then
                is "$(head -c 6 "$(target "$@")")" marked
        else
                is "$(<"$(target "$@")/file")" marked
        fi
}

# lives: a PersistentVolume's whole life.
lives() {
        kubelet_up
        mark
        kubelet_restarts
        marked
        driver_dies
        marked
        kubelet_restarts
        is "$(node_mounts_at "$(target)")" 1
        publish pod-2
        answers OK
        marked pod-2
        unpublish pod-2
        answers OK
        driver_dies
        kubelet_down
        all_gone
        kubelet_up
        marked
        node_reboots
        kubelet_up
        marked
        node_reboots
        # the pod is gone meanwhile: unpublish and unstage of what is not there
        down
        all_gone
}
