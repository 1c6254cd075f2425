#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap: many files, killed processes, and the end.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        local failed=0
        [[ -z ${SERVER:-} ]] || kill -CONT "$SERVER"
        served_teardown || failed=1
        [[ -z ${GROUP:-} ]] || rmdir "$GROUP" || failed=1
        return "$failed"
}

# ---- many

# bats test_tags=kernel,kernel_too,deep
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
                forget_names "/$type"
        done
        daemons=$(remap_processes remap-daemon)
        is "$(wc -w <<<"$daemons")" 2 "daemons"
        for daemon in $daemons; do
                wait_until 5 has_few_descriptors "$daemon" 40 || {
                        descriptors "$daemon"
                        find "/proc/$daemon/fd" -printf '%l\n' | head -60
                        return 1
                }
        done
}

# bats test_tags=kernel,kernel_too
@test "a remap mount takes little memory for its tables: next to none when it is new, half a kibibyte for each file that is looked up" {
        only_remap
        local kib
        make_source tmpfs
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
        the_remap_process remap-daemon
        kib=$(awk '$1 == "RssShmem:" { print $2 }' "/proc/$REPLY/status")
        ((kib <= 128)) || { echo "new: $kib KiB"; return 1; }
        (cd "$BATS_TEST_TMPDIR/tmpfs" && touch file-{1..1000})
        is "$(in_container find /data -type f -size 0 | wc -l)" 1000 files
        kib=$(awk '$1 == "RssShmem:" { print $2 }' "/proc/$REPLY/status")
        ((kib <= 128 + 500)) || { echo "used: $kib KiB"; return 1; }
}

@test "the two processes of an unused remap mount have 256 KiB of their own" {
        only_remap
        without_sanitizers "need more memory"
        local process kib sum=0
        make_source tmpfs
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
        for process in $(remap_processes); do
                kib=$(awk '$1 == "RssAnon:" { print $2 }' "/proc/$process/status")
                echo "$(<"/proc/$process/comm"): $kib KiB"
                sum=$((sum + kib))
        done
        ((kib > 0 && sum <= 256))
}

# bats test_tags=kernel,kernel_too,deep
@test "30,000 files are found by a remap daemon that may have 20,000 open" {
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
        the_remap_process remap-daemon
        (($(descriptors "$REPLY") < limit))
        forget_names /data
        wait_until 10 has_few_descriptors "$REPLY" 40
}

# bats test_tags=kernel,kernel_too
@test "a file that has the inode number of a removed one is itself, though nothing but a handle tells them apart" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4 inode
        make_source ext4
        (cd "$dir" && touch file-{1..700})
        remap_container
        HELPER_PREFIX=(prlimit --nofile=1200:1200)
        remap_mount "$dir" /data
        HELPER_PREFIX=()
        is "$(in_container find /data -type f -size 0 | wc -l)" 700 "files, of which 600 have descriptors"
        echo old >"$dir/late"
        inode=$(stat -c %i "$dir/late")
        talk /usr/bin/python3 -u -c 'import os
fd = os.open("/data/late", os.O_PATH)
print("ready")
input()'
        rm "$dir/late"
        echo new >"$dir/new"
        is "$(stat -c %i "$dir/new")" "$inode"
        forget_names /data
        the_remap_process remap-daemon
        wait_until 10 has_few_descriptors "$REPLY" 40
        is "$(in_container cat /data/new)" new
}

@test "a file that grows beyond the limit of who ran the helper is refused, and the daemon goes on" {
        only_remap
        local daemon
        make_source ext4
        remap_container
        HELPER_PREFIX=(prlimit --fsize=8589934592:8589934592)
        remap_mount "$BATS_TEST_TMPDIR/ext4" /data
        HELPER_PREFIX=()
        the_remap_process remap-daemon
        daemon=$REPLY
        run in_container truncate -s 9G /data/file
        [[ $status != 0 && $output == *'File too large'* ]]
        the_remap_process remap-daemon
        is "$REPLY" "$daemon"
        in_container truncate -s 7G /data/file
}

# ---- killed processes

# bats test_tags=kernel,kernel_too,deep
@test "a daemon that is killed 20 times beneath writers, readers and find disturbs none of them" {
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
                sleep "0.$((i * 3 % 5))"
        done
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/worker.?; return 1; }
        done
        cat "$BATS_TEST_TMPDIR"/worker.?
        is "$(cat "$BATS_TEST_TMPDIR/ext4/tree/d0/0")" 01234567890123456789
        is "$(find "$BATS_TEST_TMPDIR/ext4/a" "$BATS_TEST_TMPDIR/ext4/b" -type f | wc -l)" 2 "files that the workers left"
        is "$(remap_processes | wc -l)" 2 "processes"
}

# bats test_tags=kernel
@test "open files, also unlinked ones, mappings and locks go on when the daemon is killed" {
        only_remap
        files_go_on kill_daemon
}

