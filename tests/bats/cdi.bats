#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Volumes as devices of container engines (CDI): the files, mount-hook as they call it, and Podman.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load hook_helpers
load podman_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
        driver_setup
        volume_setup
        needs mount-hook mount-volume volume-create
        policy '{"kinds": ["volume", "tmpfs"], "volumeNames": ["web-*"], "pools": ["default"]}'
        CDI=$BATS_TEST_TMPDIR/cdi
        use_cdi_dir "$CDI"
}

teardown() {
        podman_teardown
        driver_teardown
}

use_cdi_dir() {
        jq -c --arg dir "$1" '.cdiDir = $dir' "$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new"
        mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
}

written() {
        helper mount-hook --cdi
        assert_success
}

# devices: the names in the file.
devices() {
        jq -r '[.devices[].name] | join(" ")' "$CDI/flexgraft.json"
}

deleted() {
        helper volume-delete "{\"name\": \"$1\"}"
        assert_success
}

# of_device NAME EVENT: the arguments of its hook, without the program's name.
of_device() {
        jq -r --arg name "$1" --arg event "$2" '.devices[] | select(.name == $name) | .containerEdits.hooks[] | select(.hookName == $event) | .args[1:][]' \
                "$CDI/flexgraft.json"
}

# device_hook NAME EVENT: mount-hook as an engine calls it for the device.
device_hook() {
        local arguments
        mapfile -t arguments < <(of_device "$1" "$2")
        helper mount-hook "${arguments[@]}" <"$HOOK_STATE"
}

@test "a call that has the volume cdi keeps no other volume from being made, nor the files from being written" {
        made cdi
        make_pool other
        written
        stopped_at renameat "$FLEXGRAFT_BIN/volume-delete" '{"name": "cdi"}' # it has the lock of its name
        run timeout 100 "$FLEXGRAFT_BIN/volume-create" '{"name": "web-1", "size": "1m", "pool": "other"}'
        is "$status" 0
        run timeout 100 "$FLEXGRAFT_BIN/mount-hook" --cdi
        is "$status" 0
        resumed
        is "$(devices)" web-1
}

@test "mount-hook --cdi gives up when another process keeps the lock" {
        written
        jq -c '.timeouts.call = 2' "$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new"
        mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
        background_ready python3 -c 'import fcntl, os, struct, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("ready", flush=True); time.sleep(1000)' "$STATE_DIR/provisioned/.lock"
        run -1 timeout 30 "$FLEXGRAFT_BIN/mount-hook" --cdi
        [[ $output == *'timed out'* ]]
}

@test "mount-hook --cdi writes a device for each volume, and one for annotations" {
        made web-2
        made web-1 '"target": "/srv/data"'
        made raw '"targetType": "block"'
        written
        assert_field .devices 3
        is "$(jq -r '.kind, .cdiVersion' "$CDI/flexgraft.json")" $'flexgraft.io/volume\n0.5.0'
        is "$(devices)" "raw web-1 web-2"
        is "$(of_device raw createRuntime | paste -sd' ')" "createRuntime --volume raw --target /volumes/raw --raw"
        is "$(of_device web-1 createRuntime | paste -sd' ')" "createRuntime --volume web-1 --target /srv/data"
        is "$(of_device web-2 poststop | paste -sd' ')" "poststop --volume web-2 --target /volumes/web-2"
        is "$(jq -r '.devices[1].containerEdits.hooks[0].path' "$CDI/flexgraft.json")" "$FLEXGRAFT_BIN/mount-hook"
        is "$(jq -c '[.kind, .devices[].name, .devices[0].containerEdits.hooks[0].args]' "$CDI/flexgraft-storage.json")" \
                '["flexgraft.io/storage","annotated",["mount-hook","createRuntime"]]'
        is "$(stat -c %a "$CDI/flexgraft.json" "$CDI/flexgraft-storage.json")" $'644\n644'
}

