#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Metrics: of volumes, mounts and calls, and the file that flexgraft-metrics writes for node_exporter.

load helpers
load driver_helpers
load volume_helpers
load deploy_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        driver_setup
        volume_setup
        needs mount-list volume-reconcile
}

teardown() {
        driver_teardown
}

# metrics PROGRAM [REQUEST]: what it prints, which must be as Prometheus wants it.
metrics() {
        local name=$1
        shift
        helper "$name" --format prometheus "$@"
        is "$status" 0 && is "$stderr" '' && well_formed
}

well_formed() {
        is "$(/usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-metrics.py" <<<"${output%$'\n'}" 2>&1)" '' "what is wrong with the metrics"
}

# sample NAME [LABELS]: its value; nothing if there is no such line.
sample() {
        awk -v series="$1${2:+{$2\}}" 'substr($0, 1, length(series) + 1) == series " " { print substr($0, length(series) + 2) }' <<<"$output"
}

# ---- volumes

@test "each volume of a pool has its size and state in the metrics" {
        created '{"name": "one", "size": "1m"}'
        created '{"name": "t\"wo\\", "size": "2m"}'
        rm "$(jq -r .volume.path <<<"$output")"
        metrics volume-list
        is "$(sample flexgraft_volumes)" 2
        is "$(sample flexgraft_volumes_omitted)" 0
        is "$(sample flexgraft_volume_size_bytes 'volume="one",pool="default"')" 1048576
        is "$(sample flexgraft_volume_state 'volume="one",pool="default",state="created"')" 1
        is "$(sample flexgraft_volume_problem 'volume="one",pool="default"')" 0
        is "$(sample flexgraft_volume_state 'volume="t\\"wo\\\\",pool="default",state="missing"')" 1
        is "$(sample flexgraft_volume_problem 'volume="t\\"wo\\\\",pool="default"')" 1
}

@test "a volume whose filesystem has become read-only is a problem in the metrics" {
        created '{"name": "db", "size": "8m", "fsType": "ext4"}'
        lifecycle_up db type=loop
        metrics volume-list
        is "$(sample flexgraft_volume_problem 'volume="db",pool="default"')" 0
        mount -o remount,ro "$(global_dir db)"
        metrics volume-list
        is "$(sample flexgraft_volume_problem 'volume="db",pool="default"')" 1
        is "$(sample flexgraft_volume_state 'volume="db",pool="default",state="created"')" 1
        lifecycle_down db
}

@test "a volume that is mounted has the bytes and inodes of its filesystem in the metrics" {
        local labels dir
        call mount "$(make_dir "$KUBELET/pods/pod-1/volumes/$DRIVER_NAME"; pod_dir cache)" "$(spec cache type=tmpfs size=8Mi)"
        assert_success
        dir=$(pod_dir cache)
        labels="volume=\"cache\",driver=\"$DRIVER_NAME\""
        dd if=/dev/zero of="$dir/file" bs=1M count=3 status=none
        metrics volume-list
        is "$(sample flexgraft_driver_volumes)" 1
        is "$(sample flexgraft_driver_mount_state "$labels,directory=\"$dir\",state=\"present\"")" 1
        is "$(sample flexgraft_driver_mount_problem "$labels,directory=\"$dir\"")" 0
        is "$(sample flexgraft_driver_volume_filesystem_size_bytes "$labels")" 8388608
        is "$(sample flexgraft_driver_volume_filesystem_free_bytes "$labels")" 5242880
        is "$(sample flexgraft_driver_volume_filesystem_files "$labels")" "$(stat -f -c %c "$dir")"
        is "$(sample flexgraft_driver_volume_filesystem_files_free "$labels")" "$(stat -f -c %d "$dir")"
        umount "$dir"
        metrics volume-list
        is "$(sample flexgraft_driver_mount_state "$labels,directory=\"$dir\",state=\"gone\"")" 1
        is "$(sample flexgraft_driver_mount_problem "$labels,directory=\"$dir\"")" 1
        is "$(sample flexgraft_driver_volume_filesystem_size_bytes "$labels")" ''
        call unmount "$dir"
        assert_success
}

