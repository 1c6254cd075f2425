#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: mounts that a container's annotations ask for, there before its first instruction, as far as the policy allows.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-hook mount-bind mount-list
        export FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json
        HOOK_STATE=$BATS_TEST_TMPDIR/hook-state
        HOOK_ID=web-$BATS_ROOT_PID
        BUNDLE_ROOT='{"path": "rootfs"}' BUNDLE_MOUNTS='[]' BUNDLE_STAGES='["createRuntime", "poststop"]' BUNDLE_LINUX='{}'
        open_policy
}

teardown() {
        bed_teardown
}

# ---- the policy

# policy SECTION: a policy with that for annotations.
policy() {
        printf '{"annotations": %s}\n' "$1" >"$FLEXGRAFT_POLICY"
        chmod 0644 "$FLEXGRAFT_POLICY"
}

# open_policy [JQ]: one that allows everything here, changed by a jq program.
open_policy() {
        policy "$(jq -cn --arg top "$BATS_TEST_TMPDIR" '{kinds: ["bind", "block", "container-to-container", "tmpfs", "overlay"],
                sources: [$top, "/dev"], containers: ["*"], options: ["suid", "dev", "shared"], raw: true} | '"${1:-.}")"
}

# ---- the hook by itself, with a state made here

# put_state ANNOTATIONS [JQ]: what a runtime says of the current container; a jq program changes it.
put_state() {
        jq -c --argjson pid "${CONTAINER_PID:-1}" --arg id "$HOOK_ID" --arg bundle "${CONTAINER_ROOTFS%/*}" \
                '{ociVersion: "1.0.2", id: $id, status: "created", pid: $pid, bundle: $bundle, annotations: .} | '"${2:-.}" <<<"$1" >"$HOOK_STATE"
}

# ask MOUNTS [JQ]: the same, with one annotation of ours.
ask() {
        put_state "$(jq -c '{"io.flexgraft.mounts": tojson}' <<<"$1")" "${2:-}"
}

# ask_text TEXT: an annotation with that text.
ask_text() {
        put_state "$(jq -cRs '{"io.flexgraft.mounts": .}' <<<"$1")"
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
        BUNDLE_ID=flexgraft-hook-$BATS_ROOT_PID-$RANDOM-$bed_serial
        BUNDLE_BASE=$base
        make_rootfs "$BUNDLE/rootfs" "$base"
        arguments=$(jq -cn --arg script "${2:-}" 'if $script == "" then ["/bin/container-init", "--pause", "1"] else ["sh", "-c", $script] end')
        jq -n --argjson annotations "$1" --argjson arguments "$arguments" --argjson base "$base" --arg program "$(program mount-hook)" \
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

annotation() {
        jq -c '{"io.flexgraft.mounts": tojson}' <<<"$1"
}

# runtime RUNTIME COMMAND [ARG...]: sets status, output, stderr as helper does.
runtime() {
        bed_command="$*"
        status=0
        oci "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" </dev/null 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/stdout" || :
        IFS= read -r -d '' stderr <"$BATS_TEST_TMPDIR/stderr" || :
}

run_bundle() {
        runtime "$1" run --bundle "$BUNDLE" "$BUNDLE_ID"
}

# create_bundle RUNTIME: up to its first instruction. The container is the current one, and gone after the test.
create_bundle() {
        local kind=$1
        [[ $BUNDLE_BASE != 0 ]] || kind+=-nouserns
        runtime "$1" create --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        is "$status" 0 "exit status of $1 create" || return 1
        adopt_container "$(<"$BUNDLE/pid")" "$kind" "$BUNDLE_ID" "$BUNDLE/rootfs" "$BUNDLE_BASE"
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

# sees RUNTIME MOUNTS SCRIPT EXPECTED [BASE]: what the first instruction, SCRIPT, says in a container with these mounts.
sees() {
        make_bundle "$(annotation "$2")" "$3" "${5:-}"
        run_bundle "$1"
        is "$status" 0 "exit status" || return 1
        is "${output%$'\n'}" "$4" "what the first instruction saw" || return 1
        assert_bundle_is_gone "$1"
}

# ---- the first instruction sees them

sees_bind() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file; stat -c %u:%g /data /data/file; touch /data/made' $'text\n0:0\n0:0' "${2:-}"
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

@test "crun: the first instruction sees a bind, with right owners" {
        sees_bind crun
}

@test "runc: the first instruction sees a bind, with right owners" {
        sees_bind runc
}

@test "crun: the first instruction sees a bind, without a user namespace" {
        sees_bind crun 0
}

@test "runc: the first instruction sees a bind, without a user namespace" {
        sees_bind runc 0
}

sees_file() {
        echo text >"$SOURCE/file"
        SOURCE=$SOURCE/file
        sees "$1" "[$(bind_entry /etc/injected '"readOnly": true')]" 'cat /etc/injected; echo x 2>/dev/null >/etc/injected || echo read-only' $'text\nread-only'
}

@test "crun: the first instruction sees a file, read-only" {
        sees_file crun
}

@test "runc: the first instruction sees a file, read-only" {
        sees_file runc
}

sees_tmpfs() {
        sees "$1" '{"type": "tmpfs", "target": "/data", "size": "1m", "mode": "0750", "uid": 3}' \
                'stat -c "%u:%g %a" /data; df -k /data | awk "NR == 2 {print \$2}"' $'3:0 750\n1024'
}

@test "crun: the first instruction sees a tmpfs" {
        sees_tmpfs crun
}

@test "runc: the first instruction sees a tmpfs" {
        sees_tmpfs runc
}

sees_overlay() {
        local top=$BATS_TEST_TMPDIR/layers
        mkdir -p "$top"/{low,up/up,up/work}
        echo low >"$top/low/file"
        sees "$1" "[{\"type\": \"overlay\", \"target\": \"/data\", \"lower\": [\"$top/low\"], \"upper\": \"$top/up/up\", \"work\": \"$top/up/work\"}]" \
                'cat /data/file; stat -c %u:%g /data/file; echo more >/data/made; stat -c %u:%g /data/made' $'low\n0:0\n0:0'
        is "$(stat -c %u:%g "$top/up/up/made")" 0:0
}

@test "crun: the first instruction sees an overlay, and writes to it" {
        sees_overlay crun
}

@test "runc: the first instruction sees an overlay, and writes to it" {
        sees_overlay runc
}

sees_block() {
        make_device ext4
        node_snapshot
        sees "$1" "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\"}]" \
                'cat /data/file; stat -c %u:%g /data/file; touch /data/made && echo made' $'from the device\n0:0\nmade'
}

@test "crun: the first instruction sees a block device's filesystem" {
        sees_block crun
}

@test "runc: the first instruction sees a block device's filesystem" {
        sees_block runc
}

sees_raw() {
        make_device blank
        printf hello | dd of="$DEVICE" status=none
        node_snapshot
        # a runtime that has device control groups is told to close them, as every real one does
        [[ $1 == crun ]] || BUNDLE_LINUX='{"resources": {"devices": [{"allow": false, "access": "rwm"}]}}'
        sees "$1" "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]" \
                'stat -c "%u:%g %a %F" /disk; head -c 5 /disk && echo && printf HELLO | dd of=/disk conv=notrunc,fsync 2>/dev/null && echo written' \
                $'0:0 600 block special file\nhello\nwritten'
        is "$(head -c 5 "$DEVICE")" HELLO
}

@test "crun: the first instruction reads and writes a raw device" {
        sees_raw crun
}

@test "runc: the first instruction reads and writes a raw device" {
        sees_raw runc
}

sees_other_container() {
        local other
        start_container "$1" 200000
        other=${CONTAINER_ID:?}
        in_container sh -c 'mkdir /share && echo text >/share/file && chown 7:8 /share/file'
        sees "$1" "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"$other\", \"path\": \"/share\"}, \"to\": {\"path\": \"/data\"}}]" \
                'cat /data/file; stat -c %u:%g /data /data/file; touch /data/made' $'text\n0:0\n7:8'
        is "$(in_container stat -c %u:%g /share/made)" 0:0
}

@test "crun: the first instruction sees a directory of a running container, with right owners" {
        sees_other_container crun
}

@test "runc: the first instruction sees a directory of a running container, with right owners" {
        sees_other_container runc
}

# An entry of an OCI configuration's "mounts".
sees_oci_entry() {
        echo text >"$SOURCE/file"
        sees "$1" "[{\"destination\": \"/data\", \"type\": \"none\", \"source\": \"$SOURCE\", \"options\": [\"rbind\", \"ro\"]}]" \
                'cat /data/file; touch /data/made 2>/dev/null || echo read-only' $'text\nread-only'
}

@test "crun: the first instruction sees an entry of the OCI sort" {
        sees_oci_entry crun
}

@test "runc: the first instruction sees an entry of the OCI sort" {
        sees_oci_entry runc
}

sees_beneath_tmpfs() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /tmp/made/data), $(bind_entry /dev/data)]" 'cat /tmp/made/data/file /dev/data/file; stat -c %u:%g /tmp/made' $'text\ntext\n0:0'
        is "$(find "$BUNDLE/rootfs/tmp" "$BUNDLE/rootfs/dev" -mindepth 1)" '' "what was made in the directories below"
}

