#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-volume: a volume by its name, into containers, and off the node with the last of them.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs mount-volume mount-remove mount-list
}

teardown() {
        driver_teardown
}

@test "a blank volume is attached, formatted and mounted, and what the container writes belongs to its root on the disk too" {
        made db
        start_container crun
        mount_volume db /data
        assert_success
        assert_field .mount.source db
        assert_field .mount.type ext4
        assert_field .mount.idMapping idmapped
        in_container sh -c 'echo kept >/data/file'
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        is "$(stat -c %u:%g "$(stage_of db)/file")" 0:0
        assert_attributes /data nosuid nodev
        remove_mount /data
        assert_success
        is_away db
        mount_volume db /data # not formatted again
        assert_success
        is "$(in_container cat /data/file)" kept
        remove_mount /data
        assert_success
}

# type_on PATH: the filesystem there, as the container's mountinfo has it.
type_on() {
        mount_line "$1" | sed 's/.* - //; s/ .*//'
}

@test "a blank volume gets the filesystem that the request says, and else the one that its profile says, with its mount flags" {
        make_pool_in_memory large 2g
        write_profiles "\"db\": $(profile_for large '"fs_type": "xfs", "mount_flags": ["noexec"]' '"create_parameters": {"preallocate": "false"}')"
        start_container plain
        created '{"name": "asked", "size": "300m", "pool": "large", "parameters": {"preallocate": "false"}}'
        mount_volume asked /asked '"fsType": "btrfs"'
        assert_success
        assert_field .mount.type btrfs
        is "$(type_on /asked)" btrfs
        mount_volume asked /also '"fsType": "ext4"'
        assert_failure EINVAL
        shows btrfs ext4
        mount_volume asked /also '"fsType": "btrfs"'
        assert_success
        remove_mount /also
        remove_mount /asked
        assert_success
        mount_volume asked /asked '"fsType": "ext4"'
        assert_failure EINVAL
        shows btrfs
        is_away asked
        created '{"name": "profiled", "size": "300m", "profile": "db"}'
        mount_volume profiled /profiled '"fsType": "ext4"'
        assert_failure EINVAL
        shows xfs
        mount_volume profiled /profiled
        assert_success
        is "$(type_on /profiled)" xfs
        assert_attributes /profiled noexec
        remove_mount /profiled
        mount_volume made /made '"create": {"size": "300m", "profile": "db"}'
        assert_success
        is "$(type_on /made)" xfs
        assert_attributes /made noexec
        remove_mount /made
        assert_success
        is_away made
}

@test "the same request again is a success, and there is one mount" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        assert_field .mount.alreadyMounted false
        mount_volume db /data
        assert_success
        assert_field .mount.alreadyMounted true
        assert_mounts_at /data 1
        remove_mount /data
        assert_success
        is_away db
}

@test "three containers with different id maps have one volume at once, one superblock, and each its own owners" {
        local base pids=() devices=()
        made db
        for base in 100000 300000 500000; do
                start_container plain "$base"
                pids+=("$CONTAINER_PID")
                mount_volume db /data
                assert_success
                assert_field .mount.idMapping idmapped
                in_container sh -c "echo $base >/data/$base"
                devices+=("$(in_container stat -c %d /data)")
        done
        for base in 0 1 2; do
                use_container "${pids[base]}"
                is "${devices[base]}" "${devices[0]}"
                is "$(in_container stat -c %u:%g /data/100000 /data/300000 /data/500000 | sort -u)" 0:0
                is "$(stat -c %u "/proc/$CONTAINER_PID/root/data/500000")" "$CONTAINER_BASE"
        done
        is "$(loops_of_test | wc -l)" 1
        for base in 0 1; do
                use_container "${pids[base]}"
                remove_mount /data
                assert_success
                mountpoint -q "$(stage_of db)" # another has it still
        done
        use_container "${pids[2]}"
        is "$(in_container cat /data/100000)" 100000
        remove_mount /data
        assert_success
        is_away db
}

@test "a container without a user namespace has the volume as the node has it" {
        made db
        start_container plain-nouserns
        mount_volume db /data
        assert_success
        assert_field .mount.idMapping none
        in_container sh -c 'echo new >/data/file'
        is "$(cat "$(stage_of db)/file")" new
        remove_mount /data
        assert_success
        is_away db
}

@test "a volume for a single writer is one container's, and one for readers is read-only" {
        local mode
        start_container crun
        for mode in SINGLE_NODE_SINGLE_WRITER SINGLE_NODE_READER_ONLY; do
                made "$mode"
                jq -c ".accessMode = \"$mode\"" "$STATE_DIR/provisioned/$mode.json" >"$BATS_TEST_TMPDIR/record"
                mount_volume "$mode" /data # blank
                remove_mount /data
                cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/$mode.json"
        done
        mount_volume SINGLE_NODE_READER_ONLY /read
        assert_failure EROFS
        is_away SINGLE_NODE_READER_ONLY
        mount_volume SINGLE_NODE_READER_ONLY /read '"readOnly": true'
        assert_success
        mount_volume SINGLE_NODE_SINGLE_WRITER /data
        assert_success
        start_container plain 300000
        mount_volume SINGLE_NODE_SINGLE_WRITER /data
        assert_failure EBUSY
        shows "for one pod or container"
        mountpoint -q "$(stage_of SINGLE_NODE_SINGLE_WRITER)"
}

