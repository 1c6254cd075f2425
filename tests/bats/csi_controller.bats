#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Controller service of the CSI driver: volumes and snapshots, made by the volume tools over pools of images and of directories.

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
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
}

teardown() {
        csi_end
}

# directory_pool: the pool "dirs".
directory_pool() {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
}

# ---- CreateVolume

@test "a volume has its name as id, its size, and the node as topology" {
        make_volume data
        assert_field '.volume | [.volume_id, .capacity_bytes, .accessible_topology[0].segments["'"$TOPOLOGY_KEY"'"], .volume_context.type] | join(" ")' \
                "data 8388608 $NODE_ID loop"
        is "$(stat -c %s "$POOL/data.img")" 8388608
        listed '{"name": "data"}'
        assert_field '.volumes[0] | [.name, .targetType] | join(" ")' "data mount"
}

@test "a volume is made in the pool and with the parameters that the class names" {
        make_pool fast
        make_volume data '"parameters": {"pool": "fast", "preallocate": "false", "csi.storage.k8s.io/pvc/name": "claim",
                "csi.storage.k8s.io/provisioner": "x"}'
        (($(allocated "$POOL_DIR/data.img") < 8388608))
        listed '{"name": "data"}'
        assert_field '.volumes[0] | [.pool, .parameters.preallocate, .parameters["csi.storage.k8s.io/pvc/name"], (.parameters | length)] |
                map(tostring) | join(" ")' "fast false claim 2"
}

@test "a volume is made with a profile" {
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"')"
        make_volume data '"parameters": {"profile": "db"}'
        listed '{"name": "data"}'
        assert_field '.volumes[0] | [.pool, .profile, .fsType] | join(" ")' "fast db ext4"
}

@test "a volume is made with a profile for a claim that the provisioner names, and is that claim's" {
        local claim='"csi.storage.k8s.io/pv/name": "pvc-1", "csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pvc/name"'
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"')"
        make_volume pvc-1 "\"parameters\": {\"profile\": \"db\", $claim: \"data\"}"
        make_volume pvc-1 "\"parameters\": {\"profile\": \"db\", $claim: \"data\"}"
        csi CreateVolume "$(volume_request pvc-1 "\"parameters\": {\"profile\": \"db\", $claim: \"other\"}")"
        answers ALREADY_EXISTS
        csi CreateVolume "$(volume_request more "\"parameters\": {\"profile\": \"db\", $claim: \"data\", \"preallocate\": \"true\"}")"
        answers INVALID_ARGUMENT profile
}

@test "the filesystem of the capability is that of the volume" {
        CAPABILITY='{"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' make_volume data
        listed '{"name": "data"}'
        assert_field '.volumes[0].fsType' ext4
}

@test "a filesystem that cannot be created here, by the capability or the class, is INVALID_ARGUMENT, and so is a directory for a virtual machine" {
        directory_pool
        csi CreateVolume \
                "$(CAPABILITY='{"mount": {"fs_type": "ext5"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' volume_request data)"
        answers INVALID_ARGUMENT 'ext5 cannot be created here'
        csi CreateVolume "$(volume_request data '"parameters": {"fsType": "vfat"}')"
        answers INVALID_ARGUMENT '"fsType"' 'vfat cannot be created here'
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "dirs", "kataContainers": "true"}')"
        answers INVALID_ARGUMENT kataContainers 'virtual machine'
        is "$(provisioned)" '' records
}

@test "a block volume is one, and cannot be had as a mounted one" {
        CAPABILITY=$BLOCK_WRITER make_volume data
        listed '{"name": "data"}'
        assert_field '.volumes[0].targetType' block
        csi CreateVolume "$(volume_request data)"
        answers ALREADY_EXISTS 'another target type'
}

@test "a volume in a pool of directories is a directory, and cannot be a block volume" {
        directory_pool
        make_volume data '"parameters": {"pool": "dirs", "mode": "2770"}'
        is "$(stat -c '%a %F' "$BATS_TEST_TMPDIR/srv/dirs/data")" "2770 directory"
        assert_field '.volume.volume_context.type' directory
        CAPABILITY=$BLOCK_WRITER csi CreateVolume "$(CAPABILITY=$BLOCK_WRITER volume_request other '"parameters": {"pool": "dirs"}')"
        answers INVALID_ARGUMENT 'no block devices'
        with_id DeleteVolume data
        answers OK
        [[ ! -e $BATS_TEST_TMPDIR/srv/dirs/data ]]
}

@test "the same volume with other parameters, or in another pool, exists already" {
        make_pool fast
        make_volume data '"parameters": {"pool": "fast"}'
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "fast", "preallocate": "false"}')"
        answers ALREADY_EXISTS
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "default"}')"
        answers ALREADY_EXISTS
        make_volume data '"parameters": {"pool": "fast"}'
}

