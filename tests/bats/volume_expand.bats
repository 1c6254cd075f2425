#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-expand: the backing, the device and the filesystem grow, whoever has the volume.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
bats_require_minimum_version 1.5.0

MIB=1048576

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs volume-expand
        # on the disk: a btrfs grows to 256 MiB at least
        POOL=$BATS_TEST_TMPDIR/disk
        mkdir "$POOL"
        printf '{"name": "disk", "type": "loop", "path": "%s"}\n' "$POOL" >"$FLEXGRAFT_POOLS/disk.json"
}

teardown() {
        driver_teardown
}

expand() {
        helper volume-expand "$1"
}

expanded() {
        expand "$1"
        assert_success
}

# make_volume TYPE MIB: the volume "data" of the pool "disk", sparse, which the driver has formatted.
make_volume() {
        created "{\"name\": \"data\", \"size\": \"$2m\", \"pool\": \"disk\", \"fsType\": \"$1\", \"parameters\": {\"preallocate\": \"false\"}}"
}

# attach_volume: as kubelet does it, without a pod.
attach_volume() {
        kubelet_attach data type=loop && kubelet_stage data
}

detach_volume() {
        kubelet_unstage data && kubelet_detach data
}

# has_grown FILESYSTEM_DIR BEFORE: by more than half of 64 MiB.
has_grown() {
        (($(size_of "$1") > $2 + 32 * MIB))
}

@test "the larger image is on the disk before the record says how large it is" {
        local log=$BATS_TEST_TMPDIR/log
        make_volume ext4 8
        at_syscall --log "$log" "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": "16m"}'
        assert_success
        awk '$3 == "ftruncate" { fd = $4 } $3 == "fsync" && fd != "" && $4 == fd { synced = 1 } $3 == "renameat" && synced { written = 1 } END { exit !written }' "$log"
}

@test "a volume that kubelet has mounted grows with its device and its filesystem" {
        local before
        make_volume btrfs 128
        attach_volume
        before=$(size_of "$(global_dir data)")
        expanded '{"name": "data", "size": "320m"}'
        assert_field .filesystem btrfs
        assert_field .sizeBefore $((128 * MIB))
        assert_field .volume.size $((320 * MIB))
        is "$(stat -c %s "$POOL/data.img") $(blockdev --getsize64 "${DEVICES[data]}")" "$((320 * MIB)) $((320 * MIB))"
        has_grown "$(global_dir data)" "$before"
        detach_volume
}

@test "a volume that only a container has mounted grows" {
        local before device
        needs mount-block
        make_volume btrfs 128
        attach_volume
        device=${DEVICES[data]}
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$device\", \"target\": \"/data\"}"
        assert_success
        umount "$(global_dir data)" # unmountdevice would wait for the container
        is "$(mounts_here | grep -c "$(global_dir data)\$")" 0
        before=$(in_container stat -f -c '%b' /data)
        node_snapshot
        expanded '{"name": "data", "size": "320m"}'
        (($(in_container stat -f -c '%b' /data) > before))
        assert_node_unchanged
        is "$(blockdev --getsize64 "$device")" $((320 * MIB))
        # again: nothing to do
        before=$(in_container stat -f -c '%b' /data)
        expanded '{"name": "data", "size": "320m"}'
        is "$(in_container stat -f -c '%b' /data)" "$before"
        stop_container
        kubelet_detach data
}

# sizes_seen PID...: how many blocks each container has at /data.
sizes_seen() {
        local pid
        for pid; do
                use_container "$pid"
                in_container stat -f -c %b /data
        done
}

@test "a volume that mount-volume has mounted in containers grows, and each of them sees it" {
        local pids=() before
        needs mount-volume
        make_volume xfs 300
        start_container plain
        pids+=("$CONTAINER_PID")
        mount_volume data /data
        assert_success
        start_container plain 300000
        pids+=("$CONTAINER_PID")
        mount_volume data /data
        assert_success
        in_container sh -c 'echo text >/data/file'
        before=$(sizes_seen "${pids[0]}")
        is "$(sizes_seen "${pids[@]}")" "$before"$'\n'"$before"
        node_snapshot
        expanded '{"name": "data", "size": "400m"}'
        assert_field .filesystem xfs
        assert_node_unchanged
        is "$(sizes_seen "${pids[@]}" | awk -v before="$before" '{ print ($1 > before) }')" $'1\n1'
        use_container "${pids[0]}"
        is "$(in_container cat /data/file)" text
        remove_mount /data
        assert_success
        use_container "${pids[1]}"
        remove_mount /data
        assert_success
        is_away data
        run -0 xfs_repair -n "$POOL/data.img"
}

