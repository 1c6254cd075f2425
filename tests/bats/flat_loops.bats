#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a call costs does not grow with the loop devices that others have on the node: the kernel says whether anything is over an image.
# Where it does not, all of them are looked at, and none is missed.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0

OTHERS=60 # more than the calls of the two helper processes for other kinds of pools, each of which is ended at one of its twenty or before

setup() {
        bed_setup
        driver_setup
        volume_setup
        make_pool_in_memory fast 64m
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        IMAGE=$POOL_DIR/data.img
}

teardown() {
        driver_teardown
}

# least_of COMMAND PROGRAM ARGUMENT...: how many system calls PROGRAM makes at least, of four times, each after COMMAND: a sum of the pool that is of
# the same tick of the clock is counted again.
least_of() {
        local i
        LEAST=''
        for i in 1 2 3 4; do
                $1 || return 1
                at_syscall "$FLEXGRAFT_BIN/$2" "${@:3}"
                assert_success || return 1
                [[ -n $LEAST ]] && ((AT_TOTAL >= LEAST)) || LEAST=$AT_TOTAL
        done
}

# is_flat COMMAND PROGRAM ARGUMENT...: it makes as many with OTHERS loop devices of others as with none.
is_flat() {
        local few i
        least_of "$@" || return 1
        few=$LEAST
        for ((i = 0; i < OTHERS; i++)); do
                truncate -s 4096 "$BATS_TEST_TMPDIR/srv/other$i"
                attach_loop "$BATS_TEST_TMPDIR/srv/other$i"
        done
        least_of "$@" || return 1
        echo "$few system calls with no other loop devices, $LEAST with $OTHERS"
        ((LEAST - few < OTHERS))
}

@test "volume-delete costs the same however many loop devices the node has" {
        made() { created '{"name": "volume", "size": 4096, "pool": "fast"}'; }
        is_flat made volume-delete '{"name": "volume"}'
}

@test "attach of an image that is there costs the same however many loop devices the node has" {
        detached() {
                call detach data "$NODE"
                assert_success
        }
        is_flat detached verbs/attach "$(spec data type=loop pool=fast)" "$NODE"
}

# refused_with LOSETUP_OPTION...: volume-delete finds the loop device that losetup makes so, and the image stays.
refused_with() {
        LOOP=$(loop_over "$@" "$IMAGE")
        bed_loops+=("$LOOP")
        remove '{"name": "data"}'
        refused EBUSY "$LOOP"
        [[ -e $IMAGE ]]
}

@test "volume-delete refuses an image that any loop device is over, one that only reads and one that shows a part of it" {
        refused_with
        detach_loop
        refused_with --read-only
        detach_loop
        refused_with --offset 512
        detach_loop
        removed '{"name": "data"}'
}

@test "volume-delete refuses an attached image that another user owns, for which the kernel need not say whether it is in use" {
        chown 1000 "$IMAGE"
        refused_with
        detach_loop
        refused_with --read-only
}

@test "attach refuses an image that a loop device of others is over" {
        LOOP=$(loop_over --read-only "$IMAGE")
        bed_loops+=("$LOOP")
        call attach "$(spec data type=loop pool=fast)" "$NODE"
        assert_reply_of_kubelet
        [[ $(jq -r .message <<<"$json") == *"in use by $LOOP"* ]]
}

@test "volume-delete deletes an image that a process reads which has not attached it" {
        local reader
        # shellcheck disable=SC2217 # it holds the file open
        sleep infinity 3>&- <"$IMAGE" &
        reader=$!
        bed_pids+=("$reader")
        removed '{"name": "data"}'
        [[ ! -e $IMAGE ]]
        end_process "$reader"
}

# with_lease COMMAND...: COMMAND while another process has a lease of the image, which gives it up when it is asked to.
with_lease() {
        background_ready python3 -c '
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
signal.sigwait([signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.pause()' "$IMAGE"
        "$@" || return 1
        end_process "$BACKGROUND_PID"
}

@test "a call that comes while another asks whether an image is in use waits for a moment" {
        attached() {
                call attach "$(spec data type=loop pool=fast)" "$NODE"
                assert_success
        }
        with_lease created '{"name": "data", "size": 4096, "pool": "fast"}'
        with_lease attached
        call detach data "$NODE"
        with_lease removed '{"name": "data"}'
}

# reads_of FILE: sets READS: how often volume-reconcile reads that record.
reads_of() {
        READS=0
        while at_syscall --at "openat:$((READS + 1))" --where 2="$1" "$FLEXGRAFT_BIN/volume-reconcile" '{}' && ((AT_REACHED)); do
                ((++READS < 50)) || return 1
        done
        assert_success
}

# with_loops NAME...: these volumes are attached, and after them one of a block device, whose record so comes first in a directory of tmpfs.
with_loops() {
        local name
        for name; do
                created "{\"name\": \"$name\", \"size\": 4096, \"pool\": \"fast\"}" || return 1
                call attach "$(spec "$name" type=loop pool=fast)" "$NODE" && assert_success || return 1
        done
        call detach block "$NODE" && assert_success || return 1
        call attach "$(spec block type=block device="$LOOP")" "$NODE" && assert_success
}

@test "volume-reconcile reads a record as often however many loop devices other volumes have" {
        local few
        truncate -s 4096 "$BATS_TEST_TMPDIR/srv/block"
        attach_loop "$BATS_TEST_TMPDIR/srv/block"
        with_loops a
        reads_of block.json
        few=$READS
        with_loops b c d e f g h
        reads_of block.json
        echo "read $few times with one loop device of another, $READS times with eight"
        ((few > 0 && READS == few))
        is "$(losetup --list --noheadings | grep -c "$POOL_DIR")" 8
}
