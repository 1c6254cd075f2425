#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap-upgrade: another remap-daemon serves a mount that is in use.

load helpers
load remap_helpers
load upgrade_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
        needs remap-upgrade
        upgrade_setup
        KEEPER=
}

teardown() {
        served_teardown
}

# ---- what it does

@test "an upgrade has the installed program serve a mount, with one keeper and one daemon" {
        remap_bed ext4
        local before
        before=$(remap_processes)
        helper mount-list '{}'
        [[ $'\n'$before$'\n' == *$'\n'"$(json_field .mounts[0].remap.pid)"$'\n'* ]]
        install_again
        helper remap-upgrade '{"dryRun": true}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].program' old
        assert_field '.mounts[0].container' "$CONTAINER_PID"
        is "$(remap_processes)" "$before" "processes"
        upgrade
        assert_field '.mounts[0].program' upgraded
        the_remap_process remap-keeper
        assert_field '.mounts[0].pid' "$REPLY"
        # shellcheck disable=SC2086
        wait_until 10 processes_are_gone $before
        in_container touch /ext4/after
        helper mount-list '{}'
        assert_field '.mounts[0].remap | tojson' '{"running":true}'     # not a process that is gone
        helper remap-upgrade
        assert_success
        assert_field '.mounts[0].program' current
        one_pair
}

upgrade_again() {
        install_again
        upgrade
}

@test "an upgrade that is asked for while a new daemon begins in place of a killed one works" {
        local old keeper
        remap_bed ext4
        install_again
        the_remap_process remap-keeper
        keeper=$REPLY
        the_remap_process remap-daemon
        old=$REPLY
        # the descriptors of the old one are listed late: the keeper has the order's by then, if it takes it before
        strace -f -p "$keeper" -e trace=getdents64 -e inject=getdents64:delay_enter=2000000 -o "$BATS_TEST_TMPDIR/trace" 2>"$BATS_TEST_TMPDIR/trace.log" 3>&- &
        bed_pids+=($!)
        wait_until 10 grep -qs attached "$BATS_TEST_TMPDIR/trace.log"
        kill -KILL "$old"
        wait_until 10 process_is_gone "$old"
        upgrade
        assert_field '.mounts[0].program' upgraded
        wait_until 10 process_is_gone "$keeper"
        in_container touch /ext4/after
        one_pair
}

# bats test_tags=kernel
@test "open files, also unlinked ones, mappings and locks go on through upgrades" {
        files_go_on upgrade_again
        one_pair
}

@test "a process that waits for a lock goes on waiting, and gets it from the new program" {
        local waiter
        remap_bed ext4
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls wait posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiter" &
        waiter=$!
        wait_until 10 waits_for_a_lock
        upgrade_again
        in_container touch /ext4/other
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" '' "what it says that waits"
        end_process "$BACKGROUND_PID"
        wait_until 10 process_is_gone "$waiter"
        is "$(cat "$BATS_TEST_TMPDIR/waiter")" got
}

# The daemon has a copy of the request while it waits: a descriptor for its lock.
waits_for_a_lock() {
        the_remap_process remap-daemon && grep -q '/file$' <(find "/proc/$REPLY/fd" -printf '%l\n' 2>/dev/null)
}

@test "writers, readers and find notice nothing of upgrades, nor of a daemon or a keeper that is killed after one" {
        local pids=() pid i
        remap_bed ext4
        in_container mkdir /ext4/a /ext4/tree
        "$FLEXGRAFT_TOOLS/fs-calls" many "$BATS_TEST_TMPDIR/ext4/tree" 600
        in_container /bin/fs-calls worker /ext4/a 60 >"$BATS_TEST_TMPDIR/worker" &
        pids+=($!)
        in_container sh -c '
                while [ ! -e /ext4/stop ]; do
                        n=$(find /ext4/tree -type f | wc -l) && [ $n = 600 ] || { echo $n; exit 1; }
                done' &
        pids+=($!)
        for i in 1 2 3; do
                upgrade_again
                assert_field '.mounts[0].program' upgraded
        done
        kill_daemon
        kill_keeper
        upgrade_again
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR/worker"; return 1; }
        done
        wait_until 10 one_pair
}

