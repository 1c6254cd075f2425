#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: names, JSON that kubelet would not write, and how it is run.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
}

teardown() {
        driver_teardown
}

# ---- names

# odd_names: one a line.
odd_names() {
        printf '%s\n' 'with space' 'grün-日本' 'a%2Fb' '%' 'a"b\c' '-rf' '--help' '.hidden' 'a.json' '*' "it's" '$(x)' 'trailing ' \
                "$(printf 'x%.0s' {1..253})" "$(printf 'ü%.0s' {1..120})" 'pvc-0e5a7c1e-1111-2222-3333-444455556666'
}

@test "volumes may have odd names" {
        local name
        while read -r name; do
                call getvolumename "$(loop_spec "$name")"
                is "$(json_field .volumeName)" "$name" "volumeName"
        done < <(odd_names)
}

@test "the whole life of a volume with an odd name" {
        local name
        write_policy '"images": ["default/same.img"]'
        while IFS= read -r name; do
                SPECS=() DEVICES=()
                kubelet_attach "$name" type=loop size=8Mi image=same.img
                kubelet_stage "$name"
                kubelet_publish "$name"
                kubelet_unpublish "$name"
                kubelet_unstage "$name"
                kubelet_detach "$name"
                assert_nothing_left
                delete_volume "$name"
        done < <(odd_names | grep -E 'space|grün|%2F|"|^-rf|^x')
}

