# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# An NFS server for the tests: the kernel's own, in namespaces of its own, reachable only from containers that are joined to its network.
#
# After `load helpers` and `load nfs_helpers`: setup_file() calls nfs_server_begin, teardown_file() nfs_server_end; setup() calls bed_setup
# and nfs_setup, teardown() calls nfs_teardown alone. Each test has an export of its own.
#
#   10.77.0.1, fd77::1     the server: NFS 3, 4.0, 4.1, 4.2; mountd on port 20048; names on port 53
#   10.77.0.2, fd77::2     the same machine, where no NFS is served: connections are refused
#   10.77.0.1 port 2050    takes connections and says nothing
#   10.77.0.66             gets every packet and answers none
#   10.77.0.77             there is no such machine
#   192.0.2.1              no route leads there
NFS_ADDRESS=10.77.0.1 NFS_ADDRESS6=fd77::1 NFS_REFUSING=10.77.0.2 NFS_SILENT_PORT=2050 NFS_NO_ANSWER=10.77.0.66 NFS_DOWN=10.77.0.77
NFS_NO_ROUTE=192.0.2.1

# So many seconds after the network or the server of a mount is gone, nothing waits for it any more: requests are given up after ten
# seconds without an answer, several times one after the other, and slowly in an emulated machine.
NFS_FORCED=90
export LINGER=$NFS_FORCED

# nfs_server_begin: the server, for all tests of a file. NFS_SERVER is the first process in its namespaces, NFS_ROOT the directory that is
# its root for exports. On a kernel without NFS, or a machine without these programs, there is none, and each test is skipped
# (nfs_needs_kernel); in the guest, which has both, that is a failure.
nfs_server_begin() {
        nfs_kernel_is_ready || {
                if [[ -e /run/guest-run ]]; then
                        echo "this kernel should have NFS, but has not"
                        return 1
                fi
                return 0
        }
        local program
        for program in rpcbind nfsdcld rpc.mountd rpc.statd rpc.nfsd exportfs dnsmasq ip tc; do
                [[ -z $(type -P "$program") ]] || continue
                [[ -e /run/guest-run ]] || return 0
                echo "$program is missing: see in-guest in scripts/install-deps"
                return 1
        done
        export NFS_ROOT NFS_SERVER NFS_MONITOR
        nfs_start "$BATS_FILE_TMPDIR/nfs"
}

nfs_needs_kernel() {
        [[ -n ${NFS_SERVER:-} ]] || skip "this kernel has no NFS, or this machine no server's programs"
}

# nfs_start DIR [OPTION...]: a server in namespaces of its own, in DIR, which is made, with these options of mountd.
nfs_start() {
        local dir=$1
        NFS_ROOT=$dir/root NFS_SERVER=''
        mkdir -p "$NFS_ROOT/srv/always"
        nfs_write_server_files "$dir"
        unshare --net --mount --pid --fork --mount-proc --propagation private --kill-child \
                bash "$dir/server" "$dir" "$FLEXGRAFT_TOOLS/container-init" "${@:2}" >"$dir/log" 2>&1 </dev/null 3>&- &
        NFS_MONITOR=$!
        until grep -qs '^ready$' "$dir/log"; do
                [[ -e /proc/$NFS_MONITOR/root ]] || { echo "the NFS server did not start:" && cat "$dir/log"; return 1; }
                sleep 0.05
        done
        read -r NFS_SERVER _ <"/proc/$NFS_MONITOR/task/$NFS_MONITOR/children" || [[ -n $NFS_SERVER ]]       # the line has no end
}

nfs_kernel_is_ready() {
        local name
        modprobe --all nfsd nfs nfsv3 nfsv4 veth bridge sch_netem 2>/dev/null || :     # or built in
        for name in nfs nfs4 nfsd; do
                grep -qw "$name" /proc/filesystems || return 1
        done
}

