#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a call costs does not grow with the mounts that other containers have: the same system calls with 10 records as with 300.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
        start_container plain
}

teardown() {
        bed_teardown
}

# other_records N: N records more, each of a mount in another container, as if mounts had written them before there was an index.
other_records() {
        local template text i
        template=$(jq -c . "$STATE_DIR/mounts/first.json" | sed -e 's/"id":"first"/"id":"otherOTHER"/' -e 's/"mountNamespace":[0-9]*/"mountNamespace":NAMESPACE/' \
                -e 's/"pid":[0-9]*/"pid":PID/')
        [[ $template == *:\"otherOTHER\"* && $template == *:NAMESPACE* && $template == *:PID* ]] || return 1
        for ((i = 0; i < $1; i++)); do
                OTHERS=$((${OTHERS:-0} + 1))
                text=${template/otherOTHER/"other$OTHERS"} text=${text/:NAMESPACE/:$((1000 + OTHERS))}
                printf '%s\n' "${text/:PID/:$((5000000 + OTHERS))}" >"$STATE_DIR/mounts/other$OTHERS.json"
        done
        rm -rf "$STATE_DIR/uses"
        helper mount-bind "$(bind_request /again)" && assert_success || return 1
        helper mount-remove "$(remove_request /again)" && assert_success # it makes the index anew
}

# calls_with COMMAND...: sets FEW and MANY: how many system calls COMMAND makes with 10 and with 300 records of other containers.
calls_with() {
        helper mount-bind "$(bind_request /first '"id": "first"')" && assert_success || return 1
        other_records 10 || return 1
        "$@" || return 1
        FEW=$AT_TOTAL
        other_records 290 || return 1
        "$@" || return 1
        MANY=$AT_TOTAL
        echo "$FEW system calls with 10 records of other containers, $MANY with 300"
}

# is_flat: not a call for each fifth of the 290 records more. A record that is read is some three; the sanitizers' memory is a few; and a directory
# of the index that a call looks in is six when another container's key happens to be in it, too: of 4,096, as the kernel's numbers have it.
is_flat() {
        ((MANY - FEW < 58))
}

# removal MORE REQUEST: the calls of mount-remove; MORE is of the request of the mount at /data that it removes.
removal() {
        helper mount-bind "$(bind_request /data "$1")" && assert_success || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-remove" "$2"
        assert_success && assert_field .removed.target /data && assert_mounts_at /data 0
}

# bats test_tags=text
@test "mount-remove by id costs the same however many mounts other containers have" {
        calls_with removal '"id": "mine"' '{"id": "mine"}'
        is_flat
}

# bats test_tags=text
@test "mount-remove by container and target costs the same however many mounts other containers have" {
        calls_with removal '' "$(remove_request /data)"
        is_flat
}

# bats test_tags=text,deep
@test "mount-remove by container and target of a mount that has an id of its own costs the same however many mounts other containers have" {
        calls_with removal '"id": "mine"' "$(remove_request /data)"
        is_flat
}

# replacement: the calls of a mount that replaces another.
replacement() {
        helper mount-bind "$(bind_request /data '"id": "one"')" && assert_success || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"id": "two", "replace": true')"
        assert_success || return 1
        helper mount-remove "$(remove_request /data)" && assert_success
}

# bats test_tags=text,deep
@test "a mount that replaces another costs the same however many mounts other containers have" {
        calls_with replacement
        is_flat
}

# listing: the calls of mount-list of the container.
listing() {
        at_syscall "$FLEXGRAFT_BIN/mount-list" "{\"container\": $CONTAINER_PID}"
        assert_success && assert_field '[.mounts[].target] | join(" ")' /first
}

# bats test_tags=text
@test "mount-list of one container costs the same however many mounts other containers have" {
        calls_with listing
        is_flat
}

# mounts_in_container N ID: N mounts more in the container.
mounts_in_container() {
        helper mount-batch "$(jq -cn --argjson n "$1" --argjson pid "$CONTAINER_PID" --arg source "$SOURCE" --arg at "/$2" \
                '{mounts: [range($n) | {type: "bind", container: $pid, source: $source, target: "\($at)/\(.)"}]}')" && assert_success
}

# bats test_tags=text,deep
@test "on a node that has only ever mounted, mount-list of one container costs the same however many mounts other containers have" {
        local other=$CONTAINER_PID mine few
        start_container plain
        mine=$CONTAINER_PID
        helper mount-bind "$(bind_request /first)"
        assert_success
        listing
        few=$AT_TOTAL
        use_container "$other"
        mounts_in_container 50 many
        use_container "$mine"
        listing
        echo "$few system calls with no mounts of another container, $AT_TOTAL with 50"
        ((AT_TOTAL - few < 25)) # as is_flat: half a call for each
}

@test "an index that is made when there are records already is not taken for complete" {
        helper mount-bind "$(bind_request /first)"
        assert_success
        rm -rf "$STATE_DIR/uses"
        helper mount-bind "$(bind_request /second)"
        assert_success
        helper mount-list "{\"container\": $CONTAINER_PID}"
        assert_field '[.mounts[].target] | join(" ")' "/first /second"
}

# ended_record: a record of a mount in a container with the id "ended", which is no more.
ended_record() {
        sed -e 's/"id": *"first"/"id":"ended"/' -e 's/"containerId": *"[^"]*"/"containerId":"ended"/' -e 's/"target": *"[^"]*"/"target":"\/data"/' \
                -e 's/"mountNamespace": *[0-9]*/"mountNamespace":900/' -e 's/"mountNamespaceId": *[0-9]*/"mountNamespaceId":900/' \
                -e 's/"pid": *[0-9]*/"pid":4900000/' "$STATE_DIR/mounts/first.json" >"$STATE_DIR/mounts/ended.json" || return 1
        rm -rf "$STATE_DIR/uses"
        helper mount-bind "$(bind_request /again)" && assert_success || return 1
        helper mount-remove "$(remove_request /again)" && assert_success # it makes the index anew
}

# removal_of_ended: the calls of mount-remove of a mount whose container has ended.
removal_of_ended() {
        ended_record || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-remove" '{"container": {"id": "ended"}, "target": "/data"}'
        assert_success && [[ ! -e $STATE_DIR/mounts/ended.json && -e $STATE_DIR/mounts/first.json ]]
}

# bats test_tags=text
@test "mount-remove by the id of a container that has ended costs the same however many mounts other containers have" {
        calls_with removal_of_ended
        is_flat
}

# removal_by_process CONTAINER: the calls of mount-remove of a mount whose container, known by a process id, has ended; and so again.
removal_by_process() {
        local calls
        ended_record && sed -i 's/"containerId":"ended"/"containerId":""/' "$STATE_DIR/mounts/ended.json" || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-remove" "{\"container\": $1, \"target\": \"/data\"}"
        assert_success && [[ ! -e $STATE_DIR/mounts/ended.json && -e $STATE_DIR/mounts/first.json ]] || return 1
        calls=$AT_TOTAL
        at_syscall "$FLEXGRAFT_BIN/mount-remove" "{\"container\": $1, \"target\": \"/data\"}"
        assert_success && assert_field .alreadyRemoved true || return 1
        AT_TOTAL=$((calls + AT_TOTAL))
}

# bats test_tags=text,deep
@test "mount-remove by the process id of a container that has ended costs the same however many mounts other containers have" {
        calls_with removal_by_process 4900000
        is_flat
}

# bats test_tags=text,deep
@test "mount-remove by a process id in quotes of a container that has ended costs the same however many mounts other containers have" {
        calls_with removal_by_process '"4900000"'
        is_flat
}

# others_want WISH ID: as many containers as have the other records want a mount each, as the container ID does.
others_want() {
        local i text
        for ((i = 1; i <= OTHERS; i++)); do
                text=${1//$2/other$i}
                printf '%s\n' "${text//wanted-/wanted-$i-}" >"$STATE_DIR/wanted/$(printf %016x "$i").json"
        done
        other_records 0 # as if they had been written before there was an index
}

# removal_of_wanted: the calls of mount-remove of two wanted mounts in a container that does not run, by name and by id, and once again.
removal_of_wanted() {
        local first=$CONTAINER_PID id wanted text calls=0 request
        start_container crun || return 1
        id=$CONTAINER_ID
        helper mount-batch "$(jq -cn --arg id "$id" --arg source "$SOURCE" \
                '{mounts: (["/data", "/more"] | map({type: "bind", container: $id, source: $source, target: ., persist: true}))}')"
        assert_success || return 1
        text=$(grep -l "\"$id@" "$STATE_DIR"/wanted/*.json)
        wanted=$(jq -r '.mounts[] | select(.target == "/more").id' "$text")
        stop_container
        use_container "$first"
        others_want "$(<"$text")" "$id" || return 1
        for request in "{\"container\": \"$id\", \"target\": \"/data\"}" "{\"id\": \"$wanted\"}" "{\"container\": \"$id\", \"target\": \"/data\"}"; do
                at_syscall "$FLEXGRAFT_BIN/mount-remove" "$request"
                assert_success || return 1
                calls=$((calls + AT_TOTAL))
        done
        assert_field .alreadyRemoved true
        [[ ! -e $text ]] || { echo "it is still wanted: $(<"$text")"; return 1; }
        AT_TOTAL=$calls
}

# bats test_tags=text
@test "mount-remove of a wanted mount in a stopped container costs the same however many others there are" {
        calls_with removal_of_wanted
        is_flat
}

# poststop: the calls of the hook for a container that has ended.
poststop() {
        ended_record || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-hook" poststop <<<'{"ociVersion": "1.0.2", "id": "ended", "status": "stopped", "bundle": "/", "annotations": {"io.flexgraft.mounts": "[]"}}'
        [[ $status == 0 && -z $output$stderr ]] || { show_last; return 1; }
        [[ ! -e $STATE_DIR/mounts/ended.json && -e $STATE_DIR/mounts/first.json ]]
}

# bats test_tags=text,deep
@test "the hook's poststop costs the same however many mounts other containers have" {
        needs mount-hook
        calls_with poststop
        is_flat
}

# overlay_mount: the calls of mount-overlay with an upper directory, which no other overlay may use.
overlay_mount() {
        at_syscall "$FLEXGRAFT_BIN/mount-overlay" "{\"container\": $CONTAINER_PID, \"target\": \"/data\", \"lower\": [\"$BATS_TEST_TMPDIR/lower\"],
                \"upper\": \"$BATS_TEST_TMPDIR/upper\", \"work\": \"$BATS_TEST_TMPDIR/work\"}"
        assert_success || return 1
        helper mount-remove "$(remove_request /data)" && assert_success
}

# bats test_tags=text,deep
@test "an overlay with an upper directory costs the same however many mounts other containers have" {
        needs mount-overlay
        mkdir "$BATS_TEST_TMPDIR/lower" "$BATS_TEST_TMPDIR/upper" "$BATS_TEST_TMPDIR/work"
        calls_with overlay_mount
        is_flat
}

@test "mount-remove and mount-list find records from before there was an index, and those of an index of an earlier layout" {
        local i
        for i in 1 2; do
                helper mount-bind "$(bind_request /data '"id": "mine"')"
                assert_success
                rm -rf "$STATE_DIR/uses"
                ((i == 1)) || mkdir -p "$STATE_DIR/uses/.complete-6"
                helper mount-list "{\"container\": $CONTAINER_PID}"
                assert_field '[.mounts[].id] | join(" ")' mine
                helper mount-remove "$(remove_request /data)"
                assert_success
                assert_field .removed.id mine
                assert_no_records
        done
}

# bats test_tags=deep
@test "wherever mount-remove is killed, no record is there without its entries in the index, so that the next one finds it" {
        local n=0
        SWEEP_NUMBER=1 # for assert_no_records: entries of no record may be left
        helper mount-bind "$(bind_request /data '"id": "mine"')"
        assert_success
        helper mount-remove "$(remove_request /data)" # the index is complete from here
        assert_success
        while ((++n < 40)); do
                helper mount-bind "$(bind_request /data '"id": "mine"')"
                assert_success
                at_syscall --at "unlinkat:$n" --kill "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)"
                ((AT_REACHED)) || break
                [[ ! -e $STATE_DIR/mounts/mine.json ]] || index_entries | grep -q '/n[^:]*:m:mine.json$'
                helper mount-remove "$(remove_request /data)"
                assert_success
                assert_mounts_at /data 0
                is "$(records)" ''
        done
        ((n > 2))
}

# dead_records N: N records of mounts in containers that have ended, which had a mount namespace each.
dead_records() {
        local template i
        template=$(jq -c . "$STATE_DIR/mounts/first.json")
        [[ -n $template ]] || return 1
        for ((i = 1; i <= $1; i++)); do
                sed -e "s/\"id\":\"first\"/\"id\":\"dead$i\"/" -e "s/\"pid\":[0-9]*/\"pid\":$((5000000 + i))/" \
                        -e "s/\"mountNamespace\":[0-9]*/\"mountNamespace\":$((1000000000 + i))/" \
                        -e "s/\"mountNamespaceId\":[0-9]*/\"mountNamespaceId\":$((1000000000 + i))/" <<<"$template" >"$STATE_DIR/mounts/dead$i.json"
        done
}

# looks COMMAND...: sets LOOKS: how many files COMMAND asks for by their names; a search of /proc is one for each process of the node.
looks() {
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$@"
        assert_success || return 1
        LOOKS=$(awk '$3 == "newfstatat" || $3 == "fstatat"' "$BATS_TEST_TMPDIR/calls" | wc -l)
}

# looks_with_processes COMMAND...: sets FEW and MANY: how many files COMMAND asks for, with few processes on the node and with 200 more.
looks_with_processes() {
        local group
        helper mount-bind "$(bind_request /first '"id": "first"')" && assert_success || return 1
        dead_records 5 || return 1
        looks "$@" || return 1
        FEW=$LOOKS
        # of another shell: one of this one's that is killed before it is `sleep` would say that the test has failed
        # shellcheck disable=SC2016 # that one has it
        setsid sh -c 'i=0; while [ $((i += 1)) -le 200 ]; do sleep 300 & done; echo "$i"; wait' >"$BATS_TEST_TMPDIR/begun" 3>&- &
        group=$!
        wait_until 20 test -s "$BATS_TEST_TMPDIR/begun" || return 1
        looks "$@" || return 1
        MANY=$LOOKS
        kill -- "-$group"
        wait "$group" || :
        echo "$FEW files are asked for, and $MANY with 200 processes more"
}

@test "a record of a container that has ended costs mount-list no search of its own among the processes of the node" {
        looks_with_processes "$FLEXGRAFT_BIN/mount-list" '{}'
        ((MANY < FEW + 250)) # one search of /proc for all of them
        helper mount-list '{}'
        assert_field '[.mounts[] | select(.id | startswith("dead")) | .state] | unique | join(" ")' gone
}

@test "a record of a container that has ended costs volume-reconcile no search of its own among the processes of the node" {
        needs volume-reconcile
        looks_with_processes "$FLEXGRAFT_BIN/volume-reconcile" '{"dryRun": true}'
        # likewise; other parts of it look for processes that hold a device, and once at each loop device of the node
        ((MANY < FEW + 350))
}

@test "a container whose recorded process has ended is still known by another process in it" {
        kernel_can statmount || skip "this kernel has no other name for a mount namespace than its number"
        helper mount-bind "$(bind_request /first '"id": "first"')"
        assert_success
        sed -i "s/\"pid\": *[0-9]*/\"pid\":5000000/" "$STATE_DIR/mounts/first.json"
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
}

@test "volume-reconcile holds the lock of one record at a time" {
        local locks
        needs volume-reconcile
        helper mount-bind "$(bind_request /first '"id": "first"')"
        assert_success
        dead_records 5
        # before each call that takes or releases one; the kernel lists all that are held, and one of them twice if others are taken meanwhile
        at_syscall --at fcntl --each "awk '/OFDLCK.* $(name_in_locks "$STATE_DIR/mounts/.lock") / { held[\$(NF - 1) \" \" \$NF] } END { print length(held) }' /proc/locks >>'$BATS_TEST_TMPDIR/held'" \
                "$FLEXGRAFT_BIN/volume-reconcile" '{}'
        assert_success
        is "$(sort -n "$BATS_TEST_TMPDIR/held" | tail -1)" 1
        is "$(records | grep ^mounts/)" mounts/first.json
}

# list_workers TARGET...: the processes that mount-list starts to list mounts at these targets of the container, too.
list_workers() {
        local target
        for target in "$@"; do
                helper mount-bind "$(bind_request "$target")" && assert_success || return 1
        done
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/mount-list" '{}'
        assert_success || return 1
        WORKERS=$(awk '$3 == "clone" || $3 == "clone3"' "$BATS_TEST_TMPDIR/calls" | wc -l)
}

# bats test_tags=text
@test "mount-list asks for all mounts in one process, and reaches each container once" {
        list_workers /a
        is "$WORKERS" 1
        list_workers /b /c /d /e
        is "$WORKERS" 1
        # the container's process; a pidfd of its own tells it its own namespaces
        is "$(awk -v pid="$(printf '%#x' "$CONTAINER_PID")" '$3 == "pidfd_open" && $4 == pid' "$BATS_TEST_TMPDIR/calls" | wc -l)" 1
        assert_field '[.mounts[].state] | join(" ")' "present present present present present"
}

# listed_with N: N mounts in the container; sets LISTED: how many system calls mount-list makes for all.
listed_with() {
        mounts_in_container "$1" many || return 1
        at_syscall "$FLEXGRAFT_BIN/mount-list" '{}'
        assert_success && assert_field '.mounts | length' "$1" && assert_field '[.mounts[].state] | unique | join(" ")' present || return 1
        LISTED=$AT_TOTAL
}

# bats test_tags=text
@test "mount-list makes at most seven system calls for a mount: three to read its record, four to ask for it" {
        local few
        listed_with 5
        few=$LISTED
        listed_with 55
        echo "$few system calls for 5 mounts, $LISTED for 55"
        ((LISTED - few < 50 * 7 + 20)) # memory is a few more
}

# bats test_tags=text,deep
@test "mount-list needs little memory for a record, however long a path may be" {
        local i record template
        helper mount-bind "$(bind_request /first '"id": "first"')"
        assert_success
        template=$(jq -c '.pid = 5000000 | .mountNamespace = 1000000000 | .mountNamespaceId = 1000000000' "$STATE_DIR/mounts/first.json")
        for ((i = 0; i < 1500; i++)); do
                record=${template/'"id":"first"'/'"id":"dead'$i'"'}
                echo "$record" >"$STATE_DIR/mounts/dead$i.json"
        done
        (ulimit -v 24000 && exec "$FLEXGRAFT_BIN/mount-list" '{}') >"$BATS_TEST_TMPDIR/list"
        is "$(jq -r '[.mounts[].state] | group_by(.) | map("\(length) \(.[0])") | join(" ")' "$BATS_TEST_TMPDIR/list")" "1500 gone 1 present"
}

# bats test_tags=text
@test "mount-remove reads no directory that lists the records of all containers" {
        helper mount-bind "$(bind_request /first '"id": "first"')"
        assert_success
        other_records 10
        helper mount-bind "$(bind_request /data)"
        assert_success
        # a directory's descriptor is opened with "." before it is read
        at_syscall --at getdents64 --each "readlink /proc/\$AT_PID/fd/* >>'$BATS_TEST_TMPDIR/open'" \
                "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)"
        assert_success
        grep -q "/uses/n" "$BATS_TEST_TMPDIR/open" # what finds the container's
        # once for the state that is open, not a second time to be read
        is "$(sort "$BATS_TEST_TMPDIR/open" | grep -c '/mounts$')" "$(grep -c "/uses/n" "$BATS_TEST_TMPDIR/open")"
}

@test "the temporary file of a record that a killed process left is removed by mount-remove in its container, and by volume-reconcile" {
        needs volume-reconcile
        helper mount-bind "$(bind_request /first '"id": "first"')"
        assert_success
        at_syscall --at renameat:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"id": "mine"')"
        ((AT_REACHED)) || at_syscall --at renameat2:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data '"id": "mine"')"
        is "$AT_REACHED" 1
        is "$(records)" $'mounts/.mine.json.tmp\nmounts/first.json'
        cp "$STATE_DIR/mounts/.mine.json.tmp" "$STATE_DIR/mounts/.unknown.json.tmp"
        helper mount-remove "$(remove_request /first)"
        assert_success
        is "$(records)" mounts/.unknown.json.tmp
        helper volume-reconcile '{}'
        assert_success
        is "$(records)" ''
}
