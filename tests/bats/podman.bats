#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook as Podman calls it: by the files of hooks.d, for containers with an annotation.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-hook mount-list
        command -v podman >/dev/null || skip "podman is not installed"
        export FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json CONTAINERS_CONF=$BATS_TEST_TMPDIR/containers.conf
        PODMAN_DIR=$BATS_TEST_TMPDIR/podman PODMAN_HOOKS=$BATS_TEST_TMPDIR/hooks.d PODMAN_RUNTIME=''
        mkdir -m 0711 "$PODMAN_DIR"
        mkdir "$PODMAN_HOOKS"
        PODMAN_RUN=$(mktemp -d /run/podman.XXXXXX) # Podman takes no more than 50 characters
        printf '{"annotations": {"kinds": ["bind", "tmpfs"], "sources": ["%s"]}}\n' "$SOURCE" >"$FLEXGRAFT_POLICY"
        # limits that a root without CAP_SYS_RESOURCE can set; no lock in /dev/shm, no log outside
        cat >"$CONTAINERS_CONF" <<'END'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
lock_type = "file"
events_logger = "none"
cgroup_manager = "cgroupfs"
END
        render_hooks
        echo text >"$SOURCE/file"
        make_rootfs "$BATS_TEST_TMPDIR/root/rootfs" 100000
        ROOTFS_DIR=$BATS_TEST_TMPDIR/root/rootfs
        chmod 0711 "$BATS_TEST_TMPDIR/root"
        node_snapshot
}

teardown() {
        local directory
        if [[ -n ${PODMAN_RUNTIME:-} ]]; then
                podman_quietly rm --all --force --time 0
                # what Podman makes in every control group hierarchy and leaves
                while read -r directory; do
                        rmdir "$directory" 2>/dev/null || :
                done < <(find /sys/fs/cgroup -depth -path '*/libpod_parent*' -type d 2>/dev/null)
        fi
        if [[ -n ${PODMAN_RUN:-} ]]; then
                findmnt --noheadings --list --output TARGET | { grep -F "$PODMAN_RUN/" || :; } | tac | xargs -r umount -l
                rm -rf "$PODMAN_RUN"
        fi
        bed_teardown
}

