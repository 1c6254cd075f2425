#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The id translator over local filesystems: a container uses a directory as if it were its own, whatever it does to it.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        remap_teardown
}

# only_remap: for what a mount by the kernel alone has not.
only_remap() {
        [[ $IDS == remap ]] || skip "it is about the translator"
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
@test "the reply and the list say that the ids are remapped, and by whom" {
        only_remap
        remap_bed ext4
        [[ $(mount_line /ext4) == *' - fuse.flexgraft '* ]] || is "$(mount_line /ext4)" "a mount of type fuse.flexgraft"
        assert_attributes /ext4 rw nosuid nodev
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].idMapping' remap
        assert_field '.mounts[0].translator.running' true
        [[ " ${remap_pids[*]} " == *" $(jq .mounts[0].translator.pid <<<"$json") "* ]]
        is "$(translators remap-keeper | wc -l)" 1 "keepers"
        is "$(translators remap-daemon | wc -l)" 1 "daemons"
}

# bats test_tags=kernel
@test "what belongs to none of the container's ids is nobody's, and not for its root" {
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

# bats test_tags=kernel
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
        remember_translators
        assert_field .mount.idMapping "$IDS"
        is "$(in_container cat /data/file)" "from the device"
        in_container sh -c 'echo text >/data/made && chown 7:8 /data/made'
        helper mount-remove "$(remove_request /data)"
        assert_success
        translators_end
        # Nothing holds the superblock any more.
        mkdir "$BATS_TEST_TMPDIR/look"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/look"
        is "$(stat -c %u:%g "$BATS_TEST_TMPDIR/look/made")" 7:8
        umount "$BATS_TEST_TMPDIR/look"
        release_device "$DEVICE"
}

# bats test_tags=kernel
@test "a file as the source is used as a file, or refused with nothing left" {
        echo text >"$SOURCE/file"
        start_container plain
        container_snapshot
        node_snapshot
        SOURCE=$SOURCE/file
        helper mount-bind "$(bind_request /file "\"ids\": \"$IDS\"")"
        remember_translators
        if [[ $status != 0 ]]; then
                assert_failure
                assert_container_unchanged
                assert_node_unchanged
                is "$(translators)" '' "processes"
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

@test "fallocate does what the filesystem below does, or says EOPNOTSUPP" {
        remap_bed
        check fallocate
}

@test "copy_file_range, sendfile and splice copy" {
        remap_bed
        check copy
}

@test "data and holes are found" {
        remap_bed
        check seek
}

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

# bats test_tags=kernel
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

@test "O_TMPFILE works or is refused cleanly" {
        remap_bed
        check tmpfile
}

# bats test_tags=kernel
@test "statfs is that of the filesystem below" {
        local type
        remap_bed
        check statfs
        for type in ext4 tmpfs; do
                is "$(in_container stat -f -c '%b %S %c %l' "/$type")" "$(stat -f -c '%b %S %c %l' "$BATS_TEST_TMPDIR/$type")"
        done
}

# bats test_tags=kernel
@test "times are set to the nanosecond, and by those who may" {
        local type
        remap_bed
        check times
        for type in ext4 tmpfs; do
                touch -d '2001-02-03 04:05:06.123456789' "$BATS_TEST_TMPDIR/$type/old"
                is "$(in_container /usr/bin/stat -c %.9Y "/$type/old")" "$(stat -c %.9Y "$BATS_TEST_TMPDIR/$type/old")"
        done
}

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
                echo 2 >/proc/sys/vm/drop_caches
                is "$(in_container stat -c '%n %i %h' "/$type/dir" "/$type/dir/"{1,2,3})" "$before"
        done
}

@test "who may what: modes, owners, groups, sticky directories" {
        remap_bed
        check rights
}

@test "setgid directories, and set-id bits that go when somebody writes" {
        remap_bed
        check setid
}

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

