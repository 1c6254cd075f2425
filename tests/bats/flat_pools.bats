#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a call costs does not grow with the volumes of a pool: the same system calls with 10 as with 120; and what is remembered of a
# pool instead is never wrong.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        make_pool_in_memory fast 64m
        created '{"name": "first", "size": 4096, "pool": "fast", "operation": "op"}'
        created '{"name": "second", "size": 4096, "pool": "fast"}' # the pool has its identity by now
}

teardown() {
        driver_teardown
}

# other_volumes N: N volumes more, with their images, as if volume-create had made them before there was an index, or a sum. SPARSE: their
# images are of that size, and have no blocks.
other_volumes() {
        local template i
        template=$(jq -c . "$STATE_DIR/provisioned/first.json")
        [[ -n $template ]] || return 1
        for ((i = 0; i < $1; i++)); do
                OTHERS=$((${OTHERS:-0} + 1))
                printf '%s\n' "${template//first/other$OTHERS}" >"$STATE_DIR/provisioned/other$OTHERS.json"
                if [[ ${SPARSE:-} ]]; then
                        truncate -s "$SPARSE" "$POOL_DIR/other$OTHERS.img"
                else
                        printf '%04096d' 7 >"$POOL_DIR/other$OTHERS.img"
                fi
                cp "$STATE_DIR/operations/op.json" "$STATE_DIR/operations/op$OTHERS.json"
        done
        rm -rf "$STATE_DIR/uses"
        created '{"name": "again", "size": 4096, "pool": "fast"}' && removed '{"name": "again"}' # what was counted is known again
}

