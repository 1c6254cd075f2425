#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A volume tool, mount-volume and mount-batch that are interrupted (^C), and what they say meanwhile of how far they are.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        make_pool_in_memory fast 64m
        HELPER_PREFIX=(env --default-signal=INT) # whoever runs the tests may ignore it
        REQUEST='{"name": "data", "size": "1m", "pool": "fast"}'
}

teardown() {
        [[ -z ${SLOW-} ]] || umount /usr/sbin/mkfs.ext4
        driver_teardown
}

is_taken_back() {
        is "$(ls "$STATE_DIR/provisioned") $(ls "$POOL_DIR")" " "
}

# signalled SIGNAL: volume-create and its worker get this signal, as from a terminal, where the image takes its blocks.
signalled() {
        at_syscall --at fallocate --run "kill -$1 \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-create" "$REQUEST"
        is "$AT_REACHED" 1
}

@test "volume-create that is interrupted takes back what it has made" {
        signalled INT
        assert_failure ECANCELED
        [[ $output == *'interrupted (SIGINT)'* ]]
        is_taken_back
        created "$REQUEST"
}

@test "volume-create that is to end, or whose terminal is closed, takes back what it has made" {
        signalled TERM
        assert_failure ECANCELED
        is_taken_back
        signalled HUP
        assert_failure ECANCELED
        is_taken_back
}

@test "a second interrupt ends volume-create at once, and the same request again finds its way" {
        at_syscall --each "case \$AT_NAME in fallocate|rt_sigreturn) kill -INT \$AT_MAIN_PID ;; esac" "$FLEXGRAFT_BIN/volume-create" "$REQUEST"
        is "$status" 130
        created "$REQUEST"
        removed '{"name": "data"}'
        is_taken_back
}

@test "an interrupt that was ignored before stays ignored" {
        HELPER_PREFIX=(env --ignore-signal=INT)
        signalled INT
        assert_success
}

@test "volume-create that waits for another call's lock gives up when it is interrupted" {
        created '{"name": "other", "size": "1m", "pool": "fast"}'
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/provisioned/.lock"
        at_syscall --at fcntl --run "(sleep 0.1; kill -INT \$AT_MAIN_PID) >/dev/null 2>&1 &" "$FLEXGRAFT_BIN/volume-create" "$REQUEST"
        assert_failure ECANCELED
        [[ ! -e $STATE_DIR/provisioned/data.json ]]
}

