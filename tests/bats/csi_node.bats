#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Node service of the CSI driver: each call, its arguments, its failures, and that nothing is left of those.

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
load csi_node_helpers
load raw_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        csi_begin
        node_setup
}

teardown() {
        csi_end
}

# ---- what the service says of itself

@test "NodeGetInfo has the node's name as id and as topology" {
        ok NodeGetInfo
        assert_field '[.node_id, .max_volumes_per_node, .accessible_topology.segments["'"$TOPOLOGY_KEY"'"]] | map(tostring) | join(" ")' \
                "$NODE_ID 0 $NODE_ID"
}

@test "NodeGetCapabilities lists the capabilities of the driver, without VOLUME_MOUNT_GROUP" {
        ok NodeGetCapabilities
        assert_field '[.capabilities[].rpc.type] | join(" ")' \
                "STAGE_UNSTAGE_VOLUME GET_VOLUME_STATS EXPAND_VOLUME VOLUME_CONDITION SINGLE_NODE_MULTI_WRITER"
}

# ---- volumes for virtual machines

@test "a volume for virtual machines that a process used when it was unstaged is unstaged by the same call again" {
        TIMEOUTS='"unmount": 2, "device": 30, "command": 60, "call": 60' write_config ''
        SIZE=$((64 << 20)) new_volume '"parameters": {"kataContainers": "true"}'
        stage
        answers OK
        exec 7<"$(staging)"
        unstage
        [[ ${output%% *} != OK ]] || node_mounts_at "$(staging)"
        exec 7<&-
        unstage
        answers OK
        all_gone
        is "$(find "$STATE_DIR/kata" -mindepth 1)" ''
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers OK
        assert_no_volume
}

@test "a volume for virtual machines has stats, and is published again" {
        SIZE=$((64 << 20)) new_volume '"parameters": {"kataContainers": "true"}'
        up
        stats
        answers OK
        assert_field '[(.usage | length), .volume_condition.abnormal] | map(tostring) | join(" ")' "2 false"
        publish
        answers OK
        down
        all_gone
}

@test "a volume for virtual machines that is for one pod is not published to a second" {
        CAPABILITY=$SINGLE
        SIZE=$((64 << 20)) new_volume '"parameters": {"kataContainers": "true"}'
        up
        publish pod-2
        answers FAILED_PRECONDITION "one pod"
        down
        all_gone
}

# ---- what is missing (csi_sanity.bats has the rest), or no path

@test "a capability without an access mode, or without a type, is INVALID_ARGUMENT, and nothing is staged or published" {
        new_volume
        for CAPABILITY in '{"mount": {}}' '{"access_mode": {"mode": "SINGLE_NODE_WRITER"}}'; do
                stage
                answers INVALID_ARGUMENT "volume capability" || return 1
                publish
                answers INVALID_ARGUMENT "volume capability" || return 1
        done
        all_gone
}

@test "a path that is relative, climbs, or is the root is INVALID_ARGUMENT" {
        local path
        for path in - data ../data "$BATS_TEST_TMPDIR/../x" / //; do
                csi NodeUnpublishVolume "{\"volume_id\": \"v\", \"target_path\": \"$path\"}"
                answers INVALID_ARGUMENT || { echo "$path"; return 1; }
        done
}

# spec.md, NodePublishVolume Errors: "Staging target path not set"; of NodeStageVolume it is INVALID_ARGUMENT, as any field that is missing
@test "publishing without a staging path is FAILED_PRECONDITION" {
        csi NodePublishVolume "{\"volume_id\": \"v\", \"target_path\": \"$BATS_TEST_TMPDIR/t\", \"volume_capability\": $WRITER}"
        answers FAILED_PRECONDITION staging_target_path
}

@test "a volume that is not staged is not published, and its target does not appear" {
        new_volume
        publish
        answers FAILED_PRECONDITION "not attached"
        all_gone
}

@test "unpublishing and unstaging a volume that does not exist is OK, for any id" {
        local id
        for id in nothing "a/../b" "--help" - "$(printf 'x%.0s' {1..128})" "ünïcode"; do
                ID=nothing
                csi NodeUnpublishVolume "{\"volume_id\": \"$id\", \"target_path\": \"$(target)\"}"
                answers OK || { echo "$id"; return 1; }
                csi NodeUnstageVolume "{\"volume_id\": \"$id\", \"staging_target_path\": \"$(staging)\"}"
                answers OK || { echo "$id"; return 1; }
        done
}

# ---- filesystems

@test "a volume is staged, published, unpublished and unstaged, each twice" {
        new_volume
        stage
        answers OK
        stage
        answers OK
        publish
        answers OK
        publish
        answers OK
        is "$(node_mounts_at "$(staging)") $(node_mounts_at "$(target)")" "1 1"
        echo content >"$(target)/file"
        unpublish
        answers OK
        unpublish
        answers OK
        [[ ! -e $(target) ]]
        unstage
        answers OK
        unstage
        answers OK
        [[ -d $(staging) ]]
        all_gone
        up
        is "$(<"$(target)/file")" content
        down
}

@test "a target that was there before is removed, too" {
        new_volume
        mkdir -p "$(target)"
        up
        down
        all_gone
}

@test "the filesystem and the mount flags are those of the capability" {
        CAPABILITY='{"mount": {"fs_type": "ext4", "mount_flags": ["noatime", "noexec"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
        new_volume
        up
        [[ $(findmnt -no FSTYPE,OPTIONS --mountpoint "$(target)") == ext4*noexec*noatime* ]]
        down
}

@test "mount flags are in no argument of a process and in no record" {
        CAPABILITY='{"mount": {"mount_flags": ["noatime", "nodiratime"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
        new_volume
        strace_driver execve
        stage
        strace_end
        grep -q mountdevice "$TRACE"
        run ! grep -q nodiratime "$TRACE"
        run ! grep -rq nodiratime "$STATE_DIR/volumes" "$LOG"
}

@test "a filesystem that cannot be is INVALID_ARGUMENT, and nothing stays attached" {
        CAPABILITY='{"mount": {"fs_type": "ntfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
        "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "8m"}'
        stage
        answers INVALID_ARGUMENT
        all_gone
}

