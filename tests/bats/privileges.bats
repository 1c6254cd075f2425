#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What each program is allowed to do, when it reads its first byte.

load helpers
load driver_helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-remove mount-list
}

teardown() {
        if [[ -n ${DRIVER:-} ]]; then
                driver_teardown
        else
                bed_teardown
        fi
}

blocked_on_stdin() {
        [[ $(cat "/proc/$1/syscall" 2>/dev/null) == "0 0x0 "* ]]
}

# With nothing open but the standard files.
run_alone() {
        local fd
        for fd in "/proc/$BASHPID/fd/"*; do
                fd=${fd##*/}
                if ((fd > 2)); then
                        eval "exec $fd>&-"
                fi
        done
        exec "$@"
}

# waiting PROGRAM: started with '-', blocked in its first read of standard input; its pid in WAITING.
waiting() {
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        local argument=-
        [[ $1 != mount-hook ]] || argument=createRuntime
        run_alone "$FLEXGRAFT_BIN/$1" "$argument" <"$BATS_TEST_TMPDIR/fifo" >"$BATS_TEST_TMPDIR/stdout" 2>&1 &
        WAITING=$!
        bed_pids+=("$WAITING")
        exec 8>"$BATS_TEST_TMPDIR/fifo"
        wait_until 5 blocked_on_stdin "$WAITING"
}

# status_field KEY [FILE]: of /proc/PID/status of the program that waits, or of a copy of another's.
status_field() {
        awk -v key="$1:" '$1 == key {print $2}' "${2:-/proc/$WAITING/status}"
}

has_capability() {
        (((0x$1 >> $2) & 1))
}

# documented PROGRAM: the capabilities that it keeps by the table of docs/security.md, by number, sorted; false without a row for it.
documented() {
        awk -v program="$1" '
                FNR == NR { if ($2 ~ /^CAP_/ && $3 ~ /^[0-9]+$/) number[$2] = $3; next }
                /^\| program \| capabilities/ { inside = 1; next }
                !/^\|/ { inside = 0 }
                inside && split($0, column, /[[:space:]]*\|[[:space:]]*/) && column[2] !~ /^-+$/ {
                        delete had
                        for (name in row) had[name]
                        delete row
                        items = split(column[3], item, /[,;][[:space:]]*/)
                        for (i = 1; i <= items; i++) {
                                if (item[i] == "the same") { for (name in had) row[name] }
                                else if (item[i] == "all of the above") { for (name in all) row[name] }
                                else if (split(item[i], word, "`") == 3) { for (name in all) if ((word[2], name) in of) row[name] }
                                else if (("CAP_" item[i]) in number) row["CAP_" item[i]]
                        }
                        programs = split(column[2], names, /,[[:space:]]*/)
                        for (i = 1; i <= programs; i++) {
                                gsub("`", "", names[i])
                                for (name in row) { of[names[i], name]; all[name] }
                                if (names[i] == program) { found = 1; for (name in row) print number[name] }
                        }
                }
                END { exit !found }' /usr/include/linux/capability.h "$FLEXGRAFT_REPO/docs/security.md" >"$BATS_TEST_TMPDIR/documented" ||
                { echo "docs/security.md has no row for $1" >&2; return 1; }
        sort -n "$BATS_TEST_TMPDIR/documented"
}

# expected PROGRAM: the same, but for a capability that root itself has not got here.
expected() {
        local number own
        own=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
        documented "$1" >"$BATS_TEST_TMPDIR/expected" || return
        while read -r number; do
                ! has_capability "$own" "$number" || echo "$number"
        done <"$BATS_TEST_TMPDIR/expected"
}

capabilities_of() { # SET
        local number
        for ((number = 0; number < 64; number++)); do
                has_capability "$1" "$number" && echo "$number"
        done
        return 0
}

# has_privileges ROW [FILE]: the program that waits, or the one that a copy of /proc/PID/status is of, has the capabilities of that row of
# docs/security.md and no others, and a filter.
has_privileges() {
        local expected
        expected=$(expected "$1") &&
                is "$(capabilities_of "$(status_field CapPrm "${@:2}")")" "$expected" "CapPrm of $1" &&
                is "$(status_field CapEff "${@:2}")" "$(status_field CapPrm "${@:2}")" "CapEff of $1" &&
                is "$(status_field CapInh "${@:2}")" 0000000000000000 "CapInh of $1" &&
                is "$(status_field CapAmb "${@:2}")" 0000000000000000 "CapAmb of $1" &&
                is "$(status_field Seccomp "${@:2}")" 2 "Seccomp of $1" &&
                is "$(status_field NoNewPrivs "${@:2}")" 1 "NoNewPrivs of $1"
}

check_privileges() {
        waiting "$1"
        has_privileges "$1"
        # Nothing is open but standard input, output and error, and the sockets of exec helpers, for remap-daemon, mkfs, lvm and pmem-namespaces.
        local open="0 1 2 "
        [[ ! $1 =~ ^(mount-(bind|block|container-to-container|image|nfs|overlay|tmpfs)|remap-(mount|upgrade)|volume-.*)$ ]] || open+="3 "
        [[ $1 != volume-* ]] || open+="4 "
        [[ $1 != volume-expand && $1 != volume-snapshot ]] || open+="5 " # of mkfs and fsck, too
        [[ $1 != host-check ]] || open+="3 4 5 "
        [[ ! $1 =~ ^mount-(batch|volume)$ ]] || open+="3 4 5 6 "
        is "$(find "/proc/$WAITING/fd" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" "$open" "open files of $1"
        exec 8>&-
        wait "$WAITING" || :
        [[ $1 == mount-hook ]] || is "$(jq -r .error.operation "$BATS_TEST_TMPDIR/stdout")" "parse request"
}

# A call that only an attacker would make ends the program.
check_forbidden() {
        local call
        for call in socket connect execve execveat ptrace bpf init_module finit_module kexec_load reboot swapon perf_event_open process_vm_writev \
                io_uring_setup keyctl add_key personality open_by_handle_at settimeofday acct userfaultfd chroot pivot_root; do
                # who finds servers, or writes a log, connects; but makes no socket of this sort (0, 0)
                [[ ! $1:$call =~ ^(mount-(nfs|volume|batch|hook|remove)|remap-mount|volume-.*|host-check):connect$ ]] || continue
                waiting "$1"
                is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$WAITING" "$call" 0 0 0 0 0 0)" "killed by signal 31" "$call in $1"
                exec 8>&-
                wait "$WAITING" || :
                rm "$BATS_TEST_TMPDIR/fifo"
        done
}

# The same, for a call with a number that means something else in the 32-bit world or the x32 one.
check_foreign_numbers() {
        local call
        for call in $((0x40000000 + 59)) $((0x40000000 + 1)) 100000; do
                waiting "$1"
                is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$WAITING" "$call")" "killed by signal 31" "$call in $1"
                exec 8>&-
                wait "$WAITING" || :
                rm "$BATS_TEST_TMPDIR/fifo"
        done
}

# bats test_tags=text
@test "each program that has a filter keeps the capabilities that docs/security.md tells" {
        local name
        for name in $(makefile_words HELPERS VOLUME_TOOLS NODE_TOOLS MOUNT_TYPES VERBS | tr . -) utab; do
                [[ -s $FLEXGRAFT_REPO/build/privileges/$name.h ]]
                documented "$name" >/dev/null
                is "$(sed -n 's/^static const int privileges_capabilities\[\] = {\(.*\)};/\1/p' "$FLEXGRAFT_REPO/build/privileges/$name.h" |
                        grep -oE '[0-9]+' | sort -n)" "$(documented "$name")" "$name"
        done
}

