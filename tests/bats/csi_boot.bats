#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The node is cut from its power, and starts again: what pods had by the CSI driver, and what it was about to do, as kubelet then calls it. Each
# test starts virtual machines, one after the other, whose disk is the same; csi_kubelet.bats has a model of that in one machine.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs csi-driver volume-reconcile volume-list
        [[ ! -e /run/guest-run ]] || skip "this is a virtual machine already"
        has_python_modules grpc grpc_tools || skip "no python3-grpcio and python3-grpc-tools"
        STORE=$(mktemp -d "$FLEXGRAFT_REPO/build/csi.XXXXXX") # pieces of this file run side by side
        mkdir "$STORE/kept"
        truncate -s 258M "$STORE/disk"
        /usr/bin/python3 -m grpc_tools.protoc -I "$FLEXGRAFT_REPO/src/csi" --descriptor_set_out "$STORE/kept/descriptors" csi.proto registration.proto
        write_begin
}

teardown() {
        [[ -z ${STORE:-} ]] || rm -rf "$STORE"
        bed_teardown
}

# write_begin: what each machine's script begins with: the disk at /node, the driver, kubelet's calls, and what is there.
write_begin() {
        cat >"$STORE/kept/begin" <<'END_OF_BEGIN'
set -euo pipefail
export FLEXGRAFT_CONFIG=/node/config.json FLEXGRAFT_POOLS=/node/pools.d FLEXGRAFT_POLICY=/node/policy.json FLEXGRAFT_PROFILES=/node/profiles.json
until [[ -b /dev/pmem0 ]]; do sleep 0.1; done
mkdir /node
if [[ ! -e $KEPT/boot_id ]]; then
        mkfs.ext4 -q /dev/pmem0
        mount /dev/pmem0 /node
        mkdir -p /node/pools.d /node/kubelet/staging/{data,raw} /node/kubelet/pods/{data,raw,inline}
        echo '{"stateDir": "/node/state", "nodeName": "node", "log": "/node/log"}' >/node/config.json
        sync
else
        mount /dev/pmem0 /node
        [[ $(<"$KEPT/boot_id") == "$(</proc/sys/kernel/random/boot_id)" ]] || echo "another boot"
fi
cp /proc/sys/kernel/random/boot_id "$KEPT/boot_id"

start_driver() {
        "$FLEXGRAFT_BIN/csi-driver" --endpoint /run/csi.sock --node node >/run/csi.out 2>/run/csi.err &
        until [[ -S /run/csi.sock ]]; do sleep 0.1; done
        coproc CLIENT { exec "$CLIENT_PROGRAM" --deadline 120 --descriptors "$KEPT/descriptors" /run/csi.sock - 2>/run/client.err; }
}

# call METHOD MEMBERS: it succeeds.
call() {
        local answer=NONE
        printf '%s {%s}\n' "$1" "${2//$'\n'/ }" >&"${CLIENT[1]}"
        IFS= read -r -t 150 answer <&"${CLIENT[0]}" || :
        [[ $answer == OK* ]] || { echo "$1 $2: $answer" && cat /run/csi.err /run/client.err /node/log && exit 1; }
}

MOUNT='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' BLOCK='{"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
INLINE=csi-$(printf inline | sha256sum | cut -c1-64)
LOOP='"volume_context": {"type": "loop"}'
POD='"csi.storage.k8s.io/pod.name": "p", "csi.storage.k8s.io/pod.namespace": "shop", "csi.storage.k8s.io/pod.uid": "uid"'
pods=/node/kubelet/pods staging=/node/kubelet/staging

create() { # NAME CAPABILITY
        call CreateVolume "\"name\": \"$1\", \"capacity_range\": {\"required_bytes\": 8388608}, \"volume_capabilities\": [$2]"
}
stage() {
        mkdir -p "$staging/$1"
        call NodeStageVolume "\"volume_id\": \"$1\", \"staging_target_path\": \"$staging/$1\", \"volume_capability\": $2, $LOOP"
}
publish() {
        call NodePublishVolume "\"volume_id\": \"$1\", \"staging_target_path\": \"$staging/$1\", \"target_path\": \"$pods/$1/mount\",
                \"volume_capability\": $2, $LOOP"
}
publish_inline() {
        call NodePublishVolume "\"volume_id\": \"$INLINE\", \"target_path\": \"$pods/inline/mount\", \"volume_capability\": $MOUNT,
                \"volume_context\": {\"size\": \"8Mi\", $POD, \"csi.storage.k8s.io/ephemeral\": \"true\"}"
}
unpublish() { # NAME [ID]
        call NodeUnpublishVolume "\"volume_id\": \"${2:-$1}\", \"target_path\": \"$pods/$1/mount\""
        [[ ! -e $pods/$1/mount ]] || { echo "$pods/$1/mount is left" && exit 1; }
}
unstage() {
        call NodeUnstageVolume "\"volume_id\": \"$1\", \"staging_target_path\": \"$staging/$1\""
}
delete() {
        call DeleteVolume "\"volume_id\": \"$1\""
}
all_up() {
        stage data "$MOUNT" && publish data "$MOUNT"
        stage raw "$BLOCK" && publish raw "$BLOCK"
        publish_inline
}
all_down() {
        unpublish data && unstage data
        unpublish raw && unstage raw
        unpublish inline "$INLINE"
}
mark() {
        local name
        for name in data inline; do
                printf marked | dd of="$pods/$name/mount/file" conv=fsync status=none
                sync "$pods/$name/mount"
        done
        printf marked | dd of="$pods/raw/mount" conv=notrunc,fsync status=none
}
# shows what pods find.
show() {
        echo "data $(<"$pods/data/mount/file")"
        echo "raw $(head -c 6 "$pods/raw/mount")"
        echo "inline $(cat "$pods/inline/mount/file" 2>/dev/null || echo new)"
}
# shows what is left of all.
show_left() {
        echo "mounts $(grep -c ' /node/' /proc/self/mountinfo || :)"
        echo "loops $(losetup --list --noheadings | wc -l)"
        echo "images $(find /node/state/pools -name '*.img' -printf '%f ')"
        echo "records $(find /node/state/volumes /node/state/provisioned -name '*.json' -printf '%f ')"
}
power_cut() {
        echo b >/proc/sysrq-trigger
        sleep 1000
}
END_OF_BEGIN
}

