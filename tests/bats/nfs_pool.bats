#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pools of type nfs: one directory of a share per volume, with the parameters of csi-driver-nfs. What needs a server is skipped where the
# kernel has none; scripts/guest-run has one.

load helpers
load driver_helpers
load volume_helpers
load named_helpers
load nfs_helpers
load sweep_helpers
load mount_type_helpers
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
        volume_setup
        needs mount-volume mount-remove remap-daemon
}

teardown() {
        [[ -z ${POINT:-} ]] || mount_type_teardown
        [[ -z ${EXPORT:-} ]] || { nfs_teardown; return; }
        driver_teardown
}

# nfs_pool [MEMBERS]: the pool "share" of the test's export; its file has further members, as JSON text.
nfs_pool() {
        printf '{"name": "share", "type": "nfs", "server": "%s", "share": "%s"%s}\n' "$NFS_ADDRESS" "${EXPORT:-/srv}" "${1:+, $1}" \
                >"$FLEXGRAFT_POOLS/share.json"
}

# with_server: an export, which the node reaches.
with_server() {
        nfs_needs_kernel
        nfs_setup
        join_node
}

# made_share [NAME [MEMBERS]]
made_share() {
        created "$(named "${1:-data}" "\"size\": \"8m\", \"pool\": \"share\"${2:+, $2}")"
}

# on_server: what the export has, but flexgraft's trash.
on_server() {
        find "$EXPORTED" -mindepth 1 ! -name .flexgraft-trash -printf '%P\n' | sort | paste -sd' '
}

@test "the keys of a pool of type nfs are checked" {
        local wrong
        for wrong in '"subDir": "../x"' '"subDir": "/x"' '"subDir": "a//b"' '"subDir": ".x"' '"subDir": "a/../b"' '"onDelete": "burn"' \
                '"mountPermissions": "9"' '"mountOptions": "soft"'; do
                nfs_pool "$wrong"
                create '{"name": "data", "size": "1m", "pool": "share"}'
                refused EBADMSG "${wrong%%\":*}"
        done
        is "$(provisioned)" ''
}

@test "maxPercent of a pool of type nfs is refused: the size of a share is not known" {
        nfs_pool '"maxPercent": 50'
        create '{"name": "data", "size": "1m", "pool": "share"}'
        refused EBADMSG share.json maxPercent 'no size that is known'
        measured
        assert_field '.pools[] | select(.name == "share") | .problem | test("maxPercent")' true
        is "$(provisioned)" ''
}

@test "a subDir that wants a name of Kubernetes is refused without it, and with one that leads elsewhere" {
        nfs_pool '"subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}"'
        create '{"name": "data", "size": "1m", "pool": "share"}'
        refused EINVAL csi.storage.k8s.io/pvc/namespace
        create '{"name": "data", "size": "1m", "pool": "share", "parameters": {"csi.storage.k8s.io/pvc/namespace": "..", "csi.storage.k8s.io/pvc/name": "x"}}'
        refused EINVAL "must be a name of Kubernetes"
        is "$(provisioned)" ''
}

@test "volume-list and volume-capacity ask no server" {
        NFS_ADDRESS=192.0.2.1 nfs_pool
        measured '{"pool": "share"}'
        assert_field '.pools[0] | [.name, has("total"), has("problem")] | map(tostring) | join(" ")' "share false false"
        listed '{"pool": "share"}'
        is "$(provisioned)" ''
}

@test "volume-list shows the mountOptions of a volume's pool" {
        NFS_ADDRESS=192.0.2.1 nfs_pool '"mountOptions": ["vers=4.1", "soft"]'
        created '{"name": "data", "size": "1m"}'
        jq -c '.pool = "share" | .type = "nfs" | .id = "data"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        listed '{"name": "data"}'
        assert_field '.volumes[0].mountOptions' vers=4.1,soft
}

@test "volume-expand refuses a volume on a server, says why, and does not ask the server" {
        NFS_ADDRESS=192.0.2.1 nfs_pool
        created '{"name": "data", "size": "1m"}'
        jq -c '.pool = "share" | .type = "nfs" | .id = "data"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        helper volume-expand '{"name": "data", "size": "2m"}'
        refused EOPNOTSUPP "volumes of type nfs cannot grow: a directory has no size"
        cmp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
}

