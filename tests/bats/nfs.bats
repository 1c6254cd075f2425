#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-nfs: an NFS export, reached from the container's network namespace, into a container; and kubelet's volumes of that kind.
#
# The server is the kernel's own (nfs_helpers.bash). A kernel that has no NFS skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,nfs

load helpers
load driver_helpers
load nfs_helpers
load docs_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        schema_validate
}

setup() {
        DRIVER=''
        nfs_needs_kernel
        bed_setup
        needs mount-nfs mount-remove mount-list remap-daemon
        nfs_setup
}

teardown() {
        nfs_teardown
}

# ---- whose files they are

# check_owners KIND VERSION [IDMAPPING]: uid 0 and uid 1000 there make files that are theirs on the server, and see theirs.
check_owners() {
        start_client "$1"
        echo given >"$EXPORTED/given"
        chown 1000:1001 "$EXPORTED/given"
        mount_nfs "\"options\": \"vers=$2\""
        assert_field .mount.type nfs
        assert_field .mount.source "$NFS_ADDRESS:$EXPORT"
        assert_field .mount.idMapping "${3:-$(nfs_mapping)}"
        assert_field .mount.nfs.version "$2"
        assert_field .mount.nfs.address "$NFS_ADDRESS"
        assert_mounts_at /data 1
        is "$(in_container stat -c %u:%g /data/given)" 1000:1001 "owner of the server's file in the container"
        in_container sh -c 'umask 022; echo zero >/data/zero; as-user 1000 1001 - sh -c "echo thousand >/data/thousand; mkdir /data/directory"
                ln -s zero /data/link; chown -h 7:8 /data/link; as-user 1000 1001 - sh -c "echo more >>/data/given"'
        is "$(stat -c '%n %u:%g %a' "$EXPORTED"/{directory,given,link,thousand,zero} | sed 's,.*/,,')" \
                $'directory 1000:1001 755\ngiven 1000:1001 644\nlink 7:8 777\nthousand 1000:1001 644\nzero 0:0 644' "what the server has"
        is "$(cat "$EXPORTED"/{zero,thousand,given} | paste -sd' ')" "zero thousand given more" "what is in the server's files"
        is "$(in_container sh -c 'cd /data; stat -c "%n %u:%g" directory given link thousand zero; readlink link')" \
                $'directory 1000:1001\ngiven 1000:1001\nlink 7:8\nthousand 1000:1001\nzero 0:0\nzero' "what the container sees"
        run ! in_container as-user 1002 1002 - sh -c 'echo no >>/data/thousand'
        remove_nfs
        assert_no_records
        assert_nothing_left_of_nfs
}

@test "over NFS 4.2, what the ids 0 and 1000 of a container make is theirs on the server, and reads back so" {
        check_owners plain 4.2
        is "$(mounts_at /data)" 0
}

# bats test_tags=kernel_too
@test "over NFS 4.1, what the ids 0 and 1000 of a container make is theirs on the server, and reads back so" {
        check_owners plain 4.1
}

# bats test_tags=kernel_too
@test "over NFS 4.0, what the ids 0 and 1000 of a container make is theirs on the server, and reads back so" {
        check_owners plain 4.0
}

@test "over NFS 3, what the ids 0 and 1000 of a container make is theirs on the server, and reads back so" {
        check_owners plain 3
}

@test "in a container without a user namespace, NFS 4.2 needs no mapping" {
        check_owners plain-nouserns 4.2 none
}

@test "in a container without a user namespace, NFS 3 needs no mapping" {
        check_owners plain-nouserns 3 none
}

@test "an export is mounted and removed in a crun container" {
        check_owners crun 4.2
}

@test "an export is mounted and removed in a runc container" {
        check_owners runc 4.2
}

# bats test_tags=kernel_too
@test "an export is mounted and removed in a crun container without a user namespace" {
        check_owners crun-nouserns 4.2 none
}

@test "the commands of docs/nfs.md can be typed one after the other, and none fails" {
        start_client plain
        echo "$NFS_ADDRESS nas.example.org" >"$CONTAINER_ROOTFS/etc/hosts"
        blocks docs/nfs.md 'sh nfs' | sed "s,\"web\",$CONTAINER_PID,; s,/export/data,$EXPORT," >"$BATS_TEST_TMPDIR/script"
        run --separate-stderr env PATH="$FLEXGRAFT_BIN:$PATH" bash -euo pipefail "$BATS_TEST_TMPDIR/script"
        is "$status" 0 "exit status of what docs/nfs.md says: $output"
        is "$(jq -r '[.status, .mount.target, .mount.nfs.version] | join(" ")' <<<"$output")" $'Success /data 4.2\nSuccess /old 4.1'
}

@test "two containers with other mappings see each other's files, with the right owners" {
        local first
        start_client plain 100000
        first=$CONTAINER_PID
        mount_nfs
        start_client plain 200000
        mount_nfs
        in_container as-user 1000 1000 - sh -c 'echo second >/data/second'
        use_container "$first"
        in_container as-user 2000 2000 - sh -c 'echo first >/data/first'
        is "$(in_container stat -c %u:%g /data/second)" 1000:1000
        is "$(in_container cat /data/second)" second
        use_container "$(other_than "$first")"
        is "$(in_container stat -c %u:%g /data/first)" 2000:2000
        is "$(in_container cat /data/first)" first
        is "$(stat -c %u "$EXPORTED"/{first,second} | paste -sd' ')" "2000 1000"
}

other_than() {
        local pid
        for pid in "${!bed_kind[@]}"; do
                [[ $pid == "$1" ]] || echo "$pid"
        done
}

@test "a mount by remap is the container's own: of type fuse.flexgraft, nosuid and nodev" {
        start_client plain
        mount_nfs '"ids": "remap"'
        [[ $(mount_line /data) == *" - fuse.flexgraft "* ]] || is "$(mount_line /data)" "... - fuse.flexgraft ..."
        assert_attributes /data rw nosuid nodev
        helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
        assert_field '.mounts[0].type' nfs
        assert_field '.mounts[0].remap.running' true
        is "$(<"/proc/$(json_field '.mounts[0].remap.pid')/comm")" remap-keeper
}

@test "with ids host a container with a user namespace has the NFS mount itself, and sees foreign owners" {
        start_client plain
        touch "$EXPORTED/file"
        mount_nfs '"ids": "host"'
        assert_field .mount.idMapping host
        is "$(in_container stat -c %u /data/file)" 65534
        [[ $(mount_line /data) == *" - nfs4 "* ]] || is "$(mount_line /data)" "... - nfs4 ..."
        wait_until 5 no_remap_processes || show_remap_processes # the one of the test before may still end
        remove_nfs
        assert_nothing_left_of_nfs
}