# nfs_write_server_files DIR: the server's first program, its configuration, its users and the names that its DNS server knows.
nfs_write_server_files() {
        printf '[exports]\nrootdir=%s\n[mountd]\nport=20048\n' "$NFS_ROOT" >"$1/nfs.conf"
        cat >"$1/hosts" <<END
$NFS_ADDRESS nas.example.org
$NFS_ADDRESS6 nas6.example.org
$NFS_NO_ANSWER several.example.org
$NFS_REFUSING several.example.org
$NFS_ADDRESS several.example.org
fd77::2 dual.example.org
$NFS_ADDRESS dual.example.org
END
        # With mountd's manage-gids these count, and not the groups that a client tells: the user 1000 is in 2001 to 2030.
        { awk -F: '$3 != 1000' /etc/passwd && echo 'many:x:1000:1000::/:'; } >"$1/passwd"
        { awk -F: '$3 != 1000 && ($3 < 2001 || $3 > 2030)' /etc/group && seq 2001 2030 | sed 's/.*/group&:x:&:many/'; } >"$1/group"
        cat >"$1/server" <<'END'
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/nfs
mkdir /var/lib/nfs/{rpc_pipefs,nfsdcld,sm,sm.bak,v4recovery}
touch /var/lib/nfs/{rmtab,etab,xtab}
mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
mount -t nfsd nfsd /proc/fs/nfsd
for file in nfs.conf passwd group; do
        mount --bind "$1/$file" "/etc/$file"
done
ip -batch - <<IP
link set lo up
link add br0 type bridge
addr add 10.77.0.1/16 dev br0
addr add 10.77.0.2/16 dev br0
addr add fd77::1/64 dev br0 nodad
addr add fd77::2/64 dev br0 nodad
link set br0 up
IP
rpcbind
nfsdcld         # who has what open survives a restart of the server
rpc.mountd "${@:3}"
rpc.statd --no-notify
dnsmasq --conf-file=/dev/null --pid-file= --user=root --no-resolv --no-hosts --addn-hosts="$1/hosts" --local=/example.org/ \
        --domain-needed --local=// --txt-record=empty.example.org,nothing --cname=alias.example.org,nas.example.org
busybox nc -ll -p 2050 -e sleep 1000000 &
exportfs -o ro,no_subtree_check,fsid=1 '*:/srv/always'  # there is always one: otherwise its clients remember for a while that there is none
echo 10 >/proc/fs/nfsd/nfsv4leasetime
echo 10 >/proc/fs/nfsd/nfsv4gracetime
echo 1 >/proc/sys/fs/nfs/nlm_grace_period       # NFS 4's locks wait for that, too
rpc.nfsd --host 10.77.0.1 --host fd77::1 4
echo ready
exec "$2" --pause 1     # it is the first process of these, and reaps them
END
}

nfs_server_end() {
        [[ -n ${NFS_SERVER:-} ]] || return 0
        in_server rpc.nfsd 0 || :
        kill -KILL "$NFS_MONITOR" "$NFS_SERVER" 2>/dev/null || :
        wait "$NFS_MONITOR" 2>/dev/null || :
}

# another_server [OPTION...]: until teardown, such a one takes the place of the file's, which goes on; with an export for the test.
another_server() {
        nfs_first_server=("$NFS_SERVER" "$NFS_MONITOR" "$NFS_ROOT")
        nfs_start "$BATS_TEST_TMPDIR/nfs" "$@"
        new_export "share.$BATS_TEST_NUMBER"
}

# second_server [OPTION...]: beside the file's server, which may be frozen, until teardown, one at 10.78.0.1 that the node reaches (join_node before), with an
# export for the test: EXPORT and EXPORTED are of it. NFS_SECOND is its address.
second_server() {
        local frozen=$nfs_changed
        NFS_SECOND=10.78.0.1
        another_server "$@"
        nfs_changed=$frozen
        in_server rpc.nfsd 0
        in_server ip addr add "$NFS_SECOND/16" dev br0
        in_server rpc.nfsd --host "$NFS_SECOND" 4
        nsenter --target "$NFS_SERVER" --net ip -batch - <<END
link add v.node type veth peer name nfs1 netns $$
link set v.node master br0 up
END
        ip -batch - <<END
addr add 10.78.255.1/16 dev nfs1
link set nfs1 up
END
}