@test "crun: a target beneath a tmpfs of the configuration" {
        sees_beneath_tmpfs crun
}

@test "runc: a target beneath a tmpfs of the configuration" {
        sees_beneath_tmpfs runc
}

sees_missing() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /srv/made/for/it)]" 'cat /srv/made/for/it/file; stat -c %u:%g /srv /srv/made/for' $'text\n0:0\n0:0'
}

@test "crun: a missing target is made, and is the container's root's" {
        sees_missing crun
}

@test "runc: a missing target is made, and is the container's root's" {
        sees_missing runc
}

sees_read_only_root() {
        echo text >"$SOURCE/file"
        BUNDLE_ROOT='{"path": "rootfs", "readonly": true}'
        sees "$1" "[$(bind_entry /srv/data)]" 'cat /srv/data/file; touch /srv/data/made && echo made; touch /made 2>/dev/null || echo read-only' $'text\nmade\nread-only'
}

@test "crun: a missing target in a root that is read-only" {
        sees_read_only_root crun
}

@test "runc: a missing target in a root that is read-only" {
        sees_read_only_root runc
}

sees_root_path() {
        echo text >"$SOURCE/file"
        BUNDLE_ROOT="{\"path\": \"$2\"}"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file' text
}

@test "crun: a relative root.path with dots" {
        sees_root_path crun ./rootfs/.
}

@test "runc: a relative root.path with dots" {
        sees_root_path runc ./rootfs/.
}

sees_absolute_root() {
        local rootfs=$BATS_TEST_TMPDIR/elsewhere/rootfs
        make_rootfs "$rootfs" 100000
        sees_root_path "$1" "$rootfs"
}

@test "crun: an absolute root.path, not in the bundle" {
        sees_absolute_root crun
}

@test "runc: an absolute root.path, not in the bundle" {
        sees_absolute_root runc
}

sees_several() {
        make_bundle '{"io.flexgraft.mounts.b": "[{\"type\": \"tmpfs\", \"target\": \"/order-3\"}, {\"type\": \"tmpfs\", \"target\": \"/order-4\"}]",
                "io.flexgraft.mounts": "{\"type\": \"tmpfs\", \"target\": \"/order-1\"}", "io.flexgraft.mounts.a": "[{\"type\": \"tmpfs\", \"target\": \"/order-2\"}]",
                "io.flexgraft.mountsx": "not ours", "io.flexgraft": "nor this"}' 'awk "\$5 ~ /order/ {print \$5}" /proc/self/mountinfo'
        run_bundle "$1"
        is "$status" 0
        is "$output" $'/order-1\n/order-2\n/order-3\n/order-4\n'
        assert_bundle_is_gone "$1"
}

@test "crun: several annotations, in the order of their names" {
        sees_several crun
}

@test "runc: several annotations, in the order of their names" {
        sees_several runc
}

sees_nested() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data/inner), {\"type\": \"tmpfs\", \"target\": \"/data\"}]" 'cat /data/inner/file; grep -c " /data" /proc/self/mountinfo' $'text\n2'
}

@test "crun: a mount within a mount, whatever their order" {
        sees_nested crun
}

@test "runc: a mount within a mount, whatever their order" {
        sees_nested runc
}

sees_prestart() {
        BUNDLE_STAGES='["prestart", "poststop"]'
        sees_bind "$1"
}

@test "crun: prestart does the same as createRuntime" {
        sees_prestart crun
}

@test "runc: prestart does the same as createRuntime" {
        sees_prestart runc
}

sees_both_stages() {
        BUNDLE_STAGES='["prestart", "createRuntime", "poststop"]'
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file; grep -c " /data " /proc/self/mountinfo' $'text\n1'
}

@test "crun: prestart and createRuntime together make one mount" {
        sees_both_stages crun
}

@test "runc: prestart and createRuntime together make one mount" {
        sees_both_stages runc
}

# ---- the life of a container

lives_with_poststart() {
        local stages=$2
        echo text >"$SOURCE/file"
        BUNDLE_STAGES=$stages
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$status" 0 "exit status of start"
        assert_mounts_at /data 1
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        is "$(record_count)" 1 "number of records"
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_success
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.id' "$BUNDLE_ID"
        assert_field '.mounts[0].target' /data
        stop_container
        assert_bundle_is_gone "$1"
}

@test "crun: poststart mounts into the running container" {
        lives_with_poststart crun '["poststart", "poststop"]'
}

@test "runc: poststart mounts into the running container" {
        lives_with_poststart runc '["poststart", "poststop"]'
}