@test "volume-expand of what mount-volume has mounted, interrupted, leaves a filesystem that is whole, and again it grows" {
        local before
        needs mount-volume
        make_volume xfs 300
        start_container plain
        mount_volume data /data
        assert_success
        in_container sh -c 'echo text >/data/file'
        before=$(sizes_seen "$CONTAINER_PID")
        HELPER_PREFIX=(env --default-signal=INT) # whoever runs the tests may ignore it
        at_syscall --at ftruncate --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": "400m"}'
        is "$AT_REACHED" 1
        HELPER_PREFIX=()
        is "$(in_container cat /data/file)" text
        expanded '{"name": "data", "size": "400m"}'
        (($(sizes_seen "$CONTAINER_PID") > before))
        is "$(in_container cat /data/file)" text
        remove_mount /data
        assert_success
        is_away data
        run -0 xfs_repair -n "$POOL/data.img"
}

@test "an xfs grows while it is mounted" {
        local before
        make_volume xfs 300
        attach_volume
        before=$(size_of "$(global_dir data)")
        expanded '{"name": "data", "size": "400m"}'
        has_grown "$(global_dir data)" "$before"
        detach_volume
        run -0 xfs_repair -n "$POOL/data.img"
}

# bats test_tags=kernel
@test "an ext4 grows while it is mounted, and while it is not" {
        local before
        can_grow_ext4 || skip "growing an ext4 needs CAP_SYS_RESOURCE, which root has not got here"
        make_volume ext4 32
        attach_volume
        before=$(size_of "$(global_dir data)")
        expanded '{"name": "data", "size": "96m"}'
        has_grown "$(global_dir data)" "$before"
        before=$(size_of "$(global_dir data)")
        detach_volume
        expanded '{"name": "data", "size": "160m"}'
        attach_volume
        has_grown "$(global_dir data)" "$before"
        detach_volume
        run -0 e2fsck -fn "$POOL/data.img"
}

@test "an unused volume grows with its filesystem, and nothing of it stays attached" {
        local before
        make_volume btrfs 128
        attach_volume
        before=$(size_of "$(global_dir data)")
        detach_volume
        expanded '{"name": "data", "size": "320m"}'
        assert_field .filesystem btrfs
        wait_until 5 no_loops_of_driver
        is "$(volume_records)" ''
        run -0 btrfs check --readonly "$POOL/data.img"
        attach_volume
        has_grown "$(global_dir data)" "$before"
        detach_volume
}

@test "a volume without a filesystem yet grows" {
        make_volume btrfs 128
        expanded '{"name": "data", "size": "320m"}'
        assert_field .filesystem null
        is "$(stat -c %s "$POOL/data.img")" $((320 * MIB))
        wait_until 5 no_loops_of_driver
}

@test "of a block volume the device grows, and its content stays" {
        created '{"name": "data", "size": "8m", "targetType": "block"}'
        kubelet_attach data type=loop
        printf text >"${DEVICES[data]}"
        expanded '{"name": "data", "size": "16m"}'
        assert_field .filesystem null
        is "$(blockdev --getsize64 "${DEVICES[data]}") $(head -c 4 "${DEVICES[data]}")" "$((16 * MIB)) text"
        kubelet_detach data
}

@test "a container that has a block volume itself sees it grow" {
        local guard
        needs mount-block mount-remove
        created '{"name": "data", "size": "8m", "pool": "disk", "targetType": "block"}'
        kubelet_attach data type=loop
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        guard=$(losetup --list --noheadings --output NAME,BACK-FILE | awk -v on="${DEVICES[data]}" '$2 == on { print $1 }')
        is "$(blockdev --getsize64 "$guard")" $((8 * MIB))
        expanded '{"name": "data", "size": "16m"}'
        is "$(blockdev --getsize64 "$guard")" $((16 * MIB))
        helper mount-remove "$(remove_request /disk)"
        assert_success
        kubelet_detach data
}