@test "ids that this kernel cannot do over NFS are refused, and nothing is left" {
        local ids
        start_client plain
        for ids in userns idmapped; do
                helper mount-nfs "$(nfs_request "\"ids\": \"$ids\"")"
                if [[ $status == 0 ]]; then             # a kernel that can
                        assert_field .mount.idMapping "$ids"
                        remove_nfs
                elif [[ $status == 2 ]]; then           # a word that mount-nfs does not know
                        assert_not_understood ids
                else
                        assert_failure
                fi
                assert_mounts_at /data 0
                assert_no_records
                assert_nothing_left_of_nfs
        done
}

@test "with fallback none, an export whose owners this kernel cannot map fails and leaves nothing" {
        start_client plain
        helper mount-nfs "$(nfs_request '"fallback": "none"')"
        if [[ $(nfs_mapping) == remap ]]; then
                assert_failure
                [[ $(json_field .message) == *mapped* ]] || { show_last; return 1; }
                assert_mounts_at /data 0
                assert_no_records
                assert_nothing_left_of_nfs
                mount_nfs '"fallback": "remap"'
                assert_field .mount.idMapping remap
        else
                assert_success
                assert_field .mount.idMapping "$(nfs_mapping)"
        fi
}

@test "root is squashed where the server squashes it, and sees so" {
        start_client plain
        export_again root_squash
        mount_nfs
        in_container sh -c 'echo zero >/data/zero'
        in_container as-user 1000 1000 - touch /data/thousand
        is "$(stat -c %u "$EXPORTED"/{zero,thousand} | paste -sd' ')" "65534 1000"
        is "$(in_container stat -c %u /data/zero /data/thousand | paste -sd' ')" "65534 1000"
        run ! in_container chown 5 /data/thousand
        is "$(stat -c %u "$EXPORTED/thousand")" 1000
}

@test "root that is not squashed may give files away" {
        start_client plain
        mount_nfs
        in_container as-user 1000 1000 - touch /data/thousand
        in_container chown 5:6 /data/thousand
        is "$(stat -c %u:%g "$EXPORTED/thousand")" 5:6
}

# groups_of_export: a file for one of the first 16 of 30 groups, and one for a group beyond.
groups_of_export() {
        echo early >"$EXPORTED/early"
        echo late >"$EXPORTED/late"
        chown 0:2005 "$EXPORTED/early"
        chown 0:2025 "$EXPORTED/late"
        chmod 0640 "$EXPORTED/early" "$EXPORTED/late"
}

GROUPS_2001=$(seq -s, 2001 2030)

@test "of a process's 30 groups the first 16 count, as many as NFS carries" {
        local kind
        groups_of_export
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs
                is "$(in_container as-user 1000 1000 "$GROUPS_2001" cat /data/early)" early "with 30 groups, in a container of kind $kind"
                run ! in_container as-user 1000 1000 "$GROUPS_2001" cat /data/late
                run ! in_container as-user 1000 1000 - cat /data/early
                stop_container
        done
}

@test "a server that manages groups itself gives a process those beyond the first 16" {
        another_server --manage-gids
        groups_of_export
        start_client plain
        mount_nfs
        is "$(in_container as-user 1000 1000 "$GROUPS_2001" cat /data/late)" late
}

# bats test_tags=kernel_too
@test "setuid programs and devices of the export are harmless inside" {
        local kind
        cp "$(type -P busybox)" "$EXPORTED/busybox"
        chmod 4755 "$EXPORTED/busybox"
        mknod -m 0666 "$EXPORTED/null" c 1 3
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs
                is "$(in_container as-user 1000 1000 - /data/busybox id -u)" 1000 "effective uid in a container of kind $kind"
                run ! in_container sh -c 'echo >/data/null'
                run ! in_container as-user 1000 1000 - sh -c 'cat /data/null'
                [[ $kind == plain-nouserns ]] || run ! in_container mknod /data/made c 1 3
                stop_container
        done
}

@test "readOnly cannot be written by any user" {
        local kind
        echo text >"$EXPORTED/file"
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs '"readOnly": true'
                assert_attributes /data ro
                is "$(in_container cat /data/file)" text
                run ! in_container touch /data/made
                [[ $output == *"Read-only file system"* ]]
                if [[ $kind == plain ]]; then
                        in_container mount -o remount,bind,rw /data || :
                        run ! in_container sh -c 'echo more >>/data/file'
                fi
                is "$(ls "$EXPORTED")" file
                is "$(<"$EXPORTED/file")" text
                stop_container
        done
}

# ---- versions

@test "without a version it is 4.2" {
        start_client plain-nouserns
        mount_nfs
        assert_field .mount.nfs.version 4.2
        assert_options /data "$(nfs_options /data)" vers=4.2
}

# bats test_tags=kernel_too
@test "a server that speaks no 4.2 gets 4.1" {
        server_speaks_not 4.2
        start_client plain-nouserns
        mount_nfs
        assert_field .mount.nfs.version 4.1
        assert_options /data "$(nfs_options /data)" vers=4.1
}

@test "a server that speaks only 3 gets 3, in every container" {
        local kind
        server_speaks_not 4
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs
                assert_field .mount.nfs.version 3
                in_container touch "/data/$kind"
                [[ -e $EXPORTED/$kind ]]
                remove_nfs
        done
        mount_nfs '"ids": "host"'
        assert_options /data "$(nfs_options /data)" vers=3
}

@test "a server that speaks no 3 gets 4.2" {
        server_speaks_not 3
        start_client plain-nouserns
        mount_nfs
        assert_field .mount.nfs.version 4.2
}

# bats test_tags=kernel_too
@test "versions are said as vers, nfsvers or minorversion, and the last one counts" {
        local options want
        start_client plain-nouserns
        while read -r options want; do
                mount_nfs "\"options\": \"$options\""
                assert_field .mount.nfs.version "$want"
                assert_options /data "$(nfs_options /data)" "vers=$want"
                remove_nfs
        done <<'END'
nfsvers=4.1 4.1
vers=4,minorversion=1 4.1
minorversion=1 4.1
nfsvers=3 3
vers=4,v4.1 4.1
minorversion=1,vers=4 4.1
minorversion=1,v4.2 4.2
vers=3,nfsvers=4.2 4.2
END
}

@test "a filesystem of the server below the export is there, in every container" {
        local kind
        export_again crossmnt
        mkdir "$EXPORTED/below"
        in_server mount -t tmpfs tmpfs "$EXPORTED/below"
        in_server sh -c 'chmod 1777 "$0"; echo text >"$0/file"' "$EXPORTED/below"
        in_server exportfs -o "rw,no_root_squash,no_subtree_check,insecure,fsid=$((BATS_TEST_NUMBER * 10 + 9))" "*:$EXPORT/below"
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs '"options": "vers=4.2"'
                is "$(in_container cat /data/below/file)" text "$kind"
                in_container touch "/data/below/of-$kind"
                remove_nfs
                in_server test -e "$EXPORTED/below/of-$kind"
        done
        assert_nothing_left_of_nfs
        in_server exportfs -u "*:$EXPORT/below"
        in_server umount --lazy "$EXPORTED/below"
}

