#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver, as kubelet meets it: every verb's words, in kubelet's order and out of it.

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

VERBS=(init getvolumename attach waitforattach isattached detach mountdevice unmountdevice mount unmount expandvolume expandfs)

# loop_spec NAME [KEY=VALUE...]: a loop volume of 8 MiB.
loop_spec() {
        spec "$1" type=loop size=8Mi "${@:2}"
}

# bare_spec NAME: what is left of the options when kubelet has been restarted.
bare_spec() {
        spec "$1"
}

attached_loop() {
        kubelet_attach "$1" type=loop size=8Mi "${@:2}"
}

# ---- init, and what is not supported

@test "init names every capability" {
        call init
        assert_reply '{"status": "Success", "capabilities": {"attach": true, "selinuxRelabel": true, "supportsMetrics": true,
                "fsGroup": true, "requiresFSResize": true}}'
}

@test "init of a driver named loop or block says the same as the generic driver's" {
        local name
        for name in flexgraft~loop flexgraft~block example.org~disks; do
                install_driver "$name"
                call init
                assert_reply '{"status": "Success", "capabilities": {"attach": true, "selinuxRelabel": true, "supportsMetrics": true,
                        "fsGroup": true, "requiresFSResize": true}}'
        done
}

@test "init of a driver named tmpfs asks for no attach and no resize" {
        install_driver flexgraft~tmpfs
        call init
        assert_reply '{"status": "Success", "capabilities": {"attach": false, "selinuxRelabel": true, "supportsMetrics": true,
                "fsGroup": true, "requiresFSResize": false}}'
}

@test "init of a driver named bind or nfs leaves owners and labels alone" {
        local name
        for name in flexgraft~bind k8s~nfs; do
                install_driver "$name"
                call init
                assert_reply '{"status": "Success", "capabilities": {"attach": false, "selinuxRelabel": false, "supportsMetrics": true,
                        "fsGroup": false, "requiresFSResize": false}}'
        done
}

@test "init touches nothing" {
        call init
        assert_success
        [[ ! -e $STATE_DIR ]]
}

@test "init answers with a broken configuration too, or says why not" {
        echo '{"stateDir": ' >"$FLEXGRAFT_CONFIG"
        call init
        [[ $(jq -r .status <<<"$json") == Success ]] || assert_refused "$FLEXGRAFT_CONFIG"
}

@test "an unknown verb is not supported" {
        local verb
        for verb in getvolumemetrics "" ../init ./init verbs/init INIT "init " /bin/true; do
                call "$verb"
                assert_not_supported
        done
}

@test "verbs that no tmpfs, bind or nfs volume will ever need are not supported by drivers of that name" {
        local name verb
        local -A arguments=([attach]="{} $NODE" [waitforattach]="/dev/null {}" [isattached]="{} $NODE" [detach]="data $NODE"
                [mountdevice]="$KUBELET/x /dev/null {}" [unmountdevice]="$KUBELET/x" [expandvolume]="{} $KUBELET/x 2 1"
                [expandfs]="{} /dev/null $KUBELET/x 2 1")
        for name in flexgraft~tmpfs flexgraft~bind k8s~nfs; do
                install_driver "$name"
                for verb in "${!arguments[@]}"; do
                        # shellcheck disable=SC2086
                        call "$verb" ${arguments[$verb]}
                        assert_not_supported
                done
                for verb in getvolumename mount; do
                        call "$verb"
                        assert_refused
                done
        done
}

@test "no known verb of a generic, loop or block driver is ever not supported" {
        local name verb
        for name in flexgraft~flexgraft flexgraft~loop flexgraft~block; do
                install_driver "$name"
                for verb in "${VERBS[@]:1}"; do
                        call "$verb" nonsense nonsense nonsense nonsense nonsense
                        assert_refused
                done
        done
}

@test "a verb called with too few or too many arguments fails and says which it wants" {
        local verb index
        local -a counts=(0 1 2 2 2 2 3 1 2 1 4 5) words=({1..6})
        for index in {1..11}; do                # init is asked for nothing else, whatever comes with it
                verb=${VERBS[index]}
                call "$verb" "${words[@]:0:counts[index]-1}"
                assert_refused
                call "$verb" "${words[@]:0:counts[index]+1}"
                assert_refused
        done
        call unmount
        assert_refused DIR
        [[ -z $(volume_records) ]]
}

