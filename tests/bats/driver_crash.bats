#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The driver killed at any system call, or refused any: the same call again succeeds, the data stay, and the teardown leaves nothing.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0
shopt -s globstar dotglob nullglob

setup_file() {
        # What a volume of these tests holds at first, made once: an ext4 of 8 MiB with a file `token`.
        BASE_IMAGE=$BATS_FILE_TMPDIR/base.img
        export BASE_IMAGE
        mkdir "$BATS_FILE_TMPDIR/content"
        echo precious >"$BATS_FILE_TMPDIR/content/token"
        truncate -s 8M "$BASE_IMAGE"
        mkfs.ext4 -q -F -m0 -d "$BATS_FILE_TMPDIR/content" "$BASE_IMAGE"
        export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-600}
}

setup() {
        bed_setup
        driver_setup
        needs verbs/attach verbs/waitforattach verbs/mountdevice verbs/mount verbs/unmount verbs/unmountdevice verbs/detach
        LIFE=(attach waitforattach mountdevice mount unmount unmountdevice detach)
        EXPANDS='' GIVE_UP='' VOLUME=data
        SHARDS=${FLEXGRAFT_SWEEP_SHARDS:-$(nproc)}
}

teardown() {
        driver_teardown
}

# A sweep is a row of rounds. A round is one life of a volume, each verb as kubelet calls it; the swept verb is acted upon (killed, or
# refused) at its AT_NUMBER'th call, then called again. The next round has the next number, until that is past the last call.
# Kills of all processes are tried at every call (where libblkid looks for signatures, every second). The other sweeps try every
# SWEEP_STRIDE'th, each errno other ones, and each commit, too; FLEXGRAFT_SWEEP_STRIDE=1 tries all. What a round looks at, it looks at
# without processes of its own, for the sake of time; and a sweep is done by SHARDS rows of rounds at once, each with directories of its own.

# volume formatted|blank|blank-xfs|blank-btrfs|xfs: what the volume of the sweep is at the beginning of each round.
volume() {
        VOLUME_KIND=$1
        [[ $1 != *xfs ]] || grep -qw xfs /proc/filesystems || skip "this kernel has no xfs"
        [[ $1 != *btrfs ]] || grep -qw btrfs /proc/filesystems || skip "this kernel has no btrfs"
}

# begin_shard NUMBER: a driver with directories of its own, below the test's.
begin_shard() {
        BATS_TEST_TMPDIR+=/shard.$1
        STATE_DIR=$BATS_TEST_TMPDIR/state FLEXGRAFT_CONFIG=$BATS_TEST_TMPDIR/config.json SECOND=$BATS_TEST_TMPDIR/second
        if [[ ! -d $BATS_TEST_TMPDIR ]]; then
                mkdir -m 0711 "$BATS_TEST_TMPDIR"
                # In memory, where fsync takes no time: a process is killed here, not the machine.
                mkdir -m 0700 "$STATE_DIR"
                mount -t tmpfs -o mode=0700 tmpfs "$STATE_DIR"
        fi
        rm -rf "$BATS_TEST_TMPDIR/pools.d"
        driver_setup
        IMAGE=$POOL/$VOLUME.img GLOBAL_DIR=$(global_dir "$VOLUME") POD_DIR=$(pod_dir "$VOLUME")
        make_volume "$VOLUME_KIND"
}

make_volume() {
        SPEC=$(spec "$VOLUME" type=loop)
        case $1 in
        formatted) BASE=$BASE_IMAGE SIZE=$((8 << 20)) ;;
        blank)
                SPEC=$(spec "$VOLUME" type=loop size=8Mi)
                BASE='' SIZE=$((8 << 20))
                ;;
        blank-*)
                SPEC=$(spec "$VOLUME" type=loop size=300Mi "@fsType=${1#blank-}")
                BASE='' SIZE=$((300 << 20))
                ;;
        xfs)
                BASE=$BATS_TEST_TMPDIR/xfs.img SIZE=$((300 << 20))
                if [[ ! -e $BASE ]]; then
                        mkdir -p "$BATS_TEST_TMPDIR/xfs"
                        truncate -s "$SIZE" "$BASE"
                        mkfs.xfs -q "$BASE"
                        mount -o loop "$BASE" "$BATS_TEST_TMPDIR/xfs"
                        echo precious >"$BATS_TEST_TMPDIR/xfs/token"
                        umount "$BATS_TEST_TMPDIR/xfs"
                fi
                ;;
        esac
        MOUNT_SPEC="${SPEC%\}},\"kubernetes.io/pod.name\":\"pod-1\",\"kubernetes.io/pod.uid\":\"pod-1\"}"
        fresh_image
}