@test "mount-volume that does not reach the server of a share makes and mounts nothing" {
        NFS_ADDRESS=127.0.0.1 nfs_pool '"mountOptions": ["port=1"]'
        start_container plain
        container_snapshot
        mount_volume data /data '"create": {"size": "1m", "pool": "share"}'
        assert_failure ECONNREFUSED
        assert_container_unchanged
        is "$(provisioned)" ''
        # nor one that was made when it was reached
        created '{"name": "data", "size": "1m"}'
        jq -c '.pool = "share" | .type = "nfs" | .id = "data"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        mount_volume data /data
        assert_failure ECONNREFUSED
        is "$(json_field .error.hint)" "the host answers, but no NFS server listens on that port (option port=)"
        assert_container_unchanged
        helper mount-batch "{\"container\": $CONTAINER_PID, \"mounts\": [{\"type\": \"volume\", \"volume\": \"data\", \"target\": \"/data\"}]}"
        assert_failure ECONNREFUSED
        is "$(json_field .error.hint)" "the host answers, but no NFS server listens on that port (option port=)"
}

@test "where no server answers, the hint names the pool's file and the StorageClass" {
        create '{"name": "data", "size": "1m", "parameters": {"server": "127.0.0.1", "share": "/srv", "mountOptions": "port=1"}}'
        assert_failure ECONNREFUSED
        assert_field .error.hint "check \"server\" in the pool's file or the StorageClass, and that NFS is served there (port 2049)"
        is "$(provisioned)" ''
}

@test "volume-delete asks no server whether a volume that a pod of the node has may be deleted" {
        NFS_ADDRESS=127.0.0.1 nfs_pool '"mountOptions": ["port=1"]'
        created '{"name": "data", "size": "1m"}'
        jq -c '.pool = "share" | .type = "nfs" | .id = "data"' "$STATE_DIR/provisioned/data.json" >"$BATS_TEST_TMPDIR/record"
        cp "$BATS_TEST_TMPDIR/record" "$STATE_DIR/provisioned/data.json"
        SPECS[data]=$(spec data type=tmpfs size=1m)
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        remove '{"name": "data"}'
        refused EBUSY "$(pod_dir data)"
        kubelet_unpublish data
        remove '{"name": "data"}'
        refused ECONNREFUSED
        is "$(provisioned)" data.json
}

# bats test_tags=kernel,nfs
@test "a volume is a directory of the share, with the mode of the pool, deleted with its content" {
        with_server
        nfs_pool '"mountPermissions": "0770", "mountOptions": ["vers=4.2", "soft"]'
        made_share
        assert_field '.volume | [.id, .path, .sizeEnforced] | map(tostring) | join(" ")' "data $NFS_ADDRESS:$EXPORT/data false"
        is "$(stat -c %a "$EXPORTED/data")" 770
        made_share
        existed true
        is "$(node_nfs_mounts)" ''
        listed
        assert_field '.volumes[0] | [.name, .health, .path] | join(" ")' "data ok $NFS_ADDRESS:$EXPORT/data"
        mkdir -p "$EXPORTED/data/a/b/c/d"
        touch "$EXPORTED/data/a/b/file"
        ln -s / "$EXPORTED/data/a/root"
        chown -R 100000:100000 "$EXPORTED/data"
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)|$(node_nfs_mounts)" "||"
        # over NFS 3 too
        nfs_pool '"mountOptions": ["vers=3", "nolock"]'
        made_share
        is "$(stat -c %a "$EXPORTED/data")" 755
        mkdir -p "$EXPORTED/data/a/b"
        removed '{"name": "data"}'
        is "$(on_server)" ''
        # made over one version, deleted over another
        made_share
        touch "$EXPORTED/data/file"
        nfs_pool
        removed '{"name": "data"}'
        is "$(on_server)" ''
}

node_nfs_mounts() {
        awk '$0 ~ / - nfs/' /proc/self/mountinfo
}

