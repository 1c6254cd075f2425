#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test bed itself: what the other tests rely on.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
}

teardown() {
        bed_teardown
}

check_container() {
        start_container "$1"
        is "$(in_container id -u)" 0
        is "$(in_container sh -c 'echo $PWD')" /
        in_container touch /made
        is "$(stat -c %u:%g "$CONTAINER_ROOTFS/made")" "$CONTAINER_BASE:$CONTAINER_BASE" "owner seen by the node"
        is "$(in_container stat -c %u /)" 0
        [[ -e /proc/$CONTAINER_PID/root/bin/busybox ]]
        local pid=$CONTAINER_PID
        stop_container
        process_is_gone "$pid"
}

@test "a plain container starts, is mapped, and stops" {
        check_container plain
}

@test "a plain container without a user namespace starts and stops" {
        check_container plain-nouserns
}

@test "a plain container in the node's pid namespace sees the node's processes" {
        check_container plain-hostpid
        start_container plain-hostpid
        in_container test -d "/proc/$BATS_ROOT_PID"
}

# bats test_tags=kernel
@test "a crun container starts, is mapped, and stops" {
        check_container crun
}

@test "a crun container without a user namespace starts and stops" {
        check_container crun-nouserns
}

# bats test_tags=kernel
@test "a runc container starts, is mapped, and stops" {
        check_container runc
}

@test "a runc container without a user namespace starts and stops" {
        check_container runc-nouserns
}

@test "crun and runc keep their states where the helpers look" {
        start_container crun
        [[ -e /run/crun/$CONTAINER_ID/status ]]
        is "$(jq .pid "/run/crun/$CONTAINER_ID/status")" "$CONTAINER_PID"
        start_container runc
        is "$(jq .init_process_pid "/run/runc/$CONTAINER_ID/state.json")" "$CONTAINER_PID"
}

@test "two containers at once have different maps" {
        start_container plain 100000
        local first=$CONTAINER_PID
        start_container plain 200000
        is "$(awk '{print $2}' "/proc/$CONTAINER_PID/uid_map")" 200000
        use_container "$first"
        is "$(awk '{print $2}' "/proc/$CONTAINER_PID/uid_map")" 100000
}

@test "mounts_at decodes names" {
        start_container plain
        in_container mkdir $'/tmp/a b\nc'
        in_container mount -t tmpfs x $'/tmp/a b\nc'
        assert_mounts_at $'/tmp/a b\nc' 1
        assert_mounts_at /tmp 1
        assert_mounts_at /nowhere 0
}

@test "devices of every kind are made and released" {
        local type
        for type in ext4 xfs btrfs erofs squashfs blank; do
                make_device "$type"
                [[ -b $DEVICE ]]
                is "$(blkid -p -s TYPE -o value "$DEVICE" || echo blank)" "$type"
        done
}

@test "a change of the node is noticed" {
        mkdir "$BATS_TEST_TMPDIR/m"
        mount -t tmpfs x "$BATS_TEST_TMPDIR/m"
        run assert_node_unchanged
        [[ $status != 0 ]]
        umount "$BATS_TEST_TMPDIR/m"
        assert_node_unchanged
}

@test "a private view of the node hides its run directory" {
        private_node_view /run /var/lib/docker
        in_node_view test ! -e /run/lock
        in_node_view test -d "$BATS_TEST_TMPDIR"
}

@test "at-syscall passes on output and exit status, and counts the same twice" {
        at_syscall sh -c 'echo out; exit 7'
        is "$status" 7
        is "$output" $'out\n'
        local total=$AT_TOTAL
        at_syscall sh -c 'echo out; exit 7'
        is "$AT_TOTAL" "$total"
        ((total > 5))
}

@test "at-syscall follows children" {
        at_syscall /bin/true
        local one=$AT_TOTAL
        at_syscall sh -c '/bin/true; /bin/true; /bin/true; :'
        ((AT_TOTAL > 3 * one))
}

