#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The option idMappable: what a pod gets of a filesystem that cannot be id-mapped, and the life of what serves it.

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
load csi_node_helpers
load sweep_helpers
load id_mappable_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        bed_setup
        driver_setup
        volume_setup
        [[ -n $(type -P bindfs) ]] || skip "no bindfs"
        FILES=$BATS_TEST_TMPDIR/files BEHIND=$BATS_TEST_TMPDIR/behind KEEPER=''
        mkdir "$FILES" "$BEHIND"
        chmod 0777 "$FILES"
        mount -t tmpfs -o mode=0777 tmpfs "$FILES"
        bindfs "$FILES" "$BEHIND" 3>&-
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\", \"$FILES\"]"
        needs remap-mount verbs/mount verbs/unmount verbs/remap-daemon
        [[ $BATS_TEST_DESCRIPTION == 'where the kernel cannot '* ]] || needs_mappable_fuse
}

teardown() {
        in_turn ${CSI_SOCKET:+csi_teardown} driver_teardown
}

# published [KEY=VALUE...]: kubelet's mount of the volume "data", a bind of BEHIND, for a pod.
published() {
        SPECS[data]=$(spec data type=bind "source=$BEHIND" "$@")
        kubelet_publish data
}

# is_mappable DIR [BASE]: a container with a user namespace of its own has it id-mapped.
is_mappable() {
        start_container plain "${2:-100000}"
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$1\", \"target\": \"/data\", \"ids\": \"idmapped\"}"
        assert_success
}

@test "with always, a pod's directory of a filesystem that cannot be id-mapped can be, with a map for each container, and unmount ends it" {
        touch "$FILES/user" && chown 1000:1001 "$FILES/user"
        published idMappable=always
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
        is "$(wc -w <<<"$(keepers)")" 1 "daemons"
        for BASE in 100000 200000; do
                is_mappable "$(pod_dir data)" "$BASE"
                is "$(in_container stat -c %u:%g /data/user)" 1000:1001 "in the container of $BASE"
                in_container touch "/data/of-$BASE"
                is "$(stat -c %u:%g "$FILES/of-$BASE")" 0:0 "at the source"
                stop_container "$CONTAINER_PID"
        done
        kubelet_unpublish data
        wait_until 10 no_keepers
        is "$(volume_records)" ''
}

@test "with never, and with auto for a pod that nothing is known of, a pod has the directory itself" {
        local word
        for word in '' auto never; do
                published ${word:+"idMappable=$word"}
                is "$(type_at "$(pod_dir data)")" fuse "with ${word:-nothing}"
                is "$(keepers)" '' "daemons with ${word:-nothing}"
                kubelet_unpublish data
        done
}