# bats test_tags=kernel,nfs
@test "a volume is not made or adopted within another one, nor around one" {
        with_server
        nfs_pool '"subDir": "${pv.metadata.name}"'
        jq '.name = "deep" | .subDir = "${pvc.metadata.namespace}/${pv.metadata.name}"' "$FLEXGRAFT_POOLS/share.json" >"$FLEXGRAFT_POOLS/deep.json"
        created '{"name": "team", "size": "1m", "pool": "share"}'
        create '{"name": "inner", "size": "1m", "pool": "deep", "parameters": {"csi.storage.k8s.io/pvc/namespace": "team"}}'
        refused EEXIST 'it would be in the volume "team"'
        [[ ! -e $EXPORTED/team/inner ]]
        created '{"name": "inner", "size": "1m", "pool": "deep", "parameters": {"csi.storage.k8s.io/pvc/namespace": "crew"}}'
        create '{"name": "crew", "size": "1m", "pool": "share", "id": "crew"}'
        refused EEXIST 'the volume "inner" is in it'
        removed '{"name": "inner"}'
        removed '{"name": "team"}'
}

# bats test_tags=kernel,nfs
@test "the empty directory of a provisioner's volume, which a node that is lost made, is taken by the next call; no other is" {
        local claim=pvc-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 wrong
        with_server
        nfs_pool '"mountPermissions": "0770"'
        mkdir "$EXPORTED/$claim" "$EXPORTED/data"
        for wrong in "\"name\": \"$claim\"" '"name": "data", "namespace": "-"'; do
                create "{$wrong, \"size\": \"8m\", \"pool\": \"share\"}"
                refused EEXIST adopt
        done
        touch "$EXPORTED/$claim/file"
        create "{\"name\": \"$claim\", \"size\": \"8m\", \"pool\": \"share\", \"namespace\": \"-\"}"
        refused EEXIST adopt
        rm "$EXPORTED/$claim/file"
        created "{\"name\": \"$claim\", \"size\": \"8m\", \"pool\": \"share\", \"namespace\": \"-\"}"
        is "$(stat -c %a "$EXPORTED/$claim")" 770
        removed "{\"name\": \"$claim\"}"
        is "$(on_server)" data
}

# bats test_tags=kernel,nfs
@test "volume-delete on the node that was lost while it made a provisioner's volume deletes what the next node made of it" {
        local claim=pvc-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
        with_server
        nfs_pool
        created "{\"name\": \"$claim\", \"size\": \"8m\", \"pool\": \"share\", \"namespace\": \"-\"}"
        sed -i 's/"stage":"created"/"stage":"creating"/' "$STATE_DIR/provisioned/$claim.json"
        touch "$EXPORTED/$claim/file"
        removed "{\"name\": \"$claim\"}"
        is "$(on_server)|$(provisioned)" "|"
}

# bats test_tags=kernel,nfs
@test "what the next node made of a provisioner's volume is kept where its policy, or the call, says so" {
        local claim=pvc-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 more
        with_server
        nfs_pool
        for more in ', "reclaimPolicy": "retain"' ''; do
                created "{\"name\": \"$claim\", \"size\": \"8m\", \"pool\": \"share\", \"namespace\": \"-\"$more}"
                sed -i 's/"stage":"created"/"stage":"creating"/' "$STATE_DIR/provisioned/$claim.json"
                touch "$EXPORTED/$claim/file"
                removed "{\"name\": \"$claim\"$([[ -n $more ]] || echo ', "reclaimPolicy": "retain"')}"
                is "$(on_server)|$(provisioned)" "$claim $claim/file|"
                rm -r "${EXPORTED:?}/$claim"
        done
}

# bats test_tags=kernel,nfs
@test "onDelete retain keeps a directory, archive renames it, and neither keeps an empty one" {
        local pvc='"parameters": {"csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pvc/name": "claim"}'
        with_server
        nfs_pool '"onDelete": "retain"'
        made_share
        removed '{"name": "data"}'
        is "$(on_server)" ''
        made_share
        touch "$EXPORTED/data/file"
        removed '{"name": "data"}'
        is "$(on_server)" "data data/file"
        create '{"name": "data", "size": "8m", "pool": "share"}'
        refused EEXIST adopt
        created '{"name": "data", "pool": "share", "id": "data"}'
        removed '{"name": "data", "reclaimPolicy": "recycle"}'
        is "$(on_server)" data
        rmdir "$EXPORTED/data"
        nfs_pool '"onDelete": "archive", "subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}"'
        made_share data "$pvc"
        touch "$EXPORTED/team/claim/file"
        removed '{"name": "data"}'
        is "$(on_server)" "archived-team archived-team/claim archived-team/claim/file team"
        made_share data "$pvc"
        touch "$EXPORTED/team/claim/other"
        remove '{"name": "data"}'
        refused EEXIST "archived-team/claim"
        rm -r "$EXPORTED/archived-team/claim"
        removed '{"name": "data"}'
        is "$(on_server)" "archived-team archived-team/claim archived-team/claim/other team"
}

