#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-reconcile: after a crash or a reboot, records and kernel agree again; what is in use or somebody else's stays.

load helpers
load driver_helpers
load sweep_helpers
load kubelet_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        needs volume-reconcile
}

teardown() {
        driver_teardown
}

OTHER_BOOT=00000000-1111-2222-3333-444444444444

up() {
        lifecycle_up "$1" type=loop size=8Mi "${@:2}"
}

NOTHING_TO_DO='{"status":"Success","actions":[],"problems":[]}'$'\n'

# reconcile [REQUEST]: runs it, checks the shape of its answer.
reconcile() {
        helper volume-reconcile "$@"
        assert_success || return 1
        [[ $output != "$NOTHING_TO_DO" ]] || return 0
        assert_field '(keys - ["status", "actions", "problems", "dryRun"] == []) and (.actions | type == "array") and (.problems | type == "array")
                and all(.actions[]; (keys == ["action", "subject"]) and (.action | type == "string" and length > 0)
                        and (.subject | type == "string" and length > 0))' true
}

# finds_nothing_to_do: it does nothing, and has nothing to say.
finds_nothing_to_do() {
        reconcile
        is "$output" "$NOTHING_TO_DO" "what it did, and could not do"
}

# did TEXT: one of the actions is about it; says TEXT: one of the problems is.
did() {
        assert_field "[.actions[] | tostring | select(contains(\"$1\"))] | length > 0" true
}

says() {
        assert_field "[.problems[] | tostring | select(contains(\"$1\"))] | length > 0" true
}

# The answer, less what is different each time.
node_of_ours() {
        mounts_here
        losetup --list --raw --noheadings --output NAME,BACK-FILE | grep -F " $BATS_TEST_TMPDIR/" | sort
        find "$STATE_DIR" "$KUBELET" -xdev ! -name .lock ! -name '.call-counts*' ! -path '*/sightings*' ! -path "$STATE_DIR/uses*" ! -path "$STATE_DIR/pool-sums*" ! -path "$STATE_DIR" -printf '%p %s %i\n' | sort
}

# ---- nothing to do

# bats test_tags=deep
@test "a volume whose pool's filesystem does not answer is a problem, and keeps volume-reconcile from no other" {
        local program
        command -v bindfs >/dev/null || skip "no bindfs"
        mkdir -m 0700 "$BATS_TEST_TMPDIR"/{behind,slow}
        background bindfs -f -o attr_timeout=0 -o entry_timeout=0 "$BATS_TEST_TMPDIR/behind" "$BATS_TEST_TMPDIR/slow"
        program=$BACKGROUND_PID
        wait_until 10 mountpoint -q "$BATS_TEST_TMPDIR/slow"
        printf '{"name": "slow", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/slow" >"$FLEXGRAFT_POOLS/slow.json"
        kubelet_attach silent type=loop pool=slow size=8Mi
        kubelet_attach lost type=loop size=8Mi
        losetup --detach "${DEVICES[lost]}"
        wait_until 5 device_is_free "${DEVICES[lost]}"
        stop_process "$program"
        not_hung helper volume-reconcile '{}'
        kill -CONT "$program"
        assert_success
        says silent
        did lost
        kubelet_detach silent
        umount "$BATS_TEST_TMPDIR/slow"
}

@test "without any state there is nothing to do, and nothing is made" {
        finds_nothing_to_do
        [[ ! -e $STATE_DIR/volumes && ! -e $STATE_DIR/mounts ]]
}

@test "volumes in use, attached or only made are left as they are" {
        up data
        up made
        lifecycle_down made
        attached_loop waiting
        install_driver flexgraft~tmpfs
        SPECS[cache]=$(spec cache size=1Mi)
        kubelet_publish cache
        local before
        before=$(node_of_ours)
        finds_nothing_to_do
        is "$(node_of_ours)" "$before"
        kubelet_unpublish cache
        install_driver flexgraft~flexgraft
        take_down data
        kubelet_detach waiting
        finds_nothing_to_do
        assert_nothing_left
}

@test "a loop device that was detached by hand while pods have its volume stays theirs, and a further pod gets the volume" {
        up data
        losetup --detach "${DEVICES[data]}"
        finds_nothing_to_do
        is "$(mounts_here | wc -l)" 2
        kubelet_publish data pod-2
        kubelet_unpublish data pod-2
        take_down data
        assert_nothing_left
}

