#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the public conformance suite asserts: csi-sanity of csi-test v5 (pkg/sanity: identity.go, controller.go, node.go), one test for each of its
# assertions about what this driver offers. It does not offer ControllerPublishVolume and groups of snapshots, whose assertions the suite skips
# then. At the end of each part is what its document asks for beside them.

# shellcheck disable=SC2119,SC2120 # arguments may be left out
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
}

teardown() {
        csi_end
}

# answered CODE METHOD [JSON]: the call is answered with that code.
answered() {
        csi "$2" "${3:-}"
        answers "$1"
}

# long_name [TEXT]: 128 bytes, which end with the text.
long_name() {
        local name=${1:-} LC_ALL=C
        while ((${#name} < 128)); do
                name=n$name
        done
        echo "$name"
}

# snapshot_ids: of the last ListSnapshots.
snapshot_ids() {
        jq -r '[.entries[].snapshot.snapshot_id] | join(" ")' <<<"$json"
}

# whole_life TIMES: each call of a volume's life so many times: the staging directory is there, and so is the target's parent; nothing is left.
whole_life() {
        local i
        for ((i = 0; i < $1; i++)); do
                new_volume "\"accessibility_requirements\": {\"requisite\": [{\"segments\": {\"$TOPOLOGY_KEY\": \"$NODE_ID\"}}]}" || return 1
        done
        for ((i = 0; i < $1; i++)); do stage && answers OK || return 1; done
        for ((i = 0; i < $1; i++)); do publish && answers OK || return 1; done
        for ((i = 0; i < $1; i++)); do
                stats && answers OK || return 1
                assert_field '[.usage[].unit] | sort | join(" ")' 'BYTES INODES' || return 1
        done
        for ((i = 0; i < $1; i++)); do unpublish && answers OK || return 1; done
        for ((i = 0; i < $1; i++)); do unstage && answers OK || return 1; done
        all_gone || return 1
        for ((i = 0; i < $1; i++)); do with_id DeleteVolume "$ID" && answers OK || return 1; done
        assert_no_volume
}

# ---- Identity

@test "GetPluginCapabilities lists services and kinds of expansion" {
        ok GetPluginCapabilities
        assert_field '[.capabilities[] | .service.type // .volume_expansion.type] | join(" ")' \
                'CONTROLLER_SERVICE VOLUME_ACCESSIBILITY_CONSTRAINTS ONLINE'
}

@test "Probe says that the driver is ready, or FAILED_PRECONDITION with what the node lacks" {
        csi Probe
        if [[ $code == OK ]]; then
                assert_field .ready.value true
        else
                answers FAILED_PRECONDITION "this node lacks what flexgraft needs"
        fi
}

@test "GetPluginInfo has a name that is a domain of at most 63 characters, and a version" {
        ok GetPluginInfo
        [[ $(json_field .name) =~ ^[a-z][-.a-z0-9]{1,61}[a-z]$ ]] || is "$(json_field .name)" "a domain"
        [[ -n $(json_field .vendor_version) ]]
}

# ---- Controller: what it says of itself

@test "ControllerGetCapabilities has a capability for each call that is there, and no other" {
        ok ControllerGetCapabilities
        assert_field '[.capabilities[].rpc.type] | sort | join(" ")' "CLONE_VOLUME CREATE_DELETE_SNAPSHOT CREATE_DELETE_VOLUME EXPAND_VOLUME \
GET_CAPACITY GET_SNAPSHOT GET_VOLUME LIST_SNAPSHOTS LIST_VOLUMES MODIFY_VOLUME SINGLE_NODE_MULTI_WRITER VOLUME_CONDITION"
        answered UNIMPLEMENTED ControllerPublishVolume '{"volume_id": "data"}'
        answered UNIMPLEMENTED ControllerUnpublishVolume '{"volume_id": "data"}'
}

@test "GetCapacity without a class has the room of the default pool" {
        ok GetCapacity
        [[ $(json_field .available_capacity) != 0 ]]
}

# ---- ListVolumes

@test "ListVolumes without members lists each volume with its id" {
        make_volume data
        ok ListVolumes
        is "$(listed_ids)" data
}

@test "ListVolumes where there is no volume is empty" {
        ok ListVolumes
        is "$(listed_ids)" ''
}

@test "ListVolumes with an unknown starting token is ABORTED" {
        answered ABORTED ListVolumes '{"starting_token": "invalid-token"}'
}

@test "ListVolumes has a volume once it is made, and not when it is deleted" {
        make_volume data
        make_volume sanity
        ok ListVolumes
        is "$(listed_ids)" 'data sanity'
        with_id DeleteVolume sanity
        answers OK
        ok ListVolumes
        is "$(listed_ids)" data
}

@test "ListVolumes with a negative number of entries is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT ListVolumes '{"max_entries": -1}'
}

# ---- CreateVolume

@test "CreateVolume without a name is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateVolume "{\"volume_capabilities\": [$WRITER]}"
        assert_no_volume
}

@test "CreateVolume without volume capabilities is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateVolume '{"name": "data"}'
        assert_no_volume
}

@test "CreateVolume without a capacity makes a volume" {
        make_pool_in_memory fast 2g
        ok CreateVolume "{\"name\": \"data\", \"volume_capabilities\": [$WRITER], \"parameters\": {\"pool\": \"fast\", \"preallocate\": \"false\"}}"
        assert_field .volume.volume_id data
        (($(json_field .volume.capacity_bytes) > 0))
}

@test "CreateVolume with a capacity makes a volume of at least that" {
        make_volume data
        assert_field .volume.volume_id data
        (($(json_field .volume.capacity_bytes) >= 8388608))
}

@test "CreateVolume of a name that is there, with the same capacity, gives the same volume" {
        make_volume data
        make_volume data
        is "$VOLUME_ID $(images)" "data data.img"
}

@test "CreateVolume of a name that is there, with another capacity, is ALREADY_EXISTS" {
        make_volume data
        answered ALREADY_EXISTS CreateVolume "$(SIZE=16777216 volume_request data)"
        is "$(images)" data.img
}

@test "CreateVolume takes a name of 128 bytes" {
        local name
        name=$(long_name)
        make_volume "$name"
        is "$VOLUME_ID" "$name"
        with_id DeleteVolume "$name"
        answers OK
        assert_no_volume
}

@test "CreateVolume makes a volume of a snapshot" {
        make_volume data
        make_snapshot monday data
        make_volume copy '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        assert_field .volume.content_source.snapshot.snapshot_id monday
}

@test "CreateVolume of a snapshot that does not exist is NOT_FOUND" {
        answered NOT_FOUND CreateVolume "$(volume_request data '"volume_content_source": {"snapshot": {"snapshot_id": "non-existing-snapshot-id"}}')"
        assert_no_volume
}

@test "CreateVolume makes a volume of another volume" {
        make_volume data
        make_volume copy '"volume_content_source": {"volume": {"volume_id": "data"}}'
        assert_field .volume.content_source.volume.volume_id data
}

@test "CreateVolume of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND CreateVolume "$(volume_request data '"volume_content_source": {"volume": {"volume_id": "absent"}}')"
        assert_no_volume
}

