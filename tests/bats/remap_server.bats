#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap-mount of a filesystem whose server decides who may do what, as NFS with AUTH_SYS and root_squash: it must know who asks, which the kernel
# does not say in requests of id-mapped mounts. server-fuse is such a one.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        # what the containers get are id-mapped mounts of it
        FLEXGRAFT_TEST_IDS=idmapped
        remap_setup
        needs remap-mount remap-daemon
        KEEPER='' BEHIND=$BATS_TEST_TMPDIR/behind
        make_source tmpfs
        SOURCE_DIR=$BATS_TEST_TMPDIR/tmpfs
        chmod 0777 "$SOURCE_DIR"
        mkdir "$BEHIND"
        "$FLEXGRAFT_TOOLS/server-fuse" "$SOURCE_DIR" "$BEHIND" 3>&-
}

teardown() {
        pkill -CONT -x server-fuse || : # which a test that failed may have left stopped
        umount -l "$BATS_TEST_TMPDIR/served" "$BEHIND" 2>/dev/null || : # else the server keeps what it serves busy
        served_teardown
}

# file NAME MODE OWNER:GROUP: at the source, with that text in it.
file() {
        echo text >"$SOURCE_DIR/$1"
        chmod "$2" "$SOURCE_DIR/$1"
        chown "$3" "$SOURCE_DIR/$1"
}

# user ID COMMAND...: in the container, as that user without other groups.
user() {
        in_container setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

@test "a link that the server changes leads where it leads by now" {
        ln -s ignored "$SOURCE_DIR/turns"
        echo -n v1 >"$SOURCE_DIR/turns-to"
        two_containers "$BEHIND"
        is "$(in_container readlink /data/turns)" v1
        echo -n v2 >"$SOURCE_DIR/turns-to"
        is "$(in_container readlink /data/turns)" v2
}

@test "a file of which the server gives a piece at a time is read whole" {
        head -c 300000 /dev/urandom >"$SOURCE_DIR/pieces"
        chmod 0644 "$SOURCE_DIR/pieces"
        two_containers "$BEHIND"
        is "$(in_container sha256sum /data/pieces | cut -d' ' -f1)" "$(sha256sum "$SOURCE_DIR/pieces" | cut -d' ' -f1)"
}

@test "the server is asked as uid N for uid N in each of two containers, and on the node" {
        file secret 0600 1000:1000
        two_containers "$BEHIND"
        for CONTAINER in "$FIRST" "$SECOND"; do
                use_container "$CONTAINER"
                is "$(user 1000 cat /data/secret)" text "its owner in the container $CONTAINER"
                run ! user 1001 cat /data/secret
                as 1000 append "/data/new-$CONTAINER" x 1
                user 1000 mkdir "/data/directory-$CONTAINER"
                user 1000 ln -s nowhere "/data/link-$CONTAINER"
                is "$(owners "$SOURCE_DIR"/{new,directory,link}-"$CONTAINER" | xargs)" "1000:1000 1000:1000 1000:1000"
        done
        is "$(setpriv --reuid 1000 --regid 1000 --clear-groups cat "$SERVED/secret")" text "on the node"
        run ! setpriv --reuid 1001 --regid 1001 --clear-groups cat "$SERVED/secret"
}

@test "root in a container is nobody for a server that squashes root" {
        file secret 0600 1000:1000
        two_containers "$BEHIND"
        run ! in_container cat /data/secret
        run ! in_container chown 7 /data/secret
        run ! in_container chmod 0644 /data/secret
        in_container touch /data/of-root
        is "$(owners "$SOURCE_DIR/of-root")" 65534:65534
        is "$(owners "$SOURCE_DIR/secret")" 1000:1000
        is "$(stat -c %a "$SOURCE_DIR/secret")" 600
}

@test "what the server alone refuses is refused, and a process that changes its ids is asked for with the new ones" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        is "$(user 1000 cat /data/only-1000)" text
        run ! user 1001 cat /data/only-1000
        run ! in_container cat /data/only-1000
        run -0 in_container /usr/bin/python3 -c 'import os
def reads():
    try: os.close(os.open("/data/only-1000", os.O_RDONLY))
    except PermissionError: return "no"
    return "yes"
os.setgroups([])
said = [reads()]
for uid in 1000, 1001, 1000:
    os.seteuid(0); os.seteuid(uid)
    said.append(reads())
print(*said)'
        is "$output" "no yes no yes"
}

