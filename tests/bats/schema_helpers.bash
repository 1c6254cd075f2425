# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Every reply that helper() and call() see, and the records of what was just made, are held against their JSON Schemas:
# collected while a file's tests run, validated once when they have. A file with a teardown_file() of its own calls schema_validate.

# schema_collect PROGRAM OUTPUT ARGUMENTS...: a reply, if it is one, and the records of what it says was made. The last reply, of which
# schema_validate will see that it is JSON and what else it must be, is in schema_collected.
schema_collect() {
        local file
        [[ $2 == '{'*$'\n' && ${2%$'\n'} != *$'\n'* && ${3:-} != --schema ]] || return 0
        printf '%s\t%s' "$1" "$2" >>"$BATS_FILE_TMPDIR/replies"
        schema_collected=$2
        [[ $2 == '{"status":"Success"'* && -d ${STATE_DIR:-} ]] || return 0
        if [[ $2 =~ ^'{"status":"Success","mount":{"id":"'([^\"\\/]+)'"' && $2 != *'"alreadyMounted":true'* ]]; then
                schema_collect_record mount "$STATE_DIR/mounts/${BASH_REMATCH[1]}.json"
        elif [[ $1 == verbs/attach || $1 == verbs/mountdevice || $1 == verbs/mount ]]; then
                for file in "$STATE_DIR"/volumes/*.json; do
                        schema_collect_record volume "$file"
                done
        elif [[ $1 == volume-create && $2 =~ '"volume":{"name":"'([^\"\\/]+)'"' ]]; then # other records may be a test's, damaged on purpose
                schema_collect_record provision "$STATE_DIR/provisioned/${BASH_REMATCH[1]}.json"
        fi
}

# schema_collect_record TYPE FILE: a record as it was written.
schema_collect_record() {
        local text
        [[ -f $2 ]] || return 0
        IFS= read -r -d '' text <"$2" || :
        printf 'record:%s\t%s\n' "$1" "${text//$'\n'/}" >>"$BATS_FILE_TMPDIR/replies"
}

schema_validate() {
        [[ ! -e $BATS_FILE_TMPDIR/replies ]] ||
                sort -u "$BATS_FILE_TMPDIR/replies" | python3 "$FLEXGRAFT_REPO/tests/tools/validate-replies.py" "$FLEXGRAFT_BIN"
}

teardown_file() {
        schema_validate
}
