#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The CSI driver over what this kernel may lack: logical volumes, persistent memory and shares of an NFS server: a claim's whole life, from
# CreateVolume to DeleteVolume, with restarts and a reboot, snapshots, copies, growth while a pod has it, and as a device.
#
# scripts/guest-run has a kernel that has them all.
# bats file_tags=kernel

# shellcheck disable=SC2119,SC2120 # arguments may be left out
load helpers
load driver_helpers
load volume_helpers
load named_helpers
load lvm_helpers
load nfs_helpers
load csi_service_helpers
load csi_node_helpers
load csi_kubelet_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        csi_clients_begin
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        csi_clients_end
        schema_validate
}

setup() {
        GROUP='' EXPORT='' HAS_PMEM='' STORE='' disks=()
        declare -gA hidden_nodes=()
        csi_begin
        CSI_CLIENT_OPTIONS=(--fresh)
        node_setup
        MEMBERS=''
}

teardown() {
        if [[ -n $EXPORT ]]; then
                in_turn csi_teardown nfs_teardown
        else
                in_turn csi_teardown ${STORE:+stores_teardown} driver_teardown
        fi
}

# pool_of lvm|direct|group [PARAMETERS]: a store, and what volumes in it are made with.
pool_of() {
        stores_setup
        if [[ $1 == lvm ]]; then
                loop_disks 2 150M
        fi
        store "$1"
        [[ $1 != lvm || ${2:-} != *thin* ]] || quietly lvcreate --type thin-pool --size 120M --name tp "$GROUP"
        MEMBERS="\"parameters\": {\"pool\": \"store\"${2:+, $2}}"
        SIZE=$((16 << 20))
}

# delete_volume ID: there is no such volume any more.
delete_volume() {
        with_id DeleteVolume "$1"
        answers OK
}

# has_past KIND: of a volume that a pod has: a snapshot, and a volume of that, which has what was there then.
has_past() {
        mark
        sync -f "$(target)" 2>/dev/null || :
        make_snapshot monday "$ID"
        assert_field '.snapshot | [.source_volume_id, .ready_to_use] | map(tostring) | join(" ")' "$ID true"
        overwrite
        (
                ID=copy CONTEXT=''
                new_volume "$MEMBERS, \"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"monday\"}}" && kubelet_up && marked && kubelet_down
        ) || return 1
}

overwrite() {
        if is_block; then
                printf others | dd of="$(target)" conv=notrunc,fsync status=none
        else
                printf others >"$(target)/file"
        fi
}

# the device, or the filesystem, that the pod has
size_for_pod() {
        if is_block; then
                blockdev --getsize64 "$(target)"
        else
                stat -fc '%b' "$(target)"
        fi
}

# grows BYTES: while the pod has it, as external-resizer and kubelet do it.
grows() {
        local before
        before=$(size_for_pod)
        with_id ControllerExpandVolume "$ID" "\"capacity_range\": {\"required_bytes\": $1}"
        answers OK || return 1
        expand "$1" && answers OK && expand "$1" && answers OK || return 1
        (($(size_for_pod) > before)) || { echo "it has $(size_for_pod) still"; return 1; }
}

# whole_life [past] [grows]: of a claim.
whole_life() {
        new_volume "$MEMBERS"
        new_volume "$MEMBERS"
        lives
        kubelet_up
        [[ " $* " != *" past "* ]] || has_past
        [[ " $* " != *" grows "* ]] || ! can_grow || grows $((32 << 20))
        with_id DeleteVolume "$ID"
        answers FAILED_PRECONDITION
        kubelet_down
        if [[ " $* " == *" past "* ]]; then
                delete_volume copy
                csi DeleteSnapshot '{"snapshot_id": "monday"}'
                answers OK
        fi
        delete_volume "$ID"
        delete_volume "$ID"
        ok ListVolumes
        is "$(listed_ids)" ''
        is "$(provisioned)" '' records
}

# root may resize a mounted ext4 only with CAP_SYS_RESOURCE
can_grow() {
        is_block || can_grow_ext4
}

nothing_in_store() {
        is "$(what_is_there)" "$1" && is "$(mapped | grep -v -- '-tp' || :)" ''
}

# bats test_tags=lvm
@test "a claim of a thin logical volume lives, with snapshots, copies and growth, and is deleted" {
        pool_of lvm '"type": "thin", "thinpool": "tp"'
        whole_life past grows
        nothing_in_store tp
}

# bats test_tags=lvm,kernel_too
@test "a claim of a linear logical volume lives, with snapshots, copies and growth, and is deleted" {
        pool_of lvm
        whole_life past
        kubelet_grows_when_no_snapshot
        nothing_in_store ''
}