@test "a volume that does not exist is NOT_FOUND, and nothing is left" {
        CONTEXT='"type": "loop"'
        stage
        answers NOT_FOUND
        all_gone
}

@test "a static volume by its name alone is what volume-create made" {
        "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "8m"}'
        up
        down
        all_gone
}

@test "read-only is for one pod, and the other writes" {
        new_volume
        up
        READ_ONLY=true publish pod-2
        answers OK
        run ! touch "$(target pod-2)/file"
        touch "$(target)/file"
        [[ -e $(target pod-2)/file ]]
        unpublish pod-2
        answers OK
        down
}

@test "a volume for reading is mounted read-only, whatever the pod says" {
        new_volume
        up
        touch "$(target)/file"
        down
        CAPABILITY=$READER up
        [[ -e $(target)/file ]]
        run ! touch "$(target)/other"
        CAPABILITY=$READER down
}

@test "SINGLE_NODE_SINGLE_WRITER is for one pod: the second is FAILED_PRECONDITION, and the first keeps it" {
        CAPABILITY=$SINGLE new_volume
        CAPABILITY=$SINGLE
        up
        publish pod-2
        answers FAILED_PRECONDITION "one pod"
        [[ ! -e $(target pod-2) ]]
        publish
        answers OK
        is "$(node_mounts_at "$(target)")" 1
        down
        all_gone
}

@test "SINGLE_NODE_MULTI_WRITER is for several pods" {
        CAPABILITY=${SINGLE/SINGLE_WRITER/MULTI_WRITER}
        new_volume
        up
        publish pod-2
        answers OK
        unpublish pod-2
        answers OK
        down
}

@test "writers on several nodes cannot have a volume of one node" {
        CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        CONTEXT='"type": "loop"'
        stage
        answers INVALID_ARGUMENT "one node"
}

@test "a volume that is published is not unstaged, and the pod keeps it" {
        new_volume
        up
        umount "$(staging)"
        unstage
        answers FAILED_PRECONDITION "still mounted"
        is "$(node_mounts_at "$(target)")" 1
        down
}

@test "a volume whose PersistentVolume is bound again in another namespace is that one's" {
        new_volume
        up
        touch "$(target)/file"
        publish pod-2 elsewhere
        answers OK
        unpublish pod-2
        answers OK
        down
        up pod-1 elsewhere
        [[ -e $(target)/file ]]
        down
}

@test "a publish that would fail is OK where its pod has the volume already" {
        new_volume
        up
        publish pod-1 elsewhere
        answers OK
        is "$(node_mounts_at "$(target)")" 1
        down
}

@test "a stage that fails where the volume is staged already is ABORTED, and it stays staged" {
        new_volume
        stage
        ID=data CAPABILITY='{"mount": {"fs_type": "nofs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' CONTEXT="$CONTEXT, \"image\": \"other.img\"" stage
        [[ $code == ABORTED ]]
        is "$(node_mounts_at "$(staging)")" 1
        unstage
        answers OK
}

# ---- hostile paths

@test "a target that is a symbolic link is not followed, and what it names is untouched" {
        new_volume
        stage
        mkdir -p "$(dirname "$(target)")" "$BATS_TEST_TMPDIR/victim"
        ln -s "$BATS_TEST_TMPDIR/victim" "$(target)"
        publish
        [[ $code != OK ]]
        is "$(node_mounts_at "$BATS_TEST_TMPDIR/victim")" 0
        mount -t tmpfs victim "$BATS_TEST_TMPDIR/victim"
        unpublish
        is "$(node_mounts_at "$BATS_TEST_TMPDIR/victim")" 1
        umount "$BATS_TEST_TMPDIR/victim"
        rm "$(target)"
        unstage
        answers OK
}

@test "a device's target that is a symbolic link or has content is refused" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        stage
        mkdir -p "$(dirname "$(target)")"
        touch "$BATS_TEST_TMPDIR/victim"
        ln -s "$BATS_TEST_TMPDIR/victim" "$(target)"
        publish
        [[ $code != OK ]]
        is "$(node_mounts_at "$BATS_TEST_TMPDIR/victim")" 0
        rm "$(target)"
        echo content >"$(target)"
        publish
        [[ $code != OK ]]
        is "$(<"$(target)")" content
        rm "$(target)"
        unstage
        answers OK
        all_gone
}

@test "unpublishing a device's target leaves a file there that has content" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        umount "$(target)"
        echo content >"$(target)"
        unpublish
        is "$(<"$(target)")" content
        rm -f "$(target)"
        down
        all_gone
}

@test "a target on which something else is mounted is refused, and that stays" {
        new_volume
        stage
        mkdir -p "$(target)"
        mount -t tmpfs other "$(target)"
        publish
        answers FAILED_PRECONDITION "something else"
        is "$(node_mounts_at "$(target)")" 1
        umount "$(target)"
        unstage
        answers OK
}

@test "publishing a volume again read-only instead of writable, or the other way round, is ALREADY_EXISTS" {
        local first
        new_volume
        for first in true false; do
                READ_ONLY=$first up || return 1
                READ_ONLY=$first publish
                answers OK
                READ_ONLY=$([[ $first == true ]] && echo false || echo true) publish
                answers ALREADY_EXISTS "unmount it first"
                READ_ONLY=$first publish
                answers OK
                is "$(node_mounts_at "$(target)")" 1
                down
        done
        all_gone
}

# ---- devices

@test "a block volume is its device at the target, and its content stays" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        [[ -b $(target) ]]
        is "$(blockdev --getsize64 "$(target)")" 8388608
        printf hello | dd of="$(target)" conv=notrunc status=none
        up
        is "$(node_mounts_at "$(target)")" 1
        publish pod-2
        answers OK
        unpublish pod-2
        answers OK
        down
        all_gone
        up
        is "$(head -c 5 "$(target)")" hello
        down
}

@test "a block volume is in use while its device is published" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        unstage
        answers FAILED_PRECONDITION "still mounted"
        [[ $("$FLEXGRAFT_BIN/volume-list" '{"name": "data"}') == *pod-1* ]]
        csi DeleteVolume '{"volume_id": "data"}'
        answers FAILED_PRECONDITION
        down
}

