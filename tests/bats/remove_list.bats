#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-remove and mount-list: what was put into containers; take it away again.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# bats test_tags=kernel
@test "what was mounted is removed by container and target" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        local id
        id=$(json_field .mount.id)
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .removed.id "$id"
        assert_field .removed.target /data
        assert_container_unchanged
        assert_node_unchanged
}

@test "a removal by target leaves a mount alone that got the removed one's id while it waited" {
        local lock
        start_container plain
        helper mount-bind "$(bind_request /one '"id": "x"')"
        assert_success
        helper mount-remove "$(remove_request /one)" # the index of records is complete from here, and calls are the same each time
        assert_success
        helper mount-bind "$(bind_request /one '"id": "x"')"
        assert_success
        printf '%s' "$(bind_request /two '"id": "x"')" >"$BATS_TEST_TMPDIR/two"
        # before the first lock (F_OFD_SETLKW is 0x26) other calls remove the mount and use its id again
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /one)"
        assert_success
        lock=$(awk '$3 == "fcntl" { count++; if ($5 == "0x26") { print count; exit } }' "$BATS_TEST_TMPDIR/calls")
        helper mount-bind "$(bind_request /one '"id": "x"')"
        assert_success
        at_syscall --at "fcntl:$lock" --run-output "$BATS_TEST_TMPDIR/between" \
                --run "$FLEXGRAFT_BIN/mount-remove '$(remove_request /one)' && $FLEXGRAFT_BIN/mount-bind \"\$(cat '$BATS_TEST_TMPDIR/two')\"" \
                "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /one)"
        is "$AT_REACHED" 1 "the lock is reached"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/between" | xargs)" "Success Success" "the calls in between"
        assert_success
        assert_field .alreadyRemoved true
        assert_mounts_at /two 1
        helper mount-list '{}'
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].target' /two
}

@test "a removal reads its record twice: to find it, and with its lock held" {
        local id
        start_container plain
        helper mount-bind "$(bind_request /one)"
        assert_success
        helper mount-remove "$(remove_request /one)" # the index of records is complete from here
        assert_success
        helper mount-bind "$(bind_request /one)"
        assert_success
        id=$(json_field .mount.id)
        strace -f -e trace=openat -o "$BATS_TEST_TMPDIR/trace" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /one)"
        is "$(grep -c "\"$id.json\"" "$BATS_TEST_TMPDIR/trace")" 2 "the record is opened"
        assert_mounts_at /one 0
}

@test "what was mounted is removed by id" {
        start_container plain
        container_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "{\"id\": \"$(json_field .mount.id)\"}"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "a removal that cannot read which ids the container has fails, and again takes away what was made" {
        local errno read
        start_container plain
        container_snapshot
        node_snapshot
        for errno in EIO ENOMEM; do
                for read in 1 2; do     # before the mount's directory is taken away, and as it is
                        helper mount-bind "$(bind_request /made/data)"
                        assert_success
                        at_syscall --at "openat:$read" --where 2=uid_map --fail "$errno" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /made/data)"
                        is "$AT_REACHED" 1
                        assert_failure "$errno"
                        helper mount-remove "$(remove_request /made/data)"
                        assert_success
                        assert_container_unchanged
                done
        done
        assert_node_unchanged
}

@test "what was mounted is removed without a user namespace" {
        start_container plain-nouserns
        container_snapshot
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel,kernel_too
@test "removing twice succeeds, and the second time says so" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field '.alreadyRemoved == true' false
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .alreadyRemoved true
        assert_field .removed.target /data
}

@test "removing an id that never was succeeds and says so" {
        helper mount-remove '{"id": "never-was"}'
        assert_success
        assert_field .alreadyRemoved true
        assert_field .removed.id never-was
}

# bats test_tags=kernel
@test "a mount that the container took away itself is removed as a record" {
        start_container plain
        helper mount-bind "$(bind_request /made/data)"
        assert_success
        in_container umount /made/data
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
        in_container test ! -e /made
}

