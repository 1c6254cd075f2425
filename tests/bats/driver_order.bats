#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: verbs said again, out of order, after kubelet's restart, and on other nodes.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
}

teardown() {
        driver_teardown
}

# bare_spec NAME: what is left of the options when kubelet has been restarted.
bare_spec() {
        spec "$1"
}

# ---- again, and out of order

@test "attach again gives the same device" {
        attached_loop data
        local device=${DEVICES[data]} i
        for i in 1 2 3; do
                call attach "$(loop_spec data)" "$NODE"
                assert_reply "{\"status\": \"Success\", \"device\": \"$device\"}"
        done
        is "$(loops_of_test)" "$device" "loop devices"
        kubelet_stage data
        call attach "$(loop_spec data)" "$NODE"
        assert_field .device "$device"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "mountdevice and mount again succeed and leave one mount each" {
        lifecycle_up data type=loop size=8Mi
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_reply '{"status": "Success"}'
        call mount "$(pod_dir data)" "${SPECS[data]}"
        assert_reply '{"status": "Success"}'
        is "$(node_mounts_at "$(global_dir data)")" 1 "global mounts"
        is "$(node_mounts_at "$(pod_dir data)")" 1 "mounts in the pod"
        lifecycle_down data
        assert_nothing_left
}

@test "a pod's mount that is gone is not another pod's, whose directory has that name, and that has its number by now" {
        local id
        SPECS[data]=$(spec data type=tmpfs size=1m)
        kubelet_publish data pod-1
        kubelet_publish data pod-2
        umount "$(pod_dir data pod-1)"
        # before Linux 6.8 mounts have the number alone, and the kernel gives the lowest that is free
        id=$(node_mount_line "$(pod_dir data pod-2)" | cut -d ' ' -f 1)
        edit_record data ".published |= map(.mountIdUnique = false | .mountId = $id)"
        call unmount "$(pod_dir data pod-1)"
        assert_success
        rmdir "$(pod_dir data pod-1)"
        is "$(node_mounts_at "$(pod_dir data pod-2)")" 1
        is "$(jq '.published | length' "$STATE_DIR/volumes/data.json")" 1
        edit_record data ".published |= map(.mountIdUnique = false | .mountId = $id)"
        helper volume-reconcile '{}'
        is "$(jq '.published | length' "$STATE_DIR/volumes/data.json")" 1
        kubelet_unpublish data pod-2
        assert_nothing_left
}

@test "unmount, unmountdevice and detach again succeed" {
        local i
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        for i in 1 2; do
                call unmount "$(pod_dir data)"
                assert_reply '{"status": "Success"}'
                call unmountdevice "$(global_dir data)"
                assert_reply '{"status": "Success"}'
                call detach data "$NODE"
                assert_detached
        done
        assert_nothing_left
}

@test "unmount, unmountdevice and detach of what never was succeed and make nothing" {
        call unmount "$(pod_dir never)"
        assert_reply '{"status": "Success"}'
        call unmountdevice "$(global_dir never)"
        assert_reply '{"status": "Success"}'
        call detach never "$NODE"
        assert_reply '{"status": "Success"}'
        [[ ! -e $(pod_dir never) && ! -e $(global_dir never) ]]
        assert_nothing_left
}

@test "mountdevice and mount make their directory where kubelet has not" {
        attached_loop data
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_success
        call mount "$(pod_dir data)" "${SPECS[data]}"
        assert_success
        is "$(node_mounts_at "$(pod_dir data)")" 1
        lifecycle_down_of data
        assert_nothing_left
}

# lifecycle_down_of NAME: lifecycle_down, where lifecycle_up was not what began it.
lifecycle_down_of() {
        DRIVER_ATTACHES=true lifecycle_down "$1"
}

@test "waitforattach attaches what attach has not" {
        call waitforattach "" "$(loop_spec data)"
        assert_success
        local device
        device=$(json_field .device)
        is "$(loop_of "$(image_of data)")" "$device"
        call attach "$(loop_spec data)" "$NODE"
        assert_field .device "$device"
        kubelet_detach data
        assert_nothing_left
}

@test "detach needs the name alone" {
        attached_loop data
        local image=$POOL/elsewhere.img
        call detach data "$NODE"
        assert_detached
        kubelet_attach other type=loop size=8Mi image=elsewhere.img
        is "$(loop_of "$image")" "${DEVICES[other]}"
        call detach other "$NODE"
        assert_detached
        assert_nothing_left
}

@test "detach of a volume that is still mounted lets nothing go" {
        lifecycle_up data type=loop size=8Mi
        call detach data "$NODE"
        assert_refused
        echo text >"$(pod_dir data)/file"
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        lifecycle_down data
        assert_nothing_left
}

@test "mount of a volume that was never staged fails and leaves no mount point" {
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(loop_spec data)"
        assert_refused data
        is "$(mounts_here)" ""
        rmdir "$(pod_dir data)"
        attached_loop data
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(loop_spec data)"
        assert_refused
        is "$(mounts_here)" ""
        rmdir "$(pod_dir data)"
        kubelet_detach data
        assert_nothing_left
}

@test "a directory that holds another mount is not mounted over" {
        attached_loop data
        make_dir "$(global_dir data)"
        mount -t tmpfs other "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused
        is "$(node_mounts_at "$(global_dir data)")" 1
        umount "$(global_dir data)"
        kubelet_stage data
        make_dir "$(pod_dir data)"
        mount -t tmpfs other "$(pod_dir data)"
        call mount "$(pod_dir data)" "${SPECS[data]}"
        assert_refused
        umount "$(pod_dir data)"
        rmdir "$(pod_dir data)"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a volume is deleted and made again under the same name" {
        local i
        for i in 1 2 3; do
                lifecycle_up data type=loop size=8Mi
                lifecycle_down data
                delete_volume data
        done
        assert_nothing_left
}

# ---- kubelet restarted

# bats test_tags=kernel
@test "after a restart attach and waitforattach know the volume by its bare options" {
        lifecycle_up data type=loop size=8Mi
        local bare
        bare=$(bare_spec data)
        call init
        call getvolumename "$bare"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call attach "$bare" "$NODE"
        assert_reply "{\"status\": \"Success\", \"device\": \"${DEVICES[data]}\"}"
        call waitforattach "${DEVICES[data]}" "$bare"
        assert_reply "{\"status\": \"Success\", \"device\": \"${DEVICES[data]}\"}"
        call isattached "$bare" "$NODE"
        assert_field .attached true
        lifecycle_down data
        assert_nothing_left
}

@test "bare options after a restart do not make a volume of another kind" {
        make_device blank
        lifecycle_up data type=block "source=$DEVICE"
        call attach "$(bare_spec data)" "$NODE"
        assert_field .device "$DEVICE"
        call waitforattach "$DEVICE" "$(bare_spec data)"
        assert_success
        [[ ! -e $(image_of data) ]]
        lifecycle_down data
        assert_nothing_left
}

@test "bare options for a volume without a record and without a kind in the driver's name fail, and make nothing" {
        call getvolumename "$(bare_spec data)"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call attach "$(bare_spec data)" "$NODE"
        assert_refused type
        [[ ! -e $(image_of data) ]]
        assert_nothing_left
}

@test "the record is enough to take a volume away after a restart" {
        lifecycle_up data type=loop size=8Mi mountOptions=noatime
        call getvolumename "$(bare_spec data)"
        assert_success
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "with the record lost a mounted volume can still be taken away" {
        lifecycle_up data type=loop size=8Mi
        rm "$(record_of data)"
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

# ---- nodes

@test "attach for another node changes nothing here and predicts the device" {
        call attach "$(loop_spec data)" another-node
        assert_reply '{"status": "Success", "device": "/dev/flexgraft/data"}'
        [[ ! -e $(image_of data) ]]
        [[ -z $(volume_records) ]]
        assert_nothing_left
}

# attaches_for_all_nodes: as kube-controller-manager asks for it, with CALL_PREFIX.
attaches_for_all_nodes() {
        local node options
        for node in another-node "$NODE"; do
                call attach "$(loop_spec data)" "$node"
                assert_reply '{"status": "Success", "device": "/dev/flexgraft/data"}'
                call isattached "$(loop_spec data)" "$node"
                assert_reply '{"status": "Success", "attached": true}'
                call detach data "$node"
                assert_reply '{"status": "Success"}'
        done
        for options in '' pool=nonesuch pool=default volumeID=data; do
                # shellcheck disable=SC2086 # one word or none
                call attach "$(spec data type=lvm $options)" another-node
                assert_reply '{"status": "Success", "device": ""}'
        done
        call waitforattach /dev/flexgraft/data "$(loop_spec data)"
        assert_refused "needs root"
        assert_nothing_left
}

@test "kube-controller-manager in a container, without capabilities, attaches and detaches for all nodes, its own too" {
        # root, with what containerd leaves of the capabilities
        CALL_PREFIX=(setpriv --no-new-privs --inh-caps -all --bounding-set
                "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap")
        attaches_for_all_nodes
}

@test "kube-controller-manager as a user of its own, as k0s runs it, attaches and detaches for all nodes, its own too" {
        chmod -R a+rX "$BATS_TEST_TMPDIR"
        CALL_PREFIX=(setpriv --reuid 1000 --regid 1000 --clear-groups)
        attaches_for_all_nodes
}

# bats test_tags=kernel
@test "waitforattach on the node does the work that attach for it elsewhere has predicted" {
        call attach "$(loop_spec data)" another-node
        assert_success
        # The same calls as the node itself makes them.
        call waitforattach "$(json_field .device)" "$(loop_spec data)"
        assert_success
        local device
        device=$(json_field .device)
        [[ -b $device ]]
        is "$(loop_of "$(image_of data)")" "$device"
        DEVICES[data]=$device SPECS[data]=$(loop_spec data)
        kubelet_stage data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "mountdevice takes the predicted device for the volume's own" {
        SPECS[data]=$(loop_spec data) DEVICES[data]=/dev/flexgraft/data
        call waitforattach /dev/flexgraft/data "${SPECS[data]}"
        assert_success
        kubelet_stage data
        kubelet_publish data
        touch "$(pod_dir data)/file"
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "detach and isattached for another node change nothing here" {
        lifecycle_up data type=loop size=8Mi
        call detach data another-node
        assert_reply '{"status": "Success"}'
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        is "$(volume_records)" data.json
        call isattached "${SPECS[data]}" another-node
        assert_success
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        echo text >"$(pod_dir data)/file"
        lifecycle_down data
        assert_nothing_left
}

@test "without nodeName in the configuration the host's name is this node" {
        printf '{"stateDir": "%s", "log": "%s"}\n' "$STATE_DIR" "$LOG" >"$FLEXGRAFT_CONFIG"
        call attach "$(loop_spec data)" "$(hostname)-2"
        assert_field .device /dev/flexgraft/data
        [[ ! -e $(image_of data) ]]
        call attach "$(loop_spec data)" "$(hostname)"
        assert_field .device "$(loop_of "$(image_of data)")"
        call detach data "$(hostname)"
        assert_success
        assert_nothing_left
}

@test "isattached tells what the kernel has, not what the record says" {
        attached_loop data
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        call isattached "${SPECS[data]}" "$NODE"
        assert_reply '{"status": "Success", "attached": false}'
        call attach "${SPECS[data]}" "$NODE"
        assert_success
        call isattached "${SPECS[data]}" "$NODE"
        assert_reply '{"status": "Success", "attached": true}'
        kubelet_detach data
        assert_nothing_left
}