# uses: who has the volume "data", where, by volume-list.
uses() {
        listed
        jq -r '[.volumes[] | select(.name == "data").uses[].target] | join(" ")' <<<"$json"
}

# bats test_tags=kernel,nfs
@test "volume-delete refuses a directory of the share that a pod of the node has mounted" {
        with_server
        nfs_pool
        made_share
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT/data")
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        touch "$(pod_dir data)/file"
        is "$(uses)" "$(pod_dir data)"
        remove '{"name": "data"}'
        refused EBUSY "$(pod_dir data)"
        [[ -e $EXPORTED/data/file ]]
        kubelet_unpublish data
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "|"
}

# bats test_tags=kernel,nfs
@test "a pod's mount of another directory of the server is not a use of the volume" {
        with_server
        nfs_pool
        made_share
        mkdir "$EXPORTED/elsewhere"
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT/elsewhere")
        kubelet_publish data
        is "$(uses)" ''
        kubelet_unpublish data
}

# publish_share NAME: a pod has the directory of the share.
publish_share() {
        SPECS[$1]=$(spec "$1" type=nfs "server=$NFS_ADDRESS" "share=$EXPORT/$1")
        kubelet_publish "$1"
}

# bats test_tags=kernel,nfs
@test "volumes of a share whose server does not answer are unknown while pods have them, and another volume is well" {
        local name
        with_server
        nfs_pool
        for name in data other; do
                created "{\"name\": \"$name\", \"size\": \"8m\", \"pool\": \"share\"}"
                publish_share "$name"
        done
        created '{"name": "local", "size": "8m", "pool": "default"}'
        listed
        assert_field '[.volumes[].health] | join(" ")' 'ok ok ok'
        freeze_server
        not_hung listed
        assert_field '[.volumes[] | .name, .health] | join(" ")' 'data unknown local ok other unknown'
        thaw_server
        for name in data other; do
                kubelet_unpublish "$name"
                removed "{\"name\": \"$name\"}"
        done
}

# freezes_after_work COMMAND...: the command, whose server stops answering when its work is done, before what it has kept open is closed.
freezes_after_work() {
        nfs_changed+=' frozen'
        # the first that waits for a child by its pid ends a helper, when the worker has ended (P_PID)
        at_syscall --at waitid --where 1=1 --run "nsenter --target $NFS_SERVER --net tc qdisc replace dev br0 root netem loss 100%" "$@"
}

# bats test_tags=kernel,nfs
@test "a call whose server stops answering before the call closes its mount of the share ends, with its reply" {
        with_server
        nfs_pool
        not_hung freezes_after_work "$FLEXGRAFT_BIN/volume-create" '{"name": "data", "size": "8m", "pool": "share"}'
        is "$status" 0
        assert_field .volume.name data
        thaw_server
        removed '{"name": "data"}'
}

# bats test_tags=kernel,nfs
@test "directories of a share have the mode of their pool by the CSI driver's umask, too" {
        local directories
        with_server
        nfs_pool '"mountOptions": ["vers=4.2"], "subDir": "team/data"'
        HELPER_PREFIX=(sh -c 'umask "$0"; exec "$@"' "$(sed -n 's/^UMask=//p' "$FLEXGRAFT_REPO/deploy/systemd/flexgraft-csi.service.in")")
        created "$(named data '"size": "8m", "pool": "share"')"
        directories=("$EXPORTED"/team{,/data})
        is "$(stat -c %a "${directories[@]}" | sort -u)" 755
        removed '{"name": "data"}'
}

# is_released: neither a mount of the share nor a daemon of one is left on the node.
is_released() {
        wait_until 20 no_remap_processes || show_remap_processes || return 1
        is "$(node_nfs_mounts)" ''
}

