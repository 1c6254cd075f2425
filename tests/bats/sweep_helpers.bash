# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# Sweeps: a program is killed, or refused, at one system call after the other, and each time what follows must put things right.
#
# Which calls: those that tests/points has for the sweep, the same ones in every run. A line there is the file of the test, which of the test's
# sweeps it is, the calls, and the name of the test. With FLEXGRAFT_SWEEP_STRIDE=N every Nth call instead; FLEXGRAFT_SWEEP_SEED (0) says which one
# is the first. FLEXGRAFT_SWEEP_POINTS is another file than tests/points, and FLEXGRAFT_SWEEP_TRIED one that gets such a line for each sweep: what
# it tried.

# sweep [OPTION...] -- STEP ; ...: at-each-syscall with these (its source lists them), over the calls that are this run's, or those of --at. WIDER=N
# makes the stride N times as wide, for points that take long; LABEL is what the line in the log says. Afterwards every reply of the program was
# one of those that its callers know.
sweep() {
        local stride replies=$BATS_TEST_TMPDIR/sweep-replies report=$BATS_TEST_TMPDIR/sweep-report reply=json failed='' which=()
        [[ " $* " != *" --reply kubelet "* ]] || reply=kubelet
        [[ " $* " != *" --reply plain "* && " $* " != *" --reply any "* ]] || reply=plain
        SWEEP_NUMBER=$((${SWEEP_NUMBER:-0} + 1))
        if [[ " $* " == *" --at "* ]]; then
                :
        elif sweep_is_fixed; then
                which=(--points "$(fixed_points)")
                [[ -n ${which[1]} ]] || return 1
        else
                stride=$(sweep_stride)
                which=(--from "$(sweep_first "$stride")" --step "$stride")
        fi
        : >"$replies"
        "${HELPER_PREFIX[@]}" "$FLEXGRAFT_TOOLS/at-each-syscall" "${which[@]}" --mine "$BATS_RUN_TMPDIR" --replies "$replies" "$@" \
                >"$report" 2>&1 3>&- || failed=yes
        if [[ -n $failed ]]; then
                echo "$BATS_TEST_DESCRIPTION${LABEL:+ ($LABEL)}:"
                cat "$report"
                return 1
        fi
        replies_are_good "$reply" "$replies" || return 1
        sweep_tried "$(awk '{ print $NF }' "$report")"
        echo "# ${LABEL:+$LABEL: }$(<"$report")" >&3
}

sweep_is_fixed() {
        [[ -z ${FLEXGRAFT_SWEEP_STRIDE:-} ]]
}

# fixed_points: of the test's sweep number SWEEP_NUMBER, separated by commas; a message on stderr, and nothing, where there are none.
fixed_points() {
        TEST=$BATS_TEST_DESCRIPTION awk -v file="${BATS_TEST_FILENAME##*/}" -v number="$SWEEP_NUMBER" '
                $1 == file && $2 == number { points = $3; sub(/^[^ ]+ [^ ]+ [^ ]+ /, ""); if ($0 == ENVIRON["TEST"]) { found = points } }
                END { if (found == "") { print "tests/points has no line " file " " number " ... " ENVIRON["TEST"] \
                        " (scripts/run-tests --record-points writes it)" >"/dev/stderr"; exit 1 }
                      print found }' "${FLEXGRAFT_SWEEP_POINTS:-$FLEXGRAFT_REPO/tests/points}"
}

# sweep_tried POINTS: those that were reached, as fixed_points has them, in any number; there must be some.
sweep_tried() {
        local points
        points=$(tr , '\n' <<<"$1" | awk 'NF && !seen[$0]++' | paste -sd,)
        [[ -n $points ]] || { echo "sweep $SWEEP_NUMBER of this test: none of its points was reached"; return 1; }
        [[ -z ${FLEXGRAFT_SWEEP_TRIED:-} ]] || echo "${BATS_TEST_FILENAME##*/} $SWEEP_NUMBER $points $BATS_TEST_DESCRIPTION" >>"$FLEXGRAFT_SWEEP_TRIED"
}

sweep_stride() {
        echo $((FLEXGRAFT_SWEEP_STRIDE * ${WIDER:-1}))
}

# sweep_first STRIDE: the first point; another one for each sweep of a test.
sweep_first() {
        echo $((1 + (FLEXGRAFT_SWEEP_SEED + SWEEP_NUMBER * 7) % $1))
}

# sweep_some: of the lines of standard input, those that are this run's points, for a sweep that comes, or for the caller, who says with
# sweep_tried which it reached. WIDER as with sweep. Fixed ones may be no line of it this time.
sweep_some() {
        local SWEEP_NUMBER=$((${SWEEP_NUMBER:-0} + 1)) stride lines first some
        if sweep_is_fixed; then
                cat >/dev/null
                some=$(fixed_points | tr , '\n')
        else
                mapfile -t lines
                stride=$(sweep_stride)
                first=$(sweep_first "$stride")
                # one at least
                ((first <= ${#lines[@]})) || first=$((1 + first % ${#lines[@]}))
                some=$(printf '%s\n' "${lines[@]}" | awk -v first="$first" -v stride="$stride" 'NR >= first && (NR - first) % stride == 0')
        fi
        [[ -n $some ]] || return 1
        echo "$some"
}

# sweep_points COUNT: of the numbers from 1 to COUNT the same.
sweep_points() {
        seq "$1" | sweep_some
}

# sweep_places: the same as --at of sweep takes them; one that is not there this time is passed over.
sweep_places() {
        local some
        some=$(sweep_some) || return 1
        paste -sd, <<<"$some" | sed -E 's/\?*(,|$)/?\1/g'
}

# around_mount: in AROUND, what is as before after each round: the mounts of the container and of the node, the container's root directory, the
# records.
around_mount() {
        [[ -d $STATE_DIR ]] || mkdir -m 0700 "$STATE_DIR"
        AROUND=(--watch mounts "$CONTAINER_PID" --watch mounts self --watch tree "$CONTAINER_ROOTFS" --watch tree "$STATE_DIR")
        container_snapshot
        node_snapshot
}

nothing_left() {
        assert_no_records && assert_container_unchanged && assert_node_unchanged
}

# in_sh PID: words with which sh runs a command in that container, as in_container does.
in_sh() {
        container_letters "${bed_kind[$1]}"
        echo "$FLEXGRAFT_TOOLS/enter $1 nui$bed_letters"
}

# taken_over SNAPSHOT: for sh: the process that has got the container's pid, PID, has the mounts that it began with, as SNAPSHOT has them.
taken_over() {
        local ours="awk '!index(\$0, \"/bats-run-\") || index(\$0, \"$BATS_RUN_TMPDIR/\")'"
        echo "[ \"\$NAME\" = - ] || { $ours '$1' >'$1.then' && $ours /proc/\$PID/mountinfo | cmp - '$1.then'; }"
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
