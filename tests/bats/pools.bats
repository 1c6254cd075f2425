#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the driver makes from "size" is a volume like any other; a pool whose filesystem is not mounted is missing, and a volume whose
# content is gone is lost: neither yields a blank volume.

load helpers
load driver_helpers
load volume_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
}

teardown() {
        driver_teardown
}

is_let_go() { # NAME
        ! is_loop_of_test "${DEVICES[$1]}"
}

# attach_again NAME [KEY=VALUE...]: a loop volume with a size, attached and detached.
attach_again() {
        kubelet_attach "$1" type=loop size=8Mi "${@:2}" && kubelet_detach "$1" && wait_until 5 is_let_go "$1"
}

# refuses_attach TEXT... -- [KEY=VALUE...]: attach of the loop volume "data" fails, and the message has each TEXT.
refuses_attach() {
        local texts=()
        while [[ $1 != -- ]]; do
                texts+=("$1")
                shift
        done
        call attach "$(spec data type=loop size=8Mi "${@:2}")" "$NODE"
        assert_refused "${texts[@]}"
        is "$(loops_of_driver)$(volume_records)" ""
}

# ---- a volume that the driver made

@test "volume-reconcile keeps no lock of a volume whose temporary file it removed" {
        created '{"name": "data", "size": "1m"}'
        echo half >"$STATE_DIR/provisioned/.gone.json.tmp"
        stopped_at openat --where 2=pool-sums "$FLEXGRAFT_BIN/volume-reconcile" '{}' # it counts the pools
        [[ ! -e $STATE_DIR/provisioned/.gone.json.tmp ]]
        run timeout 100 "$FLEXGRAFT_BIN/volume-create" '{"name": "gone", "size": "1m"}'
        is "$status" 0
        resumed
}

@test "a volume that the driver makes from size has the record that volume-create writes" {
        make_pool fast
        attach_again data pool=fast size=109Mi @fsType=btrfs
        listed
        assert_field '.volumes[0] | [.name, .pool, .type, .id, .size, .targetType, .reclaimPolicy, .adopted, .state, .fsType, .driver, .path] | map(tostring) | join(" ")' \
                "data fast loop data.img 114294784 mount delete false created btrfs flexgraft~flexgraft $POOL_DIR/data.img"
        is "$(disk_ids)" ""
        # to volume-create it is the volume of that name
        created '{"name": "data", "size": "109m", "pool": "fast"}'
        existed true
        create '{"name": "data", "size": "110m", "pool": "fast"}'
        refused EEXIST
}

@test "match never takes an image that the driver made" {
        attach_again data
        created '{"name": "other", "size": "1m", "match": true}'
        assert_field '.volume | [.id, .adopted] | map(tostring) | join(" ")' "other.img false"
        create '{"name": "third", "id": "data.img"}'
        refused EBUSY data
}

@test "volume-delete deletes what the driver made" {
        attach_again data
        removed '{"name": "data"}'
        existed true
        assert_field .reclaimPolicy delete
        assert_no_volume
        attach_again data
}

@test "volume-delete of a volume that the driver has attached is refused and names it" {
        kubelet_attach data type=loop size=8Mi
        remove '{"name": "data"}'
        refused EBUSY 'volume "data"' detach
        kubelet_stage data
        kubelet_publish data
        remove '{"name": "data"}'
        refused EBUSY "pod $POD"
        DRIVER_ATTACHES=true lifecycle_down data
        removed '{"name": "data"}'
        assert_no_volume
}

# looked_at COMMAND: data's device is detached while a process that runs COMMAND has it open.
looked_at() {
        kubelet_attach data type=loop size=8Mi
        # shellcheck disable=SC2016 # expanded there
        background_ready sh -c 'exec 9<"$1"; echo ready; exec $2' sh "${DEVICES[data]}" "$1"
        call detach data "$NODE"
        assert_success
        [[ $(losetup --noheadings --output AUTOCLEAR "${DEVICES[data]}") == *1* ]]
}

