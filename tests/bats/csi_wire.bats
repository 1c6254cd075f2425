#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# csi-driver on the wire: gRPC as its own library speaks it, sockets, the beginning and the end.

load helpers
load csi_core_helpers
bats_require_minimum_version 1.5.0

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
}

teardown() {
        in_turn core_teardown bed_teardown
}

@test "a client of gRPC's own library is answered" {
        core_start
        wire one /csi.v1.Identity/GetPluginInfo
        is "$output" OK
}

@test "an unknown method is answered UNIMPLEMENTED" {
        core_start
        wire one /csi.v1.Identity/Nonesuch
        is "$output" "UNIMPLEMENTED unknown method"
}

@test "the registration socket has the registration alone, and the endpoint has not" {
        core_start --registry "$CORE/registry"
        wire one /pluginregistration.Registration/GetInfo
        is "$output" "UNIMPLEMENTED unknown method"
        CSI_SOCKET=$CSI_REGISTRATION
        wire one /pluginregistration.Registration/GetInfo
        is "$output" OK
        wire one /csi.v1.Identity/GetPluginInfo
        is "$output" "UNIMPLEMENTED unknown method"
}

# A client waits for half a second. A slow one's call may not have come by then, and it calls again, or has come and not begun.
is_given_up() {
        wire one "$DELETE" "$VOLUME_V" 0.5
        ANSWERS+="${output%% *} "
        has_begun
}

given_up() {
        ANSWERS=''
        wait_until 10 is_given_up || return 1
        [[ $ANSWERS =~ ^(DEADLINE_EXCEEDED )+(ABORTED )*$ ]] || is "$ANSWERS" DEADLINE_EXCEEDED
}

@test "a call whose deadline passes is answered DEADLINE_EXCEEDED and finished" {
        core_start
        hold
        given_up
        let_go
        wait_until 10 has_ended
}

@test "the driver itself answers DEADLINE_EXCEEDED, to a client that keeps no time" {
        core_start
        raw call no-time
        is "$output" "status 4"
}

@test "a cancelled call is finished" {
        core_start
        hold
        wire cancel "$DELETE" "$VOLUME_V" "$CORE/began"
        is "$output" CANCELLED
        let_go
        wait_until 10 has_ended
}

@test "a call whose stream is reset is finished, and the connection goes on" {
        core_start
        hold
        raw reset "$DELETE"
        is "$output" "status 0"
        wait_until 10 has_begun
        let_go
        wait_until 10 has_ended
        still_answers
}

@test "a call whose client vanishes is finished" {
        core_start
        hold
        raw vanish "$DELETE"
        wait_until 10 has_begun
        let_go
        wait_until 10 has_ended
        still_answers
}

@test "a second call for a volume while the first is under way is ABORTED, and a call for another volume is not" {
        core_start
        hold
        "$WIRE" "$CSI_SOCKET" one "$DELETE" "$VOLUME_V" >"$CORE/first" &
        local first=$!
        wait_until 10 has_begun
        wire one "$DELETE" "$VOLUME_V"
        is "$output" "ABORTED another call for v is under way"
        "$WIRE" "$CSI_SOCKET" one "$DELETE" 0a0177 >"$CORE/other" &
        local other=$!
        wait_until 10 has_begun 2
        let_go
        wait "$first" "$other"
        is "$(cat "$CORE/first" "$CORE/other")" $'OK\nOK'
}

@test "a call that is still under way after its deadline is not begun a second time" {
        core_start
        hold
        given_up
        wire one "$DELETE" "$VOLUME_V"
        is "$output" "ABORTED another call for v is under way"
        let_go
        wait_until 10 has_ended
        wait_until 10 answers_ok "$DELETE" "$VOLUME_V"
        is "$(wc -l <"$CORE/began")" 2 "programs that were started"
}

@test "a call that has only looked when its caller waits no more changes nothing" {
        local id=0a076e236523702323 # "n#e#p##"
        make_program volume-create '{"status": "Success", "volume": {"name": "n#e#p##", "type": "nfs"}}'
        core_start
        hold
        wire cancel "$DELETE" "$id" "$CORE/began"
        is "$output" CANCELLED
        let_go
        wait_until 10 answers_ok "$DELETE" "$id"
        is "$(cut -d' ' -f1 "$CORE/began" | paste -sd' ')" 'volume-list volume-list volume-create volume-delete'
}

answers_ok() {
        wire one "$@"
        [[ $output == OK ]]
}