# told PAGE: the clauses of a man page that name the capabilities that a program keeps, one a line.
told() {
        sed -n '/^\.SH PRIVILEGES/,/^\.SH [^P]/{/^\.SH/d; s/\\f[A-Z]//g; s/\\-/-/g; p}' "$FLEXGRAFT_REPO/man/$1.8" | tr '\n' ' ' | sed 's/[.;]/\n/g' |
                grep -E 'keeps? |drops every capability'
}

# told_of PAGE PROGRAM: those of the program, by number, sorted.
told_of() {
        local clause word
        while read -r clause; do
                [[ $1 != flexdriver-* || " ${clause//,/} " == *" $2 "* ]] || continue
                for word in ${clause//[^A-Z_]/ }; do
                        sed -n "s/^#define CAP_${word#CAP_}[[:space:]]*\([0-9]*\)$/\1/p" /usr/include/linux/capability.h
                done
        done < <(told "$1") | sort -n
}

# bats test_tags=text
@test "the man page of each program names the capabilities that it keeps" {
        local page name
        for page in $(makefile_words HELPERS VOLUME_TOOLS NODE_TOOLS MOUNT_TYPES); do
                [[ ! $page =~ ^(mount-batch|mount-hook|mount.flexgraft-remap)$ ]] || continue # "of all helpers", "those of"
                is "$(told_of "$page" "$page")" "$(documented "${page//./-}")" "$page"
        done
        for name in $(makefile_words VERBS); do
                page=$(grep -lE "^.fBflexdriver $name\b" "$FLEXGRAFT_REPO"/man/flexdriver-*.8 || echo flexdriver.8)
                page=${page##*/}
                is "$(told_of "${page%.8}" "$name")" "$(documented "$name")" "$name in $page"
        done
}

# bats test_tags=text
@test "each row that has the call fstat() was until glibc 2.38 has the one that it is since" {
        local rows
        rows=$(gcc -E -P -x c "$FLEXGRAFT_REPO/src/privileges/privilege_table.h" | tr -s '[:space:]' ' ' |
                grep -oE '\{ ?"[a-z-]+", ?\{[^}]*\}, ?\{[^}]*\}')
        [[ $rows == *'"init", '* ]]
        is "$(awk '/"newfstatat"/ && !/"fstat"/ {print $2}' <<<"$rows")" "" "rows without fstat"
}

@test "each program is looked at while it runs, and killed for a call that it does not need" {
        local name test
        for name in $(makefile_words HELPERS NODE_TOOLS); do
                for test in check_privileges check_forbidden check_foreign_numbers; do
                        grep -qx "        $test $name" "$BATS_TEST_FILENAME" || { echo "no $test $name"; false; }
                done
        done
        for name in $(makefile_words VERBS); do
                grep -qE "^        (check_verb verbs/|acts_with )$name " "$BATS_TEST_FILENAME" || { echo "no check_verb of $name"; false; }
        done
}

# bats test_tags=kernel
@test "mount-bind keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-bind
}

@test "mount-bind is killed for a call it does not need" {
        check_forbidden mount-bind
        check_foreign_numbers mount-bind
}

@test "mount-block keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-block
}

# bats test_tags=deep
@test "mount-block is killed for a call it does not need" {
        check_forbidden mount-block
        check_foreign_numbers mount-block
}

@test "mount-container-to-container keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-container-to-container
}

