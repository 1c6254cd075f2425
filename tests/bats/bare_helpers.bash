# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Bare systems: root directories with nothing but Debian 12's minimal set of packages, as Debian's container image has it, in which a test
# installs and builds as a new user would. They come from the package registry that this machine's apt is configured for; where that is not
# in reach, such a test is skipped.

# What apt says then.
NO_REGISTRY='Failed to fetch|Unable to fetch|Temporary failure resolving|Could not resolve|Unable to connect|Connection (failed|timed out)|Hash Sum mismatch|File has unexpected size'

# from_registry COMMAND...: runs what installs packages. Its status and output are in $status and $output, as with `run`. In setup_file it
# returns 1 when the command fails, and the tests are skipped if skip_without_registry is in setup.
from_registry() {
        status=0
        "$@" >"$BATS_FILE_TMPDIR/registry.$$" 2>&1 || status=$?
        output=$(<"$BATS_FILE_TMPDIR/registry.$$")
        rm "$BATS_FILE_TMPDIR/registry.$$"
        ((status != 0)) || return 0
        tail -n 40 <<<"$output"
        grep -m 1 -oE "($NO_REGISTRY).*" <<<"$output" >"$BATS_FILE_TMPDIR/no-registry" || return "$status"
        [[ -z ${BATS_TEST_TMPDIR:-} ]] || skip_without_registry
        return 1
}

skip_without_registry() {
        [[ ! -s $BATS_FILE_TMPDIR/no-registry ]] || skip "Debian's package registry is not in reach: $(<"$BATS_FILE_TMPDIR/no-registry")"
}

# bare_base: an archive of such a root directory, made by mmdebstrap at most once a day. Tests that want it at once wait.
bare_base() {
        local dir=$FLEXGRAFT_REPO/build/bare-system lock
        mkdir -p "$dir"
        exec {lock}>"$dir/lock"
        flock "$lock"
        if [[ -z $(find "$dir" -name base.tar -mmin -1440) ]]; then
                bare_sources >"$dir/sources.list" || { echo "Failed to fetch: apt has no list of Debian's packages" && return 1; }
                bare_apt_options >"$dir/apt.conf"
                # The working directory is one that everybody may enter: apt drops its privileges.
                mmdebstrap --quiet --variant=minbase --mode=root --aptopt="$dir/apt.conf" bookworm "$dir/base.new.tar" "$dir/sources.list" \
                        >"$dir/log" 2>&1 </dev/null || {
                        cat "$dir/log"
                        # whatever it was: nothing of flexgraft's was in it
                        echo "Failed to fetch a bare system: $(grep -m 1 '^E:' "$dir/log")"
                        return 1
                }
                mv "$dir/base.new.tar" "$dir/base.tar"
        fi
        exec {lock}>&-
}

# bare_sources: the Debian sources of this machine, one a line.
bare_sources() {
        list_sources() {
                # shellcheck disable=SC2016     # the words are apt's
                apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' | grep ' main$'
        }
        list_sources || { apt-get -q update >&2 && list_sources; }
}

# bare_apt_options: patience, and this machine's way to its registry.
bare_apt_options() {
        echo 'Acquire::Retries "5"; Acquire::http::Timeout "30"; Acquire::https::Timeout "30";'
        apt-config dump | grep -E '^Acquire::https?::Proxy' || :
}

# bare_root DIR: DIR is a new one.
bare_root() {
        bare_base || return 1
        mkdir -p "$1"
        tar -x -C "$1" --exclude './dev/*' -f "$FLEXGRAFT_REPO/build/bare-system/base.tar"
        echo 'force-unsafe-io' >"$1/etc/dpkg/dpkg.cfg.d/test"
        cp --dereference /etc/resolv.conf /etc/hosts "$1/etc/"
}

# in_bare DIR COMMAND...: there, as root, with /proc, /dev and /sys, in /; nothing that it mounts or leaves running stays.
in_bare() {
        local dir=$1 proxies=() name
        shift
        for name in http_proxy https_proxy no_proxy; do
                [[ -z ${!name:-} ]] || proxies+=("$name=${!name}")
        done
        # shellcheck disable=SC2016     # for the other shell
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
                "${proxies[@]}" unshare --mount --pid --fork --kill-child sh -c '
                        set -e
                        root=$1
                        shift
                        mount --bind "$root" "$root"
                        mount --rbind /dev "$root/dev"
                        mount -t proc proc "$root/proc"
                        mount --rbind /sys "$root/sys"
                        mount -t tmpfs -o mode=0755 tmpfs "$root/run"
                        cd "$root"
                        pivot_root . .          # and no chroot, in which nothing can make a mount namespace of its own
                        umount --lazy .
                        cd /
                        exec "$@"' sh "$dir" "$@" </dev/null 3>&-
}

# packages_in DIR: their names, one a line.
packages_in() {
        # shellcheck disable=SC2016     # the words are dpkg's
        dpkg-query --admindir "$1/var/lib/dpkg" -W -f '${Package}\n' | sort -u
}

# copy_repository DIR: what is in the repository, without what was built.
copy_repository() {
        mkdir -p "$1"
        tar -C "$FLEXGRAFT_REPO" -c --exclude ./.git --exclude ./build --exclude ./bin . | tar -x -C "$1"
}