# begin_waiting: a process in the container waits for a lock that one on the node has: WAITER, and BACKGROUND_PID.
begin_waiting() {
        remap_bed ext4
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls wait posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiter" &
        WAITER=$!
}

# ends_waiting: it gets the lock when that is released.
ends_waiting() {
        end_process "$BACKGROUND_PID"
        wait_until 10 process_is_gone "$WAITER"
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" got
}

# bats test_tags=kernel,kernel_too
@test "a process that waits for a lock goes on waiting when the daemon is killed" {
        only_remap
        begin_waiting
        sleep 0.5
        kill_daemon
        in_container touch /ext4/other
        sleep 0.5
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" '' "what it says that waits"
        ends_waiting
}

# waits_with WHICH: of the daemon's threads that wait until some time, those by WHICH clock: futex(2) of FUTEX_WAIT_BITSET, a private one, with
# and without FUTEX_CLOCK_REALTIME.
waits_with() {
        local operation call found time
        the_remap_process remap-daemon
        case $1 in
        settable) operation=0x189 ;;
        other) operation=0x89 ;;
        esac
        while read -r call _ found _ time _; do
                [[ $call == 202 && $found == "$operation" && $time != 0x0 ]] && return
        done < <(cat "/proc/$REPLY/task"/*/syscall)
        return 1
}

# It looks ten times in a second whether the lock is free.
@test "a process that waits for a lock is looked after by a clock that nobody sets back" {
        [[ $(uname -m) == x86_64 ]] || skip "the numbers of system calls are those of x86_64"
        only_remap
        begin_waiting
        wait_until 10 waits_with other
        run ! waits_with settable
        ends_waiting
}

# is_in_fcntl PID COMMAND: its first thread.
is_in_fcntl() {
        [[ $(cut -d' ' -f1,3 "/proc/$1/syscall" 2>/dev/null) == "72 $2" ]]
}

# trace_keeper OPTION...: strace follows it, and each daemon that it starts from now on, until trace_ends; its lines are in KEEPER_TRACE.
trace_keeper() {
        the_remap_process remap-keeper
        KEEPER_TRACE=$BATS_TEST_TMPDIR/keeper.trace
        strace -f -p "$REPLY" "$@" -o "$KEEPER_TRACE" 2>"$BATS_TEST_TMPDIR/strace" 3>&- &
        TRACER=$!
        bed_pids+=("$TRACER")
        wait_until 10 grep -qs attached "$BATS_TEST_TMPDIR/strace"
}

# repeats_a_lock: whether the daemon is about to, as one of the first things that it does.
repeats_a_lock() {
        the_remap_process remap-daemon >/dev/null && is_in_fcntl "$REPLY" 0x25 # F_OFD_SETLK
}

# bats test_tags=deep
@test "a process that waits for a lock is not lost when the next daemon is killed, too, before it tries to get it" {
        only_remap
        begin_waiting
        wait_until 10 pgrep -P "$WAITER"
        wait_until 10 is_in_fcntl "$(pgrep -P "$WAITER")" 0x7 # F_SETLKW
        in_container test -s /ext4/file || : # the daemon has read that by now
        trace_keeper -e trace=fcntl -e inject=fcntl:delay_enter=3000000
        kill_daemon
        wait_until 10 repeats_a_lock
        kill_daemon
        trace_ends
        ends_waiting
}

# has_not_open PID FILE
has_not_open() {
        [[ -z $(find "/proc/$1/fd" -lname "$2") ]]
}

# is_in_write PID: one of its threads is.
is_in_write() {
        cat "/proc/$1/task"/*/syscall 2>/dev/null | grep -q '^1 0x3 '
}

@test "a daemon that is killed when a file was just released leaves neither it open nor its locks" {
        only_remap
        local kind file=$BATS_TEST_TMPDIR/ext4/file
        remap_bed ext4
        touch "$file"
        # it is open in a message: when that is gone the kernel asks for nothing but the release
        talk /usr/bin/python3 -u -c 'import fcntl, os, socket, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
ends = socket.socketpair()
socket.send_fds(ends[0], [b"x"], [fd])
os.close(fd)
print("ready")
sys.stdin.readline()
ends[1].close()
sys.stdin.readline()' /ext4/file
        trace_daemon -e trace=write -e inject=write:delay_exit=60000000
        tell close
        the_remap_process remap-daemon
        wait_until 10 is_in_write "$REPLY"
        kill_traced_daemon
        for kind in "${LOCKS[@]}"; do
                wait_until 10 is_free_on_the_node "$kind" "$file"
        done
        rm "$file"
        forget_names /ext4
        the_remap_process remap-daemon
        wait_until 10 has_not_open "$REPLY" '/file (deleted)'
        is "$(in_container /bin/fs-calls try flock /ext4/other)" free # it serves on
}

