#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The CSI driver, or a program of its, is killed at system calls of each call of the Node service. The call is repeated as kubelet repeats it; or
# the pod is deleted meanwhile, and kubelet calls what it does after such an answer. In the end nothing is left.
# bats file_tags=sweep

load helpers
load driver_helpers
load volume_helpers
load csi_service_helpers
load csi_node_helpers
load sweep_helpers
load csi_sweep_helpers
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
        node_setup
}

teardown() {
        in_turn csi_teardown wait_for_traced driver_teardown
}

# kubelet's ends: after an uncertain answer of stage, and of publish; a final answer says that nothing was done, and kubelet calls nothing.
gone_after_stage() { asked unstage && all_gone; }

gone_after_publish() { asked unpublish unstage && all_gone; }

not_staged() { all_gone; }

not_published() { is "$(node_mounts_at "$(target)")" 0 "mounts at the target"; }

remake() { csi CreateVolume "$(volume_request data)"; }

remove() { with_id DeleteVolume data; }

# swept_stage, swept_publish, swept_end: of the volume ID as CAPABILITY; staged_mounts is how many mounts the staging path has then.
swept_stage() {
        before() { :; }
        after() { is "$(node_mounts_at "$(staging)")" "$staged_mounts" && asked publish unpublish unstage && all_gone; }
        given_up() { gone_after_stage; }
        nothing() { not_staged; }
        swept stage
}

swept_publish() {
        before() { asked stage; }
        after() { is "$(node_mounts_at "$(target)")" 1 && asked unpublish unstage && all_gone; }
        given_up() { gone_after_publish; }
        nothing() { not_published; }
        swept publish
}

swept_end() {
        unset -f given_up nothing
        before() { asked stage publish; }
        after() { asked unstage && all_gone; }
        swept unpublish
        before() { asked stage publish unpublish; }
        after() { all_gone; }
        swept unstage
}

# bats test_tags=deep
@test "a driver or a program that is killed while it stages stages when it is called again" {
        new_volume
        stage && unstage # it has a filesystem now
        staged_mounts=1
        swept_stage
}

@test "a driver or a program that is killed while it stages a new volume, which gets its filesystem, stages when it is called again" {
        new_volume
        remove
        before() { asked remake; }
        after() { asked publish unpublish unstage && all_gone && asked remove; }
        given_up() { gone_after_stage && asked remove; }
        nothing() { not_staged; }
        swept stage
}

@test "a driver or a program that is killed while it publishes publishes when it is called again" {
        new_volume
        swept_publish
}

@test "a driver or a program that is killed while it unpublishes or unstages ends that when it is called again" {
        new_volume
        swept_end
}

@test "a driver or a program that is killed while it makes or deletes an inline volume ends that when it is called again" {
        ID=csi-inline CONTEXT='"size": "8Mi"'
        no_inline() { all_gone && is "$(find "$POOL" -name '*.img')" ""; }
        before() { :; }
        after() { is "$(node_mounts_at "$(target)")" 1 && asked unpublish && no_inline; }
        # unpublish knows only the target: of a call that was killed before anything was made an entry of the index of uses, or half a record, stays
        given_up() { asked unpublish && no_inline && helper volume-reconcile '{}' && assert_success; }
        nothing() { no_inline; }
        swept publish_inline
        unset -f given_up nothing
        before() { asked publish_inline; }
        after() { no_inline; }
        swept unpublish
}

# bats test_tags=deep
@test "a driver or a program that is killed while it makes or takes away an inline tmpfs ends that when it is called again" {
        ID=csi-inline CONTEXT='"type": "tmpfs", "size": "1Mi"'
        helper volume-reconcile '{}'    # makes what it counts pools in
        before() { :; }
        after() { is "$(node_mounts_at "$(target)")" 1 && asked unpublish && all_gone; }
        given_up() { asked unpublish && all_gone && helper volume-reconcile '{}' && assert_success; } # as above
        nothing() { not_published; }
        swept publish_inline
        unset -f given_up nothing
        before() { asked publish_inline; }
        after() { all_gone; }
        swept unpublish
}

# bats test_tags=deep
@test "a driver or a program that is killed while it stages or publishes a device, or takes it away, ends that when it is called again" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        staged_mounts=0
        swept_stage
        swept_publish
        swept_end
}

# bats test_tags=deep
@test "a driver or a program that is killed while it stages or publishes a directory, or takes it away, ends that when it is called again" {
        mkdir -m 0700 "$BATS_TEST_TMPDIR/srv/dirs"
        printf '{"name": "dirs", "type": "directory", "path": "%s"}\n' "$BATS_TEST_TMPDIR/srv/dirs" >"$FLEXGRAFT_POOLS/dirs.json"
        new_volume '"parameters": {"pool": "dirs"}'
        stage
        staged_mounts=$(node_mounts_at "$(staging)")
        unstage
        swept_stage
        swept_publish
        swept_end
}

look() { stats; }

more() { expand 16777216; }

# bats test_tags=deep
@test "a driver or a program that is killed while it looks at a volume has changed nothing" {
        new_volume
        before() { asked stage publish; }
        after() { is "$(node_mounts_at "$(target)")" 1 && asked unpublish unstage && all_gone; }
        swept look
}

# bats test_tags=deep
@test "a driver or a program that is killed while a device grows lets it grow when it is called again" {
        CAPABILITY=$BLOCK_WRITER
        new_volume
        before() { asked remake stage publish; }
        after() { is "$(blockdev --getsize64 "$(target)")" 16777216 && asked unpublish unstage remove && all_gone; }
        given_up() { asked unpublish unstage remove && all_gone; }
        swept more
}

larger() { expand "$SIZE"; }

# bats test_tags=deep
@test "a driver or a program that is killed while a mounted filesystem grows lets it grow when it is called again" {
        [[ -n $(type -P mkfs.xfs) ]] || skip "no mkfs.xfs" # a mounted ext4 grows only with CAP_SYS_RESOURCE
        CAPABILITY='{"mount": {"fs_type": "xfs"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}' SIZE=$((300 << 20))
        CONTEXT='"type": "loop", "size": "300Mi"' # no smaller one can be xfs
        stage && unstage # it has a filesystem now
        # it never shrinks: each round wants more
        before() { asked stage publish && SIZE=$((SIZE + (16 << 20))) && BLOCKS=$(stat -fc %b "$(target)"); }
        after() { (($(stat -fc %b "$(target)") > BLOCKS)) && asked unpublish unstage && all_gone; }
        given_up() { asked unpublish unstage && all_gone; }
        swept larger
}
