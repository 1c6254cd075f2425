#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The volume tools: killed, or refused, at any system call.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0
shopt -s globstar dotglob nullglob

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

# ---- killed, or refused a system call

# The sweeps: a round is one life of a volume, with the swept program acted upon at its AT_NUMBER'th system call, called again, and the
# volume deleted; the next round has the next number, until that is past the last call. Kills are tried at every third call of volume-create,
# the other sweeps at every SWEEP_STRIDE'th, or LONG_STRIDE'th where every loop device of the node is looked at; each errno other ones, and each
# commit, too. FLEXGRAFT_SWEEP_STRIDE=1 tries all.

# sweep PROGRAM FIRST STRIDE ACTION...: CREATE and DELETE are the requests; MAKE is called before a round, AGAIN=no leaves the second call out.
sweep() {
        local swept=$1 first=$2 stride=$3 request tried=0 recovered=0 calls before now=''
        shift 3
        request=$CREATE
        [[ $swept == volume-create ]] || request=$DELETE
        first_state
        everything before
        calls=$AT_TOTAL
        for ((AT_NUMBER = first; ; AT_NUMBER += stride)); do
                "$MAKE"
                if [[ $swept == volume-delete ]]; then
                        helper volume-create "$CREATE"
                        succeeded || { echo "before call $AT_NUMBER"; return 1; }
                fi
                at_syscall --timeout 60 --at "$AT_NUMBER" "$@" "$(program "$swept")" "$request"
                [[ $AT_REACHED == 1 ]] || break
                tried=$((tried + 1))
                if round "$1" && everything now && [[ $now == "$before" ]]; then
                        recovered=$((recovered + 1))
                else
                        echo "call $AT_NUMBER, $AT_NAME ($swept $*):"
                        show_last
                        diff <(tr ' ' '\n' <<<"$before") <(tr ' ' '\n' <<<"$now") || :
                        scrub
                        ((tried - recovered < 6)) || { echo "6 failures: that will do"; break; }
                fi
        done
        # the last round was without an action
        helper volume-delete "$DELETE"
        echo "# $swept, $*: points tried $tried, recovered $recovered (every $stride. of $calls calls)" >&3
        ((tried > 0 && tried == recovered))
}

# first_state: a life with nothing done to it; AT_TOTAL and FIRST_CALL are the swept program's.
first_state() {
        "$MAKE"
        [[ $swept == volume-create ]] || created "$CREATE"
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$(program "$swept")" "$request"
        succeeded
        FIRST_CALL=$(awk '$3 == "fcntl" { print $1; exit }' "$BATS_TEST_TMPDIR/calls")
        removed "$DELETE"
}

round() {
        if [[ $1 == --fail ]]; then
                after_failure || { echo "after the call that failed"; return 1; }
        else
                clean_reply || { echo "after the call that was killed"; return 1; }
        fi
        if [[ $AGAIN == yes ]]; then
                helper "$swept" "$request"
                succeeded || { echo "again"; return 1; }
                [[ $swept == volume-delete ]] || effect || { echo "again, without effect"; return 1; }
        fi
        helper volume-delete "$DELETE"
        succeeded || { echo "the delete"; return 1; }
        ((AT_NUMBER % 16 == 0)) || return 0
        [[ -z $(loops_of_test) ]] || { echo "loop devices are left"; return 1; }
        wait_until 5 assert_no_helper_processes >/dev/null || assert_no_helper_processes
}

# What a caller may find after a program that could not do its work: nothing, or one line of JSON.
clean_reply() {
        [[ -z $output ]] && return 0
        [[ $output == '{"status":"'*$'}\n' && ${output%$'\n'} != *$'\n'* ]] || return 1
        [[ $output == '{"status":"Success","'* ]] || jq -e . <<<"$output" >/dev/null
}

# After a call that failed the program still says what happened. It may not if it cannot write, or never began.
after_failure() {
        clean_reply || return 1
        ((AT_NUMBER >= FIRST_CALL)) || return 0
        [[ $AT_NAME == write || $AT_NAME == exit_group ]] && return 0
        [[ -n $output && -z $stderr ]] || return 1
        case $output in
        '{"status":"Success"'*)
                [[ $status == 0 ]] || return 1
                [[ $swept == volume-delete || -n ${NO_EFFECT:-} ]] || effect || { echo "Success without effect"; return 1; }
                ;;
        *) [[ $status == 1 ]] ;;
        esac
}

# The image of the volume "data" is there, with its size and its record.
effect() {
        local size
        size=$(stat --format %s "$POOL_DIR/${DISK:-data.img}" 2>/dev/null) || return 1
        [[ $size == 1048576 && $(<"$STATE_DIR/provisioned/data.json") == *'"stage":"created"'* ]]
}