@test "a daemon that is killed when a program was just released that a write under way had changed leaves it no set-id bits" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/tmpfs
        make_source tmpfs
        mkdir "$dir"/{lower,upper,work,merged}
        mount -t overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/merged" # so there is no passthrough
        install -m 4777 /usr/bin/id "$dir/merged/program"
        remap_container
        remap_mount "$dir/merged" /data '"cache": "always", "options": ["suid"]'
        is "$(as_user 1000 /data/program -u)" 0
        talk /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/python3 -u -c 'import os, sys, threading
program = os.open("/data/program", os.O_WRONLY)
read_end, write_end = os.pipe()
thread = threading.Thread(target=lambda: os.splice(read_end, program, 4))
thread.start()
while not open(f"/proc/self/task/{thread.native_id}/syscall").read().startswith("275 "): pass # splice(2)
os.close(program)
os.stat("/data/program")
print("ready")
sys.stdin.readline()
os.write(write_end, b"\x7fELF")
thread.join()
sys.stdin.readline()'
        trace_daemon -e trace=read,write -e inject=write:delay_exit=60000000
        tell write
        wait_until 10 has_answered_a_release "$BATS_TEST_TMPDIR/trace"
        kill_traced_daemon
        is "$(stat -c %a "$dir/merged/program")" 777
        wait_until 10 has_ids 1000 /data/program
        umount -l "$dir/merged"
}

# has_ids UID PROGRAM: user 1000 who executes it.
has_ids() {
        [[ $(as_user 1000 "$2" -u) == "$1" ]]
}

@test "a daemon that is killed when it has just granted a lock leaves it to its holder" {
        only_remap
        local file=$BATS_TEST_TMPDIR/behind/file
        make_source tmpfs
        mkdir "$BATS_TEST_TMPDIR/behind"
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/other"
        "$FLEXGRAFT_TOOLS/server-fuse" "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/behind" /data
        trace_daemon -e trace=writev -e inject=writev:delay_exit=60000000:when=2+
        talk /bin/fs-calls lock posix /data/file # the first writev(2) has the kernel drop its pages
        kill_traced_daemon
        # what the next daemon repeated is done when it has granted another
        is "$(in_container /bin/fs-calls try posix /data/other)" free
        is "$("$FLEXGRAFT_TOOLS/fs-calls" try posix "$file")" held "on the node"
        end_process "$TALK_PID"
        wait_until 10 is_free_on_the_node posix "$file"
}

# serve_a_server: /data is what server-fuse serves, SERVER; ASKED: what it was asked and has not answered.
serve_a_server() {
        only_remap
        make_source tmpfs
        chmod 0777 "$BATS_TEST_TMPDIR/tmpfs"
        mkdir "$BATS_TEST_TMPDIR/behind"
        "$FLEXGRAFT_TOOLS/server-fuse" "$BATS_TEST_TMPDIR/tmpfs" "$BATS_TEST_TMPDIR/behind" 3>&-
        SERVER=$(pgrep -nx server-fuse)
        connection_of "$BATS_TEST_TMPDIR/behind" self
        ASKED=$CONNECTION/waiting
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/behind" /data
}

is_asked() {
        (($(<"$ASKED") >= $1))
}

# has_requests COUNT: so many of the container's are not answered, of which `requests` tells.
has_requests() {
        (($(<"$requests") == $1))
}

there_are() {
        [[ $(pgrep -cx "$1") == "$2" ]]
}

has_ended() {
        ! pgrep -x "$1" >/dev/null
}

# killed_after CALL COMMAND...: user 1000 runs the command, and the daemon is killed when it has made that system call for it, which SEEN tells.
killed_after() {
        trace_daemon -e "trace=$1" -e "inject=$1:delay_exit=60000000"
        background as_user 1000 "${@:2}"
        wait_until 10 "${SEEN[@]}"
        kill_traced_daemon
        wait "$BACKGROUND_PID"
}

