#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/check, which `make check` runs, in a copy of the checkout in which what it starts says what it was started with.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        COPY=$BATS_TEST_TMPDIR/copy
        export STARTED=$BATS_TEST_TMPDIR/started
        mkdir -p "$COPY/scripts"
        cp "$FLEXGRAFT_REPO/scripts/check" "$COPY/scripts/"
        part install-deps 'echo "install-deps $*" >>"$STARTED"'
        part lint 'echo "lint $*" >>"$STARTED"; echo "2 passed, 0 failed"'
        part run-tests 'echo "run-tests $*" >>"$STARTED"; echo "run-tests: some file"; echo "30 passed, 0 failed, 4 skipped"'
        part soak 'echo "soak $*" >>"$STARTED"; echo "5 passed, 0 failed"'
        part unit 'echo "7 passed, 0 failed"'
        part fuzz 'echo "fuzz" >>"$STARTED"; echo "17 passed, 0 failed"'
        printf 'all tools:\n\t@echo "make $@" >>$(STARTED)\ntest:\n\t@scripts/unit\nfuzz:\n\t@scripts/fuzz\n' >"$COPY/Makefile"
}

teardown() {
        bed_teardown
}

# part NAME SCRIPT: what scripts/NAME of the copy does.
part() {
        printf '#!/bin/bash\n%s\n' "$2" >"$COPY/scripts/$1"
        chmod +x "$COPY/scripts/$1"
}

# check ARG...: sets status, and output, which has both streams.
check() {
        bed_command="check $*"
        run "$COPY/scripts/check" "$@" 3>&-
}

@test "check installs, builds, and then runs lint, the units and the tests, and adds up what they say" {
        check
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(sed 's/ .*//' "$STARTED" | uniq | paste -sd ' ')" "install-deps make lint run-tests" "what was started"
        is "$(tail -n 1 <<<"$output")" "39 passed, 0 failed, 4 skipped"
        [[ $output == *"check: lint: 2 passed, 0 failed, 0 skipped, "*"run-tests: some file"*"check: tests: 30 passed, 0 failed, 4 skipped, "* ]] || { show_last; false; }
}

@test "the last lines of check name a part that failed, with its output; the others are run" {
        part lint 'echo "a line is too long"; echo "1 passed, 1 failed"; exit 1'
        check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "38 passed, 1 failed, 4 skipped"
        [[ $output == *"check: tests: 30 passed"*$'\nfailed: lint\n    a line is too long\n'* ]] || { show_last; false; }
}

@test "a part of check that ends without its last line has failed" {
        part unit 'echo "no compiler"; exit 3'
        check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "32 passed, 1 failed, 4 skipped"
        [[ $output == *$'failed: unit\n'*"no compiler"* ]] || { show_last; false; }
}

@test "a part of check that is not at its end when its time is over is ended, and named" {
        part lint 'exec sleep 7654326'
        sed -i 's/part lint 3600/part lint 3/' "$COPY/scripts/check"
        check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "37 passed, 1 failed, 4 skipped"
        [[ $output == *"check: lint was not at its end after 3 s, and is ended"* ]] || { show_last; false; }
        run ! pgrep -f '^sleep 7654326'
}

@test "check ends where installing or building fails" {
        part install-deps 'echo "no network" >&2; exit 100'
        check
        is "$status" 100
        [[ $output == *"no network"* && ! -e $STARTED ]] || { show_last; false; }
        part install-deps :
        printf 'all tools:\n\t@echo cannot be built; false\n' >"$COPY/Makefile"
        check
        is "$status" 2
        [[ $output == *"cannot be built"* && ! -e $STARTED ]] || { show_last; false; }
}

@test "check that is ended ends what it runs" {
        part run-tests 'touch "$STARTED.tests"; exec sleep 7654327'
        "$COPY/scripts/check" >"$BATS_TEST_TMPDIR/stdout" 2>&1 3>&- &
        local pid=$!
        bed_pids+=("$pid")
        wait_until 10 test -e "$STARTED.tests"
        kill -TERM "$pid"
        wait "$pid" || is $? 143 "exit status"
        run ! pgrep -f '^sleep 7654327'
}

@test "check with files runs these tests alone" {
        check -- bind block
        is "$status" 0
        is "$(sed 's/ .*//' "$STARTED" | uniq | paste -sd ' ')" "install-deps make run-tests" "what was started"
        is "$(tail -n 1 "$STARTED")" "run-tests --again 5 check -- bind block"
}

@test "check-deep runs the sets that it is given, prints the seed, and takes it again" {
        local seed
        check --deep --sets "guest sweeps soak"
        is "$status" 0
        is "$(tail -n 1 <<<"$output")" "35 passed, 0 failed, 4 skipped"
        seed=$(sed -n "s/^check-deep: .*(make check-deep SETS='guest sweeps soak' SEED=\([0-9]*\) tries the same points)$/\1/p" <<<"$output")
        is "$(grep run-tests "$STARTED")" "run-tests --again 5 --jobs $(nproc) --seed $seed guest sweeps"
        is "$(sed 's/ .*//' "$STARTED" | uniq | paste -sd ' ')" "install-deps make soak run-tests" "what was started"
        check --deep --sets sweeps --seed 4711
        is "$(grep run-tests "$STARTED" | tail -n 1)" "run-tests --again 5 --jobs $(nproc) --seed 4711 sweeps"
}

@test "check-deep has the set backports, of the tests that want the newer kernel" {
        check --deep
        is "$status" 0
        [[ $(grep run-tests "$STARTED") == *" guest backports "* ]] || { show_last; false; }
}

@test "a fuzzer that finds something makes check-deep red" {
        part fuzz 'echo "crash-1234"; echo "16 passed, 1 failed"; exit 1'
        check --deep --sets fuzz
        is "$status" 1
        [[ $output == *$'failed: fuzz\n    crash-1234\n'*"16 passed, 1 failed, 0 skipped" ]] || { show_last; false; }
        part fuzz 'echo "17 passed, 0 failed"'
        check --deep --sets fuzz
        is "$status" 0 || { show_last; false; }
}

@test "check refuses what it does not understand, and starts nothing" {
        local arguments
        for arguments in '--unknown' '--seed 3' 'bind' '--deep --sets nothing' '--deep --seed'; do
                # shellcheck disable=SC2086 # words
                check $arguments
                is "$status" 2 "exit status of: $arguments"
        done
        [[ ! -e $STARTED ]]
}
