# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2119,SC2120 # arguments may be left out
# shellcheck disable=SC2154 # of csi_service_helpers.bash
# shellcheck disable=SC2174 # the mode is the last directory's alone: that is meant
# kubelet's side of the Node service: its directories, and its calls with the arguments that it gives them (docs/kubernetes.md).
#
# After `load csi_service_helpers`. setup() calls node_setup after csi_begin.

SINGLE='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_SINGLE_WRITER"}}'
READER='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_READER_ONLY"}}'
BLOCK_READER='{"block": {}, "access_mode": {"mode": "MULTI_NODE_READER_ONLY"}}'

# node_setup: CAPABILITY what volumes are used as; CONTEXT their volume_context (members of JSON); ID the volume.
node_setup() {
        CAPABILITY=$WRITER CONTEXT='' ID=data READ_ONLY=false
}

is_block() {
        [[ $CAPABILITY == *'"block"'* ]]
}

# staging [ID]: kubelet's directory for the volume.
staging() {
        if is_block; then
                echo "$KUBELET/plugins/kubernetes.io/csi/volumeDevices/staging/${1:-$ID}"
        else
                echo "$KUBELET/plugins/kubernetes.io/csi/pv/${1:-$ID}/globalmount"
        fi
}

# target [POD [ID]]: the pod's directory for the volume, or the file for its device.
target() {
        if is_block; then
                echo "$KUBELET/plugins/kubernetes.io/csi/volumeDevices/publish/${2:-$ID}/${1:-pod-1}"
        else
                echo "$KUBELET/pods/${1:-pod-1}/volumes/kubernetes.io~csi/${2:-$ID}/mount"
        fi
}

# members PATHS: what the requests have in common.
node_request() {
        local text=''
        put_member text volume_id "$ID"
        printf '{%s, %s, "volume_capability": %s' "${text#,}" "$1" "$CAPABILITY"
}

# stage: NodeStageVolume, after the directory is made, as kubelet does.
stage() {
        local where
        where=$(staging)
        mkdir -p -m 0750 "$where"
        csi NodeStageVolume "$(node_request "\"staging_target_path\": \"$where\""), \"volume_context\": {$CONTEXT}${SECRETS:+, \"secrets\": $SECRETS}}"
}

# publish [POD [NAMESPACE]]: NodePublishVolume; the target's parent exists, the target does not.
publish() {
        local where pod=''
        where=$(target "${1:-}")
        mkdir -p -m 0750 "${where%/*}"
        is_block || pod="\"csi.storage.k8s.io/pod.name\": \"p\", \"csi.storage.k8s.io/pod.namespace\": \"${2:-shop}\",
                \"csi.storage.k8s.io/pod.uid\": \"${1:-pod-1}\", \"csi.storage.k8s.io/serviceAccount.name\": \"default\",
                \"csi.storage.k8s.io/ephemeral\": \"false\""
        csi NodePublishVolume "$(node_request "\"staging_target_path\": \"$(staging)\", \"target_path\": \"$where\""),
                \"readonly\": $READ_ONLY, \"volume_context\": {$CONTEXT${CONTEXT:+${pod:+, }}$pod}${SECRETS:+, \"secrets\": $SECRETS}}"
}

# publish_inline [POD]: of a volume in the pod's own specification.
publish_inline() {
        local where
        where=$(target "${1:-}")
        mkdir -p -m 0750 "${where%/*}"
        csi NodePublishVolume "$(node_request "\"target_path\": \"$where\""), \"readonly\": $READ_ONLY, \"volume_context\": {$CONTEXT${CONTEXT:+, }
                \"csi.storage.k8s.io/pod.name\": \"p\", \"csi.storage.k8s.io/pod.namespace\": \"shop\", \"csi.storage.k8s.io/pod.uid\": \"${1:-pod-1}\",
                \"csi.storage.k8s.io/ephemeral\": \"true\"}${SECRETS:+, \"secrets\": $SECRETS}}"
}

unpublish() {
        csi NodeUnpublishVolume "{\"volume_id\": \"$ID\", \"target_path\": \"$(target "${1:-}")\"}"
}

unstage() {
        csi NodeUnstageVolume "{\"volume_id\": \"$ID\", \"staging_target_path\": \"$(staging)\"}"
}

# stats [PATH]: NodeGetVolumeStats
stats() {
        csi NodeGetVolumeStats "{\"volume_id\": \"$ID\", \"volume_path\": \"${1:-$(target)}\"}"
}

# usage UNIT FIELD: of the last stats.
usage() {
        jq -r --arg unit "$1" --arg field "$2" '.usage[] | select(.unit == $unit) | .[$field]' <<<"$json"
}

# expand BYTES [PATH]
expand() {
        csi NodeExpandVolume "{\"volume_id\": \"$ID\", \"volume_path\": \"${2:-$(target)}\", \"staging_target_path\": \"$(staging)\",
                \"capacity_range\": {\"required_bytes\": $1}, \"volume_capability\": $CAPABILITY}"
}

# up [POD], down [POD]: all calls of a pod's life, which succeed.
up() {
        stage && answers OK && publish "$@" && answers OK
}

down() {
        unpublish "$@" && answers OK && unstage && answers OK
}

# new_volume [MEMBERS]: CreateVolume of ID for CAPABILITY; its volume_context in CONTEXT.
new_volume() {
        make_volume "$ID" "$@" || return 1
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
}

# all_gone: nothing of the volume is left on the node.
all_gone() {
        is "$(node_mounts_at "$(staging)")" 0 "mounts at the staging path" &&
                is "$(node_mounts_at "$(target)")" 0 "mounts at the target" &&
                [[ ! -e $(target) ]] && assert_no_loops driver &&
                is "$(find "$STATE_DIR/volumes" -name '*.json' 2>/dev/null)" "" "records"
}