@test "directories and files of a server with the same inode numbers are not one another, also without file handles" {
        [[ -n $(type -P mkfs.btrfs) ]] || skip "no btrfs-progs"
        truncate -s 256M "$BATS_TEST_TMPDIR/btrfs.img"
        mkfs.btrfs -q "$BATS_TEST_TMPDIR/btrfs.img" 2>/dev/null
        in_server mount -o loop "$BATS_TEST_TMPDIR/btrfs.img" "$EXPORTED"
        in_server sh -c "cd '$EXPORTED' && btrfs -q subvolume create a && btrfs -q subvolume create b && echo of-a >a/f && echo of-b >b/f"
        export_again
        start_client plain
        mount_nfs '"ids": "remap", "options": "vers=4.0"'
        is "$(in_container sh -c 'cd /data/a && cat /data/b/f && cat f && ls -id . /data/b >/dev/null && cat f')" $'of-b\nof-a\nof-a'
        remove_nfs
        in_server exportfs -u "*:$EXPORT"
        in_server exportfs -f
        in_server sh -c 'echo "$0" >/proc/fs/nfsd/unlock_filesystem' "$EXPORTED"
        wait_until 30 in_server umount "$EXPORTED"
}

@test "two nodes whose long names differ at the end alone are two clients to the server" {
        local node names=()
        start_client plain-nouserns
        for node in x7k2 q9zd; do
                HELPER_PREFIX=(unshare --uts sh -c 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"' "gke-my-production-cluster-default-pool-3d7f2c1a-$node")
                mount_nfs '"options": "vers=4.2"'
                HELPER_PREFIX=()
                names+=("$(in_server sh -c 'cat /proc/fs/nfsd/clients/*/info' | sed -n 's/^name: //p' | grep -F gke- | sort | paste -sd' ')")
                remove_nfs
        done
        [[ -n ${names[0]} && ${names[0]} != "${names[1]}" ]] || { printf '%s\n' "${names[@]}"; return 1; }
}

@test "proto and mountproto choose between the addresses of a server that has both families" {
        local options want
        start_client plain-nouserns
        printf '%s both.test\n' "$NFS_ADDRESS6" "$NFS_ADDRESS" >"$CONTAINER_ROOTFS/etc/hosts"
        echo "$NFS_ADDRESS6 six.test" >>"$CONTAINER_ROOTFS/etc/hosts"
        NFS_SOURCE=both.test:$EXPORT
        while read -r options want; do
                mount_nfs "\"options\": \"$options\""
                assert_field .mount.nfs.address "$want"
                remove_nfs
        done <<END
proto=tcp $NFS_ADDRESS
proto=tcp6 $NFS_ADDRESS6
vers=3,mountproto=tcp $NFS_ADDRESS
vers=3,proto=tcp6,mountproto=tcp6 $NFS_ADDRESS6
END
        NFS_SOURCE=six.test:$EXPORT
        fails_at connect EAFNOSUPPORT '"options": "proto=tcp"'
}

@test "a path that is not exported is ENOENT also where a firewall drops what is for the port mapper of the server" {
        start_client plain-nouserns
        in_server ip rule add ipproto tcp sport 111 blackhole # its answers: the client waits
        NFS_SOURCE=$NFS_ADDRESS:/srv/none
        fails_at fsconfig ENOENT '"timeoutSeconds": 15' || { in_server ip rule delete ipproto tcp sport 111 blackhole; return 1; }
        in_server ip rule delete ipproto tcp sport 111 blackhole
}

@test "the word rdma asks the port by no connection of TCP, as proto=rdma does" {
        local options
        start_client plain-nouserns
        for options in rdma,port=20049 proto=rdma,port=20049; do
                helper mount-nfs "$(nfs_request "\"options\": \"$options\", \"timeoutSeconds\": 10")"
                assert_failure
                [[ $(json_field .error.operation) != connect ]] || { show_last; return 1; }
                assert_mounts_at /data 0
        done
}

@test "version 4 without a minor version is the newest that the server speaks, as with mount.nfs" {
        local options
        start_client plain-nouserns
        for options in vers=4 nfsvers=4 v4; do
                mount_nfs "\"options\": \"$options\""
                assert_field .mount.nfs.version 4.2
                assert_options /data "$(nfs_options /data)" vers=4.2
                remove_nfs
        done
        server_speaks_not 4.2
        mount_nfs '"options": "vers=4"'
        assert_field .mount.nfs.version 4.1
        remove_nfs
        server_speaks_not 4
        fails_at fsconfig EPROTONOSUPPORT '"options": "vers=4"'
        shows 'does not speak NFS 4 ('
}

@test "locks of version 3 without rpcbind in the container fail, and the hint says what they need" {
        start_client plain-nouserns
        fails_at 'start lockd' ECONNREFUSED,ENETUNREACH '"options": "vers=3,lock"'
        shows "in the network of pid $CONTAINER_PID" 'run rpcbind and rpc.statd in that network'
}

@test "when the directory is gone from the server, the same request is not alreadyMounted, and replace mounts what is there now" {
        start_client plain
        mkdir "$EXPORTED/directory"
        NFS_SOURCE=$NFS_ADDRESS:$EXPORT/directory
        mount_nfs '"options": "actimeo=0"'
        mount_nfs '"options": "actimeo=0"'
        assert_field .mount.alreadyMounted true
        rmdir "$EXPORTED/directory"
        run -1 in_container ls /data
        helper mount-nfs "$(nfs_request '"options": "actimeo=0"')"
        assert_failure ESTALE
        assert_field .error.operation 'find target'
        shows 'its filesystem is dead' '\"replace\": true'
        mkdir "$EXPORTED/directory"
        touch "$EXPORTED/directory/file"
        mount_nfs '"options": "actimeo=0", "replace": true'
        assert_field .mount.alreadyMounted false
        in_container test -e /data/file
        assert_mounts_at /data 1
        is "$(records | wc -l)" 1
        remove_nfs
        assert_nothing_left_of_nfs
}

@test "a version that the server does not speak is EPROTONOSUPPORT" {
        start_client plain
        server_speaks_not 4.2
        fails_at fsconfig EPROTONOSUPPORT '"options": "vers=4.2", "timeoutSeconds": 15'
        server_speaks_not 3
        fails_at fsconfig EPROTONOSUPPORT '"options": "vers=3", "timeoutSeconds": 15'
}

# ---- what is mounted: words for it

@test "the server and the share are said apart" {
        start_client plain-nouserns
        helper mount-nfs "{\"container\": $CONTAINER_PID, \"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\", \"target\": \"/data\"}"
        assert_success
        assert_field .mount.source "$NFS_ADDRESS:$EXPORT"
        in_container touch /data/made
        [[ -e $EXPORTED/made ]]
}

