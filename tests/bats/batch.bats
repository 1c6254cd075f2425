#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-batch: many mounts in one call, all of them or none.

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-batch mount-remove mount-list
}

teardown() {
        bed_teardown
}

# batch MOUNTS [MORE]: mount-batch of the entries in the JSON text MOUNTS, into the current container.
batch_request() {
        printf '{"container": %s, "mounts": [%s]%s}' "$CONTAINER_PID" "$1" "${2:+, $2}"
}

batch() {
        helper mount-batch "$(batch_request "$@")"
}

bind() {
        printf '{"type": "bind", "source": "%s", "target": "%s"%s}' "$SOURCE" "$1" "${2:+, $2}"
}

tmpfs() {
        printf '{"type": "tmpfs", "target": "%s"%s}' "$1" "${2:+, $2}"
}

# many COUNT [DIRECTORY]: as many entries, binds and tmpfs in turn, below DIRECTORY.
many() {
        local i
        for ((i = 1; i <= $1; i++)); do
                ((i == 1)) || printf ', '
                if ((i % 2)); then tmpfs "${2:-/many}/$i" '"size": "64k"'; else bind "${2:-/many}/$i"; fi
        done
}

# mounts_below DIRECTORY: how many mounts the container has there, and at how many places.
mounts_below() {
        awk -v dir="$1/" 'index($5, dir) == 1 {n++; if (!seen[$5]++) places++} END {print n + 0, places + 0}' "/proc/$CONTAINER_PID/mountinfo"
}

# fails_and_leaves_nothing ERRNO INDEX MOUNTS [MORE]
fails_and_leaves_nothing() {
        container_snapshot
        node_snapshot
        batch "${@:3}"
        assert_failure "$1"
        assert_index "$2"
        assert_container_unchanged
        assert_node_unchanged
        wait_until 5 assert_no_helper_processes
}

assert_index() {
        [[ $(json_field .message) =~ ^("the request cannot be understood: ")?"mounts[$1]: " ]] && return 0
        echo "the message does not begin with mounts[$1]: "
        show_last
        return 1
}

not_understood() {
        container_snapshot
        node_snapshot
        batch "${@:2}"
        assert_not_understood
        [[ -z $1 ]] || assert_index "$1"
        assert_container_unchanged
        assert_node_unchanged
}

remove_all() {
        local id
        helper mount-list '{}'
        assert_success
        while read -r id; do
                "$FLEXGRAFT_BIN/mount-remove" "{\"id\": \"$id\"}" >"$BATS_TEST_TMPDIR/removed" 2>&1 3>&- || { cat "$BATS_TEST_TMPDIR/removed"; return 1; }
        done < <(jq -r '.mounts | sort_by(.target) | reverse | .[].id' <<<"$json")
        assert_no_records
}

# mount_of PATH: the id of the mount that the container sees there.
mount_of() {
        in_container sh -c 'exec 3<"$1" && sed -n "s/^mnt_id:[^0-9]*//p" /proc/self/fdinfo/3' sh "$1"
}

# assert_on_top TARGET: what is mounted there is what is seen there.
assert_on_top() {
        local line
        line=$(mount_line "$1")
        is "$(mount_of "$1")" "${line%% *}" "the mount that is seen at $1"
}

# ---- what it does

