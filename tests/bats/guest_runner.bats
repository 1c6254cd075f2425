#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/guest-run: the virtual machine in which the tests that are tagged `kernel` run again.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        guests_before=$(guests)
}

teardown() {
        bed_teardown || return  # bats runs this without errexit
        is "$(comm -13 <(echo "$guests_before") <(guests))" "" "what a guest has left"
}

# What guests of this file keep on the host while they run: others, in other process namespaces, come and go meanwhile.
guests() {
        grep -lsxF "$(readlink /proc/self/ns/pid)" "$FLEXGRAFT_REPO"/build/guest/run.*/of | sort
}

# guest ARG...: guest-run, with status, output and stderr as helper sets them.
guest() {
        bed_command="guest-run $*"
        status=0
        "$FLEXGRAFT_REPO/scripts/guest-run" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        output=$(<"$BATS_TEST_TMPDIR/stdout")
        stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

@test "a command runs on another kernel, in this directory, and its output and exit status come back" {
        mkdir "$BATS_TEST_TMPDIR/shared" "$BATS_TEST_TMPDIR/here"
        cd "$BATS_TEST_TMPDIR/here"
        cat >script <<'END'
pwd
uname -r
unshare --user --map-root-user --mount sh -c 'mount -t tmpfs x /mnt && echo mounted' 2>&1
stat --file-system --format %T /sys/fs/cgroup /tmp
modprobe dm_mod && grep -o ^dm_mod /proc/modules
echo kept >"$1/file"
echo lost >lost
echo "$FLEXGRAFT_BIN" >&2
exit 7
END
        guest --writable "$BATS_TEST_TMPDIR/shared" sh script "$BATS_TEST_TMPDIR/shared"
        is "$status" 7 "exit status" || { show_last; false; }
        local lines
        mapfile -t lines <<<"$output"
        is "${lines[0]}" "$PWD" "directory"
        [[ ${lines[1]} == 6.1.*-amd64 && ${lines[1]} != "$(uname -r)" ]]
        is "${lines[*]:2}" "mounted cgroup2fs ext2/ext3 dm_mod $FLEXGRAFT_BIN"
        is "$(<"$BATS_TEST_TMPDIR/shared/file")" kept
        [[ ! -e lost ]]
}

@test "a guest that is ended while it runs leaves nothing" {
        local pid qemu
        "$FLEXGRAFT_REPO/scripts/guest-run" sh -c 'echo running; sleep 1000' >"$BATS_TEST_TMPDIR/stdout" 3>&- &
        pid=$!
        bed_pids+=("$pid")
        wait_until 120 grep -q running "$BATS_TEST_TMPDIR/stdout"
        qemu=$(pgrep --parent "$(pgrep --parent "$pid" timeout)")
        kill -TERM "$pid"
        wait "$pid" || is $? 143 "exit status"
        process_is_gone "$qemu"
}

@test "a command that hangs ends with the timeout" {
        guest --timeout 2 sleep 1000
        is "$status:$output:$stderr" "124::guest-run: ended after 2 s"
}

@test "a guest that dies is told from a command that fails" {
        guest --memory 1 true
        is "$status:$output" 125:
        [[ $stderr == *"guest-run: the guest ended by itself"* ]] || { show_last; false; }
}

@test "unknown arguments are refused" {
        guest
        is "$status" 125
        guest --memory much true
        is "$status" 125
        guest --nvdimm /dev/null true
        is "$status" 125
        guest --unknown true
        is "$status" 125
}