@test "an image that has all its blocks gets those that it grows by" {
        created '{"name": "data", "size": "8m", "pool": "disk"}'
        expanded '{"name": "data", "size": "16m"}'
        (($(allocated "$POOL/data.img") >= 16 * MIB))
        created '{"name": "sparse", "size": "8m", "pool": "disk", "parameters": {"preallocate": "false"}}'
        expanded '{"name": "sparse", "size": "16m"}'
        (($(allocated "$POOL/sparse.img") < 8 * MIB))
}

@test "an image that has all its blocks gets those that expandvolume makes it grow by" {
        created '{"name": "data", "size": "8m", "pool": "disk"}'
        kubelet_attach data type=loop
        call expandvolume "$(spec data type=loop)" "$(global_dir data)" $((16 * MIB)) $((8 * MIB))
        assert_success
        (($(allocated "$POOL/data.img") >= 16 * MIB))
        kubelet_detach data
}

@test "the same size twice is no change, and a smaller one is refused" {
        created '{"name": "data", "size": "8m", "pool": "disk"}'
        expanded '{"name": "data", "size": 12345678}'
        assert_field .volume.size $(((12345678 + 4095) / 4096 * 4096))
        expanded '{"name": "data", "size": 12345678}'
        assert_field '.sizeBefore == .volume.size' true
        expand '{"name": "data", "size": "8m"}'
        refused EINVAL "never shrinks" "$(((12345678 + 4095) / 4096 * 4096))" 8388608
        is "$(stat -c %s "$POOL/data.img")" $(((12345678 + 4095) / 4096 * 4096))
}

@test "volume-create says of an expanded volume that it exists, with its new size" {
        created '{"name": "data", "size": "8m", "pool": "disk"}'
        expanded '{"name": "data", "size": "16m"}'
        created '{"name": "data", "size": "16m", "pool": "disk"}'
        existed true
}

@test "a volume grows as far as its pool has room" {
        local before
        make_pool fast '"maxPercent": 10'
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        before=$(available fast)
        expand "{\"name\": \"data\", \"size\": $((8 * MIB + before + 4096))}"
        refused ENOSPC fast "$before"
        is "$(stat -c %s "$POOL_DIR/data.img")" $((8 * MIB))
        expanded "{\"name\": \"data\", \"size\": $((8 * MIB + before))}"
        is "$(available fast)" 0
}

@test "a volume that does not exist, and a request without a size, are refused" {
        expand '{"name": "data", "size": "8m"}'
        refused ENOENT "no volume of this name"
        expand '{"name": "data"}'
        refused_key size
        expand '{"size": "8m"}'
        refused_key name
}

@test "a volume does not grow beyond the limit of the request, which is what its pool would make of the size" {
        created '{"name": "data", "size": "8m"}'
        expand '{"name": "data", "size": 8388609, "limit": 8388610}'
        refused ERANGE 8392704
        expanded '{"name": "data", "size": 8388609, "limit": 8392704}'
        assert_field '[.sizeBefore, .volume.size] | map(tostring) | join(" ")' "8388608 8392704"
}

@test "a volume whose only mount is read-only is refused, and grows when that is gone" {
        make_volume btrfs 128
        attach_volume
        detach_volume
        kubelet_attach data type=loop @readwrite=ro
        kubelet_stage data
        expand '{"name": "data", "size": "320m"}'
        refused EBUSY read-only
        detach_volume
        expanded '{"name": "data", "size": "320m"}'
        assert_field .filesystem btrfs
}

@test "a btrfs that would have less than 256 MiB stays as it was, which the message says, and grows with a larger size" {
        local before
        make_volume btrfs 128
        attach_volume
        before=$(size_of "$(global_dir data)")
        expand '{"name": "data", "size": "200m"}'
        refused EINVAL "256 MiB at least" "209715200 bytes"
        is "$(size_of "$(global_dir data)")" "$before"
        expanded '{"name": "data", "size": "256m"}'
        has_grown "$(global_dir data)" "$before"
        detach_volume
}

@test "in words: volume-expand NAME SIZE" {
        created '{"name": "data", "size": "8m", "pool": "disk"}'
        helper volume-expand data 16m
        assert_success
        assert_field .volume.size $((16 * MIB))
}
