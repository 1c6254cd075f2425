#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: containers that change, or end, before any of its system calls.

load helpers
load container_to_container_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-container-to-container mount-bind mount-remove mount-list
}

teardown() {
        bed_teardown
}

# ---- containers that mean harm, or end

# find_calls REQUEST: the numbers of the calls before which something that happens elsewhere can matter, in CALLS: from where the first
# container is pinned on, less those that ask the world nothing.
find_calls() {
        local log=$BATS_TEST_TMPDIR/log target
        target=$(jq -c '{container: .to.container, target: .to.path}' <<<"$1")
        # twice: the first one makes the state directory
        for _ in 1 2; do
                "$FLEXGRAFT_TOOLS/at-syscall" --log "$log" "$FLEXGRAFT_BIN/mount-container-to-container" "$1" >/dev/null 2>&1 3>&-
                helper mount-remove "$target"
                assert_success
        done
        mapfile -t CALLS < <(awk '
                $3 == "pidfd_open" { pinned = 1 }
                pinned && $3 !~ /^(close|close_range|read|getppid|getpid|prctl|ppoll|geteuid|fcntl|socketpair|setfs[ug]id|setgroups|setres[ug]id|exit|exit_group)$/ { print $1 }' "$log")
        ((${#CALLS[@]} > 50))
        # as the long sweeps do: not always the same ones
        local all=("${CALLS[@]}") i
        CALLS=()
        for ((i = SWEEP_OFFSET; i < ${#all[@]}; i += SWEEP_STRIDE)); do
                CALLS+=("${all[i]}")
        done
}

# at_each_call_swap CHECK: /p/a and /p/b of A change places once, before each call in turn.
at_each_call_swap() {
        local number swap mounts
        use_container "$B"
        find_calls "$(c2c_request /p/a /data '"options": "dev"')"
        container_snapshot
        node_snapshot
        mounts=$(<"/proc/$B/mountinfo")
        swap="cd '${bed_rootfs[$A]}/p' && mv a c && mv b a && mv c b"
        for number in "${CALLS[@]}"; do
                at_syscall --at "$number" --run "$swap" "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /p/a /data '"options": "dev"')"
                # it made fewer calls this time, and is done
                [[ $AT_REACHED == 1 ]] || { helper mount-remove "$(remove_request /data)" && break; }
                if [[ $status == 0 ]]; then
                        "$1" || { echo "before call $number, $AT_NAME"; show_last; return 1; }
                        helper mount-remove "$(remove_request /data)"
                        assert_success || return 1
                else
                        assert_failure || { echo "before call $number, $AT_NAME"; return 1; }
                fi
                [[ $(<"/proc/$B/mountinfo") == "$mounts" ]] && assert_no_records || { echo "before call $number, $AT_NAME"; return 1; }
                (eval "$swap")
        done
        assert_container_unchanged
        assert_node_unchanged
}

@test "a file that becomes a device file before any call never gives the device" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b c 1 5'
        at_each_call_swap is_a_regular_file
}

@test "a directory that becomes a symlink to the node's before any call gives nothing of the node" {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir "$outside"
        touch "$outside/of-the-node"
        start_two plain plain
        in_a sh -c 'mkdir -p /p/a && touch /p/a/of-a'
        in_a ln -s "$outside" /p/b
        at_each_call_swap is_of_a
}

# at_each_call_cover WHO DIR: root of A or B mounts a tmpfs over DIR before each call in turn.
at_each_call_cover() {
        local number pid=${!1} before before_a
        find_calls "$(c2c_request /share /d/data '"id": "mine"')"
        before=$(<"/proc/$B/mountinfo") before_a=$(<"/proc/$A/mountinfo")
        for number in "${CALLS[@]}"; do
                at_syscall --at "$number" --run "nsenter --target $pid --mount --user --root -- /bin/mount -t tmpfs -o mode=755 cover $2" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /d/data '"id": "mine"')"
                [[ $AT_REACHED == 1 ]] || break
                [[ -z $stderr && $status =~ ^[01]$ && $output == '{"status":"'*$'}\n' ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                if [[ $status == 1 ]]; then
                        [[ -z $(records) ]] || { echo "a record after failure at call $number, $AT_NAME"; show_last; return 1; }
                        is "$(grep " /d/data " "/proc/$B/mountinfo" | grep -vc " - tmpfs cover " || :)" 0 "mounts after failure at call $number, $AT_NAME" || return 1
                else
                        # covered or not, it is removed by its name; under a cover only when that is gone
                        helper mount-remove '{"id": "mine"}'
                        if [[ $status != 0 ]]; then
                                assert_failure EBUSY || return 1
                                "in_${1,,}" umount "$2"
                                helper mount-remove '{"id": "mine"}'
                                assert_success || { echo "at call $number, $AT_NAME"; return 1; }
                        fi
                fi
                "in_${1,,}" umount "$2" 2>/dev/null || :
                assert_same_mounts "$B" "$before" && assert_same_mounts "$A" "$before_a" && assert_no_records ||
                        { echo "at call $number, $AT_NAME"; show_last; return 1; }
        done
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

# dies_at_each_call A|B: that container is killed before each call in turn.
dies_at_each_call() {
        local number root_a=${bed_rootfs[$A]} root_b=${bed_rootfs[$B]} pid view now wrong=''
        find_calls "$(c2c_request "$SOURCE_PATH" /made/data '"mkdirSource": true')"
        rm -rf "$root_a/new"
        view=$(find "$root_a" "$root_b" -xdev | sort)
        for number in "${CALLS[@]}"; do
                pid=${!1}
                use_container "$B"
                container_snapshot
                at_syscall --at "$number" --run "kill -KILL $pid; while kill -0 $pid; do :; done" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request "$SOURCE_PATH" /made/data '"id": "mine", "mkdirSource": true')"
                [[ $AT_REACHED == 1 ]] || break
                [[ -z $stderr && $status =~ ^[01]$ && $output == '{"status":"'*$'}\n' ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                if [[ $status == 0 ]]; then
                        # it was too late to matter
                        if [[ $1 == A ]]; then
                                assert_mounts_at /made/data 1 && in_b touch /made/data/made && is "$(owners b /made/data/made)" 0:0 ||
                                        { echo "at call $number, $AT_NAME"; return 1; }
                        fi
                        helper mount-remove '{"id": "mine"}'
                        assert_success
                        rm -rf "$root_b/made" "$root_a/new"
                elif [[ $1 == A ]]; then
                        assert_container_unchanged || { echo "at call $number, $AT_NAME"; return 1; }
                fi
                [[ -z $(records) ]] || { echo "a record is left at call $number, $AT_NAME: $(records)"; show_last; return 1; }
                now=$(find "$root_a" "$root_b" -xdev | sort)
                if [[ $now != "$view" ]]; then
                        echo "files are left at call $number, $AT_NAME: $(diff <(echo "$view") <(echo "$now"))"
                        show_last
                        rm -rf "$root_b/made" "$root_a/new"
                        wrong=1
                fi
                assert_no_helper_processes
                stop_container "$pid"
                if [[ $1 == A ]]; then
                        ROOTFS=$root_a start_container plain
                        A=$CONTAINER_PID
                else
                        ROOTFS=$root_b start_container plain 200000
                        B=$CONTAINER_PID
                fi
        done
        [[ -z $wrong ]]
        now=''
        snapshot_node now
        is "$now" "$bed_before"
}

@test "a source's container that dies before any call: a clean reply, and a whole mount or nothing, also of mkdirSource's" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call A
}

@test "a target's container that dies before any call: a clean reply, and nothing is left in either" {
        start_two plain plain
        SOURCE_PATH=/new/source dies_at_each_call B
}

@test "a pid of the source's container that another process takes over before any call is not acted upon" {
        local number pid first rootfs snapshot=$BATS_TEST_TMPDIR/snapshot
        start_two plain plain
        rootfs=${bed_rootfs[$A]}
        in_a sh -c 'mkdir -p /share && touch /share/of-a'
        # the same path on the node, in the view of the process that gets the pid
        bed_made+=(/share)
        [[ ! -e /share ]] || skip "the node has a /share"
        mkdir /share
        # before pidfd_open a bare number means whoever has it; there are two, the target's comes first
        find_calls "$(c2c_request /share /data)"
        first=$(awk '$3 == "pidfd_open" {number = $1} END {print number}' "$BATS_TEST_TMPDIR/log")
        for number in "${CALLS[@]}"; do
                ((number > first)) || continue
                pid=$A
                at_syscall --at "$number" --run "'$FLEXGRAFT_TOOLS/clone-at-pid' --kill --snapshot '$snapshot' $pid sleep 1000000" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /data '"id": "mine"')"
                [[ $AT_REACHED == 1 ]] || break
                bed_pids+=("$pid")
                [[ -z $stderr && $status =~ ^[01]$ ]] || { echo "at call $number, $AT_NAME"; show_last; return 1; }
                assert_same_mounts "$pid" "$(<"$snapshot")" || { echo "the other process was touched, at call $number, $AT_NAME"; return 1; }
                if [[ $status == 0 ]]; then
                        in_b test -e /data/of-a || { echo "the node's directory was mounted, at call $number, $AT_NAME"; show_last; return 1; }
                fi
                end_process "$pid"
                helper mount-remove '{"id": "mine"}'
                assert_success
                assert_mounts_at /data 0
                stop_container "$pid"
                ROOTFS=$rootfs start_container plain
                A=$CONTAINER_PID
                use_container "$B"
        done
        rmdir /share
}
