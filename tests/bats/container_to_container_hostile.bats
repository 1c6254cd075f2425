#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-container-to-container: containers that mean harm.

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

# swapping_in_a: /p/a and /p/b of A change places as fast as they can, until stop_swapping.
swapping_in_a() {
        background_ready nsenter --target "$A" --mount -- /bin/swap-loop /p a b
}

stop_swapping() {
        end_process "$BACKGROUND_PID"
}

# mount_while_swapping SOURCE CHECK [MORE]: until some mounts were made; CHECK is run while B has something on /data.
mount_while_swapping() {
        local rounds=0 successes=0
        use_container "$B"
        container_snapshot
        node_snapshot
        swapping_in_a
        # each waits for luck, which is about a half
        while ((rounds < 20 || (successes == 0 && rounds < 5000))); do
                c2c "$1" /data "${@:3}"
                if [[ $status == 0 ]]; then
                        successes=$((successes + 1))
                        "$2" || { echo "in round $rounds"; show_last; return 1; }
                        helper mount-remove "$(remove_request /data)"
                        assert_success || return 1
                else
                        assert_failure || return 1
                        assert_mounts_at /data 0 || return 1
                fi
                rounds=$((rounds + 1))
        done
        stop_swapping
        echo "$successes of $rounds"
        ((successes > 0))
        assert_container_unchanged
        assert_node_unchanged
}

@test "a file that takes turns with a device file never gives the device" {
        start_two plain-nouserns plain
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b c 1 5'
        mount_while_swapping /p/a is_a_regular_file '"options": "dev"'
}

# bats test_tags=deep
@test "a file that takes turns with a device file never gives the device, without user namespaces" {
        start_two plain-nouserns plain-nouserns
        in_a sh -c 'mkdir /p && echo text >/p/a && mknod -m 0666 /p/b b 7 0'
        mount_while_swapping /p/a is_a_regular_file '"options": "dev"'
}

swap_with_link() {
        local outside=$BATS_TEST_TMPDIR/outside
        mkdir -p "$outside/sub"
        touch "$outside/of-the-node" "$outside/sub/of-the-node"
        start_two "$1" plain
        in_a mkdir -p /p/a/sub
        in_a touch /p/a/of-a /p/a/sub/of-a
        in_a ln -s "${2//OUTSIDE/$outside}" /p/b
        mount_while_swapping "$3" is_of_a "${@:4}"
        is "$(find "$outside" | wc -l)" 4 "files of the node"
}

@test "a directory that takes turns with a symlink to the node's directories gives nothing of the node" {
        swap_with_link plain OUTSIDE /p/a
}

# bats test_tags=deep
@test "a directory in one that takes turns with a symlink that climbs gives nothing of the node" {
        swap_with_link plain-nouserns ../../../../../../../../OUTSIDE /p/a/sub
}

# bats test_tags=deep
@test "a directory that takes turns with a magic link gives nothing of the node" {
        swap_with_link plain-nouserns /proc/self/root/OUTSIDE /p/a/sub
}

# bats test_tags=deep
@test "a missing source below a directory that takes turns with a symlink is not made on the node" {
        local outside=$BATS_TEST_TMPDIR/outside rounds
        mkdir -p "$outside"
        start_two plain-nouserns plain
        in_a mkdir -p /p/a
        in_a ln -s "../../../../../../..$outside" /p/b
        swapping_in_a
        for rounds in {1..60}; do
                c2c "/p/a/made.$rounds/sub" /data '"mkdirSource": true'
                assert_one_json_line
                helper mount-remove "$(remove_request /data)"
                assert_success
        done
        stop_swapping
        is "$(ls -A "$outside")" ""
        assert_no_records
}

@test "a target that the container covered later is listed so, and removed when it is uncovered" {
        start_two plain plain
        in_a mkdir /share
        in_b mkdir -p /d/data
        c2c /share /d/data
        assert_success
        in_b mount -t tmpfs tmpfs /d
        helper mount-list '{}'
        assert_field '.mounts[0].state' covered
        helper mount-remove "$(remove_request /d/data)"
        assert_failure EBUSY
        in_b umount /d
        helper mount-remove "$(remove_request /d/data)"
        assert_success
        assert_no_records
}