@test "CreateVolume of a snapshot without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateVolume "$(volume_request data '"volume_content_source": {"snapshot": {}}')"
        assert_no_volume
}

@test "CreateVolume of a volume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateVolume "$(volume_request data '"volume_content_source": {"volume": {}}')"
        assert_no_volume
}

@test "CreateVolume takes a name of 128 bytes of UTF-8" {
        local name
        name=$(long_name 'ü日本語')
        make_volume "$name"
        is "$VOLUME_ID" "$name"
        ok ListVolumes
        is "$(listed_ids)" "$name"
        with_id DeleteVolume "$name"
        answers OK
        assert_no_volume
}

# ---- DeleteVolume

@test "DeleteVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT DeleteVolume
}

@test "DeleteVolume of an id that no volume has is OK" {
        answered OK DeleteVolume '{"volume_id": "reallyfakevolumeid"}'
}

@test "DeleteVolume deletes a volume, and again is OK" {
        make_volume data
        answered OK DeleteVolume '{"volume_id": "data"}'
        answered OK DeleteVolume '{"volume_id": "data"}'
        assert_no_volume
}

@test "DeleteVolume of a malformed id is OK" {
        local id
        while IFS= read -r -d '' id; do
                with_id DeleteVolume "$id"
                answers OK || { echo "id: $id"; return 1; }
        done < <(odd_names; printf '%0300d\0' 0; printf '#####\0')
}

