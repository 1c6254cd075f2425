#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: annotations and states that are wrong.

load helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- the hook by itself, with a state made here

# ask_text TEXT: an annotation with that text.
ask_text() {
        put_state "$(jq -cRs '{"io.flexgraft.mounts": .}' <<<"$1")"
}

# ---- annotations that are wrong

@test "an annotation that is no JSON of mounts is refused, with its name" {
        local text
        start_container plain-created
        for text in '' ' ' '[' '{' '[}' 'x' '"text"' '1' 'null' 'true' '[{"type": "tmpfs", "target": "/data"}] x' '[{"type": "tmpfs", "target": "/data"},]' \
                '[{"type": "tmpfs", "type": "bind", "target": "/data"}]' '{"type": "tmpfs", "target": "/da\u0000ta"}' $'{"type": "tmpfs", "target": "/da\nta"}'; do
                ask_text "$text"
                refuses 2 io.flexgraft.mounts || { echo "with $text"; return 1; }
        done
}

@test "the reason of a failure is in the log, too: crun shows standard error to nobody" {
        jq -c --arg log "$BATS_TEST_TMPDIR/log" '.log = $log' "$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new"
        mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
        start_container plain-created
        ask_text '[{'
        hook createRuntime
        [[ $status != 0 ]]
        grep -q 'mount-hook .*failed: .*io.flexgraft.mounts' "$BATS_TEST_TMPDIR/log"
}

@test "errors in an annotation's JSON are reported like those in a request" {
        start_container plain-created
        ask_text 'x'
        refuses 2 "io.flexgraft.mounts: invalid JSON at line 1, column 1: '[' or '{' expected"
        ask_text '[{"type": "tmpfs", "target": "/data"},]'
        refuses 2 "io.flexgraft.mounts: invalid JSON at line 1, column 39: unexpected token near ']'"
        ask_text '{"type": "tmpfs", "type": "bind"}'
        refuses 2 "io.flexgraft.mounts: type: is given twice"
        ask_text '{"options": [[[[[[[[1]]]]]]]]}'
        refuses 2 "io.flexgraft.mounts: options: nested deeper than 8 levels"
}

@test "an entry that is not a mount's is refused, with the key" {
        local case
        start_container plain-created
        while read -r case; do
                ask "[{\"type\": \"tmpfs\", \"target\": \"/made/first\"}, ${case#* }]"
                refuses 2 "${case%% *}" || { echo "with ${case#* }"; return 1; }
        done <<'END'
mounts 1
mounts null
mounts []
mounts "tmpfs"
type {}
type {"target": "/data"}
type {"type": "proc", "target": "/data"}
type {"type": "Bind", "target": "/data", "source": "/srv"}
type {"type": 1, "target": "/data"}
type {"type": "batch", "mounts": []}
type {"destination": "/data", "type": "proc", "source": "proc"}
type {"destination": "/data", "type": "sysfs", "source": "sysfs"}
target {"type": "tmpfs"}
target {"type": "tmpfs", "target": 1}
target {"type": "tmpfs", "target": ""}
target {"type": "tmpfs", "target": "data"}
target {"type": "tmpfs", "target": "/"}
source {"type": "bind", "target": "/data"}
source {"type": "bind", "target": "/data", "source": "data"}
source {"type": "bind", "target": "/data", "source": ["/srv"]}
readOnly {"type": "tmpfs", "target": "/data", "readOnly": "yes"}
unknown {"type": "tmpfs", "target": "/data", "unknown": 1}
dryRun {"type": "tmpfs", "target": "/data", "dryRun": true}
timeoutSeconds {"type": "tmpfs", "target": "/data", "timeoutSeconds": 1}
options {"type": "bind", "target": "/data", "source": "/srv", "options": "size=1"}
to {"type": "container-to-container", "from": {"container": "x", "path": "/x"}}
from {"type": "container-to-container", "to": {"path": "/x"}}
/made/first {"type": "tmpfs", "target": "/made/first"}
END
}

@test "an entry may not name a container, not even its own" {
        local container
        start_container plain-created
        for container in "$CONTAINER_PID" "\"$HOOK_ID\"" "{\"pid\": $CONTAINER_PID}" 1; do
                ask "[{\"type\": \"tmpfs\", \"target\": \"/data\", \"container\": $container}]"
                refuses 2 container || { echo "with $container"; return 1; }
                ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"x\", \"path\": \"/x\"}, \"to\": {\"path\": \"/data\", \"container\": $container}}]"
                refuses 2 container || { echo "with to $container"; return 1; }
        done
}

