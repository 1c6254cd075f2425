# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# What tests of remap need besides helpers.bash: filesystems that are its sources, a container that has the programs of the
# node, and its processes.
#
# FLEXGRAFT_TEST_IDS=idmapped runs them over id-mapped mounts, to see which of them ask for more than the kernel itself gives.
# FLEXGRAFT_TEST_BASE: where the ids of containers begin; one of its own keeps a run apart from containers that stop what is theirs.

remap_setup() {
        IDS=${FLEXGRAFT_TEST_IDS:-remap}
        bed_setup
        needs mount-bind mount-remove mount-list
        [[ $IDS != remap ]] || needs remap-daemon
        remap_pids=() CHECK_NUMBER=0
}

# The containers end first, and then what served them, by itself.
remap_teardown() {
        local pid device failed=0
        for pid in "${bed_pids[@]}"; do
                kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
        done
        for pid in "${!bed_kind[@]}"; do
                stop_container "$pid"
        done
        wait_until 10 processes_are_gone "${remap_pids[@]}" || {
                failed=1
                for pid in "${remap_pids[@]}"; do
                        echo "is left: $pid $(cat "/proc/$pid/comm") $(cat "/proc/$pid/wchan")"
                done 2>/dev/null
        }
        # A mount namespace that somebody else made meanwhile, another run of tests say, has a copy of these mounts until it ends.
        for device in "${bed_loops[@]}"; do
                umount -l "$BATS_TEST_TMPDIR"/{ext4,xfs,btrfs} 2>/dev/null || :
                wait_until 60 release_device "$device" >/dev/null || failed=1
        done
        bed_teardown || failed=1
        return "$failed"
}

processes_are_gone() {
        local pid
        for pid; do
                process_is_gone "$pid" || return 1
        done
}

# has_children PID COUNT
has_children() {
        [[ $(pgrep -c -P "$1") == "$2" ]]
}

# make_source ext4|xfs|btrfs|tmpfs: an empty filesystem on the node, at $BATS_TEST_TMPDIR/TYPE.
make_source() {
        local dir=$BATS_TEST_TMPDIR/$1
        mkdir -m 0755 "$dir"
        if [[ $1 == tmpfs ]]; then
                mount -t tmpfs -o mode=0755,size=512m tmpfs "$dir"
                return
        fi
        IMAGE=$BATS_TEST_TMPDIR/image.$((++bed_serial))
        truncate -s "${SIZE:-512M}" "$IMAGE"
        case $1 in
        ext4) mkfs.ext4 -q -F -b 4096 -m 0 -N 60000 -O ^has_journal,^resize_inode -E nodiscard,lazy_itable_init=1,root_owner=0:0 "$IMAGE" ;;
        xfs) mkfs.xfs -q -K "$IMAGE" ;;
        btrfs) mkfs.btrfs -q -K "$IMAGE" >/dev/null 2>&1 ;;
        esac
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
        mount "$DEVICE" "$dir"
        [[ $1 != ext4 ]] || rmdir "$dir/lost+found"
}

# remap_container [KIND [BASE [FUNCTION]]]: a container with programs of the tests, and the node's /usr; FUNCTION is run with its root directory
# before it starts.
remap_container() {
        local kind=${1:-plain} base=${2:-${FLEXGRAFT_TEST_BASE:-100000}} rootfs=$BATS_TEST_TMPDIR/remap.$((++bed_serial))/rootfs
        make_rootfs "$rootfs" "$base"
        install -m 0755 "$FLEXGRAFT_TOOLS"/{fs-calls,fs-verdicts,random-file-ops} "$rootfs/bin/"
        ln -s usr/lib "$rootfs/lib"
        ln -s usr/lib64 "$rootfs/lib64"
        [[ -z ${3:-} ]] || "$3" "$rootfs"
        mount --bind /usr "$rootfs/usr"
        ROOTFS=$rootfs start_container "$kind" "$base"
        umount -l "$rootfs/usr"
        # What in_container begins with: for a program in the background, so that its pid is that of nsenter.
        ENTER=(env -i PATH=/bin:/sbin:/usr/bin:/usr/sbin /usr/bin/nsenter --target "$CONTAINER_PID" --mount --net --uts --ipc)
        [[ $kind == *-nouserns* ]] || ENTER+=(--user)
        [[ $kind == *-hostpid* ]] || ENTER+=(--pid)
        ENTER+=(--)
}

