#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scripts/install-deps: each group is enough for what it is for, on a bare system, and changes no more of that than it must.

load helpers
load bare_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        ROOT=$BATS_TEST_TMPDIR/root
}

teardown() {
        bed_teardown
}

# bare_repository: ROOT is a bare system with the repository in /flexgraft; loop devices are this machine's.
bare_repository() {
        from_registry bare_root "$ROOT"
        copy_repository "$ROOT/flexgraft"
}

# enabled_there: the units that a boot of the system would start, as packages enable them.
enabled_there() {
        find "$ROOT/etc/systemd" -type l 2>/dev/null | sed "s|^$ROOT||" | sort
}

@test "the demonstration runs on a bare system, with some twenty packages besides those of the build, and nothing enabled" {
        local before build demo
        bare_repository
        before=$(enabled_there)
        packages_in "$ROOT" >"$BATS_TEST_TMPDIR/bare"
        from_registry in_bare "$ROOT" /flexgraft/scripts/install-deps build
        build=$(packages_in "$ROOT" | comm -13 "$BATS_TEST_TMPDIR/bare" - | wc -l)
        run ! type -P "$ROOT/usr/bin/crun"
        from_registry in_bare "$ROOT" /flexgraft/scripts/demo
        [[ $output == *"Nothing of it is left on this machine"* ]]
        # two containers, with maps of their own, have id-mapped mounts of a directory that refuses them
        if printf '6.12\n%s\n' "$(uname -r)" | sort --version-sort --check=quiet; then
                [[ $output == *remap-mount* && $output != *"not on this kernel"* ]]
        fi
        demo=$(packages_in "$ROOT" | comm -13 "$BATS_TEST_TMPDIR/bare" - | wc -l)
        echo "packages: $build for the build, $((demo - build)) for the demonstration"
        ((build <= 100 && demo - build <= 25))
        is "$(enabled_there)" "$before" "what is enabled"
        [[ ! -e $ROOT/usr/sbin/policy-rc.d ]]
}

@test "the check begins on a bare system, where even make is missing, and what it installs is neither enabled nor for the virtual machine" {
        local before name
        bare_repository
        before=$(enabled_there)
        [[ ! -e $ROOT/usr/bin/make ]]
        # What was built here need not be built again: the demonstration above builds in a bare system.
        tar -C "$FLEXGRAFT_REPO" -c --exclude 'build/*/*.tar' --exclude build/guest --exclude build/fuzz build bin | tar -x -C "$ROOT/flexgraft"
        from_registry in_bare "$ROOT" /flexgraft/scripts/check -- list_table
        [[ $status == 0 && $output == *" 0 failed, "* && $(tail -n 1 <<<"$output") =~ ^[1-9][0-9]*\ passed ]] || { echo "$output"; false; }
        is "$(enabled_there)" "$before" "what is enabled"
        [[ -e $ROOT/lib/systemd/system/podman.socket ]]
        # not dnsmasq-base, which Debian's lxc depends on; it has no service
        for name in nfs-kernel-server rpcbind nfs-common lvm2 thin-provisioning-tools ndctl; do
                run ! grep -qx "$name" <(packages_in "$ROOT")
        done
}

@test "a policy of the machine's own about services is kept" {
        from_registry bare_root "$ROOT"
        mkdir "$ROOT/flexgraft"
        cp "$FLEXGRAFT_REPO/scripts/install-deps" "$ROOT/flexgraft/"
        printf '#!/bin/sh\necho "$@" >>/asked\nexit 101\n' >"$ROOT/usr/sbin/policy-rc.d"
        chmod 0755 "$ROOT/usr/sbin/policy-rc.d"
        from_registry in_bare "$ROOT" /flexgraft/install-deps demo
        is "$(tail -n 1 "$ROOT/usr/sbin/policy-rc.d")" "exit 101"
}
