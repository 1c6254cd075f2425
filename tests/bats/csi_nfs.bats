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

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        bed_setup
        core_setup
        has_python_modules grpc_tools || skip "no python3-grpcio-tools"
        KUBELET=$BATS_TEST_TMPDIR/kubelet CSI_IN='' CSI_OUT='' CSI_CLIENT_OPTIONS=()
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "targetType": "mount"}}'
        node_setup
        CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        core_start
}

teardown() {
        [[ -z ${CSI_IN:-} ]] || csi_hang_up
        in_turn core_teardown bed_teardown
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

@test "a directory that is found when nobody waits for its deletion any more may be a new volume's: it is given up, and not deleted" {
        local deleter
        hold
        "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" DeleteVolume '{"volume_id": "nas.example.org#export#ns/db#pvc-1#"}' >/dev/null 2>&1 3>&- &
        deleter=$!
        wait_until 20 has_begun 1
        echo >"$CORE/gate"
        wait_until 20 has_begun 2 # it looks for the directory
        kill "$deleter"
        wait "$deleter" || :
        csi GetPluginInfo # the driver has seen that by then
        let_go
        wait_until 20 has_ended 3
        is "$(programs_begun)" 'volume-list volume-create volume-delete'
        is "$(requests '.[2].reclaimPolicy')" retain
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

@test "a volume of the same name on another share is not meant by the id" {
        make_program volume-list '{"status": "Success", "volumes": [{"name": "pvc-1", "id": "pvc-1", "type": "nfs",
                "parameters": {"server": "other.example.org", "share": "/export"}}]}'
        with_id DeleteVolume 'nas.example.org#export#pvc-1#pvc-1#'
        answers OK
        is "$(programs_begun)" volume-list
        with_id ControllerGetVolume 'nas.example.org#export#pvc-1#pvc-1#'
        answers NOT_FOUND
}

@test "an id whose directory has as many characters as there can be is one of a share" {
        local part directory
        printf -v part '%0126d' 0
        directory=$part/$part/a # 255 with the name
        make_program volume-list "{\"status\": \"Success\", \"volumes\": [{\"name\": \"data\", \"id\": \"$directory\", \"type\": \"nfs\",
                \"parameters\": {\"server\": \"nas.example.org\", \"share\": \"/export\"}}]}"
        is "${#directory}" 255
        with_id DeleteVolume "nas.example.org#export#$directory#data#"
        answers OK
        is "$(programs_begun)" 'volume-list volume-delete'
}

@test "a volume of a pool that is on another server by now is not said to be deleted" {
        make_program volume-list '{"status": "Success", "volumes": [{"name": "data", "id": "data", "type": "nfs",
                "path": "new.example.org:/export/data", "parameters": {}}]}'
        with_id DeleteVolume 'nas.example.org#export#data#data#'
        answers FAILED_PRECONDITION "another server"
        is "$(programs_begun)" volume-list
}

@test "reclaimPolicy of a volume on a server cannot be changed: other nodes delete it as its id says" {
        make_program volume-create '{"status": "Success"}'
        with_id ControllerModifyVolume 'nas.example.org#export#pvc-1##' '"mutable_parameters": {"reclaimPolicy": "retain"}'
        answers INVALID_ARGUMENT "part of its id"
        is "$(programs_begun)" ''
}

# pools_are [TYPE...]: volume-capacity answers with pools of these types, which the profile "web" selects, and one more that it does not.
pools_are() {
        local type pools='{"type": "loop", "profiles": []}'
        for type; do
                pools+=", {\"type\": \"$type\", \"profiles\": [{\"profile\": \"web\"}]}"
        done
        make_program volume-capacity "{\"status\": \"Success\", \"pools\": [$pools]}"
}

@test "writers on several nodes may have volumes of a class whose pools are all on servers" {
        pools_are nfs nfs
        csi CreateVolume "$(volume_request data '"parameters": {"profile": "web"}')"
        answers OK
        is "$(programs_begun)" 'volume-capacity volume-create'
        is "$(requests '.[0] | keys == ["profile"] and .profile == "web"')" true

        asked_anew
        make_program volume-capacity '{"status": "Success", "pools": [{"type": "nfs", "profiles": []}]}'
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "nas"}')"
        answers OK
        is "$(requests '[.[].pool] | join(" ")')" 'nas nas'
}