@test "a daemon that is killed when it has just made a file of a mode that forbids what it is opened for has opened it" {
        only_remap
        remap_bed ext4
        chmod 0777 "$BATS_TEST_TMPDIR/ext4"
        SEEN=(test -e "$BATS_TEST_TMPDIR/ext4/file")
        killed_after openat /usr/bin/python3 -c 'import os
os.write(os.open("/ext4/file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o444), b"text")'
        is "$(stat -c %u:%a:%s "$BATS_TEST_TMPDIR/ext4/file")" 1000:444:4
}

@test "a request that a killed daemon left is repeated by one thread, also where the next daemon comes to it late and others wait" {
        only_remap
        local tracer maker
        remap_bed ext4
        install -d -m 0777 "$BATS_TEST_TMPDIR/ext4/dir" # not that of the others, who would wait for the kernel's lock on it
        trace_daemon -e trace=mkdirat -e inject=mkdirat:delay_exit=60000000
        tracer=$TRACER
        background as_user 1000 mkdir /ext4/dir/new
        maker=$BACKGROUND_PID
        wait_until 10 test -d "$BATS_TEST_TMPDIR/ext4/dir/new"
        background in_container sh -c 'for i in 1 2 3 4; do until [ -e /ext4/stop ]; do : >/ext4/other; done & done; wait'
        trace_keeper -e trace=clone,mkdirat -e inject=clone:delay_exit=300000 -e inject=mkdirat:delay_enter=1000000
        TRACER=$tracer kill_traced_daemon
        wait "$maker"
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        wait "$BACKGROUND_PID"
        trace_ends
        is "$(grep -c 'mkdirat(.*"new"' "$KEEPER_TRACE")" 1 "calls of the next daemon"
}

# is_in FILE TEXT
is_in() {
        [[ $(<"$1") == "$2" ]]
}

# bats test_tags=deep
@test "two names that a daemon has just exchanged when it is killed are exchanged once" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_bed ext4
        chmod 0777 "$dir"
        echo first >"$dir/one"
        echo second >"$dir/two"
        SEEN=(is_in "$dir/one" second)
        killed_after renameat2 /usr/bin/python3 -c 'import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).renameat2(-100, b"/ext4/one", -100, b"/ext4/two", 2): # RENAME_EXCHANGE
    sys.exit(os.strerror(ctypes.get_errno()))'
        is "$(cat "$dir/one" "$dir/two")" "second
first"
}

# others_make FILE: somebody else makes a file of that name, once it is free.
others_make() {
        [[ ! -e $1 ]] && echo others >"$1"
}

@test "a daemon that is killed when it has just removed a file leaves the one that others make of that name" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_bed ext4
        chmod 0777 "$dir"
        install -m 0666 /dev/null "$dir/file"
        SEEN=(others_make "$dir/file")
        killed_after unlinkat /usr/bin/python3 -c 'import os; os.unlink("/ext4/file")'
        is "$(<"$dir/file")" others
}

@test "a daemon that is killed when it has just renamed a file leaves the one that others make of its former name, and the new one" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_bed ext4
        chmod 0777 "$dir"
        echo mine >"$dir/file"
        SEEN=(others_make "$dir/file")
        killed_after renameat /usr/bin/python3 -c 'import os; os.rename("/ext4/file", "/ext4/to")'
        is "$(cat "$dir/to" "$dir/file")" "mine
others"
}

@test "a daemon that is killed when it has just removed a file, of which nothing is left, has removed it" {
        only_remap
        remap_bed ext4
        chmod 0777 "$BATS_TEST_TMPDIR/ext4"
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/ext4/file"
        SEEN=(test ! -e "$BATS_TEST_TMPDIR/ext4/file")
        killed_after unlinkat /usr/bin/python3 -c 'import os; os.unlink("/ext4/file")'
}

@test "two names that one exchanges who may do so by a further group alone are exchanged once, when the daemon is killed" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4/group
        remap_bed ext4
        install -d -g 2000 -m 0770 "$dir"
        echo first >"$dir/one"
        echo second >"$dir/two"
        SEEN=(is_in "$dir/one" second)
        trace_daemon -e trace=renameat2 -e inject=renameat2:delay_exit=60000000
        background in_container setpriv --reuid 1000 --regid 1000 --groups 2000 /usr/bin/python3 -c 'import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).renameat2(-100, b"/ext4/group/one", -100, b"/ext4/group/two", 2): # RENAME_EXCHANGE
    sys.exit(os.strerror(ctypes.get_errno()))'
        wait_until 10 "${SEEN[@]}"
        kill_traced_daemon
        wait "$BACKGROUND_PID"
        is "$(cat "$dir/one" "$dir/two")" "second
first"
}

