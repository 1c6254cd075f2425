#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# volume-create, volume-delete, volume-list, volume-capacity: volumes made in pools, adopted, given back, listed and measured.

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
        create '{"name": "data", "size": "1m", "fsType": "xfs"}'
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
        is "$(available fast)" $((before - (16 << 20)))
        removed '{"name": "data"}'
        is "$(available fast)" "$before"
}

@test "preallocate true is what is done anyway, and other parameters are refused" {
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
        created '{"name": "files", "size": "1m", "targetType": "mount", "fsType": "xfs"}'
        assert_field '[.volume.targetType, .volume.fsType] | join(" ")' "mount xfs"
        listed
        assert_field '[.volumes[] | .name + "=" + .targetType] | join(" ")' "data=block files=mount"
}

@test "an image of that name that is nobody's is neither taken nor touched" {
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

@test "what is no image where a volume's image would be is neither followed nor removed" {
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
                HELPER_PREFIX=(timeout 10)
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
        mkfs.ext4 -q -F "$(jq -r .volume.path <<<"$json")"
        mkdir "$BATS_TEST_TMPDIR/mnt"
        attach_loop "$POOL/data.img"
        mount "$LOOP" "$BATS_TEST_TMPDIR/mnt"
        echo text >"$BATS_TEST_TMPDIR/mnt/file"
        umount "$BATS_TEST_TMPDIR/mnt"
        detach_loop
        created '{"name": "data", "size": "16m"}'
        e2fsck -fn "$POOL/data.img"
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
        refused EBUSY "${DEVICES[data]}"
        kubelet_publish data
        echo text >"$(pod_dir data)/file"
        remove '{"name": "data"}'
        refused EBUSY
        DRIVER_ATTACHES=true lifecycle_down data
        removed '{"name": "data"}'
        assert_no_volume
        is "$(loops_of_driver)$(volume_records)" ''
}

@test "the driver attaches what volume-create made under any name" {
        created '{"name": "odd name/1", "size": "8m", "fsType": "ext4"}'
        kubelet_attach 'odd name/1' type=loop "image=$(jq -r .volume.id <<<"$json")"
        is "$(loop_of "$(jq -r '.volumes[0].path' <<<"$("$(program volume-list)")")")" "${DEVICES['odd name/1']}"
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
        kubelet_publish data "$POD" mountOptions=exec
        [[ $(node_mount_options "$(pod_dir data)") != *noexec* ]]
        DRIVER_ATTACHES=true lifecycle_down data
        removed '{"name": "data"}'
}

@test "what contradicts a volume's promise is not mounted" {
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

@test "a volume that is half made or half deleted is nobody's to attach, and ends as it was begun" {
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
        succeeded
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
                dd if=/dev/urandom of="$POOL/data.img" bs=1M count=3 conv=notrunc status=none
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
        head -c "$size" /dev/urandom >"$POOL/odd.img"
        created '{"name": "data", "id": "odd.img", "reclaimPolicy": "recycle"}'
        removed '{"name": "data"}'
        is "$(stat --format %s "$POOL/odd.img")" "$size"
        is_all_zero "$POOL/odd.img"
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

# ---- capacity

# capacity_returns: to what it was, by making volumes of all kinds and giving them back.
capacity_returns() {
        local before i
        helper volume-capacity '{"pool": "fast"}'
        before=$output
        for i in 1 2 3; do
                created "{\"name\": \"data $i\", \"size\": \"$((i * 3))m\", \"pool\": \"fast\"}"
                created "{\"name\": \"sparse $i\", \"size\": \"$i$i\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"false\"}}"
        done
        [[ $(available fast) != "$(jq '.pools[0].available' <<<"$before")" ]]
        for i in 1 2 3; do
                removed "{\"name\": \"data $i\"}"
                removed "{\"name\": \"sparse $i\"}"
        done
        helper volume-capacity '{"pool": "fast"}'
        is "$output" "$before" "the capacity"
        created '{"name": "disk", "size": "2m", "pool": "fast", "reclaimPolicy": "recycle"}'
        removed '{"name": "disk"}'
        is "$(available fast)" "$(jq '.pools[0].available - 2097152' <<<"$before")"
        created '{"name": "disk", "id": "disk.img", "pool": "fast"}'
        removed '{"name": "disk", "reclaimPolicy": "delete"}'
        helper volume-capacity '{"pool": "fast"}'
        is "$output" "$before" "the capacity"
}

# fills: the largest volume that is told can be made, one that is larger cannot, and that one leaves nothing.
fills() {
        local room before
        room=$(largest fast)
        ((room > 1 << 20))
        before=$(images "$POOL_DIR")
        create "{\"name\": \"large\", \"size\": $((room + 4096)), \"pool\": \"fast\"}"
        refused ENOSPC "$room"
        create "{\"name\": \"large\", \"size\": $((room + 1)), \"pool\": \"fast\"}"
        refused ENOSPC "$room"
        is "$(provisioned)" ''
        is "$(images "$POOL_DIR")" "$before"
        created "{\"name\": \"large\", \"size\": $room, \"pool\": \"fast\"}"
        assert_field .volume.size "$room"
        create '{"name": "one more", "size": 1048576, "pool": "fast"}'
        refused ENOSPC
        removed '{"name": "large"}'
        is "$(largest fast)" "$room"
        created "{\"name\": \"large\", \"size\": $room, \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"false\"}}"
        create '{"name": "one more", "size": 4096, "pool": "fast"}'
        refused ENOSPC
        is "$(available fast)" 0
        removed '{"name": "large"}'
        is "$(provisioned)" ''
}

@test "what is given back to a pool in memory is all available again" {
        make_pool_in_memory fast 32m
        capacity_returns
}

@test "what is given back to a pool on ext4 is all available again" {
        make_pool_on_ext4 fast 64M
        capacity_returns
}

@test "the largest volume that is told can be made, and one a block larger cannot" {
        make_pool_in_memory fast 16m
        fills
}

@test "the largest volume that is told can be made on ext4, too" {
        make_pool_on_ext4 fast 64M
        fills
}

@test "the largest volume that is told can be made on an ext4 that is in pieces" {
        local i
        make_pool_on_ext4 fast 64M
        for ((i = 0; i < 400; i++)); do
                head -c 65536 /dev/zero >"$POOL_DIR/piece.$i"
        done
        rm "$POOL_DIR"/piece.*[02468]
        sync --file-system "$POOL_DIR"
        fills
}

@test "a pool uses as many percent of its filesystem as it may" {
        local half=16384000
        make_pool_in_memory fast 32000k '"maxPercent": 50'
        is "$(total fast)" "$half"
        is "$(largest fast)" "$half"
        fills
        created '{"name": "first", "size": "10m", "pool": "fast"}'
        is "$(available fast)" $((half - (10 << 20)))
        create '{"name": "second", "size": "7m", "pool": "fast"}'
        refused ENOSPC $((half - (10 << 20)))
        created "{\"name\": \"second\", \"size\": $((half - (10 << 20))), \"pool\": \"fast\"}"
        is "$(available fast)" 0
        # what others have there makes it less only where it must
        removed '{"name": "second"}'
        head -c $((12 << 20)) /dev/zero >"$POOL_DIR/foreign"
        is "$(available fast)" $((half - (10 << 20)))
        head -c $((8 << 20)) /dev/zero >"$POOL_DIR/foreign.2"
        is "$(available fast)" $((2 * half - (30 << 20)))
}

@test "a pool is never told to have more left than it has altogether" {
        local size
        for size in 32m 16m 12340k; do
                make_pool_in_memory fast "$size"
                measured '{"pool": "fast"}'
                assert_field '.pools[0] | .available <= .total and .largest <= .available' true
                is "$(total fast)" $(($(stat --file-system --format '%b * %S' "$POOL_DIR")))
                umount "$POOL_DIR"
        done
}

@test "a pool of one percent, and one of hundred" {
        make_pool_in_memory one 32m '"maxPercent": 1'
        make_pool_in_memory all 32m '"maxPercent": 100'
        is "$(total one)" $(((32 << 20) / 100 / 4096 * 4096))
        is "$(available all)" $((32 << 20))
}

@test "capacity and list tell of one pool where one is asked for" {
        make_pool a
        make_pool b
        created '{"name": "one", "size": 4096, "pool": "a"}'
        created '{"name": "two", "size": 4096, "pool": "b"}'
        make_disk "$POOL_DIR" disk.img 1m
        measured
        assert_field '[.pools[].name] | join(" ")' "a b default"
        measured '{"pool": "b"}'
        assert_field '[.pools[].name] | join(" ")' b
        listed '{"pool": "b"}'
        assert_field '[.pools[].name] | join(" ")' b
        is "$(volume_names) $(disk_ids)" "two disk.img"
        listed '{"pool": "a"}'
        is "$(volume_names) $(disk_ids)" "one "
        helper volume-list '{"pool": "c"}'
        refused ENOENT c
        helper volume-capacity '{"pool": "c"}'
        refused ENOENT
        helper volume-capacity '{"profile": "none"}'
        refused ENOENT none
}

# ---- names

odd_names() {
        local name
        printf '%s\0' 'a b' '../escape' '..' '.' '/' '/etc/passwd' 'a/../../../b' '.hidden' 'a"b' "a'b" 'a\b' '%2e%2e' '%s%n' '$(touch x)' \
                '-rf' 'grün' '日本語' $'\u202egpj' 'a.img' 'a.json' 'profiles' 'profiles.set' '.lock' 'a@b' '*' 'null'
        printf -v name '%128s' ''
        printf '%s\0' "${name// /n}"
        printf -v name '%255s' ''
        printf '%s\0' "${name// /n}" "${name// //}"
}

@test "a volume may have any printable name, and its image is in the pool" {
        local name count=0 asked text found
        make_pool fast
        while IFS= read -r -d '' name; do
                asked=$(named "$name" '"size": 4096, "pool": "fast"')
                created "$asked" || { echo "the name: $name"; return 1; }
                text=${asked%%, \"size\"*}
                shows "${text/'": "'/'":"'}" '"existed":false'
                [[ $output =~ \"path\":\"([^\"]+)\" && ${BASH_REMATCH[1]} == "$POOL_DIR"/* && -f ${BASH_REMATCH[1]} ]]
                count=$((count + 1))
                found=("$POOL_DIR"/*)
                is "${#found[@]}" "$count" "the number of images with $name"
                found=("$STATE_DIR"/provisioned/*.json)
                is "${#found[@]}" "$count" "the number of records with $name"
                created "$asked"
                existed true
        done < <(odd_names)
        ((count == 29))
        is "$(find "$BATS_TEST_TMPDIR" -name '*.img' ! -path "$POOL_DIR/*")" '' "outside of the pool"
        listed
        assert_field '.volumes | length' "$count"
        assert_field '[.volumes[].name] == ([.volumes[].name] | sort)' true
        is "$(disk_ids)" ''
        while IFS= read -r -d '' name; do
                removed "$(named "$name")"
                existed true
        done < <(odd_names)
        assert_no_volume "$POOL_DIR"
}

@test "long names that differ at their end are different volumes" {
        local long
        printf -v long '%254s' ''
        created "$(named "${long// /n}a" '"size": 4096')"
        created "$(named "${long// /n}b" '"size": 8192')"
        existed false
        is "$(images | wc -l)" 2
        removed "$(named "${long// /n}a")"
        created "$(named "${long// /n}b" '"size": 8192')"
        existed true
}

@test "names that are escaped alike are different volumes" {
        created '{"name": "a/b", "size": 4096}'
        created '{"name": "a%2Fb", "size": 8192}'
        existed false
        created '{"name": "A", "size": 8192}'
        created '{"name": "a", "size": 4096}'
        existed false
        is "$(images | wc -l)" 4
}

@test "a name that is empty, too long or not printable is refused" {
        local name long
        printf -v long '%256s' ''
        while IFS= read -r name; do
                create "{\"name\": $name, \"size\": 4096}"
                refused_key name || { echo "with $name"; return 1; }
                remove "{\"name\": $name}"
                refused_key name || { echo "with $name"; return 1; }
        done < <(printf '%s\n' '""' "\"${long// /n}\"" '"a\nb"' '"\u001b[2J"' '"\u0000"' '"a\u0000b"' '"\u007f"' '"\t"')
        create $'{"name": "\xff", "size": 4096}'
        is "$status" 2
        assert_one_json_line
        assert_no_volume
}

# ---- disks

@test "an image that no volume has is a disk, with an id" {
        make_pool fast
        make_disk "$POOL_DIR" b.img 2m
        make_disk "$POOL_DIR" a.img 1m
        : >"$POOL_DIR/notes.txt"
        : >"$POOL_DIR/.hidden.img"
        mkdir "$POOL_DIR/dir.img"
        mkfifo "$POOL_DIR/fifo.img"
        ln -s a.img "$POOL_DIR/link.img"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        listed '{"pool": "fast"}'
        assert_field '[.disks | sort_by(.id)[] | .id, .pool, .type, .size, .targetType] | join(" ")' \
                "a.img fast loop 1048576 raw b.img fast loop 2097152 raw"
        assert_field '[.disks[] | select(.id == "a.img").path] | join(" ")' "$POOL_DIR/a.img"
        assert_field '[.pools[] | .name, .targetType, has("id")] | join(" ")' "fast raw false"
        is "$(volume_names)" data
}

@test "a disk whose name is no UTF-8 does not spoil the list" {
        mkdir -p "$POOL"
        : >"$POOL"/$'b\xff.img'
        make_disk "$POOL" a.img 1m
        listed
        assert_field '.disks | length' 2
        measured
}

@test "an adopted disk keeps what is on it, and says its size" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 5m precious
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        assert_field '.volume | [.name, .id, .size, .adopted, .reclaimPolicy, .path] | join(" ")' "data disk.img 5242880 true retain $POOL_DIR/disk.img"
        existed false
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        existed true
        created '{"name": "data", "pool": "fast", "id": "disk.img", "size": "4m"}'
        existed true
        create '{"name": "data", "pool": "fast", "id": "disk.img", "size": "6m"}'
        refused EEXIST size
        is "$(head -c 8 "$POOL_DIR/disk.img")" precious
        is "$(stat --format %s "$POOL_DIR/disk.img")" $((5 << 20))
        listed
        is "$(disk_ids)$(volume_names)" data
        removed '{"name": "data"}'
        assert_field .reclaimPolicy retain
        is "$(head -c 8 "$POOL_DIR/disk.img")" precious
        listed
        is "$(disk_ids)$(volume_names)" disk.img
}

@test "an adopted disk is deleted or recycled where that is asked for" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 1m precious
        created '{"name": "data", "pool": "fast", "id": "disk.img"}'
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        is_all_zero "$POOL_DIR/disk.img"
        is "$(stat --format %s "$POOL_DIR/disk.img")" $((1 << 20))
        listed
        is "$(disk_ids)" disk.img
        created '{"name": "data", "pool": "fast", "id": "disk.img", "reclaimPolicy": "delete"}'
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a disk that another volume has is not adopted" {
        make_pool fast
        created '{"name": "first", "size": "1m", "pool": "fast"}'
        create '{"name": "second", "pool": "fast", "id": "first.img"}'
        refused EBUSY first
        make_disk "$POOL_DIR" disk.img 1m
        created '{"name": "third", "pool": "fast", "id": "disk.img"}'
        create '{"name": "fourth", "pool": "fast", "id": "disk.img"}'
        refused EBUSY third
        create '{"name": "disk", "size": "1m", "pool": "fast"}'
        refused EEXIST third
        is "$(provisioned | tr '\n' ' ')" "first.json third.json "
}

@test "a disk that is attached, too small, or not there is not adopted" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 1m
        : >"$POOL_DIR/empty.img"
        attach_loop "$POOL_DIR/disk.img"
        create '{"name": "data", "pool": "fast", "id": "disk.img"}'
        refused EBUSY "$LOOP"
        detach_loop
        create '{"name": "data", "pool": "fast", "id": "disk.img", "size": "2m"}'
        refused ERANGE 1048576 2097152
        create '{"name": "data", "pool": "fast", "id": "empty.img"}'
        assert_failure
        create '{"name": "data", "pool": "fast", "id": "nothing.img"}'
        refused ENOENT nothing.img fast
        create '{"name": "data", "pool": "slow", "id": "disk.img"}'
        refused ENOENT slow
        is "$(provisioned)" ''
        created '{"name": "data", "pool": "fast", "id": "disk.img", "size": "1m"}'
}

@test "an id that is no image of the pool is refused, and nothing outside is touched" {
        local id
        make_pool fast
        make_disk "$BATS_TEST_TMPDIR/srv" outside.img 1m precious
        make_disk "$POOL_DIR" real.img 1m
        make_disk "$POOL_DIR" .hidden.img 1m
        make_disk "$POOL_DIR" notes.txt 1m
        mkdir "$POOL_DIR/dir.img"
        make_disk "$POOL_DIR/dir.img" inner.img 1m
        mkfifo "$POOL_DIR/fifo.img"
        mknod "$POOL_DIR/device.img" c 1 3
        ln -s real.img "$POOL_DIR/link.img"
        ln -s ../outside.img "$POOL_DIR/escape.img"
        ln -s nothing "$POOL_DIR/dangling.img"
        for id in ../outside.img .hidden.img notes.txt dir.img dir.img/inner.img fifo.img device.img link.img escape.img dangling.img ./real.img \
                ../fast/real.img "$POOL_DIR/real.img" . .. / real.img/ .img; do
                HELPER_PREFIX=(timeout 10)
                create "$(named data "\"pool\": \"fast\", \"id\": \"$id\"")"
                assert_failure || { echo "with $id"; return 1; }
                is "$(provisioned)" '' "the records with $id"
        done
        is "$(head -c 8 "$BATS_TEST_TMPDIR/srv/outside.img")" precious
        [[ -L $POOL_DIR/link.img && -p $POOL_DIR/fifo.img && -d $POOL_DIR/dir.img ]]
        listed '{"pool": "fast"}'
        is "$(disk_ids)" real.img
}

@test "one disk is adopted by one of many" {
        adoption() { echo "{\"name\": \"data $1\", \"id\": \"disk.img\"}"; }
        mkdir -p "$POOL"
        make_disk "$POOL" disk.img 1m
        at_once 8 adoption
        is "$(count_replies '.status == "Success"')" 1
        is "$(count_replies '.error.errno == "EBUSY"')" 7
        is "$(provisioned | wc -l)" 1
}

@test "two pools of one directory do not have two volumes of one image" {
        make_pool fast
        printf '{"name": "alias", "type": "loop", "path": "%s"}\n' "$POOL_DIR" >"$FLEXGRAFT_POOLS/alias.json"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        create '{"name": "twice", "id": "data.img", "pool": "alias"}'
        assert_failure
}

# ---- match

match_setup() {
        make_pool fast
        make_disk "$POOL_DIR" large.img 8m
        make_disk "$POOL_DIR" middle.img 4m
        make_disk "$POOL_DIR" small.img 2m
}

match() { # NAME SIZE
        created "{\"name\": \"$1\", \"size\": \"$2\", \"pool\": \"fast\", \"match\": true}"
        assert_field .volume.name "$1"
}

@test "match adopts the smallest disk that is large enough, and makes a volume if there is none" {
        match_setup
        match one 3m
        assert_field '.volume | [.id, .size, .adopted, .reclaimPolicy] | join(" ")' "middle.img 4194304 true retain"
        match one 3m
        existed true
        match two 2m
        assert_field .volume.id small.img
        match three 2m
        assert_field .volume.id large.img
        match four 2m
        assert_field '.volume | [.id, .adopted, .reclaimPolicy] | join(" ")' "four.img false delete"
        listed '{"pool": "fast"}'
        is "$(disk_ids)" ''
}

@test "match makes a volume where all disks are too small" {
        match_setup
        match one 9m
        assert_field '.volume | [.id, .size, .adopted] | join(" ")' "one.img 9437184 false"
}

@test "match never takes a disk that is attached" {
        match_setup
        attach_loop "$POOL_DIR/small.img"
        match one 1m
        assert_field .volume.id middle.img
        detach_loop
        match two 1m
        assert_field .volume.id small.img
}

@test "match never takes a disk with something on it, wherever that is" {
        local at
        make_pool fast
        for at in 0 511 4095 65600 1048575 1048576 2097152 4194303; do
                make_disk "$POOL_DIR" disk.img 4m
                printf x | dd of="$POOL_DIR/disk.img" bs=1 seek="$at" conv=notrunc status=none
                match data 1m
                assert_field .volume.adopted false || { echo "with a byte at $at"; return 1; }
                removed '{"name": "data"}'
                rm "$POOL_DIR/disk.img"
        done
}

@test "match keeps to the pool that is asked for" {
        match_setup
        created '{"name": "one", "size": "2m", "match": true, "pool": "default"}'
        assert_field '.volume | [.pool, .id] | join(" ")' "default one.img"
        create '{"name": "two", "size": "2m", "match": true, "pool": "nowhere"}'
        refused ENOENT
        created '{"name": "three", "size": "1m", "match": false, "pool": "fast"}'
        assert_field .volume.adopted false
}

@test "match passes over a pool that cannot be looked at, unless that is asked for" {
        make_pool fast
        make_disk "$POOL_DIR" disk.img 4m
        echo '{"type": "loop", "path": "/nowhere"}' >"$FLEXGRAFT_POOLS/away.json"
        created '{"name": "one", "size": "1m", "match": true}'
        assert_field '.volume | [.pool, .id] | join(" ")' "fast disk.img"
        create '{"name": "two", "size": "1m", "match": true, "pool": "away"}'
        refused ENOENT
        listed
        assert_field '[.volumes[].name] | join(" ")' one
}

@test "a disk with an id is looked for in each pool of its profile, however full they are" {
        make_pool_in_memory a 2m
        make_pool_in_memory b 8m
        make_disk "$POOL_DIR" disk.img 7m
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "loop"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        create '{"name": "none", "profile": "any", "id": "nothing.img"}'
        refused ENOENT nothing.img any
        created '{"name": "data", "profile": "any", "id": "disk.img", "size": "7m"}'
        assert_field '.volume | [.pool, .id, .adopted] | join(" ")' "b disk.img true"
}

@test "two matches at once never get the same disk" {
        local round
        matching() { echo "{\"name\": \"data $1\", \"size\": \"1m\", \"pool\": \"fast\", \"match\": true}"; }
        make_pool_in_memory fast 64m
        for round in 1 2 3 4; do
                make_disk "$POOL_DIR" "disk $round.img" 1m
        done
        at_once 8 matching
        is "$(count_replies '.status == "Success"')" 8
        is "$(count_replies '.volume.adopted')" 4
        is "$(printf '%s\n' "${REPLIES[@]}" | jq -r .volume.id | sort -u | wc -l)" 8
}

# ---- profiles

@test "a profile picks its pool by type and name, and what it says arrives" {
        make_pool fast
        make_pool slow
        write_profiles "\"db\": $(profile_for slow '"fs_type": "xfs", "mount_flags": ["noatime", "nodev"]' '"create_parameters": {"preallocate": "false"}')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field '.volume | [.pool, .profile, .fsType, .accessMode, .targetType, .parameters.preallocate, (.mountFlags | join(","))] | join(" ")' \
                "slow db xfs SINGLE_NODE_WRITER mount false noatime,nodev"
        is "$(allocated "$BATS_TEST_TMPDIR/srv/slow/data.img")" 0
        created '{"name": "more", "size": "1m", "profile": "db", "pool": "slow", "fsType": "ext4"}'
        assert_field '.volume.fsType' ext4
        create '{"name": "other", "size": "1m", "profile": "db", "pool": "fast"}'
        refused EINVAL db fast
        measured
        assert_field '[.pools[] | select(.profiles | length > 0) | .name, .profiles[].profile] | join(" ")' "slow db"
        assert_field '.pools[] | select(.name == "slow") | .profiles[0].available == .available' true
        measured '{"profile": "db", "pool": "slow"}'
        assert_field '.pools[0].profiles[0].profile' db
}

@test "a profile for a type of plugin picks the first pool with room" {
        make_pool_in_memory a 2m
        make_pool_in_memory b 16m
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"},
                "volume_capabilities": {"block": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}},
                "none": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.lvm"},
                "volume_capabilities": {"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        created '{"name": "one", "size": "1m", "profile": "any"}'
        assert_field '.volume | [.pool, .targetType, .accessMode] | join(" ")' "a block MULTI_NODE_MULTI_WRITER"
        created '{"name": "two", "size": "4m", "profile": "any"}'
        assert_field '.volume.pool' b
        create '{"name": "three", "size": "1t", "profile": "any"}'
        refused ENOSPC any
        create '{"name": "four", "size": "1m", "profile": "none"}'
        refused ENOENT none
        is "$(provisioned | tr '\n' ' ')" "one.json two.json "
}

@test "fields of a profile that nobody knows are passed over" {
        write_profiles "\"db\": $(profile_for default '"fs_type": "ext4", "future": 1' '"future": {"a": [1]}, "comment": "text"')"
        created '{"name": "data", "size": "1m", "profile": "db"}'
        assert_field .volume.fsType ext4
        jq -c '.more = {"a": 1} | ._comment = ["b"]' "$FLEXGRAFT_PROFILES" >"$BATS_TEST_TMPDIR/new"
        mv "$BATS_TEST_TMPDIR/new" "$FLEXGRAFT_PROFILES"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[].profiles[].profile] | join(" ")' db
}

@test "a profile's target type is not to be contradicted" {
        write_profiles "\"files\": $(profile_for default), \"raw\": $(profile_for default | sed 's/"mount": {}/"block": {}/')"
        create '{"name": "data", "size": "1m", "profile": "files", "targetType": "block"}'
        refused EINVAL files block
        create '{"name": "data", "size": "1m", "profile": "raw", "targetType": "mount"}'
        refused EINVAL raw mount
        create '{"name": "data", "size": "1m", "profile": "raw", "fsType": "ext4"}'
        refused EINVAL raw
        assert_no_volume
        created '{"name": "data", "size": "1m", "profile": "raw", "targetType": "block"}'
}

@test "a profile with parameters that its pool does not know makes nothing" {
        write_profiles "\"odd\": $(profile_for default '' '"create_parameters": {"raid": "5"}')"
        create '{"name": "data", "size": "1m", "profile": "odd"}'
        refused EINVAL raid
        assert_no_volume
}

@test "without a file of profiles there are none" {
        [[ ! -e $FLEXGRAFT_PROFILES ]]
        measured
        assert_field '[.inactiveProfiles, .profilesProblem, [.pools[].profiles[]]] | tojson' '[[],null,[]]'
        create '{"name": "data", "size": "1m", "profile": "db"}'
        refused ENOENT db
        assert_no_volume
}

# What is wrong with a file of profiles, and a word of what is said of it; "good" is what was there before.
broken_profiles() {
        local good
        good=$(profile_for default | tr -d '\n')
        printf '%s\n' "no JSON=line 1" "[]=object" "{}=profile_matrix" '{"profile_matrix": []}=profile_matrix' \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": 7}}=bad" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": {}}}=bad" \
                "{\"profile_matrix\": {\"new\": $good, \"new\": $good}}=line" \
                "{\"profile_matrix\": {\"new\": $good, \"\": $good}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {}, "block": {}'}}}=block" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}, '/}}}=block" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/SINGLE_NODE_WRITER/ANYBODY}}}=access_mode" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {"fs_type": 7}'}}}=fs_type" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/'"mount": {"mount_flags": "noatime"}'}}}=mount_flags" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"resource_providers"'/'"providers"'}}}=resource_providers" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"name": "default"'/'"name": 1'}}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"name": "default"'/'"name": ""'}}}=name" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good/'"mount": {}'/"\"mount\": {\"mount_flags\": [\"$(printf 'x%.0s' {1..4097})\"]}"}}}=mount_flags" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good%\}}, \"csi_plugin_type_selector\": {\"plugin_type\": \"loop\"}}}}=selector" \
                "{\"profile_matrix\": {\"new\": $good, \"bad\": ${good%\}}, \"create_parameters\": {\"preallocate\": true}}}}=create_parameters"
}

@test "one bad profile rejects the file, and the set before it stays" {
        local line
        write_profiles "\"good\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "first", "size": 4096}'
        measured
        while IFS= read -r line; do
                printf '%s\n' "${line%=*}" >"$FLEXGRAFT_PROFILES"
                measured
                shows '"profile":"good"' "\"profilesProblem\":\"$FLEXGRAFT_PROFILES" || { echo "with $line"; return 1; }
                [[ ${output#*profilesProblem} == *"${line##*=}"* && $output != *'"profile":"new"'* ]] || { echo "with $line"; show_last; return 1; }
                create '{"name": "data", "size": 4096, "profile": "new"}'
                refused ENOENT new
                created '{"name": "data", "size": 4096, "profile": "good"}'
                removed '{"name": "data"}'
        done < <(broken_profiles)
        write_profiles "\"new\": $(profile_for default)"
        measured
        assert_field .profilesProblem null
        assert_field '[.pools[].profiles[].profile] | join(" ")' new
}

@test "what is null in a profile is not set" {
        write_profiles "\"files\": $(profile_for default '"fs_type": null, "mount_flags": null' '"create_parameters": null, "csi_plugin_type_selector": null' |
                sed 's/"mount":/"block": null, "mount":/')"
        created '{"name": "data", "size": 4096, "profile": "files"}'
        assert_field '.volume | [.targetType, has("fsType"), has("mountFlags")] | join(" ")' "mount false false"
}

@test "what is no file where the profiles should be is a problem that is told, not one that hangs" {
        write_profiles "\"good\": $(profile_for default)"
        created '{"name": "first", "size": 4096}'
        HELPER_PREFIX=(timeout 10)
        rm "$FLEXGRAFT_PROFILES"
        mkfifo "$FLEXGRAFT_PROFILES"
        measured
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
        assert_field 'has("profilesProblem")' true
        rm "$FLEXGRAFT_PROFILES"
        mkdir "$FLEXGRAFT_PROFILES"
        measured
        assert_field 'has("profilesProblem")' true
}

@test "the set before a bad file stays on a node that has no volume yet, too" {
        write_profiles "\"good\": $(profile_for default)"
        measured
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
        echo nonsense >"$FLEXGRAFT_PROFILES"
        measured
        assert_field 'has("profilesProblem")' true
        assert_field '[.pools[].profiles[].profile] | join(" ")' good
}

@test "a profile that a volume was made with does not change when the file does" {
        write_profiles "\"used\": $(profile_for default '"fs_type": "ext4"'), \"unused\": $(profile_for default '"fs_type": "ext4"')"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"'), \"unused\": $(profile_for default '"fs_type": "xfs"')"
        created '{"name": "two", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
        created '{"name": "three", "size": 4096, "profile": "unused"}'
        assert_field .volume.fsType xfs
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        # nobody uses it any more
        created '{"name": "one", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType xfs
}

@test "a profile that vanished is inactive, and its volumes go on" {
        local both
        both="\"used\": $(profile_for default '"fs_type": "ext4"'), \"unused\": $(profile_for default)"
        write_profiles "$both"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        write_profiles ''
        measured
        assert_field '.inactiveProfiles | sort | join(" ")' "unused used"
        assert_field '[.pools[].profiles[]] | length' 0
        create '{"name": "two", "size": 4096, "profile": "used"}'
        refused ESTALE used inactive
        create '{"name": "two", "size": 4096, "profile": "unused"}'
        refused ESTALE unused inactive
        created '{"name": "one", "size": 4096, "profile": "used"}'
        existed true
        assert_field '.volume | [.profile, .fsType] | join(" ")' "used ext4"
        helper volume-capacity '{"profile": "used"}'
        refused ESTALE
        # it comes back as it was
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"')"
        measured
        assert_field '.inactiveProfiles | join(" ")' unused
        created '{"name": "two", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType ext4
        write_profiles ''
        removed '{"name": "one"}'
        removed '{"name": "two"}'
        create '{"name": "three", "size": 4096, "profile": "used"}'
        refused ESTALE
        # nobody uses it: it may come back as another
        write_profiles "\"used\": $(profile_for default '"fs_type": "xfs"')"
        created '{"name": "three", "size": 4096, "profile": "used"}'
        assert_field .volume.fsType xfs
}

@test "the file of profiles that is gone altogether makes the used one inactive" {
        write_profiles "\"used\": $(profile_for default)"
        created '{"name": "one", "size": 4096, "profile": "used"}'
        rm "$FLEXGRAFT_PROFILES"
        measured
        assert_field '.inactiveProfiles | join(" ")' used
        assert_field .profilesProblem null
}

@test "match with a profile looks in that profile's pools alone" {
        make_pool fast
        make_pool slow
        make_disk "$BATS_TEST_TMPDIR/srv/fast" disk.img 1m
        write_profiles "\"slow\": $(profile_for slow '"fs_type": "xfs"'), \"fast\": $(profile_for fast '"fs_type": "xfs"')"
        created '{"name": "one", "size": 4096, "profile": "slow", "match": true}'
        assert_field '.volume | [.pool, .adopted] | join(" ")' "slow false"
        created '{"name": "two", "size": 4096, "profile": "fast", "match": true}'
        assert_field '.volume | [.pool, .adopted, .profile, .fsType] | join(" ")' "fast true fast xfs"
}

# ---- operations

@test "the same operation has the same answer, whatever became of the volume" {
        local first
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        first=$output
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        is "$output" "$first"
        # the same request with its keys in another order, and spaces
        created '{ "operation":"op-1",  "size":"1m", "name":"data" }'
        is "$output" "$first"
        removed '{"name": "data"}'
        created '{"name": "data", "size": "1m", "operation": "op-1"}'
        is "$output" "$first"
        assert_no_volume
        created '{"name": "data", "size": "1m", "operation": "op-2"}'
        existed false
        is "$(images)" data.img
        removed '{"name": "data", "operation": "op-3"}'
        existed true
        created '{"name": "data", "size": "2m"}'
        removed '{"name": "data", "operation": "op-3"}'
        existed true
        is "$(images)" data.img
}

@test "an operation's id is not for another request" {
        created '{"name": "data", "size": "1m", "operation": "op"}'
        create '{"name": "data", "size": "2m", "operation": "op"}'
        refused EEXIST op
        create '{"name": "other", "size": "1m", "operation": "op"}'
        refused EEXIST op
        remove '{"name": "data", "operation": "op"}'
        refused EEXIST op
        is "$(images)" data.img
        is "$(provisioned)" data.json
}

@test "an operation that failed may be tried again" {
        make_pool_in_memory fast 2m
        create '{"name": "data", "size": "4m", "pool": "fast", "operation": "op"}'
        refused ENOSPC
        mount -o remount,size=8m "$POOL_DIR"
        created '{"name": "data", "size": "4m", "pool": "fast", "operation": "op"}'
        existed false
}

@test "an operation's id may hold anything printable" {
        local name text
        while IFS= read -r -d '' name; do
                text=$(named "$name" '"size": 4096')
                created "{\"name\": \"data\", \"operation\"${text#'{"name"'}"
        done < <(odd_names)
        is "$(find "$STATE_DIR/operations" -name '*.json' | wc -l)" 29
        is "$(find "$BATS_TEST_TMPDIR" -name '*escape*' ! -path "$STATE_DIR/operations/*")" ''
        create '{"name": "data", "size": 4096, "operation": ""}'
        refused_key operation
        create '{"name": "data", "size": 4096, "operation": "a\nb"}'
        refused_key operation
}

@test "operations are forgotten after a week" {
        created '{"name": "data", "size": 4096, "operation": "old"}'
        touch --date '8 days ago' "$STATE_DIR/operations/old.json"
        created '{"name": "data", "size": 4096, "operation": "new"}'
        is "$(cd "$STATE_DIR/operations" && echo *.json)" new.json
        removed '{"name": "data"}'
        created '{"name": "data", "size": 4096, "operation": "old"}'
        is "$(images)" data.img
}

@test "a torn note of an operation is as none" {
        created '{"name": "data", "size": 4096, "operation": "op"}'
        truncate -s 20 "$STATE_DIR/operations/op.json"
        created '{"name": "data", "size": 4096, "operation": "op"}'
        existed true
        created '{"name": "data", "size": 4096, "operation": "op"}'
        printf '{}' >"$STATE_DIR/operations/op.json"
        create '{"name": "data", "size": 4096, "operation": "op"}'
        assert_one_json_line
}

@test "one operation's id does not make two volumes at a time" {
        # in another pool, whose lock is another
        make_pool fast
        export SECOND='{"name": "second", "size": 4096, "pool": "fast", "operation": "op"}'
        export CREATE="$FLEXGRAFT_BIN/volume-create"
        # shellcheck disable=SC2016
        at_syscall --timeout 30 --at fallocate --run 'timeout 3 "$CREATE" "$SECOND"' "$CREATE" '{"name": "first", "size": 4096, "operation": "op"}'
        [[ $AT_REACHED == 1 ]]
        assert_success
        create "$SECOND"
        refused EEXIST
        is "$(provisioned)" first.json
}

# ---- records

@test "a record says what was promised, and only root may read it" {
        created '{"name": "data", "size": 5000}'
        json=$(<"$STATE_DIR/provisioned/data.json")
        assert_field '[.version, .name, .pool, .id, .size, .askedSize, .stage] | join(" ")' "1 data default data.img 8192 5000 created"
        is "$(stat --format '%a %u' "$STATE_DIR/provisioned/data.json")" "600 0"
        is "$(stat --format %a "$STATE_DIR/provisioned")" 700
}

@test "a torn record is set aside, and is no trouble for other volumes" {
        local text record=$STATE_DIR/provisioned/torn.json
        created '{"name": "data", "size": 4096}'
        while IFS= read -r text; do
                printf %s "$text" >"$record"
                listed
                shows '"volumes":[{"name":"data",' || { echo "with $text"; return 1; }
                is "$(<"$record.bad")" "$text" "what was set aside"
                rm "$record.bad"
                printf %s "$text" >"$record"
                created '{"name": "torn", "size": 4096}' || { echo "with $text"; return 1; }
                existed false
                removed '{"name": "torn"}'
                rm "$record.bad"
                printf %s "$text" >"$record"
                created '{"name": "data", "size": 4096}'
                removed '{"name": "torn"}'
                rm -f "$record" "$record.bad"
        done < <(printf '%s\n' '' '{' '{"version": 1, "na' '[]' 'null' '{}' '{"version": 1}' '{"version": "1", "name": "torn"}' 'no JSON' \
                '{"version":1,"stage":"created","size":1.5,"askedSize":1,"name":"torn","pool":"default","id":"torn.img"}')
        removed '{"name": "data"}'
        assert_no_volume
}

@test "what is no file where a record should be is no trouble for other volumes" {
        local sort record=$STATE_DIR/provisioned/odd.json
        created '{"name": "data", "size": 4096}'
        HELPER_PREFIX=(timeout 10)
        for sort in directory fifo link dangling loop device; do
                case $sort in
                directory) mkdir "$record" ;;
                fifo) mkfifo "$record" ;;
                link) echo precious >"$BATS_TEST_TMPDIR/victim" && ln -s "$BATS_TEST_TMPDIR/victim" "$record" ;;
                dangling) ln -s "$BATS_TEST_TMPDIR/nothing" "$record" ;;
                loop) ln -s odd.json "$record" ;;
                device) mknod "$record" c 1 5 ;;
                esac
                listed || { echo "with a $sort"; return 1; }
                is "$(volume_names)" data
                created '{"name": "data", "size": 4096}'
                rm -rf "$record" "$record.bad"
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" precious
        [[ ! -e $BATS_TEST_TMPDIR/nothing ]]
}

# newer NAME: the volume's record is of a version that is not known.
newer() {
        jq -c '.version = 99 | .future = true' "$STATE_DIR/provisioned/$1.json" >"$BATS_TEST_TMPDIR/newer.json"
        cat "$BATS_TEST_TMPDIR/newer.json" >"$STATE_DIR/provisioned/$1.json"
}

@test "a record of another version is left alone and refused" {
        created '{"name": "data", "size": 4096}'
        newer data
        create '{"name": "data", "size": 4096}'
        refused EPROTONOSUPPORT version 99
        remove '{"name": "data"}'
        refused EPROTONOSUPPORT version 99
        cmp "$BATS_TEST_TMPDIR/newer.json" "$STATE_DIR/provisioned/data.json"
        is "$(images)" data.img
}

@test "a record of another version is no trouble for other volumes" {
        created '{"name": "data", "size": 4096}'
        created '{"name": "other", "size": 4096}'
        newer data
        created '{"name": "other", "size": 4096}'
        existed true
        removed '{"name": "other"}'
        created '{"name": "third", "size": 4096}'
        measured
        # what it has is nobody else's
        create '{"name": "thief", "id": "data.img"}'
        assert_failure
        cmp "$BATS_TEST_TMPDIR/newer.json" "$STATE_DIR/provisioned/data.json"
}

@test "a state directory that others may write to is refused" {
        local dir mode
        created '{"name": "data", "size": 4096}'
        for dir in "$STATE_DIR" "$STATE_DIR/provisioned"; do
                for mode in 0777 0770 0702 1777; do
                        chmod "$mode" "$dir"
                        create '{"name": "more", "size": 4096}'
                        refused EPERM "$STATE_DIR" || { echo "with mode $mode of $dir"; return 1; }
                        remove '{"name": "data"}'
                        refused EPERM
                        helper volume-list
                        refused EPERM
                        helper volume-capacity
                        refused EPERM
                        chmod 0700 "$dir"
                done
                chown 1000 "$dir"
                create '{"name": "more", "size": 4096}'
                assert_failure
                chown 0 "$dir"
        done
        is "$(images)" data.img
        created '{"name": "data", "size": 4096}'
        existed true
}

@test "a state directory that is read-only is a clean failure" {
        make_pool fast
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        mount -o remount,ro "$STATE_DIR"
        create '{"name": "more", "size": 4096, "pool": "fast"}'
        refused EROFS
        remove '{"name": "data"}'
        refused EROFS
        is "$(images "$POOL_DIR")" data.img
        mount -o remount,rw "$STATE_DIR"
        created '{"name": "more", "size": 4096, "pool": "fast"}'
        removed '{"name": "data"}'
        is "$(images "$POOL_DIR")" more.img
}

@test "a state directory that is full is a clean failure" {
        local round
        make_pool fast
        mount -o remount,size=64k "$STATE_DIR"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
        cat /dev/zero >"$STATE_DIR/ballast" 2>/dev/null || :
        # one page more each time: whichever write it is that fails
        for round in 1 2 3 4 5; do
                create '{"name": "more", "size": 4096, "pool": "fast"}'
                [[ $status != 0 ]] || break
                refused ENOSPC
                is "$(images "$POOL_DIR")" data.img "the images with $round pages"
                is "$(provisioned)" data.json "the records with $round pages"
                truncate -s -4096 "$STATE_DIR/ballast"
        done
        succeeded
        rm "$STATE_DIR/ballast"
        removed '{"name": "more"}'
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a volume may be deleted although the disk is full" {
        mount -o remount,size=4m "$STATE_DIR"
        created '{"name": "data", "size": "1m"}'
        cat /dev/zero >"$STATE_DIR/ballast" 2>/dev/null || :
        removed '{"name": "data"}'
        assert_no_volume
}

@test "the largest volume that is told can be made where the records are, too" {
        local room
        mount -o remount,size=4m "$STATE_DIR"
        created '{"name": "data", "size": 4096}'
        room=$(largest default)
        ((room > 1 << 20))
        created "{\"name\": \"large\", \"size\": $room}"
        removed '{"name": "large"}'
        is "$(largest default)" "$room"
}

@test "a list reads each record a few times, however many there are" {
        local i record calls
        created '{"name": "data", "size": 4096}'
        record=$(<"$STATE_DIR/provisioned/data.json")
        truncate -s 4096 "$POOL"/v{1..60}.img
        for i in {1..60}; do
                printf %s "${record//'"data'/"\"v$i"}" >"$STATE_DIR/provisioned/v$i.json"
        done
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$(program volume-list)"
        succeeded
        assert_field '[(.volumes | length), (.disks | length)] | join(" ")' "61 0"
        calls=$(grep -c ' openat ' "$BATS_TEST_TMPDIR/calls")
        ((calls < 61 * 10)) || { echo "$calls files are opened for 61 volumes"; return 1; }
}

# ---- a full pool, and many at a time

@test "a pool that is full although its capacity said otherwise makes nothing" {
        make_pool_in_memory fast 8m
        # inodes run out, which no capacity tells of
        mount -o remount,nr_inodes=3 "$POOL_DIR"
        : >"$POOL_DIR/one"
        : >"$POOL_DIR/two"
        create '{"name": "data", "size": "1m", "pool": "fast"}'
        refused ENOSPC
        is "$(provisioned)" ''
        rm "$POOL_DIR/one"
        created '{"name": "data", "size": "1m", "pool": "fast"}'
}

@test "a full pool makes nothing, and is left as it was" {
        local left
        make_pool_in_memory fast 8m
        head -c 7m /dev/zero >"$POOL_DIR/ballast" 2>/dev/null || head -c $((7 << 20)) /dev/zero >"$POOL_DIR/ballast"
        left=$(available fast)
        is "$left" $((1 << 20))
        create '{"name": "data", "size": "2m", "pool": "fast"}'
        refused ENOSPC "$left"
        is "$(images "$POOL_DIR")" ballast
        is "$(provisioned)" ''
        is "$(available fast)" "$left"
}

@test "sixteen volumes made at a time are sixteen volumes" {
        sixteen() { echo "{\"name\": \"data $1\", \"size\": \"1m\"}"; }
        at_once 16 sixteen
        is "$(count_replies '.status == "Success" and .existed == false')" 16
        is "$(images | wc -l)" 16
        listed
        assert_field '.volumes | length' 16
}

@test "one volume made sixteen times at a time is one volume" {
        same() { echo '{"name": "data", "size": "1m"}'; }
        at_once 16 same
        is "$(count_replies '.status == "Success"')" 16
        is "$(count_replies '.existed == false')" 1
        is "$(images)" data.img
        is "$(provisioned)" data.json
}

@test "a pool is never overbooked by many at a time" {
        local preallocate
        crowd() { echo "{\"name\": \"data $1\", \"size\": \"2m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"; }
        for preallocate in true false; do
                make_pool_in_memory fast 15m
                at_once 16 crowd
                is "$(count_replies '.status == "Success"')" 7
                is "$(count_replies '.error.errno == "ENOSPC"')" 9
                is "$(images "$POOL_DIR" | wc -l)" 7
                is "$(provisioned | wc -l)" 7
                (($(cat "$POOL_DIR"/*.img | wc -c) == 14 << 20))
                rm "$STATE_DIR"/provisioned/*.json
                umount "$POOL_DIR"
        done
}

@test "volumes made and deleted at a time leave nothing" {
        local i pids=()
        for i in 1 2 3 4 5 6 7 8; do
                (
                        for _ in 1 2 3 4; do
                                "$(program volume-create)" "{\"name\": \"data $((i % 4))\", \"size\": \"1m\"}" >>"$BATS_TEST_TMPDIR/storm.$i" 2>&1
                                "$(program volume-delete)" "{\"name\": \"data $((i % 4))\"}" >>"$BATS_TEST_TMPDIR/storm.$i" 2>&1
                        done
                ) 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        is "$(cat "$BATS_TEST_TMPDIR"/storm.* | jq -r .status | sort | uniq -c | tr -s ' ')" " 64 Success"
        assert_no_volume
}

# ---- metrics

@test "metrics have a heading each, escape their labels, and say what the JSON says" {
        local expected
        make_pool_in_memory fast 8m '"maxPercent": 50'
        jq -cn --argjson p "$(profile_for fast)" '{profile_matrix: {"od\"d\\x": $p, "line\nfeed": $p, "plain": $p}}' >"$FLEXGRAFT_PROFILES"
        created '{"name": "data", "size": 4096, "profile": "od\"d\\x"}'
        measured
        # shellcheck disable=SC2016
        expected=$(jq -r 'def escaped: gsub("\\\\"; "\\\\") | gsub("\""; "\\\"") | gsub("\n"; "\\n");
                (.pools[] | "{pool=\"\(.name)\",type=\"\(.type)\"}" as $labels |
                        "flexgraft_pool_size_bytes\($labels) \(.total)", "flexgraft_pool_available_bytes\($labels) \(.available)",
                        "flexgraft_pool_largest_volume_bytes\($labels) \(.largest)"),
                (.pools[] | .name as $pool | .profiles[] | "{pool=\"\($pool)\",profile=\"\(.profile | escaped)\"}" as $labels |
                        "flexgraft_profile_available_bytes\($labels) \(.available)",
                        "flexgraft_profile_largest_volume_bytes\($labels) \(.largest)"),
                (.pools[] | "flexgraft_pool_problem{pool=\"\(.name)\"} 0"), "flexgraft_profiles_rejected 0"' <<<"$json" | sort)
        helper volume-capacity --format prometheus
        is "$status" 0
        is "$stderr" ''
        # another pool's numbers change with every record that is written: none was
        is "$(grep -v '^#' <<<"${output%$'\n'}" | sort)" "$expected"
        [[ $output == *'profile="od\"d\\x"'* && $output == *'profile="line\nfeed"'* ]]
        [[ $output == *$'\n' ]]
        is "$(awk '/^# HELP / { help[$3]++ } /^# TYPE / { type[$3]++; if ($4 != "gauge") bad = 1 }
                !/^#/ { name = $0; sub(/[{ ].*/, "", name); if (help[name] != 1 || type[name] != 1) bad = 1; seen[name] = 1 }
                END { print bad + 0, length(seen) }' <<<"${output%$'\n'}")" "0 7"
}

@test "metrics tell of a pool that cannot be looked at, and of a file of profiles that was not taken" {
        echo '{"type": "loop", "path": "/nowhere"}' >"$FLEXGRAFT_POOLS/away.json"
        echo nonsense >"$FLEXGRAFT_PROFILES"
        helper volume-capacity --format prometheus
        is "$status" 0
        is "$(grep -E '^flexgraft_(pool_problem|profiles_rejected)|away' <<<"$output" | paste -s -d' ')" \
                'flexgraft_pool_problem{pool="away"} 1 flexgraft_pool_problem{pool="default"} 0 flexgraft_profiles_rejected 1'
}

@test "metrics of one pool, and the JSON where that is asked for" {
        make_pool fast
        helper volume-capacity --format prometheus '{"pool": "fast"}'
        is "$status" 0
        [[ $output == *'{pool="fast",type="loop"}'* && $output != *default* ]]
        helper volume-capacity --format json '{"pool": "fast"}'
        assert_success
        assert_field '.pools[0].name' fast
        echo '{"pool": "fast"}' | "$(program volume-capacity)" --format prometheus - | grep -q '^flexgraft_pool_size_bytes{pool="fast"'
}

@test "metrics that cannot be had are one line on standard error" {
        helper volume-capacity --format prometheus '{"pool": "nowhere"}'
        is "$status" 1
        is "$output" ''
        [[ $stderr == *nowhere*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        helper volume-capacity --format prometheus '{"nonsense": 1}'
        is "$status" 2
        is "$output" ''
        [[ $stderr == *nonsense*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        chmod 0777 "$STATE_DIR"
        helper volume-capacity --format prometheus
        is "$status" 1
        is "$output" ''
        [[ $stderr == *"$STATE_DIR"*$'\n' && ${stderr%$'\n'} != *$'\n'* ]]
        chmod 0700 "$STATE_DIR"
        status=0
        "$(program volume-capacity)" --format prometheus >/dev/full || status=$?
        is "$status" 1
}

@test "a format that nobody knows is refused" {
        local arguments
        for arguments in '--format' '--format xml' '--format prometheus {} {}' '--nonsense'; do
                # shellcheck disable=SC2086
                helper volume-capacity $arguments
                is "$status" 2 "the exit status with $arguments"
        done
}

# ---- requests

@test "a request that cannot be understood is refused, and the key is named" {
        local line
        while IFS= read -r line; do
                create "${line#*=}"
                refused_key "${line%%=*}" || { echo "with $line"; return 1; }
        done <<'LINES'
nonsense={"name": "data", "size": 4096, "nonsense": 1}
Name={"Name": "data", "size": 4096}
name={"name": "data", "name": "other", "size": 4096}
size={"name": "data", "size": 4096, "size": 8192}
name={"size": 4096}
name={"name": 7, "size": 4096}
name={"name": null, "size": 4096}
name={"name": ["data"], "size": 4096}
size={"name": "data"}
size={"name": "data", "size": 0}
size={"name": "data", "size": -1}
size={"name": "data", "size": 1.5}
size={"name": "data", "size": "1x"}
size={"name": "data", "size": "50%"}
size={"name": "data", "size": ""}
size={"name": "data", "size": true}
size={"name": "data", "size": "9999999t"}
size={"name": "data", "match": true}
pool={"name": "data", "size": 4096, "pool": 7}
pool={"name": "data", "size": 4096, "pool": ""}
profile={"name": "data", "size": 4096, "profile": {}}
targetType={"name": "data", "size": 4096, "targetType": "raw"}
fsType={"name": "data", "size": 4096, "fsType": "", "targetType": "mount"}
fsType={"name": "data", "size": 4096, "fsType": "ext4", "targetType": "block"}
parameters={"name": "data", "size": 4096, "parameters": []}
parameters={"name": "data", "size": 4096, "parameters": {"preallocate": false}}
parameters={"name": "data", "size": 4096, "parameters": {"preallocate": "false"}, "profile": "db"}
parameters={"name": "data", "id": "disk.img", "parameters": {"preallocate": "false"}}
parameters={"name": "data", "size": 4096, "match": true, "parameters": {"preallocate": "false"}}
match={"name": "data", "size": 4096, "match": "true"}
match={"name": "data", "size": 4096, "match": true, "id": "disk.img"}
id={"name": "data", "id": 7}
id={"name": "data", "id": "a\nb"}
reclaimPolicy={"name": "data", "size": 4096, "reclaimPolicy": "burn"}
operation={"name": "data", "size": 4096, "operation": 1}
LINES
        assert_no_volume
}

@test "delete, list and capacity refuse what is not theirs" {
        local line
        while IFS= read -r line; do
                helper "volume-${line%%=*}" "${line##*=}"
                line=${line#*=}
                refused_key "${line%%=*}" || { echo "with $line"; return 1; }
        done <<'LINES'
delete=size={"name": "data", "size": 4096}
delete=name={}
delete=pool={"name": "data", "pool": "default"}
delete=reclaimPolicy={"name": "data", "reclaimPolicy": "keep"}
list=name={"name": "data"}
list=profile={"profile": "db"}
list=pool={"pool": null}
capacity=name={"name": "data"}
capacity=size={"size": 4096}
LINES
}

@test "what is no JSON object is refused" {
        local program text
        for program in volume-create volume-delete volume-list volume-capacity; do
                for text in '' 'nonsense' '[]' '"text"' '{' '{"name": "data", "size": 4096' '{} {}' 'null'; do
                        helper "$program" "$text"
                        assert_one_json_line
                        is "$status" 2 "the exit status of $program '$text'"
                done
                helper "$program" '{"name": "data"}' '{"name": "data"}'
                is "$status" 2
        done
        helper volume-create
        is "$status" 2
        helper volume-delete
        is "$status" 2
        [[ ! -e $STATE_DIR/provisioned ]]
}

@test "a request may come from standard input" {
        json=$(echo '{"name": "data", "size": "1m"}' | "$(program volume-create)" -)
        existed false
        json=$(echo '{"pool": "default"}' | "$(program volume-list)" -)
        is "$(volume_names)" data
        json=$(echo '{"pool": "default"}' | "$(program volume-capacity)" -)
        assert_field .status Success
        json=$(echo '{"name": "data"}' | "$(program volume-delete)" -)
        existed true
        json=$("$(program volume-create)" - </dev/null || :)
        assert_field .status Failure
        json=$(head -c 1000000 /dev/zero | tr '\0' ' ' | "$(program volume-create)" - || :)
        assert_field .status Failure
        assert_no_volume
}

@test "each program explains itself" {
        local name
        for name in volume-create volume-delete volume-list volume-capacity; do
                helper "$name" --help
                is "$status $stderr" '0 '
                [[ $output == "Usage: $name "* && $output == *"Example: $name"* && $output == *"Exit status:"* ]]
                ((${#output} > 300))
                helper "$name" --version
                is "$status $stderr" '0 '
                [[ $output == "$name (flexgraft) "*$'\n' && ${output%$'\n'} != *$'\n'* ]]
                status=0
                "$(program "$name")" --help >/dev/full 2>/dev/null || status=$?
                [[ $status != 0 ]]
        done
        [[ ! -e $STATE_DIR/provisioned ]]
}

@test "without root nothing is done" {
        local name
        created '{"name": "data", "size": 4096}'
        chmod 0755 "$STATE_DIR"
        for name in volume-create volume-delete volume-list volume-capacity; do
                # the programs where anybody may run them
                install -m 0755 "$(program "$name")" "$BATS_TEST_TMPDIR/$name"
                HELPER_PREFIX=("$(tool as-user)" 1000 1000 -)
                status=0
                output=$("${HELPER_PREFIX[@]}" "$BATS_TEST_TMPDIR/$name" '{"name": "data"}' 2>&1) || status=$?
                [[ $status != 0 ]] || { echo "$name: $output"; return 1; }
        done
        is "$(images)" data.img
}

# ---- pools

# What is wrong with a pool's file, and a word of what is said of it.
broken_pools() {
        local path='"path": "/tmp"'
        printf '%s\n' "no JSON=line 1" "{=line 2" "[]=object" "{\"type\": \"loop\", $path, \"nonsense\": 1}=nonsense" \
                "{\"type\": \"loop\", \"name\": \"other\", $path}=name" "{\"type\": \"tape\", $path}=type" "{$path}=type" '{"type": "loop"}=path' \
                '{"type": "loop", "path": "relative"}=path' '{"type": "loop", "path": 7}=path' "{\"type\": \"loop\", $path, \"maxPercent\": 0}=maxPercent" \
                "{\"type\": \"loop\", $path, \"maxPercent\": 101}=maxPercent" "{\"type\": \"loop\", $path, \"maxPercent\": \"50\"}=maxPercent" \
                "{\"type\": \"loop\", \"type\": \"loop\", $path}=type"
}

@test "a pool's file that is broken is refused, and the line or key is named" {
        local line
        while IFS= read -r line; do
                printf '%s\n' "${line%=*}" >"$FLEXGRAFT_POOLS/fast.json"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EBADMSG "${line##*=}" fast.json || { echo "with $line"; return 1; }
                helper volume-list '{"pool": "fast"}'
                refused EBADMSG "${line##*=}"
                created '{"name": "other", "size": 4096}'
        done < <(broken_pools)
        is "$(provisioned)" other.json
}

@test "a broken pool is no trouble for another" {
        make_pool good
        echo nonsense >"$FLEXGRAFT_POOLS/broken.json"
        make_pool missing
        rmdir "$POOL_DIR"
        created '{"name": "data", "size": 4096, "pool": "good"}'
        created '{"name": "data", "size": 4096, "pool": "good"}'
        listed '{"pool": "good"}'
        is "$(volume_names)" data
        measured '{"pool": "good"}'
        created '{"name": "more", "size": 4096, "pool": "good", "match": true}'
        removed '{"name": "data"}'
}

@test "a pool whose directory is missing is refused" {
        make_pool fast
        rmdir "$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused ENOENT "$POOL_DIR"
        helper volume-capacity '{"pool": "fast"}'
        refused ENOENT "$POOL_DIR"
        [[ ! -e $POOL_DIR ]]
        : >"$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused ENOTDIR
        is "$(provisioned)" ''
}

@test "a pool that others may write to is refused" {
        local mode
        make_pool fast
        for mode in 0777 0775 0757 1777; do
                chmod "$mode" "$POOL_DIR"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EPERM "$POOL_DIR" || { echo "with mode $mode"; return 1; }
        done
        chmod 0755 "$POOL_DIR"
        chown 1000 "$POOL_DIR"
        create '{"name": "data", "size": 4096, "pool": "fast"}'
        refused EPERM
        chown 0 "$POOL_DIR"
        for mode in 0666 0622; do
                chmod "$mode" "$FLEXGRAFT_POOLS/fast.json"
                create '{"name": "data", "size": 4096, "pool": "fast"}'
                refused EPERM fast.json || { echo "with mode $mode"; return 1; }
        done
        chmod 0644 "$FLEXGRAFT_POOLS/fast.json"
        assert_no_volume "$POOL_DIR"
        created '{"name": "data", "size": 4096, "pool": "fast"}'
}

@test "what is no pool's name is refused" {
        local name
        for name in .. . ../pools.d/fast /fast .fast a/b; do
                create "$(named data "\"size\": 4096, \"pool\": \"$name\"")"
                assert_failure EINVAL || { echo "with $name"; return 1; }
        done
        create '{"name": "data", "size": 4096, "pool": "nowhere"}'
        refused ENOENT nowhere
        assert_no_volume
}

@test "the pool default is there without a file, and is what its file says where there is one" {
        created '{"name": "one", "size": 4096}'
        assert_field .volume.path "$POOL/one.img"
        removed '{"name": "one"}'
        make_pool default
        created '{"name": "one", "size": 4096}'
        assert_field .volume.path "$POOL_DIR/one.img"
}

@test "the log says what was made and given back" {
        created '{"name": "data", "size": 4096}'
        removed '{"name": "data"}'
        create '{"name": "data", "size": 4096, "pool": "nowhere"}'
        grep -q 'volume-create.*made the volume data of 4096 bytes in pool default' "$LOG"
        grep -q 'volume-delete.*gave the volume data back to pool default (delete)' "$LOG"
        grep -q 'volume-create.*failed: .*nowhere' "$LOG"
}

# ---- killed, or refused a system call

# A create that was cut short is gone on with by the next; what else may come between: another volume, a delete, another request.

# cut_short CALL REQUEST: volume-create, killed before that call.
cut_short() {
        at_syscall --at "$1" --kill "$(program volume-create)" "$2"
        [[ $AT_REACHED == 1 ]]
}

@test "room that was taken while a create lay cut short is not given away twice" {
        local preallocate
        for preallocate in false true; do
                make_pool_in_memory fast 32m '"maxPercent": 50'
                cut_short ftruncate "{\"name\": \"first\", \"size\": \"12m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                create '{"name": "second", "size": "12m", "pool": "fast"}'
                create "{\"name\": \"first\", \"size\": \"12m\", \"pool\": \"fast\", \"parameters\": {\"preallocate\": \"$preallocate\"}}"
                (($(cat "$POOL_DIR"/*.img | wc -c) <= 16 << 20)) || { echo "overbooked, preallocate $preallocate"; ls -ls "$POOL_DIR"; return 1; }
                removed '{"name": "first"}'
                removed '{"name": "second"}'
                assert_no_volume "$POOL_DIR"
                umount "$POOL_DIR"
        done
}

@test "a create that was cut short is undone by a delete, whatever the reclaim policy" {
        local policy call
        for policy in delete retain recycle; do
                for call in fallocate ftruncate; do
                        cut_short "$call" "{\"name\": \"data\", \"size\": \"1m\", \"reclaimPolicy\": \"$policy\"}"
                        removed '{"name": "data"}'
                        assert_no_volume || { echo "$policy, cut short at $call"; return 1; }
                done
        done
}

@test "a create that was cut short before its record was there leaves nothing after a delete" {
        created '{"name": "other", "size": 4096}'
        removed '{"name": "other"}'
        cut_short renameat '{"name": "data", "size": "1m"}'
        removed '{"name": "data"}'
        existed false
        assert_no_volume
}

@test "a create that was cut short makes way for another of the same name" {
        local policy
        for policy in delete retain recycle; do
                cut_short ftruncate "{\"name\": \"data\", \"size\": \"1m\", \"reclaimPolicy\": \"$policy\"}"
                created "{\"name\": \"data\", \"size\": \"2m\", \"reclaimPolicy\": \"$policy\"}" || { echo "with $policy"; return 1; }
                assert_field .volume.size 2097152
                is "$(stat --format %s "$POOL/data.img")" 2097152
                removed '{"name": "data", "reclaimPolicy": "delete"}'
                assert_no_volume
        done
}

@test "a create that was cut short is shown as such, and is no disk" {
        cut_short ftruncate '{"name": "data", "size": "1m"}'
        listed
        assert_field '[.volumes[] | .name, .state] | join(" ")' "data creating"
        is "$(disk_ids)" ''
        create '{"name": "thief", "id": "data.img"}'
        assert_failure
}

@test "a delete that was cut short is gone through with by a create, too" {
        created '{"name": "data", "size": "1m"}'
        echo old | dd of="$POOL/data.img" conv=notrunc status=none
        at_syscall --at unlinkat --kill "$(program volume-delete)" '{"name": "data"}'
        [[ $AT_REACHED == 1 ]]
        created '{"name": "data", "size": "1m"}'
        existed false
        is_all_zero "$POOL/data.img"
}

# The sweeps: a round is one life of a volume, with the swept program acted upon at its AT_NUMBER'th system call, called again, and the
# volume deleted; the next round has the next number, until that is past the last call. Kills are tried at every third call of volume-create,
# the other sweeps at every SWEEP_STRIDE'th, or LONG_STRIDE'th where every loop device of the node is looked at; each errno other ones, and each
# commit, too. FLEXGRAFT_SWEEP_STRIDE=1 tries all.

# sweep PROGRAM FIRST STRIDE ACTION...: CREATE and DELETE are the requests; MAKE is called before a round, AGAIN=no leaves the second call out.
sweep() {
        local swept=$1 first=$2 stride=$3 request tried=0 recovered=0 calls before now=''
        shift 3
        request=$CREATE
        [[ $swept == volume-create ]] || request=$DELETE
        first_state
        everything before
        calls=$AT_TOTAL
        for ((AT_NUMBER = first; ; AT_NUMBER += stride)); do
                "$MAKE"
                if [[ $swept == volume-delete ]]; then
                        helper volume-create "$CREATE"
                        succeeded || { echo "before call $AT_NUMBER"; return 1; }
                fi
                at_syscall --timeout 60 --at "$AT_NUMBER" "$@" "$(program "$swept")" "$request"
                [[ $AT_REACHED == 1 ]] || break
                tried=$((tried + 1))
                if round "$1" && everything now && [[ $now == "$before" ]]; then
                        recovered=$((recovered + 1))
                else
                        echo "call $AT_NUMBER, $AT_NAME ($swept $*):"
                        show_last
                        diff <(tr ' ' '\n' <<<"$before") <(tr ' ' '\n' <<<"$now") || :
                        scrub
                        ((tried - recovered < 6)) || { echo "6 failures: that will do"; break; }
                fi
        done
        # the last round was without an action
        helper volume-delete "$DELETE"
        echo "# $swept, $*: points tried $tried, recovered $recovered (every $stride. of $calls calls)" >&3
        ((tried > 0 && tried == recovered))
}

# first_state: a life with nothing done to it; AT_TOTAL and FIRST_CALL are the swept program's.
first_state() {
        "$MAKE"
        [[ $swept == volume-create ]] || created "$CREATE"
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$(program "$swept")" "$request"
        succeeded
        FIRST_CALL=$(awk '$3 == "fcntl" { print $1; exit }' "$BATS_TEST_TMPDIR/calls")
        removed "$DELETE"
}

round() {
        if [[ $1 == --fail ]]; then
                after_failure || { echo "after the call that failed"; return 1; }
        else
                clean_reply || { echo "after the call that was killed"; return 1; }
        fi
        if [[ $AGAIN == yes ]]; then
                helper "$swept" "$request"
                succeeded || { echo "again"; return 1; }
                [[ $swept == volume-delete ]] || effect || { echo "again, without effect"; return 1; }
        fi
        helper volume-delete "$DELETE"
        succeeded || { echo "the delete"; return 1; }
        ((AT_NUMBER % 16 == 0)) || return 0
        [[ -z $(loops_of_test) ]] || { echo "loop devices are left"; return 1; }
        wait_until 5 assert_no_helper_processes >/dev/null || assert_no_helper_processes
}

# What a caller may find after a program that could not do its work: nothing, or one line of JSON.
clean_reply() {
        [[ -z $output ]] && return 0
        [[ $output == '{"status":"'*$'}\n' && ${output%$'\n'} != *$'\n'* ]] || return 1
        [[ $output == '{"status":"Success","'* ]] || jq -e . <<<"$output" >/dev/null
}

# After a call that failed the program still says what happened. It may not if it cannot write, or never began.
after_failure() {
        clean_reply || return 1
        ((AT_NUMBER >= FIRST_CALL)) || return 0
        [[ $AT_NAME == write || $AT_NAME == exit_group ]] && return 0
        [[ -n $output && -z $stderr ]] || return 1
        case $output in
        '{"status":"Success"'*)
                [[ $status == 0 ]] || return 1
                [[ $swept == volume-delete || -n ${NO_EFFECT:-} ]] || effect || { echo "Success without effect"; return 1; }
                ;;
        *) [[ $status == 1 ]] ;;
        esac
}

# The image of the volume "data" is there, with its size and its record.
effect() {
        local size
        size=$(stat --format %s "$POOL_DIR/${DISK:-data.img}" 2>/dev/null) || return 1
        [[ $size == 1048576 && $(<"$STATE_DIR/provisioned/data.json") == *'"stage":"created"'* ]]
}

# everything VARIABLE: all that the programs could leave, in one text: what is in the state directory and the pool, less the operations that
# were done, which are remembered.
everything() {
        local -n everything_into=$1
        local found
        rm -f "$STATE_DIR"/operations/[!.]*
        found=("$STATE_DIR"/** "$POOL_DIR"/**)
        everything_into="${found[*]}"
}

scrub() {
        rm -rf "$STATE_DIR"/provisioned "$STATE_DIR"/operations "${POOL_DIR:?}"/*
}

sweep_setup() {
        LONG_STRIDE=$((SWEEP_STRIDE == 1 ? 1 : SWEEP_STRIDE * 3))
        make_pool_in_memory fast 16m
        CREATE='{"name": "data", "size": "1m", "pool": "fast"}' DELETE='{"name": "data"}' MAKE=: AGAIN=yes DISK=''
        # The first of all makes directories.
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        removed '{"name": "data"}'
}

sweep_failures() { # PROGRAM STRIDE
        local errno i=0 bad=0
        for errno in EIO ENOSPC ENOMEM; do
                sweep "$1" $((1 + (FLEXGRAFT_SWEEP_SEED + i++ * $2 / 3) % $2)) "$2" --fail "$errno" || bad=1
        done
        return "$bad"
}

@test "volume-create killed at any call: again succeeds, and delete leaves nothing" {
        sweep_setup
        sweep volume-create $((1 + SWEEP_OFFSET / 3)) $(((SWEEP_STRIDE + 2) / 3)) --kill
}

@test "volume-create killed while its worker lives on" {
        sweep_setup
        sweep volume-create $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill-main
}

@test "the first volume-create of a node killed at any call" {
        sweep_setup
        MAKE=scrub
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-create with a profile and an operation killed at any call" {
        sweep_setup
        write_profiles "\"db\": $(profile_for fast)"
        CREATE='{"name": "data", "size": "1m", "profile": "db", "operation": "op"}'
        created '{"name": "data", "size": "1m", "pool": "fast", "operation": "other"}'
        removed '{"name": "data"}'
        forget() { rm -f "$STATE_DIR"/operations/op.json; }
        MAKE=forget
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-create that adopts a disk killed at any call" {
        sweep_setup
        truncate -s 1m "$POOL_DIR/disk.img"
        CREATE='{"name": "data", "size": "1m", "pool": "fast", "match": true}' DISK=disk.img
        sweep volume-create $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill
        is "$(images "$POOL_DIR")" disk.img
}

@test "volume-create killed at any call and given up: one delete leaves nothing" {
        sweep_setup
        AGAIN=no
        sweep volume-create $((1 + SWEEP_OFFSET / 2)) $(((SWEEP_STRIDE + 1) / 2)) --kill
}

@test "volume-delete killed at any call: again succeeds, and nothing is left" {
        sweep_setup
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$SWEEP_STRIDE" --kill
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill-main
}

@test "volume-delete that recycles killed at any call" {
        sweep_setup
        CREATE='{"name": "data", "id": "disk.img", "pool": "fast"}' DELETE='{"name": "data", "reclaimPolicy": "recycle"}' DISK=disk.img
        fill() {
                [[ ! -e $POOL_DIR/disk.img ]] || is_all_zero "$POOL_DIR/disk.img"
                printf '%01048576d' 7 >"$POOL_DIR/disk.img"
        }
        MAKE=fill
        sweep volume-delete $((1 + SWEEP_OFFSET)) "$LONG_STRIDE" --kill
        is_all_zero "$POOL_DIR/disk.img"
}

@test "volume-create with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-create "$SWEEP_STRIDE"
}

@test "volume-delete with any call failing: a clean reply, and again succeeds" {
        sweep_setup
        sweep_failures volume-delete "$LONG_STRIDE"
}

@test "volume-list and volume-capacity with any call failing: a clean reply" {
        local swept errno tried clean=0 i=0
        NO_EFFECT=yes
        sweep_setup
        created "$CREATE"
        make_disk "$POOL_DIR" disk.img 1m
        write_profiles "\"db\": $(profile_for fast)"
        measured
        for swept in volume-list volume-capacity; do
                tried=0 clean=0
                at_syscall --log "$BATS_TEST_TMPDIR/calls" "$(program "$swept")"
                succeeded
                FIRST_CALL=$(awk '$3 == "fcntl" { print $1; exit }' "$BATS_TEST_TMPDIR/calls")
                for errno in EIO ENOMEM; do
                        for ((AT_NUMBER = 1 + (FLEXGRAFT_SWEEP_SEED + i++) % SWEEP_STRIDE; ; AT_NUMBER += SWEEP_STRIDE)); do
                                at_syscall --at "$AT_NUMBER" --fail "$errno" "$(program "$swept")"
                                [[ $AT_REACHED == 1 ]] || break
                                tried=$((tried + 1))
                                after_failure && clean=$((clean + 1)) || { echo "$swept: call $AT_NUMBER, $AT_NAME ($errno)"; show_last; }
                        done
                done
                echo "# $swept, --fail: points tried $tried, clean $clean" >&3
                ((tried > 0 && tried == clean)) || return 1
        done
        effect
}