@test "a mount of the container's own is not removed" {
        start_container plain
        container_snapshot
        helper mount-remove "$(remove_request /tmp)"
        assert_one_json_line
        assert_container_unchanged
}

# bats test_tags=kernel
@test "a mount of the container's own on top of ours is not removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data
        assert_mounts_at /data 2
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 2
        [[ $(mount_line /data) == *tmpfs* ]]
        in_container umount /data
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel
@test "a mount of the container's own in place of ours is not removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        in_container mount -t tmpfs tmpfs /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        [[ $(mount_line /data) == *tmpfs* ]]
}

@test "the same source that the container mounted itself is not taken for ours" {
        kernel_can unique-ids || skip "this kernel uses the ids of mounts again"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mkdir /copy
        in_container mount --bind /data /copy
        in_container umount /data
        in_container mount --bind /copy /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        assert_mounts_at /copy 1
}

# bats test_tags=kernel
@test "a mount that the container moved is found or reported, never another one removed" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mkdir /elsewhere
        in_container mount --move /data /elsewhere
        in_container mount -t tmpfs tmpfs /data
        helper mount-remove "$(remove_request /data)"
        assert_one_json_line
        assert_mounts_at /data 1
        [[ $(mount_line /data) == *tmpfs* ]]
}

# bats test_tags=kernel,kernel_too
@test "a file is removed" {
        echo text >"$BATS_TEST_TMPDIR/file"
        SOURCE=$BATS_TEST_TMPDIR/file
        start_container plain
        container_snapshot
        helper mount-bind "$(bind_request /etc/made/file)"
        assert_success
        helper mount-remove "$(remove_request /etc/made/file)"
        assert_success
        assert_container_unchanged
}

busy_container() {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/sh -c 'cd /data && echo ready && exec sleep 1000000'
}

# bats test_tags=kernel,kernel_too
@test "a busy mount fails with EBUSY and stays" {
        busy_container
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
}

# bats test_tags=kernel,kernel_too
@test "a busy mount goes away with force" {
        busy_container
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel
@test "mounts of the container's own below ours are not silently taken along" {
        mkdir "$SOURCE/sub"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data/sub
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        assert_mounts_at /data 1
        assert_mounts_at /data/sub 1
}

# bats test_tags=kernel
@test "a recursive mount is removed with the mounts that came with it, and not while the container has its own below" {
        mkdir "$SOURCE/inner" "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/inner"
        start_container plain-nouserns
        helper mount-bind "$(bind_request /data '"recursive": true')"
        assert_success
        in_container mount -t tmpfs tmpfs /data/sub
        helper mount-remove "$(remove_request /data)"
        assert_failure EBUSY
        shows "mounts of its own below"
        assert_mounts_at /data 1
        assert_mounts_at /data/inner 1
        assert_mounts_at /data/sub 1
        in_container umount /data/sub
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_mounts_at /data/inner 0
}

@test "a recursive mount fails and leaves nothing when the mounts below it cannot be counted" {
        local request opened reads
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        start_container plain-nouserns
        request=$(bind_request /data '"recursive": true')
        helper mount-bind "$request"
        assert_success
        helper mount-remove "$(remove_request /data)" # the index of records is complete from here, and calls are the same each time
        assert_success
        at_syscall --log "$BATS_TEST_TMPDIR/calls" --at openat --where 2=mountinfo --run "echo \$AT_SYSCALL >'$BATS_TEST_TMPDIR/opened'" \
                "$FLEXGRAFT_BIN/mount-bind" "$request"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        opened=$(<"$BATS_TEST_TMPDIR/opened")
        container_snapshot
        node_snapshot
        reads=$(awk -v opened="$opened" '$3 == "read" { count++; if ($1 > opened) { print count; exit } }' "$BATS_TEST_TMPDIR/calls")
        at_syscall --at "read:$reads" --fail EIO "$FLEXGRAFT_BIN/mount-bind" "$request"
        is "$AT_REACHED" 1
        assert_failure EIO
        shows mountinfo
        assert_container_unchanged
        assert_node_unchanged
        umount "$SOURCE/sub"
}

# bats test_tags=kernel,kernel_too
@test "when the container is gone, remove by id clears the record" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        local id
        id=$(json_field .mount.id)
        stop_container
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
}

