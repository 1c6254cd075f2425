#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# remap-memory.sh - what each mount with "ids": "remap" costs in memory: its two processes, what these share, and what the
# kernel has for them. Counted by a control group of its own (with the memory controller), which all of them are in: what
# else runs on the node does not show.
#
#   MOUNTS=50 tests/bench/remap-memory.sh
#
# SERVER: the source is served by bindfs, as that of a server: no passthrough. MOUNTS: how many (50); FILES: what a find(1) looks at in each (1000); MEBIBYTES: what is then written and read in each (4).
# What the kernel keeps of looked up files (inodes, names) it drops when memory is short, and then the daemon closes them.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ -z ${FLEXGRAFT_BENCH_UNSHARED:-} ]]; then
        FLEXGRAFT_BENCH_UNSHARED=1 exec unshare --mount "$0" "$@"
fi
bin=${FLEXGRAFT_BIN:-$PWD/bin}
tools=${FLEXGRAFT_TOOLS:-$PWD/build/tools}
mounts=${MOUNTS:-50} files=${FILES:-1000} mebibytes=${MEBIBYTES:-4}

# the group of this process: of version 1, or of 2
if [[ -e /sys/fs/cgroup/memory/cgroup.procs ]]; then
        parent=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
        kernel() { cat "$group/memory.kmem.usage_in_bytes"; }
        own=rss
else
        parent=/sys/fs/cgroup
        grep -qw memory "$parent/cgroup.subtree_control" || { echo "no memory controller" >&2 && exit 1; }
        kernel() { sed -n 's/^kernel //p' "$group/memory.stat"; }
        own=anon
fi
group=$parent/flexgraft-bench.$$
work=$(mktemp -d /var/tmp/flexgraft-bench-memory.XXXXXX)
monitor='' server=''
cleanup() {
        set +e
        echo $$ >"$parent/cgroup.procs"
        [[ -z $monitor ]] || { kill "$monitor" && wait "$monitor"; } 2>/dev/null
        [[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null
        # the daemons end with the container
        for _ in {1..600}; do
                rmdir "$group" 2>/dev/null && break
                sleep 0.1
        done
        rm -rf --one-file-system "$work"
}
trap cleanup EXIT

chmod 0711 "$work"
mkdir -p "$work"/{source/many,rootfs/{proc,sys,dev,tmp},state}
chown -R 100000:100000 "$work/rootfs"
printf '{"stateDir": "%s"}\n' "$work/state" >"$work/config.json"
export FLEXGRAFT_CONFIG=$work/config.json
(cd "$work/source/many" && seq --format 'file.%g' "$files" | xargs touch)
source=$work/source
if [[ -n ${SERVER:-} ]]; then
        source=$work/server
        mkdir "$source"
        bindfs -f "$work/source" "$source" &
        server=$!
        until mountpoint -q "$source"; do sleep 0.1; done
fi
mkdir "$group"
echo $$ >"$group/cgroup.procs"

exec {fd}< <(exec "$tools/container-init" "$work/rootfs")
monitor=$!
read -r container <&"$fd"

# of the group, in KiB
look() {
        now=($(($(sed -n "s/^$own //p" "$group/memory.stat") / 1024))
                $(($(sed -n 's/^shmem //p' "$group/memory.stat") / 1024))
                $(($(kernel) / 1024)))
}
report() {
        look
        local part line='' sum=0 each
        for part in 0 1 2; do
                each=$(((now[part] - before[part]) / mounts))
                sum=$((sum + each))
                line+=$(printf ' %9d' "$each")
        done
        printf '%-36s%s %9d\n' "$1" "$line" "$sum"
}
# in_each COMMAND: with $here as the mount, in the container's user namespace
in_each() {
        nsenter --user --target "$container" bash -c "for ((i = 1; i <= $mounts; i++)); do here=/proc/$container/root/m\$i; $1; done"
}
mount_one() {
        "$bin/mount-bind" "{\"container\": $container, \"source\": \"$source\", \"target\": \"/m$1\", \"ids\": \"remap\"}" >"$work/reply" || {
                cat "$work/reply" >&2
                exit 1
        }
}
mount_one 0 # what is there once
look
before=("${now[@]}")
for ((i = 1; i <= mounts; i++)); do mount_one "$i"; done
printf '%-36s %9s %9s %9s %9s\n' "KiB a mount, of $mounts" own shared kernel all
report 'mounted'
in_each "find \"\$here\" -size +1k >/dev/null"
report "find over $files files"
in_each "head -c ${mebibytes}M /dev/zero | dd of=\"\$here/written\" bs=1M iflag=fullblock status=none; cat \"\$here/written\" >/dev/null; rm \"\$here/written\""
report "$mebibytes MiB written and read"
sleep 2
report '2 seconds later'
in_each "for j in 1 2 3 4; do find \"\$here\" -size +1k >/dev/null & done; wait"
report 'find by four processes'