check_all_kinds() {
        local one lower=$BATS_TEST_TMPDIR/lower upper=$BATS_TEST_TMPDIR/upper file=$BATS_TEST_TMPDIR/file disk raw types
        echo text >"$SOURCE/file"
        echo line >"$file"
        mkdir "$lower" "$upper" "$upper/upper" "$upper/work"
        echo below >"$lower/file"
        make_device ext4
        disk=$DEVICE
        make_device blank
        raw=$DEVICE
        start_container "${1/plain/plain-shared}" 200000
        one=$CONTAINER_PID
        in_container sh -c 'mkdir /mine && echo theirs >/mine/file && chown 7:8 /mine/file'
        start_container "$1" 100000
        container_snapshot
        node_snapshot
        batch "{\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/in/bind\", \"readOnly\": true},
                {\"type\": \"bind\", \"source\": \"$file\", \"target\": \"/in/file\"},
                {\"type\": \"block\", \"source\": \"$disk\", \"target\": \"/in/disk\"},
                {\"type\": \"block\", \"source\": \"$raw\", \"target\": \"/in/raw\", \"raw\": true},
                {\"type\": \"tmpfs\", \"target\": \"/in/tmpfs\", \"size\": \"1m\", \"mode\": \"0700\"},
                {\"type\": \"overlay\", \"target\": \"/in/overlay\", \"lower\": [\"$lower\"], \"upper\": \"$upper/upper\", \"work\": \"$upper/work\"},
                {\"type\": \"container-to-container\", \"from\": {\"container\": $one, \"path\": \"/mine\"}, \"to\": {\"path\": \"/in/theirs\"}}"
        assert_success
        is "$(mounts_below /in)" "7 7"
        types=$(jq -r '.mounts[].target' <<<"$json" | tr '\n' ' ')
        is "$types" "/in/bind /in/file /in/disk /in/raw /in/tmpfs /in/overlay /in/theirs "
        is "$(in_container cat /in/bind/file)" text
        run ! in_container touch /in/bind/made
        is "$(in_container cat /in/file)" line
        is "$(in_container cat /in/disk/file)" "from the device"
        in_container test -b /in/raw
        is "$(in_container stat -c %u:%g:%a /in/tmpfs)" 0:0:700
        is "$(in_container sh -c 'echo above >/in/overlay/file; cat /in/overlay/file')" above
        is "$(cat "$lower/file" "$upper/upper/file")" $'below\nabove'
        is "$(in_container stat -c %u:%g /in/theirs/file)" 7:8
        batch "{\"type\": \"tmpfs\", \"target\": \"/in/tmpfs\", \"size\": \"1m\", \"mode\": \"0700\"},
                {\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/in/bind\", \"readOnly\": true}"
        assert_success
        is "$(jq -c '[.mounts[].alreadyMounted]' <<<"$json")" '[true,true]'
        remove_all
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "all sorts of mounts in one call" {
        check_all_kinds plain
}

# bats test_tags=deep
@test "all sorts of mounts in one call, into a crun container" {
        check_all_kinds crun
}

@test "all sorts of mounts in one call, into a runc container" {
        check_all_kinds runc
}

# bats test_tags=deep
@test "all sorts of mounts in one call, without a user namespace" {
        check_all_kinds plain-nouserns
}

@test "an entry can ask for remap, however its letters are written" {
        local ids
        start_container plain
        for ids in remap '\u0072emap'; do
                batch "{\"type\": \"tmpfs\", \"target\": \"/made/tmp\"}, {\"type\": \"bind\", \"source\": \"$SOURCE\", \"target\": \"/made/data\", \"ids\": \"$ids\"}"
                assert_success
                assert_field '[.mounts[].idMapping] | join(" ")' "none remap"
                helper mount-remove "$(remove_request /made/data)"
                helper mount-remove "$(remove_request /made/tmp)"
                assert_success
        done
}

@test "the reply has the mounts in the order given" {
        start_container plain
        batch "$(tmpfs /p/q/r), $(bind /b), $(tmpfs /p), $(tmpfs /p/q), $(bind /a)"
        assert_success
        is "$(jq -c '[.mounts[].target]' <<<"$json")" '["/p/q/r","/b","/p","/p/q","/a"]'
        is "$(jq -c '[.mounts[].type]' <<<"$json")" '["tmpfs","bind","tmpfs","tmpfs","bind"]'
        is "$(jq '[.mounts[].id] | unique | length' <<<"$json")" 5
        is "$(jq '[.mounts[].mountId] | unique | length' <<<"$json")" 5
        is "$(records | wc -l)" 5
}

# A parent placed last would cover its children.
check_order() {
        start_container plain
        batch "$1"
        assert_success
        in_container sh -c 'echo 1 >/p/one && echo 2 >/p/q/two && echo 3 >/p/q/r/three'
        is "$(in_container ls /p /p/q /p/q/r | tr '\n' ' ')" "/p: one q  /p/q: r two  /p/q/r: three "
        assert_on_top /p
        assert_on_top /p/q
        assert_on_top /p/q/r
        [[ -e $SOURCE/one && ! -e $SOURCE/q/two ]]
        remove_all
        is "$(ls "$SOURCE")" one "what is left in the source"
}

@test "a child given before its parent lies in it" {
        check_order "$(tmpfs /p/q/r), $(tmpfs /p/q), $(bind /p)"
}

@test "a child given after its parent lies in it" {
        check_order "$(bind /p), $(tmpfs /p/q), $(tmpfs /p/q/r)"
}

@test "a child given between lies in its parent" {
        check_order "$(tmpfs /p/q), $(bind /p), $(tmpfs /p/q/r)"
}

@test "doubled slashes and dots in a parent's target do not make it the child" {
        check_order "$(tmpfs /p/q/r), $(tmpfs /p/.//./q), $(bind ///.//././/p//)"
}

@test "a child whose target leads through a symlink lies in its parent" {
        start_container plain
        in_container sh -c 'mkdir -p /a/b/c && ln -s a/b/c /link'
        batch "$(tmpfs /link/x), $(tmpfs /a/b/c)"
        assert_one_json_line
        if [[ $status == 0 ]]; then
                assert_mounts_at /a/b/c/x 1
                assert_on_top /a/b/c/x
        else
                is "$(mounts_below /a)" "0 0"
                assert_no_records
        fi
}

@test "a target may lie on what another entry brings" {
        mkdir -p "$SOURCE/has/this"
        start_container plain
        batch "$(tmpfs /p/has/this '"mkdir": false'), $(bind /p)"
        assert_success
        assert_mounts_at /p/has/this 1
        remove_all
        [[ -d $SOURCE/has/this ]]
}

@test "a batch into several containers" {
        start_container plain 100000
        local one=$CONTAINER_PID
        start_container crun 200000
        local two=$CONTAINER_ID pid=$CONTAINER_PID
        use_container "$one"
        batch "$(tmpfs /a), $(bind /b '"container": {"id": "'"$two"'"}'), $(tmpfs /c '"container": '"$pid"), $(bind /d)"
        assert_success
        is "$(jq -c '[.mounts[].container.pid]' <<<"$json")" "[$one,$pid,$pid,$one]"
        in_container touch /a/x /d/from-one
        use_container "$pid"
        is "$(in_container stat -c %u /b/from-one)" 0
        in_container touch /c/x
        assert_mounts_at /a 0
        remove_all
}

@test "a batch without a container of its own" {
        start_container plain
        helper mount-batch "{\"mounts\": [$(tmpfs /a "\"container\": $CONTAINER_PID")]}"
        assert_success
        helper mount-batch "{\"mounts\": [$(tmpfs /b "\"container\": $CONTAINER_PID"), $(tmpfs /c)]}"
        assert_not_understood container
        assert_index 1
        assert_mounts_at /b 0
}

# bats test_tags=deep
@test "256 mounts in one call" {
        start_container plain
        container_snapshot
        batch "$(many 256)"
        assert_success
        is "$(jq '.mounts | length' <<<"$json")" 256
        is "$(mounts_below /many)" "256 256"
        is "$(records | wc -l)" 256
        in_container touch /many/255/x /many/256/x
        batch "$(many 256)"
        assert_success
        is "$(jq '[.mounts[] | select(.alreadyMounted)] | length' <<<"$json")" 256
        remove_all
        rm "$SOURCE/x"
        assert_container_unchanged
}

@test "257 mounts are too many" {
        start_container plain
        not_understood '' "$(many 257)"
}

@test "the request comes on standard input" {
        start_container plain
        batch_request "$(many 200)" >"$BATS_TEST_TMPDIR/request"
        helper mount-batch - <"$BATS_TEST_TMPDIR/request"
        assert_success
        is "$(mounts_below /many)" "200 200"
}

# ---- entries as they are in a runtime's config.json

@test "OCI entries: what docker and podman write for volumes, files and tmpfs" {
        echo text >"$SOURCE/file"
        mkdir "$SOURCE/sub"
        mount -t tmpfs tmpfs "$SOURCE/sub"
        echo nameserver >"$BATS_TEST_TMPDIR/resolv.conf"
        start_container crun
        batch '{"destination": "/data", "type": "bind", "source": "'"$SOURCE"'", "options": ["rbind", "rprivate"]},
                {"destination": "/data-ro", "type": "bind", "source": "'"$SOURCE"'", "options": ["rbind", "ro", "rprivate"]},
                {"destination": "/etc/resolv.conf", "type": "bind", "source": "'"$BATS_TEST_TMPDIR"'/resolv.conf", "options": ["bind", "rprivate"]},
                {"destination": "/plain", "type": "bind", "source": "'"$SOURCE"'", "options": ["nosuid", "nodev", "bind", "private", "rw"]},
                {"destination": "/rro", "type": "bind", "source": "'"$SOURCE"'", "options": ["rbind", "rro", "rnosuid", "rprivate"]},
                {"destination": "/no-type", "source": "'"$SOURCE"'", "options": ["bind"]},
                {"destination": "/none", "type": "none", "source": "'"$SOURCE"'", "options": ["rbind"]},
                {"destination": "/cache", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "noexec", "size=65536k", "mode=755"]},
                {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536000"]}'
        assert_success
        is "$(jq -c '[.mounts[].type]' <<<"$json")" '["bind","bind","bind","bind","bind","bind","bind","tmpfs","tmpfs"]'
        assert_mounts_at /data/sub 1
        assert_mounts_at /none/sub 1
        assert_mounts_at /plain/sub 0
        is "$(in_container cat /data/file)" text
        in_container touch /data/made
        run ! in_container touch /data-ro/made
        assert_attributes /data-ro/sub ro
        assert_attributes /rro/sub ro nosuid
        is "$(in_container cat /etc/resolv.conf)" nameserver
        is "$(in_container stat -c %a /cache)" 755
        is "$(in_container stat -c %a /dev/shm)" 1777
        assert_attributes /cache noexec
        is "$(in_container df -k /cache | awk 'END {print $2}')" 65536
        remove_all
}

# bats test_tags=kernel
@test "OCI entries: an overlay and a filesystem of a device" {
        mkdir "$BATS_TEST_TMPDIR"/{lower,middle,upper,work}
        echo below >"$BATS_TEST_TMPDIR/lower/file"
        make_device ext4
        start_container runc
        batch '{"destination": "/o", "type": "overlay", "source": "overlay", "options": ["lowerdir='"$BATS_TEST_TMPDIR/middle:$BATS_TEST_TMPDIR/lower"'",
                        "upperdir='"$BATS_TEST_TMPDIR/upper"'", "workdir='"$BATS_TEST_TMPDIR/work"'", "private"]},
                {"destination": "/d", "type": "ext4", "source": "'"$DEVICE"'", "options": ["noatime", "errors=continue"]}'
        assert_success
        is "$(jq -c '[.mounts[].type]' <<<"$json")" '["overlay","ext4"]'
        is "$(in_container sh -c 'cat /o/file /d/file; echo x >/o/file')" $'below\nfrom the device'
        is "$(cat "$BATS_TEST_TMPDIR/upper/file")" x
        assert_attributes /d noatime
        remove_all
}

