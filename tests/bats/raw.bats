#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mount-block with "raw": a block device itself in a container, and the control groups that say who may open it.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        groups=()
        needs mount-block mount-remove mount-list
}

teardown() {
        local failed=0 group
        bed_teardown || failed=1
        for group in "${groups[@]}"; do
                wait_until 10 group_is_gone "$group" || failed=1
        done
        return "$failed"
}

group_is_gone() {
        [[ ! -e $1 ]] || rmdir "$1" 2>/dev/null
}

# raw_request [MORE]: for the current container and device, onto /disk. TARGET=PATH raw_request for another target.
raw_request() {
        printf '{"container": %s, "source": "%s", "target": "%s", "raw": true%s}' "$CONTAINER_PID" "$DEVICE" "${TARGET:-/disk}" "${1:+, $1}"
}

device_number() {
        stat -c '%Hr:%Lr' "$DEVICE"
}

# make_raw_device TEXT: a device that begins with TEXT.
make_raw_device() {
        make_device blank
        printf '%-512s' "$1" | dd of="$DEVICE" conv=notrunc,fsync status=none
}

on_device() {
        blockdev --flushbufs "$DEVICE"
        dd if="$DEVICE" iflag=direct bs=512 count=1 status=none | tr -d ' \0'
}

# what the container does with its device; in_groups or in_container says where
container_reads() {
        "$1" dd if="${2:-/disk}" bs=512 count=1 2>/dev/null | tr -d ' \0'
}

container_writes() {
        "$1" sh -c "printf '%-512s' '$2' | dd of='${3:-/disk}' bs=512 conv=notrunc,fsync 2>&1"
}

# as_user UID COMMAND...: as somebody else in the container.
as_user() {
        local user=$1 namespaces=(--mount --pid)
        shift
        [[ $CONTAINER_KIND == *-nouserns* ]] || namespaces+=(--user)
        env -i PATH=/bin nsenter --target "$CONTAINER_PID" "${namespaces[@]}" --setuid "$user" --setgid "$user" -- "$@" 3>&-
}

# ---- control groups

# Where version 2 is: by itself, or beside version 1.
unified_root() {
        local dir
        for dir in /sys/fs/cgroup /sys/fs/cgroup/unified; do
                [[ $(stat -f -c %T "$dir" 2>/dev/null) == cgroup2fs ]] && echo "$dir" && return
        done
        return 1
}

needs_version1() {
        [[ -e /sys/fs/cgroup/devices/devices.list || -e /sys/fs/cgroup/devices/devices.allow ]] || skip "no devices controller of version 1"
}

# make_group [PARENT]: an empty control group of version 2, in GROUP.
make_group() {
        local root
        root=$(unified_root) || skip "no control groups of version 2"
        GROUP=${1:-$root}/flexgraft-$BATS_ROOT_PID-$((++bed_serial))
        mkdir "$GROUP"
        groups=("$GROUP" "${groups[@]}")
}

join_group() {
        echo "${2:-$CONTAINER_PID}" >"$1/cgroup.procs"
}

# attach_program GROUP ARG...: skips where the kernel has no device programs.
attach_program() {
        "$FLEXGRAFT_TOOLS/device-program" attach "$@" || skip "no device programs"
}

programs() {
        "$FLEXGRAFT_TOOLS/device-program" show "$1"
}

# group_of CONTROLLER: the directory of the container's group of version 1, or of version 2 for "".
group_of() {
        local root=/sys/fs/cgroup/$1 path
        [[ -n $1 ]] || root=$(unified_root) || return
        path=$(sed -n "s/^[0-9]*:$1://p" "/proc/$CONTAINER_PID/cgroup")
        [[ -n $path && -d $root$path ]] && echo "$root$path"
}

# in_groups COMMAND...: as in_container, and in the container's control groups.
in_groups() (
        local group
        for group in "$(group_of devices)" "$(group_of '')"; do
                [[ -z $group ]] || echo "$BASHPID" >"$group/cgroup.procs"
        done
        in_container "$@"
)