fresh_image() {
        TOKEN=''
        mkdir -p "${GLOBAL_DIR%/*}" "${POD_DIR%/*}"
        rm -f "$IMAGE"
        [[ -z $BASE ]] && return 0
        mkdir -p "$POOL"
        cp --sparse=always "$BASE" "$IMAGE"
        TOKEN=precious
}

arguments_of() {
        case $1 in
        attach) arguments=("$SPEC" "$NODE") ;;
        waitforattach) arguments=("$DEVICE" "$SPEC") ;;
        mountdevice) arguments=("$GLOBAL_DIR" "$DEVICE" "$SPEC") ;;
        mount) arguments=("$POD_DIR" "$MOUNT_SPEC") ;;
        expandvolume) arguments=("$SPEC" "$GLOBAL_DIR" "$NEW_SIZE" "$SIZE") ;;
        expandfs) arguments=("$SPEC" "$DEVICE" "$GLOBAL_DIR" "$NEW_SIZE" "$SIZE") ;;
        unmount) arguments=("$POD_DIR") ;;
        unmountdevice) arguments=("$GLOBAL_DIR") ;;
        detach) arguments=("$VOLUME" "$NODE") ;;
        esac
}

# quick COMMAND...: standard output and error together, as kubelet reads them.
quick() {
        bed_command=$*
        status=0 stderr=''
        "$@" >"$BATS_TEST_TMPDIR/reply" 2>&1 </dev/null 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/reply" || :
        json=$output
}

succeeded() {
        [[ $status == 0 && $output == '{"status":"Success"'*$'}\n' && ${output%$'\n'} != *$'\n'* ]] && return 0
        assert_reply_of_kubelet && assert_field .status Success
}

# acted ACTION...: the verb, acted upon.
acted() {
        status=0 stderr=''
        bed_command="at-syscall $* $DRIVER $verb ${arguments[*]}"
        "$FLEXGRAFT_TOOLS/at-syscall" --timeout 100 --report "$BATS_TEST_TMPDIR/at-report" "$@" -- "$DRIVER" "$verb" "${arguments[@]}" \
                >"$BATS_TEST_TMPDIR/reply" 2>&1 </dev/null 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/reply" || :
        json=$output
        read -r AT_TOTAL AT_REACHED AT_NAME <"$BATS_TEST_TMPDIR/at-report"
        [[ $status != 124 ]] || { echo "it did not end"; return 1; }
}

# See /proc/self/mountinfo as it is, in `mounts`.
look_at_mounts() {
        IFS= read -r -d '' mounts </proc/self/mountinfo || :
}

# is_mounted DIR: once, or not; twice is told in `odd`, and so is a second loop device below.
is_mounted() {
        look_at_mounts
        [[ $mounts == *" $1 "* ]] || return 1
        [[ ${mounts#*" $1 "} != *" $1 "* ]] || odd="mounted twice: $1"
}

# The loop device over the image, in `loop`; fails when there is none.
is_attached() {
        local file line
        loop=''
        for file in /sys/block/loop*/loop/backing_file; do
                { IFS= read -r line <"$file"; } 2>/dev/null || continue
                [[ $line == "$IMAGE"* ]] || continue
                [[ -z $loop ]] || odd="attached twice: $loop and $file"
                loop=${file#/sys/block/} loop=${loop%%/*}
        done
        [[ -n $loop ]]
}

is_detached() {
        ! is_attached
}

loop_size() {
        local sectors
        is_attached && read -r sectors <"/sys/block/$loop/size" && ((sectors * 512 == $1))
}

# effect_of VERB: whether the kernel shows what a Success of it means.
effect_of() {
        case $1 in
        attach | waitforattach) is_attached ;;
        mountdevice) is_mounted "$GLOBAL_DIR" ;;
        mount) is_mounted "$POD_DIR" ;;
        unmount) ! is_mounted "$POD_DIR" ;;
        unmountdevice) ! is_mounted "$GLOBAL_DIR" ;;
        # who asked the device something just then may keep it for a moment
        detach) ! is_attached || wait_until 5 is_detached ;;
        expandvolume | expandfs) loop_size "$NEW_SIZE" ;;
        esac
}