@test "threads of one process that have uids of their own, as the kernel lets them, are each asked for with their own" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        run -0 in_container /usr/bin/python3 -c 'import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
setresuid = {"x86_64": 117, "aarch64": 147}[os.uname().machine]
os.setgroups([])
turn = threading.Barrier(2)
said = {}
def work(uid, first):
    if libc.syscall(setresuid, uid, uid, uid) < 0: os._exit(3) # of this thread alone
    said[uid] = []
    for step in range(10):
        turn.wait()
        if step % 2 == first or step >= 6: # in turns, and then at once
            try: os.close(os.open("/data/only-1000", os.O_RDONLY))
            except PermissionError: said[uid].append("no")
            else: said[uid].append("yes")
threads = [threading.Thread(target=work, args=(1000, 0)), threading.Thread(target=work, args=(1001, 1))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*said[1000], *said[1001])'
        is "$output" "yes yes yes yes yes yes yes no no no no no no no"
}

@test "a process that changes its uid for files alone is asked for with that one" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        run -0 in_container /usr/bin/python3 -c 'import ctypes, os
libc = ctypes.CDLL(None)
os.setgroups([])
def reads():
    try: os.close(os.open("/data/only-1000", os.O_RDONLY))
    except PermissionError: return "no"
    return "yes"
said = [reads()]
for uid in 1000, 1001, 1000, 0:
    libc.setfsuid(uid)
    said.append(reads())
print(*said)'
        is "$output" "no yes no yes no"
}

# dies_in_the_middle UID OTHER: that user of the node empties stop-1000, is killed while the server does not answer, and when it does the number of
# its process is that of one of user OTHER.
dies_in_the_middle() {
        local server caller
        server=$(pgrep -nx server-fuse)
        background setpriv --reuid "$1" --regid "$1" --clear-groups /usr/bin/python3 -c 'import os, sys; os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)' "$SERVED/stop-1000"
        caller=$BACKGROUND_PID
        wait_until 20 is_stopped "$server"
        kill -KILL "$caller"
        wait_until 30 process_is_gone "$caller"
        is "$("$FLEXGRAFT_TOOLS/clone-at-pid" "$caller" setpriv --reuid "$2" --regid "$2" --clear-groups sleep 1000000)" "$caller"
        bed_pids+=("$caller")
        kill -CONT "$server"
        stat "$SERVED/stop-1000" >/dev/null # the server has one thread: it has answered the other
}

@test "a process that dies while the server does not answer is asked for as itself, also when its number is another user's by then" {
        file stop-1000 0666 0:0
        serve "$BEHIND"
        dies_in_the_middle 1001 1000
        is "$(<"$SOURCE_DIR/stop-1000")" text "after a user tried whom the server refuses"
        dies_in_the_middle 1000 1001
        is "$(<"$SOURCE_DIR/stop-1000")" '' "after its user emptied it"
}

# task_is_in TASK CALL...: a thread, /proc/PID/task/TID, is in one of those system calls.
task_is_in() {
        local number call
        local -A numbers=()
        case $(uname -m) in
        x86_64) numbers=([pwrite64]=18 [fcntl]=72 [flock]=73) ;;
        aarch64) numbers=([pwrite64]=68 [fcntl]=25 [flock]=32) ;;
        esac
        read -r number _ 2>/dev/null <"$1/syscall" || return 1
        for call in "${@:2}"; do
                [[ $number != "${numbers[$call]}" ]] || return 0
        done
        return 1
}

# is_in_call PID CALL...: a thread of it is.
is_in_call() {
        local task
        for task in "/proc/$1/task"/*; do
                ! task_is_in "$task" "${@:2}" || return 0
        done
        return 1
}

is_in_no_call() {
        ! is_in_call "$@"
}

# On the node.
AS_1000=(setpriv --reuid 1000 --regid 1000 --clear-groups)

# one_is_closed DAEMON: it has the file one open no more, though it may know it.
one_is_closed() {
        local fd
        while IFS= read -r fd; do
                (($(awk '$1 == "flags:" { print $2 }' "/proc/$1/fdinfo/$fd") & 010000000)) || return 1 # O_PATH
        done < <(find "/proc/$1/fd" -lname '*/one' -printf '%f\n' 2>/dev/null)
}