@test "at-syscall kills before a call" {
        at_syscall --at write --kill /bin/echo text
        is "$status" 137
        is "$output" ""
        is "$AT_REACHED $AT_NAME" "1 write"
}

@test "at-syscall kills the children too" {
        at_syscall --at write:1 --kill sh -c "sleep 1000 & echo \$! >&2; echo text; wait"
        is "$status" 137
        at_syscall --at exit_group:1 --kill sh -c "sleep 1001 & (exit 3); wait"
        is "$status" 137
        run ! pgrep -f 'sleep 100[01]'
}

@test "at-syscall kills only the program" {
        at_syscall --at exit_group:1 --kill-main sh -c "(echo child; exit 3); echo never"
        is "$status" 137
        is "$output" $'child\n'
}

@test "at-syscall fails a call" {
        at_syscall --at mkdir --fail EROFS /bin/busybox mkdir "$BATS_TEST_TMPDIR/dir"
        is "$status" 1
        [[ $stderr == *"Read-only file system"* ]]
        [[ ! -e $BATS_TEST_TMPDIR/dir ]]
}

@test "at-syscall gives a call the result that it is told" {
        at_syscall --at geteuid --return 7 /bin/busybox id -u
        is "$status $AT_REACHED $output" $'0 1 7\n'
}

@test "at-syscall acts at the call whose arguments are a number and a text that it is told" {
        at_syscall --at openat --where 2=/nonesuch --fail EIO /bin/busybox cat /proc/self/comm
        is "$status $AT_REACHED" "0 0"
        at_syscall --at write --where 1=2 --count /bin/busybox cat /proc/self/comm
        is "$AT_REACHED" 0
        at_syscall --at write --where 1=0x1 --where 3=8 --fail EIO /bin/busybox cat /proc/self/comm
        is "$status $AT_REACHED" "1 1"
        at_syscall --at openat --where 2=/proc/self/comm --fail EIO /bin/busybox cat /dev/null /proc/self/comm /proc/self/comm
        is "$status $AT_REACHED $output" $'1 1 busybox\n'
        [[ $stderr == *"/proc/self/comm"*"Input/output error"* ]]
}

@test "at-syscall runs a command before a call" {
        at_syscall --at mkdir --run "mkdir '$BATS_TEST_TMPDIR/dir'; echo \$AT_PID \$AT_MAIN_PID \$AT_NAME" --run-output "$BATS_TEST_TMPDIR/run" \
                /bin/busybox mkdir "$BATS_TEST_TMPDIR/dir"
        is "$status" 1
        [[ $stderr == *"File exists"* ]]
        [[ $(<"$BATS_TEST_TMPDIR/run") =~ ^([0-9]+)\ ([0-9]+)\ mkdir$ ]]
        is "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
}

@test "at-syscall runs a command before every call" {
        at_syscall --each 'echo $AT_SYSCALL' --run-output "$BATS_TEST_TMPDIR/run" /bin/true
        is "$(tail -1 "$BATS_TEST_TMPDIR/run")" "$AT_TOTAL"
        is "$(wc -l <"$BATS_TEST_TMPDIR/run")" "$AT_TOTAL"
}

@test "at-syscall runs a command before each call of a name" {
        at_syscall --at write --each 'echo $AT_NAME' --run-output "$BATS_TEST_TMPDIR/run" sh -c 'echo one; echo two'
        is "$(<"$BATS_TEST_TMPDIR/run")" $'write\nwrite'
}

@test "at-syscall delivers signals and survives group-stops" {
        at_syscall sh -c 'trap "echo got" USR1; kill -USR1 $$; (kill -STOP $$; sleep 0.05; kill -CONT $$) & wait $!; echo end'
        is "$status" 0
        is "$output" $'got\nend\n'
}

@test "at-syscall fails, and says why, where the kernel does not tell of system calls" {
        # as before Linux 5.3, which has no PTRACE_GET_SYSCALL_INFO; the two calls before it begin the tracing
        run --separate-stderr strace -o /dev/null -e trace=ptrace -e inject=ptrace:error=EIO:when=3+ "$FLEXGRAFT_TOOLS/at-syscall" --count /bin/true 3>&-
        is "$status" 125
        # shellcheck disable=SC2154 # of run
        is "$stderr" "at-syscall: PTRACE_GET_SYSCALL_INFO: Input/output error"
}