@test "a block volume for reading refuses writes itself" {
        CAPABILITY=$BLOCK_WRITER new_volume
        CAPABILITY=$BLOCK_READER
        up
        is "$(blockdev --getro "$(target)")" 1
        run ! dd if=/dev/zero of="$(target)" bs=512 count=1 conv=notrunc,fsync
        down
}

# own_device: the volume's, as the record has it.
own_device() {
        jq -r .device "$STATE_DIR/volumes/$ID.json"
}

# pod_holds_device: a process, BACKGROUND_PID, has the pod's device open, by a node of its own, as a container has one: NODE.
pod_holds_device() {
        NODE=$BATS_TEST_TMPDIR/node
        mknod "$NODE" b "$(stat -c %Hr "$(target)")" "$(stat -c %Lr "$(target)")"
        hold_device "$NODE"
}

# ioctls TARGET rw|ro ACTION...: what a pod's process without capabilities does to its device.
ioctls() {
        "$FLEXGRAFT_TOOLS/loop-ioctls" "$@"
}

@test "what a pod does to its loop device reaches neither the volume's own nor the rest of the node" {
        local own before
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        before=$(losetup --raw --noheadings --output OFFSET,SIZELIMIT,BACK-FILE,RO "$own")
        truncate -s 8M "$BATS_TEST_TMPDIR/theirs"
        is "$(ioctls "$(target)" rw window size name "flexgraft:00000001:00000002:0000000000000003:other" clear set "$BATS_TEST_TMPDIR/theirs")" \
                $'window: done\nsize: 8388608\nname: done\nclear: done\nset: EBUSY'
        is "$(losetup --raw --noheadings --output OFFSET,SIZELIMIT,BACK-FILE,RO "$own")" "$before" "the volume's device"
        is "$(ioctls "$(target)" rw write)" "write: done"
        is "$(head -c 6 "$own")" stolen
        down
        all_gone
        assert_no_guards "$own"
}

@test "what a pod that may only read does to its loop device changes nothing" {
        local own
        CAPABILITY=$BLOCK_WRITER READ_ONLY=true
        new_volume
        up
        own=$(own_device)
        printf 'ours ' | dd of="$own" conv=notrunc,fsync status=none
        truncate -s 8M "$BATS_TEST_TMPDIR/theirs"
        is "$(ioctls "$(target)" ro window clear change "$BATS_TEST_TMPDIR/theirs" set "$BATS_TEST_TMPDIR/theirs" read)" \
                $'window: EPERM\nclear: done\nchange: EINVAL\nset: EBUSY\nread: ours'
        down
        all_gone
}

@test "pods that may only read a block volume have a device each: what one does to its own is not seen by another" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up writer
        printf 'ours ' | dd of="$(target writer)" conv=notrunc,fsync status=none
        READ_ONLY=true publish
        answers OK
        READ_ONLY=true publish pod-2
        answers OK
        # its node can be opened for writing, though it refuses that
        is "$(ioctls "$(target)" rw shift partitions write)" $'shift: done\nflag: done\nreread: EACCES\nwrite: EPERM'
        is "$(ioctls "$(target pod-2)" ro size read)" $'size: 8388608\nread: ours'
        is "$(compgen -G "/sys/block/loop*/loop[0-9][0-9][0-9][0-9]*p*" || :)" "" "partitions on the node"
        unpublish pod-2 && answers OK
        unpublish && answers OK
        down writer
        all_gone
}

@test "a pod that must not have a block volume leaves nothing of it in the record" {
        CAPABILITY=${BLOCK_WRITER/SINGLE_NODE_WRITER/SINGLE_NODE_SINGLE_WRITER}
        new_volume
        up
        # csi-driver would call unmount after it
        helper verbs/mount "$(target pod-2)" '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "targetType": "block", "readOnly": "true", "accessMode": "SINGLE_NODE_SINGLE_WRITER"}'
        assert_field .status Failure
        is "$(jq '.published | length' "$STATE_DIR/volumes/data.json")" 1 "directories in the record"
        is "$(guards_of "$(own_device)" | wc -l)" 1 "loop devices of pods"
        down
        all_gone
}

@test "a pod's device whose mount is lost is the same when it is published again, also while the pod has it open" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        pod_holds_device
        umount "$(target)"
        publish
        answers OK
        is "$(stat -c %Hr:%Lr "$(target)")" "$(stat -c %Hr:%Lr "$NODE")" "the pod's device"
        end_process "$BACKGROUND_PID"
        down
        all_gone
        assert_no_guards "$own"
}

@test "where all would be copied, a block volume that a pod may write has no snapshot before the pod is done" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        printf 'unflushed ' | dd of="$(target)" conv=notrunc status=none
        csi CreateSnapshot '{"name": "monday", "source_volume_id": "data"}'
        answers FAILED_PRECONDITION "in use"
        unpublish
        csi CreateSnapshot '{"name": "monday", "source_volume_id": "data"}'
        answers OK
        is "$(head -c 9 "$STATE_DIR/pools/default/monday.img")" unflushed
        csi DeleteSnapshot '{"snapshot_id": "monday"}'
        answers OK
        down
        all_gone
}

# waits_for_container: no pod gets the block volume while the container has it raw, on /disk; then one does, and nothing is left.
waits_for_container() {
        publish
        answers FAILED_PRECONDITION "in use by" || return 1
        helper mount-remove "$(remove_request /disk)"
        assert_success || return 1
        publish
        answers OK && down && all_gone
}

@test "what a container has raw for writing no pod gets for writing, and the other way round" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$(own_device)\", \"target\": \"/disk\", \"raw\": true}"
        assert_failure EBUSY
        unpublish
        answers OK
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$(own_device)\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        waits_for_container
}

@test "a block volume that is staged stays attached when a container that has it raw, by its name, ends" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        start_container plain
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"$ID\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        stage
        answers OK
        waits_for_container
}

@test "of a block volume one pod may write and another only read" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        READ_ONLY=true publish reader
        answers OK
        is "$(blockdev --getro "$(target)")" 0
        is "$(blockdev --getro "$(target reader)")" 1
        run ! dd if=/dev/zero of="$(target reader)" bs=512 count=1 conv=notrunc,fsync
        printf 'written ' | dd of="$(target)" conv=notrunc,fsync status=none
        is "$(ioctls "$(target reader)" ro read)" "read: written"
        unpublish reader
        answers OK
        down
        all_gone
}

