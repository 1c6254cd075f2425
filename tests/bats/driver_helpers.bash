# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A kubelet for the driver: its directories, its calls in its order, and what it does itself between them.
#
# After `load helpers` and `load driver_helpers`: setup() calls bed_setup and driver_setup, teardown() calls driver_teardown (and not
# bed_teardown, which it does). What is below is written after Kubernetes 1.20, pkg/volume/flexvolume.

# driver_setup [VENDOR~DRIVER]: a self-contained driver directory, a configuration, kubelet's directories.
#   DRIVER      the program, as kubelet runs it: .../exec/VENDOR~DRIVER/DRIVER        DRIVER_NAME  VENDOR~DRIVER
#   KUBELET     kubelet's root directory                                              NODE         this node's name
#   STATE_DIR   the driver's state, with pools/default in it                          LOG          its log
#   POD         the pod that lifecycle_up and the others mean
driver_setup() {
        declare -gA SPECS=() DEVICES=()
        KUBELET=$BATS_TEST_TMPDIR/kubelet NODE=node-under-test POD=pod-1 LOG=$BATS_TEST_TMPDIR/driver.log
        POOL=$STATE_DIR/pools/default
        make_dir "$KUBELET"
        export FLEXGRAFT_POLICY=$BATS_TEST_TMPDIR/policy.json FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools.d
        mkdir -m 0755 "$FLEXGRAFT_POOLS"
        write_config ''
        needs flexdriver
        install_driver "${1:-flexgraft~flexgraft}"
}

# write_config [MEMBERS]: the configuration anew, with further members (JSON text). TIMEOUTS='"unmount": 1' replaces the times, for tests about a
# time that ends; in the others no busy machine reaches one.
write_config() {
        printf '{"stateDir": "%s", "nodeName": "%s", "log": "%s", "timeouts": {%s}%s}\n' "$STATE_DIR" "$NODE" "${LOG_TO:-$LOG}" \
                "${TIMEOUTS:-\"unmount\": 30, \"device\": 30, \"command\": 60, \"call\": 60}" "${1:+, $1}" >"$FLEXGRAFT_CONFIG"
}

# install_driver VENDOR~DRIVER: such a driver directory (made once), and from now on that driver is meant.
install_driver() {
        local dir=$BATS_TEST_TMPDIR/exec/$1
        DRIVER_NAME=$1
        DRIVER=$dir/${1#*\~}
        [[ -d $dir ]] && return 0
        mkdir -p "$dir/verbs"
        # a link where it can be one: quicker
        cp -l "$FLEXGRAFT_BIN/flexdriver" "$DRIVER" 2>/dev/null || cp "$FLEXGRAFT_BIN/flexdriver" "$DRIVER"
        cp -l "$FLEXGRAFT_BIN"/verbs/* "$dir/verbs/" 2>/dev/null || cp -f "$FLEXGRAFT_BIN"/verbs/* "$dir/verbs/"
}

# driver_teardown: everything that the driver made or left is gone after it, also when the test failed; and bed_teardown.
driver_teardown() {
        local device pid loops
        find_loops_of_test              # while their files have names
        loops=("${found_loops[@]}")
        if [[ -n ${DRIVER:-} ]]; then
                while read -r pid; do
                        kill -KILL "$pid" 2>/dev/null || :
                done < <(driver_processes)
        fi
        for pid in "${bed_pids[@]}"; do         # a server of a dead mount, above all: nothing below waits for it
                kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
        done
        for device in "${loops[@]}"; do
                is_loop_of_test "$device" || continue           # or it is another test's by now
                release_guards "$device"
                losetup --detach "$device" 2>/dev/null || :     # in use: with its last mount
        done
        unmount_all_of_test 2>/dev/null
        for device in "${loops[@]}"; do
                is_loop_of_test "$device" || continue
                wait_until 10 device_is_free "$device" || :
        done
        bed_teardown
}

# driver_processes: the process ids of all that runs from this test's driver directories, or for it.
driver_processes() {
        local pid name
        find_new_processes
        ((${#found_processes[@]} > 0)) || return 0
        while read -r pid name; do
                pid=${pid#/proc/}
                pid=${pid%/exe}
                case $name in
                "$BATS_TEST_TMPDIR"/exec/*) echo "$pid" ;;
                */mke2fs | */mkfs.* | */e2fsck | */fsck.* | */resize2fs | */xfs_growfs | */xfs_io | */xfs_spaceman | */btrfs)
                        # a command of the driver's, which has an environment of its own: ours if it is about something of ours
                        grep -qzF -e "$BATS_TEST_TMPDIR" "/proc/$pid/environ" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
                        ;;
                esac
        done < <(find "${found_processes[@]/%//exe}" -maxdepth 0 -printf '%p %l\n' 2>/dev/null)
        return 0
}

