#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-create and volume-delete: volumes made in pools and given back.

load helpers
load driver_helpers
load volume_helpers
bats_require_minimum_version 1.5.0
shopt -s globstar dotglob nullglob

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

# ---- create

@test "a volume is an image of the size asked for, preallocated" {
        created '{"name": "data", "size": 8388608}'
        assert_field '.volume | [.name, .pool, .type, .size, .targetType, .reclaimPolicy, .adopted, .state] | join(" ")' \
                "data default loop 8388608 mount delete false created"
        existed false
        assert_field .volume.path "$POOL/data.img"
        is "$(stat --format '%s %a %u' "$POOL/data.img")" "8388608 600 0"
        (($(allocated "$POOL/data.img") >= 8388608))
        is_all_zero "$POOL/data.img"
}

@test "the same request again is the same volume" {
        created '{"name": "data", "size": "1m"}'
        echo text | dd of="$POOL/data.img" conv=notrunc status=none
        created '{"name": "data", "size": "1m"}'
        existed true
        assert_field .volume.size 1048576
        is "$(images)" data.img
        is "$(provisioned)" data.json
        is "$(head -n 1 "$POOL/data.img" | tr -d '\0')" text
}

@test "a size may be a number, or have a suffix" {
        local pair
        for pair in 4096=4096 '"4096"=4096' '"8k"=8192' '"1m"=1048576' '"10Mi"=10485760' '"3M"=3145728'; do
                created "{\"name\": \"data\", \"size\": ${pair%=*}}"
                assert_field .volume.size "${pair#*=}"
                is "$(stat --format %s "$POOL/data.img")" "${pair#*=}"
                removed '{"name": "data"}'
        done
}

@test "a size is rounded up to 4096, and the reply tells" {
        local pair
        for pair in 1=4096 4095=4096 4097=8192 5000=8192 1048577=1052672; do
                created "{\"name\": \"data\", \"size\": ${pair%=*}}"
                assert_field .volume.size "${pair#*=}"
                is "$(stat --format %s "$POOL/data.img")" "${pair#*=}"
                created "{\"name\": \"data\", \"size\": ${pair%=*}}"
                existed true
                created "{\"name\": \"data\", \"size\": ${pair#*=}}"
                existed true
                removed '{"name": "data"}'
        done
        measured
        assert_field '.pools[0].alignment' 4096
}

@test "the same name for something else is refused, and the reply says what differs" {
        make_pool fast
        write_profiles "\"one\": $(profile_for default), \"two\": $(profile_for default)"
        created '{"name": "data", "size": "1m", "profile": "one"}'
        create '{"name": "data", "size": "2m", "profile": "one"}'
        refused EEXIST size 1048576
        create '{"name": "data", "size": 4096, "profile": "one"}'
        refused EEXIST size 1048576
        create '{"name": "data", "size": "1m", "pool": "fast"}'
        refused EEXIST pool '"default"'
        create '{"name": "data", "size": "1m", "profile": "two"}'
        refused EEXIST profile '"one"'
        create '{"name": "data", "size": "1m", "targetType": "block"}'
        refused EEXIST 'target type' '"mount"'
        create '{"name": "data", "size": "1m", "fsType": "btrfs"}'
        refused EEXIST filesystem
        create '{"name": "data", "size": "1m", "parameters": {"preallocate": "false"}}'
        refused EEXIST parameters
        create '{"name": "data", "id": "other.img"}'
        refused EEXIST id '"data.img"'
        is "$(provisioned)" data.json
        is "$(images)" data.img
        is "$(images "$POOL_DIR")" ''
        is "$(stat --format %s "$POOL/data.img")" 1048576
}