# thaw_first: the file's server, beside which there is a second one.
thaw_first() {
        nfs_changed=${nfs_changed//frozen/}
        nsenter --target "${nfs_first_server[0]}" --net tc qdisc delete dev br0 root
        wait_until 30 takes_connections "$NFS_ADDRESS" # who asked for an address in vain is told for some seconds that there is no route
}

takes_connections() {
        # shellcheck disable=SC2016 # its own shell has them
        timeout 10 bash -c ': <>"/dev/tcp/$1/2049"' - "$1" 2>/dev/null
}

# in_server COMMAND...: there, as root.
in_server() {
        nsenter --target "$NFS_SERVER" --mount --net --pid -- "$@" 3>&-
}

# nfs_setup: an export for the test: EXPORT is its path on the server, EXPORTED the same directory on the node. Everybody may write in it.
nfs_setup() {
        nfs_changed='' nfs_links=0 nfs_exports=0 nfs_node_link='' nfs_first_server=() NFS_SOURCE=''
        new_export "share.$BATS_TEST_NUMBER"
}

# nfs_teardown [FUNCTION]: the server serves again as at the beginning, so that nothing hangs in what follows; then FUNCTION, or driver_teardown
# or bed_teardown.
nfs_teardown() {
        local pid target
        [[ -n ${NFS_SERVER:-} ]] || return 0
        if ((${#nfs_first_server[@]} > 0)); then
                for pid in "${!bed_kind[@]}"; do
                        stop_container "$pid"           # while its server answers
                done
                wait_until "$NFS_FORCED" no_remap_processes
                nfs_server_end
                NFS_SERVER=${nfs_first_server[0]} NFS_MONITOR=${nfs_first_server[1]} NFS_ROOT=${nfs_first_server[2]}
        fi
        [[ $nfs_changed != *frozen* ]] || thaw_server
        [[ $nfs_changed != *versions* ]] || stop_server
        [[ $nfs_changed != *stopped* ]] || start_server
        if [[ -n $nfs_node_link ]]; then
                while read -r target; do                # as above; umount.nfs would have questions, and wait for an answer
                        umount --internal-only --lazy "$target" || :
                done < <(mounts_here | tac)
                ip link delete "$nfs_node_link" || :
        fi
        if [[ -n ${DRIVER:-} ]]; then
                driver_teardown
        else
                "${1:-bed_teardown}"
        fi
}

# new_export NAME [OPTIONS [CLIENTS]]: /srv/NAME, to all clients; root is not squashed unless OPTIONS say so.
new_export() {
        EXPORT=/srv/$1 EXPORTED=$NFS_ROOT/srv/$1
        mkdir "$EXPORTED"
        chmod 1777 "$EXPORTED"
        export_again "${2:-}" "${3:-*}"
}

# export_again [OPTIONS [CLIENTS]]: $EXPORT with other options.
export_again() {
        in_server exportfs -o "rw,no_root_squash,no_subtree_check,insecure,fsid=$((BATS_TEST_NUMBER * 10 + 2 + nfs_exports++))${1:+,$1}" "${2:-*}:$EXPORT"
}

# ---- the network

# join_server: the current container's network namespace is joined to the server's, by eth0. NFS_CLIENT is its address, NFS_LINK the
# server's end.
join_server() {
        local host=$((BATS_TEST_NUMBER % 250 + 1)).$((++nfs_links))
        NFS_CLIENT=10.77.$host NFS_LINK=v.$host
        nsenter --target "$NFS_SERVER" --net ip -batch - <<END
link add $NFS_LINK type veth peer name eth0 netns $CONTAINER_PID
link set $NFS_LINK master br0 up
END
        nsenter --target "$CONTAINER_PID" --net ip -batch - <<END
link set lo up
addr add $NFS_CLIENT/16 dev eth0
addr add fd77::${host/./:}/64 dev eth0 nodad
link set eth0 up
neigh add $NFS_NO_ANSWER lladdr 02:00:00:00:00:66 dev eth0
END
}

# no_node_link: that of another file's server, which has ended, goes with the network of that server. The kernel takes that apart later: when
# nothing waits for the server any more, which may be minutes.
no_node_link() {
        ip link delete nfs0 2>/dev/null || ! ip link show nfs0 >/dev/null 2>&1
}

# join_node: the node itself, until teardown.
join_node() {
        wait_until 10 no_node_link
        nfs_node_link=nfs0
        nsenter --target "$NFS_SERVER" --net ip -batch - <<END
link add v.node type veth peer name nfs0 netns $$
link set v.node master br0 up
END
        ip -batch - <<END
addr add 10.77.255.1/16 dev nfs0
link set nfs0 up
neigh add $NFS_NO_ANSWER lladdr 02:00:00:00:00:66 dev nfs0
END
}

# start_client KIND [BASE]: start_container, joined to the server, with tools for the tests in its /bin.
start_client() {
        start_container "$@"
        cp "$FLEXGRAFT_TOOLS/as-user" "$FLEXGRAFT_TOOLS/file-storm" "$CONTAINER_ROOTFS/bin/"
        join_server
}

# name_server ADDRESS [LINE...]: the container's resolv.conf.
name_server() {
        printf '%s\n' "nameserver $1" "${@:2}" >"$CONTAINER_ROOTFS/etc/resolv.conf"
}

# begin_lock_services PID: until teardown, what locks of NFS 3 need in the network of a client; containers have none, so that nolock is the default.
begin_lock_services() {
        background_ready nsenter --target "$1" --net unshare --mount --propagation private --pid --fork --kill-child bash -c '
                mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/lib/nfs; mkdir /var/lib/nfs/{sm,sm.bak}
                rpcbind -f & until rpcinfo -s 127.0.0.1 >/dev/null 2>&1; do sleep 0.1; done
                rpc.statd -F --no-notify & until rpcinfo -t 127.0.0.1 status >/dev/null 2>&1; do sleep 0.1; done
                echo ready; wait'
}

# link_is_gone LINK: true when nothing has the network namespace any more that the link led to: no process, and no NFS mount.
link_is_gone() {
        ! nsenter --target "$NFS_SERVER" --net ip link show "$1" >/dev/null 2>&1
}

# ---- what may happen to a server

# freeze_server: nothing that it sends arrives. thaw_server.
freeze_server() {
        nfs_changed+=' frozen'
        nsenter --target "$NFS_SERVER" --net tc qdisc replace dev br0 root netem loss 100%
}

thaw_server() {
        nfs_changed=${nfs_changed//frozen/}
        nsenter --target "$NFS_SERVER" --net tc qdisc delete dev br0 root
}

# stop_server: connections end, and are refused. start_server [VERSION...]: again, without these versions.
stop_server() {
        nfs_changed+=' stopped'
        in_server rpc.nfsd 0
}

start_server() {
        nfs_changed=${nfs_changed//stopped/}
        in_server rpc.nfsd --host "$NFS_ADDRESS" --host "$NFS_ADDRESS6" "${@/#/--no-nfs-version=}" 4
}

# server_speaks_not VERSION...: until teardown.
server_speaks_not() {
        stop_server
        start_server "$@"
        nfs_changed+=' versions'
}

# ---- asking

# nfs_request [MORE]: of mount-nfs, for the current container, of $NFS_SOURCE or the test's export, on /data.
nfs_request() {
        printf '{"container": %s, "source": "%s", "target": "/data"%s}' "$CONTAINER_PID" "${NFS_SOURCE:-$NFS_ADDRESS:$EXPORT}" "${1:+, $1}"
}

# mount_nfs [MORE]: does it, and must succeed.
mount_nfs() {
        helper mount-nfs "$(nfs_request "$@")"
        assert_success
}

# nfs_mapping: what "ids": "auto" has to be for a container with a user namespace, as this kernel has it: userns, or else remap.
nfs_mapping() {
        local can=0
        nsenter --target "$CONTAINER_PID" --net "$FLEXGRAFT_TOOLS/kernel-can" nfs-userns "$NFS_ADDRESS" "$NFS_CLIENT" "$EXPORT" || can=$?
        case $can in
        0) echo userns ;;
        1) echo remap ;;
        *) echo "kernel-can cannot tell: $can" ;;
        esac
}

remove_nfs() {
        helper mount-remove "$(remove_request /data)"
        assert_success && assert_mounts_at /data 0
}

# fails_at OPERATION ERRNO [MORE]: so mount-nfs does, before a minute is over, and leaves nothing behind.
fails_at() {
        local errno
        container_snapshot
        node_snapshot
        not_hung helper mount-nfs "$(nfs_request "${@:3}")"
        assert_failure || return 1
        assert_field .error.operation "$1" || return 1
        errno=$(json_field .error.errno)
        [[ ,$2, == *,"$errno",* ]] || is "$errno" "$2" errno || return 1
        assert_nothing_left_of_nfs && assert_container_unchanged && assert_node_unchanged
}

# ---- locks

# locker COMMAND WHO KIND: LOCKER is that of fs-calls (lock, try) for a lock of that kind on the file `locked` of the export, by a process of
# WHO: `server`, or a container, by its pid, with the export at /data and fs-calls in /bin.
locker() {
        if [[ $2 == server ]]; then
                LOCKER=("$FLEXGRAFT_TOOLS/fs-calls" "$1" "$3" "$EXPORTED/locked")
                return
        fi
        use_container "$2"
        container_letters "$CONTAINER_KIND"
        LOCKER=("$FLEXGRAFT_TOOLS/enter" "$2" "nui$bed_letters" /bin/fs-calls "$1" "$3" /data/locked)
}

# lock_is held|free WHO KIND
lock_is() {
        locker try "${@:2}"
        [[ $("${LOCKER[@]}" 3>&-) == "$1" ]]
}

# locks_exclude "WHO KIND"...: while one has its lock none gets another, itself included; and each does when it is let go.
locks_exclude() {
        local one other first
        : >>"$EXPORTED/locked"
        chmod 0666 "$EXPORTED/locked"
        for one; do
                # shellcheck disable=SC2086 # two words
                locker lock $one
                background_ready "${LOCKER[@]}"
                first=$BACKGROUND_PID
                for other; do
                        # shellcheck disable=SC2086 # two words
                        lock_is held $other || { echo "$one has a lock, and $other got another"; return 1; }
                done
                end_process "$first"
                for other; do
                        # shellcheck disable=SC2086 # two words
                        wait_until 10 lock_is free $other || { echo "$one let its lock go, and $other gets none"; return 1; }
                done
        done
}

# ---- what must hold

# remap_processes: the process ids of all keepers and daemons.
remap_processes() {
        local file name
        for file in /proc/[0-9]*/comm; do
                { read -r name <"$file"; } 2>/dev/null || continue
                [[ $name != remap-keeper && $name != remap-daemon ]] || { file=${file%/comm} && echo "${file#/proc/}"; }
        done
}

no_remap_processes() {
        [[ -z $(remap_processes) ]]
}

# nfs_superblocks [PID]: how many NFS filesystems there are in its network namespace.
nfs_superblocks() {
        grep -c '^v[34]' "/proc/${1:-$CONTAINER_PID}/net/nfsfs/volumes" || :
}

has_no_superblocks() {
        (($(nfs_superblocks "$@") == 0))
}

# show_remap_processes: those that run, and where in the kernel they wait; fails, so that the test does.
show_remap_processes() {
        ps -o pid,ppid,stat,wchan:30,comm,args -p "$(remap_processes | paste -sd,)"
        return 1
}

# assert_nothing_left_of_nfs: no remap daemon, no NFS filesystem in the container's network namespace. Either may take a moment to end.
assert_nothing_left_of_nfs() {
        wait_until "$NFS_FORCED" no_remap_processes || show_remap_processes || return 1
        [[ ! -e /proc/$CONTAINER_PID/net/nfsfs ]] || wait_until 5 has_no_superblocks || { cat "/proc/$CONTAINER_PID/net/nfsfs/volumes"; return 1; }
}

# nfs_options PATH: of the filesystem that the container has mounted there, as its kernel says them.
nfs_options() {
        local line
        line=$(mount_line "$1")
        echo "${line##* }"
}

# process_state PID: D, S, Z ...; nothing for none.
process_state() {
        sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null || :
}