# at_pause N ACTION... PROGRAM REQUEST: at_syscall, at the Nth pause: a ppoll without descriptors.
at_pause() {
        at_syscall --at "ppoll:$1" --where 1=0 "${@:2}"
}

@test "volume-delete waits for a process that has looked at the volume's device" {
        looked_at "sleep 1000"
        at_pause 1 --run "kill -KILL $BACKGROUND_PID" "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        is "$status $AT_REACHED" "0 1"
        existed true
        assert_no_volume
        wait_until 5 no_loops_of_driver
}

@test "volume-delete does not wait for ever for a process that has the volume's device open" {
        looked_at "sleep 1000"
        at_pause 6 "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        refused EBUSY "${DEVICES[data]}" detach
        is "$AT_REACHED" 1
        [[ -s $POOL/data.img ]]
        end_process "$BACKGROUND_PID"
        removed '{"name": "data"}'
        assert_no_volume
}

@test "while volume-delete waits for a process others may use the pool" {
        looked_at "sleep 1000"
        at_pause 1 --run-output "$BATS_TEST_TMPDIR/created" \
                --run "$FLEXGRAFT_BIN/volume-create '{\"name\": \"other\", \"size\": \"1m\"}'; kill -KILL $BACKGROUND_PID" \
                "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        is "$status $AT_REACHED" "0 1"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/created")" Success
}

@test "volume-delete does not wait for an image that is mounted" {
        looked_at "sleep 1000"
        mkfs.ext4 -qF "${DEVICES[data]}"
        mkdir "$BATS_TEST_TMPDIR/mnt"
        mount "${DEVICES[data]}" "$BATS_TEST_TMPDIR/mnt"
        at_pause 1 "$FLEXGRAFT_BIN/volume-delete" '{"name": "data"}'
        refused EBUSY
        is "$AT_REACHED" 0
        umount "$BATS_TEST_TMPDIR/mnt"
        end_process "$BACKGROUND_PID"
        removed '{"name": "data"}'
}

@test "volume-delete and recycle refuse a volume whose raw device a container has, and adopting it, too" {
        needs mount-block
        created '{"name": "data", "size": "8m", "targetType": "block", "reclaimPolicy": "recycle"}'
        kubelet_attach data type=loop
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        rm -f "$STATE_DIR/volumes/data.json"
        remove '{"name": "data"}'
        refused EBUSY "container" "pid $CONTAINER_PID" /disk
        remove '{"name": "data", "reclaimPolicy": "delete"}'
        refused EBUSY "container"
        [[ -s $POOL/data.img ]]
        stop_container
        kubelet_detach data
        wait_until 5 no_loops_of_driver
}

@test "volume-delete refuses a volume that a container has whose recorded process has ended, but not all others" {
        needs mount-block
        created '{"name": "data", "size": "8m", "targetType": "block"}'
        kubelet_attach data type=loop
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"${DEVICES[data]}\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        sed -i 's/"pid": *[0-9]*/"pid":5000000/' "$STATE_DIR"/mounts/*.json
        rm -f "$STATE_DIR/volumes/data.json"
        remove '{"name": "data"}'
        refused EBUSY "container" /disk
        [[ -s $POOL/data.img ]]
        stop_container
        kubelet_detach data
        wait_until 5 no_loops_of_driver
}

@test "two names never share the image that the driver made for one of them" {
        echo '{"volumes": {"images": ["default"]}}' >"$FLEXGRAFT_POLICY"
        attach_again data image=shared.img
        call attach "$(spec other type=loop image=shared.img)" "$NODE"
        assert_refused shared.img '"data"'
        call attach "$(spec other type=loop size=8Mi image=shared.img)" "$NODE"
        assert_refused shared.img '"data"'
        created '{"name": "mine", "size": "8m"}'
        call attach "$(spec other type=loop size=8Mi image=mine.img)" "$NODE"
        assert_refused mine.img '"mine"'
        is "$(loops_of_driver)$(volume_records)" ""
        attach_again data image=shared.img
}

