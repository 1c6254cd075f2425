#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# remap.sh - remap beside an id-mapped mount of the same filesystem, bindfs and fuse-overlayfs, in one run. Ratios: how many times the
# work of the id-mapped mount. Then the processor time of the client and the daemon, whose goal is less than bindfs takes,
# and how often the client waits for an answer. bindfs lets the kernel believe each name for a second, and so shows a file
# that is not there any more; "bindfs, 0 s" does not, as remap: both ask once more for each unlink(2), open(2) of a file that
# is there, and name of a rename(2) that is, so that these are to be compared;
# "remap, always" is told that nobody else changes anything ("cache": "always").
#
#   ROUNDS=5 tests/bench/remap.sh      (scripts/bench calls it)
#
# MEBIBYTES: of the large file (512); FILES: how many small ones (2000); FILESYSTEM: ext4 (on a loop device) or tmpfs.
# CPUS: what to run on, as for taskset. On one (CPUS=1) none is woken from its sleep, which takes longer than most requests
# and happens more or less often with what else runs: there the work of each request is compared.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ -z ${FLEXGRAFT_BENCH_UNSHARED:-} ]]; then
        FLEXGRAFT_BENCH_UNSHARED=1 exec unshare --mount "$0" "$@"
fi
bin=${FLEXGRAFT_BIN:-$PWD/bin}
bench=${FLEXGRAFT_BENCH:-$PWD/build/bench}/remap
tools=${FLEXGRAFT_TOOLS:-$PWD/build/tools}
mebibytes=${MEBIBYTES:-512}
[[ -z ${CPUS:-} ]] || taskset --pid --cpu-list "$CPUS" $$ >/dev/null
work=$(mktemp -d /var/tmp/flexgraft-bench-remap.XXXXXX)
loop='' monitor=''
others=() # processes
cleanup() {
        set +e
        [[ -z $monitor ]] || { kill "$monitor" && wait "$monitor"; } 2>/dev/null
        local process
        for process in "${others[@]}"; do
                { kill "$process" && wait "$process"; } 2>/dev/null
        done
        umount -l "$work"/{bindfs,bindfs0,overlayfs} 2>/dev/null
        for _ in {1..100}; do
                umount "$work/source" 2>/dev/null && break
                mountpoint -q "$work/source" || break
                sleep 0.1
        done
        [[ -z $loop ]] || losetup --detach "$loop"
        rm -rf --one-file-system "$work"
}
trap cleanup EXIT

chmod 0711 "$work"
mkdir -p "$work"/{source,bindfs,bindfs0,overlayfs,rootfs/{proc,sys,dev,tmp}} "$work/state"
chown -R 100000:100000 "$work/rootfs"
printf '{"stateDir": "%s"}\n' "$work/state" >"$work/config.json"
export FLEXGRAFT_CONFIG=$work/config.json
if [[ ${FILESYSTEM:-ext4} == tmpfs ]]; then
        mount -t tmpfs -o "size=$((mebibytes + 512))m" tmpfs "$work/source"
else
        truncate --size "$((mebibytes * 3 + 512))M" "$work/image"
        mkfs.ext4 -q -E lazy_itable_init=1 -N 100000 "$work/image"
        loop=$(losetup --find --show --direct-io=on "$work/image" 2>/dev/null || losetup --find --show "$work/image")
        mount "$loop" "$work/source"
fi

exec {fd}< <(exec "$tools/container-init" "$work/rootfs")
monitor=$!
read -r container <&"$fd"

# into SOURCE TARGET IDS [MORE]: a call of mount-bind that must succeed.
into() {
        local reply
        reply=$("$bin/mount-bind" "{\"container\": $container, \"source\": \"$1\", \"target\": \"$2\", \"ids\": \"$3\"${4:+, $4}}") || {
                echo "$reply" >&2
                exit 1
        }
}
mkdir "$work/source"/{direct,remap,always,bindfs,bindfs0,overlayfs,lower,work}
into "$work/source/direct" /direct idmapped
# daemon [PID]: the remap-daemon that serves this container, other than PID.
daemon() {
        local process
        for process in /proc/[0-9]*; do
                [[ $(<"$process/comm") == remap-daemon && $(readlink "$process/fd/5") == "/proc/$container" &&
                        $process != "/proc/${1-}" ]] && echo "${process#/proc/}" && return
        done 2>/dev/null
        echo "no remap-daemon serves container $container" >&2
        return 1
}
into "$work/source/remap" /remap remap
server=$(daemon)
into "$work/source/always" /always remap '"cache": "always"'
dirs=(id-mapped=/direct "remap=/remap@$server" "remap, always=/always@$(daemon "$server")")
# serve DIR NAME COMMAND...: one more directory, which COMMAND serves.
serve() {
        # a session of its own, as a daemon has: with automatic groups of the scheduler each costs
        setsid "${@:3}" "$work/$1" &
        others+=($!)
        until mountpoint -q "$work/$1"; do sleep 0.1; done
        into "$work/$1" "/$1" host
        dirs+=("$2=/$1@${others[-1]}")
}
if [[ -n $(type -P bindfs) ]]; then
        map=(--uid-offset=100000 --gid-offset=100000 --xattr-rw)
        serve bindfs bindfs bindfs -f "${map[@]}" "$work/source/bindfs"
        serve bindfs0 "bindfs, 0 s" bindfs -f "${map[@]}" -o entry_timeout=0 "$work/source/bindfs0"
fi
if [[ -n $(type -P fuse-overlayfs) ]]; then
        ids=uidmapping=0:100000:65536,gidmapping=0:100000:65536
        serve overlayfs fuse-overlayfs fuse-overlayfs -f \
                -o "$ids,lowerdir=$work/source/lower,upperdir=$work/source/overlayfs,workdir=$work/source/work"
fi
echo "remap over ${FILESYSTEM:-ext4}: medians of ${ROUNDS:-5} rounds, $mebibytes MiB, ${FILES:-2000} small files"
"$bench" "${ROUNDS:-5}" "$mebibytes" "${FILES:-2000}" "${dirs[@]}" "$container"
