#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The hints of failures lead somewhere: a request with the key and the value that a hint names ends with a mount, and never at a hint that
# was followed.

load helpers
load container_to_container_helpers
load driver_helpers
load named_helpers
load hints_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-overlay mount-tmpfs mount-container-to-container mount-remove
        IDS=.ids MOUNT=.mount           # where a request has "ids", and a reply its mount
}

teardown() {
        note_test
        if [[ -n ${DRIVER:-} ]]; then driver_teardown; else bed_teardown; fi
}

# start_on_overlay KIND BASE: start_container, its root directory being an overlay.
start_on_overlay() {
        local dir=$BATS_TEST_TMPDIR/overlay.$2.$((++bed_serial))/rootfs
        make_rootfs "$dir" "$2"
        on_overlay "$dir"
        ROOTFS=$dir start_container "$1" "$2"
}

# ids_in TEXT: the words for "ids" that it has in quotes.
ids_in() {
        grep -oE '"(auto|idmapped|userns|remap|host)"' <<<"$1" | tr -d '"' | sort -u
}

# keys_in TEXT: what it has as "key": value, but for "ids" and "fallback".
keys_in() {
        grep -oE '"[a-zA-Z]+": ("[a-z]+"|true)' <<<"$1" | grep -vE '^"(ids|fallback)"' | sort -u
}

