# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# mount-hook: a policy, a state as a runtime gives it, and bundles for real runtimes.
#
# After `load helpers` and `load hook_helpers`: setup() calls hook_setup, teardown() calls bed_teardown.

# hook_setup: an open policy, and what bundles and states have unless a test changes it.
hook_setup() {
        bed_setup
        needs mount-hook mount-bind mount-list
        export FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json
        HOOK_STATE=$BATS_TEST_TMPDIR/hook-state
        HOOK_ID=web-$RUN_ID
        BUNDLE_ROOT='{"path": "rootfs"}' BUNDLE_MOUNTS='[]' BUNDLE_STAGES='["createRuntime", "poststop"]' BUNDLE_LINUX='{}'
        open_policy .
}

# ---- the policy

# policy SECTION: a policy with that for annotations.
policy() {
        printf '{"annotations": %s}\n' "$1" >"$FLEXGRAFT_POLICY"
        chmod 0644 "$FLEXGRAFT_POLICY"
}

# open_policy [JQ]: one that allows everything here, changed by a jq program.
open_policy() {
        local policy
        printf -v policy '{"kinds": ["bind", "block", "container-to-container", "tmpfs", "overlay"], "sources": ["%s", "/dev"], "containers": ["*"],
                "options": ["suid", "dev", "shared"], "raw": true}' "$BATS_TEST_TMPDIR"
        [[ -z ${1:-} ]] || policy=$(jq -c "$1" <<<"$policy")
        policy "$policy"
}

# ---- the hook by itself, with a state made here

# put_state ANNOTATIONS [JQ]: what a runtime says of the current container; a jq program changes it.
put_state() {
        local state REPLY
        as_json_string "$HOOK_ID"
        printf -v state '{"ociVersion": "1.0.2", "id": %s, "status": "created", "pid": %s, "bundle": "%s", "annotations": %s}' \
                "$REPLY" "${CONTAINER_PID:-1}" "${CONTAINER_ROOTFS%/*}" "$1"
        [[ -z ${2:-} ]] || state=$(jq -c "$2" <<<"$state")
        printf '%s\n' "$state" >"$HOOK_STATE"
}