# a_late_write: DAEMON is held, by the strace TRACER, before it writes to one what a process wrote that has been killed meanwhile; others have
# opened two so often since that it has the number of each descriptor that was free.
a_late_write() {
        local fd fds=()
        file one 0666 0:0
        file two 0666 0:0
        serve "$BEHIND"
        DAEMON=$(pgrep -P "$KEEPER" -x remap-daemon)
        strace -f -p "$DAEMON" -e trace=pwrite64 -e inject=pwrite64:delay_enter=60000000 -o "$BATS_TEST_TMPDIR/trace" 2>"$BATS_TEST_TMPDIR/trace.log" 3>&- &
        TRACER=$!
        bed_pids+=("$TRACER")
        wait_until 10 grep -qs attached "$BATS_TEST_TMPDIR/trace.log"
        background "${AS_1000[@]}" /usr/bin/python3 -c 'import os, sys; os.pwrite([os.open(sys.argv[1], os.O_WRONLY) for _ in range(8)][7], b"gone", 0)' "$SERVED/one"
        wait_until 20 is_in_call "$DAEMON" pwrite64
        kill -KILL "$BACKGROUND_PID"
        wait_until 30 process_is_gone "$BACKGROUND_PID"
        for _ in {1..20}; do
                exec {fd}<>"$SERVED/two"
                fds+=("$fd")
        done
        CLOSE=("${fds[@]}")
}

close_two() {
        local fd
        for fd in "${CLOSE[@]}"; do exec {fd}>&-; done
}

@test "what a killed process wrote, and the daemon comes to late, is not written to another file that has its descriptor's number by then" {
        a_late_write
        run ! one_is_closed "$DAEMON"
        kill -KILL "$TRACER" # the daemon goes on
        wait_until 10 is_in_no_call "$DAEMON" pwrite64
        wait_until 10 one_is_closed "$DAEMON"
        close_two
        is "$(<"$SOURCE_DIR/two")" text
}

@test "what a killed process wrote is not repeated by the next daemon, for which its descriptor's number may be another file's" {
        a_late_write
        run ! one_is_closed "$DAEMON"
        kill -KILL "$DAEMON" "$TRACER"
        wait_until 10 process_is_gone "$DAEMON"
        is "$("${AS_1000[@]}" cat "$SERVED/two")" text "through the next daemon"
        close_two
        is "$(cat "$SOURCE_DIR"/{one,two} | xargs)" "text text"
        wait_until 10 one_is_closed "$(pgrep -P "$KEEPER" -x remap-daemon)"
}

@test "processes that wait for locks of a server that does not answer can be killed" {
        local kind pid pids=() server holders=()
        serve "$BEHIND"
        server=$(pgrep -nx server-fuse)
        for kind in posix ofd flock; do
                file "$kind" 0666 0:0
                background_ready "${AS_1000[@]}" "$FLEXGRAFT_TOOLS/fs-calls" lock "$kind" "$BEHIND/$kind"
                holders+=("$BACKGROUND_PID")
        done
        for kind in posix ofd flock; do
                background "${AS_1000[@]}" "$FLEXGRAFT_TOOLS/fs-calls" wait "$kind" "$SERVED/$kind"
                wait_until 20 is_in_call "$BACKGROUND_PID" fcntl flock
                pids+=("$BACKGROUND_PID")
        done
        stop_process "$server"
        wait_until 20 is_in_call "$(pgrep -P "$KEEPER" -x remap-daemon)" fcntl flock
        kill -KILL "${pids[@]}"
        for pid in "${pids[@]}"; do wait_until 30 process_is_gone "$pid"; done
        kill -CONT "$server"
        for kind in posix ofd flock; do
                is "$("${AS_1000[@]}" "$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$SERVED/$kind")" held "$kind, by the server's"
        done
        # nor has one of those that were killed got it since
        for pid in "${holders[@]}"; do end_process "$pid"; done
        for kind in posix ofd flock; do wait_until 10 is_free_for_1000 "$kind" "$SERVED/$kind"; done
}

