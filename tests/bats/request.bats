#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Requests: what cannot be understood is refused before anything is done, and the key at fault is named.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-block mount-remove mount-list
}

teardown() {
        bed_teardown
}

# refused KEY JSON [PROGRAM]
refused() {
        helper "${3:-mount-bind}" "$2"
        assert_not_understood "$1"
}

@test "no request" {
        helper mount-bind
        is "$status" 2
        assert_one_json_line
}

@test "two requests" {
        helper mount-bind '{}' '{}'
        is "$status" 2
        assert_one_json_line
}

@test "an unknown option of the command line" {
        helper mount-bind --nonesuch
        is "$status" 2
        assert_one_json_line
}

@test "an empty request" {
        helper mount-bind ''
        assert_not_understood
}

@test "an empty object names a key that is missing" {
        helper mount-bind '{}'
        assert_not_understood
        [[ $(json_field .message) =~ container|source|target ]]
}

@test "not JSON" {
        local text
        for text in hello '{' '}' '{"container"' '{"container": }' "{'container': 1}" '{"container": 1,}' '{"container": 1} x' '{"container": 1}{}' \
                'nul' '{"a": nan}' '{"a": 01}' '{"a": 1e}' '{"a": "\q"}' '{"a": "\u12"}' $'{"a": "\x01"}' '{"a": "'; do
                helper mount-bind "$text"
                assert_not_understood
        done
}

# says WORDS REQUEST: REQUEST is refused with just these words.
says() {
        helper mount-bind "$2"
        assert_not_understood
        is "$(json_field .message)" "the request cannot be understood: $1" "message"
}

@test "a mistake in the JSON is named with line and column" {
        says "invalid JSON at line 1, column 15: unexpected token near ','" '{"container": , }'
        says "invalid JSON at line 2, column 11: unexpected token near '}'" $'{"container": 1,\n"target": }'
        says "invalid JSON at line 1, column 2: invalid token near 'h'" '[h'
        says "invalid JSON at line 1, column 8: end of file expected near 'x'" '{"a":1}x'
        says "invalid JSON at line 1, column 7: invalid token" $'{"a": \xe2\x80\xae}'
        says "invalid JSON at line 1, column 48: duplicate object key" '{"aaaaaaaaaaaaaaaaaaaa":1,"aaaaaaaaaaaaaaaaaaaa":1}'
        says "target: is given twice" '{"target": 1, "target": 2}'
}

@test "nothing is not called JSON with a mistake" {
        says "the request is empty: expected a JSON object" ''
        says "the request is empty: expected a JSON object" $' \t\n '
        helper mount-bind - </dev/null
        assert_not_understood "standard input"
        is "$(json_field .message)" "the request cannot be understood: standard input is empty: expected a JSON object" "message"
}

@test "the limits of nesting and of length are named" {
        local deep
        printf -v deep '[%.0s' {1..3000}
        says "container: nested deeper than 8 levels" '{"container": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}}}'
        says "nested deeper than 8 levels" '[[[[[[[[[]]]]]]]]]'
        says "nested deeper than 8 levels" "{\"container\": $deep"
        helper mount-bind - < <(printf '{"container": "'; head -c 1100000 /dev/zero | tr '\0' a)
        assert_not_understood "standard input"
        is "$(json_field .message)" "the request cannot be understood: standard input is longer than 1 MiB" "message"
}

@test "JSON that is not an object" {
        local text
        for text in '[]' '"text"' 5 null true '[{}]'; do
                helper mount-bind "$text"
                assert_not_understood
        done
}

@test "a missing container" {
        refused container '{"source": "/srv", "target": "/data"}'
}

@test "a missing source" {
        refused source '{"container": 1, "target": "/data"}'
}

@test "a missing target" {
        refused target '{"container": 1, "source": "/srv"}'
}

@test "an unknown key" {
        refused nonesuch '{"container": 1, "source": "/srv", "target": "/data", "nonesuch": true}'
}