@test "a mount that does not answer does not hang the metrics, and is a problem" {
        local name dir
        for name in one two; do
                make_dir "$KUBELET/pods/pod-$name/volumes/$DRIVER_NAME"
                dir=$KUBELET/pods/pod-$name/volumes/$DRIVER_NAME/$name
                call mount "$dir" "$(spec "$name" type=tmpfs size=8Mi)"
                assert_success
        done
        background_ready "$FLEXGRAFT_TOOLS/silent-fuse" "$KUBELET/pods/pod-one" --read
        not_hung metrics volume-list
        dir=$KUBELET/pods/pod-one/volumes/$DRIVER_NAME/one
        is "$(sample flexgraft_driver_mount_state "volume=\"one\",driver=\"$DRIVER_NAME\",directory=\"$dir\",state=\"unknown\"")" 1
        is "$(sample flexgraft_driver_mount_problem "volume=\"one\",driver=\"$DRIVER_NAME\",directory=\"$dir\"")" 1
        is "$(sample flexgraft_driver_volume_filesystem_size_bytes "volume=\"two\",driver=\"$DRIVER_NAME\"")" 8388608
        end_process "$BACKGROUND_PID"
        wait_until 5 umount "$KUBELET/pods/pod-one"     # the process that asked it ends a moment later
}

# bats test_tags=deep
@test "no more than 1000 volumes are in the metrics, and how many are left out" {
        local i
        created '{"name": "v0", "size": "4096", "parameters": {"preallocate": "false"}}'
        for ((i = 1; i <= 1002; i++)); do
                sed "s/\"v0\"/\"v$i\"/; s/v0\\.img/v$i.img/g" "$STATE_DIR/provisioned/v0.json" >"$STATE_DIR/provisioned/v$i.json"
        done
        metrics volume-list
        is "$(sample flexgraft_volumes) $(sample flexgraft_volumes_omitted) $(grep -c '^flexgraft_volume_size_bytes{' <<<"$output")" "1003 3 1000"
}

# ---- mounts in containers

@test "each mount in a container has its state, bytes and inodes in the metrics" {
        local labels
        start_container crun
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"id\": \"a\", \"size\": \"8m\"}"
        assert_success
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/we\\\"b\", \"id\": \"b\"}"
        assert_success
        in_container umount '/we"b'
        metrics mount-list
        labels="id=\"a\",container=\"$CONTAINER_PID\",target=\"/cache\",type=\"tmpfs\""
        is "$(sample flexgraft_mounts) $(sample flexgraft_mounts_omitted) $(sample flexgraft_mount_records_broken)" "2 0 0"
        is "$(sample flexgraft_mount_state "$labels,state=\"present\"")" 1
        is "$(sample flexgraft_mount_problem "$labels")" 0
        is "$(sample flexgraft_mount_filesystem_size_bytes "$labels")" 8388608
        [[ $(sample flexgraft_mount_filesystem_files "$labels") -gt 0 ]]
        is "$(sample flexgraft_mount_state "id=\"b\",container=\"$CONTAINER_PID\",target=\"/we\\\\\"b\",type=\"bind\",state=\"gone\"")" 1
        is "$(sample flexgraft_mount_filesystem_size_bytes "id=\"b\",container=\"$CONTAINER_PID\",target=\"/we\\\\\"b\",type=\"bind\"")" ''
        metrics mount-list "{\"container\": $CONTAINER_PID}"
        is "$(sample flexgraft_mounts)" 2
        helper mount-list --format prometheus '{"nonsense": 1}'
        is "$status $output" '2 '
}

# ---- calls

# calls VERB RESULT: how many there were.
calls() {
        sample flexgraft_calls_total "verb=\"$1\",result=\"$2\""
}

