#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-overlay: directories of the node, layered, into a container; what it changes goes into the uppermost.

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-overlay mount-remove mount-list
        LOWER=$BATS_TEST_TMPDIR/lower
        UPPER=$BATS_TEST_TMPDIR/upper
        WORK=$BATS_TEST_TMPDIR/work
        mkdir "$LOWER" "$UPPER" "$WORK"
        echo below >"$LOWER/file"
}

teardown() {
        bed_teardown
}

# overlay_request [MORE]: the one lower layer, the upper and the work directory.
overlay_request() {
        printf '{"container": %s, "target": "/data", "lower": ["%s"], "upper": "%s", "work": "%s"%s}' "$CONTAINER_PID" "$LOWER" "$UPPER" "$WORK" "${1:+, $1}"
}

# mount_layers MEMBERS: with layers of one's own.
mount_layers() {
        helper mount-overlay "{\"container\": $CONTAINER_PID, \"target\": \"/data\", $1}"
}

mount_overlay() {
        helper mount-overlay "$(overlay_request "$@")"
}

remove_overlay() {
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        assert_no_records
}

fails_and_leaves_nothing() {
        container_snapshot
        node_snapshot
        mount_layers "$2"
        assert_failure "$1"
        assert_container_unchanged
        assert_node_unchanged
        assert_no_helper_processes
}

# ---- owners

check_runtime() {
        chown 1000:1001 "$LOWER/file"
        touch "$LOWER/roots"
        start_container "$1"
        container_snapshot
        mount_overlay
        assert_success
        assert_field .mount.type overlay
        assert_field .mount.target /data
        assert_field .mount.idMapping "$2"
        assert_field .mount.alreadyMounted false
        assert_attributes /data rw nosuid nodev
        is "$(in_container stat -c %u:%g /data /data/roots /data/file | tr '\n' ' ')" "0:0 0:0 1000:1001 "
        in_container sh -c 'echo above >>/data/file && echo new >/data/new && mkdir /data/dir && chown 7:8 /data/new'
        is "$(in_container cat /data/file)" $'below\nabove'
        is "$(cat "$LOWER/file")" below
        is "$(stat -c %u:%g "$UPPER/file" "$UPPER/new" "$UPPER/dir" | tr '\n' ' ')" "1000:1001 7:8 0:0 "
        helper mount-list '{}'
        assert_field '.mounts[0] | .type, .state' $'overlay\npresent'
        remove_overlay
        is "$(cat "$UPPER/new")" new "what the container wrote"
        assert_container_unchanged
        # with the next container of another mapping it is as it was
        stop_container
        start_container plain 300000
        mount_overlay
        assert_success
        is "$(in_container stat -c %u:%g /data/file /data/new /data/dir | tr '\n' ' ')" "1000:1001 7:8 0:0 "
}

# bats test_tags=kernel
@test "owners are the same inside and on the disk" {
        check_runtime plain idmapped
}

# bats test_tags=kernel
@test "owners are the same inside and on the disk, without a user namespace" {
        check_runtime plain-nouserns none
}

@test "an overlay in a crun container" {
        check_runtime crun idmapped
}

@test "an overlay in a crun container without a user namespace" {
        check_runtime crun-nouserns none
}

@test "an overlay in a runc container" {
        check_runtime runc idmapped
}

@test "an overlay in a runc container without a user namespace" {
        check_runtime runc-nouserns none
}

xattr() {
        "$FLEXGRAFT_TOOLS/xattr" "$@"
}

# bats test_tags=kernel
@test "an overlay can be written for as long as it is there" {
        mkdir -m 1777 "$LOWER/all"
        start_container plain
        mount_overlay
        assert_success
        # made by the wrong one it mounts, and turns read-only at the first copy
        in_container sh -c 'echo 1 >>/data/file && echo 2 >/data/new && mkdir -p /data/a/b && mv /data/new /data/a/b/ && rm /data/file && ln -s x /data/link'
        in_container sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo $i >/data/all/$i; rm /data/all/$i; mkdir /data/all/$i; rmdir /data/all/$i; done; sync'
        in_container sh -c 'echo again >/data/again'
        as_user 1000 touch /data/all/users
        is "$(stat -c %u "$UPPER/all/users")" 1000
        assert_attributes /data rw
        run ! as_user 1000 touch /data/not-allowed
}

