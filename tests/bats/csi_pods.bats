#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The CSI driver against the author of a pod: who writes the attributes of inline volumes, and has containers that change what is mounted for
# them. Nothing of the node, or of others, may come out of that; and secrets of the cluster stay secret.

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
load csi_node_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        csi_begin
        node_setup
        INLINE=csi-$(printf x | sha256sum | cut -c1-64)
}

teardown() {
        csi_end
}

# nothing_inline: of the inline volume.
nothing_inline() {
        is "$(node_mounts_at "$(target)")" 0 mounts && assert_no_loops && is "$(images)" "${1:-}" images &&
                is "$(find "$STATE_DIR/volumes" -name '*.json' 2>/dev/null)" "" records
}

# refused_attributes CODES IMAGES: each line of standard input is an inline volume's attributes, which are answered with one of these codes; nothing
# is left of it, before unpublish and after.
refused_attributes() {
        ID=$INLINE
        while read -r CONTEXT; do
                publish_inline
                [[ " $1 " == *" $code "* ]] || { echo "$CONTEXT: $code $output"; return 1; }
                nothing_inline "$2" || { echo "$CONTEXT"; return 1; }
                unpublish
                answers OK || return 1
        done
}

@test "the attributes of an inline volume name nothing of the node" {
        mkdir "$BATS_TEST_TMPDIR/srv/secret"
        truncate -s 8M "$BATS_TEST_TMPDIR/srv/secret/disk.img"
        refused_attributes 'INVALID_ARGUMENT PERMISSION_DENIED NOT_FOUND' '' <<END
"type": "loop", "image": "../../../srv/secret/disk.img", "size": "8Mi"
"type": "block", "source": "/dev/loop0"
"type": "block", "device": "/dev/loop0"
"type": "lvm", "volumegroup": "vg", "volumeID": "lv"
"type": "pmem", "volumeID": "namespace0.0"
"type": "image", "source": "$BATS_TEST_TMPDIR/srv/secret/disk.img"
"type": "overlay", "lower": "/etc"
"type": "bind", "source": "/etc"
"type": "bind", "source": "/proc/1/root"
"type": "directory", "path": "/etc"
"type": "raw", "size": "8Mi"
"type": "../loop", "size": "8Mi"
"path": "/etc"
"source": "/etc"
"size": "8Mi", "device": "/dev/loop0"
"size": "8Mi", "pool": "../default"
"size": "8Mi", "pool": "/etc"
"size": "8Mi", "profile": "../profiles"
END
}

@test "the attributes of an inline volume name no volume of others" {
        new_volume
        make_snapshot monday data
        refused_attributes INVALID_ARGUMENT $'data.img\nmonday.img' <<'END'
"image": "data.img"
"size": "8Mi", "image": "data.img"
"type": "loop", "image": "data.img"
"volumeID": "data"
"type": "lvm", "volumeID": "data"
"size": "8Mi", "from": "monday"
"size": "8Mi", "name": "data"
"size": "8Mi", "kubernetes.io/pvOrVolumeName": "data"
"size": "8Mi", "id": "data.img"
"size": "8Mi", "match": "true"
END
}

@test "the attributes of an inline volume bring no set-user-id programs and no devices" {
        ID=$INLINE
        for CONTEXT in '"type": "tmpfs", "mode": "4777"' '"size": "8Mi"'; do
                publish_inline
                answers OK
                [[ $(findmnt --noheadings --output OPTIONS "$(target)") == *nosuid*nodev* ]]
                unpublish
                answers OK
        done
        refused_attributes INVALID_ARGUMENT '' <<'END'
"type": "tmpfs", "mode": "0777,suid"
"type": "tmpfs", "size": "1Mi,suid"
"type": "tmpfs", "inodes": "10,suid"
"type": "tmpfs", "size": "1Mi", "mountOptions": "suid,dev"
"size": "8Mi", "mountOptions": "suid,dev"
END
}

@test "sizes that cannot be, and texts that would be JSON, are refused" {
        refused_attributes 'INVALID_ARGUMENT RESOURCE_EXHAUSTED OUT_OF_RANGE' '' <<'END'
"size": "100Ti"
"size": "-1"
"size": "0"
"size": "99999999999999999999"
"size": "1e9"
"size": "8Mi\", \"type\": \"bind"
"size": "8Mi\u0000"
"size": "8Mi\nsecond"
"type": "tmpfs", "size": "100%"
END
}

