#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A model of kubelet on the CSI driver's Node service: its order of calls, its directories, repeats with the same arguments, its restart, the
# driver's death and the node's reboot, for each kind of volume that needs no other kernel (csi_kinds.bats has the others).

# shellcheck disable=SC2119,SC2120 # arguments may be left out
load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
load csi_node_helpers
load csi_kubelet_helpers
load kubelet_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        csi_begin
        CSI_CLIENT_OPTIONS=(--fresh)
        node_setup
}

teardown() {
        csi_end
}

pool_of_directories() {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
}

@test "a volume on a loop device lives through restarts of kubelet and the driver, and reboots" {
        new_volume
        lives
}

@test "a block volume lives through restarts of kubelet and the driver, and reboots" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        lives
}

# bats test_tags=deep
@test "a directory of a pool lives through restarts of kubelet and the driver, and reboots" {
        pool_of_directories
        new_volume '"parameters": {"pool": "dirs"}'
        lives
}

# bats test_tags=deep
@test "a directory of the node that the policy opens lives through restarts and reboots" {
        mkdir "$BATS_TEST_TMPDIR/srv/shared"
        printf '{"volumes": {"kinds": ["bind"], "sources": ["%s"]}}\n' "$BATS_TEST_TMPDIR/srv/shared" >"$FLEXGRAFT_POLICY"
        CONTEXT="\"type\": \"bind\", \"source\": \"$BATS_TEST_TMPDIR/srv/shared\""
        lives
}

@test "an inline tmpfs lives through restarts of kubelet and the driver" {
        ID=csi-$(printf tmpfs | sha256sum | cut -c1-64) CONTEXT='"type": "tmpfs", "size": "1Mi"'
        publish_inline && answers OK
        mark
        publish_inline && answers OK
        driver_dies
        publish_inline && answers OK
        marked
        driver_dies
        unpublish && answers OK
        all_gone
}

@test "an inline volume of a pool lives through restarts, and is deleted by the unpublish alone, also after a reboot" {
        ID=csi-$(printf pool | sha256sum | cut -c1-64) CONTEXT='"size": "8Mi"'
        publish_inline && answers OK
        mark
        driver_dies
        publish_inline && answers OK
        marked
        node_reboots
        unpublish && answers OK
        is "$(find "$POOL" -name '*.img')" ""
        all_gone
}

@test "while the driver is away calls fail at once as UNAVAILABLE, and the pod goes on" {
        new_volume
        kubelet_up
        mark
        csi_hang_up
        kill -KILL "$CSI_PID"
        wait "$CSI_PID" || :
        stage
        answers UNAVAILABLE
        marked
        csi_hang_up
        rm -f "$CSI_SOCKET"
        csi_start
        kubelet_down
}

@test "a call whose client gives up is finished, and the repeated call is OK" {
        new_volume
        mkdir -p "$(staging)"
        csi_hang_up
        "$CSI_CLIENT" --deadline 0.02 "$CSI_SOCKET" NodeStageVolume "$(node_request "\"staging_target_path\": \"$(staging)\""), \"volume_context\": {$CONTEXT}}" || :
        kubelet_stages() { stage; [[ $code == OK ]]; }
        wait_until 20 kubelet_stages
        is "$(node_mounts_at "$(staging)")" 1
        publish
        answers OK
        kubelet_down
}

# bats test_tags=deep
@test "sixteen volumes at once come and go, and nothing is left" {
        local i requests=() id
        for i in {1..16}; do
                ID=v$i
                SIZE=1048576 new_volume
                mkdir -p "$(staging)"
                requests+=("NodeStageVolume $(node_request "\"staging_target_path\": \"$(staging)\""), \"volume_context\": {$CONTEXT}}")
        done
        csi_hang_up
        is "$(printf '%s\n' "${requests[@]}" | "$CSI_CLIENT" --parallel "$CSI_SOCKET" - | cut -d' ' -f1 | sort | uniq -c | xargs)" "16 OK"
        requests=()
        for i in {1..16}; do
                ID=v$i
                requests+=("NodeUnstageVolume {\"volume_id\": \"$ID\", \"staging_target_path\": \"$(staging)\"}")
        done
        is "$(printf '%s\n' "${requests[@]}" | "$CSI_CLIENT" --parallel "$CSI_SOCKET" - | cut -d' ' -f1 | sort | uniq -c | xargs)" "16 OK"
        wait_until 5 no_loops_of_test
}