# remap_mount SOURCE TARGET [MORE]: into the current container, by a call that must succeed.
remap_mount() {
        SOURCE=$1
        helper mount-bind "$(bind_request "$2" "\"ids\": \"$IDS\"${3:+, $3}")"
        assert_success
        assert_field .mount.idMapping "$IDS"
        remember_remap_processes
}

# forget_names TARGET: the kernel forgets what it knows of the files there that nobody uses, of this mount alone.
forget_names() {
        "$FLEXGRAFT_TOOLS/reconfigure" "/proc/$CONTAINER_PID/root$1"
}

# remap_bed [TYPE...]: those filesystems (both: ext4 and tmpfs), in a container at /TYPE.
remap_bed() {
        local type
        (($#)) || set -- ext4 tmpfs
        remap_container plain
        for type; do
                make_source "$type"
                remap_mount "$BATS_TEST_TMPDIR/$type" "/$type"
        done
        TYPES=("$@")
}

# remap_processes [NAME]: the processes that serve the current container; NAME: only those of that name.
remap_processes() {
        local pid name
        for name in ${1:-remap-keeper remap-daemon}; do
                for pid in $(pgrep -x "$name"); do
                        [[ $(readlink "/proc/$pid/exe") == "$FLEXGRAFT_BIN"/* ]] || continue
                        [[ -z $(find "/proc/$pid/fd" -lname "/proc/$CONTAINER_PID*" -print -quit 2>/dev/null) ]] || echo "$pid"
                done
        done
}

remember_remap_processes() {
        local pid
        for pid in $(remap_processes); do
                [[ " ${remap_pids[*]} " == *" $pid "* ]] || remap_pids+=("$pid")
        done
}

# the_remap_process NAME: the only one of that name that serves the current container, in REPLY.
the_remap_process() {
        REPLY=$(remap_processes "$1")
        [[ $REPLY =~ ^[0-9]+$ ]] && return 0
        echo "processes $1 that serve container $CONTAINER_PID: ${REPLY:-none}"
        return 1
}

# there_is_another NAME PID: and it is not PID.
there_is_another() {
        the_remap_process "$1" >/dev/null && [[ $REPLY != "$2" ]]
}

no_remap_processes() {
        [[ -z $(remap_processes) ]]
}

# remap_processes_end: those that there were end within seconds, by themselves.
remap_processes_end() {
        ((${#remap_pids[@]} > 0)) || [[ $IDS != remap ]] || { echo "there were none"; return 1; }
        wait_until 5 processes_are_gone "${remap_pids[@]}"
}

# kill_daemon: waits until another is there.
kill_daemon() {
        the_remap_process remap-daemon || return 1
        local old=$REPLY
        kill -KILL "$old"
        wait_until 10 there_is_another remap-daemon "$old" || return 1
        remap_pids+=("$REPLY")
}

# kill_traced_daemon: one that strace, TRACER, holds in a call: it ends with strace, not when the delay is over.
kill_traced_daemon() {
        the_remap_process remap-daemon || return 1
        local old=$REPLY
        kill -KILL "$old"
        kill -KILL "$TRACER"
        wait "$TRACER" || :
        wait_until 10 there_is_another remap-daemon "$old" || return 1
        remap_pids+=("$REPLY")
}

kill_keeper() {
        the_remap_process remap-keeper || return 1
        local old=$REPLY
        kill -KILL "$old"
        wait_until 10 there_is_another remap-keeper "$old" || return 1
        remap_pids+=("$REPLY")
}

# trace_daemon OPTION...: strace follows the daemon's openat calls until trace_ends; its lines are in TRACE.
trace_daemon() {
        the_remap_process remap-daemon
        TRACE=$BATS_TEST_TMPDIR/trace
        rm -f "$TRACE" "$TRACE.log" # those of an earlier one: what is new is told by being there
        strace -f -p "$REPLY" -e trace=openat "$@" -o "$TRACE" 2>"$TRACE.log" 3>&- &
        TRACER=$!
        bed_pids+=("$TRACER")
        wait_until 10 grep -qs attached "$TRACE.log"
}

# has_answered_a_release TRACE: a daemon whose reads and writes strace writes there.
has_answered_a_release() {
        awk '/read/ && index($0, "\"@\\0\\0\\0\\22\\0") { read = 1 } read && /write\(3,/ { found = 1 } END { exit !found }' "$1"
}

trace_ends() {
        kill "$TRACER"
        wait "$TRACER" || :
}

# descriptors PID: how many it has open.
descriptors() {
        find "/proc/$1/fd" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l
}

has_few_descriptors() {
        (($(descriptors "$1") <= $2))
}

# as UID COMMAND...: fs-calls in the container, as that user, whose group has the same number; GROUPS_TOO=N,N: with those groups.
as() {
        local id=$1
        shift
        in_container /bin/fs-calls --uid "$id" --gid "$id" ${GROUPS_TOO:+--groups "$GROUPS_TOO"} "$@"
}

# check NAME: that check of fs-calls, over each filesystem; what one cannot do on the node it cannot do in the container.
check() {
        local type dir code=0
        for type in "${TYPES[@]}"; do
                dir=$1.$((++CHECK_NUMBER))
                mkdir -m 0755 "$BATS_TEST_TMPDIR/$type/$dir"
                code=0
                in_container /bin/fs-calls "$1" "/$type/$dir" || code=$?
                if [[ $code == 77 ]]; then
                        echo "$type: not supported"
                        mkdir "$BATS_TEST_TMPDIR/$type/$dir.node"
                        run "$FLEXGRAFT_TOOLS/fs-calls" "$1" "$BATS_TEST_TMPDIR/$type/$dir.node"
                        is "$status" 77 "what it says on the node itself"
                elif [[ $code != 0 ]]; then
                        echo "$1 over $type: $code"
                        return 1
                fi
        done
}

# talk COMMAND...: runs it in the container until teardown, to be written to by `tell` and read by `answer`.
talk() {
        coproc TALK { exec "${ENTER[@]}" "$@" 2>&1 3>&-; }
        bed_pids+=("$TALK_PID")
        TALK_IN=${TALK[1]} TALK_OUT=${TALK[0]}
        answer ready
}

tell() {
        echo "$1" >&"$TALK_IN"
}

# answer TEXT: what it says next.
answer() {
        local line=''
        read -r -t 120 line <&"$TALK_OUT" || line="nothing: $line"
        is "$line" "$1" "answer"
}

# only_remap: for what a mount by the kernel alone has not.
only_remap() {
        [[ $IDS == remap ]] || skip "it is about ids: remap"
}

# set_id_differences remap|mappable: what fs-verdicts says otherwise of chown(2) that names no owner, which the kernel asks for as it asks for the
# set-id bits to go before anybody's write: so nobody is refused. Where the kernel alone checks, nobody knows who asks: there it does nothing, and
# the setgid bit of a file that its group may not execute goes as from those who are not in the group.
set_id_differences() {
        local who change
        differs 2666,\ another 'chown of nobody' EPERM 2666 4 ok 2666
        differs 6777,\ another 'chown of nobody' EPERM 6777 4 ok 6777
        [[ $1 == mappable ]] || return 0
        for who in 6777,\ root '6777, the owner, in the group' 6777,\ the\ owner; do
                differs "$who" 'chown of nobody' ok 0777 4 ok 6777
        done
        differs '2666, the owner' 'chown of nobody' ok 0666 4 ok 2666
        for who in 2666,\ root '2666, the owner, in the group'; do
                for change in 'chown of the group 4' 'chown of the owner 4' 'fallocate 100' 'open, O_TRUNC 0' 'truncate 1' 'write 4'; do
                        differs "$who" "${change% *}" ok 2666 "${change##* }" ok 0666
                done
        done
}

# differs FAMILY CALL ANSWER MODE SIZE ANSWER MODE: directly the former, through remap the latter.
differs() {
        local of=", file" with="of 1000:2000, links 1, size $5"
        echo "< set-id of $1: $2: $3$of $4 $with"
        echo "> set-id of $1: $2: $6$of $7 $with"
}

# ---- one name, in what is served and at its source

# creates_again_and_again FILE SOURCE COMMAND...: COMMAND is of one who may create FILE, and not open another's; FILE is created, written to and
# unlinked in the background. SOURCE: the same file, on the node.
creates_again_and_again() {
        background "${@:3}" /usr/bin/python3 -c 'import os, sys
while True:
    try:
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, b"x")
        os.close(fd)
        os.unlink(sys.argv[1])
    except (PermissionError, FileNotFoundError): pass
    except OSError as error:
        if error.errno != 116: raise # ESTALE, twice in a row' "$1"
        wait_until 10 test -e "$2"
}

# writes_alone FILE COMMAND...: makes that file 3,000 times meanwhile, by COMMAND, and the other never writes to one that is made here.
writes_alone() {
        "${@:2}" /usr/bin/python3 -c 'import os, sys
made = 0
while made < 3000:
    try: fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError: continue
    made += 1
    for _ in range(20): os.stat(fd)
    if os.fstat(fd).st_size: sys.exit(f"the other wrote to it, after {made}")
    os.close(fd)
    try: os.unlink(sys.argv[1])
    except FileNotFoundError: pass' "$1"
        kill -0 "$BACKGROUND_PID"
}

# ---- locks

LOCKS=(posix ofd flock)

is_free() {
        [[ $(in_container /bin/fs-calls try "$1" "$2") == free ]]
}

is_free_on_the_node() {
        [[ $("$FLEXGRAFT_TOOLS/fs-calls" try "$1" "$2") == free ]]
}

# ---- databases

# sqlite_storm PID PID FILE [SECONDS]: processes in two containers add rows to one SQLite database, and count them, all under SQLite's locks.
sqlite_storm() {
        local pid jobs=() script
        script='
import sqlite3, sys, time
base = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
end = time.monotonic() + float(sys.argv[2])
added = 0
while time.monotonic() < end or added < 4: # a busy machine may be slow
    base.execute("begin immediate")
    rows, = base.execute("select count(*) from row").fetchone()
    kept, = base.execute("select n from total").fetchone()
    if rows != kept:
        sys.exit(f"{rows} rows, but {kept} were added")
    base.execute("insert into row values (?)", ("x" * 500,))
    base.execute("update total set n = n + 1")
    base.execute("commit")
    added += 1
'
        use_container "$1"
        in_container python3 -c 'import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.executescript("create table row (text); create table total (n); insert into total values (0)")' "$3"
        for pid in "$1" "$2"; do
                use_container "$pid"
                in_container python3 -c "$script" "$3" "${4:-${FLEXGRAFT_SQLITE_SECONDS:-5}}" 3>&- & jobs+=($!)
        done
        for pid in "${jobs[@]}"; do
                wait "$pid"
        done
}

# sqlite_look FILE: "ok" if the database is intact, and has the rows that were added, some.
sqlite_look() {
        python3 -c 'import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
print(base.execute("pragma integrity_check").fetchone()[0])
rows, = base.execute("select count(*) from row").fetchone()
kept, = base.execute("select n from total").fetchone()
if rows != kept or rows < 4: print(rows, kept)' "$1"
}

# ---- remap-mount

# serve SOURCE [MORE]: at $BATS_TEST_TMPDIR/served.
serve() {
        SERVED=$BATS_TEST_TMPDIR/served
        mkdir -p "$SERVED"
        helper remap-mount "{\"source\": \"$1\", \"target\": \"$SERVED\"${2:+, $2}}"
        [[ $(json_field .error.errno) != ENOSYS || $(json_field .message) != *'Linux 6.12'* ]] || skip "the kernel cannot id-map FUSE"
        assert_success
        KEEPER=$(keeper_of "$1")
}

keeper_of() {
        local pid
        for pid in $(pgrep -x remap-keeper); do
                [[ $(readlink "/proc/$pid/exe") != "$FLEXGRAFT_BIN"/* || $(readlink "/proc/$pid/fd/4") != / ]] || echo "$pid"
        done
}

# two_containers SOURCE: both have it at /data, with maps of their own; the first is the current one.
two_containers() {
        serve "$1"
        remap_container plain 100000
        FIRST=$CONTAINER_PID
        remap_mount "$SERVED" /data
        remap_container plain 200000
        SECOND=$CONTAINER_PID
        remap_mount "$SERVED" /data
        use_container "$FIRST"
}

owners() {
        stat -c %u:%g "$@" | xargs
}

# served_teardown: remap_teardown, and what served SERVED has ended; then what lies behind it goes.
served_teardown() {
        local failed=0
        umount -l "$BATS_TEST_TMPDIR/served" 2>/dev/null || :
        remap_teardown || failed=1
        [[ -z ${KEEPER:-} ]] || wait_until 10 process_is_gone "$KEEPER" || { echo "$KEEPER is left"; failed=1; }
        umount -l "$BATS_TEST_TMPDIR"/{behind,tmpfs} 2>/dev/null || :
        return "$failed"
}

# files_go_on COMMAND...: open files, also unlinked ones, a mapping and locks go on through the command, twice.
files_go_on() {
        local kind hold_in hold_out line mapped_in mapped_out said=text word
        remap_bed ext4
        echo -n text >"$BATS_TEST_TMPDIR/ext4/file"
        coproc MAPPED { exec "${ENTER[@]}" /bin/fs-calls mapped /ext4/mapped 4000000 3>&-; }
        bed_pids+=("$MAPPED_PID")
        mapped_in=${MAPPED[1]} mapped_out=${MAPPED[0]}
        read -r -t 120 line <&"$mapped_out" && [[ $line == ready ]]
        for kind in "${LOCKS[@]}"; do
                background_ready "${ENTER[@]}" /bin/fs-calls lock "$kind" "/ext4/lock.$kind"
        done
        talk /bin/fs-calls hold /ext4/file
        hold_in=$TALK_IN hold_out=$TALK_OUT
        in_container rm /ext4/file
        for word in more and; do
                "$@"
                said+=" $word"
                echo "+ $word" >&"$hold_in"
                read -r -t 120 line <&"$hold_out"
                is "$line" "$said"
        done
        for kind in "${LOCKS[@]}"; do
                is "$("$FLEXGRAFT_TOOLS/fs-calls" try "$kind" "$BATS_TEST_TMPDIR/ext4/lock.$kind")" held "$kind, on the node"
                is "$(in_container /bin/fs-calls try "$kind" "/ext4/lock.$kind")" held "$kind, in the container"
        done
        exec {mapped_in}>&-
        eval "exec ${MAPPED[1]}>&-" 2>/dev/null || :
        read -r -t 120 line <&"$mapped_out"
        is "$line" right "the mapping"
}

# daemons_are_killed_while PID: again and again until the process ends, which it is to do well.
daemons_are_killed_while() {
        local i
        for ((i = 0; i < 200; i++)); do
                process_is_gone "$1" && break
                kill_daemon
                sleep "0.$((i * 7 % 10))"
        done
        echo "$i daemons were killed"
        wait "$1"
}