@test "the same name with another reclaimPolicy or eraseAfter is refused, not taken for the volume that is deleted in another way" {
        created '{"name": "data", "size": "1m"}'
        create '{"name": "data", "size": "1m", "reclaimPolicy": "retain"}'
        refused EEXIST reclaimPolicy modify '"delete"'
        create '{"name": "data", "size": "1m", "eraseAfter": false}'
        refused EEXIST eraseAfter modify '"true"'
        created '{"name": "data", "size": "1m", "reclaimPolicy": "delete", "eraseAfter": true}'
        existed true
        created '{"name": "data", "modify": true, "reclaimPolicy": "retain", "eraseAfter": false}'
        created '{"name": "data", "size": "1m", "reclaimPolicy": "retain", "eraseAfter": false}'
        existed true
        create '{"name": "data", "size": "1m", "eraseAfter": true}'
        refused EEXIST eraseAfter modify '"false"'
        removed '{"name": "data"}'
        is "$(images)" data.img
        created '{"name": "kept", "pool": "default", "id": "data.img"}'
        create '{"name": "kept", "pool": "default", "id": "data.img", "reclaimPolicy": "delete"}'
        refused EEXIST reclaimPolicy '"retain"'
}

@test "the same name for another Kubernetes namespace is refused, not taken for the volume of the first" {
        created '{"name": "data", "size": "1m", "namespace": "team"}'
        create '{"name": "data", "size": "1m", "namespace": "other"}'
        refused EEXIST namespace '"team"'
        created '{"name": "data", "size": "1m", "namespace": "team"}'
        existed true
}

@test "without preallocation the image is sparse, and counted as if it were full" {
        local before
        make_pool_in_memory fast 32m
        before=$(available fast)
        created '{"name": "data", "size": "16m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        assert_field .volume.parameters.preallocate false
        is "$(stat --format %s "$POOL_DIR/data.img")" $((16 << 20))
        is "$(allocated "$POOL_DIR/data.img")" 0
        is "$(available fast)" $((before - (16 << 20)))
        create '{"name": "more", "size": "17m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        refused ENOSPC
        dd if=/dev/zero of="$POOL_DIR/data.img" bs=1M count=8 conv=notrunc status=none
        helper volume-reconcile '{}' # what an image is given by hand is looked for then
        assert_success
        is "$(available fast)" $((before - (16 << 20)))
        removed '{"name": "data"}'
        is "$(available fast)" "$before"
}

@test "preallocate true allocates the whole image, and other parameters are refused" {
        local parameters
        created '{"name": "data", "size": "1m", "parameters": {"preallocate": "true"}}'
        (($(allocated "$POOL/data.img") >= 1048576))
        removed '{"name": "data"}'
        for parameters in '"preallocate": "maybe"' '"raid": "5"' '"Preallocate": "true"'; do
                create "{\"name\": \"data\", \"size\": \"1m\", \"parameters\": {$parameters}}"
                refused EINVAL "$(cut -d'"' -f2 <<<"$parameters")"
                assert_no_volume
        done
}

@test "a block volume has no filesystem" {
        created '{"name": "data", "size": "1m", "targetType": "block"}'
        assert_field .volume.targetType block
        assert_field '.volume.fsType' null
        created '{"name": "files", "size": "109m", "targetType": "mount", "fsType": "btrfs"}'
        assert_field '[.volume.targetType, .volume.fsType] | join(" ")' "mount btrfs"
        listed
        assert_field '[.volumes[] | .name + "=" + .targetType] | join(" ")' "data=block files=mount"
}

@test "a volume of a filesystem that cannot be created here is refused when it is made, also on a blank disk that matches" {
        local type
        for type in ext5 ext3 vfat; do
                create "{\"name\": \"data\", \"size\": \"1m\", \"fsType\": \"$type\"}"
                refused EINVAL '"fsType"' "$type cannot be created here, only ext4, xfs and btrfs"
                assert_no_volume
        done
        make_disk "$POOL" disk.img 1m
        create '{"name": "data", "size": "1m", "fsType": "ext3", "match": true}'
        refused EINVAL '"fsType"' ext3
        is "$(provisioned)" ''
        created '{"name": "data", "id": "disk.img", "fsType": "ext3"}' # which may be on it
        assert_field .volume.fsType ext3
}