# ---- calls that take longer than kubelet waits: it resets the stream, and calls again half a second later

# slow_at NAME: a driver of whose programs the first that makes this system call stops there until let_go_on; a call waits for a second.
slow_at() {
        local HELPER_PREFIX=("$FLEXGRAFT_TOOLS/at-syscall" --to-point --others --at "$1"
                --run "kill -STOP \$AT_PID; echo \$AT_PID >'$BATS_TEST_TMPDIR/slow'")
        [[ -z $CSI_IN ]] || csi_hang_up
        csi_stop
        rm -f "$CSI_SOCKET" "$BATS_TEST_TMPDIR/slow"
        CSI_CLIENT_OPTIONS=(--fresh --deadline 1)
        csi_start
}

let_go_on() {
        kill -CONT "$(<"$BATS_TEST_TMPDIR/slow")"
}

# is_slow CALL: it is made, and its program stands still. What a slow client sends may be too late for its second: it calls again.
is_slow() {
        "$1"
        answers DEADLINE_EXCEEDED || return 1
        stands_still() {
                [[ -s $BATS_TEST_TMPDIR/slow ]] || { "$1" && is_put_off && [[ -s $BATS_TEST_TMPDIR/slow ]]; }
        }
        wait_until 10 stands_still "$1"
}

# be_patient: calls wait for their answers from now on.
be_patient() {
        [[ -z $CSI_IN ]] || csi_hang_up
        CSI_CLIENT_OPTIONS=(--fresh)
}

# until_ok CALL: it is repeated as long as the answer is not final.
until_ok() {
        until_now() {
                "$1"
                [[ $code == OK ]] || { [[ $code != ABORTED && $code != DEADLINE_EXCEEDED ]] && echo "final: $code $output" && return 0; return 1; }
        }
        be_patient
        wait_until 30 until_now "$1"
        answers OK
}

# driver_dies_slowly: the one that slow_at started; what it has started stays. Then another.
driver_dies_slowly() {
        local pid
        read -r pid _ <"/proc/$CSI_PID/task/$CSI_PID/children" || [[ -n $pid ]]
        kill -KILL "$pid"
        wait_until 10 process_is_gone "$pid" # its socket listens until then
        bed_pids+=("$CSI_PID")
        rm -f "$CSI_SOCKET"
        csi_start
}

# is_put_off: the answer, whether it came or not, is not final.
is_put_off() {
        [[ $code == ABORTED || $code == DEADLINE_EXCEEDED ]] || { echo "answer: $code $output"; return 1; }
}

# slow CALL SYSCALL: the call while its program takes long: ABORTED, not done twice, and in the end OK.
slow() {
        slow_at "$2"
        is_slow "$1" || { echo "$1"; return 1; }
        be_patient
        "$1"
        answers ABORTED || return 1
        let_go_on
        until_ok "$1"
}

@test "a second call for a volume while the first is under way is ABORTED, and the first ends" {
        new_volume
        stage
        mkdir -p "$(dirname "$(target)")"
        slow_at move_mount
        be_patient
        background "$CSI_CLIENT" "$CSI_SOCKET" NodePublishVolume \
                "$(node_request "\"staging_target_path\": \"$(staging)\", \"target_path\": \"$(target)\""), \"volume_context\": {$CONTEXT}}" >"$BATS_TEST_TMPDIR/first"
        local first=$BACKGROUND_PID
        wait_until 10 test -s "$BATS_TEST_TMPDIR/slow"
        publish
        answers ABORTED
        let_go_on
        wait "$first"
        is "$(node_mounts_at "$(target)")" 1
        kubelet_down
}

@test "a call that takes longer than kubelet waits is ABORTED when it is repeated, and OK when it has ended" {
        new_volume
        slow stage move_mount
        is "$(node_mounts_at "$(staging)")" 1
        slow publish move_mount
        is "$(node_mounts_at "$(target)")" 1
        slow unpublish umount2
        slow unstage umount2
        all_gone
}