# The files that are installed, for the program under test, which needs to be told where its own files are.
render_hooks() {
        local file
        for file in "$FLEXGRAFT_REPO"/hooks.d/*.json.in; do
                sed "s,@sbindir@,$FLEXGRAFT_BIN,g" "$file" |
                        jq '.hook.env = ["FLEXGRAFT_CONFIG=" + env.FLEXGRAFT_CONFIG, "FLEXGRAFT_POLICY=" + env.FLEXGRAFT_POLICY]' >"$PODMAN_HOOKS/$(basename "$file" .in)"
        done
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

# annotation MOUNTS [NAME]: as --annotation wants it, which reads a line of comma-separated values.
annotation() {
        printf '"io.flexgraft.mounts%s=%s"' "${2:-}" "${1//\"/\"\"}"
}

bind_entry() {
        printf '{"type": "bind", "source": "%s", "target": "%s"}' "$SOURCE" "$1"
}

# Podman runs poststop itself, when conmon told it that the container has ended.
assert_records_go() {
        wait_until 20 assert_no_records >/dev/null || assert_no_records
}

sees_annotated() {
        PODMAN_RUNTIME=$1
        podman_run --rm --annotation "$(annotation "[$(bind_entry /made/data)]")" --annotation "$(annotation '{"type": "tmpfs", "target": "/scratch", "mode": "0700"}' .scratch)" \
                --rootfs "$ROOTFS_DIR" sh -c 'cat /made/data/file; stat -c %u:%g /made/data/file; touch /made/data/made; stat -c "%u:%g %a" /scratch'
        is "$status" 0 "exit status"
        is "$output" $'text\n0:0\n0:0 700\n' "what the first instruction saw"
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
        assert_records_go
}

@test "Podman with crun: the first instruction sees what the annotations ask for, and no record is left" {
        sees_annotated crun
}

@test "Podman with runc: the first instruction sees what the annotations ask for, and no record is left" {
        sees_annotated runc
}

# --read-only, and a tmpfs of Podman's own over the target's parent
sees_read_only() {
        PODMAN_RUNTIME=$1
        podman_run --rm --read-only --tmpfs /tmp --annotation "$(annotation "[$(bind_entry /srv/data), $(bind_entry /tmp/made/data)]")" \
                --rootfs "$ROOTFS_DIR" sh -c 'cat /srv/data/file /tmp/made/data/file; touch /x 2>/dev/null || echo read-only'
        is "$status" 0 "exit status"
        is "$output" $'text\ntext\nread-only\n' "what the first instruction saw"
        assert_records_go
}

@test "Podman with crun: a read-only root, and a target beneath a tmpfs of Podman's" {
        sees_read_only crun
}

@test "Podman with runc: a read-only root, and a target beneath a tmpfs of Podman's" {
        sees_read_only runc
}

starts_again() {
        local round
        PODMAN_RUNTIME=$1
        podman_run --name again --annotation "$(annotation "[$(bind_entry /data)]")" --rootfs "$ROOTFS_DIR" sh -c 'cat /data/file'
        is "$status" 0 "exit status"
        is "$output" $'text\n'
        for round in 1 2; do
                assert_records_go
                status=0
                output=$(podman start --attach again 2>&1 </dev/null 3>&-) || status=$?
                is "$status" 0 "exit status of start"
                is "$output" text "what the container saw when it was started again"
        done
        assert_records_go
}

@test "Podman with crun: a container that is started again sees its mount again" {
        starts_again crun
}

@test "Podman with runc: a container that is started again sees its mount again" {
        starts_again runc
}

is_stopped_and_removed() {
        PODMAN_RUNTIME=$1
        podman_run --detach --name web --annotation "$(annotation "[$(bind_entry /data)]")" --rootfs "$ROOTFS_DIR" sh -c 'exec sleep 1000'
        is "$status" 0 "exit status"
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].state' present
        assert_field '.mounts[0].container.id' "$(podman ps --all --no-trunc --format '{{.ID}}' </dev/null 3>&-)"
        podman_quietly rm --force --time 0 web
        assert_records_go
}

@test "Podman with crun: a running container is known by its id, and leaves no record when it is removed" {
        is_stopped_and_removed crun
}

@test "Podman with runc: a running container is known by its id, and leaves no record when it is removed" {
        is_stopped_and_removed runc
}

is_forbidden() {
        PODMAN_RUNTIME=$1
        printf '{"annotations": {"kinds": ["tmpfs"]}}\n' >"$FLEXGRAFT_POLICY"
        podman_run --rm --annotation "$(annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /made/data)]")" --rootfs "$ROOTFS_DIR" sh -c 'echo ran'
        is "$status" 126 "exit status"
        is "$output" '' "what the container said"
        # only runc passes on what the hook says
        [[ $1 == crun || $stderr == *'does not allow it'* ]] || { show_last; return 1; }
        assert_no_records
        [[ ! -e $ROOTFS_DIR/made ]]
}

@test "Podman with crun: what the policy forbids stops the container" {
        is_forbidden crun
}

@test "Podman with runc: what the policy forbids stops the container, with the reason" {
        is_forbidden runc
}

is_absent() {
        PODMAN_RUNTIME=$1
        rm "$FLEXGRAFT_POLICY"
        # whatever it were called with, this would stop the container
        for file in "$PODMAN_HOOKS"/*.json; do
                jq '.hook.path = "/bin/false"' "$file" >"$file.new"
                mv "$file.new" "$file"
        done
        podman_run --rm --annotation io.flexgraft.mountsx=1 --annotation com.example=io.flexgraft.mounts --rootfs "$ROOTFS_DIR" sh -c 'echo ran'
        is "$status" 0 "exit status"
        is "$output" $'ran\n'
        [[ ! -e $STATE_DIR ]]
        podman_run --rm --annotation 'io.flexgraft.mounts.x=[]' --rootfs "$ROOTFS_DIR" sh -c 'echo ran'
        is "$status" 126 "exit status with an annotation of ours"
}

@test "Podman with crun: without an annotation of ours the hook is not called" {
        is_absent crun
}

@test "Podman with runc: without an annotation of ours the hook is not called" {
        is_absent runc
}