@test "an image of that name without a record is neither taken nor touched" {
        mkdir -p "$POOL"
        make_disk "$POOL" data.img 1m precious
        create '{"name": "data", "size": "1m"}'
        refused EEXIST data.img id
        is "$(head -c 8 "$POOL/data.img")" precious
        is "$(allocated "$POOL/data.img")" 4096
        is "$(provisioned)" ''
        # an empty one, as a create that was cut short leaves it, is not ours either: no record says so
        : >"$POOL/other.img"
        create '{"name": "other", "size": "1m"}'
        refused EEXIST other.img
        is "$(stat --format %s "$POOL/other.img")" 0
        is "$(provisioned)" ''
}

@test "a symbolic link, FIFO, directory or device file in place of an image is neither followed nor removed" {
        local sort
        mkdir -p "$POOL"
        for sort in link dangling fifo directory device; do
                case $sort in
                link) echo precious >"$BATS_TEST_TMPDIR/victim" && ln -s "$BATS_TEST_TMPDIR/victim" "$POOL/data.img" ;;
                dangling) ln -s "$BATS_TEST_TMPDIR/nothing" "$POOL/data.img" ;;
                fifo) mkfifo "$POOL/data.img" ;;
                directory) mkdir "$POOL/data.img" ;;
                device) mknod "$POOL/data.img" c 1 3 ;;
                esac
                HELPER_PREFIX=(timeout 120)
                create '{"name": "data", "size": "1m"}'
                assert_failure || { echo "with a $sort"; return 1; }
                [[ -e $POOL/data.img || -L $POOL/data.img ]]
                is "$(provisioned)" ''
                rm -rf "$POOL/data.img"
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" precious
        [[ ! -e $BATS_TEST_TMPDIR/nothing ]]
        created '{"name": "data", "size": "1m"}'
}

@test "a volume whose image vanished is told so, is listed as missing, and can be forgotten" {
        created '{"name": "data", "size": "1m"}'
        rm "$POOL/data.img"
        create '{"name": "data", "size": "1m"}'
        refused ENOENT volume-delete
        listed
        assert_field '.volumes[0] | [.name, .missing] | join(" ")' "data true"
        removed '{"name": "data"}'
        existed true
        created '{"name": "data", "size": "1m"}'
        existed false
}

@test "a volume is usable as what it is for: formatted, mounted, filled to its end" {
        created '{"name": "data", "size": "16m"}'
        mkfs.ext4 -q -F "$(json_field .volume.path)"
        mkdir "$BATS_TEST_TMPDIR/mnt"
        attach_loop "$POOL/data.img"
        mount "$LOOP" "$BATS_TEST_TMPDIR/mnt"
        echo text >"$BATS_TEST_TMPDIR/mnt/file"
        umount "$BATS_TEST_TMPDIR/mnt"
        detach_loop
        created '{"name": "data", "size": "16m"}'
        e2fsck -fn "$POOL/data.img"
}

@test "a volume whose pool's file says another type by now is neither deleted nor forgotten, nor made again" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        created '{"name": "other", "size": "1m", "pool": "dirs"}' # so that the directory is known for a pool
        cp "$FLEXGRAFT_POOLS"/{dirs,fast}.json
        helper volume-delete '{"name": "data"}'
        assert_failure ENODEV
        helper volume-create '{"name": "data", "size": "1m", "pool": "fast"}'
        assert_failure ENODEV
        is "$(provisioned | xargs) $(ls "$POOL_DIR")" "data.json other.json data.img"
        make_pool fast
        removed '{"name": "data"}'
        is "$(ls "$POOL_DIR")" ''
}

@test "a volume whose pool's file names another pool's directory by now is neither deleted nor made again" {
        local made
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        made=$POOL_DIR
        make_pool slow
        created '{"name": "other", "size": "1m", "pool": "slow"}'
        jq -c '.name = "fast"' "$FLEXGRAFT_POOLS/slow.json" >"$FLEXGRAFT_POOLS/fast.json"
        helper volume-delete '{"name": "data"}'
        assert_failure ENODEV
        helper volume-create '{"name": "data", "size": "1m", "pool": "fast"}'
        assert_failure ENODEV
        is "$(provisioned | xargs) $(cd "$made" && ls) $(cd "$POOL_DIR" && ls)" "data.json other.json data.img other.img"
}