# A plain container alone in a group whose program lets it open nothing but /dev/null and what is named.
start_denied() {
        start_container "${1:-plain}"
        make_group
        join_group "$GROUP"
        attach_program "$GROUP" c:1:3 "${@:2}"
        before=$(programs "$GROUP")
}

assert_denied() {
        run ! container_writes in_groups forbidden "$@"
        [[ $output == *"not permitted"* ]] || { echo "expected EPERM: $output"; return 1; }
}

assert_allowed() {
        container_writes in_groups "${1:-allowed}" "${2:-/disk}" || return 1
        is "$(on_device)" "${1:-allowed}" "content of the device"
}

# ---- the device itself

check_raw() {
        make_raw_device first
        start_container "$1"
        helper mount-block "$(raw_request)"
        assert_success
        assert_field .mount.type raw
        assert_field .mount.source "$DEVICE"
        assert_field .mount.target /disk
        assert_field .mount.alreadyMounted false
        assert_mounts_at /disk 1
        is "$(in_container stat -c %F:%u:%g:%a /disk)" "block special file:0:0:600"
        is "$(container_reads in_groups)" first
        container_writes in_groups second
        is "$(on_device)" second
        helper mount-list '{}'
        assert_success
        assert_field '.mounts[0] | .type, .state' $'raw\npresent'
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_mounts_at /disk 0
        [[ ! -e $CONTAINER_ROOTFS/disk ]]
        is "$(in_container find / -xdev -type b)" "" "block devices in the container"
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# bats test_tags=kernel
@test "the container's root reads and writes a raw device" {
        check_raw plain
}

@test "the container's root reads and writes a raw device without a user namespace" {
        check_raw plain-nouserns
}

@test "a raw device in a crun container" {
        check_raw crun
}

@test "a raw device in a crun container without a user namespace" {
        check_raw crun-nouserns
}

# bats test_tags=kernel
@test "a raw device in a runc container, whose control group denied it" {
        check_raw runc
}

@test "a raw device in a runc container without a user namespace, whose control group denied it" {
        check_raw runc-nouserns
}

check_others() {
        make_raw_device first
        start_container "$1"
        helper mount-block "$(raw_request)"
        assert_success
        is "$(as_user 0 dd if=/disk bs=5 count=1 2>/dev/null)" first
        run ! as_user 1000 dd if=/disk of=/dev/null bs=512 count=1
        [[ $output == *"Permission denied"* ]]
        run ! as_user 1000 dd if=/dev/zero of=/disk bs=512 count=1 conv=notrunc
        [[ $output == *"Permission denied"* ]]
        is "$(on_device)" first
}

@test "nobody in the container but its root opens a raw device" {
        check_others plain
}

@test "nobody in the container but its root opens a raw device, without a user namespace" {
        check_others plain-nouserns
}

@test "a raw device does not let the container make device nodes" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        local number
        number=$(device_number)
        run ! in_container mknod /tmp/mine b "${number%:*}" "${number#*:}"
        run ! in_container cp -a /disk /tmp/mine
        run ! in_container ln /disk /tmp/mine
}

@test "a raw device is seen in the container only where it was put" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        is "$(in_container find / -type b -not -path '/proc/*' -not -path '/sys/*' 2>/dev/null)" /disk
        # not the directory of the node it was made in
        is "$(in_container cat /proc/1/mountinfo | grep -c ' /disk ')" 1
        in_container test ! -e /node
}

# ---- read-only

# bats test_tags=kernel
@test "a readOnly raw device is read by the container's root" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        assert_field '.mount.options | index("ro") != null' true
        is "$(container_reads in_container)" first
        is "$(in_container stat -c %u:%g:%a /disk)" 65534:0:40
}

