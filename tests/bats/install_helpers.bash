# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the tests of scripts/install-*; INSTALL is the script, NODE a node's root directory. After `load helpers`.

# run_install ARG...: the script; sets status, output, stderr.
run_install() {
        bed_command="${INSTALL##*/} $*"
        status=0
        "$INSTALL" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

# install_as_nobody ARG...: the same, by a user that is not root and may write where the test does: a copy, as the checkout may lie below a
# directory of root's alone.
install_as_nobody() {
        local INSTALL=$INSTALL
        mkdir -m 0755 "$BATS_TEST_TMPDIR/copy"
        cp "$INSTALL" "${INSTALL%/*}/install-common.bash" "$BATS_TEST_TMPDIR/copy/"
        chmod -R a+rX "$BATS_TEST_TMPDIR/copy"
        chmod 0777 "$BATS_TEST_TMPDIR"
        INSTALL=$BATS_TEST_TMPDIR/copy/${INSTALL##*/}
        run --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$INSTALL" "$@"
}

# refused STATUS TEXT: that it was.
refused() {
        local name
        name=$(realpath "$INSTALL")
        [[ $status == "$1" && $stderr == "${name##*/}: "*"$2"* ]] && return
        echo "expected: exit status $1 and a message with \"$2\""
        show_last
        return 1
}

# fingerprint DIR: all that a change in it would change.
fingerprint() {
        find "$1" -printf '%p %i %m %T@ %C@ %n\n' | sort
}

# finds DIR [ARG...]: that the script finds DIR on $NODE.
finds() {
        local expected=$1
        shift
        run_install --print-dir --root "$NODE" "$@"
        is "$status:$output:$stderr" "0:$expected:"
}

# make_kubelet PID WORD...: a process on $NODE, root's, or with the four ids in $IDS.
make_kubelet() {
        mkdir -p "$NODE/proc/$1"
        printf '%s\0' "${@:2}" >"$NODE/proc/$1/cmdline"
        printf 'Name:\tkubelet\nNSpid:\t%s\nUid:\t%s\n' "${NSPID:-$1}" "${IDS:-0$'\t'0$'\t'0$'\t'0}" >"$NODE/proc/$1/status"
}

# has_called COUNT: call_for_ever FILE, FILE being $BATS_TEST_TMPDIR/calls, has called more often than that.
has_called() {
        (($(wc -c <"$BATS_TEST_TMPDIR/calls") > $1))
}

# on_read_only_usr ARG...: install on $NODE, whose /usr is read-only.
on_read_only_usr() {
        status=0
        unshare --mount sh -c 'mount --bind "$1/usr" "$1/usr" && mount -o remount,bind,ro "$1/usr" || exit 99; shift; exec "$@"' sh "$NODE" \
                "$INSTALL" --root "$NODE" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout") stderr=$(<"$BATS_TEST_TMPDIR/stderr") bed_command="on_read_only_usr $*"
}

# lines_of TEXT: how many.
lines_of() {
        grep -c . <<<"$1"
}

# tells_every_option: --help names the options that the script takes, and no others.
tells_every_option() {
        local taken
        run_install --help
        is "$status:$stderr" "0:" || return
        taken=$(sed -n 's/^        \(--[a-z-]*\)) .*/\1/p; s/^        \(--[a-z-]*\))$/\1/p' "$INSTALL" | sort)
        [[ $taken == *--help* ]] || { echo "no options in $INSTALL"; return 1; }
        is "$(grep -oE '^  --[a-z-]+' <<<"$output" | tr -d ' ' | sort)" "$taken" "the options of --help"
}