# files_in VARIABLE DIR: all that is there, of whatever kind, in one text; not through mounts.
files_in() {
        local -n files_into=$1
        local found
        found=("$2"/**)
        files_into="${found[*]}"
}

# nothing_left: after detach, all is as after a round in which nothing was done to any verb.
nothing_left() {
        local now file line
        look_at_mounts
        [[ $mounts != *" $BATS_TEST_TMPDIR/"*" $BATS_TEST_TMPDIR/"* ]] || { echo "a mount is left: $(mounts_here)"; return 1; }
        ! is_attached || { echo "a loop device is left: $loop"; return 1; }
        for file in "$GLOBAL_DIR" "$POD_DIR"; do
                [[ ! -e $file ]] || rmdir "$file" || return 1
        done
        files_in now "$STATE_DIR"
        if [[ -n $STATE_FILES && $now != "$STATE_FILES" ]]; then
                echo "left in the state directory: $(diff <(tr ' ' '\n' <<<"$STATE_FILES") <(tr ' ' '\n' <<<"$now") | grep '^[<>]')"
                return 1
        fi
        [[ -z $(volume_records_quickly) ]] || { echo "left: $(volume_records)"; return 1; }
        files_in file "$KUBELET"
        if [[ -n $KUBELET_FILES && $file != "$KUBELET_FILES" ]]; then
                echo "left in kubelet's directory: $(diff <(tr ' ' '\n' <<<"$KUBELET_FILES") <(tr ' ' '\n' <<<"$file") | grep '^[<>]')"
                return 1
        fi
        STATE_FILES=$now KUBELET_FILES=$file
        [[ ! -e /dev/flexgraft ]] || { echo "left: /dev/flexgraft"; return 1; }
        ((AT_NUMBER % 16 == 0)) || return 0
        wait_until 5 no_driver_processes >/dev/null || { echo "processes are left: $(driver_processes)"; return 1; }
}

volume_records_quickly() {
        local file
        for file in "$STATE_DIR"/volumes/*; do
                [[ $file == */.lock ]] || echo "$file"
        done
}

# What the volume should hold, as the pod sees it; then the pod writes.
the_data_are_there() {
        local seen=''
        { read -r seen <"$POD_DIR/token"; } 2>/dev/null || :
        [[ $seen == "$TOKEN" ]] || { echo "the data: '$seen', not '$TOKEN'"; return 1; }
        TOKEN="round $AT_NUMBER of $SERIAL"
        echo "$TOKEN" >"$POD_DIR/token"
}

# round: one life. On failure it says why on standard output.
round() {
        local verb arguments loop mounts odd=''
        DEVICE=''
        [[ -z $EXPANDS ]] || NEW_SIZE=$((SIZE + (1 << 20)))
        for verb in "${LIFE[@]}"; do
                # kubelet makes these directories; the driver does where it finds none
                if ((AT_NUMBER % 2 == 0)); then
                        case $verb in
                        mountdevice) [[ -d $GLOBAL_DIR ]] || mkdir -p "$GLOBAL_DIR" ;;
                        mount) [[ -d $POD_DIR ]] || mkdir -p "$POD_DIR" ;;
                        esac
                fi
                arguments_of "$verb"
                if [[ $verb == "$SWEPT" ]]; then
                        acted --at "$AT_NUMBER" "${ACTION[@]}" || return 1
                        if ((AT_REACHED)); then
                                "$AFTER" || { echo "after the call that was acted upon"; return 1; }
                        else
                                succeeded || { echo "with nothing done to it"; return 1; }
                                [[ $verb != attach || ! $output =~ \"device\":\"([^\"]+)\" ]] || DEVICE=${BASH_REMATCH[1]}
                        fi
                        if [[ -n $GIVE_UP && $AT_REACHED == 1 ]]; then
                                take_down || { echo "given up"; return 1; }
                                break
                        fi
                        quick timeout 100 "$DRIVER" "$verb" "${arguments[@]}"
                        succeeded || { echo "again"; return 1; }
                else
                        quick "$DRIVER" "$verb" "${arguments[@]}"
                        succeeded || { echo "$verb, which nothing was done to"; return 1; }
                fi
                effect_of "$verb" || { echo "$verb succeeded without effect"; return 1; }
                [[ -z $odd ]] || { echo "after $verb: $odd"; return 1; }
                case $verb in
                attach) [[ ! $output =~ \"device\":\"([^\"]+)\" ]] || DEVICE=${BASH_REMATCH[1]} ;;
                mount) the_data_are_there || return 1 ;;
                expandvolume | expandfs) is_grown || return 1 ;;
                esac
        done
        [[ -z $EXPANDS ]] || SIZE=$NEW_SIZE
        nothing_left || return 1
        if [[ $VOLUME_KIND == blank* ]]; then
                [[ -n $GIVE_UP ]] || check_filesystem >"$BATS_TEST_TMPDIR/fsck" 2>&1 || { tail -n 20 "$BATS_TEST_TMPDIR/fsck"; return 1; }
                fresh_image
        fi
}