@test "an IPv6 address is said in brackets, or bare as the server" {
        start_client plain
        NFS_SOURCE=[$NFS_ADDRESS6]:$EXPORT
        mount_nfs
        assert_field .mount.source "$NFS_SOURCE"
        assert_field .mount.nfs.address "$NFS_ADDRESS6"
        in_container touch /data/made
        remove_nfs
        mount_nfs '"options": "vers=3"'
        assert_field .mount.nfs.address "$NFS_ADDRESS6"
        in_container rm /data/made
        remove_nfs
        helper mount-nfs "{\"container\": $CONTAINER_PID, \"server\": \"$NFS_ADDRESS6\", \"share\": \"$EXPORT\", \"target\": \"/data\"}"
        assert_success
        is "$(in_container ls /data)" ""
}

@test "an export whose path has spaces is mounted" {
        local version
        start_client plain-nouserns
        new_export "two  words and more.$BATS_TEST_NUMBER"
        touch "$EXPORTED/file"
        for version in 4.2 3; do
                mount_nfs "\"options\": \"vers=$version\""
                assert_field .mount.source "$NFS_ADDRESS:$EXPORT"
                is "$(in_container ls /data)" file
                remove_nfs
        done
        start_client plain
        mount_nfs
        is "$(in_container ls /data)" file
}

# bats test_tags=kernel_too
@test "a directory below the export is mounted" {
        start_client plain
        mkdir "$EXPORTED/sub"
        touch "$EXPORTED/sub/file"
        EXPORT+=/sub
        mount_nfs
        is "$(in_container ls /data)" file
        remove_nfs
        mount_nfs '"options": "vers=3"'
        is "$(in_container ls /data)" file
}

# bats test_tags=kernel_too
@test "a source that is no export's name is not understood" {
        local source
        start_client plain-nouserns
        for source in nothing :/path "$NFS_ADDRESS:relative" "[fd77::1:/path" /path; do
                NFS_SOURCE=$source
                helper mount-nfs "$(nfs_request)"
                assert_not_understood source
        done
        helper mount-nfs "{\"container\": $CONTAINER_PID, \"server\": \"$NFS_ADDRESS\", \"target\": \"/data\"}"
        assert_not_understood
        helper mount-nfs "{\"container\": $CONTAINER_PID, \"server\": \"$NFS_ADDRESS\", \"share\": \"$EXPORT\", \"source\": \"$NFS_ADDRESS:$EXPORT\", \"target\": \"/data\"}"
        assert_not_understood
        assert_nothing_left_of_nfs
}

# ---- options

# bats test_tags=kernel_too
@test "options reach the kernel, said as a string or as an array" {
        start_client plain-nouserns
        mount_nfs '"options": "vers=4.1,proto=tcp,port=2049,rsize=32768,wsize=65536,soft,timeo=50,retrans=3,nconnect=2,sec=sys,noatime,noac"'
        assert_options /data "$(nfs_options /data)" vers=4.1 proto=tcp rsize=32768 wsize=65536 soft timeo=50 retrans=3 nconnect=2 sec=sys \
                "addr=$NFS_ADDRESS" "clientaddr=$NFS_CLIENT" noac '!hard'
        assert_attributes /data noatime nosuid nodev
        remove_nfs
        mount_nfs '"options": ["vers=3", "mountport=20048", "mountproto=tcp", "nolock", "hard", "timeo=70", "noexec"]'
        assert_options /data "$(nfs_options /data)" vers=3 mountport=20048 mountproto=tcp nolock hard timeo=70
        assert_attributes /data noexec
}

@test "options reach the kernel where ids are mapped, too" {
        start_client plain
        mount_nfs '"options": "vers=4.1,noexec"'
        assert_attributes /data noexec
        in_server sh -c 'cat /proc/fs/nfsd/clients/*/info' | grep -qx 'minor version: 1'
        is "$(grep -c '^v4' "/proc/$CONTAINER_PID/net/nfsfs/volumes")" 1 "NFS filesystems in the container's network"
}

# bats test_tags=kernel_too
@test "an option that NFS does not have is refused, and nothing is left" {
        start_client plain
        fails_at fsconfig EINVAL '"options": "vers=4.2,nosuchthing"'
        [[ $output == *nosuchthing* ]]
        fails_at fsconfig EINVAL '"options": "rsize=many"'
}

@test "mountaddr is the address of the mount server of version 3" {
        start_client plain
        mount_nfs '"ids": "host", "options": "vers=3,mountaddr=10.77.0.2"'
        assert_options /data "$(nfs_options /data)" "addr=$NFS_ADDRESS" mountaddr=10.77.0.2
}

@test "options cannot say another server than the source does" {
        start_client plain-nouserns
        helper mount-nfs "$(nfs_request '"options": "addr=10.77.0.2"')"
        [[ $status == 0 ]] || { assert_mounts_at /data 0 && return; }
        assert_options /data "$(nfs_options /data)" "addr=$NFS_ADDRESS"
}

# ---- names

@test "a name is looked up by the container's name server, over its network" {
        local name
        start_client plain-nouserns
        name_server "$NFS_ADDRESS"
        for name in nas.example.org alias.example.org NAS.example.org nas.example.org.; do
                NFS_SOURCE=$name:$EXPORT
                mount_nfs
                assert_field .mount.source "$NFS_SOURCE"
                assert_field .mount.nfs.address "$NFS_ADDRESS"
                remove_nfs
        done
        name_server "$NFS_ADDRESS6"
        NFS_SOURCE=nas6.example.org:$EXPORT
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS6"
}

# bats test_tags=kernel_too
@test "a name is looked up in the domains that the container searches" {
        start_client plain-nouserns
        NFS_SOURCE=nas:$EXPORT
        name_server "$NFS_ADDRESS" "search nowhere.example.org example.org" "options ndots:2 timeout:1 attempts:2"
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS"
        remove_nfs
        name_server "$NFS_ADDRESS" "domain example.org"
        mount_nfs
        remove_nfs
        name_server "$NFS_ADDRESS" "options timeout:1 attempts:1"
        fails_at resolve ENOENT '"timeoutSeconds": 15'
}

# bats test_tags=kernel_too
@test "the root among the domains, as systemd-resolved writes it, keeps no name from being found" {
        start_client plain-nouserns
        NFS_SOURCE=nas.example.org:$EXPORT
        name_server "$NFS_ADDRESS" "search nowhere.example.org ." "options ndots:5 timeout:1 attempts:2"
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS"
}

@test "a second name server is asked when the first does not answer" {
        start_client plain-nouserns
        NFS_SOURCE=nas.example.org:$EXPORT
        name_server "$NFS_NO_ANSWER" "nameserver $NFS_REFUSING" "nameserver $NFS_ADDRESS" "options timeout:1 attempts:2"
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS"
}