# removed_when_gone CONTAINER: by that container and target, once it has ended; and so again.
removed_when_gone() {
        local request="{\"container\": $1, \"target\": \"/data\"}"
        helper mount-bind "{\"container\": $1, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        local id
        id=$(json_field .mount.id)
        stop_container
        helper mount-remove "$request"
        assert_success
        assert_field .alreadyRemoved true
        assert_field .removed.id "$id"
        assert_no_records
        helper mount-remove "$request"
        assert_success
        assert_field .alreadyRemoved true
}

# bats test_tags=kernel,kernel_too
@test "when the container is gone, remove by pid and target clears the record, and succeeds again" {
        start_container plain
        removed_when_gone "$CONTAINER_PID"
}

# bats test_tags=kernel,kernel_too
@test "when the container is gone, remove by its directory in proc and target clears the record, and succeeds again" {
        start_container plain
        removed_when_gone "{\"procDir\": \"/proc/$CONTAINER_PID\"}"
        start_container plain
        removed_when_gone "{\"procDir\": \"//proc/$CONTAINER_PID/\"}"
}

@test "when the directory in proc is of another process by now, remove by it clears the record, and touches nothing of that one" {
        start_container plain
        local pid=$CONTAINER_PID
        helper mount-bind "$(bind_request /data)"
        assert_success
        "$FLEXGRAFT_TOOLS/clone-at-pid" --kill "$pid" nsenter --mount="/proc/$$/ns/mnt" sleep 1000000
        bed_pids+=("$pid")
        wait_until 10 test "/proc/$pid/ns/mnt" -ef "/proc/$$/ns/mnt"
        helper mount-remove "{\"container\": {\"procDir\": \"/proc/$pid\"}, \"target\": \"/elsewhere\"}"
        assert_failure EINVAL
        helper mount-remove "{\"container\": {\"procDir\": \"/proc/$pid\"}, \"target\": \"/data\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
}

@test "a process id of another pid namespace's proc is not one of this one's, and a directory elsewhere is none" {
        start_container plain
        local dir
        helper mount-bind "$(bind_request /data)"
        assert_success
        mkdir "$BATS_TEST_TMPDIR/proc" "$BATS_TEST_TMPDIR/1"
        background_ready unshare --pid --fork --kill-child sh -c 'mount -t proc proc "$1" && echo ready; exec sleep 1000' sh "$BATS_TEST_TMPDIR/proc"
        [[ -d $BATS_TEST_TMPDIR/proc/1 && ! -d $BATS_TEST_TMPDIR/proc/$CONTAINER_PID ]]
        helper mount-remove "{\"container\": {\"procDir\": \"$BATS_TEST_TMPDIR/proc/$CONTAINER_PID\"}, \"target\": \"/data\"}"
        umount "$BATS_TEST_TMPDIR/proc"
        assert_success
        assert_field .alreadyRemoved true
        for dir in "$BATS_TEST_TMPDIR" /nonesuch /; do
                helper mount-remove "{\"container\": {\"procDir\": \"$dir/$CONTAINER_PID\"}, \"target\": \"/data\"}"
                assert_failure ESRCH
        done
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .alreadyRemoved false
}

# bats test_tags=kernel,kernel_too
@test "when the container is gone, remove by its name and target clears the record, and succeeds again" {
        start_container crun
        removed_when_gone "\"$CONTAINER_ID\""
}