# ---- ValidateVolumeCapabilities

@test "ValidateVolumeCapabilities without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT ValidateVolumeCapabilities "{\"volume_capabilities\": [$WRITER]}"
}

@test "ValidateVolumeCapabilities without capabilities is INVALID_ARGUMENT" {
        make_volume data
        answered INVALID_ARGUMENT ValidateVolumeCapabilities '{"volume_id": "data"}'
}

@test "ValidateVolumeCapabilities confirms the capability that a volume was made for" {
        make_volume data
        with_id ValidateVolumeCapabilities data "\"volume_capabilities\": [$WRITER]"
        answers OK
        assert_field '.confirmed.volume_capabilities | length' 1
}

@test "ValidateVolumeCapabilities of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND ValidateVolumeCapabilities "{\"volume_id\": \"absent\", \"volume_capabilities\": [$WRITER]}"
}

@test "ValidateVolumeCapabilities says why a volume has not a capability" {
        make_volume data
        with_id ValidateVolumeCapabilities data "\"volume_capabilities\": [$BLOCK_WRITER]"
        answers OK
        assert_field '[.confirmed == null, .message] | map(tostring) | join(" ")' 'true it is no block volume'
}

# ---- ControllerGetVolume, ControllerModifyVolume

@test "ControllerGetVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT ControllerGetVolume
}

@test "ControllerGetVolume of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND ControllerGetVolume '{"volume_id": "absent"}'
}

@test "ControllerModifyVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT ControllerModifyVolume '{"mutable_parameters": {"eraseAfter": "false"}}'
}

@test "ControllerModifyVolume of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND ControllerModifyVolume '{"volume_id": "absent", "mutable_parameters": {"eraseAfter": "false"}}'
}

# ---- ControllerExpandVolume

@test "ControllerExpandVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT ControllerExpandVolume '{"capacity_range": {"required_bytes": 16777216}}'
}

@test "ControllerExpandVolume without a capacity range is INVALID_ARGUMENT" {
        make_volume data
        answered INVALID_ARGUMENT ControllerExpandVolume '{"volume_id": "data"}'
        is "$(stat -c %s "$POOL/data.img")" 8388608
}

@test "ControllerExpandVolume gives a volume the capacity that it is asked for" {
        make_volume data
        with_id ControllerExpandVolume data "\"capacity_range\": {\"required_bytes\": 16777216}, \"volume_capability\": $WRITER"
        answers OK
        assert_field .capacity_bytes 16777216
}

# ---- ListSnapshots

@test "ListSnapshots without members lists each snapshot with its id, its volume and its time" {
        make_volume data
        make_snapshot monday data
        ok ListSnapshots
        assert_field '[.entries[].snapshot | .snapshot_id, .source_volume_id, (.creation_time.seconds | tonumber > 0)] | map(tostring) | join(" ")' 'monday data true'
}

@test "ListSnapshots of a snapshot's id lists that one" {
        local name
        for name in one two three; do
                make_volume "$name"
                make_snapshot "of-$name" "$name"
        done
        ok ListSnapshots '{"snapshot_id": "of-two"}'
        is "$(snapshot_ids)" of-two
}

@test "ListSnapshots of a snapshot's id that does not exist is empty" {
        ok ListSnapshots '{"snapshot_id": "none-exist-id"}'
        is "$(snapshot_ids)" ''
}

@test "ListSnapshots of a volume lists its snapshots alone" {
        local name
        for name in one two three; do
                make_volume "$name"
                make_snapshot "of-$name" "$name"
        done
        ok ListSnapshots '{"source_volume_id": "two"}'
        is "$(snapshot_ids)" of-two
}

@test "ListSnapshots of a volume that does not exist is empty" {
        ok ListSnapshots '{"source_volume_id": "absent"}'
        is "$(snapshot_ids)" ''
}

