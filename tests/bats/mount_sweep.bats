#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-bind, mount-block, mount-image, mount-container-to-container, mount-remove: killed, or refused, at any system call; the same call again finds its way.
# bats file_tags=sweep

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# sweep_mount REQUEST ACTION... [-- STEP...]: the mount with the action at each call, with these further steps after it; again; removed, and the
# steps in TIDY.
sweep_mount() {
        local request=$1 action=() remove
        shift
        while (($# > 0)) && [[ $1 != -- ]]; do
                action+=("$1")
                shift
        done
        remove=$(remove_request /made/data)
        around_mount
        sweep "${AROUND[@]}" "${action[@]}" -- \
                act "$FLEXGRAFT_BIN/$PROGRAM" "$request" ';' \
                on-success mounts "$CONTAINER_PID" /made/data 1 ';' \
                on-failure mounts "$CONTAINER_PID" /made/data 0 ';' \
                "${@:2}" \
                call "$FLEXGRAFT_BIN/$PROGRAM" "$request" ';' \
                mounts "$CONTAINER_PID" /made/data 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$remove" ';' \
                "${TIDY[@]}" same ';'
        nothing_left
}
TIDY=()

# sweep_remove REQUEST ACTION...: a mount, and its removal with the action at each call; again.
sweep_remove() {
        local request=$1 remove
        shift
        remove=$(remove_request /made/data)
        around_mount
        sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/mount-bind" "$request" ';' \
                act "$FLEXGRAFT_BIN/mount-remove" "$remove" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$remove" ';' \
                same ';'
        nothing_left
}

@test "mount-bind killed before any call: again succeeds, and remove leaves nothing" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data)" --kill
}

@test "mount-bind killed before any call, without a user namespace" {
        PROGRAM=mount-bind
        start_container plain-nouserns
        sweep_mount "$(bind_request /made/data)" --kill
}

@test "mount-bind killed before any call while its worker lives on" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data)" --kill-main
}

@test "locked mount-bind killed before any call" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data '"locked": true')" --kill
}

# image_sweep ACTION...: mount-image of a partition, by its name; whatever happens, its loop device goes with the mount.
image_sweep() {
        local image=$BATS_TEST_TMPDIR/disk.img
        needs mount-image
        PROGRAM=mount-image
        truncate -s 12M "$image"
        mkfs.ext4 -q -F -E offset=1048576 "$image" 8M
        python3 "$FLEXGRAFT_REPO/tests/tools/partition-table.py" "$image" gpt 2048:16384:data
        start_container plain
        TIDY=(loops "$image" 0 ';')
        sweep_mount "{\"container\": $CONTAINER_PID, \"source\": \"$image\", \"partition\": \"data\", \"target\": \"/made/data\"}" \
                "$@" -- on-failure loops "$image" 0 ';'
}

@test "mount-image killed before any call: no loop device is left" {
        image_sweep --kill
}

@test "mount-image killed before any call while its worker lives on" {
        image_sweep --kill-main
}

@test "mount-image with any call failing with EIO: a clean reply, and no loop device is left" {
        image_sweep --fail EIO
}

@test "mount-block killed before any call" {
        needs mount-block
        PROGRAM=mount-block
        make_device ext4
        start_container plain
        sweep_mount "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/made/data\"}" --kill
}

@test "mount-bind with any call failing with EIO: a clean reply, and again succeeds" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data)" --fail EIO
}

@test "mount-bind with any call failing with ENOMEM: a clean reply, and again succeeds" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data)" --fail ENOMEM
}

@test "locked mount-bind with any call failing with EIO: a clean reply, and again succeeds" {
        PROGRAM=mount-bind
        start_container plain
        sweep_mount "$(bind_request /made/data '"locked": true')" --fail EIO
}

@test "mount-block with any call failing with EIO: a clean reply, and again succeeds" {
        needs mount-block
        PROGRAM=mount-block
        make_device ext4
        start_container plain
        sweep_mount "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/made/data\"}" --fail EIO
}