@test "an image that was there before its volume has a record is kept by volume-delete" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        make_disk "$POOL" data.img 8m "made by hand"
        attach_again data
        listed
        assert_field '.volumes[0] | [.name, .adopted, .reclaimPolicy] | map(tostring) | join(" ")' "data true retain"
        removed '{"name": "data"}'
        existed true
        is "$(head -c 12 "$POOL/data.img")" "made by hand"
}

@test "expandvolume writes the new size into the record of a volume that the driver made" {
        attach_again data image=some.img
        call expandvolume "$(spec data type=loop size=8Mi image=some.img)" "$(global_dir data)" 16777216 8388608
        assert_success
        listed
        assert_field '.volumes[0].size' 16777216
        is "$(stat --format %s "$POOL/some.img")" 16777216
}

# refuses_growth NAME PREALLOCATE SIZE: by expandvolume and volume-expand; the image, of 8 MiB, stays as it is.
refuses_growth() {
        call expandvolume "$(spec "$1" type=loop size=8Mi pool=fast preallocate="$2")" "$(global_dir "$1")" "$3" 8388608
        assert_refused "has room for it to grow by"
        helper volume-expand "{\"name\": \"$1\", \"size\": $3}"
        refused ENOSPC fast
        is "$(stat --format %s "$POOL_DIR/$1.img")" 8388608
}

@test "what the driver made does not grow beyond the share of its pool" {
        make_pool_in_memory fast 64m '"maxPercent": 50'
        attach_again data pool=fast
        refuses_growth data false $((40 << 20))
        call expandvolume "$(spec data type=loop size=8Mi pool=fast)" "$(global_dir data)" $((24 << 20)) 8388608
        assert_success
        is "$(stat --format %s "$POOL_DIR/data.img")" $((24 << 20))
}

@test "what the driver made with all its blocks does not grow into those that others lack" {
        make_pool_in_memory fast 64m
        created '{"name": "other", "size": "32m", "pool": "fast", "parameters": {"preallocate": "false"}}'
        attach_again data pool=fast preallocate=true
        refuses_growth data true $((40 << 20))
        # a sparse one may be larger than the room that is left
        attach_again sparse pool=fast
        call expandvolume "$(spec sparse type=loop size=8Mi pool=fast)" "$(global_dir sparse)" $((80 << 20)) 8388608
        assert_success
}

# sizes NAME...: of the records, as volume-list has them.
sizes() {
        listed
        jq -r '[.volumes[] | "\(.name) \(.size)"] | sort | join(" ")' <<<"$json"
}

@test "expandvolume never grows the image of the volume of another name, and no record but that of what grows" {
        local one two
        make_pool one
        one=$POOL_DIR
        make_pool two
        two=$POOL_DIR
        attach_again a pool=one
        make_disk "$two" a.img 8m
        created '{"name": "b", "pool": "two", "id": "a.img"}'
        call expandvolume "$(spec a type=loop pool=two)" "$(global_dir a)" 16777216 8388608
        assert_refused a.img 'the volume "b"'
        is "$(stat -c %s "$one/a.img" "$two/a.img" | xargs)" "8388608 8388608"
        is "$(sizes)" "a 8388608 b 8388608"
        # nor where the record is of another image of the pool
        make_disk "$two" other.img 8m
        created '{"name": "c", "pool": "two", "id": "other.img"}'
        make_disk "$two" c.img 8m
        call expandvolume "$(spec c type=loop pool=two)" "$(global_dir c)" 16777216 8388608
        assert_success
        is "$(stat -c %s "$two/c.img" "$two/other.img" | xargs)" "16777216 8388608"
        is "$(sizes)" "a 8388608 b 8388608 c 8388608"
}

