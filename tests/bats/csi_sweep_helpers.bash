# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of csi_service_helpers.bash and sweep_helpers.bash
# The CSI driver, or a program that it has started, is killed at one system call after the other of a call; then the call is repeated as kubelet
# and the sidecars do, or given up, and in the end nothing is left.
#
# After `load sweep_helpers` and `load csi_service_helpers`.

# What a client takes for "it may have been done, or not": it goes on as if it had been.
UNCERTAIN=' CANCELLED DEADLINE_EXCEEDED UNAVAILABLE RESOURCE_EXHAUSTED ABORTED '

# swept CALL: rounds of one life of a volume, in which CALL, the test's function with one RPC, is made while one of these is killed, each at this
# run's points: everything ("all"), the driver alone while its programs go on ("driver"), the one process that makes the system call ("caller":
# the driver, its launcher, a program, or a command that the program runs). The test defines, each a function that fails if something is wrong:
#   before      what comes before the call
#   after       the call has succeeded: what is there now, and the calls that reverse it
#   given_up    the call is not repeated: the calls that reverse it whatever it has done. In every second round, if it is defined
#   nothing     what a final error, which says that nothing was done, has left: nothing. If it is defined
# STARTING=yes has the points of the driver's own start, too; else those after it.
swept() {
        local call=$1 who total first point points tried=0 reached was_reached label
        CSI_CLIENT_OPTIONS=(--fresh)
        [[ -z $CSI_IN ]] || csi_hang_up
        undisturbed "$call" || return 1
        for who in ${KILLED:-all driver caller}; do
                points=$(WIDER=$((${FLEXGRAFT_SWEEP_STRIDE:-1} > 1 ? 3 : 1)) sweep_points $((total - first + 1))) || return 1
                SWEEP_NUMBER=$((${SWEEP_NUMBER:-0} + 1)) reached=''
                # a run may make fewer calls than the one that was counted: where none of the points was met, one in the middle is tried
                for point in $points middle; do
                        if [[ $point == middle ]]; then
                                [[ -z $reached ]] || break
                                point=$(((total - first) / 2 + 1))
                        fi
                        point=$((point + first - 1)) tried=$((tried + 1))
                        label="$call, $who killed at $point of $total"
                        round "$call" || { echo "$label: $(tail -n1 "$BATS_TEST_TMPDIR/calls" 2>/dev/null): $code $output"; return 1; }
                        read -r _ was_reached _ <"$BATS_TEST_TMPDIR/calls"
                        [[ $was_reached != 1 ]] || reached+=,$((point - first + 1))
                done
                sweep_tried "$reached" || return 1
        done
        # what a killed call has noted in the index of uses is looked up again by whoever finds it, and goes with volume-reconcile
        helper volume-reconcile '{}'
        assert_success || return 1
        is "$(find "$STATE_DIR/uses" -name '*:v:*' 2>/dev/null)" "" "volumes' entries in the index of uses" || return 1
        echo "# $call: $tried of $((total - first + 1)) points" >&3
}

# undisturbed CALL: a round in which nothing is killed: sets total and first, the calls' number and which is the first after the driver's start.
undisturbed() {
        local log=$BATS_TEST_TMPDIR/count.log
        before || return 1
        driver_traced --log "$log" --count
        "$1"
        answers OK || return 1
        driver_ended
        wait_for_traced # it writes its report when all is over
        read -r total _ <"$BATS_TEST_TMPDIR/calls"
        first=1
        [[ -n ${STARTING:-} ]] || first=$(awk '$3 ~ /^epoll_(p)?wait/ { print $1; exit }' "$log")
        driver_anew
        after || return 1
        driver_ended
        what_is_left >"$BATS_TEST_TMPDIR/left.before"
        driver_anew
}

# round CALL: one, at point, with who killed.
round() {
        local action=(--kill) late='' killed=$BATS_TEST_TMPDIR/killed
        rm -f "$killed"
        case $who in
        driver) action=(--kill-main) ;;
        caller) action=(--run "touch '$killed'; kill -KILL \$AT_PID") ;;
        esac
        before || { echo "before it"; return 1; }
        driver_traced --to-point --at "$point" "${action[@]}"
        "$1"
        [[ $who != caller || $code != OK ]] || late=yes
        if [[ $code != OK && $code != NONE && $UNCERTAIN != *" $code "* ]]; then
                [[ $who == caller ]] || { echo "an answer that is final"; return 1; }
                ! declare -F nothing >/dev/null || nothing || { echo "a final answer, and something is left"; return 1; }
        fi
        if declare -F given_up >/dev/null && (((tried + FLEXGRAFT_SWEEP_SEED) % 2)); then
                if [[ $who != caller ]] || no_driver_lives; then
                        driver_anew
                fi
                given_up || { echo "given up"; return 1; }
        else
                [[ $who == caller ]] || driver_anew
                repeated "$1" || { echo "repeated"; return 1; }
                after || { echo "after it"; return 1; }
        fi
        driver_ended
        wait_for_traced
        wait_until 10 nothing_is_left >/dev/null || { cat "$BATS_TEST_TMPDIR/left"; return 1; }
        driver_anew
}