kubelet_grows_when_no_snapshot() {
        new_volume "$MEMBERS"
        kubelet_up
        ! can_grow || grows $((32 << 20))
        kubelet_down
        delete_volume "$ID"
}

# bats test_tags=lvm,kernel_too
@test "a claim of a linear logical volume as a device lives, grows in its pod, and is deleted" {
        CAPABILITY=$BLOCK_WRITER
        pool_of lvm
        whole_life grows
        nothing_in_store ''
}

# bats test_tags=lvm,kernel_too
@test "a claim of a thin logical volume as a device lives, with snapshots, copies and growth, and is deleted" {
        CAPABILITY=$BLOCK_WRITER
        pool_of lvm '"type": "thin", "thinpool": "tp"'
        whole_life past grows
        nothing_in_store tp
}

# bats test_tags=pmem
@test "a claim of persistent memory lives, and is deleted" {
        pool_of direct
        whole_life
        nothing_in_store ''
}

# bats test_tags=pmem,kernel_too
@test "a claim of a volume group of persistent memory lives, grows, and is deleted" {
        pool_of group
        whole_life grows
        nothing_in_store ''
}

# bats test_tags=pmem,kernel_too
@test "a claim of persistent memory as a device lives, and is deleted" {
        CAPABILITY=$BLOCK_WRITER
        pool_of direct
        whole_life
        nothing_in_store ''
}

# bats test_tags=nfs
@test "a claim of a class of csi-driver-nfs lives, is had by two pods, grows, and is deleted" {
        local class
        nfs_needs_kernel
        nfs_setup
        join_node
        CAPABILITY='{"mount": {"mount_flags": ["vers=4.2"]}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        class="\"parameters\": {\"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\"}"
        new_volume "$class"
        new_volume "$class"
        ID=$VOLUME_ID
        [[ $ID == "$NFS_ADDRESS#"* && -d $EXPORTED/data ]]
        lives
        kubelet_up
        marked
        is "$(<"$EXPORTED/data/file")" marked
        stats
        answers OK
        (($(usage BYTES total) > 0))
        csi CreateSnapshot "$(snapshot_request monday "$ID")"
        answers UNIMPLEMENTED
        with_id ControllerExpandVolume "$ID" '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        is "$(json_field .capacity_bytes)" 16777216
        kubelet_down
        delete_volume "$ID"
        delete_volume "$ID"
        is "$(find "$EXPORTED" -mindepth 1 ! -name '.flexgraft*' -printf '%P ')" ''
        is "$(provisioned)" '' records
}

# with_share: a server, and what csi-driver-nfs says of a volume on its export.
with_share() {
        nfs_needs_kernel
        nfs_setup
        join_node
        CAPABILITY='{"mount": {"mount_flags": ["vers=4.2"]}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        SHARE=${EXPORT#/}
        CONTEXT="\"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\""
}

# on_share: what the export has, but flexgraft's trash.
on_share() {
        find "$EXPORTED" -mindepth 1 ! -name '.flexgraft*' -printf '%P\n' | sort | paste -sd' '
}

# bats test_tags=nfs
@test "a PersistentVolume of csi-driver-nfs lives with its handle and its attributes as they are" {
        with_share
        mkdir -p "$EXPORTED/team/data"
        ID="$NFS_ADDRESS#$SHARE#team/data#pvc-1#retain"
        CONTEXT+=', "subDir": "team/data", "mountPermissions": "0770", "onDelete": "retain", "csi.storage.k8s.io/pv/name": "pvc-1",
                "storage.kubernetes.io/csiProvisionerIdentity": "1-2-nfs.csi.k8s.io"'
        lives
        is "$(<"$EXPORTED/team/data/file")" marked
        is "$(on_share)" 'team team/data team/data/file'
}

# bats test_tags=nfs
@test "a PersistentVolume on a server that one writer has grows with any handle, before a pod has it and after, also while the server does not answer" {
        with_share
        ID=web CAPABILITY=$WRITER
        stage
        answers OK
        expand 16777216 "$(staging)"
        answers OK
        publish
        answers OK
        expand 16777216
        answers OK
        assert_field .capacity_bytes 16777216
        freeze_server
        not_hung expand 33554432
        answers OK
        thaw_server
        down
}

