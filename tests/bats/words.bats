#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Requests in words and options: they say what a request in JSON says, and go through the same parser.

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
        needs mount-bind mount-list mount-remove
}

teardown() {
        bed_teardown
}

# refused WORDS PROGRAM ARGUMENT...: not understood, in these words.
refused() {
        local words=$1
        shift
        helper "$@"
        assert_not_understood
        is "$(jq -r .message <<<"$json")" "the request cannot be understood: $words" "message"
}

@test "a mount is made, listed and removed in words" {
        start_container plain
        helper mount-bind "$CONTAINER_PID" "$SOURCE" /data --read-only --options noexec,noatime
        assert_success
        is "$(jq -c '[.mount.target, .mount.source, (.mount.options - ["nosuid", "nodev"])]' <<<"$json")" \
                "[\"/data\",\"$SOURCE\",[\"ro\",\"noexec\",\"noatime\"]]"
        helper mount-list "$CONTAINER_PID"
        is "$(jq -c '[.mounts[].target]' <<<"$json")" '["/data"]'
        helper mount-list
        is "$(jq -c '[.mounts[].target]' <<<"$json")" '["/data"]'
        helper mount-remove "$CONTAINER_PID" /data
        assert_success
        is "$(jq .alreadyRemoved <<<"$json")" false
}

@test "the same request in words and in JSON is one mount" {
        start_container plain
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"readOnly\": true}"
        assert_success
        helper mount-bind --container.pid "$CONTAINER_PID" "$SOURCE" /data --read-only
        assert_success
        is "$(jq .mount.alreadyMounted <<<"$json")" true
}

@test "words can ask for remap, whose helper starts before privileges are dropped" {
        start_container plain
        helper mount-bind "$CONTAINER_PID" "$SOURCE" /data --ids remap --dry-run
        assert_success
        is "$(jq .dryRun <<<"$json")" true
}

@test "a request can ask for remap with escaped letters: its helper is there" {
        start_container plain
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"ids\": \"\\u0072emap\", \"dryRun\": true}"
        assert_success
        helper mount-bind "{\"container\": $CONTAINER_PID, \"source\": \"$SOURCE\", \"target\": \"/data\", \"ids\": \"\\u0072emap\"}"
        assert_success
        assert_field .mount.idMapping remap
        helper mount-remove "$(remove_request /data)"
        assert_success
}

@test "volumes are made, listed and deleted in words" {
        needs volume-create volume-list volume-delete volume-capacity
        helper volume-create db 1m --parameters preallocate=true --target-type=block
        assert_success
        is "$(jq -c '[.volume.name, .volume.size, .volume.targetType, .volume.parameters]' <<<"$json")" '["db",1048576,"block",{"preallocate":"true"}]'
        helper volume-list default
        is "$(jq -c '[.volumes[].name]' <<<"$json")" '["db"]'
        helper volume-capacity --pool=default
        is "$(jq -c '[.pools[].name]' <<<"$json")" '["default"]'
        helper volume-delete db --no-existed
        assert_not_understood
        helper volume-delete db --reclaim-policy delete
        assert_success
}

@test "host-check takes kinds as words" {
        local rows
        helper host-check '{"kinds": ["lvm", "nfs"]}'
        rows=$(jq -c '[.rows[] | select(.required).name]' <<<"$json")
        helper host-check lvm nfs --timeout-seconds=20
        is "$(jq -c '[.rows[] | select(.required).name]' <<<"$json")" "$rows"
        [[ $rows == *'"nfs"'* ]]
        refused 'kinds: entry 2 is no kind of mount or volume; --schema lists them' host-check bind nonesuch
}

# bats test_tags=text
@test "every program takes its keys as options, and refuses what it refuses in JSON" {
        local name
        for name in $(cd "$FLEXGRAFT_BIN" && printf '%s\n' mount-* remap-mount volume-* host-* | grep -v '^mount-hook$'); do
                helper "$name" --nonesuch
                is "$status" 2 "$name"
                [[ $(jq -r .message <<<"$json") == 'the request cannot be understood: unknown option --nonesuch'* ]]
                is "$("$FLEXGRAFT_BIN/$name" --schema | jq -c '[."$defs".words.options[] | select(.key and (.option | contains(".") | not)).key]')" \
                        "$("$FLEXGRAFT_BIN/$name" --schema | jq -c '."$defs".request.properties | keys_unsorted')" "$name"
        done
}

# bats test_tags=text
@test "an unknown option names the nearest" {
        refused 'unknown option --readonly (the nearest is --read-only)' mount-bind web /srv /data --readonly
        refused 'unknown option --tabel (the nearest is --table)' host-check --tabel
        refused 'unknown option --hepl (the nearest is --help)' volume-delete --hepl
        refused 'unknown option --nonesuch' mount-bind --nonesuch
}

