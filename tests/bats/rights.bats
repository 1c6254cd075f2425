#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the container's root does not get: the node's devices, the node's directories, other containers' mounts; and that
# what is reported is what is there.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-remove mount-list
}

teardown() {
        bed_teardown
}

# bats test_tags=kernel
@test "the container's root cannot take nodev from a disk, whose device files could be its own" {
        make_device ext4
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_success
        run ! in_container mount -o remount,bind,dev,suid /data
        assert_attributes /data nosuid nodev
}

@test "the rest of a disk's options stays the container's to change" {
        make_device ext4
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"noexec\"}"
        assert_success
        assert_attributes /data noexec nosuid nodev
        in_container mount -o remount,bind,exec,nosuid,nodev /data
}

# A volume that the container may write to, in a directory of the node's root that it may not.
volume_of_root() {
        start_container "$1"
        mkdir -m 0755 "$BATS_TEST_TMPDIR/volume"
        SOURCE=$BATS_TEST_TMPDIR/volume
        helper mount-bind "$(bind_request /volume '"ids": "host"')"
        assert_success
        SOURCE=$BATS_TEST_TMPDIR/source
}

# bats test_tags=kernel
@test "nothing is made where the container's root has no right to" {
        volume_of_root plain
        in_container ln -s /volume /link
        run ! in_container mkdir /volume/mine
        helper mount-bind "$(bind_request /link/made)"
        assert_failure EACCES
        is "$(ls -A "$BATS_TEST_TMPDIR/volume")" ''
}

@test "nothing is removed where the container's root has no right to" {
        touch "$SOURCE/file"
        SOURCE=$SOURCE/file
        start_container plain
        in_container mkdir /d
        helper mount-bind "$(bind_request /d/e/lock)"
        assert_success
        mkdir -m 0755 "$BATS_TEST_TMPDIR/volume"
        touch "$BATS_TEST_TMPDIR/volume/lock"
        SOURCE=$BATS_TEST_TMPDIR/volume
        helper mount-bind "$(bind_request /volume '"ids": "host"')"
        assert_success
        in_container sh -c 'umount /d/e/lock && rm /d/e/lock && rmdir /d/e && ln -s /volume /d/e'
        helper mount-remove "$(remove_request /d/e/lock)"
        assert_success
        [[ -e $BATS_TEST_TMPDIR/volume/lock ]]
}

@test "nothing is removed where the container's root has no right to when the process that was named has just ended" {
        local child remove worker
        volume_of_root plain
        touch "$BATS_TEST_TMPDIR/volume/lock" "$SOURCE/file"
        SOURCE=$SOURCE/file
        in_container mkdir /d
        background nsenter --target "$CONTAINER_PID" --user --mount --pid --root -- /bin/sleep 1000000
        wait_until 5 pgrep -P "$BACKGROUND_PID"
        child=$(pgrep -P "$BACKGROUND_PID")
        helper mount-bind "{\"container\": $child, \"source\": \"$SOURCE\", \"target\": \"/d/e/lock\"}"
        assert_success
        in_container sh -c 'umount /d/e/lock && rm /d/e/lock && mount --bind /volume /d/e'
        # it has found the process, and waits for the record
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/mounts/.lock"
        "$FLEXGRAFT_BIN/mount-remove" "{\"container\": $child, \"target\": \"/d/e/lock\"}" >"$BATS_TEST_TMPDIR/reply" 3>&- &
        remove=$!
        worker_waits() { worker=$(pgrep -P "$remove") && waits_for_lock "$worker"; }
        wait_until 5 worker_waits
        kill -KILL "$child"
        wait_until 5 process_is_gone "$child"
        end_process "$BACKGROUND_PID"
        wait "$remove"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/reply")" Success
        [[ -e $BATS_TEST_TMPDIR/volume/lock ]]
}

@test "a symlink that the container made is not followed as a source" {
        mkdir "$SOURCE/volume" "$SOURCE/secret"
        ln -s "$SOURCE/secret" "$SOURCE/volume/sub"
        chown -h 100000:100000 "$SOURCE/volume/sub"
        start_container plain
        SOURCE=$SOURCE/volume/sub
        helper mount-bind "$(bind_request /data)"
        assert_failure ELOOP
        assert_mounts_at /data 0
}

@test "symlinks of root's that stay in their directory are followed as a source, relative, absolute and in a row" {
        mkdir -p "$SOURCE/a/b" "$SOURCE/c"
        touch "$SOURCE/c/here"
        ln -s c "$SOURCE/relative"
        ln -s "$SOURCE/relative" "$SOURCE/absolute"
        start_container plain
        local there=$SOURCE
        SOURCE=$there/absolute/.
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container test -e /data/here
        assert_field .mount.origin "$there/c"
}

@test "a symlink that is root's but leads out of its directory is refused as a source: a container may have made it" {
        mkdir -p "$SOURCE/volume/sub" "$SOURCE/secret"
        touch "$SOURCE/secret/key"
        start_container plain
        local there=$SOURCE link
        SOURCE=$there/volume
        helper mount-bind "$(bind_request /volume)"
        assert_success
        for link in "$there/secret" ../secret sub/../../secret; do
                # root in there, and on the disk
                in_container sh -c "rm -rf /volume/sub && mkdir -p /volume/sub && rmdir /volume/sub && ln -s $link /volume/sub"
                is "$(stat -c %u "$there/volume/sub")" 0
                SOURCE=$there/volume/sub
                helper mount-bind "$(bind_request /data)"
                assert_failure ELOOP
                assert_mounts_at /data 0
        done
}

