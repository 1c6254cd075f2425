#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap: a process that opens or locks a file sees what others wrote before they closed or unlocked it, also behind the daemon's back.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
        remap_container
        install -m 0755 "$FLEXGRAFT_TOOLS/file-session" "$CONTAINER_ROOTFS/bin/"
        make_source ext4
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        FILE=$BATS_TEST_TMPDIR/ext4/file
}

teardown() {
        remap_teardown
}

# does COMMAND RESULT: the session in the container.
does() {
        tell "$1"
        answer "${2-ok}"
}

# bats test_tags=kernel
@test "what was written and closed is there whole when the file is opened, longer or not" {
        local i
        talk /bin/file-session
        for i in 1 2 3 4 5 6; do
                echo -n first >"$FILE"
                does "open r /data/file"
                does size 5
                does read first
                does close
                echo -n second-longer >"$FILE"
                does "open r /data/file"
                does size 13
                does read second-longer
                does close
                echo -n SECOND-LONGER >"$FILE"
                does "open r /data/file"
                does read SECOND-LONGER
                does close
        done
}

# has_forgotten DAEMON NAME: it holds no file of that name that is removed.
has_forgotten() {
        [[ -z $(find "/proc/$1/fd" -lname "*/$2 (deleted)") ]]
}

# bats test_tags=kernel
@test "a file that others remove takes no space because the container's kernel remembers it, but while somebody uses it" {
        local name daemon
        mkdir -p "$BATS_TEST_TMPDIR/ext4/dir/below"
        for name in alone dir/below/alone used; do echo text >"$BATS_TEST_TMPDIR/ext4/$name"; done
        in_container sh -c 'cat /data/alone /data/dir/below/alone; touch /pin; mount --bind /data/used /pin'
        the_remap_process remap-daemon
        daemon=$REPLY
        rm -r "$BATS_TEST_TMPDIR"/ext4/{alone,dir,used}
        wait_until 60 has_forgotten "$daemon" alone
        is "$(in_container cat /pin)" text
        in_container umount /pin
        wait_until 60 has_forgotten "$daemon" used
}

# bats test_tags=kernel
@test "a file that is opened by its link in /proc, without a lookup of its name, has its present size" {
        local i
        talk /bin/sh -c 'echo ready; while read -r line; do eval "$line"; done'
        for i in 1 2 3; do
                echo -n first >"$FILE"
                does "exec 3</data/file; stat -c %s /data/file" 5
                echo -n second-longer >"$FILE"
                does "stat -c %s /data/file" 13
                does "exec 4</proc/self/fd/3; stat -L -c %s /proc/self/fd/4; exec 4<&-" 13
                echo -n longer-than-second >"$FILE"
                does "exec 4</proc/self/fd/3; stat -L -c %s /proc/self/fd/4; exec 3<&- 4<&-" 18
        done
}

looks() {
        does "open r /data/file"
        does size 5
        does close
}

# looks_twenty_times: the session opens the file, asks for its size and closes it, once and then twenty times; ANSWERS: what the daemon
# wrote during these, answers and notices.
looks_twenty_times() {
        local before after i
        looks
        the_remap_process remap-daemon
        before=$(awk '$1 == "syscw:" { print $2 }' "/proc/$REPLY/io")
        for i in {1..20}; do
                looks
        done
        after=$(awk '$1 == "syscw:" { print $2 }' "/proc/$REPLY/io")
        ANSWERS=$((after - before))
}

# bats test_tags=kernel
@test "an unchanged file is opened, looked at and closed again in four requests" {
        only_remap
        talk /bin/file-session
        echo -n first >"$FILE"
        looks_twenty_times
        ((ANSWERS <= 90)) || { echo "$ANSWERS answers and notices"; return 1; }
}