# bats test_tags=kernel
@test "a readOnly raw device cannot be written by the container's root, whatever it tries" {
        make_raw_device first
        local owner
        owner=$(stat -c %u:%g:%a "$DEVICE")
        start_container plain
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        run ! container_writes in_container changed
        run ! in_container chmod 0666 /disk
        run ! in_container chown 0:0 /disk
        run ! in_container sh -c 'exec 3</disk && printf changed >/proc/self/fd/3'
        run ! in_container sh -c 'exec 3<>/disk'
        in_container mount -o remount,bind,rw /disk || :
        run ! in_container chmod 0666 /disk
        run ! in_container chown 0:0 /disk
        run ! container_writes in_container changed
        in_container mount --bind /disk /dev/null || :
        run ! in_container sh -c 'printf changed >/dev/null'
        is "$(on_device)" first
        is "$(stat -c %u:%g:%a "$DEVICE")" "$owner" "owner and mode of the node's own device node"
}

@test "the option ro is the same as readOnly for a raw device" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"options": "ro"')"
        assert_success
        is "$(container_reads in_container)" first
        run ! container_writes in_container changed
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        assert_field .mount.alreadyMounted true
}

@test "a readOnly raw device is refused to a container without a user namespace" {
        make_raw_device first
        start_container plain-nouserns
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EOPNOTSUPP
        assert_container_unchanged
        assert_node_unchanged
}

@test "a device that is read-only is given raw only with readOnly" {
        make_raw_device first
        blockdev --setro "$DEVICE"
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EROFS
        assert_container_unchanged
        assert_node_unchanged
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_container)" first
}

# ---- who else has it

refused_busy() {
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        assert_field .error.subject "$DEVICE"
        assert_container_unchanged
        assert_node_unchanged
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
}

@test "a device that the node has mounted is given raw only with readOnly" {
        make_device ext4
        start_container plain
        mkdir "$BATS_TEST_TMPDIR/mounted"
        mount "$DEVICE" "$BATS_TEST_TMPDIR/mounted"
        refused_busy
        in_container dd if=/disk of=/dev/null bs=4k count=1
}

@test "a device that somebody holds exclusively is given raw only with readOnly" {
        make_raw_device first
        start_container plain
        background_ready "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE"
        refused_busy
}

@test "a device whose filesystem is mounted in a container is not given raw to another" {
        make_device ext4
        start_container plain 100000
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/data\"}"
        assert_success
        start_container plain 200000
        refused_busy
}

@test "one raw device is for one container, as long as anybody may write to it" {
        make_raw_device first
        start_container plain 100000
        helper mount-block "$(raw_request)"
        assert_success
        start_container plain 200000
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EBUSY
        assert_mounts_at /disk 0
}

@test "one raw device in two containers, for reading: what one loses the other keeps" {
        make_raw_device first
        start_container plain 100000
        local one=$CONTAINER_PID
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        start_container plain 200000
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_container)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        use_container "$one"
        is "$(container_reads in_container)" first
}

# ---- the target

@test "the file that a raw device was put on comes back" {
        make_raw_device first
        start_container plain
        in_container sh -c 'echo mine >/disk'
        helper mount-block "$(raw_request)"
        assert_success
        in_container test -b /disk
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(in_container cat /disk)" mine
}

@test "missing directories of a raw device's target are made and go away again" {
        make_raw_device first
        start_container plain
        container_snapshot
        helper mount-block "$(TARGET=/made/a/disk raw_request)"
        assert_success
        is "$(in_container stat -c %u:%g /made/a)" 0:0
        helper mount-remove "$(remove_request /made/a/disk)"
        assert_success
        assert_container_unchanged
}

@test "a raw device is put into the container's /dev" {
        make_raw_device first
        start_container crun
        helper mount-block "$(TARGET=/dev/disk raw_request)"
        assert_success
        is "$(container_reads in_container /dev/disk)" first
        helper mount-remove "$(remove_request /dev/disk)"
        assert_success
        in_container test ! -e /dev/disk
}

