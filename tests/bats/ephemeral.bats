#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ephemeral volumes: made by a pod's options alone when it is mounted, gone when it is unmounted, and another for each pod.

load helpers
load driver_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        needs volume-list volume-reconcile
        make_dir "$KUBELET/pods/pod-1/volumes/$DRIVER_NAME"
        make_dir "$KUBELET/pods/pod-2/volumes/$DRIVER_NAME"
        SPEC=$(spec scratch ephemeral=true size=8Mi)
        DIR=$(pod_dir scratch)
}

teardown() {
        driver_teardown
}

provisioned() {
        find "$STATE_DIR/provisioned" -name '*.json' -printf '%f\n' 2>/dev/null | sort
}

nothing_is_left() {
        assert_nothing_left && is "$(provisioned)" '' 'provisioned volumes' && is "$(ls "$POOL" 2>/dev/null)" '' images
}

@test "through all of kubelet's calls it is there from mount to unmount, and nowhere before or after" {
        local verb
        call attach "$SPEC" "$NODE"
        assert_reply '{"status": "Success", "device": ""}'
        call waitforattach '' "$SPEC"
        assert_success
        call mountdevice "$(global_dir scratch)" '' "$SPEC"
        assert_success
        is "$(provisioned)" ''
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(node_mount_type "$DIR")" ext4
        echo hello >"$DIR/file"
        is "$(provisioned | wc -l)" 1
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(cat "$DIR/file")" hello
        for verb in 1 2; do
                call unmount "$DIR"
                assert_success
                nothing_is_left
        done
        call unmountdevice "$(global_dir scratch)"
        assert_success
        call detach scratch "$NODE"
        assert_success
        nothing_is_left
}

@test "volume-reconcile waits for no unmount that deletes a pod's volume, with the lock of the name that other pods' volumes have" {
        call mount "$DIR" "$SPEC"
        assert_success
        stopped_at renameat "$DRIVER" unmount "$DIR" # it is unmounted, and its record says next that it is half deleted
        meanwhile "$STATE_DIR/provisioned/.lock" "$FLEXGRAFT_BIN/volume-reconcile" '{}'
        process_is_gone "$BACKGROUND_PID"
        is "$(jq -r '.status, .problems[]?' "$MEANWHILE")" Success
        resumed
        is "$(jq -r .status "$STOPPED")" Success
        nothing_is_left
}

@test "while a pod's volume is deleted another pod's of the same name is mounted and unmounted" {
        local other=$KUBELET/pods/pod-2/volumes/$DRIVER_NAME/scratch
        call mount "$DIR" "$SPEC"
        assert_success
        # LOOP_CLR_FD: it is unmounted, and its room is given back next
        at_syscall --at ioctl --where 2=$((0x4c01)) --run-output "$BATS_TEST_TMPDIR/other" \
                --run "'$DRIVER' mount '$other' '$SPEC'; '$DRIVER' unmount '$other'; '$DRIVER' mount '$other' '$SPEC'" "$DRIVER" unmount "$DIR"
        is "$status $AT_REACHED" "0 1"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/other" | sort | uniq -c | tr -s ' ')" " 3 Success"
        is "$(node_mount_type "$other")" ext4
        call unmount "$other"
        assert_success
        nothing_is_left
}

@test "a driver named ephemeral has such volumes alone, and only mount and unmount" {
        install_driver flexgraft~ephemeral
        call init
        assert_field .capabilities.attach false
        call mount "$KUBELET/pods/pod-1/volumes/scratch" "$(spec scratch size=8Mi)"
        assert_success
        is "$(provisioned | wc -l)" 1
        call unmount "$KUBELET/pods/pod-1/volumes/scratch"
        assert_success
        nothing_is_left
}