# silent_fuse_in_a: on /tmp/fuse.
silent_fuse_in_a() {
        local namespaces=(--mount --pid)
        [[ ${bed_kind[$A]} == *nouserns* ]] || namespaces+=(--user)
        in_a mkdir -p /tmp/fuse
        background_ready nsenter --target "$A" "${namespaces[@]}" -- /bin/silent-fuse /tmp/fuse
}

@test "a silent FUSE in the source's path, or as the source, neither hangs nor leaves anything" {
        local kind source
        for kind in plain plain-nouserns; do
                start_two "$kind" plain
                silent_fuse_in_a
                container_snapshot
                node_snapshot
                for source in /tmp/fuse/data /tmp/fuse; do
                        not_hung c2c "$source" /made/data '"timeoutSeconds": 2, "mkdirSource": true'
                        assert_one_json_line
                        [[ $status == 0 ]] || wait_until 5 assert_no_helper_processes
                        if [[ $status == 1 ]]; then
                                assert_container_unchanged
                                assert_node_unchanged
                        else
                                helper mount-remove "$(remove_request /made/data)"
                                assert_success
                        fi
                done
        done
}

# a_does_at CALL COMMAND: container A runs the command right before that call.
a_does_at() {
        at_syscall --at "$1" --run "nsenter --target $A --mount --user --pid -- /bin/sh -c '$2'" --run-output "$BATS_TEST_TMPDIR/done" \
                "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /data)"
        is "$AT_REACHED $(cat "$BATS_TEST_TMPDIR/done")" '1 '
}

# bats test_tags=deep
@test "a container that covers its root directory while its source is cloned changes nothing" {
        start_two plain plain
        in_a sh -c 'mkdir /share && touch /share/file'
        a_does_at unshare '/bin/mount -t tmpfs tmpfs /'
        assert_success
        assert_field .mount.idMapping idmapped
        in_b test -e /data/file
        is "$(owners b /data/file)" 0:0
}

@test "a source that its container unmounts while it is cloned is not called unbindable" {
        start_two plain plain
        in_a sh -c 'mkdir /share && /bin/mount -t tmpfs tmpfs /share'
        a_does_at open_tree '/bin/umount -l /share'
        assert_failure ESTALE
        [[ $output != *unbindable* && $output == *"try again"* ]]
        assert_no_records
        in_a sh -c '/bin/mount -t tmpfs tmpfs /share && mount --make-unbindable /share'
        c2c /share /data
        assert_failure EINVAL
        [[ $output == *unbindable* ]]
}

# nodes_directory_at TARGET: A has a directory of the node there, unmapped.
nodes_directory_at() {
        use_container "$A"
        helper mount-bind "$(bind_request "$1" '"ids": "host"')"
        use_container "$B"
        assert_success
}

# nodes_directory_below_share: /share is a filesystem of A's own, and on /share/given is a directory of the node, which is
# nobody's in A. Where ids that A's filesystem has become those of B, the node's root would become B's.
nodes_directory_below_share() {
        kernel_can map-tmpfs || skip "this kernel cannot id-map tmpfs: nothing is given then"
        start_two plain plain
        in_a sh -c 'mkdir /share && /bin/mount -t tmpfs tmpfs /share && mkdir -p /share/dir/given'
        nodes_directory_at /share/dir/given
        is "$(owners a /share/dir/given)" 65534:65534
}

@test "a mount below the source whose owners no mapping shows as they are is refused" {
        nodes_directory_below_share
        fails_without_a_trace EXDEV /share /data '"recursive": true'
}

@test "a mount below the source is looked at, too, where its container covers it" {
        nodes_directory_below_share
        in_a /bin/mount -t tmpfs tmpfs /share/dir/given
        fails_without_a_trace EXDEV /share /data '"recursive": true'
        in_a sh -c 'umount /share/dir/given && /bin/mount -t tmpfs tmpfs /share/dir'
        fails_without_a_trace EXDEV /share /data '"recursive": true'
}