@test "100 calls at one time on one connection are answered, and at most 9 programs that delete run at one time" {
        core_start
        hold
        "$WIRE" "$CSI_SOCKET" many "$DELETE" 100 different >"$CORE/hundred" &
        local hundred=$!
        wait_until 20 has_begun 9
        sleep 0.5
        is "$(wc -l <"$CORE/began")" 9 "programs at one time"
        let_go
        wait "$hundred"
        is "$(sort "$CORE/hundred" | uniq -c | tr -s ' ')" " 100 OK"
        is "$(wc -l <"$CORE/ended")" 100 "programs that ended"
}

@test "a message of 4 MiB is read" {
        core_start
        wire size 0
        is "$output" OK
}

@test "a message of 4 MiB and one byte is answered RESOURCE_EXHAUSTED" {
        core_start
        wire size 1
        is "$output" "RESOURCE_EXHAUSTED the message is longer than 4 MiB"
        still_answers
}

@test "a message that is too long by its length is answered before it has come" {
        core_start
        raw early
        is "$output" $'status 8\nreset 0'
}

@test "64 KiB of metadata are read, and twice as much is not" {
        core_start
        wire metadata 65000
        is "$output" OK
        wire metadata 20000 5
        [[ $output == RESOURCE_EXHAUSTED* ]] || is "$output" RESOURCE_EXHAUSTED
        still_answers
}

@test "a compressed message is answered UNIMPLEMENTED, with the encodings there are" {
        core_start
        wire gzip
        is "$output" "UNIMPLEMENTED compressed messages are not supported"
        raw call gzip
        is "$output" "status 12 identity"
}

@test "a message that cannot be parsed is answered INTERNAL" {
        core_start
        local body
        for body in 0a 0aff01 0affffffffffffffffffff01 00 0b 07 0a02c328 0a04f5808080 0a03eda080; do
                wire one "$DELETE" "$body"
                is "$output" "INTERNAL the message cannot be parsed" "$body"
        done
}

@test "a text with a NUL character is answered INVALID_ARGUMENT" {
        core_start
        wire one "$DELETE" 0a03760078
        is "$output" "INVALID_ARGUMENT a text has a NUL character in it"
        [[ ! -e $CORE/began ]]
}

@test "fields that are not known are passed over" {
        core_start
        wire one "$DELETE" "${VOLUME_V}a206036162639a0600e8060fed0600000000"
        is "$output" OK
}

@test "requests that are wrong in one thing are answered with its code" {
        core_start
        local case
        for case in "=status 0" "content-type=http 415" "method=http 405" "path=status 12" "timeout=status 13" "flag=status 13 identity" \
                "flags=status 13" "short=status 13" "prefix=status 13" "none=status 13" "two=status 13" "long=status 8"; do
                raw call "${case%%=*}"
                is "$output" "${case#*=}" "${case%%=*}"
        done
}

@test "a request that comes byte by byte is answered" {
        core_start
        raw pieces
        is "$output" "status 0"
}

@test "a ping is answered with its bytes" {
        core_start
        raw ping
        is "$output" "ping 02041010090e0707"
}

@test "what a program says is percent-encoded in grpc-message and comes back whole" {
        make_program volume-delete '{"status": "Failure", "message": "100% of é is\nlost", "error": {"errno": "EBUSY"}}'
        core_start
        wire one "$DELETE" "$VOLUME_V"
        is "$output" $'FAILED_PRECONDITION 100% of é is\nlost'
}

@test "a program that prints no JSON, or is killed, is a failure that names it" {
        make_program host-check 'nonsense'
        core_start
        wire one "$PROBE"
        is "$output" "FAILED_PRECONDITION host-check: host-check exited with status 0 and printed no JSON"
        printf '#!/bin/sh\nkill -9 $$\n' >"$CORE/bin/host-check"
        wire one "$PROBE"
        is "$output" "FAILED_PRECONDITION host-check: host-check was killed by signal 9 (KILL)"
        rm "$CORE/bin/host-check"
        wire one "$PROBE"
        is "$output" "FAILED_PRECONDITION host-check: host-check cannot be started: No such file or directory"
}

@test "a program that fails and does not say why is no success" {
        make_program volume-delete '{"status": "Failure", "message": "no"}' 1
        core_start
        wire one "$DELETE" "$VOLUME_V"
        is "$output" "ABORTED no"
}

