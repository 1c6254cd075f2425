#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "persist": a mount that is to stay, its removal, and its return: killed, or refused, at any system call.
# bats file_tags=sweep

load helpers
load hook_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
        needs mount-remove
        start_container crun
        WISH="{\"container\": \"$CONTAINER_ID\", \"source\": \"$SOURCE\", \"target\": \"/made/data\", \"persist\": true}"
        REMOVE="{\"container\": \"$CONTAINER_ID\", \"target\": \"/made/data\"}"
        WISHES="cat '$STATE_DIR'/wanted/*.json 2>/dev/null | grep -c /made/data"
        around_mount
}

teardown() {
        bed_teardown
}

# sweep_mount ACTION...: a round is a mount with the action, again, and its removal.
sweep_mount() {
        sweep "${AROUND[@]}" "$@" -- \
                act "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                on-success sh "[ \"\$($WISHES)\" = 1 ]" ';' \
                on-failure sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                on-failure mounts "$CONTAINER_PID" /made/data 0 ';' \
                call "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                sh "[ \"\$($WISHES)\" = 1 ]" ';' \
                mounts "$CONTAINER_PID" /made/data 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                mounts "$CONTAINER_PID" /made/data 0 ';' \
                same ';'
        nothing_left
}

@test "a mount with persist, killed before any call: again succeeds, with one mount and one wish" {
        sweep_mount --kill
}

@test "a mount with persist, any call failing with EIO: a failure leaves no mount and no wish" {
        sweep_mount --fail EIO --not-undone 'undoing it failed'
}

# A record that was not written to its end, volume-reconcile takes away.
@test "a mount with persist, killed before any call: mount-remove leaves neither mount nor wish" {
        sweep "${AROUND[@]}" --kill -- \
                act "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                mounts "$CONTAINER_PID" /made/data 0 ';' \
                call "$FLEXGRAFT_BIN/volume-reconcile" '{}' ';' \
                same ';'
        nothing_left
}

@test "a mount that is wanted already, any call of the same request failing with EIO: it stays, and stays wanted" {
        sweep "${AROUND[@]}" --fail EIO -- \
                call "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                act "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                sh "[ \"\$($WISHES)\" = 1 ]" ';' \
                mounts "$CONTAINER_PID" /made/data 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                same ';'
        nothing_left
}

# sweep_removal ACTION...: a round is a mount, its removal with the action, and again.
sweep_removal() {
        sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/mount-bind" "$WISH" ';' \
                act "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                on-success sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                on-success mounts "$CONTAINER_PID" /made/data 0 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                sh "[ \"\$($WISHES)\" = 0 ]" ';' \
                mounts "$CONTAINER_PID" /made/data 0 ';' \
                same ';'
        nothing_left
}

@test "a removal, killed before any call: again leaves neither mount nor wish" {
        sweep_removal --kill
}

@test "a removal, any call failing with EIO: again leaves neither mount nor wish" {
        sweep_removal --fail EIO
}

# bundle_with_wish: a container that has /made/data, and is to have it again.
bundle_with_wish() {
        stop_container
        rm "$FLEXGRAFT_POLICY"
        make_bundle '{}'
        create_bundle crun
        helper mount-bind "{\"container\": \"$BUNDLE_ID\", \"source\": \"$SOURCE\", \"target\": \"/made/data\", \"persist\": true}"
        assert_success
}

# sweep_return ACTION... [-- STEP...]: @MADE@ in a step is where the mount is to be. Each round the container of the wish starts anew, with the action at createRuntime and these further steps; it
# ends, and poststop leaves the wish and nothing else.
sweep_return() {
        local options=() steps state
        while (($# > 0)) && [[ $1 != -- ]]; do
                options+=("$1")
                shift
        done
        steps=("${@:2}")
        bundle_with_wish
        stop_container
        mkfifo "$BUNDLE/start"
        state="{\"ociVersion\": \"1.0.2\", \"id\": \"$BUNDLE_ID\", \"status\": \"created\", \"bundle\": \"$BUNDLE\""
        "$FLEXGRAFT_BIN/mount-hook" poststop <<<"$state}"
        sweep --reply plain "${options[@]}" --watch tree "$STATE_DIR" --watch mounts self -- \
                sh "rm -rf '$BUNDLE/rootfs/made'" ';' \
                background PID "$FLEXGRAFT_TOOLS/container-init" --base 100000 --created "$BUNDLE/start" "$BUNDLE/rootfs" ';' \
                stdin "$state, \"pid\": @PID@}" ';' \
                remember mounts @PID@ ';' \
                act "$FLEXGRAFT_BIN/mount-hook" createRuntime ';' \
                "${steps[@]/@MADE@/$BUNDLE/rootfs/made/data}" \
                sh "[ \"\$($WISHES)\" = 1 ]" ';' \
                end PID ';' \
                stdin "$state}" ';' \
                call "$FLEXGRAFT_BIN/mount-hook" poststop ';' \
                same ';'
        is "$(records | grep -v ^wanted/)" '' "records"
}

@test "the return of a wanted mount, killed before any call: the container's next start finds the wish and nothing else" {
        sweep_return --kill
}

@test "the return of a wanted mount, killed before any call: again succeeds, with one mount" {
        sweep_return --kill -- call "$FLEXGRAFT_BIN/mount-hook" createRuntime ';' mounts @PID@ @MADE@ 1 ';'
}

@test "the return of a wanted mount, any call failing with EIO: the container has it, or the hook fails" {
        sweep_return --fail EIO --not-undone 'undoing it failed' -- on-success mounts @PID@ @MADE@ 1 ';'
}