# bats test_tags=nfs
@test "an inline volume of a server has the options of its attributes, and is unpublished with its content where it was" {
        with_share
        CAPABILITY=$WRITER ID=csi-$(printf nfs | sha256sum | cut -c1-64)
        CONTEXT+=', "mountOptions": "nfsvers=4.1,noatime"'
        publish_inline
        answers OK
        publish_inline
        answers OK
        is "$(node_mounts_at "$(target)")" 1
        [[ $(findmnt -no OPTIONS --mountpoint "$(target)") == *vers=4.1* ]]
        mark
        driver_dies
        publish_inline && answers OK
        marked
        unpublish
        answers OK
        unpublish
        answers OK
        all_gone
        is "$(<"$EXPORTED/file")" marked
}

# bats test_tags=nfs
@test "an inline volume of a server that is not there leaves nothing" {
        with_share
        CAPABILITY=$WRITER ID=csi-$(printf nfs | sha256sum | cut -c1-64)
        CONTEXT="\"server\": \"$NFS_REFUSING\", \"share\": \"$EXPORT\""
        publish_inline
        [[ $code != OK ]]
        unpublish
        answers OK
        all_gone
}

# bats test_tags=nfs
@test "what csi-driver-nfs made is deleted, kept or archived by its id alone, and twice" {
        local id
        with_share
        mkdir -p "$EXPORTED"/{pvc-1,pvc-2,team/three,team/four,five}
        touch "$EXPORTED"/{pvc-1,pvc-2,team/three,team/four,five}/file
        for id in "$NFS_ADDRESS#$SHARE#pvc-1##" "$NFS_ADDRESS#$SHARE#pvc-2" "$NFS_ADDRESS#$SHARE#team/three#pvc-3#Archive" \
                "$NFS_ADDRESS#$SHARE#team/four#pvc-4" "$NFS_ADDRESS#$SHARE#five#pvc-5#retain"; do
                delete_volume "$id" && delete_volume "$id" || { echo "$id"; return 1; }
                is "$(provisioned)" '' "records after $id" || return 1
        done
        is "$(on_share)" 'archived-team archived-team/three archived-team/three/file five five/file team'
}

# bats test_tags=nfs
@test "what a node left of a volume of a share that was killed while it deleted it is deleted by this one" {
        with_share
        new_volume "\"parameters\": {\"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\"}"
        ID=$VOLUME_ID
        mkdir -p "$EXPORTED/data/a/b"
        touch "$EXPORTED/data/a/b/file"
        # the directory is in the trash, and has its files still
        at_syscall --at unlinkat:3 --kill "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        [[ -n $(find "$EXPORTED/.flexgraft-trash" -name file) ]]
        rm -rf "$STATE_DIR"/{provisioned,shares} # as on another node
        delete_volume "$ID"
        is "$(find "$EXPORTED/.flexgraft-trash" -mindepth 1)" ''
}

# bats test_tags=nfs
@test "what another node made on a share is deleted by this one" {
        with_share
        new_volume "\"parameters\": {\"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\"}"
        ID=$VOLUME_ID
        kubelet_up
        mark
        kubelet_down
        rm -rf "$STATE_DIR"/{provisioned,shares} # as on a node that never had it
        is "$(on_share)" 'data data/file'
        delete_volume "$ID"
        delete_volume "$ID"
        is "$(on_share)|$(provisioned)" '|'
}

# bats test_tags=nfs
@test "what another node made in a pool on a server is deleted by this one, which may have no such pool" {
        with_share
        printf '{"name": "nas", "type": "nfs", "server": "%s", "share": "%s"}\n' "$NFS_ADDRESS" "$EXPORT" >"$FLEXGRAFT_POOLS/nas.json"
        new_volume '"parameters": {"pool": "nas"}' # for writers on several nodes
        ID=$VOLUME_ID
        kubelet_up
        mark
        listed
        assert_field '.volumes[0].uses | map(.target) | join(" ")' "$(target)"
        kubelet_down
        rm -rf "$STATE_DIR/provisioned" "$FLEXGRAFT_POOLS/nas.json" # as on a node that never had it
        is "$(on_share)" 'data data/file'
        delete_volume "$ID"
        delete_volume "$ID"
        is "$(on_share)|$(provisioned)" '|'
}

# bats test_tags=nfs
@test "a volume whose server does not answer is abnormal, its stats are answered, and it is well when the server answers again" {
        with_share
        ID=web
        kubelet_up
        mark
        stats
        answers OK
        assert_field .volume_condition.abnormal false
        freeze_server
        not_hung stats
        answers OK "it does not answer"
        assert_field '[.volume_condition.abnormal, (.usage | length)] | map(tostring) | join(" ")' 'true 0'
        thaw_server
        is_well() { stats; [[ $code == OK && $(json_field .volume_condition.abnormal) == false ]]; }
        wait_until 30 is_well
        marked
        kubelet_down
        all_gone
}
