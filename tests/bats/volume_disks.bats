#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-create: disks that have no volume are adopted, by their ids or by a match.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0
shopt -s globstar dotglob nullglob

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

# ---- disks

@test "an image that no volume has is a disk, with an id" {
        make_pool fast
        make_disk "$POOL_DIR" b.img 2m
        make_disk "$POOL_DIR" a.img 1m
        : >"$POOL_DIR/notes.txt"
        : >"$POOL_DIR/.hidden.img"
        mkdir "$POOL_DIR/dir.img"
        mkfifo "$POOL_DIR/fifo.img"
        ln -s a.img "$POOL_DIR/link.img"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        listed '{"pool": "fast"}'
        assert_field '[.disks | sort_by(.id)[] | .id, .pool, .type, .size, .targetType] | join(" ")' \
                "a.img fast loop 1048576 raw b.img fast loop 2097152 raw"
        assert_field '[.disks[] | select(.id == "a.img").path] | join(" ")' "$POOL_DIR/a.img"
        assert_field '[.pools[] | .name, .targetType, has("id")] | join(" ")' "fast raw false"
        is "$(volume_names)" data
}

@test "a disk whose name is no UTF-8 does not spoil the list" {
        mkdir -p "$POOL"
        : >"$POOL"/$'b\xff.img'
        make_disk "$POOL" a.img 1m
        listed
        assert_field '.disks | length' 2
        measured
}

@test "an adopted disk keeps its content, and says its size" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 5m precious
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        assert_field '.volume | [.name, .id, .size, .adopted, .reclaimPolicy, .path] | join(" ")' "data disk.img 5242880 true retain $POOL_DIR/disk.img"
        existed false
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        existed true
        created '{"name": "data", "pool": "fast", "id": "disk.img", "size": "4m"}'
        existed true
        create '{"name": "data", "pool": "fast", "id": "disk.img", "size": "6m"}'
        refused EEXIST size
        is "$(head -c 8 "$POOL_DIR/disk.img")" precious
        is "$(stat --format %s "$POOL_DIR/disk.img")" $((5 << 20))
        listed
        is "$(disk_ids)$(volume_names)" data
        removed '{"name": "data"}'
        assert_field .reclaimPolicy retain
        is "$(head -c 8 "$POOL_DIR/disk.img")" precious
        listed
        is "$(disk_ids)$(volume_names)" disk.img
}

@test "an adopted disk is deleted or recycled where that is asked for" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 1m precious
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        is_all_zero "$POOL_DIR/disk.img"
        is "$(stat --format %s "$POOL_DIR/disk.img")" $((1 << 20))
        listed
        is "$(disk_ids)" disk.img
        created '{"name": "data", "pool": "fast", "id": "disk.img", "reclaimPolicy": "delete"}'
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a disk that another volume has is not adopted" {
        make_pool fast
        created '{"name": "first", "size": "1m", "pool": "fast"}'
        create '{"name": "second", "pool": "fast", "id": "first.img"}'
        refused EBUSY first
        make_disk "$POOL_DIR" disk.img 1m
        created '{"name": "third", "pool": "fast", "id": "disk.img"}'
        create '{"name": "fourth", "pool": "fast", "id": "disk.img"}'
        refused EBUSY third
        create '{"name": "disk", "size": "1m", "pool": "fast"}'
        refused EEXIST third
        is "$(provisioned | tr '\n' ' ')" "first.json third.json "
}

