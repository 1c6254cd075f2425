#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-list: for people, and without reading what others have mounted.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-list mount-remove
}

teardown() {
        bed_teardown
}

table() {
        run --separate-stderr "$FLEXGRAFT_BIN/mount-list" --table "$@"
        echo "status $status"
        echo "$output"
        echo "$stderr"
}

bind() { # TARGET
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"$1\"}"
        assert_success
}

@test "the table has a line for each mount, with its state" {
        start_container crun
        bind /one
        bind /two/three
        in_container umount /one
        table
        is "$status" 0
        is "$stderr" ''
        is "${#lines[@]}" 3
        [[ ${lines[0]} =~ ^CONTAINER\ +TARGET\ +STATE\ +WANTED\ +TYPE\ +SOURCE\ +OPTIONS\ +ID\ +PROBLEM$ ]]
        [[ ${lines[1]} =~ ^$CONTAINER_PID\ +/one\ +gone\ +no\ +bind\  ]]
        [[ ${lines[2]} =~ ^$CONTAINER_PID\ +/two/three\ +present\ +no\ +bind\  ]]
}

@test "the table names a container by its id where the request did" {
        start_container runc
        helper mount-bind "{\"container\": \"$CONTAINER_ID\", \"source\": \"$SOURCE\", \"target\": \"/one\"}"
        assert_success
        table
        [[ ${lines[1]} =~ ^$CONTAINER_ID\ +/one\ +present\  ]]
}

@test "the table of nothing is its heading" {
        table
        is "$status" 0
        is "${#lines[@]}" 1
}

@test "the table takes a request, too" {
        start_container plain
        bind /one
        start_container plain 200000
        table "{\"container\": $CONTAINER_PID}"
        is "$status" 0
        is "${#lines[@]}" 1
}

@test "a table that cannot be had is a complaint on standard error" {
        table '{"container": 999999999}'
        is "$status" 1
        is "$output" ''
        [[ $stderr == mount-list:* ]]
        table '{"nonsense": 1}'
        is "$status" 2
        [[ $stderr == *nonsense* ]]
}

@test "control characters in a target cannot command the terminal that shows the table" {
        start_container plain
        bind '/a\u001b[2Jb'
        table
        [[ $output != *$'\e'* ]]
        [[ ${lines[1]} == *'/a\u001b[2Jb'* ]]
}

# list_calls: the system calls that mount-list makes now, and whether it reads a table of mounts.
list_calls() {
        "$FLEXGRAFT_TOOLS/at-syscall" --count --log "$BATS_TEST_TMPDIR/log" -- "$FLEXGRAFT_BIN/mount-list" '{}' >/dev/null
        wc -l <"$BATS_TEST_TMPDIR/log"
}

# bats test_tags=text
@test "listing costs the same however many other mounts the container has, where the kernel has statmount" {
        "$FLEXGRAFT_TOOLS/kernel-can" statmount || skip "this kernel has no statmount of another namespace"
        local few many
        start_container plain
        bind /covered
        bind /data
        in_container mount -t tmpfs tmpfs /covered     # what is not on top is asked for by its id
        few=$(list_calls)
        in_container sh -c 'mkdir /tmp/many; i=0; while [ $i -lt 500 ]; do mount -t tmpfs tmpfs /tmp/many; i=$((i + 1)); done'
        many=$(list_calls)
        echo "$few calls with few mounts, $many with 500 more"
        ((few == many))
        helper mount-list '{}'
        assert_field '[.mounts[].state] | sort | join(" ")' "covered present"
}
