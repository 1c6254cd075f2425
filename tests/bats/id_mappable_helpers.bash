# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# Volumes that a runtime can id-map. After `load helpers` and `load driver_helpers`.

# needs_mappable_fuse: skips where the kernel cannot id-map FUSE, as remap-mount finds out.
needs_mappable_fuse() {
        mkdir -p "$BATS_TEST_TMPDIR/probe/files"
        helper remap-mount "{\"source\": \"$BATS_TEST_TMPDIR\", \"target\": \"$BATS_TEST_TMPDIR/probe\"}"
        [[ $(json_field .message) != *'Linux 6.12'* ]] || skip "the kernel cannot id-map FUSE"
        assert_success
        umount "$BATS_TEST_TMPDIR/probe"
        wait_until 10 no_keepers
}

# needs_unmappable_fuse: skips where the kernel can, as host-check finds out without a remap-daemon.
needs_unmappable_fuse() {
        helper host-check
        [[ $(jq -r '.rows[] | select(.name == "idmap-fuse") | .state' <<<"$json") == missing ]] || skip "the kernel can id-map FUSE"
}

# type_at DIR: of the topmost mount there.
type_at() {
        findmnt --noheadings --first-only --output FSTYPE --target "$1"
}

# keepers: those of this test's daemons, by the state directory whose lock they hold.
keepers() {
        local pid
        for pid in $(pgrep -x 'remap-[kas].*'); do
                [[ $(readlink "/proc/$pid/fd/6") != "$STATE_DIR"/* ]] || echo "$pid"
        done
}

no_keepers() {
        [[ -z $(keepers) ]]
}