# bats test_tags=text
@test "a missing word prints the usage line, one too many, too" {
        refused 'target is missing; usage: mount-bind CONTAINER SOURCE TARGET [OPTION...]' mount-bind web /srv
        refused 'name is missing; usage: volume-create NAME [SIZE] [OPTION...]' volume-create --pool fast
        refused 'x is one word too many; usage: mount-remove [CONTAINER] [TARGET] [OPTION...]' mount-remove web /data x
}

@test "a value is checked as in JSON" {
        refused 'timeoutSeconds: must be a whole number from 1 to 3600' mount-bind web /srv /data --timeout-seconds=0
        refused 'container: may hold letters, digits and _.+:@- and not begin with a dot' mount-bind -- '{web' /srv /data
        refused 'readOnly: must be true or false' mount-bind web /srv /data --read-only=yes
        refused 'target: must be an absolute path, as the container sees it' mount-remove web data
        refused 'container is not UTF-8' mount-bind $'\xff' /srv /data
}

@test "what begins with a brace is JSON, and takes no words beside it" {
        refused 'one argument is needed: a JSON object, or - for standard input' mount-bind '{"container": "web"}' /srv /data
        refused 'one argument is needed: a JSON object, or - for standard input' mount-bind - --read-only
        helper mount-list - <<<'{}'
        assert_success
        helper mount-list $'\n  {}'
        assert_success
}

# bats test_tags=text
@test "--help and --version are answered beside words, but not behind two dashes" {
        helper mount-bind web --help
        is "$status" 0
        [[ $output == 'usage: mount-bind CONTAINER SOURCE TARGET [OPTION...] | REQUEST | - |'* ]]
        helper mount-bind --version web
        [[ $output == 'mount-bind (flexgraft) '* ]]
        refused 'source is missing; usage: mount-bind CONTAINER SOURCE TARGET [OPTION...]' mount-bind -- --help
}

@test "the verbs of the driver take no words" {
        helper verbs/unmount --read-only
        [[ $(jq -r .message <<<"$json") == *'unknown option --read-only'* && $output != *nearest* ]]
}

# ---- on a terminal

@test "on a terminal a reply is a line that says what was done" {
        start_container plain
        terminal mount-bind "$CONTAINER_PID" "$SOURCE" /data --read-only
        is "$status $stderr" '0 '
        is "$output" "mounted $SOURCE on /data in $CONTAINER_PID: ro,nosuid,nodev,relatime; owners: idmapped"
        terminal mount-bind "$CONTAINER_PID" "$SOURCE" /data --read-only
        is "$output" "$SOURCE is on /data in $CONTAINER_PID already: ro,nosuid,nodev,relatime"
        terminal mount-batch "$CONTAINER_PID" --mounts '{"type": "tmpfs", "target": "/a"}' --mounts '{"type": "tmpfs", "target": "/b"}' --dry-run
        is "$output" $'would mount on /a\nwould mount on /b'
        terminal mount-list
        [[ $output == 'CONTAINER'*'TARGET'*$'\n'*"$CONTAINER_PID"*/data*present* && $output != *'{'* ]]
        terminal mount-remove "$CONTAINER_PID" /data --dry-run
        [[ $output == 'ENSURE '*'IF A LATER STEP FAILS'*'find'* ]]
        terminal mount-remove "$CONTAINER_PID" /data
        is "$output" "removed /data"
        terminal mount-remove "$CONTAINER_PID" /data
        is "$output" "nothing to remove: /data is gone already"
}

@test "on a terminal the volume tools print lines and tables" {
        needs volume-create volume-list volume-delete volume-capacity volume-reconcile
        terminal volume-create db 1536k
        is "$status $output" '0 made volume db, 1.5M, in pool default'
        terminal volume-create db 1536k
        is "$output" 'volume db, 1.5M, is in pool default already'
        terminal volume-list
        [[ $output =~ ^'POOL '.*$'\n''default '.*$'\n''VOLUME '.*$'\n''db '\ *'default  1.5M '.*' ok ' ]]
        terminal volume-expand db 3m
        is "$status $output" '0 volume db has 3M'
        terminal volume-snapshot db monday
        is "$status $output" '0 took snapshot monday of db, 3M'
        terminal volume-snapshot db --restore monday
        is "$status $output" '0 volume db has the content of monday'
        terminal volume-capacity
        [[ $output == 'POOL '*'PROFILES'*$'\n''default '* && $output != *'{'* ]]
        terminal volume-reconcile
        is "$status $output" '0 records and node agree'
        terminal volume-delete db
        is "$output" 'gave volume db back to pool default (delete)'
        terminal volume-delete db
        is "$output" 'nothing to delete: there is no volume db'
        terminal host-check
        [[ $output == 'STATE '*'REQUIRED'* ]]
}

