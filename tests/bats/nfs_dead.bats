#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A hard-mounted NFS server that is dead, with data that it has not got: nothing of ours waits for it for ever, and who wrote can be killed.
#
# A kernel that has no NFS skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,nfs

load helpers
load driver_helpers
load nfs_helpers
bats_require_minimum_version 1.5.0

# show_processes PATTERN: those that match, with where in the kernel they wait; fails, so that the test does.
show_processes() {
        # pgrep does not say where a process waits
        # shellcheck disable=SC2009
        ps -eo pid,ppid,stat,wchan:24,comm,args | grep -E "$1"
        return 1
}

setup_file() {
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        schema_validate
}

setup() {
        DRIVER=''
        nfs_needs_kernel
        bed_setup
        nfs_setup
}

teardown() {
        nfs_teardown
}

# none_left: no process of remap is left.
none_left() {
        [[ -z $(pgrep -x 'remap-(keeper|daemon|closer|forcer)') ]]
}

# nothing_left_in SECONDS
nothing_left_in() {
        wait_until "$1" none_left || show_processes 'remap|file|dd|PID'
}

# write_to_the_dead: three writers in the container, with files open, and then no server.
write_to_the_dead() {
        local i
        for i in 1 2 3; do
                # shellcheck disable=SC2016 # the container's shell has them
                background in_container sh -c 'exec 5>/data/file'$i'; echo text >&5; : >/tmp/begun'$i'; while test ! -e /tmp/go; do sleep 0.1; done
                        while :; do dd if=/dev/zero bs=64k count=16 >&5 2>/dev/null || exit; done'
                wait_until 10 in_container test -e "/tmp/begun$i"
        done
        freeze_server
        in_container touch /tmp/go
        sleep 3
}

@test "of a container that ends with data unwritten to a dead server nothing is left soon" {
        start_client plain
        mount_nfs
        write_to_the_dead
        kill -KILL "$CONTAINER_PID"
        wait_until 40 process_is_gone "$CONTAINER_PID" || show_processes 'remap|file|dd|PID'
        nothing_left_in 40
}

@test "while a container ends that waits for a dead server, which is not forced as the node has it mounted, too, no processes pile up" {
        start_client plain
        join_node
        mkdir "$BATS_TEST_TMPDIR/nfs"
        mount -t nfs -o vers=4.2 "$NFS_ADDRESS:$EXPORT" "$BATS_TEST_TMPDIR/nfs"
        SOURCE=$BATS_TEST_TMPDIR/nfs
        helper mount-bind "$(bind_request /data '"ids": "remap"')"
        assert_success
        write_to_the_dead
        kill -KILL "$CONTAINER_PID"
        wait_until 30 pgrep -x remap-forcer
        sleep 10 # the keeper looks five times meanwhile
        (($(pgrep -cx remap-forcer) <= 1)) || show_processes remap
        thaw_server
        nothing_left_in 60
}

@test "after a removal by force, with data unwritten to a dead server, nothing is left soon when the writers are killed" {
        start_client plain
        mount_nfs
        write_to_the_dead
        helper mount-remove "$(remove_request /data | sed 's/}$/, "force": true, "timeoutSeconds": 5}/')"
        assert_success
        pkill -KILL -f 'exec 5>/data/file'
        pkill -KILL -x dd || :
        nothing_left_in 40
}

@test "what a container wrote before it ended is on the server when that answers again" {
        start_client plain
        mount_nfs
        # shellcheck disable=SC2016 # the container's shell has them
        background in_container sh -c 'exec 5>/data/file; dd if=/dev/zero bs=64k count=200 >&5 2>/dev/null; : >/tmp/written; sleep 1000'
        wait_until 20 in_container test -e /tmp/written
        freeze_server
        kill -KILL "$CONTAINER_PID"
        sleep 3
        thaw_server
        nothing_left_in 30
        is "$(stat -c %s "$EXPORTED/file")" $((64 * 1024 * 200)) "bytes on the server"
}

@test "a call whose server falls silent before its export is mounted ends in its time, and does not wait for the end of the mount" {
        local said=$BATS_TEST_TMPDIR/said
        start_client plain-nouserns
        nfs_changed+=' frozen'
        background "$FLEXGRAFT_TOOLS/at-syscall" --at fsmount --to-point \
                --run "nsenter --target $NFS_SERVER --net tc qdisc replace dev br0 root netem loss 100%" \
                -- "$FLEXGRAFT_BIN/mount-nfs" "$(nfs_request '"options": "vers=4.2", "timeoutSeconds": 5')" >"$said"
        # the tracer goes on until the kernel has ended the mount
        wait_until 20 grep -q '"status"' "$said" || show_processes 'mount-nfs|PID'
        is "$(jq -r .error.errno "$said")" ETIMEDOUT
        assert_mounts_at /data 0
}

