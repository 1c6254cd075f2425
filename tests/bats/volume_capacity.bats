#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-capacity: what a pool has left, when it is full, when many ask at a time; metrics.

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

# ---- capacity

# capacity_returns: to what it was, by making volumes of all kinds and giving them back.
capacity_returns() {
        local before i
        helper volume-capacity '{"pool": "fast"}'
        before=$output
        for i in 1 2 3; do
                created "{\"name\": \"data $i\", \"size\": \"$((i * 3))m\", \"pool\": \"fast\"}"
                created "{\"name\": \"sparse $i\", \"size\": \"$i$i\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"false\"}}"
        done
        [[ $(available fast) != "$(jq '.pools[0].available' <<<"$before")" ]]
        for i in 1 2 3; do
                removed "{\"name\": \"data $i\"}"
                removed "{\"name\": \"sparse $i\"}"
        done
        helper volume-capacity '{"pool": "fast"}'
        # the records' directories, which stay, may have inodes of it
        is "$(jq -c 'del(.pools[].inodesFree)' <<<"$output")" "$(jq -c 'del(.pools[].inodesFree)' <<<"$before")" "the capacity"
        created '{"name": "disk", "size": "2m", "pool": "fast", "reclaimPolicy": "recycle"}'
        removed '{"name": "disk"}'
        is "$(available fast)" "$(jq '.pools[0].available - 2097152' <<<"$before")"
        created '{"name": "disk", "id": "disk.img", "pool": "fast"}'
        removed '{"name": "disk", "reclaimPolicy": "delete"}'
        helper volume-capacity '{"pool": "fast"}'
        # the records' directories, which stay, may have inodes of it
        is "$(jq -c 'del(.pools[].inodesFree)' <<<"$output")" "$(jq -c 'del(.pools[].inodesFree)' <<<"$before")" "the capacity"
}

# fills: the largest volume that is told can be made, one that is larger cannot, and that one leaves nothing.
fills() {
        local room before
        room=$(largest fast)
        ((room > 1 << 20))
        before=$(images "$POOL_DIR")
        create "{\"name\": \"large\", \"size\": $((room + 4096)), \"pool\": \"fast\"}"
        refused ENOSPC "$room"
        create "{\"name\": \"large\", \"size\": $((room + 1)), \"pool\": \"fast\"}"
        refused ENOSPC "$room"
        is "$(provisioned)" ''
        is "$(images "$POOL_DIR")" "$before"
        created "{\"name\": \"large\", \"size\": $room, \"pool\": \"fast\"}"
        assert_field .volume.size "$room"
        create '{"name": "one more", "size": 1048576, "pool": "fast"}'
        refused ENOSPC
        removed '{"name": "large"}'
        is "$(largest fast)" "$room"
        created "{\"name\": \"large\", \"size\": $room, \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"false\"}}"
        create '{"name": "one more", "size": 4096, "pool": "fast"}'
        refused ENOSPC
        is "$(available fast)" 0
        removed '{"name": "large"}'
        is "$(provisioned)" ''
}

@test "space that is given back to a pool in memory is all available again" {
        make_pool_in_memory fast 32m
        capacity_returns
}

@test "space that is given back to a pool on ext4 is all available again" {
        make_pool_on_ext4 fast 64M
        capacity_returns
}

@test "the largest volume that is told can be made, and one a block larger cannot" {
        make_pool_in_memory fast 16m
        fills
}

@test "the largest volume that is told can be made on ext4, too" {
        make_pool_on_ext4 fast 64M
        fills
}

@test "the largest volume that is told can be made on an ext4 that is in pieces" {
        local i
        make_pool_on_ext4 fast 64M
        for ((i = 0; i < 400; i++)); do
                head -c 65536 /dev/zero >"$POOL_DIR/piece.$i"
        done
        rm "$POOL_DIR"/piece.*[02468]
        sync --file-system "$POOL_DIR"
        fills
}

