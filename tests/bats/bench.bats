# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bats file_tags=deep
# What scripts/bench prints: that each call is measured, not how long it takes.
bats_require_minimum_version 1.5.0

load helpers

setup_file() {
        cd "$BATS_TEST_DIRNAME/../.." || return
        make build/bench/{side-by-side,floor,remap,driver-lifecycle,driver-floor,print-init} >/dev/null
        MEASURED=$BATS_FILE_TMPDIR/measured
        export MEASURED
        ROUNDS=2 MANY=20 MEBIBYTES=4 FILES=20 scripts/bench >"$MEASURED" 2>"$MEASURED.errors" || {
                tail -n 20 "$MEASURED" "$MEASURED.errors"
                return 1
        }
}

# has_rows NAME...: each with a number, which of so few rounds may be below 0 where it is a difference.
has_rows() {
        local name
        for name in "$@"; do
                grep -qE "^$name +-?[0-9.]+" "$MEASURED" || { echo "no row: $name"; cat "$MEASURED"; return 1; }
        done
}

@test "an injection of each kind is measured beside the kernel's steps" {
        has_rows "bare steps" "bare steps, locked" floor mount-bind "mount-block, fsType" "mount-volume, attached" \
                mount-container-to-container mount-overlay
}

@test "each call is measured with 10 of everything and with many" {
        has_rows mount-bind "mount-list of a container" mount-remove "mount-batch of two" mount-hook mount-block "container to container" \
                mount-volume "mount-remove of a volume" volume-create volume-capacity volume-expand volume-snapshot "volume-list of one" \
                volume-delete "driver: attach" "driver: mountdevice" "driver: unmountdevice" "driver: detach" "driver: mount" \
                "driver: unmount" "mount-list, each mount" "volume-reconcile, the same"
}

@test "the drivers and what serves mounts are measured beside others" {
        has_rows "unavoidable work" "eight calls" "flexdriver init" "NodePublishVolume, CPU us" "[0-9]+ volumes, 16 at one time, volumes/s" \
                "resident KiB after [0-9,]+ calls, and after [0-9,]+" "write, us a MiB" "rename twice, us"
        grep -q "^one worker [0-9]* mounts/s, two [0-9]* mounts/s" "$MEASURED"
}