@test "the driver without a verb does nothing" {
        call
        assert_not_supported
}

@test "every program answers --help and --version" {
        local program
        needs volume-reconcile
        for program in flexdriver volume-reconcile "${VERBS[@]/#/verbs/}"; do
                helper "$program" --help
                is "$status" 0 "exit status of $program --help"
                [[ -z $stderr && $output == *"${program##*/}"* && $output == *$'\n' ]]
                helper "$program" --version
                is "$status" 0 "exit status of $program --version"
                [[ -z $stderr && $output =~ [0-9]+\.[0-9]+\.[0-9]+ ]]
        done
}

@test "a verb's program may be run by itself" {
        helper verbs/init
        is "$status" 0
        assert_field .status Success
        helper verbs/getvolumename "$(loop_spec data)"
        is "$json" '{"status":"Success","volumeName":"data"}'$'\n'
}

@test "a driver without its verbs directory fails, as kubelet can read it" {
        mv "${DRIVER%/*}/verbs" "${DRIVER%/*}/elsewhere"
        call mount "$(pod_dir data)" "$(loop_spec data)"
        assert_field .status Failure
        [[ ! -e $(pod_dir data) ]]
}

# ---- the lifecycle, word by word

@test "every verb answers with its own fields and nothing else" {
        local json_text device dir pod
        json_text=$(loop_spec data)
        dir=$(global_dir data)
        pod=$(pod_dir data)
        call getvolumename "$json_text"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call isattached "$json_text" "$NODE"
        assert_reply '{"status": "Success", "attached": false}'
        call attach "$json_text" "$NODE"
        device=$(jq -r .device <<<"$json")
        [[ $device =~ ^/dev/loop[0-9]+$ && -b $device ]]
        assert_reply "{\"status\": \"Success\", \"device\": \"$device\"}"
        is "$(loop_of "$(image_of data)")" "$device" "the image's loop device"
        call waitforattach "$device" "$json_text"
        assert_reply "{\"status\": \"Success\", \"device\": \"$device\"}"
        call isattached "$json_text" "$NODE"
        assert_reply '{"status": "Success", "attached": true}'
        make_dir "$dir"
        call mountdevice "$dir" "$device" "$json_text"
        assert_reply '{"status": "Success"}'
        make_dir "$pod"
        call mount "$pod" "$json_text"
        assert_reply '{"status": "Success"}'
        call unmount "$pod"
        assert_reply '{"status": "Success"}'
        call unmountdevice "$dir"
        assert_reply '{"status": "Success"}'
        call detach data "$NODE"
        assert_reply '{"status": "Success"}'
        call isattached "$json_text" "$NODE"
        assert_reply '{"status": "Success", "attached": false}'
        rmdir "$pod" "$dir" 2>/dev/null || :
        assert_nothing_left
}

# bats test_tags=kernel
@test "a volume goes through its life in kubelet's order and nothing is left" {
        lifecycle_up data type=loop size=8Mi
        is "$(node_mounts_at "$(global_dir data)")" 1 "global mounts"
        is "$(node_mounts_at "$(pod_dir data)")" 1 "mounts in the pod"
        echo text >"$(pod_dir data)/file"
        is "$(<"$(global_dir data)/file")" text
        lifecycle_down data
        assert_nothing_left
}

@test "what a pod wrote is there for the next one" {
        lifecycle_up data type=loop size=8Mi
        echo kept >"$(pod_dir data)/file"
        lifecycle_down data
        POD=second
        lifecycle_up data type=loop size=8Mi
        is "$(<"$(pod_dir data)/file")" kept
        lifecycle_down data
        assert_nothing_left
}