@test "ListSnapshots has a snapshot once it is taken, and not when it is deleted" {
        make_volume data
        make_snapshot monday data
        ok ListSnapshots
        is "$(snapshot_ids)" monday
        answered OK DeleteSnapshot '{"snapshot_id": "monday"}'
        ok ListSnapshots
        is "$(snapshot_ids)" ''
}

@test "ListSnapshots goes on at the token of a page, and lists all others at once" {
        local i
        make_volume data
        for i in 1 2 3 4 5; do
                make_snapshot "s$i" data
        done
        ok ListSnapshots '{"max_entries": 2}'
        is "$(snapshot_ids)" 's1 s2'
        ok ListSnapshots "{\"starting_token\": \"$(json_field .next_token)\"}"
        is "$(snapshot_ids)" 's3 s4 s5'
}

@test "ListSnapshots with an unknown starting token is ABORTED" {
        answered ABORTED ListSnapshots '{"starting_token": "invalid-token"}'
}

# ---- DeleteSnapshot, GetSnapshot

@test "DeleteSnapshot without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT DeleteSnapshot
}

@test "DeleteSnapshot of an id that no snapshot has is OK, a malformed one too" {
        answered OK DeleteSnapshot '{"snapshot_id": "reallyfakesnapshotid"}'
        answered OK DeleteSnapshot '{"snapshot_id": "../../etc/passwd"}'
}

@test "DeleteSnapshot deletes a snapshot, and again is OK" {
        make_volume data
        make_snapshot monday data
        answered OK DeleteSnapshot '{"snapshot_id": "monday"}'
        answered OK DeleteSnapshot '{"snapshot_id": "monday"}'
        is "$(images)" data.img
}

@test "GetSnapshot without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT GetSnapshot
}

@test "GetSnapshot of a snapshot that does not exist is NOT_FOUND" {
        answered NOT_FOUND GetSnapshot '{"snapshot_id": "absent"}'
}

# ---- CreateSnapshot

@test "CreateSnapshot without a name is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateSnapshot '{"source_volume_id": "testId"}'
}

@test "CreateSnapshot without a source is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT CreateSnapshot '{"name": "name"}'
}

@test "CreateSnapshot of a name that is there, with the same source, gives the same snapshot" {
        make_volume data
        make_snapshot monday data
        make_snapshot monday data
        is "$SNAPSHOT_ID $(images | paste -sd' ')" "monday data.img monday.img"
}

@test "CreateSnapshot of a name that is there, with another source, is ALREADY_EXISTS" {
        make_volume one
        make_volume two
        make_snapshot monday one
        answered ALREADY_EXISTS CreateSnapshot "$(snapshot_request monday two)"
}

@test "CreateSnapshot takes a name of 128 bytes, and again gives the same snapshot" {
        takes_snapshot_named "$(long_name)"
}

@test "CreateSnapshot takes a name of 128 bytes of UTF-8" {
        takes_snapshot_named "$(long_name 'ü日本語')"
}

# takes_snapshot_named NAME: taken twice, found, listed, and deleted.
takes_snapshot_named() {
        local text=''
        make_volume data
        make_snapshot "$1" data && make_snapshot "$1" data || return 1
        is "$SNAPSHOT_ID" "$1" || return 1
        put_member text snapshot_id "$1"
        ok GetSnapshot "{${text#,}}" && ok ListSnapshots "{${text#,}}" || return 1
        is "$(snapshot_ids)" "$1" || return 1
        make_volume copy "\"volume_content_source\": {\"snapshot\": {${text#,}}}" || return 1
        answered OK DeleteSnapshot "{${text#,}}" || return 1
        is "$(images | paste -sd' ')" "copy.img data.img"
}

@test "CreateSnapshot of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND CreateSnapshot '{"name": "monday", "source_volume_id": "absent"}'
}

# ---- Node: what it says of itself

@test "NodeGetCapabilities has capabilities of the specification alone" {
        ok NodeGetCapabilities
        assert_field '[.capabilities[].rpc.type] - ["STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME", "VOLUME_CONDITION",
                "SINGLE_NODE_MULTI_WRITER", "VOLUME_MOUNT_GROUP"] | length' 0
}

@test "NodeGetInfo has an id, a limit that is not negative, and the topology that constrains volumes" {
        ok NodeGetInfo
        assert_field '[.node_id, .max_volumes_per_node, (.accessible_topology.segments | length)] | map(tostring) | join(" ")' "$NODE_ID 0 1"
}