@test "volume-expand is refused while a disk that is not the volume's is attached under its name" {
        needs volume-expand
        make_pool one
        attach_again a pool=one
        make_disk "$POOL_DIR" y.img 8m
        write_policy '"images": ["one"]'
        kubelet_attach a type=loop pool=one image=y.img
        helper volume-expand '{"name": "a", "size": "16m"}'
        refused EBUSY y.img attached
        is "$(stat -c %s "$POOL_DIR/a.img" "$POOL_DIR/y.img" | xargs) $(sizes)" "8388608 8388608 a 8388608"
        kubelet_detach a
        helper volume-expand '{"name": "a", "size": "16m"}'
        assert_success
        is "$(stat -c %s "$POOL_DIR/a.img" "$POOL_DIR/y.img" | xargs) $(sizes)" "16777216 8388608 a 16777216"
}

@test "an attached volume does not grow while the file of its pool is missing, since nothing tells whether there is room" {
        needs volume-expand
        make_pool fast
        kubelet_attach data type=loop size=8Mi pool=fast
        mv "$FLEXGRAFT_POOLS/fast.json" "$BATS_TEST_TMPDIR"
        call expandvolume "$(spec data)" "$(global_dir data)" 16777216 8388608
        assert_refused fast
        helper volume-expand '{"name": "data", "size": "16m"}'
        refused ENOENT fast
        is "$(stat -c %s "$POOL_DIR/data.img")" 8388608
        mv "$BATS_TEST_TMPDIR/fast.json" "$FLEXGRAFT_POOLS"
        call expandvolume "$(spec data)" "$(global_dir data)" 16777216 8388608
        assert_success
        kubelet_detach data
}

@test "volume-list shows nothing of a FlexVolume volume that has the name of another volume, but another disk" {
        created '{"name": "db", "size": "8m"}'
        truncate -s 16M "$BATS_TEST_TMPDIR/other"
        mkfs.ext4 -q -F "$BATS_TEST_TMPDIR/other"
        attach_loop "$BATS_TEST_TMPDIR/other"
        lifecycle_up db type=block "source=$LOOP"
        listed
        assert_field '.volumes[0] | [.health, .used, .free, .uses] | tojson' '["ok",null,null,[]]'
        lifecycle_down db
        lifecycle_up db type=loop
        listed
        assert_field '.volumes[0] | [.health, .used > 0, .free > 0, .uses[0].pod] | tojson' "[\"ok\",true,true,\"$POD\"]"
        lifecycle_down db
}

@test "volume-list shows who has a volume also by another path of its pool" {
        make_pool fast
        created '{"name": "db", "size": "8m", "pool": "fast"}'
        lifecycle_up db type=loop
        ln -s "$POOL_DIR" "$BATS_TEST_TMPDIR/link"
        printf '{"name": "fast", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/link" >"$FLEXGRAFT_POOLS/fast.json"
        listed
        assert_field '.volumes[0] | [.path, .uses[0].pod] | join(" ")' "$BATS_TEST_TMPDIR/link/db.img $POD"
        lifecycle_down db
}

@test "volume-expand of a volume whose image is gone says that, not that there is no such volume" {
        local kind
        needs volume-expand
        make_pool fast
        for kind in mount block; do
                created "{\"name\": \"$kind\", \"size\": \"8m\", \"pool\": \"fast\", \"targetType\": \"$kind\"}"
                rm "$POOL_DIR/$kind.img"
                helper volume-expand "{\"name\": \"$kind\", \"size\": \"16m\"}"
                refused ENOENT 'not in pool "fast" any more'
        done
}