# everything VARIABLE: all that the programs could leave, in one text: what is in the state directory and the pool, less the operations that
# were done, which are remembered.
everything() {
        local -n everything_into=$1
        local found
        rm -f "$STATE_DIR"/operations/[!.]*
        found=("$STATE_DIR"/** "$POOL_DIR"/**)
        everything_into="${found[*]}"
}

scrub() {
        rm -rf "$STATE_DIR"/provisioned "$STATE_DIR"/operations "${POOL_DIR:?}"/*
}

sweep_setup() {
        LONG_STRIDE=$((SWEEP_STRIDE == 1 ? 1 : SWEEP_STRIDE * 3))
        make_pool_in_memory fast 16m
        CREATE='{"name": "data", "size": "1m", "pool": "fast"}' DELETE='{"name": "data"}' MAKE=: AGAIN=yes DISK=''
        # The first of all makes directories.
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        removed '{"name": "data"}'
}

sweep_failures() { # PROGRAM STRIDE
        local errno i=0 bad=0
        for errno in EIO ENOSPC ENOMEM; do
                sweep "$1" $((1 + (FLEXGRAFT_SWEEP_SEED + i++ * $2 / 3) % $2)) "$2" --fail "$errno" || bad=1
        done
        return "$bad"
}

@test "volume-create killed at any call: again succeeds, and delete leaves nothing" {
        sweep_setup
        sweep volume-create $((1 + SWEEP_OFFSET / 3)) $(((SWEEP_STRIDE + 2) / 3)) --kill
}

@test "volume-create killed while its worker lives on" {
        sweep_setup
        sweep volume-create $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill-main
}

@test "the first volume-create of a node killed at any call" {
        sweep_setup
        MAKE=scrub
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-create with a profile and an operation killed at any call" {
        sweep_setup
        write_profiles "\"db\": $(profile_for fast)"
        CREATE='{"name": "data", "size": "1m", "profile": "db", "operation": "op"}'
        created '{"name": "data", "size": "1m", "pool": "fast", "operation": "other"}'
        removed '{"name": "data"}'
        forget() { rm -f "$STATE_DIR"/operations/op.json; }
        MAKE=forget
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-create that adopts a disk killed at any call" {
        sweep_setup
        truncate -s 1m "$POOL_DIR/disk.img"
        CREATE='{"name": "data", "size": "1m", "pool": "fast", "match": true}' DISK=disk.img
        sweep volume-create $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill
        is "$(images "$POOL_DIR")" disk.img
}

@test "volume-create killed at any call and given up: one delete leaves nothing" {
        sweep_setup
        AGAIN=no
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-delete killed at any call: again succeeds, and nothing is left" {
        sweep_setup
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill-main
}

@test "volume-delete that recycles killed at any call" {
        sweep_setup
        CREATE='{"name": "data", "id": "disk.img", "pool": "fast"}' DELETE='{"name": "data", "reclaimPolicy": "recycle"}' DISK=disk.img
        fill() {
                [[ ! -e $POOL_DIR/disk.img ]] || is_all_zero "$POOL_DIR/disk.img"
                printf '%01048576d' 7 >"$POOL_DIR/disk.img"
        }
        MAKE=fill
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill
        is_all_zero "$POOL_DIR/disk.img"
}

@test "volume-create with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-create "$SWEEP_STRIDE"
}

@test "volume-delete with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-delete "$LONG_STRIDE"
}

@test "volume-list and volume-capacity with any call failing: a clean reply" {
        local swept errno tried clean=0 i=0
        NO_EFFECT=yes
        sweep_setup
        created "$CREATE"
        make_disk "$POOL_DIR" disk.img 1m
        write_profiles "\"db\": $(profile_for fast)"
        measured
        for swept in volume-list volume-capacity; do
                tried=0 clean=0
                at_syscall --log "$BATS_TEST_TMPDIR/calls" "$(program "$swept")"
                succeeded
                FIRST_CALL=$(awk '$3 == "fcntl" { print $1; exit }' "$BATS_TEST_TMPDIR/calls")
                for errno in EIO ENOMEM; do
                        for ((AT_NUMBER = 1 + (FLEXGRAFT_SWEEP_SEED + i++) % SWEEP_STRIDE; ; AT_NUMBER += SWEEP_STRIDE)); do
                                at_syscall --at "$AT_NUMBER" --fail "$errno" "$(program "$swept")"
                                [[ $AT_REACHED == 1 ]] || break
                                tried=$((tried + 1))
                                after_failure && clean=$((clean + 1)) || { echo "$swept: call $AT_NUMBER, $AT_NAME ($errno)"; show_last; }
                        done
                done
                echo "# $swept, --fail: points tried $tried, clean $clean" >&3
                ((tried > 0 && tried == clean)) || return 1
        done
        effect
}