@test "a parameter that no pool has is named" {
        csi CreateVolume "$(volume_request data '"parameters": {"colour": "blue"}')"
        answers INVALID_ARGUMENT colour
        assert_no_volume
}

@test "no room, or a pool that this node lacks, is RESOURCE_EXHAUSTED, so that another node is tried" {
        make_pool_in_memory fast 16m
        SIZE=$((64 << 20)) csi CreateVolume "$(SIZE=$((64 << 20)) volume_request data '"parameters": {"pool": "fast"}')"
        answers RESOURCE_EXHAUSTED 'has room'
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "absent"}')"
        answers RESOURCE_EXHAUSTED 'no pool'
        is "$(provisioned)" '' records
}

@test "a volume whose pool is missing for a moment is ABORTED, so that no other node is tried" {
        local name
        for name in data 'a#b'; do
                make_volume "$name"
                mv "$POOL" "$POOL.away"
                csi CreateVolume "$(volume_request "$name")"
                answers ABORTED 'the volume is on this node'
                [[ ! -d $POOL ]] || rmdir "$POOL"
                mv "$POOL.away" "$POOL"
                csi CreateVolume "$(volume_request "$name")"
                answers OK
                with_id DeleteVolume "$VOLUME_ID"
                answers OK
        done
        assert_no_volume
}

@test "a size that cannot be is OUT_OF_RANGE, and nothing is made" {
        local range
        for range in '"required_bytes": 8192, "limit_bytes": 4096' '"required_bytes": -1' '"limit_bytes": -1' \
                '"required_bytes": 1000, "limit_bytes": 1000'; do
                csi CreateVolume "{\"name\": \"data\", \"capacity_range\": {$range}, \"volume_capabilities\": [$WRITER]}"
                answers OUT_OF_RANGE || { echo "$range"; return 1; }
        done
        assert_no_volume
}

@test "a limit alone is enough, and a volume has no more" {
        ok CreateVolume "{\"name\": \"data\", \"capacity_range\": {\"limit_bytes\": 4194304}, \"volume_capabilities\": [$WRITER]}"
        assert_field .volume.capacity_bytes 4194304
}

@test "a volume that is larger than the limit of a repeat exists already" {
        make_volume data
        csi CreateVolume "{\"name\": \"data\", \"capacity_range\": {\"limit_bytes\": 4194304}, \"volume_capabilities\": [$WRITER]}"
        answers ALREADY_EXISTS
}

@test "mount flags longer than what a pool takes are refused, and not cut" {
        local flags
        flags=$(printf '"rsize=1048576", %.0s' {1..30})
        csi CreateVolume "$(CAPABILITY="{\"mount\": {\"mount_flags\": [${flags%, }]}, \"access_mode\": {\"mode\": \"MULTI_NODE_MULTI_WRITER\"}}" \
                volume_request data '"parameters": {"server": "127.0.0.1", "share": "/exports"}')"
        answers INVALID_ARGUMENT mountOptions
}

@test "a capability with a volume_mount_group is refused, and not ignored" {
        csi CreateVolume "$(CAPABILITY='{"mount": {"volume_mount_group": "1000"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' volume_request data)"
        answers INVALID_ARGUMENT volume_mount_group
}

@test "writers on several nodes are refused, readers are not" {
        local mode
        for mode in MULTI_NODE_SINGLE_WRITER MULTI_NODE_MULTI_WRITER; do
                csi CreateVolume "$(CAPABILITY="{\"mount\": {}, \"access_mode\": {\"mode\": \"$mode\"}}" volume_request data)"
                answers INVALID_ARGUMENT 'on one node' || return 1
        done
        for mode in SINGLE_NODE_WRITER SINGLE_NODE_READER_ONLY MULTI_NODE_READER_ONLY SINGLE_NODE_SINGLE_WRITER SINGLE_NODE_MULTI_WRITER; do
                CAPABILITY="{\"mount\": {}, \"access_mode\": {\"mode\": \"$mode\"}}" make_volume data || return 1
        done
}

@test "a capability without a type, or with an unknown mode, is refused" {
        local capability
        for capability in '{"access_mode": {"mode": "SINGLE_NODE_WRITER"}}' '{"mount": {}}' '{"mount": {}, "access_mode": {"mode": 0}}' \
                '{"mount": {}, "access_mode": {"mode": 99}}' "$WRITER, $BLOCK_WRITER"; do
                csi CreateVolume "$(CAPABILITY=$capability volume_request data)"
                answers INVALID_ARGUMENT || { echo "$capability"; return 1; }
        done
        assert_no_volume
}