@test "crun: poststart after createRuntime changes nothing" {
        lives_with_poststart crun '["createRuntime", "poststart", "poststop"]'
}

@test "runc: poststart after createRuntime changes nothing" {
        lives_with_poststart runc '["createRuntime", "poststart", "poststop"]'
}

is_known_by_tools() {
        make_bundle "$(annotation "[$(bind_entry /data), {\"type\": \"tmpfs\", \"target\": \"/tmp/made/scratch\"}]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$status" 0
        helper mount-list "{\"container\": \"$BUNDLE_ID\"}"
        assert_success
        assert_field '[.mounts[] | .target + " " + .state] | sort | join(",")' '/data present,/tmp/made/scratch present'
        # the same asked for by root: it is there already
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/tmp/made/scratch\"}"
        assert_success
        assert_mounts_at /tmp/made/scratch 0
        in_container test ! -e /tmp/made
        helper mount-remove "{\"container\": \"$BUNDLE_ID\", \"target\": \"/data\"}"
        assert_success
        assert_mounts_at /data 0
        in_container test ! -e /data
        assert_no_records
}

@test "crun: what the hook mounted can be listed and removed like any other" {
        is_known_by_tools crun
}

@test "runc: what the hook mounted can be listed and removed like any other" {
        is_known_by_tools runc
}

removes_only_its_records() {
        local first second
        make_bundle "$(annotation "[$(bind_entry /data), $(bind_entry /other)]")"
        create_bundle "$1"
        first=$CONTAINER_PID
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        second=$CONTAINER_PID
        is "$(record_count)" 3 "number of records"
        stop_container "$first"
        is "$(record_count)" 1 "number of records"
        use_container "$second"
        assert_mounts_at "/data" 1
        helper mount-list '{}'
        assert_field '.mounts[0].container.id' "$BUNDLE_ID"
        stop_container "$second"
        assert_no_records
}

@test "crun: poststop removes the records of its container and no other's" {
        removes_only_its_records crun
}

@test "runc: poststop removes the records of its container and no other's" {
        removes_only_its_records runc
}

survives_kill() {
        make_bundle "$(annotation "[$(bind_entry /data)]")"
        create_bundle "$1"
        runtime "$1" start "$BUNDLE_ID"
        is "$(record_count)" 1
        end_process "$CONTAINER_PID"
        stop_container
        assert_bundle_is_gone "$1"
}

@test "crun: a killed container leaves no record once it is deleted" {
        survives_kill crun
}

@test "runc: a killed container leaves no record once it is deleted" {
        survives_kill runc
}

@test "poststop leaves alone what has the same id elsewhere and runs" {
        local first
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        go_on
        first=$CONTAINER_PID
        start_container plain-created 200000
        ask "[$(bind_entry /data)]"
        accepts /data
        is "$(record_count)" 2 "number of records"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid) | .status = "stopped"'
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        use_container "$first"
        assert_mounts_at /data 1
        helper mount-list '{}'
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.pid' "$first"
}

@test "poststop while the container still runs removes nothing" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        put_state '{"io.flexgraft.mounts": "[]"}' '.status = "stopped" | .pid = 0'
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        go_on
        hook poststop
        assert_silent
        is "$(record_count)" 1 "number of records"
        assert_mounts_at /data 1
        stop_container
        hook poststop
        assert_silent
        assert_no_records
}

@test "poststop while the container still runs, with many mounts, is over before a runtime loses patience" {
        start_container plain-created
        ask "$(jq -cn '[range(16) | {type: "tmpfs", target: "/data-\(.)"}]')"
        accepts /data-15
        put_state '{"io.flexgraft.mounts": "[]"}' '.status = "stopped" | .pid = 0'
        HELPER_PREFIX=(timeout "$(jq .hook.timeout "$FLEXGRAFT_REPO/hooks.d/flexgraft-poststop.json.in")")
        hook poststop
        assert_silent
        is "$(record_count)" 16 "number of records"
}

@test "poststop without a pid, with pid 0, without a bundle, without any record" {
        local change
        for change in 'del(.pid)' '.pid = 0' 'del(.bundle)' '.bundle = "/nowhere"' '.status = "stopped"'; do
                put_state '{"io.flexgraft.mounts": "[{\"type\": \"tmpfs\", \"target\": \"/x\"}]"}' "$change"
                hook poststop
                assert_silent
        done
        [[ ! -e $STATE_DIR ]]
}

@test "poststop removes the records of a container whose annotation cannot be understood any more" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        put_state '{"io.flexgraft.mounts": "[{"}' 'del(.pid)'
        rm "$FLEXGRAFT_POLICY"
        hook poststop
        assert_silent
        assert_no_records
}

@test "poststop passes over what is no record of this program" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        echo '{"torn": ' >"$STATE_DIR/mounts/torn.json"
        echo '[]' >"$STATE_DIR/mounts/foreign.json"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        [[ $(records) != *"$(jq -r .id "$HOOK_STATE")"* ]]
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 0
}

@test "a container with a long id leaves no record" {
        local length
        for length in 64 128 200 255; do
                HOOK_ID=$(printf 'x%.0s' $(seq "$length"))
                start_container plain-created
                ask "[$(bind_entry /data)]"
                hook createRuntime
                if [[ $status != 0 ]]; then
                        # refused is as good
                        assert_complaint "$status"
                        assert_created_mounts_at /data 0
                        assert_no_records
                        stop_container
                        continue
                fi
                assert_silent
                stop_container
                put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
                hook poststop
                assert_silent
                assert_no_records || { echo "with an id of $length characters"; return 1; }
        done
}

@test "two ids that begin alike are two containers" {
        local first
        HOOK_ID=$(printf 'x%.0s' $(seq 250))a
        start_container plain-created
        ask "[$(bind_entry /data)]"
        hook createRuntime
        [[ $status == 0 ]] || { assert_complaint "$status"; return; }
        first=$(records)
        stop_container
        HOOK_ID=${HOOK_ID%a}b
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        is "$(records)" "$first"
}

@test "the same id again, with another pid, is mounted anew though the record of the first is still there" {
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        hook poststop
        assert_silent
        assert_no_records
}

@test "createRuntime twice makes one mount" {
        start_container plain-created
        ask "[$(bind_entry /data), {\"type\": \"tmpfs\", \"target\": \"/scratch\"}]"
        accepts /data
        accepts /data
        assert_created_mounts_at /scratch 1
        is "$(record_count)" 2 "number of records"
        go_on
        assert_mounts_at /data 1
        assert_mounts_at /scratch 1
        hook poststart
        assert_silent
        assert_mounts_at /data 1
        assert_mounts_at /scratch 1
        is "$(record_count)" 2 "number of records"
}

@test "poststart into a container that has ended fails and leaves nothing" {
        start_container plain
        ask "[$(bind_entry /data)]"
        stop_container
        node_snapshot
        hook poststart
        assert_complaint 1
        assert_node_unchanged
}