# bats test_tags=sweep
@test "an attach that makes the image, killed anywhere, ends with one record of one image" {
        sweep --reply kubelet --kill --watch tree "$STATE_DIR" -- \
                act "$DRIVER" attach "$(spec data type=loop size=8Mi)" "$NODE" ';' \
                call "$DRIVER" attach "$(spec data type=loop size=8Mi)" "$NODE" ';' \
                contains "$STATE_DIR/provisioned/data.json" '"stage":"created"' ';' \
                size "$POOL/data.img" 8388608 ';' \
                call "$DRIVER" detach data "$NODE" ';' \
                sh "'$FLEXGRAFT_BIN/volume-delete' '{\"name\": \"data\"}'" ';' \
                loops "$BATS_TEST_TMPDIR/" 0 ';'
}

# ---- a volume without its content is lost

@test "a volume whose image is gone is lost: it is not made anew until it is deleted" {
        attach_again data
        rm "$POOL/data.img"
        refuses_attach lost data.img volume-delete --
        is "$(images)" ""
        removed '{"name": "data"}'
        attach_again data
        is "$(images)" data.img
}

@test "a volume of volume-create whose image is gone is lost to the driver, too" {
        created '{"name": "data", "size": "8m"}'
        rm "$POOL/data.img"
        refuses_attach lost data.img --
        is "$(images)" ""
}

@test "a new volume never takes the name of a lost disk" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        make_disk "$POOL" data.img 8m
        created '{"name": "first", "id": "data.img"}'
        rm "$POOL/data.img"
        create '{"name": "data", "size": "8m"}'
        refused EEXIST '"first"' lost
        refuses_attach '"first"' --
        is "$(images)" ""
}

@test "a volume that was formatted once is not formatted again when it is blank" {
        lifecycle_up data type=loop size=8Mi
        echo text >"$(pod_dir data)/file"
        lifecycle_down data
        : >"$POOL/data.img"
        truncate -s 8M "$POOL/data.img"
        kubelet_attach data type=loop size=8Mi
        make_dir "$(global_dir data)"
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "${SPECS[data]}"
        assert_refused lost blank volume-delete
        is "$(mounts_here | grep -cF mounts/data)" 0
        is_all_zero "$POOL/data.img"
        rmdir "$(global_dir data)"
        kubelet_detach data
        removed '{"name": "data"}'
        lifecycle_up data type=loop size=8Mi
        [[ ! -e $(pod_dir data)/file ]]
        lifecycle_down data
}

# bats test_tags=kernel
@test "an image for virtual machines that is gone is not made anew" {
        grep -qw ext4 /proc/filesystems || skip "this kernel has no ext4"
        kubelet_attach vm type=loop size=64Mi kataContainers=true
        kubelet_stage vm
        kubelet_unstage vm
        kubelet_detach vm
        mkdir "$BATS_TEST_TMPDIR/vm"
        mount -o loop "$POOL/vm.img" "$BATS_TEST_TMPDIR/vm"
        rm "$BATS_TEST_TMPDIR/vm/kata.img"
        umount "$BATS_TEST_TMPDIR/vm"
        kubelet_attach vm type=loop size=64Mi kataContainers=true
        make_dir "$(global_dir vm)"
        call mountdevice "$(global_dir vm)" "${DEVICES[vm]}" "${SPECS[vm]}"
        assert_refused lost "virtual machines"
        rmdir "$(global_dir vm)"
        kubelet_detach vm
}

# ---- a pool without its filesystem is missing

# pool_on_disk: the pool "fast" on a filesystem of its own, with the volume "data" in it.
pool_on_disk() {
        make_pool_on_ext4 fast 64m
        DISK=$(findmnt --noheadings --output SOURCE "$POOL_DIR")
        attach_again data pool=fast
}

