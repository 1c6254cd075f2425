#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# NFS with remapped owners: what one container writes, another sees when NFS says so: when it opens the file, or gets a lock.
#
# A kernel that has no NFS skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,nfs

load helpers
load remap_helpers
load nfs_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        schema_validate
}

setup() {
        nfs_needs_kernel
        remap_setup
        nfs_setup
}

teardown() {
        nfs_teardown remap_teardown
}

# two_clients VERSION: containers A and B, each with the export at /data. B is the current one, and has a session. CONTROL=yes: NFS as it is,
# in containers without a user namespace.
two_clients() {
        local base
        A=
        for base in 100000 200000; do
                remap_container "plain${CONTROL:+-nouserns}" "$base"
                install -m 0755 "$FLEXGRAFT_TOOLS/file-session" "$CONTAINER_ROOTFS/bin/"
                join_server
                [[ $1 != 3,lock ]] || begin_lock_services "$CONTAINER_PID"
                mount_nfs "\"ids\": \"$([[ -n ${CONTROL:-} ]] && echo host || echo remap)\", \"options\": \"vers=$1\""
                A=${A:-$CONTAINER_PID}
        done
        B=$CONTAINER_PID
        talk /bin/file-session
}

in_a() {
        use_container "$A"
        in_container "$@"
        use_container "$B"
}

# does COMMAND RESULT: the session in B.
does() {
        tell "$1"
        answer "${2-ok}"
}

# check_opening VERSION: close-to-open.
check_opening() {
        local i
        two_clients "$1"
        for i in 1 2 3; do
                in_a sh -c 'printf first >/data/file'
                does "open r /data/file"
                does size 5
                does read first
                does close
                in_a sh -c 'printf second-longer >/data/file'
                does "open r /data/file"
                does read second-longer
                does size 13
                does close
                in_a sh -c 'printf SECOND-LONGER >/data/file'
                does "open r /data/file"
                does read SECOND-LONGER
                does close
                # the name is another file's
                in_a sh -c 'printf replaced >/data/new; mv /data/new /data/file'
                does "open r /data/file"
                does read replaced
                does close
        done
        in_a mv /data/file /data/moved
        does "open r /data/moved"
        does read replaced
        does close
}

# check_gone VERSION: the export has no file any more that one container removed, though its kernel still remembers it.
check_gone() {
        two_clients "$1"
        in_a sh -c 'printf first >/data/file; printf second >/data/other; touch /pin /pin2; mount --bind /data/file /pin; mount --bind /data/other /pin2'
        does "open r /data/file"
        does read first
        does close
        in_a sh -c 'printf replaced >/data/new; mv /data/new /data/file; rm /data/other'
        is "$(ls -A "$EXPORTED")" file
        does "open r /data/file"
        does read replaced
        does close
        in_a umount /pin /pin2
}

# check_locking VERSION
check_locking() {
        local kind i
        two_clients "$1"
        for kind in posix ofd flock; do
                for i in 1 2; do
                        in_a sh -c 'printf first >/data/file'
                        does "open w /data/file"
                        does "lock $kind"
                        does read first
                        does "unlock $kind"
                        in_a sh -c 'printf second-longer >/data/file'
                        does "lock $kind"
                        does size 13
                        does read second-longer
                        does "unlock $kind"
                        in_a sh -c 'printf SECOND-LONGER >/data/file'
                        does "lock $kind"
                        does read SECOND-LONGER
                        does "write other!"
                        does "unlock $kind"
                        does close
                        is "$(in_a cat /data/file)" other!-LONGER
                done
        done
}

# check_counting VERSION: each adds one under a lock, without closing the file; and lines.
check_counting() {
        local kind jobs pid
        two_clients "$1"
        for kind in posix flock; do
                in_a sh -c 'printf 00000000 >/data/number; : >/data/lines'
                jobs=()
                for pid in "$A" "$B"; do
                        use_container "$pid"
                        in_container /bin/file-session count "$kind" /data/number "${FLEXGRAFT_NFS_STEPS:-30}" & jobs+=($!)
                        in_container /bin/file-session line "$kind" /data/lines "${FLEXGRAFT_NFS_STEPS:-30}" "$pid" & jobs+=($!)
                done
                for pid in "${jobs[@]}"; do wait "$pid"; done
                is "$((10#$(<"$EXPORTED/number")))" "$((2 * ${FLEXGRAFT_NFS_STEPS:-30}))" "the number, with $kind"
                is "$(sort "$EXPORTED/lines" | uniq -c | awk '{ print $1 }' | xargs)" "${FLEXGRAFT_NFS_STEPS:-30} ${FLEXGRAFT_NFS_STEPS:-30}" "lines"
        done
}

# check_parties VERSION: a container with remapped owners, one with NFS as it is, and the server itself. The server's own flock(2) is of its
# filesystem alone: for clients NFS locks the whole file in its place, as fcntl(2) does.
check_parties() {
        local kind remapped plain
        remap_container plain
        remapped=$CONTAINER_PID
        remap_container plain-nouserns 200000
        plain=$CONTAINER_PID
        for CONTAINER_PID in "$remapped" "$plain"; do
                use_container "$CONTAINER_PID"
                join_server
                [[ $1 != 3,lock ]] || begin_lock_services "$CONTAINER_PID"
                mount_nfs "\"ids\": \"$([[ $CONTAINER_PID == "$plain" ]] && echo host || echo remap)\", \"options\": \"vers=$1\""
        done
        for kind in posix ofd; do
                locks_exclude "$remapped $kind" "$plain $kind" "server $kind"
        done
        locks_exclude "$remapped flock" "$plain flock" "server posix"
}

