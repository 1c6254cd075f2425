# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What deploy/ has: manifests, and units of systemd. After `load helpers`; DEPLOY is the directory, CHECK the program that checks manifests,
# MANIFESTS the files of one cluster.

# check_manifests FILE...: what is wrong with them in output.
check_manifests() {
        bed_command="${CHECK##*/} $*"
        status=0
        output=$(/usr/bin/python3 "$CHECK" "$@" 2>&1) || status=$?
}

# documents FILE [JQ]: its documents, each on a line as JSON.
documents() {
        /usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-manifests.py" --json "$1" | jq -c ".[] | ${2:-.}"
}

# mutated NAME SED TEXT: with that change to the manifest NAME.yaml, the complaint is TEXT.
mutated() {
        local name=$1 change=$2 text=$3 dir=$BATS_TEST_TMPDIR/mutated
        rm -rf "$dir"
        mkdir "$dir"
        cp "${MANIFESTS[@]}" "$dir/"
        cp "$dir/$name.yaml" "$BATS_TEST_TMPDIR/before"
        sed -i "$change" "$dir/$name.yaml"
        ! cmp -s "$dir/$name.yaml" "$BATS_TEST_TMPDIR/before" || { echo "no change: $change"; return 1; }
        check_manifests "$dir"/*.yaml
        [[ $status == 1 && $output == *"$text"* ]] && return
        echo "expected for $change: $text"
        show_last
        return 1
}

# unit_value UNIT KEY: its values, one on a line.
unit_value() {
        sed -n "s/^$2=//p" "$DEPLOY/systemd/$1.in"
}

# no_namespace_settings: what would put a unit into a mount namespace of its own, a line each.
no_namespace_settings() {
        printf '%s\n' BindPaths BindReadOnlyPaths DynamicUser ExecPaths ExtensionImages InaccessiblePaths MountAPIVFS MountFlags MountImages \
                NoExecPaths PrivateDevices PrivateIPC PrivateMounts PrivateNetwork PrivateTmp PrivateUsers ProcSubset ProtectClock \
                ProtectControlGroups ProtectHome ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc \
                ProtectSystem ReadOnlyPaths ReadWritePaths RootDirectory RootImage StateDirectory TemporaryFileSystem
}

# every_document_is_read: there are documents in each of MANIFESTS, and as many as the files have by their text.
every_document_is_read() {
        local file
        for file in "${MANIFESTS[@]}"; do
                is "$(documents "$file" .kind | tr -d '"')" "$(sed -n 's/^kind: //p' "$file")" "the documents of $file" || return
                grep -q '^kind: ' "$file" || { echo "no document in $file"; return 1; }
        done
}