# bats test_tags=kernel_too
@test "a name that only the container's hosts file knows is found" {
        start_client plain
        printf '# none\n127.0.0.1 localhost\n%s\tother storage-alone # here\n' "$NFS_ADDRESS" >"$CONTAINER_ROOTFS/etc/hosts"
        NFS_SOURCE=storage-alone:$EXPORT
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS"
        is "$(in_container ls /data)" ""
}

@test "the container's hosts file comes before its name server, and the node's files do not count" {
        start_client plain-nouserns
        name_server "$NFS_ADDRESS"
        echo "$NFS_REFUSING nas.example.org" >"$CONTAINER_ROOTFS/etc/hosts"
        NFS_SOURCE=nas.example.org:$EXPORT
        fails_at connect ECONNREFUSED '"timeoutSeconds": 15'
        rm "$CONTAINER_ROOTFS/etc/hosts" "$CONTAINER_ROOTFS/etc/resolv.conf"
        name_server "$NFS_ADDRESS" "options timeout:1 attempts:1"
        NFS_SOURCE=$(awk '$1 == "127.0.0.1" {print $2; exit}' /etc/hosts).example.org:$EXPORT
        fails_at resolve ENOENT '"timeoutSeconds": 15'
}

# bats test_tags=kernel_too
@test "an unknown name is ENOENT, and so is one without an address" {
        start_client plain
        name_server "$NFS_ADDRESS"
        NFS_SOURCE=nowhere.example.org:$EXPORT
        fails_at resolve ENOENT '"timeoutSeconds": 15'
        [[ $output == *"has no address"* ]]
        NFS_SOURCE=empty.example.org:$EXPORT
        fails_at resolve ENOENT '"timeoutSeconds": 15'
        [[ $output == *"has no address"* ]]
}

@test "a name server that does not answer is ETIMEDOUT, in time" {
        start_client plain
        NFS_SOURCE=nas.example.org:$EXPORT
        name_server "$NFS_NO_ANSWER"
        fails_at resolve ETIMEDOUT '"timeoutSeconds": 3'
        name_server "$NFS_NO_ANSWER" "options timeout:1 attempts:1"
        fails_at resolve ETIMEDOUT '"timeoutSeconds": 6'
}

@test "of several addresses the one that works is found" {
        start_client plain-nouserns
        name_server "$NFS_ADDRESS"
        NFS_SOURCE=several.example.org:$EXPORT
        mount_nfs '"timeoutSeconds": 30'
        assert_field .mount.nfs.address "$NFS_ADDRESS"
        remove_nfs
        NFS_SOURCE=dual.example.org:$EXPORT
        mount_nfs
        assert_field .mount.nfs.address "$NFS_ADDRESS"
}

@test "the container's nsswitch.conf and its libraries are never loaded" {
        local dir library=$BATS_TEST_TMPDIR/libnss_marker.so.2
        gcc -O2 -Wall -Wextra -Werror -shared -fPIC -nostdlib -o "$library" "$FLEXGRAFT_REPO/tests/fixtures/libnss_marker.c"
        start_client plain
        printf 'hosts: marker dns\npasswd: marker\ngroup: marker\n' >"$CONTAINER_ROOTFS/etc/nsswitch.conf"
        for dir in lib lib64 usr/lib lib/x86_64-linux-gnu usr/lib/x86_64-linux-gnu usr/lib64; do
                mkdir -p "$CONTAINER_ROOTFS/$dir"
                cp "$library" "$CONTAINER_ROOTFS/$dir/"
        done
        name_server "$NFS_ADDRESS"
        NFS_SOURCE=nas.example.org:$EXPORT
        mount_nfs
        in_container ls -l /data
        remove_nfs
        NFS_SOURCE=nowhere.example.org:$EXPORT
        helper mount-nfs "$(nfs_request)"
        assert_failure ENOENT
        run ! compgen -G "$CONTAINER_ROOTFS/loaded-by-*"
}

@test "a hosts file or resolv.conf that is no file hangs no call and shows nothing of the node" {
        local etc
        start_client plain-nouserns
        etc=$CONTAINER_ROOTFS/etc
        NFS_SOURCE=nas.example.org:$EXPORT
        mkfifo "$etc/hosts" "$etc/resolv.conf"
        fails_at resolve ENOENT,ETIMEDOUT,ECONNREFUSED,EINVAL '"timeoutSeconds": 4'
        # nor is it opened, as a device would be, of which that alone can do something: who writes to a pipe waits for a reader
        # shellcheck disable=SC2016 # its own shell has them
        background sh -c 'echo text >"$1"' - "$etc/hosts"
        fails_at resolve ENOENT,ETIMEDOUT,ECONNREFUSED,EINVAL '"timeoutSeconds": 4'
        run ! process_is_gone "$BACKGROUND_PID"
        end_process "$BACKGROUND_PID"
        rm "$etc/hosts" "$etc/resolv.conf"
        # A link that leads out of the container's root directory leads nowhere.
        echo "$NFS_ADDRESS nas.example.org" >"$BATS_TEST_TMPDIR/hosts"
        ln -s "../../../../../../../../../..$BATS_TEST_TMPDIR/hosts" "$etc/hosts"
        fails_at resolve ENOENT,ETIMEDOUT,ECONNREFUSED '"timeoutSeconds": 4'
        # One within is followed, as it would be in the container.
        echo "$NFS_ADDRESS nas.example.org" >"$CONTAINER_ROOTFS/run/hosts"
        ln -sf /run/hosts "$etc/hosts"
        mount_nfs
}

# ---- failures

@test "a server that refuses connections is ECONNREFUSED, and nothing is left" {
        start_client plain
        NFS_SOURCE=$NFS_REFUSING:$EXPORT
        fails_at connect ECONNREFUSED '"timeoutSeconds": 15'
        fails_at connect ECONNREFUSED '"timeoutSeconds": 15, "options": "vers=3"'
        assert_field '.error | has("hint")' true
}

@test "a server that no route leads to is ENETUNREACH, one that is down EHOSTUNREACH" {
        start_client plain
        NFS_SOURCE=$NFS_NO_ROUTE:$EXPORT
        fails_at connect ENETUNREACH
        NFS_SOURCE=$NFS_DOWN:$EXPORT
        fails_at connect EHOSTUNREACH '"timeoutSeconds": 15'
}

# bats test_tags=kernel_too
@test "a container without a network has none for NFS" {
        start_container plain
        fails_at connect ENETUNREACH
}

@test "a server that does not answer is ETIMEDOUT, in time" {
        start_client plain
        NFS_SOURCE=$NFS_NO_ANSWER:$EXPORT
        fails_at connect ETIMEDOUT '"timeoutSeconds": 3'
}

@test "a server that takes the connection and then says nothing is ETIMEDOUT, in time" {
        start_client plain
        fails_at wait ETIMEDOUT "\"timeoutSeconds\": 4, \"options\": \"port=$NFS_SILENT_PORT\""
        fails_at wait ETIMEDOUT "\"timeoutSeconds\": 4, \"options\": \"vers=3,port=$NFS_SILENT_PORT,mountport=$NFS_SILENT_PORT\""
}