# as_json_string TEXT: sets REPLY to it.
as_json_string() {
        REPLY=${1//\\/\\\\}
        REPLY=${REPLY//\"/\\\"}
        REPLY=\"${REPLY//$'\n'/\\n}\"
}

# annotation MOUNTS: these, as one annotation of ours.
annotation() {
        local REPLY
        as_json_string "$1"
        printf '{"io.flexgraft.mounts": %s}\n' "$REPLY"
}

# ask MOUNTS [JQ]: the same, with one annotation of ours.
ask() {
        put_state "$(annotation "$1")" "${2:-}"
}

bind_entry() {
        printf '{"type": "bind", "source": "%s", "target": "%s"%s}' "$SOURCE" "$1" "${2:+, $2}"
}

hook() {
        helper mount-hook "$1" <"$HOOK_STATE"
}

assert_silent() {
        [[ $status == 0 && -z $output && -z $stderr ]] && return 0
        echo "expected: exit status 0 and no output"
        show_last
        return 1
}

# assert_complaint STATUS [TEXT...]: nothing on stdout, on stderr one line of printable text that has each TEXT in it.
assert_complaint() {
        local text expected=$1
        shift
        if [[ $status != "$expected" || -n $output || $stderr != 'mount-hook: '*$'\n' || ${stderr%$'\n'} == *$'\n'* ]]; then
                echo "expected: exit status $expected, nothing on stdout, one line on stderr that begins \"mount-hook: \""
                show_last
                return 1
        fi
        if LC_ALL=C grep -qP '[\x00-\x1f\x7f]|\xc2[\x80-\x9f]' "$BATS_TEST_TMPDIR/stderr"; then
                echo "control characters on stderr:"
                od -c "$BATS_TEST_TMPDIR/stderr" | head -20
                return 1
        fi
        for text; do
                [[ $stderr == *"$text"* ]] && continue
                echo "the message does not say: $text"
                show_last
                return 1
        done
}

# refuses STATUS TEXT...: the hook fails so, and leaves nothing.
refuses() {
        container_snapshot
        node_snapshot
        hook createRuntime
        assert_complaint "$@" || return 1
        assert_container_unchanged && assert_node_unchanged
}

# Mounts that the created container has beneath what will be its root.
assert_created_mounts_at() {
        is "$(mounts_at "$CONTAINER_ROOTFS$1")" "$2" "number of mounts at $1"
}

# accepts TARGET: the hook mounts there.
accepts() {
        hook createRuntime
        assert_silent || return 1
        assert_created_mounts_at "$1" 1
}

record_count() {
        records | wc -l
}

# ---- bundles for real runtimes

# make_bundle ANNOTATIONS [SCRIPT [BASE]]: its first instruction is SCRIPT, for sh; without one it waits. Sets BUNDLE, BUNDLE_ID.
make_bundle() {
        local base=${3:-100000} arguments
        BUNDLE=$BATS_TEST_TMPDIR/bundle.$((++bed_serial))
        BUNDLE_ID=flexgraft-hook-$RUN_ID-$BATS_SUITE_TEST_NUMBER-$bed_serial
        BUNDLE_BASE=$base
        make_rootfs "$BUNDLE/rootfs" "$base"
        arguments=$(jq -cn --arg script "${2:-}" 'if $script == "" then ["/bin/container-init", "--pause", "1"] else ["sh", "-c", $script] end')
        jq -n --argjson annotations "$1" --argjson arguments "$arguments" --argjson base "$base" --arg program "$FLEXGRAFT_BIN/mount-hook" \
                --argjson stages "$BUNDLE_STAGES" --argjson root "$BUNDLE_ROOT" --argjson mounts "$BUNDLE_MOUNTS" --argjson linux "$BUNDLE_LINUX" '
                {ociVersion: "1.0.2",
                 process: {user: {uid: 0, gid: 0}, cwd: "/", args: $arguments, env: ["PATH=/bin"], noNewPrivileges: true,
                           capabilities: (["CAP_CHOWN"] | {bounding: ., effective: ., permitted: .})},
                 root: $root, hostname: "container", annotations: $annotations,
                 hooks: ([$stages[] | {key: ., value: [{path: $program, args: ["mount-hook", .], timeout: 30,
                         env: ["FLEXGRAFT_CONFIG=" + env.FLEXGRAFT_CONFIG, "FLEXGRAFT_POLICY=" + env.FLEXGRAFT_POLICY]}]}] | from_entries),
                 mounts: ([{destination: "/proc", type: "proc", source: "proc"},
                           {destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=1m"]},
                           {destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777"]}] + $mounts),
                 linux: ({namespaces: ([{type: "pid"}, {type: "mount"}, {type: "ipc"}, {type: "uts"}, {type: "network"}] +
                                       if $base == 0 then [] else [{type: "user"}] end)} +
                         (if $base == 0 then {} else [{containerID: 0, hostID: $base, size: 65536}] | {uidMappings: ., gidMappings: .} end) +
                         $linux)}' >"$BUNDLE/config.json"
}

# runtime RUNTIME COMMAND [ARG...]: sets status, output, stderr as helper does.
runtime() {
        bed_command="$*"
        status=0
        rm -f "$BATS_TEST_TMPDIR"/runtime.{out,err}     # the container has those of an earlier call still open, and may write to them now
        oci "$@" >"$BATS_TEST_TMPDIR/runtime.out" 2>"$BATS_TEST_TMPDIR/runtime.err" </dev/null 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/runtime.out" || :
        IFS= read -r -d '' stderr <"$BATS_TEST_TMPDIR/runtime.err" || :
}

# create_bundle RUNTIME: up to its first instruction. The container is the current one, and gone after the test.
create_bundle() {
        local kind=$1
        [[ $BUNDLE_BASE != 0 ]] || kind+=-nouserns
        runtime "$1" create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        is "$status" 0 "exit status of $1 create" || return 1
        adopt_container "$(<"$BUNDLE/pid")" "$kind" "$BUNDLE_ID" "$BUNDLE/rootfs" "$BUNDLE_BASE"
}

run_bundle() {
        runtime "$1" run --bundle "$BUNDLE" "$BUNDLE_ID"
}

# Nothing of a container that has ended, or never began, is left.
assert_bundle_is_gone() {
        assert_no_records || return 1
        if [[ -e /run/$1/$BUNDLE_ID ]]; then
                echo "the runtime still has a state for it"
                return 1
        fi
        assert_node_unchanged
}
