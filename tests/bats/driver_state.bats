#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The FlexVolume driver's memory: records, what becomes of them when the disk is full or somebody has been at them; policy.json; the log.

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

# refuses_attach [TEXT...]: attach of the loop volume "data" fails so, and attaches nothing.
refuses_attach() {
        call attach "$(loop_spec data)" "$NODE"
        assert_refused "$@" || return 1
        wait_until 5 no_loops_of_test
}

# ---- records

@test "a record says what, whose and since which boot, and only root may read it" {
        attached_loop data
        json=$(<"$(record_of data)")
        assert_field .version 1
        assert_field .bootId "$(</proc/sys/kernel/random/boot_id)"
        assert_field .name data
        assert_field .type loop
        assert_field .driver "$DRIVER_NAME"
        is "$(stat -c %a:%u "$(record_of data)")" 600:0
        is "$(stat -c %a "$STATE_DIR" "$STATE_DIR/volumes" | sort -u)" 700
        kubelet_detach data
        assert_nothing_left
}

@test "a record lasts from attach to detach" {
        attached_loop data
        is "$(volume_records)" data.json
        kubelet_stage data
        kubelet_publish data
        kubelet_unpublish data
        kubelet_unstage data
        is "$(volume_records)" data.json
        kubelet_detach data
        is "$(volume_records)" ""
}

@test "the record of a kind without attach goes with its last unmount" {
        install_driver flexgraft~tmpfs
        SPECS[cache]=$(spec cache size=1Mi)
        kubelet_publish cache pod-1
        kubelet_publish cache pod-2
        is "$(volume_records)" cache.json
        kubelet_unpublish cache pod-1
        is "$(volume_records)" cache.json
        kubelet_unpublish cache pod-2
        assert_nothing_left
}

@test "a call that fails leaves no record" {
        call attach "$(spec data type=loop)" "$NODE"    # no size, no image
        assert_refused
        call attach "$(spec data type=block source=/dev/null)" "$NODE"
        assert_refused
        call attach "$(spec data type=bind source="$SOURCE")" "$NODE"
        assert_refused
        assert_nothing_left
}