# bats test_tags=kernel_too
@test "a share that is not exported is ENOENT, and nothing is left" {
        start_client plain
        NFS_SOURCE=$NFS_ADDRESS:/srv/none
        fails_at fsconfig ENOENT
        fails_at fsconfig ENOENT,EACCES '"options": "vers=3"'        # its servers do not tell one from the other
        start_client plain-nouserns
        fails_at fsconfig ENOENT
}

@test "what the server does not let this client have is EACCES or EPERM, and nothing is left" {
        start_client plain
        new_export "other.$BATS_TEST_NUMBER" '' 10.77.0.99
        fails_at fsconfig EACCES,EPERM '"options": "vers=3"'
        fails_at fsconfig EACCES,EPERM,ENOENT
        new_export "kerberos.$BATS_TEST_NUMBER" sec=krb5
        fails_at fsconfig EACCES,EPERM '"options": "vers=4.2,sec=sys"'
}

# bats test_tags=kernel_too
@test "a target that is a file, or cannot be made, fails and leaves nothing" {
        start_client plain
        in_container touch /data
        container_snapshot
        node_snapshot
        helper mount-nfs "$(nfs_request)"
        assert_failure
        assert_nothing_left_of_nfs
        assert_container_unchanged
        assert_node_unchanged
}

# ---- again, instead, only asked

# bats test_tags=kernel_too
@test "the same request twice is one mount" {
        local kind
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs
                assert_field .mount.alreadyMounted false
                mount_nfs
                assert_field .mount.alreadyMounted true
                assert_mounts_at /data 1
                is "$(nfs_superblocks)" 1 "NFS filesystems"
                remove_nfs
                assert_nothing_left_of_nfs
                stop_container
        done
}

# bats test_tags=kernel_too
@test "dryRun changes nothing" {
        start_client plain
        container_snapshot
        node_snapshot
        helper mount-nfs "$(nfs_request '"dryRun": true, "target": "/made/data"' | sed 's,"target": "/data"\, ,,')"
        assert_success
        assert_container_unchanged
        assert_node_unchanged
        assert_nothing_left_of_nfs
}

@test "an export takes the place of another" {
        local kind old
        for kind in plain plain-nouserns; do
                old=$EXPORT
                touch "$EXPORTED/$kind.old"
                start_client "$kind"
                mount_nfs
                new_export "new.$kind.$BATS_TEST_NUMBER"
                touch "$EXPORTED/$kind.new"
                helper mount-nfs "$(nfs_request)"
                assert_failure EBUSY
                mount_nfs '"replace": true'
                assert_mounts_at /data 1
                is "$(in_container ls /data)" "$kind.new"
                wait_until 5 superblocks_are 1
                remove_nfs
                assert_no_records
                assert_nothing_left_of_nfs
                stop_container
        done
}

superblocks_are() {
        (($(nfs_superblocks) == $1))
}

# ---- work

@test "four processes with four ids make, rename and remove files at once" {
        # Each file is a dozen requests, in an emulated machine: some tens are enough here.
        start_client plain
        mount_nfs
        in_container mkdir -m 1777 /data/storm
        in_container file-storm /data/storm "${FLEXGRAFT_NFS_FILES:-40}" 0 1000 1001 60000
        is "$(ls -A "$EXPORTED/storm")" "" "what is left on the server"
}

@test "a file written through a server's end and return is whole" {
        start_client plain
        mount_nfs '"options": "vers=4.2,hard,timeo=20"'
        in_container sh -c 'dd if=/dev/urandom of=/tmp/text bs=64k count=24 2>/dev/null; mkfifo /tmp/go'
        # Half of it is on the server, then the server ends; the other half is written while there is none.
        background in_container sh -c 'exec 5>/data/text; dd if=/tmp/text bs=64k count=12 >&5 2>/dev/null; sync /data/text; : >/tmp/half
                read -r go </tmp/go; dd if=/tmp/text bs=64k skip=12 >&5 2>/dev/null; exec 5>&- && : >/tmp/whole'
        wait_until 10 in_container test -e /tmp/half
        stop_server
        in_container sh -c 'echo >/tmp/go'
        sleep 1
        in_container test ! -e /tmp/whole
        start_server
        wait_until 40 in_container test -e /tmp/whole
        is "$(md5sum <"$EXPORTED/text")" "$(in_container md5sum /tmp/text | sed 's,/.*,-,')" "the server's copy"
        is "$(in_container md5sum /data/text | cut -d' ' -f1)" "$(in_container md5sum /tmp/text | cut -d' ' -f1)" "the container's copy"
}

# check_lock KIND VERSION: to a server, the containers of a node are clients of their own: none is taken for a reboot of another.
check_lock() {
        local first
        lock_client "$@"
        first=$CONTAINER_PID
        hold_lock
        lock_client "$@" 200000
        in_container touch /data/other
        assert_locked
        use_container "$first"
        in_container touch /data/third
        use_container "$(other_than "$first")"
        assert_locked
        use_container "$first"
        # shellcheck disable=SC2016 # the container's shell has them
        in_container sh -c 'kill -KILL "$(cat /tmp/holder)"; while test -e "/proc/$(cat /tmp/holder)/fd/1"; do sleep 0.05; done'
        use_container "$(other_than "$first")"
        hold_lock
}

lock_client() {
        start_client "$1" "${3:-100000}"
        cp "$FLEXGRAFT_TOOLS/hold-locks" "$CONTAINER_ROOTFS/bin/"
        mount_nfs "\"options\": \"vers=$2\""
}

# hold_lock: in the current container, on /data/lock, from when it can be had.
hold_lock() {
        # shellcheck disable=SC2016 # the container's shell has them
        background in_container sh -c 'echo $$ >/tmp/holder; exec hold-locks /data/lock >/tmp/says 2>&1'
        wait_until 10 in_container grep -q . /tmp/says
        is "$(in_container cat /tmp/says)" ready "who would lock"
}

assert_locked() {
        run in_container hold-locks /data/lock
        is "$status" 1 "exit status of another that would lock" && [[ $output == *"temporarily unavailable"* ]]
}

@test "a lock that is held through one container is held for another" {
        check_lock plain 4.2
}

@test "work goes on when the network was gone for a moment" {
        start_client plain
        mount_nfs '"options": "vers=3,timeo=20"'
        echo text >"$EXPORTED/file"
        freeze_server
        background in_container sh -c 'cat /data/file >/tmp/read; echo made >/data/made; : >/tmp/done'
        sleep 1
        in_container test ! -e /tmp/done
        thaw_server
        wait_until 30 in_container test -e /tmp/done
        is "$(in_container cat /tmp/read)" text
        is "$(<"$EXPORTED/made")" made
}

