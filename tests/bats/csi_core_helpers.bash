# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A CSI driver whose programs are the test's: each waits until the test lets it go, and answers what the test wants. After `load helpers`;
# setup_file() and teardown_file() call csi_clients_begin and csi_clients_end.

load "${BASH_SOURCE[0]%/*}/csi_clients"

RAW=$BATS_TEST_DIRNAME/../tools/csi_raw.py
WIRE=$BATS_TEST_DIRNAME/../tools/csi_wire.py
DELETE=/csi.v1.Controller/DeleteVolume
PROBE=/csi.v1.Identity/Probe
VOLUME_V=0a0176 # a request whose field 1 is "v"

# core_setup: directories, and programs that answer at once.
core_setup() {
        needs csi-driver
        has_python_modules grpc || skip "no python3-grpcio"
        # a socket's path has at most 107 bytes, wherever the tests run
        CORE=$(mktemp -d /tmp/csi.XXXXXX) && chmod 0755 "$CORE"
        export CORE FLEXGRAFT_CONFIG=$BATS_TEST_TMPDIR/config.json
        mkdir -p "$CORE/bin/verbs" "$CORE/registry"
        printf '{"stateDir": "%s/state"}' "$CORE" >"$FLEXGRAFT_CONFIG"
        cp "$FLEXGRAFT_BIN/csi-driver" "$CORE/bin"
        CSI_SOCKET=$CORE/csi.sock CSI_REGISTRATION=$CORE/registry/csi.flexgraft.io-reg.sock CSI_PID=''
        let_go
        make_program host-check '{"status": "Success", "ready": true}'
        make_program volume-list '{"status": "Success", "volumes": []}'
        make_program volume-delete '{"status": "Success"}'
}

core_teardown() {
        local failed=0
        let_go
        core_stop
        ended_well "${CORE_STATUS:-0}" "$CORE/err" || failed=1
        rm -rf "$CORE"
        return "$failed"
}

# make_program NAME REPLY [STATUS]: notes its beginning and its end in $CORE/began and $CORE/ended.
make_program() {
        printf '%s' "$2" >"$CORE/$1.reply"
        cat >"$CORE/bin/$1" <<END
#!/bin/sh
echo "$1 \$*" >>"$CORE/began"
cat >>"$CORE/input"
[ ! -p "$CORE/gate" ] || read -r _ 2>/dev/null <"$CORE/gate"
cat "$CORE/$1.reply"
echo "$1" >>"$CORE/ended"
exit ${3:-0}
END
        chmod 0755 "$CORE/bin/$1"
}

# hold: programs that are begun from now on wait for a line of the FIFO, until let_go, which has one for each. One that was about to open it when
# it was removed finds a writer, too: that stays.
hold() {
        [[ -p $CORE/gate ]] || mkfifo "$CORE/gate"
}

let_go() {
        local writer
        [[ -p $CORE/gate ]] || return 0
        exec {writer}<>"$CORE/gate"
        printf '\n%.0s' {1..1000} >&"$writer"
        rm "$CORE/gate"
}

# has_begun [COUNT], has_ended [COUNT]: programs, since the test began.
has_begun() {
        (($(wc -l 2>/dev/null <"$CORE/began" || echo 0) >= ${1:-1}))
}

has_ended() {
        (($(wc -l 2>/dev/null <"$CORE/ended" || echo 0) >= ${1:-1}))
}

# core_serves: its sockets are there, and it has given up its privileges, which comes last.
core_serves() {
        [[ -S $CSI_SOCKET && $(sed -n 's/^Seccomp:[[:space:]]*//p' "/proc/$CSI_PID/status" 2>/dev/null) == 2 ]]
}

# core_start [ARGUMENT...]: the driver, in CSI_PID.
core_start() {
        "$CORE/bin/csi-driver" --endpoint "$CSI_SOCKET" --node n1 "$@" >"$CORE/out" 2>"$CORE/err" 3>&- &
        CSI_PID=$!
        wait_until 10 core_serves
        [[ " $* " != *" --registry "* ]] || wait_until 10 test -S "$CSI_REGISTRATION"
}

# core_activate [ARGUMENT...]: the same, with sockets that this process has made, as a service manager does; its exit status in $CORE/status.
core_activate() {
        /usr/bin/python3 - "$CSI_SOCKET" "$CSI_REGISTRATION" "$CORE/bin/csi-driver" "$@" >"$CORE/out" 2>"$CORE/err" 3>&- <<'END' &
import os, select, socket, sys
sockets = []
for path in sys.argv[1:3]:
    one = socket.socket(socket.AF_UNIX)
    one.bind(path)
    one.listen(16)
    sockets.append(os.dup2(one.fileno(), 20 + len(sockets), True))
pid = os.fork()
if pid == 0:
    if '--idle' in sys.argv:
        select.select(sockets, [], [])      # it starts when somebody calls, and not while a client is still being started
    for i, fd in enumerate(sockets):
        os.dup2(fd, 3 + i, True)
    os.closerange(5, 64)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES='csi:registration')
    os.execv(sys.argv[3], sys.argv[3:])
directory = os.path.dirname(sys.argv[1])
with open(directory + '/pid', 'w') as file:
    file.write(str(pid))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
with open(directory + '/status', 'w') as file:
    file.write(str(status))
END
        ACTIVATOR=$!
        wait_until 10 test -s "$CORE/pid"
        CSI_PID=$(<"$CORE/pid")
}

# core_stop: SIGTERM; its exit status in CORE_STATUS.
core_stop() {
        [[ -n $CSI_PID ]] || return 0
        kill -TERM "$CSI_PID" 2>/dev/null || :
        CORE_STATUS=0
        wait "${ACTIVATOR:-$CSI_PID}" || CORE_STATUS=$?
        CSI_PID='' ACTIVATOR=''
}

# raw SCENARIO [ARGUMENT], wire SCENARIO [ARGUMENT...]: what came back, in output.
raw() {
        csi_client csi_raw "$CSI_SOCKET" "$@"
}

wire() {
        csi_client csi_wire "$CSI_SOCKET" "$@"
}

# still_answers: a call of another client.
still_answers() {
        wire one /csi.v1.Identity/GetPluginInfo
        is "$output" OK "GetPluginInfo afterwards"
}

# peak_memory: kilobytes that the driver ever had resident.
peak_memory() {
        sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$CSI_PID/status"
}

# processor_ms: of the driver, so far.
processor_ms() {
        awk '{ print ($14 + $15) * 1000 / '"$(getconf CLK_TCK)"' }' "/proc/$CSI_PID/stat"
}

at_most() { # ACTUAL LIMIT WHAT
        (($1 <= $2)) && return 0
        echo "$3 is: $1, more than $2"
        return 1
}