@test "OCI entries of the kernel's own filesystems are not understood" {
        start_container plain
        local type
        for type in proc sysfs devpts mqueue cgroup cgroup2 devtmpfs; do
                not_understood 1 '{"destination": "/cache", "type": "tmpfs", "source": "tmpfs"},
                        {"destination": "/x", "type": "'$type'", "source": "'$type'", "options": ["nosuid", "noexec", "nodev"]}'
                [[ $(json_field .message) == *"$type"* ]]
        done
}

@test "an OCI entry of a kernel filesystem with a path as its source is refused" {
        start_container plain
        local type
        for type in proc sysfs cgroup2 nonesuch; do
                container_snapshot
                batch '{"destination": "/x", "type": "'$type'", "source": "/dev/null"}'
                [[ $status != 0 ]]
                assert_one_json_line
                assert_field .status Failure
                assert_container_unchanged
                assert_no_records
        done
}

@test "OCI entries and ours in one batch" {
        start_container plain
        batch '{"destination": "/p/q", "type": "tmpfs", "source": "tmpfs", "options": ["mode=700"]}, '"$(bind /p)"
        assert_success
        is "$(in_container stat -c %a /p/q)" 700
}

@test "an unknown key of an OCI entry is not understood" {
        start_container plain
        not_understood 0 '{"destination": "/x", "type": "tmpfs", "source": "tmpfs", "readOnly": true}'
        not_understood 0 '{"destination": "/x", "type": "bind", "source": "/srv", "uidMappings": []}'
        not_understood 0 '{"destination": "x", "type": "tmpfs", "source": "tmpfs"}'
        not_understood 0 '{"destination": "/x", "type": 3, "source": "tmpfs"}'
        not_understood 0 '{"destination": "/x"}'
        not_understood 0 '{"destination": ["/x"], "type": "tmpfs"}'
}

