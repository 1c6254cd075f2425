#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "nfsServers" of a policy: to which addresses the hook and the driver connect.
#
# The server takes connections and tells to which of its addresses; it speaks no NFS. So every mount fails; what counts is where it came to.

load helpers
load hook_helpers
load driver_helpers
bats_require_minimum_version 1.5.0

ALLOWED=10.66.0.1 OTHER=10.99.0.9 SIX=fd66::1

setup() {
        hook_setup
        needs mount-nfs
        DRIVER=''
        CONNECTIONS=$BATS_TEST_TMPDIR/connections
        : >"$CONNECTIONS"
        private_node_view /etc
        in_node_view sh -c "echo '$OTHER unlisted.example.org' >/etc/hosts; echo nameserver 127.0.0.1 >/etc/resolv.conf"
}

teardown() {
        if [[ -n $DRIVER ]]; then
                driver_teardown
        else
                bed_teardown
        fi
}

# network PID: three addresses in its network namespace, and the server on all of them.
network() {
        local enter=(nsenter --target "$1" --net --)
        "${enter[@]}" ip link set lo up
        "${enter[@]}" ip addr add "$ALLOWED/32" dev lo
        "${enter[@]}" ip addr add "$OTHER/32" dev lo
        "${enter[@]}" ip addr add "$SIX/128" dev lo nodad
        background_ready "${enter[@]}" python3 -c '
import socket, sys
server = socket.create_server(("::", 2049), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    name = connection.getsockname()[0].removeprefix("::ffff:")
    with open(sys.argv[1], "a") as log:
        print(name, file=log)
    connection.close()' "$CONNECTIONS"
}

# client PATTERN... : a container, whose policy has these servers.
client() {
        start_container plain-created
        network "$CONTAINER_PID"
        servers "$@"
}

servers() {
        open_policy ".kinds += [\"nfs\"] | .options += [\"mountaddr\"] | .nfsServers = $(jq -cn '$ARGS.positional' --args "$@")"
}

container_hosts() {
        printf '%s\n' "$@" >"$CONTAINER_ROOTFS/etc/hosts"
}

# connections: what the server logged, in REPLY. It takes connections in their order, so the last one is this function's.
connections() {
        nsenter --target "$CONTAINER_PID" --net -- bash -c 'exec 3<>/dev/tcp/127.0.0.9/2049'
        wait_until 10 grep -q -x 127.0.0.9 "$CONNECTIONS"
        REPLY=$(grep -v -x 127.0.0.9 "$CONNECTIONS" | sort -u) || :
}

# connects SOURCE [ADDRESS [OPTIONS]]: the hook connects there to that address; without one the policy refuses it, and it connects to none.
connects() {
        : >"$CONNECTIONS"
        ask "[{\"type\": \"nfs\", \"source\": \"$1:/export\", \"target\": \"/data\"${3:+, \"options\": \"$3\"}}]"
        hook createRuntime
        [[ $status == 1 ]] || { show_last; return 1; }
        connections
        if [[ -n ${2:-} ]]; then
                is "$REPLY" "$2" "addresses that $1 was connected to"
                [[ $stderr != *nfsServers* ]] || { show_last; return 1; }
        else
                [[ $stderr == *nfsServers* ]] || { show_last; return 1; }
                is "$REPLY" '' "addresses that $1 was connected to"
        fi
}

@test "a name that begins like a listed address is judged by its addresses" {
        client '10.66.0.*'
        container_hosts "$OTHER 10.66.0.1.evil.test" "$ALLOWED good.test"
        connects 10.66.0.1.evil.test
        connects good.test "$ALLOWED"
        connects "$ALLOWED" "$ALLOWED"
        connects "$OTHER"
}

@test "a listed name is looked up by the node, not in the container's files" {
        client nas.example.org
        in_node_view sh -c "echo '$ALLOWED nas.example.org nas.example.org.' >/etc/hosts"
        container_hosts "$OTHER nas.example.org"
        connects nas.example.org "$ALLOWED"
        connects NAS.Example.ORG "$ALLOWED"
        connects nas.example.org. "$ALLOWED"
        connects other.example.org
        connects "$ALLOWED"
}

@test "of a name with several addresses only those are tried that are listed" {
        client 10.66.0.0/24
        container_hosts "$OTHER both.test" "$ALLOWED both.test" "$OTHER bad.test"
        connects both.test "$ALLOWED"
        connects bad.test
}

@test "networks of IPv4 and IPv6 are listed with the length of their prefix" {
        client 10.64.0.0/11 fd00::/8
        connects "$ALLOWED" "$ALLOWED"
        connects "[$SIX]" "$SIX"
        connects "[FD66:0::1]" "$SIX"
        connects "$OTHER"
        servers 10.0.0.0/11 fe80::/10
        connects "$ALLOWED"
        connects "[$SIX]"
}

@test "an address in another spelling is the same address, or none" {
        client "$ALLOWED"
        container_hosts "$OTHER 012.66.0.1" "$OTHER 0x0a420001" "$OTHER 10.66.1" "$OTHER 10.66.0.1."
        connects "[::ffff:10.66.0.1]" "$ALLOWED"
        connects "[::ffff:10.99.0.9]"
        connects 012.66.0.1
        connects 0x0a420001
        connects 10.66.1
        connects 10.66.0.1.
}

@test "no pattern admits 0.0.0.0, which would be the container itself" {
        client 0.0.0.0 :: '*'
        connects 0.0.0.0
        connects '[::]'
}

@test "mountaddr must be listed too, as an address" {
        client "$ALLOWED"
        connects "$ALLOWED" "$ALLOWED" "mountaddr=$ALLOWED"
        : >"$CONNECTIONS"
        ask "[{\"type\": \"nfs\", \"source\": \"$ALLOWED:/export\", \"target\": \"/data\", \"options\": \"vers=3,mountaddr=$OTHER\"}]"
        refuses 1 mountaddr nfsServers
}

@test "any server may be listed with a wildcard" {
        client '*'
        container_hosts "$OTHER any.test"
        connects any.test "$OTHER"
        connects "[$SIX]" "$SIX"
}

@test "a policy with an invalid network is rejected" {
        local text
        client
        for text in 10.0.0.0/33 10.0.0/8 fd00::/129 /8 10.0.0.0/ nas/8 10.0.0.0/-1 ::ffff:10.0.0.0/90; do
                servers "$text"
                ask "[{\"type\": \"nfs\", \"source\": \"$ALLOWED:/export\", \"target\": \"/data\"}]"
                refuses 1 nfsServers "must be" || { echo "with $text"; return 1; }
        done
}

# volume SOURCE [ADDRESS]: the driver, in the network of a container, connects to that address for a volume of a pod.
volume() {
        : >"$CONNECTIONS"
        make_dir "$(pod_dir data)"
        SPECS[data]=$(spec data "server=$1" share=/export)
        call mount "$(pod_dir data)" "$(publish_spec data "$POD")"
        is "$(json_field .status)" Failure
        connections
        is "$REPLY" "${2:-}" "addresses that $1 was connected to"
        [[ -n ${2:-} ]] || [[ $json == *nfsServers* ]] || { show_last; return 1; }
}

@test "for a volume of a pod, too, a server is judged by its addresses, or listed by name" {
        start_container plain
        network "$CONTAINER_PID"
        driver_setup k8s~nfs
        CALL_PREFIX=(nsenter --target "$NODE_VIEW" --mount -- nsenter --target "$CONTAINER_PID" --net --)
        in_node_view sh -c "printf '%s\n' '$OTHER 10.66.0.1.evil.test' '$ALLOWED nas.example.org nas.example.org. good.test' >/etc/hosts"
        printf '{"volumes": {"nfsServers": ["10.66.0.*", "nas.example.org"]}}\n' >"$FLEXGRAFT_POLICY"
        volume 10.66.0.1.evil.test
        volume good.test "$ALLOWED"
        volume nas.example.org "$ALLOWED"
        volume "$OTHER"
        printf '{"volumes": {"nfsServers": ["nas.example.org"]}}\n' >"$FLEXGRAFT_POLICY"
        volume NAS.example.org. "$ALLOWED"
        volume good.test
}