@test "pods that may write to a block volume have one device, which goes with the last" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        publish pod-2
        answers OK
        is "$(stat -c %Hr:%Lr "$(target pod-2)")" "$(stat -c %Hr:%Lr "$(target)")" "the second pod's device"
        unpublish
        answers OK
        printf 'still ' | dd of="$(target pod-2)" conv=notrunc,fsync status=none
        is "$(ioctls "$own" ro read)" "read: still"
        down pod-2
        all_gone
        assert_no_guards "$own"
}

@test "a pod that gets the device of other writers sees all of the volume, also when one of them has moved the window, and that one keeps its view until then" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        printf 'ours ' | dd of="$own" conv=notrunc,fsync status=none
        is "$(ioctls "$(target)" rw shift size)" $'shift: done\nsize: 8384512'
        umount "$(target)"
        publish
        answers OK
        is "$(ioctls "$(target)" ro size)" 'size: 8384512' # its pod may run
        publish pod-2
        answers OK
        is "$(ioctls "$(target pod-2)" ro size read)" $'size: 8388608\nread: ours'
        unpublish
        answers OK
        is "$(ioctls "$(target pod-2)" rw read write)" $'read: ours\nwrite: done'
        is "$(head -c 6 "$own")" stolen
        down pod-2
        all_gone
        assert_no_guards "$own"
}

@test "a process that still has a pod's device keeps it from being taken away, and the volume in use" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        pod_holds_device
        unpublish
        answers FAILED_PRECONDITION "still has the device"
        unstage
        answers FAILED_PRECONDITION
        csi DeleteVolume '{"volume_id": "data"}'
        answers FAILED_PRECONDITION
        end_process "$BACKGROUND_PID"
        down
        all_gone
        assert_no_guards "$own"
}

@test "a file that another program has attached under the number of a pod's device stays attached" {
        local outer
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        outer=$(stat -c %Lr "$(target)")
        outer=/dev/$(basename "$(readlink "/sys/dev/block/7:$outer")")
        # as if an earlier unpublish had been killed between taking the device away and its record
        losetup --detach "/dev/loop$((${outer#/dev/loop} + 1))"
        losetup --detach "$outer" 2>/dev/null || : # it goes with its keeper
        is_free() { ! losetup "$outer" 2>/dev/null; }
        wait_until 10 is_free
        truncate -s 1M "$BATS_TEST_TMPDIR/other"
        wait_until 5 losetup "$outer" "$BATS_TEST_TMPDIR/other" # a number that is free may just be taken away
        unpublish
        answers OK
        is "$(losetup --noheadings --output BACK-FILE "$outer")" "$BATS_TEST_TMPDIR/other"
        losetup --detach "$outer"
        unstage
        answers OK
        all_gone
}

@test "a block volume whose record is lost keeps its pod's device, and it is taken away in the end" {
        local own device
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device) device=$(stat -c %Hr:%Lr "$(target)")
        rm "$STATE_DIR/volumes/$ID.json"
        up
        is "$(stat -c %Hr:%Lr "$(target)")" "$device" "the pod's device"
        is "$(node_mounts_at "$(target)")" 1
        down
        all_gone
        assert_no_guards "$own"
}

@test "the device of a pod is taken away with the volume when its record is lost before the pod ends, unless a process has it" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        pod_holds_device
        rm "$STATE_DIR/volumes/$ID.json"
        unpublish
        answers OK
        unstage
        answers FAILED_PRECONDITION "still has the device"
        end_process "$BACKGROUND_PID"
        unstage
        answers OK
        all_gone
        assert_no_guards "$own"
        csi DeleteVolume '{"volume_id": "data"}'
        answers OK
}

@test "volume-reconcile takes away a pod's device with the volume whose record is lost" {
        local own
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        own=$(own_device)
        rm "$STATE_DIR/volumes/$ID.json"
        unpublish
        answers OK
        helper volume-reconcile '{}'
        assert_success
        assert_no_guards "$own"
        wait_until 5 no_loops_of_driver
}

@test "a pod's loop device on a disk stays when the record of the volume is lost: detach and volume-reconcile do not find it" {
        local guard
        make_device blank
        CAPABILITY=$BLOCK_WRITER ID=disk CONTEXT="\"type\": \"block\", \"source\": \"$DEVICE\""
        up
        guard=$(guards_of "$DEVICE")
        [[ -n $guard ]]
        rm "$STATE_DIR/volumes/$ID.json"
        down
        helper volume-reconcile '{}'
        assert_success
        is "$(guards_of "$DEVICE")" "$guard"
        is "$(node_mounts_at "$(target)")" 0 "mounts at the target"
}

@test "a volume made for a filesystem is no block volume, and the other way round" {
        new_volume
        CAPABILITY=$BLOCK_WRITER stage
        answers INVALID_ARGUMENT
        ID=raw CAPABILITY=$BLOCK_WRITER new_volume
        ID=raw CAPABILITY=$WRITER stage
        answers INVALID_ARGUMENT
        wait_until 5 no_loops_of_test
}

@test "a kind without a device is no block volume" {
        CAPABILITY=$BLOCK_WRITER CONTEXT='"type": "tmpfs"'
        stage
        answers INVALID_ARGUMENT "no device"
}

# ---- inline volumes

@test "an inline volume of a pool is made for the pod and deleted with it" {
        ID=csi-$(printf inline | sha256sum | cut -c1-64) CONTEXT='"size": "16Mi"'
        publish_inline
        answers OK
        publish_inline
        answers OK
        touch "$(target)/file"
        is "$(find "$POOL" -name '*.img' | wc -l)" 1
        stats
        answers OK
        unpublish
        answers OK
        unpublish
        answers OK
        all_gone
        is "$(find "$POOL" -name '*.img' | wc -l)" 0
}

@test "an inline tmpfs has its size and its mode" {
        CONTEXT='"type": "tmpfs", "size": "1Mi", "mode": "0700"' ID=csi-tmpfs
        publish_inline
        answers OK
        is "$(findmnt -bno FSTYPE,SIZE --mountpoint "$(target)" | tr -s ' ')" "tmpfs 1048576"
        unpublish
        answers OK
        all_gone
}

