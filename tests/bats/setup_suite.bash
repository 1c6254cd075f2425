# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What all test files share, made once per run: the tools, and a root directory that containers are copied from.

setup_suite() {
        local repo source name tools=()

        repo=$(cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../.." && pwd)
        export FLEXGRAFT_REPO=$repo
        export FLEXGRAFT_BIN=${FLEXGRAFT_BIN:-$repo/bin}
        export FLEXGRAFT_TOOLS=${FLEXGRAFT_TOOLS:-$repo/build/tools}

        ((EUID == 0)) || {
                echo "these tests make containers, mounts and loop devices: run them as root" >&2
                return 1
        }

        # Which points the sweeps try: the same ones in every run, unless a caller draws others.
        FLEXGRAFT_SWEEP_SEED=${FLEXGRAFT_SWEEP_SEED:-0}
        export FLEXGRAFT_SWEEP_SEED

        # Container roots must be able to walk to their root directories.
        umask 022
        chmod 0711 "$BATS_RUN_TMPDIR" "$BATS_SUITE_TMPDIR"

        # Copies, so that a make meanwhile changes nothing.
        mkdir "$BATS_SUITE_TMPDIR/tools"
        for source in "$repo"/tests/tools/*.c; do
                name=${source##*/}
                name=${name%.c}
                if [[ ! -x $FLEXGRAFT_TOOLS/$name || $source -nt $FLEXGRAFT_TOOLS/$name ]]; then
                        echo "$FLEXGRAFT_TOOLS/$name is missing or older than its source: run make tools" >&2
                        return 1
                fi
                tools+=("$FLEXGRAFT_TOOLS/$name")
        done
        cp "${tools[@]}" "$BATS_SUITE_TMPDIR/tools"
        export FLEXGRAFT_TOOLS=$BATS_SUITE_TMPDIR/tools

        export FLEXGRAFT_NEVER=$BATS_SUITE_TMPDIR/never         # see pause()
        mkfifo "$FLEXGRAFT_NEVER"

        make_rootfs_template "$BATS_SUITE_TMPDIR/template"
        export FLEXGRAFT_TEMPLATE=$BATS_SUITE_TMPDIR/template
}

teardown_suite() {
        # A killed run must not leave mounts below the directory that bats is about to delete.
        local target
        while read -r _ _ _ _ target _; do
                [[ $target == "$BATS_RUN_TMPDIR"/* ]] && umount -l "$target"
        done < <(tac /proc/self/mountinfo)
        return 0
}

make_rootfs_template() {
        local root=$1 busybox

        busybox=$(command -v busybox)
        mkdir -p "$root"/{bin,dev,etc,proc,run,sys,tmp,usr,var,mnt,home}
        cp "$busybox" "$root/bin/busybox"
        "$FLEXGRAFT_TOOLS/rootfs" links "$root/bin" busybox \
                sh ash ls cat id mount umount mountpoint stat sleep touch mkdir rmdir rm mv cp ln readlink chown chmod echo printf test \
                head tail tr wc grep sed awk cut sort true false env df dd find kill ps mknod sync dirname basename md5sum od
        cp "$FLEXGRAFT_TOOLS"/{container-init,silent-fuse,swap-loop,peek-at,unix-hello} "$root/bin/"
        mkdir "$root/.devices"
        mknod --mode 0666 "$root/.devices/fuse" c 10 229
        printf 'root:x:0:0:root:/:/bin/sh\n' >"$root/etc/passwd"
        printf 'root:x:0:\n' >"$root/etc/group"
}
