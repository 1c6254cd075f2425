#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# remap of each kind of mount: over what the kernel can id-map, and over what it refuses.

load helpers
load remap_helpers
bats_require_minimum_version 1.5.0

setup() {
        remap_setup
        only_remap
        needs mount-overlay mount-tmpfs mount-block mount-image mount-batch
}

teardown() {
        remap_teardown
}

# mounted IDS: the last helper mounted, and mapped owners so.
mounted() {
        assert_success
        remember_remap_processes
        assert_field .mount.idMapping "$1"
}

# refusing_source: at $REFUSING, over the tmpfs $BEHIND, a filesystem that the kernel refuses to id-map.
refusing_source() {
        command -v bindfs >/dev/null || skip "no bindfs"
        make_source tmpfs
        BEHIND=$BATS_TEST_TMPDIR/tmpfs REFUSING=$BATS_TEST_TMPDIR/refusing
        mkdir "$REFUSING"
        bindfs -o allow_other,attr_timeout=0,entry_timeout=0 "$BEHIND" "$REFUSING" 3>&-
}

# overlay_request MEMBERS: of two lower layers of $LAYERS, or with the member "upper" of that and what is changed.
overlay_request() {
        printf '{"container": %s, "target": "/data", %s}' "$CONTAINER_PID" "$1"
}

# make_layers: below $LAYERS, of root and of uid 1000.
make_layers() {
        mkdir -p "$LAYERS"/{1,2}
        echo text >"$LAYERS/1/root"
        echo text >"$LAYERS/2/user" && chown 1000:1001 "$LAYERS/2/user"
        LOWER="\"lower\": [\"$LAYERS/1\", \"$LAYERS/2\"]"
}

# make_upper: a directory for changes, on a filesystem that can have it.
make_upper() {
        mkdir -p "$BATS_TEST_TMPDIR"/changes/{upper,work}
        UPPER=$BATS_TEST_TMPDIR/changes/upper
        WRITABLE="\"upper\": \"$UPPER\", \"work\": \"$BATS_TEST_TMPDIR/changes/work\""
}

# ---- overlays

# bats test_tags=kernel
@test "an overlay with remap has the owners of its layers, and stores those of the container" {
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        make_upper
        chmod 0777 "$LAYERS/1" "$UPPER"
        remap_container plain
        helper mount-overlay "$(overlay_request "$LOWER, $WRITABLE, \"ids\": \"remap\"")"
        mounted remap
        assert_attributes /data rw nosuid nodev
        is "$(in_container stat -c %u:%g /data /data/root /data/user | xargs)" "0:0 0:0 1000:1001"
        in_container touch /data/new
        as 1000 append /data/user x 1           # it is copied up
        in_container chown 65535:7 /data/root
        is "$(stat -c %u:%g "$UPPER"/{new,user,root} | xargs)" "0:0 1000:1001 65535:7" "the upper layer"
        is "$(stat -c %u:%g "$LAYERS"/{1/root,2/user} | xargs)" "0:0 1000:1001" "the lower layers"
        in_container rm /data/user
        run ! in_container test -e /data/user
        is "$(stat -c %F "$UPPER/user")" "character special file" "the whiteout"
        run ! in_container mknod /data/whiteout c 0 0
        helper mount-remove "$(remove_request /data)"
        assert_success
        remap_processes_end
}

@test "an overlay with remap that is asked for again is there already, and its upper directory is taken" {
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        make_upper
        remap_container plain
        local request
        request=$(overlay_request "$LOWER, $WRITABLE, \"ids\": \"remap\"")
        helper mount-overlay "$request"
        mounted remap
        helper mount-overlay "$request"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-overlay "${request/\/data/\/other}"
        assert_failure EBUSY
}

# bats test_tags=kernel
@test "an overlay with remap that is read-only, or has no upper layer, is not written, whatever the container's root does" {
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        make_upper
        remap_container plain
        local more
        for more in "\"options\": \"noatime\"" "$WRITABLE, \"readOnly\": true"; do
                helper mount-overlay "$(overlay_request "$LOWER, $more, \"ids\": \"remap\"")"
                mounted remap
                in_container mount -o remount,bind,rw /data || :
                in_container mount -o remount,rw /data || :
                run ! in_container touch /data/new
                [[ $output == *'Read-only file system'* ]] || is "$output" EROFS
                is "$(find "$UPPER" -mindepth 1)" ""
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
}