@test "a remap daemon that is killed is replaced at once, and open files stay usable" {
        local daemon
        start_client plain
        mount_nfs '"ids": "remap"'
        background in_container sh -c 'exec 5>/data/open; echo before >&5; : >/tmp/before; while ! test -e /tmp/go; do sleep 0.05; done
                echo after >&5; exec 5>&-; : >/tmp/after'
        wait_until 10 in_container test -e /tmp/before
        daemon=$(pgrep -x remap-daemon)
        kill -KILL "$daemon"
        in_container touch /tmp/go
        wait_until 10 in_container test -e /tmp/after
        is "$(<"$EXPORTED/open")" $'before\nafter'
        [[ $(pgrep -x remap-daemon) != "$daemon" ]]
        is "$(in_container cat /data/open)" $'before\nafter'
}

# ---- ends

@test "when a container ends, its mount, remap daemon and network end too" {
        local kind link
        for kind in plain plain-nouserns crun; do
                start_client "$kind"
                link=$NFS_LINK
                mount_nfs
                in_container sh -c 'echo text >/data/file'
                stop_container
                wait_until "$NFS_FORCED" no_remap_processes
                wait_until 10 link_is_gone "$link"
                is "$(<"$EXPORTED/file")" text
                # Its record is of a container that is no more.
                helper mount-list '{}'
                assert_success
        done
}

@test "when a container ends that waits for a dead server, its processes, remap daemon and network end too" {
        local link pid
        start_client plain
        link=$NFS_LINK pid=$CONTAINER_PID
        mount_nfs
        in_container sh -c 'echo text >/data/file'
        freeze_server
        background in_container sh -c 'cat /data/other; echo never >/tmp/never'
        background in_container sh -c 'echo more >/data/file; sync; echo never >/tmp/never'
        sleep 1
        kill -KILL "$pid"
        wait_until 15 process_is_gone "$pid" || { ps -eo pid,ppid,stat,wchan:24,args; return 1; }
        wait_until "$NFS_FORCED" no_remap_processes || { ps -eo pid,ppid,stat,wchan:24,args; return 1; }
        thaw_server
        wait_until 20 link_is_gone "$link"
}

@test "mount-remove of a dead server's mount does it by force, in time" {
        local kind
        for kind in plain plain-nouserns; do
                start_client "$kind"
                mount_nfs
                in_container sh -c 'echo text >/data/file'
                freeze_server
                background in_container sh -c 'cat /data/other'
                sleep 0.5
                not_hung helper mount-remove "$(remove_request /data | sed 's/}$/, "force": true, "timeoutSeconds": 5}/')"
                assert_success
                assert_mounts_at /data 0
                assert_no_records
                # who was in it holds it, and can be killed
                pkill -KILL -f '^cat /data/other$'
                wait_until "$NFS_FORCED" no_remap_processes || show_remap_processes
                thaw_server
                wait_until 20 has_no_superblocks
                stop_container
        done
}

@test "mount-remove of a dead server's mount answers in time without force, too" {
        start_client plain
        mount_nfs
        freeze_server
        not_hung helper mount-remove "$(remove_request /data | sed 's/}$/, "timeoutSeconds": 4}/')"
        assert_one_json_line
        if [[ $status != 0 ]]; then
                assert_failure
                helper mount-remove "$(remove_request /data | sed 's/}$/, "force": true, "timeoutSeconds": 4}/')"
                assert_success
        fi
        assert_mounts_at /data 0
        assert_no_records
        wait_until "$NFS_FORCED" no_remap_processes || show_remap_processes
}

@test "mount-list answers at once when the server is dead" {
        start_client plain
        mount_nfs
        freeze_server
        background in_container cat /data/other
        not_hung helper mount-list '{}'
        assert_success
        assert_field '.mounts | length' 1
}

# ---- kubelet's volumes

# nfs_driver: the driver k8s~nfs/nfs, on a node that reaches the server.
nfs_driver() {
        driver_setup k8s~nfs
        join_node
        driver_attaches
}

# up NAME [KEY=VALUE...]: a volume of the test's export, in the pod.
up() {
        lifecycle_up "$1" "server=$NFS_ADDRESS" "share=$EXPORT" "${@:2}"
}

@test "a volume of the driver k8s~nfs/nfs is in the pod, without attach, and gone after unmount" {
        nfs_driver
        is "$DRIVER_ATTACHES" false attaches
        up data
        is "$(node_mount_type "$(pod_dir data)")" nfs4
        assert_node_attributes "$(pod_dir data)" rw nosuid nodev
        install -o 1000 -g 1000 /dev/null "$(pod_dir data)/file"
        is "$(stat -c %u:%g "$EXPORTED/file")" 1000:1000
        lifecycle_down data
        [[ -e $EXPORTED/file ]]
        assert_nothing_left
}

# bats test_tags=kernel_too
@test "a volume of kind nfs of the generic driver is in the pod" {
        driver_setup
        join_node
        driver_attaches
        up data type=nfs
        is "$(node_mount_type "$(pod_dir data)")" nfs4
        lifecycle_down data
        assert_nothing_left
}

@test "a volume of the driver whose share has no leading slash is the same export" {
        nfs_driver
        touch "$EXPORTED/file"
        lifecycle_up data @fsType=nfs "server=$NFS_ADDRESS" "share=${EXPORT#/}"
        [[ -e $(pod_dir data)/file ]]
        lifecycle_down data
        assert_nothing_left
}

# bats test_tags=kernel_too
@test "a read-only volume of the driver cannot be written" {
        nfs_driver
        touch "$EXPORTED/file"
        up data @readwrite=ro
        assert_node_attributes "$(pod_dir data)" ro
        [[ -e $(pod_dir data)/file ]]
        run ! touch "$(pod_dir data)/made"
        lifecycle_down data
        assert_nothing_left
}

@test "options of the driver's volume reach the kernel" {
        nfs_driver
        local line
        up data mountOptions=vers=4.1,rsize=32768,soft,timeo=50,noexec
        line=$(node_mount_line "$(pod_dir data)")
        assert_options "$(pod_dir data)" "${line##* }" vers=4.1 rsize=32768 soft timeo=50 "addr=$NFS_ADDRESS"
        assert_node_attributes "$(pod_dir data)" noexec nosuid nodev
        lifecycle_down data
        up data mountOptions=vers=3
        is "$(node_mount_type "$(pod_dir data)")" nfs
        lifecycle_down data
        assert_nothing_left
}

@test "where the node has rpcbind and no rpc.statd, a volume of version 3 can be locked, on this node alone, and the log says so" {
        nfs_driver
        background_ready unshare --mount --propagation private --pid --fork --kill-child bash -c '
                mount -t tmpfs tmpfs /run; rpcbind -f & until rpcinfo -s 127.0.0.1 >/dev/null 2>&1; do sleep 0.1; done; echo ready; wait'
        touch "$EXPORTED/file"
        up data mountOptions=vers=3
        flock --nonblock "$(pod_dir data)/file" true
        assert_options "$(pod_dir data)" "$(node_mount_line "$(pod_dir data)" | sed 's/.* //')" vers=3 nolock
        grep -qF 'without locks (nolock)' "$LOG"
        lifecycle_down data
        assert_nothing_left
}