# between_containers: container A with /share and a file in its /tmp, the current container B, and A as it is.
between_containers() {
        start_container plain
        A=$CONTAINER_PID A_ROOTFS=$CONTAINER_ROOTFS
        in_container sh -c 'mkdir /share && touch /tmp/file'
        start_container plain 200000
        a_before=$(cat "/proc/$A/mountinfo" && find "$A_ROOTFS" -xdev | sort)
        SOURCE_AROUND=(--watch mounts "$A" --watch tree "$A_ROOTFS")
        PROGRAM=mount-container-to-container
        needs "$PROGRAM"
}

source_is_unchanged() {
        is "$(cat "/proc/$A/mountinfo" && find "$A_ROOTFS" -xdev | sort)" "$a_before" "the source's container"
}

between_request() {
        printf '{"from": {"container": %s, "path": "%s"}, "to": {"container": %s, "path": "/made/data"}%s}' "$A" "$1" "$CONTAINER_PID" "${2:+, $2}"
}

@test "mount-container-to-container killed before any call" {
        between_containers
        sweep_mount "$(between_request /share)" "${SOURCE_AROUND[@]}" --kill
        source_is_unchanged
}

@test "mount-container-to-container killed before any call while its worker lives on" {
        between_containers
        sweep_mount "$(between_request /share)" "${SOURCE_AROUND[@]}" --kill-main
        source_is_unchanged
}

@test "mount-container-to-container with any call failing with EIO: a clean reply, and again succeeds" {
        between_containers
        sweep_mount "$(between_request /share)" "${SOURCE_AROUND[@]}" --fail EIO
        source_is_unchanged
}

@test "mount-container-to-container with any call failing with ENOMEM: a clean reply, and again succeeds" {
        between_containers
        sweep_mount "$(between_request /share)" "${SOURCE_AROUND[@]}" --fail ENOMEM
        source_is_unchanged
}

@test "mount-container-to-container of a tmpfs with any call failing with EPERM: a clean reply, and again succeeds" {
        "$FLEXGRAFT_TOOLS/kernel-can" map-tmpfs || skip "this kernel cannot map a tmpfs"
        between_containers
        sweep_mount "$(between_request /tmp)" "${SOURCE_AROUND[@]}" --fail EPERM
        source_is_unchanged
}

@test "mount-container-to-container that makes its source, with any call failing with EIO: on failure it is taken back" {
        between_containers
        sweep_mount_anew "$(between_request /new/source '"mkdirSource": true')" --fail EIO
        source_is_unchanged
}

@test "mount-container-to-container that makes its source, killed before any call: again succeeds" {
        between_containers
        sweep_mount_anew "$(between_request /new/source '"mkdirSource": true')" --kill
        source_is_unchanged
}

# sweep_mount_anew REQUEST ACTION...: the same as sweep_mount, with the source missing each time, and again after a failing call.
sweep_mount_anew() {
        local after=(on-failure sh "[ ! -e '$A_ROOTFS/new' ]" ';')
        TIDY=(sh "rm -rf '$A_ROOTFS/new'" ';')
        [[ $2 != --fail ]] || after+=("${TIDY[@]}")
        sweep_mount "$@" "${SOURCE_AROUND[@]}" -- "${after[@]}"
}

# ---- replace

