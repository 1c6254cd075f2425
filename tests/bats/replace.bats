#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "replace": true: a mount takes the place of an earlier one of flexgraft's, and nobody finds the place bare.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
        OLD=$BATS_TEST_TMPDIR/old NEW=$BATS_TEST_TMPDIR/new
        mkdir "$OLD" "$NEW"
        echo old >"$OLD/marker"
        echo new >"$NEW/marker"
}

teardown() {
        bed_teardown
}

# bind OLD|NEW TARGET [MORE]
bind() {
        SOURCE=$1
        helper mount-bind "$(bind_request "$2" "${@:3}")"
}

# replace DIR TARGET [MORE]: succeeds, and says how.
replace() {
        bind "$1" "$2" "\"replace\": true${3:+, $3}"
        assert_success
        assert_replaced
}

assert_replaced() {
        if kernel_can beneath; then
                assert_field .mount.replaced.atomic true
        else
                assert_field .mount.replaced.atomic false
        fi
        assert_field .mount.alreadyMounted false
}

# bats test_tags=kernel
@test "a mount is replaced by another of its sort" {
        start_container plain
        bind "$OLD" /data
        assert_success
        assert_field '.mount | has("replaced")' false
        replace "$NEW" /data
        is "$(in_container cat /data/marker)" new
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
        helper mount-list '{}'
        assert_field '.mounts[0].source' "$NEW"
        assert_field '.mounts[0].state' present
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

check_runtime() {
        start_container "$1"
        container_snapshot
        bind "$OLD" /made/data
        assert_success
        replace "$NEW" /made/data
        is "$(in_container cat /made/data/marker)" new
        assert_mounts_at /made/data 1
        in_container touch /made/data/file
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "a mount in a crun container is replaced, and the directories made for the first go with the second" {
        check_runtime crun
}

# bats test_tags=kernel
@test "a mount in a runc container is replaced, and the directories made for the first go with the second" {
        check_runtime runc
}

# bats test_tags=kernel
@test "a mount in a container without a user namespace is replaced" {
        check_runtime plain-nouserns
}

# bats test_tags=kernel
@test "a mount under a shared root directory is replaced" {
        check_runtime plain-shared
}

@test "a mount replaced ten times over leaves one mount and one record" {
        start_container plain
        container_snapshot
        local i
        for i in 1 2 3 4 5; do
                bind "$OLD" /made/data '"replace": true'
                assert_success
                bind "$NEW" /made/data '"replace": true'
                assert_success
        done
        assert_mounts_at /made/data 1
        is "$(in_container cat /made/data/marker)" new
        is "$(records | wc -l)" 1
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_container_unchanged
}

# reader_at PATH: a loop in the container that looks for PATH all the time, until stop_reader.
reader_at() {
        # shellcheck disable=SC2016
        background in_container sh -c 'n=0; touch /reading; while [ -e /reading ]; do [ -e "$0" ] || { echo "bare in round $n" >>/bare; }; n=$((n + 1)); [ $((n % 100)) != 0 ] || echo "$n" >/rounds; done; echo "$n" >/rounds; touch /read' "$1"
        wait_until 10 test -e "$CONTAINER_ROOTFS/reading"
}

stop_reader() {
        rm "$CONTAINER_ROOTFS/reading"
        wait_until 20 test -e "$CONTAINER_ROOTFS/read"
        echo "$(<"$CONTAINER_ROOTFS/rounds") rounds of the reader"
}

replace_under_a_reader() {
        local i kind=$1
        start_container "$kind"
        bind "$OLD" /data
        assert_success
        reader_at /data/marker
        for ((i = 0; i < 40; i++)); do
                bind "$NEW" /data '"replace": true'
                assert_success
                bind "$OLD" /data '"replace": true'
                assert_success
        done
        wait_until 20 has_read 1000
        stop_reader
        kernel_can beneath || return 0
        is "$(head -n 3 "$CONTAINER_ROOTFS/bare" 2>/dev/null)" "" "what the reader missed"
}

@test "a process that looks all the time never finds the place bare" {
        replace_under_a_reader plain
}

@test "a process that looks all the time never finds the place bare, without a user namespace" {
        replace_under_a_reader plain-nouserns
}

# It is bare for a moment; whether the reader has seen it.
sees_a_gap() {
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}" # the reader may have it open
        assert_success && bind "$NEW" /data && assert_success && grep -qs bare "$CONTAINER_ROOTFS/bare"
}

@test "the reader of these tests does notice a gap" {
        start_container plain
        bind "$OLD" /data
        assert_success
        reader_at /data/marker
        wait_until 20 sees_a_gap
        stop_reader
}

@test "a process that has a file of the old mount open goes on with it" {
        start_container plain
        bind "$OLD" /data
        assert_success
        # shellcheck disable=SC2016
        background in_container sh -c 'exec 5>>/data/marker; cd /data; touch /opened; while [ ! -e /go ]; do sleep 0.05; done; echo more >&5; cat marker >/seen; touch made-later; touch /done'
        wait_until 10 test -e "$CONTAINER_ROOTFS/opened"
        replace "$NEW" /data
        touch "$CONTAINER_ROOTFS/go"
        wait_until 10 test -e "$CONTAINER_ROOTFS/done"
        is "$(<"$OLD/marker")" $'old\nmore'
        is "$(<"$CONTAINER_ROOTFS/seen")" $'old\nmore'
        [[ -e $OLD/made-later && ! -e $NEW/made-later ]]
        is "$(in_container cat /data/marker)" new
}

@test "the same request is not replaced but found: alreadyMounted" {
        start_container plain
        bind "$OLD" /data
        assert_success
        local first=$json
        container_snapshot
        node_snapshot
        bind "$OLD" /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field '.mount | has("replaced")' false
        assert_field .mount.mountId "$(jq -r .mount.mountId <<<"$first")"
        assert_container_unchanged
        assert_node_unchanged
        replace "$NEW" /data
        bind "$NEW" /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "replace where nothing is yet is a mount like any other" {
        start_container plain
        container_snapshot
        bind "$NEW" /made/data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted false
        assert_field '.mount.replaced.atomic // false' false
        is "$(in_container cat /made/data/marker)" new
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_container_unchanged
}

@test "without replace the target of another mount stays EBUSY" {
        start_container plain
        bind "$OLD" /data
        assert_success
        container_snapshot
        node_snapshot
        bind "$NEW" /data
        assert_failure EBUSY
        bind "$NEW" /data '"replace": false'
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "the same source with other attributes replaces, with the new attributes" {
        start_container plain
        bind "$OLD" /data
        assert_success
        replace "$OLD" /data '"readOnly": true, "locked": true'
        assert_attributes /data ro nosuid nodev
        run ! in_container mount -o remount,bind,rw /data
        # locked or not, it is flexgraft's and is replaced again
        replace "$NEW" /data
        assert_attributes /data rw
        assert_mounts_at /data 1
        in_container touch /data/made
}

# bats test_tags=kernel
@test "what was remounted inside the container is set right by replace" {
        start_container plain
        bind "$OLD" /data '"readOnly": true'
        assert_success
        in_container mount -o remount,bind,rw /data
        bind "$OLD" /data '"readOnly": true'
        assert_failure EBUSY
        replace "$OLD" /data '"readOnly": true'
        assert_attributes /data ro
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "a mount with an id of its own is replaced by one with another id, and the old record goes" {
        start_container plain
        bind "$OLD" /data '"id": "first"'
        assert_success
        replace "$NEW" /data '"id": "second"'
        assert_field .mount.id second
        is "$(records)" mounts/second.json
        helper mount-remove '{"id": "first"}'
        assert_success
        assert_mounts_at /data 1
        # and from a name to none
        replace "$OLD" /data
        is "$(records | wc -l)" 1
        [[ $(records) != *second* ]]
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

@test "an id that names a mount on another target is not taken by replace" {
        start_container plain
        bind "$OLD" /one '"id": "mine"'
        assert_success
        bind "$OLD" /two
        assert_success
        container_snapshot
        node_snapshot
        bind "$NEW" /two '"id": "mine", "replace": true'
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "a mount is replaced by one of another sort, and back" {
        needs mount-tmpfs mount-block mount-container-to-container
        make_device ext4
        start_container plain 200000
        local other=$CONTAINER_PID
        in_container sh -c 'mkdir /share && echo other >/share/marker'
        start_container plain
        container_snapshot
        bind "$OLD" /made/data
        assert_success
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/made/data\", \"size\": \"1m\", \"replace\": true}"
        assert_success
        assert_replaced
        in_container test ! -e /made/data/marker
        in_container touch /made/data/file
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/made/data\", \"replace\": true}"
        assert_success
        assert_replaced
        is "$(in_container cat /made/data/file)" "from the device"
        helper mount-container-to-container "{\"from\": {\"container\": $other, \"path\": \"/share\"}, \"to\": {\"container\": $CONTAINER_PID, \"path\": \"/made/data\"}, \"replace\": true}"
        assert_success
        assert_replaced
        is "$(in_container cat /made/data/marker)" other
        replace "$NEW" /made/data
        is "$(in_container cat /made/data/marker)" new
        assert_mounts_at /made/data 1
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "an overlay takes the place of a bind" {
        needs mount-overlay
        start_container plain
        bind "$OLD" /data
        assert_success
        helper mount-overlay "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"lower\": [\"$NEW\", \"$OLD\"], \"replace\": true}"
        assert_success
        assert_replaced
        is "$(in_container cat /data/marker)" new
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "a raw device takes the place of a raw device" {
        needs mount-block
        make_device blank
        local first=$DEVICE
        make_device blank
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$first\", \"target\": \"/made/disk\", \"raw\": true}"
        assert_success
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/made/disk\", \"raw\": true, \"replace\": true}"
        assert_success
        assert_replaced
        assert_mounts_at /made/disk 1
        in_container sh -c 'printf written | dd of=/made/disk conv=notrunc 2>/dev/null'
        sync
        is "$(head -c 7 "$IMAGE")" written
        helper mount-remove "$(remove_request /made/disk)"
        assert_success
        in_container test ! -e /made
        assert_no_records
}

# bats test_tags=kernel
@test "a file is replaced by a file" {
        start_container plain
        container_snapshot
        bind "$OLD/marker" /made/file
        assert_success
        replace "$NEW/marker" /made/file
        is "$(in_container cat /made/file)" new
        assert_mounts_at /made/file 1
        helper mount-remove "$(remove_request /made/file)"
        assert_success
        assert_container_unchanged
        # over a file that is there
        bind "$OLD/marker" /etc/passwd
        assert_success
        replace "$NEW/marker" /etc/passwd
        is "$(in_container cat /etc/passwd)" new
        helper mount-remove "$(remove_request /etc/passwd)"
        assert_success
        is "$(in_container head -c 4 /etc/passwd)" root
}

@test "a file is not replaced by a directory, nor the other way, and the old mount stays" {
        start_container plain
        bind "$OLD/marker" /file
        assert_success
        bind "$OLD" /dir
        assert_success
        container_snapshot
        node_snapshot
        bind "$NEW" /file '"replace": true'
        assert_failure
        bind "$NEW/marker" /dir '"replace": true'
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
        is "$(in_container cat /file)" old
        helper mount-list '{}'
        assert_field '.mounts | map(.state) | join(" ")' 'present present'
}

@test "a mount that flexgraft did not make is not replaced" {
        start_container plain
        in_container sh -c 'mkdir /own && mount -t tmpfs own /own'
        container_snapshot
        node_snapshot
        local target
        for target in /own /tmp /dev; do
                bind "$NEW" "$target" '"replace": true'
                assert_failure EBUSY
        done
        bind "$NEW" /proc '"replace": true'
        assert_failure
        SOURCE=$NEW/marker
        helper mount-bind "$(bind_request /dev/null '"replace": true')"
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
}

@test "a mount that the container covered is not replaced" {
        start_container plain
        bind "$OLD" /data
        assert_success
        in_container mount -t tmpfs own /data
        container_snapshot
        node_snapshot
        bind "$NEW" /data '"replace": true'
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
        in_container umount /data
        replace "$NEW" /data
}

@test "a mount that the container covered by a clone of itself is not taken twice for ours" {
        start_container plain
        bind "$OLD" /data
        assert_success
        in_container sh -c 'mount --bind /data /data'
        container_snapshot
        node_snapshot
        bind "$NEW" /data '"replace": true'
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
}

@test "a mount that the container moved away is not replaced at the old place behind its back" {
        start_container plain
        bind "$OLD" /data
        assert_success
        in_container sh -c 'mkdir /elsewhere && mount --move /data /elsewhere'
        container_snapshot
        node_snapshot
        bind "$NEW" /data '"replace": true'
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
        # nor is the new place of it
        bind "$NEW" /elsewhere '"replace": true'
        assert_failure EBUSY
        assert_container_unchanged
        assert_node_unchanged
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /elsewhere 0
        bind "$NEW" /data '"replace": true'
        assert_success
}

@test "a clone that the container made of our mount elsewhere is not ours to replace" {
        start_container plain
        bind "$OLD" /data
        assert_success
        in_container sh -c 'mkdir /copy && mount --bind /data /copy'
        bind "$NEW" /copy '"replace": true'
        assert_failure EBUSY
        assert_mounts_at /copy 1
        is "$(in_container cat /copy/marker)" old
        replace "$NEW" /data
        is "$(in_container cat /copy/marker)" old
}

@test "another container's mount on the same path is not touched" {
        start_container plain
        local first=$CONTAINER_PID
        bind "$OLD" /data
        assert_success
        start_container plain 200000
        bind "$OLD" /data
        assert_success
        replace "$NEW" /data
        use_container "$first"
        is "$(in_container cat /data/marker)" old
        is "$(records | wc -l)" 2
}

@test "what the container mounted below the old mount goes with it" {
        mkdir "$OLD/sub" "$NEW/sub"
        start_container plain
        bind "$OLD" /data
        assert_success
        in_container mount -t tmpfs own /data/sub
        bind "$NEW" /data '"replace": true'
        assert_one_json_line
        if [[ $status == 0 ]]; then
                is "$(in_container cat /data/marker)" new
                assert_mounts_at /data 1
                assert_mounts_at /data/sub 0
        else
                assert_failure EBUSY
                is "$(in_container cat /data/marker)" old
                assert_mounts_at /data/sub 1
        fi
}

@test "a recursive mount is replaced with all that came with it" {
        mkdir "$OLD/sub" "$NEW/sub"
        mount -t tmpfs tmpfs "$OLD/sub"
        mount -t tmpfs tmpfs "$NEW/sub"
        touch "$OLD/sub/old" "$NEW/sub/new"
        start_container plain-nouserns
        bind "$OLD" /data '"recursive": true'
        assert_success
        bind "$NEW" /data '"recursive": true, "replace": true'
        assert_success
        assert_mounts_at /data 1
        assert_mounts_at /data/sub 1
        in_container test -e /data/sub/new
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data/sub 0
        assert_no_records
}

@test "a replacement that fails leaves the old mount as it was" {
        start_container plain
        bind "$OLD" /data
        assert_success
        container_snapshot
        node_snapshot
        bind "$BATS_TEST_TMPDIR/none" /data '"replace": true'
        assert_failure ENOENT
        # procfs cannot be id-mapped
        bind /proc/sys/kernel /data '"replace": true'
        assert_failure
        bind "$NEW" /data '"replace": true, "options": "data=journal"'
        [[ $status != 0 ]]
        assert_container_unchanged
        assert_node_unchanged
        is "$(in_container cat /data/marker)" old
}

@test "dryRun replaces nothing" {
        start_container plain
        bind "$OLD" /data
        assert_success
        container_snapshot
        node_snapshot
        bind "$NEW" /data '"replace": true, "dryRun": true'
        assert_success
        assert_container_unchanged
        assert_node_unchanged
        is "$(in_container cat /data/marker)" old
}

@test "nothing is held open after a replacement: the container can unmount it, and then nothing is there" {
        start_container plain
        bind "$OLD" /data
        assert_success
        replace "$NEW" /data
        in_container umount /data
        assert_mounts_at /data 0
        bind "$OLD" /data '"replace": true'
        assert_success
        assert_field .mount.alreadyMounted false
        assert_mounts_at /data 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        in_container test ! -e /data
}

@test "eight replacements at once end with one mount, one record, and no gap" {
        start_container plain
        bind "$OLD" /data
        assert_success
        local i pids=() results
        for i in 1 2 3 4 5 6 7 8; do
                mkdir "$BATS_TEST_TMPDIR/new.$i"
                echo "$i" >"$BATS_TEST_TMPDIR/new.$i/marker"
        done
        reader_at /data/marker
        for i in 1 2 3 4 5 6 7 8; do
                SOURCE=$BATS_TEST_TMPDIR/new.$i
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"replace": true')" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        stop_reader
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
        [[ $(in_container cat /data/marker) =~ ^[1-8]$ ]]
        kernel_can beneath || return 0
        is "$(head -n 3 "$CONTAINER_ROOTFS/bare" 2>/dev/null)" "" "what the reader missed"
}

@test "the container's root that takes the mount away meanwhile delays no call for long" {
        start_container plain
        bind "$OLD" /data
        assert_success
        background nsenter --target "$CONTAINER_PID" --mount --user -- /bin/sh -c 'while [ ! -e /stop ]; do umount /data 2>/dev/null; done'
        local i
        for i in 1 2 3 4 5 6 7 8 9 10; do
                bind "$NEW" /data '"replace": true'
                assert_one_json_line
                bind "$OLD" /data '"replace": true'
                assert_one_json_line
        done
        touch "$CONTAINER_ROOTFS/stop" # killed, it would leave an umount(8) that still runs
        wait "$BACKGROUND_PID" || :
        bind "$NEW" /data '"replace": true'
        assert_success
        is "$(in_container cat /data/marker)" new
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# ---- in a batch

batch() {
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [$1]${2:+, $2}}"
}

entry() {
        printf '{"type": "bind", "source": "%s", "target": "%s"%s}' "$1" "$2" "${3:+, $3}"
}

# bats test_tags=kernel
@test "a batch replaces all that is in the way of its mounts" {
        needs mount-batch
        start_container plain
        container_snapshot
        batch "$(entry "$OLD" /made/one), $(entry "$OLD" /made/two)"
        assert_success
        batch "$(entry "$NEW" /made/one), $(entry "$NEW" /made/two), $(entry "$NEW" /made/three)" '"replace": true'
        assert_success
        local target
        for target in one two three; do
                is "$(in_container cat "/made/$target/marker")" new
                assert_mounts_at "/made/$target" 1
        done
        is "$(records | wc -l)" 3
        for target in one two three; do
                helper mount-remove "$(remove_request "/made/$target")"
                assert_success
        done
        assert_container_unchanged
        assert_no_records
}

@test "a batch with one entry that replaces and one that must not is refused whole" {
        needs mount-batch
        start_container plain
        batch "$(entry "$OLD" /one), $(entry "$OLD" /two)"
        assert_success
        container_snapshot
        node_snapshot
        batch "$(entry "$NEW" /one '"replace": true'), $(entry "$NEW" /two)"
        assert_failure EBUSY
        [[ $(json_field .message) == 'mounts[1]: '* ]]
        assert_container_unchanged
        assert_node_unchanged
        is "$(in_container cat /one/marker)" old
}

@test "a batch that fails before anything is placed has replaced nothing" {
        needs mount-batch
        start_container plain
        batch "$(entry "$OLD" /one), $(entry "$OLD" /two)"
        assert_success
        container_snapshot
        node_snapshot
        batch "$(entry "$NEW" /one), $(entry "$NEW" /tmp), $(entry "$NEW" /two)" '"replace": true'
        assert_failure EBUSY
        [[ $(json_field .message) == 'mounts[1]: '* ]]
        assert_container_unchanged
        assert_node_unchanged
}

@test "a batch replaces a mount and puts another below the new one" {
        needs mount-batch
        mkdir "$OLD/sub" "$NEW/sub"
        start_container plain
        batch "$(entry "$OLD" /data), $(entry "$OLD" /data/sub)"
        assert_success
        batch "$(entry "$OLD" /data/sub), $(entry "$NEW" /data)" '"replace": true'
        assert_success
        is "$(in_container cat /data/marker)" new
        is "$(in_container cat /data/sub/marker)" old
        assert_mounts_at /data 1
        assert_mounts_at /data/sub 1
        helper mount-remove "$(remove_request /data/sub)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_records
}

@test "replace must be true or false" {
        helper mount-bind '{"container": 1, "source": "/x", "target": "/y", "replace": "yes"}'
        assert_not_understood replace
}

# ---- when what was mounted is dead

# dead_is_replaced IDS: a mount whose filesystem has died is not taken for what was asked for, and replaced when asked.
dead_is_replaced() {
        SOURCE=$BATS_TEST_TMPDIR/served
        serve_fuse
        start_container plain
        helper mount-bind "$(bind_request /data "\"ids\": \"$1\"")"
        assert_success
        helper mount-bind "$(bind_request /data "\"ids\": \"$1\"")"
        assert_success
        assert_field .mount.alreadyMounted true
        serve_fuse
        run -1 in_container cat /data/file
        helper mount-bind "$(bind_request /data "\"ids\": \"$1\", \"dryRun\": true")"
        assert_failure ENOTCONN
        helper mount-bind "$(bind_request /data "\"ids\": \"$1\"")"
        assert_failure ENOTCONN
        assert_field .error.operation 'find target'
        shows 'its filesystem is dead' '\"replace\": true'
        assert_mounts_at /data 1
        helper mount-bind "$(bind_request /data "\"ids\": \"$1\", \"replace\": true")"
        assert_success
        assert_field .mount.alreadyMounted false
        is "$(in_container cat /data/file)" served
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
}

@test "a dead filesystem is not alreadyMounted, and replace mounts it anew" {
        dead_is_replaced host
}

@test "an xfs that has shut down is not alreadyMounted, and replace mounts it anew" {
        local request
        [[ -n $(type -P mkfs.xfs) && -n $(type -P xfs_io) ]] || skip "no xfsprogs"
        SIZE=300M make_device xfs
        start_container plain
        request="{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\""
        helper mount-block "$request}"
        assert_success
        xfs_io -x -c shutdown "/proc/$CONTAINER_PID/root/data"
        helper mount-block "$request}"
        assert_failure EIO
        assert_field .error.operation 'find target'
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        helper mount-block "$request, \"replace\": true}"
        assert_success
        in_container touch /data/file
}

@test "a file of an xfs that has shut down is removed from a container" {
        [[ -n $(type -P mkfs.xfs) && -n $(type -P xfs_io) ]] || skip "no xfsprogs"
        SIZE=300M make_device xfs
        mount "$DEVICE" "$SOURCE"
        touch "$SOURCE/file"
        start_container plain-nouserns
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE/file\", \"target\": \"/file\"}"
        assert_success
        xfs_io -x -c shutdown "$SOURCE"
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/file\"}"
        assert_success
        assert_mounts_at /file 0
        umount "$SOURCE"
}

@test "what is asked for a file in an xfs that has shut down leaves the mount that it is in" {
        [[ -n $(type -P mkfs.xfs) && -n $(type -P xfs_io) ]] || skip "no xfsprogs"
        SIZE=300M make_device xfs
        mount "$DEVICE" "$SOURCE"
        touch "$SOURCE/file"
        start_container plain-nouserns
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        in_container stat /data/file
        xfs_io -x -c shutdown "$SOURCE"
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data/file\"}"
        assert_mounts_at /data 1 # whatever it says of a file of which nothing can be told
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\"}"
        assert_success
        umount "$SOURCE"
}

@test "a dead filesystem behind remap-daemon is not alreadyMounted, and replace mounts it anew" {
        dead_is_replaced remap
}
