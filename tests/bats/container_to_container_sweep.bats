#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: containers that change, or end, before any of its system calls.
# bats file_tags=sweep

load helpers
load container_to_container_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-container-to-container mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# find_calls REQUEST: in POINTS those of this run, of the calls before which something that happens elsewhere can matter: from where the first
# container is pinned on (with PIDS_FIRST=3: the third), less those that ask the world nothing.
find_calls() {
        local log=$BATS_TEST_TMPDIR/log target
        target=$(jq -c '{container: .to.container, target: .to.path}' <<<"$1")
        # twice: the first one makes the state directory
        for _ in 1 2; do
                "$FLEXGRAFT_TOOLS/at-syscall" --log "$log" "$FLEXGRAFT_BIN/mount-container-to-container" "$1" >/dev/null 2>&1 3>&-
                helper mount-remove "$target"
                assert_success
        done
        awk -v pids="${PIDS_FIRST:-1}" '$3 == "pidfd_open" { pinned++ }
                pinned >= pids && $3 !~ /^(close|close_range|read|getppid|getpid|prctl|ppoll|geteuid|fcntl|socketpair|setfs[ug]id|setgroups|setres[ug]id|exit|exit_group)$/ { print $1 }' \
                "$log" >"$BATS_TEST_TMPDIR/points"
        (($(wc -l <"$BATS_TEST_TMPDIR/points") > 50))
        # whether the worker gets to its exit_group before it is killed changes from run to run, and the numbers after it with that
        sed -i '$s/$/?/' "$BATS_TEST_TMPDIR/points"
        POINTS=$(sweep_places <"$BATS_TEST_TMPDIR/points")
}

MOUNT_C2C=(act "$FLEXGRAFT_BIN/mount-container-to-container")
REMOVE_MINE=(call "$FLEXGRAFT_BIN/mount-remove" '{"id": "mine"}' ';')

# sweep_containers OPTION... -- STEP...: at the points that find_calls found.
sweep_containers() {
        sweep --at "$POINTS" --watch tree "$STATE_DIR" --watch mounts self "$@"
        assert_no_records
}

# at_each_call_swap CHECK: /p/a and /p/b of A change places once, before each call in turn; CHECK, for sh, holds where a mount is made.
at_each_call_swap() {
        local swap request
        use_container "$B"
        request=$(c2c_request /p/a /data '"options": "dev"')
        find_calls "$request"
        container_snapshot
        node_snapshot
        swap="cd '${bed_rootfs[$A]}/p' && mv a c && mv b a && mv c b"
        sweep_containers --run "$swap" --watch mounts "$B" --watch mounts "$A" --watch tree "${bed_rootfs[$B]}" -- \
                "${MOUNT_C2C[@]}" "$request" ';' \
                on-success sh "$1" ';' \
                on-success call "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /data)" ';' \
                sh "[ \"\$NAME\" = - ] || { $swap; }" ';' \
                same ';'
        assert_container_unchanged
        assert_node_unchanged
}

@test "a file that becomes a device file before any call never gives the device" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b c 1 5'
        at_each_call_swap "[ -f /proc/$B/root/data ]"
}

@test "a directory that becomes a symlink to the node's before any call gives nothing of the node" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        touch "$outside/of-the-node"
        start_two plain plain
        in_a sh -c 'mkdir -p /p/a && touch /p/a/of-a'
        in_a ln -s "$outside" /p/b
        at_each_call_swap "[ -e /proc/$B/root/data/of-a ] && [ ! -e /proc/$B/root/data/of-the-node ]"
}

# at_each_call_cover WHO DIR: root of A or B mounts a tmpfs over DIR before each call in turn.
at_each_call_cover() {
        local request uncover remove
        request=$(c2c_request /share /d/data '"id": "mine"')
        find_calls "$request"
        uncover="$(in_sh "${!1}") umount $2"
        remove="'$FLEXGRAFT_BIN/mount-remove' '{\"id\": \"mine\"}'"
        # covered or not, it is removed by its name; under a cover only when that is gone
        sweep_containers --run "nsenter --target ${!1} --mount --user --root -- /bin/mount -t tmpfs -o mode=755 cover $2" \
                --watch mounts "$A" --watch mounts "$B" -- \
                "${MOUNT_C2C[@]}" "$request" ';' \
                on-failure sh "[ -z \"\$(find '$STATE_DIR' -name uses -prune -o ! -type d ! -name .lock ! -name .call-counts.2 -print)\" ]" ';' \
                on-failure sh "! grep ' /d/data ' /proc/$B/mountinfo | grep -v ' - tmpfs cover '" ';' \
                on-success sh "out=\$($remove) || { case \$out in *'\"errno\":\"EBUSY\"'*) $uncover && $remove ;; *) echo \"\$out\"; exit 1 ;; esac; }" ';' \
                sh "$uncover 2>/dev/null || :" ';' \
                same ';'
}

