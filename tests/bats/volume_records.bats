#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Records of volumes and of operations: torn, of another version, on a directory that is full or read-only.

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

# ---- operations

@test "the same operation has the same answer, whatever became of the volume" {
        local first
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        first=$output
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        is "$output" "$first"
        # the same request with its keys in another order, and spaces
        created '{ "operation":"op-1",  "size":"1m", "name":"data" }'
        is "$output" "$first"
        removed '{"name": "data"}'
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        is "$output" "$first"
        assert_no_volume
        created '{"name": "data", "size": "1m", "operation": "op-2"}'
        existed false
        is "$(images)" data.img
        removed '{"name": "data", "operation": "op-3"}'
        existed true
        created '{"name": "data", "size": "2m"}'
        removed '{"name": "data", "operation": "op-3"}'
        existed true
        is "$(images)" data.img
}

@test "an operation's id is not for another request" {
        created '{"name": "data", "size": "1m", "operation": "op"}'
        create '{"name": "data", "size": "2m", "operation": "op"}'
        refused EEXIST op
        create '{"name": "other", "size": "1m", "operation": "op"}'
        refused EEXIST op
        remove '{"name": "data", "operation": "op"}'
        refused EEXIST op
        is "$(images)" data.img
        is "$(provisioned)" data.json
}

@test "an operation that failed may be tried again" {
        make_pool_in_memory fast 2m
        create '{"name": "data", "size": "4m", "pool": "fast", "operation": "op"}'
        refused ENOSPC
        mount -o remount,size=8m "$POOL_DIR"
        created '{"name": "data", "size": "4m", "pool": "fast", "operation": "op"}'
        existed false
}