# bats test_tags=deep
@test "no request is done twice: two names that are exchanged all the time are so once for each call" {
        local pid i
        remap_bed ext4
        echo 0 >"$BATS_TEST_TMPDIR/ext4/0"
        echo 1 >"$BATS_TEST_TMPDIR/ext4/1"
        in_container python3 -c '
import ctypes, os
libc, calls = ctypes.CDLL(None, use_errno=True), 0
while not os.path.exists("/ext4/stop"):
    if libc.renameat2(-100, b"/ext4/0", -100, b"/ext4/1", 2): raise OSError(ctypes.get_errno(), "renameat2")
    calls += 1
    with open("/ext4/0") as file:
        if int(file.read()) != calls % 2: raise SystemExit(f"call {calls} was not done once")' 3>&- &
        pid=$!
        for i in 1 2 3 4 5; do
                upgrade_again
        done
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        wait "$pid"
}

@test "what remap-mount made is upgraded, too, for all containers that have it" {
        IDS=idmapped
        make_source tmpfs
        echo -n text >"$BATS_TEST_TMPDIR/tmpfs/file"
        two_containers "$BATS_TEST_TMPDIR/tmpfs"
        talk /bin/fs-calls hold /data/file
        install_again
        helper remap-upgrade
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].program' upgraded
        [[ $(json_field '.mounts[0].container') == null ]]
        KEEPER=$(json_field '.mounts[0].pid')
        tell "+ more"
        answer "text more"
        in_container touch /data/first
        use_container "$SECOND"
        in_container chown 7:8 /data/first
        is "$(owners "$BATS_TEST_TMPDIR/tmpfs/first" "$SERVED/first")" "7:8 7:8"
}

# operates DIR SOURCE: in the current container, user 1000 does all that can be done to one file there, again and again until there is DIR/stop, and
# each time the file is what it should be. SOURCE is the same directory on the node. Adds to OPERATORS.
operates() {
        # shellcheck disable=SC2016 # its own shell has them
        "${ENTER[@]}" /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups /bin/sh -c '
                i=0
                until [ -e "$0/stop" ]; do /bin/random-file-ops "$1" $((++i)) 60 || exit 1; done
                [ $i -gt 0 ]' "$1" "$1/of-$CONTAINER_PID" 3>&- >"$BATS_TEST_TMPDIR/operates.$CONTAINER_PID" 2>&1 &
        OPERATORS+=("$!")
        wait_until 20 test -e "$2/of-$CONTAINER_PID"
}

# operators_did_well STOP: they are told to end by that file.
operators_did_well() {
        local pid
        touch "$1"
        for pid in "${OPERATORS[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/operates.*; return 1; }
        done
}

# another_daemon KEEPER OLD
another_daemon() {
        local pid
        pid=$(pgrep -P "$1" -x remap-daemon) && [[ $pid =~ ^[0-9]+$ && $pid != "$2" ]]
}

# bats test_tags=deep
@test "over a server, what users of two containers do and the locks they hold go on through upgrades and killed daemons, without an error" {
        local kind pid dir=$BATS_TEST_TMPDIR/tmpfs
        IDS=idmapped OPERATORS=()
        make_source tmpfs
        chmod 0777 "$dir"
        mkdir "$BATS_TEST_TMPDIR/behind"
        "$FLEXGRAFT_TOOLS/server-fuse" "$dir" "$BATS_TEST_TMPDIR/behind" 3>&-
        two_containers "$BATS_TEST_TMPDIR/behind"
        for kind in "${LOCKS[@]}"; do
                background_ready "${ENTER[@]}" /bin/fs-calls --uid 1000 --gid 1000 lock "$kind" "/data/$kind"
        done
        operates /data "$dir"
        use_container "$SECOND"
        operates /data "$dir"
        for kind in 1 2; do
                install_again
                helper remap-upgrade
                assert_success
                assert_field '.mounts[0].program' upgraded
                KEEPER=$(json_field '.mounts[0].pid')
                pid=$(pgrep -P "$KEEPER" -x remap-daemon)
                kill -KILL "$pid"
                wait_until 10 another_daemon "$KEEPER" "$pid"
        done
        for kind in "${LOCKS[@]}"; do
                is "$(as 1000 try "$kind" "/data/$kind")" held "$kind, in the other container"
                is "$("$FLEXGRAFT_TOOLS/fs-calls" --uid 1000 --gid 1000 try "$kind" "$SERVED/$kind")" held "$kind, on the node"
        done
        operators_did_well "$dir/stop"
}