@test "the global mount is nosuid and nodev, has a st_dev of its own and is mounted straight on kubelet's directory" {
        local dir line
        dir=$(global_dir data)
        attached_loop data
        kubelet_stage data
        is_mount_point "$dir"
        assert_node_attributes "$dir" rw nosuid nodev
        is "$(node_mount_type "$dir")" ext4
        # Another reference to the same filesystem anywhere, and kubelet would never unmount the device.
        is "$(grep -c " ${DEVICES[data]} " /proc/self/mountinfo)" 1 "mounts of the device"
        line=$(node_mount_line "$dir")
        is "$(cut -d' ' -f4 <<<"$line")" / "the root of the mount"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "the pod's mount is nosuid and nodev" {
        lifecycle_up data type=loop size=8Mi
        assert_node_attributes "$(pod_dir data)" rw nosuid nodev
        lifecycle_down data
}

# bats test_tags=kernel
@test "two pods share one attach and one global mount" {
        attached_loop data
        kubelet_stage data
        kubelet_publish data pod-1
        attached_loop data
        kubelet_stage data
        kubelet_publish data pod-2
        is "$(node_mounts_at "$(global_dir data)")" 1 "global mounts"
        is "$(loops_of_test)" "${DEVICES[data]}" "loop devices"
        echo text >"$(pod_dir data pod-1)/file"
        is "$(<"$(pod_dir data pod-2)/file")" text
        kubelet_unpublish data pod-1
        is "$(<"$(pod_dir data pod-2)/file")" text
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

# bats test_tags=kernel
@test "one pod may only read what another pod may write" {
        local ro rw
        rw=$(pod_dir data pod-1)
        ro=$(pod_dir data pod-2)
        attached_loop data
        kubelet_stage data
        kubelet_publish data pod-1
        echo text >"$rw/file"
        kubelet_publish data pod-2 @readwrite=ro
        is "$(<"$ro/file")" text
        # opened for reading and writing, as a program that probes would
        run ! bash -c 'exec 5<>"$1"' bash "$ro/file"
        run ! bash -c 'exec 5<>"$1"' bash "$ro/new"
        bash -c 'exec 5<>"$1" && echo more >&5' bash "$rw/file"
        is "$(<"$ro/file")" more
        assert_node_attributes "$ro" ro nosuid nodev
        assert_node_attributes "$rw" rw
        kubelet_unpublish data pod-1
        run ! touch "$ro/new"
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a volume whose first pod may only read can be written by a second" {
        attached_loop data
        kubelet_stage data
        kubelet_publish data pod-1 @readwrite=ro
        kubelet_publish data pod-2
        touch "$(pod_dir data pod-2)/file"
        run ! touch "$(pod_dir data pod-1)/file2"
        kubelet_unpublish data pod-1
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a volume that was staged for a pod that only reads can be written by the next pod" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        lifecycle_up data type=loop @readwrite=ro
        kubelet_publish data second @readwrite=rw
        touch "$(pod_dir data second)/file"
        run ! touch "$(pod_dir data)/file2"
        kubelet_unpublish data second
        run ! touch "$(pod_dir data)/file2"
        lifecycle_down data
        assert_nothing_left
}

@test "a volume that kubelet calls read-only throughout is read-only" {
        lifecycle_up data type=loop size=8Mi @readwrite=rw
        echo text >"$(pod_dir data)/file"
        lifecycle_down data
        lifecycle_up data type=loop @readwrite=ro
        is "$(<"$(pod_dir data)/file")" text
        run ! touch "$(pod_dir data)/new"
        run ! touch "$(pod_dir data)/file"
        lifecycle_down data
        assert_nothing_left
}

@test "kubelet's answer about mounts is the kernel's: the pod's mount is no mount of a directory beside it" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_up other type=loop size=8Mi
        lifecycle_down data
        is "$(mounts_here | wc -l)" 2 "mounts of the other volume"
        touch "$(pod_dir other)/file"
        lifecycle_down other
        assert_nothing_left
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
                assert_reply '{"status": "Success"}'
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
        device=$(jq -r .device <<<"$json")
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
        assert_reply '{"status": "Success"}'
        kubelet_attach other type=loop size=8Mi image=elsewhere.img
        is "$(loop_of "$image")" "${DEVICES[other]}"
        call detach other "$NODE"
        assert_reply '{"status": "Success"}'
        [[ -z $(loop_of "$image") ]]
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
                rm "$(image_of data)"
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

# bats test_tags=kernel
@test "waitforattach on the node does the work that attach for it elsewhere has predicted" {
        call attach "$(loop_spec data)" another-node
        assert_success
        # The same calls as the node itself makes them.
        call waitforattach "$(jq -r .device <<<"$json")" "$(loop_spec data)"
        assert_success
        local device
        device=$(jq -r .device <<<"$json")
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

# ---- options

@test "an empty fsType is ext4 on a blank device" {
        lifecycle_up data type=loop size=8Mi @fsType=
        is "$(node_mount_type "$(pod_dir data)")" ext4
        lifecycle_down data
}

@test "an absent fsType, readwrite or anything but the name is no error" {
        call getvolumename '{"kubernetes.io/pvOrVolumeName": "data"}'
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi"}' "$NODE"
        assert_success
        kubelet_detach data
        assert_nothing_left
}

@test "options without the volume's name fail and say which key is missing" {
        local verb
        call getvolumename '{"kubernetes.io/fsType": "", "type": "loop"}'
        assert_refused kubernetes.io/pvOrVolumeName
        call attach '{"type": "loop", "size": "8Mi"}' "$NODE"
        assert_refused kubernetes.io/pvOrVolumeName
        call attach "$(spec '' type=loop size=8Mi)" "$NODE"
        assert_refused kubernetes.io/pvOrVolumeName
        [[ -z $(volume_records) ]]
}

@test "the kind is the driver's name where the options do not say" {
        install_driver flexgraft~loop
        lifecycle_up data size=8Mi
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        lifecycle_down data
        make_device blank
        install_driver flexgraft~block
        lifecycle_up disk "source=$DEVICE"
        is "${DEVICES[disk]}" "$DEVICE"
        lifecycle_down disk
        assert_nothing_left
}

@test "a driver named tmpfs and one named bind mount their kind" {
        write_policy '"kinds": ["tmpfs", "bind"], "sources": ["'"$SOURCE"'"]'
        install_driver flexgraft~tmpfs
        lifecycle_up cache size=1Mi
        is "$(node_mount_type "$(pod_dir cache)")" tmpfs
        lifecycle_down cache
        install_driver flexgraft~bind
        echo text >"$SOURCE/file"
        lifecycle_up host "source=$SOURCE"
        is "$(<"$(pod_dir host)/file")" text
        lifecycle_down host
        assert_nothing_left
}

@test "the kind is guessed from image, pool or size" {
        local option
        for option in size=8Mi image=some.img; do
                call attach "$(spec data size=8Mi "$option")" "$NODE"
                assert_success
                kubelet_detach data
        done
        rm "$(image_of data)"
        call attach "$(spec data pool=default)" "$NODE"     # no such image, and no size to make it with
        assert_refused data.img
        assert_nothing_left
}

@test "a driver named for one kind serves it alone" {
        install_driver flexgraft~tmpfs
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(spec data type=loop size=8Mi)"
        assert_refused
        is "$(mounts_here)" ""
        rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "unknown keys are ignored and logged" {
        lifecycle_up data type=loop size=8Mi colour=blue example.org/tier=gold @somethingNew=1
        lifecycle_down data
        grep -q colour "$LOG"
        assert_nothing_left
}

@test "an unknown type fails and is named" {
        call attach "$(spec data type=floppy)" "$NODE"
        assert_refused floppy
        call getvolumename "$(spec data type=floppy)"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        assert_nothing_left
}

@test "numbers and booleans are taken for strings" {
        local json_text
        json_text=$(jq -c '. + {size: 8388608, preallocate: true, tier: 3, ratio: 1.5, on: false, nothing: null}' <<<"$(spec data type=loop)")
        call attach "$json_text" "$NODE"
        assert_success
        is "$(stat -c %s "$(image_of data)")" 8388608 "size of the image"
        kubelet_detach data
        assert_nothing_left
}

@test "objects and arrays where an option wants text are refused, and ignored where nobody reads them" {
        call attach "$(jq -c '. + {size: {"a": 1}}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
        call attach "$(jq -c '. + {size: ["8Mi"]}' <<<"$(spec data type=loop)")" "$NODE"
        assert_refused size
        call getvolumename "$(jq -c '. + {colours: ["red"]}' <<<"$(spec data type=loop)")"
        assert_success
}

@test "sizes are counted as Kubernetes does" {
        local size bytes made
        while read -r size bytes; do
                call attach "$(spec "v$size" type=loop "size=$size")" "$NODE"
                assert_success
                made=$(stat -c %s "$(image_of "v$size")")
                ((made >= bytes && made < bytes + 1048576 && made % 512 == 0))
                kubelet_detach "v$size"
                rm "$(image_of "v$size")"
        done <<<'8Mi 8388608
                8192Ki 8388608
                9437184 9437184
                12M 12000000'
        for size in '' 0 -1 8Qi 8MiB.5 many 1e99 99999999999999999999 9E; do
                call attach "$(spec data type=loop "size=$size" image=x.img)" "$NODE"
                assert_refused
                [[ ! -e $POOL/x.img ]]
        done
        assert_nothing_left
}

@test "both spellings of fsGroup are left to kubelet" {
        lifecycle_up data type=loop size=8Mi
        kubelet_unpublish data
        kubelet_publish data pod-1 @fsGroup=2345 @mounterArgs.FsGroup=2345
        is "$(stat -c %u:%g "$(pod_dir data)")" 0:0
        kubelet_unpublish data
        kubelet_publish data pod-1 @mounterArgs.FsGroup=
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "mountOptions reach the mounts" {
        lifecycle_up data type=loop size=8Mi mountOptions=noatime,noexec
        assert_node_attributes "$(global_dir data)" noatime nosuid nodev
        assert_node_attributes "$(pod_dir data)" noatime noexec nosuid nodev
        run ! bash -c 'cp /bin/true "$1/true" && "$1/true"' bash "$(pod_dir data)"
        lifecycle_down data
        assert_nothing_left
}

@test "mountOptions that say ro make it read-only" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        lifecycle_up data type=loop size=8Mi mountOptions=ro
        run ! touch "$(pod_dir data)/file"
        lifecycle_down data
        assert_nothing_left
}

# ---- secrets

# A password, and how kubelet hands it over.
SECRET=correct-horse-battery
SECRET_BASE64=Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5

@test "secrets are in no record, no log and no reply" {
        lifecycle_up data type=loop size=8Mi
        kubelet_unpublish data
        kubelet_publish data pod-1 "@secret/password=$SECRET_BASE64" "@secret/user=$SECRET_BASE64"
        assert_no_secret "$SECRET" "$SECRET_BASE64"
        kubelet_unpublish data
        kubelet_unstage data
        kubelet_detach data
        assert_no_secret "$SECRET" "$SECRET_BASE64"
        assert_nothing_left
}

@test "secrets stay secret when the call fails" {
        local json_text verb
        json_text=$(spec data type=floppy "@secret/password=$SECRET_BASE64")
        for verb in attach isattached; do
                call "$verb" "$json_text" "$NODE"
                assert_no_secret "$SECRET" "$SECRET_BASE64"
        done
        call waitforattach /dev/null "$json_text"
        assert_no_secret "$SECRET_BASE64"
        call mountdevice "$(global_dir data)" /dev/null "$json_text"
        assert_no_secret "$SECRET_BASE64"
        call mount "$(pod_dir data)" "$json_text"
        assert_refused
        assert_no_secret "$SECRET_BASE64"
        [[ ! -e $(pod_dir data) ]]
}

@test "secrets stay secret when the JSON is broken" {
        local json_text
        for json_text in \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\", \"kubernetes.io/pvOrVolumeName\": \"data\"" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\" \"a\": 1}" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64" \
                "{\"kubernetes.io/secret/password\": $SECRET_BASE64}" \
                "{\"kubernetes.io/secret/password\": [\"$SECRET_BASE64\"], \"kubernetes.io/secret/password\": 1}" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\": 1}" \
                "{\"kubernetes.io/secret/password\" \"$SECRET_BASE64\": 1}" \
                "{\"$SECRET_BASE64\", \"kubernetes.io/secret/password\": 1}" \
                "$SECRET_BASE64" "[\"$SECRET_BASE64\"]" "\"$SECRET_BASE64\"" \
                "{\"kubernetes.io/secret/password\": \"$SECRET_BASE64\\u0000\", \"kubernetes.io/pvOrVolumeName\": 7}"; do
                call attach "$json_text" "$NODE"
                assert_no_secret "$SECRET_BASE64"
                call mount "$(pod_dir data)" "$json_text"
                assert_no_secret "$SECRET_BASE64"
        done
        is "$(mounts_here)" ""
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "a secret that is no text is dropped like any other" {
        call attach "$(jq -c '. + {"kubernetes.io/secret/a": 12345678901, "kubernetes.io/secret/b": {"c": "SeCrEt"}, "kubernetes.io/secret/d": null}' \
                <<<"$(loop_spec data)")" "$NODE"
        assert_success
        assert_no_secret 12345678901 SeCrEt
        kubelet_detach data
        assert_nothing_left
}

@test "the values of options that nobody knows are not logged" {
        call attach "$(loop_spec data password=hunter2hunter2 example.org/token=abcdefabcdef)" "$NODE"
        assert_success
        assert_no_secret hunter2hunter2 abcdefabcdef
        kubelet_detach data
}

# ---- names

# odd_names: one a line.
odd_names() {
        printf '%s\n' 'with space' 'grün-日本' 'a%2Fb' '%' 'a"b\c' '-rf' '--help' '.hidden' 'a.json' '*' "it's" '$(x)' 'trailing ' \
                "$(printf 'x%.0s' {1..253})" "$(printf 'ü%.0s' {1..120})" 'pvc-0e5a7c1e-1111-2222-3333-444455556666'
}

@test "volumes may have odd names" {
        local name
        while read -r name; do
                call getvolumename "$(loop_spec "$name")"
                is "$(jq -r .volumeName <<<"$json")" "$name" "volumeName"
        done < <(odd_names)
}

@test "the whole life of a volume with an odd name" {
        local name
        while IFS= read -r name; do
                SPECS=() DEVICES=()
                kubelet_attach "$name" type=loop size=8Mi image=same.img
                kubelet_stage "$name"
                kubelet_publish "$name"
                kubelet_unpublish "$name"
                kubelet_unstage "$name"
                kubelet_detach "$name"
                assert_nothing_left
        done < <(odd_names | grep -E 'space|grün|%2F|"|^-rf|^x')
}

@test "names that are no names are refused by every verb and lead nowhere" {
        local name
        mkdir -p "$STATE_DIR/volumes"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/volumes"
        echo '{}' >"$STATE_DIR/victim.json"
        for name in .. . ../victim ../../etc/x /etc/passwd a/b a/../../victim ''; do
                node_snapshot
                call getvolumename "$(spec "$name")"
                if [[ $name == */* || $name == . || $name == .. || -z $name ]]; then
                        [[ $(jq -r .status <<<"$json") == Failure || $(jq -r .volumeName <<<"$json") == "$name" ]]
                fi
                call attach "$(loop_spec "$name")" "$NODE"
                [[ $(jq -r .status <<<"$json") == Failure ]] || call detach "$name" "$NODE"
                call detach "$name" "$NODE"
                is "$(<"$STATE_DIR/victim.json")" '{}'
                [[ ! -e $STATE_DIR/victim.img && ! -e $BATS_TEST_TMPDIR/victim.img && ! -e $STATE_DIR/pools/victim.img ]]
        done
        rm "$STATE_DIR/victim.json"
        assert_nothing_left
}

@test "detach of a name that leads elsewhere touches nothing there" {
        local name
        mkdir -p "$STATE_DIR/volumes" "$BATS_TEST_TMPDIR/etc"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/volumes"
        printf '{"version": 1, "name": "x", "driver": "flexgraft", "type": "loop"}\n' >"$BATS_TEST_TMPDIR/etc/x.json"
        cp "$BATS_TEST_TMPDIR/etc/x.json" "$BATS_TEST_TMPDIR/before"
        for name in ../../etc/x "$BATS_TEST_TMPDIR/etc/x" ../../etc/x.json .. . '' ../..; do
                call detach "$name" "$NODE"
                cmp "$BATS_TEST_TMPDIR/etc/x.json" "$BATS_TEST_TMPDIR/before"
        done
        is "$(find "$BATS_TEST_TMPDIR/etc" -type f)" "$BATS_TEST_TMPDIR/etc/x.json"
        assert_nothing_left
}

@test "names that differ only by what a file name needs are different volumes" {
        attached_loop 'a b'
        attached_loop 'a%20b'
        is "$(volume_records | wc -l)" 2 "records"
        [[ ${DEVICES['a b']} != "${DEVICES['a%20b']}" ]]
        kubelet_detach 'a b'
        is "$(loops_of_test)" "${DEVICES['a%20b']}"
        kubelet_detach 'a%20b'
        assert_nothing_left
}

@test "a name with a newline or another control character is one volume or refused, never two lines" {
        call attach "$(spec $'a\nb' type=loop size=8Mi)" "$NODE"
        [[ $(jq -r .status <<<"$json") == Failure ]] || kubelet_detach $'a\nb'
        [[ $(grep -c '^b' "$LOG") == 0 ]]
        assert_nothing_left
}

# ---- JSON that kubelet would not write

@test "a NUL in the JSON is refused" {
        call attach '{"kubernetes.io/pvOrVolumeName": "da\u0000ta", "type": "loop", "size": "8Mi"}' "$NODE"
        assert_refused
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi", "image": "a\u0000b"}' "$NODE"
        assert_refused
        is "$(find "$POOL" -type f 2>/dev/null)" ""
        assert_nothing_left
}

@test "text that is no JSON object fails as such" {
        local text
        for text in '' ' ' '{' '[]' '"x"' null 7 '{"a":1} x' '{"a":1}{"b":2}' $'\xff\xfe' '{"kubernetes.io/pvOrVolumeName":"\xff"}' "{'a':1}"; do
                call getvolumename "$text"
                assert_refused
                call attach "$text" "$NODE"
                assert_refused
                call mount "$(pod_dir data)" "$text"
                assert_refused
        done
        [[ ! -e $(pod_dir data) ]]
        assert_nothing_left
}

@test "a repeated key is refused" {
        call attach '{"kubernetes.io/pvOrVolumeName": "data", "type": "loop", "size": "8Mi", "size": "9Mi"}' "$NODE"
        assert_refused size
        assert_nothing_left
}

@test "the JSON may come from standard input" {
        loop_spec data >"$BATS_TEST_TMPDIR/input"
        CALL_INPUT=$BATS_TEST_TMPDIR/input call getvolumename -
        assert_reply '{"status": "Success", "volumeName": "data"}'
        CALL_INPUT=$BATS_TEST_TMPDIR/input call attach - "$NODE"
        assert_success
        kubelet_detach data
        assert_nothing_left
}

@test "a JSON of two million bytes is refused and one of a hundred thousand is read" {
        local text
        text=$(printf 'x%.0s' {1..1000})
        {
                printf '{"kubernetes.io/pvOrVolumeName": "data", "filler": "'
                for _ in {1..2100}; do printf %s "$text"; done
                printf '"}'
        } >"$BATS_TEST_TMPDIR/input"
        CALL_INPUT=$BATS_TEST_TMPDIR/input call getvolumename -
        assert_refused
        for _ in {1..6}; do text+=$text; done
        call getvolumename "{\"kubernetes.io/pvOrVolumeName\": \"data\", \"filler\": \"$text\"}"
        assert_reply '{"status": "Success", "volumeName": "data"}'
}

@test "JSON nested deeply is refused" {
        local open close
        open=$(printf '[%.0s' {1..3000})
        close=$(printf ']%.0s' {1..3000})
        call getvolumename "{\"kubernetes.io/pvOrVolumeName\": \"data\", \"x\": $open$close}"
        assert_refused
}

# ---- how it is run

@test "an empty environment and another directory do not matter" {
        CALL_PREFIX=(env -i "FLEXGRAFT_CONFIG=$FLEXGRAFT_CONFIG" "FLEXGRAFT_POLICY=$FLEXGRAFT_POLICY" "FLEXGRAFT_POOLS=$FLEXGRAFT_POOLS"
                /usr/bin/env --chdir=/proc/self)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "PATH and the like are not used to find programs" {
        local name
        mkdir "$BATS_TEST_TMPDIR/evil"
        for name in mkfs.ext4 mke2fs e2fsck fsck fsck.ext4 mount umount losetup blkid sh; do
                printf '#!/bin/sh\ntouch "%s/evil/ran"\nexit 0\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/evil/$name"
                chmod 0755 "$BATS_TEST_TMPDIR/evil/$name"
        done
        CALL_PREFIX=(env "PATH=$BATS_TEST_TMPDIR/evil:$PATH" MKE2FS_CONFIG=/dev/null "MKE2FS_FIRST_META_BG=1")
        lifecycle_up data type=loop size=8Mi
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        [[ ! -e $BATS_TEST_TMPDIR/evil/ran ]]
        assert_nothing_left
}

@test "with standard input closed nothing goes wrong" {
        CALL_PREFIX=(bash -c 'exec "$@" <&-' bash)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "a caller that does not read the answer changes nothing about what is done" {
        "$DRIVER" attach "$(loop_spec data)" "$NODE" 2>&1 3>&- | : || :
        "$DRIVER" attach "$(loop_spec data)" "$NODE" >/dev/full 2>&1 3>&- || :
        "$DRIVER" attach "$(loop_spec data)" "$NODE" >&- 2>&- 3>&- || :
        attached_loop data
        is "$(loops_of_test)" "${DEVICES[data]}" "loop devices"
        kubelet_detach data
        assert_nothing_left
}

@test "signals that the caller ignores or blocks do not matter" {
        CALL_PREFIX=(env --ignore-signal=CHLD --ignore-signal=PIPE --ignore-signal=ALRM --block-signal=CHLD --block-signal=TERM)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "the caller's umask does not matter" {
        local mask
        for mask in 0000 0777; do
                CALL_PREFIX=(bash -c "umask $mask"' && exec "$@"' bash)
                lifecycle_up data type=loop size=8Mi
                is "$(stat -c %a "$STATE_DIR" "$STATE_DIR/volumes" | sort -u)" 700 "modes of the state directories"
                is "$(stat -c %a "$(record_of data)")" 600 "mode of the record"
                is "$(stat -c %a "$(image_of data)")" 600 "mode of the image"
                lifecycle_down data
                rm -r "$STATE_DIR"
        done
        CALL_PREFIX=()
        assert_nothing_left
}

@test "a hundred open files of the caller's do not reach mkfs" {
        CALL_PREFIX=(bash -c 'for fd in {20..120}; do eval "exec $fd</dev/null"; done; exec "$@"' bash)
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "a directory of kubelet's below a symbolic link is mounted all the same" {
        mv "$KUBELET" "$BATS_TEST_TMPDIR/real"
        ln -s real "$KUBELET"
        lifecycle_up data type=loop size=8Mi
        is "$(node_mounts_at "$BATS_TEST_TMPDIR/real${KUBELET:+/pods/$POD/volumes/$DRIVER_NAME/data}")" 1
        lifecycle_down data
        assert_nothing_left
}

@test "a relative directory is refused" {
        attached_loop data
        call mountdevice relative/dir "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused DIR
        call mount relative/dir "${SPECS[data]}"
        assert_refused DIR
        call unmount relative/dir
        assert_refused DIR
        kubelet_detach data
        assert_nothing_left
}

@test "one directory, two drivers: each name is its own volume" {
        install_driver flexgraft~loop
        lifecycle_up data size=8Mi
        lifecycle_down data
        install_driver example.org~loop
        lifecycle_up data size=8Mi
        lifecycle_down data
        assert_nothing_left
}

@test "calls for one volume at the same time make one device" {
        local -a pids=()
        local i
        for i in {1..8}; do
                "$DRIVER" attach "$(loop_spec data)" "$NODE" >"$BATS_TEST_TMPDIR/reply.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        is "$(sort -u "$BATS_TEST_TMPDIR"/reply.*)" "{\"status\":\"Success\",\"device\":\"$(loop_of "$(image_of data)")\"}" "the replies"
        is "$(loops_of_test | wc -l)" 1 "loop devices"
        kubelet_detach data
        assert_nothing_left
}