@test "an unknown key of another program" {
        refused server '{"container": 1, "source": "/srv", "target": "/data", "server": "nfs"}'
}

@test "a key in the wrong case" {
        refused Target '{"container": 1, "source": "/srv", "Target": "/data"}'
}

@test "a repeated key" {
        refused target '{"container": 1, "source": "/srv", "target": "/data", "target": "/data"}'
}

@test "a repeated key that is written with an escape" {
        helper mount-bind '{"container": 1, "source": "/srv", "target": "/data", "\u0074arget": "/data"}'
        assert_not_understood
        [[ $(json_field .message) == *arget* ]]
}

@test "a repeated key inside container" {
        helper mount-bind '{"container": {"pid": 1, "pid": 1}, "source": "/srv", "target": "/data"}'
        assert_not_understood
        [[ $(json_field .error.subject) == *pid* ]]
}

@test "an unknown key inside container" {
        helper mount-bind '{"container": {"pid": 1, "nonesuch": 1}, "source": "/srv", "target": "/data"}'
        assert_not_understood
        [[ $(json_field .error.subject) == *nonesuch* ]]
}

# wrong_type KEY VALUE...: each VALUE for KEY is refused
wrong_type() {
        local key=$1 value base
        shift
        base='{"container": 1, "source": "/srv", "target": "/data"}'
        for value; do
                helper mount-bind "$(jq -c --arg key "$key" --argjson value "$value" '.[$key] = $value' <<<"$base")"
                assert_one_json_line
                if [[ $status != 2 || $(json_field .error.subject) != "$key"* || $(json_field .message) != *"$key"* ]]; then
                        echo "$key: $value is not refused, naming the key"
                        show_last
                        return 1
                fi
        done
}

@test "container of a wrong type" {
        wrong_type container true null '[]' 1.5 '""' '{}' 0 -1 99999999999999 1e300 '{"pid": "1"}' '{"pid": 0}' '{"pid": -1}' '{"pid": 1.5}' '{"id": 5}' '{"id": ""}' \
                '{"procDir": 1}' '{"procDir": ""}' '{"runtime": "crun"}' '{"id": "x", "runtime": 5}' '{"id": "x", "runtime": "nonesuch"}' '{"pid": 1, "id": "x"}' \
                '{"pid": 1, "procDir": "/proc/1"}'
}

@test "source of a wrong type" {
        wrong_type source true null '[]' '{}' 5 '""'
}

@test "source that is not absolute" {
        wrong_type source '"srv"' '"./srv"' '"../srv"'
}

@test "target of a wrong type" {
        wrong_type target true null '[]' '{}' 5 '""'
}

@test "target that is not absolute" {
        wrong_type target '"data"' '"./data"' '"../data"'
}

@test "readOnly of a wrong type" {
        wrong_type readOnly '"true"' 1 0 null '[]' '{}'
}

@test "recursive of a wrong type" {
        wrong_type recursive '"true"' 1 null '[]'
}

@test "mount-nfs refuses options that say another server, or to mount in the background, and says what to do" {
        local option words
        needs mount-nfs
        start_container plain
        while IFS='|' read -r option words; do
                helper mount-nfs "{\"container\": $CONTAINER_PID, \"source\": \"127.0.0.1:/export\", \"target\": \"/data\", \"options\": \"ro,$option\"}"
                [[ $status != 0 && $(json_field .message) == *"$words"* ]] || { show_last; return 1; }
        done <<'END'
bg|foreground
mounthost=nas|give the address as "mountaddr"
addr=127.0.0.2|the server's address is looked up by its name
END
}

@test "options of a wrong type" {
        wrong_type options true 5 '{}' '[5]' '[null]' '[["ro"]]' '[{}]'
}

@test "propagation of a wrong type or value" {
        wrong_type propagation true 5 null '[]' '""' '"nonesuch"' '"Private"' '"rprivate "'
}

@test "fsType of a wrong type" {
        helper mount-block '{"container": 1, "source": "/dev/null", "target": "/data", "fsType": 5}'
        assert_not_understood fsType
}