@test "writers on several nodes are refused where a pool of the class is on one node" {
        local types
        for types in 'nfs directory' lvm; do
                # shellcheck disable=SC2086 # words
                pools_are $types
                asked_anew
                csi CreateVolume "$(volume_request data '"parameters": {"profile": "web"}')"
                answers INVALID_ARGUMENT 'on one node' || return 1
                is "$(programs_begun)" volume-capacity || return 1
        done
}

@test "the provisioner tries another node for a volume of many writers whose pool this node lacks" {
        make_program volume-capacity '{"status": "Failure", "message": "no pool \"nas\"", "error": {"errno": "ENOENT"}}' 1
        csi CreateVolume "$(volume_request data '"parameters": {"pool": "nas"}')"
        answers RESOURCE_EXHAUSTED 'no pool'
}

@test "a volume on a server is made without a filesystem though the class says nfs" {
        local mode parameters
        pools_are nfs
        for parameters in '"server": "nas.example.org", "share": "/export"' '"profile": "web"'; do
                for mode in SINGLE_NODE_WRITER MULTI_NODE_MULTI_WRITER; do
                        asked_anew
                        csi CreateVolume "$(CAPABILITY="{\"mount\": {\"fs_type\": \"nfs\"}, \"access_mode\": {\"mode\": \"$mode\"}}" \
                                volume_request data "\"parameters\": {$parameters}")"
                        answers OK || return 1
                        is "$(requests '.[-1] | [.name, has("fsType")] | map(tostring) | join(" ")')" 'data false' "$mode $parameters" || return 1
                done
        done
}

@test "a class whose server, share or subDir has what separates the parts of an id is refused: the volume could not be deleted" {
        local wrong
        for wrong in '"server": "nas#1", "share": "/export"' '"server": "nas", "Share": "/ex#port"' '"server": "nas", "share": "/export", "subDir": "a#b"'; do
                csi CreateVolume "$(volume_request data "\"parameters\": {$wrong}")"
                answers INVALID_ARGUMENT '#' || { echo "$wrong"; return 1; }
        done
        [[ ! -e $CORE/began ]]
}

# made_in_pool PATH [MEMBERS]: CreateVolume of "data" in the pool "nas", whose volume has that path on its server.
made_in_pool() {
        make_program volume-create "{\"status\": \"Success\", \"volume\": {\"name\": \"data\", \"type\": \"nfs\", \"id\": \"team/data\", \"path\": \"$1\",
                \"targetType\": \"mount\", \"size\": 8388608, \"parameters\": {}${2:+, $2}}}"
        csi CreateVolume "$(CAPABILITY=$WRITER volume_request data '"parameters": {"pool": "nas"}')"
        answers OK
        VOLUME_ID=$(json_field .volume.volume_id)
}

@test "a volume of a pool on a server has an id by which any node deletes it, as the pool says" {
        local path members wanted
        while IFS='|' read -r path members wanted; do
                made_in_pool "$path" "$members"
                is "$VOLUME_ID" "$wanted" "$path $members" || return 1
        done <<'END_OF_VOLUMES'
nas.example.org:/export/k8s/team/data|"onDelete": "delete"|nas.example.org#export/k8s#team/data#data#
nas.example.org:/team/data|"onDelete": "archive"|nas.example.org##team/data#data#archive
[2001:db8::1]:/export/team/data|"onDelete": "retain"|[2001:db8::1]#export#team/data#data#retain
nas.example.org:/export/team/data|"onDelete": "delete", "reclaimPolicy": "retain"|nas.example.org#export#team/data#data#retain
nas.example.org:/ex#port/team/data|"onDelete": "delete"|data
END_OF_VOLUMES
        made_in_pool nas.example.org:/export/team/data '"onDelete": "archive"'
        asked_anew
        with_id DeleteVolume "$VOLUME_ID"
        answers OK
        is "$(programs_begun)" 'volume-list volume-create volume-delete'
        is "$(requests '.[1] | [.name, .parameters.server, .parameters.share, .id, .parameters.onDelete] | join(" ")')" \
                "data nas.example.org /export team/data archive"
}