# ---- a failing hook stops the container

is_stopped_by() {
        local runtime=$1 expected=$2 rootfs=$BUNDLE/rootfs before
        before=$(find "$rootfs" | sort)
        run_bundle "$runtime"
        [[ $status != 0 ]] || { show_last; return 1; }
        is "$output" '' "what the container said" || return 1
        if [[ $runtime == runc ]]; then
                [[ $stderr == *"$expected"* ]] || { show_last; return 1; }
        else
                [[ $(<"$BATS_TEST_TMPDIR/hook-stderr") == *"$expected"* ]] || { show_last; cat "$BATS_TEST_TMPDIR/hook-stderr"; return 1; }
        fi
        assert_bundle_is_gone "$runtime" || return 1
        diff <(echo "$before") <(find "$rootfs" | sort)
        wait_until 5 assert_no_helper_processes
}

# With the hook's stderr in a file: crun shows it to nobody otherwise.
failing_annotation() {
        jq -c --arg file "$BATS_TEST_TMPDIR/hook-stderr" '{"io.flexgraft.mounts": tojson, "run.oci.hooks.stderr": $file}' <<<"$1"
}

stops_when_forbidden() {
        policy '{"kinds": ["tmpfs"]}'
        make_bundle "$(failing_annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /made/data)]")" 'echo ran'
        is_stopped_by "$1" 'does not allow it'
}

@test "crun: what the policy forbids stops the container, with the reason, and leaves nothing" {
        stops_when_forbidden crun
}

@test "runc: what the policy forbids stops the container, with the reason, and leaves nothing" {
        stops_when_forbidden runc
}

# The first one is prepared, or even placed, when the second fails.
stops_half_way() {
        make_bundle "$(failing_annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /bin/busybox)]")" 'echo ran'
        is_stopped_by "$1" /bin/busybox
}

@test "crun: the second mount of two fails: the container is stopped and nothing is left of the first" {
        stops_half_way crun
}

@test "runc: the second mount of two fails: the container is stopped and nothing is left of the first" {
        stops_half_way runc
}

stops_on_occupied() {
        BUNDLE_MOUNTS='[{"destination": "/data", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]}]'
        make_bundle "$(failing_annotation "[$(bind_entry /data)]")" 'echo ran'
        mkdir "$BUNDLE/rootfs/data"
        is_stopped_by "$1" 'something is mounted there already'
}

@test "crun: a target that the configuration mounts something on stops the container" {
        stops_on_occupied crun
}

@test "runc: a target that the configuration mounts something on stops the container" {
        stops_on_occupied runc
}

stops_when_malformed() {
        make_bundle "$(jq -cn --arg file "$BATS_TEST_TMPDIR/hook-stderr" '{"io.flexgraft.mounts.web": "[{", "run.oci.hooks.stderr": $file}')" 'echo ran'
        is_stopped_by "$1" io.flexgraft.mounts.web
}

@test "crun: an annotation that is no JSON stops the container, with its name" {
        stops_when_malformed crun
}

@test "runc: an annotation that is no JSON stops the container, with its name" {
        stops_when_malformed runc
}

@test "runc: a poststart that fails kills the container and leaves nothing" {
        BUNDLE_STAGES='["poststart", "poststop"]'
        policy '{}'
        make_bundle "$(annotation "[$(bind_entry /made/data)]")"
        runtime runc run --detach --bundle "$BUNDLE" --pid-file "$BUNDLE/pid" "$BUNDLE_ID"
        [[ $status != 0 && $stderr == *'does not allow it'* ]] || { show_last; return 1; }
        oci runc delete --force "$BUNDLE_ID" >/dev/null 2>&1 || :
        assert_bundle_is_gone runc
        [[ ! -e $BUNDLE/rootfs/made ]]
}

# ---- what the policy says

@test "without a policy nothing is allowed" {
        local mount
        start_container plain-created
        rm "$FLEXGRAFT_POLICY"
        for mount in "$(bind_entry /data)" '{"type": "tmpfs", "target": "/data"}'; do
                ask "[$mount]"
                refuses 1 'does not allow it' "$FLEXGRAFT_POLICY"
        done
}

@test "without its section, or with an empty one, nothing is allowed" {
        local text
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        for text in '{}' '{"volumes": {"kinds": ["tmpfs"]}}' '{"annotations": {}}' '{"annotations": {"kinds": []}}'; do
                echo "$text" >"$FLEXGRAFT_POLICY"
                refuses 1 'does not allow it' || { echo "with $text"; return 1; }
        done
}

@test "the policy is /etc/flexgraft/policy.json if nothing else is said" {
        local path=$FLEXGRAFT_POLICY
        unset FLEXGRAFT_POLICY
        private_node_view /etc/flexgraft
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        refuses 1 'does not allow it' /etc/flexgraft/policy.json
        in_node_view cp "$path" /etc/flexgraft/policy.json
        accepts /data
}

@test "a kind is allowed by its name alone" {
        start_container plain-created
        open_policy '.kinds = ["tmpfs"]'
        ask "[$(bind_entry /data)]"
        refuses 1 'does not allow it' bind kinds
        ask '[{"type": "tmpfs", "target": "/data"}]'
        accepts /data
        open_policy '.kinds = ["bind"]'
        ask '[{"type": "tmpfs", "target": "/other"}]'
        refuses 1 'does not allow it' tmpfs kinds
        ask '[{"destination": "/other", "type": "tmpfs", "source": "tmpfs"}]'
        refuses 1 'does not allow it' tmpfs kinds
}

@test "one forbidden mount of several stops them all" {
        start_container plain-created
        open_policy '.kinds = ["tmpfs"]'
        ask "[{\"type\": \"tmpfs\", \"target\": \"/made/one\"}, $(bind_entry /made/two)]"
        refuses 1 'does not allow it' bind
}

@test "a source is allowed by whole components" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed/sub" "$allowed-not" "${allowed%d}"
        for path in "$allowed" "$allowed/" "/.$allowed//."; do
                open_policy ".sources = [\"$path\"]"
                SOURCE=$allowed-not
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' "$allowed-not" sources || { echo "with $path"; return 1; }
                SOURCE=${allowed%d}
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' "${allowed%d}" || { echo "with $path"; return 1; }
                SOURCE=$BATS_TEST_TMPDIR
                ask "[$(bind_entry /no)]"
                refuses 1 'does not allow it' || { echo "with $path"; return 1; }
        done
        SOURCE=$allowed
        ask "[$(bind_entry /yes)]"
        accepts /yes
        SOURCE=$allowed/sub
        ask "[$(bind_entry /yes2)]"
        accepts /yes2
        SOURCE=/.$allowed//sub/.
        ask "[$(bind_entry /yes3)]"
        accepts /yes3
}

@test "two dots lead nowhere that is not allowed" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside path
        start_container plain-created
        mkdir -p "$allowed/sub" "$outside"
        open_policy ".sources = [\"$allowed\"]"
        for path in "$allowed/../outside" "$allowed/sub/../../outside" "$allowed/.." "$allowed/./../outside/." "$allowed//..//outside"; do
                SOURCE=$path
                ask "[$(bind_entry /data)]"
                container_snapshot
                node_snapshot
                hook createRuntime
                [[ $status != 0 ]] || { echo "allowed: $path"; show_last; return 1; }
                assert_complaint "$status" || return 1
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "names that only look like two dots are names" {
        local allowed=$BATS_TEST_TMPDIR/allowed name
        start_container plain-created
        for name in ..data ... ..2026_01_01 a..b; do
                mkdir -p "$allowed/$name/sub"
                open_policy ".sources = [\"$allowed\"]"
                SOURCE=$allowed/$name/sub
                ask "[$(bind_entry "/data-$name")]"
                accepts "/data-$name" || { echo "with $name in the source"; return 1; }
                open_policy ".sources = [\"$allowed/$name\"]"
                ask "[$(bind_entry "/more-$name")]"
                accepts "/more-$name" || { echo "with $name in the policy"; return 1; }
        done
}

@test "two dots in the layers of an overlay lead nowhere that is not allowed" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside layers
        start_container plain-created
        mkdir -p "$allowed"/{low,up,work} "$outside"/{up,work}
        open_policy ".sources = [\"$allowed\"]"
        for layers in "\"lower\": [\"$allowed/low\", \"$allowed/../outside\"]" \
                "\"lower\": [\"$allowed/low\"], \"upper\": \"$allowed/../outside/up\", \"work\": \"$allowed/../outside/work\"" \
                "\"options\": \"lowerdir=$allowed/low:$allowed/../outside\""; do
                ask "[{\"type\": \"overlay\", \"target\": \"/data\", $layers}]"
                container_snapshot
                hook createRuntime
                [[ $status != 0 ]] || { echo "allowed: $layers"; show_last; return 1; }
                assert_complaint "$status" || return 1
                assert_container_unchanged
        done
}