@test "a mount below the source is looked at, too, where its path is longer than a path may be" {
        nodes_directory_below_share
        in_a sh -c 'name=$(printf "%0250d" 0) && cd /share && for i in $(seq 17); do mkdir $name && cd -P $name || exit; done && mv /share/dir .'
        is "$(grep -c /share/0 "/proc/$A/mountinfo")" 1
        fails_without_a_trace EXDEV /share /data '"recursive": true'
}

@test "a mount below the source is looked at, too, where its directory was moved out of the mount that it is in" {
        kernel_can map-tmpfs || skip "this kernel cannot id-map tmpfs: nothing is given then"
        start_two plain plain
        in_a sh -c 'mkdir /share && /bin/mount -t tmpfs tmpfs /share && mkdir -p /share/src/p /share/r/x/given && /bin/mount --bind /share/r /share/src/p'
        nodes_directory_at /share/src/p/x/given
        in_a mv /share/r/x /share/out
        is "$(grep -c given "/proc/$A/mountinfo")" 0 # it has no path, and is there: /share/out is empty but for the mountpoint
        fails_without_a_trace EXDEV /share/src /data '"recursive": true'
        in_a mv /share/out /share/r/x
        is "$(grep -c given "/proc/$A/mountinfo")" 1
        fails_without_a_trace EXDEV /share/src /data '"recursive": true'
}

# bats test_tags=kernel
@test "before Linux 6.8 mounts below the source come along only if all of them can be taken off where they are looked at" {
        local asked=1
        kernel_can unique-ids || asked=0        # such a kernel is not asked
        start_two plain plain
        in_a sh -c 'mkdir -p /share/src/p /share/src/q /share/r/x/given /other && /bin/mount --bind /share/r /share/src/p && /bin/mount --bind /other /share/src/q'
        at_syscall --at listmount --fail ENOSYS "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share/src /data '"recursive": true')"
        is "$AT_REACHED" "$asked"
        assert_success
        assert_mounts_at /data/p 1
        helper mount-remove "$(remove_request /data)"
        assert_success
        nodes_directory_at /share/src/p/x/given
        in_a mv /share/r/x /share/out
        at_syscall --at listmount --fail ENOSYS "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share/src /data '"recursive": true')"
        is "$AT_REACHED" "$asked"
        assert_failure EXDEV
        assert_mounts_at /data 0
}

# bats test_tags=deep
@test "a mount below the source that its container unmounts meanwhile is looked at, or does not come" {
        local k refused=0
        nodes_directory_below_share
        for k in {1..40}; do
                at_syscall --at "mount_setattr:$k" --run "nsenter --target $A --mount --user --pid -- /bin/umount -l /share/dir/given" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /data '"recursive": true')"
                ((AT_REACHED > 0)) || break
                assert_one_json_line
                assert_mounts_at /data/dir/given 0
                if [[ $status == 0 ]]; then
                        helper mount-remove "$(remove_request /data)"
                        assert_success
                else
                        assert_failure EXDEV
                        refused=$((refused + 1))
                fi
                nodes_directory_at /share/dir/given
        done
        ((k > 2 && k < 40 && refused > 0))
}

# bats test_tags=deep
@test "a container that sees the helper's pid cannot look into it" {
        start_two plain-hostpid plain-hostpid
        in_a mkdir /share
        local pid
        for pid in "$A" "$B"; do
                rm -f "$BATS_TEST_TMPDIR/seen"
                at_syscall --run-output "$BATS_TEST_TMPDIR/seen" \
                        --each "exec nsenter --target $pid --mount --user --net --ipc --uts -- /bin/peek-at \$AT_PID \"\$AT_SYSCALL \$AT_NAME: \"" \
                        "$FLEXGRAFT_BIN/mount-container-to-container" "$(c2c_request /share /made/data '"timeoutSeconds": 600')"
                assert_success
                is "$(head -5 "$BATS_TEST_TMPDIR/seen")" "" "what the container saw"
                helper mount-remove "$(remove_request /made/data)"
                assert_success
        done
}
