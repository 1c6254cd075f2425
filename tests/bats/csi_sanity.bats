#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the public conformance suite (csi-sanity of csi-test v5) asserts of the Controller service.

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
bats_require_minimum_version 1.5.0

setup() {
        csi_begin
}

teardown() {
        csi_end
}

# ---- what is missing is INVALID_ARGUMENT

@test "a request that lacks what it must have is INVALID_ARGUMENT" {
        local line
        make_volume data
        while read -r line; do
                csi "${line%% *}" "${line#* }"
                answers INVALID_ARGUMENT missing || { echo "$line"; return 1; }
        done <<END_OF_CALLS
CreateVolume {"volume_capabilities": [$WRITER]}
CreateVolume {"name": "x"}
CreateVolume {"name": "x", "volume_capabilities": [$WRITER], "volume_content_source": {"snapshot": {}}}
CreateVolume {"name": "x", "volume_capabilities": [$WRITER], "volume_content_source": {"volume": {}}}
DeleteVolume {}
ValidateVolumeCapabilities {"volume_capabilities": [$WRITER]}
ValidateVolumeCapabilities {"volume_id": "data"}
ControllerGetVolume {}
ControllerExpandVolume {"capacity_range": {"required_bytes": 1}}
ControllerExpandVolume {"volume_id": "data"}
ControllerModifyVolume {"mutable_parameters": {"eraseAfter": "false"}}
CreateSnapshot {"name": "x"}
CreateSnapshot {"source_volume_id": "data"}
DeleteSnapshot {}
GetSnapshot {}
END_OF_CALLS
        is "$(images)" data.img
}

# ---- volumes and snapshots that do not exist

@test "a volume or a snapshot that does not exist is NOT_FOUND" {
        local line
        while read -r line; do
                csi "${line%% *}" "${line#* }"
                answers NOT_FOUND || { echo "$line"; return 1; }
        done <<END_OF_CALLS
ValidateVolumeCapabilities {"volume_id": "absent", "volume_capabilities": [$WRITER]}
ControllerGetVolume {"volume_id": "absent"}
ControllerModifyVolume {"volume_id": "absent", "mutable_parameters": {"eraseAfter": "false"}}
CreateSnapshot {"name": "x", "source_volume_id": "absent"}
GetSnapshot {"snapshot_id": "absent"}
CreateVolume {"name": "x", "volume_capabilities": [$WRITER], "volume_content_source": {"snapshot": {"snapshot_id": "absent"}}}
CreateVolume {"name": "x", "volume_capabilities": [$WRITER], "volume_content_source": {"volume": {"volume_id": "absent"}}}
END_OF_CALLS
        assert_no_volume
}

@test "deleting a volume or a snapshot that does not exist succeeds, whatever the id" {
        local id
        while IFS= read -r -d '' id; do
                with_id DeleteVolume "$id"
                answers OK || { echo "id: $id"; return 1; }
        done < <(odd_names; printf '%0300d\0' 0)
        csi DeleteSnapshot '{"snapshot_id": "../../etc/passwd"}'
        answers OK
        csi DeleteVolume '{"volume_id": "#####"}'
        answers OK
}

# ---- the same again

@test "the same volume again is the same, and one of another size exists already" {
        make_volume data
        make_volume data
        assert_field .volume.volume_id data
        SIZE=16777216 csi CreateVolume "$(SIZE=16777216 volume_request data)"
        answers ALREADY_EXISTS
        is "$(images)" data.img
}

@test "a volume is deleted twice" {
        make_volume data
        with_id DeleteVolume data
        answers OK
        with_id DeleteVolume data
        answers OK
        assert_no_volume
}

@test "names of 128 bytes are taken, of any UTF-8" {
        local name
        printf -v name '%128s' ''
        for name in "${name// /a}" "${name:64}日本語"; do
                make_volume "$name" || return 1
                is "$VOLUME_ID" "$name" || return 1
        done
}

@test "a snapshot's name again with another source exists already" {
        make_volume one
        make_volume two
        make_snapshot monday one
        csi CreateSnapshot "$(snapshot_request monday two)"
        answers ALREADY_EXISTS
        csi DeleteSnapshot '{"snapshot_id": "monday"}'
        answers OK
        csi DeleteSnapshot '{"snapshot_id": "monday"}'
        answers OK
}

# ---- lists and capabilities

@test "a starting token that is none is ABORTED, and a negative number of entries INVALID_ARGUMENT" {
        csi ListVolumes '{"starting_token": "invalid-token"}'
        answers ABORTED
        csi ListSnapshots '{"starting_token": "invalid-token"}'
        answers ABORTED
        csi ListVolumes '{"max_entries": -1}'
        answers INVALID_ARGUMENT
}

@test "lists of snapshots and volumes are empty where none exists" {
        ok ListSnapshots '{"snapshot_id": "absent"}'
        assert_field '.entries | length' 0
        ok ListSnapshots '{"source_volume_id": "absent"}'
        assert_field '.entries | length' 0
        ok ListVolumes
        assert_field '.entries | length' 0
}

@test "a capability of the volume is confirmed, another one is explained" {
        make_volume data
        with_id ValidateVolumeCapabilities data "\"volume_capabilities\": [$WRITER]"
        answers OK
        assert_field '.confirmed.volume_capabilities | length' 1
        with_id ValidateVolumeCapabilities data "\"volume_capabilities\": [$BLOCK_WRITER]"
        answers OK
        assert_field '[.confirmed == null, .message] | map(tostring) | join(" ")' 'true it is no block volume'
}

@test "the capabilities are those of the calls that are there" {
        ok ControllerGetCapabilities
        assert_field '[.capabilities[].rpc.type] | sort | join(" ")' "CLONE_VOLUME CREATE_DELETE_SNAPSHOT CREATE_DELETE_VOLUME EXPAND_VOLUME \
GET_CAPACITY GET_SNAPSHOT GET_VOLUME LIST_SNAPSHOTS LIST_VOLUMES MODIFY_VOLUME SINGLE_NODE_MULTI_WRITER VOLUME_CONDITION"
        csi ControllerPublishVolume '{"volume_id": "data"}'
        answers UNIMPLEMENTED
        ok GetCapacity
        [[ $(json_field .available_capacity) != 0 ]]
}