# is_in_call PID NUMBER: a thread of that process is in that system call.
is_in_call() {
        cat "/proc/$1/task"/*/syscall 2>/dev/null | grep -q "^$2 "
}

# killed_before CALL NUMBER OTHER COMMAND...: user 1000 runs the command; when the daemon is about to make that system call for it, others make
# OTHER by ${OTHERS[@]}, and the daemon is killed. Whether the command succeeds: in SUCCEEDED.
killed_before() {
        trace_daemon -e "trace=$1" -e "inject=$1:delay_enter=60000000"
        background as_user 1000 "${@:4}"
        the_remap_process remap-daemon
        wait_until 10 is_in_call "$REPLY" "$2"
        "${OTHERS[@]}" "$3"
        kill_traced_daemon
        SUCCEEDED=1
        wait "$BACKGROUND_PID" || SUCCEEDED=0
}

@test "a link or a directory that others made first is none that a killed daemon had made" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_bed ext4
        chmod 0777 "$dir"
        install -o 1000 -m 0666 /dev/null "$dir/mine"
        install -m 0666 /dev/null "$dir/others"
        OTHERS=(ln "$dir/others")
        killed_before linkat 265 "$dir/lock" ln /ext4/mine /ext4/lock
        is "$SUCCEEDED" 0
        OTHERS=(ln -s others)
        killed_before symlinkat 266 "$dir/symlink" ln -s mine /ext4/symlink
        is "$SUCCEEDED" 0
        OTHERS=(mkdir)
        killed_before mkdirat 258 "$dir/directory" mkdir /ext4/directory
        is "$SUCCEEDED" 0
}

@test "a file that others put in the place of one which a killed daemon was about to rename is renamed" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/ext4
        remap_bed ext4
        chmod 0777 "$dir"
        echo mine >"$dir/file"
        echo others >"$dir/theirs"
        OTHERS=(mv "$dir/theirs")
        killed_before renameat 264 "$dir/file" /usr/bin/python3 -c 'import os; os.rename("/ext4/file", "/ext4/to")'
        is "$SUCCEEDED" 1
        is "$(<"$dir/to")" others
}

@test "a process that is interrupted while it waits for a lock hears so from the next daemon, when the one that was told is killed" {
        only_remap
        local waiter
        remap_bed ext4
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        chmod 0666 "$BATS_TEST_TMPDIR/ext4/file"
        talk /usr/bin/python3 -u -c 'import fcntl, os, signal
def stop(*_): raise InterruptedError
signal.signal(signal.SIGALRM, stop)
fd = os.open("/ext4/file", os.O_RDWR)
print("ready")
input()
try:
    fcntl.lockf(fd, fcntl.LOCK_EX)
    print("got")
except InterruptedError:
    print("interrupted")
input()'
        tell wait
        waiter=$(pgrep -x python3)
        wait_until 10 is_in_fcntl "$waiter" 0x7 # F_SETLKW
        # who tries the lock again is held there, and the interrupt is only noted
        trace_daemon -e trace=fcntl,read -e inject=fcntl:delay_enter=60000000
        the_remap_process remap-daemon
        wait_until 10 is_in_call "$REPLY" 72
        kill -ALRM "$waiter"
        wait_until 10 grep -qF '"0\0\0\0$\0\0\0' "$TRACE" # FUSE_INTERRUPT was read
        kill_traced_daemon
        answer interrupted
        tell end
}

@test "what the kernel has a daemon forget when that is killed is forgotten by the next one" {
        only_remap
        local daemon
        make_source tmpfs
        touch "$BATS_TEST_TMPDIR/tmpfs"/{1..700}
        remap_container
        remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
        in_container find /data -type f -size 0 >/dev/null
        trace_daemon -e trace=close -e inject=close:delay_enter=60000000:when=50+
        the_remap_process remap-daemon
        daemon=$REPLY
        stop_process "$daemon" # so that they come at once
        forget_names /data
        kill -CONT "$daemon"
        wait_until 10 is_in_call "$daemon" 3
        kill_traced_daemon
        the_remap_process remap-daemon
        wait_until 10 has_few_descriptors "$REPLY" 60
}

# bats test_tags=deep
@test "a daemon that is killed when it has just set a new attribute has set it" {
        only_remap
        remap_bed ext4
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/ext4/file"
        SEEN=(getfattr --absolute-names -n user.some "$BATS_TEST_TMPDIR/ext4/file")
        killed_after setxattr /usr/bin/python3 -c 'import os
os.setxattr("/ext4/file", "user.some", b"thing", os.XATTR_CREATE)'
}

# bats test_tags=deep
@test "an unlock that finds as many others under way as a daemon remembers is not lost when that is killed" {
        local requests
        serve_a_server
        echo text >"$BATS_TEST_TMPDIR/tmpfs/file"
        chmod 0666 "$BATS_TEST_TMPDIR/tmpfs/file"
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/other"
        connection_of /data
        requests=$CONNECTION/waiting
        talk /usr/bin/python3 -u -c 'import fcntl, os, threading
def begin(*call): threading.Thread(target=call[0], args=call[1:]).start()
threading.stack_size(65536)
file, other = os.open("/data/file", os.O_RDWR), os.open("/data/other", os.O_RDWR)
fcntl.lockf(other, fcntl.LOCK_EX)
print("ready")
input()
begin(os.pwrite, file, b"data", 0)
input()
for _ in range(4096): begin(fcntl.flock, file, fcntl.LOCK_UN)
input()
fcntl.lockf(other, fcntl.LOCK_UN)
print("unlocked")
input()'
        stop_process "$SERVER" # so the page that is written next stays locked, and each unlock waits until it can be dropped
        tell write
        wait_until 10 is_asked 1
        tell unlock
        wait_until 60 has_requests 4097
        tell unlock
        wait_until 60 has_requests 4098
        sleep 1 # most often the daemon has read all of them by then
        kill_daemon
        kill -CONT "$SERVER"
        answer unlocked
        is_free_on_the_node posix "$BATS_TEST_TMPDIR/behind/other"
        tell end
        wait_until 10 has_ended python3
}

@test "a large piece that is appended without the page cache is whole and in order" {
        serve_a_server
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        dd of="$BATS_TEST_TMPDIR/tmpfs/file" oflag=direct count=0 status=none 2>/dev/null || skip "a tmpfs has no O_DIRECT here (Linux 6.6)"
        in_container python3 -c 'import mmap, os
fd = os.open("/data/file", os.O_WRONLY | os.O_APPEND | os.O_DIRECT)
piece = mmap.mmap(-1, 8 << 20)
for i in range(8): piece[i << 20:(i + 1) << 20] = bytes([65 + i]) * (1 << 20)
for _ in range(4): assert os.write(fd, piece) == 8 << 20'
        is "$(fold -w 1048576 "$BATS_TEST_TMPDIR/tmpfs/file" | cut -c1 | tr -d '\n')" ABCDEFGHABCDEFGHABCDEFGHABCDEFGH
}

@test "a file that may only be appended to is appended to, where the kernel does not write it itself, and not overwritten" {
        serve_a_server
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        chattr +a "$BATS_TEST_TMPDIR/tmpfs/file" 2>/dev/null || skip "a tmpfs has no such flag here (Linux 6.6)"
        as_user 1000 sh -c 'echo one >>/data/file && echo two >>/data/file && ! echo three >/data/file && ! truncate -s 0 /data/file'
        chattr -a "$BATS_TEST_TMPDIR/tmpfs/file"
        is "$(<"$BATS_TEST_TMPDIR/tmpfs/file")" "one
two"
}

# appended: the daemon has, and then the node does, too.
appended() {
        [[ -s $BATS_TEST_TMPDIR/tmpfs/file ]] && echo other >>"$BATS_TEST_TMPDIR/behind/file"
}

@test "a daemon that is killed when it has just appended to a file has done so once, also when others append" {
        serve_a_server
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        SEEN=(appended)
        killed_after pwritev2 /usr/bin/python3 -c 'import os
os.write(os.open("/data/file", os.O_WRONLY | os.O_APPEND), b"line\n")'
        is "$(<"$BATS_TEST_TMPDIR/tmpfs/file")" "line
other"
}

# is_in_lseek: a thread of the daemon is.
is_in_lseek() {
        cat "/proc/$1/task"/*/syscall 2>/dev/null | grep -q '^8 '
}