@test "what pods have mounted of a volume whose device is not found stays mounted, and is a problem" {
        local node=/dev/flexgraft-test-$RUN_ID
        make_device ext4
        mknod "$node" b "0x$(stat -c %t "$DEVICE")" "0x$(stat -c %T "$DEVICE")"
        kubelet_attach disk type=block "source=$node"
        kubelet_stage disk
        kubelet_publish disk
        rm "$node"
        helper volume-reconcile '{}'
        mknod "$node" b "0x$(stat -c %t "$DEVICE")" "0x$(stat -c %T "$DEVICE")"
        is "$(mounts_here | wc -l)" 2
        [[ $output == *"is not attached any more"* ]]
        take_down disk
        rm "$node"
        assert_nothing_left
}

@test "what pods have mounted stays mounted also where an attach began anew and did not find the device" {
        local record
        make_device ext4
        kubelet_attach disk type=block "source=$DEVICE"
        kubelet_stage disk
        kubelet_publish disk
        record=$(volume_records)
        cp "$STATE_DIR/volumes/$record" "$BATS_TEST_TMPDIR/record"
        jq -c '.device = "" | .deviceNumber = 0' "$BATS_TEST_TMPDIR/record" >"$STATE_DIR/volumes/$record"
        helper volume-reconcile '{}'
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/volumes/$record"
        is "$(mounts_here | wc -l)" 2
        [[ $output == *"is not attached any more"* ]]
        take_down disk
        assert_nothing_left
}

@test "others' loop devices and mounts are never touched" {
        attached_loop data
        kubelet_detach data
        make_device ext4
        local theirs
        theirs=$(loop_over "$(image_of data)")      # over an image of ours, even
        bed_loops+=("$theirs")
        make_dir "$(pod_dir other)"
        mount -t tmpfs other "$(pod_dir other)"
        finds_nothing_to_do
        is "$(loops_of_test | wc -l)" 2
        is "$(mounts_here)" "$(pod_dir other)"
        umount "$(pod_dir other)"
        rmdir "$(pod_dir other)"
        assert_nothing_left
}

@test "another state directory's volumes are another installation's" {
        attached_loop data
        local first=$STATE_DIR
        STATE_DIR=$BATS_TEST_TMPDIR/state2 write_config
        finds_nothing_to_do
        is "$(loops_of_test)" "${DEVICES[data]}"
        STATE_DIR=$first write_config
        kubelet_detach data
        assert_nothing_left
}

# ---- after a crash

@test "the record of a volume that is neither attached nor mounted goes" {
        attached_loop data
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        reconcile
        did data
        is "$(volume_records)" ""
        [[ -e $(image_of data) ]]
        finds_nothing_to_do
        assert_nothing_left
}

@test "a record that cannot be removed is a problem, and is not said to be removed" {
        local record
        attached_loop data
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        record=$(record_of data)
        mount --bind "$record" "$record" # then it is busy
        reconcile
        says data
        assert_field '[.actions[] | select(.action == "removed the record")] | length' 0
        is "$(volume_records)" data.json
        umount "$record"
        reconcile
        did data
        is "$(volume_records)" ""
        finds_nothing_to_do
        assert_nothing_left
}