@test "a volume is made where the topology wants it, and nowhere else" {
        make_volume data '"accessibility_requirements": {"requisite": [{"segments": {"'"$TOPOLOGY_KEY"'": "elsewhere"}},
                {"segments": {"'"$TOPOLOGY_KEY"'": "'"$NODE_ID"'"}}]}'
        make_volume more '"accessibility_requirements": {"preferred": [{"segments": {"'"$TOPOLOGY_KEY"'": "'"$NODE_ID"'"}}]}'
        csi CreateVolume "$(volume_request other '"accessibility_requirements": {"requisite": [{"segments": {"'"$TOPOLOGY_KEY"'": "elsewhere"}}]}')"
        answers RESOURCE_EXHAUSTED 'another node'
        listed '{"name": "other"}'
        assert_field '.volumes | length' 0
}

@test "a volume may have any name" {
        local name names=()
        mapfile -d '' -t names < <(odd_names; printf '%s\0' $'tab\there' $'two\nlines' 'a#b#c#d#e')
        for name in "${names[@]}"; do
                make_volume "$name" || { echo "name: $name"; return 1; }
                is "$(images | wc -l)" 1 "images of $name" || return 1
                make_volume "$name" || return 1
                with_id ControllerGetVolume "$VOLUME_ID"
                answers OK || return 1
                with_id DeleteVolume "$VOLUME_ID"
                answers OK || return 1
                is "$(provisioned)" '' "records of $name" || return 1
        done
}

# ---- DeleteVolume, and what is one at a time

@test "a volume that is in use is not deleted" {
        make_volume data
        attach_loop "$POOL/data.img"
        with_id DeleteVolume data
        answers FAILED_PRECONDITION
        detach_loop
        with_id DeleteVolume data
        answers OK
        assert_no_volume
}

@test "a snapshot is not deleted as a volume, nor a volume as a snapshot" {
        make_volume data
        make_snapshot kept data
        with_id DeleteVolume kept
        answers OK
        csi DeleteSnapshot '{"snapshot_id": "data"}'
        answers OK
        is "$(images)" $'data.img\nkept.img'
        csi CreateVolume "$(volume_request kept)"
        answers ALREADY_EXISTS
}

@test "of two calls that make one volume at a time, both end well or one is ABORTED" {
        local request line
        request=$(volume_request data)
        for line in 1 2 3 4 5 6 7 8; do
                echo "CreateVolume $request"
        done >"$BATS_TEST_TMPDIR/lines"
        "$CSI_CLIENT" --parallel "$CSI_SOCKET" - <"$BATS_TEST_TMPDIR/lines" >"$BATS_TEST_TMPDIR/answers"
        is "$(grep -cvE '^(OK|ABORTED) ' "$BATS_TEST_TMPDIR/answers" || :)" 0 'other answers'
        grep -q ^OK "$BATS_TEST_TMPDIR/answers"
        grep -q ^ABORTED "$BATS_TEST_TMPDIR/answers"
        is "$(images)" data.img
}

# ---- lists

@test "a list goes on after the volume that its token names was deleted" {
        local name
        for name in a b c d e; do
                make_volume "$name"
        done
        ok ListVolumes '{"max_entries": 2}'
        is "$(listed_ids)" 'a b'
        TOKEN=$(jq -r .next_token <<<"$json")
        with_id DeleteVolume b
        with_id DeleteVolume a
        with_id DeleteVolume d
        ok ListVolumes "{\"max_entries\": 2, \"starting_token\": \"$TOKEN\"}"
        is "$(listed_ids)" 'c e'
        assert_field .next_token ''
}

@test "a list tells how each volume is, and has no snapshots" {
        make_volume data
        make_volume lost
        make_snapshot kept data
        rm "$POOL/lost.img"
        ok ListVolumes
        is "$(listed_ids)" 'data lost'
        assert_field '.entries[0].status.volume_condition.abnormal' false
        assert_field '.entries[1].status.volume_condition.abnormal' true
        with_id ControllerGetVolume lost
        answers OK
        assert_field '.status.volume_condition.abnormal' true
}

@test "a volume that another program made is listed, too" {
        created '{"name": "mine", "size": "4m"}'
        ok ListVolumes
        assert_field '.entries[0].volume | [.volume_id, .capacity_bytes] | join(" ")' 'mine 4194304'
}

# ---- GetCapacity

@test "the capacity is that of the pool, with the largest volume" {
        make_pool_in_memory fast 64m
        measured '{"pool": "fast"}'
        local available largest
        available=$(json_field '.pools[0].available') largest=$(json_field '.pools[0].largest')
        ok GetCapacity '{"parameters": {"pool": "fast"}}'
        assert_field .available_capacity "$available"
        assert_field .maximum_volume_size.value "$largest"
}