# bats test_tags=deep
@test "what the second of two killed daemons has appended the third does not append again" {
        local first
        serve_a_server
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/tmpfs/file"
        trace_daemon -e trace=lseek -e inject=lseek:delay_enter=60000000
        first=$TRACER
        trace_keeper -e trace=pwritev2 -e inject=pwritev2:delay_exit=60000000
        background as_user 1000 sh -c 'echo line >>/data/file'
        the_remap_process remap-daemon
        wait_until 10 is_in_lseek "$REPLY" # before it appends
        kill_daemon
        kill -KILL "$first"             # or it waits until the delay is over
        wait "$first" || :
        wait_until 10 test -s "$BATS_TEST_TMPDIR/tmpfs/file"
        kill_daemon
        wait "$BACKGROUND_PID"
        kill -KILL "$TRACER"
        wait "$TRACER" || :
        is "$(<"$BATS_TEST_TMPDIR/tmpfs/file")" line
}

# bats test_tags=deep
@test "processes that a server does not answer end when they are killed, also when all threads of the daemon wait for it" {
        serve_a_server
        stop_process "$SERVER"
        background in_container sh -c 'for i in $(seq 100); do /usr/bin/stat "/data/$i" & done; wait'
        wait_until 60 there_are stat 100
        wait_until 60 is_asked 96
        kill -KILL $(pgrep -x stat)
        wait_until 60 has_ended stat
        kill -CONT "$SERVER"
        in_container touch /data/file
}

@test "of a list whose reader was killed before the server gave it nothing stays open" {
        serve_a_server
        mkdir "$BATS_TEST_TMPDIR/tmpfs/dir"
        touch "$BATS_TEST_TMPDIR/tmpfs/dir"/{1..20}
        talk /usr/bin/python3 -u -c 'import ctypes, os
fd = os.open("/data/dir", os.O_RDONLY)
print("ready")
input()
if os.fork() == 0:
    ctypes.CDLL(None).getdents64(fd, ctypes.create_string_buffer(32768), 32768)
os.wait()
print("ended")
input()'
        stop_process "$SERVER"
        tell go
        wait_until 10 is_asked 1
        kill -KILL "$(pgrep -nx python3)"
        answer ended
        kill -CONT "$SERVER"
        is "$(in_container find /data/dir -type f | wc -l)" 20 # the other list is complete by then, too
        tell end
        wait_until 10 has_ended python3
        forget_names /data
        the_remap_process remap-daemon
        wait_until 10 has_not_open "$REPLY" '*/dir/*'
}