# is_missing: every program says so and changes nothing.
is_missing() {
        refuses_attach missing "$POOL_DIR" "mount the pool's filesystem" -- pool=fast
        call attach "$(spec new type=loop size=8Mi pool=fast)" "$NODE"
        assert_refused missing "$POOL_DIR"
        create '{"name": "more", "size": "1m", "pool": "fast"}'
        assert_failure ENODEV && assert_field '.error.hint | contains("mount")' true || return 1
        helper volume-capacity '{"pool": "fast"}'
        assert_failure ENODEV || return 1
        helper volume-capacity
        assert_field '.pools[] | select(.name == "fast") | .problem | contains("missing")' true
        helper volume-list '{"pool": "fast"}'
        assert_failure ENODEV || return 1
        remove '{"name": "data"}'
        assert_failure ENODEV || return 1
        helper volume-list
        assert_field '[.volumes[] | .name, .missing] | map(tostring) | join(" ")' "data true"
        is "$(find "$POOL_DIR" -mindepth 1 ! -name lost+found)" "" "what was made"
}

@test "a pool whose filesystem is not mounted is missing, not empty" {
        pool_on_disk
        umount "$POOL_DIR"
        is_missing
        mount "$DISK" "$POOL_DIR"
        attach_again data pool=fast
        created '{"name": "more", "size": "1m", "pool": "fast"}'
}

@test "a file in pools.d whose name is too long for a pool stops none" {
        local name
        printf -v name '%0129d' 0
        echo '{}' >"$FLEXGRAFT_POOLS/$name.json"
        helper volume-create '{"name": "v", "size": "16m"}'
        assert_success
        helper volume-list '{}'
        assert_success
        is "$(json_field '.volumes[].name')" v
        helper volume-capacity '{}'
        assert_success
        is "$(json_field '.pools[].name')" default
}

@test "a pool whose directory is gone is missing, and its volumes' records stay" {
        make_pool fast
        attach_again data pool=fast
        mv "$POOL_DIR" "$POOL_DIR.away"
        remove '{"name": "data"}'
        assert_failure ENODEV
        is "$(provisioned)" data.json
        mv "$POOL_DIR.away" "$POOL_DIR"
        removed '{"name": "data"}'
        assert_no_volume "$POOL_DIR"
}

@test "a pool whose filesystem does not answer keeps no other from being listed, measured, chosen, searched and tidied" {
        mkdir "$BATS_TEST_TMPDIR/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        printf '{"type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/fuse" >"$FLEXGRAFT_POOLS/a-silent.json"
        created '{"name": "data", "size": "1m", "pool": "default"}'
        not_hung listed
        assert_field '[.pools[], .volumes[] | .name] | join(" ")' 'a-silent default data'
        [[ $(json_field '.pools[0].problem') == *"does not answer"* ]]
        not_hung measured
        assert_field '.pools[1] | .available > 0' true
        write_profiles '"any": {"csi_plugin_type_selector": {"plugin_type": "org.flexgraft.loop"},
                "volume_capabilities": {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}}'
        not_hung created '{"name": "other", "size": "1m", "profile": "any"}'
        assert_field .volume.pool default
        removed '{"name": "other", "reclaimPolicy": "recycle"}'
        not_hung created '{"name": "again", "size": "1m", "match": true}'
        assert_field .volume.id other.img
        at_syscall --at ftruncate --kill "$FLEXGRAFT_BIN/volume-create" '{"name": "half", "size": "1m", "pool": "default"}'
        not_hung helper volume-reconcile '{}'
        assert_success
        is "$(provisioned | paste -sd' ')" 'again.json data.json'
        kill -KILL "$BACKGROUND_PID"
}

@test "another filesystem in a pool's place is not the pool" {
        pool_on_disk
        mount -t tmpfs -o mode=0755 tmpfs "$POOL_DIR"
        is_missing
        # even if it is a pool itself
        ln -s 01234567-89ab-cdef-0123-456789abcdef "$POOL_DIR/.flexgraft-pool"
        refuses_attach missing "another pool" -- pool=fast
        rm "$POOL_DIR/.flexgraft-pool"
        umount "$POOL_DIR"
}

@test "the default pool that was emptied by hand is missing" {
        attach_again data
        rm -r "$POOL"
        refuses_attach missing --
        is "$(images)" ""
}