# bats test_tags=kernel
@test "a device node and a setuid program in the layers of an overlay with remap gain nothing, and the container's root cannot change that" {
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        make_upper
        install -m 4755 "$FLEXGRAFT_TOOLS/fs-calls" "$LAYERS/1/setuid"
        mknod -m 0666 "$LAYERS/1/device" c 1 5
        remap_container plain
        helper mount-overlay "$(overlay_request "$LOWER, $WRITABLE, \"ids\": \"remap\"")"
        mounted remap
        run ! in_container mount -o remount,bind,suid,dev /data
        run ! in_container mount -o remount,suid,dev /data
        assert_attributes /data nosuid nodev
        run ! in_container cat /data/device
        in_container chmod 0644 /data/root
        run ! in_container setfattr -n trusted.overlay.opaque -v y /data
        is "$(getfattr --absolute-names -d -m trusted.overlay.opaque "$UPPER")" ""
}

# bats test_tags=kernel
@test "layers that the kernel cannot id-map make an overlay with remap, with the right owners" {
        refusing_source
        LAYERS=$BEHIND
        make_layers
        LAYERS=$REFUSING
        make_layers
        make_upper
        remap_container plain
        local request
        request=$(overlay_request "$LOWER, $WRITABLE")
        helper mount-overlay "$request"
        assert_failure EINVAL
        assert_no_records
        helper mount-overlay "${request%\}}, \"ids\": \"remap\"}"
        mounted remap
        is "$(in_container stat -c %u:%g /data/root /data/user | xargs)" "0:0 1000:1001"
        in_container sh -c 'echo more >>/data/root && chown 7:8 /data/root'
        is "$(stat -c %u:%g "$UPPER/root")" 7:8
        is "$(cat "$UPPER/root")" $'text\nmore'
}

# ---- tmpfs

# bats test_tags=kernel
@test "a tmpfs with remap is the container's root's, and has its size" {
        remap_container plain
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"size\": \"1m\", \"mode\": \"0755\", \"ids\": \"remap\"}"
        mounted remap
        assert_attributes /cache rw nosuid nodev
        is "$(in_container stat -c %u:%g:%a /cache)" 0:0:755
        in_container sh -c 'echo text >/cache/file && chown 1000:1001 /cache/file'
        is "$(in_container stat -c %u:%g /cache/file)" 1000:1001
        run ! as 1000 append /cache/by-1000 x 1
        in_container mount -o remount,size=64m /cache || :
        run ! in_container dd if=/dev/zero of=/cache/much bs=64k count=32
        [[ $output == *'No space left'* ]] || is "$output" ENOSPC
        helper mount-remove "$(remove_request /cache)"
        assert_success
        remap_processes_end
}

@test "uid and gid of a tmpfs with remap are the container's, which has to have them" {
        remap_container plain
        local request="{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"ids\": \"remap\""
        helper mount-tmpfs "$request, \"uid\": 1000, \"gid\": 1001, \"mode\": \"0700\"}"
        mounted remap
        is "$(in_container stat -c %u:%g:%a /cache)" 1000:1001:700
        as 1000 append /cache/file x 1
        helper mount-tmpfs "${request/\/cache/\/other}, \"uid\": 65536}"
        assert_failure
        [[ $(json_field .message) == *65536* ]]
}

@test "a tmpfs with remap in a container without a user namespace of its own is a tmpfs" {
        start_container plain-nouserns
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"ids\": \"remap\"}"
        mounted none
        assert_field .mount.type tmpfs
        is "$(remap_processes)" ''
}