@test "a pool uses as many percent of its filesystem as it may" {
        local half=16384000
        make_pool_in_memory fast 32000k '"maxPercent": 50'
        is "$(total fast)" "$half"
        is "$(largest fast)" "$half"
        fills
        created '{"name": "first", "size": "10m", "pool": "fast"}'
        is "$(available fast)" $((half - (10 << 20)))
        create '{"name": "second", "size": "7m", "pool": "fast"}'
        refused ENOSPC $((half - (10 << 20)))
        created "{\"name\": \"second\", \"size\": $((half - (10 << 20))), \"pool\": \"fast\"}"
        is "$(available fast)" 0
        # what others have there makes it less only where it must
        removed '{"name": "second"}'
        head -c $((12 << 20)) /dev/zero >"$POOL_DIR/foreign"
        is "$(available fast)" $((half - (10 << 20)))
        head -c $((8 << 20)) /dev/zero >"$POOL_DIR/foreign.2"
        is "$(available fast)" $((2 * half - (30 << 20)))
}

@test "a pool is never told to have more left than it has altogether" {
        local size
        for size in 32m 16m 12340k; do
                make_pool_in_memory fast "$size"
                measured '{"pool": "fast"}'
                assert_field '.pools[0] | .available <= .total and .largest <= .available' true
                is "$(total fast)" $(($(stat --file-system --format '%b * %S' "$POOL_DIR")))
                umount "$POOL_DIR"
        done
}

@test "a pool of one percent, and one of hundred" {
        make_pool_in_memory one 32m '"maxPercent": 1'
        make_pool_in_memory all 32m '"maxPercent": 100'
        is "$(total one)" $(((32 << 20) / 100 / 4096 * 4096))
        is "$(available all)" $((32 << 20))
}

@test "lvm is told to write its report as it is read, whatever the node's lvm.conf says" {
        echo '{"type": "lvm", "volumeGroup": "nonesuch"}' >"$FLEXGRAFT_POOLS/big.json"
        private_node_view /usr/sbin # where lvm is looked for first; here it may not be installed
        printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s"\n' "$BATS_TEST_TMPDIR/arguments" >"$BATS_TEST_TMPDIR/lvm"
        chmod 0755 "$BATS_TEST_TMPDIR/lvm"
        in_node_view cp "$BATS_TEST_TMPDIR/lvm" /usr/sbin/lvm
        helper volume-capacity '{"pool": "big"}'
        [[ $(<"$BATS_TEST_TMPDIR/arguments") == *'--config'*' report{binary_values_as_numeric=0 list_item_separator=","}'* ]]
}

@test "capacity and list tell of one pool where one is asked for" {
        make_pool a
        make_pool b
        created '{"name": "one", "size": 4096, "pool": "a"}'
        created '{"name": "two", "size": 4096, "pool": "b"}'
        make_disk "$POOL_DIR" disk.img 1m
        measured
        assert_field '[.pools[].name] | join(" ")' "a b default"
        measured '{"pool": "b"}'
        assert_field '[.pools[].name] | join(" ")' b
        listed '{"pool": "b"}'
        assert_field '[.pools[].name] | join(" ")' b
        is "$(volume_names) $(disk_ids)" "two disk.img"
        listed '{"pool": "a"}'
        is "$(volume_names) $(disk_ids)" "one "
        helper volume-list '{"pool": "c"}'
        refused ENOENT c
        helper volume-capacity '{"pool": "c"}'
        refused ENOENT
        helper volume-capacity '{"profile": "none"}'
        refused ENOENT none
}

# ---- a full pool, and many at a time

@test "a pool that is full although its capacity said otherwise makes nothing" {
        make_pool_in_memory fast 8m
        # inodes run out, which no capacity tells of
        mount -o remount,nr_inodes=3 "$POOL_DIR"
        : >"$POOL_DIR/one"
        : >"$POOL_DIR/two"
        create '{"name": "data", "size": "1m", "pool": "fast"}'
        refused ENOSPC
        is "$(provisioned)" ''
        rm "$POOL_DIR/one" "$POOL_DIR/two"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
}

