#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A volume tool, mount-volume and mount-batch that are interrupted (^C), and what they say meanwhile of how far mkfs is.

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
        at_syscall --at fallocate --run "kill -$1 \$AT_MAIN_PID \$AT_PID" "$(program volume-create)" "$REQUEST"
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
        at_syscall --each "case \$AT_NAME in fallocate|rt_sigreturn) kill -INT \$AT_MAIN_PID ;; esac" "$(program volume-create)" "$REQUEST"
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
        background_ready "$(tool hold-locks)" "$STATE_DIR/provisioned/.lock"
        at_syscall --at fcntl --run "(sleep 0.1; kill -INT \$AT_MAIN_PID) >/dev/null 2>&1 &" "$(program volume-create)" "$REQUEST"
        assert_failure ECANCELED
        [[ ! -e $STATE_DIR/provisioned/data.json ]]
}

@test "an interrupt that comes just before volume-create waits for a lock ends the wait, too" {
        created '{"name": "other", "size": "1m", "pool": "fast"}'
        background_ready "$(tool hold-locks)" "$STATE_DIR/provisioned/.lock"
        cat >"$BATS_TEST_TMPDIR/each" <<END
[ "\$AT_NAME" = fcntl ] && [ ! -e '$BATS_TEST_TMPDIR/sent' ] || exit 0
readlink "/proc/\$AT_PID/fd"/* | grep -q provisioned/.lock || exit 0
touch '$BATS_TEST_TMPDIR/sent'
kill -INT "\$AT_MAIN_PID"
END
        at_syscall --each "sh '$BATS_TEST_TMPDIR/each'" "$(program volume-create)" "$REQUEST"
        assert_failure ECANCELED
        [[ -e $BATS_TEST_TMPDIR/sent && ! -e $STATE_DIR/provisioned/data.json ]]
}

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
        background env --default-signal=INT "$(program "$1")" "${@:2}" >"$BATS_TEST_TMPDIR/reply" 2>"$BATS_TEST_TMPDIR/said"
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