@test "a symlink in an allowed directory does not lead out of it" {
        local allowed=$BATS_TEST_TMPDIR/allowed outside=$BATS_TEST_TMPDIR/outside
        start_container plain-created
        mkdir -p "$allowed/real/sub" "$outside/sub"
        open_policy ".sources = [\"$allowed\"]"
        ln -s "$outside" "$allowed/out"
        ln -s ../outside "$allowed/relative"
        ln -s real "$allowed/in"
        ln -s "$allowed/in" "$outside/back"
        for path in out out/sub relative relative/sub in/../../outside out/../outside; do
                SOURCE=$allowed/$path
                ask "[$(bind_entry /no)]"
                refuses 1 || { echo "with $path"; return 1; }
                [[ $stderr == *'does not allow it'* || $stderr == *'leads out of its directory'* ]]
        done
        # root's links that stay where they are are as good as what they name
        SOURCE=$allowed/in/sub
        ask "[$(bind_entry /yes)]"
        accepts /yes
        SOURCE=$outside/back
        ask "[$(bind_entry /no)]"
        refuses 1 'leads out of its directory'
}

@test "a symlink of somebody else's is not followed, wherever it leads" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed/real"
        open_policy ".sources = [\"$allowed\"]"
        ln -s real "$allowed/in"
        ln -s / "$allowed/out"
        chown -h 1000:1000 "$allowed/in" "$allowed/out"
        SOURCE=$allowed/in
        ask "[$(bind_entry /no)]"
        refuses 1 "belongs to uid 1000"
        SOURCE=$allowed/out/etc
        ask "[$(bind_entry /no)]"
        refuses 1 "belongs to uid 1000"
}

@test "a source that is allowed for reading cannot be had for writing" {
        local allowed=$BATS_TEST_TMPDIR/allowed more
        start_container plain-created
        mkdir -p "$allowed"/{low,more,up,work}
        open_policy ".sources = [{\"path\": \"$allowed\", \"readOnly\": true}]"
        SOURCE=$allowed
        for more in '' '"readOnly": false' '"options": "rw"' '"options": "ro,rw"' '"options": ["ro", "rw"]'; do
                ask "[$(bind_entry /no "$more")]"
                refuses 1 'does not allow it' || { echo "with $more"; return 1; }
        done
        ask "[{\"type\": \"overlay\", \"target\": \"/no\", \"lower\": [\"$allowed/low\"], \"upper\": \"$allowed/up\", \"work\": \"$allowed/work\"}]"
        refuses 1 'does not allow it' "$allowed/up"
        ask "[$(bind_entry /yes '"readOnly": true')]"
        accepts /yes
        ask "[$(bind_entry /yes2 '"options": "ro"')]"
        accepts /yes2
        ask "[{\"type\": \"overlay\", \"target\": \"/yes3\", \"lower\": [\"$allowed/low\", \"$allowed/more\"]}]"
        accepts /yes3
        go_on
        for target in /yes /yes2 /yes3; do
                run ! in_container touch "$target/made"
        done
}

@test "what is read-only by the policy stays so, whatever the container's root does" {
        local allowed=$BATS_TEST_TMPDIR/allowed
        start_container plain-created
        mkdir -p "$allowed"
        open_policy ".sources = [{\"path\": \"$allowed\", \"readOnly\": true}]"
        SOURCE=$allowed
        ask "[$(bind_entry /data '"readOnly": true')]"
        accepts /data
        go_on
        in_container mount -o remount,bind,rw /data 2>/dev/null || :
        run ! in_container touch /data/made
        [[ ! -e $allowed/made ]]
}

@test "a device is allowed by its own path, however it is named" {
        local link=$BATS_TEST_TMPDIR/allowed/disk
        make_device ext4 "hook$RANDOM"
        start_container plain-created
        mkdir "${link%/*}"
        ln -s "$DEVICE" "$link"
        local label named
        label=$(blkid -o value -s LABEL "$DEVICE")
        open_policy ".sources = [\"${link%/*}\"]"
        for named in "$DEVICE" "$link" "LABEL=$label" "$(dirname "$link")/../../../../../..$DEVICE"; do
                ask "[{\"type\": \"block\", \"source\": \"$named\", \"target\": \"/no\"}]"
                refuses 1 || { echo "with $named"; return 1; }
        done
        open_policy ".sources = [\"$DEVICE\"]"
        ask "[{\"type\": \"block\", \"source\": \"LABEL=$label\", \"target\": \"/yes\"}]"
        accepts /yes
        ask "[{\"type\": \"block\", \"source\": \"$link\", \"target\": \"/no\"}]"
        refuses 1 'leads out of its directory'
}