# bats test_tags=kernel,nfs
@test "containers have a volume of a share by its name, each with its own owners, and it is not deleted meanwhile" {
        local first
        with_server
        nfs_pool '"mountOptions": ["vers=4.2"]'
        made_share
        start_container plain
        first=$CONTAINER_PID
        mount_volume data /data
        assert_success
        assert_field .mount.source data
        assert_field .mount.type nfs
        [[ $(json_field .mount.idMapping) == @(remap|idmapped) ]]
        assert_attributes /data nosuid nodev
        in_container sh -c 'echo text >/data/file'
        is "$(in_container stat -c %u:%g /data/file)" 0:0
        is "$(stat -c %u:%g "$EXPORTED/data/file")" 0:0
        mount_volume data /data
        assert_field .mount.alreadyMounted true
        mount_volume data /remapped '"ids": "remap"'
        assert_success
        assert_field .mount.idMapping remap
        mount_volume data /unmapped '"fallback": "none"'
        [[ $status != 0 || $(json_field .mount.idMapping) == idmapped ]] || { show_last; return 1; }
        is "$(in_container stat -c %u:%g /remapped/file)" 0:0
        remove_mount /remapped
        assert_success
        start_container plain-nouserns
        mount_volume data /data
        assert_success
        assert_field .mount.idMapping none
        is "$(in_container cat /data/file)" text
        is "$(uses)" "/data /data"
        remove '{"name": "data"}'
        refused EBUSY container
        remove_mount /data
        assert_success
        use_container "$first"
        remove '{"name": "data"}'
        refused EBUSY container
        is "$(in_container cat /data/file)" text
        remove_mount /data
        assert_success
        is_released
        is "$(uses)" ''
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "|"
}

# bats test_tags=kernel,nfs
@test "mount(8) mounts a volume of a share, and umount -f unmounts it while the server is dead" {
        with_server
        mount_type_setup
        nfs_pool '"mountOptions": ["vers=4.2"]'
        made_share
        mount_type data "$POINT"
        ends_with 0
        is "$(uses)" "$POINT"
        echo text >"$POINT/file"
        sync "$POINT/file"
        freeze_server
        umount_type --force "$POINT"
        ends_with 0
        is "$(node_mounts_at "$POINT")" 0
        is "$(uses)" ''
        thaw_server
        mount_type data "$POINT"
        ends_with 0
        is "$(<"$POINT/file")" text
        umount_type "$POINT"
        ends_with 0
        removed '{"name": "data"}'
}

# bats test_tags=kernel,nfs
@test "a volume of a share that a container had when it ended can be deleted" {
        with_server
        nfs_pool
        made_share
        start_container plain
        mount_volume data /data
        assert_success
        stop_container
        is_released
        is "$(uses)" ''
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "|"
}

# bats test_tags=kernel,nfs
@test "mount-volume and mount-batch make a volume of a share that is missing, also for two containers at once" {
        with_server
        nfs_pool
        start_container plain
        mount_volume other /other '"create": {"size": "8m", "pool": "share"}, "readOnly": true'
        assert_success
        run ! in_container sh -c 'echo text >/other/file'
        remove_mount /other
        assert_success
        is "$(on_server)" other
        made_once_for_two data '{"size": "8m", "pool": "share"}'
        is_released
        removed '{"name": "data"}'
        removed '{"name": "other"}'
        is "$(on_server)" ''
}

# bats test_tags=kernel,nfs
@test "what the pool's mountOptions say holds in containers, and a volume that is half deleted is not mounted" {
        with_server
        nfs_pool
        made_share
        touch "$EXPORTED/data/file"
        start_container plain-nouserns
        nfs_pool '"mountOptions": ["vers=4.1", "ro"]'
        mount_volume data /data
        assert_failure EROFS
        assert_mounts_at /data 0
        mount_volume data /data '"readOnly": true'
        assert_success
        assert_attributes /data ro
        assert_options /data "$(nfs_options /data)" vers=4.1
        remove_mount /data
        assert_success
        nfs_pool '"mountOptions": ["noatime", "noexec"]'
        mount_volume data /data
        assert_success
        assert_attributes /data noatime noexec nosuid nodev
        remove_mount /data
        assert_success
        nfs_pool
        mount_volume data /data '"options": "noatime"'
        assert_success
        assert_attributes /data noatime
        remove_mount /data
        assert_success
        sed -i 's/"stage":"created"/"stage":"deleting"/' "$STATE_DIR/provisioned/data.json"
        mount_volume data /data
        assert_failure EBUSY
        [[ $output == *'half deleted'* ]]
        is_released
        removed '{"name": "data"}'
        is "$(on_server)" ''
}