@test "a record of a mount that cannot be removed is a problem, and is not said to be removed" {
        local record
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        record=$(ls "$STATE_DIR"/mounts/*.json)
        stop_container "$CONTAINER_PID"
        mount --bind "$record" "$record" # then it is busy
        reconcile
        assert_field '[.actions[] | select(.action | startswith("removed the record"))] | length' 0
        assert_field '.problems | length' 1
        umount "$record"
        reconcile
        [[ ! -e $record ]]
}

@test "the record of a tmpfs that is mounted nowhere goes" {
        install_driver flexgraft~tmpfs
        SPECS[cache]=$(spec cache size=1Mi)
        kubelet_publish cache
        umount "$(pod_dir cache)"
        reconcile
        did cache
        [[ ! -e $(pod_dir cache) ]] || rmdir "$(pod_dir cache)"
        finds_nothing_to_do
        assert_nothing_left
}

# bats test_tags=kernel
@test "an idle loop device of ours without a record goes" {
        attached_loop data
        rm "$(record_of data)"
        reconcile
        did "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        [[ -e $(image_of data) ]]
        finds_nothing_to_do
        assert_nothing_left
}

@test "a loop device of another node with the same kernel stays, though the state directories of both have one path" {
        local as_other=(unshare --mount sh -c 'mount -t tmpfs -o mode=0700 tmpfs "$0" && exec "$@"' "$STATE_DIR")
        attached_loop data
        HELPER_PREFIX=("${as_other[@]}")
        finds_nothing_to_do
        HELPER_PREFIX=() CALL_PREFIX=("${as_other[@]}")
        kubelet_detach data
        CALL_PREFIX=()
        is "$(loops_of_test)" "${DEVICES[data]}"
        kubelet_detach data
        is "$(loops_of_test)" ''
        assert_nothing_left
}

@test "a loop device of the machine that has no name in /dev of a node, which is a container, stops nothing" {
        local device
        truncate -s 1M "$BATS_TEST_TMPDIR/file"
        device=$(loop_over "$BATS_TEST_TMPDIR/file")
        bed_loops+=("$device")
        attached_loop data
        rm "$(record_of data)"
        own_dev "${DEVICES[data]}"
        HELPER_PREFIX=("${OWN_DEV[@]}")
        reconcile
        HELPER_PREFIX=()
        did "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        is "$(loops_of_test)" "$device"
}

@test "an idle loop device of ours goes although its image is deleted" {
        attached_loop data
        rm "$(record_of data)" "$(image_of data)"
        reconcile
        wait_until 5 device_is_free "${DEVICES[data]}"
        finds_nothing_to_do
        assert_nothing_left
}

@test "unused loop devices with the numbers of raw devices go, which a killed call left" {
        local number=$((900000 + $(number_of_run 40000))) image=$BATS_TEST_TMPDIR/image
        truncate -s 1M "$image"
        wait_until 10 losetup "/dev/loop$number" "$image"
        reconcile
        [[ -e /sys/block/loop$number ]] # one that is used stays
        losetup --detach "/dev/loop$number"
        wait_until 10 device_is_free "/dev/loop$number"
        is_taken_away() { # it takes away a few at a time, and other tests leave some
                reconcile && [[ ! -e /sys/block/loop$number ]]
        }
        wait_until 60 is_taken_away
}

@test "a loop device of ours that is in use without a record is reported and left" {
        up data
        echo text >"$(pod_dir data)/file"
        rm "$(record_of data)"
        reconcile
        says "${DEVICES[data]}"
        is "$(<"$(pod_dir data)/file")" text
        is "$(loops_of_test)" "${DEVICES[data]}"
        take_down data
        finds_nothing_to_do
        assert_nothing_left
}

@test "a loop device of ours that a program has open is reported and left" {
        attached_loop data
        rm "$(record_of data)"
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "${DEVICES[data]}"
        reconcile
        says "${DEVICES[data]}"
        is "$(loops_of_test)" "${DEVICES[data]}"
        run ! device_is_free "${DEVICES[data]}"
        end_process "$BACKGROUND_PID"
        reconcile
        wait_until 5 device_is_free "${DEVICES[data]}"
        finds_nothing_to_do
        assert_nothing_left
}

@test "a torn record is set aside and reported" {
        attached_loop data
        kubelet_detach data
        printf '{"version": 1, "na' >"$(record_of data)"
        reconcile
        says data.json.bad
        is "$(volume_records)" data.json.bad
        reconcile
        assert_field '.actions | length' 0
        rm "$(record_of data).bad"
        finds_nothing_to_do
        assert_nothing_left
}

@test "a record of another version is reported and left" {
        attached_loop data
        edit_record data '.version = 99'
        local before
        before=$(<"$(record_of data)")
        reconcile
        says data
        is "$(<"$(record_of data)")" "$before"
        is "$(loops_of_test)" "${DEVICES[data]}"
        edit_record data '.version = 1'
        kubelet_detach data
        finds_nothing_to_do
        assert_nothing_left
}

@test "temporary files of killed calls go" {
        attached_loop data
        echo half >"$STATE_DIR/volumes/.data.json.tmp"
        echo half >"$STATE_DIR/volumes/.other.json.tmp"
        reconcile
        is "$(volume_records)" data.json
        finds_nothing_to_do
        kubelet_detach data
        assert_nothing_left
}

# RECONCILES, FINDS_NOTHING: steps that do what reconcile and finds_nothing_to_do do.
reconcile_steps() {
        local look
        look="'$FLEXGRAFT_BIN/volume-reconcile' >'$BATS_TEST_TMPDIR/reconciled' && jq -e"
        RECONCILES=(sh "$look '(keys - [\"status\", \"actions\", \"problems\", \"dryRun\"] == []) and (.problems | type == \"array\") and
                all(.actions[]; (keys == [\"action\", \"subject\"]) and all(.[]; type == \"string\" and length > 0))' '$BATS_TEST_TMPDIR/reconciled'" ';')
        FINDS_NOTHING=(sh "$look '.actions == [] and .problems == []' '$BATS_TEST_TMPDIR/reconciled' || { cat '$BATS_TEST_TMPDIR/reconciled'; exit 1; }" ';')
}

# bats test_tags=sweep
@test "an attach that was killed leaves nothing that reconcile and detach cannot take away" {
        reconcile_steps
        sweep --reply kubelet --kill --watch tree "$STATE_DIR" --watch tree "$KUBELET" --watch mounts self -- \
                act "$DRIVER" attach "$(spec data type=loop size=8Mi)" "$NODE" ';' \
                "${RECONCILES[@]}" \
                "${FINDS_NOTHING[@]}" \
                call "$DRIVER" detach data "$NODE" ';' \
                "${FINDS_NOTHING[@]}" \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                sh "rm -f '$(image_of data)' '$STATE_DIR/provisioned/data.json'" ';' \
                same ';'
        assert_nothing_left
}

# bats test_tags=sweep
@test "a mountdevice that was killed leaves nothing that reconcile and the next calls cannot put right" {
        local dir spec
        dir=$(global_dir data) spec=$(spec data type=loop size=8Mi)
        reconcile_steps
        WIDER=2 sweep --reply kubelet --own --kill --watch tree "$STATE_DIR" --watch tree "$KUBELET" --watch mounts self -- \
                call "$DRIVER" attach "$spec" "$NODE" ';' \
                sh "mkdir -p '$dir'" ';' \
                act "$DRIVER" mountdevice "$dir" @DEVICE@ "$spec" ';' \
                "${RECONCILES[@]}" \
                sh "mkdir -p '$dir'" ';' \
                call "$DRIVER" mountdevice "$dir" @DEVICE@ "$spec" ';' \
                mounts self "$dir" 1 ';' \
                call "$DRIVER" unmountdevice "$dir" ';' \
                sh "[ ! -e '$dir' ] || rmdir '$dir'" ';' \
                call "$DRIVER" detach data "$NODE" ';' \
                "${FINDS_NOTHING[@]}" \
                loops "$BATS_TEST_TMPDIR/" 0 ';' \
                sh "rm '$(image_of data)' '$STATE_DIR/provisioned/data.json'" ';' \
                same ';'
        assert_nothing_left
}

# ---- what kubelet has forgotten on a node that runs

# forgotten NAME: staged, and kubelet was killed after unmount; its pod's directory is gone.
forgotten() {
        up "$1"
        kubelet_unpublish "$1"
        rm -rf "$KUBELET/pods"
}

@test "a volume that kubelet has forgotten is unstaged and detached when it was seen twice" {
        watch_kubelet
        start_kubelet
        forgotten data
        finds_nothing_to_do
        is "$(mounts_here)" "$(global_dir data)"
        later
        local planned
        reconcile '{"dryRun": true}'
        planned=$(jq -c .actions <<<"$json")
        did "$(global_dir data)"
        is "$(mounts_here)" "$(global_dir data)"
        reconcile
        is "$(jq -c .actions <<<"$json")" "$planned" "what was done"
        is "$(mounts_here)$(volume_records)" ""
        wait_until 5 device_is_free "${DEVICES[data]}"
        [[ -e $(image_of data) ]]
        finds_nothing_to_do
        is "$(find "$STATE_DIR/sightings" -type f ! -name .lock)" "" sightings
        assert_nothing_left
}

# bats test_tags=deep
@test "ten minutes pass before a forgotten volume is unstaged, by a clock that cannot be set" {
        watch_kubelet 600
        start_kubelet
        forgotten data
        finds_nothing_to_do
        touch -d '1 hour ago' "$STATE_DIR/sightings/data.json"
        finds_nothing_to_do
        # as if the first sighting had been 601 seconds earlier
        jq -c '.since -= 601' "$STATE_DIR/sightings/data.json" >"$BATS_TEST_TMPDIR/sighting"
        cp "$BATS_TEST_TMPDIR/sighting" "$STATE_DIR/sightings/data.json"
        reconcile
        did "$(global_dir data)"
        assert_nothing_left
}

# bats test_tags=deep
@test "a sighting of another boot, or of another life of the volume, counts for nothing" {
        watch_kubelet
        start_kubelet
        forgotten data
        finds_nothing_to_do
        jq -c ".of.bootId = \"$OTHER_BOOT\"" "$STATE_DIR/sightings/data.json" >"$BATS_TEST_TMPDIR/sighting"
        cp "$BATS_TEST_TMPDIR/sighting" "$STATE_DIR/sightings/data.json"
        later
        finds_nothing_to_do
        kubelet_publish data
        kubelet_unpublish data
        rm -rf "$KUBELET/pods"
        later
        finds_nothing_to_do
        is "$(mounts_here)" "$(global_dir data)"
        take_down data
}

# bats test_tags=deep
@test "a volume that a pod's directory refers to is not unstaged, mounted there or not" {
        watch_kubelet
        start_kubelet
        forgotten data
        make_dir "$(pod_dir data pod-2)"
        finds_nothing_to_do
        later
        finds_nothing_to_do
        is "$(mounts_here)" "$(global_dir data)"
        rmdir "$(pod_dir data pod-2)"
        finds_nothing_to_do
        later
        reconcile
        did "$(global_dir data)"
        assert_nothing_left
}

@test "a volume that a pod gets while volume-reconcile looks at it is not unstaged" {
        watch_kubelet
        start_kubelet
        forgotten data
        finds_nothing_to_do
        later
        # it asks since when, once it has seen that no pod has the volume
        at_syscall --at openat --where 2=sightings --run "mkdir -p '$(pod_dir data pod-2)'" "$FLEXGRAFT_BIN/volume-reconcile" '{}'
        assert_success
        is "$AT_REACHED $(mounts_here)" "1 $(global_dir data)"
        rm -r "$KUBELET/pods"
        take_down data
}

# round_with N: sets COST to how often a volume-reconcile that finds nothing to do reads directories, where N pods have a volume each. Not to all
# its calls: some are of each loop device on the node, and tests beside this one attach and detach some.
round_with() {
        local i dirs=()
        rm -rf "$KUBELET/pods"
        for ((i = 0; i < $1; i++)); do
                dirs+=("$KUBELET/pods/pod-$i/volumes/$DRIVER_NAME/other-$i")
        done
        mkdir -p "${dirs[@]}"
        finds_nothing_to_do || return 1
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-reconcile" '{}'
        is "$output" "$NOTHING_TO_DO" || return 1
        COST=$(awk '$3 == "getdents64"' "$BATS_TEST_TMPDIR/calls" | wc -l)
}

@test "a further volume that kubelet has forgotten costs volume-reconcile the same however many pods there are" {
        local few many
        watch_kubelet 600
        start_kubelet
        forgotten data
        round_with 5
        few=$COST
        round_with 45
        many=$COST
        forgotten more
        round_with 5
        few=$((COST - few))
        round_with 45
        many=$((COST - many))
        echo "it costs $few readings of directories with 5 pods, $many with 45"
        ((many - few < 20)) # reading the pods' once more would be two for each
        rm -r "$KUBELET/pods"
        take_down data
        take_down more
}

# bats test_tags=deep
@test "kubelet's next mountdevice ends a sighting" {
        watch_kubelet
        start_kubelet
        forgotten data
        finds_nothing_to_do
        later
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_success
        finds_nothing_to_do
        kubelet_publish data
        take_down data
}

# bats test_tags=deep
@test "without a kubelet that runs a forgotten volume is only reported" {
        watch_kubelet
        forgotten data
        finds_nothing_to_do
        later
        reconcile
        says data
        says "when kubelet runs"
        # a socket that a dead kubelet left
        start_kubelet
        end_process "$BACKGROUND_PID"
        [[ -S $KUBELET/device-plugins/kubelet.sock ]]
        reconcile
        says "when kubelet runs"
        is "$(mounts_here)" "$(global_dir data)"
        # when kubelet is back, the time begins anew
        start_kubelet
        finds_nothing_to_do
        later
        reconcile
        did "$(global_dir data)"
        assert_nothing_left
}

# bats test_tags=deep
@test "the socket of kubelet may be named in the configuration" {
        write_config "\"kubelet\": {\"rootDir\": \"$KUBELET\", \"unstageAfter\": 1, \"socket\": \"$BATS_TEST_TMPDIR/k.sock\"}"
        listen_on "$BATS_TEST_TMPDIR/k.sock"
        forgotten data
        finds_nothing_to_do
        later
        reconcile
        did "$(global_dir data)"
        assert_nothing_left
}

@test "a volume that was staged outside kubelet's directories is only reported" {
        watch_kubelet
        start_kubelet
        attached_loop data
        make_dir "$BATS_TEST_TMPDIR/mine"
        call mountdevice "$BATS_TEST_TMPDIR/mine" "${DEVICES[data]}" "${SPECS[data]}"
        assert_success
        finds_nothing_to_do
        later
        reconcile
        says "call unmountdevice"
        is "$(mounts_here)" "$BATS_TEST_TMPDIR/mine"
        call unmountdevice "$BATS_TEST_TMPDIR/mine"
        assert_success
        kubelet_detach data
}

@test "a forgotten volume that is mounted elsewhere, or that a container has, is not unstaged" {
        needs mount-bind mount-block mount-remove
        watch_kubelet
        start_kubelet
        forgotten data
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        mount --bind "$(global_dir data)" "$BATS_TEST_TMPDIR/elsewhere"
        finds_nothing_to_do
        later
        finds_nothing_to_do
        umount "$BATS_TEST_TMPDIR/elsewhere"
        start_container crun
        helper mount-bind "$(SOURCE=$(global_dir data) bind_request /data)"
        assert_success
        finds_nothing_to_do
        later
        finds_nothing_to_do
        is "$(mounts_here)" "$(global_dir data)"
        helper mount-remove "$(remove_request /data)"
        assert_success
        finds_nothing_to_do
        later
        reconcile
        did "$(global_dir data)"
}

@test "another filesystem that was mounted by the name of a forgotten volume's device does not keep that attached" {
        watch_kubelet
        start_kubelet
        forgotten data
        mkdir "$BATS_TEST_TMPDIR/another"
        mount -t tmpfs "${DEVICES[data]}" "$BATS_TEST_TMPDIR/another"   # so may a user of the node call a FUSE filesystem
        finds_nothing_to_do
        later
        reconcile
        did "$(global_dir data)"
        umount "$BATS_TEST_TMPDIR/another"
}

@test "an ephemeral volume that a pod has mounted is not forgotten, however long it is seen" {
        local dir dry
        watch_kubelet
        start_kubelet
        dir=$(pod_dir scratch)
        make_dir "$(dirname "$dir")"
        call mount "$dir" "$(spec scratch ephemeral=true size=8Mi)"
        assert_success
        finds_nothing_to_do
        later
        for dry in true false; do
                reconcile "{\"dryRun\": $dry}"
                is "$(jq -c '[.actions, .problems]' <<<"$json")" '[[],[]]'
        done
        is "$(mounts_here)" "$dir"
        call unmount "$dir"
        assert_success
        assert_nothing_left
}

# bats test_tags=deep
@test "a forgotten volume is unstaged where kubelet's root is a symbolic link, too" {
        local real=$KUBELET
        ln -s "$real" "$BATS_TEST_TMPDIR/link"
        KUBELET=$BATS_TEST_TMPDIR/link
        watch_kubelet
        start_kubelet
        forgotten data
        finds_nothing_to_do
        is "$(KUBELET=$real mounts_here)" "$(KUBELET=$real global_dir data)"
        later
        reconcile
        did "$(global_dir data)"
        is "$(KUBELET=$real mounts_here)$(volume_records)" ""
        assert_nothing_left
}

@test "an attached volume whose raw device a container has is not detached" {
        needs mount-block
        watch_kubelet
        start_kubelet
        attached_loop data
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        finds_nothing_to_do
        later
        finds_nothing_to_do
        is "$(loops_of_test)" "${DEVICES[data]}"
        stop_container
        reconcile
        later
        reconcile
        did "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        assert_nothing_left
}

# ---- after a reboot

# bats test_tags=kernel
@test "after a reboot the records of the boot before go, and volumes work as on the first day" {
        up data
        echo kept >"$(pod_dir data)/file"
        up other
        # what a reboot takes away
        umount "$(pod_dir data)" "$(global_dir data)" "$(pod_dir other)" "$(global_dir other)"
        losetup --detach "${DEVICES[data]}"
        losetup --detach "${DEVICES[other]}"
        edit_record data ".bootId = \"$OTHER_BOOT\""
        edit_record other ".bootId = \"$OTHER_BOOT\""
        wait_until 5 device_is_free "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[other]}"
        reconcile
        did data
        did other
        is "$(volume_records)" ""
        finds_nothing_to_do
        rm -r "$KUBELET/pods" "$KUBELET/plugins"
        up data
        is "$(<"$(pod_dir data)/file")" kept
        lifecycle_down data
        assert_nothing_left
}

@test "a record of the boot before whose loop number another volume has now does not touch that" {
        truncate -s 1M "$BATS_TEST_TMPDIR/theirs"
        give_away "$BATS_TEST_TMPDIR/theirs" type=loop size=8Mi
        edit_record data ".bootId = \"$OTHER_BOOT\""
        reconcile
        is "$(loop_of "$BATS_TEST_TMPDIR/theirs")" "${DEVICES[data]}"
        is "$(volume_records)" ""
        finds_nothing_to_do
        assert_nothing_left
}

@test "a record of the boot before whose loop device is there and idle goes with it" {
        attached_loop data
        edit_record data ".bootId = \"$OTHER_BOOT\""
        reconcile
        is "$(volume_records)" ""
        wait_until 5 device_is_free "${DEVICES[data]}"
        finds_nothing_to_do
        assert_nothing_left
}

@test "the mounts of a volume whose record is of another boot go with the record" {
        up data
        edit_record data ".bootId = \"$OTHER_BOOT\""
        reconcile
        is "$(mounts_here)" ""
        is "$(volume_records)" ""
        wait_until 5 device_is_free "${DEVICES[data]}"
        finds_nothing_to_do
        rm -r "$KUBELET"
        make_dir "$KUBELET"
        assert_nothing_left
}

@test "a volume in use is left, though its record is of another boot, and can be taken away later" {
        TIMEOUTS='"unmount": 1' write_config
        up data
        echo text >"$(pod_dir data)/file"
        local busy
        background sh -c 'cd "$1" && exec sleep 1000' sh "$(pod_dir data)"
        busy=$BACKGROUND_PID
        wait_until 5 process_is_in "$busy" "$(pod_dir data)"
        edit_record data ".bootId = \"$OTHER_BOOT\""
        reconcile
        assert_field '.problems | length > 0' true
        is "$(<"$(pod_dir data)/file")" text
        is "$(loops_of_test)" "${DEVICES[data]}"
        end_process "$busy"
        take_down data
        finds_nothing_to_do
        assert_nothing_left
}

# bats test_tags=deep
@test "verbs do not wait for reconcile after a reboot" {
        up data
        umount "$(pod_dir data)" "$(global_dir data)"
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        edit_record data ".bootId = \"$OTHER_BOOT\""
        lifecycle_up data type=loop
        is "$(node_mounts_at "$(pod_dir data)")" 1
        lifecycle_down data
        finds_nothing_to_do
        assert_nothing_left
}

@test "a volume whose formatting a reboot has cut short is formatted after it" {
        attached_loop data
        # what mkfs leaves when it is killed: much, but the superblock
        mkfs.ext4 -q -F "${DEVICES[data]}"
        dd if=/dev/zero "of=${DEVICES[data]}" bs=1k count=2 conv=notrunc,fsync 2>/dev/null
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        edit_record data ".bootId = \"$OTHER_BOOT\" | .formatting = \"$(image_identity "$(image_of data)")\""
        reconcile
        up data
        touch "$(pod_dir data)/file"
        lifecycle_down data
        run -0 e2fsck -fn "$(image_of data)"
        finds_nothing_to_do
        assert_nothing_left
}

@test "a block volume's record of the boot before goes, its device stays" {
        make_device ext4
        kubelet_attach disk type=block "source=$DEVICE"
        edit_record disk ".bootId = \"$OTHER_BOOT\""
        reconcile
        is "$(volume_records)" ""
        is "$(loop_of "$IMAGE")" "$DEVICE"
        finds_nothing_to_do
        assert_nothing_left
}

# ---- what was put into containers

injected_records() {
        find "$STATE_DIR/mounts" -name '*.json' -printf '%f\n' 2>/dev/null | sort
}

@test "records of mounts in containers that are gone go, and those of others stay" {
        needs mount-bind mount-list mount-remove
        start_container plain
        local first=$CONTAINER_PID
        helper mount-bind "$(bind_request /data)"
        assert_success
        start_container plain 200000
        helper mount-bind "$(bind_request /data)"
        assert_success
        is "$(injected_records | wc -l)" 2
        stop_container "$first"
        reconcile
        is "$(jq '.actions | length' <<<"$json")" 1 "actions"
        is "$(injected_records | wc -l)" 1
        assert_mounts_at /data 1
        finds_nothing_to_do
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_no_records
}

@test "records of mounts in containers of the boot before go" {
        needs mount-bind
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        local file
        file=$STATE_DIR/mounts/$(injected_records)
        sed "s/$(</proc/sys/kernel/random/boot_id)/$OTHER_BOOT/" "$file" >"$file.new"
        mv "$file.new" "$file"
        stop_container
        reconcile
        is "$(injected_records)" ""
        finds_nothing_to_do
}

@test "a torn record of a mount in a container is set aside" {
        needs mount-bind
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-bind "$(bind_request /other)"
        assert_success
        printf torn >"$STATE_DIR/mounts/torn-0123456789abcdef.json"
        reconcile
        is "$(injected_records | wc -l)" 2
        assert_mounts_at /data 1
        assert_mounts_at /other 1
        finds_nothing_to_do
}

# ---- dry run, and the request

@test "a dry run says what would be done and changes nothing" {
        attached_loop idle
        rm "$(record_of idle)"
        attached_loop gone
        losetup --detach "${DEVICES[gone]}"
        wait_until 5 device_is_free "${DEVICES[gone]}"
        attached_loop torn
        losetup --detach "${DEVICES[torn]}"
        wait_until 5 device_is_free "${DEVICES[torn]}"
        printf torn >"$(record_of torn)"
        echo half >"$STATE_DIR/volumes/.data.json.tmp"
        local before planned
        before=$(node_of_ours)
        reconcile '{"dryRun": true}'
        is "$(node_of_ours)" "$before"
        planned=$(jq -Sc '.actions | sort' <<<"$json")
        did gone
        did "${DEVICES[idle]}"
        reconcile '{"dryRun": true}'
        is "$(jq -Sc '.actions | sort' <<<"$json")" "$planned"
        reconcile '{"dryRun": false}'
        is "$(jq -Sc '.actions | sort' <<<"$json")" "$planned" "what was done"
        wait_until 5 device_is_free "${DEVICES[idle]}"
        rm "$(record_of torn).bad"
        finds_nothing_to_do
        assert_nothing_left
}

@test "the request may come from standard input" {
        attached_loop data
        rm "$(record_of data)"
        bed_command=volume-reconcile status=0 stderr=''
        output=$("$FLEXGRAFT_BIN/volume-reconcile" - <<<'{"dryRun": true}')
        json=$output
        is "$(json_field .status)" Success
        is "$(loops_of_test)" "${DEVICES[data]}"
        kubelet_detach data
        assert_nothing_left
}

@test "a request that cannot be understood is refused" {
        local request
        for request in '' '{' '[]' '{"dryRun": "yes"}' '{"dryrun": true}' '{"dryRun": true, "dryRun": true}' '{"dryRun": true} x'; do
                helper volume-reconcile "$request"
                is "$status" 2 "exit status"
                assert_one_json_line
                assert_field '[.status, .error.operation, .error.errno] | join(" ")' "Failure parse request EINVAL"
        done
        helper volume-reconcile '{"colour": "blue"}'
        assert_not_understood colour
        assert_field '.error | [.where, .hint] | join(": ")' 'node: --help shows every key with an example'
        helper volume-reconcile '{}' '{}'
        is "$status" 2 "exit status"
}

@test "a broken configuration is a failure, a broken policy is not" {
        echo '{' >"$FLEXGRAFT_POLICY"
        finds_nothing_to_do
        echo '{' >"$FLEXGRAFT_CONFIG"
        helper volume-reconcile
        assert_failure EBADMSG
        assert_field '.error | [.subject, .where] | join(" ")' "$FLEXGRAFT_CONFIG node"
        assert_field '[.actions, .problems] | tojson' '[[],[]]'
}

@test "a state directory that cannot be trusted is a failure" {
        attached_loop data
        chmod 0777 "$STATE_DIR/volumes"
        helper volume-reconcile
        is "$status" 1 "exit status"
        assert_field .status Failure
        is "$(loops_of_test)" "${DEVICES[data]}"
        chmod 0700 "$STATE_DIR/volumes"
        kubelet_detach data
        assert_nothing_left
}

# bats test_tags=deep
@test "reconcile at the same time as calls disturbs none" {
        local -a pids=()
        local name pid
        (while [[ ! -e $BATS_TEST_TMPDIR/stop ]]; do
                "$FLEXGRAFT_BIN/volume-reconcile" >>"$BATS_TEST_TMPDIR/reconciled" 2>&1 || exit 1
                sleep 0.02
        done) 3>&- &
        pid=$!
        bed_pids+=("$pid")      # whatever happens below
        for name in one two three; do
                up $name
                lifecycle_down $name
                up $name
                lifecycle_down $name
        done
        touch "$BATS_TEST_TMPDIR/stop"
        wait "$pid"
        run ! grep -v '"status":"Success"' "$BATS_TEST_TMPDIR/reconciled"
        finds_nothing_to_do
        assert_nothing_left
}

@test "a volume that cannot be put right does not keep others from it" {
        attached_loop stuck
        edit_record stuck '.version = 99'
        attached_loop gone
        losetup --detach "${DEVICES[gone]}"
        wait_until 5 device_is_free "${DEVICES[gone]}"
        reconcile
        did gone
        says stuck
        edit_record stuck '.version = 1'
        kubelet_detach stuck
        assert_nothing_left
}

@test "a dead mount in a pod's directory does not hold reconcile up" {
        up data
        mkdir "$(pod_dir data)/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$(pod_dir data)/fuse" --read
        not_hung finds_nothing_to_do
        lifecycle_down data
        assert_nothing_left
}