@test "a volume that is not where its pool was moved to is not forgotten, until it is given up" {
        local made
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        created '{"name": "moved", "size": "1m", "pool": "fast"}'
        made=$POOL_DIR
        make_pool slow # which only has the directory
        mv "$made"/{.flexgraft-pool,moved.img} "$POOL_DIR"
        jq -c '.name = "fast"' "$FLEXGRAFT_POOLS/slow.json" >"$FLEXGRAFT_POOLS/fast.json"
        helper volume-delete '{"name": "data"}'
        assert_failure ENODEV
        [[ $output == *"made when it said $made"* ]]
        helper volume-create '{"name": "data", "size": "1m", "pool": "fast"}'
        assert_failure ENODEV
        removed '{"name": "data", "reclaimPolicy": "retain"}'
        removed '{"name": "moved"}'
        is "$(provisioned)$(ls "$POOL_DIR") $(ls "$made")" " data.img"
}

@test "where a pool was moved to is noted when a volume is found there, also of a record that has no place" {
        local was
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        was=$POOL_DIR
        jq -c 'del(.place)' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        is "$(jq -r .place "$STATE_DIR/provisioned/data.json")" "$was"
        mv "$was" "$was.moved"
        sed -i "s:$was:$was.moved:" "$FLEXGRAFT_POOLS/fast.json"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        is "$(jq -r .place "$STATE_DIR/provisioned/data.json")" "$was.moved"
        rm "$was.moved/data.img"
        removed '{"name": "data"}'
}

@test "a volume that is attached is not forgotten when its image was removed by hand" {
        created '{"name": "data", "size": "8m"}'
        kubelet_attach data type=loop
        rm "$POOL/data.img"
        remove '{"name": "data"}'
        refused EBUSY attached
        kubelet_detach data
        removed '{"name": "data"}'
        is "$(provisioned)" ''
}

# ---- delete

@test "a volume that was deleted is gone, and deleting it again is no failure" {
        created '{"name": "data", "size": "1m"}'
        removed '{"name": "data"}'
        assert_field '[.name, .existed, .pool, .reclaimPolicy] | join(" ")' "data true default delete"
        assert_no_volume
        removed '{"name": "data"}'
        assert_field '[.name, .existed] | join(" ")' "data false"
        removed '{"name": "never was"}'
        existed false
        listed
        is "$(volume_names)$(disk_ids)" ''
}

@test "a volume that is attached is not deleted, and nothing changes" {
        created '{"name": "data", "size": "1m"}'
        local before
        before=$(<"$STATE_DIR/provisioned/data.json")
        attach_loop "$POOL/data.img"
        remove '{"name": "data"}'
        refused EBUSY "$LOOP"
        remove '{"name": "data", "reclaimPolicy": "recycle"}'
        refused EBUSY
        remove '{"name": "data", "reclaimPolicy": "retain"}'
        refused EBUSY
        is "$(images)" data.img
        is "$(<"$STATE_DIR/provisioned/data.json")" "$before"
        listed
        assert_field '.volumes[0].state' created
        detach_loop
        removed '{"name": "data"}'
        existed true
        assert_no_volume
}

@test "a volume that the driver has attached is not deleted until it is detached" {
        created '{"name": "data", "size": "8m"}'
        kubelet_attach data type=loop
        kubelet_stage data
        remove '{"name": "data"}'
        refused EBUSY 'volume "data"'
        kubelet_publish data
        echo text >"$(pod_dir data)/file"
        remove '{"name": "data"}'
        refused EBUSY
        DRIVER_ATTACHES=true lifecycle_down data
        removed '{"name": "data"}'
        assert_no_volume
        is "$(loops_of_driver)$(volume_records)" ''
}