@test "calls are counted by verb, with failures and durations" {
        local before
        before=$(date +%s)
        created '{"name": "one", "size": "1m"}'
        created '{"name": "one", "size": "1m"}'     # existed
        create '{"name": "two", "size": "1t"}'
        assert_failure
        call attach "$(spec one type=loop)" "$NODE"
        assert_success
        call mount /nowhere/at/all "$(spec one type=nonesuch)"
        call detach one "$NODE"
        assert_success
        metrics volume-list
        is "$(calls volume-create success) $(calls volume-create failure)" "2 1"
        is "$(calls attach success) $(calls attach failure)" "1 0"
        is "$(calls mount success) $(calls mount failure)" "0 1"
        is "$(sample flexgraft_call_duration_seconds_count 'verb="volume-create"')" 3
        is "$(sample flexgraft_call_duration_seconds_bucket 'verb="volume-create",le="+Inf"')" 3
        [[ $(sample flexgraft_call_duration_seconds_sum 'verb="volume-create"') =~ ^[0-9]+\.[0-9]*[1-9] ]]
        (($(sample flexgraft_call_last_success_timestamp_seconds 'verb="volume-create"') >= before))
        is "$(sample flexgraft_call_last_success_timestamp_seconds 'verb="mount"')" ''
        is "$(calls volume-delete success)" ''
        # those that write the metrics are not counted
        is "$(calls volume-list success)" ''
}

@test "the calls of every program with a reply are counted, but those of host-check, which changes nothing" {
        created '{"name": "one", "size": "1m"}'
        helper volume-expand '{"name": "one", "size": "2m"}'
        assert_success
        helper volume-snapshot '{"name": "one", "snapshot": "then"}'
        assert_success
        helper remap-mount '{"source": "/nowhere/at/all", "target": "/nowhere/else"}'
        assert_failure
        helper host-check
        metrics volume-list
        is "$(calls volume-expand success) $(calls volume-snapshot success) $(calls remap-mount failure)" "1 1 1"
        is "$(calls host-check success)$(calls host-check failure)" ''
}

@test "the last volume-reconcile and its problems are in the metrics, and a dry run is not" {
        local before
        before=$(date +%s)
        created '{"name": "one", "size": "1m"}'
        helper volume-reconcile '{"dryRun": true}'
        assert_success
        metrics volume-list
        is "$(sample flexgraft_reconcile_last_success_timestamp_seconds)" ''
        helper volume-reconcile
        assert_success
        metrics volume-list
        (($(sample flexgraft_reconcile_last_success_timestamp_seconds) >= before))
        is "$(sample flexgraft_reconcile_problems)" 0
        is "$(calls volume-reconcile success)" 1
}

@test "calls side by side are all counted" {
        local i pids=()
        created '{"name": "one", "size": "1m"}'
        for ((i = 0; i < 4; i++)); do
                "$FLEXGRAFT_BIN/volume-list" >/dev/null &
                pids+=($!)
        done
        wait "${pids[@]}"
        metrics volume-list
        is "$(calls volume-list success)" 4
}

@test "a call is answered where it cannot be counted" {
        local file=$STATE_DIR/.call-counts.2
        created '{"name": "one", "size": "1m"}'
        rm "$file"
        mkdir "$file"
        listed
        rmdir "$file"
        echo keep >"$BATS_TEST_TMPDIR/other"
        ln -s "$BATS_TEST_TMPDIR/other" "$file"
        listed
        is "$(<"$BATS_TEST_TMPDIR/other")" keep
        rm "$file"
        printf 'short' >"$file"
        metrics volume-list
        listed
        metrics volume-list
        is "$(calls volume-list success)" 1
        # another process has the row, and is stopped
        HELPER_PREFIX=(timeout 120)
        background_ready python3 -c 'import fcntl, os, struct, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
print("ready", flush=True)
time.sleep(1000000)' "$file"
        listed
}