blocked_in_read() {
        [[ $(cat "/proc/$1/syscall" 2>/dev/null) == "0 "* ]]
}

# each_syscall ARG...: at-each-syscall, of programs that reply anyhow; sets status and output.
each_syscall() {
        run "$FLEXGRAFT_TOOLS/at-each-syscall" --reply any "$@" 3>&-
}

@test "at-each-syscall tries every call, or every nth from one on" {
        local calls
        each_syscall --kill -- act /bin/true ';'
        is "$status" 0
        [[ $output =~ ^points\ tried\ ([0-9]+)\ of\ ([0-9]+)\ calls ]]
        calls=${BASH_REMATCH[2]}
        is "${BASH_REMATCH[1]}" "$calls"
        at_syscall /bin/true
        is "$calls" "$AT_TOTAL"
        each_syscall --kill --from 2 --step 5 -- act /bin/true ';' sh 'echo "$N $NAME $STATUS" >>'"$BATS_TEST_TMPDIR/rounds" ';'
        is "$status" 0
        # the first round is without an action, and so may be one at the end
        is "$(sed 1d "$BATS_TEST_TMPDIR/rounds" | awk '$2 != "-" { print $1 }' | paste -sd' ')" "$(seq -s' ' 2 5 "$calls")"
}

@test "at-each-syscall acts at the calls with these numbers, passes over those that are not there, and says which it found" {
        each_syscall --kill --points 2,5,100000 -- act /bin/true ';' sh 'echo "$NAME" >>'"$BATS_TEST_TMPDIR/rounds" ';'
        is "$status" 0
        [[ $output == "points tried 2 of "*": 2,5" ]]
        is "$(grep -c '^-$' "$BATS_TEST_TMPDIR/rounds")" 2 "rounds with nothing done"
        each_syscall --kill --points 100000 -- act /bin/true ';'
        is "$status" 1
        is "$output" "no point was tried"
}

@test "at-each-syscall acts at points that are named" {
        each_syscall --kill --at write:1,exit_group -- sh 'rm -f '"$BATS_TEST_TMPDIR/file" ';' act /bin/sh -c "echo 1 >'$BATS_TEST_TMPDIR/file'" ';' \
                sh "echo \$NAME \$(wc -c <'$BATS_TEST_TMPDIR/file') >>'$BATS_TEST_TMPDIR/rounds'" ';'
        is "$status" 0
        is "$(<"$BATS_TEST_TMPDIR/rounds")" $'- 2\nwrite 0\nexit_group 2'
}

@test "at-each-syscall fails at a named point that is not there, unless it is optional" {
        each_syscall --kill --at write:1,write:9,exit_group -- act /bin/busybox echo text ';'
        is "$status" 1
        [[ $output == *"at call write:9 of "*"the point was not there"* ]]
        each_syscall --kill --at write:1,write:9?,exit_group -- act /bin/busybox echo text ';'
        is "$status" 0
        [[ $output == "points tried 2 "* ]]
}

@test "at-each-syscall fails at a step that fails, and says at which call" {
        each_syscall --kill -- act /bin/true ';' sh 'echo why; [ "$N" != 7 ]' ';'
        is "$status" 1
        [[ $output == "at call 7 of "*": step 2, sh: exit status 1"*why* ]]
}