# bats test_tags=kernel
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
@test "what is made in a directory inherits its default ACL" {
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

# ---- locks

LOCKS=(posix ofd flock)

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

is_free() {
        [[ $(in_container /bin/fs-calls try "$1" "$2") == free ]]
}

is_free_on_the_node() {
        [[ $("$FLEXGRAFT_TOOLS/fs-calls" try "$1" "$2") == free ]]
}

# bats test_tags=kernel
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

# bats test_tags=kernel
@test "who waits for a lock gets it when it is free, can be killed, and holds up nobody" {
        local kind file waiter killed
        remap_bed ext4
        for kind in "${LOCKS[@]}"; do
                file=$BATS_TEST_TMPDIR/ext4/$kind
                background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock "$kind" "$file"
                "${ENTER[@]}" /bin/fs-calls wait "$kind" "/ext4/$kind" 3>&- >"$BATS_TEST_TMPDIR/waiter" &
                waiter=$!
                "${ENTER[@]}" /bin/fs-calls wait "$kind" "/ext4/$kind" 3>&- >"$BATS_TEST_TMPDIR/killed" &
                killed=$!
                sleep 0.3
                in_container touch /ext4/meanwhile
                is "$(cat "$BATS_TEST_TMPDIR"/{waiter,killed})" '' "$kind: what those say that wait"
                kill -KILL "$killed"
                wait_until 5 process_is_gone "$killed"
                end_process "$BACKGROUND_PID"
                wait_until 5 process_is_gone "$waiter"
                wait "$waiter"
                is "$(cat "$BATS_TEST_TMPDIR/waiter")" got "$kind"
                wait_until 5 is_free_on_the_node "$kind" "$file"
        done
}

# ---- rights on the node

# bats test_tags=kernel
@test "read-only is enforced on the node: a remount by the container's root changes nothing" {
        local type dir before command
        remap_container
        for type in ext4 tmpfs; do
                make_source "$type"
                dir=$BATS_TEST_TMPDIR/$type
                mkdir "$dir/dir" && echo text >"$dir/file" && touch "$dir/dir/in" && mkfifo "$dir/fifo"
                before=$(cd "$dir" && find . -printf '%p %m %u %n %s %T@ %C@\n' | sort)
                remap_mount "$dir" "/$type" '"readOnly": true'
                assert_attributes "/$type" ro
                in_container mount -o remount,bind,rw "/$type" || :
                in_container mount -o remount,rw "/$type" || :
                for command in "touch new" "touch file" "mkdir new" "rm file" "rmdir dir" "mv file new" "ln file new" "ln -s x new" "chmod 0 file" \
                        "chown 5 file" "mknod new p" "sh -c 'echo >file'" "sh -c 'echo >>file'" "/usr/bin/truncate -s 0 file" "mv -f file dir/in" \
                        "setfacl -m u:5:r file" "setfattr -n user.a -v 1 file"; do
                        run in_container sh -c "cd /$type && $command"
                        [[ $status != 0 ]] || { echo "$command succeeds over $type"; return 1; }
                done
                is "$(in_container cat "/$type/file")" text
                in_container sh -c "cd /$type && echo hello >fifo & cat /$type/fifo" || :
                is "$(cd "$dir" && find . ! -name fifo -printf '%p %m %u %n %s %T@ %C@\n' | sort)" "$(grep -v ./fifo <<<"$before")" "what is on the node"
        done
}

# bats test_tags=kernel
@test "a process with 30 groups may open what one of them may, and nobody else" {
        local type dir groups
        remap_bed
        groups=$(seq -s, 2000 2029)
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                echo text >"$dir/file" && chown 0:2029 "$dir/file" && chmod 0640 "$dir/file"
                mkdir -m 0770 "$dir/dir" && chown 0:2017 "$dir/dir"
                is "$(GROUPS_TOO=$groups as 1000 open "/$type/file" r)" ok
                is "$(GROUPS_TOO=$groups as 1000 open "/$type/file" w || :)" EACCES
                is "$(GROUPS_TOO=2000,2028 as 1000 open "/$type/file" r || :)" EACCES
                is "$(as 1000 open "/$type/file" r || :)" EACCES
                GROUPS_TOO=$groups as 1000 append "/$type/dir/made" x 1
                is "$(stat -c %u:%g "$dir/dir/made")" 1000:1000
                run ! as 1000 append "/$type/dir/refused" x 1
                [[ ! -e $dir/dir/refused ]]
        done
}

# bats test_tags=kernel
@test "symlinks and dots lead nowhere but into the container" {
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_container
        make_source ext4
        mkdir "$dir/shown" "$dir/shown/dir" "$dir/hidden"
        echo hidden >"$dir/hidden/file"
        ln -s ../hidden/file "$dir/shown/relative"
        ln -s "$dir/hidden/file" "$dir/shown/absolute"
        ln -s ../hidden "$dir/shown/parent"
        ln -s /etc/passwd "$dir/shown/passwd"
        ln -s .. "$dir/shown/dir/up"
        remap_mount "$dir/shown" /data
        run ! in_container cat /data/relative
        run ! in_container cat /data/absolute
        run ! in_container cat /data/parent/file
        run ! in_container cat /data/../hidden/file
        is "$(in_container cat /data/passwd)" "$(cat "$CONTAINER_ROOTFS/etc/passwd")"
        is "$(in_container stat -c %i /data/dir/up/.)" "$(stat -c %i "$dir/shown")"
        is "$(in_container stat -c %d:%i /data/..)" "$(in_container stat -c %d:%i /)"
        # A directory in which the container is goes elsewhere on the node.
        in_container sh -c 'cd /data/dir && echo ready && while [ ! -e /tmp/moved ]; do sleep 0.1; done
                cat ../hidden/file ../file ./up/hidden/file ./up/file 2>/dev/null; ls .. 2>/dev/null' >"$BATS_TEST_TMPDIR/out" &
        local pid=$!
        wait_until 5 grep -q ready "$BATS_TEST_TMPDIR/out"
        mv "$dir/shown/dir" "$dir/hidden/dir"
        sleep 1.2 # what the container's kernel knew by then
        in_container touch /tmp/moved
        wait "$pid" || :
        run ! grep hidden "$BATS_TEST_TMPDIR/out"
}

# bats test_tags=kernel
@test "a directory that takes turns with a symlink to the node's directories leads nowhere else" {
        local dir=$BATS_TEST_TMPDIR/ext4 counts
        remap_container
        make_source ext4
        mkdir -p "$dir/outside" "$dir/shown/p/a"
        echo outside >"$dir/outside/file"
        echo inside >"$dir/shown/p/a/file"
        ln -s "$dir/outside" "$dir/shown/p/b"
        remap_mount "$dir/shown" /data
        background_ready "$FLEXGRAFT_TOOLS/swap-loop" "$dir/shown/p" a b
        # shellcheck disable=SC2016
        counts=$(in_container sh -c 'end=$(($(/usr/bin/date +%s) + 3)) inside=0
                while [ $(/usr/bin/date +%s) -lt $end ]; do
                        for i in 1 2 3 4 5 6 7 8 9 10; do
                                read line </data/p/a/file || continue
                                [ "$line" = inside ] && inside=$((inside + 1)) || echo "$line"
                                echo more >/data/p/a/made; echo more >>/data/p/b/made
                        done
                done 2>/dev/null
                echo $inside')
        echo "read: $counts"
        [[ $counts =~ ^[0-9]+$ ]]
        is "$(ls "$dir/outside")" file
}

# bats test_tags=kernel
@test "what is mounted below the source on the node is not shown" {
        remap_container
        make_source ext4
        mkdir "$BATS_TEST_TMPDIR/ext4/dir"
        touch "$BATS_TEST_TMPDIR/ext4/dir/below"
        mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/ext4/dir"
        touch "$BATS_TEST_TMPDIR/ext4/dir/hidden"
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        is "$(in_container ls /data/dir)" below
        umount "$BATS_TEST_TMPDIR/ext4/dir"
}

# bats test_tags=kernel
@test "what changes on the node shows within seconds" {
        local type dir
        remap_bed
        for type in ext4 tmpfs; do
                dir=$BATS_TEST_TMPDIR/$type
                echo old >"$dir/file"
                is "$(in_container cat "/$type/file")" old
                in_container test ! -e "/$type/new"
                in_container ls "/$type" >"$BATS_TEST_TMPDIR/log"
                echo "new and longer" >"$dir/file"
                wait_until 2 in_container grep -q '^new and longer$' "/$type/file"
                echo "NEW AND LONGER" >"$dir/file" # nothing but the content
                wait_until 2 in_container grep -q '^NEW AND LONGER$' "/$type/file"
                touch "$dir/new"
                wait_until 2 in_container test -e "/$type/new"
                chmod 0741 "$dir/new"
                chown 5:6 "$dir/new"
                wait_until 2 in_container sh -c "[ \$(stat -c %a:%u:%g /$type/new) = 741:5:6 ]"
                mv "$dir/new" "$dir/moved"
                wait_until 2 in_container test ! -e "/$type/new"
                is "$(in_container ls "/$type" | xargs)" "file moved"
                rm "$dir/moved"
                wait_until 2 in_container test ! -e "/$type/moved"
                in_container sh -c "echo 'from inside' >/$type/file"
                is "$(cat "$dir/file")" "from inside" "at once, on the node"
                rm "$dir/file"
                mkdir "$dir/file"
                wait_until 2 in_container test -d "/$type/file"
        done
}

# ---- many

# bats test_tags=kernel
@test "after many files of four users nothing is left, and few descriptors" {
        only_remap
        local type uid pids=() pid daemon count=2500 daemons
        remap_bed
        kernel_can statmount || count=500
        for type in ext4 tmpfs; do
                chmod 0777 "$BATS_TEST_TMPDIR/$type"
                for uid in 0 1000 1001 1002; do
                        as "$uid" churn "/$type" "$count" &
                        pids+=($!)
                done
        done
        for pid in "${pids[@]}"; do wait "$pid"; done
        for type in ext4 tmpfs; do
                is "$(ls -A "$BATS_TEST_TMPDIR/$type")" '' "files on $type"
        done
        echo 2 >/proc/sys/vm/drop_caches
        daemons=$(translators remap-daemon)
        is "$(wc -w <<<"$daemons")" 2 "daemons"
        for daemon in $daemons; do
                wait_until 5 has_few_descriptors "$daemon" 40 || {
                        descriptors "$daemon"
                        find "/proc/$daemon/fd" -printf '%l\n' | head -60
                        return 1
                }
        done
}

# bats test_tags=kernel
@test "30,000 files are found by a translator that may have 20,000 open" {
        local count=30000 limit=20000
        kernel_can statmount || count=3000 limit=2000
        make_source ext4
        "$FLEXGRAFT_TOOLS/fs-calls" many "$BATS_TEST_TMPDIR/ext4" "$count"
        remap_container
        HELPER_PREFIX=(prlimit "--nofile=$limit:$limit")
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        HELPER_PREFIX=()
        is "$(in_container find /data | wc -l)" "$((count + 101))" "names"
        is "$(in_container find /data -type f -size 0 | wc -l)" "$count" "files"
        in_container sh -c "for i in 0 1 $((count / 2)) $((count - 1)); do echo text >/data/d\$((i % 100))/\$i && cat /data/d\$((i % 100))/\$i || exit 1; done"
        is "$(in_container find /data -type f -size 0 | wc -l)" "$((count - 4))" "empty files"
        in_container rm -r /data/d7
        is "$(in_container find /data | wc -l)" "$((count - count / 100 + 100))" "names"
        [[ $IDS == remap ]] || return 0
        the_translator remap-daemon
        (($(descriptors "$REPLY") < limit))
        echo 2 >/proc/sys/vm/drop_caches
        wait_until 10 has_few_descriptors "$REPLY" 40
}

# ---- killed processes

# bats test_tags=kernel
@test "nobody notices a daemon that is killed, 20 times, beneath writers, readers and find" {
        only_remap
        local pids=() pid i rounds=20 seconds=60
        remap_bed ext4
        in_container mkdir /ext4/a /ext4/b /ext4/tree
        "$FLEXGRAFT_TOOLS/fs-calls" many "$BATS_TEST_TMPDIR/ext4/tree" 1000
        in_container /bin/fs-calls worker /ext4/a "$seconds" >"$BATS_TEST_TMPDIR/worker.a" &
        pids+=($!)
        in_container /bin/fs-calls worker /ext4/b "$seconds" >"$BATS_TEST_TMPDIR/worker.b" &
        pids+=($!)
        in_container sh -c "end=\$((\$(/usr/bin/date +%s) + $seconds))
                while [ ! -e /ext4/stop ] && [ \$(/usr/bin/date +%s) -lt \$end ]; do
                        n=\$(find /ext4/tree -type f | wc -l) && [ \$n = 1000 ] || { echo \$n; exit 1; }
                done" &
        pids+=($!)
        talk /bin/fs-calls hold /ext4/tree/d0/0
        for ((i = 0; i < rounds; i++)); do
                kill_daemon
                tell "+$((i % 10))"
                answer "$(printf %s 01234567890123456789 | head -c "$((i + 1))")"
                sleep "0.$((RANDOM % 5))"
        done
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/worker.?; return 1; }
        done
        cat "$BATS_TEST_TMPDIR"/worker.?
        is "$(cat "$BATS_TEST_TMPDIR/ext4/tree/d0/0")" 01234567890123456789
        is "$(find "$BATS_TEST_TMPDIR/ext4/a" "$BATS_TEST_TMPDIR/ext4/b" -type f | wc -l)" 2 "files that the workers left"
        is "$(translators | wc -l)" 2 "processes"
}

# bats test_tags=kernel
@test "open files, also unlinked ones, mappings and locks go on when the daemon is killed" {
        only_remap
        local kind hold_in hold_out
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        coproc MAPPED { exec "${ENTER[@]}" /bin/fs-calls mapped /ext4/mapped 4000000 3>&-; }
        bed_pids+=("$MAPPED_PID")
        local mapped_in=${MAPPED[1]} mapped_out=${MAPPED[0]} line
        read -r -t 10 line <&"$mapped_out" && [[ $line == ready ]]
        for kind in "${LOCKS[@]}"; do
                background_ready "${ENTER[@]}" /bin/fs-calls lock "$kind" "/ext4/lock.$kind"
        done
        talk /bin/fs-calls hold /ext4/file
        hold_in=$TALK_IN hold_out=$TALK_OUT
        in_container rm /ext4/file
        kill_daemon
        echo "+ more" >&"$hold_in"
        read -r -t 10 line <&"$hold_out"
        is "$line" "text more"
        kill_daemon
        echo "+ and" >&"$hold_in"
        read -r -t 10 line <&"$hold_out"
        is "$line" "text more and"
        for kind in "${LOCKS[@]}"; do
                is "$("$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$BATS_TEST_TMPDIR/ext4/lock.$kind")" held "$kind, on the node"
                is "$(in_container /bin/fs-calls try "$kind" "/ext4/lock.$kind")" held "$kind, in the container"
        done
        exec {mapped_in}>&-
        eval "exec ${MAPPED[1]}>&-" 2>/dev/null || :
        read -r -t 10 line <&"$mapped_out"
        is "$line" right "the mapping"
}

# bats test_tags=kernel
@test "who waits for a lock goes on waiting when the daemon is killed" {
        only_remap
        local waiter
        remap_bed ext4
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls wait posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiter" &
        waiter=$!
        sleep 0.5
        kill_daemon
        in_container touch /ext4/other
        sleep 0.5
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" '' "what it says that waits"
        end_process "$BACKGROUND_PID"
        wait_until 10 process_is_gone "$waiter"
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" got
}

# bats test_tags=kernel
@test "a keeper that is killed is replaced, and after it a daemon, again and again" {
        only_remap
        local pid i
        remap_bed ext4
        in_container mkdir /ext4/a
        in_container /bin/fs-calls worker /ext4/a 60 >"$BATS_TEST_TMPDIR/worker" &
        pid=$!
        for ((i = 0; i < 5; i++)); do
                kill_keeper
                kill_daemon
                in_container touch "/ext4/$i"
        done
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].translator.running' true
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        wait "$pid" || { cat "$BATS_TEST_TMPDIR/worker"; return 1; }
        is "$(translators | wc -l)" 2 "processes"
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        translators_end
}