@test "an inline volume that cannot be made leaves nothing" {
        CONTEXT='"size": "16Mi", "pool": "none"' ID=csi-none
        publish_inline
        [[ $code == NOT_FOUND || $code == INVALID_ARGUMENT ]] || { echo "$code $output"; return 1; }
        all_gone
        CONTEXT='' publish_inline
        answers INVALID_ARGUMENT size
        all_gone
}

@test "an inline volume with an attribute that is misspelt, or says nothing for its type, is refused by its name" {
        CONTEXT='"size": "16Mi", "preallocat": "true"' ID=csi-misspelt
        publish_inline
        answers INVALID_ARGUMENT 'attribute "preallocat" (the nearest is preallocate)'
        CONTEXT='"server": "nas.example.org", "shar": "/export"'
        publish_inline
        answers INVALID_ARGUMENT 'attribute "shar" (the nearest is share)'
        for CONTEXT in '"type": "tmpfs", "size": "1Mi", "subDir": "x"' '"type": "nsf", "subDir": "x", "server": "nas.example.org", "share": "/export"'; do
                publish_inline
                answers INVALID_ARGUMENT 'is for volumes of type nfs, with "server" and "share"'
        done
        all_gone
}

@test "an inline volume that an earlier call has made is not deleted when a repeat fails" {
        ID=csi-kept CONTEXT='"size": "16Mi"'
        publish_inline
        answers OK
        touch "$(target)/file"
        umount "$(target)"
        CONTEXT='"size": "16Mi", "mode": "0700"' publish_inline
        answers ABORTED mode # kubelet must unpublish it
        write_policy '"kinds": ["ephemeral"]'
        publish_inline
        answers ABORTED loop
        rm "$FLEXGRAFT_POLICY"
        publish_inline
        answers OK
        [[ -e $(target)/file ]]
        umount "$(target)"
        write_policy '"kinds": []'
        publish_inline
        answers ABORTED
        is "$(find "$POOL" -name '*.img' | wc -l)" 1
        unpublish
        answers OK
        all_gone
        is "$(find "$POOL" -name '*.img' | wc -l)" 0
}

@test "an inline volume is no device of the node, and no directory unless the policy opens it" {
        CONTEXT='"type": "block", "source": "/dev/null"' ID=csi-x
        publish_inline
        answers INVALID_ARGUMENT
        CONTEXT="\"type\": \"bind\", \"source\": \"$BATS_TEST_TMPDIR\""
        publish_inline
        answers PERMISSION_DENIED
        all_gone
}

@test "what a volume's context says of the driver's own options is ignored" {
        new_volume
        CONTEXT+=', "readOnly": "true", "kubernetes.io/pvOrVolumeName": "other", "targetType": "block", "accessMode": "x", "unknown": "1",
                "csi.storage.k8s.io/pv/name": "pv", "storage.kubernetes.io/csiProvisionerIdentity": "1", "ephemeral": "true"'
        up
        touch "$(target)/file"
        down
}

# ---- directories

@test "a volume of a pool of directories is published where it is, and unstaged" {
        directory_pool
        new_volume '"parameters": {"pool": "dirs"}'
        up
        echo content >"$(target)/file"
        stats
        answers OK
        publish pod-2
        answers OK
        is "$(<"$(target pod-2)/file")" content
        unpublish pod-2
        answers OK
        down
        all_gone
        [[ -n $(find "$BATS_TEST_TMPDIR/srv/dirs" -name file) ]]
}

@test "a directory for one pod is not published for a second" {
        directory_pool
        new_volume '"parameters": {"pool": "dirs"}'
        CAPABILITY=$SINGLE
        up
        publish pod-2
        answers FAILED_PRECONDITION "one pod"
        down
        all_gone
}

# ---- NodeGetVolumeStats

@test "stats are bytes and inodes of the filesystem, and that the volume is well" {
        new_volume
        up
        dd if=/dev/zero of="$(target)/file" bs=1M count=1 conv=fsync status=none
        stats
        answers OK
        is "$(usage BYTES total)" "$(($(stat -fc '%b * %S' "$(target)")))"
        (($(usage BYTES used) >= 1 << 20))
        is "$(usage INODES total)" "$(stat -fc %c "$(target)")"
        is "$(usage INODES used)" "$(($(stat -fc '%c - %d' "$(target)")))"
        assert_field .volume_condition.abnormal false
        stats "$(staging)"
        answers OK
        down
}

@test "stats of a block volume are the size of its device" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        stats
        answers OK
        is "$(usage BYTES total)" 8388608
        down
}

@test "stats of a block volume are had where kubelet has mounted a pod's device once more, and where it is another's are NOT_FOUND" {
        local again=$KUBELET/plugins/kubernetes.io/csi/volumeDevices/data/dev/pod-1 other
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        mkdir -p "${again%/*}"
        touch "$again"
        mount --bind "$(target)" "$again"
        stats "$again"
        answers OK
        is "$(usage BYTES total)" 8388608
        umount "$again"
        stats "$again"
        answers NOT_FOUND
        truncate -s 1M "$BATS_TEST_TMPDIR/other"
        other=$(loop_over "$BATS_TEST_TMPDIR/other")
        bed_loops+=("$other")
        mount --bind "$other" "$again"
        stats "$again"
        answers NOT_FOUND
        umount "$again"
        down
}

@test "stats of an unknown volume, or of a path that it is not on, are NOT_FOUND" {
        new_volume
        up
        stats "$BATS_TEST_TMPDIR"
        answers NOT_FOUND
        ID=unknown stats "$(target '' data)"
        answers NOT_FOUND
        stats some/path
        answers NOT_FOUND volume_path
        down
        stats
        answers NOT_FOUND
}

@test "a volume whose filesystem has become read-only is abnormal" {
        new_volume
        up
        mount -o remount,ro "$(staging)"
        stats
        answers OK
        assert_field .volume_condition.abnormal true
        [[ $json == *read-only* ]]
        down
}

# bound_volume DIRECTORY: a pod has the volume of a directory of the node.
bound_volume() {
        CONTEXT="\"type\": \"bind\", \"source\": \"$1\""
        up && stats && answers OK
}

