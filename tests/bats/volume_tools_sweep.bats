#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The volume tools: killed, or refused, at any system call.
# bats file_tags=sweep

load helpers
load driver_helpers
load volume_helpers
load snapshot_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        snapshot_teardown
}

# volume_sweep PROGRAM ACTION...: a round is one life of the volume "data": made, the swept program acted upon and called again, deleted.
# CREATE and DELETE are the requests; MAKE, for sh, comes before each round; AGAIN=no leaves the second call out.
volume_sweep() {
        local swept=$1 request=$CREATE before=() effect=() again=() create delete
        create=$FLEXGRAFT_BIN/volume-create delete=$FLEXGRAFT_BIN/volume-delete
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
        [[ $AGAIN == no ]] || again+=(call "$FLEXGRAFT_BIN/$swept" "$request" ';' "${effect[@]}")
        LABEL="$swept, $*" sweep --failure-status-max 1 "$@" --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" --watch mounts self \
                --watch loops "$BATS_TEST_TMPDIR/" -- \
                "${before[@]}" \
                act "$FLEXGRAFT_BIN/$swept" "$request" ';' \
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
                                act "$FLEXGRAFT_BIN/$swept" ';' same ';'
                done
        done
        is "$(stat --format %s "$POOL_DIR/data.img")" 1048576
        grep -q '"stage":"created"' "$STATE_DIR/provisioned/data.json"
}