@test "a file that is copied up keeps owner, mode, times, attributes and capabilities" {
        chown 1000:1001 "$LOWER/file"
        chmod 2640 "$LOWER/file"
        touch -d '2001-02-03 04:05:06' "$LOWER/file"
        xattr set "$LOWER/file" user.mine 74657874
        touch "$LOWER/program"
        # as setcap cap_net_raw+ep does it
        xattr set "$LOWER/program" security.capability 0100000200200000000000000000000000000000
        local inside
        inside=$(stat -c '%u:%g %a %Y %s' "$LOWER/file")
        start_container plain
        mount_overlay
        assert_success
        # copied up by a change of the name alone
        in_container mv /data/file /data/moved
        in_container mv /data/program /data/moved-program
        is "$(in_container stat -c '%u:%g %a %Y %s' /data/moved)" "$inside"
        is "$(stat -c '%u:%g %a %Y %s' "$UPPER/moved")" "$inside"
        is "$(xattr get "$UPPER/moved" user.mine)" 74657874
        is "$(xattr get "/proc/$CONTAINER_PID/root/data/moved" user.mine)" 74657874
        is "$(xattr get "$UPPER/moved-program" security.capability)" 0100000200200000000000000000000000000000
}

@test "a file or directory removed from a lower layer is gone inside, and stays in the layer" {
        mkdir -p "$LOWER/dir/sub"
        touch "$LOWER/dir/one" "$LOWER/dir/two"
        start_container plain
        mount_overlay
        assert_success
        in_container rm /data/file
        in_container rm -r /data/dir/sub
        in_container test ! -e /data/file
        is "$(in_container ls /data /data/dir | tr '\n' ' ')" "/data: dir  /data/dir: one two "
        is "$(stat -c %F "$UPPER/file")" "character special file" "the whiteout"
        [[ -e $LOWER/file && -d $LOWER/dir/sub ]]
        # and comes back when it is made anew
        in_container sh -c 'echo new >/data/file'
        is "$(in_container cat /data/file)" new
        remove_overlay
        mount_overlay
        assert_success
        in_container test ! -e /data/dir/sub
}

@test "a directory made in place of a removed one is empty" {
        mkdir "$LOWER/dir"
        touch "$LOWER/dir/old"
        start_container plain
        mount_overlay
        assert_success
        in_container sh -c 'rm -r /data/dir && mkdir /data/dir && touch /data/dir/new'
        is "$(in_container ls /data/dir)" new
        remove_overlay
        mount_overlay
        assert_success
        is "$(in_container ls /data/dir)" new
        is "$(ls "$LOWER/dir")" old
}

@test "an opaque directory made on the node is opaque inside" {
        mkdir "$LOWER/dir" "$UPPER/dir"
        touch "$LOWER/dir/hidden" "$UPPER/dir/seen"
        xattr set "$UPPER/dir" trusted.overlay.opaque 79
        start_container plain
        mount_overlay
        assert_success
        is "$(in_container ls /data/dir)" seen
}

@test "directories of a lower layer are renamed" {
        mkdir -p "$LOWER/dir/sub"
        touch "$LOWER/dir/sub/deep"
        chown -R 5:6 "$LOWER/dir"
        start_container plain
        mount_overlay
        assert_success
        # without redirect_dir the kernel says EXDEV, and mv copies
        in_container mv /data/dir /data/renamed
        is "$(in_container stat -c %u:%g /data/renamed/sub/deep)" 5:6
        in_container test ! -e /data/dir
        [[ -e $LOWER/dir/sub/deep ]]
}

@test "hard links of a new file are one file" {
        start_container plain
        mount_overlay
        assert_success
        in_container sh -c 'echo one >/data/a && ln /data/a /data/b && echo two >>/data/b'
        is "$(in_container cat /data/a)" $'one\ntwo'
        is "$(in_container stat -c %h /data/a)" 2
        is "$(stat -c %h "$UPPER/a")" 2
        in_container ln /data/file /data/link
        in_container rm /data/file
        is "$(in_container cat /data/link)" below
}

# ---- layers

# layer NUMBER: a directory of the node with one file of its own and one that all have.
layer() {
        mkdir -p "$BATS_TEST_TMPDIR/layers/$1"
        echo "$1" >"$BATS_TEST_TMPDIR/layers/$1/own.$1"
        echo "$1" >"$BATS_TEST_TMPDIR/layers/$1/all"
}

# layers FIRST LAST: their paths as JSON.
layers() {
        seq "$1" "$2" | jq -Rc --arg dir "$BATS_TEST_TMPDIR/layers" '"\($dir)/\(.)"' | jq -sc .
}

# bats test_tags=kernel,kernel_too
@test "64 lower layers, the first one on top" {
        local i
        for ((i = 1; i <= 64; i++)); do layer "$i"; done
        start_container plain
        mount_layers "\"lower\": $(layers 1 64), \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        assert_success
        is "$(in_container cat /data/all)" 1
        is "$(in_container ls /data | grep -c own)" 64
        in_container sh -c 'for f in /data/own.*; do echo x >>$f; done'
        is "$(find "$UPPER" -name 'own.*' | wc -l)" 64
        is "$(cat "$BATS_TEST_TMPDIR/layers/64/own.64")" 64
        remove_overlay
}