@test "the same for a device and an inline volume" {
        ID=csi-$(printf slow | sha256sum | cut -c1-64) CONTEXT='"size": "8Mi"'
        slow publish_inline move_mount
        is "$(node_mounts_at "$(target)")" 1
        slow unpublish umount2
        is "$(find "$POOL" -name '*.img')" ""
        ID=data CAPABILITY=$BLOCK_WRITER CSI_CLIENT_OPTIONS=(--fresh)
        csi_hang_up
        new_volume
        stage && answers OK
        slow publish move_mount
        is "$(node_mounts_at "$(target)")" 1
        slow unpublish umount2
        unstage && answers OK
        all_gone
}

@test "a pod that is deleted while its volume is being staged: NodeUnstageVolume is not OK before that has ended, and then nothing is left" {
        new_volume
        slow_at move_mount
        is_slow stage
        be_patient
        unstage
        answers ABORTED
        let_go_on
        until_ok unstage
        all_gone
}

@test "the driver dies while a program stages: the call again is not final, no second mount is made, and unstage waits for that program" {
        new_volume
        slow_at move_mount
        is_slow stage
        driver_dies_slowly
        stage
        is_put_off
        let_go_on
        until_ok stage
        is "$(node_mounts_at "$(staging)")" 1
        until_ok unstage
        all_gone
        slow_at move_mount
        is_slow stage
        driver_dies_slowly
        unstage
        [[ $code != OK ]]
        let_go_on
        be_patient
        unstage_is_ok() { unstage; [[ $code == OK ]]; }
        wait_until 30 unstage_is_ok # whatever it answers, it is repeated
        all_gone
}

@test "the driver dies while a program publishes: unpublish is not OK before that program has ended, and then nothing is left" {
        local CAPABILITY
        for CAPABILITY in "$WRITER" "$BLOCK_WRITER"; do
                new_volume
                stage
                slow_at seccomp # early: no record tells that it publishes
                is_slow publish
                driver_dies_slowly
                unpublish
                answers ABORTED "that was made before the driver was restarted is under way"
                let_go_on
                until_ok unpublish
                until_ok unstage
                all_gone
                with_id DeleteVolume "$VOLUME_ID"
        done
}

@test "a program that ends, but leaves a process that hangs in the kernel, keeps no later call from the volume" {
        local pod answers=()
        jq '.timeouts.call = 2 | .timeouts.unmount = 2' "$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new" && mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
        new_volume
        stage
        pod=$(dirname "$(target)")
        mkdir -p "$pod"
        truncate -s 16M "$BATS_TEST_TMPDIR/frozen"
        mkfs.ext4 -q "$BATS_TEST_TMPDIR/frozen"
        mount -o loop "$BATS_TEST_TMPDIR/frozen" "$pod"
        fsfreeze --freeze "$pod" # mkdir hangs, and not even SIGKILL ends it
        background "$CSI_CLIENT" "$CSI_SOCKET" NodePublishVolume \
                "$(node_request "\"staging_target_path\": \"$(staging)\", \"target_path\": \"$(target)\""), \"volume_context\": {$CONTEXT}}" >/dev/null 2>&1
        it_hangs() { pgrep --runstates D --full "verbs/mount $(target) " >/dev/null; }
        wait_until 5 it_hangs || answers+=("nothing hangs")
        # the program ends when its driver is there no more, and cannot give back what it has
        kill -KILL "$CSI_PID"
        rm -f "$CSI_SOCKET"
        csi_start
        be_patient
        CSI_CLIENT_OPTIONS=(--fresh --deadline 30) # so that it is thawed, whatever comes
        unpublish_has_begun() { unpublish; [[ $output != *"was made before the driver was restarted"* ]]; }
        wait_until 8 unpublish_has_begun || :
        answers+=("$code $output")
        unpublish
        answers+=("$code $output")
        fsfreeze --unfreeze "$pod"
        until_ok unpublish
        wait_until 10 umount "$pod"
        [[ ${answers[0]} == "ABORTED cannot unmount "*": a hanging system call"* ]] || { echo "unpublish: ${answers[0]}"; false; }
        [[ ${answers[1]} == "ABORTED cannot unmount "*": a hanging system call"* ]] || { echo "again: ${answers[1]}"; false; }
        unstage
        answers OK
        all_gone
}