@test "the mountOptions of a pool on a server are attributes of its volumes, and what their mount is asked for" {
        mount_verb
        made_in_pool nas.example.org:/export/team/data '"mountOptions": "vers=4.1,sec=krb5"'
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
        asked_anew
        publish
        answers OK
        is "$(option .mountOptions)" vers=4.1,sec=krb5
}

@test "a volume of a pool on a server that is missing at the moment is not said to be deleted" {
        make_program volume-list '{"status": "Success", "volumes": [{"name": "data", "id": "team/data", "type": "nfs", "parameters": {}}]}'
        make_program volume-delete '{"status": "Failure", "message": "there is no pool", "error": {"errno": "ENODEV"}}' 1
        with_id DeleteVolume 'nas.example.org#export#team/data#data#'
        answers FAILED_PRECONDITION "no pool"
        is "$(programs_begun)" 'volume-list volume-delete'
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

@test "a PersistentVolume that only a server can have grows at once, whatever its handle" {
        ID=nas.example.org/export
        for CAPABILITY in '{"mount": {"fs_type": "nfs"}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' \
                '{"mount": {"fs_type": "nfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'; do
                with_id ControllerExpandVolume "$ID" "\"capacity_range\": {\"required_bytes\": 16777216}, \"volume_capability\": $CAPABILITY"
                answers OK || return 1
                assert_field '[.capacity_bytes, .node_expansion_required // false] | map(tostring) | join(" ")' '16777216 false'
                expand 16777216
                answers OK || return 1
                assert_field .capacity_bytes 16777216
        done
        CAPABILITY=$WRITER expand 16777216
        answers FAILED_PRECONDITION
}

@test "a PersistentVolume of which nobody says that it is on a server grows where a pod has it, also if the resizer says ReadWriteMany of it" {
        local many='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
        ID=nas.example.org/export
        # ReadWriteOnce and ReadWriteMany are the latter for the resizer, and the former for kubelet
        with_id ControllerExpandVolume "$ID" "\"capacity_range\": {\"required_bytes\": 16777216}, \"volume_capability\": $many"
        answers OK
        assert_field '[.capacity_bytes, .node_expansion_required] | map(tostring) | join(" ")' '16777216 true'
        CAPABILITY=$many expand 16777216 # of a volume of many writers alone
        answers OK
        assert_field .capacity_bytes 16777216
}

@test "a PersistentVolume with any handle that a pod has from a server grows at once, also for one writer, and one with a filesystem of its own does not" {
        CAPABILITY=$WRITER
        for own in false true; do
                make_program volume-list "{\"status\": \"Success\", \"volumes\": [], \"mounted\": {\"name\": \"data\", \"path\": \"/t\", \"health\": \"unknown\", \"ownFilesystem\": $own}}"
                expand 16777216
                if [[ $own == true ]]; then
                        answers FAILED_PRECONDITION || return 1
                else
                        answers OK || return 1
                        assert_field .capacity_bytes 16777216
                fi
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

# ---- PersistentVolumes and inline volumes: what the verbs are asked for

# mount_verb: a program in the place of verbs/mount.
mount_verb() {
        make_program mount '{"status": "Success"}'
        mv "$CORE/bin/mount" "$CORE/bin/verbs/"
}

# option FILTER: of what the verb was asked for last: its last argument, or its standard input.
option() {
        local line
        line=$(grep '^mount ' "$CORE/began" | tail -n 1)
        if [[ $line == *' -' ]]; then
                jq -r "$1" "$CORE/input"
        else
                jq -r "$1" <<<"{${line#*\{}"
        fi
}

@test "a PersistentVolume of csi-driver-nfs is mounted by its attributes, whatever its handle" {
        local wanted
        mount_verb
        CONTEXT='"server": "nas.example.org", "share": "/export/k8s/", "subDir": "team/data", "mountPermissions": "0770", "onDelete": "retain",
                "csi.storage.k8s.io/pv/name": "pvc-1", "csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "team",
                "storage.kubernetes.io/csiProvisionerIdentity": "1-2-nfs.csi.k8s.io"'
        for ID in 'nas.example.org#export/k8s#team/data#pvc-1#retain' 'nas.example.org#export/k8s#team/data#pvc-1' 'nas.example.org#export/k8s#data' \
                'nas.example.org/export/k8s/data' 'nas.example.org/share##' web; do
                asked_anew
                publish
                answers OK || { echo "$ID"; return 1; }
                wanted="nfs nas.example.org /export/k8s/team/data"
                is "$(option '[.type, .server, .share] | join(" ")')" "$wanted" "$ID" || return 1
                is "$(option 'with_entries(select(.key | test("permissions|delete|^csi[.]|^storage"; "i"))) | length')" 0 "other keys of $ID" || return 1
        done
}

@test "the attributes of an NFS volume may have letters of any case, and subDir slashes around it or none" {
        local case
        mount_verb
        for case in '"Server": "nas.example.org", "SHARE": "/export"=/export' '"server": "nas.example.org", "share": "/export/", "subdir": "/data"=/export/data' \
                '"server": "nas.example.org", "share": "/", "subDir": "a/b"=/a/b' '"server": "nas.example.org", "share": "/export", "subDir": ""=/export'; do
                CONTEXT=${case%=*}
                asked_anew
                publish
                answers OK || { echo "$case"; return 1; }
                is "$(option '.share')" "${case#*=}" "$CONTEXT" || return 1
        done
}

@test "a subDir that climbs, or has a name of Kubernetes that nothing replaces, is INVALID_ARGUMENT" {
        mount_verb
        for CONTEXT in '"server": "nas.example.org", "share": "/export", "subDir": "../x"' \
                '"server": "nas.example.org", "share": "/export", "subDir": "${pvc.metadata.name}"'; do
                publish
                answers INVALID_ARGUMENT subDir || { echo "$CONTEXT"; return 1; }
        done
        [[ ! -e $CORE/began ]]
}

@test "the mountOptions of an NFS volume's attributes come after the mount flags, also of an inline volume" {
        mount_verb
        CONTEXT='"server": "nas.example.org", "share": "/export", "mountOptions": "nfsvers=4.1,sec=sys"'
        publish
        answers OK
        is "$(option .mountOptions)" nfsvers=4.1,sec=sys
        asked_anew
        CAPABILITY='{"mount": {"mount_flags": ["hard", "noatime"]}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' publish
        answers OK
        is "$(option .mountOptions)" hard,noatime,nfsvers=4.1,sec=sys
        asked_anew
        ID=csi-$(printf nfs | sha256sum | cut -c1-64) CAPABILITY=$WRITER publish_inline
        answers OK
        is "$(option '[.type, .mountOptions, .ephemeral // "none"] | join(" ")')" "nfs nfsvers=4.1,sec=sys none"
}

@test "mountOptions among the attributes of a volume of another kind are not heard" {
        mount_verb
        CAPABILITY=$WRITER CONTEXT='"type": "loop", "mountOptions": "nodelalloc"'
        publish
        answers OK
        is "$(option '.mountOptions // "none"')" none
}

@test "the mount flags of a profile, and that it only reads, are attributes of its volumes on a server" {
        mount_verb
        pools_are nfs
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "id": "data", "path": "nas.example.org:/export/data",
                "targetType": "mount", "size": 8388608, "parameters": {}, "profile": "web", "mountOptions": "vers=4.1",
                "mountFlags": ["noexec", "noatime"], "accessMode": "MULTI_NODE_READER_ONLY"}}'
        csi CreateVolume "$(volume_request data '"parameters": {"profile": "web"}')"
        answers OK
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
        asked_anew
        publish
        answers OK
        is "$(option .mountOptions)" vers=4.1,noexec,noatime,ro
}