@test "names that are no names are refused by every verb and lead nowhere" {
        local name
        mkdir -p "$STATE_DIR/volumes"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/volumes"
        echo '{}' >"$STATE_DIR/victim.json"
        for name in .. . ../victim ../../etc/x /etc/passwd a/b a/../../victim ''; do
                node_snapshot
                call getvolumename "$(spec "$name")"
                if [[ $name == */* || $name == . || $name == .. || -z $name ]]; then
                        [[ $(json_field .status) == Failure || $(json_field .volumeName) == "$name" ]]
                fi
                call attach "$(loop_spec "$name")" "$NODE"
                [[ $(json_field .status) == Failure ]] || call detach "$name" "$NODE"
                call detach "$name" "$NODE"
                is "$(<"$STATE_DIR/victim.json")" '{}'
                [[ ! -e $STATE_DIR/victim.img && ! -e $BATS_TEST_TMPDIR/victim.img && ! -e $STATE_DIR/pools/victim.img ]]
        done
        rm "$STATE_DIR/victim.json"
        assert_nothing_left
}

@test "detach of a name that leads elsewhere touches nothing there" {
        local name
        mkdir -p "$STATE_DIR/volumes" "$BATS_TEST_TMPDIR/etc"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/volumes"
        printf '{"version": 1, "name": "x", "driver": "flexgraft", "type": "loop"}\n' >"$BATS_TEST_TMPDIR/etc/x.json"
        cp "$BATS_TEST_TMPDIR/etc/x.json" "$BATS_TEST_TMPDIR/before"
        for name in ../../etc/x "$BATS_TEST_TMPDIR/etc/x" ../../etc/x.json .. . '' ../..; do
                call detach "$name" "$NODE"
                cmp "$BATS_TEST_TMPDIR/etc/x.json" "$BATS_TEST_TMPDIR/before"
        done
        is "$(find "$BATS_TEST_TMPDIR/etc" -type f)" "$BATS_TEST_TMPDIR/etc/x.json"
        assert_nothing_left
}

@test "names that differ only by what a file name needs are different volumes" {
        attached_loop 'a b'
        attached_loop 'a%20b'
        is "$(volume_records | wc -l)" 2 "records"
        [[ ${DEVICES['a b']} != "${DEVICES['a%20b']}" ]]
        kubelet_detach 'a b'
        is "$(loops_of_test)" "${DEVICES['a%20b']}"
        kubelet_detach 'a%20b'
        assert_nothing_left
}

@test "a name with a newline or another control character is one volume or refused, never two lines" {
        call attach "$(spec $'a\nb' type=loop size=8Mi)" "$NODE"
        [[ $(json_field .status) == Failure ]] || kubelet_detach $'a\nb'
        [[ $(grep -c '^b' "$LOG") == 0 ]]
        assert_nothing_left
}

# ---- JSON that kubelet would not write

@test "a NUL in the JSON is refused" {
        call attach '{"kubernetes.io/pvOrVolumeName": "da\u0000ta", "type": "loop", "size": "8Mi"}' "$NODE"
        assert_refused
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi", "image": "a\u0000b"}' "$NODE"
        assert_refused
        is "$(find "$POOL" -type f 2>/dev/null)" ""
        assert_nothing_left
}

@test "text that is no JSON object fails as such" {
        local text
        for text in '' ' ' '{' '[]' '"x"' null 7 '{"a":1} x' '{"a":1}{"b":2}' $'\xff\xfe' '{"kubernetes.io/pvOrVolumeName":"\xff"}' "{'a':1}"; do
                call getvolumename "$text"
                assert_refused
                call attach "$text" "$NODE"
                assert_refused
                call mount "$(pod_dir data)" "$text"
                assert_refused
        done
        [[ ! -e $(pod_dir data) ]]
        assert_nothing_left
}

@test "a repeated key is refused" {
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi", "size": "9Mi"}' "$NODE"
        assert_refused size
        assert_nothing_left
}

@test "the JSON may come from standard input" {
        loop_spec data >"$BATS_TEST_TMPDIR/input"
        CALL_INPUT=$BATS_TEST_TMPDIR/input call getvolumename -
        assert_reply '{"status": "Success", "volumeName": "data"}'
        CALL_INPUT=$BATS_TEST_TMPDIR/input call attach - "$NODE"
        assert_success
        kubelet_detach data
        assert_nothing_left
}

@test "a JSON of two million bytes is refused and one of a hundred thousand is read" {
        local text
        text=$(printf 'x%.0s' {1..1000})
        {
                printf '{"kubernetes.io/pvOrVolumeName": "data", "filler": "'
                for _ in {1..2100}; do printf %s "$text"; done
                printf '"}'
        } >"$BATS_TEST_TMPDIR/input"
        CALL_INPUT=$BATS_TEST_TMPDIR/input call getvolumename -
        assert_refused
        for _ in {1..6}; do text+=$text; done
        call getvolumename "{\"kubernetes.io/pvOrVolumeName\": \"data\", \"filler\": \"$text\"}"
        assert_reply '{"status": "Success", "volumeName": "data"}'
}

@test "JSON nested deeply is refused" {
        local open close
        open=$(printf '[%.0s' {1..3000})
        close=$(printf ']%.0s' {1..3000})
        call getvolumename "{\"kubernetes.io/pvOrVolumeName\": \"data\", \"x\": $open$close}"
        assert_refused
}

# ---- how it is run

@test "an empty environment and another directory do not matter" {
        CALL_PREFIX=(env -i "FLEXGRAFT_CONFIG=$FLEXGRAFT_CONFIG" "FLEXGRAFT_POLICY=$FLEXGRAFT_POLICY" "FLEXGRAFT_POOLS=$FLEXGRAFT_POOLS"
                /usr/bin/env --chdir=/proc/self)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "PATH and the like are not used to find programs" {
        local name
        mkdir "$BATS_TEST_TMPDIR/evil"
        for name in mkfs.ext4 mke2fs e2fsck fsck fsck.ext4 mount umount losetup blkid sh; do
                printf '#!/bin/sh\ntouch "%s/evil/ran"\nexit 0\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/evil/$name"
                chmod 0755 "$BATS_TEST_TMPDIR/evil/$name"
        done
        CALL_PREFIX=(env "PATH=$BATS_TEST_TMPDIR/evil:$PATH" MKE2FS_CONFIG=/dev/null "MKE2FS_FIRST_META_BG=1")
        lifecycle_up data type=loop size=8Mi
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        [[ ! -e $BATS_TEST_TMPDIR/evil/ran ]]
        assert_nothing_left
}

@test "with standard input closed nothing goes wrong" {
        CALL_PREFIX=(bash -c 'exec "$@" <&-' bash)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "attach does its work also when its caller does not read the answer" {
        "$DRIVER" attach "$(loop_spec data)" "$NODE" 2>&1 3>&- | : || :
        "$DRIVER" attach "$(loop_spec data)" "$NODE" >/dev/full 2>&1 3>&- || :
        "$DRIVER" attach "$(loop_spec data)" "$NODE" >&- 2>&- 3>&- || :
        attached_loop data
        is "$(loops_of_test)" "${DEVICES[data]}" "loop devices"
        kubelet_detach data
        assert_nothing_left
}

@test "signals that the caller ignores or blocks do not matter" {
        CALL_PREFIX=(env --ignore-signal=CHLD --ignore-signal=PIPE --ignore-signal=ALRM --block-signal=CHLD --block-signal=TERM)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "the caller's umask does not matter" {
        local mask
        for mask in 0000 0777; do
                CALL_PREFIX=(bash -c "umask $mask"' && exec "$@"' bash)
                lifecycle_up data type=loop size=8Mi
                is "$(stat -c %a "$STATE_DIR" "$STATE_DIR/volumes" | sort -u)" 700 "modes of the state directories"
                is "$(stat -c %a "$(record_of data)")" 600 "mode of the record"
                is "$(stat -c %a "$(image_of data)")" 600 "mode of the image"
                lifecycle_down data
                rm -r "$STATE_DIR"
        done
        CALL_PREFIX=()
        assert_nothing_left
}

@test "a hundred open files of the caller's do not reach mkfs" {
        CALL_PREFIX=(bash -c 'for fd in {20..120}; do eval "exec $fd</dev/null"; done; exec "$@"' bash)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "mkfs is run under a filter, without a capability" {
        make_dir "$(global_dir data)"
        kubelet_attach data type=loop size=8Mi
        at_syscall --at execve --run-output "$BATS_TEST_TMPDIR/seen" --run "grep '^CapPrm\|^CapInh\|^NoNewPrivs\|^Seccomp:' /proc/\$AT_PID/status" \
                "${DRIVER%/*}/verbs/mountdevice" "$(global_dir data)" "${DEVICES[data]}" "$(spec data type=loop)"
        is "$(jq -r .status <<<"$output")" Success
        is "$(<"$BATS_TEST_TMPDIR/seen")" $'CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2'
        kubelet_unstage data
        kubelet_detach data
}

@test "a directory of kubelet's below a symbolic link is mounted all the same" {
        mv "$KUBELET" "$BATS_TEST_TMPDIR/real"
        ln -s real "$KUBELET"
        lifecycle_up data type=loop size=8Mi
        is "$(node_mounts_at "$BATS_TEST_TMPDIR/real${KUBELET:+/pods/$POD/volumes/$DRIVER_NAME/data}")" 1
        lifecycle_down data
        assert_nothing_left
}

@test "a relative directory is refused" {
        attached_loop data
        call mountdevice relative/dir "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused DIR
        call mount relative/dir "${SPECS[data]}"
        assert_refused DIR
        call unmount relative/dir
        assert_refused DIR
        kubelet_detach data
        assert_nothing_left
}

@test "one directory, two drivers: each name is its own volume" {
        install_driver flexgraft~loop
        lifecycle_up data size=8Mi
        lifecycle_down data
        install_driver example.org~loop
        lifecycle_up data size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "calls for one volume at the same time make one device" {
        local -a pids=()
        local i
        for i in {1..8}; do
                "$DRIVER" attach "$(loop_spec data)" "$NODE" >"$BATS_TEST_TMPDIR/reply.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        is "$(sort -u "$BATS_TEST_TMPDIR"/reply.*)" "{\"status\":\"Success\",\"device\":\"$(loop_of "$(image_of data)")\"}" "the replies"
        is "$(loops_of_test | wc -l)" 1 "loop devices"
        kubelet_detach data
        assert_nothing_left
}

@test "the name of a part of a volume is no volume's" {
        local name
        for name in kata-0123456789abcdef ephemeral-0123456789abcdef none-0123456789abcdef; do
                call attach "$(spec "$name" type=loop size=8Mi)" "$NODE"
                assert_refused "kept for a part of another volume"
        done
        for name in kata-0123456789abcde ephemeral-0123456789abcdefg; do
                call attach "$(spec "$name" type=loop size=8Mi)" "$NODE"
                assert_success
                call detach "$name" "$NODE"
                assert_success
        done
}