@test "a symlink in the root directory leads where it says" {
        [[ -L /bin ]] || skip "this machine's /bin is no symlink"
        start_container plain
        SOURCE=/bin
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        assert_field .mount.origin "$(readlink -f /bin)"
}

@test "symlinks that lead in a circle are refused as a source" {
        ln -s two "$SOURCE/one"
        ln -s one "$SOURCE/two"
        start_container plain
        SOURCE=$SOURCE/one
        helper mount-bind "$(bind_request /data)"
        assert_failure ELOOP
}

@test "the root of a process is not followed as a source" {
        start_container plain
        SOURCE=/proc/$CONTAINER_PID/root/etc
        helper mount-bind "$(bind_request /data)"
        assert_failure ELOOP
}

# bats test_tags=kernel
@test "mount-list tells how the container's root remounted a mount" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        in_container mount -o remount,bind,rw,nosuid,nodev /data
        helper mount-list '{}'
        assert_field '.mounts[0].options[0]' rw
}

# bats test_tags=kernel
@test "a read-only mount that the container's root made writable is not taken for done" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        in_container mount -o remount,bind,rw,nosuid,nodev /data
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_failure EBUSY
}

@test "the same request with another value of an option is another mount" {
        make_device ext4
        start_container plain
        local request="\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\""
        helper mount-block "{$request, \"options\": \"errors=continue\"}"
        assert_success
        helper mount-block "{$request, \"options\": \"errors=remount-ro\"}"
        assert_failure EBUSY
}

@test "a source symlink that leads elsewhere now is another mount" {
        mkdir "$SOURCE/one" "$SOURCE/two"
        ln -s one "$SOURCE/now"
        start_container plain
        local there=$SOURCE
        SOURCE=$there/now
        helper mount-bind "$(bind_request /data)"
        assert_success
        ln -sfn two "$there/now"
        helper mount-bind "$(bind_request /data)"
        assert_failure EBUSY
}

# bats test_tags=kernel
@test "one container that does not answer does not keep the others from answering" {
        local hangs
        start_container plain-nouserns
        hangs=$CONTAINER_PID
        in_container mkdir -p /tmp/fuse/x
        helper mount-bind "$(bind_request /tmp/fuse/x)"
        assert_success
        background_ready nsenter --target "$hangs" --mount --pid -- /bin/silent-fuse /tmp/fuse
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-list '{"timeoutSeconds": 20}'
        assert_success
        assert_field '.mounts | length' 2
        assert_field '.mounts[] | select(.target == "/data") | .state' present
        assert_field '.mounts[] | select(.target != "/data") | has("problem")' true
        stop_container "$hangs"
}

@test "a container that answers late takes no time from the others" {
        local slow target
        start_container plain-nouserns
        slow=$CONTAINER_PID
        for target in {1..24}; do
                in_container mkdir -p "/tmp/fuse/$target"
                helper mount-bind "$(bind_request "/tmp/fuse/$target")"
                assert_success
        done
        background_ready nsenter --target "$slow" --mount --pid -- /bin/silent-fuse /tmp/fuse --slow 1
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        # each in time (a quarter of it), with room for a busy machine, and all of them not
        helper mount-list '{"timeoutSeconds": 24}'
        assert_success
        assert_field '.mounts[] | select(.target == "/data") | .state' present
        assert_field '.mounts[0].state' covered
        stop_container "$slow"
}

@test "a record whose numbers make no sense is set aside" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        local record
        record=$STATE_DIR/mounts/$(json_field .mount.id).json
        jq -c '.made = 9' "$record" >"$record.new" && mv "$record.new" "$record"
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        [[ -e $record.bad ]]
        rm "$record.bad"
}

waits_for_lock() {
        [[ $(cat "/proc/$1/syscall") == 72\ * ]] # fcntl
}

@test "a program that was killed while it waited for another does nothing afterwards" {
        start_container plain
        mkdir -m 0700 "$STATE_DIR" "$STATE_DIR/mounts"
        local worker helper
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/mounts/.lock"
        "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data)" >/dev/null 2>&1 3>&- &
        helper=$!
        worker_waits() { worker=$(pgrep -P "$helper") && waits_for_lock "$worker"; }
        wait_until 5 worker_waits
        kill -KILL "$helper"
        wait "$helper" || :
        wait_until 5 process_is_gone "$worker"
        end_process "$BACKGROUND_PID"
        assert_mounts_at /data 0
}

@test "an id chosen for a mount in one container is not taken over by another" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_failure EEXIST
}

# bats test_tags=kernel
@test "what was put there twice under two names is removed by its target" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        helper mount-list '{}'
        local id
        for id in $(jq -r '.mounts[].id' <<<"$json"); do
                helper mount-remove "{\"id\": \"$id\"}"
                assert_success
        done
        assert_no_records
}

@test "a secret among the options is not in the message" {
        start_container plain
        helper mount-bind "$(bind_request /data '"options": "password=hunter2"')"
        [[ $json != *hunter2* ]]
        [[ $json == *password* ]]
}

# bats test_tags=kernel
@test "a mount is found again through another process of the container when the one that was named has ended" {
        kernel_can statmount || skip "this kernel numbers mount namespaces anew and anew, and has no other name for them"
        start_container plain
        local child
        background nsenter --target "$CONTAINER_PID" --user --mount --pid --root -- /bin/sleep 1000000
        wait_until 5 pgrep -P "$BACKGROUND_PID"
        child=$(pgrep -P "$BACKGROUND_PID")
        helper mount-bind "{\"container\": $child, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        local id
        id=$(json_field .mount.id)
        kill -KILL "$child"
        wait_until 5 process_is_gone "$child"
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /data 0
}