# ---- what is wrong with it

@test "a mistake in an entry is reported with the number of the entry" {
        start_container plain
        not_understood 1 "$(tmpfs /a), $(tmpfs /b '"sizes": 3')"
        assert_field .error.subject sizes
        not_understood 0 "$(tmpfs /a '"size": true')"
        not_understood 2 "$(tmpfs /a), $(tmpfs /b), {\"type\": \"nonesuch\", \"target\": \"/c\"}"
        not_understood 1 "$(tmpfs /a), {\"target\": \"/c\"}"
        not_understood 1 "$(tmpfs /a), {\"type\": \"tmpfs\"}"
        not_understood 1 "$(tmpfs /a), {\"type\": \"bind\", \"target\": \"/c\"}"
        not_understood 1 "$(tmpfs /a), $(bind /b '"size": 1')"
        not_understood 1 "$(tmpfs /a), $(bind relative)"
        not_understood '' "$(tmpfs /a), 7"
        not_understood '' "$(tmpfs /a), null"
        not_understood '' "$(tmpfs /a), [$(tmpfs /b)]"
}

@test "a key of the batch itself is not understood in an entry" {
        start_container plain
        not_understood 1 "$(tmpfs /a), $(tmpfs /b '"dryRun": true')"
        not_understood 1 "$(tmpfs /a), $(tmpfs /b '"timeoutSeconds": 3')"
        not_understood '' "$(tmpfs /a), {\"mounts\": []}"
        not_understood 0 "$(tmpfs /a '"mounts": []')"
}

@test "a batch of nothing is not understood" {
        start_container plain
        not_understood '' ''
        helper mount-batch "{\"container\": $CONTAINER_PID}"
        assert_not_understood mounts
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": \"all\"}"
        assert_not_understood mounts
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [$(tmpfs /a)], \"target\": \"/a\"}"
        assert_not_understood target
        assert_mounts_at /a 0
}

@test "the same target twice is not understood" {
        start_container plain
        not_understood 2 "$(tmpfs /a), $(tmpfs /b), $(bind /a)"
        not_understood '' "$(tmpfs /a), $(tmpfs /a)"
        not_understood '' "$(tmpfs /a), {\"destination\": \"/a\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"}"
}

@test "the same target twice in other words leaves nothing" {
        start_container crun
        in_container ln -s a /link
        container_snapshot
        node_snapshot
        local other
        for other in "$(bind //a/)" "$(bind /a/.)" "$(bind /b/../a)" "$(bind /link)" "$(bind /a '"container": "'"$CONTAINER_ID"'"')" \
                "$(bind /a "\"container\": {\"pid\": $CONTAINER_PID}")"; do
                batch "$(tmpfs /a), $other"
                assert_one_json_line
                [[ $status != 0 ]] || { echo "it succeeded"; show_last; return 1; }
                assert_container_unchanged
                assert_node_unchanged
        done
}

@test "the same id twice leaves nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        batch "$(tmpfs /a '"id": "mine"'), $(tmpfs /b '"id": "mine"')"
        [[ $status != 0 ]]
        assert_one_json_line
        assert_container_unchanged
        assert_node_unchanged
}

# ---- all or nothing

# bats test_tags=deep
@test "a failing last entry of 100 leaves nothing" {
        start_container plain
        fails_and_leaves_nothing ENOENT 99 "$(many 99), {\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/last\"}"
}

@test "a failing first entry of 100 leaves nothing" {
        start_container plain
        fails_and_leaves_nothing ENOENT 0 "{\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/first\"}, $(many 99)"
}

# bats test_tags=deep
@test "a last target of 100 that is taken leaves nothing" {
        start_container crun
        fails_and_leaves_nothing EBUSY 99 "$(many 99), $(bind /tmp)"
}

# bats test_tags=deep
@test "a last target of 100 that cannot be made leaves nothing" {
        start_container plain
        in_container touch /file
        fails_and_leaves_nothing ENOTDIR 99 "$(many 99), $(tmpfs /file/last)"
}

# bats test_tags=deep
@test "a last entry of 100 that cannot be placed leaves nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        at_syscall --at move_mount:100 --fail EIO "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(many 100)")"
        is "$AT_REACHED" 1
        assert_failure EIO
        [[ $(json_field .message) == "mounts["* ]]
        assert_container_unchanged
        assert_node_unchanged
        wait_until 5 assert_no_helper_processes
}