@test "the hooks of devices have the time limits of those in hooks.d" {
        local event
        made web-1
        written
        for event in createRuntime poststop; do
                is "$(jq -r --arg event "$event" '.devices[].containerEdits.hooks[] | select(.hookName == $event) | .timeout' "$CDI"/flexgraft{,-storage}.json | uniq)" \
                        "$(jq -r --arg event "$event" 'select(.stages[0] == $event).hook.timeout' "$FLEXGRAFT_REPO"/hooks.d/*.json.in)"
        done
}

@test "on a terminal mount-hook --cdi prints lines, and with --json its reply" {
        made "we b"
        made web-1
        terminal mount-hook --cdi
        is "$status $stderr" '0 '
        is "$output" $'volumes that are devices now, by the files in '"$CDI"$': 1\nleft out, for its name is none for a device: we b'
        terminal mount-hook --cdi --json
        is "$(jq -c '[.status, .devices, .leftOut]' <<<"$output")" '["Success",1,["we b"]]'
        terminal mount-hook --cdi --jsno
        is "$status $output" '2 '
}

@test "a call of mount-hook without an event is told the usage" {
        helper mount-hook </dev/null
        is "$status $output" '2 '
        [[ $stderr == *'usage: mount-hook EVENT ['*'--cdi'* ]]
}

@test "volumes that are made and deleted come and go in the file, and without one there is none" {
        made web-1
        [[ ! -e $CDI ]]
        written
        made web-2
        is "$(devices)" "web-1 web-2"
        deleted web-1
        is "$(devices)" "web-2"
        deleted web-2
        is "$(devices)" ""
        rm -r "$CDI"
        made web-1
        [[ ! -e $CDI ]]
}

@test "a repeated volume-create leaves the file alone" {
        made web-1
        written
        rm "$CDI/flexgraft.json"
        made web-1
        [[ ! -e $CDI/flexgraft.json ]]
        written
        is "$(devices)" web-1
        is "$(compgen -G "$STATE_DIR/provisioned/.cdi*" || :)" ""
}

@test "a volume whose name is none for a device is left out, and told" {
        made web-1
        made 'web 2'
        written
        is "$(jq -c .leftOut <<<"$output")" '["web 2"]'
        is "$(devices)" web-1
}

@test "a volume's target is a path, and another one of a repeated request is refused" {
        made web-1 '"target": "/data"'
        helper volume-create '{"name": "web-1", "size": "8Mi", "target": "/other"}'
        assert_failure EEXIST
        helper volume-create '{"name": "web-2", "size": "8Mi", "target": "data"}'
        is "$status" 2
}

@test "a volume's target that is too long is refused by its key, and never shortened" {
        local target
        target=/$(printf 'a%.0s' {1..254})
        made web-1 "\"target\": \"$target\""
        written
        is "$(of_device web-1 createRuntime | paste -sd' ')" "createRuntime --volume web-1 --target $target"
        helper volume-create "{\"name\": \"web-2\", \"size\": \"8Mi\", \"target\": \"${target}a\"}"
        assert_not_understood target
        is "$(devices)" web-1
        is "$("$FLEXGRAFT_BIN/volume-create" --schema | jq '[.. | .target? | objects | .maxLength] | unique | .[]')" 255
}

# agrees_after PROGRAM REQUEST DEVICES OTHER UNDO: wherever it is killed (every 25th call, from the 7th on), the same call again leaves a file that says what is there.
agrees_after() {
        local n
        for ((n = 7; n < 5000; n += 25)); do
                at_syscall --at "$n" --kill "$FLEXGRAFT_BIN/$1" "$2"
                ((AT_REACHED)) || break
                helper "$1" "$2"
                assert_success || return 1
                is "$(devices)" "$3" "devices after call $n of $1" || return 1
                helper "$4" "$5"
                assert_success || return 1
        done
        ((n > 50 && n < 5000))
}