# counted_calls PROGRAM REQUEST: sets CALLS to the system calls, but for those of the helper processes for other kinds of pools, which are ended at
# one call or another: that of a process that the C library forked, as it did these alone, is its first.
counted_calls() {
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/$1" "$2"
        CALLS=$(awk 'NR == 1 { main = $2 } $3 == "set_robust_list" && $2 != main { helpers[$2] = 1 } { calls[$2]++ }
                END { for (pid in calls) if (!(pid in helpers)) sum += calls[pid]; print sum }' "$BATS_TEST_TMPDIR/calls")
}

# is_flat PROGRAM REQUEST [COMMAND...]: PROGRAM makes as many system calls for REQUEST with 10 other volumes as with 120; COMMAND comes
# after each. One call for every fourth volume would be 27; a directory of the index is six when another volume's key happens to be in it, too.
is_flat() {
        local swept=$1 request=$2 few
        shift 2
        other_volumes 10 || return 1
        for few in first few; do # the first makes what later ones find
                counted_calls "$swept" "$request"
                assert_success && "${@:-:}" || return 1
        done
        few=$CALLS
        other_volumes 110 || return 1
        counted_calls "$swept" "$request"
        assert_success && "${@:-:}" || return 1
        echo "$few system calls with 10 other volumes, $CALLS with 120"
        ((CALLS - few < 27))
}

@test "volume-create costs the same however many volumes its pool has" {
        is_flat volume-create '{"name": "data", "size": 4096, "pool": "fast"}' removed '{"name": "data"}'
}

@test "volume-create of an existing volume costs the same however many volumes its pool has" {
        is_flat volume-create '{"name": "first", "size": 4096, "pool": "fast"}'
}

@test "volume-create with an operation costs the same however many operations are remembered" {
        again() {
                removed '{"name": "data"}' && rm "$STATE_DIR/operations/new.json"
        }
        is_flat volume-create '{"name": "data", "size": 4096, "pool": "fast", "operation": "new"}' again
}

@test "volume-create that adopts a disk by its id costs the same however many volumes its pool has" {
        truncate -s 4096 "$POOL_DIR/disk.img"
        is_flat volume-create '{"name": "data", "id": "disk.img", "pool": "fast"}' removed '{"name": "data"}'
}

@test "volume-delete costs the same however many volumes its pool has" {
        local request='{"name": "data", "size": 4096, "pool": "fast"}'
        created "$request"
        is_flat volume-delete '{"name": "data"}' created "$request"
}

@test "volume-capacity costs the same however many volumes its pool has" {
        is_flat volume-capacity '{"pool": "fast"}'
}

@test "volume-capacity costs the same with \"maxPercent\" however many volumes its pool has" {
        make_pool fast '"maxPercent": 90'
        is_flat volume-capacity '{"pool": "fast"}'
}

@test "volume-create with a profile costs the same however many pools come after the first that has room" {
        local more few=
        printf '{"profile_matrix": {"any": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}\n' >"$FLEXGRAFT_PROFILES"
        created '{"name": "again", "size": 4096, "pool": "default"}' # it has its identity by now
        for more in first few 1 2 3 4 5 6 7 8 9 10; do
                [[ $more != [0-9]* ]] || make_pool "pool-$more"
                [[ $more == f* || $more == 10 ]] || continue
                counted_calls volume-create '{"name": "data", "size": 4096, "profile": "any"}'
                assert_field .volume.pool default
                [[ $more != few ]] || few=$CALLS # not the first, which makes what later ones find
                removed '{"name": "data"}'
        done
        echo "$few system calls with two pools, $CALLS with twelve"
        ((CALLS - few < 27))
}

@test "volume-create that matches a disk costs the same however many volumes other pools have" {
        local fast=$POOL_DIR
        make_pool_in_memory other 8m
        truncate -s 4096 "$POOL_DIR/disk.img"
        POOL_DIR=$fast
        again() {
                assert_field .volume.id disk.img && removed '{"name": "data"}'
        }
        is_flat volume-create '{"name": "data", "size": 4096, "pool": "other", "match": true}' again
}

@test "volume-create costs the same however many sparse volumes its pool has" {
        SPARSE=4096
        is_flat volume-create '{"name": "data", "size": 4096, "pool": "fast", "parameters": {"preallocate": "false"}}' removed '{"name": "data"}'
}

@test "volume-capacity costs the same however many sparse volumes its pool has" {
        SPARSE=4096
        is_flat volume-capacity '{"pool": "fast"}'
}

# were_attached FIRST LAST: those other volumes are attached, written to and detached.
were_attached() {
        local i
        for ((i = $1; i <= $2; i++)); do
                call attach "$(spec "other$i" type=loop)" "$NODE"
                assert_success || return 1
                printf x | dd of="$(loop_of "$POOL_DIR/other$i.img")" conv=notrunc status=none
                call detach "other$i" "$NODE"
                assert_success || return 1
        done
        helper volume-reconcile '{}'
        assert_success
}

# bats test_tags=deep
@test "volume-capacity costs the same however many volumes of its pool were attached before the last volume-reconcile" {
        local few
        SPARSE=8192
        other_volumes 5
        were_attached 1 5
        counted_calls volume-capacity '{"pool": "fast"}'
        assert_success
        few=$CALLS
        other_volumes 55
        were_attached 6 60
        counted_calls volume-capacity '{"pool": "fast"}'
        assert_success
        echo "$few system calls with 5 volumes that were attached, $CALLS with 60"
        ((CALLS - few < 25))
        counted
}

# ---- what is remembered

@test "images that are made, removed or renamed by hand are counted" {
        make_pool fast '"maxPercent": 50'
        counted
        truncate -s 3m "$POOL_DIR/hand.img"
        counted
        mv "$POOL_DIR/hand.img" "$POOL_DIR/hand"
        counted
        mv "$POOL_DIR/hand" "$POOL_DIR/hand.img"
        rm "$POOL_DIR/second.img"
        counted
}

@test "an image that is made by hand while volume-create runs is counted" {
        make_pool fast '"maxPercent": 50'
        counted
        at_syscall --at fallocate --run "truncate -s 3m '$POOL_DIR/hand.img'" \
                "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "1m", "pool": "fast"}'
        assert_success
        is "$AT_REACHED $(stat -c %s "$POOL_DIR/hand.img")" "1 3145728"
        counted
}

@test "an image that is made by hand under the volume's name while volume-create runs is refused, and stays" {
        make_pool fast '"maxPercent": 50'
        at_syscall --at fsync --run "echo precious >'$POOL_DIR/data.img'" \
                "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "1m", "pool": "fast"}'
        assert_failure EEXIST
        is "$AT_REACHED $(<"$POOL_DIR/data.img")" "1 precious"
        [[ $(provisioned) != *data* ]]
        counted
}

@test "an image that is removed by hand while volume-delete runs is counted" {
        make_pool fast '"maxPercent": 50'
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        truncate -s 3m "$POOL_DIR/hand.img"
        counted
        at_syscall --at fsync --run "rm '$POOL_DIR/hand.img'" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        [[ ! -e $POOL_DIR/hand.img ]]
        counted
}

@test "an image whose size was changed by hand is counted by volume-reconcile" {
        local before
        make_pool fast '"maxPercent": 50'
        before=$(available fast)
        truncate -s 1m "$POOL_DIR/second.img"
        helper volume-reconcile '{}'
        assert_success
        is "$(available fast)" $((before - (1 << 20) + 4096))
        counted
}

@test "volume-delete of an image that was made larger by hand leaves the capacity right" {
        make_pool fast '"maxPercent": 50'
        counted
        truncate -s 1g "$POOL_DIR/second.img"
        removed '{"name": "second"}'
        counted
}

# sparse_attached: a sparse volume of 4 MiB, which is attached as $LOOP; BEFORE: what was available before that.
sparse_attached() {
        created '{"name": "sparse", "size": "4m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        BEFORE=$(available fast)
        call attach "$(spec sparse type=loop)" "$NODE"
        assert_success
        LOOP=$(loop_of "$POOL_DIR/sparse.img")
}

@test "what a sparse volume does not have yet is not available, as it is written and given back" {
        sparse_attached
        dd if=/dev/zero of="$LOOP" bs=1M count=2 conv=fsync status=none
        is "$(stat -c %b "$POOL_DIR/sparse.img") $(available fast)" "4096 $BEFORE"
        blkdiscard --length 1048576 "$LOOP"
        is "$(stat -c %b "$POOL_DIR/sparse.img") $(available fast)" "2048 $BEFORE"
        counted
}

@test "what a sparse volume has got is not promised to it any more, when it is detached, attached again and deleted" {
        local empty
        empty=$(available fast)
        sparse_attached
        dd if=/dev/zero of="$LOOP" bs=1M count=2 conv=fsync status=none
        call detach sparse "$NODE"
        is "$(available fast)" "$BEFORE"
        helper volume-reconcile '{}'
        is "$(available fast)" "$BEFORE"
        call attach "$(spec sparse type=loop)" "$NODE"
        assert_success
        dd if=/dev/zero of="$(loop_of "$POOL_DIR/sparse.img")" bs=1M count=1 seek=2 conv=fsync status=none
        is "$(stat -c %b "$POOL_DIR/sparse.img") $(available fast)" "6144 $BEFORE"
        call detach sparse "$NODE"
        removed '{"name": "sparse"}'
        is "$(available fast)" "$empty"
        counted
}

# bats test_tags=deep
@test "what a sparse volume gets is right, whenever others counted while it was attached" {
        local n=0
        created '{"name": "sparse", "size": "1m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        BEFORE=$(available fast)
        while ((++n < 200)); do
                at_syscall --at "newfstatat:$n" --run "touch '$POOL_DIR'; '$FLEXGRAFT_BIN/volume-capacity' '{\"pool\": \"fast\"}'" \
                        "$FLEXGRAFT_BIN/verbs/attach" "$(spec sparse type=loop)" "$NODE"
                assert_success
                LOOP=$(loop_of "$POOL_DIR/sparse.img")
                dd if=/dev/zero of="$LOOP" bs=64k count=1 conv=fsync status=none
                is "$(available fast)" "$BEFORE" "with a count at newfstatat $n, what is available"
                blkdiscard "$LOOP"
                is "$(available fast)" "$BEFORE" "with a count at newfstatat $n, what is available after that"
                call detach sparse "$NODE"
                assert_success
                helper volume-reconcile '{}'
                ((AT_REACHED)) || break
        done
        ((n > 5 && n < 200))
        counted
}

@test "blocks that an image was given by hand are counted by volume-reconcile" {
        created '{"name": "sparse", "size": "4m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        BEFORE=$(available fast)
        dd if=/dev/zero of="$POOL_DIR/sparse.img" bs=1M count=2 conv=notrunc status=none
        helper volume-reconcile '{}'
        assert_success
        is "$(available fast)" "$BEFORE"
        counted
}

# bats test_tags=deep
@test "what a copy has got is right, whenever others counted while it was made" {
        local n=0 from to fast=$POOL_DIR
        make_pool_in_memory other 64m
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        yes data | dd of="$fast/data.img" bs=64k count=4 iflag=fullblock conv=notrunc status=none
        for to in "$fast" "$POOL_DIR"; do
                n=0
                while ((++n < 60)); do
                        at_syscall --at "fchmod:$n" --run "touch '$to'; '$FLEXGRAFT_BIN/volume-capacity' '{\"pool\": \"${to##*/}\"}'" \
                                "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"copy\", \"from\": \"data\", \"pool\": \"${to##*/}\"}"
                        assert_success
                        from=$(available "${to##*/}")
                        rm -rf "$STATE_DIR/pool-sums"
                        is "$from" "$(available "${to##*/}")" "with a count at fchmod $n, what is available"
                        is "$(stat -c %a "$to/copy.img")" 600
                        removed '{"name": "copy"}'
                        ((AT_REACHED)) || break
                done
                ((n > 2 && n < 60))
        done
}

@test "what was known of a pool before the node was booted is counted anew" {
        local sums
        sparse_attached
        sums=$(compgen -G "$STATE_DIR/pool-sums/*/.sums")
        jq -c '.owed = 0 | .boot = "another"' "$sums" >"$BATS_TEST_TMPDIR/sums"
        cat "$BATS_TEST_TMPDIR/sums" >"$sums"
        is "$(available fast)" "$BEFORE"
}

@test "blocks that the user of an attached volume gives back are not available to others" {
        local before
        created '{"name": "data", "size": "4m", "pool": "fast"}'
        before=$(available fast)
        call attach "$(spec data type=loop)" "$NODE"
        assert_reply_of_kubelet
        assert_success
        helper volume-reconcile '{}' # what is not needed is not remembered
        assert_success
        blkdiscard "$(loop_of "$POOL_DIR/data.img")"
        (($(stat -c %b "$POOL_DIR/data.img") == 0))
        is "$(available fast)" "$before"
        counted
}

@test "a volume that the driver grows is counted" {
        make_pool fast '"maxPercent": 50'
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        counted
        call expandvolume "$(spec data type=loop)" "$(global_dir data)" 3145728 1048576
        assert_success
        is "$(stat -c %s "$POOL_DIR/data.img")" 3145728
        counted
}

# expand VOLUME SIZE [OPTION...]: the driver grows it.
expand() {
        call expandvolume "$(spec "$1" type=loop "${@:3}")" "$(global_dir "$1")" "$2" 4096
        assert_success
}

@test "an attached volume that the driver grows is counted" {
        make_pool fast '"maxPercent": 50'
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        call attach "$(spec data type=loop)" "$NODE"
        assert_success
        counted
        expand data 3145728
        is "$(stat -c %s "$POOL_DIR/data.img")" 3145728
        counted
}

@test "an attached volume that the driver grows is counted though its pool gets another owner meanwhile" {
        make_pool fast '"maxPercent": 50'
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        call attach "$(spec data type=loop)" "$NODE"
        assert_success
        counted
        at_syscall --at utimensat --run "chown 1000 '$POOL_DIR'" \
                "$FLEXGRAFT_BIN/verbs/expandvolume" "$(spec data type=loop)" "$(global_dir data)" 3145728 4096
        is "$AT_REACHED $(stat -c %u "$POOL_DIR")" "1 1000"
        chown 0 "$POOL_DIR"
        is "$(stat -c %s "$POOL_DIR/data.img")" 3145728
        counted
}

@test "growing an image with another suffix, which counts as none, changes no sum" {
        make_pool fast '"maxPercent": 50'
        write_policy '"images": ["fast/disk.raw"]'
        truncate -s 1m "$POOL_DIR/disk.raw"
        counted
        expand disk 3145728 pool=fast image=disk.raw
        is "$(stat -c %s "$POOL_DIR/disk.raw")" 3145728
        counted
}

@test "growing an image that has no record, and whose directory is no pool any more, leaves the directory alone" {
        local before
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        call attach "$(spec data type=loop)" "$NODE"
        assert_success
        rm -r "$FLEXGRAFT_POOLS/fast.json" "$STATE_DIR/pool-sums" "$STATE_DIR/provisioned/data.json"
        before=$(stat -c %y "$POOL_DIR")
        expand data 3145728
        is "$(stat -c %s "$POOL_DIR/data.img") $(stat -c %y "$POOL_DIR")" "3145728 $before"
        is "$(find "$STATE_DIR/pool-sums" -mindepth 1 -name '*-*')" ''
}

@test "growing an image does not make one smaller that was grown meanwhile" {
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        at_syscall --at utimensat --run "truncate -s 8m '$POOL_DIR/data.img'" \
                "$FLEXGRAFT_BIN/verbs/expandvolume" "$(spec data type=loop)" "$(global_dir data)" 3145728 4096
        is "$AT_REACHED $(stat -c %s "$POOL_DIR/data.img")" "1 8388608"
}

# bats test_tags=deep
@test "what a grown volume does not have yet is not available, whenever others counted while it grew" {
        local n=0 before
        while ((++n < 40)); do
                created '{"name": "data", "size": "1m", "pool": "fast"}'
                before=$(available fast)
                at_syscall --at "fcntl:$n" --run "touch '$POOL_DIR'; '$FLEXGRAFT_BIN/volume-capacity' '{\"pool\": \"fast\"}'" \
                        "$FLEXGRAFT_BIN/verbs/expandvolume" "$(spec data type=loop)" "$(global_dir data)" 3145728 4096
                is "$(stat -c %s "$POOL_DIR/data.img")" 3145728
                is "$(available fast)" $((before - 2097152)) "with a count at fcntl $n, what is available"
                counted
                removed '{"name": "data"}'
                ((AT_REACHED)) || break
        done
        ((n > 1 && n < 40))
}

@test "what a volume that is wiped has lost is not available, though others counted before and it was killed" {
        local before count=$BATS_TEST_TMPDIR/fallocates
        created '{"name": "data", "size": "4m", "pool": "fast", "reclaimPolicy": "recycle"}'
        before=$(available fast)
        cat >"$BATS_TEST_TMPDIR/each" <<END
echo >>'$count'
[ \$(wc -l <'$count') -lt 3 ] || exec kill -KILL "\$AT_PID" "\$AT_MAIN_PID"
touch '$POOL_DIR'
'$FLEXGRAFT_BIN/volume-capacity' '{"pool": "fast"}'
END
        at_syscall --at fallocate --each "sh '$BATS_TEST_TMPDIR/each'" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        # zeroes, which this filesystem has not; a hole; its blocks again
        is "$(wc -l <"$count") $(stat -c %b "$POOL_DIR/data.img")" "3 0"
        is "$(available fast)" "$before"
        counted
}

# killed_everywhere PROGRAM REQUEST COMMAND...: wherever PROGRAM is killed, the capacity is right; COMMAND comes after each.
killed_everywhere() {
        local n=0
        # each loop device of the node, whoever attached it, is looked at: a dozen calls for each
        while ((++n < 5000)); do
                at_syscall --at "$n" --kill "$FLEXGRAFT_BIN/$1" "$2"
                ((AT_REACHED)) || break
                counted || return 1
                "${@:3}" || return 1
        done
        ((n > 50 && n < 5000))
}

# bats test_tags=deep
@test "wherever volume-create is killed, the capacity is right" {
        make_pool fast '"maxPercent": 50'
        killed_everywhere volume-create '{"name": "data", "size": "1m", "pool": "fast"}' removed '{"name": "data"}'
}

# bats test_tags=deep
@test "wherever volume-delete is killed, the capacity is right" {
        make_pool fast '"maxPercent": 50'
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        killed_everywhere volume-delete '{"name": "data"}' created '{"name": "data", "size": "1m", "pool": "fast"}'
}

# bats test_tags=deep
@test "after many volumes made and deleted at a time, the capacity is right" {
        local i pids=()
        make_pool fast '"maxPercent": 50'
        for i in 1 2 3 4 5 6; do
                (
                        for _ in 1 2 3 4; do
                                "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"data $i\", \"size\": \"$((i % 3 + 1))m\", \"pool\": \"fast\"}"
                                "$FLEXGRAFT_BIN/volume-capacity" '{"pool": "fast"}'
                                ((i < 4)) || "$FLEXGRAFT_BIN/volume-delete" "{\"name\": \"data $i\"}"
                        done
                ) >/dev/null 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        counted
}

@test "two pools that are one directory know whose a disk is" {
        printf '{"name": "other", "type": "loop", "path": "%s"}\n' "$POOL_DIR" >"$FLEXGRAFT_POOLS/other.json"
        create '{"name": "data", "id": "first.img", "pool": "other"}'
        refused EBUSY first
        rm -rf "$STATE_DIR/uses" # as before there was an index
        create '{"name": "data", "id": "first.img", "pool": "other"}'
        refused EBUSY first
        rm "$POOL_DIR/first.img"
        create '{"name": "data", "id": "first.img", "pool": "other"}'
        refused ENOENT
}

@test "volume-reconcile removes index entries that have no volume, and the sums of a pool that is gone" {
        at_syscall --at "unlinkat:$(($(unlinks) - 1))" --kill "$FLEXGRAFT_BIN/volume-delete" '{"name": "second"}'
        mkdir -p "$STATE_DIR/pool-sums/1-1"
        : >"$STATE_DIR/pool-sums/1-1/a.img"
        helper volume-reconcile '{}'
        assert_success
        [[ ! -e $STATE_DIR/pool-sums/1-1 ]]
        is "$(index_entries | grep -c :p:)" "$(provisioned | wc -l)"
}

# unlinks: how many files volume-delete removes.
unlinks() {
        created '{"name": "data", "size": 4096, "pool": "fast"}' >&2 || return 1
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        awk '$3 == "unlinkat"' "$BATS_TEST_TMPDIR/calls" | wc -l
}