# repeated CALL: until it is OK. Who is asked meanwhile may be at work on what an earlier driver has begun, or be gone. What takes away is repeated
# whatever it answers. `late`: the one that is to be killed was not when the call before began, so that one final answer is expected if it is killed
# by now. It gives up before the test's limit, and shows what is there.
repeated() {
        local deadline=$((SECONDS + 10 * ${FLEXGRAFT_PATIENCE:-6})) was
        while :; do
                was=''
                [[ -z ${late:-} || ! -e $killed ]] || was=killed
                "$1"
                if [[ $code == OK ]]; then
                        [[ -z $was ]] || late=''
                        return 0
                fi
                if [[ -n ${late:-} && -e $killed && $UNCERTAIN != *" $code "* ]]; then
                        late=''
                        continue
                fi
                if ((SECONDS >= deadline)) || [[ $UNCERTAIN != *" $code "* && $1 != un* ]]; then
                        echo "$1 is not OK: $code $output"
                        what_is_left
                        find "$STATE_DIR/volumes" -name '*.json' -exec cat {} +
                        return 1
                fi
                ! no_driver_lives || driver_anew
                pause 2
        done
}

# asked CALL...: the same for the calls after it.
asked() {
        local one
        for one; do
                repeated "$one" || return 1
        done
}

# driver_traced OPTION...: a driver under at-syscall; it may be gone before it listens.
driver_traced() {
        driver_ended
        "$FLEXGRAFT_TOOLS/at-syscall" --report "$BATS_TEST_TMPDIR/calls" --timeout 120 "$@" "$FLEXGRAFT_BIN/csi-driver" --endpoint "$CSI_SOCKET" \
                --node "$NODE_ID" ${CSI_REGISTRY:+--registry "$CSI_REGISTRY"} >"$BATS_TEST_TMPDIR/csi.out" 2>"$BATS_TEST_TMPDIR/csi.err" 3>&- &
        CSI_PID=$! TRACER_PID=$CSI_PID
        until csi_listens || ! kill -0 "$CSI_PID" 2>/dev/null; do
                pause 2
        done
}

# find_drivers: the processes of the driver, traced or not, in found_drivers.
find_drivers() {
        local process words
        found_drivers=()
        find_new_processes
        for process in "${found_processes[@]}"; do
                { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null || continue # it has ended
                [[ "${words[*]}" != "$FLEXGRAFT_BIN/csi-driver --endpoint $CSI_SOCKET"* ]] || found_drivers+=("${process#/proc/}")
        done
}

no_driver_lives() {
        find_drivers
        ((${#found_drivers[@]} == 0))
}

# driver_ended: the driver of now, traced or not, has ended; programs of one that was killed go on, and so does their tracer.
driver_ended() {
        local pid
        find_drivers
        for pid in "${found_drivers[@]}"; do
                kill -TERM "$pid" 2>/dev/null || :
        done
        wait_until 20 no_driver_lives
        rm -f "$CSI_SOCKET"
        [[ -z $CSI_PID || $CSI_PID == "${TRACER_PID:-}" ]] || wait "$CSI_PID" || :
        CSI_PID=''
}

wait_for_traced() {
        [[ -z ${TRACER_PID:-} ]] || wait "$TRACER_PID" || :
        TRACER_PID=''
}

driver_anew() {
        driver_ended
        csi_start ${CSI_REGISTRY:+--registry "$CSI_REGISTRY"}
}

# what_is_left: files, mounts, loop devices and processes of the test, less the driver and its launcher; and less what a pool's next change
# replaces, ..sums.tmp.
what_is_left() {
        find "$STATE_DIR" "$KUBELET" "$BATS_TEST_TMPDIR/srv" -printf '%y %m %U %p\n' | grep -v -e "$STATE_DIR/operations/" -e " $STATE_DIR/uses/" -e '/\.\.sums\.tmp$' | sort
        mounts_here | sed 's/^/mount /'
        loops_of_test
        programs_of_test
}

# programs_of_test: that the driver has started.
programs_of_test() {
        local path
        find_new_processes
        ((${#found_processes[@]} > 0)) || return 0
        grep -lzsF "FLEXGRAFT_CONFIG=$FLEXGRAFT_CONFIG" "${found_processes[@]/%//environ}" | while read -r path; do
                path=$(readlink "${path%/environ}/exe" || :)
                [[ $path != "$FLEXGRAFT_BIN"/* || $path == */csi-driver ]] || echo "process $path"
        done
}

nothing_is_left() {
        what_is_left | diff "$BATS_TEST_TMPDIR/left.before" - >"$BATS_TEST_TMPDIR/left"
}