@test "mountOptions among the parameters of a class are what pods mount with; its mount flags kubelet says itself" {
        mount_verb
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "id": "data", "path": "nas.example.org:/export/data",
                "targetType": "mount", "size": 8388608, "parameters": {"server": "nas.example.org", "share": "/export", "mountOptions": "port=2050"}}}'
        csi CreateVolume "$(volume_request data '"parameters": {"server": "nas.example.org", "share": "/export", "mountoptions": "port=2050"}')"
        answers OK
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
        asked_anew
        publish
        answers OK
        is "$(option .mountOptions)" port=2050
        csi CreateVolume "$(CAPABILITY='{"mount": {"mount_flags": ["port=2050"]}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' \
                volume_request data '"parameters": {"server": "nas.example.org", "share": "/export"}')"
        assert_field '.volume.volume_context | has("mountOptions")' false
}

@test "a PersistentVolume on a server that names a filesystem is published all the same" {
        mount_verb
        CONTEXT='"server": "nas.example.org", "share": "/export"'
        CAPABILITY='{"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' publish
        answers OK
        is "$(option .share)" /export
}

@test "a class with cache always has no volumes for writers on several nodes" {
        local parameters='"parameters": {"server": "nas.example.org", "share": "/export", "idMappable": "always", "cache": "always"}'
        csi CreateVolume "$(CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' volume_request data "$parameters")"
        answers INVALID_ARGUMENT cache
        [[ ! -e $CORE/began ]]
}

