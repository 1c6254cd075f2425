#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-snapshot: snapshots of volumes, also while they are written to; volumes made of them, and back to them.

load helpers
load driver_helpers
load volume_helpers
load snapshot_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs volume-snapshot
}

teardown() {
        snapshot_teardown
}

# ---- taken

@test "a snapshot of a mounted volume has what was written before it, and nothing that was written after it" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        echo before >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        assert_field .existed false
        assert_field .volume.snapshotOf data
        assert_field '.volume.size' $((32 << 20))
        echo after >"$(global_dir data)/file"
        created '{"name": "copy", "from": "monday"}'
        mount_volume copy
        is "$(<"$(global_dir copy)/file")" before
        unmount_volume copy
        unmount_volume data
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
}

@test "a snapshot of a volume that only a container has mounted is clean" {
        needs mount-block
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        chown 1000 "$(global_dir data)"
        chmod 0700 "$(global_dir data)"
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/data\"}"
        assert_success
        umount "$(global_dir data)" # unmountdevice would wait for the container
        in_container sh -c 'echo text >/data/file' || :
        mounts=$(mounts_here)
        snapped '{"name": "data", "snapshot": "monday"}'
        is "$(mounts_here)" "$mounts"
        in_container sh -c 'echo again >/data/file'
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
        stop_container
        kubelet_detach data
}

@test "a snapshot of an unused volume is taken, also where the filesystem cannot share blocks" {
        make_pool fast
        make_mounted ext4 16m
        echo text >"$(global_dir data)/file"
        unmount_volume data
        snapped '{"name": "data", "snapshot": "monday"}'
        cmp "$POOL_DIR/data.img" "$POOL_DIR/monday.img"
        # what is no data is a hole there, too
        (($(allocated "$POOL_DIR/monday.img") < 8 << 20))
}

@test "where all would be copied, a mounted volume is refused, unless it is to be frozen that long" {
        make_pool fast
        make_mounted ext4 16m
        echo text >"$(global_dir data)/file"
        snap '{"name": "data", "snapshot": "monday"}'
        refused EBUSY mounted freeze
        is "$(images "$POOL_DIR") $(provisioned)" "data.img data.json"
        snapped '{"name": "data", "snapshot": "monday", "freeze": true}'
        can_write "$(global_dir data)"
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
        unmount_volume data
}

@test "the same snapshot twice is one, and of another volume it is refused" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        created '{"name": "other", "size": "8m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        inode=$(stat -c %i "$POOL_DIR/monday.img")
        snapped '{"name": "data", "snapshot": "monday"}'
        assert_field .existed true
        is "$(stat -c %i "$POOL_DIR/monday.img")" "$inode"
        snap '{"name": "other", "snapshot": "monday"}'
        refused EEXIST "a snapshot of data"
        snap '{"name": "data", "snapshot": "other"}'
        refused EEXIST "a volume"
        snap '{"name": "monday", "snapshot": "tuesday"}'
        refused EINVAL "snapshot itself"
        snap '{"name": "nonesuch", "snapshot": "tuesday"}'
        refused ENOENT nonesuch
}

@test "volume-create does not take a snapshot for the volume of its name" {
        created '{"name": "data", "size": "1m"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        create '{"name": "monday", "size": "1m"}'
        refused EEXIST 'a snapshot of data'
        create '{"name": "monday", "from": "data"}'
        refused EEXIST 'a snapshot of data'
        removed '{"name": "monday"}'
        created '{"name": "monday", "size": "1m"}'
}

@test "a snapshot of an earlier volume of the name is none of a new one, and is not restored to it" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        removed '{"name": "data"}'
        snapped '{"name": "data", "snapshot": "monday"}' # it was taken, and its volume is gone
        assert_field .existed true
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        snap '{"name": "data", "snapshot": "monday"}'
        refused EEXIST 'a snapshot of an earlier volume "data"'
        snap '{"name": "data", "restore": "monday"}'
        refused EINVAL 'a snapshot of an earlier volume "data"'
        created '{"name": "old", "from": "monday"}'
}

@test "volume-list shows snapshots, and volume-delete deletes them" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        listed '{"pool": "fast"}'
        json=$output
        is "$(volume_names)" "data monday"
        assert_field '.volumes[1] | .snapshotOf, (.taken > 1600000000)' $'data\ntrue'
        removed '{"name": "data"}'
        created '{"name": "data", "from": "monday"}'
        removed '{"name": "monday"}'
        is "$(images "$POOL_DIR")" data.img
}

@test "a snapshot is neither attached nor grown" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        call attach "$(spec monday type=loop)" "$NODE"
        assert_refused "snapshot of data"
        call attach "$(spec monday type=loop pool=fast image=monday.img)" "$NODE"
        assert_refused "snapshot of data"
        helper volume-expand '{"name": "monday", "size": "16m"}'
        refused EINVAL snapshot
        is "$(loops_of_driver)" ''
}