# sweep_replace ID ACTION...: with an old mount in place, the new one is to replace it, with the action at each call. Then, each at a third of
# the calls: again, and remove; remove; again with the old one to replace it. ID is further members of the request of the new one.
sweep_replace() {
        local more=$1 old new remove seen recovery after
        shift
        needs mount-bind mount-remove
        mkdir "$SOURCE/old" "$SOURCE/new"
        echo old >"$SOURCE/old/marker"
        echo new >"$SOURCE/new/marker"
        remove=$(remove_request /made/data)
        old="{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE/old\", \"target\": \"/made/data\", \"replace\": true}"
        new="{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE/new\", \"target\": \"/made/data\", \"replace\": true${more:+, $more}}"
        # what is on top, in `seen`; nothing for a bare place
        seen="seen=; [ ! -e /proc/$CONTAINER_PID/root/made/data/marker ] || read -r seen </proc/$CONTAINER_PID/root/made/data/marker"
        after=(on-success sh "$seen; [ \"\$seen\" = new ]" ';' on-success mounts "$CONTAINER_PID" /made/data 1 ';')
        if kernel_can beneath; then
                after+=(sh "$seen; [ \"\$seen\" ]" ';' on-failure sh "$seen; [ \"\$seen\" = old ]" ';'
                        on-failure mounts "$CONTAINER_PID" /made/data 1 ';')
        fi
        around_mount
        for recovery in new remove old; do
                case $recovery in
                new) again "$new" new ;;
                remove) AGAIN=() ;;
                old) again "$old" old ;;
                esac
                LABEL="then $recovery" WIDER=3 sweep "${AROUND[@]}" "$@" -- \
                        call "$FLEXGRAFT_BIN/mount-bind" "$old" ';' \
                        act "$FLEXGRAFT_BIN/mount-bind" "$new" ';' \
                        "${after[@]}" \
                        "${AGAIN[@]}" \
                        call "$FLEXGRAFT_BIN/mount-remove" "$remove" ';' \
                        same ';'
        done
        nothing_left
}

# again REQUEST WHAT: the steps in AGAIN: it succeeds, and there is that one and no other.
again() {
        AGAIN=(call "$FLEXGRAFT_BIN/mount-bind" "$1" ';' mounts "$CONTAINER_PID" /made/data 1 ';'
                sh "$seen; [ \"\$seen\" = $2 ] && set -- '$STATE_DIR'/mounts/*.json; [ \$# = 1 ] && [ -e \"\$1\" ]" ';')
}

@test "a replacement killed before any call: never bare, and again, removed or replaced by the old one it ends right" {
        start_container plain
        sweep_replace '' --kill
}

@test "a replacement killed before any call, without a user namespace" {
        start_container plain-nouserns
        sweep_replace '' --kill
}

@test "a replacement killed before any call while its worker lives on" {
        start_container plain
        sweep_replace '' --kill-main
}

@test "a replacement with another id killed before any call" {
        start_container plain
        sweep_replace '"id": "other"' --kill
}

@test "a replacement with any call failing with EIO: a clean reply, the old mount or the new one, and again it ends right" {
        start_container plain
        sweep_replace '' --fail EIO
}

@test "a replacement with another id and any call failing with ENOMEM" {
        start_container plain
        sweep_replace '"id": "other"' --fail ENOMEM
}

@test "mount-remove killed before any call: again succeeds and leaves nothing" {
        start_container plain
        sweep_remove "$(bind_request /made/data)" --kill
}

@test "mount-remove killed before any call while its worker lives on" {
        start_container plain
        sweep_remove "$(bind_request /made/data)" --kill-main
}

@test "mount-remove with any call failing with EIO: a clean reply, and again succeeds" {
        start_container plain
        sweep_remove "$(bind_request /made/data)" --fail EIO
}

@test "mount-remove with any call failing with ENOMEM: a clean reply, and again succeeds" {
        start_container plain
        sweep_remove "$(bind_request /made/data)" --fail ENOMEM
}

@test "mount-list with any call failing with EIO: a clean reply" {
        start_container plain
        helper mount-bind "$(bind_request /made/data)"
        assert_success
        around_mount
        sweep "${AROUND[@]}" --fail EIO -- act "$FLEXGRAFT_BIN/mount-list" '{}' ';' mounts "$CONTAINER_PID" /made/data 1 ';' same ';'
}