@test "a raw device is not put on a directory" {
        make_raw_device first
        start_container plain
        in_container mkdir /disk
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure
        assert_container_unchanged
        assert_node_unchanged
}

@test "the same raw request twice gives one mount" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(raw_request)"
        assert_success
        assert_field .mount.alreadyMounted true
        assert_field .mount.type raw
        assert_mounts_at /disk 1
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_failure EBUSY
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_no_records
}

@test "raw and not raw are not taken for the same" {
        make_device ext4
        start_container plain
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\"}"
        assert_failure
        assert_mounts_at /disk 1
        in_container test -b /disk
}

@test "a raw device is named by its UUID" {
        make_device ext4
        start_container plain
        local device=$DEVICE
        helper mount-block "$(DEVICE=UUID=$(blkid -p -s UUID -o value "$device") raw_request)"
        assert_success
        is "$(in_container od -An -tx2 -j 1080 -N 2 /disk | tr -d ' ')" ef53 "the magic number of ext4"
        assert_field .mount.origin "$device"
}

@test "a raw source that is no device is refused" {
        start_container plain
        container_snapshot
        node_snapshot
        DEVICE=$FLEXGRAFT_CONFIG
        helper mount-block "$(raw_request)"
        assert_failure ENOTBLK
        DEVICE=/dev/null
        helper mount-block "$(raw_request)"
        assert_failure ENOTBLK
        DEVICE=/dev/nonesuch
        helper mount-block "$(raw_request)"
        assert_failure ENOENT
        assert_container_unchanged
        assert_node_unchanged
}

@test "what a raw device cannot have is not understood" {
        make_raw_device first
        start_container plain
        container_snapshot
        node_snapshot
        local request
        helper mount-block "$(raw_request '"fsType": "ext4"')"
        assert_not_understood fsType
        for request in '"options": "nodev"' '"options": "data=journal"' '"options": "rbind"'; do
                helper mount-block "$(raw_request "$request")"
                assert_not_understood options
        done
        for request in host idmapped userns; do
                helper mount-block "$(raw_request "\"ids\": \"$request\"")"
                assert_not_understood ids
        done
        helper mount-block "{\"container\": $CONTAINER_PID, \"source\": \"$DEVICE\", \"target\": \"/disk\", \"raw\": \"yes\"}"
        assert_not_understood raw
        helper mount-bind "$(bind_request /disk '"raw": true')"
        assert_not_understood raw
        assert_container_unchanged
        assert_node_unchanged
}

@test "a locked raw device works, and the container's root cannot change its attributes" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"locked": true')"
        assert_success
        container_writes in_container second
        is "$(on_device)" second
        run ! in_container mount -o remount,bind,suid,exec,dev /disk
        assert_attributes /disk nosuid '!nodev'
}

@test "a raw device goes with its container" {
        make_raw_device first
        start_container plain
        helper mount-block "$(raw_request '"id": "mine"')"
        assert_success
        stop_container
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_no_records
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$DEVICE" --once
}

# ---- control groups of version 1

# A runtime's container, its group denying the device by a list.
start_version1() {
        needs_version1
        make_raw_device first
        start_container "${1:-runc}"
        group=$(group_of devices)
        [[ $group != /sys/fs/cgroup/devices/ ]] || skip "the runtime made no group of the devices controller"
        list=$(<"$group/devices.list")
}

assert_list_unchanged() {
        is "$(<"$group/devices.list")" "$list" "the list of $group"
}

check_version1() {
        start_version1 "$1"
        helper mount-block "$(raw_request)"
        assert_success
        is "$(<"$group/devices.list")" "$list"$'\n'"b $(device_number) rw"
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: the device is allowed while it is there, and not afterwards" {
        check_version1 runc
}