# boot SCRIPT: a machine with the disk runs it. What is said is in `said`, its exit status in `status`.
boot() {
        printf '%s\n' '. "$KEPT/begin"' "$1" >"$STORE/kept/script"
        run "$FLEXGRAFT_REPO/scripts/guest-run" --timeout 300 --writable "$STORE/kept" --nvdimm "$STORE/disk" \
                env "KEPT=$STORE/kept" "FLEXGRAFT_BIN=$FLEXGRAFT_BIN" "CLIENT_PROGRAM=$FLEXGRAFT_REPO/tests/tools/csi.py" bash "$STORE/kept/script"
        said=$output
}

# boot_and_cut SCRIPT: the same, and its power is cut at the end, which guest-run takes for a failure of the machine.
boot_and_cut() {
        boot "$1"$'\necho cut >"$KEPT/cut"\npower_cut'
        [[ -e $STORE/kept/cut && $status == 125 ]] || { echo "$status: $said"; return 1; }
        rm "$STORE/kept/cut"
}

assert_said() { # LINE...
        local line
        is "$status" 0 "exit status of the machine, which said: $said" || return 1
        for line; do
                grep -qx -- "$line" <<<"$said" || { echo "it did not say: $line"; echo "$said"; return 1; }
        done
}

@test "after a power cut pods get their volumes again, with what they had written, inline ones new, and then nothing of them is left" {
        boot_and_cut '
                start_driver
                create data "$MOUNT" && create raw "$BLOCK"
                all_up
                mark
                call CreateSnapshot "\"name\": \"monday\", \"source_volume_id\": \"data\", \"parameters\": {\"freeze\": \"true\"}"'
        boot '
                "$FLEXGRAFT_BIN/volume-reconcile" "{}" | jq -c .problems
                start_driver
                all_up
                show
                call NodeGetVolumeStats "\"volume_id\": \"data\", \"volume_path\": \"$pods/data/mount\""
                all_down
                call DeleteSnapshot "\"snapshot_id\": \"monday\""
                delete data && delete raw
                show_left'
        assert_said 'another boot' '\[\]' 'data marked' 'raw marked' 'inline new' 'mounts 0' 'loops 0' 'images ' 'records '
}

@test "after a power cut volumes whose pods are gone are unpublished and unstaged, and nothing of them is left" {
        boot_and_cut '
                start_driver
                create data "$MOUNT" && create raw "$BLOCK"
                all_up'
        boot '
                start_driver
                all_down
                delete data && delete raw
                show_left'
        assert_said 'another boot' 'mounts 0' 'loops 0' 'images ' 'records '
}

@test "calls that a power cut ends are made again, and end right" {
        boot_and_cut '
                start_driver
                printf "CreateVolume {\"name\": \"raw\", \"capacity_range\": {\"required_bytes\": 8388608}, \"volume_capabilities\": [%s]}\n" "$BLOCK" >&"${CLIENT[1]}"
                until [[ -e /node/state/provisioned/raw.json ]]; do :; done'
        boot_and_cut '
                start_driver
                create raw "$BLOCK" && create data "$MOUNT"
                printf "NodeStageVolume {\"volume_id\": \"data\", \"staging_target_path\": \"%s\", \"volume_capability\": %s, %s}\n" "$staging/data" "$MOUNT" "$LOOP" \
                        >&"${CLIENT[1]}"
                until [[ -e /node/state/volumes/data.json ]]; do :; done'
        boot '
                start_driver
                create raw "$BLOCK" && create data "$MOUNT"
                all_up
                mark
                show
                all_down
                delete data && delete raw
                show_left'
        assert_said 'another boot' 'data marked' 'raw marked' 'inline marked' 'mounts 0' 'loops 0' 'images ' 'records '
}