@test "a class whose profile has cache always has no volumes for writers on several nodes, and has them for those on one" {
        local always='"parameters": {"idMappable": "always", "cache": "always"}' class='"parameters": {"profile": "db"}'
        make_program volume-capacity "{\"status\": \"Success\", \"pools\": [{\"name\": \"nas\", \"type\": \"nfs\", \"profiles\": [{\"profile\": \"db\", $always}]}]}"
        csi CreateVolume "$(CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}' volume_request data "$class")"
        answers INVALID_ARGUMENT cache
        is "$(programs_begun)" volume-capacity
        csi CreateVolume "$(CAPABILITY='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_READER_ONLY"}}' volume_request data "$class")"
        answers OK
        csi CreateVolume "$(CAPABILITY=$WRITER volume_request data "$class")"
        answers OK
}

@test "idMappable and cache of a class are attributes of its volumes, and what their mount is asked for" {
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "id": "data", "path": "nas.example.org:/export/data", "targetType": "mount", "size": 8388608,
                "parameters": {"server": "nas.example.org", "share": "/export", "idMappable": "always", "cache": "always"}}}'
        mount_verb
        csi CreateVolume "$(CAPABILITY=$WRITER volume_request data '"parameters": {"server": "nas.example.org", "share": "/export", "idMappable": "always", "cache": "always"}')"
        answers OK
        is "$(requests '.[0].parameters | .idMappable + .cache')" alwaysalways
        assert_field '.volume.volume_context | [.server, .share, .subDir, .idMappable, .cache] | join(" ")' "nas.example.org /export data always always"
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
        publish
        answers OK
        is "$(option '[.type, .share, .idMappable, .cache] | join(" ")')" "nfs /export/data always always"
}

# many_publishes: one NodePublishVolume for each of 27 volumes, at one time, in the background; their answers in the file publishes. @ in
# CONTEXT is another server for each third of them.
many_publishes() {
        local i
        for i in {1..27}; do
                printf 'NodePublishVolume {"volume_id": "v%s", "staging_target_path": "/s", "target_path": "/t/%s", "volume_capability": %s, "volume_context": {%s}}\n' \
                        "$i" "$i" "$CAPABILITY" "${CONTEXT//@/$((i % 3))}"
        done >"$CORE/lines"
        "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - <"$CORE/lines" >"$CORE/publishes" 3>&- &
        PUBLISHES=$!
}

# have_read COUNT: so many programs have read their request. One is counted when it has begun, before it reads.
have_read() {
        (($(grep -o '"v[0-9]*"' "$CORE/input" | wc -l) >= $1))
}

# many_creates COUNT PARAMETERS OTHER: one CreateVolume for each of 16 volumes, at one time, of which COUNT are begun; one more, of a volume with
# the parameters OTHER, is begun beside them. @ in PARAMETERS is another one for each third of them.
many_creates() {
        local i creates other
        asked_anew
        hold
        for i in {1..16}; do
                echo "CreateVolume $(CAPABILITY=$WRITER volume_request "v$i" "\"parameters\": {${2//@/$((i % 3))}}")"
        done >"$CORE/lines"
        "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - <"$CORE/lines" >"$CORE/creates" 3>&- &
        creates=$!
        wait_until 20 has_begun "$1" # the others wait before what is asked for next
        "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" CreateVolume "$(CAPABILITY=$WRITER volume_request other "\"parameters\": {$3}")" >"$CORE/other" 3>&- &
        other=$!
        wait_until 20 has_begun $(($1 + 1))
        wait_until 20 grep -q '"other"' "$CORE/input"
        wait_until 20 have_read "$1"
        is "$(grep -o '"v[0-9]*"' "$CORE/input" | wc -l)" "$1" "programs that may wait for a server" || return 1
        let_go
        wait "$creates" "$other"
        is "$(cut -d' ' -f1 "$CORE/creates" | sort | uniq -c | tr -s ' ')" " 16 OK"
}