@test "the capacity is told to external-provisioner, which says no access mode, and to one that says no access type either" {
        make_pool_in_memory fast 64m
        local capability
        for capability in '{"mount": {}, "access_mode": {"mode": "UNKNOWN"}}' '{"access_mode": {}}' '{}'; do
                ok GetCapacity "{\"parameters\": {\"pool\": \"fast\", \"profile\": \"\"}, \"volume_capabilities\": [$capability]}"
                [[ $(json_field .available_capacity) -gt 0 ]]
        done
        ok GetCapacity '{"parameters": {"pool": "", "profile": ""}, "volume_capabilities": [{"mount": {}, "access_mode": {}}]}'
        [[ $(json_field .available_capacity) -gt 0 ]]
}

@test "there is no capacity on another node, in a pool that is not there, or for what a pool cannot have" {
        local request
        directory_pool
        for request in '{"accessible_topology": {"segments": {"'"$TOPOLOGY_KEY"'": "elsewhere"}}}' '{"parameters": {"pool": "absent"}}' \
                "{\"parameters\": {\"pool\": \"dirs\"}, \"volume_capabilities\": [$BLOCK_WRITER]}" \
                '{"volume_capabilities": [{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}]}'; do
                ok GetCapacity "$request"
                assert_field .available_capacity 0 || return 1
        done
        ok GetCapacity "{\"parameters\": {\"pool\": \"dirs\"}, \"accessible_topology\": {\"segments\": {\"$TOPOLOGY_KEY\": \"$NODE_ID\"}}}"
        [[ $(json_field .available_capacity) != 0 ]]
}

@test "there is no capacity in a pool that can have no volume, whatever is free" {
        directory_pool
        ok GetCapacity '{"parameters": {"pool": "dirs"}}'
        [[ $(json_field .available_capacity) != 0 ]]
        sed -i 's/}/, "quota": "required"}/' "$FLEXGRAFT_POOLS/dirs.json"
        ok GetCapacity '{"parameters": {"pool": "dirs"}}'
        assert_field '[.available_capacity, .maximum_volume_size.value] | map(. // 0 | tostring) | join(" ")' "0 0"
}

@test "the capacity of a profile is that of its pools" {
        make_pool_in_memory fast 64m
        write_profiles "\"db\": $(profile_for fast '')"
        measured '{"profile": "db"}'
        local largest
        largest=$(jq '[.pools[].profiles[].largest] | max' <<<"$json")
        ok GetCapacity '{"parameters": {"profile": "db"}}'
        assert_field .maximum_volume_size.value "$largest"
}

# ---- ControllerExpandVolume, ControllerModifyVolume

@test "a volume grows, once, and never shrinks" {
        make_volume data
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        assert_field '[.capacity_bytes, .node_expansion_required] | map(tostring) | join(" ")' '16777216 false'
        is "$(stat -c %s "$POOL/data.img")" 16777216
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 8388608}'
        answers OK
        assert_field .capacity_bytes 16777216
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 4096, "limit_bytes": 8388608}'
        answers OUT_OF_RANGE
}

@test "a volume that rounding would make larger than the limit does not grow" {
        make_volume data
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 8388609, "limit_bytes": 8388610}'
        answers OUT_OF_RANGE 8392704
        is "$(stat -c %s "$POOL/data.img")" 8388608
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 8388609, "limit_bytes": 8392704}'
        answers OK
        assert_field .capacity_bytes 8392704
}

@test "a filesystem that a killed call left smaller than its device, whose size was rounded, grows when the call is repeated" {
        local mib=$((1 << 20))
        [[ -n $(type -P mkfs.xfs) ]] || skip "no mkfs.xfs" # ext4 grows only with CAP_SYS_RESOURCE
        make_pool_in_memory fast 500m
        SIZE=$((300 * mib)) make_volume data '"parameters": {"pool": "fast", "preallocate": "false"}'
        with_id ControllerExpandVolume data "\"capacity_range\": {\"required_bytes\": $((400 * mib + 1))}"
        answers OK
        mkfs.xfs -q -d size=300m "$POOL_DIR/data.img"
        with_id ControllerExpandVolume data "\"capacity_range\": {\"required_bytes\": $((400 * mib + 1))}"
        answers OK
        assert_field .capacity_bytes $((400 * mib + 4096))
        is "$(xfs_db -r -c 'sb 0' -c 'print dblocks' "$POOL_DIR/data.img")" "dblocks = $((400 * mib / 4096 + 1))"
}

@test "a volume that may be another node's grows there: NodeExpandVolume is asked for" {
        with_id ControllerExpandVolume elsewhere '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        assert_field '[.capacity_bytes, .node_expansion_required] | map(tostring) | join(" ")' '16777216 true'
        with_id ControllerExpandVolume elsewhere '"capacity_range": {"limit_bytes": 16777216}'
        answers NOT_FOUND
}

