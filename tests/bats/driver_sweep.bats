#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The driver killed at any system call, or refused any: the same call again succeeds, the data stay, and the teardown leaves nothing.
# bats file_tags=sweep

load helpers
load driver_helpers
load sweep_helpers
bats_require_minimum_version 1.5.0

setup_file() {
        # What a volume of these tests holds at first, made once: an ext4 of 8 MiB with a file `token`.
        BASE_IMAGE=$BATS_FILE_TMPDIR/base.img
        export BASE_IMAGE
        mkdir "$BATS_FILE_TMPDIR/content"
        echo precious >"$BATS_FILE_TMPDIR/content/token"
        truncate -s 8M "$BASE_IMAGE"
        mkfs.ext4 -q -F -m0 -d "$BATS_FILE_TMPDIR/content" "$BASE_IMAGE"
        export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-600}
}

setup() {
        bed_setup
        # In memory, where fsync takes no time: a process is killed here, not the machine.
        mkdir -m 0700 "$STATE_DIR"
        mount -t tmpfs -o mode=0700 tmpfs "$STATE_DIR"
        driver_setup
        # a call that fails may make a verb wait for something until its time is over
        TIMEOUTS='"unmount": 5, "device": 5, "command": 60, "call": 60' write_config
        needs verbs/attach verbs/waitforattach verbs/mountdevice verbs/mount verbs/unmount verbs/unmountdevice verbs/detach
        LIFE=(attach waitforattach mountdevice mount unmount unmountdevice detach)
        EXPANDS='' GIVE_UP='' VOLUME=data AFTER=()
        IMAGE=$POOL/$VOLUME.img GLOBAL_DIR=$(global_dir "$VOLUME") POD_DIR=$(pod_dir "$VOLUME")
}

teardown() {
        driver_teardown
}

# A round is one life of a volume, each verb as kubelet calls it; the swept verb, SWEPT, is acted upon (killed, or refused), then called again.

# volume formatted|blank|blank-xfs|blank-btrfs|xfs: what the volume is at the beginning of each round.
volume() {
        VOLUME_KIND=$1
        [[ $1 != *xfs ]] || grep -qw xfs /proc/filesystems || skip "this kernel has no xfs"
        [[ $1 != *btrfs ]] || grep -qw btrfs /proc/filesystems || skip "this kernel has no btrfs"
        SPEC=$(spec "$VOLUME" type=loop) SIZE=$((8 << 20))
        mkdir -p "$POOL" "${GLOBAL_DIR%/*}" "${POD_DIR%/*}"
        rm -f "$IMAGE" "$STATE_DIR/provisioned/$VOLUME.json"
        # what the pod finds in its volume
        TOKEN=$BATS_TEST_TMPDIR/token
        echo precious >"$TOKEN"
        case $1 in
        formatted) cp --sparse=always "$BASE_IMAGE" "$IMAGE" ;;
        xfs)
                SIZE=$((300 << 20))
                mkdir "$BATS_TEST_TMPDIR/xfs"
                truncate -s "$SIZE" "$IMAGE"
                mkfs.xfs -q "$IMAGE"
                mount -o loop "$IMAGE" "$BATS_TEST_TMPDIR/xfs"
                cp "$TOKEN" "$BATS_TEST_TMPDIR/xfs/token"
                umount "$BATS_TEST_TMPDIR/xfs"
                wait_until 10 no_loops_of_test
                ;;
        blank) SPEC=$(spec "$VOLUME" type=loop size=8Mi) ;;
        blank-*)
                SPEC=$(spec "$VOLUME" type=loop size=300Mi "@fsType=${1#blank-}")
                SIZE=$((300 << 20))
                ;;
        esac
        MOUNT_SPEC="${SPEC%\}},\"kubernetes.io/pod.name\":\"pod-1\",\"kubernetes.io/pod.uid\":\"pod-1\"}"
}

arguments_of() {
        case $1 in
        attach) arguments=("$SPEC" "$NODE") ;;
        waitforattach) arguments=(@DEVICE@ "$SPEC") ;;
        mountdevice) arguments=("$GLOBAL_DIR" @DEVICE@ "$SPEC") ;;
        mount) arguments=("$POD_DIR" "$MOUNT_SPEC") ;;
        expandvolume) arguments=("$SPEC" "$GLOBAL_DIR" @NEW_SIZE@ @SIZE@) ;;
        expandfs) arguments=("$SPEC" @DEVICE@ "$GLOBAL_DIR" @NEW_SIZE@ @SIZE@) ;;
        unmount) arguments=("$POD_DIR") ;;
        unmountdevice) arguments=("$GLOBAL_DIR") ;;
        detach) arguments=("$VOLUME" "$NODE") ;;
        esac
}