@test "version 1: removed by way of a process that was brought into the container from elsewhere, nobody else loses the device" {
        start_version1 runc
        local elsewhere everyone
        helper mount-block "$(raw_request)"
        assert_success
        # in the container's namespaces, and in the node's own control group
        background nsenter --target "$CONTAINER_PID" --mount --user -S 0 -G 0 -- /bin/sleep 1000
        elsewhere=$BACKGROUND_PID
        wait_until 10 grep -q sleep "/proc/$elsewhere/comm"
        everyone=$(</sys/fs/cgroup/devices/devices.list)
        helper mount-remove "{\"container\": $elsewhere, \"target\": \"/disk\"}"
        assert_success
        is "$(</sys/fs/cgroup/devices/devices.list)" "$everyone"
        is "$(on_device)" first "read on the node"
        assert_list_unchanged
}

@test "a raw mount that could not be replaced by another of its device keeps what it may do" {
        start_version1 runc
        helper mount-block "$(raw_request)"
        assert_success
        HELPER_PREFIX=("$(tool at-syscall)" --at move_mount:2 --fail EIO --)
        helper mount-block "$(raw_request '"replace": true, "readOnly": true')"
        HELPER_PREFIX=()
        assert_failure
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: the device is allowed while it is there, and not afterwards, without a user namespace" {
        check_version1 runc-nouserns
}

@test "version 1: a device that was not given stays denied" {
        start_version1 runc-nouserns
        helper mount-block "$(raw_request)"
        assert_success
        local given=$DEVICE number
        make_raw_device other
        number=$(device_number)
        in_container mknod /other b "${number%:*}" "${number#*:}"
        assert_denied /other
        DEVICE=$given
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        # the container's own node of it opens no more
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        assert_denied /mine
        is "$(on_device)" second
}

@test "version 1: readOnly allows reading only" {
        start_version1
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(<"$group/devices.list")" "$list"$'\n'"b $(device_number) r"
        is "$(container_reads in_groups)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: what the container was allowed before it is allowed afterwards" {
        start_version1
        local rule
        for rule in rwm rw r; do
                echo "b $(device_number) $rule" >"$group/devices.allow"
                list=$(<"$group/devices.list")
                helper mount-block "$(raw_request)"
                assert_success
                assert_allowed "with-$rule"
                helper mount-remove "$(remove_request /disk)"
                assert_success
                assert_list_unchanged || { echo "after a mount with the rule $rule"; return 1; }
                echo "b $(device_number) rwm" >"$group/devices.deny"
        done
}

@test "version 1: of two mounts of a device the first to go leaves it allowed" {
        start_version1
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(TARGET=/second raw_request)"
        assert_success
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_allowed second /second
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-remove "$(remove_request /second)"
        assert_success
        assert_allowed third /disk
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: a mount that fails takes the permission back" {
        start_version1
        container_snapshot
        node_snapshot
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(raw_request)"
        assert_failure EIO
        assert_list_unchanged
        assert_container_unchanged
        assert_node_unchanged
}

@test "version 1: a second mount that fails leaves the first one allowed" {
        start_version1
        helper mount-block "$(raw_request)"
        assert_success
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(TARGET=/second raw_request)"
        assert_failure EIO
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_list_unchanged
}

@test "version 1: a group that others live in is not changed" {
        start_version1
        echo "b $(device_number) r" >"$group/devices.allow"
        list=$(<"$group/devices.list")
        background sleep 1000000
        echo "$BACKGROUND_PID" >"$group/cgroup.procs"
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EPERM
        assert_list_unchanged
        assert_container_unchanged
        assert_node_unchanged
        end_process "$BACKGROUND_PID"
}

@test "version 1: a group above that denies is told, and nothing is changed" {
        start_version1
        mkdir "$group/below"
        groups=("$group/below" "${groups[@]}")
        echo "$CONTAINER_PID" >"$group/below/cgroup.procs"
        list=$(<"$group/devices.list")
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        if [[ $status == 0 ]]; then
                # all the groups above were the container's own: then it works
                assert_allowed second
                helper mount-remove "$(remove_request /disk)"
                assert_success
        else
                assert_failure EPERM
        fi
        assert_list_unchanged
        is "$(<"$group/below/devices.list")" "$list"
        assert_container_unchanged
        assert_node_unchanged
        stop_container
}

@test "version 1: a container that is gone with its group is no hindrance" {
        start_version1
        helper mount-block "$(raw_request '"id": "mine"')"
        assert_success
        stop_container
        wait_until 10 test ! -e "$group"
        helper mount-remove '{"id": "mine"}'
        assert_success
        assert_no_records
}

# ---- control groups of version 2

# bats test_tags=kernel
@test "version 2: a denied device is allowed while it is there, and the program is as before afterwards" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        is "$(programs "$GROUP" | wc -l)" 1 programs
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_no_records
}