@test "a volume on a server grows on every node, and no node is asked to do more" {
        with_id ControllerExpandVolume '127.0.0.1#exports#data##' '"capacity_range": {"required_bytes": 16777216}'
        answers OK
        assert_field '[.capacity_bytes, .node_expansion_required // false] | map(tostring) | join(" ")' '16777216 false'
}

@test "a volume cannot grow beyond its pool" {
        make_pool_in_memory fast 32m
        make_volume data '"parameters": {"pool": "fast"}'
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 1073741824}'
        answers OUT_OF_RANGE
        is "$(stat -c %s "$POOL_DIR/data.img")" 8388608
}

@test "a volume whose pool is missing for a moment is UNAVAILABLE when it should grow, which the resizer tries again while a pod has it" {
        make_volume data
        mv "$POOL" "$POOL.away"
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 16777216}'
        answers UNAVAILABLE
        [[ ! -d $POOL ]] || rmdir "$POOL"
        mv "$POOL.away" "$POOL"
        with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 16777216}'
        answers OK
}

@test "a class whose cache is always must have idMappable always, too" {
        csi CreateVolume "$(volume_request data '"parameters": {"cache": "always"}')"
        answers INVALID_ARGUMENT cache idMappable
        csi CreateVolume "$(volume_request data '"parameters": {"cache": "sometimes", "idMappable": "always"}')"
        answers INVALID_ARGUMENT cache
        is "$(provisioned)" '' records
        make_volume data '"parameters": {"cache": "always", "idMappable": "always"}'
        assert_field '.volume.volume_context | .idMappable + .cache' alwaysalways
}

@test "what the resizer and the provisioner say of a claim among a VolumeAttributesClass's parameters is no change" {
        local claim='"csi.storage.k8s.io/pvc/name": "claim", "csi.storage.k8s.io/pv/name": "pv"'
        make_volume data "\"mutable_parameters\": {\"eraseAfter\": \"true\", $claim}"
        with_id ControllerModifyVolume data "\"mutable_parameters\": {\"eraseAfter\": \"false\", $claim}"
        answers OK
        is "$(jq .eraseAfter "$STATE_DIR/provisioned/data.json")" false
}

@test "eraseAfter of a VolumeAttributesClass is taken beside a profile, and what cannot be changed is refused" {
        local changes
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"')"
        make_volume data '"parameters": {"profile": "db"}, "mutable_parameters": {"eraseAfter": "false"}'
        make_volume data '"parameters": {"profile": "db"}, "mutable_parameters": {"eraseAfter": "false"}'
        is "$(jq .eraseAfter "$STATE_DIR/provisioned/data.json")" false
        for changes in '"eraseAfter": "maybe"' '"pool": "fast"' '"fsType": "xfs"'; do
                csi CreateVolume "$(volume_request other "\"mutable_parameters\": {$changes}")"
                answers INVALID_ARGUMENT mutable_parameters
        done
}

@test "eraseAfter and reclaimPolicy change while a volume is in use, and nothing else does" {
        make_volume data
        attach_loop "$POOL/data.img"
        with_id ControllerModifyVolume data '"mutable_parameters": {"eraseAfter": "false", "reclaimPolicy": "retain"}'
        answers OK
        listed '{"name": "data"}'
        assert_field '.volumes[0].reclaimPolicy' retain
        is "$(jq .eraseAfter "$STATE_DIR/provisioned/data.json")" false eraseAfter
        with_id ControllerModifyVolume data '"mutable_parameters": {"preallocate": "false"}'
        answers INVALID_ARGUMENT preallocate
        with_id ControllerModifyVolume data '"mutable_parameters": {"eraseAfter": "maybe"}'
        answers INVALID_ARGUMENT
        with_id ControllerModifyVolume absent '"mutable_parameters": {"eraseAfter": "false"}'
        answers NOT_FOUND
        detach_loop
        make_volume data                # still the same
        with_id DeleteVolume data
        answers OK
        is "$(images)" data.img
}

# ---- snapshots and copies

@test "a snapshot is taken once, and a volume is made of it with its content" {
        make_volume data
        printf remembered | dd of="$POOL/data.img" conv=notrunc status=none
        make_snapshot monday data
        assert_field '.snapshot | [.snapshot_id, .source_volume_id, .size_bytes, .ready_to_use] | map(tostring) | join(" ")' \
                'monday data 8388608 true'
        TAKEN=$(json_field .snapshot.creation_time)
        make_snapshot monday data
        is "$(json_field .snapshot.creation_time)" "$TAKEN"
        make_volume copy '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        assert_field '.volume.content_source.snapshot.snapshot_id' monday
        is "$(head -c 10 "$POOL/copy.img")" remembered
        csi DeleteSnapshot '{"snapshot_id": "monday"}'
        answers OK
        make_volume copy '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'     # it outlived its source
}