@test "removing a mount of a container that is gone leaves another one its mount on the same target" {
        start_container crun
        local name=$CONTAINER_ID second
        helper mount-bind "{\"container\": \"$name\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        stop_container
        start_container crun
        second=$CONTAINER_PID
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "{\"container\": \"$name\", \"target\": \"/data\"}"
        assert_success
        is "$(records | wc -l)" 1
        assert_mounts_at /data 1
        helper mount-remove "{\"container\": $second, \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=kernel,kernel_too
@test "when the pid is one of the node's own processes, remove by pid clears the record, and fails where there is none" {
        start_container plain
        local pid=$CONTAINER_PID
        helper mount-bind "$(bind_request /data)"
        assert_success
        "$FLEXGRAFT_TOOLS/clone-at-pid" --kill "$pid" nsenter --mount="/proc/$$/ns/mnt" sleep 1000000
        bed_pids+=("$pid")
        wait_until 10 test "/proc/$pid/ns/mnt" -ef "/proc/$$/ns/mnt"
        helper mount-remove "{\"container\": $pid, \"target\": \"/elsewhere\"}"
        assert_failure EINVAL
        helper mount-remove "{\"container\": $pid, \"target\": \"/data\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_no_records
}

# bats test_tags=kernel,kernel_too
@test "when the pid is of another container by now, remove by pid clears the record, and touches nothing of that one" {
        start_container plain
        local pid=$CONTAINER_PID before
        helper mount-bind "$(bind_request /data)"
        assert_success
        "$FLEXGRAFT_TOOLS/clone-at-pid" --kill "$pid" sleep 1000000
        bed_pids+=("$pid")
        before=$(cat "/proc/$pid/mountinfo")
        helper mount-remove "{\"container\": $pid, \"target\": \"/data\"}"
        assert_success
        is "$(cat "/proc/$pid/mountinfo")" "$before"
        assert_no_records
}

@test "a container that runs, but whose runtime has forgotten it, loses the mount by its recorded name" {
        start_container crun
        local pid=$CONTAINER_PID name=$CONTAINER_ID
        helper mount-bind "{\"container\": \"$name\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        mv "/run/crun/$name" "$BATS_TEST_TMPDIR/forgotten"
        helper mount-remove "{\"container\": \"$name\", \"target\": \"/data\"}"
        mv "$BATS_TEST_TMPDIR/forgotten" "/run/crun/$name"
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /data 0
        assert_no_records
}

@test "a running container keeps the mount when one of the same name at another runtime, which has ended, is named" {
        start_container crun
        local name=$CONTAINER_ID
        helper mount-bind "{\"container\": \"$name\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        helper mount-remove "{\"container\": {\"id\": \"$name\", \"runtime\": \"runc\"}, \"target\": \"/data\"}"
        assert_success
        assert_field .alreadyRemoved true
        assert_mounts_at /data 1
        mv "/run/crun/$name" "$BATS_TEST_TMPDIR/forgotten"
        helper mount-remove "{\"container\": {\"id\": \"$name\", \"runtime\": \"crun\"}, \"target\": \"/data\"}"
        mv "$BATS_TEST_TMPDIR/forgotten" "/run/crun/$name"
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /data 0
}

# bats test_tags=kernel,kernel_too
@test "when the pid belongs to another process, remove touches nothing of it" {
        start_container plain
        local pid=$CONTAINER_PID id before
        helper mount-bind "$(bind_request /data)"
        assert_success
        id=$(json_field .mount.id)
        "$FLEXGRAFT_TOOLS/clone-at-pid" --kill "$pid" sleep 1000000
        bed_pids+=("$pid")
        mkdir "$BATS_TEST_TMPDIR/m"
        nsenter --target "$pid" --mount mount --bind "$SOURCE" "$BATS_TEST_TMPDIR/m"
        before=$(cat "/proc/$pid/mountinfo")
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        is "$(cat "/proc/$pid/mountinfo")" "$before"
        assert_no_records
}

@test "nothing mounted is an empty list" {
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 0
}

# bats test_tags=kernel,kernel_too
@test "mount-list shows a mount as the reply to its request did" {
        start_container plain
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_success
        local reply
        reply=$(jq -cS '.mount | del(.alreadyMounted)' <<<"$json")
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        is "$(jq -cS '.mounts[0] | del(.alreadyMounted, .state, .wanted)' <<<"$json")" "$reply"
        assert_field '.mounts[0].state' present
}

@test "the list can be limited to one container" {
        start_container plain 100000
        local first=$CONTAINER_PID
        helper mount-bind "$(bind_request /first)"
        assert_success
        start_container plain 200000
        helper mount-bind "$(bind_request /second)"
        assert_success
        helper mount-list '{}'
        assert_field '[.mounts[].target] | sort | join(" ")' "/first /second"
        helper mount-list "{\"container\": $first}"
        assert_field '[.mounts[].target] | join(" ")' /first
        helper mount-list "{\"container\": {\"pid\": $CONTAINER_PID}}"
        assert_field '[.mounts[].target] | join(" ")' /second
}

# bats test_tags=kernel
@test "a mount under another one is listed as covered" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container mount -t tmpfs tmpfs /data
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' covered
}

# bats test_tags=kernel,kernel_too
@test "a mount that the container took away is listed as gone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_container umount /data
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' gone
}