# bats test_tags=kernel
@test "when both are killed the container gets ENOTCONN, and mount-list and volume-reconcile say so" {
        only_remap
        needs volume-reconcile
        remap_bed ext4
        # shellcheck disable=SC2046
        kill -STOP $(translators)
        # shellcheck disable=SC2046
        kill -KILL $(translators)
        wait_until 5 no_translators
        is "$(in_container /bin/fs-calls open /ext4/file r || :)" ENOTCONN
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].translator.running' false
        helper volume-reconcile '{}'
        assert_success
        [[ $output == *dead* ]] || is "$output" "that it is dead"
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        assert_mounts_at /ext4 0
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems | length' 0
}

# bats test_tags=kernel
@test "when both are killed mount-remove takes the mount away" {
        only_remap
        remap_bed ext4
        # shellcheck disable=SC2046
        kill -STOP $(translators)
        # shellcheck disable=SC2046
        kill -KILL $(translators)
        wait_until 5 no_translators
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        assert_mounts_at /ext4 0
        assert_no_records
}

# bats test_tags=kernel
@test "when both are killed the same request mounts again" {
        only_remap
        remap_bed ext4
        # shellcheck disable=SC2046
        kill -STOP $(translators)
        # shellcheck disable=SC2046
        kill -KILL $(translators)
        wait_until 5 no_translators
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        assert_mounts_at /ext4 1
        in_container touch /ext4/works
}

