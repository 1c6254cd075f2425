#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap over local filesystems: a container uses a directory as if it were its own, whatever it does to it.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        remap_teardown
}

# ---- owners

# bats test_tags=kernel
@test "owners are those that the filesystem stores, in both directions" {
        local type
        remap_bed
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                echo text >"$dir/root" && echo text >"$dir/user" && chown 1000:1001 "$dir/user"
                is "$(in_container stat -c %u:%g "/$type" "/$type/root" "/$type/user" | xargs)" "0:0 0:0 1000:1001"
                in_container touch "/$type/new"
                is "$(stat -c %u:%g "$dir/new")" 0:0
                chmod 0777 "$dir"
                as 1000 append "/$type/by-1000" x 1
                is "$(stat -c %u:%g "$dir/by-1000")" 1000:1000
                in_container chown 65535:7 "/$type/new"
                is "$(stat -c %u:%g "$dir/new")" 65535:7
                is "$(in_container stat -c %u:%g "/$type/new")" 65535:7
        done
}

# bats test_tags=kernel
@test "the reply and the list say that the ids are remapped, and by which process" {
        only_remap
        remap_bed ext4
        [[ $(mount_line /ext4) == *' - fuse.flexgraft '* ]] || is "$(mount_line /ext4)" "a mount of type fuse.flexgraft"
        assert_attributes /ext4 rw nosuid nodev
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].idMapping' remap
        assert_field '.mounts[0].remap.running' true
        [[ " ${remap_pids[*]} " == *" $(jq .mounts[0].remap.pid <<<"$json") "* ]]
        is "$(remap_processes remap-keeper | wc -l)" 1 "keepers"
        is "$(remap_processes remap-daemon | wc -l)" 1 "daemons"
}

# taken_over: a remap mount on /data that the container has unmounted, and a tmpfs on /t that has its mount id, which is used again.
taken_over() {
        local id round
        in_container mkdir -p /t
        for round in {1..20}; do # another process of the node may be faster
                helper mount-bind "$(bind_request /data '"ids": "remap"')"
                assert_success
                id=$(awk '$5 == "/data" { print $1 }' "/proc/$CONTAINER_PID/mountinfo")
                # shellcheck disable=SC2016
                in_container sh -c 'umount /data
                        for i in 1 2 3 4 5 6 7 8; do
                                mount -t tmpfs tmpfs /t && grep -q "^$0 .* /t " /proc/self/mountinfo && exit
                        done
                        exit 1' "$id" && return
                in_container sh -c 'while umount /t 2>/dev/null; do :; done'
                helper mount-remove "$(remove_request /data)"
        done
        echo "no tmpfs got the id $id in $round rounds"
        return 1
}

@test "a mount that the container unmounted is gone also when another mount has its id by then" {
        only_remap
        start_container plain
        taken_over
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' gone
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_field .alreadyRemoved true
        in_container sh -c 'while umount /t 2>/dev/null; do :; done'
        taken_over
        helper mount-bind "$(bind_request /data '"ids": "remap"')"
        assert_success
        assert_field .mount.alreadyMounted false
        assert_mounts_at /data 1
}

# bats test_tags=kernel
@test "a file of an id that the container does not have shows the overflow id, and its root cannot change it" {
        remap_bed
        local type
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                echo secret >"$dir/foreign" && chown 100000:100000 "$dir/foreign" && chmod 0600 "$dir/foreign"
                echo text >"$dir/for-all" && chown 70000:70000 "$dir/for-all" && chmod 0644 "$dir/for-all"
                is "$(in_container stat -c %u:%g "/$type/foreign")" 65534:65534
                run ! in_container cat "/$type/foreign"
                run ! in_container chmod 0666 "/$type/foreign"
                run ! in_container chown 0:0 "/$type/foreign"
                is "$(in_container cat "/$type/for-all")" text
                run ! in_container sh -c "echo >/$type/for-all"
                is "$(stat -c %u:%g:%a "$dir/foreign")" 100000:100000:600
        done
}

