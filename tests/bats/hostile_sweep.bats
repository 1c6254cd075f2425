#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Containers that change, or end, before any system call of mount-bind and mount-remove.
# bats file_tags=sweep

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
}

teardown() {
        if [[ -n ${bed_outside:-} && -e $bed_outside ]]; then
                rm -rf --one-file-system "$bed_outside"
        fi
        bed_teardown
}

# swap_before_each PROGRAM KIND: /p/a and the symlink /p/b change places before each call of PROGRAM in turn. There is never more than one
# mount of ours, it is never forgotten, and when the two are back in their places everything can be taken away.
swap_before_each() {
        local outside=$BATS_TEST_TMPDIR/outside swap remove steps=()
        mkdir -p "$outside"
        start_container "$2"
        in_container mkdir -p /p/a/sub
        in_container ln -s "$outside" /p/b
        around_mount
        swap="cd '$CONTAINER_ROOTFS/p' && mv a c && mv b a && mv c b"
        remove="'$FLEXGRAFT_BIN/mount-remove'"
        if [[ $1 == mount-remove ]]; then
                steps=(call "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /p/a/sub)" ';' act "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /p/a/sub)" ';')
        else
                steps=(act "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /p/a/sub)" ';')
        fi
        sweep --run "$swap" "${AROUND[@]}" --watch tree "$outside" -- "${steps[@]}" \
                sh "ours=\$(grep -cF ' $SOURCE ' /proc/$CONTAINER_PID/mountinfo); [ \$ours = 0 ] && exit 0
                        [ \$ours = 1 ] || { echo \"\$ours mounts\"; exit 1; }
                        [ -n \"\$(find '$STATE_DIR' -name uses -prune -o ! -type d ! -name .lock ! -name .call-counts.2 -print)\" ] || { echo 'a mount is there and no record of it'; exit 1; }" ';' \
                sh "[ -z \"\$(ls -A '$outside')\" ] || { echo 'something was made on the node'; exit 1; }" ';' \
                sh "[ \"\$NAME\" = - ] || { $swap; }" ';' \
                sh "$remove '$(remove_request /p/a/sub)' >'$BATS_TEST_TMPDIR/removed'
                        for id in \$('$FLEXGRAFT_BIN/mount-list' '{}' | jq -r '.mounts[].id'); do
                                $remove \"{\\\"id\\\": \\\"\$id\\\"}\" || exit 1; done" ';' \
                same ';'
        nothing_left
}

@test "a directory that changes places with a symlink before any call of mount-bind" {
        swap_before_each mount-bind plain
}

@test "a directory that changes places with a symlink before any call of mount-bind, without a user namespace" {
        swap_before_each mount-bind plain-nouserns
}

@test "a directory that changes places with a symlink before any call of mount-remove" {
        swap_before_each mount-remove plain
}

# container_of KIND ROOTFS: the step that starts such a container in each round; PID is its pid.
container_of() {
        case $1 in
        plain) CONTAINER=(background PID "$FLEXGRAFT_TOOLS/container-init" --base 100000 "$2" ';') ;;
        plain-nouserns) CONTAINER=(background PID "$FLEXGRAFT_TOOLS/container-init" --base 0 --no-userns "$2" ';') ;;
        esac
}

# own_rootfs KIND: a root directory for the containers of all rounds, in ROOT.
own_rootfs() {
        ROOT=$BATS_TEST_TMPDIR/own/rootfs
        case $1 in
        plain) make_rootfs "$ROOT" 100000 ;;
        plain-nouserns) make_rootfs "$ROOT" 0 ;;
        esac
        container_of "$1" "$ROOT"
        mkdir -m 0700 "$STATE_DIR"
        AROUND=(--watch mounts self --watch tree "$STATE_DIR" --watch tree "$ROOT")
        node_snapshot
}

@test "a container that dies before any call: a clean reply, and nothing is left" {
        own_rootfs plain
        # where it was too late to matter, its root is out of reach afterwards
        # shellcheck disable=SC2016
        sweep --run 'kill -KILL $PID; while kill -0 $PID; do :; done' "${AROUND[@]}" -- \
                "${CONTAINER[@]}" \
                act "$FLEXGRAFT_BIN/mount-bind" "$(CONTAINER_PID=@PID@ bind_request /made/data '"id": "mine"')" ';' \
                on-success call "$FLEXGRAFT_BIN/mount-remove" '{"id": "mine"}' ';' \
                on-success sh "rm -rf '$ROOT/made'" ';' \
                end PID ';' \
                same ';'
        assert_no_records && assert_node_unchanged
}

