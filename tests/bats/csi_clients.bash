# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Clients of a CSI driver, forked from one process for all tests of a file (tests/tools/csi_clients.py).

# csi_clients_begin, csi_clients_end: that process; nothing without gRPC's library, without which these tests are skipped.
csi_clients_begin() {
        has_python_modules grpc grpc_tools || return 0
        export CSI_CLIENTS=$BATS_FILE_TMPDIR/clients CSI_DESCRIPTORS=$BATS_FILE_TMPDIR/csi.descriptors CSI_CLIENTS_PID
        mkfifo "$CSI_CLIENTS"
        "$BATS_TEST_DIRNAME/../tools/csi_clients.py" "$CSI_CLIENTS" >/dev/null 2>"$BATS_FILE_TMPDIR/clients.err" 3>&- &
        CSI_CLIENTS_PID=$!
}

csi_clients_end() {
        [[ -z ${CSI_CLIENTS_PID:-} ]] || end_process "$CSI_CLIENTS_PID"
}

# ended_well STATUS ERRORS: a driver that was told to end did so, or was killed as the tool that traces it is; it had no fault that ended it.
ended_well() {
        [[ $1 == @(0|137|143) ]] && return
        echo "the driver ended with $1:"
        cat "$2"
        return 1
}

# csi_client_begin in|- PROGRAM ARG...: begins one ("csi_wire"); its directory in CLIENT. With "in" it reads from $CLIENT/in, and writes its pid first.
csi_client_begin() {
        kill -0 "$CSI_CLIENTS_PID" || return 1
        CLIENT=$(mktemp -d "$BATS_TEST_TMPDIR/client.XXXXXX")
        printf '%s\0' "${@:2}" >"$CLIENT/arguments"
        if [[ $1 == in ]]; then
                mkfifo "$CLIENT/in" "$CLIENT/out"
        else
                mkfifo "$CLIENT/out"
        fi
        echo "$CLIENT" >"$CSI_CLIENTS"
}

# csi_client PROGRAM ARG...: runs it; what it wrote in output, its exit status in status.
csi_client() {
        bed_command="$*" stderr='' CLIENT=''
        csi_client_begin - "$@" || return 1
        output=$(<"$CLIENT/out")
        status=$(cat "$CLIENT/status" 2>/dev/null) || status=142 # it had no time left
}