# effect_of VERB: in `effect`, the step that sees in the kernel what a Success of it means.
# shellcheck disable=SC2016
effect_of() {
        case $1 in
        attach | waitforattach) effect=(loops "$IMAGE" 1 ';') ;;
        mountdevice) effect=(mounts self "$GLOBAL_DIR" 1 ';') ;;
        mount) effect=(mounts self "$POD_DIR" 1 ';') ;;
        unmount) effect=(mounts self "$POD_DIR" 0 ';') ;;
        unmountdevice) effect=(mounts self "$GLOBAL_DIR" 0 ';') ;;
        detach) effect=(loops "$IMAGE" 0 ';') ;;
        expandvolume | expandfs) effect=(sh 'read -r sectors <"/sys/block/${DEVICE##*/}/size" && [ $((sectors * 512)) = "$NEW_SIZE" ] || { echo "$DEVICE has $sectors sectors, not $NEW_SIZE bytes"; exit 1; }' ';') ;;
        esac
}

# failure_of VERB: in `failure`, the steps that see that a Failure of it left nothing: no loop device, no record, no mount, and no directory
# that kubelet did not make.
failure_of() {
        failure=()
        case $1 in
        attach) failure=(on-failure loops "$IMAGE" 0 ';' on-failure sh "$no_record" ';') ;;
        mountdevice) failure=(on-failure mounts self "$GLOBAL_DIR" 0 ';' on-failure sh "[ \$((N % 2)) = 0 ] || [ ! -e '$GLOBAL_DIR' ]" ';') ;;
        mount) failure=(on-failure mounts self "$POD_DIR" 0 ';' on-failure sh "[ \$((N % 2)) = 0 ] || [ ! -e '$POD_DIR' ]" ';') ;;
        esac
}

# driver_sweep OPTION...: at-each-syscall's; the life of the volume with the swept verb. AFTER is further steps after the action.
driver_sweep() {
        local verb steps=() arguments=() effect=() failure=() no_record made
        no_record="for file in '$STATE_DIR'/volumes/* '$STATE_DIR'/volumes/.[!.]*; do
                case \$file in */.lock) ;; *) [ ! -e \"\$file\" ] || { echo \"left: \$file\"; exit 1; } ;; esac; done"
        [[ $VOLUME_KIND != blank* ]] || steps+=(sh "rm -f '$IMAGE' '$STATE_DIR/provisioned/$VOLUME.json'; echo >'$TOKEN'" ';')
        echo 0 >"$BATS_TEST_TMPDIR/grown"
        for verb in "${LIFE[@]}"; do
                # kubelet makes these directories; the driver does where it finds none
                made=''
                [[ $verb != mountdevice ]] || made=$GLOBAL_DIR
                [[ $verb != mount ]] || made=$POD_DIR
                [[ -z $made ]] || steps+=(sh "[ \$((N % 2)) = 1 ] || mkdir -p '$made'" ';')
                arguments_of "$verb"
                effect_of "$verb"
                if [[ $verb == "$SWEPT" ]]; then
                        failure_of "$verb"
                        steps+=(act "$DRIVER" "$verb" "${arguments[@]}" ';' on-success "${effect[@]}" "${failure[@]}" "${AFTER[@]}")
                        [[ -z $GIVE_UP ]] || break
                fi
                steps+=(call "$DRIVER" "$verb" "${arguments[@]}" ';' "${effect[@]}")
                case $verb in
                mount) steps+=(sh "seen=; wanted=; [ ! -e '$POD_DIR/token' ] || read -r seen <'$POD_DIR/token'; read -r wanted <'$TOKEN'
                        [ \"\$seen\" = \"\$wanted\" ] || { echo \"the data: \$seen, not \$wanted\"; exit 1; }
                        echo \"round \$ROUND\" >'$POD_DIR/token' && echo \"round \$ROUND\" >'$TOKEN'" ';') ;;
                expandfs) steps+=(sh "before=0; read -r before <'$BATS_TEST_TMPDIR/grown'; now=\$(stat -f -c %b '$POD_DIR')
                        [ \$now -gt \$before ] && echo \$now >'$BATS_TEST_TMPDIR/grown'" ';') ;;
                esac
        done
        if [[ -n $GIVE_UP ]]; then
                # the pod is gone meanwhile; kubelet does not try again what failed, it only tidies up
                for verb in unmount unmountdevice detach; do
                        arguments_of "$verb"
                        effect_of "$verb"
                        steps+=(call "$DRIVER" "$verb" "${arguments[@]}" ';' "${effect[@]}")
                done
        elif [[ $VOLUME_KIND == blank* ]]; then
                case $VOLUME_KIND in
                *-xfs) steps+=(sh "xfs_repair -n '$IMAGE'" ';') ;;
                *-btrfs) steps+=(sh "btrfs check --readonly '$IMAGE'" ';') ;;
                *) steps+=(sh "e2fsck -fn '$IMAGE'" ';') ;;
                esac
        fi
        steps+=(sh "for dir in '$GLOBAL_DIR' '$POD_DIR'; do [ ! -e \"\$dir\" ] || rmdir \"\$dir\" || exit 1; done; [ ! -e /dev/flexgraft ] || exit 1
                $no_record" ';' same ';')
        LABEL="$SWEPT${GIVE_UP:+, given up}, $VOLUME_KIND, ${NOTE:-$*}" sweep --reply kubelet --timeout 100 "$@" \
                --counter SIZE "$SIZE" $((1 << 20)) --counter NEW_SIZE $((SIZE + (1 << 20))) $((1 << 20)) \
                --watch mounts self --watch tree "$STATE_DIR" --watch tree "$KUBELET" -- "${steps[@]}"
        [[ -z $EXPANDS ]] || SIZE=$(stat -c %s "$IMAGE")
        is "$(volume_records)" "" || return 1
        no_loops_of_test || { echo "loop devices are left: $(loops_of_test)"; return 1; }
}