# bats test_tags=kernel
@test "version 2: without a user namespace too, and only this device, and not to make nodes of it" {
        make_raw_device first
        start_denied plain-nouserns
        local given=$DEVICE number
        make_raw_device other
        number=$(device_number)
        in_container mknod /other b "${number%:*}" "${number#*:}"
        DEVICE=$given
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        assert_denied /mine
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        assert_allowed third /mine
        assert_denied /other
        run ! in_groups mknod /again b "${number%:*}" "${number#*:}"
        [[ $output == *"not permitted"* ]]
        # what the program itself allows and denies stays
        in_groups sh -c 'echo >/dev/null'
        run ! in_groups sh -c 'echo >/dev/full'
        [[ $output == *"not permitted"* ]]
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_denied /mine
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: every program that denies is changed, and changed back" {
        make_raw_device first
        start_denied
        attach_program "$GROUP" c:1:3 c:1:5
        before=$(programs "$GROUP")
        is "$(wc -l <<<"$before")" 2 programs
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the programs"
}

@test "version 2: a program that is alone on its group is changed, and changed back" {
        make_raw_device first
        start_container plain
        make_group
        join_group "$GROUP"
        attach_program "$GROUP" --single c:1:3
        before=$(programs "$GROUP")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: a device that the program allows already stays allowed" {
        make_raw_device first
        start_denied plain-nouserns "b:$(device_number)"
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

# check_two FIRST-TO-GO SECOND-TO-GO
check_two() {
        make_raw_device first
        local one=$DEVICE two
        make_raw_device first
        two=$DEVICE
        start_denied
        DEVICE=$one
        helper mount-block "$(TARGET=/one raw_request)"
        assert_success
        DEVICE=$two
        helper mount-block "$(TARGET=/two raw_request)"
        assert_success
        DEVICE=$one
        assert_allowed second /one
        DEVICE=$two
        assert_allowed second /two
        helper mount-remove "$(remove_request "/$1")"
        assert_success
        DEVICE=${!2}
        assert_allowed third "/$2"
        helper mount-remove "$(remove_request "/$2")"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: of two devices the first goes first" {
        check_two one two
}

@test "version 2: of two devices the second goes first" {
        check_two two one
}

# bats test_tags=kernel
@test "version 2: of two mounts of a device the first to go leaves it allowed" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        helper mount-block "$(TARGET=/second raw_request)"
        assert_success
        helper mount-remove "$(remove_request /disk)"
        assert_success
        assert_allowed second /second
        helper mount-remove "$(remove_request /second)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: readOnly allows reading only" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request '"readOnly": true')"
        assert_success
        is "$(container_reads in_groups)" first
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