@test "ten thousand attributes, and one of a mebibyte, are answered" {
        ID=$INLINE CONTEXT=$(for i in {1..10000}; do printf '"key%s": "%s", ' "$i" "$i"; done)'"size": "8Mi"'
        publish_inline
        answers INVALID_ARGUMENT 'attribute "key'
        CONTEXT="\"size\": \"8Mi\", \"note\": \"$(printf '%01000000d' 7)\""
        publish_inline
        answers INVALID_ARGUMENT 'attribute "note"'
        unpublish
        answers OK
        CONTEXT="\"size\": \"$(printf '%01000000d' 7)\""
        publish_inline
        [[ $code == INVALID_ARGUMENT || $code == RESOURCE_EXHAUSTED ]]
        nothing_inline
}

@test "names of pods, namespaces and accounts that no cluster has are kept as text, or refused" {
        local name
        ID=$INLINE CONTEXT='"size": "8Mi"'
        for name in '../../etc' 'a b' $'two\\nlines' '{}' "\$(reboot)" "$(printf '%0300d' 7)"; do
                mkdir -p "$(dirname "$(target)")"
                csi NodePublishVolume "$(node_request "\"target_path\": \"$(target)\""), \"volume_context\": {$CONTEXT, \"csi.storage.k8s.io/pod.name\": \"$name\",
                        \"csi.storage.k8s.io/pod.namespace\": \"$name\", \"csi.storage.k8s.io/pod.uid\": \"$name\",
                        \"csi.storage.k8s.io/serviceAccount.name\": \"$name\", \"csi.storage.k8s.io/ephemeral\": \"true\"}}"
                [[ $code == OK || $code == INVALID_ARGUMENT ]] || { echo "$name: $code $output"; return 1; }
                unpublish
                answers OK
                nothing_inline
        done
}

@test "an id that is an inline volume's of another pod does not give that volume" {
        ID=$INLINE CONTEXT='"size": "8Mi"'
        publish_inline pod-1
        answers OK
        printf private >"$(target pod-1)/file"
        publish_inline pod-2
        [[ $code != OK ]] || [[ ! -e $(target pod-2)/file ]] # kubelet derives the id from the pod: no cluster does this
        unpublish pod-2
        answers OK
        is "$(<"$(target pod-1)/file")" private
        unpublish pod-1
        answers OK
        nothing_inline
}

# ---- what containers do to directories that kubelet gives them

@test "unpublishing removes nothing behind a symbolic link on the way to the target, which only root can make" {
        local outside=$BATS_TEST_TMPDIR/srv/outside
        mkdir -p "$outside/mount" "$KUBELET/pods/pod-1/volumes/kubernetes.io~csi"
        printf kept >"$outside/mount/file"
        ID=$INLINE CONTEXT='"type": "tmpfs", "size": "1Mi"'
        ln -s "$outside" "$KUBELET/pods/pod-1/volumes/kubernetes.io~csi/$ID"
        publish_inline
        unpublish
        answers OK
        is "$(node_mounts_at "$outside/mount")" 0
        is "$(<"$outside/mount/file")" kept
        nothing_inline
}

@test "what a pod puts on its volume does not lead unpublish and stats elsewhere" {
        new_volume
        up
        ln -s / "$(target)/root"
        ln -s /etc/shadow "$(target)/.flexgraft"
        mkdir "$(target)/mount"
        stats
        answers OK
        stats "$(target)/root"
        answers NOT_FOUND
        expand $((8 << 20)) "$(target)/root"
        down
        all_gone
}

# ---- secrets

@test "while a program runs, no process has a secret in its arguments or its environment" {
        local secret=S3cr3tOfTheTest prefix
        new_volume
        csi_hang_up
        csi_stop
        rm -f "$CSI_SOCKET"
        prefix=("$FLEXGRAFT_TOOLS/at-syscall" --to-point --others --at move_mount
                --run "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ >'$BATS_TEST_TMPDIR/processes'; touch '$BATS_TEST_TMPDIR/seen'")
        SECRETS="{\"token\": \"$secret\", \"mountOptions\": \"password=$secret\"}"
        HELPER_PREFIX=("${prefix[@]}")
        csi_start
        HELPER_PREFIX=()
        stage
        answers OK
        [[ -e $BATS_TEST_TMPDIR/seen ]]
        grep -qa verbs/mountdevice "$BATS_TEST_TMPDIR/processes"
        is "$(grep -ca "$secret" "$BATS_TEST_TMPDIR/processes" || :)" 0 "processes with the secret"
        SECRETS="{\"token\": \"$secret\"}" ID=absent CONTEXT='' stage
        [[ $code != OK && $output != *"$secret"* ]]
        SECRETS=''
        down
        is "$(grep -rla "$secret" "$STATE_DIR" "$LOG" "$BATS_TEST_TMPDIR"/csi.{out,err} 2>/dev/null || :)" '' 'files with the secret'
}
