#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Records of mounts: as long as a mount is in a container, a record names it, whatever was killed, failed or could not be read.

load helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-remove mount-list
        OLD=$BATS_TEST_TMPDIR/old NEW=$BATS_TEST_TMPDIR/new
        mkdir "$OLD" "$NEW"
        echo old >"$OLD/marker"
        echo new >"$NEW/marker"
}

teardown() {
        bed_teardown
}

# request DIR [MORE]: of mount-bind, for /t1.
request() {
        SOURCE=$1
        bind_request /t1 "${2:-}"
}

# agree PATH: for sh: as many mounts of flexgraft's are at PATH as mount-list says.
agree() {
        echo "listed=\$('$FLEXGRAFT_BIN/mount-list' '{}' | jq '[.mounts[] | select(.target == \"$1\" and .state != \"gone\") | .mountId] | unique | length') &&
                mounted=\$(awk '\$5 == \"$1\"' /proc/$CONTAINER_PID/mountinfo | wc -l) &&
                { [ \"\$listed\" = \"\$mounted\" ] || { echo \"\$mounted mounted, \$listed listed:\"; '$FLEXGRAFT_BIN/mount-list' '{}'; cat '$STATE_DIR'/mounts/*; false; } >&2; }"
}

# one_record ID: for sh: a single record, and its mount is there.
one_record() {
        echo "'$FLEXGRAFT_BIN/mount-list' '{}' | jq -e '[.mounts[] | \"\\(.id) \\(.state)\"] == [\"$1 present\"]' >/dev/null"
}

# one_record_of PATH: for sh: a single record, of that target.
one_record_of() {
        echo "'$FLEXGRAFT_BIN/mount-list' '{}' | jq -e '[.mounts[].target] == [\"$1\"]' >/dev/null"
}

# ---- a mount that is being replaced

# bats test_tags=kernel
@test "a replace that is killed before it places its mount leaves the old record as it was" {
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        local before
        before=$(cat "$STATE_DIR"/mounts/t1-*.json)
        at_syscall --at move_mount:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')"
        is "$AT_REACHED" 1
        is "$(cat "$STATE_DIR"/mounts/t1-*[0-9a-f].json)" "$before" "the record"
        helper mount-list '{}'
        assert_field '[.mounts[] | select(.state == "present") | .source] | join(" ")' "$OLD"
}

# bats test_tags=kernel
@test "after such a kill a replace with another id succeeds, and leaves one record" {
        start_container plain
        container_snapshot
        helper mount-bind "$(request "$OLD")"
        assert_success
        at_syscall --at move_mount:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')"
        is "$AT_REACHED" 1
        helper mount-bind "$(request "$NEW" '"replace": true, "id": "other"')"
        assert_success
        assert_mounts_at /t1 1
        is "$(in_container cat /t1/marker)" new
        is "$(records)" mounts/other.json
        helper mount-remove "$(remove_request /t1)"
        assert_success
        assert_container_unchanged
        assert_no_records
}

@test "the same after a record that an earlier version left: it named the new mount, and the old one as the one to replace" {
        local file
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        file=$(echo "$STATE_DIR"/mounts/t1-*.json)
        jq -c '. + {replacesUnique: .mountIdUnique, replacesId: .mountId, replacesDevice: .device, replacesInode: .inode, mountId: 1, mountShortId: 1}' "$file" >"$BATS_TEST_TMPDIR/earlier"
        cp "$BATS_TEST_TMPDIR/earlier" "$file"
        helper mount-bind "$(request "$NEW" '"replace": true, "id": "other"')"
        assert_success
        assert_mounts_at /t1 1
        is "$(records)" mounts/other.json
}

@test "a replace that fails and one that was killed before it do not make the new mount's request look done" {
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        at_syscall --at move_mount:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')"
        at_syscall --at move_mount:1 --fail EIO "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')"
        assert_failure EIO
        is "$(in_container cat /t1/marker)" old
        helper mount-bind "$(request "$NEW")"
        assert_failure EBUSY
        helper mount-bind "$(request "$OLD")"
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "a killed replace is undone by a removal by id" {
        start_container plain
        container_snapshot
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        local call
        for call in move_mount:1 umount2:1; do
                at_syscall --at "$call" --kill "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"id": "mine", "replace": true')"
                is "$AT_REACHED" 1
                helper mount-remove '{"id": "mine"}'
                assert_success
                assert_field .alreadyRemoved false
                assert_field .removed.id mine
                assert_container_unchanged
                assert_no_records
                helper mount-bind "$(request "$OLD" '"id": "mine"')"
                assert_success
        done
}

# around_records: in AROUND, as around_mount, but not the index of uses: an entry that could not be removed does no harm.
around_records() {
        around_mount
        [[ -d $STATE_DIR/mounts ]] || mkdir -m 0700 "$STATE_DIR/mounts"
        AROUND[-1]=$STATE_DIR/mounts
}

no_mount_records() {
        is "$(records | grep ^mounts/)" '' "records" && assert_container_unchanged
}

# sweep_agree ACTION...: the steps in ACT with the action at each call: kernel and records agree; then /t1 is replaced by another id, and removed.
sweep_agree() {
        around_records
        sweep "${AROUND[@]}" "$@" -- \
                call "$FLEXGRAFT_BIN/mount-bind" "$(request "$OLD")" ';' \
                "${ACT[@]}" ';' \
                sh "$(agree /t1)" ';' \
                call "$FLEXGRAFT_BIN/mount-bind" "$(request "$OLD" '"replace": true, "id": "third"')" ';' \
                mounts "$CONTAINER_PID" /t1 1 ';' \
                sh "$(one_record third)" ';' \
                call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /t1)" ';' \
                same ';'
        no_mount_records
}

# bats test_tags=sweep
@test "a replace killed before any call: each mount has a record, and another id can replace it" {
        start_container plain
        ACT=(act "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')")
        sweep_agree --kill
}

# bats test_tags=sweep
@test "a replace with another id killed before any call: each mount has a record" {
        start_container plain
        ACT=(act "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true, "id": "second"')")
        sweep_agree --kill
}

# bats test_tags=sweep
@test "a replace with any call failing: each mount has a record" {
        start_container plain
        local errno
        for errno in EIO ENOMEM; do
                ACT=(act "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')")
                sweep_agree --fail "$errno"
                ACT=(act "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true, "id": "second"')")
                sweep_agree --fail "$errno"
        done
}

# bats test_tags=sweep
@test "a removal killed, or failing, at any call: each mount has a record" {
        local action
        start_container plain
        around_records
        for action in '--kill' '--fail EIO' '--fail EMFILE'; do
                # shellcheck disable=SC2086
                sweep "${AROUND[@]}" $action -- \
                        call "$FLEXGRAFT_BIN/mount-bind" "$(request "$OLD")" ';' \
                        act "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /t1)" ';' \
                        sh "$(agree /t1)" ';' \
                        on-failure sh "$(one_record_of /t1)" ';' \
                        call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /t1)" ';' \
                        same ';'
        done
        no_mount_records
}

# ---- a mount without a record

@test "removing a target where something without a record is mounted fails, and says so" {
        start_container plain
        container_snapshot
        helper mount-remove "$(remove_request /tmp)"
        assert_failure EBUSY
        [[ $json == *"no record of"* && $json == *"umount"* ]]
        helper mount-remove "{\"container\": $CONTAINER_PID, \"target\": \"/tmp\", \"dryRun\": true}"
        assert_failure EBUSY
        assert_container_unchanged
        # also when there are records, of other targets and of this one
        helper mount-bind "$(request "$OLD")"
        assert_success
        helper mount-remove "$(remove_request /tmp)"
        assert_failure EBUSY
        rm "$STATE_DIR"/mounts/t1-*.json
        helper mount-remove "$(remove_request /t1)"
        assert_failure EBUSY
        assert_mounts_at /t1 1
}

@test "a target whose mount the container exchanged for its own is not removed, and the record stays until that is gone" {
        start_container plain
        container_snapshot
        helper mount-bind "$(request "$OLD")"
        assert_success
        in_container umount /t1
        in_container mount -t tmpfs own /t1
        helper mount-remove "$(remove_request /t1)"
        assert_failure EBUSY
        is "$(records | wc -l)" 1
        in_container umount /t1
        helper mount-remove "$(remove_request /t1)"
        assert_success
        assert_field .alreadyRemoved true
        assert_container_unchanged
        assert_no_records
}

@test "mount-remove finds a mount by a symbolic link to its target" {
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        in_container ln -s /t1 /link
        helper mount-remove "$(remove_request /link)"
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /t1 0
        assert_no_records
}

@test "a mount of ours that the container covered beneath a killed replace keeps its record" {
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        at_syscall --at move_mount:1 --kill "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"replace": true')"
        in_container mount -t tmpfs own /t1
        helper mount-remove "$(remove_request /t1)"
        assert_failure EBUSY
        helper mount-list '{}'
        assert_field '[.mounts[] | select(.state == "covered")] | length' 1
        in_container umount /t1
        helper mount-remove "$(remove_request /t1)"
        assert_success
        assert_mounts_at /t1 0
        assert_no_records
}

@test "an id that is in use in another container is not taken over when that container cannot be looked at" {
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        local first=$CONTAINER_PID before call tried=0
        before=$(<"$STATE_DIR/mounts/mine.json")
        start_container plain 200000
        # the other container's namespaces are opened after the record was read
        for call in $(at_calls "$(bind_request /t1 '"id": "mine"')" openat ENOMEM); do
                at_syscall --at "$call" --fail ENOMEM "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /t1 '"id": "mine"')"
                assert_failure
                is "$(<"$STATE_DIR/mounts/mine.json")" "$before" "the record after a failure of $call"
                tried=$((tried + 1))
        done
        ((tried > 0))
        use_container "$first"
        assert_mounts_at /t1 1
}

# at_calls REQUEST NAME: each call of that name that mount-bind makes for the request: NAME:1 NAME:2 ...
at_calls() {
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-bind" "$1" >/dev/null 2>&1 3>&- || :
        awk -v name="$2" '$3 == name { print name ":" ++n }' "$BATS_TEST_TMPDIR/log"
}

# ---- directories that flexgraft made

both_removed() {
        start_container plain
        container_snapshot
        SOURCE=$OLD
        helper mount-bind "$(bind_request /t2 '"id": "mine"')"
        assert_success
        in_container umount /t2
        helper mount-bind "$(bind_request /t2)"
        assert_success
        "$@"
        assert_container_unchanged
        assert_no_records
}

# bats test_tags=kernel
@test "a directory made for a mount goes with the second mount on it, whichever is removed first" {
        remove_first() {
                helper mount-remove '{"id": "mine"}'
                assert_success
                helper mount-remove "$(remove_request /t2)"
                assert_success
        }
        remove_last() {
                helper mount-remove "$(remove_request /t2)"
                assert_success
                helper mount-remove '{"id": "mine"}'
                assert_success
        }
        both_removed remove_first
        both_removed remove_last
}

@test "a directory made for a mount goes with the mount that replaced the second one" {
        replace_and_remove() {
                helper mount-bind "$(bind_request /t2 '"id": "mine", "replace": true')"
                assert_success
                helper mount-remove "$(remove_request /t2)"
                assert_success
        }
        both_removed replace_and_remove
}

# ---- another pid namespace

# elsewhere PROGRAM REQUEST: in a pid namespace of its own.
elsewhere() {
        HELPER_PREFIX=(unshare --pid --fork --mount-proc)
        helper "$@"
        HELPER_PREFIX=()
}

@test "from another pid namespace volume-reconcile refuses, and forgets no mount" {
        needs volume-reconcile
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        local before
        before=$(records)
        elsewhere volume-reconcile '{}'
        is "$(json_field .status)" Failure
        [[ $json == *"another pid namespace"* && $json == *hostPID* ]]
        is "$(records)" "$before"
        helper volume-reconcile '{}'
        is "$(jq -c '[.status, .problems]' <<<"$json")" '["Success",[]]'
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
        helper mount-remove "$(remove_request /t1)"
        assert_success
        assert_field .alreadyRemoved false
}

@test "from another pid namespace mount-remove refuses, and mount-list does not say that a mount is gone" {
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        elsewhere mount-remove '{"id": "mine"}'
        assert_failure EXDEV
        [[ $json == *"another pid namespace"* && $json == *hostPID* ]]
        elsewhere mount-list '{}'
        assert_success
        assert_field '.mounts[0] | has("problem")' true
        assert_field '.mounts[0].state' unknown
        is "$(records)" mounts/mine.json
        assert_mounts_at /t1 1
}

@test "from another pid namespace an id of a live mount cannot be taken" {
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        local before
        before=$(<"$STATE_DIR/mounts/mine.json")
        # a container that is there, too
        HELPER_PREFIX=(unshare --pid --fork --mount-proc sh -c 'unshare --mount sleep 1000 & until [ "$(readlink /proc/$!/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.01; done; exec "$1" "{\"container\": $!, \"source\": \"$2\", \"target\": \"/mnt\", \"id\": \"mine\"}"' sh)
        status=0
        "${HELPER_PREFIX[@]}" "$FLEXGRAFT_BIN/mount-bind" "$OLD" >"$BATS_TEST_TMPDIR/stdout" 2>/dev/null 3>&- || status=$?
        HELPER_PREFIX=()
        is "$(jq -r .error.errno <"$BATS_TEST_TMPDIR/stdout")" EXDEV
        is "$(<"$STATE_DIR/mounts/mine.json")" "$before"
}

# knows_ended_namespaces: outside of the node's pid namespace only the kernel knows them.
knows_ended_namespaces() {
        [[ $(readlink /proc/self/ns/pid) == 'pid:[4026531836]' ]] || kernel_can statmount || skip "this kernel does not say that a mount namespace is gone"
}

# ended_elsewhere ID: a record of a mount in a container whose pid namespace has ended since.
ended_elsewhere() {
        knows_ended_namespaces
        # shellcheck disable=SC2016 # expanded there
        unshare --pid --fork --mount-proc sh -c 'unshare --mount sleep 1000 & until [ "$(readlink /proc/$!/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.01; done; exec "$1" "{\"container\": $!, \"source\": \"$2\", \"target\": \"/mnt\", \"id\": \"$3\"}"' \
                sh "$FLEXGRAFT_BIN/mount-bind" "$OLD" "$1" >"$BATS_TEST_TMPDIR/stdout" 3>&-
        is "$(jq -r .status <"$BATS_TEST_TMPDIR/stdout")" Success
        is "$(records)" "mounts/$1.json"
}

@test "the record of a container whose pid namespace has ended is settled like that of any that has ended" {
        needs volume-reconcile
        ended_elsewhere mine
        helper mount-list '{}'
        assert_field '.mounts[0] | [.state, has("problem")] | join(" ")' "gone false"
        helper volume-reconcile '{}'
        is "$(jq -c '[.status, .problems]' <<<"$json")" '["Success",[]]'
        is "$(records)" ""
}

@test "from another pid namespace the record of a container that has ended is settled, not that of one that runs" {
        needs volume-reconcile
        kernel_can statmount || skip "this kernel does not say that a mount namespace is gone"
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        elsewhere volume-reconcile '{}'
        is "$(json_field .status)" Failure
        is "$(records)" mounts/mine.json
        stop_container
        elsewhere volume-reconcile '{}'
        is "$(jq -c '[.status, .problems]' <<<"$json")" '["Success",[]]'
        is "$(records)" ""
}

@test "an id of a container whose pid namespace has ended is free" {
        ended_elsewhere mine
        start_container plain
        helper mount-bind "$(request "$NEW" '"id": "mine"')"
        assert_success
        is "$(records)" mounts/mine.json
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /t1 0
}

@test "where proc shows another pid namespace than the program's, nothing is done" {
        start_container plain
        helper mount-bind "$(request "$OLD")"
        assert_success
        local before
        before=$(records)
        HELPER_PREFIX=(unshare --pid --fork)
        helper mount-list '{}'
        assert_failure EXDEV
        helper mount-remove "$(remove_request /t1)"
        assert_failure
        helper volume-reconcile '{}'
        is "$(json_field .status)" Failure
        HELPER_PREFIX=()
        is "$(records)" "$before"
        assert_mounts_at /t1 1
}

@test "a record that does not say its pid namespace is of this one" {
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        jq -c 'del(.pidNamespace)' "$STATE_DIR/mounts/mine.json" >"$BATS_TEST_TMPDIR/earlier"
        cp "$BATS_TEST_TMPDIR/earlier" "$STATE_DIR/mounts/mine.json"
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_field .alreadyRemoved false
        assert_mounts_at /t1 0
}

# ---- a record that cannot be read

# pad FILE: the record gets so long that reading it takes megabytes.
pad() {
        jq -c '. + {padding: [range(30000) | tostring]}' "$1" >"$BATS_TEST_TMPDIR/padded"
        cp "$BATS_TEST_TMPDIR/padded" "$1"
}

@test "a record that cannot be read for lack of memory is not damaged" {
        without_sanitizers "need terabytes of addresses"
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        pad "$STATE_DIR/mounts/mine.json"
        local kib unreadable=0
        for ((kib = 1500; kib <= 9000; kib += 250)); do
                HELPER_PREFIX=(prlimit "--as=$((kib * 1024))")
                helper mount-list '{}'
                [[ $(jq -r '.unreadable[0]?' <<<"$json") != mine ]] || unreadable=$((unreadable + 1))
                is "$(records)" mounts/mine.json "the records after a limit of $kib KiB"
                if ((kib < 4000)); then
                        helper mount-remove '{"id": "mine"}'
                        [[ $status != 0 ]]
                        helper mount-remove "$(remove_request /t1)"
                        [[ $status != 0 ]]
                fi
        done
        HELPER_PREFIX=()
        ((unreadable > 3)) || { echo "the record was unreadable $unreadable times"; return 1; }
        helper mount-list '{}'
        assert_field '.mounts[0].state' present
}

# calls_in_log NAMES: the calls of these names, separated by "|", that at-syscall logged, as it takes them: NAME:NUMBER.
calls_in_log() {
        awk -v names="^($1)\$" '$3 ~ names { print $3 ":" ++n[$3] }' "$BATS_TEST_TMPDIR/log"
}

# sets_aside_while_mounted CONTENT CALL [--where A=VALUE]: a record of that content, which mount-list is about to set aside at that call when
# mount-bind does so, and writes another.
sets_aside_while_mounted() {
        local content=$1
        shift
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        in_container umount /t1
        [[ $content == torn ]] || content=$(jq -c "$content" "$STATE_DIR/mounts/mine.json")
        echo "$content" >"$STATE_DIR/mounts/mine.json"
        stopped_at "$@" "$FLEXGRAFT_BIN/mount-list" '{}'
        meanwhile "$STATE_DIR/mounts/.lock" "$FLEXGRAFT_BIN/mount-bind" "$(request "$NEW" '"id": "mine"')"
        resumed
        wait_until 20 process_is_gone "$BACKGROUND_PID"
        is "$(jq -r .status "$STOPPED" "$MEANWHILE" | paste -sd' ')" "Success Success"
        helper mount-list '{}'
        assert_field '[.mounts[] | .id, .state] | join(" ")' "mine present"
        is "$(<"$STATE_DIR/mounts/mine.json.bad")" "$content"
}

@test "a record that is written while another call sets the damaged one aside stays" {
        sets_aside_while_mounted torn renameat
}

@test "a record that is written before another call can set the damaged one aside stays" {
        sets_aside_while_mounted torn fcntl --where 2=37 # F_OFD_SETLK
}

@test "a record that is written before another call can set one of another name aside stays" {
        sets_aside_while_mounted '.id = "other"' fcntl --where 2=37 # F_OFD_SETLK
}

# bats test_tags=sweep
@test "a record whose opening or reading fails is not damaged, and no mount is taken for removed" {
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        local errno call points reached=''
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/mount-list" '{}' >/dev/null 3>&-
        points=$(calls_in_log "openat|read|newfstatat" | sweep_some)
        for errno in EIO ENOMEM EMFILE EACCES ELOOP ENXIO; do
                for call in $points; do
                        at_syscall --at "$call" --fail "$errno" "$FLEXGRAFT_BIN/mount-list" '{}'
                        [[ $AT_REACHED != 1 ]] || reached+=,$call
                        is "$(records)" mounts/mine.json "the records after $errno of $call"
                done
        done
        SWEEP_NUMBER=1
        sweep_tried "$reached"
        points=$(calls_in_log "openat|read" | sweep_some)
        reached=''
        for errno in EIO ENOMEM EMFILE ELOOP; do
                for call in $points; do
                        at_syscall --at "$call" --fail "$errno" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /t1)"
                        [[ $AT_REACHED != 1 ]] || reached+=,$call
                        [[ $(mounts_at /t1) == 0 ]] || { [[ $status != 0 ]] && is "$(records)" mounts/mine.json "the records after $errno of $call"; }
                        [[ $(mounts_at /t1) == 1 ]] || { helper mount-bind "$(request "$OLD" '"id": "mine"')" && assert_success; }
                done
        done
        SWEEP_NUMBER=2
        sweep_tried "$reached"
}

# bats test_tags=sweep
@test "volume-reconcile forgets no mount when a call of it fails" {
        needs volume-reconcile
        start_container plain
        helper mount-bind "$(request "$OLD" '"id": "mine"')"
        assert_success
        local errno call points reached=''
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/log" "$FLEXGRAFT_BIN/volume-reconcile" '{}' >/dev/null 3>&-
        points=$(calls_in_log "openat|openat2|read|newfstatat|pidfd_open|getdents64|ioctl" | sweep_some)
        for errno in ENOMEM EMFILE EIO; do
                for call in $points; do
                        at_syscall --at "$call" --fail "$errno" "$FLEXGRAFT_BIN/volume-reconcile" '{}'
                        [[ $AT_REACHED != 1 ]] || reached+=,$call
                        is "$(records)" mounts/mine.json "the records after $errno of $call"
                done
        done
        SWEEP_NUMBER=1
        sweep_tried "$reached"
}