@test "ids of a wrong type or value" {
        wrong_type ids true 5 null '[]' '""' '"nonesuch"' '"AUTO"'
}

@test "id of a wrong type or value" {
        wrong_type id true 5 null '[]' '{}' '""' '"../x"' '"a/b"' '"."' '".."' '".lock"' '"a\u0000b"'
}

@test "mkdir of a wrong type" {
        wrong_type mkdir '"no"' 1 null '[]'
}

@test "locked of a wrong type" {
        wrong_type locked '"no"' 1 null
}

@test "dryRun of a wrong type" {
        wrong_type dryRun '"no"' 1 null
}

@test "timeoutSeconds of a wrong type or value" {
        wrong_type timeoutSeconds '"30"' true null '[]' 0 -1 1e300
        says "invalid JSON at line 1, column 39: too big integer" '{"timeoutSeconds": 99999999999999999999}'
}

@test "force of a wrong type" {
        helper mount-remove '{"id": "x", "force": "yes"}'
        assert_not_understood force
}

@test "mount-remove wants an id, or a container and a target" {
        local text
        for text in '{}' '{"container": 1}' '{"target": "/data"}' '{"id": "x", "container": 1, "target": "/data"}'; do
                helper mount-remove "$text"
                assert_not_understood
        done
}

@test "mount-list refuses an unknown key" {
        refused nonesuch '{"nonesuch": 1}' mount-list
}

@test "NUL bytes inside strings" {
        wrong_type target '"/da\u0000ta"'
        wrong_type source '"/srv\u0000"'
        wrong_type options '"ro\u0000,suid"' '["ro\u0000"]'
        wrong_type container '"web\u0000"' '{"id": "web\u0000"}' '{"procDir": "/proc/1\u0000"}'
}

@test "a NUL byte inside a key" {
        helper mount-bind '{"container": 1, "source": "/srv", "target": "/data", "read\u0000Only": true}'
        assert_not_understood
}

@test "a raw NUL byte on standard input" {
        helper mount-bind - < <(printf '{"container": 1, "source": "/srv", "target": "/da\0ta"}')
        assert_not_understood
        helper mount-bind - < <(printf '{"container": 1, "source": "/srv", "target": "/data"}\0')
        assert_not_understood
        helper mount-bind - < <(printf '\0')
        assert_not_understood
}

@test "bytes that are not UTF-8" {
        local bytes
        # a lone continuation, a cut sequence, an overlong slash, a surrogate, a code point too high, 0xff
        for bytes in $'\200' $'\303' $'\300\257' $'\355\240\200' $'\364\220\200\200' $'\377'; do
                helper mount-bind "{\"container\": 1, \"source\": \"/srv\", \"target\": \"/$bytes\"}"
                assert_not_understood
                helper mount-bind "{\"container\": 1, \"source\": \"/srv\", \"target\": \"/data\", \"$bytes\": 1}"
                assert_not_understood
        done
}

@test "a lone surrogate in an escape" {
        helper mount-bind '{"container": 1, "source": "/srv", "target": "/\ud800"}'
        assert_not_understood
}

@test "a target that is too long is refused, naming the key" {
        local long
        printf -v long '%05000d' 0
        refused target "{\"container\": 1, \"source\": \"/srv\", \"target\": \"/$long\"}"
        refused source "{\"container\": 1, \"source\": \"/$long\", \"target\": \"/data\"}"
}

@test "options that are too long are refused, or the kernel refuses them" {
        local long
        printf -v long '%0100000d' 0
        helper mount-bind "{\"container\": 1, \"source\": \"/srv\", \"target\": \"/data\", \"options\": \"$long\"}"
        [[ $status != 0 ]]
        assert_one_json_line
}

@test "a huge request on standard input is refused without reading it all" {
        helper mount-bind - < <(printf '{"container": 1, "target": "'; head -c 100000000 /dev/zero | tr '\0' a; printf '"}')
        is "$status" 2
        assert_one_json_line
}