@test "a program that prints too much is a failure that says so" {
        truncate --size=$((64 * 1024 * 1024 + 1)) "$CORE/host-check.reply"
        core_start
        wire one "$PROBE"
        is "$output" "FAILED_PRECONDITION host-check: host-check printed more than 64 MiB"
}

# long_list MEMBERS: volume-list has 4,000 volumes with these, too, whose entries are longer together than a client takes.
long_list() {
        /usr/bin/python3 - "$@" >"$CORE/volume-list.reply" <<'END'
import json, sys
print(json.dumps({"status": "Success", "volumes": [
    {"name": f"{i:06}{'n' * 200}", "type": "loop", "size": 1, "state": "created", "targetType": "mount", "health": "lost",
     "problem": "p" * 1500} | json.loads(sys.argv[1]) for i in range(4000)]}))
END
}

# all_pages METHOD NAMES: what a client that follows the tokens gets, in the file NAMES; the number of its pages in PAGES.
all_pages() {
        local token='' page
        PAGES=0
        while
                page=$("$BATS_TEST_DIRNAME/../tools/csi.py" --descriptors "$CORE/descriptors" "$CSI_SOCKET" "$1" "{\"starting_token\": \"$token\"}") || {
                        echo "${page:0:200}"
                        return 1
                }
                jq -r '.entries[] | .volume.volume_id // .snapshot.snapshot_id' <<<"$page" >>"$2"
                token=$(jq -r .next_token <<<"$page")
                PAGES=$((PAGES + 1))
                [[ -n $token && $PAGES -lt 10 ]]
        do :; done
}

# bats test_tags=deep
@test "a list that is longer than a message comes in pages that are not" {
        core_start
        long_list '{}'
        all_pages ListVolumes "$CORE/volumes"
        is "$(uniq "$CORE/volumes" | wc -l) $(wc -l <"$CORE/volumes")" "4000 4000" "volumes"
        ((PAGES > 1)) || is "$PAGES" "more than 1" "pages"
        long_list "{\"snapshotOf\": \"$(printf 's%.0s' {1..1500})\"}"
        all_pages ListSnapshots "$CORE/snapshots"
        is "$(uniq "$CORE/snapshots" | wc -l) $(wc -l <"$CORE/snapshots")" "4000 4000" "snapshots"
        ((PAGES > 1)) || is "$PAGES" "more than 1" "pages"
}

@test "Probe names what the node lacks" {
        make_program host-check '{"status": "Success", "ready": false, "missing": ["fsopen", "config.json", "pool big"], "rows": [
                {"name": "fsopen", "state": "missing", "neededBy": ["every program"]}, {"name": "openat2", "state": "ok", "neededBy": ["every program"]},
                {"name": "config.json", "state": "missing", "neededBy": ["the configuration"]},
                {"name": "pool big", "state": "missing", "neededBy": ["the configuration"]}]}' 1
        core_start
        wire one "$PROBE"
        is "$output" "FAILED_PRECONDITION this node lacks what flexgraft needs: fsopen, config.json (see host-check)"
}

@test "a pool, a profile, or what they need, that cannot be used leaves the driver ready for the others" {
        make_program host-check '{"status": "Success", "ready": false, "missing": ["lvm", "pool big", "profile db"], "rows": [
                {"name": "lvm", "state": "missing", "neededBy": ["pool big", "volumes of type lvm"]}, {"name": "pool big", "state": "missing",
                "neededBy": ["the configuration"]}, {"name": "profile db", "state": "missing", "neededBy": ["the configuration"]}]}' 1
        core_start
        wire one "$PROBE"
        is "$output" OK
}

@test "SIGTERM ends the driver when the call under way is answered, and takes no new one" {
        core_start --registry "$CORE/registry"
        hold
        "$WIRE" "$CSI_SOCKET" wait "$DELETE" "$VOLUME_V" >"$CORE/answer" &
        local client=$!
        wait_until 10 has_begun
        kill -TERM "$CSI_PID"
        wait_until 10 test ! -e "$CSI_SOCKET"
        kill -0 "$CSI_PID"
        let_go
        core_stop
        is "$CORE_STATUS" 0 "exit status"
        wait "$client"
        is "$(head -n 1 "$CORE/answer")" OK
        [[ $(tail -n 1 "$CORE/answer") == UNAVAILABLE* ]]
        is "$(ls -A "$CORE/registry")" "" "what is left in the registry"
}