@test "65 lower layers are too many" {
        local i
        for ((i = 1; i <= 65; i++)); do layer "$i"; done
        start_container plain
        container_snapshot
        mount_layers "\"lower\": $(layers 1 65), \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        assert_not_understood lower
        mount_layers "\"options\": \"lowerdir=$(layers 1 65 | jq -r 'join(":")'),upperdir=$UPPER,workdir=$WORK\""
        assert_not_understood
        assert_container_unchanged
}

@test "the order of the layers is the order given" {
        layer 1 && layer 2 && layer 3
        start_container plain
        mount_layers "\"lower\": $(layers 1 3)"
        assert_success
        is "$(in_container cat /data/all)" 1
        remove_overlay
        mount_layers "\"lower\": $(layers 1 3 | jq -c reverse)"
        assert_success
        is "$(in_container cat /data/all)" 3
        mount_layers "\"lower\": $(layers 1 3)"
        assert_failure EBUSY
}

# bats test_tags=kernel
@test "without an upper layer an overlay is read-only" {
        layer 1 && layer 2
        start_container plain
        mount_layers "\"lower\": $(layers 1 2)"
        assert_success
        is "$(in_container sh -c 'cat /data/own.1 /data/own.2')" $'1\n2'
        is "$(in_container stat -c %u:%g /data/own.1)" 0:0
        run ! in_container touch /data/made
        [[ $output == *"Read-only file system"* ]]
        run ! in_container mount -o remount,rw /data
        in_container mount -o remount,bind,rw /data || :
        run ! in_container touch /data/made
        remove_overlay
}

@test "readOnly with an upper layer" {
        start_container plain
        mount_overlay '"readOnly": true'
        assert_success
        assert_attributes /data ro
        is "$(in_container cat /data/file)" below
        run ! in_container touch /data/made
        assert_field '.mount.options | index("ro") != null' true
}

@test "one lower layer without an upper one is no overlay" {
        start_container plain
        container_snapshot
        mount_layers "\"lower\": [\"$LOWER\"]"
        assert_not_understood lower
        mount_layers "\"lower\": \"$LOWER\""
        assert_not_understood lower
        assert_container_unchanged
}

@test "a single lower layer may be a string" {
        start_container plain
        mount_layers "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        assert_success
        is "$(in_container cat /data/file)" below
}

check_odd() {
        local odd=$BATS_TEST_TMPDIR/odd request
        mkdir -p "$odd/$1/lower" "$odd/$1/second" "$odd/$1/upper" "$odd/$1/work"
        echo odd >"$odd/$1/lower/file"
        echo second >"$odd/$1/second/other"
        start_container plain
        request=$(jq -cn --argjson pid "$CONTAINER_PID" --arg dir "$odd/$1" \
                '{container: $pid, target: "/data", lower: [$dir + "/lower", $dir + "/second"], upper: ($dir + "/upper"), work: ($dir + "/work")}')
        helper mount-overlay "$request"
        assert_success
        is "$(in_container cat /data/file /data/other)" $'odd\nsecond'
        in_container touch /data/new
        [[ -e $odd/$1/upper/new ]]
        helper mount-overlay "$request"
        assert_field .mount.alreadyMounted true
        remove_overlay
}

@test "layers with commas" {
        check_odd 'a,b,lowerdir=c'
}

@test "layers with colons" {
        check_odd 'a:b::c'
}

@test "layers with spaces and newlines" {
        check_odd $' a b\nc\t'
}

@test "layers with backslashes and quotes" {
        check_odd 'a\b\\c"d'"'"
}

@test "layers that are not ASCII" {
        check_odd 'größe-データ'
}

@test "layers with long paths" {
        local name
        printf -v name '%0200d' 0
        check_odd "$name/$name/$name/$name/$name"
}

# ---- options