@test "a volume is made of another, as large or larger" {
        make_volume data
        printf remembered | dd of="$POOL/data.img" conv=notrunc status=none
        SIZE=16777216 make_volume copy '"volume_content_source": {"volume": {"volume_id": "data"}}'
        assert_field '.volume | [.capacity_bytes, .content_source.volume.volume_id] | join(" ")' '16777216 data'
        is "$(head -c 10 "$POOL/copy.img")" remembered
        csi CreateVolume "$(SIZE=4096 volume_request small '"volume_content_source": {"volume": {"volume_id": "data"}}')"
        answers OUT_OF_RANGE
        csi CreateVolume "$(CAPABILITY=$BLOCK_WRITER volume_request block '"volume_content_source": {"volume": {"volume_id": "data"}}')"
        answers INVALID_ARGUMENT 'no block volume'
        csi CreateVolume "$(volume_request copy)"
        answers ALREADY_EXISTS
        csi CreateVolume "$(volume_request data '"volume_content_source": {"volume": {"volume_id": "copy"}}')"
        answers ALREADY_EXISTS
        is "$(images)" $'copy.img\ndata.img'
}

@test "who asks for as much as the source of a copy was asked for gets a copy, though the pool gave the source more" {
        SIZE=1000000 make_volume data
        assert_field .volume.capacity_bytes 1003520
        for _ in 1 2; do
                SIZE=1000000 make_volume copy '"volume_content_source": {"volume": {"volume_id": "data"}}'
                assert_field .volume.capacity_bytes 1003520
        done
        make_snapshot monday data
        assert_field .snapshot.size_bytes 1000000 # the provisioner refuses claims of less
        SIZE=1000000 make_volume back '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        assert_field .volume.capacity_bytes 1003520
        csi CreateVolume "$(SIZE=999999 volume_request small '"volume_content_source": {"volume": {"volume_id": "data"}}')"
        answers OUT_OF_RANGE
        csi CreateVolume "$(SIZE=999999 volume_request small '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}')"
        answers OUT_OF_RANGE
}

@test "a volume that was asked to grow twice is copied with the size that was asked for, and not with what the pool made of it" {
        SIZE=1000000 make_volume data
        for _ in 1 2; do
                with_id ControllerExpandVolume data '"capacity_range": {"required_bytes": 2000000}'
                answers OK
                assert_field .capacity_bytes 2002944
        done
        make_snapshot monday data
        assert_field .snapshot.size_bytes 2000000
        SIZE=2000000 make_volume copy '"volume_content_source": {"volume": {"volume_id": "data"}}'
        assert_field .volume.capacity_bytes 2002944
        SIZE=2000000 make_volume back '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}'
        csi CreateVolume "$(SIZE=1999999 volume_request small '"volume_content_source": {"volume": {"volume_id": "data"}}')"
        answers OUT_OF_RANGE
}

@test "a snapshot whose taking was killed is deleted by DeleteSnapshot alone" {
        local last
        make_volume data
        make_snapshot zeroth data # the first one of a node writes more
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "first"}'
        assert_success
        last=$(awk '$3 == "renameat"' "$BATS_TEST_TMPDIR/calls" | wc -l) # of its record, that it is made
        at_syscall --at "renameat:$last" --kill "$FLEXGRAFT_BIN/volume-snapshot" '{"name": "data", "snapshot": "monday"}'
        is "$(jq -r .stage "$STATE_DIR/provisioned/monday.json")" creating stage
        helper volume-delete '{"name": "monday"}' # the tool alone does not: the volume's filesystem may be frozen
        assert_failure EBUSY
        csi DeleteSnapshot '{"snapshot_id": "monday"}'
        answers OK
        is "$(images)" $'data.img\nfirst.img\nzeroth.img'
        is "$(provisioned)" $'data.json\nfirst.json\nzeroth.json'
}

@test "CreateVolume takes no snapshot id as a volume, and no volume id as a snapshot" {
        make_volume data
        make_snapshot monday data
        csi CreateVolume "$(volume_request copy '"volume_content_source": {"volume": {"volume_id": "monday"}}')"
        answers NOT_FOUND
        csi CreateVolume "$(volume_request copy '"volume_content_source": {"snapshot": {"snapshot_id": "data"}}')"
        answers NOT_FOUND
}

# copy_of SOURCE [PARAMETERS [MEMBERS]]: CreateVolume of "copy".
copy_of() {
        csi CreateVolume "$(volume_request copy "\"volume_content_source\": {\"volume\": {\"volume_id\": \"$1\"}}, \"parameters\": {${2:-}}${3:+, $3}")"
}