@test "SIGTERM waits no longer for a call than it may, and what that began goes on" {
        core_start --grace 1
        hold
        "$WIRE" "$CSI_SOCKET" one "$DELETE" "$VOLUME_V" >"$CORE/answer" &
        local client=$!
        wait_until 10 has_begun
        core_stop
        is "$CORE_STATUS" 0 "exit status"
        wait "$client"
        [[ $(<"$CORE/answer") == UNAVAILABLE* ]] || is "$(<"$CORE/answer")" UNAVAILABLE
        let_go
        wait_until 10 has_ended
}

# answered_at_the_end MODE: a client of csi_raw.py's that calls while the driver ends.
answered_at_the_end() {
        core_start
        background "$RAW" "$CSI_SOCKET" "$1" >"$CORE/told"
        local client=$BACKGROUND_PID
        wait_until 10 grep -q ready "$CORE/told"
        core_stop
        is "$CORE_STATUS" 0 "exit status"
        wait "$client"
        is "$(<"$CORE/told")" $'ready\ngoaway 0\nstatus 0\nclosed'
}

@test "a client that is about to call when the driver ends is told, and its call is answered" {
        answered_at_the_end told
}

@test "a request that is half sent when the driver ends is answered, and one that begins after that is not taken" {
        answered_at_the_end midway
}

@test "the driver removes its socket, but not one that another driver has put there" {
        core_start
        local first=$CSI_PID
        rm "$CSI_SOCKET"
        core_start
        kill -TERM "$first"
        wait "$first"
        still_answers
        core_stop
        [[ ! -e $CSI_SOCKET ]]
}

@test "a socket that a killed driver has left is replaced, and a file of another kind is not" {
        core_start
        kill -KILL "$CSI_PID"
        wait "$CSI_PID" || :
        [[ -S $CSI_SOCKET ]]
        core_start
        wait_until 10 answers_ok /csi.v1.Identity/GetPluginInfo
        core_stop
        echo data >"$CSI_SOCKET"
        run "$CORE/bin/csi-driver" --endpoint "$CSI_SOCKET" --node n1
        is "$status $output" "1 csi-driver: bind: $CSI_SOCKET: File exists"
        is "$(<"$CSI_SOCKET")" data
}

@test "a second driver leaves the sockets to the one that runs" {
        local free=$CORE/free.sock
        core_start --registry "$CORE/registry"
        run --separate-stderr "$CORE/bin/csi-driver" --endpoint "$CSI_SOCKET" --node n1
        is "$status $(head -n 1 <<<"$stderr")" \
                "1 csi-driver: bind: $CSI_SOCKET: another process serves this socket: end it (systemctl stop flexgraft-csi.socket flexgraft-csi.service)"
        run "$CORE/bin/csi-driver" --endpoint "$free" --registry "$CORE/registry" --node n1
        is "$status" 1 "exit status of one that has only the registration socket in common"
        [[ $output == *"$CSI_REGISTRATION: another process"* && ! -e $free ]]
        still_answers
        CSI_SOCKET=$CSI_REGISTRATION wire one /pluginregistration.Registration/GetInfo
        is "$output" OK
}

@test "a killed driver takes its launcher along, and what had begun is finished" {
        core_start
        hold
        "$WIRE" "$CSI_SOCKET" one "$DELETE" "$VOLUME_V" >"$CORE/answer" &
        local client=$! launcher
        wait_until 10 has_begun
        launcher=$(pgrep -P "$CSI_PID")
        kill -KILL "$CSI_PID"
        wait "$CSI_PID" || :
        CSI_PID=''
        wait "$client"
        [[ $(<"$CORE/answer") == UNAVAILABLE* ]] || is "$(<"$CORE/answer")" UNAVAILABLE
        wait_until 10 process_has_ended "$launcher"
        let_go
        wait_until 10 has_ended
}

process_has_ended() {
        ! kill -0 "$1" 2>/dev/null
}

@test "the driver ends when its launcher is gone" {
        core_start
        kill -KILL "$(pgrep -P "$CSI_PID")"
        local status=0
        wait "$CSI_PID" || status=$?
        CSI_PID=''
        is "$status" 1 "exit status"
        [[ $(<"$CORE/err") == *"the launcher has ended"* ]]
}