@test "odd bytes of a name are escaped in the record's file name" {
        attached_loop 'grün /%' image=x.img
        is "$(volume_records | grep -c '^[A-Za-z0-9%._~-]*\.json$')" 1
        json=$(cat "$STATE_DIR"/volumes/*.json)
        assert_field .name 'grün /%'
        kubelet_detach 'grün /%'
        assert_nothing_left
}

# torn TEXT...: what a crash, a full disk or somebody's editor may leave of a record.
torn_records() {
        printf '%s\n' '' '{' '{"version": 1, "na' '[]' 'null' '{}' '{"version": 1}' '{"version": "1", "name": "data"}' \
                '{"version": 1, "name": "data", "type": 7}' '{"version": 1, "name": "other", "type": "loop"}' 'no JSON at all'
}

@test "a torn record is set aside and calls go on" {
        local text
        attached_loop data
        kubelet_detach data
        while IFS= read -r text; do
                printf %s "$text" >"$(record_of data)"
                lifecycle_up data type=loop size=8Mi
                is "$(<"$(record_of data).bad")" "$text" "what was set aside"
                lifecycle_down data
                is "$(volume_records)" data.json.bad
                rm "$(record_of data).bad"
        done < <(torn_records)
        assert_nothing_left
}

@test "a record torn while the volume is mounted does not keep it from being taken away" {
        lifecycle_up data type=loop size=8Mi
        truncate -s 20 "$(record_of data)"
        lifecycle_down data
        is "$(volume_records)" data.json.bad
        rm "$(record_of data).bad"
        assert_nothing_left
}

@test "a record torn while a pod has the volume keeps it from no other pod" {
        lifecycle_up data type=loop size=8Mi
        truncate -s 20 "$(record_of data)"
        POD=pod-2 kubelet_publish data # kubelet does not stage it again
        is "$(jq --raw-output .source "$(record_of data)")" "$(image_of data)"
        POD=pod-3 kubelet_publish data
        is "$(loops_of_test)" "${DEVICES[data]}"
        POD=pod-3 kubelet_unpublish data
        POD=pod-2 kubelet_unpublish data
        lifecycle_down data
        rm "$(record_of data).bad"
        assert_nothing_left
}

@test "a record torn while the volume is attached does not attach it twice" {
        attached_loop data
        local device=${DEVICES[data]}
        truncate -s 20 "$(record_of data)"
        call attach "$(loop_spec data)" "$NODE"
        assert_field .device "$device"
        is "$(loops_of_test)" "$device"
        kubelet_detach data
        rm "$(record_of data).bad"
        assert_nothing_left
}

@test "a second torn record takes the place of the first that was set aside" {
        local i
        attached_loop data
        kubelet_detach data
        for i in 1 2 3; do
                printf 'torn %s' "$i" >"$(record_of data)"
                attached_loop data
                kubelet_detach data
        done
        rm "$STATE_DIR"/volumes/data.json*.bad*
        assert_nothing_left
}

@test "a FIFO, symbolic link, device file or socket in place of a record is not followed and does not hang" {
        local sort
        attached_loop data
        kubelet_detach data
        for sort in fifo link dangling device socket; do
                case $sort in
                fifo) mkfifo "$(record_of data)" ;;
                link) echo '{}' >"$BATS_TEST_TMPDIR/victim" && ln -s "$BATS_TEST_TMPDIR/victim" "$(record_of data)" ;;
                dangling) ln -s "$BATS_TEST_TMPDIR/nothing" "$(record_of data)" ;;
                device) mknod "$(record_of data)" c 1 5 ;;
                socket) perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die' "$(record_of data)" ;;
                esac
                call attach "$(loop_spec data)" "$NODE"
                [[ $(json_field .status) == Failure ]] || kubelet_detach data
                [[ ! -e $BATS_TEST_TMPDIR/nothing ]]
                rm -f "$STATE_DIR"/volumes/data.json*
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" '{}'
        wait_until 5 no_loops_of_test
        attached_loop data
        kubelet_detach data
        assert_nothing_left
}

@test "a directory where a record should be is an error that says so, and other volumes do not care" {
        attached_loop data
        kubelet_detach data
        mkdir "$(record_of data)"
        call attach "$(loop_spec data)" "$NODE"
        [[ $(json_field .status) == Failure ]] || kubelet_detach data
        attached_loop other
        kubelet_detach other
        rm -rf "$STATE_DIR"/volumes/data.json*
        assert_nothing_left
}

@test "a record of another version is refused by every verb that needs it and left alone" {
        lifecycle_up data type=loop size=8Mi
        local record before
        record=$(record_of data)
        cp -p "$record" "$BATS_TEST_TMPDIR/record"
        edit_record data '.version = 99'
        before=$(<"$record")
        call attach "$(loop_spec data)" "$NODE"
        assert_refused version 99
        call waitforattach "${DEVICES[data]}" "$(loop_spec data)"
        assert_refused version 99
        call mountdevice "$(global_dir data)" "${DEVICES[data]}" "$(loop_spec data)"
        assert_refused version
        call mount "$(pod_dir data second)" "$(loop_spec data)"
        assert_refused version
        call detach data "$NODE"
        assert_refused version
        call getvolumename "$(loop_spec data)"
        assert_success
        is "$(<"$record")" "$before"
        echo text >"$(pod_dir data)/file"
        cp -p "$BATS_TEST_TMPDIR/record" "$record"
        [[ ! -e $(pod_dir data second) ]] || rmdir "$(pod_dir data second)"
        lifecycle_down data
        assert_nothing_left
}

@test "a pod gets rid of its mount although the record is of another version" {
        lifecycle_up data type=loop size=8Mi
        edit_record data '.version = 99'
        # Either it works, or it says why not; a mount must never be stuck for ever without a word.
        call unmount "$(pod_dir data)"
        [[ $(json_field .status) == Success ]] || assert_refused version
        edit_record data '.version = 1'
        take_down data
        assert_nothing_left
}

@test "torn and newer records of other volumes do not disturb a volume" {
        attached_loop other
        mkdir -p "$STATE_DIR/volumes"
        printf 'torn' >"$(record_of torn)"
        printf '{"version": 99, "name": "newer"}' >"$(record_of newer)"
        printf 'rubbish' >"$STATE_DIR/volumes/rubbish"
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        kubelet_detach other
        rm "$STATE_DIR"/volumes/{torn.json,newer.json,rubbish}
        assert_nothing_left
}

@test "two drivers may each have a volume of one name" {
        install_driver flexgraft~tmpfs
        SPECS[data]=$(spec data size=1Mi)
        kubelet_publish data
        install_driver example.org~tmpfs
        SPECS[data]=$(spec data size=2Mi)
        kubelet_publish data
        is "$(volume_records | wc -l)" 2 "records"
        kubelet_unpublish data
        install_driver flexgraft~tmpfs
        echo text >"$(pod_dir data)/file"
        kubelet_unpublish data
        assert_nothing_left
}

# ---- the directory

@test "the state directory is made, with what leads to it, for root alone" {
        STATE_DIR=$BATS_TEST_TMPDIR/a/b/state POOL=$BATS_TEST_TMPDIR/a/b/state/pools/default
        write_config
        attached_loop data
        is "$(stat -c %a "$STATE_DIR" "$STATE_DIR/volumes" "$POOL" | sort -u)" 700
        kubelet_detach data
        assert_nothing_left
}

@test "a state directory that others may write to is refused" {
        local dir mode
        attached_loop data
        kubelet_detach data
        for dir in "$STATE_DIR" "$STATE_DIR/volumes"; do
                for mode in 0777 0770 0702 1777; do
                        chmod "$mode" "$dir"
                        refuses_attach "$STATE_DIR" || { echo "with mode $mode of $dir"; return 1; }
                        call detach data "$NODE"
                        assert_refused "$STATE_DIR"
                        chmod 0700 "$dir"
                done
        done
        attached_loop data
        kubelet_detach data
        assert_nothing_left
}

@test "a pool that others may write to is refused" {
        local pool=$BATS_TEST_TMPDIR/pool
        mkdir "$pool"
        printf '{"name": "default", "type": "loop", "path": "%s"}\n' "$pool" >"$FLEXGRAFT_POOLS/default.json"
        chmod 0777 "$pool"
        refuses_attach "$pool"
        chmod 0755 "$pool"
        chown 1000 "$pool"
        refuses_attach "$pool"
        chown 0 "$pool"
        attached_loop data
        kubelet_detach data
        assert_nothing_left
}

@test "a state directory that others may read is closed to them" {
        mkdir -m 0755 "$STATE_DIR"
        mkdir -m 0755 "$STATE_DIR/volumes"
        attached_loop data
        is "$(stat -c %a "$STATE_DIR" "$STATE_DIR/volumes" | sort -u)" 700
        kubelet_detach data
        assert_nothing_left
}

@test "a state directory that another user owns is refused" {
        local dir
        mkdir -m 0700 "$STATE_DIR"
        mkdir -m 0700 "$STATE_DIR/volumes"
        for dir in "$STATE_DIR" "$STATE_DIR/volumes"; do
                chown 1000 "$dir"
                refuses_attach "$STATE_DIR"
                chown 0 "$dir"
        done
        attached_loop data
        kubelet_detach data
        assert_nothing_left
}

@test "a symbolic link on the way to the state directory is followed, one in it is not" {
        mkdir "$BATS_TEST_TMPDIR/disk" "$BATS_TEST_TMPDIR/elsewhere"
        ln -s disk "$BATS_TEST_TMPDIR/link"
        STATE_DIR=$BATS_TEST_TMPDIR/link/state POOL=$BATS_TEST_TMPDIR/disk/state/pools/default
        write_config
        attached_loop data
        is "$(loop_of "$(image_of data)")" "${DEVICES[data]}"
        kubelet_detach data
        STATE_DIR=$BATS_TEST_TMPDIR/disk/state
        rm -r "$STATE_DIR/volumes"
        ln -s "$BATS_TEST_TMPDIR/elsewhere" "$STATE_DIR/volumes"
        refuses_attach state
        is "$(find "$BATS_TEST_TMPDIR/elsewhere" -mindepth 1)" ""
        rm "$STATE_DIR/volumes"
        assert_nothing_left
}

@test "a file where the state directory should be is an error that names it" {
        touch "$STATE_DIR"
        refuses_attach "$STATE_DIR"
        rm "$STATE_DIR"
}

@test "a read-only state directory is a clean error, and what was attached can be taken away when it is writable again" {
        mkdir -m 0700 "$STATE_DIR"
        mount -t tmpfs -o mode=0700,size=64m state "$STATE_DIR"
        lifecycle_up data type=loop size=8Mi
        local device=${DEVICES[data]}
        # read-only as a disk with errors is: whatever is open stays open
        mount --bind "$STATE_DIR" "$STATE_DIR"
        mount -o remount,bind,ro "$STATE_DIR"
        call attach "$(spec other type=loop size=8Mi)" "$NODE"
        assert_refused
        is "$(loops_of_test)" "$device"
        call attach "$(loop_spec data)" "$NODE"
        [[ $(json_field .status) == Failure ]] || assert_field .device "$device"
        call unmount "$(pod_dir data)"
        call detach never "$NODE"
        umount "$STATE_DIR"
        take_down data
        is "$(volume_records)" ""
        wait_until 5 no_loops_of_test
        umount "$STATE_DIR"
        assert_nothing_left
}

@test "with the disk full attach is a clean error, and works when there is room again" {
        mkdir -m 0700 "$STATE_DIR"
        mount -t tmpfs -o mode=0700,size=256k state "$STATE_DIR"
        dd if=/dev/zero "of=$STATE_DIR/filler" bs=4k 2>/dev/null || :
        refuses_attach space
        rm "$STATE_DIR/filler"
        is "$(volume_records)" ""
        is "$(find "$STATE_DIR" -name '*.img')" ""
        attached_loop data              # 8 MiB with holes
        dd if=/dev/zero "of=$STATE_DIR/filler" bs=4k 2>/dev/null || :
        kubelet_detach data
        is "$(volume_records)" ""
        wait_until 5 no_loops_of_test
        umount "$STATE_DIR"
}

# bats test_tags=kernel,deep
@test "with the disk full a volume can be taken away" {
        local pool=$BATS_TEST_TMPDIR/pool
        mkdir -m 0700 "$STATE_DIR" "$pool"
        printf '{"name": "default", "type": "loop", "path": "%s"}' "$pool" >"$FLEXGRAFT_POOLS/default.json"
        mount -t tmpfs -o mode=0700,size=256k state "$STATE_DIR"
        lifecycle_up data type=loop size=8Mi
        fill_disk "$STATE_DIR"
        lifecycle_down data
        is "$(volume_records)" ""
        umount "$STATE_DIR"
        assert_nothing_left
}

@test "a pool without room for an image that is to be preallocated leaves no image" {
        mkdir -p "$POOL"
        chmod 0700 "$STATE_DIR" "$STATE_DIR/pools" "$POOL"
        mount -t tmpfs -o mode=0700,size=4m pool "$POOL"
        call attach "$(loop_spec data preallocate=true)" "$NODE"
        assert_refused "has room for"
        is "$(find "$POOL" -type f)" ""
        is "$(volume_records)" ""
        umount "$POOL"
        assert_nothing_left
}

# ---- one call at a time for one volume

# bats test_tags=deep
@test "a call waits for another of the same volume, no longer than it may" {
        attached_loop data
        TIMEOUTS='"call": 1, "device": 1' write_config
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
        not_hung call attach "$(loop_spec data)" "$NODE"
        assert_refused "another call for this volume" "within 2 s"
        write_config
        call getvolumename "$(loop_spec data)"
        assert_success
        call init
        assert_success
        end_process "$BACKGROUND_PID"
        kubelet_detach data
        assert_nothing_left
}

@test "a mount whose options come by standard input waits no longer than one whose options are an argument" {
        local dir
        dir=$(pod_dir data)
        mkdir -p "$dir"
        spec data type=tmpfs size=1m >"$BATS_TEST_TMPDIR/options"
        call mount "$dir" "$(<"$BATS_TEST_TMPDIR/options")" # so that there are records
        assert_success
        call unmount "$dir"
        assert_success
        mkdir -p "$dir"
        TIMEOUTS='"call": 1, "unmount": 1, "device": 1, "command": 1' write_config
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
        call mount "$dir" "$(<"$BATS_TEST_TMPDIR/options")"
        assert_refused "another call for this volume" "within 2 s"
        CALL_INPUT=$BATS_TEST_TMPDIR/options call mount "$dir" -
        assert_refused "another call for this volume" "within 2 s"
        end_process "$BACKGROUND_PID"
}

@test "calls for different volumes never wait for each other" {
        local pid
        TIMEOUTS='"device": 100' write_config
        "$DRIVER" attach "$(spec slow type=block source=/dev/disk/by-id/flexgraft-not-there)" "$NODE" >"$BATS_TEST_TMPDIR/slow" 2>&1 3>&- &
        pid=$!
        sleep 0.3
        attached_loop data
        lifecycle_up other type=loop size=8Mi
        kill "$pid"             # still at it
        wait "$pid" || :
        lifecycle_down other
        kubelet_detach data
        assert_nothing_left
}

# ---- configuration

@test "a broken configuration is one clear error that names the file and the line" {
        printf '{"stateDir": "%s",\n "log": "none",\n "timeouts": {"call": }\n}\n' "$STATE_DIR" >"$FLEXGRAFT_CONFIG"
        refuses_attach "$FLEXGRAFT_CONFIG" "line 3"
        printf '{"stateDir": "%s", "stateDirectory": 1}\n' "$STATE_DIR" >"$FLEXGRAFT_CONFIG"
        refuses_attach "$FLEXGRAFT_CONFIG" stateDirectory
        local part
        for part in '"stateDir": "relative"' '"stateDir": 7' '"nodeName": 7' '"log": "somewhere"' '"log": true' '"timeouts": 7' \
                '"timeouts": {"call": 0}' '"timeouts": {"call": "5"}' '"timeouts": {"call": 1e9}' '"timeouts": {"coffee": 5}' '"timeouts": {"device": -1}'; do
                printf '{%s}\n' "$part" >"$FLEXGRAFT_CONFIG"
                call detach data "$NODE"
                assert_refused "$FLEXGRAFT_CONFIG"
        done
        [[ ! -e $STATE_DIR ]]
}

@test "a configuration that is not there although it is named is an error" {
        rm "$FLEXGRAFT_CONFIG"
        call detach data "$NODE"
        assert_refused "$FLEXGRAFT_CONFIG"
}

@test "pools lie where their files say" {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/ssd" "$BATS_TEST_TMPDIR/disk"
        printf '{"name": "ssd", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/ssd" >"$FLEXGRAFT_POOLS/ssd.json"
        printf '{"name": "default", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/disk" >"$FLEXGRAFT_POOLS/default.json"
        echo rubbish >"$FLEXGRAFT_POOLS/README"
        kubelet_attach data type=loop size=8Mi pool=ssd
        kubelet_attach other type=loop size=8Mi image=some.img
        is "$(loop_of "$BATS_TEST_TMPDIR/ssd/data.img")" "${DEVICES[data]}"
        is "$(loop_of "$BATS_TEST_TMPDIR/disk/some.img")" "${DEVICES[other]}"
        local pool
        for pool in tape ../pools.d/ssd . .. a/b /; do
                call attach "$(spec third type=loop size=8Mi "pool=$pool")" "$NODE"
                assert_refused "$pool"
        done
        kubelet_detach data
        kubelet_detach other
        assert_nothing_left
}

@test "a pool of another type, without a path or that others may change is refused" {
        local text
        mkdir -m 0700 "$BATS_TEST_TMPDIR/ssd"
        echo '{"name": "ssd", "type": "lvm", "volumeGroup": "vg"}' >"$FLEXGRAFT_POOLS/ssd.json"
        call attach "$(spec data type=loop size=8Mi pool=ssd)" "$NODE"
        assert_refused ssd "type lvm"
        echo '{"name": "ssd", "type": "pmem", "region": "region0"}' >"$FLEXGRAFT_POOLS/ssd.json"
        call attach "$(spec data type=loop size=8Mi pool=ssd)" "$NODE"
        assert_refused ssd "type pmem"
        for text in '{"name": "ssd", "type": "pmem", "region": "../x"}' '{"name": "ssd", "type": "pmem", "region": "0x"}' \
                '{"name": "ssd", "type": "pmem", "region": "0x1G"}' '{"name": "ssd", "type": "pmem", "region": "0x012"}' \
                '{"name": "ssd", "type": "pmem", "region": "0x12345678901234567"}' '{"name": "ssd", "type": "pmem", "region": "region0", "mode": "x"}' \
                '{"name": "ssd", "type": "pmem", "region": "region0", "volumeGroup": "vg"}' '{"name": "ssd", "type": "lvm"}' '{"name": "ssd", "type": "loop"}' \
                '{"name": "ssd", "type": "loop", "path": "relative"}' '{"name": "disk", "type": "loop", "path": "/x"}' \
                '{"name": "ssd", "type": "loop", "path": 7}' '{"name": "ssd", "type": "loop", "path": "/x", "colour": 1}' '[]'; do
                echo "$text" >"$FLEXGRAFT_POOLS/ssd.json"
                call attach "$(spec data type=loop size=8Mi pool=ssd)" "$NODE"
                assert_refused "$FLEXGRAFT_POOLS/ssd.json"
        done
        printf '{"name": "ssd", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/ssd" >"$FLEXGRAFT_POOLS/ssd.json"
        chmod 0666 "$FLEXGRAFT_POOLS/ssd.json"
        call attach "$(spec data type=loop size=8Mi pool=ssd)" "$NODE"
        assert_refused "$FLEXGRAFT_POOLS/ssd.json"
        is "$(find "$BATS_TEST_TMPDIR/ssd" -type f)" ""
        assert_nothing_left
}

@test "a broken pool file is one clear error that names the line, and detach works all the same" {
        attached_loop data
        printf '{"name": "ssd",\n "type": "loop"\n "path": "/x"}\n' >"$FLEXGRAFT_POOLS/ssd.json"
        call attach "$(spec other type=loop size=8Mi pool=ssd)" "$NODE"
        assert_refused "$FLEXGRAFT_POOLS/ssd.json" "line 3"
        kubelet_detach data
        assert_nothing_left
}

@test "a pool's directory that is not there is an error that names it" {
        printf '{"name": "default", "type": "loop", "path": "%s"}\n' "$BATS_TEST_TMPDIR/gone" >"$FLEXGRAFT_POOLS/default.json"
        refuses_attach "$BATS_TEST_TMPDIR/gone"
        [[ ! -e $BATS_TEST_TMPDIR/gone ]]
}

# ---- policy.json

# allows KIND OPTION...: a volume of that kind is mounted and taken away; refuses: it is not, and the message names policy.json.
allows() {
        case $1 in
        loop | block) lifecycle_up data "type=$1" "${@:2}" && take_down data ;;
        *)
                SPECS[data]=$(spec data "type=$1" "${@:2}")
                kubelet_publish data && kubelet_unpublish data
                ;;
        esac || return 1
        assert_nothing_left
}

refuses() {
        local words=("$FLEXGRAFT_POLICY")
        case $1 in
        loop | block) call attach "$(spec data "type=$1" "${@:2}")" "$NODE" ;;
        *) call mount "$(pod_dir data)" "$(spec data "type=$1" "${@:2}")" ;;
        esac
        assert_refused "${words[@]}" || return 1
        is "$(mounts_here)$(loops_of_driver)" "" "mounts and loop devices" || return 1
        [[ ! -e $(pod_dir data) ]] || rmdir "$(pod_dir data)"
}

@test "without a policy loop, block and tmpfs are allowed and bind is not" {
        make_device blank
        allows loop size=8Mi
        allows block "source=$DEVICE"
        allows tmpfs size=1Mi
        refuses bind "source=$SOURCE"
}

@test "a policy without the section for volumes is like none" {
        printf '{"annotations": {"kinds": ["bind"], "sources": ["/"]}}\n' >"$FLEXGRAFT_POLICY"
        allows loop size=8Mi
        allows tmpfs
        refuses bind "source=$SOURCE"
}

@test "a policy allows the kinds that it lists and no others" {
        write_policy '"kinds": ["tmpfs"]'
        allows tmpfs
        refuses loop size=8Mi
        refuses bind "source=$SOURCE"
        write_policy '"kinds": ["loop"]'
        allows loop size=8Mi
        refuses tmpfs
        write_policy '"kinds": []'
        refuses loop size=8Mi
        refuses tmpfs
        write_policy '"options": ["suid"]'      # says nothing about kinds
        allows loop size=8Mi
        refuses bind "source=$SOURCE"
}

@test "what a policy has come to forbid can still be taken away" {
        lifecycle_up data type=loop size=8Mi
        write_policy '"kinds": []'
        lifecycle_down data
        assert_nothing_left
}

@test "binds are of the directories that the policy lists" {
        local dir=$BATS_TEST_TMPDIR/source
        mkdir -p "$dir/sub" "${dir}2" "$BATS_TEST_TMPDIR/other"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$dir\"]"
        allows bind "source=$dir"
        allows bind "path=$dir/sub"
        refuses bind "source=${dir}2"
        refuses bind "source=$BATS_TEST_TMPDIR/other"
        refuses bind "source=$BATS_TEST_TMPDIR"
        refuses bind "source=$dir/../other"
        refuses bind source=/
        ln -s "$BATS_TEST_TMPDIR/other" "$dir/link"
        local source
        for source in "$dir/link" "$dir/link/"; do
                call mount "$(pod_dir data)" "$(spec data type=bind "source=$source")"
                assert_refused link
                is "$(mounts_here)" ""
        done
}

@test "a directory that may only be read is mounted read-only or not at all" {
        write_policy "\"kinds\": [\"bind\"], \"sources\": [{\"path\": \"$SOURCE\", \"readOnly\": true}]"
        refuses bind "source=$SOURCE"
        SPECS[data]=$(spec data type=bind "source=$SOURCE" @readwrite=ro)
        kubelet_publish data
        run ! touch "$(pod_dir data)/file"
        assert_node_attributes "$(pod_dir data)" ro nosuid nodev
        kubelet_unpublish data
        assert_nothing_left
}

@test "block devices are those that the policy lists, whatever the name they are asked for by" {
        make_device blank
        write_policy '"kinds": ["block"], "devices": ["/dev/disk/by-id"]'
        refuses block "source=$DEVICE"
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"$DEVICE\"]"
        allows block "source=$DEVICE"
        allows block "source=UUID=$(blkid -o value -s UUID "$DEVICE")"
        make_device blank
        refuses block "source=$DEVICE"
        # A name that leads to another device is that device.
        local link=/dev/flexgraft-test-$RUN_ID
        ln -s "$DEVICE" "$link"
        call attach "$(spec data type=block "source=$link")" "$NODE"
        rm "$link"
        assert_refused
        is "$(volume_records)" ""
}

@test "a listed directory of devices admits root's links in it, and a listed link the device that it leads to" {
        make_device blank
        local links=/dev/flexgraft-test-$RUN_ID
        mkdir "$links" "$links/other"
        ln -s "../${DEVICE#/dev/}" "$links/disk"
        ln -s "../../${DEVICE#/dev/}" "$links/other/disk"
        bed_made+=("$links")
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"$links/other\"]"
        call attach "$(spec data type=block "source=$links/disk")" "$NODE"
        assert_refused
        call attach "$(spec data type=block "source=$links/other/../disk")" "$NODE"
        assert_refused
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"$links\"]"
        allows block "source=$links/disk"
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"$links/\"]"
        allows block "source=$links/disk"
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"/dev/./${DEVICE#/dev/}/\"]"
        allows block "source=$DEVICE"
        write_policy "\"kinds\": [\"block\"], \"devices\": [\"$links/disk\"]"
        allows block "source=$DEVICE"
        rm -r "$links"
}

@test "suid, dev and options of the filesystem want the policy's leave" {
        local option
        for option in suid dev errors=panic data=journal; do
                call attach "$(loop_spec data "mountOptions=$option")" "$NODE"
                [[ $(json_field .status) == Failure ]] || {
                        make_dir "$(global_dir data)"
                        call mountdevice "$(global_dir data)" "$(json_field .device)" "$(loop_spec data "mountOptions=$option")"
                }
                assert_refused "${option%%=*}" "$FLEXGRAFT_POLICY"
                is "$(mounts_here)" ""
                call detach data "$NODE"
                [[ ! -e $(global_dir data) ]] || rmdir "$(global_dir data)"
        done
        write_policy '"kinds": ["loop"], "options": ["suid", "dev"]'
        lifecycle_up data type=loop size=8Mi mountOptions=suid,dev
        assert_node_attributes "$(global_dir data)" '!nosuid' '!nodev'
        assert_node_attributes "$(pod_dir data)" '!nosuid' '!nodev'
        lifecycle_down data
        write_policy '"kinds": ["loop"], "options": ["commit"]'
        lifecycle_up data type=loop size=8Mi mountOptions=commit=7
        grep -F " $(global_dir data) " /proc/self/mountinfo | grep -q commit=7
        lifecycle_down data
        assert_nothing_left
}

@test "shared and slave propagation want the policy's leave" {
        local option
        for option in shared rshared slave rslave; do
                refuses loop size=8Mi "mountOptions=$option"
                refuses tmpfs size=1Mi "mountOptions=$option"
        done
        write_policy '"kinds": ["tmpfs"], "options": ["shared"]'
        refuses tmpfs size=1Mi mountOptions=slave
        SPECS[data]=$(spec data type=tmpfs size=1Mi mountOptions=shared)
        kubelet_publish data
        [[ $(node_mount_line "$(pod_dir data)") == *" shared:"* ]]
        kubelet_unpublish data
        assert_nothing_left
}

@test "a broken policy is one clear error that names the file and the line, and closes everything" {
        printf '{"volumes": {\n "kinds": ["loop",\n}}\n' >"$FLEXGRAFT_POLICY"
        refuses_attach "$FLEXGRAFT_POLICY" line
        local part
        for part in '"kinds": "loop"' '"kinds": [7]' '"sources": "/srv"' '"sources": ["srv"]' '"devices": [7]' '"devices": [""]' '"devices": ["sda"]' '"options": 7' '"kindz": ["loop"]'; do
                write_policy "$part"
                refuses_attach "$FLEXGRAFT_POLICY" || { echo "with $part"; return 1; }
        done
        printf '{"volume": {}}\n' >"$FLEXGRAFT_POLICY"
        refuses_attach "$FLEXGRAFT_POLICY" volume
}

@test "a policy that others may write to, or that is not root's, is not believed" {
        write_policy '"kinds": ["loop"]'
        local mode
        for mode in 0666 0664 0646; do
                chmod "$mode" "$FLEXGRAFT_POLICY"
                refuses_attach "$FLEXGRAFT_POLICY"
        done
        chmod 0644 "$FLEXGRAFT_POLICY"
        chown 1000 "$FLEXGRAFT_POLICY"
        refuses_attach "$FLEXGRAFT_POLICY"
        chown 0 "$FLEXGRAFT_POLICY"
        allows loop size=8Mi
}

@test "a volume can be taken away with a broken policy" {
        lifecycle_up data type=loop size=8Mi
        echo '{' >"$FLEXGRAFT_POLICY"
        lifecycle_down data
        assert_nothing_left
}

# ---- the log

@test "a failure's id is in the log, with the verb and the volume" {
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused
        local id
        id=$(message_id)
        is "$(grep -c "$id attach data: " "$LOG")" 1 "lines with the id"
        call attach "$(spec data type=loop)" "$NODE"
        [[ $(message_id) != "$id" ]]
}

@test "the log is never readable by others" {
        CALL_PREFIX=(bash -c 'umask 0 && exec "$@"' bash)
        call attach "$(spec data type=loop)" "$NODE"
        is "$(stat -c %a "$LOG")" 600
}

@test "a log that cannot be written stops nothing" {
        local log
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        mkdir "$BATS_TEST_TMPDIR/directory"
        echo before >"$BATS_TEST_TMPDIR/victim"
        ln -s victim "$BATS_TEST_TMPDIR/link"
        for log in "$BATS_TEST_TMPDIR/fifo" "$BATS_TEST_TMPDIR/directory" "$BATS_TEST_TMPDIR/no/such/log" "$BATS_TEST_TMPDIR/link" /dev/full; do
                LOG_TO=$log write_config
                lifecycle_up data type=loop size=8Mi
                lifecycle_down data
                call attach "$(spec data type=loop image=missing.img)" "$NODE"
                assert_refused
        done
        is "$(<"$BATS_TEST_TMPDIR/victim")" before
        assert_nothing_left
}

@test "the log may be none" {
        LOG_TO=none write_config
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused
        [[ ! -e $LOG ]]
}

@test "the log may be the system's" {
        LOG_TO=syslog write_config
        local socket=$BATS_TEST_TMPDIR/devlog
        background_ready perl -MSocket -e '$| = 1; socket(S, AF_UNIX, SOCK_DGRAM, 0); bind(S, pack_sockaddr_un($ARGV[0])) or die; print "ready\n";
                open(my $out, ">", $ARGV[1]); $out->autoflush(1); while (defined recv(S, my $line, 4096, 0)) { print $out "$line\n" }' \
                "$socket" "$BATS_TEST_TMPDIR/received"
        CALL_PREFIX=(unshare --mount sh -c 'mount -t tmpfs tmpfs /dev && ln -s "$1" /dev/log && shift && exec "$@"' sh "$socket")
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused
        wait_until 5 grep -q "$(message_id) attach data: " "$BATS_TEST_TMPDIR/received"
        grep -q '^<27>flexgraft' "$BATS_TEST_TMPDIR/received"
        # and without anybody who listens
        CALL_PREFIX=(unshare --mount sh -c 'mount -t tmpfs tmpfs /dev && exec "$@"' sh)
        call attach "$(spec data type=loop)" "$NODE"
        assert_refused
}

@test "whatever a name or an option holds, the log has whole lines of plain text" {
        call attach "$(spec $'evil\n2026 fake attach x: ok' type=loop image=$'a\nb\e[2J')" "$NODE"
        assert_refused
        run ! grep -q '^2026 fake' "$LOG"
        run ! grep -q $'\e' "$LOG"
        [[ $output != *$'\e'* ]]
}

@test "a volume's life writes few lines, and none about the volume's content or options' values" {
        lifecycle_up data type=loop size=8Mi
        lifecycle_down data
        (($(wc -l <"$LOG" 2>/dev/null || echo 0) <= 20))
        run ! grep -qi 'fail\|error' "$LOG"
}