# bats test_tags=deep
@test "a call that is killed while it is counted loses no other call's count" {
        local name n before earlier points=()
        created '{"name": "one", "size": "1m"}'
        listed
        at_syscall --log "$BATS_TEST_TMPDIR/calls" "$FLEXGRAFT_BIN/volume-list"
        metrics volume-list
        before=$(calls volume-list success)
        is "$before" 2
        # the last calls of these names count it; how many there are before depends on the node's processes
        for name in fcntl read lseek write close; do
                n=$(awk -v name="$name" '$3 == name { n++ } END { print n + 0 }' "$BATS_TEST_TMPDIR/calls")
                ((n > 0)) || { echo "it makes no call of $name"; return 1; }
                points+=("$name:$n")
        done
        for n in "${points[@]}"; do
                at_syscall --at "$n" --kill "$FLEXGRAFT_BIN/volume-list"
                metrics volume-list
                earlier=$before before=$(calls volume-list success)
                ((before >= earlier && before <= earlier + 1))
        done
        # when it has been counted, and is about to end; its helper process ends by itself, before that or after it
        at_syscall --at exit_group --each '[ "$AT_PID" != "$AT_MAIN_PID" ] || kill -KILL "$AT_PID"' "$FLEXGRAFT_BIN/volume-list"
        is "$status" 137
        metrics volume-list
        is "$(calls volume-list success)" $((before + 1))
        before=$((before + 1))
        listed
        metrics volume-list
        is "$(calls volume-list success)" $((before + 1))
}

# ---- the file

# write_metrics [ARG...]: flexgraft-metrics with the programs under test; the file in FILE, and its text in output.
write_metrics() {
        FILE=$BATS_TEST_TMPDIR/textfiles/flexgraft.prom
        mkdir -p "${FILE%/*}"
        run --separate-stderr env PATH="${PROGRAMS:-$FLEXGRAFT_BIN}:$PATH" "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" --output "$FILE" "$@"
        said=$stderr
        output=$(cat "$FILE" 2>/dev/null) || :
}