@test "a full pool makes nothing, and is left as it was" {
        local left
        make_pool_in_memory fast 8m
        head -c 7m /dev/zero >"$POOL_DIR/ballast" 2>/dev/null || head -c $((7 << 20)) /dev/zero >"$POOL_DIR/ballast"
        left=$(available fast)
        is "$left" $((1 << 20))
        create '{"name": "data", "size": "2m", "pool": "fast"}'
        refused ENOSPC "$left"
        is "$(images "$POOL_DIR")" ballast
        is "$(provisioned)" ''
        is "$(available fast)" "$left"
}

@test "sixteen volumes made at a time are sixteen volumes" {
        sixteen() { echo "{\"name\": \"data $1\", \"size\": \"1m\"}"; }
        at_once 16 sixteen
        is "$(count_replies '.status == "Success" and .existed == false')" 16
        is "$(images | wc -l)" 16
        listed
        assert_field '.volumes | length' 16
}

@test "one volume made sixteen times at a time is one volume" {
        same() { echo '{"name": "data", "size": "1m"}'; }
        at_once 16 same
        is "$(count_replies '.status == "Success"')" 16
        is "$(count_replies '.existed == false')" 1
        is "$(images)" data.img
        is "$(provisioned)" data.json
}

@test "a pool is never overbooked by many at a time" {
        local preallocate
        crowd() { echo "{\"name\": \"data $1\", \"size\": \"2m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"; }
        for preallocate in true false; do
                make_pool_in_memory fast 15m
                at_once 16 crowd
                is "$(count_replies '.status == "Success"')" 7
                is "$(count_replies '.error.errno == "ENOSPC"')" 9
                is "$(images "$POOL_DIR" | wc -l)" 7
                is "$(provisioned | wc -l)" 7
                (($(cat "$POOL_DIR"/*.img | wc -c) == 14 << 20))
                rm "$STATE_DIR"/provisioned/*.json
                umount "$POOL_DIR"
        done
}

@test "volumes made and deleted at a time leave nothing" {
        local i pids=()
        for i in 1 2 3 4 5 6 7 8; do
                (
                        for _ in 1 2 3 4; do
                                "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"data $((i % 4))\", \"size\": \"1m\"}" >>"$BATS_TEST_TMPDIR/storm.$i" 2>&1
                                "$FLEXGRAFT_BIN/volume-delete" "{\"name\": \"data $((i % 4))\"}" >>"$BATS_TEST_TMPDIR/storm.$i" 2>&1
                        done
                ) 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        is "$(cat "$BATS_TEST_TMPDIR"/storm.* | jq -r .status | sort | uniq -c | tr -s ' ')" " 64 Success"
        assert_no_volume
}

@test "a profile that can be used in a pool has no problem there" {
        make_pool_in_memory fast 8m
        jq -cn --argjson p "$(profile_for fast)" '{profile_matrix: {"one": $p, "two": $p}}' >"$FLEXGRAFT_PROFILES"
        measured
        assert_field '[.pools[].profiles[] | "\(.profile) \(.problem)"] | sort | join(",")' 'one null,two null'
}

# ---- metrics

@test "metrics have a heading each, escape their labels, and say what the JSON says" {
        local expected
        make_pool_in_memory fast 8m '"maxPercent": 50'
        jq -cn --argjson p "$(profile_for fast)" '{profile_matrix: {"od\"d\\x": $p, "line\nfeed": $p, "plain": $p}}' >"$FLEXGRAFT_PROFILES"
        created '{"name": "data", "size": 4096, "profile": "od\"d\\x"}'
        measured
        # shellcheck disable=SC2016
        expected=$(jq -r 'def escaped: gsub("\\\\"; "\\\\") | gsub("\""; "\\\"") | gsub("\n"; "\\n");
                (.pools[] | "{pool=\"\(.name)\",type=\"\(.type)\"}" as $labels |
                        "flexgraft_pool_size_bytes\($labels) \(.total)", "flexgraft_pool_available_bytes\($labels) \(.available)",
                        "flexgraft_pool_largest_volume_bytes\($labels) \(.largest)",
                        "flexgraft_pool_files\($labels) \(.inodes)", "flexgraft_pool_files_free\($labels) \(.inodesFree)"),
                (.pools[] | .name as $pool | .profiles[] | "{pool=\"\($pool)\",profile=\"\(.profile | escaped)\"}" as $labels |
                        "flexgraft_profile_available_bytes\($labels) \(.available)",
                        "flexgraft_profile_largest_volume_bytes\($labels) \(.largest)"),
                (.pools[] | "flexgraft_pool_problem{pool=\"\(.name)\"} 0"), "flexgraft_profiles_rejected 0"' <<<"$json" | sort)
        helper volume-capacity --format prometheus
        is "$status" 0
        is "$stderr" ''
        # another pool's numbers change with every record that is written: none was
        is "$(grep -v '^#' <<<"${output%$'\n'}" | sort)" "$expected"
        [[ $output == *'profile="od\"d\\x"'* && $output == *'profile="line\nfeed"'* ]]
        [[ $output == *$'\n' ]]
        is "$(awk '/^# HELP / { help[$3]++ } /^# TYPE / { type[$3]++; if ($4 != "gauge") bad = 1 }
                !/^#/ { name = $0; sub(/[{ ].*/, "", name); if (help[name] != 1 || type[name] != 1) bad = 1; seen[name] = 1 }
                END { print bad + 0, length(seen) }' <<<"${output%$'\n'}")" "0 9"
}

@test "metrics tell of a pool that cannot be looked at, and of a file of profiles that was not taken" {
        echo '{"type": "loop", "path": "/nowhere"}' >"$FLEXGRAFT_POOLS/away.json"
        echo nonsense >"$FLEXGRAFT_PROFILES"
        helper volume-capacity --format prometheus
        is "$status" 0
        is "$(grep -E '^flexgraft_(pool_problem|profiles_rejected)|away' <<<"$output" | paste -s -d' ')" \
                'flexgraft_pool_problem{pool="away"} 1 flexgraft_pool_problem{pool="default"} 0 flexgraft_profiles_rejected 1'
}

@test "metrics of one pool, and the JSON where that is asked for" {
        make_pool fast
        helper volume-capacity --format prometheus '{"pool": "fast"}'
        is "$status" 0
        [[ $output == *'{pool="fast",type="loop"}'* && $output != *default* ]]
        helper volume-capacity --format json '{"pool": "fast"}'
        assert_success
        assert_field '.pools[0].name' fast
        echo '{"pool": "fast"}' | "$FLEXGRAFT_BIN/volume-capacity" --format prometheus - | grep -q '^flexgraft_pool_size_bytes{pool="fast"'
}

@test "metrics that cannot be had are one line on standard error" {
        helper volume-capacity --format prometheus '{"pool": "nowhere"}'
        is "$status" 1
        is "$output" ''
        [[ $stderr == *nowhere*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        helper volume-capacity --format prometheus '{"nonsense": 1}'
        is "$status" 2
        is "$output" ''
        [[ $stderr == *nonsense*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        chmod 0777 "$STATE_DIR"
        helper volume-capacity --format prometheus
        is "$status" 1
        is "$output" ''
        [[ $stderr == *"$STATE_DIR"*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        chmod 0700 "$STATE_DIR"
        status=0
        "$FLEXGRAFT_BIN/volume-capacity" --format prometheus >/dev/full || status=$?
        is "$status" 1
}

@test "an unknown format is refused" {
        local arguments
        for arguments in '--format' '--format xml' '--format prometheus {} {}' '--nonsense'; do
                # shellcheck disable=SC2086
                helper volume-capacity $arguments
                is "$status" 2 "the exit status with $arguments"
        done
}

@test "sparse images that are each as large as a file can be leave no room, also two of them" {
        local name
        for name in one two; do
                call attach "$(spec "$name" type=loop size=9223372036854771712)" "$NODE"
                assert_field .status Success
                is "$(available default)" 0
        done
        create '{"name": "data", "size": "1m"}'
        refused ENOSPC
        call detach one "$NODE"
        removed '{"name": "one"}'
        is "$(available default)" 0
        call detach two "$NODE"
        removed '{"name": "two"}'
        created '{"name": "data", "size": "1m"}'
}