# pid_is_reused KIND CONTAINER-JSON [OPTION...]: before each call the container dies and a process of the node's, with mounts of its own, gets
# its pid. In CONTAINER-JSON, @PID@ stands for the pid, and "mine" for an id in a state file of crun's.
pid_is_reused() {
        local snapshot=$BATS_TEST_TMPDIR/snapshot state=()
        bed_outside=/fg-$RUN_ID-made
        if [[ $2 == '"mine"' ]]; then
                private_node_view /run
                HELPER_PREFIX=(nsenter --target "$NODE_VIEW" --mount --)
                NODE_VIEW=''
                # the start of a process is known by the hundredth of a second: the next one to have the pid must not begin in the same one
                # shellcheck disable=SC2016
                state=(sh 'sleep 0.02; mkdir -p /run/crun/mine && printf "{\"pid\": %s, \"process-start-time\": %s}" $PID $(cut -d" " -f22 /proc/$PID/stat) >/run/crun/mine/status' ';')
        fi
        # shellcheck disable=SC2016
        sweep --run "'$FLEXGRAFT_TOOLS/clone-at-pid' --kill --snapshot '$snapshot' \$PID sleep 1000000" "${AROUND[@]}" "${@:3}" -- \
                "${CONTAINER[@]}" \
                "${state[@]}" \
                act "$FLEXGRAFT_BIN/mount-bind" "{\"container\": $2, \"source\": \"$SOURCE\", \"target\": \"$bed_outside/data\", \"id\": \"mine\"}" ';' \
                sh "$(taken_over "$snapshot")" ';' \
                sh "[ ! -e '$bed_outside' ]" ';' \
                sh 'kill -KILL $PID 2>/dev/null || :' ';' \
                call "$FLEXGRAFT_BIN/mount-remove" '{"id": "mine"}' ';' \
                sh "rm -rf '$ROOT$bed_outside'" ';' \
                end PID ';' \
                same ';'
        assert_no_records && assert_node_unchanged
}

# Before pidfd_open a bare number means whoever has it; from then on it means the container.
check_bare_pid() {
        start_container "$1"
        # the first call of a node makes directories that stay: it has calls that those of the rounds have not
        helper mount-bind "$(bind_request /data '"id": "first"')"
        helper mount-remove '{"id": "first"}'
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"id": "first"')" >/dev/null 3>&-
        helper mount-remove '{"id": "first"}'
        stop_container
        rm -rf "$STATE_DIR"
        own_rootfs "$1"
        pid_is_reused "$1" @PID@ --at "$(awk 'pinned { print $1 } $3 == "pidfd_open" { pinned = 1 }' "$BATS_TEST_TMPDIR/log" | sweep_places)"
}

@test "a pid that another process takes over after it was pinned is not acted upon" {
        check_bare_pid plain
}

@test "a pid that another process takes over after it was pinned is not acted upon, without a user namespace" {
        check_bare_pid plain-nouserns
}

@test "the pid in a runtime's state, taken over by another process between any two steps, is not acted upon" {
        own_rootfs plain
        pid_is_reused plain '"mine"'
}

@test "the pid in a runtime's state, taken over by another process between any two steps, without a user namespace" {
        own_rootfs plain-nouserns
        pid_is_reused plain-nouserns '"mine"'
}

@test "a pid that another process takes over while mount-remove runs" {
        local snapshot=$BATS_TEST_TMPDIR/snapshot
        own_rootfs plain
        # The other process has a mount of the same source at the same place.
        # shellcheck disable=SC2016
        sweep --run "'$FLEXGRAFT_TOOLS/clone-at-pid' --kill --snapshot '$snapshot' \$PID sleep 1000000" "${AROUND[@]}" -- \
                "${CONTAINER[@]}" \
                call "$FLEXGRAFT_BIN/mount-bind" "$(CONTAINER_PID=@PID@ bind_request /data '"id": "mine"')" ';' \
                act "$FLEXGRAFT_BIN/mount-remove" '{"id": "mine"}' ';' \
                sh "$(taken_over "$snapshot")" ';' \
                sh 'kill -KILL $PID 2>/dev/null || :' ';' \
                call "$FLEXGRAFT_BIN/mount-remove" '{"id": "mine"}' ';' \
                sh "rm -rf '$ROOT/data'" ';' \
                end PID ';' \
                same ';'
        assert_no_records && assert_node_unchanged
}