# sweep_failures: the swept verb, with calls failing.
sweep_failures() {
        local errno
        for errno in EIO ENOMEM ENOSPC EINTR; do
                driver_sweep --own --fail "$errno"
        done
}

# sweep_kills: the whole tree of processes killed, at calls of the verb's own; then the main process alone.
sweep_kills() {
        driver_sweep --own --kill
        driver_sweep --own --kill-main
}

# ---- killed

@test "attach killed at any call" {
        SWEPT=attach
        volume formatted
        sweep_kills
}

@test "attach that makes the image, killed at any call" {
        SWEPT=attach
        volume blank
        sweep_kills
}

# bats test_tags=deep
@test "waitforattach that does the attaching, killed at any call" {
        LIFE=("${LIFE[@]:1}")
        SWEPT=waitforattach
        volume formatted
        sweep_kills
}

@test "mountdevice of a formatted volume killed at any call" {
        SWEPT=mountdevice
        volume formatted
        sweep_kills
}

# bats test_tags=deep
@test "mountdevice of a formatted volume killed at any call of e2fsck" {
        SWEPT=mountdevice
        volume formatted
        driver_sweep --others --kill
        WIDER=2 driver_sweep --others --kill-main
}

@test "mountdevice of a blank volume killed at any call" {
        SWEPT=mountdevice
        volume blank
        sweep_kills
}

@test "mountdevice of a blank volume killed at any call of mkfs: never mounted half made" {
        SWEPT=mountdevice
        volume blank
        driver_sweep --others --kill
        driver_sweep --others --kill-main
}

# bats test_tags=deep
@test "mountdevice of a blank volume killed at some calls of mkfs.xfs and mkfs.btrfs" {
        local kind
        SWEPT=mountdevice
        for kind in blank-xfs blank-btrfs; do
                volume "$kind"
                WIDER=6 driver_sweep --others --kill
        done
}

@test "mountdevice killed while mkfs runs on, and called again at once: never mounted half made" {
        SWEPT=mountdevice NOTE='main process killed and the verb called again at once'
        volume blank
        export DRIVER GLOBAL_DIR SPEC IMAGE SECOND=$BATS_TEST_TMPDIR/second
        # The call that was made while mkfs of the one that was killed still ran may fail, but it must say so; then comes the third.
        # shellcheck disable=SC2016
        AFTER=(sh '[ "$NAME" = - ] || { for i in $(seq 2000); do [ -s "$SECOND.status" ] && break; sleep 0.05; done
                read -r status <"$SECOND.status" && read -r reply <"$SECOND.reply" && printf "%s\t%s\t%s\t%s\n" "$N" "$NAME" "$status" "$reply" >>"$SECOND.replies"
                rm "$SECOND.status" "$SECOND.reply"; }' ';')
        # shellcheck disable=SC2016
        WIDER=4 driver_sweep --others --run 'kill -KILL "$AT_MAIN_PID"
                device=$(losetup --noheadings --output NAME --associated "$IMAGE")
                (timeout 100 "$DRIVER" mountdevice "$GLOBAL_DIR" "$device" "$SPEC" >"$SECOND.reply" 2>&1; echo $? >"$SECOND.status") &'
        replies_are_good kubelet "$SECOND.replies"
        [[ -s $SECOND.replies ]]
}