@test "a copy is overwritten when it is deleted as its own class says, and not as its source's" {
        local was class mutable
        while read -r was class mutable wanted; do
                make_volume data "\"parameters\": {\"eraseAfter\": \"$was\"}"
                [[ $class == none ]] || class="\"eraseAfter\": \"$class\""
                copy_of data "${class/none/}" "\"mutable_parameters\": {$mutable}"
                answers OK
                is "$(jq .eraseAfter "$STATE_DIR/provisioned/copy.json")" "$wanted" "of $class $mutable, from $was" || return 1
                with_id DeleteVolume copy
                with_id DeleteVolume data
                answers OK
        done <<'END_OF_CLASSES'
false true "reclaimPolicy":"delete" true
true false "reclaimPolicy":"delete" false
true true "eraseAfter":"false" false
false none "reclaimPolicy":"delete" true
END_OF_CLASSES
        make_volume data
        copy_of data '"eraseAfter": "maybe"'
        answers INVALID_ARGUMENT eraseAfter
}

@test "a copy whose class asks for what its source has not is refused, and one that has it all is made" {
        local wrong
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"'), \"more\": $(profile_for fast)"
        make_volume data '"parameters": {"profile": "db"}'
        for wrong in '"profile": "more"=profile' '"profile": "db", "pool": "default"=profile' '"idMappable": "always"=idMappable' \
                '"cache": "always"=cache' '"kataContainers": "true"=kataContainers' '"fsType": "xfs"=fsType' '"colour": "blue"=colour'; do
                copy_of data "${wrong%=*}"
                answers INVALID_ARGUMENT "${wrong##*=}" || { echo "$wrong"; return 1; }
        done
        CAPABILITY='{"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' copy_of data
        answers INVALID_ARGUMENT fsType
        is "$(provisioned)" data.json records
        copy_of data '"profile": "db", "idMappable": "auto", "csi.storage.k8s.io/pvc/name": "claim"'
        answers OK
        copy_of data '"profile": "db", "idMappable": "always"'
        answers ALREADY_EXISTS parameters
}

@test "a class with preallocate restores snapshots of its own volumes, which are not preallocated" {
        make_volume data '"parameters": {"preallocate": "true"}'
        make_snapshot monday data
        make_volume copy '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}, "parameters": {"preallocate": "true"}'
        make_volume copy '"volume_content_source": {"snapshot": {"snapshot_id": "monday"}}, "parameters": {"preallocate": "true"}'
}

@test "a source that this node lacks is RESOURCE_EXHAUSTED where the scheduler chose the node, so that another is tried" {
        local source here='"accessibility_requirements": {"requisite": [{"segments": {"'"$TOPOLOGY_KEY"'": "'"$NODE_ID"'"}}]}'
        for source in '"snapshot": {"snapshot_id": "elsewhere"}' '"volume": {"volume_id": "elsewhere"}'; do
                csi CreateVolume "$(volume_request copy "\"volume_content_source\": {$source}, $here")"
                answers RESOURCE_EXHAUSTED 'on this node' || return 1
                csi CreateVolume "$(volume_request copy "\"volume_content_source\": {$source}")"
                answers NOT_FOUND 'on this node' || return 1
        done
        is "$(provisioned)" '' records
}

@test "snapshots are listed by their volume, and page by page" {
        local name
        make_volume data
        make_volume other
        for name in one three two; do
                make_snapshot "$name" data
        done
        make_snapshot four other
        ok ListSnapshots '{"source_volume_id": "data", "max_entries": 2}'
        assert_field '[.entries[].snapshot.snapshot_id] | join(" ")' 'one three'
        TOKEN=$(jq -r .next_token <<<"$json")
        csi DeleteSnapshot '{"snapshot_id": "three"}'
        ok ListSnapshots "{\"source_volume_id\": \"data\", \"starting_token\": \"$TOKEN\"}"
        assert_field '[.entries[].snapshot.snapshot_id] | join(" ")' two
        ok GetSnapshot '{"snapshot_id": "four"}'
        assert_field .snapshot.source_volume_id other
        csi GetSnapshot '{"snapshot_id": "data"}'
        answers NOT_FOUND
}

@test "pools of directories have no snapshots, and say so" {
        directory_pool
        make_volume data '"parameters": {"pool": "dirs"}'
        csi CreateSnapshot "$(snapshot_request monday data)"
        answers UNIMPLEMENTED 'no snapshots'
}

# ---- shares of an NFS server, whatever it answers