@test "an annotation that is no string is refused" {
        local value
        start_container plain-created
        for value in 1 null true '[]' '{}' '[{"type": "tmpfs", "target": "/data"}]'; do
                put_state "{\"io.flexgraft.mounts\": $value}"
                refuses 2 io.flexgraft.mounts || { echo "with $value"; return 1; }
        done
}

@test "the wrong one of several annotations is named, the first by name of several wrong ones" {
        start_container plain-created
        put_state '{"io.flexgraft.mounts.b": "[", "io.flexgraft.mounts": "{\"type\": \"tmpfs\", \"target\": \"/data\"}", "io.flexgraft.mounts.a": "{"}'
        refuses 2 io.flexgraft.mounts.a
        put_state '{"io.flexgraft.mounts.a": "[]", "io.flexgraft.mounts.b": "[", "io.flexgraft.mounts": "{\"type\": \"tmpfs\", \"target\": \"/data\"}"}'
        refuses 2 io.flexgraft.mounts.b
        put_state '{"io.flexgraft.mounts.a": "[{\"type\": \"tmpfs\", \"target\": \"/data\"}]", "io.flexgraft.mounts": "{\"type\": \"tmpfs\", \"target\": \"/data\"}"}'
        refuses 2 /data
}

@test "an empty list of mounts is no failure" {
        start_container plain-created
        container_snapshot
        ask_text '[]'
        hook createRuntime
        assert_silent
        assert_container_unchanged
}

@test "a long annotation is fine up to 256 KiB and refused beyond" {
        local entry='{"type": "tmpfs", "target": "/data"}'
        start_container plain-created
        HELPER_PREFIX=(timeout 120)
        ask_text "$entry$(head -c 1048576 /dev/zero | tr '\0' ' ')"
        refuses 2 io.flexgraft.mounts
        ask_text "[$(head -c 1048576 /dev/zero | tr '\0' '[')"
        refuses 2 io.flexgraft.mounts
        ask_text "\"$(head -c 262144 /dev/zero | tr '\0' x)\""
        refuses 2 io.flexgraft.mounts
        ask_text "$entry$(head -c 260000 /dev/zero | tr '\0' ' ')"
        accepts /data
}

@test "an annotation that nests deeply is refused" {
        local depth
        start_container plain-created
        HELPER_PREFIX=(timeout 120)
        for depth in 10 1000 100000; do
                ask_text "$(head -c "$depth" /dev/zero | tr '\0' '[')$(head -c "$depth" /dev/zero | tr '\0' ']')"
                refuses 2 || { echo "with depth $depth"; return 1; }
                ask_text "{\"type\": \"tmpfs\", \"target\": \"/data\", \"options\": $(head -c "$depth" /dev/zero | tr '\0' '[')$(head -c "$depth" /dev/zero | tr '\0' ']')}"
                refuses 2 || { echo "with options of depth $depth"; return 1; }
        done
}

@test "very many annotations of ours are refused, not half of them taken" {
        start_container plain-created
        put_state "$(jq -cn '[range(2000) | {key: "io.flexgraft.mounts.\(.)", value: "[]"}] | from_entries')"
        refuses 2 annotations
}