@test "the volume of a directory of the node is not abnormal where that is mounted read-only, by its mount or as a filesystem" {
        local shown=$BATS_TEST_TMPDIR/srv/shown
        mkdir "$shown"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$shown\"]"
        mount -t tmpfs tmpfs "$shown"
        mount -o remount,bind,ro "$shown"
        bound_volume "$shown"
        assert_field '.volume_condition.abnormal' false
        down
        mount -o remount,ro "$shown"
        bound_volume "$shown"
        assert_field '.volume_condition.abnormal' false
        down
        umount "$shown"
}

@test "the volume of a directory of the node is abnormal when the filesystem there has become read-only" {
        local shown=$BATS_TEST_TMPDIR/srv/shown
        mkdir "$shown"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$shown\"]"
        mount -t tmpfs tmpfs "$shown"
        bound_volume "$shown"
        assert_field '.volume_condition.abnormal' false
        mount -o remount,ro "$shown"
        stats
        answers OK
        assert_field '.volume_condition.abnormal' true
        [[ $json == *read-only* ]]
        down
        umount "$shown"
}

# up_behind_program: a pod has the volume of a directory that a program serves, BACKGROUND_PID.
up_behind_program() {
        local behind=$BATS_TEST_TMPDIR/srv/behind
        [[ -n $(type -P bindfs) ]] || skip "no bindfs"
        mkdir "$BATS_TEST_TMPDIR/srv/real" "$behind"
        background bindfs -f "$BATS_TEST_TMPDIR/srv/real" "$behind"
        wait_until 10 mountpoint -q "$behind"
        write_policy "\"kinds\": [\"bind\", \"loop\"], \"sources\": [\"$behind\"]"
        CONTEXT="\"type\": \"bind\", \"source\": \"$behind\""
        up
        stats
        answers OK
        assert_field .volume_condition.abnormal false
}

@test "a volume whose server does not answer is abnormal, and its stats are answered within their time limit" {
        up_behind_program
        stop_process "$BACKGROUND_PID"
        not_hung stats
        answers OK "it does not answer"
        assert_field '[.volume_condition.abnormal, (.usage | length)] | map(tostring) | join(" ")' 'true 0'
        (
                ID=other CONTEXT=''
                new_volume && up && stats && answers OK && assert_field .volume_condition.abnormal false && down
        ) || return 1
        kill -CONT "$BACKGROUND_PID"
        stats
        answers OK
        assert_field .volume_condition.abnormal false
        (($(usage BYTES total) > 0))
        down
}

@test "a volume whose server is gone is abnormal, and is taken away" {
        up_behind_program
        end_process "$BACKGROUND_PID"
        stats
        answers OK "is gone"
        assert_field .volume_condition.abnormal true
        down
        all_gone
}

# ---- NodeExpandVolume

@test "a volume grows while it is mounted, and the same call again changes nothing" {
        CAPABILITY='{"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
        [[ -n $(type -P mkfs.xfs) ]] || skip "no mkfs.xfs"
        CONTEXT='"type": "loop", "size": "300Mi"'
        up
        local before
        before=$(stat -fc %b "$(target)")
        expand $((400 << 20))
        answers OK
        assert_field .capacity_bytes $((400 << 20))
        (($(stat -fc %b "$(target)") > before))
        expand $((400 << 20))
        answers OK
        expand 1
        answers OK
        assert_field .capacity_bytes $((400 << 20))
        down
}

@test "the example's snapshot of a volume that a pod has is taken where all is copied, and another class is told of freeze" {
        local class parameters
        manifest() {
                /usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-manifests.py" --json "$FLEXGRAFT_REPO/deploy/csi/$1" | jq -cr ".[] | $2"
        }
        class=$(manifest examples/claim.yaml 'select(.kind == "VolumeSnapshot") | .spec.volumeSnapshotClassName')
        parameters=$(manifest volumesnapshotclass.yaml "select(.metadata.name == \"$class\") | .parameters // {}")
        new_volume
        up
        csi CreateSnapshot "$(snapshot_request monday data)"
        answers FAILED_PRECONDITION '"freeze" (with CSI in the VolumeSnapshotClass)'
        csi CreateSnapshot "{\"name\": \"monday\", \"source_volume_id\": \"data\", \"parameters\": $parameters}"
        answers OK
        down
}

@test "a volume that rounding would make larger than the limit does not grow on a node either" {
        local size=$((8 << 20))
        new_volume
        up
        csi NodeExpandVolume "{\"volume_id\": \"$ID\", \"volume_path\": \"$(target)\", \"capacity_range\": {\"required_bytes\": $((size + 1)), \"limit_bytes\": $((size + 2))}}"
        answers OUT_OF_RANGE $((size + 4096))
        is "$(stat -c %s "$POOL/data.img")" "$size"
        down
}

@test "of a block volume the device that the pod has grows" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        up
        expand $((16 << 20))
        answers OK
        is "$(blockdev --getsize64 "$(target)")" $((16 << 20))
        down
}

@test "a directory of the node grows without any work while it is staged and while a pod has it, and then not" {
        local source=$BATS_TEST_TMPDIR/srv/real
        mkdir -p "$source"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$source\"]"
        CONTEXT="\"type\": \"bind\", \"source\": \"$source\""
        stage
        answers OK
        expand $((16 << 20)) "$(staging)"
        answers OK
        assert_field .capacity_bytes $((16 << 20))
        expand $((16 << 20))
        answers NOT_FOUND
        publish
        answers OK
        expand $((16 << 20))
        answers OK
        assert_field .capacity_bytes $((16 << 20))
        down
        expand $((16 << 20))
        answers NOT_FOUND
        all_gone
}

# starts_without_growing BYTES WHY: it is refused to grow, staged (as a kubelet of 1.20 asks) and published (as later ones), with the code after
# which kubelet goes on.
starts_without_growing() {
        stage
        answers OK || return 1
        expand "$1" "$(staging)"
        answers FAILED_PRECONDITION "$2" || return 1
        publish
        answers OK || return 1
        expand "$1"
        answers FAILED_PRECONDITION "$2"
}