# check_sqlite VERSION
check_sqlite() {
        two_clients "$1"
        sqlite_storm "$A" "$B" /data/base.db "${FLEXGRAFT_SQLITE_SECONDS:-60}"
        is "$(sqlite_look "$EXPORTED/base.db")" ok
}

@test "over NFS 3, what was written and closed is there whole when the file is opened" {
        check_opening 3
}

# bats test_tags=kernel_too
@test "over NFS 4.0, what was written and closed is there whole when the file is opened" {
        check_opening 4.0
}

@test "over NFS 4.1, what was written and closed is there whole when the file is opened" {
        check_opening 4.1
}

@test "over NFS 4.2, what was written and closed is there whole when the file is opened" {
        check_opening 4.2
}

@test "NFS as it is, 3, 4.1 and 4.2, has what was written and closed when the file is opened: these tests ask for no more" {
        local version
        for version in 3 4.1 4.2; do
                CONTROL=yes check_opening "$version"
        done
}

@test "over NFS 3, a file that one container removes or replaces is gone for others while its kernel remembers it" {
        check_gone 3
}

@test "over NFS 4.2, a file that one container removes or replaces is gone for others while its kernel remembers it" {
        check_gone 4.2
}

@test "over NFS 4.2, one name of two that one container removes or replaces is gone for others while its kernel remembers the file" {
        two_clients 4.2
        in_a sh -c 'printf first >/data/one; ln /data/one /data/two; touch /pin; mount --bind /data/two /pin; rm /data/one'
        is "$(ls -A "$EXPORTED")" two
        in_a sh -c 'printf second >/data/new; ln /data/two /data/three; mv /data/new /data/three'
        is "$(ls -A "$EXPORTED")" $'three\ntwo'
        is "$(in_a cat /pin /data/two)" firstfirst
        in_a umount /pin
}

@test "over NFS 3, a process that gets a lock sees the size and the content that the file has by then" {
        check_locking 3,lock
}

# bats test_tags=kernel_too
@test "over NFS 4.0, a process that gets a lock sees the size and the content that the file has by then" {
        check_locking 4.0
}

@test "over NFS 4.1, a process that gets a lock sees the size and the content that the file has by then" {
        check_locking 4.1
}

@test "over NFS 4.2, a process that gets a lock sees the size and the content that the file has by then" {
        check_locking 4.2
}

@test "NFS as it is, 4.1 and 4.2, shows a process that gets a lock the size and the content by then: these tests ask for no more" {
        local version
        for version in 4.1 4.2; do
                CONTROL=yes check_locking "$version"
        done
}

@test "over NFS 3 to 4.2, locks hold between a container with remapped owners, a client with NFS as it is, and the server itself" {
        local version
        for version in 3,lock 4.0 4.1 4.2; do
                check_parties "$version"
                for CONTAINER_PID in "${!bed_kind[@]}"; do
                        stop_container "$CONTAINER_PID"
                done
        done
}

# list DIR: the list of access of `file` there, by numbers, with the container's eyes or the server's: COMMAND is what comes before.
list() {
        "${@:2}" getfacl -cnp "$1/file" | sed 's/[[:space:]]*#.*//' | xargs
}

@test "over NFS 3, lists of access name the container's ids in both directions, are inherited, and count for who opens the file" {
        local ids
        remap_container plain
        join_server
        mount_nfs '"ids": "remap", "options": "vers=3"'
        in_container sh -c 'echo text >/data/file && chmod 0600 /data/file && setfacl -m u:1000:rw,g:2000:r /data/file'
        ids="user::rw- user:1000:rw- group::--- group:2000:r-- mask::rw- other::---"
        is "$(list "$EXPORTED")" "$ids" "at the server"
        is "$(list /data in_container)" "$ids" "in the container"
        is "$(as_user 1000 /bin/cat /data/file)" text
        as_user 1000 /bin/sh -c 'echo more >>/data/file'
        run ! as_user 1001 /bin/cat /data/file
        setfacl -m u:1001:r,u:1000:- "$EXPORTED/file"
        run ! as_user 1000 /bin/cat /data/file
        is "$(as_user 1001 /bin/cat /data/file | xargs)" "text more"
        is "$(list /data in_container)" "user::rw- user:1000:--- user:1001:r-- group::--- group:2000:r-- mask::r-- other::---"
        in_container setfacl -b /data/file
        is "$(list "$EXPORTED")" "user::rw- group::--- other::---"
        in_container sh -c 'mkdir /data/dir && setfacl -d -m u:1000:rwx,o::- /data/dir && touch /data/dir/file'
        is "$(list "$EXPORTED/dir")" "user::rw- user:1000:rwx group::r-x mask::rw- other::---"
}

@test "over NFS 4.2, which has no such lists of access, setfacl says that they are not supported, as it does without remap" {
        local ids
        for ids in remap host; do
                remap_container "plain$([[ $ids == remap ]] || echo -nouserns)"
                join_server
                mount_nfs "\"ids\": \"$ids\", \"options\": \"vers=4.2\""
                in_container touch /data/file
                run -1 in_container setfacl -m u:1000:rw /data/file
                [[ $output == *"Operation not supported"* ]]
        done
}

# bats test_tags=kernel_too
@test "over NFS 3, two containers count in one file under locks, and no step is lost" {
        check_counting 3,lock
}

@test "over NFS 4.2, two containers count in one file under locks, and no step is lost" {
        check_counting 4.2
}

# bats test_tags=kernel_too
@test "over NFS 3, two containers that write one SQLite database leave it intact" {
        check_sqlite 3,lock
}

@test "over NFS 4.2, two containers that write one SQLite database leave it intact" {
        check_sqlite 4.2
}
