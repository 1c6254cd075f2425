#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver, as kubelet meets it: init, and the lifecycle of a volume verb by verb.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        mapfile -t VERBS < <(makefile_words VERBS)
        [[ " ${VERBS[*]} " == " init "*" mount "* ]]
}

teardown() {
        driver_teardown
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
        [[ $(json_field .status) == Success ]] || assert_refused "$FLEXGRAFT_CONFIG"
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
        local verb usage words
        for verb in "${VERBS[@]:1}"; do                # init is asked for nothing else, whatever comes with it
                usage=$("$FLEXGRAFT_BIN/verbs/$verb" --help | sed -n "1s/^usage: $verb \\([A-Z_ ]*\\) |.*/\\1/p")
                read -ra words <<<"$usage"
                ((${#words[@]} > 0))
                call "$verb" "${words[@]:1}"
                assert_refused "$verb takes: $usage ("
                call "$verb" "${words[@]}" more
                assert_refused "$verb takes: $usage ("
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

@test "verbs are names of the driver's program, which needs none of them" {
        local verb
        for verb in "${VERBS[@]}"; do
                cmp "$FLEXGRAFT_BIN/flexdriver" "$FLEXGRAFT_BIN/verbs/$verb"
        done
        rm -r "${DRIVER%/*}/verbs"
        call getvolumename "$(loop_spec data)"
        assert_reply '{"status": "Success", "volumeName": "data"}'
}

@test "a verb's program is run by an earlier driver, too, which an upgrade has not replaced yet" {
        is "$(exec -a flexgraft~loop/getvolumename "$FLEXGRAFT_BIN/verbs/getvolumename" "$(loop_spec data)")" '{"status":"Success","volumeName":"data"}'
        is "$(exec -a flexgraft~tmpfs/init "$FLEXGRAFT_BIN/verbs/init" | jq .capabilities.attach)" false
}

@test "a driver that has the name of a verb is a driver" {
        install_driver example.org~mount
        call getvolumename "$(loop_spec data)"
        assert_reply '{"status": "Success", "volumeName": "data"}'
        call nonsense
        assert_not_supported
}

@test "a verb's program may be run by any path, and init with whatever else comes with it" {
        local path
        for path in getvolumename ./getvolumename "$BATS_TEST_TMPDIR/getvolumename"; do
                cp -l "$FLEXGRAFT_BIN/verbs/getvolumename" "$BATS_TEST_TMPDIR/getvolumename" 2>/dev/null ||
                        cp -f "$FLEXGRAFT_BIN/verbs/getvolumename" "$BATS_TEST_TMPDIR/getvolumename"
                is "$(cd "$BATS_TEST_TMPDIR" && PATH=$BATS_TEST_TMPDIR:$PATH && "$path" "$(loop_spec data)")" '{"status":"Success","volumeName":"data"}'
        done
        call init again
        assert_field .status Success
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
        device=$(json_field .device)
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
        assert_detached
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

# bats test_tags=kernel,kernel_too
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

@test "where the kernel lacks fspick, a pod that writes a volume of pods that read is refused, with the kernel that has it" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        lifecycle_up data type=loop @readwrite=ro
        make_dir "$(pod_dir data second)"
        at_syscall --at fspick --fail ENOSYS "$DRIVER" mount "$(pod_dir data second)" "$(publish_spec data second @readwrite=rw)"
        is "$AT_REACHED" 1
        assert_refused 'no fspick, which came with Linux 5.2,'
        rmdir "$(pod_dir data second)"
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
