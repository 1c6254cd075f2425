#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whose ids a mount shows: those of the user namespace that the runtime made, never those of one that the container nests in it.

load helpers
load remap_helpers
load container_to_container_helpers
bats_require_minimum_version 1.5.0

# The user on the node whose files the container is after. No id of the container is this one on the node.
VICTIM=1234567

setup() {
        remap_setup
        needs mount-overlay mount-container-to-container mount-tmpfs
        mkdir -m 0777 "$SOURCE/open"
        echo "of uid $VICTIM" >"$SOURCE/secret"
        chmod 0600 "$SOURCE/secret"
        chown "$VICTIM:$VICTIM" "$SOURCE/secret"
}

teardown() {
        remap_teardown
}

# nest [MAP]: a process of the current container in a user namespace and a mount namespace that the container's root made. Its map, lines of
# "INSIDE OUTSIDE COUNT" with OUTSIDE as the container counts, calls uid 1 of the container VICTIM. Sets NESTED, its pid.
nest() {
        local map=${1:-"0 0 1\n$VICTIM 1 1\n"} file children
        background nsenter --target "$CONTAINER_PID" --user --mount --pid -S 0 -G 0 -- /bin/busybox unshare -U -m /bin/busybox sleep 1000
        children=/proc/$BACKGROUND_PID/task/$BACKGROUND_PID/children
        wait_until 10 is_nested
        for file in uid_map gid_map; do
                nsenter --target "$CONTAINER_PID" --user -S 0 -G 0 -- /bin/sh -c 'printf "$1" >"/proc/$2/$3"' - "$map" "$NESTED" "$file"
        done
}

is_nested() {
        read -r NESTED <"$children" || :
        NESTED=${NESTED% }
        [[ -n $NESTED && $(readlink "/proc/$NESTED/ns/user") != "$(readlink "/proc/$CONTAINER_PID/ns/user")" &&
                $(tr '\0' ' ' <"/proc/$NESTED/cmdline") == *sleep* ]]
}

# nested UID COMMAND...: in the nested namespaces, as that user.
nested() {
        env -i PATH=/bin nsenter --target "$NESTED" --user --mount -S "$1" -G "$1" -- "${@:2}" 3>&-
}

# assert_out_of_reach PATH: neither user of the nested namespace can read it, nor make a file that is the victim's on the node.
assert_out_of_reach() {
        local uid
        for uid in 0 "$VICTIM"; do
                run ! nested "$uid" cat "$1/secret"
                nested "$uid" touch "$1/open/by.$uid" || :
        done
        run find "$SOURCE" "$BATS_TEST_TMPDIR" -xdev -name 'by.*' -uid "$VICTIM"
        is "$output" '' "files of the victim"
}

in_nested() {
        printf '{"container": %s, "source": "%s", "target": "%s"%s}' "$NESTED" "$SOURCE" "$1" "${2:+, $2}"
}

# bats test_tags=kernel
@test "a container that nests a user namespace does not choose which owners on the disk are its own" {
        start_container plain
        nest
        helper mount-bind "$(in_nested /data)"
        assert_success
        assert_field .mount.idMapping idmapped
        assert_out_of_reach /data
        is "$(nested 0 stat -c %u /data/secret)" 65534 "the owner that the container sees"
}

# bats test_tags=kernel
@test "what a nested user namespace makes belongs on the disk to the id that the runtime's map gives it" {
        start_container plain
        nest
        helper mount-bind "$(in_nested /data)"
        assert_success
        nested 0 touch /data/open/root
        nested "$VICTIM" touch /data/open/one
        is "$(stat -c %u:%g "$SOURCE/open/root")" 0:0
        is "$(stat -c %u:%g "$SOURCE/open/one")" 1:1
        in_container true
}

@test "a locked mount in a nested user namespace keeps its attributes and its owners" {
        start_container plain
        nest
        helper mount-bind "$(in_nested /data '"locked": true, "readOnly": true')"
        assert_success
        assert_out_of_reach /data
        run ! nested 0 mount -o remount,bind,rw /data
        run ! nested 0 touch /data/open/file
}

@test "through remap a nested user namespace reads and writes nothing outside the runtime's map" {
        start_container plain
        nest
        helper mount-bind "$(in_nested /data '"ids": "remap"')"
        assert_success
        remember_remap_processes
        assert_out_of_reach /data
        nested "$VICTIM" touch /data/open/one
        is "$(stat -c %u:%g "$SOURCE/open/one")" 1:1
}