@test "a batch makes an overlay and a tmpfs with remap" {
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        remap_container plain
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [
                {\"type\": \"overlay\", \"target\": \"/data\", $LOWER, \"ids\": \"remap\"},
                {\"type\": \"tmpfs\", \"target\": \"/cache\", \"uid\": 7, \"ids\": \"remap\"}]}"
        assert_success
        remember_remap_processes
        assert_field '[.mounts[].idMapping] | join(" ")' "remap remap"
        is "$(in_container stat -c %u /data/user /cache | xargs)" "1000 7"
}

# ---- fallback

# kind_request KIND [MEMBERS]: a mount of that kind at /data, of what kind_sources made; PROGRAM is its helper.
kind_request() {
        PROGRAM=mount-$1 REQUEST="{\"container\": $CONTAINER_PID, \"target\": \"/data\", ${SOURCES[$1]}${2:+, $2}}"
}

# kind_sources: for each kind what the kernel refuses to id-map: bindfs, and ext2. Each has the files root, and user of uid 1000.
kind_sources() {
        declare -gA SOURCES
        refusing_source
        echo text >"$BEHIND/root"
        echo text >"$BEHIND/user" && chown 1000:1001 "$BEHIND/user"
        LAYERS=$BEHIND
        make_layers
        LAYERS=$REFUSING
        make_layers
        make_upper
        mkdir "$BATS_TEST_TMPDIR/content"
        echo text >"$BATS_TEST_TMPDIR/content/root"
        echo text >"$BATS_TEST_TMPDIR/content/user" && chown 1000:1001 "$BATS_TEST_TMPDIR/content/user"
        truncate -s 16M "$BATS_TEST_TMPDIR"/ext2{,.image}
        mkfs.ext2 -q -F -d "$BATS_TEST_TMPDIR/content" "$BATS_TEST_TMPDIR/ext2"
        mkfs.ext2 -q -F -d "$BATS_TEST_TMPDIR/content" "$BATS_TEST_TMPDIR/ext2.image"
        DEVICE=$(loop_over "$BATS_TEST_TMPDIR/ext2")
        bed_loops+=("$DEVICE")
        SOURCES=([bind]="\"source\": \"$REFUSING\"" [block]="\"source\": \"$DEVICE\", \"fsType\": \"ext2\""
                [image]="\"source\": \"$BATS_TEST_TMPDIR/ext2.image\", \"fsType\": \"ext2\"" [overlay]="$LOWER, $WRITABLE")
}

# data_is_right: the owners at /data are those of the source.
data_is_right() {
        is "$(in_container stat -c %u:%g /data/root /data/user | xargs)" "0:0 1000:1001" &&
                in_container touch /data/new &&
                is "$(in_container stat -c %u:%g /data/new)" 0:0
}

data_ends() {
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
        wait_until 5 no_remap_processes
}

# bats test_tags=kernel
@test "of each kind, what the kernel cannot id-map fails in one sentence, or falls back to remap with the right owners" {
        local kind reply
        remap_container plain
        kind_sources
        for kind in bind block image overlay; do
                echo "kind: $kind"
                kind_request "$kind"
                helper "$PROGRAM" "$REQUEST"
                assert_failure
                [[ $(json_field .message) =~ 'owners cannot be mapped for the container'|'idmapped: EINVAL; userns: ' ]] || { show_last; return 1; }
                [[ $(json_field .error.hint) == *'"fallback": "remap"'* ]] || { show_last; return 1; }
                reply=$(json_field .message)
                kind_request "$kind" '"fallback": "none"'
                helper "$PROGRAM" "$REQUEST"
                assert_failure
                is "$(json_field .message)" "$reply"
                assert_no_records
                kind_request "$kind" '"fallback": "remap"'
                helper "$PROGRAM" "$REQUEST"
                mounted remap
                assert_attributes /data rw nosuid nodev
                data_is_right
                helper "$PROGRAM" "$REQUEST"
                assert_success
                assert_field .mount.alreadyMounted true
                data_ends
                kind_request "$kind" '"ids": "remap"'
                helper "$PROGRAM" "$REQUEST"
                mounted remap
                data_is_right
                data_ends
        done
}

# bats test_tags=kernel
@test "fallback changes nothing where the kernel can map, and in a container without a user namespace of its own" {
        remap_container plain
        LAYERS=$BATS_TEST_TMPDIR/layers
        make_layers
        make_device ext4
        helper mount-bind "$(bind_request /data '"fallback": "remap"')"
        mounted idmapped
        data_ends
        helper mount-block "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"source\": \"$DEVICE\", \"fallback\": \"remap\"}"
        mounted idmapped
        data_ends
        helper mount-overlay "$(overlay_request "$LOWER, \"fallback\": \"remap\"")"
        mounted idmapped
        data_ends
        start_container plain-nouserns
        refusing_source
        helper mount-bind "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"source\": \"$REFUSING\", \"fallback\": \"remap\"}"
        mounted none
        data_ends
}

# bats test_tags=kernel
@test "fallback serves no kernel filesystem, not as a layer either, and nothing below a source" {
        local type kernel=$BATS_TEST_TMPDIR/kernel
        remap_container plain
        mkdir -p "$kernel"/{proc,sysfs,devtmpfs} "$BATS_TEST_TMPDIR/lower"
        for type in proc sysfs devtmpfs; do
                mount -t "$type" "$type" "$kernel/$type"
                helper mount-bind "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"source\": \"$kernel/$type\", \"fallback\": \"remap\"}"
                assert_failure EOPNOTSUPP
                [[ $(json_field .message) == *'does not serve this type of filesystem'* ]]
                helper mount-overlay "$(overlay_request "\"lower\": [\"$kernel/$type\", \"$BATS_TEST_TMPDIR/lower\"], \"fallback\": \"remap\"")"
                assert_failure
                umount "$kernel/$type"
        done
        helper mount-bind "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"source\": \"$kernel\", \"recursive\": true, \"fallback\": \"remap\"}"
        assert_not_understood recursive
        is "$(remap_processes)" ''
}

@test "fallback with another way than auto, of a raw device, or of a kind that cannot need it is refused by name" {
        local ids
        for ids in idmapped userns remap host; do
                helper mount-block "{\"container\": 1, \"source\": \"/dev/x\", \"target\": \"/data\", \"ids\": \"$ids\", \"fallback\": \"remap\"}"
                assert_not_understood fallback
        done
        helper mount-block '{"container": 1, "source": "/dev/x", "target": "/data", "raw": true, "fallback": "remap"}'
        assert_not_understood fallback
        helper mount-tmpfs '{"container": 1, "target": "/data", "fallback": "remap"}'
        assert_not_understood fallback
        helper mount-bind '{"container": 1, "source": "/x", "target": "/data", "fallback": "host"}'
        assert_not_understood fallback
}

@test "a mount with fallback is another request than one without, and one that names the default is not" {
        remap_container plain
        helper mount-bind "$(bind_request /data)"
        mounted idmapped
        helper mount-bind "$(bind_request /data '"fallback": "none"')"
        assert_success
        assert_field .mount.alreadyMounted true
        helper mount-bind "$(bind_request /data '"fallback": "remap"')"
        assert_failure EBUSY
}

@test "an entry of a batch falls back to remap, however its letters are written, and only that entry" {
        local word
        refusing_source
        remap_container plain
        for word in remap '\u0072emap'; do
                helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [
                        {\"type\": \"bind\", \"target\": \"/plain\", \"source\": \"$SOURCE\"},
                        {\"type\": \"bind\", \"target\": \"/data\", \"source\": \"$REFUSING\", \"fallback\": \"$word\"}]}"
                assert_success
                remember_remap_processes
                assert_field '[.mounts[].idMapping] | join(" ")' "idmapped remap"
                helper mount-remove "$(remove_request /plain)"
                data_ends
        done
}

# bats test_tags=kernel
@test "what fell back to remap is read-only on the node where that was asked for" {
        remap_container plain
        kind_sources
        local kind
        for kind in bind block overlay; do
                kind_request "$kind" '"fallback": "remap", "readOnly": true'
                helper "$PROGRAM" "$REQUEST"
                mounted remap
                assert_attributes /data ro nosuid nodev
                in_container mount -o remount,bind,rw /data || :
                in_container mount -o remount,rw /data || :
                run ! in_container touch /data/new
                [[ $output == *'Read-only file system'* ]] || is "$output" EROFS
                data_ends
        done
}

@test "an overlay that remap cannot mount, either, fails and leaves nothing" {
        remap_container plain
        refusing_source
        mkdir "$REFUSING"/{lower,upper,work}
        container_snapshot
        node_snapshot
        # the kernel takes no upper layer on FUSE
        helper mount-overlay "$(overlay_request "\"lower\": \"$REFUSING/lower\", \"upper\": \"$REFUSING/upper\", \"work\": \"$REFUSING/work\", \"fallback\": \"remap\"")"
        assert_failure EINVAL
        assert_container_unchanged
        assert_node_unchanged
        assert_no_records
}

@test "with fallback, dryRun changes nothing" {
        remap_container plain
        refusing_source
        container_snapshot
        node_snapshot
        helper mount-bind "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"source\": \"$REFUSING\", \"fallback\": \"remap\", \"dryRun\": true}"
        assert_success
        assert_container_unchanged
        assert_node_unchanged
        is "$(remap_processes)" ''
}
