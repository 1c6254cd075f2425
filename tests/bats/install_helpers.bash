# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the tests of scripts/install-*; INSTALL is the script. After `load helpers`.

# run_install ARG...: the script; sets status, output, stderr.
run_install() {
        bed_command="${INSTALL##*/} $*"
        status=0
        "$INSTALL" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        stderr=$(<"$BATS_TEST_TMPDIR/stderr")
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
