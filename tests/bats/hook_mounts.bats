#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-hook: the mounts that a container's annotations ask for are there before its first instruction.

load helpers
load hook_helpers
bats_require_minimum_version 1.5.0

setup() {
        hook_setup
}

teardown() {
        bed_teardown
}

# ---- bundles for real runtimes

# sees RUNTIME MOUNTS SCRIPT EXPECTED [BASE]: what the first instruction, SCRIPT, says in a container with these mounts.
sees() {
        make_bundle "$(annotation "$2")" "$3" "${5:-}"
        run_bundle "$1"
        is "$status" 0 "exit status" || return 1
        is "${output%$'\n'}" "$4" "what the first instruction saw" || return 1
        assert_bundle_is_gone "$1"
}

# ---- the first instruction sees them

sees_bind() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file; stat -c %u:%g /data /data/file; touch /data/made' $'text\n0:0\n0:0' "${2:-}"
        is "$(stat -c %u:%g "$SOURCE/made")" 0:0
}

@test "crun: the first instruction sees a bind, with right owners" {
        sees_bind crun
}

@test "runc: the first instruction sees a bind, with right owners" {
        sees_bind runc
}

@test "crun: the first instruction sees a bind, without a user namespace" {
        sees_bind crun 0
}

@test "runc: the first instruction sees a bind, without a user namespace" {
        sees_bind runc 0
}

sees_file() {
        echo text >"$SOURCE/file"
        SOURCE=$SOURCE/file
        sees "$1" "[$(bind_entry /etc/injected '"readOnly": true')]" 'cat /etc/injected; echo x 2>/dev/null >/etc/injected || echo read-only' $'text\nread-only'
}

@test "crun: the first instruction sees a file, read-only" {
        sees_file crun
}

@test "runc: the first instruction sees a file, read-only" {
        sees_file runc
}

sees_tmpfs() {
        sees "$1" '{"type": "tmpfs", "target": "/data", "size": "1m", "mode": "0750", "uid": 3}' \
                'stat -c "%u:%g %a" /data; df -k /data | awk "NR == 2 {print \$2}"' $'3:0 750\n1024'
}

@test "crun: the first instruction sees a tmpfs" {
        sees_tmpfs crun
}

@test "runc: the first instruction sees a tmpfs" {
        sees_tmpfs runc
}

sees_overlay() {
        local top=$BATS_TEST_TMPDIR/layers
        mkdir -p "$top"/{low,up/up,up/work}
        echo low >"$top/low/file"
        sees "$1" "[{\"type\": \"overlay\", \"target\": \"/data\", \"lower\": [\"$top/low\"], \"upper\": \"$top/up/up\", \"work\": \"$top/up/work\"}]" \
                'cat /data/file; stat -c %u:%g /data/file; echo more >/data/made; stat -c %u:%g /data/made' $'low\n0:0\n0:0'
        is "$(stat -c %u:%g "$top/up/up/made")" 0:0
}

@test "crun: the first instruction sees an overlay, and writes to it" {
        sees_overlay crun
}

@test "runc: the first instruction sees an overlay, and writes to it" {
        sees_overlay runc
}

sees_block() {
        make_device ext4
        node_snapshot
        sees "$1" "[{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/data\"}]" \
                'cat /data/file; stat -c %u:%g /data/file; touch /data/made && echo made' $'from the device\n0:0\nmade'
}

@test "crun: the first instruction sees a block device's filesystem" {
        sees_block crun
}

@test "runc: the first instruction sees a block device's filesystem" {
        sees_block runc
}

sees_raw() {
        make_device blank
        printf hello | dd of="$DEVICE" status=none
        node_snapshot
        # a runtime that has device control groups is told to close them, as every real one does
        [[ $1 == crun ]] || BUNDLE_LINUX='{"resources": {"devices": [{"allow": false, "access": "rwm"}]}}'
        sees "$1" "[{\"type\": \"block\", \"raw\": true, \"source\": \"$DEVICE\", \"target\": \"/disk\"}]" \
                'stat -c "%u:%g %a %F" /disk; head -c 5 /disk && echo && printf HELLO | dd of=/disk conv=notrunc,fsync 2>/dev/null && echo written' \
                $'0:0 600 block special file\nhello\nwritten'
        is "$(head -c 5 "$DEVICE")" HELLO
}

@test "crun: the first instruction reads and writes a raw device" {
        sees_raw crun
}

@test "runc: the first instruction reads and writes a raw device" {
        sees_raw runc
}

sees_other_container() {
        local other
        start_container "$1" 200000
        other=${CONTAINER_ID:?}
        in_container sh -c 'mkdir /share && echo text >/share/file && chown 7:8 /share/file'
        sees "$1" "[{\"type\": \"container-to-container\", \"from\": {\"container\": \"$other\", \"path\": \"/share\"}, \"to\": {\"path\": \"/data\"}}]" \
                'cat /data/file; stat -c %u:%g /data /data/file; touch /data/made' $'text\n0:0\n7:8'
        is "$(in_container stat -c %u:%g /share/made)" 0:0
}

