#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The one list of uses: what a pod or a container uses is neither detached nor given to another.

load helpers
load driver_helpers
load raw_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        needs mount-block mount-bind mount-remove mount-list
}

teardown() {
        driver_teardown
}

# made_block NAME: a volume of volume-create, with targetType block, attached; DEVICE is its device.
made_block() {
        helper volume-create "{\"name\": \"$1\", \"size\": \"8Mi\", \"targetType\": \"block\"}" && assert_success || return 1
        kubelet_attach "$1" type=loop || return 1
        DEVICE=${DEVICES[$1]}
}

@test "detach of a volume whose raw device a container has is refused and names the container" {
        made_block db
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        call detach db "$NODE"
        assert_refused "in use by container" "pid $CONTAINER_PID" /disk
        [[ -e /sys/block/${DEVICE#/dev/}/loop/backing_file ]]
        stop_container
        helper volume-reconcile '{}' # gives back what the container had
        assert_success
        kubelet_detach db
}

@test "of a device that a container may write to, the driver does not say that reading it alone would do" {
        local mode
        make_device ext4
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        for mode in rw ro; do
                call attach "$(spec data type=block "source=$DEVICE" "@readwrite=$mode")" "$NODE"
                assert_refused "in use by container" "mount-remove takes it from a container"
                [[ $output != *'allows sharing'* ]]
        done
        helper mount-remove "$(remove_request /disk)"
        assert_success
        kubelet_attach data type=block "source=$DEVICE"
        kubelet_detach data
}

@test "detach of a volume whose filesystem a container has mounted is refused and names the container" {
        kubelet_attach db type=loop size=8Mi
        DEVICE=${DEVICES[db]}
        mkfs.ext4 -q "$DEVICE"
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/files\"}"
        assert_success
        call detach db "$NODE"
        assert_refused "in use by container" "pid $CONTAINER_PID" /files
        helper mount-remove "$(remove_request /files)"
        assert_success
        kubelet_detach db
}

@test "the index of uses keeps its directories: a second mount of a source makes none, and the first removal leaves no entry" {
        local before i
        start_container crun
        mkdir "$BATS_TEST_TMPDIR/data"
        for i in 1 2; do
                helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/t1\"}"
                assert_success
                [[ -n $(index_entries) ]]
                helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/t1\"}"
                assert_success
                is "$(index_entries)" ""
                [[ -z ${before:-} ]] || is "$(find "$STATE_DIR/uses" -type d -printf '%i %P\n' | sort)" "$before"
                before=$(find "$STATE_DIR/uses" -type d -printf '%i %P\n' | sort)
        done
        [[ $(wc -l <<<"$before") -gt 1 ]]
}

@test "no record is ever there without its entries in the index of uses" {
        local seen=$BATS_TEST_TMPDIR/seen
        start_container crun
        at_syscall --each "for file in '$STATE_DIR'/mounts/*.json; do
                        [ -e \"\$file\" ] || continue
                        ls '$STATE_DIR'/uses/*/*:m:* >/dev/null 2>&1 && echo both >>'$seen' || echo bare >>'$seen'
                done" -- "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /t1)"
        assert_success
        is "$(sort -u "$seen")" both
}

@test "an index of uses of another layout is made anew, and volume-reconcile removes the old entries" {
        local entry
        made_block db
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        for entry in $(index_entries); do
                mkdir -p "$BATS_TEST_TMPDIR/old/${entry%%/*}"
                : >"$BATS_TEST_TMPDIR/old/${entry%%/*}/${entry#*:}"
        done
        rm -rf "$STATE_DIR/uses"
        cp -r "$BATS_TEST_TMPDIR/old" "$STATE_DIR/uses"
        chmod -R go= "$STATE_DIR/uses"
        mkdir -m 0700 "$STATE_DIR/uses/.complete"
        call detach db "$NODE"
        assert_refused "in use by container" "pid $CONTAINER_PID" /disk
        stop_container
        helper volume-reconcile '{}'
        assert_success
        is "$(index_entries | grep -c '/[mv]:')" 0
        kubelet_detach db
}

@test "an index that a verb rebuilds has the mounts wanted in containers" {
        local id
        made_block db
        start_container crun
        id=$CONTAINER_ID
        helper mount-bind "{\"container\": \"$id\", \"source\": \"$SOURCE\", \"target\": \"/data\", \"persist\": true}"
        assert_success
        index_entries >"$BATS_TEST_TMPDIR/before"
        grep -q ':w:' "$BATS_TEST_TMPDIR/before"
        rm -rf "$STATE_DIR/uses"
        kubelet_detach db
        is "$(index_entries | grep ':w:')" "$(grep ':w:' "$BATS_TEST_TMPDIR/before")"
        stop_container
        helper mount-remove "{\"container\": \"$id\", \"target\": \"/data\"}"
        assert_success
        is "$(index_entries | grep ':w:' || :)" ''
        helper volume-reconcile '{}'
        assert_success
}

# write_unflushed TEXT: what the container writes stays in the cache of its own loop device.
write_unflushed() {
        in_container sh -c "printf '%-512s' '$1' | dd of=/disk bs=512 conv=notrunc 2>/dev/null"
}

@test "detach gives back the raw device of a container that has ended, with all that it wrote" {
        made_block db
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        write_unflushed last
        stop_container
        kubelet_detach db
        assert_no_guards "$DEVICE"
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
        is "$(head -c 4 "$POOL"/db.img)" last
}

@test "detach is refused while a process that outlives its container has the raw device open" {
        made_block db
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        local guard
        guard=$(guards_of "$DEVICE")
        hold_device "$guard"
        stop_container
        call detach db "$NODE"
        assert_refused "has ended" /disk
        is "$(guards_of "$DEVICE")" "$guard"
        end_process "$BACKGROUND_PID"
        kubelet_detach db
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
}

@test "mountdevice is refused while a container has the raw device, and works once that container has ended" {
        kubelet_attach db type=loop size=8Mi
        DEVICE=${DEVICES[db]}
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        make_dir "$(global_dir db)"
        call mountdevice "$(global_dir db)" "$DEVICE" "$(spec db type=loop size=8Mi)"
        assert_refused "in use by container" /disk
        is "$(node_mounts_at "$(global_dir db)")" 0
        stop_container
        call mountdevice "$(global_dir db)" "$DEVICE" "$(spec db type=loop size=8Mi)"
        assert_success
        assert_no_guards "$DEVICE"
        call unmountdevice "$(global_dir db)"
        assert_success
        kubelet_detach db
}

@test "a filesystem is not mounted while a container may write to its device" {
        make_device ext4
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/files\"}"
        assert_failure EBUSY
        shows "in use by container" /disk
        assert_mounts_at /files 0
}

@test "detach is refused while a container hides the volume's mount: unmounted lazily, with a file open" {
        kubelet_attach db type=loop size=8Mi
        DEVICE=${DEVICES[db]}
        mkfs.ext4 -q "$DEVICE"
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/files\", \"fsType\": \"ext4\"}"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --user --pid --root sh -c 'exec 5>/files/open; umount -l /files; echo ready; exec sleep 1000 3>&-'
        helper mount-list '{}'
        assert_field '.mounts[0].state' gone
        call detach db "$NODE"
        assert_refused "its filesystem is still active"
        stop_container
        kubelet_detach db
        wait_until 5 no_loops_of_driver
}

# given_on: the number of the btrfs volume db, which is staged, is that of a tmpfs that a container has, as if the volume had been unmounted, its
# number given on, and the tmpfs mounted then.
given_on() {
        kubelet_attach db type=loop size=128Mi @fsType=btrfs
        kubelet_stage db
        is "$(jq .filesystem "$(record_of db)")" "$(stat -c %d "$(global_dir db)")" "the number in the record"
        start_container plain
        mount -t tmpfs tmpfs "$SOURCE"
        helper mount-bind "$(bind_request /data)"
        assert_success
        edit_record db ".filesystem = $(stat -c %d "$SOURCE")"
}

@test "the number of a btrfs volume's mount is forgotten with the mount: it may be that of another filesystem next" {
        given_on
        kubelet_unstage db
        kubelet_detach db
}

@test "the number of a btrfs volume's mount is forgotten with the boot" {
        given_on
        umount "$(global_dir db)"
        edit_record db '.bootId = "another boot" | del(.staged)'
        kubelet_attach db type=loop size=128Mi @fsType=btrfs
        kubelet_detach db
}

@test "detach is refused while a remap daemon serves the volume's filesystem to a container that hides its mount" {
        kubelet_attach db type=loop size=8Mi
        DEVICE=${DEVICES[db]}
        mkfs.ext4 -q "$DEVICE"
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/files\", \"fsType\": \"ext4\", \"ids\": \"remap\"}"
        assert_success
        background_ready nsenter --target "$CONTAINER_PID" --mount --user --pid --root sh -c 'exec 5>/files/open; umount -l /files; echo ready; exec sleep 1000 3>&-'
        call detach db "$NODE"
        assert_refused "in use by container" /files
        stop_container
        wait_until 10 detaches db
        wait_until 5 no_loops_of_driver
}

# detaches NAME: the daemon has let go of the filesystem.
detaches() {
        call detach "$1" "$NODE"
        [[ $(jq -r .status <<<"$output") == Success ]]
}

@test "detach of a volume whose record is lost is refused while a container has its raw device" {
        made_block db
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        rm "$STATE_DIR"/volumes/db.json
        call detach db "$NODE"
        assert_refused "in use by container" /disk
        stop_container
        kubelet_detach db
}

@test "detach is refused while the record of a container that has the volume's raw device cannot be read" {
        local record
        made_block db
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        record=$(find "$STATE_DIR/mounts" -name '*.json')
        cp -p "$record" "$BATS_TEST_TMPDIR/record"
        sed -i 's/"version":[0-9]*/"version":99/' "$record"
        call detach db "$NODE"
        assert_refused "an unknown user" "${record##*/}"
        [[ -e /sys/block/${DEVICE#/dev/}/loop/backing_file ]]
        cp -p "$BATS_TEST_TMPDIR/record" "$record"
        stop_container
        helper volume-reconcile '{}' # gives back what the container had
        assert_success
        kubelet_detach db
}

# ---- one name, two volumes

@test "a second pod whose volume of the same name has another image, pool or type does not get the first pod's data" {
        local options
        lifecycle_up data type=loop size=8Mi
        truncate -s 8M "$POOL/other.img"
        mkdir -m 0755 "$BATS_TEST_TMPDIR/elsewhere"
        printf '{"name": "elsewhere", "type": "loop", "path": "%s"}' "$BATS_TEST_TMPDIR/elsewhere" >"$FLEXGRAFT_POOLS/elsewhere.json"
        make_device ext4
        for options in "type=loop image=other.img" "type=loop pool=elsewhere size=8Mi" "type=block source=$DEVICE"; do
                # shellcheck disable=SC2086
                second_pod data default $options
                assert_refused already
                is "$(node_mounts_at "$(pod_dir data pod-2)")" 0
        done
        second_pod data default type=loop image=other.img
        assert_refused "$POOL/data.img" "$POOL/other.img"
        second_pod data default type=loop size=8Mi
        assert_success
}

@test "attach and mountdevice refuse another image than the one that is attached, and name both" {
        local verb dir
        kubelet_attach data type=loop size=8Mi
        truncate -s 8M "$POOL/other.img"
        dir=$(global_dir data)
        make_dir "$dir"
        call attach "$(spec data type=loop image=other.img)" "$NODE"
        assert_refused "$POOL/data.img" "$POOL/other.img"
        call waitforattach "${DEVICES[data]}" "$(spec data type=loop image=other.img)"
        assert_refused "$POOL/data.img" "$POOL/other.img"
        call mountdevice "$dir" "${DEVICES[data]}" "$(spec data type=loop image=other.img)"
        assert_refused "$POOL/data.img" "$POOL/other.img"
        call attach "$(spec data)" "$NODE" # bare, as after a restart of kubelet
        assert_reply "{\"status\": \"Success\", \"device\": \"${DEVICES[data]}\"}"
}

@test "a volume without an image of its own is not the one that has the image of another name" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        truncate -s 8M "$POOL/first.img"
        write_policy '"images": ["default"]'
        lifecycle_up data type=loop image=first.img
        second_pod data default type=loop size=8Mi
        assert_refused "$POOL/first.img" "$POOL/data.img"
}

@test "attach refuses another device under the name of a block volume that is attached" {
        local first
        make_device ext4
        first=$DEVICE
        kubelet_attach data type=block "source=$first"
        make_device ext4
        call attach "$(spec data type=block "source=$DEVICE")" "$NODE"
        assert_refused "$first" "$DEVICE"
        call attach "$(spec data type=block "source=$first")" "$NODE"
        assert_success
}

@test "pods of two namespaces never meet in an inline volume of one name, not even one after the other" {
        lifecycle_up data type=loop size=8Mi
        second_pod data other type=loop size=8Mi
        assert_refused "namespace default" "namespace other" "setfattr -x trusted.flexgraft.namespace $(image_of data)"
        is "$(node_mounts_at "$(pod_dir data pod-2)")" 0
        second_pod data default type=loop size=8Mi
        assert_success
        kubelet_unpublish data pod-2
        lifecycle_down data
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        second_pod data other type=loop size=8Mi
        assert_refused "namespace default" "namespace other"
        second_pod data default type=loop size=8Mi
        assert_success
}

@test "a pod of a namespace whose name is longer than Kubernetes has them is refused, not taken for one of a shorter name" {
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        second_pod data "$(printf 'n%.0s' {1..64})" type=loop size=8Mi
        assert_refused pod.namespace
        is "$(node_mounts_at "$(pod_dir data pod-2)")" 0
        second_pod data "$(printf 'n%.0s' {1..63})" type=loop size=8Mi
        assert_success
        kubelet_unpublish data pod-2
}

@test "a volume that is made anew after volume-delete is of the namespace of its next pod" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        delete_volume data
        kubelet_attach data type=loop size=8Mi
        kubelet_stage data
        second_pod data other type=loop size=8Mi
        assert_success
}

@test "an image that was made blank and is formatted again is of the namespace of its next pod" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        truncate -s 8M "$(image_of data)"
        lifecycle_up data type=loop
        lifecycle_down data
        truncate -s 0 "$(image_of data)"
        truncate -s 8M "$(image_of data)"
        is "$(getfattr --only-values -n trusted.flexgraft.namespace "$(image_of data)" 2>/dev/null)" default
        kubelet_attach data type=loop
        kubelet_stage data
        second_pod data other type=loop
        assert_success
        kubelet_unpublish data pod-2
        second_pod data default type=loop
        assert_refused "namespace other" "namespace default"
}

# pool_without_attributes: the pool default is on a filesystem that has no trusted attributes, with a blank image for the volume data.
pool_without_attributes() {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools"
        mount -t ramfs -o mode=0700 ramfs "$POOL"
        truncate -s 8M "$(image_of data)"
        run ! setfattr -n trusted.flexgraft.namespace -v default "$(image_of data)"
}

@test "where a pool has no trusted attributes, the record of a volume keeps its namespace until volume-delete" {
        local made='{"name": "data", "id": "data.img"}'
        pool_without_attributes
        helper volume-create "$made"
        assert_success
        is_of_one_namespace data type=loop
        kubelet_unpublish data pod-2
        kubelet_unstage data
        kubelet_detach data
        delete_volume data # what was adopted is retained
        helper volume-create "$made"
        assert_success
        kubelet_attach data type=loop
        kubelet_stage data
        second_pod data other type=loop
        assert_success
}

@test "an image without a record in a pool without trusted attributes, once detached, is of the namespace of its next pod" {
        pool_without_attributes
        a_life_later data type=loop
        second_pod data other type=loop
        assert_success
        grep -qF "$(image_of data) cannot keep the name of its namespace" "$LOG"
}

@test "a device of the node, once detached, is of the namespace of its next pod" {
        make_device ext4
        a_life_later data type=block "source=$DEVICE"
        second_pod data other type=block "source=$DEVICE"
        assert_success
}

@test "volumes without a device of their own may have one name in two namespaces" {
        driver_attaches
        SPECS[data]=$(spec data type=tmpfs size=1Mi)
        kubelet_publish data
        second_pod data other type=tmpfs size=2Mi
        assert_success
}

# ---- access modes

# volume_of_mode MODE [block]: the volume "db" of a profile with that mode, with an ext4 on it.
volume_of_mode() {
        local target='"mount": {"fs_type": "ext4"}'
        [[ ${2:-} != block ]] || target='"block": {}'
        export FLEXGRAFT_PROFILES=$BATS_TEST_TMPDIR/profiles.json
        printf '{"profile_matrix": {"p": {"csi_plugin_type_selector": {"plugin_type": "loop"}, "create_parameters": {},
                "volume_capabilities": {%s, "access_mode": {"mode": "%s"}}}}}' "$target" "$1" >"$FLEXGRAFT_PROFILES"
        helper volume-create '{"name": "db", "size": "8Mi", "profile": "p"}' && assert_success || return 1
        mkfs.ext4 -q -F "$(json_field .volume.path)"
}

@test "a volume whose access mode is for readers is mounted read-only, and no container writes to its device" {
        local mode
        for mode in SINGLE_NODE_READER_ONLY MULTI_NODE_READER_ONLY; do
                volume_of_mode "$mode"
                lifecycle_up db type=loop
                DEVICE=${DEVICES[db]}
                assert_node_attributes "$(pod_dir db)" ro
                run ! touch "$(pod_dir db)/file"
                run ! touch "$(global_dir db)/file"
                start_container crun
                helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
                assert_failure
                helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\", \"readOnly\": true}"
                assert_success
                stop_container
                lifecycle_down db
                helper volume-delete '{"name": "db"}'
                assert_success
        done
}

@test "a volume whose options name its own image is used as its profile says all the same" {
        local option
        printf '{"name": "twin", "type": "loop", "path": "%s"}\n' "$POOL" >"$FLEXGRAFT_POOLS/twin.json"
        for option in image=db.img pool=twin; do
                volume_of_mode SINGLE_NODE_READER_ONLY
                lifecycle_up db type=loop "$option"
                assert_node_attributes "$(pod_dir db)" ro
                run ! touch "$(pod_dir db)/file"
                lifecycle_down db
                helper volume-delete '{"name": "db"}'
                assert_success
        done
        volume_of_mode SINGLE_NODE_SINGLE_WRITER
        lifecycle_up db type=loop image=db.img
        second_pod db default type=loop image=db.img
        assert_refused SINGLE_NODE_SINGLE_WRITER
        lifecycle_down db
        helper volume-delete '{"name": "db"}'
        assert_success
        volume_of_mode SINGLE_NODE_WRITER block
        kubelet_attach db type=loop image=db.img
        make_dir "$(global_dir db)"
        call mountdevice "$(global_dir db)" "${DEVICES[db]}" "${SPECS[db]}"
        assert_refused "block device"
        kubelet_detach db
}

@test "a raw device of a volume for readers is given out read-only or not at all" {
        volume_of_mode SINGLE_NODE_READER_ONLY block
        kubelet_attach db type=loop
        DEVICE=${DEVICES[db]}
        start_container crun
        helper mount-block "$(raw_request)"
        assert_failure EROFS
        shows 'volume \"db\" is for reading alone' readOnly
        assert_mounts_at /disk 0
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        helper mount-remove "$(remove_request /disk)"
        assert_success
}

@test "pods of one node may all write to a volume, except in the access mode for a single writer" {
        local mode
        for mode in SINGLE_NODE_WRITER SINGLE_NODE_MULTI_WRITER MULTI_NODE_SINGLE_WRITER MULTI_NODE_MULTI_WRITER; do
                volume_of_mode "$mode"
                lifecycle_up db type=loop
                kubelet_publish db pod-2
                touch "$(pod_dir db)/one" "$(pod_dir db pod-2)/two"
                kubelet_unpublish db pod-2
                lifecycle_down db
                helper volume-delete '{"name": "db"}'
                assert_success
        done
}

@test "a volume for a single writer is one pod's at a time, and the same pod's again" {
        volume_of_mode SINGLE_NODE_SINGLE_WRITER
        lifecycle_up db type=loop
        make_dir "$(pod_dir db pod-2)"
        call mount "$(pod_dir db pod-2)" "$(publish_spec db pod-2)"
        assert_refused SINGLE_NODE_SINGLE_WRITER "pod $POD"
        is "$(node_mounts_at "$(pod_dir db pod-2)")" 0
        call mount "$(pod_dir db)" "$(publish_spec db "$POD")"
        assert_success
        kubelet_unpublish db
        call mount "$(pod_dir db pod-2)" "$(publish_spec db pod-2)"
        assert_success
}

@test "a volume for a single writer is a pod's or a container's, not both" {
        volume_of_mode SINGLE_NODE_SINGLE_WRITER
        lifecycle_up db type=loop
        DEVICE=${DEVICES[db]}
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "pod $POD"
        assert_mounts_at /data 0
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$(pod_dir db)\", \"target\": \"/data\"}"
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "pod $POD"
        kubelet_unpublish db
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_success
        make_dir "$(pod_dir db)"
        call mount "$(pod_dir db)" "$(publish_spec db "$POD")"
        assert_refused SINGLE_NODE_SINGLE_WRITER "container pid $CONTAINER_PID"
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-remove "$(remove_request /data)"
        assert_success
        call mount "$(pod_dir db)" "$(publish_spec db "$POD")"
        assert_success
}

@test "a volume for a single writer may be mounted twice in the one container that has it, not in another" {
        local first
        volume_of_mode SINGLE_NODE_SINGLE_WRITER
        kubelet_attach db type=loop
        DEVICE=${DEVICES[db]}
        start_container crun
        first=$CONTAINER_PID
        helper mount-block "{\"container\": $first, \"source\": \"$DEVICE\", \"target\": \"/one\"}"
        assert_success
        helper mount-block "{\"container\": $first, \"source\": \"$DEVICE\", \"target\": \"/two\"}"
        assert_success
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/one\"}"
        assert_failure EBUSY
        shows SINGLE_NODE_SINGLE_WRITER "container pid $first"
        CONTAINER_PID=$first
        helper mount-remove "$(remove_request /two)"
        assert_success
        helper mount-remove "$(remove_request /one)"
        assert_success
}

# ---- images of others

@test "another image of a pool is attached by its name only where the policy lists it, or its pool" {
        local listed
        mkdir -p "$POOL"
        truncate -s 8M "$POOL/other.img"
        call attach "$(spec thief type=loop image=other.img)" "$NODE"
        assert_refused default/other.img "not allowed"
        wait_until 5 no_loops_of_driver
        call expandvolume "$(spec thief type=loop image=other.img)" "$(global_dir thief)" 16777216 8388608
        assert_refused default/other.img "not allowed"
        is "$(stat -c %s "$POOL/other.img")" 8388608
        for listed in default/other.img default; do
                write_policy "\"images\": [\"$listed\"]"
                kubelet_attach thief type=loop image=other.img
                kubelet_detach thief
        done
        write_policy '"images": ["default/another.img"]'
        call attach "$(spec thief type=loop image=other.img)" "$NODE"
        assert_refused images default/other.img
}

@test "the image that the driver made for a volume is no other volume's, whatever the policy lists" {
        kubelet_attach victim type=loop size=8Mi
        kubelet_detach victim
        call attach "$(spec thief type=loop image=victim.img)" "$NODE"
        assert_refused default/victim.img "not allowed"
        write_policy '"images": ["default"]'
        call attach "$(spec thief type=loop image=victim.img)" "$NODE"
        assert_refused victim.img 'the volume "victim"'
        wait_until 5 no_loops_of_driver
        call expandvolume "$(spec thief type=loop image=victim.img)" "$(global_dir thief)" 16777216 8388608
        is "$(stat -c %s "$POOL/victim.img")" 8388608
        assert_refused victim.img
}

@test "a volume's own image needs no policy: its name, one that is made for it, one of volume-create" {
        kubelet_attach data type=loop size=8Mi image=data.img
        kubelet_detach data
        kubelet_attach data type=loop image=data.img
        kubelet_detach data
        kubelet_attach new type=loop size=8Mi image=fresh.img
        kubelet_detach new
        helper volume-create '{"name": "made", "size": "8Mi"}'
        assert_success
        kubelet_attach made type=loop "image=$(json_field .volume.id)"
        kubelet_detach made
}

# ---- what is listed

@test "mount-list says when the device is no longer the one that was mounted" {
        local record
        make_device blank
        start_container crun
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-list '{}'
        assert_field '.mounts[0].device' present
        record=$(echo "$STATE_DIR"/mounts/*.json)
        jq -c '.diskSequence += 1' "$record" >"$record.edited" # as if the number had gone to another disk since
        mv "$record.edited" "$record"
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0].device' replaced
        jq -c '.disk = 1048575' "$record" >"$record.edited" # the device was taken off the node
        mv "$record.edited" "$record"
        helper mount-list '{}'
        assert_field '.mounts[0].device' gone
}