@test "the service manager's sockets are taken and left, and the idle driver exits with 0" {
        hold    # with a call under way it is not idle
        core_activate --idle 1
        raw vanish "$DELETE"
        wait_until 10 has_begun
        CSI_SOCKET=$CSI_REGISTRATION wire one /pluginregistration.Registration/GetInfo
        is "$output" OK
        let_go
        wait_until 10 test -s "$CORE/status"
        is "$(<"$CORE/status")" 0 "exit status"
        [[ -S $CSI_SOCKET && -S $CSI_REGISTRATION ]]
        CSI_PID=''
}

@test "the driver is not idle while a call is under way, though its client has gone" {
        hold
        core_activate --idle 1
        raw vanish "$DELETE"
        wait_until 10 has_begun
        sleep 2
        [[ ! -s $CORE/status ]]
        let_go
        wait_until 10 test -s "$CORE/status"
        is "$(<"$CORE/status")" 0 "exit status"
        CSI_PID=''
}

@test "GetInfo names the socket that the service manager has given" {
        core_activate
        local info
        info=$("$BATS_TEST_DIRNAME/../tools/csi.py" "$CSI_REGISTRATION" Registration.GetInfo)
        is "$(jq -r '[.type, .name, .endpoint, .supported_versions[]] | join(" ")' <<<"$info")" \
                "CSIPlugin csi.flexgraft.io $CSI_SOCKET 1.0.0"
}

@test "a descriptor that is no listening socket is refused" {
        run env LISTEN_FDS=1 bash -c 'export LISTEN_PID=$$; exec 3</dev/null; exec "$1" --node n1' - "$CORE/bin/csi-driver"
        is "$status $output" "1 csi-driver: sd_listen_fds: LISTEN_FDS: descriptor 3 is no listening Unix stream socket with a path"
}

@test "after a failed registration the socket appears anew, and not after one that succeeded" {
        local way before
        for way in core_start core_activate; do
                rm -f "$CSI_SOCKET" "$CSI_REGISTRATION" "$CORE/pid" "$CORE/status"
                "$way" --registry "$CORE/registry"
                /usr/bin/strace -f -qq -e trace=renameat,renameat2 -p "$CSI_PID" -o "$CORE/renames" 3>&- &
                local tracer=$!
                wait_until 10 is_traced
                CSI_SOCKET=$CSI_REGISTRATION wire one /pluginregistration.Registration/NotifyRegistrationStatus 0801
                is "$output" OK
                sleep 1.5
                is "$(grep -c rename "$CORE/renames" || :)" 0 "renames after success"
                before=$(stat -c %i "$CSI_REGISTRATION")
                CSI_SOCKET=$CSI_REGISTRATION wire one /pluginregistration.Registration/NotifyRegistrationStatus 1203616263
                wait_until 10 has_renamed
                is "$(stat -c %i "$CSI_REGISTRATION")" "$before" "the socket's inode"
                is "$(ls -A "$CORE/registry")" csi.flexgraft.io-reg.sock
                core_stop
                wait "$tracer" || :
        done
}

@test "a registration socket that cannot be renamed back at first is renamed back later" {
        local aside=$CORE/registry/.csi.flexgraft.io-reg.sock before
        core_start --registry "$CORE/registry"
        before=$(stat -c %i "$CSI_REGISTRATION")
        mv "$CSI_REGISTRATION" "$aside" && mkdir "$CSI_REGISTRATION"
        CSI_SOCKET=$aside wire one /pluginregistration.Registration/NotifyRegistrationStatus 1203616263
        is "$output" OK
        wait_until 10 grep -q "cannot be renamed away and back .*, which is tried again in 1 s" "$CORE/err"
        [[ -S $aside ]]
        rmdir "$CSI_REGISTRATION"
        wait_until 20 test -S "$CSI_REGISTRATION"
        is "$(stat -c %i "$CSI_REGISTRATION")" "$before" "the socket's inode"
        is "$(ls -A "$CORE/registry")" csi.flexgraft.io-reg.sock
}

@test "a registration socket that is aside when the driver ends is put back" {
        core_activate
        wait_until 10 answers_ok /csi.v1.Identity/GetPluginInfo
        mv "$CSI_REGISTRATION" "$CORE/registry/.csi.flexgraft.io-reg.sock"
        core_stop
        is "$(ls -A "$CORE/registry")" csi.flexgraft.io-reg.sock
}

is_traced() {
        [[ $(sed -n 's/^TracerPid:[^0-9]*//p' "/proc/$CSI_PID/status") != 0 ]]
}

has_renamed() {
        (($(grep -c 'rename.*= 0' "$CORE/renames") == 2))
}