@test "a device node outside of /dev is nobody's to ask for: a container may have made it" {
        make_device blank
        start_container plain-created
        mkdir "$BATS_TEST_TMPDIR/allowed"
        mknod "$BATS_TEST_TMPDIR/allowed/disk" b "$(stat -c %Hr "$DEVICE")" "$(stat -c %Lr "$DEVICE")"
        open_policy ".sources = [\"$BATS_TEST_TMPDIR/allowed\"]"
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$BATS_TEST_TMPDIR/allowed/disk\", \"target\": \"/no\"}]"
        refuses 1 'one of /dev'
}

@test "raw devices are allowed by a word of their own" {
        make_device blank
        start_container plain-created
        ask "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]"
        open_policy 'del(.raw)'
        refuses 1 'does not allow it' raw
        open_policy '.raw = false'
        refuses 1 'does not allow it' raw
        open_policy '.kinds = ["bind"]'
        refuses 1 'does not allow it' block
        open_policy ".sources = [\"$SOURCE\"]"
        refuses 1 'does not allow it' "$DEVICE"
        open_policy
        accepts /disk
}

@test "an annotation replaces nothing: what is there may be root's" {
        start_container plain
        open_policy
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"readOnly\": true}"
        assert_success
        ask "[$(bind_entry /data '"replace": true')]"
        hook poststart
        ((status == 1))
        [[ $stderr == *replace* ]]
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "options that give rights are allowed by their names" {
        local case
        start_container plain-created
        open_policy '.options = []'
        for case in 'suid:"options": "suid"' 'dev:"options": ["dev"]' 'shared:"options": "shared"' 'shared:"propagation": "shared"' 'shared:"options": "rshared"' \
                'slave:"propagation": "slave"' 'suid:"options": "nosuid,suid"'; do
                ask "[$(bind_entry /no "${case#*:}")]"
                refuses 1 'does not allow it' "${case%%:*}" options || { echo "with $case"; return 1; }
        done
        ask "[$(bind_entry /yes '"options": "ro,nosuid,nodev,noexec,noatime,private"')]"
        accepts /yes
        ask '[{"type": "tmpfs", "target": "/yes2", "size": "1m", "mode": "0700", "inodes": 100, "uid": 3}]'
        accepts /yes2
        ask '[{"type": "tmpfs", "target": "/no", "options": "huge=never"}]'
        refuses 1 'does not allow it' huge
        open_policy '.options = ["huge"]'
        ask '[{"type": "tmpfs", "target": "/yes3", "options": "huge=never"}]'
        accepts /yes3
        open_policy
        ask "[$(bind_entry /yes4 '"options": "suid,dev"')]"
        accepts /yes4
}

@test "options of a filesystem on a device are allowed by their names" {
        make_device ext4
        start_container plain-created
        ask "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"errors=panic\"}]"
        refuses 1 'does not allow it' errors
        open_policy '.options = ["error", "errors=panic", "errorsx"]'
        refuses 1 'does not allow it' errors
        open_policy '.options = ["noload"]'
        ask "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\", \"options\": \"ro,noload\"}]"
        accepts /data
}

@test "a superblock of the container's own cannot be had by annotation" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/no", "ids": "userns"}]'
        refuses 1 ids
        ask "[$(bind_entry /no '"ids": "remap"')]"
        refuses 1 ids
}

@test "another container is allowed by its id" {
        local other
        start_container runc 200000
        other=$CONTAINER_ID
        in_container mkdir /share
        start_container plain-created
        ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"$other\", \"path\": \"/share\"}, \"to\": {\"path\": \"/data\"}}]"
        open_policy 'del(.containers)'
        refuses 1 'does not allow it' "$other" containers
        open_policy ".containers = [\"${other%?}\", \"${other}x\", \"web\"]"
        refuses 1 'does not allow it' "$other" containers
        open_policy ".kinds = [\"bind\"] | .containers = [\"$other\"]"
        refuses 1 'does not allow it' container-to-container
        open_policy ".containers = [\"$other\"]"
        accepts /data
}

@test "another container cannot be named by a pid or a directory of proc" {
        local other from
        start_container plain 200000
        other=$CONTAINER_PID
        start_container plain-created
        for from in "$other" "{\"pid\": $other}" "{\"procDir\": \"/proc/$other\"}" 1; do
                ask "[{\"type\": \"container-to-container\", \"from\": {\"container\": $from, \"path\": \"/tmp\"}, \"to\": {\"path\": \"/data\"}}]"
                refuses 1 'does not allow it' containers || { echo "with $from"; return 1; }
        done
}

@test "too many mounts are refused" {
        local mounts
        start_container plain-created
        open_policy '.maxMounts = 2'
        ask '[{"type": "tmpfs", "target": "/a"}, {"type": "tmpfs", "target": "/b"}, {"type": "tmpfs", "target": "/c"}]'
        refuses 1 maxMounts
        put_state '{"io.flexgraft.mounts.a": "[{\"type\": \"tmpfs\", \"target\": \"/a\"}, {\"type\": \"tmpfs\", \"target\": \"/b\"}]",
                "io.flexgraft.mounts.b": "{\"type\": \"tmpfs\", \"target\": \"/c\"}"}'
        refuses 1 maxMounts
        ask '[{"type": "tmpfs", "target": "/a"}, {"type": "tmpfs", "target": "/b"}]'
        accepts /a
        open_policy '.maxMounts = 0'
        ask '[{"type": "tmpfs", "target": "/d"}]'
        refuses 1 maxMounts
        open_policy 'del(.maxMounts)'
        mounts=$(jq -cn '[range(300) | {type: "tmpfs", target: "/\(.)"}]')
        ask "$mounts"
        container_snapshot
        hook createRuntime
        [[ $status == 1 || $status == 2 ]]
        assert_complaint "$status"
        assert_container_unchanged
}

@test "a policy that is not root's, or that others may write to, is refused" {
        local mode
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        for mode in 0646 0664 0666 0602 0620; do
                chmod "$mode" "$FLEXGRAFT_POLICY"
                refuses 1 "$FLEXGRAFT_POLICY" || { echo "with mode $mode"; return 1; }
        done
        chmod 0644 "$FLEXGRAFT_POLICY"
        chown 1000 "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        chown 0:1000 "$FLEXGRAFT_POLICY"
        accepts /data
}

@test "a policy that is not root's is refused through a symlink, too" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        mv "$FLEXGRAFT_POLICY" "$FLEXGRAFT_POLICY.real"
        ln -s policy.json.real "$FLEXGRAFT_POLICY"
        chown 1000 "$FLEXGRAFT_POLICY.real"
        refuses 1 "$FLEXGRAFT_POLICY"
}