@test "volumes that are made on servers that do not answer leave places for others to be made, whatever names the server" {
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "targetType": "mount", "size": 8388608}}'
        many_creates 9 '"Server": "nas-@.example.org", "share": "/export"' ''
        many_creates 9 '"pool": "nas-@"' ''
        many_creates 9 '"profile": "web-@"' ''
}

@test "volumes that are made on a server that does not answer leave places for those of another one, whatever names the servers" {
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "nfs", "targetType": "mount", "size": 8388608}}'
        many_creates 3 '"Server": "nas.example.org", "share": "/export"' '"server": "other.example.org", "share": "/export"'
        # these may be of this node
        many_creates 6 '"pool": "nas"' '"pool": "other"'
        many_creates 6 '"profile": "web"' '"profile": "other"'
}

@test "volumes of dead servers that are deleted leave places for other calls that may wait, as those for capacity and for volumes of named pools" {
        local i deletes others=()
        make_program volume-capacity '{"status": "Success", "pools": []}'
        make_program volume-create '{"status": "Success", "volume": {"name": "data", "type": "loop", "targetType": "mount", "size": 8388608}}'
        hold
        for i in {1..16}; do
                echo "DeleteVolume {\"volume_id\": \"nas-$((i % 3)).example.org#export#v$i#v$i#retain\"}"
        done >"$CORE/lines"
        "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - <"$CORE/lines" >"$CORE/deletes" 3>&- &
        deletes=$!
        wait_until 20 has_begun 9 # the others wait before what is asked for next
        "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" GetCapacity '{}' >"$CORE/capacity" 3>&- &
        others+=("$!")
        "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" CreateVolume "$(CAPABILITY=$WRITER volume_request other '"parameters": {"pool": "fast"}')" >"$CORE/other" 3>&- &
        others+=("$!")
        wait_until 20 has_begun 11
        is "$(cut -d' ' -f1 "$CORE/began" | sort | uniq -c | xargs)" '1 volume-capacity 1 volume-create 9 volume-list'
        let_go
        wait "${others[0]}"
        wait "${others[1]}"
        wait "$deletes"
        is "$(cut -d' ' -f1 "$CORE/deletes" | sort | uniq -c | tr -s ' ')" " 16 OK"
}

@test "volumes of servers that do not answer leave places for other calls of a node, also where only their attributes name it" {
        local other
        mount_verb
        hold
        CONTEXT='"server": "nas-@.example.org", "share": "/export"'
        many_publishes
        wait_until 20 has_begun 18 # the others wait before what is asked for next
        CAPABILITY=$WRITER
        "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" NodePublishVolume "{\"volume_id\": \"other\", \"staging_target_path\": \"/s\", \"target_path\": \"/t/other\",
                \"volume_capability\": $WRITER, \"volume_context\": {\"type\": \"loop\"}}" >"$CORE/other" 3>&- &
        other=$!
        wait_until 20 has_begun 19
        is "$(grep -c 'nas-[0-2].example.org' "$CORE/began")" 18 "programs that may wait for a server"
        let_go
        wait "$PUBLISHES" "$other"
        is "$(cut -d' ' -f1 "$CORE/publishes" | sort | uniq -c | tr -s ' ')" " 27 OK"
}

# one_more "METHOD REQUEST"...: of these calls, made in this order, only the last is begun beside the six (BESIDE) of many_publishes or the like that
# are, and all end well. What it began is in the file last.
one_more() {
        local other beside=${BESIDE:-6}
        wait_until 20 has_begun "$beside" # the others wait before what is asked for next
        printf '%s\n' "$@" | "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - >"$CORE/other" 3>&- &
        other=$!
        wait_until 20 has_begun $((beside + 1))
        tail -n 1 "$CORE/began" >"$CORE/last"
        let_go
        wait "$PUBLISHES" "$other"
        is "$(cut -d' ' -f1 "$CORE/publishes" "$CORE/other" | sort | uniq -c | tr -s ' ')" " $((27 + $#)) OK"
}