@test "volume-delete waits a moment for a process that only looks at the device of a volume that was detached" {
        local holder
        created '{"name": "data", "size": "8m"}'
        kubelet_attach data type=loop
        background_ready sh -c 'exec 4<"$0"; echo ready; exec sleep 1000' "${DEVICES[data]}"
        holder=$BACKGROUND_PID
        kubelet_detach data
        remove '{"name": "data"}'
        refused EBUSY "it is attached as ${DEVICES[data]}"
        is "$(images)" data.img
        at_syscall --at ppoll --where 1=0 --where 2=0 --run "kill -KILL $holder" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        is "$AT_REACHED" 1
        assert_success
        is "$(images)|$(provisioned)" '|'
}

@test "the driver attaches what volume-create made under any name" {
        created '{"name": "odd name/1", "size": "8m", "fsType": "ext4"}'
        kubelet_attach 'odd name/1' type=loop "image=$(json_field .volume.id)"
        is "$(loop_of "$(jq -r '.volumes[0].path' <<<"$("$FLEXGRAFT_BIN/volume-list")")")" "${DEVICES['odd name/1']}"
        kubelet_detach 'odd name/1'
        removed '{"name": "odd name/1"}'
        assert_no_volume
}

@test "a volume gets the filesystem and the mount flags of its profile, and a pod's own options come last" {
        local dir
        write_profiles "\"db\": $(profile_for default '"fs_type": "btrfs", "mount_flags": ["noatime", "noexec", "ssd"]')"
        created '{"name": "data", "size": "120m", "profile": "db"}'
        kubelet_attach data type=loop
        kubelet_stage data
        dir=$(global_dir data)
        is "$(node_mount_type "$dir")" btrfs
        [[ $(node_mount_options "$dir") == *noexec*noatime* && $(findmnt --noheadings --output OPTIONS "$dir") == *ssd* ]]
        kubelet_publish data
        [[ $(node_mount_options "$(pod_dir data)") == *noexec*noatime* ]]
        kubelet_unpublish data
        kubelet_publish data "$POD" mountOptions=relatime
        [[ $(node_mount_options "$(pod_dir data)") == *noexec*relatime* ]]
        kubelet_unpublish data
        write_policy '"kinds": ["loop"], "options": ["exec"]' # noexec needs its leave to go
        kubelet_publish data "$POD" mountOptions=exec
        [[ $(node_mount_options "$(pod_dir data)") != *noexec* ]]
        DRIVER_ATTACHES=true lifecycle_down data
        removed '{"name": "data"}'
}

@test "a use that contradicts the recorded fsType or targetType is refused" {
        created '{"name": "data", "size": "120m", "fsType": "btrfs"}'
        kubelet_attach data type=loop @fsType=ext4
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused btrfs
        kubelet_detach data
        removed '{"name": "data"}'
        created '{"name": "data", "size": "8m", "targetType": "block"}'
        kubelet_attach data type=loop
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused block
        is_all_zero "$POOL/data.img"
        rmdir "$(global_dir data)"
        kubelet_detach data
        removed '{"name": "data"}'
}

@test "a volume that is half made or half deleted is not attached, and ends as it was begun" {
        local stage
        for stage in creating deleting; do
                created '{"name": "data", "size": "8m"}'
                jq --arg stage "$stage" '.stage = $stage' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
                cat "$BATS_TEST_TMPDIR/record" >"$STATE_DIR/provisioned/data.json"
                call attach "$(spec data type=loop)" "$NODE"
                assert_refused volume-
                is "$(loops_of_driver)$(volume_records)" ''
                removed '{"name": "data"}'
                assert_no_volume
        done
}

@test "a volume grows as far as its pool has room, and its record with it" {
        make_pool_in_memory fast 32m
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        kubelet_attach data type=loop pool=fast
        kubelet_stage data
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((64 << 20)) $((8 << 20))
        assert_refused room
        is "$(stat --format %s "$POOL_DIR/data.img")" $((8 << 20))
        call expandvolume "${SPECS[data]}" "${DEVICES[data]}" $((16 << 20)) $((8 << 20))
        assert_success
        listed
        assert_field '.volumes[0].size' $((16 << 20))
        created '{"name": "data", "size": "8m", "pool": "fast"}'
        existed true
        kubelet_unstage data
        kubelet_detach data
        removed '{"name": "data"}'
}