# a_lock_is_waited_for: by one of PIDS, through the daemon, which the SERVER answers.
a_lock_is_waited_for() {
        file text 0666 0:0
        serve "$BEHIND"
        SERVER=$(pgrep -nx server-fuse)
        background_ready "${AS_1000[@]}" "$FLEXGRAFT_TOOLS/fs-calls" lock posix "$BEHIND/text"
        background "${AS_1000[@]}" "$FLEXGRAFT_TOOLS/fs-calls" wait posix "$SERVED/text"
        PIDS=("$BACKGROUND_PID")
        wait_until 20 is_in_call "$BACKGROUND_PID" fcntl
}

# can_be_killed_without_the_daemon: the PIDS, after it.
can_be_killed_without_the_daemon() {
        local pid
        wait_until 20 waits_for_more_than_a_lock "$(pgrep -P "$KEEPER" -x remap-daemon)"
        kill_served_daemon
        kill -KILL "${PIDS[@]}"
        for pid in "${PIDS[@]}"; do wait_until 30 process_is_gone "$pid"; done
}

@test "processes that wait for a server that does not answer can be killed also when the daemon was killed meanwhile" {
        a_lock_is_waited_for
        stop_process "$SERVER"
        background "${AS_1000[@]}" cat "$SERVED/text"
        PIDS+=("$BACKGROUND_PID")
        can_be_killed_without_the_daemon
        kill -CONT "$SERVER"
        is "$("${AS_1000[@]}" cat "$SERVED/text")" text
}

@test "processes that wait for a server can be killed also when the daemon was killed with a request that the server has read" {
        a_lock_is_waited_for
        file stop-1000 0666 0:0
        background "${AS_1000[@]}" cat "$SERVED/stop-1000"
        PIDS+=("$BACKGROUND_PID")
        wait_until 20 is_stopped "$SERVER"
        can_be_killed_without_the_daemon
        background sh -c 'while kill -CONT "$0"; do sleep 0.1; done' "$SERVER" # the next daemon has asked to open it, too
        is "$("${AS_1000[@]}" cat "$SERVED/text")" text
}

