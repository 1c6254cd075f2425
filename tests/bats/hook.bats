#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: nothing to do, many containers at a time, and the files that a container engine reads.

load helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- nothing to do

@test "without an annotation of ours the hook is silent at every event, and needs no policy" {
        local event annotations
        rm "$FLEXGRAFT_POLICY"
        for event in createRuntime prestart poststart poststop; do
                for annotations in '{}' '{"io.flexgraft": "x", "io.flexgraft.mount": "x", "io.flexgraft.mountsx": "x", "xio.flexgraft.mounts": "x", "IO.FLEXGRAFT.MOUNTS": "x"}'; do
                        put_state "$annotations"
                        hook "$event"
                        assert_silent
                        put_state "$annotations" 'del(.pid, .bundle, .id)'
                        hook "$event"
                        assert_silent
                done
                echo '{}' >"$HOOK_STATE"
                hook "$event"
                assert_silent
        done
        [[ ! -e $STATE_DIR ]]
}

@test "without an annotation of ours the hook costs less than twice its own bare start" {
        local bare
        at_syscall --count "$FLEXGRAFT_BIN/mount-hook" --version
        is "$status" 0
        bare=$AT_TOTAL
        put_state "$(jq -cn '[range(20) | {key: "com.example.\(.)", value: ("x" * 100)}] | from_entries')"
        at_syscall --count "$FLEXGRAFT_BIN/mount-hook" createRuntime <"$HOOK_STATE"
        assert_silent
        echo "system calls: $AT_TOTAL, of a bare start: $bare"
        ((AT_TOTAL < 2 * bare))
}

@test "an argument that is no event is refused" {
        local event
        put_state '{}'
        for event in '' x createContainer startContainer create poststopx CreateRuntime '{}' -; do
                hook "$event"
                assert_complaint 2 createRuntime || { echo "with $event"; return 1; }
        done
        helper mount-hook <"$HOOK_STATE"
        assert_complaint 2 createRuntime
        helper mount-hook createRuntime poststop <"$HOOK_STATE"
        assert_complaint 2 createRuntime
}

@test "help and version are told" {
        helper mount-hook --help </dev/null
        is "$status" 0
        [[ $output == *createRuntime*poststop* && -z $stderr ]]
        helper mount-hook --version </dev/null
        is "$status" 0
        [[ $output == 'mount-hook (flexgraft) '* && -z $stderr ]]
}

@test "closed standard streams are no failure" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        status=0
        "$FLEXGRAFT_BIN/mount-hook" createRuntime <"$HOOK_STATE" >&- 2>&- || status=$?
        is "$status" 0
        assert_created_mounts_at /data 1
        status=0
        "$FLEXGRAFT_BIN/mount-hook" createRuntime <&- >&- 2>&- || status=$?
        is "$status" 2
}

# ---- killed, or refused any system call

@test "many containers that are made at the same time all get their mounts" {
        local number pids=() containers=()
        for number in 1 2 3 4 5 6 7 8; do
                start_container plain-created $((100000 * number))
                containers+=("$CONTAINER_PID")
                HOOK_ID=web-$number
                ask "[$(bind_entry /made/data), {\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}]"
                mv "$HOOK_STATE" "$HOOK_STATE.$number"
        done
        for number in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-hook" createRuntime <"$HOOK_STATE.$number" >/dev/null 2>"$BATS_TEST_TMPDIR/stderr.$number" 3>&- &
                pids+=("$!")
        done
        for number in 1 2 3 4 5 6 7 8; do
                wait "${pids[number - 1]}" || { cat "$BATS_TEST_TMPDIR/stderr.$number"; return 1; }
                use_container "${containers[number - 1]}"
                assert_created_mounts_at /made/data 1
                assert_created_mounts_at /made/scratch 1
        done
        is "$(record_count)" 16 "number of records"
        for number in 1 2 3 4 5 6 7 8; do
                stop_container "${containers[number - 1]}"
        done
        pids=()
        for number in 1 2 3 4 5 6 7 8; do
                helper mount-hook poststop <"$HOOK_STATE.$number" &
                pids+=("$!")
        done
        wait "${pids[@]}"
        assert_no_records
}

# ---- what a container engine is told

@test "the files for hooks.d are what oci-hooks(5) asks for" {
        local file event seen='' text
        for file in "$FLEXGRAFT_REPO"/hooks.d/*.json.in; do
                text=$(sed 's,@sbindir@,/usr/local/sbin,g' "$file")
                [[ $text != *@* ]] || { echo "$file: $text"; return 1; }
                # for every container: what is wanted in one, no annotation says
                jq -e '(keys == ["hook", "stages", "version", "when"]) and .version == "1.0.0" and
                        (.hook | (keys == ["args", "path", "timeout"]) and .path == "/usr/local/sbin/mount-hook" and .args[0] == "mount-hook" and (.args | length) == 2 and
                                 (.timeout | type == "number" and . > 0)) and
                        (.stages | length == 1) and .stages == .hook.args[1:] and .when == {"always": true}' <<<"$text" >/dev/null || { echo "$file: $text"; return 1; }
                event=$(jq -r '.stages[0]' <<<"$text")
                seen+=" $event"
                # every event named there is one that the program knows
                put_state '{}'
                hook "$event"
                assert_silent
        done
        is "$(tr ' ' '\n' <<<"$seen" | sort | xargs)" 'createRuntime poststop'
}