@test "the columns of a table are below each other, also where a name is not ASCII" {
        local name line LC_ALL=C.UTF-8
        needs volume-create volume-list
        for name in plain 'größer' "$(printf 'n%.0s' {1..60})"; do
                helper volume-create "{\"name\": \"$name\", \"size\": \"1m\"}"
                assert_success
        done
        terminal volume-list
        while IFS= read -r line; do
                name=${line%%POOL *}
                name=${name%%default *}
                is "${#name}" 62 "where the pool begins in: $line"
        done < <(sed -n '/^VOLUME/,$p' <<<"$output")
}

@test "on a terminal a failure is on standard error, with its hint" {
        local name
        for name in mount-bind mount-list volume-create volume-reconcile host-check; do
                terminal "$name" --nonesuch
                is "$status $output" '2 ' "$name"
                [[ $stderr == "$name: the request cannot be understood: unknown option --nonesuch"* || $stderr == "$name: unknown option --nonesuch"* ]]
        done
        terminal mount-bind nonesuch-container "$SOURCE" /data
        is "$status $output" '1 '
        [[ $stderr == "mount-bind: cannot mount $SOURCE on /data in container nonesuch-container: no container of this name"*$'\n''hint: use a process id'*'{"container": PID}; "persist" needs a name'* ]]
}

@test "on a terminal a failure has nothing on standard output, whatever was asked for" {
        local words
        needs volume-create volume-snapshot volume-expand remap-mount
        echo '{' >"$FLEXGRAFT_CONFIG" # which every program reads
        while read -r -a words; do
                terminal "${words[@]}"
                is "$status $output" '1 ' "${words[*]}"
                [[ $stderr == "${words[0]}: "* ]] || { show_last; return 1; }
        done <<END
mount-bind $$ $SOURCE /data
mount-tmpfs $$ /data
mount-volume $$ db /data
mount-remove $$ /data
mount-list
remap-mount $SOURCE /mnt
volume-create db 1m
volume-expand db 2m
volume-snapshot db monday
volume-snapshot db --restore monday
volume-delete db
volume-list
volume-capacity
volume-reconcile
END
}

@test "what a record has in it cannot move a terminal's cursor" {
        needs volume-create
        terminal volume-create --pool $'\e[31mred' db 1m
        [[ $stderr == volume-create:* && $stderr != *$'\e'* ]]
}

@test "what a name hides or turns round is written out for people, and JSON has the name itself" {
        start_container plain
        local name=$'/\xe2\x80\xaegnp\xe2\x81\xa6.\xc2\x9b31m\xe2\x80\x8f' shown='/\u202egnp\u2066.\u009b31m\u200f'
        terminal mount-bind "$CONTAINER_PID" "$SOURCE" "$name"
        [[ $output == "mounted $SOURCE on $shown in $CONTAINER_PID: "* ]]
        terminal mount-list
        [[ $output == *" $shown "* && $output != *$'\xe2\x80\xae'* ]]
        run --separate-stderr "$FLEXGRAFT_BIN/mount-list" --table
        [[ $output == *" $shown "* && $output != *$'\xe2\x81\xa6'* ]]
        helper mount-list
        assert_field '.mounts[0].target' "$name"
        terminal mount-bind "$CONTAINER_PID" $'/nonesuch\xe2\x80\xae' /other
        [[ $stderr == *'/nonesuch\u202e'* && $stderr != *$'\xe2\x80\xae'* ]]
        flexgraft $'mount\x9b'
        [[ $stderr == *'mount\x9b'* && $stderr != *$'\x9b'* ]]
}

@test "--json on a terminal, and any pipe, gives JSON, and so do the verbs" {
        terminal mount-list --json
        is "$output" '{"status":"Success","mounts":[]}'
        terminal mount-bind --json --nonesuch
        is "$(jq -r .status <<<"$output")" Failure
        terminal mount-list --schema
        is "$(jq -r .title <<<"$output")" mount-list
        terminal verbs/init
        is "$(jq -r .status <<<"$output")" Success
        helper mount-list
        is "$output" $'{"status":"Success","mounts":[]}\n'
}

