#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver: taking away what is busy, dead or stacked.

load helpers
load driver_helpers
load driver_volumes_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
}

teardown() {
        driver_teardown
}

# ---- taking away

# bats test_tags=kernel
@test "what a pod has mounted below goes, too" {
        up data 8Mi
        local dir
        dir=$(pod_dir data)
        mkdir "$dir/one"
        mount -t tmpfs one "$dir/one"
        mkdir "$dir/one/two"
        mount -t tmpfs two "$dir/one/two"
        mkdir "$dir/one/two/three"
        mount -t tmpfs three "$dir/one/two/three"
        mkdir "$dir/with space"
        mount -t tmpfs space "$dir/with space"
        lifecycle_down data
        assert_nothing_left
}

@test "a mount below the global mount is unmounted, too" {
        up data 8Mi
        mkdir "$(global_dir data)/sub"
        mount -t tmpfs sub "$(global_dir data)/sub"
        lifecycle_down data
        assert_nothing_left
}

@test "mounts whose paths only begin alike stay" {
        up data 8Mi
        mkdir "$(pod_dir data)2"
        mount -t tmpfs other "$(pod_dir data)2"
        lifecycle_down data
        is "$(mounts_here)" "$(pod_dir data)2"
        umount "$(pod_dir data)2"
        rmdir "$(pod_dir data)2"
        assert_nothing_left
}

@test "a directory that was mounted on twice is free of both" {
        up data 8Mi
        mount --bind "$(global_dir data)" "$(pod_dir data)"
        mount -t tmpfs third "$(pod_dir data)"
        is "$(node_mounts_at "$(pod_dir data)")" 3
        lifecycle_down data
        assert_nothing_left
}

# bats test_tags=kernel
@test "what a process is in is detached lazily when its time is over, and the message says so" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        local busy
        background sh -c 'cd "$1" && exec sleep 1000' sh "$(pod_dir data)"
        busy=$BACKGROUND_PID
        wait_until 5 process_is_in "$busy" "$(pod_dir data)"
        not_hung call unmount "$(pod_dir data)"
        assert_success
        assert_field '.message | contains("detached lazily")' true
        write_config
        rmdir "$(pod_dir data)" 2>/dev/null || [[ ! -e $(pod_dir data) ]]
        is "$(node_mounts_at "$(pod_dir data)")" 0
        end_process "$busy"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a global mount that a process is in is detached lazily, and its device when the process ends" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        local busy
        background sh -c 'cd "$1" && exec sleep 1000' sh "$(global_dir data)"
        busy=$BACKGROUND_PID
        wait_until 5 process_is_in "$busy" "$(global_dir data)"
        kubelet_unpublish data
        call unmountdevice "$(global_dir data)"
        assert_success
        assert_field '.message | contains("detached lazily")' true
        rmdir "$(global_dir data)" 2>/dev/null || [[ ! -e $(global_dir data) ]]
        # kubelet finds the device busy, and would try again
        is "$(stat -L -c %d "/proc/$busy/cwd")" "$(stat -c %r "${DEVICES[data]}")" "the device that the process keeps mounted"
        call detach data "$NODE"
        if [[ $(json_field .status) == Failure ]]; then
                assert_refused
                end_process "$busy"
                wait_until 5 hold_once "${DEVICES[data]}"
                kubelet_detach data
        else
                end_process "$busy"
                wait_until 5 device_is_free "${DEVICES[data]}"
        fi
        assert_nothing_left
}

hold_once() {
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$1" --once >/dev/null 2>&1
}

@test "the reply for an idle mount does not say that it was detached lazily" {
        up data 8Mi
        call unmount "$(pod_dir data)"
        assert_reply '{"status": "Success"}'
        take_down data
        assert_nothing_left
}

# dead_mount DIR [--read]: a FUSE filesystem there that answers nothing.
dead_mount() {
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$@"
}

# bats test_tags=kernel,deep
@test "a mount whose server hangs is taken away in time" {
        local how
        for how in '' --read; do
                up data 8Mi
                mkdir -p "$(pod_dir data)/fuse"
                # shellcheck disable=SC2086
                dead_mount "$(pod_dir data)/fuse" $how
                TIMEOUTS='"unmount": 1' write_config
                not_hung kubelet_unpublish data
                write_config
                kubelet_unstage data
                kubelet_detach data
        done
        assert_nothing_left
}

# bats test_tags=kernel
@test "a mount whose server is dead is taken away" {
        up data 8Mi
        mkdir "$(pod_dir data)/fuse"
        dead_mount "$(pod_dir data)/fuse"
        end_process "$BACKGROUND_PID"
        run ! stat "$(pod_dir data)/fuse"
        lifecycle_down data
        assert_nothing_left
}