# bats test_tags=kernel,kernel_too,deep
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
        assert_field '.mounts[0].remap.running' true
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        wait "$pid" || { cat "$BATS_TEST_TMPDIR/worker"; return 1; }
        is "$(remap_processes | wc -l)" 2 "processes"
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        remap_processes_end
}

# no_more_processes PID: it can start none, as it is in a control group, GROUP, that has as many as it may.
no_more_processes() {
        local parent=/sys/fs/cgroup
        [[ -e $parent/cgroup.procs ]] || parent=/sys/fs/cgroup/pids
        GROUP=$(mktemp -d "$parent/flexgraft-test-$RUN_ID-XXXXXX" 2>/dev/null) || skip "no control group can be made"
        { echo 1 >"$GROUP/pids.max"; } 2>/dev/null || skip "a control group has no limit of processes here"
        echo "$1" >"$GROUP/cgroup.procs"
}

# refusals: how many processes the kernel has refused there.
refusals() {
        sed -n 's/^max //p' "$GROUP/pids.events"
}

refused() {
        (($(refusals) >= $1))
}

@test "a keeper that cannot be replaced is as soon as it can, and no other file is closed meanwhile" {
        only_remap
        local old i
        remap_bed ext4
        the_remap_process remap-keeper
        old=$REPLY
        the_remap_process remap-daemon
        no_more_processes "$REPLY"
        kill -KILL "$old"
        wait_until 10 refused 1
        for ((i = 1; i <= 5; i++)); do
                in_container touch "/ext4/$i"
                wait_until 10 refused "$(($(refusals) + 1))"
        done
        in_container sh -c 'chmod 0600 /ext4/?'
        echo max >"$GROUP/pids.max"
        wait_until 10 there_is_another remap-keeper "$old"
        remap_pids+=("$REPLY")
        in_container sh -c 'chmod 0640 /ext4/?'
        is "$(stat -c %a "$BATS_TEST_TMPDIR"/ext4/? | sort | uniq -c | xargs)" "5 640"
        is "$(remap_processes | wc -l)" 2 "processes"
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        remap_processes_end
}

@test "a daemon that gets too few threads to serve with, over a server, serves as soon as it gets them" {
        local count old
        serve_a_server
        the_remap_process remap-keeper
        no_more_processes "$REPLY"
        # one more each time: the keeper, its daemon, and the threads of that
        for count in 2 3 4 5; do
                the_remap_process remap-daemon
                old=$REPLY
                echo "$count" >"$GROUP/pids.max"
                kill -KILL "$old"
                wait_until 10 refused "$(($(refusals) + 1))"
                echo max >"$GROUP/pids.max"
                wait_until 10 there_is_another remap-daemon "$old"
                timeout 100 "${ENTER[@]}" touch "/data/$count" # else it hangs
                [[ -e $BATS_TEST_TMPDIR/tmpfs/$count ]]
                remember_remap_processes
        done
}