@test "a share that a class names is the pool, and one that cannot be is refused" {
        local shared='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' class
        csi CreateVolume "$(CAPABILITY=$shared volume_request data '"parameters": {"server": "127.0.0.1", "Share": "/exports"}')"
        [[ $code != OK && $code != INVALID_ARGUMENT ]]     # nothing serves NFS here; letters of any case
        for class in '"server": "127.0.0.1"' '"server": "127.0.0.1", "share": "relative"' \
                '"server": "127.0.0.1", "share": "/x", "onDelete": "burn"' '"server": "127.0.0.1", "share": "/x", "subDir": "../x"'; do
                csi CreateVolume "$(CAPABILITY=$shared volume_request data "\"parameters\": {$class}")"
                answers INVALID_ARGUMENT || { echo "$class"; return 1; }
        done
        csi CreateVolume "$(CAPABILITY=$BLOCK_WRITER volume_request data '"parameters": {"server": "127.0.0.1", "share": "/x"}')"
        answers INVALID_ARGUMENT 'no block device'
        is "$(provisioned)" '' records
}

@test "a directory of a share that is to be kept is kept, without a server" {
        with_id DeleteVolume '127.0.0.1#exports#data##retain'
        answers OK
        is "$(provisioned)" '' records
}

@test "an id of a share with an invalid volume name is unknown" {
        csi DeleteVolume '{"volume_id": "127.0.0.1#exports#data#a\u0001b#retain"}'
        answers OK
        csi ControllerGetVolume '{"volume_id": "127.0.0.1#exports#data#a\u0001b#retain"}'
        answers NOT_FOUND
}

# ---- secrets

@test "a secret is in no argument, no file, no log and no answer" {
        local secret=S3cr3tOfTheTest method
        csi_teardown
        export CSI_TRACE=$BATS_TEST_TMPDIR/trace
        HELPER_PREFIX=(strace -D -f -qq -s 4096 -e 'trace=execve,write,pwrite64,sendto,sendmsg' -o "$CSI_TRACE")
        csi_start
        HELPER_PREFIX=()
        make_volume data "\"secrets\": {\"token\": \"$secret\"}"
        csi CreateVolume "$(volume_request bad "\"secrets\": {\"token\": \"$secret\"}, \"parameters\": {\"colour\": \"blue\"}")"
        answers INVALID_ARGUMENT
        csi CreateSnapshot "{\"name\": \"monday\", \"source_volume_id\": \"data\", \"secrets\": {\"token\": \"$secret\"}}"
        csi ListSnapshots "{\"secrets\": {\"token\": \"$secret\"}}"
        csi GetSnapshot "{\"snapshot_id\": \"monday\", \"secrets\": {\"token\": \"$secret\"}}"
        csi DeleteSnapshot "{\"snapshot_id\": \"monday\", \"secrets\": {\"token\": \"$secret\"}}"
        for method in ControllerExpandVolume ValidateVolumeCapabilities ControllerModifyVolume DeleteVolume; do
                with_id "$method" data "\"secrets\": {\"token\": \"$secret\"}"
        done
        answers OK
        csi_teardown
        grep -q execve "$CSI_TRACE"
        is "$(grep -c "$secret" "$CSI_TRACE" || :)" 0 'calls with the secret'
        is "$(grep -rl "$secret" "$STATE_DIR" "$LOG" "$BATS_TEST_TMPDIR"/csi.{out,err} 2>/dev/null || :)" '' 'files with the secret'
}

@test "a profile whose pool does not answer is RESOURCE_EXHAUSTED, so that another node is tried, with the reason" {
        make_pool slow
        write_profiles "\"db\": $(profile_for slow)"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$POOL_DIR"
        csi CreateVolume "$(volume_request data '"parameters": {"profile": "db"}')"
        answers RESOURCE_EXHAUSTED 'does not answer'
        kill -KILL "$BACKGROUND_PID"
        is "$(provisioned)" '' records
}

@test "a profile that was removed from this node is as one that it never had: no capacity, and RESOURCE_EXHAUSTED, so that another node is tried" {
        make_pool fast
        write_profiles "\"db\": $(profile_for fast '"fs_type": "ext4"')"
        make_volume data '"parameters": {"profile": "db"}'
        write_profiles ''
        ok GetCapacity '{"parameters": {"profile": "db"}}'
        assert_field '[.available_capacity, .maximum_volume_size.value] | map(. // 0 | tostring) | join(" ")' "0 0"
        csi CreateVolume "$(volume_request more '"parameters": {"profile": "db"}')"
        answers RESOURCE_EXHAUSTED inactive
        CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' # the pools are asked first
        csi CreateVolume "$(volume_request more '"parameters": {"profile": "db"}')"
        answers RESOURCE_EXHAUSTED inactive
        csi CreateVolume "$(volume_request data '"parameters": {"profile": "db"}')"
        answers ABORTED 'the volume is on this node'
        CAPABILITY=$WRITER make_volume data '"parameters": {"profile": "db"}'
        is "$(images "$POOL_DIR")" data.img
}