# bats test_tags=kernel,nfs
@test "mount-volume follows no symbolic link on a share, and mounts no directory that has taken the place of the volume's" {
        with_server
        nfs_pool
        made_share
        mkdir "$EXPORTED/other"
        touch "$EXPORTED/other/secret"
        start_container plain-nouserns
        rmdir "$EXPORTED/data"
        ln -s other "$EXPORTED/data"
        mount_volume data /data
        assert_failure ENOTDIR
        rm "$EXPORTED/data"
        mount_volume data /data
        assert_failure ENODEV
        mkdir "$EXPORTED/data"
        mount_volume data /data
        assert_failure ESTALE
        assert_mounts_at /data 0
        is_released
}

# bats test_tags=kernel,nfs
@test "what another node has made under a volume's name is not deleted" {
        with_server
        nfs_pool
        # a volume-create that was killed before it made the directory
        made_share
        sed -i 's/"stage":"created"/"stage":"creating"/' "$STATE_DIR/provisioned/data.json"
        touch "$EXPORTED/data/file"
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "data data/file|"
        rm -r "$EXPORTED/data"
        # a volume-delete that was killed when it had removed the directory
        made_share
        sed -i 's/"stage":"created"/"stage":"deleting"/' "$STATE_DIR/provisioned/data.json"
        rmdir "$EXPORTED/data"
        mkdir "$EXPORTED/data"
        touch "$EXPORTED/data/file"
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "data data/file|"
}

# bats test_tags=kernel,nfs
@test "a directory that another node has taken away is made anew for another volume, unless a pod has it still" {
        local claim='"parameters": {"csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pvc/name": "claim"}'
        with_server
        nfs_pool '"subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}"'
        made_share data "$claim"
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT/team/claim")
        kubelet_publish data
        mv "$EXPORTED/team/claim" "$EXPORTED/archived"
        create "$(named next "\"size\": \"8m\", \"pool\": \"share\", $claim")"
        refused EBUSY "$(pod_dir data)"
        is "$(provisioned)" data.json
        kubelet_unpublish data
        made_share next "$claim"
        is "$(on_server)|$(provisioned)" "archived team team/claim|next.json"
        removed '{"name": "next"}'
        is "$(on_server)|$(provisioned)" "archived team|"
}

# bats test_tags=kernel,nfs
@test "a directory that another node has made anew for another volume is taken and deleted by its id, unless a pod has the last one still" {
        local claim='"parameters": {"csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pvc/name": "claim"}'
        local next='{"name": "next", "id": "team/claim", "pool": "share", "reclaimPolicy": "delete"}'
        with_server
        nfs_pool '"subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}"'
        made_share data "$claim"
        create "$next"
        refused EBUSY 'volume "data"'
        SPECS[data]=$(spec data type=nfs "server=$NFS_ADDRESS" "share=$EXPORT/team/claim")
        kubelet_publish data
        mv "$EXPORTED/team/claim" "$EXPORTED/archived"
        mkdir "$EXPORTED/team/claim"
        touch "$EXPORTED/team/claim/file"
        create "$next"
        refused EBUSY "$(pod_dir data)"
        is "$(provisioned)" data.json
        kubelet_unpublish data
        # by a pool of the same share, as CSI does for an id
        created "{\"name\": \"next\", \"id\": \"team/claim\", \"reclaimPolicy\": \"delete\", \"parameters\": {\"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\"}}"
        is "$(provisioned)" next.json
        removed '{"name": "next"}'
        is "$(on_server)|$(provisioned)" "archived team|"
}

# bats test_tags=kernel,nfs
@test "nothing is moved into a trash directory that others can look into, or that is another's" {
        with_server
        nfs_pool
        made_share
        touch "$EXPORTED/data/file"
        mkdir -m 0777 "$EXPORTED/.flexgraft-trash"
        chmod 0777 "$EXPORTED/.flexgraft-trash"
        remove '{"name": "data"}'
        refused EPERM flexgraft-trash
        chmod 0700 "$EXPORTED/.flexgraft-trash"
        chown 1000 "$EXPORTED/.flexgraft-trash"
        remove '{"name": "data"}'
        refused EPERM flexgraft-trash
        is "$(on_server)" "data data/file"
        is "$(ls "$EXPORTED/.flexgraft-trash")" ''
        rmdir "$EXPORTED/.flexgraft-trash"
        removed '{"name": "data"}'
        is "$(on_server)" ''
}

