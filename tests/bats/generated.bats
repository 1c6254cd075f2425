#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What is made of the programs' tables of keys: --help, JSON Schemas, the man pages' lists, completions. And that the parsers agree.
# bats file_tags=text

load helpers
bats_require_minimum_version 1.5.0

setup() {
        bed_setup
}

teardown() {
        bed_teardown
}

# Every program that prints --help, as a path below the directory of programs.
all_programs() {
        (cd "$FLEXGRAFT_BIN" && printf '%s\n' mount-* volume-* host-* flexdriver verbs/*) | grep -vE '(pmem-namespaces|remap-daemon)$'
}

# Those with a request of their own.
with_request() {
        all_programs | grep -E '^(mount|volume|host)-' | grep -v '^mount-hook$'
}

keys_of() {
        "$FLEXGRAFT_BIN/$1" --schema | jq -r '."$defs".request.properties // {} | keys_unsorted[]'
}

@test "--help begins with a usage line and fits into 80 columns" {
        local name
        for name in $(all_programs); do
                helper "$name" --help
                is "$status $stderr" '0 ' "$name"
                [[ $output == "usage: ${name##*/} "* && $output == *'Exit status:'* ]]
                ((${#output} > 100 && $(wc -L <<<"$output") <= 80))
        done
}

@test "--help and --schema have the same keys" {
        local name key
        for name in $(with_request) $(all_programs | grep ^verbs/); do
                helper "$name" --help
                is "$(grep -oE '^  [a-zA-Z][a-zA-Z./]*( |$)' <<<"${output%%$'\n'Example*}" | tr -d ' ' | sort)" "$(keys_of "$name" | sort)" "$name"
        done
}

@test "flexdriver --help names every type of volumes, and so does the option type" {
        local type
        helper flexdriver --help
        for type in $("$FLEXGRAFT_BIN/verbs/attach" --schema | jq -r '."$defs".request.properties.type.enum[] | strings | select(. != "")'); do
                [[ $output =~ types\ of\ volumes\ are[[:space:]][a-z,\ ]*$type ]]
        done
}

# schemas_and_parsers_agree PROGRAM...: for each, the schema is one of draft 2020-12, and its parser agrees with it about every key.
schemas_and_parsers_agree() {
        python3 "$FLEXGRAFT_REPO/tests/tools/check-schema.py" "$FLEXGRAFT_BIN" "$@"
}

# bats test_tags=deep
@test "a schema of a mount helper is one of draft 2020-12, and its parser agrees with it about every key" {
        # shellcheck disable=SC2046
        schemas_and_parsers_agree $(with_request | grep '^mount-')
}

# bats test_tags=deep
@test "a schema of another program is one of draft 2020-12, and its parser agrees with it about every key" {
        # shellcheck disable=SC2046
        schemas_and_parsers_agree $(with_request | grep -v '^mount-')
}

# bats test_tags=deep
@test "the schema of the driver's options is one of draft 2020-12, and its parser agrees with it about every option" {
        schemas_and_parsers_agree verbs/isattached verbs/attach verbs/mount # attach would, isattached only looks
}

@test "the man pages have what the programs say of their keys" {
        cp -r "$FLEXGRAFT_REPO/man" "$BATS_TEST_TMPDIR/man"
        "$FLEXGRAFT_REPO/scripts/generate" man "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/man"
        diff -r "$FLEXGRAFT_REPO/man" "$BATS_TEST_TMPDIR/man" || {
                echo 'make generate writes the lists anew'
                return 1
        }
        local name
        for name in $(with_request); do
                is "$(sed -n '/^\.\\" keys begin/,/^\.\\" keys end/s/^\.B //p' "$FLEXGRAFT_REPO/man/$name.8")" "$(keys_of "$name")" "$name"
        done
}

@test "the keys of each file in /etc/flexgraft are in one of its manual pages" {
        local tool=$FLEXGRAFT_REPO/build/record-schemas
        is "$(sed -n 's/^\.\\" keys begin //p' "$FLEXGRAFT_REPO"/man/*.5 | sort)" "$("$tool" keys | jq -r 'keys[]' | sort)"
        is "$(sed -n '/^\.\\" keys begin config/,/^\.\\" keys end/s/^\.B //p' "$FLEXGRAFT_REPO/man/flexgraft-config.5")" \
                "$("$tool" keys | jq -r '.config[].name')"
        [[ $("$tool" keys | jq -r '.config[].name') == *timeouts.call* ]]
}

@test "a key that is missing in a man page's list is added, and text that is written by hand stays" {
        mkdir "$BATS_TEST_TMPDIR/man"
        cat >"$BATS_TEST_TMPDIR/man/mount-list.8" <<'END'
.SH REQUEST
.\" keys begin
.TP
.B container
old words
.\" detail
By hand.
.TP
.B gone
.\" detail
Of a key that is gone.
.\" keys end
.SH END
END
        "$FLEXGRAFT_REPO/scripts/generate" man "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/man"
        [[ $(keys_of mount-list) == *$'\n'* ]]
        is "$(grep '^\.B' "$BATS_TEST_TMPDIR/man/mount-list.8")" "$(keys_of mount-list | sed 's/^/.B /')"
        grep -A1 'detail' "$BATS_TEST_TMPDIR/man/mount-list.8" | grep -q 'By hand.'
        is "$(grep -c "old words\|gone" "$BATS_TEST_TMPDIR/man/mount-list.8" || :)" 0
}

@test "a schema is written per program, as --schema prints it" {
        local name
        "$FLEXGRAFT_REPO/scripts/generate" schemas "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/schemas"
        for name in $(all_programs | grep -v '^flexdriver$'); do
                is "$(jq -S . "$BATS_TEST_TMPDIR/schemas/$name.json")" "$("$FLEXGRAFT_BIN/$name" --schema | jq -S .)" "$name"
                is "$(jq -r '."$schema"' "$BATS_TEST_TMPDIR/schemas/$name.json")" https://json-schema.org/draft/2020-12/schema
        done
}

# complete PROGRAM WORD: what bash would offer.
complete_word() {
        (
                # shellcheck source=/dev/null
                . "$BATS_TEST_TMPDIR/completions/bash/$1"
                COMPREPLY=() COMP_WORDS=("$1" "$2") COMP_CWORD=1
                "_flexgraft_${1//-/_}" "$1" "$2" "$1"
                [[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
        )
}

@test "bash completes options, and the keys inside a request" {
        local name key
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        for name in $(with_request); do
                [[ $(complete_word "$name" --sc) == --schema ]]
                is "$(complete_word "$name" '{"')" "$(keys_of "$name" | sed 's/.*/{"&": /')" "$name"
        done
        is "$(complete_word mount-bind '{"container": 1, "rec')" '{"container": 1, "recursive": '
        is "$(complete_word mount-bind '{"container": "re')" ''
        is "$(complete_word mount-list --ta)" --table
        is "$(complete_word mount-hook '')" "$(printf '%s\n' --help --schema --version && sed -n 's/^ *{ "\([a-zA-Z]*\)", HOOK_.*/\1/p' \
                "$FLEXGRAFT_REPO/src/common/inject/oci_hook.c")"
        [[ $(complete_word mount-hook '') == *createRuntime* ]]
}

# A name that a shell would run, if it took it for more than a name.
HOSTILE='$(touch ran)'

# complete_line WORD...: what bash would offer for the last word of the line.
complete_line() {
        (
                # shellcheck source=/dev/null
                . "$BATS_TEST_TMPDIR/completions/bash/$1"
                COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
                "_flexgraft_${1//-/_}" "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null || "_$1" "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
                [[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
        )
}

@test "bash completes containers, volumes, pools and mounts, and the words of an option" {
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        cd "$BATS_TEST_TMPDIR"
        mkdir -p /run/crun/web-1 /run/crun/web-2 "/run/crun/$HOSTILE" "$STATE_DIR/provisioned" "$STATE_DIR/mounts" pools
        touch "$STATE_DIR/provisioned/db.json" "$STATE_DIR/provisioned/$HOSTILE.json" "$STATE_DIR/mounts/data-1.json" pools/fast.json pools/slow.json
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools
        is "$(complete_line mount-bind web)" $'web-1\nweb-2'
        is "$(complete_line mount-remove --force web-1 '')" ''
        is "$(complete_line mount-remove --container =  web)" $'web-1\nweb-2'
        is "$(complete_line mount-remove --id '')" data-1
        is "$(complete_line volume-delete '' | grep -v ^-)" db
        is "$(complete_line volume-create db 1g --pool f)" fast
        is "$(complete_line volume-list '' | grep -v ^-)" $'default\nfast\nslow'
        is "$(complete_line volume-create db 1g --pool d)" default # which needs no file
        is "$(complete_line mount-volume web-1 '')" db
        is "$(complete_line mount-bind web /srv /data --ids r)" remap
        is "$(complete_line mount-bind web /srv /data --no-re)" "$("$FLEXGRAFT_BIN/mount-bind" --schema |
                jq -r '."$defs".words.options[] | select(.key and .takes == "nothing").option' | sed -n 's/^--re/--no-re/p')"
        [[ $(complete_line mount-bind web /srv /data --no-re) == *--no-read-only* ]]
        is "$(complete_line mount-bind web "$STATE_DIR/pro")" "$STATE_DIR/provisioned"
        is "$(complete_line mount.flexgraft '')" db
        is "$(complete_line mount.flexgraft db /mnt -o ro,sub)" ro,subdir=
        is "$(complete_line flexgraft mount re)" remove
        is "$(complete_line flexgraft mount remove web)" $'web-1\nweb-2'
        is "$(complete_line flexgraft check --ta)" --table
        [[ ! -e ran ]]
        rm -rf "${STATE_DIR:?}"
        rmdir /run/crun/*
}

@test "a user that may read no state files is offered no names, without a message" {
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        mkdir -p "$STATE_DIR/provisioned" /run/crun/web-1
        touch "$STATE_DIR/provisioned/db.json"
        chmod 0700 "$STATE_DIR" /run/crun
        # shellcheck disable=SC2016
        run "$FLEXGRAFT_TOOLS/as-user" 1000 1000 - bash -c '. /dev/stdin; _flexgraft_values volumes; _flexgraft_values containers' <"$BATS_TEST_TMPDIR/completions/bash/mount-bind"
        is "$output" ''
        rmdir /run/crun/*
}

@test "zsh's completions name every option and key" {
        local name key
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        for name in $(with_request); do
                [[ $(head -n 1 "$BATS_TEST_TMPDIR/completions/zsh/_$name") == "#compdef $name" ]]
                for key in $(keys_of "$name") --help --version --schema; do
                        grep -qE "[ '\"]${key}[,'\"]" "$BATS_TEST_TMPDIR/completions/zsh/_$name"
                done
        done
}

# zsh_offers KIND: what zsh would offer of a kind of names, without a terminal: with stubs of its completion system.
zsh_offers() {
        # shellcheck disable=SC2016 # for zsh
        zsh -f -c '_arguments() { : }; compadd() { print -rl -- "${(@P)2}" }; source "$1"; _flexgraft_offer "$2"' - \
                "$BATS_TEST_TMPDIR/completions/zsh/_mount-bind" "$1"
}

# zsh_action PROGRAM WORD: what its completions do for an option (--pool) or a place (1), by their file.
zsh_action() {
        sed -nE "s/^ *'[*]?$2=?:[^:]*:([^']*)'.*/\\1/p" "$BATS_TEST_TMPDIR/completions/zsh/_$1"
}

@test "zsh completes containers, volumes, pools and mounts where bash does, and the words of an option" {
        local file program option kind places
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        is "$(zsh_action mount-volume 1)|$(zsh_action mount-volume 2)|$(zsh_action mount-remove --id)|$(zsh_action volume-create --pool)" \
                '_flexgraft_offer containers|_flexgraft_offer volumes|_flexgraft_offer mounts|_flexgraft_offer pools'
        is "$(zsh_action mount-bind 2)" _files
        [[ " $(zsh_action mount-bind --ids | tr -d '()') " == *' remap '* ]]
        for file in "$BATS_TEST_TMPDIR/completions/bash"/*; do
                program=${file##*/}
                [[ $program != flexgraft ]] || continue
                while read -r option kind; do
                        is "$(zsh_action "$program" "$option")" "_flexgraft_offer $kind" "$program $option"
                done < <(sed -nE 's/^ *(--[a-zA-Z.-]+)\) place=([a-z]+) ;;/\1 \2/p' "$file")
                places=$(sed -nE "s/^ *([0-9])\\) place='([a-z]+)' ;;/\\1 \\2/p" "$file")
                while read -r option kind; do
                        [[ -n $option ]] || continue
                        kind="_flexgraft_offer $kind"
                        is "$(zsh_action "$program" "$((option + 1))")" "${kind/#_flexgraft_offer files/_files}" "$program, word $option"
                done <<<"$places"
        done
}

@test "zsh offers the names of containers, volumes, pools and mounts that there are, and runs none" {
        [[ -n $(type -P zsh) ]] || skip "there is no zsh"
        "$FLEXGRAFT_REPO/scripts/generate" completions "$FLEXGRAFT_BIN" "$BATS_TEST_TMPDIR/completions"
        cd "$BATS_TEST_TMPDIR"
        mkdir -p /run/crun/web-1 /run/crun/web-2 "/run/crun/$HOSTILE" "$STATE_DIR/provisioned" "$STATE_DIR/mounts" pools
        touch "$STATE_DIR/provisioned/db.json" "$STATE_DIR/provisioned/$HOSTILE.json" "$STATE_DIR/mounts/data-1.json" pools/fast.json pools/slow.json
        export FLEXGRAFT_POOLS=$BATS_TEST_TMPDIR/pools
        is "$(zsh_offers containers)" $'web-1\nweb-2'
        is "$(zsh_offers volumes)" db
        is "$(zsh_offers pools)" $'default\nfast\nslow'
        is "$(zsh_offers mounts)" data-1
        [[ ! -e ran ]]
        rm -rf "${STATE_DIR:?}"
        rmdir /run/crun/*
}

@test "a reply is made of the list of members that its schema is made of" {
        run ! grep -rnE '"status", *"(Success|Failure)"' "$FLEXGRAFT_REPO/src" --include='*.c'
}

@test "a reply that is not as its schema says is found" {
        local bad
        for bad in '{"status":"Success"}' '{"status":"Success","mounts":[{"id":1}]}' '{"status":"Failure","message":"x","error":{}}' '{"status":"Success","mounts":[],"more":1}' \
                '{"status":"Success","mounts":[],"mounts":[]}' '{"status":"Success","mounts":NaN}' $'{"status":"Success","mounts":[],"\xff":1}' \
                '{"status":"Success","mounts":[],"\ud800":1}' '{"status":"Success"'; do
                run python3 "$FLEXGRAFT_REPO/tests/tools/validate-replies.py" "$FLEXGRAFT_BIN" <<<"mount-list"$'\t'"$bad"
                is "$status" 1 "$bad"
        done
        run python3 "$FLEXGRAFT_REPO/tests/tools/validate-replies.py" "$FLEXGRAFT_BIN" <<<"mount-list"$'\t''{"status":"Success","mounts":[]}'
        is "$status" 0
}

@test "an argument that begins with a dash is an option, in every program" {
        local name
        for name in $(with_request); do
                helper "$name" --tabel
                is "$status $(json_field .message | sed 's/ (.*//')" '2 the request cannot be understood: unknown option --tabel' "$name"
        done
        helper mount-hook --tabel
        is "$status $stderr" $'2 mount-hook: unknown option --tabel\n'
        helper mount-hook --cd
        is "$status $stderr" $'2 mount-hook: unknown option --cd (the nearest is --cdi)\n'
        helper csi-driver --endpiont /run/csi.sock
        [[ $status == 2 && $stderr == *'unknown option --endpiont (the nearest is --endpoint)'* ]]
        helper mount-list --table --tabel
        is "$status $stderr" $'2 mount-list: unknown option --tabel (the nearest is --table)\n'
        helper volume-capacity --format yaml
        is "$status $(json_field .message)" '2 the request cannot be understood: --format must be followed by prometheus or json'
        helper verbs/unmount --tabel
        [[ $(json_field .message) == *'unknown option --tabel'* ]]
}

@test "the same mistake has the same words in every program" {
        local name request words
        local -A mistakes=(
                ['[]']='it must be a JSON object'
                ['{"nonesuch": 1}']='unknown key "nonesuch"'
                ['{"a": }']="invalid JSON at line 1, column 7: unexpected token near '}'"
        )
        for name in $(with_request); do
                for request in "${!mistakes[@]}"; do
                        helper "$name" "$request"
                        words=$(json_field .message | sed 's/ (--help.*//')
                        is "$status $words" "2 the request cannot be understood: ${mistakes[$request]}" "$name $request"
                done
                helper "$name" ''
                words=$(json_field .message | sed 's/ (--help.*//')
                is "$status $words" '2 the request cannot be understood: the request is empty: expected a JSON object' "$name"
                helper "$name" {} {}
                words=$(json_field .message | sed 's/ (--help.*//')
                is "$status $words" '2 the request cannot be understood: one argument is needed: a JSON object, or - for standard input' "$name"
        done
}

@test "the memory that remap-daemons of two versions share has a new number when its declarations change" {
        local file sum
        sum=$(for file in remap/shared.h common/daemon/keeper.h; do
                gcc -fpreprocessed -dD -E -P -x c "$FLEXGRAFT_REPO/src/$file" || exit 1
        done | grep -v 'define SHARED_LAYOUT' | tr -d '[:space:]' | cksum | cut -d' ' -f1)
        is "$(sed -n 's|^#define SHARED_LAYOUT [0-9]* /\* of declarations with the checksum \([0-9]*\) \*/$|\1|p' "$FLEXGRAFT_REPO/src/remap/shared.h")" "$sum" \
                "the checksum beside SHARED_LAYOUT (raise that, if a program with the other number would misread the memory)"
}

@test "what a new remap-daemon clears of its memory begins with a page, also of 64 KiB" {
        run -0 bash -o pipefail -c "nm '$FLEXGRAFT_BIN/remap-daemon' | sed -nE 's/^(.*) b of_(process|user)\$/\1/p'"
        is "${#lines[@]}" 2 "number of arrays"
        is "${lines[0]: -4} ${lines[1]: -4}" "0000 0000" "the ends of their addresses"
}

# bats test_tags=text
@test "each test of pools on a server that needs one has the tag by which the guest runs it" {
        is "$(awk '/^# bats test_tags=.*nfs/ { tagged = NR } /^@test/ { name = $0; ok = tagged == NR - 1 } /with_server$/ && !ok { print name }' \
                "$FLEXGRAFT_REPO/tests/bats/nfs_pool.bats")" ''
}