@test "with auto, a pod that kubelet has given a user namespace has what its runtime can map, and with never it has not" {
        make_dir "$(pod_dir data)"
        echo '{"uidMappings": []}' >"$KUBELET/pods/$POD/userns"
        published
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
        is_mappable "$(pod_dir data)"
        stop_container "$CONTAINER_PID"
        kubelet_unpublish data
        published idMappable=never
        is "$(type_at "$(pod_dir data)")" fuse
        kubelet_unpublish data
        # of another pod nothing is known
        POD=pod-2 published
        is "$(type_at "$(pod_dir data pod-2)")" fuse
        POD=pod-2 kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "a filesystem that can be id-mapped is mounted itself, with always, too" {
        SPECS[data]=$(spec data type=bind "source=$FILES" idMappable=always)
        kubelet_publish data
        is "$(type_at "$(pod_dir data)")" tmpfs
        is "$(keepers)" '' "daemons"
        is_mappable "$(pod_dir data)"
        stop_container "$CONTAINER_PID"
        kubelet_unpublish data
}

@test "read-only and the mount options of a pod hold, nosuid and nodev, too" {
        published idMappable=always mountOptions=noexec @readwrite=ro
        [[ $(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)") == ro,nosuid,nodev,noexec,* ]]
        mount -o remount,bind,rw "$(pod_dir data)"
        run ! touch "$(pod_dir data)/file"
        [[ $output == *'Read-only file system'* ]]
        kubelet_unpublish data
}

@test "noexec and nosymfollow of the mount that the node has hold for the pod, too, unless an option says otherwise" {
        local options
        mount -o remount,bind,noexec,nosymfollow "$BEHIND"
        published idMappable=always
        options=,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)"),
        [[ $options == *,noexec,* && $options == *,nosymfollow,* ]] || { echo "$options"; return 1; }
        kubelet_unpublish data
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\"], \"options\": [\"exec\"]"
        published idMappable=always mountOptions=exec
        options=,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)"),
        [[ $options != *,noexec,* && $options == *,nosymfollow,* ]] || { echo "$options"; return 1; }
        kubelet_unpublish data
}

@test "another word is refused, and so is a directory with the mounts below it that cannot be id-mapped" {
        if published idMappable=yes; then return 1; fi
        assert_refused idMappable
        if published idMappable=always recursive=true; then return 1; fi
        assert_refused "cannot be id-mapped" "recursive"
        is "$(volume_records)" ''
        is "$(keepers)" '' "daemons"
}

@test "the same mount again starts nothing, and one whose daemon and keeper were killed is made anew" {
        local keeper
        published idMappable=always
        keeper=$(keepers)
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        is "$(keepers)" "$keeper" "keepers"
        kill -KILL "$(pgrep -P "$keeper" -x remap-daemon)"
        touch "$(pod_dir data)/after"
        [[ -e $FILES/after ]]
        helper volume-reconcile
        assert_success
        is "$(json_field '.problems | length')" 0 "problems"
        stop_process "$keeper"
        kill -KILL "$(pgrep -P "$keeper" -x remap-daemon)" "$keeper"
        wait_until 10 process_is_gone "$keeper"
        run ! ls "$(pod_dir data)"
        helper volume-reconcile
        [[ $(json_field '.problems | map(tostring) | join(" ")') == *"remap-daemon has exited"* ]]
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        is "$(node_mounts_at "$(pod_dir data)")" 1
        touch "$(pod_dir data)/anew"
        [[ -e $FILES/anew ]]
        kubelet_unpublish data
        wait_until 10 no_keepers
}

# group_made: a control group of the test's, in GROUP, of the hierarchy by which service managers end services.
group_made() {
        GROUP=/sys/fs/cgroup
        [[ -e $GROUP/cgroup.procs ]] || GROUP=/sys/fs/cgroup/systemd
        [[ -w $GROUP ]] || skip "no control group can be made"
        GROUP+=/flexgraft-test-$RUN_ID-$BATS_SUITE_TEST_NUMBER
        mkdir "$GROUP" 2>/dev/null || skip "no control group can be made"
}

group_is_empty() {
        [[ -z $(<"$GROUP/cgroup.procs") ]]
}

@test "what serves a pod is in no control group of the program that started it, and does not end with that" {
        local pid
        group_made
        # shellcheck disable=SC2016 # the inner shell's
        CALL_PREFIX=(sh -c 'echo 0 >"$0/cgroup.procs" && "$@"; status=$?; sleep 1000 >/dev/null 2>&1 & exit $status' "$GROUP")
        published idMappable=always
        CALL_PREFIX=()
        run ! group_is_empty
        while read -r pid; do
                kill -KILL "$pid"
        done <"$GROUP/cgroup.procs"
        wait_until 10 group_is_empty
        rmdir "$GROUP"
        touch "$(pod_dir data)/after"
        [[ -e $FILES/after ]]
        kubelet_unpublish data
        wait_until 10 no_keepers
}

@test "what serves a pod may be ended when memory is short, as others: it has no low oom_score_adj of its caller" {
        local keeper pid
        sh -c 'echo -500 >/proc/self/oom_score_adj' 2>/dev/null || skip "oom_score_adj cannot be lowered here"
        # shellcheck disable=SC2016 # the inner shell's
        CALL_PREFIX=(sh -c 'echo -500 >/proc/self/oom_score_adj && exec "$0" "$@"')
        published idMappable=always
        CALL_PREFIX=()
        keeper=$(keepers)
        for pid in "$keeper" "$(pgrep -P "$keeper" -x remap-daemon)"; do
                is "$(<"/proc/$pid/oom_score_adj")" 0
        done
        kubelet_unpublish data
        wait_until 10 no_keepers
}

@test "where remap-daemon cannot be started always fails and leaves nothing, and auto mounts the filesystem and says so" {
        make_dir "$(pod_dir data)"
        echo '{}' >"$KUBELET/pods/$POD/userns"
        rm "${DRIVER%/*}/verbs/remap-daemon"
        if published idMappable=always; then return 1; fi
        assert_refused "remap-daemon"
        is "$(node_mounts_at "$(pod_dir data)")" 0
        is "$(volume_records)" ''
        published
        is "$(type_at "$(pod_dir data)")" fuse
        [[ $(json_field .message) == *"its runtime cannot id-map the volume"*remap-daemon* ]]
        kubelet_unpublish data
}

# bats test_tags=kernel
@test "where the kernel cannot id-map FUSE always fails and leaves nothing, and auto mounts the filesystem and says so" {
        needs_unmappable_fuse
        make_dir "$(pod_dir data)"
        echo '{}' >"$KUBELET/pods/$POD/userns"
        if published idMappable=always; then return 1; fi
        assert_refused "this kernel cannot id-map a FUSE filesystem; use Linux 6.12 or later"
        is "$(node_mounts_at "$(pod_dir data)")" 0
        is "$(volume_records)" ''
        wait_until 10 no_keepers
        published
        is "$(type_at "$(pod_dir data)")" fuse
        [[ $(json_field .message) == *"its runtime cannot id-map the volume"*"use Linux 6.12"* ]] || { show_last; false; }
        kubelet_unpublish data
        wait_until 10 no_keepers
}

@test "what a pod has through remap-daemon is in the list of uses, and is not deleted meanwhile" {
        mkdir -m 0700 "$FILES/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BEHIND/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        created "$(named data '"size": "8m", "pool": "dirs"')"
        SPECS[data]=$(spec data type=directory idMappable=always)
        write_policy '"kinds": ["directory"]'
        kubelet_publish data
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
        listed
        assert_field '.volumes[0].uses | map(.pod) | join(" ")' "$POD"
        remove '{"name": "data"}'
        refused EBUSY "pod $POD"
        kubelet_unpublish data
        removed '{"name": "data"}'
        wait_until 10 no_keepers
}

# ---- a pod that turns out to have a user namespace

# known: kubelet notes that the pod has one, as it does after it has mounted the pod's volumes for the first time.
known() {
        echo '{"uidMappings": []}' >"$KUBELET/pods/$POD/userns"
}

# again: kubelet's mount of "data" for the pod once more.
again() {
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
}

# dir_field FILTER: of the record's entry of the pod's directory.
dir_field() {
        jq -r ".published[0]$1" "$STATE_DIR/volumes/data.json"
}

# is_exchanged: the directory has the mount that can be id-mapped, and no other, and so has the record.
is_exchanged() {
        is "$(node_mounts_at "$(pod_dir data)")" 1 "mounts"
        is "$(type_at "$(pod_dir data)")" fuse.flexgraft
        is "$(wc -w <<<"$(keepers)")" 1 "daemons"
        is "$(dir_field ' | [.replaces, .waitsForUsers, .remapKey > 0] | tostring')" '[null,null,true]'
}

# is_plain: the volume's own mount, and no other; the record has nothing that a call began.
is_plain() {
        is "$(node_mounts_at "$(pod_dir data)")" 1 "mounts"
        is "$(type_at "$(pod_dir data)")" fuse
        is "$(dir_field ' | [.replaces, .remapKey] | tostring')" '[null,null]'
        wait_until 10 no_keepers
}

ended() {
        kubelet_unpublish data
        is "$(volume_records)" ''
        wait_until 10 no_keepers
}

@test "a pod that auto gave the volume's own mount has one that its runtime can id-map when mount is called again and kubelet has noted its user namespace" {
        local shown
        published mountOptions=noexec @readwrite=ro
        is "$(dir_field .waitsForUsers)" true
        again
        is_plain
        known
        again
        is_exchanged
        shown=$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)")
        [[ $shown == ro,nosuid,nodev,noexec* ]] || { echo "$shown"; return 1; }
        mount -o remount,bind,rw "$(pod_dir data)"
        run ! touch "$(pod_dir data)/file"
        is_mappable "$(pod_dir data)"
        stop_container "$CONTAINER_PID"
        again
        is_exchanged
        ended
}

