#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: how containers are named, what is told, and requests that are wrong.

load helpers
load container_to_container_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-container-to-container mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# ---- how containers are named, and what is told

@test "both containers can be named by the runtime's name" {
        start_container crun
        A=$CONTAINER_PID
        local from=$CONTAINER_ID to
        start_container runc 200000
        B=$CONTAINER_PID to=$CONTAINER_ID
        in_a mkdir /share
        helper mount-container-to-container "{\"from\": {\"container\": \"$from\", \"path\": \"/share\"}, \"to\": {\"container\": {\"id\": \"$to\", \"runtime\": \"runc\"}, \"path\": \"/data\"}}"
        assert_success
        assert_field .mount.container.pid "$B"
        assert_field .mount.container.id "$to"
        assert_field .mount.from.container.pid "$A"
        assert_field .mount.from.container.id "$from"
        assert_field .mount.from.path /share
        assert_owners_agree /share /data
        # the same containers by their pids: the same mount
        c2c /share /data
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "{\"container\": \"$to\", \"target\": \"/data\"}"
        assert_success
        assert_no_records
}

@test "a container that is named by its directory in proc, or as an object with a pid, is the same one" {
        start_two plain plain
        in_a mkdir /share
        helper mount-container-to-container "{\"from\": {\"container\": {\"procDir\": \"/proc/$A\"}, \"path\": \"/share\"}, \"to\": {\"container\": {\"pid\": $B}, \"path\": \"/data\"}}"
        assert_success
        assert_field .mount.from.container.pid "$A"
        c2c /share /data
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "the reply and mount-list say where a mount is from" {
        start_two plain plain
        in_a mkdir /share
        in_a ln -s /share /link
        c2c /link /data '"id": "mine"'
        assert_success
        assert_field .mount.id mine
        assert_field .mount.target /data
        assert_field .mount.source /link
        assert_field .mount.container.pid "$B"
        assert_field .mount.from.container.pid "$A"
        assert_field .mount.from.path /share
        assert_field .mount.alreadyMounted false
        assert_field '.mount.mountId | type' number
        assert_field '.mount.options | contains(["rw", "nosuid", "nodev"])' true
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.pid' "$B"
        assert_field '.mounts[0].from.container.pid' "$A"
        assert_field '.mounts[0].from.path' /share
        helper mount-list "{\"container\": $B}"
        assert_field '.mounts | length' 1
        helper mount-list "{\"container\": $A}"
        assert_field '.mounts | length' 0
}

@test "dryRun says what would be and changes nothing" {
        start_two plain plain
        in_a mkdir /share
        remember
        c2c /share /made/data '"dryRun": true'
        assert_success
        assert_nothing_happened
        c2c /made/source /made/data '"dryRun": true, "mkdirSource": true'
        assert_success
        assert_nothing_happened
}

@test "dryRun finds the mistake" {
        start_two plain plain
        fails_without_a_trace ENOENT /none /data '"dryRun": true'
        fails_without_a_trace EPERM /proc /data '"dryRun": true'
}

@test "the same request twice gives one mount" {
        start_two plain plain
        in_a mkdir /share
        c2c /share /made/data
        assert_success
        local first=$json
        remember
        c2c /share /made/data
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.id "$(jq -r .mount.id <<<"$first")"
        assert_field .mount.mountId "$(jq -r .mount.mountId <<<"$first")"
        assert_field .mount.from.path /share
        assert_field .mount.idMapping idmapped
        assert_nothing_happened
}

@test "the same request with mkdirSource twice gives one mount and one directory" {
        start_two plain plain
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        c2c /made/by/us /data '"mkdirSource": true'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
}

@test "another source, another container or another sort of mount on the same target is refused with EBUSY" {
        start_two plain plain
        in_a mkdir /share /other
        c2c /share /data
        assert_success
        fails_without_a_trace EBUSY /other /data
        fails_without_a_trace EBUSY /share /data '"readOnly": true'
        remember
        helper mount-bind "$(bind_request /data)"
        assert_failure EBUSY
        assert_nothing_happened
        local first=$A
        start_container plain 300000
        A=$CONTAINER_PID
        use_container "$B"
        in_a mkdir /share
        fails_without_a_trace EBUSY /share /data
        A=$first
}

@test "eight same requests at once give one mount, eight different ones eight" {
        start_two plain plain
        in_a mkdir /share
        local i pids=() results
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /made/data)" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
                "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request "/new/source$i" "/new/target$i" '"mkdirSource": true')" >"$BATS_TEST_TMPDIR/new.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        is "$(jq -s 'map(select(.mount.alreadyMounted)) | length' <<<"$results")" 7 "already mounted in: $results"
        results=$(cat "$BATS_TEST_TMPDIR"/new.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        assert_mounts_at /made/data 1
        for i in 1 2 3 4 5 6 7 8; do
                assert_mounts_at "/new/target$i" 1
        done
        is "$(records | wc -l)" 9
}

@test "two containers that mount from each other at once both succeed" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir /share
        local forth back i
        forth=$(c2c_request /share /data)
        back="{\"from\": {\"container\": $B, \"path\": \"/share\"}, \"to\": {\"container\": $A, \"path\": \"/data\"}}"
        for i in 1 2 3 4 5 6 7 8 9 10; do
                "$FLEXGRAFT_BIN/mount-container-to-container" "$forth" >"$BATS_TEST_TMPDIR/forth" 2>&1 3>&- &
                helper mount-container-to-container "$back"
                wait "$!"
                assert_success
                assert_mounts_at /data 1
                helper mount-remove "$(remove_request /data)"
                assert_success
                helper mount-remove "{\"container\": $A, \"target\": \"/data\"}"
                assert_success
        done
        assert_no_records
}

