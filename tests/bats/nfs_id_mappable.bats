#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# NFS in pods with a user namespace: the option idMappable, over a real server. It needs a kernel with NFS that can id-map FUSE:
# scripts/guest-run --kernel backports has one.

load helpers
load driver_helpers
load nfs_helpers
load id_mappable_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        schema_validate
}

setup() {
        bed_setup
        driver_setup
        needs remap-mount verbs/mount verbs/unmount verbs/remap-daemon
        nfs_needs_kernel
        needs_mappable_fuse
        nfs_setup
        join_node
}

teardown() {
        [[ -z ${EXPORT:-} ]] || { nfs_teardown; return; }
        driver_teardown
}

# published VERSION: the export, for a pod; a container has its directory at /data by an id-mapped mount, as runtimes make it.
published() {
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT" "mountOptions=vers=$1" idMappable=always)
        kubelet_publish data
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
}

# container BASE [DIR]: such a container, with tools of the tests; DIR is mounted in another way.
container() {
        start_container plain "$1"
        cp "$FLEXGRAFT_TOOLS/as-user" "$FLEXGRAFT_TOOLS/fs-calls" "$CONTAINER_ROOTFS/bin/"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"${2:-$(pod_dir data)}\", \"target\": \"/data\", \"ids\": \"idmapped\"}"
        assert_success
}

# user ID COMMAND...: in the container, as that user alone; COMMAND is one of fs-calls.
user() {
        in_container /bin/fs-calls --uid "$1" --gid "$1" "${@:2}"
}

# node ID COMMAND...: as that user of the node, in the directory that the containers have at /data.
node() {
        (cd "$SERVED" && exec "$FLEXGRAFT_TOOLS/fs-calls" --uid "$1" --gid "$1" "${@:2}")
}

# tries_both ID NAME COMMAND...: COMMAND is `user` or `node`. That user writes to a file of its own four times, and every time tries `secret` of 1000.
tries_both() {
        local i
        for i in {1..4}; do
                "${@:3}" "$1" append "$DATA$2-$1" x 1 || return 1
                if [[ $1 == 1000 ]]; then
                        "${@:3}" "$1" append "${DATA}secret" x 1 || return 1
                else
                        ! "${@:3}" "$1" append "${DATA}secret" y 1 || { echo "$2: $1 wrote to secret"; return 1; }
                fi
        done
}

# all_at_a_time SERVED SOURCE: users of two containers and of the node write at the same time through what is mounted there; SOURCE has it as the
# server has it.
all_at_a_time() {
        local base id job jobs=() names=()
        SERVED=$1
        echo secret >"$2/secret" && chown 1000:1000 "$2/secret" && chmod 0600 "$2/secret"
        for base in 100000 200000; do
                container "$base" "$SERVED"
                for id in 1000 1001; do
                        DATA=/data/ tries_both "$id" "$base" user 3>&- & jobs+=($!)
                        names+=("$2/$base-$id")
                done
        done
        for id in 1000 1001; do
                DATA='' tries_both "$id" node node 3>&- & jobs+=($!)
                names+=("$2/node-$id")
        done
        for job in "${jobs[@]}"; do
                wait "$job"
        done
        is "$(stat -c %u:%g:%s "${names[@]}" | xargs)" \
                "1000:1000:128 1001:1001:128 1000:1000:128 1001:1001:128 1000:1000:128 1001:1001:128" "at the server"
        is "$(cut -c 1 "$2/secret" | sort | uniq -c | xargs)" "1 s 12 x" "what was written to secret"
        for job in "${!bed_kind[@]}"; do
                stop_container "$job"
        done
}

ended() {
        kubelet_unpublish data
        wait_until "$NFS_FORCED" no_keepers
        wait_until "$NFS_FORCED" has_no_superblocks $$
}