# ---- the end

# bats test_tags=kernel
@test "the same request twice is one mount and one translator" {
        only_remap
        remap_bed ext4
        local before
        before=$(translators)
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        assert_field .mount.alreadyMounted true
        assert_mounts_at /ext4 1
        is "$(translators)" "$before" "processes"
}

# bats test_tags=kernel
@test "when the container ends, so do keeper and daemon" {
        only_remap
        remap_bed
        is "${#remap_pids[@]}" 4 "processes"
        stop_container
        translators_end
        umount "$BATS_TEST_TMPDIR/ext4" # nothing holds it
}

# bats test_tags=kernel
@test "when the container ends in the middle of work, so do keeper and daemon" {
        only_remap
        remap_bed ext4
        in_container mkdir /ext4/a
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        in_container /bin/fs-calls worker /ext4/a 60 &
        in_container /bin/fs-calls waiters 20 posix /ext4/file >"$BATS_TEST_TMPDIR/waiters" &
        wait_until 10 grep -q ready "$BATS_TEST_TMPDIR/waiters"
        stop_container
        translators_end
        end_process "$BACKGROUND_PID"
        umount "$BATS_TEST_TMPDIR/ext4"
}

# bats test_tags=kernel
@test "when the mount is removed, keeper and daemon end" {
        only_remap
        remap_bed ext4
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        assert_mounts_at /ext4 0
        translators_end
        assert_no_records
        umount "$BATS_TEST_TMPDIR/ext4"
}

