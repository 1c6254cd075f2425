# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Podman, with everything of its own below the test's directory.
#
# After `load helpers` and `load podman_helpers`: a test calls podman_setup, teardown() calls podman_teardown before bed_teardown.

# podman_setup [RUNTIME]: skips where Podman is not installed.
podman_setup() {
        command -v podman >/dev/null || skip "podman is not installed"
        export CONTAINERS_CONF=$BATS_TEST_TMPDIR/containers.conf
        PODMAN_DIR=$BATS_TEST_TMPDIR/podman PODMAN_HOOKS=$BATS_TEST_TMPDIR/hooks.d PODMAN_RUNTIME=${1:-}
        mkdir -m 0711 "$PODMAN_DIR"
        mkdir "$PODMAN_HOOKS"
        PODMAN_RUN=$(mktemp -d /run/podman.XXXXXX) # Podman takes no more than 50 characters
        # limits that a root without CAP_SYS_RESOURCE can set; no lock in /dev/shm, no log outside
        cat >"$CONTAINERS_CONF" <<'END'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
lock_type = "file"
events_logger = "none"
cgroup_manager = "cgroupfs"
END
        make_rootfs "$BATS_TEST_TMPDIR/root/rootfs" 100000
        ROOTFS_DIR=$BATS_TEST_TMPDIR/root/rootfs
        chmod 0711 "$BATS_TEST_TMPDIR/root"
}

podman_teardown() {
        local id ids directory
        if [[ -n ${PODMAN_RUNTIME:-} ]]; then
                mapfile -t ids < <(podman ps --all --quiet --no-trunc 2>/dev/null </dev/null 3>&-)
                podman_quietly rm --all --force --time 0
                # What Podman makes in every control group hierarchy and leaves; libpod_parent itself, and the others in it, may be another run's.
                for id in "${ids[@]}"; do
                        while read -r directory; do
                                rmdir "$directory" 2>/dev/null || :
                        done < <(find /sys/fs/cgroup -depth -path "*/libpod_parent/*$id*" -type d 2>/dev/null)
                done
        fi
        if [[ -n ${PODMAN_RUN:-} ]]; then
                findmnt --noheadings --list --output TARGET | { grep -F "$PODMAN_RUN/" || :; } | tac | xargs -r umount -l
                rm -rf "$PODMAN_RUN"
        fi
}

# podman ARG...: everything private. crun 1.8.1 wants nothing but cgroup2 on /sys/fs/cgroup, and no Podman has another runtime's containers.
podman() {
        local command=(podman --root "$PODMAN_DIR/root" --runroot "$PODMAN_RUN" --tmpdir "$PODMAN_DIR/tmp" --storage-driver vfs --runtime "$PODMAN_RUNTIME"
                --hooks-dir "$PODMAN_HOOKS" "$@")
        bed_command="${command[*]}"
        if [[ $PODMAN_RUNTIME == crun && $(stat --file-system --format %T /sys/fs/cgroup) != cgroup2fs ]]; then
                unshare --mount sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"' sh "${command[@]}"
        else
                command "${command[@]}"
        fi
}

podman_quietly() {
        podman "$@" >/dev/null 2>&1 </dev/null 3>&- || :
}

# podman_run ARG... : sets status, output, stderr.
podman_run() {
        local arguments=(run --network none --uidmap 0:100000:65536 --gidmap 0:100000:65536)
        [[ $PODMAN_RUNTIME == crun ]] && arguments+=(--cgroups=disabled)
        status=0
        podman "${arguments[@]}" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" </dev/null 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/stdout" || :
        IFS= read -r -d '' stderr <"$BATS_TEST_TMPDIR/stderr" || :
}

# said [FILE]: what a container wrote to its file /said, which is then gone. Podman may lose the output of a container that ends at once: it
# attaches to it, and may come too late.
said() {
        local file=${1:-$ROOTFS_DIR/said}
        cat "$file"
        rm "$file"
}

# podman_annotation MOUNTS [NAME]: as --annotation wants it, which reads a line of comma-separated values.
podman_annotation() {
        printf '"io.flexgraft.mounts%s=%s"' "${2:-}" "${1//\"/\"\"}"
}