# bats test_tags=kernel,nfs
@test "a file of a volume that a process of the node has open stays, and the volume with it, until the file is closed" {
        local fd
        with_server
        nfs_pool
        made_share
        echo text >"$EXPORTED/data/file"
        mkdir "$EXPORTED/data/a"
        SPECS[all]=$(spec all type=nfs "server=$NFS_ADDRESS" "share=$EXPORT") # of the volume's name nobody has anything
        kubelet_publish all
        exec {fd}<"$(pod_dir all)/data/file"
        remove '{"name": "data"}'
        refused EAGAIN "a process of this node has a file open"
        is "$(find "$EXPORTED" -name '.nfs*' | wc -l) $(provisioned)" "1 data.json"
        is "$(cat <&"$fd")" text
        exec {fd}<&-
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" "|"
        kubelet_unpublish all
}

# bats test_tags=kernel,nfs
@test "a server that refuses, and symbolic links on the share, are failures that leave nothing" {
        with_server
        nfs_pool '"subDir": "${pvc.metadata.namespace}/x"'
        mkdir "$BATS_TEST_TMPDIR/elsewhere"
        ln -s "$BATS_TEST_TMPDIR/elsewhere" "$EXPORTED/team"
        create '{"name": "data", "size": "1m", "pool": "share", "parameters": {"csi.storage.k8s.io/pvc/namespace": "team"}}'
        refused ENOTDIR
        is "$(ls "$BATS_TEST_TMPDIR/elsewhere")$(provisioned)" ''
        printf '{"type": "nfs", "server": "%s", "share": "/srv"}\n' "$NFS_REFUSING" >"$FLEXGRAFT_POOLS/share.json"
        create '{"name": "data", "size": "1m", "pool": "share"}'
        refused ECONNREFUSED
        is "$(provisioned)" ''
}

# bats test_tags=kernel,nfs
@test "a volume is kept while the name server does not know its server, or the server not its share" {
        with_server
        nfs_pool
        made_share
        touch "$EXPORTED/data/file"
        printf '{"type": "nfs", "server": "nowhere.invalid", "share": "%s"}\n' "$EXPORT" >"$FLEXGRAFT_POOLS/share.json"
        remove '{"name": "data"}'
        assert_failure
        EXPORT=$EXPORT/none nfs_pool
        remove '{"name": "data"}'
        assert_failure ENODEV
        is "$(provisioned)" data.json
        nfs_pool
        [[ -e $EXPORTED/data/file ]]
        removed '{"name": "data"}'
        is "$(on_server)|$(provisioned)" '|'
}

# bats test_tags=kernel,nfs,sweep
@test "volume-create and volume-delete on a share killed at some calls: again succeeds, and nothing is left" {
        local create delete
        with_server
        nfs_pool
        made_share
        removed '{"name": "data"}'
        create=$FLEXGRAFT_BIN/volume-create delete=$FLEXGRAFT_BIN/volume-delete
        WIDER=4 LABEL=volume-create sweep --failure-status-max 1 --kill --watch tree "$STATE_DIR" --watch tree "$EXPORTED" --watch mounts self -- \
                act "$create" '{"name": "data", "size": "1m", "pool": "share"}' ';' call "$create" '{"name": "data", "size": "1m", "pool": "share"}' ';' \
                sh "test -d '$EXPORTED/data'" ';' call "$delete" '{"name": "data"}' ';' same ';'
        WIDER=4 LABEL=volume-delete sweep --failure-status-max 1 --kill --watch tree "$STATE_DIR" --watch tree "$EXPORTED" --watch mounts self -- \
                call "$create" '{"name": "data", "size": "1m", "pool": "share"}' ';' sh "mkdir -p '$EXPORTED/data/a/b'" ';' \
                act "$delete" '{"name": "data"}' ';' call "$delete" '{"name": "data"}' ';' same ';'
}