@test "mount-list tells of a block device whether its number is still the disk that was mounted" {
        local number
        needs mount-block
        make_device ext4
        # a number that nobody else gets
        number=$((2000 + BASHPID % 1000))
        release_device "$DEVICE"
        losetup "/dev/loop$number" "$IMAGE" 2>/dev/null || { mknod "/dev/loop$number" b 7 "$number" && losetup "/dev/loop$number" "$IMAGE"; }
        DEVICE=/dev/loop$number
        bed_loops+=("$DEVICE")
        start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\"}"
        assert_success
        helper mount-list '{}'
        assert_field '.mounts[0] | [.state, .device] | join(" ")' "present present"
        in_container umount /disk
        # tests beside this one look at all loop devices, and one that is open at that moment is detached later
        release_device "$DEVICE"
        wait_until 10 device_is_free "$DEVICE"
        wait_until 10 losetup "$DEVICE" "$IMAGE"
        helper mount-list '{}'
        assert_field '.mounts[0] | [.state, .device] | join(" ")' "gone replaced"
        release_device "$DEVICE"
        wait_until 10 device_is_free "$DEVICE"
        # LOOP_CTL_REMOVE
        wait_until 10 python3 -c 'import fcntl, os, sys; fcntl.ioctl(os.open("/dev/loop-control", os.O_RDWR), 0x4c81, int(sys.argv[1]))' "$number"
        helper mount-list '{}'
        assert_field '.mounts[0] | [.state, .device] | join(" ")' "gone gone"
}

@test "a mount whose container is gone is listed as gone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        stop_container
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' gone
}

# bats test_tags=kernel,kernel_too
@test "the list changes nothing" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        container_snapshot
        node_snapshot
        helper mount-list '{}'
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}

@test "the state directory belongs to root alone" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(stat -c %a:%u "$STATE_DIR")" 700:0
}

# bad_record CONTENT: the others must not suffer from it.
bad_record() {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        printf '%s' "$1" >"$STATE_DIR/mounts/bad.json"
        helper mount-list '{}'
        assert_one_json_line
        assert_field .status Success
        assert_field '[.mounts[] | select(.target == "/data" and .state == "present")] | length' 1
        mkdir "$BATS_TEST_TMPDIR/other"
        SOURCE=$BATS_TEST_TMPDIR/other
        helper mount-bind "$(bind_request /other)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        helper mount-remove "$(remove_request /other)"
        assert_success
}

@test "an empty record harms no other" {
        bad_record ''
}

@test "a torn record harms no other" {
        bad_record '{"id": "bad", "container": {"pid": 47'
}