@test "an interrupt that comes just before volume-create waits for a lock ends the wait, too" {
        created '{"name": "other", "size": "1m", "pool": "fast"}'
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/provisioned/.lock"
        cat >"$BATS_TEST_TMPDIR/each" <<END
[ ! -e '$BATS_TEST_TMPDIR/sent' ] || exit 0
readlink "/proc/\$AT_PID/fd"/* | grep -q provisioned/.lock || exit 0
touch '$BATS_TEST_TMPDIR/sent'
kill -INT "\$AT_MAIN_PID"
END
        at_syscall --at fcntl --each "sh '$BATS_TEST_TMPDIR/each'" "$FLEXGRAFT_BIN/volume-create" "$REQUEST"
        assert_failure ECANCELED
        [[ -e $BATS_TEST_TMPDIR/sent && ! -e $STATE_DIR/provisioned/data.json ]]
}

# ---- copies

# make_copied: the volume "data" of 2 MiB, with content at its beginning and in its middle, which a copy takes in two steps.
make_copied() {
        created '{"name": "data", "size": "2m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        printf one | dd of="$POOL_DIR/data.img" conv=notrunc status=none
        printf two | dd of="$POOL_DIR/data.img" bs=1M seek=1 conv=notrunc status=none
}

# signalled_copying PROGRAM REQUEST: it and its worker get ^C in the first of the two steps.
signalled_copying() {
        at_syscall --at copy_file_range --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/$1" "$2"
        is "$AT_REACHED" 1
        assert_failure ECANCELED
        [[ $output == *'interrupted (SIGINT)'* ]]
}

@test "volume-create of a copy that is interrupted takes the copy back, and leaves what it is of" {
        make_copied
        signalled_copying volume-create '{"name": "copy", "from": "data"}'
        is "$(provisioned) $(images "$POOL_DIR")" "data.json data.img"
        counted
        created '{"name": "copy", "from": "data"}'
        existed false
        cmp "$POOL_DIR/data.img" "$POOL_DIR/copy.img"
}

@test "volume-create of a copy in another pool that is interrupted takes the copy back" {
        make_copied
        make_pool_in_memory slow 64m
        at_syscall --at pwrite64 --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data", "pool": "slow"}'
        is "$AT_REACHED" 1
        assert_failure ECANCELED
        [[ $output == *'interrupted (SIGINT)'* ]]
        is "$(provisioned) $(images "$POOL_DIR")" "data.json "
        created '{"name": "copy", "from": "data", "pool": "slow"}'
        cmp "$BATS_TEST_TMPDIR/srv/fast/data.img" "$POOL_DIR/copy.img"
}

@test "volume-snapshot that is interrupted while it copies leaves no snapshot" {
        needs volume-snapshot
        make_copied
        signalled_copying volume-snapshot '{"name": "data", "snapshot": "monday"}'
        is "$(provisioned) $(images "$POOL_DIR")" "data.json data.img"
        counted
        helper volume-snapshot '{"name": "data", "snapshot": "monday"}'
        assert_success
        cmp "$POOL_DIR/data.img" "$POOL_DIR/monday.img"
}

@test "volume-snapshot that is interrupted while it restores leaves the volume with the content that it had" {
        needs volume-snapshot
        make_copied
        helper volume-snapshot '{"name": "data", "snapshot": "monday"}'
        assert_success
        printf new | dd of="$POOL_DIR/data.img" conv=notrunc status=none
        signalled_copying volume-snapshot '{"name": "data", "restore": "monday"}'
        is "$(head -c 3 "$POOL_DIR/data.img") $(images "$POOL_DIR" | paste -sd' ')" "new data.img monday.img"
        listed
        assert_field '[.volumes[] | .name + " " + .health] | join(", ")' "data ok, monday ok"
        counted
        helper volume-snapshot '{"name": "data", "restore": "monday"}'
        assert_success
        cmp "$POOL_DIR/data.img" "$POOL_DIR/monday.img"
}

# ---- volume-expand

# has_size BYTES: the volume's record and its image have that size.
has_size() {
        listed
        assert_field '.volumes[0].size' "$1"
        is "$(stat -c %s "$POOL_DIR/data.img")" "$1" "size of the image"
}

@test "volume-expand that is interrupted has grown the volume or left it as it was, and again it has grown" {
        local call before=$((1 << 20)) after
        needs volume-expand
        created "$REQUEST"
        for call in fallocate ftruncate renameat; do
                after=$((before + (1 << 20)))
                at_syscall --at "$call" --run "kill -INT \$AT_MAIN_PID \$AT_PID" "$FLEXGRAFT_BIN/volume-expand" "{\"name\": \"data\", \"size\": $after}"
                is "$AT_REACHED" 1 "reached $call"
                if [[ $status == 0 ]]; then
                        assert_success
                        has_size "$after"
                else
                        assert_failure
                        [[ $(json_field .error.errno) == @(ECANCELED|EINTR) ]] || { echo "it failed at $call:" && show_last && false; }
                        has_size "$before"
                fi
                assert_no_loops
                helper volume-expand "{\"name\": \"data\", \"size\": $after}"
                assert_success
                has_size "$after"
                counted
                before=$after
        done
}

# ---- mkfs

# with_slow_mkfs: mkfs.ext4 writes half a megabyte and then sleeps; its pid is in the file mkfs.
with_slow_mkfs() {
        cat >"$BATS_TEST_TMPDIR/slow" <<END
#!/bin/sh
for last; do :; done
head -c 524288 /dev/zero | tr '\\0' h >"\$last"
sync "\$last"
echo \$\$ >'$BATS_TEST_TMPDIR/mkfs'
exec sleep 1000
END
        chmod +x "$BATS_TEST_TMPDIR/slow"
        mount --bind "$BATS_TEST_TMPDIR/slow" /usr/sbin/mkfs.ext4
        SLOW=1
}

without_slow_mkfs() {
        umount /usr/sbin/mkfs.ext4
        SLOW=''
}

# in_mkfs PROGRAM ARGUMENT...: begins it, and waits for mkfs; its pid in BACKGROUND_PID.
in_mkfs() {
        rm -f "$BATS_TEST_TMPDIR/mkfs"
        background env --default-signal=INT "$FLEXGRAFT_BIN/$1" "${@:2}" >"$BATS_TEST_TMPDIR/reply" 2>"$BATS_TEST_TMPDIR/said"
        wait_until 10 test -s "$BATS_TEST_TMPDIR/mkfs"
}

# ended: what in_mkfs began, as helper has it.
ended() {
        status=0
        wait "$BACKGROUND_PID" || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/reply" || :
        json=$output
        [[ ! -e /proc/$(<"$BATS_TEST_TMPDIR/mkfs") ]] # mkfs does not outlive it
}

@test "mount-volume that is interrupted while mkfs runs ends it, and leaves the volume blank and detached" {
        local signal
        made db
        start_container plain
        with_slow_mkfs
        for signal in INT TERM HUP; do
                in_mkfs mount-volume "$(volume_request db /data)"
                kill "-$signal" "$BACKGROUND_PID"
                ended
                assert_failure ECANCELED
                [[ $output == *"interrupted (SIG$signal)"* ]]
                assert_mounts_at /data 0
                is_away db
        done
        without_slow_mkfs
        mount_volume db /data
        assert_success
        remove_mount /data
        assert_success
        is_away db
}

@test "mount-volume that is killed while mkfs runs ends with it, and the same request again formats the volume" {
        made db
        start_container plain
        with_slow_mkfs
        in_mkfs mount-volume "$(volume_request db /data)"
        kill -KILL "$BACKGROUND_PID"
        wait "$BACKGROUND_PID" || :
        wait_until 10 test ! -e "/proc/$(<"$BATS_TEST_TMPDIR/mkfs")"
        without_slow_mkfs
        mount_volume db /data
        assert_success
        assert_field .mount.type ext4
        remove_mount /data
        assert_success
        is_away db
}

@test "mount-batch that is interrupted while the second volume is formatted takes both mounts back" {
        made a '"fsType": "ext4"'
        made b
        start_container plain
        mount_volume a /a
        assert_success
        remove_mount /a
        assert_success
        with_slow_mkfs
        in_mkfs mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"a\", \"target\": \"/a\"},
                {\"type\": \"volume\", \"volume\": \"b\", \"target\": \"/b\"}]}"
        kill -INT "$BACKGROUND_PID"
        ended
        assert_failure ECANCELED
        assert_mounts_at /a 0
        is_away a
        is_away b
}

@test "mount-volume and mount-batch tell how many bytes mkfs has written" {
        local written
        made db
        made other
        start_container plain
        helper mount-volume --progress=json "$(volume_request db /data)"
        [[ $output == *'"Success"'* ]]
        written=$(tail -n 1 <<<"${stderr%$'\n'}" | jq -e '.progress | select(.program == "mount-volume" and .step == "mkfs" and .doneBytes == .totalBytes).doneBytes')
        ((written > 16384 && written < 67108864))
        helper mount-batch --progress=json "{\"container\": $CONTAINER_PID, \"mounts\": [
                {\"type\": \"volume\", \"volume\": \"other\", \"target\": \"/other\"}]}"
        [[ $output == *'"Success"'* && $stderr == *'"program":"mount-batch","step":"mkfs"'* ]]
        remove_mount /data
        remove_mount /other
}

# has_told BYTES: the last line of progress has so many.
has_told() {
        (($(jq -s 'last.progress.doneBytes // 0' <"$BATS_TEST_TMPDIR/said") >= $1))
}

@test "while mkfs runs, the progress tells the bytes written so far, and no total" {
        made db
        start_container plain
        with_slow_mkfs
        in_mkfs mount-volume --progress=json "$(volume_request db /data)"
        wait_until 10 has_told 524288
        kill -INT "$BACKGROUND_PID"
        ended
        is "$(jq -s 'map(.progress | has("totalBytes")) | unique' <"$BATS_TEST_TMPDIR/said" | tr -d ' \n')" '[false]'
        is "$(jq -s 'last.progress.doneBytes >= 524288' <"$BATS_TEST_TMPDIR/said")" true
}

# ---- what a terminal shows

# in_terminal COMMAND...: begins it on a terminal, with standard output in the file reply; what the terminal shows is in the file shown. What is
# written to descriptor KEYS is typed there; KEYS is to be closed. Its pid in BACKGROUND_PID.
in_terminal() {
        local command
        printf -v command '%q ' "$@"
        printf -v command 'exec %s >%q' "$command" "$BATS_TEST_TMPDIR/reply"
        mkfifo "$BATS_TEST_TMPDIR/keys"
        exec {KEYS}<>"$BATS_TEST_TMPDIR/keys"
        # what bash runs in the background has /dev/null for its input else
        background sh -c 'exec "$@" <"$0"' "$BATS_TEST_TMPDIR/keys" env --default-signal=INT SHELL=/bin/bash script --quiet --flush --return \
                --command "$command" /dev/null >"$BATS_TEST_TMPDIR/shown" 2>&1
}

# terminal_shows PATTERN: the terminal shows, or has shown, what this extended regular expression matches.
terminal_shows() {
        grep -qaE -- "$1" "$BATS_TEST_TMPDIR/shown"
}

# is_cleared: the last that the terminal got is to clear its line.
is_cleared() {
        [[ $(tail -c 4 "$BATS_TEST_TMPDIR/shown") == $'\r\e[K' ]]
}

@test "on a terminal a bar tells how far a copy is, and is gone when that is done" {
        make_copied
        # the bar is for what takes more than half a second
        in_terminal "$FLEXGRAFT_TOOLS/at-syscall" --at copy_file_range --run 'sleep 0.7' "$FLEXGRAFT_BIN/volume-create" '{"name": "copy", "from": "data"}'
        wait "$BACKGROUND_PID"
        exec {KEYS}>&-
        [[ $(<"$BATS_TEST_TMPDIR/reply") == '{"status":"Success",'* ]]
        terminal_shows 'volume-create: copy data\.img \[#{12} {12}\] 50% of 2M, [0-9]+ s left'
        is_cleared
}

@test "on a terminal a line tells what mkfs has written, and ^C takes it away, with what was begun" {
        made db
        start_container plain
        with_slow_mkfs
        rm -f "$BATS_TEST_TMPDIR/mkfs"
        in_terminal "$FLEXGRAFT_BIN/mount-volume" "$(volume_request db /data)"
        wait_until 10 test -s "$BATS_TEST_TMPDIR/mkfs"
        wait_until 10 terminal_shows 'mount-volume: mkfs /dev/loop[0-9]+: [0-9.]+[KM]'
        printf '\003' >&"$KEYS"
        ended
        exec {KEYS}>&-
        assert_failure ECANCELED
        [[ $output == *'interrupted (SIGINT)'* ]]
        is_cleared
        assert_mounts_at /data 0
        is_away db
}

@test "--progress=none shows no bar on a terminal" {
        make_copied
        in_terminal "$FLEXGRAFT_TOOLS/at-syscall" --at copy_file_range --run 'sleep 0.7' "$FLEXGRAFT_BIN/volume-create" --progress=none '{"name": "copy", "from": "data"}'
        wait "$BACKGROUND_PID"
        exec {KEYS}>&-
        [[ $(<"$BATS_TEST_TMPDIR/reply") == '{"status":"Success",'* && ! -s $BATS_TEST_TMPDIR/shown ]]
}