@test "a disk that another volume has is not adopted, also where a power cut has kept the volume's record without its entry in the index" {
        local mark
        make_pool fast
        make_disk "$POOL_DIR" disk.img 1m
        created '{"name": "data", "id": "disk.img", "pool": "fast"}'
        mark=$(echo "$STATE_DIR"/uses/.provisioned-*)
        mv "$mark" "${mark%-????????-*}-01234567-89ab-cdef-0123-456789abcdef"
        rm "$STATE_DIR"/uses/p*/*
        create '{"name": "other", "id": "disk.img", "pool": "fast"}'
        refused EBUSY data
        is "$(echo "$STATE_DIR"/uses/.provisioned-*)" "$mark" "what says that the index has all records"
}

@test "a disk that is attached, too small, or not there is not adopted" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 1m
        : >"$POOL_DIR/empty.img"
        attach_loop "$POOL_DIR/disk.img"
        create '{"name": "data", "pool": "fast", "id": "disk.img"}'
        refused EBUSY "$LOOP"
        detach_loop
        create '{"name": "data", "pool": "fast", "id": "disk.img", "size": "2m"}'
        refused ERANGE 1048576 2097152
        create '{"name": "data", "pool": "fast", "id": "empty.img"}'
        assert_failure
        create '{"name": "data", "pool": "fast", "id": "nothing.img"}'
        refused ENOENT nothing.img fast
        create '{"name": "data", "pool": "slow", "id": "disk.img"}'
        refused ENOENT slow
        is "$(provisioned)" ''
        created '{"name": "data", "pool": "fast", "id": "disk.img", "size": "1m"}'
}

@test "an id that is no image of the pool is refused, and nothing outside is touched" {
        local id
        make_pool fast
        make_disk "$BATS_TEST_TMPDIR/srv" outside.img 1m precious
        make_disk "$POOL_DIR" real.img 1m
        make_disk "$POOL_DIR" .hidden.img 1m
        make_disk "$POOL_DIR" notes.txt 1m
        mkdir "$POOL_DIR/dir.img"
        make_disk "$POOL_DIR/dir.img" inner.img 1m
        mkfifo "$POOL_DIR/fifo.img"
        mknod "$POOL_DIR/device.img" c 1 3
        ln -s real.img "$POOL_DIR/link.img"
        ln -s ../outside.img "$POOL_DIR/escape.img"
        ln -s nothing "$POOL_DIR/dangling.img"
        for id in ../outside.img .hidden.img notes.txt dir.img dir.img/inner.img fifo.img device.img link.img escape.img dangling.img ./real.img \
                ../fast/real.img "$POOL_DIR/real.img" . .. / real.img/ .img; do
                HELPER_PREFIX=(timeout 120)
                create "$(named data "\"pool\": \"fast\", \"id\": \"$id\"")"
                assert_failure || { echo "with $id"; return 1; }
                is "$(provisioned)" '' "the records with $id"
        done
        is "$(head -c 8 "$BATS_TEST_TMPDIR/srv/outside.img")" precious
        [[ -L $POOL_DIR/link.img && -p $POOL_DIR/fifo.img && -d $POOL_DIR/dir.img ]]
        listed '{"pool": "fast"}'
        is "$(disk_ids)" real.img
}

@test "one disk is adopted by one of many" {
        adoption() { echo "{\"name\": \"data $1\", \"id\": \"disk.img\"}"; }
        mkdir -p "$POOL"
        make_disk "$POOL" disk.img 1m
        at_once 8 adoption
        is "$(count_replies '.status == "Success"')" 1
        is "$(count_replies '.error.errno == "EBUSY"')" 7
        is "$(provisioned | wc -l)" 1
}

@test "two pools of one directory do not have two volumes of one image" {
        make_pool fast
        printf '{"name": "alias", "type": "loop", "path": "%s"}\n' "$POOL_DIR" >"$FLEXGRAFT_POOLS/alias.json"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        create '{"name": "twice", "id": "data.img", "pool": "alias"}'
        assert_failure
}

@test "a volume whose pool's file is called otherwise by now is no disk without a volume" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        mv "$FLEXGRAFT_POOLS/fast.json" "$FLEXGRAFT_POOLS/quick.json"
        sed -i 's/"name": "fast"/"name": "quick"/' "$FLEXGRAFT_POOLS/quick.json"
        make_disk "$POOL_DIR" free.img 1m
        listed '{"pool": "quick"}'
        is "$(disk_ids)" free.img
        create '{"name": "twice", "id": "data.img", "pool": "quick"}'
        refused EBUSY data
        created '{"name": "other", "size": "1m", "pool": "quick", "match": true}'
        assert_field .volume.id free.img
        created '{"name": "more", "size": "1m", "pool": "quick", "match": true}'
        assert_field .volume.id more.img
}

# ---- match

match_setup() {
        make_pool fast
        make_disk "$POOL_DIR" large.img 8m
        make_disk "$POOL_DIR" middle.img 4m
        make_disk "$POOL_DIR" small.img 2m
}

match() { # NAME SIZE
        created "{\"name\": \"$1\", \"size\": \"$2\", \"pool\": \"fast\", \"match\": true}"
        assert_field .volume.name "$1"
}

@test "match adopts the smallest disk that is large enough, and makes a volume if there is none" {
        match_setup
        match one 3m
        assert_field '.volume | [.id, .size, .adopted, .reclaimPolicy] | join(" ")' "middle.img 4194304 true retain"
        match one 3m
        existed true
        match two 2m
        assert_field .volume.id small.img
        match three 2m
        assert_field .volume.id large.img
        match four 2m
        assert_field '.volume | [.id, .adopted, .reclaimPolicy] | join(" ")' "four.img false delete"
        listed '{"pool": "fast"}'
        is "$(disk_ids)" ''
}

@test "match passes over a disk whose name no record can have" {
        match_setup
        make_disk "$POOL_DIR" $'caf\xe9.img' 2m
        rm "$POOL_DIR/small.img"
        match one 1m
        assert_field .volume.id middle.img
}

@test "match makes a volume where all disks are too small" {
        match_setup
        match one 9m
        assert_field '.volume | [.id, .size, .adopted] | join(" ")' "one.img 9437184 false"
}

@test "match never takes a disk that is attached" {
        match_setup
        attach_loop "$POOL_DIR/small.img"
        match one 1m
        assert_field .volume.id middle.img
        detach_loop
        match two 1m
        assert_field .volume.id small.img
}

@test "match never takes a disk with something on it, wherever that is" {
        local at
        make_pool fast
        for at in 0 511 4095 65600 1048575 1048576 2097152 4194303; do
                make_disk "$POOL_DIR" disk.img 4m
                printf x | dd of="$POOL_DIR/disk.img" bs=1 seek="$at" conv=notrunc status=none
                match data 1m
                assert_field .volume.adopted false || { echo "with a byte at $at"; return 1; }
                removed '{"name": "data"}'
                rm "$POOL_DIR/disk.img"
        done
}

@test "neither an id nor match takes a disk that is larger than the limit" {
        match_setup
        create '{"name": "one", "pool": "fast", "id": "large.img", "size": "1m", "limit": "4m"}'
        refused ERANGE
        created '{"name": "one", "pool": "fast", "size": "3m", "limit": "4m", "match": true}'
        assert_field '.volume | [.adopted, .id] | map(tostring) | join(" ")' "true middle.img"
        created '{"name": "two", "pool": "fast", "size": "3m", "limit": "4m", "match": true}'
        assert_field .volume.adopted false
        is "$(provisioned | tr '\n' ' ')" 'one.json two.json '
}

@test "match keeps to the pool that is asked for" {
        match_setup
        created '{"name": "one", "size": "2m", "match": true, "pool": "default"}'
        assert_field '.volume | [.pool, .id] | join(" ")' "default one.img"
        create '{"name": "two", "size": "2m", "match": true, "pool": "nowhere"}'
        refused ENOENT
        created '{"name": "three", "size": "1m", "match": false, "pool": "fast"}'
        assert_field .volume.adopted false
}

@test "match passes over a pool that cannot be looked at, unless that is asked for" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 4m
        echo '{"type": "loop", "path": "/nowhere"}' >"$FLEXGRAFT_POOLS/away.json"
        created '{"name": "one", "size": "1m", "match": true}'
        assert_field '.volume | [.pool, .id] | join(" ")' "fast disk.img"
        create '{"name": "two", "size": "1m", "match": true, "pool": "away"}'
        refused ENODEV
        listed
        assert_field '[.volumes[].name] | join(" ")' one
}

@test "a disk with an id is looked for in each pool of its profile, however full they are" {
        make_pool_in_memory a 2m
        make_pool_in_memory b 8m
        make_disk "$POOL_DIR" disk.img 7m
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "loop"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        create '{"name": "none", "profile": "any", "id": "nothing.img"}'
        refused ENOENT nothing.img any
        created '{"name": "data", "profile": "any", "id": "disk.img", "size": "7m"}'
        assert_field '.volume | [.pool, .id, .adopted] | join(" ")' "b disk.img true"
}

@test "two matches at once never get the same disk" {
        local round
        matching() { echo "{\"name\": \"data $1\", \"size\": \"1m\", \"pool\": \"fast\", \"match\": true}"; }
        make_pool_in_memory fast 64m
        for round in 1 2 3 4; do
                make_disk "$POOL_DIR" "disk $round.img" 1m
        done
        at_once 8 matching
        is "$(count_replies '.status == "Success"')" 8
        is "$(count_replies '.volume.adopted')" 4
        is "$(printf '%s\n' "${REPLIES[@]}" | jq -r .volume.id | sort -u | wc -l)" 8
}

@test "match makes no volume of a disk that is too small for its filesystem" {
        match_setup
        create '{"name": "data", "size": "8m", "pool": "fast", "match": true, "fsType": "xfs"}'
        refused EINVAL "300 MiB"
        is "$(provisioned)" ''
}