@test "a mount of an ephemeral volume has the time to make one, whatever says that it is one" {
        call mount "$DIR" "$SPEC"
        assert_success
        TIMEOUTS='"call": 1, "unmount": 1, "device": 1, "command": 1' write_config
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
        call mount "$DIR" "$SPEC"
        assert_refused "another call for this volume" "within 4 s"
        install_driver flexgraft~ephemeral
        call mount "$KUBELET/pods/pod-1/volumes/scratch" "$(spec scratch size=8Mi)"
        assert_refused "another call for this volume" "within 4 s"
        end_process "$BACKGROUND_PID"
        install_driver flexgraft~flexgraft
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "an ephemeral volume is one, too, where JSON escapes the word" {
        local spec
        spec=${SPEC/ephemeral/'\u0065phemeral'}
        [[ $spec == *u0065* ]]
        call mount "$DIR" "$spec"
        assert_success
        is "$(provisioned | wc -l)" 1
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "volumes of one name in two pods are two" {
        local other
        POD=pod-2
        other=$(pod_dir scratch)
        call mount "$DIR" "$SPEC"
        assert_success
        echo one >"$DIR/file"
        call mount "$other" "$SPEC"
        assert_success
        [[ ! -e $other/file ]]
        call unmount "$DIR"
        assert_success
        is "$(provisioned | wc -l)" 1
        is "$(node_mount_type "$other")" ext4
        call unmount "$other"
        assert_success
        nothing_is_left
}

@test "volume-list tells of each ephemeral volume which pod has it" {
        local other
        POD=pod-2
        other=$(pod_dir scratch)
        call mount "$DIR" "$SPEC"
        assert_success
        call mount "$other" "$SPEC"
        assert_success
        helper volume-list
        is "$(jq -r '.volumes[].uses | map(.pod, .target) | join(" ")' <<<"$output" | sort)" "pod-1 $DIR
pod-2 $other"
        umount "$other"
        helper volume-list
        is "$(jq -r '.volumes[].uses | map(.pod) | join(" ")' <<<"$output" | sort)" "
pod-1"
        call unmount "$DIR"
        assert_success
        call unmount "$other"
        assert_success
        nothing_is_left
}

@test "what cannot be made or mounted leaves nothing" {
        local options
        for options in 'ephemeral=true' 'ephemeral=true size=8Mi pool=none' 'ephemeral=true size=8Mi profile=none' 'ephemeral=yes size=8Mi' \
                'ephemeral=true size=8Mi @readwrite=ro' 'ephemeral=true size=8Mi @fsType=nofs' 'ephemeral=true size=8Mi usage=Other' \
                'ephemeral=true size=8Mi type=pmem' 'ephemeral=true size=8Mi type=tmpfs' 'ephemeral=true size=8Mi mountOptions=nonsense' \
                'ephemeral=true size=900000Gi'; do
                # shellcheck disable=SC2086 # the words of the options
                call mount "$DIR" "$(spec scratch $options)"
                assert_refused
                nothing_is_left
        done
}

@test "a pool whose volumes are no devices makes no ephemeral volume, by its name or by a profile" {
        local options
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        echo '{"profile_matrix": {"shared": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.directory"}, "volume_capabilities":
                {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": {}}}}' >"$FLEXGRAFT_PROFILES"
        mkdir -m 0700 "$BATS_TEST_TMPDIR/directories"
        printf '{"name": "directories", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/directories" >"$FLEXGRAFT_POOLS/directories.json"
        for options in pool=directories profile=shared 'pool=directories profile=shared'; do
                # shellcheck disable=SC2086 # the words of the options
                call mount "$DIR" "$(spec scratch ephemeral=true size=8Mi $options)"
                assert_refused 'volumes for this use'
                is "$(provisioned)" ''
                is "$(find "$BATS_TEST_TMPDIR/directories" -mindepth 1 -type d)" ''
        done
}

@test "one that an earlier call has made is kept, with its content, when a repeat fails" {
        call mount "$DIR" "$SPEC"
        assert_success
        echo hello >"$DIR/file"
        umount "$DIR"
        write_policy '"kinds": ["ephemeral"]'
        call mount "$DIR" "$SPEC"
        assert_refused loop
        is "$(provisioned | wc -l)" 1
        rm "$FLEXGRAFT_POLICY"
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(cat "$DIR/file")" hello
        call unmount "$DIR"
        assert_success
        rmdir "$DIR" 2>/dev/null || :
        nothing_is_left
}

@test "a volume of a profile has its filesystem" {
        grep -qw xfs /proc/filesystems || modprobe --quiet xfs || skip "this kernel has no xfs"
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        echo '{"profile_matrix": {"fast": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"}, "volume_capabilities":
                {"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}, "create_parameters": {}}}}' >"$FLEXGRAFT_PROFILES"
        call mount "$DIR" "$(spec scratch ephemeral=true size=300Mi profile=fast)"
        assert_success
        is "$(node_mount_type "$DIR")" xfs
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "a profile for readers makes no volume for one pod, which would be empty for ever" {
        local what
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        for what in '{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_READER_ONLY"}}' \
                '{"mount": {"mount_flags": ["ro"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'; do
                echo '{"profile_matrix": {"read": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"},
                        "volume_capabilities": '"$what"', "create_parameters": {}}}}' >"$FLEXGRAFT_PROFILES"
                call mount "$DIR" "$(spec scratch ephemeral=true size=8Mi profile=read)"
                assert_refused read-only
                nothing_is_left
        done
}

@test "what the mount flags of a profile allow, set-user-ID programs and devices, a pod's own volume has" {
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        echo '{"profile_matrix": {"open": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"}, "volume_capabilities":
                {"mount": {"mount_flags": ["suid", "dev", "noatime"]}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}}}' >"$FLEXGRAFT_PROFILES"
        call mount "$DIR" "$(spec scratch ephemeral=true size=8Mi profile=open)"
        assert_success
        assert_node_attributes "$DIR" '!nosuid' '!nodev' noatime
        call unmount "$DIR"
        assert_success
        call mount "$DIR" "$(spec scratch ephemeral=true size=8Mi profile=open mountOptions=nosuid)"
        assert_success
        assert_node_attributes "$DIR" nosuid '!nodev' noatime
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "what an earlier version mounted with a profile for readers its pod has again after a reboot" {
        local record
        call mount "$DIR" "$SPEC"
        assert_success
        echo hello >"$DIR/file"
        record=$STATE_DIR/provisioned/$(provisioned)
        jq -c '.accessMode = "SINGLE_NODE_READER_ONLY"' "$record" >"$BATS_TEST_TMPDIR/record"
        cat "$BATS_TEST_TMPDIR/record" >"$record"
        call mount "$DIR" "$SPEC"
        assert_success
        umount "$DIR" # as a reboot does, after which volume-reconcile removes the volume's own record
        losetup --detach "$(loops_of_test)"
        rm "$(record_of "$(jq -r .name "$record")")"
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(cat "$DIR/file")" hello
        echo more >>"$DIR/file"
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "a pod has its volume again after a reboot, also where volume-create has modified what is done when it is deleted" {
        local name
        SPEC=$(spec scratch ephemeral=true size=8Mi eraseAfter=true)
        call mount "$DIR" "$SPEC"
        assert_success
        name=$(jq -r .name "$STATE_DIR/provisioned/$(provisioned)")
        helper volume-create "{\"name\": \"$name\", \"modify\": true, \"eraseAfter\": false}"
        assert_success
        umount "$DIR"
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(jq .eraseAfter "$STATE_DIR/provisioned/$(provisioned)")" false
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "a policy's kinds name ephemeral, and the type of its pool" {
        write_policy '"kinds": ["loop"]'
        call mount "$DIR" "$SPEC"
        assert_refused ephemeral
        write_policy '"kinds": ["ephemeral"]'
        call mount "$DIR" "$SPEC"
        assert_refused loop
        nothing_is_left
        write_policy '"kinds": ["ephemeral", "loop"]'
        call mount "$DIR" "$SPEC"
        assert_success
        call unmount "$DIR"
        assert_success
}

@test "while it cannot be deleted unmount fails, and again deletes it" {
        local image
        call mount "$DIR" "$SPEC"
        assert_success
        image=$(echo "$POOL"/*.img)
        chattr +i "$image" 2>/dev/null || mount --bind "$image" "$image"
        call unmount "$DIR"
        assert_refused
        is "$(provisioned | wc -l)" 1
        chattr -i "$image" 2>/dev/null || umount "$image"
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

@test "unmount is refused while a process has a file of it open, names the process, and is refused again without a pause" {
        local busy trace=$BATS_TEST_TMPDIR/trace
        TIMEOUTS='"unmount": 3' write_config
        call mount "$DIR" "$SPEC"
        assert_success
        # a name by which it would look like two processes
        background sh -c 'exec 3>"$1/file" && printf "b), 1 (init" >/proc/$$/comm && kill -STOP $$' sh "$DIR"
        busy=$BACKGROUND_PID
        wait_until 5 test -e "$DIR/file"
        wait_until 5 grep -qx 'b), 1 (init' "/proc/$busy/comm"
        CALL_PREFIX=(strace -f -o "$trace.first" -e trace=ppoll)
        call unmount "$DIR"
        assert_refused "process $busy (b?? 1 ?init); unmount deletes it when they are closed"
        (($(grep -c 'ppoll(NULL, 0' "$trace.first") > 0)) # a pause is seen like this
        is "$(node_mounts_at "$DIR")" 0
        CALL_PREFIX=(strace -f -o "$trace" -e trace=ppoll)
        call unmount "$DIR"
        CALL_PREFIX=()
        assert_refused "process $busy (b"
        is "$(grep -c 'ppoll(NULL, 0' "$trace" || :)" 0 'pauses of a repeated refusal'
        is "$(provisioned | wc -l)" 1
        helper volume-reconcile '{}' # which sees it
        end_process "$busy"
        call unmount "$DIR"
        assert_success
        nothing_is_left
        is "$(find "$STATE_DIR" -path '*/sightings/*' -name '*.json')" ''
}

@test "volume-reconcile deletes one whose mount is gone, or was never made" {
        call mount "$DIR" "$SPEC"
        assert_success
        umount "$DIR"
        helper volume-reconcile
        assert_success
        [[ $json == *'deleted an ephemeral volume'* ]]
        rmdir "$DIR" 2>/dev/null || :
        nothing_is_left
        at_syscall --at move_mount --kill "$DRIVER" mount "$DIR" "$SPEC"
        is "$AT_REACHED" 1
        is "$(provisioned | wc -l)" 1
        helper volume-reconcile
        assert_success
        nothing_is_left
}

@test "what was made for a directory whose mount then fails is deleted by its unmount" {
        at_syscall --at move_mount --fail EIO "$DRIVER" mount "$DIR" "$SPEC"
        is "$AT_REACHED $(jq -r .status <<<"$output") $(provisioned | wc -l)" "1 Failure 1"
        call unmount "$DIR"
        assert_success
        nothing_is_left
}

# node_reboots: what is mounted of the two pods' volumes is gone, with its devices; the records are of the boot before.
node_reboots() {
        local file
        umount "$DIR" "$1"
        for file in "$STATE_DIR"/volumes/*.json; do
                losetup --detach "$(jq -r .device "$file")" 2>/dev/null || :
                sed "s/$(</proc/sys/kernel/random/boot_id)/00000000-1111-2222-3333-444444444444/" "$file" >"$file.new"
                mv "$file.new" "$file"
        done
        wait_until 5 no_loops_of_driver
}

@test "after a reboot volume-reconcile deletes the volume of a pod that is gone, though another's of its name was mounted before" {
        local other=$KUBELET/pods/pod-2/volumes/$DRIVER_NAME/scratch
        call mount "$other" "$SPEC"
        assert_success
        call mount "$DIR" "$SPEC"
        assert_success
        echo kept >"$DIR/file"
        node_reboots "$other"
        call mount "$DIR" "$SPEC"
        assert_success
        is "$(cat "$DIR/file")" kept
        is "$(provisioned | wc -l)" 2
        helper volume-reconcile
        assert_success
        is "$(jq -c '[.actions[] | select(.action == "deleted an ephemeral volume") | .subject]' <<<"$json")" "[\"$other\"]"
        is "$(provisioned | wc -l) $(cat "$DIR/file")" "1 kept"
        call unmount "$DIR"
        assert_success
        rmdir "$other" 2>/dev/null || :
        nothing_is_left
}

@test "detach keeps the record of the volume of a pod that is gone, by which volume-reconcile deletes it" {
        local other=$KUBELET/pods/pod-2/volumes/$DRIVER_NAME/scratch
        call mount "$other" "$SPEC"
        assert_success
        call mount "$DIR" "$SPEC"
        assert_success
        node_reboots "$other"
        call unmount "$DIR"
        assert_success
        call detach scratch "$NODE"
        assert_success
        is "$(provisioned | wc -l)" 1
        helper volume-reconcile
        assert_success
        rmdir "$other" 2>/dev/null || :
        nothing_is_left
}

@test "volume-reconcile ends what a volume-create or a volume-delete that was killed had begun" {
        local dry
        at_syscall --at fallocate --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": 1048576}'
        is "$(provisioned)" data.json
        helper volume-create '{"name": "other", "size": 1048576}'
        assert_success
        at_syscall --at unlinkat --kill "$FLEXGRAFT_BIN/volume-delete" '{"name": "other"}'
        for dry in true false; do
                helper volume-reconcile "{\"dryRun\": $dry}"
                assert_success
                is "$(jq -r '[.actions[] | select(.action | test("half made")) | .subject] | sort | join(" ")' <<<"$json")" "data other"
        done
        nothing_is_left
        helper volume-reconcile
        assert_field '.actions | length' 0
}

# ephemeral_sweep VERB: killed at a system call and called again, or not, it does its work; then unmount leaves nothing.
ephemeral_sweep() {
        local verb=$1 ending before=() again=() arguments=("$DIR" "$SPEC")
        if [[ $verb == unmount ]]; then
                before=(call "$DRIVER" mount "$DIR" "$SPEC" ';')
                arguments=("$DIR")
        fi
        again=(call "$DRIVER" "$verb" "${arguments[@]}" ';')
        [[ $verb == unmount ]] || again+=(sh "grep -q ' $DIR .* - ext4 ' /proc/self/mountinfo" ';')
        # its directories
        call mount "$DIR" "$SPEC"
        assert_success
        call unmount "$DIR"
        assert_success
        for ending in again 'given up'; do
                LABEL="$verb, $ending" WIDER=$((3 * ${WIDEST:-1})) sweep --reply kubelet --kill --watch tree "$STATE_DIR" --watch tree "$KUBELET" --watch mounts self -- \
                        "${before[@]}" \
                        act "$DRIVER" "$verb" "${arguments[@]}" ';' \
                        "${again[@]}" \
                        call "$DRIVER" unmount "$DIR" ';' \
                        call "$DRIVER" detach scratch "$NODE" ';' \
                        loops "$BATS_TEST_TMPDIR/" 0 ';' \
                        same ';'
                again=()
        done
        nothing_is_left
}

# bats test_tags=sweep
@test "mount killed at any call: again mounts it, and unmount leaves nothing" {
        ephemeral_sweep mount
}

# bats test_tags=sweep
@test "unmount killed at any call: again leaves nothing" {
        ephemeral_sweep unmount
}

# bats test_tags=sweep
@test "mount of one for virtual machines killed at any call: again mounts it, and unmount leaves nothing" {
        SPEC=$(spec scratch ephemeral=true size=64Mi kataContainers=true)
        WIDEST=4 ephemeral_sweep mount
}

# bats test_tags=sweep
@test "unmount of one for virtual machines killed at any call: again leaves nothing" {
        SPEC=$(spec scratch ephemeral=true size=64Mi kataContainers=true)
        ephemeral_sweep unmount
}