@test "wherever volume-create and volume-delete are killed, the same request again makes the file right" {
        local create='{"name": "web-2", "size": "1m"}' delete='{"name": "web-2"}'
        made web-1
        written
        agrees_after volume-create "$create" "web-1 web-2" volume-delete "$delete"
        helper volume-create "$create"
        agrees_after volume-delete "$delete" web-1 volume-create "$create"
}

@test "a volume that mount-volume makes is a device, and those that kubelet has made are none" {
        written
        start_container plain
        mount_volume web-1 /data '"create": {"size": "8m"}'
        assert_success
        is "$(devices)" web-1
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"web-2\", \"target\": \"/two\", \"create\": {\"size\": \"8m\"}}]}"
        assert_success
        is "$(devices)" "web-1 web-2"
        remove_mount /two
        remove_mount /data
}

@test "a volume that CSI has made is no device" {
        made web-1
        made of-pod '"namespace": "-"'
        written
        is "$(devices)" web-1
        is "$(jq -c .leftOut <<<"$output")" '[]'
}

@test "only mount-hook --cdi says how engines call the hook, not who makes a volume later, nor one of another state directory" {
        local before
        FLEXGRAFT_POLICY=policy.json helper mount-hook --cdi
        assert_complaint 1 FLEXGRAFT_POLICY
        written
        before=$(jq -c .devices "$CDI/flexgraft-storage.json")
        FLEXGRAFT_POLICY=/etc/other.json helper volume-create '{"name": "web-1", "size": "1m"}'
        is "$(devices)" web-1
        is "$(jq -c .devices "$CDI/flexgraft-storage.json")" "$before"
        is "$(grep -c other "$CDI/flexgraft.json" || :)" 0
        jq -c '.stateDir = "/tmp/of-others"' "$FLEXGRAFT_CONFIG" | sed "s,/tmp/of-others,$BATS_TEST_TMPDIR/other-state," >"$BATS_TEST_TMPDIR/other.json"
        FLEXGRAFT_CONFIG=$BATS_TEST_TMPDIR/other.json helper volume-create '{"name": "alien", "size": "1m"}'
        assert_success
        is "$(devices)" web-1
}

@test "the file of devices can be read by others while it is replaced" {
        made web-1
        written
        at_syscall --at fchmod --run "stat -c %a '$CDI/flexgraft.json' >'$BATS_TEST_TMPDIR/mode'" "$FLEXGRAFT_BIN/volume-create" '{"name": "web-2", "size": "1m"}'
        assert_success
        is "$AT_REACHED $(<"$BATS_TEST_TMPDIR/mode")" "1 644"
}

@test "a file of devices that a killed process left unreadable for others is made readable" {
        made web-1
        written
        chmod 0600 "$CDI/flexgraft.json"
        helper volume-reconcile '{}'
        assert_success
        is "$(stat -c %a "$CDI/flexgraft.json")" 644
}

@test "volume-reconcile makes the file right" {
        made web-1
        written
        printf '{"kind": "flexgraft.io/volume", "devices": []}\n' >"$CDI/flexgraft.json"
        helper volume-reconcile '{}'
        assert_success
        is "$(devices)" web-1
}

@test "volumes that are made and deleted at a time are all in the file, or not" {
        local n pids=()
        written
        for n in 1 2 3 4 5 6; do
                background "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"web-$n\", \"size\": \"1m\"}" >/dev/null
                pids+=("$BACKGROUND_PID")
        done
        wait "${pids[@]}"
        pids=()
        for n in 2 4 6; do
                background "$FLEXGRAFT_BIN/volume-delete" "{\"name\": \"web-$n\"}" >/dev/null
                pids+=("$BACKGROUND_PID")
        done
        wait "${pids[@]}"
        is "$(devices)" "web-1 web-3 web-5"
}