@test "--verbose prints each step on standard error, and the reply stays as it is" {
        start_container plain
        helper mount-bind "$CONTAINER_PID" "$SOURCE" /data --verbose
        is "$status" 0
        is "$(jq -r .status <<<"$json")" Success
        [[ $stderr == 'mount-bind: '*$'\n''mount-bind: '* ]]
        is "$(grep -vc '^mount-bind: [a-z]' <<<"${stderr%$'\n'}" || :)" 0
        helper mount-bind --dry-run --replace "$CONTAINER_PID" "$SOURCE" /data
        is "$stderr" ''
        helper mount-remove "$CONTAINER_PID" /data --verbose
        [[ $stderr == *'mount-remove: '* ]]
        needs volume-create
        helper volume-create db 1m --verbose
        [[ $stderr == *'volume-create: created volume db of '* ]]
}

# ---- flexgraft COMMAND

# flexgraft ARGUMENT...: as helper() runs a program, but that its reply is another's.
flexgraft() {
        status=0
        "$FLEXGRAFT_BIN/flexgraft" "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" || status=$?
        json=$(<"$BATS_TEST_TMPDIR/stdout") output=$json stderr=$(<"$BATS_TEST_TMPDIR/stderr")
}

@test "flexgraft runs the program that its words name, with what follows" {
        start_container plain
        flexgraft mount bind "$CONTAINER_PID" "$SOURCE" /data
        is "$(jq -r .mount.target <<<"$json")" /data
        flexgraft mount-list "{\"container\": $CONTAINER_PID}"
        is "$(jq -r '.mounts[].target' <<<"$json")" /data
        flexgraft check --table --timeout-seconds=20
        [[ $output == 'STATE '* ]]
        flexgraft volume delete nonesuch
        is "$(jq .existed <<<"$json")" false
        flexgraft mount bind nonesuch
        is "$status $(jq -r .status <<<"$json")" '2 Failure'
}

@test "flexgraft takes programs from its own directory, whatever PATH says" {
        mkdir "$BATS_TEST_TMPDIR/hostile" "$BATS_TEST_TMPDIR/alone"
        printf '#!/bin/sh\necho hostile\n' >"$BATS_TEST_TMPDIR/hostile/mount-list"
        chmod 0755 "$BATS_TEST_TMPDIR/hostile/mount-list"
        cd "$BATS_TEST_TMPDIR/hostile"
        output=$(PATH=.:$BATS_TEST_TMPDIR/hostile "$FLEXGRAFT_BIN/flexgraft" mount list)
        is "$output" '{"status":"Success","mounts":[]}'
        ln -s "$(realpath "$FLEXGRAFT_BIN/flexgraft")" flexgraft
        is "$(./flexgraft mount list)" '{"status":"Success","mounts":[]}'
        cp "$FLEXGRAFT_BIN/flexgraft" "$BATS_TEST_TMPDIR/alone"
        run --separate-stderr env PATH="$BATS_TEST_TMPDIR/hostile:$PATH" "$BATS_TEST_TMPDIR/alone/flexgraft" mount list
        is "$status $output" '1 '
        is "$stderr" "flexgraft: cannot run $BATS_TEST_TMPDIR/alone/mount-list: No such file or directory"
}

@test "a command line that is refused is refused in JSON wherever --json stands in it" {
        local words
        for words in "--format nonesuch --json" "--json --format nonesuch" "--format --json" "--nonesuch --json"; do
                # shellcheck disable=SC2086 # words
                terminal mount-list $words
                is "$status $stderr $(jq -r .error.errno <<<"$output")" '2  EINVAL' "$words"
        done
        terminal mount-list --format nonesuch -- --json         # a word
        is "$status $output" '2 '
}

# bats test_tags=text
@test "flexgraft names the nearest command, and lists every program by its man page's words" {
        local page words
        flexgraft mount bnid
        is "$status $stderr" $'2 flexgraft: there is no command "mount bnid" (the nearest is mount bind); --help lists them'
        flexgraft mount
        is "$status $stderr" '2 flexgraft: after mount comes one of: bind block image nfs container-to-container tmpfs overlay volume batch hook list remove'
        flexgraft $'\e[31m'
        [[ $status == 2 && $stderr != *$'\e'* ]]
        flexgraft
        is "$status" 2
        flexgraft --help
        ((status == 0 && $(wc -L <<<"$output") <= 80))
        for page in $(cd "$FLEXGRAFT_BIN" && printf '%s\n' mount-* remap-mount volume-* host-*); do
                words=$(sed -n '/^\.SH NAME$/{n;s/.* \\- //p;q}' "$FLEXGRAFT_REPO/man/$page.8")
                [[ $output == *" $words"$'\n'* ]] || {
                        echo "$page: $words"
                        return 1
                }
        done
}