# unfinished NAME STAGE: the volume's record is as a killed call leaves it that made it (creating), or deleted it (deleting).
unfinished() {
        sed -i "s/\"stage\":\"[a-z]*\"/\"stage\":\"$2\"/" "$STATE_DIR/provisioned/$1.json"
}

@test "of a volume that is half made or half deleted nothing is copied, and no such snapshot is restored" {
        local stage
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        for stage in creating deleting; do
                unfinished data "$stage"
                snap '{"name": "data", "snapshot": "tuesday"}'
                refused EBUSY "has not finished"
                create '{"name": "copy", "from": "data"}'
                refused EBUSY "has not finished"
                unfinished data created
                unfinished monday "$stage"
                snap '{"name": "data", "restore": "monday"}'
                refused EBUSY "has not finished"
                create '{"name": "copy", "from": "monday"}'
                refused EBUSY "has not finished"
                unfinished monday created
        done
        is "$(images "$POOL_DIR")" $'data.img\nmonday.img'
}

@test "modify changes neither a snapshot nor a volume that is half made or half deleted" {
        local stage
        created '{"name": "data", "size": "1m"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        create '{"name": "monday", "modify": true, "reclaimPolicy": "retain"}'
        refused EINVAL "it is a snapshot"
        for stage in creating deleting; do
                unfinished data "$stage"
                create '{"name": "data", "modify": true, "reclaimPolicy": "retain"}'
                refused EBUSY "has not finished"
        done
        unfinished data created
        is "$(jq -r .reclaimPolicy "$STATE_DIR"/provisioned/{data,monday}.json)" $'delete\ndelete'
}

@test "of a volume whose formatting was interrupted there is no snapshot before it is mounted" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "32m", "pool": "fast", "fsType": "ext4"}'
        kubelet_attach data type=loop
        edit_record data ".formatting = \"$(image_identity "$POOL_DIR/data.img")\""
        snap '{"name": "data", "snapshot": "monday"}'
        refused EBUSY "mount it once"
        is "$(images "$POOL_DIR")" data.img
        kubelet_stage data
        snapped '{"name": "data", "snapshot": "monday"}'
        unmount_volume data
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
}

@test "a snapshot has what a process has written to the volume's device, also what is not on the disk yet" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast", "targetType": "block"}'
        kubelet_attach data type=loop
        exec 9<>"${DEVICES[data]}"
        printf unflushed >&9
        snapped '{"name": "data", "snapshot": "monday"}'
        exec 9>&-
        is "$(head -c 9 "$POOL_DIR/monday.img")" unflushed
        kubelet_detach data
}

@test "what a snapshot has is on the disk before its record says that it is whole" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        # once when the image is made, and once when it has its content
        in_order '/fsync\(.*\/monday\.img>/ { synced++ } /rename.*\/provisioned>/ { ended = synced > 1 }' \
                volume-snapshot '{"name": "data", "snapshot": "monday"}'
}

@test "what is restored, and its name, is on the disk before the volume's record says that it is whole" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        in_order '/fsync\(.*\/\.data\.img\.restored>/ { content = 1 } /rename.*\/fast>/ && content { renamed = 1 }
                        /fsync\(.*\/fast>/ && renamed { name = 1 } /rename.*\/provisioned>/ { ended = name }' \
                volume-snapshot '{"name": "data", "restore": "monday"}'
}

@test "that an image is blank, or gone, is on the disk before the record of its volume goes" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        in_order '/fsync\(.*\/data\.img>/ { blank = 1 } /unlink.*\/provisioned>/ { ended = blank }' \
                volume-delete '{"name": "data", "reclaimPolicy": "recycle"}'
        created '{"name": "other", "size": "1m", "pool": "fast"}'
        in_order '/unlink.*\/fast>/ { unlinked = 1 } /fsync\(.*\/fast>/ && unlinked { gone = 1 } /unlink.*\/provisioned>/ { ended = gone }' \
                volume-delete '{"name": "other"}'
}

@test "that a recycled image is of no Kubernetes namespace is on the disk before the record of its volume goes" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        setfattr -n trusted.flexgraft.namespace -v team "$POOL_DIR/data.img"
        in_order '/fremovexattr.*\/data\.img>/ { free = 1 } /fsync\(.*\/data\.img>/ && free { synced = 1 } /unlink.*\/provisioned>/ { ended = synced }' \
                volume-delete '{"name": "data", "reclaimPolicy": "recycle"}'
        is "$(getfattr --only-values -n trusted.flexgraft.namespace --absolute-names "$POOL_DIR/data.img" 2>&1 || :)" \
                "$POOL_DIR/data.img: trusted.flexgraft.namespace: No such attribute"
}

# ---- copies