@test "a volume is deleted as it was told when it was made, unless told otherwise" {
        created '{"name": "kept", "size": "1m", "reclaimPolicy": "retain"}'
        assert_field .volume.reclaimPolicy retain
        echo precious | dd of="$POOL/kept.img" conv=notrunc status=none
        removed '{"name": "kept"}'
        assert_field .reclaimPolicy retain
        is "$(images)" kept.img
        is "$(head -c 8 "$POOL/kept.img")" precious
        listed
        is "$(disk_ids)" kept.img
        created '{"name": "kept", "id": "kept.img"}'
        removed '{"name": "kept", "reclaimPolicy": "delete"}'
        assert_no_volume
}

@test "a recycled volume is a disk of the same size with nothing on it" {
        local policy size
        for policy in given made; do
                created "{\"name\": \"data\", \"size\": \"3m\"$([[ $policy == given ]] || echo ', "reclaimPolicy": "recycle"')}"
                noise $((3 << 20)) | dd of="$POOL/data.img" bs=1M iflag=fullblock conv=notrunc status=none
                removed "{\"name\": \"data\"$([[ $policy == made ]] || echo ', "reclaimPolicy": "recycle"')}"
                assert_field .reclaimPolicy recycle
                is "$(provisioned)" ''
                is "$(stat --format %s "$POOL/data.img")" $((3 << 20))
                is_all_zero "$POOL/data.img"
                listed
                assert_field '[.disks[] | .id, .size, .targetType] | join(" ")' "data.img 3145728 raw"
                rm "$POOL/data.img"
        done
        # a size that is no multiple of a block
        size=$((4096 * 3 + 100))
        noise "$size" >"$POOL/odd.img"
        created '{"name": "data", "id": "odd.img", "reclaimPolicy": "recycle"}'
        removed '{"name": "data"}'
        is "$(stat --format %s "$POOL/odd.img")" "$size"
        is_all_zero "$POOL/odd.img"
}

@test "a recycled volume has all its blocks where it had them, and a sparse one takes none" {
        local preallocate before
        make_pool_on_ext4 small 48m
        for preallocate in true false; do
                created "{\"name\": \"data\", \"size\": \"32m\", \"pool\": \"small\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                # larger than all the room there is
                [[ $preallocate == true ]] || truncate -s 64m "$POOL_DIR/data.img"
                noise 65536 | dd of="$POOL_DIR/data.img" conv=notrunc status=none
                before=$(stat --format %b "$POOL_DIR/data.img")
                removed '{"name": "data", "reclaimPolicy": "recycle"}'
                [[ $preallocate == true ]] || before=0
                is "$(stat --format %b "$POOL_DIR/data.img")" "$before"
                is_all_zero "$POOL_DIR/data.img"
                rm "$POOL_DIR/data.img"
        done
}

@test "a volume of a pool that is gone from the configuration is kept, and says so" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        mv "$FLEXGRAFT_POOLS/fast.json" "$BATS_TEST_TMPDIR/"
        remove '{"name": "data"}'
        refused ENOENT fast
        is "$(images "$POOL_DIR")" data.img
        listed
        is "$(volume_names)" data
        mv "$BATS_TEST_TMPDIR/fast.json" "$FLEXGRAFT_POOLS/"
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a volume whose pool is gone for good is forgotten when it is given up, and only then" {
        make_pool fast
        created '{"name": "one", "size": "1m", "pool": "fast"}'
        created '{"name": "two", "size": "1m", "pool": "fast", "reclaimPolicy": "retain"}'
        mv "$POOL_DIR" "$POOL_DIR.away"
        remove '{"name": "two"}'
        refused ENODEV
        removed '{"name": "one", "reclaimPolicy": "retain"}'
        assert_field '.reclaimPolicy' retain
        rm "$FLEXGRAFT_POOLS/fast.json"
        remove '{"name": "two"}'
        refused ENOENT
        removed '{"name": "two", "reclaimPolicy": "retain"}'
        is "$(provisioned)" ''
        [[ -s $POOL_DIR.away/one.img ]]
}
