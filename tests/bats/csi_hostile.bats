#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# csi-driver and clients that mean harm: whatever they send takes bounded memory and time, and others are answered.

load helpers
load csi_core_helpers
bats_require_minimum_version 1.5.0

MEMORY_KB=6144 # resident at most, where requests are small
TIME_MS=30000  # of the processor, which nothing takes but what goes on and on

setup_file() {
        csi_clients_begin
}

teardown_file() {
        csi_clients_end
        schema_validate
}

setup() {
        bed_setup
        core_setup
        core_start
}

teardown() {
        in_turn core_teardown bed_teardown
}

# bounded [MEMORY]: the driver lives, has not taken much, and answers.
bounded() {
        takes_at_most "${1:-$MEMORY_KB}"
        still_answers
}

# takes_at_most MEMORY: with the sanitizers, which keep what was freed and look at each access, what the driver takes says nothing.
takes_at_most() {
        [[ $FLEXGRAFT_BIN != */sanitize ]] || return 0
        at_most "$(peak_memory)" "$1" "resident memory in KiB"
        at_most "$(processor_ms)" "$TIME_MS" "processor time in ms"
}

@test "bytes that are no HTTP/2 end their connection" {
        raw garbage
        [[ $output == *closed || $output == goaway* ]] || is "$output" closed
        bounded
}

@test "a client that says nothing is hung up on after ten seconds" {
        raw nothing
        is "$output" closed
        bounded
}

@test "a flood of settings is ended" {
        raw flood settings
        [[ $output == closed || $output == held ]] || is "$output" "closed or held"
        bounded
}

@test "a flood of pings is ended" {
        raw flood ping
        [[ $output == closed || $output == held ]] || is "$output" "closed or held"
        bounded
}

@test "streams that are begun and reset without an end are ended with GOAWAY" {
        raw rapid_reset
        [[ $output == goaway* || $output == closed ]] || is "$output" goaway
        bounded
}

@test "calls that are begun and reset without an end start few programs" {
        hold
        raw rapid_calls "$DELETE"
        [[ $output == goaway* || $output == closed || $output == *ping* ]] || is "$output" goaway
        at_most "$(wc -l <"$CORE/began")" 9 "programs at one time"
        let_go
        wait_until 30 has_ended 9
        still_answers
        is "$(wc -l <"$CORE/began")" 9 "programs of calls that nobody waits for"
        bounded 65536
}

@test "deletions that do not end delay no call of a node, and leave places for other calls of the Controller" {
        make_program unmount '{"status": "Success"}'
        mv "$CORE/bin/unmount" "$CORE/bin/verbs"
        hold
        local waiting=()
        "$WIRE" "$CSI_SOCKET" many "$DELETE" 100 different >"$CORE/many.1" &
        waiting+=("$!")
        wait_until 20 has_begun 9 # the others wait before those that are asked for next
        "$WIRE" "$CSI_SOCKET" many /csi.v1.Controller/ControllerGetVolume 100 different >"$CORE/many.2" &
        waiting+=("$!")
        eight_are_refused() { (($(grep -c "192 calls are under way" "$CORE/err") == 8)); }
        wait_until 20 eight_are_refused
        "$WIRE" "$CSI_SOCKET" each /csi.v1.Node/NodeUnpublishVolume 0a02773{1..4}12062f7465737431 >"$CORE/node" &
        waiting+=("$!")
        wait_until 20 has_begun 20
        is "$(grep -c '^unmount' "$CORE/began")" 4 "programs of the node"
        is "$(grep -c '^volume-delete' "$CORE/began")" 9 "programs that delete"
        is "$(grep -c '^volume-list' "$CORE/began")" 7 "programs beside those that delete"
        let_go
        wait "${waiting[@]}"
        is "$(cat "$CORE"/many.* | grep -c '^UNAVAILABLE 192 calls are under way')" 8 "calls that were refused"
        is "$(cat "$CORE/node")" $'OK\nOK\nOK\nOK'
        bounded 65536
}