@test "a failure among nested mounts leaves nothing" {
        start_container plain-nouserns
        fails_and_leaves_nothing '' 0 "{\"type\": \"bind\", \"source\": \"$BATS_TEST_TMPDIR/config.json\", \"target\": \"/p/q/r\"},
                $(tmpfs /p/q/r/s), $(bind /p), $(tmpfs /p/q)" || fails_and_leaves_nothing '' 1 "{\"type\": \"bind\",
                \"source\": \"$BATS_TEST_TMPDIR/config.json\", \"target\": \"/p/q/r\"}, $(tmpfs /p/q/r/s), $(bind /p), $(tmpfs /p/q)"
        is "$(ls -A "$SOURCE")" "" "what is left in the source"
}

# bats test_tags=kernel
@test "a bad option of one filesystem leaves nothing of the others" {
        mkdir "$BATS_TEST_TMPDIR"/{lower,upper,work}
        make_device ext4
        start_container plain
        fails_and_leaves_nothing EINVAL 2 "$(bind /a), {\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/b\"},
                $(tmpfs /c '"options": "nonesuch=3"'), {\"type\": \"overlay\", \"target\": \"/d\", \"lower\": \"$BATS_TEST_TMPDIR/lower\",
                \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\"}"
        [[ $(json_field .error.kernel) == *nonesuch* ]]
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

@test "what was mounted already stays when another entry fails" {
        start_container plain
        batch "$(bind /a), $(tmpfs /b)"
        assert_success
        in_container touch /b/mine
        fails_and_leaves_nothing ENOENT 3 "$(bind /a), $(tmpfs /b), $(tmpfs /c), {\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/d\"}"
        assert_mounts_at /a 1
        in_container test -e /b/mine
        container_snapshot
        node_snapshot
        at_syscall --at move_mount:2 --fail EIO "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(tmpfs /c), $(bind /a), $(tmpfs /d), $(tmpfs /b)")"
        assert_failure EIO
        assert_container_unchanged
        assert_node_unchanged
        in_container test -e /b/mine
        batch "$(tmpfs /c), $(bind /a), $(tmpfs /b)"
        assert_success
        is "$(jq -c '[.mounts[].alreadyMounted]' <<<"$json")" '[false,true,true]'
}

@test "a failure in one container takes back what another got" {
        start_container plain 100000
        local one=$CONTAINER_PID
        start_container plain 200000
        local two=$CONTAINER_PID
        container_snapshot
        use_container "$one"
        fails_and_leaves_nothing ENOENT 2 "$(tmpfs /a), $(tmpfs /b "\"container\": $two"), {\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/c\", \"container\": $two}"
        at_syscall --at move_mount:2 --fail EIO "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(tmpfs /a), $(tmpfs /b "\"container\": $two")")"
        assert_failure EIO
        assert_container_unchanged
        assert_node_unchanged
        use_container "$two"
        is "$(mounts_at /b)" 0
        [[ ! -e $CONTAINER_ROOTFS/b ]]
}

@test "one container that is gone: the other gets nothing" {
        start_container plain 100000
        local one=$CONTAINER_PID
        start_container plain 200000
        local two=$CONTAINER_PID
        stop_container "$two"
        use_container "$one"
        fails_and_leaves_nothing ESRCH 1 "$(tmpfs /a), $(tmpfs /b "\"container\": $two")"
}

check_dies() {
        local number
        container_snapshot() { bed_container_before=''; }
        for number in 1 3 5; do
                start_container "$1"
                node_snapshot
                at_syscall --at "move_mount:$number" --run "kill -KILL $CONTAINER_PID; while kill -0 $CONTAINER_PID; do :; done" \
                        "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(many 5)")"
                is "$AT_REACHED" 1
                assert_one_json_line
                [[ $status == 0 || $status == 1 ]]
                wait_until 5 assert_no_helper_processes
                if [[ $status == 1 ]]; then
                        assert_node_unchanged
                        is "$(find "$CONTAINER_ROOTFS" -path '*/many*')" "" "what is left in the root directory" || [[ $number != 1 ]]
                fi
                remove_all
                stop_container
        done
}

# bats test_tags=deep
@test "a container that dies while mounts are placed: a clean reply and no record" {
        check_dies plain
}

@test "a container that dies while mounts are placed, without a user namespace" {
        check_dies plain-nouserns
}

# check_prepared_first ENTRIES: in the log of a batch of them, no mount is put into the container before the last one is made.
check_prepared_first() {
        local last placer first
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$1")" >"$BATS_TEST_TMPDIR/reply" 3>&-
        is "$(jq -r .status "$BATS_TEST_TMPDIR/reply")" Success
        # layers and device nodes are put somewhere, too, but on the node and by other processes
        placer=$(awk '$3 == "move_mount" {pid = $2} END {print pid}' "$BATS_TEST_TMPDIR/log")
        first=$(awk -v pid="$placer" '$3 == "move_mount" && $2 == pid {print $1; exit}' "$BATS_TEST_TMPDIR/log")
        is "$(awk -v pid="$placer" '$3 == "move_mount" && $2 == pid' "$BATS_TEST_TMPDIR/log" | wc -l)" "$(jq '.mounts | length' "$BATS_TEST_TMPDIR/reply")" "mounts placed"
        last=$(awk '$3 ~ /^(open_tree|open_tree_attr|fsopen|fsmount)$/ {n = $1} END {print n}' "$BATS_TEST_TMPDIR/log")
        ((last < first)) || { echo "call $last prepares, after $first has placed"; return 1; }
}