@test "a broken policy is refused, with the line or the key" {
        local text
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        printf '{\n"annotations": {\n"kinds": ["tmpfs"\n}}\n' >"$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY" 'line 4'
        for text in '' '[]' '"tmpfs"' 'null' '{"annotations": []}' '{"annotations": {"kinds": ["tmpfs"]}} x' '{"annotations": {"kinds": ["tmpfs"]}, "annotations": {}}'; do
                printf '%s' "$text" >"$FLEXGRAFT_POLICY"
                refuses 1 "$FLEXGRAFT_POLICY" || { echo "with $text"; return 1; }
        done
        for text in kinds:'"tmpfs"' kinds:'[1]' kinds:null sources:'"/srv"' sources:'["srv"]' sources:'["/srv/../etc"]' sources:'[{"path": "/srv", "readonly": true}]' \
                sources:'[{"readOnly": true}]' sources:'[{"path": "/srv", "readOnly": "yes"}]' sources:'[1]' containers:'"*"' options:'{}' raw:'"yes"' raw:1 maxMounts:'"2"' \
                maxMounts:-1 maxMounts:1.5 kindss:'[]' max-mounts:1; do
                policy "{\"kinds\": [\"tmpfs\"], \"${text%%:*}x\": 1}"
                [[ ${text%%:*} == kinds ]] && policy "{\"kinds\": ${text#*:}}" || policy "{\"kinds\": [\"tmpfs\"], \"${text%%:*}\": ${text#*:}}"
                refuses 1 "$FLEXGRAFT_POLICY" "${text%%:*}" || { echo "with $text"; return 1; }
        done
        echo '{"annotations": {"kinds": ["tmpfs"]}, "annotation": {}}' >"$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY" annotation
}

@test "a policy that is no regular file, or endless, is refused at once" {
        start_container plain-created
        ask '[{"type": "tmpfs", "target": "/data"}]'
        HELPER_PREFIX=(timeout 10)
        rm "$FLEXGRAFT_POLICY"
        mkdir "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rmdir "$FLEXGRAFT_POLICY"
        mkfifo "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        truncate -s 10G "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        ln -s policy.json "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
        rm "$FLEXGRAFT_POLICY"
        ln -s /dev/zero "$FLEXGRAFT_POLICY"
        refuses 1 "$FLEXGRAFT_POLICY"
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
        HELPER_PREFIX=(timeout 10)
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
        HELPER_PREFIX=(timeout 10)
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
        HELPER_PREFIX=(timeout 20)
        helper mount-hook createRuntime </dev/zero
        assert_complaint 2 state
}

@test "a state that cannot be read is refused, with the reason" {
        helper mount-hook createRuntime </
        assert_complaint 2 'Is a directory'
        HELPER_PREFIX=(timeout 10)
        helper mount-hook poststop <&-
        assert_complaint 2 state
}

# ---- a state that is wrong

@test "a state that is no JSON object is refused" {
        local text stage
        start_container plain-created
        container_snapshot
        for stage in createRuntime prestart poststart poststop; do
                for text in '' ' ' '{' '[]' '1' 'null' 'text' '{"id": "x"' '{} {}' $'\x00' '{"id": "\ud800"}'; do
                        printf '%s' "$text" >"$HOOK_STATE"
                        hook "$stage"
                        assert_complaint 2 state || { echo "with $text at $stage"; return 1; }
                done
                head -c 1000000 /dev/zero | tr '\0' '[' >"$HOOK_STATE"
                hook "$stage"
                assert_complaint 2 state
                printf '{"annotations": {"io.flexgraft.mounts": "[]"}}\0' >"$HOOK_STATE"
                hook "$stage"
                assert_complaint 2 state
        done
        assert_container_unchanged
}

@test "a state without what is needed is refused, with the key" {
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

@test "a process that is no container, or none at all, is refused" {
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

# ---- nothing to do

@test "without an annotation of ours the hook is silent at every stage, and needs no policy" {
        local stage annotations
        rm "$FLEXGRAFT_POLICY"
        for stage in createRuntime prestart poststart poststop; do
                for annotations in '{}' '{"io.flexgraft": "x", "io.flexgraft.mount": "x", "io.flexgraft.mountsx": "x", "xio.flexgraft.mounts": "x", "IO.FLEXGRAFT.MOUNTS": "x"}'; do
                        put_state "$annotations"
                        hook "$stage"
                        assert_silent
                        put_state "$annotations" 'del(.pid, .bundle, .id)'
                        hook "$stage"
                        assert_silent
                done
                echo '{}' >"$HOOK_STATE"
                hook "$stage"
                assert_silent
        done
        [[ ! -e $STATE_DIR ]]
}

@test "without an annotation of ours the hook costs less than twice its own bare start" {
        local bare
        at_syscall --count "$(program mount-hook)" --version
        is "$status" 0
        bare=$AT_TOTAL
        put_state "$(jq -cn '[range(20) | {key: "com.example.\(.)", value: ("x" * 100)}] | from_entries')"
        at_syscall --count "$(program mount-hook)" createRuntime <"$HOOK_STATE"
        assert_silent
        echo "system calls: $AT_TOTAL, of a bare start: $bare"
        ((AT_TOTAL < 2 * bare))
}

@test "an argument that is no stage is refused" {
        local stage
        put_state '{}'
        for stage in '' x createContainer startContainer create poststopx CreateRuntime '{}' -; do
                hook "$stage"
                assert_complaint 2 createRuntime || { echo "with $stage"; return 1; }
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
        "$(program mount-hook)" createRuntime <"$HOOK_STATE" >&- 2>&- || status=$?
        is "$status" 0
        assert_created_mounts_at /data 1
        status=0
        "$(program mount-hook)" createRuntime <&- >&- 2>&- || status=$?
        is "$status" 2
}

# ---- killed, or refused any system call

# A sweep has a container for each round, made as cheaply as can be: of one root directory, its state from a template.
sweep_begin() {
        SWEEP_ROOTFS=$BATS_TEST_TMPDIR/sweep/rootfs
        make_rootfs "$SWEEP_ROOTFS" 100000
        CONTAINER_PID=1 CONTAINER_ROOTFS=$SWEEP_ROOTFS
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        SWEEP_STOPPED=$(<"$HOOK_STATE")
        ask "[$(bind_entry /made/data), {\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}]" '.pid = "PID"'
        SWEEP_ASKED=$(<"$HOOK_STATE")
        sweep_round
        # the number of the first call that the program itself makes
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$(program mount-hook)" createRuntime <"$HOOK_STATE" >/dev/null 2>&1 3>&-
        FIRST_CALL=$(awk '$3 == "prctl" || $3 == "capget" || $3 == "capset" || $3 == "close_range" || $3 == "fcntl" {print $1; exit}' "$BATS_TEST_TMPDIR/log")
        FIRST_CALL=${FIRST_CALL:-1}
        AT_NUMBER=0
        sweep_round_end
}

sweep_round() {
        rm -rf "$SWEEP_ROOTFS/made"
        ROOTFS=$SWEEP_ROOTFS start_container plain-created
        echo "${SWEEP_ASKED/'"PID"'/"$CONTAINER_PID"}" >"$HOOK_STATE"
        sweep_mounts=$(<"/proc/$CONTAINER_PID/mountinfo")
}

# The container goes, and poststop leaves nothing. What costs processes to find out is looked at every 16th time.
sweep_round_end() {
        local file
        stop_container
        echo "$SWEEP_STOPPED" >"$HOOK_STATE"
        hook poststop
        assert_silent || return 1
        for file in "$STATE_DIR"/mounts/* "$STATE_DIR"/mounts/.[!.]*; do
                [[ ! -e $file || $file == */.lock ]] || { echo "left: $file"; return 1; }
        done
        ((AT_NUMBER % 16 != 0)) || { assert_no_helper_processes && assert_node_unchanged; }
}