@test "endless standard input is refused" {
        helper mount-bind - < <(yes '{"a":')
        is "$status" 2
        assert_one_json_line
}

@test "many keys are refused" {
        local keys
        keys=$(seq -f '"k%.0f": 1,' 1 5000 | tr -d '\n')
        helper mount-bind - <<<"{$keys \"container\": 1}"
        is "$status" 2
        assert_one_json_line
}

@test "nesting too deep is refused" {
        local deep
        deep=$(head -c 50000 /dev/zero | tr '\0' '[')
        helper mount-bind "$deep"
        assert_not_understood
        helper mount-bind "{\"container\": $deep"
        assert_not_understood
        deep=$(printf '{"a":%.0s' {1..10000})
        helper mount-bind "$deep"
        assert_not_understood
        helper mount-bind "{\"container\": {\"pid\": {\"a\": {\"a\": {\"a\": {\"a\": {}}}}}}, \"source\": \"/srv\", \"target\": \"/data\"}"
        assert_not_understood
}

@test "a request from standard input works as one from the command line" {
        start_container plain
        helper mount-bind - <<<"$(bind_request /data)"
        assert_success
        assert_mounts_at /data 1
        helper mount-remove - <<<"$(remove_request /data)"
        assert_success
        assert_mounts_at /data 0
}