# expand_sweep ACTION...: a round grows the volume "data", of xfs, by 1 MiB. MOUNTED is where it is mounted; empty: nowhere.
expand_sweep() {
        local step=(call "$FLEXGRAFT_BIN/volume-expand" '{"name": "data", "size": @NEW_SIZE@}' ';')
        local effect=(size "$POOL_DIR/data.img" @NEW_SIZE@ ';' contains "$STATE_DIR/provisioned/data.json" '"size":@NEW_SIZE@' ';')
        if [[ -n $MOUNTED ]]; then
                stat -f -c %b "$MOUNTED" >"$BATS_TEST_TMPDIR/blocks"
                # a round grows it by 256 blocks; xfs keeps some for itself
                effect+=(sh "read -r before <'$BATS_TEST_TMPDIR/blocks'; stat -f -c %b '$MOUNTED' >'$BATS_TEST_TMPDIR/blocks'
                        read -r now <'$BATS_TEST_TMPDIR/blocks'; [ \$now -gt \$((before + 200)) ]" ';')
        else
                effect+=(sh "xfs_db -r -c 'sb 0' -c 'print dblocks' '$POOL_DIR/data.img' | grep -qx \"dblocks = \$((NEW_SIZE / 4096))\"" ';')
        fi
        SIZE=$(stat -c %s "$POOL_DIR/data.img")
        LABEL="volume-expand, ${MOUNTED:+mounted, }$*" sweep --failure-status-max 1 "$@" --counter NEW_SIZE $((SIZE + (1 << 20))) $((1 << 20)) \
                --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" --watch mounts self --watch loops "$BATS_TEST_TMPDIR/" -- \
                act "${step[@]:1}" on-success "${effect[@]:0:4}" "${step[@]}" "${effect[@]}" same ';'
}

expand_sweep_setup() {
        needs volume-expand
        POOL_DIR=$BATS_TEST_TMPDIR/disk MOUNTED=''
        mkdir "$POOL_DIR"
        printf '{"name": "disk", "type": "loop", "path": "%s"}\n' "$POOL_DIR" >"$FLEXGRAFT_POOLS/disk.json"
        created '{"name": "data", "size": "300m", "pool": "disk", "fsType": "xfs", "parameters": {"preallocate": "false"}}'
        kubelet_attach data type=loop
        kubelet_stage data
}

@test "volume-expand of a mounted volume killed at any call, or with any call failing: again succeeds" {
        expand_sweep_setup
        MOUNTED=$(global_dir data)
        expand_sweep --kill
        expand_sweep --kill-main
        WIDER=4 expand_sweep --fail EIO
        WIDER=4 expand_sweep --fail ENOMEM
        kubelet_unstage data
        kubelet_detach data
        run -0 xfs_repair -n "$POOL_DIR/data.img"
}

@test "volume-expand of an unused volume killed at any call, or with any call failing: again succeeds, and nothing is attached" {
        expand_sweep_setup
        kubelet_unstage data
        kubelet_detach data
        expand_sweep --kill
        expand_sweep --kill-main
        WIDER=4 expand_sweep --fail EIO
        WIDER=4 expand_sweep --fail ENOMEM
        run -0 xfs_repair -n "$POOL_DIR/data.img"
}

# snapshot_sweep ACTION...: a round takes the snapshot "monday" of "data", and deletes it. THAWED=yes: the filesystem is not left frozen by the
# action itself.
snapshot_sweep() {
        local again=(call "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}' ';') thawed=()
        local effect=(size "$POOL_DIR/monday.img" 16777216 ';' contains "$STATE_DIR/provisioned/monday.json" '"stage":"created"' ';')
        # a process that writes to one that stays frozen cannot be killed
        thawed=(sh "[ -n '$MOUNTED' ] || exit 0; n=0; until fsfreeze --freeze '$MOUNTED' 2>/dev/null; do n=\$((n + 1)); [ \$n -lt 600 ] || exit 1
                sleep 0.1; done; fsfreeze --unfreeze '$MOUNTED'" ';')
        LABEL="volume-snapshot, ${MOUNTED:+mounted, }$*" sweep --failure-status-max 1 "$@" \
                --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" --watch mounts self --watch loops "$BATS_TEST_TMPDIR/" -- \
                act "${again[@]:1}" on-success "${effect[@]:0:4}" ${THAWED:+"${thawed[@]}"} "${again[@]}" "${effect[@]}" "${thawed[@]}" \
                sh "e2fsck -fn '$POOL_DIR/monday.img'" ';' \
                call "$FLEXGRAFT_BIN/volume-delete" '{"name": "monday"}' ';' same ';'
}

@test "volume-snapshot killed at any call, or with any call failing: nothing stays frozen, and again succeeds" {
        needs volume-snapshot
        make_pool_that_shares fast 1g
        make_mounted ext4 16m
        MOUNTED=$(global_dir data)
        WIDER=2 snapshot_sweep --kill
        THAWED=yes WIDER=2 snapshot_sweep --kill-main
        THAWED=yes WIDER=2 snapshot_sweep --fail EIO
        THAWED=yes WIDER=4 snapshot_sweep --fail ENOSPC
}

@test "volume-snapshot that copies, killed at any call: again succeeds" {
        needs volume-snapshot
        make_pool fast
        make_mounted ext4 16m
        unmount_volume data
        MOUNTED=''
        WIDER=2 snapshot_sweep --kill
        WIDER=4 snapshot_sweep --fail EIO
}

@test "volume-snapshot that restores, killed at any call: again succeeds, and the volume is whole each time" {
        local step action
        needs volume-snapshot
        make_pool_that_shares fast 1g
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        printf one | dd of="$POOL_DIR/data.img" conv=notrunc status=none
        snapped '{"name": "data", "snapshot": "monday"}'
        step=("$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "restore": "monday"}' ';')
        for action in '--kill' '--kill-main' '--fail EIO'; do
                # shellcheck disable=SC2086
                LABEL="volume-snapshot restore, $action" WIDER=2 sweep --failure-status-max 1 $action \
                        --watch tree "$STATE_DIR" --watch tree "$POOL_DIR" --watch loops "$BATS_TEST_TMPDIR/" -- \
                        sh "printf two | dd of='$POOL_DIR/data.img' conv=notrunc status=none" ';' \
                        act "${step[@]}" sh "case \$(head -c 3 '$POOL_DIR/data.img') in one | two) ;; *) exit 1 ;; esac" ';' \
                        on-success sh "[ \"\$(head -c 3 '$POOL_DIR/data.img')\" = one ]" ';' \
                        call "${step[@]}" sh "[ \"\$(head -c 3 '$POOL_DIR/data.img')\" = one ]" ';' same ';'
        done
}

@test "volume-create of a copy killed at any call: again succeeds, and delete leaves nothing" {
        needs volume-snapshot
        make_pool_that_shares fast 1g
        created '{"name": "origin", "size": "1m", "pool": "fast"}'
        snapped '{"name": "origin", "snapshot": "monday"}'
        CREATE='{"name": "data", "from": "monday"}' DELETE='{"name": "data"}' MAKE='' AGAIN=yes DISK=''
        WIDER=2 volume_sweep volume-create --kill
        WIDER=2 volume_sweep volume-create --kill-main
        WIDER=4 volume_sweep volume-create --fail EIO
}