@test "a pod's directory that is itself a dead mount is free afterwards" {
        TIMEOUTS='"unmount": 1' write_config
        local how dir
        for how in hangs dead; do
                SPECS[data]=$(spec data type=tmpfs)
                kubelet_publish data
                dir=$(pod_dir data)
                dead_mount "$dir"
                [[ $how == hangs ]] || end_process "$BACKGROUND_PID"
                call unmount "$dir"
                assert_success
                is "$(node_mounts_at "$dir")" 0
                [[ ! -e $dir ]] || rmdir "$dir"
        done
        assert_nothing_left
}

@test "a global directory that is a dead mount is free afterwards" {
        TIMEOUTS='"unmount": 1' write_config
        up data 8Mi
        kubelet_unpublish data
        dead_mount "$(global_dir data)" --read
        call unmountdevice "$(global_dir data)"
        assert_success
        is "$(mounts_here)" ""
        [[ ! -e $(global_dir data) ]] || rmdir "$(global_dir data)"
        kubelet_detach data
        assert_nothing_left
}

@test "a dead mount elsewhere in kubelet's directory does not matter" {
        mkdir -p "$KUBELET/pods/other/volumes/nfs/x"
        dead_mount "$KUBELET/pods/other/volumes/nfs/x" --read
        up data 8Mi
        lifecycle_down data
        is "$(mounts_here)" "$KUBELET/pods/other/volumes/nfs/x"
        end_process "$BACKGROUND_PID"
        umount -l "$KUBELET/pods/other/volumes/nfs/x"
        rmdir "$KUBELET/pods/other/volumes/nfs/x"
        assert_nothing_left
}

@test "unmount of a directory that is no mount point leaves the files in it" {
        local dir
        dir=$(pod_dir data)
        make_dir "$dir/sub"
        echo precious >"$dir/file"
        call unmount "$dir"
        assert_success
        is "$(<"$dir/file")" precious
        dir=$(global_dir data)
        make_dir "$dir/sub"
        echo precious >"$dir/file"
        call unmountdevice "$dir"
        assert_success
        is "$(<"$dir/file")" precious
}

@test "unmount does not follow a symbolic link" {
        mkdir "$BATS_TEST_TMPDIR/theirs"
        mount -t tmpfs theirs "$BATS_TEST_TMPDIR/theirs"
        make_dir "$(pod_dir x)"
        ln -s "$BATS_TEST_TMPDIR/theirs" "$(pod_dir data)"
        call unmount "$(pod_dir data)"
        call unmountdevice "$(pod_dir data)"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/theirs"
        umount "$BATS_TEST_TMPDIR/theirs"
}