@test "a device that is in no pool does not grow, whether it is staged or a pod has it, and starts pods: FAILED_PRECONDITION" {
        local device
        truncate -s 8M "$BATS_TEST_TMPDIR/disk"
        device=$(loop_over "$BATS_TEST_TMPDIR/disk")
        bed_loops+=("$device")
        CONTEXT="\"type\": \"block\", \"source\": \"$device\""
        CAPABILITY=$BLOCK_WRITER
        starts_without_growing $((16 << 20)) "is in no pool"
        down
        expand $((16 << 20))
        answers NOT_FOUND
}

@test "a volume for whose growth the pool has no room starts pods all the same, the first and a second one: FAILED_PRECONDITION" {
        make_pool_in_memory fast 64m
        new_volume '"parameters": {"pool": "fast"}'
        starts_without_growing $((1 << 30)) "room for"
        stats
        answers OK
        publish pod-2
        answers OK
        expand $((1 << 30)) "$(target pod-2)"
        answers FAILED_PRECONDITION "room for"
        unpublish pod-2
        answers OK
        down
        all_gone
}

@test "a block volume for whose growth the pool has no room starts pods all the same: FAILED_PRECONDITION" {
        make_pool_in_memory fast 64m
        CAPABILITY=$BLOCK_WRITER
        new_volume '"parameters": {"pool": "fast"}'
        up
        expand $((1 << 30))
        answers FAILED_PRECONDITION "room for"
        down
        all_gone
}

@test "a volume that a driver without the capability for it cannot grow starts pods all the same: FAILED_PRECONDITION" {
        csi_stop
        HELPER_PREFIX=(setpriv --bounding-set -sys_resource --inh-caps -sys_resource)
        csi_start
        new_volume
        starts_without_growing $((16 << 20)) SYS_RESOURCE # of ext4
        down
        all_gone
}

@test "a volume for whose growth the pool has no room is OUT_OF_RANGE once kubelet has measured it for a pod" {
        make_pool_in_memory fast 64m
        new_volume '"parameters": {"pool": "fast"}'
        up
        stats "$(target pod-2)"
        answers NOT_FOUND
        expand $((1 << 30))
        answers FAILED_PRECONDITION "room for"
        stats
        answers OK
        expand $((1 << 30))
        answers OUT_OF_RANGE "room for" # kubelet tells the claim that a smaller size ends it
        down
        all_gone
}

@test "a copy that is larger than its source has a filesystem of its own size, also if that is staged already" {
        local before
        [[ -n $(type -P mkfs.xfs) ]] || skip "no mkfs.xfs" # a mounted ext4 grows only with CAP_SYS_RESOURCE
        CAPABILITY='{"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
        make_pool_in_memory large 2g
        SIZE=$((300 << 20)) new_volume '"parameters": {"pool": "large"}'
        up
        echo text >"$(target)/file"
        before=$(stat -f -c %b "$(target)")
        down
        csi CreateSnapshot '{"name": "monday", "source_volume_id": "data"}'
        answers OK
        ID=copy
        SIZE=$((400 << 20)) new_volume '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        cp "$STATE_DIR/provisioned/copy.json" "$BATS_TEST_TMPDIR/record"
        is "$(jq .filesystemGrows "$BATS_TEST_TMPDIR/record")" true
        up
        is "$(<"$(target)/file")" text
        (($(stat -f -c %b "$(target)") > before + (90 << 20) / 4096))
        is "$(jq .filesystemGrows "$STATE_DIR/provisioned/copy.json")" false
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/copy.json"
        stage # mounted, and not grown as far as its record says
        answers OK
        is "$(jq .filesystemGrows "$STATE_DIR/provisioned/copy.json")" false
        down
        all_gone
}

@test "a copy whose filesystem cannot grow is staged with the one that it has" {
        new_volume
        up
        echo text >"$(target)/file"
        down
        csi CreateSnapshot '{"name": "monday", "source_volume_id": "data"}'
        answers OK
        ID=copy
        SIZE=$((16 << 20)) new_volume '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        mount --bind "$(type -P false)" "$(realpath /sbin/resize2fs)"
        up
        is "$(<"$(target)/file")" text
        is "$(jq .filesystemGrows "$STATE_DIR/provisioned/copy.json")" true
        umount "$(realpath /sbin/resize2fs)"
        down
        all_gone
}

@test "an unknown volume does not grow: NOT_FOUND" {
        expand $((16 << 20))
        answers NOT_FOUND
        expand $((16 << 20)) some/path
        answers NOT_FOUND
        csi NodeExpandVolume "{\"volume_id\": \"v\", \"volume_path\": \"/v\", \"capacity_range\": {\"required_bytes\": 2, \"limit_bytes\": 1}}"
        answers OUT_OF_RANGE
}

# ---- secrets

@test "secrets are in no argument, log, record or answer" {
        SECRETS='{"password": "hunter2-secret"}'
        new_volume
        strace_driver execve,write,sendto,sendmsg
        stage && answers OK
        publish && answers OK
        ID=other CONTEXT='"type": "loop"' stage
        [[ $code != OK && $output != *hunter2* ]]
        ID=data
        down
        strace_end
        grep -q mountdevice "$TRACE"
        run ! grep -q hunter2 "$TRACE"
        run ! grep -rq hunter2 "$STATE_DIR" "$LOG" "$BATS_TEST_TMPDIR/csi.err"
}