@test "mount-container-to-container is killed for a call it does not need" {
        check_forbidden mount-container-to-container
        check_foreign_numbers mount-container-to-container
}

@test "mount-nfs keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-nfs
}

@test "mount-nfs is killed for a call it does not need" {
        check_forbidden mount-nfs
        check_foreign_numbers mount-nfs
}

@test "mount-image keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-image
}

@test "mount-image is killed for a call it does not need" {
        check_forbidden mount-image
        check_foreign_numbers mount-image
}

@test "mount-tmpfs keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-tmpfs
}

# bats test_tags=deep
@test "mount-tmpfs is killed for a call it does not need" {
        check_forbidden mount-tmpfs
        check_foreign_numbers mount-tmpfs
}

@test "mount-overlay keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-overlay
}

# bats test_tags=deep
@test "mount-overlay is killed for a call it does not need" {
        check_forbidden mount-overlay
        check_foreign_numbers mount-overlay
}

@test "mount-volume keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-volume
}

@test "mount-volume is killed for a call it does not need" {
        check_forbidden mount-volume
        check_foreign_numbers mount-volume
}

@test "mount-batch keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-batch
}

# bats test_tags=deep
@test "mount-batch is killed for a call it does not need" {
        check_forbidden mount-batch
        check_foreign_numbers mount-batch
}

@test "mount-hook keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-hook
}

# bats test_tags=deep
@test "mount-hook is killed for a call it does not need" {
        check_forbidden mount-hook
        check_foreign_numbers mount-hook
}

@test "mount-remove keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-remove
}

@test "remap-mount keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges remap-mount
}

# bats test_tags=deep
@test "remap-mount is killed for a call it does not need" {
        check_forbidden remap-mount
        check_foreign_numbers remap-mount
}

@test "remap-upgrade keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges remap-upgrade
}

@test "remap-upgrade is killed for a call it does not need" {
        check_forbidden remap-upgrade
        check_foreign_numbers remap-upgrade
}

@test "mount-remove is killed for a call it does not need" {
        check_forbidden mount-remove
        check_foreign_numbers mount-remove
}

