#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap: rights on the node, and containers that mean harm.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
}

teardown() {
        remap_teardown
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
                        "setfacl -m u:5:r file" "setfattr -n user.a -v 1 file" "chattr +d file" "chattr +d ." "setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 file" \
                        "/usr/bin/python3 -c 'import os; os.open(\".\", os.O_TMPFILE | os.O_RDWR)'"; do
                        run in_container sh -c "cd /$type && $command"
                        [[ $status != 0 ]] || { echo "$command succeeds over $type"; return 1; }
                done
                is "$(in_container cat "/$type/file")" text
                in_container sh -c "cd /$type && echo hello >fifo & cat /$type/fifo" || :
                is "$(cd "$dir" && find . ! -name fifo -printf '%p %m %u %n %s %T@ %C@\n' | sort)" "$(grep -v ./fifo <<<"$before")" "what is on the node"
        done
}

# bats test_tags=kernel,kernel_too
@test "a process with 30 groups may open what one of them may, and other processes may not" {
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

@test "a file that the node gives to a user whom the container does not have is no more its root's, which has it open" {
        local type
        remap_bed
        for type in ext4 tmpfs; do
                : >"$BATS_TEST_TMPDIR/$type/file"
                gives_away "/$type/file" "$BATS_TEST_TMPDIR/$type/file"
        done
}

# gives_away FILE ON_THE_NODE: a process of the container has it open, whose kernel asks no more whose it is.
gives_away() {
        talk /usr/bin/python3 -u -c '
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
print("ready")
for line in sys.stdin:
    said = []
    for call in (lambda: os.fchmod(fd, 0o4777)), (lambda: os.fchown(fd, 0, 0)), (lambda: os.utime(fd, (1, 1))):
        try: said.append(call() or "ok")
        except OSError as error: said.append(errno.errorcode[error.errno])
    print(*said)' "$1"
        chmod 0600 "$2"
        chown 100000:100000 "$2"
        tell try
        answer "EPERM EPERM EPERM"
        end_process "$TALK_PID"
        is "$(stat -c %u:%g:%a "$2")" 100000:100000:600
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

# bats test_tags=kernel,kernel_too
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
        counts=$(in_container sh -c 'inside=0 i=0
                while [ $((i += 1)) -le 10000 ]; do
                        read line </data/p/a/file || continue
                        [ "$line" = inside ] && inside=$((inside + 1)) || echo "$line"
                        echo more >/data/p/a/made; echo more >>/data/p/b/made
                done 2>/dev/null
                echo $inside')
        echo "read: $counts"
        [[ $counts =~ ^[0-9]+$ ]]
        is "$(ls "$dir/outside")" file
}

# bats test_tags=kernel,kernel_too
@test "a mount below the source on the node is not shown" {
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

# bats test_tags=kernel,kernel_too
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

# ---- containers that mean harm

# bats test_tags=kernel,kernel_too
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

# bats test_tags=kernel,kernel_too
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
                        /proc/[0-9]*/fd) [[ " ${remap_pids[*]} " == *" ${link//[!0-9]/} "* ]] ;; # its own descriptors, by number
                        / | /file) [[ $(stat -Lc %d "$fd") == "$(stat -c %d "$BATS_TEST_TMPDIR/ext4")" ]] ;;
                        *)
                                echo "$(cat "/proc/$pid/comm") has $fd: $link"
                                return 1
                                ;;
                        esac
                done
        done
}

# bats test_tags=kernel,kernel_too
@test "2,000 processes that wait for a lock keep no other from working" {
        only_remap
        local count=2000 daemon
        remap_bed ext4
        kernel_can statmount || count=1200
        touch "$BATS_TEST_TMPDIR/ext4/file"
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls waiters "$count" posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiters" 2>&1 &
        local waiters=$!
        wait_until 30 grep -q ready "$BATS_TEST_TMPDIR/waiters"
        sleep 1
        the_remap_process remap-daemon
        daemon=$REPLY
        echo "threads: $(find "/proc/$daemon/task" -mindepth 1 -maxdepth 1 | wc -l), descriptors: $(descriptors "$daemon")"
        grep -E '^Vm(RSS|HWM)' "/proc/$daemon/status"
        not_hung in_container /bin/fs-calls append /ext4/other x 100
        not_hung in_container ls /ext4
        kill -KILL "$(pgrep -P "$waiters")" # nsenter waits for it
        wait_until 20 process_is_gone "$waiters"
        end_process "$BACKGROUND_PID"
        wait_until 20 is_free_on_the_node ofd "$BATS_TEST_TMPDIR/ext4/file"
        wait_until 20 is_free posix /ext4/file
        in_container /bin/fs-calls append /ext4/other x 100
        the_remap_process remap-daemon
        is "$REPLY" "$daemon" "the daemon, which never died"
        wait_until 10 has_few_descriptors "$daemon" 60
        wait "$waiters" 2>/dev/null || :
}