@test "a pool of an earlier version without an identity gets one when it is used, and keeps its volumes" {
        make_pool fast
        make_disk "$POOL_DIR" data.img 8m
        listed
        [[ ! -L $POOL_DIR/.flexgraft-pool ]]
        attach_again data pool=fast
        [[ -L $POOL_DIR/.flexgraft-pool ]]
        is "$(readlink "$POOL_DIR/.flexgraft-pool")" "$(jq -r .id "$STATE_DIR/known-pools/fast.json")"
}

@test "a pool of an earlier version whose volumes are known and not there is missing at its first use" {
        pool_on_disk
        umount "$POOL_DIR"
        rm "$STATE_DIR/known-pools/fast.json"
        is_missing
        mount "$DISK" "$POOL_DIR"
        rm "$POOL_DIR/.flexgraft-pool"
        attach_again data pool=fast
}

@test "an empty file says that the directory is the pool after all" {
        pool_on_disk
        umount "$POOL_DIR"
        : >"$POOL_DIR/.flexgraft-pool"
        created '{"name": "more", "size": "1m", "pool": "fast"}'
        [[ -L $POOL_DIR/.flexgraft-pool ]]
        refuses_attach lost data.img -- pool=fast
        removed '{"name": "data"}'
        attach_again data pool=fast
}

@test "a call that is killed while it gives a pool its identity is brought to its end by the next one" {
        local call number more='{"name": "more", "size": "1m", "pool": "fast"}'
        pool_on_disk
        umount "$POOL_DIR"
        for call in symlinkat unlinkat renameat fsync; do
                for number in 1 2 3; do
                        rm -f "$POOL_DIR"/{,.}*
                        : >"$POOL_DIR/.flexgraft-pool"
                        at_syscall --at "$call:$number" --kill "$FLEXGRAFT_BIN/volume-create" "$more"
                        created "$more" || { echo "killed at $call:$number"; return 1; }
                        removed '{"name": "more"}'
                done
        done
        is "$(ls -A "$POOL_DIR")" .flexgraft-pool
}

@test "of two calls that give a pool its identity at once, one does" {
        local how
        make_pool fast
        for how in "touch $POOL_DIR/.flexgraft-pool" "rm -r $STATE_DIR/known-pools"; do
                created '{"name": "data", "size": "1m", "pool": "fast"}'
                rm "$POOL_DIR/.flexgraft-pool"
                $how
                # the other one has seen what there was, and does not know yet what is known
                stopped_at openat --where 2=known-pools "$FLEXGRAFT_BIN/volume-create" '{"name": "one", "size": "1m", "pool": "fast"}'
                created '{"name": "two", "size": "1m", "pool": "fast"}'
                resumed
                is "$(jq -r .status "$STOPPED")" Success "$how"
                # neither knows yet
                rm "$POOL_DIR/.flexgraft-pool"
                $how
                stopped_at symlinkat "$FLEXGRAFT_BIN/volume-create" '{"name": "three", "size": "1m", "pool": "fast"}'
                meanwhile "$STATE_DIR/known-pools/.lock" "$FLEXGRAFT_BIN/volume-create" '{"name": "four", "size": "1m", "pool": "fast"}'
                resumed
                wait_until 20 process_is_gone "$BACKGROUND_PID"
                is "$(jq -r .status "$STOPPED" "$MEANWHILE" | paste -sd' ')" "Success Success" "$how"
                created '{"name": "five", "size": "1m", "pool": "fast"}'
                for name in data one two three four five; do removed "{\"name\": \"$name\"}"; done
        done
}

@test "an identity that is damaged is an error that names it" {
        make_pool fast
        attach_again data pool=fast
        rm "$POOL_DIR/.flexgraft-pool"
        echo rubbish >"$POOL_DIR/.flexgraft-pool"
        refuses_attach .flexgraft-pool damaged -- pool=fast
}