@test "mount-list keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges mount-list
}

# bats test_tags=deep
@test "mount-list is killed for a call it does not need" {
        check_forbidden mount-list
        check_foreign_numbers mount-list
}

@test "host-check keeps the capabilities it needs and no others, under a filter, when it reads its request" {
        check_privileges host-check
}

@test "host-check is killed for a call it does not need" {
        check_forbidden host-check
        check_foreign_numbers host-check
}

@test "the volume tools keep the capabilities they need and no others, under a filter, when they read their request" {
        local name
        for name in $(makefile_words VOLUME_TOOLS | grep -vx volume-reconcile); do # which is with the verbs
                check_privileges "$name"
                rm "$BATS_TEST_TMPDIR/fifo"
        done
}

# check_verb VERB ARGUMENT...: - is its JSON, for which it waits.
check_verb() {
        mkfifo "$BATS_TEST_TMPDIR/fifo"
        run_alone "$FLEXGRAFT_BIN/$1" "${@:2}" <"$BATS_TEST_TMPDIR/fifo" >"$BATS_TEST_TMPDIR/stdout" 2>&1 &
        WAITING=$!
        bed_pids+=("$WAITING")
        exec 8>"$BATS_TEST_TMPDIR/fifo"
        wait_until 5 blocked_on_stdin "$WAITING"
        has_privileges "${1##*/}"
        exec 8>&-
        wait "$WAITING" || :
        rm "$BATS_TEST_TMPDIR/fifo"
}

@test "the driver's verbs and volume-reconcile keep the capabilities they need and no others, under a filter, when they read their request" {
        local ours=$BATS_TEST_TMPDIR/global
        check_verb verbs/getvolumename -
        check_verb verbs/isattached - node
        check_verb verbs/attach - node
        check_verb verbs/waitforattach /dev/null -
        check_verb verbs/mountdevice "$ours" /dev/null -
        check_verb verbs/expandvolume - "$ours" 2 1
        check_verb verbs/expandfs - /dev/null "$ours" 2 1
        check_verb verbs/mount "$ours" -
        check_verb volume-reconcile -
}

# acts_with VERB CALL ARGUMENT...: it succeeds, and has its privileges and no others when it makes that call (words for at_syscall).
acts_with() {
        local call
        read -ra call <<<"$2"
        at_syscall --at "${call[@]}" --to-point --run "cat /proc/\$AT_PID/status >'$BATS_TEST_TMPDIR/status'" "$DRIVER" "$1" "${@:3}"
        is "$AT_REACHED $(jq -r .status <<<"$output")" "1 Success" "$2 in $1, and its reply" && has_privileges "$1" "$BATS_TEST_TMPDIR/status"
}

@test "init, unmount, unmountdevice and detach keep the capabilities they need and no others, under a filter, when they act" {
        driver_setup
        lifecycle_up data type=loop size=8Mi
        acts_with init write
        acts_with unmount umount2 "$(pod_dir data)"
        acts_with unmountdevice umount2 "$(global_dir data)"
        acts_with detach 'ioctl --where 2=0x4c01' data "$NODE" # LOOP_CLR_FD
        at_syscall --at write --to-point --run "cat /proc/\$AT_PID/status >'$BATS_TEST_TMPDIR/status'" "$FLEXGRAFT_BIN/verbs/init"
        is "$AT_REACHED" 1
        has_privileges init "$BATS_TEST_TMPDIR/status"
}

# mounts_with ROW CALL PROGRAM ARGUMENT...: likewise, of a program that mount(8) runs.
mounts_with() {
        local call
        read -ra call <<<"$2"
        at_syscall --at "${call[@]}" --to-point --run "cat /proc/\$AT_PID/status >'$BATS_TEST_TMPDIR/status'" "$FLEXGRAFT_BIN/$3" "${@:4}"
        is "$AT_REACHED $output" "1 " "$2 in $3, and what it says" && has_privileges "$1" "$BATS_TEST_TMPDIR/status"
}

@test "mount.flexgraft and umount.flexgraft keep the capabilities they need and no others, under a filter, when they act" {
        driver_setup
        mkdir "$BATS_TEST_TMPDIR/point"
        helper volume-create '{"name": "db", "size": "8Mi"}'
        assert_success
        mounts_with mount-flexgraft symlinkat mount.flexgraft db "$BATS_TEST_TMPDIR/point"
        helper umount.flexgraft "$BATS_TEST_TMPDIR/point"
        mounts_with utab flock mount.flexgraft db "$BATS_TEST_TMPDIR/point" # the process that calls libmount
        mounts_with umount-flexgraft umount2 umount.flexgraft "$BATS_TEST_TMPDIR/point"
}