@test "a request from standard input may come in pieces" {
        start_container plain
        local request
        request=$(bind_request /data)
        helper mount-bind - < <(local i; for ((i = 0; i < ${#request}; i++)); do printf %s "${request:i:1}"; done)
        assert_success
}

@test "empty standard input is refused" {
        helper mount-bind - </dev/null
        assert_not_understood
}

@test "closed standard input is refused" {
        helper mount-bind - <&-
        [[ $status != 0 ]]
        assert_one_json_line
}

@test "white space around a request does not matter" {
        helper mount-list $' \n\t{ }\r\n '
        assert_success
}

@test "a byte order mark is not JSON" {
        helper mount-list $'\xef\xbb\xbf{}'
        assert_not_understood
}

@test "requests that are not understood leave nothing" {
        start_container plain
        container_snapshot
        node_snapshot
        helper mount-bind "$(bind_request /made/data '"readOnly": "yes"')"
        assert_not_understood readOnly
        helper mount-bind "$(bind_request /made/data '"propagation": "none"')"
        assert_not_understood propagation
        assert_container_unchanged
        assert_node_unchanged
}

@test "a message with odd characters is still one line of JSON" {
        helper mount-bind '{"container": 1, "source": "/srv", "target": "/data", "a\nb\"c\\\u0007\u2028ö": 1}'
        assert_not_understood
}

@test "a broken configuration is one clear error that names the line" {
        printf '{\n"stateDir": 5 5\n}\n' >"$FLEXGRAFT_CONFIG"
        helper mount-list '{}'
        assert_failure
        [[ $output == *"$FLEXGRAFT_CONFIG"* ]]
        [[ $(json_field .message) =~ line\ 2|:2 ]] || { show_last; return 1; }
}

@test "a missing configuration is a working one" {
        start_container plain
        container_snapshot
        local view
        unset FLEXGRAFT_CONFIG
        private_node_view /var/lib/kubelet/plugins /etc/flexgraft
        helper mount-list '{}'
        assert_success
        helper mount-bind "$(bind_request /data)"
        assert_success
        in_node_view test -d /var/lib/kubelet/plugins/flexgraft/mounts
        helper mount-remove "$(remove_request /data)"
        assert_success
        assert_container_unchanged
}

# ---- what a failure says to do

# hints TEXT...: each is in the last failure's hint.
hints() {
        local hint text
        hint=$(json_field .error.hint)
        for text; do
                [[ $hint == *"$text"* ]] || { is "$hint" "...$text..." hint; return 1; }
        done
}

@test "a system call that the kernel lacks is named with the kernel that has it" {
        local call version
        start_container plain
        request_of() {
                jq -c "$([[ $1 != mount-tmpfs ]] || echo 'del(.source)')" <<<"$(bind_request /data)"
        }
        local program
        while read -r program call version; do
                at_syscall --at "$call" --fail ENOSYS "$FLEXGRAFT_BIN/$program" "$(request_of "$program")"
                is "$AT_REACHED" 1 "$call is reached"
                assert_failure ENOSYS
                hints "no $call, which came with Linux $version,"
        done <<'END'
mount-bind openat2 5.6
mount-bind pidfd_open 5.3
mount-bind open_tree 5.2
mount-bind mount_setattr 5.12
mount-bind move_mount 5.2
mount-tmpfs fsopen 5.2
mount-tmpfs fsconfig 5.2
mount-tmpfs fsmount 5.2
END
        assert_mounts_at /data 0
        assert_no_records
}

@test "the same request with changed options is EBUSY, and the hint names replace" {
        start_container plain
        helper mount-bind "$(bind_request /data)"
        assert_success
        helper mount-bind "$(bind_request /data '"readOnly": true')"
        assert_failure EBUSY
        hints '"replace": true' mount-remove
        helper mount-bind "$(bind_request /data '"readOnly": true, "replace": true')"
        assert_success
}

@test "a block device is not bound: the message names mount-block" {
        start_container plain
        make_device ext4
        SOURCE=$DEVICE
        helper mount-bind "$(bind_request /data)"
        assert_failure EINVAL
        shows 'it is a block device: mount-block mounts its filesystem'
        helper mount-block "$(bind_request /data)"
        assert_success
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "a character device is bound with the option dev alone: without it nobody could open it" {
        start_container plain-nouserns
        SOURCE=/dev/null
        helper mount-bind "$(bind_request /etc/null)"
        assert_failure EINVAL
        shows nodev dev
        helper mount-bind "$(bind_request /etc/null '"options": "dev"')"
        assert_success
        in_container cat /etc/null
}

@test "a user that is not root learns first that the program needs root" {
        local program
        chmod 0711 "$BATS_RUN_TMPDIR"
        HELPER_PREFIX=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all)
        for program in mount-bind mount-block mount-remove mount-list; do
                helper "$program" '{"container": 1, "source": "/none", "target": "relative", "ids": "remap"}'
                assert_failure EPERM
                assert_field .message 'this program needs root'
        done
        HELPER_PREFIX=()
}

# bats test_tags=text
@test "every program that needs root says so to another user before it reads its request" {
        local program name output
        local -A besides=(
                [attach]='kube-controller-manager, which asks for other nodes, need not be root'
                [detach]='likewise'
                [isattached]='likewise'
                [csi-driver]='it reads its options first, which say where its socket is'
                [flexdriver]='what it says without a verb is no secret'
                [flexgraft]='it runs the programs of the commands'
                [getvolumename]='it only reads its request'
                [host-check]='it shows what it can without root'
                [init]='it only says what the driver can do'
                [pmem-namespaces]='the exec helper runs it'
                [remap-daemon]='its descriptors come from the program that runs it'
                [remap-upgrade]='it does what it can without capabilities'
                [volume-capacity]='it needs no capability'
                [volume-expand]='it does what it can without capabilities'
        )
        local -A arguments=([mount.flexgraft]='db /mnt' [mount.flexgraft-remap]='/srv /mnt' [umount.flexgraft]=/mnt)
        chmod 0711 "$BATS_RUN_TMPDIR"
        for program in "$FLEXGRAFT_BIN"/* "$FLEXGRAFT_BIN"/verbs/*; do
                [[ -f $program ]] || continue
                name=${program##*/}
                # shellcheck disable=SC2086 # they are words
                output=$(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all \
                        "$program" ${arguments[$name]:-'{"nonesuch"'} </dev/null 2>&1) || : # the verbs' status is in their replies
                if [[ -n ${besides[$name]:-} ]]; then
                        [[ $output != *'this program needs root'* ]] || { echo "$name says that it needs root"; return 1; }
                else
                        [[ $output == *'this program needs root'* ]] || { echo "$name: $output"; return 1; }
                fi
        done
}