@test "a volume is made of another that is unused, and one in use is refused" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        echo text >"$(global_dir data)/file"
        create '{"name": "copy", "from": "data"}'
        refused EBUSY volume-snapshot
        unmount_volume data
        created '{"name": "copy", "from": "data", "size": "64m"}'
        assert_field .volume.copyOf data
        assert_field .volume.size $((64 << 20))
        is "$(stat -c %s "$POOL_DIR/copy.img")" $((64 << 20))
        created '{"name": "copy", "from": "data"}'
        existed true
        create '{"name": "copy", "from": "other"}'
        refused EEXIST
        mount_volume copy
        is "$(<"$(global_dir copy)/file")" text
        unmount_volume copy
        create '{"name": "small", "from": "data", "size": "8m"}'
        refused ERANGE
        create '{"name": "copy2", "from": "data", "fsType": "xfs"}'
        refused_key fsType
}

# make_two_pools: "fast", with the volume "data" of 16 MiB, which is formatted and has the text "before" in a file, and its snapshot "monday"; and
# "slow", in SLOW_DIR.
make_two_pools() {
        make_pool slow
        SLOW_DIR=$POOL_DIR
        make_pool fast
        make_mounted ext4 16m
        echo before >"$(global_dir data)/file"
        unmount_volume data
        snapped '{"name": "data", "snapshot": "monday"}'
}

@test "a volume is made of a snapshot of another pool, with its content, its holes and the size that is asked for" {
        make_two_pools
        created '{"name": "copy", "from": "monday", "pool": "slow", "size": "24m"}'
        existed false
        assert_field '.volume | .pool + " " + .copyOf + " " + .fsType' "slow monday ext4"
        is "$(stat -c %s "$SLOW_DIR/copy.img")" $((24 << 20))
        cmp --bytes $((16 << 20)) "$POOL_DIR/monday.img" "$SLOW_DIR/copy.img"
        (($(allocated "$SLOW_DIR/copy.img") < 8 << 20))
        created '{"name": "copy", "from": "monday", "pool": "slow", "size": "24m"}'
        existed true
        create '{"name": "copy", "from": "monday", "pool": "fast", "size": "24m"}'
        refused EEXIST pool
        mount_volume copy
        is "$(<"$(global_dir copy)/file")" before
        unmount_volume copy
        removed '{"name": "copy"}'
        is "$(images "$SLOW_DIR")" ''
}

# make_pool_of_large_sectors NAME: a pool of images on a disk with sectors of 4096 bytes.
make_pool_of_large_sectors() {
        local image=$BATS_TEST_TMPDIR/$1.large device
        make_pool "$1"
        truncate -s 1g "$image"
        device=$(loop_over --sector-size 4096 "$image")
        bed_loops+=("$device")
        mkfs.ext4 -q "$device"
        mount "$device" "$POOL_DIR"
}

@test "a filesystem of small blocks or sectors is mounted also when its image is copied to a disk with large sectors" {
        local type
        make_pool_in_memory small 2g
        make_pool_of_large_sectors large
        for type in ext4 xfs; do
                created "{\"name\": \"$type\", \"size\": \"300m\", \"pool\": \"small\", \"fsType\": \"$type\", \"parameters\": {\"preallocate\": \"false\"}}"
                mount_volume "$type"
                echo text >"$(global_dir "$type")/file"
                unmount_volume "$type"
                created "{\"name\": \"$type-copy\", \"from\": \"$type\", \"pool\": \"large\"}"
                mount_volume "$type-copy"
                is "$(<"$(global_dir "$type-copy")/file")" text "$type"
                unmount_volume "$type-copy"
        done
        created '{"name": "new", "size": "32m", "pool": "large", "fsType": "ext4"}'
        mount_volume new
        is "$(blockdev --getss "${DEVICES[new]}")" 4096 "sectors of a new volume"
        unmount_volume new
}

