# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The test bed: containers, devices, the node's state before and after, and words to say what must hold.
#
# A test file says `load helpers`, and in setup() and teardown() calls bed_setup and bed_teardown. Everything made through
# the functions below is gone after bed_teardown, also when a test failed; bed_teardown fails when the node is not as
# bed_setup found it, or when a process of the programs under test is still there.

# Names that others can see, of a container, a label or a control group, have this in them: no other run has it.
RUN_ID=${FLEXGRAFT_ISOLATED:-${BATS_RUN_TMPDIR##*-}}

# number_of_run COUNT: a number below COUNT, which other runs hardly have.
number_of_run() {
        local sum
        sum=$(cksum <<<"$RUN_ID")
        echo "$((${sum%% *} % $1))"
}

load "${BASH_SOURCE[0]%/*}/schema_helpers"

# A process that bash starts costs as much as most of what tests do, a substitution of its own as much as half a program. So what nearly each
# test calls does without: it gives what it finds in a variable, and asks bash what bash can tell.

# bats asks it before and after each test, and starts date(1) for it.
get_mills_since_epoch() {
        echo "$((${EPOCHREALTIME//[!0-9]/} / 1000))"
}

# bats' own starts sleep(1) for each test.
bats_start_timeout_countdown() { # SECONDS
        # shellcheck disable=SC2064 # now
        trap "bats_timeout_trap $$" ABRT
        (
                trap 'exit 0' ABRT
                read -rt "$1" _ <>"$FLEXGRAFT_NEVER" || (($? > 128)) || exit
                kill -ABRT "$$" && bats_kill_childprocesses_of "$$"
        ) &>/dev/null &
}

bed_setup() {
        local processes
        trace_failures_only
        STATE_DIR=$BATS_TEST_TMPDIR/state
        export FLEXGRAFT_CONFIG=$BATS_TEST_TMPDIR/config.json
        printf '{"stateDir": "%s"}\n' "$STATE_DIR" >"$FLEXGRAFT_CONFIG"
        SOURCE=$BATS_TEST_TMPDIR/source
        mkdir -m 0755 "$SOURCE"

        CONTAINER_PID='' CONTAINER_ID='' CONTAINER_ROOTFS='' CONTAINER_KIND='' CONTAINER_BASE=''
        declare -gA bed_kind=() bed_id=() bed_rootfs=() bed_base=() bed_monitor=()
        bed_loops=() bed_pids=() bed_made=() bed_nodes=() bed_serial=0 NODE_VIEW=''
        status='' output='' stderr='' json='' bed_command='' schema_collected=''
        processes=(/proc/[0-9]*)
        bed_processes=" ${processes[*]} "
        snapshot_node bed_before
        bed_node=$bed_before                    # as node_snapshot has it: there are no records yet
}

bed_teardown() {
        local pid target device failed=0

        for pid in "${bed_pids[@]}"; do
                kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
        done
        for pid in "${!bed_kind[@]}"; do
                stop_container "$pid"
        done
        unmount_all_of_test
        for device in "${bed_loops[@]}"; do
                release_guards "$device"
                release_device "$device"
        done
        rm -f "${bed_nodes[@]}"
        for target in "${bed_made[@]}"; do
                rmdir "$target" 2>/dev/null || :
        done

        # What ends with a container, or with its last user, may end a moment after it.
        local bed_after
        if ! wait_until 2 node_is_as_before >/dev/null; then
                echo "the node is not as it was before the test:"
                diff <(echo "$bed_before") <(echo "$bed_after")
                failed=1
        fi
        if ! wait_until 2 assert_no_helper_processes >/dev/null; then
                assert_no_helper_processes
                failed=1
        fi
        return "$failed"
}

# unmount_all_of_test: what is mounted below its directory, the last first.
unmount_all_of_test() {
        local lines i target
        mapfile -t lines </proc/self/mountinfo
        for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
                [[ ${lines[i]} == *" $BATS_TEST_TMPDIR/"* ]] || continue
                read -r _ _ _ _ target _ <<<"${lines[i]}"
                [[ $target == "$BATS_TEST_TMPDIR"/* ]] || continue
                decode_mount_path target
                umount -l "$target"
        done
}

# in_turn COMMAND...: each, also when one before it failed; fails when one has. For teardown(), which bats runs without errexit.
in_turn() {
        local command failed=0
        for command; do
                "$command" || failed=1
        done
        return "$failed"
}

node_is_as_before() {
        snapshot_node bed_after
        [[ $bed_after == "$bed_before" ]]
}

# trace_failures_only: bats notes the stack of calls before each command, which is two thirds of what tests take; here it is read when a
# command has failed.
trace_failures_only() {
        trap - DEBUG
        set +T
        trap 'bed_command_failed "$LINENO"' ERR
}

bed_command_failed() {
        bats_check_status_from_trap             # first: it reads $?
        [[ -z $BATS_DEBUG_LAST_STACK_TRACE_IS_VALID ]] || return 0
        bats_capture_stack_trace
        BATS_DEBUG_LAST_STACK_TRACE[0]="$1 ${BATS_DEBUG_LAST_STACK_TRACE[0]#* }"
        BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
}

# bats calls it when a test's time is over, and its own ends the test. Where the test has failed already, and bats runs teardown() as it
# ends, that would end it before it has printed a result: there what teardown() waits for has been ended, which is enough.
bats_timeout_trap() {
        BATS_TIMED_OUT=1
        BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=
        [[ ${BATS_TEARDOWN_STARTED:-} == as-exit-trap ]] || exit 1
}

# has_python_modules NAME...: of the node's Python; those that are asked for take long to load.
has_python_modules() {
        local name
        for name; do
                compgen -G "/usr/lib/python3/dist-packages/$name" >/dev/null || compgen -G "/usr/local/lib/python3*/dist-packages/$name" >/dev/null || return
        done
}

# shows TEXT...: each is in the last reply as it stands there.
shows() {
        local text
        for text; do
                [[ $output == *"$text"* ]] && continue
                echo "the reply lacks: $text"
                show_last
                return 1
        done
}

# wait_until SECONDS COMMAND...: until COMMAND succeeds; fails when it has not within SECONDS times FLEXGRAFT_PATIENCE, which a machine with
# other work needs; on a quiet one it comes much sooner.
wait_until() {
        local seconds=$(($1 * ${FLEXGRAFT_PATIENCE:-6})) begin=$SECONDS tries=0
        ((seconds < 100)) || seconds=100        # before the limit of a test, so that it can say what it waited for
        shift
        until "$@"; do
                if ((SECONDS > begin + seconds)); then
                        echo "waited in vain for: $*"
                        return 1
                fi
                pause "$((++tries < 10 ? 1 : 5))"
        done
}

# pause HUNDREDTHS: of a second, below one. To start sleep(1) takes longer than that; nobody ever writes to this FIFO.
pause() {
        local seconds
        printf -v seconds '0.%02d' "$1"
        read -rt "$seconds" _ <>"$FLEXGRAFT_NEVER" || :
}

# stop_process PID...: each thread of them has stopped when it returns; a signal alone is only on its way then.
stop_process() {
        local pid
        kill -STOP "$@"
        for pid; do wait_until 20 is_stopped "$pid"; done
}

# is_stopped PID: no thread of it runs, or waits in the kernel for what others must do first.
is_stopped() {
        local state
        for state in "/proc/$1/task"/*/stat; do
                state=$(<"$state")
                [[ ${state##*) } == [TtZX]\ * ]] || return 1
        done
}

# not_hung COMMAND...: runs it, and fails if that took as long as only something that waits in vain does. No test asks how long anything takes:
# that a time limit works is seen by the error that names it, and by what is left.
not_hung() {
        local begin=$SECONDS
        "$@"
        ((SECONDS - begin < 100)) && return
        echo "it did not end for $((SECONDS - begin)) seconds: $*"
        return 1
}

# background COMMAND...: runs it in the background until teardown; its pid in BACKGROUND_PID.
background() {
        "$@" 3>&- &
        BACKGROUND_PID=$!
        bed_pids+=("$BACKGROUND_PID")
}

# background_ready COMMAND...: the same, for a command that prints a line when it is ready; waits for that line.
background_ready() {
        local fd line
        exec {fd}< <(exec "$@" 3>&- 2>&1)
        BACKGROUND_PID=$!
        bed_pids+=("$BACKGROUND_PID")
        if ! read -r -t 120 line <&"$fd" || [[ $line != ready ]]; then
                echo "$*: not ready: $line"
                return 1
        fi
        exec {fd}<&-
}

# end_process PID: kills it and returns when it runs no more.
end_process() {
        kill -KILL "$1" 2>/dev/null || return 0
        wait "$1" 2>/dev/null || :
        wait_until 10 process_is_gone "$1"
}

# True for a zombie too: whoever should reap it may be slow. But not for a process whose first thread has ended, and another has not.
process_is_gone() {
        local line tasks
        [[ -e /proc/$1/status ]] || return 0
        line=$(grep ^State: "/proc/$1/status" 2>/dev/null) || return 0
        tasks=("/proc/$1/task"/[0-9]*)
        [[ $line == *Z* ]] && ((${#tasks[@]} <= 1))
}

process_is_in() { # PID DIR
        [[ $(readlink "/proc/$1/cwd") == "$2" ]]
}

# ---- containers

# start_container KIND [BASE]: a running container. KIND: plain, crun or runc, with any of -nouserns, -hostpid (plain), -shared (plain),
# -created (plain: it has not entered its root directory yet, as at the hook createRuntime; go_on lets it).
# Sets CONTAINER_PID, CONTAINER_ID (a runtime's name for it), CONTAINER_ROOTFS, CONTAINER_KIND, CONTAINER_BASE.
# ROOTFS=DIR start_container ... uses an existing root directory; plain: MAP='IN OUT COUNT,...' is its map of ids, where BASE must be what
# its 0 is, and USERNS_OF=PID its user namespace, that of another container with this BASE.
start_container() {
        local kind=$1 base=${2:-100000} pid monitor=''
        local rootfs=${ROOTFS:-}

        [[ $kind == *-nouserns* ]] && base=0
        if [[ -z $rootfs ]]; then
                rootfs=$BATS_TEST_TMPDIR/container.$((++bed_serial))/rootfs
                make_rootfs "$rootfs" "$base"
        fi
        CONTAINER_ID=''
        case $kind in
        plain*) start_plain ;;
        crun* | runc*) start_oci ;;
        *)
                echo "no such kind of container: $kind"
                return 1
                ;;
        esac || return 1

        adopt_container "$pid" "$kind" "$CONTAINER_ID" "$rootfs" "$base" "$monitor"
}

# adopt_container PID KIND ID ROOTFS BASE [MONITOR]: from now on the current one, and gone after bed_teardown.
adopt_container() {
        bed_kind[$1]=$2 bed_id[$1]=$3 bed_rootfs[$1]=$4 bed_base[$1]=$5 bed_monitor[$1]=${6:-}
        use_container "$1"
}

# make_rootfs DIR BASE: a root directory, in a directory that is made for it.
make_rootfs() {
        "$FLEXGRAFT_TOOLS/rootfs" copy "$FLEXGRAFT_TEMPLATE" "$1" "$2"
}

start_plain() {
        local arguments=(--base "$base") fd
        [[ $kind == *-nouserns* ]] && arguments+=(--no-userns)
        [[ $kind == *-hostpid* ]] && arguments+=(--host-pid)
        [[ $kind == *-shared* ]] && arguments+=(--propagation shared)
        [[ -n ${MAP:-} ]] && arguments+=(--map "$MAP")
        [[ -n ${USERNS_OF:-} ]] && arguments+=(--userns-of "$USERNS_OF")
        if [[ $kind == *-created* ]]; then
                [[ -p ${rootfs%/*}/start ]] || mkfifo "${rootfs%/*}/start"
                printf '{"root": {"path": "rootfs"}}\n' >"${rootfs%/*}/config.json"
                arguments+=(--created "${rootfs%/*}/start")
        fi
        exec {fd}< <(exec "$FLEXGRAFT_TOOLS/container-init" "${arguments[@]}" "$rootfs" 3>&-)
        monitor=$!
        if ! read -r -t 120 pid <&"$fd"; then
                echo "container-init did not start a container"
                return 1
        fi
        exec {fd}<&-
}

# go_on: the current container, of kind plain-created, enters its root directory and starts.
go_on() {
        echo >"${CONTAINER_ROOTFS%/*}/start"
        wait_until 10 is_started "$CONTAINER_PID"
}

is_started() {
        [[ $(tr '\0' ' ' <"/proc/$1/cmdline") == 'container-init --pause '* ]]
}

start_oci() {
        local bundle=${rootfs%/*} runtime=${kind%%-*} userns='' log=${rootfs%/*}/log config

        CONTAINER_ID=flexgraft-$RUN_ID-$BATS_SUITE_TEST_NUMBER-$((++bed_serial))
        if [[ $kind != *-nouserns* ]]; then
                userns=', {"type": "user"}], "uidMappings": [{"containerID": 0, "hostID": '$base', "size": 65536}],
                        "gidMappings": [{"containerID": 0, "hostID": '$base', "size": 65536}'
        fi
        IFS= read -r -d '' config <<END || :
{"ociVersion": "1.0.2",
 "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/container-init", "--pause", "1"],
        "env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"], "noNewPrivileges": true,
        "capabilities": {"bounding": ["CAP_CHOWN"], "effective": ["CAP_CHOWN"], "permitted": ["CAP_CHOWN"]}},
 "root": {"path": "$rootfs"}, "hostname": "container",
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1m"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
        ${OCI_MOUNTS:+, $OCI_MOUNTS}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}
        $userns]}}
END
        printf %s "$config" >"$bundle/config.json"
        if ! oci "$runtime" run --detach --bundle "$bundle" --pid-file "$bundle/pid" "$CONTAINER_ID" >"$log" 2>&1 </dev/null 3>&-; then
                echo "$runtime did not start a container:"
                cat "$log"
                return 1
        fi
        pid=$(<"$bundle/pid")
}

# oci crun|runc ARGS...: the runtime. crun 1.8.1 wants nothing but cgroup2 on /sys/fs/cgroup: where that is not so anyway, it gets it
# in a mount namespace. With OCI_ROOT, it keeps its state there.
oci() {
        local runtime=$1
        shift
        [[ -z ${OCI_ROOT:-} ]] || set -- --root "$OCI_ROOT" "$@"
        if [[ $runtime == runc ]]; then
                runc "$@"
        elif find_mounts_at /sys/fs/cgroup self && [[ $found_mount == *' - cgroup2 '* ]]; then
                crun --cgroup-manager=disabled "$@"
        else
                unshare --mount sh -c 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec crun --cgroup-manager=disabled "$@"' crun "$@"
        fi
}

# use_container PID: the one that the other functions mean, when there are several.
use_container() {
        CONTAINER_PID=$1
        CONTAINER_KIND=${bed_kind[$1]}
        CONTAINER_ID=${bed_id[$1]}
        CONTAINER_ROOTFS=${bed_rootfs[$1]}
        CONTAINER_BASE=${bed_base[$1]}
}

# in_container COMMAND...: as the root of the container, in all its namespaces.
in_container() {
        container_letters "$CONTAINER_KIND"
        "$FLEXGRAFT_TOOLS/enter" "$CONTAINER_PID" "nui$bed_letters" "$@" 3>&-
}

# as_user UID COMMAND...: in the current container, as that user of it.
as_user() {
        container_letters "$CONTAINER_KIND"
        "$FLEXGRAFT_TOOLS/enter" "$CONTAINER_PID" "$bed_letters" --user "$@" 3>&-
}

# begin_leaver: LEAVER, a process of the current container in a mount namespace where nobody else is, until leaver_leaves: it goes to another.
begin_leaver() {
        background nsenter --target "$CONTAINER_PID" --user --mount --pid -S 0 -G 0 -- /bin/busybox unshare -m \
                /bin/busybox sh -c 'echo >/ready; while [ ! -e /go ]; do sleep 0.1; done; exec /bin/busybox unshare -m sleep 1000'
        wait_until 10 test -e "$CONTAINER_ROOTFS/ready"
        LEAVER=$(pgrep -P "$BACKGROUND_PID")
}

leaver_leaves() {
        local namespace
        namespace=$(readlink "/proc/$LEAVER/ns/mnt")
        touch "$CONTAINER_ROOTFS/go"
        wait_until 10 is_elsewhere "$LEAVER" "$namespace"
}

# is_elsewhere PID NAMESPACE: it has left that mount namespace.
is_elsewhere() {
        [[ $(readlink "/proc/$1/ns/mnt") != "$2" ]]
}

# container_letters KIND: the namespaces that matter to every process of such a container, as the tool enter calls them, in bed_letters.
container_letters() {
        bed_letters=m
        [[ $1 == *-nouserns* ]] || bed_letters+=U
        [[ $1 == *-hostpid* ]] || bed_letters+=p
}

# has_read COUNT: a reader in the current container, which writes how often it has read to /rounds, has more often than that.
has_read() {
        local rounds=0
        [[ ! -s $CONTAINER_ROOTFS/rounds ]] || rounds=$(<"$CONTAINER_ROOTFS/rounds")
        ((${rounds:-0} > $1))   # it is written anew at this moment: empty
}

# stop_container [PID]: gone when this returns, with everything in it.
stop_container() {
        local pid=${1:-$CONTAINER_PID} other
        [[ -n ${bed_kind[$pid]:-} ]] || return 0
        if [[ ${bed_kind[$pid]} == *-hostpid* ]]; then
                for other in $(processes_in_mount_namespace "$pid"); do
                        [[ $other == "$pid" ]] || kill -KILL "$other" 2>/dev/null || :
                done
        fi
        case ${bed_kind[$pid]} in
        plain*) kill -KILL "$pid" 2>/dev/null || : ;;
        crun*) oci crun delete --force "${bed_id[$pid]}" >/dev/null 2>&1 </dev/null 3>&- || : ;;
        runc*) oci runc delete --force "${bed_id[$pid]}" >/dev/null 2>&1 </dev/null 3>&- || : ;;
        esac
        [[ -z ${bed_monitor[$pid]} ]] || wait "${bed_monitor[$pid]}" 2>/dev/null || :
        [[ -z ${bed_id[$pid]} ]] || wait_until 10 process_is_gone "$pid" || :
        unset "bed_kind[$pid]" "bed_id[$pid]" "bed_rootfs[$pid]" "bed_base[$pid]" "bed_monitor[$pid]"
        return 0
}

# processes_in_mount_namespace PID: all that share PID's mount namespace, PID among them.
processes_in_mount_namespace() {
        local ns
        ns=$(readlink "/proc/$1/ns/mnt") || return 0
        find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/mnt' -lname "${ns//[/\\[}" 2>/dev/null | cut -d/ -f3
}

# decode_mount_path VARIABLE: what mountinfo escapes, in place.
decode_mount_path() {
        local -n bed_path=$1
        bed_path=${bed_path//'\040'/ }
        bed_path=${bed_path//'\011'/$'\t'}
        bed_path=${bed_path//'\012'/$'\n'}
        bed_path=${bed_path//'\043'/#}
        bed_path=${bed_path//'\134'/\\}
}

# mounts_at PATH: how many mounts the container has exactly there.
mounts_at() {
        find_mounts_at "$1"
        echo "$found_mounts"
}

# mount_line PATH: the container's mountinfo line of the topmost mount there.
mount_line() {
        find_mounts_at "$1"
        echo "$found_mount"
}

# find_mounts_at PATH [PID]: how many mounts the container, or that process, has exactly there in found_mounts, the mountinfo line of the topmost
# in found_mount.
find_mounts_at() {
        local lines line fields target plain=${1%%[[:space:]#\\]*}      # up to what mountinfo escapes
        found_mounts=0 found_mount=''
        mapfile -t lines <"/proc/${2:-$CONTAINER_PID}/mountinfo"
        for line in "${lines[@]}"; do
                [[ $line == *" $plain"* ]] || continue
                read -ra fields <<<"$line"
                target=${fields[4]}
                decode_mount_path target
                [[ $target == "$1" ]] || continue
                found_mounts=$((found_mounts + 1))
                found_mount=$line
        done
}

# connection_of PATH [PID]: what the kernel tells of the FUSE filesystem there, as find_mounts_at has it, in CONNECTION: a directory that is
# called as the minor number of its device, which is not what stat(1) writes from 256 on.
connection_of() {
        local device connections=$BATS_TEST_TMPDIR/connections
        [[ -d $connections ]] || { mkdir "$connections" && mount -t fusectl fusectl "$connections"; }
        find_mounts_at "$@"
        # shellcheck disable=SC2154 # find_mounts_at's
        read -r _ _ device _ <<<"$found_mount"
        CONNECTION=$connections/${device#*:}
}

# all_is_answered: what CONNECTION was asked, also that a file was closed, for which nobody waits.
all_is_answered() {
        [[ $(<"$CONNECTION/waiting") == 0 ]]
}

# container_snapshot / assert_container_unchanged: the mounts of the container, and what its root directory holds.
container_snapshot() {
        bed_container_before=$(without_other_runs <"/proc/$CONTAINER_PID/mountinfo" && find "$CONTAINER_ROOTFS" -xdev | sort)
}

assert_container_unchanged() {
        local after
        after=$(without_other_runs <"/proc/$CONTAINER_PID/mountinfo" && find "$CONTAINER_ROOTFS" -xdev | sort)
        [[ $after == "$bed_container_before" ]] && return 0
        echo "the container is not as it was:"
        diff <(echo "$bed_container_before") <(echo "$after")
        show_last
        return 1
}

# ---- devices

# as_mapped: DEVICE, a loop device, is one of device-mapper's for the programs, as udev names it: /dev/mapper/NAME is a link to /dev/dm-N.
as_mapped() {
        local loop=${DEVICE##*/} sys=$BATS_TEST_TMPDIR/sys name=fg-$RUN_ID-$BATS_TEST_NUMBER node
        node=/dev/dm-$((500000 + ${loop#loop}))
        cp -r "/sys/devices/virtual/block/$loop" "$sys" 2>/dev/null || : # some cannot be read
        mkdir -p "$sys/dm"
        echo "$name" >"$sys/dm/name"
        bed_nodes+=("/dev/mapper/$name" "$node") bed_made+=(/dev/mapper)
        cp -a "$DEVICE" "$node"
        # another test may remove the directory while it is empty
        wait_until 20 eval 'mkdir -p /dev/mapper && ln -s "../${node##*/}" "/dev/mapper/$name" 2>/dev/null'
        HELPER_PREFIX=(unshare --mount sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$sys" "/sys/devices/virtual/block/$loop")
        CALL_PREFIX=("${HELPER_PREFIX[@]}")
        DEVICE=/dev/mapper/$name
}

# own_dev [NODE...]: OWN_DEV, what a program is called with whose /dev is its own, as in a container: it has these nodes, and no loop devices else.
own_dev() {
        mkdir "$BATS_TEST_TMPDIR/dev"
        # shellcheck disable=SC2016 # expanded by that shell
        OWN_DEV=(unshare --mount sh -ec 'mount -t tmpfs tmpfs "$0"; while [ "$1" != -- ]; do cp -a "$1" "$0"; shift; done; shift
                mount --move "$0" /dev; exec "$@"' "$BATS_TEST_TMPDIR/dev" /dev/null /dev/loop-control "$@" --)
}

# fill_disk DIR: the filesystem there, a small one, has no byte left, until DIR/filler* are removed.
fill_disk() {
        dd if=/dev/zero "of=$1/filler" bs=4k 2>/dev/null || :
        dd if=/dev/zero "of=$1/filler2" bs=1 2>/dev/null || :
}

# make_device ext4|xfs|btrfs|erofs|squashfs|blank [LABEL]: a loop device with that filesystem; its path in DEVICE, the image in IMAGE.
make_device() {
        local type=$1 label=${2:-} content
        IMAGE=$BATS_TEST_TMPDIR/image.$((++bed_serial))
        content=$BATS_TEST_TMPDIR/content
        mkdir -p "$content"
        echo "from the device" >"$content/file"
        case $type in
        ext4) truncate -s 16M "$IMAGE" && mkfs.ext4 -q -F -O ^has_journal ${label:+-L "$label"} -d "$content" "$IMAGE" ;;
        xfs) truncate -s 300M "$IMAGE" && mkfs.xfs -q ${label:+-L "$label"} "$IMAGE" ;;
        btrfs) truncate -s 128M "$IMAGE" && mkfs.btrfs -q ${label:+-L "$label"} --rootdir "$content" "$IMAGE" ;;
        erofs) mkfs.erofs "$IMAGE" "$content" ;;
        squashfs) mksquashfs "$content" "$IMAGE" -quiet -no-progress ;;
        blank) truncate -s 16M "$IMAGE" ;;
        *)
                echo "no such kind of device: $type"
                return 1
                ;;
        esac >"$BATS_TEST_TMPDIR/mkfs.log" 2>&1 || {
                cat "$BATS_TEST_TMPDIR/mkfs.log"
                return 1
        }
        DEVICE=$(loop_over "$IMAGE")
        bed_loops+=("$DEVICE")
}

# serve_fuse: bindfs shows $BATS_TEST_TMPDIR/real on $SOURCE, anew if it did before.
serve_fuse() {
        if [[ -n ${FUSE_PID:-} ]]; then
                end_process "$FUSE_PID"
                umount --lazy "$SOURCE"
        fi
        mkdir -p "$BATS_TEST_TMPDIR/real" "$SOURCE"
        echo served >"$BATS_TEST_TMPDIR/real/file"
        background bindfs -f -o allow_other "$BATS_TEST_TMPDIR/real" "$SOURCE"
        FUSE_PID=$BACKGROUND_PID
        wait_until 10 test -e "$SOURCE/file"
}

# loop_over [OPTION...] FILE: prints a new loop device over it. losetup gives any number that is free, also one of the two that a test
# beside this one is just making a guard of a raw device of; such numbers (from 4096 on) are refused, since a container may have them.
loop_over() {
        local device
        device=$(losetup --find --show "$@") || return 1
        while ((${device#/dev/loop} >= 4096)); do
                losetup --detach "$device"
                device=/dev/loop$(lowest_new_loop)
                losetup "$device" "$@" || device=$(losetup --find --show "$@") || return 1     # somebody else was faster
        done
        # what a test that was killed has set outlives the backing file
        [[ " $* " == *' --read-only '* || " $* " == *' -r '* ]] || blockdev --setrw "$device"
        echo "$device"
}

lowest_new_loop() {
        local number=0
        while [[ -e /sys/block/loop$number ]]; do
                ((++number))
        done
        echo "$number"
}

# device_is_free DEVICE: no file is behind it, or one of the tests beside this one: they take the lowest number that is free.
device_is_free() {
        local file=''
        { read -r file <"/sys/block/${1#/dev/}/loop/backing_file"; } 2>/dev/null || :
        [[ -z $file || ($file == */bats-run-* && $file != "$BATS_RUN_TMPDIR"/*) ]]
}

# release_device DEVICE: lets it go if it is over a file of this run: the number may be another run's by now.
release_device() {
        local file=''
        { read -r file <"/sys/block/${1#/dev/}/loop/backing_file"; } 2>/dev/null || :
        [[ -z $file || $file == "$BATS_RUN_TMPDIR"/* ]] || return 0
        # these outlive the backing file; where a partition is, no other file on the whole device is found by its label
        [[ ! -b ${1}p1 ]] || "$FLEXGRAFT_TOOLS/loop-ioctls" "$1" root unpartition >/dev/null
        blockdev --setrw "$1" 2>/dev/null       # this outlives the backing file
        [[ -n $file ]] || return 0              # free already, and another run's by the next moment
        losetup --detach "$1" 2>/dev/null
        wait_until 10 device_is_free "$1"
}

# guards_of DEVICE: the loop devices that mount-block and the driver made for containers and pods that got this device raw. A loop device
# that has another file by now is another run's, with guards of its own: while there is one of ours, it keeps its file.
guards_of() {
        local file='' outer
        { read -r file <"/sys/block/${1#/dev/}/loop/backing_file"; } 2>/dev/null || :
        [[ $1 != /dev/loop* || $file == "$BATS_RUN_TMPDIR"/* ]] || return 0
        for outer in /sys/block/loop[0-9][0-9][0-9][0-9]*/loop/backing_file; do
                { read -r file <"$outer"; } 2>/dev/null || continue
                outer=${outer#/sys/block/}
                [[ ${file##*/} != "${1#/dev/}" ]] || echo "/dev/${outer%%/*}"
        done
}

no_guards_of() {
        [[ -z $(guards_of "$1") ]]
}

# assert_no_guards DEVICE: none, or none in a moment: the kernel detaches one that another process looks at meanwhile at that process's close.
assert_no_guards() {
        wait_until 5 no_guards_of "$1" >/dev/null || is "$(guards_of "$1")" "" "loop devices of pods and containers"
}

# release_guards DEVICE: what mount-remove, poststop and volume-reconcile do, for a container that the test just killed.
release_guards() {
        local outer number
        for outer in $(guards_of "$1"); do
                number=${outer#/dev/loop}
                losetup --detach "/dev/loop$((number + 1))" "$outer" 2>/dev/null || :
                "$FLEXGRAFT_TOOLS/remove-loops" "$number"
        done
}

# ---- the node

# find_node_mounts: the mountinfo lines of the node that are ours, in found_mount_lines. In namespaces of our own (scripts/isolated) all are; elsewhere others mount
# and unmount meanwhile, and only what is below our directory is known to be ours.
find_node_mounts() {
        local lines
        if [[ -n ${FLEXGRAFT_ISOLATED:-} ]]; then
                mapfile lines </proc/self/mountinfo
                printf -v found_mount_lines %s "${lines[@]}"
                found_mount_lines=${found_mount_lines%$'\n'}
        else
                found_mount_lines=$(grep -F "$BATS_RUN_TMPDIR/" /proc/self/mountinfo || :)
        fi
}

# node_mounts: the same, printed.
node_mounts() {
        find_node_mounts
        echo "$found_mount_lines"
}

# snapshot_node VARIABLE: everything that a helper could leave on the node: mounts, and loop devices over our images.
snapshot_node() {
        local -n bed_into=$1
        local bed_file bed_backing bed_ro bed_dio
        find_node_mounts
        bed_into=$found_mount_lines
        for bed_file in /sys/block/loop*/loop/backing_file; do
                { read -r bed_backing <"$bed_file"; } 2>/dev/null || continue
                [[ $bed_backing == "$BATS_RUN_TMPDIR"/* ]] || continue
                bed_file=${bed_file%/loop/backing_file}
                { read -r bed_ro <"$bed_file/ro" && read -r bed_dio <"$bed_file/loop/dio"; } 2>/dev/null || :
                bed_into+=$'\n'"/dev/${bed_file##*/} $bed_backing $bed_dio $bed_ro"
        done
}

# node_snapshot / assert_node_unchanged: the same with the records of injected mounts, between two points of a test.
node_snapshot() {
        snapshot_node bed_node
        find_records
        bed_node+="${found_records[*]}"
}

assert_node_unchanged() {
        local now
        snapshot_node now
        find_records
        now+="${found_records[*]}"
        [[ $now == "$bed_node" ]] && return 0
        echo "the node is not as it was:"
        diff <(echo "$bed_node") <(echo "$now")
        show_last
        return 1
}

# refuses_container CONTAINER-JSON [ERRNO]: mount-bind into it fails, and changes nothing.
refuses_container() {
        container_snapshot
        node_snapshot
        helper mount-bind "{\"container\": $1, \"source\": \"$SOURCE\", \"target\": \"/data\"}"
        assert_failure "${2:-}"
        assert_container_unchanged
        assert_node_unchanged
}

# files_below DIR: what is below it and no directory, relative to it and sorted, in found_files.
files_below() {
        local file options=''
        found_files=()
        [[ -d $1 ]] || return 0
        shopt -q globstar || options+=' globstar'
        shopt -q dotglob || options+=' dotglob'
        # shellcheck disable=SC2086 # words
        [[ -z $options ]] || shopt -s $options
        for file in "$1"/**; do
                [[ (! -e $file || -d $file) && ! -L $file ]] || found_files+=("${file#"$1"/}")
        done
        # shellcheck disable=SC2086 # words
        [[ -z $options ]] || shopt -u $options
}

# find_records: the names of all records, sorted, in found_records.
find_records() {
        local file
        found_records=()
        files_below "$STATE_DIR"
        for file in "${found_files[@]}"; do
                [[ /$file == */.lock || /$file == */.call-counts* || $file == uses/* || $file == pool-sums/* ]] || found_records+=("$file")
        done
}

# records: the same, a line each; nothing for none.
records() {
        find_records
        ((${#found_records[@]} == 0)) || printf '%s\n' "${found_records[@]}"
}

# find_index_entries: what the index of uses holds, BUCKET/KEY:SORT:RECORD, in found_entries.
find_index_entries() {
        local file
        found_entries=()
        files_below "$STATE_DIR/uses"
        for file in "${found_files[@]}"; do
                [[ ${file##*/} == .* ]] || found_entries+=("$file")
        done
}

# index_entries: the same, a line each.
index_entries() {
        find_index_entries
        ((${#found_entries[@]} == 0)) || printf '%s\n' "${found_entries[@]}"
}

# assert_no_records: neither records nor entries. In a sweep, whose calls were killed or failed (SWEEP_NUMBER says so), the index of uses may
# have entries of no record, until volume-reconcile.
assert_no_records() {
        find_records
        find_index_entries
        if [[ -n ${SWEEP_NUMBER:-} ]] && ((${#found_records[@]} == 0 && ${#found_entries[@]} > 0)); then
                helper volume-reconcile '{}'
                assert_success || return 1
                find_records
                find_index_entries
        fi
        ((${#found_records[@]} == 0 && ${#found_entries[@]} == 0)) && return 0
        echo "records or other files are left: ${found_records[*]} ${found_entries[*]}"
        show_last
        return 1
}

# find_new_processes: those that were not there when bed_setup began, /proc/PID each, in found_processes.
find_new_processes() {
        local process
        found_processes=()
        for process in /proc/[0-9]*; do
                [[ ${bed_processes:-} == *" $process "* ]] || found_processes+=("$process")
        done
}

# Processes of the programs under test that this run started and that still are.
assert_no_helper_processes() {
        local link left=''
        find_new_processes
        ((${#found_processes[@]} > 0)) || return 0
        while read -r link; do
                grep -qzF "FLEXGRAFT_CONFIG=$BATS_RUN_TMPDIR" "${link%/exe}/environ" 2>/dev/null && left+="${link%/exe} "
        done < <(find "${found_processes[@]/%//exe}" -maxdepth 0 -lname "$FLEXGRAFT_BIN/*" 2>/dev/null)
        [[ -z $left ]] && return 0
        echo "processes are left: $left"
        return 1
}

# private_node_view DIR...: from now on helper runs in a mount namespace where each DIR is an empty tmpfs; in_node_view too. A DIR that the
# node lacks is there alone, in an overlay: made on the node, another run might take it away with the mounts that are on it elsewhere.
private_node_view() {
        mkdir -p "$BATS_TEST_TMPDIR/view"
        background_ready unshare --mount --propagation private sh -c '
                work=$1 layered=; shift
                mount -t tmpfs tmpfs "$work" || exit 1
                for dir; do
                        above=$dir
                        while [ ! -e "$above" ]; do above=$(dirname "$above"); done
                        case "$layered " in *" $above "*) above=$dir ;; esac
                        if [ "$above" != "$dir" ]; then
                                layer=$(mktemp -d "$work/XXXXXX") && mkdir "$layer/upper" "$layer/work" &&
                                        mount -t overlay -o "lowerdir=$above,upperdir=$layer/upper,workdir=$layer/work" overlay "$above" || exit 1
                                layered="$layered $above"
                        fi
                        mkdir -p "$dir" && mount -t tmpfs -o mode=0755 tmpfs "$dir" || exit 1
                done
                umount -l "$work" && echo ready
                exec sleep 1000000' sh "$BATS_TEST_TMPDIR/view" "$@"
        NODE_VIEW=$BACKGROUND_PID
}

in_node_view() {
        nsenter --target "$NODE_VIEW" --mount -- "$@" 3>&-
}

# put PATH CONTENT: a file in the private view.
put() {
        in_node_view sh -c 'mkdir -p "${1%/*}" && printf %s "$2" >"$1"' sh "$1" "$2"
}

# configure RUNTIME DIRECTORY...: its state directories besides the usual ones, from now on.
configure() {
        jq --arg runtime "$1" '.runtimes[$runtime] = $ARGS.positional' --args "${@:2}" <"$FLEXGRAFT_CONFIG" >"$FLEXGRAFT_CONFIG.new"
        mv "$FLEXGRAFT_CONFIG.new" "$FLEXGRAFT_CONFIG"
}

# process_start_time PID: in clock ticks since boot, field 22 of stat.
process_start_time() {
        local stat fields
        stat=$(<"/proc/$1/stat")
        read -ra fields <<<"${stat##*) }"
        echo "${fields[19]}"
}

# ---- what there is

# array_of SCRIPT NAME: the words of an array of a script of scripts/, one on a line.
array_of() {
        sed -n "s/^$2=(\\(.*\\))\$/\\1/p" "$FLEXGRAFT_REPO/scripts/$1" | tr -s ' ' '\n'
}

# makefile_words NAME...: the words of these variables of the Makefile, one on a line: HELPERS, VERBS, VOLUME_TOOLS, NODE_TOOLS.
makefile_words() {
        # shellcheck disable=SC2016 # for make
        MAKEFLAGS='' make --silent --no-print-directory --directory="$FLEXGRAFT_REPO" \
                --eval='words: ; @printf "%s\n" $(foreach name,$(NAMES),$($(name)))' NAMES="$*" words
}

# ---- running the programs

# helper PROGRAM [ARG...]: runs it; sets status, output (stdout), stderr, json. Never fails by itself.
helper() {
        local program=$1 prefix=()
        shift
        [[ -n $NODE_VIEW ]] && prefix=(nsenter --target "$NODE_VIEW" --mount --)
        bed_command="$program $*"
        status=0
        "${HELPER_PREFIX[@]}" "${prefix[@]}" "$FLEXGRAFT_BIN/$program" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/stdout" || :
        IFS= read -r -d '' stderr <"$BATS_TEST_TMPDIR/stderr" || :
        json=$output
        schema_collect "$program" "$output" "$@"
}
HELPER_PREFIX=()

show_last() {
        echo "command: ${bed_command:0:2000}"
        echo "status:  $status"
        echo "stdout:  ${output:0:4000}"
        echo "stderr:  ${stderr:0:4000}"
}

# assert_reply_is WHAT [VALUE]: the last helper printed one JSON object on one line and nothing else, and it is that (reply.c).
assert_reply_is() {
        if [[ -n $stderr ]]; then
                echo "stderr is not empty"
                show_last
                return 1
        fi
        [[ $output == *$'\n' ]] && "$FLEXGRAFT_TOOLS/reply" "$@" <<<"${output%$'\n'}" && return 0
        echo "stdout is not one line with one JSON object that is: $*"
        show_last
        return 1
}

assert_one_json_line() {
        assert_reply_is object
}

assert_success() {
        has_succeeded && return 0
        assert_reply_is success || return 1
        is "$status" 0 "exit status of a Success"
}

# has_succeeded: what the last helper printed is a success as far as bash can tell, and schema_validate will tell the rest.
has_succeeded() {
        [[ $status == 0 && -z $stderr && $output == '{"status":"Success"'*$'}\n' && $output == "$schema_collected" ]]
}

# assert_failure [ERRNO]: exit status 1, and a complete error.
assert_failure() {
        assert_reply_is failure "${1:-}" || return 1
        is "$status" 1 "exit status of a Failure"
}

# assert_not_understood KEY: exit status 2, and the key that is wrong is named.
assert_not_understood() {
        assert_reply_is not-understood "${1:-}" || return 1
        is "$status" 2 "exit status of a request that is not understood"
}

# json_field JQ: what the jq expression gives of the last reply, as raw text.
json_field() {
        local status=0
        "$FLEXGRAFT_TOOLS/reply" get "$1" <<<"$json" || status=$?
        ((status == 2)) || return "$status"
        jq -r "$1" <<<"$json"
}

# assert_field JQ VALUE: what the jq expression gives, as raw text, is VALUE.
assert_field() {
        local is
        "$FLEXGRAFT_TOOLS/reply" is "$1" "$2" <<<"$json" && return 0
        is=$(json_field "$1")
        [[ $is == "$2" ]] && return 0
        echo "$1 is: $is"
        echo "expected: $2"
        show_last
        return 1
}

# assert_memory_is_shared TRACE: strace saw processes start, and none with a copy of its parent's memory.
assert_memory_is_shared() {
        grep -q 'clone(.*CLONE_VM' "$1"
        is "$(grep -E 'clone\(|fork\(' "$1" | grep -cv CLONE_VM || :)" 0 "processes copy it"
}

# is ACTUAL EXPECTED [WHAT]
is() {
        [[ $1 == "$2" ]] && return 0
        echo "${3:-value} is: $1"
        echo "expected: $2"
        show_last
        return 1
}

# without_other_runs: mountinfo lines of a container, less those that another run of these tests has in its directory.
without_other_runs() {
        awk -v ours="$BATS_RUN_TMPDIR/" '!index($0, "/bats-run-") || index($0, ours)'
}

# assert_same_mounts PID TEXT: the mounts of PID are those in TEXT, an earlier content of its mountinfo. Shows the first differences.
assert_same_mounts() {
        local before now
        before=$(without_other_runs <<<"$2")
        now=$(without_other_runs <"/proc/$1/mountinfo")
        [[ $now == "$before" ]] && return 0
        echo "the mounts of process $1 are not what they were:"
        diff <(echo "$before") <(echo "$now") | head -8
        echo "$(diff <(echo "$before") <(echo "$now") | grep -c '^[<>]') differences"
        return 1
}

assert_mounts_at() {
        find_mounts_at "$1"
        is "$found_mounts" "$2" "number of mounts at $1"
}

# assert_attributes PATH WORD...: the mount's own options have each WORD, and do not have each !WORD.
assert_attributes() {
        local path=$1 options
        find_mounts_at "$path"
        read -r _ _ _ _ _ options _ <<<"$found_mount"
        assert_options "$path" "$options" "${@:2}"
}

# assert_options PATH OPTIONS WORD...: the same of a mount's options, separated by commas.
assert_options() {
        local path=$1 options=$2 word
        shift 2
        for word; do
                if [[ $word == '!'* ]]; then
                        [[ -n $options && ,$options, != *,"${word#!}",* ]] && continue
                else
                        [[ ,$options, == *,"$word",* ]] && continue
                fi
                echo "the mount at $path lacks (or has) $word: $options"
                show_last
                return 1
        done
}

# bind_request TARGET [MORE]: a request of mount-bind for the current container; MORE is further members, as JSON text.
bind_request() {
        printf '{"container": %s, "source": "%s", "target": "%s"%s}' "$CONTAINER_PID" "$SOURCE" "$1" "${2:+, $2}"
}

remove_request() {
        printf '{"container": %s, "target": "%s"}' "$CONTAINER_PID" "$1"
}

# at_syscall ARG...: the tool, with its report in AT_TOTAL, AT_REACHED, AT_NAME; status, output, stderr as helper sets them.
at_syscall() {
        bed_command="at-syscall $*"
        status=0
        # A leak checker cannot work in a process that is traced already.
        ASAN_OPTIONS=detect_leaks=0 "${HELPER_PREFIX[@]}" "$FLEXGRAFT_TOOLS/at-syscall" --report "$BATS_TEST_TMPDIR/at-report" "$@" \
                >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- || status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/stdout" || :
        IFS= read -r -d '' stderr <"$BATS_TEST_TMPDIR/stderr" || :
        json=$output
        read -r AT_TOTAL AT_REACHED AT_NAME <"$BATS_TEST_TMPDIR/at-report"
}

# stopped_at CALL [--where A=VALUE]... PROGRAM ARG...: runs it in the background until it stands before that system call; resumed lets it go on to
# its end. What it prints: $STOPPED.
stopped_at() {
        STOPPED=$BATS_TEST_TMPDIR/stopped
        background env ASAN_OPTIONS=detect_leaks=0 "$FLEXGRAFT_TOOLS/at-syscall" --run "touch '$STOPPED.now'; until [ -e '$STOPPED.resume' ]; do sleep 0.02; done" \
                --at "$@" >"$STOPPED" 2>&1
        STOPPED_PID=$BACKGROUND_PID
        wait_until 20 test -e "$STOPPED.now"
}

resumed() {
        touch "$STOPPED.resume"
        wait_until 20 process_is_gone "$STOPPED_PID"
}

# meanwhile LOCK PROGRAM ARG...: runs it in the background until it has ended, or waits for a lock of that file. What it prints: $MEANWHILE.
meanwhile() {
        MEANWHILE=$BATS_TEST_TMPDIR/meanwhile
        background "${@:2}" >"$MEANWHILE" 2>&1
        wait_until 20 has_ended_or_waits "$BACKGROUND_PID" "$1"
}

has_ended_or_waits() { # PID LOCK
        process_is_gone "$1" || lock_is_awaited "$2"
}

# name_in_locks FILE: what /proc/locks calls it. There are the locks of all tests, and in other filesystems files of the same inode number.
name_in_locks() {
        local device    # the kernel names the filesystem's device, which is not that of stat(2) on a btrfs
        device=$(findmnt --noheadings --output MAJ:MIN --target "$1") device=${device// /}
        printf '%02x:%02x:%s\n' "${device%:*}" "${device#*:}" "$(stat -c %i "$1")"
}

# lock_is_awaited FILE [COUNT]: whether so many calls wait for its locks.
lock_is_awaited() {
        [[ -e $1 ]] || return
        (($(grep -c -- "-> OFDLCK .* $(name_in_locks "$1") " /proc/locks) >= ${2:-1}))
}

# terminal PROGRAM ARGUMENT...: with a terminal as standard output, and nothing else: what is printed there in $output, standard error in $stderr.
terminal() {
        local command
        printf -v command '%q ' "$FLEXGRAFT_BIN/$1" "${@:2}"
        bed_command=$command status=0
        # %q writes what only bash reads; script starts $SHELL, which is sh where nobody has logged in.
        output=$(SHELL=/bin/bash script --quiet --return --command "$command 2>$BATS_TEST_TMPDIR/stderr" /dev/null </dev/null 3>&- | tr -d '\r'; exit "${PIPESTATUS[0]}") || status=$?
        stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

# kernel_can FEATURE: whether the running kernel has a feature that not all have (tests/tools/kernel-can.c lists them). Tests that ask
# have the tag "kernel": they are run on more than one kernel.
kernel_can() {
        "$FLEXGRAFT_TOOLS/kernel-can" "$1"
}

# noise SIZE: so many bytes that look like random ones, and are the same in each run.
noise() {
        /usr/bin/python3 -c 'import hashlib, sys; sys.stdout.buffer.write(hashlib.shake_128(b"noise").digest(int(sys.argv[1])))' "$1"
}

# needs PROGRAM...: skips where a program of this repository is not built.
needs() {
        local name
        for name; do
                [[ -x $FLEXGRAFT_BIN/$name ]] || skip "$name is not built"
        done
}

# without_sanitizers WHY: skips where the programs are built with the sanitizers, with which no such test can hold; the others of its file run.
without_sanitizers() {
        [[ $FLEXGRAFT_BIN != */sanitize ]] || skip "the sanitizers $1"
}