# runs_with ROW NAME PROGRAM ARGUMENT...: PROGRAM has another one run, NAME, which begins with the privileges of that row of docs/security.md.
runs_with() {
        at_syscall --others --at 1 --to-point --run "cat /proc/\$AT_PID/status >'$BATS_TEST_TMPDIR/status'" "${@:3}"
        is "$AT_REACHED $(status_field Name "$BATS_TEST_TMPDIR/status")" "1 $2" "the program that $3 has run" &&
                has_privileges "$1" "$BATS_TEST_TMPDIR/status"
}

# grows_with PROGRAM TYPE SIZE: expandfs has it run for a filesystem of that type; made by mkfs.TYPE with the privileges of the row $4.
grows_with() {
        local verbs=${DRIVER%/*}/verbs
        kubelet_attach "$2" type=loop "size=$3" "@fsType=$2"
        make_dir "$(global_dir "$2")"
        runs_with "$4" "mkfs.$2" "$verbs/mountdevice" "$(global_dir "$2")" "${DEVICES[$2]}" "${SPECS[$2]}" || return 1
        is "$(jq -r .status <<<"$output")" Success || return 1
        # root without CAP_SYS_RESOURCE cannot grow an ext4: what it says does not matter here
        runs_with "$1" "$1" "$verbs/expandfs" "${SPECS[$2]}" "${DEVICES[$2]}" "$(global_dir "$2")" 1 1
}

@test "mkfs, fsck and the programs that grow a filesystem run with the capabilities they need and no others, under a filter" {
        driver_setup
        grows_with xfs_growfs xfs 300Mi resize2fs
        grows_with btrfs btrfs 128Mi 'mkfs and fsck'
        grows_with resize2fs ext4 8Mi 'mkfs and fsck'
        call unmountdevice "$(global_dir ext4)"
        make_dir "$(global_dir ext4)"
        runs_with 'mkfs and fsck' e2fsck "${DRIVER%/*}/verbs/mountdevice" "$(global_dir ext4)" "${DEVICES[ext4]}" "${SPECS[ext4]}"
}

@test "lvm and pmem-namespaces run with the capabilities they need and no others, under a filter" {
        driver_setup
        echo '{"type": "lvm", "volumeGroup": "nonesuch"}' >"$FLEXGRAFT_POOLS/big.json"
        echo '{"type": "pmem", "region": "region777"}' >"$FLEXGRAFT_POOLS/memory.json"
        runs_with pmem-namespaces pmem-namespaces "$FLEXGRAFT_BIN/volume-capacity" '{"pool": "memory"}'
        private_node_view /usr/sbin # where lvm is looked for first; here it may not be installed
        cp /bin/true "$BATS_TEST_TMPDIR/lvm"
        in_node_view cp "$BATS_TEST_TMPDIR/lvm" /usr/sbin/lvm
        HELPER_PREFIX=(nsenter --target "$NODE_VIEW" --mount --)
        runs_with lvm lvm "$FLEXGRAFT_BIN/volume-capacity" '{"pool": "big"}'
        HELPER_PREFIX=()
}

blocked_on_stdout() {
        [[ $(cat "/proc/$1/syscall" 2>/dev/null) == "1 0x1 "* ]]
}

# bats test_tags=deep
@test "each verb of the driver is killed for a call that it does not need" {
        local verb call dir=$BATS_TEST_TMPDIR/global
        local -a arguments
        # a pipe that is full: the reply waits in it
        mkfifo "$BATS_TEST_TMPDIR/full"
        exec 8<>"$BATS_TEST_TMPDIR/full"
        dd if=/dev/zero of="$BATS_TEST_TMPDIR/full" bs=4096 oflag=nonblock 2>"$BATS_TEST_TMPDIR/dd" || :
        for verb in $(makefile_words VERBS); do
                case $verb in
                init) arguments=() ;;
                getvolumename) arguments=('{}') ;;
                attach | isattached) arguments=('{}' node) ;;
                waitforattach) arguments=(/dev/null '{}') ;;
                detach) arguments=(nonesuch node) ;;
                mountdevice) arguments=("$dir" /dev/null '{}') ;;
                mount) arguments=("$dir" '{}') ;;
                unmount | unmountdevice) arguments=("$dir") ;;
                expandvolume) arguments=('{}' "$dir" 2 1) ;;
                expandfs) arguments=('{}' /dev/null "$dir" 2 1) ;;
                *) echo "what are the arguments of $verb?" && false ;;
                esac
                for call in execve ptrace bpf mount $((0x40000000 + 59)); do
                        run_alone "$FLEXGRAFT_BIN/verbs/$verb" "${arguments[@]}" </dev/null >"$BATS_TEST_TMPDIR/full" 2>&1 &
                        WAITING=$!
                        bed_pids+=("$WAITING")
                        wait_until 5 blocked_on_stdout "$WAITING"
                        is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$WAITING" "$call")" "killed by signal 31" "$call in $verb"
                        wait "$WAITING" || :
                done
        done
        exec 8>&-
}

# bats test_tags=deep
@test "volume-create is killed for a call it does not need" {
        check_forbidden volume-create
        check_foreign_numbers volume-create
}

@test "mount-list cannot mount" {
        waiting mount-list
        is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$WAITING" mount 0 0 0 0 0)" "killed by signal 31"
        exec 8>&-
        wait "$WAITING" || :
}

@test "a program goes on after a call it may make" {
        waiting mount-list
        [[ $("$FLEXGRAFT_TOOLS/inject-syscall" "$WAITING" 0 99 0 0) == "result -9" ]]
        echo '{}' >&8
        exec 8>&-
        wait "$WAITING"
        is "$(jq -r .status "$BATS_TEST_TMPDIR/stdout")" Success
}

@test "files that the caller left open do not reach the worker or the container" {
        start_container plain-hostpid
        exec 9<"$FLEXGRAFT_CONFIG"
        helper mount-bind "$(bind_request /data)"
        exec 9<&-
        assert_success
}

@test "a program started with closed standard files does not confuse them with others" {
        start_container plain
        node_snapshot
        "$FLEXGRAFT_BIN/mount-bind" "$(bind_request /data)" <&- >&- 2>&- 3>&- || :
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_node_unchanged
}

@test "without privileges a program says so" {
        start_container plain
        node_snapshot
        HELPER_PREFIX=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all)
        chmod 0711 "$BATS_RUN_TMPDIR"
        helper mount-bind "$(bind_request /data)"
        HELPER_PREFIX=()
        [[ $status != 0 ]]
        assert_one_json_line
        [[ $output != *'(null)'* && $output != *'container 0'* ]] || is "$output" "a message about the privileges alone"
        assert_mounts_at /data 0
        assert_node_unchanged
}

@test "no program is set-user-ID, nor has capabilities of its file" {
        is "$(find "$FLEXGRAFT_BIN/" -perm /6000)" ""
        ! command -v getcap >/dev/null || is "$(getcap -r "$FLEXGRAFT_BIN")" ""
        run ! grep -nE 'chmod.*[2467][0-7]{3}|install.*-m *0?[2467][0-7]{3}|setcap' "$FLEXGRAFT_REPO/Makefile" "$FLEXGRAFT_REPO"/scripts/install-*
}

@test "a program that was made set-user-ID takes no path from its caller's environment" {
        [[ $(findmnt -no OPTIONS --target "$BATS_TEST_TMPDIR") != *nosuid* ]] || skip "nothing is set-user-ID here"
        chmod 0711 "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR"/..
        cp "$FLEXGRAFT_BIN/volume-capacity" "$BATS_TEST_TMPDIR/program"
        chmod 4755 "$BATS_TEST_TMPDIR/program"
        echo torn >"$BATS_TEST_TMPDIR/config.json"
        local config=$FLEXGRAFT_CONFIG
        FLEXGRAFT_CONFIG=$BATS_TEST_TMPDIR/config.json
        run "$BATS_TEST_TMPDIR/program"
        [[ $status != 0 && $output == *"$BATS_TEST_TMPDIR/config.json"* ]]
        private_node_view /var/lib/kubelet/plugins /etc/flexgraft # what it takes is the node's
        run in_node_view setpriv --reuid 65534 --regid 65534 --clear-groups "$BATS_TEST_TMPDIR/program"
        FLEXGRAFT_CONFIG=$config
        [[ $output != *"$BATS_TEST_TMPDIR/config.json"* ]]
}
