#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-create and volume-delete that were cut short: what may come between that and the next call.

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

# ---- killed, or refused a system call

# A create that was cut short is gone on with by the next; what else may come between: another volume, a delete, another request.

# cut_short CALL REQUEST: volume-create, killed before that call.
cut_short() {
        at_syscall --at "$1" --kill "$FLEXGRAFT_BIN/volume-create" "$2"
        [[ $AT_REACHED == 1 ]]
}

@test "room that was taken while a create lay cut short is not given away twice" {
        local preallocate
        for preallocate in false true; do
                make_pool_in_memory fast 32m '"maxPercent": 50'
                cut_short ftruncate "{\"name\": \"first\", \"size\": \"12m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                create '{"name": "second", "size": "12m", "pool": "fast"}'
                create "{\"name\": \"first\", \"size\": \"12m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                (($(cat "$POOL_DIR"/*.img | wc -c) <= 16 << 20)) || { echo "overbooked, preallocate $preallocate"; ls -ls "$POOL_DIR"; return 1; }
                removed '{"name": "first"}'
                removed '{"name": "second"}'
                assert_no_volume "$POOL_DIR"
                umount "$POOL_DIR"
        done
}

@test "a create that was cut short is undone by a delete, whatever the reclaim policy" {
        local policy call
        for policy in delete retain recycle; do
                for call in fallocate ftruncate; do
                        cut_short "$call" "{\"name\": \"data\", \"size\": \"1m\", \"reclaimPolicy\": \"$policy\"}"
                        removed '{"name": "data"}'
                        assert_no_volume || { echo "$policy, cut short at $call"; return 1; }
                done
        done
}

@test "a create that was cut short before its record was there leaves nothing after a delete" {
        created '{"name": "other", "size": 4096}'
        removed '{"name": "other"}'
        cut_short renameat '{"name": "data", "size": "1m"}'
        removed '{"name": "data"}'
        existed false
        assert_no_volume
}

@test "a create that was cut short makes way for another of the same name" {
        local policy
        for policy in delete retain recycle; do
                cut_short ftruncate "{\"name\": \"data\", \"size\": \"1m\", \"reclaimPolicy\": \"$policy\"}"
                created "{\"name\": \"data\", \"size\": \"2m\", \"reclaimPolicy\": \"$policy\"}" || { echo "with $policy"; return 1; }
                assert_field .volume.size 2097152
                is "$(stat --format %s "$POOL/data.img")" 2097152
                removed '{"name": "data", "reclaimPolicy": "delete"}'
                assert_no_volume
        done
}

@test "a file that took the name of a volume whose create was cut short is kept by create, delete and volume-reconcile" {
        local act
        for act in 'volume-create {"name": "data", "size": "1m"}' 'volume-create {"name": "data", "size": 4096, "id": "data.img"}' \
                'volume-delete {"name": "data"}' 'volume-reconcile {}'; do
                cut_short ftruncate '{"name": "data", "size": "1m"}'
                rm -f "$POOL/data.img"
                head -c 4096 /dev/zero | tr '\0' x >"$POOL/data.img"
                helper "${act%% *}" "${act#* }"
                is "$(sort -u "$POOL/data.img" | cut -c1-3)" xxx "the file after $act" || return 1
                removed '{"name": "data", "reclaimPolicy": "retain"}'
                rm -f "$POOL/data.img"
                assert_no_volume
        done
}

@test "a create that was cut short is shown as such, and is no disk" {
        cut_short ftruncate '{"name": "data", "size": "1m"}'
        listed
        assert_field '[.volumes[] | .name, .state] | join(" ")' "data creating"
        is "$(disk_ids)" ''
        create '{"name": "thief", "id": "data.img"}'
        assert_failure
}

@test "a delete that was cut short is gone through with by a create, too" {
        created '{"name": "data", "size": "1m"}'
        echo old | dd of="$POOL/data.img" conv=notrunc status=none
        at_syscall --at unlinkat --kill "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        [[ $AT_REACHED == 1 ]]
        created '{"name": "data", "size": "1m"}'
        existed false
        is_all_zero "$POOL/data.img"
}

@test "volume-reconcile writes the size of a volume whose growth was cut short" {
        needs volume-expand volume-reconcile
        created '{"name": "data", "size": "1m"}'
        at_syscall --at renameat:2 --kill "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": "2m"}'
        [[ $AT_REACHED == 1 ]]
        is "$(stat --format %s "$POOL/data.img")" $((2 << 20))
        helper volume-reconcile '{"dryRun": true}'
        assert_field '[.actions[].subject, (.problems | length)] | map(tostring) | join(" ")' "data 0"
        listed
        assert_field '.volumes[0].size' $((1 << 20))
        helper volume-reconcile '{}'
        assert_field '[.actions[].subject, (.problems | length)] | map(tostring) | join(" ")' "data 0"
        listed
        assert_field '.volumes[0].size' $((2 << 20))
        helper volume-reconcile '{}'
        assert_field '.actions | length' 0
}
