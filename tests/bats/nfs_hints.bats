#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The hints of failures with an NFS server lead somewhere: what each says is done here, and the request then ends with a mount.
#
# The server is the kernel's own (nfs_helpers.bash). A kernel that has no NFS skips all of this; scripts/guest-run has one that has it.
# bats file_tags=kernel,nfs

load helpers
load nfs_helpers
load hints_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        nfs_server_begin
}

teardown_file() {
        nfs_server_end
        schema_validate
}

setup() {
        nfs_needs_kernel
        bed_setup
        needs mount-nfs mount-remove remap-daemon
        nfs_setup
}

teardown() {
        note_test
        nfs_teardown
}

# hints_at OPERATION ERRNO TEXT [MORE]: mount-nfs fails so, with a hint that has this text.
hints_at() {
        local hint
        fails_at "$1" "$2" "${@:4}" || return 1
        hint=$(hint)
        [[ $hint == *"$3"* ]] || { echo "the hint: $hint"; show_last; return 1; }
}

# leads_to_mount [MORE]: mount-nfs succeeds; the mount is removed again.
leads_to_mount() {
        mount_nfs "$@" && in_container touch /data/through-a-hint && remove_nfs && rm "$EXPORTED/through-a-hint"
}

@test "a name that is not known is found in the file that the hint names" {
        start_client plain
        name_server "$NFS_ADDRESS"
        NFS_SOURCE=nowhere.example.org:$EXPORT
        hints_at resolve ENOENT "the container's /etc/hosts" '"timeoutSeconds": 15'
        echo "$NFS_ADDRESS nowhere.example.org" >"$CONTAINER_ROOTFS/etc/hosts"
        leads_to_mount
}

@test "with a name server that answers, in the file that the hint names, the name is found" {
        start_client plain
        NFS_SOURCE=nas.example.org:$EXPORT
        name_server "$NFS_NO_ANSWER"
        hints_at resolve ETIMEDOUT "the container's /etc/resolv.conf" '"timeoutSeconds": 4'
        rm "$CONTAINER_ROOTFS/etc/resolv.conf"
        name_server "$NFS_ADDRESS"
        leads_to_mount
}

@test "where no server listens on a port, the option that the hint names leads to one that does" {
        start_client plain
        hints_at connect ECONNREFUSED '(option port=)' '"timeoutSeconds": 15, "options": "port=1"'
        leads_to_mount '"options": "port=2049"'
        leads_to_mount
}

@test "where no route leads to the server, the container's network that the hint names needs one" {
        start_client plain
        nsenter --target "$CONTAINER_PID" --net ip link set eth0 down
        hints_at connect ENETUNREACH "the container's network" '"timeoutSeconds": 15'
        nsenter --target "$CONTAINER_PID" --net ip link set eth0 up
        leads_to_mount
}

@test "each way that the hint about locks of version 3 names leads to a mount" {
        start_client plain-nouserns
        hints_at 'start lockd' ECONNREFUSED,ENETUNREACH 'leave out "lock"' '"options": "vers=3,lock"'
        leads_to_mount '"options": "vers=3"'
        leads_to_mount '"options": "vers=3,nolock"'
        leads_to_mount '"options": "vers=4.2,lock"'
        begin_lock_services "$CONTAINER_PID"
        leads_to_mount '"options": "vers=3,lock"'
}

@test "without the version that the server does not speak, as the hint says, there is a mount" {
        local version
        start_client plain
        for version in 4.2 3; do
                server_speaks_not "$version"
                hints_at fsconfig EPROTONOSUPPORT 'leave the version out' "\"options\": \"vers=$version\", \"timeoutSeconds\": 15"
                leads_to_mount
        done
}

@test "a client that the server's exports do not list is let in once they do, as the hint says" {
        start_client plain
        in_server exportfs -u "*:$EXPORT"
        export_again '' 10.77.250.250
        hints_at fsconfig EACCES 'exports(5) on the server' '"options": "vers=3", "timeoutSeconds": 15'
        export_again '' "$NFS_CLIENT"
        leads_to_mount '"options": "vers=3"'
        leads_to_mount
}

@test "a directory that the server does not have is found in the list of exports that the hint names" {
        local listed
        start_client plain
        NFS_SOURCE=$NFS_ADDRESS:$EXPORT.gone
        hints_at fsconfig ENOENT 'exportfs -v' '"timeoutSeconds": 15'
        listed=$(in_server exportfs -v)
        [[ $listed == *"$EXPORT"* ]]
        NFS_SOURCE=$NFS_ADDRESS:$(grep -oE "^$EXPORT\$|^$EXPORT " <<<"$listed" | head -n 1 | tr -d ' ')
        leads_to_mount
}

@test "version 3 where the server has no port mapper is mounted with the ports that the hint names" {
        another_server
        start_client plain
        in_server pkill -x rpcbind
        hints_at fsconfig ECONNREFUSED 'the options port and mountport' '"options": "vers=3", "timeoutSeconds": 15'
        leads_to_mount '"options": "vers=3,port=2049,mountport=20048"'
}

@test "a server that refuses a client's port is mounted from one below 1024, as the hint says" {
        start_client plain
        in_server exportfs -u "*:$EXPORT"
        export_again secure
        hints_at fsconfig EPERM 'a port below 1024' '"options": "vers=4.2,noresvport", "timeoutSeconds": 15'
        leads_to_mount '"options": "vers=4.2"'
}

@test "each value of ids that a hint names leads to a mount of the export" {
        local ids word hint words
        start_client plain
        for ids in idmapped userns; do
                helper mount-nfs "$(nfs_request "\"ids\": \"$ids\"")"
                if [[ $status == 0 ]]; then
                        remove_nfs
                        continue
                fi
                hint=$(hint)
                mapfile -t words < <(grep -oE '"(auto|idmapped|userns|remap|host)"' <<<"$hint" | sort -u | grep -vF "\"$ids\"")
                ((${#words[@]} > 0)) || { echo "no way after $ids: $hint"; false; }
                for word in "${words[@]}"; do
                        leads_to_mount "\"ids\": $word"
                done
        done
}

@test "each hint about NFS was followed" {
        # shellcheck disable=SC2034 # check_hints reads it by its name
        local -A reasons=()
        check_hints without reasons mount/nfs.c
        check_hints with reasons mount/nfs.c
}