@test "at-each-syscall notices a file, a mount, a loop device and a process that are not as they were" {
        local dir=$BATS_TEST_TMPDIR/dir
        mkdir "$dir"
        each_syscall --kill --watch tree "$dir" -- sh "rm -f '$dir/file'" ';' act /bin/busybox touch "$dir/file" ';' same ';'
        is "$status" 1
        [[ $output == *"same: tree $dir: not as before"*"< $dir/file 100"* ]]
        each_syscall --kill --watch mounts self -- act /bin/true ';' sh "[ \$N != 3 ] || mount -t tmpfs tmpfs '$dir'" ';' same ';'
        umount "$dir"
        is "$status" 1
        [[ $output == *"at call 3 of "*"same: mounts self: not as before"*"> "*" $dir "*"tmpfs"* ]]
        each_syscall --kill -- act /bin/true ';' mounts self "$dir" 1 ';'
        is "$status" 1
        [[ $output == "with nothing done to it: step 2, mounts: 0 mounts at $dir, not 1"* ]]
        make_device blank
        each_syscall --kill -- act /bin/true ';' loops "$IMAGE" 0 ';'
        is "$status" 1
        [[ $output == *"1 loop devices over $IMAGE, not 0"* ]]
        each_syscall --kill -- act /bin/true ';' sh '[ $N != 3 ] || sleep 1000000 >/dev/null 2>&1 &' ';' same ';'
        is "$status" 1
        [[ $output == *"at call 3 of "*"same: processes are left:"* ]]
}

@test "at-each-syscall knows good replies from others" {
        local reply
        for reply in '{"status":"Success"}' '{"status":"Failure"}'; do
                run "$FLEXGRAFT_TOOLS/at-each-syscall" --count --at getpid -- act /bin/busybox echo "$reply" ';' 3>&-
                [[ $status == 1 && ($reply == *Success* && $output == *"the point was not there"* || $reply == *Failure* && $output == *"it failed with nothing done"*) ]]
        done
        for reply in text '{"status":"Success"' $'{"status":"Success"}\n{}'; do
                run "$FLEXGRAFT_TOOLS/at-each-syscall" --kill -- act /bin/busybox echo "$reply" ';' 3>&-
                is "$status" 1
                [[ $output == "with nothing done to it: step 1, act: it failed"* ]]
        done
        # a call that fails must be told of, unless it is one of libc's
        run "$FLEXGRAFT_TOOLS/at-each-syscall" --fail EIO -- act /bin/sh -c 'cd / || :; echo "{\"status\":\"Success\"}"' ';' 3>&-
        is "$status" 1
        [[ $output == "at call "*"neither a success nor a clean failure"* ]]
}

@test "at-each-syscall takes a failure that says it left something for a failure, and does no step that is for others" {
        each_syscall --fail ENOMEM --at openat:1 --not-undone "can't open" -- act /bin/busybox cat /etc/passwd ';' on-failure sh 'exit 9' ';'
        is "$status" 0 || { echo "$output"; return 1; }
        each_syscall --fail ENOMEM --at openat:1 --not-undone other -- act /bin/busybox cat /etc/passwd ';' on-failure sh 'exit 9' ';'
        is "$status" 1
}

@test "at-each-syscall starts and ends a process for each round" {
        each_syscall --kill --step 5 -- background PID /bin/sh -c 'echo $$; exec sleep 1000000' ';' act /bin/true ';' \
                sh "kill -0 \$PID && [ \$PID = @PID@ ] && echo \$PID >>'$BATS_TEST_TMPDIR/pids'" ';' end PID ';' sh '! kill -0 $PID 2>/dev/null' ';' same ';'
        is "$status" 0 || { echo "$output"; return 1; }
        is "$(sort -u "$BATS_TEST_TMPDIR/pids" | wc -l)" "$(wc -l <"$BATS_TEST_TMPDIR/pids")"
}

@test "inject-syscall makes a blocked process do a call and go on" {
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        cat "$BATS_TEST_TMPDIR/fifo" >"$BATS_TEST_TMPDIR/copy" 3>&- &
        local pid=$!
        bed_pids+=("$pid")
        exec 8>"$BATS_TEST_TMPDIR/fifo"
        wait_until 5 blocked_in_read "$pid"
        is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$pid" getpid)" "result $pid"
        wait_until 5 blocked_in_read "$pid" # it goes on where it was
        is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$pid" socket 99 1)" "result -97"
        echo text >&8
        exec 8>&-
        wait "$pid"
        is "$(<"$BATS_TEST_TMPDIR/copy")" text
}

