#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many calls of the driver at once: for many volumes, for one volume, and for one image under two names.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        local name
        export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-300}
        # 200 loop devices at once come into being here, and would stay
        LOOPS_BEFORE=8
        for name in /sys/block/loop*; do
                name=${name##*/loop}
                ((name < LOOPS_BEFORE || name > 1000)) || LOOPS_BEFORE=$((name + 1))
        done
        export LOOPS_BEFORE
}

teardown_file() {
        "$FLEXGRAFT_TOOLS/remove-loops" "$LOOPS_BEFORE"
        schema_validate
}

setup() {
        bed_setup
        driver_setup
        needs verbs/init verbs/getvolumename verbs/attach verbs/waitforattach verbs/mountdevice verbs/mount verbs/unmount verbs/unmountdevice \
                verbs/detach
        PROBLEMS=$BATS_TEST_TMPDIR/problems
        : >"$PROBLEMS"
}

teardown() {
        driver_teardown
}

# one VERB ARG...: a call as kubelet makes it; many may run at once. Sets `reply` and `code`. What is not a Success is written to PROBLEMS.
one() {
        local file=$BATS_TEST_TMPDIR/reply.$BASHPID
        code=0
        timeout 100 "$DRIVER" "$@" >"$file" 2>&1 </dev/null 3>&- || code=$?
        IFS= read -r -d '' reply <"$file" || :
        [[ $code == 0 && $reply == '{"status":"Success"'*$'}\n' && ${reply%$'\n'} != *$'\n'* ]] && return 0
        echo "$* -> $code: $reply" >>"$PROBLEMS"
        return 1
}

no_problems() {
        [[ ! -s $PROBLEMS ]] && return 0
        echo "$(wc -l <"$PROBLEMS") problems, the first of them:"
        head -n 20 "$PROBLEMS"
        return 1
}