# ---- NodePublishVolume, NodeUnpublishVolume

@test "NodePublishVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodePublishVolume
}

@test "NodePublishVolume without a target path is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodePublishVolume '{"volume_id": "data"}'
}

@test "NodePublishVolume without a volume capability is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodePublishVolume "{\"volume_id\": \"data\", \"target_path\": \"$BATS_TEST_TMPDIR/target\"}"
}

@test "NodeUnpublishVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeUnpublishVolume
}

@test "NodeUnpublishVolume without a target path is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeUnpublishVolume '{"volume_id": "data"}'
}

@test "NodeUnpublishVolume removes the target path" {
        new_volume
        up
        [[ -d $(target) ]]
        unpublish
        answers OK
        [[ ! -e $(target) ]]
        unstage
        answers OK
}

# ---- NodeStageVolume, NodeUnstageVolume

@test "NodeStageVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeStageVolume "{\"staging_target_path\": \"$BATS_TEST_TMPDIR/staging\", \"volume_capability\": $WRITER,
                \"publish_context\": {\"device\": \"/dev/mock\"}}"
}

@test "NodeStageVolume without a staging path is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeStageVolume "{\"volume_id\": \"data\", \"volume_capability\": $WRITER, \"publish_context\": {\"device\": \"/dev/mock\"}}"
}

@test "NodeStageVolume without a volume capability is INVALID_ARGUMENT" {
        make_volume data
        answered INVALID_ARGUMENT NodeStageVolume "{\"volume_id\": \"data\", \"staging_target_path\": \"$BATS_TEST_TMPDIR/staging\",
                \"publish_context\": {\"device\": \"/dev/mock\"}}"
}

@test "NodeUnstageVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeUnstageVolume "{\"staging_target_path\": \"$BATS_TEST_TMPDIR/staging\"}"
}

@test "NodeUnstageVolume without a staging path is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeUnstageVolume '{"volume_id": "data"}'
}

# ---- NodeGetVolumeStats

@test "NodeGetVolumeStats without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeGetVolumeStats '{"volume_path": "some/path"}'
}

@test "NodeGetVolumeStats without a path is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeGetVolumeStats '{"volume_id": "data"}'
}

@test "NodeGetVolumeStats of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND NodeGetVolumeStats '{"volume_id": "absent", "volume_path": "some/path"}'
}

@test "NodeGetVolumeStats of a path that the volume is not on is NOT_FOUND" {
        new_volume
        up
        stats some/path
        answers NOT_FOUND
        stats "$BATS_TEST_TMPDIR"
        answers NOT_FOUND
        down
}

# ---- NodeExpandVolume

@test "NodeExpandVolume without an id is INVALID_ARGUMENT" {
        answered INVALID_ARGUMENT NodeExpandVolume "{\"volume_path\": \"$BATS_TEST_TMPDIR/target\", \"volume_capability\": $WRITER}"
}

@test "NodeExpandVolume without a path is INVALID_ARGUMENT" {
        make_volume data
        answered INVALID_ARGUMENT NodeExpandVolume "{\"volume_id\": \"data\", \"volume_capability\": $WRITER}"
}

@test "NodeExpandVolume of a volume that does not exist is NOT_FOUND" {
        answered NOT_FOUND NodeExpandVolume '{"volume_id": "absent", "volume_path": "some/path"}'
}

@test "NodeExpandVolume of a published volume works after ControllerExpandVolume" {
        CAPABILITY=$BLOCK_WRITER # a mounted ext4 grows only with CAP_SYS_RESOURCE, which the machine of a test may lack
        new_volume
        with_id ControllerExpandVolume "$ID" '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        up
        answered OK NodeExpandVolume "{\"volume_id\": \"$ID\", \"volume_path\": \"$(target)\", \"capacity_range\": {\"required_bytes\": 16777216}}"
        is "$(blockdev --getsize64 "$(target)")" 16777216
        down
}

# ---- a volume's whole life

@test "the whole life of a volume works" {
        whole_life 1
}

@test "the whole life of a volume works when each call is made three times" {
        whole_life 3
}