@test "of 2,400 processes of one user that would wait for a lock 2,304 do, also through a killed daemon, and the others are refused" {
        only_remap
        local waiters parent other
        remap_bed ext4
        install -m 0666 /dev/null "$BATS_TEST_TMPDIR/ext4/file"
        background_ready "$FLEXGRAFT_TOOLS/fs-calls" lock ofd "$BATS_TEST_TMPDIR/ext4/file"
        "${ENTER[@]}" /bin/fs-calls waiters 2400 read-posix /ext4/file 3>&- >"$BATS_TEST_TMPDIR/waiters" 2>&1 &
        waiters=$!
        wait_until 30 grep -q ready "$BATS_TEST_TMPDIR/waiters"
        parent=$(pgrep -P "$waiters")
        wait_until 30 has_children "$parent" 2304
        as 1000 wait read-posix /ext4/file >"$BATS_TEST_TMPDIR/other" 3>&- &
        other=$!
        kill_daemon
        in_container touch /ext4/other
        has_children "$parent" 2304
        end_process "$BACKGROUND_PID"
        wait_until 30 process_is_gone "$waiters"
        wait "$other"
        is "$(cat "$BATS_TEST_TMPDIR/other")" got "what another user says"
}

# bats test_tags=kernel,kernel_too
@test "300 processes that work at once all get correct results" {
        remap_bed ext4
        local count=300
        kernel_can statmount || count=100
        in_container mkdir /ext4/dir
        is "$(in_container /bin/fs-calls parallel "$count" 2 /ext4/dir)" "0 of $count failed"
        is "$(ls -A "$BATS_TEST_TMPDIR/ext4/dir")" ''
}

# bats test_tags=kernel,kernel_too
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
        the_remap_process remap-daemon
        for i in "${bed_pids[@]}"; do end_process "$i"; done
        wait_until 10 in_container cat /ext4/other
        wait_until 10 has_few_descriptors "$REPLY" 60
}

@test "files that were looked up leave half of the descriptors to open files, also on a source without file handles" {
        only_remap
        local dir=$BATS_TEST_TMPDIR/tmpfs
        make_source tmpfs
        mkdir "$dir"/{lower,upper,work,merged}
        (cd "$dir/lower" && touch file-{1..1800})
        mount -t overlay -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/merged"
        remap_container
        HELPER_PREFIX=(prlimit --nofile=2000:2000)
        remap_mount "$dir/merged" /data
        HELPER_PREFIX=()
        umount -l "$dir/merged"
        in_container cat /data/file-1
        run in_container find /data -type f -size 0
        [[ $status != 0 && $output == *'Too many open files in system'* ]]
        background in_container sh -c 'exec /bin/fs-calls open-many 300 /data/file-1 >/tmp/opened'
        wait_until 20 in_container grep -q ready /tmp/opened
        is "$(in_container head -n 1 /tmp/opened)" "300 ok"
}

# bats test_tags=kernel,kernel_too
@test "one process that opens files until it is refused leaves others of its user, and other users, theirs" {
        only_remap
        local limit=3000 hog
        remap_container
        make_source ext4
        echo text >"$BATS_TEST_TMPDIR/ext4/file"
        HELPER_PREFIX=(prlimit "--nofile=$limit:$limit")
        remap_mount "$BATS_TEST_TMPDIR/ext4" /ext4
        HELPER_PREFIX=()
        background in_container sh -c 'ulimit -n 100000; exec /bin/fs-calls open-many 99000 /ext4/file >/tmp/hog'
        wait_until 20 in_container grep -q ready /tmp/hog
        in_container cat /tmp/hog
        hog=$(in_container sh -c 'read -r count why </tmp/hog; echo $why')
        is "$hog" EMFILE "how it ends for the first"
        background in_container sh -c 'exec /bin/fs-calls open-many 100 /ext4/file >/tmp/other'
        wait_until 20 in_container grep -q ready /tmp/other
        is "$(in_container head -n 1 /tmp/other)" "100 ok" "another process of this user"
        # many processes of that user
        local i
        for i in 1 2 3 4 5 6 7 8; do
                background in_container sh -c "ulimit -n 100000; exec /bin/fs-calls open-many 99000 /ext4/file >/tmp/hog.$i"
                wait_until 20 in_container grep -q ready "/tmp/hog.$i"
        done
        as 1000 open-many 100 /ext4/file 3>&- >"$BATS_TEST_TMPDIR/user" &
        bed_pids+=($!)
        wait_until 20 grep -q ready "$BATS_TEST_TMPDIR/user"
        is "$(head -n 1 "$BATS_TEST_TMPDIR/user")" "100 ok" "another user"
        in_container pkill -KILL fs-calls
        wait_until 10 in_container cat /ext4/file
}