@test "swap-loop swaps" {
        mkdir "$BATS_TEST_TMPDIR/"{p,p/a,p/b}
        touch "$BATS_TEST_TMPDIR/p/a/here"
        background_ready "$FLEXGRAFT_TOOLS/swap-loop" "$BATS_TEST_TMPDIR/p" a b
        wait_until 5 test -e "$BATS_TEST_TMPDIR/p/b/here"
        wait_until 5 test -e "$BATS_TEST_TMPDIR/p/a/here"
}

@test "a silent FUSE blocks the node's root in a container without a user namespace" {
        start_container plain-nouserns
        in_container mkdir /tmp/fuse
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse /tmp/fuse
        background ls "/proc/$CONTAINER_PID/root/tmp/fuse/x"
        wait_until 5 waits_for_fuse "$BACKGROUND_PID"
}

is_in_state() {
        grep -q "^State:.$2" "/proc/$1/status"
}

waits_for_fuse() {
        [[ $(<"/proc/$1/wchan") == *request_wait* || $(<"/proc/$1/wchan") == *fuse* ]]
}

@test "a silent FUSE that reads its requests holds even a killed process until it goes away" {
        start_container plain-nouserns
        in_container mkdir /tmp/fuse
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse /tmp/fuse --read
        background ls "/proc/$CONTAINER_PID/root/tmp/fuse/x"
        local blocked=$BACKGROUND_PID
        wait_until 5 waits_for_fuse "$blocked"
        kill -KILL "$blocked"
        wait_until 5 is_in_state "$blocked" D
        stop_container
        wait_until 5 process_is_gone "$blocked"
}

@test "a silent FUSE of a user namespace refuses the node's root at once" {
        start_container plain
        in_container mkdir /tmp/fuse
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid --user -- /bin/silent-fuse /tmp/fuse
        run timeout -s KILL 60 ls "/proc/$CONTAINER_PID/root/tmp/fuse/x"
        is "$status" 2
}

@test "clone-at-pid takes over a pid with its own mounts" {
        start_container plain
        local pid=$CONTAINER_PID
        is "$("$FLEXGRAFT_TOOLS/clone-at-pid" --kill --snapshot "$BATS_TEST_TMPDIR/snapshot" "$pid" sleep 1000000)" "$pid"
        is "$(tr '\0' ' ' <"/proc/$pid/cmdline")" "sleep 1000000 "
        is "$(<"/proc/$pid/mountinfo")" "$(<"$BATS_TEST_TMPDIR/snapshot")"
        [[ $(readlink "/proc/$pid/ns/mnt") != $(readlink /proc/self/ns/mnt) ]]
        kill -KILL "$pid"
        wait_until 5 process_is_gone "$pid"
}

@test "peek-at sees into the container's own processes and not into the node's" {
        start_container plain-hostpid
        in_container sleep 1000000 &
        bed_pids+=($!)
        local seen inside=''
        is "$(in_container peek-at "$BATS_ROOT_PID")" ""
        find_sleep() {
                inside=$(processes_in_mount_namespace "$CONTAINER_PID" | grep -vx "$CONTAINER_PID" | head -1)
                [[ -n $inside && $(tr '\0' ' ' <"/proc/$inside/cmdline") == *sleep* && $(tr '\0' ' ' <"/proc/$inside/cmdline") != */enter* ]]
        }
        wait_until 5 find_sleep
        seen=$(in_container peek-at "$inside")
        for way in root fd environ mem process_vm_readv pidfd_getfd ptrace; do
                [[ $'\n'$seen$'\n' == *$'\n'"$way"$'\n'* ]] || { echo "missing $way in: $seen"; return 1; }
        done
}

@test "run-loop counts" {
        is "$("$FLEXGRAFT_TOOLS/run-loop" --times 10 -- /bin/true -- /bin/false)" "10 10 0 0 0 10 0"
        is "$("$FLEXGRAFT_TOOLS/run-loop" --times 10 --parallel 4 -- /bin/sh -c 'exit 2')" "10 0 0 10"
}

