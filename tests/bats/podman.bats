#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook as Podman calls it: by the files of hooks.d, for containers with an annotation.

load helpers
load podman_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-hook mount-list
        podman_setup
        export FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json
        printf '{"annotations": {"kinds": ["bind", "tmpfs"], "sources": ["%s"]}}\n' "$SOURCE" >"$FLEXGRAFT_POLICY"
        render_hooks
        echo text >"$SOURCE/file"
        node_snapshot
}

teardown() {
        podman_teardown
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

bind_entry() {
        printf '{"type": "bind", "source": "%s", "target": "%s"}' "$SOURCE" "$1"
}

# Podman runs poststop itself, when conmon told it that the container has ended.
assert_records_go() {
        wait_until 20 assert_no_records >/dev/null || assert_no_records
}

sees_annotated() {
        PODMAN_RUNTIME=$1
        podman_run --rm --annotation "$(podman_annotation "[$(bind_entry /made/data)]")" --annotation "$(podman_annotation '{"type": "tmpfs", "target": "/scratch", "mode": "0700"}' .scratch)" \
                --rootfs "$ROOTFS_DIR" sh -c 'exec >/said; cat /made/data/file; stat -c %u:%g /made/data/file; touch /made/data/made; stat -c "%u:%g %a" /scratch'
        is "$status" 0 "exit status"
        is "$(said)" $'text\n0:0\n0:0 700' "what the first instruction saw"
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
        podman_run --rm --read-only --tmpfs /tmp --annotation "$(podman_annotation "[$(bind_entry /srv/data), $(bind_entry /tmp/made/data)]")" \
                --rootfs "$ROOTFS_DIR" sh -c 'exec >/srv/data/said; cat /srv/data/file /tmp/made/data/file; touch /x 2>/dev/null || echo read-only'
        is "$status" 0 "exit status"
        is "$(said "$SOURCE/said")" $'text\ntext\nread-only' "what the first instruction saw"
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
        podman_run --name again --annotation "$(podman_annotation "[$(bind_entry /data)]")" --rootfs "$ROOTFS_DIR" sh -c 'cat /data/file >/said'
        is "$status" 0 "exit status"
        is "$(said)" text
        for round in 1 2; do
                assert_records_go
                status=0
                output=$(podman start --attach again 2>&1 </dev/null 3>&-) || status=$?
                is "$status" 0 "exit status of start"
                is "$(said)" text "what the container saw when it was started again"
        done
        assert_records_go
}

@test "Podman with crun: a container that is started again sees its mount again" {
        starts_again crun
}

@test "Podman with runc: a container that is started again sees its mount again" {
        starts_again runc
}

# Without an annotation: the file of hooks.d is for every container.
is_restarted() {
        PODMAN_RUNTIME=$1
        podman_run --detach --name web --rootfs "$ROOTFS_DIR" sh -c 'cat /data/file >>/seen 2>&1; exec sleep 1000'
        is "$status" 0 "exit status"
        wait_until 10 test -s "$ROOTFS_DIR/seen"
        id=$(podman ps --all --no-trunc --format '{{.ID}}' </dev/null 3>&-)
        helper mount-bind "{\"container\": \"$id\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        rm "$ROOTFS_DIR/seen"
        podman_quietly restart --time 0 web
        wait_until 10 test -s "$ROOTFS_DIR/seen"
        is "$(<"$ROOTFS_DIR/seen")" text "what the first instruction saw"
        helper mount-list '{}'
        assert_success
        assert_field '[.mounts[] | .state + " " + (.wanted | tostring)] | join(",")' 'present true'
        helper mount-remove "{\"container\": \"$id\", \"target\": \"/data\"}"
        assert_success
        podman_quietly rm --force --time 0 web
        assert_records_go
}

@test "Podman with crun: a wanted mount is there again after podman restart" {
        is_restarted crun
}

@test "Podman with runc: a wanted mount is there again after podman restart" {
        is_restarted runc
}

is_stopped_and_removed() {
        PODMAN_RUNTIME=$1
        podman_run --detach --name web --annotation "$(podman_annotation "[$(bind_entry /data)]")" --rootfs "$ROOTFS_DIR" sh -c 'exec sleep 1000'
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
        podman_run --rm --annotation "$(podman_annotation "[{\"type\": \"tmpfs\", \"target\": \"/made/scratch\"}, $(bind_entry /made/data)]")" --rootfs "$ROOTFS_DIR" sh -c 'echo ran >/said'
        is "$status" 126 "exit status"
        [[ ! -e $ROOTFS_DIR/said ]]
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
        podman_run --rm --annotation io.flexgraft.mountsx=1 --annotation com.example=io.flexgraft.mounts --rootfs "$ROOTFS_DIR" sh -c 'echo ran >/said'
        is "$status" 0 "exit status"
        is "$(said)" ran
        [[ ! -e $STATE_DIR ]]
        podman_run --rm --annotation 'io.flexgraft.mounts.x=[' --rootfs "$ROOTFS_DIR" sh -c 'echo ran >/said'
        is "$status" 126 "exit status with an annotation of ours"
}

@test "Podman with crun: without an annotation of ours the hook does nothing" {
        is_absent crun
}

@test "Podman with runc: without an annotation of ours the hook does nothing" {
        is_absent runc
}

# Without an annotation, and named otherwise than the hook names it.
wanted_ends() {
        PODMAN_RUNTIME=$1
        configure podman "$PODMAN_DIR/root"
        podman_run --detach --name web --rootfs "$ROOTFS_DIR" sh -c 'exec sleep 1000'
        is "$status" 0 "exit status"
        helper mount-bind "{\"container\": \"web\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        helper mount-bind "{\"container\": \"web\", \"source\": \"$SOURCE\", \"target\": \"/once\"}"
        assert_success
        podman_quietly stop --time 0 web
        wait_until 20 no_mount_is_recorded
        helper mount-remove "{\"container\": \"web\", \"target\": \"/data\"}" # the wish
        assert_success
        podman_quietly rm --force --time 0 web
        assert_no_records
}

no_mount_is_recorded() {
        [[ -z $(compgen -G "$STATE_DIR/mounts/*.json") ]]
}

@test "Podman with crun: a container that ends leaves no record of wanted mounts, whatever it was called" {
        wanted_ends crun
}

@test "Podman with runc: a container that ends leaves no record of wanted mounts, whatever it was called" {
        wanted_ends runc
}

# The storage of podman --root; the OCI runtime keeps its own state where it always does.
is_found_by_name() {
        PODMAN_RUNTIME=$1
        podman_run --detach --name web --rootfs "$ROOTFS_DIR" sh -c 'exec sleep 1000'
        is "$status" 0 "exit status"
        local id pid key
        id=$(podman ps --no-trunc --format '{{.ID}}' </dev/null 3>&-)
        pid=$(podman inspect --format '{{.State.Pid}}' web </dev/null 3>&-)
        helper mount-bind "{\"container\": \"web\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_failure ENOENT
        configure podman "$PODMAN_DIR/root"
        for key in web "$id" "${id:0:12}"; do
                helper mount-bind "{\"container\": \"$key\", \"source\": \"$SOURCE\", \"target\": \"/data\"}"
                assert_success
                assert_field .mount.container.pid "$pid"
        done
        helper mount-remove "{\"container\": {\"id\": \"${id:0:12}\"}, \"target\": \"/data\"}"
        assert_success
        podman_quietly rm --force --time 0 web
        assert_records_go
}

@test "Podman with crun: a container in the storage that the configuration names is found by name and id" {
        is_found_by_name crun
}

@test "Podman with runc: a container in the storage that the configuration names is found by name and id" {
        is_found_by_name runc
}