@test "after a reboot an inline volume is published again: one of a pool has its content, one in memory is empty" {
        ID=csi-$(printf pool | sha256sum | cut -c1-64) CONTEXT='"size": "8Mi"'
        publish_inline && answers OK
        mark
        node_reboots
        publish_inline && answers OK
        marked
        unpublish && answers OK
        is "$(find "$POOL" -name '*.img')" ""
        ID=csi-$(printf tmpfs | sha256sum | cut -c1-64) CONTEXT='"type": "tmpfs", "size": "1Mi"'
        publish_inline && answers OK
        mark
        node_reboots
        publish_inline && answers OK
        is "$(ls -A "$(target)")" ""
        is "$(node_mounts_at "$(target)")" 1
        unpublish && answers OK
        all_gone
}

# ---- what kubelet has forgotten: volume-reconcile unstages it

# note DIR [HANDLE]: kubelet's, beside the directory of a volume.
note() {
        printf '{"driverName": "csi.flexgraft.io", "volumeHandle": "%s", "specVolID": "pv-1"}\n' "${2:-$ID}" >"$1/vol_data.json"
}

# forgotten: staged, and kubelet was killed between unpublish and unstage.
forgotten() {
        watch_kubelet
        start_kubelet
        new_volume
        kubelet_up
        note "$(dirname "$(staging)")"
        unpublish
        answers OK
        rm -rf "$KUBELET/pods"
}

# seen_twice: by volume-reconcile, with as much time between as a volume may be without a pod.
seen_twice() {
        helper volume-reconcile '{}'
        assert_success
        later
        helper volume-reconcile '{}'
        assert_success
}

@test "a volume that kubelet forgot to unstage is unstaged when it was seen twice, and can be staged again" {
        forgotten
        helper volume-reconcile '{}'
        is "$(node_mounts_at "$(staging)")" 1
        later
        helper volume-reconcile '{}'
        assert_success
        assert_field '.problems' '[]'
        all_gone
        [[ ! -e $(staging) ]]
        unstage
        answers OK
        kubelet_up
        kubelet_down
        all_gone
}

@test "a staged volume that a pod's directory refers to is not unstaged, by whatever name" {
        forgotten
        mkdir -p "$KUBELET/pods/pod-2/volumes/kubernetes.io~csi"/{pv-0,pv-1}
        note "$KUBELET/pods/pod-2/volumes/kubernetes.io~csi/pv-0" other
        note "$KUBELET/pods/pod-2/volumes/kubernetes.io~csi/pv-1"
        seen_twice
        is "$(node_mounts_at "$(staging)")" 1
        note "$KUBELET/pods/pod-2/volumes/kubernetes.io~csi/pv-1" another
        seen_twice
        all_gone
}

@test "a staged volume is not unstaged while the note of a pod's volume cannot be read" {
        forgotten
        mkdir -p "$KUBELET/pods/pod-2/volumes/kubernetes.io~csi/pv-1"
        echo '{"driverName": "csi.' >"$KUBELET/pods/pod-2/volumes/kubernetes.io~csi/pv-1/vol_data.json"
        seen_twice
        is "$(node_mounts_at "$(staging)")" 1
        rm -r "$KUBELET/pods"
        unstage
        answers OK
}

@test "a stage without a note of kubelet's is only reported" {
        forgotten
        rm "$(dirname "$(staging)")/vol_data.json"
        seen_twice
        is "$(node_mounts_at "$(staging)")" 1
        assert_field '[.problems[] | tostring | select(contains("kubelet did not stage it"))] | length' 1
        unstage
        answers OK
}

@test "a publish that fails ends a sighting: kubelet would not stage the volume anew" {
        forgotten
        helper volume-reconcile '{}'
        later
        mkdir -p "$(target)"
        mount -t tmpfs tmpfs "$(target)"
        publish
        answers FAILED_PRECONDITION
        umount "$(target)"
        rm -rf "$KUBELET/pods"  # as kubelet does then
        helper volume-reconcile '{}'
        assert_success
        publish
        answers OK
        kubelet_down
}