# bats test_tags=kernel
@test "the map of the container is what counts, with all its ranges" {
        remap_setup_map() {
                local rootfs=$BATS_TEST_TMPDIR/map/rootfs
                make_rootfs "$rootfs" 300000
                install -m 0755 "$FLEXGRAFT_TOOLS"/fs-calls "$rootfs/bin/"
                MAP='0 300000 1000,1000 500000 10,2000 400000 100' ROOTFS=$rootfs start_container plain 300000
        }
        remap_setup_map
        make_source ext4
        chmod 0777 "$BATS_TEST_TMPDIR/ext4"
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        local id
        for id in 0 999 1000 1009 2000 2099; do
                as "$id" append "/data/$id" x 1
                is "$(stat -c %u:%g "$BATS_TEST_TMPDIR/ext4/$id")" "$id:$id"
                is "$(in_container stat -c %u:%g "/data/$id")" "$id:$id"
        done
        touch "$BATS_TEST_TMPDIR/ext4/none"
        chown 1500:1500 "$BATS_TEST_TMPDIR/ext4/none"
        is "$(in_container stat -c %u:%g /data/none)" 65534:65534
}

# bats test_tags=kernel,kernel_too
@test "two containers with different maps see each other's files with the right owners" {
        local first second
        make_source ext4
        chmod 0777 "$BATS_TEST_TMPDIR/ext4"
        remap_container plain 100000
        first=$CONTAINER_PID
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        remap_container plain 200000
        second=$CONTAINER_PID
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        as 1000 append /data/second x 1
        in_container touch /data/second-root
        use_container "$first"
        is "$(in_container stat -c %u:%g /data/second /data/second-root | xargs)" "1000:1000 0:0"
        as 1000 append /data/second y 1
        run ! as 1001 append /data/second z 1
        as 1001 append /data/first x 1
        use_container "$second"
        is "$(in_container stat -c %u:%g:%s /data/first)" 1001:1001:32
        wait_until 3 in_container sh -c '[ "$(wc -c </data/second)" = 64 ]'
}

@test "a block device's filesystem is remapped, too" {
        make_device ext4
        start_container plain
        helper mount-block '{"container": '"$CONTAINER_PID"', "source": "'"$DEVICE"'", "target": "/data", "ids": "'"$IDS"'"}'
        assert_success
        remember_remap_processes
        assert_field .mount.idMapping "$IDS"
        is "$(in_container cat /data/file)" "from the device"
        in_container sh -c 'echo text >/data/made && chown 7:8 /data/made'
        helper mount-remove "$(remove_request /data)"
        assert_success
        remap_processes_end
        # Nothing holds the superblock any more.
        mkdir "$BATS_TEST_TMPDIR/look"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/look"
        is "$(stat -c %u:%g "$BATS_TEST_TMPDIR/look/made")" 7:8
        umount "$BATS_TEST_TMPDIR/look"
        release_device "$DEVICE"
}

# bats test_tags=kernel,kernel_too
@test "a file as the source is used as a file, or refused with nothing left" {
        echo text >"$SOURCE/file"
        start_container plain
        container_snapshot
        node_snapshot
        SOURCE=$SOURCE/file
        helper mount-bind "$(bind_request /file "\"ids\": \"$IDS\"")"
        remember_remap_processes
        if [[ $status != 0 ]]; then
                assert_failure
                assert_container_unchanged
                assert_node_unchanged
                is "$(remap_processes)" '' "processes"
                return
        fi
        is "$(in_container cat /file)" text
        in_container sh -c 'echo more >>/file && chown 5:6 /file'
        is "$(cat "$SOURCE")" $'text\nmore'
        is "$(stat -c %u:%g "$SOURCE")" 5:6
}

# ---- what a filesystem does, call by call

@test "links and symlinks: relative, absolute, long, dangling and in circles" {
        remap_bed
        check links
}