# follow_keys PROGRAM REQUEST [KEY...]: the request fails with a hint of which each key leads to success, and none is one of KEY, which
# were tried already.
follow_keys() {
        local program=$1 request=$2 tried=("${@:3}") hint keys key with
        helper "$program" "$request"
        assert_failure || { echo "after: ${tried[*]}"; return 1; }
        hint=$(hint)
        mapfile -t keys < <(keys_in "$hint")
        ((${#keys[@]} > 0)) || { echo "no way after ${tried[*]}: $hint"; show_last; return 1; }
        for key in "${keys[@]}"; do
                [[ " ${tried[*]} " != *" ${key%%:*} "* ]] || { echo "a circle after ${tried[*]}: $hint"; return 1; }
                with=$(jq -c ". + {$key}" <<<"$request")
                helper "$program" "$with"
                if [[ $status != 0 ]]; then
                        follow_keys "$program" "$with" "${tried[@]}" "${key%%:*}" || return 1
                elif [[ $program != mount-remove ]]; then
                        helper mount-remove "{\"id\": $(jq "$MOUNT.id" <<<"$json"), \"force\": true}"
                        assert_success || return 1
                fi
        done
}

# follow PROGRAM REQUEST IDS...: the request with the last of IDS succeeds, or fails with a hint of which each way leads to success, and
# none to one of IDS, which were tried already.
follow() {
        local program=$1 request=$2 tried=("${@:3}") hint words word
        helper "$program" "$(jq -c --arg ids "${tried[-1]}" "$IDS = \$ids" <<<"$request")"
        if [[ $status == 0 ]]; then
                helper mount-remove "{\"id\": $(jq "$MOUNT.id" <<<"$json"), \"force\": true}"
                assert_success
                return
        fi
        assert_failure || { echo "after: ${tried[*]}"; return 1; }
        hint=$(hint)
        mapfile -t words < <(ids_in "$hint")
        ((${#words[@]} > 0)) || { echo "no way after ${tried[*]}: $hint"; show_last; return 1; }
        for word in "${words[@]}"; do
                [[ " ${tried[*]} " != *" $word "* ]] || { echo "a circle after ${tried[*]}: $hint"; return 1; }
                follow "$program" "$request" "${tried[@]}" "$word" || return 1
        done
        [[ $hint != *'"fallback": "remap"'* ]] || follow_fallback "$program" "$request"
}

# follow_fallback PROGRAM REQUEST: the request without "ids", and with "fallback", succeeds.
follow_fallback() {
        helper "$1" "$(jq -c "del($IDS) | ${IDS%ids}fallback = \"remap\"" <<<"$2")"
        assert_success
        helper mount-remove "{\"id\": $(jq "$MOUNT.id" <<<"$json"), \"force\": true}"
        assert_success
}

# follow_all PROGRAM REQUEST IDS...: from each of IDS.
follow_all() {
        local ids
        for ids in "${@:3}"; do
                follow "$1" "$2" "$ids" || return 1
        done
}

@test "an overlay root is mounted between containers with equal maps, without mapping, with owners as each counts" {
        start_on_overlay plain 100000
        A=$CONTAINER_PID
        start_on_overlay plain 100000
        B=$CONTAINER_PID
        [[ ! /proc/$A/ns/user -ef /proc/$B/ns/user ]]
        in_a mkdir /share
        c2c /share /data
        assert_success
        assert_field .mount.idMapping none
        assert_owners_agree /share /data 65535
        c2c /share /data
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "what mount-bind mapped for a container is mounted in one with an equal map, with owners as each counts" {
        start_two plain plain 100000 100000
        use_container "$A"
        helper mount-bind "$(bind_request /mapped)"
        assert_success
        assert_field .mount.idMapping idmapped
        use_container "$B"
        c2c /mapped /data
        assert_success
        assert_owners_agree /mapped /data 65535
}

@test "from container to container over an overlay root, each hint leads to a mount" {
        start_on_overlay plain 100000
        A=$CONTAINER_PID
        start_container plain 200000
        B=$CONTAINER_PID
        in_a mkdir /share
        c2c /share /data
        assert_failure EINVAL
        follow_all mount-container-to-container "$(c2c_request /share /data)" auto idmapped userns remap host
}

@test "for a bind of an overlay, and of a directory, each hint leads to a mount" {
        start_container plain
        follow_all mount-bind "$(bind_request /data)" auto idmapped userns remap host
        on_overlay "$SOURCE"
        helper mount-bind "$(bind_request /data)"
        assert_failure EINVAL
        follow_all mount-bind "$(bind_request /data)" auto idmapped userns remap host
}

@test "for a pipe on an overlay, which remap-daemon does not serve, each hint leads to a mount" {
        start_container plain
        on_overlay "$SOURCE"
        mkfifo "$SOURCE/pipe"
        helper mount-bind "$(SOURCE=$SOURCE/pipe bind_request /pipe)"
        assert_failure EINVAL
        is "$(ids_in "$(hint)")" host
        SOURCE=$SOURCE/pipe follow_all mount-bind "$(SOURCE=$SOURCE/pipe bind_request /pipe)" auto idmapped remap host
}

@test "from container to container over a filesystem that remap-daemon does not serve, each hint leads to a mount" {
        start_two plain plain 100000 200000
        in_a mkdir /share
        nsenter --target "$A" --mount -- mount -t ramfs -o mode=0777 ramfs /share
        c2c /share /data
        assert_failure EINVAL
        is "$(ids_in "$(hint)")" host
        follow_all mount-container-to-container "$(c2c_request /share /data)" auto idmapped remap host
}

@test "for block devices, each hint leads to a mount" {
        local type
        start_container plain
        for type in ext4 squashfs; do
                make_device "$type"
                follow_all mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\", \"readOnly\": true}" \
                        auto idmapped userns remap host
        done
}

@test "for an overlay over an overlay, and for a tmpfs, each hint leads to a mount" {
        local request
        start_container plain
        on_overlay "$SOURCE"
        mkdir "$SOURCE/1" "$SOURCE/2"
        request="{\"container\": $CONTAINER_PID, \"lower\": [\"$SOURCE/1\", \"$SOURCE/2\"], \"target\": \"/data\"}"
        helper mount-overlay "$request"
        assert_failure EINVAL
        follow_all mount-overlay "$request" auto idmapped userns remap host
        follow_all mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}" auto idmapped userns remap host
}

@test "for an image, each hint leads to a mount" {
        local type image=$BATS_TEST_TMPDIR/image
        start_container plain
        for type in ext4 squashfs; do
                make_device "$type"
                cp --sparse=always "$IMAGE" "$image"
                follow_all mount-image "{\"container\": $CONTAINER_PID, \"source\": \"$image\", \"target\": \"/data\", \"readOnly\": true}" \
                        auto idmapped userns remap host
        done
}

@test "for a volume by name, each hint leads to a mount" {
        driver_setup
        needs mount-volume volume-create
        made db
        start_container plain
        follow_all mount-volume "{\"container\": $CONTAINER_PID, \"volume\": \"db\", \"target\": \"/data\"}" auto idmapped host
}

@test "for an entry of a batch, each hint leads to a mount" {
        start_container plain
        on_overlay "$SOURCE"
        IDS='.mounts[0].ids' MOUNT='.mounts[0]'
        follow_all mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/data\"}]}" \
                auto idmapped userns remap host
}

# ---- hints with other keys

@test "where flexgraft has mounted something else, the hint leads to a mount" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        follow_keys mount-bind "$(bind_request /data '"readOnly": true')"
}

@test "where the source's filesystem is dead, the hint leads to a mount" {
        SOURCE=$BATS_TEST_TMPDIR/served
        serve_fuse
        start_container plain
        helper mount-bind "$(bind_request /data '"ids": "host"')"
        assert_success
        serve_fuse
        follow_keys mount-bind "$(bind_request /data '"ids": "host"')"
}

@test "where the target is missing, the hint leads to a mount" {
        start_container plain
        follow_keys mount-bind "$(bind_request /missing '"mkdir": false')"
}

@test "where the source is missing in its container, the hint leads to a mount" {
        start_two plain plain
        follow_keys mount-container-to-container "$(c2c_request /missing /data)"
}

@test "where a mount below the source is locked, the hint leads to a mount" {
        mkdir "$SOURCE/below"
        mount -t tmpfs tmpfs "$SOURCE/below"
        start_two plain plain
        use_container "$A"
        helper mount-bind "$(bind_request /given '"recursive": true, "locked": true')"
        assert_success
        follow_keys mount-container-to-container "$(c2c_request /given /data)"
}

@test "where a process uses the mount, the hint leads to its end" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/sh -c 'cd /data && echo ready && exec sleep 1000000'
        follow_keys mount-remove "$(remove_request /data)"
        assert_mounts_at /data 0
}

@test "where a raw device is mounted on the node, the hint leads to a mount" {
        start_container plain
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/node"
        mount -o ro "$DEVICE" "$BATS_TEST_TMPDIR/node"
        follow_keys mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": true}"
}

@test "where a container may only read a raw device that another one wants to write, the hint leads to a mount" {
        make_device blank
        start_container plain 100000
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": true, \"readOnly\": true}"
        assert_success
        start_container plain 200000
        follow_keys mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": true}"
}

@test "where a device cannot be written, the hint leads to a mount" {
        start_container plain
        make_device ext4
        blockdev --setro "$DEVICE"
        follow_keys mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
}

@test "where an image cannot be written, the hint leads to a mount" {
        needs mount-image
        start_container plain
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/ro"
        cp --sparse=always "$IMAGE" "$BATS_TEST_TMPDIR/ro/image"
        mount --bind "$BATS_TEST_TMPDIR/ro" "$BATS_TEST_TMPDIR/ro"
        mount -o remount,bind,ro "$BATS_TEST_TMPDIR/ro"
        follow_keys mount-image "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/ro/image\", \"target\": \"/data\"}"
}

@test "where the journal of an image that is not written must be replayed, the hint leads to a mount" {
        needs mount-image
        start_container plain
        truncate -s 16M "$BATS_TEST_TMPDIR/image"
        mkfs.ext4 -q "$BATS_TEST_TMPDIR/image"
        DEVICE=$(loop_over "$BATS_TEST_TMPDIR/image")
        bed_loops+=("$DEVICE")
        mkdir "$BATS_TEST_TMPDIR/node"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/node"
        touch "$BATS_TEST_TMPDIR/node/file"
        sync --file-system "$BATS_TEST_TMPDIR/node"
        cp "$BATS_TEST_TMPDIR/image" "$BATS_TEST_TMPDIR/copy"
        umount "$BATS_TEST_TMPDIR/node"
        follow_keys mount-image "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/copy\", \"target\": \"/data\", \"readOnly\": true}"
}

@test "each hint that has a key with a value was followed, or there is a reason why not" {
        # the beginning of a hint, and why no test here follows it
        local -A besides=(
                ['the source is already id-mapped']='the kernel must refuse a mapping: Linux 6.15 makes it anew (container_to_container_mapped.bats)'
                ['say "ids": "host" to map none']='the container must be one of a user of the node (nested_ids.bats)'
                ['the server may refuse this client']='it needs a server (nfs.bats)'
                ['this kernel cannot id-map a tmpfs']='Linux 6.3 and later can'
        )
        check_hints with besides
}

@test "where the node's root can have no more namespaces, which one container may have taken, the hint says so" {
        start_container plain
        at_syscall --at unshare --fail ENOSPC "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"locked": true')"
        is "$AT_REACHED" 1
        assert_failure ENOSPC
        [[ $(json_field .error.hint) == *max_mnt_namespaces*lsns* ]]
}