# bats test_tags=kernel
@test "nothing is placed before everything is prepared" {
        mkdir "$BATS_TEST_TMPDIR"/{lower,upper,work}
        make_device ext4
        local disk=$DEVICE
        make_device blank
        start_container plain
        check_prepared_first "$(tmpfs /p/q), $(bind /p), $(many 10), {\"type\": \"block\", \"source\": \"$disk\", \"target\": \"/disk\"},
                {\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/raw\", \"raw\": true},
                {\"type\": \"overlay\", \"target\": \"/d\", \"lower\": \"$BATS_TEST_TMPDIR/lower\",
                \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\"}, $(bind /p/r '"locked": true')"
}

# ---- killed

# killed AT ACTION: a batch of 100, killed there.
killed() {
        at_syscall --at "$1" --kill "$FLEXGRAFT_BIN/mount-batch" "$request"
        is "$AT_REACHED" 1
        wait_until 5 assert_no_helper_processes
}

count_calls() {
        at_syscall "$FLEXGRAFT_BIN/mount-batch" "$request"
        assert_success
        remove_all
}

# bats test_tags=deep
@test "a batch of 100 killed anywhere and repeated is complete, with one mount each" {
        local request point
        start_container plain
        request=$(batch_request "$(many 100)")
        container_snapshot
        node_snapshot
        count_calls
        local total=$AT_TOTAL
        for point in $((total / 10)) $((total / 3)) $((total / 2)) $((total * 2 / 3)) $((total * 4 / 5)) $((total * 95 / 100)) \
                move_mount:1 move_mount:50 move_mount:100; do
                killed "$point"
                helper mount-batch "$request"
                assert_success || { echo "after a kill at $point"; return 1; }
                is "$(mounts_below /many)" "100 100" "mounts after a kill at $point"
                is "$(records | wc -l)" 100
                remove_all
                assert_container_unchanged || { echo "after a kill at $point"; return 1; }
                assert_node_unchanged
        done
}

# bats test_tags=deep
@test "a batch of 100 killed anywhere: each mount can be removed" {
        local request point i
        start_container plain
        request=$(batch_request "$(many 100)")
        container_snapshot
        node_snapshot
        count_calls
        for point in $((AT_TOTAL / 2)) move_mount:50 move_mount:100; do
                killed "$point"
                for ((i = 1; i <= 100; i++)); do
                        "$FLEXGRAFT_BIN/mount-remove" "$(remove_request "/many/$i")" >"$BATS_TEST_TMPDIR/removed" 2>&1 3>&- || {
                                echo "after a kill at $point:"
                                cat "$BATS_TEST_TMPDIR/removed"
                                return 1
                        }
                done
                is "$(mounts_below /many)" "0 0"
                SWEEP_NUMBER=killed assert_no_records
                assert_container_unchanged || { echo "after a kill at $point"; return 1; }
                assert_node_unchanged
        done
}

# remove_all_in_sh: the same as remove_all, for sh.
remove_all_in_sh() {
        echo "for id in \$('$FLEXGRAFT_BIN/mount-list' '{}' | jq -r '.mounts | sort_by(.target) | reverse | .[].id'); do
                '$FLEXGRAFT_BIN/mount-remove' \"{\\\"id\\\": \\\"\$id\\\"}\" || exit 1; done"
}

# bats test_tags=sweep
@test "a batch of all sorts killed before any call: again succeeds, and removing leaves nothing" {
        local request disk
        mkdir "$BATS_TEST_TMPDIR"/{lower,upper,work}
        make_device ext4
        disk=$DEVICE
        make_device blank
        start_container plain
        around_mount
        request=$(batch_request "$(tmpfs /p/q), $(bind /p), {\"type\": \"block\", \"source\": \"$disk\", \"target\": \"/disk\"},
                {\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/raw\", \"raw\": true},
                {\"type\": \"overlay\", \"target\": \"/o\", \"lower\": \"$BATS_TEST_TMPDIR/lower\",
                \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\"}")
        WIDER=4 sweep --kill "${AROUND[@]}" --watch tree "$SOURCE" -- \
                act "$FLEXGRAFT_BIN/mount-batch" "$request" ';' \
                call "$FLEXGRAFT_BIN/mount-batch" "$request" ';' \
                sh "[ \$(cut -d' ' -f5 /proc/$CONTAINER_PID/mountinfo | grep -cE '^/(p|p/q|disk|raw|o)\$') = 5 ]" ';' \
                sh "$(remove_all_in_sh)" ';' \
                same ';'
        nothing_left
        is "$(ls -A "$SOURCE")" "" "what is left in the source"
}

# bats test_tags=sweep
@test "a batch with any call failing: a clean reply, all or nothing" {
        local request
        start_container plain
        around_mount
        request=$(batch_request "$(tmpfs /p/q), $(bind /p), $(tmpfs /t)")
        sweep --fail EIO "${AROUND[@]}" -- \
                act "$FLEXGRAFT_BIN/mount-batch" "$request" ';' \
                on-success sh "[ \$(grep -cE ' /(p|p/q|t) ' /proc/$CONTAINER_PID/mountinfo) = 3 ]" ';' \
                on-failure sh "! grep -E ' /(p|p/q|t) ' /proc/$CONTAINER_PID/mountinfo" ';' \
                call "$FLEXGRAFT_BIN/mount-batch" "$request" ';' \
                sh "$(remove_all_in_sh)" ';' \
                same ';'
        nothing_left
}

# ---- at once

# bats test_tags=deep
@test "the same batch eight times at once: one mount each" {
        start_container plain
        local i request results pids=()
        request=$(batch_request "$(many 10)")
        for i in 1 2 3 4 5 6 7 8; do
                "$FLEXGRAFT_BIN/mount-batch" "$request" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                pids+=($!)
        done
        wait "${pids[@]}"
        results=$(cat "$BATS_TEST_TMPDIR"/out.*)
        is "$(jq -s 'map(select(.status == "Success")) | length' <<<"$results")" 8 "successes in: $results"
        is "$(jq -s 'map(select(.mounts[0].alreadyMounted)) | length' <<<"$results")" 7 "already mounted in: $results"
        is "$(mounts_below /many)" "10 10"
        is "$(records | wc -l)" 10
        remove_all
}

# rounds REQUEST REQUEST: both at once, 20 times; each ends well within its time.
rounds() {
        local round pids status
        for ((round = 1; round <= 20; round++)); do
                timeout 120 "$FLEXGRAFT_BIN/mount-batch" "$1" >"$BATS_TEST_TMPDIR/out.1" 2>&1 3>&- &
                pids=($!)
                timeout 120 "$FLEXGRAFT_BIN/mount-batch" "$2" >"$BATS_TEST_TMPDIR/out.2" 2>&1 3>&- &
                pids+=($!)
                status=0
                wait "${pids[0]}" || status=1
                wait "${pids[1]}" || status=1
                [[ $status == 0 ]] || { echo "in round $round:"; cat "$BATS_TEST_TMPDIR"/out.*; return 1; }
                is "$(($(records | wc -l)))" "$3" "records in round $round"
                remove_all
        done
}

# bats test_tags=deep
@test "two batches for two containers in opposite order never wait for each other for ever" {
        start_container plain 100000
        local one=$CONTAINER_PID
        start_container plain 200000
        local two=$CONTAINER_PID
        rounds "{\"mounts\": [$(tmpfs /a "\"container\": $one"), $(tmpfs /b "\"container\": $two"), $(bind /c "\"container\": $one")]}" \
                "{\"mounts\": [$(tmpfs /d "\"container\": $two"), $(tmpfs /e "\"container\": $one"), $(bind /f "\"container\": $two")]}" 6
}