# bats test_tags=kernel
@test "a new file is not looked at when it was written and is closed, and nothing that the kernel knows of it is dropped" {
        only_remap
        talk /bin/sh -c 'echo ready; while read -r line; do eval "$line"; echo ok; done'
        does "exec 3>/data/new"
        trace_daemon -e trace=fcntl,fstat,newfstatat,writev,fgetxattr,read,write
        does "echo text >&3"
        does "exec 3>&-"
        wait_until 10 has_answered_a_release "$TRACE"
        trace_ends
        [[ ! $(<"$TRACE") =~ (fcntl|fstat|newfstatat|writev)\( ]] || { cat "$TRACE"; return 1; }
}

# bats test_tags=kernel,kernel_too
@test "while a process of the container has a file open for writing, each open of it asks for its size anew" {
        only_remap
        echo -n first >"$FILE"
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/sh -c 'exec 3>>/data/file; echo ready; exec sleep 1000000'
        talk /bin/file-session
        looks_twenty_times
        # five of each; the answer to the last close may come later
        ((ANSWERS >= 99)) || { echo "$ANSWERS answers and notices"; return 1; }
}

# bats test_tags=kernel,kernel_too
@test "a file that was just looked up is opened by its name, not by a link in /proc that has to be followed" {
        only_remap
        echo -n first >"$FILE"
        talk /bin/file-session
        trace_daemon
        does "open r /data/file"
        does read first
        does close
        trace_ends
        [[ $(<"$TRACE") =~ openat\([0-9]+,\ \"file\",.*O_NOFOLLOW ]] || { cat "$TRACE"; return 1; }
        [[ ! $(<"$TRACE") =~ openat\([0-9]+,\ \"[0-9]+\" ]] || { cat "$TRACE"; return 1; }
}

@test "a file that the kernel reads itself is registered when it is first opened, and again when another user opens it" {
        only_remap
        echo -n first >"$FILE"
        chmod a+r "$FILE"
        talk /bin/file-session
        trace_daemon -e trace=ioctl
        looks
        [[ $(<"$TRACE") =~ ioctl ]] || skip "the kernel has no FUSE passthrough (Linux 6.9)"
        trace_ends
        trace_daemon -e trace=ioctl
        looks
        looks
        [[ ! $(<"$TRACE") =~ ioctl ]] || { cat "$TRACE"; return 1; }
        run -0 nsenter --target "$CONTAINER_PID" --mount --pid --user --setuid 1000 --setgid 1000 -- /bin/cat /data/file
        is "$output" first
        trace_ends
        is "$(grep -c 'ioctl(' "$TRACE")" 2 # the old one ended, and the new one begun
}

# bats test_tags=kernel
@test "a file whose name becomes another file's while it is opened is opened itself, with its size" {
        only_remap
        echo -n first >"$FILE"
        echo -n second-longer >"$FILE.new"
        talk /bin/file-session
        looks
        looks # the second time it is known, and from then on looked up without being opened
        trace_daemon -e inject=openat:delay_enter=500000
        tell "open r /data/file"
        wait_until 10 grep -q openat "$TRACE"
        mv "$FILE.new" "$FILE"
        answer ok
        does size 5
        does read first
        does close
        does "open r /data/file"
        does size 13
        does read second-longer
        trace_ends
}

# bats test_tags=kernel
@test "a process that gets a lock sees the size and the content that the file has by then" {
        local kind i
        talk /bin/file-session
        for kind in posix ofd flock; do
                for i in 1 2 3 4; do
                        echo -n "first" >"$FILE"
                        does "open w /data/file"
                        does read first
                        does size 5
                        echo -n "second-longer" >"$FILE"
                        does "lock $kind"
                        does size 13
                        does read second-longer
                        does "unlock $kind"
                        echo -n "other" >"$FILE"
                        does "lock $kind"
                        does size 5
                        does read other
                        does "unlock $kind"
                        does close
                done
        done
}

# bats test_tags=kernel
@test "a process that waits for a lock sees what its last holder wrote" {
        talk /bin/file-session
        echo -n first >"$FILE"
        does "open w /data/file"
        does read first
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock posix "$FILE"
        tell "lock posix"
        sleep 0.3
        echo -n second-longer >"$FILE"
        end_process "$BACKGROUND_PID"
        answer ok
        does size 13
        does read second-longer
}

# bats test_tags=kernel,kernel_too
@test "a mapping shows under a lock what others wrote, and others see after the unlock what was written to it" {
        talk /bin/file-session
        echo first >"$FILE"
        does "open w /data/file"
        does map
        tell peek
        answer first
        answer ''
        echo other | dd of="$FILE" conv=notrunc status=none
        does "lock posix"
        tell peek
        answer other
        answer ''
        does "poke third"
        does "unlock posix"
        is "$(<"$FILE")" third "on the node"
}

# bats test_tags=kernel,kernel_too
@test "two containers and the node count in one file under locks, and no step is lost" {
        local kind first=$CONTAINER_PID jobs job other
        remap_container plain 200000
        install -m 0755 "$FLEXGRAFT_TOOLS/file-session" "$CONTAINER_ROOTFS/bin/"
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        other=("${ENTER[@]}")
        for kind in posix ofd flock; do
                echo -n 00000000 >"$FILE"
                : >"$FILE.lines"
                jobs=()
                "$FLEXGRAFT_TOOLS/file-session" count "$kind" "$FILE" 200 3>&- & jobs+=($!)
                "${other[@]}" /bin/file-session count "$kind" /data/file 200 3>&- & jobs+=($!)
                "${ENTER[@]/$CONTAINER_PID/$first}" /bin/file-session count "$kind" /data/file 200 3>&- & jobs+=($!)
                "${other[@]}" /bin/file-session line "$kind" /data/file.lines 100 one 3>&- & jobs+=($!)
                "${ENTER[@]/$CONTAINER_PID/$first}" /bin/file-session line "$kind" /data/file.lines 100 two 3>&- & jobs+=($!)
                for job in "${jobs[@]}"; do wait "$job"; done
                is "$(<"$FILE")" 00000600 "the number, with $kind"
                is "$(sort "$FILE.lines" | uniq -c | xargs)" "100 one 100 two" "the lines, with $kind"
        done
}

# bats test_tags=kernel,kernel_too
@test "two containers that write one SQLite database leave it intact" {
        local first
        [[ -x /usr/bin/python3 ]] || skip "python3 is missing"
        first=$CONTAINER_PID
        remap_container plain 200000
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        sqlite_storm "$first" "$CONTAINER_PID" /data/base.db
        is "$(sqlite_look "$BATS_TEST_TMPDIR/ext4/base.db")" ok
}