# are_in_mkdirat PID COUNT: so many threads of the daemon.
are_in_mkdirat() {
        (($(cat "/proc/$1/task"/*/syscall 2>/dev/null | grep -c '^258 ') == $2))
}

@test "a daemon that gets too few threads for what the last one left repeats all of it as soon as it gets them" {
        [[ $(uname -m) == x86_64 ]] || skip "the numbers of system calls are those of x86_64"
        local name pids=() before
        serve_a_server
        in_container mkdir /data/1 /data/2 /data/3 # the kernel makes one at once in a directory
        trace_daemon -e trace=mkdirat -e inject=mkdirat:delay_enter=600000000
        for name in 1 2 3; do
                background in_container mkdir "/data/$name/made"
                pids+=("$BACKGROUND_PID")
        done
        the_remap_process remap-daemon
        wait_until 10 are_in_mkdirat "$REPLY" 3
        the_remap_process remap-keeper
        no_more_processes "$REPLY"
        echo 6 >"$GROUP/pids.max" # one of the three gets a thread
        before=$(refusals)
        kill_traced_daemon
        wait_until 10 refused "$((before + 2))"
        echo max >"$GROUP/pids.max"
        wait_until 20 have_made 1 2 3
        for name in "${pids[@]}"; do wait "$name"; done
}

# have_made NAME...: there is one in each of these directories of the server.
have_made() {
        local name
        for name in "$@"; do
                [[ -d $BATS_TEST_TMPDIR/tmpfs/$name/made ]] || return 1
        done
}

# bats test_tags=kernel,kernel_too
@test "when both are killed the container gets ENOTCONN, and mount-list and volume-reconcile say so" {
        only_remap
        needs volume-reconcile
        remap_bed ext4
        # shellcheck disable=SC2046
        stop_process $(remap_processes)
        # shellcheck disable=SC2046
        kill -KILL $(remap_processes)
        wait_until 5 no_remap_processes
        is_dead() { [[ $(in_container /bin/fs-calls open /ext4/file r || :) == ENOTCONN ]]; }
        wait_until 5 is_dead
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].remap.running' false
        helper volume-reconcile '{}'
        assert_success
        [[ $output == *"remap-daemon has exited"* ]] || is "$output" "that its remap-daemon has exited"
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        assert_mounts_at /ext4 0
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems | length' 0
}

# bats test_tags=kernel,kernel_too
@test "when both are killed mount-remove takes the mount away" {
        only_remap
        remap_bed ext4
        # shellcheck disable=SC2046
        stop_process $(remap_processes)
        # shellcheck disable=SC2046
        kill -KILL $(remap_processes)
        wait_until 5 no_remap_processes
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
        stop_process $(remap_processes)
        # shellcheck disable=SC2046
        kill -KILL $(remap_processes)
        wait_until 5 no_remap_processes
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        assert_mounts_at /ext4 1
        in_container touch /ext4/works
}

# ---- the end

# bats test_tags=kernel,kernel_too
@test "the same request twice is one mount and one remap daemon" {
        only_remap
        remap_bed ext4
        local before
        before=$(remap_processes)
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        assert_field .mount.alreadyMounted true
        assert_mounts_at /ext4 1
        is "$(remap_processes)" "$before" "processes"
}

# bats test_tags=kernel
@test "when the container ends, so do keeper and daemon" {
        only_remap
        remap_bed
        is "${#remap_pids[@]}" 4 "processes"
        stop_container
        remap_processes_end
        umount "$BATS_TEST_TMPDIR/ext4" # nothing holds it
}

# bats test_tags=kernel,kernel_too,deep
@test "when the container ends in the middle of work, so do keeper and daemon" {
        only_remap
        remap_bed ext4
        in_container mkdir /ext4/a
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        in_container /bin/fs-calls worker /ext4/a 60 &
        in_container /bin/fs-calls waiters 20 posix /ext4/file >"$BATS_TEST_TMPDIR/waiters" &
        wait_until 10 grep -q ready "$BATS_TEST_TMPDIR/waiters"
        stop_container
        remap_processes_end
        end_process "$BACKGROUND_PID"
        umount "$BATS_TEST_TMPDIR/ext4"
}

# bats test_tags=kernel,kernel_too
@test "when the mount is removed, keeper and daemon end" {
        only_remap
        remap_bed ext4
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        assert_mounts_at /ext4 0
        remap_processes_end
        assert_no_records
        umount "$BATS_TEST_TMPDIR/ext4"
}

# bats test_tags=kernel
@test "when the container's root unmounts it, keeper and daemon end" {
        only_remap
        remap_bed ext4
        in_container umount /ext4
        assert_mounts_at /ext4 0
        remap_processes_end
        umount "$BATS_TEST_TMPDIR/ext4"
        helper mount-remove "$(remove_request /ext4)"
        assert_no_records
}

# bats test_tags=kernel,kernel_too
@test "a mount detached by the container's root serves the files that are open, and then ends" {
        only_remap
        local line
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        talk /bin/fs-calls hold /ext4/file
        in_container umount -l /ext4
        tell "+ more"
        answer "text more"
        is "$(remap_processes | wc -l)" 2 "processes"
        end_process "$TALK_PID"
        remap_processes_end
}

# bats test_tags=kernel,kernel_too
@test "a request that fails leaves no keeper and no daemon" {
        only_remap
        remap_container
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /none/data '"ids": "remap", "mkdir": false')"
        assert_failure ENOENT
        helper mount-bind "$(bind_request /tmp '"ids": "remap"')"
        assert_failure EBUSY
        wait_until 5 no_remap_processes
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel,kernel_too
@test "nothing that the caller gave the helper stays open" {
        only_remap
        remap_container
        make_source ext4
        SOURCE=$BATS_TEST_TMPDIR/ext4
        # The pipe is at its end when the helper is, though the remap daemon runs; descriptor 9 likewise.
        timeout 100 bash -c '"$@" 9>&1 2>&1 </dev/null 3>&- | cat >"$0"' "$BATS_TEST_TMPDIR/out" \
                "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"ids": "remap"')"
        [[ $(<"$BATS_TEST_TMPDIR/out") == *Success* ]]
        remember_remap_processes
        is "${#remap_pids[@]}" 2 "processes"
        in_container touch /data/file
}

@test "a batch of one mount that is no array is remapped, too" {
        start_container plain
        helper mount-batch '{"container": '"$CONTAINER_PID"', "mounts": {"type": "bind", "source": "'"$SOURCE"'", "target": "/data", "ids": "remap"}}'
        assert_success
        assert_field '.mounts[0].idMapping' remap
        helper mount-remove "$(remove_request /data)"
        assert_success
}