# bats test_tags=deep
@test "two batches of the same mounts in opposite order: one mount each" {
        start_container plain 100000
        local one=$CONTAINER_PID
        start_container plain 200000
        local two=$CONTAINER_PID
        rounds "{\"mounts\": [$(tmpfs /a "\"container\": $one"), $(tmpfs /a "\"container\": $two")]}" \
                "{\"mounts\": [$(tmpfs /a "\"container\": $two"), $(tmpfs /a "\"container\": $one")]}" 2
}

@test "a batch and single calls for the same targets at once: one mount each" {
        start_container plain
        local round i pids
        for round in 1 2 3 4 5; do
                pids=()
                "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(bind /a), $(bind /b), $(bind /c), $(bind /d)")" >"$BATS_TEST_TMPDIR/out.0" 2>&1 3>&- &
                pids+=($!)
                for i in d c b a; do
                        "$FLEXGRAFT_BIN/mount-bind" "$(bind_request "/$i")" >"$BATS_TEST_TMPDIR/out.$i" 2>&1 3>&- &
                        pids+=($!)
                done
                wait "${pids[@]}"
                is "$(jq -sc 'map(.status) | unique' "$BATS_TEST_TMPDIR"/out.*)" '["Success"]' "round $round"
                for i in a b c d; do
                        assert_mounts_at "/$i" 1
                done
                remove_all
        done
}

# ---- and the rest

@test "dryRun of a batch changes nothing, and finds the mistake" {
        start_container plain
        container_snapshot
        node_snapshot
        batch "$(many 20), $(tmpfs /many/1/below)" '"dryRun": true'
        assert_success
        assert_container_unchanged
        assert_node_unchanged
        fails_and_leaves_nothing ENOENT 1 "$(tmpfs /a), {\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/b\"}" '"dryRun": true'
}

@test "replace of a whole batch" {
        start_container plain
        local atomic
        batch "$(tmpfs /a), $(tmpfs /b)"
        assert_success
        in_container touch /a/old /b/old
        batch "$(bind /a), $(tmpfs /b), $(tmpfs /c)"
        assert_failure EBUSY
        batch "$(bind /a), $(tmpfs /b '"size": "1m"'), $(tmpfs /c)" '"replace": true'
        assert_success
        atomic=$(jq -c '[.mounts[].replaced != null]' <<<"$json")
        is "$atomic" '[true,true,false]' "which were replaced"
        assert_mounts_at /a 1
        assert_mounts_at /b 1
        in_container test ! -e /a/old
        in_container test ! -e /b/old
        is "$(records | wc -l)" 3
        remove_all
}

@test "a batch that fails gives back what it had replaced" {
        start_container plain
        batch "$(tmpfs /a)"
        assert_success
        in_container touch /a/old
        node_snapshot
        batch "$(tmpfs /a '"size": "1m"'), {\"type\": \"bind\", \"source\": \"$SOURCE/none\", \"target\": \"/b\"}" '"replace": true'
        assert_failure ENOENT
        in_container test -e /a/old
        at_syscall --at move_mount:2 --fail EIO "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "$(tmpfs /a '"size": "1m"'), $(tmpfs /b)" '"replace": true')"
        assert_failure EIO
        assert_mounts_at /a 1
        in_container test -e /a/old
        assert_mounts_at /b 0
        assert_node_unchanged
        helper mount-remove "$(remove_request /a)"
        assert_success
        assert_no_records
}