# up NAME / down NAME: all calls of half a life, without a check but that of each reply.
up() {
        local spec device='' global pod
        spec=$(spec "$1" type=loop size=8Mi)
        global=$(global_dir "$1") pod=$(pod_dir "$1")
        one init
        one getvolumename "$spec"
        one attach "$spec" "$NODE"
        [[ $reply =~ \"device\":\"([^\"]+)\" ]] && device=${BASH_REMATCH[1]}
        one waitforattach "$device" "$spec"
        make_dir "$global"
        one mountdevice "$global" "$device" "$spec"
        make_dir "$pod"
        one mount "$pod" "$spec"
        echo "of $1" >"$pod/file"
}

down() {
        local global pod
        global=$(global_dir "$1") pod=$(pod_dir "$1")
        one unmount "$pod"
        [[ ! -e $pod ]] || rmdir "$pod" || echo "rmdir $pod" >>"$PROBLEMS"
        one unmountdevice "$global"
        [[ ! -e $global ]] || rmdir "$global" || echo "rmdir $global" >>"$PROBLEMS"
        one detach "$1" "$NODE"
}

# at_once COUNT WORKERS FUNCTION: FUNCTION for the volumes v0 to vCOUNT-1, WORKERS of them at once.
at_once() {
        local worker pids=()
        for ((worker = 0; worker < $2; worker++)); do
                # shellcheck disable=SC2030
                (
                        set +e
                        for ((i = worker; i < $1; i += $2)); do
                                "$3" "v$i"
                        done
                        :
                ) 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
}

@test "200 volumes, 16 calls at a time: no call fails, nothing is left, the data are there" {
        local devices name
        at_once 200 16 up
        no_problems
        devices=$(loops_of_test)
        is "$(wc -l <<<"$devices")" 200 "loop devices"
        is "$(losetup --list --raw --noheadings --output BACK-FILE | grep -F "$POOL/" | sort -u | wc -l)" 200 "images with a loop device"
        is "$(mounts_here | sort | uniq -c | awk '$1 == 1' | wc -l)" 400 "mount points, each with one mount"
        is "$(volume_records | wc -l)" 200 records
        at_once 200 16 down
        no_problems
        assert_nothing_left
        is "$(find "$POOL" -name '*.img' | wc -l)" 200 images
        is "$(find "$STATE_DIR" -type f ! -name '*.img' ! -name .lock ! -name '.call-counts*' ! -path '*/provisioned/*' ! -path '*/known-pools/*' ! -path '*/pool-sums/*' ! -path '*/uses/p*' ! -path '*/uses/.empty')" '' "files besides the images"
        for name in v0 v99 v199; do
                lifecycle_up "$name" type=loop size=8Mi
                is "$(<"$(pod_dir "$name")/file")" "of $name"
                lifecycle_down "$name"
        done
        assert_nothing_left
        echo "# 200 volumes, 2000 calls, 16 at a time: no failure, nothing left" >&3
}

# together COUNT VERB ARG...: the same call COUNT times at once. Their replies in `replies`, one per line, sorted, each once.
together() {
        local i pids=() count=$1
        shift
        for ((i = 0; i < count; i++)); do
                (
                        one "$@" || :
                        printf %s "$reply" >"$BATS_TEST_TMPDIR/together.$i"
                ) 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        replies=$(sort -u "$BATS_TEST_TMPDIR"/together.*)
        rm "$BATS_TEST_TMPDIR"/together.*
}

# one_volume COUNT: every call of a life, COUNT times at once.
one_volume() {
        local spec device global pod one_device='^[{]"status":"Success","device":"(/dev/loop[0-9]+)"[}]$'
        spec=$(spec data type=loop size=8Mi)
        global=$(global_dir data) pod=$(pod_dir data)
        together "$1" attach "$spec" "$NODE"
        no_problems
        [[ $replies =~ $one_device ]] || { echo "not one device: $replies"; return 1; }
        device=${BASH_REMATCH[1]}
        is "$(loop_of "$(image_of data)")" "$device" "the loop device"
        together "$1" waitforattach "$device" "$spec"
        make_dir "$global"
        together "$1" mountdevice "$global" "$device" "$spec"
        no_problems
        is "$(node_mounts_at "$global")" 1 "mounts at the volume's directory"
        make_dir "$pod"
        together "$1" mount "$pod" "$spec"
        no_problems
        is "$(node_mounts_at "$pod")" 1 "mounts at the pod's directory"
        [[ ! -e $pod/file ]] || is "$(<"$pod/file")" written
        echo written >"$pod/file"
        together "$1" unmount "$pod"
        together "$1" unmountdevice "$global"
        together "$1" detach data "$NODE"
        no_problems
        rmdir --ignore-fail-on-non-empty "$pod" "$global" 2>/dev/null || :
        assert_nothing_left
        e2fsck -fn "$(image_of data)"
}

@test "two calls for one volume at once: one mount, one loop device" {
        for _ in 1 2 3 4 5 6; do
                delete_volume data
                one_volume 2
                one_volume 2
        done
}

@test "eight calls for one volume at once: one mount, one loop device" {
        for _ in 1 2 3; do
                delete_volume data
                one_volume 8
                one_volume 8
        done
}

# held NAME: from now on a mountdevice of the volume NAME, which is blank, is under way: it stands before the first call of mkfs and
# holds the volume's lock, until let_go.
held() {
        local device
        HELD_SPEC=$(spec "$1" type=loop size=8Mi) HELD_DIR=$(global_dir "$1")
        call attach "$HELD_SPEC" "$NODE"
        assert_success
        device=$(json_field .device)
        HELD_DEVICE=$device
        make_dir "$HELD_DIR"
        background "$FLEXGRAFT_TOOLS/at-syscall" --others --at 1 --run "touch '$BATS_TEST_TMPDIR/is-held'
                until [ -e '$BATS_TEST_TMPDIR/let-go' ]; do sleep 0.02; done" "$DRIVER" mountdevice "$HELD_DIR" "$device" "$HELD_SPEC" \
                >"$BATS_TEST_TMPDIR/held.reply"
        wait_until 20 test -e "$BATS_TEST_TMPDIR/is-held"
}

let_go() {
        touch "$BATS_TEST_TMPDIR/let-go"
        wait_until 20 process_is_gone "$BACKGROUND_PID"
}

@test "a volume whose call is stopped in the middle: calls for others do not wait, calls for it do" {
        held first
        lifecycle_up second type=loop size=8Mi
        lifecycle_down second
        # the second call for the first one, meanwhile
        (
                one mountdevice "$HELD_DIR" "$HELD_DEVICE" "$HELD_SPEC" || :
                touch "$BATS_TEST_TMPDIR/second-ended"
        ) 3>&- &
        local second=$!
        sleep 0.5
        [[ ! -e $BATS_TEST_TMPDIR/second-ended ]] || { echo "it did not wait"; cat "$PROBLEMS"; return 1; }
        call getvolumename "$HELD_SPEC"
        assert_success
        let_go
        wait "$second"
        no_problems
        is "$(<"$BATS_TEST_TMPDIR/held.reply")" '{"status":"Success"}'
        is "$(node_mounts_at "$HELD_DIR")" 1 "mounts of the first one"
        call unmountdevice "$HELD_DIR"
        assert_success
        call detach first "$NODE"
        assert_success
        rmdir --ignore-fail-on-non-empty "$HELD_DIR" 2>/dev/null || :
        assert_nothing_left
}

@test "a call for a volume that another call holds for too long ends with a Failure" {
        TIMEOUTS='"unmount": 2, "device": 3, "command": 30, "call": 2'
        write_config ''
        held first
        not_hung call attach "$HELD_SPEC" "$NODE"
        assert_refused "another call for this volume" "within 5 s"
        let_go
        unset TIMEOUTS
        write_config ''
        call mountdevice "$HELD_DIR" "$HELD_DEVICE" "$HELD_SPEC"
        assert_success
        is "$(node_mounts_at "$HELD_DIR")" 1 "mounts"
}

# either_way NAME: the volume is attached, with a record and one loop device, or it is not, with neither.
either_way() {
        local devices records
        devices=$(loop_of "$(image_of "$1")" | wc -l)
        records=$(volume_records | grep -cxF "$1.json" || :)
        [[ $devices == "$records" && $devices -le 1 ]] && return 0
        echo "$devices loop devices and $records records"
        return 1
}

@test "attach and detach of one volume at once, 50 times: consistent each time" {
        local spec i pids attached=0
        spec=$(spec data type=loop size=8Mi)
        for ((i = 0; i < 50; i++)); do
                (one attach "$spec" "$NODE" || :) 3>&- &
                pids=($!)
                (one detach data "$NODE" || :) 3>&- &
                wait "${pids[@]}" $!
                no_problems
                either_way data
                [[ -z $(volume_records) ]] || attached=$((attached + 1))
                # the next race begins where this one ended
        done
        echo "# attached after $attached of 50 races" >&3
        call detach data "$NODE"
        assert_success
        assert_nothing_left
}

@test "mount and unmount of one pod's directory at once, 50 times: consistent each time" {
        local spec pod i pids mounted=0 mounts
        lifecycle_up data type=loop size=8Mi
        spec=${SPECS[data]} pod=$(pod_dir data)
        for ((i = 0; i < 50; i++)); do
                make_dir "$pod"
                (one mount "$pod" "$spec" || :) 3>&- &
                pids=($!)
                (one unmount "$pod" || :) 3>&- &
                wait "${pids[@]}" $!
                no_problems
                mounts=$(node_mounts_at "$pod")
                ((mounts <= 1)) || { echo "$mounts mounts"; return 1; }
                mounted=$((mounted + mounts))
        done
        echo "# mounted after $mounted of 50 races" >&3
        make_dir "$pod"
        lifecycle_down data
        assert_nothing_left
}

# both COMMAND1 -- COMMAND2: at once; how they ended in `first` and `second`: their replies.
both() {
        local left=() right pids
        while [[ $1 != -- ]]; do
                left+=("$1")
                shift
        done
        shift
        right=("$@")
        timeout 100 "${left[@]}" >"$BATS_TEST_TMPDIR/left" 2>&1 </dev/null 3>&- &
        pids=($!)
        timeout 100 "${right[@]}" >"$BATS_TEST_TMPDIR/right" 2>&1 </dev/null 3>&- &
        wait "${pids[@]}" $! || :
        first=$(<"$BATS_TEST_TMPDIR/left") second=$(<"$BATS_TEST_TMPDIR/right")
}

# A reply is one line that says Success or Failure.
one_reply() {
        [[ $1 == '{"status":"'@(Success|Failure)'"'*'}' && $1 != *$'\n'* ]] && return 0
        echo "not a reply: $1"
        return 1
}

@test "one volume attached under two driver names at once: never two loop devices over its image" {
        local spec one other i
        install_driver flexgraft~loop
        one=$DRIVER
        install_driver k8s~loop
        other=$DRIVER
        spec=$(spec data type=loop size=8Mi)
        for ((i = 0; i < 20; i++)); do
                both "$one" attach "$spec" "$NODE" -- "$other" attach "$spec" "$NODE"
                one_reply "$first"
                one_reply "$second"
                [[ $first$second == *'"Success"'* ]] || { echo "nobody won: $first $second"; return 1; }
                is "$(loop_of "$(image_of data)" | wc -l)" 1 "loop devices over the image (round $i: $first $second)"
                both "$one" detach data "$NODE" -- "$other" detach data "$NODE"
                one_reply "$first"
                one_reply "$second"
                # one of the two may have refused what is the other's
                "$one" detach data "$NODE" >/dev/null
                assert_nothing_left
        done
}

@test "one image as two volumes at once: one wins, or they share; never two loop devices over it" {
        local i
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR"
        truncate -s 8M "$POOL/shared.img"
        write_policy '"images": ["default/shared.img"]'
        for ((i = 0; i < 20; i++)); do
                both "$DRIVER" attach "$(spec a type=loop image=shared.img)" "$NODE" -- "$DRIVER" attach "$(spec b type=loop image=shared.img)" "$NODE"
                one_reply "$first"
                one_reply "$second"
                [[ $first$second == *'"Success"'* ]] || { echo "nobody won: $first $second"; return 1; }
                is "$(loop_of "$POOL/shared.img" | wc -l)" 1 "loop devices over the image (round $i: $first $second)"
                call detach a "$NODE"
                assert_success
                call detach b "$NODE"
                assert_success
                assert_nothing_left
        done
}