@test "readOnly and options of the mount are the container's own; those of the filesystem are refused" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        mount_volume db /look '"readOnly": true, "options": "noexec"'
        assert_success
        assert_attributes /look ro noexec
        in_container sh -c 'echo new >/data/file'
        is "$(in_container cat /look/file)" new
        run ! in_container sh -c 'echo no >/look/file'
        mount_volume db /other '"options": "data=journal"'
        assert_not_understood
        shows "all containers share"
        remove_mount /data
        remove_mount /look
        assert_success
        is_away db
}

@test "a directory of a volume is mounted in place of its root, and none of another request's" {
        made db
        start_container crun
        mount_volume db /root
        in_container sh -c 'mkdir -p /root/a/b /root/c && echo b >/root/a/b/file && echo c >/root/c/file && touch /root/plain'
        mount_volume db /data '"subdir": "a/b"'
        assert_success
        is "$(in_container cat /data/file)" b
        in_container sh -c 'echo written >/data/more'
        is "$(in_container stat -c %u:%g /root/a/b/more)" 0:0
        mount_volume db /data '"subdir": "a/b"'
        assert_field .mount.alreadyMounted true
        mount_volume db /data '"subdir": "c"'
        assert_failure EBUSY 'something else there'
        mount_volume db /data '"subdir": "c", "replace": true'
        assert_success
        is "$(in_container cat /data/file)" c
        mount_volume db /more '"subdir": "none"'
        assert_failure ENOENT
        mount_volume db /more '"subdir": "plain"'
        assert_failure ENOTDIR
        remove_mount /root
        assert_success
        is "$(in_container cat /data/file)" c
        remove_mount /data
        assert_success
        is_away db
}

@test "no path of a subdir leads out of the volume, whatever links a container has made there" {
        local path
        made db
        start_container crun
        mount_volume db /root
        in_container sh -c 'mkdir -p /root/etc && ln -s ../../../.. /root/up && ln -s /etc /root/absolute && ln -s /proc/self/root /root/magic'
        mount_volume db /up '"subdir": "up"'
        assert_success
        is "$(in_container ls -d /up/absolute)" /up/absolute
        mount_volume db /absolute '"subdir": "absolute"'
        assert_success
        is "$(in_container ls -A /absolute)" ''
        mount_volume db /magic '"subdir": "magic"'
        assert_failure ENOENT
        for path in / /etc .. a/../b; do
                mount_volume db /more "\"subdir\": \"$path\""
                is "$status" 2 "$path" || return 1
                shows "below the volume's root"
        done
        for path in /up /absolute /root; do
                remove_mount "$path"
                assert_success
        done
        is_away db
}