@test "a silent filesystem in one target's way: the whole batch ends with the time limit" {
        start_container plain-nouserns
        in_container mkdir -p /tmp/fuse
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse /tmp/fuse
        node_snapshot
        not_hung batch "$(many 10), $(tmpfs /tmp/fuse/data), $(tmpfs /z)" '"timeoutSeconds": 6'
        assert_failure ETIMEDOUT
        assert_index 10
        wait_until 5 assert_no_helper_processes
        is "$(mounts_below /many)" "0 0"
        assert_mounts_at /z 0
        in_container test ! -e /many
        assert_node_unchanged
}

@test "a silent source among others ends with the time limit" {
        mkdir "$BATS_TEST_TMPDIR/fuse"
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$BATS_TEST_TMPDIR/fuse"
        local fuse=$BACKGROUND_PID
        start_container plain
        fails_and_leaves_nothing ETIMEDOUT 5 "$(many 5), {\"type\": \"bind\", \"source\": \"$BATS_TEST_TMPDIR/fuse/x\", \"target\": \"/x\"}" '"timeoutSeconds": 6'
        kill -KILL "$fuse"
        umount -l "$BATS_TEST_TMPDIR/fuse"
}

@test "options of one entry do not reach the others" {
        start_container plain
        batch "$(bind /a '"readOnly": true'), $(bind /b), $(tmpfs /c '"options": "noexec", "locked": true'), $(tmpfs /d '"ids": "host"')"
        assert_success
        assert_attributes /a ro
        assert_attributes /b rw '!noexec'
        assert_attributes /c noexec
        assert_attributes /d '!noexec'
        run ! in_container mount -o remount,bind,exec /c
        is "$(json_field '.mounts[3].idMapping')" host
}

@test "a batch does not say that a mount is there already which another of its entries covers" {
        start_container plain
        in_container mkdir -p /run /var
        in_container ln -sfn /run /var/run
        batch "$(bind /var/run/secrets)"
        assert_success
        batch "$(tmpfs /run), $(bind /var/run/secrets)"
        assert_failure EBUSY
        is "$(mounts_below /run)" "1 1"
        batch "$(bind /var/run/secrets)"
        assert_success
        assert_field '.mounts[0].alreadyMounted' true
}

@test "a batch that fails after it has replaced a raw device gives that back" {
        make_device blank
        printf '%-512s' former | dd of="$DEVICE" conv=notrunc,fsync status=none
        local former=$DEVICE
        make_device blank
        start_container plain
        batch "{\"type\": \"block\", \"source\": \"$former\", \"target\": \"/disk\", \"raw\": true}"
        assert_success
        local guard
        guard=$(guards_of "$former")
        [[ -n $guard ]]
        # of the second mount; the first are of the device's directory and of the first mount
        at_syscall --at move_mount:3 --fail EPERM "$FLEXGRAFT_BIN/mount-batch" "$(batch_request "{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": true, \"replace\": true}, $(bind /deep/er)")"
        is "$status" 1
        is "$(in_container dd if=/disk bs=512 count=1 2>/dev/null | tr -d ' \0')" former
        is "$(guards_of "$former")" "$guard"
}

@test "a batch makes no two overlays with one upper directory" {
        mkdir "$BATS_TEST_TMPDIR"/{lower,upper,work}
        start_container plain
        container_snapshot
        local overlay="\"type\": \"overlay\", \"lower\": \"$BATS_TEST_TMPDIR/lower\", \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\""
        batch "{$overlay, \"target\": \"/a\"}, {$overlay, \"target\": \"/b\"}"
        assert_failure EBUSY
        assert_container_unchanged
        assert_no_records
}

@test "a batch that makes two overlays with one work directory is told that directory" {
        mkdir "$BATS_TEST_TMPDIR"/{lower,one,other,work}
        start_container plain
        container_snapshot
        local overlay="\"type\": \"overlay\", \"lower\": \"$BATS_TEST_TMPDIR/lower\", \"work\": \"$BATS_TEST_TMPDIR/work\""
        batch "{$overlay, \"upper\": \"$BATS_TEST_TMPDIR/one\", \"target\": \"/a\"}, {$overlay, \"upper\": \"$BATS_TEST_TMPDIR/other\", \"target\": \"/b\"}"
        assert_failure EBUSY
        [[ $(json_field .message) == *"$BATS_TEST_TMPDIR/work: "* ]] || { json_field .message; false; }
        assert_container_unchanged
}

@test "a batch gives no device raw for writing and mounts its filesystem as well" {
        make_device ext4
        start_container plain
        container_snapshot
        batch "{\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/raw\", \"raw\": true},
                {\"type\": \"block\", \"source\": \"$DEVICE\", \"target\": \"/deep/er/fs\"}"
        assert_failure EBUSY
        assert_container_unchanged
        assert_no_records
}

@test "mount-list shows the mounts of a batch as it shows others" {
        start_container plain
        batch "$(bind /a '"id": "first"'), $(tmpfs /b)"
        assert_success
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_success
        is "$(jq -c '[.mounts[] | {target, type, state}] | sort_by(.target)' <<<"$json")" \
                '[{"target":"/a","type":"bind","state":"present"},{"target":"/b","type":"tmpfs","state":"present"}]'
        helper mount-remove '{"id": "first"}'
        assert_success
        assert_mounts_at /a 0
        assert_mounts_at /b 1
}