# publish_of VOLUME SERVER: NodePublishVolume of a volume that only its context says to be on that server.
publish_of() {
        printf 'NodePublishVolume {"volume_id": "%s", "staging_target_path": "/s", "target_path": "/t/other", "volume_capability": %s, "volume_context": {%s}}' \
                "$1" "$CAPABILITY" "\"server\": \"$2\", \"share\": \"/export\""
}

@test "a server that does not answer leaves places for another one, also where it is spelled in two ways" {
        mount_verb
        hold
        CONTEXT='"server": "nas.example.org", "share": "/export"'
        many_publishes
        one_more "$(publish_of other other.example.org)"
        is "$(grep -c other.example.org "$CORE/last")" 1

        asked_anew
        hold
        CONTEXT='"type": "nfs", "source": "NAS.example.org:/export/@"'
        many_publishes
        one_more "$(publish_of same nas.example.org)" "$(publish_of other other.example.org)"
        is "$(grep -c other.example.org "$CORE/last")" 1
}

@test "inline volumes of one namespace leave places for those of others, however many dead servers they name" {
        local inline='"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace"'
        mount_verb
        hold
        CONTEXT="\"server\": \"nas-@.example.org\", \"share\": \"/export\", $inline: \"greedy\""
        many_publishes
        BESIDE=12 one_more "$(publish_of same "fourth.example.org\", $inline: \"greedy")" "$(publish_of other "other.example.org\", $inline: \"modest")"
        is "$(grep -c other.example.org "$CORE/last")" 1
}

# mounted_of SERVER TARGET...: something from that server is mounted there, as the table of mounts says it; it is a tmpfs.
mounted_of() {
        local target
        for target in "${@:2}"; do
                mkdir -p "$target"
                mount -t tmpfs "$1:/export" "$target"
        done
}

@test "static volumes that are unmounted from a server that does not answer leave places for those of another one, whichever driver mounted them" {
        local i pods=$KUBELET/pods
        make_program unmount '{"status": "Success"}'
        mv "$CORE/bin/unmount" "$CORE/bin/verbs/"
        mounted_of nas.example.org "$pods"/{1..27}/mount
        mounted_of other.example.org "$pods/other/mount"
        ln -s "$KUBELET" "$CORE/link" # by which kubelet knows its directory
        hold
        for i in {1..27}; do
                echo "NodeUnpublishVolume {\"volume_id\": \"v$i\", \"target_path\": \"$CORE/link/pods/$i/mount\"}"
        done >"$CORE/lines"
        "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - <"$CORE/lines" >"$CORE/publishes" 3>&- &
        PUBLISHES=$!
        one_more "NodeUnpublishVolume {\"volume_id\": \"other\", \"target_path\": \"$pods/other/mount\"}"
        is "$(<"$CORE/last")" "unmount $pods/other/mount"
        umount "$pods"/*/mount
}

@test "static volumes that the driver itself published are unmounted so, too, without a look at what is mounted" {
        local i
        mount_verb
        CONTEXT='"server": "nas.example.org", "share": "/export"'
        many_publishes
        wait "$PUBLISHES"
        publish_of other other.example.org | "$CSI_CLIENT" --deadline 200 "$CSI_SOCKET" - | grep -q '^OK'
        make_program unmount '{"status": "Success"}'
        mv "$CORE/bin/unmount" "$CORE/bin/verbs/"
        asked_anew
        hold
        for i in {1..27}; do
                echo "NodeUnpublishVolume {\"volume_id\": \"v$i\", \"target_path\": \"/t/$i\"}"
        done >"$CORE/lines"
        "$CSI_CLIENT" --deadline 200 --parallel "$CSI_SOCKET" - <"$CORE/lines" >"$CORE/publishes" 3>&- &
        PUBLISHES=$!
        one_more 'NodeUnpublishVolume {"volume_id": "other", "target_path": "/t/other"}'
        is "$(<"$CORE/last")" "unmount /t/other"
}
