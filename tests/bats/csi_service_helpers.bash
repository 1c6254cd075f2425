# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2119,SC2120 # arguments may be left out
# A running CSI driver, and calls of it by the client tests/tools/csi.py, one process for all calls of a test.
#
# After `load helpers`, `load driver_helpers` and `load volume_helpers`, whose setup and teardown csi_begin and csi_end are, too; setup_file() and
# teardown_file() call csi_clients_begin and csi_clients_end.

load "${BASH_SOURCE[0]%/*}/csi_clients"

CSI_CLIENT=$BATS_TEST_DIRNAME/../tools/csi.py
NODE_ID=node-under-test
TOPOLOGY_KEY=topology.csi.flexgraft.io/node
WRITER='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
BLOCK_WRITER='{"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'

# csi_begin: all that setup() calls.
csi_begin() {
        bed_setup
        driver_setup
        volume_setup
        csi_setup
}

# csi_end: all that teardown() calls.
csi_end() {
        in_turn csi_teardown driver_teardown
}

# csi_setup: a driver, in CSI_PID, at CSI_SOCKET; skips without the client's library.
csi_setup() {
        needs csi-driver
        has_python_modules grpc grpc_tools || skip "no python3-grpcio and python3-grpc-tools"
        CSI_SOCKET=$BATS_TEST_TMPDIR/csi.sock CSI_PID='' CSI_IN='' CSI_OUT='' CSI_CLIENT_OPTIONS=()
        csi_start
}

# csi_start [ARGUMENT...]: the driver anew.
csi_start() {
        "${HELPER_PREFIX[@]}" "$FLEXGRAFT_BIN/csi-driver" --endpoint "$CSI_SOCKET" --node "$NODE_ID" "$@" \
                >"$BATS_TEST_TMPDIR/csi.out" 2>"$BATS_TEST_TMPDIR/csi.err" 3>&- &
        CSI_PID=$!
        wait_until 10 csi_listens
}

# csi_listens: it has bound its socket, and listens.
csi_listens() {
        local sockets
        mapfile -t sockets </proc/net/unix
        printf -v sockets '%s\n' "${sockets[@]}"
        [[ $sockets =~ " 00010000 "[^$'\n']*" $CSI_SOCKET"$'\n' ]]
}

csi_teardown() {
        [[ -z ${CSI_IN:-} ]] || csi_hang_up
        [[ -z ${CSI_PID:-} ]] || csi_stop
}

# csi_stop: as systemd does, and waits.
csi_stop() {
        local ended=0
        kill -TERM "$CSI_PID" 2>/dev/null || :
        wait "$CSI_PID" || ended=$?
        CSI_PID=''
        ended_well "$ended" "$BATS_TEST_TMPDIR/csi.err"
}

csi_connect() {
        [[ -z $CSI_IN ]] || return 0
        csi_client_begin in csi "${CSI_CLIENT_OPTIONS[@]}" "$CSI_SOCKET" - || return 1
        exec {CSI_IN}>"$CLIENT/in" {CSI_OUT}<"$CLIENT/out"
        IFS= read -r -t 120 CSI_PROCESS_PID <&"$CSI_OUT"
}

csi_hang_up() {
        exec {CSI_IN}>&- {CSI_OUT}<&-
        [[ -z ${CSI_PROCESS_PID:-} ]] || kill "$CSI_PROCESS_PID" 2>/dev/null || :
        CSI_IN='' CSI_OUT='' CSI_PROCESS_PID=''
}

# csi METHOD [JSON]: a call; sets code ("OK", "NOT_FOUND"), json (the reply) or message.
csi() {
        local line request=${2:-'{}'}
        csi_connect
        bed_command="$1 $request" status=0 stderr='' output='' json='' message=''
        printf '%s %s\n' "$1" "${request//$'\n'/ }" >&"$CSI_IN"
        if ! IFS= read -r -t 120 line <&"$CSI_OUT"; then
                code=NONE stderr=$(<"$CLIENT/err")
                return 0
        fi
        code=${line%% *} output=${line#* }
        if [[ $code == OK ]]; then
                json=$output
        else
                message=$output
        fi
}

# answers CODE [TEXT...]: of the last call; each TEXT is in its message, or in its reply.
answers() {
        local expected=$1 text
        shift
        is "$code" "$expected" code || return 1
        for text; do
                [[ $output == *"$text"* ]] || { echo "the answer lacks: $text"; show_last; return 1; }
        done
}

# ok METHOD [JSON]: the call succeeds.
ok() {
        csi "$@"
        answers OK
}

# volume_request NAME [MEMBERS]: a CreateVolumeRequest of 8 MiB, with further members; SIZE is another size, CAPABILITY another capability.
volume_request() {
        local text=''
        put_member text name "$1"
        printf '{%s, "capacity_range": {"required_bytes": %s}, "volume_capabilities": [%s]%s}' "${text#,}" "${SIZE:-8388608}" \
                "${CAPABILITY:-$WRITER}" "${2:+, $2}"
}

# make_volume NAME [MEMBERS]: CreateVolume succeeds; the id in VOLUME_ID.
make_volume() {
        ok CreateVolume "$(volume_request "$@")" || return 1
        VOLUME_ID=$(jq -r .volume.volume_id <<<"$json")
}

# with_id METHOD ID [MEMBERS]: a call with that volume_id.
with_id() {
        local text=''
        put_member text volume_id "$2"
        csi "$1" "{${text#,}${3:+, $3}}"
}

# snapshot_request NAME SOURCE
snapshot_request() {
        local text=''
        put_member text name "$1"
        put_member text source_volume_id "$2"
        printf '{%s}' "${text#,}"
}

make_snapshot() {
        ok CreateSnapshot "$(snapshot_request "$@")" || return 1
        SNAPSHOT_ID=$(jq -r .snapshot.snapshot_id <<<"$json")
}

# listed_ids: of the last ListVolumes, the ids.
listed_ids() {
        jq -r '[.entries[].volume.volume_id] | join(" ")' <<<"$json"
}