# bats test_tags=kernel
@test "when the container's root unmounts it, keeper and daemon end" {
        only_remap
        remap_bed ext4
        in_container umount /ext4
        assert_mounts_at /ext4 0
        translators_end
        umount "$BATS_TEST_TMPDIR/ext4"
        helper mount-remove "$(remove_request /ext4)"
        assert_no_records
}

# bats test_tags=kernel
@test "a mount detached by the container's root serves the files that are open, and then ends" {
        only_remap
        local line
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        talk /bin/fs-calls hold /ext4/file
        in_container umount -l /ext4
        tell "+ more"
        answer "text more"
        is "$(translators | wc -l)" 2 "processes"
        end_process "$TALK_PID"
        translators_end
}

# bats test_tags=kernel
@test "a request that fails leaves no keeper and no daemon" {
        only_remap
        remap_container
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /none/data '"ids": "remap", "mkdir": false')"
        assert_failure ENOENT
        helper mount-bind "$(bind_request /tmp '"ids": "remap"')"
        assert_failure EBUSY
        wait_until 5 no_translators
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "nothing that the caller gave the helper stays open" {
        only_remap
        remap_container
        make_source ext4
        SOURCE=$BATS_TEST_TMPDIR/ext4
        # The pipe is at its end when the helper is, though the translator lives; descriptor 9 likewise.
        timeout 20 bash -c '"$@" 9>&1 2>&1 </dev/null 3>&- | cat >"$0"' "$BATS_TEST_TMPDIR/out" \
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"ids": "remap"')"
        [[ $(<"$BATS_TEST_TMPDIR/out") == *Success* ]]
        remember_translators
        is "${#remap_pids[@]}" 2 "processes"
        in_container touch /data/file
}