@test "a copy of an image that has all its blocks is sparse, and its parameters say so" {
        local pool
        make_pool slow
        make_pool fast
        created '{"name": "data", "size": "16m", "pool": "fast", "parameters": {"preallocate": "true"}}'
        for pool in fast slow; do
                created "{\"name\": \"$pool\", \"from\": \"data\", \"pool\": \"$pool\"}"
                assert_field .volume.parameters.preallocate false
                is "$(allocated "${POOL_DIR%/*}/$pool/$pool.img")" 0
        done
}

@test "a volume that is larger than its record says is copied whole, and has whole snapshots" {
        make_two_pools
        at_syscall --at renameat:2 --kill "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": "24m"}'
        is "$AT_REACHED" 1
        is "$(stat -c %s "$POOL_DIR/data.img")" $((24 << 20))
        listed '{"name": "data"}'
        assert_field '.volumes[0].size' $((16 << 20))
        echo end | dd of="$POOL_DIR/data.img" bs=1M seek=23 conv=notrunc status=none
        create '{"name": "small", "from": "data", "size": "12m"}'
        refused ERANGE $((24 << 20))
        created '{"name": "middle", "from": "data", "size": "20m"}'
        assert_field .volume.size $((24 << 20))
        created '{"name": "near", "from": "data"}'
        assert_field .volume.size $((24 << 20))
        created '{"name": "far", "from": "data", "pool": "slow"}'
        assert_field .volume.size $((24 << 20))
        snapped '{"name": "data", "snapshot": "tuesday"}'
        assert_field .volume.size $((24 << 20))
        cmp "$POOL_DIR/data.img" "$POOL_DIR/near.img"
        cmp "$POOL_DIR/data.img" "$SLOW_DIR/far.img"
        cmp "$POOL_DIR/data.img" "$POOL_DIR/tuesday.img"
}

@test "a volume that is in use, a pool without room, and one of directories are refused, and leave nothing in the other pool" {
        make_two_pools
        mount_volume data
        create '{"name": "copy", "from": "data", "pool": "slow"}'
        refused EBUSY volume-snapshot
        unmount_volume data
        make_pool_in_memory small 8m
        create '{"name": "copy", "from": "data", "pool": "small"}'
        refused ENOSPC
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        create '{"name": "copy", "from": "data", "pool": "dirs"}'
        refused EOPNOTSUPP dirs directory
        create '{"name": "copy", "from": "data", "pool": "nonesuch"}'
        refused ENOENT nonesuch
        is "$(provisioned | paste -sd' ')" "data.json monday.json"
        is "$(images "$SLOW_DIR")$(images "$POOL_DIR" | grep copy)" ''
}

# bats test_tags=deep
@test "a copy in another pool that is killed half way is begun again, or deleted, and its source stays" {
        make_two_pools
        at_syscall --at pwrite64 --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data", "pool": "slow"}'
        is "$AT_REACHED" 1
        listed '{"pool": "slow"}'
        assert_field '.volumes[0] | .name + " " + .health' "copy unfinished"
        created '{"name": "copy", "from": "data", "pool": "slow"}'
        cmp "$POOL_DIR/data.img" "$SLOW_DIR/copy.img"
        removed '{"name": "copy"}'
        at_syscall --at pwrite64 --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data", "pool": "slow"}'
        removed '{"name": "copy"}'
        is "$(images "$SLOW_DIR")" ''
        mount_volume data
        is "$(<"$(global_dir data)/file")" before
        unmount_volume data
}

# bats test_tags=deep
@test "an xfs and a copy of it are mounted at the same time, and both keep their UUID" {
        make_pool_that_shares fast 2g
        make_mounted xfs 300m
        uuid=$(blkid -o value -s UUID -p "${DEVICES[data]}")
        echo text >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        created '{"name": "copy", "from": "monday"}'
        mount_volume copy
        is "$(<"$(global_dir copy)/file")" text
        is "$(blkid -o value -s UUID -p "${DEVICES[copy]}")" "$uuid"
        helper volume-expand '{"name": "copy", "size": "320m"}'
        assert_success
        unmount_volume copy
        unmount_volume data
        # and in the other order
        mount_volume copy
        mount_volume data
        unmount_volume copy
        unmount_volume data
}

# ---- back

@test "a volume gets the content of a snapshot back, and keeps its size" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        echo before >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        echo after >"$(global_dir data)/file"
        snap '{"name": "data", "restore": "monday"}'
        refused EBUSY
        is "$(<"$(global_dir data)/file")" after
        unmount_volume data
        truncate -s 48m "$POOL_DIR/data.img"
        snapped '{"name": "data", "restore": "monday"}'
        assert_field .restored monday
        is "$(stat -c %s "$POOL_DIR/data.img")" $((48 << 20))
        mount_volume data
        is "$(<"$(global_dir data)/file")" before
        unmount_volume data
        snap '{"name": "data", "restore": "nonesuch"}'
        refused ENOENT nonesuch
        created '{"name": "other", "size": "8m", "pool": "fast"}'
        snap '{"name": "other", "restore": "monday"}'
        refused EINVAL "no snapshot of other"
}

# looked_at: the volume "data" has a snapshot, and is detached; a process has its device open yet, as udev for a moment.
looked_at() {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        echo before >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        echo after >"$(global_dir data)/file"
        background_ready sh -c 'exec 9<"$0"; echo ready; exec sleep 1000' "${DEVICES[data]}"
        unmount_volume data
}

# at_pause ACTION... PROGRAM REQUEST: at_syscall, at the first pause: a ppoll without descriptors.
at_pause() {
        at_syscall --at ppoll --where 1=0 --where 2=0 "$@"
        is "$AT_REACHED" 1
}

@test "a snapshot is restored as soon as a process closes the volume's device that only looks at it" {
        looked_at
        at_pause --run "kill -KILL $BACKGROUND_PID" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "monday"}'
        assert_success
        mount_volume data
        is "$(<"$(global_dir data)/file")" before
        unmount_volume data
}

@test "a volume is copied as soon as a process closes its device that only looks at it" {
        looked_at
        at_pause --run "kill -KILL $BACKGROUND_PID" "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data"}'
        assert_success
        mount_volume copy
        is "$(<"$(global_dir copy)/file")" after
        unmount_volume copy
}

@test "a snapshot is not restored while a process has the volume's device open" {
        looked_at
        snap '{"name": "data", "restore": "monday"}'
        assert_failure EBUSY
        mount_volume data
        is "$(<"$(global_dir data)/file")" after
        unmount_volume data
}

@test "a volume that is larger than its snapshot has a filesystem of its own size after a restore" {
        local before
        make_pool_that_shares fast 2g
        make_mounted xfs 300m # an ext4 that is mounted grows only with CAP_SYS_RESOURCE
        before=$(stat -f -c %b "$(global_dir data)")
        snapped '{"name": "data", "snapshot": "monday"}'
        unmount_volume data
        helper volume-expand '{"name": "data", "size": "400m"}'
        assert_success
        snapped '{"name": "data", "restore": "monday"}'
        mount_volume data
        (($(stat -f -c %b "$(global_dir data)") > before + (90 << 20) / 4096))
        unmount_volume data
}

# copy_for_a_reader: a pod has the volume copy read-only, whose filesystem still has the blocks of its source, $before.
copy_for_a_reader() {
        make_pool_that_shares fast 2g
        make_mounted xfs 300m # an ext4 that is mounted grows only with CAP_SYS_RESOURCE
        before=$(stat -f -c %b "$(global_dir data)")
        unmount_volume data
        created '{"name": "copy", "from": "data", "size": "400m"}'
        lifecycle_up copy type=loop @readwrite=ro
        is "$(stat -f -c %b "$(pod_dir copy)")" "$before"
}

# copy_has_grown: the pod second may write to it.
copy_has_grown() {
        (($(stat -f -c %b "$(pod_dir copy second)") > before + (90 << 20) / 4096))
        is "$(jq .filesystemGrows "$STATE_DIR/provisioned/copy.json")" false
        kubelet_unpublish copy second
        lifecycle_down copy
        assert_no_loops driver
}

@test "a larger copy that a pod only reads has all of its size for the next pod that writes" {
        local before
        copy_for_a_reader
        kubelet_publish copy third @readwrite=ro
        is "$(stat -f -c %b "$(pod_dir copy third)")" "$before"
        kubelet_publish copy second @readwrite=rw
        run ! touch "$(pod_dir copy)/file"
        kubelet_unpublish copy third
        copy_has_grown
}

@test "a larger copy that a pod only reads grows for one that writes when the call for that was killed, and is repeated" {
        local before
        copy_for_a_reader
        make_dir "$(pod_dir copy second)"
        at_syscall --at execve --kill "$DRIVER" mount "$(pod_dir copy second)" "$(publish_spec copy second @readwrite=rw)" # what grows it
        is "$AT_REACHED" 1
        is "$(stat -f -c %b "$(pod_dir copy)")" "$before"
        kubelet_publish copy second @readwrite=rw
        copy_has_grown
}

@test "what a restored volume shares with its snapshot is kept free once" {
        local before
        make_pool_that_shares fast 1g
        make_mounted ext4 64m
        head -c 32M /dev/urandom >"$(global_dir data)/file"
        snapped '{"name": "data", "snapshot": "monday"}'
        unmount_volume data
        before=$(available fast)
        snapped '{"name": "data", "restore": "monday"}'
        (($(available fast) > before - (4 << 20)))
        counted
}

@test "an image that has all its blocks has them when a snapshot is restored, and a sparse one stays sparse" {
        local preallocate
        local -A had=([true]=$((40 << 20)) [false]=0)
        make_pool_in_memory fast 80m
        for preallocate in true false; do
                created "{\"name\": \"data\", \"size\": \"16m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                snapped '{"name": "data", "snapshot": "monday"}'
                # larger than its snapshot, and than what is left
                helper volume-expand '{"name": "data", "size": "40m"}'
                assert_success
                snapped '{"name": "data", "restore": "monday"}'
                is "$(stat -c %s "$POOL_DIR/data.img")" $((40 << 20))
                is "$(allocated "$POOL_DIR/data.img")" "${had[$preallocate]}"
                removed '{"name": "monday"}'
                removed '{"name": "data"}'
        done
}

@test "a volume that has a blank snapshot's content when its restore is killed is not taken for lost" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "32m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "blank"}'
        mount_volume data
        unmount_volume data
        # killed between the exchange of the images and the record
        at_syscall --at renameat:3 --kill "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "blank"}'
        [[ $AT_REACHED == 1 ]]
        helper volume-reconcile '{}'
        assert_success
        mount_volume data
        unmount_volume data
}

@test "a volume for virtual machines that has a blank snapshot's content when its restore is killed is not taken for lost" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "64m", "pool": "fast", "parameters": {"kataContainers": "true"}}'
        snapped '{"name": "data", "snapshot": "blank"}'
        kubelet_attach data type=loop pool=fast kataContainers=true && kubelet_stage data && kubelet_unstage data && kubelet_detach data
        is "$(jq .hasKataImage "$STATE_DIR/provisioned/data.json")" true
        at_syscall --at renameat:3 --kill "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "blank"}'
        [[ $AT_REACHED == 1 ]]
        helper volume-reconcile '{}'
        assert_success
        kubelet_attach data type=loop pool=fast kataContainers=true && kubelet_stage data && kubelet_unstage data && kubelet_detach data
}

@test "what a killed restore left beside a volume goes with the volume, also where that is kept" {
        local policy
        make_pool fast
        for policy in retain recycle delete; do
                created "{\"name\": \"$policy\", \"size\": \"1m\", \"pool\": \"fast\"}"
                snapped "{\"name\": \"$policy\", \"snapshot\": \"of-$policy\"}"
                at_syscall --at renameat --where "2=.$policy.img.restored" --kill "$FLEXGRAFT_BIN/volume-snapshot" \
                        "{\"name\": \"$policy\", \"restore\": \"of-$policy\"}"
                [[ $AT_REACHED == 1 && -e $POOL_DIR/.$policy.img.restored ]]
                removed "{\"name\": \"$policy\", \"reclaimPolicy\": \"$policy\"}"
                is "$(find "$POOL_DIR" -name '*.restored')" ""
        done
        is "$(cd "$POOL_DIR" && echo r*.img)" "recycle.img retain.img"
}

@test "a restore that fails keeps what the record says of the volume's content" {
        local record=$STATE_DIR/provisioned/data.json
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "blank"}'
        # jq would round "born"
        /usr/bin/python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin) | {"formatted": True, "hasKataImage": True}))' <"$record" >"$record.new"
        mv "$record.new" "$record"
        at_syscall --at renameat --where 2=.data.img.restored --fail EIO "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "blank"}'
        assert_failure EIO
        is "$(jq -c '[.formatted, .hasKataImage]' "$record")" '[true,true]'
}

@test "a volume keeps its Kubernetes namespace when a snapshot is restored" {
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        snapped '{"name": "data", "snapshot": "monday"}'
        setfattr -n trusted.flexgraft.namespace -v team "$POOL_DIR/data.img"
        snapped '{"name": "data", "restore": "monday"}'
        is "$(getfattr --only-values -n trusted.flexgraft.namespace "$POOL_DIR/data.img" 2>/dev/null)" team
}

# ---- room

@test "snapshots count at full size, and what they share is kept for the volume" {
        local before
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "64m", "pool": "fast"}'
        noise $((64 << 20)) | dd of="$POOL_DIR/data.img" bs=1M iflag=fullblock conv=notrunc status=none
        before=$(available fast)
        snapped '{"name": "data", "snapshot": "monday"}'
        ((before - $(available fast) >= 64 << 20))
        counted
        # written anew, the volume takes what was kept for it, and no more
        before=$(available fast)
        noise $((32 << 20)) | dd of="$POOL_DIR/data.img" bs=1M iflag=fullblock conv=notrunc,fsync status=none
        (($(available fast) >= before - (2 << 20)))
        removed '{"name": "monday"}'
        wait_until 10 counted >/dev/null || counted # xfs frees blocks in the background
}

@test "a snapshot for which there is no room is refused, and leaves nothing" {
        make_pool_that_shares fast 320m
        created '{"name": "data", "size": "200m", "pool": "fast"}'
        snap '{"name": "data", "snapshot": "monday"}'
        refused ENOSPC fast
        is "$(images "$POOL_DIR")" data.img
}

@test "snapshots in pools of another type are refused by name" {
        printf '{"name": "big", "type": "pmem", "region": "region0"}\n' >"$FLEXGRAFT_POOLS/big.json"
        created '{"name": "data", "size": "8m"}'
        sed -i 's/"pool":"default","type":"loop"/"pool":"big","type":"pmem"/' "$STATE_DIR/provisioned/data.json"
        snap '{"name": "data", "snapshot": "monday"}'
        refused EOPNOTSUPP "pools of type pmem"
}

@test "a copy in another pool is of the Kubernetes namespace that the image alone knows" {
        make_two_pools
        setfattr -n trusted.flexgraft.namespace -v team "$POOL_DIR/data.img"
        created '{"name": "copy", "from": "data", "pool": "slow"}'
        is "$(jq -r .namespace "$STATE_DIR/provisioned/copy.json")" team
}

# ---- frozen

@test "a filesystem that another program has frozen is refused, and stays frozen" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        fsfreeze --freeze "$(global_dir data)"
        snap '{"name": "data", "snapshot": "monday"}'
        refused EBUSY frozen
        fsfreeze --unfreeze "$(global_dir data)"
        is "$(images "$POOL_DIR")" data.img
        unmount_volume data
}

@test "a filesystem is thawed when the process that thaws is killed, and the snapshot is whole" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        cat >"$BATS_TEST_TMPDIR/each" <<END
read -r _ _ _ _ _ session _ <"/proc/\$AT_PID/stat"
[ "\$session" = "\$AT_PID" ] || exit 0
echo "\$AT_PID" >>"$BATS_TEST_TMPDIR/killed"
kill -KILL "\$AT_PID"
END
        at_syscall --at ppoll --each "sh '$BATS_TEST_TMPDIR/each'" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        is "$(wc -l <"$BATS_TEST_TMPDIR/killed")" 1
        assert_success
        can_write "$(global_dir data)"
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
        unmount_volume data
}

# bats test_tags=deep
@test "a filesystem is thawed after 30 seconds, also while the program stands still, and the snapshot fails and leaves nothing" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        # from the moment in which it is frozen the program stands still, until its filesystem is thawed, or a minute is over
        cat >"$BATS_TEST_TMPDIR/stop" <<END
(i=0
until fsfreeze --freeze '$(global_dir data)' && fsfreeze --unfreeze '$(global_dir data)' && touch '$BATS_TEST_TMPDIR/thawed'; do
        [ \$((i += 1)) -le 120 ] && sleep 0.5 || break
done
kill -CONT \$AT_PID \$AT_MAIN_PID) &
kill -STOP \$AT_PID \$AT_MAIN_PID
END
        at_syscall --at ioctl:2 --where 2=0x4020940d --run "sh '$BATS_TEST_TMPDIR/stop'" \
                "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}' # FICLONERANGE, which is tried first
        is "$AT_REACHED" 1
        [[ -e $BATS_TEST_TMPDIR/thawed ]]
        refused ETIMEDOUT "thawed before it was done"
        is "$(images "$POOL_DIR") $(provisioned)" "data.img data.json"
        snapped '{"name": "data", "snapshot": "monday"}'
        unmount_volume data
}

# bats test_tags=deep
@test "volume-snapshot that is interrupted while it copies a frozen volume thaws it, and leaves no snapshot" {
        make_pool fast
        make_mounted ext4 16m
        echo text >"$(global_dir data)/file"
        HELPER_PREFIX=(env --default-signal=INT) # whoever runs the tests may ignore it
        at_syscall --at copy_file_range --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-snapshot" \
                '{"name": "data", "snapshot": "monday", "freeze": true}'
        HELPER_PREFIX=()
        is "$AT_REACHED" 1
        refused ECANCELED 'interrupted (SIGINT)'
        can_write "$(global_dir data)"
        is "$(images "$POOL_DIR") $(provisioned)" "data.img data.json"
        snapped '{"name": "data", "snapshot": "monday", "freeze": true}'
        run -0 e2fsck -fn "$POOL_DIR/monday.img"
        unmount_volume data
}

# bats test_tags=deep
@test "20 snapshots of a database that is written to all the time are all whole" {
        check_sqlite 20
}

# leave_frozen: the filesystem of the mounted volume "data", by a volume-snapshot ("monday") that was killed with all its processes.
leave_frozen() {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        cat >"$BATS_TEST_TMPDIR/each" <<END
fsfreeze --freeze "$(global_dir data)" 2>/dev/null && exec fsfreeze --unfreeze "$(global_dir data)"
pkill -KILL -f "^$FLEXGRAFT_BIN/volume-snapshot "
END
        at_syscall --at ioctl --each "sh '$BATS_TEST_TMPDIR/each'" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        is "$status" 137
        run ! is_thawed "$(global_dir data)"
}

# bats test_tags=deep
@test "a filesystem that cannot be thawed now keeps volume-reconcile from no other volume, and is thawed by the next" {
        leave_frozen
        at_syscall --at ftruncate --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "other", "size": "8m", "pool": "fast"}'
        is "$status" 137
        # while another call has the volume: LOOP_GET_STATUS64
        at_syscall --at ioctl --where 2=0x4c05 --run "'$FLEXGRAFT_BIN/volume-reconcile' '{}' >'$BATS_TEST_TMPDIR/said'" \
                "$FLEXGRAFT_BIN/verbs/attach" "${SPECS[data]}" "$NODE"
        is "$status $AT_REACHED" "0 1"
        is "$(jq -c '[.actions[].subject]' "$BATS_TEST_TMPDIR/said")" '["other"]'
        run ! is_thawed "$(global_dir data)"
        helper volume-reconcile '{}'
        assert_success
        can_write "$(global_dir data)"
        is "$(images "$POOL_DIR")" data.img
        unmount_volume data
}

# bats test_tags=deep
@test "volume-reconcile thaws what volume-snapshot left frozen that was killed with all its processes" {
        leave_frozen
        # the snapshot's record is what tells of it
        helper volume-delete '{"name": "monday"}'
        assert_failure EBUSY
        helper volume-create '{"name": "monday", "size": "1m", "pool": "fast"}'
        assert_failure EBUSY
        helper volume-reconcile '{}'
        assert_success
        can_write "$(global_dir data)"
        is "$(images "$POOL_DIR")" data.img
        unmount_volume data
}

@test "volume-reconcile has no problem with a snapshot that is just being taken" {
        make_pool_that_shares fast 1g
        make_mounted ext4 32m
        cat >"$BATS_TEST_TMPDIR/each" <<END
[ -e '$STATE_DIR/provisioned/monday.json' ] && [ ! -e '$BATS_TEST_TMPDIR/reconciled' ] || exit 0
'$FLEXGRAFT_BIN/volume-reconcile' '{}' >'$BATS_TEST_TMPDIR/reconciled'
END
        at_syscall --at ioctl --each "sh '$BATS_TEST_TMPDIR/each'" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        assert_success
        is "$(jq -c '[.status, .problems]' "$BATS_TEST_TMPDIR/reconciled")" '["Success",[]]'
        unmount_volume data
}

@test "where all would be copied, a volume whose device a container has is refused" {
        make_pool_in_memory fast 64m
        created '{"name": "data", "size": "8m", "pool": "fast", "targetType": "block"}'
        start_container plain
        helper mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"data\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        snap '{"name": "data", "snapshot": "monday"}'
        assert_failure EBUSY
        is "$(images "$POOL_DIR")" data.img
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\"}"
        assert_success
        snapped '{"name": "data", "snapshot": "monday"}'
}

@test "an image that another program has attached is refused" {
        local device
        make_pool_in_memory fast 64m
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        device=$(loop_over "$POOL_DIR/data.img")
        bed_loops+=("$device")
        snap '{"name": "data", "snapshot": "monday"}'
        assert_failure EBUSY
}

@test "an image whose size is no whole number of blocks has snapshots that share its blocks" {
        make_pool_that_shares fast 1g
        yes text | head -c $(((8 << 20) + 1000)) >"$POOL_DIR/odd.img"
        created '{"name": "odd", "id": "odd.img", "pool": "fast"}'
        snapped '{"name": "odd", "snapshot": "monday"}'
        run -0 cmp -n $(((8 << 20) + 1000)) "$POOL_DIR/odd.img" "$POOL_DIR/monday.img"
}

@test "a snapshot and a copy are of the Kubernetes namespace of what they were made of" {
        local image
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        setfattr -n trusted.flexgraft.namespace -v team "$POOL_DIR/data.img"
        snapped '{"name": "data", "snapshot": "monday"}'
        created '{"name": "copy", "from": "monday"}'
        created '{"name": "other", "from": "data"}'
        for image in monday copy other; do
                is "$(getfattr --only-values -n trusted.flexgraft.namespace "$POOL_DIR/$image.img" 2>/dev/null)" team "$image"
        done
}

# bats test_tags=deep
@test "a batch of mounts and volume-create of copies, the other way round, do not wait for each other" {
        local round target pids
        needs mount-batch
        created '{"name": "a", "size": "16m", "pool": "default"}'
        created '{"name": "b", "size": "16m", "pool": "default"}'
        start_container plain
        for round in 1 2 3; do
                background "$FLEXGRAFT_BIN/mount-batch" "{\"container\": $CONTAINER_PID, \"timeoutSeconds\": 60, \"mounts\": [
                        {\"type\": \"volume\", \"volume\": \"a\", \"target\": \"/a\"}, {\"type\": \"volume\", \"volume\": \"b\", \"target\": \"/b\"}]}" >/dev/null
                pids=("$BACKGROUND_PID")
                background "$FLEXGRAFT_BIN/volume-create" '{"name": "a", "from": "b"}' >/dev/null
                pids+=("$BACKGROUND_PID")
                background "$FLEXGRAFT_BIN/volume-create" '{"name": "b", "from": "a"}' >/dev/null
                pids+=("$BACKGROUND_PID")
                wait "${pids[0]}"
                wait "${pids[1]}" || : # refused: the volume is there, and no copy
                wait "${pids[2]}" || :
                for target in /a /b; do
                        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"$target\"}"
                        assert_success
                done
        done
}

@test "while a snapshot is restored by copying, others may use the pool" {
        make_pool fast # on a tmpfs, whose files share no blocks
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        echo text | dd of="$POOL_DIR/data.img" conv=notrunc status=none
        snapped '{"name": "data", "snapshot": "monday"}'
        at_syscall --at copy_file_range --run-output "$BATS_TEST_TMPDIR/created" \
                --run "timeout 20 '$FLEXGRAFT_BIN/volume-create' '{\"name\": \"other\", \"size\": \"1m\", \"pool\": \"fast\"}'" \
                "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "monday"}'
        is "$status $AT_REACHED" "0 1"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/created")" Success
}
