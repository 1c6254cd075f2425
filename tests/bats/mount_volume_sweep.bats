#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-volume, and mount-remove of a volume: killed, or refused, at any system call; the same call again finds its way.
# bats file_tags=sweep

load helpers
load driver_helpers
load volume_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs mount-volume mount-remove
        start_container plain
        CREATE='{"name": "db", "size": "8Mi"}' DELETE='{"name": "db"}' TARGET=/made/data
        REQUEST="{\"container\": $CONTAINER_PID, \"volume\": \"db\", \"target\": \"$TARGET\"}"
        REMOVE=$(remove_request "$TARGET")
        around_mount
        AROUND+=(--watch loops "$BATS_TEST_TMPDIR/")
}

teardown() {
        driver_teardown
}

# sweep_volume ACTION...: a round is one life of a volume: made, mounted with the action, mounted again, removed, deleted.
sweep_volume() {
        sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/volume-create" "$CREATE" ';' \
                act "$FLEXGRAFT_BIN/mount-volume" "$REQUEST" ';' \
                on-success mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                on-failure mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                on-failure loops "$BATS_TEST_TMPDIR/" 0 ';' \
                call "$FLEXGRAFT_BIN/mount-volume" "$REQUEST" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                loops "$BATS_TEST_TMPDIR/" 1 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                call "$FLEXGRAFT_BIN/volume-delete" "$DELETE" ';' \
                sh "rm -f '$STATE_DIR'/operations/*" ';' \
                same ';'
}

# sweep_removal ACTION...: of the last mount of a volume.
sweep_removal() {
        helper volume-create "$CREATE"
        assert_success
        sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/mount-volume" "$REQUEST" ';' \
                act "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
        helper volume-delete "$DELETE"
        assert_success
}

@test "mount-volume killed before any call: again succeeds, and remove leaves nothing" {
        sweep_volume --kill
}

@test "mount-volume killed before any call while its worker lives on" {
        sweep_volume --kill-main
}

@test "mount-volume that makes its volume killed before any call: again succeeds, and remove leaves the volume alone" {
        REQUEST=${REQUEST%\}}', "create": {"size": "8Mi"}}'
        CREATE='{"name": "other", "size": "8Mi"}'
        WIDER=2 sweep_volume --kill
        helper volume-delete '{"name": "other"}'
        assert_success
}

@test "mount-volume of a block volume's device killed before any call: again succeeds, and remove leaves nothing" {
        CREATE='{"name": "db", "size": "8Mi", "targetType": "block"}'
        REQUEST=${REQUEST%\}}', "raw": true}'
        WIDER=2 sweep_volume --kill
}

@test "mount-batch of two volumes killed before any call: again succeeds, and remove leaves nothing" {
        local other='{"name": "other", "size": "8Mi"}'
        helper volume-create "$other"
        assert_success
        REQUEST="{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"other\", \"target\": \"/other\"},
                {\"type\": \"volume\", \"volume\": \"db\", \"target\": \"$TARGET\"}]}"
        helper volume-create "$CREATE"
        assert_success
        WIDER=4 sweep "${AROUND[@]}" --kill -- \
                act "$FLEXGRAFT_BIN/mount-batch" "$REQUEST" ';' \
                on-failure mounts "$CONTAINER_PID" "$TARGET" 0 ';' \
                on-failure mounts "$CONTAINER_PID" /other 0 ';' \
                call "$FLEXGRAFT_BIN/mount-batch" "$REQUEST" ';' \
                mounts "$CONTAINER_PID" "$TARGET" 1 ';' \
                loops "$BATS_TEST_TMPDIR/" 2 ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$REMOVE" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /other)" ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                same ';'
}

@test "mount-volume refused any call: it says so, and leaves nothing" {
        sweep_volume --fail ENOMEM
}

@test "the last mount-remove of a volume killed before any call: again succeeds, and the volume is detached" {
        sweep_removal --kill
}

@test "the last mount-remove of a volume killed before any call while its worker lives on" {
        sweep_removal --kill-main
}

@test "the last mount-remove of a volume refused any call: again succeeds" {
        sweep_removal --fail ENOMEM
}