@test "a target whose directory is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover B /d
}

@test "a target that is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover B /d/data
}

@test "a source that is covered by another mount before any call: a clean reply, and nothing is left" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        at_each_call_cover A /share
}

# dies_at_each_call A|B: that container is killed before each call in turn; each round has another one.
dies_at_each_call() {
        local root_a=${bed_rootfs[$A]} root_b=${bed_rootfs[$B]} pid=${!1} watch=() live=() start=() tidy
        find_calls "$(c2c_request "$SOURCE_PATH" /made/data '"mkdirSource": true')"
        rm -rf "$root_a/new"
        stop_container "$pid"
        tidy="rm -rf '$root_b/made' '$root_a/new'"
        if [[ $1 == A ]]; then
                A=@PID@
                start=(background PID "$FLEXGRAFT_TOOLS/container-init" --base 100000 "$root_a" ';')
                watch=(--watch mounts "$B")
                # it was too late to matter
                live=(on-success mounts "$B" /made/data 1 ';'
                        on-success sh "$(in_sh "$B") sh -c 'touch /made/data/made && [ \$(stat -c %u:%g /made/data/made) = 0:0 ]'" ';'
                        on-failure unchanged ';')
        else
                start=(background PID "$FLEXGRAFT_TOOLS/container-init" --base 200000 "$root_b" ';')
                watch=(--watch mounts "$A")
                B=@PID@
        fi
        # shellcheck disable=SC2016
        sweep_containers --run 'kill -KILL $PID; while kill -0 $PID; do :; done' "${watch[@]}" --watch tree "$root_a" --watch tree "$root_b" -- \
                "${start[@]}" \
                remember mounts "$B" ';' \
                "${MOUNT_C2C[@]}" "$(c2c_request "$SOURCE_PATH" /made/data '"id": "mine", "mkdirSource": true')" ';' \
                "${live[@]}" \
                on-success "${REMOVE_MINE[@]}" \
                on-success sh "$tidy" ';' \
                end PID ';' \
                same ';'
        snapshot_node now
        is "$now" "$bed_before"
}

@test "a source's container that dies before any call: a clean reply, and a whole mount or nothing, also of mkdirSource's" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call A
        use_container "$B"
        stop_container
}

@test "a target's container that dies before any call: a clean reply, and nothing is left in either" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call B
}

@test "a pid of the source's container that another process takes over before any call is not acted upon" {
        local rootfs snapshot=$BATS_TEST_TMPDIR/snapshot
        start_two plain plain
        rootfs=${bed_rootfs[$A]}
        in_a sh -c "mkdir -p /share-$RUN_ID && touch /share-$RUN_ID/of-a"
        # the same path on the node, in the view of the process that gets the pid
        bed_made+=("/share-$RUN_ID")
        mkdir "/share-$RUN_ID"
        # before pidfd_open a bare number means whoever has it; the target's comes first, then the program's own, to ask for its namespaces
        PIDS_FIRST=3 find_calls "$(c2c_request "/share-$RUN_ID" /data)"
        stop_container "$A"
        A=@PID@
        # shellcheck disable=SC2016
        sweep_containers --run "'$FLEXGRAFT_TOOLS/clone-at-pid' --kill --snapshot '$snapshot' \$PID sleep 1000000" --watch mounts "$B" -- \
                background PID "$FLEXGRAFT_TOOLS/container-init" --base 100000 "$rootfs" ';' \
                "${MOUNT_C2C[@]}" "$(c2c_request "/share-$RUN_ID" /data '"id": "mine"')" ';' \
                sh "$(taken_over "$snapshot")" ';' \
                on-success sh "[ -e /proc/$B/root/data/of-a ]" ';' \
                sh 'kill -KILL $PID 2>/dev/null || :' ';' \
                "${REMOVE_MINE[@]}" \
                mounts "$B" /data 0 ';' \
                end PID ';' \
                same ';'
        rmdir "/share-$RUN_ID"
}