# find_loops_of_test: the loop devices over files below the test's directory, sorted, in found_loops.
find_loops_of_test() {
        local device
        found_loops=()
        for device in /sys/block/loop*/loop; do
                device=${device#/sys/block/} device=/dev/${device%/loop}
                ! is_loop_of_test "$device" || found_loops+=("$device")
        done
}

# loops_of_test: the same, a line each.
loops_of_test() {
        find_loops_of_test
        ((${#found_loops[@]} == 0)) || printf '%s\n' "${found_loops[@]}"
}

# is_loop_of_test DEVICE: it is over a file below the test's directory.
is_loop_of_test() {
        local file=''
        { read -r file <"/sys/block/${1#/dev/}/loop/backing_file"; } 2>/dev/null || :
        [[ $file == "$BATS_TEST_TMPDIR"/* ]]
}

no_loops_of_test() {
        find_loops_of_test
        ((${#found_loops[@]} == 0))
}

# loops_of_driver: loops_of_test, less what the test itself made.
loops_of_driver() {
        local device
        find_loops_of_test
        for device in "${found_loops[@]}"; do
                [[ " ${bed_loops[*]} " == *" $device "* ]] || echo "$device"
        done
}

no_loops_of_driver() {
        [[ -z $(loops_of_driver) ]]
}

# assert_no_loops [test|driver]: none of these, or none in a moment: a device that another process looks at meanwhile, as blkid does, is
# detached by the kernel at that process's close.
assert_no_loops() {
        local of=loops_of_${1:-test}
        wait_until 5 "no_$of" >/dev/null || is "$("$of")" "" "loop devices"
}

# give_away FILE KEY=VALUE...: the volume "data" is attached, and its loop device gets that file, as if somebody else had got it; the test's own from
# now on. The machine's other programs look for free devices, too: then another one is tried.
give_away() {
        local file=$1 tries
        for ((tries = 10; tries > 0; tries--)); do
                kubelet_attach data "${@:2}" || return 1
                losetup --detach "${DEVICES[data]}"
                wait_until 5 device_is_free "${DEVICES[data]}" || continue
                losetup "${DEVICES[data]}" "$file" && break
        done
        ((tries > 0))
        bed_loops+=("${DEVICES[data]}")
}

# loop_of IMAGE: the loop device over that file, nothing for none; several lines for several.
loop_of() {
        losetup --noheadings --raw --output NAME --associated "$1"
}

image_of() {
        echo "$POOL/$1.img"
}

# ---- what kubelet says

# spec NAME [KEY=VALUE...]: the JSON that kubelet gives for the volume NAME. A key that begins with @ is one of kubernetes.io's:
# @fsType=xfs, @readwrite=ro. All values are strings. A key given twice has the last value.
spec() {
        local -A spec_values=(["kubernetes.io/fsType"]='' ["kubernetes.io/pvOrVolumeName"]=$1 ["kubernetes.io/readwrite"]=rw)
        local -a spec_keys=("kubernetes.io/fsType" "kubernetes.io/pvOrVolumeName" "kubernetes.io/readwrite")
        local option key text=''
        shift
        for option; do
                key=${option%%=*}
                [[ $key == @* ]] && key=kubernetes.io/${key#@}
                [[ -v spec_values[$key] ]] || spec_keys+=("$key")
                spec_values[$key]=${option#*=}
        done
        for key in "${spec_keys[@]}"; do
                put_member text "$key" "${spec_values[$key]}"
        done
        printf '{%s}' "${text#,}"
}

# put_member VARIABLE KEY VALUE: ,"KEY":"VALUE" at its end, as JSON.
put_member() {
        local -n member_text=$1
        local part separator=,
        for part in "$2" "$3"; do
                part=${part//\\/\\\\}
                part=${part//\"/\\\"}
                part=${part//$'\n'/\\n}
                part=${part//$'\t'/\\t}
                part=${part//$'\e'/\\u001b}
                member_text+="$separator\"$part\""
                separator=:
        done
}

# call VERB ARG...: runs the driver as kubelet does: standard output and error in one pipe, read until all have closed it, no input. Sets
# status (the exit status), output and json. Fails unless there is one JSON object on one line, with kubelet's fields only, and an exit
# status that agrees with what it says. CALL_INPUT=FILE is its standard input; CALL_PREFIX=(COMMAND...) goes before it.
call() {
        bed_command="$DRIVER $*"
        stderr=''
        status=0
        "$FLEXGRAFT_TOOLS/as-kubelet" "${CALL_TIMEOUT:-120}" "$BATS_TEST_TMPDIR/reply" "${CALL_PREFIX[@]}" "$DRIVER" "$@" <"${CALL_INPUT:-/dev/null}" 3>&- ||
                status=$?
        IFS= read -r -d '' output <"$BATS_TEST_TMPDIR/reply" || :       # up to a NUL, which is none of JSON
        json=$output
        [[ ! -f $FLEXGRAFT_BIN/verbs/$1 ]] || schema_collect "verbs/$1" "$output" # not of words that are no verbs
        assert_reply_of_kubelet
}
CALL_PREFIX=()

# The JSON types and fields of Kubernetes' DriverStatus and DriverCapabilities; of most replies, bash can tell.
KUBELET_SUCCESS='^\{"status":"Success"(,"(message|device|volumeName)":"[^"\]*"|,"attached":(true|false)|,"volumeNewSize":[0-9]+)*\}'$'\n''$'
assert_reply_of_kubelet() {
        [[ $status == 0 && $output == "$schema_collected" && $output =~ $KUBELET_SUCCESS ]] && return 0
        [[ $output == *$'\n' ]] && "$FLEXGRAFT_TOOLS/reply" kubelet "$status" <<<"${output%$'\n'}" && return 0
        echo "not a reply for kubelet: one line, one object, its fields only, an exit status that agrees"
        show_last
        return 1
}

# assert_reply OBJECT: the last reply is exactly that (JSON text).
assert_reply() {
        is "$(jq -Sc . <<<"$json")" "$(jq -Sc . <<<"$1")" reply
}

# assert_detached: Success and nothing else, unless another process just looks at the device: then it says so.
assert_detached() {
        if [[ $(json_field .message) == *"still in use"* ]]; then
                assert_success
        else
                assert_reply '{"status": "Success"}'
        fi
}

# assert_refused [TEXT...]: a Failure, whose message has an id and each TEXT in it (letters of any case).
assert_refused() {
        local message='' text
        [[ $(json_field .status) != Failure ]] || message=$(json_field .message)
        if [[ $status != 0 || ! $message =~ \[id\ [0-9a-f]{8}\]$ ]]; then
                echo "expected: exit status 0 and a Failure whose message ends in [id ...]"
                show_last
                return 1
        fi
        for text; do
                [[ ${message,,} == *"${text,,}"* ]] && continue
                echo "the message lacks: $text"
                show_last
                return 1
        done
}

assert_not_supported() {
        assert_field .status "Not supported" && is "$status" 1 "exit status"
}

# ---- what kubelet does

global_dir() {
        echo "$KUBELET/plugins/kubernetes.io/flexvolume/${DRIVER_NAME%%\~*}/${DRIVER_NAME#*\~}/mounts/$1"
}

pod_dir() {
        echo "$KUBELET/pods/${2:-$POD}/volumes/$DRIVER_NAME/$1"
}

# make_dir DIR: as kubelet makes directories.
make_dir() {
        (umask 0027 && mkdir -p "$1")
}

# is_mount_point DIR: as kubelet tells: by another st_dev than the parent's.
is_mount_point() {
        local devices
        devices=$(stat -c %d "$1" "${1%/*}") || return 0        # of one that cannot be asked, kubelet says so
        [[ ${devices%$'\n'*} != "${devices#*$'\n'}" ]]
}

# kubelet_attach NAME [KEY=VALUE...]: getvolumename, attach, waitforattach; the device in DEVICES[NAME], the JSON in SPECS[NAME].
kubelet_attach() {
        local name=$1 device
        SPECS[$name]=$(spec "$@")
        call getvolumename "${SPECS[$name]}" && assert_success || return 1
        call attach "${SPECS[$name]}" "$NODE" && assert_success || return 1
        device=''
        [[ $output =~ \"device\":\"([^\"]*)\" ]] && device=${BASH_REMATCH[1]}
        call waitforattach "$device" "${SPECS[$name]}" && assert_success || return 1
        [[ $output =~ \"device\":\"([^\"]*)\" ]] && device=${BASH_REMATCH[1]}
        DEVICES[$name]=$device
}

# kubelet_stage NAME: mountdevice, on a directory that kubelet makes.
kubelet_stage() {
        local name=$1 dir
        dir=$(global_dir "$name")
        if [[ -e $dir ]] && is_mount_point "$dir"; then
                return 0
        fi
        make_dir "$dir"
        call mountdevice "$dir" "${DEVICES[$name]}" "${SPECS[$name]}" && assert_success || return 1
        # What has no superblock for itself is mounted for each pod: nothing to see here.
        [[ ${SPECS[$name]} =~ \"type\":\"(tmpfs|bind|nfs)\" ]] && return 0
        is_mount_point "$dir" && return 0
        echo "kubelet would take $dir for unmounted: it has its parent's st_dev"
        show_last
        return 1
}

# kubelet_publish NAME [POD [KEY=VALUE...]]: mount, into the pod's directory, which kubelet makes, and removes when that fails.
kubelet_publish() {
        local name=$1 pod=${2:-$POD} dir
        dir=$(pod_dir "$name" "$pod")
        if [[ -e $dir ]] && is_mount_point "$dir"; then
                return 0
        fi
        make_dir "$dir"
        call mount "$dir" "$(publish_spec "$name" "$pod" "${@:3}")" || return 1
        if ! assert_success; then
                rmdir "$dir"
                return 1
        fi
}

# publish_spec NAME POD [KEY=VALUE...]: what mount gets: the volume's JSON, the pod's own keys, and more; @readwrite=ro is the pod's own, too.
publish_spec() {
        local text=${SPECS[$1]} pod=$2 option key
        shift 2
        for option in "@pod.name=$pod" @pod.namespace=default "@pod.uid=$pod" @serviceAccount.name=default "$@"; do
                key=${option%%=*}
                [[ $key == @* ]] && key=kubernetes.io/${key#@}
                if [[ $key == kubernetes.io/readwrite ]]; then
                        text=${text/'"kubernetes.io/readwrite":"r'[ow]'"'/"\"kubernetes.io/readwrite\":\"${option#*=}\""}
                else
                        text=${text%\}}
                        put_member text "$key" "${option#*=}"
                        text+='}'
                fi
        done
        printf %s "$text"
}

# second_pod NAME NAMESPACE [KEY=VALUE...]: what kubelet calls for another pod with a volume of this name and these options: mount alone.
second_pod() {
        local name=$1 namespace=$2 text
        declare -gA SPECS
        SPECS[$name]=$(spec "$name" "${@:3}")
        text=$(publish_spec "$name" pod-2)
        make_dir "$(pod_dir "$name" pod-2)"
        call mount "$(pod_dir "$name" pod-2)" "${text/'"kubernetes.io/pod.namespace":"default"'/"\"kubernetes.io/pod.namespace\":\"$namespace\""}"
}

# a_life_later NAME [KEY=VALUE...]: the volume was a pod's of the namespace default, was detached, and is attached and staged again.
a_life_later() {
        lifecycle_up "$@" && lifecycle_down "$1" && kubelet_attach "$@" && kubelet_stage "$1"
}

# is_of_one_namespace NAME [KEY=VALUE...]: what volume-create has made is of the namespace whose pod is first, also a life later.
is_of_one_namespace() {
        a_life_later "$@"
        second_pod "$1" other "${@:2}"
        assert_refused "namespace default" "namespace other" "$STATE_DIR/provisioned/$1.json"
        is "$(node_mounts_at "$(pod_dir "$1" pod-2)")" 0
        second_pod "$1" default "${@:2}"
        assert_success
}

# only_by_its_name NAME KEY=VALUE...: after is_of_one_namespace, no FlexVolume volume gets it by its disk, whatever its own name is.
only_by_its_name() {
        local name
        kubelet_unpublish "$1" pod-2
        kubelet_unstage "$1"
        kubelet_detach "$1"
        for name in other "$1"; do
                call attach "$(spec "$name" "${@:2}")" "$NODE"
                assert_refused "which is had by that name alone" "\"$1\"" || return 1
        done
}

# kubelet_unpublish NAME [POD]: unmount, and kubelet's own rmdir if the directory is still there.
kubelet_unpublish() {
        local dir
        dir=$(pod_dir "$@")
        call unmount "$dir" && assert_success || return 1
        [[ ! -e $dir ]] || rmdir "$dir"
}

# kubelet_unstage NAME: unmountdevice if it sees a mount point, its own rmdir, and the check that nobody has the device open.
kubelet_unstage() {
        local dir device=${DEVICES[$1]:-}
        dir=$(global_dir "$1")
        [[ -e $dir ]] || return 0
        if is_mount_point "$dir"; then
                call unmountdevice "$dir" && assert_success || return 1
        fi
        [[ ! -e $dir ]] || rmdir "$dir" || return 1
        [[ ! -b $device ]] && return 0
        "$FLEXGRAFT_TOOLS/hold-exclusive" "$device" --once >/dev/null
}

kubelet_detach() {
        call detach "$1" "$NODE" && assert_success
}

# driver_attaches: whether init says so; kubelet asks it first.
driver_attaches() {
        call init && assert_success || return 1
        DRIVER_ATTACHES=true
        [[ $output != *'"attach":false'* ]] || DRIVER_ATTACHES=false
}

# lifecycle_up NAME [KEY=VALUE...]: all that kubelet calls until the volume is in $POD. lifecycle_down NAME: until nothing is left of it.
lifecycle_up() {
        driver_attaches || return 1
        if [[ $DRIVER_ATTACHES == true ]]; then
                kubelet_attach "$@" && kubelet_stage "$1" || return 1
        else
                SPECS[$1]=$(spec "$@")
        fi
        kubelet_publish "$1"
}

lifecycle_down() {
        kubelet_unpublish "$1" || return 1
        [[ $DRIVER_ATTACHES == true ]] || return 0
        kubelet_unstage "$1" && kubelet_detach "$1"
}

# take_down NAME: lifecycle_down, whatever began it.
take_down() {
        DRIVER_ATTACHES=true lifecycle_down "$1"
}

# size_of DIR: the bytes of the filesystem there.
size_of() {
        echo $(($(stat -f -c '%b * %S' "$1")))
}

# delete_volume NAME: what volume-delete does with a volume that the driver made: its name can be made anew.
delete_volume() {
        local text=''
        put_member text name "$1"
        helper volume-delete "{${text#,}}"
        assert_success
}

# ---- what must hold

# volume_records: the files of the volumes' records, whatever their state, but not the locks; nothing for none.
volume_records() {
        [[ -d $STATE_DIR/volumes ]] || return 0
        find "$STATE_DIR/volumes" -mindepth 1 ! -name '.lock' ! -name '*.lock' -printf '%P\n' | sort
}

record_of() {
        echo "$STATE_DIR/volumes/$1.json"
}

# The table of mounts is read by cat: bash reads and seeks back, and then misses lines when others mount meanwhile.
# mounts_here: the mount points below the test's directory, each as often as it is one, sorted.
mounts_here() {
        local target
        while read -r _ _ _ _ target _; do
                decode_mount_path target
                [[ $target == "$BATS_TEST_TMPDIR"/* ]] && echo "$target"
        done </proc/self/mountinfo | sort
        return 0
}

# node_mounts_at PATH: how many mounts there are exactly there, in the node's own namespace.
node_mounts_at() {
        find_mounts_at "$1" self
        echo "$found_mounts"
}

# node_mount_options PATH: the topmost mount's own options; node_mount_type PATH: the filesystem's type.
node_mount_options() {
        node_mount_line "$1" | cut -d' ' -f6
}

node_mount_type() {
        local line
        line=$(node_mount_line "$1")
        line=${line#* - }
        echo "${line%% *}"
}

node_mount_line() {
        find_mounts_at "$1" self
        echo "$found_mount"
}

# assert_node_attributes PATH WORD...: the mount's own options have each WORD, and do not have each !WORD.
assert_node_attributes() {
        assert_options "$1" "$(node_mount_options "$1")" "${@:2}"
}

# assert_nothing_left: no mount below the test's directory, no loop device over its files, no record, no directory where kubelet's volumes
# were, no process. Images stay: they are the data. Not counted: what make_device made.
assert_nothing_left() {
        local left='' found
        found=$(mounts_here)
        [[ -z $found ]] || left+="mounts: $found"$'\n'
        assert_no_loops driver >/dev/null || left+="loop devices: $(loops_of_driver)"$'\n'
        found=$(volume_records)
        [[ -z $found ]] || left+="records: $found"$'\n'
        found=$(find "$KUBELET" -mindepth 5 -path '*/volumes/*/*' -o -mindepth 5 -path '*/mounts/*')
        [[ -z $found ]] || left+="directories: $found"$'\n'
        # A process that was killed with its caller may take a moment to be gone.
        wait_until "${LINGER:-5}" no_driver_processes >/dev/null || left+="processes: $(driver_processes | tr '\n' ' ')"$'\n'
        [[ -z $left ]] && return 0
        printf 'something is left:\n%s' "$left"
        show_last
        return 1
}

no_driver_processes() {
        [[ -z $(driver_processes) ]]
}

# assert_no_secret TEXT...: in no file below the state directory, not in the log, not in the last reply.
assert_no_secret() {
        local text found
        for text; do
                found=$(grep -rlF -e "$text" "$STATE_DIR/volumes" "$STATE_DIR/mounts" "$LOG" 2>/dev/null) || :
                [[ $output == *"$text"* ]] && found+=" (the reply)"
                [[ -z $found ]] && continue
                echo "the secret $text is in: $found"
                show_last
                return 1
        done
}

# message_id: the id in the last message.
message_id() {
        [[ $(json_field .message) =~ \[id\ ([0-9a-f]{8})\]$ ]] && echo "${BASH_REMATCH[1]}"
}

# write_policy MEMBERS: the policy's section "volumes", of root, 0644.
write_policy() {
        printf '{"volumes": {%s}}\n' "$1" >"$FLEXGRAFT_POLICY"
        chmod 0644 "$FLEXGRAFT_POLICY"
}

# edit_record NAME JQ: the record of the volume, changed; written whole as another program would.
edit_record() {
        local file
        file=$(record_of "$1")
        jq -c "$2" "$file" >"$file.edited"
        chmod --reference="$file" "$file.edited"
        mv "$file.edited" "$file"
}

# can_grow_ext4: whether root may resize a mounted ext4 (CAP_SYS_RESOURCE).
can_grow_ext4() {
        local effective
        effective=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
        (((16#$effective >> 24) & 1))
}

# What a record calls the device, or image, whose filesystem is being made: image_identity FILE [NUMBER], block_identity DEVICE. NUMBER: of
# the filesystem's device then.
image_identity() {
        local birth
        birth=$(stat --format %.9W "$1")
        printf '%x:%s%s\n' "${2:-$(stat --format %d "$1")}" "$(stat --format %i "$1")" "$([[ $birth != [1-9]* ]] || echo "@$birth")"
}

block_identity() {
        printf '%s:%s\n' "$(</proc/sys/kernel/random/boot_id)" "$(<"/sys/block/${1#/dev/}/diskseq")"
}

# loop_spec NAME [KEY=VALUE...]: a loop volume of 8 MiB.
loop_spec() {
        spec "$1" type=loop size=8Mi "${@:2}"
}

# attached_loop NAME [KEY=VALUE...]: one that is attached.
attached_loop() {
        kubelet_attach "$1" type=loop size=8Mi "${@:2}"
}