@test "two pools of one directory have one identity" {
        make_pool fast
        sed 's/"fast"/"same"/' "$FLEXGRAFT_POOLS/fast.json" >"$FLEXGRAFT_POOLS/same.json"
        attach_again data pool=fast
        attach_again other pool=same
        local id
        id=$(readlink "$POOL_DIR/.flexgraft-pool")
        is "$(jq -r .id "$STATE_DIR/known-pools/fast.json")" "$id"
        is "$(jq -r .id "$STATE_DIR/known-pools/same.json")" "$id"
}

@test "an ephemeral volume of a missing pool is refused, and taken away when the pool is back" {
        pool_on_disk
        install_driver flexgraft~ephemeral
        SPECS[cache]=$(spec cache size=8Mi pool=fast)
        kubelet_publish cache
        echo text >"$(pod_dir cache)/file"
        make_dir "$(pod_dir other)"
        umount -l "$POOL_DIR"
        call mount "$(pod_dir other)" "$(publish_spec cache other)"
        assert_refused missing
        call unmount "$(pod_dir cache)"
        assert_refused missing
        mount "$DISK" "$POOL_DIR"
        kubelet_unpublish cache
        is "$(images "$POOL_DIR")" data.img
        rmdir "$(pod_dir other)"
}

@test "two volumes of a share that no pool names can be made at once" {
        local share='"size": "1m", "parameters": {"server": "127.0.0.1", "share": "/x"}'
        stopped_at renameat "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"one\", $share}"
        meanwhile "$STATE_DIR/shares/.lock" "$FLEXGRAFT_BIN/volume-create" "{\"name\": \"two\", $share}"
        resumed
        wait_until 20 process_is_gone "$BACKGROUND_PID"
        is "$(jq -r .error.operation "$STOPPED" "$MEANWHILE" | paste -sd' ')" "connect connect"    # nothing serves NFS here
        is "$(compgen -G "$STATE_DIR/shares/*.json" | wc -l)" 1 "files of the share"
}

@test "a volume that is made anew in another pool is the one that is attached, whatever an interrupted mkfs of the former one has left" {
        local first=$BATS_TEST_TMPDIR/srv/one/data.img
        make_pool one
        make_pool two
        created '{"name": "data", "size": "8m", "pool": "one"}'
        kubelet_attach data type=loop
        losetup --detach "${DEVICES[data]}"
        wait_until 5 device_is_free "${DEVICES[data]}"
        edit_record data ".bootId = \"00000000-1111-2222-3333-444444444444\" | .formatting = \"$(image_identity "$first")\""
        helper volume-reconcile '{}'
        [[ -e $(record_of data) ]]
        removed '{"name": "data"}'
        created '{"name": "data", "size": "8m", "pool": "two"}'
        jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        kubelet_attach data type=loop
        is "$(loop_of "$BATS_TEST_TMPDIR/srv/two/data.img")" "${DEVICES[data]}"
        is "$(jq -r .accessMode "$(record_of data)")" SINGLE_NODE_SINGLE_WRITER # of this volume
        kubelet_detach data
        is "$(volume_records)" ''
}

@test "a volume whose pool cannot be looked at is unknown, and not missing" {
        make_pool fast
        created '{"name": "data", "size": "1m", "pool": "fast"}'
        echo '{"type": "loop", "pth": "/x"}' >"$FLEXGRAFT_POOLS/fast.json"
        listed
        assert_field '.volumes[0] | [.health, .missing] | map(tostring) | join(" ")' "unknown null"
        assert_field '.volumes[0].problem | contains("pth")' true
        make_pool fast
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$POOL_DIR"
        not_hung listed
        assert_field '.volumes[0] | [.health, .missing] | map(tostring) | join(" ")' "unknown null"
        not_hung listed '{"name": "data"}'
        assert_field '.volumes[0].health' unknown
        kill -KILL "$BACKGROUND_PID"
}