@test "mount killed at any call" {
        SWEPT=mount
        volume formatted
        sweep_kills
}

@test "unmount killed at any call" {
        SWEPT=unmount
        volume formatted
        sweep_kills
}

@test "unmountdevice killed at any call" {
        SWEPT=unmountdevice
        volume formatted
        sweep_kills
}

@test "detach killed at any call" {
        SWEPT=detach
        volume formatted
        sweep_kills
}

@test "expandvolume killed at any call" {
        needs verbs/expandvolume
        LIFE=(attach mountdevice mount expandvolume unmount unmountdevice detach)
        SWEPT=expandvolume EXPANDS=yes
        volume formatted
        sweep_kills
}

# bats test_tags=deep
@test "expandfs killed at any call" {
        needs verbs/expandvolume verbs/expandfs
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes
        volume xfs
        sweep_kills
        driver_sweep --others --kill
}

# bats test_tags=kernel,deep
@test "expandfs of ext4 killed at some calls" {
        needs verbs/expandvolume verbs/expandfs
        can_grow_ext4 || skip "root may not resize a mounted ext4 here: no CAP_SYS_RESOURCE"
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes
        volume formatted
        driver_sweep --own --kill
        WIDER=4 driver_sweep --others --kill
}

@test "a verb killed at any call and given up: unmount, unmountdevice and detach leave nothing" {
        GIVE_UP=yes
        for SWEPT in attach mountdevice mount unmount unmountdevice; do
                volume formatted
                driver_sweep --own --kill
        done
        SWEPT=mountdevice
        volume blank
        WIDER=2 driver_sweep --others --kill
}

# ---- refused

@test "attach with any call failing: a clean reply, and again succeeds" {
        SWEPT=attach
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "attach that makes the image, with any call failing" {
        SWEPT=attach
        volume blank
        sweep_failures
}

# bats test_tags=deep
@test "waitforattach that does the attaching, with any call failing" {
        LIFE=("${LIFE[@]:1}")
        SWEPT=waitforattach
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "mountdevice of a formatted volume with any call failing" {
        SWEPT=mountdevice
        volume formatted
        sweep_failures
}

@test "mountdevice of a blank volume with any call failing" {
        SWEPT=mountdevice
        volume blank
        sweep_failures
}

# bats test_tags=deep
@test "mount with any call failing" {
        SWEPT=mount
        volume formatted
        sweep_failures
}

@test "unmount with any call failing" {
        SWEPT=unmount
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "unmountdevice with any call failing" {
        SWEPT=unmountdevice
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "detach with any call failing" {
        SWEPT=detach
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "expandvolume with any call failing" {
        needs verbs/expandvolume
        LIFE=(attach mountdevice mount expandvolume unmount unmountdevice detach)
        SWEPT=expandvolume EXPANDS=yes
        volume formatted
        sweep_failures
}

# bats test_tags=deep
@test "expandfs with any call failing" {
        needs verbs/expandvolume verbs/expandfs
        LIFE=(attach mountdevice mount expandvolume expandfs unmount unmountdevice detach)
        SWEPT=expandfs EXPANDS=yes
        volume xfs
        sweep_failures
}

@test "init, getvolumename and isattached with any call failing: a clean reply" {
        local verb arguments errno
        needs verbs/init verbs/getvolumename verbs/isattached
        volume formatted
        for verb in init getvolumename isattached; do
                case $verb in
                init) arguments=() ;;
                getvolumename) arguments=("$SPEC") ;;
                isattached) arguments=("$SPEC" "$NODE") ;;
                esac
                for errno in EIO ENOMEM EINTR; do
                        LABEL="$verb, $errno" sweep --reply kubelet --own --fail "$errno" --watch mounts self --watch tree "$STATE_DIR" --watch tree "$KUBELET" -- \
                                act "$DRIVER" "$verb" "${arguments[@]}" ';' same ';'
                done
        done
}