@test "a target whose directories were made goes away with them, and the source stays" {
        start_two plain plain
        in_a mkdir /share
        remember
        c2c /share /made/by/us
        assert_success
        is "$(owners b /made/by)" 0:0
        helper mount-remove "$(remove_request /made/by/us)"
        assert_success
        assert_nothing_happened
}

@test "nothing is held open: one container can unmount the source, and the other one the target" {
        start_two plain plain
        in_a sh -c 'mkdir /share && mount --bind /share /share'
        c2c /share /data
        assert_success
        in_a umount /share
        in_b umount /data
        assert_mounts_at /data 0
}

@test "a mount outlives the container it is from" {
        start_two plain plain
        in_a sh -c 'mkdir /share && echo text >/share/file && chown 7:8 /share/file'
        c2c /share /data
        assert_success
        stop_container "$A"
        is "$(in_b cat /data/file)" text
        is "$(in_b stat -c %u:%g /data/file)" 7:8
        in_b touch /data/made
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].from.container.pid' "$A"
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_records
}

# bats test_tags=kernel
@test "a mount of a tmpfs outlives the container it is from" {
        kernel_can map-tmpfs || skip "this kernel cannot map a tmpfs"
        start_two crun runc
        in_a sh -c 'echo text >/tmp/file'
        c2c /tmp /data
        assert_success
        stop_container "$A"
        is "$(in_b cat /data/file)" text
        in_b touch /data/made
        is "$(in_b stat -c %u /data/made)" 0
}

@test "nothing of either container is held after one has ended" {
        start_two plain plain
        in_a mkdir /share
        c2c /share /data
        assert_success
        is "$(processes_in_mount_namespace "$A")" "$A" "processes in the source's mount namespace"
        is "$(processes_in_mount_namespace "$B")" "$B" "processes in the target's mount namespace"
        local ns
        ns=$(stat -L -c %i "/proc/$A/ns/mnt")
        stop_container "$A"
        is "$(find /proc -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname "mnt:?$ns?" 2>/dev/null)" ""
}