check_filesystem() {
        case $VOLUME_KIND in
        *-xfs) xfs_repair -n "$IMAGE" ;;
        *-btrfs) btrfs check --readonly "$IMAGE" ;;
        *) e2fsck -fn "$IMAGE" ;;
        esac
}

# take_down: the pod is gone meanwhile; kubelet does not try again what failed, it only tidies up.
take_down() {
        local verb
        for verb in unmount unmountdevice detach; do
                arguments_of "$verb"
                quick timeout 100 "$DRIVER" "$verb" "${arguments[@]}"
                succeeded || return 1
        done
}

# is_grown: the image has its new size, and for expandfs the filesystem has it nearly, too.
is_grown() {
        local blocks
        [[ $verb == expandvolume ]] && return 0
        blocks=$(stat --file-system --format '%b * %S' "$POD_DIR")
        ((blocks > GROWN)) || { echo "the filesystem did not grow: $((blocks)) bytes, as before"; return 1; }
        GROWN=$((blocks))
}

# scrub: after a round that failed, so that the next one has its own failure.
scrub() {
        local pid target device
        for pid in $(driver_processes); do
                kill -KILL "$pid" 2>/dev/null || :
        done
        while read -r target; do
                [[ $target == "$STATE_DIR" ]] || umount -l "$target" || :
        done < <(mounts_here | tac)
        while read -r device; do
                losetup --detach "$device" 2>/dev/null || :
        done < <(loops_of_test)
        wait_until 10 no_loops || :
        rm -rf "${STATE_DIR:?}"/* "$KUBELET"
        STATE_FILES='' KUBELET_FILES='' GROWN=0
        make_volume "$VOLUME_KIND"
}

no_loops() {
        [[ -z $(loops_of_test) ]]
}

# count_calls WHOSE: a round in which nothing is done. CALLS: how many calls the swept verb makes; LIBC: the numbers of those that libc makes
# before main() of each of the verb's own programs.
count_calls() {
        local log=$BATS_TEST_TMPDIR/calls
        STATE_FILES='' KUBELET_FILES='' GROWN=0 AT_NUMBER=0
        ACTION=("$1" --log "$log")
        round || { show_last; return 1; }
        CALLS=$AT_TOTAL
        libc_calls "$log"
}

libc_calls() {
        local number
        LIBC=()
        while read -r number; do
                LIBC[number]=1
        done < <(awk 'BEGIN {libc = "^(brk|arch_prctl|set_tid_address|set_robust_list|rseq|prlimit64|readlink|getrandom|mmap|mprotect)$"}
                NR == 1 {main = $2; start = 1}
                $2 == main && start && $3 !~ libc {start = 0}
                start {print $1}
                $2 == main && $3 == "mprotect" {start = 0}
                $2 == main && $3 == "execve" {start = 1}' "$1")
}

# sweep WHOSE FIRST STRIDE ACTION...: WHOSE calls are counted: --own, those of the verb's own program, --others, those of the commands it
# runs. The swept verb is SWEPT, what must hold after the action AFTER.
sweep() {
        local label shard pids=() tried=0 recovered=0 done=0 trap_of_bats word count calls=0
        label="$SWEPT${GIVE_UP:+, given up}, $VOLUME_KIND, ${LABEL:-${*:4}}"
        [[ $1 == --own ]] || label+=", in a command it runs"
        SERIAL=$((${SERIAL:-0} + 1))
        # what bats does before each command would take longer than the calls that are swept
        trap_of_bats=$(trap -p DEBUG)
        trap - DEBUG
        for ((shard = 0; shard < SHARDS; shard++)); do
                (begin_shard "$shard" && sweep_shard "$@") >"$BATS_TEST_TMPDIR/shard.$shard.output" 2>&1 3>&- &
                pids+=($!)
        done
        for ((shard = 0; shard < SHARDS; shard++)); do
                wait "${pids[shard]}" || echo "shard $shard ended with status $?"
                while read -r word count; do
                        case $word in
                        TRIED) tried=$((tried + count)) ;;
                        RECOVERED) recovered=$((recovered + count)) ;;
                        CALLS) calls=$count ;;
                        DONE) done=$((done + 1)) ;;
                        *) echo "$word $count" ;;
                        esac
                done <"$BATS_TEST_TMPDIR/shard.$shard.output"
        done
        eval "$trap_of_bats"
        echo "# $label: points tried $tried, recovered $recovered (every ${3}. of $calls calls)" >&3
        ((tried > 0 && tried == recovered && done == SHARDS))
}

sweep_shard() {
        local whose=$1 first=$2 stride=$3 tried=0 recovered=0 why=$BATS_TEST_TMPDIR/why
        shift 3
        set +eET
        count_calls "$whose" >"$why" || { echo "not even with nothing done to it:"; cat "$why"; scrub; return 1; }
        ACTION=("$whose" "$@")
        for ((AT_NUMBER = first + shard * stride; ; AT_NUMBER += stride * SHARDS)); do
                AT_REACHED=0
                if round >"$why"; then
                        if ((!AT_REACHED && AT_NUMBER < CALLS / 2)); then
                                echo "there was no call $AT_NUMBER any more, of $CALLS: $AT_TOTAL"
                                AT_REACHED=1
                                break
                        fi
                        ((AT_REACHED)) || break
                        recovered=$((recovered + 1))
                else
                        echo "call $AT_NUMBER, $AT_NAME ($*):"
                        cat "$why"
                        show_last
                        scrub
                        ((AT_REACHED)) || break
                fi
                tried=$((tried + 1))
                ((tried - recovered < 6)) || { echo "6 failures: that will do"; break; }
        done
        wait_until 5 no_driver_processes || { echo "processes are left: $(driver_processes)"; AT_REACHED=1; }
        printf 'TRIED %s\nRECOVERED %s\nCALLS %s\n' "$tried" "$recovered" "$CALLS"
        ((AT_REACHED)) || echo DONE
}

# sweep_failures [long]: the swept verb, with calls failing. A verb with many calls that only read (libblkid looks for every signature it
# knows) has twice the stride.
sweep_failures() {
        local errno i=0 bad=0 stride=$SWEEP_STRIDE
        [[ ${1:-} != long || $stride == 1 ]] || stride=$((stride * 2))
        AFTER=after_failure
        for errno in EIO ENOMEM ENOSPC EINTR; do
                sweep --own $((1 + (FLEXGRAFT_SWEEP_SEED + i++ * stride / 4) % stride)) "$stride" --fail "$errno" || bad=1
        done
        return "$bad"
}

# sweep_kills [long]: the whole tree of processes killed, at every call of the verb's own; then the main process alone. Long: every second.
sweep_kills() {
        local bad=0 stride=1
        [[ ${1:-} != long || $SWEEP_STRIDE == 1 ]] || stride=2
        AFTER=after_kill
        sweep --own $((1 + SWEEP_OFFSET % stride)) "$stride" --kill || bad=1
        sweep --own $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill-main || bad=1
        return "$bad"
}

# What kubelet may find after a verb that was killed: nothing, or a whole reply.
after_kill() {
        [[ -z $output ]] || assert_one_json_line
}

after_failure() {
        # What libc needs for its start, and what cannot be written, are nobody's to tell.
        [[ -v LIBC[AT_NUMBER] ]] && return 0
        [[ $AT_NAME == write* && -z $output ]] && return 0
        case $output in
        '{"status":"Success"'*)
                succeeded || return 1
                effect_of "$verb" || { echo "Success without effect"; return 1; }
                ;;
        *)
                assert_reply_of_kubelet && assert_field .status Failure || return 1
                case $verb in
                attach)
                        ! is_attached || { echo "a Failure that leaves a loop device: $loop"; return 1; }
                        [[ -z $(volume_records_quickly) ]] || { echo "a Failure that leaves a record"; return 1; }
                        ;;
                mountdevice) nothing_at "$GLOBAL_DIR" ;;
                mount) nothing_at "$POD_DIR" ;;
                esac
                ;;
        esac
}

# After a Failure of mount and mountdevice: no mount, and no directory that kubelet did not make.
nothing_at() {
        ! is_mounted "$1" || { echo "a Failure that leaves a mount"; return 1; }
        ((AT_NUMBER % 2 == 0)) || [[ ! -e $1 ]] || { echo "a Failure that leaves the directory it made"; return 1; }
}

# ---- killed

@test "attach killed at any call" {
        SWEPT=attach
        volume formatted
        sweep_kills
}

@test "attach that makes the image, killed at any call" {
        SWEPT=attach
        volume blank
        sweep_kills
}

@test "waitforattach that does the attaching, killed at any call" {
        LIFE=("${LIFE[@]:1}")
        SWEPT=waitforattach
        volume formatted
        sweep_kills
}

@test "mountdevice of a formatted volume killed at any call" {
        SWEPT=mountdevice
        volume formatted
        sweep_kills long
}

@test "mountdevice of a formatted volume killed at any call of e2fsck" {
        SWEPT=mountdevice AFTER=after_kill
        volume formatted
        sweep --others 1 "$SWEEP_STRIDE" --kill
        sweep --others 1 $((SWEEP_STRIDE * 2)) --kill-main
}

@test "mountdevice of a blank volume killed at any call" {
        SWEPT=mountdevice
        volume blank
        sweep_kills
}

@test "mountdevice of a blank volume killed at any call of mkfs: never mounted half made" {
        SWEPT=mountdevice AFTER=after_kill
        volume blank
        sweep --others 1 1 --kill
        sweep --others $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill-main
}

@test "mountdevice of a blank volume killed at some calls of mkfs.xfs and mkfs.btrfs" {
        local kind bad=0
        SWEPT=mountdevice AFTER=after_kill
        for kind in blank-xfs blank-btrfs; do
                volume "$kind"
                sweep --others $((1 + SWEEP_OFFSET)) $((SWEEP_STRIDE * 6)) --kill || bad=1
        done
        return "$bad"
}

@test "mountdevice killed while mkfs runs on, and called again at once: never mounted half made" {
        SWEPT=mountdevice AFTER=after_second_call LABEL='main process killed and the verb called again at once'
        volume blank
        export DRIVER GLOBAL_DIR SPEC IMAGE SECOND
        # shellcheck disable=SC2016
        sweep --others $((1 + SWEEP_OFFSET)) $((SWEEP_STRIDE * 4)) --run 'kill -KILL "$AT_MAIN_PID"
                rm -f "$SECOND".*
                device=$(losetup --noheadings --output NAME --associated "$IMAGE")
                (timeout 100 "$DRIVER" mountdevice "$GLOBAL_DIR" "$device" "$SPEC" >"$SECOND.reply" 2>&1; echo $? >"$SECOND.status") &'
}

# The call that was made while mkfs of the one that was killed still ran may fail, but it must say so; then comes the third.
after_second_call() {
        after_kill || return 1
        wait_until 100 test -s "$SECOND.status"
        read -r status <"$SECOND.status"
        IFS= read -r -d '' output <"$SECOND.reply" || :
        json=$output stderr=''
        assert_reply_of_kubelet
}

@test "mount killed at any call" {
        SWEPT=mount
        volume formatted
        sweep_kills
}

@test "unmount killed at any call" {
        SWEPT=unmount
        volume formatted
        sweep_kills
}

@test "unmountdevice killed at any call" {
        SWEPT=unmountdevice
        volume formatted
        sweep_kills
}

@test "detach killed at any call" {
        SWEPT=detach
        volume formatted
        sweep_kills
}

@test "expandvolume killed at any call" {
        needs verbs/expandvolume
        LIFE=(attach mountdevice mount expandvolume unmount unmountdevice detach)
        SWEPT=expandvolume EXPANDS=yes
        volume formatted
        sweep_kills
}

@test "expandfs killed at any call" {
        needs verbs/expandvolume verbs/expandfs
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes AFTER=after_kill
        volume xfs
        sweep_kills long
        sweep --others 1 "$SWEEP_STRIDE" --kill
}

# bats test_tags=kernel
@test "expandfs of ext4 killed at some calls" {
        needs verbs/expandvolume verbs/expandfs
        can_grow_ext4 || skip "root may not resize a mounted ext4 here: no CAP_SYS_RESOURCE"
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes AFTER=after_kill
        volume formatted
        sweep --own $((1 + SWEEP_OFFSET)) $((SWEEP_STRIDE * 2)) --kill
        sweep --others $((1 + SWEEP_OFFSET)) $((SWEEP_STRIDE * 4)) --kill
}

@test "a verb killed at any call and given up: unmount, unmountdevice and detach leave nothing" {
        local bad=0
        AFTER=after_kill GIVE_UP=yes
        for SWEPT in attach mountdevice mount unmount unmountdevice; do
                volume formatted
                sweep --own $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill || bad=1
        done
        SWEPT=mountdevice
        volume blank
        sweep --others $((1 + SWEEP_OFFSET)) $((SWEEP_STRIDE * 2)) --kill || bad=1
        return "$bad"
}

# ---- refused

@test "attach with any call failing: a clean reply, and again succeeds" {
        SWEPT=attach
        volume formatted
        sweep_failures
}

@test "attach that makes the image, with any call failing" {
        SWEPT=attach
        volume blank
        sweep_failures
}

@test "waitforattach that does the attaching, with any call failing" {
        LIFE=("${LIFE[@]:1}")
        SWEPT=waitforattach
        volume formatted
        sweep_failures
}

@test "mountdevice of a formatted volume with any call failing" {
        SWEPT=mountdevice
        volume formatted
        sweep_failures long
}

@test "mountdevice of a blank volume with any call failing" {
        SWEPT=mountdevice
        volume blank
        sweep_failures
}

@test "mount with any call failing" {
        SWEPT=mount
        volume formatted
        sweep_failures
}

@test "unmount with any call failing" {
        SWEPT=unmount
        volume formatted
        sweep_failures
}

@test "unmountdevice with any call failing" {
        SWEPT=unmountdevice
        volume formatted
        sweep_failures
}

@test "detach with any call failing" {
        SWEPT=detach
        volume formatted
        sweep_failures
}

@test "expandvolume with any call failing" {
        needs verbs/expandvolume
        LIFE=(attach mountdevice mount expandvolume unmount unmountdevice detach)
        SWEPT=expandvolume EXPANDS=yes
        volume formatted
        sweep_failures
}

@test "expandfs with any call failing" {
        needs verbs/expandvolume verbs/expandfs
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes
        volume xfs
        sweep_failures long
}

@test "init, getvolumename and isattached with any call failing: a clean reply" {
        local verb arguments tried failed=0 number errno
        needs verbs/init verbs/getvolumename verbs/isattached
        volume formatted
        begin_shard 0
        for verb in init getvolumename isattached; do
                tried=0
                case $verb in
                init) arguments=() ;;
                getvolumename) arguments=("$SPEC") ;;
                isattached) arguments=("$SPEC" "$NODE") ;;
                esac
                LIFE=() SWEPT=$verb
                acted --log "$BATS_TEST_TMPDIR/calls"
                succeeded
                libc_calls "$BATS_TEST_TMPDIR/calls"
                for errno in EIO ENOMEM EINTR; do
                        for ((AT_NUMBER = 1; ; AT_NUMBER++)); do
                                acted --at "$AT_NUMBER" --fail "$errno"
                                ((AT_REACHED)) || break
                                tried=$((tried + 1))
                                after_failure || { echo "$verb: call $AT_NUMBER, $AT_NAME ($errno)"; show_last; failed=$((failed + 1)); }
                        done
                done
                echo "# $verb, --fail: points tried $tried, clean $((tried - failed))" >&3
        done
        ((failed == 0))
}