@test "renaming, also without replacing, and exchanging" {
        remap_bed
        check rename
}

@test "unlinked files and directories live as long as they are open" {
        remap_bed
        check unlink
}

# bats test_tags=kernel
@test "errors are the usual ones" {
        remap_bed
        check errors
        local type
        for type in ext4 tmpfs; do
                echo text >"$BATS_TEST_TMPDIR/$type/here"
                run in_container /bin/busybox ln "/$type/here" /tmp/link
                [[ $output == *'ross-device link'* ]] || is "$output" "EXDEV"
        done
}

@test "extended attributes: set, got, listed and removed, of all sizes" {
        remap_bed
        check xattr
}

# bats test_tags=kernel,kernel_too
@test "a list of extended attributes has the names that are shown, and no piece of one" {
        only_remap
        remap_bed ext4
        touch "$BATS_TEST_TMPDIR/ext4/file"
        setfattr -n trusted.x "$BATS_TEST_TMPDIR/ext4/file"
        setfattr -n user.user.abcd "$BATS_TEST_TMPDIR/ext4/file"
        is "$(in_container python3 -c 'import os
print(sorted(os.listxattr("/ext4/file")))')" "['user.user.abcd']"
}

@test "fallocate does what the filesystem below does, or says EOPNOTSUPP" {
        remap_bed
        check fallocate
}

@test "copy_file_range, sendfile and splice copy" {
        remap_bed
        check copy
}