# strace_driver CALLS, strace_end: what the driver and all that it starts call, in TRACE.
strace_driver() {
        [[ -n $(type -P strace) ]] || skip "no strace"
        TRACE=$BATS_TEST_TMPDIR/trace
        local pid arguments=()
        for pid in $(pgrep -f "csi-driver --endpoint $CSI_SOCKET"); do
                arguments+=(-p "$pid")
        done
        strace -f -s 65536 -e "trace=$1" -o "$TRACE" "${arguments[@]}" 2>"$BATS_TEST_TMPDIR/strace.err" 3>&- &
        bed_pids+=($!)
        STRACE=$!
        strace_follows() { (($(grep -c attached "$BATS_TEST_TMPDIR/strace.err") * 2 >= ${#arguments[@]})); }
        wait_until 10 strace_follows
}

strace_end() {
        kill -INT "$STRACE"
        wait "$STRACE" || :
}

# ---- beside a FlexVolume driver, whose volumes kubelet knows by their names alone

# directory_pool: the pool "dirs".
directory_pool() {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
}

# no_pod_gets_it MORE...: a pod of another namespace names a FlexVolume volume like the volume; MORE are its options.
no_pod_gets_it() {
        local driver
        for driver in flexgraft~tmpfs flexgraft~flexgraft; do
                install_driver "$driver"
                second_pod "$ID" other
                assert_refused "the CSI driver's" || return 1
        done
        second_pod "$ID" other "$@"
        assert_refused "the CSI driver's" || return 1
        is "$(node_mounts_at "$(pod_dir "$ID" pod-2)")" 0
}

# it_is_not_had: while it is not staged, by what kubelet calls of a FlexVolume volume first, which names no pod; in whatever words.
it_is_not_had() {
        local dir options
        dir=$(global_dir "$ID")
        install_driver flexgraft~flexgraft
        for options in type=loop "type=loop image=$ID.img" "type=loop pool=default image=$ID.img" type=tmpfs; do
                # shellcheck disable=SC2086 # the words of the options
                call attach "$(spec "$ID" $options)" "$NODE"
                assert_refused "the CSI driver's" || return 1
                make_dir "$dir"
                # shellcheck disable=SC2086
                call mountdevice "$dir" /dev/loop0 "$(spec "$ID" $options)"
                assert_refused "the CSI driver's" || return 1
        done
        install_driver flexgraft~tmpfs
        second_pod "$ID" other
        assert_refused "the CSI driver's" || return 1
        assert_no_loops
}

# bats test_tags=deep
@test "a volume that CSI made is never a FlexVolume volume of its name, staged or not" {
        new_volume
        it_is_not_had
        up
        no_pod_gets_it type=loop
        down
        it_is_not_had
        up
        down
}

@test "a directory that CSI made is never a FlexVolume volume of its name" {
        directory_pool
        new_volume '"parameters": {"pool": "dirs"}'
        install_driver flexgraft~flexgraft
        second_pod "$ID" other type=directory
        assert_refused "the CSI driver's"
        up
        no_pod_gets_it type=directory
        down
}

@test "a volume that volume-create made is CSI's when CSI has had it first" {
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        up
        no_pod_gets_it type=loop
        down
        it_is_not_had
        up
        down
}

@test "an image that no call made is CSI's when CSI has had it first" {
        mkdir -p "$POOL"
        truncate -s 16M "$POOL/data.img"
        CONTEXT='"type": "loop"'
        up
        no_pod_gets_it type=loop
        down
        install_driver flexgraft~flexgraft
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused "the CSI driver's" "setfattr -x trusted.flexgraft.namespace" "/data.img"
        assert_no_loops
        write_policy '"images": ["default"]'
        call attach "$(spec other type=loop image=data.img)" "$NODE"
        assert_refused "the CSI driver's"
        assert_no_loops
        up
        down
}

@test "an image that can keep no attribute is staged all the same" {
        mkdir -p "$POOL"
        truncate -s 16M "$POOL/data.img"
        mkfs.ext4 -q "$POOL/data.img"
        chattr +i "$POOL/data.img" 2>/dev/null || skip "this filesystem has no such attribute"
        CONTEXT='"type": "loop"' CAPABILITY=$READER
        local result=0
        { up && down; } || result=1
        chattr -i "$POOL/data.img"
        is "$result" 0
}

@test "a volume of CSI that volume-delete retains is CSI's still" {
        new_volume '"parameters": {"reclaimPolicy": "retain"}'
        up
        down
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers OK
        install_driver flexgraft~flexgraft
        call attach "$(spec "$ID" type=loop)" "$NODE"
        assert_refused "the CSI driver's"
}

@test "verbs that a person calls make no volume CSI's" {
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        make_dir "$BATS_TEST_TMPDIR/by-hand"
        helper verbs/mountdevice "$BATS_TEST_TMPDIR/by-hand" "" '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop"}'
        assert_success
        helper verbs/unmountdevice "$BATS_TEST_TMPDIR/by-hand"
        assert_success
        helper verbs/detach data ""
        assert_success
        declare -gA SPECS=() DEVICES=()
        install_driver flexgraft~flexgraft
        lifecycle_up data type=loop
        lifecycle_down data
}

@test "a FlexVolume driver that is told to detach a volume of CSI leaves it attached" {
        CAPABILITY=$BLOCK_WRITER new_volume
        CAPABILITY=$BLOCK_WRITER
        stage
        answers OK
        install_driver flexgraft~flexgraft
        kubelet_detach "$ID"
        publish
        answers OK
        down
}

@test "a directory that pods of a namespace have had by FlexVolume stays theirs when CSI has had it" {
        directory_pool
        helper volume-create '{"name": "data", "size": "8m", "pool": "dirs"}'
        assert_success
        install_driver flexgraft~flexgraft
        second_pod data default type=directory
        assert_success
        kubelet_unpublish data pod-2
        up pod-1 default
        down
        second_pod data other type=directory
        assert_refused "namespace default" "namespace other"
        second_pod data default type=directory
        assert_success
        kubelet_unpublish data pod-2
}

# bats test_tags=deep
@test "a volume that pods of a namespace have had by FlexVolume stays theirs when CSI has had it" {
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        declare -gA SPECS=() DEVICES=()
        install_driver flexgraft~flexgraft
        lifecycle_up data type=loop
        lifecycle_down data
        up pod-1 default
        down
        a_life_later data type=loop
        second_pod data other type=loop
        assert_refused "namespace default" "namespace other"
        second_pod data default type=loop
        assert_success
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
}

# bats test_tags=deep
@test "a volume that pods of a namespace have had by FlexVolume is CSI's once CSI's pods are of another namespace" {
        directory_pool
        helper volume-create '{"name": "data", "size": "8m"}'
        assert_success
        helper volume-create '{"name": "dir", "size": "8m", "pool": "dirs"}'
        assert_success
        declare -gA SPECS=() DEVICES=()
        install_driver flexgraft~flexgraft
        lifecycle_up data type=loop
        lifecycle_down data
        second_pod dir default type=directory
        assert_success
        kubelet_unpublish dir pod-2
        up pod-1 shop
        second_pod data default type=loop
        assert_refused "the CSI driver's"
        down
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused "the CSI driver's"
        ID=dir
        up pod-1 shop
        down
        second_pod dir default type=directory
        assert_refused "the CSI driver's"
}