@test "with never, and for a filesystem that can be id-mapped, a pod that turns out to have a user namespace keeps the volume's own mount" {
        published idMappable=never
        is "$(dir_field .waitsForUsers)" null
        known
        again
        is_plain
        kubelet_unpublish data
        rm "$KUBELET/pods/$POD/userns"
        SPECS[data]=$(spec data type=bind "source=$FILES")
        kubelet_publish data
        known
        again
        is "$(type_at "$(pod_dir data)")" tmpfs
        is "$(dir_field ' | [.replaces, .remapKey] | tostring')" '[null,null]'
        ended
}

@test "a mount is not exchanged while something is mounted below it, and mount says so" {
        mkdir "$FILES/dir"
        published
        mount -t tmpfs tmpfs "$(pod_dir data)/dir"
        known
        again
        [[ $(json_field .message) == *"cannot id-map the volume"*"mounted on"* ]] || { show_last; return 1; }
        is_plain
        is "$(type_at "$(pod_dir data)/dir")" tmpfs
        umount "$(pod_dir data)/dir"
        again
        is_exchanged
        ended
}

@test "a process that has a file open below a mount that is exchanged goes on with it" {
        local fd
        published
        exec {fd}>"$(pod_dir data)/file"
        known
        again
        is_exchanged
        echo text >&"$fd"
        exec {fd}>&-
        is "$(<"$FILES/file")" text
        ended
}

@test "a mount that is exchanged is exchanged in a mount namespace that gets what is mounted, too" {
        local peer
        mount --bind "$KUBELET" "$KUBELET"
        mount --make-private "$KUBELET" # of a shared mount's group it would have what is mounted twice
        mount --make-shared "$KUBELET"
        unshare --mount --propagation slave sleep 1000 3>&- &
        peer=$!
        bed_pids+=("$peer")
        wait_until 10 in_own_mounts "$peer"
        published
        is "$(mounts_of "$peer")" fuse
        known
        again
        is_exchanged
        is "$(mounts_of "$peer")" fuse.flexgraft
        ended
        is "$(mounts_of "$peer")" ''
        kill "$peer"
        wait "$peer" || :
        umount "$KUBELET"
}

# in_own_mounts PID: it is in another mount namespace than the test. mounts_of PID: the types of what it has on the pod's directory.
in_own_mounts() {
        [[ $(readlink "/proc/$1/ns/mnt") != "$(readlink /proc/self/ns/mnt)" && $(<"/proc/$1/comm") == sleep ]]
}

mounts_of() {
        awk -v dir="$(pod_dir data)" '$5 == dir { sub(/.* - /, ""); print $1 }' "/proc/$1/mountinfo" | xargs
}

# ---- volume-reconcile

@test "a volume called pods does not decide by a file of its own whether its pod has a user namespace" {
        touch "$FILES/userns"
        SPECS[pods]=$(spec pods type=bind "source=$BEHIND")
        local dir=$KUBELET/pods/$POD/volumes/kubernetes.io~csi/pods/mount
        make_dir "$dir"
        call mount "$dir" "$(publish_spec pods "$POD")"
        assert_success
        call mount "$dir" "$(publish_spec pods "$POD")"
        assert_success
        is "$(type_at "$dir")" fuse
        known
        call mount "$dir" "$(publish_spec pods "$POD")"
        assert_success
        is "$(type_at "$dir")" fuse.flexgraft
        call unmount "$dir"
        assert_success
}

@test "a daemon whose source does not answer when it starts ends with the program that starts it" {
        local behind STATUS=0
        behind=$(pgrep -f "^bindfs $FILES $BEHIND")
        mkdir "$BATS_TEST_TMPDIR/target"
        # both right before the daemon's first question to the filesystem, none of whose threads may take that any more: who asks could not be
        # killed then; all that is left has ended long before a minute
        "$FLEXGRAFT_TOOLS/at-syscall" --others --at fstatfs:1 --report "$BATS_TEST_TMPDIR/report" --timeout 60 \
                --run "kill -STOP $behind; while grep -hq '(bindfs) [^T]' /proc/$behind/task/*/stat; do :; done; kill -KILL \$AT_MAIN_PID" -- \
                "$FLEXGRAFT_BIN/remap-mount" "{\"source\": \"$BEHIND\", \"target\": \"$BATS_TEST_TMPDIR/target\"}" || STATUS=$?
        kill -CONT "$behind"
        cat "$BATS_TEST_TMPDIR/report"
        is "$STATUS" 137
        is "$(cut -d' ' -f2,3 "$BATS_TEST_TMPDIR/report")" '1 fstatfs'
        no_keepers
}