@test "only root may connect" {
        core_start --registry "$CORE/registry"
        is "$(stat -c '%a %u' "$CSI_SOCKET" "$CSI_REGISTRATION")" $'600 0\n600 0'
        chmod 0777 "$CSI_SOCKET"
        # a copy: the checkout may lie below a directory of root's alone
        cp "$RAW" "$BATS_TEST_TMPDIR/raw.py"
        chmod -R a+rX "$BATS_TEST_TMPDIR"
        run setpriv --reuid=65534 --regid=65534 --clear-groups "$BATS_TEST_TMPDIR/raw.py" "$CSI_SOCKET" ping
        is "$output" closed
        wait_until 5 grep -q "a client that is not root was refused" "$CORE/err"
}

@test "the process that reads what clients send has no capabilities, and is killed for a call that starts programs" {
        local call
        core_start
        is "$(sed -n 's/^Cap\(Prm\|Eff\|Inh\|Amb\):[[:space:]]*//p' "/proc/$CSI_PID/status" | sort -u)" 0000000000000000
        is "$(sed -n 's/^\(Seccomp\|NoNewPrivs\):[[:space:]]*//p' "/proc/$CSI_PID/status" | sort)" $'1\n2'
        core_stop
        for call in execve execveat socket connect ptrace bpf process_vm_writev chroot; do
                rm -f "$CSI_SOCKET" # of the one that was killed
                core_start
                still_answers
                is "$("$FLEXGRAFT_TOOLS/inject-syscall" "$CSI_PID" "$call" 0 0 0 0 0 0)" "killed by signal 31" "$call"
                wait "$CSI_PID" || :
        done
        CSI_PID=''
}

@test "a secret is in no argument, log or answer" {
        make_program volume-delete '{"status": "Failure", "message": "refused", "error": {"errno": "EBUSY"}}'
        core_start
        # DeleteVolumeRequest: volume_id "v", secrets {"key": "hunter2-secret"}
        wire one "$DELETE" "${VOLUME_V}12150a036b6579120e68756e746572322d736563726574"
        is "$output" "FAILED_PRECONDITION refused"
        wire one "$DELETE" "${VOLUME_V}12150a036b6579120e68756e746572322d7365637265c3"
        is "$output" "INTERNAL the message cannot be parsed"
        core_stop
        run -1 grep -r hunter2 "$CORE/began" "$CORE/err" "$CORE/out"
}

@test "the driver has less than 3 MiB resident, with its launcher" {
        without_sanitizers "need memory of their own"
        core_activate
        still_answers
        local one total=0
        for one in "$CSI_PID" $(pgrep -P "$CSI_PID"); do
                total=$((total + $(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$one/status")))
        done
        at_most "$total" 3072 "resident memory in KiB"
}

# bats test_tags=deep
@test "resident memory is flat after 16,000 calls" {
        core_start
        "$WIRE" "$CSI_SOCKET" many /csi.v1.Identity/GetPluginInfo 500 >/dev/null
        local before
        before=$(peak_memory)
        for _ in 1 2 3 4; do
                is "$("$WIRE" "$CSI_SOCKET" many /csi.v1.Identity/GetPluginInfo 4000 | sort -u)" OK
        done
        # how many calls meet there is for the client's speed to say: less than 64 KiB; 64 bytes lost with each call are 1,000
        at_most "$(peak_memory)" "$((before + 1000))" "resident memory in KiB"
}

@test "the command line's mistakes are told, with exit status 2" {
        local line long=a2345678901234567890123456789012345678901234567890.234
        local name="--name must be a DNS name of at most 54 characters, in small letters"
        local node="--node (else nodeName of the configuration, or the host's name) must be a DNS name of at most 63 characters, as a label's value"
        # shellcheck disable=SC2089,SC2090 # what is quoted is a message
        for line in "--nonesuch=unknown option --nonesuch" "--node=--node must be followed by a value" "--endpoint x=--endpoint must be followed by an absolute path without \"..\"" \
                "--name a_b=$name" "--name A.b=$name" "--name ${long}x=$name" "--node $long$long=$node" "--idle x=--idle must be followed by a number of seconds" \
                "--name a --name b=--name is given twice" "words=unknown option words"; do
                # shellcheck disable=SC2086 # words
                run "$CORE/bin/csi-driver" ${line%%=*}
                is "$status $output" "2 csi-driver: the request cannot be understood: ${line#*=}" "${line%%=*}"
        done
}
