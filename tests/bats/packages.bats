#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# debian/: the packages are built and installed on a bare system, and lintian has nothing against them.

load helpers
load bare_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        export BUILDER=$BATS_FILE_TMPDIR/builder
        from_registry build_packages || [[ -s $BATS_FILE_TMPDIR/no-registry ]]
}

build_packages() {
        bare_root "$BUILDER" || return 1
        copy_repository "$BUILDER/build/flexgraft"
        in_bare "$BUILDER" sh -c 'apt-get update && cd /build/flexgraft && apt-get install -y --no-install-recommends build-essential lintian &&
                apt-get build-dep -y --no-install-recommends ./ &&
                DEB_BUILD_OPTIONS=noautodbgsym dpkg-buildpackage --jobs=2 --build=binary --no-sign'
}

setup() {
        bed_setup
        skip_without_registry
}

teardown() {
        bed_teardown
}

@test "lintian reports nothing about the packages beyond the overrides, which are explained" {
        run in_bare "$BUILDER" sh -c "lintian --allow-root --fail-on error,warning --tag-display-limit 0 /build/*.changes"
        is "$output" ""
        is "$status" 0
        is "$(grep -hv '^#' "$FLEXGRAFT_REPO"/debian/*.lintian-overrides | cut -d' ' -f2 | sort -u)" statically-linked-binary
        is "$(head -qn 1 "$FLEXGRAFT_REPO"/debian/*.lintian-overrides | grep -vc '^# ')" 0
}

@test "the packages are installed, have all that make install installs, and are removed" {
        local root=$BATS_TEST_TMPDIR/root package
        from_registry bare_root "$root"
        cp "$BUILDER"/build/*.deb "$root/"
        from_registry in_bare "$root" sh -c 'apt-get update && apt-get install -y --no-install-recommends /*.deb'
        in_bare "$root" sh -c 'for program in /usr/sbin/mount-* /usr/sbin/volume-*; do "$program" --version || exit 1; done' >/dev/null
        in_bare "$root" mkdir -p /node/usr /node/etc /node/proc /node/var/lib
        in_bare "$root" install-flexvolume --root /node
        [[ $("$root/node/usr/libexec/kubernetes/kubelet-plugins/volume/exec/flexgraft~loop/loop" init) == '{"status":"Success"'* ]]
        in_bare "$root" mkdir -p /node/usr/lib/systemd /node/usr/local
        in_bare "$root" install -m 0755 /bin/true /node/usr/lib/systemd/systemd
        in_bare "$root" install-csi --root /node
        [[ -x $root/node/usr/local/libexec/flexgraft-csi/verbs/mount && -e $root/node/etc/systemd/system/flexgraft-csi.socket ]]
        [[ -e $root/lib/systemd/system/flexgraft-reconcile.service && -e $root/usr/libexec/flexgraft/verbs/pmem-namespaces ]]
        # what is enabled is the node's decision
        is "$(find "$root/etc/systemd" -name 'flexgraft*' 2>/dev/null)" ""
        # shellcheck disable=SC2016     # the words are dpkg's
        for package in flexgraft flexgraft-flexvolume flexgraft-csi; do
                [[ $(dpkg-query --admindir "$root/var/lib/dpkg" -W -f '${Version}' "$package") == "$(sed -n 's/^VERSION := //p' "$FLEXGRAFT_REPO/Makefile")" ]]
        done
        in_bare "$root" apt-get purge -y flexgraft flexgraft-flexvolume flexgraft-csi >/dev/null 2>&1
        is "$(find "$root"/{usr,lib,etc}/ -xdev -name '*flexgraft*' ! -path '*/kubernetes/*')" ""
}