@test "a state with megabytes of other people's annotations is fine" {
        local more
        start_container plain-created
        more=$(head -c 5242880 /dev/zero | tr '\0' x | jq -Rs '{"com.example": ., "a": "b"}')
        # the bundle's configuration has them, too
        jq --slurpfile annotations <(echo "$more") '.annotations = $annotations[0]' "${CONTAINER_ROOTFS%/*}/config.json" >"$BATS_TEST_TMPDIR/config"
        cp "$BATS_TEST_TMPDIR/config" "${CONTAINER_ROOTFS%/*}/config.json"
        put_state "$(jq -c '. + {"io.flexgraft.mounts": "[{\"type\": \"tmpfs\", \"target\": \"/data\"}]"}' <<<"$more")"
        accepts /data
        put_state "$more"
        hook createRuntime
        assert_silent
}

@test "a state that never ends is refused" {
        status=0
        HELPER_PREFIX=(timeout 120)
        helper mount-hook createRuntime </dev/zero
        assert_complaint 2 state
}

@test "a state that cannot be read is refused, with the reason" {
        helper mount-hook createRuntime </
        assert_complaint 2 'Is a directory'
        HELPER_PREFIX=(timeout 120)
        helper mount-hook poststop <&-
        assert_complaint 2 state
}

# ---- a state that is wrong

@test "a state that is no JSON object is refused" {
        local text event
        start_container plain-created
        container_snapshot
        for event in createRuntime prestart poststart poststop; do
                for text in '' ' ' '{' '[]' '1' 'null' 'text' '{"id": "x"' '{} {}' $'\x00' '{"id": "\ud800"}'; do
                        printf '%s' "$text" >"$HOOK_STATE"
                        hook "$event"
                        assert_complaint 2 state || { echo "with $text at $event"; return 1; }
                done
                head -c 1000000 /dev/zero | tr '\0' '[' >"$HOOK_STATE"
                hook "$event"
                assert_complaint 2 state
                printf '{"annotations": {"io.flexgraft.mounts": "[]"}}\0' >"$HOOK_STATE"
                hook "$event"
                assert_complaint 2 state
        done
        assert_container_unchanged
}

@test "a state without a valid pid, id or bundle is refused, with the key" {
        local case
        start_container plain-created
        for case in 'pid:del(.pid)' 'pid:.pid = 0' 'pid:.pid = -1' 'pid:.pid = "1"' 'pid:.pid |= tostring' 'pid:.pid = null' 'pid:.pid += 0.5' 'id:del(.id)' 'id:.id = ""' 'id:.id = 1' \
                'bundle:del(.bundle)' 'bundle:.bundle = ""' 'bundle:.bundle = "bundle"' 'bundle:.bundle = {}'; do
                ask '[{"type": "tmpfs", "target": "/data"}]' "${case#*:}"
                refuses 2 "${case%%:*}" || { echo "with ${case#*:}"; return 1; }
        done
}

@test "a pid too large for one does not become another process's" {
        local add
        start_container plain-created
        for add in 4294967296 8589934592 1099511627776; do
                ask '[{"type": "tmpfs", "target": "/data"}]' ".pid += $add"
                container_snapshot
                node_snapshot
                hook createRuntime
                [[ $status == 1 || $status == 2 ]] || { echo "with pid + $add"; show_last; return 1; }
                assert_complaint "$status"
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "annotations that are no object are none of ours" {
        local value
        for value in null '[]' '"io.flexgraft.mounts"' 1; do
                jq -n --argjson value "$value" '{id: "x", pid: 1, bundle: "/", annotations: $value}' >"$HOOK_STATE"
                hook createRuntime
                [[ $status == 0 || $status == 2 ]] || { show_last; return 1; }
                [[ $status == 2 ]] || assert_silent
        done
}

@test "a state whose pid is no container's process is refused" {
        local pid gone
        start_container plain-created
        background sleep 1000
        gone=$BACKGROUND_PID
        end_process "$gone"
        for pid in 1 $$ "$PPID" "$gone" 2147483647; do
                ask "[$(bind_entry /made/data)]" ".pid = $pid"
                refuses 1 || { echo "with pid $pid"; return 1; }
                hook poststart
                assert_complaint 1
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "the pid of another container gets nothing" {
        local first before
        start_container plain 200000
        first=$CONTAINER_PID
        before=$(<"/proc/$first/mountinfo")
        start_container plain-created
        ask "[$(bind_entry /made/data)]" ".pid = $first"
        refuses 1
        assert_same_mounts "$first" "$before"
}

@test "a container that runs already is not taken for one that is being made" {
        start_container plain-created
        go_on
        ask "[$(bind_entry /made/data)]"
        refuses 1
}

@test "a bundle without a usable configuration is refused" {
        local config=config text
        start_container plain-created
        config=${CONTAINER_ROOTFS%/*}/config.json
        ask "[$(bind_entry /made/data)]"
        for text in '' '{' '[]' '{}' '{"root": {}}' '{"root": {"path": ""}}' '{"root": {"path": 1}}' '{"root": {"path": "nowhere"}}' '{"root": {"path": "config.json"}}' '{"root": "rootfs"}'; do
                printf '%s' "$text" >"$config"
                refuses 1 || { echo "with $text"; return 1; }
        done
        rm "$config"
        refuses 1 config.json
        ask "[$(bind_entry /made/data)]" '.bundle = "/nowhere"'
        refuses 1 /nowhere
}

@test "a bundle whose container may lock memory without limit is fine" {
        start_container plain-created
        printf '{"process": {"rlimits": [{"type": "RLIMIT_MEMLOCK", "hard": 18446744073709551615, "soft": 18446744073709551615}]}, "root": {"path": "rootfs"}}' \
                >"${CONTAINER_ROOTFS%/*}/config.json"
        ask "[$(bind_entry /made/data)]"
        accepts /made/data
}

@test "symlinks in the root directory lead to places beneath it" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir -p "$outside/sub"
        start_container plain-created
        in_container mkdir -p "$CONTAINER_ROOTFS$outside" # on the container's own /tmp
        ln -s "$outside" "$CONTAINER_ROOTFS/absolute"
        ln -s ../../../../../../../../../../../.."$outside" "$CONTAINER_ROOTFS/climbing"
        node_snapshot
        ask "[$(bind_entry /absolute/one), $(bind_entry /climbing/two), $(bind_entry "/../../../../../$outside/three")]"
        hook createRuntime
        [[ $status == 0 ]] || assert_complaint 1
        is "$(ls -A "$outside")" sub
        is "$(ls -A "$outside/sub")" ''
        is "$(grep -c " $outside" "/proc/$CONTAINER_PID/mountinfo")" 0 "mounts outside of the root"
        is "$status" 0
        go_on
        assert_mounts_at "$outside/one" 1
        assert_mounts_at "$outside/two" 1
        assert_mounts_at "$outside/three" 1
}

@test "magic links and filesystems of the kernel's are no targets" {
        local target
        start_container plain-created
        for target in /proc/1 /proc/self/root/tmp /sys/kernel /proc/self/cwd/x; do
                ask "[$(bind_entry "$target")]"
                refuses 1 || { echo "with $target"; return 1; }
        done
}

@test "control characters never reach stderr raw" {
        local name bad=$'\e[31m\n\r\t\x7f\x01' c1=$'\xc2\x9b31m\xc2\x85'
        start_container plain-created
        put_state "$(jq -cn --arg bad "$bad$c1" '{("io.flexgraft.mounts." + $bad): "["}')"
        refuses 2
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({type: "tmpfs", target: "/data", ($bad): 1} | tojson)}')"
        refuses 2
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({type: $bad, target: "/data"} | tojson)}')"
        refuses 2
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({destination: "/data", type: $bad, source: "x"} | tojson)}')"
        refuses 2
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({type: "bind", source: ("/" + $bad), target: ("/" + $bad)} | tojson)}')"
        refuses 1
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({type: "tmpfs", target: "/data", options: [$bad]} | tojson)}')"
        refuses 1
        put_state "$(jq -cn --arg bad "$bad$c1" '{"io.flexgraft.mounts": ({type: "container-to-container", from: {container: $bad, path: "/x"}, to: {path: "/data"}} | tojson)}')"
        refuses 2
        ask "[$(bind_entry /data)]" ".id = $(jq -n --arg bad "$bad$c1" '$bad') | .pid = 1"
        refuses 1
        ask "[$(bind_entry /data)]" ".bundle = $(jq -n --arg bad "/$bad$c1" '$bad')"
        refuses 1
        helper mount-hook "$bad$c1" <"$HOOK_STATE"
        assert_complaint 2
}

@test "a container's id with slashes and dots in it harms no file" {
        local id
        for id in ../../../etc/passwd /etc/passwd . .. $'a\nb'; do
                HOOK_ID=$id
                start_container plain-created
                ask '[{"type": "tmpfs", "target": "/data"}]'
                hook createRuntime
                [[ $status == 0 ]] || assert_complaint "$status"
                stop_container
                put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
                hook poststop
                [[ $status == 0 ]] || assert_complaint "$status"
                assert_no_records
                [[ -s /etc/passwd ]]
        done
}

@test "a broken config.json keeps no container from starting of which nothing is asked or wanted" {
        local text
        put_state '{}'
        for text in '{"log": "syslog",}' '{"newer": 1}'; do
                echo "$text" >"$FLEXGRAFT_CONFIG"
                hook createRuntime
                assert_silent
        done
        # in another directory something may be wanted
        for text in '{"stateDir": "/elsewhere",}' '' '{"log": "sys'; do
                echo "$text" >"$FLEXGRAFT_CONFIG"
                hook createRuntime
                is "$status" 1
        done
}
