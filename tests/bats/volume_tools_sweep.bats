#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The volume tools: killed, or refused, at any system call.
# bats file_tags=sweep

load helpers
load driver_helpers
load volume_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

# volume_sweep PROGRAM ACTION...: a round is one life of the volume "data": made, the swept program acted upon and called again, deleted.
# CREATE and DELETE are the requests; MAKE, for sh, comes before each round; AGAIN=no leaves the second call out.
volume_sweep() {
        local swept=$1 request=$CREATE before=() effect=() again=() create delete
        create=$(program volume-create) delete=$(program volume-delete)
        shift
        [[ -z $MAKE ]] || before+=(sh "$MAKE" ';')
        # its image is there, with its size and its record
        effect=(size "$POOL_DIR/${DISK:-data.img}" 1048576 ';' contains "$STATE_DIR/provisioned/data.json" '"stage":"created"' ';')
        case $swept in
        volume-create) again=(on-success "${effect[@]:0:4}" on-success "${effect[@]:4}") ;;
        volume-delete)
                request=$DELETE effect=()
                before+=(call "$create" "$CREATE" ';')
                ;;
        esac
        [[ $AGAIN == no ]] || again+=(call "$(program "$swept")" "$request" ';' "${effect[@]}")
        LABEL="$swept, $*" sweep --failure-status-max 1 "$@" --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" --watch mounts self \
                --watch loops "$BATS_TEST_TMPDIR/" -- \
                "${before[@]}" \
                act "$(program "$swept")" "$request" ';' \
                "${again[@]}" \
                call "$delete" "$DELETE" ';' \
                sh "rm -f '$STATE_DIR'/operations/*" ';' \
                same ';'
}

sweep_setup() {
        make_pool_in_memory fast 16m
        CREATE='{"name": "data", "size": "1m", "pool": "fast"}' DELETE='{"name": "data"}' MAKE='' AGAIN=yes DISK=''
}

sweep_failures() { # PROGRAM
        local errno
        for errno in EIO ENOSPC ENOMEM; do
                volume_sweep "$1" --fail "$errno"
        done
}

@test "volume-create killed at any call: again succeeds, and delete leaves nothing" {
        sweep_setup
        volume_sweep volume-create --kill
}

@test "volume-create killed while its worker lives on" {
        sweep_setup
        volume_sweep volume-create --kill-main
}

@test "the first volume-create of a node killed at any call" {
        sweep_setup
        MAKE="rm -rf '$STATE_DIR'/provisioned '$STATE_DIR'/operations '$POOL_DIR'/*"
        volume_sweep volume-create --kill
}

@test "volume-create with a profile and an operation killed at any call" {
        sweep_setup
        write_profiles "\"db\": $(profile_for fast)"
        CREATE='{"name": "data", "size": "1m", "profile": "db", "operation": "op"}'
        created '{"name": "data", "size": "1m", "pool": "fast", "operation": "other"}'
        removed '{"name": "data"}'
        volume_sweep volume-create --kill
}

@test "volume-create that adopts a disk killed at any call" {
        sweep_setup
        truncate -s 1m "$POOL_DIR/disk.img"
        CREATE='{"name": "data", "size": "1m", "pool": "fast", "match": true}' DISK=disk.img
        volume_sweep volume-create --kill
        is "$(images "$POOL_DIR")" disk.img
}

@test "volume-create killed at any call and given up: one delete leaves nothing" {
        sweep_setup
        AGAIN=no
        volume_sweep volume-create --kill
}

@test "volume-delete killed at any call: again succeeds, and nothing is left" {
        sweep_setup
        volume_sweep volume-delete --kill
        volume_sweep volume-delete --kill-main
}

@test "volume-delete that recycles killed at any call" {
        sweep_setup
        CREATE='{"name": "data", "id": "disk.img", "pool": "fast"}' DELETE='{"name": "data", "reclaimPolicy": "recycle"}' DISK=disk.img
        MAKE="[ ! -e '$POOL_DIR/disk.img' ] || cmp -n 1048576 '$POOL_DIR/disk.img' /dev/zero || exit 1; printf '%01048576d' 7 >'$POOL_DIR/disk.img'"
        volume_sweep volume-delete --kill
        is_all_zero "$POOL_DIR/disk.img"
}

@test "volume-create with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-create
}

@test "volume-delete with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-delete
}

@test "volume-list and volume-capacity with any call failing: a clean reply" {
        local swept errno
        sweep_setup
        created "$CREATE"
        make_disk "$POOL_DIR" disk.img 1m
        write_profiles "\"db\": $(profile_for fast)"
        measured
        for swept in volume-list volume-capacity; do
                for errno in EIO ENOMEM; do
                        LABEL="$swept, $errno" sweep --failure-status-max 1 --fail "$errno" --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" -- \
                                act "$(program "$swept")" ';' same ';'
                done
        done
        is "$(stat --format %s "$POOL_DIR/data.img")" 1048576
        grep -q '"stage":"created"' "$STATE_DIR/provisioned/data.json"
}