# bats test_tags=deep
@test "a filesystem that stops answering when its daemon starts keeps no mount of another pod from being exchanged" {
        needs volume-reconcile
        local pid other=$BATS_TEST_TMPDIR/other
        mkdir "$other"
        bindfs "$FILES" "$other" 3>&-
        pid=$(pgrep -f "^bindfs $FILES $other")
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\", \"$other\"]"
        SPECS[one]=$(spec one type=bind "source=$BEHIND")
        SPECS[two]=$(spec two type=bind "source=$other")
        kubelet_publish one
        kubelet_publish two pod-2
        known
        POD=pod-2 known
        # of the two filesystems the one whose daemon starts first; the daemons are traced, and so end with the tracer
        cat >"$BATS_TEST_TMPDIR/stop" <<END
if [ "\$(stat --dereference --format %d /proc/\$AT_PID/fd/4)" = "\$(stat --format %d $other)" ]; then
        stopped=$pid
        echo two
else
        stopped=$(pgrep -f "^bindfs $FILES $BEHIND")
        echo one
fi
kill -STOP \$stopped
while grep -hq '(bindfs) [^T]' /proc/\$stopped/task/*/stat; do :; done
END
        "$FLEXGRAFT_TOOLS/at-syscall" --others --at fstatfs:1 --timeout 90 --run "sh '$BATS_TEST_TMPDIR/stop'" \
                --run-output "$BATS_TEST_TMPDIR/stopped" -- "$FLEXGRAFT_BIN/volume-reconcile" >"$BATS_TEST_TMPDIR/reply" || :
        kill -CONT "$pid" "$(pgrep -f "^bindfs $FILES $BEHIND")"
        cat "$BATS_TEST_TMPDIR/stopped" "$BATS_TEST_TMPDIR/reply"
        local silent served
        case $(<"$BATS_TEST_TMPDIR/stopped") in
        one) silent=$(pod_dir one) served=$(pod_dir two pod-2) ;;
        two) silent=$(pod_dir two pod-2) served=$(pod_dir one) ;;
        esac
        is "$(jq -r '.actions | map(.subject) | join(" ")' "$BATS_TEST_TMPDIR/reply")" "$served"
        [[ $(jq -r '.problems | join(" ")' "$BATS_TEST_TMPDIR/reply") == "$silent: "*"did not serve the mount within 20 seconds"* ]]
        is "$(type_at "$silent")" fuse
        kubelet_unpublish one
        kubelet_unpublish two pod-2
        wait_until 10 no_keepers
}

# across_exchange CALL ARG...: volume-list, while the mount of the pod's volume is exchanged: right before a system call with
# the directory, NAME:K as at-syscall has it.
across_exchange() {
        local dir system_call=$1
        shift
        dir=$(pod_dir data)
        mkdir -m 0700 "$FILES/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BEHIND/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        created "$(named data '"size": "8m", "pool": "dirs"')"
        SPECS[data]=$(spec data type=directory)
        write_policy '"kinds": ["directory"]'
        kubelet_publish data
        is "$(type_at "$dir")" fuse
        printf '#!/bin/sh\necho "{\"uidMappings\": []}" >"%s"\nexec "%s" "%s" "$(cat "%s")"\n' "$KUBELET/pods/$POD/userns" \
                "$FLEXGRAFT_BIN/verbs/mount" "$dir" "$BATS_TEST_TMPDIR/again" >"$BATS_TEST_TMPDIR/exchange"
        publish_spec data "$POD" >"$BATS_TEST_TMPDIR/again"
        "$FLEXGRAFT_TOOLS/at-syscall" --at "$system_call" --where 2="$dir" --report "$BATS_TEST_TMPDIR/report" \
                --run "sh '$BATS_TEST_TMPDIR/exchange'" --run-output "$BATS_TEST_TMPDIR/exchanged" -- \
                "$FLEXGRAFT_BIN/volume-list" "$@" >"$BATS_TEST_TMPDIR/list"
        cat "$BATS_TEST_TMPDIR/report" "$BATS_TEST_TMPDIR/exchanged"
        is_exchanged
}

@test "a volume whose mount is exchanged between a look at its record and one at its directory is in use" {
        across_exchange statx:1 '{"name": "data"}'
        is "$(jq -r '.volumes[0].uses | map(.pod) | join(" ")' "$BATS_TEST_TMPDIR/list")" "$POD"
        kubelet_unpublish data
        removed '{"name": "data"}'
}

@test "a volume whose mount is exchanged between a look at its record and one at its directory is mounted there" {
        across_exchange statx:1 "{\"name\": \"data\", \"path\": \"$(pod_dir data)\"}"
        is "$(jq -r '.mounted.health' "$BATS_TEST_TMPDIR/list")" ok
        kubelet_unpublish data
        removed '{"name": "data"}'
}

@test "of two mounts through remap-daemon of one filesystem that does not answer the metrics ask one" {
        local behind
        behind=$(pgrep -f "^bindfs $FILES $BEHIND")
        published idMappable=always
        kubelet_publish data pod-2
        is "$(jq -c '[.published[].sourceDevice] | [length, (unique | length)]' "$STATE_DIR/volumes/data.json")" '[2,1]'
        stop_process "$behind"
        "$FLEXGRAFT_TOOLS/at-syscall" --log "$BATS_TEST_TMPDIR/calls" -- "$FLEXGRAFT_BIN/volume-list" --format prometheus >"$BATS_TEST_TMPDIR/list"
        kill -CONT "$behind"
        # only the metrics open a directory so: O_PATH, O_NOFOLLOW, O_CLOEXEC
        is "$(grep -cE ' openat 0xffffff9c 0x[0-9a-f]+ 0x2a0000 ' "$BATS_TEST_TMPDIR/calls")" 1 "questions"
        is "$(awk '/^flexgraft_driver_mount_problem\{/ { print $NF }' "$BATS_TEST_TMPDIR/list")" $'1\n1'
        kubelet_unpublish data
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "metrics say of a mount that is exchanged while they are made that it is there" {
        across_exchange openat:2 --format prometheus
        is "$(awk '/^flexgraft_driver_mount_problem\{/ { print $NF }' "$BATS_TEST_TMPDIR/list")" 0
        kubelet_unpublish data
        removed '{"name": "data"}'
}

@test "volume-reconcile exchanges the mount of a pod that kubelet has noted a user namespace of, not on a dry run, and then has nothing to do" {
        needs volume-reconcile
        published mountOptions=noexec
        helper volume-reconcile
        is "$output" "$RECONCILED" "before it is noted"
        known
        helper volume-reconcile '{"dryRun": true}'
        assert_field '.actions | map(.action + " " + .subject) | join("; ")' "exchanged a mount for one that its pod can id-map $(pod_dir data)"
        is_plain
        helper volume-reconcile
        assert_field '.actions | map(.action + " " + .subject) | join("; ")' "exchanged a mount for one that its pod can id-map $(pod_dir data)"
        assert_field '.problems | length' 0
        is_exchanged
        [[ $(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)") == rw,nosuid,nodev,noexec* ]]
        helper volume-reconcile
        is "$output" "$RECONCILED"
        is_mappable "$(pod_dir data)"
        stop_container "$CONTAINER_PID"
        ended
}
RECONCILED='{"status":"Success","actions":[],"problems":[]}'$'\n'

@test "volume-reconcile leaves the mount of a volume with never, and of one that can be id-mapped, as it is" {
        needs volume-reconcile
        published idMappable=never
        known
        helper volume-reconcile
        is "$output" "$RECONCILED"
        is_plain
        kubelet_unpublish data
        rm "$KUBELET/pods/$POD/userns"
        SPECS[data]=$(spec data type=bind "source=$FILES")
        kubelet_publish data
        known
        helper volume-reconcile
        is "$output" "$RECONCILED"
        is "$(type_at "$(pod_dir data)")" tmpfs
        is "$(dir_field ' | [.replaces, .waitsForUsers, .remapKey] | tostring')" '[null,null,null]'
        ended
}

@test "volume-reconcile reports a mount that waits, and has something mounted below, and exchanges it later" {
        needs volume-reconcile
        mkdir "$FILES/dir"
        published
        mount -t tmpfs tmpfs "$(pod_dir data)/dir"
        known
        helper volume-reconcile
        [[ $(json_field '.problems | map(tostring) | join(" ")') == *"something is mounted on"* ]] || { show_last; return 1; }
        is_plain
        is "$(type_at "$(pod_dir data)/dir")" tmpfs
        umount "$(pod_dir data)/dir"
        helper volume-reconcile
        is_exchanged
        ended
}

@test "a dry run of volume-reconcile does not take a mount for a dead one whose exchange was killed before it" {
        needs volume-reconcile
        published
        jq -c '.published[0] |= (.replaces = .mountId | .mountId += 1000000 | .remapKey = 1)' "$STATE_DIR/volumes/data.json" >"$BATS_TEST_TMPDIR/record"
        cat "$BATS_TEST_TMPDIR/record" >"$STATE_DIR/volumes/data.json"
        helper volume-reconcile '{"dryRun": true}'
        is "$(json_field .problems)" '[]'
        helper volume-reconcile
        is_plain
        ended
}

@test "where remap-daemon is not installed volume-reconcile reports a mount that waits, and leaves it" {
        needs volume-reconcile
        local dir=$BATS_TEST_TMPDIR/sbin
        mkdir "$dir"
        cp "$FLEXGRAFT_BIN/volume-reconcile" "$dir/"
        published
        known
        FLEXGRAFT_BIN=$dir helper volume-reconcile
        [[ $(json_field '.problems | map(tostring) | join(" ")') == *"remap-daemon is neither"* ]] || { show_last; return 1; }
        is_plain
        helper volume-reconcile
        is_exchanged
        ended
}

# pod_of NAME: the volume "silent" is another pod's.
pod_of() {
        [[ $1 == silent ]] && echo pod-2 || echo "$POD"
}

@test "a filesystem that does not answer keeps no mount of another pod from being exchanged" {
        needs volume-reconcile
        local name pid silent=$BATS_TEST_TMPDIR/silent
        mkdir "$silent"
        bindfs "$FILES" "$silent" 3>&-
        pid=$(pgrep -f "^bindfs $FILES $silent")
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\", \"$silent\"]"
        for name in one two three silent; do
                SPECS["$name"]=$(spec "$name" type=bind "source=$([[ $name == silent ]] && echo "$silent" || echo "$BEHIND")")
                kubelet_publish "$name" "$(pod_of "$name")"
        done
        known
        POD=pod-2 known
        stop_process "$pid"
        helper volume-reconcile
        kill -CONT "$pid"
        [[ $(json_field '.problems | map(tostring) | join(" ")') == *"$(pod_dir silent pod-2): what is mounted there does not answer"* ]] || { show_last; return 1; }
        for name in one two three; do
                is "$(type_at "$(pod_dir "$name")")" fuse.flexgraft "$name"
        done
        is "$(type_at "$(pod_dir silent pod-2)")" fuse
        helper volume-reconcile
        for name in one two three silent; do
                is "$(type_at "$(pod_dir "$name" "$(pod_of "$name")")")" fuse.flexgraft "$name"
                kubelet_unpublish "$name" "$(pod_of "$name")"
        done
        is "$(volume_records)" ''
        wait_until 10 no_keepers
}

# ---- an exchange that is killed

# Around the steps of an exchange: the mount that is served, the record, the mount beneath, the old one taken off, the record.
STEPS=fsmount:1,renameat:1,move_mount:1,umount2:1,renameat:2

# exchange_swept ACTION STEP...: mount, or $ACT, is called again for a pod that has a user namespace by now, and is acted upon at each of $STEPS; what
# the pod has works, and then come the steps. ACTION may be an option and its value.
exchange_swept() {
        local text DATA action=("${1%% *}")
        local -a ACT=("${ACT[@]}")
        [[ $1 != *' '* ]] || action+=("${1#* }")
        SPECS[data]=$(spec data type=bind "source=$BEHIND")
        text=$(publish_spec data "$POD") DATA=$(pod_dir data)
        ((${#ACT[@]} > 0)) || ACT=("$DRIVER" mount "$DATA" "$text")
        LABEL=$1 sweep --reply "${REPLY_FORM:-kubelet}" --timeout 100 --own --leave remap-daemon --at "$STEPS" "${action[@]}" \
                --watch mounts self --watch tree "$STATE_DIR" --watch tree "$KUBELET" -- \
                sh "mkdir -p '$DATA'" ';' call "$DRIVER" mount "$DATA" "$text" ';' \
                sh "echo '{}' >'$KUBELET/pods/$POD/userns'" ';' \
                act "${ACT[@]}" ';' \
                sh "echo text >'$DATA/file' && read -r text <'$FILES/file' && [ \"\$text\" = text ]" ';' \
                "${@:2}" \
                call "$DRIVER" unmount "$DATA" ';' mounts self "$DATA" 0 ';' \
                sh "rmdir '$DATA'; rm '$KUBELET/pods/$POD/userns'" ';' same ';'
        wait_until 10 no_keepers
        is "$(volume_records)" ''
}

# shown: of sh, the directory has the exchanged mount alone.
shown() {
        printf '%s' "[ \"\$(findmnt --noheadings --output FSTYPE --mountpoint '$(pod_dir data)')\" = fuse.flexgraft ] && " \
                "jq -e '.published[0] | .remapKey > 0 and .replaces == null and .waitsForUsers == null' '$STATE_DIR/volumes/data.json'"
}

@test "an exchange that is killed at any step is ended by the same call again" {
        SPECS[data]=$(spec data type=bind "source=$BEHIND")
        exchange_swept --kill call "$DRIVER" mount "$(pod_dir data)" "$(publish_spec data "$POD")" ';' sh "$(shown)" ';'
}

@test "an exchange that fails at any step leaves the pod its volume, and the same call again ends it" {
        SPECS[data]=$(spec data type=bind "source=$BEHIND")
        exchange_swept '--fail EIO' call "$DRIVER" mount "$(pod_dir data)" "$(publish_spec data "$POD")" ';' sh "$(shown)" ';'
}

@test "an exchange that is killed at any step is ended by volume-reconcile" {
        needs volume-reconcile
        exchange_swept --kill call "$FLEXGRAFT_BIN/volume-reconcile" ';' sh "$(shown)" ';'
}

@test "volume-reconcile that is killed at any step of an exchange ends it when it runs again" {
        needs volume-reconcile
        local REPLY_FORM=json ACT=("$FLEXGRAFT_BIN/volume-reconcile")
        exchange_swept --kill call "$FLEXGRAFT_BIN/volume-reconcile" ';' sh "$(shown)" ';'
}

@test "what is mounted below the old mount when the new one is beneath it stays, and the exchange is ended when it is gone" {
        local dir
        dir=$(pod_dir data)/dir
        mkdir "$FILES/dir"
        SPECS[data]=$(spec data type=bind "source=$BEHIND")
        STEPS=move_mount:1 exchange_swept "--run mount -t tmpfs tmpfs '$dir'" \
                sh "[ \"\$NAME\" = - ] || { mountpoint -q '$dir' && umount '$dir'; }" ';' \
                call "$DRIVER" mount "$(pod_dir data)" "$(publish_spec data "$POD")" ';' sh "$(shown)" ';'
}

@test "unmount after an exchange that was killed at any step leaves neither mount" {
        exchange_swept --kill
}

# ---- one daemon for several pods

# daemons: how many.
daemons() {
        keepers | wc -l
}

@test "pods that have a volume alike share a remap-daemon, which ends with the last, and each has its own mount and its options" {
        published idMappable=always mountOptions=noexec
        is "$(daemons)" 1
        SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always mountOptions=noatime)
        kubelet_publish data pod-2
        is "$(daemons)" 1
        [[ ,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data)"), == *,noexec,* ]]
        [[ ,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data pod-2)"), == *,noatime,* ]]
        [[ ,$(findmnt --noheadings --first-only --output VFS-OPTIONS --target "$(pod_dir data pod-2)"), != *,noexec,* ]]
        [[ $(findmnt -nro SOURCE "$(pod_dir data pod-2)") != *"$POD"* ]]
        mkdir "$FILES/inner"
        mount -t tmpfs tmpfs "$(pod_dir data)/inner"
        is "$(type_at "$(pod_dir data pod-2)/inner")" fuse.flexgraft "below the other pod's"
        umount "$(pod_dir data)/inner"
        kubelet_unpublish data
        echo text >"$(pod_dir data pod-2)/file"
        is "$(<"$FILES/file")" text
        is_mappable "$(pod_dir data pod-2)"
        stop_container "$CONTAINER_PID"
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
        is "$(volume_records)" ''
}

@test "a pod that may not write, and one whose volume is another directory by now, has a remap-daemon of its own" {
        mkdir "$FILES/part"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\"]"
        SPECS[data]=$(spec data type=bind "source=$BEHIND/part" idMappable=always)
        kubelet_publish data
        kubelet_publish data pod-2 @readwrite=ro
        is "$(daemons)" 2
        mount -o remount,bind,rw "$(pod_dir data pod-2)"
        run ! touch "$(pod_dir data pod-2)/file"
        [[ $output == *'Read-only file system'* ]]
        mv "$BEHIND/part" "$BEHIND/former"
        mkdir "$BEHIND/part"
        kubelet_publish data pod-3
        is "$(daemons)" 3
        touch "$(pod_dir data pod-3)/new"
        [[ -e $FILES/part/new && ! -e $FILES/former/new ]]
        kubelet_unpublish data
        kubelet_unpublish data pod-2
        kubelet_unpublish data pod-3
        wait_until 10 no_keepers
}

@test "a pod whose remap-daemon was killed gets a new one, which the next pod shares" {
        local keeper
        published idMappable=always
        kubelet_publish data pod-2
        keeper=$(keepers)
        stop_process "$keeper"
        kill -KILL "$(pgrep -P "$keeper" -x remap-daemon)" "$keeper"
        wait_until 10 process_is_gone "$keeper"
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        assert_success
        call mount "$(pod_dir data pod-2)" "$(publish_spec data pod-2)"
        assert_success
        is "$(daemons)" 1
        touch "$(pod_dir data)/one" "$(pod_dir data pod-2)/two"
        [[ -e $FILES/one && -e $FILES/two ]]
        kubelet_unpublish data
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "with cache always nothing is asked for twice, and what one pod of the node changes, another sees at once" {
        local daemon before after
        published idMappable=always cache=always
        kubelet_publish data pod-2
        is "$(daemons)" 1
        is "$(getfattr --only-values --name flexgraft.cache "$(pod_dir data pod-2)")" always
        echo text >"$(pod_dir data)/file"
        stat "$(pod_dir data)/file" >/dev/null
        daemon=$(pgrep -P "$(keepers)" -x remap-daemon)
        connection_of "$(pod_dir data)" self
        wait_until 10 all_is_answered # that echo has closed it
        before=$(awk '$1 == "syscw:" { print $2 }' "/proc/$daemon/io")
        stat "$(pod_dir data)/file" "$(pod_dir data)/file" >/dev/null
        after=$(awk '$1 == "syscw:" { print $2 }' "/proc/$daemon/io")
        is "$((after - before))" 0 "answers"
        echo longer >"$(pod_dir data pod-2)/file"
        is "$(stat -c %s "$(pod_dir data)/file")" 7
        mv "$(pod_dir data pod-2)/file" "$(pod_dir data pod-2)/moved"
        run ! stat "$(pod_dir data)/file"
        kubelet_unpublish data
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "cache always is refused where others change the files: without always, by several nodes, and beside a pod with another daemon" {
        local word
        for word in '' auto never; do
                SPECS[data]=$(spec data type=bind "source=$BEHIND" ${word:+"idMappable=$word"} cache=always)
                call mount "$(pod_dir data)" "$(publish_spec data "$POD")" || :
                assert_refused cache idMappable
        done
        for word in MULTI_NODE_MULTI_WRITER MULTI_NODE_SINGLE_WRITER; do
                SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always cache=always "accessMode=$word")
                call mount "$(pod_dir data)" "$(publish_spec data "$POD")" || :
                assert_refused cache "access mode"
        done
        SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always cache=yes)
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")" || :
        assert_refused cache
        published idMappable=always cache=always
        call mount "$(pod_dir data pod-2)" "$(publish_spec data pod-2 @readwrite=ro)" || :
        assert_refused "$(pod_dir data)" '"cache": "always"'
        SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always)
        call mount "$(pod_dir data pod-2)" "$(publish_spec data pod-2)" || :
        assert_refused "$(pod_dir data)" '"cache": "always"'
        is "$(daemons)" 1
        kubelet_unpublish data
        wait_until 10 no_keepers
        is "$(volume_records)" ''
}

@test "an inline volume of the same name and another source is nobody's business, whatever the first one's daemon does" {
        local keeper daemon
        mkdir "$FILES/one" "$FILES/two"
        write_policy "\"kinds\": [\"bind\"], \"sources\": [\"$BEHIND\"]"
        SPECS[data]=$(spec data type=bind "source=$BEHIND/one" idMappable=always cache=always)
        kubelet_publish data
        SPECS[data]=$(spec data type=bind "source=$BEHIND/two" idMappable=always)
        kubelet_publish data pod-2
        touch "$(pod_dir data pod-2)/file"
        [[ -e $FILES/two/file ]]
        kubelet_unpublish data pod-2
        wait_until 10 one_keeper
        keeper=$(keepers)
        daemon=$(pgrep -P "$keeper" -x remap-daemon)
        stop_process "$keeper" "$daemon"
        sleep 1.1 # what the kernel knows of the root is over
        make_dir "$(pod_dir data pod-2)"
        run timeout 15 "$DRIVER" mount "$(pod_dir data pod-2)" "$(publish_spec data pod-2)"
        kill -CONT "$daemon" "$keeper"
        is "$status" 0
        [[ $output == *'"Success"'* ]]
        kubelet_unpublish data pod-2
        kubelet_unpublish data
        wait_until 10 no_keepers
}

one_keeper() {
        is "$(daemons)" 1
}

@test "what the node has made read-only since the first pod is so for the next one, beside a pod that writes" {
        published idMappable=always
        mount -o remount,bind,ro "$BEHIND"
        kubelet_publish data pod-2
        run ! touch "$(pod_dir data pod-2)/file"
        [[ $output == *'Read-only file system'* ]]
        touch "$(pod_dir data)/file"
        mount -o remount,bind,rw "$BEHIND"
        kubelet_unpublish data
        kubelet_publish data pod-3
        touch "$(pod_dir data pod-3)/file"
        kubelet_unpublish data pod-3
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "cache always is refused beside a pod whose options name the directory by another key; an earlier version's daemon is shared" {
        published idMappable=always cache=always
        SPECS[data]=$(spec data type=bind "path=$BEHIND" recursive=false idMappable=always)
        call mount "$(pod_dir data pod-2)" "$(publish_spec data pod-2)" || :
        assert_refused "$(pod_dir data)" '"cache": "always"'
        sed -i -E 's/"sourceKey": ?[0-9]+,//' "$STATE_DIR/volumes/data.json"
        SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always cache=always)
        kubelet_publish data pod-2
        is "$(daemons)" 1
        kubelet_unpublish data
        kubelet_unpublish data pod-2
        wait_until 10 no_keepers
}

@test "an exchanged mount shares the remap-daemon of another pod, too" {
        published
        kubelet_publish data pod-2
        echo '{}' >"$KUBELET/pods/$POD/userns"
        echo '{}' >"$KUBELET/pods/pod-2/userns"
        helper volume-reconcile
        assert_success
        is "$(daemons)" 1
        is "$(type_at "$(pod_dir data)"):$(type_at "$(pod_dir data pod-2)")" fuse.flexgraft:fuse.flexgraft
        touch "$(pod_dir data)/one" "$(pod_dir data pod-2)/two"
        [[ -e $FILES/one && -e $FILES/two ]]
        kubelet_unpublish data pod-2
        touch "$(pod_dir data)/three"
        kubelet_unpublish data
        wait_until 10 no_keepers
}

# ---- CSI

@test "a volume of a StorageClass with idMappable is published so, by a csi-driver that is stopped, and killed, meanwhile" {
        csi_setup
        node_setup
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BEHIND/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        mkdir -m 0700 "$FILES/dirs"
        make_volume "$ID" '"parameters": {"pool": "dirs", "idMappable": "always"}'
        CONTEXT=$(jq -c .volume.volume_context <<<"$json")
        CONTEXT=${CONTEXT:1:-1}
        [[ $CONTEXT == *'"idMappable":"always"'* ]]
        write_policy '"kinds": ["directory"]'
        up
        is "$(type_at "$(target)")" fuse.flexgraft
        csi_hang_up
        csi_stop
        touch "$(target)/without"
        csi_start
        kill -KILL "$CSI_PID"
        wait "$CSI_PID" || :
        touch "$(target)/killed"
        csi_start
        publish
        answers OK
        is "$(node_mounts_at "$(target)")" 1
        stats
        answers OK
        assert_field .volume_condition.abnormal false
        down
        wait_until 10 no_keepers
        all_gone
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers OK
}

@test "NodePublishVolume that is called again exchanges the mount of a pod that turns out to have a user namespace" {
        csi_setup
        node_setup
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BEHIND/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        mkdir -m 0700 "$FILES/dirs"
        new_volume '"parameters": {"pool": "dirs"}'
        write_policy '"kinds": ["directory"]'
        up
        is "$(type_at "$(target)")" fuse
        echo '{}' >"$KUBELET/pods/pod-1/userns"
        publish
        answers OK
        is "$(node_mounts_at "$(target)"):$(type_at "$(target)")" 1:fuse.flexgraft
        stats
        answers OK
        assert_field .volume_condition.abnormal false
        down
        wait_until 10 no_keepers
        all_gone
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers OK
}

# ---- killed

# bats test_tags=sweep
@test "mount with idMappable killed, or refused, at any call: again it succeeds, and unmount leaves nothing" {
        local text how
        SPECS[data]=$(spec data type=bind "source=$BEHIND" idMappable=always)
        text=$(publish_spec data "$POD")
        make_dir "$(pod_dir data)"
        for how in --kill --kill-main '--fail EIO'; do
                # shellcheck disable=SC2086 # two words
                LABEL=$how sweep --reply kubelet --timeout 100 --own --leave remap-daemon $how --watch mounts self --watch tree "$STATE_DIR" --watch tree "$KUBELET" -- \
                        sh "mkdir -p '$(pod_dir data)'" ';' \
                        act "$DRIVER" mount "$(pod_dir data)" "$text" ';' \
                        on-failure mounts self "$(pod_dir data)" 0 ';' \
                        call "$DRIVER" mount "$(pod_dir data)" "$text" ';' mounts self "$(pod_dir data)" 1 ';' \
                        sh "echo text >'$(pod_dir data)/file' && read -r text <'$FILES/file' && [ \"\$text\" = text ]" ';' \
                        call "$DRIVER" unmount "$(pod_dir data)" ';' mounts self "$(pod_dir data)" 0 ';' \
                        sh "rmdir '$(pod_dir data)'" ';' same ';'
        done
        wait_until 10 no_keepers
        is "$(volume_records)" ''
}

@test "a volume whose exchange was killed is mounted for all that ask, and cannot be deleted" {
        local record was
        csi_setup
        node_setup
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BEHIND/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        mkdir -m 0700 "$FILES/dirs"
        new_volume '"parameters": {"pool": "dirs"}'
        write_policy '"kinds": ["directory"]'
        up
        record=("$STATE_DIR"/volumes/*.json)
        was=$(jq '.published[0].mountId' "${record[0]}")
        # as a call leaves it that is killed before its mount is in its place: the record has that as its own
        jq -c '.published[0] |= (.replaces = .mountId | .mountId += 1000000)' "${record[0]}" >"$BATS_TEST_TMPDIR/record"
        cat "$BATS_TEST_TMPDIR/record" >"${record[0]}"
        stats
        answers OK
        assert_field .volume_condition.abnormal false
        "$FLEXGRAFT_BIN/volume-list" --format prometheus >"$BATS_TEST_TMPDIR/metrics"
        is "$(awk '/^flexgraft_driver_mount_problem\{/ { print $NF }' "$BATS_TEST_TMPDIR/metrics")" 0
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers FAILED_PRECONDITION
        publish
        answers OK
        is "$(jq -c '.published[0] | [.mountId, .replaces]' "${record[0]}")" "[$was,null]"
        down
        csi DeleteVolume "{\"volume_id\": \"$ID\"}"
        answers OK
}