@test "crun: the first instruction sees a directory of a running container, with right owners" {
        sees_other_container crun
}

@test "runc: the first instruction sees a directory of a running container, with right owners" {
        sees_other_container runc
}

# An entry of an OCI configuration's "mounts".
sees_oci_entry() {
        echo text >"$SOURCE/file"
        sees "$1" "[{\"destination\": \"/data\", \"type\": \"none\", \"source\": \"$SOURCE\", \"options\": [\"rbind\", \"ro\"]}]" \
                'cat /data/file; touch /data/made 2>/dev/null || echo read-only' $'text\nread-only'
}

@test "crun: the first instruction sees an entry of the OCI sort" {
        sees_oci_entry crun
}

@test "runc: the first instruction sees an entry of the OCI sort" {
        sees_oci_entry runc
}

sees_beneath_tmpfs() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /tmp/made/data), $(bind_entry /dev/data)]" 'cat /tmp/made/data/file /dev/data/file; stat -c %u:%g /tmp/made' $'text\ntext\n0:0'
        is "$(find "$BUNDLE/rootfs/tmp" "$BUNDLE/rootfs/dev" -mindepth 1)" '' "what was made in the directories below"
}

@test "crun: a target beneath a tmpfs of the configuration" {
        sees_beneath_tmpfs crun
}

@test "runc: a target beneath a tmpfs of the configuration" {
        sees_beneath_tmpfs runc
}

sees_missing() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /srv/made/for/it)]" 'cat /srv/made/for/it/file; stat -c %u:%g /srv /srv/made/for' $'text\n0:0\n0:0'
}

@test "crun: a missing target is made, and is the container's root's" {
        sees_missing crun
}

@test "runc: a missing target is made, and is the container's root's" {
        sees_missing runc
}

sees_read_only_root() {
        echo text >"$SOURCE/file"
        BUNDLE_ROOT='{"path": "rootfs", "readonly": true}'
        sees "$1" "[$(bind_entry /srv/data)]" 'cat /srv/data/file; touch /srv/data/made && echo made; touch /made 2>/dev/null || echo read-only' $'text\nmade\nread-only'
}

@test "crun: a missing target in a root that is read-only" {
        sees_read_only_root crun
}

@test "runc: a missing target in a root that is read-only" {
        sees_read_only_root runc
}

sees_root_path() {
        echo text >"$SOURCE/file"
        BUNDLE_ROOT="{\"path\": \"$2\"}"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file' text
}

@test "crun: a relative root.path with dots" {
        sees_root_path crun ./rootfs/.
}

@test "runc: a relative root.path with dots" {
        sees_root_path runc ./rootfs/.
}

sees_absolute_root() {
        local rootfs=$BATS_TEST_TMPDIR/elsewhere/rootfs
        make_rootfs "$rootfs" 100000
        sees_root_path "$1" "$rootfs"
}

@test "crun: an absolute root.path, not in the bundle" {
        sees_absolute_root crun
}

@test "runc: an absolute root.path, not in the bundle" {
        sees_absolute_root runc
}

sees_several() {
        make_bundle '{"io.flexgraft.mounts.b": "[{\"type\": \"tmpfs\", \"target\": \"/order-3\"}, {\"type\": \"tmpfs\", \"target\": \"/order-4\"}]",
                "io.flexgraft.mounts": "{\"type\": \"tmpfs\", \"target\": \"/order-1\"}", "io.flexgraft.mounts.a": "[{\"type\": \"tmpfs\", \"target\": \"/order-2\"}]",
                "io.flexgraft.mountsx": "not ours", "io.flexgraft": "nor this"}' 'awk "\$5 ~ /order/ {print \$5}" /proc/self/mountinfo'
        run_bundle "$1"
        is "$status" 0
        is "$output" $'/order-1\n/order-2\n/order-3\n/order-4\n'
        assert_bundle_is_gone "$1"
}

@test "crun: several annotations, in the order of their names" {
        sees_several crun
}

@test "runc: several annotations, in the order of their names" {
        sees_several runc
}

sees_nested() {
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data/inner), {\"type\": \"tmpfs\", \"target\": \"/data\"}]" 'cat /data/inner/file; grep -c " /data" /proc/self/mountinfo' $'text\n2'
}

@test "crun: a mount within a mount, whatever their order" {
        sees_nested crun
}

@test "runc: a mount within a mount, whatever their order" {
        sees_nested runc
}

sees_prestart() {
        BUNDLE_STAGES='["prestart", "poststop"]'
        sees_bind "$1"
}

@test "crun: prestart does the same as createRuntime" {
        sees_prestart crun
}

@test "runc: prestart does the same as createRuntime" {
        sees_prestart runc
}

sees_both_stages() {
        BUNDLE_STAGES='["prestart", "createRuntime", "poststop"]'
        echo text >"$SOURCE/file"
        sees "$1" "[$(bind_entry /data)]" 'cat /data/file; grep -c " /data " /proc/self/mountinfo' $'text\n1'
}

@test "crun: prestart and createRuntime together make one mount" {
        sees_both_stages crun
}

@test "runc: prestart and createRuntime together make one mount" {
        sees_both_stages runc
}