@test "a writer in a dead server's volume ends when the volume is unmounted and it is killed" {
        driver_setup k8s~nfs
        join_node
        driver_attaches
        lifecycle_up data "server=$NFS_ADDRESS" "share=$EXPORT"
        local dir writer start
        dir=$(pod_dir data)
        # shellcheck disable=SC2016 # its own shell has them
        background bash -c 'exec 5>"$1/file"; echo text >&5; while test ! -e "$2"; do sleep 0.1; done
                while :; do dd if=/dev/zero bs=64k count=16 >&5 2>/dev/null || exit; done' - "$dir" "$BATS_TEST_TMPDIR/go"
        writer=$BACKGROUND_PID
        wait_until 10 test -s "$dir/file"
        freeze_server
        touch "$BATS_TEST_TMPDIR/go"
        sleep 3
        echo "# unmounting" >&3
        CALL_TIMEOUT=100 call unmount "$dir"
        assert_success
        is "$(node_mounts_at "$dir")" 0
        pkill -KILL -P "$writer" || :
        kill -KILL "$writer" || :
        echo "# killed" >&3
        wait_until 40 process_is_gone "$writer" || show_processes ' D|PID'
        wait_until 40 nothing_in_d || show_processes ' D|PID'
}

# nothing_in_d: no process; threads of the kernel's own (their parent is 2) wait for as long as it likes: docs/nfs.md.
nothing_in_d() {
        [[ -z $(ps -eo ppid=,stat= | awk '$2 ~ /^D/ && $1 != 2') ]]
}

# begin_call NUMBER: a mount of the volume `written` for a pod of its own, in the background: replies/NUMBER is there when it has ended.
begin_call() {
        local dir
        dir=$(pod_dir written "caller-$1")
        make_dir "$dir"
        {
                timeout --kill-after 5 170 "$DRIVER" mount "$dir" "$(publish_spec written "caller-$1")" >"$BATS_TEST_TMPDIR/replies/.$1" 2>&1 || :
                mv "$BATS_TEST_TMPDIR/replies/.$1" "$BATS_TEST_TMPDIR/replies/$1"
        } 3>&- &
        calls+=($!)
}

ended_calls() {
        find "$BATS_TEST_TMPDIR/replies" -name '[0-9]*' | wc -l
}

no_calls_left() {
        [[ -z $(pgrep -f "$BATS_TEST_TMPDIR/exec/") ]]
}

# 200 calls, where a test may take as long as it takes (make soak); else 40.
@test "many calls, a writer and an unmount that a dead server holds up hold up no volume of another server, leave nothing, and need no restart" {
        local i calls=() count=200 seconds=90 dead=$EXPORT at=$EXPORTED dir writer stopped left=60
        ((${BATS_TEST_TIMEOUT:-0} == 0)) || count=40 seconds=25
        driver_setup k8s~nfs
        join_node
        driver_attaches
        lifecycle_up written "server=$NFS_ADDRESS" "share=$EXPORT"
        lifecycle_up idle "server=$NFS_ADDRESS" "share=$EXPORT" mountOptions=vers=3
        dir=$(pod_dir written)
        mkdir "$BATS_TEST_TMPDIR/replies"
        # shellcheck disable=SC2016 # its own shell has them
        background bash -c 'exec 5>"$1/file"; echo text >&5; while test ! -e "$2"; do sleep 0.1; done
                dd if=/dev/zero bs=64k count=128 >&5 2>/dev/null; sync -d "$1/file"' - "$dir" "$BATS_TEST_TMPDIR/go"
        writer=$BACKGROUND_PID
        wait_until 10 test -s "$dir/file"
        freeze_server
        stopped=$SECONDS
        touch "$BATS_TEST_TMPDIR/go"
        second_server
        TIMEOUTS='"unmount": 5, "device": 30, "command": 60, "call": '$seconds write_config ''
        echo "# $SECONDS s: begin $count calls" >&3
        for ((i = 1; i <= count; i++)); do
                begin_call "$i"
        done
        echo "# $SECONDS s: $(ended_calls) of them have ended" >&3
        lifecycle_up other "server=$NFS_SECOND" "share=$EXPORT"
        # it was mounted before one of them had ended
        is "$(ended_calls)" 0 "calls to the dead server that have ended"
        echo text >"$(pod_dir other)/file"
        is "$(cat "$EXPORTED/file")" text
        echo "# $SECONDS s: the other is mounted" >&3
        call unmount "$(pod_dir idle)"
        assert_success
        lifecycle_down other
        wait "${calls[@]}"
        echo "# $SECONDS s: $(ended_calls) have ended" >&3
        is "$(grep -l '"status":"Failure"' "$BATS_TEST_TMPDIR"/replies/* | wc -l)" "$count" "calls that said so"
        call unmount "$dir"
        assert_success
        echo "# $SECONDS s: unmounted" >&3
        kill -KILL "$writer"
        pkill -KILL -P "$writer" || :
        # a minute after the server stopped, where the calls' time was over before
        ((seconds >= 60)) || left=$((stopped + 60 - SECONDS))
        wait_until "$left" nothing_in_d || show_processes ' D|PID'
        echo "# $SECONDS s: nothing is in D" >&3
        wait_until 60 no_calls_left || show_processes 'verbs|PID'
        # again without a restart of anything
        thaw_first
        EXPORT=$dead EXPORTED=$at
        lifecycle_up again "server=$NFS_ADDRESS" "share=$EXPORT"
        echo more >"$(pod_dir again)/again"
        is "$(cat "$EXPORTED/again")" more
        lifecycle_down again
        is "$(find "$KUBELET" -name 'file' | wc -l)" 0
}
