# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# Sweeps: a program is killed, or refused, at one system call after the other, and each time what follows must put things right.
#
# FLEXGRAFT_SWEEP_STRIDE says which calls are tried: 1 all of them, 40 (if nothing is said) every fortieth. FLEXGRAFT_SWEEP_SEED says which one is
# the first: setup_suite makes it of the commit's tree, so that each commit tries others, and the same ones when it is tried again.

# sweep [OPTION...] -- STEP ; ...: at-each-syscall with these (its source lists them), over the points that are this run's. WIDER=N makes the stride
# N times as wide, for points that take long; LABEL is what the line in the log says. Afterwards every reply of the program was one of those
# that its callers know.
sweep() {
        local stride=$(($(sweep_stride) * ${WIDER:-1})) replies=$BATS_TEST_TMPDIR/sweep-replies report=$BATS_TEST_TMPDIR/sweep-report reply=json failed=''
        [[ " $* " != *" --reply kubelet "* ]] || reply=kubelet
        [[ " $* " != *" --reply plain "* ]] || reply=plain
        SWEEP_NUMBER=$((${SWEEP_NUMBER:-0} + 1))
        : >"$replies"
        "$FLEXGRAFT_TOOLS/at-each-syscall" --from "$(sweep_first "$stride")" --step "$stride" --mine "$BATS_RUN_TMPDIR" --replies "$replies" "$@" \
                >"$report" 2>&1 3>&- || failed=yes
        if [[ -n $failed ]]; then
                echo "$BATS_TEST_DESCRIPTION${LABEL:+ ($LABEL)}:"
                cat "$report"
                return 1
        fi
        replies_are_good "$reply" "$replies" || return 1
        echo "# ${LABEL:+$LABEL: }$(<"$report")" >&3
}

sweep_stride() {
        echo "${FLEXGRAFT_SWEEP_STRIDE:-40}"
}

# sweep_first STRIDE: the first point; another one for each sweep of a test.
sweep_first() {
        echo $((1 + (FLEXGRAFT_SWEEP_SEED + ${SWEEP_NUMBER:-0} * 7) % $1))
}

# replies_are_good json|kubelet|plain FILE: what the program said when it was acted upon, one line each time.
replies_are_good() {
        local bad filter
        [[ $1 != plain ]] || return 0
        # shellcheck disable=SC2016
        case $1 in
        json) filter='$reply.status == "Success" and ($exit == 0 or $exit > 128) or $reply.status == "Failure" and ($exit == 1 or $exit == 2 or $exit > 128) and
                ($reply.message | type == "string" and length > 0) and ($reply.error | (.operation | type == "string" and length > 0) and
                (.errno | test("^E[A-Z0-9]+$")) and has("subject") and has("where"))' ;;
        kubelet) filter='($reply | keys - ["status", "message", "device", "volumeName", "attached", "capabilities", "volumeNewSize"] == []) and
                ([$reply | .message, .device, .volumeName | select(. != null) | type] | unique - ["string"] == []) and
                ($reply.attached == null or ($reply.attached | type == "boolean")) and
                ($reply.volumeNewSize == null or ($reply.volumeNewSize | type == "number")) and
                ($reply.status == "Success" and ($exit == 0 or $exit > 128) or
                 $reply.status == "Failure" and ($exit == 0 or $exit > 128) and ($reply.message | length > 0) or
                 $reply.status == "Not supported" and ($exit == 1 or $exit > 128))' ;;
        esac
        bad=$(jq -rR 'split("\t") as [$call, $name, $exit_text, $text] | . as $line | ($exit_text | tonumber) as $exit |
                (try ($text | fromjson) catch null) as $reply | select(($reply | type == "object" | not) or ('"$filter"' | not)) | $line' "$2") || return 1
        [[ -z $bad ]] || { echo "replies that are not good (call, name, exit status, reply):"; echo "$bad"; return 1; }
}