# waits_for_more_than_a_lock DAEMON: a thread of it waits for the server's answer to something else.
waits_for_more_than_a_lock() {
        local task
        for task in "/proc/$1/task"/*; do
                [[ $(cat "$task/wchan" 2>/dev/null) != request_wait_answer ]] || task_is_in "$task" fcntl flock || return 0
        done
        return 1
}

# kill_served_daemon: waits until there is another.
kill_served_daemon() {
        local old
        old=$(pgrep -P "$KEEPER" -x remap-daemon)
        kill -KILL "$old"
        wait_until 20 another_serves "$old"
}

# another_serves OLD: the keeper has a newer daemon, also beside that one, where it cannot end before the server has answered it.
another_serves() {
        local pid
        pid=$(pgrep -nP "$KEEPER" -x remap-daemon) && [[ $pid != "$1" ]]
}

@test "the server gets the supplementary groups of a process, as the container counts them" {
        file shared 0640 0:2000
        mkdir "$SOURCE_DIR/team" && chown 0:2000 "$SOURCE_DIR/team" && chmod 2770 "$SOURCE_DIR/team"
        two_containers "$BEHIND"
        is "$(in_container setpriv --reuid 1000 --regid 1000 --groups 2000 cat /data/shared)" text
        run ! user 1000 cat /data/shared
        GROUPS_TOO=2000 as 1000 append /data/team/new x 1
        is "$(owners "$SOURCE_DIR/team/new")" 1000:2000
        run ! as 1000 append /data/team/other x 1
}

@test "a user namespace that a container, or a user of the node, makes with a map of its choice gives no process the rights of another user" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        user 1001 unshare --user --map-user=1000 --map-group=1000 id -u
        run ! user 1001 unshare --user --map-user=1000 --map-group=1000 cat /data/only-1000
        [[ $output == *'Permission denied'* ]]
        is "$(user 1000 unshare --user --map-root-user cat /data/only-1000)" text
        # also when the container was asked about before
        is "$(user 1000 cat /data/only-1000)" text
        run ! user 1001 unshare --user --map-user=1000 --map-group=1000 cat /data/only-1000
        run ! setpriv --reuid 1001 --regid 1001 --clear-groups unshare --user --map-user=1000 --map-group=1000 cat "$SERVED/only-1000"
        [[ $output == *'Permission denied'* ]]
        is "$(setpriv --reuid 1000 --regid 1000 --clear-groups cat "$SERVED/only-1000")" text
}

@test "a process of a container that has not executed a program there yet is asked for as the container counts it" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        # as runtimes do before a container's program: the kernel lets nobody without CAP_SYS_PTRACE look at such a process
        run -0 python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for name in "user", "mnt":
    fd = os.open(f"/proc/{sys.argv[1]}/ns/{name}", os.O_RDONLY)
    spaces = [fd] if name == "user" else spaces + [fd]
for fd in spaces:
    if libc.setns(fd, 0) < 0: sys.exit(os.strerror(ctypes.get_errno()))
os.setgroups([]); os.setresgid(0, 0, 0)
def reads(uid):
    child = os.fork()
    if child == 0:
        os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
        try: os.open("/data/only-1000", os.O_RDONLY)
        except PermissionError: os._exit(1)
        os._exit(0)
    return "no" if os.waitpid(child, 0)[1] else "yes"
print(reads(1000), reads(1001))' "$FIRST"
        is "$output" "yes no"
}

@test "what the server refuses to a supplementary group is refused to its members" {
        file not-2000 0666 0:0
        two_containers "$BEHIND"
        is "$(user 1000 cat /data/not-2000)" text
        run ! in_container setpriv --reuid 1000 --regid 1000 --groups 2000,2001 cat /data/not-2000
        is "$(in_container setpriv --reuid 1000 --regid 1000 --groups 2001 cat /data/not-2000)" text
}

@test "a lock is asked for by the process that locks, whichever process was served before" {
        file locked 0600 1000:1000
        two_containers "$BEHIND"
        in_container python3 - <<'END'
import fcntl, os

def start(uid, what):
    child = os.fork()
    if child == 0:
        os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
        what()
        os._exit(0)
    return child

def ended(child):
    assert os.waitpid(child, 0)[1] == 0

def lock(mode, kind):
    is_open, opened = os.pipe()
    may_go, go = os.pipe()
    def what():
        with open("/data/locked", mode) as file:
            os.write(opened, b"x")
            os.read(may_go, 1)
            fcntl.lockf(file, kind | fcntl.LOCK_NB)
    child = start(1000, what)
    os.close(opened)
    os.read(is_open, 1)
    ended(start(1001, lambda: os.stat("/data/locked"))) # now the daemon is that user
    os.write(go, b"x")
    ended(child)

for _ in range(4):
    lock("r+", fcntl.LOCK_EX)
    lock("r", fcntl.LOCK_SH)
END
}


@test "a lock that cannot be asked for, as the server does not open the file again, is ENOLCK, and not another process's" {
        file file 0666 1000:1000
        two_containers "$BEHIND"
        talk /usr/bin/python3 -u -c 'import fcntl, os
os.setresgid(1001, 1001, 1001)
os.setresuid(1001, 1001, 1001)
fd = os.open("/data/file", os.O_RDWR)
print("ready")
for how in fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB:
    input()
    try:
        fcntl.lockf(fd, how)
        print("got")
    except OSError as error:
        print(os.strerror(error.errno))
input()'
        chmod 0600 "$SOURCE_DIR/file"
        tell wait
        answer "No locks available"
        tell try
        answer "No locks available"
        tell end
}

@test "a user namespace that maps the node's root is no container's, so that root without CAP_SETUID does not choose who it is" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        is "$(setpriv --bounding-set -setuid --inh-caps -all unshare --user --map-user=1000 --map-group=1000 id -u)" 1000
        run ! setpriv --bounding-set -setuid --inh-caps -all unshare --user --map-user=1000 --map-group=1000 cat "$SERVED/only-1000"
        [[ $output == *'Permission denied'* ]]
}

@test "a daemon that is killed is another's that asks for the same process" {
        file only-1000 0666 0:0
        two_containers "$BEHIND"
        is "$(user 1000 cat /data/only-1000)" text
        kill -KILL "$(pgrep -P "$KEEPER" -x remap-daemon)"
        is "$(user 1000 cat /data/only-1000)" text
        run ! user 1001 cat /data/only-1000
        is "$(owners "$SERVED/only-1000")" 0:0
}

# bats test_tags=deep
@test "file operations of a user give what they give over the server itself" {
        local name
        two_containers "$BEHIND"
        for name in rename errors listing io; do
                mkdir -m 0777 "$SOURCE_DIR/$name"
                run as 1000 "$name" "/data/$name"
                [[ $status == 0 || $status == 77 ]] || { echo "$name: $status $output"; return 1; }
        done
}

# homes NAME...: directories of those names for user 1000.
homes() {
        local name
        for name; do
                install -d -m 0755 -o 1000 -g 1000 "$SOURCE_DIR/$name"
        done
}

# bats test_tags=deep
@test "calls of a user say through it what they say over the server itself" {
        two_containers "$BEHIND"
        homes direct served
        (cd "$BEHIND/direct" && setpriv --reuid 1000 --regid 1000 --clear-groups "$FLEXGRAFT_TOOLS/fs-verdicts" .) | sort >"$BATS_TEST_TMPDIR/of-direct"
        user 1000 /bin/fs-verdicts /data/served | sort >"$BATS_TEST_TMPDIR/of-served"
        (($(wc -l <"$BATS_TEST_TMPDIR/of-direct") > 500))
        diff "$BATS_TEST_TMPDIR"/of-{direct,served}
}

# bats test_tags=deep
@test "random operations of a user on a file do what they should over a server" {
        two_containers "$BEHIND"
        homes random
        user 1000 /bin/random-file-ops /data/random/file 1 700
        is "$(ls -A "$SOURCE_DIR/random")" '' "files left"
}

# bats test_tags=deep
@test "git commits, and clones by links and by copies, for a user over a server" {
        two_containers "$BEHIND"
        homes tree
        user 1000 /bin/sh -c '
                set -e
                export PATH=/usr/bin:/bin HOME=/data/tree GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
                cd /data/tree
                git init -q one
                for i in 1 2 3 4 5; do mkdir one/d$i && echo $i >one/d$i/file; done
                git -C one add -A && git -C one commit -q -m first
                git clone -q --local one linked && git clone -q --no-local linked copied'
        is "$(git -C "$SOURCE_DIR/tree/copied" -c safe.directory='*' fsck --full --strict 2>&1)" '' "at the server"
        is "$(find "$SOURCE_DIR/tree" ! -user 1000)" '' "what is another's at the server"
}

# bats test_tags=deep
@test "rsync and tar carry a tree there and back for a user over a server" {
        two_containers "$BEHIND"
        homes tree
        user 1000 /bin/sh -c '
                set -e
                export PATH=/usr/bin:/bin
                cd /data/tree
                mkdir one one/d1 one/d2 && echo text >one/d1/file
                ln -s d1 one/link && ln one/d1/file one/hard && chmod 0750 one/d2 && truncate -s 1M one/sparse && touch -d 2001-02-03 one/d2
                rsync -aH --sparse one/ by-rsync/
                mkdir by-tar && /usr/bin/tar -C one -c --sparse . | /usr/bin/tar -C by-tar -xp
                for dir in by-rsync by-tar; do [ -z "$(rsync -aHnc --delete --itemize-changes one/ $dir/)" ]; done'
        is "$(find "$SOURCE_DIR/tree" ! -user 1000)" '' "what is another's at the server"
        is "$(find "$SOURCE_DIR/tree" -type f | wc -l)" 9 "files at the server"
}

@test "locks hold between a container and a process of the node that has the server's file without it" {
        local kind
        two_containers "$BEHIND"
        homes locks
        for kind in "${LOCKS[@]}"; do
                talk /bin/fs-calls --uid 1000 --gid 1000 lock "$kind" "/data/locks/$kind"
                is "$("$FLEXGRAFT_TOOLS/fs-calls" --uid 1000 --gid 1000 try "$kind" "$BEHIND/locks/$kind")" held "$kind, of the container"
                end_process "$TALK_PID"
                wait_until 5 is_free_for_1000 "$kind" "$BEHIND/locks/$kind"
                background_ready "$FLEXGRAFT_TOOLS/fs-calls" --uid 1000 --gid 1000 lock "$kind" "$BEHIND/locks/$kind"
                is "$(as 1000 try "$kind" "/data/locks/$kind")" held "$kind, of the node"
                end_process "$BACKGROUND_PID"
                is "$(as 1000 try "$kind" "/data/locks/$kind")" free "$kind, after the node's process has ended"
        done
}

# is_free_for_1000 KIND FILE
is_free_for_1000() {
        [[ $("$FLEXGRAFT_TOOLS/fs-calls" --uid 1000 --gid 1000 try "$1" "$2") == free ]]
}

@test "a quota of the server's filesystem is that of the user who writes, in each container" {
        local dir=$BATS_TEST_TMPDIR/xfs
        umount "$BEHIND"
        make_source xfs
        umount "$dir"
        mount -o uquota "$DEVICE" "$dir" 2>/dev/null || skip "this kernel has no quotas of xfs"
        xfs_quota -x -c 'limit -u bhard=1m 1000' "$dir"
        chmod 0777 "$dir"
        "$FLEXGRAFT_TOOLS/server-fuse" "$dir" "$BEHIND" 3>&-
        two_containers "$BEHIND"
        for CONTAINER in "$FIRST" "$SECOND"; do
                use_container "$CONTAINER"
                run ! user 1000 dd if=/dev/zero of=/data/of-1000 bs=64k count=32
                [[ $output == *'Disk quota exceeded'* ]] || { echo "$output"; return 1; }
                (($(stat -c %s "$dir/of-1000") <= 1 << 20))
                user 1001 dd if=/dev/zero of=/data/of-1001 bs=64k count=32
                is "$(stat -c %u:%s "$dir/of-1001")" "1001:$((2 << 20))"
                rm "$dir"/of-100?
        done
}

@test "a directory is listed although a name in it is longer than those of other filesystems" {
        local i
        two_containers "$BEHIND"
        use_container "$FIRST"
        for i in {1..200}; do touch "$SOURCE_DIR/a-name-$i"; done
        touch "$SOURCE_DIR/long"
        is "$(user 1000 /usr/bin/python3 -c 'import ctypes, os
fd = os.open("/data", os.O_RDONLY)
buffer = ctypes.create_string_buffer(4096)
names = []
while (size := ctypes.CDLL(None).getdents64(fd, buffer, 4096)) > 0:
    at = 0
    while at < size:
        length = int.from_bytes(buffer.raw[at + 16:at + 18], "little")
        names.append(buffer.raw[at + 19:at + length].split(b"\0")[0])
        at += length
    os.stat("/data/a-name-%d" % (len(names) // 10 + 1)) # a lookup has the kernel ask for attributes with the names
print(len(set(names)), len(names), b"l" * 600 in names)')" "203 203 True"
}

# has_at_most PID KIB: memory of its own, and of what it shares with its keeper.
has_at_most() {
        (($(awk '$1 ~ /^Rss(Anon|Shmem):$/ { kib += $2 } END { print kib }' "/proc/$1/status") <= $2))
}

@test "the memory that large reads and writes needed is given back when there are no more of them" {
        without_sanitizers "need more memory"
        local daemon
        two_containers "$BEHIND"
        daemon=$(pgrep -P "$KEEPER" -x remap-daemon)
        chmod 1777 "$SOURCE_DIR"
        as 1000 append /data/large x 1
        setpriv --reuid 1000 --regid 1000 --clear-groups dd if=/dev/zero of="$SERVED/large" bs=1M count=4 status=none
        is "$(in_container /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/cat /data/large | wc -c)" $((4 << 20))
        wait_until 30 has_at_most "$daemon" 512 || { grep Rss "/proc/$daemon/status"; return 1; }
        is "$(setpriv --reuid 1000 --regid 1000 --clear-groups tail -c 1 "$SERVED/large" | od -An -tx1)" " 00"
}