sweep_hook() {
        at_syscall --at "$AT_NUMBER" "$@" "$(program mount-hook)" createRuntime <"$HOOK_STATE"
}

is_mounted_once() {
        local mounts
        mounts=$(<"/proc/$CONTAINER_PID/mountinfo")
        [[ $mounts == *"$CONTAINER_ROOTFS$1 "* && ${mounts#*"$CONTAINER_ROOTFS$1 "} != *"$CONTAINER_ROOTFS$1 "* ]] && return 0
        echo "not one mount at $1"
        show_last
        return 1
}

@test "killed before any call at createRuntime: when the container is gone poststop leaves nothing" {
        sweep_begin
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_round
                sweep_hook --kill
                [[ $AT_REACHED == 1 ]] || break
                sweep_round_end || { echo "at call $AT_NUMBER, $AT_NAME"; return 1; }
        done
        assert_silent
        ((AT_NUMBER > FIRST_CALL + 50))
}

@test "killed before any call at createRuntime: again succeeds, with one mount each" {
        sweep_begin
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_round
                sweep_hook --kill
                [[ $AT_REACHED == 1 ]] || break
                hook createRuntime
                assert_silent && is_mounted_once /made/data && is_mounted_once /made/scratch && sweep_round_end ||
                        { echo "again after call $AT_NUMBER, $AT_NAME"; return 1; }
        done
        ((AT_NUMBER > FIRST_CALL + 50))
}

# fails_cleanly ERRNO: any call fails so: the hook says so and has left nothing, or has done its work.
fails_cleanly() {
        sweep_begin
        sweep_round
        for ((AT_NUMBER = FIRST_CALL + SWEEP_OFFSET; ; AT_NUMBER += SWEEP_STRIDE)); do
                sweep_hook --fail "$1"
                [[ $AT_REACHED == 1 ]] || break
                [[ $AT_NAME != brk ]] || continue # the kernel's brk cannot fail with an errno: it returns an address
                case $status in
                0) assert_silent && is_mounted_once /made/data && is_mounted_once /made/scratch ;;
                1 | 2) [[ $AT_NAME == write ]] || assert_complaint "$status" ;;
                *) false ;;
                esac || { echo "at call $AT_NUMBER, $AT_NAME"; show_last; return 1; }
                if [[ $status == 0 || $stderr == *'undoing it failed'* ]]; then
                        sweep_round_end || { echo "at call $AT_NUMBER, $AT_NAME"; return 1; }
                        sweep_round
                        continue
                fi
                # its namespace is a copy of the node's, so another run's mounts are in it, until their directories are removed
                if [[ -e $SWEEP_ROOTFS/made ]] || ! assert_no_records || ! assert_same_mounts "$CONTAINER_PID" "$sweep_mounts"; then
                        echo "left at call $AT_NUMBER, $AT_NAME"
                        show_last
                        return 1
                fi
        done
        ((AT_NUMBER > FIRST_CALL + 50))
}

@test "with any call failing with EIO the hook says so and leaves nothing" {
        fails_cleanly EIO
}

@test "with any call failing with ENOMEM the hook says so and leaves nothing" {
        fails_cleanly ENOMEM
}

@test "killed before any call at poststop: again leaves nothing" {
        local number name names rounds=0 record copy=$BATS_TEST_TMPDIR/record
        start_container plain-created
        ask "[$(bind_entry /data)]"
        accepts /data
        record=$STATE_DIR/$(records)
        cp "$record" "$copy"
        stop_container
        put_state '{"io.flexgraft.mounts": "[]"}' 'del(.pid)'
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$(program mount-hook)" poststop <"$HOOK_STATE" >/dev/null 2>&1 3>&-
        # it looks at every process of the node, with these calls; a few of each are enough
        mapfile -t names < <(awk '{print $3}' "$BATS_TEST_TMPDIR/log" | sort -u)
        for name in "${names[@]}"; do
                for ((number = 1; number < 30; number++)); do
                        cp "$copy" "$record"
                        at_syscall --at "$name:$number" --kill "$(program mount-hook)" poststop <"$HOOK_STATE"
                        [[ $AT_REACHED == 1 ]] || break
                        hook poststop
                        assert_silent && assert_no_records || { echo "again after $name, number $number"; return 1; }
                        rounds=$((rounds + 1))
                done
        done
        ((rounds > 20))
}

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
                "$(program mount-hook)" createRuntime <"$HOOK_STATE.$number" >/dev/null 2>"$BATS_TEST_TMPDIR/stderr.$number" 3>&- &
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
        for number in 1 2 3 4 5 6 7 8; do
                helper mount-hook poststop <"$HOOK_STATE.$number" &
        done
        wait
        assert_no_records
}

# ---- what a container engine is told

@test "the files for hooks.d are what oci-hooks(5) asks for" {
        local file stage seen='' text
        for file in "$FLEXGRAFT_REPO"/hooks.d/*.json.in; do
                text=$(sed 's,@sbindir@,/usr/local/sbin,g' "$file")
                [[ $text != *@* ]] || { echo "$file: $text"; return 1; }
                jq -e '(keys == ["hook", "stages", "version", "when"]) and .version == "1.0.0" and
                        (.hook | (keys == ["args", "path", "timeout"]) and .path == "/usr/local/sbin/mount-hook" and .args[0] == "mount-hook" and (.args | length) == 2 and
                                 (.timeout | type == "number" and . > 0)) and
                        (.stages | length == 1) and .stages == .hook.args[1:] and (.when | keys == ["annotations"])' <<<"$text" >/dev/null || { echo "$file: $text"; return 1; }
                # the keys are regular expressions
                is "$(jq -c '(.when.annotations | keys[0]) as $name | ["io.flexgraft.mounts", "io.flexgraft.mounts.web", "io.flexgraft.mounts.", "io.flexgraft.mountsx", "ioxflexgraft.mounts",
                        "x.io.flexgraft.mounts", "io.flexgraft"] | map(test($name))' <<<"$text")" '[true,true,true,false,false,false,false]' "$file matches"
                stage=$(jq -r '.stages[0]' <<<"$text")
                seen+=" $stage"
                # every stage named there is one that the program knows
                put_state '{}'
                hook "$stage"
                assert_silent
        done
        is "$(tr ' ' '\n' <<<"$seen" | sort | xargs)" 'createRuntime poststop'
}