@test "of several copies at one time each is cut to its part, so that requests of others do not wait behind all that is copied" {
        remap_bed tmpfs
        trace_daemon -e trace=copy_file_range -e inject=copy_file_range:delay_enter=2000000
        in_container /usr/bin/python3 -c '
import os, threading
size = 1 << 26
def copy(number):
    source = os.open(f"/tmpfs/from{number}", os.O_RDWR | os.O_CREAT)
    os.truncate(source, size)
    begin.wait()
    copied.append(os.copy_file_range(source, os.open(f"/tmpfs/to{number}", os.O_WRONLY | os.O_CREAT), size))
begin, copied = threading.Barrier(4), []
threads = [threading.Thread(target=copy, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
copied.sort()
print(*copied)' >"$BATS_TEST_TMPDIR/copied"
        is "$(<"$BATS_TEST_TMPDIR/copied")" "16777216 22347776 33554432 67108864"
}

# The kernel gives up on requests to copy for good when two at a time are answered that they are not known.
@test "the first copies of a mount are made by the daemon, also when there are several at one time" {
        remap_bed tmpfs
        trace_daemon -e trace=copy_file_range -e inject=write,writev:delay_enter=200000
        in_container /usr/bin/python3 -c '
import os, threading
def copy(number):
    source = os.open(f"/tmpfs/from{number}", os.O_RDWR | os.O_CREAT)
    os.truncate(source, 4096)
    target = os.open(f"/tmpfs/to{number}", os.O_WRONLY | os.O_CREAT)
    begin.wait()
    assert os.copy_file_range(source, target, 4096) == 4096
begin = threading.Barrier(2)
threads = [threading.Thread(target=copy, args=(number,)) for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()'
        trace_ends
        is "$(grep -c "copy_file_range.* = 4096" "$TRACE")" 2
}

@test "data and holes are found" {
        remap_bed
        check seek
}

# bats test_tags=deep
@test "a directory of 5,000 names is read, from any place, and while it is emptied" {
        remap_bed
        check readdir
}

@test "a shared mapping, a read and another process see the same bytes" {
        remap_bed
        check mmap
}

@test "O_DIRECT, alone and beside others" {
        remap_bed
        check direct
}

@test "what several processes append is all there, whole and in order" {
        remap_bed
        check append
}

# bats test_tags=kernel,kernel_too,deep
@test "what the container and the node append at the same time is all there" {
        local type pids=() pid
        remap_bed
        for type in ext4 tmpfs; do
                in_container /bin/fs-calls append "/$type/file" a 1000 &
                pids+=($!)
                "$FLEXGRAFT_TOOLS/fs-calls" append "$BATS_TEST_TMPDIR/$type/file" b 1000 &
                pids+=($!)
                in_container /bin/fs-calls append "/$type/file" c 1000 &
                pids+=($!)
                for pid in "${pids[@]}"; do wait "$pid"; done
                pids=()
                "$FLEXGRAFT_TOOLS/fs-calls" verify "$BATS_TEST_TMPDIR/$type/file" abc 1000
        done
}

@test "opening: O_TRUNC, O_EXCL, O_CREAT of what its mode forbids, O_PATH, O_SYNC, and the umask" {
        remap_bed
        check open
}

@test "a file without a name (O_TMPFILE) is written, and linked once or never" {
        remap_bed
        check tmpfile
}

# bats test_tags=kernel,kernel_too
@test "statfs is that of the filesystem below" {
        local type
        remap_bed
        check statfs
        for type in ext4 tmpfs; do
                is "$(in_container stat -f -c '%b %S %c %l' "/$type")" "$(stat -f -c '%b %S %c %l' "$BATS_TEST_TMPDIR/$type")"
        done
}

# bats test_tags=kernel,kernel_too
@test "times are set to the nanosecond, and by the users that may" {
        local type
        remap_bed
        check times
        for type in ext4 tmpfs; do
                touch -d '2001-02-03 04:05:06.123456789' "$BATS_TEST_TMPDIR/$type/old"
                is "$(in_container /usr/bin/stat -c %.9Y "/$type/old")" "$(stat -c %.9Y "$BATS_TEST_TMPDIR/$type/old")"
        done
}

# bats test_tags=deep
@test "truncating, growing, and files of more than 4 GiB" {
        remap_bed
        check truncate
}

# bats test_tags=kernel
@test "FIFOs and sockets are made and used, and device nodes are refused with EPERM" {
        local type
        remap_bed
        check special
        # Those of the node are nobody's way to a device.
        for type in ext4 tmpfs; do
                mknod -m 0666 "$BATS_TEST_TMPDIR/$type/null" c 1 3
                in_container test -c "/$type/null"
                is "$(in_container /bin/fs-calls open "/$type/null" r || :)" EACCES
        done
}

# bats test_tags=kernel
@test "inode numbers and link counts are those of the node, and stay" {
        local type before
        remap_bed
        check inodes
        for type in ext4 tmpfs; do
                mkdir "$BATS_TEST_TMPDIR/$type/dir"
                touch "$BATS_TEST_TMPDIR/$type/dir/"{1,2,3}
                before=$(in_container stat -c '%n %i %h' "/$type/dir" "/$type/dir/"{1,2,3})
                is "${before//"/$type/"/}" "$(cd "$BATS_TEST_TMPDIR/$type" && stat -c '%n %i %h' dir dir/{1,2,3})"
                forget_names "/$type"
                is "$(in_container stat -c '%n %i %h' "/$type/dir" "/$type/dir/"{1,2,3})" "$before"
        done
}

@test "who may what: modes, owners, groups, sticky directories" {
        remap_bed
        check rights
}

@test "setgid directories, and set-id bits that a write takes away" {
        remap_bed
        check setid
}

# bats test_tags=deep
@test "reading and writing in pieces of all sizes" {
        remap_bed
        check io
}

@test "a program is run from there" {
        local type
        remap_bed
        for type in ext4 tmpfs; do
                in_container cp /bin/busybox "/$type/busybox"
                is "$(in_container "/$type/busybox" echo runs)" runs
                run in_container sh -c "echo >/$type/busybox"
                is "$status" 0 "a write when it no longer runs"
        done
}

# bats test_tags=kernel,kernel_too,deep
@test "all of these, one after the other in one container" {
        local name
        remap_bed
        for name in links rename unlink xattr fallocate copy seek readdir mmap direct append open tmpfile truncate rights setid io; do
                check "$name"
        done
}

# ---- ACLs

# bats test_tags=kernel
@test "POSIX ACLs name the container's ids, in both directions" {
        local type dir
        remap_bed
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                echo text >"$dir/file"
                chmod 0600 "$dir/file"
                in_container setfacl -m u:1000:rw,g:2000:r "/$type/file"
                is "$(getfacl -cnp "$dir/file" | xargs)" "user::rw- user:1000:rw- group::--- group:2000:r-- mask::rw- other::---"
                is "$(in_container getfacl -cnp "/$type/file" | xargs)" "user::rw- user:1000:rw- group::--- group:2000:r-- mask::rw- other::---"
                is "$(as 1000 open "/$type/file" w)" ok
                is "$(as 1001 open "/$type/file" r || :)" EACCES
                is "$(GROUPS_TOO=1999,2000 as 1001 open "/$type/file" r)" ok
                is "$(GROUPS_TOO=1999,2000 as 1001 open "/$type/file" w || :)" EACCES
                in_container chmod g-w "/$type/file" # that is the mask
                is "$(as 1000 open "/$type/file" w || :)" EACCES
                in_container setfacl -b "/$type/file"
                is "$(getfacl -cnp "$dir/file" | xargs)" "user::rw- group::--- other::---"
                is "$(as 1000 open "/$type/file" r || :)" EACCES
                setfacl -m u:1002:rw "$dir/file"
                wait_until 3 as 1002 open "/$type/file" w >"$BATS_TEST_TMPDIR/log"
                is "$(in_container getfacl -cnp "/$type/file" | grep ^user:1)" user:1002:rw-
        done
}

# bats test_tags=kernel
@test "an ACL takes the setgid bit of what has it only if neither root nor a member of the group sets it" {
        local type dir
        remap_bed
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                mkdir "$dir"/{team,member,other,unmapped}
                chown 0:2000 "$dir/team"
                chown 1000:2000 "$dir"/{member,other}
                chown 0:70000 "$dir/unmapped"
                chmod 2770 "$dir"/{team,member,other,unmapped}
                in_container setfacl -m u:5:rwx "/$type/team"
                in_container /usr/bin/setpriv --reuid 1000 --regid 1000 --groups 7,2000 setfacl -m u:5:rwx "/$type/member"
                in_container /usr/bin/setpriv --reuid 1000 --regid 1000 --groups 7 setfacl -m u:5:rwx "/$type/other"
                run ! in_container setfacl -m u:5:rwx "/$type/unmapped"
                is "$(stat -c %a "$dir"/{team,member,other,unmapped} | xargs)" "2770 2770 770 2770"
        done
}

# bats test_tags=kernel
@test "new files and directories inherit the default ACL of their directory" {
        local type dir
        remap_bed
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                in_container mkdir -m 0777 "/$type/dir"
                in_container setfacl -d -m u:1000:rwx,o::- "/$type/dir"
                as 1001 append "/$type/dir/file" x 1
                in_container mkdir "/$type/dir/sub"
                is "$(getfacl -cnp "$dir/dir/file" | grep -v ^group | xargs | sed 's/\t/ /g; s/ *#effective:[-rwx]*//')" \
                        "user::rw- user:1000:rwx mask::r-- other::---"
                is "$(getfacl -cndp "$dir/dir/sub" | xargs)" "user::rwx user:1000:rwx group::rwx mask::rwx other::---"
                is "$(as 1000 open "/$type/dir/file" r)" ok
                is "$(as 1000 open "/$type/dir/file" w || :)" EACCES
                is "$(as 1002 open "/$type/dir/file" r || :)" EACCES
        done
}

# ---- one name, in what is served and at its source

@test "a file that an owner whom the container does not have makes at the same moment is not opened for the container's root" {
        remap_bed tmpfs
        mkdir -m 0777 "$BATS_TEST_TMPDIR/tmpfs/all" # not sticky: there fs.protected_regular would refuse it, too
        creates_again_and_again /tmpfs/all/x "$BATS_TEST_TMPDIR/tmpfs/all/x" "${ENTER[@]}"
        writes_alone "$BATS_TEST_TMPDIR/tmpfs/all/x" setpriv --reuid 70000 --regid 70000 --clear-groups
}

# ---- locks

# bats test_tags=kernel
@test "locks hold between processes of the container" {
        local type kind
        remap_bed
        for type in ext4 tmpfs; do
                for kind in "${LOCKS[@]}"; do
                        talk /bin/fs-calls lock "$kind" "/$type/$kind"
                        is "$(in_container /bin/fs-calls try "$kind" "/$type/$kind")" held "$kind over $type"
                        is "$(in_container /bin/fs-calls try "read-$kind" "/$type/$kind")" held "$kind, to read, over $type"
                        is "$(in_container /bin/fs-calls try "$kind" "/$type/other")" free
                        end_process "$TALK_PID"
                        wait_until 5 is_free "$kind" "/$type/$kind"
                        talk /bin/fs-calls lock "read-$kind" "/$type/$kind"
                        is "$(in_container /bin/fs-calls try "read-$kind" "/$type/$kind")" free "$kind, both to read, over $type"
                        is "$(in_container /bin/fs-calls try "$kind" "/$type/$kind")" held
                        end_process "$TALK_PID"
                done
        done
}

# bats test_tags=kernel,kernel_too
@test "locks hold between the container and the node" {
        local type kind file
        remap_bed
        for type in ext4 tmpfs; do
                for kind in "${LOCKS[@]}"; do
                        file=$BATS_TEST_TMPDIR/$type/$kind
                        talk /bin/fs-calls lock "$kind" "/$type/$kind"
                        is "$("$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$file")" held "$kind over $type, on the node"
                        end_process "$TALK_PID"
                        wait_until 5 is_free_on_the_node "$kind" "$file"
                        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock "$kind" "$file"
                        is "$(in_container /bin/fs-calls try "$kind" "/$type/$kind")" held "$kind over $type, in the container"
                        end_process "$BACKGROUND_PID"
                        wait_until 5 is_free "$kind" "/$type/$kind"
                done
        done
}

# bats test_tags=kernel,kernel_too
@test "a process that waits for a lock gets it when it is free, can be killed, and holds up no other" {
        local kind file waiter killed
        remap_bed ext4
        for kind in "${LOCKS[@]}"; do
                file=$BATS_TEST_TMPDIR/ext4/$kind
                background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock "$kind" "$file"
                "${ENTER[@]}" /bin/fs-calls wait "$kind" "/ext4/$kind" 3>&- >"$BATS_TEST_TMPDIR/waiter" &
                waiter=$!
                "${ENTER[@]}" /bin/fs-calls wait "$kind" "/ext4/$kind" 3>&- >"$BATS_TEST_TMPDIR/killed" &
                killed=$!
                wait_until 10 has_children "$waiter" 1
                wait_until 10 has_children "$killed" 1
                sleep 0.3 # most often they wait by then
                in_container touch /ext4/meanwhile
                is "$(cat "$BATS_TEST_TMPDIR"/{waiter,killed})" '' "$kind: what those say that wait"
                kill -KILL "$(pgrep -P "$killed")" # nsenter waits for it
                wait_until 5 process_is_gone "$killed"
                end_process "$BACKGROUND_PID"
                wait_until 5 process_is_gone "$waiter"
                wait "$waiter"
                is "$(cat "$BATS_TEST_TMPDIR/waiter")" got "$kind"
                wait_until 5 is_free_on_the_node "$kind" "$file"
        done
}

# bats test_tags=kernel,kernel_too,deep
@test "a process that waits for a lock gets it although it has closed the file of its first lock meanwhile" {
        local file waiter
        remap_bed ext4
        file=$BATS_TEST_TMPDIR/ext4/file
        : >"$file"
        chown --reference="$BATS_TEST_TMPDIR/ext4" "$file"
        chmod 0666 "$file"
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd-start "$file"
        "${ENTER[@]}" /bin/fs-calls wait-and-close /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiter" &
        waiter=$!
        wait_until 5 grep -q closed "$BATS_TEST_TMPDIR/waiter"
        sleep 0.3
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" closed
        end_process "$BACKGROUND_PID"
        wait_until 5 process_is_gone "$waiter"
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" "closed
got"
        wait_until 5 is_free_on_the_node posix "$file"
}

# bats test_tags=kernel,kernel_too
@test "a lock that a thread waited for stays its process's, also where others open and close the file after the first descriptor is closed" {
        local file
        remap_bed ext4
        file=$BATS_TEST_TMPDIR/ext4/file
        : >"$file"
        chown --reference="$BATS_TEST_TMPDIR/ext4" "$file"
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd-start "$file"
        "${ENTER[@]}" /usr/bin/python3 -c 'import fcntl, os, threading, time
a, b = os.open("/ext4/file", os.O_RDWR), os.open("/ext4/file", os.O_RDWR)
fcntl.lockf(a, fcntl.LOCK_EX, 1, 1 << 40)
def wait():
        fcntl.lockf(b, fcntl.LOCK_EX, 1, 0)
        print("got", flush=True)
threading.Thread(target=wait).start()
time.sleep(0.5) # most often it waits by then
os.close(a)
print("closed", flush=True)
time.sleep(1000000)' 3>&- >"$BATS_TEST_TMPDIR/waiter" &
        bed_pids+=("$!")
        wait_until 10 grep -q closed "$BATS_TEST_TMPDIR/waiter"
        end_process "$BACKGROUND_PID"
        wait_until 10 grep -q got "$BATS_TEST_TMPDIR/waiter"
        in_container cat /ext4/file /ext4/file /ext4/file
        is "$("$FLEXGRAFT_TOOLS/fs-calls" try posix "$file")" held
}

# bats test_tags=kernel,kernel_too
@test "who has waited longest for a lock gets it first" {
        local order='' tries=0
        remap_bed ext4
        touch "$BATS_TEST_TMPDIR/ext4/file"
        chown --reference="$BATS_TEST_TMPDIR/ext4" "$BATS_TEST_TMPDIR/ext4/file"
        # a request may be late on its way to the daemon, on a busy machine: once in order is enough
        while [[ $order != 123 ]] && ((tries++ < 5)); do
                order=$(in_container python3 -c 'import fcntl, os, time
fd = os.open("/ext4/file", os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX)
for name in b"123":
        pid = os.fork()
        if pid == 0:
                own = os.open("/ext4/file", os.O_RDWR)
                fcntl.lockf(own, fcntl.LOCK_EX)
                os.write(1, bytes([name]))
                os._exit(0)
        while not open(f"/proc/{pid}/syscall").read().startswith("72 "): # fcntl
                time.sleep(0.01)
        time.sleep(0.2)
fcntl.lockf(fd, fcntl.LOCK_UN)
for _ in range(3):
        os.wait()')
        done
        is "$order" 123
}

# bats test_tags=kernel,kernel_too
@test "a POSIX lock ends with its process, though another that it started has the file open for reading yet" {
        remap_bed ext4
        touch "$BATS_TEST_TMPDIR/ext4/file"
        in_container python3 -c 'import fcntl, os, signal
fd = os.open("/ext4/file", os.O_RDONLY)
fcntl.lockf(fd, fcntl.LOCK_SH)
os.fork() or signal.pause()' >"$BATS_TEST_TMPDIR/said"
        is "$(in_container pgrep -cx python3)" 1
        is_free posix /ext4/file
        is_free_on_the_node posix "$BATS_TEST_TMPDIR/ext4/file"
}
