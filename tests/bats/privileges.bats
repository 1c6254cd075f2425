#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What each program is allowed to do, when it reads its first byte.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-remove mount-list
}

teardown() {
        bed_teardown
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
        run_alone "$FLEXGRAFT_BIN/$1" - <"$BATS_TEST_TMPDIR/fifo" >"$BATS_TEST_TMPDIR/stdout" 2>&1 &
        WAITING=$!
        bed_pids+=("$WAITING")
        exec 8>"$BATS_TEST_TMPDIR/fifo"
        wait_until 5 blocked_on_stdin "$WAITING"
}

status_field() {
        awk -v key="$1:" '$1 == key {print $2}' "/proc/$WAITING/status"
}

has_capability() {
        (((0x$1 >> $2) & 1))
}

# What no helper needs, by number in linux/capability.h: net_admin net_raw ipc_lock sys_module sys_rawio sys_boot sys_time
# sys_tty_config audit_write audit_control mac_override mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf sys_pacct
# sys_nice sys_resource lease linux_immutable setfcap setpcap net_bind_service net_broadcast ipc_owner fsetid
FORBIDDEN_CAPABILITIES="12 13 14 16 17 22 25 26 29 30 32 33 34 35 36 37 38 39 20 23 24 28 9 31 8 10 11 15"

check_privileges() {
        local field set number bits
        waiting "$1"
        for field in CapEff CapPrm CapInh CapAmb; do
                set=$(status_field "$field")
                for number in $FORBIDDEN_CAPABILITIES; do
                        if has_capability "$set" "$number"; then
                                echo "$1 keeps capability $number in $field: $set"
                                return 1
                        fi
                done
        done
        is "$(status_field CapInh)" 0000000000000000 CapInh
        is "$(status_field CapAmb)" 0000000000000000 CapAmb
        bits=0
        set=$(status_field CapPrm)
        for ((number = 0; number < 64; number++)); do
                has_capability "$set" "$number" && bits=$((bits + 1))
        done
        ((bits <= 10)) || { echo "$1 keeps $bits capabilities: $set"; return 1; }
        is "$(status_field Seccomp)" 2 Seccomp
        is "$(status_field NoNewPrivs)" 1 NoNewPrivs
        # Nothing is open but standard input, output and error.
        is "$(find "/proc/$WAITING/fd" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" "0 1 2 " "open files of $1"
        exec 8>&-
        wait "$WAITING" || :
        is "$(jq -r .error.operation "$BATS_TEST_TMPDIR/stdout")" "parse request"
}

# A call that only an attacker would make ends the program.
check_forbidden() {
        local call
        for call in socket connect execve execveat ptrace bpf init_module finit_module kexec_load reboot swapon perf_event_open process_vm_writev \
                io_uring_setup keyctl add_key personality open_by_handle_at settimeofday acct userfaultfd chroot pivot_root; do
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

@test "mount-bind keeps few capabilities, under a filter, when it reads its request" {
        check_privileges mount-bind
}

@test "mount-bind is killed for a call it does not need" {
        check_forbidden mount-bind
        check_foreign_numbers mount-bind
}

@test "mount-block keeps few capabilities, under a filter, when it reads its request" {
        check_privileges mount-block
}

@test "mount-block is killed for a call it does not need" {
        check_forbidden mount-block
        check_foreign_numbers mount-block
}

@test "mount-remove keeps few capabilities, under a filter, when it reads its request" {
        check_privileges mount-remove
}

@test "mount-remove is killed for a call it does not need" {
        check_forbidden mount-remove
        check_foreign_numbers mount-remove
}

@test "mount-list keeps few capabilities, under a filter, when it reads its request" {
        check_privileges mount-list
}

@test "mount-list is killed for a call it does not need" {
        check_forbidden mount-list
        check_foreign_numbers mount-list
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
        assert_mounts_at /data 0
        assert_node_unchanged
}
