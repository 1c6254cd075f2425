#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/isolated and scripts/run-tests: what runs the other tests.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        unset FLEXGRAFT_ISOLATED
        bed_setup
        export TMPDIR=$BATS_TEST_TMPDIR/tmp
        mkdir -m 0711 "$TMPDIR"
}

teardown() {
        bed_teardown || return  # bats runs this without errexit
        is "$(ls "$TMPDIR")" "" "what is left in TMPDIR"
}

# script NAME ARG...: one of scripts/, with status, output and stderr as helper sets them.
script() {
        bed_command="$*"
        status=0
        "$FLEXGRAFT_REPO/scripts/$1" "${@:2}" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

# Of what was killed, the last process may end, and with it a loop device, a moment later.
no_images_in_use() {
        [[ -z $(images_in_use) ]]
}

images_in_use() {
        losetup --list --raw --noheadings --output BACK-FILE | grep -F "$BATS_TEST_TMPDIR/" || :
}

no_sleep() { # SECONDS
        ! pgrep -f "^sleep $1" >/dev/null
}

# ---- isolated

@test "a command has an empty /run, a directory, mounts and processes of its own, and its exit status comes back" {
        script isolated sh -c 'ls /run; echo "$TMPDIR"; mount -t tmpfs x "$TMPDIR" && umount "$TMPDIR"; ls -d /proc/[0-9]* | wc -l; exit 7'
        is "$status" 7
        local lines
        mapfile -t lines <<<"$output"
        is "${lines[0]}" lock
        [[ ${lines[1]} == "$TMPDIR"/isolated.* && ! -e ${lines[1]} ]]
        ((lines[2] <= 5))
}

@test "a process that is left is named and gone" {
        export ISOLATED_PATIENCE=2
        script isolated sh -c 'sleep 7654321 &'
        is "$status" 120
        [[ $stderr == *"sleep 7654321"* ]] || { show_last; false; }
        run ! pgrep -f '^sleep 7654321'
}

@test "a mount that is left is named and gone" {
        export ISOLATED_PATIENCE=2
        script isolated sh -c 'mkdir "$TMPDIR/here" && mount -t tmpfs left "$TMPDIR/here"'
        is "$status" 120
        [[ $stderr == *"> / $TMPDIR/isolated."*"/here "*" tmpfs left "* ]] || { show_last; false; }
}

@test "a loop device that is left is named and gone" {
        export ISOLATED_PATIENCE=2
        script isolated sh -c 'truncate -s 1M "$TMPDIR/image" && losetup --find "$TMPDIR/image"'
        is "$status" 120
        [[ $stderr == *"has left: loop device /dev/loop"*" over image"* ]] || { show_last; false; }
        wait_until 5 no_images_in_use
}

@test "a command that is ended leaves nothing" {
        # shellcheck disable=SC2016
        background_ready "$FLEXGRAFT_REPO/scripts/isolated" sh -c 'truncate -s 1M "$TMPDIR/image" && losetup --find "$TMPDIR/image" &&
                mount -t tmpfs left /mnt && { sleep 7654322 & } && echo ready && wait'
        [[ -n $(images_in_use) ]]
        kill -TERM "$BACKGROUND_PID"
        wait_until 10 process_is_gone "$BACKGROUND_PID"
        wait_until 5 no_images_in_use
        wait_until 5 no_sleep 7654322
}

@test "a runner that is killed takes the command's processes along" {
        background_ready "$FLEXGRAFT_REPO/scripts/isolated" sh -c 'sleep 7654323 & echo ready; wait'
        kill -KILL "$BACKGROUND_PID"
        wait_until 10 no_sleep 7654323
        rm -rf "$TMPDIR"/isolated.*
}

# ---- run-tests

# test_file NAME: a test file from standard input, with a line in the budgets. Its tests begin with `test`: with an @ they would be ours.
test_file() {
        mkdir -p "$BATS_TEST_TMPDIR/tests/bats"
        ln -sf "$FLEXGRAFT_REPO/tests/bats/setup_suite.bash" "$BATS_TEST_TMPDIR/tests/bats/"
        {
                echo "load $FLEXGRAFT_REPO/tests/bats/helpers"
                sed 's/^test "/@&/'
        } >"$BATS_TEST_TMPDIR/tests/bats/$1.bats"
        echo "$1 1 - - - -" >>"$BATS_TEST_TMPDIR/tests/budgets"
        touch "$BATS_TEST_TMPDIR/tests/points"
}

# run_tests ARG...: of these files. When a test ends before bats has set up the process that ends it after its time, that one's sleep goes on, and
# bats with it, until the time is over; so on a busy machine that is 30 s here, not 120.
run_tests() {
        script run-tests --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" --test-limit 30 "$@"
}

@test "results are added up, a test that fails is shown whole, and no other" {
        test_file good <<'END_OF_FILE'
test "passes" { echo quiet; }
test "is skipped" { skip "no reason"; }
END_OF_FILE
        test_file bad <<'END_OF_FILE'
test "fails" { echo "what it said"; [[ 1 == 2 ]]; }
test "passes, too" { echo quiet; }
END_OF_FILE
        run_tests check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "2 passed, 1 failed, 1 skipped"
        [[ $output == *"not ok check bad: fails"*"# what it said"* && $output != *quiet* ]] || { show_last; false; }
        [[ $output == *"skipped 1: no reason"* ]] || { show_last; false; }
}

@test "tests run the programs of Debian, whatever the caller has under their names" {
        mkdir "$BATS_TEST_TMPDIR/shims"
        ln -s /bin/false "$BATS_TEST_TMPDIR/shims/python3"
        test_file which <<'END_OF_FILE'
test "python3 is Debian's" { is "$(type -P python3)" /usr/bin/python3; }
END_OF_FILE
        PATH=$BATS_TEST_TMPDIR/shims:$PATH run_tests check
        is "$(tail -n 1 <<<"$output")" "1 passed, 0 failed, 0 skipped"
}

# sometimes COUNT: a file with that many tests that pass only when they are tried again, one that never does, and one that always does.
sometimes() {
        local i
        {
                for ((i = 1; i <= $1; i++)); do
                        echo "test \"sometimes ($i)\" { mkdir '$BATS_TEST_TMPDIR/$i' || return 0; echo first of $i; false; }"
                done
                echo "test \"never\" { echo >>'$BATS_TEST_TMPDIR/never'; echo try \$(wc -l <'$BATS_TEST_TMPDIR/never'); false; }"
                echo "test \"always\" { echo >>'$BATS_TEST_TMPDIR/always'; }"
        } | test_file sometimes
}

# bats test_tags=deep
@test "with --again, a test that failed is tried once more: one that passes then is flaky, one that fails again has failed" {
        sometimes 1
        run_tests --again 2 check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "2 passed, 1 failed, 0 skipped"
        is "$(<"$BATS_TEST_TMPDIR/results/flaky")" "sometimes: sometimes (1)"
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "sometimes: never"
        is "$(wc -l <"$BATS_TEST_TMPDIR/always")" 1 "how often what passed was run"
}

# bats test_tags=deep
@test "the last lines have each failure's output, of both tries where there were two" {
        local lines
        sometimes 1
        run_tests --again 2 check
        lines=$(sed -n '/^run-tests: [0-9]* s; /,$p' <<<"$output")
        grep -A 9 '^flaky: sometimes: sometimes (1)$' <<<"$lines" | grep -q 'first of 1' || { show_last; false; }
        is "$(sed -n '/^failed: sometimes: never$/,$p' <<<"$lines" | grep -oE 'try [12]|tried again' | paste -sd,)" "try 1,tried again,try 2"
}

# bats test_tags=deep
@test "a test of a text is not tried again" {
        sometimes 1
        sed -i '1i # bats file_tags=text' "$BATS_TEST_TMPDIR/tests/bats/sometimes.bats"
        run_tests --again 2 check
        is "$(tail -n 1 <<<"$output")" "1 passed, 2 failed, 0 skipped"
        is "$(wc -l <"$BATS_TEST_TMPDIR/never")" 1 "how often it was run"
        is "$(wc -l <"$BATS_TEST_TMPDIR/results/flaky")" 0 "flaky tests"
}

# bats test_tags=deep
@test "tests are found by their names, also where these have quotes or differ in punctuation only" {
        sed "s|HERE|$BATS_TEST_TMPDIR|" <<'END_OF_FILE' | test_file quoted
test "it's (\$odd) [a-z]* ^ \\ \"1\"" { mkdir "HERE/once" || return 0; false; }
test "a.b" { echo a.b >>"HERE/ran"; }
test "a-b" { echo a-b >>"HERE/ran"; }
END_OF_FILE
        sed -i 's/ 1 / 170 /' "$BATS_TEST_TMPDIR/tests/budgets" # in three pieces
        run_tests --again 1 check
        is "$status" 0 "exit status" || { show_last; false; }
        [[ $output == *"flaky: quoted: it's (\$odd) [a-z]* ^ \\ \"1\""* ]] || { show_last; false; }
        is "$(sort "$BATS_TEST_TMPDIR/ran" | paste -sd ' ')" "a-b a.b"
}

# bats test_tags=deep
@test "with --again, a file that left something is tried once more, and all of it" {
        export ISOLATED_PATIENCE=2
        test_file leaves <<END_OF_FILE
test "first" { mkdir "$BATS_TEST_TMPDIR/once" || return 0; sleep 7654321 3>&- & }
test "second" { true; }
END_OF_FILE
        run_tests --again 1 check
        is "$status" 0 || { show_last; false; }
        [[ $output == *"flaky: leaves: (exit status 120)"$'\n'* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "a test that fails, and is skipped when it is tried again, has failed" {
        test_file skips <<END_OF_FILE
test "first" { mkdir "$BATS_TEST_TMPDIR/once" || skip "not now"; false; }
END_OF_FILE
        run_tests --again 1 check
        is "$status" 1 || { show_last; false; }
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "skips: first"
}

# bats test_tags=deep
@test "what a file has left is a failure beside that of a test" {
        export ISOLATED_PATIENCE=2
        test_file leaves <<'END_OF_FILE'
test "first" { false; }
test "second" { mount -t tmpfs left /mnt; }
END_OF_FILE
        run_tests check
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" $'leaves: first\nleaves: (exit status 120)' || { show_last; false; }
}

# bats test_tags=deep
@test "when six tests failed and --again says five, none is tried again" {
        sometimes 5
        run_tests --again 5 check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "1 passed, 6 failed, 0 skipped"
        is "$(wc -l <"$BATS_TEST_TMPDIR/results/failed")" 6 "failed tests"
        is "$(wc -l <"$BATS_TEST_TMPDIR/never")" 1 "how often it was run"
}

# bats test_tags=deep
@test "a long file is run in pieces, and each test once" {
        local i
        for i in {1..7}; do
                echo "test \"number $i: it's (\$odd) [a-z]* \\\"$i\\\"\" { echo $i >>'$BATS_TEST_TMPDIR/ran'; }"
        done | test_file long
        sed -i 's/ 1 / 170 /' "$BATS_TEST_TMPDIR/tests/budgets"
        run_tests check
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(tail -n 1 <<<"$output")" "7 passed, 0 failed, 0 skipped"
        is "$(sort "$BATS_TEST_TMPDIR/ran" | paste -sd ' ')" "1 2 3 4 5 6 7"
}

# bats test_tags=deep
@test "files that mostly wait run side by side, also where --jobs says one at a time" {
        test_file first <<<"test \"waits\" { touch '$BATS_TEST_TMPDIR/first'; wait_until 10 test -e '$BATS_TEST_TMPDIR/second'; }"
        test_file second <<<"test \"waits\" { touch '$BATS_TEST_TMPDIR/second'; wait_until 10 test -e '$BATS_TEST_TMPDIR/first'; }"
        sed -i 's/ 1 / 1w /' "$BATS_TEST_TMPDIR/tests/budgets"
        run_tests --jobs 1 check
        is "$(tail -n 1 <<<"$output")" "2 passed, 0 failed, 0 skipped" || { show_last; false; }
}

@test "a file that ends before its last test is a failure, and so is one that cannot be read or has left something" {
        export ISOLATED_PATIENCE=2
        test_file dies <<'END_OF_FILE'
test "first" { true; }
test "second" { kill -KILL "$BATS_ROOT_PID" "$PPID" $$; }
test "third" { true; }
END_OF_FILE
        test_file broken <<'END_OF_FILE'
test "first" { true; }
}
END_OF_FILE
        test_file leaves <<'END_OF_FILE'
test "first" { mount -t tmpfs left /mnt; }
END_OF_FILE
        run_tests --jobs 3 check
        is "$status" 1
        [[ $output == *"run-tests: check dies: ran 1 of 3 tests"*"begin 2 second"* ]] || { show_last; false; }
        [[ $output == *"not ok check broken: "* ]] || { show_last; false; }
        [[ $output == *"> / /mnt "*"run-tests: check leaves: exit status 120"* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "a file that is not at its end when its limit is over is ended, and a failure that names the test" {
        test_file endless <<'END_OF_FILE'
test "sleeps" { sleep 1000; }
END_OF_FILE
        run_tests --limit 40 --test-limit 100 check
        is "$status" 1 "exit status" || { show_last; false; }
        [[ $output == *"ran 0 of 1 tests"*"begin 1 sleeps"* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "a test that is not at its end after its time is ended, and a failure that says so; the others run" {
        test_file endless <<'END_OF_FILE'
test "sleeps" { sleep 1000; }
test "passes" { true; }
END_OF_FILE
        run_tests --test-limit 20 check
        is "$(tail -n 1 <<<"$output")" "1 passed, 1 failed, 0 skipped" || { show_last; false; }
        [[ $output == *"not ok check endless: sleeps"*"timeout after 20s"* ]] || { show_last; false; }
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "endless: sleeps"
}

# bats test_tags=deep
@test "a test of which bats prints no result, as its teardown has ended bats' process, is a failure that names it" {
        test_file ends <<'END_OF_FILE'
teardown() { [[ $BATS_TEST_DESCRIPTION != second ]] || exit 0; }
test "first" { true; }
test "second" { false; }
test "third" { true; }
END_OF_FILE
        run_tests --test-limit 20 check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "2 passed, 1 failed, 0 skipped" || { show_last; false; }
        [[ $output == *"not ok check ends: second: bats has no result of it"* ]] || { show_last; false; }
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "ends: second"
}

# bats test_tags=deep
@test "a test that fails, and whose teardown is not at its end after the test's time, has a result that says so" {
        test_file slow <<'END_OF_FILE'
teardown() { sleep 1000; }
test "fails" { echo "what it said"; false; }
END_OF_FILE
        run_tests --test-limit 20 check
        is "$status" 1
        [[ $output == *"not ok check slow: fails"*"timeout after 20s"*"what it said"* ]] || { show_last; false; }
}

# ended_once CONDITION...: a run that is ended as soon as that is true; a file of it has one endless test.
ended_once() {
        test_file endless <<'END_OF_FILE'
test "waits" { touch "$REACHED"; sleep 7654325; }
END_OF_FILE
        REACHED=$BATS_TEST_TMPDIR/reached "$FLEXGRAFT_REPO/scripts/run-tests" --jobs 2 --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" check >"$BATS_TEST_TMPDIR/stdout" 2>&1 3>&- &
        local pid=$!
        bed_pids+=("$pid")
        wait_until 15 "$@"
        kill -TERM "$pid"
        wait "$pid" || is $? 143 "exit status"
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        wait_until 5 no_sleep 7654325
}

# bats test_tags=deep
@test "a run that is ended names what was running" {
        ended_once test -e "$BATS_TEST_TMPDIR/reached"
        [[ $output == *"was running: check endless: begin 1 waits"* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "a second run with the same results is refused" {
        test_file endless <<'END_OF_FILE'
test "waits" { touch "$REACHED"; sleep 7654325; }
END_OF_FILE
        REACHED=$BATS_TEST_TMPDIR/reached background "$FLEXGRAFT_REPO/scripts/run-tests" --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" check >/dev/null 2>&1
        local pid=$BACKGROUND_PID
        wait_until 15 test -e "$BATS_TEST_TMPDIR/reached"
        run "$FLEXGRAFT_REPO/scripts/run-tests" --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" check
        is "$status" 2
        [[ $output == *"another run writes to $BATS_TEST_TMPDIR/results"* ]] || { show_last; false; }
        kill -TERM "$pid"
        wait "$pid" || :
        wait_until 5 no_sleep 7654325
}

# bats test_tags=deep
@test "a run that is ended tells what had failed until then" {
        test_file other <<'END_OF_FILE'
test "fails" { echo a word of its own; false; }
END_OF_FILE
        ended_once eval 'test -e "$BATS_TEST_TMPDIR/reached" && grep -q "check other" "$BATS_TEST_TMPDIR/stdout"'
        [[ $output == *"failed: other: fails"*"a word of its own"* ]] || { show_last; false; }
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "other: fails"
}

# sweeps_at POINTS: a file with one sweep, and its line in tests/points.
sweeps_at() {
        test_file swept <<END_OF_FILE
load $FLEXGRAFT_REPO/tests/bats/sweep_helpers
# bats test_tags=sweep
test "a sweep" { sweep --reply any --kill -- act /bin/busybox true ';'; }
END_OF_FILE
        [[ -z $1 ]] || echo "swept.bats 1 $1 a sweep" >"$BATS_TEST_TMPDIR/tests/points"
}

@test "a sweep tries the points that are written down, and the results have them" {
        sweeps_at 2,5,100000
        run_tests check
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(<"$BATS_TEST_TMPDIR/results/points")" "swept.bats 1 2,5 a sweep"
}

@test "a sweep that has no points written down fails and says so, and is found without a run" {
        sweeps_at ''
        run_tests check
        is "$status" 1
        [[ $output == *"no line swept.bats 1 ... a sweep"* ]] || { show_last; false; }
        run_tests --check-points check
        is "$status" 1
        [[ $output == *"no line in "*"/points: swept.bats a sweep"* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "a sweep none of whose points is reached fails" {
        sweeps_at 100000
        run_tests check
        is "$status" 1
        [[ $output == *"no point was tried"* ]] || { show_last; false; }
}

@test "a file that no set runs, and a tag deep without a number for it, are found without a run" {
        test_file nowhere <<<'test "passes" { true; }'
        test_file long <<'END_OF_FILE'
# bats test_tags=deep
test "takes long" { true; }
END_OF_FILE
        test_file swept <<'END_OF_FILE'
# bats test_tags=sweep,deep
test "a sweep that is the set sweeps' alone" { true; }
END_OF_FILE
        sed -i 's/^nowhere 1/nowhere -/; s/^swept .*/swept 1 - - 1 -/' "$BATS_TEST_TMPDIR/tests/budgets"
        run_tests --check-points check
        is "$status" 1
        [[ $output == *"has nowhere in no set"* && $output == *"no number under deep for long"* && $output != *swept* ]] || { show_last; false; }
}

@test "a tag kernel without a number under guest for it, and a tag kernel_too without it, are found without a run" {
        test_file elsewhere <<'END_OF_FILE'
# bats test_tags=kernel,kernel_too
test "asks the kernel" { true; }
# bats test_tags=kernel_too
test "asks nobody" { true; }
END_OF_FILE
        run_tests --check-points check
        is "$status" 1
        [[ $output == *"no number under guest for elsewhere"* && $output == *"kernel_too, and not kernel: asks nobody" ]] || { show_last; false; }
}

# bats test_tags=deep
@test "the set sanitize runs no sweep, and the other tests of its file" {
        test_file mixed <<'END_OF_FILE'
test "passes" { [[ $FLEXGRAFT_BIN == */bin/sanitize ]]; }
# bats test_tags=sweep
test "a sweep" { false; }
END_OF_FILE
        sed -i 's/^mixed .*/mixed 1 1 - - -/' "$BATS_TEST_TMPDIR/tests/budgets"
        run_tests sanitize
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(tail -n 1 <<<"$output")" "1 passed, 0 failed, 0 skipped"
}

# bats test_tags=deep
@test "--record-points writes what a sweep has tried with a stride" {
        sweeps_at 1
        echo '# comment' >>"$BATS_TEST_TMPDIR/tests/points"
        echo 'other.bats 1 7 another sweep' >>"$BATS_TEST_TMPDIR/tests/points"
        run_tests --stride 4 --record-points check
        is "$status" 0 "exit status" || { show_last; false; }
        [[ "$(<"$BATS_TEST_TMPDIR/tests/points")" == $'# comment\nother.bats 1 7 another sweep\nswept.bats 1 4,8,12'*' a sweep' ]] || { cat "$BATS_TEST_TMPDIR/tests/points"; false; }
}

# guests ARG...: run-tests of a copy in which scripts/guest-run runs the command here, and writes its options to $BATS_TEST_TMPDIR/guests.
guests() {
        local copy=$BATS_TEST_TMPDIR/copy
        mkdir -p "$copy/scripts"
        cp "$FLEXGRAFT_REPO/scripts/run-tests" "$copy/scripts/"
        cat >"$copy/scripts/guest-run" <<END_OF_FILE
#!/bin/bash
while [[ \$1 != env ]]; do
        options+=("\$1") && shift
done
echo "\${options[*]}" >>'$BATS_TEST_TMPDIR/guests'
exec "\$@"
END_OF_FILE
        chmod +x "$copy/scripts/guest-run"
        run "$copy/scripts/run-tests" --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" --test-limit 30 "$@" 3>&-
}

# bats test_tags=deep
@test "backports runs the tests tagged neither sweep nor deep on its kernel; no other set does" {
        test_file newer <<'END_OF_FILE'
test "passes" { true; }
# bats test_tags=sweep
test "a sweep" { false; }
# bats test_tags=deep
test "takes long" { false; }
END_OF_FILE
        test_file other <<<'test "fails" { false; }'
        sed -i 's/^newer .*/& 1/' "$BATS_TEST_TMPDIR/tests/budgets"
        guests backports
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(tail -n 1 <<<"$output")" "1 passed, 0 failed, 0 skipped"
        is "$(<"$BATS_TEST_TMPDIR/guests")" "--timeout 4400 --kernel backports"
}

# bats test_tags=deep
@test "in the set backports a file all of whose tests were skipped has failed, and one with some that passed has not" {
        test_file all <<'END_OF_FILE'
test "first" { skip "no reason"; }
test "second" { skip "no reason"; }
END_OF_FILE
        test_file some <<'END_OF_FILE'
test "first" { skip "no reason"; }
test "second" { true; }
END_OF_FILE
        sed -i 's/$/ 1/' "$BATS_TEST_TMPDIR/tests/budgets"
        guests backports
        is "$status" 1
        is "$(<"$BATS_TEST_TMPDIR/results/failed")" "backports all: (what the virtual machine is there for was skipped in it: all tests)"
}

# bats test_tags=deep
@test "in the set backports a test that is skipped because the kernel cannot id-map FUSE has failed" {
        test_file mappable <<'END_OF_FILE'
test "first" { skip "the kernel cannot id-map FUSE"; }
test "second" { true; }
END_OF_FILE
        sed -i 's/$/ 1/' "$BATS_TEST_TMPDIR/tests/budgets"
        guests backports
        is "$status" 1
        [[ $output == *"was skipped in it: ok 1 first"* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "--record writes the seconds of the set backports, and no number for files that it has not" {
        test_file newer <<<'test "passes" { true; }'
        test_file other <<<'test "passes" { true; }'
        sed -i 's/^newer .*/& 900/' "$BATS_TEST_TMPDIR/tests/budgets"
        guests --record backports
        is "$(awk '{ print $1, NF, ($7 < 900) }' "$BATS_TEST_TMPDIR/tests/budgets" | paste -sd,)" "newer 7 1,other 6 1"
}

# bats test_tags=deep
@test "a file without a budget is run, and a failure" {
        test_file known <<<'test "passes" { true; }'
        test_file unknown <<<'test "passes" { true; }'
        sed -i /unknown/d "$BATS_TEST_TMPDIR/tests/budgets"
        run_tests --test-limit 10 check
        is "$status" 1
        is "$(tail -n 1 <<<"$output")" "2 passed, 1 failed, 0 skipped"
        [[ $output == *"unknown.bats has no line in "* ]] || { show_last; false; }
}

# bats test_tags=deep
@test "others' mounts, loop devices and helpers that come and go meanwhile disturb no test" {
        test_file steady <<END_OF_FILE
bats_require_minimum_version 1.5.0
setup() { bed_setup; }
teardown() { bed_teardown; }
test "a mount is made and removed" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "\$(bind_request /data)"
        assert_success
        touch '$BATS_TEST_TMPDIR/reached'
        wait_until 20 test -e '$BATS_TEST_TMPDIR/changed'
        helper mount-remove "\$(remove_request /data)"
        assert_success
        assert_container_unchanged
        assert_node_unchanged
}
END_OF_FILE
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/"{foreign,before}
        mount -t tmpfs foreign "$BATS_TEST_TMPDIR/before"
        "$FLEXGRAFT_REPO/scripts/run-tests" --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" check >"$BATS_TEST_TMPDIR/stdout" 2>&1 3>&- &
        local pid=$!
        bed_pids+=("$pid")
        wait_until 60 test -e "$BATS_TEST_TMPDIR/reached"
        umount "$BATS_TEST_TMPDIR/before"
        rmdir "$BATS_TEST_TMPDIR/before"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/foreign"
        make_device blank
        touch "$BATS_TEST_TMPDIR/changed"
        status=0
        wait "$pid" || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        is "$status" 0 "exit status" || { show_last; false; }
        is "$(tail -n 1 <<<"$output")" "1 passed, 0 failed, 0 skipped"
}

# bats test_tags=deep
@test "a run that is ended leaves nothing" {
        test_file endless <<END_OF_FILE
test "waits" {
        truncate -s 1M "\$BATS_TEST_TMPDIR/image"
        losetup --find "\$BATS_TEST_TMPDIR/image"
        mount -t tmpfs x /mnt
        touch '$BATS_TEST_TMPDIR/reached'
        sleep 7654324
}
END_OF_FILE
        "$FLEXGRAFT_REPO/scripts/run-tests" --tests "$BATS_TEST_TMPDIR/tests" --results "$BATS_TEST_TMPDIR/results" check >"$BATS_TEST_TMPDIR/stdout" 2>&1 3>&- &
        local pid=$!
        bed_pids+=("$pid")
        wait_until 60 test -e "$BATS_TEST_TMPDIR/reached"
        [[ -n $(images_in_use) ]]
        kill -TERM "$pid"
        wait "$pid" || is $? 143 "exit status"
        wait_until 5 no_images_in_use
        wait_until 5 no_sleep 7654324
}

# bats test_tags=deep
@test "unknown arguments are refused" {
        local arguments
        for arguments in '' '--unknown' '--jobs' '--jobs none check' 'check --stride 0' 'nothing'; do
                # shellcheck disable=SC2086 # words
                run_tests $arguments
                is "$status" 2 "exit status of: $arguments"
        done
}

@test "a tag counts for the next test, also with a comment between them" {
        test_file tagged <<END_OF_FILE
# bats test_tags=text
# why it is one
test "first" {
        mkdir "$BATS_TEST_TMPDIR/once" 2>/dev/null && false
        true
}
END_OF_FILE
        run_tests --again 1 check
        is "$(tail -n 1 <<<"$output")" "0 passed, 1 failed, 0 skipped"
}