@test "a foreign record harms no other" {
        bad_record '{"hello": ["world"]}'
}

@test "a record with wrong types harms no other" {
        bad_record '{"id": 5, "container": "x", "target": {}, "mountId": "many", "state": null}'
}

@test "a record that is a symlink is not followed" {
        start_container plain
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        mv "$STATE_DIR/mounts/mine.json" "$BATS_TEST_TMPDIR/mine.json"
        ln -s "$BATS_TEST_TMPDIR/mine.json" "$STATE_DIR/mounts/mine.json"
        helper mount-remove '{"id": "mine"}'
        assert_one_json_line
        [[ -e $BATS_TEST_TMPDIR/mine.json ]]
}

@test "an id cannot leave the state directory" {
        local id
        echo '{}' >"$BATS_TEST_TMPDIR/victim.json"
        for id in ../victim ../../victim . .. '' /etc/passwd a/b .lock; do
                helper mount-remove "$(jq -cn --arg id "$id" '{id: $id}')"
                assert_one_json_line
                [[ $status != 0 ]] || assert_field .alreadyRemoved true
                [[ -e $BATS_TEST_TMPDIR/victim.json ]]
        done
}

# ---- after a call that was cut short

@test "the directory that a killed mount made goes away although its id is used again elsewhere" {
        start_container plain
        container_snapshot
        at_syscall --at move_mount --kill "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /made/one '"id": "x"')"
        is "$AT_REACHED" 1 "the mount is about to be placed"
        [[ -d $CONTAINER_ROOTFS/made/one ]]
        helper mount-bind "$(bind_request /made/two '"id": "x"')"
        assert_success
        assert_mounts_at /made/two 1
        [[ ! -e $CONTAINER_ROOTFS/made/one ]]
        helper mount-remove '{"id": "x"}'
        assert_success
        assert_container_unchanged
        assert_no_records
}

@test "a record left by a killed mount is listed without harm" {
        start_container plain
        local request
        request=$(bind_request /made/data)
        at_syscall --at move_mount --kill "$FLEXGRAFT_BIN/mount-bind" "$request"
        is "$status" 137
        helper mount-list '{}'
        assert_success
        assert_mounts_at /made/data 0
}

@test "a full state directory fails cleanly and leaves nothing" {
        start_container plain
        mkdir -p "$STATE_DIR"
        chmod 0700 "$STATE_DIR"
        mount -t tmpfs -o size=64k,nr_inodes=24,mode=700 tmpfs "$STATE_DIR"
        helper mount-list '{}'
        container_snapshot
        dd if=/dev/zero of="$STATE_DIR/fill" bs=4k status=none 2>/dev/null || :
        helper mount-bind "$(bind_request /made/data)"
        assert_failure ENOSPC
        assert_container_unchanged
        rm "$STATE_DIR/fill"
        helper mount-bind "$(bind_request /made/data)"
        assert_success
}

@test "a container whose mounts do not answer leaves time for the mounts of other containers in the list" {
        local i first
        start_container plain-nouserns
        first=$CONTAINER_PID
        for i in 1 2 3 4 5 6; do
                helper mount-bind "$(bind_request "/tmp/fuse/$i")"
                assert_success
        done
        background_ready nsenter --target "$first" --mount --pid -- /bin/silent-fuse /tmp/fuse
        start_container plain # its process id is higher
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-list '{"timeoutSeconds": 24}'
        assert_success
        assert_field '[.mounts[] | .state] | join(" ")' "unknown unknown unknown unknown unknown unknown present"
}

@test "a directory that the container made below one that flexgraft made stays when the mount on it is removed" {
        start_container plain
        mounted_on() { helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR\", \"target\": \"$1\"}" && assert_success; }
        mounted_on /x/y
        in_container mkdir /x/own
        mounted_on /x/own
        helper mount-remove "$(remove_request /x/y)"
        assert_success
        helper mount-remove "$(remove_request /x/own)"
        assert_success
        in_container test -d /x/own
}

