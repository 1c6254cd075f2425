#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Containers that mean harm: nothing lands outside them, nothing hangs, nobody else is touched.

load helpers
load hostile_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        if [[ -n ${bed_outside:-} && -e $bed_outside ]]; then
                rm -rf --one-file-system "$bed_outside"
        fi
        bed_teardown
}

@test "a directory that takes turns with a symlink to the node's directories" {
        swap_under_injections plain OUTSIDE /p/a/sub
}

@test "a directory that takes turns with a symlink to the root" {
        swap_under_injections plain / /p/a/sub
}

@test "a target that takes turns with a symlink that climbs, without a user namespace" {
        swap_under_injections plain-nouserns ../../../../../../../../OUTSIDE /p/a
}

@test "missing directories below a directory that takes turns with a symlink" {
        swap_under_injections plain OUTSIDE /p/a/new/directories
}

# Where the kernel does not answer for one mount (before Linux 6.11): lines of 15 KiB each.
# bats test_tags=kernel,deep
@test "a container's mount table of more than 32 MiB is not read to its end" {
        local answers
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        answers=$(jq .mountNamespaceId "$STATE_DIR"/mounts/*.json)
        # shellcheck disable=SC2016 # the container's shell has them
        in_container sh -c 'name=$(printf "%250s" "") dir=/tmp
                for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do dir="$dir/$name"; mkdir "$dir"; done
                i=0; while [ $((i += 1)) -le 2300 ]; do mount --bind "$dir" "$dir" || exit; done
                umount -l /data' # at last: its id would be that of another mount
        helper mount-remove "$(remove_request /data)"
        if ((answers == 0)); then
                assert_failure EFBIG
                assert_field .error.operation "read mountinfo"
        else
                assert_success
        fi
}

# bats test_tags=kernel
@test "a mount whose directory the container renamed is not forgotten" {
        start_container plain
        in_container mkdir -p /p/sub
        helper mount-bind "$(bind_request /p/sub)"
        assert_success
        local id
        id=$(json_field .mount.id)
        in_container mv /p /q
        assert_mounts_at /q/sub 1
        helper mount-list '{}'
        assert_success
        [[ $(json_field '.mounts[0].state') != gone ]] || { show_last; return 1; }
        helper mount-remove "{\"id\": \"$id\"}"
        assert_one_json_line
        if [[ $status == 0 ]]; then
                assert_mounts_at /q/sub 0
        else
                is "$(records)" "mounts/$id.json"
        fi
}

@test "symlinks in the target lead to places within the container" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        start_container plain
        in_container mkdir -p "$outside" /inner
        in_container ln -s "$outside" /link
        in_container ln -s /../../../../../inner /climbing
        in_container ln -s ../../../../../inner /relative
        node_snapshot
        helper mount-bind "$(bind_request /link)"
        assert_success
        assert_mounts_at "$outside" 1
        run ! mountpoint -q "$outside"
        helper mount-bind "$(bind_request /climbing)"
        assert_success
        assert_mounts_at /inner 1
        helper mount-remove "$(remove_request /climbing)"
        assert_success
        assert_mounts_at /inner 0
        helper mount-bind "$(bind_request /relative)"
        assert_success
        assert_mounts_at /inner 1
        local now
        snapshot_node now
        is "$now" "$bed_before"
}

@test "dots that climb stay within the container" {
        start_container plain
        helper mount-bind "$(bind_request /../../../../../../data)"
        assert_success
        assert_mounts_at /data 1
        [[ ! -e /data ]]
}

@test "a symlink that dangles does not make its end" {
        start_container plain
        in_container ln -s "$BATS_TEST_TMPDIR/not-made" /link
        helper mount-bind "$(bind_request /link)"
        assert_one_json_line
        [[ ! -e $BATS_TEST_TMPDIR/not-made ]]
}

@test "symlinks in a circle fail with ELOOP" {
        start_container plain
        in_container ln -s /two /one
        in_container ln -s /one /two
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /one/data)"
        assert_failure ELOOP
        assert_container_unchanged
        assert_node_unchanged
}

# refused_target TARGET [ERRNO]
refused_target() {
        helper mount-bind "$(bind_request "$1")"
        assert_failure "${2:-}"
        assert_container_unchanged
        assert_node_unchanged
}

check_magic_links() {
        start_container "$1"
        in_container ln -s /proc/self/root /magic
        container_snapshot
        node_snapshot
        refused_target /proc/self/root "${2:-}"
        refused_target /proc/1/root "${2:-}"
        refused_target /proc/1/root/data "${2:-}"
        refused_target /proc/1/cwd/data "${2:-}"
        refused_target /magic/data "${2:-}"
        refused_target /proc/1/fd/0
        refused_target /proc/self/exe
        refused_target /proc/thread-self/root/data
}

@test "magic links in the target are refused" {
        check_magic_links plain
}

@test "magic links in the target are refused without a user namespace" {
        check_magic_links plain-nouserns
}

@test "magic links in the target fail when the container has the node's proc" {
        check_magic_links plain-hostpid
}

check_kernel_filesystems() {
        start_container "$1"
        container_snapshot
        node_snapshot
        local target
        for target in /proc /proc/sys /proc/sys/kernel /proc/self/attr /proc/1 /proc/made /sys /sys/kernel /sys/kernel/made /sys/fs/cgroup /sys/fs/cgroup/made; do
                refused_target "$target"
        done
        SOURCE=$FLEXGRAFT_CONFIG
        for target in /proc/self/attr/current /proc/self/environ /proc/sys/kernel/core_pattern /proc/1/mem /sys/kernel/uevent_helper /sys/fs/cgroup/cgroup.procs; do
                refused_target "$target"
        done
}

@test "procfs, sysfs and cgroupfs are not targets" {
        check_kernel_filesystems plain
}

@test "procfs, sysfs and cgroupfs are not targets without a user namespace" {
        check_kernel_filesystems plain-nouserns
}

# silent_fuse [OPTION...]
silent_fuse() {
        local namespaces=(--mount --pid)
        [[ $CONTAINER_KIND == *nouserns* ]] || namespaces+=(--user)
        in_container mkdir -p /tmp/fuse
        background_ready nsenter --target "$CONTAINER_PID" "${namespaces[@]}" -- /bin/silent-fuse /tmp/fuse "$@"
}

# fails_in_time REQUEST [ERRNO]
fails_in_time() {
        not_hung helper mount-bind "$1"
        assert_failure "${2:-}"
}

# bats test_tags=kernel
@test "a silent FUSE in the way fails at once in a user namespace" {
        start_container plain
        silent_fuse
        node_snapshot
        fails_in_time "$(bind_request /tmp/fuse/data '"timeoutSeconds": 2')"
        fails_in_time "$(bind_request /tmp/fuse '"timeoutSeconds": 2')"
        wait_until 5 assert_no_helper_processes
        assert_node_unchanged
}

@test "a silent FUSE in the way that blocks root ends with the time limit" {
        start_container plain-nouserns
        silent_fuse
        node_snapshot
        fails_in_time "$(bind_request /tmp/fuse/data '"timeoutSeconds": 2')" ETIMEDOUT
        wait_until 5 assert_no_helper_processes
        assert_node_unchanged
}

@test "a silent FUSE that holds even killed processes does not hold the program" {
        start_container plain-nouserns
        silent_fuse --read
        node_snapshot
        fails_in_time "$(bind_request /tmp/fuse/data '"timeoutSeconds": 2')" ETIMEDOUT
        assert_node_unchanged
        # Other calls for the same container go on.
        fails_in_time "$(bind_request /tmp/fuse/data '"timeoutSeconds": 1')" ETIMEDOUT
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_node_unchanged
        stop_container
        wait_until 5 assert_no_helper_processes
}

# bats test_tags=kernel
@test "a silent FUSE over our mount does not hold mount-remove and mount-list" {
        start_container plain-nouserns
        in_container mkdir -p /tmp/fuse
        helper mount-bind "$(bind_request /tmp/fuse)"
        assert_success
        silent_fuse --read
        not_hung helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].state' covered
        not_hung helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/tmp/fuse\", \"timeoutSeconds\": 2}"
        assert_failure
        stop_container
        wait_until 5 assert_no_helper_processes
}

# replies_to_the_end PROGRAM ARG...: a reader of its reply and of its errors comes to their end, also where a process is left that hangs.
replies_to_the_end() {
        local program=$1
        shift
        { "$program" "$@" 2>&1 3>&- || :; } | timeout 90 cat >"$BATS_TEST_TMPDIR/read"
        output=$(<"$BATS_TEST_TMPDIR/read")
}

@test "a process that hangs in a container keeps open neither the pipe of a reply nor the file of metrics" {
        start_container plain-nouserns
        in_container mkdir -p /tmp/fuse/x
        helper mount-bind "$(bind_request /tmp/fuse/x)"
        assert_success
        silent_fuse --read
        replies_to_the_end "$FLEXGRAFT_BIN/mount-list" '{"timeoutSeconds": 2}'
        is "$(jq -c '.mounts[].state' <<<"$output")" '"unknown"'
        run -1 assert_no_helper_processes
        PATH=$FLEXGRAFT_BIN:$PATH replies_to_the_end "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" --output "$BATS_TEST_TMPDIR/flexgraft.prom"
        is "$output" ''
        grep -q '^flexgraft_metrics_failed{program="mount-list"} 0$' "$BATS_TEST_TMPDIR/flexgraft.prom"
        stop_container
        wait_until 5 assert_no_helper_processes
}

# hangs_in PROGRAM REQUEST: runs it in the background, the reply into a pipe, and returns when a process of it hangs; READER reads the pipe to its end.
hangs_in() {
        local pipe=$BATS_TEST_TMPDIR/pipe
        rm -f "$pipe"
        mkfifo "$pipe"
        timeout 90 cat "$pipe" >"$BATS_TEST_TMPDIR/read" 3>&- &
        READER=$!
        background "$FLEXGRAFT_BIN/$1" "$2" >"$pipe" 2>&1
        wait_until 10 waits_long "$BACKGROUND_PID"
}

waits_long() { # PID, whose child hangs, and which catches SIGTERM then
        local child
        child=$(pgrep -P "$1") && [[ $(<"/proc/$child/wchan") == request_wait_answer ]] &&
                (($(awk '/^SigCgt:/ { print "0x" $2 }' "/proc/$1/status") & 1 << 14))
}

@test "a program that a signal ends while a process of it hangs in a container leaves neither the pipe of its reply nor a lock to that process" {
        start_container plain-nouserns
        silent_fuse --read
        hangs_in mount-bind "$(bind_request /tmp/fuse/data '"id": "one", "timeoutSeconds": 100')"
        kill -TERM "$BACKGROUND_PID"
        status=0
        wait "$BACKGROUND_PID" || status=$?
        is "$status" 143
        wait "$READER"
        is "$(<"$BATS_TEST_TMPDIR/read")" ''
        run -1 assert_no_helper_processes       # it hangs still
        helper mount-bind "$(bind_request /data '"id": "one", "timeoutSeconds": 5')"
        assert_success
        helper mount-remove '{"id": "one"}'
        assert_success
        stop_container
        wait_until 5 assert_no_helper_processes
}

@test "a silent FUSE below a container's overlay holds one process of mount-list, not one of each call" {
        local i
        start_container plain
        in_container mkdir -p /tmp/o/x /tmp/empty
        helper mount-bind "$(bind_request /tmp/o/x)"
        assert_success
        helper mount-bind "$(bind_request /data)"
        assert_success
        silent_fuse --silent-to lookup
        in_container mount -t overlay -o lowerdir=/tmp/fuse:/tmp/empty overlay /tmp/o
        for i in 1 2 3; do
                not_hung helper mount-list '{"timeoutSeconds": 6}'
                assert_success
                assert_field '.mounts[] | select(.target == "/tmp/o/x") | .state' unknown
                assert_field '.mounts[] | select(.target == "/data") | .state' present
        done
        is "$(pgrep -fc "^$FLEXGRAFT_BIN/mount-list")" 1 "processes that hang"
        shows 'an earlier call still waits for it'
        pkill -KILL -P "$BACKGROUND_PID"                # the server, which nsenter has started
        wait_until 5 assert_no_helper_processes
        helper mount-list '{}'
        assert_field '.mounts[] | select(.target == "/tmp/o/x") | .state' covered
}

# overlay_hangs [IDS]: a new container, which has one of our mounts below a directory that does not answer; its server in SERVER.
overlay_hangs() {
        start_container plain "$@"
        in_container mkdir -p /tmp/o/x /tmp/empty
        helper mount-bind "$(bind_request /tmp/o/x)"
        assert_success
        silent_fuse --silent-to lookup
        SERVER=$(pgrep -P "$BACKGROUND_PID")
        in_container mount -t overlay -o lowerdir=/tmp/fuse:/tmp/empty overlay /tmp/o
}

@test "a silent mount holds one process of mount-list, not one of each call, also while a remap-daemon of an NFS mount lives" {
        overlay_hangs
        # as ending_begin() of src/remap takes it, of a filesystem with the device 0:43
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/mounts/.lock" $(((1 << 62) + 43))
        for _ in 1 2 3; do
                not_hung helper mount-list '{"timeoutSeconds": 6}'
                assert_success
        done
        is "$(pgrep -fc "^$FLEXGRAFT_BIN/mount-list")" 1 "processes that hang"
        shows 'an earlier call still waits for it'
        kill -KILL "$SERVER"
        wait_until 5 assert_no_helper_processes
}

@test "of two containers at which mount-list hangs the one that answers again is asked again" {
        local first server
        overlay_hangs
        first=$CONTAINER_PID
        server=$SERVER
        overlay_hangs 300000
        helper mount-list '{"timeoutSeconds": 6}'
        assert_field '[.mounts[].state] | join(" ")' "unknown unknown"
        is "$(pgrep -fc "^$FLEXGRAFT_BIN/mount-list")" 2 "processes that hang"
        kill -KILL "$server"
        wait_until 10 hang 1
        helper mount-list '{"timeoutSeconds": 6}'
        assert_field ".mounts[] | select(.container.pid == $first) | .state" covered
        assert_field ".mounts[] | select(.container.pid != $first) | .problem" 'wait: an earlier call still waits for it'
        kill -KILL "$SERVER"
        wait_until 5 assert_no_helper_processes
}

hang() { # COUNT
        (($(pgrep -fc "^$FLEXGRAFT_BIN/mount-list") == $1))
}

@test "mount-list names the mounts it did not ask because others of the container do not answer" {
        local i
        start_container plain-nouserns
        for i in 1 2 3; do
                helper mount-bind "$(bind_request "/tmp/fuse/$i")"
                assert_success
        done
        silent_fuse
        helper mount-list '{"timeoutSeconds": 6}'
        assert_success
        assert_field '.mounts | map(.problem) | join(", ")' \
                'wait: Connection timed out, wait: Connection timed out, wait: it was not asked: two others of its container do not answer'
}

@test "a process apart that hangs does not keep the lock that its program was given" {
        local lock fuse=$BATS_TEST_TMPDIR/fuse server
        mkdir "$fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$fuse" --silent-to statfs
        server=$BACKGROUND_PID
        start_container plain
        exec {lock}>"$BATS_TEST_TMPDIR/lock"
        flock --nonblock "$lock"
        "$FLEXGRAFT_BIN/mount-overlay" "{\"container\": $CONTAINER_PID, \"lower\": [\"$fuse\", \"$SOURCE\"], \"target\": \"/data\",
                \"ids\": \"host\", \"timeoutSeconds\": 2}" >"$BATS_TEST_TMPDIR/reply" 3>&"$lock" {lock}>&- || :
        is "$(jq -r .error.errno "$BATS_TEST_TMPDIR/reply")" ETIMEDOUT
        exec {lock}>&-
        run -1 assert_no_helper_processes
        flock --nonblock "$BATS_TEST_TMPDIR/lock" true
        end_process "$server"
        wait_until 5 assert_no_helper_processes
        umount "$fuse"
}

@test "a source on the node that is silent ends with the time limit" {
        mkdir "$BATS_TEST_TMPDIR/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        local fuse=$BACKGROUND_PID
        start_container plain
        container_snapshot
        node_snapshot
        SOURCE=$BATS_TEST_TMPDIR/fuse/data
        fails_in_time "$(bind_request /made/data '"timeoutSeconds": 2')" ETIMEDOUT
        wait_until 5 assert_no_helper_processes
        assert_container_unchanged
        assert_node_unchanged
        kill -KILL "$fuse"
        umount -l "$BATS_TEST_TMPDIR/fuse"
}

@test "a source that is a magic link is refused" {
        start_container plain
        container_snapshot
        node_snapshot
        local source
        for source in /proc/self/root /proc/1/root /proc/self/cwd /proc/self/fd/1; do
                SOURCE=$source
                helper mount-bind "$(bind_request /data)"
                assert_failure
                assert_container_unchanged
                assert_node_unchanged
        done
        ln -s /proc/self/root/srv "$BATS_TEST_TMPDIR/link"
        SOURCE=$BATS_TEST_TMPDIR/link
        helper mount-bind "$(bind_request /data)"
        assert_failure
}

@test "a hostile nsswitch.conf and its library are never loaded" {
        start_container plain-nouserns
        local dir library=$BATS_TEST_TMPDIR/libnss_marker.so.2
        gcc -O2 -Wall -Wextra -Werror -shared -fPIC -nostdlib -o "$library" "$FLEXGRAFT_REPO/tests/fixtures/libnss_marker.c"
        gcc -O2 -Wall -Wextra -Werror -o "$BATS_TEST_TMPDIR/nss-victim" "$FLEXGRAFT_REPO/tests/fixtures/nss-victim.c"
        printf 'passwd: marker\ngroup: marker\nhosts: marker\nshadow: marker\n' >"$CONTAINER_ROOTFS/etc/nsswitch.conf"
        for dir in lib lib64 usr/lib lib/x86_64-linux-gnu usr/lib/x86_64-linux-gnu usr/lib64; do
                mkdir -p "$CONTAINER_ROOTFS/$dir"
                cp "$library" "$CONTAINER_ROOTFS/$dir/"
        done
        # The trap works: a careless program walks into it.
        "$BATS_TEST_TMPDIR/nss-victim" "$CONTAINER_PID"
        compgen -G "$CONTAINER_ROOTFS/loaded-by-*" >/dev/null
        rm "$CONTAINER_ROOTFS"/loaded-by-*
        helper mount-bind "$(bind_request /made/data)"
        assert_success
        helper mount-list '{}'
        assert_success
        helper mount-remove "$(remove_request /made/data)"
        assert_success
        run ! compgen -G "$CONTAINER_ROOTFS/loaded-by-*"
}

# patiently REQUEST: with time for a program at each of its calls.
patiently() {
        jq -c '. + {timeoutSeconds: 600}' <<<"$1"
}

# watched REQUEST PROGRAM: at every call of PROGRAM the container looks at the caller. It must see nothing.
watched() {
        at_syscall --run-output "$BATS_TEST_TMPDIR/seen" \
                --each "exec nsenter --target $CONTAINER_PID --mount --user --net --ipc --uts -- /bin/peek-at \$AT_PID \"\$AT_SYSCALL \$AT_NAME \$AT_PID main \$AT_MAIN_PID: \"" \
                "$FLEXGRAFT_BIN/$2" "$(patiently "$1")"
        assert_success
        # Until it has begun, it is any program of root's.
        is "$(head -5 "$BATS_TEST_TMPDIR/seen")" "" "what the container saw of $2"
}

@test "a container that sees the helper's pid cannot look into it" {
        start_container plain-hostpid
        local before
        before=$(find "/proc/$CONTAINER_PID/fd" -mindepth 1 | wc -l)
        watched "$(bind_request /made/data)" mount-bind
        watched '{}' mount-list
        watched "$(remove_request /made/data)" mount-remove
        is "$(find "/proc/$CONTAINER_PID/fd" -mindepth 1 | wc -l)" "$before" "open files of the container's first process"
}

# bats test_tags=deep
@test "a container that sees the helper's pid cannot look into it while it locks a mount" {
        start_container plain-hostpid
        watched "$(bind_request /made/data '"locked": true')" mount-bind
        watched "$(remove_request /made/data)" mount-remove
}

# limited REQUEST PROGRAM: at every call of PROGRAM the container's root takes the caller's descriptors away, where it may.
limited() {
        at_syscall --run-output "$BATS_TEST_TMPDIR/limited" \
                --each "nsenter --target $CONTAINER_PID --user -S 0 -G 0 -- prlimit --nofile=0:0 --pid \$AT_PID && echo \$AT_NAME" \
                "$FLEXGRAFT_BIN/$2" "$(patiently "$1")"
        assert_success
        run grep -v 'Operation not permitted\|No such process' "$BATS_TEST_TMPDIR/limited"
        is "$output" '' "calls at which the container could limit the helper"
}

# bats test_tags=deep
@test "a container that sees the helper's pid cannot take its descriptors away while it locks a mount" {
        start_container plain-hostpid
        limited "$(bind_request /made/data '"locked": true')" mount-bind
        assert_attributes /made/data nosuid nodev
}

# A mount of remap's is made in the container's user namespace, whose root may do that to whoever is in it.
# bats test_tags=deep
@test "a container that takes descriptors away from the helper that makes a remap mount fails its own call, which leaves nothing" {
        start_container plain-hostpid
        at_syscall --each "nsenter --target $CONTAINER_PID --user -S 0 -G 0 -- prlimit --nofile=0:0 --pid \$AT_PID 2>/dev/null" \
                "$FLEXGRAFT_BIN/mount-bind" "$(patiently "$(bind_request /made/data '"ids": "remap"')")"
        assert_failure EMFILE
        is "$(mounts_at /made/data)" 0
        wait_until 5 assert_no_helper_processes
        helper mount-list '{}'
        assert_field .mounts '[]'
        helper mount-bind "$(bind_request /made/data '"ids": "remap"')"
        assert_success
}

# bats test_tags=kernel
@test "nothing of the container is held open after a mount" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(processes_in_mount_namespace "$CONTAINER_PID")" "$CONTAINER_PID" "processes in the container's mount namespace"
        in_container umount /data
        local ns
        ns=$(stat -L -c %i "/proc/$CONTAINER_PID/ns/mnt")
        stop_container
        # No other process has the namespace open.
        is "$(find /proc -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname "mnt:?$ns?" 2>/dev/null)" ""
}

@test "a container that stops its processes does not stop the helper" {
        start_container plain-hostpid
        # The container's root may signal what runs as its ids: the helper must not.
        background in_container sh -c 'while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; [ "$p" != "$$" ] && [ "$p" != '"$CONTAINER_PID"' ] && kill -STOP "$p" 2>/dev/null; done; : >/round; done'
        wait_until 10 test -e "$CONTAINER_ROOTFS/round"
        local i
        for i in 1 2 3 4 5 6 7 8 9 10; do
                helper mount-bind "$(bind_request /data '"timeoutSeconds": 60')"
                assert_success
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
}

@test "a fifo at the target, or a link to one, neither blocks nor takes a directory" {
        start_container plain
        in_container sh -c 'mkfifo /fifo && ln -s /fifo /link'
        node_snapshot
        local t
        for t in /fifo /link /fifo/x; do
                helper mount-bind "$(bind_request $t '"timeoutSeconds": 60')"
                assert_failure
                [[ $(json_field .error.errno) != ETIMEDOUT ]]
        done
        echo x >"$SOURCE/f"; SOURCE=$SOURCE/f
        helper mount-bind "$(bind_request /link)"
        assert_success
        is "$(in_container cat /fifo)" x
        helper mount-remove "$(remove_request /link)"
        assert_success
        in_container test -p /fifo
        assert_no_records
        assert_node_unchanged
}