# bats test_tags=deep
@test "over an overlay, which is not passed through, what a user does goes on through upgrades and killed daemons, without an error" {
        local i dir=$BATS_TEST_TMPDIR/tmpfs
        OPERATORS=()
        make_source tmpfs
        mkdir "$dir"/{lower,upper,work} "$BATS_TEST_TMPDIR/behind"
        chmod 0777 "$dir/upper"
        mount -t overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$BATS_TEST_TMPDIR/behind"
        remap_container plain
        remap_mount "$BATS_TEST_TMPDIR/behind" /data
        operates /data "$BATS_TEST_TMPDIR/behind"
        for i in 1 2; do
                upgrade_again
                assert_field '.mounts[0].program' upgraded
                kill_daemon
        done
        operators_did_well "$BATS_TEST_TMPDIR/behind/stop"
        wait_until 10 one_pair
}

# bats test_tags=deep
@test "several mounts are upgraded by one call, and two calls at a time do it once" {
        local first
        remap_bed ext4 tmpfs
        install_again
        "$FLEXGRAFT_BIN/remap-upgrade" '{}' >"$BATS_TEST_TMPDIR/first" 3>&- &
        first=$!
        helper remap-upgrade
        assert_success
        wait "$first"
        is "$({ jq -r '.mounts[].program' "$BATS_TEST_TMPDIR/first"; jq -r '.mounts[].program' <<<"$output"; } | sort | xargs)" \
                "current current upgraded upgraded"
        remember_remap_processes
        is "$(remap_processes | wc -l)" 4 processes
        in_container touch /ext4/x /tmpfs/x
}

# bats test_tags=deep
@test "hundreds of open files have their descriptors with the new program, and no more than those" {
        local before
        remap_bed ext4
        background in_container sh -c 'exec /bin/fs-calls open-many 400 /ext4/file >/tmp/opened'
        touch "$BATS_TEST_TMPDIR/ext4/file"
        wait_until 20 in_container grep -q ready /tmp/opened
        the_remap_process remap-daemon
        before=$(files_of "$REPLY")
        (($(wc -l <<<"$before") > 400))
        upgrade_again
        the_remap_process remap-daemon
        is "$(files_of "$REPLY")" "$before" "descriptors and what they are of"
}

@test "a mount whose container has used up its descriptors is upgraded, and the files are still open" {
        local i before
        make_source tmpfs
        echo text >"$BATS_TEST_TMPDIR/tmpfs/file"
        remap_container
        HELPER_PREFIX=(prlimit --nofile=2000:2000)
        remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
        HELPER_PREFIX=()
        for i in 1 2 3 4 5 6; do
                background in_container sh -c "ulimit -n 10000; exec /bin/fs-calls open-many 9000 /data/file >/tmp/hog.$i"
                wait_until 20 in_container grep -q ready "/tmp/hog.$i"
        done
        [[ $(in_container head -n 1 /tmp/hog.6) == *EMFILE ]]
        the_remap_process remap-daemon
        before=$(files_of "$REPLY")
        upgrade_again
        the_remap_process remap-daemon
        is "$(files_of "$REPLY")" "$before" "descriptors"
        in_container pkill -KILL fs-calls
        wait_until 10 in_container cat /data/file
}