@test "a batch mounts two directories of one volume" {
        made db
        start_container crun
        mount_volume db /root
        in_container mkdir /root/a /root/b
        remove_mount /root
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"db\", \"target\": \"/a\", \"subdir\": \"a\"},
                {\"type\": \"volume\", \"volume\": \"db\", \"target\": \"/b\", \"subdir\": \"b\"}]}"
        assert_success
        in_container touch /a/in-a /b/in-b
        is "$(cd "$(stage_of db)" && echo a/* b/*)" "a/in-a b/in-b"
        remove_mount /a
        remove_mount /b
        assert_success
        is_away db
}

@test "create makes a volume that is missing, in the pool that it names, and takes one that is there as it is" {
        make_pool fast
        start_container plain
        mount_volume db /data '"create": {"size": "9m", "pool": "fast"}, "dryRun": true'
        assert_success
        [[ ! -e $POOL_DIR/db.img ]]
        mount_volume db /data '"create": {"size": "9m", "pool": "fast"}'
        assert_success
        is "$(stat -c %s "$POOL_DIR/db.img")" $((9 << 20))
        in_container sh -c 'echo kept >/data/file'
        remove_mount /data
        assert_success
        is_away db
        mount_volume db /again '"create": {"size": "12m"}'
        assert_success
        is "$(in_container cat /again/file)" kept
        is "$(stat -c %s "$POOL_DIR/db.img")" $((9 << 20))
        remove_mount /again
        assert_success
        helper volume-delete '{"name": "db"}'
        assert_success
        [[ ! -e $POOL_DIR/db.img ]]
}

@test "create without a size, or of a pool that is not there, is refused, and nothing is left" {
        start_container plain
        mount_volume db /data '"create": {"pool": "default"}'
        assert_not_understood
        shows size
        mount_volume db /data '"create": {"size": "8m", "colour": "red"}'
        assert_not_understood
        shows create.colour
        mount_volume db /data '"create": {"size": "8m", "pool": "none"}'
        assert_failure ENOENT
        is_away db
        [[ ! -e $STATE_DIR/provisioned/db.json ]]
}

@test "a volume that does not exist, and one that is a block device, are refused, and nothing is left" {
        made disk '"targetType": "block"'
        start_container plain
        container_snapshot
        mount_volume none /data
        assert_failure ENOENT
        shows volume-create
        mount_volume disk /data
        assert_failure EINVAL
        shows "block device"
        is_away disk
        assert_container_unchanged
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
}

@test "remap is refused for a volume on a device, also for one that is yet to be made, and nothing is left in the container" {
        made db
        start_container plain
        container_snapshot
        mount_volume db /data '"ids": "remap"'
        assert_failure EOPNOTSUPP
        shows "the kernel maps its owners"
        is_away db
        mount_volume new /data '"ids": "remap", "create": {"size": "16m"}'
        assert_failure EOPNOTSUPP
        shows "the kernel maps its owners"
        is_away new
        assert_container_unchanged
}

@test "a mount that fails leaves the volume as it was: detached" {
        made db
        start_container plain
        mount_volume db /bin/sh
        assert_failure
        is_away db
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
        mount_volume db /data '"mkdir": false'
        assert_failure ENOENT
        is_away db
}

@test "dryRun attaches nothing and makes no directory" {
        made db
        start_container plain
        mount_volume db /data '"dryRun": true'
        assert_success
        shows "attach the volume"
        is_away db
        [[ ! -e $STATE_DIR/named && ! -e $STATE_DIR/volumes ]]
}

@test "a volume that kubelet has staged is mounted from its stage, and mount-remove leaves it to kubelet" {
        lifecycle_up db type=loop size=8Mi
        start_container plain
        mount_volume db /data
        assert_success
        in_container sh -c 'echo shared >/data/file'
        is "$(cat "$(pod_dir db)/file")" shared
        is "$(loops_of_test | wc -l)" 1
        remove_mount /data
        assert_success
        is "$(cat "$(pod_dir db)/file")" shared
        mount_volume db /data
        assert_success
        kubelet_unpublish db
        call unmountdevice "$(global_dir db)"
        assert_success
        call detach db "$NODE"
        assert_refused "in use by container" /data
        is "$(in_container cat /data/file)" shared
        remove_mount /data
        assert_success
        kubelet_detach db
}

@test "detach and volume-delete are refused while a container has the volume, and name it" {
        made db
        start_container crun
        mount_volume db /data
        assert_success
        call detach db "$NODE"
        assert_refused "in use by container" /data
        run ! grep "unmount" <<<"$output"
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        is "$(in_container stat -f -c %T /data)" ext2/ext3
        remove_mount /data
        assert_success
        helper volume-delete '{"name": "db"}'
        assert_success
}

# uses_of NAME FILTER: of its uses in volume-list, in jq's words.
uses_of() {
        helper volume-list '{}' && assert_success >&2 || return 1
        jq -c "[.volumes[] | select(.name == \"$1\") | .uses[]] | $2" <<<"$output"
}

@test "volume-list tells which pods and containers have a volume, where and since when" {
        local now
        now=$(date +%s)
        made idle
        lifecycle_up db type=loop size=8Mi
        start_container crun
        mount_volume db /data '"readOnly": true'
        assert_success
        is "$(uses_of idle .)" '[]'
        is "$(uses_of db length)" 2
        is "$(uses_of db '.[] | select(.pod) | [.pod, .target, .readOnly, .raw]')" "[\"$POD\",\"$(pod_dir db)\",false,false]"
        is "$(uses_of db '.[] | select(.container) | [.target, .readOnly, .raw]')" '["/data",true,false]'
        is "$(uses_of db "map(.since >= $now and .since <= $(date +%s)) | all")" true
        stop_container
        is "$(uses_of db length)" 1
        lifecycle_down db
        is "$(uses_of db .)" '[]'
}

@test "volume-list tells how full a volume is, how it is, and in a table who has it" {
        local used
        made db
        made lost
        start_container crun
        helper volume-list '{}'
        is "$(jq -c '[.volumes[] | .health, .used, .free]' <<<"$output")" '["ok",null,null,"ok",null,null]'
        mount_volume db /data
        assert_success
        helper volume-list '{}'
        used=$(jq '.volumes[] | select(.name == "db").used' <<<"$output")
        in_container sh -c 'head -c 1048576 /dev/zero >/data/file && sync'
        rm "$STATE_DIR/pools/default/lost.img"
        helper volume-list '{}'
        is "$(jq -c '.volumes[] | select(.name == "db") | .health, .used - '"$used"', .free > 1048576' <<<"$output")" $'"ok"\n1048576\ntrue'
        is "$(jq -c '.volumes[] | select(.name == "lost") | .health, .problem' <<<"$output")" $'"missing"\n"its pool does not have it any more"'
        helper volume-list --table
        is "$status" 0
        is "$(awk '$1 == "VOLUME" || $1 == "db" {print $1, $2, $3, $6, $7}' <<<"$output")" $'VOLUME POOL SIZE USED AS\ndb default 8M mount ok'
        is "$(awk '$1 == "db" {print $8, $9, $10, $11}' <<<"$output" | sed 's/[0-9]*s$/now/')" "pid $CONTAINER_PID /data now"
}

@test "volume-list says that the filesystem of a volume has found errors" {
        local loop
        made db
        start_container plain
        mount_volume db /data
        assert_success
        loop=$(loops_of_test)
        [[ -w /sys/fs/ext4/${loop##*/}/trigger_fs_error ]] || skip "this kernel cannot make an error of ext4"
        echo test >"/sys/fs/ext4/${loop##*/}/trigger_fs_error"
        helper volume-list '{}'
        is "$(jq -r '.volumes[] | .health, .problem' <<<"$output" | head -n 1)" failed
        shows "found errors"
        remove_mount /data
        assert_success
        mount_volume db /data # e2fsck has repaired it
        assert_success
        helper volume-list '{}'
        is "$(jq -r '.volumes[].health' <<<"$output")" ok
}

@test "an xfs that has shut down after an error is a failed volume, and its mount is listed, and removed" {
        [[ -n $(type -P mkfs.xfs) && -n $(type -P xfs_io) ]] || skip "no xfsprogs"
        make_pool_in_memory large 600m
        helper volume-create '{"name": "db", "size": "300Mi", "fsType": "xfs", "pool": "large", "parameters": {"preallocate": "false"}}'
        assert_success
        start_container plain
        mount_volume db /data
        assert_success
        chown 999:999 "$(stage_of db)" # as a database's
        chmod 0700 "$(stage_of db)"
        xfs_io -x -c shutdown "/proc/$CONTAINER_PID/root/data"
        run ! stat "/proc/$CONTAINER_PID/root/data"
        helper volume-list '{"name": "db"}'
        assert_field '.volumes[0].health' failed
        shows "shut down"
        helper mount-list '{}'
        assert_field '.mounts[0] | .state, (.problem != null)' $'unknown\ntrue'
        remove_mount /data
        assert_success
        is_away db
}

@test "volume-list has a column for each of its parts on a terminal, also for the path" {
        made db
        helper volume-list --table
        [[ $output == *PROBLEM* && $output == *PATH* && $output == *db.img* ]]
}

@test "volume-delete says of a volume that its container left attached that volume-reconcile detaches it" {
        local id
        made db
        start_container plain
        mount_volume db /data
        assert_success
        id=$(jq -r .mount.id <<<"$output")
        stop_container
        helper volume-delete '{"name": "db"}'
        assert_failure EBUSY
        shows 'volume-reconcile detaches it'
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        is_away db
}

@test "another helper does not replace a volume's mount, which only mount-remove releases" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        mkdir "$BATS_TEST_TMPDIR/data"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/data\", \"replace\": true}"
        assert_failure EBUSY
        shows 'volume \"db\"'
        in_container umount /data # then its record still says who has the volume
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/data\"}"
        assert_failure EBUSY
        remove_mount /data
        assert_success
        is_away db
}

@test "mount-remove after the container has ended detaches the volume" {
        local id
        made db
        start_container crun
        mount_volume db /data
        assert_success
        id=$(jq -r .mount.id <<<"$output")
        stop_container
        mountpoint -q "$(stage_of db)"
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        is_away db
}

@test "a volume that a container has bound elsewhere stays attached until that container has ended, and no mount-remove fails for it" {
        local hoarder other
        made db
        start_container crun
        hoarder=$CONTAINER_PID
        mount_volume db /data
        assert_success
        in_container sh -c 'mkdir /tmp/kept && mount --bind /data /tmp/kept'
        start_container plain 300000
        other=$CONTAINER_PID
        mount_volume db /data
        assert_success
        use_container "$hoarder"
        remove_mount /data
        assert_success
        assert_mounts_at /data 0
        use_container "$other"
        remove_mount /data
        assert_success
        assert_field .stillReachable true
        shows "bound its mount elsewhere"
        [[ -n $(loops_of_test) ]]
        is "$(compgen -G "$STATE_DIR/mounts/*.json" || :)" ""
        mount_volume db /data
        assert_success
        is "$(in_container stat -f -c %T /data)" ext2/ext3
        remove_mount /data
        assert_success
        assert_field .stillReachable true
        helper volume-reconcile '{}' # forgets the stage, which is not mounted any more
        assert_success
        long_unused db
        helper volume-reconcile '{}'
        [[ -n $(loops_of_test) ]]
        use_container "$hoarder"
        stop_container
        helper volume-reconcile '{}'
        assert_success
        is_away db
}

@test "volume-reconcile detaches a volume whose containers have ended, when none has had it for a while" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        helper volume-reconcile '{}'
        assert_success
        mountpoint -q "$(stage_of db)"
        stop_container
        helper volume-reconcile '{}'
        assert_success
        mountpoint -q "$(stage_of db)"
        long_unused db
        helper volume-reconcile '{}'
        assert_success
        is_away db
}

# bats test_tags=deep
@test "two containers get a volume at once, and one gets it while the other's is removed" {
        local round removing pids=()
        made db
        start_container plain
        pids+=("$CONTAINER_PID")
        start_container plain 300000
        pids+=("$CONTAINER_PID")
        for round in 1 2 3; do
                background "$FLEXGRAFT_BIN/mount-volume" "{\"container\": ${pids[0]}, \"volume\": \"db\", \"target\": \"/data\"}" >/dev/null
                use_container "${pids[1]}"
                mount_volume db /data
                assert_success
                wait "$BACKGROUND_PID"
                is "$(loops_of_test | wc -l)" 1
                use_container "${pids[0]}"
                background "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" >/dev/null
                removing=$BACKGROUND_PID
                use_container "${pids[1]}"
                remove_mount /data
                assert_success
                background "$FLEXGRAFT_BIN/mount-volume" "{\"container\": ${pids[0]}, \"volume\": \"db\", \"target\": \"/again\"}" >/dev/null
                use_container "${pids[0]}"
                wait "$BACKGROUND_PID"
                wait "$removing"
                in_container sh -c "echo $round >/again/file"
                remove_mount /again
                assert_success
                is_away db
        done
}

# begins_while_held NAME [MEMBERS]: mount-volume on /data in the background, while another call has the lock of every volume; it waits
# for that one. Its reply is in BATS_TEST_TMPDIR/reply, and lock_freed lets it go on.
begins_while_held() {
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$STATE_DIR/volumes/.lock"
        HOLDER=$BACKGROUND_PID
        background "$FLEXGRAFT_BIN/mount-volume" "$(volume_request "$1" /data "${2:-}")" >"$BATS_TEST_TMPDIR/reply"
        wait_until 10 waits_for_volume
}

lock_freed() {
        end_process "$HOLDER"
        status=0
        wait "$BACKGROUND_PID" || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/reply" || :
        json=$output stderr=
}

# bats test_tags=deep
@test "mount-volume that waited while the volume's last user let it go checks the filesystem, and mounts it" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        in_container sh -c 'echo kept >/data/file'
        begins_while_held db
        in_container umount /data
        umount "$(stage_of db)"
        lock_freed
        assert_success
        is "$(in_container cat /data/file)" kept
        remove_mount /data
        assert_success
        is_away db
}

@test "an id that was a volume's mount in a container that has ended may be used for another mount" {
        made db
        start_container plain
        mount_volume db /data '"id": "web-data"'
        assert_success
        stop_container
        start_container plain
        mkdir "$BATS_TEST_TMPDIR/data"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/data\", \"target\": \"/data\", \"id\": \"web-data\"}"
        assert_success
        remove_mount /data
        assert_success
}

# silent_fuse DIR: in the container; it reads its requests, so that even a killed process waits for it.
silent_fuse() {
        in_container mkdir -p "$1"
        background_ready nsenter --target "$CONTAINER_PID" --mount --pid -- /bin/silent-fuse "$1" --read
}

# bats test_tags=deep
@test "a worker that hangs in one container does not keep the volume's lock from others" {
        local id hanging
        made db
        start_container plain-nouserns
        silent_fuse /tmp/fuse
        hanging=$CONTAINER_PID
        mount_volume db /tmp/fuse/data '"timeoutSeconds": 1'
        assert_failure ETIMEDOUT
        helper mount-volume "{\"container\": $hanging, \"volume\": \"db\", \"target\": \"/data\", \"timeoutSeconds\": 60}"
        assert_success
        id=$(json_field .mount.id)
        silent_fuse /data
        helper mount-remove "{\"id\": \"$id\", \"timeoutSeconds\": 1}"
        assert_failure
        start_container plain 300000
        mount_volume db /data '"timeoutSeconds": 60'
        assert_success
        remove_mount /data
        assert_success
        use_container "$hanging"
        stop_container
        wait_until 5 assert_no_helper_processes  # those that hung were in the container's namespace
        helper mount-remove "{\"id\": \"$id\"}"
        assert_success
        is_away db
}

# asks_in_vain PROGRAM REQUEST: begins a call in the background, and returns when it has the volume's lock and waits for the container's filesystem.
asks_in_vain() {
        background "$FLEXGRAFT_BIN/$1" "$2" >"$BATS_TEST_TMPDIR/first" 2>&1
        wait_until 10 child_asks_fuse "$BACKGROUND_PID"
}

child_asks_fuse() {
        local child
        for child in $(pgrep -P "$1"); do
                ! grep -qs '^request_wait_answer$' "/proc/$child/wchan" || return 0
        done
        return 1
}

# other_container_has_volume: another container gets the volume although the first call has 20 seconds to wait, and that says why it has ended.
other_container_has_volume() {
        local first=$BACKGROUND_PID
        start_container plain 300000
        mount_volume db /data '"timeoutSeconds": 60'
        assert_success
        remove_mount /data
        assert_success
        wait "$first" || :
        json=$(<"$BATS_TEST_TMPDIR/first")
        assert_field .error.errno ETIMEDOUT
        [[ $json == *'no answer after 5 s, as long as other calls may wait for the volume'* ]]
}

# bats test_tags=deep
@test "a container that hangs while mount-volume has the volume's lock delays another container's call by a part of the time limit" {
        made db
        start_container plain-nouserns
        silent_fuse /tmp/fuse
        asks_in_vain mount-volume "$(volume_request db /tmp/fuse/data '"timeoutSeconds": 20')"
        other_container_has_volume
        is_away db
}

# bats test_tags=deep
@test "a container that hangs while mount-remove has the volume's lock delays another container's call by a part of the time limit" {
        local id
        made db
        start_container plain-nouserns
        mount_volume db /tmp/fuse/data
        assert_success
        id=$(json_field .mount.id)
        silent_fuse /tmp/fuse
        asks_in_vain mount-remove "{\"id\": \"$id\", \"timeoutSeconds\": 20}"
        other_container_has_volume
}

# bats test_tags=deep
@test "mount-volume that a second signal ends while it hangs in a container does not leave the volume's lock to its process" {
        made db
        start_container plain-nouserns
        silent_fuse /tmp/fuse
        asks_in_vain mount-volume "$(volume_request db /tmp/fuse/data '"timeoutSeconds": 100')"
        kill -TERM "$BACKGROUND_PID"                    # it ends where it can, and it cannot
        wait_until 10 is_nudged
        kill -TERM "$BACKGROUND_PID"
        status=0
        wait "$BACKGROUND_PID" || status=$?
        is "$status" 143
        run -1 assert_no_helper_processes               # it hangs still
        start_container plain 300000
        mount_volume db /data '"timeoutSeconds": 60'
        assert_success
        remove_mount /data
        assert_success
}

is_nudged() { # the first signal is not pending any more
        ! grep -q '^S[hi][dg]Pnd:.*[1-9a-f]' "/proc/$BACKGROUND_PID/status"
}

# with_instead PROGRAM SCRIPT: the next helpers run in a mount namespace where that program is another.
with_instead() {
        printf '#!/bin/sh\n%s\n' "$2" >"$BATS_TEST_TMPDIR/instead"
        chmod 0755 "$BATS_TEST_TMPDIR/instead"
        HELPER_PREFIX=(unshare --mount --propagation slave sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$BATS_TEST_TMPDIR/instead" "$(realpath "$1")")
}

# bats test_tags=deep
@test "a check of the filesystem that takes too long is ended, and the volume is detached" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        remove_mount /data
        assert_success
        # as e2fsck does, it has the device for itself
        with_instead /usr/sbin/e2fsck 'for last; do :; done; exec perl -MFcntl -e "sysopen(F, shift, O_RDONLY|O_EXCL) or die; sleep 1000" "$last"'
        mount_volume db /data '"timeoutSeconds": 1'
        assert_failure ETIMEDOUT
        run ! grep "undoing it failed" <<<"$output"
        is_away db
        HELPER_PREFIX=()
        mount_volume db /data
        assert_success
        remove_mount /data
        assert_success
}

@test "a volume that pods have in virtual machines is refused, attached or not" {
        lifecycle_up vm type=loop size=64Mi kataContainers=true
        start_container plain
        mount_volume vm /data
        assert_failure EOPNOTSUPP
        shows "virtual machines"
        lifecycle_down vm
        mount_volume vm /data
        assert_failure EOPNOTSUPP
        shows "virtual machines"
        is_away vm
}

@test "kubelet gets a volume that only ended containers had, and detaches one" {
        local after
        kubelet_attach db type=loop size=8Mi
        for after in kubelet_stage detached; do
                start_container plain
                mount_volume db /data
                assert_success
                call mountdevice "$(global_dir db)" "${DEVICES[db]}" "${SPECS[db]}"
                assert_refused "in use by container" /data
                run ! grep "unmount" <<<"$output"
                stop_container
                mountpoint -q "$(stage_of db)"
                "$after" db
                is "$(find "$STATE_DIR/named" -mindepth 2 2>/dev/null || :)" ""
                [[ $after != kubelet_stage ]] || kubelet_unstage db
        done
        is_away db
}

detached() {
        call detach "$1" "$NODE"
        assert_success
}

@test "mount-remove of a volume whose record was lost unmounts its stage" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        rm "$STATE_DIR/volumes/db.json"
        remove_mount /data
        assert_success
        is "$(find "$STATE_DIR/named" -mindepth 2 2>/dev/null || :)" ""
        mount_volume db /data
        assert_success
        remove_mount /data
        assert_success
        is_away db
}

@test "a volume whose record was lost is detached where a link leads to the state directory" {
        ln -s "$STATE_DIR" "$BATS_TEST_TMPDIR/linked"
        STATE_DIR=$BATS_TEST_TMPDIR/linked write_config ''
        made db
        start_container plain
        mount_volume db /data
        assert_success
        rm "$STATE_DIR/volumes/db.json"
        stop_container "$CONTAINER_PID"
        detached db
        is_away db
}

@test "with the disk of the records full detach ends what a container has left of a volume, so that it can be deleted to make room" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        stop_container "$CONTAINER_PID"
        fill_disk "$STATE_DIR"
        detached db
        is_away db
        removed '{"name": "db"}'
        rm "$STATE_DIR"/filler*
}

@test "a readOnly mount of a volume stays read-only, whatever the container's root remounts" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        mount_volume db /look '"readOnly": true'
        assert_success
        run ! in_container mount -o remount,bind,rw /look
        run ! in_container sh -c 'echo no >/look/file'
        in_container sh -c 'echo yes >/data/file'
        assert_attributes /look ro nosuid nodev
        remove_mount /data
        remove_mount /look
        assert_success
        is_away db
}

@test "the stage of a volume is private also where the state directory is on a shared mount" {
        made db
        mount --make-shared "$STATE_DIR"
        start_container plain
        mount_volume db /data
        assert_success
        is "$(findmnt --noheadings --output PROPAGATION "$(stage_of db)")" private
        mount --make-shared "$(stage_of db)" # as a call leaves it that was killed after placing it
        mount_volume db /again
        assert_success
        is "$(findmnt --noheadings --output PROPAGATION "$(stage_of db)")" private
        remove_mount /again
        remove_mount /data
        assert_success
        is_away db
}

@test "a pod's directory that was unmounted by hand does not keep a volume for a single writer from a container" {
        made db
        kubelet_attach db type=loop size=8Mi
        jq -c '.accessMode = "SINGLE_NODE_SINGLE_WRITER"' "$STATE_DIR/provisioned/db.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/db.json"
        kubelet_detach db
        lifecycle_up db type=loop size=8Mi
        umount "$(pod_dir db)"
        is "$(jq '.published | length' "$STATE_DIR/volumes/db.json")" 1
        start_container plain
        mount_volume db /data
        assert_success
        remove_mount /data
        assert_success
        lifecycle_down db
}

@test "volume-reconcile removes the directory that a killed call made for a volume, and none that a volume is mounted on" {
        made db
        start_container plain
        mount_volume db /data
        assert_success
        mkdir "$(stage_of other)" "$(stage_of half)"
        touch "$(stage_of half)/file"
        helper volume-reconcile '{"dryRun": true}'
        shows "$(stage_of other)"
        [[ -d $(stage_of other) ]]
        helper volume-reconcile '{}'
        is "$(ls "$STATE_DIR/named/loop")" "$(printf '%s\n' db half)"
        mountpoint -q "$(stage_of db)"
        rm "$(stage_of half)/file"
        remove_mount /data
        assert_success
        helper volume-reconcile '{}'
        assert_success
        is_away db
}

# made_blocks NAME: a volume that is a block device.
made_blocks() {
        made "$1" '"targetType": "block"'
}

@test "a block volume's device itself is one container's, its use is counted, and the last mount-remove detaches it" {
        made_blocks disk
        start_container crun
        mount_volume disk /disk '"raw": true'
        assert_success
        assert_field .mount.type raw
        is "$(in_container stat -c %F:%u:%g:%a /disk)" "block special file:0:0:600"
        in_container sh -c 'echo kept | dd of=/disk bs=512 conv=sync,fsync 2>/dev/null'
        mount_volume disk /disk '"raw": true'
        assert_success
        assert_field .mount.alreadyMounted true
        call detach disk "$NODE"
        assert_refused "in use by container" /disk
        helper volume-delete '{"name": "disk"}'
        assert_failure EBUSY
        is "$(uses_of disk '.[] | [.target, .readOnly, .raw]')" '["/disk",false,true]'
        CONTAINER_KEPT=$CONTAINER_PID
        start_container plain 300000
        mount_volume disk /disk '"raw": true'
        assert_failure EBUSY
        use_container "$CONTAINER_KEPT"
        helper volume-reconcile '{}'
        assert_success
        is "$(in_container sh -c 'head -c 4 /disk')" kept
        remove_mount /disk
        assert_success
        is_away disk
        mount_volume disk /disk '"raw": true'
        assert_success
        is "$(in_container sh -c 'head -c 4 /disk')" kept
        stop_container
        helper mount-remove "{\"id\": \"$(json_field .mount.id)\"}"
        assert_success
        is_away disk
}

@test "raw is refused for a filesystem volume, a blank one too, and required for a block volume" {
        made db
        made_blocks disk
        start_container plain
        mount_volume db /disk '"raw": true'
        assert_failure EINVAL
        shows targetType
        mount_volume disk /disk
        assert_failure EINVAL
        mount_volume disk /disk '"raw": true, "fsType": "ext4"'
        assert_not_understood
        mount_volume none /disk '"raw": true'
        assert_failure ENOENT
        mount_volume new /disk '"raw": true, "create": {"size": "8m"}'
        assert_success
        is "$(jq -r .targetType "$STATE_DIR/provisioned/new.json")" block
        remove_mount /disk
        assert_success
        is_away new
}

@test "a raw device that fails, or that a container keeps open, is detached when that is over" {
        local keeper
        made_blocks disk
        start_container plain
        mount_volume disk /made/dir '"raw": true, "mkdir": false'
        assert_failure ENOENT
        is_away disk
        mount_volume disk /disk '"raw": true'
        assert_success
        keeper=$CONTAINER_PID
        background_ready nsenter --target "$keeper" --user --mount --pid -- sh -c 'exec 5</disk && echo ready && exec sleep 1000'
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/disk\", \"force\": true}"
        assert_success
        assert_field .stillReachable true
        [[ -n $(loops_of_test) ]]
        helper volume-delete '{"name": "disk"}'
        assert_failure EBUSY
        stop_container
        helper volume-reconcile '{}'
        assert_success
        long_unused disk
        helper volume-reconcile '{}'
        assert_success
        is_away disk
}

@test "which helpers a request needs is read by a process without a capability and without a file" {
        made db
        start_container plain
        at_syscall --at exit_group --run-output "$BATS_TEST_TMPDIR/seen" \
                --run "grep -h '^CapEff\|^Seccomp:' /proc/\$AT_PID/status; ls /proc/\$AT_PID/fd" \
                "$FLEXGRAFT_BIN/mount-volume" "{\"container\": $CONTAINER_PID, \"volume\": \"d\\u0062\", \"target\": \"/data\"}"
        assert_success
        is "$(<"$BATS_TEST_TMPDIR/seen")" $'CapEff:\t0000000000000000\nSeccomp:\t2'
}

# processes REQUEST: how many mount-volume has for it.
processes() {
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/mount-volume" "$1"
        assert_success || return 1
        awk '{ print $2 }' "$BATS_TEST_TMPDIR/calls" | sort -u | wc -l
}

@test "a request that shows the volume's name needs no process that reads it, one that may hide it does" {
        local plain
        made db
        start_container plain
        mount_volume db /data
        assert_success
        plain=$(processes "{\"container\": $CONTAINER_PID, \"volume\": \"db\", \"target\": \"/data\"}")
        is "$(processes "{\"container\":$CONTAINER_PID,\"target\":\"/data\",\"volume\" : \"db\"}")" "$plain"
        is "$(processes "{\"container\": $CONTAINER_PID, \"volume\": \"d\\u0062\", \"target\": \"/data\"}")" $((plain + 1))
        is "$(processes "{\"container\": $CONTAINER_PID, \"volume\": \"db\", \"target\": \"/data\", \"replace\": false}")" $((plain + 1))
        mount_volume '' /data
        assert_not_understood
        helper mount-volume "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"volume\""
        assert_not_understood
        helper mount-volume "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"volume\":\"db"
        assert_not_understood
}

# fuse_pool OPTIONS: the pool "dirs" of directories, in DIRS, which bindfs shows of FILES, mounted with these options.
fuse_pool() {
        DIRS=$SOURCE FILES=$BATS_TEST_TMPDIR/real
        [[ -n $(type -P bindfs) ]] || skip "no bindfs"
        serve_fuse
        rm "$FILES/file"
        chmod 0700 "$DIRS"
        mount -o "remount,bind,$1" "$DIRS"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$DIRS" >"$FLEXGRAFT_POOLS/dirs.json"
        helper volume-create '{"name": "data", "size": "1m", "pool": "dirs"}'
        assert_success
        cp -p /bin/busybox "$FILES/data/program"
        echo text >"$FILES/data/file"
        chown 7:8 "$FILES/data/file"
}

@test "of a directory on a filesystem that cannot be id-mapped, the owners are right, too" {
        fuse_pool rw
        start_container crun
        mount_volume data /data
        assert_success
        assert_field .mount.idMapping remap
        is "$(in_container stat -c %u:%g /data/file)" 7:8
        in_container sh -c 'echo new >/data/new && chown 5:6 /data/new'
        is "$(stat -c %u:%g "$FILES/data/new")" 5:6
        remove_mount /data
        assert_success
        helper volume-delete '{"name": "data"}'
        assert_success
        is "$(ls "$FILES")" '' "what is left in the pool"
}

@test "of a directory that remap-daemon serves, what its filesystem is mounted with holds in the container" {
        fuse_pool noexec,nosuid,nodev
        start_container crun
        mount_volume data /data
        assert_success
        assert_attributes /data noexec nosuid nodev
        run ! in_container /data/program true
        mount_volume data /read '"readOnly": true'
        assert_success
        assert_attributes /read ro noexec nosuid nodev
        run ! in_container touch /read/file
        mount -o remount,bind,ro "$DIRS"
        mount_volume data /node
        assert_success
        run ! in_container touch /node/file
        [[ $output == *'Read-only file system'* ]] || { show_last; false; }
}

@test "where a directory cannot be id-mapped, a request that does without remap is refused, and nothing is left" {
        fuse_pool rw
        start_container crun
        mount_volume data /data '"ids": "idmapped"'
        assert_failure EINVAL
        mount_volume data /data '"fallback": "none"'
        assert_failure EINVAL
        assert_mounts_at /data 0
        mount_volume data /data '"ids": "host"'
        assert_success
        assert_field .mount.idMapping host
        remove_mount /data
        assert_success
        wait_until 10 assert_no_helper_processes
}

@test "a batch makes a missing directory that cannot be id-mapped, and its container and a second one have their owners" {
        local first entry='"type": "volume", "volume": "more", "target": "/data", "create": {"size": "1m", "pool": "dirs"}'
        fuse_pool rw
        start_container plain
        first=$CONTAINER_PID
        start_container plain 300000
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{$entry}, {$entry, \"container\": $first}]}"
        assert_success
        in_container sh -c 'echo own >/data/file && chown 3:4 /data/file'
        is "$(stat -c %u:%g "$FILES/more/file")" 3:4
        CONTAINER_PID=$first
        is "$(in_container stat -c %u:%g /data/file)" 3:4
}

# half_formatted NAME: mkfs of that attached volume was interrupted, and the node has been rebooted since.
half_formatted() {
        losetup --detach "${DEVICES[$1]}"
        wait_until 5 device_is_free "${DEVICES[$1]}"
        edit_record "$1" ".bootId = \"00000000-1111-2222-3333-444444444444\" | .formatting = \"$(image_identity "$(image_of "$1")")\""
        helper volume-reconcile '{}'
        assert_success
        [[ -e $(record_of "$1") ]]
}

@test "what a container wrote to a block volume stays, whatever an interrupted mkfs of the former volume of its name has left" {
        made data
        kubelet_attach data type=loop
        half_formatted data
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        created '{"name": "data", "id": "data.img", "targetType": "block"}'
        start_container plain
        mount_volume data /disk '"raw": true'
        assert_success
        in_container sh -c 'echo precious | dd of=/disk bs=512 conv=sync,fsync 2>/dev/null'
        remove_mount /disk
        assert_success
        is "$(head -c 8 "$(image_of data)")" precious
        is_away data
}

@test "a volume that is made anew of another image is not the former one of its name, of which an interrupted mkfs left a record" {
        made data
        kubelet_attach data type=loop
        half_formatted data
        removed '{"name": "data", "reclaimPolicy": "retain"}'
        created '{"name": "other", "id": "data.img"}'
        truncate -s 8M "$(dirname "$(image_of data)")/new.img"
        created '{"name": "data", "id": "new.img"}'
        start_container plain
        mount_volume other /other
        assert_success
        in_container touch /other/file
        mount_volume data /data
        assert_success
        is "$(in_container ls /data)" lost+found
        remove_mount /data
        assert_success
        remove_mount /other
        assert_success
}
