# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # of helpers.bash
# Upgrades of what serves mounts with remapped owners. After `load helpers` and `load remap_helpers`.

# upgrade_setup: an installation of this test's own, whose programs are replaced as a package does it.
upgrade_setup() {
        local program
        mkdir "$BATS_TEST_TMPDIR/installed"
        for program in mount-bind mount-container-to-container mount-list mount-remove remap-mount remap-daemon remap-upgrade volume-reconcile; do
                cp "$FLEXGRAFT_BIN/$program" "$BATS_TEST_TMPDIR/installed/"
        done
        FLEXGRAFT_BIN=$BATS_TEST_TMPDIR/installed
}

# install_again: the same program in another file.
install_again() {
        cp "$FLEXGRAFT_BIN/remap-daemon" "$FLEXGRAFT_BIN/remap-daemon.new"
        mv "$FLEXGRAFT_BIN/remap-daemon.new" "$FLEXGRAFT_BIN/remap-daemon"
}

# upgrade: of all mounts, with success; remembers who serves them now.
upgrade() {
        helper remap-upgrade
        assert_success
        remember_remap_processes
}

# one_pair: the current container is served by one keeper and one daemon.
one_pair() {
        [[ $(remap_processes remap-keeper | wc -l) == 1 && $(remap_processes remap-daemon | wc -l) == 1 && -z $(remap_processes remap-reserve) ]]
}