@test "a directory that the container makes while a target is made stays when the mount on that is removed" {
        start_container plain
        container_letters "$CONTAINER_KIND"
        at_syscall --at mkdirat --where 2=own --run "'$FLEXGRAFT_TOOLS/enter' $CONTAINER_PID nui$bed_letters mkdir /own" \
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /own/made/data)"
        is "$AT_REACHED" 1
        assert_success
        helper mount-remove "$(remove_request /own/made/data)"
        assert_success
        in_container test -d /own
        run ! in_container test -e /own/made
}

@test "a mount that does not answer loses only its own answer in the list" {
        local target
        start_container plain-nouserns
        for target in /a /tmp/fuse/data /z; do
                helper mount-bind "$(bind_request "$target")"
                assert_success
        done
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse /tmp/fuse
        helper mount-list '{"timeoutSeconds": 24}'
        assert_success
        assert_field '[.mounts[] | .target + " " + .state] | join(" ")' "/a present /tmp/fuse/data unknown /z present"
        assert_field '.mounts[1].problem' 'wait: Connection timed out'
}

# ---- what else is unmounted with a mount

@test "what the node has mounted below a source stays when a mount that is shared with it is removed" {
        local way
        mkdir "$SOURCE/sub"
        mount --bind "$SOURCE" "$SOURCE"
        mount --make-shared "$SOURCE"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        start_container plain-nouserns
        for way in '"recursive": true' '"recursive": false'; do
                helper mount-bind "$(bind_request /data "\"propagation\": \"shared\", $way")"
                assert_success
                [[ $way == *true ]] || mount -t tmpfs later "$SOURCE/sub" # arrives below /data
                helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"force\": true}"
                assert_success
                assert_mounts_at /data 0
                is "$(findmnt -n -o SOURCE --mountpoint "$SOURCE/sub" | tail -n 1)" "$([[ $way == *true ]] && echo tmpfs || echo later)"
        done
        umount --recursive "$SOURCE"
}

@test "a recursive mount is removed from the container's nested mount namespaces, too" {
        mkdir "$SOURCE/inner"
        mount -t tmpfs tmpfs "$SOURCE/inner"
        start_container plain-shared
        in_container mkdir /here # not made by flexgraft
        # as a service of the container's systemd: CLONE_NEWNS, MS_REC | MS_SLAVE
        background_ready /usr/bin/python3 -c 'import ctypes, os, sys, time
libc = ctypes.CDLL(None)
assert libc.setns(os.open(f"/proc/{sys.argv[1]}/ns/mnt", os.O_RDONLY), 0x20000) == 0
assert libc.unshare(0x20000) == 0
assert libc.mount(b"none", b"/", None, 0x4000 | 1 << 19, None) == 0
print("ready", flush=True)
time.sleep(1000)' "$CONTAINER_PID"
        helper mount-bind "$(bind_request /here '"recursive": true')"
        assert_success
        grep -q ' /here/inner ' "/proc/$BACKGROUND_PID/mountinfo"
        helper mount-remove "$(remove_request /here)"
        assert_success
        run ! grep ' /here' "/proc/$BACKGROUND_PID/mountinfo"
        end_process "$BACKGROUND_PID"
        umount "$SOURCE/inner"
}

@test "what is left of a container that has ended is listed once by its name, and a container of another runtime is not" {
        local name
        start_container crun
        name=$CONTAINER_ID
        helper mount-bind "{\"container\": \"$name\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        helper mount-list "{\"container\": {\"id\": \"$name\", \"runtime\": \"runc\"}}"
        assert_failure ENOENT
        stop_container
        rm -rf "$STATE_DIR/uses" # as after a reboot
        helper mount-list "{\"container\": \"$name\"}"
        assert_success
        assert_field '[.mounts[] | .target + " " + .state] | join(" ")' "/data gone"
}