# ---- containers that mean harm

# bats test_tags=kernel
@test "the container's root can do nothing to keeper and daemon, even where it sees them" {
        only_remap
        local pid
        remap_container plain-hostpid
        make_source ext4
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        is "${#remap_pids[@]}" 2 "processes"
        for pid in "${remap_pids[@]}"; do
                is "$(in_container /bin/fs-calls attack "$pid")" "nothing is possible"
                process_is_gone "$pid" && return 1
                grep -q '^State:.*[SR] ' "/proc/$pid/status"
        done
        in_container touch /ext4/file
}

# capability_names HEX: those that are dangerous among these capabilities.
capability_names() {
        local -A dangerous=([5]=kill [12]=net_admin [13]=net_raw [16]=sys_module [17]=sys_rawio [18]=sys_chroot [19]=sys_ptrace [22]=sys_boot
                [25]=sys_time [27]=mknod [30]=audit_control [32]=mac_override [33]=mac_admin [34]=syslog [38]=perfmon [39]=bpf)
        local number
        for number in "${!dangerous[@]}"; do
                (((16#$1 >> number) & 1)) && echo "${dangerous[$number]}"
        done
        return 0
}

# bats test_tags=kernel
@test "keeper and daemon hold their capabilities, a filter, and no more" {
        only_remap
        local pid word status_file
        remap_bed ext4
        in_container sh -c 'echo text >/ext4/file; cat /ext4/file; ls -l /ext4' >"$BATS_TEST_TMPDIR/log"
        for pid in "${remap_pids[@]}"; do
                status_file=$(cat "/proc/$pid"/task/*/status)
                grep -E '^(Name|Cap|Seccomp|NoNew)' <<<"$status_file" | sort | uniq -c
                is "$(grep ^Seccomp: <<<"$status_file" | sort -u | cut -f2)" 2 "Seccomp of all threads"
                is "$(grep ^NoNewPrivs: <<<"$status_file" | sort -u | cut -f2)" 1 "NoNewPrivs of all threads"
                for word in CapEff CapPrm CapInh CapAmb; do
                        while read -r _ value; do
                                is "$(capability_names "$value")" '' "$word $value: capabilities that nobody needs here"
                        done < <(grep "^$word:" <<<"$status_file")
                done
                is "$(readlink "/proc/$pid/ns/user")" "$(readlink /proc/self/ns/user)"
                is "$(readlink "/proc/$pid/ns/mnt" | wc -l)" 1
        done
}

# bats test_tags=kernel
@test "keeper and daemon have no descriptor of the node besides what they need" {
        only_remap
        local pid link fd
        remap_bed ext4
        in_container sh -c 'echo text >/ext4/file; cat /ext4/file; ls -l /ext4' >"$BATS_TEST_TMPDIR/log"
        for pid in "${remap_pids[@]}"; do
                for fd in "/proc/$pid/fd"/*; do
                        link=$(readlink "$fd") || continue
                        case $link in
                        /dev/null | /dev/fuse | anon_inode:* | pipe:* | socket:* | /memfd:* | "/proc/$CONTAINER_PID"*) ;;
                        "$STATE_DIR"/*) ;; # its lock
                        / | /file) [[ $(stat -Lc %d "$fd") == "$(stat -c %d "$BATS_TEST_TMPDIR/ext4")" ]] ;;
                        *)
                                echo "$(cat "/proc/$pid/comm") has $fd: $link"
                                return 1
                                ;;
                        esac
                done
        done
}

# bats test_tags=kernel
@test "2,000 processes that wait for a lock harm nobody" {
        only_remap
        local count=2000 daemon
        remap_bed ext4
        kernel_can statmount || count=1200
        touch "$BATS_TEST_TMPDIR/ext4/file"
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls waiters "$count" posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiters" 2>&1 &
        local waiters=$!
        wait_until 30 grep -q ready "$BATS_TEST_TMPDIR/waiters"
        timeout 20 bash -c 'true' # let them come
        sleep 1
        the_translator remap-daemon
        daemon=$REPLY
        echo "threads: $(find "/proc/$daemon/task" -mindepth 1 -maxdepth 1 | wc -l), descriptors: $(descriptors "$daemon")"
        grep -E '^Vm(RSS|HWM)' "/proc/$daemon/status"
        local start=$SECONDS
        in_container /bin/fs-calls append /ext4/other x 100
        in_container ls /ext4
        ((SECONDS - start <= 5))
        kill -KILL "$waiters"
        wait_until 20 process_is_gone "$waiters"
        end_process "$BACKGROUND_PID"
        wait_until 20 is_free_on_the_node ofd "$BATS_TEST_TMPDIR/ext4/file"
        wait_until 20 is_free posix /ext4/file
        in_container /bin/fs-calls append /ext4/other x 100
        the_translator remap-daemon
        is "$REPLY" "$daemon" "the daemon, which never died"
        wait_until 10 has_few_descriptors "$daemon" 60
        wait "$waiters" 2>/dev/null || :
}

# bats test_tags=kernel
@test "300 processes that work at once all get what is right" {
        remap_bed ext4
        local count=300
        kernel_can statmount || count=100
        in_container mkdir /ext4/dir
        is "$(in_container /bin/fs-calls parallel "$count" 2 /ext4/dir)" "0 of $count failed"
        is "$(ls -A "$BATS_TEST_TMPDIR/ext4/dir")" ''
}

# bats test_tags=kernel
@test "a container that opens more files than the daemon may is refused, and the others go on" {
        only_remap
        local i limit=3000
        remap_container
        make_source ext4
        echo text >"$BATS_TEST_TMPDIR/ext4/file"
        echo other >"$BATS_TEST_TMPDIR/ext4/other"
        HELPER_PREFIX=(prlimit "--nofile=$limit:$limit")
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        HELPER_PREFIX=()
        for i in 1 2 3 4; do
                "${ENTER[@]}" /bin/fs-calls open-many 1000 /ext4/file 3>&- >"$BATS_TEST_TMPDIR/open.$i" &
                bed_pids+=($!)
        done
        for i in 1 2 3 4; do
                wait_until 20 grep -q ready "$BATS_TEST_TMPDIR/open.$i"
        done
        cat "$BATS_TEST_TMPDIR"/open.?
        in_container stat -c %s /ext4/other
        in_container mkdir /ext4/dir
        the_translator remap-daemon
        for i in "${bed_pids[@]}"; do end_process "$i"; done
        wait_until 10 in_container cat /ext4/other
        wait_until 10 has_few_descriptors "$REPLY" 60
}