@test "inline volumes that are overwritten, and those of a server, leave places for other calls of the node" {
        make_program unmount '{"status": "Success"}'
        mv "$CORE/bin/unmount" "$CORE/bin/verbs"
        hold
        local i id slow=() waiting=()
        for i in {100..126}; do
                id=csi-$(printf '%064d' "$i")
                ((i < 120)) || id="192.0.2.1#exports#$i##"
                slow+=("$(printf '0a%02x%s12062f7465737431' "${#id}" "$(printf %s "$id" | od -An -v -tx1 | tr -d ' \n')")")
        done
        "$WIRE" "$CSI_SOCKET" each /csi.v1.Node/NodeUnpublishVolume "${slow[@]}" >"$CORE/slow" &
        waiting+=("$!")
        wait_until 20 has_begun 18
        "$WIRE" "$CSI_SOCKET" one /csi.v1.Node/NodeUnpublishVolume 0a02773112062f7465737431 >"$CORE/other" &
        waiting+=("$!")
        wait_until 20 has_begun 19
        let_go
        wait "${waiting[@]}"
        is "$(sort "$CORE/slow" "$CORE/other" | uniq -c | tr -s ' ')" " 28 OK"
        bounded 65536
}

@test "calls that wait for others are not begun when their deadline has passed, or their client has gone" {
        hold
        "$WIRE" "$CSI_SOCKET" many "$DELETE" 9 different >"$CORE/nine" &
        local nine=$!
        wait_until 20 has_begun 9
        wire one "$DELETE" 0a036c6174 0.3
        [[ $output == DEADLINE_EXCEEDED* ]] || is "$output" DEADLINE_EXCEEDED
        wire cancel "$DELETE" 0a03676f6e
        is "$output" CANCELLED
        raw vanish "$DELETE"
        let_go
        wait "$nine"
        wire one "$DELETE" "$VOLUME_V"
        is "$output" OK
        is "$(wc -l <"$CORE/began")" 10 "programs"
}

@test "more calls than can be under way are answered UNAVAILABLE, so that no other node is tried; Probe leaves room for pods' calls" {
        hold
        local i waiting=() bodies=()
        for i in 1 2 3; do
                "$WIRE" "$CSI_SOCKET" many "$PROBE" 100 >"$CORE/many.$i" &
                waiting+=("$!")
        done
        wait_until 20 are_refused 108 192
        for i in {100..169}; do # NodeGetVolumeStats of the volume 100, on /100
                bodies+=("0a033${i:0:1}3${i:1:1}3${i:2:1}12042f3${i:0:1}3${i:1:1}3${i:2:1}")
        done
        "$WIRE" "$CSI_SOCKET" each /csi.v1.Node/NodeGetVolumeStats "${bodies[@]}" >"$CORE/node" &
        waiting+=("$!")
        wait_until 20 are_refused 6 256
        let_go
        wait "${waiting[@]}"
        is "$(cat "$CORE"/many.* | sort | uniq -c | tr -s ' ')" $' 192 OK\n 108 UNAVAILABLE 192 calls are under way'
        is "$(cut -d ' ' -f 1 "$CORE/node" | sort | uniq -c | tr -s ' ')" $' 64 OK\n 6 UNAVAILABLE'
        bounded 65536
}

# are_refused COUNT CALLS: so many calls, because so many are under way.
are_refused() {
        (($(grep -c "$2 calls are under way" "$CORE/err") == $1))
}

@test "a block of headers that does not end ends its connection" {
        raw continuation
        [[ $output == closed || $output == goaway* ]] || is "$output" closed
        bounded
}

# client LINES: the other client's Python, with csi_raw's names; what it prints, in output.
client() {
        bed_command="client" status=0 stderr=''
        output=$(PYTHONPATH=$BATS_TEST_DIRNAME/../tools PYTHONDONTWRITEBYTECODE=1 timeout 200 /usr/bin/python3 -c "from csi_raw import *
import sys
client = Client(sys.argv[1])
$1" "$CSI_SOCKET" 2>&1) || status=$?
}

@test "a client whose headers do not end is hung up on after ten seconds" {
        client 'client.send(client.headers(1, flags=0)); client.tell([])'
        is "$output" closed
        bounded
}

@test "an answer that the client's window has no room for is given up after 20 seconds" {
        client 'client.send(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)) + client.headers(1) + frame(DATA, END_STREAM, 1, message()))
client.tell(["reset", "status"])'
        is "$(tail -n 1 <<<"$output")" "reset 8"
        bounded
}

@test "a driver that may open no more files does not spin, and serves again when it may" {
        local before
        before=$(processor_ms)
        prlimit --pid "$CSI_PID" --nofile=8:
        # it spins, so that it has as much of the processors as a driver that does
        client 'import time
more = [Client(sys.argv[1]) for _ in range(20)]
begin, end = time.process_time(), time.monotonic() + 3
while time.monotonic() < end:
    pass
print(int((time.process_time() - begin) * 1000))'
        at_most "$(($(processor_ms) - before))" "$((output / 5))" "processor time in ms"
        prlimit --pid "$CSI_PID" --nofile=1024:
        bounded
}

@test "headers that unpack to hundreds of megabytes take no memory" {
        raw bomb
        [[ $output =~ ^(status 8|goaway|reset|closed) ]] || is "$output" "status 8"
        bounded
}

@test "more streams than are allowed at one time are refused" {
        raw streams
        is "$output" "reset 7"
        bounded
}

@test "requests that never end are answered after 30 seconds, and hold only what they have sent" {
        raw half 100
        is "$(head -n 1 <<<"$output")" "status 4"
        bounded
}

@test "calls that have very many parts together are answered UNAVAILABLE, and take no more memory" {
        hold
        "$WIRE" "$CSI_SOCKET" parts 200000 16 >"$CORE/parts" &
        local client=$!
        wait_until 20 grep -q "too many parts together" "$CORE/err"
        let_go
        wait "$client"
        [[ $(sort -u "$CORE/parts" | cut -d ' ' -f 1 | tr '\n' ' ') == *'UNAVAILABLE ' ]]
        bounded $((300 << 10))
}

@test "a message of two million parts is answered RESOURCE_EXHAUSTED" {
        wire parts 2000000
        is "$output" "RESOURCE_EXHAUSTED the message has too many parts"
        bounded 131072
}

@test "a client that does not read large answers is hung up on" {
        /usr/bin/python3 -c 'import json; print(json.dumps({"status": "Success", "volumes": [
            {"name": f"v{i:06}", "type": "loop", "size": 1, "state": "created", "targetType": "mount"} for i in range(3000)]}))' \
                >"$CORE/volume-list.reply"
        raw slow /csi.v1.Controller/ListVolumes
        is "$output" closed
        takes_at_most 131072
        still_answers
}

@test "clients that stay and ask nothing do not keep others out" {
        raw crowd 70
        is "$output" "status 0"
        bounded
        at_most "$(find "/proc/$CSI_PID/fd" -mindepth 1 | wc -l)" 80 "open files"
}

@test "a client that has not read its answers yet does not make room for others" {
        raw unread 300 # more than may be there at one time
        is "$output" $'status 0\n0 are missing'
        bounded 65536
}
