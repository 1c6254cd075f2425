# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What deploy/ has: manifests, and units of systemd. After `load helpers`; DEPLOY is the directory, CHECK the program that checks manifests,
# MANIFESTS the files of one cluster.

mutants=() complaints=() # of a test

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

# mutated NAME SED TEXT: mutants_are_noticed expects the complaint TEXT when the manifest NAME.yaml has that change.
mutated() {
        local dir=$BATS_TEST_TMPDIR/mutated/${#mutants[@]}
        mkdir -p "$dir"
        cp "${MANIFESTS[@]}" "$dir/"
        sed -i "$2" "$dir/$1.yaml"
        mutants+=("$1: $2") complaints+=("$3")
        ! cmp -s "$dir/$1.yaml" "$(printf '%s\n' "${MANIFESTS[@]}" | grep "/$1\.yaml\$")" || { echo "no change: $2"; return 1; }
}

# mutants_are_noticed: each is, by its complaint.
mutants_are_noticed() {
        local i said dirs=("${!mutants[@]}")
        /usr/bin/python3 "$FLEXGRAFT_REPO/tests/tools/check-each.py" "$CHECK" "${dirs[@]/#/$BATS_TEST_TMPDIR/mutated/}"
        for i in "${dirs[@]}"; do
                said=$(<"$BATS_TEST_TMPDIR/mutated/$i.said")
                [[ $(<"$BATS_TEST_TMPDIR/mutated/$i.status") == 1 && $said == *"${complaints[i]}"* ]] && continue
                printf 'expected for %s: %s\nit is: %s\n' "${mutants[i]}" "${complaints[i]}" "$said"
                return 1
        done
}

# enters_as_the_driver MANIFEST: what a container of it runs on the node enters the namespaces that the installers enter.
enters_as_the_driver() {
        local entered
        entered=$(grep -oE 'nsenter --[a-z0-9 -]+ --' "$FLEXGRAFT_REPO/scripts/install-common.bash")
        [[ -n $entered ]]
        is "$(grep -oE 'nsenter --[a-z0-9 -]+ --' "$1")" "$entered"
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
