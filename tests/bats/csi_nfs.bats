#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the CSI driver makes of csi-driver-nfs's StorageClasses, PersistentVolumes and ids: what it asks its programs for. These are the test's,
# so that no server is needed; csi_kinds.bats has one.

# shellcheck disable=SC2119,SC2120 # arguments may be left out
load helpers
load driver_helpers
load csi_core_helpers
load csi_service_helpers
load csi_node_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        core_setup
        has_python_modules grpc_tools || skip "no python3-grpcio-tools"
        KUBELET=$BATS_TEST_TMPDIR/kubelet CSI_IN='' CSI_OUT='' CSI_CLIENT_OPTIONS=()
        export CSI_DESCRIPTORS=${BATS_FILE_TMPDIR:-$BATS_TEST_TMPDIR}/csi.descriptors
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs"}}'
        node_setup
        CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        core_start
}

teardown() {
        [[ -z ${CSI_IN:-} ]] || csi_hang_up
        core_teardown
        bed_teardown
}

# asked_anew: what programs were asked for before is forgotten.
asked_anew() {
        rm -f "$CORE/began" "$CORE/ended" "$CORE/input"
}

# programs_begun: their names, in their order.
programs_begun() {
        cut -d' ' -f1 "$CORE/began" | paste -sd' '
}

# requests FILTER: of all that were read from standard input, an array, by jq.
requests() {
        jq -rs "$1" "$CORE/input"
}

# ---- volumes that csi-driver-nfs made

@test "a volume that csi-driver-nfs made is deleted by its id, of any version's form" {
        local id wanted
        while read -r id wanted; do
                asked_anew
                with_id DeleteVolume "$id"
                answers OK || { echo "$id"; return 1; }
                is "$(programs_begun)" 'volume-list volume-create volume-delete' "programs for $id" || return 1
                is "$(requests '.[1] | [.parameters.server, .parameters.share, .id, .parameters.onDelete, .reclaimPolicy] | join(" ")')" "$wanted" "$id" || return 1
                is "$(requests '[.[].name] | unique | length')" 1 "names for $id" || return 1
        done <<'END_OF_IDS'
nas.example.org#export/k8s#pvc-1## nas.example.org /export/k8s pvc-1 delete delete
nas.example.org#export/k8s#team/data#pvc-1# nas.example.org /export/k8s team/data delete delete
nas.example.org#export/k8s#team/data#pvc-1#archive nas.example.org /export/k8s team/data archive delete
nas.example.org#export#team/data#pvc-1 nas.example.org /export team/data delete delete
nas.example.org#export#pvc-1 nas.example.org /export pvc-1 delete delete
10.0.0.1##pvc-1## 10.0.0.1 / pvc-1 delete delete
END_OF_IDS
}

@test "csi-driver-nfs's onDelete may have letters of any case, in an id and in a class" {
        with_id DeleteVolume 'nas.example.org#export#data#pvc-1#Retain'
        answers OK
        is "$(programs_begun)" volume-list
        asked_anew
        with_id DeleteVolume 'nas.example.org#export#data#pvc-1#ARCHIVE'
        answers OK
        is "$(requests '.[1].parameters.onDelete')" archive
        asked_anew
        csi CreateVolume "$(volume_request data '"parameters": {"server": "nas.example.org", "share": "/export", "ondelete": "Archive"}')"
        is "$(requests '.[0].parameters.onDelete')" archive
}

@test "a static volume without a directory of its own is not deleted from its server" {
        local id
        for id in 'nas.example.org/export##' 'nas.example.org#export#' '#####' 'nas.example.org/export/pvc-1'; do
                asked_anew
                with_id DeleteVolume "$id"
                answers OK || { echo "$id"; return 1; }
                is "$(programs_begun)" volume-delete "programs for $id" || return 1
        done
}

@test "a directory of a share that is gone is deleted, and one whose server does not answer is not" {
        make_program volume-create '{"status": "Failure", "message": "there is none", "error": {"errno": "ENOENT"}}' 1
        with_id DeleteVolume 'nas.example.org#export#pvc-1##'
        answers OK
        make_program volume-create '{"status": "Failure", "message": "the server does not answer", "error": {"errno": "ETIMEDOUT"}}' 1
        with_id DeleteVolume 'nas.example.org#export#pvc-1##'
        answers ABORTED "does not answer"
        is "$(programs_begun)" 'volume-list volume-create volume-list volume-create'
}

@test "a volume of a share that this node has is deleted without asking the server before" {
        local name
        for name in pvc-1 'nas.example.org#export#pvc-1##'; do
                make_program volume-list "{\"status\": \"Success\", \"volumes\": [{\"name\": \"$name\", \"id\": \"pvc-1\", \"type\": \"nfs\",
                        \"parameters\": {\"server\": \"nas.example.org\", \"share\": \"/export\"}}]}"
                asked_anew
                with_id DeleteVolume "nas.example.org#export#pvc-1#${name/*#*/}#"
                answers OK
                is "$(programs_begun)" 'volume-list volume-delete'
                is "$(requests '.[1].name')" "$name"
        done
}

@test "a volume on another share that has the name of an id is none of its" {
        make_program volume-list '{"status": "Success", "volumes": [{"name": "pvc-1", "id": "pvc-1", "type": "nfs",
                "parameters": {"server": "other.example.org", "share": "/export"}}]}'
        with_id DeleteVolume 'nas.example.org#export#pvc-1#pvc-1#'
        answers OK
        is "$(programs_begun)" volume-list
        with_id ControllerGetVolume 'nas.example.org#export#pvc-1#pvc-1#'
        answers NOT_FOUND
}

# ---- growth

@test "a volume on a server grows without a program that makes it grow, on the controller and on a node, whichever driver made it" {
        for ID in 'nas.example.org#export#team/data#pvc-1#retain' 'nas.example.org#export#pvc-1#' 'nas.example.org#export#pvc-1'; do
                asked_anew
                with_id ControllerExpandVolume "$ID" '"capacity_range": {"required_bytes": 16777216}'
                answers OK || { echo "$ID"; return 1; }
                assert_field '[.capacity_bytes, .node_expansion_required // false] | map(tostring) | join(" ")' '16777216 false'
                expand 16777216
                answers OK || { echo "$ID"; return 1; }
                assert_field .capacity_bytes 16777216
                is "$(programs_begun)" 'volume-list volume-list' "programs for $ID" || return 1
        done
}

@test "a volume that this node has on a server keeps the size that it has grown to" {
        make_program volume-list '{"status": "Success", "volumes": [{"name": "pvc-1", "id": "pvc-1", "type": "nfs", "size": 33554432,
                "parameters": {"server": "nas.example.org", "share": "/export"}}]}'
        ID='nas.example.org#export#pvc-1#pvc-1#' expand 16777216
        answers OK
        assert_field .capacity_bytes 33554432
        is "$(programs_begun)" volume-list
}