@test "through remap a supplementary group of a nested user namespace is the group of the runtime's map" {
        chgrp "$VICTIM" "$SOURCE/secret"
        chmod 0640 "$SOURCE/secret"
        chgrp 1 "$SOURCE/open"
        chmod 0770 "$SOURCE/open"
        start_container plain
        cp "$FLEXGRAFT_TOOLS/as-user" "$CONTAINER_ROOTFS/bin/"
        nest "0 0 1\n$VICTIM 1 1\n5 5 1\n"
        helper mount-bind "$(in_nested /data '"ids": "remap"')"
        assert_success
        remember_remap_processes
        run ! nested 0 as-user 5 5 "$VICTIM" cat /data/secret
        nested 0 as-user 5 5 "$VICTIM" touch /data/open/file
}

@test "the layers of an overlay show a nested user namespace the owners of the runtime's map" {
        mkdir "$BATS_TEST_TMPDIR"/{upper,work}
        start_container plain
        nest
        helper mount-overlay "{\"container\": $NESTED, \"lower\": [\"$SOURCE\"], \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\", \"target\": \"/data\"}"
        assert_success
        assert_out_of_reach /data
}

@test "from one container into a nested user namespace of another, owners are those of the runtimes' maps" {
        start_two plain plain
        in_a sh -c "mkdir /shared && chmod 0777 /shared && echo secret >/shared/secret && chmod 0600 /shared/secret && chown 2:2 /shared/secret"
        nest "0 0 1\n2 1 1\n"
        helper mount-container-to-container "{\"from\": {\"container\": $A, \"path\": \"/shared\"}, \"to\": {\"container\": $NESTED, \"path\": \"/data\"}}"
        assert_success
        run ! nested 2 cat /data/secret
        nested 2 touch /data/file
        is "$(owners a /shared/file)" 1:1
}

@test "from a nested user namespace of one container into another, owners are those of the runtimes' maps" {
        start_two plain plain
        in_a sh -c "mkdir /shared && chmod 0777 /shared && echo secret >/shared/secret && chmod 0600 /shared/secret && chown 1:1 /shared/secret"
        use_container "$A"
        nest "0 0 1\n2 1 1\n"
        use_container "$B"
        helper mount-container-to-container "{\"from\": {\"container\": $NESTED, \"path\": \"/shared\"}, \"to\": {\"container\": $B, \"path\": \"/data\"}}"
        assert_success
        is "$(owners b /data/secret)" 1:1
}

@test "a tmpfs for a nested user namespace belongs to ids of the container" {
        start_container plain
        nest
        helper mount-tmpfs "{\"container\": $NESTED, \"target\": \"/data\", \"uid\": $VICTIM, \"gid\": $VICTIM}"
        assert_success
        is "$(nested 0 stat -c %u:%g /data)" "$VICTIM:$VICTIM"
        is "$(nsenter --target "$NESTED" --mount stat -c %u:%g /data)" 100001:100001
}

@test "directories that are made for a nested user namespace belong to its root" {
        start_container plain
        nest "0 1 1\n"
        in_container sh -c 'mkdir /own && chown 1:1 /own'
        helper mount-bind "$(in_nested /own/made/data '"mkdir": true')"
        assert_success
        is "$(in_container stat -c %u:%g /own/made)" 1:1
}

# A process in namespaces that user 1000 of the node made, whose root is that user: CONTAINER_PID. Its root directory is the node's.
container_of_a_user() {
        mkdir "$BATS_TEST_TMPDIR/target"
        chown 1000:1000 "$BATS_TEST_TMPDIR/target"
        background "$FLEXGRAFT_TOOLS/as-user" 1000 1000 - unshare --user --map-root-user --mount --propagation private sleep 1000
        CONTAINER_PID=$BACKGROUND_PID
        wait_until 10 is_sleeping
        echo "of root" >"$SOURCE/secret"
        chown 0:0 "$SOURCE/secret"
}

is_sleeping() {
        [[ $(tr '\0' ' ' <"/proc/$CONTAINER_PID/cmdline") == 'sleep '* ]]
}