# files_of PID: its descriptors for files of the source.
files_of() {
        find "/proc/$1/fd" -mindepth 1 -lname '*/file*' -printf '%f %l\n' | sort
}

# ---- with which rights

@test "the new program has the rights, the limits, the control groups and the namespaces of the old one" {
        local before name group=/sys/fs/cgroup/pids/flexgraft-test.$RUN_ID
        remap_container
        make_source ext4
        HELPER_PREFIX=(prlimit --nofile=3000:4000)
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        HELPER_PREFIX=()
        before=$(rights)
        install_again
        [[ -d ${group%/*} ]] || group=${group/\/pids/}
        mkdir "$group"
        HELPER_PREFIX=(sh -c 'echo 0 >"$0/cgroup.procs" && echo 100 >/proc/self/oom_score_adj && exec "$@"' "$group")
        upgrade
        HELPER_PREFIX=()
        rmdir "$group" # nothing is in it
        is "$(rights)" "$before" "of keeper and daemon"
        for name in remap-keeper remap-daemon; do
                the_remap_process "$name"
                is "$(find "/proc/$REPLY/fd" -mindepth 1 -lname 'pipe:*')" '' "pipes of $name"
        done
}

# rights: of keeper and daemon.
rights() {
        local name
        for name in remap-keeper remap-daemon; do
                the_remap_process "$name" || return 1
                echo "$name"
                grep -E '^(Cap|Seccomp|NoNewPrivs|Uid|Gid|Groups)' "/proc/$REPLY/status"
                grep -E '^Max (open files|processes|file size|locked memory)' "/proc/$REPLY/limits"
                cat "/proc/$REPLY/cgroup" "/proc/$REPLY/oom_score_adj"
                find "/proc/$REPLY/ns" -mindepth 1 -printf '%l\n' | sort
        done
}

@test "a process that only looks like a keeper is none" {
        remap_bed ext4
        background bash -c 'exec 6<"$1" && printf remap-keeper >/proc/$$/comm && exec -a remap-keeper sleep 1000' - "$STATE_DIR/mounts/.lock"
        cp "$(command -v sleep)" "$BATS_TEST_TMPDIR/remap-keeper"
        background bash -c 'exec 6<"$1" && exec "$2" 1000' - "$STATE_DIR/mounts/.lock" "$BATS_TEST_TMPDIR/remap-keeper"
        wait_until 10 is_called remap-keeper "$!"
        is "$(readlink "/proc/$!/fd/6")" "$STATE_DIR/mounts/.lock"
        helper remap-upgrade '{"dryRun": true}'
        assert_success
        assert_field '.mounts | length' 1
}

is_called() {
        [[ $(<"/proc/$2/comm") == "$1" ]]
}

# ---- what cannot be done

# header KEEPER OFFSET BYTES: of the memory of keeper and daemon.
header() {
        printf %b "$3" | dd of="/proc/$1/fd/9" bs=1 seek="$2" conv=notrunc status=none
}

@test "a program whose memory has another layout is not taken the place of, and serves on without a break" {
        local before layout
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        talk /bin/fs-calls hold /ext4/file
        before=$(remap_processes)
        install_again
        the_remap_process remap-keeper
        layout=$(dd if="/proc/$REPLY/fd/9" bs=1 skip=12 count=1 status=none | od -An -tx1 | tr -d ' ')
        header "$REPLY" 12 '\xff'
        helper remap-upgrade
        is "$status" 1
        assert_field .status Failure
        assert_field '.mounts[0].program' old
        [[ $(json_field '.mounts[0].problem') == *'not what the installed one keeps'*'made anew'* ]]
        is "$(remap_processes)" "$before" processes
        tell "+ more"
        answer "text more"
        header "$REPLY" 12 "\\x$layout"
        upgrade
        tell "+ again"
        answer "text more again"
}

@test "what a newer program of another install serves is not taken from it" {
        local before
        remap_bed ext4
        before=$(remap_processes)
        ln "$FLEXGRAFT_BIN/remap-daemon" "$BATS_TEST_TMPDIR/other" # the other install's
        install_again
        the_remap_process remap-keeper
        header "$REPLY" 56 9 # 9.1.0
        helper remap-upgrade
        assert_success
        assert_field '.mounts[0].program' current
        is "$(remap_processes)" "$before" processes
}

@test "an upgrade right after another finds no keeper that has handed over, also where that ends late" {
        remap_bed ext4
        install_again
        the_remap_process remap-keeper
        strace -p "$REPLY" -e trace=exit_group -e inject=exit_group:delay_enter=1000000 -o "$BATS_TEST_TMPDIR/trace" 2>"$BATS_TEST_TMPDIR/trace.log" 3>&- &
        bed_pids+=($!)
        wait_until 10 grep -qs attached "$BATS_TEST_TMPDIR/trace.log"
        upgrade
        helper remap-upgrade
        assert_success
        assert_field '[.mounts[].program] | join(" ")' current
}

@test "who goes back to an older program has that serve" {
        remap_bed ext4
        install_again
        the_remap_process remap-keeper
        header "$REPLY" 56 9 # 9.1.0
        upgrade
        assert_field '.mounts[0].program' upgraded
}

@test "a program that is too old to hand over is said to be, and serves on" {
        local before
        remap_bed ext4
        before=$(remap_processes)
        install_again
        the_remap_process remap-keeper
        header "$REPLY" 0 'x'
        helper remap-upgrade
        is "$status" 1
        [[ $(json_field '.mounts[0].problem') == *'hands over to none'* ]]
        is "$(json_field '.mounts[0].version')" null
        is "$(remap_processes)" "$before" processes
        in_container touch /ext4/x
        header "$REPLY" 0 'f'
}

@test "an installed program that does not start, or does nothing, leaves the old one at work" {
        local before
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        talk /bin/fs-calls hold /ext4/file
        before=$(remap_processes)
        printf '#!/bin/sh\nexit 3\n' >"$FLEXGRAFT_BIN/remap-daemon.new"
        chmod 0755 "$FLEXGRAFT_BIN/remap-daemon.new"
        cp "$FLEXGRAFT_BIN/remap-daemon" "$BATS_TEST_TMPDIR/kept"
        mv "$FLEXGRAFT_BIN/remap-daemon.new" "$FLEXGRAFT_BIN/remap-daemon"
        helper remap-upgrade
        is "$status" 1
        assert_field '.mounts[0].program' old
        is "$(remap_processes)" "$before" processes
        tell "+ more"
        answer "text more"
        cp "$BATS_TEST_TMPDIR/kept" "$FLEXGRAFT_BIN/remap-daemon.new"
        mv "$FLEXGRAFT_BIN/remap-daemon.new" "$FLEXGRAFT_BIN/remap-daemon"
        upgrade
        tell "+ again"
        answer "text more again"
}

@test "without a state directory, and without mounts, there is nothing to upgrade" {
        helper remap-upgrade
        assert_success
        assert_field '.mounts | length' 0
        remap_container
        make_source ext4
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        helper mount-remove "$(remove_request /ext4)"
        assert_success
        remap_processes_end
        helper remap-upgrade '{}'
        assert_success
        assert_field '.mounts | length' 0
}

@test "remap-upgrade refuses what it does not understand" {
        helper remap-upgrade '{"nonesuch": 1}'
        is "$status" 2
        helper remap-upgrade '{"dryRun": 1}'
        is "$status" 2
}

# ---- killed

# killed_at ROLE NUMBER: one of those that hand over is killed before that call; then an upgrade works. In CALL: the name of the call.
killed_at() {
        local code=0
        the_remap_process remap-keeper || return 1
        install_again
        CALL=$("$FLEXGRAFT_TOOLS/kill-heir" "$1" "$2" "$REPLY" "$FLEXGRAFT_BIN/remap-upgrade" '{}' 2>"$BATS_TEST_TMPDIR/said" 3>&-) || code=$?
        { tell "+x" && answer "$((++SAID))"; } || { echo "$1, call $2 ($CALL): the mount does not serve"; cat "$BATS_TEST_TMPDIR/said"; return 1; }
        wait_until 20 one_pair || { echo "$1, call $2 ($CALL):"; remap_processes; return 1; }
        remember_remap_processes
        [[ $code == [01] ]]
}

# sweep_killed ROLE FIRST STEP
sweep_killed() {
        local number calls=() SAID=0
        remap_bed ext4
        kept_open
        background_ready "${ENTER[@]}" /bin/fs-calls lock posix /ext4/lock
        for ((number = $2; ; number += $3)); do
                killed_at "$1" "$number" || return 1
                [[ $CALL != none ]] || break
                calls+=("$CALL")
        done
        ((${#calls[@]} > 0)) || { echo "calls: ${calls[*]}"; return 1; }
        echo "# $1: ${#calls[@]} points" >&3
        is "$(in_container /bin/fs-calls try posix /ext4/lock)" held
        upgrade_again
        tell "+x"
        answer "$((++SAID))"
}

# A process that has a file open, adds what it is told to it, and says how long it is then.
kept_open() {
        coproc TALK { exec "${ENTER[@]}" /usr/bin/python3 -u -c '
import os, sys
fd = os.open("/ext4/kept", os.O_RDWR | os.O_CREAT | os.O_APPEND)
print("ready")
for line in sys.stdin:
    os.write(fd, line[1:-1].encode())
    print(os.fstat(fd).st_size)' 2>&1 3>&-; }
        bed_pids+=("$TALK_PID")
        TALK_IN=${TALK[1]} TALK_OUT=${TALK[0]}
        answer ready
}

@test "the old keeper may be killed while it hands over: at some of its system calls" {
        sweep_killed keeper 2 7
}

@test "the new program may be killed while it takes over: at some of its system calls" {
        sweep_killed heir 3 17
}

@test "the one in reserve may be killed: at some of its system calls" {
        sweep_killed reserve 1 1
}

@test "the new daemon may be killed when it begins: at some of its system calls" {
        sweep_killed daemon 2 15
}

# bats test_tags=sweep
@test "remap-upgrade killed, or refused, at any call: the mount serves, and the next one upgrades it" {
        local how replaced
        remap_container
        make_source tmpfs
        touch "$BATS_TEST_TMPDIR/tmpfs/file"
        replaced="cp '$FLEXGRAFT_BIN/remap-daemon' '$FLEXGRAFT_BIN/new' && mv '$FLEXGRAFT_BIN/new' '$FLEXGRAFT_BIN/remap-daemon'"
        for how in --kill --kill-main '--fail ENOMEM'; do
                remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
                # shellcheck disable=SC2086
                LABEL=$how sweep --leave remap-daemon $how -- \
                        sh "$replaced" ';' \
                        act "$FLEXGRAFT_BIN/remap-upgrade" '{}' ';' \
                        sh "${ENTER[*]} mv /data/file /data/other && ${ENTER[*]} mv /data/other /data/file" ';' \
                        sh "$replaced" ';' \
                        call "$FLEXGRAFT_BIN/remap-upgrade" '{}' ';' \
                        sh "${ENTER[*]} touch /data/file" ';' \
                        sh 'for i in $(seq 200); do [ "$(ps -eo stat=,comm= | grep -Ec "^[^Z ]+ +remap-(keeper|daemon|reserve)$")" != 2 ] || exit 0; sleep 0.1; done; exit 1' ';'
                # who served it at last was ended with the sweep
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
}

@test "remap-upgrade ends, whichever look at a file is refused" {
        local number calls
        remap_container
        make_source tmpfs
        remap_mount "$BATS_TEST_TMPDIR/tmpfs" /data
        install_again
        at_syscall --log "$BATS_TEST_TMPDIR/calls" --leave remap-daemon "$FLEXGRAFT_BIN/remap-upgrade" '{}'
        assert_success
        calls=$(awk '$3 == "newfstatat"' "$BATS_TEST_TMPDIR/calls" | wc -l)
        ((calls > 20))
        for ((number = 1; number <= calls; number++)); do
                install_again
                at_syscall --timeout 30 --leave remap-daemon --at "newfstatat:$number" --fail ENOMEM "$FLEXGRAFT_BIN/remap-upgrade" '{}'
                [[ $status != 124 ]] || { echo "with call $number of $calls refused it did not end"; return 1; }
        done
}

# verify_until_stop NAME OPTION...: fio in the container writes and verifies, again and again, until /ext4/stop is there; its processes in pids.
verify_until_stop() {
        local name=$1
        shift
        in_container mkdir "/ext4/$name"
        "${ENTER[@]}" sh -c 'n=0; while [ ! -e /ext4/stop ]; do
                n=$((n + 1))
                fio --name=verify --directory="$0" --thread --size=4m --bsrange=512-64k --bs_unaligned=0 --verify=crc32c --verify_fatal=1 --do_verify=1 \
                        --verify_dump=0 --allow_mounted_write=1 --randseed=$n --output-format=terse "$@" >/tmp/fio.log 2>&1 || { cat /tmp/fio.log; exit 1; }
                rm -f "$0"/*
        done; echo $n' "/ext4/$name" "$@" 3>&- >"$BATS_TEST_TMPDIR/fio.$name" 2>&1 &
        pids+=($!)
}

# bats test_tags=deep
@test "fio finds all that it wrote, and no call fails, while daemons and keepers are killed and upgraded" {
        local kills=${FLEXGRAFT_REMAP_KILLS:-8} upgrades=${FLEXGRAFT_REMAP_UPGRADES:-4} pids=() pid i j done=0 name kind SAID=0
        remap_bed ext4
        kept_open
        for kind in "${LOCKS[@]}"; do
                background_ready "${ENTER[@]}" /bin/fs-calls lock "$kind" "/ext4/lock.$kind"
        done
        verify_until_stop write --rw=write --ioengine=psync
        verify_until_stop random --rw=randwrite --ioengine=psync --fsync=32 --numjobs=2
        verify_until_stop mapped --rw=randwrite --ioengine=mmap --bs=4k
        in_container mkdir /ext4/a
        in_container /bin/fs-calls worker /ext4/a 3600 3>&- >"$BATS_TEST_TMPDIR/worker" &
        pids+=($!)
        for ((i = 1; i <= upgrades; i++)); do
                upgrade_again
                assert_field '.mounts[0].program' upgraded
                for ((j = 0; j < kills / upgrades; j++)); do
                        if ((j % 3 == 2)); then kill_keeper; else kill_daemon; fi
                        done=$((done + 1))
                        tell "+x"
                        answer "$((++SAID))"
                        for kind in "${LOCKS[@]}"; do
                                is "$("$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$BATS_TEST_TMPDIR/ext4/lock.$kind")" held "$kind, after kill $done"
                        done
                        for pid in "${pids[@]}"; do
                                kill -0 "$pid" || { cat "$BATS_TEST_TMPDIR"/{fio.*,worker}; return 1; }
                        done
                done
        done
        touch "$BATS_TEST_TMPDIR/ext4/stop"
        for pid in "${pids[@]}"; do
                wait "$pid" || { cat "$BATS_TEST_TMPDIR"/{fio.*,worker}; return 1; }
        done
        wait_until 10 one_pair
        echo "# $done kills, $upgrades upgrades; fio wrote and verified $(cat "$BATS_TEST_TMPDIR"/fio.* | xargs) times; $(tail -n 1 "$BATS_TEST_TMPDIR/worker")" >&3
}

# bats test_tags=deep
@test "the old keeper may be killed while it hands over: at each of its system calls" {
        sweep_killed keeper 1 1
}

# bats test_tags=deep
@test "the new program may be killed while it takes over: at each of its system calls" {
        sweep_killed heir 1 1
}

# bats test_tags=deep
@test "the new daemon may be killed when it begins: at each of its system calls" {
        sweep_killed daemon 1 1
}