@test "mount does not follow a symbolic link out of the pod's directory" {
        mkdir "$BATS_TEST_TMPDIR/theirs"
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        make_dir "$(pod_dir x)"
        rmdir "$(pod_dir x)"
        ln -s "$BATS_TEST_TMPDIR/theirs" "$(pod_dir data)"
        call mount "$(pod_dir data)" "${SPECS[data]}"
        assert_refused
        is "$(mounts_here)" "$(global_dir data)"
        rm "$(pod_dir data)"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "unmount of / and of kubelet's own mounts is refused or does nothing" {
        call unmount /
        assert_refused
        call unmountdevice /
        assert_refused
        call unmount "$KUBELET/../"
        assert_refused
        mountpoint -q /proc
}

@test "a mount below what is mounted on a directory above is not said to be taken away" {
        local parent
        up data 8Mi
        parent=$(pod_dir data)
        parent=${parent%/*}
        mount -t tmpfs above "$parent"
        call unmount "$(pod_dir data)"
        assert_refused "below what is mounted"
        umount "$parent"
        is "$(node_mounts_at "$(pod_dir data)")" 1
        lifecycle_down data
        assert_nothing_left
}

@test "unmount succeeds if kubelet has unmounted already" {
        up data 8Mi
        umount "$(pod_dir data)"
        umount "$(global_dir data)"
        lifecycle_down data
        assert_nothing_left
}

@test "unmount succeeds if the pod's directory and its parents are gone" {
        up data 8Mi
        umount "$(pod_dir data)"
        rm -r "$KUBELET/pods/$POD"
        call unmount "$(pod_dir data)"
        assert_success
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a pod that is gone without unmount does not keep the volume attached" {
        up data 8Mi
        umount "$(pod_dir data)"
        rmdir "$(pod_dir data)"
        kubelet_unstage data
        kubelet_detach data
        assert_nothing_left
}

@test "a shared mount around kubelet's directory changes nothing" {
        mount --bind "$KUBELET" "$KUBELET"
        mount --make-shared "$KUBELET"
        up data 8Mi
        is "$(node_mounts_at "$(pod_dir data)")" 1
        lifecycle_down data
        is "$(mounts_here)" "$KUBELET"
        umount "$KUBELET"
        assert_nothing_left
}

@test "a container that has the pod's directory sees the mount come and go" {
        mount --bind "$KUBELET" "$KUBELET"
        mount --make-shared "$KUBELET"
        background_ready unshare --mount --propagation slave sh -c 'echo ready; exec sleep 1000'
        up data 8Mi
        echo text >"$(pod_dir data)/file"
        is "$(nsenter --target "$BACKGROUND_PID" --mount -- cat "$(pod_dir data)/file")" text
        lifecycle_down data
        run ! nsenter --target "$BACKGROUND_PID" --mount -- grep -F "$(pod_dir data)" /proc/self/mountinfo
        umount "$KUBELET"
        assert_nothing_left
}

@test "a container that keeps a copy of the mount does not keep the loop device" {
        up data 8Mi
        # a mount namespace that was copied while the volume was mounted, and that no propagation reaches
        background_ready unshare --mount --propagation private sh -c 'echo ready; exec sleep 1000'
        kubelet_unpublish data
        call unmountdevice "$(global_dir data)"
        assert_success
        [[ ! -e $(global_dir data) ]] || rmdir "$(global_dir data)"
        call detach data "$NODE"                # busy, or let go when the last mount is
        end_process "$BACKGROUND_PID"
        wait_until 5 hold_once "${DEVICES[data]}" || :
        kubelet_detach data
        wait_until 5 no_loops_of_test
        assert_nothing_left
}

# make_buckets: the directories of the index that paths can be in. One that is there costs some calls more than one that is not, and
# whether one of hundreds of paths shares that of the path in question is chance.
make_buckets() {
        printf "$STATE_DIR/uses/d%03x\n" {0..4095} | xargs mkdir -p
}

# unmount_calls N: sets CALLS: the system calls of unmount of a pod's directory that has another name than its volume, and of one
# that no record names, with records of N volumes that other pods have.
unmount_calls() {
        local dir=$KUBELET/pods/$POD/volumes/$DRIVER_NAME/elsewhere i template
        make_dir "$dir"
        call mount "$dir" "$(publish_spec data "$POD")"
        assert_success || return 1
        template=$(jq -c . "$(record_of data)")
        for ((i = 1; i <= $1; i++)); do
                sed -e "s#\"name\":\"data\"#\"name\":\"v$i\"#; s#/elsewhere\"#/v$i\"#g" <<<"$template" >"$(record_of "v$i")"
        done
        rm -rf "$STATE_DIR/uses"
        call unmount "$KUBELET/pods/$POD/volumes/$DRIVER_NAME/unknown" # it makes the index anew
        make_buckets
        at_syscall --timeout 60 "$DRIVER" unmount "$dir"
        assert_success && is "$(node_mounts_at "$dir")" 0 || return 1
        [[ ! -e $dir ]] || rmdir "$dir"
        [[ ! -e $(record_of data) ]] || return 1
        CALLS=$AT_TOTAL
        at_syscall --timeout 60 "$DRIVER" unmount "$KUBELET/pods/$POD/volumes/$DRIVER_NAME/unknown"
        assert_success || return 1
        CALLS=$((CALLS + AT_TOTAL)) # no record ends this search
        rm -f "$STATE_DIR"/volumes/v*.json
}

# bats test_tags=deep
@test "unmount of a directory that has another name than its volume costs the same however many volumes are on the node" {
        local few
        SPECS[data]=$(spec data type=tmpfs)
        unmount_calls 10
        few=$CALLS
        unmount_calls 300
        echo "$few system calls with 10 volumes, $CALLS with 300"
        ((CALLS - few < 7)) # a record that is read is seven
}

# bats test_tags=deep
@test "no kill of mount leaves a record of a directory that the index does not find" {
        local dir=$KUBELET/pods/$POD/volumes/$DRIVER_NAME/elsewhere n=0
        SPECS[data]=$(spec data type=tmpfs)
        unmount_calls 0 # the index is complete from here
        while ((++n < 60)); do
                make_dir "$dir"
                at_syscall --timeout 60 --at "linkat:$n" --kill "$DRIVER" mount "$dir" "$(publish_spec data "$POD")"
                ((AT_REACHED)) || break
                [[ ! -e $(record_of data) ]] || index_entries | grep -q '/d[^:]*:v:data.json$'
                call unmount "$dir"
                assert_success
                is "$(node_mounts_at "$dir")" 0
        done
        ((n > 1))
        call unmount "$dir"
        assert_success
}