@test "a container that is not there fails cleanly, whichever of the two" {
        start_two plain plain
        local dead=$A
        in_a mkdir /share
        stop_container "$dead"
        use_container "$B"
        container_snapshot
        node_snapshot
        c2c /share /made/data
        assert_failure ESRCH
        assert_container_unchanged
        assert_node_unchanged
        A=$B B=$dead
        c2c /tmp /made/data
        assert_failure ESRCH
        assert_container_unchanged
        assert_node_unchanged
}

# ---- requests

not_understood() {
        helper mount-container-to-container "$1"
        assert_not_understood "${2:-}"
}

@test "a request that lacks something, or has something unknown, is not understood and says which key" {
        not_understood '{"to": {"container": 1, "path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": "/x"}}'
        not_understood '{}'
        not_understood '{"from": {"path": "/x"}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1}}' to
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": "/x", "bogus": 1}, "to": {"container": 1, "path": "/y"}}' from.bogus
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/y", "bogus": 1}}' to.bogus
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/y"}, "bogus": 1}' bogus
        not_understood '{"from": "/x", "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": 1}' to
        not_understood '{"from": [], "to": {"container": 1, "path": "/y"}}' from
        not_understood 'no JSON'
        not_understood '[]'
}

@test "a request with a value of the wrong sort is not understood and says which key" {
        local pair
        for pair in mkdirSource:1 mkdirSource:'"yes"' recursive:1 readOnly:'"true"' locked:1 mkdir:0 replace:1 dryRun:1 timeoutSeconds:0 ids:'"other"' propagation:'"odd"' id:1; do
                not_understood "{\"from\": {\"container\": 1, \"path\": \"/x\"}, \"to\": {\"container\": 1, \"path\": \"/y\"}, \"${pair%%:*}\": ${pair#*:}}" "${pair%%:*}"
        done
        not_understood '{"from": {"container": 1, "path": "x"}, "to": {"container": 1, "path": "/y"}}' from
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "y"}}' to
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": 1, "path": "/"}}' to
        not_understood '{"from": {"container": 1, "path": ""}, "to": {"container": 1, "path": "/y"}}'
        not_understood '{"from": {"container": 1, "path": 1}, "to": {"container": 1, "path": "/y"}}' from.path
        not_understood '{"from": {"container": 0, "path": "/x"}, "to": {"container": 1, "path": "/y"}}' from.container
        not_understood '{"from": {"container": 1, "path": "/x"}, "to": {"container": -1, "path": "/y"}}' to.container
        not_understood '{"from": {"container": {"pid": 1, "bogus": 2}, "path": "/x"}, "to": {"container": 1, "path": "/y"}}' from.container.bogus
}

@test "a request with keys of other helpers is not understood" {
        local key
        for key in source:'"/x"' fsType:'"ext4"' size:'"1m"' raw:true lower:'["/a","/b"]'; do
                not_understood "{\"from\": {\"container\": 1, \"path\": \"/x\"}, \"to\": {\"container\": 1, \"path\": \"/y\"}, \"${key%%:*}\": ${key#*:}}" "${key%%:*}"
        done
        helper mount-bind '{"container": 1, "source": "/x", "target": "/y", "mkdirSource": true}'
        assert_not_understood mkdirSource
}

@test "a request can come from standard input" {
        start_two plain plain
        in_a mkdir /share
        c2c_request /share /data >"$BATS_TEST_TMPDIR/request"
        helper mount-container-to-container - <"$BATS_TEST_TMPDIR/request"
        assert_success
        assert_mounts_at /data 1
}

@test "help and version are told" {
        run "$FLEXGRAFT_BIN/mount-container-to-container" --help
        is "$status" 0
        [[ $output == *mkdirSource* ]]
        run "$FLEXGRAFT_BIN/mount-container-to-container" --version
        is "$status" 0
        [[ $output == *[0-9].[0-9]* ]]
}