@test "a loop device of the tests has no number that a guard of a raw device can have" {
        local file=$BATS_TEST_TMPDIR/image reserved=$((5000 + $(number_of_run 30000) * 2)) device
        truncate -s 1M "$file"
        # what it gives while a guard is being made, which is free for a moment, and no lower one is
        losetup() {
                [[ $1 == --find ]] || { command losetup "$@"; return; }
                command losetup "/dev/loop$reserved" "${@: -1}"
                echo "/dev/loop$reserved"
        }
        device=$(loop_over "$file")
        unset -f losetup
        bed_loops+=("$device")
        "$FLEXGRAFT_TOOLS/remove-loops" "$reserved"
        ((${device#/dev/loop} < 4096))
        is "$(losetup --noheadings --output BACK-FILE "$device")" "$file"
}

@test "a process of a program under test that is still there is noticed" {
        stopped_at close "$FLEXGRAFT_BIN/mount-list" '{}'
        run assert_no_helper_processes
        [[ $status == 1 && $output == "processes are left: "* ]]
        resumed
        assert_no_helper_processes
}

@test "records and other files are listed by name, without lock files" {
        mkdir -p "$STATE_DIR"/{mounts,uses/a,pool-sums}
        touch "$STATE_DIR"/{.lock,.call-counts.1,mounts/.lock,mounts/b.json,mounts/.c.tmp,uses/a/one,uses/a/.other,pool-sums/d}
        ln -s mounts "$STATE_DIR/link"
        is "$(records)" $'link\nmounts/.c.tmp\nmounts/b.json'
        is "$(index_entries)" a/one
        run assert_no_records
        [[ $status == 1 && $output == "records or other files are left: "*" mounts/b.json a/one"* ]]
        rm -r "$STATE_DIR"/{link,mounts,uses}
        assert_no_records
}

@test "enter has the exit status of its command, or dies of its signal, as whom it is told to be" {
        local kind status
        for kind in plain plain-nouserns plain-hostpid; do
                start_container "$kind"
                status=0
                in_container sh -c 'exit 7' || status=$?
                is "$status" 7
                status=0
                in_container sh -c 'kill -TERM $$' || status=$?
                is "$status" $((128 + 15))
                is "$(as_user 1000 id -u):$(as_user 1000 id -g):$(as_user 1000 id -G)" 1000:1000:1000
                is "$(in_container env | sort)" PATH=/bin:/sbin:/usr/bin:/usr/sbin
        done
        status=0
        in_container /nowhere 2>/dev/null || status=$?
        is "$status" 127
}

@test "as-kubelet reads until all have closed the pipe, and ends what takes too long" {
        local file=$BATS_TEST_TMPDIR/reply
        run "$FLEXGRAFT_TOOLS/as-kubelet" 60 "$file" sh -c '(sleep 0.3; echo late) & echo early >&2; exit 3'
        is "$status:$output:$(<"$file")" $'3::early\nlate'
        run "$FLEXGRAFT_TOOLS/as-kubelet" 60 "$file" sh -c 'kill -KILL $$'
        is "$status:$(<"$file")" 137:
        run "$FLEXGRAFT_TOOLS/as-kubelet" 1 "$file" sleep 1000
        is "$status" 124
}

@test "reply compares what jq would print, and asks for jq where it cannot tell" {
        local status
        reply_is() {
                status=0
                "$FLEXGRAFT_TOOLS/reply" is "$1" "$2" <<<'{"a": [{"b": "x\n"}, 2], "c": null, "d": {}}' || status=$?
        }
        for expected in '.a[0].b x' '.a[1] 2' '.a | length 2' '.c null' '.e null'; do
                reply_is "${expected% *}" "${expected##* }"
                is "$status" 0 "$expected"
        done
        reply_is '.a[1]' 3
        is "$status" 1
        reply_is .d '{}'
        is "$status" 2
}