# bats test_tags=kernel
@test "no owners are mapped for a container that a user of the node made, unless the request names the way" {
        container_of_a_user
        helper mount-bind "$(bind_request "$BATS_TEST_TMPDIR/target")"
        assert_failure EACCES
        [[ $(json_field .message) == *'user 1000 '* ]] || { show_last; return 1; }
        [[ $(json_field .error.hint) == *'"host"'*'"idmapped"'* ]] || { show_last; return 1; }
        helper mount-bind "$(bind_request "$BATS_TEST_TMPDIR/target" '"dryRun": true')"
        assert_failure EACCES
        helper mount-bind "$(bind_request "$BATS_TEST_TMPDIR/target" '"fallback": "remap"')"
        assert_failure EACCES
        helper mount-overlay "{\"container\": $CONTAINER_PID, \"lower\": [\"$SOURCE\", \"$BATS_TEST_TMPDIR\"], \"target\": \"$BATS_TEST_TMPDIR/target\"}"
        assert_failure EACCES
        assert_no_records
}

# bats test_tags=kernel
@test "ids host gives a container that a user of the node made no file of another user" {
        container_of_a_user
        helper mount-bind "$(bind_request "$BATS_TEST_TMPDIR/target" '"ids": "host"')"
        assert_success
        assert_field .mount.idMapping host
        run ! nsenter --target "$CONTAINER_PID" --user --mount -S 0 -G 0 -- cat "$BATS_TEST_TMPDIR/target/secret"
        helper mount-remove "$(remove_request "$BATS_TEST_TMPDIR/target")"
        assert_success
}

# bats test_tags=kernel
@test "ids idmapped maps owners for a container that a user of the node made" {
        container_of_a_user
        helper mount-bind "$(bind_request "$BATS_TEST_TMPDIR/target" '"ids": "idmapped"')"
        assert_success
        is "$(nsenter --target "$CONTAINER_PID" --user --mount -S 0 -G 0 -- cat "$BATS_TEST_TMPDIR/target/secret")" "of root"
}

@test "a tmpfs in a container that a user of the node made needs no permission: it has no owners from before" {
        container_of_a_user
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"$BATS_TEST_TMPDIR/target\"}"
        assert_success
        is "$(nsenter --target "$CONTAINER_PID" --mount stat -c %u "$BATS_TEST_TMPDIR/target")" 1000
}

@test "owners are not mapped from or to a container that a user of the node made, unless the request names the way" {
        container_of_a_user
        A=$CONTAINER_PID
        start_container plain 200000
        B=$CONTAINER_PID
        helper mount-container-to-container "$(c2c_request "$SOURCE" /data)"
        assert_failure EACCES
        helper mount-container-to-container "{\"from\": {\"container\": $B, \"path\": \"/home\"}, \"to\": {\"container\": $A, \"path\": \"$BATS_TEST_TMPDIR/target\"}}"
        assert_failure EACCES
}

@test "a read-only device is refused where the node's root is in the container's map: it could write" {
        needs mount-block
        make_device ext4
        MAP='0 100000 1000,1000 0 1' start_container plain
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/device\", \"raw\": true, \"readOnly\": true}"
        assert_failure EOPNOTSUPP
        [[ $(json_field .message) == *'as uid 1000'* ]] || { show_last; return 1; }
}

@test "the root of a nested user namespace cannot raise the size of a tmpfs with ids userns: it is not the container's root" {
        start_container plain
        nest
        helper mount-tmpfs "{\"container\": $NESTED, \"target\": \"/data\", \"ids\": \"userns\", \"options\": \"size=1m,mode=0777\"}"
        assert_success
        assert_field .mount.idMapping userns
        nested "$VICTIM" touch /data/file
        is "$(in_container true && nsenter --target "$NESTED" --mount stat -c %u /data/file)" 100001
        run ! nested 0 mount -o remount,size=2m /data
}

@test "the node of a raw device is the root's that the runtime's map gives, not the one's whom a nested user namespace calls root" {
        needs mount-block
        start_container plain
        nest "0 1 1\\n5 0 1\\n"
        make_device blank
        helper mount-block "{\"container\": $NESTED, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        is "$(stat -c %u:%g "/proc/$NESTED/root/disk")" "$CONTAINER_BASE:$CONTAINER_BASE"
        helper mount-remove "{\"container\": $NESTED, \"target\": \"/disk\"}"
        assert_success
}