@test "an operation's id may hold anything printable" {
        local name text count=0
        while IFS= read -r -d '' name; do
                text=$(named "$name" '"size": 4096')
                created "{\"name\": \"data\", \"operation\"${text#'{"name"'}"
                count=$((count + 1))
        done < <(odd_names)
        is "$(find "$STATE_DIR/operations" -name '*.json' | wc -l)" "$(odd_names | tr -cd '\0' | wc -c)"
        ((count > 0))
        is "$(find "$BATS_TEST_TMPDIR" -name '*escape*' ! -path "$STATE_DIR/operations/*")" ''
        create '{"name": "data", "size": 4096, "operation": ""}'
        refused_key operation
        create '{"name": "data", "size": 4096, "operation": "a\nb"}'
        refused_key operation
}

@test "operations are forgotten after a week" {
        created '{"name": "data", "size": 4096, "operation": "old"}'
        # the other one of a call that was killed
        touch --date '8 days ago' "$STATE_DIR/operations/old.json" "$STATE_DIR/operations/.killed.json.tmp"
        touch --date '2 days ago' "$STATE_DIR/operations/.looked" # they are looked at once a day
        created '{"name": "data", "size": 4096, "operation": "new"}'
        is "$(find "$STATE_DIR/operations" -name '*.json*' -printf %f)" new.json
        removed '{"name": "data"}'
        created '{"name": "data", "size": 4096, "operation": "old"}'
        is "$(images)" data.img
}

@test "a torn note of an operation is as none" {
        created '{"name": "data", "size": 4096, "operation": "op"}'
        truncate -s 20 "$STATE_DIR/operations/op.json"
        created '{"name": "data", "size": 4096, "operation": "op"}'
        existed true
        created '{"name": "data", "size": 4096, "operation": "op"}'
        printf '{}' >"$STATE_DIR/operations/op.json"
        create '{"name": "data", "size": 4096, "operation": "op"}'
        assert_one_json_line
}

@test "one operation's id does not make two volumes at a time" {
        # in another pool, whose lock is another
        make_pool fast
        export SECOND='{"name": "second", "size": 4096, "pool": "fast", "operation": "op"}'
        export CREATE="$FLEXGRAFT_BIN/volume-create"
        # shellcheck disable=SC2016
        at_syscall --timeout 120 --at fallocate --run 'timeout 3 "$CREATE" "$SECOND"' "$CREATE" '{"name": "first", "size": 4096, "operation": "op"}'
        [[ $AT_REACHED == 1 ]]
        assert_success
        create "$SECOND"
        refused EEXIST
        is "$(provisioned)" first.json
}

# ---- records

@test "a record says what was promised, and only root may read it" {
        created '{"name": "data", "size": 5000}'
        json=$(<"$STATE_DIR/provisioned/data.json")
        assert_field '[.version, .name, .pool, .id, .size, .askedSize, .stage] | join(" ")' "1 data default data.img 8192 5000 created"
        is "$(stat --format '%a %u' "$STATE_DIR/provisioned/data.json")" "600 0"
        is "$(stat --format %a "$STATE_DIR/provisioned")" 700
}

@test "a torn record is set aside, and is no trouble for other volumes" {
        local text record=$STATE_DIR/provisioned/torn.json
        created '{"name": "data", "size": 4096}'
        while IFS= read -r text; do
                printf %s "$text" >"$record"
                listed
                shows '"volumes":[{"name":"data",' || { echo "with $text"; return 1; }
                is "$(<"$record.bad")" "$text" "what was set aside"
                rm "$record.bad"
                printf %s "$text" >"$record"
                created '{"name": "torn", "size": 4096}' || { echo "with $text"; return 1; }
                existed false
                removed '{"name": "torn"}'
                rm "$record.bad"
                printf %s "$text" >"$record"
                created '{"name": "data", "size": 4096}'
                removed '{"name": "torn"}'
                rm -f "$record" "$record.bad"
        done < <(printf '%s\n' '' '{' '{"version": 1, "na' '[]' 'null' '{}' '{"version": 1}' '{"version": "1", "name": "torn"}' 'no JSON' \
                '{"version":1,"stage":"created","size":1.5,"askedSize":1,"name":"torn","pool":"default","id":"torn.img"}')
        removed '{"name": "data"}'
        assert_no_volume
}

@test "a directory, FIFO, symbolic link or device file in place of a record does not affect other volumes" {
        local sort record=$STATE_DIR/provisioned/odd.json
        created '{"name": "data", "size": 4096}'
        HELPER_PREFIX=(timeout 120)
        for sort in directory fifo link dangling loop device; do
                case $sort in
                directory) mkdir "$record" ;;
                fifo) mkfifo "$record" ;;
                link) echo precious >"$BATS_TEST_TMPDIR/victim" && ln -s "$BATS_TEST_TMPDIR/victim" "$record" ;;
                dangling) ln -s "$BATS_TEST_TMPDIR/nothing" "$record" ;;
                loop) ln -s odd.json "$record" ;;
                device) mknod "$record" c 1 5 ;;
                esac
                listed || { echo "with a $sort"; return 1; }
                is "$(volume_names)" data
                created '{"name": "data", "size": 4096}'
                rm -rf "$record" "$record.bad"
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" precious
        [[ ! -e $BATS_TEST_TMPDIR/nothing ]]
}

# newer NAME: the volume's record is of a version that is not known.
newer() {
        jq -c '.version = 99 | .future = true' "$STATE_DIR/provisioned/$1.json" >"$BATS_TEST_TMPDIR/newer.json"
        cat "$BATS_TEST_TMPDIR/newer.json" >"$STATE_DIR/provisioned/$1.json"
}

@test "a record of another version is left alone and refused" {
        created '{"name": "data", "size": 4096}'
        newer data
        create '{"name": "data", "size": 4096}'
        refused EPROTONOSUPPORT version 99
        remove '{"name": "data"}'
        refused EPROTONOSUPPORT version 99
        cmp "$BATS_TEST_TMPDIR/newer.json" "$STATE_DIR/provisioned/data.json"
        is "$(images)" data.img
}

@test "a record of another version is no trouble for other volumes" {
        created '{"name": "data", "size": 4096}'
        created '{"name": "other", "size": 4096}'
        newer data
        created '{"name": "other", "size": 4096}'
        existed true
        removed '{"name": "other"}'
        created '{"name": "third", "size": 4096}'
        measured
        # what it has is nobody else's
        create '{"name": "thief", "id": "data.img"}'
        assert_failure
        cmp "$BATS_TEST_TMPDIR/newer.json" "$STATE_DIR/provisioned/data.json"
}

@test "a state directory that others may write to is refused" {
        local dir mode
        created '{"name": "data", "size": 4096}'
        for dir in "$STATE_DIR" "$STATE_DIR/provisioned"; do
                for mode in 0777 0770 0702 1777; do
                        chmod "$mode" "$dir"
                        create '{"name": "more", "size": 4096}'
                        refused EPERM "$STATE_DIR" || { echo "with mode $mode of $dir"; return 1; }
                        remove '{"name": "data"}'
                        refused EPERM
                        helper volume-list
                        refused EPERM
                        helper volume-capacity
                        refused EPERM
                        chmod 0700 "$dir"
                done
                chown 1000 "$dir"
                create '{"name": "more", "size": 4096}'
                assert_failure
                chown 0 "$dir"
        done
        is "$(images)" data.img
        created '{"name": "data", "size": 4096}'
        existed true
}

@test "a state directory that is read-only is a clean failure" {
        make_pool fast
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        mount -o remount,ro "$STATE_DIR"
        create '{"name": "more", "size": 4096, "pool": "fast"}'
        refused EROFS
        remove '{"name": "data"}'
        refused EROFS
        is "$(images "$POOL_DIR")" data.img
        mount -o remount,rw "$STATE_DIR"
        created '{"name": "more", "size": 4096, "pool": "fast"}'
        removed '{"name": "data"}'
        is "$(images "$POOL_DIR")" more.img
}

@test "a state directory that is full is a clean failure" {
        local round
        make_pool fast
        mount -o remount,size=64k "$STATE_DIR"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        cat /dev/zero >"$STATE_DIR/ballast" 2>/dev/null || :
        # one page more each time: whichever write it is that fails
        for round in 1 2 3 4 5; do
                create '{"name": "more", "size": 4096, "pool": "fast"}'
                [[ $status != 0 ]] || break
                refused ENOSPC
                is "$(images "$POOL_DIR")" data.img "the images with $round pages"
                is "$(provisioned)" data.json "the records with $round pages"
                truncate -s -4096 "$STATE_DIR/ballast"
        done
        assert_success
        rm "$STATE_DIR/ballast"
        removed '{"name": "more"}'
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a volume may be deleted although the disk is full" {
        mount -o remount,size=4m "$STATE_DIR"
        created '{"name": "data", "size": "1m"}'
        cat /dev/zero >"$STATE_DIR/ballast" 2>/dev/null || :
        removed '{"name": "data"}'
        assert_no_volume
}

@test "the largest volume that is told can be made where the records are, too" {
        local room
        mount -o remount,size=4m "$STATE_DIR"
        created '{"name": "data", "size": 4096}'
        room=$(largest default)
        ((room > 1 << 20))
        created "{\"name\": \"large\", \"size\": $room}"
        removed '{"name": "large"}'
        is "$(largest default)" "$room"
}

@test "a list reads each record a few times, however many there are" {
        local i record calls
        created '{"name": "data", "size": 4096}'
        record=$(<"$STATE_DIR/provisioned/data.json")
        truncate -s 4096 "$POOL"/v{1..60}.img
        for i in {1..60}; do
                printf %s "${record//'"data'/"\"v$i"}" >"$STATE_DIR/provisioned/v$i.json"
        done
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-list"
        assert_success
        assert_field '[(.volumes | length), (.disks | length)] | join(" ")' "61 0"
        calls=$(grep -c ' openat ' "$BATS_TEST_TMPDIR/calls")
        ((calls < 61 * 10)) || { echo "$calls files are opened for 61 volumes"; return 1; }
}