check_read_only_beside_writable() {
        local order
        for order in "/disk /ro" "/ro /disk"; do
                echo "first to go: ${order%% *}"
                helper mount-block "$(raw_request)"
                assert_success
                helper mount-block "$(TARGET=/ro raw_request '"readOnly": true')"
                assert_success
                assert_allowed "${order%% *}"
                is "$(container_reads in_groups /ro)" "${order%% *}"
                helper mount-remove "$(remove_request "${order%% *}")"
                assert_success
                if [[ $order == /ro* ]]; then
                        assert_allowed last
                else
                        is "$(container_reads in_groups /ro)" "${order%% *}"
                fi
                helper mount-remove "$(remove_request "${order#* }")"
                assert_success
        done
}

@test "version 2: a readOnly and a writable mount of one device, whichever goes first" {
        make_raw_device first
        start_denied
        check_read_only_beside_writable
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 1: a readOnly and a writable mount of one device, whichever goes first" {
        start_version1
        check_read_only_beside_writable
        assert_list_unchanged
}

# bats test_tags=kernel
@test "version 2: a group above without programs of its own below it is changed, and changed back" {
        make_raw_device first
        start_container plain
        make_group
        local above=$GROUP
        attach_program "$above"
        make_group "$above"
        join_group "$GROUP"
        before=$(programs "$above")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        is "$(programs "$GROUP")" ""
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$above")" "$before" "the program above"
}

# refused_shared: EPERM, with the group named, and nothing changed.
refused_shared() {
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request)"
        assert_failure EPERM
        [[ $(jq -r .message <<<"$json") == *"${1##*/}"* ]] || { echo "the group is not named"; show_last; return 1; }
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "version 2: a group that others live in is not changed" {
        make_raw_device first
        start_denied
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        refused_shared "$GROUP"
        is "$(programs "$GROUP")" "$before" "the program"
        end_process "$BACKGROUND_PID"
        # without the stranger it is the container's own
        helper mount-block "$(raw_request)"
        assert_success
}

@test "version 2: a group that others live below is not changed" {
        make_raw_device first
        start_denied
        local above=$GROUP
        make_group "$above"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        refused_shared "$above"
        is "$(programs "$above")" "$before" "the program"
        end_process "$BACKGROUND_PID"
}

@test "version 2: a group that two containers live in is not changed" {
        make_raw_device first
        start_denied
        local one=$CONTAINER_PID
        start_container plain 200000
        join_group "$GROUP"
        use_container "$one"
        refused_shared "$GROUP"
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: a shared group above that denies too is told, and nothing is changed" {
        make_raw_device first
        start_container plain
        make_group
        local above=$GROUP before_above
        attach_program "$above" c:1:3
        before_above=$(programs "$above")
        make_group "$above"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        make_group "$above"
        join_group "$GROUP"
        attach_program "$GROUP" c:1:3
        before=$(programs "$GROUP")
        refused_shared "$above"
        is "$(programs "$GROUP")" "$before" "the program"
        is "$(programs "$above")" "$before_above" "the program above"
        end_process "$BACKGROUND_PID"
}

@test "version 2: a program that allows everything is no reason to refuse a shared group" {
        make_raw_device first
        start_denied plain "b:$(device_number)"
        background sleep 1000000
        join_group "$GROUP" "$BACKGROUND_PID"
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        end_process "$BACKGROUND_PID"
}

# bats test_tags=kernel
@test "version 2: a mount that fails takes the permission back" {
        make_raw_device first
        start_denied
        container_snapshot
        node_snapshot
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(raw_request)"
        is "$AT_REACHED" 1
        assert_failure EIO
        is "$(programs "$GROUP")" "$before" "the program"
        assert_container_unchanged
        assert_node_unchanged
}

@test "version 2: a second mount that fails leaves the first one allowed" {
        make_raw_device first
        start_denied
        helper mount-block "$(raw_request)"
        assert_success
        at_syscall --at move_mount --fail EIO "$FLEXGRAFT_BIN/mount-block" "$(TARGET=/second raw_request)"
        assert_failure EIO
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
}

@test "version 2: dryRun changes no program" {
        make_raw_device first
        start_denied
        container_snapshot
        node_snapshot
        helper mount-block "$(raw_request '"dryRun": true')"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_container_unchanged
        assert_node_unchanged
}

# bats test_tags=kernel
@test "version 2: the program of a runc container is as before afterwards" {
        make_raw_device first
        start_container runc
        local group
        group=$(group_of '')
        [[ -n $group ]] || skip "runc made no group of version 2"
        if [[ -z $(programs "$group") ]]; then
                attach_program "$group" c:1:3
        fi
        before=$(programs "$group")
        helper mount-block "$(raw_request)"
        assert_success
        assert_allowed second
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$group")" "$before" "the program"
}

# bats test_tags=kernel
@test "a raw mount replaced by that of another device: only the new one is allowed" {
        make_raw_device first
        local one=$DEVICE
        make_raw_device other
        local two=$DEVICE number
        start_denied plain-nouserns
        DEVICE=$one
        number=$(device_number)
        in_container mknod /mine b "${number%:*}" "${number#*:}"
        helper mount-block "$(raw_request)"
        assert_success
        DEVICE=$two
        helper mount-block "$(raw_request)"
        assert_failure EBUSY
        helper mount-block "$(raw_request '"replace": true')"
        assert_success
        assert_mounts_at /disk 1
        assert_allowed second
        assert_denied /mine
        helper mount-remove "$(remove_request /disk)"
        assert_success
        is "$(programs "$GROUP")" "$before" "the program"
        assert_no_records
}

# ---- killed

# sweep mount|remove STEP ACTION...: a raw mount in a container that both versions deny it, with the action at every STEPth call; then again, and removed.
sweep() {
        local what=$1 step=$2 number at request group list='' program
        shift 2
        make_raw_device first
        start_container runc
        group=$(group_of '')
        [[ -n $group ]] || skip "runc made no group of version 2"
        [[ -n $(programs "$group") ]] || attach_program "$group" c:1:3
        program=$(programs "$group")
        [[ ! -e $(group_of devices)/devices.list ]] || list=$(<"$(group_of devices)/devices.list")
        request=$(raw_request)
        container_snapshot
        node_snapshot
        for ((number = 1; ; number += step)); do
                if [[ $what == remove ]]; then
                        helper mount-block "$request"
                        assert_success
                        at_syscall --at "$number" "$@" "$FLEXGRAFT_BIN/mount-remove" "$(remove_request /disk)"
                else
                        at_syscall --at "$number" "$@" "$FLEXGRAFT_BIN/mount-block" "$request"
                fi
                at="call $number, $AT_NAME"
                [[ $AT_REACHED == 1 ]] || break
                wait_until 5 assert_no_helper_processes >/dev/null || { echo "$at"; return 1; }
                if [[ $what == mount ]]; then
                        if [[ $output == '{"status":"Failure"'* ]]; then
                                is "$(programs "$group")" "$program" "the program after a failure at $at"
                                [[ -z $list ]] || is "$(<"$(group_of devices)/devices.list")" "$list" "the list after a failure at $at"
                        fi
                        helper mount-block "$request"
                        assert_success || { echo "again after $at"; return 1; }
                        assert_mounts_at /disk 1
                        ((number % 12 != 1)) || assert_allowed "$number" || { echo "after $at"; return 1; }
                fi
                helper mount-remove "$(remove_request /disk)"
                assert_success || { echo "removing after $at"; return 1; }
                is "$(programs "$group")" "$program" "the program after $at" || return 1
                [[ -z $list ]] || is "$(<"$(group_of devices)/devices.list")" "$list" "the list after $at" || return 1
                assert_no_records && assert_mounts_at /disk 0 && [[ ! -e $CONTAINER_ROOTFS/disk ]] || { echo "after $at"; return 1; }
        done
        ((number > 50))
        helper mount-remove "$(remove_request /disk)"
        assert_container_unchanged
        assert_node_unchanged
}

@test "a raw mount killed before any call: again succeeds, and remove takes every permission back" {
        sweep mount 5 --kill
}

@test "a raw mount with any call failing: nothing stays allowed, and again succeeds" {
        sweep mount 3 --fail EIO
}

@test "removing a raw mount killed before any call: again takes every permission back" {
        sweep remove 5 --kill
}
