#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Regions of persistent memory whose modules have no labels yet, and that other modules renumber: what one machine cannot have that does
# not start anew. Each test starts virtual machines, one after the other, with the same modules.

load helpers
load docs_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs volume-create volume-delete volume-list volume-capacity flexdriver verbs/pmem-namespaces
        [[ ! -e /run/guest-run ]] || skip "this is a virtual machine already"
        STORE=$(mktemp -d "$FLEXGRAFT_REPO/build/pmem.XXXXXX") # pieces of this file run side by side
        mkdir -p "$STORE/kept/pools"
        truncate -s 66M "$STORE/first"
        truncate -s 98M "$STORE/second"
        truncate -s 130M "$STORE/third"
        echo '{"stateDir": "/tmp/state", "nodeName": "node", "log": "/tmp/log"}' >"$STORE/kept/config.json"
        cat >"$STORE/kept/begin" <<'END'
set -uo pipefail
export FLEXGRAFT_POOLS=/tmp/pools FLEXGRAFT_CONFIG=$KEPT/config.json
cp -a "$KEPT/pools" /tmp
[[ ! -e $KEPT/state ]] || cp -a "$KEPT/state" /tmp
udevadm settle 2>/dev/null
driver=/tmp/exec/flexgraft~pmem/pmem
mkdir -p "${driver%/*}/verbs"
cp "$FLEXGRAFT_BIN/flexdriver" "$driver"
cp "$FLEXGRAFT_BIN"/verbs/* "${driver%/*}/verbs"
keep() { rm -rf "$KEPT/state"; cp -a /tmp/state "$KEPT"; }
try() { local program=$1; shift; "$FLEXGRAFT_BIN/$program" "$@" 2>>/tmp/errors || { cat /tmp/errors; return 1; }; }
field() { jq -r "$1" || echo "no JSON"; }
label() { ndctl disable-region all && ndctl init-labels --force all && ndctl enable-region all; } >/dev/null 2>&1
bytes_of() { cat "/sys/bus/nd/devices/$1/size"; }
iset_of() { ndctl list --regions --region "$1" --human | jq -r 'if type == "array" then .[0] else . end | .iset_id'; }
END
}

teardown() {
        [[ -z ${STORE:-} ]] || rm -rf "$STORE"
        bed_teardown
}

# pool NAME MEMBERS: a pool of persistent memory.
pool() {
        echo "{\"type\": \"pmem\", $2}" >"$STORE/kept/pools/$1.json"
}

# boot "MODULE..." SCRIPT: a machine with these modules runs the script. What is said is in `said`; the state directory stays for the next.
boot() {
        local module arguments=()
        for module in $1; do
                arguments+=(--nvdimm "$STORE/$module")
        done
        printf '%s\n' '. "$KEPT/begin"' "$2" keep >"$STORE/kept/script"
        run "$FLEXGRAFT_REPO/scripts/guest-run" --timeout 200 --writable "$STORE/kept" "${arguments[@]}" \
                env "KEPT=$STORE/kept" "FLEXGRAFT_BIN=$FLEXGRAFT_BIN" bash "$STORE/kept/script"
        said=$output
        is "$status" 0 "exit status of the machine, which said: $said"
}

@test "of a region without labels the failure says so, with what to do, and after what docs/pools.md says a volume is made" {
        pool memory '"region": "region0"'
        pool group '"region": "region0", "mode": "lvm", "maxPercent": 50'
        blocks docs/pools.md 'sh labels' >"$STORE/kept/commands"
        boot first '
                for name in memory group; do
                        try volume-create "{\"name\": \"data\", \"size\": \"16m\", \"pool\": \"$name\"}" >/tmp/reply
                        field "\"\(.error.operation): \(.message) | \(.error.hint)\"" </tmp/reply
                done
                try volume-capacity "{\"pool\": \"memory\"}" | field ".pools[0].problem"
                echo "disks: $(try volume-list "{\"pool\": \"memory\"}" | field "[.disks[].id] | join(\" \")")"
                bash -euo pipefail "$KEPT/commands" && echo typed
                try volume-create "{\"name\": \"data\", \"size\": \"16m\", \"pool\": \"memory\"}" | field .status'
        echo "$said"
        is "$(grep -c 'the region has no labels' <<<"$said")" 3
        [[ $said == *'disks: namespace0.0'* ]]
        is "$(grep -c 'ndctl disable-region, ndctl init-labels' <<<"$said")" 2
        [[ $said == *typed* ]]
        is "$(tail -n 1 <<<"$said")" Success
}

@test "a pool keeps its region, by whatever name that was given, when a module more renumbers the regions" {
        pool memory '"region": "region1"'
        pool shared '"region": "region1", "mode": "lvm", "maxPercent": 40'
        boot 'first second' '
                label
                echo "region1: $(bytes_of region1)"
                echo "id: $(iset_of region1)"
                try volume-create "{\"name\": \"data\", \"size\": \"16m\", \"pool\": \"memory\"}" | tee /tmp/reply | field .status
                device=$(field .volume.path </tmp/reply)
                echo marker | dd of="$device" conv=fsync status=none
                try volume-create "{\"name\": \"logical\", \"size\": \"8m\", \"pool\": \"shared\"}" | field .status'
        echo "$said"
        is "$(grep -c Success <<<"$said")" 2
        is "$(sed -n 's/^region1: //p' <<<"$said")" $((96 << 20))
        pool byid "\"region\": \"$(sed -n 's/^id: //p' <<<"$said")\""
        pool newest '"region": "region1"'
        boot 'first second third' '
                echo "region1: $(bytes_of region1) region2: $(bytes_of region2)"
                { ndctl disable-region region1; ndctl init-labels nmem2; ndctl enable-region region1; } >/dev/null 2>&1
                for name in memory byid shared newest; do
                        echo "$name: $(try volume-capacity "{\"pool\": \"$name\"}" | field ".pools[0].total")"
                done
                echo "of nobody: $(try volume-list "{\"pool\": \"byid\"}" | field "[.disks[].id] | join(\" \")")"
                options="{\"kubernetes.io/pvOrVolumeName\": \"data\"}"
                device=$("$driver" attach "$options" node | tee /tmp/reply | field .device)
                cat /tmp/reply
                echo "content: $(head -c 6 "$device")"
                "$driver" detach data node | field .status
                try volume-create "{\"name\": \"more\", \"size\": \"16m\", \"pool\": \"memory\"}" | field .status
                try volume-create "{\"name\": \"new\", \"size\": \"16m\", \"pool\": \"newest\"}" | field .status
                for name in region0 region1 region2; do
                        echo "$name: $(ndctl list --namespaces --region "$name" | jq -r "if type == \"array\" then .[] else . end | .name" | sort | paste -s -d " ")"
                done
                for name in data more new logical; do
                        try volume-delete "{\"name\": \"$name\"}" | field .status
                done'
        echo "$said"
        [[ $said == *"region1: $((128 << 20)) region2: $((96 << 20))"* ]]       # else this is no test
        [[ $said == *'content: marker'* ]]
        is "$(sed -n 's/^of nobody: //p' <<<"$said")" ''
        is "$(sed -n 's/^\(memory\|byid\): //p' <<<"$said" | sort -u)" $((96 << 20))
        is "$(sed -n 's/^newest: //p' <<<"$said")" $((128 << 20))
        is "$(sed -n 's/^region0: //p' <<<"$said")" ''
        is "$(sed -n 's/^region1: //p' <<<"$said" | tail -n 1)" new
        is "$(sed -n 's/^region2: //p' <<<"$said")" 'data flexgraft more'
        is "$(grep -c '^Success' <<<"$said")" 7
}