@test "where the node has no rpcbind, a volume of version 3 has locks of this node alone, unless it wants others, and the log says so" {
        nfs_driver
        local holder
        touch "$EXPORTED/file"
        up data mountOptions=vers=3
        assert_options "$(pod_dir data)" "$(node_mount_line "$(pod_dir data)" | sed 's/.* //')" vers=3 nolock
        grep -qF "mounted $NFS_ADDRESS:$EXPORT without locks (nolock): this node has no rpcbind" "$LOG"
        background_ready flock --nonblock "$(pod_dir data)/file" sh -c 'echo ready; exec sleep 1000'
        holder=$BACKGROUND_PID
        background_ready "$FLEXGRAFT_TOOLS/hold-locks" "$EXPORTED/file" # on the server
        end_process "$BACKGROUND_PID"
        end_process "$holder"
        lifecycle_down data
        make_dir "$(pod_dir data)"
        SPECS[data]=$(spec data "server=$NFS_ADDRESS" "share=$EXPORT" mountOptions=vers=3,lock)
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused "needs rpcbind" "network of the node" "in that network"
        rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "where the node has rpcbind, a volume of version 3 has the locks of the server" {
        nfs_driver
        begin_lock_services $$
        touch "$EXPORTED/file"
        up data mountOptions=vers=3
        run ! grep -q nolock <<<"$(node_mount_line "$(pod_dir data)")"
        run ! grep -qF "without locks" "$LOG"
        background_ready flock --nonblock "$(pod_dir data)/file" sh -c 'echo ready; exec sleep 1000'
        run "$FLEXGRAFT_TOOLS/hold-locks" "$EXPORTED/file" # on the server
        is "$status" 1 && [[ $output == *"temporarily unavailable"* ]]
        end_process "$BACKGROUND_PID"
        lifecycle_down data
        assert_nothing_left
}

@test "two pods share a volume of the driver, and each loses it alone" {
        nfs_driver
        up data
        kubelet_publish data pod-2
        touch "$(pod_dir data)/one"
        [[ -e $(pod_dir data pod-2)/one ]]
        lifecycle_down data
        touch "$(pod_dir data pod-2)/two"
        [[ -e $EXPORTED/two ]]
        kubelet_unpublish data pod-2
        assert_nothing_left
}

# bats test_tags=kernel_too
@test "mount and unmount of the driver's volume said again change nothing" {
        nfs_driver
        up data
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        is "$(node_mounts_at "$(pod_dir data)")" 1
        kubelet_unpublish data
        call unmount "$(pod_dir data)"
        assert_success
        assert_nothing_left
}

@test "what a server says or does not is in the driver's message, and nothing is left" {
        nfs_driver
        TIMEOUTS='"unmount": 2, "device": 3, "command": 5, "call": 8' write_config
        local server share words
        while IFS='|' read -r server share words; do
                SPECS[data]=$(spec data "server=$server" "share=${share:-$EXPORT}")
                make_dir "$(pod_dir data)"
                not_hung call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
                # shellcheck disable=SC2086 # words
                assert_refused "$server" $words
                is "$(node_mounts_at "$(pod_dir data)")" 0
                rmdir "$(pod_dir data)"
        done <<END
$NFS_REFUSING||refused
$NFS_NO_ROUTE||unreachable
$NFS_DOWN||route
$NFS_NO_ANSWER||answer
$NFS_ADDRESS|/srv/none|/srv/none export
END
        assert_nothing_left
}

@test "a dead server's volume is unmounted in time, and the directory is free" {
        nfs_driver
        local dir
        up data
        dir=$(pod_dir data)
        freeze_server
        background cat "$dir/none"
        sleep 0.5
        CALL_TIMEOUT=100 not_hung call unmount "$dir"
        assert_success
        is "$(node_mounts_at "$dir")" 0
        [[ ! -e $dir ]] || rmdir "$dir"
        assert_nothing_left
        thaw_server
        end_process "$BACKGROUND_PID"
}

# bats test_tags=kernel_too
@test "a volume of the driver that names no server or no share is refused" {
        nfs_driver
        SPECS[data]=$(spec data "share=$EXPORT")
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused server
        SPECS[data]=$(spec data "server=$NFS_ADDRESS")
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused share
        rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "the policy says which servers volumes may be of" {
        nfs_driver
        write_policy '"kinds": ["nfs"], "nfsServers": ["10.88.*", "nas.example.org"]'
        SPECS[data]=$(spec data "server=$NFS_ADDRESS" "share=$EXPORT")
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused "$NFS_ADDRESS" policy
        rmdir "$(pod_dir data)"
        write_policy '"kinds": ["nfs"], "nfsServers": ["10.77.0.*"]'
        up data
        lifecycle_down data
        write_policy '"kinds": ["loop"]'
        make_dir "$(pod_dir data)"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_refused nfs
        rmdir "$(pod_dir data)"
        assert_nothing_left
}

@test "a server that the policy lists may refer NFS 4 to one that it does not list, and unmount takes that mount away, too" {
        local listed=10.77.0.3 other=$EXPORT dir
        nfs_driver
        nsenter --target "$NFS_SERVER" --net ip address add "$listed/16" dev br0
        nfs_changed+=' versions'        # it is started again in the end
        stop_server
        in_server rpc.nfsd --host "$NFS_ADDRESS" --host "$NFS_ADDRESS6" --host "$listed" 4
        nfs_changed=${nfs_changed//stopped/}
        echo other >"$EXPORTED/file"
        new_export "share.$BATS_TEST_NUMBER.refers"
        mkdir "$EXPORTED/elsewhere"
        in_server mount --bind "$EXPORTED/elsewhere" "$EXPORTED/elsewhere"       # knfsd refers where a filesystem is mounted
        in_server exportfs -o "ro,no_subtree_check,insecure,fsid=$((BATS_TEST_NUMBER * 10 + 9)),refer=$other@$NFS_ADDRESS" "*:$EXPORT/elsewhere"
        write_policy '"kinds": ["nfs"], "nfsServers": ["'"$listed"'"]'
        lifecycle_up data "server=$listed" "share=$EXPORT"
        dir=$(pod_dir data)
        is "$(cat "$dir/elsewhere/file")" other
        [[ $(findmnt --noheadings --output SOURCE "$dir/elsewhere") == "$NFS_ADDRESS:"* ]]
        lifecycle_down data
        is "$(node_mounts_at "$dir")" 0
        nsenter --target "$NFS_SERVER" --net ip address delete "$listed/16" dev br0
        in_server exportfs -u "*:$EXPORT/elsewhere"
        in_server umount --lazy "$EXPORTED/elsewhere"
        assert_nothing_left
}