@test "flexgraft-metrics writes pools, volumes, mounts and calls into one file" {
        created '{"name": "one", "size": "1m"}'
        start_container crun
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"id\": \"a\", \"size\": \"8m\"}"
        assert_success
        write_metrics
        is "$status $said" '0 '
        well_formed
        [[ $(sample flexgraft_pool_size_bytes 'pool="default",type="loop"') -gt 0 ]]
        [[ $(sample flexgraft_pool_files_free 'pool="default",type="loop"') -gt 0 ]]
        is "$(sample flexgraft_volume_size_bytes 'volume="one",pool="default"')" 1048576
        is "$(sample flexgraft_mounts)" 1
        is "$(calls mount-tmpfs success) $(calls volume-create success)" "1 1"
        # every program that prints metrics
        is "$(sed -n 's/^flexgraft_metrics_failed{program="\(.*\)"} 0$/\1/p' <<<"$output" | sort)" \
                "$(cd "$FLEXGRAFT_BIN" && for name in *-*; do ! "./$name" --help | grep -q 'prometheus' || echo "$name"; done)"
        is "$(stat -c %a "$FILE") $(ls -A "${FILE%/*}")" "644 flexgraft.prom"
}

@test "what flexgraft-metrics.timer starts writes the file for node_exporter, as the unit stands" {
        local DEPLOY=$FLEXGRAFT_REPO/deploy sbin=$BATS_TEST_TMPDIR/sbin service started umask directory
        created '{"name": "one", "size": "1m"}'
        mkdir "$sbin"
        cp "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" "$FLEXGRAFT_BIN"/{volume-capacity,volume-list,mount-list} "$sbin"
        service=$(unit_value flexgraft-metrics.timer Unit)
        started=$(unit_value "$service" ExecStart) umask=$(unit_value "$service" UMask)
        directory=$(unit_value "$service" ConditionPathIsDirectory)
        is "$(unit_value "$service" NoNewPrivileges)" yes
        private_node_view "$directory"
        # as systemd starts it: nothing of the caller's, and without more arguments
        run --separate-stderr in_node_view env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "FLEXGRAFT_CONFIG=$FLEXGRAFT_CONFIG" "FLEXGRAFT_POOLS=$FLEXGRAFT_POOLS" \
                setpriv --no-new-privs sh -c "umask $umask; cd /; exec ${started/@sbindir@/$sbin}" </dev/null
        is "$status $output$stderr" '0 '
        output=$(in_node_view cat "$directory/flexgraft.prom")
        well_formed
        is "$(sample flexgraft_volume_size_bytes 'volume="one",pool="default"')" 1048576
        is "$(sed -n 's/^flexgraft_metrics_failed{program="\(.*\)"} 0$/\1/p' <<<"$output" | sort | paste -sd' ')" "mount-list volume-capacity volume-list"
        is "$(in_node_view stat -c %a "$directory/flexgraft.prom") $(in_node_view ls -A "$directory")" "644 flexgraft.prom"
}

@test "what one program cannot print is left out of the file, which says so" {
        PROGRAMS=$BATS_TEST_TMPDIR/programs
        mkdir "$PROGRAMS"
        cp "$FLEXGRAFT_BIN/mount-list" "$FLEXGRAFT_BIN/volume-list" "$PROGRAMS"
        printf '#!/bin/sh\necho flexgraft_half\nexec sleep 1000\n' >"$PROGRAMS/volume-capacity"
        chmod +x "$PROGRAMS/volume-capacity"
        write_metrics --timeout 15
        is "$status" 1
        well_formed
        is "$(sample flexgraft_metrics_failed 'program="volume-capacity"') $(sample flexgraft_metrics_failed 'program="volume-list"')" "1 0"
        [[ $output != *half* && $output == *flexgraft_volumes* && $output == *flexgraft_mounts* ]]
}

@test "a reader of the file sees the old one or the new one" {
        local inode
        write_metrics
        inode=$(stat -c %i "$FILE")
        exec {old}<"$FILE"
        mkdir -m 0700 "${FILE%/*}/.flexgraft.prom.new"
        echo "half a line" >"${FILE%/*}/.flexgraft.prom.new/new" # of one that was killed
        write_metrics
        is "$status" 0
        well_formed
        [[ $(stat -c %i "$FILE") != "$inode" ]]
        grep -q '^flexgraft_metrics_failed{program="mount-list"} 0$' <&"$old"
        # another is writing
        background_ready flock --no-fork "${FILE%/*}" sh -c 'echo ready; exec sleep 1000000'
        write_metrics
        is "$status" 1
        [[ $said == *another*"${FILE%/*}"* ]]
}

@test "the account of the collector cannot have the metrics written elsewhere" {
        local victim=$BATS_TEST_TMPDIR/victim work=$BATS_TEST_TMPDIR/textfiles/.flexgraft.prom.new
        mkdir "$BATS_TEST_TMPDIR/textfiles"
        mkdir -m 0700 "$victim"
        echo secret >"$victim/new"
        # a link in the place of the directory, or of the file; a directory that others may write; one in the place of the metrics
        ln -s "$victim" "$work"
        write_metrics
        is "$status" 1
        rm "$work"
        mkdir -m 0777 "$work"
        chown 65534 "$work"
        ln -s "$victim/new" "$work/new"
        write_metrics
        is "$status" 1
        rm -r "$work"
        mkdir "$FILE"
        write_metrics
        is "$status" 1
        is "$(ls -A "$FILE")" ''
        rmdir "$FILE"
        ln -s "$victim/new" "$FILE"
        write_metrics
        is "$status" 0
        [[ -f $FILE && ! -L $FILE ]]
        is "$(cat "$victim/new")" secret
}

@test "flexgraft-metrics refuses what it does not understand" {
        local arguments
        for arguments in --nonsense --output '--output x.prom' '--output /tmp/x' '--timeout 0' '--timeout 1m' --timeout; do
                # shellcheck disable=SC2086
                run --separate-stderr "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" $arguments
                is "$status" 2 "the exit status with $arguments"
        done
        run "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" --output /nowhere/at/all.prom
        is "$status" 1
}

@test "flexgraft-metrics tells the version of the programs that it runs" {
        run -0 env PATH="$FLEXGRAFT_BIN:$PATH" "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" --version
        is "$output" "flexgraft-metrics$("$FLEXGRAFT_BIN/mount-list" --version | sed 's/^mount-list//')"
}

# ---- the package, which tells by the metrics what it leaves

# package_says WORD...: the prerm of the package flexgraft, as dpkg calls it.
package_says() {
        run --separate-stderr env PATH="$FLEXGRAFT_BIN:$PATH" sh "$FLEXGRAFT_REPO/debian/flexgraft.prerm" "$@"
        is "$status:$output" 0:
        said=$stderr
}

@test "the package names the mounts that are left when it is removed, and is removed" {
        package_says remove
        is "$said" ''
        make_dir "$KUBELET/pods/pod-1/volumes/$DRIVER_NAME"
        call mount "$(pod_dir cache)" "$(spec cache type=tmpfs size=8Mi)"
        assert_success
        start_container crun
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"size\": \"8m\"}"
        assert_success
        package_says remove
        [[ $said == *"volumes on 1 directories, and 1 mounts in containers"* ]]
        package_says upgrade 0.2.0
        is "$said" ''
        stop_container
        call unmount "$(pod_dir cache)"
        assert_success
        package_says remove
        is "$said" ''
}

# ---- what alerts are made of

@test "a damaged record is in the metrics until it is removed" {
        start_container crun
        helper mount-tmpfs "{\"container\": $CONTAINER_PID, \"target\": \"/cache\", \"id\": \"a\"}"
        assert_success
        echo torn >"$STATE_DIR/mounts/a.json"
        metrics mount-list
        is "$(sample flexgraft_mount_records_broken)" 1
        metrics mount-list
        is "$(sample flexgraft_mount_records_broken)" 1
        rm "$STATE_DIR/mounts/a.json.bad"
        metrics mount-list
        is "$(sample flexgraft_mount_records_broken)" 0
}

@test "a device that a container has itself has no bytes of a filesystem in the metrics" {
        local labels
        make_device blank
        start_container crun
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/dev/disk\", \"raw\": true, \"id\": \"d\"}"
        assert_success
        metrics mount-list
        labels="id=\"d\",container=\"$CONTAINER_PID\",target=\"/dev/disk\",type=\"raw\""
        is "$(sample flexgraft_mount_state "$labels,state=\"present\"")" 1
        is "$(sample flexgraft_mount_filesystem_size_bytes "$labels")" ''
}

@test "a mount that is gone is no problem in the metrics, though its remap-daemon has ended with it" {
        local labels
        mkdir "$BATS_TEST_TMPDIR/shared"
        start_container crun
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$BATS_TEST_TMPDIR/shared\", \"target\": \"/data\", \"ids\": \"remap\", \"id\": \"r\"}"
        assert_success
        in_container umount /data
        metrics mount-list
        labels="id=\"r\",container=\"$CONTAINER_PID\",target=\"/data\",type=\"bind\""
        is "$(sample flexgraft_mount_state "$labels,state=\"gone\"")" 1
        is "$(sample flexgraft_mount_problem "$labels")" 0
}

# bats test_tags=text
@test "the manual page has an alert for each metric that says that something is wrong" {
        local name names
        names=$(grep -rhoE '(flexgraft_|NAME\(")[a-z_]+_(problem|problems|failed|rejected|broken)"' "$FLEXGRAFT_REPO"/src/common "$FLEXGRAFT_REPO/scripts/flexgraft-metrics" |
                sed -e 's/NAME("/flexgraft_/' -e 's/"$//' | sort -u)
        [[ -n $names ]]
        for name in $names; do
                sed 's/\\-/-/g' "$FLEXGRAFT_REPO/man/flexgraft-metrics.8" | sed -n '/^In Prometheus/,/^.SH SEE ALSO/p' | grep -qF "$name" ||
                        { echo "$name"; return 1; }
        done
}