# bats test_tags=kernel
@test "layers as options, as in fstab" {
        layer 1 && layer 2
        start_container plain
        mount_layers "\"options\": \"lowerdir=$BATS_TEST_TMPDIR/layers/1:$BATS_TEST_TMPDIR/layers/2,upperdir=$UPPER,workdir=$WORK,noatime\""
        assert_success
        is "$(in_container cat /data/all)" 1
        in_container touch /data/new
        [[ -e $UPPER/new ]]
        assert_attributes /data noatime nosuid nodev
        # the same, said in the other way
        mount_layers "\"lower\": $(layers 1 2), \"upper\": \"$UPPER\", \"work\": \"$WORK\", \"options\": \"noatime\""
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "layers as options with escaped colons and, in an array, commas" {
        local odd=$BATS_TEST_TMPDIR/'a:b,c\d'
        mkdir "$odd"
        echo odd >"$odd/file"
        start_container plain
        mount_layers "$(jq -cn --arg o "lowerdir=$BATS_TEST_TMPDIR/a\\:b,c\\\\d:$LOWER" --arg u "upperdir=$UPPER" --arg w "workdir=$WORK" '{options: [$o, $u, $w]}' | sed 's/^{//; s/}$//')"
        assert_success
        is "$(in_container cat /data/file)" odd
}

@test "options metacopy, redirect_dir, xino and volatile" {
        local option
        for option in metacopy=on,redirect_dir=on redirect_dir=on index=off xino=off volatile; do
                rm -rf "$UPPER" "$WORK"
                mkdir "$UPPER" "$WORK"
                start_container plain
                container_snapshot
                node_snapshot
                mount_overlay "\"options\": \"$option\""
                assert_one_json_line
                if [[ $status == 0 ]]; then
                        in_container sh -c 'chown 5:5 /data/file && cat /data/file >/dev/null && touch /data/new'
                        is "$(in_container stat -c %u /data/file)" 5
                        [[ $option != volatile ]] || [[ $(mount_line /data) == *volatile* ]]
                        remove_overlay
                else
                        assert_failure
                        assert_field '.error | has("kernel")' true
                        assert_container_unchanged
                        assert_node_unchanged
                fi
                stop_container
        done
}

@test "an option that overlay does not know fails with the kernel's message, and leaves nothing" {
        start_container plain
        fails_and_leaves_nothing EINVAL "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK\", \"options\": \"nonesuch=1\""
        [[ $(json_field .error.kernel) == *nonesuch* ]]
}

@test "where the kernel does not say why it makes no overlay of id-mapped layers, the message names remap" {
        local request="\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$UPPER/work\""
        mkdir "$UPPER/work"
        start_container plain
        fails_and_leaves_nothing EINVAL "$request"
        [[ $(json_field .message) == *'Invalid argument: dmesg says why; before Linux 5.19 '*'"ids": "remap"'* ]]
        fails_and_leaves_nothing EINVAL "$request, \"ids\": \"host\""
        [[ $(json_field .message) == *'Invalid argument' ]]
}

@test "missing, malformed and contradictory layers are not understood" {
        start_container plain
        container_snapshot
        node_snapshot
        local request
        for request in "\"lower\": [\"$LOWER\"], \"upper\": \"$UPPER\"" "\"lower\": [\"$LOWER\"], \"work\": \"$WORK\"" '"lower": []' '"lower": "relative"' \
                '"lower": ["/a", 3]' '"lower": {}' '"lower": ["/a", ""]' "\"lower\": \"$LOWER\", \"upper\": \"u\", \"work\": \"w\"" "\"upper\": \"$UPPER\", \"work\": \"$WORK\"" \
                "\"lower\": [\"$LOWER\", \"/tmp\"], \"source\": \"overlay\"" "\"lower\": [\"$LOWER\", \"/tmp\"], \"options\": \"rbind\"" \
                "\"options\": \"lowerdir+=$LOWER,lowerdir+=/tmp\"" '"options": "lowerdir=:/tmp"' '"options": "lowerdir=a:b"' '"options": "lowerdir="'; do
                mount_layers "$request"
                assert_not_understood '' || { echo "for $request"; return 1; }
        done
        assert_container_unchanged
        assert_node_unchanged
}

# ---- layers that cannot be

@test "a layer that is missing fails with ENOENT and is named" {
        start_container plain
        fails_and_leaves_nothing ENOENT "\"lower\": [\"$LOWER\", \"$LOWER.none\"]"
        assert_field .error.subject "$LOWER.none"
        assert_field .error.where node
        fails_and_leaves_nothing ENOENT "\"lower\": \"$LOWER\", \"upper\": \"$UPPER.none\", \"work\": \"$WORK\""
        fails_and_leaves_nothing ENOENT "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK.none\""
}

@test "a layer that is no directory fails with ENOTDIR" {
        start_container plain
        touch "$BATS_TEST_TMPDIR/file"
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        local name
        for name in file fifo; do
                fails_and_leaves_nothing ENOTDIR "\"lower\": [\"$BATS_TEST_TMPDIR/$name\", \"$LOWER\"]"
                fails_and_leaves_nothing ENOTDIR "\"lower\": \"$LOWER\", \"upper\": \"$BATS_TEST_TMPDIR/$name\", \"work\": \"$WORK\""
                fails_and_leaves_nothing ENOTDIR "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$BATS_TEST_TMPDIR/$name\""
        done
}

@test "upper and work are not the same directory, nor one in the other" {
        mkdir "$UPPER/work" "$WORK/upper"
        start_container plain
        fails_and_leaves_nothing EINVAL "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$UPPER\""
        fails_and_leaves_nothing EINVAL "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK/../upper\""
        fails_and_leaves_nothing '' "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$UPPER/work\""
        fails_and_leaves_nothing '' "\"lower\": \"$LOWER\", \"upper\": \"$WORK/upper\", \"work\": \"$WORK\""
}

@test "upper and work on different mounts fail with EXDEV and a reason" {
        make_device ext4
        mkdir "$BATS_TEST_TMPDIR/other"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/other"
        mkdir "$BATS_TEST_TMPDIR/other/work" "$BATS_TEST_TMPDIR/again"
        start_container plain
        fails_and_leaves_nothing EXDEV "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$BATS_TEST_TMPDIR/other/work\""
        [[ $(json_field .message) == *mount* ]]
        # one filesystem, but two mounts
        mount --bind "$BATS_TEST_TMPDIR/other" "$BATS_TEST_TMPDIR/again"
        mkdir "$BATS_TEST_TMPDIR/other/upper"
        fails_and_leaves_nothing EXDEV "\"lower\": \"$LOWER\", \"upper\": \"$BATS_TEST_TMPDIR/other/upper\", \"work\": \"$BATS_TEST_TMPDIR/again/work\""
}

@test "upper and work in directories far from each other, on another filesystem than the lower" {
        make_device ext4
        local other=$BATS_TEST_TMPDIR/other
        mkdir "$other"
        mount "$DEVICE" "$other"
        mkdir -p "$other/a/b/upper" "$other/c/work"
        start_container plain
        mount_layers "\"lower\": \"$LOWER\", \"upper\": \"$other/a/b/upper\", \"work\": \"$other/c/work\""
        assert_success
        in_container sh -c 'echo x >>/data/file'
        is "$(cat "$other/a/b/upper/file")" $'below\nx'
        is "$(stat -c %u "$other/a/b/upper/file")" 0
        remove_overlay
        umount "$other"
}

# bats test_tags=kernel
@test "layers on a tmpfs: where its ids can be mapped, else a clear failure" {
        local memory=$BATS_TEST_TMPDIR/memory
        mkdir "$memory"
        mount -t tmpfs tmpfs "$memory"
        mkdir "$memory/lower" "$memory/upper" "$memory/work"
        echo memory >"$memory/lower/file"
        start_container plain
        local request="\"lower\": \"$memory/lower\", \"upper\": \"$memory/upper\", \"work\": \"$memory/work\""
        if kernel_can map-tmpfs; then
                mount_layers "$request"
                assert_success
                in_container sh -c 'echo x >>/data/file && touch /data/new'
                is "$(stat -c %u "$memory/upper/new")" 0
                is "$(in_container stat -c %u /data/new)" 0
        else
                fails_and_leaves_nothing '' "$request"
                [[ $(json_field .message) == *mapped* ]]
        fi
        helper mount-remove "$(remove_request /data)"
        start_container plain-nouserns
        rm -rf "$memory"/{upper,work}
        mkdir "$memory"/{upper,work}
        mount_layers "$request"
        assert_success
        in_container sh -c 'echo x >>/data/file'
}

@test "an upper directory is one overlay's at a time" {
        local layers="\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        start_container plain
        local first=$CONTAINER_PID
        mount_layers "$layers"
        assert_success
        start_container plain 200000
        container_snapshot
        mount_layers "$layers"
        assert_failure EBUSY
        [[ $(json_field .message) == *"$first"* ]]
        assert_container_unchanged
        stop_container "$first"
        mount_layers "$layers"
        assert_success
}

@test "an upper directory is still the overlay's of a process that has left its mount namespace, where nobody else is" {
        local layers="\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        start_container plain
        begin_leaver
        helper mount-overlay "{\"container\": $LEAVER, \"target\": \"/data\", $layers}"
        assert_success
        leaver_leaves
        start_container plain 200000
        mount_layers "$layers"
        assert_failure EBUSY
        [[ $(json_field .message) == *"$LEAVER"* ]]
}

@test "a work directory is one overlay's at a time, and no other's upper directory" {
        local first layers
        start_container plain
        first=$CONTAINER_PID
        mkdir "$BATS_TEST_TMPDIR"/{upper2,work2}
        mount_overlay
        assert_success
        start_container plain 200000
        container_snapshot
        for layers in "\"upper\": \"$BATS_TEST_TMPDIR/upper2\", \"work\": \"$WORK\"" "\"upper\": \"$WORK\", \"work\": \"$BATS_TEST_TMPDIR/work2\"" \
                "\"upper\": \"$BATS_TEST_TMPDIR/upper2\", \"work\": \"$UPPER\""; do
                mount_layers "\"lower\": \"$LOWER\", $layers"
                assert_failure EBUSY
                [[ $(json_field .message) == *"$first"* ]]
        done
        assert_container_unchanged
        use_container "$first"
        in_container sh -c 'echo x >>/data/file && rm /data/file'
}

@test "layers of a kernel filesystem are refused" {
        start_container plain
        fails_and_leaves_nothing '' "\"lower\": [\"/proc/sys\", \"$LOWER\"]"
        fails_and_leaves_nothing '' "\"lower\": [\"$LOWER\", \"/sys/kernel\"]"
}

@test "a layer that is root's symlink is followed" {
        ln -s lower "$BATS_TEST_TMPDIR/link"
        start_container plain
        mount_layers "\"lower\": \"$BATS_TEST_TMPDIR/link\", \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        assert_success
        is "$(in_container cat /data/file)" below
        mount_overlay
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "a layer that is another user's symlink is refused" {
        mkdir "$BATS_TEST_TMPDIR/theirs"
        chown 1234:1234 "$BATS_TEST_TMPDIR/theirs"
        ln -s ../lower "$BATS_TEST_TMPDIR/theirs/link"
        chown -h 1234:1234 "$BATS_TEST_TMPDIR/theirs/link"
        start_container plain
        fails_and_leaves_nothing '' "\"lower\": [\"$BATS_TEST_TMPDIR/theirs/link\", \"$UPPER\"]"
        fails_and_leaves_nothing '' "\"lower\": \"$LOWER\", \"upper\": \"$BATS_TEST_TMPDIR/theirs/link\", \"work\": \"$WORK\""
        fails_and_leaves_nothing '' "\"lower\": \"$LOWER\", \"upper\": \"$UPPER\", \"work\": \"$BATS_TEST_TMPDIR/theirs/link\""
}

@test "a layer that takes turns with a symlink never shows what the symlink leads to" {
        local secret=$BATS_TEST_TMPDIR/secret theirs=$BATS_TEST_TMPDIR/theirs round seen=0
        mkdir "$secret" "$theirs" "$theirs/a"
        echo secret >"$secret/secret"
        echo harmless >"$theirs/a/harmless"
        ln -s ../secret "$theirs/b"
        chown -hR 1234:1234 "$theirs"
        start_container plain
        background_ready "$FLEXGRAFT_TOOLS/swap-loop" "$theirs" a b
        for ((round = 1; round <= 150; round++)); do
                "$FLEXGRAFT_BIN/mount-overlay" "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"lower\": [\"$theirs/a\", \"$LOWER\"]}" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- || {
                        grep -q '"Failure"' "$BATS_TEST_TMPDIR/out" || { cat "$BATS_TEST_TMPDIR/out"; return 1; }
                        continue
                }
                seen=$((seen + 1))
                [[ ! -e /proc/$CONTAINER_PID/root/data/secret ]] || { echo "the secret is seen, in round $round"; return 1; }
                "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" >/dev/null 3>&-
        done
        end_process "$BACKGROUND_PID"
        echo "$seen of 150 were mounted"
        ((seen > 0))
        assert_mounts_at /data 0
        assert_no_records
}

# bats test_tags=sweep
@test "an upper layer that is exchanged during the call: nothing is written elsewhere" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        start_container plain
        around_mount
        sweep --run "mv '$UPPER' '$UPPER.away' && ln -s outside '$UPPER' && chown -h 1234 '$UPPER'" "${AROUND[@]}" -- \
                act "$FLEXGRAFT_BIN/mount-overlay" "$(overlay_request)" ';' \
                on-success sh "upper='$UPPER'; [ \"\$NAME\" = - ] || upper=\$upper.away
                        $(in_sh "$CONTAINER_PID") touch /data/written && rm \"\$upper/written\"" ';' \
                sh "[ -z \"\$(ls -A '$outside')\" ]" ';' \
                sh "[ \"\$NAME\" = - ] || { rm '$UPPER' && mv '$UPPER.away' '$UPPER'; }" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" ';' \
                same ';'
        nothing_left
}

# ---- devices and setuid programs of a layer

# put_program PATH: a program that tells as whom it runs.
put_program() {
        gcc -O2 -static -o "$1" -x c - <<<'#include <stdio.h>
                #include <unistd.h>
                int main(void) { return printf("%d\n", (int)geteuid()) < 0; }'
}

check_layer_devices() {
        mknod -m 0666 "$LOWER/null" c 1 3
        put_program "$LOWER/program"
        chmod 4755 "$LOWER/program"
        start_container "$1"
        mount_overlay
        assert_success
        run ! in_container sh -c 'echo x >/data/null'
        is "$(as_user 1000 /data/program)" 1000
        # a copy of it in the upper layer neither
        in_container touch /data/null /data/program
        run ! in_container sh -c 'echo x >/data/null'
        is "$(as_user 1000 /data/program)" 1000
}

@test "a device node in a layer cannot be opened, a setuid program gains nothing, and the container's root cannot change that" {
        check_layer_devices plain
        run ! in_container mount -o remount,bind,dev /data
        run ! in_container mount -o remount,bind,suid /data
        run ! in_container mount -o remount,dev,suid /data
        run ! in_container sh -c 'echo x >/data/null'
        is "$(as_user 1000 /data/program)" 1000
        in_container mkdir /again
        in_container mount --bind /data /again
        run ! in_container mount -o remount,bind,dev,suid /again
        run ! in_container sh -c 'echo x >/again/null'
        is "$(as_user 1000 /again/program)" 1000
}

@test "a device node in a layer cannot be opened, and a setuid program gains nothing, in a crun container" {
        check_layer_devices crun
        run ! in_container mount -o remount,bind,dev,suid /data
        run ! in_container sh -c 'echo x >/data/null'
}

@test "a device node in a layer cannot be opened, and a setuid program gains nothing, without a user namespace" {
        check_layer_devices plain-nouserns
}

@test "dev and suid may be asked for" {
        mknod -m 0666 "$LOWER/null" c 1 3
        put_program "$LOWER/program"
        chmod 4755 "$LOWER/program"
        start_container plain-nouserns
        mount_overlay '"options": "dev,suid"'
        assert_success
        assert_attributes /data '!nodev' '!nosuid'
        in_container sh -c 'echo x >/data/null'
        is "$(as_user 1000 /data/program)" 0
}

# ---- ids

@test "ids host: owners are the node's" {
        touch "$LOWER/theirs"
        chown 100005:100006 "$LOWER/theirs"
        start_container plain
        mount_overlay '"ids": "host"'
        assert_success
        assert_field .mount.idMapping host
        is "$(in_container stat -c %u:%g /data/file /data/theirs | tr '\n' ' ')" "65534:65534 5:6 "
}

@test "ids userns is refused or works" {
        start_container plain
        container_snapshot
        node_snapshot
        mount_overlay '"ids": "userns"'
        assert_one_json_line
        if [[ $status == 0 ]]; then
                is "$(in_container stat -c %u /data/file)" 0
                in_container sh -c 'echo x >>/data/file'
        else
                assert_container_unchanged
                assert_node_unchanged
        fi
}

# bats test_tags=kernel
@test "two containers with different mappings share the lower layers" {
        chown 1000 "$LOWER/file"
        mkdir "$BATS_TEST_TMPDIR"/{upper2,work2}
        start_container plain 100000
        local one=$CONTAINER_PID
        mount_overlay
        assert_success
        start_container crun 200000
        mount_layers "\"lower\": \"$LOWER\", \"upper\": \"$BATS_TEST_TMPDIR/upper2\", \"work\": \"$BATS_TEST_TMPDIR/work2\""
        assert_success
        is "$(in_container stat -c %u /data/file)" 1000
        in_container sh -c 'echo two >>/data/file'
        use_container "$one"
        is "$(in_container stat -c %u /data/file)" 1000
        is "$(in_container cat /data/file)" below
        in_container sh -c 'echo one >>/data/file'
        is "$(cat "$LOWER/file" "$UPPER/file" "$BATS_TEST_TMPDIR/upper2/file")" $'below\nbelow\none\nbelow\ntwo'
        is "$(stat -c %u "$UPPER/file" "$BATS_TEST_TMPDIR/upper2/file" | tr '\n' ' ')" "1000 1000 "
}

@test "writing to a file whose owner is not among the container's ids fails, and harms nothing" {
        touch "$LOWER/foreign"
        chown 70000:70000 "$LOWER/foreign"
        start_container plain
        mount_overlay
        assert_success
        is "$(in_container stat -c %u:%g /data/foreign)" 65534:65534
        run ! in_container sh -c 'echo x >>/data/foreign'
        run ! in_container chown 0:0 /data/foreign
        in_container sh -c 'echo x >>/data/file'
        is "$(stat -c %u "$LOWER/foreign")" 70000
}

# ---- again, and away

@test "the same overlay twice is one mount" {
        start_container plain
        mount_overlay
        assert_success
        in_container touch /data/new
        mount_overlay
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
        remove_overlay
        [[ -e $UPPER/new ]]
}

@test "other layers for the same target are refused" {
        layer 1 && layer 2
        start_container plain
        mount_overlay
        assert_success
        mount_layers "\"lower\": $(layers 1 2)"
        assert_failure EBUSY
        assert_mounts_at /data 1
        is "$(in_container cat /data/file)" below
}

@test "removing leaves the upper layer, and nothing attached on the node" {
        start_container plain
        container_snapshot
        node_snapshot
        mount_overlay
        assert_success
        in_container sh -c 'echo kept >/data/kept'
        assert_no_helper_processes
        local mounts
        mounts=$(node_mounts)
        remove_overlay
        is "$(node_mounts)" "$mounts"
        is "$(cat "$UPPER/kept")" kept
        assert_container_unchanged
        assert_node_unchanged
        rm -rf "$WORK" "$UPPER" "$LOWER"
}

@test "a file that is open while the overlay is removed can still be written" {
        start_container plain
        mount_overlay
        assert_success
        background in_container sh -c 'exec 3>/data/open && touch /tmp/opened && while [ ! -e /tmp/go ]; do sleep 0.05; done && echo late >&3 && touch /tmp/done'
        wait_until 10 test -e "/proc/$CONTAINER_PID/root/tmp/opened"
        helper mount-remove "$(remove_request /data | sed 's/}$/, "force": true}/')"
        assert_success
        in_container touch /tmp/go
        wait_until 10 test -e "/proc/$CONTAINER_PID/root/tmp/done"
        is "$(cat "$UPPER/open")" late
}

@test "an overlay goes with its container, and the upper layer can be used again" {
        start_container crun
        mount_overlay '"id": "mine"'
        assert_success
        in_container touch /data/first
        stop_container
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_no_records
        start_container runc 300000
        mount_overlay
        assert_success
        is "$(in_container stat -c %u /data/first)" 0
        in_container touch /data/second
        is "$(stat -c %u "$UPPER/second")" 0
}

@test "layers within a container's own root directory" {
        start_container plain
        mkdir "$CONTAINER_ROOTFS/lower"
        echo inner >"$CONTAINER_ROOTFS/lower/file"
        mount_layers "\"lower\": \"$CONTAINER_ROOTFS/lower\", \"upper\": \"$UPPER\", \"work\": \"$WORK\""
        assert_success
        is "$(in_container cat /data/file)" inner
}

@test "an overlay over the container's own directory, which comes back" {
        start_container plain
        in_container sh -c 'mkdir /data && touch /data/mine'
        mount_overlay
        assert_success
        is "$(in_container ls /data)" file
        remove_overlay
        is "$(in_container ls /data)" mine
}

@test "a locked overlay cannot be made writable" {
        start_container plain
        mount_overlay '"locked": true, "readOnly": true'
        assert_success
        run ! in_container mount -o remount,bind,rw /data
        run ! in_container mount -o remount,rw /data
        run ! in_container touch /data/made
}

@test "dryRun of an overlay changes nothing, and finds the mistake" {
        start_container plain
        container_snapshot
        node_snapshot
        mount_overlay '"dryRun": true'
        assert_success
        is "$(ls -A "$WORK")" "" "what is in the work directory"
        mount_layers "\"lower\": [\"$LOWER\", \"$LOWER.none\"], \"dryRun\": true"
        assert_failure ENOENT
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "replace puts another overlay in its place" {
        layer 1 && layer 2
        start_container plain
        mount_overlay
        assert_success
        mount_layers "\"lower\": $(layers 1 2), \"replace\": true"
        assert_success
        if kernel_can beneath; then
                assert_field .mount.replaced.atomic true
        else
                assert_field .mount.replaced.atomic false
        fi
        assert_mounts_at /data 1
        is "$(in_container cat /data/all)" 1
        remove_overlay
}

# ---- killed

# overlay_sweep ACTION...: an overlay with the action at each call; then again, written to, and removed.
overlay_sweep() {
        local request
        request=$(overlay_request)
        around_mount
        sweep "$@" "${AROUND[@]}" -- \
                act "$FLEXGRAFT_BIN/mount-overlay" "$request" ';' \
                on-success mounts "$CONTAINER_PID" /data 1 ';' \
                on-failure mounts "$CONTAINER_PID" /data 0 ';' \
                call "$FLEXGRAFT_BIN/mount-overlay" "$request" ';' \
                mounts "$CONTAINER_PID" /data 1 ';' \
                sh "$(in_sh "$CONTAINER_PID") sh -c 'echo x >>/data/file && echo x >/data/new'" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" ';' \
                same ';'
        nothing_left
}

# bats test_tags=sweep
@test "an overlay killed before any call: again succeeds, and remove leaves nothing" {
        start_container plain
        overlay_sweep --kill
}

# bats test_tags=sweep
@test "an overlay killed before any call while its worker lives on" {
        start_container plain
        overlay_sweep --kill-main
}

# bats test_tags=sweep
@test "an overlay with any call failing: again succeeds, and remove leaves nothing" {
        start_container plain
        overlay_sweep --fail EIO
}

# ---- cost

# traced CALL: what strace -f writes of this system call, or these, of one mount goes to $BATS_TEST_TMPDIR/trace.
traced() {
        start_container plain
        HELPER_PREFIX=(strace -f -e "trace=$1" -o "$BATS_TEST_TMPDIR/trace")
        mount_overlay
        HELPER_PREFIX=()
        assert_success
        assert_attributes /data rw nosuid nodev
}

@test "no process of an overlay's call copies its memory" {
        traced clone,fork,vfork
        assert_memory_is_shared "$BATS_TEST_TMPDIR/trace"
}

@test "an overlay is made and locked in one private mount namespace, and a copy of it" {
        traced unshare
        is "$(grep -c 'unshare(CLONE_NEWNS' "$BATS_TEST_TMPDIR/trace")" 2 "namespaces are made"
}