# bats test_tags=kernel,nfs
@test "an NFS volume of a pod is id-mapped in two containers with different maps, and uid N in each is uid N at the server, over NFS 4.2, 4.1, 4.0 and 3" {
        local version base
        for version in 4.2 4.1 4.0 3; do
                published "$version"
                echo secret >"$EXPORTED/secret" && chown 1000:1000 "$EXPORTED/secret" && chmod 0600 "$EXPORTED/secret"
                for base in 100000 200000; do
                        container "$base"
                        user 1000 append /data/secret x 1
                        run ! user 1001 append /data/secret x 1
                        in_container touch "/data/of-root-$base"
                        user 1000 append "/data/of-1000-$base" x 1
                        in_container chown 7:8 "/data/of-root-$base"
                        is "$(stat -c %u:%g "$EXPORTED"/of-{root,1000}-"$base" | xargs)" "7:8 1000:1000" "at the server, NFS $version"
                        is "$(in_container stat -c %u:%g /data/secret)" 1000:1000 "in the container, NFS $version"
                        stop_container "$CONTAINER_PID"
                done
                ended
                rm -f "$EXPORTED"/*
        done
}

# bats test_tags=kernel,nfs
@test "uid N in each of two containers, and on the node, that write at the same time over one daemon, is uid N at the NFS server" {
        published 4.2
        all_at_a_time "$(pod_dir data)" "$EXPORTED"
        ended
}

# bats test_tags=kernel,nfs
@test "locks hold between two containers over one daemon, a client with NFS as it is, and the server itself" {
        local version one other plain kind
        for version in 4.2 4.0; do
                published "$version"
                container 100000
                one=$CONTAINER_PID
                container 200000
                other=$CONTAINER_PID
                start_client plain-nouserns
                plain=$CONTAINER_PID
                cp "$FLEXGRAFT_TOOLS/fs-calls" "$CONTAINER_ROOTFS/bin/"
                mount_nfs "\"ids\": \"host\", \"options\": \"vers=$version\""
                for kind in posix ofd; do
                        locks_exclude "$one $kind" "$other $kind" "$plain $kind" "server $kind"
                done
                locks_exclude "$one flock" "$other flock" "$plain flock" "server posix" # a server's own flock(2) is of its filesystem alone
                for CONTAINER_PID in "$one" "$other" "$plain"; do
                        stop_container "$CONTAINER_PID"
                done
                ended
        done
}

# bats test_tags=kernel,nfs
@test "root of a pod is nobody for a server that squashes root, and others are themselves" {
        export_again root_squash
        echo secret >"$EXPORTED/secret" && chown 1000:1000 "$EXPORTED/secret" && chmod 0600 "$EXPORTED/secret"
        published 4.2
        container 100000
        run ! in_container cat /data/secret
        run ! in_container chown 7 /data/secret
        in_container touch /data/of-root
        is "$(stat -c %u "$EXPORTED/of-root")" 65534
        user 1000 append /data/secret x 1
        stop_container "$CONTAINER_PID"
        ended
}

# bats test_tags=kernel,nfs
@test "with auto, an NFS volume of a pod that turns out to have a user namespace is exchanged by volume-reconcile, and uid N in the pod is uid N at the server" {
        needs volume-reconcile
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT" mountOptions=vers=4.2)
        kubelet_publish data
        [[ $(type_at "$(pod_dir data)") == nfs* ]]
        echo '{}' >"$KUBELET/pods/$POD/userns"
        helper volume-reconcile
        assert_success
        is "$(json_field '.actions | length'):$(json_field '.problems | length')" 1:0
        is "$(node_mounts_at "$(pod_dir data)"):$(type_at "$(pod_dir data)")" 1:fuse.flexgraft
        container 100000
        in_container touch /data/of-root
        is "$(stat -c %u:%g "$EXPORTED/of-root")" 0:0 "at the server"
        stop_container "$CONTAINER_PID"
        ended
}

# bats test_tags=kernel,nfs
@test "a mount of a server that does not answer is not exchanged, and volume-reconcile says so and goes on" {
        needs volume-reconcile
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT" mountOptions=vers=4.2)
        kubelet_publish data
        echo '{}' >"$KUBELET/pods/$POD/userns"
        freeze_server
        not_hung helper volume-reconcile
        assert_success
        [[ $(json_field '.problems | map(tostring) | join(" ")') == *"$(pod_dir data)"* ]] || { show_last; return 1; }
        thaw_server
        [[ $(type_at "$(pod_dir data)") == nfs* ]]
        helper volume-reconcile
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
        ended
}

# bats test_tags=kernel,nfs
@test "an NFS volume whose server is gone is unmounted, and what served it ends" {
        published 4.2
        touch "$(pod_dir data)/file"
        freeze_server
        call unmount "$(pod_dir data)"
        assert_success
        wait_until "$NFS_FORCED" no_keepers
        thaw_server
}

# ---- without kubelet

# mounted_by COMMAND...: it mounts the export on $DIR; uid N of a container is uid N at the server, and umount leaves no daemon and no NFS mount.
mounted_by() {
        "$@" >"$BATS_TEST_TMPDIR/said" 2>&1 3>&- || { cat "$BATS_TEST_TMPDIR/said"; return 1; }
        is "$(findmnt --noheadings --raw --output SOURCE,FSTYPE --mountpoint "$DIR")" "nfs:$NFS_ADDRESS:$EXPORT fuse.flexgraft"
        container 100000 "$DIR"
        in_container touch /data/of-root
        in_container chmod 0777 /data
        user 1000 append /data/of-1000 x 1
        is "$(stat -c %u:%g "$EXPORTED"/of-{root,1000} | xargs)" "0:0 1000:1000"
        stop_container "$CONTAINER_PID"
        umount "$DIR"
        wait_until "$NFS_FORCED" no_keepers
        wait_until "$NFS_FORCED" has_no_superblocks $$
        rm -f "$EXPORTED"/*
}

# bats test_tags=kernel,nfs
@test "an export is mounted by remap-mount, and by mount.flexgraft-remap, and umount ends the NFS mount, too" {
        DIR=$BATS_TEST_TMPDIR/mappable
        mkdir "$DIR"
        mounted_by "$FLEXGRAFT_BIN/remap-mount" "nfs:$NFS_ADDRESS:$EXPORT" "$DIR" --options vers=4.2
        mounted_by "$FLEXGRAFT_BIN/mount.flexgraft-remap" "nfs:$NFS_ADDRESS:$EXPORT" "$DIR" -o rw,vers=3,nolock
}

# bats test_tags=kernel,nfs
@test "an export that is mounted by remap-mount is found there, and one that is not there fails and leaves nothing" {
        DIR=$BATS_TEST_TMPDIR/mappable
        mkdir "$DIR"
        helper remap-mount "{\"source\": \"nfs:$NFS_ADDRESS:$EXPORT\", \"target\": \"$DIR\"}"
        assert_success
        assert_field .mount.alreadyMounted false
        helper remap-mount "{\"source\": \"nfs:$NFS_ADDRESS:$EXPORT\", \"target\": \"$DIR\"}"
        assert_success
        assert_field .mount.alreadyMounted true
        umount "$DIR"
        helper remap-mount "{\"source\": \"nfs:$NFS_ADDRESS:$EXPORT/none\", \"target\": \"$DIR\"}"
        assert_failure ENOENT
        run -32 "$FLEXGRAFT_BIN/mount.flexgraft-remap" "nfs:$NFS_ADDRESS:$EXPORT" "$DIR" -o vers=9
        wait_until "$NFS_FORCED" no_keepers
        wait_until "$NFS_FORCED" has_no_superblocks $$
}

# bats test_tags=kernel,nfs
@test "an export whose server does not answer is unmounted by umount -l, and what served it ends" {
        DIR=$BATS_TEST_TMPDIR/mappable
        mkdir "$DIR"
        helper remap-mount "{\"source\": \"nfs:$NFS_ADDRESS:$EXPORT\", \"target\": \"$DIR\"}"
        assert_success
        touch "$DIR/file"
        freeze_server
        not_hung umount --lazy "$DIR"
        wait_until "$NFS_FORCED" no_keepers
        thaw_server
        wait_until "$NFS_FORCED" has_no_superblocks $$
}

# bats test_tags=kernel,nfs
@test "9p, which shows the type of its server's filesystem, has a server that is asked as the process that asks" {
        local dir=/run/guest-run/9p.$$ daemon mount
        [[ -d /run/guest-run ]] || skip "no 9p here"
        mount=$BATS_TEST_TMPDIR/mappable
        mkdir "$dir" "$mount"
        helper remap-mount "{\"source\": \"$dir\", \"target\": \"$mount\"}"
        assert_success
        daemon=$(pgrep -x remap-daemon)
        # CAP_SYS_PTRACE, to see who asks: kept only where a server is behind it
        (((16#$(awk '$1 == "CapEff:" { print $2 }' "/proc/$daemon/status") >> 19) & 1))
        echo text >"$mount/file"
        is "$(<"$dir/file")" text
        umount "$mount"
        wait_until 20 no_keepers
        rm -r "$dir"
}

# bats test_tags=kernel,nfs
@test "uid N in each of two containers, and on the node, that write at the same time over one daemon, is uid N at the 9p server" {
        local dir=/run/guest-run/9p.$$ mount=$BATS_TEST_TMPDIR/mappable
        [[ -d /run/guest-run ]] || skip "no 9p here"
        mkdir "$dir" "$mount"
        chmod 1777 "$dir"
        helper remap-mount "{\"source\": \"$dir\", \"target\": \"$mount\"}"
        assert_success
        all_at_a_time "$mount" "$dir"
        umount "$mount"
        wait_until 20 no_keepers
        rm -r "$dir"
}