@test "the hook of a device mounts the volume on its target, whatever the annotations say, and poststop detaches it" {
        made web-1
        written
        start_container plain-created
        put_state "$(annotation '[{"type": "tmpfs", "target": "/other"}]')"
        device_hook web-1 createRuntime
        assert_silent
        assert_created_mounts_at /volumes/web-1 1
        assert_created_mounts_at /other 0
        stop_container
        device_hook web-1 poststop
        assert_silent
        is_away web-1
}

@test "the hook of a device is refused what the policy does not allow" {
        made other
        written
        start_container plain-created
        put_state '{}'
        device_hook other createRuntime
        assert_complaint 1 volumeNames
        is_away other
}

@test "a volume as a device counts for itself by maxMounts, and not with what the annotations ask for" {
        local allowed='"kinds": ["volume", "tmpfs"], "volumeNames": ["web-*"], "pools": ["default"]' name
        for name in web-1 web-2 web-3; do
                made "$name"
        done
        written
        policy "{$allowed, \"maxMounts\": 1}"
        start_container plain-created
        put_state "$(annotation '[{"type": "tmpfs", "target": "/other"}]')"
        accepts /other
        for name in web-1 web-2; do
                device_hook "$name" createRuntime
                assert_silent
                assert_created_mounts_at "/volumes/$name" 1
        done
        policy "{$allowed, \"maxMounts\": 0}"
        device_hook web-3 createRuntime
        assert_complaint 1 maxMounts
        assert_created_mounts_at /volumes/web-3 0
}

# first_use NAME: where a container has the volume, and whether as a device.
first_use() {
        helper volume-list "{\"name\": \"$1\"}"
        jq -c '.volumes[0].uses[0] | [.target, .raw]' <<<"$output"
}

@test "the hook of a block volume's device gives the container that device where the policy allows raw ones, and poststop takes it back" {
        made web-1 '"targetType": "block"'
        written
        start_container plain-created
        put_state '{}'
        device_hook web-1 createRuntime
        assert_complaint 1 raw
        is_away web-1
        policy '{"kinds": ["volume"], "volumeNames": ["web-*"], "pools": ["default"], "raw": true}'
        device_hook web-1 createRuntime
        assert_silent
        assert_created_mounts_at /volumes/web-1 1
        is "$(first_use web-1)" '["/volumes/web-1",true]'
        stop_container
        device_hook web-1 poststop
        assert_silent
        is_away web-1
}

@test "arguments that are no device's are refused with the usage" {
        local arguments
        for arguments in "--raw" "--volume a --raw" "--volume a --target /a --raw --raw" "--volume a" "--target /a" "--volume a --target" "--volume a --volume b" "--other a" "a"; do
                # shellcheck disable=SC2086 # words
                helper mount-hook createRuntime $arguments </dev/null
                is "$status" 2 "exit status with $arguments"
        done
}

sees_device() {
        podman_setup "$1"
        use_cdi_dir /run/cdi
        made web-1
        made web-2 '"target": "/data"'
        written
        podman_run --rm --device flexgraft.io/volume=web-1 --device flexgraft.io/volume=web-2 --rootfs "$ROOTFS_DIR" \
                sh -c 'exec >/said && echo text >/data/file && cat /data/file && stat -c %u:%g /data/file && grep -c " /volumes/web-1 ext4 " /proc/mounts'
        is "$status" 0 "exit status: $stderr"
        is "$(said)" $'text\n0:0\n1' "what the first instruction saw"
        wait_until 20 is_away web-2 >/dev/null || is_away web-2
        podman_run --rm --device flexgraft.io/storage=annotated --annotation "$(podman_annotation '{"type": "volume", "volume": "web-2", "target": "/again"}')" \
                --rootfs "$ROOTFS_DIR" sh -c 'cat /again/file >/said'
        is "$(said)" text
        wait_until 20 is_away web-2 >/dev/null || is_away web-2
        rm -r /run/cdi
}

@test "Podman with crun: a volume that is asked for as a device is there before the first instruction" {
        sees_device crun
}

@test "Podman with runc: a volume that is asked for as a device is there before the first instruction" {
        sees_device runc
}
