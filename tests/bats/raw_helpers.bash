# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Raw devices, and the control groups that say who may open them.

group_is_gone() {
        [[ ! -e $1 ]] || rmdir "$1" 2>/dev/null
}

# raw_request [MORE]: for the current container and device, onto /disk. TARGET=PATH raw_request for another target.
raw_request() {
        printf '{"container": %s, "source": "%s", "target": "%s", "raw": true%s}' "$CONTAINER_PID" "$DEVICE" "${TARGET:-/disk}" "${1:+, $1}"
}

# device_number: of the device that the container got; of the node's own device while no container has it.
device_number() {
        local guards
        mapfile -t guards < <(guards_of "$DEVICE")
        stat -c '%Hr:%Lr' "${guards[0]:-$DEVICE}"
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
        "$1" dd if="${2:-/disk}" bs=512 count=1 2>"$BATS_TEST_TMPDIR/dd" | tr -d ' \0'
        grep -v ' records \| copied' "$BATS_TEST_TMPDIR/dd" >&2 || :   # why it could not
}

container_writes() {
        "$1" sh -c "printf '%-512s' '$2' | dd of='${3:-/disk}' bs=512 conv=notrunc,fsync 2>&1"
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

assert_denied() {
        run ! container_writes in_groups forbidden "$@"
        [[ $output == *"not permitted"* ]] || { echo "expected EPERM: $output"; return 1; }
}

assert_allowed() {
        container_writes in_groups "${1:-allowed}" "${2:-/disk}" || return 1
        is "$(on_device)" "${1:-allowed}" "content of the device"
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

# hold_device DEVICE: a process, BACKGROUND_PID, has it open for reading and writing until it is ended.
hold_device() {
        mkfifo "$BATS_TEST_TMPDIR/never"
        background_ready "$FLEXGRAFT_TOOLS/loop-ioctls" "$1" rw hold <>"$BATS_TEST_TMPDIR/never"
}
